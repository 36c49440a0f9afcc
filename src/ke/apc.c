/*
 * apc.c: what interrupts a thread's wait: asynchronous procedure calls, and alerts.
 *
 * Under ApcQueueLock: the two lists of a thread and KAPC.Inserted. Special kernel APCs (without a NormalRoutine) precede
 * normal ones, up to LastSpecial. The register's Apc, SpecialApc and UserApc bits say what the lists hold; they change
 * under the lock, too, so a wait never ends for an APC that has already been taken.
 */
#include "verifier.h"
#include "wait.h"

VOID KeInitializeApc(PRKAPC Apc, PRKTHREAD Thread, KAPC_ENVIRONMENT Environment, PKKERNEL_ROUTINE KernelRoutine,
                     PKRUNDOWN_ROUTINE RundownRoutine, PKNORMAL_ROUTINE NormalRoutine, KPROCESSOR_MODE ApcMode,
                     PVOID NormalContext)
{
    memset(Apc, 0, sizeof(*Apc));
    Apc->Type = ApcObject;
    Apc->Size = sizeof(KAPC);
    Apc->Thread = Thread;
    Apc->ApcStateIndex = Environment == CurrentApcEnvironment ? OriginalApcEnvironment : (CCHAR)Environment;
    Apc->KernelRoutine = KernelRoutine;
    Apc->RundownRoutine = RundownRoutine;
    Apc->NormalRoutine = NormalRoutine;
    if (NormalRoutine != NULL) {
        Apc->ApcMode = ApcMode;
        Apc->NormalContext = NormalContext;
    }
}

static BOOLEAN KiIsSpecial(PKAPC Apc)
{
    return Apc->NormalRoutine == NULL;
}

static PKAPC KiApcOf(PLIST_ENTRY Entry)
{
    return CONTAINING_RECORD(Entry, KAPC, ApcListEntry);
}

BOOLEAN KeInsertQueueApc(PRKAPC Apc, PVOID SystemArgument1, PVOID SystemArgument2, KPRIORITY Increment)
{
    PKTHREAD Current = KiCurrentThread();
    PKTHREAD Thread = Apc->Thread;

    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->ApcQueueLock);
    BOOLEAN Queued = Thread->ApcQueueable && !Apc->Inserted;
    if (Queued) {
        Apc->Inserted = TRUE;
        Apc->SystemArgument1 = SystemArgument1;
        Apc->SystemArgument2 = SystemArgument2;
        ULONG Pending = Apc->ApcMode == UserMode ? KI_WAIT_USER_APC : KI_WAIT_APC;
        if (KiIsSpecial(Apc)) {
            InsertHeadList(Thread->ApcState.LastSpecial, &Apc->ApcListEntry);
            Thread->ApcState.LastSpecial = &Apc->ApcListEntry;
            Pending = KI_WAIT_APC | KI_WAIT_SPECIAL_APC;
        } else {
            InsertTailList(&Thread->ApcState.ApcListHead[(UCHAR)Apc->ApcMode], &Apc->ApcListEntry);
        }
        /* relaxed: the lists are read under the lock; KiInterruptWait or the thread's commit act on the bits */
        __atomic_fetch_or(&Thread->WaitRegister, Pending, __ATOMIC_RELAXED);
    }
    KiReleaseLock(&Thread->ApcQueueLock);
    if (Queued) {
        KiInterruptWait(Thread, 0, Increment);
    }
    KiExitDispatcher(Current);
    return Queued;
}

/* With the lock held: updates the pending bits from the lists. */
static VOID KiUpdateApcBits(PKTHREAD Thread)
{
    PLIST_ENTRY Kernel = &Thread->ApcState.ApcListHead[KernelMode];
    ULONG Clear = 0;
    if (IsListEmpty(Kernel)) {
        Clear |= KI_WAIT_APC | KI_WAIT_SPECIAL_APC;
    } else if (!KiIsSpecial(KiApcOf(Kernel->Flink))) {
        Clear |= KI_WAIT_SPECIAL_APC;
    }
    if (IsListEmpty(&Thread->ApcState.ApcListHead[UserMode])) {
        Clear |= KI_WAIT_USER_APC;
    }
    /* relaxed: see KeInsertQueueApc */
    __atomic_fetch_and(&Thread->WaitRegister, ~Clear, __ATOMIC_RELAXED);
}

