/* stop.c: how one thread stops another: the interrupt through the host, suspension, termination. */
#include "ownthread.h"
#include "park.h"
#include "wait.h"

#include "../hal/hal.h"

/*
 * Interrupts a running thread through the host.
 *
 * To stop a thread, temporarily or permanently, a requester sets bits in its wait status register and then interrupts
 * it. An interrupt is a signal with a handler, and each one is delivered: suspending and resuming a thread without a
 * pause could keep it in the handler forever. So at most one is in flight:
 *
 *     InterruptState   None        none was sent, or it has been served
 *                      Wanted      one is in flight, or the thread is checking and has to check again
 *                      Looking     the thread is checking
 *
 * 1. The requester that changes None to Wanted sends. If that fails the state becomes None again, and the thread finds
 *    the request when it next calls in.
 * 2. The thread sets Looking, checks its register, and changes Looking to None. If that fails it checks again.
 * 3. Inside the C library the thread may hold the heap's lock, so it avoids stopping there (hal/interrupt.c). An
 *    interrupt that finds a request there is deferred: the state stays, and another interrupt follows. An interrupt
 *    that finds none must not stop the thread either: a request may arrive a moment later. It ends as in 2, and the
 *    thread checks again if a request arrived. Deferred interrupts come from a timer of the host, or, where the host
 *    refuses timers, from a thread of the library, the repeater, which requesters start beforehand.
 * 4. An interrupt may not reach the thread: while the thread blocks the host's signal, or ever, if something else takes
 *    the signal. So a requester that depends on the result asks whether the interrupt arrives (KiInterruptArrives), and
 *    sends again if it does not. A redundant interrupt finds nothing to do.
 * 5. InterruptsServed is incremented when the thread starts to check. A requester reads it after it has set Wanted. If
 *    the number changes later, the thread has checked after the request: either it had not started when the state
 *    changed, or it finds Wanted at the end and checks again.
 * 6. The handler takes a pending, unblocked signal before the thread runs any further. But a thread in sigwait takes it
 * without the handler, and the host does not show that the thread otherwise blocks the signal. Such a thread sleeps
 * when the signal is sent, unless something else has just woken it. So for a sleeping thread only InterruptsServed
 * counts, or, as a last resort, that it has not run yet. Processors interrupt their owners without this (processor.c): they
 * hold no reference, and the owner may have changed meanwhile. They repeat their requests until an owner has served
 * them.
 */

#define KI_TIME_BEFORE_SIGNAL_REPEAT 1000ULL /* 100 us */

/* For KiInterruptArrives. */
typedef struct _KI_INTERRUPT_SENT {
    ULONG Served;
    BOOLEAN Slept;
} KI_INTERRUPT_SENT, *PKI_INTERRUPT_SENT;

typedef enum _KI_INTERRUPT_STATE {
    KiInterruptNone,
    KiInterruptWanted,
    KiInterruptLooking
} KI_INTERRUPT_STATE;

