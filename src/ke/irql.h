/*
 * irql.h: processors: their state (KPRCB) and owner, levels, and the work that a processor's owner runs for others: DPCs,
 * interprocessor requests, device interrupts.
 */
#ifndef INTERLOCK_IRQL_H
#define INTERLOCK_IRQL_H

#include "ki.h"
#include "ownthread.h"

/*
 * The processor. Processors are virtual: a thread at DISPATCH_LEVEL or above owns one exclusively. Ownership is
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

    /* Requests from other processors (processor.c, interrupt.c). */
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

    /* This processor's places in the queues of the numbered spinlocks (spinlock.c). */
    KSPIN_LOCK_QUEUE LockQueue[LockQueueMaximumLock] DECLSPEC_ALIGN(KI_CACHE_LINE);

    /* With the verifier on: held spinlocks whose words do not name their owner (verifier.c). */
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

/*
 * Levels and the ownership of processors, as the rest of the kernel uses them.
 *
 * Thread->Irql and Thread->Prcb are the thread's own: no other thread reads them, but a host interrupt on this thread
 * does, at any instruction. It decides by the Owner word of Thread->Prcb, so
 * 1. Thread->Prcb names the processor before the compare-exchange that acquires it, and as long as the thread owns it;
 * 2. Thread->Irql is at least DISPATCH_LEVEL from before that compare-exchange until after the one that releases, so a
 *    thread that owns a processor takes no APC and is not suspended;
 * 3. a thread at HIGH_LEVEL is not interrupted, so what interrupt service touches is changed at HIGH_LEVEL only;
 * 4. after it lowers its level, the thread checks for what that level deferred.
 */

VOID KiAcquireProcessorSlow(PKTHREAD Thread);
VOID KiLowerIrqlSlow(PKTHREAD Thread, KIRQL NewIrql);
BOOLEAN KiTryAcquireProcessor(PKTHREAD Thread, PKPRCB Prcb); /* at or above DISPATCH_LEVEL; FALSE: it has an owner */
BOOLEAN KiTryRaiseOnProcessor(PKTHREAD Thread, PKPRCB Prcb); /* to DISPATCH_LEVEL, on this one */
VOID KiServiceInterrupts(PKTHREAD Thread, PKPRCB Prcb);
DECLSPEC_NORETURN VOID KiRaiseIrqlFailure(KIRQL OldIrql, KIRQL NewIrql);
DECLSPEC_NORETURN VOID KiLowerIrqlFailure(KIRQL OldIrql, KIRQL NewIrql);

FORCEINLINE PKTHREAD KiOwnerThread(ULONG_PTR Word)
{
    return (PKTHREAD)(Word & ~KI_PRCB_FLAGS);
}

FORCEINLINE ULONG_PTR KiReadOwner(PKPRCB Prcb)
{
    return __atomic_load_n(&Prcb->Owner, __ATOMIC_RELAXED);
}

