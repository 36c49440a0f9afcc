/* wait.c: KeWaitForSingleObject, KeWaitForMultipleObjects and the steps of a wait. Theory in wait.h. */
#include "block.h"
#include "irql.h"
#include "timer.h"

static VOID KiCheckWaitLevel(PKTHREAD Thread, PVOID Object, PLARGE_INTEGER Timeout)
{
    if (Thread->Irql < DISPATCH_LEVEL || (Timeout != NULL && Timeout->QuadPart == 0)) {
        return;
    }
    if (Thread->DpcDepth != 0) {
        KeBugCheckEx(ATTEMPTED_SWITCH_FROM_DPC, (ULONG_PTR)Thread, (ULONG_PTR)Object, 0, 0);
    }
    KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Object, Thread->Irql, 0, (ULONG_PTR)__builtin_return_address(0));
}

/* A signal with Wait TRUE left the thread at DISPATCH_LEVEL for this wait to come down from. */
static VOID KiResolveWaitNext(PKTHREAD Thread)
{
    if (Thread->WaitNext) {
        Thread->WaitNext = FALSE;
        KfLowerIrql(Thread->WaitIrql);
    }
}

VOID KiSetWaitNext(PKTHREAD Thread)
{
    Thread->WaitIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    Thread->WaitNext = TRUE;
}

static HAL_DEADLINE KiDeadline(PLARGE_INTEGER Timeout)
{
    HAL_DEADLINE Deadline = {HalNoDeadline, 0};
    if (Timeout == NULL) {
        return Deadline;
    }
    if (Timeout->QuadPart > 0) {
        Deadline.Clock = HalSystemTime;
        Deadline.Time = (ULONGLONG)Timeout->QuadPart;
    } else {
        Deadline.Clock = HalInterruptTime;
        Deadline.Time = HalDispatch.QueryInterruptTime() + (0 - (ULONGLONG)Timeout->QuadPart);
    }
    return Deadline;
}

VOID KiInitializeWait(PKI_WAIT Wait, PVOID Object, KWAIT_REASON Reason, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
                      PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    KiResolveWaitNext(Thread);
    KiCheckWaitLevel(Thread, Object, Timeout);
    Wait->Thread = Thread;
    Wait->Objects = NULL;
    Wait->Order = NULL;
    Wait->Blocks = Thread->WaitBlock;
    Wait->Count = 0;
    Wait->WaitType = WaitAny;
    Wait->Reason = Reason;
    Wait->Mode = Mode;
    Wait->Alertable = Alertable;
    Wait->Poll = Timeout != NULL && Timeout->QuadPart == 0;
    Wait->Flags = 0;
    Wait->Spun = FALSE;
    Wait->Deadline = Wait->Poll ? KiDeadline(NULL) : KiDeadline(Timeout);
}

VOID KiPrepareBlock(PKWAIT_BLOCK Block, PKTHREAD Thread, PVOID Object, UCHAR WaitType, USHORT Key)
{
    Block->WaitType = WaitType;
    Block->BlockState = WaitBlockInactive;
    Block->WaitKey = Key;
    Block->SpareLong = 0;
    Block->Thread = Thread;
    Block->Object = Object;
    Block->SparePtr = NULL;
}

/* With the object locked. */
static VOID KiNoteType(PKI_WAIT Wait, PKWAIT_BLOCK Block, ULONG64 Word)
{
    Wait->Types[Block->WaitKey] = (UCHAR)KI_TYPE(Word);
}

/* With the object locked: afterwards it may be gone. The owner of a mutant runs at least at the waiter's priority. */
static VOID KiLendToOwner(PKI_WAIT Wait, PKWAIT_BLOCK Block)
{
    if (Wait->Types[Block->WaitKey] == MutantObject) {
        PKMUTANT Mutant = CONTAINING_RECORD((PDISPATCHER_HEADER)Block->Object, KMUTANT, Header);
        /* relaxed: KTHREADs are never unmapped, and a boost for one that is the owner no more decays */
        KiLendPriority(Wait->Thread, __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED));
    }
}