/* relaxed: publishes nothing */
static VOID KiForgetInterrupt(PKTHREAD Thread)
{
    ULONG Wanted = KiInterruptWanted;
    __atomic_compare_exchange_n(&Thread->InterruptState, &Wanted, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

static ULONG KiReadServed(PKTHREAD Thread)
{
    /* acquire: read after the exchange in KiInterruptThread; what the thread did before it counted is visible */
    return __atomic_load_n(&Thread->InterruptsServed, __ATOMIC_ACQUIRE);
}

/* Rule 1. */
static NTSTATUS KiWantInterrupt(PKTHREAD Thread, ULONG ThreadId, PULONG Served)
{
    NTSTATUS Status = STATUS_SUCCESS;
    /* acq_rel: pairs with the exchange in KiServeInterrupt; the thread that finds Wanted sees the requester's bits */
    ULONG State = __atomic_exchange_n(&Thread->InterruptState, KiInterruptWanted, __ATOMIC_ACQ_REL);
    *Served = KiReadServed(Thread);
    if (State == KiInterruptNone) {
        Status = HalInterruptThread(ThreadId);
    }
    if (!NT_SUCCESS(Status)) {
        KiForgetInterrupt(Thread);
    }
    return Status == STATUS_INVALID_CID ? STATUS_SUCCESS : Status; /* the thread has ended: nothing to stop */
}

/* The thread, which the caller keeps alive, will check its wait register soon. STATUS_ACCESS_DENIED,
   STATUS_INSUFFICIENT_RESOURCES: not before it next calls in. Sent: or NULL. */
static NTSTATUS KiInterruptThread(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent)
{
    /* acquire: pairs with the release of the id in KiStartThread; a thread that has not started checks by itself */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE);
    ULONG Unused;
    if (ThreadId == 0 || Thread == HalCurrentThread) {
        return STATUS_SUCCESS;
    }
    if (Sent != NULL) {
        Sent->Slept = HalIsThreadAsleep(ThreadId);
    }
    return KiWantInterrupt(Thread, ThreadId, Sent != NULL ? &Sent->Served : &Unused);
}

/* Best effort: if it cannot be sent, the thread finds the request when it next calls in. */
VOID KiInterruptCurrentThread(PKTHREAD Thread)
{
    ULONG Served;
    KiForgetInterrupt(Thread);
    KiWantInterrupt(Thread, HalCurrentThreadId(), &Served);
}

/* The last interrupt may be lost. */
static NTSTATUS KiInterruptThreadAgain(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent)
{
    KiForgetInterrupt(Thread);
    return KiInterruptThread(Thread, Sent);
}

typedef struct _KI_AWAITED_SERVICE {
    PKTHREAD Thread;
    ULONG Served;
} KI_AWAITED_SERVICE, *PKI_AWAITED_SERVICE;

static inline BOOLEAN KiIsInterruptServed(PVOID Awaited)
{
    return KiReadServed(((PKI_AWAITED_SERVICE)Awaited)->Thread) != ((PKI_AWAITED_SERVICE)Awaited)->Served;
}

/* FALSE: not yet, and perhaps never. Finally: the caller will not ask again. A thread that runs on another processor takes
   the interrupt faster than the host answers a query. */
static BOOLEAN KiInterruptArrives(PKTHREAD Thread, const KI_INTERRUPT_SENT *Sent, BOOLEAN Finally)
{
    KI_AWAITED_SERVICE Awaited = {Thread, Sent->Served};
    /* relaxed: a started thread keeps its id */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED);
    return ThreadId == 0 || KiIsInterruptServed(&Awaited) ||
           KiParkUntil(KiCurrentThread(), KiParkForInterrupt, KiIsInterruptServed, &Awaited) ||
           ((Finally || !Sent->Slept) && HalIsInterruptOnItsWay(ThreadId)) || KiIsInterruptServed(&Awaited);
}

/* The repeater. */

static VOID KiRepeater(PVOID Context);

static const KI_OWN_KIND KiRepeaterKind = {
    .Name = "interlock-again", .Routine = KiRepeater, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD KiRepeaterThread = {.Kind = &KiRepeaterKind};
static volatile ULONG KiRepeatsWanted;

/* Before a request that stops a thread, outside dispatcher sections. Best effort: without the repeater the thread stops
   where it is. */
static VOID KiEnsureInterruptsRepeat(VOID)
{
    if (!HalCanInterruptLater()) {
        KiEnsureOwnThread(&KiRepeaterThread);
    }
}

/* On the interrupted thread. FALSE: there is no repeater. */
static BOOLEAN KiRequestRepeat(PKTHREAD Thread)
{
    if (!KiHasOwnThread(&KiRepeaterThread)) {
        return FALSE;
    }
    __atomic_store_n(&Thread->WantsInterruptAgain, TRUE, __ATOMIC_RELAXED);
    /* release: a repeater that sees the new number also sees the flag */
    __atomic_fetch_add(&KiRepeatsWanted, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&KiRepeatsWanted, 1);
    return TRUE;
}

/* FALSE: no thread wanted one. An interrupt that cannot be sent now is sent in the next round. The thread may have
   ended or its slot may be recycled: then the interrupted thread finds nothing to do. */
static BOOLEAN KiRepeatInterrupts(VOID)
{
    BOOLEAN Found = FALSE;
    PKTHREAD Thread;
    for (ULONG Slot = 0; (Thread = KiThreadFromNumber(Slot)) != NULL; Slot++) {
        /* relaxed: the caller has acquired */
        if (__atomic_load_n(&Thread->WantsInterruptAgain, __ATOMIC_RELAXED)) {
            __atomic_store_n(&Thread->WantsInterruptAgain, FALSE, __ATOMIC_RELAXED);
            Found = TRUE;
            if (HalInterruptThread(__atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED)) == STATUS_INSUFFICIENT_RESOURCES) {
                __atomic_store_n(&Thread->WantsInterruptAgain, TRUE, __ATOMIC_RELAXED);
            }
        }
    }
    return Found;
}

