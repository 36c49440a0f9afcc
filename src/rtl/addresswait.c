/*
 * addresswait.c: waiting for the value at an address to change; and the waiters of address waits and condition variables
 * (rtlp.h).
 *
 * 1. No lost wakeup: a waiter enters the hash and then compares the value; a waker changes the value and then reads the
 *    hash. ExpMayHaveWaiters proves that one of the two sees the other; for quiet buckets 6 does.
 * 2. A wake of an empty bucket takes no lock. Otherwise it removes the oldest waiter of the address, or all of them,
 *    from the hash under the lock of one bucket, and wakes them afterwards.
 * 3. Waiters of one address leave in the order of arrival. Waiters of other addresses in the bucket stay.
 * 4. A wake that races with a timeout has one winner: rtlp.h.
 * 5. Nothing is allocated, and only the waiter accesses the address: a wake does not.
 *
 * Quiet buckets. There must be a barrier between the waker's store and its check of the hash, or a barrier on all
 * threads between the waiter's entry and its comparison. The waker's barrier costs every wake, even one without waiters;
 * the waiter's is a system call, which costs up to a thousand times as much. So a bucket begins with the waker's, and
 * becomes quiet after RTLP_QUIET_AFTER wakes without a waiter: from then on a wake is one plain load, inline in the caller
 * (RtlpIsAddressQuiet), until the next waiter ends the quiet with a barrier on all threads. For any mix of waits and
 * wakes, this costs at most twice the better of the two.
 * 6. A bucket becomes quiet under its lock, without waiters in it; a waiter ends the quiet under the lock, when it enters.
 *    So a waiter whose entry is in the bucket never compares while the bucket is quiet. But a waker may have read that
 *    it is quiet while its own store is not yet visible. The barrier on all threads comes after the end of the quiet
 *    and before the comparison: a waker that passes it before its load finds the bucket not quiet, and one that passes
 *    it after its load has made its store visible to the comparison.
 * 7. Later waiters of a bucket that is not quiet also compare after that barrier. QuietsEnded counts the ends, and
 *    BarrierMade is the last one whose barrier is complete; a waiter that finds the two different executes a barrier
 *    itself. A late store of an older count to BarrierMade only costs another barrier.
 * 8. Without a barrier on all threads (KiDispatcherFence) no bucket becomes quiet.
 */
#include <interlock/rtl.h>

#include "rtlp.h"

#include "../ke/debugdata.h"
#include "../ke/park.h"
#include "../ke/wait.h"

KD_REGISTER_LAYOUT(RtlpWaiterLayout, RTLP_WAITER_LAYOUT);

enum { RtlpAwake, RtlpAsleep, RtlpWoken };

/* A bucket has one number, here and inline in programs. */
C_ASSERT(RTLP_ADDRESS_BUCKETS == EXP_WAITER_BUCKETS && RTLP_ADDRESS_BUCKET_SHIFT == EXP_WAITER_BUCKET_SHIFT &&
         RTLP_ADDRESS_HASH == EXP_WAITER_HASH);

volatile UCHAR RtlpQuietAddresses[RTLP_ADDRESS_BUCKETS];

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
        /* acq_rel: pairs with RtlpIsWoken and RtlpAwaitWake; the waiter may be invalid afterwards */
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

/* For a waiter that is asleep. FALSE: it timed out, or its thread is being terminated. A stray alert does not extend a
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

BOOLEAN RtlpSpinForWake(PRTLP_WAITER Waiter)
{
    return RtlpIsWoken(Waiter) || KiParkUntil(Waiter->Thread, KiParkForAddress, RtlpIsWoken, Waiter);
}

NTSTATUS RtlpAwaitWake(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout, BOOLEAN (*TakeOut)(PRTLP_WAITER Waiter))
{
    ULONG Awake = RtlpAwake;
    /* acq_rel: pairs with the exchange in RtlpWakeTakenWaiters */
    if (!__atomic_compare_exchange_n(&Waiter->State, &Awake, RtlpAsleep, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
        RtlpSleepUntilWoken(Waiter, Timeout)) {
        return STATUS_SUCCESS;
    }
    if (TakeOut(Waiter)) {
        return STATUS_TIMEOUT;
    }
    /* A waker has removed it. A thread that is being terminated no longer sleeps. */
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

static volatile UCHAR *RtlpQuietOf(PEXP_WAITER_BUCKET Bucket)
{
    return &RtlpQuietAddresses[Bucket - ExpWaiterTable];
}

/* Enters the hash, with the barrier that the waiter's comparison relies on: requirements 6 and 7. */
static VOID RtlpEnterAddressWait(PRTLP_WAITER Waiter)
{
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Waiter->Waiter.Key, Waiter->Thread);
    /* relaxed, both: only written under the lock; the barrier below orders the store */
    if (__atomic_load_n(RtlpQuietOf(Bucket), __ATOMIC_RELAXED)) {
        __atomic_store_n(RtlpQuietOf(Bucket), FALSE, __ATOMIC_RELAXED);
        Bucket->QuietsEnded += 1;
    }
    ULONG QuietsEnded = Bucket->QuietsEnded;
    /* relaxed: advisory only */
    __atomic_store_n(&Bucket->VainWakes, 0, __ATOMIC_RELAXED);
    ExpInsertWaiter(Bucket, &Waiter->Waiter);
    ExpUnlockWaiters(Bucket, Waiter->Thread);
    /* acquire: pairs with the release below, so that the comparison comes after that barrier */
    if (__builtin_expect(__atomic_load_n(&Bucket->BarrierMade, __ATOMIC_ACQUIRE) != QuietsEnded, FALSE)) {
        HalBarrierAllThreads();
        __atomic_store_n(&Bucket->BarrierMade, QuietsEnded, __ATOMIC_RELEASE);
    }
}

