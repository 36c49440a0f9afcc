/* waiterhash.c: the table of threads that wait for a key, and keyed events. Theory of the table in waiterhash.h. */
#include "waiterhash.h"
#include "exp.h"

#include "../ke/debugdata.h"
#include "../ke/wait.h"

EXP_WAITER_BUCKET ExpWaiterTable[EXP_WAITER_BUCKETS];
KD_REGISTER_ROOT(ExpWaiterTable);
KD_REGISTER_LAYOUT(ExpWaiterLayout, EXP_WAITER_LAYOUT);

/* relaxed: the lock's own word orders it for a reader without the lock, see ExpMayHaveWaiters */
static VOID ExpSetCount(PEXP_WAITER_BUCKET Bucket, ULONG Count)
{
    __atomic_store_n(&Bucket->Count, Count, __ATOMIC_RELAXED);
    if (Count == 0) {
        Bucket->Signs = 0;
    }
}

PEXP_WAITER_BUCKET ExpLockWaiters(const EXP_WAIT_KEY *Key, PKTHREAD Thread)
{
    PEXP_WAITER_BUCKET Bucket = ExpBucketOf(Key);
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Bucket->Lock);
    if (Bucket->ProcessId != KiInitialProcess.ProcessId) {
        InitializeListHead(&Bucket->WaiterList);
        ExpSetCount(Bucket, 0);
        Bucket->ProcessId = KiInitialProcess.ProcessId;
    }
    return Bucket;
}

VOID ExpUnlockWaiters(PEXP_WAITER_BUCKET Bucket, PKTHREAD Thread)
{
    KiReleaseLock(&Bucket->Lock);
    KiExitDispatcher(Thread);
}

static BOOLEAN ExpIsSameKey(const EXP_WAIT_KEY *One, const EXP_WAIT_KEY *Other)
{
    return One->Key == Other->Key && One->Object == Other->Object && One->Process == Other->Process &&
           One->Kind == Other->Kind;
}

static PEXP_WAITER ExpWaiterOfLink(PLIST_ENTRY Link)
{
    return CONTAINING_RECORD(Link, EXP_WAITER, Link);
}

static PEXP_WAITER ExpFindOldestWaiter(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key)
{
    PLIST_ENTRY Link = Bucket->WaiterList.Flink;
    if (!(Bucket->Signs & ExpSignOf(Key))) {
        return NULL;
    }
    while (Link != &Bucket->WaiterList) {
        PEXP_WAITER Oldest = ExpWaiterOfLink(Link);
        if (ExpIsSameKey(&Oldest->Key, Key)) {
            return Oldest;
        }
        Link = Oldest->OtherEnd->Link.Flink;
    }
    return NULL;
}

static VOID ExpPairEnds(PEXP_WAITER Oldest, PEXP_WAITER Youngest)
{
    Oldest->OtherEnd = Youngest;
    Youngest->OtherEnd = Oldest;
}

VOID ExpInsertWaiter(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter)
{
    PEXP_WAITER Oldest = ExpFindOldestWaiter(Bucket, &Waiter->Key);
    if (Oldest == NULL) {
        InsertTailList(&Bucket->WaiterList, &Waiter->Link);
        ExpPairEnds(Waiter, Waiter);
    } else {
        PEXP_WAITER Youngest = Oldest->OtherEnd;
        InsertHeadList(&Youngest->Link, &Waiter->Link);
        Youngest->OtherEnd = NULL;
        ExpPairEnds(Oldest, Waiter);
    }
    Waiter->Listed = TRUE;
    Bucket->Signs |= ExpSignOf(&Waiter->Key);
    ExpSetCount(Bucket, Bucket->Count + 1);
}

