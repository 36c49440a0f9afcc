/* outside.c: objects whose state is in the world, and waits for them. Theory in outside.h. */
#include "timer.h"
#include "wait.h"

const KI_OUTSIDE_OPERATIONS *KiOutsideOperations;

VOID KiSetOutsideOperations(const KI_OUTSIDE_OPERATIONS *Operations)
{
    /* release: the table and what it relies on are complete; pairs with the reads behind KiIsOutside */
    __atomic_store_n(&KiOutsideOperations, Operations, __ATOMIC_RELEASE);
}

VOID KiMakeOutside(PDISPATCHER_HEADER Header, UCHAR Type, PKI_OUTSIDE Outside)
{
    /* no state of a local object: a mutant's is at most 1, every other one's at least 0 */
    LONG State = Type == MutantObject ? 2 : -1;
    Header->WaitListHead.Flink = NULL;
    Header->WaitListHead.Blink = (PLIST_ENTRY)(PVOID)Outside;
    /* release: pairs with KiIsOutside */
    __atomic_store_n(KiHeaderWord(Header), KiWithState((ULONG64)Type | KI_LOCKED, State), __ATOMIC_RELEASE);
}

/* Moving. */

static BOOLEAN KiIsTimer(ULONG64 Word)
{
    return KI_TYPE(Word) == TimerNotificationObject || KI_TYPE(Word) == TimerSynchronizationObject;
}

/* With the mutant locked. Only its owner changes its list of mutants, so only a free mutant can be moved, or the caller's
   own. STATUS_RETRY: it is being acquired or released; that thread may be writing Abandoned. */
static NTSTATUS KiDescribeMutant(PKMUTANT Mutant, ULONG64 Word, PKTHREAD Thread, PKI_OUTSIDE_STATE State)
{
    State->Owner = __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED);
    if (State->Owner == NULL && KI_STATE(Word) <= 0) {
        return STATUS_RETRY;
    }
    if (State->Owner != NULL) {
        if (State->Owner != Thread || (Word & KI_MUTANT_DPC_ACTIVE)) {
            return STATUS_MUTANT_NOT_OWNED;
        }
        __atomic_store_n(&Mutant->OwnerThread, NULL, __ATOMIC_RELAXED);
        RemoveEntryList(&Mutant->MutantListEntry);
    }
    State->Abandoned = Mutant->Abandoned;
    return STATUS_SUCCESS;
}

/* With the object locked. */
static NTSTATUS KiDescribeLocal(PDISPATCHER_HEADER Header, ULONG64 Word, PKTHREAD Thread, PKI_OUTSIDE_STATE State)
{
    *State = (KI_OUTSIDE_STATE){.State = KI_STATE(Word)};
    if (KI_TYPE(Word) == MutantObject) {
        return KiDescribeMutant(CONTAINING_RECORD(Header, KMUTANT, Header), Word, Thread, State);
    }
    if (KI_TYPE(Word) == SemaphoreObject) {
        State->Limit = CONTAINING_RECORD(Header, KSEMAPHORE, Header)->Limit;
    }
    if (KiIsTimer(Word) && (Word & KI_TIMER_INSERTED)) {
        PKTIMER Timer = CONTAINING_RECORD(Header, KTIMER, Header);
        State->DueTime = Timer->DueTime.QuadPart;
        State->Absolute = (Timer->Processor & KI_TIMER_ABSOLUTE) != 0;
        State->Period = Timer->Period;
    }
    return STATUS_SUCCESS;
}

/* With the object locked: its waits begin again, outside. A notification registers there later: see the caller. */
static VOID KiEndLocalWaits(PDISPATCHER_HEADER Header, PKI_READY Released, PLIST_ENTRY Notifications)
{
    while (!IsListEmpty(&Header->WaitListHead)) {
        PKWAIT_BLOCK Block = KiBlockOnList(Header, Header->WaitListHead.Flink);
        if (Block->WaitType == WaitNotification || Block->WaitType == WaitDpc) {
            RemoveEntryList(&Block->WaitListEntry);
            InsertTailList(Notifications, &Block->WaitListEntry);
        } else if (!KiEndWaitOfBlock(Block, STATUS_KERNEL_APC, Released)) {
            KiUnlinkBlock(Block, WaitBlockInactive);
        }
    }
}

static KI_LOCK KiMoveLock;

/* A cancel that finds the object outside waits until its notifications are outside, too: registered, or delivered. */
VOID KiAwaitMove(VOID)
{
    KiAcquireLock(&KiMoveLock);
    KiReleaseLock(&KiMoveLock);
}

