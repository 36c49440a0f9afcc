/*
 * descriptor.c: descriptors of the host as objects, objects as descriptors of the host, and the watch of descriptors.
 *
 * A descriptor object's event stands for the state of the descriptor and is updated when a thread is about to wait: set
 * if the descriptor is ready now; otherwise reset and the descriptor watched, and the watching thread sets it.
 *
 * 1. Polling the descriptor and changing the event appear as one step: a thread that finds the event updated since it
 *    began to poll starts over. So data that one thread has read is not reported to it again by another thread that had
 *    polled before.
 * 2. A thread that resets the event arms the watch afterwards, so it misses nothing that happens after the reset.
 *
 * An export waits for its object without a thread, by a DPC (ke/queue.c), which makes the descriptor readable.
 *
 *   IopWaiting --DPC--> IopSatisfied --IoAcceptExport--> IopWaiting
 *
 * 3. While the wait is registered, or its DPC in flight, it holds a reference on the export.
 * 4. Closing the last handle ends the wait. If that is too late, the DPC owns the reference and finds the export
 *    closed; an acceptor that has registered meanwhile also finds it closed and ends its own wait. Ending a wait twice
 *    is harmless: only one of the two calls succeeds.
 * 5. A wait that was satisfied and never accepted is undone when the export is deleted.
 */
#include <interlock/ex.h>
#include <interlock/io.h>

#include "watch.h"

#include "../ke/ownthread.h"
#include "../ke/park.h"
#include "../ke/wait.h"

/* The threads that watch descriptors. Theory in watch.h. */

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
static BOOLEAN IopOwnsDescriptor(PIOP_WATCH Watch)
{
    LONG Descriptor = IopNumberOf(Watch);
    /* relaxed: it keeps the value from when the descriptor was attached */
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
    KiBecomeOwnThread(); /* the process may end while it runs */
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
    KiBecomeOwnThread(); /* the process may end while it runs */
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

/* At DISPATCH_LEVEL too: every routine checks again soon. */
static VOID IopRequestRepair(VOID)
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

#define IOP_EVENTS (IO_DESCRIPTOR_READABLE | IO_DESCRIPTOR_URGENT | IO_DESCRIPTOR_WRITABLE)
#define IOP_ALWAYS_REPORTED (IO_DESCRIPTOR_FAILED | IO_DESCRIPTOR_CLOSED)

C_ASSERT(IO_DESCRIPTOR_READABLE == HAL_DESCRIPTOR_READABLE && IO_DESCRIPTOR_URGENT == HAL_DESCRIPTOR_URGENT);
C_ASSERT(IO_DESCRIPTOR_WRITABLE == HAL_DESCRIPTOR_WRITABLE && IO_DESCRIPTOR_FAILED == HAL_DESCRIPTOR_FAILED);
C_ASSERT(IO_DESCRIPTOR_CLOSED == HAL_DESCRIPTOR_CLOSED);

typedef struct _IOP_DESCRIPTOR {
    KEVENT Ready;
    KI_LOCK Lock;
    volatile ULONG Updates;          /* of Ready, which changes under the lock */
    LONG Original;                   /* the watch has a duplicate of it; may have been closed since */
    PVOID Binding;                   /* under the lock; NULL: none */
    VOID (*Unbind)(PVOID Binding);
    IOP_WATCH Watch;
} IOP_DESCRIPTOR, *PIOP_DESCRIPTOR;

/* In place of events: the program has closed the descriptor. */
#define IOP_LOST MAXULONG

/* A ready descriptor may be another file of the program under the same number. One that is not ready is armed next,
   which fails unless it is ours. */
static ULONG IopPoll(PIOP_DESCRIPTOR Descriptor)
{
    PIOP_WATCH Watch = &Descriptor->Watch;
    ULONG Events = HalPollDescriptor(IopNumberOf(Watch), Watch->Events);
    if (Events == 0 || IopOwnsDescriptor(Watch)) {
        return Events;
    }
    LONG Repaired = IopDescriptorOf(Watch);
    return Repaired >= 0 ? HalPollDescriptor(Repaired, Watch->Events) : IOP_LOST;
}

/* FALSE: another thread has updated the event since Updates was read. */
static BOOLEAN IopUpdateState(PIOP_DESCRIPTOR Descriptor, ULONG Updates, BOOLEAN IsReady)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Current;
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Descriptor->Lock);
    Current = Descriptor->Updates == Updates;
    if (Current) {
        /* release: pairs with the acquire in IopRefreshDescriptor; a thread that sees the new number polls later */
        __atomic_store_n(&Descriptor->Updates, Updates + 1, __ATOMIC_RELEASE);
        if (IsReady) {
            KeSetEvent(&Descriptor->Ready, IO_NO_INCREMENT, FALSE);
        } else {
            KeClearEvent(&Descriptor->Ready);
        }
    }
    KiReleaseLock(&Descriptor->Lock);
    KiExitDispatcher(Thread);
    return Current;
}

