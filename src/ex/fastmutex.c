/*
 * fastmutex.c: fast mutexes and guarded mutexes.
 *
 * Count and the gap behind it are one word:
 *
 *      63          53 52         35  34  33  32  31                              0
 *     +--------------+-------------+---+---+---+---------------------------------+
 *     |   overtaken  |   starving  | G | W | O |              Count              |
 *     +--------------+-------------+---+---+---+---------------------------------+
 *
 *     Count          1 - (1 if somebody holds it) - (number of waiters): 1 free, 0 held, negative with waiters
 *     O, open        nobody holds it, though somebody waits
 *     W, woken       one waiter has been woken and is on its way
 *     G, granted     the mutex belongs to the woken waiter, who does not know yet
 *     starving       how many of the waiters have come too late too often
 *     overtaken      how often others have come first since a waiter last got it
 *
 * Always: O implies W; G implies W; O and G exclude each other; with no waiters everything above Count is 0. The mutex
 * is held if Count is not 1 and O is clear.
 *
 * Count is what it is in NT, where an acquire decrements it, a release increments it, and a release that finds waiters
 * hands the mutex to the one that the event wakes. Handing over costs a wake for every release as soon as somebody
 * waits once: all the others come while the woken one is still on its way, and wait too. So here a release with waiters
 * opens the mutex: it belongs to whoever comes first, the waiter that it woke or a thread that runs anyway. Now and
 * then a release hands over all the same: when the waiters have been overtaken EXP_MOST_OVERTAKEN times, which gives
 * each thread its turn at the cost of few wakes; and as long as anybody starves. A waiter that was woken and came too
 * late waits again, behind the others, and after EXP_MOST_LOSSES times it starves. Handing over is in the order of the
 * event's wait list, so a starving waiter gets the mutex after those that wait before it.
 *
 * The event is set only by the release that sets W, and who sets W again comes after the one who was woken has cleared
 * it: two signals never fall together.
 *
 * Requirements, each with a test of that number in tests/ex/fastmutex.c:
 *  1. Exclusion.
 *  2. No lost wake: when nobody holds it and somebody waits, somebody is on its way.
 *  3. Count has the documented values at every moment; Contention counts the acquires that waited.
 *  4. Acquiring raises to APC_LEVEL, the old level is kept in the mutex and is there again after the release. A try
 *     that fails leaves the level as it was. The Unsafe forms do not touch it.
 *  5. Bounded overtaking: see above. (Handing over always was rejected: see above. Never handing over too: a waiter
 *     that has to be woken loses against a thread that runs for as long as that one likes.)
 *  6. A try never waits, and takes a mutex that is free of holders and waiters.
 *  7. Nothing is allocated.
 *  8. After the compare-exchange that releases it nobody touches the mutex on behalf of the releaser, unless somebody
 *     waits and so keeps it alive: a waiter that is not on its way cannot get on before the event is set.
 *  9. Free build: acquiring it again deadlocks, as on NT; releasing what nobody holds is a bugcheck. Verifier: both,
 *     and the release by another thread, a wrong level and enabled APCs, are bugchecks.
 */
#include "exp.h"
#include "pushlock.h"

#include "../ke/irql.h"
#include "../trace/trace.h"
#include "../ke/turn.h"

#define EXP_FREE ((ULONG64)FM_LOCK_BIT)
#define EXP_HELD ((ULONG64)0)
#define EXP_OPEN ((ULONG64)1 << 32)
#define EXP_WOKEN ((ULONG64)2 << 32)
#define EXP_GRANTED ((ULONG64)4 << 32)
#define EXP_STARVING ((ULONG64)1 << 35) /* one of them */
#define EXP_STARVING_MASK ((ULONG64)0x3ffff << 35)
#define EXP_OVERTAKEN ((ULONG64)1 << 53) /* once */
#define EXP_OVERTAKEN_MASK ((ULONG64)0x7ff << 53)
#define EXP_ABOVE_COUNT ((ULONG64)0xffffffff << 32)

