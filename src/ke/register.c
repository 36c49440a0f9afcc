/* register.c: every change of a wait status register. The word and its invariants are in ki.h. */
#include "wait.h"

FORCEINLINE ULONG KiReadRegister(PKTHREAD Thread)
{
    return __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
}

/* acq_rel: the waiter's blocks are visible to who ends its wait, and the other way round what led to the end */
FORCEINLINE BOOLEAN KiChangeRegister(PKTHREAD Thread, ULONG *Found, ULONG New)
{
    return __atomic_compare_exchange_n(&Thread->WaitRegister, Found, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

FORCEINLINE ULONG KiStateOf(ULONG Register)
{
    return Register & KI_WAIT_STATE_MASK;
}

FORCEINLINE ULONG KiWithWaitState(ULONG Register, KWAIT_STATE State)
{
    return (Register & ~KI_WAIT_STATE_MASK) | (ULONG)State;
}

/* The register after somebody has ended the wait that Register shows, or Register itself if that is not possible now. */
static ULONG KiEnded(ULONG Register)
{
    if (!(Register & KI_WAIT_ACTIVE)) {
        return Register;
    }
    switch (KiStateOf(Register)) {
    case WaitInProgress:
        return KiWithWaitState(Register & ~KI_WAIT_ACTIVE, WaitAborted);
    case WaitCommitted:
        return Register & ~KI_WAIT_ACTIVE;
    case WaitResumeInProgress:
        return KiWithWaitState(Register & ~KI_WAIT_ACTIVE, WaitResumeAborted);
    default:
        return Register; /* suspended: its blocks are being taken off, no object reaches it */
    }
}

ULONG KiEndWait(PKTHREAD Thread, LONG_PTR Status)
{
    ULONG Register = KiReadRegister(Thread);
    ULONG New;
    do {
        New = KiEnded(Register);
        if (New == Register) {
            return KI_NOT_ENDED;
        }
    } while (!KiChangeRegister(Thread, &Register, New));
    Thread->WaitStatus = Status;
    return KiStateOf(Register);
}

BOOLEAN KiEndOwnWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    while (Register & KI_WAIT_ACTIVE) {
        if (KiStateOf(Register) != WaitInProgress && KiStateOf(Register) != WaitCommitted) {
            return FALSE;
        }
        if (KiChangeRegister(Thread, &Register, Register & ~KI_WAIT_ACTIVE)) {
            return TRUE;
        }
    }
    return FALSE;
}

static ULONG KiWithoutAlert(ULONG Register, KPROCESSOR_MODE Mode)
{
    Register &= ~(KI_WAIT_ALERTED((UCHAR)Mode) | KI_WAIT_KERNEL_ALERT);
    Register |= Mode == KernelMode ? KI_WAIT_KERNEL_ALERT : 0;
    if (!(Register & (KI_WAIT_ALERTED(KernelMode) | KI_WAIT_ALERTED(UserMode)))) {
        Register &= ~KI_WAIT_ALERT;
    }
    return Register;
}

/*
 * What the pending bits of Register do to an alertable wait that was issued as HowIssued says, in NT's order: an alert
 * of the wait's own mode, a user APC, a kernel-mode alert. An alert that is taken is cleared in *New.
 */
static NTSTATUS KiPendingAlert(ULONG Register, ULONG HowIssued, ULONG *New)
{
    KPROCESSOR_MODE Mode = (HowIssued & KI_WAIT_USER_MODE) ? UserMode : KernelMode;
    if (!(HowIssued & KI_WAIT_ALERTABLE)) {
        return STATUS_PENDING;
    }
    if (Register & KI_WAIT_ALERTED((UCHAR)Mode)) {
        *New = KiWithoutAlert(*New, Mode);
        return STATUS_ALERTED;
    }
    if (Mode == UserMode && (Register & KI_WAIT_USER_APC)) {
        return STATUS_USER_APC;
    }
    if (Register & KI_WAIT_ALERTED(KernelMode)) {
        *New = KiWithoutAlert(*New, KernelMode);
        return STATUS_ALERTED;
    }
    return STATUS_PENDING;
}

static BOOLEAN KiKernelApcInterrupts(ULONG Register)
{
    return (Register & KI_WAIT_APC) &&
           ((Register & KI_WAIT_NORMAL_APC_OK) || ((Register & KI_WAIT_SPECIAL_APC) && (Register & KI_WAIT_SPECIAL_APC_OK)));
}

/* A thread that is to end gives up its wait as for a user APC, alertable or not: the service that waits returns. */
static BOOLEAN KiExitInterrupts(ULONG Register, ULONG HowIssued)
{
    return (Register & KI_WAIT_EXIT) && (HowIssued & KI_WAIT_EXIT_OK);
}

BOOLEAN KiGivesUpWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    return KiExitInterrupts(Register, Register);
}

