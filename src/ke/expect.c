/*
 * expect.c: a test expects a bugcheck, in its own process.
 *
 * A place that expects a bugcheck is a frame on the stack of its thread, like a __try frame. It saves the state of the
 * thread. A bugcheck of the thread restores that state and jumps to the innermost frame:
 *
 * 1. The numbered queued spinlocks, the cancel spinlock among them, belong to the system: those that the thread's processor
 *    owns are released. Other spinlocks are the test's, which knows what they protect.
 * 2. A DPC routine that the thread was running ends. The other DPCs of its processor run when the level drops.
 * 3. Mutexes that were acquired since are released while their memory is still valid: they may be local variables of
 *    the routine.
 * 4. The regions, then the level, are restored; what they deferred is delivered at the end.
 *
 * It is not caught if the thread holds a lock of the kernel, is in a wait, or in an interrupt: other threads may depend
 * on work that it has begun and would never finish. Then the process ends, as it does without an expectation.
 */
#include "bugreport.h"
#include "callback.h"
#include "irql.h"
#include "spinlock.h"

#include <interlock/verifier.h>
#include <string.h>

VOID (*volatile KiBugCheckObserver)(const KI_BUGCHECK *BugCheck);

static ULONG KiCountMutants(PKTHREAD Thread)
{
    ULONG Count = 0;
    for (PLIST_ENTRY Entry = Thread->MutantListHead.Flink; Entry != &Thread->MutantListHead; Entry = Entry->Flink) {
        Count += 1;
    }
    return Count;
}

/*
 * A test that fails inside leaves by a longjmp of its framework, and its frame stays in the list. A frame that is not
 * above the newest one on the stack is such a frame; it may have been overwritten since.
 */
#define KI_EXPECTATION_MARK ((ULONG_PTR)0x4578706563746564)

static BOOLEAN KiIsIntact(PVF_EXPECTATION Expectation)
{
    return Expectation->Mark == (KI_EXPECTATION_MARK ^ (ULONG_PTR)Expectation);
}

/* The innermost frame above Place. NULL: none. */
static PVF_EXPECTATION KiExpectationAbove(PKTHREAD Thread, PVOID Place)
{
    PVF_EXPECTATION Expectation = Thread->ExpectedBugCheck;
    while (Expectation != NULL && (PVOID)Expectation <= Place) {
        Expectation = KiIsIntact(Expectation) ? Expectation->Next : NULL;
    }
    return Expectation != NULL && KiIsIntact(Expectation) ? Expectation : NULL;
}

/* FALSE: it has ended. */
BOOLEAN VfBeginExpectation(PVF_EXPECTATION Expectation)
{
    PKTHREAD Thread = KiCurrentThread();
    if (!Expectation->Pass) {
        return FALSE;
    }
    if (Thread->Irql >= DISPATCH_LEVEL) {
        KiBugCheckBecause("a bugcheck is expected at or above DISPATCH_LEVEL", IRQL_NOT_LESS_OR_EQUAL,
                          (ULONG_PTR)Expectation, Thread->Irql, 0, (ULONG_PTR)__builtin_return_address(0));
    }
    if (Expectation->BugCheck != NULL) {
        memset(Expectation->BugCheck, 0, sizeof(*Expectation->BugCheck));
    }
    Expectation->Next = KiExpectationAbove(Thread, Expectation);
    Expectation->Mark = KI_EXPECTATION_MARK ^ (ULONG_PTR)Expectation;
    Expectation->Irql = Thread->Irql;
    Expectation->DpcDepth = Thread->DpcDepth;
    Expectation->HostInterrupts = Thread->HostInterrupts;
    Expectation->ServiceDepth = Thread->ServiceDepth;
    Expectation->KernelApcInProgress = Thread->ApcState.KernelApcInProgress;
    Expectation->SystemAffinityActive = Thread->SystemAffinityActive;
    Expectation->KernelApcDisable = Thread->KernelApcDisable;
    Expectation->SpecialApcDisable = Thread->SpecialApcDisable;
    Expectation->DispatcherDepth = Thread->DispatcherDepth;
    Expectation->ExceptionList = Thread->ExceptionList;
    Expectation->Mutants = KiCountMutants(Thread);
    Expectation->Held = KiVerifierEnabled ? KiOrderCountHeld(Thread) : 0;
    Expectation->Active = TRUE;
    Thread->ExpectedBugCheck = Expectation;
    return TRUE;
}

/* If the program left by its own longjmp, the inner frames no longer exist. */
VOID VfEndExpectation(PVF_EXPECTATION Expectation)
{
    if (Expectation->Active) {
        Expectation->Active = FALSE;
        Expectation->Mark = 0;
        KiCurrentThread()->ExpectedBugCheck = Expectation->Next;
    }
}

static PCSTR KiWhyNotCaught(PKTHREAD Thread, const VF_EXPECTATION *Expectation)
{
    if (Thread->DispatcherDepth != Expectation->DispatcherDepth) {
        return "the thread holds a lock of the library";
    }
    if (Thread->HostInterrupts != Expectation->HostInterrupts) {
        return "the thread is in an interrupt";
    }
    if (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_ACTIVE) {
        return "the thread is in a wait";
    }
    return NULL;
}

