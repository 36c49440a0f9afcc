/*
 * waiter.h: a thread that waits in the waiter hash and sleeps until it is alerted. Address waits and condition
 * variables are both this.
 *
 * State goes from awake to told, or from awake to asleep to told:
 *
 * 1. Who takes a waiter out of the hash tells it: exchanges State, which is its last touch, and if the waiter was
 *    asleep alerts its thread.
 * 2. A waiter that is asleep when it is told does not leave before that alert, and one that is not asleep gets none: no
 *    alert is left over. One that is stray changes nothing, not even the deadline.
 * 3. NT marks a block whose time is up by a compare-exchange, so that a wake that comes at the same moment is found
 *    out. Here the mark is that the waiter is in the hash: who takes it out, the waiter itself or a wake, has decided.
 *    A waiter that finds itself out sleeps a second time, without a timeout, until it is told.
 */
#ifndef INTERLOCK_RTL_WAITER_H
#define INTERLOCK_RTL_WAITER_H

#include "../ex/waiterhash.h"

/* What an address is waited on for. Keyed events share the hash; theirs are the keys with an object. */
typedef enum _RTLP_WAIT_KIND { RtlpAddressWait, RtlpConditionWait } RTLP_WAIT_KIND;

typedef struct _RTLP_WAITER {
    EXP_WAITER Waiter;
    PKTHREAD Thread;
    volatile ULONG State;
} RTLP_WAITER, *PRTLP_WAITER;

/* What a debugger reads of it. */
#define RTLP_WAITER_LAYOUT                                                                                             \
    sizeof(RTLP_WAITER), KDP_MEMBER(RTLP_WAITER, Waiter), KDP_MEMBER(RTLP_WAITER, Thread), RtlpAddressWait,            \
        RtlpConditionWait

FORCEINLINE EXP_WAIT_KEY RtlpWaitKey(volatile VOID *Address, RTLP_WAIT_KIND Kind)
{
    return (EXP_WAIT_KEY){.Key = (PVOID)Address, .Process = &KiInitialProcess, .Kind = (ULONG)Kind};
}

VOID RtlpInitializeWaiter(PRTLP_WAITER Waiter, volatile VOID *Address, RTLP_WAIT_KIND Kind);

/*
 * For a waiter that has been in the hash. STATUS_TIMEOUT: TakeOut has taken it out. From before it is in the hash until
 * it is out the thread is in a system service (KiEnterService): if somebody ends the thread, the wait is over, the
 * waiter comes out, and no wake is lost on the dead.
 */
NTSTATUS RtlpAwaitTell(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout, BOOLEAN (*TakeOut)(PRTLP_WAITER Waiter));

VOID RtlpTellWaiters(PLIST_ENTRY Taken); /* what ExpTakeWaiters has collected, with no bucket locked */

#endif