static NTSTATUS RtlpWaitForChange(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                                  PLARGE_INTEGER Timeout, BOOLEAN Spins)
{
    NTSTATUS Status = STATUS_SUCCESS;
    PKTHREAD Thread = KiCurrentThread();
    RTLP_WAITER Waiter;
    KiEnterService(Thread);
    RtlpInitializeWaiter(&Waiter, Address, RtlpAddressWait);
    RtlpEnterAddressWait(&Waiter);
    if (ExpIsSameValue(Address, CompareAddress, AddressSize)) {
        if (!Spins || !RtlpSpinForWake(&Waiter)) {
            Status = RtlpAwaitWake(&Waiter, Timeout, RtlpTakeOutAddressWait);
        }
    } else if (!RtlpTakeOutAddressWait(&Waiter)) {
        RtlpAwaitWake(&Waiter, NULL, RtlpTakeOutAddressWait);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlpWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, PLARGE_INTEGER Timeout)
{
    return RtlpWaitForChange(Address, CompareAddress, AddressSize, Timeout, TRUE);
}

typedef struct _RTLP_COMPARISON {
    volatile VOID *Address;
    PVOID CompareAddress;
    SIZE_T AddressSize;
} RTLP_COMPARISON, *PRTLP_COMPARISON;

static inline BOOLEAN RtlpHasChanged(PVOID Context)
{
    PRTLP_COMPARISON Comparison = Context;
    return !ExpIsSameValue(Comparison->Address, Comparison->CompareAddress, Comparison->AddressSize);
}

/* Spins for the value before it enters the hash: an early change then costs one cache-line transfer, and its wake finds
   no waiter. A wake without a change finds no waiter either, as if it had happened before the call. */
NTSTATUS RtlWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, PLARGE_INTEGER Timeout)
{
    RTLP_COMPARISON Comparison = {Address, CompareAddress, AddressSize};
    if (!ExpIsValueSize(AddressSize)) {
        return STATUS_INVALID_PARAMETER;
    }
    if (RtlpHasChanged(&Comparison)) {
        return STATUS_SUCCESS;
    }
    if (Timeout != NULL && Timeout->QuadPart == 0) {
        return STATUS_TIMEOUT;
    }
    if (KiParkUntil(KiCurrentThread(), KiParkForAddress, RtlpHasChanged, &Comparison)) {
        return STATUS_SUCCESS;
    }
    return RtlpWaitForChange(Address, CompareAddress, AddressSize, Timeout, FALSE);
}

static DECLSPEC_NOINLINE VOID RtlpWakeAddressWaiters(const EXP_WAIT_KEY *Key, ULONG Most)
{
    PKTHREAD Thread = KiCurrentThread();
    LIST_ENTRY Taken;
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(Key, Thread);
    ExpTakeWaiters(Bucket, Key, Most, &Taken);
    ExpUnlockWaiters(Bucket, Thread);
    RtlpWakeTakenWaiters(&Taken);
}

static DECLSPEC_NOINLINE VOID RtlpBeginQuiet(const EXP_WAIT_KEY *Key)
{
    PKTHREAD Thread = KiCurrentThread();
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(Key, Thread);
    if (Bucket->Count == 0) {
        /* relaxed: a later waiter reads it under the lock, and a waker need not see it yet */
        __atomic_store_n(RtlpQuietOf(Bucket), TRUE, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&Bucket->VainWakes, 0, __ATOMIC_RELAXED);
    ExpUnlockWaiters(Bucket, Thread);
}

FORCEINLINE VOID RtlpWakeAddress(PVOID Address, ULONG Most)
{
    EXP_WAIT_KEY Key = RtlpWaitKey(Address, RtlpAddressWait);
    if (Address == NULL) {
        return;
    }
    if (ExpMayHaveWaiters(&Key)) {
        RtlpWakeAddressWaiters(&Key, Most);
        return;
    }
    PEXP_WAITER_BUCKET Bucket = ExpBucketOf(&Key);
    /* relaxed, both: advisory only, and a lost count delays the quiet */
    ULONG VainWakes = __atomic_load_n(&Bucket->VainWakes, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&Bucket->VainWakes, VainWakes, __ATOMIC_RELAXED);
    if (__builtin_expect(VainWakes >= RTLP_QUIET_AFTER, FALSE) && !KiDispatcherFence) {
        RtlpBeginQuiet(&Key);
    }
}

VOID RtlpWakeAddressSingle(PVOID Address)
{
    RtlpWakeAddress(Address, 1);
}

VOID RtlpWakeAddressAll(PVOID Address)
{
    RtlpWakeAddress(Address, MAXULONG);
}

/* The external definitions of the header's inline functions. */
extern BOOLEAN RtlpIsAddressQuiet(PVOID Address);
extern VOID RtlWakeAddressSingle(PVOID Address);
extern VOID RtlWakeAddressSingleNoFence(PVOID Address);
extern VOID RtlWakeAddressAll(PVOID Address);
extern VOID RtlWakeAddressAllNoFence(PVOID Address);
