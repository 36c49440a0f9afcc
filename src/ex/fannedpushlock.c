/*
 * fannedpushlock.c: pushlocks with a word for each processor: cache-aware pushlocks, which always have them, and
 * auto-expand pushlocks, which add them on demand.
 *
 * Both: a sharer takes one word and passes it to its release, because it may move to another processor meanwhile. An
 * exclusive owner takes all words, in one order, so two of them cannot wait for each other. Turns (ke/fairness.h) are
 * counted at the first word only: a thread that yielded at a later one would keep the first one held.
 */
#include "exp.h"

#include "pushlock.h"

#include "../ke/fork.h"

/*
 * An exclusive acquire that waits for a word already holds the words before it. If the process forks meanwhile, the
 * child frees them: the thread that holds them does not exist there, and did not own the lock yet. (The words are in
 * pool memory, which is not shared, so this need not wait until the lock is used: see ke/fork.h.)
 */
typedef struct _EXP_FANNED_ACQUIRE {
    KI_QUEUED Queued;
    PEX_PUSH_LOCK (*WordOf)(PVOID Lock, ULONG Index);
    PVOID Lock;
    ULONG Taken;
} EXP_FANNED_ACQUIRE;

static VOID ExpInheritTakenWords(PKI_QUEUED Queued)
{
    EXP_FANNED_ACQUIRE *Acquire = CONTAINING_RECORD(Queued, EXP_FANNED_ACQUIRE, Queued);
    for (ULONG Index = 0; Index < Acquire->Taken; Index++) {
        __atomic_store_n(Acquire->WordOf(Acquire->Lock, Index), 0, __ATOMIC_RELAXED);
    }
}

static DECLSPEC_NOINLINE VOID ExpAwaitInnerWord(PEX_PUSH_LOCK (*WordOf)(PVOID Lock, ULONG Index), PVOID Lock,
                                                ULONG Index, ULONG Flags)
{
    PKTHREAD Thread = KiCurrentThread();
    PEX_PUSH_LOCK Word = WordOf(Lock, Index);
    EXP_FANNED_ACQUIRE Acquire = {{.Word = Word, .Inherit = ExpInheritTakenWords}, WordOf, Lock, Index};
    KiRegisterQueued(Thread, &Acquire.Queued);
    ExpAcquireInnerPushLock(Word, ExpMethodsFor(Flags));
    KiUnregisterQueued(Thread, &Acquire.Queued);
}

FORCEINLINE VOID ExpAcquireInnerWord(PEX_PUSH_LOCK (*WordOf)(PVOID Lock, ULONG Index), PVOID Lock, ULONG Index,
                                     ULONG Flags)
{
    ULONG_PTR Free = 0;
    /* acquire: pairs with the previous owner's release */
    if (!__atomic_compare_exchange_n(WordOf(Lock, Index), &Free, EX_PUSH_LOCK_LOCK, FALSE, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        ExpAwaitInnerWord(WordOf, Lock, Index, Flags);
    }
}

FORCEINLINE VOID ExpReleaseInnerWord(PEX_PUSH_LOCK PushLock)
{
    ULONG_PTR Held = EX_PUSH_LOCK_LOCK;
    /* release: pairs with the next owner's acquire */
    if (!__atomic_compare_exchange_n(PushLock, &Held, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        ExpReleaseInnerPushLock(PushLock, &ExpPushLockMethods);
    }
}

/*
 * Cache-aware pushlocks: as many pushlocks as processors, each on a cache line of its own. With fewer, sharers on
 * different processors would contend for a line. The public part has room for the first EX_PUSH_LOCK_FANNED_COUNT of
 * them; if there are fewer, it repeats them.
 */

#define EXP_FANNED_TAG 0x6c506143u /* "CaPl" */

typedef struct _EXP_PADDED_PUSH_LOCK {
    EX_PUSH_LOCK Lock DECLSPEC_CACHEALIGN;
} EXP_PADDED_PUSH_LOCK;

typedef struct _EXP_FANNED_PUSH_LOCK {
    EX_CACHE_AWARE_PUSH_LOCK Public;
    EXP_PADDED_PUSH_LOCK Padded[];
} EXP_FANNED_PUSH_LOCK;

static PEX_PUSH_LOCK ExpFannedLock(PVOID PushLock, ULONG Processor)
{
    return &CONTAINING_RECORD((PEX_CACHE_AWARE_PUSH_LOCK)PushLock, EXP_FANNED_PUSH_LOCK, Public)->Padded[Processor].Lock;
}

PEX_CACHE_AWARE_PUSH_LOCK ExAllocateCacheAwarePushLock(VOID)
{
    EXP_FANNED_PUSH_LOCK *Fanned =
        ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_CACHE_ALIGNED,
                        sizeof(EXP_FANNED_PUSH_LOCK) + KeNumberProcessors * sizeof(EXP_PADDED_PUSH_LOCK),
                        EXP_FANNED_TAG);
    if (Fanned == NULL) {
        return NULL;
    }
    for (ULONG Slot = 0; Slot < EX_PUSH_LOCK_FANNED_COUNT; Slot++) {
        Fanned->Public.Locks[Slot] = ExpFannedLock(&Fanned->Public, Slot % KeNumberProcessors);
    }
    for (ULONG Processor = 0; KiVerifierEnabled && Processor < KeNumberProcessors; Processor++) {
        KiOrderInitialize((PVOID)ExpFannedLock(&Fanned->Public, Processor), KiOrderPushLock); /* all of one class */
    }
    return &Fanned->Public;
}

VOID ExFreeCacheAwarePushLock(PEX_CACHE_AWARE_PUSH_LOCK PushLock)
{
    ExFreePoolWithTag(PushLock, EXP_FANNED_TAG);
}

VOID ExAcquireCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyAcquire(PushLock->Locks[0], Flags, KiOrderExclusive);
    ExAcquirePushLockExclusiveEx(ExpFannedLock(PushLock, 0), Flags);
    for (ULONG Processor = 1; Processor < KeNumberProcessors; Processor++) {
        ExpAcquireInnerWord(ExpFannedLock, PushLock, Processor, Flags);
    }
}

