/* waiterhash.c: the table of those who wait for a key. The theory is in waiterhash.h. */
#include "waiterhash.h"

#include "../ke/debugdata.h"

EXP_WAITER_BUCKET ExpWaiterTable[EXP_WAITER_BUCKETS];
KD_REGISTER_ROOT(ExpWaiterTable);
KD_REGISTER_LAYOUT(ExpWaiterLayout, EXP_WAITER_LAYOUT);

/* relaxed: what orders it for who reads it without the lock is the lock's own word, see ExpMayHaveWaiters */
static VOID ExpSetCount(PEXP_WAITER_BUCKET Bucket, ULONG Count)
{
    __atomic_store_n(&Bucket->Count, Count, __ATOMIC_RELAXED);
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

VOID ExpInsertWaiter(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter)
{
    InsertTailList(&Bucket->WaiterList, &Waiter->Link);
    Waiter->Listed = TRUE;
    ExpSetCount(Bucket, Bucket->Count + 1);
}

static VOID ExpUnlist(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter)
{
    RemoveEntryList(&Waiter->Link);
    Waiter->Listed = FALSE;
    ExpSetCount(Bucket, Bucket->Count - 1);
}

static BOOLEAN ExpIsSameKey(const EXP_WAIT_KEY *One, const EXP_WAIT_KEY *Other)
{
    return One->Key == Other->Key && One->Object == Other->Object && One->Process == Other->Process &&
           One->Kind == Other->Kind;
}

ULONG ExpTakeWaiters(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key, ULONG Most, PLIST_ENTRY Taken)
{
    PLIST_ENTRY Head = &Bucket->WaiterList;
    PLIST_ENTRY Next;
    ULONG Count = 0;
    InitializeListHead(Taken);
    for (PLIST_ENTRY Link = Head->Flink; Link != Head && Count < Most; Link = Next) {
        PEXP_WAITER Waiter = CONTAINING_RECORD(Link, EXP_WAITER, Link);
        Next = Link->Flink;
        if (ExpIsSameKey(&Waiter->Key, Key)) {
            ExpUnlist(Bucket, Waiter);
            InsertTailList(Taken, Link);
            Count += 1;
        }
    }
    return Count;
}

PEXP_WAITER ExpTakeFirstWaiter(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key)
{
    LIST_ENTRY Taken;
    return ExpTakeWaiters(Bucket, Key, 1, &Taken) != 0 ? CONTAINING_RECORD(Taken.Flink, EXP_WAITER, Link) : NULL;
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
