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
 *     B|W|K|L        held exclusively or by one sharer, and so on
 *     B|W|K|L|M      held by one sharer that was the exclusive owner: whoever has K is to let waiting sharers in
 *
 * Always: K implies W; M implies L and W; W without L implies K; neither L nor W means 0.
 *
 * The waiters are a chain from the newest to the oldest. Anybody pushes a new one by compare-exchange. Everything else
 * that is done to the chain is done by the owner of K, and K is owned from the change that set it until the thread it
 * has woken holds the lock or is back in the chain: so there is at most one woken waiter on its way, and releases
 * in the meantime wake nobody. The owner of K goes from the newest block to the first one that knows the oldest, fills
 * in the backward links on the way and leaves the answer in the newest: each block is walked once. A block that is
 * older than the newest one with an answer may know a wrong one; nobody asks it. Those who decrement the number of
 * sharers read the chain too, but only while K is clear.
 *
 * Requirements, each with a test of that number in tests/ex/pushlock.c (10: pushlockfast.c):
 *  1. Exclusion: an exclusive owner is alone; sharers are among themselves.
 *  2. No lost wake: when the lock is free and somebody waits, somebody is on its way.
 *  3. Shared is shared: sharers that may hold it together do, in every state. So a sharer never takes a lock that has
 *     waiters; waiting sharers are granted it as a group, with their number. (To let a sharer set L while waiters are
 *     queued leaves no room for the number, and the next sharers sleep behind it: shared has become exclusive.)
 *  4. Bounded overtaking: a waiter that was woken in vain EXP_MOST_LOSSES times is handed the lock, and a thread that
 *     has passed waiters for the longest turn (ke/turn.h) queues behind them. (Strict first come, first served was
 *     rejected: the lock would idle for as long as the host takes to wake each waiter.)
 *  5. Sharers that come while an exclusive waiter is queued wait behind it.
 *  6. Try never blocks, and takes a lock that is free of holders and waiters.
 *  7. A conversion never blocks; to exclusive it succeeds for an only sharer.
 *  8. Nothing is allocated. Zeroed memory is a free lock.
 *  9. After the compare-exchange that releases it nobody touches the lock's memory on behalf of the releaser, unless
 *     somebody waits and so keeps it alive; a wait block is not touched after its waiter was told.
 * 10. The uncontended paths are one compare-exchange each.
 *
 * What is fast. A hand-over costs three lines that travel, if the next one runs, and a wake, if it sleeps; both are a
 * multiple of a short section. And as long as anybody is queued the inline guesses fail. So it is best if hardly
 * anybody sleeps:
 *  - who finds the lock held looks again after a pause that many short sections fit into (EXP_PAUSE_CYCLES), because
 *    each look takes the line away from the holder; or all the time, if it costs the holder nothing (ke/turn.h). With
 *    others in the queue it does not spin: they may be many, and one of them is on its way;
 *  - then it gives its processor away, some times, because the holder may need it, and only then it queues. Who wants a
 *    share overtakes nobody by it: a sharer that looks on while an exclusive waiter is queued waits just as if it were
 *    queued itself. (To queue at once behind others was rejected: once somebody sleeps everybody does, and each section
 *    waits for a wake.)
 *  - turns are made of that: who has passed waiters often enough, or has found the lock held for long enough, gives its
 *    processor away, and only KI_LONGEST_TURN passes make a thread sleep.
 */
#include "pushlock.h"

#include "../trace/trace.h"
#include "../ke/turn.h"

#define L EX_PUSH_LOCK_LOCK
#define W EX_PUSH_LOCK_WAITING
#define K EX_PUSH_LOCK_WAKING
#define M EX_PUSH_LOCK_MULTIPLE_SHARED
#define SHARE EX_PUSH_LOCK_SHARE_INC

#define EXP_MOST_LOSSES 3
#define EXP_SPIN_CYCLES 10240
#define EXP_PAUSE_CYCLES 2048
#define EXP_NEAR_PAUSE_CYCLES 256
#define EXP_NEAR_SPIN_CYCLES 2048

typedef PEX_PUSH_LOCK_WAIT_BLOCK BLOCK;

/* relaxed: a first look; whatever is done on its account is decided by a compare-exchange */
static ULONG_PTR ExpRead(volatile ULONG_PTR *Lock)
{
    return __atomic_load_n(Lock, __ATOMIC_RELAXED);
}

