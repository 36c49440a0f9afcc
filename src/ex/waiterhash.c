/* waiterhash.c: the table of threads that wait for a key. Theory in waiterhash.h. */
#include "waiterhash.h"

#include "../ke/debugdata.h"

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

/* For one end of several: its neighbour on the side of the other end. */
static PEXP_WAITER ExpNeighbourOfEnd(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER End)
{
    PLIST_ENTRY Younger = End->Link.Flink;
    BOOLEAN IsOldest = Younger != &Bucket->WaiterList && ExpIsSameKey(&ExpWaiterOfLink(Younger)->Key, &End->Key);
    return ExpWaiterOfLink(IsOldest ? Younger : End->Link.Blink);
}

static VOID ExpUnlist(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter)
{
    if (Waiter->OtherEnd != NULL && Waiter->OtherEnd != Waiter) {
        ExpPairEnds(ExpNeighbourOfEnd(Bucket, Waiter), Waiter->OtherEnd);
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
 * Values. acquire: pairs with the change of the value. At an odd address the comparison goes by bytes; it may see half of
 * a change, but then the wake for that change is yet to come.
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
