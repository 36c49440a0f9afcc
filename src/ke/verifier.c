/*
 * verifier.c: turns the verifier on and off while the process runs.
 *
 * The verifier's notes have to match the locks that are held: a spinlock that was acquired without a note would be
 * accused when it is released. Notes are about spinlocks, and their owners own a processor at DISPATCH_LEVEL. So the
 * switch is made while every processor is in a DPC: then no thread holds one. Locks that are acquired below
 * DISPATCH_LEVEL name their owner in every mode.
 */
#include "bugreport.h"
#include "irql.h"

#include <interlock/verifier.h>

static VOID KiSwitchVerifier(PKDPC Dpc, PVOID Context, PVOID SystemArgument1, PVOID SystemArgument2)
{
    PKPRCB Prcb = KiCurrentThread()->Prcb;
    BOOLEAN Enable = *(PBOOLEAN)Context;
    UNREFERENCED_PARAMETER(Dpc);
    Prcb->HeldLocks = 0;
    Prcb->HeldLocksUnnoted = 0;
    Prcb->BuildType = (USHORT)((Prcb->BuildType & ~PRCB_BUILD_DEBUG) | (Enable ? PRCB_BUILD_DEBUG : 0));
    if (KeSignalCallDpcSynchronize(SystemArgument2)) {
        /* relaxed: the barrier around it orders it for all threads that own a processor; others see it soon */
        __atomic_store_n(&KiVerifierEnabled, Enable, __ATOMIC_RELAXED);
    }
    KeSignalCallDpcSynchronize(SystemArgument2);
    KeSignalCallDpcDone(SystemArgument1);
}

NTSTATUS VfEnableVerifier(BOOLEAN Enable)
{
    if (KeGetCurrentIrql() != PASSIVE_LEVEL) {
        return STATUS_INVALID_DEVICE_STATE;
    }
#ifdef INTERLOCK_DEBUG
    if (!Enable) {
        return STATUS_NOT_SUPPORTED;
    }
#endif
    Enable = Enable != FALSE;
    if (Enable != KiVerifierEnabled) {
        KeGenericCallDpc(KiSwitchVerifier, &Enable);
    }
    return STATUS_SUCCESS;
}

BOOLEAN VfIsVerifierEnabled(VOID)
{
    return __atomic_load_n(&KiVerifierEnabled, __ATOMIC_RELAXED);
}
