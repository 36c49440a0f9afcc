/*
 * rundown.c: rundown protection, and the algorithm that it shares with the cache-aware kind.
 *
 * The word of a slot:
 *
 *      63                                              1   0
 *     +-------------------------------------------------+---+
 *     |          holders that came through here         | 0 |
 *     +-------------------------------------------------+---+
 *     |     newest waiter's block, on its own stack     | 1 |    somebody waits for the holders to leave
 *     +-------------------------------------------------+---+
 *     |                        0                        | 1 |    run down
 *     +-------------------------------------------------+---+
 *
 * Where there are several slots a holder may leave through another one than it came through, so a slot may count below
 * zero; the sum over all slots is the number of holders.
 *
 * 1. Bit 0 is set once. From then on no acquire through that slot succeeds.
 * 2. The first waiter swaps its block into every slot and sums up what it finds there. Holders that leave meanwhile
 *    through a slot that has the block count themselves off in the block, which may fall below zero. Then the waiter
 *    adds its sum to the block: what it holds from then on is the number of holders that are left. Before that it is
 *    not zero after any release, because only releases have changed it.
 * 3. Whoever takes the block's count to zero is the last one out, and there is one: it marks every slot as run down, the
 *    first one last, which takes the chain of waiters; then it wakes each of them. That exchange is the last access to
 *    the reference: a waiter that is woken, or that comes and finds the first slot run down, may free it at once, while
 *    other waiters are still being woken. (To let a waiter mark the other slots after its wake fails this: another one
 *    may have been faster.) No block is touched after its owner was woken.
 * 4. Later waiters put their blocks before the ones in the first slot; the count stays in the oldest. Nobody returns
 *    before the last holder is out, so a holder that follows the chain to the oldest block finds all of them alive.
 * 5. Acquire and release never block and never allocate; they are one compare-exchange unless they meet others.
 * 6. Zeroed memory is a valid reference without holders.
 * 7. A release without a holder is stopped where the plain word shows it: RtlFailFast.
 */
#include "rundown.h"

typedef struct _EXP_RUNDOWN_WAIT_BLOCK {
    volatile LONG_PTR Count; /* these two: in the oldest block */
    ULONG Slots;
    struct _EXP_RUNDOWN_WAIT_BLOCK *Older;
    KEVENT WakeEvent;
} EXP_RUNDOWN_WAIT_BLOCK, *PEXP_RUNDOWN_WAIT_BLOCK;

static PEXP_RUNDOWN_WAIT_BLOCK ExpRundownBlock(ULONG_PTR Word)
{
    return (PEXP_RUNDOWN_WAIT_BLOCK)(Word & ~(ULONG_PTR)EX_RUNDOWN_ACTIVE);
}

static LONG_PTR ExpRundownHolders(ULONG_PTR Word)
{
    return (LONG_PTR)Word >> EX_RUNDOWN_COUNT_SHIFT;
}

static ULONG_PTR ExpRundownUnits(ULONG Count)
{
    return (ULONG_PTR)Count << EX_RUNDOWN_COUNT_SHIFT;
}

VOID ExpSetRundown(PEX_RUNDOWN_REF Slot, ULONG_PTR Value)
{
    /* release: pairs with the acquire of the protection, for what was prepared before */
    __atomic_store_n(&Slot->Count, Value, __ATOMIC_RELEASE);
}

