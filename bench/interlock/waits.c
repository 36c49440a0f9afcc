/* Waiting: events, semaphores, many objects at once, addresses. By pointer and by handle. */
#include "../bench.h"

#include <interlock/nt.h>
#include <interlock/ob.h>
#include <interlock/rtl.h>

#include "../exchange.h"

#define MANY 64

static KEVENT event, events[2], signaled[MANY], unsignaled[2][MANY];
static HANDLE event_handle, event_handles[2], signaled_handles[MANY], unsignaled_handles[MANY];
static PVOID any_objects[MANY + 1], all_objects[MANY], exchange_objects[2][MANY];
static HANDLE any_handles[MANY + 1], threads[2];
static KWAIT_BLOCK blocks[MANY];
static KSEMAPHORE semaphore, semaphores[2];
static HANDLE semaphore_handle;
static KEVENT_PAIR pair;
static ULONG word, flags[2][32];

static inline void wait_for(PVOID object)
{
    KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL);
}

BENCH_LOOP(run_set_wait, KeSetEvent(&event, 0, FALSE); wait_for(&event))
BENCH_LOOP(run_set_reset, KeSetEvent(&event, 0, FALSE); KeResetEvent(&event))
BENCH_LOOP(run_nt_set_wait, NtSetEvent(event_handle, NULL); NtWaitForSingleObject(event_handle, FALSE, NULL))
BENCH_LOOP(run_signal_and_wait, NtSignalAndWaitForSingleObject(event_handle, event_handle, FALSE, NULL))
BENCH_LOOP(run_semaphore, KeReleaseSemaphore(&semaphore, 0, 1, FALSE); wait_for(&semaphore))
BENCH_LOOP(run_nt_semaphore, NtReleaseSemaphore(semaphore_handle, 1, NULL);
           NtWaitForSingleObject(semaphore_handle, FALSE, NULL))
BENCH_LOOP(run_wake_address, RtlWakeAddressSingle(&word))
BENCH_LOOP(run_alert, NtAlertThreadByThreadId(PsGetCurrentThreadId()); NtWaitForAlertByThreadId(NULL, NULL))

/* The unsignaled objects are followed by a signaled one. */
BENCH_LOOP(run_any, KeWaitForMultipleObjects(row->number, any_objects + MANY + 1 - row->number, WaitAny, Executive,
                                             KernelMode, FALSE, NULL, blocks))
BENCH_LOOP(run_nt_any,
           NtWaitForMultipleObjects(row->number, any_handles + MANY + 1 - row->number, WaitAny, FALSE, NULL))
BENCH_LOOP(run_all,
           KeWaitForMultipleObjects(row->number, all_objects, WaitAll, Executive, KernelMode, FALSE, NULL, blocks))
BENCH_LOOP(run_nt_all, NtWaitForMultipleObjects(row->number, signaled_handles, WaitAll, FALSE, NULL))

static void look_up(void)
{
    PVOID object;

    if (NT_SUCCESS(
            ObReferenceObjectByHandle(event_handle, EVENT_MODIFY_STATE, *ExEventObjectType, UserMode, &object, NULL)))
        ObfDereferenceObject(object);
}

BENCH_LOOP(run_handle, look_up())

static void event_signal(unsigned side)
{
    KeSetEvent(&events[side], EVENT_INCREMENT, FALSE);
}

static void event_await(unsigned side)
{
    wait_for(&events[side]);
}

static void nt_event_signal(unsigned side)
{
    NtSetEvent(event_handles[side], NULL);
}

static void nt_event_await(unsigned side)
{
    NtWaitForSingleObject(event_handles[side], FALSE, NULL);
}

static void semaphore_signal(unsigned side)
{
    KeReleaseSemaphore(&semaphores[side], SEMAPHORE_INCREMENT, 1, FALSE);
}

static void semaphore_await(unsigned side)
{
    wait_for(&semaphores[side]);
}

static void pair_signal(unsigned side)
{
    if (side == 0)
        KeSetLowEventPair(&pair, EVENT_INCREMENT, FALSE);
    else
        KeSetHighEventPair(&pair, EVENT_INCREMENT, FALSE);
}

static void pair_await(unsigned side)
{
    if (side == 0)
        KeWaitForLowEventPair(&pair, KernelMode, FALSE, NULL);
    else
        KeWaitForHighEventPair(&pair, KernelMode, FALSE, NULL);
}

/* The waiter publishes its id. Until then the id is missing, or belongs to the ended thread of an earlier sample. */
static void alert_signal(unsigned side)
{
    HANDLE thread;

    while ((thread = __atomic_load_n(&threads[side], __ATOMIC_ACQUIRE)) == NULL ||
           !NT_SUCCESS(NtAlertThreadByThreadId(thread)))
        bench_yield();
}

static void alert_await(unsigned side)
{
    __atomic_store_n(&threads[side], PsGetCurrentThreadId(), __ATOMIC_RELEASE);
    NtWaitForAlertByThreadId(NULL, NULL);
}

