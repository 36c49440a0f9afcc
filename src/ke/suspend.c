/*
 * suspend.c: suspension.
 *
 * A thread is suspended by its SchedulerApc, a normal kernel APC that waits for SuspendEvent: so critical regions,
 * guarded regions and APC_LEVEL delay a suspension. The host interrupts a running thread so that it takes the APC at
 * once. A committed wait without an active WaitAny block is converted instead (lightweight suspend): its blocks are
 * unlinked, it has no deadline, and the resume restores both.
 *
 * A thread that blocks the host's signal, or cannot receive it for another reason, still takes the APC inside waits,
 * when it calls in, and when it unblocks the signal. If it does none of that in time, the suspension is withdrawn and
 * reported as failed. Withdrawing it and taking the APC exclude each other: both remove it from the thread's list.
 *
 * SuspendCount changes under SuspendLock. SuspendEvent is signaled exactly while SuspendCount is 0; a lightweight
 * suspension leaves it alone.
 */
#include "../hal/context.h"
#include "park.h"
#include "wait.h"

#define KI_TIME_BETWEEN_CHECKS 10000ULL       /* 1 ms */
#define KI_TIME_TO_TAKE_SUSPENSION 5000000ULL /* half a second: the C library briefly blocks signals, too */

static VOID KiSchedulerApcKernelRoutine(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext,
                                        PVOID *SystemArgument1, PVOID *SystemArgument2)
{
    UNREFERENCED_PARAMETER(Apc);
    UNREFERENCED_PARAMETER(NormalRoutine);
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
}

static VOID KiSchedulerApc(PVOID NormalContext, PVOID SystemArgument1, PVOID SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    PKTHREAD Thread = KiCurrentThread();
    /* relaxed: see KiIsSuspensionPending. release: pairs with the acquire in KiStoppedFrame; InterruptFrame is valid */
    __atomic_store_n(&Thread->InSchedulerApc, TRUE, __ATOMIC_RELEASE);
    KeWaitForSingleObject(&Thread->SuspendEvent, Suspended, KernelMode, FALSE, NULL);
    __atomic_store_n(&Thread->InSchedulerApc, FALSE, __ATOMIC_RELAXED);
}

VOID KiInitializeSuspension(PKTHREAD Thread)
{
    Thread->SuspendCount = 0;
    KeInitializeEvent(&Thread->SuspendEvent, NotificationEvent, TRUE);
    KeInitializeApc(&Thread->SchedulerApc, Thread, OriginalApcEnvironment, KiSchedulerApcKernelRoutine, NULL,
                    KiSchedulerApc, KernelMode, NULL);
}

static BOOLEAN KiLightweightSuspend(PKTHREAD Thread)
{
    if (KiDisableLightWeightSuspend != 0 || !KiBeginSuspend(Thread)) {
        return FALSE;
    }
    ULONG Count = KiObjectBlocks(Thread);
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PKWAIT_BLOCK Block = &Thread->WaitBlockList[Index];
        PDISPATCHER_HEADER Header = Block->Object;
        ULONG64 Word = KiLockObject(Header);
        if (Word == 0) {
            continue; /* the move outside has unlinked it; the resume detects that */
        }
        if (Block->BlockState == WaitBlockActive) {
            KiUnlinkBlock(Block, WaitBlockSuspended);
        }
        KiUnlockObject(Header, Word);
    }
    KiFinishSuspend(Thread);
    return TRUE;
}

/* If the wait is a WaitAll, it is satisfied now, or all of its blocks are linked again. A thread that is about to exit
   consumes nothing. */
static BOOLEAN KiRelinkOrSatisfy(PKTHREAD Thread)
{
    ULONG Count = KiObjectBlocks(Thread);
    if (Count == 0) {
        return FALSE;
    }
    if (!KiLockInOrder(Thread)) { /* an object has moved outside: the wait begins again there */
        return KiEndWait(Thread, STATUS_KERNEL_APC) != KI_NOT_ENDED;
    }
    BOOLEAN Satisfied = !KiGivesUpWait(Thread) && KiAllSignaledFor(Thread) &&
                        KiEndWait(Thread, STATUS_WAIT_0) != KI_NOT_ENDED;
    if (Satisfied) {
        Thread->WaitStatus = KiConsumeAll(Thread);
        for (ULONG Index = 0; Index < Count; Index += 1) {
            __atomic_store_n(&Thread->WaitBlockList[Index].BlockState, WaitBlockInactive, __ATOMIC_RELEASE);
        }
    } else {
        KiLinkWaitAll(Thread);
    }
    KiUnlockInOrder(Thread);
    return Satisfied;
}

