/*
 * ipi.c: a function on every processor at once.
 *
 * The calling processor is the source, all others are targets. The packet is in the source's PRCB.
 *
 *   source                                      target
 *   takes KiReverseStallIpiLock
 *   writes the packet, SignalDone of each target
 *   interrupts each target, raises to IPI_LEVEL  takes the packet out of SignalDone, raises to IPI_LEVEL
 *   waits until TargetCount is 0                 TargetCount -= 1
 *   PacketBarrier = 1                            waits for PacketBarrier
 *   runs the function                            runs the function
 *   waits until TargetsActive is 0               TargetsActive -= 1
 *   releases the lock                            continues
 *
 * 1. SignalDone is taken by exchange, and only by the owner of the processor: each processor runs the function once.
 * 2. From writing SignalDone until TargetsActive reaches 0 the source holds the lock, so packets never overlap, and
 *    TargetsActive is the last thing that a target touches.
 * 3. A thread that waits for the lock does so below IPI_LEVEL and polls for interrupts, so it is a target meanwhile.
 * 4. The source takes a processor without an owner for which the host refuses a thread. The source is then the target
 *    too: it runs the function for that processor after its own, and releases the processor when it lowers its level
 *    below DISPATCH_LEVEL.
 * 5. The lock is not held in a dispatcher section: a fork need not wait for it, the child frees it.
 */
#include "dpc.h"
#include "park.h"

static KI_LOCK KiReverseStallIpiLock;

static VOID KiAwaitCount(PKTHREAD Thread, volatile ULONG *Count, ULONG Value)
{
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    /* acquire: pairs with the release of the thread that counts or opens the barrier */
    while (__atomic_load_n(Count, __ATOMIC_ACQUIRE) != Value) {
        KiStayAwake(&Patience, Thread, KiParkForSpinLock);
    }
}

static ULONG_PTR KiRunBroadcast(PKTHREAD Thread, PKPRCB Prcb, PKPRCB Source)
{
    PVOID ExceptionList = Thread->ExceptionList;
    Thread->ExceptionList = NULL;
    Thread->Prcb = Prcb;
    Prcb->InterruptCount += 1;
    ULONG_PTR Result = Source->WorkerRoutine(Source->WorkerContext);
    Thread->ExceptionList = ExceptionList;
    return Result;
}

VOID KiServiceIpi(PKTHREAD Thread, PKPRCB Prcb)
{
    KIRQL OldIrql = Thread->Irql;
    /* relaxed: a hint, the exchange below decides */
    if (__atomic_load_n(&Prcb->SignalDone, __ATOMIC_RELAXED) == NULL) {
        return;
    }
    KiSetIrql(Thread, IPI_LEVEL);
    /* acquire: pairs with the release in KiSendPackets */
    PKPRCB Source = __atomic_exchange_n(&Prcb->SignalDone, NULL, __ATOMIC_ACQUIRE);
    if (Source != NULL) {
        __atomic_fetch_sub(&Source->TargetCount, 1, __ATOMIC_RELEASE);
        KiAwaitCount(Thread, &Source->PacketBarrier, 1);
        KiRunBroadcast(Thread, Prcb, Source);
        __atomic_fetch_sub(&Source->TargetsActive, 1, __ATOMIC_RELEASE);
    }
    KiSetIrql(Thread, OldIrql);
}

static VOID KiSendPackets(PKTHREAD Thread, PKPRCB Source)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Target = KiProcessorBlock[Number];
        if (Target == Source) {
            continue;
        }
        /* release: pairs with the acquire in KiServiceIpi */
        __atomic_store_n(&Target->SignalDone, Source, __ATOMIC_RELEASE);
        /* Requirement 4. If another thread has become the owner meanwhile, it finds the packet. */
        if (!KiRequestInterrupt(Thread, Target) && KiTakeBesideOwn(Thread, Target)) {
            __atomic_store_n(&Target->SignalDone, NULL, __ATOMIC_RELAXED);
            __atomic_fetch_sub(&Source->TargetCount, 1, __ATOMIC_RELAXED);
        }
    }
}

/* Repeats the interrupt now and then for targets that have not taken their packet. */
static VOID KiAwaitArrivals(PKTHREAD Thread, PKPRCB Source)
{
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    /* acquire: pairs with the release in KiServiceIpi */
    for (ULONG Looks = 1; __atomic_load_n(&Source->TargetCount, __ATOMIC_ACQUIRE) != 0; Looks += 1) {
        KiStayAwake(&Patience, Thread, KiParkForSpinLock);
        for (ULONG Number = 0; Number < KeNumberProcessors && Looks % KI_LOOKS_BEFORE_REPEAT == 0; Number++) {
            if (__atomic_load_n(&KiProcessorBlock[Number]->SignalDone, __ATOMIC_RELAXED) == Source) {
                KiRequestInterrupt(Thread, KiProcessorBlock[Number]);
            }
        }
    }
}

static ULONG_PTR KiBroadcast(PKTHREAD Thread, PKPRCB Source, PKIPI_BROADCAST_WORKER Function, ULONG_PTR Context)
{
    Source->WorkerRoutine = Function;
    Source->WorkerContext = Context;
    __atomic_store_n(&Source->TargetCount, KeNumberProcessors - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&Source->TargetsActive, KeNumberProcessors - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&Source->PacketBarrier, 0, __ATOMIC_RELAXED);
    KiSendPackets(Thread, Source);
    KiSetIrql(Thread, IPI_LEVEL);
    KiAwaitArrivals(Thread, Source);
    /* release: what every processor did before it arrived happens before the function runs anywhere */
    __atomic_store_n(&Source->PacketBarrier, 1, __ATOMIC_RELEASE);
    ULONG_PTR Result = KiRunBroadcast(Thread, Source, Source);
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) { /* requirement 4 */
        PKPRCB Target = KiProcessorBlock[Number];
        if (Target != Source && KiOwnerThread(KiReadOwner(Target)) == Thread) {
            KiRunBroadcast(Thread, Target, Source);
            __atomic_fetch_sub(&Source->TargetsActive, 1, __ATOMIC_RELAXED);
        }
    }
    Thread->Prcb = Source;
    KiAwaitCount(Thread, &Source->TargetsActive, 0);
    return Result;
}

ULONG_PTR KeIpiGenericCall(PKIPI_BROADCAST_WORKER BroadcastFunction, ULONG_PTR Context)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = Thread->Irql;
    if (OldIrql >= IPI_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, IPI_LEVEL - 1, OldIrql, 0, (ULONG_PTR)KeIpiGenericCall);
    }
    KiStartIdleThreads(Thread);
    KiRaiseIrql(Thread, OldIrql < SYNCH_LEVEL ? SYNCH_LEVEL : OldIrql);
    KiAcquireLock(&KiReverseStallIpiLock);
    ULONG_PTR Result = KiBroadcast(Thread, Thread->Prcb, BroadcastFunction, Context);
    KiReleaseLock(&KiReverseStallIpiLock);
    KiLowerIrql(Thread, OldIrql);
    return Result;
}

VOID KiResetIpi(VOID)
{
    KiReverseStallIpiLock = 0;
}
