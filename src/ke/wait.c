/* wait.c: the waiter's side: KeWaitForSingleObject, KeWaitForMultipleObjects and the steps of a wait. Theory in wait.h. */
#include "wait.h"
#include "irql.h"
#include "timer.h"

/* Before the wait. */

static DECLSPEC_NOINLINE VOID KiCheckHighWait(PKTHREAD Thread, PVOID Object, PLARGE_INTEGER Timeout, PVOID Caller)
{
    if (Timeout != NULL && Timeout->QuadPart == 0) {
        return;
    }
    if (Thread->DpcDepth != 0) {
        KeBugCheckEx(ATTEMPTED_SWITCH_FROM_DPC, (ULONG_PTR)Thread, (ULONG_PTR)Object, 0, 0);
    }
    KiBugCheckBecause(Thread->Irql == DISPATCH_LEVEL ? "waited at DISPATCH_LEVEL" : "waited above DISPATCH_LEVEL",
                      IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Object, Thread->Irql, 0, (ULONG_PTR)Caller);
}

/*
 * From here to the wait the thread is at DISPATCH_LEVEL, so it takes no APC and is not suspended. It does not own a
 * processor: taking one could block, and nothing but the wait may follow. Prcb names one for readers of its number;
 * interrupts, and a caller that lowers the level instead of waiting, use the Owner word.
 */
