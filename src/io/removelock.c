/*
 * removelock.c: remove locks.
 *
 * IoCount is 1 plus the number of owners. IoReleaseRemoveLockAndWait sets Removed, releases its own share and the 1,
 * and waits until the count is 0; the release that reaches 0 sets RemoveEvent.
 *
 * 1. An acquire counts first and checks Removed afterwards; the remover sets Removed first and releases its share
 *    afterwards. So an acquire either sees Removed, or the remover sees its count and waits. Both are sequentially
 *    consistent.
 * 2. An acquire that sees Removed undoes its count, which may make it 0.
 * 3. Without Removed the count does not fall below 1: a release that would do that has no acquire.
 * 4. A driver that is compiled with DBG=1 has room for tags (see RemlockSize): each acquire has a block with its tag,
 *    under Spin. An acquire without memory for its block is counted in LowMemoryCount, and then a tag may be unknown.
 */
#include "iop.h"

#define IOP_RELEASED_UNKNOWN_TAG 0xd5
#define IOP_REMOVED_UNKNOWN_TAG 0xd6
#define IOP_TICKS_PER_MINUTE (60 * 10000000LL / (LONGLONG)KI_TICK)
#define IOP_REMOVE_LOCK_SIGNATURE 0x4c4d5352 /* "RSML" */

typedef struct _IO_REMOVE_LOCK_TRACKING_BLOCK {
    PIO_REMOVE_LOCK_TRACKING_BLOCK Next;
    PVOID Tag;
    PCSTR File;
    ULONG Line;
} IO_REMOVE_LOCK_TRACKING_BLOCK;

typedef struct _IOP_CHECKED_LOCK {
    IO_REMOVE_LOCK_COMMON_BLOCK Common;
    IO_REMOVE_LOCK_DBG_BLOCK Dbg;
} IOP_CHECKED_LOCK, *PIOP_CHECKED_LOCK;

/* NULL: it has no tags. */
static IO_REMOVE_LOCK_DBG_BLOCK *IopTagsOf(PIO_REMOVE_LOCK Lock, ULONG Size)
{
    return Size >= sizeof(IOP_CHECKED_LOCK) ? &((PIOP_CHECKED_LOCK)Lock)->Dbg : NULL;
}

static DECLSPEC_NORETURN VOID IopStopAtTag(ULONG Kind, PIO_REMOVE_LOCK Lock, PVOID Tag, PVOID Other)
{
    KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, Kind, (ULONG_PTR)Lock, (ULONG_PTR)Tag, (ULONG_PTR)Other);
}

VOID IoInitializeRemoveLockEx(PIO_REMOVE_LOCK Lock, ULONG AllocateTag, ULONG MaxLockedMinutes, ULONG HighWatermark,
                              ULONG RemlockSize)
{
    IO_REMOVE_LOCK_DBG_BLOCK *Tags = IopTagsOf(Lock, RemlockSize);
    memset(&Lock->Common, 0, sizeof(Lock->Common));
    Lock->Common.IoCount = 1;
    KeInitializeEvent(&Lock->Common.RemoveEvent, SynchronizationEvent, FALSE);
    if (Tags != NULL) {
        memset(Tags, 0, sizeof(*Tags));
        Tags->Signature = IOP_REMOVE_LOCK_SIGNATURE;
        Tags->AllocateTag = (LONG)AllocateTag;
        Tags->MaxLockedTicks = MaxLockedMinutes * IOP_TICKS_PER_MINUTE;
        Tags->HighWatermark = HighWatermark;
        InitializeListHead(&Tags->LockList);
        KeInitializeSpinLock(&Tags->Spin);
    }
}

static ULONG IopPoolTagOf(IO_REMOVE_LOCK_DBG_BLOCK *Tags)
{
    return Tags->AllocateTag != 0 ? (ULONG)Tags->AllocateTag : IOP_IRP_TAG;
}

static VOID IopAddTag(IO_REMOVE_LOCK_DBG_BLOCK *Tags, PVOID Tag, PCSTR File, ULONG Line)
{
    PIO_REMOVE_LOCK_TRACKING_BLOCK Block = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Block), IopPoolTagOf(Tags));
    KIRQL OldIrql;
    if (Block != NULL) {
        *Block = (IO_REMOVE_LOCK_TRACKING_BLOCK){NULL, Tag, File, Line};
    }
    KeAcquireSpinLock(&Tags->Spin, &OldIrql);
    if (Block != NULL) {
        Block->Next = Tags->Blocks;
        Tags->Blocks = Block;
    } else {
        Tags->LowMemoryCount += 1;
    }
    KeReleaseSpinLock(&Tags->Spin, OldIrql);
}