static void address_signal(unsigned side)
{
    __atomic_store_n(&flags[side][0], 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle(&flags[side][0]);
}

static void address_await(unsigned side)
{
    ULONG none = 0;

    while (__atomic_load_n(&flags[side][0], __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&flags[side][0], &none, sizeof(none), NULL);
    __atomic_store_n(&flags[side][0], 0, __ATOMIC_RELAXED);
}

BENCH_CONDITION(condition, RTL_SRWLOCK lock; RTL_CONDITION_VARIABLE variable, RtlAcquireSRWLockExclusive(&letter->lock),
                                             RtlReleaseSRWLockExclusive(&letter->lock),
                                             RtlSleepConditionVariableSRW(&letter->variable, &letter->lock, NULL, 0),
                                             RtlWakeConditionVariable(&letter->variable))

#define ANY_EXCHANGE(count)                                                                                            \
    static void any_signal_##count(unsigned side)                                                                      \
    {                                                                                                                  \
        KeSetEvent(&unsignaled[side][count - 1], EVENT_INCREMENT, FALSE);                                              \
    }                                                                                                                  \
    static void any_await_##count(unsigned side)                                                                       \
    {                                                                                                                  \
        KWAIT_BLOCK own[count];                                                                                        \
                                                                                                                       \
        KeWaitForMultipleObjects(count, exchange_objects[side], WaitAny, Executive, KernelMode, FALSE, NULL, own);     \
    }

ANY_EXCHANGE(2)
ANY_EXCHANGE(8)
ANY_EXCHANGE(64)

BENCH_SIZE(size_event, sizeof(KEVENT))
BENCH_SIZE(size_semaphore, sizeof(KSEMAPHORE))

static void initialize_many(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        KeInitializeEvent(&signaled[i], NotificationEvent, TRUE);
        NtCreateEvent(&signaled_handles[i], EVENT_ALL_ACCESS, NULL, NotificationEvent, TRUE);
        NtCreateEvent(&unsignaled_handles[i], EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
        all_objects[i] = &signaled[i];
        for (unsigned side = 0; side < 2; side++) {
            KeInitializeEvent(&unsignaled[side][i], SynchronizationEvent, FALSE);
            exchange_objects[side][i] = &unsignaled[side][i];
        }
        any_objects[i] = &unsignaled[0][i];
        any_handles[i] = unsignaled_handles[i];
    }
    any_objects[MANY] = &signaled[0];
    any_handles[MANY] = signaled_handles[0];
}

static void initialize(void)
{
    initialize_many();
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&semaphore, 0, MAXLONG);
    KeInitializeEventPair(&pair);
    NtCreateEvent(&event_handle, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    NtCreateSemaphore(&semaphore_handle, SEMAPHORE_ALL_ACCESS, NULL, 0, MAXLONG);
    for (unsigned side = 0; side < 2; side++) {
        KeInitializeEvent(&events[side], SynchronizationEvent, FALSE);
        KeInitializeSemaphore(&semaphores[side], 0, MAXLONG);
        NtCreateEvent(&event_handles[side], EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    }
}

BENCH_CONTENDERS(interlock_waits, "")
{
    initialize();
    bench_add_loop("event", BENCH_INTERLOCK, "KeSetEvent, KeWaitForSingleObject", 18, run_set_wait);
    bench_add_loop("reset", BENCH_INTERLOCK, "KeSetEvent, KeResetEvent", 0, run_set_reset);
    bench_add_loop("event", BENCH_INTERLOCK, "by handle", 40, run_nt_set_wait);
    bench_add_loop("event", BENCH_INTERLOCK, "by handle, one call", 0, run_signal_and_wait);
    bench_add_loop("semaphore", BENCH_INTERLOCK, "KSEMAPHORE", 0, run_semaphore);
    bench_add_loop("semaphore", BENCH_INTERLOCK, "by handle", 0, run_nt_semaphore);
    bench_add_loop("any", BENCH_INTERLOCK, "KeWaitForMultipleObjects", 0, run_any);
    bench_add_loop("any", BENCH_INTERLOCK, "by handle", 0, run_nt_any);
    bench_no_target();
    bench_add_loop("all", BENCH_INTERLOCK, "KeWaitForMultipleObjects", 0, run_all);
    bench_add_loop("all", BENCH_INTERLOCK, "by handle", 0, run_nt_all);
    bench_add_loop("wake-nobody", BENCH_INTERLOCK, "RtlWakeAddressSingle", 0, run_wake_address);
    bench_add_loop("handle", BENCH_INTERLOCK, "ObReferenceObjectByHandle, ObDereferenceObject", 0, run_handle);
    bench_add_loop("alert", BENCH_INTERLOCK, "NtAlertThreadByThreadId", 0, run_alert);
    bench_add_exchange("event", BENCH_INTERLOCK, "KEVENT", event_signal, event_await);
    bench_add_exchange("event", BENCH_INTERLOCK, "event by handle", nt_event_signal, nt_event_await);
    bench_no_target();
    bench_add_exchange("event", BENCH_INTERLOCK, "KSEMAPHORE", semaphore_signal, semaphore_await);
    bench_add_exchange("event", BENCH_INTERLOCK, "event pair", pair_signal, pair_await);
    bench_no_target();
    bench_add_exchange("condition", BENCH_INTERLOCK, "condition variable, SRW lock", condition_signal, condition_await);
    bench_add_exchange("address", BENCH_INTERLOCK, "RtlWaitOnAddress", address_signal, address_await);
    bench_add_exchange("address", BENCH_INTERLOCK, "alert by thread id", alert_signal, alert_await);
    bench_no_target();
    bench_add_exchange("any-2", BENCH_INTERLOCK, "KeWaitForMultipleObjects", any_signal_2, any_await_2);
    bench_add_exchange("any-8", BENCH_INTERLOCK, "KeWaitForMultipleObjects", any_signal_8, any_await_8);
    bench_add_exchange("any-64", BENCH_INTERLOCK, "KeWaitForMultipleObjects", any_signal_64, any_await_64);
    bench_add_value("bytes-event", BENCH_INTERLOCK, "KEVENT", 0, size_event);
    bench_add_value("bytes-event", BENCH_INTERLOCK, "KSEMAPHORE", 0, size_semaphore);
}