static NTSTATUS KiPendingInterruption(ULONG Register, ULONG *New)
{
    if (KiExitInterrupts(Register, Register)) {
        return STATUS_USER_APC;
    }
    if (KiKernelApcInterrupts(Register)) {
        return STATUS_KERNEL_APC;
    }
    if ((Register & KI_WAIT_ALERT_BY_ID) && (Register & KI_WAIT_ALERT_BY_ID_PENDING)) {
        *New &= ~KI_WAIT_ALERT_BY_ID_PENDING;
        return STATUS_ALERTED;
    }
    return KiPendingAlert(Register, Register, New);
}

#define KI_WAIT_ISSUED                                                                                                 \
    (KI_WAIT_ALERTABLE | KI_WAIT_USER_MODE | KI_WAIT_SPECIAL_APC_OK | KI_WAIT_NORMAL_APC_OK | KI_WAIT_ALERT_BY_ID |    \
     KI_WAIT_SUSPENDED_USER_MODE | KI_WAIT_SUSPENDED_TIMER | KI_WAIT_LIGHT | KI_WAIT_EXIT_OK)

ULONG KiWaitFlags(PKTHREAD Thread, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable)
{
    ULONG Flags = 0;
    if (Alertable) {
        Flags |= KI_WAIT_ALERTABLE;
    }
    if (WaitMode == UserMode) {
        Flags |= KI_WAIT_USER_MODE;
    }
    if (Thread->Irql < APC_LEVEL && Thread->SpecialApcDisable == 0) {
        Flags |= KI_WAIT_SPECIAL_APC_OK;
        if (Thread->KernelApcDisable == 0 && !Thread->ApcState.KernelApcInProgress) {
            Flags |= KI_WAIT_NORMAL_APC_OK;
            Flags |= Thread->ServiceDepth == 0 || WaitMode == UserMode ? KI_WAIT_EXIT_OK : 0;
        }
    }
    return Flags;
}

NTSTATUS KiTakeAlert(PKTHREAD Thread, ULONG HowIssued)
{
    ULONG Register = KiReadRegister(Thread);
    for (;;) {
        ULONG New = Register;
        NTSTATUS Status = KiPendingAlert(Register, HowIssued, &New);
        if (New == Register || KiChangeRegister(Thread, &Register, New)) {
            return Status;
        }
    }
}

BOOLEAN KiClearAlert(PKTHREAD Thread, KPROCESSOR_MODE Mode)
{
    ULONG Register = KiReadRegister(Thread);
    while (!KiChangeRegister(Thread, &Register, KiWithoutAlert(Register, Mode))) {
    }
    return (Register & KI_WAIT_ALERTED((UCHAR)Mode)) != 0;
}

KPROCESSOR_MODE KiModeOfTakenAlert(PKTHREAD Thread)
{
    return KiReadRegister(Thread) & KI_WAIT_KERNEL_ALERT ? KernelMode : UserMode;
}

BOOLEAN KiTakeAlertById(PKTHREAD Thread)
{
    if (!(KiReadRegister(Thread) & KI_WAIT_ALERT_BY_ID_PENDING)) {
        return FALSE;
    }
    /* acquire: pairs with KiInterruptWait, by which the alert came */
    __atomic_and_fetch(&Thread->WaitRegister, ~KI_WAIT_ALERT_BY_ID_PENDING, __ATOMIC_ACQUIRE);
    return TRUE;
}

NTSTATUS KiBeginWait(PKTHREAD Thread, ULONG HowIssued)
{
    ULONG Register = KiReadRegister(Thread);
    /* relaxed: nobody reads or writes the word before the wait is Active, which the compare-exchange below publishes */
    __atomic_store_n(&Thread->WakeWord, KI_AWAKE, __ATOMIC_RELAXED);
    for (;;) {
        ULONG New = KiWithWaitState((Register & ~KI_WAIT_ISSUED) | HowIssued, WaitInProgress);
        /* a wait that was interrupted and begins again, by a thread that is to end, takes nothing from others */
        NTSTATUS Status =
            KiExitInterrupts(Register, HowIssued) ? STATUS_USER_APC : KiPendingAlert(Register, HowIssued, &New);
        if (Status == STATUS_PENDING) {
            New |= KI_WAIT_ACTIVE;
        }
        if (KiChangeRegister(Thread, &Register, New)) {
            return Status;
        }
    }
}