/*
 * The block goes on the list of its object, unless the object is signaled: then the thread tries to end its own wait
 * and consumes it. Returns TRUE when the wait is over, by this object or by one linked before.
 */
static BOOLEAN KiLinkOrConsume(PKI_WAIT Wait, PKWAIT_BLOCK Block, NTSTATUS *Status)
{
    PDISPATCHER_HEADER Header = Block->Object;
    ULONG64 Word = KiLockObject(Header);

    KiNoteType(Wait, Block, Word);
    if (!KiIsSignaledFor(Header, Word, Wait->Thread)) {
        if (!Wait->Poll) {
            KiLinkBlock(Block);
            KiLendToOwner(Wait, Block);
        }
        KiUnlockObject(Header, Word);
        return FALSE;
    }
    if (KiEndOwnWait(Wait->Thread)) {
        *Status = KiConsumeHeld(Header, Wait->Thread) == STATUS_ABANDONED ? STATUS_ABANDONED_WAIT_0 + Block->WaitKey
                                                                         : STATUS_WAIT_0 + Block->WaitKey;
    } else {
        *Status = STATUS_PENDING; /* a signal through an earlier block was faster; KiCommitWait finds out */
    }
    KiUnlockObject(Header, KiReadHeader(Header));
    return TRUE;
}

static NTSTATUS KiLinkAny(PKI_WAIT Wait)
{
    NTSTATUS Status;
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        if (KiLinkOrConsume(Wait, &Wait->Blocks[Index], &Status)) {
            return Status;
        }
    }
    return STATUS_PENDING;
}

static NTSTATUS KiLinkAll(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    NTSTATUS Status = STATUS_PENDING;

    Thread->WaitAllOrder = Wait->Order;
    KiLockInOrder(Thread);
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        KiNoteType(Wait, &Wait->Blocks[Index], KiReadHeader(Wait->Blocks[Index].Object));
    }
    if (KiAllSignaledFor(Thread)) {
        KiEndOwnWait(Thread);
        Status = KiConsumeAll(Thread);
    } else if (!Wait->Poll) {
        KiLinkWaitAll(Thread);
        for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
            KiLendToOwner(Wait, &Wait->Blocks[Index]);
        }
    }
    KiUnlockInOrder(Thread);
    return Status;
}

/* Takes off whatever the end of the wait has left linked. */
static VOID KiUnlinkBlocks(PKI_WAIT Wait)
{
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        PKWAIT_BLOCK Block = &Wait->Blocks[Index];
        /* acquire: pairs with the release store in KiUnlinkBlock */
        if (__atomic_load_n(&Block->BlockState, __ATOMIC_ACQUIRE) != WaitBlockActive) {
            continue;
        }
        PDISPATCHER_HEADER Header = Block->Object;
        ULONG64 Word = KiLockObject(Header);
        if (Block->BlockState == WaitBlockActive) {
            KiUnlinkBlock(Block, WaitBlockInactive);
        }
        KiUnlockObject(Header, Word);
    }
}

VOID KiTakeOwnershipIfMutant(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    ULONG64 Word = KiReadHeader(Header);
    if (KI_TYPE(Word) == MutantObject && KI_STATE(Word) == 0) {
        KiTakeOwnershipOf(CONTAINING_RECORD(Header, KMUTANT, Header), Thread);
    }
}

/* Requirement 6 of wait.h. */
static VOID KiTakeOwnershipOfNoted(PKI_WAIT Wait, ULONG Index)
{
    if (Index < Wait->Count && Wait->Types[Index] == MutantObject) {
        KiTakeOwnershipIfMutant(Wait->Objects[Index], Wait->Thread);
    }
}