/* With the object locked. */
static ULONG KiCountNotifications(PDISPATCHER_HEADER Header)
{
    ULONG Count = 0;
    for (PLIST_ENTRY Entry = Header->WaitListHead.Flink; Entry != &Header->WaitListHead; Entry = Entry->Flink) {
        UCHAR Type = KiBlockOnList(Header, Entry)->WaitType;
        Count += Type == WaitNotification || Type == WaitDpc;
    }
    return Count;
}

/* With the object locked, and room for its notifications reserved. */
static VOID KiMoveLocked(PDISPATCHER_HEADER Header, ULONG64 Word, PKI_OUTSIDE Outside, const KI_OUTSIDE_STATE *State)
{
    KI_READY Released;
    LIST_ENTRY Notifications;
    InitializeListHead(&Notifications);
    KiInitializeReady(&Released, IO_NO_INCREMENT);
    if (KiIsTimer(Word)) {
        KiRemoveTimer(CONTAINING_RECORD(Header, KTIMER, Header), 0, &Word);
    }
    KiOutsideOperations->AdoptState(Outside, State);
    KiEndLocalWaits(Header, &Released, &Notifications);
    KiAcquireLock(&KiMoveLock);
    KiMakeOutside(Header, (UCHAR)KI_TYPE(Word), Outside);
    KiReadyThreads(&Released);
    while (!IsListEmpty(&Notifications)) {
        PKWAIT_BLOCK Block = KiBlockOfEntry(RemoveHeadList(&Notifications));
        NTSTATUS Status = KiOutsideOperations->MoveBlock(Outside, Block);
        if (Status == STATUS_SUCCESS) {
            KiDeliverNotification(Block);
        } else if (!NT_SUCCESS(Status)) { /* the world is damaged; KiMoveLock publishes it */
            __atomic_store_n(&Block->BlockState, WaitBlockInactive, __ATOMIC_RELAXED);
        }
    }
    KiReleaseLock(&KiMoveLock);
}

/* One attempt. Reserved is how many notifications there is room for; STATUS_BUFFER_TOO_SMALL: *Needed are registered. */
static NTSTATUS KiTryMove(PKTHREAD Thread, PDISPATCHER_HEADER Header, PKI_OUTSIDE Outside, ULONG Reserved, PULONG Needed)
{
    KI_OUTSIDE_STATE State;
    NTSTATUS Status = STATUS_OBJECT_NAME_EXISTS;
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(Header);
    if (Word != 0) {
        *Needed = KiCountNotifications(Header);
        Status = *Needed > Reserved ? STATUS_BUFFER_TOO_SMALL : KiDescribeLocal(Header, Word, Thread, &State);
        if (Status == STATUS_SUCCESS) {
            KiMoveLocked(Header, Word, Outside, &State);
        } else {
            KiUnlockObject(Header, Word);
        }
    }
    KiExitDispatcher(Thread);
    return Status;
}

/* The room is reserved while the object is not locked, because that may wait for the world. */
NTSTATUS KiMoveOutside(PDISPATCHER_HEADER Header, PKI_OUTSIDE Outside)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Reserved = 0, Needed;
    NTSTATUS Status = KI_TYPE(KiReadHeader(Header)) == MutantObject ? KiOutsideOperations->PrepareOwner(Outside, Thread)
                                                                    : STATUS_SUCCESS;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    for (ULONG Round = 0;; Round += 1) {
        Status = KiTryMove(Thread, Header, Outside, Reserved, &Needed);
        if (Status == STATUS_BUFFER_TOO_SMALL) {
            Status = KiOutsideOperations->ReserveBlocks(Outside, Needed - Reserved);
            Reserved = Needed;
            if (NT_SUCCESS(Status)) {
                continue;
            }
        }
        if (Status != STATUS_RETRY) {
            break;
        }
        KiBackOff(Round);
    }
    if (Reserved != 0) {
        KiOutsideOperations->ReturnBlocks(Outside);
    }
    return Status;
}

/* Operations. A damaged world does nothing, and returns a status where the operation has one. */

LONG KiChangeOutsideEvent(PDISPATCHER_HEADER Header, KI_OUTSIDE_CHANGE Change, BOOLEAN Wait)
{
    LONG Previous;
    if (!NT_SUCCESS(KiOutsideOperations->ChangeEvent((PKI_OUTSIDE)(PVOID)Header->WaitListHead.Blink, Change, &Previous))) {
        return KI_OUTSIDE_LOST;
    }
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    return Previous;
}

BOOLEAN KiSignalOutside(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous)
{
    PKI_OUTSIDE Outside = KiOutsideOf(Header);
    switch (KI_TYPE(KiReadHeader(Header))) {
    case SemaphoreObject:
        return NT_SUCCESS(KiOutsideOperations->ReleaseSemaphore(Outside, *(PLONG)Signal->Context, Previous));
    case MutantObject:
        return FALSE; /* its owner moved it, or it had no owner */
    default:
        *Previous = KI_OUTSIDE_LOST;
        return NT_SUCCESS(KiOutsideOperations->ChangeEvent(Outside, Signal->Pulse ? KiOutsidePulse : KiOutsideSet,
                                                           Previous));
    }
}

