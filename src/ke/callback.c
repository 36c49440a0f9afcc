/* callback.c: what a routine leaves behind. Theory in callback.h. */
#include "callback.h"

#include "freedmemory.h"

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

/* Are the routine's frames searched for what is still in use? A search takes microseconds: not for those that interrupt. */
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