static VOID KiTakeOwnerships(PKI_WAIT Wait, NTSTATUS Status)
{
    BOOLEAN Satisfied = Status < STATUS_WAIT_0 + MAXIMUM_WAIT_OBJECTS;
    BOOLEAN Abandoned = Status >= STATUS_ABANDONED_WAIT_0 && Status < STATUS_ABANDONED_WAIT_0 + MAXIMUM_WAIT_OBJECTS;
    if (!NT_SUCCESS(Status) || (!Satisfied && !Abandoned)) {
        return;
    }
    if (Wait->WaitType == WaitAny) {
        KiTakeOwnershipOfNoted(Wait, (ULONG)(Status - (Abandoned ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0)));
        return;
    }
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        KiTakeOwnershipOfNoted(Wait, Index);
    }
}

static VOID KiPrepareBlocks(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    ULONG Count = Wait->WaitType == KI_HINT_BLOCK ? 1 : Wait->Count;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        KiPrepareBlock(&Wait->Blocks[Index], Thread, Wait->Objects[Index], Wait->WaitType, (USHORT)Index);
    }
    Thread->WaitBlockList = Wait->Blocks;
    Thread->WaitBlockCount = (UCHAR)Count;
}

/* One attempt: from begin to unlink. STATUS_KERNEL_APC: a kernel APC wants to run first. */
FORCEINLINE NTSTATUS KiWaitOnce(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    BOOLEAN EndedByOther = FALSE;
    LONG_PTR Result;

    NTSTATUS Status = KiBeginWait(Thread, KiWaitFlags(Thread, Wait->Mode, Wait->Alertable) | Wait->Flags);
    if (Status != STATUS_PENDING) {
        return Status;
    }
    KiPrepareBlocks(Wait);
    Status = Wait->WaitType == WaitAll ? KiLinkAll(Wait) : KiLinkAny(Wait);
    if (Status == STATUS_PENDING && Wait->Poll && KiEndOwnWait(Thread)) {
        Status = STATUS_TIMEOUT;
    }
    if (Status == STATUS_PENDING) {
        Status = KiCommitAndPark(Wait, &EndedByOther, &Result);
        KiUnlinkBlocks(Wait);
        KiLeaveWaitState(Wait, EndedByOther);
    } else {
        KiUnlinkBlocks(Wait);
    }
    return Status;
}

NTSTATUS KiWait(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    for (;;) {
        KiEnterDispatcher(Thread);
        NTSTATUS Status = KiWaitOnce(Wait);
        KiTakeOwnerships(Wait, Status);
        KiExitDispatcher(Thread);
        if (Status != STATUS_KERNEL_APC) {
            if (Status == STATUS_TIMEOUT) {
                KiPollClock();
            }
            return Status;
        }
        KiDeliverApc(Thread);
        KiPollClock();
    }
}

static BOOLEAN KiIsAtMutantLimit(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    ULONG64 Word = KiReadHeader(Header);
    return KI_TYPE(Word) == MutantObject && KI_STATE(Word) == KI_MUTANT_LIMIT && KiIsSignaledFor(Header, Word, Thread);
}

/* The end of a wait that kernel code asked for: user APCs run, and what the kernel raises is raised. */
static NTSTATUS KiFinishWait(NTSTATUS Status)
{
    if (Status == STATUS_USER_APC) {
        KiDeliverUserApcs(KiCurrentThread());
    } else if (Status == STATUS_MUTANT_LIMIT_EXCEEDED) {
        KiRaiseStatus(Status);
    }
    return Status;
}

/* TRUE: something is pending that keeps the wait from looking at any object, and *Status says what. */
static BOOLEAN KiIsAlerted(PKI_WAIT Wait, NTSTATUS *Status)
{
    if (!Wait->Alertable) {
        return FALSE;
    }
    *Status = KiTakeAlert(Wait->Thread, KiWaitFlags(Wait->Thread, Wait->Mode, TRUE));
    return *Status != STATUS_PENDING;
}