static BOOLEAN KiIsOutsideTimerSet(PDISPATCHER_HEADER Header)
{
    KI_OUTSIDE_STATE State = {0};
    KiQueryOutside(Header, &State);
    return State.DueTime != 0;
}

BOOLEAN KiSetOutsideTimer(PDISPATCHER_HEADER Header, LONGLONG DueTime, ULONG Period)
{
    BOOLEAN WasSet = KiIsOutsideTimerSet(Header);
    BOOLEAN Previous;
    ULONG64 Arming;
    KiOutsideOperations->SetTimer(KiOutsideOf(Header), DueTime, Period, &Arming, &Previous);
    return WasSet;
}

BOOLEAN KiCancelOutsideTimer(PDISPATCHER_HEADER Header)
{
    BOOLEAN WasSet = KiIsOutsideTimerSet(Header);
    BOOLEAN Previous;
    KiOutsideOperations->CancelTimer(KiOutsideOf(Header), &Previous);
    return WasSet;
}

NTSTATUS KiQueryOutside(PDISPATCHER_HEADER Header, PKI_OUTSIDE_STATE State)
{
    return KiOutsideOperations->QueryState(KiOutsideOf(Header), KiCurrentThread(), State);
}

ULONG64 KiReadOutsideHeader(PDISPATCHER_HEADER Header)
{
    KI_OUTSIDE_STATE State = {0};
    KiQueryOutside(Header, &State);
    return KiWithState(KI_TYPE(KiReadHeader(Header)), State.State);
}

BOOLEAN KiTryConsumeOutside(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    PKI_OUTSIDE Outside = (PKI_OUTSIDE)(PVOID)Header->WaitListHead.Blink;
    *Status = KiOutsideOperations->TryWait(Thread, &Outside, 1, WaitAny);
    Thread->SawOutside = *Status == STATUS_TIMEOUT;
    return *Status != STATUS_TIMEOUT;
}

ULONG KiTryRowOutside(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    PKI_OUTSIDE Row[MAXIMUM_WAIT_OBJECTS];
    ULONG Length = 0;
    while (Length < Count) {
        PKI_OUTSIDE Outside = KiOutsideOf(Object[Length]);
        if (Outside == NULL || (Length != 0 && Outside->View != Row[0]->View)) {
            break;
        }
        Row[Length] = Outside;
        Length += 1;
    }
    if (Length != 0) {
        *Status = KiOutsideOperations->TryWait(Thread, Row, Length, WaitAny);
    }
    return Length;
}

/* Waits that have objects of the world. */

/* Ending the wait here. */

BOOLEAN KiClaimOutside(PKTHREAD Thread)
{
    return KiOutsideOperations->Claim(Thread, Thread->OutsideNumber) != KiOutsideGranted;
}

