/*
 * pushlock.c: the pushlock algorithm, the pushlocks of the kernel, and address-based pushlocks.
 *
 *      63          48 47                               4   3   2   1   0
 *     +--------------------------------------------------+---+---+---+---+
 *     |                   share count                    | M | K | 0 | L |
 *     +--------------+-----------------------------------+---+---+---+---+
 *     |   fork tag   |         newest wait block         | M | K | W | L |
 *     +--------------+-----------------------------------+---+---+---+---+
 *
 *     0              free
 *     L              held exclusively, no waiters
 *     L + 16n        held by n sharers, no waiters
 *     B|W|L          held exclusively or by one sharer; B is the newest waiter
 *     B|W|L|M        held by several sharers
 *     B|W|K          free, and a woken waiter is about to take it (or is being chosen)
 *     B|W|K|L        held exclusively, and so on
 *     B|W|K|L|M      held by one sharer that was the exclusive owner; the owner of K should let waiting sharers in
 *
 * Always: K implies W; M implies L and W; W without L implies K; neither L nor W means 0. With W and L and without K,
 * ShareCount of the oldest block is the number of sharers, 0 for an exclusive owner.
 *
 * The waiters are a chain from the newest to the oldest. Any thread pushes a new block by compare-exchange. Every other
 * change to the chain belongs to the owner of K. K is owned from the change that sets it until the waiter that was woken
 * holds the lock or is back in the chain. So at most one woken waiter is competing, and releases in the meantime wake
 * no thread. The owner of K walks from the newest block to the first one that knows the oldest, fills in the backward
 * links on the way and stores the oldest in the newest: each block is walked once. A block behind that one may have a
 * wrong oldest, but is never read. Sharers that decrement ShareCount read the chain too, but only while K is clear.
 *
 * Requirements, each with a test of that number in tests/ex/pushlock.c (10: pushlockfast.c, 11: forklocks.c):
 *  1. Exclusion: an exclusive owner is alone; sharers are among themselves.
 *  2. No lost wakeup: when the lock is free and has waiters, one of them has been woken.
 *  3. Shared is shared: sharers that may hold the lock together do, in every state. So a sharer never takes a lock that
 *     has waiters; waiting sharers are granted it as a group. (A sharer that set L while waiters are queued would leave
 *     no room for the share count, and the next sharers would sleep behind it: shared has become exclusive.)
 *  4. Bounded barging: a waiter that was woken in vain EXP_MOST_LOSSES times is handed the lock, and a thread that has
 *     passed waiters for the longest turn (ke/fairness.h) queues behind them. (Strict first come, first served was
 *     rejected: the lock would idle during each wakeup.)
 *  5. A sharer that arrives while an exclusive waiter is queued waits behind it.
 *  6. Try never blocks, and takes a lock that has neither owners nor waiters.
 *  7. A conversion never blocks; to exclusive it succeeds for an only sharer.
 *  8. Nothing is allocated. Zeroed memory is a free lock.
 *  9. After the compare-exchange that releases it the releaser does not access the lock, unless it has waiters, which
 *     keep it alive; a wait block is not accessed after its waiter was woken.
 * 10. The uncontended paths are one compare-exchange each.
 * 11. In a forked child the waiters of the parent do not exist. Owners stay: the forking thread holds what it held, and
 *     what another thread held is held forever (ke/fork.h).
 *
 * Performance. A handoff moves three cache lines if the next owner runs, and costs a wakeup if it sleeps; both cost
 * several times a short critical section. While any thread is queued the inline fast paths fail. So few threads should
 * sleep:
 *  - A contended acquire spins first, by KiParkForPushLock: it checks rarely, because each check takes the line away
 *    from the owner, or continuously where that costs the owner nothing. It has just found the lock held, so the first
 *    check comes after the first gap: by then the owner has the line back, and a check at once would take it away again. An exclusive acquire does not spin while
 *    others are queued: there may be many, and one of them has been woken.
 *  - Then it yields a few times, because the owner may have been preempted, and only then queues. A spinning sharer
 *    overtakes no waiter: it waits as if it were queued behind the exclusive waiter. (Queueing at once was rejected:
 *    once one thread sleeps all do, and each section waits for a wakeup.)
 *  - A thread that owns the other words of a fanned pushlock, which are idle meanwhile, begins with a single pause: cache-aware
 *    pushlock on far lines of AMD EPYC, family 26, readers-50-4, 19.5 M/s instead of 18.2.
 *  - A thread that has passed waiters often enough, or has found locks held for long enough, yields (ke/fairness.h).
 */
#include "pushlock.h"
#include "waiterhash.h"

#include "../ke/fairness.h"
#include "../ke/fork.h"
#include "../ke/lockorder.h"
#include "../ke/park.h"
#include "../trace/trace.h"

#define LOCKED EX_PUSH_LOCK_LOCK
#define WAITING EX_PUSH_LOCK_WAITING
#define WAKING EX_PUSH_LOCK_WAKING
#define MULTIPLE EX_PUSH_LOCK_MULTIPLE_SHARED
#define SHARE EX_PUSH_LOCK_SHARE_INC

#define EXP_MOST_LOSSES 3
#define EXP_WATCHED ((ULONG)0x80000000) /* INTERLOCK_PUSH_LOCK_WATCHED of a caller built with DBG */

/* relaxed: a compare-exchange decides */
static ULONG_PTR ExpReadPushLock(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Value = __atomic_load_n(Lock, __ATOMIC_RELAXED);
    while ((Value & WAITING) && __builtin_expect(KiIsInherited(Value), FALSE)) {
        KiDropInheritedQueue(Lock, Value);
        Value = __atomic_load_n(Lock, __ATOMIC_RELAXED);
    }
    return Value;
}

/* acq_rel: acquires pair with releases, and a pushed block's contents with the walk of the chain. On failure relaxed:
   the value is only compared and exchanged again; a walk of the chain reads the word again. */
