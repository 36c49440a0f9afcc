/* bugcheck.c: ends the process with a report, or returns to a test that expects a bugcheck. */
#include "bugcheck.h"
#include "debugdata.h"
#include "irql.h"
#include "park.h"
#include "spinlock.h"
#include "verifier.h"

#include "../trace/trace.h"

#include <interlock/verifier.h>
#include <stdio.h>
#include <string.h>

/*
 * The report of a bugcheck: what happened, each parameter in words, the thread, its stack.
 *
 * The texts come from tables (bugtable.c). Addresses are shown with symbols. Nothing here allocates.
 */

#define KI_LONGEST_EXPLANATION 320

/* Values. */

static BOOLEAN KiIsThreadAddress(ULONG_PTR Value)
{
    for (ULONG Chunk = 0; Chunk < KI_THREAD_CHUNKS; Chunk++) {
        ULONG_PTR First = (ULONG_PTR)__atomic_load_n(&KiThreadChunk[Chunk], __ATOMIC_RELAXED);
        if (First != 0 && Value - First < KI_THREAD_CHUNK * sizeof(KI_THREAD_SLOT)) {
            return (Value - First) % sizeof(KI_THREAD_SLOT) == FIELD_OFFSET(KI_THREAD_SLOT, Tcb);
        }
    }
    return FALSE;
}

static VOID KiExplainAddress(PCSTR Meaning, ULONG_PTR Value, PSTR Buffer, SIZE_T Size)
{
    PKTHREAD Thread = (PKTHREAD)Value;
    if (Thread == HalCurrentThread) {
        snprintf(Buffer, Size, "this thread");
    } else if (KiIsThreadAddress(Value)) {
        snprintf(Buffer, Size, "thread, id %u", __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED));
    } else if (KiEndsIn(Meaning, "raised at") || KiEndsIn(Meaning, "caller")) {
        HalQueryReturnAddressName(Value, Buffer, Size);
    } else {
        HalQueryAddressName(Value, Buffer, Size);
    }
}

/* The parts of the report. */

static VOID KiPrintParameter(ULONG Number, ULONG_PTR Value, PCSTR Meaning)
{
    CHAR Explanation[KI_LONGEST_EXPLANATION];
    if (Meaning[0] != '\0') {
        if (KiExplainValue(Meaning, Value, Explanation, sizeof(Explanation))) {
            KiExplainAddress(Meaning, Value, Explanation, sizeof(Explanation));
        }
        HalPrint("    %u: 0x%016lX  %s%s%s\n", Number, Value, Meaning, Explanation[0] != '\0' ? ": " : "", Explanation);
    }
}

static VOID KiPrintThread(VOID)
{
    PKTHREAD Thread = HalCurrentThread;
    if (Thread == NULL) {
        HalPrint("Thread %u, unknown to the kernel\n", HalCurrentThreadId());
    } else if (Thread->Irql >= DISPATCH_LEVEL && Thread->Prcb != NULL) {
        HalPrint("Thread %p, id %u, IRQL %u (%s), processor %u%s\n", (PVOID)Thread, HalCurrentThreadId(), Thread->Irql,
                 KiIrqlName(Thread->Irql), Thread->Prcb->Number, Thread->DpcDepth != 0 ? ", in a DPC" : "");
    } else {
        HalPrint("Thread %p, id %u, IRQL %u (%s), owns no processor\n", (PVOID)Thread, HalCurrentThreadId(), Thread->Irql,
                 KiIrqlName(Thread->Irql));
    }
}

static VOID KiPrintBugCheck(const KI_BUGCHECK *BugCheck)
{
    const ULONG_PTR *Parameter = BugCheck->Parameter;
    const KI_BUGCODE *BugCode = KiFindBugCode(BugCheck->Code);
    const KI_VIOLATION *Violation = KiFindViolation(BugCheck->Code, Parameter[0]);
    PCSTR Sentence = BugCheck->Reason;
    if (Sentence == NULL) {
        Sentence = Violation != NULL ? Violation->Description : KiBugSentence(BugCheck->Code);
    }
    HalPrint("*** STOP: 0x%08X (0x%016lX, 0x%016lX, 0x%016lX, 0x%016lX)\n", BugCheck->Code, Parameter[0], Parameter[1],
             Parameter[2], Parameter[3]);
    HalPrint("%s%s%s\n", BugCode->Name, Sentence != NULL ? ": " : "", Sentence != NULL ? Sentence : "");
    for (ULONG Index = 0; Index < KI_BUGCHECK_PARAMETERS; Index++) {
        KiPrintParameter(Index + 1, Parameter[Index],
                         Violation != NULL && Index > 0 ? Violation->Parameter[Index - 1] : BugCode->Parameter[Index]);
    }
    KiPrintThread();
    HalPrintStackTrace(BugCheck->Caller);
}

