/*
 * wo.h: the world: objects that processes share.
 *
 * A world is a file in shared memory that every process of a user maps. There is no server: the calling thread carries
 * out each operation, whatever process it belongs to, and a process may be killed between any two of its instructions.
 * This page is the theory; the layout is in wop.h.
 *
 * One lock, one journal
 * 1. The world has one lock. Its word names the process that holds it. No thread ends while it holds the lock unless its
 *    process does (KiEnterService). A thread that finds the lock held by a process that is dead takes it over by
 *    compare-exchange and repairs first. So no host support is needed to recover it, and a corrupt word is detected.
 * 2. Under the lock, memory changes in place, and the journal has the old value of each 8-byte word before it changes
 *    (WopEdit). The journal's phase determines the repair:
 *
 *        Idle       nothing to repair
 *        Editing    undo: restore the old values, newest first
 *        Finishing  redo: the change is final, its wakes may be missing. Carry them out; doing so twice is harmless.
 *
 *    Committing is one store of the phase. So an operation is atomic, wherever its process died.
 * 3. A change that does not fit into one transaction (release 1,000 waiters, clean up after a process) is a chain of
 *    transactions, each of which leaves a legal world, and an intention (WO_WORLD.Intention) that the repairer completes.
 *
 * Objects without waiters
 * 4. The state of an object is one word. While its bit W is clear, any thread of any process changes it by one
 *    compare-exchange, without the lock. While W is set, only the owner of the lock changes it. The owner sets W by
 *    compare-exchange before it reads anything else of the object ("freeze"). After the commit it clears W if the object
 *    has no waiters ("thaw"). W without waiters is legal: it costs the next operation the lock, which clears it.
 *
 * Waiters
 * 5. A waiter is a record in the world: one per thread that waits for shared objects, one per notification. Its State
 *    decides which thread ends the wait:
 *
 *        Idle -> Waiting -> Claimed -> Granted -> Idle
 *                   |           |
 *                   |           +-> Waiting with Recheck   the claimer died before its commit: repair
 *                   +-> Local -> Idle                      its own process ended the wait: timeout, alert, APC, a local
 *                                                          object, termination
 *
 *    Waiting -> Claimed: by the owner of the lock, by compare-exchange, journaled. Claimed -> Granted: after the commit.
 *    Waiting -> Local: by compare-exchange, by any thread of the waiter's process, without the lock. State has a number
 *    that changes with each wait, so a stale compare-exchange fails.
 * 6. A granted wait already has its objects: its blocks are unlinked, the objects consumed. The waiter reads Status and
 *    needs no lock.
 * 7. Blocks of waiters are linked to their objects first in, first out. A WaitAll is linked to one of its objects that is
 *    not signaled (it "watches" it); a signal of that one grants the wait or moves it to another object that is not
 *    signaled. All of this is under the one lock, so a WaitAll is atomic across processes.
 * 8. A Watch is a wait that consumes nothing: it is granted when its object is signaled. A wait for all of several objects,
 *    some of them local or in another world, watches one object that is not signaled. When that object is signaled, it
 *    tries again to take all or nothing with every lock held. No wakeup is lost: the thread sleeps only while an object
 *    of its wait was found not signaled under that object's lock with the watch already linked, and every later signal
 *    of that object grants the watch.
 *
 * Processes
 * 9. Processes form a ring. Each guards its two predecessors, so a stopped guard does not hide a death: a descriptor of
 *    each is in the watcher, which the host makes readable when the process ends. The guard then cleans up what the
 *    dead process had: waiters, mutants (abandoned, each reported to exactly one waiter), handles, names that nothing
 *    refers to any more. If a run of processes dies, the first live one after it cleans up after each of them. A
 *    process that attaches checks all of them, so if all die, the next one cleans up. Cleaning up is a chain of
 *    transactions, which any process may continue, since the record of the dead process stays in the ring until nothing
 *    is left.
 * 10. A process is its key: its id, its start time, and the start of its stack, which an exec changes (hal.h). A key is
 *     never reused.
 *
 * A hostile world
 * 11. Any process of the user may corrupt the file. Every index that is read is checked (range, alignment, kind), every
 *    walk is bounded by the number of records. A violation poisons the world: every call in every process returns
 *    STATUS_FILE_CORRUPT_ERROR, all waits end with it, and new processes start a new world. The finder wakes all
 *    sleepers; it may be killed meanwhile, so each process that finds the world poisoned does so, once. A truncated file
 *    is detected by the host's fault, whose handler maps zeros in its place.
 *
 * Everything takes the view: this process's mapping of a world. The explorer has several views of one world, each of
 * which is a process that it may kill.
 */
