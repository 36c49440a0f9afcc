/* register.c: every change of a wait status register. The word and its invariants are in ki.h. */
#include "wait.h"

FORCEINLINE ULONG KiReadRegister(PKTHREAD Thread)
{
    return __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
}

/* acq_rel: the thread that ends a wait sees the waiter's blocks, and the waiter sees what led to the end */
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

/* Ending a wait. */

/* The caller has locked an object of the wait, so it is still the same wait when it is claimed. */
ULONG KiEndWait(PKTHREAD Thread, LONG_PTR Status)
{
    ULONG Register = KiReadRegister(Thread);
    ULONG New;
    if (__builtin_expect(Register & KI_WAIT_OUTSIDE, 0)) {
        if (!KiClaimOutside(Thread)) {
            return KI_NOT_ENDED;
        }
        Register = KiReadRegister(Thread);
    }
    do {
        New = Register & ~KI_WAIT_ACTIVE;
        if (New == Register) {
            return KI_NOT_ENDED;
        }
        switch (KiStateOf(Register)) {
        case WaitInProgress:
            New = KiWithWaitState(New, WaitAborted);
            break;
        case WaitCommitted:
            break;
        case WaitResumeInProgress:
            New = KiWithWaitState(New, WaitResumeAborted);
            break;
        default:
            return KI_NOT_ENDED; /* suspended: its blocks are being unlinked, no object reaches it */
        }
    } while (!KiChangeRegister(Thread, &Register, New));
    Thread->WaitStatus = Status;
    return KiStateOf(Register);
}

BOOLEAN KiEndOwnWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    if (__builtin_expect(Register & KI_WAIT_OUTSIDE, 0)) {
        if (!KiClaimOutside(Thread)) {
            return FALSE;
        }
        Register = KiReadRegister(Thread);
    }
    do {
        if (!(Register & KI_WAIT_ACTIVE) ||
            (KiStateOf(Register) != WaitInProgress && KiStateOf(Register) != WaitCommitted)) {
            return FALSE;
        }
    } while (!KiChangeRegister(Thread, &Register, Register & ~KI_WAIT_ACTIVE));
    return TRUE;
}

BOOLEAN KiEndGrantedWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    do {
        if (!(Register & KI_WAIT_ACTIVE)) {
            return FALSE;
        }
    } while (!KiChangeRegister(Thread, &Register, Register & ~KI_WAIT_ACTIVE));
    return TRUE;
}

/* Interruptions. */

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
static NTSTATUS KiChooseAlert(ULONG Register, ULONG HowIssued, ULONG *New)
{
    KPROCESSOR_MODE Mode = (HowIssued & KI_WAIT_USER_MODE) ? UserMode : KernelMode;
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

FORCEINLINE NTSTATUS KiPendingAlert(ULONG Register, ULONG HowIssued, ULONG *New)
{
    return HowIssued & KI_WAIT_ALERTABLE ? KiChooseAlert(Register, HowIssued, New) : STATUS_PENDING;
}

/* A thread that is about to exit ends its wait as for a user APC, alertable or not: the waiting service returns. */
static BOOLEAN KiExitInterrupts(ULONG Register, ULONG HowIssued)
{
    return (Register & KI_WAIT_EXIT) && (HowIssued & KI_WAIT_EXIT_OK);
}

BOOLEAN KiGivesUpWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    return KiExitInterrupts(Register, Register);
}

/* All pending bits. */
#define KI_WAIT_INTERRUPTIONS                                                                                          \
    (KI_WAIT_APC | KI_WAIT_USER_APC | KI_WAIT_ALERTED(KernelMode) | KI_WAIT_ALERTED(UserMode) |                        \
     KI_WAIT_ALERT_BY_ID_PENDING | KI_WAIT_EXIT)

