/*
 * races.c: a program as users write it. For each primitive two threads share a plain counter.
 *
 *   races         each takes the same lock, or waits for the same object, around its increment: no race
 *   races race    each takes one of its own: a race for every primitive
 *
 * In a race both threads synchronize between lock and increment, by relaxed atomics, so that the detection does not
 * depend on scheduling.
 */
#include <interlock/ex.h>
#include <interlock/win32.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define THREADS 2
#define ROUNDS  50
#define RACES   5 /* a detector may miss a race of two accesses at the same instant */

struct lock {
    EX_PUSH_LOCK push;
    SRWLOCK slim;
    CONDITION_VARIABLE condition;
    BOOL condition_taken;
    CRITICAL_SECTION section;
    FAST_MUTEX fast_mutex;
    ERESOURCE resource;
    KSPIN_LOCK spin;
    KIRQL old_level;
    LONG volatile address;
    HANDLE event, mutex, semaphore, port;
};

static struct lock locks[THREADS];
static BOOL race;
static int arrived;

static void meet(void)
{
    int meeting = __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED) / THREADS;

    while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) / THREADS == meeting)
        sched_yield();
}

static void wait_for(HANDLE object)
{
    WaitForSingleObject(object, INFINITE);
}

static void take_by_condition(struct lock *lock)
{
    AcquireSRWLockExclusive(&lock->slim);
    while (lock->condition_taken)
        SleepConditionVariableSRW(&lock->condition, &lock->slim, INFINITE, 0);
    lock->condition_taken = TRUE;
    ReleaseSRWLockExclusive(&lock->slim);
}

static void give_by_condition(struct lock *lock)
{
    AcquireSRWLockExclusive(&lock->slim);
    lock->condition_taken = FALSE;
    ReleaseSRWLockExclusive(&lock->slim);
    WakeConditionVariable(&lock->condition);
}

static void take_by_address(struct lock *lock)
{
    LONG taken = 1;

    while (InterlockedExchange(&lock->address, 1) != 0)
        WaitOnAddress(&lock->address, &taken, sizeof(taken), INFINITE);
}

static void give_by_address(struct lock *lock)
{
    InterlockedExchange(&lock->address, 0);
    WakeByAddressSingle((void *)&lock->address);
}

static void take_packet(struct lock *lock)
{
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED *overlapped;

    GetQueuedCompletionStatus(lock->port, &bytes, &key, &overlapped, INFINITE);
}

static void take_spin_lock(struct lock *lock)
{
    KIRQL level;

    KeAcquireSpinLock(&lock->spin, &level);
    lock->old_level = level;
}

static void take_push_lock(struct lock *lock)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock->push);
}

static void give_push_lock(struct lock *lock)
{
    ExReleasePushLockExclusive(&lock->push);
    KeLeaveCriticalRegion();
}

static void take_resource(struct lock *lock)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&lock->resource, TRUE);
}

static void give_resource(struct lock *lock)
{
    ExReleaseResourceLite(&lock->resource);
    KeLeaveCriticalRegion();
}

/* One named function for each, to identify a report. */
#define GUARDED(name, take, give)                                                                                      \
    static __attribute__((noinline)) void use_##name(struct lock *lock)                                                \
    {                                                                                                                  \
        static long counter;                                                                                           \
                                                                                                                       \
        take;                                                                                                          \
        if (race)                                                                                                      \
            meet();                                                                                                    \
        counter++;                                                                                                     \
        give;                                                                                                          \
    }

GUARDED(pushlock, take_push_lock(lock), give_push_lock(lock))
GUARDED(srwlock, AcquireSRWLockExclusive(&lock->slim), ReleaseSRWLockExclusive(&lock->slim))
GUARDED(condition_variable, take_by_condition(lock), give_by_condition(lock))
GUARDED(address_wait, take_by_address(lock), give_by_address(lock))
GUARDED(critical_section, EnterCriticalSection(&lock->section), LeaveCriticalSection(&lock->section))
GUARDED(fast_mutex, ExAcquireFastMutex(&lock->fast_mutex), ExReleaseFastMutex(&lock->fast_mutex))
GUARDED(resource, take_resource(lock), give_resource(lock))
GUARDED(spinlock, take_spin_lock(lock), KeReleaseSpinLock(&lock->spin, lock->old_level))
GUARDED(event, wait_for(lock->event), SetEvent(lock->event))
GUARDED(mutex, wait_for(lock->mutex), ReleaseMutex(lock->mutex))
GUARDED(semaphore, wait_for(lock->semaphore), ReleaseSemaphore(lock->semaphore, 1, NULL))
GUARDED(completion_port, take_packet(lock), PostQueuedCompletionStatus(lock->port, 0, 0, NULL))

static const struct {
    const char *name;
    void (*use)(struct lock *lock);
} table[] = {
    {"pushlock", use_pushlock},
    {"srwlock", use_srwlock},
    {"condition_variable", use_condition_variable},
    {"address_wait", use_address_wait},
    {"critical_section", use_critical_section},
    {"fast_mutex", use_fast_mutex},
    {"resource", use_resource},
    {"spinlock", use_spinlock},
    {"event", use_event},
    {"mutex", use_mutex},
    {"semaphore", use_semaphore},
    {"completion_port", use_completion_port},
};

static DWORD WINAPI work(void *argument)
{
    struct lock *lock = argument;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        for (int round = 0; round < (race ? RACES : ROUNDS); round++)
            table[i].use(lock);
    }
    return 0;
}

static void initialize(struct lock *lock)
{
    InitializeCriticalSection(&lock->section);
    ExInitializeFastMutex(&lock->fast_mutex);
    ExInitializeResourceLite(&lock->resource);
    KeInitializeSpinLock(&lock->spin);
    lock->event = CreateEventA(NULL, FALSE, TRUE, NULL);
    lock->mutex = CreateMutexA(NULL, FALSE, NULL);
    lock->semaphore = CreateSemaphoreA(NULL, 1, 1, NULL);
    lock->port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, THREADS);
    PostQueuedCompletionStatus(lock->port, 0, 0, NULL);
}

int main(int argc, char **argv)
{
    HANDLE threads[THREADS];

    race = argc > 1 && strcmp(argv[1], "race") == 0;
    for (int i = 0; i < THREADS; i++)
        initialize(&locks[i]);
    for (int i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, work, &locks[race ? i : 0], 0, NULL);
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        printf("used %s\n", table[i].name);
    return 0;
}