/*
 * A test expects a bugcheck, in its own process.
 *
 * A place that expects a bugcheck is a frame on the stack of its thread, like a __try frame. It saves the state of the
 * thread. A bugcheck of the thread restores that state and jumps to the innermost frame:
 *
 * 1. The numbered queued spinlocks, the cancel spinlock among them, belong to the system: those that the thread's processor
 *    owns are released. Other spinlocks belong to the test, which knows what they protect.
 * 2. A DPC routine that the thread was running ends. The other DPCs of its processor run when the level drops.
 * 3. Mutexes that were acquired since are released while their memory is still valid: they may be local variables of
 *    the routine.
 * 4. The regions, then the level, are restored; what they deferred is delivered at the end.
 *
 * It is not caught if the thread holds a lock of the kernel, is in a wait, or in an interrupt: other threads may depend
 * on work that it has begun and would never finish. Then the process ends, as it does without an expectation.
 */

static VOID (*volatile KiBugCheckObserver)(const KI_BUGCHECK *BugCheck); /* or NULL; called instead of the report */

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
    /* relaxed: the queue's lock orders its entries */
    __atomic_fetch_or(&Prcb->Owner, KI_PRCB_DPC, __ATOMIC_RELAXED);
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
    if (Thread->Irql >= DISPATCH_LEVEL) {
        Thread->WaitNext = FALSE;
        KiLowerIrqlSlow(Thread, Expectation->Irql);
    } else {
        KiSetIrql(Thread, APC_LEVEL);
        KiLowerSoftwareIrql(Thread, Expectation->Irql);
    }
}

/* Does not return if the current thread expects a bugcheck and can return to its frame. */
static VOID KiCatchBugCheck(const KI_BUGCHECK *BugCheck)
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

/*
 * A test expects a bugcheck, in a child. The child sends its result through a pipe when the routine
 * returns, or from the bugcheck of any of its threads. The parent reads the result, and then the child's exit status.
 */

#ifdef INTERLOCK_HOST

typedef struct _KI_CHILD {
    PVF_ROUTINE Routine;
    PVOID Context;
    HAL_CHILD Host;
} KI_CHILD, *PKI_CHILD;

static PKI_CHILD KiThisChild; /* in the child */

static VOID KiSendBugCheck(const KI_BUGCHECK *BugCheck)
{
    static VF_BUGCHECK Found; /* one thread reports */
    Found.Outcome = VfStopped;
    Found.Code = BugCheck->Code;
    memcpy(Found.Parameter, BugCheck->Parameter, sizeof(Found.Parameter));
    HalCapturePrint(Found.Report, sizeof(Found.Report));
    KiPrintBugCheck(BugCheck);
    HalCapturePrint(NULL, 0);
    HalFinishChild(&KiThisChild->Host, &Found, sizeof(Found));
}

static VOID KiRunInChild(PVOID Context)
{
    static const VF_BUGCHECK Nothing = {.Outcome = VfReturned};
    KiThisChild = Context;
    HalCurrentThread->ExpectedBugCheck = NULL; /* of the parent */
    KiBugCheckObserver = KiSendBugCheck;
    KiThisChild->Routine(KiThisChild->Context);
    HalFinishChild(&KiThisChild->Host, &Nothing, sizeof(Nothing));
}

ULONG VfExpectBugCheckInChild(PVF_ROUTINE Routine, PVOID Context, PVF_BUGCHECK BugCheck)
{
    KI_CHILD Child = {.Routine = Routine, .Context = Context};
    VF_BUGCHECK Own, *Found = BugCheck != NULL ? BugCheck : &Own;
    KiCurrentThread();
    memset(Found, 0, sizeof(*Found));
    if (!HalRunChild(&Child.Host, KiRunInChild, &Child, Found, sizeof(*Found))) {
        memset(Found, 0, sizeof(*Found));
        Found->Outcome = VfDied;
        Found->Code = Child.Host.ExitStatus;
        return 0;
    }
    return Found->Code;
}

#endif

/* The end of the process. */

static LIST_ENTRY KiBugCheckCallbacks = {&KiBugCheckCallbacks, &KiBugCheckCallbacks};
static KI_LOCK KiBugCheckCallbackLock;
static volatile ULONG KiBugCheckThreadId; /* of the thread that reports; 0: none yet */
static KI_BUGCHECK KiBugCheckData;         /* what it reports, for a debugger that opens the core file */
KD_REGISTER_ROOT(KiBugCheckThreadId);
KD_REGISTER_ROOT(KiBugCheckData);

