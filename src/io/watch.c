/* watch.c: the threads that watch descriptors. Theory in watch.h. */
#include <interlock/ex.h>

#include "watch.h"
#include "../ke/park.h"

#include "../ke/ownthread.h"
#include "../ke/park.h"

#define IOP_NOT_ATTACHED (-1)
#define IOP_LOST_DESCRIPTOR (-2)
#define IOP_FIRST_INTERVAL 10000LL /* a millisecond */
#define IOP_LAST_INTERVAL (512 * IOP_FIRST_INTERVAL)
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
 * The watcher: the id of its process in the upper half, its state in the lower one. The thread that changes it to
 * IopStarting opens the keeper, starts the threads and enters the watches.
 */
enum { IopNotStarted, IopStarting, IopStarted };

static volatile ULONG64 IopWatcher;
static volatile ULONG IopWatcherThreadId; /* 0: none */

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

/* Where a chunk is missing, allocates one outside the lock; another thread may be faster. */
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
    ULONG Index = IopSlotsUsed / IOP_SLOTS_IN_CHUNK;
    BOOLEAN Added = Index != IOP_CHUNKS && IopChunk[Index] == NULL;
    if (Added) {
        IopChunk[Index] = Chunk;
    }
    Entered = IopTakeSlot(Watch);
    KiExitLocked(&IopWatchLock, Thread);
    if (!Added) {
        HalFree(Chunk);
    }
    return Entered;
}