/* The thread may be about to sleep without a deadline, or sleep already. A word that is no longer KI_SLEEPING prevents
   the former, and the wake ends the latter; then it reads its register again. The word is written unconditionally (a
   failed compare-exchange would only read): the thread that accesses it second sees the other's access. */
VOID KiReconsiderDeadline(PKTHREAD Thread)
{
    C_ASSERT((KI_SLEEPING & KI_WOKEN) == KI_AWAKE);
    /* release: pairs with the acquire in KiParkOnWord; KiNextWake then sees what the caller has changed: the register, as
       KiFinishResume left it, or KiClockMissing. seq_cst: KiBeginWait may have overwritten the word since, which the
       release does not survive; then KiParkOnWord's mark comes after this, and KiIsClockMissing after the change. */
    if (__atomic_fetch_and(&Thread->WakeWord, KI_WOKEN, __ATOMIC_SEQ_CST) == KI_SLEEPING) {
        HalDispatch.Wake(&Thread->WakeWord, 1);
    }
}

static BOOLEAN KiLightweightResume(PKTHREAD Thread)
{
    if (!KiBeginResume(Thread)) {
        return FALSE;
    }
    if (KiRelinkOrSatisfy(Thread)) {
        KiReadyThread(Thread, 0);
        return TRUE;
    }
    KiFinishResume(Thread);
    KiReconsiderDeadline(Thread);
    return TRUE;
}

/* With SuspendLock held. */
static NTSTATUS KiCheckSuspend(PKTHREAD Thread)
{
    if (Thread->SuspendCount == MAXIMUM_SUSPEND_COUNT) {
        return STATUS_SUSPEND_COUNT_EXCEEDED;
    }
    /* A thread that is about to exit must not be stopped. */
    return __atomic_load_n(&Thread->State, __ATOMIC_RELAXED) != Terminated && !KiIsExiting(Thread)
               ? STATUS_SUCCESS
               : STATUS_THREAD_IS_TERMINATING;
}

/*
 * With SuspendLock held. The thread has not stopped yet, for this suspension or for a concurrent one. A thread inside the
 * APC has stopped, or continues after an earlier resume and then finds the APC that was queued since: a thread that
 * leaves the APC checks for more.
 */
static BOOLEAN KiIsSuspensionPending(PKTHREAD Thread)
{
    KiAcquireLock(&Thread->ApcQueueLock);
    /* relaxed: a stale value makes the caller check again, or withdraw an APC that the thread no longer finds */
    BOOLEAN Pending = Thread->SchedulerApc.Inserted && !__atomic_load_n(&Thread->InSchedulerApc, __ATOMIC_RELAXED);
    KiReleaseLock(&Thread->ApcQueueLock);
    return Pending;
}

/* With SuspendLock held. FALSE: the thread has stopped, or was resumed. */
static BOOLEAN KiWithdrawSuspension(PKTHREAD Thread)
{
    if (Thread->SuspendCount == 0 || !KiIsSuspensionPending(Thread)) {
        return FALSE;
    }
    if (Thread->SuspendCount == 1) {
        if (!KeRemoveQueueApc(&Thread->SchedulerApc)) {
            return FALSE;
        }
        KeSetEvent(&Thread->SuspendEvent, 0, FALSE);
    }
    Thread->SuspendCount -= 1;
    return TRUE;
}

/* The state of the interrupt that was sent for a suspension. */
typedef struct _KI_SUSPEND_REQUEST {
    NTSTATUS Interrupted;
    KI_INTERRUPT_SENT Sent;
    BOOLEAN Lost; /* one was neither served nor pending: from then on only served interrupts count */
} KI_SUSPEND_REQUEST, *PKI_SUSPEND_REQUEST;

/* FALSE: the thread has taken the suspension, or nothing keeps it from doing so. */
static BOOLEAN KiMayMissSuspension(PKTHREAD Current, PKTHREAD Thread, PKI_SUSPEND_REQUEST Request, BOOLEAN Finally)
{
    if (NT_SUCCESS(Request->Interrupted) && KiInterruptArrives(Thread, &Request->Sent, Finally)) {
        return FALSE;
    }
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->SuspendLock);
    BOOLEAN Pending = KiIsSuspensionPending(Thread);
    KiReleaseLock(&Thread->SuspendLock);
    KiExitDispatcher(Current);
    return Pending;
}

static NTSTATUS KiGiveUpSuspension(PKTHREAD Current, PKTHREAD Thread, NTSTATUS Interrupted)
{
    NTSTATUS Status = NT_SUCCESS(Interrupted) ? STATUS_ACCESS_DENIED : Interrupted;
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->SuspendLock);
    if (!KiWithdrawSuspension(Thread)) {
        Status = STATUS_SUCCESS;
    }
    KiReleaseLock(&Thread->SuspendLock);
    KiExitDispatcher(Current);
    return Status;
}