static BOOLEAN ExpChangePushLock(volatile ULONG_PTR *Lock, ULONG_PTR *Value, ULONG_PTR New)
{
    return __atomic_compare_exchange_n(Lock, Value, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static PEXP_WAIT_BLOCK ExpNewestBlock(ULONG_PTR Value)
{
    return (PEXP_WAIT_BLOCK)(Value & ~(EXP_PUSH_LOCK_BITS | KI_FORK_TAG_MASK));
}

BOOLEAN ExpIsPushLockHeldExclusive(ULONG_PTR Value)
{
    return Value == LOCKED || (Value & (LOCKED | WAITING | MULTIPLE)) == (LOCKED | WAITING);
}

BOOLEAN ExpIsPushLockHeldShared(ULONG_PTR Value)
{
    return (Value & LOCKED) && Value != LOCKED;
}

/* The chain. */

/* relaxed, here and below: the word published the blocks, and what owners of K wrote into them */
static PEXP_WAIT_BLOCK ExpKnownOldest(PEXP_WAIT_BLOCK Block)
{
    return __atomic_load_n(&Block->Last, __ATOMIC_RELAXED);
}

static VOID ExpSetKnownOldest(PEXP_WAIT_BLOCK Newest, PEXP_WAIT_BLOCK Oldest)
{
    __atomic_store_n(&Newest->Last, Oldest, __ATOMIC_RELAXED);
}

static VOID ExpSetShareCount(PEXP_WAIT_BLOCK Oldest, ULONG_PTR Sharers)
{
    __atomic_store_n(&Oldest->ShareCount, (LONG)Sharers, __ATOMIC_RELAXED);
}

static PEXP_WAIT_BLOCK ExpFindOldestBlock(PEXP_WAIT_BLOCK Newest)
{
    PEXP_WAIT_BLOCK Block = Newest;
    while (ExpKnownOldest(Block) == NULL) {
        Block = Block->Next;
    }
    return ExpKnownOldest(Block);
}

/* Another process that shares the lock's memory may have queued the block. Then its address is not mapped here, which
   faults, or belongs to something else, for example to a red zone of ASan. */
static __attribute__((no_sanitize("address"))) PEXP_WAIT_BLOCK ExpCheckNewestBlock(volatile ULONG_PTR *Lock,
                                                                                   ULONG_PTR Value)
{
    PEXP_WAIT_BLOCK Newest = ExpNewestBlock(Value);
    if (Newest->ProcessId != KiInitialProcess.ProcessId) {
        KiForeignQueue(Lock, Value);
    }
    return Newest;
}

/* Called by the owner of K. */
static PEXP_WAIT_BLOCK ExpOptimizeChain(volatile ULONG_PTR *Lock, ULONG_PTR Value)
{
    PEXP_WAIT_BLOCK Newest = ExpCheckNewestBlock(Lock, Value);
    PEXP_WAIT_BLOCK Block = Newest;
    while (ExpKnownOldest(Block) == NULL) {
        Block->Next->Previous = Block;
        Block = Block->Next;
    }
    ExpSetKnownOldest(Newest, ExpKnownOldest(Block));
    return ExpKnownOldest(Block);
}

/* Makes Block the newest waiter of a lock that Value shows as held or waited for. In a dispatcher section. */
static BOOLEAN ExpPushBlock(volatile ULONG_PTR *Lock, ULONG_PTR Value, PEXP_WAIT_BLOCK Block)
{
    ULONG_PTR New = KiForkTag | (ULONG_PTR)Block | WAITING | (Value & (LOCKED | WAKING | MULTIPLE));
    Block->State = ExpAwake;
    Block->Previous = NULL;
    if (Value & WAITING) {
        Block->Next = ExpNewestBlock(Value);
        Block->Last = NULL;
        Block->ShareCount = 0;
    } else {
        Block->Next = NULL;
        Block->Last = Block;
        Block->ShareCount = (LONG)(Value / SHARE);
        New |= Block->ShareCount > 1 ? MULTIPLE : 0;
    }
    return ExpChangePushLock(Lock, &Value, New);
}

/* Requirement 11, by the child, for the newest waiter of each queue. */
static VOID ExpInheritPushLock(PKI_QUEUED Queued)
{
    /* The waiter has not returned, so the lock exists. relaxed: this is the only thread */
    ULONG_PTR Value = __atomic_load_n(Queued->Word, __ATOMIC_RELAXED);
    ULONG_PTR Sharers;
    if (!(Value & WAITING) || ExpNewestBlock(Value) != Queued->Block) {
        return;
    }
    if (Value & WAKING) {
        Sharers = Value & MULTIPLE ? 1 : 0;
    } else {
        Sharers = (ULONG_PTR)ExpFindOldestBlock(Queued->Block)->ShareCount;
    }
    /* The last of several sharers may have been about to release. */
    BOOLEAN Held = (Value & LOCKED) && (Sharers != 0 || !(Value & MULTIPLE));
    KiRecordInheritedQueue(Queued->Word, Value, Held ? LOCKED + Sharers * SHARE : 0);
}

/* Waiters and wakers. */

VOID ExpWakeBlock(PEXP_WAIT_BLOCK Block, EXP_WAIT_STATE State, const EXP_PUSH_LOCK_METHODS *Methods)
{
    /* release: pairs with ExpStateOfBlock. What Wake needs of the block was published when it was pushed. */
    if (__atomic_exchange_n(&Block->State, (ULONG)State, __ATOMIC_RELEASE) == ExpSleeping) {
        Methods->Wake(Block);
    }
}

/* FALSE: it was already woken. */
static BOOLEAN ExpFallAsleep(PEXP_WAIT_BLOCK Block)
{
    ULONG State = ExpAwake;
    /* acquire, on failure: pairs with the exchange in ExpWakeBlock. Success only says that the waiter sleeps. */
    return __atomic_compare_exchange_n(&Block->State, &State, ExpSleeping, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

/* Handing off the lock: by the owner of K, in a dispatcher section. Each returns FALSE if the word has changed. */

/* Removes the blocks from Oldest to Youngest from the chain and grants the lock to Sharers threads, or for 0 to one
   exclusive owner. The same compare-exchange releases K. */
static BOOLEAN ExpCutAndGive(volatile ULONG_PTR *Lock, ULONG_PTR Value, PEXP_WAIT_BLOCK Oldest,
                             PEXP_WAIT_BLOCK Youngest, ULONG_PTR Sharers)
{
    PEXP_WAIT_BLOCK Newest = ExpNewestBlock(Value);
    if (Youngest == Newest) {
        return ExpChangePushLock(Lock, &Value, LOCKED + Sharers * SHARE);
    }
    PEXP_WAIT_BLOCK Remaining = Youngest->Previous;
    ExpSetShareCount(Remaining, Sharers);
    Remaining->Next = NULL;
    ExpSetKnownOldest(Newest, Remaining);
    ULONG_PTR New = (Value & ~(WAKING | MULTIPLE)) | LOCKED | (Sharers > 1 ? MULTIPLE : 0);
    if (ExpChangePushLock(Lock, &Value, New)) {
        return TRUE;
    }
    Remaining->Next = Youngest;
    ExpSetKnownOldest(Newest, Oldest);
    return FALSE;
}

/* Wakes an exclusive waiter to retry, as the owner of K if others wait; or hands it the lock. */
static BOOLEAN ExpWakeExclusive(volatile ULONG_PTR *Lock, ULONG_PTR Value, PEXP_WAIT_BLOCK Oldest,
                                const EXP_PUSH_LOCK_METHODS *Methods)
{
    PEXP_WAIT_BLOCK Newest = ExpNewestBlock(Value);
    EXP_WAIT_STATE State;
    if (Oldest->Losses >= EXP_MOST_LOSSES) {
        State = ExpGranted;
        if (!ExpCutAndGive(Lock, Value, Oldest, Oldest, 0)) {
            return FALSE;
        }
    } else if (Oldest == Newest) {
        State = ExpWoken;
        if (!ExpChangePushLock(Lock, &Value, 0)) {
            return FALSE;
        }
    } else {
        State = ExpWokenWaking;
        ExpSetShareCount(Oldest->Previous, 0);
        Oldest->Previous->Next = NULL;
        ExpSetKnownOldest(Newest, Oldest->Previous);
    }
    ExpWakeBlock(Oldest, State, Methods);
    return TRUE;
}

/* Grants the lock to the sharers at the old end of the chain, beside the sharer that Value may show. */
static BOOLEAN ExpGrantShared(volatile ULONG_PTR *Lock, ULONG_PTR Value, PEXP_WAIT_BLOCK Oldest,
                              const EXP_PUSH_LOCK_METHODS *Methods)
{
    PEXP_WAIT_BLOCK Youngest = Oldest;
    ULONG_PTR Count = 1;
    while (Youngest != ExpNewestBlock(Value) && !Youngest->Previous->Exclusive) {
        Youngest = Youngest->Previous;
        Count += 1;
    }
    if (!ExpCutAndGive(Lock, Value, Oldest, Youngest, Count + (Value & LOCKED ? 1 : 0))) {
        return FALSE;
    }
    while (Count != 0) {
        PEXP_WAIT_BLOCK Newer = Oldest->Previous;
        ExpWakeBlock(Oldest, ExpGranted, Methods);
        Oldest = Newer;
        Count -= 1;
    }
    return TRUE;
}

/* Hands off the lock, or releases K if the lock has an owner that no waiter can join. */
static VOID ExpPassOnPushLock(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Done;
    KiEnterDispatcher(Thread);
    do {
        /* acquire: the chain as it was pushed */
        ULONG_PTR Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
        PEXP_WAIT_BLOCK Oldest = ExpOptimizeChain(Lock, Value);
        if ((Value & LOCKED) && (!(Value & MULTIPLE) || Oldest->Exclusive)) {
            ExpSetShareCount(Oldest, Value & MULTIPLE ? 1 : 0);
            Done = ExpChangePushLock(Lock, &Value, Value & ~(WAKING | MULTIPLE));
        } else if (Oldest->Exclusive) {
            Done = ExpWakeExclusive(Lock, Value, Oldest, Methods);
        } else {
            Done = ExpGrantShared(Lock, Value, Oldest, Methods);
        }
    } while (!Done);
    KiExitDispatcher(Thread);
}

/* Releasing. */

/* Called by the only owner of a lock with waiters. FALSE: *Value has changed. */
static BOOLEAN ExpTryReleaseWaited(volatile ULONG_PTR *Lock, ULONG_PTR *Value, BOOLEAN Exclusive,
                                   const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Found = *Value;
    KTRACE_RELEASING(Lock, Methods->Kind, Exclusive, KiCurrentThread());
    if (!ExpChangePushLock(Lock, Value, (Found & ~(LOCKED | MULTIPLE)) | WAKING)) {
        return FALSE;
    }
    if (!(Found & WAKING)) {
        ExpPassOnPushLock(Lock, Methods);
    }
    KTRACE_RELEASED(TRUE);
    return TRUE;
}

static VOID ExpReleaseExclusive(PKTHREAD Thread, volatile ULONG_PTR *Lock, ULONG_PTR Value,
                                const EXP_PUSH_LOCK_METHODS *Methods)
{
    BOOLEAN Done;
    if (Thread->LockOwned == (PVOID)Lock) {
        Thread->LockOwned = NULL;
    }
    do {
        if (!ExpIsPushLockHeldExclusive(Value)) {
            Methods->NotOwned(Lock);
        }
        Done = Value == LOCKED ? ExpChangePushLock(Lock, &Value, 0) : ExpTryReleaseWaited(Lock, &Value, TRUE, Methods);
    } while (!Done);
}

VOID ExpReleasePushLockExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG_PTR Value = ExpReadPushLock(Lock);
    BOOLEAN Passes = (Value & WAITING) && ExpIsPushLockHeldExclusive(Value);
    BOOLEAN Yields = Passes && KiCountPass(Thread, Lock);
    ExpReleaseExclusive(Thread, Lock, Value, Methods);
    if (Passes) {
        KiEndPass(Thread, Yields, FALSE);
    }
}

VOID ExpReleaseInnerPushLock(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ExpReleaseExclusive(KiCurrentThread(), Lock, ExpReadPushLock(Lock), Methods);
}

/* The oldest block has the number of sharers. For a sharer, while K is clear: the block stays the oldest. */
static volatile LONG *ExpSharersOf(volatile ULONG_PTR *Lock)
{
    /* acquire: the chain as it was pushed */
    ULONG_PTR Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
    return &ExpFindOldestBlock(ExpCheckNewestBlock(Lock, Value))->ShareCount;
}

VOID ExpReleasePushLockShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = ExpReadPushLock(Lock);
    BOOLEAN Counted = FALSE;
    BOOLEAN Done;
    do {
        if (!ExpIsPushLockHeldShared(Value)) {
            Methods->NotOwned(Lock);
        }
        /* With K, M has another meaning and there is one sharer. */
        if (!Counted && (Value & (MULTIPLE | WAKING)) == MULTIPLE) {
            KTRACE_RELEASING(Lock, Methods->Kind, FALSE, KiCurrentThread());
            /* acq_rel: what each sharer did comes before the last one's release */
            if (__atomic_sub_fetch(ExpSharersOf(Lock), 1, __ATOMIC_ACQ_REL) != 0) {
                KTRACE_RELEASED(FALSE);
                return;
            }
            Counted = TRUE;
        }
        if (Value & WAITING) {
            Done = ExpTryReleaseWaited(Lock, &Value, FALSE, Methods);
        } else {
            Done = ExpChangePushLock(Lock, &Value, Value == LOCKED + SHARE ? 0 : Value - SHARE);
        }
    } while (!Done);
}

VOID ExpReleasePushLock(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (ExpReadPushLock(Lock) == LOCKED) {
        ExpReleasePushLockExclusive(Lock, Methods);
    } else {
        ExpReleasePushLockShared(Lock, Methods);
    }
}

/* Acquiring. */

static BOOLEAN ExpMayTakePushLock(ULONG_PTR Value, BOOLEAN Exclusive)
{
    return Exclusive ? !(Value & LOCKED) : Value == 0 || (!(Value & WAITING) && Value >= SHARE);
}

/* FALSE: *Found is what the word was. */
FORCEINLINE BOOLEAN ExpTryAcquire(volatile ULONG_PTR *Lock, BOOLEAN Exclusive, ULONG_PTR *Found)
{
    *Found = ExpReadPushLock(Lock);
    while (ExpMayTakePushLock(*Found, Exclusive)) {
        if (ExpChangePushLock(Lock, Found, Exclusive ? *Found | LOCKED : (*Found | LOCKED) + SHARE)) {
            return TRUE;
        }
    }
    return FALSE;
}

BOOLEAN ExpTryAcquirePushLockExclusive(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Found;
    return ExpTryAcquire(Lock, TRUE, &Found);
}

BOOLEAN ExpTryAcquirePushLockShared(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Found;
    return ExpTryAcquire(Lock, FALSE, &Found);
}

/* The woken waiter owns K and has found the lock taken again: it returns to the old end. In a dispatcher section. */
static VOID ExpRequeueBlock(volatile ULONG_PTR *Lock, PEXP_WAIT_BLOCK Block, const EXP_PUSH_LOCK_METHODS *Methods)
{
    /* acquire: the chain as it was pushed */
    ULONG_PTR Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
    PEXP_WAIT_BLOCK Oldest = ExpOptimizeChain(Lock, Value);
    Block->State = ExpAwake;
    Block->Next = NULL;
    Block->Last = NULL;
    Block->Previous = Oldest;
    Oldest->Next = Block;
    ExpSetKnownOldest(ExpNewestBlock(Value), Block);
    ExpPassOnPushLock(Lock, Methods);
}

/* FALSE: the word was no longer Value, and nothing was done. Otherwise the thread has waited until it was woken. */
static BOOLEAN ExpWaitInQueue(PKTHREAD Thread, volatile ULONG_PTR *Lock, ULONG_PTR Value, PEXP_WAIT_BLOCK Block,
                              EXP_WAIT_STATE *State, const EXP_PUSH_LOCK_METHODS *Methods)
{
    BOOLEAN Queued = TRUE;
    KiEnterDispatcher(Thread);
    if (*State == ExpWokenWaking) {
        ExpRequeueBlock(Lock, Block, Methods);
    } else {
        Queued = ExpPushBlock(Lock, Value, Block);
    }
    KiExitDispatcher(Thread);
    if (!Queued) {
        return FALSE;
    }
    if (ExpFallAsleep(Block)) {
        Methods->Sleep(Block, Lock);
    }
    *State = ExpStateOfBlock(Block);
    Block->Losses += 1;
    return TRUE;
}

/* Found: what the word was when the caller could not take the lock, or the value of a free lock if it has not tried. Inner: the
   caller owns an outer lock. */
static DECLSPEC_NOINLINE VOID ExpContendForPushLock(volatile ULONG_PTR *Lock, BOOLEAN Exclusive, BOOLEAN Inner,
                                                    ULONG_PTR Found, const EXP_PUSH_LOCK_METHODS *Methods)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_PARK_USE Use = KiLockUse(Thread);
    BOOLEAN TurnOver = Exclusive && KiIsTurnOver(Thread, Lock);
    EXP_WAIT_STATE State = ExpWoken;
    KI_PATIENCE Patience;
    EXP_WAIT_BLOCK Block;
    KI_QUEUED Queued = {.Word = Lock, .Block = &Block, .Inherit = ExpInheritPushLock};

    KTRACE_CONTENTION_BEGIN(Lock, Methods->Kind, Exclusive, 0);
    Block.Exclusive = Exclusive;
    Block.AutoBoost = Methods->AutoBoost;
    Block.Losses = 0;
    Block.ProcessId = KiInitialProcess.ProcessId;
    Methods->Prepare(&Block);
    KiRegisterQueued(Thread, &Queued);
    KiBeginLockPatience(&Patience, Thread, Use, FALSE);
    if (Inner) { /* what it owns is idle until it continues: gaps grow from a single pause */
        Patience.Gap = Patience.Spun = 1;
    }
    /* The caller has just checked: the next check comes after the first gap. */
    if (Patience.Spins != 0 && (Found & LOCKED) && !(Exclusive && (Found & WAITING))) {
        KiStayAwake(&Patience, Thread, Use);
    }
    while (State != ExpGranted) {
        ULONG_PTR Value = ExpReadPushLock(Lock);
        TurnOver = TurnOver && (Value & WAITING);
        if (Exclusive && (Value & WAITING) && State != ExpWokenWaking) {
            Patience.Spins = 0;
        }
        if (!TurnOver && ExpMayTakePushLock(Value, Exclusive)) {
            ULONG_PTR New = Exclusive ? Value | LOCKED : (Value | LOCKED) + SHARE;
            if (ExpChangePushLock(Lock, &Value, New & ~(State == ExpWokenWaking ? WAKING : 0))) {
                break;
            }
            continue;
        }
        BOOLEAN Spins = Patience.Spins != 0;
        if (!TurnOver && KiStayAwake(&Patience, Thread, Use)) {
            if (Spins) {
                KiTimeLook(Thread, &Patience, (volatile ULONG *)Lock);
            }
        } else if (ExpWaitInQueue(Thread, Lock, Value, &Block, &State, Methods) && Exclusive) {
            KiBeginTurn(Thread, Lock);
            TurnOver = FALSE;
            KiBeginLockPatience(&Patience, Thread, Use, FALSE);
            Patience.Gap = 1; /* it is next, so it checks at once */
        }
    }
    KiUnregisterQueued(Thread, &Queued);
    if (Exclusive) {
        Thread->LockOwned = (PVOID)Lock;
    }
    KTRACE_CONTENTION_END(Lock, Methods->Kind, Exclusive);
}

VOID ExpAcquirePushLockExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG_PTR Found;
    if (KiIsTurnOver(Thread, Lock)) {
        ExpContendForPushLock(Lock, TRUE, FALSE, 0, Methods);
    } else if (!ExpTryAcquire(Lock, TRUE, &Found)) {
        KiCountContention(Thread);
        ExpContendForPushLock(Lock, TRUE, FALSE, Found, Methods);
    }
}