VOID KiWakeOutside(PKTHREAD Thread)
{
    volatile ULONG *Wake = Thread->OutsideWake;
    ULONG Value = __atomic_load_n(Wake, __ATOMIC_RELAXED);
    __atomic_exchange_n(&Thread->WakeWord, KI_WAKING_OUTSIDE, __ATOMIC_ACQ_REL);
    /* release: a thread that reads the new value reads WakeWord after it */
    while (!__atomic_compare_exchange_n(Wake, &Value, (Value + 2) & ~KI_OUTSIDE_ASLEEP, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    if (Value & KI_OUTSIDE_ASLEEP) {
        KiCurrentThread()->WokeSleeper = TRUE;
        HalWakeShared(Wake, 1);
    }
    /* release: the thread that sees the word sees everything decided about its wait */
    __atomic_store_n(&Thread->WakeWord, KI_WOKEN, __ATOMIC_RELEASE);
}

/* The objects of a wait that are outside. */

typedef struct _KI_OUTSIDE_SET {
    PKI_OUTSIDE *Outside;
    PUSHORT Index; /* of the object in the wait */
    ULONG Count;
    BOOLEAN TwoWorlds; /* only those of the first one are in it. A WaitAll has a second set */
    BOOLEAN Many;      /* the wait is for any of many objects */
} KI_OUTSIDE_SET, *PKI_OUTSIDE_SET;

/* What one call of the world takes. Of a wait for any of more outside objects than this, the set has the first ones: the
   others are a second world to it. */
#define KI_MOST_OUTSIDE MAXIMUM_WAIT_OBJECTS

/* Except: a world that is left out, or NULL. */
static VOID KiCollectOutside(PKI_WAIT Wait, PKI_OUTSIDE_SET Set, PVOID Except)
{
    Set->Count = 0;
    Set->TwoWorlds = FALSE;
    Set->Many = Wait->WaitType == KI_MANY_BLOCK;
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        PKI_OUTSIDE Outside = KiOutsideOf(Wait->Objects[Index]);
        if (Outside == NULL || Outside->View == Except) {
            continue;
        }
        if (Set->Count != 0 && (Outside->View != Set->Outside[0]->View || Set->Count == KI_MOST_OUTSIDE)) {
            Set->TwoWorlds = TRUE;
            continue;
        }
        Set->Outside[Set->Count] = Outside;
        Set->Index[Set->Count] = (USHORT)Index;
        Set->Count += 1;
        *KiTypeOf(Wait, Index) = 0;
    }
}

/* A status of the world, whose index counts the objects of the set. */
static NTSTATUS KiStatusOfSet(PKI_OUTSIDE_SET Set, NTSTATUS Status)
{
    if (Status >= STATUS_WAIT_0 && Status < STATUS_WAIT_0 + (NTSTATUS)Set->Count) {
        return KiStatusOfIndex(STATUS_WAIT_0, Set->Index[Status - STATUS_WAIT_0], Set->Many);
    }
    if (Status >= STATUS_ABANDONED_WAIT_0 && Status < STATUS_ABANDONED_WAIT_0 + (NTSTATUS)Set->Count) {
        return KiStatusOfIndex(STATUS_ABANDONED_WAIT_0, Set->Index[Status - STATUS_ABANDONED_WAIT_0], Set->Many);
    }
    return Status;
}

/* Asleep. */

typedef struct _KI_OUTSIDE_SLEEP {
    HAL_DEADLINE Until;
    BOOLEAN Timer; /* Until is a shared timer's */
    BOOLEAN Nap;   /* Until is only a checkpoint: see KiShortenToNap, or another clock */
} KI_OUTSIDE_SLEEP;

#define KI_LONGEST_MIXED_SLEEP 10000000ull /* a second */

/* One of the two deadlines, the wait's and a timer's, follows clock steps and the other does not: the timer's deadline is
   converted for a limited time, then checked again. */
static VOID KiMixClocks(KI_OUTSIDE_SLEEP *Sleep, const HAL_DEADLINE *Due)
{
    ULONG64 Now = Due->Clock == HalSystemTime ? HalDispatch.QuerySystemTime() : HalDispatch.QueryInterruptTime();
    ULONG64 Own = Due->Clock == HalSystemTime ? HalDispatch.QueryInterruptTime() : HalDispatch.QuerySystemTime();
    ULONG64 Remaining = Due->Time > Now ? Due->Time - Now : 0;
    Remaining = Remaining < KI_LONGEST_MIXED_SLEEP ? Remaining : KI_LONGEST_MIXED_SLEEP;
    if (Own + Remaining < Sleep->Until.Time) {
        Sleep->Until.Time = Own + Remaining;
        Sleep->Timer = TRUE;
    }
}

static VOID KiChooseOutsideDeadline(PKTHREAD Thread, KI_OUTSIDE_SLEEP *Sleep)
{
    HAL_DEADLINE Due;
    HAL_DEADLINE Nap;
    Sleep->Until = Thread->WaitDeadline;
    Sleep->Timer = FALSE;
    Sleep->Nap = FALSE;
    if (KiIsClockMissing()) {
        Sleep->Nap = KiShortenToNap(Thread, &Thread->WaitDeadline, &Nap) == &Nap;
        Sleep->Until = Sleep->Nap ? Nap : Sleep->Until;
    }
    if (!KiOutsideOperations->NextDue(Thread, &Due)) {
        return;
    }
    if (Sleep->Until.Clock == HalNoDeadline || (Sleep->Until.Clock == Due.Clock && Due.Time < Sleep->Until.Time)) {
        Sleep->Until = Due;
        Sleep->Timer = TRUE;
    } else if (Sleep->Until.Clock != Due.Clock) {
        KiMixClocks(Sleep, &Due);
    }
}

static inline BOOLEAN KiOutsideWaitIsOver(PVOID Context)
{
    PKTHREAD Thread = Context;
    /* relaxed: read again with acquire */
    return __atomic_load_n(&Thread->WakeWord, __ATOMIC_RELAXED) != KI_AWAKE ||
           KiOutsideOperations->CheckWait(Thread) != STATUS_PENDING;
}

/* Sleeps until the wait has ended. TRUE: another thread of this process has ended it, and *Status is its result. Otherwise
   STATUS_TIMEOUT or STATUS_KERNEL_APC, STATUS_RETRY, or whatever the world has granted. */
static BOOLEAN KiSleepOutside(PKTHREAD Thread, NTSTATUS *Status)
{
    volatile ULONG *Wake = Thread->OutsideWake;
    KI_OUTSIDE_SLEEP Sleep;
    for (;;) {
        /* acquire: pairs with the releases of the wakers; their changes are read below */
        ULONG Seen = __atomic_load_n(Wake, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&Thread->WakeWord, __ATOMIC_ACQUIRE) != KI_AWAKE) {
            /* acquire: pairs with the release in KiWakeOutside */
            for (ULONG Round = 0; __atomic_load_n(&Thread->WakeWord, __ATOMIC_ACQUIRE) != KI_WOKEN; Round += 1) {
                KiBackOff(Round);
            }
            *Status = (NTSTATUS)Thread->WaitStatus;
            return TRUE;
        }
        *Status = KiOutsideOperations->CheckWait(Thread);
        if (*Status == STATUS_RETRY) {
            if (KiEndOwnWait(Thread)) {
                return FALSE;
            }
        } else if (*Status != STATUS_PENDING) {
            if (KiEndGrantedWait(Thread)) {
                return FALSE;
            }
            KiBackOff(0); /* the thread that has ended it is about to wake this one */
            continue;
        }
        KiChooseOutsideDeadline(Thread, &Sleep);
        if (!(Seen & KI_OUTSIDE_ASLEEP) &&
            !__atomic_compare_exchange_n(Wake, &Seen, Seen | KI_OUTSIDE_ASLEEP, FALSE, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED)) {
            continue;
        }
        if (KiSleepShared(Wake, Seen | KI_OUTSIDE_ASLEEP, &Sleep.Until)) {
            continue;
        }
        if (Sleep.Timer) {
            KiOutsideOperations->ExpireTimers(Thread);
            continue;
        }
        *Status = Sleep.Nap ? STATUS_KERNEL_APC : STATUS_TIMEOUT;
        if (KiEndOwnWait(Thread)) {
            return FALSE;
        }
    }
}

