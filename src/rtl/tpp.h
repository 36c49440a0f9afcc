/*
 * tpp.h: the internals of the thread pool.
 *
 * A pool is a KQUEUE and the threads that remove packets from it, like a completion port. An object (work, timer, wait,
 * I/O) embeds every packet that it ever queues, so nothing between a submission and its callback can fail. There are
 * three kinds of packet:
 *
 *   task      an object has pending callbacks; each worker that removes the task begins one of them
 *   source    a kernel object was signaled and queued its KOBJECT_NOTIFICATION (as a wait completion packet does); the
 *             worker that removes the packet begins the one callback
 *   lane      objects of high or low priority are listed in this lane
 *
 * The life of an object:
 *
 *   allocated    TpAlloc...: memory (TppAllocate), the members of its kind, then its pool and group (TppIntroduce)
 *   used         TpPostWork and the expiration of a timer add a pending callback; TpSetWait and TpStartAsyncIoOperation
 *                arm a source
 *   closed       TppClose disarms the sources and sets Closed; pending and running callbacks keep the object alive
 *   deleted      TppDelete, called by the thread whose change of State leaves Closed alone. A member that its group has
 *                cancelled stays in the group's list until its cancel callback is called (tpobject.c)
 *
 * The life of a callback, with the functions that advance it:
 *
 *   armed        TppArm registers the source with a kernel object; the signal queues the source's packet
 *   pending      TppAddPending counts it and queues the task
 *   taken        TppWorkerThread removes a packet; TppTake, TppClaim (task) or TppArrive (source) makes the callback
 *                Running
 *   running      TppRunCallback calls Execute, then the completion actions
 *   ended        TppLeaveCallback; TppFinish removes it from Running and wakes threads that wait for the object
 *
 * A source that has fired becomes pending when its object is set again, closed or waited for: the documents say that
 * callbacks already queued still occur. A packet that a worker holds at that moment becomes stale.
 *
 * Files: tppool.c has pools, their queue and their threads; tpobject.c what all objects share, work objects, the run of
 * a callback, and cleanup groups; tpwait.c sources: waits, timers and I/O objects; tplegacy.c work items, timer queues
 * and registered waits.
 *
 * All locks here are KI_LOCKs, held inside dispatcher sections, in the order group, object, pool. So a fork finds them
 * free. A forked child repairs only what its lost threads had taken (TppAdoptPool), at its first use of the pool. No
 * thread is started and no memory is allocated or freed while one of these locks is held.
 */
#ifndef INTERLOCK_TPP_H
#define INTERLOCK_TPP_H

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "../ke/timer.h"
#include "../ke/wait.h"
#include "../ob/obp.h"
#include "rtlp.h"

typedef enum _TPP_PACKET_KIND { TppTaskPacket, TppSourcePacket, TppLanePacket } TPP_PACKET_KIND;

typedef struct _TPP_PACKET {
    LIST_ENTRY Entry; /* Flink is NULL while the packet is neither in the queue nor in a lane */
    ULONG Kind;
} TPP_PACKET, *PTPP_PACKET;

/*
 * The state of an object, one word:
 *
 *       63       62     61      47 46      32   31     30        0
 *     +--------+---------+----------+----------+--------+-----------+
 *     | Closed | Waiters |  Holds   | Running  | Linked |  Pending  |
 *     +--------+---------+----------+----------+--------+-----------+
 *
 *   Pending   callbacks that were submitted and have not begun
 *   Linked    the task is in the queue or a lane, or a thread is about to insert it or has just removed it
 *   Running   callbacks that have begun and not ended
 *   Holds     armed sources, source packets that a worker has removed, callbacks that have disassociated themselves
 *             and not returned, and other references
 *   Waiters   a thread waits until Pending and Running are 0
 *   Closed    the program has closed the object
 *
 * 1. Pending implies Linked. The thread that sets Linked inserts the task. The thread that removes the task clears
 *    Linked, or inserts the task again if more callbacks are pending: callbacks of one object run concurrently.
 * 2. Cancelling sets Pending to 0 and removes the task from the queue. A worker that has just removed it finds nothing
 *    to begin.
 * 3. The thread whose change leaves Closed alone deletes the object. No count can rise from there, so there is exactly
 *    one such thread.
 * 4. Waiters is set under the object's lock, with the waiter in the list, while Pending or Running is not 0. The thread
 *    that makes both 0 keeps a hold until it has emptied the list. The bit is cleared with the list, under the lock. A
 *    waiter whose thread is terminated leaves the list but not the bit, which is harmless.
 * 5. One compare-exchange moves a callback from Pending to Running: it never appears to have ended in between.
 */
