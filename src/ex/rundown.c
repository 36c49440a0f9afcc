/*
 * rundown.c: rundown protection, plain and cache-aware.
 *
 * A protection is a row of slots: one for the plain kind, one for each processor for the cache-aware kind. The word of a
 * slot:
 *
 *      63          48 47                               1   0
 *     +--------------------------------------------------+---+
 *     |      holders that acquired through this slot     | 0 |
 *     +--------------+-----------------------------------+---+
 *     |   fork tag   |      newest waiter's block        | 1 |    the rundown waits for the holders to leave
 *     +--------------+-----------------------------------+---+
 *     |                        0                         | 1 |    run down
 *     +--------------------------------------------------+---+
 *
 * With several slots a holder may release through a different slot than it acquired, so a slot may count below zero;
 * the sum over all slots is the number of holders.
 *
 * 1. Bit 0 is set once. From then on no acquire through that slot succeeds.
 * 2. The first waiter exchanges its block into every slot and adds up the counts that it finds. A holder that releases
 *    meanwhile through a slot with the block in it decrements the block's count, which may fall below zero. Then the
 *    waiter adds its sum to the block: from then on the count is the number of remaining holders. Before that no
 *    release makes it zero, because only releases have changed it.
 * 3. The release that takes the block's count to zero is the last one. It marks every slot as run down, the first one
 *    last, which takes the chain of waiters; then it wakes each of them. That exchange is its last access to the
 *    reference: a waiter that is woken, or that arrives and finds the first slot run down, may free it at once, while
 *    other waiters are still being woken. (If a waiter marked the other slots after its wakeup, another one could have
 *    freed them.) No block is accessed after its owner was woken.
 * 4. Later waiters put their blocks before the ones in the first slot; the count stays in the oldest. No waiter returns
 *    before the last holder has released, so a holder that follows the chain to the oldest block finds all of them
 *    alive.
 * 5. Acquire and release never block and never allocate; they are one compare-exchange unless they are contended.
 * 6. Zeroed memory is a valid reference without holders.
 * 7. A release without a holder fails fast (RtlFailFast) if the plain word shows it.
 * 8. In a forked child a rundown that only threads of the parent wait for has not begun (ke/fork.h): the count in the
 *    oldest block goes back into the first slot. Blocks change inside dispatcher sections.
 *
 * The cache-aware kind:
 * 9. Acquire and release read the head, which is written once, and change the slot of the processor they run on. The slots
 *    are on lines of their own wherever the memory begins.
 * 10. An acquire that races with the start of a wait may still succeed through a slot that the waiter has not reached;
 *     the waiter then counts it. Checking a common word as well would prevent that, and fail 9.
 * 11. Until the first rundown, a slot is changed only by sections of its processor (hal/section.h): a plain addition,
 *     for which bit 0 is clear in every slot. The first rundown, and a thread on a processor that has no slot, close
 *     the sections: Closed is ExpSectionsClosing, HalRestartSections makes every section that has not seen that
 *     complete or restart, and then it is ExpSectionsClosed. A thread that finds them closing closes them as well, so
 *     no thread waits. All that is described above applies to closed sections.
 * 12. They stay closed, even when the reference is reinitialized: a thread that found them closed may still be about to
 *     change a slot by compare-exchange, which would lose a concurrent plain addition.
 * 13. The additions of 11 are inline in the program too (ex.h), which finds the thread's area of the host by Area. A
 *     thread sanitizer sees no sections, so instrumented code calls the functions. So does code in the explorer, whose
 *     sections are simulated, and all code if Area is 0. The order of the members is fixed.
 */
#include "exp.h"

#include "../hal/section.h"
#include "../ke/fork.h"

/* Where there are several slots, each has a line of its own. */
typedef union _EXP_RUNDOWN_SLOT {
    EX_RUNDOWN_REF Ref;
    UCHAR Line[SYSTEM_CACHE_ALIGNMENT_SIZE];
} EXP_RUNDOWN_SLOT, *PEXP_RUNDOWN_SLOT;

typedef struct _EXP_RUNDOWN_WAIT_BLOCK {
    volatile LONG_PTR Count; /* these two: in the oldest block */
    ULONG Slots;
    BOOLEAN Woken;
    struct _EXP_RUNDOWN_WAIT_BLOCK *Older;
    KEVENT WakeEvent;
} EXP_RUNDOWN_WAIT_BLOCK, *PEXP_RUNDOWN_WAIT_BLOCK;

