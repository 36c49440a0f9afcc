/*
 * irql.h: levels and the ownership of processors, as the rest of the kernel uses them.
 *
 * Thread->Irql and Thread->Prcb are the thread's own: no other thread reads them, but a host interrupt on this thread
 * does, at any instruction. It decides by the Owner word of Thread->Prcb, so
 * 1. Thread->Prcb names the processor before the compare-exchange that acquires it, and as long as the thread owns it;
 * 2. Thread->Irql is at least DISPATCH_LEVEL from before that compare-exchange until after the one that releases, so a
 *    thread that owns a processor takes no APC and is not suspended;
 * 3. a thread at HIGH_LEVEL is not interrupted, so what interrupt service touches is changed at HIGH_LEVEL only;
 * 4. after it lowers its level, the thread checks for what that level deferred.
 */
#ifndef INTERLOCK_IRQL_H
#define INTERLOCK_IRQL_H

#include "prcb.h"

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
    /* acquire: pairs with the release of the last owner, in KiTryReleaseIdleProcessor or processor.c */
    if (__builtin_expect(!__atomic_compare_exchange_n(&Prcb->Owner, &Free, (ULONG_PTR)Thread, FALSE, __ATOMIC_ACQUIRE,
                                                      __ATOMIC_RELAXED), 0)) {
        return FALSE;
    }
    Prcb->CurrentThread = Thread;
    return TRUE;
}

FORCEINLINE BOOLEAN KiTryReleaseIdleProcessor(PKTHREAD Thread)
{
    ULONG_PTR Mine = (ULONG_PTR)Thread;
    /* release: pairs with the acquire of the next owner, in KiTryLastProcessor or KiTryAcquireProcessor */
    return __atomic_compare_exchange_n(&Thread->Prcb->Owner, &Mine, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
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
        if (__builtin_expect(!KiTryReleaseIdleProcessor(Thread), 0)) {
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

#endif