VOID ExpAcquireInnerPushLock(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Found;
    if (!ExpTryAcquire(Lock, TRUE, &Found)) {
        ExpContendForPushLock(Lock, TRUE, TRUE, Found, Methods);
    }
}

VOID ExpAcquirePushLockShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Found;
    if (!ExpTryAcquire(Lock, FALSE, &Found)) {
        KiCountContention(KiCurrentThread());
        HalDisperseCrowd();
        ExpContendForPushLock(Lock, FALSE, FALSE, Found, Methods);
    }
}

/* Converting. */

/* With waiters a single sharer already looks like an exclusive owner, except for M and the count in the oldest
   block. */
BOOLEAN ExpTryConvertPushLockToExclusive(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Value = ExpReadPushLock(Lock);
    for (;;) {
        if (!(Value & WAITING) && Value != LOCKED + SHARE) {
            return FALSE;
        }
        /* acquire: pairs with the sub_fetch in ExpReleasePushLockShared; what the others did as sharers comes before */
        if ((Value & (MULTIPLE | WAKING)) == MULTIPLE && __atomic_load_n(ExpSharersOf(Lock), __ATOMIC_ACQUIRE) != 1) {
            return FALSE;
        }
        /* Also where the word stays as it is: what the others did as sharers comes before. */
        if (ExpChangePushLock(Lock, &Value, Value & WAITING ? Value & ~MULTIPLE : LOCKED)) {
            break;
        }
    }
    if ((Value & (WAITING | WAKING)) == WAITING) {
        __atomic_store_n(ExpSharersOf(Lock), 0, __ATOMIC_RELAXED);
    }
    return TRUE;
}