/* FALSE: the lock was not acquired with this tag. *Other: a tag in use, if any. */
static BOOLEAN IopRemoveTag(IO_REMOVE_LOCK_DBG_BLOCK *Tags, PVOID Tag, PVOID *Other)
{
    PIO_REMOVE_LOCK_TRACKING_BLOCK *Link = &Tags->Blocks;
    PIO_REMOVE_LOCK_TRACKING_BLOCK Found;
    BOOLEAN Known = TRUE;
    KIRQL OldIrql;
    KeAcquireSpinLock(&Tags->Spin, &OldIrql);
    *Other = Tags->Blocks != NULL ? Tags->Blocks->Tag : NULL;
    while (*Link != NULL && (*Link)->Tag != Tag) {
        Link = &(*Link)->Next;
    }
    Found = *Link;
    if (Found != NULL) {
        *Link = Found->Next;
    } else if (Tags->LowMemoryCount != 0) {
        Tags->LowMemoryCount -= 1;
    } else {
        Known = FALSE;
    }
    KeReleaseSpinLock(&Tags->Spin, OldIrql);
    if (Found != NULL) {
        ExFreePoolWithTag(Found, IopPoolTagOf(Tags));
    }
    return Known;
}

/* Releases Count shares; returns whether others remain. */
static BOOLEAN IopReleaseCount(PIO_REMOVE_LOCK Lock, LONG Count)
{
    return __atomic_sub_fetch(&Lock->Common.IoCount, Count, __ATOMIC_SEQ_CST) != 0;
}

NTSTATUS IoAcquireRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, PCSTR File, ULONG Line, ULONG RemlockSize)
{
    IO_REMOVE_LOCK_DBG_BLOCK *Tags = IopTagsOf(RemoveLock, RemlockSize);
    /* seq_cst, both: requirement 1; pair with IoReleaseRemoveLockAndWaitEx */
    __atomic_add_fetch(&RemoveLock->Common.IoCount, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&RemoveLock->Common.Removed, __ATOMIC_SEQ_CST)) {
        if (!IopReleaseCount(RemoveLock, 1)) {
            KeSetEvent(&RemoveLock->Common.RemoveEvent, IO_NO_INCREMENT, FALSE);
        }
        return STATUS_DELETE_PENDING;
    }
    if (Tags != NULL) {
        IopAddTag(Tags, Tag, File, Line);
    }
    return STATUS_SUCCESS;
}

VOID IoReleaseRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, ULONG RemlockSize)
{
    IO_REMOVE_LOCK_DBG_BLOCK *Tags = IopTagsOf(RemoveLock, RemlockSize);
    PVOID Other;
    if (Tags != NULL && !IopRemoveTag(Tags, Tag, &Other)) {
        IopStopAtTag(IOP_RELEASED_UNKNOWN_TAG, RemoveLock, Tag, NULL);
    }
    /* seq_cst: with the load below it is requirement 1 the other way around; relaxed would do for the count alone */
    LONG Left = __atomic_sub_fetch(&RemoveLock->Common.IoCount, 1, __ATOMIC_SEQ_CST);
    if (Left > 0) {
        return;
    }
    if (Left < 0 || !__atomic_load_n(&RemoveLock->Common.Removed, __ATOMIC_SEQ_CST)) {
        IopStopAtTag(IOP_RELEASED_UNKNOWN_TAG, RemoveLock, Tag, NULL);
    }
    KeSetEvent(&RemoveLock->Common.RemoveEvent, IO_NO_INCREMENT, FALSE);
}

VOID IoReleaseRemoveLockAndWaitEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, ULONG RemlockSize)
{
    IO_REMOVE_LOCK_DBG_BLOCK *Tags = IopTagsOf(RemoveLock, RemlockSize);
    PVOID Other = NULL;
    if (Tags != NULL && !IopRemoveTag(Tags, Tag, &Other)) {
        IopStopAtTag(IOP_REMOVED_UNKNOWN_TAG, RemoveLock, Tag, Other);
    }
    /* seq_cst, both: requirement 1; pair with IoAcquireRemoveLockEx */
    if (__atomic_exchange_n(&RemoveLock->Common.Removed, TRUE, __ATOMIC_SEQ_CST) ||
        __atomic_load_n(&RemoveLock->Common.IoCount, __ATOMIC_SEQ_CST) < 2) {
        IopStopAtTag(IOP_REMOVED_UNKNOWN_TAG, RemoveLock, Tag, Other);
    }
    if (IopReleaseCount(RemoveLock, 2)) {
        KeWaitForSingleObject(&RemoveLock->Common.RemoveEvent, Executive, KernelMode, FALSE, NULL);
    }
}