#define EXP_MOST_LOSSES 8
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

FORCEINLINE volatile ULONG64 *ExpWord(PFAST_MUTEX Mutex)
{
    return (volatile ULONG64 *)(volatile void *)&Mutex->Count;
}

/* On failure *Word is what the mutex holds now. acq_rel: an acquire pairs with the release before it. */
FORCEINLINE BOOLEAN ExpChangeWord(PFAST_MUTEX Mutex, ULONG64 *Word, ULONG64 New)
{
    return __atomic_compare_exchange_n(ExpWord(Mutex), Word, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static ULONG64 ExpReadWord(PFAST_MUTEX Mutex)
{
    /* relaxed: a look before the compare-exchange */
    return __atomic_load_n(ExpWord(Mutex), __ATOMIC_RELAXED);
}

static LONG ExpCount(ULONG64 Word)
{
    return (LONG)Word;
}

static ULONG64 ExpAddToCount(ULONG64 Word, LONG Difference)
{
    return (Word & EXP_ABOVE_COUNT) | (ULONG)(ExpCount(Word) + Difference);
}

/* relaxed: Owner is for the debugger and the verifier, who ask whether it is the thread that asks */
FORCEINLINE VOID ExpSetOwner(PFAST_MUTEX Mutex, PKTHREAD Owner)
{
    __atomic_store_n(&Mutex->Owner, Owner, __ATOMIC_RELAXED);
}

static PKTHREAD ExpOwner(PFAST_MUTEX Mutex)
{
    return __atomic_load_n(&Mutex->Owner, __ATOMIC_RELAXED);
}

/* Waiting. */

/* A mutex that is free or open is taken, past whoever waits. */
static BOOLEAN ExpTakeInPassing(PFAST_MUTEX Mutex, ULONG64 *Word)
{
    while (*Word == EXP_FREE || (*Word & EXP_OPEN)) {
        ULONG64 New = *Word == EXP_FREE ? EXP_HELD : ExpAddToCount(*Word & ~EXP_OPEN, -1) + EXP_OVERTAKEN;
        if (ExpChangeWord(Mutex, Word, New)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* The owner cannot release while it waits for something itself. */
static BOOLEAN ExpOwnerWaits(PFAST_MUTEX Mutex)
{
    PKTHREAD Owner = ExpOwner(Mutex);
    /* relaxed: a guess; the KTHREAD is there though its thread may have ended */
    return Owner != NULL && __atomic_load_n(&Owner->State, __ATOMIC_RELAXED) == Waiting;
}

static BOOLEAN ExpTakeWhileAwake(PFAST_MUTEX Mutex)
{
    EXP_PATIENCE Patience = ExpFreshPatience(FALSE);
    do {
        ULONG64 Word = ExpReadWord(Mutex);
        if (ExpTakeInPassing(Mutex, &Word)) {
            return TRUE;
        }
    } while (!ExpOwnerWaits(Mutex) && ExpStayAwake(&Patience));
    return FALSE;
}

/* FALSE: the thread is a waiter now. */
static BOOLEAN ExpTakeOrEnter(PFAST_MUTEX Mutex)
{
    ULONG64 Word = ExpReadWord(Mutex);
    do {
        if (ExpTakeInPassing(Mutex, &Word)) {
            return TRUE;
        }
    } while (!ExpChangeWord(Mutex, &Word, ExpAddToCount(Word, -1)));
    return FALSE;
}

/* By the woken waiter: the mutex was granted or is open, and becomes its own. */
static BOOLEAN ExpClaim(PFAST_MUTEX Mutex, ULONG64 *Word, ULONG64 Starving)
{
    while (*Word & (EXP_OPEN | EXP_GRANTED)) {
        ULONG64 New = *Word & ~(EXP_OPEN | EXP_GRANTED | EXP_WOKEN | EXP_OVERTAKEN_MASK);
        if (ExpChangeWord(Mutex, Word, New - Starving)) {
            return TRUE;
        }
    }
    return FALSE;
}

static BOOLEAN ExpClaimWhileAwake(PFAST_MUTEX Mutex, ULONG64 Starving)
{
    EXP_PATIENCE Patience = ExpFreshPatience(FALSE);
    do {
        ULONG64 Word = ExpReadWord(Mutex);
        if (ExpClaim(Mutex, &Word, Starving)) {
            return TRUE;
        }
    } while (!ExpOwnerWaits(Mutex) && ExpStayAwake(&Patience));
    return FALSE;
}

/* FALSE: came too late; the waiter is no longer the woken one, and waits again. */
static BOOLEAN ExpClaimOrLose(PFAST_MUTEX Mutex, ULONG64 Starving, ULONG64 NewlyStarving)
{
    ULONG64 Word = ExpReadWord(Mutex);
    do {
        if (ExpClaim(Mutex, &Word, Starving)) {
            return TRUE;
        }
    } while (!ExpChangeWord(Mutex, &Word, (Word & ~EXP_WOKEN) + NewlyStarving));
    return FALSE;
}

static VOID ExpTakeContended(PFAST_MUTEX Mutex, KWAIT_REASON Reason)
{
    ULONG64 Starving = 0;
    KiCountWait(KiCurrentThread());
    if (ExpTakeWhileAwake(Mutex) || ExpTakeOrEnter(Mutex)) {
        return;
    }
    /* relaxed: a statistic */
    __atomic_fetch_add(&Mutex->Contention, 1, __ATOMIC_RELAXED);
    for (ULONG Lost = 1;; Lost += 1) {
        ULONG64 NewlyStarving = Lost == EXP_MOST_LOSSES ? EXP_STARVING : 0;
        KeWaitForSingleObject(&Mutex->Event, Reason, KernelMode, FALSE, NULL);
        if (ExpClaimWhileAwake(Mutex, Starving) || ExpClaimOrLose(Mutex, Starving, NewlyStarving)) {
            return;
        }
        Starving += NewlyStarving;
    }
}

/* The id of whoever has it, 0: nobody, or somebody who does not say so yet. */
static ULONG ExpOwnerId(PFAST_MUTEX Mutex)
{
    PKTHREAD Owner = ExpOwner(Mutex);
    return Owner != NULL ? __atomic_load_n(&Owner->ThreadId, __ATOMIC_RELAXED) : 0;
}

static DECLSPEC_NOINLINE VOID ExpContend(PFAST_MUTEX Mutex, KWAIT_REASON Reason)
{
    KI_LOCK_KIND Kind = Reason == WrFastMutex ? KiLockFastMutex : KiLockGuardedMutex;
    KTRACE_CONTENTION_BEGIN(Mutex, Kind, TRUE, ExpOwnerId(Mutex));
    ExpTakeContended(Mutex, Reason);
    KTRACE_CONTENTION_END(Mutex, Kind, TRUE);
}

static BOOLEAN ExpMustHandOver(ULONG64 Word)
{
    return (Word & EXP_STARVING_MASK) != 0 || (Word & EXP_OVERTAKEN_MASK) >= EXP_MOST_OVERTAKEN * EXP_OVERTAKEN;
}

static DECLSPEC_NOINLINE VOID ExpReleaseContended(PFAST_MUTEX Mutex, ULONG64 Word)
{
    ULONG64 New;
    do {
        if (ExpCount(Word) > 0 || (Word & (EXP_OPEN | EXP_GRANTED))) {
            KeBugCheckEx(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, (ULONG_PTR)KiCurrentThread(), (ULONG_PTR)Mutex, 0, 0);
        }
        New = ExpAddToCount(Word, 1);
        if (New != EXP_FREE) {
            New |= EXP_WOKEN | (ExpMustHandOver(Word) ? EXP_GRANTED : EXP_OPEN);
        }
    } while (!ExpChangeWord(Mutex, &Word, New));
    if (New != EXP_FREE && !(Word & EXP_WOKEN)) {
        KeSetEventBoostPriority(&Mutex->Event, NULL);
    }
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

static DECLSPEC_NOINLINE VOID ExpVerifyMutexAcquire(PKTHREAD Thread, PFAST_MUTEX Mutex, EXP_LEVEL Level)
{
    ExpVerifyMutexLevel(Thread, Mutex, Level, EXP_ACQUIRED_AT_WRONG_IRQL, EXP_ACQUIRED_WITH_APCS);
    if (ExpOwner(Mutex) == Thread) {
        ExpMutexViolation(EXP_ACQUIRED_AGAIN, (ULONG_PTR)Mutex, (ULONG_PTR)Thread, 0);
    }
}

static DECLSPEC_NOINLINE VOID ExpVerifyMutexRelease(PKTHREAD Thread, PFAST_MUTEX Mutex, EXP_LEVEL Level)
{
    PKTHREAD Owner = ExpOwner(Mutex);
    if (Owner == NULL) {
        ExpMutexViolation(EXP_RELEASED_FREE, (ULONG_PTR)Mutex, 0, 0);
    }
    if (Owner != Thread) {
        ExpMutexViolation(EXP_RELEASED_BY_OTHER, (ULONG_PTR)Mutex, (ULONG_PTR)Owner, (ULONG_PTR)Thread);
    }
    ExpVerifyMutexLevel(Thread, Mutex, Level, EXP_RELEASED_AT_WRONG_IRQL, EXP_RELEASED_WITH_APCS);
}

/* The operations, as both names have them. */

FORCEINLINE VOID ExpAcquireFastMutex(PFAST_MUTEX Mutex, KWAIT_REASON Reason, EXP_LEVEL Level)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Word = EXP_FREE;
    KIRQL OldIrql = PASSIVE_LEVEL;
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpVerifyMutexAcquire(Thread, Mutex, Level);
    }
    if (Level == ExpRaisesLevel) {
        OldIrql = KiRaiseIrql(Thread, APC_LEVEL);
    }
    if (__builtin_expect(!ExpChangeWord(Mutex, &Word, EXP_HELD), 0)) {
        ExpContend(Mutex, Reason);
    }
    ExpSetOwner(Mutex, Thread);
    if (Level == ExpRaisesLevel) {
        Mutex->OldIrql = OldIrql;
    }
}

FORCEINLINE BOOLEAN ExpTryAcquireFastMutex(PFAST_MUTEX Mutex)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Word = EXP_FREE;
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpVerifyMutexLevel(Thread, Mutex, ExpRaisesLevel, EXP_ACQUIRED_AT_WRONG_IRQL, 0);
    }
    KIRQL OldIrql = KiRaiseIrql(Thread, APC_LEVEL);
    if (!ExpChangeWord(Mutex, &Word, EXP_HELD)) {
        KiLowerIrql(Thread, OldIrql);
        return FALSE;
    }
    ExpSetOwner(Mutex, Thread);
    Mutex->OldIrql = OldIrql;
    return TRUE;
}

FORCEINLINE VOID ExpReleaseFastMutex(PFAST_MUTEX Mutex, EXP_LEVEL Level)
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
    ExpSetOwner(Mutex, NULL);
    if (__builtin_expect(!ExpChangeWord(Mutex, &Word, EXP_FREE), 0)) {
        ExpReleaseContended(Mutex, Word);
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
    ExpReleaseFastMutex(FastMutex, ExpRaisesLevel);
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
    ExpReleaseFastMutex(FastMutex, ExpKeepsLevel);
}

VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX GuardedMutex)
{
    ExInitializeFastMutex(GuardedMutex);
}

VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX GuardedMutex)
{
    ExpAcquireFastMutex(GuardedMutex, WrGuardedMutex, ExpRaisesLevel);
}

VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX GuardedMutex)
{
    ExpReleaseFastMutex(GuardedMutex, ExpRaisesLevel);
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
    ExpReleaseFastMutex(GuardedMutex, ExpKeepsLevel);
}