/* KiCommitAndSleep, for a wait with outside objects. */
static NTSTATUS KiCommitAndSleepOutside(PKI_WAIT Wait, BOOLEAN *EndedByOther)
{
    PKTHREAD Thread = Wait->Thread;
    KTRACE_WAIT_BEGIN(Wait);
    KiEnterWaitState(Wait);
    NTSTATUS Status = KiCommitWait(Thread);
    *EndedByOther = FALSE;
    if (Status == STATUS_PENDING || Status == STATUS_WAIT_0) {
        KiExitDispatcher(Thread);
        if (!Wait->Spun) {
            Wait->Spun = TRUE;
            KiParkUntil(Thread, KiParkForObject, KiOutsideWaitIsOver, Thread);
        }
        *EndedByOther = KiSleepOutside(Thread, &Status);
        KiEnterDispatcher(Thread);
    }
    KTRACE_WAIT_END(Wait, (LONG_PTR)Status);
    return Status;
}

/* One attempt. */

static NTSTATUS KiLinkLocals(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    NTSTATUS Status = STATUS_PENDING;
    BOOLEAN Signaled = FALSE;
    ULONG Next = 0;
    for (ULONG Index = 0; Index < Wait->Count && !Signaled; Index += 1) {
        if (Next < Set->Count && Set->Index[Next] == Index) {
            Next += 1;
        } else if (!KiIsOutside(Wait->Objects[Index]) || !Set->TwoWorlds) {
            Status = KiLinkObject(Wait, Index, &Signaled);
        }
    }
    return Status;
}

/* The register is Active. */
static NTSTATUS KiRunOutsideWait(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    PKTHREAD Thread = Wait->Thread;
    BOOLEAN EndedByOther = FALSE;
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        KiPrepareBlock(&Wait->Blocks[Index], Thread, Wait->Objects[Index], Wait->WaitType, (USHORT)Index);
    }
    Thread->WaitBlockList = Wait->Blocks;
    Thread->WaitBlockCount = (USHORT)Wait->Count;
    NTSTATUS Status = Set->Count < Wait->Count ? KiLinkLocals(Wait, Set) : STATUS_PENDING;
    if (Status == STATUS_PENDING) {
        Status = KiCommitAndSleepOutside(Wait, &EndedByOther);
        KiUnlinkBlocks(Wait);
        KiLeaveWaitState(Wait, EndedByOther);
    } else {
        KiUnlinkBlocks(Wait);
    }
    return Status;
}

