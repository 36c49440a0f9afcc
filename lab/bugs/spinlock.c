/* A spinlock whose acquire does not acquire. On x86 it works; the model of C11 shows what an ARM would do. */
#include <interlock/lab.h>

static int lock, first, second;

static void acquire(int order)
{
    while (__atomic_exchange_n(&lock, 1, order) != 0)
        ;
}

static void release(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* The two variables are equal whenever the lock is free. They are atomic, so this is not a data race. */
static void update(int order)
{
    acquire(order);
    int a = __atomic_load_n(&first, __ATOMIC_RELAXED);
    int b = __atomic_load_n(&second, __ATOMIC_RELAXED);
    LabAssert(a == b);
    __atomic_store_n(&first, a + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&second, b + 1, __ATOMIC_RELAXED);
    release();
}

static void update_relaxed(void)
{
    update(__ATOMIC_RELAXED);
}

static void update_acquire(void)
{
    update(__ATOMIC_ACQUIRE);
}

LAB_SCENARIO(spinlock_missing_acquire, .Threads = {update_relaxed, update_relaxed}, .Model = "c11",
             .Expect = "assertion");
LAB_SCENARIO(spinlock_missing_acquire_interleaved, .Threads = {update_relaxed, update_relaxed}, .Model = "sc");
LAB_SCENARIO(spinlock_correct, .Threads = {update_acquire, update_acquire}, .Model = "c11");
