/*
 * callback.h: checks what a routine of the program leaves behind when it returns to the system: a lock, a critical or
 * guarded region, a different IRQL, an object in use in its stack frames (freedmemory.h). A table in callback.c has the
 * bugcheck for each kind of routine. The callers of the routines check the levels that Windows always checks.
 */
#ifndef INTERLOCK_CALLBACK_H
#define INTERLOCK_CALLBACK_H

#include "lockorder.h"

typedef enum _KI_CALLBACK_KIND {
    KiCallbackDpc,
    KiCallbackService,  /* of an interrupt */
    KiCallbackApc,
    KiCallbackWorker,
    KiCallbackPool,
    KiCallbackDispatch, /* this and the next four: of a driver */
    KiCallbackCompletion,
    KiCallbackCancel,
    KiCallbackStartIo,
    KiCallbackDriver,   /* DriverEntry, DriverUnload */
    KiCallbackNotification, /* of a callback object */
    KiCallbackKinds
} KI_CALLBACK_KIND;

/*
 * A call of a routine of the program that the caller keeps account of, in a variable of the caller. The frames of a thread
 * are a list, innermost first.
 *
 * A routine may be left without a return. A raised status and a bugcheck that a test expects jump to the innermost frame
 * of __try, or place that expects one: the calls that were made since then are dropped. The longjmp of a test framework
 * tells nobody: then the list begins with frames in memory that others use by now. A frame whose caller is not above the
 * newest one on the stack, or whose Check is wrong, is such a frame, and ends the list. (The address of the variable itself
 * says nothing: AddressSanitizer keeps variables elsewhere.)
 */
typedef struct _KI_CALL_FRAME {
    struct _KI_CALL_FRAME *Outer;
    ULONG_PTR Check;
    PVOID Place;            /* of the caller, on the stack */
    PVOID ExceptionList;    /* of the thread, when the call was made, and */
    PVOID ExpectedBugCheck; /* likewise */
} KI_CALL_FRAME, *PKI_CALL_FRAME;

PKI_CALL_FRAME KiLiveCallFrame(PKI_CALL_FRAME Frame, PVOID Place); /* NULL if it is left, or if there is none */
VOID KiEnterCallFrame(PKTHREAD Thread, PKI_CALL_FRAME Frame, PVOID Place);
VOID KiLeaveCallFrame(PKTHREAD Thread, PKI_CALL_FRAME Frame);
VOID KiDropCallFrames(PKTHREAD Thread, PVOID ExceptionFrame, PVOID Expectation); /* those inside; the other one is NULL */

#define KI_RETURNED_WITH_LOCK 0x494C0003 /* a kind of DRIVER_VERIFIER_DETECTED_VIOLATION, Interlock's own */

typedef struct _KI_CALLBACK {
    ULONG Held;
    SHORT KernelApcDisable;
    SHORT SpecialApcDisable;
    KIRQL Irql;
} KI_CALLBACK, *PKI_CALLBACK;

VOID KiNoteCallback(PKTHREAD Thread, PKI_CALLBACK Callback);
VOID KiVerifyReturned(PKTHREAD Thread, const KI_CALLBACK *Callback, KI_CALLBACK_KIND Kind, PVOID Routine);

FORCEINLINE VOID KiBeginCallback(PKTHREAD Thread, PKI_CALLBACK Callback)
{
    Callback->Irql = HIGH_LEVEL + 1; /* the verifier was off */
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiNoteCallback(Thread, Callback);
    }
}

FORCEINLINE VOID KiEndCallback(PKTHREAD Thread, const KI_CALLBACK *Callback, KI_CALLBACK_KIND Kind, PVOID Routine)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiVerifyReturned(Thread, Callback, Kind, Routine);
    }
}

#endif