VOID KiSetWaitNext(PKTHREAD Thread)
{
    KIRQL OldIrql = Thread->Irql;
    if (OldIrql < DISPATCH_LEVEL) {
        PKPRCB Prcb = KiCurrentPrcb(Thread);
        __atomic_store_n(&Thread->LastPrcb, Prcb, __ATOMIC_RELAXED);
        KiSetIrql(Thread, DISPATCH_LEVEL);
        Thread->Prcb = Prcb;
    }
    /* The level first: a suspension that interrupts the thread waits itself, and must not apply WaitNext to its own
       wait. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Thread->WaitIrql = OldIrql;
    Thread->WaitNext |= KI_WAIT_NEXT_SIGNALED;
}

NTSTATUS KiSetWaitNextIf(BOOLEAN Wait, NTSTATUS Status)
{
    if (Wait && NT_SUCCESS(Status)) {
        KiSetWaitNext(KiCurrentThread());
    }
    return Status;
}

FORCEINLINE VOID KiResolveWaitNext(PKTHREAD Thread)
{
    Thread->WaitNext &= (UCHAR)~KI_WAIT_NEXT_SIGNALED;
    if (Thread->Prcb == NULL || KiOwnerThread(KiReadOwner(Thread->Prcb)) == Thread) {
        KfLowerIrql(Thread->WaitIrql);
    } else {
        Thread->Prcb = NULL;
        KiLowerSoftwareIrql(Thread, Thread->WaitIrql);
    }
}

static DECLSPEC_NOINLINE VOID KiPrecedeVerifiedWait(PKTHREAD Thread, PLARGE_INTEGER Timeout)
{
    if (Thread->WaitNext & KI_WAIT_NEXT_SIGNALED) {
        KiResolveWaitNext(Thread);
    }
    Thread->OrderWaits = Timeout == NULL;
    Thread->OrderWait += 1;
}

/* Of a timeout other than 0. */
static DECLSPEC_NOINLINE HAL_DEADLINE KiDeadline(PLARGE_INTEGER Timeout)
{
    HAL_DEADLINE Deadline;
    if (Timeout->QuadPart > 0) {
        Deadline.Clock = HalSystemTime;
        Deadline.Time = (ULONGLONG)Timeout->QuadPart;
    } else {
        Deadline.Clock = HalInterruptTime;
        Deadline.Time = HalDispatch.QueryInterruptTime() + (0 - (ULONGLONG)Timeout->QuadPart);
    }
    return Deadline;
}

FORCEINLINE VOID KiInitializeWaitOf(PKTHREAD Thread, PKI_WAIT Wait, PVOID Object, KWAIT_REASON Reason,
                                    KPROCESSOR_MODE Mode, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    if (Thread->WaitNext != 0) {
        if (__builtin_expect((Thread->WaitNext & KI_WAIT_NEXT_VERIFIED) != 0, FALSE)) {
            KiPrecedeVerifiedWait(Thread, Timeout);
        } else {
            KiResolveWaitNext(Thread);
        }
    }
    if (__builtin_expect(Thread->Irql >= DISPATCH_LEVEL, FALSE)) {
        KiCheckHighWait(Thread, Object, Timeout, __builtin_return_address(0));
    }
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
    if (Timeout == NULL || Wait->Poll) {
        Wait->Deadline = (HAL_DEADLINE){HalNoDeadline, 0};
    } else {
        Wait->Deadline = KiDeadline(Timeout);
    }
}

VOID KiInitializeWait(PKI_WAIT Wait, PVOID Object, KWAIT_REASON Reason, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
                      PLARGE_INTEGER Timeout)
{
    KiInitializeWaitOf(KiCurrentThread(), Wait, Object, Reason, Mode, Alertable, Timeout);
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

/* Consuming without a wait. */

/* The header was found locked. */
static DECLSPEC_NOINLINE BOOLEAN KiTryConsumeLocked(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    if (KiIsOutside(Header)) {
        return KiTryConsumeOutside(Header, Thread, Status);
    }
    KiReadSettledHeader(Header);
    return KiTryConsume(Header, Thread, Status);
}

BOOLEAN KiTryConsume(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    ULONG64 Word = KiReadHeader(Header);
    if (KI_TYPE(Word) == MutantObject) {
        return KiTryAcquireMutant(CONTAINING_RECORD(Header, KMUTANT, Header), Thread, Status);
    }
    for (;;) {
        if (Word & KI_LOCKED) {
            return KiTryConsumeLocked(Header, Thread, Status);
        }
        if (KI_STATE(Word) <= 0) {
            return FALSE;
        }
        /* An object that does not change still needs the compare-exchange: it synchronises with the signaler. */
        if (KiCompareExchangeHeader(Header, &Word, KiConsumed(Word))) {
            *Status = STATUS_SUCCESS;
            return TRUE;
        }
    }
}

/*
 * Many is a constant in each caller. TRUE: a wait for any of so many objects that a status of Windows cannot hold the
 * index of each; the two ranges KI_MANY_ hold it. A wait for up to 64 objects compiles to the same code as without it.
 * Shape is a constant likewise: the waits for one object and for an alert, the most frequent ones, compile to code
 * without loops.
 */

typedef enum _KI_WAIT_SHAPE {
    KiNoObject, /* the one block is that of a hint */
    KiOneObject,
    KiFewObjects,
    KiManyObjects
} KI_WAIT_SHAPE;

FORCEINLINE ULONG KiLinkedBlocks(PKI_WAIT Wait, KI_WAIT_SHAPE Shape)
{
    return Shape <= KiOneObject ? (ULONG)Shape : Wait->Count;
}

FORCEINLINE BOOLEAN KiIsAtMutantLimit(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    ULONG64 Word = KiReadHeader(Header);
    return KI_TYPE(Word) == MutantObject && KI_STATE(Word) == KI_MUTANT_LIMIT && KiIsSignaledFor(Header, Word, Thread);
}

/* At most KOBJECT_TYPE_MASK if no thread can consume the object: its state is 0, it is not locked, and it is not a mutant,
   which its owner may acquire again. One number, so that one branch tests several objects. */
FORCEINLINE ULONG64 KiSignsOfSignal(PDISPATCHER_HEADER Header)
{
    ULONG64 Word = KiReadHeader(Header) & (~(ULONG64)0 << 32 | KI_LOCKED | KOBJECT_TYPE_MASK);
    return (Word ^ MutantObject) - 1;
}

/* How many of the first objects no thread can consume. A wait for many objects spends its time here, so it tests them in
   groups of four: a branch for each costs more than the tests, and processors mispredict the end of a long loop. The
   last few, like all of a short wait, are tested one by one: an object of a group that fails is tested twice. */
FORCEINLINE ULONG KiSkipUnsignaled(PVOID Object[], ULONG Count)
{
    ULONG Index = 0;
    while (Count - Index > 8 &&
           (KiSignsOfSignal(Object[Index]) | KiSignsOfSignal(Object[Index + 1]) | KiSignsOfSignal(Object[Index + 2]) |
            KiSignsOfSignal(Object[Index + 3])) <= KOBJECT_TYPE_MASK) {
        Index += 4;
    }
    while (Index < Count && KiSignsOfSignal(Object[Index]) <= KOBJECT_TYPE_MASK) {
        Index += 1;
    }
    return Index;
}

/* Tests the objects in order, as documented, and consumes the first signaled one. */
FORCEINLINE BOOLEAN KiTryConsumeFirst(PVOID Object[], ULONG Count, PKTHREAD Thread, BOOLEAN Many, NTSTATUS *Status)
{
    ULONG Index = 0;
    while ((Index += KiSkipUnsignaled(&Object[Index], Count - Index)) < Count) {
        if (KiIsAtMutantLimit(Object[Index], Thread)) {
            *Status = STATUS_MUTANT_LIMIT_EXCEEDED;
            return TRUE;
        }
        if (KiTryConsume(Object[Index], Thread, Status)) {
            *Status = KiStatusOfIndex(*Status, Index, Many);
            return TRUE;
        }
        Index += 1;
    }
    return FALSE;
}

static BOOLEAN KiTryConsumeAny(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    return KiTryConsumeFirst(Object, Count, Thread, FALSE, Status);
}

BOOLEAN KiTryConsumeAnyOf(PKI_WAIT Wait, NTSTATUS *Status)
{
    return KiTryConsumeFirst(Wait->Objects, Wait->Count, Wait->Thread, Wait->WaitType == KI_MANY_BLOCK, Status);
}

/* A mutant at its limit is left to the slow path, which reports it. */
static BOOLEAN KiMayTake(PDISPATCHER_HEADER Header, ULONG64 Word, PKTHREAD Thread)
{
    return KiIsSignaledFor(Header, Word, Thread) && KI_STATE(Word) != KI_MUTANT_LIMIT;
}

/* Rule 5 of dispatch.h: object Index was found locked, and those before it are held. 0: the thread must not block on it, or it
   is outside. */
static DECLSPEC_NOINLINE ULONG64 KiLockAbove(PVOID Object[], ULONG Index, PKTHREAD Thread)
{
    for (ULONG Held = 0; Held < Index; Held += 1) {
        if (Object[Held] >= Object[Index]) {
            return 0;
        }
    }
    ULONG64 Word = KiLockObjectSlow(Object[Index]);
    if (Word == 0) {
        Thread->SawOutside = TRUE;
    }
    return Word;
}

/* In the caller's order. Returns how many are locked, from the first one on. The second lock of an object that is named twice
   is only tried, and fails. */
static ULONG KiLockSignaled(PVOID Object[], ULONG Count, PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PDISPATCHER_HEADER Header = Object[Index];
        ULONG64 Word;
        if (__builtin_expect(!KiTryLockObject(Header, &Word), FALSE)) {
            Word = KiLockAbove(Object, Index, Thread);
            if (Word == 0) {
                return Index;
            }
        }
        if (!KiMayTake(Header, Word, Thread)) {
            KiUnlockObject(Header, Word);
            return Index;
        }
    }
    return Count;
}

/* Called by a thread whose wait has taken Header. */
static VOID KiTakeOwnershipIfMutant(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    ULONG64 Word = KiReadHeader(Header);
    if (KI_TYPE(Word) == MutantObject && KI_STATE(Word) == 0) {
        KiTakeOwnershipOf(CONTAINING_RECORD(Header, KMUTANT, Header), Thread);
    }
}

static DECLSPEC_NOINLINE NTSTATUS KiConsumeAndUnlock(PVOID Object[], ULONG Count, PKTHREAD Thread)
{
    ULONG64 Mutants = 0; /* only these may be touched once they are unlocked: another waiter may free the others */
    NTSTATUS Status = STATUS_WAIT_0;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ULONG64 Word = KiReadHeader(Object[Index]);
        Mutants |= (ULONG64)(KI_TYPE(Word) == MutantObject) << Index;
        if (KiConsumeLocked(Object[Index], &Word, Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
        KiUnlockObject(Object[Index], Word);
    }
    for (; Mutants != 0; Mutants &= Mutants - 1) {
        KiTakeOwnershipIfMutant(Object[__builtin_ctzll(Mutants)], Thread);
    }
    return Status;
}

/* Consumes all objects at one instant. STATUS_PENDING: they are not all signaled, or locked by others, or not all
   different. */
static NTSTATUS KiTryConsumeAll(PVOID Object[], ULONG Count, PKTHREAD Thread)
{
    NTSTATUS Status = STATUS_PENDING;
    /* Without a lock this is a hint, but if one is not signaled now, then there was a moment at which not all were. */
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ULONG64 Word = KiReadHeader(Object[Index]);
        if (!(Word & KI_LOCKED) && !KiMayTake(Object[Index], Word, Thread)) {
            return Status;
        }
    }
    KiEnterDispatcher(Thread);
    ULONG Locked = KiLockSignaled(Object, Count, Thread);
    if (__builtin_expect(Locked == Count, TRUE)) {
        Status = KiConsumeAndUnlock(Object, Count, Thread);
    } else {
        for (ULONG Index = 0; Index < Locked; Index += 1) {
            KiUnlockObject(Object[Index], KiReadHeader(Object[Index]));
        }
    }
    KiExitDispatcher(Thread);
    return Status;
}

/* The spin before a wait, a few objects per check, so that it does not take longer for many objects. */
typedef struct _KI_ANY_SPIN {
    PVOID *Objects;
    ULONG Count;
    ULONG Next;
    PKTHREAD Thread;
    NTSTATUS *Status;
} KI_ANY_SPIN;

#define KI_OBJECTS_PER_LOOK 8

static inline BOOLEAN KiAnySatisfies(PVOID Context)
{
    KI_ANY_SPIN *Spin = Context;
    ULONG Left = Spin->Count < KI_OBJECTS_PER_LOOK ? Spin->Count : KI_OBJECTS_PER_LOOK;
    for (; Left != 0; Left -= 1) {
        PDISPATCHER_HEADER Header = Spin->Objects[Spin->Next];
        Spin->Next = Spin->Next + 1 < Spin->Count ? Spin->Next + 1 : 0;
        if (KI_STATE(KiReadHeader(Header)) > 0) {
            return Spin->Count == 1 ? KiTryConsume(Header, Spin->Thread, Spin->Status)
                                    : KiTryConsumeAny(Spin->Objects, Spin->Count, Spin->Thread, Spin->Status);
        }
    }
    return FALSE;
}

FORCEINLINE BOOLEAN KiSpinForAny(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    KI_ANY_SPIN Spin = {Object, Count, 0, Thread, Status};
    return KiParkUntil(Thread, KiParkForObject, KiAnySatisfies, &Spin);
}

static inline BOOLEAN KiWasWoken(PVOID Thread)
{
    /* relaxed: KiCommitAndSleep reads it again, with acquire */
    return __atomic_load_n(&((PKTHREAD)Thread)->WakeWord, __ATOMIC_RELAXED) == KI_WOKEN;
}

VOID KiSpinForWake(PKTHREAD Thread)
{
    KiParkUntil(Thread, KiParkForObject, KiWasWoken, Thread);
}

/* The objects of a WaitAll, in the order of their addresses, in which they are locked. */

static BOOLEAN KiIsAscending(PVOID Object[], ULONG Count, const USHORT Order[])
{
    for (ULONG Index = 1; Index < Count; Index += 1) {
        if (Object[Order[Index - 1]] >= Object[Order[Index]]) {
            return FALSE;
        }
    }
    return TRUE;
}

/* Ciura's gaps, continued by a factor of 2.25. Those of 64 objects are the last four. */
#define KI_GAPS_OF_FEW 4
static const USHORT KiGaps[] = {45915, 20407, 9070, 4031, 1791, 701, 301, 132, 57, 23, 10, 4, 1};

/* Objects allocated or declared one after the other are often already in order. Otherwise a Shell sort. */
FORCEINLINE BOOLEAN KiSortByGaps(PVOID Object[], ULONG Count, USHORT Order[], ULONG FirstPass)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        Order[Index] = (USHORT)Index;
    }
    if (KiIsAscending(Object, Count, Order)) {
        return TRUE;
    }
    for (ULONG Pass = FirstPass; Pass < ARRAYSIZE(KiGaps); Pass += 1) {
        ULONG Gap = KiGaps[Pass];
        for (ULONG Index = Gap; Index < Count; Index += 1) {
            USHORT Moved = Order[Index];
            ULONG To = Index;
            for (; To >= Gap && Object[Order[To - Gap]] > Object[Moved]; To -= Gap) {
                Order[To] = Order[To - Gap];
            }
            Order[To] = Moved;
        }
    }
    return KiIsAscending(Object, Count, Order);
}