BOOLEAN ExpAcquireRundown(PEX_RUNDOWN_REF Slot, ULONG Count)
{
    ULONG_PTR Word = __atomic_load_n(&Slot->Count, __ATOMIC_RELAXED);
    while (!(Word & EX_RUNDOWN_ACTIVE)) {
        /* acquire: pairs with the release in ExpSetRundown, for an object that is put to use again */
        if (__atomic_compare_exchange_n(&Slot->Count, &Word, Word + ExpRundownUnits(Count), TRUE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* Requirement 3. */
static VOID ExpEndRundown(PEX_RUNDOWN_REF First, ULONG Slots)
{
    for (ULONG Index = 1; Index < Slots; Index++) {
        ExpSetRundown(ExpRundownSlot(First, Index), EX_RUNDOWN_ACTIVE);
    }
    /* acq_rel: the blocks as their owners chained them, and the holders' work before the waiters' */
    ULONG_PTR Word = __atomic_exchange_n(&First->Count, EX_RUNDOWN_ACTIVE, __ATOMIC_ACQ_REL);
    PEXP_RUNDOWN_WAIT_BLOCK Block = ExpRundownBlock(Word);
    while (Block != NULL) {
        PEXP_RUNDOWN_WAIT_BLOCK Older = Block->Older;
        KeSetEvent(&Block->WakeEvent, IO_NO_INCREMENT, FALSE);
        Block = Older;
    }
}

static VOID ExpLeaveBlock(PEXP_RUNDOWN_WAIT_BLOCK Block, PEX_RUNDOWN_REF First, ULONG Count)
{
    if (Block == NULL) {
        RtlFailFast(FAST_FAIL_INVALID_REFERENCE_COUNT);
    }
    while (Block->Older != NULL) {
        Block = Block->Older;
    }
    /* acq_rel: what every holder did comes before what the last one tells the waiters */
    if (__atomic_sub_fetch(&Block->Count, Count, __ATOMIC_ACQ_REL) == 0) {
        ExpEndRundown(First, Block->Slots);
    }
}

VOID ExpReleaseRundown(PEX_RUNDOWN_REF Slot, PEX_RUNDOWN_REF First, ULONG Count)
{
    /* acquire, here and below: pairs with ExpEnterBlock, so the blocks can be read */
    ULONG_PTR Word = __atomic_load_n(&Slot->Count, __ATOMIC_ACQUIRE);
    while (!(Word & EX_RUNDOWN_ACTIVE)) {
        /* release: pairs with the waiter that finds the count */
        if (__atomic_compare_exchange_n(&Slot->Count, &Word, Word - ExpRundownUnits(Count), TRUE, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            return;
        }
    }
    if (Count != 0) {
        ExpLeaveBlock(ExpRundownBlock(Word), First, Count);
    }
}

/* FALSE: it is run down already. *Found is what was in the slot before. */
static BOOLEAN ExpEnterBlock(PEX_RUNDOWN_REF First, PEXP_RUNDOWN_WAIT_BLOCK Block, ULONG_PTR *Found)
{
    ULONG_PTR Word = __atomic_load_n(&First->Count, __ATOMIC_ACQUIRE);
    do {
        if (Word == EX_RUNDOWN_ACTIVE) {
            return FALSE;
        }
        Block->Older = Word & EX_RUNDOWN_ACTIVE ? ExpRundownBlock(Word) : NULL;
        /* release: pairs with who finds the block; acquire: with holders that left, and the last one of them */
    } while (!__atomic_compare_exchange_n(&First->Count, &Word, (ULONG_PTR)Block | EX_RUNDOWN_ACTIVE, TRUE,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    *Found = Word;
    return TRUE;
}

/* Requirement 2, by the first waiter. */
static VOID ExpCollectHolders(PEX_RUNDOWN_REF First, PEXP_RUNDOWN_WAIT_BLOCK Block, LONG_PTR Holders)
{
    for (ULONG Index = 1; Index < Block->Slots; Index++) {
        Holders += ExpRundownHolders(__atomic_exchange_n(&ExpRundownSlot(First, Index)->Count,
                                                         (ULONG_PTR)Block | EX_RUNDOWN_ACTIVE, __ATOMIC_ACQ_REL));
    }
    /* acquire: the work of holders that left through the block already; release: the exchanges above come before the
       stores of the last one out, and before the memory goes */
    LONG_PTR Left = __atomic_add_fetch(&Block->Count, Holders, __ATOMIC_ACQ_REL);
    if (Left < 0) {
        RtlFailFast(FAST_FAIL_INVALID_REFERENCE_COUNT);
    }
    if (Left == 0) {
        ExpEndRundown(First, Block->Slots);
    }
}

VOID ExpWaitForRundown(PEX_RUNDOWN_REF First, ULONG Slots)
{
    EXP_RUNDOWN_WAIT_BLOCK Block = {.Count = 0, .Slots = Slots};
    ULONG_PTR Found;
    KeInitializeEvent(&Block.WakeEvent, SynchronizationEvent, FALSE);
    if (!ExpEnterBlock(First, &Block, &Found)) {
        return;
    }
    if (Block.Older == NULL) {
        ExpCollectHolders(First, &Block, ExpRundownHolders(Found));
    }
    KeWaitForSingleObject(&Block.WakeEvent, WrRundown, KernelMode, FALSE, NULL);
}

/* Requirement 7: a plain word never counts below zero. */
static VOID ExpCheckHeld(PEX_RUNDOWN_REF RunRef, ULONG Count)
{
    ULONG_PTR Word = __atomic_load_n(&RunRef->Count, __ATOMIC_RELAXED);
    if (!(Word & EX_RUNDOWN_ACTIVE) && Word < ExpRundownUnits(Count)) {
        RtlFailFast(FAST_FAIL_INVALID_REFERENCE_COUNT);
    }
}

VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    ExpSetRundown(RunRef, 0);
}

VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    ExpSetRundown(RunRef, 0);
}

VOID ExRundownCompleted(PEX_RUNDOWN_REF RunRef)
{
    ExpSetRundown(RunRef, EX_RUNDOWN_ACTIVE);
}

BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count)
{
    return ExpAcquireRundown(RunRef, Count);
}

VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count)
{
    ExpCheckHeld(RunRef, Count);
    ExpReleaseRundown(RunRef, RunRef, Count);
}

BOOLEAN ExfAcquireRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    return ExpAcquireRundown(RunRef, 1);
}

VOID ExfReleaseRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    ExReleaseRundownProtectionEx(RunRef, 1);
}

VOID ExfWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef)
{
    ExpWaitForRundown(RunRef, 1);
}