/* acq_rel: acquires pair with releases, and a pushed block's contents with who walks the chain. On failure relaxed: what
   was found is only compared and exchanged again; who walks the chain reads the word anew. */
static BOOLEAN ExpChange(volatile ULONG_PTR *Lock, ULONG_PTR *Value, ULONG_PTR New)
{
    return __atomic_compare_exchange_n(Lock, Value, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static BLOCK ExpNewest(ULONG_PTR Value)
{
    return (BLOCK)(Value & ~EXP_PUSH_LOCK_BITS);
}

static ULONG_PTR ExpSharers(ULONG_PTR Value)
{
    return Value / SHARE;
}

static BOOLEAN ExpIsOpenToSharers(ULONG_PTR Value)
{
    return Value == 0 || (!(Value & W) && ExpSharers(Value) != 0);
}

/* For all that the word tells: with waiters one holder looks the same in both. */
BOOLEAN ExpIsHeldExclusively(ULONG_PTR Value)
{
    return Value == L || (Value & (L | W | M)) == (L | W);
}

BOOLEAN ExpIsHeldShared(ULONG_PTR Value)
{
    return (Value & L) && Value != L;
}

/* Waiting. */

EXP_PATIENCE ExpFreshPatience(BOOLEAN Near)
{
    EXP_PATIENCE Patience = {.Yields = HalYieldsBeforeSleep()};
    if (HalOtherProcessorAvailable()) {
        Patience.Spins = HalSpinsForCycles(EXP_SPIN_CYCLES);
        Patience.MostPauses = HalSpinsForCycles(Near ? EXP_NEAR_PAUSE_CYCLES : EXP_PAUSE_CYCLES);
        Patience.Pauses = Near ? 1 : Patience.MostPauses;
    }
    return Patience;
}

static VOID ExpPause(ULONG Pauses)
{
    while (Pauses != 0) {
        Pauses -= 1;
        HalPause();
    }
}

static VOID ExpPauseBeforeLook(EXP_PATIENCE *Patience)
{
    ULONG Pauses = Patience->Pauses < Patience->Spins ? Patience->Pauses : Patience->Spins;
    Patience->Spins -= Pauses;
    if (Patience->Pauses < Patience->MostPauses) {
        Patience->Pauses *= 2;
    }
    ExpPause(Pauses);
}

BOOLEAN ExpStayAwake(EXP_PATIENCE *Patience)
{
    if (Patience->Spins != 0) {
        ExpPauseBeforeLook(Patience);
        return TRUE;
    }
    if (Patience->Yields != 0) {
        Patience->Yields -= 1;
        HalDispatch.Yield();
        return TRUE;
    }
    return FALSE;
}

BOOLEAN ExpLookAgain(PKTHREAD Thread, volatile ULONG_PTR *Lock, ULONG_PTR Value, EXP_PATIENCE *Patience)
{
    BOOLEAN Spins = Patience->Spins != 0;
    if (!ExpStayAwake(Patience)) {
        return FALSE;
    }
    if (Spins) {
        KiTimeLook(Thread, Lock, Value);
    }
    return TRUE;
}

VOID ExpTell(BLOCK Block, EXP_WAIT_STATE State, const EXP_PUSH_LOCK_METHODS *Methods)
{
    /* release: pairs with ExpStateOf. What Wake needs of the block was published when the block was pushed. */
    if (__atomic_exchange_n(&Block->State, (ULONG)State, __ATOMIC_RELEASE) == ExpSleeping) {
        Methods->Wake(Block);
    }
}

BOOLEAN ExpFallAsleep(BLOCK Block)
{
    ULONG State = ExpAwake;
    /* relaxed: it tells ExpTell nothing but that the waiter sleeps; who was told looks again, by ExpStateOf */
    return __atomic_compare_exchange_n(&Block->State, &State, ExpSleeping, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static EXP_WAIT_STATE ExpAwait(BLOCK Block, volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (ExpFallAsleep(Block)) {
        Methods->Sleep(Block, Lock);
    }
    return ExpStateOf(Block);
}

static VOID ExpPrepareBlock(BLOCK Block, BOOLEAN Exclusive, const EXP_PUSH_LOCK_METHODS *Methods)
{
    Block->Exclusive = Exclusive;
    Block->Losses = 0;
    Methods->Prepare(Block);
}

/* Makes Block the newest waiter of a lock that *Found shows as held or waited for. */
static BOOLEAN ExpPush(volatile ULONG_PTR *Lock, ULONG_PTR *Found, BLOCK Block)
{
    ULONG_PTR Value = *Found;
    ULONG_PTR New = (ULONG_PTR)Block | W | (Value & (L | K | M));
    Block->State = ExpAwake;
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

/* relaxed, here and below: the blocks were published by the word, and so was what owners of K wrote into them */
static BLOCK ExpKnownOldest(BLOCK Block)
{
    return __atomic_load_n(&Block->Last, __ATOMIC_RELAXED);
}

static VOID ExpRememberOldest(BLOCK Newest, BLOCK Oldest)
{
    __atomic_store_n(&Newest->Last, Oldest, __ATOMIC_RELAXED);
}

/* For who only reads. */
static BLOCK ExpFindOldest(BLOCK Newest)
{
    BLOCK Block = Newest;
    while (ExpKnownOldest(Block) == NULL) {
        Block = Block->Next;
    }
    return ExpKnownOldest(Block);
}

/* By the owner of K. */
static BLOCK ExpOptimize(BLOCK Newest)
{
    BLOCK Block = Newest;
    while (ExpKnownOldest(Block) == NULL) {
        Block->Next->Previous = Block;
        Block = Block->Next;
    }
    ExpRememberOldest(Newest, ExpKnownOldest(Block));
    return ExpKnownOldest(Block);
}

static VOID ExpLink(BLOCK Newest, BLOCK Oldest, BLOCK Older)
{
    Oldest->Next = Older;
    ExpRememberOldest(Newest, Older != NULL ? Older : Oldest);
}

/* Giving on what was released. All by the owner of K. */

/*
 * Takes the blocks from Oldest to Youngest out of the chain and gives the lock to Sharers threads, or if that is 0 to
 * one alone. K goes by the same compare-exchange: from then on another one may own it.
 */
static BOOLEAN ExpCutAndGive(volatile ULONG_PTR *Lock, ULONG_PTR Value, BLOCK Oldest, BLOCK Youngest,
                             ULONG_PTR Sharers)
{
    BLOCK Newest = ExpNewest(Value);
    if (Youngest == Newest) {
        return ExpChange(Lock, &Value, L + Sharers * SHARE);
    }
    BLOCK Remaining = Youngest->Previous;
    BOOLEAN Multiple = Sharers > 1;
    __atomic_store_n(&Remaining->ShareCount, Multiple ? (LONG)Sharers : 0, __ATOMIC_RELAXED);
    ExpLink(Newest, Remaining, NULL);
    if (ExpChange(Lock, &Value, (ULONG_PTR)Newest | W | L | (Multiple ? M : 0))) {
        return TRUE;
    }
    Remaining->Next = Youngest;
    ExpRememberOldest(Newest, Oldest);
    return FALSE;
}

static BOOLEAN ExpGiveToExclusive(volatile ULONG_PTR *Lock, ULONG_PTR Value, BLOCK Oldest,
                                  const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (!ExpCutAndGive(Lock, Value, Oldest, Oldest, 0)) {
        return FALSE;
    }
    ExpTell(Oldest, ExpGranted, Methods);
    return TRUE;
}

/* Tells an exclusive waiter to try again; if others wait, K goes with it. */
static BOOLEAN ExpWakeExclusive(volatile ULONG_PTR *Lock, ULONG_PTR Value, BLOCK Oldest,
                                const EXP_PUSH_LOCK_METHODS *Methods)
{
    BLOCK Newest = ExpNewest(Value);
    if (Oldest->Losses >= EXP_MOST_LOSSES) {
        return ExpGiveToExclusive(Lock, Value, Oldest, Methods);
    }
    if (Oldest != Newest) {
        ExpLink(Newest, Oldest->Previous, NULL);
        ExpTell(Oldest, ExpWokenWaking, Methods);
        return TRUE;
    }
    if (!ExpChange(Lock, &Value, 0)) {
        return FALSE;
    }
    ExpTell(Oldest, ExpWoken, Methods);
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

/* Grants the lock to the sharers at the old end of the chain, beside the one that Value may show as holding it. */
static BOOLEAN ExpGrantShared(volatile ULONG_PTR *Lock, ULONG_PTR Value, BLOCK Oldest,
                              const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Holders = Value & L ? 1 : 0;
    ULONG_PTR Count = 1;
    BLOCK Youngest = Oldest;
    while (Youngest != ExpNewest(Value) && !Youngest->Previous->Exclusive) {
        Youngest = Youngest->Previous;
        Count += 1;
    }
    if (!ExpCutAndGive(Lock, Value, Oldest, Youngest, Holders + Count)) {
        return FALSE;
    }
    ExpTellGroup(Oldest, Count, Methods);
    return TRUE;
}

/* Gives the lock on, or gives K back if somebody holds it that cannot be joined. */
static VOID ExpPassOn(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    BOOLEAN Done;
    do {
        /* acquire: the chain as it was pushed */
        ULONG_PTR Value = __atomic_load_n(Lock, __ATOMIC_ACQUIRE);
        BLOCK Oldest = ExpOptimize(ExpNewest(Value));
        if ((Value & L) && (!(Value & M) || Oldest->Exclusive)) {
            Done = ExpChange(Lock, &Value, Value & ~(K | M));
        } else if (Oldest->Exclusive) {
            Done = ExpWakeExclusive(Lock, Value, Oldest, Methods);
        } else {
            Done = ExpGrantShared(Lock, Value, Oldest, Methods);
        }
    } while (!Done);
}

/* Releasing. */

/* The only holder of a lock with waiters goes. FALSE: *Value has changed. */
static BOOLEAN ExpTryReleaseWaited(volatile ULONG_PTR *Lock, ULONG_PTR *Value, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Found = *Value;
    if (!ExpChange(Lock, Value, (Found & ~(L | M)) | K)) {
        return FALSE;
    }
    if (!(Found & K)) {
        ExpPassOn(Lock, Methods);
    }
    return TRUE;
}

static VOID ExpGiveUpExclusive(PKTHREAD Thread, volatile ULONG_PTR *Lock, ULONG_PTR Value,
                               const EXP_PUSH_LOCK_METHODS *Methods)
{
    BOOLEAN Done;
    if (Thread->LockOwned == (PVOID)Lock) {
        Thread->LockOwned = NULL;
    }
    do {
        if (!ExpIsHeldExclusively(Value)) {
            Methods->NotOwned(Lock);
        }
        Done = Value == L ? ExpChange(Lock, &Value, 0) : ExpTryReleaseWaited(Lock, &Value, Methods);
    } while (!Done);
}

VOID ExpReleaseExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG_PTR Value = ExpRead(Lock);
    BOOLEAN Yields = (Value & W) && ExpIsHeldExclusively(Value) && KiCountPass(Thread, Lock);
    ExpGiveUpExclusive(Thread, Lock, Value, Methods);
    if (Yields) {
        HalDispatch.Yield();
    }
}

VOID ExpReleaseInnerExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ExpGiveUpExclusive(KiCurrentThread(), Lock, ExpRead(Lock), Methods);
}

static BOOLEAN ExpTryLeaveSharers(volatile ULONG_PTR *Lock, ULONG_PTR *Value)
{
    return ExpChange(Lock, Value, ExpSharers(*Value) == 1 ? 0 : *Value - SHARE);
}

/* The number of sharers is in the oldest block. TRUE: there are others left. */
static BOOLEAN ExpLeaveCountedSharers(volatile ULONG_PTR *Lock)
{
    /* acquire: the chain as it was pushed */
    BLOCK Oldest = ExpFindOldest(ExpNewest(__atomic_load_n(Lock, __ATOMIC_ACQUIRE)));
    /* acq_rel: what each sharer did comes before the last one's release */
    return __atomic_sub_fetch(&Oldest->ShareCount, 1, __ATOMIC_ACQ_REL) != 0;
}

VOID ExpReleaseShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = ExpRead(Lock);
    BOOLEAN Counted = FALSE;
    BOOLEAN Done;
    do {
        if (!ExpIsHeldShared(Value)) {
            Methods->NotOwned(Lock);
        }
        /* With K the number is not in the block: see B|W|K|L|M above. */
        if (!Counted && (Value & (M | K)) == M) {
            if (ExpLeaveCountedSharers(Lock)) {
                return;
            }
            Counted = TRUE;
        }
        Done = Value & W ? ExpTryReleaseWaited(Lock, &Value, Methods) : ExpTryLeaveSharers(Lock, &Value);
    } while (!Done);
}

VOID ExpRelease(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (ExpRead(Lock) == L) {
        ExpReleaseExclusive(Lock, Methods);
    } else {
        ExpReleaseShared(Lock, Methods);
    }
}

/* Acquiring. */

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
    while (ExpIsOpenToSharers(Value)) {
        if (ExpChange(Lock, &Value, (Value | L) + SHARE)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* The woken thread owns K and has found the lock taken again: it goes back to where it came from, the old end. */
static VOID ExpRequeue(volatile ULONG_PTR *Lock, BLOCK Block, const EXP_PUSH_LOCK_METHODS *Methods)
{
    /* acquire: the chain as it was pushed */
    BLOCK Newest = ExpNewest(__atomic_load_n(Lock, __ATOMIC_ACQUIRE));
    BLOCK Oldest = ExpOptimize(Newest);
    Block->State = ExpAwake;
    Block->Next = NULL;
    Block->Last = NULL;
    Block->Previous = Oldest;
    ExpLink(Newest, Oldest, Block);
    ExpPassOn(Lock, Methods);
}

/* Is told as the oldest waiter, sooner or later. FALSE: the word has changed, and nothing was done. */
static BOOLEAN ExpQueue(volatile ULONG_PTR *Lock, ULONG_PTR Value, BLOCK Block, EXP_WAIT_STATE *State,
                        const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (*State == ExpWokenWaking) {
        ExpRequeue(Lock, Block, Methods);
    } else if (!ExpPush(Lock, &Value, Block)) {
        return FALSE;
    }
    *State = ExpAwait(Block, Lock, Methods);
    Block->Losses += 1;
    return TRUE;
}

static VOID ExpWaitForExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    EX_PUSH_LOCK_WAIT_BLOCK Block;
    EXP_WAIT_STATE State = ExpWoken;
    PKTHREAD Thread = KiCurrentThread();
    EXP_PATIENCE Patience = ExpFreshPatience(KiIsNear(Thread));
    BOOLEAN TurnOver = KiIsTurnOver(Thread, Lock);

    ExpPrepareBlock(&Block, TRUE, Methods);
    while (State != ExpGranted) {
        ULONG_PTR Value = ExpRead(Lock);
        TurnOver = TurnOver && (Value & W);
        if ((Value & W) && State != ExpWokenWaking) {
            Patience.Spins = 0;
        }
        if (!TurnOver && !(Value & L)) {
            if (ExpChange(Lock, &Value, (Value | L) & ~(State == ExpWokenWaking ? K : 0))) {
                return;
            }
        } else if (!TurnOver && ExpLookAgain(Thread, Lock, Value, &Patience)) {
            continue;
        } else if (ExpQueue(Lock, Value, &Block, &State, Methods)) {
            KiBeginTurn(Thread, Lock);
            TurnOver = FALSE;
            Patience = ExpFreshPatience(KiIsNear(Thread));
            Patience.Pauses = 1; /* it is its turn */
        }
    }
}

static VOID ExpWaitForShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    EX_PUSH_LOCK_WAIT_BLOCK Block;
    PKTHREAD Thread = KiCurrentThread();
    EXP_PATIENCE Patience = ExpFreshPatience(KiIsNear(Thread));

    ExpPrepareBlock(&Block, FALSE, Methods);
    for (;;) {
        ULONG_PTR Value = ExpRead(Lock);
        if (ExpIsOpenToSharers(Value)) {
            if (ExpChange(Lock, &Value, (Value | L) + SHARE)) {
                return;
            }
            continue;
        }
        if (!ExpLookAgain(Thread, Lock, Value, &Patience) && ExpPush(Lock, &Value, &Block)) {
            ExpAwait(&Block, Lock, Methods);
            return;
        }
    }
}

static DECLSPEC_NOINLINE VOID ExpContendForExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    KTRACE_CONTENTION_BEGIN(Lock, Methods->Kind, TRUE, 0);
    ExpWaitForExclusive(Lock, Methods);
    KiCurrentThread()->LockOwned = (PVOID)Lock;
    KTRACE_CONTENTION_END(Lock, Methods->Kind, TRUE);
}

static DECLSPEC_NOINLINE VOID ExpContendForShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    KTRACE_CONTENTION_BEGIN(Lock, Methods->Kind, FALSE, 0);
    ExpWaitForShared(Lock, Methods);
    KTRACE_CONTENTION_END(Lock, Methods->Kind, FALSE);
}

/* Where a look costs nothing the lock is taken as soon as it is free. */
static BOOLEAN ExpSpinForExclusive(PKTHREAD Thread, volatile ULONG_PTR *Lock)
{
    for (ULONG Spins = HalSpinsForCycles(EXP_NEAR_SPIN_CYCLES); Spins != 0; Spins -= 1) {
        ULONG_PTR Value = ExpRead(Lock);
        if (!(Value & L) && ExpChange(Lock, &Value, Value | L)) {
            return TRUE;
        }
        if (Value & W) {
            return FALSE;
        }
        HalPause();
        KiTimeLook(Thread, Lock, Value);
    }
    return FALSE;
}

static VOID ExpAcquireHeldExclusive(PKTHREAD Thread, volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (!KiIsNear(Thread) || !ExpSpinForExclusive(Thread, Lock)) {
        ExpContendForExclusive(Lock, Methods);
    }
}

VOID ExpAcquireExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    PKTHREAD Thread = KiCurrentThread();
    if (KiIsTurnOver(Thread, Lock)) {
        ExpContendForExclusive(Lock, Methods);
    } else if (!ExpTryAcquireExclusive(Lock)) {
        KiCountWait(Thread);
        ExpAcquireHeldExclusive(Thread, Lock, Methods);
    }
}

