/* Waits that need not block: polls, first checks, and mutants at their recursion limit. No wait is left linked. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/wait.h"

static KEVENT event, never;
static KMUTANT mutant;
static LARGE_INTEGER now;
static PKTHREAD target;

static void setup(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, TRUE);
    KeInitializeEvent(&never, SynchronizationEvent, FALSE);
    KeInitializeMutant(&mutant, FALSE);
}

static NTSTATUS look(WAIT_TYPE type, PVOID first, PVOID second, BOOLEAN alertable)
{
    PVOID objects[] = {first, second};
    NTSTATUS status = KiWaitForMultipleObjects(2, objects, type, Executive, KernelMode, alertable, &now, NULL);
    LabAssert(!(__atomic_load_n(&KeGetCurrentThread()->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_ACTIVE));
    return status;
}

static NTSTATUS poll(WAIT_TYPE type, PVOID first, PVOID second)
{
    return look(type, first, second, FALSE);
}

/* The thread that owns the mutant, and one that does not. No other thread touches the event before the second poll. */
static void owner(void)
{
    LabAssert(poll(WaitAny, &never, &event) == STATUS_WAIT_1);
    LabAssert(poll(WaitAny, &never, &event) == STATUS_TIMEOUT);
    LabAssert(poll(WaitAll, &never, &mutant) == STATUS_TIMEOUT);
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
    LabAssert(poll(WaitAll, &event, &mutant) == STATUS_WAIT_0);
    LabAssert(poll(WaitAny, &never, &mutant) == STATUS_WAIT_1);
    LabAssert(KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE) == -1);
    LabAssert(KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE) == 0);
}

static void other(void)
{
    NTSTATUS status = poll(WaitAny, &mutant, &never);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_TIMEOUT);
    if (status == STATUS_WAIT_0) {
        LabAssert(mutant.OwnerThread == KeGetCurrentThread());
        KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
    }
}

static void nobody_has_it(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1 && mutant.OwnerThread == NULL);
}
LAB_SCENARIO(wait_poll, .Setup = setup, .Threads = {owner}, .Finish = nobody_has_it);
LAB_SCENARIO(wait_poll_mutant, .Setup = setup, .Threads = {other, other}, .Finish = nobody_has_it);

/* Pending APCs and alerts come before the objects, and leave them unchanged. */
static void alerted_poller(void)
{
    KeAlertThread(KeGetCurrentThread(), KernelMode);
    LabAssert(look(WaitAny, &mutant, &event, TRUE) == STATUS_ALERTED);
    nobody_has_it();
    LabAssert(look(WaitAny, &never, &event, TRUE) == STATUS_WAIT_1);
    LabAssert(look(WaitAny, &never, &event, TRUE) == STATUS_TIMEOUT);
}
LAB_SCENARIO(wait_poll_alertable, .Setup = setup, .Threads = {alerted_poller}, .Finish = nobody_has_it);

/* A mutant that its owner acquires again, with others, is in the owner's list once, and is abandoned once. */
static void take_again_and_end(void)
{
    PVOID objects[] = {&mutant, &event};

    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
    LabAssert(IsListEmpty(&KeGetCurrentThread()->MutantListHead));
    LabExitThread();
}

static void heir(void)
{
    LabAssert(KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}
LAB_SCENARIO(mutant_taken_again, .Setup = setup, .Threads = {take_again_and_end, heir}, .Finish = nobody_has_it);

/* At its recursion limit: refused to its owner, in every kind of wait; for other threads it is just not free. */
static void take_too_often(void)
{
    volatile NTSTATUS raised = STATUS_SUCCESS;

    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    __atomic_store_n(&mutant.Header.SignalState, (LONG)MINLONG, __ATOMIC_RELAXED);
    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
    __try {
        KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        raised = GetExceptionCode();
    }
    LabAssert(raised == STATUS_MUTANT_LIMIT_EXCEEDED);
    LabAssert(poll(WaitAny, &never, &mutant) == STATUS_MUTANT_LIMIT_EXCEEDED);
    LabAssert(poll(WaitAll, &event, &mutant) == STATUS_MUTANT_LIMIT_EXCEEDED);
    LabAssert(KeReadStateEvent(&event) == 1);
    LabAssert(__atomic_load_n(&mutant.Header.SignalState, __ATOMIC_RELAXED) == (LONG)MINLONG);
}

static void look_at_it(void)
{
    while (__atomic_load_n(&target, __ATOMIC_ACQUIRE) == NULL)
        ;
    LabAssert(KiWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, &now) == STATUS_TIMEOUT);
    LabAssert(poll(WaitAny, &never, &mutant) == STATUS_TIMEOUT);
}
LAB_SCENARIO(mutant_limit, .Setup = setup, .Threads = {take_too_often, look_at_it});

/* A delay that an alert ends reports it. */
static void delay(void)
{
    LARGE_INTEGER interval = {.QuadPart = -10000};

    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
    NTSTATUS status = KeDelayExecutionThread(KernelMode, TRUE, &interval);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ALERTED);
    if (status == STATUS_SUCCESS) {
        while (__atomic_load_n(&target, __ATOMIC_ACQUIRE) != NULL)
            ;
        LabAssert(KeTestAlertThread(KernelMode));
    }
}

static void alerter(void)
{
    PKTHREAD thread;

    while ((thread = __atomic_load_n(&target, __ATOMIC_ACQUIRE)) == NULL)
        ;
    KeAlertThread(thread, KernelMode);
    __atomic_store_n(&target, NULL, __ATOMIC_RELEASE);
}
LAB_SCENARIO(alert_delay, .Setup = setup, .Threads = {delay, alerter});

/* An alert that arrives while a wait takes its objects is not lost with it. */
static void alertable_wait_all(void)
{
    PVOID objects[] = {&event, &mutant};

    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, TRUE, NULL, NULL);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_ALERTED);
    LabAssert(KeReadStateEvent(&event) == (status == STATUS_ALERTED));
    while (__atomic_load_n(&target, __ATOMIC_ACQUIRE) != NULL)
        ;
    LabAssert(KeTestAlertThread(KernelMode) == (status == STATUS_WAIT_0));
    if (status == STATUS_WAIT_0)
        KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}
LAB_SCENARIO(alert_wait_all, .Setup = setup, .Threads = {alertable_wait_all, alerter}, .Finish = nobody_has_it);