#define TPP_PENDING_ONE ((ULONG64)1)
#define TPP_PENDING_MASK ((ULONG64)0x7fffffff)
#define TPP_LINKED ((ULONG64)1 << 31)
#define TPP_RUNNING_ONE ((ULONG64)1 << 32)
#define TPP_RUNNING_MASK ((ULONG64)0x7fff << 32)
#define TPP_HOLD_ONE ((ULONG64)1 << 47)
#define TPP_HOLD_MASK ((ULONG64)0x7fff << 47)
#define TPP_WAITERS ((ULONG64)1 << 62)
#define TPP_CLOSED ((ULONG64)1 << 63)

struct _TPP_OBJECT;
struct _TPP_SOURCE;

/* What differs between the kinds of objects. Members that do not apply to a kind are NULL. */
typedef struct _TPP_TYPE {
    SIZE_T Size;
    BOOLEAN UsesClock;
    VOID (*Executed)(struct _TPP_OBJECT *Object); /* the callback has returned, or its thread has ended */
    /* For kinds with sources or a timer, with the object's lock held. Fired sources become pending; Disarm also disarms
       the others, and the timer. Returns a kernel object to dereference without the lock, or NULL. */
    PVOID (*Collect)(struct _TPP_OBJECT *Object, BOOLEAN Disarm);
    /* A source's packet was accepted, with the object's lock held. Returns the callback's result. */
    ULONG (*Arrive)(struct _TPP_OBJECT *Object, struct _TPP_SOURCE *Source, PVOID *Dereference);
    VOID (*Repair)(struct _TPP_OBJECT *Object); /* its sources, in a forked child */
} TPP_TYPE;

/* Calls Object->Callback with the parameters of its kind. */
typedef VOID TPP_EXECUTE(struct _TPP_OBJECT *Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result);

typedef struct _TPP_OBJECT {
    volatile ULONG64 State;
    TPP_PACKET Task;
    const TPP_TYPE *Type;
    PTP_POOL Pool;
    TPP_EXECUTE *Execute;
    PVOID Callback;
    PVOID Context;
    PTP_SIMPLE_CALLBACK FinalizationCallback;
    UCHAR Priority;
    BOOLEAN LongFunction;
    BOOLEAN Persistent;
    BOOLEAN Released;                      /* closed, and not by its group; under Lock, as the next */
    BOOLEAN Cancelled;                     /* by its group: its cancel callback is called, unless Released by then */
    KI_LOCK Lock;
    ULONG PendingTimeouts;                 /* pending callbacks whose result is STATUS_TIMEOUT; under Lock */
    LIST_ENTRY WaiterListHead;             /* TPP_WAITER, under TppWaiterLock: tpobject.c */
    LIST_ENTRY PoolEntry;                  /* under the pool's lock */
    LIST_ENTRY GroupEntry;                 /* under the group's lock, as the next */
    ULONG Release;                         /* which of the group's releases has closed it: tpobject.c */
    PTP_CLEANUP_GROUP Group;               /* with a reference, or NULL */
    PTP_CLEANUP_GROUP_CANCEL_CALLBACK CancelCallback;
    VOID (*Destroy)(PVOID DestroyContext); /* called after the object was freed; may be NULL */
    PVOID DestroyContext;
} TPP_OBJECT, *PTPP_OBJECT;

/* A kernel object whose signal becomes a callback (tpwait.c). Under the object's lock, except the packet itself. */
typedef struct _TPP_SOURCE {
    KOBJECT_NOTIFICATION Notification;
    ULONG Kind;        /* with the entry before it a TPP_PACKET */
    ULONG Stale;       /* packets that workers have removed but not delivered yet, and that are stale */
    BOOLEAN Armed;     /* with a hold on the object */
    PTPP_OBJECT Object;
} TPP_SOURCE, *PTPP_SOURCE;

C_ASSERT(FIELD_OFFSET(TPP_SOURCE, Kind) - FIELD_OFFSET(TPP_SOURCE, Notification.QueueListEntry) ==
         FIELD_OFFSET(TPP_PACKET, Kind));

