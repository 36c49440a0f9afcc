/* verifier.c: the verifier's switch and its checks. Theory in verifier.h; lockorder.c has the order of locks. */
#include "verifier.h"
#include "irql.h"
#include "lockorder.h"
#include "wait.h"

#include "../hal/hal.h"

#include <interlock/verifier.h>

/* Held spinlocks. */

/* A note is the lock's address with its KI_HOLD in bit 0. */
static BOOLEAN KiIsNoted(PKPRCB Prcb, PVOID Lock, KI_HOLD Hold)
{
    for (ULONG Index = 0; Index < Prcb->HeldLocks; Index++) {
        if (Prcb->HeldLock[Index] == ((ULONG_PTR)Lock | (ULONG_PTR)Hold)) {
            return TRUE;
        }
    }
    return FALSE;
}

C_ASSERT((ULONG)KiHoldExclusive == (ULONG)KiOrderExclusive && (ULONG)KiHoldShared == (ULONG)KiOrderShared);

VOID KiCheckNotHeld(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind)
{
    if (KiIsNoted(Thread->Prcb, Lock, KiHoldExclusive) ||
        (Hold == KiHoldExclusive && KiIsNoted(Thread->Prcb, Lock, KiHoldShared))) {
        KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)Thread, (ULONG_PTR)Thread, 0);
    }
    KiOrderCheck(Thread, Lock, Kind, (KI_ORDER_MODE)Hold);
}

VOID KiAddHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind, PVOID Site)
{
    PKPRCB Prcb = Thread->Prcb;
    KIRQL Irql = Thread->Irql;
    KiSetIrql(Thread, HIGH_LEVEL);
    if (Prcb->HeldLocks < KI_HELD_LOCKS) {
        Prcb->HeldLock[Prcb->HeldLocks++] = (ULONG_PTR)Lock | (ULONG_PTR)Hold;
    } else {
        Prcb->HeldLocksUnnoted += 1;
    }
    KiSetIrql(Thread, Irql);
    KiPollInterrupts(Thread);
    KiOrderHold(Thread, Lock, Kind, (KI_ORDER_MODE)Hold, Site);
}

VOID KiRemoveHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    PKPRCB Prcb = Thread->Prcb;
    KIRQL Irql = Thread->Irql;
    KiOrderRelease(Thread, Lock);
    KiSetIrql(Thread, HIGH_LEVEL);
    ULONG Index = Prcb->HeldLocks;
    while (Index != 0 && Prcb->HeldLock[Index - 1] != ((ULONG_PTR)Lock | (ULONG_PTR)Hold)) {
        Index -= 1;
    }
    if (Index != 0) {
        Prcb->HeldLocks -= 1;
        Prcb->HeldLock[Index - 1] = Prcb->HeldLock[Prcb->HeldLocks];
    } else if (Prcb->HeldLocksUnnoted != 0) {
        Prcb->HeldLocksUnnoted -= 1;
    } else {
        KiSetIrql(Thread, Irql);
        KeBugCheckEx(SPIN_LOCK_NOT_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)Thread, 0, 0);
    }
    KiSetIrql(Thread, Irql);
    KiPollInterrupts(Thread);
}

/* Memory that is freed. */

KI_FIND_FREED *KiFindFreed[KiFreedLists];

#define KI_NEAR_STACK (16 * 1024 * 1024) /* around the end of a thread: more than most stacks */
#define KI_LEFT_FRAMES (64 * 1024)       /* more than most routines have used */

/* The bugcheck to raise. Code 0: none. */
typedef struct _KI_IN_USE {
    ULONG Code;
    ULONG_PTR Parameter[4];
} KI_IN_USE, *PKI_IN_USE;

/* Checks only waits that use the thread's own blocks: a caller's array may no longer exist. The thread cannot begin
   another wait for an object in this memory, so the blocks of a wait that continues are accurate. The thread may write
   them for another wait while they are read; rereading the register detects that. */
