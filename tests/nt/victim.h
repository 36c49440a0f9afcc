/* victim.h: threads that are ended while they do something. */
#ifndef INTERLOCK_TESTS_VICTIM_H
#define INTERLOCK_TESTS_VICTIM_H

#include "support.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <pthread.h>
#include <unistd.h>

#include "ke/wait.h"
#include "ps/psp.h"

#define EXIT_CODE ((NTSTATUS)0x1234567)

/* One thread that does something until it is ended, and what it may use for that. */
struct victim {
    HANDLE handle;
    PETHREAD thread;
    NTSTATUS (*run)(struct victim *victim);
    volatile ULONG ready;
    volatile ULONG release;
    volatile ULONG past;
    KEVENT event, other;
    KSEMAPHORE semaphore;
    KMUTANT mutant, second;
    KMUTEX mutex;
    KQUEUE queue;
    KEVENT_PAIR pair;
    HANDLE event_handle;
    volatile ULONG word;
    int pipe[2];
};

static inline NTSTATUS start(PVOID context)
{
    struct victim *victim = context;

    return victim->run(victim);
}

static inline void tell_ready(struct victim *victim)
{
    __atomic_store_n(&victim->ready, 1, __ATOMIC_RELEASE);
}

static inline void await(volatile ULONG *word)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
        HalDispatch.Yield();
}

static inline void create_victim(struct victim *victim, NTSTATUS (*run)(struct victim *), ULONG flags)
{
    memset(victim, 0, sizeof(*victim));
    victim->run = run;
    KeInitializeEvent(&victim->event, SynchronizationEvent, FALSE);
    KeInitializeEvent(&victim->other, NotificationEvent, FALSE);
    KeInitializeSemaphore(&victim->semaphore, 0, 10);
    KeInitializeMutant(&victim->mutant, FALSE);
    KeInitializeMutant(&victim->second, FALSE);
    KeInitializeMutex(&victim->mutex, 0);
    KeInitializeQueue(&victim->queue, 0);
    KeInitializeEventPair(&victim->pair);
    assert_int_equal(NtCreateThreadEx(&victim->handle, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), start, victim, flags,
                                      0, 0, 0, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(victim->handle, 0, *PsThreadType, KernelMode, (PVOID *)&victim->thread,
                                               NULL),
                     STATUS_SUCCESS);
}

static inline NTSTATUS exit_status_of(struct victim *victim)
{
    THREAD_BASIC_INFORMATION basic;

    assert_int_equal(NtQueryInformationThread(victim->handle, ThreadBasicInformation, &basic, sizeof(basic), NULL), 0);
    return basic.ExitStatus;
}

static inline void expect_end(struct victim *victim, NTSTATUS status)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    assert_int_equal(KeWaitForSingleObject(&victim->thread->Tcb, Executive, KernelMode, FALSE, &timeout), 0);
    assert_int_equal(exit_status_of(victim), status);
    assert_int_equal(__atomic_load_n(&victim->past, __ATOMIC_ACQUIRE), 0);
}

static inline void forget_victim(struct victim *victim)
{
    ObDereferenceObject(victim->thread);
    assert_int_equal(ObCloseHandle(victim->handle, UserMode), STATUS_SUCCESS);
}

static inline void await_waiting(struct victim *victim)
{
    while (__atomic_load_n(&victim->thread->Tcb.State, __ATOMIC_RELAXED) != Waiting)
        HalDispatch.Yield();
}

/* The ways to wait. Each returns only if its wait does. */

static inline NTSTATUS wait_any(struct victim *victim, KPROCESSOR_MODE mode, BOOLEAN alertable)
{
    PVOID objects[] = {&victim->event, &victim->semaphore, &victim->other};

    tell_ready(victim);
    KeWaitForMultipleObjects(3, objects, WaitAny, Executive, mode, alertable, NULL, NULL);
    victim->past = 1;
    return 0;
}

static inline NTSTATUS wait_single_kernel(struct victim *victim)
{
    tell_ready(victim);
    KeWaitForSingleObject(&victim->event, Executive, KernelMode, FALSE, NULL);
    victim->past = 1;
    return 0;
}

static inline NTSTATUS wait_single_user(struct victim *victim)
{
    tell_ready(victim);
    KeWaitForSingleObject(&victim->event, UserRequest, UserMode, FALSE, NULL);
    victim->past = 1;
    return 0;
}

static inline NTSTATUS wait_any_kernel(struct victim *victim)
{
    return wait_any(victim, KernelMode, FALSE);
}

static inline NTSTATUS wait_all(struct victim *victim)
{
    PVOID objects[] = {&victim->event, &victim->semaphore, &victim->other};

    tell_ready(victim);
    KeWaitForMultipleObjects(3, objects, WaitAll, Executive, UserMode, FALSE, NULL, NULL);
    victim->past = 1;
    return 0;
}

static inline NTSTATUS wait_delay(struct victim *victim)
{
    LARGE_INTEGER interval = {.QuadPart = -36000000000};

    tell_ready(victim);
    KeDelayExecutionThread(UserMode, FALSE, &interval);
    victim->past = 1;
    return 0;
}

static inline NTSTATUS wait_queue(struct victim *victim)
{
    tell_ready(victim);
    KeRemoveQueue(&victim->queue, UserMode, NULL);
    victim->past = 1;
    return 0;
}

static inline int watch(void **state)
{
    (void)state;
    watchdog_start(100);
    return 0;
}

static inline int unwatch(void **state)
{
    (void)state;
    watchdog_stop();
    return 0;
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, watch, unwatch)

#endif
