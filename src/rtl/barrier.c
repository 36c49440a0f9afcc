/*
 * barrier.c: barriers: TotalThreads threads wait for each other, round after round.
 *
 * Reserved1 and Reserved2 are one word:
 *
 *      63                            32 31                             0
 *     +--------------------------------+--------------------------------+
 *     |             round              |      missing in this round     |
 *     +--------------------------------+--------------------------------+
 *
 * A thread that arrives decrements the missing count. The last one begins the next round in the same compare-exchange,
 * so the count is never 0, and a thread that returns early counts for the next round. The others sleep on the half with
 * the round.
 *
 * Requirements, each with a test of that number in tests/rtl/barrier.c:
 *  1. No thread leaves a round before all have arrived, and what each did before is visible to all afterwards.
 *  2. Exactly one thread of each round returns TRUE.
 *  3. Deleting waits until all threads that have arrived have left; then no thread accesses the barrier any more.
 *     Inside counts them, except those with NO_DELETE. (The last to leave may still search for sleepers, but only by
 *     the address.)
 *  4. Nothing is allocated, so only bad arguments fail.
 *  5. (tests/ex/forklocks.c) In a forked child the threads that stayed behind have not arrived: the round begins again with
 *     all threads missing, and deleting waits for threads of the child only.
 */
#include <interlock/rtl.h>

#include "rtlp.h"

#include "../ke/fork.h"
#include "../ke/park.h"

#define RTLP_DEFAULT_BARRIER_SPIN 2000
#define RTLP_ROUND ((ULONG64)1 << 32)
#define RTLP_DELETING 0x80000000u /* in Inside: a thread waits for the others to leave */

typedef struct _RTLP_BARRIER {
    __extension__ union {
        volatile ULONG64 State;
        __extension__ struct {
            volatile ULONG Missing;
            volatile ULONG Round;
        };
    };
    volatile ULONG Inside;
    volatile ULONG ForkDepth; /* KiForkDepth when the rest was valid */
    ULONG Unused[2];
    ULONG TotalThreads;
    ULONG SpinCount;
} RTLP_BARRIER, *PRTLP_BARRIER;

C_ASSERT(sizeof(RTLP_BARRIER) == sizeof(RTL_BARRIER));
C_ASSERT(FIELD_OFFSET(RTLP_BARRIER, Inside) == FIELD_OFFSET(RTL_BARRIER, Reserved3));
C_ASSERT(FIELD_OFFSET(RTLP_BARRIER, TotalThreads) == FIELD_OFFSET(RTL_BARRIER, Reserved4));

static KI_LOCK RtlpForgetArrivalsLock;

/* Requirement 5. */
static DECLSPEC_NOINLINE VOID RtlpForgetInheritedArrivals(PRTLP_BARRIER Barrier)
{
    PKTHREAD Thread = KiEnterLocked(&RtlpForgetArrivalsLock);
    ULONG Depth = __atomic_load_n(&Barrier->ForkDepth, __ATOMIC_RELAXED);
    if (Depth != KiForkDepth) {
        ULONG64 State = __atomic_load_n(&Barrier->State, __ATOMIC_RELAXED);
        if (KiIsDepthOfChild(Depth)) {
            KiForeignQueue((volatile ULONG_PTR *)&Barrier->State, State);
        }
        __atomic_store_n(&Barrier->State, (State & ~(RTLP_ROUND - 1)) + Barrier->TotalThreads, __ATOMIC_RELAXED);
        __atomic_store_n(&Barrier->Inside, 0, __ATOMIC_RELAXED);
        /* release: pairs with the acquire in RtlpBarrierOf */
        __atomic_store_n(&Barrier->ForkDepth, KiForkDepth, __ATOMIC_RELEASE);
    }
    KiExitLocked(&RtlpForgetArrivalsLock, Thread);
}

/* An initialized barrier, before it is used. */
FORCEINLINE PRTLP_BARRIER RtlpBarrierOf(PRTL_BARRIER PublicBarrier)
{
    PRTLP_BARRIER Barrier = (PRTLP_BARRIER)(PVOID)PublicBarrier;
    /* acquire: for a state without the arrivals of a parent; pairs with RtlpForgetInheritedArrivals */
    if (__builtin_expect(__atomic_load_n(&Barrier->ForkDepth, __ATOMIC_ACQUIRE) != KiForkDepth, FALSE)) {
        RtlpForgetInheritedArrivals(Barrier);
    }
    return Barrier;
}

NTSTATUS RtlInitBarrier(PRTL_BARRIER Barrier, ULONG TotalThreads, ULONG SpinCount)
{
    if (TotalThreads == 0) {
        return STATUS_INVALID_PARAMETER_2;
    }
    *(PRTLP_BARRIER)(PVOID)Barrier = (RTLP_BARRIER){
        .State = TotalThreads,
        .ForkDepth = KiForkDepth,
        .TotalThreads = TotalThreads,
        .SpinCount = SpinCount == MAXULONG ? RTLP_DEFAULT_BARRIER_SPIN : SpinCount,
    };
    return STATUS_SUCCESS;
}