BOOLEAN KiSortObjects(PVOID Object[], ULONG Count, USHORT Order[MAXIMUM_WAIT_OBJECTS])
{
    return KiSortByGaps(Object, Count, Order, ARRAYSIZE(KiGaps) - KI_GAPS_OF_FEW);
}

BOOLEAN KiSortManyObjects(PVOID Object[], ULONG Count, USHORT Order[])
{
    return KiSortByGaps(Object, Count, Order, 0);
}

BOOLEAN KiHasDuplicates(PVOID Object[], ULONG Count)
{
    USHORT Order[MAXIMUM_WAIT_OBJECTS];
    return !KiSortObjects(Object, Count, Order);
}

static VOID KiUnlockFirstInOrder(PKTHREAD Thread, ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PDISPATCHER_HEADER Header = Thread->WaitBlockList[Thread->WaitAllOrder[Index]].Object;
        KiUnlockObject(Header, KiReadHeader(Header));
    }
}

BOOLEAN KiLockInOrder(PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        if (KiLockObject(Thread->WaitBlockList[Thread->WaitAllOrder[Index]].Object) == 0) {
            KiUnlockFirstInOrder(Thread, Index);
            return FALSE;
        }
    }
    return TRUE;
}

/* The wait cannot end while one of its objects is locked: its thread has yet to unlink the block. */
VOID KiUnlockInOrder(PKTHREAD Thread)
{
    KiUnlockFirstInOrder(Thread, Thread->WaitBlockCount);
}