static VOID ExpUnlist(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter)
{
    if (Waiter->OtherEnd != NULL && Waiter->OtherEnd != Waiter) {
        /* one end of several: its neighbour toward the other end becomes the end */
        PLIST_ENTRY Younger = Waiter->Link.Flink;
        BOOLEAN IsOldest =
            Younger != &Bucket->WaiterList && ExpIsSameKey(&ExpWaiterOfLink(Younger)->Key, &Waiter->Key);
        ExpPairEnds(ExpWaiterOfLink(IsOldest ? Younger : Waiter->Link.Blink), Waiter->OtherEnd);
    }
    RemoveEntryList(&Waiter->Link);
    Waiter->Listed = FALSE;
    ExpSetCount(Bucket, Bucket->Count - 1);
}

ULONG ExpTakeWaiters(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key, ULONG Most, PLIST_ENTRY Taken)
{
    PEXP_WAITER Oldest = ExpFindOldestWaiter(Bucket, Key);
    ULONG Count = 0;
    InitializeListHead(Taken);
    while (Oldest != NULL && Count < Most) {
        PEXP_WAITER Next = Oldest->OtherEnd != Oldest ? ExpWaiterOfLink(Oldest->Link.Flink) : NULL;
        ExpUnlist(Bucket, Oldest);
        InsertTailList(Taken, &Oldest->Link);
        Count += 1;
        Oldest = Next;
    }
    return Count;
}

PEXP_WAITER ExpTakeFirstWaiter(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key)
{
    LIST_ENTRY Taken;
    return ExpTakeWaiters(Bucket, Key, 1, &Taken) != 0 ? ExpWaiterOfLink(Taken.Flink) : NULL;
}

BOOLEAN ExpTakeListedWaiter(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter)
{
    BOOLEAN Listed = Waiter->Listed;
    if (Listed) {
        ExpUnlist(Bucket, Waiter);
    }
    return Listed;
}

BOOLEAN ExpTakeWaiter(PEXP_WAITER Waiter, PKTHREAD Thread)
{
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Waiter->Key, Thread);
    BOOLEAN Taken = ExpTakeListedWaiter(Bucket, Waiter);
    ExpUnlockWaiters(Bucket, Thread);
    return Taken;
}

/*
 * Values. acquire: pairs with the change of the value. At an unaligned address the comparison is bytewise and may see half of a
 * change, but then the wake for that change is still to come.
 */

BOOLEAN ExpIsValueSize(SIZE_T Size)
{
    return Size == sizeof(UCHAR) || Size == sizeof(USHORT) || Size == sizeof(ULONG) || Size == sizeof(ULONG64);
}

static BOOLEAN ExpIsSameInBytes(const volatile UCHAR *Address, const UCHAR *CompareAddress, SIZE_T Size)
{
    while (Size != 0 && __atomic_load_n(Address, __ATOMIC_ACQUIRE) == *CompareAddress) {
        Address += 1;
        CompareAddress += 1;
        Size -= 1;
    }
    return Size == 0;
}

#define EXP_SAME(Type, Address, CompareAddress)                                                                        \
    (__atomic_load_n((const volatile Type *)(Address), __ATOMIC_ACQUIRE) == *(const Type *)(CompareAddress))

BOOLEAN ExpIsSameValue(const volatile VOID *Address, const VOID *CompareAddress, SIZE_T Size)
{
    if (((ULONG_PTR)Address | (ULONG_PTR)CompareAddress) % Size != 0) {
        return ExpIsSameInBytes(Address, CompareAddress, Size);
    }
    switch (Size) {
    case sizeof(UCHAR):
        return EXP_SAME(UCHAR, Address, CompareAddress);
    case sizeof(USHORT):
        return EXP_SAME(USHORT, Address, CompareAddress);
    case sizeof(ULONG):
        return EXP_SAME(ULONG, Address, CompareAddress);
    default:
        return EXP_SAME(ULONG64, Address, CompareAddress);
    }
}

