/*
 * fastmutex.c: fast mutexes and guarded mutexes.
 *
 * Count and the padding after it are one word:
 *
 *      63          53 52         35  34  33  32  31                              0
 *     +--------------+-------------+---+---+---+---------------------------------+
 *     |   overtaken  |   starving  | G | W | O |              Count              |
 *     +--------------+-------------+---+---+---+---------------------------------+
 *
 *     Count          1 - (1 if it is held) - (number of waiters): 1 free, 0 held, negative with waiters
 *     O, open        it has no owner, but has waiters
 *     W, woken       one waiter was woken and has not retried yet
 *     G, granted     it belongs to the woken waiter, which does not know yet
 *     starving       how many waiters have lost too often
 *     overtaken      how often others have acquired it since a waiter last did
 *
 * Always: O implies W; G implies W; O and G exclude each other; without waiters everything above Count is 0. The mutex is
 * held if Count is not 1 and O is clear.
 *
 * Count is as in NT, where an acquire decrements it, a release increments it, and a release that finds waiters hands the
 * mutex to the one that the event wakes. Once a thread waits, such a handoff costs a wakeup for every release: all
 * others arrive before the woken thread runs, and wait too. So here a release with waiters opens the mutex: the first
 * thread to try gets it, the woken waiter or a running thread. In two cases a release still hands off: when the waiters
 * have been overtaken EXP_MOST_OVERTAKEN times, which gives each thread its turn at the cost of few wakeups; and while
 * any waiter starves. A woken waiter that loses waits again, behind the others, and starves after EXP_MOST_LOST losses.
 * Handoffs follow the event's wait list, so a starving waiter gets the mutex after those that wait before it.
 *
 * Only the release that sets W sets the event, and W is set again only after the woken waiter has cleared it: two signals
 * never coincide.
 *
 * Requirements, each with a test of that number in tests/ex/fastmutex.c (10: forklocks.c):
 *  1. Exclusion.
 *  2. No lost wakeup: when it has waiters and no owner, one of them has been woken.
 *  3. Count has the documented values at every moment; Contention counts the acquires that waited.
 *  4. Acquiring raises to APC_LEVEL. The mutex keeps the old level, which is restored by the release. A try that fails
 *     leaves the level as it was. The Unsafe forms do not touch it.
 *  5. Bounded barging: see above, and a thread that passes waiters ends its turn, as with a pushlock (ke/fairness.h). In a
 *     crowd waiters sleep as soon as their spin has failed: the slowest of 64 threads gets 0.5 times the acquires of the
 *     fastest, instead of 0.4. (Handing off always was rejected: see above. So was never handing off: a waiter that
 *     has to be woken can lose to a running thread without limit.)
 *  6. A try never waits, and takes a mutex without owner and waiters.
 *  7. Nothing is allocated.
 *  8. After the compare-exchange that releases it the releaser does not access the mutex, unless it has waiters, which
 *     keep it alive: a waiter that was not woken does not return before the event is set.
 *  9. Free build: a recursive acquire deadlocks, as on NT; releasing a free mutex is a bugcheck. Verifier: both, and the
 *     release by another thread, a wrong level and enabled APCs, are bugchecks.
 * 10. In a forked child the waiters of the parent do not count. ForkDepth is that of the process to which the waiters
 *     belong; the first thread of the child that contends finds a different depth and forgets them.
 */
#include "exp.h"

#include "../ke/fairness.h"
#include "../ke/fork.h"
#include "../ke/irql.h"
#include "../ke/lockorder.h"
#include "../ke/park.h"
#include "../trace/trace.h"

