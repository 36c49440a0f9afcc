/* rtlp.h: what the user-mode runtime shares: each thread's data, and waiters in the waiter hash. */
#ifndef INTERLOCK_RTLP_H
#define INTERLOCK_RTLP_H

#include <interlock/rtl.h>

#include "../ex/waiterhash.h"

/* A thread's room. Zeroed when a thread begins; only the thread itself touches it. */
KI_THREAD_ROOM(TEB, Rtl, RtlpTeb);

FORCEINLINE PTEB RtlpCurrentTeb(VOID)
{
    return RtlpTeb(KiCurrentThread());
}

/*
 * A thread that waits in the waiter hash and sleeps until it is alerted: address waits and condition variables.
 *
 * State goes from awake to woken, or from awake to asleep to woken:
 *
 * 1. The thread that removes a waiter from the hash wakes it: it exchanges State, which is its last access, and alerts
 *    the waiter's thread if the waiter was asleep.
 * 2. A sleeping waiter does not leave before that alert, and a waiter that is awake gets none: no alert is left over. A
 *    stray alert changes nothing, not even the deadline.
 * 3. NT marks a block that has timed out by a compare-exchange, so that a concurrent wake notices it. Here presence in
 *    the hash is the mark: the thread that removes the waiter, the waiter itself or a waker, has decided. A waiter that
 *    finds itself removed sleeps again, without a timeout, until it is woken.
 */

/* The kinds of waits on an address. Keyed events share the hash; their keys have an object. */
typedef enum _RTLP_WAIT_KIND { RtlpAddressWait, RtlpConditionWait } RTLP_WAIT_KIND;

typedef struct _RTLP_WAITER {
    EXP_WAITER Waiter;
    PKTHREAD Thread;
    volatile ULONG State;
} RTLP_WAITER, *PRTLP_WAITER;

/* Read by the debugger. */
#define RTLP_WAITER_LAYOUT                                                                                             \
    sizeof(RTLP_WAITER), KDP_MEMBER(RTLP_WAITER, Waiter), KDP_MEMBER(RTLP_WAITER, Thread), RtlpAddressWait,            \
        RtlpConditionWait

FORCEINLINE EXP_WAIT_KEY RtlpWaitKey(volatile VOID *Address, RTLP_WAIT_KIND Kind)
{
    return (EXP_WAIT_KEY){.Key = (PVOID)Address, .Process = &KiInitialProcess, .Kind = (ULONG)Kind};
}

VOID RtlpInitializeWaiter(PRTLP_WAITER Waiter, volatile VOID *Address, RTLP_WAIT_KIND Kind);

/* For a waiter that has entered the hash. TRUE: it was woken during the spin. */
BOOLEAN RtlpSpinForWake(PRTLP_WAITER Waiter);

/*
 * For a waiter that has entered the hash, and has spun. STATUS_TIMEOUT: TakeOut has removed it. From before it enters
 * until it is removed the thread is in a system service (KiEnterService): if the thread is terminated, the wait ends
 * and the waiter is removed, so a terminated thread never consumes a wakeup.
 */
NTSTATUS RtlpAwaitWake(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout, BOOLEAN (*TakeOut)(PRTLP_WAITER Waiter));

VOID RtlpWakeTakenWaiters(PLIST_ENTRY Taken); /* what ExpTakeWaiters has collected, with no bucket locked */

/* After this many wakes without a waiter a bucket is quiet (addresswait.c). That many locked operations on an
   uncontended line, 4 to 8 ns each, take as long as a barrier on all threads: 0.4 us alone, 5 us with other running
   threads. */
#define RTLP_QUIET_AFTER 1024

/* RtlWaitOnAddress for a caller that has already spun for the value: it spins for a wake only. */
NTSTATUS RtlpWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, PLARGE_INTEGER Timeout);

#endif