static __attribute__((no_sanitize_thread)) PVOID KiFindWaitedObject(PKTHREAD Thread, PVOID Base, PVOID End)
{
    /* acquire: pairs with the commit of the wait, before which the thread has written the rest */
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE);
    if (!(Register & KI_WAIT_ACTIVE) || (Register & KI_WAIT_STATE_MASK) != WaitCommitted ||
        Thread->WaitBlockList != Thread->WaitBlock) {
        return NULL;
    }
    for (ULONG Index = 0; Index < Thread->WaitBlockCount && Index < THREAD_WAIT_OBJECTS; Index++) {
        PKWAIT_BLOCK Block = &Thread->WaitBlock[Index];
        if (KiIsInMemory(Block->Object, Base, End) && Block->WaitType != KI_HINT_BLOCK &&
            __atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE) == Register) {
            return Block->Object;
        }
    }
    return NULL;
}

/* A slot that is freed in the meantime stays unchanged until another thread takes it, which the lock prevents. */
static PKAPC KiFindQueuedApc(PKTHREAD Current, PKTHREAD Thread, PVOID Base, PVOID End)
{
    PKAPC Found = NULL;
    KiEnterDispatcher(Current);
    KiAcquireLock(&KiSlotInitializationLock);
    /* acquire: pairs with the store in KiAllocateThread */
    if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_ACQUIRE) == KiSlotUsed) {
        KiAcquireLock(&Thread->ApcQueueLock);
        for (ULONG Mode = KernelMode; Mode < MaximumMode; Mode += 1) {
            PLIST_ENTRY Head = &Thread->ApcState.ApcListHead[Mode];
            for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Found == NULL; Entry = Entry->Flink) {
                PKAPC Apc = CONTAINING_RECORD(Entry, KAPC, ApcListEntry);
                Found = KiIsInMemory(Apc, Base, End) ? Apc : NULL;
            }
        }
        KiReleaseLock(&Thread->ApcQueueLock);
    }
    KiReleaseLock(&KiSlotInitializationLock);
    KiExitDispatcher(Current);
    return Found;
}

static BOOLEAN KiFindByThreads(PVOID Base, PVOID End, PKI_IN_USE InUse)
{
    PKTHREAD Current = KiCurrentThread();
    PKTHREAD Thread;
    for (ULONG Number = 0; (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) != KiSlotUsed) {
            continue;
        }
        PKAPC Apc = KiFindQueuedApc(Current, Thread, Base, End);
        if (Apc != NULL) {
            *InUse = (KI_IN_USE){DRIVER_VERIFIER_DETECTED_VIOLATION,
                                 {KI_FREED_QUEUED_APC, (ULONG_PTR)Apc, (ULONG_PTR)Base, (ULONG_PTR)End}};
            return TRUE;
        }
        PVOID Object = KiFindWaitedObject(Thread, Base, End);
        if (Object != NULL) {
            *InUse = (KI_IN_USE){DRIVER_VERIFIER_DETECTED_VIOLATION,
                                 {KI_FREED_WAITED_OBJECT, (ULONG_PTR)Object, (ULONG_PTR)Thread, (ULONG_PTR)Base}};
            return TRUE;
        }
    }
    return FALSE;
}