struct _TP_WORK {
    TPP_OBJECT Object;
};

struct _TP_TIMER {
    TPP_OBJECT Object;
    KTIMER Timer;
    KI_TIMER_CALL Call;
    ULONG Period;
    BOOLEAN IsSet; /* by the last call that set it; it may have expired */
};

struct _TP_WAIT {
    TPP_OBJECT Object;
    TPP_SOURCE Signal;
    TPP_SOURCE Timeout;
    KTIMER Timer;
    PVOID Target; /* the object to wait for, with a reference; NULL: the wait is not set */
    PVOID WaitObject; /* of Target */
    /* A registered wait that is armed again as soon as it is served, so that its callbacks may overlap. Constant. */
    BOOLEAN Repeats;
    BOOLEAN TimesOut;
    LARGE_INTEGER Interval; /* of the timeout */
};

struct _TP_IO {
    TPP_OBJECT Object;
    TPP_SOURCE Source;
    PVOID Target;
    ULONG Started; /* operations whose callback has not begun */
    BOOLEAN Busy;
    BOOLEAN Bound; /* an operation is started again after each callback. Constant */
};

struct _TPP_WORKER;

struct _TP_CALLBACK_INSTANCE {
    struct _TPP_WORKER *Worker;
    PTPP_OBJECT Object; /* counts in its Running; NULL: no callback, or disassociated */
    PTPP_OBJECT Held;   /* held until the callback has returned and Type->Executed was called; or NULL */
    PRTL_CRITICAL_SECTION CriticalSection;
    HANDLE Mutex;
    HANDLE Semaphore;
    ULONG ReleaseCount;
    HANDLE Event;
    PVOID Library;
};

/* A thread of a pool. Not on the thread's stack: it must outlive a thread that ends inside a callback. */
typedef struct _TPP_WORKER {
    LIST_ENTRY Entry; /* under the pool's lock */
    PTP_POOL Pool;
    PKTHREAD Thread;
    BOOLEAN Busy;
    BOOLEAN Persistent; /* has run a callback whose thread must stay */
    volatile ULONG Begun; /* packets so far; it wraps. Written by the thread alone */
    TP_CALLBACK_INSTANCE Instance;
} TPP_WORKER, *PTPP_WORKER;

/*
 * How a worker goes from one callback to the next. A work object with more callbacks pending stays in the queue: the
 * worker begins one while the queue is locked, so the task is not removed and inserted again. And if it is the object
 * whose callback has just ended, Running need not change: one compare-exchange ends one callback and begins the next.
 * So the end of a callback is counted only after the worker has looked at the queue.
 */
typedef struct _TPP_NEXT {
    PTPP_OBJECT Ended;   /* still counts in Running the callback that has ended; or NULL */
    PTPP_OBJECT Claimed; /* by TppClaim; NULL: the packet was removed, and nothing else */
    ULONG64 State;       /* of Claimed, after it */
    BOOLEAN Begun;       /* one callback of Claimed is now Running */
} TPP_NEXT, *PTPP_NEXT;

/*
 * Objects of high or low priority are not queued themselves: they are listed in a lane, and one packet in the queue
 * stands for the lane. The express lane's packet goes to the head of the queue; the worker that removes it serves one
 * object and inserts the packet again while there are more. The slow lane's packet goes to the tail, and a worker that
 * removes it while other packets are queued inserts it again there. Under the pool's lock.
 */
typedef struct _TPP_LANE {
    LIST_ENTRY ListHead;
    TPP_PACKET Packet;
    BOOLEAN Queued; /* Packet is in the queue, or a worker has just removed it */
} TPP_LANE, *PTPP_LANE;

typedef enum _TPP_LANE_NUMBER { TppExpressLane, TppSlowLane, TppMaximumLane } TPP_LANE_NUMBER;

