/*
 * alert.c: thread alerts, and waiting until another thread alerts this one by its id. Both are pending bits of the wait
 * status register.
 *
 * 1. An alert by id is the AlertByIdPending bit, so it stays pending until the thread waits for it, and two merge into
 *    one. It neither ends nor satisfies any other wait.
 * 2. The bit is set by a read-modify-write even if it is already pending: a thread that takes the alert sees what every
 *    thread that alerted it did before.
 * 3. A wait that finds the alert pending, or sees it arrive while it spins, neither sleeps nor begins: the register is
 *    all that both sides touch.
 * 4. The wait is not alertable, and has no object, so a suspension converts it. Its one block shows the hint.
 */
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

static inline BOOLEAN KiTakesAlertById(PVOID Thread)
{
    return KiTakeAlertById(Thread);
}

DECLSPEC_NOINLINE NTSTATUS KiWaitForAlertById(PVOID Hint, PLARGE_INTEGER Timeout, BOOLEAN Spins)
{
    KI_WAIT Wait;
    KiInitializeWait(&Wait, Hint, WrAlertByThreadId, UserMode, FALSE, Timeout);
    if (KiTakeAlertById(Wait.Thread)) {
        return STATUS_ALERTED;
    }
    if (Wait.Poll) {
        return STATUS_TIMEOUT;
    }
    if (Spins && KiParkUntil(Wait.Thread, KiParkForObject, KiTakesAlertById, Wait.Thread)) {
        return STATUS_ALERTED;
    }
    Wait.Objects = &Hint;
    Wait.WaitType = KI_HINT_BLOCK;
    Wait.Flags = KI_WAIT_ALERT_BY_ID | KI_WAIT_LIGHT;
    Wait.Spun = TRUE;
    return KiWait(&Wait);
}

NTSTATUS KeWaitForAlertByThreadId(PVOID Hint, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    return KiMayTakeAtOnce(Thread) && KiTakeAlertById(Thread) ? STATUS_ALERTED
                                                              : KiWaitForAlertById(Hint, Timeout, TRUE);
}

VOID KeAlertThreadById(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    KiInterruptWait(Thread, KI_WAIT_ALERT_BY_ID_PENDING, ALERT_INCREMENT);
    KiExitDispatcher(Current);
}