static VOID IopRefreshDescriptor(PVOID Object)
{
    PIOP_DESCRIPTOR Descriptor = Object;
    ULONG Updates;
    BOOLEAN IsReady;
    do {
        /* acquire: pairs with the release in IopUpdateState */
        Updates = __atomic_load_n(&Descriptor->Updates, __ATOMIC_ACQUIRE);
        IsReady = IopPoll(Descriptor) != 0;
    } while (!IopUpdateState(Descriptor, Updates, IsReady));
    if (!IsReady && !NT_SUCCESS(IopArmWatch(&Descriptor->Watch))) {
        /* The descriptor is lost. The wait ends, and IoQueryDescriptorObject reports it. */
        KeSetEvent(&Descriptor->Ready, IO_NO_INCREMENT, FALSE);
    }
}

/* The duplicate is lost, but the program may still have its own descriptor. */
static LONG IopDuplicateAgain(PVOID Object)
{
    PIOP_DESCRIPTOR Descriptor = Object;
    LONG Duplicate;
    BOOLEAN Same = HalIsTellingId(&Descriptor->Watch.Id) && HalIsFile(Descriptor->Original, &Descriptor->Watch.Id);
    return Same && NT_SUCCESS(HalDuplicateDescriptor(Descriptor->Original, &Duplicate)) ? Duplicate : -1;
}

static VOID IopDeleteDescriptor(PVOID Object)
{
    IopDeleteWatch(&((PIOP_DESCRIPTOR)Object)->Watch);
}

static VOID IopEndBinding(PIOP_DESCRIPTOR Descriptor)
{
    PKTHREAD Thread = KiEnterLocked(&Descriptor->Lock);
    PVOID Binding = Descriptor->Binding;
    Descriptor->Binding = NULL;
    KiExitLocked(&Descriptor->Lock, Thread);
    if (Binding != NULL) {
        Descriptor->Unbind(Binding);
    }
}

static VOID IopCloseDescriptor(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft)
{
    UNREFERENCED_PARAMETER(GrantedAccess);
    if (HandlesLeft == 0) {
        IopEndBinding(Object);
    }
}

/* If the last handle is closed at this moment, the lock decides: the thread that closes it finds the binding, or this one
   finds no handle. */
NTSTATUS IopBindDescriptor(PVOID Object, PVOID Binding, VOID (*Unbind)(PVOID Binding))
{
    PIOP_DESCRIPTOR Descriptor = Object;
    PKTHREAD Thread = KiEnterLocked(&Descriptor->Lock);
    BOOLEAN IsFree = Descriptor->Binding == NULL;
    if (IsFree) {
        Descriptor->Binding = Binding;
        Descriptor->Unbind = Unbind;
    }
    KiExitLocked(&Descriptor->Lock, Thread);
    if (!IsFree) {
        return STATUS_INVALID_PARAMETER;
    }
    /* relaxed: ordered by the lock */
    if (__atomic_load_n(&ObpHeaderOf(Object)->HandleCount, __ATOMIC_RELAXED) == 0) {
        IopEndBinding(Descriptor);
    }
    return STATUS_SUCCESS;
}