BOOLEAN KiAllSignaledFor(PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PDISPATCHER_HEADER Header = Thread->WaitBlockList[Index].Object;
        if (!KiIsSignaledFor(Header, KiReadHeader(Header), Thread)) {
            return FALSE;
        }
    }
    return TRUE;
}

NTSTATUS KiConsumeAll(PKTHREAD Thread)
{
    NTSTATUS Status = STATUS_WAIT_0;
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        if (KiConsumeHeld(Thread->WaitBlockList[Index].Object, Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
    }
    return Status;
}

/* The steps of a wait. */

/* With the object locked: it may be freed afterwards. AutoBoost: a mutant's owner runs at least at the waiter's priority. */
FORCEINLINE VOID KiLendToOwner(PKI_WAIT Wait, PKWAIT_BLOCK Block)
{
    if (*KiTypeOf(Wait, Block->WaitKey) == MutantObject) {
        PKMUTANT Mutant = CONTAINING_RECORD((PDISPATCHER_HEADER)Block->Object, KMUTANT, Header);
        /* relaxed: KTHREADs are never unmapped, and the boost of a thread that is no longer the owner decays */
        KiLendPriority(Wait->Thread, __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED));
    }
}

/* STATUS_RETRY: the object is outside; the wait is ended. */
FORCEINLINE NTSTATUS KiLinkObjectInline(PKI_WAIT Wait, ULONG Index, BOOLEAN Many, BOOLEAN *Signaled)
{
    PKTHREAD Thread = Wait->Thread;
    PKWAIT_BLOCK Block = &Wait->Blocks[Index];
    PDISPATCHER_HEADER Header = Block->Object;
    NTSTATUS Status = STATUS_PENDING;
    ULONG64 Word = KiLockObject(Header);
    if (Word == 0) {
        *Signaled = TRUE;
        return KiEndOwnWait(Thread) ? STATUS_RETRY : STATUS_PENDING;
    }
    *KiTypeOf(Wait, Index) = Wait->WaitType == KI_WATCH_BLOCK ? 0 : (UCHAR)KI_TYPE(Word);
    *Signaled = KiIsSignaledFor(Header, Word, Thread);
    if (*Signaled && KiEndOwnWait(Thread)) { /* else a signal through an earlier block was faster: see KiCommitWait */
        BOOLEAN Abandoned = Wait->WaitType != KI_WATCH_BLOCK && KiConsumeLocked(Header, &Word, Thread) == STATUS_ABANDONED;
        Status = KiStatusOfIndex(Abandoned ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0, Index, Many);
    } else if (!*Signaled && !Wait->Poll) {
        KiLinkBlock(Block);
        KiLendToOwner(Wait, Block);
    }
    KiUnlockObject(Header, Word);
    return Status;
}

NTSTATUS KiLinkObject(PKI_WAIT Wait, ULONG Index, BOOLEAN *Signaled)
{
    return KiLinkObjectInline(Wait, Index, Wait->WaitType == KI_MANY_BLOCK, Signaled);
}