/*
 * The threads of a pool, one word:
 *
 *      31            16 15             0
 *     +----------------+----------------+
 *     |      Busy      |    Workers     |
 *     +----------------+----------------+
 *
 *   Busy    threads that serve packets: from the packet that a wait has returned to the first time that the queue has
 *           none for the thread. In between it changes nothing that other threads change too, but the queue and objects
 *
 * 1. Once there is a thread, one is idle or starting, unless the maximum is reached: a thread that begins a packet and
 *    leaves none idle starts the next, and an idle one ends only if another remains. So packets that the kernel queues
 *    always find a thread.
 * 2. The KQUEUE lets one thread run per processor, and one more for each that blocks in a wait. It does not see threads
 *    that block in the host or compute for long: while Limit threads are busy a timer ticks, and if packets are queued
 *    and no worker has begun one since the last tick, Limit grows by one.
 * 3. An object is allocated together with the pool's first thread or not at all, and that thread stays. The tick
 *    retries where a further thread could not be started, or one was lost in a callback.
 */
#define TPP_WORKERS(Word) ((Word) & 0xffff)
#define TPP_BUSY(Word) ((Word) >> 16)
#define TPP_WORKER_ONE 1u
#define TPP_BUSY_ONE (1u << 16)

#define TPP_MOST_THREADS 0x7ff0 /* fits in Running and Holds */
#define TPP_DEFAULT_THREADS 500

struct _TP_POOL {
    KQUEUE Queue DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG Threads DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG ProcessId DECLSPEC_ALIGN(KI_CACHE_LINE); /* whose threads are counted; 0: not initialized */
    volatile ULONG Maximum;
    volatile ULONG Minimum;
    volatile ULONG Limit;       /* a copy of Queue.MaximumCount, read without the queue's lock */
    volatile ULONG Ticking;     /* the timer is set or its DPC runs */
    ULONG LastBegun;            /* the sum of the workers' Begun at the last tick; under Lock */
    volatile LONG References;   /* one for the program, one for each object */
    volatile LONG Lifetime;     /* one for References, one for each thread, one for Ticking */
    KI_LOCK Lock;
    TP_POOL_STACK_INFORMATION Stack;
    LIST_ENTRY WorkerListHead;
    LIST_ENTRY ObjectListHead;
    TPP_LANE Lane[TppMaximumLane];
    KTIMER Timer;
    KDPC Dpc;
};

extern LONGLONG TppPatience; /* how long a thread stays idle; both relative, in 100 ns, and settable by tests */
extern LONGLONG TppTickInterval;

extern TP_POOL TppDefaultPool;
extern TP_POOL TppTimerThreadPool; /* one thread: WT_EXECUTEINTIMERTHREAD */
extern TP_POOL TppWaitThreadPool;  /* likewise WT_EXECUTEINWAITTHREAD */

/* tppool.c */
VOID TppAdoptPool(PTP_POOL Pool);
VOID TppReadyPool(PTP_POOL Pool);               /* TppEnterPool, and a thread is idle unless the maximum is reached */
NTSTATUS TppStartMinimum(PTP_POOL Pool, ULONG Count);
VOID TppDropPool(PTP_POOL Pool);
BOOLEAN TppRunUncounted(PTPP_WORKER Worker);    /* the current thread may run long; TRUE: another one is idle */
VOID TppQueueTask(PTPP_OBJECT Object, BOOLEAN PoolLocked); /* Linked is set; in a dispatcher section, as the next */
BOOLEAN TppUnqueueTask(PTPP_OBJECT Object);     /* FALSE: a worker has removed it, or it is not inserted yet */

/* tpobject.c */
typedef enum _TPP_CLOSER {
    TppProgram,         /* pending callbacks still occur */
    TppGroup,           /* likewise */
    TppCancellingGroup, /* pending callbacks are cancelled */
} TPP_CLOSER;

NTSTATUS TppAllocate(const TPP_TYPE *Type, TPP_EXECUTE *Execute, PVOID Callback, PVOID Context,
                     PTP_CALLBACK_ENVIRON Environ, PVOID *Object); /* in a service that lasts until TppIntroduce */
VOID TppIntroduce(PTPP_OBJECT Object, PTP_CALLBACK_ENVIRON Environ); /* from now on a release of the group's members
                                                may close it */