static VOID KiUnlinkApc(PKAPC Apc)
{
    PKAPC_STATE State = &Apc->Thread->ApcState;
    if (State->LastSpecial == &Apc->ApcListEntry) {
        State->LastSpecial = Apc->ApcListEntry.Blink;
    }
    RemoveEntryList(&Apc->ApcListEntry);
    Apc->Inserted = FALSE;
    KiUpdateApcBits(Apc->Thread);
}

BOOLEAN KeRemoveQueueApc(PRKAPC Apc)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    KiAcquireLock(&Apc->Thread->ApcQueueLock);
    BOOLEAN Inserted = Apc->Inserted;
    if (Inserted) {
        KiUnlinkApc(Apc);
    }
    KiReleaseLock(&Apc->Thread->ApcQueueLock);
    KiExitDispatcher(Current);
    return Inserted;
}

/* A copy, because the kernel routine may free the APC. */
typedef struct _KI_APC_CALL {
    PKAPC Apc;
    KIRQL OldIrql;
    PKKERNEL_ROUTINE KernelRoutine;
    PKNORMAL_ROUTINE NormalRoutine;
    PVOID NormalContext;
    PVOID SystemArgument1;
    PVOID SystemArgument2;
} KI_APC_CALL, *PKI_APC_CALL;

/* Raises to APC_LEVEL in the section: a thread that ended between its end and the kernel routine would lose the APC. */
static BOOLEAN KiTakeApc(PKTHREAD Thread, KPROCESSOR_MODE Mode, PKI_APC_CALL Call)
{
    PLIST_ENTRY Head = &Thread->ApcState.ApcListHead[(UCHAR)Mode];
    BOOLEAN Taken = FALSE;

    KiEnterDispatcher(Thread);
    KiAcquireLock(&Thread->ApcQueueLock);
    if (!IsListEmpty(Head)) {
        PKAPC Apc = KiApcOf(Head->Flink);
        Taken = Mode == UserMode || KiIsSpecial(Apc) ||
                (!Thread->ApcState.KernelApcInProgress && Thread->KernelApcDisable == 0);
        if (Taken) {
            *Call = (KI_APC_CALL){Apc,
                                  Thread->Irql,
                                  Apc->KernelRoutine,
                                  Apc->NormalRoutine,
                                  Apc->NormalContext,
                                  Apc->SystemArgument1,
                                  Apc->SystemArgument2};
            KiUnlinkApc(Apc);
            Thread->Irql = APC_LEVEL;
        }
    }
    if (!Taken) {
        KiUpdateApcBits(Thread);
    }
    KiReleaseLock(&Thread->ApcQueueLock);
    /* Not KiExitDispatcher: this is the delivery that it would start. release: as there */
    __atomic_store_n(&Thread->DispatcherDepth, Thread->DispatcherDepth - 1, __ATOMIC_RELEASE);
    return Taken;
}

/* The last byte of the first parameter of IRQL_UNEXPECTED_VALUE. */
#define KI_KERNEL_ROUTINE_OF_APC 0
#define KI_NORMAL_ROUTINE_OF_APC 2

static VOID KiCheckApcLevel(PKTHREAD Thread, KIRQL Expected, ULONG_PTR Routine, PKI_APC_CALL Call,
                            PKNORMAL_ROUTINE NormalRoutine)
{
    if (__builtin_expect(Thread->Irql != Expected, FALSE)) {
        KeBugCheckEx(IRQL_UNEXPECTED_VALUE, (ULONG_PTR)Thread->Irql << 16 | (ULONG_PTR)Expected << 8 | Routine,
                     (ULONG_PTR)Call->KernelRoutine, (ULONG_PTR)Call->Apc, (ULONG_PTR)NormalRoutine);
    }
}