static ULONG KiReleaseMutantsSince(PKTHREAD Thread, ULONG Before)
{
    ULONG Released = 0;
    for (ULONG Count = KiCountMutants(Thread); Count > Before; Count -= 1) {
        PKMUTANT Mutant = CONTAINING_RECORD(Thread->MutantListHead.Blink, KMUTANT, MutantListEntry);
        while (KeReleaseMutant(Mutant, MUTANT_INCREMENT, FALSE, FALSE) != 0) {
            /* the previous count was below 0: it was acquired more than once */
        }
        Released += 1;
    }
    return Released;
}

/* The routine that the processor was running has ended. */
static VOID KiLeaveDpcRoutine(PKTHREAD Thread, UCHAR DpcDepth)
{
    PKPRCB Prcb = Thread->Prcb;
    if (Thread->DpcDepth == DpcDepth) {
        return;
    }
    Thread->DpcDepth = DpcDepth;
    Prcb->DpcRoutineActive = FALSE;
    Prcb->DpcData[KI_DPC_NORMAL].ActiveDpc = NULL;
    /* relaxed: the queue's lock orders what is in it */
    __atomic_fetch_or(&Prcb->Owner, KI_PRCB_DPC, __ATOMIC_RELAXED);
}

static VOID KiRestoreLevel(PKTHREAD Thread, KIRQL Irql)
{
    if (Thread->Irql >= DISPATCH_LEVEL) {
        Thread->WaitNext = FALSE;
        KiLowerIrqlSlow(Thread, Irql);
    } else {
        KiSetIrql(Thread, APC_LEVEL);
        KiLowerSoftwareIrql(Thread, Irql);
    }
}

static VOID KiRestoreThread(PKTHREAD Thread, const VF_EXPECTATION *Expectation, PVF_BUGCHECK Found)
{
    Found->LocksHeld = 0;
    if (Thread->Irql > DISPATCH_LEVEL) {
        KiSetIrql(Thread, DISPATCH_LEVEL); /* interrupts that are pending are served when the level drops further */
    }
    if (Thread->Irql == DISPATCH_LEVEL && Thread->Prcb != NULL) {
        KiReleaseNumberedLocks(Thread);
        Found->LocksHeld = KiVerifierEnabled ? Thread->Prcb->HeldLocks + Thread->Prcb->HeldLocksUnnoted : 0;
    }
    if (Found->LocksHeld != 0) {
        Thread->Prcb->HeldLocks = 0;
        Thread->Prcb->HeldLocksUnnoted = 0;
    }
    if (KiVerifierEnabled) {
        KiOrderForgetHeld(Thread, Expectation->Held); /* locks that stay held do not precede others in the lock order */
    }
    KiLeaveDpcRoutine(Thread, Expectation->DpcDepth);
    Thread->KernelApcDisable -= 1; /* nothing is delivered in between */
    Found->MutexesReleased = KiReleaseMutantsSince(Thread, Expectation->Mutants);
    Thread->ServiceDepth = Expectation->ServiceDepth;
    Thread->ApcState.KernelApcInProgress = Expectation->KernelApcInProgress;
    Thread->ExceptionList = Expectation->ExceptionList;
    KiDropCallFrames(Thread, NULL, (PVOID)(ULONG_PTR)Expectation);
    if (Thread->SystemAffinityActive && !Expectation->SystemAffinityActive) {
        KeRevertToUserAffinityThread();
    }
    Thread->SpecialApcDisable = Expectation->SpecialApcDisable;
    Thread->KernelApcDisable = Expectation->KernelApcDisable;
    KiRestoreLevel(Thread, Expectation->Irql);
}

VOID KiCatchBugCheck(const KI_BUGCHECK *BugCheck)
{
    PKTHREAD Thread = HalCurrentThread;
    PVF_EXPECTATION Expectation = Thread != NULL ? KiExpectationAbove(Thread, __builtin_frame_address(0)) : NULL;
    VF_BUGCHECK Unwanted, *Found;
    PCSTR Reason;
    if (Expectation == NULL) {
        return;
    }
    Reason = KiWhyNotCaught(Thread, Expectation);
    Thread->ExpectedBugCheck = Expectation->Next;
    Expectation->Active = FALSE;
    Expectation->Mark = 0;
    if (Reason != NULL) {
        HalPrint("interlock: an expected bugcheck is not caught: %s (VfExpectBugCheckInChild catches it)\n", Reason);
        return;
    }
    Found = Expectation->BugCheck != NULL ? Expectation->BugCheck : &Unwanted;
    Found->Outcome = VfStopped;
    Found->Code = BugCheck->Code;
    memcpy(Found->Parameter, BugCheck->Parameter, sizeof(Found->Parameter));
    if (Found != &Unwanted) {
        HalCapturePrint(Found->Report, sizeof(Found->Report));
        KiPrintBugCheck(BugCheck);
        HalCapturePrint(NULL, 0);
    }
    KiRestoreThread(Thread, Expectation, Found);
    longjmp(Expectation->Context, 1);
}

ULONG VfExpectBugCheck(PVF_ROUTINE Routine, PVOID Context, PVF_BUGCHECK BugCheck)
{
    VF_BUGCHECK Own, *volatile Found = BugCheck != NULL ? BugCheck : &Own;
    VF_EXPECT_BUGCHECK(Found) {
        Routine(Context);
    }
    return Found->Code;
}
