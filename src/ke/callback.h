/*
 * callback.h: what a routine of the program must not leave behind when it returns to the system: a lock, a critical or
 * guarded region, another IRQL. What each kind of routine is stopped with is a row of a table in callback.c. Levels that
 * Windows always checks are checked by the callers, where the routine is called.
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