/* The world has linked the wait. STATUS_RETRY, STATUS_KERNEL_APC: start over. */
static NTSTATUS KiFinishOutsideWait(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    PKTHREAD Thread = Wait->Thread;
    NTSTATUS Status = KiBeginWait(Thread, KiWaitFlags(Thread, Wait->Mode, Wait->Alertable) | KI_WAIT_OUTSIDE);
    if (Status == STATUS_PENDING) {
        Status = KiRunOutsideWait(Wait, Set);
    }
    NTSTATUS Granted = KiOutsideOperations->EndWait(Thread);
    if (Granted == STATUS_PENDING) {
        return Status;
    }
    if (Status == STATUS_ALERTED) { /* it came too late: before the wait, or for the wait before this one (register.c) */
        KeAlertThread(Thread, KiModeOfTakenAlert(Thread));
    }
    return KiStatusOfSet(Set, Granted);
}

static NTSTATUS KiWaitOutsideOnce(PKI_WAIT Wait, PKI_OUTSIDE_SET Set, KI_OUTSIDE_WAIT Kind)
{
    PKTHREAD Thread = Wait->Thread;
    KiEnterDispatcher(Thread);
    NTSTATUS Status = KiOutsideOperations->BeginWait(Thread, Set->Outside, Set->Count, Kind);
    Status = Status == STATUS_PENDING ? KiFinishOutsideWait(Wait, Set) : KiStatusOfSet(Set, Status);
    KiTakeOwnerships(Wait, Status);
    KiExitDispatcher(Thread);
    return Status;
}

/* Any. */

typedef struct _KI_OUTSIDE_SPIN {
    PKI_WAIT Wait;
    PKI_OUTSIDE_SET Set;
    NTSTATUS Status;
} KI_OUTSIDE_SPIN;

static BOOLEAN KiTryAnyOutside(PKI_WAIT Wait, PKI_OUTSIDE_SET Set, NTSTATUS *Status)
{
    if (Set->Count != Wait->Count) {
        return KiTryConsumeAnyOf(Wait, Status);
    }
    *Status = KiStatusOfSet(Set, KiOutsideOperations->TryWait(Wait->Thread, Set->Outside, Set->Count, WaitAny));
    return *Status != STATUS_TIMEOUT;
}

static inline BOOLEAN KiOutsideSatisfies(PVOID Context)
{
    KI_OUTSIDE_SPIN *Spin = Context;
    return KiOutsideOperations->LooksSignaled(Spin->Wait->Thread, Spin->Set->Outside, Spin->Set->Count) &&
           KiTryAnyOutside(Spin->Wait, Spin->Set, &Spin->Status);
}

static NTSTATUS KiWaitForAnyOutside(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    KI_OUTSIDE_SPIN Spin = {Wait, Set, STATUS_TIMEOUT};
    if (KiTryAnyOutside(Wait, Set, &Spin.Status) || Wait->Poll) {
        return Spin.Status;
    }
    if (!Wait->Spun) {
        Wait->Spun = TRUE;
        if (KiParkUntil(Wait->Thread, KiParkForObject, KiOutsideSatisfies, &Spin)) {
            return Spin.Status;
        }
    }
    return KiWaitOutsideOnce(Wait, Set, Set->Count < Wait->Count ? KiOutsideMixedAny : KiOutsideAny);
}

/* All. */

#define KI_TYPE_HELD 0x80 /* with the type of an object: its lock is held */

/* Locks the local objects in address order and records their types. Returns how many were locked: an object that became
   shared in the meantime is not, and gets type 0. */
static ULONG KiLockLocals(PKI_WAIT Wait)
{
    ULONG Locked = 0;
    for (ULONG Number = 0; Number < Wait->Count; Number += 1) {
        ULONG Index = Wait->Order[Number];
        PDISPATCHER_HEADER Header = Wait->Objects[Index];
        ULONG64 Word = KiIsOutside(Header) ? 0 : KiLockObject(Header);
        *KiTypeOf(Wait, Index) = Word != 0 ? (UCHAR)(KI_TYPE(Word) | KI_TYPE_HELD) : 0;
        Locked += Word != 0;
    }
    return Locked;
}

static BOOLEAN KiIsHeld(PKI_WAIT Wait, ULONG Index)
{
    return (*KiTypeOf(Wait, Index) & KI_TYPE_HELD) != 0;
}

static ULONG KiFindUnsignaledLocal(PKI_WAIT Wait)
{
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        PDISPATCHER_HEADER Header = Wait->Objects[Index];
        if (KiIsHeld(Wait, Index) && !KiIsSignaledFor(Header, KiReadHeader(Header), Wait->Thread)) {
            return Index;
        }
    }
    return MAXULONG;
}

/* Second: NULL, or the set of another world. */
/* Takes all or nothing, with every lock held. STATUS_TIMEOUT: *Missing is a local object that is not signaled, MAXULONG: it
   is outside. */
