/*
 * verifier.c: turns the verifier on and off while the process runs.
 *
 * A spinlock that was acquired before has no note and no owner in its word, and its release must not be reported. Its
 * owner owns a processor until then. So
 *
 * 1. every processor is allowed KI_HELD_LOCKS releases without a note, before the verifier is on;
 * 2. after all threads have passed a barrier, each acquire has a note. A processor that is free then holds no earlier
 *    lock, and loses the allowance. A busy one keeps it: a wrong release there may go unnoticed;
 * 3. a word that says "held" without an owner counts as an earlier acquire (KiVerifySpinLockOwned).
 *
 * Locks that are acquired below DISPATCH_LEVEL name their owner in every mode.
 */
#include "irql.h"
#include "lockorder.h"

#include <interlock/verifier.h>

static VOID KiSetNotes(PKPRCB Prcb, ULONG Forgiven)
{
    Prcb->HeldLocks = 0;
    Prcb->HeldLocksUnnoted = Forgiven;
}

static VOID KiForgetForgiven(PKTHREAD Thread)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        if (KiTryRaiseOnProcessor(Thread, KiProcessorBlock[Number])) {
            KiSetNotes(KiProcessorBlock[Number], 0);
            KiLowerIrql(Thread, PASSIVE_LEVEL);
        }
    }
}

NTSTATUS VfEnableVerifier(BOOLEAN Enable)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Thread->Irql != PASSIVE_LEVEL) {
        return STATUS_INVALID_DEVICE_STATE;
    }
#ifdef INTERLOCK_DEBUG
    if (!Enable) {
        return STATUS_NOT_SUPPORTED;
    }
#endif
    if ((Enable != FALSE) == KiVerifierEnabled) {
        return STATUS_SUCCESS;
    }
    if (Enable) {
        KiOrderForgetAllHeld();
    }
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = KiProcessorBlock[Number];
        Prcb->BuildType = (USHORT)((Prcb->BuildType & ~PRCB_BUILD_DEBUG) | (Enable ? PRCB_BUILD_DEBUG : 0));
        if (Enable) {
            KiSetNotes(Prcb, KI_HELD_LOCKS);
        }
    }
    /* release: pairs with the barrier, after which all threads read the new value and the notes */
    __atomic_store_n(&KiVerifierEnabled, Enable != FALSE, __ATOMIC_RELEASE);
    HalBarrierAllThreads();
    if (Enable) {
        KiForgetForgiven(Thread);
    }
    return STATUS_SUCCESS;
}

BOOLEAN VfIsVerifierEnabled(VOID)
{
    return __atomic_load_n(&KiVerifierEnabled, __ATOMIC_RELAXED);
}