static NTSTATUS KiChooseInterruption(ULONG Register, ULONG *New)
{
    ULONG SpecialApc = Register & (KI_WAIT_SPECIAL_APC | KI_WAIT_SPECIAL_APC_OK);
    if (KiExitInterrupts(Register, Register)) {
        return STATUS_USER_APC;
    }
    if ((Register & KI_WAIT_APC) && ((Register & KI_WAIT_NORMAL_APC_OK) ||
                                     SpecialApc == (KI_WAIT_SPECIAL_APC | KI_WAIT_SPECIAL_APC_OK))) {
        return STATUS_KERNEL_APC;
    }
    if ((Register & KI_WAIT_ALERT_BY_ID) && (Register & KI_WAIT_ALERT_BY_ID_PENDING)) {
        *New &= ~KI_WAIT_ALERT_BY_ID_PENDING;
        return STATUS_ALERTED;
    }
    return KiPendingAlert(Register, Register, New);
}

/* What ends the wait that Register shows, or STATUS_PENDING. */
FORCEINLINE NTSTATUS KiPendingInterruption(ULONG Register, ULONG *New)
{
    return Register & KI_WAIT_INTERRUPTIONS ? KiChooseInterruption(Register, New) : STATUS_PENDING;
}

/* Rule 4 of outside.h. */
static KI_OUTSIDE_CLAIM KiClaimInterrupted(PKTHREAD Thread, ULONG Register)
{
    /* acquire, both: the number is not older than the register that shows the wait, and the register is read again
       after the number */
    if (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE) != Register) {
        return KiOutsideOtherWait;
    }
    ULONG64 Number = __atomic_load_n(&Thread->OutsideNumber, __ATOMIC_ACQUIRE);
    return KiReadRegister(Thread) == Register ? KiOutsideOperations->Claim(Thread, Number) : KiOutsideOtherWait;
}

/* A claimed wait ends, even if the APC that interrupted it has been removed meanwhile. Then it begins again. */
static NTSTATUS KiClaimedInterruption(ULONG Register, ULONG *New)
{
    NTSTATUS Status = KiPendingInterruption(Register, New);
    return Status != STATUS_PENDING ? Status : STATUS_KERNEL_APC;
}

/* KiInterruptWait, where Pending interrupts a wait with outside objects. A wait that is being granted is left alone, with the
   bits pending. The thread may begin its next wait, with the same register, between the claim and the change: that one ends,
   unclaimed. If the world grants it meanwhile, its thread puts an alert back (KiFinishOutsideWait). */