#ifndef INTERLOCK_WO_H
#define INTERLOCK_WO_H

#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>

#include "../hal/hal.h"

typedef struct _WO_VIEW WO_VIEW, *PWO_VIEW;
typedef ULONG WO_INDEX;   /* of a record: its offset in the file divided by 64; 0: none */

/* map.c: which world. Local is the user's, Machine that of an administrator, or the user's if there is none. */
typedef enum _WO_SCOPE { WoLocal, WoMachine } WO_SCOPE;

/* Attaches this process if it is not yet. STATUS_NOT_SUPPORTED: INTERLOCK_SESSION=private, or the host refuses shared
   memory: names stay in the process. */
NTSTATUS WoOpenView(WO_SCOPE Scope, PWO_VIEW *View);
BOOLEAN WoIsPoisoned(PWO_VIEW View);
BOOLEAN WoHasMachineWorld(VOID); /* attaches nothing */

/* object.c. Created with one reference and no handle of this process; see process.c. */
typedef enum _WO_TYPE {
    WoNotificationEvent = 1,
    WoSynchronizationEvent,
    WoSemaphore,
    WoMutant,
    WoNotificationTimer,
    WoSynchronizationTimer,
    WoKeyedEvent,
    WoDirectory,
    WoSymbolicLink
} WO_TYPE;

typedef struct _WO_NEW {
    WO_TYPE Type;
    LONG State;               /* event, semaphore: initial state; mutant: 1 free, 0 owned by Owner */
    LONG Limit;               /* semaphore */
    WO_INDEX Owner;           /* mutant: the waiter record of the thread that owns it */
    PCUNICODE_STRING Target;  /* symbolic link */
    ULONG Attributes;         /* OBJ_PERMANENT, OBJ_EXCLUSIVE */
} WO_NEW, *PWO_NEW;

NTSTATUS WoCreateObject(PWO_VIEW View, const WO_NEW *New, WO_INDEX *Object); /* unnamed */
WO_TYPE WoTypeOf(PWO_VIEW View, WO_INDEX Object);                            /* 0: poisoned */

/*
 * Operations. They return STATUS_FILE_CORRUPT_ERROR if the world is poisoned; otherwise as the services of the same
 * object do. Self: the waiter record of the calling thread.
 */
NTSTATUS WoSetEvent(PWO_VIEW View, WO_INDEX Event, PLONG Previous);
NTSTATUS WoResetEvent(PWO_VIEW View, WO_INDEX Event, PLONG Previous);
NTSTATUS WoPulseEvent(PWO_VIEW View, WO_INDEX Event, PLONG Previous);
NTSTATUS WoReleaseSemaphore(PWO_VIEW View, WO_INDEX Semaphore, LONG Adjustment, PLONG Previous);
NTSTATUS WoReleaseMutant(PWO_VIEW View, WO_INDEX Mutant, WO_INDEX Self, BOOLEAN Abandoned, PLONG Previous);
typedef struct _WO_TIMER_SETTING {
    ULONGLONG DueTime;        /* interrupt time, or system time if Absolute: both are the same in all processes */
    BOOLEAN Absolute;
    ULONG Period;             /* in milliseconds */
} WO_TIMER_SETTING, *PWO_TIMER_SETTING;
NTSTATUS WoSetTimer(PWO_VIEW View, WO_INDEX Timer, const WO_TIMER_SETTING *Setting, PULONG64 Arming, PBOOLEAN Previous);
NTSTATUS WoCancelTimer(PWO_VIEW View, WO_INDEX Timer, PBOOLEAN Previous);
BOOLEAN WoIsArmed(PWO_VIEW View, WO_INDEX Timer, ULONG64 Arming); /* it was not set or canceled since; for timer APCs */

