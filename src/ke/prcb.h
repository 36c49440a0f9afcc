/*
 * prcb.h: the processor. Processors are virtual: a thread at DISPATCH_LEVEL or above owns one exclusively. Ownership is
 * decided on one word:
 *
 *      63                                          6   5   3   2   1   0
 *     +---------------------------------------------+-------+---+---+---+
 *     |      PKTHREAD of the owner, 0: free         |   0   | W | I | D |
 *     +---------------------------------------------+-------+---+---+---+
 *
 * D: before the owner leaves, it has to check for DPCs to run and for other processors that need attention. I: an
 * interprocessor request or a device interrupt is pending. W: a thread is queued for this processor (processor.c).
 *
 * 1. Only a thread without a processor writes its own address into the word, over a word whose thread is 0, or finds it
 *    written there by an owner that handed its processor off. Only the owner removes its address again.
 * 2. Any thread may set D and I at any time; only the owner clears them, and does the work after clearing. So work that is
 *    added after the clearing sets the flag again and is found before the owner releases the processor.
 * 3. Ownership is released only by a compare-exchange that finds D and I clear. A free processor has D or I set only
 *    until the thread that set it has woken the idle thread, which then becomes the owner.
 * 4. W is changed under KiProcessorWaitLock only, and set on every processor that some queued thread may run on. It may
 *    briefly stay set when no thread is queued any more: the releasing owner detects that.
 * 5. D, I and W all clear: an acquire and a release are one compare-exchange each. They acquire and release, so what one
 *    owner did happens before what the next one does.
 */
#ifndef INTERLOCK_PRCB_H
#define INTERLOCK_PRCB_H

#include "ki.h"
#include "ownthread.h"

#define KI_PRCB_DPC ((ULONG_PTR)1)
#define KI_PRCB_INTERRUPT ((ULONG_PTR)2)
#define KI_PRCB_WAITERS ((ULONG_PTR)4)
#define KI_PRCB_FLAGS ((ULONG_PTR)(KI_CACHE_LINE - 1))

#define KI_MAXIMUM_VECTOR 256

#define KI_DPC_NORMAL 0
#define KI_DPC_THREADED 1

#define KI_HELD_LOCKS 32

typedef struct _KI_HELPER {
    PKTHREAD volatile Thread;          /* once it runs */
    volatile ULONG Wakes;              /* counts them; the thread waits on it */
    KI_OWN_THREAD Own;
} KI_HELPER, *PKI_HELPER;

struct _KPRCB {
    volatile ULONG_PTR Owner DECLSPEC_ALIGN(KI_CACHE_LINE);
    PKTHREAD CurrentThread;            /* the last owner */
    ULONG Number;                      /* in the system */
    USHORT Group;
    UCHAR GroupIndex;                  /* in its group */
    BOOLEAN DpcRoutineActive;
    USHORT MajorVersion;               /* of NT */
    USHORT MinorVersion;
    USHORT BuildType;                  /* PRCB_BUILD_DEBUG, PRCB_BUILD_UNIPROCESSOR */
    ULONG InterruptCount;              /* interrupts and interprocessor requests served */

    /* DPCs. */
    KDPC_DATA DpcData[2] DECLSPEC_ALIGN(KI_CACHE_LINE);
    KDPC CallDpc;                      /* this processor's part in KeGenericCallDpc */

    /* Requests from other processors (ipi.c, interrupt.c). */
    struct _KPRCB *volatile SignalDone DECLSPEC_ALIGN(KI_CACHE_LINE); /* whose packet waits here */
    struct _KI_INTERRUPT_REQUEST *volatile InterruptQueue;            /* device interrupts, newest first */
    struct _KI_INTERRUPT_REQUEST *InterruptList;                      /* taken out of the queue by the owner */
    volatile ULONG64 InterruptRequest[KI_MAXIMUM_VECTOR / 64];        /* a bit per vector whose requester does not wait */

    /* This processor's own request packet: written while it holds KiReverseStallIpiLock. */
    PKIPI_BROADCAST_WORKER WorkerRoutine DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG_PTR WorkerContext;
    volatile ULONG TargetCount;        /* targets that have not arrived yet */
    volatile ULONG PacketBarrier;      /* targets wait here until all have arrived */
    volatile ULONG TargetsActive;      /* targets that have not finished yet */

    /* Threads of the processor's own (dpc.c). */
    KI_HELPER Idle DECLSPEC_ALIGN(KI_CACHE_LINE); /* becomes the owner when there is work and no other owner */
    KI_HELPER Dpc;                                /* runs threaded DPCs */

    PVOID TimerTable DECLSPEC_ALIGN(KI_CACHE_LINE);

    /* This processor's places in the queues of the numbered spinlocks (queuedlock.c). */
    KSPIN_LOCK_QUEUE LockQueue[LockQueueMaximumLock] DECLSPEC_ALIGN(KI_CACHE_LINE);

    /* With the verifier on: held spinlocks whose words do not name their owner (heldlock.c). */
    ULONG_PTR HeldLock[KI_HELD_LOCKS];
    ULONG HeldLocks;
    ULONG HeldLocksUnnoted;            /* that did not fit */
};

extern PKPRCB KiProcessorBlock[INTERLOCK_MAXIMUM_PROCESSORS];

/* A thread that is queued for a processor (processor.c). */
typedef enum _KI_WAITER_STATE {
    KiWaiterQueued,
    KiWaiterWoken,
    KiWaiterOwns
} KI_WAITER_STATE;

typedef struct _KI_PROCESSOR_WAITER {
    LIST_ENTRY Entry;
    PKTHREAD Thread;
    PKPRCB Prcb;           /* handed off to it or just released; NULL: neither */
    ULONG Wakes;
    volatile ULONG State;  /* KI_WAITER_STATE */
} KI_PROCESSOR_WAITER, *PKI_PROCESSOR_WAITER;

#endif
