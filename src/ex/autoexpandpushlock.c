/*
 * autoexpandpushlock.c: a pushlock that grows.
 *
 * LocalLock is a normal pushlock, and as long as sharers do not meet on it the only one. When they do, words are added
 * on cache lines of the single processors, two at first and four times as many each time, until every processor has
 * its own. State says how many there are:
 *
 *      31                             8  7    4  3   2   1   0
 *     +--------------------------------+-------+---+---+---+---+
 *     |     column in the reserve + 1  | log 2 | 0 | P | 0 | E |
 *     +--------------------------------+-------+---+---+---+---+
 *
 * E: expanded; log 2 of the number of words is valid. P: the memory is pageable. Column 0: no words were to be had when
 * the lock was allocated, and it stays small.
 *
 * 1. An exclusive owner takes LocalLock first, and then every word that State shows. State is changed only by a sharer of
 *    LocalLock, so it stays the same until the release, and no exclusive owner is there when it changes. Turns
 *    (ke/turn.h) are counted at LocalLock only: who gave its processor away at a word would have LocalLock in hand.
 * 2. A sharer holds LocalLock or one of the words that State showed when it came. Either keeps exclusive owners out,
 *    whatever State has become since: LocalLock is always taken, and words are only added. So nobody has to move when
 *    the lock grows, and a sharer that read an old State is as good as any.
 * 3. A sharer that meets another one on its word counts that in Stats; who releases while the count is high enough
 *    makes the lock grow, if it shares LocalLock or can without waiting: a sharer that waited for that could wait for
 *    somebody who waits for it. (To want LocalLock exclusively was rejected: where many processors share it, it is never
 *    without another sharer, and the lock would stay small just where it has to grow.) Of several that find the count
 *    high the one that takes it makes the step.
 * 4. Growing allocates nothing: the words are the lock's since it was allocated. If there was no memory for them the
 *    lock works all the same.
 * 5. Sharers of an expanded lock write to their word only, which nobody but their processor's sharers and exclusive
 *    owners touches.
 *
 * The reserve: the words of eight locks share a cache line of each processor, so a lock costs eight bytes for each
 * processor, not a line. A slab is a line of every processor, its eight columns are given out and taken back by
 * compare-exchange. Slabs stay for the next locks.
 */
#include "exp.h"

#include "pushlock.h"

#define EXP_EXPANDED 0x1u
#define EXP_PAGEABLE 0x4u
#define EXP_LOG_SHIFT 4
#define EXP_LOG_MASK 0xfu
#define EXP_COLUMN_SHIFT 8

#define EXP_MEETINGS_BEFORE_GROWTH 64
#define EXP_FIRST_LOG 1
#define EXP_LOG_STEP 2

#define EXP_COLUMNS (SYSTEM_CACHE_ALIGNMENT_SIZE / (ULONG)sizeof(EX_PUSH_LOCK))
#define EXP_SLABS 4096
#define EXP_NO_COLUMN 0

#define EXP_AUTO_EXPAND_TAG 0x6c506541u /* "AePl" */
#define EXP_SLOT_TAG 0x746f6c53u        /* "Slot" */

typedef struct _EXP_SLOT_LINE {
    EX_PUSH_LOCK Column[EXP_COLUMNS] DECLSPEC_CACHEALIGN;
} EXP_SLOT_LINE;

typedef struct _EXP_SLOT_SLAB {
    volatile ULONG Used DECLSPEC_CACHEALIGN; /* a bit for each column */
    EXP_SLOT_LINE Line[];                    /* for each processor */
} EXP_SLOT_SLAB, *PEXP_SLOT_SLAB;

typedef enum _EXP_RESERVE {
    ExpNonPagedReserve,
    ExpPagedReserve,
    ExpReserves
} EXP_RESERVE;

static PEXP_SLOT_SLAB volatile ExpSlab[ExpReserves][EXP_SLABS];

/* The reserve. */

static POOL_FLAGS ExpPoolOf(EXP_RESERVE Reserve)
{
    return Reserve == ExpPagedReserve ? POOL_FLAG_PAGED : POOL_FLAG_NON_PAGED;
}

static EXP_RESERVE ExpReserveOf(ULONG State)
{
    return State & EXP_PAGEABLE ? ExpPagedReserve : ExpNonPagedReserve;
}