static NTSTATUS KiLinkAll(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    NTSTATUS Status = STATUS_PENDING;

    Thread->WaitAllOrder = Wait->Order;
    if (!KiLockInOrder(Thread)) {
        KiEndOwnWait(Thread);
        return STATUS_RETRY;
    }
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        *KiTypeOf(Wait, Index) = (UCHAR)KI_TYPE(KiReadHeader(Wait->Blocks[Index].Object));
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

/* The wait has ended. Only the thread that ended it unlinks blocks, before it wakes this one, so the others stay as they
   are; but a move outside unlinks every block. */
FORCEINLINE VOID KiUnlinkBlocksInline(PKI_WAIT Wait, KI_WAIT_SHAPE Shape)
{
    for (ULONG Index = 0; Index < KiLinkedBlocks(Wait, Shape); Index += 1) {
        PKWAIT_BLOCK Block = &Wait->Blocks[Index];
        /* acquire: pairs with the release store in KiUnlinkBlock */
        if (__atomic_load_n(&Block->BlockState, __ATOMIC_ACQUIRE) != WaitBlockActive) {
            continue;
        }
        PDISPATCHER_HEADER Header = Block->Object;
        ULONG64 Word = KiLockObject(Header);
        if (Word != 0) {
            KiUnlinkBlock(Block, WaitBlockInactive);
            KiUnlockObject(Header, Word);
        }
    }
}

VOID KiUnlinkBlocks(PKI_WAIT Wait)
{
    KiUnlinkBlocksInline(Wait, KiFewObjects);
}

/* Of the objects that satisfied the wait, only those that were noted as mutants may be touched: rule 6. */
FORCEINLINE VOID KiTakeOwnershipsInline(PKI_WAIT Wait, NTSTATUS Status, KI_WAIT_SHAPE Shape)
{
    BOOLEAN Many = Shape == KiManyObjects;
    NTSTATUS Satisfied0 = Many ? KI_MANY_WAIT_0 : STATUS_WAIT_0;
    NTSTATUS Abandoned0 = Many ? KI_MANY_ABANDONED_0 : STATUS_ABANDONED_WAIT_0;
    ULONG Most = Many ? MAXUSHORT : Shape == KiFewObjects ? MAXIMUM_WAIT_OBJECTS : (ULONG)Shape;
    BOOLEAN Abandoned = Status >= Abandoned0 && Status < Abandoned0 + (NTSTATUS)Most;
    ULONG Satisfied = (ULONG)(Status - (Abandoned ? Abandoned0 : Satisfied0));
    if (Satisfied >= Most) {
        return;
    }
    BOOLEAN One = Shape != KiFewObjects || Wait->WaitType == WaitAny;
    ULONG Count = KiLinkedBlocks(Wait, Shape);
    ULONG Index = One ? Satisfied : 0;
    ULONG End = One && Satisfied < Count ? Satisfied + 1 : Count;
    for (; Index < End; Index += 1) {
        if (*KiTypeOf(Wait, Index) == MutantObject) {
            KiTakeOwnershipIfMutant(Wait->Objects[Index], Wait->Thread);
        }
    }
}

VOID KiTakeOwnerships(PKI_WAIT Wait, NTSTATUS Status)
{
    KiTakeOwnershipsInline(Wait, Status, Wait->WaitType == KI_MANY_BLOCK ? KiManyObjects : KiFewObjects);
}

/* One attempt, from begin to unlink. STATUS_KERNEL_APC: a kernel APC has to run first. */
FORCEINLINE NTSTATUS KiWaitOnce(PKI_WAIT Wait, KI_WAIT_SHAPE Shape)
{
    PKTHREAD Thread = Wait->Thread;
    ULONG Blocks = Shape <= KiOneObject ? 1 : Wait->Count;
    BOOLEAN EndedByOther = FALSE;
    LONG_PTR Result;

    NTSTATUS Status = KiBeginWait(Thread, KiWaitFlags(Thread, Wait->Mode, Wait->Alertable) | Wait->Flags);
    if (Status != STATUS_PENDING) {
        return Status;
    }
    for (ULONG Index = 0; Index < Blocks; Index += 1) {
        KiPrepareBlock(&Wait->Blocks[Index], Thread, Wait->Objects[Index], Wait->WaitType, (USHORT)Index);
    }
    Thread->WaitBlockList = Wait->Blocks;
    Thread->WaitBlockCount = (USHORT)Blocks;
    BOOLEAN Signaled = Shape >= KiFewObjects && Wait->WaitType == WaitAll;
    Status = Signaled ? KiLinkAll(Wait) : STATUS_PENDING;
    for (ULONG Index = 0; Index < KiLinkedBlocks(Wait, Shape) && !Signaled; Index += 1) {
        Status = KiLinkObjectInline(Wait, Index, Shape == KiManyObjects, &Signaled);
    }
    if (Status == STATUS_PENDING && Wait->Poll && KiEndOwnWait(Thread)) {
        Status = STATUS_TIMEOUT;
    }
    if (Status == STATUS_PENDING) {
        Status = KiCommitAndSleep(Wait, &EndedByOther, &Result);
        KiUnlinkBlocksInline(Wait, Shape);
        KiLeaveWaitState(Wait, EndedByOther);
    } else {
        KiUnlinkBlocksInline(Wait, Shape);
    }
    return Status;
}

/* Delivers kernel APCs and starts over as often as necessary. */
FORCEINLINE NTSTATUS KiRunWait(PKI_WAIT Wait, KI_WAIT_SHAPE Shape)
{
    PKTHREAD Thread = Wait->Thread;
    for (;;) {
        KiEnterDispatcher(Thread);
        NTSTATUS Status = KiWaitOnce(Wait, Shape);
        KiTakeOwnershipsInline(Wait, Status, Shape);
        KiExitDispatcher(Thread);
        if (Status == STATUS_RETRY) {
            return Wait->WaitType != KI_WATCH_BLOCK ? KiWaitOutside(Wait) : Status;
        }
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

NTSTATUS KiWait(PKI_WAIT Wait)
{
    return KiRunWait(Wait, KiFewObjects);
}

/* The end of a wait by kernel code: runs user APCs, and raises what the kernel raises. */
static NTSTATUS KiFinishWait(NTSTATUS Status)
{
    if (Status == STATUS_USER_APC) {
        KiDeliverUserApcs(KiCurrentThread());
    } else if (Status == STATUS_MUTANT_LIMIT_EXCEEDED) {
        KiRaiseStatus(Status);
    }
    return Status;
}

/* TRUE: *Status is pending and ends the wait before it tests any object. */
static BOOLEAN KiIsAlerted(PKI_WAIT Wait, NTSTATUS *Status)
{
    if (!Wait->Alertable) {
        return FALSE;
    }
    *Status = KiTakeAlert(Wait->Thread, KiWaitFlags(Wait->Thread, Wait->Mode, TRUE));
    return *Status != STATUS_PENDING;
}

/* One object. */

/* The object is a mutant, or was not signaled. If the fast path has tested the object, this leaves the next test to the
   spin, or to the link. */
FORCEINLINE NTSTATUS KiAwaitObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                   PLARGE_INTEGER Timeout, BOOLEAN Spins)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Tested = KiMayConsumeAtOnce(Thread, Alertable);
    KI_WAIT Wait;
    NTSTATUS Status;

    if (Tested && KI_TYPE(KiReadHeader(Object)) == MutantObject && KiTryAcquireMutant(Object, Thread, &Status)) {
        return Status;
    }
    KiInitializeWaitOf(Thread, &Wait, Object, WaitReason, WaitMode, Alertable, Timeout);
    if (KiIsAtMutantLimit(Object, Thread)) {
        return STATUS_MUTANT_LIMIT_EXCEEDED;
    }
    if (KiIsAlerted(&Wait, &Status) || ((Wait.Poll || !Tested) && KiTryConsume(Object, Thread, &Status))) {
        return Status;
    }
    if (Wait.Poll) {
        return STATUS_TIMEOUT;
    }
    Wait.Objects = &Object;
    Wait.Count = 1;
    if (KiIsOutside(Object)) {
        return KiWaitOutside(&Wait);
    }
    if (Spins && KiSpinForAny(&Object, 1, Thread, &Status)) {
        return Status;
    }
    Wait.Spun = TRUE;
    return KiRunWait(&Wait, KiOneObject);
}

/* The fast path of an outside object, which the fast paths of local ones do not handle. */
NTSTATUS KiWaitForLockedObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                               PLARGE_INTEGER Timeout)
{
    NTSTATUS Status;
    if (KiIsOutside(Object) && KiTryConsumeOutside(Object, KiCurrentThread(), &Status)) {
        return Status;
    }
    return KiWaitForSingleObjectSlow(Object, WaitReason, WaitMode, Alertable, Timeout);
}