BOOLEAN IopIsDescriptorLost(PVOID Object)
{
    PIOP_WATCH Watch = &((PIOP_DESCRIPTOR)Object)->Watch;
    return !IopOwnsDescriptor(Watch) && IopDescriptorOf(Watch) < 0;
}

OBJECT_TYPE IopDescriptorType = {
    .Name = "Descriptor",
    .GenericMapping = {STANDARD_RIGHTS_READ | IO_DESCRIPTOR_QUERY_STATE, STANDARD_RIGHTS_WRITE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, IO_DESCRIPTOR_ALL_ACCESS},
    .ValidAccessMask = IO_DESCRIPTOR_ALL_ACCESS,
    .WaitOffset = FIELD_OFFSET(IOP_DESCRIPTOR, Ready),
    .WaitProcedure = IopRefreshDescriptor,
    .DeleteProcedure = IopDeleteDescriptor,
    .CloseProcedure = IopCloseDescriptor,
};

OBP_REGISTER_TYPE(IopDescriptorType);

typedef struct _IOP_DESCRIPTOR_PLAN {
    LONG Descriptor;
    ULONG Events;
} IOP_DESCRIPTOR_PLAN;

static NTSTATUS IopInitializeDescriptor(PVOID Object, PVOID Context)
{
    PIOP_DESCRIPTOR Descriptor = Object;
    IOP_DESCRIPTOR_PLAN *Plan = Context;
    LONG Duplicate;
    NTSTATUS Status = HalDuplicateDescriptor(Plan->Descriptor, &Duplicate);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    KeInitializeEvent(&Descriptor->Ready, NotificationEvent, FALSE);
    Descriptor->Original = Plan->Descriptor;
    Status = IopInitializeWatch(&Descriptor->Watch, Plan->Events, Object, IopRefreshDescriptor, IopDuplicateAgain);
    if (NT_SUCCESS(Status)) {
        Status = IopAttachDescriptor(&Descriptor->Watch, Duplicate);
        if (!NT_SUCCESS(Status)) {
            IopDeleteWatch(&Descriptor->Watch);
        }
    }
    if (!NT_SUCCESS(Status)) {
        HalCloseDescriptor(Duplicate);
    }
    return Status;
}

NTSTATUS IoCreateDescriptorObject(PHANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                  int Descriptor, ULONG Events)
{
    PKTHREAD Thread = KiCurrentThread();
    IOP_DESCRIPTOR_PLAN Plan = {Descriptor, Events | IOP_ALWAYS_REPORTED};
    NTSTATUS Status;
    if (Handle == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if ((Events & ~(ULONG)(IOP_EVENTS | IOP_ALWAYS_REPORTED)) != 0 || (Events & IOP_EVENTS) == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Thread);
    Status = ObpCreateHandle(&IopDescriptorType, sizeof(IOP_DESCRIPTOR), ObjectAttributes, DesiredAccess,
                             IopInitializeDescriptor, &Plan, Handle);
    KiExitService(Thread);
    return Status;
}

LONG IopDescriptorOfObject(PVOID Object)
{
    return IopDescriptorOf(&((PIOP_DESCRIPTOR)Object)->Watch);
}

static NTSTATUS IopQueryDescriptor(PIOP_DESCRIPTOR Object, PULONG ReadyEvents, int *Descriptor)
{
    LONG Own = IopDescriptorOf(&Object->Watch);
    if (Own < 0) {
        return STATUS_FILE_CLOSED;
    }
    if (ReadyEvents != NULL) {
        *ReadyEvents = HalPollDescriptor(Own, Object->Watch.Events);
    }
    if (Descriptor != NULL) {
        *Descriptor = Own;
    }
    return STATUS_SUCCESS;
}

NTSTATUS IoQueryDescriptorObject(HANDLE Handle, PULONG ReadyEvents, int *Descriptor)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    NTSTATUS Status;
    KiEnterService(Thread);
    Status =
        ObReferenceObjectByHandle(Handle, IO_DESCRIPTOR_QUERY_STATE, &IopDescriptorType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        Status = IopQueryDescriptor(Object, ReadyEvents, Descriptor);
        ObDereferenceObject(Object);
    }
    KiExitService(Thread);
    return Status;
}