typedef struct _WO_STATE {
    LONG State;               /* as SignalState */
    LONG Limit;               /* semaphore */
    BOOLEAN Abandoned;        /* mutant */
    WO_INDEX Owner;           /* mutant */
    ULONG OwnerProcess, OwnerThread; /* its host ids */
    WO_TIMER_SETTING Timer;
} WO_STATE, *PWO_STATE;
NTSTATUS WoQueryState(PWO_VIEW View, WO_INDEX Object, PWO_STATE State);

/* wait.c: waiters. One per thread (or notification), kept until WoDeleteWaiter. */
NTSTATUS WoCreateWaiter(PWO_VIEW View, ULONG ThreadId, WO_INDEX *Waiter);
VOID WoDeleteWaiter(PWO_VIEW View, WO_INDEX Waiter); /* a thread that ends: its mutants are abandoned */
/* The record of the calling thread in this world, created if there is none: WO_NEW.Owner of a mutant. */
NTSTATUS WoWaiterOfCurrentThread(PWO_VIEW View, WO_INDEX *Waiter);

/* Tries to take the objects as a wait with a timeout of 0 does. STATUS_TIMEOUT: not signaled. Otherwise the status of the
   wait: STATUS_WAIT_0 + Index, STATUS_ABANDONED_WAIT_0 + Index, STATUS_MUTANT_LIMIT_EXCEEDED. One object that is signaled
   or whose state is known to be not signaled costs one compare-exchange or one read. */
NTSTATUS WoTryWait(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count, WAIT_TYPE WaitType);
/* All objects of two worlds, or none. If the process is killed in the middle, it has taken those of the first part. */
typedef struct _WO_PART {
    PWO_VIEW View;
    WO_INDEX Self;
    const WO_INDEX *Objects;
    ULONG Count;
} WO_PART, *PWO_PART;
NTSTATUS WoTryWaitForBoth(const WO_PART Parts[2]);

/* WoWatch: granted when the object (one) is signaled, consumes nothing. */
typedef enum _WO_WAIT_KIND { WoWaitAny, WoWaitAll, WoWatch } WO_WAIT_KIND;

/* Tests and links in one step. STATUS_PENDING: linked, State is Waiting. Otherwise as WoTryWait, and nothing is linked. */
NTSTATUS WoBeginWait(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count, WO_WAIT_KIND Kind);
/* Claims the wait for its own process. TRUE: it is ended locally (now, or by an earlier call), and cannot be granted any
   more; the thread itself must call WoEndWait before its next wait. FALSE: it is being granted, or was. No lock. */
BOOLEAN WoClaimLocally(PWO_VIEW View, WO_INDEX Self);
/* The same, but only for the wait that WoWaitNumber named. */
typedef enum _WO_CLAIM { WoNotClaimed, WoClaimedByUs, WoOtherWait } WO_CLAIM;
WO_CLAIM WoClaimWait(PWO_VIEW View, WO_INDEX Self, ULONG64 Number);
ULONG64 WoWaitNumber(PWO_VIEW View, WO_INDEX Self);       /* by the waiting thread; its low 8 bits are 0 */
/* Called by the waiting thread. STATUS_PENDING: it still waits. STATUS_RETRY: it was claimed here, or a grant was undone, so
   that local events in the meantime have to be checked: end the wait and begin again. Otherwise it is granted. */
