/* What each operation costs when nobody else wants the object, beside the floor that the processor sets. */
#include "harness.h"

#include <pthread.h>
#include <semaphore.h>

#include <interlock/ke.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#define MANY 64

static ULONG word;
static KEVENT event, notification;
static KEVENT many[MANY];
static PVOID objects[MANY];
static KWAIT_BLOCK blocks[MANY];
static KMUTANT mutant;
static KMUTEX mutex;
static KSEMAPHORE semaphore;
static KSPIN_LOCK spin_lock;
static KQUEUE queue;
static LIST_ENTRY packet;
static KTIMER timer;
static pthread_mutex_t host_mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t host_semaphore;
static RTL_SRWLOCK srw_lock;
static RTL_CONDITION_VARIABLE variable;
static RTL_CRITICAL_SECTION section, entered;
static RTL_RESOURCE resource;
static RTL_BARRIER barrier;
static RTL_RUN_ONCE done = {(PVOID)(ULONG_PTR)2};
static VOID (*volatile acquire_srw)(PRTL_SRWLOCK) = RtlAcquireSRWLockExclusive;
static VOID (*volatile release_srw)(PRTL_SRWLOCK) = RtlReleaseSRWLockExclusive;
static HANDLE self;

static void take_word(void)
{
    ULONG free_word = 0;

    __atomic_compare_exchange_n(&word, &free_word, 1, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static NTSTATUS wait_for(PVOID object)
{
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL);
}

/* Three states, as in the literature: 0 unsignaled, 1 signaled, 2 somebody sleeps. Here nobody ever does. */
static void futex_set_and_take(void)
{
    ULONG signaled = 1;

    __atomic_exchange_n(&word, 1, __ATOMIC_RELEASE);
    __atomic_compare_exchange_n(&word, &signaled, 0, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

BENCH_LOOP(run_nothing, bench_keep(round))
BENCH_LOOP(run_store, take_word(); __atomic_store_n(&word, 0, __ATOMIC_RELEASE))
BENCH_LOOP(run_rmw, take_word(); __atomic_exchange_n(&word, 0, __ATOMIC_RELEASE))
BENCH_LOOP(run_futex, futex_set_and_take())
BENCH_LOOP(run_host_mutex, pthread_mutex_lock(&host_mutex); pthread_mutex_unlock(&host_mutex))
BENCH_LOOP(run_host_semaphore, sem_post(&host_semaphore); sem_wait(&host_semaphore))

BENCH_LOOP(run_set, KeSetEvent(&notification, 0, FALSE))
BENCH_LOOP(run_set_reset, KeSetEvent(&event, 0, FALSE); KeResetEvent(&event))
BENCH_LOOP(run_wait, wait_for(&notification))
BENCH_LOOP(run_set_wait, KeSetEvent(&event, 0, FALSE); wait_for(&event))
BENCH_LOOP(run_semaphore, KeReleaseSemaphore(&semaphore, 0, 1, FALSE); wait_for(&semaphore))
BENCH_LOOP(run_mutant, wait_for(&mutant); KeReleaseMutant(&mutant, 0, FALSE, FALSE))
BENCH_LOOP(run_mutex, wait_for(&mutex); KeReleaseMutex(&mutex, FALSE))
BENCH_LOOP(run_raise_apc, KIRQL old; KeRaiseIrql(APC_LEVEL, &old); KeLowerIrql(old))
BENCH_LOOP(run_raise_dispatch, KIRQL old; KeRaiseIrql(DISPATCH_LEVEL, &old); KeLowerIrql(old))
BENCH_LOOP(run_spin_lock, KIRQL old; KeAcquireSpinLock(&spin_lock, &old); KeReleaseSpinLock(&spin_lock, old))
BENCH_LOOP(run_at_dispatch, KeAcquireSpinLockAtDpcLevel(&spin_lock); KeReleaseSpinLockFromDpcLevel(&spin_lock))
BENCH_LOOP(run_queue, KeInsertQueue(&queue, &packet); KeRemoveQueue(&queue, KernelMode, NULL))
BENCH_LOOP(run_timer, LARGE_INTEGER due; due.QuadPart = -36000000000LL; KeSetTimer(&timer, due, NULL);
           KeCancelTimer(&timer))

BENCH_LOOP(run_srw, RtlAcquireSRWLockExclusive(&srw_lock); RtlReleaseSRWLockExclusive(&srw_lock))
BENCH_LOOP(run_srw_shared, RtlAcquireSRWLockShared(&srw_lock); RtlReleaseSRWLockShared(&srw_lock))
BENCH_LOOP(run_srw_called, acquire_srw(&srw_lock); release_srw(&srw_lock))
BENCH_LOOP(run_section, RtlEnterCriticalSection(&section); RtlLeaveCriticalSection(&section))
BENCH_LOOP(run_try_section, RtlTryEnterCriticalSection(&section); RtlLeaveCriticalSection(&section))
BENCH_LOOP(run_section_again, RtlEnterCriticalSection(&entered); RtlLeaveCriticalSection(&entered))
BENCH_LOOP(run_resource, RtlAcquireResourceShared(&resource, TRUE); RtlReleaseResource(&resource))
BENCH_LOOP(run_barrier, RtlBarrier(&barrier, 0))
BENCH_LOOP(run_once, RtlRunOnceBeginInitialize(&done, 0, NULL))
BENCH_LOOP(run_wake_address, RtlWakeAddressSingle(&word))
BENCH_LOOP(run_wake_variable, RtlWakeConditionVariable(&variable))
BENCH_LOOP(run_alert, NtAlertThreadByThreadId(self); NtWaitForAlertByThreadId(NULL, NULL))
BENCH_LOOP(run_changed, ULONG other = 1; RtlWaitOnAddress(&word, &other, sizeof(other), NULL))

/* The last of the objects is signaled and stays so. */
static uint64_t run_any(unsigned long count, void *argument)
{
    ULONG among = *(ULONG *)argument;
    uint64_t start = bench_nanoseconds();

    objects[among - 1] = &notification;
    for (unsigned long round = 0; round < count; round++)
        KeWaitForMultipleObjects(among, objects, WaitAny, Executive, KernelMode, FALSE, NULL, blocks);
    start = bench_nanoseconds() - start;
    objects[among - 1] = &many[among - 1];
    return start;
}

static uint64_t run_spin_lock_at_dispatch(unsigned long count, void *argument)
{
    KIRQL old = KeRaiseIrqlToDpcLevel();
    uint64_t took = run_at_dispatch(count, argument);

    KeLowerIrql(old);
    return took;
}

static ULONG of_2 = 2, of_8 = 8, of_64 = 64;

static const bench_row rows[] = {
    {"an empty loop", run_nothing, NULL, 0},
    {"floor: compare-exchange, store", run_store, NULL, 0},
    {"floor: compare-exchange, exchange", run_rmw, NULL, 0},
    {"peer: pthread mutex pair", run_host_mutex, NULL, 0},
    {"peer: sem_post, sem_wait", run_host_semaphore, NULL, 0},
    {"peer: futex event set, satisfied wait", run_futex, NULL, 0},
    {"KeSetEvent, no waiters", run_set, NULL, 0},
    {"KeSetEvent, KeResetEvent", run_set_reset, NULL, 0},
    {"KeWaitForSingleObject, satisfied", run_wait, NULL, 0},
    {"KeSetEvent, satisfied KeWaitForSingleObject", run_set_wait, NULL, 18},
    {"any of 2, the last signaled", run_any, &of_2, 25},
    {"any of 8, the last signaled", run_any, &of_8, 30},
    {"any of 64, the last signaled", run_any, &of_64, 70},
    {"semaphore: release, wait", run_semaphore, NULL, 0},
    {"mutant: wait, release", run_mutant, NULL, 0},
    {"mutex: wait, release", run_mutex, NULL, 0},
    {"raise to APC_LEVEL, lower", run_raise_apc, NULL, 0},
    {"raise to DISPATCH_LEVEL, lower", run_raise_dispatch, NULL, 0},
    {"KeAcquireSpinLock, KeReleaseSpinLock", run_spin_lock, NULL, 25},
    {"spinlock pair at DISPATCH_LEVEL", run_spin_lock_at_dispatch, NULL, 10},
    {"KQUEUE: insert, remove, one thread", run_queue, NULL, 0},
    {"timer: set, cancel", run_timer, NULL, 50},
    {"SRW lock: acquire, release exclusively", run_srw, NULL, 0},
    {"SRW lock: acquire, release shared", run_srw_shared, NULL, 0},
    {"SRW lock: the exported functions", run_srw_called, NULL, 0},
    {"critical section: enter, leave", run_section, NULL, 16},
    {"critical section: try, leave", run_try_section, NULL, 0},
    {"critical section: enter again, leave", run_section_again, NULL, 0},
    {"RTL_RESOURCE: acquire shared, release", run_resource, NULL, 0},
    {"barrier of one", run_barrier, NULL, 0},
    {"run-once, done", run_once, NULL, 0},
    {"RtlWakeAddressSingle, no waiters", run_wake_address, NULL, 0},
    {"RtlWakeConditionVariable, no sleepers", run_wake_variable, NULL, 0},
    {"RtlWaitOnAddress, the value differs", run_changed, NULL, 0},
    {"alert by id, wait for it", run_alert, NULL, 0},
};

static void initialize(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        KeInitializeEvent(&many[i], SynchronizationEvent, FALSE);
        objects[i] = &many[i];
    }
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInitializeEvent(&notification, NotificationEvent, TRUE);
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeMutex(&mutex, 0);
    KeInitializeSemaphore(&semaphore, 0, MAXLONG);
    KeInitializeSpinLock(&spin_lock);
    KeInitializeQueue(&queue, 1);
    KeInitializeTimer(&timer);
    sem_init(&host_semaphore, 0, 0);
    RtlInitializeCriticalSection(&section);
    RtlInitializeCriticalSection(&entered);
    RtlEnterCriticalSection(&entered);
    RtlInitializeResource(&resource);
    RtlInitBarrier(&barrier, 1, 0);
    self = PsGetCurrentThreadId();
}

int main(int argc, char **argv)
{
    bench_begin();
    initialize();
    if (bench_counts(argc, argv, rows, ARRAYSIZE(rows)))
        return 0;
    bench_bind(0);
    bench_table("One thread, nobody else wants the object", rows, ARRAYSIZE(rows));
    KeRundownQueue(&queue);
    return 0;
}
