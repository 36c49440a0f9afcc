/*
 * pushlockcore.c: the pushlock algorithm.
 *
 *      63                                              4   3   2   1   0
 *     +-------------------------------------------------+---+---+---+---+
 *     |  share count, or with W the newest wait block   | M | K | W | L |
 *     +-------------------------------------------------+---+---+---+---+
 *
 *     0              free
 *     L              held exclusively, nobody waits
 *     L + 16n        held by n sharers, nobody waits
 *     B|W|L          held exclusively or by one sharer; B is the newest waiter
 *     B|W|L|M        held by several sharers, their number is in the oldest waiter's block
 *     B|W|K          free, and a waiter is on its way (or being chosen)
 *     B|W|K|L[|M]    held, and so on
 *
 * Always: K implies W; M implies L and W; W without L implies K; neither L nor W means 0.
 *
 * The waiters are a chain from the newest to the oldest. Anybody pushes a new one by compare-exchange. Everything else
 * that is done to the chain is done by the owner of K, and K is owned from the release that set it until the thread it
 * has woken holds the lock or is back in the chain: so there is at most one woken waiter on its way, and releases in the
 * meantime wake nobody. The owner of K goes from the newest block to the first one that knows the oldest, fills in the
 * backward links on the way and leaves the answer in the newest: each block is walked once.
 *
 * Requirements, each with a test of that number in tests/ex/pushlock.c:
 *  1. Exclusion: an exclusive owner is alone; sharers are among themselves.
 *  2. No lost wake: when the lock is free and somebody waits, somebody is on its way.
 *  3. Shared is shared: sharers that may hold it together do, in every state. So a sharer never takes a lock that has
 *     waiters; waiting sharers are granted it as a group, with their number. (To let a sharer set L while waiters are
 *     queued leaves no room for the number, and the next sharers sleep behind it: shared has become exclusive.)
 *  4. Bounded overtaking: a waiter that was woken in vain EXP_MOST_LOSSES times is handed the lock. (Strict first come,
 *     first served was rejected: the lock would idle for as long as the host takes to wake each waiter.)
 *  5. Sharers that come while an exclusive waiter is queued wait behind it.
 *  6. Try never blocks, and takes a lock that is free of holders and waiters.
 *  7. A conversion never blocks; to exclusive it succeeds for an only sharer.
 *  8. Nothing is allocated. Zeroed memory is a free lock.
 *  9. After the compare-exchange that releases it nobody touches the lock's memory on behalf of the releaser, unless
 *     somebody waits and so keeps it alive; a wait block is not touched after its waiter was told.
 * 10. The uncontended paths are one compare-exchange each.
 */
#include "pushlock.h"

#define L EX_PUSH_LOCK_LOCK
#define W EX_PUSH_LOCK_WAITING
#define K EX_PUSH_LOCK_WAKING
#define M EX_PUSH_LOCK_MULTIPLE_SHARED
#define SHARE EX_PUSH_LOCK_SHARE_INC

#define EXP_MOST_LOSSES 3
#define EXP_SPIN_CYCLES 10240

typedef PEX_PUSH_LOCK_WAIT_BLOCK BLOCK;

static ULONG_PTR ExpRead(volatile ULONG_PTR *Lock)
{
    return __atomic_load_n(Lock, __ATOMIC_RELAXED);
}

