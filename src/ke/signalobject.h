/* signalobject.h: KiSignal in line, for objects whose waiters are woken most often. */
#ifndef INTERLOCK_SIGNALOBJECT_H
#define INTERLOCK_SIGNALOBJECT_H

#include "../trace/trace.h"
#include "wait.h"

FORCEINLINE BOOLEAN KiSignalInline(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Begin = KTRACE_NOW();
    ULONG64 Old;
    KI_READY Released;
    BOOLEAN Changed;

    KiInitializeReady(&Released, Signal->Increment);
    Released.BoostFloor = Signal->BoostFloor;
    KiEnterDispatcher(Thread);
    for (ULONG Round = 0;; Round += 1) {
        Old = KiLockObject(Header);
        ULONG64 New = Old;
        *Previous = KI_STATE(Old);
        Changed = Signal->Update(Header, &New, Signal->Context);
        if (!Changed || KI_STATE(New) <= 0 || KiReleaseWaiters(Header, &New, &Released)) {
            KiUnlockObject(Header, Signal->Pulse ? KiWithState(New, 0) : New);
            break;
        }
        KiUnlockObject(Header, Old);
        HalLongSpin(Round);
    }
    if (Signal->Released != NULL && Released.First != NULL) {
        *Signal->Released = Released.First;
    }
    KiReadyThreads(&Released);
    if (Changed && (Old & KI_WAITERS)) {
        KTRACE_SIGNAL(Header, Old, Begin);
    }
    KiExitDispatcher(Thread);
    return Changed;
}

#endif