#define EXP_FREE ((ULONG64)FM_LOCK_BIT)
#define EXP_HELD ((ULONG64)0)
#define EXP_OPEN ((ULONG64)1 << 32)
#define EXP_WOKEN ((ULONG64)2 << 32)
#define EXP_GRANTED ((ULONG64)4 << 32)
#define EXP_STARVING ((ULONG64)1 << 35) /* one starving waiter */
#define EXP_STARVING_MASK ((ULONG64)0x3ffff << 35)
#define EXP_OVERTAKEN ((ULONG64)1 << 53) /* one acquire past the waiters */
#define EXP_OVERTAKEN_MASK ((ULONG64)0x7ff << 53)
#define EXP_ABOVE_COUNT ((ULONG64)0xffffffff << 32)

#define EXP_MOST_LOST 8
#define EXP_MOST_OVERTAKEN 2000

C_ASSERT(KI_THREAD_CHUNK * KI_THREAD_CHUNKS <= EXP_STARVING_MASK / EXP_STARVING + 1);
C_ASSERT(EXP_MOST_OVERTAKEN < EXP_OVERTAKEN_MASK / EXP_OVERTAKEN);

#define EXP_ACQUIRED_AT_WRONG_IRQL 0x33
#define EXP_RELEASED_AT_WRONG_IRQL 0x34
#define EXP_ACQUIRED_WITH_APCS 0x39
#define EXP_RELEASED_WITH_APCS 0x3A
#define EXP_ACQUIRED_AGAIN 0x1000
#define EXP_RELEASED_BY_OTHER 0x1004
#define EXP_RELEASED_FREE 0x1007

typedef enum _EXP_LEVEL {
    ExpRaisesLevel,
    ExpKeepsLevel
} EXP_LEVEL;

FORCEINLINE volatile ULONG64 *ExpMutexWord(PFAST_MUTEX Mutex)
{
    return (volatile ULONG64 *)(volatile void *)&Mutex->Count;
}

