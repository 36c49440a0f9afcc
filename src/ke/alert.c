/* alert.c: thread alerts, pending bits of the wait status register. */
#include "wait.h"

static VOID KiCheckMode(KPROCESSOR_MODE Mode)
{
    if ((UCHAR)Mode >= MaximumMode) {
        RtlFailFast(FAST_FAIL_INVALID_ARG);
    }
}

BOOLEAN KeAlertThread(PKTHREAD Thread, KPROCESSOR_MODE AlertMode)
{
    KiCheckMode(AlertMode);
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    ULONG Before = KiInterruptWait(Thread, KI_WAIT_ALERT | KI_WAIT_ALERTED((UCHAR)AlertMode), ALERT_INCREMENT);
    KiExitDispatcher(Current);
    return (Before & KI_WAIT_ALERTED((UCHAR)AlertMode)) != 0;
}

BOOLEAN KeTestAlertThread(KPROCESSOR_MODE AlertMode)
{
    KiCheckMode(AlertMode);
    return KiClearAlert(KiCurrentThread(), AlertMode);
}

ULONG KeAlertResumeThread(PKTHREAD Thread)
{
    KeAlertThread(Thread, KernelMode);
    return KeResumeThread(Thread);
}
