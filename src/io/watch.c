/* watch.c: the thread that watches descriptors. The theory is in watch.h. */
#include "watch.h"

#define IOP_SLOTS_IN_CHUNK 1024
#define IOP_CHUNKS 64

typedef struct _IOP_SLOT {
    PIOP_WATCH Watch;                /* NULL: free */
    ULONG Generation;
    ULONG NextFree;                  /* number + 1 */
} IOP_SLOT, *PIOP_SLOT;

static KI_LOCK IopWatchLock;
static PIOP_SLOT IopChunk[IOP_CHUNKS];
static ULONG IopSlotsUsed;
static ULONG IopFreeSlots;           /* number + 1 of the first */

/*
 * The watcher: the id of the process that it works for in the upper half, how far it has got in the lower one. Whoever
 * changes it to IopStarting makes the set and the thread.
 */
enum { IopNotStarted, IopStarting, IopStarted };

static volatile ULONG64 IopWatcher;
static volatile LONG IopDescriptorSet;

static PIOP_SLOT IopSlotOf(ULONG Number)
{
    return &IopChunk[Number / IOP_SLOTS_IN_CHUNK][Number % IOP_SLOTS_IN_CHUNK];
}

static ULONG64 IopCookieOf(PIOP_WATCH Watch)
{
    return (ULONG64)IopSlotOf(Watch->Slot)->Generation << 32 | Watch->Slot;
}

/* With the lock held. FALSE: a chunk is missing. */
static BOOLEAN IopTakeSlot(PIOP_WATCH Watch)
{
    ULONG Number = IopFreeSlots - 1;
    if (IopFreeSlots != 0) {
        IopFreeSlots = IopSlotOf(Number)->NextFree;
    } else if (IopSlotsUsed < IOP_CHUNKS * IOP_SLOTS_IN_CHUNK && IopChunk[IopSlotsUsed / IOP_SLOTS_IN_CHUNK] != NULL) {
        Number = IopSlotsUsed++;
    } else {
        return FALSE;
    }
    Watch->Slot = Number;
    IopSlotOf(Number)->Watch = Watch;
    return TRUE;
}

/* With the lock held. TRUE: Chunk is in use now. */
static BOOLEAN IopAddChunk(PIOP_SLOT Chunk)
{
    ULONG Index = IopSlotsUsed / IOP_SLOTS_IN_CHUNK;
    if (Index == IOP_CHUNKS || IopChunk[Index] != NULL) {
        return FALSE;
    }
    IopChunk[Index] = Chunk;
    return TRUE;
}

static BOOLEAN IopEnterSlot(PIOP_WATCH Watch)
{
    PKTHREAD Thread = KiEnterLocked(&IopWatchLock);
    BOOLEAN Entered = IopTakeSlot(Watch);
    KiExitLocked(&IopWatchLock, Thread);
    if (Entered) {
        return TRUE;
    }
    PIOP_SLOT Chunk = HalAllocate(IOP_SLOTS_IN_CHUNK * sizeof(*Chunk), KI_CACHE_LINE);
    if (Chunk == NULL) {
        return FALSE;
    }
    Thread = KiEnterLocked(&IopWatchLock);
    BOOLEAN Added = IopAddChunk(Chunk);
    Entered = IopTakeSlot(Watch);
    KiExitLocked(&IopWatchLock, Thread);
    if (!Added) {
        HalFree(Chunk);
    }
    return Entered;
}

