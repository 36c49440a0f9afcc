/* Waits of every kind that never end, a periodic timer, an open completion port. */
#include "../idle.h"

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "../bench.h"

#define MANY 64

static KEVENT never, many[MANY];
static HANDLE never_handle, port;
static EX_PUSH_LOCK push_lock;
static RTL_SRWLOCK srw_lock, condition_lock;
static RTL_CRITICAL_SECTION section;
static RTL_CONDITION_VARIABLE condition;
static ULONG word, opened;
static KTIMER timer;
static KDPC dpc;
static unsigned fired;

static void wait_for_event(void)
{
    KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
}

static void wait_by_handle(void)
{
    LARGE_INTEGER hour = {.QuadPart = -36000000000LL};

    NtWaitForSingleObject(never_handle, TRUE, &hour);
}

static void wait_for_many(void)
{
    PVOID objects[MANY];
    KWAIT_BLOCK blocks[MANY];

    for (unsigned i = 0; i < MANY; i++)
        objects[i] = &many[i];
    KeWaitForMultipleObjects(MANY, objects, WaitAny, Executive, KernelMode, FALSE, NULL, blocks);
}

static void wait_on_address(void)
{
    ULONG none = 0;

    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&word, &none, sizeof(none), NULL);
}

static void wait_for_push_lock(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&push_lock);
    ExReleasePushLockShared(&push_lock);
    KeLeaveCriticalRegion();
}

static void wait_for_srw_lock(void)
{
    RtlAcquireSRWLockExclusive(&srw_lock);
    RtlReleaseSRWLockExclusive(&srw_lock);
}

static void wait_for_section(void)
{
    RtlEnterCriticalSection(&section);
    RtlLeaveCriticalSection(&section);
}

static void wait_for_condition(void)
{
    RtlAcquireSRWLockExclusive(&condition_lock);
    while (!opened)
        RtlSleepConditionVariableSRW(&condition, &condition_lock, NULL, 0);
    RtlReleaseSRWLockExclusive(&condition_lock);
}

static void wait_at_port(void)
{
    PVOID key, context;
    IO_STATUS_BLOCK status;

    NtRemoveIoCompletion(port, &key, &context, &status, NULL);
}

static void (*const kinds[])(void) = {
    wait_for_event,    wait_by_handle,   wait_for_many,      wait_on_address, wait_for_push_lock,
    wait_for_srw_lock, wait_for_section, wait_for_condition, wait_at_port,
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void wait_somehow(unsigned number)
{
    idle_arrive();
    kinds[number % KINDS]();
}

static VOID count_fired(PKDPC object, PVOID context, PVOID first, PVOID second)
{
    (void)object;
    (void)context;
    (void)first;
    (void)second;
    __atomic_fetch_add(&fired, 1, __ATOMIC_RELAXED);
}

static unsigned expirations(void)
{
    return __atomic_load_n(&fired, __ATOMIC_RELAXED);
}

static void begin(void)
{
    LARGE_INTEGER due = {.QuadPart = -10000LL * IDLE_PERIOD};

    KeInitializeEvent(&never, NotificationEvent, FALSE);
    for (unsigned i = 0; i < MANY; i++)
        KeInitializeEvent(&many[i], NotificationEvent, FALSE);
    NtCreateEvent(&never_handle, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 0);
    RtlInitializeCriticalSection(&section);
    word = opened = fired = 0;
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&push_lock);
    RtlAcquireSRWLockExclusive(&srw_lock);
    RtlEnterCriticalSection(&section);
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    KeInitializeDpc(&dpc, count_fired, NULL);
    KeSetTimerEx(&timer, due, IDLE_PERIOD, &dpc);
}

static void end(void)
{
    KeCancelTimer(&timer);
    KeSetEvent(&never, 0, FALSE);
    KeSetEvent(&many[0], 0, FALSE);
    NtSetEvent(never_handle, NULL);
    NtClose(port);
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    RtlWakeAddressAll(&word);
    ExReleasePushLockExclusive(&push_lock);
    KeLeaveCriticalRegion();
    RtlReleaseSRWLockExclusive(&srw_lock);
    RtlLeaveCriticalSection(&section);
    RtlAcquireSRWLockExclusive(&condition_lock);
    opened = TRUE;
    RtlReleaseSRWLockExclusive(&condition_lock);
    RtlWakeAllConditionVariable(&condition);
    idle_end();
    RtlDeleteCriticalSection(&section);
    NtClose(never_handle);
}

idle_counts idle_interlock(void)
{
    begin();
    idle_start(wait_somehow);
    idle_counts counts = idle_watch(expirations);
    end();
    return counts;
}

/* Per expiration: the host has to wake a thread for each. */
static double wakeups(const bench_row *row)
{
    idle_counts counts = idle_interlock();

    (void)row;
    return counts.expirations == 0 ? 0 : (double)(counts.of_waiters + counts.of_others) / counts.expirations;
}

BENCH_CONTENDERS(interlock_idle, "")
{
    bench_add_value("idle", BENCH_INTERLOCK, "waits of every kind, KTIMER, completion port", 1, wakeups);
}