NTSTATUS WoCheckWait(PWO_VIEW View, WO_INDEX Self);
/* Called by the waiting thread. FALSE: it still waits, and may sleep on WoWakeWord while that is *Seen. */
BOOLEAN WoIsGranted(PWO_VIEW View, WO_INDEX Self, NTSTATUS *Status);
volatile ULONG *WoWakeWord(PWO_VIEW View, WO_INDEX Self); /* shared between processes: KiSleepShared, HalWakeShared */
/* When to check again if no wake comes: the due time of the earliest timer among its objects. FALSE: never. */
BOOLEAN WoNextDue(PWO_VIEW View, WO_INDEX Self, PHAL_DEADLINE Due);
VOID WoExpireTimers(PWO_VIEW View, WO_INDEX Self);        /* signals the timers among its objects that are due */
/* Unlinks the wait. STATUS_PENDING: nothing was consumed. Any other status: the wait was granted first, with that
   result. */
NTSTATUS WoEndWait(PWO_VIEW View, WO_INDEX Self);

/* Keyed events: Self waits or releases with a key; the pairing works across processes. Ends like a wait. */
NTSTATUS WoBeginKeyedWait(PWO_VIEW View, WO_INDEX Self, WO_INDEX KeyedEvent, ULONG64 Key, BOOLEAN Release);

/*
 * process.c: processes and what they refer to. A process has one reference record per object, with its number of handles.
 * An object lives as long as a process refers to it, its name as long as a process has a handle to it.
 */
NTSTATUS WoReferenceObject(PWO_VIEW View, WO_INDEX Object);             /* creates this process's record, or finds it */
NTSTATUS WoChangeHandles(PWO_VIEW View, WO_INDEX Object, LONG Change);  /* of this process; removes the name with the last */
VOID WoDereferenceObject(PWO_VIEW View, WO_INDEX Object);               /* this process's proxy no longer exists */
ULONG WoQueryHandleCount(PWO_VIEW View, WO_INDEX Object);               /* of all processes */

/* Handles for a child process, prepared by its parent: the child adopts them by Ticket (text, passed in its environment).
   Entries of a child that is never started are dropped with WoAbandonChild, or with the parent. */
typedef struct _WO_INHERITED {
    ULONG Handle;             /* the value, which the child keeps */
    WO_INDEX Object;
    ULONG GrantedAccess;
    ULONG Attributes;
} WO_INHERITED, *PWO_INHERITED;
#define WO_TICKET_LENGTH 64
NTSTATUS WoPrepareChild(PWO_VIEW View, const WO_INHERITED Handles[], ULONG Count, CHAR Ticket[WO_TICKET_LENGTH]);
VOID WoStartChild(PWO_VIEW View, PCSTR Ticket, ULONG ProcessId);        /* it runs: from now on its death is noticed */
VOID WoAbandonChild(PWO_VIEW View, PCSTR Ticket);
NTSTATUS WoAdoptHandles(PWO_VIEW View, PCSTR Ticket, PWO_INHERITED Handles, PULONG Count); /* in the child, once */
/* Before and after a fork. The child's references exist before it does. */
VOID WoForkPrepare(VOID);
VOID WoForkParent(VOID);
VOID WoForkChild(VOID);

/* The watch of other processes, by ps: Open returns NULL if the host refuses; when a watched process ends, ps calls
   WoNoteProcessEnd. */
typedef struct _WO_WATCHER {
    PVOID (*Open)(ULONG ProcessId);
    VOID (*Close)(PVOID Watch);
} WO_WATCHER;
VOID WoSetWatcher(const WO_WATCHER *Watcher);
VOID WoNoteProcessEnd(VOID);