static NTSTATUS KiTakeAllMixed(PKI_WAIT Wait, PKI_OUTSIDE_SET Set, PKI_OUTSIDE_SET Second, PULONG Missing)
{
    PKTHREAD Thread = Wait->Thread;
    NTSTATUS Status = STATUS_TIMEOUT;
    KiEnterDispatcher(Thread);
    ULONG Locked = KiLockLocals(Wait);
    *Missing = KiFindUnsignaledLocal(Wait);
    if (Locked + Set->Count + (Second != NULL ? Second->Count : 0) != Wait->Count) {
        Status = STATUS_RETRY;
    } else if (*Missing == MAXULONG) {
        if (Second == NULL) {
            Status = KiOutsideOperations->TryWait(Thread, Set->Outside, Set->Count, WaitAll);
        } else {
            const KI_OUTSIDE_PART Parts[] = {{Set->Outside, Set->Count}, {Second->Outside, Second->Count}};
            Status = KiOutsideOperations->TryWaitForBoth(Thread, Parts);
        }
    }
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        PDISPATCHER_HEADER Header = Wait->Objects[Index];
        if (!KiIsHeld(Wait, Index)) {
            continue;
        }
        *KiTypeOf(Wait, Index) &= ~KI_TYPE_HELD;
        if ((Status == STATUS_WAIT_0 || Status == STATUS_ABANDONED_WAIT_0) &&
            KiConsumeHeld(Header, Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED_WAIT_0;
        }
        KiUnlockObject(Header, KiReadHeader(Header));
    }
    KiTakeOwnerships(Wait, Status);
    KiExitDispatcher(Thread);
    return Status;
}

static NTSTATUS KiWatchLocal(PKI_WAIT Wait, ULONG Index)
{
    PVOID Object = Wait->Objects[Index];
    KI_WAIT Watch = *Wait;
    Watch.Objects = &Object;
    Watch.Count = 1;
    Watch.WaitType = KI_WATCH_BLOCK;
    Watch.Flags = 0; /* a suspension may not convert it */
    return KiIsOutside(Object) ? STATUS_RETRY : KiWait(&Watch);
}

static NTSTATUS KiWatchOutside(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    for (ULONG Number = 0; Number < Set->Count; Number += 1) {
        if (!KiOutsideOperations->LooksSignaled(Wait->Thread, &Set->Outside[Number], 1)) {
            USHORT First = 0;
            KI_OUTSIDE_SET One = {.Outside = &Set->Outside[Number], .Index = &First, .Count = 1};
            KI_WAIT Watch = *Wait;
            PVOID Object = Wait->Objects[Set->Index[Number]];
            Watch.Objects = &Object;
            Watch.Count = 1;
            Watch.WaitType = KI_WATCH_BLOCK;
            return KiWaitOutsideOnce(&Watch, &One, KiOutsideWatch);
        }
    }
    return STATUS_RETRY; /* all of them look signaled by now */
}

static NTSTATUS KiWaitForAllMixed(PKI_WAIT Wait, PKI_OUTSIDE_SET Set, PKI_OUTSIDE_SET Second)
{
    ULONG Missing;
    NTSTATUS Status = KiTakeAllMixed(Wait, Set, Second, &Missing);
    if (Status != STATUS_TIMEOUT || Wait->Poll) {
        return Status;
    }
    Status = Missing == MAXULONG ? KiWatchOutside(Wait, Set) : KiWatchLocal(Wait, Missing);
    if (Status == STATUS_RETRY && Missing == MAXULONG && Second != NULL) {
        Status = KiWatchOutside(Wait, Second);
    }
    return Status == STATUS_WAIT_0 ? STATUS_RETRY : Status;
}

/* Out of line: few waits need the room for a second set. */
static DECLSPEC_NOINLINE NTSTATUS KiWaitForAllOfTwoWorlds(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    PKI_OUTSIDE Outside[KI_MOST_OUTSIDE];
    USHORT Indices[KI_MOST_OUTSIDE];
    KI_OUTSIDE_SET Second = {.Outside = Outside, .Index = Indices};
    KiCollectOutside(Wait, &Second, Set->Outside[0]->View);
    /* of many objects, one of the sets may not have had room */
    return Second.Count != 0 && Set->Count != KI_MOST_OUTSIDE && Second.Count != KI_MOST_OUTSIDE
               ? KiWaitForAllMixed(Wait, Set, &Second) : STATUS_NOT_SUPPORTED;
}

/* The whole wait. */

#define KI_TWO_WORLDS_NAP 20000 /* 2 ms */