/*
 * With waiters the owner becomes a single sharer, which looks the same, and the owner of K should admit waiting
 * sharers. That may be another thread that has already decided that no waiter can join the owner: M makes its
 * compare-exchange fail.
 */
VOID ExpConvertPushLockToShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = ExpReadPushLock(Lock);
    ULONG_PTR New;
    do {
        if (!ExpIsPushLockHeldExclusive(Value)) {
            Methods->NotOwned(Lock);
        }
        New = LOCKED + SHARE;
        if (Value & WAITING) {
            KTRACE_RELEASING(Lock, Methods->Kind, TRUE, KiCurrentThread());
            New = Value | WAKING | MULTIPLE;
        }
    } while (!ExpChangePushLock(Lock, &Value, New));
    if ((Value & (WAITING | WAKING)) == WAITING) {
        ExpPassOnPushLock(Lock, Methods);
    }
    if (Value & WAITING) {
        KTRACE_RELEASED(TRUE);
    }
}

/*
 * The pushlocks of the kernel sleep on events, with AutoBoost: a sleeper that is handed a lock runs at least at the
 * priority of the thread that hands it off, and a little above its own, so that it can admit the waiters behind it. It
 * is a property of the acquire, not of the release. A thread's AutoBoostCount counts the boosts that it received.
 */

