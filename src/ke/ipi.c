/*
 * ipi.c: a function on every processor at once.
 *
 * The processor that calls is the source, all others are targets. The packet is in the source's PRCB.
 *
 *   source                                      target
 *   takes KiReverseStallIpiLock
 *   writes the packet, SignalDone of each target
 *   interrupts each target, raises to IPI_LEVEL  takes the packet out of SignalDone, raises to IPI_LEVEL
 *   waits until TargetCount is 0                 TargetCount -= 1
 *   PacketBarrier = 1                            waits for PacketBarrier
 *   runs the function                            runs the function
 *   waits until TargetsActive is 0               TargetsActive -= 1
 *   gives the lock back                          goes on with what it was doing
 *
 * 1. SignalDone is taken by exchange, and only by the owner of the processor: each processor runs the function once.
 * 2. Between writing SignalDone and TargetsActive reaching 0 the source holds the lock, so packets never overlap, and
 *    TargetsActive is the last thing that a target touches.
 * 3. Who waits for the lock does so below IPI_LEVEL and lets interrupts in, so it is a target meanwhile.
 * 4. A processor that nobody owns and for which the host gives no thread is taken by the source, which is then the
 *    target too, runs the function for it after its own, and gives it back when it comes below DISPATCH_LEVEL.
 * 5. The lock is not held inside a dispatcher section: a fork need not wait for it, the child frees it.
 */
#include "ipi.h"

#include "idle.h"

static KI_LOCK KiReverseStallIpiLock;

static VOID KiAwaitCount(PKTHREAD Thread, volatile ULONG *Count, ULONG Value)
{
    ULONG Spins = 0;
    /* acquire: pairs with the release of whoever counts or opens the barrier */
    while (__atomic_load_n(Count, __ATOMIC_ACQUIRE) != Value) {
        KiSpin(Thread, &Spins);
    }
}

static VOID KiRepeatPackets(PKTHREAD Thread, PKPRCB Source)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        if (__atomic_load_n(&KiProcessorBlock[Number]->SignalDone, __ATOMIC_RELAXED) == Source) {
            KiRequestInterrupt(Thread, KiProcessorBlock[Number]);
        }
    }
}

static VOID KiAwaitArrivals(PKTHREAD Thread, PKPRCB Source)
{
    ULONG Spins = 0;
    /* acquire: pairs with the release in KiServiceIpi */
    while (__atomic_load_n(&Source->TargetCount, __ATOMIC_ACQUIRE) != 0) {
        KiSpin(Thread, &Spins);
        if (Spins % KI_SPINS_BEFORE_REPEAT == 0) {
            KiRepeatPackets(Thread, Source);
        }
    }
}

static ULONG_PTR KiRunBroadcast(PKTHREAD Thread, PKPRCB Prcb, PKPRCB Source)
{
    PVOID ExceptionList = Thread->ExceptionList;
    ULONG_PTR Result;
    Thread->ExceptionList = NULL;
    Thread->Prcb = Prcb;
    Prcb->InterruptCount += 1;
    Result = Source->WorkerRoutine(Source->WorkerContext);
    Thread->ExceptionList = ExceptionList;
    return Result;
}

VOID KiServiceIpi(PKTHREAD Thread, PKPRCB Prcb)
{
    KIRQL OldIrql = Thread->Irql;
    PKPRCB Source;
    /* relaxed: only a hint, the exchange below decides */
    if (__atomic_load_n(&Prcb->SignalDone, __ATOMIC_RELAXED) == NULL) {
        return;
    }
    KiSetIrql(Thread, IPI_LEVEL);
    /* acquire: pairs with the release in KiSendPacket */
    Source = __atomic_exchange_n(&Prcb->SignalDone, NULL, __ATOMIC_ACQUIRE);
    if (Source != NULL) {
        __atomic_fetch_sub(&Source->TargetCount, 1, __ATOMIC_RELEASE);
        KiAwaitCount(Thread, &Source->PacketBarrier, 1);
        KiRunBroadcast(Thread, Prcb, Source);
        __atomic_fetch_sub(&Source->TargetsActive, 1, __ATOMIC_RELEASE);
    }
    KiSetIrql(Thread, OldIrql);
}

static VOID KiAcquireIpiLock(PKTHREAD Thread)
{
    ULONG Spins = 0;
    while (!KiTryAcquireLock(&KiReverseStallIpiLock)) {
        KiSpin(Thread, &Spins);
    }
}

/* Not taken: somebody else has become the owner meanwhile, and finds the packet. */
static VOID KiTakeOrphanedTarget(PKTHREAD Thread, PKPRCB Source, PKPRCB Target)
{
    if (KiTakeBesideOwn(Thread, Target)) {
        __atomic_store_n(&Target->SignalDone, NULL, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&Source->TargetCount, 1, __ATOMIC_RELAXED);
    }
}

static VOID KiSendPacket(PKTHREAD Thread, PKPRCB Source, PKPRCB Target)
{
    /* release: pairs with the acquire in KiServiceIpi */
    __atomic_store_n(&Target->SignalDone, Source, __ATOMIC_RELEASE);
    if (!KiRequestInterrupt(Thread, Target)) {
        KiTakeOrphanedTarget(Thread, Source, Target);
    }
}

static VOID KiSendPackets(PKTHREAD Thread, PKPRCB Source)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        if (Number != Source->Number) {
            KiSendPacket(Thread, Source, KiProcessorBlock[Number]);
        }
    }
}

static BOOLEAN KiIsOrphanedTarget(PKTHREAD Thread, PKPRCB Source, ULONG Number)
{
    return Number != Source->Number && KiOwnerThread(KiReadOwner(KiProcessorBlock[Number])) == Thread;
}

static VOID KiRunOrphanedTargets(PKTHREAD Thread, PKPRCB Source)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        if (KiIsOrphanedTarget(Thread, Source, Number)) {
            KiRunBroadcast(Thread, KiProcessorBlock[Number], Source);
            __atomic_fetch_sub(&Source->TargetsActive, 1, __ATOMIC_RELAXED);
        }
    }
    Thread->Prcb = Source;
}

static ULONG_PTR KiBroadcast(PKTHREAD Thread, PKPRCB Source, PKIPI_BROADCAST_WORKER Function, ULONG_PTR Context)
{
    ULONG_PTR Result;
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
    Result = KiRunBroadcast(Thread, Source, Source);
    KiRunOrphanedTargets(Thread, Source);
    KiAwaitCount(Thread, &Source->TargetsActive, 0);
    return Result;
}

ULONG_PTR KeIpiGenericCall(PKIPI_BROADCAST_WORKER BroadcastFunction, ULONG_PTR Context)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = Thread->Irql;
    ULONG_PTR Result;
    if (OldIrql >= IPI_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, IPI_LEVEL - 1, OldIrql, 0, (ULONG_PTR)KeIpiGenericCall);
    }
    KiStartIdleThreads(Thread);
    KiRaiseIrql(Thread, OldIrql < SYNCH_LEVEL ? SYNCH_LEVEL : OldIrql);
    KiAcquireIpiLock(Thread);
    Result = KiBroadcast(Thread, Thread->Prcb, BroadcastFunction, Context);
    KiReleaseLock(&KiReverseStallIpiLock);
    KiLowerIrql(Thread, OldIrql);
    return Result;
}

VOID KiResetIpi(VOID)
{
    KiReverseStallIpiLock = 0;
}