VOID ExReleaseCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock->Locks[0], Flags);
    for (ULONG Processor = KeNumberProcessors - 1; Processor != 0; Processor--) {
        ExpReleaseInnerWord(ExpFannedLock(PushLock, Processor));
    }
    ExReleasePushLockExclusiveEx(ExpFannedLock(PushLock, 0), Flags);
}

PEX_PUSH_LOCK ExAcquireCacheAwarePushLockSharedEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    PEX_PUSH_LOCK Held = ExpFannedLock(PushLock, KiHostProcessor(KeNumberProcessors));
    ExpVerifyAcquire(Held, Flags, KiOrderShared);
    ExAcquirePushLockSharedEx(Held, Flags);
    return Held;
}

VOID ExReleaseCacheAwarePushLockSharedEx(PEX_PUSH_LOCK Held, ULONG Flags)
{
    ExpVerifyRelease(Held, Flags);
    ExReleasePushLockSharedEx(Held, Flags);
}

/*
 * Auto-expand pushlocks. LocalLock is a normal pushlock, and the only word until sharers contend for it. Then words are
 * added on cache lines of the processors, two at first and four times as many each time, until every processor has its
 * own. State says how many there are:
 *
 *      31                             8  7    4  3   2   1   0
 *     +--------------------------------+-------+---+---+---+---+
 *     |     column in the reserve + 1  | log 2 | 0 | P | 0 | E |
 *     +--------------------------------+-------+---+---+---+---+
 *
 * E: expanded; log 2 of the number of words is valid. P: the memory is pageable. Column 0: no words were available when
 * the lock was allocated, and it stays small.
 *
 * 1. An exclusive owner takes LocalLock first, and then every word that State shows. Only a sharer of LocalLock changes
 *    State, so State is stable until the release, and there is no exclusive owner when it changes.
 * 2. A sharer holds LocalLock or one of the words that State showed when it arrived. Either excludes exclusive owners,
 *    whatever State has become since: LocalLock is always taken, and words are only added. So no sharer has to move
 *    when the lock grows, and reading an old State is harmless.
 * 3. A sharer that finds another sharer on its word counts that in Stats. A release that finds the count high enough
 *    makes the lock grow, if it shares LocalLock or can share it without waiting: a sharer that waited could deadlock
 *    with a thread that waits for it. (Taking LocalLock exclusively was rejected: if many processors share it, it
 *    always has another sharer, and the lock would stay small exactly when it has to grow.) If several threads find the
 *    count high, the one that resets it performs the step.
 * 4. Growing allocates nothing: the words were reserved when the lock was allocated. Without memory for them the lock
 *    still works.
 * 5. Sharers of an expanded lock write only to their word, which they share only with the sharers of their processor
 *    and exclusive owners.
 *
 * The reserve: the words of eight locks share a cache line of each processor, so a lock costs eight bytes for each
 * processor, not a line. A slab is a line of every processor. Compare-exchanges on Used allocate and free its eight
 * columns. Slabs are kept for the next locks.
 */

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
    /* release: the zeros in the slab; acquire: those in the slab of a thread that was faster */
    if (New == NULL ||
        __atomic_compare_exchange_n(Place, &Present, New, FALSE, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        return New;
    }
    ExFreePoolWithTag(New, EXP_SLOT_TAG);
    return Present;
}