/* The first interrupt has been sent. Checks until the thread has taken the suspension, sends the interrupt again if it
   was lost, and finally withdraws the suspension. */
static NTSTATUS KiConfirmSuspension(PKTHREAD Current, PKTHREAD Thread, PKI_SUSPEND_REQUEST Request)
{
    ULONGLONG Begin = 0;
    ULONGLONG Repeat = 0;
    while (KiMayMissSuspension(Current, Thread, Request, FALSE)) {
        ULONGLONG Now = HalDispatch.QueryInterruptTime();
        Begin = Begin != 0 ? Begin : Now;
        if (Now - Begin >= KI_TIME_TO_TAKE_SUSPENSION) {
            return Request->Lost || KiMayMissSuspension(Current, Thread, Request, TRUE)
                       ? KiGiveUpSuspension(Current, Thread, Request->Interrupted)
                       : STATUS_SUCCESS;
        }
        if (Repeat == 0) {
            Repeat = Now + KI_TIME_BETWEEN_CHECKS;
        } else if (Now >= Repeat) {
            Repeat = Now + KI_TIME_TO_TAKE_SUSPENSION / 4;
            if (!KiInterruptArrives(Thread, &Request->Sent, TRUE)) {
                Request->Interrupted = KiInterruptThreadAgain(Thread, &Request->Sent);
                Request->Sent.Slept = TRUE;
                Request->Lost = TRUE;
            }
        }
        KiSleepUntil(Now + KI_TIME_BETWEEN_CHECKS);
    }
    return STATUS_SUCCESS;
}

NTSTATUS KiSuspendThread(PKTHREAD Thread, PULONG PreviousCount)
{
    PKTHREAD Current = KiCurrentThread();
    KI_SUSPEND_REQUEST Request = {STATUS_SUCCESS, {0, FALSE}, FALSE};
    BOOLEAN Interrupt = FALSE;

    if (Thread != Current) {
        KiEnsureInterruptsRepeat();
    }
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->SuspendLock);
    NTSTATUS Status = KiCheckSuspend(Thread);
    *PreviousCount = (ULONG)Thread->SuspendCount;
    if (NT_SUCCESS(Status)) {
        Thread->SuspendCount += 1;
        if (*PreviousCount != 0) {
            Interrupt = KiIsSuspensionPending(Thread);
        } else if (!KiLightweightSuspend(Thread)) {
            KeClearEvent(&Thread->SuspendEvent);
            KeInsertQueueApc(&Thread->SchedulerApc, NULL, NULL, 0);
            Interrupt = TRUE; /* it may be running */
        }
    }
    KiReleaseLock(&Thread->SuspendLock);
    if (Interrupt) {
        Request.Interrupted = KiInterruptThread(Thread, &Request.Sent);
    }
    KiExitDispatcher(Current);
    if (Interrupt && Thread != Current) {
        Status = KiConfirmSuspension(Current, Thread, &Request);
    }
    return Status;
}

ULONG KeSuspendThread(PKTHREAD Thread)
{
    ULONG Previous;
    NTSTATUS Status = KiSuspendThread(Thread, &Previous);
    if (!NT_SUCCESS(Status) && Status != STATUS_THREAD_IS_TERMINATING) {
        KiRaiseStatus(Status);
    }
    return Previous;
}

/* With SuspendLock held: the last suspension has ended. */
static VOID KiLetGo(PKTHREAD Thread)
{
    if (!KiLightweightResume(Thread)) {
        KeSetEvent(&Thread->SuspendEvent, 0, FALSE);
    }
}

ULONG KiQuerySuspendCountThread(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->SuspendLock);
    ULONG Count = (ULONG)Thread->SuspendCount;
    KiReleaseLock(&Thread->SuspendLock);
    KiExitDispatcher(Current);
    return Count;
}

VOID KiForceResumeThread(PKTHREAD Thread)
{
    KiAcquireLock(&Thread->SuspendLock);
    if (Thread->SuspendCount != 0) {
        Thread->SuspendCount = 0;
        KiLetGo(Thread);
    }
    KiReleaseLock(&Thread->SuspendLock);
}

ULONG KeResumeThread(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();

    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->SuspendLock);
    CHAR Previous = Thread->SuspendCount;
    if (Previous != 0) {
        Thread->SuspendCount = (CHAR)(Previous - 1);
    }
    if (Previous == 1) {
        KiLetGo(Thread);
    }
    KiReleaseLock(&Thread->SuspendLock);
    KiExitDispatcher(Current);
    return (ULONG)Previous;
}

