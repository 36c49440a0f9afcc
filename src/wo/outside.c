/*
 * outside.c: the world as ke sees it: the operations on outside objects (ke/outside.h), by the waiter records of threads.
 *
 * A thread has a waiter record in each world that it has used, made when it first uses it. A forked child is another
 * process, so a record that was made in the parent is not its own: the slot has the process record that it was made for.
 *
 * A notification is a wait with its own record. When it is granted, the session thread delivers it. Everything about it
 * changes under the world's lock:
 *
 *     BlockState Active:       registered; SparePtr is the index of the record
 *     BlockState BypassStart:  granted, the record is freed, and the thread that did that delivers the block
 */
#include "session.h"
#include "wop.h"

#include "../ke/wait.h"

C_ASSERT(WO_ASLEEP == KI_OUTSIDE_ASLEEP);

/* The blocks that are registered, under the lock of their world. An address that is read from the world is used only if
   it is in the list: any process may have written it. */
static LIST_ENTRY WopRegistered = {&WopRegistered, &WopRegistered};

/* Threads. */

#define WO_THREAD_SLOTS 2

typedef struct _WO_THREAD_SLOT {
    PWO_VIEW View;
    WO_INDEX Waiter;
    WO_INDEX Process;          /* View->Self, when it was made */
} WO_THREAD_SLOT;

typedef struct _WO_THREAD {
    WO_THREAD_SLOT Slot[WO_THREAD_SLOTS];
    ULONG ProcessId;           /* in which they were made */
} WO_THREAD, *PWO_THREAD;

KI_THREAD_ROOM(WO_THREAD, Wo, WopThread);

static BOOLEAN WopIsSlotOf(const WO_THREAD_SLOT *Slot, PWO_VIEW View)
{
    return Slot->View == View && Slot->Process == View->Self;
}

static WO_THREAD_SLOT *WopFreeSlot(PWO_THREAD Thread)
{
    if (Thread->ProcessId != HalCurrentProcessId()) {
        *Thread = (WO_THREAD){.ProcessId = HalCurrentProcessId()};
    }
    for (ULONG Number = 0; Number < WO_THREAD_SLOTS; Number += 1) {
        if (Thread->Slot[Number].View == NULL) {
            return &Thread->Slot[Number];
        }
    }
    return NULL;
}