/* Searches timers, DPCs, threads, and the lists of layers above; not the lock order. */
static BOOLEAN KiFindInUse(PVOID Base, PVOID End, PKI_IN_USE InUse)
{
    PKDPC Dpc = NULL;
    PVOID Found = KiFindSetTimer(Base, End, &Dpc);
    if (Found != NULL) {
        *InUse = (KI_IN_USE){TIMER_OR_DPC_INVALID, {0, (ULONG_PTR)Found, (ULONG_PTR)Base, (ULONG_PTR)End}};
        return TRUE;
    }
    Dpc = Dpc != NULL ? Dpc : KiFindQueuedDpc(Base, End);
    if (Dpc != NULL) {
        *InUse = (KI_IN_USE){TIMER_OR_DPC_INVALID, {1, (ULONG_PTR)Dpc, (ULONG_PTR)Base, (ULONG_PTR)End}};
        return TRUE;
    }
    if (KiFindFreed[KiFreedWorkItems] != NULL && (Found = KiFindFreed[KiFreedWorkItems](Base, End)) != NULL) {
        *InUse = (KI_IN_USE){WORKER_INVALID, {0, (ULONG_PTR)Found, (ULONG_PTR)Base, (ULONG_PTR)End}};
        return TRUE;
    }
    if (KiFindFreed[KiFreedResources] != NULL && (Found = KiFindFreed[KiFreedResources](Base, End)) != NULL) {
        *InUse = (KI_IN_USE){DRIVER_VERIFIER_DETECTED_VIOLATION,
                             {KI_FREED_RESOURCE, (ULONG_PTR)Found, (ULONG_PTR)Base, (ULONG_PTR)End - (ULONG_PTR)Base}};
        return TRUE;
    }
    return KiFindByThreads(Base, End, InUse);
}

static DECLSPEC_NORETURN VOID KiStopInUse(const KI_IN_USE *InUse)
{
    KeBugCheckEx(InUse->Code, InUse->Parameter[0], InUse->Parameter[1], InUse->Parameter[2], InUse->Parameter[3]);
}

VOID KiVerifyFreed(PVOID Base, SIZE_T Size, BOOLEAN IsObject)
{
    KI_IN_USE InUse;
    if (KiFindInUse(Base, (PUCHAR)Base + Size, &InUse)) {
        KiStopInUse(&InUse);
    }
    PVOID Lock = KiOrderForgetRange(Base, Size, IsObject);
    if (Lock != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_FREED_HELD_LOCK, (ULONG_PTR)Lock, (ULONG_PTR)Base, Size);
    }
}

VOID KiNoteNewMemory(PVOID Base, SIZE_T Size)
{
    (VOID)KiOrderForgetRange(Base, Size, TRUE);
}

/* The search itself runs in these frames, and overwrites what was in them: only addresses count. Locks are not searched for,
   as at the end of a thread: below has those that the routine holds. The end of a fiber's stack is unknown. */
static VOID KiVerifyLeftFrames(PVOID Caller)
{
    ULONG_PTR End = (ULONG_PTR)Caller;
    ULONG_PTR Low;
    ULONG_PTR High;
    KI_IN_USE InUse;
    if (!KiFindInUse((PVOID)(End - KI_LEFT_FRAMES), (PVOID)End, &InUse)) {
        return;
    }
    HalQueryStackLimits(&Low, &High);
    if (End > Low && End <= High &&
        KiFindInUse((PVOID)(End - Low > KI_LEFT_FRAMES ? End - KI_LEFT_FRAMES : Low), (PVOID)End, &InUse)) {
        KiStopInUse(&InUse);
    }
}

/* The host frees the stack of every thread but the first. Querying the limits allocates memory, so it is done only if
   something nearby is in use. Locks in the stack are not searched for: those of frames that returned are free, or were
   reported with the thread. */
VOID KiVerifyStackAtExit(PKTHREAD Thread)
{
    ULONG_PTR Frame = (ULONG_PTR)__builtin_frame_address(0);
    ULONG_PTR Low;
    ULONG_PTR High;
    KI_IN_USE InUse;
    if (Thread != HalCurrentThread || Thread->ThreadId == HalCurrentProcessId() || Thread->IsIdleThread ||
        !KiFindInUse((PVOID)(Frame - KI_NEAR_STACK), (PVOID)(Frame + KI_NEAR_STACK), &InUse)) {
        return;
    }
    HalQueryStackLimits(&Low, &High);
    if (KiFindInUse((PVOID)Low, (PVOID)High, &InUse)) {
        KiStopInUse(&InUse);
    }
}

/* Routines of the program. */

#define KI_DISPATCH_CHANGED_APCS 0xC5
#define KI_DPC_CHANGED_APCS 4
#define KI_WORKER_ROUTINE 1
#define KI_APC_ROUTINE 2 /* Windows has no number for it */