/* Takes only the suspension here and defers every other APC: those do not expect to interrupt arbitrary code of the
   program. They run at the thread's next delivery. */
VOID KiSuspendInterrupt(PKTHREAD Thread)
{
    if (!KiKernelApcDeliverable(Thread) || Thread->KernelApcDisable != 0 || Thread->ApcState.KernelApcInProgress) {
        return;
    }
    Thread->SpecialApcDisable -= 1;
    if (KeRemoveQueueApc(&Thread->SchedulerApc)) {
        __atomic_store_n(&Thread->InterruptFrame, HalInterruptFrame, __ATOMIC_RELAXED);
        KiSchedulerApc(NULL, NULL, NULL);
        __atomic_store_n(&Thread->InterruptFrame, NULL, __ATOMIC_RELAXED);
    }
    Thread->SpecialApcDisable += 1;
}

/*
 * Registers. Those of an interrupted thread are in the frame of the host's handler, and are restored from there. While
 * SuspendLock is held the thread is not resumed. If its APC is not queued it has taken this suspension, after it had
 * left the previous one; what it writes about that is visible already or very soon.
 */

/* A lightweight suspension, which lasts while the lock is held. */
static BOOLEAN KiIsWaitSuspended(PKTHREAD Thread)
{
    /* relaxed: changes to and from this state happen under the lock */
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    return (Register & KI_WAIT_ACTIVE) != 0 && (Register & KI_WAIT_STATE_MASK) == WaitSuspended;
}

/* With SuspendLock held. NULL: the thread was not interrupted, but found the suspension in a wait or when it called in. */
static PVOID KiStoppedFrame(PKTHREAD Thread)
{
    ULONG Round = 0;
    if (Thread->SuspendCount == 0 || KiIsWaitSuspended(Thread)) {
        return NULL;
    }
    /* acquire: pairs with the release in KiSchedulerApc */
    while (!__atomic_load_n(&Thread->InSchedulerApc, __ATOMIC_ACQUIRE)) {
        KiBackOff(Round++);
    }
    return __atomic_load_n(&Thread->InterruptFrame, __ATOMIC_RELAXED);
}

/* A thread that has stopped in a wait of the library sleeps in the host and is interrupted there: its handler publishes
   the registers, and the thread keeps sleeping. */
typedef struct _KI_REGISTERS_WANTED {
    PCONTEXT Context;
    NTSTATUS Status;
    volatile ULONG Done;
} KI_REGISTERS_WANTED, *PKI_REGISTERS_WANTED;

VOID KiShowRegisters(PKTHREAD Thread)
{
    /* relaxed: mostly NULL; the exchange acquires */
    if (__atomic_load_n(&Thread->RegistersWanted, __ATOMIC_RELAXED) == NULL) {
        return;
    }
    PKI_REGISTERS_WANTED Wanted = __atomic_exchange_n(&Thread->RegistersWanted, NULL, __ATOMIC_ACQUIRE);
    if (Wanted != NULL) {
        Wanted->Status = HalInterruptFrame != NULL ? HalReadFrame(HalInterruptFrame, Wanted->Context) : STATUS_NOT_SUPPORTED;
        /* release: the last access; pairs with the acquires in KiAskForRegisters */
        __atomic_store_n(&Wanted->Done, 1, __ATOMIC_RELEASE);
    }
}

/* With SuspendLock held, so the thread keeps sleeping and no other thread requests them. */
static NTSTATUS KiAskForRegisters(PKTHREAD Thread, PCONTEXT Context)
{
    KI_REGISTERS_WANTED Wanted = {Context, STATUS_NOT_SUPPORTED, 0};
    ULONGLONG End = HalDispatch.QueryInterruptTime() + KI_TIME_TO_TAKE_SUSPENSION;
    ULONG Round = 0;
    /* release: pairs with the exchange in KiShowRegisters */
    __atomic_store_n(&Thread->RegistersWanted, &Wanted, __ATOMIC_RELEASE);
    if (NT_SUCCESS(KiInterruptThread(Thread, NULL))) {
        while (!__atomic_load_n(&Wanted.Done, __ATOMIC_ACQUIRE) && HalDispatch.QueryInterruptTime() < End) {
            KiBackOff(Round++);
        }
    }
    /* Withdrawn, or the handler has begun and will finish soon. acquire: as above */
    if (__atomic_exchange_n(&Thread->RegistersWanted, NULL, __ATOMIC_ACQUIRE) == NULL) {
        while (!__atomic_load_n(&Wanted.Done, __ATOMIC_ACQUIRE)) {
            KiBackOff(Round++);
        }
    }
    return Wanted.Status;
}

