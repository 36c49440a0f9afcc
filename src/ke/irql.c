/* irql.c: interrupt request levels, and requesting and servicing interrupts of a processor. */
#include "irql.h"

#include "dpc.h"
#include "interrupt.h"

/*
 * The code names the condition that does not hold: "A call to KeLowerIrql is valid if it specifies NewIrql <= CurrentIrql.
 * A call to KeRaiseIrql is valid if the caller specifies NewIrql >= CurrentIrql." (the page of KeRaiseIrql)
 */
VOID KiRaiseIrqlFailure(KIRQL OldIrql, KIRQL NewIrql)
{
    KeBugCheckEx(IRQL_NOT_GREATER_OR_EQUAL, OldIrql, NewIrql, 0, (ULONG_PTR)__builtin_return_address(0));
}

VOID KiLowerIrqlFailure(KIRQL OldIrql, KIRQL NewIrql)
{
    KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, NewIrql, OldIrql, 0, (ULONG_PTR)__builtin_return_address(0));
}

KIRQL KeGetCurrentIrql(VOID)
{
    return KiCurrentThread()->Irql;
}

KIRQL KfRaiseIrql(KIRQL NewIrql)
{
    return KiRaiseIrql(KiCurrentThread(), NewIrql);
}

VOID KfLowerIrql(KIRQL NewIrql)
{
    KiLowerIrql(KiCurrentThread(), NewIrql);
}

KIRQL KeRaiseIrqlToDpcLevel(VOID)
{
    return KiRaiseIrql(KiCurrentThread(), DISPATCH_LEVEL);
}

KIRQL KeRaiseIrqlToSynchLevel(VOID)
{
    return KiRaiseIrql(KiCurrentThread(), SYNCH_LEVEL);
}

/*
 * Below IPI_LEVEL: services what is pending on the thread's processor above the thread's level; the rest stays pending.
 * The flag is cleared before the requests are read, so a later request sets it again.
 */
VOID KiServiceInterrupts(PKTHREAD Thread, PKPRCB Prcb)
{
    BOOLEAN Left;
    do {
        /* acquire: pairs with the release in KiRequestInterrupt; the requests are visible */
        __atomic_fetch_and(&Prcb->Owner, ~KI_PRCB_INTERRUPT, __ATOMIC_ACQUIRE);
        KiServiceIpi(Thread, Prcb);
        Left = KiServiceDevices(Thread, Prcb);
    } while (!Left && (KiReadOwner(Prcb) & KI_PRCB_INTERRUPT) != 0);
    if (Left) {
        __atomic_fetch_or(&Prcb->Owner, KI_PRCB_INTERRUPT, __ATOMIC_RELAXED);
    }
}

BOOLEAN KiRequestInterrupt(PKTHREAD Thread, PKPRCB Prcb)
{
    /* release: pairs with the acquire in KiServiceInterrupts */
    ULONG_PTR Word = __atomic_fetch_or(&Prcb->Owner, KI_PRCB_INTERRUPT, __ATOMIC_RELEASE);
    PKTHREAD Owner = KiOwnerThread(Word);
    ULONG ThreadId;
    if (Owner == NULL) {
        return KiWakeIdleThread(Prcb);
    }
    if (Owner == Thread) {
        return Prcb == Thread->Prcb;
    }
    /* relaxed: a stale id interrupts a thread that finds nothing to do */
    ThreadId = __atomic_load_n(&Owner->ThreadId, __ATOMIC_RELAXED);
    if (ThreadId != 0) {
        HalInterruptThread(ThreadId);
    }
    return TRUE;
}