NTSTATUS KiWaitForSingleObjectSlow(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                   PLARGE_INTEGER Timeout)
{
    return KiAwaitObject(Object, WaitReason, WaitMode, Alertable, Timeout, TRUE);
}

static DECLSPEC_NOINLINE NTSTATUS KiAwaitObjectAndFinish(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                                         BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return KiFinishWait(KiAwaitObject(Object, WaitReason, WaitMode, Alertable, Timeout, TRUE));
}

NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                               PLARGE_INTEGER Timeout)
{
    return KiTryConsumeAtOnce(Object, Alertable) == KiConsumedAtOnce
               ? STATUS_SUCCESS
               : KiAwaitObjectAndFinish(Object, WaitReason, WaitMode, Alertable, Timeout);
}

NTSTATUS KiSleepUntilSignaled(PVOID Object, KWAIT_REASON WaitReason, PLARGE_INTEGER Timeout)
{
    return KiTryConsumeAtOnce(Object, FALSE) == KiConsumedAtOnce
               ? STATUS_SUCCESS
               : KiAwaitObject(Object, WaitReason, KernelMode, FALSE, Timeout, FALSE);
}

/* Several objects. */

static NTSTATUS KiWaitForAny(PKI_WAIT Wait, BOOLEAN Tested)
{
    NTSTATUS Status;
    if (!Tested &&
        (KiIsAlerted(Wait, &Status) || KiTryConsumeAny(Wait->Objects, Wait->Count, Wait->Thread, &Status))) {
        return Status;
    }
    if (Wait->Poll) {
        return STATUS_TIMEOUT;
    }
    if (Wait->Thread->SawOutside) {
        return KiWaitOutside(Wait);
    }
    if (KiSpinForAny(Wait->Objects, Wait->Count, Wait->Thread, &Status)) {
        return Status;
    }
    Wait->Spun = TRUE;
    return KiWait(Wait);
}