/* On failure *Word is what the mutex holds now. acq_rel: an acquire pairs with the release before it. */
FORCEINLINE BOOLEAN ExpChangeMutex(PFAST_MUTEX Mutex, ULONG64 *Word, ULONG64 New)
{
    return __atomic_compare_exchange_n(ExpMutexWord(Mutex), Word, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static ULONG64 ExpReadMutex(PFAST_MUTEX Mutex)
{
    /* relaxed: a compare-exchange follows */
    return __atomic_load_n(ExpMutexWord(Mutex), __ATOMIC_RELAXED);
}

static LONG ExpMutexCount(ULONG64 Word)
{
    return (LONG)Word;
}

static ULONG64 ExpAddToMutexCount(ULONG64 Word, LONG Difference)
{
    return (Word & EXP_ABOVE_COUNT) | (ULONG)(ExpMutexCount(Word) + Difference);
}

/* relaxed: for the debugger, and for the verifier, which only compares it with the current thread */
FORCEINLINE VOID ExpSetMutexOwner(PFAST_MUTEX Mutex, PKTHREAD Owner)
{
    __atomic_store_n(&Mutex->Owner, Owner, __ATOMIC_RELAXED);
}

static PKTHREAD ExpMutexOwner(PFAST_MUTEX Mutex)
{
    return __atomic_load_n(&Mutex->Owner, __ATOMIC_RELAXED);
}

/* Requirement 10. */

static KI_LOCK ExpForgetWaitersLock;

/* TRUE: the waiters that the mutex had were those of a parent. Before a thread becomes a waiter, or wakes one. */
static BOOLEAN ExpForgetInheritedWaiters(PFAST_MUTEX Mutex)
{
    /* acquire: pairs with the release below, for a Count without those waiters */
    if (__builtin_expect(__atomic_load_n(&Mutex->ForkDepth, __ATOMIC_ACQUIRE) == KiForkDepth, TRUE)) {
        return FALSE;
    }
    PKTHREAD Thread = KiEnterLocked(&ExpForgetWaitersLock);
    ULONG Depth = __atomic_load_n(&Mutex->ForkDepth, __ATOMIC_RELAXED);
    if (Depth != KiForkDepth) {
        ULONG64 Word = ExpReadMutex(Mutex);
        BOOLEAN Held;
        if (KiIsDepthOfChild(Depth)) {
            KiForeignQueue((volatile ULONG_PTR *)(PVOID)Mutex, Word);
        }
        do {
            Held = ExpMutexCount(Word) != FM_LOCK_BIT && !(Word & (EXP_OPEN | EXP_GRANTED));
        } while (!ExpChangeMutex(Mutex, &Word, Held ? EXP_HELD : EXP_FREE));
        KeClearEvent(&Mutex->Event);
        __atomic_store_n(&Mutex->ForkDepth, KiForkDepth, __ATOMIC_RELEASE);
    }
    KiExitLocked(&ExpForgetWaitersLock, Thread);
    return TRUE;
}

/* Waiting. */

/* Takes a mutex that is free or open, past its waiters; the woken waiter takes one that is open or granted. */
static BOOLEAN ExpTakeMutex(PFAST_MUTEX Mutex, ULONG64 *Word, BOOLEAN Woken, ULONG64 Starving)
{
    while (Woken ? (*Word & (EXP_OPEN | EXP_GRANTED)) != 0 : *Word == EXP_FREE || (*Word & EXP_OPEN)) {
        ULONG64 New = EXP_HELD;
        if (Woken) {
            New = (*Word & ~(EXP_OPEN | EXP_GRANTED | EXP_WOKEN | EXP_OVERTAKEN_MASK)) - Starving;
        } else if (*Word != EXP_FREE) {
            New = ExpAddToMutexCount(*Word & ~EXP_OPEN, -1) + EXP_OVERTAKEN;
        }
        if (ExpChangeMutex(Mutex, Word, New)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* FALSE: it is time to sleep. An owner that waits for something itself cannot release, so spinning is pointless. */
static BOOLEAN ExpTakeMutexAwake(PKTHREAD Thread, PFAST_MUTEX Mutex, BOOLEAN Woken, ULONG64 Starving)
{
    KI_PATIENCE Patience;
    PKTHREAD Owner;
    KiBeginLockPatience(&Patience, Thread, KiParkForPushLock, TRUE);
    do {
        ULONG64 Word = ExpReadMutex(Mutex);
        if (ExpTakeMutex(Mutex, &Word, Woken, Starving)) {
            return TRUE;
        }
        Owner = ExpMutexOwner(Mutex);
        /* relaxed: a hint; the KTHREAD exists even if its thread has ended */
    } while ((Owner == NULL || __atomic_load_n(&Owner->State, __ATOMIC_RELAXED) != Waiting) &&
             KiStayAwake(&Patience, Thread, KiParkForPushLock));
    return FALSE;
}

static VOID ExpWaitForMutex(PKTHREAD Thread, PFAST_MUTEX Mutex, KWAIT_REASON Reason)
{
    ULONG64 Starving = 0;
    ULONG64 Word = ExpReadMutex(Mutex);
    do {
        if (ExpTakeMutex(Mutex, &Word, FALSE, 0)) {
            return;
        }
    } while (!ExpChangeMutex(Mutex, &Word, ExpAddToMutexCount(Word, -1))); /* then the thread is a waiter */
    /* relaxed: a statistic */
    __atomic_fetch_add(&Mutex->Contention, 1, __ATOMIC_RELAXED);
    for (ULONG Lost = 1;; Lost += 1) {
        ULONG64 NewlyStarving = Lost == EXP_MOST_LOST ? EXP_STARVING : 0;
        KeWaitForSingleObject(&Mutex->Event, Reason, KernelMode, FALSE, NULL);
        if (ExpTakeMutexAwake(Thread, Mutex, TRUE, Starving)) {
            return;
        }
        Word = ExpReadMutex(Mutex);
        do {
            if (ExpTakeMutex(Mutex, &Word, TRUE, Starving)) {
                return;
            }
            /* It has lost: it is no longer the woken waiter, and waits again. */
        } while (!ExpChangeMutex(Mutex, &Word, (Word & ~EXP_WOKEN) + NewlyStarving));
        Starving += NewlyStarving;
    }
}

/* 0: it has no owner, or one that has not recorded itself yet. */
static ULONG ExpMutexOwnerId(PFAST_MUTEX Mutex)
{
    PKTHREAD Owner = ExpMutexOwner(Mutex);
    return Owner != NULL ? __atomic_load_n(&Owner->ThreadId, __ATOMIC_RELAXED) : 0;
}

static DECLSPEC_NOINLINE VOID ExpContendForMutex(PFAST_MUTEX Mutex, KWAIT_REASON Reason)
{
    KI_LOCK_KIND Kind = Reason == WrFastMutex ? KiLockFastMutex : KiLockGuardedMutex;
    PKTHREAD Thread = KiCurrentThread();
    KTRACE_CONTENTION_BEGIN(Mutex, Kind, TRUE, ExpMutexOwnerId(Mutex));
    KiCountContention(Thread);
    ExpForgetInheritedWaiters(Mutex);
    if (!ExpTakeMutexAwake(Thread, Mutex, FALSE, 0)) {
        ExpWaitForMutex(Thread, Mutex, Reason);
    }
    KTRACE_CONTENTION_END(Mutex, Kind, TRUE);
}

static DECLSPEC_NOINLINE VOID ExpReleaseContendedMutex(PFAST_MUTEX Mutex, ULONG64 Word, KI_LOCK_KIND Kind)
{
    BOOLEAN Yields = KiCountPass(KiCurrentThread(), Mutex);
    ULONG64 New;
    KTRACE_RELEASING(Mutex, Kind, TRUE, KiCurrentThread());
    if (ExpForgetInheritedWaiters(Mutex)) {
        Word = ExpReadMutex(Mutex);
    }
    do {
        if (ExpMutexCount(Word) > 0 || (Word & (EXP_OPEN | EXP_GRANTED))) {
            KeBugCheckEx(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, (ULONG_PTR)KiCurrentThread(), (ULONG_PTR)Mutex, 0, 0);
        }
        New = ExpAddToMutexCount(Word, 1);
        if (New != EXP_FREE) {
            BOOLEAN HandsOff = (Word & EXP_STARVING_MASK) != 0 ||
                               (Word & EXP_OVERTAKEN_MASK) >= EXP_MOST_OVERTAKEN * EXP_OVERTAKEN;
            New |= EXP_WOKEN | (HandsOff ? EXP_GRANTED : EXP_OPEN);
        }
    } while (!ExpChangeMutex(Mutex, &Word, New));
    if (New != EXP_FREE && !(Word & EXP_WOKEN)) {
        KeSetEventBoostPriority(&Mutex->Event, NULL);
    }
    KTRACE_RELEASED(TRUE);
    KiEndPass(KiCurrentThread(), Yields, TRUE);
}

/* The verifier. */

static DECLSPEC_NORETURN VOID ExpMutexViolation(ULONG_PTR Kind, ULONG_PTR Second, ULONG_PTR Third, ULONG_PTR Fourth)
{
    KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, Kind, Second, Third, Fourth);
}

static VOID ExpVerifyMutexLevel(PKTHREAD Thread, PFAST_MUTEX Mutex, EXP_LEVEL Level, ULONG_PTR WrongLevel,
                           ULONG_PTR ApcsEnabled)
{
    KIRQL Irql = Thread->Irql;
    BOOLEAN Acquires = WrongLevel == EXP_ACQUIRED_AT_WRONG_IRQL;
    if (Irql > APC_LEVEL || (Level == ExpRaisesLevel && !Acquires && Irql != APC_LEVEL)) {
        ExpMutexViolation(WrongLevel, Irql, (ULONG_PTR)Mutex, 0);
    }
    if (Level == ExpKeepsLevel && Irql < APC_LEVEL && Thread->KernelApcDisable == 0 && Thread->SpecialApcDisable == 0) {
        ExpMutexViolation(ApcsEnabled, Irql, 0, (ULONG_PTR)Mutex);
    }
}

static DECLSPEC_NOINLINE VOID ExpVerifyMutexRelease(PKTHREAD Thread, PFAST_MUTEX Mutex, EXP_LEVEL Level)
{
    PKTHREAD Owner = ExpMutexOwner(Mutex);
    if (Owner == NULL) {
        ExpMutexViolation(EXP_RELEASED_FREE, (ULONG_PTR)Mutex, 0, 0);
    }
    if (Owner != Thread) {
        ExpMutexViolation(EXP_RELEASED_BY_OTHER, (ULONG_PTR)Mutex, (ULONG_PTR)Owner, (ULONG_PTR)Thread);
    }
    ExpVerifyMutexLevel(Thread, Mutex, Level, EXP_RELEASED_AT_WRONG_IRQL, EXP_RELEASED_WITH_APCS);
    KiOrderRelease(Thread, Mutex);
}

/* The operations, under both names. */

FORCEINLINE VOID ExpOwnFastMutex(PKTHREAD Thread, PFAST_MUTEX Mutex, KWAIT_REASON Reason, EXP_LEVEL Level)
{
    ULONG64 Word = EXP_FREE;
    KIRQL OldIrql = PASSIVE_LEVEL;
    if (Level == ExpRaisesLevel) {
        OldIrql = KiRaiseIrql(Thread, APC_LEVEL);
    }
    if (__builtin_expect(!ExpChangeMutex(Mutex, &Word, EXP_HELD), 0)) {
        ExpContendForMutex(Mutex, Reason);
    }
    ExpSetMutexOwner(Mutex, Thread);
    if (Level == ExpRaisesLevel) {
        Mutex->OldIrql = OldIrql;
    }
}

static DECLSPEC_NOINLINE VOID ExpAcquireVerifiedMutex(PKTHREAD Thread, PFAST_MUTEX Mutex, KWAIT_REASON Reason,
                                                      EXP_LEVEL Level, PVOID Site)
{
    ExpVerifyMutexLevel(Thread, Mutex, Level, EXP_ACQUIRED_AT_WRONG_IRQL, EXP_ACQUIRED_WITH_APCS);
    if (ExpMutexOwner(Mutex) == Thread) {
        ExpMutexViolation(EXP_ACQUIRED_AGAIN, (ULONG_PTR)Mutex, (ULONG_PTR)Thread, 0);
    }
    KiOrderCheck(Thread, Mutex, KiOrderFastMutex, KiOrderExclusive);
    ExpOwnFastMutex(Thread, Mutex, Reason, Level);
    KiOrderHold(Thread, Mutex, KiOrderFastMutex, KiOrderExclusive, Site);
}

FORCEINLINE VOID ExpAcquireFastMutex(PFAST_MUTEX Mutex, KWAIT_REASON Reason, EXP_LEVEL Level)
{
    PKTHREAD Thread = KiCurrentThread();
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpAcquireVerifiedMutex(Thread, Mutex, Reason, Level, __builtin_return_address(0));
    } else {
        ExpOwnFastMutex(Thread, Mutex, Reason, Level);
    }
}

FORCEINLINE BOOLEAN ExpTryOwnFastMutex(PKTHREAD Thread, PFAST_MUTEX Mutex)
{
    ULONG64 Word = EXP_FREE;
    KIRQL OldIrql = KiRaiseIrql(Thread, APC_LEVEL);
    if (!ExpChangeMutex(Mutex, &Word, EXP_HELD)) {
        Word = EXP_FREE;
        if (!ExpForgetInheritedWaiters(Mutex) || !ExpChangeMutex(Mutex, &Word, EXP_HELD)) {
            KiLowerIrql(Thread, OldIrql);
            return FALSE;
        }
    }
    ExpSetMutexOwner(Mutex, Thread);
    Mutex->OldIrql = OldIrql;
    return TRUE;
}

static DECLSPEC_NOINLINE BOOLEAN ExpTryVerifiedMutex(PKTHREAD Thread, PFAST_MUTEX Mutex, PVOID Site)
{
    ExpVerifyMutexLevel(Thread, Mutex, ExpRaisesLevel, EXP_ACQUIRED_AT_WRONG_IRQL, 0);
    BOOLEAN Acquired = ExpTryOwnFastMutex(Thread, Mutex);
    if (Acquired) {
        KiOrderHold(Thread, Mutex, KiOrderFastMutex, KiOrderExclusive, Site);
    }
    return Acquired;
}

FORCEINLINE BOOLEAN ExpTryAcquireFastMutex(PFAST_MUTEX Mutex)
{
    PKTHREAD Thread = KiCurrentThread();
    return __builtin_expect(KiVerifierEnabled, FALSE)
               ? ExpTryVerifiedMutex(Thread, Mutex, __builtin_return_address(0))
               : ExpTryOwnFastMutex(Thread, Mutex);
}

FORCEINLINE VOID ExpReleaseFastMutex(PFAST_MUTEX Mutex, KI_LOCK_KIND Kind, EXP_LEVEL Level)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Word = EXP_HELD;
    KIRQL OldIrql = PASSIVE_LEVEL;
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpVerifyMutexRelease(Thread, Mutex, Level);
    }
    if (Level == ExpRaisesLevel) {
        OldIrql = (KIRQL)Mutex->OldIrql;
    }
    ExpSetMutexOwner(Mutex, NULL);
    if (__builtin_expect(!ExpChangeMutex(Mutex, &Word, EXP_FREE), 0)) {
        ExpReleaseContendedMutex(Mutex, Word, Kind);
    }
    if (Level == ExpRaisesLevel) {
        KiLowerIrql(Thread, OldIrql);
    }
}

VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex)
{
    ExpAcquireFastMutex(FastMutex, WrFastMutex, ExpRaisesLevel);
}

VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex)
{
    ExpReleaseFastMutex(FastMutex, KiLockFastMutex, ExpRaisesLevel);
}

BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex)
{
    return ExpTryAcquireFastMutex(FastMutex);
}

VOID ExAcquireFastMutexUnsafe(PFAST_MUTEX FastMutex)
{
    ExpAcquireFastMutex(FastMutex, WrFastMutex, ExpKeepsLevel);
}

VOID ExReleaseFastMutexUnsafe(PFAST_MUTEX FastMutex)
{
    ExpReleaseFastMutex(FastMutex, KiLockFastMutex, ExpKeepsLevel);
}

VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX GuardedMutex)
{
    ExInitializeFastMutex(GuardedMutex);
    if (KiVerifierEnabled) {
        KiOrderInitialize(GuardedMutex, KiOrderFastMutex);
    }
}

VOID ExpNoteFastMutex(PFAST_MUTEX FastMutex)
{
    if (KiVerifierEnabled) {
        KiOrderInitialize(FastMutex, KiOrderFastMutex);
    }
}

VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX GuardedMutex)
{
    ExpAcquireFastMutex(GuardedMutex, WrGuardedMutex, ExpRaisesLevel);
}

VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX GuardedMutex)
{
    ExpReleaseFastMutex(GuardedMutex, KiLockGuardedMutex, ExpRaisesLevel);
}

BOOLEAN KeTryToAcquireGuardedMutex(PKGUARDED_MUTEX GuardedMutex)
{
    return ExpTryAcquireFastMutex(GuardedMutex);
}

VOID KeAcquireGuardedMutexUnsafe(PKGUARDED_MUTEX GuardedMutex)
{
    ExpAcquireFastMutex(GuardedMutex, WrGuardedMutex, ExpKeepsLevel);
}

VOID KeReleaseGuardedMutexUnsafe(PKGUARDED_MUTEX GuardedMutex)
{
    ExpReleaseFastMutex(GuardedMutex, KiLockGuardedMutex, ExpKeepsLevel);
}