/* A wait for any object of two worlds sleeps on a word of the first, and polls the second. */
static NTSTATUS KiWaitForAnyOfTwoWorlds(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    HAL_DEADLINE Deadline = Wait->Deadline;
    ULONG64 Now = HalDispatch.QueryInterruptTime();
    NTSTATUS Status;
    if (KiTryConsumeAnyOf(Wait, &Status)) {
        return Status;
    }
    if (Wait->Deadline.Clock == HalNoDeadline ||
        (Wait->Deadline.Clock == HalInterruptTime && Wait->Deadline.Time > Now + KI_TWO_WORLDS_NAP) ||
        (Wait->Deadline.Clock == HalSystemTime &&
         Wait->Deadline.Time > HalDispatch.QuerySystemTime() + KI_TWO_WORLDS_NAP)) {
        Wait->Deadline = (HAL_DEADLINE){HalInterruptTime, Now + KI_TWO_WORLDS_NAP};
    }
    Status = Wait->Poll ? STATUS_TIMEOUT : KiWaitOutsideOnce(Wait, Set, KiOutsideMixedAny);
    if (Status == STATUS_TIMEOUT && Wait->Deadline.Time != Deadline.Time) {
        Status = STATUS_RETRY;
    }
    Wait->Deadline = Deadline;
    return Status;
}

static NTSTATUS KiTryWaitOutside(PKI_WAIT Wait, PKI_OUTSIDE_SET Set)
{
    NTSTATUS Status = KiTakeInterruption(Wait->Thread, KiWaitFlags(Wait->Thread, Wait->Mode, Wait->Alertable));
    if (Status != STATUS_PENDING) {
        return Status;
    }
    if (Wait->WaitType != WaitAll) {
        return Set->TwoWorlds ? KiWaitForAnyOfTwoWorlds(Wait, Set) : KiWaitForAnyOutside(Wait, Set);
    }
    if (Set->TwoWorlds) {
        return KiWaitForAllOfTwoWorlds(Wait, Set);
    }
    if (Set->Count != Wait->Count) {
        return KiWaitForAllMixed(Wait, Set, NULL);
    }
    Status = KiOutsideOperations->TryWait(Wait->Thread, Set->Outside, Set->Count, WaitAll);
    return Status != STATUS_TIMEOUT || Wait->Poll ? Status : KiWaitOutsideOnce(Wait, Set, KiOutsideAll);
}

NTSTATUS KiWaitOutside(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    PKI_OUTSIDE Outside[KI_MOST_OUTSIDE];
    USHORT Indices[KI_MOST_OUTSIDE];
    KI_OUTSIDE_SET Set = {.Outside = Outside, .Index = Indices};
    Thread->SawOutside = FALSE;
    for (;;) {
        KiCollectOutside(Wait, &Set, NULL);
        if (Set.Count == 0) {
            return Set.Many ? KiWaitMany(Wait) : KiWait(Wait);
        }
        NTSTATUS Status = KiTryWaitOutside(Wait, &Set);
        if (Status == STATUS_KERNEL_APC) {
            KiDeliverApc(Thread);
            KiPollClock();
        } else if (Status != STATUS_RETRY) {
            Thread->SawOutside = FALSE;
            return Status;
        }
    }
}

/* Keyed events. */

static NTSTATUS KiMeetOutsideOnce(PKI_WAIT Wait, PKI_OUTSIDE KeyedEvent, ULONG64 Key, BOOLEAN Release)
{
    PKTHREAD Thread = Wait->Thread;
    KI_OUTSIDE_SET None = {.Count = 0};
    NTSTATUS Status = KiTakeInterruption(Thread, KiWaitFlags(Thread, Wait->Mode, Wait->Alertable));
    if (Status != STATUS_PENDING) {
        return Status;
    }
    KiEnterDispatcher(Thread);
    Status = KiOutsideOperations->BeginKeyedWait(Thread, KeyedEvent, Key, Release);
    if (Status == STATUS_PENDING && Wait->Poll) {
        Status = KiOutsideOperations->EndWait(Thread);
        Status = Status == STATUS_PENDING ? STATUS_TIMEOUT : Status;
    } else if (Status == STATUS_PENDING) {
        Status = KiFinishOutsideWait(Wait, &None);
    }
    KiExitDispatcher(Thread);
    return Status;
}

NTSTATUS KiMeetOutside(PKI_OUTSIDE KeyedEvent, ULONG64 Key, BOOLEAN Release, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    KI_WAIT Wait;
    NTSTATUS Status;
    KiInitializeWait(&Wait, NULL, WrKeyedEvent, UserMode, Alertable, Timeout);
    for (;;) {
        Status = KiMeetOutsideOnce(&Wait, KeyedEvent, Key, Release);
        if (Status == STATUS_KERNEL_APC) {
            KiDeliverApc(Wait.Thread);
            KiPollClock();
        } else if (Status != STATUS_RETRY) {
            return Status;
        }
    }
}