/* acq_rel: acquires pair with releases, and a pushed block's contents with who walks the chain */
static BOOLEAN ExpChange(volatile ULONG_PTR *Lock, ULONG_PTR *Value, ULONG_PTR New)
{
    return __atomic_compare_exchange_n(Lock, Value, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static BLOCK ExpNewest(ULONG_PTR Value)
{
    return (BLOCK)(Value & ~EXP_PUSH_LOCK_BITS);
}

static ULONG_PTR ExpSharers(ULONG_PTR Value)
{
    return Value / SHARE;
}

/* Waiting. */

static VOID ExpTell(BLOCK Block, EXP_WAIT_STATE State, const EXP_PUSH_LOCK_METHODS *Methods)
{
    /* release: pairs with the acquire in ExpAwait */
    if (__atomic_exchange_n(&Block->State, (ULONG)State, __ATOMIC_ACQ_REL) == ExpSleeping) {
        Methods->Wake(Block);
    }
}

static BOOLEAN ExpMaySpin(VOID)
{
    return HalOtherProcessorAvailable();
}

static EXP_WAIT_STATE ExpAwait(BLOCK Block, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG State = ExpSpinning;
    for (ULONG Left = ExpMaySpin() ? HalSpinsForCycles(EXP_SPIN_CYCLES) : 0; Left != 0; Left -= 1) {
        State = __atomic_load_n(&Block->State, __ATOMIC_ACQUIRE);
        if (State != ExpSpinning) {
            return (EXP_WAIT_STATE)State;
        }
        HalPause();
    }
    if (__atomic_compare_exchange_n(&Block->State, &State, ExpSleeping, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        Methods->Sleep(Block);
        State = __atomic_load_n(&Block->State, __ATOMIC_ACQUIRE);
    }
    return (EXP_WAIT_STATE)State;
}

/* TRUE: the lock looks free. */
static BOOLEAN ExpSpinWhileHeld(volatile ULONG_PTR *Lock)
{
    if (!ExpMaySpin()) {
        return FALSE;
    }
    for (ULONG Left = HalSpinsForCycles(EXP_SPIN_CYCLES); Left != 0; Left -= 1) {
        if (!(ExpRead(Lock) & L)) {
            return TRUE;
        }
        HalPause();
    }
    return FALSE;
}

static VOID ExpPrepareBlock(BLOCK Block, BOOLEAN Exclusive, const EXP_PUSH_LOCK_METHODS *Methods)
{
    Block->Exclusive = Exclusive;
    Block->Lost = 0;
    Methods->Prepare(Block);
}

/* Makes Block the newest waiter of a lock that Value shows as held or waited for. */
static BOOLEAN ExpPush(volatile ULONG_PTR *Lock, ULONG_PTR *Found, BLOCK Block)
{
    ULONG_PTR Value = *Found;
    ULONG_PTR New = (ULONG_PTR)Block | W | (Value & (L | K | M));
    Block->State = ExpSpinning;
    Block->Previous = NULL;
    Block->ShareCount = 0;
    if (Value & W) {
        Block->Next = ExpNewest(Value);
        Block->Last = NULL;
    } else {
        Block->Next = NULL;
        Block->Last = Block;
        if (ExpSharers(Value) > 1) {
            Block->ShareCount = (LONG)ExpSharers(Value);
            New |= M;
        }
    }
    return ExpChange(Lock, Found, New);
}

/* The chain. */

static BLOCK ExpOldest(BLOCK Newest)
{
    BLOCK Block = Newest;
    BLOCK Last;
    /* relaxed: the blocks themselves were published by the word; Last is the same whoever writes it */
    while ((Last = __atomic_load_n(&Block->Last, __ATOMIC_RELAXED)) == NULL) {
        Block = Block->Next;
    }
    return Last;
}

/* By the owner of K. */
static BLOCK ExpOptimize(BLOCK Newest)
{
    BLOCK Block = Newest;
    while (__atomic_load_n(&Block->Last, __ATOMIC_RELAXED) == NULL) {
        Block->Next->Previous = Block;
        Block = Block->Next;
    }
    BLOCK Oldest = __atomic_load_n(&Block->Last, __ATOMIC_RELAXED);
    __atomic_store_n(&Newest->Last, Oldest, __ATOMIC_RELAXED);
    return Oldest;
}

static VOID ExpMakeOldest(BLOCK Newest, BLOCK Block)
{
    Block->Next = NULL;
    __atomic_store_n(&Newest->Last, Block, __ATOMIC_RELAXED);
}

/* Releasing. */

static VOID ExpForgetWaking(volatile ULONG_PTR *Lock)
{
    /* release: what the owner of K did to the chain comes before the next owner of K */
    __atomic_fetch_and(Lock, ~K, __ATOMIC_ACQ_REL);
}

/* The chain is Newest to Oldest and nobody holds the lock. Tells the oldest, an exclusive waiter, to try again. */
static BOOLEAN ExpWakeExclusive(volatile ULONG_PTR *Lock, ULONG_PTR Value, BLOCK Oldest,
                                const EXP_PUSH_LOCK_METHODS *Methods)
{
    BLOCK Newest = ExpNewest(Value);
    BOOLEAN HandOver = Oldest->Lost >= EXP_MOST_LOSSES;
    if (Oldest == Newest) {
        if (!ExpChange(Lock, &Value, HandOver ? L : 0)) {
            return FALSE;
        }
        ExpTell(Oldest, HandOver ? ExpGranted : ExpWoken, Methods);
        return TRUE;
    }
    if (HandOver && !ExpChange(Lock, &Value, Value | L)) {
        return FALSE;
    }
    ExpMakeOldest(Newest, Oldest->Previous);
    if (HandOver) {
        ExpForgetWaking(Lock);
    }
    ExpTell(Oldest, HandOver ? ExpGranted : ExpWokenWaking, Methods);
    return TRUE;
}

static VOID ExpTellGroup(BLOCK Oldest, ULONG_PTR Count, const EXP_PUSH_LOCK_METHODS *Methods)
{
    for (BLOCK Block = Oldest; Count != 0; Count -= 1) {
        BLOCK Newer = Block->Previous;
        ExpTell(Block, ExpGranted, Methods);
        Block = Newer;
    }
}

/* Grants the lock to the sharers at the old end of the chain, beside Holders that have it already. */
static BOOLEAN ExpGrantShared(volatile ULONG_PTR *Lock, ULONG_PTR Value, BLOCK Oldest, ULONG_PTR Holders,
                              const EXP_PUSH_LOCK_METHODS *Methods)
{
    BLOCK Newest = ExpNewest(Value);
    ULONG_PTR Count = 1;
    BLOCK Youngest = Oldest;
    while (Youngest != Newest && !Youngest->Previous->Exclusive) {
        Youngest = Youngest->Previous;
        Count += 1;
    }
    if (Youngest == Newest) {
        if (!ExpChange(Lock, &Value, L + (Count + Holders) * SHARE)) {
            return FALSE;
        }
    } else {
        BLOCK Remaining = Youngest->Previous;
        LONG Sharers = (LONG)(Count + Holders);
        /* relaxed: nobody decrements before M is seen, and the compare-exchange publishes both */
        __atomic_store_n(&Remaining->ShareCount, Sharers > 1 ? Sharers : 0, __ATOMIC_RELAXED);
        if (!ExpChange(Lock, &Value, Value | L | (Sharers > 1 ? M : 0))) {
            return FALSE;
        }
        ExpMakeOldest(Newest, Remaining);
        ExpForgetWaking(Lock);
    }
    ExpTellGroup(Oldest, Count, Methods);
    return TRUE;
}

/* By the owner of K: gives the lock on, or K back if somebody holds the lock. */
static VOID ExpPassOn(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    for (;;) {
        /* acquire: the chain as it was pushed */
        ULONG_PTR Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
        if (Value & L) {
            if (ExpChange(Lock, &Value, Value & ~K)) {
                return;
            }
            continue;
        }
        BLOCK Oldest = ExpOptimize(ExpNewest(Value));
        if (Oldest->Exclusive ? ExpWakeExclusive(Lock, Value, Oldest, Methods)
                              : ExpGrantShared(Lock, Value, Oldest, 0, Methods)) {
            return;
        }
    }
}

/* The last holder of a lock with waiters goes. */
static VOID ExpReleaseWaited(volatile ULONG_PTR *Lock, ULONG_PTR Value, const EXP_PUSH_LOCK_METHODS *Methods)
{
    while (!ExpChange(Lock, &Value, (Value & ~(L | M)) | K)) {
    }
    if (!(Value & K)) {
        ExpPassOn(Lock, Methods);
    }
}

VOID ExpReleaseExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = L;
    if (ExpChange(Lock, &Value, 0)) {
        return;
    }
    if ((Value & (L | W)) != (L | W) || (Value & M)) {
        Methods->NotOwned(Lock);
    }
    ExpReleaseWaited(Lock, Value, Methods);
}

VOID ExpReleaseShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = ExpRead(Lock);
    while (!(Value & W)) {
        if (!(Value & L) || ExpSharers(Value) == 0) {
            Methods->NotOwned(Lock);
        }
        if (ExpChange(Lock, &Value, ExpSharers(Value) == 1 ? 0 : Value - SHARE)) {
            return;
        }
    }
    if (!(Value & L)) {
        Methods->NotOwned(Lock);
    }
    if (Value & M) {
        /* acquire: the chain as it was pushed */
        Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
        BLOCK Oldest = ExpOldest(ExpNewest(Value));
        /* acq_rel: what each sharer did comes before the last one's release */
        if (__atomic_sub_fetch(&Oldest->ShareCount, 1, __ATOMIC_ACQ_REL) != 0) {
            return;
        }
    }
    ExpReleaseWaited(Lock, Value, Methods);
}

VOID ExpRelease(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = ExpRead(Lock);
    if (!(Value & W) && ExpSharers(Value) == 0) {
        ExpReleaseExclusive(Lock, Methods);
    } else {
        ExpReleaseShared(Lock, Methods);
    }
}

/* Acquiring. */

/* The woken thread owns K and has found the lock taken again: it goes back to where it came from, the old end. */
static VOID ExpRequeue(volatile ULONG_PTR *Lock, BLOCK Block, const EXP_PUSH_LOCK_METHODS *Methods)
{
    BLOCK Newest = ExpNewest(__atomic_load_n(Lock, __ATOMIC_ACQUIRE));
    BLOCK Oldest = ExpOptimize(Newest);
    Block->State = ExpSpinning;
    Block->Last = NULL;
    Block->Previous = Oldest;
    Oldest->Next = Block;
    ExpMakeOldest(Newest, Block);
    ExpPassOn(Lock, Methods);
}

VOID ExpAcquireExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    EX_PUSH_LOCK_WAIT_BLOCK Block;
    EXP_WAIT_STATE State = ExpWoken;
    ULONG_PTR Value = ExpRead(Lock);

    ExpPrepareBlock(&Block, TRUE, Methods);
    for (;;) {
        if (!(Value & L)) {
            if (ExpChange(Lock, &Value, (Value | L) & ~(State == ExpWokenWaking ? K : 0))) {
                return;
            }
            continue;
        }
        if (ExpSpinWhileHeld(Lock)) {
            Value = ExpRead(Lock);
            continue;
        }
        if (State == ExpWokenWaking) {
            ExpRequeue(Lock, &Block, Methods);
        } else if (!ExpPush(Lock, &Value, &Block)) {
            continue;
        }
        State = ExpAwait(&Block, Methods);
        if (State == ExpGranted) {
            return;
        }
        Block.Lost += 1;
        Value = ExpRead(Lock);
    }
}

