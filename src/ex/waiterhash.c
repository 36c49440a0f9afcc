/* waiterhash.c: the table of those who wait for a key. The theory is in waiterhash.h. */
#include "waiterhash.h"

#define EXP_WAITER_BUCKETS 256
#define EXP_WAITER_BUCKET_SHIFT 56

typedef struct _EXP_WAITER_BUCKET {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG ProcessId;       /* whose the list is: 0, or that of the parent, and there is none yet */
    LIST_ENTRY WaiterList;
} EXP_WAITER_BUCKET;

C_ASSERT(EXP_WAITER_BUCKETS == 1 << (64 - EXP_WAITER_BUCKET_SHIFT));

static EXP_WAITER_BUCKET ExpWaiterTable[EXP_WAITER_BUCKETS];

/* Multiplying by the golden ratio spreads neighbouring addresses over the high bits. */
static PEXP_WAITER_BUCKET ExpBucketOf(const EXP_WAIT_KEY *Key)
{
    ULONG64 Mixed = (ULONG_PTR)Key->Key ^ ((ULONG_PTR)Key->Object << 13) ^ ((ULONG_PTR)Key->Process << 27);
    return &ExpWaiterTable[Mixed * 0x9e3779b97f4a7c15ull >> EXP_WAITER_BUCKET_SHIFT];
}

PEXP_WAITER_BUCKET ExpLockWaiters(const EXP_WAIT_KEY *Key, PKTHREAD Thread)
{
    PEXP_WAITER_BUCKET Bucket = ExpBucketOf(Key);
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Bucket->Lock);
    if (Bucket->ProcessId != KiInitialProcess.ProcessId) {
        InitializeListHead(&Bucket->WaiterList);
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
}

static BOOLEAN ExpIsSameKey(const EXP_WAIT_KEY *One, const EXP_WAIT_KEY *Other)
{
    return One->Key == Other->Key && One->Object == Other->Object && One->Process == Other->Process &&
           One->Kind == Other->Kind;
}

PEXP_WAITER ExpTakeFirstWaiter(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key)
{
    PLIST_ENTRY Head = &Bucket->WaiterList;
    for (PLIST_ENTRY Link = Head->Flink; Link != Head; Link = Link->Flink) {
        PEXP_WAITER Waiter = CONTAINING_RECORD(Link, EXP_WAITER, Link);
        if (ExpIsSameKey(&Waiter->Key, Key)) {
            RemoveEntryList(Link);
            return Waiter;
        }
    }
    return NULL;
}

BOOLEAN ExpTakeWaiter(PEXP_WAITER Waiter, PKTHREAD Thread)
{
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Waiter->Key, Thread);
    PLIST_ENTRY Head = &Bucket->WaiterList;
    PLIST_ENTRY Link = Head->Flink;
    while (Link != Head && Link != &Waiter->Link) {
        Link = Link->Flink;
    }
    BOOLEAN Found = Link != Head;
    if (Found) {
        RemoveEntryList(Link);
    }
    ExpUnlockWaiters(Bucket, Thread);
    return Found;
}
