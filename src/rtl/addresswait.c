/*
 * addresswait.c: waiting for the value at an address to change.
 *
 * 1. No lost wake: a waiter enters the hash and then looks at the value; who changes the value then looks into the
 *    hash. ExpMayHaveWaiters proves that one of the two sees the other.
 * 2. A wake with nobody in the bucket takes no lock. With waiters it takes out of the hash, under the lock of one
 *    bucket, the longest waiter of the address or all of them, and tells them after it.
 * 3. Waiters of one address leave in the order in which they came. Waiters of other addresses in the bucket stay.
 * 4. A wake and a timeout that meet have one winner: waiter.h.
 * 5. Nothing is allocated, and the address is looked at only by the one who waits: a wake does not touch it.
 */
#include <interlock/rtl.h>

#include "waiter.h"

#include "../ex/addressvalue.h"

static VOID RtlpEnterAddressWait(PRTLP_WAITER Waiter, volatile VOID *Address)
{
    RtlpInitializeWaiter(Waiter, Address, RtlpAddressWait);
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Waiter->Waiter.Key, Waiter->Thread);
    ExpInsertWaiter(Bucket, &Waiter->Waiter);
    ExpUnlockWaiters(Bucket, Waiter->Thread);
}

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
    RtlpEnterAddressWait(&Waiter, Address);
    if (ExpIsSameValue(Address, CompareAddress, AddressSize)) {
        Status = RtlpAwaitTell(&Waiter, Timeout, RtlpTakeOutAddressWait);
    } else if (!RtlpTakeOutAddressWait(&Waiter)) {
        RtlpAwaitTell(&Waiter, NULL, RtlpTakeOutAddressWait);
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

static DECLSPEC_NOINLINE VOID RtlpWakeWaiters(PVOID Address, ULONG Most)
{
    EXP_WAIT_KEY Key = RtlpWaitKey(Address, RtlpAddressWait);
    PKTHREAD Thread = KiCurrentThread();
    LIST_ENTRY Taken;
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Key, Thread);
    ExpTakeWaiters(Bucket, &Key, Most, &Taken);
    ExpUnlockWaiters(Bucket, Thread);
    RtlpTellWaiters(&Taken);
}

FORCEINLINE VOID RtlpWakeAddress(PVOID Address, ULONG Most)
{
    EXP_WAIT_KEY Key = RtlpWaitKey(Address, RtlpAddressWait);
    if (Address == NULL || !ExpMayHaveWaiters(&Key)) {
        return;
    }
    RtlpWakeWaiters(Address, Most);
}

VOID RtlWakeAddressSingle(PVOID Address)
{
    RtlpWakeAddress(Address, 1);
}

VOID RtlWakeAddressAll(PVOID Address)
{
    RtlpWakeAddress(Address, MAXULONG);
}

/* There is no fence to spare: the look into the hash has to be a read-modify-write in any case. */

VOID RtlWakeAddressSingleNoFence(PVOID Address)
{
    RtlpWakeAddress(Address, 1);
}

VOID RtlWakeAddressAllNoFence(PVOID Address)
{
    RtlpWakeAddress(Address, MAXULONG);
}
