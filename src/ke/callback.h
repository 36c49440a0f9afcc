/*
 * callback.h: checks what a routine of the program leaves behind when it returns to the system: a lock, a critical or
 * guarded region, a different IRQL. A table in callback.c has the bugcheck for each kind of routine. The callers of the
 * routines check the levels that Windows always checks.
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
    KiCallbackDispatch, /* of a driver */
    KiCallbackKinds
} KI_CALLBACK_KIND;

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