/* With SuspendLock held. */
static NTSTATUS KiReadStopped(PKTHREAD Thread, PVOID Frame, PCONTEXT Context)
{
    NTSTATUS Status = Frame != NULL ? HalReadFrame(Frame, Context) : KiAskForRegisters(Thread, Context);
    if (NT_SUCCESS(Status)) {
        HalNotePlace(Context, &Thread->Shown);
    }
    return Status;
}

/*
 * With SuspendLock held. New registers for a thread that waits or is in a system service are for later, as on Windows: it
 * takes them when it leaves the service, which has ended its wait, dropped its references and released its locks. Only the
 * place can be changed: the other registers are those of the service. A thread that waits outside of a service has blocks
 * on its stack that are in the queue of a user-mode lock; it takes them when it leaves its next service. What is new is
 * compared with what was shown: a sleeping thread may have moved since.
 */
static NTSTATUS KiSendElsewhere(PKTHREAD Thread, const CONTEXT *Context)
{
    NTSTATUS Status = HalQueryPlace(&Thread->Shown, Context, &Thread->Elsewhere);
    if (Status == STATUS_SUCCESS) {
        /* release: pairs with the acquire in KiLeaveServices; the place is there */
        __atomic_fetch_or(&Thread->WaitRegister, KI_WAIT_ELSEWHERE, __ATOMIC_RELEASE);
    }
    return NT_SUCCESS(Status) ? STATUS_SUCCESS : Status;
}

static BOOLEAN KiMayGoElsewhere(PKTHREAD Thread)
{
    /* in a handler of the host the frame to leave is another one: the thread takes the place later */
    return Thread == HalCurrentThread && Thread->ServiceDepth == 0 && Thread->DispatcherDepth == 0 &&
           HalInterruptFrame == NULL && KiKernelApcDeliverable(Thread) && !Thread->ApcState.KernelApcInProgress;
}

VOID KiLeaveServices(PKTHREAD Thread)
{
    KiDeliverApc(Thread);
    /* acquire: pairs with the release in KiSendElsewhere */
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE) & KI_WAIT_ELSEWHERE) != 0 && KiMayGoElsewhere(Thread)) {
        /* relaxed: only the thread itself clears it */
        __atomic_fetch_and(&Thread->WaitRegister, ~KI_WAIT_ELSEWHERE, __ATOMIC_RELAXED);
        HalContinueAt(&Thread->Elsewhere);
    }
}

static NTSTATUS KiAccessStopped(PKTHREAD Thread, PCONTEXT Context, BOOLEAN Write)
{
    PVOID Frame = KiStoppedFrame(Thread);
    if (Thread->SuspendCount == 0) {
        return STATUS_NOT_SUPPORTED;
    }
    if (!Write) {
        return KiReadStopped(Thread, Frame, Context);
    }
    return Frame != NULL && Thread->ServiceDepth == 0 ? HalWriteFrame(Frame, Context) : KiSendElsewhere(Thread, Context);
}

/* STATUS_PENDING: the thread has not stopped yet. */
static NTSTATUS KiTryRegisters(PKTHREAD Current, PKTHREAD Thread, PCONTEXT Context, BOOLEAN Write)
{
    NTSTATUS Status = STATUS_PENDING;
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->SuspendLock);
    KiAcquireLock(&Thread->ApcQueueLock);
    BOOLEAN Queued = Thread->SchedulerApc.Inserted;
    KiReleaseLock(&Thread->ApcQueueLock);
    if (Thread->SuspendCount == 0 || !Queued) {
        Status = KiAccessStopped(Thread, Context, Write);
    }
    KiReleaseLock(&Thread->SuspendLock);
    KiExitDispatcher(Current);
    return Status;
}

/* A suspension that succeeded may still be on its way. */
NTSTATUS KiAccessRegisters(PKTHREAD Thread, PCONTEXT Context, BOOLEAN Write)
{
    PKTHREAD Current = KiCurrentThread();
    ULONGLONG End = HalDispatch.QueryInterruptTime() + KI_TIME_TO_TAKE_SUSPENSION;
    NTSTATUS Status = STATUS_NOT_SUPPORTED;
    ULONG Round = 0;
    if (Thread == Current) {
        return Status;
    }
    while ((Status = KiTryRegisters(Current, Thread, Context, Write)) == STATUS_PENDING) {
        if (HalDispatch.QueryInterruptTime() >= End) {
            return STATUS_NOT_SUPPORTED;
        }
        KiBackOff(Round++);
    }
    return Status;
}
