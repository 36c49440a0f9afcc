/*
 * tpp.h: the thread pool inside.
 *
 * A pool is a KQUEUE and the threads that take from it, what a completion port is made of. An object (work, timer,
 * wait, I/O) has memory of its own for everything that goes through the queue, so that nothing on the way to a callback
 * can fail. What goes through is a packet:
 *
 *   the object's task      callbacks are pending, and any thread may take one of them
 *   a source               a kernel object was signaled (a KOBJECT_NOTIFICATION, what a wait completion packet is made
 *                          of): one callback, which the thread that gets the packet runs
 *   a lane                 objects of another priority than the normal one are waiting in a list
 *
 * All locks here are KI_LOCKs, held inside dispatcher sections, in the order group, object, pool. So a fork finds them
 * free, and what a forked child has to put in order is only what its lost threads had in their hands (TppAdoptPool).
 */
#ifndef INTERLOCK_TPP_H
#define INTERLOCK_TPP_H

#include <interlock/nt.h>
#include <interlock/rtl.h>
#include <interlock/threadpool.h>

#include "../ke/wait.h"
#include "../ps/psp.h"
#include "teb.h"

typedef enum _TPP_PACKET_KIND { TppTaskPacket, TppSourcePacket, TppLanePacket } TPP_PACKET_KIND;