NTSTATUS IopInitializeWatch(PIOP_WATCH Watch, LONG Descriptor, ULONG Events, PVOID Object, VOID (*Routine)(PVOID Object))
{
    Watch->Descriptor = Descriptor;
    Watch->Events = Events;
    Watch->Object = Object;
    Watch->Routine = Routine;
    return IopEnterSlot(Watch) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

VOID IopDeleteWatch(PIOP_WATCH Watch)
{
    PKTHREAD Thread = KiEnterLocked(&IopWatchLock);
    PIOP_SLOT Slot = IopSlotOf(Watch->Slot);
    Slot->Watch = NULL;
    Slot->Generation += 1;
    Slot->NextFree = IopFreeSlots;
    IopFreeSlots = Watch->Slot + 1;
    KiExitLocked(&IopWatchLock, Thread);
    if (__atomic_load_n(&IopWatcher, __ATOMIC_ACQUIRE) == ((ULONG64)HalCurrentProcessId() << 32 | IopStarted)) {
        HalForgetDescriptor(IopDescriptorSet, Watch->Descriptor);
    }
    HalCloseDescriptor(Watch->Descriptor);
}

/* The watch's object with a reference, or NULL if it is not there any more. With the lock held. */
static PVOID IopReferenceWatched(ULONG Number)
{
    PIOP_WATCH Watch = IopSlotOf(Number)->Watch;
    return Watch != NULL && ObReferenceObjectSafe(Watch->Object) ? Watch->Object : NULL;
}

static VOID IopDispatchReady(ULONG64 Cookie)
{
    PVOID Object = NULL;
    VOID (*Routine)(PVOID) = NULL;
    PKTHREAD Thread = KiEnterLocked(&IopWatchLock);
    PIOP_SLOT Slot = IopSlotOf((ULONG)Cookie);
    if (Slot->Generation == (ULONG)(Cookie >> 32) && Slot->Watch != NULL) {
        Routine = Slot->Watch->Routine;
        Object = IopReferenceWatched((ULONG)Cookie);
    }
    KiExitLocked(&IopWatchLock, Thread);
    if (Object != NULL) {
        Routine(Object);
        ObDereferenceObject(Object);
    }
}

static VOID IopWatcherThread(PVOID Context)
{
    LONG Set = (LONG)(LONG_PTR)Context;
    HAL_READY Found[HAL_MOST_READY];
    KiAdoptThread();
    for (;;) {
        ULONG Count = HalWaitForDescriptors(Set, Found, HAL_MOST_READY);
        for (ULONG Index = 0; Index < Count; Index += 1) {
            IopDispatchReady(Found[Index].Cookie);
        }
    }
}

static NTSTATUS IopTellHost(PIOP_WATCH Watch)
{
    return HalWatchDescriptor(IopDescriptorSet, Watch->Descriptor, Watch->Events, IopCookieOf(Watch));
}

/* In a forked child. One at a time: the host is not called under the lock. */
static VOID IopArmInherited(VOID)
{
    BOOLEAN More = TRUE;
    for (ULONG Number = 0; More; Number += 1) {
        PKTHREAD Thread = KiEnterLocked(&IopWatchLock);
        More = Number < IopSlotsUsed;
        PIOP_WATCH Watch = More ? IopSlotOf(Number)->Watch : NULL;
        PVOID Object = More ? IopReferenceWatched(Number) : NULL;
        KiExitLocked(&IopWatchLock, Thread);
        if (Object != NULL) {
            IopTellHost(Watch);
            ObDereferenceObject(Object);
        }
    }
}

/* Found: how far the watcher of a parent had got when this process was forked. */
static NTSTATUS IopStartWatcher(ULONG Found)
{
    NTSTATUS Status;
    LONG Inherited = IopDescriptorSet;
    LONG Set = HalCreateDescriptorSet();
    if (Set < 0) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Status = HalCreateThread(IopWatcherThread, (PVOID)(LONG_PTR)Set, 0, "interlock-io");
    if (!NT_SUCCESS(Status)) {
        HalCloseDescriptor(Set);
        return Status;
    }
    IopDescriptorSet = Set;
    if (Found == IopStarted) {
        HalCloseDescriptor(Inherited);
    }
    if (Found != IopNotStarted) {
        IopArmInherited();
    }
    return STATUS_SUCCESS;
}

static NTSTATUS IopEnsureWatcher(VOID)
{
    ULONG64 Self = (ULONG64)HalCurrentProcessId() << 32;
    /* acquire: pairs with the release below, so the set is there */
    ULONG64 Word = __atomic_load_n(&IopWatcher, __ATOMIC_ACQUIRE);
    for (ULONG Round = 0; Word != (Self | IopStarted); Round += 1) {
        if (Word == (Self | IopStarting)) {
            HalLongSpin(Round);
            Word = __atomic_load_n(&IopWatcher, __ATOMIC_ACQUIRE);
        } else if (__atomic_compare_exchange_n(&IopWatcher, &Word, Self | IopStarting, FALSE, __ATOMIC_ACQUIRE,
                                               __ATOMIC_ACQUIRE)) {
            NTSTATUS Status = IopStartWatcher((ULONG)Word);
            /* release: pairs with the acquire above */
            __atomic_store_n(&IopWatcher, NT_SUCCESS(Status) ? Self | IopStarted : Word, __ATOMIC_RELEASE);
            return Status;
        }
    }
    return STATUS_SUCCESS;
}

NTSTATUS IopArmWatch(PIOP_WATCH Watch)
{
    NTSTATUS Status = IopEnsureWatcher();
    return NT_SUCCESS(Status) ? IopTellHost(Watch) : Status;
}
