/* A wait for all objects that takes them one by one: two such waits in opposite orders each hold what the other
   needs. */
#include <interlock/lab.h>

static uint32_t signaled[2] = {1, 1};

static void take(uint32_t *object)
{
    for (;;) {
        uint32_t one = 1;
        if (__atomic_compare_exchange_n(object, &one, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        LabWaitOnWord(object, 0);
    }
}

static void set(uint32_t *object)
{
    __atomic_store_n(object, 1, __ATOMIC_RELEASE);
    LabWakeWord(object, 1);
}

static void take_all(uint32_t *first, uint32_t *second)
{
    take(first);
    take(second);
    set(first);
    set(second);
}

static void forwards(void)
{
    take_all(&signaled[0], &signaled[1]);
}

static void backwards(void)
{
    take_all(&signaled[1], &signaled[0]);
}

LAB_SCENARIO(waitall_one_by_one, .Threads = {forwards, backwards}, .Expect = "deadlock");
LAB_SCENARIO(waitall_in_order, .Threads = {forwards, forwards});