static DECLSPEC_NOINLINE ULONG KiInterruptOutsideWait(PKTHREAD Thread, ULONG Pending, KPRIORITY Increment)
{
    const ULONG Interruptible = KI_WAIT_ACTIVE | KI_WAIT_OUTSIDE;
    ULONG Register = KiReadRegister(Thread);
    while ((Register & Interruptible) == Interruptible && KiStateOf(Register) == WaitCommitted) {
        KI_OUTSIDE_CLAIM Claim = KiClaimInterrupted(Thread, Register);
        ULONG New = Register | Pending;
        NTSTATUS Status = STATUS_PENDING;
        if (Claim == KiOutsideOtherWait) {
            break;
        }
        if (Claim == KiOutsideClaimed) {
            Status = KiClaimedInterruption(New, &New);
            New &= ~KI_WAIT_ACTIVE;
        }
        if (KiChangeRegister(Thread, &Register, New)) {
            if (Status != STATUS_PENDING) {
                Thread->WaitStatus = Status;
                KiReadyThread(Thread, Increment);
            }
            return Register;
        }
    }
    return KiInterruptWait(Thread, Pending, Increment);
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
                if (Register & KI_WAIT_OUTSIDE) {
                    return KiInterruptOutsideWait(Thread, Pending, Increment);
                }
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
    /* relaxed: the bit only says that something changed; it does not publish the change */
    while ((Register & KI_WAIT_ACTIVE) &&
           !__atomic_compare_exchange_n(&Thread->WaitRegister, &Register, Register | Change, TRUE, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

/* Alerts, taken by the thread itself. */

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

NTSTATUS KiTakeInterruption(PKTHREAD Thread, ULONG HowIssued)
{
    return KiExitInterrupts(KiReadRegister(Thread), HowIssued) ? STATUS_USER_APC : KiTakeAlert(Thread, HowIssued);
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
    /* acquire: pairs with KiInterruptWait, which set the bit */
    __atomic_and_fetch(&Thread->WaitRegister, ~KI_WAIT_ALERT_BY_ID_PENDING, __ATOMIC_ACQUIRE);
    return TRUE;
}

/* Beginning and committing a wait. */

#define KI_WAIT_ISSUED                                                                                                 \
    (KI_WAIT_ALERTABLE | KI_WAIT_USER_MODE | KI_WAIT_SPECIAL_APC_OK | KI_WAIT_NORMAL_APC_OK | KI_WAIT_ALERT_BY_ID |    \
     KI_WAIT_SUSPENDED_USER_MODE | KI_WAIT_SUSPENDED_TIMER | KI_WAIT_LIGHT | KI_WAIT_EXIT_OK | KI_WAIT_OUTSIDE)

NTSTATUS KiBeginWait(PKTHREAD Thread, ULONG HowIssued)
{
    ULONG Register = KiReadRegister(Thread);
    /* relaxed: no other thread accesses the word before the wait is Active, which the compare-exchange publishes */
    __atomic_store_n(&Thread->WakeWord, KI_AWAKE, __ATOMIC_RELAXED);
    for (;;) {
        ULONG New = KiWithWaitState((Register & ~KI_WAIT_ISSUED) | HowIssued, WaitInProgress);
        /* A thread that is about to exit, and whose wait was interrupted and begins again, consumes nothing. */
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

static DECLSPEC_NOINLINE NTSTATUS KiCommitInterruptedWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    BOOLEAN Claimed = FALSE;
    while (Register & KI_WAIT_ACTIVE) {
        ULONG New = Register;
        NTSTATUS Status = KiPendingInterruption(Register, &New);
        if (__builtin_expect((Register & KI_WAIT_OUTSIDE) != 0, FALSE) && (Claimed || Status != STATUS_PENDING)) {
            New = Register;
            Claimed = KiClaimOutside(Thread);
            Status = Claimed ? KiClaimedInterruption(Register, &New) : STATUS_PENDING;
        }
        New = Status == STATUS_PENDING ? KiWithWaitState(New, WaitCommitted)
                                       : KiWithWaitState(New & ~KI_WAIT_ACTIVE, WaitAborted);
        if (KiChangeRegister(Thread, &Register, New)) {
            return Status;
        }
    }
    return STATUS_WAIT_0; /* a signal has aborted it; the result is in WaitStatus */
}

NTSTATUS KiCommitWait(PKTHREAD Thread)
{
    ULONG Register = KiReadRegister(Thread);
    if ((Register & (KI_WAIT_ACTIVE | KI_WAIT_INTERRUPTIONS | KI_WAIT_OUTSIDE)) == KI_WAIT_ACTIVE &&
        KiChangeRegister(Thread, &Register, KiWithWaitState(Register, WaitCommitted))) {
        return STATUS_PENDING;
    }
    return KiCommitInterruptedWait(Thread);
}

/* Lightweight suspension. */

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

/* A wait that is suspended, or being suspended or resumed, is Active: the thread that ends it changes its state. */
static BOOLEAN KiMoveState(PKTHREAD Thread, KWAIT_STATE From, KWAIT_STATE To, ULONG Set, ULONG Clear)
{
    ULONG Register = KiReadRegister(Thread);
    do {
        if (KiStateOf(Register) != (ULONG)From) {
            return FALSE;
        }
    } while (!KiChangeRegister(Thread, &Register, KiWithWaitState((Register & ~Clear) | Set, To)));
    return TRUE;
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
    return KiMoveState(Thread, WaitSuspended, WaitResumeInProgress, 0, 0);
}

VOID KiFinishResume(PKTHREAD Thread)
{
    KiMoveState(Thread, WaitResumeInProgress, WaitCommitted, 0, KI_WAIT_SUSPENDED_USER_MODE | KI_WAIT_SUSPENDED_TIMER);
    KiInterruptWait(Thread, 0, 0); /* interruptions that arrived while the thread was suspended */
}