/* The first parameter of DRIVER_VERIFIER_DETECTED_VIOLATION. */
#define EXP_PUSH_LOCK_ACQUIRED_WITH_APCS 0xea
#define EXP_PUSH_LOCK_RELEASED_WITH_APCS 0xeb

static VOID ExpPrepareEvent(PEXP_WAIT_BLOCK Block)
{
    Block->WakeEvent.Header.LockNV = 0; /* KeInitializeEvent leaves two bytes unwritten, which memcheck would report */
    KeInitializeEvent(&Block->WakeEvent, SynchronizationEvent, FALSE);
}

static VOID ExpSleepOnEvent(PEXP_WAIT_BLOCK Block, volatile ULONG_PTR *Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Previous = KiNoteLockWaitedFor(Thread, (PVOID)Lock);
    KiSleepUntilSignaled(&Block->WakeEvent, WrPushLock, NULL);
    KiNoteLockWaitedFor(Thread, Previous);
    if (Block->AutoBoost) {
        Thread->AutoBoostCount += 1;
    }
}

static VOID ExpWakeByEvent(PEXP_WAIT_BLOCK Block)
{
    if (Block->AutoBoost) {
        KeSetEventBoostPriority(&Block->WakeEvent, NULL);
    } else {
        KeSetEvent(&Block->WakeEvent, IO_NO_INCREMENT, FALSE);
    }
}