/* names.c. Directory 0: the root of the world, which stands for \BaseNamedObjects. */
typedef struct _WO_LOOKUP {
    WO_INDEX Directory;
    PCUNICODE_STRING Name;    /* one component */
    BOOLEAN CaseInsensitive;
} WO_LOOKUP, *PWO_LOOKUP;
/* Finds, and takes a reference and Handles handles for this process, in one step. */
NTSTATUS WoFindName(PWO_VIEW View, const WO_LOOKUP *Lookup, ULONG Handles, WO_INDEX *Object);
/* The same, or creates and enters it: STATUS_SUCCESS; STATUS_OBJECT_NAME_EXISTS: found. */
NTSTATUS WoCreateName(PWO_VIEW View, const WO_LOOKUP *Lookup, const WO_NEW *New, ULONG Handles, WO_INDEX *Object);
NTSTATUS WoSetPermanent(PWO_VIEW View, WO_INDEX Object, BOOLEAN Permanent);
VOID WoRemoveName(PWO_VIEW View, WO_INDEX Object); /* although it has handles */
ULONG WoQueryAttributes(PWO_VIEW View, WO_INDEX Object); /* of WO_NEW.Attributes */
/* From the root, with a separator in front. Length 0: it has none, or the object no longer exists. */
NTSTATUS WoQueryName(PWO_VIEW View, WO_INDEX Object, PWCHAR Path, ULONG Capacity, PULONG Length);
NTSTATUS WoQueryTarget(PWO_VIEW View, WO_INDEX SymbolicLink, PWCHAR Target, ULONG Capacity, PULONG Length);
/* Entry number Index of a directory, in order of insertion. STATUS_NO_MORE_ENTRIES. */
NTSTATUS WoQueryEntry(PWO_VIEW View, WO_INDEX Directory, ULONG Index, PWCHAR Name, ULONG Capacity, PULONG Length,
                      WO_TYPE *Type);

/* For wait chains. A view that this process is not attached to is NULL; nothing is attached. */
PWO_VIEW WoAttachedView(WO_SCOPE Scope);
typedef struct _WO_THREAD_WAIT {
    ULONG ProcessId, ThreadId; /* 0: none */
    ULONG64 Number;           /* of its wait; 0: it waits for no shared object */
    ULONG Count;              /* shared objects that it waits for, one more if others may end the wait too, and */
    WO_INDEX Object;          /* the first of them */
} WO_THREAD_WAIT, *PWO_THREAD_WAIT;
/* FALSE: it is not a mutant, or no longer exists. */
BOOLEAN WoQueryOwner(PWO_VIEW View, WO_INDEX Mutant, PWO_THREAD_WAIT Owner);
/* ProcessId 0: of any process. FALSE: the world does not know the thread. */
BOOLEAN WoQueryThread(PWO_VIEW View, ULONG ProcessId, ULONG ThreadId, PWO_THREAD_WAIT Wait);

/* mailbox.c: requests that another process of the world serves on its own thread, for DuplicateHandle. */
typedef enum _WO_REQUEST_KIND { WoExportHandle = 1, WoImportHandle, WoCloseHandle } WO_REQUEST_KIND;
typedef struct _WO_REQUEST {
    WO_REQUEST_KIND Kind;
    ULONG Options;            /* DUPLICATE_ */
    ULONG64 Handle;           /* in: export, close; out: import */
    ULONG GrantedAccess, Attributes;
    WO_INDEX Object;          /* out: export, with a reference and a handle for the requesting process; in: import, with
                                 a reference and a handle for the serving process, which it opens or returns */
    ULONG ProcessId;          /* in place of Object (0): the handle is one of this process */
    ULONG64 ProcessStart;     /* and when the host started it */
    NTSTATUS Status;
} WO_REQUEST, *PWO_REQUEST;
/* STATUS_INVALID_CID: the process is not in this world, STATUS_PROCESS_IS_TERMINATING: it died meanwhile. */
NTSTATUS WoRequest(PWO_VIEW View, ULONG ProcessId, PWO_REQUEST Request);
/*
 * The server: set once by ob, and called on the session thread. WoExportHandle: Serve sets Object and returns a reference that
 * keeps it alive even if other threads close their handles; the world then gives the requesting process its reference and a
 * handle, and calls Release. If Options has DUPLICATE_CLOSE_SOURCE, it calls Serve once more with WoCloseHandle; Serve itself
 * ignores that option.
 */
typedef struct _WO_SERVER {
    PVOID (*Serve)(PWO_VIEW View, PWO_REQUEST Request); /* NULL: there is nothing to release */
    VOID (*Release)(PVOID Kept);
} WO_SERVER;
VOID WoSetServer(const WO_SERVER *Server);

#endif