FORCEINLINE PEX_RUNDOWN_REF ExpRundownSlot(PEX_RUNDOWN_REF First, ULONG Index)
{
    return &((PEXP_RUNDOWN_SLOT)(PVOID)First)[Index].Ref;
}

static PEXP_RUNDOWN_WAIT_BLOCK ExpRundownBlock(ULONG_PTR Word)
{
    return (PEXP_RUNDOWN_WAIT_BLOCK)(Word & ~(EX_RUNDOWN_ACTIVE | KI_FORK_TAG_MASK));
}

static LONG_PTR ExpRundownHolders(ULONG_PTR Word)
{
    return (LONG_PTR)Word >> EX_RUNDOWN_COUNT_SHIFT;
}

static ULONG_PTR ExpRundownUnits(LONG_PTR Count)
{
    return (ULONG_PTR)Count << EX_RUNDOWN_COUNT_SHIFT;
}

static VOID ExpSetRundown(PEX_RUNDOWN_REF Slot, ULONG_PTR Value)
{
    /* release: pairs with the acquire of the protection, for what was prepared before */
    __atomic_store_n(&Slot->Count, Value, __ATOMIC_RELEASE);
}

FORCEINLINE BOOLEAN ExpIsInheritedRundown(ULONG_PTR Word)
{
    return (Word & EX_RUNDOWN_ACTIVE) && Word != EX_RUNDOWN_ACTIVE && KiIsInherited(Word);
}

/* The rundown in Word is one of the parent. Returns the current value. */
static DECLSPEC_NOINLINE ULONG_PTR ExpDropInheritedRundown(PEX_RUNDOWN_REF Slot, ULONG_PTR Word)
{
    KiDropInheritedQueue(&Slot->Count, Word);
    return __atomic_load_n(&Slot->Count, __ATOMIC_ACQUIRE);
}

static BOOLEAN ExpAcquireInheritedRundown(PEX_RUNDOWN_REF Slot, ULONG Count, ULONG_PTR Word);

static BOOLEAN ExpAcquireRundown(PEX_RUNDOWN_REF Slot, ULONG Count)
{
    ULONG_PTR Word = __atomic_load_n(&Slot->Count, __ATOMIC_RELAXED);
    while (!(Word & EX_RUNDOWN_ACTIVE)) {
        /* acquire: pairs with the release in ExpSetRundown, for an object that is reused */
        if (__atomic_compare_exchange_n(&Slot->Count, &Word, Word + ExpRundownUnits(Count), TRUE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return TRUE;
        }
    }
    return ExpIsInheritedRundown(Word) ? ExpAcquireInheritedRundown(Slot, Count, Word) : FALSE;
}

/* Out of line, like ExpReleaseInheritedRundown, so that the path without waiters needs no stack frame. */
static DECLSPEC_NOINLINE BOOLEAN ExpAcquireInheritedRundown(PEX_RUNDOWN_REF Slot, ULONG Count, ULONG_PTR Word)
{
    ExpDropInheritedRundown(Slot, Word);
    return ExpAcquireRundown(Slot, Count);
}

/* Requirement 3. */
static VOID ExpEndRundown(PEX_RUNDOWN_REF First, ULONG Slots)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    for (ULONG Index = 1; Index < Slots; Index++) {
        ExpSetRundown(ExpRundownSlot(First, Index), EX_RUNDOWN_ACTIVE);
    }
    /* acq_rel: the blocks as their owners chained them, and the holders' work before the waiters' */
    ULONG_PTR Word = __atomic_exchange_n(&First->Count, EX_RUNDOWN_ACTIVE, __ATOMIC_ACQ_REL);
    PEXP_RUNDOWN_WAIT_BLOCK Block = ExpRundownBlock(Word);
    while (Block != NULL) {
        PEXP_RUNDOWN_WAIT_BLOCK Older = Block->Older;
        Block->Woken = TRUE;
        KeSetEvent(&Block->WakeEvent, IO_NO_INCREMENT, FALSE);
        Block = Older;
    }
    KiExitDispatcher(Thread);
}

