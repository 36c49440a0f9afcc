/*
 * apc.c: asynchronous procedure calls.
 *
 * Under ApcQueueLock: the two lists of a thread and KAPC.Inserted. Special kernel APCs (without a NormalRoutine) precede
 * normal ones, up to LastSpecial. The register's Apc, SpecialApc and UserApc bits say what the lists hold; they change
 * under the lock, too, so a wait never ends for an APC that has already been taken.
 */
#include "wait.h"

#include "callback.h"

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

/* Returns the pending bits of the register for it. */
static ULONG KiLinkApc(PKAPC_STATE State, PKAPC Apc)
{
    if (KiIsSpecial(Apc)) {
        InsertHeadList(State->LastSpecial, &Apc->ApcListEntry);
        State->LastSpecial = &Apc->ApcListEntry;
        return KI_WAIT_APC | KI_WAIT_SPECIAL_APC;
    }
    InsertTailList(&State->ApcListHead[(UCHAR)Apc->ApcMode], &Apc->ApcListEntry);
    return Apc->ApcMode == UserMode ? KI_WAIT_USER_APC : KI_WAIT_APC;
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
        ULONG Pending = KiLinkApc(&Thread->ApcState, Apc);
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
    PKKERNEL_ROUTINE KernelRoutine;
    PKNORMAL_ROUTINE NormalRoutine;
    PVOID NormalContext;
    PVOID SystemArgument1;
    PVOID SystemArgument2;
} KI_APC_CALL, *PKI_APC_CALL;

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
                                  Apc->KernelRoutine,
                                  Apc->NormalRoutine,
                                  Apc->NormalContext,
                                  Apc->SystemArgument1,
                                  Apc->SystemArgument2};
            KiUnlinkApc(Apc);
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

static VOID KiCallNormalRoutine(PKTHREAD Thread, PKI_APC_CALL Call)
{
    PKNORMAL_ROUTINE NormalRoutine = Call->NormalRoutine;
    KI_CALLBACK Callback;
    Thread->ApcState.KernelApcInProgress = TRUE;
    KiBeginCallback(Thread, &Callback);
    NormalRoutine(Call->NormalContext, Call->SystemArgument1, Call->SystemArgument2);
    KiCheckApcLevel(Thread, PASSIVE_LEVEL, KI_NORMAL_ROUTINE_OF_APC, Call, NormalRoutine);
    KiEndCallback(Thread, &Callback, KiCallbackApc, (PVOID)NormalRoutine);
    Thread->ApcState.KernelApcInProgress = FALSE;
}

static VOID KiCallKernelRoutine(PKTHREAD Thread, PKI_APC_CALL Call)
{
    PKNORMAL_ROUTINE NormalRoutine = Call->NormalRoutine;
    KIRQL OldIrql = Thread->Irql;
    KI_CALLBACK Callback;
    Thread->Irql = APC_LEVEL;
    KiBeginCallback(Thread, &Callback);
    Call->KernelRoutine(Call->Apc, &Call->NormalRoutine, &Call->NormalContext, &Call->SystemArgument1,
                        &Call->SystemArgument2);
    KiCheckApcLevel(Thread, APC_LEVEL, KI_KERNEL_ROUTINE_OF_APC, Call, NormalRoutine);
    KiEndCallback(Thread, &Callback, KiCallbackApc, (PVOID)Call->KernelRoutine);
    Thread->Irql = OldIrql;
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
        if (Normal && Call.NormalRoutine != NULL) {
            KiCallNormalRoutine(Thread, &Call);
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
        if (Call.NormalRoutine != NULL) {
            UCHAR ServiceDepth = Thread->ServiceDepth;
            Thread->ServiceDepth = 0;
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

/* Regions. The counts belong to the thread; a wait shows other threads what they allow (KiWaitFlags). */

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
