/*
 * addresswait.c: waiting for the value at an address to change; and the waiters of address waits and condition variables
 * (waiter.h).
 *
 * 1. No lost wakeup: a waiter enters the hash and then compares the value; a waker changes the value and then reads the
 *    hash. ExpMayHaveWaiters proves that one of the two sees the other.
 * 2. A wake of an empty bucket takes no lock. Otherwise it takes the longest waiter of the address or all of them
 *    out of the hash, under the lock of one bucket, and wakes them after that.
 * 3. Waiters of one address leave in the order in which they came. Waiters of other addresses in the bucket stay.
 * 4. A wake and a timeout that meet have one winner: waiter.h.
 * 5. Nothing is allocated, and only the waiter accesses the address: a wake does not.
 */
#include <interlock/rtl.h>

#include "waiter.h"

#include "../ke/debugdata.h"
#include "../ke/park.h"
#include "../ke/wait.h"

KD_REGISTER_LAYOUT(RtlpWaiterLayout, RTLP_WAITER_LAYOUT);

enum { RtlpAwake, RtlpAsleep, RtlpWoken };

VOID RtlpInitializeWaiter(PRTLP_WAITER Waiter, volatile VOID *Address, RTLP_WAIT_KIND Kind)
{
    Waiter->Waiter.Key = RtlpWaitKey(Address, Kind);
    Waiter->Thread = KiCurrentThread();
    Waiter->State = RtlpAwake;
}

VOID RtlpWakeTakenWaiters(PLIST_ENTRY Taken)
{
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Link = Taken->Flink; Link != Taken; Link = Next) {
        PRTLP_WAITER Waiter = CONTAINING_RECORD(Link, RTLP_WAITER, Waiter.Link);
        PKTHREAD Thread = Waiter->Thread;
        Next = Link->Flink;
        /* acq_rel: pairs with RtlpIsWoken and RtlpAwaitWake; the waiter may be gone afterwards */
        if (__atomic_exchange_n(&Waiter->State, RtlpWoken, __ATOMIC_ACQ_REL) == RtlpAsleep) {
            KeAlertThreadById(Thread);
        }
    }
}

static inline BOOLEAN RtlpIsWoken(PVOID Waiter)
{
    /* acquire: pairs with the exchange in RtlpWakeTakenWaiters */
    return __atomic_load_n(&((PRTLP_WAITER)Waiter)->State, __ATOMIC_ACQUIRE) == RtlpWoken;
}

/* For a waiter that is asleep. FALSE: its time is up, or its thread is being terminated. A stray alert does not extend a
   relative timeout. */
static BOOLEAN RtlpSleepUntilWoken(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout)
{
    ULONGLONG Deadline = 0;
    LARGE_INTEGER Left;
    if (Timeout != NULL && Timeout->QuadPart < 0) {
        Deadline = HalDispatch.QueryInterruptTime() + (0 - (ULONGLONG)Timeout->QuadPart);
    }
    while (KeWaitForAlertByThreadId(Waiter->Waiter.Key.Key, Timeout) == STATUS_ALERTED) {
        if (RtlpIsWoken(Waiter)) {
            return TRUE;
        }
        if (Deadline != 0) {
            ULONGLONG Now = HalDispatch.QueryInterruptTime();
            Left.QuadPart = Now < Deadline ? (LONGLONG)(Now - Deadline) : 0;
            Timeout = &Left;
        }
    }
    return FALSE;
}

NTSTATUS RtlpAwaitWake(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout, BOOLEAN (*TakeOut)(PRTLP_WAITER Waiter))
{
    ULONG Awake = RtlpAwake;
    if (RtlpIsWoken(Waiter) || KiParkUntil(Waiter->Thread, KiParkForAddress, RtlpIsWoken, Waiter)) {
        return STATUS_SUCCESS;
    }
    /* acq_rel: pairs with the exchange in RtlpWakeTakenWaiters */
    if (!__atomic_compare_exchange_n(&Waiter->State, &Awake, RtlpAsleep, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
        RtlpSleepUntilWoken(Waiter, Timeout)) {
        return STATUS_SUCCESS;
    }
    if (TakeOut(Waiter)) {
        return STATUS_TIMEOUT;
    }
    /* A waker has it. A thread that is being terminated does not sleep any more. */
    for (ULONG Round = 0; !RtlpSleepUntilWoken(Waiter, NULL) && !RtlpIsWoken(Waiter); Round += 1) {
        KiBackOff(Round);
    }
    return STATUS_SUCCESS;
}

/* Address waits. */

static BOOLEAN RtlpTakeOutAddressWait(PRTLP_WAITER Waiter)
{
    return ExpTakeWaiter(&Waiter->Waiter, Waiter->Thread);
}

static NTSTATUS RtlpWaitForChange(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                                  PLARGE_INTEGER Timeout)
{
    NTSTATUS Status = STATUS_SUCCESS;
    PKTHREAD Thread = KiCurrentThread();
    RTLP_WAITER Waiter;
    KiEnterService(Thread);
    RtlpInitializeWaiter(&Waiter, Address, RtlpAddressWait);
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Waiter.Waiter.Key, Thread);
    ExpInsertWaiter(Bucket, &Waiter.Waiter);
    ExpUnlockWaiters(Bucket, Thread);
    if (ExpIsSameValue(Address, CompareAddress, AddressSize)) {
        Status = RtlpAwaitWake(&Waiter, Timeout, RtlpTakeOutAddressWait);
    } else if (!RtlpTakeOutAddressWait(&Waiter)) {
        RtlpAwaitWake(&Waiter, NULL, RtlpTakeOutAddressWait);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, PLARGE_INTEGER Timeout)
{
    if (!ExpIsValueSize(AddressSize)) {
        return STATUS_INVALID_PARAMETER;
    }
    if (!ExpIsSameValue(Address, CompareAddress, AddressSize)) {
        return STATUS_SUCCESS;
    }
    if (Timeout != NULL && Timeout->QuadPart == 0) {
        return STATUS_TIMEOUT;
    }
    return RtlpWaitForChange(Address, CompareAddress, AddressSize, Timeout);
}

static DECLSPEC_NOINLINE VOID RtlpWakeAddressWaiters(PVOID Address, ULONG Most)
{
    EXP_WAIT_KEY Key = RtlpWaitKey(Address, RtlpAddressWait);
    PKTHREAD Thread = KiCurrentThread();
    LIST_ENTRY Taken;
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Key, Thread);
    ExpTakeWaiters(Bucket, &Key, Most, &Taken);
    ExpUnlockWaiters(Bucket, Thread);
    RtlpWakeTakenWaiters(&Taken);
}

FORCEINLINE VOID RtlpWakeAddress(PVOID Address, ULONG Most)
{
    EXP_WAIT_KEY Key = RtlpWaitKey(Address, RtlpAddressWait);
    if (Address == NULL || !ExpMayHaveWaiters(&Key)) {
        return;
    }
    RtlpWakeAddressWaiters(Address, Most);
}

VOID RtlWakeAddressSingle(PVOID Address)
{
    RtlpWakeAddress(Address, 1);
}

VOID RtlWakeAddressAll(PVOID Address)
{
    RtlpWakeAddress(Address, MAXULONG);
}

/* There is no fence to save: the read of the hash has to be a read-modify-write in any case. */

VOID RtlWakeAddressSingleNoFence(PVOID Address)
{
    RtlpWakeAddress(Address, 1);
}

VOID RtlWakeAddressAllNoFence(PVOID Address)
{
    RtlpWakeAddress(Address, MAXULONG);
}