/*
 * Keyed events: two threads rendezvous at a key, one that waits and one that releases.
 *
 * 1. A wait ends with success exactly when a release does: each is paired with one of the other side. The second thread
 *    finds the first in the waiter hash, removes it, wakes it, and does not block; the first one blocks, so a release
 *    without a waiter is not lost.
 * 2. The oldest of the other side is paired first.
 * 3. Only threads of the same process that name the same keyed event and the same key are paired.
 * 4. A timeout, an alert or a user APC that races with a pairing loses: a thread that was removed from the hash has
 *    been paired, waits for its wakeup, and returns success. An alert that ended its sleep is restored.
 * 5. Nothing is allocated, so neither side can fail for lack of memory.
 * 6. An odd key is refused before anything else is checked. Every even one is legal, also NULL.
 *
 * A count of releases in the object would keep a release from blocking, and fail 1: a thread that gave up in between
 * would leave a release for an unrelated waiter.
 */

enum { ExpKeyedWait, ExpKeyedRelease };

typedef struct _EXP_KEYED_WAITER {
    EXP_WAITER Waiter;
    KEVENT Paired;
} EXP_KEYED_WAITER, *PEXP_KEYED_WAITER;

EX_KEYED_EVENT ExpCritSecOutOfMemoryEvent = {
    .Signaled = {
        .Header = {
            .Type = EventNotificationObject,
            .Size = sizeof(KEVENT) / sizeof(LONG),
            .SignalState = 1,
            .WaitListHead = {&ExpCritSecOutOfMemoryEvent.Signaled.Header.WaitListHead,
                             &ExpCritSecOutOfMemoryEvent.Signaled.Header.WaitListHead},
        },
    },
};

VOID ExpInitializeKeyedEvent(PEX_KEYED_EVENT KeyedEvent)
{
    KeInitializeEvent(&KeyedEvent->Signaled, NotificationEvent, TRUE);
}

static NTSTATUS ExpMeetAtKey(PEX_KEYED_EVENT KeyedEvent, PVOID Key, ULONG Kind, KPROCESSOR_MODE WaitMode,
                             BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    EXP_KEYED_WAITER Self;
    if ((ULONG_PTR)Key & 1) {
        return STATUS_INVALID_PARAMETER_1;
    }
    Self.Waiter.Key = (EXP_WAIT_KEY){
        .Key = Key,
        .Object = KeyedEvent != NULL ? KeyedEvent : &ExpCritSecOutOfMemoryEvent,
        .Process = Thread->Process,
        .Kind = Kind,
    };
    KeInitializeEvent(&Self.Paired, SynchronizationEvent, FALSE);
    EXP_WAIT_KEY Other = Self.Waiter.Key;
    Other.Kind = Kind == ExpKeyedWait ? ExpKeyedRelease : ExpKeyedWait;
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Other, Thread);
    PEXP_WAITER Found = ExpTakeFirstWaiter(Bucket, &Other);
    if (Found == NULL) {
        ExpInsertWaiter(Bucket, &Self.Waiter);
    }
    ExpUnlockWaiters(Bucket, Thread);
    if (Found != NULL) {
        KeSetEvent(&CONTAINING_RECORD(Found, EXP_KEYED_WAITER, Waiter)->Paired, EVENT_INCREMENT, FALSE);
        return STATUS_SUCCESS;
    }
    NTSTATUS Status = KiWaitForSingleObject(&Self.Paired, WrKeyedEvent, WaitMode, Alertable, Timeout);
    if (Status == STATUS_SUCCESS || ExpTakeWaiter(&Self.Waiter, Thread)) {
        return Status;
    }
    /* Requirement 4: it was paired meanwhile. */
    KPROCESSOR_MODE Alerted = KiModeOfTakenAlert(Thread);
    KeWaitForSingleObject(&Self.Paired, WrKeyedEvent, KernelMode, FALSE, NULL);
    if (Status == STATUS_ALERTED) {
        KeAlertThread(Thread, Alerted);
    }
    return STATUS_SUCCESS;
}

NTSTATUS ExpWaitForKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout)
{
    return ExpMeetAtKey(KeyedEvent, Key, ExpKeyedWait, WaitMode, Alertable, Timeout);
}

NTSTATUS ExpReleaseKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout)
{
    return ExpMeetAtKey(KeyedEvent, Key, ExpKeyedRelease, WaitMode, Alertable, Timeout);
}