static PEXP_SLOT_SLAB ExpAddSlab(PEXP_SLOT_SLAB volatile *Place, EXP_RESERVE Reserve)
{
    PEXP_SLOT_SLAB Present = NULL;
    PEXP_SLOT_SLAB New = ExAllocatePool2(ExpPoolOf(Reserve) | POOL_FLAG_CACHE_ALIGNED,
                                         sizeof(EXP_SLOT_SLAB) + KeNumberProcessors * sizeof(EXP_SLOT_LINE),
                                         EXP_SLOT_TAG);
    /* release: the zeros in the slab; acquire: those in the one that somebody else was faster to add */
    if (New == NULL ||
        __atomic_compare_exchange_n(Place, &Present, New, FALSE, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        return New;
    }
    ExFreePoolWithTag(New, EXP_SLOT_TAG);
    return Present;
}

/* EXP_COLUMNS: there is none. */
static ULONG ExpTakeColumnOf(PEXP_SLOT_SLAB Slab)
{
    ULONG Used = __atomic_load_n(&Slab->Used, __ATOMIC_RELAXED);
    while (Used != (1u << EXP_COLUMNS) - 1) {
        ULONG Column = (ULONG)__builtin_ctz(~Used);
        /* acquire: pairs with the release in ExpReturnColumn */
        if (__atomic_compare_exchange_n(&Slab->Used, &Used, Used | 1u << Column, FALSE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return Column;
        }
    }
    return EXP_COLUMNS;
}

/* The number of the column plus 1, or EXP_NO_COLUMN. */
static ULONG ExpTakeColumn(EXP_RESERVE Reserve)
{
    for (ULONG Number = 0; Number < EXP_SLABS; Number++) {
        PEXP_SLOT_SLAB volatile *Place = &ExpSlab[Reserve][Number];
        /* acquire: pairs with the release in ExpAddSlab */
        PEXP_SLOT_SLAB Slab = __atomic_load_n(Place, __ATOMIC_ACQUIRE);
        if (Slab == NULL && (Slab = ExpAddSlab(Place, Reserve)) == NULL) {
            return EXP_NO_COLUMN;
        }
        ULONG Column = ExpTakeColumnOf(Slab);
        if (Column != EXP_COLUMNS) {
            return Number * EXP_COLUMNS + Column + 1;
        }
    }
    return EXP_NO_COLUMN;
}

/* relaxed: whoever has a column got it after the slab was there */
static PEXP_SLOT_SLAB ExpSlabOf(ULONG State)
{
    ULONG Number = ((State >> EXP_COLUMN_SHIFT) - 1) / EXP_COLUMNS;
    return __atomic_load_n(&ExpSlab[ExpReserveOf(State)][Number], __ATOMIC_RELAXED);
}

static ULONG ExpColumnOf(ULONG State)
{
    return ((State >> EXP_COLUMN_SHIFT) - 1) % EXP_COLUMNS;
}

static PEX_PUSH_LOCK ExpSlotOf(ULONG State, ULONG Processor)
{
    return &ExpSlabOf(State)->Line[Processor].Column[ExpColumnOf(State)];
}

static VOID ExpReturnColumn(ULONG State)
{
    /* release: the words are free again before the next lock has them */
    __atomic_fetch_and(&ExpSlabOf(State)->Used, ~(1u << ExpColumnOf(State)), __ATOMIC_RELEASE);
}

/* Growing. */

static ULONG ExpStateOfLock(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    /* acquire: who holds a word that was added sees what the owners before the addition did */
    return __atomic_load_n(&PushLock->State, __ATOMIC_ACQUIRE);
}

static ULONG ExpLogOf(ULONG State)
{
    return State >> EXP_LOG_SHIFT & EXP_LOG_MASK;
}

/* Processors with words of their own; the others use those of processors whose low bits are the same. */
static ULONG ExpSlotCount(ULONG State)
{
    ULONG Count = State & EXP_EXPANDED ? 1u << ExpLogOf(State) : 0;
    return Count < KeNumberProcessors ? Count : KeNumberProcessors;
}

static BOOLEAN ExpCanGrow(ULONG State)
{
    return State >> EXP_COLUMN_SHIFT != EXP_NO_COLUMN && KeNumberProcessors > 1 &&
           ExpSlotCount(State) < KeNumberProcessors;
}

static ULONG ExpNextLog(ULONG State)
{
    ULONG Log = State & EXP_EXPANDED ? ExpLogOf(State) + EXP_LOG_STEP : EXP_FIRST_LOG;
    ULONG Most = 32 - (ULONG)__builtin_clz(KeNumberProcessors - 1);
    return Log < Most ? Log : Most;
}

/* By a sharer of LocalLock. */
static VOID ExpGrow(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    ULONG State = ExpStateOfLock(PushLock);
    /* relaxed: a statistic; what counts is that one of several takes it */
    ULONG Meetings = __atomic_exchange_n(&PushLock->Stats, 0, __ATOMIC_RELAXED);
    if (Meetings >= EXP_MEETINGS_BEFORE_GROWTH && ExpCanGrow(State)) {
        ULONG Grown = (State & ~(EXP_LOG_MASK << EXP_LOG_SHIFT)) | EXP_EXPANDED | ExpNextLog(State) << EXP_LOG_SHIFT;
        /* release: pairs with ExpStateOfLock; if it fails another one has made this step */
        __atomic_compare_exchange_n(&PushLock->State, &State, Grown, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

static VOID ExpCountMeeting(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG State)
{
    if (ExpCanGrow(State)) {
        __atomic_fetch_add(&PushLock->Stats, 1, __ATOMIC_RELAXED); /* a statistic */
    }
}

static BOOLEAN ExpShouldGrow(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    return __atomic_load_n(&PushLock->Stats, __ATOMIC_RELAXED) >= EXP_MEETINGS_BEFORE_GROWTH;
}

/* By the sharer of a word, which keeps exclusive owners from getting everything, and so the lock alive. */
static VOID ExpTryGrow(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    if (ExpTryAcquireShared(&PushLock->LocalLock)) {
        ExpGrow(PushLock);
        ExpReleaseShared(&PushLock->LocalLock, &ExpPushLockMethods);
    }
}

/* The lock. */

PEX_PUSH_LOCK_AUTO_EXPAND ExAllocateAutoExpandPushLock(ULONG Flags)
{
    ULONG State = Flags & EX_PUSH_LOCK_AUTO_EXPAND_FLAG_PAGEABLE ? EXP_PAGEABLE : 0;
    EXP_RESERVE Reserve = ExpReserveOf(State);
    PEX_PUSH_LOCK_AUTO_EXPAND PushLock;
    if (KiVerifierEnabled && (Flags & ~(ULONG)EX_PUSH_LOCK_AUTO_EXPAND_FLAG_PAGEABLE)) {
        KeBugCheckEx(INVALID_SLOT_ALLOCATOR_FLAGS, Flags, 0, 0, 0);
    }
    PushLock = ExAllocatePool2(ExpPoolOf(Reserve), sizeof(EX_PUSH_LOCK_AUTO_EXPAND), EXP_AUTO_EXPAND_TAG);
    if (PushLock != NULL) {
        PushLock->State = State | ExpTakeColumn(Reserve) << EXP_COLUMN_SHIFT;
    }
    return PushLock;
}

VOID ExFreeAutoExpandPushLock(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    ULONG State = ExpStateOfLock(PushLock);
    if (State >> EXP_COLUMN_SHIFT != EXP_NO_COLUMN) {
        ExpReturnColumn(State);
    }
    ExFreePoolWithTag(PushLock, EXP_AUTO_EXPAND_TAG);
}

VOID ExAcquireAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags)
{
    ExpVerifyAcquire(&PushLock->LocalLock, Flags);
    ExAcquirePushLockExclusiveEx(&PushLock->LocalLock, Flags);
    ULONG State = ExpStateOfLock(PushLock);
    ULONG Count = ExpSlotCount(State);
    for (ULONG Processor = 0; Processor < Count; Processor++) {
        ExpAcquireInner(ExpSlotOf(State, Processor), Flags);
    }
}

VOID ExReleaseAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags)
{
    ULONG State = ExpStateOfLock(PushLock);
    ExpVerifyRelease(&PushLock->LocalLock, Flags);
    for (ULONG Processor = ExpSlotCount(State); Processor != 0; Processor--) {
        ExpReleaseInner(ExpSlotOf(State, Processor - 1));
    }
    ExReleasePushLockExclusiveEx(&PushLock->LocalLock, Flags);
}

static ULONG ExpSlotNumber(ULONG State)
{
    ULONG Number = HalDispatch.CurrentProcessor() & ((1u << ExpLogOf(State)) - 1);
    return Number < KeNumberProcessors ? Number : Number - KeNumberProcessors;
}

PEX_PUSH_LOCK ExAcquireAutoExpandPushLockShared(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags)
{
    ULONG State = ExpStateOfLock(PushLock);
    PEX_PUSH_LOCK Held = State & EXP_EXPANDED ? ExpSlotOf(State, ExpSlotNumber(State)) : &PushLock->LocalLock;
    ExpVerifyAcquire(Held, Flags);
    if (!ExpGuessSharedAcquire(Held)) {
        ExpCountMeeting(PushLock, State);
        ExfAcquirePushLockSharedEx(Held, Flags);
    }
    return Held;
}

VOID ExReleaseAutoExpandPushLockShared(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, PEX_PUSH_LOCK Held, ULONG Flags)
{
    ExpVerifyRelease(Held, Flags);
    if (__builtin_expect(ExpShouldGrow(PushLock), 0)) {
        if (Held == &PushLock->LocalLock) {
            ExpGrow(PushLock);
        } else {
            ExpTryGrow(PushLock);
        }
    }
    ExReleasePushLockSharedEx(Held, Flags);
}
