/* waiter.c: a thread that waits in the waiter hash and sleeps until it is alerted. The theory is in waiter.h. */
#include "waiter.h"

#include "../ke/debugdata.h"
#include "../ke/wait.h"

KD_REGISTER_LAYOUT(RtlpWaiterLayout, RTLP_WAITER_LAYOUT);

#define RTLP_WAIT_ON_ADDRESS_SPIN_CYCLES 1024

enum { RtlpAwake, RtlpAsleep, RtlpTold };

VOID RtlpInitializeWaiter(PRTLP_WAITER Waiter, volatile VOID *Address, RTLP_WAIT_KIND Kind)
{
    Waiter->Waiter.Key = RtlpWaitKey(Address, Kind);
    Waiter->Thread = KiCurrentThread();
    Waiter->State = RtlpAwake;
}

static BOOLEAN RtlpIsTold(PRTLP_WAITER Waiter)
{
    /* acquire: pairs with the exchange in RtlpTell */
    return __atomic_load_n(&Waiter->State, __ATOMIC_ACQUIRE) == RtlpTold;
}

static VOID RtlpTell(PRTLP_WAITER Waiter)
{
    PKTHREAD Thread = Waiter->Thread;
    /* acq_rel: pairs with RtlpIsTold and RtlpFallAsleep; the waiter may be gone afterwards */
    if (__atomic_exchange_n(&Waiter->State, RtlpTold, __ATOMIC_ACQ_REL) == RtlpAsleep) {
        KeAlertThreadById(Thread);
    }
}

VOID RtlpTellWaiters(PLIST_ENTRY Taken)
{
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Link = Taken->Flink; Link != Taken; Link = Next) {
        Next = Link->Flink;
        RtlpTell(CONTAINING_RECORD(Link, RTLP_WAITER, Waiter.Link));
    }
}

static BOOLEAN RtlpSpinForTell(PRTLP_WAITER Waiter)
{
    ULONG Left = KiMaySpin(Waiter->Thread) ? HalSpinsForCycles(RTLP_WAIT_ON_ADDRESS_SPIN_CYCLES) : 0;
    while (Left != 0 && !RtlpIsTold(Waiter)) {
        Left -= 1;
        HalPause();
    }
    return RtlpIsTold(Waiter);
}

/* FALSE: it was told already. */
static BOOLEAN RtlpFallAsleep(PRTLP_WAITER Waiter)
{
    ULONG Awake = RtlpAwake;
    /* acq_rel: pairs with the exchange in RtlpTell */
    return __atomic_compare_exchange_n(&Waiter->State, &Awake, RtlpAsleep, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static BOOLEAN RtlpIsRelative(PLARGE_INTEGER Timeout)
{
    return Timeout != NULL && Timeout->QuadPart < 0;
}

/* What is left until Deadline, as a relative timeout. */
static LARGE_INTEGER RtlpTimeLeft(ULONGLONG Deadline)
{
    ULONGLONG Now = HalDispatch.QueryInterruptTime();
    return (LARGE_INTEGER){.QuadPart = Now < Deadline ? (LONGLONG)(Now - Deadline) : 0};
}

/* For a waiter that is asleep. FALSE: its time is up, or its thread is to end. */
static BOOLEAN RtlpAwaitAlertInTime(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout)
{
    ULONGLONG Deadline = 0;
    LARGE_INTEGER Left;
    if (RtlpIsRelative(Timeout)) {
        Deadline = HalDispatch.QueryInterruptTime() + (0 - (ULONGLONG)Timeout->QuadPart);
    }
    while (KeWaitForAlertByThreadId(Waiter->Waiter.Key.Key, Timeout) == STATUS_ALERTED) {
        if (RtlpIsTold(Waiter)) {
            return TRUE;
        }
        if (Deadline != 0) {
            Left = RtlpTimeLeft(Deadline);
            Timeout = &Left;
        }
    }
    return FALSE;
}

/* For a waiter that is asleep and about to be told. A thread that is to end does not sleep any more: it gives way. */
static VOID RtlpAwaitAlert(PRTLP_WAITER Waiter)
{
    ULONG Round = 0;
    do {
        if (KeWaitForAlertByThreadId(Waiter->Waiter.Key.Key, NULL) != STATUS_ALERTED) {
            HalLongSpin(Round);
            Round += 1;
        }
    } while (!RtlpIsTold(Waiter));
}

NTSTATUS RtlpAwaitTell(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout, BOOLEAN (*TakeOut)(PRTLP_WAITER Waiter))
{
    if (RtlpSpinForTell(Waiter) || !RtlpFallAsleep(Waiter) || RtlpAwaitAlertInTime(Waiter, Timeout)) {
        return STATUS_SUCCESS;
    }
    if (TakeOut(Waiter)) {
        return STATUS_TIMEOUT;
    }
    RtlpAwaitAlert(Waiter);
    return STATUS_SUCCESS;
}
