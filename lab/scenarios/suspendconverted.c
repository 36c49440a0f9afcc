/*
 * Suspension in both ways, deterministically: of a running thread, and of a committed wait that is converted. Whatever
 * ends its wait, a suspended thread does not continue before it is resumed; then it does.
 */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/wait.h"

#include "target.h"

static KEVENT events[2];
static PVOID both[2] = {&events[1], &events[0]};
static KQUEUE queue;
static LIST_ENTRY entry;
static int done, held, go;

/* The target is counted by its queue, so a wrong count reveals a wait whose end was taken for that of another. */
static void setup(void)
{
    KeInitializeEvent(&events[0], SynchronizationEvent, FALSE);
    KeInitializeEvent(&events[1], SynchronizationEvent, FALSE);
    KeInitializeQueue(&queue, 1);
    KeInsertQueue(&queue, &entry);
}

static void begin(void)
{
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entry);
    announce();
}

static void end(void)
{
    LabAssert(!__atomic_load_n(&held, __ATOMIC_RELAXED));
    LabAssert(queue.CurrentCount == 1);
    LabAssert(!(__atomic_load_n(&KeGetCurrentThread()->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_ACTIVE));
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

static int is_in_wait(PKTHREAD thread, ULONG state)
{
    ULONG wait = __atomic_load_n(&thread->WaitRegister, __ATOMIC_RELAXED) & (KI_WAIT_ACTIVE | KI_WAIT_STATE_MASK);
    return wait == (KI_WAIT_ACTIVE | state);
}

/* FALSE: its wait had already ended. */
static int suspend_in_wait(PKTHREAD thread)
{
    while (!is_in_wait(thread, WaitCommitted) && !__atomic_load_n(&done, __ATOMIC_RELAXED))
        ;
    KeSuspendThread(thread);
    __atomic_store_n(&held, is_in_wait(thread, WaitSuspended), __ATOMIC_RELAXED);
    return __atomic_load_n(&held, __ATOMIC_RELAXED);
}

static void resume(PKTHREAD thread)
{
    __atomic_store_n(&held, 0, __ATOMIC_RELAXED);
    LabAssert(KeResumeThread(thread) == 1);
}

static void suspender(void)
{
    PKTHREAD thread = find_target();
    suspend_in_wait(thread);
    LabYield();
    resume(thread);
}

static void wait_all(void)
{
    begin();
    LabAssert(KeWaitForMultipleObjects(2, both, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
    end();
}

static void all_is_taken(void)
{
    LabAssert(done && KeReadStateEvent(&events[0]) == 0 && KeReadStateEvent(&events[1]) == 0);
    LabAssert(IsListEmpty(&events[0].Header.WaitListHead) && IsListEmpty(&events[1].Header.WaitListHead));
}

/* Each of the two comes while the wait is suspended, or afterwards. */
static void suspend_and_set(void)
{
    PKTHREAD thread = find_target();
    unsigned now = LabChoose(4);

    suspend_in_wait(thread);
    for (unsigned i = 0; i < 2; i++)
        if (now & 1u << i)
            KeSetEvent(&events[i], IO_NO_INCREMENT, FALSE);
    LabAssert(!__atomic_load_n(&done, __ATOMIC_RELAXED));
    resume(thread);
    for (unsigned i = 0; i < 2; i++)
        if (!(now & 1u << i))
            KeSetEvent(&events[i], IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(suspend_converted_all, .Setup = setup, .Threads = {wait_all, suspend_and_set}, .Finish = all_is_taken,
             .Flags = LAB_PRECISE);

/* They come at any time. */
static void set_both(void)
{
    KeSetEvent(&events[0], IO_NO_INCREMENT, FALSE);
    KeSetEvent(&events[1], IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(suspend_converted_against_set, .Setup = setup, .Threads = {wait_all, suspender, set_both},
             .Finish = all_is_taken);

/* The first one is signaled, the other becomes so while the blocks are being linked again, or afterwards. */
static void suspend_with_one_set(void)
{
    PKTHREAD thread = find_target();

    suspend_in_wait(thread);
    KeSetEvent(&events[0], IO_NO_INCREMENT, FALSE);
    resume(thread);
    __atomic_store_n(&go, 1, __ATOMIC_RELAXED);
}

static void set_other(void)
{
    PKTHREAD thread = find_target();
    while (!is_in_wait(thread, WaitResumeInProgress) && !__atomic_load_n(&go, __ATOMIC_RELAXED))
        ;
    KeSetEvent(&events[1], IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(suspend_converted_resume, .Setup = setup, .Threads = {wait_all, suspend_with_one_set, set_other},
             .Finish = all_is_taken);

/* A deadline that passes meanwhile counts when the thread is resumed, and a postponed one is restored. */
static void delay(void)
{
    LARGE_INTEGER interval = {.QuadPart = -10000};
    begin();
    LabAssert(KeDelayExecutionThread(KernelMode, FALSE, &interval) == STATUS_SUCCESS);
    end();
}

static void it_is_done(void)
{
    LabAssert(done);
}
LAB_SCENARIO(suspend_converted_delay, .Setup = setup, .Threads = {delay, suspender}, .Finish = it_is_done);

/* An alert is kept until then. */
static void wait_for_alert(void)
{
    begin();
    LabAssert(KeWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
    end();
}

static void alerter(void)
{
    KeAlertThreadById(find_target());
}
LAB_SCENARIO(suspend_converted_alert, .Setup = setup, .Threads = {wait_for_alert, suspender, alerter},
             .Finish = it_is_done);

/* A running thread, and one in a wait that is not converted: it stops, and stays where it is. */
static void runner(void)
{
    begin();
    while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
        ;
    end();
}

static void wait_single(void)
{
    begin();
    LabAssert(KeWaitForSingleObject(&events[0], Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    end();
}

static void stop(void)
{
    PKTHREAD thread = find_target();

    LabAssert(KeSuspendThread(thread) == 0);
    while (!is_stopped(thread))
        ;
    __atomic_store_n(&held, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    KeSetEvent(&events[0], IO_NO_INCREMENT, FALSE);
    LabYield();
    resume(thread);
}
LAB_SCENARIO(suspend_runner, .Setup = setup, .Threads = {runner, stop}, .Finish = it_is_done, .Flags = LAB_PRECISE);
LAB_SCENARIO(suspend_single, .Setup = setup, .Threads = {wait_single, stop}, .Finish = it_is_done);

/* It suspends itself, until the other thread resumes it. */
static void suspend_myself(void)
{
    begin();
    __atomic_store_n(&held, 1, __ATOMIC_RELAXED);
    LabAssert(KeSuspendThread(KeGetCurrentThread()) == 0);
    end();
}

static void resume_stopped(void)
{
    PKTHREAD thread = find_target();
    while (!is_stopped(thread) || !__atomic_load_n(&held, __ATOMIC_RELAXED)) /* its state orders nothing */
        ;
    resume(thread);
}
LAB_SCENARIO(suspend_myself, .Setup = setup, .Threads = {suspend_myself, resume_stopped}, .Finish = it_is_done,
             .Flags = LAB_PRECISE);

/* A refused request changes nothing. */
static void suspend_too_often(void)
{
    PKTHREAD thread = KeGetCurrentThread();
    volatile NTSTATUS raised = STATUS_SUCCESS;

    thread->SuspendCount = MAXIMUM_SUSPEND_COUNT;
    __try {
        KeSuspendThread(thread);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        raised = GetExceptionCode();
    }
    LabAssert(raised == STATUS_SUSPEND_COUNT_EXCEEDED && thread->SuspendCount == MAXIMUM_SUSPEND_COUNT);
}
LAB_SCENARIO(suspend_too_often, .Threads = {suspend_too_often});
