/*
 * calldpc.c: a DPC on every processor, all of them at the same time.
 *
 * The routine is given two pointers for KeSignalCallDpcDone and KeSignalCallDpcSynchronize; both lead to the call. One
 * call at a time: each processor has one CallDpc, and two calls whose routines wait for each other on different
 * processors would never end.
 */
#include "dpc.h"
#include "idle.h"

#define KI_SPINS_BEFORE_RETRY 4096

typedef struct _KI_CALL_DPC {
    volatile ULONG Running;  /* routines that have not called KeSignalCallDpcDone */
    volatile ULONG Arrived;  /* at the barrier */
    volatile ULONG Round;    /* of the barrier */
    KEVENT Done;
} KI_CALL_DPC, *PKI_CALL_DPC;

static KEVENT KiCallDpcLock;

VOID KiInitializeCallDpc(VOID)
{
    KeInitializeEvent(&KiCallDpcLock, SynchronizationEvent, TRUE);
}

/* At DISPATCH_LEVEL, so the caller's own runs when it comes down again. */
static VOID KiQueueCallDpcs(PKI_CALL_DPC Call, PKDEFERRED_ROUTINE Routine, PVOID Context)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKDPC Dpc = &KiProcessorBlock[Number]->CallDpc;
        KeInitializeDpc(Dpc, Routine, Context);
        KeSetImportanceDpc(Dpc, HighImportance);
        Dpc->Number = (USHORT)(KI_DPC_TARGETED + Number);
        KeInsertQueueDpc(Dpc, Call, Call);
    }
}

VOID KeGenericCallDpc(PKDEFERRED_ROUTINE Routine, PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_CALL_DPC Call = {.Running = KeNumberProcessors};
    KIRQL OldIrql = Thread->Irql;
    if (OldIrql >= DISPATCH_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, APC_LEVEL, OldIrql, 0, (ULONG_PTR)KeGenericCallDpc);
    }
    KeInitializeEvent(&Call.Done, NotificationEvent, FALSE);
    KeEnterCriticalRegion(); /* the lock must not be lost with the thread */
    KeWaitForSingleObject(&KiCallDpcLock, Executive, KernelMode, FALSE, NULL);
    KiRaiseIrql(Thread, DISPATCH_LEVEL);
    KiQueueCallDpcs(&Call, Routine, Context);
    KiLowerIrql(Thread, OldIrql);
    KeWaitForSingleObject(&Call.Done, Executive, KernelMode, FALSE, NULL);
    KeSetEvent(&KiCallDpcLock, 0, FALSE);
    KeLeaveCriticalRegion();
}

VOID KeSignalCallDpcDone(PVOID SystemArgument1)
{
    PKI_CALL_DPC Call = SystemArgument1;
    /* acq_rel: what every routine did happens before KeGenericCallDpc returns */
    if (__atomic_sub_fetch(&Call->Running, 1, __ATOMIC_ACQ_REL) == 0) {
        KeSetEvent(&Call->Done, 0, FALSE);
    }
}

/* TRUE on the processor that came last. */
LOGICAL KeSignalCallDpcSynchronize(PVOID SystemArgument2)
{
    PKI_CALL_DPC Call = SystemArgument2;
    PKTHREAD Thread = KiCurrentThread();
    ULONG Round = __atomic_load_n(&Call->Round, __ATOMIC_RELAXED);
    ULONG Spins = 0;
    /* acq_rel: what every processor did before the barrier happens before the last one opens it */
    if (__atomic_add_fetch(&Call->Arrived, 1, __ATOMIC_ACQ_REL) == KeNumberProcessors) {
        __atomic_store_n(&Call->Arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Call->Round, Round + 1, __ATOMIC_RELEASE);
        return TRUE;
    }
    /* acquire: pairs with the release above */
    while (__atomic_load_n(&Call->Round, __ATOMIC_ACQUIRE) == Round) {
        KiSpin(Thread, &Spins);
        if (Spins % KI_SPINS_BEFORE_RETRY == 0) {
            KiStartIdleThreads(Thread); /* of processors whose DPC was queued when the host had no room for a thread */
        }
    }
    return FALSE;
}
