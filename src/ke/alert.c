/* alert.c: thread alerts, pending bits of the wait status register. */
#include "wait.h"

BOOLEAN KeAlertThread(PKTHREAD Thread, KPROCESSOR_MODE AlertMode)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    ULONG Before = KiInterruptWait(Thread, KI_WAIT_ALERT | KI_WAIT_ALERTED((UCHAR)AlertMode), ALERT_INCREMENT);
    KiExitDispatcher(Current);
    return (Before & KI_WAIT_ALERTED((UCHAR)AlertMode)) != 0;
}

BOOLEAN KeTestAlertThread(KPROCESSOR_MODE AlertMode)
{
    return KiClearAlert(KiCurrentThread(), AlertMode);
}

ULONG KeAlertResumeThread(PKTHREAD Thread)
{
    KeAlertThread(Thread, KernelMode);
    return KeResumeThread(Thread);
}