typedef struct _TPP_PACKET {
    LIST_ENTRY Entry; /* Flink is NULL while it is neither in the queue nor in a lane */
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
 *   Pending   callbacks that were asked for and have not begun
 *   Linked    the task is in the queue or a lane, or on its way to or from it
 *   Running   callbacks that have begun and not ended
 *   Holds     sources that are armed or in the hands of a thread, and others that must find the object alive
 *   Waiters   somebody waits until Pending and Running are 0
 *   Closed    nobody outside refers to the object any more
 *
 * 1. Pending implies Linked. Whoever sets Linked puts the task into the queue; whoever takes it out clears Linked, or
 *    puts it back because there is more: so the callbacks of one object run side by side.
 * 2. Cancelling takes Pending to 0, and the task out if it is in the queue. A thread that has it finds nothing to do.
 * 3. The object is deleted by whoever leaves Closed and nothing else. Nothing can be added to that, so there is one.
 * 4. Waiters is set under the object's lock, with the waiter in the list, while Pending or Running is not 0. Whoever
 *    takes both to 0 then keeps a hold until it has looked at the list. It is cleared with the list, under the lock. A
 *    waiter whose thread is ended leaves the list, not the bit.
 * 5. A callback that was taken out of Pending is counted in Running by the same compare-exchange: at no time does it
 *    look as if it had ended.
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

typedef struct _TPP_TYPE {
    SIZE_T Size;
    BOOLEAN UsesClock;
    VOID (*Execute)(struct _TPP_OBJECT *Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result);
    VOID (*Executed)(struct _TPP_OBJECT *Object); /* NULL, or the callback has returned or its thread has ended */
    /* For an object with sources, with its lock held. What they have delivered becomes pending; Disarm: and they are
       disarmed. Returns a kernel object to dereference, or NULL. */
    PVOID (*Collect)(struct _TPP_OBJECT *Object, BOOLEAN Disarm);
    /* A source has delivered, with the object's lock held: what the callback is told. */
    ULONG (*Arrive)(struct _TPP_OBJECT *Object, struct _TPP_SOURCE *Source, PVOID *Dereference);
    VOID (*Repair)(struct _TPP_OBJECT *Object); /* in a forked child: its sources */
} TPP_TYPE;

typedef struct _TPP_OBJECT {
    volatile ULONG64 State;
    TPP_PACKET Task;
    const TPP_TYPE *Type;
    PTP_POOL Pool;
    PVOID Callback;
    PVOID Context;
    PTP_SIMPLE_CALLBACK FinalizationCallback;
    UCHAR Priority;
    BOOLEAN LongFunction;
    BOOLEAN Persistent;
    KI_LOCK Lock;
    ULONG PendingTimeouts;                 /* how many of the pending callbacks are told so; under Lock */
    LIST_ENTRY WaiterListHead;             /* TPP_WAITER, under a lock of its own: tpidle.c */
    LIST_ENTRY PoolEntry;                  /* under the pool's lock */
    LIST_ENTRY GroupEntry;                 /* under the group's lock */
    PTP_CLEANUP_GROUP Group;               /* with a reference, or NULL */
    PTP_CLEANUP_GROUP_CANCEL_CALLBACK CancelCallback;
    VOID (*Destroy)(PVOID DestroyContext); /* when the object is gone; may be NULL */
    PVOID DestroyContext;
} TPP_OBJECT, *PTPP_OBJECT;

/* A kernel object whose signal becomes a callback. Everything but the packet itself under the object's lock. */
typedef struct _TPP_SOURCE {
    KOBJECT_NOTIFICATION Notification;
    ULONG Kind;        /* with the entry before it a TPP_PACKET */
    ULONG Stale;       /* packets that threads have taken out and not brought here yet, and that no longer count */
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
    TPP_SOURCE Source;
    KTIMER Timer;
    ULONG Period;
    BOOLEAN WasSet; /* and not taken back since */
};

struct _TP_WAIT {
    TPP_OBJECT Object;
    TPP_SOURCE Signal;
    TPP_SOURCE Timeout;
    KTIMER Timer;
    PVOID Target; /* what is waited for, with a reference; NULL: the wait is not set */
};

struct _TP_IO {
    TPP_OBJECT Object;
    TPP_SOURCE Source;
    PVOID Target;
    ULONG Started; /* operations that have not had their callback begin */
    BOOLEAN Busy;
    PVOID Win32Callback; /* of CreateThreadpoolIo, whose callback has other parameters */
};

/* A thread of a pool. Not on its stack: who ends in a callback is still found. */
struct _TPP_WORKER;

struct _TP_CALLBACK_INSTANCE {
    struct _TPP_WORKER *Worker;
    PTPP_OBJECT Object; /* NULL: none, or no longer associated */
    PTPP_OBJECT Held;   /* until it is told Executed: NULL, or the same, also if no longer associated */
    PRTL_CRITICAL_SECTION CriticalSection;
    HANDLE Mutex;
    HANDLE Semaphore;
    ULONG ReleaseCount;
    HANDLE Event;
    PVOID Library;
};

typedef struct _TPP_WORKER {
    LIST_ENTRY Entry; /* under the pool's lock */
    PTP_POOL Pool;
    PKTHREAD Thread;
    BOOLEAN Busy;
    BOOLEAN Persistent; /* has run something that needs its thread to stay */
    TP_CALLBACK_INSTANCE Instance;
} TPP_WORKER, *PTPP_WORKER;

/* Objects of one priority that cannot stand in the queue itself. Under the pool's lock. */
typedef struct _TPP_LANE {
    LIST_ENTRY ListHead;
    TPP_PACKET Packet;
    BOOLEAN Queued; /* Packet is in the queue, or on its way from it */
} TPP_LANE, *PTPP_LANE;

typedef enum _TPP_LANE_NUMBER { TppExpressLane, TppSlowLane, TppMaximumLane } TPP_LANE_NUMBER;

/*
 * The threads of a pool, one word:
 *
 *      63                    32 31            16 15             0
 *     +------------------------+----------------+----------------+
 *     |         Begun          |      Busy      |    Workers     |
 *     +------------------------+----------------+----------------+
 *
 *   Begun   packets taken out of the queue so far; it wraps
 *   Busy    threads that have a packet
 *
 * 1. Once there is a thread, one is idle or on its way, unless the maximum is reached: who takes a packet and leaves
 *    nobody idle makes the next thread, and an idle one ends only if another is left. So packets that the kernel puts
 *    into the queue need nobody to make a thread for them.
 * 2. The KQUEUE lets as many run as there are processors, and one more for each that blocks in a wait. It does not see
 *    threads that block in the host, or compute for long: while as many are busy as may run, a timer ticks, and when
 *    packets are queued and none was taken out since the last tick, one more may run (Limit).
 * 3. An object is made together with the pool's first thread, or not at all; that thread stays. The same timer tries
 *    again where no further thread could be made, or a thread was lost in a callback.
 */
#define TPP_WORKERS(Word) ((ULONG)(Word) & 0xffff)
#define TPP_BUSY(Word) ((ULONG)(Word) >> 16)
#define TPP_BEGUN(Word) ((ULONG)((Word) >> 32))
#define TPP_WORKER_ONE ((ULONG64)1)
#define TPP_BUSY_ONE ((ULONG64)1 << 16)
#define TPP_BEGUN_ONE ((ULONG64)1 << 32)

#define TPP_MOST_THREADS 0x7ff0 /* fits in Running and Holds */
#define TPP_DEFAULT_THREADS 500

struct _TP_POOL {
    KQUEUE Queue DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG64 Threads DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG ProcessId DECLSPEC_ALIGN(KI_CACHE_LINE); /* whose threads are counted; 0: not initialised */
    volatile ULONG Maximum;
    volatile ULONG Minimum;
    volatile ULONG Limit;       /* Queue.MaximumCount */
    volatile ULONG Ticking;     /* the timer is set or its DPC runs */
    volatile ULONG LastBegun;   /* at the last tick */
    volatile LONG References;   /* one of who allocated it, one for each object */
    volatile LONG Lifetime;     /* one for References, one for each thread, one for Ticking */
    KI_LOCK Lock;
    TP_POOL_STACK_INFORMATION Stack;
    LIST_ENTRY WorkerListHead;
    LIST_ENTRY ObjectListHead;
    TPP_LANE Lane[TppMaximumLane];
    KTIMER Timer;
    KDPC Dpc;
};

extern LONGLONG TppPatience;    /* how long a thread stays idle; both relative and in 100 ns, for tests to change */
extern LONGLONG TppTickInterval;

extern TP_POOL TppDefaultPool;
extern TP_POOL TppTimerThreadPool; /* one thread: WT_EXECUTEINTIMERTHREAD */
extern TP_POOL TppWaitThreadPool;  /* likewise WT_EXECUTEINWAITTHREAD */

/* tppool.c */
BOOLEAN TppIsPoolReady(PTP_POOL Pool);          /* for this process */
VOID TppEnterPool(PTP_POOL Pool);               /* first of all: makes it usable in this process */
VOID TppReadyPool(PTP_POOL Pool);               /* the same, and sees to it that there is a thread */
VOID TppAddObject(PTPP_OBJECT Object);          /* with a reference to its pool */
VOID TppRemoveObject(PTPP_OBJECT Object);
VOID TppDropPool(PTP_POOL Pool);
VOID TppReleaseLifetime(PTP_POOL Pool);
ULONG TppQueryThreads(PTP_POOL Pool);

/* tpqueue.c: all inside a dispatcher section */
VOID TppInitializeLanes(PTP_POOL Pool);
VOID TppQueueTask(PTPP_OBJECT Object);          /* Linked is set */
VOID TppQueueTaskLocked(PTPP_OBJECT Object);    /* with the pool's lock */
PTPP_OBJECT TppTakeFromLane(PTP_POOL Pool, PTPP_PACKET Packet); /* NULL: not its turn */
BOOLEAN TppUnqueueTask(PTPP_OBJECT Object);     /* FALSE: it is not in the queue, perhaps not any more or not yet */
BOOLEAN TppHasBacklog(PTP_POOL Pool);
VOID TppRepairLanes(PTP_POOL Pool);

/* tpworker.c */
VOID TppEnsureThread(PTP_POOL Pool);            /* one that is idle, unless the maximum is reached */
NTSTATUS TppStartMinimum(PTP_POOL Pool, ULONG Count);
BOOLEAN TppRunUncounted(PTPP_WORKER Worker);    /* the current thread may take long; TRUE: another one is idle */
VOID TppRepairWorkers(PTP_POOL Pool);           /* in a forked child, with the pool's lock */

/* tptick.c */
VOID TppInitializeTicking(PTP_POOL Pool);
VOID TppTickWhileBusy(PTP_POOL Pool);           /* after Threads has changed */
VOID TppStartTicking(PTP_POOL Pool);
VOID TppStopTicking(PTP_POOL Pool);             /* no new tick; one that has begun may still run */

/* tpobject.c */
NTSTATUS TppAllocate(const TPP_TYPE *Type, PVOID Callback, PVOID Context, PTP_CALLBACK_ENVIRON Environ,
                     PVOID *Object);         /* in a service, as the next one; nobody else finds the object yet */
VOID TppIntroduce(PTPP_OBJECT Object, PTP_CALLBACK_ENVIRON Environ); /* a complete one to its pool and group: a release
                                                of the group's members may close it from now on */
BOOLEAN TppAddPending(PTPP_OBJECT Object);      /* one more callback; FALSE: there are too many */
BOOLEAN TppTake(PTPP_OBJECT Object, PULONG Result);   /* its task was taken out; TRUE: a callback is now running */
BOOLEAN TppArrive(PTPP_SOURCE Source, PULONG Result); /* a source's packet was taken out; likewise */
VOID TppFinish(PTPP_OBJECT Object);             /* it has ended */
BOOLEAN TppTryHold(PTPP_OBJECT Object);         /* FALSE: it is being deleted */
VOID TppDropHold(PTPP_OBJECT Object);
VOID TppClose(PTPP_OBJECT Object);
BOOLEAN TppCancelAndClose(PTPP_OBJECT Object, PULONG Cancelled); /* TRUE: a callback is still running */
BOOLEAN TppRepairObject(PTPP_OBJECT Object);    /* in a forked child, with the pool's lock; FALSE: to be deleted */
VOID TppDelete(PTPP_OBJECT Object);

/* tpidle.c */
BOOLEAN TppIsIdle(ULONG64 State);
ULONG TppCancelPending(PTPP_OBJECT Object);     /* with the object's lock; how many there were */
VOID TppReleaseWaiters(PTPP_OBJECT Object);     /* likewise */
VOID TppWaitForCallbacks(PTPP_OBJECT Object, BOOLEAN Cancel);

FORCEINLINE BOOLEAN TppIsClosed(PTPP_OBJECT Object)
{
    /* relaxed: with the object's lock, under which it is set */
    return (__atomic_load_n(&Object->State, __ATOMIC_RELAXED) & TPP_CLOSED) != 0;
}

/* tpsource.c, all with the object's lock held */
typedef enum _TPP_DISARMED { TppWasNotArmed, TppWasWaiting, TppHadFired } TPP_DISARMED;

VOID TppInitializeSource(PTPP_SOURCE Source, PTPP_OBJECT Object);
NTSTATUS TppArm(PTPP_SOURCE Source, PVOID KernelObject);
TPP_DISARMED TppDisarm(PTPP_SOURCE Source);
BOOLEAN TppHasFired(PTPP_SOURCE Source);
BOOLEAN TppAcceptPacket(PTPP_SOURCE Source);    /* FALSE: it is a stale one */
VOID TppRepairSource(PTPP_SOURCE Source);

/* tpwork.c, tptimer.c */
NTSTATUS TppSubmitOnce(const TPP_TYPE *Type, PVOID Callback, PVOID Context, PTP_CALLBACK_ENVIRON Environ);
BOOLEAN TppHasTimerEnded(PTP_TIMER Timer);      /* it had no period, and has expired */

/* tpwait.c */
NTSTATUS TppReferenceTarget(HANDLE Handle, PVOID *Target);
BOOLEAN TppSetWaitTarget(PTP_WAIT Wait, PVOID Target, PLARGE_INTEGER Timeout); /* takes the reference over; TRUE: an
                                                   earlier wait was cancelled */

/* tpgroup.c */
VOID TppJoinGroup(PTPP_OBJECT Object, PTP_CLEANUP_GROUP Group);
VOID TppLeaveGroup(PTPP_OBJECT Object);

/* tpcallback.c */
VOID TppRunCallback(PTPP_WORKER Worker, PTPP_OBJECT Object, ULONG Result);
VOID TppEndExecution(PTP_CALLBACK_INSTANCE Instance); /* what is left of it, if its thread has ended */

#endif