static const PCSTR KiCallbackName[KiCallbackKinds] = {
    [KiCallbackDpc] = "DPC",
    [KiCallbackService] = "interrupt service routine",
    [KiCallbackApc] = "APC",
    [KiCallbackWorker] = "work item",
    [KiCallbackPool] = "callback of a thread pool",
    [KiCallbackDispatch] = "dispatch routine",
    [KiCallbackCompletion] = "completion routine",
    [KiCallbackCancel] = "cancel routine",
    [KiCallbackStartIo] = "StartIo routine",
    [KiCallbackDriver] = "driver routine",
    [KiCallbackNotification] = "routine of a callback object",
};

/* Whether the routine's frames are searched for what is still in use. A search takes microseconds, too long for
 * routines that interrupt. */
static const BOOLEAN KiCallbackSearched[KiCallbackKinds] = {
    [KiCallbackWorker] = TRUE,     [KiCallbackPool] = TRUE,   [KiCallbackDispatch] = TRUE,
    [KiCallbackCompletion] = TRUE, [KiCallbackCancel] = TRUE, [KiCallbackStartIo] = TRUE,
    [KiCallbackDriver] = TRUE,     [KiCallbackNotification] = TRUE,
};

/* Calls. */

#define KI_CALL_FRAME_CHECK ((ULONG_PTR)0x4b6943616c6c4672)

/* The frame may be gone: it is read as it is. */
static __attribute__((no_sanitize("address"))) ULONG_PTR KiCheckOfCallFrame(const KI_CALL_FRAME *Frame)
{
    return KI_CALL_FRAME_CHECK ^ (ULONG_PTR)Frame ^ (ULONG_PTR)Frame->Outer ^ (ULONG_PTR)Frame->Place;
}

__attribute__((no_sanitize("address"))) PKI_CALL_FRAME KiLiveCallFrame(PKI_CALL_FRAME Frame, PVOID Place)
{
    return Frame != NULL && Frame->Check == KiCheckOfCallFrame(Frame) && (ULONG_PTR)Frame->Place > (ULONG_PTR)Place
               ? Frame
               : NULL;
}

VOID KiEnterCallFrame(PKTHREAD Thread, PKI_CALL_FRAME Frame, PVOID Place)
{
    Frame->Outer = KiLiveCallFrame(Thread->CallFrames, Place);
    Frame->Place = Place;
    Frame->ExceptionList = Thread->ExceptionList;
    Frame->ExpectedBugCheck = Thread->ExpectedBugCheck;
    Frame->Check = KiCheckOfCallFrame(Frame);
    Thread->CallFrames = Frame;
}

VOID KiLeaveCallFrame(PKTHREAD Thread, PKI_CALL_FRAME Frame)
{
    Thread->CallFrames = Frame->Outer;
    Frame->Check = 0;
}

VOID KiDropCallFrames(PKTHREAD Thread, PVOID ExceptionFrame, PVOID Expectation)
{
    PKI_CALL_FRAME Frame = KiLiveCallFrame(Thread->CallFrames, __builtin_frame_address(0));
    while (Frame != NULL && ((ExceptionFrame != NULL && Frame->ExceptionList == ExceptionFrame) ||
                             (Expectation != NULL && Frame->ExpectedBugCheck == Expectation))) {
        KiLeaveCallFrame(Thread, Frame);
        Frame = KiLiveCallFrame(Thread->CallFrames, __builtin_frame_address(0));
    }
}

/* What a routine leaves behind. */

VOID KiNoteCallback(PKTHREAD Thread, PKI_CALLBACK Callback)
{
    *Callback = (KI_CALLBACK){
        .Held = KiOrderCountHeld(Thread),
        .KernelApcDisable = Thread->KernelApcDisable,
        .SpecialApcDisable = Thread->SpecialApcDisable,
        .Irql = Thread->Irql,
    };
}