static DECLSPEC_NOINLINE NTSTATUS WopMakeSlot(PWO_VIEW View, PKTHREAD Thread, ULONG *Number)
{
    WO_THREAD_SLOT *Slot = WopFreeSlot(WopThread(Thread));
    if (Slot == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    NTSTATUS Status = WoCreateWaiter(View, Thread->ThreadId, &Slot->Waiter);
    if (NT_SUCCESS(Status)) {
        Slot->Process = View->Self;
        Slot->View = View;
        *Number = (ULONG)(Slot - WopThread(Thread)->Slot);
    }
    return Status;
}

FORCEINLINE NTSTATUS WopFindSlot(PWO_VIEW View, PKTHREAD Thread, ULONG *Number)
{
    PWO_THREAD Room = WopThread(Thread);
    for (*Number = 0; *Number < WO_THREAD_SLOTS; *Number += 1) {
        if (WopIsSlotOf(&Room->Slot[*Number], View)) {
            return STATUS_SUCCESS;
        }
    }
    return WopMakeSlot(View, Thread, Number);
}

static NTSTATUS WopWaiterOf(PWO_VIEW View, PKTHREAD Thread, WO_INDEX *Waiter)
{
    ULONG Number;
    NTSTATUS Status = WopFindSlot(View, Thread, &Number);
    *Waiter = NT_SUCCESS(Status) ? WopThread(Thread)->Slot[Number].Waiter : 0;
    return Status;
}

NTSTATUS WoWaiterOfCurrentThread(PWO_VIEW View, WO_INDEX *Waiter)
{
    return WopWaiterOf(View, KiCurrentThread(), Waiter);
}

/* 0: it has none. */
FORCEINLINE WO_INDEX WopFindWaiterOfThread(PWO_VIEW View, PKTHREAD Thread)
{
    for (ULONG Number = 0; Number < WO_THREAD_SLOTS; Number += 1) {
        if (WopIsSlotOf(&WopThread(Thread)->Slot[Number], View)) {
            return WopThread(Thread)->Slot[Number].Waiter;
        }
    }
    return 0;
}

WO_INDEX WopFindOwnWaiter(PWO_VIEW View)
{
    return HalCurrentThread != NULL ? WopFindWaiterOfThread(View, HalCurrentThread) : 0;
}

/* Called by the thread itself, by the reaper for a terminated thread, or in a forked child for a thread that stayed in
   the parent. */
static VOID WopEndThread(PKTHREAD Thread)
{
    PWO_THREAD Room = WopThread(Thread);
    if (Room->Slot[0].View == NULL) {
        return;
    }
    for (ULONG Number = 0; Number < WO_THREAD_SLOTS && Room->ProcessId == HalCurrentProcessId(); Number += 1) {
        if (Room->Slot[Number].View != NULL) {
            WoDeleteWaiter(Room->Slot[Number].View, Room->Slot[Number].Waiter);
        }
    }
    *Room = (WO_THREAD){.ProcessId = 0};
}

/* The waiter records are the parent's. Their numbers are not valid here: even that of the parent's own record may be
   assigned to this process, once the parent is dead. */
VOID WopForkThread(PKTHREAD Survivor)
{
    InitializeListHead(&WopRegistered); /* they are notifications of the parent */
    *WopThread(Survivor) = (WO_THREAD){.ProcessId = 0};
}

/* Operations. */

/* The object of a proxy, for which this process has a reference: its index needs no check. NULL: the world is damaged. */
FORCEINLINE PWO_OBJECT WopObjectOfProxy(PKI_OUTSIDE Outside)
{
    PWO_VIEW View = Outside->View;
    return WopIsUnusable(View) ? NULL : WopAt(View, Outside->Index);
}

/* One compare-exchange, if there are no waiters. FALSE: it is frozen, or no event. */
FORCEINLINE BOOLEAN WopTryChangeEvent(PKI_OUTSIDE Event, ULONG Value, PLONG Previous)
{
    PWO_OBJECT Object = WopObjectOfProxy(Event);
    ULONG64 Word = Object != NULL ? WopReadWord(Object) : WO_W;
    while (!(Word & WO_W) && WO_IS_OF_TYPES(Word, WO_EVENTS)) {
        if (WopChangeWord(Object, &Word, WopWithValue(Word, Value))) {
            *Previous = (LONG)WO_VALUE(Word);
            return TRUE;
        }
    }
    return FALSE;
}

static BOOLEAN WopTrySetEventAtOnce(PKI_OUTSIDE Event, PLONG Previous)
{
    return WopTryChangeEvent(Event, 1, Previous);
}

static NTSTATUS WopChangeOutsideEvent(PKI_OUTSIDE Event, KI_OUTSIDE_CHANGE Change, PLONG Previous)
{
    if (WopTryChangeEvent(Event, Change == KiOutsideSet, Previous)) {
        return STATUS_SUCCESS;
    }
    switch (Change) {
    case KiOutsideSet:
        return WoSetEvent(Event->View, Event->Index, Previous);
    case KiOutsideReset:
        return WoResetEvent(Event->View, Event->Index, Previous);
    default:
        return WoPulseEvent(Event->View, Event->Index, Previous);
    }
}

/* Releases without waiters are fast there. */
static NTSTATUS WopReleaseOutsideSemaphore(PKI_OUTSIDE Semaphore, LONG Adjustment, PLONG Previous)
{
    return WoReleaseSemaphore(Semaphore->View, Semaphore->Index, Adjustment, Previous);
}

static BOOLEAN WopTryReleaseSemaphoreAtOnce(PKI_OUTSIDE Semaphore, LONG Adjustment, PLONG Previous)
{
    PWO_OBJECT Object = WopObjectOfProxy(Semaphore);
    return Object != NULL && WopTryReleaseSemaphore(Object, Adjustment, Previous) == STATUS_SUCCESS;
}

/* NULL: also if the current thread has no record yet. */
FORCEINLINE PWO_OBJECT WopMutantOfProxy(PKI_OUTSIDE Mutant, PKTHREAD Thread, WO_INDEX *Self)
{
    PWO_OBJECT Object = WopObjectOfProxy(Mutant);
    *Self = WopFindWaiterOfThread(Mutant->View, Thread);
    return *Self != 0 && Object != NULL && WO_TYPE_OF(WopReadWord(Object)) == WoMutant ? Object : NULL;
}

static BOOLEAN WopTryReleaseMutantAtOnce(PKI_OUTSIDE Mutant, PKTHREAD Thread, PLONG Previous)
{
    WO_INDEX Self;
    PWO_OBJECT Object = WopMutantOfProxy(Mutant, Thread, &Self);
    return Object != NULL && WopTryReleaseMutant(Mutant->View, Object, Self, FALSE, Previous) == STATUS_SUCCESS;
}

/* A thread without a record owns nothing. */
static NTSTATUS WopReleaseOutsideMutant(PKI_OUTSIDE Mutant, PKTHREAD Thread, BOOLEAN Abandoned, PLONG Previous)
{
    WO_INDEX Self;
    NTSTATUS Status = WopWaiterOf(Mutant->View, Thread, &Self);
    return NT_SUCCESS(Status) ? WoReleaseMutant(Mutant->View, Mutant->Index, Self, Abandoned, Previous) : Status;
}

static NTSTATUS WopSetOutsideTimer(PKI_OUTSIDE Timer, LONGLONG DueTime, ULONG Period, PULONG64 Arming, PBOOLEAN Previous)
{
    WO_TIMER_SETTING Setting = {(ULONGLONG)DueTime, TRUE, Period};
    if (DueTime < 0) {
        Setting.DueTime = HalDispatch.QueryInterruptTime() + (0 - (ULONGLONG)DueTime);
        Setting.Absolute = FALSE;
    }
    return WoSetTimer(Timer->View, Timer->Index, &Setting, Arming, Previous);
}

static NTSTATUS WopCancelOutsideTimer(PKI_OUTSIDE Timer, PBOOLEAN Previous)
{
    return WoCancelTimer(Timer->View, Timer->Index, Previous);
}

static BOOLEAN WopIsOutsideArmed(PKI_OUTSIDE Timer, ULONG64 Arming)
{
    return WoIsArmed(Timer->View, Timer->Index, Arming);
}

static NTSTATUS WopQueryOutsideState(PKI_OUTSIDE Object, PKTHREAD Thread, PKI_OUTSIDE_STATE State)
{
    WO_STATE Found;
    NTSTATUS Status = WoQueryState(Object->View, Object->Index, &Found);
    *State = (KI_OUTSIDE_STATE){0};
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    State->State = Found.State;
    State->Limit = Found.Limit;
    State->Abandoned = Found.Abandoned;
    State->OwnerProcess = Found.OwnerProcess;
    State->OwnerThread = Found.OwnerThread;
    State->DueTime = Found.Timer.DueTime;
    State->Absolute = Found.Timer.Absolute;
    State->Period = Found.Timer.Period;
    for (ULONG Number = 0; Found.Owner != 0 && Number < WO_THREAD_SLOTS; Number += 1) {
        const WO_THREAD_SLOT *Slot = &WopThread(Thread)->Slot[Number];
        State->Mine |= WopIsSlotOf(Slot, Object->View) && Slot->Waiter == Found.Owner;
    }
    return Status;
}

/* Moving. */

static NTSTATUS WopPrepareOwner(PKI_OUTSIDE Object, PKTHREAD Thread)
{
    WO_INDEX Waiter;
    return WopWaiterOf(Object->View, Thread, &Waiter);
}

/* No other thread knows the object, so it needs no lock. If its creator is killed, the object is freed with the
   creator. */
static VOID WopAdoptState(PKI_OUTSIDE Outside, const KI_OUTSIDE_STATE *State)
{
    PWO_OBJECT Object = WopRecord(Outside->View, Outside->Index, WoObjectRecord);
    WO_INDEX Owner;
    if (Object == NULL) {
        return;
    }
    ULONG64 Word = WopReadWord(Object) & ~(WO_W | WO_ABANDONED);
    Object->Limit = State->Limit;
    Object->DueTime = State->DueTime;
    Object->Absolute = State->Absolute;
    Object->Period = State->Period;
    if (WO_TYPE_OF(Word) != WoMutant) {
        Word = WopWithValue(Word, (ULONG)State->State);
    }
    __atomic_store_n(&Object->Word, Word | (State->Abandoned ? WO_ABANDONED : 0), __ATOMIC_RELEASE);
    if (State->Owner != NULL && NT_SUCCESS(WopWaiterOf(Outside->View, State->Owner, &Owner))) {
        WopTakeFrozenMutant(Outside->View, Owner, Object);
        Object->Recursion = (ULONG)(0 - State->State);
    }
}

/* Waits. */

static VOID WopIndicesOf(const PKI_OUTSIDE Objects[], ULONG Count, WO_INDEX Indices[])
{
    for (ULONG Number = 0; Number < Count; Number += 1) {
        Indices[Number] = Objects[Number]->Index;
    }
}

/* One object that has no owner and no time. STATUS_PENDING: it is another one, or frozen. */
FORCEINLINE NTSTATUS WopTryOutsideObject(PKI_OUTSIDE Outside)
{
    PWO_OBJECT Object = WopObjectOfProxy(Outside);
    ULONG64 Word = Object != NULL ? WopReadWord(Object) : WO_W;
    while (!(Word & WO_W) && WO_IS_OF_TYPES(Word, WO_EVENTS | 1ull << WoSemaphore)) {
        ULONG64 New = WopConsumed(Word, 0);
        if (WO_VALUE(Word) == 0) {
            return STATUS_TIMEOUT;
        }
        if (New == Word || WopChangeWord(Object, &Word, New)) {
            return STATUS_SUCCESS;
        }
    }
    return STATUS_PENDING;
}

static BOOLEAN WopTryConsumeAtOnce(PKI_OUTSIDE Object, PKTHREAD Thread, NTSTATUS *Status)
{
    WO_INDEX Self;
    *Status = WopTryOutsideObject(Object);
    if (*Status != STATUS_PENDING) {
        return *Status == STATUS_SUCCESS;
    }
    PWO_OBJECT Mutant = WopMutantOfProxy(Object, Thread, &Self);
    return Mutant != NULL && WopTryAcquire(Object->View, Mutant, Self, Status);
}

static DECLSPEC_NOINLINE NTSTATUS WopTryOutsideObjects(PKTHREAD Thread, const PKI_OUTSIDE Objects[], ULONG Count,
                                                       WAIT_TYPE WaitType)
{
    PWO_VIEW View = Objects[0]->View;
    WO_INDEX Indices[WO_BLOCKS];
    WO_INDEX Self;
    NTSTATUS Status = WopWaiterOf(View, Thread, &Self);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    WopIndicesOf(Objects, Count, Indices);
    return WoTryWait(View, Self, Indices, Count, WaitType);
}

static NTSTATUS WopTryOutsideWait(PKTHREAD Thread, const PKI_OUTSIDE Objects[], ULONG Count, WAIT_TYPE WaitType)
{
    NTSTATUS Status = WaitType == WaitAll && Count != 1 ? STATUS_PENDING : STATUS_TIMEOUT;
    ULONG Number = 0;
    for (; Status == STATUS_TIMEOUT && Number < Count; Number += 1) {
        Status = WopTryOutsideObject(Objects[Number]);
    }
    if (Status != STATUS_PENDING) {
        return Status == STATUS_TIMEOUT ? Status : Status + (NTSTATUS)Number - 1;
    }
    Number -= Number != 0; /* those in front of it are not signaled */
    Status = WopTryOutsideObjects(Thread, Objects + Number, Count - Number, WaitType);
    return Status == STATUS_TIMEOUT || !NT_SUCCESS(Status) ? Status : Status + (NTSTATUS)Number;
}

static NTSTATUS WopTryOutsideWaitForBoth(PKTHREAD Thread, const KI_OUTSIDE_PART Parts[2])
{
    WO_INDEX Indices[2][WO_BLOCKS];
    WO_PART Both[2];
    for (ULONG Part = 0; Part < 2; Part += 1) {
        Both[Part] = (WO_PART){.View = Parts[Part].Objects[0]->View, .Objects = Indices[Part], .Count = Parts[Part].Count};
        NTSTATUS Status = WopWaiterOf(Both[Part].View, Thread, &Both[Part].Self);
        if (!NT_SUCCESS(Status)) {
            return Status;
        }
        WopIndicesOf(Parts[Part].Objects, Parts[Part].Count, Indices[Part]);
    }
    return WoTryWaitForBoth(Both);
}

static BOOLEAN WopLooksSignaled(PKTHREAD Thread, const PKI_OUTSIDE Objects[], ULONG Count)
{
    PWO_VIEW View = Objects[0]->View;
    ULONG Slot;
    WO_INDEX Self = NT_SUCCESS(WopFindSlot(View, Thread, &Slot)) ? WopThread(Thread)->Slot[Slot].Waiter : 0;
    for (ULONG Number = 0; Number < Count; Number += 1) {
        PWO_OBJECT Object = WopRecord(View, Objects[Number]->Index, WoObjectRecord);
        if (Object == NULL || WopIsSignaledFor(WopReadWord(Object), Self)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* The low bits of OutsideNumber say which slot the wait belongs to. */
static VOID WopPublishWait(PKTHREAD Thread, ULONG Slot)
{
    const WO_THREAD_SLOT *Used = &WopThread(Thread)->Slot[Slot];
    Thread->OutsideWake = WoWakeWord(Used->View, Used->Waiter);
    /* release: the compare-exchange that makes the register Active follows; a claimer reads the number after it */
    __atomic_store_n(&Thread->OutsideNumber, WoWaitNumber(Used->View, Used->Waiter) | Slot, __ATOMIC_RELEASE);
}

static NTSTATUS WopBeginOutsideWait(PKTHREAD Thread, const PKI_OUTSIDE Objects[], ULONG Count, KI_OUTSIDE_WAIT Kind)
{
    PWO_VIEW View = Objects[0]->View;
    WO_INDEX Indices[WO_BLOCKS];
    ULONG Slot;
    NTSTATUS Status = WopFindSlot(View, Thread, &Slot);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    WopIndicesOf(Objects, Count, Indices);
    PWO_WAITER Waiter = WopRecord(View, WopThread(Thread)->Slot[Slot].Waiter, WoWaiterRecord);
    if (Waiter != NULL) { /* for wait chains and the debugger. relaxed: the lock that links the wait publishes it */
        __atomic_store_n(&Waiter->Mixed, Kind == KiOutsideMixedAny, __ATOMIC_RELAXED);
    }
    Kind = Kind == KiOutsideMixedAny ? KiOutsideAny : Kind;
    Status = WoBeginWait(View, WopThread(Thread)->Slot[Slot].Waiter, Indices, Count, (WO_WAIT_KIND)Kind);
    if (Status == STATUS_PENDING) {
        WopPublishWait(Thread, Slot);
    }
    return Status;
}

C_ASSERT((int)KiOutsideAny == (int)WoWaitAny && (int)KiOutsideAll == (int)WoWaitAll && (int)KiOutsideWatch == (int)WoWatch);

static NTSTATUS WopBeginOutsideKeyedWait(PKTHREAD Thread, PKI_OUTSIDE KeyedEvent, ULONG64 Key, BOOLEAN Release)
{
    ULONG Slot;
    NTSTATUS Status = WopFindSlot(KeyedEvent->View, Thread, &Slot);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = WoBeginKeyedWait(KeyedEvent->View, WopThread(Thread)->Slot[Slot].Waiter, KeyedEvent->Index, Key, Release);
    if (Status == STATUS_PENDING) {
        WopPublishWait(Thread, Slot);
    }
    return Status;
}

static const WO_THREAD_SLOT *WopSlotOfWait(PKTHREAD Thread, ULONG64 Number)
{
    return &WopThread(Thread)->Slot[Number % WO_THREAD_SLOTS];
}

static KI_OUTSIDE_CLAIM WopClaimOutsideWait(PKTHREAD Thread, ULONG64 Number)
{
    const WO_THREAD_SLOT *Slot = WopSlotOfWait(Thread, Number);
    switch (WoClaimWait(Slot->View, Slot->Waiter, Number & ~WO_STATE_MASK)) {
    case WoNotClaimed:
        return KiOutsideGranted;
    case WoClaimedByUs:
        return KiOutsideClaimed;
    default:
        return KiOutsideOtherWait;
    }
}

static NTSTATUS WopCheckOutsideWait(PKTHREAD Thread)
{
    const WO_THREAD_SLOT *Slot = WopSlotOfWait(Thread, Thread->OutsideNumber);
    return WoCheckWait(Slot->View, Slot->Waiter);
}

static BOOLEAN WopNextOutsideDue(PKTHREAD Thread, PHAL_DEADLINE Due)
{
    const WO_THREAD_SLOT *Slot = WopSlotOfWait(Thread, Thread->OutsideNumber);
    return WoNextDue(Slot->View, Slot->Waiter, Due);
}

static VOID WopExpireOutsideTimers(PKTHREAD Thread)
{
    const WO_THREAD_SLOT *Slot = WopSlotOfWait(Thread, Thread->OutsideNumber);
    WoExpireTimers(Slot->View, Slot->Waiter);
}

static NTSTATUS WopEndOutsideWait(PKTHREAD Thread)
{
    const WO_THREAD_SLOT *Slot = WopSlotOfWait(Thread, Thread->OutsideNumber);
    NTSTATUS Status = WoEndWait(Slot->View, Slot->Waiter);
    PWO_WAITER Waiter = Status != STATUS_PENDING ? WopRecord(Slot->View, Slot->Waiter, WoWaiterRecord) : NULL;
    if (Waiter != NULL) {
        __atomic_store_n(&Thread->WakerProcessor, Waiter->WakerProcessor, __ATOMIC_RELAXED);
    }
    return Status;
}

/* Notifications. */

static PKWAIT_BLOCK WopRegisteredBlock(PWO_VIEW View, PWO_WAITER Waiter)
{
    for (PLIST_ENTRY Entry = WopRegistered.Flink; Entry != &WopRegistered; Entry = Entry->Flink) {
        PKWAIT_BLOCK Block = CONTAINING_RECORD(Entry, KWAIT_BLOCK, WaitListEntry);
        if ((ULONG64)(ULONG_PTR)Block == __atomic_load_n(&Waiter->Notification, __ATOMIC_RELAXED) &&
            (WO_INDEX)(ULONG_PTR)Block->SparePtr == WopIndexOf(View, Waiter)) {
            return Block;
        }
    }
    WopPoison(View, "a notification is not of this process");
    return NULL;
}

/* With the lock held. Afterwards the caller delivers the block. */
static VOID WopTakeNotification(PWO_VIEW View, WO_INDEX Waiter, PKWAIT_BLOCK Block)
{
    RemoveEntryList(&Block->WaitListEntry);
    __atomic_store_n(&Block->BlockState, WaitBlockBypassStart, __ATOMIC_RELEASE);
    WopEndWaiter(View, Waiter);
    WopFreeWaiter(View, WopAt(View, Waiter));
}

/* By a record that no wait uses. */
static NTSTATUS WopRegisterBlockBy(WO_INDEX Index, PKI_OUTSIDE Object, PKWAIT_BLOCK Block)
{
    PWO_VIEW View = Object->View;
    PWO_WAITER Waiter = WopRecord(View, Index, WoWaiterRecord);
    NTSTATUS Status;
    if (Waiter == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    Block->SparePtr = (PVOID)(ULONG_PTR)Index;
    __atomic_store_n(&Block->BlockState, WaitBlockActive, __ATOMIC_RELAXED);
    __atomic_store_n(&Waiter->Notification, (ULONG64)(ULONG_PTR)Block, __ATOMIC_RELAXED); /* the lock below publishes it */
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    InsertTailList(&WopRegistered, &Block->WaitListEntry);
    WopUnlock(View);
    Status = WoBeginWait(View, Index, &Object->Index, 1, WoWaitAny);
    if (Status != STATUS_PENDING) {
        if (WopLock(View)) {
            RemoveEntryList(&Block->WaitListEntry);
            WopUnlock(View);
        }
        WoDeleteWaiter(View, Index);
        return Status;
    }
    PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
    if (Self != NULL && WO_IS_OF_TYPES(WopReadWord(WopAt(View, Object->Index)), WO_TIMERS)) {
        WopWakeSession(Self); /* it has to read the timer's due time */
    }
    return Status;
}

static NTSTATUS WopRegisterBlock(PKI_OUTSIDE Object, PKWAIT_BLOCK Block)
{
    WO_INDEX Index;
    NTSTATUS Status = WoCreateWaiter(Object->View, 0, &Index);
    return NT_SUCCESS(Status) ? WopRegisterBlockBy(Index, Object, Block) : Status;
}

static BOOLEAN WopUnregisterBlock(PKI_OUTSIDE Object, PKWAIT_BLOCK Block)
{
    PWO_VIEW View = Object->View;
    BOOLEAN Mine, Linked = FALSE;
    if (!WopLock(View)) {
        return FALSE;
    }
    WO_INDEX Index = (WO_INDEX)(ULONG_PTR)Block->SparePtr;
    Mine = __atomic_load_n(&Block->BlockState, __ATOMIC_ACQUIRE) == WaitBlockActive;
    if (Mine) {
        Linked = WoClaimLocally(View, Index);
        WopTakeNotification(View, Index, Block);
    }
    WopUnlock(View);
    if (Mine && !Linked) {
        KiDeliverNotification(Block);
    }
    return Linked;
}

/* With the lock held: the first notification of this process from Index on, or NULL. */
static PWO_WAITER WopFindNotification(PWO_VIEW View, WO_INDEX Index)
{
    for (ULONG Left = View->World->Waiters; Index != 0 && Left != 0; Left -= 1) {
        PWO_WAITER Waiter = WopRecord(View, Index, WoWaiterRecord);
        /* relaxed: a notification that is just being registered is not granted yet */
        if (Waiter == NULL || __atomic_load_n(&Waiter->Notification, __ATOMIC_RELAXED) != 0) {
            return Waiter;
        }
        Index = Waiter->NextOfProcess;
    }
    return NULL;
}

static PWO_WAITER WopFirstNotification(PWO_VIEW View)
{
    PWO_PROCESS Process = WopRecord(View, View->Self, WoProcessRecord);
    return Process != NULL ? WopFindNotification(View, Process->FirstWaiter) : NULL;
}

/* With the lock held: a notification that is granted, or NULL. A timer that is due is granted here. */
static PKWAIT_BLOCK WopTakeGranted(PWO_VIEW View)
{
    ULONG Left = WopMostBlocks(View);
    for (PWO_WAITER Waiter = WopFirstNotification(View); Waiter != NULL && Left != 0;
         Waiter = WopFindNotification(View, Waiter->NextOfProcess), Left -= 1) {
        PWO_OBJECT Object = (WopReadState(Waiter) & WO_STATE_MASK) == WoWaiting ? WopObject(View, Waiter->Block[0].Object) : NULL;
        if (Object != NULL && WO_IS_OF_TYPES(WopReadWord(Object), WO_TIMERS)) {
            WopExpireIfDue(View, Object);
        }
        if ((WopReadState(Waiter) & WO_STATE_MASK) == WoGranted) {
            PKWAIT_BLOCK Block = WopRegisteredBlock(View, Waiter);
            if (Block != NULL) {
                WopTakeNotification(View, WopIndexOf(View, Waiter), Block);
            }
            return Block;
        }
    }
    return NULL;
}

/* Room for notifications that move: records whose Notification is the address of what they move to. They are idle, so nothing
   delivers them. If the process is killed, they are freed with its other records. */

/* With the lock held. NULL: there is none. */
static PWO_WAITER WopFindReserved(PKI_OUTSIDE Object)
{
    PWO_VIEW View = Object->View;
    ULONG Left = WopMostBlocks(View);
    PWO_WAITER Waiter = WopFirstNotification(View);
    while (Waiter != NULL && Left != 0 &&
           __atomic_load_n(&Waiter->Notification, __ATOMIC_RELAXED) != (ULONG64)(ULONG_PTR)Object) {
        Waiter = WopFindNotification(View, Waiter->NextOfProcess);
        Left -= 1;
    }
    return Left != 0 ? Waiter : NULL;
}

static NTSTATUS WopReserveBlocks(PKI_OUTSIDE Object, ULONG Count)
{
    NTSTATUS Status = STATUS_SUCCESS;
    WO_INDEX Index;
    for (; Count != 0 && NT_SUCCESS(Status); Count -= 1) {
        Status = WoCreateWaiter(Object->View, 0, &Index);
        PWO_WAITER Waiter = NT_SUCCESS(Status) ? WopRecord(Object->View, Index, WoWaiterRecord) : NULL;
        if (Waiter != NULL) {
            /* relaxed: only this process uses its value, and this thread frees the record or takes it */
            __atomic_store_n(&Waiter->Notification, (ULONG64)(ULONG_PTR)Object, __ATOMIC_RELAXED);
        }
    }
    return Status;
}

static NTSTATUS WopMoveBlock(PKI_OUTSIDE Object, PKWAIT_BLOCK Block)
{
    PWO_VIEW View = Object->View;
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    PWO_WAITER Waiter = WopFindReserved(Object);
    WopUnlock(View);
    return Waiter != NULL ? WopRegisterBlockBy(WopIndexOf(View, Waiter), Object, Block) : STATUS_FILE_CORRUPT_ERROR;
}

static VOID WopReturnBlocks(PKI_OUTSIDE Object)
{
    PWO_VIEW View = Object->View;
    PWO_WAITER Waiter = NULL;
    while (WopLock(View)) {
        Waiter = WopFindReserved(Object);
        if (Waiter != NULL) {
            WopFreeWaiter(View, Waiter);
        }
        WopUnlock(View);
        if (Waiter == NULL) {
            return;
        }
    }
}

VOID WopDeliverNotifications(PWO_VIEW View)
{
    PKWAIT_BLOCK Block;
    do {
        if (!WopLock(View)) {
            return;
        }
        Block = WopTakeGranted(View);
        WopUnlock(View);
        if (Block != NULL) {
            KiDeliverNotification(Block);
        }
    } while (Block != NULL);
}

#define WO_LONGEST_ABSOLUTE_SLEEP 10000000ull /* a second: a clock step is noticed no later */

/* The time at which a timer is due, as interrupt time. */
static ULONGLONG WopDueOf(PWO_OBJECT Timer)
{
    ULONGLONG Now = HalDispatch.QueryInterruptTime();
    if (Timer->DueTime == 0 || !Timer->Absolute) {
        return Timer->DueTime;
    }
    ULONGLONG System = HalDispatch.QuerySystemTime();
    ULONGLONG Remaining = Timer->DueTime > System ? Timer->DueTime - System : 0;
    return Now + (Remaining < WO_LONGEST_ABSOLUTE_SLEEP ? Remaining : WO_LONGEST_ABSOLUTE_SLEEP);
}

ULONGLONG WopNextNotification(PWO_VIEW View)
{
    ULONGLONG Next = 0;
    if (!WopLock(View)) {
        return 0;
    }
    ULONG Left = WopMostBlocks(View);
    for (PWO_WAITER Waiter = WopFirstNotification(View); Waiter != NULL && Left != 0;
         Waiter = WopFindNotification(View, Waiter->NextOfProcess), Left -= 1) {
        PWO_OBJECT Object = (WopReadState(Waiter) & WO_STATE_MASK) == WoWaiting ? WopObject(View, Waiter->Block[0].Object) : NULL;
        ULONGLONG Due = Object != NULL && WO_IS_OF_TYPES(WopReadWord(Object), WO_TIMERS) ? WopDueOf(Object) : 0;
        Next = Due != 0 && (Next == 0 || Due < Next) ? Due : Next;
    }
    WopUnlock(View);
    return Next;
}

static const KI_OUTSIDE_OPERATIONS WopOutsideOperations = {
    .ChangeEvent = WopChangeOutsideEvent,
    .TrySetEventAtOnce = WopTrySetEventAtOnce,
    .TryReleaseSemaphoreAtOnce = WopTryReleaseSemaphoreAtOnce,
    .TryReleaseMutantAtOnce = WopTryReleaseMutantAtOnce,
    .TryConsumeAtOnce = WopTryConsumeAtOnce,
    .ReleaseSemaphore = WopReleaseOutsideSemaphore,
    .ReleaseMutant = WopReleaseOutsideMutant,
    .SetTimer = WopSetOutsideTimer,
    .CancelTimer = WopCancelOutsideTimer,
    .IsArmed = WopIsOutsideArmed,
    .QueryState = WopQueryOutsideState,
    .PrepareOwner = WopPrepareOwner,
    .AdoptState = WopAdoptState,
    .TryWait = WopTryOutsideWait,
    .TryWaitForBoth = WopTryOutsideWaitForBoth,
    .LooksSignaled = WopLooksSignaled,
    .BeginWait = WopBeginOutsideWait,
    .BeginKeyedWait = WopBeginOutsideKeyedWait,
    .Claim = WopClaimOutsideWait,
    .CheckWait = WopCheckOutsideWait,
    .NextDue = WopNextOutsideDue,
    .ExpireTimers = WopExpireOutsideTimers,
    .EndWait = WopEndOutsideWait,
    .RegisterBlock = WopRegisterBlock,
    .UnregisterBlock = WopUnregisterBlock,
    .ReserveBlocks = WopReserveBlocks,
    .MoveBlock = WopMoveBlock,
    .ReturnBlocks = WopReturnBlocks,
    .EndThread = WopEndThread,
};

static VOID WopRegisterOutside(VOID)
{
    KiSetOutsideOperations(&WopOutsideOperations);
}
KI_INITIALIZER(KiInitializeObjects, WopRegisterOutside);