FORCEINLINE VOID KiSetIrql(PKTHREAD Thread, KIRQL NewIrql)
{
    /* Against a host interrupt on this thread: accesses at a level stay between its raise and its lower. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Thread->Irql = NewIrql;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Services the interrupts that are pending on the thread's processor and permitted at its level. */
FORCEINLINE VOID KiPollInterrupts(PKTHREAD Thread)
{
    PKPRCB Prcb = Thread->Prcb;
    if (Prcb != NULL && Thread->Irql < IPI_LEVEL) {
        ULONG_PTR Word = KiReadOwner(Prcb);
        if (__builtin_expect((Word & KI_PRCB_INTERRUPT) != 0, 0) && KiOwnerThread(Word) == Thread) {
            KiServiceInterrupts(Thread, Prcb);
        }
    }
}

/* relaxed, here and for LastPrcb: another thread may change the affinity, and it need not take effect at once */
FORCEINLINE BOOLEAN KiMayRunOn(PKTHREAD Thread, ULONG Number)
{
    return __atomic_load_n(&Thread->Affinity.Group, __ATOMIC_RELAXED) == Number / MAXIMUM_PROC_PER_GROUP &&
           (__atomic_load_n(&Thread->Affinity.Mask, __ATOMIC_RELAXED) >> Number % MAXIMUM_PROC_PER_GROUP & 1) != 0;
}

/* The processor on which the host runs the thread, or the next one after it that the thread may run on. */
ULONG KiPreferredProcessor(PKTHREAD Thread);

/*
 * The first guess is the processor that the thread owned last. The host may have migrated the thread since, but asking it
 * each time would cost more than one transfer of a cache line. Threads that collide on a processor separate again: the
 * one that finds it busy asks the host and takes another.
 */
FORCEINLINE BOOLEAN KiTryLastProcessor(PKTHREAD Thread)
{
    PKPRCB Prcb = __atomic_load_n(&Thread->LastPrcb, __ATOMIC_RELAXED);
    ULONG_PTR Free = 0;
    if (__builtin_expect(Prcb == NULL, 0)) {
        return FALSE;
    }
    Thread->Prcb = Prcb;
    /* acquire: pairs with the release of the last owner, in KiLowerIrql or processor.c */
    if (__builtin_expect(!__atomic_compare_exchange_n(&Prcb->Owner, &Free, (ULONG_PTR)Thread, FALSE, __ATOMIC_ACQUIRE,
                                                      __ATOMIC_RELAXED), 0)) {
        return FALSE;
    }
    Prcb->CurrentThread = Thread;
    return TRUE;
}

/* To a level below DISPATCH_LEVEL, by a thread that owns no processor. */
FORCEINLINE VOID KiLowerSoftwareIrql(PKTHREAD Thread, KIRQL NewIrql)
{
    KiSetIrql(Thread, NewIrql);
    if (NewIrql < APC_LEVEL && __builtin_expect(KiIsDeliveryPending(Thread), 0)) {
        KiDeliverApc(Thread);
    }
}

/* As KfRaiseIrql and KfLowerIrql, for callers that already have the current thread. */
FORCEINLINE KIRQL KiRaiseIrql(PKTHREAD Thread, KIRQL NewIrql)
{
    KIRQL OldIrql = Thread->Irql;
    if (__builtin_expect(NewIrql < OldIrql || NewIrql > HIGH_LEVEL, 0)) {
        KiRaiseIrqlFailure(OldIrql, NewIrql);
    }
    KiSetIrql(Thread, NewIrql);
    if (OldIrql < DISPATCH_LEVEL && NewIrql >= DISPATCH_LEVEL && !KiTryLastProcessor(Thread)) {
        KiAcquireProcessorSlow(Thread);
    }
    return OldIrql;
}

FORCEINLINE VOID KiLowerIrql(PKTHREAD Thread, KIRQL NewIrql)
{
    KIRQL OldIrql = Thread->Irql;
    if (__builtin_expect(NewIrql > OldIrql, 0)) {
        KiLowerIrqlFailure(OldIrql, NewIrql);
    }
    if (NewIrql >= DISPATCH_LEVEL) {
        KiSetIrql(Thread, NewIrql);
        KiPollInterrupts(Thread);
        return;
    }
    if (OldIrql >= DISPATCH_LEVEL) {
        ULONG_PTR Mine = (ULONG_PTR)Thread; /* nothing is pending for the processor */
        /* release: pairs with the acquire of the next owner, in KiTryLastProcessor or KiTryAcquireProcessor */
        if (__builtin_expect(!__atomic_compare_exchange_n(&Thread->Prcb->Owner, &Mine, 0, FALSE, __ATOMIC_RELEASE,
                                                          __ATOMIC_RELAXED), 0)) {
            KiLowerIrqlSlow(Thread, NewIrql);
            return;
        }
        Thread->Prcb = NULL;
    }
    KiLowerSoftwareIrql(Thread, NewIrql);
}

/* Number of the processor that the thread owns, or below DISPATCH_LEVEL of the one that it would try first. */
FORCEINLINE ULONG KiCurrentProcessorNumber(PKTHREAD Thread)
{
    PKPRCB Prcb = Thread->Irql >= DISPATCH_LEVEL ? Thread->Prcb : __atomic_load_n(&Thread->LastPrcb, __ATOMIC_RELAXED);
    return Prcb != NULL ? Prcb->Number : KiPreferredProcessor(Thread);
}

FORCEINLINE PKPRCB KiCurrentPrcb(PKTHREAD Thread)
{
    return KiProcessorBlock[KiCurrentProcessorNumber(Thread)];
}

/* What runs on a processor besides its owner's own code: DPCs, interprocessor interrupts, the processor's threads. */

/* Above every processor number: KDPC.Number of a DPC with a target is the target plus this. */
#define KI_DPC_TARGETED INTERLOCK_MAXIMUM_PROCESSORS

VOID KiInitializeDpcs(PKPRCB Prcb);
VOID KiInitializeCallDpc(VOID);                  /* also in a forked child */
VOID KiResetDpcs(PKPRCB Prcb, PKTHREAD Survivor); /* in a forked child, after the owner is known */

/*
 * KeInsertQueueDpc for a caller that holds something that the DPC's routine may free. Release drops it when the DPC is
 * queued, before the DPC can run; also if the DPC was already queued.
 */
typedef VOID KI_DPC_RELEASE(PVOID Context);
VOID KiInsertQueueDpcAndRelease(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2, KI_DPC_RELEASE *Release,
                                PVOID Context);

/* At DISPATCH_LEVEL on the owner of Prcb: runs everything in its queue. */
VOID KiRetireDpcList(PKTHREAD Thread, PKPRCB Prcb);

/* The processor's threads. */

/* After work was left on a processor without an owner: its idle thread becomes the owner, or the caller does. */
VOID KiProvideOwner(PKTHREAD Thread, PKPRCB Prcb);
BOOLEAN KiWakeIdleThread(PKPRCB Prcb);     /* FALSE: there is none, and none can be created now */
VOID KiStartIdleThreads(PKTHREAD Thread);  /* all of them, unless the host refuses */

/*
 * At or above DISPATCH_LEVEL: takes a processor without an owner and without an idle thread, in addition to the
 * thread's own, until the thread lowers its level below DISPATCH_LEVEL. TRUE: the thread owns it now. FALSE: another
 * thread does.
 */
BOOLEAN KiTakeBesideOwn(PKTHREAD Thread, PKPRCB Prcb);
VOID KiReturnTakenProcessors(PKTHREAD Thread); /* at APC_LEVEL, after the thread has released its own */

/* Interprocessor interrupts (processor.c). */

VOID KiServiceIpi(PKTHREAD Thread, PKPRCB Prcb); /* on the owner of Prcb, below IPI_LEVEL: runs the pending packet */

/*
 * The owner of Prcb checks for interrupts, now or when its level permits. FALSE: no thread does, because there is no
 * owner and no idle thread, or because the caller owns Prcb in addition to its own processor.
 */
BOOLEAN KiRequestInterrupt(PKTHREAD Thread, PKPRCB Prcb);

/*
 * A thread that waits for a request to be served repeats it now and then: the host loses an interrupt if its queue of
 * signals is full, or in a thread that a sanitizer is setting up.
 */
#define KI_LOOKS_BEFORE_REPEAT 512 /* by KiParkForSpinLock: about 100 ms */
#define KI_TIME_BEFORE_REPEAT 1000000 /* 100 ms */

/*
 * Simulated device interrupts.
 *
 * Each vector has a chain of interrupt objects. Firing one leaves a request on a processor; the processor's owner runs
 * the chain as soon as its level is below the vector's. There are two kinds of requests:
 *
 * 1. A thread that fires from below the vector's level waits until the chain has run. The request is on its stack, in
 *    the processor's InterruptQueue; each request runs the chain once.
 * 2. At the vector's level or above a thread cannot wait. The request is a bit in the processor's InterruptRequest,
 *    and, as in a real interrupt controller, an interrupt is pending at most once.
 */

typedef struct _KINTERRUPT {
    UCHAR Type;
    KIRQL Irql;
    KIRQL SynchronizeIrql;
    BOOLEAN ShareVector;
    KINTERRUPT_MODE Mode;
    ULONG Vector;
    volatile ULONG ServiceCount;
    LIST_ENTRY InterruptListEntry;
    PKSERVICE_ROUTINE ServiceRoutine;
    PVOID ServiceContext;
    PKSPIN_LOCK ActualLock;       /* the caller's, or the one below */
    KSPIN_LOCK SpinLock;
    KAFFINITY ProcessorEnableMask; /* in group 0 */
} KINTERRUPT;

/* The interrupt is filled in. STATUS_INVALID_PARAMETER: the vector is not shared with it. */
NTSTATUS KiConnectInterrupt(PKINTERRUPT Interrupt);
VOID KiDisconnectInterrupt(PKINTERRUPT Interrupt); /* afterwards its service routine does not run */

/* On the owner of Prcb: runs what is above the thread's level. TRUE: lower requests remain. */
BOOLEAN KiServiceDevices(PKTHREAD Thread, PKPRCB Prcb);

VOID KiInitializeInterrupts(VOID);
VOID KiResetInterrupts(PKTHREAD Survivor);

#endif