NTSTATUS KiCommitWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    while (Register & KI_WAIT_ACTIVE) {
        ULONG New = Register;
        NTSTATUS Status = KiPendingInterruption(Register, &New);
        New = Status == STATUS_PENDING ? KiWithWaitState(New, WaitCommitted)
                                       : KiWithWaitState(New & ~KI_WAIT_ACTIVE, WaitAborted);
        if (KiChangeRegister(Thread, &Register, New)) {
            return Status;
        }
    }
    return STATUS_WAIT_0; /* a signal has aborted it; WaitStatus says the rest */
}

ULONG KiInterruptWait(PKTHREAD Thread, ULONG Pending, KPRIORITY Increment)
{
    ULONG Register = KiReadRegister(Thread);
    for (;;) {
        ULONG New = Register | Pending;
        NTSTATUS Status = STATUS_PENDING;
        if ((Register & KI_WAIT_ACTIVE) && KiStateOf(Register) == WaitCommitted) {
            Status = KiPendingInterruption(New, &New);
            if (Status != STATUS_PENDING) {
                New &= ~KI_WAIT_ACTIVE;
            }
        }
        if (KiChangeRegister(Thread, &Register, New)) {
            if (Status != STATUS_PENDING) {
                Thread->WaitStatus = Status;
                KiReadyThread(Thread, Increment);
            }
            return Register;
        }
    }
}

VOID KiNoteChange(PKTHREAD Thread, ULONG Change)
{
    ULONG Register = KiReadRegister(Thread);
    /* relaxed: the bit says only that something was changed, and does not publish it */
    while ((Register & KI_WAIT_ACTIVE) &&
           !__atomic_compare_exchange_n(&Thread->WaitRegister, &Register, Register | Change, TRUE, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

/* NormalApcOk says that the wait was issued at PASSIVE_LEVEL with no APC disabled or in progress, Light that it has no
   active WaitAny block. */
#define KI_WAIT_SUSPENDABLE (KI_WAIT_ACTIVE | KI_WAIT_NORMAL_APC_OK | KI_WAIT_LIGHT)

BOOLEAN KiBeginSuspend(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    do {
        if ((Register & KI_WAIT_SUSPENDABLE) != KI_WAIT_SUSPENDABLE || KiStateOf(Register) != WaitCommitted) {
            return FALSE;
        }
    } while (!KiChangeRegister(Thread, &Register, KiWithWaitState(Register, WaitSuspendInProgress)));
    return TRUE;
}

/* A wait that is suspended, or being suspended or resumed, is Active: whoever ends it changes its state. */
static VOID KiMoveState(PKTHREAD Thread, KWAIT_STATE From, KWAIT_STATE To, ULONG Set, ULONG Clear)
{
    ULONG Register = KiReadRegister(Thread);
    while (KiStateOf(Register) == (ULONG)From &&
           !KiChangeRegister(Thread, &Register, KiWithWaitState((Register & ~Clear) | Set, To))) {
    }
}

VOID KiFinishSuspend(PKTHREAD Thread)
{
    ULONG Kept = Thread->WaitMode == UserMode ? KI_WAIT_SUSPENDED_USER_MODE : 0;
    if (Thread->WaitDeadline.Clock != HalNoDeadline) {
        Kept |= KI_WAIT_SUSPENDED_TIMER;
    }
    KiMoveState(Thread, WaitSuspendInProgress, WaitSuspended, Kept, 0);
}

BOOLEAN KiBeginResume(PKTHREAD Thread)
{
    if (KiStateOf(KiReadRegister(Thread)) != WaitSuspended) {
        return FALSE;
    }
    KiMoveState(Thread, WaitSuspended, WaitResumeInProgress, 0, 0);
    return TRUE;
}

VOID KiFinishResume(PKTHREAD Thread)
{
    KiMoveState(Thread, WaitResumeInProgress, WaitCommitted, 0, KI_WAIT_SUSPENDED_USER_MODE | KI_WAIT_SUSPENDED_TIMER);
    KiInterruptWait(Thread, 0, 0); /* what came while the thread was suspended */
}