VOID TppDelete(PTPP_OBJECT Object);
BOOLEAN TppTryHold(PTPP_OBJECT Object);         /* FALSE: it is being deleted */
VOID TppDropHold(PTPP_OBJECT Object);
BOOLEAN TppAddPending(PTPP_OBJECT Object, BOOLEAN PoolLocked); /* FALSE: too many are pending */
BOOLEAN TppTake(PTPP_OBJECT Object, PULONG Result); /* after its task was removed; TRUE: one callback is now Running */
VOID TppPutBack(PTPP_OBJECT Object, ULONG Result);  /* a Running callback that has not begun becomes pending again */
BOOLEAN TppClaim(PLIST_ENTRY Entry, PVOID Next);
PTPP_OBJECT TppRunCallback(PTPP_WORKER Worker, PTPP_OBJECT Object, ULONG Result); /* returns the object for TppFinish, or NULL */
VOID TppFinish(PTPP_OBJECT Object);
VOID TppEndCallback(PTP_CALLBACK_INSTANCE Instance); /* its thread has ended */
VOID TppWaitForCallbacks(PTPP_OBJECT Object, BOOLEAN Cancel);
BOOLEAN TppClose(PTPP_OBJECT Object, TPP_CLOSER Closer); /* TRUE: a callback is pending or running */
NTSTATUS TppSubmitOnce(TPP_EXECUTE *Execute, PVOID Callback, PVOID Context, PTP_CALLBACK_ENVIRON Environ);
BOOLEAN TppRepairObject(PTPP_OBJECT Object);    /* in a forked child, with the pool's lock; FALSE: to be deleted */

/* tpwait.c; sources with their object's lock held */
typedef enum _TPP_DISARMED { TppWasNotArmed, TppWasWaiting, TppHadFired } TPP_DISARMED;

BOOLEAN TppArrive(PTPP_SOURCE Source, PULONG Result); /* without the lock, after its packet was removed; TRUE: its
                                                callback is now Running */
BOOLEAN TppIsMutex(PVOID Target);               /* only a thread can own it: no source waits for it */
BOOLEAN TppSetWaitTarget(PTP_WAIT Wait, PVOID Target, PLARGE_INTEGER Timeout); /* takes over the reference; TRUE: an
                                                   earlier wait was cancelled */

/* tpwait.c: timers, I/O objects. tpobject.c: cleanup groups */
BOOLEAN TppHasTimerEnded(PTP_TIMER Timer);      /* it had no period, and has expired */
NTSTATUS TppAllocateIo(PTP_IO *IoReturn, HANDLE File, TPP_EXECUTE *Execute, PVOID Callback, PVOID Context,
                       PTP_CALLBACK_ENVIRON Environ);
NTSTATUS TppBindIo(HANDLE File, TPP_EXECUTE *Execute, PVOID Callback);
VOID TppJoinGroup(PTPP_OBJECT Object, PTP_CLEANUP_GROUP Group);
BOOLEAN TppLeaveGroup(PTPP_OBJECT Object);      /* in a dispatcher section; TRUE: the group keeps the object's memory */
VOID TppDropGroup(PTP_CLEANUP_GROUP Group);

FORCEINLINE VOID TppInitializeSource(PTPP_SOURCE Source, PTPP_OBJECT Object)
{
    Source->Kind = TppSourcePacket;
    Source->Object = Object;
}

FORCEINLINE BOOLEAN TppIsPoolReady(PTP_POOL Pool) /* in this process */
{
    /* acquire: pairs with the release in TppAdoptPool */
    return __atomic_load_n(&Pool->ProcessId, __ATOMIC_ACQUIRE) == KiInitialProcess.ProcessId;
}

/* Before any other use of a pool or its objects: initializes the pool, or repairs it in a forked child. */
FORCEINLINE VOID TppEnterPool(PTP_POOL Pool)
{
    if (!TppIsPoolReady(Pool)) {
        TppAdoptPool(Pool);
    }
}

FORCEINLINE ULONG TppQueryThreads(PTP_POOL Pool)
{
    return TPP_WORKERS(__atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED));
}

FORCEINLINE BOOLEAN TppHasBacklog(PTP_POOL Pool)
{
    return KeReadStateQueue(&Pool->Queue) > 0;
}

FORCEINLINE BOOLEAN TppIsIdle(ULONG64 State)
{
    return !(State & (TPP_PENDING_MASK | TPP_RUNNING_MASK));
}

FORCEINLINE BOOLEAN TppIsClosed(PTPP_OBJECT Object)
{
    /* relaxed: read and set under the object's lock */
    return (__atomic_load_n(&Object->State, __ATOMIC_RELAXED) & TPP_CLOSED) != 0;
}

#endif