VOID ExpAcquireInnerExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (!ExpTryAcquireExclusive(Lock)) {
        ExpAcquireHeldExclusive(KiCurrentThread(), Lock, Methods);
    }
}

VOID ExpAcquireShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    if (!ExpTryAcquireShared(Lock)) {
        KiCountWait(KiCurrentThread());
        ExpContendForShared(Lock, Methods);
    }
}

/* Converting. */

/*
 * Asked by a sharer. With waiters an only sharer looks like an exclusive owner already, but for M: with K that is its wish
 * to let sharers in; without, the number is in the oldest block, which stays there as long as anybody shares.
 */
static BOOLEAN ExpIsOnlySharer(volatile ULONG_PTR *Lock, ULONG_PTR Value)
{
    if (!(Value & W)) {
        return Value == L + SHARE;
    }
    if ((Value & (M | K)) != M) {
        return TRUE;
    }
    /* acquire: the chain as it was pushed */
    BLOCK Oldest = ExpFindOldest(ExpNewest(__atomic_load_n(Lock, __ATOMIC_ACQUIRE)));
    /* acquire: pairs with ExpLeaveCountedSharers, what the others did as sharers comes before what is done alone */
    return __atomic_load_n(&Oldest->ShareCount, __ATOMIC_ACQUIRE) == 1;
}

BOOLEAN ExpTryConvertToExclusive(volatile ULONG_PTR *Lock)
{
    ULONG_PTR Value = ExpRead(Lock);
    while (ExpIsOnlySharer(Lock, Value)) {
        /* Also where the word stays as it is: what others did as sharers comes before. */
        if (ExpChange(Lock, &Value, Value & W ? Value & ~M : L)) {
            return TRUE;
        }
    }
    return FALSE;
}

/*
 * With waiters the owner becomes an only sharer, which looks the same, and waiting sharers are to be let in beside it:
 * by the owner of K, who may be somebody else and may have made up its mind already that the holder cannot be joined. M
 * makes its compare-exchange fail.
 */
VOID ExpConvertToShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods)
{
    ULONG_PTR Value = ExpRead(Lock);
    ULONG_PTR New;
    do {
        if (!ExpIsHeldExclusively(Value)) {
            Methods->NotOwned(Lock);
        }
        New = Value & W ? Value | K | M : L + SHARE;
    } while (!ExpChange(Lock, &Value, New));
    if ((Value & (W | K)) == W) {
        ExpPassOn(Lock, Methods);
    }
}
