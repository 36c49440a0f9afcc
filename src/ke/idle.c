/*
 * idle.c: the threads that belong to a processor. The idle thread becomes the owner when there is work on a processor
 * that nobody owns; the DPC thread runs threaded DPCs. Both are made when they are first needed, but not in the middle
 * of a host interrupt, where no thread can be made, nor at IPI_LEVEL, where nobody can wait for another one to make it.
 *
 * Where there is no idle thread and none can be made now, the processor is marked Unattended. The thread that marked it
 * sees to it when it comes below DISPATCH_LEVEL: it tries to make the idle thread again, and where the host still
 * refuses it takes the processor itself for as long as the work takes. In the same way it then gives back processors
 * that it took beside its own (ipi.c). KiUnattendedProcessors counts both kinds.
 */
#include "idle.h"

#include "dpc.h"

static const HAL_DEADLINE KiNoDeadline = {HalNoDeadline, 0};
static volatile ULONG KiUnattendedProcessors;

static DECLSPEC_NORETURN VOID KiRunHelper(PKPRCB Prcb, PKI_HELPER Helper, BOOLEAN (*Work)(PKTHREAD, PKPRCB))
{
    PKTHREAD Thread = KiCurrentThread();
    Thread->IsIdleThread = TRUE;
    Thread->Affinity.Group = Prcb->Group;
    Thread->Affinity.Mask = (KAFFINITY)1 << Prcb->GroupIndex;
    Thread->UserAffinity = Thread->Affinity;
    Thread->LastPrcb = NULL;
    __atomic_store_n(&Helper->Thread, Thread, __ATOMIC_RELEASE);
    for (;;) {
        /* acquire: pairs with the release in KiWakeHelper; the work that was left before the wake is visible */
        ULONG Wakes = __atomic_load_n(&Helper->Wakes, __ATOMIC_ACQUIRE);
        if (!Work(Thread, Prcb)) {
            HalDispatch.Wait(&Helper->Wakes, Wakes, &KiNoDeadline);
        }
    }
}

static BOOLEAN KiIsUnattended(PKPRCB Prcb)
{
    ULONG_PTR Word = KiReadOwner(Prcb);
    return KiOwnerThread(Word) == NULL && (Word & (KI_PRCB_DPC | KI_PRCB_INTERRUPT)) != 0;
}

/* Giving the processor back is what does the work. */
static BOOLEAN KiActAsOwner(PKTHREAD Thread, PKPRCB Prcb)
{
    KIRQL OldIrql = Thread->Irql;
    if (!KiIsUnattended(Prcb) || !KiTryRaiseOnProcessor(Thread, Prcb)) {
        return FALSE;
    }
    KiLowerIrql(Thread, OldIrql);
    return TRUE;
}

static VOID KiIdleThread(PVOID Context)
{
    PKPRCB Prcb = Context;
    KiRunHelper(Prcb, &Prcb->Idle, KiActAsOwner);
}

static VOID KiDpcThread(PVOID Context)
{
    PKPRCB Prcb = Context;
    KiRunHelper(Prcb, &Prcb->Dpc, KiRunThreadedDpc);
}

static VOID KiWakeHelper(PKI_HELPER Helper)
{
    __atomic_fetch_add(&Helper->Wakes, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&Helper->Wakes, 1);
}

static BOOLEAN KiStartIdleThread(PKPRCB Prcb)
{
    return NT_SUCCESS(KiEnsureOwnThread(&Prcb->Idle.Own, KiIdleThread, Prcb, "interlock-idle"));
}

BOOLEAN KiWakeIdleThread(PKPRCB Prcb)
{
    if (!KiStartIdleThread(Prcb)) {
        return FALSE;
    }
    KiWakeHelper(&Prcb->Idle);
    return TRUE;
}

BOOLEAN KiStartDpcThread(PKPRCB Prcb)
{
    return NT_SUCCESS(KiEnsureOwnThread(&Prcb->Dpc.Own, KiDpcThread, Prcb, "interlock-dpc"));
}

VOID KiWakeDpcThread(PKPRCB Prcb)
{
    KiWakeHelper(&Prcb->Dpc);
}

/* The flag on the thread's own processor takes it through the slow way down, and so to KiAttendProcessors. */
static VOID KiAttendWhenLower(PKPRCB Own)
{
    __atomic_fetch_add(&KiUnattendedProcessors, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(&Own->Owner, KI_PRCB_DPC, __ATOMIC_RELAXED);
}

BOOLEAN KiTakeBesideOwn(PKTHREAD Thread, PKPRCB Prcb)
{
    PKPRCB Own = Thread->Prcb;
    BOOLEAN Owns = KiOwnerThread(KiReadOwner(Prcb)) == Thread;
    if (!Owns && KiTryAcquireProcessor(Thread, Prcb)) {
        KiAttendWhenLower(Own);
        Owns = TRUE;
    }
    Thread->Prcb = Own;
    return Owns;
}

VOID KiProvideOwner(PKTHREAD Thread, PKPRCB Prcb)
{
    if (KiWakeIdleThread(Prcb)) {
        return;
    }
    if (Thread->Irql < DISPATCH_LEVEL) {
        KiActAsOwner(Thread, Prcb);
    } else {
        if (!__atomic_exchange_n(&Prcb->Unattended, TRUE, __ATOMIC_RELAXED)) {
            KiAttendWhenLower(Thread->Prcb);
        }
    }
}

VOID KiStartIdleThreads(PKTHREAD Thread)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = KiProcessorBlock[Number];
        if (!KiStartIdleThread(Prcb) && KiIsUnattended(Prcb)) {
            KiProvideOwner(Thread, Prcb);
        }
    }
}

static VOID KiAttendProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    if (KiOwnerThread(KiReadOwner(Prcb)) == Thread) {
        __atomic_fetch_sub(&KiUnattendedProcessors, 1, __ATOMIC_RELAXED);
        Thread->Prcb = Prcb;
        KiSetIrql(Thread, DISPATCH_LEVEL);
        KiLowerIrql(Thread, APC_LEVEL);
    } else if (__atomic_exchange_n(&Prcb->Unattended, FALSE, __ATOMIC_RELAXED)) {
        __atomic_fetch_sub(&KiUnattendedProcessors, 1, __ATOMIC_RELAXED);
        if (!KiWakeIdleThread(Prcb)) {
            KiActAsOwner(Thread, Prcb);
        }
    }
}

VOID KiAttendProcessors(PKTHREAD Thread)
{
    if (__atomic_load_n(&KiUnattendedProcessors, __ATOMIC_RELAXED) == 0) {
        return;
    }
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        KiAttendProcessor(Thread, KiProcessorBlock[Number]);
    }
}

VOID KiResetIdleThreads(PKPRCB Prcb)
{
    memset(&Prcb->Idle, 0, sizeof(Prcb->Idle));
    memset(&Prcb->Dpc, 0, sizeof(Prcb->Dpc));
    Prcb->Unattended = FALSE;
    KiUnattendedProcessors = 0;
}