/* At APC_LEVEL, and returns there: the caller lowers to Call->OldIrql. */
static VOID KiCallKernelRoutine(PKTHREAD Thread, PKI_APC_CALL Call)
{
    PKNORMAL_ROUTINE NormalRoutine = Call->NormalRoutine;
    KI_CALLBACK Callback;
    KiBeginCallback(Thread, &Callback);
    Call->KernelRoutine(Call->Apc, &Call->NormalRoutine, &Call->NormalContext, &Call->SystemArgument1,
                        &Call->SystemArgument2);
    KiCheckApcLevel(Thread, APC_LEVEL, KI_KERNEL_ROUTINE_OF_APC, Call, NormalRoutine);
    KiEndCallback(Thread, &Callback, KiCallbackApc, (PVOID)Call->KernelRoutine);
}

BOOLEAN KiKernelApcDeliverable(PKTHREAD Thread)
{
    return Thread->Irql < APC_LEVEL && Thread->SpecialApcDisable == 0 && Thread->DispatcherDepth == 0 &&
           __atomic_load_n(&Thread->State, __ATOMIC_RELAXED) == Running;
}

/* One of the queued kernel APCs may run now. relaxed: a thread that queues an APC for a running one interrupts it */
static BOOLEAN KiHasKernelApc(PKTHREAD Thread)
{
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    BOOLEAN NormalOk = Thread->KernelApcDisable == 0 && !Thread->ApcState.KernelApcInProgress;
    return (Register & (NormalOk ? KI_WAIT_APC : KI_WAIT_SPECIAL_APC)) != 0 && KiKernelApcDeliverable(Thread);
}

/* Reads the register again after each section of KiTakeApc: that section's end delivers nothing itself. */
VOID KiDeliverApc(PKTHREAD Thread)
{
    KI_APC_CALL Call;
    KI_CALLBACK Callback;
    if (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_THREAD_WANTED) {
        KiStartWantedThreads(Thread);
    }
    KiExitIfRequested(Thread);
    while (KiHasKernelApc(Thread)) {
        if (!KiTakeApc(Thread, KernelMode, &Call)) {
            continue;
        }
        BOOLEAN Normal = Call.NormalRoutine != NULL;
        KiCallKernelRoutine(Thread, &Call);
        PKNORMAL_ROUTINE NormalRoutine = Normal ? Call.NormalRoutine : NULL;
        /* Before the level drops: a thread whose APC is in progress is not ended. */
        Thread->ApcState.KernelApcInProgress |= NormalRoutine != NULL;
        __atomic_signal_fence(__ATOMIC_RELEASE); /* for the interrupt, which runs on this thread */
        Thread->Irql = Call.OldIrql;
        if (NormalRoutine != NULL) {
            KiBeginCallback(Thread, &Callback);
            NormalRoutine(Call.NormalContext, Call.SystemArgument1, Call.SystemArgument2);
            KiCheckApcLevel(Thread, PASSIVE_LEVEL, KI_NORMAL_ROUTINE_OF_APC, &Call, NormalRoutine);
            KiEndCallback(Thread, &Callback, KiCallbackApc, (PVOID)NormalRoutine);
            Thread->ApcState.KernelApcInProgress = FALSE;
        }
    }
    KiExitIfRequested(Thread);
}

/* The routines run in user mode, even if the interrupted wait belongs to a service. */
VOID KiDeliverUserApcs(PKTHREAD Thread)
{
    KI_APC_CALL Call;
    while (!KiIsExiting(Thread) && KiTakeApc(Thread, UserMode, &Call)) {
        KiCallKernelRoutine(Thread, &Call);
        Thread->Irql = Call.OldIrql;
        if (Call.NormalRoutine != NULL) {
            UCHAR ServiceDepth = Thread->ServiceDepth;
            Thread->ServiceDepth = 0;
            if (KiIsDeliveryPending(Thread)) {
                KiDeliverApc(Thread); /* what was requested while the kernel routine ran */
            }
            Call.NormalRoutine(Call.NormalContext, Call.SystemArgument1, Call.SystemArgument2);
            Thread->ServiceDepth = ServiceDepth;
        }
    }
    if (KiIsDeliveryPending(Thread)) {
        KiDeliverApc(Thread);
    }
}

static PKAPC KiDetachAnyApc(PKTHREAD Thread)
{
    PKAPC Apc = NULL;
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Thread->ApcQueueLock);
    Thread->ApcQueueable = FALSE;
    for (ULONG Mode = KernelMode; Mode < MaximumMode && Apc == NULL; Mode += 1) {
        PLIST_ENTRY Head = &Thread->ApcState.ApcListHead[Mode];
        if (!IsListEmpty(Head)) {
            Apc = KiApcOf(Head->Flink);
            KiUnlinkApc(Apc);
        }
    }
    KiReleaseLock(&Thread->ApcQueueLock);
    KiExitDispatcher(Thread);
    return Apc;
}