static VOID KiRepeater(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    __atomic_store_n(&KiCurrentThread()->Foreign, FALSE, __ATOMIC_RELAXED);
    for (;;) {
        /* acquire: read before the flags, so a flag that the walk misses changes the number */
        ULONG Seen = __atomic_load_n(&KiRepeatsWanted, __ATOMIC_ACQUIRE);
        if (!KiRepeatInterrupts()) {
            KiSleepWhile(&KiRepeatsWanted, Seen);
        }
        KiSleepUntil(HalDispatch.QueryInterruptTime() + KI_TIME_BEFORE_SIGNAL_REPEAT);
    }
}

/*
 * Suspension.
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

/* The thread may be about to sleep without a deadline, or sleep already. A word that is no longer KI_SLEEPING prevents the
   sleep, and the wake ends it; then the thread reads its register again. The word is written unconditionally (a failed
   compare-exchange would only read): the thread that accesses it second sees the other's access. */
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

/* Withdraws the suspension, unless the thread has stopped or was resumed. */
static NTSTATUS KiGiveUpSuspension(PKTHREAD Current, PKTHREAD Thread, NTSTATUS Interrupted)
{
    NTSTATUS Status = STATUS_SUCCESS;
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->SuspendLock);
    if (Thread->SuspendCount != 0 && KiIsSuspensionPending(Thread) &&
        (Thread->SuspendCount > 1 || KeRemoveQueueApc(&Thread->SchedulerApc))) {
        Thread->SuspendCount -= 1;
        if (Thread->SuspendCount == 0) {
            KeSetEvent(&Thread->SuspendEvent, 0, FALSE);
        }
        Status = NT_SUCCESS(Interrupted) ? STATUS_ACCESS_DENIED : Interrupted;
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
    *PreviousCount = (ULONG)Thread->SuspendCount;
    NTSTATUS Status = STATUS_SUCCESS;
    if (Thread->SuspendCount == MAXIMUM_SUSPEND_COUNT) {
        Status = STATUS_SUSPEND_COUNT_EXCEEDED;
    } else if (__atomic_load_n(&Thread->State, __ATOMIC_RELAXED) == Terminated || KiIsExiting(Thread)) {
        Status = STATUS_THREAD_IS_TERMINATING; /* a thread that is about to exit must not be stopped */
    } else {
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

/* In a dispatcher section: regardless of its count. */
static VOID KiForceResumeThread(PKTHREAD Thread)
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
static VOID KiSuspendInterrupt(PKTHREAD Thread)
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
 * SuspendLock is held the thread is not resumed. If its APC is not queued, it has accepted this suspension after
 * leaving the previous one, and its stores that say so are visible now or soon.
 */

/* With SuspendLock held. NULL: the thread was not interrupted, but found the suspension in a wait or when it called in. */
static PVOID KiStoppedFrame(PKTHREAD Thread)
{
    ULONG Round = 0;
    /* relaxed: a lightweight suspension begins and ends under the lock */
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    if (Thread->SuspendCount == 0 ||
        ((Register & KI_WAIT_ACTIVE) != 0 && (Register & KI_WAIT_STATE_MASK) == WaitSuspended)) {
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

/* On the interrupted thread, for a thread that has requested them. */
static VOID KiShowRegisters(PKTHREAD Thread)
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

/*
 * With SuspendLock held. New registers for a thread that waits or is in a system service are for later, as on Windows: it takes
 * them when it leaves the service, which has ended its wait, dropped its references and released its locks. Only the place can
 * be changed: the other registers are those of the service. A thread that waits outside of a service has blocks on its stack
 * that are in the queue of a user-mode lock; it takes them when it leaves its next service. The new registers are compared with
 * those that were reported before, because a sleeping thread may have moved since then.
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

VOID KiLeaveServices(PKTHREAD Thread)
{
    KiDeliverApc(Thread);
    /* acquire: pairs with the release in KiSendElsewhere */
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE) & KI_WAIT_ELSEWHERE) == 0) {
        return;
    }
    /* In a handler of the host the frame to leave is another one: the thread takes the place later. */
    if (Thread == HalCurrentThread && Thread->ServiceDepth == 0 && Thread->DispatcherDepth == 0 &&
        HalInterruptFrame == NULL && KiKernelApcDeliverable(Thread) && !Thread->ApcState.KernelApcInProgress) {
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
        NTSTATUS Status = Frame != NULL ? HalReadFrame(Frame, Context) : KiAskForRegisters(Thread, Context);
        if (NT_SUCCESS(Status)) {
            HalNotePlace(Context, &Thread->Shown);
        }
        return Status;
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

/*
 * How one thread ends another. ps/thread.c has the thread's own end.
 *
 * A thread cannot be removed from outside: it may hold locks of the kernel. Another thread requests its end, and the
 * thread stops itself at the first point where it holds none. The requester does not wait for that.
 *
 *      63          33 32                            31              0
 *     +--------------+------+------------------------+---------------+
 *     |              |   2  Exiting   1  Requested   |  exit status  |    KTHREAD.ExitRequest; 0: the thread lives
 *     +--------------+------+------------------------+---------------+
 *
 * 1. The word leaves 0 once: to Requested, by another thread, or to Exiting, by the thread itself when only the C
 *    library's and the kernel's part of its end is left. Requested becomes Exiting: a thread that was already ending
 *    finishes in the orderly way, with the requested status.
 * 2. The requester sets the Exit bit in the wait register, which ends a wait that allows it (ExitOk); resumes a
 *    suspended thread; and interrupts a running one. The thread checks the bit wherever an APC could be delivered. A
 *    thread that was suspended just before it made the word Exiting is parked in its own end: it is resumed, too.
 * 3. The thread stops where a normal kernel APC could run, outside system services: it holds no lock of the kernel, has
 *    raised no level and entered no region, none of its wait blocks is on a list of the kernel, and no memory of the
 *    library is half allocated. Anywhere else it continues until it reaches such a point.
 * 4. Stopping is all that the thread does. It may have been interrupted anywhere in the program, with the heap's lock
 *    held, so it allocates and frees nothing, calls nothing of the program, pushes itself onto the list of stopped
 *    threads, and leaves by the system call that ends a host thread. Once it is on the list it does not touch its
 *    KTHREAD, except that it sets StackIsLeft after the last use of its stack.
 * 5. The reaper takes stopped threads from the list, waits for StackIsLeft, because the program may free a fiber's stack
 *    once the thread is signaled, and runs each down as its own end would have: exit routines, APCs, mutants, queue;
 *    then it signals the thread object.
 *
 * The reaper is a thread of its own because a rundown may block and frees memory, and because no existing thread is
 * suitable: the requester may itself be terminated, and a work item may be waiting for the very thread. The first
 * termination creates it, before it requests anything. A forked child creates its own; the threads on the parent's list
 * are among those that stayed behind.
 *
 * These are leaked: the host's stack and its thread-local memory, allocations, and user-mode locks that the thread held
 * or waited for.
 */

#define KI_EXIT_REQUESTED ((ULONG64)1 << 32)
#define KI_EXITING ((ULONG64)2 << 32)

static PKTHREAD volatile KiStoppedThreads DECLSPEC_ALIGN(KI_CACHE_LINE); /* linked by NextDead */
volatile ULONG KiReaperWakes;
static VOID KiReaper(PVOID Context);

static const KI_OWN_KIND KiReaperKind = {
    .Name = "interlock-reap", .Routine = KiReaper, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD KiReaperThread = {.Kind = &KiReaperKind};

BOOLEAN KiIsExiting(PKTHREAD Thread)
{
    /* relaxed: callers that act on it check again, or cannot be too late */
    return __atomic_load_n(&Thread->ExitRequest, __ATOMIC_RELAXED) != 0;
}

/* Its end was requested and has not begun. */
static BOOLEAN KiMustStop(PKTHREAD Thread)
{
    /* relaxed: as in KiIsExiting */
    return (__atomic_load_n(&Thread->ExitRequest, __ATOMIC_RELAXED) & KI_EXIT_REQUESTED) != 0;
}

NTSTATUS KiTerminateThread(PKTHREAD Thread, NTSTATUS ExitStatus)
{
    PKTHREAD Current = KiCurrentThread();
    ULONG64 Alive = 0;
    NTSTATUS Status = KiEnsureOwnThread(&KiReaperThread);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    KiEnsureInterruptsRepeat();
    KiEnterDispatcher(Current);
    /* release: pairs with the acquire in KiClaimExit; what the requester did comes before the end */
    if (__atomic_compare_exchange_n(&Thread->ExitRequest, &Alive, KI_EXIT_REQUESTED | (ULONG)ExitStatus, FALSE,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        KiInterruptWait(Thread, KI_WAIT_EXIT, 0);
    }
    KiForceResumeThread(Thread);
    if (KiMustStop(Thread)) {
        /* Best effort: if the interrupt is lost, the thread finds the request when it next calls in. Another request
           for the same thread sends another one. */
        KiInterruptThreadAgain(Thread, NULL);
    }
    KiExitDispatcher(Current);
    return STATUS_SUCCESS;
}

VOID KiClaimExit(PKTHREAD Thread)
{
    /* acquire: pairs with the release in KiTerminateThread */
    ULONG64 Request = __atomic_exchange_n(&Thread->ExitRequest, KI_EXITING, __ATOMIC_ACQUIRE);
    if (Request & KI_EXIT_REQUESTED) {
        Thread->ExitStatus = (NTSTATUS)(ULONG)Request;
    }
}

/* Requirements 3 and 4. */
VOID KiExitIfRequested(PKTHREAD Thread)
{
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_EXIT) == 0 || Thread != HalCurrentThread) {
        return;
    }
    if (Thread->ServiceDepth != 0 || Thread->KernelApcDisable != 0 || Thread->ApcState.KernelApcInProgress ||
        !KiKernelApcDeliverable(Thread) || !KiMustStop(Thread)) {
        return;
    }
    KiClaimExit(Thread);
    KiRecordTimes(Thread);
    HalNoteThreadEnds();
    /* Transition: no longer running, so no APC is delivered, and not yet ended. */
    __atomic_store_n(&Thread->State, Transition, __ATOMIC_RELAXED);
    HalCurrentThread = NULL;
    __atomic_store_n(&Thread->StackIsLeft, FALSE, __ATOMIC_RELAXED); /* relaxed, as the next: the exchange publishes both */
    Thread->NextDead = __atomic_load_n(&KiStoppedThreads, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiReaper; all that the thread did comes before its rundown */
    while (!__atomic_compare_exchange_n(&KiStoppedThreads, &Thread->NextDead, Thread, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    /* release: a reaper that sees the new number also sees the list */
    __atomic_fetch_add(&KiReaperWakes, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&KiReaperWakes, 1);
    HalTerminateThread(&Thread->StackIsLeft);
}

/* Requirement 5. */
static VOID KiReaper(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    __atomic_store_n(&KiCurrentThread()->Foreign, FALSE, __ATOMIC_RELAXED);
    for (;;) {
        /* acquire: read before the list, so a thread that the list misses changes the number */
        ULONG Seen = __atomic_load_n(&KiReaperWakes, __ATOMIC_ACQUIRE);
        PKTHREAD Thread = __atomic_exchange_n(&KiStoppedThreads, NULL, __ATOMIC_ACQUIRE);
        if (Thread == NULL) {
            KiSleepWhile(&KiReaperWakes, Seen);
        }
        while (Thread != NULL) {
            PKTHREAD Next = Thread->NextDead;
            /* acquire: pairs with the release in HalTerminateThread; the stack is unused */
            for (ULONG Round = 0; !__atomic_load_n(&Thread->StackIsLeft, __ATOMIC_ACQUIRE); Round += 1) {
                KiBackOff(Round);
            }
            if (KiThreadObjectRoutines.Exit != NULL) {
                KiThreadObjectRoutines.Exit(Thread, TRUE);
            }
            KiFlushThreadApcs(Thread);
            KiAbandonMutants(Thread);
            KiLeaveQueue(Thread);
            KiEndThread(Thread);
            NTSTATUS ExitStatus = Thread->ExitStatus;
            ULONG EndOrdinal = Thread->EndOrdinal;
            KiDropThread(Thread);
            if (KiThreadObjectRoutines.Ended != NULL) {
                KiThreadObjectRoutines.Ended(EndOrdinal, ExitStatus);
            }
            Thread = Next;
        }
    }
}

/* Handling the host's signal, on the interrupted thread. */

typedef enum _KI_STOP {
    KiStopNow,
    KiStopLater,
    KiNothingToStopFor
} KI_STOP;

/* Rule 3 of the interrupt. A suspension is one of the kernel APCs. */
static KI_STOP KiWhenToStop(PKTHREAD Thread, BOOLEAN InsideLibc)
{
    if (!InsideLibc) {
        return KiStopNow;
    }
    /* relaxed: read after the exchange in KiServeInterrupt */
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & (KI_WAIT_APC | KI_WAIT_EXIT)) == 0) {
        return KiNothingToStopFor;
    }
    switch (HalInterruptLater()) {
    case HalLaterSet:
        return KiStopLater;
    case HalLaterRefused:
        return KiRequestRepeat(Thread) ? KiStopLater : KiStopNow;
    default:
        return KiStopNow;
    }
}

static VOID KiServeInterrupt(PKTHREAD Thread, BOOLEAN InsideLibc)
{
    ULONG State;
    KI_STOP Stop;
    do {
        /* acq_rel: pairs with KiInterruptThread */
        __atomic_exchange_n(&Thread->InterruptState, KiInterruptLooking, __ATOMIC_ACQ_REL);
        /* release: not before the exchange; see its rule 5 */
        __atomic_fetch_add(&Thread->InterruptsServed, 1, __ATOMIC_RELEASE);
        KiShowRegisters(Thread);
        KiPollInterrupts(Thread);
        Stop = KiWhenToStop(Thread, InsideLibc);
        if (Stop == KiStopLater) {
            return;
        }
        if (Stop == KiStopNow) {
            KiExitIfRequested(Thread);
            KiSuspendInterrupt(Thread);
            KiExitIfRequested(Thread);
        }
        State = KiInterruptLooking;
        /* relaxed: publishes nothing; after a failure the exchange above acquires */
    } while (!__atomic_compare_exchange_n(&Thread->InterruptState, &State, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

/* What runs here must not raise into the frames of the interrupted code: the host's handler would never return. */
VOID KiHostInterrupt(BOOLEAN InsideLibc)
{
    PKTHREAD Thread = HalCurrentThread;
    PVOID ExceptionList;
    if (Thread == NULL) {
        return;
    }
    ExceptionList = Thread->ExceptionList;
    Thread->ExceptionList = NULL;
    Thread->HostInterrupts += 1;
    KiServeInterrupt(Thread, InsideLibc);
    Thread->HostInterrupts -= 1;
    Thread->ExceptionList = ExceptionList;
}

/* The stopped threads, the interrupt, and the timer of a deferred one stayed in the parent. */
VOID KiStopForkChild(PKTHREAD Survivor)
{
    __atomic_store_n(&KiStoppedThreads, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&Survivor->InterruptState, KiInterruptNone, __ATOMIC_RELAXED);
    __atomic_store_n(&Survivor->WantsInterruptAgain, FALSE, __ATOMIC_RELAXED);
}