/* For an object that cannot be taken at once. Who has looked leaves the next look to the spin, or to the link. */
FORCEINLINE NTSTATUS KiAwaitObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                   PLARGE_INTEGER Timeout)
{
    BOOLEAN Looked = KiMayConsumeAtOnce(KiCurrentThread(), Alertable);
    KI_WAIT Wait;
    NTSTATUS Status;

    KiInitializeWait(&Wait, Object, WaitReason, WaitMode, Alertable, Timeout);
    PKTHREAD Thread = Wait.Thread;
    if (KiIsAtMutantLimit(Object, Thread)) {
        return STATUS_MUTANT_LIMIT_EXCEEDED;
    }
    if (KiIsAlerted(&Wait, &Status) || ((Wait.Poll || !Looked) && KiTryConsume(Object, Thread, &Status))) {
        return Status;
    }
    if (Wait.Poll) {
        return STATUS_TIMEOUT;
    }
    if (KiSpinForObject(Object, Thread, &Status)) {
        return Status;
    }
    Wait.Objects = &Object;
    Wait.Count = 1;
    Wait.Spun = TRUE;
    return KiWait(&Wait);
}

FORCEINLINE NTSTATUS KiEnterMutantOrAwait(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                          BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status;
    if (KI_TYPE(KiReadHeader(Object)) == MutantObject && KiMayConsumeAtOnce(Thread, Alertable) &&
        KiTryEnterMutant(Object, Thread, &Status)) {
        return Status;
    }
    return KiAwaitObject(Object, WaitReason, WaitMode, Alertable, Timeout);
}

NTSTATUS KiWaitForSingleObjectSlow(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                   PLARGE_INTEGER Timeout)
{
    return KiEnterMutantOrAwait(Object, WaitReason, WaitMode, Alertable, Timeout);
}

static DECLSPEC_NOINLINE NTSTATUS KiWaitAndFinish(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return KiFinishWait(KiEnterMutantOrAwait(Object, WaitReason, WaitMode, Alertable, Timeout));
}

NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                               PLARGE_INTEGER Timeout)
{
    return KiTryConsumeAtOnce(Object, Alertable) ? STATUS_SUCCESS
                                                 : KiWaitAndFinish(Object, WaitReason, WaitMode, Alertable, Timeout);
}

static PKWAIT_BLOCK KiChooseBlocks(PKTHREAD Thread, ULONG Count, PKWAIT_BLOCK WaitBlockArray)
{
    ULONG Most = WaitBlockArray != NULL ? MAXIMUM_WAIT_OBJECTS : THREAD_WAIT_OBJECTS;
    if (Count > Most) {
        KeBugCheckEx(MAXIMUM_WAIT_OBJECTS_EXCEEDED, Count, Most, (ULONG_PTR)Thread, (ULONG_PTR)WaitBlockArray);
    }
    return WaitBlockArray != NULL ? WaitBlockArray : Thread->WaitBlock;
}

/* Looks at the objects in order, as the documented function does, and takes the first one that is signaled. */
FORCEINLINE BOOLEAN KiTryConsumeFirst(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ULONG64 Word = KiReadHeader(Object[Index]);
        if (KI_STATE(Word) <= 0 && !(Word & KI_LOCKED) && KI_TYPE(Word) != MutantObject) {
            continue;
        }
        if (KiIsAtMutantLimit(Object[Index], Thread)) {
            *Status = STATUS_MUTANT_LIMIT_EXCEEDED;
            return TRUE;
        }
        if (KiTryConsume(Object[Index], Thread, Status)) {
            *Status += (NTSTATUS)Index;
            return TRUE;
        }
    }
    return FALSE;
}

BOOLEAN KiTryConsumeAny(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    return KiTryConsumeFirst(Object, Count, Thread, Status);
}