static DECLSPEC_NOINLINE NTSTATUS KiWaitForMultipleObjectsSlow(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                                               KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                                               BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                                               PKWAIT_BLOCK Blocks)
{
    BOOLEAN Tested = KiMayConsumeAtOnce(KiCurrentThread(), Alertable);
    USHORT Order[MAXIMUM_WAIT_OBJECTS];
    KI_WAIT Wait;

    if (WaitType == WaitAll && !KiSortObjects(Object, Count, Order)) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    KiInitializeWait(&Wait, Object[0], WaitReason, WaitMode, Alertable, Timeout);
    Wait.Objects = Object;
    Wait.Blocks = Blocks;
    Wait.Count = Count;
    Wait.WaitType = (UCHAR)WaitType;
    if (WaitType == WaitAny) {
        Wait.Thread->OrderWaits &= Count == 1;
        return KiWaitForAny(&Wait, Tested);
    }
    for (ULONG Index = 0; Index < Count; Index += 1) {
        if (KiIsAtMutantLimit(Object[Index], Wait.Thread)) {
            return STATUS_MUTANT_LIMIT_EXCEEDED;
        }
    }
    Wait.Order = Order;
    if (Wait.Thread->SawOutside) {
        return KiWaitOutside(&Wait);
    }
    Wait.Flags = KI_WAIT_LIGHT;
    return KiWait(&Wait);
}

/* The first object is locked, or outside. STATUS_PENDING: none is signaled. */
static DECLSPEC_NOINLINE NTSTATUS KiTryAnyLocked(PVOID Object[], ULONG Count, PKTHREAD Thread)
{
    NTSTATUS Status;
    ULONG Outside = KiTryRowOutside(Object, Count, Thread, &Status);
    if (Outside != 0 && Status != STATUS_TIMEOUT) {
        return Status;
    }
    if (Outside == Count || !KiTryConsumeAny(Object + Outside, Count - Outside, Thread, &Status)) {
        Thread->SawOutside |= Outside != 0;
        return STATUS_PENDING;
    }
    return Status == STATUS_MUTANT_LIMIT_EXCEEDED ? Status : Status + (NTSTATUS)Outside;
}

NTSTATUS KiWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                  KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Most = WaitBlockArray != NULL ? MAXIMUM_WAIT_OBJECTS : THREAD_WAIT_OBJECTS;
    NTSTATUS Status;

    if (Count > Most) {
        KeBugCheckEx(MAXIMUM_WAIT_OBJECTS_EXCEEDED, Count, Most, (ULONG_PTR)Thread, (ULONG_PTR)WaitBlockArray);
    }
    if (Count == 0) {
        return STATUS_INVALID_PARAMETER_1;
    }
    if (WaitType != WaitAny && WaitType != WaitAll) {
        return STATUS_INVALID_PARAMETER_3;
    }
    if (KiMayConsumeAtOnce(Thread, Alertable)) {
        if (WaitType == WaitAll) {
            Status = KiTryConsumeAll(Object, Count, Thread);
        } else if (__builtin_expect((KiReadHeader(Object[0]) & KI_LOCKED) != 0, FALSE)) {
            Status = KiTryAnyLocked(Object, Count, Thread);
        } else if (!KiTryConsumeFirst(Object, Count, Thread, FALSE, &Status)) {
            Status = STATUS_PENDING;
        }
        if (Status != STATUS_PENDING) {
            return Status;
        }
    }
    return KiWaitForMultipleObjectsSlow(Count, Object, WaitType, WaitReason, WaitMode, Alertable, Timeout,
                                        WaitBlockArray != NULL ? WaitBlockArray : Thread->WaitBlock);
}

NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                  KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray)
{
    return KiFinishWait(KiWaitForMultipleObjects(Count, Object, WaitType, WaitReason, WaitMode, Alertable, Timeout,
                                                 WaitBlockArray));
}

/* No object. */

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
        KiYieldOnce();
    }
    return STATUS_SUCCESS;
}

/* Alerts by id. Theory in apc.c. */

static inline BOOLEAN KiTakesAlertById(PVOID Thread)
{
    return KiTakeAlertById(Thread);
}

DECLSPEC_NOINLINE NTSTATUS KiWaitForAlertById(PVOID Hint, PLARGE_INTEGER Timeout, BOOLEAN Spins)
{
    KI_WAIT Wait;
    KiInitializeWait(&Wait, Hint, WrAlertByThreadId, UserMode, FALSE, Timeout);
    if (KiTakeAlertById(Wait.Thread)) {
        return STATUS_ALERTED;
    }
    if (Wait.Poll) {
        return STATUS_TIMEOUT;
    }
    if (Spins && KiParkUntil(Wait.Thread, KiParkForObject, KiTakesAlertById, Wait.Thread)) {
        return STATUS_ALERTED;
    }
    Wait.Objects = &Hint;
    Wait.WaitType = KI_HINT_BLOCK;
    Wait.Flags = KI_WAIT_ALERT_BY_ID | KI_WAIT_LIGHT;
    Wait.Spun = TRUE;
    return KiRunWait(&Wait, KiNoObject);
}

NTSTATUS KeWaitForAlertByThreadId(PVOID Hint, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    return KiMayTakeAtOnce(Thread) && KiTakeAlertById(Thread) ? STATUS_ALERTED
                                                              : KiWaitForAlertById(Hint, Timeout, TRUE);
}