static VOID ExpBugCheckNotOwned(volatile ULONG_PTR *Lock)
{
    KeBugCheckEx(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, (ULONG_PTR)KiCurrentThread(), (ULONG_PTR)Lock, 0, 0);
}

#define EXP_EVENT_METHODS                                                                                              \
    .Prepare = ExpPrepareEvent, .Sleep = ExpSleepOnEvent, .Wake = ExpWakeByEvent, .NotOwned = ExpBugCheckNotOwned

const EXP_PUSH_LOCK_METHODS ExpPushLockMethods = {EXP_EVENT_METHODS};
static const EXP_PUSH_LOCK_METHODS ExpBoostedMethods = {EXP_EVENT_METHODS, .AutoBoost = TRUE};

const EXP_PUSH_LOCK_METHODS *ExpMethodsFor(ULONG Flags)
{
    return Flags & EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST ? &ExpPushLockMethods : &ExpBoostedMethods;
}

/* The verifier. */

static VOID ExpCheckFlags(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (Flags & ~(ULONG)EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST) {
        KeBugCheckEx(INVALID_PUSH_LOCK_FLAGS, Flags, (ULONG_PTR)PushLock, 0, 0);
    }
}

static VOID ExpCheckPushLockCall(PEX_PUSH_LOCK PushLock, ULONG Flags, ULONG_PTR Violation)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckFlags(PushLock, Flags);
    if (Thread->Irql > APC_LEVEL) {
        KeBugCheckEx(KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL, (ULONG_PTR)Thread, (ULONG_PTR)PushLock,
                     Thread->Irql, 0);
    }
    if (Thread->Irql < APC_LEVEL && !KeAreApcsDisabled()) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, Violation, Thread->Irql, (ULONG_PTR)Thread->KernelApcDisable,
                     (ULONG_PTR)PushLock);
    }
}

static VOID ExpCheckAcquire(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpCheckPushLockCall(PushLock, Flags, EXP_PUSH_LOCK_ACQUIRED_WITH_APCS);
}

/* Lock order. Calls without the flag come from code whose other calls may be inline: the verifier would miss a release. */

static ULONG ExpPublicFlags(ULONG Flags)
{
    return Flags & ~EXP_WATCHED;
}

VOID ExpNotePushLock(PEX_PUSH_LOCK PushLock)
{
    if (KiVerifierEnabled) {
        KiOrderInitialize((PVOID)PushLock, KiOrderPushLock);
    }
}

static DECLSPEC_NOINLINE VOID ExpAcquireWatched(PEX_PUSH_LOCK PushLock, ULONG Flags, BOOLEAN Exclusive, PVOID Site)
{
    KI_ORDER_MODE Mode = Exclusive ? KiOrderExclusive : KiOrderShared;
    ExpCheckAcquire(PushLock, ExpPublicFlags(Flags));
    if (Flags & EXP_WATCHED) {
        KiOrderCheck(KiCurrentThread(), (PVOID)PushLock, KiOrderPushLock, Mode);
    }
    if (Exclusive) {
        ExpAcquirePushLockExclusive(PushLock, ExpMethodsFor(Flags));
    } else {
        ExpAcquirePushLockShared(PushLock, ExpMethodsFor(Flags));
    }
    if (Flags & EXP_WATCHED) {
        KiOrderHold(KiCurrentThread(), (PVOID)PushLock, KiOrderPushLock, Mode, Site);
    }
}

static DECLSPEC_NOINLINE BOOLEAN ExpTryWatched(PEX_PUSH_LOCK PushLock, ULONG Flags, BOOLEAN Exclusive, PVOID Site)
{
    ExpCheckAcquire(PushLock, ExpPublicFlags(Flags));
    BOOLEAN Acquired = Exclusive ? ExpTryAcquirePushLockExclusive(PushLock) : ExpTryAcquirePushLockShared(PushLock);
    if (Acquired && (Flags & EXP_WATCHED)) {
        KiOrderHold(KiCurrentThread(), (PVOID)PushLock, KiOrderPushLock, Exclusive ? KiOrderExclusive : KiOrderShared,
                    Site);
    }
    return Acquired;
}