static ULONG_PTR KiCombinedApcDisable(SHORT Kernel, SHORT Special)
{
    return (ULONG_PTR)(USHORT)Special << 16 | (USHORT)Kernel;
}

static DECLSPEC_NORETURN VOID KiApcsChanged(PKTHREAD Thread, const KI_CALLBACK *Before, KI_CALLBACK_KIND Kind,
                                            PVOID Routine)
{
    ULONG_PTR Old = KiCombinedApcDisable(Before->KernelApcDisable, Before->SpecialApcDisable);
    ULONG_PTR New = KiCombinedApcDisable(Thread->KernelApcDisable, Thread->SpecialApcDisable);
    switch (Kind) {
    case KiCallbackDpc:
    case KiCallbackService:
        KeBugCheckEx(TIMER_OR_DPC_INVALID, KI_DPC_CHANGED_APCS, (ULONG_PTR)Routine, Old, New);
    case KiCallbackDispatch:
    case KiCallbackCompletion:
    case KiCallbackCancel:
    case KiCallbackStartIo:
    case KiCallbackDriver:
    case KiCallbackNotification:
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_DISPATCH_CHANGED_APCS, (ULONG_PTR)Routine, New, Old);
    default:
        KeBugCheckEx(APC_INDEX_MISMATCH, (ULONG_PTR)Routine, 0, New,
                     Kind == KiCallbackApc ? KI_APC_ROUTINE : KI_WORKER_ROUTINE);
    }
}

VOID KiVerifyReturned(PKTHREAD Thread, const KI_CALLBACK *Callback, KI_CALLBACK_KIND Kind, PVOID Routine)
{
    CHAR Name[256] = "";
    if (Callback->Irql > HIGH_LEVEL) {
        return;
    }
    PVOID Lock = KiOrderFindLeft(Thread, Callback->Held);
    BOOLEAN ApcsChanged = Thread->KernelApcDisable != Callback->KernelApcDisable ||
                          Thread->SpecialApcDisable != Callback->SpecialApcDisable;
    if (Lock == NULL && !ApcsChanged && Thread->Irql == Callback->Irql) {
        if (KiCallbackSearched[Kind]) {
            KiVerifyLeftFrames((PVOID)(ULONG_PTR)Callback);
        }
        return;
    }
    HalQueryAddressName((ULONG_PTR)Routine, Name, sizeof(Name));
    HalPrint("*** %s %p%s%s has left behind:\n", KiCallbackName[Kind], Routine, Name[0] != '\0' ? " " : "", Name);
    KiOrderPrintHeld(Thread, Callback->Held);
    if (Thread->Irql != Callback->Irql) {
        HalPrint("  IRQL %u, before: %u\n", Thread->Irql, Callback->Irql);
        KeBugCheckEx(IRQL_UNEXPECTED_VALUE, (ULONG_PTR)Thread->Irql << 16 | (ULONG_PTR)Callback->Irql << 8, 0,
                     (ULONG_PTR)Routine, 0);
    }
    if (Lock != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_RETURNED_WITH_LOCK, (ULONG_PTR)Routine, (ULONG_PTR)Lock, 0);
    }
    KiApcsChanged(Thread, Callback, Kind, Routine);
}

/*
 * Turns the verifier on and off while the process runs.
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

static VOID KiSetNotes(PKPRCB Prcb, ULONG Forgiven)
{
    Prcb->HeldLocks = 0;
    Prcb->HeldLocksUnnoted = Forgiven;
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
    for (ULONG Number = 0; Enable && Number < KeNumberProcessors; Number++) { /* 2 */
        if (KiTryRaiseOnProcessor(Thread, KiProcessorBlock[Number])) {
            KiSetNotes(KiProcessorBlock[Number], 0);
            KiLowerIrql(Thread, PASSIVE_LEVEL);
        }
    }
    return STATUS_SUCCESS;
}

BOOLEAN VfIsVerifierEnabled(VOID)
{
    return __atomic_load_n(&KiVerifierEnabled, __ATOMIC_RELAXED);
}
