/*
 * alertbyid.c: waiting until somebody alerts the thread by its id.
 *
 * 1. An alert is the AlertByIdPending bit of the wait status register, so it is kept until the thread waits for it, and
 *    two are one. It neither ends nor satisfies any other wait.
 * 2. The alert is set by a read-modify-write even where it is pending already: a thread that takes it sees what every
 *    one of those who alerted it did before.
 * 3. A wait that finds the alert pending, or sees it come while it spins, neither sleeps nor begins: the register is
 *    all that both sides touch.
 * 4. The wait is not alertable, and has no object, so a suspension converts it. Its one block shows the hint.
 */
#include "wait.h"

static BOOLEAN KiMayTakeAlertAtOnce(PKTHREAD Thread)
{
    return !Thread->WaitNext && Thread->Irql < DISPATCH_LEVEL;
}

NTSTATUS KiWaitForAlertById(PVOID Hint, PLARGE_INTEGER Timeout, BOOLEAN Spins)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_WAIT Wait;

    if (KiMayTakeAlertAtOnce(Thread) && KiTakeAlertById(Thread)) {
        return STATUS_ALERTED;
    }
    KiInitializeWait(&Wait, Hint, WrAlertByThreadId, UserMode, FALSE, Timeout);
    if (KiTakeAlertById(Thread)) {
        return STATUS_ALERTED;
    }
    if (Wait.Poll) {
        return STATUS_TIMEOUT;
    }
    if (Spins && KiSpinForAlertById(Thread)) {
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
    return KiWaitForAlertById(Hint, Timeout, TRUE);
}

VOID KeAlertThreadById(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    KiInterruptWait(Thread, KI_WAIT_ALERT_BY_ID_PENDING, ALERT_INCREMENT);
    KiExitDispatcher(Current);
}