static VOID KiInitializeMultipleWait(PKI_WAIT Wait, PVOID Object[], ULONG Count, WAIT_TYPE WaitType,
                                     PKWAIT_BLOCK Blocks)
{
    Wait->Objects = Object;
    Wait->Blocks = Blocks;
    Wait->Count = Count;
    Wait->WaitType = (UCHAR)WaitType;
    Wait->Flags = WaitType == WaitAll ? KI_WAIT_LIGHT : 0;
}

/* Looked: it was done at once, and none of the objects was signaled. */
static NTSTATUS KiWaitForAny(PKI_WAIT Wait, BOOLEAN Looked)
{
    NTSTATUS Status;
    if (!Looked &&
        (KiIsAlerted(Wait, &Status) || KiTryConsumeAny(Wait->Objects, Wait->Count, Wait->Thread, &Status))) {
        return Status;
    }
    if (Wait->Poll) {
        return STATUS_TIMEOUT;
    }
    if (KiSpinForAny(Wait->Objects, Wait->Count, Wait->Thread, &Status)) {
        return Status;
    }
    Wait->Spun = TRUE;
    return KiWait(Wait);
}

static NTSTATUS KiWaitForAll(PKI_WAIT Wait)
{
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        if (KiIsAtMutantLimit(Wait->Objects[Index], Wait->Thread)) {
            return STATUS_MUTANT_LIMIT_EXCEEDED;
        }
    }
    return KiWait(Wait);
}

static DECLSPEC_NOINLINE NTSTATUS KiWaitForMultipleObjectsSlow(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                                               KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                                               BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                                               PKWAIT_BLOCK Blocks)
{
    BOOLEAN Looked = KiMayConsumeAtOnce(KiCurrentThread(), Alertable);
    UCHAR Order[MAXIMUM_WAIT_OBJECTS];
    KI_WAIT Wait;

    if (WaitType == WaitAll && !KiSortObjects(Object, Count, Order)) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    KiInitializeWait(&Wait, Object[0], WaitReason, WaitMode, Alertable, Timeout);
    KiInitializeMultipleWait(&Wait, Object, Count, WaitType, Blocks);
    if (WaitType == WaitAny) {
        return KiWaitForAny(&Wait, Looked);
    }
    Wait.Order = Order;
    return KiWaitForAll(&Wait);
}

NTSTATUS KiWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                  KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray)
{
    PKTHREAD Thread = KiCurrentThread();
    PKWAIT_BLOCK Blocks = KiChooseBlocks(Thread, Count, WaitBlockArray);
    NTSTATUS Status;

    if (Count == 0) {
        return STATUS_INVALID_PARAMETER_1;
    }
    if (WaitType != WaitAny && WaitType != WaitAll) {
        return STATUS_INVALID_PARAMETER_3;
    }
    if (KiMayConsumeAtOnce(Thread, Alertable) &&
        (WaitType == WaitAny ? KiTryConsumeFirst(Object, Count, Thread, &Status)
                             : KiTryConsumeAll(Object, Count, Thread, &Status))) {
        return Status;
    }
    return KiWaitForMultipleObjectsSlow(Count, Object, WaitType, WaitReason, WaitMode, Alertable, Timeout, Blocks);
}

NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                  KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray)
{
    return KiFinishWait(KiWaitForMultipleObjects(Count, Object, WaitType, WaitReason, WaitMode, Alertable, Timeout,
                                                 WaitBlockArray));
}

NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Interval)
{
    LARGE_INTEGER Time = *Interval;
    KI_WAIT Wait;

    KiInitializeWait(&Wait, NULL, DelayExecution, WaitMode, Alertable, &Time);
    Wait.Flags = KI_WAIT_LIGHT;
    Wait.Spun = TRUE;
    NTSTATUS Status = KiWait(&Wait);
    if (Status != STATUS_TIMEOUT) {
        return KiFinishWait(Status);
    }
    if (Wait.Poll) {
        HalDispatch.Yield();
    }
    return STATUS_SUCCESS;
}