/*
 * Waits for up to MAXUSHORT objects. Theory in wait.h.
 *
 * The steps are those of every wait (KiRunWait). A WaitAll needs nothing else: its status has no index, so its blocks
 * are those of any WaitAll. The blocks of a wait for any object are of the type KI_MANY_BLOCK: the thread that ends the
 * wait through one of them stores the index in the ranges KI_MANY_ of the status, which extend beyond STATUS_TIMEOUT
 * and similar statuses. KiSplitManyStatus turns that into a status of Windows and the index.
 *
 * What a wait for up to 64 objects keeps on the stack is in the caller's array here, after the wait blocks, so that a
 * wait in the kernel allocates nothing:
 *
 *     Count wait blocks | KI_WAIT, and Types of Count bytes | Order of a WaitAll
 *
 * Rejected: a tree of waits for 64 objects each, by helper threads, as programs build on Windows. A helper consumes an
 * object before it knows whether another helper consumes one too, so no such wait is atomic.
 *
 * Such a wait does not spin before it sleeps: one round over its objects takes longer than a spin.
 */

#define KI_MANY_ROOM_PER_OBJECT (sizeof(UCHAR) + sizeof(USHORT))

C_ASSERT(KE_MANY_WAIT_BLOCKS(1) * sizeof(KWAIT_BLOCK) >=
         sizeof(KWAIT_BLOCK) + sizeof(KI_WAIT) + KI_MANY_ROOM_PER_OBJECT + sizeof(USHORT));
/* For each ten more objects the macro has one more block for this. */
C_ASSERT(sizeof(KWAIT_BLOCK) >= 10 * KI_MANY_ROOM_PER_OBJECT);

NTSTATUS KiWaitMany(PKI_WAIT Wait)
{
    return KiRunWait(Wait, KiManyObjects);
}

static NTSTATUS KiWaitForAnyOfMany(PKI_WAIT Wait)
{
    NTSTATUS Status;
    if (KiIsAlerted(Wait, &Status) || KiTryConsumeAnyOf(Wait, &Status)) {
        return Status;
    }
    if (Wait->Poll) {
        return STATUS_TIMEOUT;
    }
    return Wait->Thread->SawOutside ? KiWaitOutside(Wait) : KiWaitMany(Wait);
}

static NTSTATUS KiWaitForAllOfMany(PKI_WAIT Wait)
{
    PUSHORT Order = (PUSHORT)(((ULONG_PTR)KiTypeOf(Wait, Wait->Count) + sizeof(USHORT) - 1) & ~(sizeof(USHORT) - 1));
    if (!KiSortManyObjects(Wait->Objects, Wait->Count, Order)) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        if (KiIsAtMutantLimit(Wait->Objects[Index], Wait->Thread)) {
            return STATUS_MUTANT_LIMIT_EXCEEDED;
        }
    }
    Wait->Order = Order;
    Wait->Flags = KI_WAIT_LIGHT;
    return KiWait(Wait);
}

NTSTATUS KiSplitManyStatus(NTSTATUS Status, PULONG Index)
{
    *Index = 0;
    if (Status >= KI_MANY_ABANDONED_0 && Status < KI_MANY_ABANDONED_0 + MAXUSHORT) {
        *Index = (ULONG)(Status - KI_MANY_ABANDONED_0);
        return STATUS_ABANDONED_WAIT_0;
    }
    if (Status >= KI_MANY_WAIT_0 && Status < KI_MANY_WAIT_0 + MAXUSHORT) {
        *Index = (ULONG)(Status - KI_MANY_WAIT_0);
        return STATUS_WAIT_0;
    }
    return Status;
}

NTSTATUS KiWaitForManyObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                              KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                              PKWAIT_BLOCK WaitBlockArray, PULONG Index)
{
    PKI_WAIT Wait = (PKI_WAIT)(PVOID)(WaitBlockArray + Count);
    if (WaitType != WaitAny && WaitType != WaitAll) {
        return STATUS_INVALID_PARAMETER_3;
    }
    KiInitializeWait(Wait, Object[0], WaitReason, WaitMode, Alertable, Timeout);
    Wait->Thread->SawOutside = FALSE;
    Wait->Objects = Object;
    Wait->Blocks = WaitBlockArray;
    Wait->Count = Count;
    Wait->WaitType = WaitType == WaitAny ? KI_MANY_BLOCK : WaitAll;
    Wait->Spun = TRUE;
    return KiSplitManyStatus(WaitType == WaitAny ? KiWaitForAnyOfMany(Wait) : KiWaitForAllOfMany(Wait), Index);
}

NTSTATUS KeWaitForManyObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                              KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                              PKWAIT_BLOCK WaitBlockArray, PULONG Index)
{
    ULONG Unused;
    if (Count > KE_MAXIMUM_MANY_OBJECTS) {
        KeBugCheckEx(MAXIMUM_WAIT_OBJECTS_EXCEEDED, Count, KE_MAXIMUM_MANY_OBJECTS, (ULONG_PTR)KiCurrentThread(),
                     (ULONG_PTR)WaitBlockArray);
    }
    if (Count == 0) {
        return STATUS_INVALID_PARAMETER_1;
    }
    return KiFinishWait(KiWaitForManyObjects(Count, Object, WaitType, WaitReason, WaitMode, Alertable, Timeout,
                                             WaitBlockArray, Index != NULL ? Index : &Unused));
}