/* Callbacks. The checksum shows whether a record is still what was registered. */

static ULONG_PTR KiChecksum(const KBUGCHECK_CALLBACK_RECORD *Record)
{
    return (ULONG_PTR)Record->CallbackRoutine + (ULONG_PTR)Record->Buffer + Record->Length +
           (ULONG_PTR)Record->Component;
}

BOOLEAN KeRegisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord,
                                   PKBUGCHECK_CALLBACK_ROUTINE CallbackRoutine, PVOID Buffer, ULONG Length,
                                   PUCHAR Component)
{
    PKTHREAD Thread = KiEnterLocked(&KiBugCheckCallbackLock);
    BOOLEAN Registered = CallbackRecord->State == BufferEmpty;
    if (Registered) {
        CallbackRecord->CallbackRoutine = CallbackRoutine;
        CallbackRecord->Buffer = Buffer;
        CallbackRecord->Length = Length;
        CallbackRecord->Component = Component;
        CallbackRecord->Checksum = KiChecksum(CallbackRecord);
        CallbackRecord->State = BufferInserted;
        InsertTailList(&KiBugCheckCallbacks, &CallbackRecord->Entry);
    }
    KiExitLocked(&KiBugCheckCallbackLock, Thread);
    return Registered;
}

BOOLEAN KeDeregisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord)
{
    PKTHREAD Thread = KiEnterLocked(&KiBugCheckCallbackLock);
    BOOLEAN Registered = CallbackRecord->State == BufferInserted;
    if (Registered) {
        RemoveEntryList(&CallbackRecord->Entry);
        CallbackRecord->State = BufferEmpty;
    }
    KiExitLocked(&KiBugCheckCallbackLock, Thread);
    return Registered;
}

/* Only one thread reports. Other threads that fail meanwhile sleep until the process ends; a failure during the report
   ends the process. */
static DECLSPEC_NORETURN VOID KiStopSystem(const KI_BUGCHECK *BugCheck)
{
    VOID (*Observer)(const KI_BUGCHECK *BugCheck) = KiBugCheckObserver;
    ULONG Own = HalCurrentThreadId();
    ULONG Reporter = 0;
    KiCatchBugCheck(BugCheck);
    if (!__atomic_compare_exchange_n(&KiBugCheckThreadId, &Reporter, Own, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        if (Reporter == Own) {
            HalAbort();
        }
        KiSleepWhile(&KiBugCheckThreadId, Reporter);
    }
    KiBugCheckData = *BugCheck;
    if (Observer != NULL) {
        Observer(BugCheck);
    }
    KiPrintBugCheck(BugCheck);
    /* Without the lock: its owner may be the thread that ends here. */
    for (PLIST_ENTRY Entry = KiBugCheckCallbacks.Flink; Entry != &KiBugCheckCallbacks; Entry = Entry->Flink) {
        PKBUGCHECK_CALLBACK_RECORD Record = CONTAINING_RECORD(Entry, KBUGCHECK_CALLBACK_RECORD, Entry);
        if (Record->State == BufferInserted && Record->Checksum == KiChecksum(Record)) {
            Record->State = BufferStarted;
            Record->CallbackRoutine(Record->Buffer, Record->Length);
            Record->State = BufferFinished;
        }
    }
    KTRACE_FINISH(FALSE);
    HalAbort();
}

DECLSPEC_NOINLINE VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1, ULONG_PTR BugCheckParameter2,
                                    ULONG_PTR BugCheckParameter3, ULONG_PTR BugCheckParameter4)
{
    const KI_BUGCHECK BugCheck = {
        .Code = BugCheckCode,
        .Parameter = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3, BugCheckParameter4},
        .Caller = __builtin_return_address(0),
    };
    KiStopSystem(&BugCheck);
}

DECLSPEC_NOINLINE VOID KeBugCheck(ULONG BugCheckCode)
{
    const KI_BUGCHECK BugCheck = {.Code = BugCheckCode, .Caller = __builtin_return_address(0)};
    KiStopSystem(&BugCheck);
}

DECLSPEC_NOINLINE VOID KiBugCheckBecause(PCSTR Reason, ULONG BugCheckCode, ULONG_PTR BugCheckParameter1,
                                         ULONG_PTR BugCheckParameter2, ULONG_PTR BugCheckParameter3,
                                         ULONG_PTR BugCheckParameter4)
{
    const KI_BUGCHECK BugCheck = {
        .Code = BugCheckCode,
        .Parameter = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3, BugCheckParameter4},
        .Reason = Reason,
        .Caller = __builtin_return_address(0),
    };
    KiStopSystem(&BugCheck);
}