/* Word: that of the slot through which the holders leave. */
static DECLSPEC_NOINLINE VOID ExpLeaveRundownBlock(ULONG_PTR Word, PEX_RUNDOWN_REF First, ULONG Count)
{
    PEXP_RUNDOWN_WAIT_BLOCK Block = ExpRundownBlock(Word);
    if (Block == NULL) {
        RtlFailFast(FAST_FAIL_INVALID_REFERENCE_COUNT);
    }
    while (Block->Older != NULL) {
        Block = Block->Older;
    }
    /* acq_rel: what every holder did happens before the last one wakes the waiters */
    if (__atomic_sub_fetch(&Block->Count, Count, __ATOMIC_ACQ_REL) == 0) {
        ExpEndRundown(First, Block->Slots);
    }
}

static VOID ExpReleaseInheritedRundown(PEX_RUNDOWN_REF Slot, PEX_RUNDOWN_REF First, ULONG Count, ULONG_PTR Word);

/* Slot: where the holder leaves. First: the slot to which the waiters are chained. */
static VOID ExpReleaseRundown(PEX_RUNDOWN_REF Slot, PEX_RUNDOWN_REF First, ULONG Count)
{
    /* acquire, here and below: pairs with ExpEnterRundownBlock, so the blocks can be read */
    ULONG_PTR Word = __atomic_load_n(&Slot->Count, __ATOMIC_ACQUIRE);
    while (!(Word & EX_RUNDOWN_ACTIVE)) {
        /* release: pairs with the waiter that finds the count */
        if (__atomic_compare_exchange_n(&Slot->Count, &Word, Word - ExpRundownUnits(Count), TRUE, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            return;
        }
    }
    if (ExpIsInheritedRundown(Word)) {
        ExpReleaseInheritedRundown(Slot, First, Count, Word);
    } else if (Count != 0) {
        ExpLeaveRundownBlock(Word, First, Count);
    }
}

static DECLSPEC_NOINLINE VOID ExpReleaseInheritedRundown(PEX_RUNDOWN_REF Slot, PEX_RUNDOWN_REF First, ULONG Count,
                                                         ULONG_PTR Word)
{
    ExpDropInheritedRundown(Slot, Word);
    ExpReleaseRundown(Slot, First, Count);
}

/* Waiting. */

/* FALSE: it is already run down. *Found is the word before. */
static BOOLEAN ExpEnterRundownBlock(PEX_RUNDOWN_REF First, PEXP_RUNDOWN_WAIT_BLOCK Block, ULONG_PTR *Found)
{
    ULONG_PTR Word = __atomic_load_n(&First->Count, __ATOMIC_ACQUIRE);
    do {
        while (ExpIsInheritedRundown(Word)) {
            Word = ExpDropInheritedRundown(First, Word);
        }
        if (Word == EX_RUNDOWN_ACTIVE) {
            return FALSE;
        }
        Block->Older = Word & EX_RUNDOWN_ACTIVE ? ExpRundownBlock(Word) : NULL;
        /* release: pairs with the reader of the block; acquire: with holders that left, and the last one of them */
    } while (!__atomic_compare_exchange_n(&First->Count, &Word, (ULONG_PTR)Block | KiForkTag | EX_RUNDOWN_ACTIVE, TRUE,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    *Found = Word;
    return TRUE;
}

/* Requirement 2, by the first waiter. */
static VOID ExpCollectHolders(PEX_RUNDOWN_REF First, PEXP_RUNDOWN_WAIT_BLOCK Block, LONG_PTR Holders)
{
    ULONG_PTR New = (ULONG_PTR)Block | KiForkTag | EX_RUNDOWN_ACTIVE;
    for (ULONG Index = 1; Index < Block->Slots; Index++) {
        PEX_RUNDOWN_REF Slot = ExpRundownSlot(First, Index);
        ULONG_PTR Word = __atomic_load_n(&Slot->Count, __ATOMIC_ACQUIRE);
        do {
            while (ExpIsInheritedRundown(Word)) {
                Word = ExpDropInheritedRundown(Slot, Word);
            }
        } while (!__atomic_compare_exchange_n(&Slot->Count, &Word, New, TRUE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
        Holders += ExpRundownHolders(Word);
    }
    /* acquire: the work of holders that have already released through the block; release: the exchanges above come
       before the stores of the last holder, and before the memory is freed */
    LONG_PTR Left = __atomic_add_fetch(&Block->Count, Holders, __ATOMIC_ACQ_REL);
    if (Left < 0) {
        RtlFailFast(FAST_FAIL_INVALID_REFERENCE_COUNT);
    }
    if (Left == 0) {
        ExpEndRundown(First, Block->Slots);
    }
}

/* Requirement 8, for the oldest waiter, whose block every slot leads to. */
static VOID ExpInheritRundown(PKI_QUEUED Queued)
{
    PEXP_RUNDOWN_WAIT_BLOCK Block = Queued->Block;
    PEX_RUNDOWN_REF First = (PEX_RUNDOWN_REF)(PVOID)Queued->Word;
    if (Block->Woken || Block->Older != NULL) {
        return; /* once a waiter is woken, the memory may be freed */
    }
    for (ULONG Index = 1; Index < Block->Slots; Index++) {
        PEX_RUNDOWN_REF Slot = ExpRundownSlot(First, Index);
        KiRecordInheritedQueue(&Slot->Count, Slot->Count, 0);
    }
    KiRecordInheritedQueue(&First->Count, First->Count, ExpRundownUnits(Block->Count));
}

static VOID ExpWaitForRundown(PEX_RUNDOWN_REF First, ULONG Slots)
{
    PKTHREAD Thread = KiCurrentThread();
    EXP_RUNDOWN_WAIT_BLOCK Block = {.Count = 0, .Slots = Slots};
    KI_QUEUED Queued = {.Word = &First->Count, .Block = &Block, .Inherit = ExpInheritRundown};
    ULONG_PTR Found;
    KeInitializeEvent(&Block.WakeEvent, SynchronizationEvent, FALSE);
    KiEnterDispatcher(Thread);
    BOOLEAN Waits = ExpEnterRundownBlock(First, &Block, &Found);
    if (Waits) {
        KiRegisterQueued(Thread, &Queued);
        if (Block.Older == NULL) {
            ExpCollectHolders(First, &Block, ExpRundownHolders(Found));
        }
    }
    KiExitDispatcher(Thread);
    if (Waits) {
        KeWaitForSingleObject(&Block.WakeEvent, WrRundown, KernelMode, FALSE, NULL);
        KiUnregisterQueued(Thread, &Queued);
    }
}

/* The plain kind. */

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
    /* Requirement 7: a plain word never counts below zero. */
    ULONG_PTR Word = __atomic_load_n(&RunRef->Count, __ATOMIC_RELAXED);
    if (!(Word & EX_RUNDOWN_ACTIVE) && Word < ExpRundownUnits(Count)) {
        RtlFailFast(FAST_FAIL_INVALID_REFERENCE_COUNT);
    }
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

/* The cache-aware kind. */

enum { ExpSectionsOpen, ExpSectionsClosing, ExpSectionsClosed };

C_ASSERT(FIELD_OFFSET(EX_RUNDOWN_REF_CACHE_AWARE, Number) == 8 && FIELD_OFFSET(EX_RUNDOWN_REF_CACHE_AWARE, Closed) == 12 &&
         FIELD_OFFSET(EX_RUNDOWN_REF_CACHE_AWARE, Area) == 16);
C_ASSERT(sizeof(EXP_RUNDOWN_SLOT) == 1 << HAL_SECTION_SLOT_SHIFT);

/* Requirement 11. */
static DECLSPEC_NOINLINE VOID ExpCloseSections(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    ULONG Open = ExpSectionsOpen;
    /* relaxed: HalRestartSections orders it before the sections that it restarts */
    __atomic_compare_exchange_n(&RunRef->Closed, &Open, ExpSectionsClosing, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    HalRestartSections();
    /* release: pairs with the acquire in ExpLeaveSections; what the sections did comes before what its caller does */
    __atomic_store_n(&RunRef->Closed, ExpSectionsClosed, __ATOMIC_RELEASE);
    /* relaxed: advisory only, saves later inline calls a section that does nothing */
    __atomic_store_n(&RunRef->Area, 0, __ATOMIC_RELAXED);
}

/* After it the slots can be changed by compare-exchange. */
FORCEINLINE VOID ExpLeaveSections(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    /* acquire: pairs with the release in ExpCloseSections */
    if (__builtin_expect(__atomic_load_n(&RunRef->Closed, __ATOMIC_ACQUIRE) != ExpSectionsClosed, FALSE)) {
        ExpCloseSections(RunRef);
    }
}

/* FALSE: the sections are closed, or have no slot for this processor. */
FORCEINLINE BOOLEAN ExpAddInSection(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, LONG_PTR Count)
{
    /* relaxed: a hint, the section reads it again */
    return __atomic_load_n(&RunRef->Closed, __ATOMIC_RELAXED) == ExpSectionsOpen &&
           HalAddInSection(RunRef->First, RunRef->Number, &RunRef->Closed, (LONG_PTR)ExpRundownUnits(Count));
}

static PEX_RUNDOWN_REF ExpCurrentRundownSlot(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    return ExpRundownSlot(RunRef->First, KiHostProcessor(RunRef->Number));
}

static VOID ExpSetRundownSlots(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG_PTR Value)
{
    for (ULONG Index = 0; Index < RunRef->Number; Index++) {
        ExpSetRundown(ExpRundownSlot(RunRef->First, Index), Value);
    }
}

/* A line for the head, which need not begin at a line, and one for each slot. */
SIZE_T ExSizeOfRundownProtectionCacheAware(VOID)
{
    return sizeof(EX_RUNDOWN_REF_CACHE_AWARE) + SYSTEM_CACHE_ALIGNMENT_SIZE +
           KeNumberProcessors * sizeof(EXP_RUNDOWN_SLOT);
}

VOID ExInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware, SIZE_T RunRefSize)
{
    ULONG_PTR End = (ULONG_PTR)RunRefCacheAware + RunRefSize;
    ULONG_PTR First = ALIGN_UP_BY((ULONG_PTR)(RunRefCacheAware + 1), SYSTEM_CACHE_ALIGNMENT_SIZE);
    ULONG_PTR Room = End > First ? (End - First) / sizeof(EXP_RUNDOWN_SLOT) : 0;
    if (Room == 0) {
        ExRaiseStatus(STATUS_INVALID_PARAMETER_2);
    }
    RunRefCacheAware->First = (PEX_RUNDOWN_REF)First;
    RunRefCacheAware->Number = Room < KeNumberProcessors ? (ULONG)Room : KeNumberProcessors;
    RunRefCacheAware->Closed = HalSectionsOffered() ? ExpSectionsOpen : ExpSectionsClosed;
    RunRefCacheAware->Area = HAL_SECTIONS && HalSectionsOffered() ? HalSectionOffset : 0;
    ExpSetRundownSlots(RunRefCacheAware, 0);
}

PEX_RUNDOWN_REF_CACHE_AWARE ExAllocateCacheAwareRundownProtection(POOL_TYPE PoolType, ULONG PoolTag)
{
    SIZE_T Size = ExSizeOfRundownProtectionCacheAware();
    PEX_RUNDOWN_REF_CACHE_AWARE RunRef = ExAllocatePoolWithTag(PoolType, Size, PoolTag);
    if (RunRef != NULL) {
        ExInitializeRundownProtectionCacheAware(RunRef, Size);
    }
    return RunRef;
}

VOID ExFreeCacheAwareRundownProtection(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExFreePool(RunRefCacheAware);
}

static DECLSPEC_NOINLINE BOOLEAN ExpAcquireRundownSlot(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG Count)
{
    ExpLeaveSections(RunRef);
    return ExpAcquireRundown(ExpCurrentRundownSlot(RunRef), Count);
}

static DECLSPEC_NOINLINE VOID ExpReleaseRundownSlot(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG Count)
{
    ExpLeaveSections(RunRef);
    ExpReleaseRundown(ExpCurrentRundownSlot(RunRef), RunRef->First, Count);
}

BOOLEAN(ExAcquireRundownProtectionCacheAware)(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    return ExpAddInSection(RunRefCacheAware, 1) ? TRUE : ExpAcquireRundownSlot(RunRefCacheAware, 1);
}

BOOLEAN ExAcquireRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware, ULONG Count)
{
    return ExpAddInSection(RunRefCacheAware, Count) ? TRUE : ExpAcquireRundownSlot(RunRefCacheAware, Count);
}

VOID ExReleaseRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG Count)
{
    if (!ExpAddInSection(RunRef, -(LONG_PTR)Count)) {
        ExpReleaseRundownSlot(RunRef, Count);
    }
}

VOID(ExReleaseRundownProtectionCacheAware)(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExReleaseRundownProtectionCacheAwareEx(RunRefCacheAware, 1);
}

VOID ExWaitForRundownProtectionReleaseCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    ExpLeaveSections(RunRef);
    ExpWaitForRundown(RunRef->First, RunRef->Number);
}

VOID ExReInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExpSetRundownSlots(RunRefCacheAware, 0);
}

VOID ExRundownCompletedCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExpLeaveSections(RunRefCacheAware);
    ExpSetRundownSlots(RunRefCacheAware, EX_RUNDOWN_ACTIVE);
}