DECLSPEC_NOINLINE VOID ExpWatchAcquire(PEX_PUSH_LOCK Word, ULONG Flags, KI_ORDER_MODE Mode, PVOID Site)
{
    ExpCheckAcquire(Word, Flags);
    KiOrderCheckAndHold(KiCurrentThread(), (PVOID)Word, KiOrderPushLock, Mode, Site);
}

DECLSPEC_NOINLINE VOID ExpWatchRelease(PEX_PUSH_LOCK Word, ULONG Flags)
{
    ExpCheckPushLockCall(Word, ExpPublicFlags(Flags), EXP_PUSH_LOCK_RELEASED_WITH_APCS);
    KiOrderRelease(KiCurrentThread(), (PVOID)Word);
}

VOID ExfAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpAcquireWatched(PushLock, Flags, TRUE, __builtin_return_address(0));
        return;
    }
    ExpAcquirePushLockExclusive(PushLock, ExpMethodsFor(Flags));
}

VOID ExfAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpAcquireWatched(PushLock, Flags, FALSE, __builtin_return_address(0));
        return;
    }
    ExpAcquirePushLockShared(PushLock, ExpMethodsFor(Flags));
}

BOOLEAN ExfTryAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    return __builtin_expect(KiVerifierEnabled, FALSE)
               ? ExpTryWatched(PushLock, Flags, TRUE, __builtin_return_address(0))
               : ExpTryAcquirePushLockExclusive(PushLock);
}

BOOLEAN ExfTryAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    return __builtin_expect(KiVerifierEnabled, FALSE)
               ? ExpTryWatched(PushLock, Flags, FALSE, __builtin_return_address(0))
               : ExpTryAcquirePushLockShared(PushLock);
}

VOID ExfReleasePushLockEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock, Flags);
    ExpReleasePushLock(PushLock, &ExpPushLockMethods);
}

VOID ExfReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock, Flags);
    ExpReleasePushLockExclusive(PushLock, &ExpPushLockMethods);
}

VOID ExfReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock, Flags);
    ExpReleasePushLockShared(PushLock, &ExpPushLockMethods);
}

