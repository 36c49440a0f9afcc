/* How long single operations take: acquisitions under load, wakes, timers, sleeps. */
#include "../tail.h"

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

static EX_PUSH_LOCK push_lock;
static RTL_SRWLOCK srw_lock;
static RTL_CRITICAL_SECTION section;
static FAST_MUTEX fast_mutex;
static ERESOURCE resource;
static KEVENT event;
static HANDLE event_handle, timer_handle;
static KTIMER timer;
static ULONG word;

BENCH_TAIL_WORK(tail_push, KeEnterCriticalRegion();
                ExAcquirePushLockExclusive(&push_lock), ExReleasePushLockExclusive(&push_lock); KeLeaveCriticalRegion())
BENCH_TAIL_WORK(tail_srw, RtlAcquireSRWLockExclusive(&srw_lock), RtlReleaseSRWLockExclusive(&srw_lock))
BENCH_TAIL_WORK(tail_section, RtlEnterCriticalSection(&section), RtlLeaveCriticalSection(&section))
BENCH_TAIL_WORK(tail_fast, ExAcquireFastMutex(&fast_mutex), ExReleaseFastMutex(&fast_mutex))
BENCH_TAIL_WORK(tail_resource, KeEnterCriticalRegion();
                ExAcquireResourceExclusiveLite(&resource, TRUE), ExReleaseResourceLite(&resource);
                KeLeaveCriticalRegion())

static void set_event(unsigned side)
{
    (void)side;
    KeSetEvent(&event, EVENT_INCREMENT, FALSE);
}

static void await_event(unsigned side)
{
    (void)side;
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
}

static void set_handle(unsigned side)
{
    (void)side;
    NtSetEvent(event_handle, NULL);
}

static void await_handle(unsigned side)
{
    (void)side;
    NtWaitForSingleObject(event_handle, FALSE, NULL);
}

static void wake_address(unsigned side)
{
    (void)side;
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle(&word);
}

static void await_address(unsigned side)
{
    ULONG none = 0;

    (void)side;
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&word, &none, sizeof(none), NULL);
    __atomic_store_n(&word, 0, __ATOMIC_RELAXED);
}

static const LARGE_INTEGER millisecond = {.QuadPart = -10000};

static void await_timer(void)
{
    KeSetTimer(&timer, millisecond, NULL);
    KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL);
}

static void await_timer_handle(void)
{
    LARGE_INTEGER due = millisecond;

    NtSetTimer(timer_handle, &due, NULL, NULL, FALSE, 0, NULL);
    NtWaitForSingleObject(timer_handle, FALSE, NULL);
}

static void await_timeout(void)
{
    LARGE_INTEGER due = millisecond;

    NtWaitForSingleObject(event_handle, FALSE, &due);
}

static void delay(void)
{
    LARGE_INTEGER due = millisecond;

    NtDelayExecution(FALSE, &due);
}

BENCH_CONTENDERS(interlock_tails, "")
{
    RtlInitializeCriticalSection(&section);
    ExInitializeFastMutex(&fast_mutex);
    ExInitializeResourceLite(&resource);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInitializeTimer(&timer);
    NtCreateEvent(&event_handle, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    NtCreateTimer(&timer_handle, TIMER_ALL_ACCESS, NULL, SynchronizationTimer);
    bench_add_tail_lock("tail-lock", BENCH_INTERLOCK, "pushlock", tail_push);
    bench_add_tail_lock("tail-lock", BENCH_INTERLOCK, "SRW lock", tail_srw);
    bench_add_tail_lock("tail-lock", BENCH_INTERLOCK, "critical section", tail_section);
    bench_add_tail_lock("tail-lock", BENCH_INTERLOCK, "fast mutex", tail_fast);
    bench_add_tail_lock("tail-lock", BENCH_INTERLOCK, "ERESOURCE", tail_resource);
    bench_add_tail_wake("tail-wake", BENCH_INTERLOCK, "KEVENT", set_event, await_event);
    bench_add_tail_wake("tail-wake", BENCH_INTERLOCK, "event by handle", set_handle, await_handle);
    bench_add_tail_wake("tail-wake", BENCH_INTERLOCK, "RtlWaitOnAddress", wake_address, await_address);
    bench_add_tail_sleep("tail-timer", BENCH_INTERLOCK, "KTIMER", await_timer);
    bench_add_tail_sleep("tail-timer", BENCH_INTERLOCK, "timer by handle", await_timer_handle);
    bench_add_tail_sleep("tail-timer", BENCH_INTERLOCK, "wait with a timeout", await_timeout);
    bench_add_tail_sleep("tail-sleep", BENCH_INTERLOCK, "NtDelayExecution (Sleep)", delay);
}