typedef struct _RTLP_ROUND_WAIT {
    PRTLP_BARRIER Barrier;
    ULONG Round;
} RTLP_ROUND_WAIT;

static inline BOOLEAN RtlpIsRoundOver(PVOID Context)
{
    RTLP_ROUND_WAIT *Wait = Context;
    /* acquire: pairs with the last one in RtlpPassBarrier */
    return __atomic_load_n(&Wait->Barrier->State, __ATOMIC_ACQUIRE) >> 32 != Wait->Round;
}

/* Spins for the barrier's SpinCount, unless it may only block; then sleeps, unless it may only spin. */
static VOID RtlpAwaitRound(PRTLP_BARRIER Barrier, ULONG Round, ULONG Flags)
{
    RTLP_ROUND_WAIT Wait = {Barrier, Round};
    BOOLEAN BlocksOnly = (Flags & RTL_BARRIER_FLAGS_BLOCK_ONLY) != 0;
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, NULL, KiParkForBarrier);
    KiSpinFor(&Patience, BlocksOnly ? 0 : Barrier->SpinCount);
    while (!RtlpIsRoundOver(&Wait)) {
        if (KiStayAwake(&Patience, NULL, KiParkForBarrier)) {
            continue;
        }
        if ((Flags & RTL_BARRIER_FLAGS_SPIN_ONLY) && !BlocksOnly) {
            KiParkUntil(NULL, KiParkForOther, RtlpIsRoundOver, &Wait);
        } else {
            RtlpWaitOnAddress(&Barrier->Round, &Round, sizeof(Round), NULL);
        }
    }
}

static BOOLEAN RtlpPassBarrier(PRTLP_BARRIER Barrier, ULONG Flags)
{
    ULONG64 Old = __atomic_load_n(&Barrier->State, __ATOMIC_RELAXED);
    ULONG64 New;
    do {
        New = (ULONG)Old == 1 ? (Old & ~(RTLP_ROUND - 1)) + RTLP_ROUND + Barrier->TotalThreads : Old - 1;
        /* acq_rel: the last one sees what all before it did, and they see what it did by RtlpIsRoundOver */
    } while (!__atomic_compare_exchange_n(&Barrier->State, &Old, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    BOOLEAN Last = (ULONG)Old == 1;
    if (Last) {
        RtlWakeAddressAll((PVOID)&Barrier->Round);
    } else {
        RtlpAwaitRound(Barrier, (ULONG)(Old >> 32), Flags);
    }
    return Last;
}

static VOID RtlpCheckBarrierFlags(ULONG Flags)
{
    if (Flags & ~(ULONG)(RTL_BARRIER_FLAGS_SPIN_ONLY | RTL_BARRIER_FLAGS_BLOCK_ONLY | RTL_BARRIER_FLAGS_NO_DELETE)) {
        RtlRaiseStatus(STATUS_INVALID_PARAMETER_2);
    }
}

BOOLEAN RtlBarrierForDelete(PRTL_BARRIER PublicBarrier, ULONG Flags)
{
    RtlpCheckBarrierFlags(Flags);
    PRTLP_BARRIER Barrier = RtlpBarrierOf(PublicBarrier);
    /* relaxed: a thread that deletes has seen this round in the word, and this comes before that */
    __atomic_add_fetch(&Barrier->Inside, 1, __ATOMIC_RELAXED);
    BOOLEAN Last = RtlpPassBarrier(Barrier, Flags);
    /* release: pairs with the acquires in RtlDeleteBarrier */
    if (__atomic_sub_fetch(&Barrier->Inside, 1, __ATOMIC_RELEASE) == RTLP_DELETING) {
        RtlWakeAddressAll((PVOID)&Barrier->Inside);
    }
    return Last;
}

BOOLEAN RtlBarrier(PRTL_BARRIER Barrier, ULONG Flags)
{
    RtlpCheckBarrierFlags(Flags);
    return Flags & RTL_BARRIER_FLAGS_NO_DELETE ? RtlpPassBarrier(RtlpBarrierOf(Barrier), Flags)
                                               : RtlBarrierForDelete(Barrier, Flags);
}

NTSTATUS RtlDeleteBarrier(PRTL_BARRIER Barrier)
{
    volatile ULONG *Inside = &RtlpBarrierOf(Barrier)->Inside;
    /* acquire, both: pair with the release in RtlBarrierForDelete */
    ULONG Left = __atomic_or_fetch(Inside, RTLP_DELETING, __ATOMIC_ACQUIRE);
    while (Left != RTLP_DELETING) {
        RtlpWaitOnAddress(Inside, &Left, sizeof(Left), NULL);
        Left = __atomic_load_n(Inside, __ATOMIC_ACQUIRE);
    }
    return STATUS_SUCCESS;
}