VOID ExpAcquireShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    EX_PUSH_LOCK_WAIT_BLOCK Block;
    ULONG_PTR Value = ExpRead(Lock);

    ExpPrepareBlock(&Block, FALSE, Methods);
    for (;;) {
        if (Value == 0 || (!(Value & W) && ExpSharers(Value) != 0)) {
            if (ExpChange(Lock, &Value, (Value | L) + SHARE)) {
                return;
            }
            continue;
        }
        if (!(Value & W) && ExpSpinWhileHeld(Lock)) {
            Value = ExpRead(Lock);
            continue;
        }
        if (ExpPush(Lock, &Value, &Block)) {
            ExpAwait(&Block, Methods);
            return;
        }
    }
}

BOOLEAN ExpTryAcquireExclusive(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Value = ExpRead(Lock);
    while (!(Value & L)) {
        if (ExpChange(Lock, &Value, Value | L)) {
            return TRUE;
        }
    }
    return FALSE;
}

BOOLEAN ExpTryAcquireShared(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Value = ExpRead(Lock);
    while (Value == 0 || (!(Value & W) && ExpSharers(Value) != 0)) {
        if (ExpChange(Lock, &Value, (Value | L) + SHARE)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* Converting. */

BOOLEAN ExpTryConvertToExclusive(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Value = ExpRead(Lock);
    while (Value == L + SHARE) {
        if (ExpChange(Lock, &Value, L)) {
            return TRUE;
        }
    }
    return (Value & W) && !(Value & M); /* with waiters an only sharer looks like an exclusive owner already */
}

/* With waiters the owner becomes an only sharer, which looks the same, and lets waiting sharers in beside it. */
VOID ExpConvertToShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = ExpRead(Lock);
    while (!(Value & W)) {
        if (Value != L) {
            Methods->NotOwned(Lock);
        }
        if (ExpChange(Lock, &Value, L + SHARE)) {
            return;
        }
    }
    while (!(Value & K)) {
        if (!ExpChange(Lock, &Value, Value | K)) {
            continue;
        }
        Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
        for (BLOCK Oldest = ExpOptimize(ExpNewest(Value)); !Oldest->Exclusive;
             Oldest = ExpOptimize(ExpNewest(Value))) {
            if (ExpGrantShared(Lock, Value, Oldest, 1, Methods)) {
                return;
            }
            Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
        }
        ExpForgetWaking(Lock);
        return;
    }
}