VOID ExfAcquirePushLockExclusive(PEX_PUSH_LOCK PushLock)
{
    ExfAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfAcquirePushLockShared(PEX_PUSH_LOCK PushLock)
{
    ExfAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

BOOLEAN ExfTryAcquirePushLockShared(PEX_PUSH_LOCK PushLock)
{
    return ExfTryAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfReleasePushLock(PEX_PUSH_LOCK PushLock)
{
    ExfReleasePushLockEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfReleasePushLockExclusive(PEX_PUSH_LOCK PushLock)
{
    ExfReleasePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfReleasePushLockShared(PEX_PUSH_LOCK PushLock)
{
    ExfReleasePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

BOOLEAN ExTryConvertPushLockSharedToExclusive(PEX_PUSH_LOCK PushLock)
{
    BOOLEAN Converted = ExpTryConvertPushLockToExclusive(PushLock);
    if (Converted && KiVerifierEnabled) {
        KiOrderConvert(KiCurrentThread(), (PVOID)PushLock, KiOrderExclusive);
    }
    return Converted;
}

VOID ExConvertPushLockExclusiveToShared(PEX_PUSH_LOCK PushLock)
{
    ExpConvertPushLockToShared(PushLock, &ExpPushLockMethods);
    if (KiVerifierEnabled) {
        KiOrderConvert(KiCurrentThread(), (PVOID)PushLock, KiOrderShared);
    }
}

/*
 * Address-based pushlocks: waiting until a value has changed.
 *
 * The word is the list of the waiters' blocks, newest first, and its lock:
 *
 *      63          48 47                               4   3   2   1   0
 *     +--------------+-----------------------------------+-----------+---+
 *     |   fork tag   |         newest wait block         |     0     | L |
 *     +--------------+-----------------------------------+-----------+---+
 *
 * 1. The list changes only under L, inside a dispatcher section, for as long as a walk of the list takes. So a wake
 *    finds every waiter: no other wake removes one temporarily.
 * 2. No lost wakeup: a waiter locks the list to add its block and then compares the value; a waker changes the value and
 *    then reads the list. Both access the word by a read-modify-write, so one comes second and sees what the other did.
 * 3. The thread that removes a block from the list wakes its waiter, and accesses neither the block nor the word
 *    afterwards. A waiter that times out removes its own block. If the block is already off the list, the wake wins:
 *    the waiter waits until the wake completes and returns as woken.
 * 4. The oldest waiter is woken first.
 * 5. In a forked child an inherited list (ke/fork.h) is empty. A block that was announced before the fork counts as woken.
 *
 * A wake walks every block of this pushlock, also those of other addresses, and a timeout walks the newer ones: the
 * word has room for one list, and a wake without an address needs all of it. For addresses with many waiters, use one
 * pushlock each.
 */

/* The list. */

static PEXP_WAIT_BLOCK ExpLockBlockList(PEX_PUSH_LOCK PushLock, PKTHREAD Thread)
{
    ULONG_PTR Word;
    KI_PATIENCE Patience;
    KiEnterDispatcher(Thread);
    /* acquire: see 2, pairs with ExpWakeBlocksOf; and the list as the last owner of L left it */
    if ((Word = __atomic_fetch_or(PushLock, EX_PUSH_LOCK_LOCK, __ATOMIC_ACQUIRE)) & EX_PUSH_LOCK_LOCK) {
        KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
        do {
            KiStayAwake(&Patience, Thread, KiParkForSpinLock);
        } while ((Word = __atomic_fetch_or(PushLock, EX_PUSH_LOCK_LOCK, __ATOMIC_ACQUIRE)) & EX_PUSH_LOCK_LOCK);
    }
    return KiIsInherited(Word) ? NULL : (PEXP_WAIT_BLOCK)(Word & ~KI_FORK_TAG_MASK);
}

static VOID ExpUnlockBlockList(PEX_PUSH_LOCK PushLock, PKTHREAD Thread, PEXP_WAIT_BLOCK Newest)
{
    __atomic_store_n(PushLock, Newest != NULL ? (ULONG_PTR)Newest | KiForkTag : 0, __ATOMIC_RELEASE);
    KiExitDispatcher(Thread);
}

/* FALSE: another thread has removed it, and wakes or has woken its waiter. */
static BOOLEAN ExpTakeBlock(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block)
{
    PKTHREAD Thread = KiCurrentThread();
    PEXP_WAIT_BLOCK Newest = ExpLockBlockList(PushLock, Thread);
    PEXP_WAIT_BLOCK *Link = &Newest;
    while (*Link != NULL && *Link != Block) {
        Link = &(*Link)->Next;
    }
    BOOLEAN Found = *Link == Block;
    if (Found) {
        *Link = Block->Next;
    }
    ExpUnlockBlockList(PushLock, Thread, Newest);
    return Found;
}

static VOID ExpAnnounceBlock(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block, PVOID Address)
{
    PKTHREAD Thread = KiCurrentThread();
    Block->AutoBoost = FALSE;
    Block->ProcessId = KiInitialProcess.ProcessId;
    Block->State = ExpAwake;
    Block->Address = Address;
    ExpPushLockMethods.Prepare(Block);
    Block->Next = ExpLockBlockList(PushLock, Thread);
    ExpUnlockBlockList(PushLock, Thread, Block);
}

/* Wakes the waiters of Address, or all if that is NULL, oldest first. */
static VOID ExpWakeBlocksOf(PEX_PUSH_LOCK PushLock, PVOID Address)
{
    PKTHREAD Thread = KiCurrentThread();
    PEXP_WAIT_BLOCK Taken = NULL;
    /* release: see 2, pairs with ExpLockBlockList. A plain read could come before the store to the value. */
    if (__atomic_fetch_or(PushLock, 0, __ATOMIC_RELEASE) == 0) {
        return;
    }
    PEXP_WAIT_BLOCK Newest = ExpLockBlockList(PushLock, Thread);
    PEXP_WAIT_BLOCK *Link = &Newest;
    while (*Link != NULL) {
        PEXP_WAIT_BLOCK Block = *Link;
        if (Address == NULL || Block->Address == Address) {
            *Link = Block->Next;
            Block->Next = Taken;
            Taken = Block;
        } else {
            Link = &Block->Next;
        }
    }
    ExpUnlockBlockList(PushLock, Thread, Newest);
    while (Taken != NULL) {
        PEXP_WAIT_BLOCK Newer = Taken->Next;
        ExpWakeBlock(Taken, ExpGranted, &ExpPushLockMethods);
        Taken = Newer;
    }
}

/* Waiting. */

static inline BOOLEAN ExpIsBlockWoken(PVOID Block)
{
    return ExpStateOfBlock(Block) != ExpAwake;
}

static NTSTATUS ExpAwaitBlock(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Poll = Timeout != NULL && Timeout->QuadPart == 0;
    if (Block->ProcessId != KiInitialProcess.ProcessId || ExpIsBlockWoken(Block) ||
        (!Poll && KiParkUntil(Thread, KiParkForPushLock, ExpIsBlockWoken, Block)) || !ExpFallAsleep(Block)) {
        return STATUS_SUCCESS;
    }
    NTSTATUS Status = KiSleepUntilSignaled(&Block->WakeEvent, WrPushLock, Timeout);
    if (Status != STATUS_TIMEOUT || ExpTakeBlock(PushLock, Block)) {
        return Status;
    }
    return KiSleepUntilSignaled(&Block->WakeEvent, WrPushLock, NULL);
}

static VOID ExpTakeBlockBack(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block)
{
    if (!ExpTakeBlock(PushLock, Block)) {
        ExpAwaitBlock(PushLock, Block, NULL);
    }
}

static VOID ExpVerifyFlags(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpCheckFlags(PushLock, Flags);
    }
}

NTSTATUS ExBlockOnAddressPushLock(PEX_PUSH_LOCK PushLock, PVOID Address, PVOID CompareAddress, SIZE_T Size,
                                  PLARGE_INTEGER Timeout)
{
    EXP_WAIT_BLOCK Block;
    if (!ExpIsValueSize(Size)) {
        return STATUS_INVALID_PARAMETER;
    }
    ExpAnnounceBlock(PushLock, &Block, Address);
    if (ExpIsSameValue(Address, CompareAddress, Size)) {
        return ExpAwaitBlock(PushLock, &Block, Timeout);
    }
    ExpTakeBlockBack(PushLock, &Block);
    return STATUS_SUCCESS;
}

VOID ExUnblockOnAddressPushLockEx(PEX_PUSH_LOCK PushLock, PVOID Address, ULONG Flags)
{
    ExpVerifyFlags(PushLock, Flags);
    if (Address != NULL) {
        ExpWakeBlocksOf(PushLock, Address);
    }
}

VOID ExBlockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock)
{
    ExpAnnounceBlock(PushLock, (PEXP_WAIT_BLOCK)WaitBlock, NULL);
}

NTSTATUS ExTimedWaitForUnblockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock,
                                       PLARGE_INTEGER Timeout)
{
    return ExpAwaitBlock(PushLock, (PEXP_WAIT_BLOCK)WaitBlock, Timeout);
}

VOID ExUnblockPushLockEx(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock, ULONG Flags)
{
    ExpVerifyFlags(PushLock, Flags);
    if (WaitBlock != NULL) {
        ExpTakeBlockBack(PushLock, (PEXP_WAIT_BLOCK)WaitBlock);
    } else {
        ExpWakeBlocksOf(PushLock, NULL);
    }
}
