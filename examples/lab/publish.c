/*
 * A message that a flag publishes. It works on every x86, because the processor orders more than the program asks for.
 * The C11 model shows what another processor or compiler may do.
 *
 *     interlock lab --model c11 examples/lab/publish.c
 */
#include <interlock/lab.h>

#include <stdatomic.h>

static atomic_int message, published;

static void publish(void)
{
    atomic_store_explicit(&message, 42, memory_order_relaxed);
    atomic_store_explicit(&published, 1, memory_order_relaxed);
}

static void publish_right(void)
{
    atomic_store_explicit(&message, 42, memory_order_relaxed);
    atomic_store_explicit(&published, 1, memory_order_release);
}

static void receive(void)
{
    if (atomic_load_explicit(&published, memory_order_acquire) == 1)
        LabAssert(atomic_load_explicit(&message, memory_order_relaxed) == 42);
}

LAB_SCENARIO(publish_relaxed, .Threads = {publish, receive});
LAB_SCENARIO(publish_release, .Threads = {publish_right, receive});