NTSTATUS IopInitializeWatch(PIOP_WATCH Watch, ULONG Events, PVOID Object, VOID (*Routine)(PVOID Object),
                            LONG (*Reopen)(PVOID Object))
{
    Watch->Descriptor = IOP_NOT_ATTACHED;
    Watch->Events = Events;
    Watch->Object = Object;
    Watch->Routine = Routine;
    Watch->Reopen = Reopen;
    return IopEnterSlot(Watch) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

/* The state in this process. acquire: pairs with the release in IopEnsureKeeper, so the watches have been entered */
static ULONG IopKeeperState(VOID)
{
    ULONG64 Word = __atomic_load_n(&IopWatcher, __ATOMIC_ACQUIRE);
    return Word >> 32 == HalCurrentProcessId() ? (ULONG)Word : IopNotStarted;
}

/* A forked child that has not opened its keeper yet can only compare the identity of the file. While a keeper is being
   opened the result may be FALSE for descriptors that will be in it. */
BOOLEAN IopOwnsDescriptor(PIOP_WATCH Watch)
{
    LONG Descriptor = IopNumberOf(Watch);
    /* relaxed: it stays what it was when the descriptor was attached */
    BOOLEAN Member = !__atomic_load_n(&Watch->AlwaysReady, __ATOMIC_RELAXED) && IopKeeperState() != IopNotStarted;
    return Descriptor >= 0 && (Member ? HalIsMember(Descriptor) : HalIsFile(Descriptor, &Watch->Id));
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
    if (IopOwnsDescriptor(Watch)) {
        HalForgetDescriptor(IopNumberOf(Watch));
        HalCloseDescriptor(IopNumberOf(Watch));
    }
}

/* With the lock held: the watch's object with a reference; NULL if it is being deleted, or not attached yet. */
static PVOID IopReferenceWatched(ULONG Number)
{
    PIOP_WATCH Watch = IopSlotOf(Number)->Watch;
    BOOLEAN Attached = Watch != NULL && IopNumberOf(Watch) != IOP_NOT_ATTACHED;
    return Attached && ObReferenceObjectSafe(Watch->Object) ? Watch->Object : NULL;
}

static VOID IopDispatchReady(ULONG64 Cookie)
{
    PVOID Object = NULL;
    VOID (*Routine)(PVOID) = NULL;
    if (Cookie == HAL_NO_COOKIE) {
        return;
    }
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

static NTSTATUS IopRepair(VOID);

static VOID IopWatcherThread(PVOID Context)
{
    ULONG Keeper = (ULONG)(ULONG_PTR)Context;
    HAL_READY Found[HAL_MOST_READY];
    ULONG Count;
    __atomic_store_n(&KiCurrentThread()->IsIdleThread, TRUE, __ATOMIC_RELAXED); /* the process may end while it runs */
    /* relaxed: only for the guard, which wakes this thread; a stale id wakes none */
    __atomic_store_n(&IopWatcherThreadId, HalCurrentThreadId(), __ATOMIC_RELAXED);
    while (HalWaitForDescriptors(Keeper, Found, &Count)) {
        for (ULONG Index = 0; Index < Count; Index += 1) {
            IopDispatchReady(Found[Index].Cookie);
        }
    }
    IopRepair();
}

/*
 * Waits until the keeper is closed. The watcher may then sleep on a set without a descriptor: it is woken and detects
 * that. A program closes one descriptor after the other, so those still open may be closed a moment later: this thread
 * repeats the repair for about a second, and for as long as the host refuses a new keeper.
 */
static VOID IopGuardThread(PVOID Context)
{
    LONGLONG Interval = IOP_FIRST_INTERVAL;
    __atomic_store_n(&KiCurrentThread()->IsIdleThread, TRUE, __ATOMIC_RELAXED); /* the process may end while it runs */
    HalAwaitKeeperLoss((ULONG)(ULONG_PTR)Context);
    HalInterruptThread(__atomic_load_n(&IopWatcherThreadId, __ATOMIC_RELAXED));
    while (!NT_SUCCESS(IopRepair()) || Interval < IOP_LAST_INTERVAL) {
        KeDelayExecutionThread(KernelMode, FALSE, &(LARGE_INTEGER){.QuadPart = -Interval});
        Interval = Interval < IOP_LAST_INTERVAL ? 2 * Interval : Interval;
    }
}

static NTSTATUS IopEnterKeeper(PIOP_WATCH Watch, LONG Descriptor)
{
    HAL_MEMBERSHIP Membership = HalEnterDescriptor(Descriptor, IopCookieOf(Watch));
    HAL_FILE_ID Id;
    if (Membership == HalDescriptorRefused || !HalQueryFileId(Descriptor, &Id)) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    /* relaxed: other threads may be reading the watch; release: pairs with the acquire in IopNumberOf */
    __atomic_store_n(&Watch->AlwaysReady, Membership == HalDescriptorAlwaysReady, __ATOMIC_RELAXED);
    __atomic_store_n(&Watch->Id.Device, Id.Device, __ATOMIC_RELAXED);
    __atomic_store_n(&Watch->Id.File, Id.File, __ATOMIC_RELAXED);
    __atomic_store_n(&Watch->Descriptor, Descriptor, __ATOMIC_RELEASE);
    return STATUS_SUCCESS;
}

/*
 * Why all watches are visited, and which number may still be a watch's descriptor although it is not in the keeper.
 * Lost: the keeper is intact, so none. Enter: the keeper is new, so a file with the same identity, if files of its kind
 * have their own; otherwise another file has probably got the number. Inherited: a forked child's first keeper, so a file
 * with the same identity.
 */
typedef enum _IOP_VISIT { IopVisitLost, IopVisitEnter, IopVisitInherited, IopVisitLook } IOP_VISIT;

static VOID IopEnterAgain(PIOP_WATCH Watch, IOP_VISIT Visit)
{
    LONG Descriptor = IopNumberOf(Watch);
    if (Visit != IopVisitLost && (Visit == IopVisitInherited || HalIsTellingId(&Watch->Id)) &&
        HalIsFile(Descriptor, &Watch->Id) && NT_SUCCESS(IopEnterKeeper(Watch, Descriptor))) {
        return;
    }
    Descriptor = Watch->Reopen != NULL ? Watch->Reopen(Watch->Object) : IOP_LOST_DESCRIPTOR;
    if (Descriptor >= 0 && !NT_SUCCESS(IopEnterKeeper(Watch, Descriptor))) {
        HalCloseDescriptor(Descriptor);
        Descriptor = IOP_LOST_DESCRIPTOR;
    }
    if (Descriptor < 0) {
        /* relaxed: publishes nothing */
        __atomic_store_n(&Watch->Descriptor, IOP_LOST_DESCRIPTOR, __ATOMIC_RELAXED);
    }
}

/* One watch at a time, because the host is not called under the lock. Returns whether one was not in the keeper. */
static BOOLEAN IopVisitWatches(IOP_VISIT Visit)
{
    BOOLEAN Missing = FALSE;
    BOOLEAN More = TRUE;
    for (ULONG Number = 0; More; Number += 1) {
        PKTHREAD Thread = KiEnterLocked(&IopWatchLock);
        More = Number < IopSlotsUsed;
        PIOP_WATCH Watch = More ? IopSlotOf(Number)->Watch : NULL;
        PVOID Object = More ? IopReferenceWatched(Number) : NULL;
        KiExitLocked(&IopWatchLock, Thread);
        if (Object == NULL) {
            continue;
        }
        if (Visit == IopVisitLook) {
            Watch->Routine(Object);
        } else if (IopNumberOf(Watch) >= 0 && !IopOwnsDescriptor(Watch)) {
            IopEnterAgain(Watch, Visit);
            Missing = TRUE;
        }
        ObDereferenceObject(Object);
    }
    return Missing;
}

/*
 * With IopWatcher at IopStarting, which also guards the two words. A start that the host refuses halfway leaves the
 * keeper and its guard for the next one. (Closing the keeper would strand the guard: a thread that waits for an epoll
 * set, or is about to, does not notice that the set was closed.) So the watcher is started last.
 */
static ULONG IopOpenedKeeper;
static ULONG IopGuardedKeeper;       /* the one that has a guard */

static const KI_OWN_KIND IopGuardKind = {.Name = "interlock-guard", .Routine = IopGuardThread};
static const KI_OWN_KIND IopWatcherKind = {.Name = "interlock-io", .Routine = IopWatcherThread};

static NTSTATUS IopStart(VOID)
{
    NTSTATUS Status = STATUS_SUCCESS;
    if (!HalIsKeeperIntact()) {
        IopOpenedKeeper = HalOpenKeeper();
    }
    if (IopOpenedKeeper == 0) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    PVOID Context = (PVOID)(ULONG_PTR)IopOpenedKeeper;
    if (IopGuardedKeeper != IopOpenedKeeper) {
        Status = KiCreateOwnThread(&IopGuardKind, Context, 0);
        IopGuardedKeeper = NT_SUCCESS(Status) ? IopOpenedKeeper : 0;
    }
    return NT_SUCCESS(Status) ? KiCreateOwnThread(&IopWatcherKind, Context, 0) : Status;
}

/* FALSE: it is open, and no repair is requested. Found: the state before it was claimed. */
static BOOLEAN IopClaimKeeper(ULONG64 Self, BOOLEAN Repair, PULONG64 Found)
{
    /* acquire, all: pair with the release in IopEnsureKeeper */
    *Found = __atomic_load_n(&IopWatcher, __ATOMIC_ACQUIRE);
    for (ULONG Round = 0; *Found != (Self | IopStarted) || Repair; Round += 1) {
        if (*Found == (Self | IopStarting)) {
            KiBackOff(Round);
            *Found = __atomic_load_n(&IopWatcher, __ATOMIC_ACQUIRE);
        } else if (__atomic_compare_exchange_n(&IopWatcher, Found, Self | IopStarting, FALSE, __ATOMIC_ACQUIRE,
                                               __ATOMIC_ACQUIRE)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* Repair: even if the keeper is open, since a descriptor may be lost. */
static NTSTATUS IopEnsureKeeper(BOOLEAN Repair)
{
    ULONG64 Self = (ULONG64)HalCurrentProcessId() << 32;
    BOOLEAN Missing = FALSE;
    ULONG64 Word;
    if (!IopClaimKeeper(Self, Repair, &Word)) {
        return STATUS_SUCCESS;
    }
    BOOLEAN Inherited = Word >> 32 != Self >> 32;
    BOOLEAN Whole = Word == (Self | IopStarted) && HalIsKeeperIntact();
    NTSTATUS Status = Whole ? STATUS_SUCCESS : IopStart();
    ULONG64 After = Inherited ? Word : Self | IopNotStarted;
    if (NT_SUCCESS(Status)) {
        Missing = IopVisitWatches(Whole ? IopVisitLost : Inherited ? IopVisitInherited : IopVisitEnter);
        After = Self | IopStarted;
    }
    /* release: pairs with the acquires in IopClaimKeeper and IopKeeperState */
    __atomic_store_n(&IopWatcher, After, __ATOMIC_RELEASE);
    if (Missing) {
        IopVisitWatches(IopVisitLook);
    }
    return Status;
}

static NTSTATUS IopRepair(VOID)
{
    return IopEnsureKeeper(TRUE);
}

NTSTATUS IopPrepareKeeper(VOID)
{
    return IopEnsureKeeper(FALSE);
}

NTSTATUS IopAttachDescriptor(PIOP_WATCH Watch, LONG Descriptor)
{
    NTSTATUS Status = IopPrepareKeeper();
    if (NT_SUCCESS(Status)) {
        Status = IopEnterKeeper(Watch, Descriptor);
    }
    if (Status == STATUS_INSUFFICIENT_RESOURCES && IopKeeperState() == IopStarted && !HalIsKeeperIntact()) {
        Status = IopRepair();
        Status = NT_SUCCESS(Status) ? IopEnterKeeper(Watch, Descriptor) : Status;
    }
    return Status;
}

LONG IopDescriptorOf(PIOP_WATCH Watch)
{
    if (IopNumberOf(Watch) >= 0 && !IopOwnsDescriptor(Watch)) {
        IopRepair();
        return IopOwnsDescriptor(Watch) ? IopNumberOf(Watch) : IOP_LOST_DESCRIPTOR;
    }
    return IopNumberOf(Watch);
}

static VOID IopRunRepair(PVOID Item)
{
    /* release: pairs with the acquire in IopRequestRepair; the item is no longer queued */
    __atomic_store_n((volatile ULONG *)Item, 0, __ATOMIC_RELEASE);
    IopRepair();
}

VOID IopRequestRepair(VOID)
{
    static volatile ULONG Requested;
    static WORK_QUEUE_ITEM Item;
    ULONG None = 0;
    if (__atomic_compare_exchange_n(&Requested, &None, 1, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        ExInitializeWorkItem(&Item, IopRunRepair, (PVOID)&Requested);
        ExQueueWorkItem(&Item, DelayedWorkQueue);
    }
}

NTSTATUS IopArmWatch(PIOP_WATCH Watch)
{
    NTSTATUS Status = IopPrepareKeeper();
    LONG Descriptor = IopNumberOf(Watch);
    if (!NT_SUCCESS(Status) || HalArmDescriptor(Descriptor, Watch->Events, IopCookieOf(Watch))) {
        return Status;
    }
    Descriptor = IopDescriptorOf(Watch);
    return Descriptor >= 0 && HalArmDescriptor(Descriptor, Watch->Events, IopCookieOf(Watch)) ? STATUS_SUCCESS
                                                                                            : STATUS_FILE_CLOSED;
}