/* Exports. */

typedef enum _IOP_EXPORT_STATE { IopWaiting, IopSatisfied } IOP_EXPORT_STATE;

typedef struct _IOP_EXPORT {
    PVOID Target;                    /* the object, referenced */
    PVOID Header;                    /* the target's dispatcher header */
    KWAIT_BLOCK WaitBlock;
    KDPC Dpc;
    IOP_WATCH Watch;                 /* never armed: the program waits for its descriptor */
    volatile ULONG State;            /* IOP_EXPORT_STATE */
    volatile BOOLEAN Closed;
} IOP_EXPORT, *PIOP_EXPORT;

/* The watch's routine: a repair may have come between the state and the signal. */
static VOID IopShowState(PVOID Object)
{
    PIOP_EXPORT Export = Object;
    /* acquire: pairs with the release in IopExportSatisfied */
    if (__atomic_load_n(&Export->State, __ATOMIC_ACQUIRE) == IopSatisfied && IopOwnsDescriptor(&Export->Watch)) {
        HalSignalDescriptor(IopNumberOf(&Export->Watch));
    }
}

static VOID IopExportSatisfied(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    PIOP_EXPORT Export = Context;
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(Argument1);
    UNREFERENCED_PARAMETER(Argument2);
    /* release: pairs with the acquire in IoAcceptExport; the wait is over before the next one begins */
    __atomic_store_n(&Export->State, IopSatisfied, __ATOMIC_RELEASE);
    if (IopOwnsDescriptor(&Export->Watch)) {
        HalSignalDescriptor(IopNumberOf(&Export->Watch));
    } else {
        IopRequestRepair();
    }
    ObDereferenceObjectDeferDelete(Export);
}

static VOID IopEndWait(PIOP_EXPORT Export)
{
    if (KeCancelObjectDpc(&Export->WaitBlock)) {
        ObDereferenceObject(Export);
    }
}