/* EXP_COLUMNS: none is free. */
static ULONG ExpTakeColumnOf(PEXP_SLOT_SLAB Slab)
{
    ULONG Used = __atomic_load_n(&Slab->Used, __ATOMIC_RELAXED);
    while (Used != (1u << EXP_COLUMNS) - 1) {
        ULONG Column = (ULONG)__builtin_ctz(~Used);
        /* acquire: pairs with the release in ExFreeAutoExpandPushLock */
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

/* relaxed: the slab existed before the column was allocated */
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

/* Growing. */

static ULONG ExpAutoExpandState(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    /* acquire: the holder of a word that was added sees what the owners before the addition did */
    return __atomic_load_n(&PushLock->State, __ATOMIC_ACQUIRE);
}

static ULONG ExpLogOf(ULONG State)
{
    return State >> EXP_LOG_SHIFT & EXP_LOG_MASK;
}

/* Processors with words of their own; the others use those of processors with the same low bits. */
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

/* Called by a sharer of LocalLock. */
static VOID ExpGrow(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    ULONG State = ExpAutoExpandState(PushLock);
    /* relaxed: a statistic; it matters only that one of several threads resets it */
    ULONG Meetings = __atomic_exchange_n(&PushLock->Stats, 0, __ATOMIC_RELAXED);
    if (Meetings >= EXP_MEETINGS_BEFORE_GROWTH && ExpCanGrow(State)) {
        ULONG Grown = (State & ~(EXP_LOG_MASK << EXP_LOG_SHIFT)) | EXP_EXPANDED | ExpNextLog(State) << EXP_LOG_SHIFT;
        /* release: pairs with ExpAutoExpandState; if it fails another thread has made this step */
        __atomic_compare_exchange_n(&PushLock->State, &State, Grown, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

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
        if (KiVerifierEnabled) {
            KiOrderInitialize((PVOID)&PushLock->LocalLock, KiOrderPushLock);
        }
    }
    return PushLock;
}

VOID ExFreeAutoExpandPushLock(PEX_PUSH_LOCK_AUTO_EXPAND PushLock)
{
    ULONG State = ExpAutoExpandState(PushLock);
    if (State >> EXP_COLUMN_SHIFT != EXP_NO_COLUMN) {
        /* release: the words are free before the next lock gets them */
        __atomic_fetch_and(&ExpSlabOf(State)->Used, ~(1u << ExpColumnOf(State)), __ATOMIC_RELEASE);
    }
    ExFreePoolWithTag(PushLock, EXP_AUTO_EXPAND_TAG);
}

/* 0: LocalLock. */
static PEX_PUSH_LOCK ExpAutoExpandWord(PVOID Lock, ULONG Index)
{
    PEX_PUSH_LOCK_AUTO_EXPAND PushLock = Lock;
    return Index == 0 ? &PushLock->LocalLock : ExpSlotOf(ExpAutoExpandState(PushLock), Index - 1);
}

static DECLSPEC_NOINLINE VOID ExpAcquireSlots(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG State, ULONG Flags)
{
    ULONG Count = ExpSlotCount(State);
    for (ULONG Processor = 0; Processor < Count; Processor++) {
        ExpAcquireInnerWord(ExpAutoExpandWord, PushLock, Processor + 1, Flags);
    }
}

VOID ExAcquireAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags)
{
    ExpVerifyAcquire(&PushLock->LocalLock, Flags, KiOrderExclusive);
    ExAcquirePushLockExclusiveEx(&PushLock->LocalLock, Flags);
    ULONG State = ExpAutoExpandState(PushLock);
    if (State & EXP_EXPANDED) {
        ExpAcquireSlots(PushLock, State, Flags);
    }
}

VOID ExReleaseAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags)
{
    ULONG State = ExpAutoExpandState(PushLock);
    ExpVerifyRelease(&PushLock->LocalLock, Flags);
    for (ULONG Processor = ExpSlotCount(State); Processor != 0; Processor--) {
        ExpReleaseInnerWord(ExpSlotOf(State, Processor - 1));
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
    ULONG State = ExpAutoExpandState(PushLock);
    PEX_PUSH_LOCK Held = State & EXP_EXPANDED ? ExpSlotOf(State, ExpSlotNumber(State)) : &PushLock->LocalLock;
    ExpVerifyAcquire(&PushLock->LocalLock, Flags, KiOrderShared);
    ULONG_PTR Word = 0;
    /* acquire: pairs with the release of an exclusive owner */
    if (!__atomic_compare_exchange_n(Held, &Word, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC, FALSE, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        if (ExpCanGrow(State)) {
            __atomic_fetch_add(&PushLock->Stats, 1, __ATOMIC_RELAXED); /* a statistic */
        }
        ExfAcquirePushLockSharedEx(Held, Flags);
    }
    return Held;
}

VOID ExReleaseAutoExpandPushLockShared(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, PEX_PUSH_LOCK Held, ULONG Flags)
{
    ExpVerifyRelease(&PushLock->LocalLock, Flags);
    if (__builtin_expect(__atomic_load_n(&PushLock->Stats, __ATOMIC_RELAXED) >= EXP_MEETINGS_BEFORE_GROWTH, 0)) {
        if (Held == &PushLock->LocalLock) {
            ExpGrow(PushLock);
        } else if (ExpTryAcquirePushLockShared(&PushLock->LocalLock)) { /* Held excludes exclusive owners until then */
            ExpGrow(PushLock);
            ExpReleasePushLockShared(&PushLock->LocalLock, &ExpPushLockMethods);
        }
    }
    ExReleasePushLockSharedEx(Held, Flags);
}