VOID KiFlushThreadApcs(PKTHREAD Thread)
{
    PKAPC Apc;
    KiDeliverApc(Thread);
    while ((Apc = KiDetachAnyApc(Thread)) != NULL) {
        if (Apc->RundownRoutine != NULL) {
            Apc->RundownRoutine(Apc);
        }
    }
}

/* Regions. Only the thread itself uses the counts; during a wait, KiWaitFlags shows other threads which APCs they
   permit. */

static VOID KiLeaveRegion(PKTHREAD Thread, SHORT *Count)
{
    if (*Count >= 0) {
        KeBugCheckEx(APC_INDEX_MISMATCH, (ULONG_PTR)__builtin_return_address(0), (ULONG_PTR)Thread->ApcState.KernelApcInProgress,
                     (ULONG_PTR)(USHORT)Thread->KernelApcDisable, (ULONG_PTR)(USHORT)Thread->SpecialApcDisable);
    }
    *Count += 1;
    if (*Count == 0 && KiIsDeliveryPending(Thread)) {
        KiDeliverApc(Thread);
    }
}

VOID KeEnterCriticalRegion(VOID)
{
    KiCurrentThread()->KernelApcDisable -= 1;
}

VOID KeLeaveCriticalRegion(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    KiLeaveRegion(Thread, &Thread->KernelApcDisable);
}

VOID KeEnterGuardedRegion(VOID)
{
    KiCurrentThread()->SpecialApcDisable -= 1;
}

VOID KeLeaveGuardedRegion(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    KiLeaveRegion(Thread, &Thread->SpecialApcDisable);
}

BOOLEAN KeAreApcsDisabled(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    return Thread->KernelApcDisable != 0 || Thread->SpecialApcDisable != 0;
}

BOOLEAN KeAreAllApcsDisabled(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    return Thread->SpecialApcDisable != 0 || Thread->Irql >= APC_LEVEL;
}

/*
 * Thread alerts, and waiting until another thread alerts this one by its id. Both are pending bits of the wait
 * status register.
 *
 * 1. An alert by id is the AlertByIdPending bit, so it stays pending until the thread waits for it, and two merge into
 *    one. It neither ends nor satisfies any other wait.
 * 2. The bit is set by a read-modify-write even if it is already pending: a thread that takes the alert sees what every
 *    thread that alerted it did before.
 * 3. A wait that finds the alert pending, or sees it arrive while it spins, neither sleeps nor begins: the register is
 *    all that both sides touch.
 * 4. The wait is not alertable, and has no object, so a suspension converts it. Its one block shows the hint.
 * The wait itself is in wait.c.
 */

static VOID KiCheckMode(KPROCESSOR_MODE Mode)
{
    if ((UCHAR)Mode >= MaximumMode) {
        RtlFailFast(FAST_FAIL_INVALID_ARG);
    }
}

BOOLEAN KeAlertThread(PKTHREAD Thread, KPROCESSOR_MODE AlertMode)
{
    KiCheckMode(AlertMode);
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    ULONG Before = KiInterruptWait(Thread, KI_WAIT_ALERT | KI_WAIT_ALERTED((UCHAR)AlertMode), ALERT_INCREMENT);
    KiExitDispatcher(Current);
    return (Before & KI_WAIT_ALERTED((UCHAR)AlertMode)) != 0;
}

BOOLEAN KeTestAlertThread(KPROCESSOR_MODE AlertMode)
{
    KiCheckMode(AlertMode);
    return KiClearAlert(KiCurrentThread(), AlertMode);
}

ULONG KeAlertResumeThread(PKTHREAD Thread)
{
    KeAlertThread(Thread, KernelMode);
    return KeResumeThread(Thread);
}

VOID KeAlertThreadById(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    KiInterruptWait(Thread, KI_WAIT_ALERT_BY_ID_PENDING, ALERT_INCREMENT);
    KiExitDispatcher(Current);
}