static NTSTATUS IopBeginWait(PIOP_EXPORT Export)
{
    PVOID Header = ObpWaitObject(Export->Target);
    NTSTATUS Status;
    ObReferenceObject(Export);
    Status = KeRegisterObjectDpc(Header, &Export->Dpc, &Export->WaitBlock);
    if (!NT_SUCCESS(Status)) {
        ObDereferenceObject(Export);
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    /* seq_cst: pairs with the store in IopCloseExport; at least one of the two ends the wait */
    if (__atomic_load_n(&Export->Closed, __ATOMIC_SEQ_CST)) {
        IopEndWait(Export);
    }
    return STATUS_SUCCESS;
}

static VOID IopCloseExport(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft)
{
    PIOP_EXPORT Export = Object;
    UNREFERENCED_PARAMETER(GrantedAccess);
    if (HandlesLeft == 0) {
        __atomic_store_n(&Export->Closed, TRUE, __ATOMIC_SEQ_CST);
        IopEndWait(Export);
    }
}

/* Undoes a satisfied wait. Fails for a semaphore that has reached its limit in the meantime. */
static VOID IopGiveBack(PDISPATCHER_HEADER Header)
{
    LONG Previous;
    switch (KI_TYPE(KiReadHeader(Header))) {
    case EventSynchronizationObject:
        KeSetEvent(CONTAINING_RECORD(Header, KEVENT, Header), IO_NO_INCREMENT, FALSE);
        break;
    case SemaphoreObject:
        KiReleaseSemaphore(CONTAINING_RECORD(Header, KSEMAPHORE, Header), IO_NO_INCREMENT, 1, FALSE, &Previous);
        break;
    default:
        break;
    }
}

static VOID IopDeleteExport(PVOID Object)
{
    PIOP_EXPORT Export = Object;
    if (Export->State == IopSatisfied) {
        IopGiveBack(Export->Header);
    }
    IopDeleteWatch(&Export->Watch);
    ObDereferenceObject(Export->Target);
}

static OBJECT_TYPE IopExportType = {
    .Name = "DescriptorExport",
    .GenericMapping = {STANDARD_RIGHTS_READ, STANDARD_RIGHTS_WRITE | IO_EXPORT_ACCEPT, STANDARD_RIGHTS_EXECUTE,
                       IO_EXPORT_ALL_ACCESS},
    .ValidAccessMask = IO_EXPORT_ALL_ACCESS,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .DeleteProcedure = IopDeleteExport,
    .CloseProcedure = IopCloseExport,
};

OBP_REGISTER_TYPE(IopExportType);

/* After an error there is no watch. */
static NTSTATUS IopAttachSignal(PIOP_EXPORT Export)
{
    NTSTATUS Status = IopInitializeWatch(&Export->Watch, 0, Export, IopShowState, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    LONG Descriptor = HalCreateSignalDescriptor();
    Status = Descriptor >= 0 ? IopAttachDescriptor(&Export->Watch, Descriptor) : STATUS_INSUFFICIENT_RESOURCES;
    if (!NT_SUCCESS(Status)) {
        IopDeleteWatch(&Export->Watch);
        if (Descriptor >= 0) {
            HalCloseDescriptor(Descriptor);
        }
    }
    return Status;
}

static NTSTATUS IopInitializeExport(PVOID Object, PVOID Target)
{
    PIOP_EXPORT Export = Object;
    Export->State = IopWaiting;
    NTSTATUS Status = IopAttachSignal(Export);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Export->Target = Target;
    Export->Header = ObpDispatcherObject(Target);
    KeInitializeDpc(&Export->Dpc, IopExportSatisfied, Export);
    KiPrepareBlock(&Export->WaitBlock, NULL, Export->Header, WaitDpc, 0);
    ObReferenceObject(Target);
    return STATUS_SUCCESS;
}

static NTSTATUS IopExportTarget(PVOID Target, PHANDLE Export, int *Descriptor)
{
    HANDLE Handle;
    PVOID Object;
    NTSTATUS Status;
    if (ObpIsAlwaysSignaled(Target)) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    Status = ObpCreateHandle(&IopExportType, sizeof(IOP_EXPORT), NULL, IO_EXPORT_ALL_ACCESS, IopInitializeExport, Target,
                             &Handle);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    /* The wait begins once there is a handle whose close can end it. */
    Status = ObReferenceObjectByHandle(Handle, IO_EXPORT_ACCEPT, &IopExportType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        *Descriptor = IopNumberOf(&((PIOP_EXPORT)Object)->Watch);
        Status = IopBeginWait(Object);
        ObDereferenceObject(Object);
    }
    if (!NT_SUCCESS(Status)) {
        ObCloseHandle(Handle, UserMode);
        return Status;
    }
    *Export = Handle;
    return Status;
}

NTSTATUS IoExportObject(HANDLE Object, PHANDLE Export, int *Descriptor)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Target;
    NTSTATUS Status;
    if (Export == NULL || Descriptor == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KiEnterService(Thread);
    Status = ObReferenceObjectByHandle(Object, SYNCHRONIZE, NULL, UserMode, &Target, NULL);
    if (NT_SUCCESS(Status)) {
        Status = IopExportTarget(Target, Export, Descriptor);
        ObDereferenceObject(Target);
    }
    KiExitService(Thread);
    return Status;
}

static NTSTATUS IopAccept(PIOP_EXPORT Export)
{
    ULONG Satisfied = IopSatisfied;
    LONG Descriptor = IopDescriptorOf(&Export->Watch);
    if (Descriptor < 0) {
        return STATUS_FILE_CLOSED;
    }
    /* acquire: pairs with the release in IopExportSatisfied */
    if (!__atomic_compare_exchange_n(&Export->State, &Satisfied, IopWaiting, FALSE, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        return STATUS_TIMEOUT;
    }
    HalDrainDescriptor(Descriptor);
    return IopBeginWait(Export);
}

NTSTATUS IoAcceptExport(HANDLE Export)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    NTSTATUS Status;
    KiEnterService(Thread);
    Status = ObReferenceObjectByHandle(Export, IO_EXPORT_ACCEPT, &IopExportType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        Status = IopAccept(Object);
        ObDereferenceObject(Object);
    }
    KiExitService(Thread);
    return Status;
}
