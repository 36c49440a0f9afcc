/* pooltag.c: counts pool memory by tag, and finds what was not freed. Theory in pooltag.h. */
#include "pooltag.h"

#include "../ke/debugdata.h"
#include "../ke/fault.h"

#include <interlock/ex.h>
#include <interlock/verifier.h>

#define EXP_RECORD_LISTS 64 /* a power of 2 */
#define EXP_RECORD_FRAMES 16
#define EXP_POOL_HASH 0x9E3779B97F4A7C15ull /* 2^64 divided by the golden ratio */
#define EXP_MOST_LISTED 32

typedef struct _EXP_POOL_RECORD {
    LIST_ENTRY Entry;
    ULONG_PTR Block; /* inverted: a leak detector must not take it for a use of the block */
    ULONG64 Number;
    SIZE_T Bytes;
    ULONG Tag;
    ULONG ForkDepth;
    ULONG FrameCount;
    ULONG64 Frames[EXP_RECORD_FRAMES];
} EXP_POOL_RECORD, *PEXP_POOL_RECORD;

typedef struct _EXP_POOL_FRONT {
    SIZE_T Bytes;
    PEXP_POOL_RECORD Record; /* NULL: it has none */
} EXP_POOL_FRONT, *PEXP_POOL_FRONT;

typedef struct _EXP_RECORD_LIST {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    LIST_ENTRY Head; /* Flink NULL: nothing was ever in it */
} EXP_RECORD_LIST, *PEXP_RECORD_LIST;

static EXP_POOL_TAG ExpPoolTags[EXP_POOL_TAGS + 1];
KD_REGISTER_ROOT(ExpPoolTags);
KD_REGISTER_LAYOUT(ExpPoolLayout, EXP_POOL_LAYOUT);

static EXP_RECORD_LIST ExpRecordLists[EXP_RECORD_LISTS];
static volatile ULONG64 ExpBlocksNumbered;

/* Rows. */

static BOOLEAN ExpIsRowOf(PEXP_POOL_TAG Row, ULONG64 Key, BOOLEAN Create)
{
    /* relaxed, both: a key is written once, and the counters begin as zeros */
    ULONG64 Found = __atomic_load_n(&Row->Key, __ATOMIC_RELAXED);
    if (Found == 0 && Create &&
        __atomic_compare_exchange_n(&Row->Key, &Found, Key, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return TRUE;
    }
    return Found == Key;
}

/* NULL: there is none, and Create is FALSE. */
static PEXP_POOL_TAG ExpFindRow(ULONG64 Key, BOOLEAN Create)
{
    PEXP_POOL_TAG Overflow = &ExpPoolTags[EXP_POOL_TAGS];
    ULONG First = (ULONG)((Key * EXP_POOL_HASH) >> 32);
    for (ULONG Step = 0; Step < EXP_POOL_TAGS; Step++) {
        PEXP_POOL_TAG Row = &ExpPoolTags[(First + Step) & (EXP_POOL_TAGS - 1)];
        if (ExpIsRowOf(Row, Key, Create)) {
            return Row;
        }
        if (__atomic_load_n(&Row->Key, __ATOMIC_RELAXED) == 0) {
            return NULL;
        }
    }
    if (Create) {
        __atomic_store_n(&Overflow->Key, EXP_POOL_OVERFLOW_TAG | EXP_POOL_USED, __ATOMIC_RELAXED);
    }
    return Create || ExpIsRowOf(Overflow, Key, FALSE) ? Overflow : NULL;
}

static ULONG64 ExpKeyOf(ULONG Tag, BOOLEAN Paged)
{
    return Tag | EXP_POOL_USED | (Paged ? EXP_POOL_PAGED : 0);
}

/* Chosen by the address of the thread's own data, which every thread has, adopted or not. */
static PEXP_POOL_STRIPE ExpStripeOf(PEXP_POOL_TAG Row)
{
    return &Row->Stripe[((ULONG_PTR)&HalCurrentThread * EXP_POOL_HASH >> 32) % EXP_POOL_STRIPES];
}

/* relaxed, here and below: statistics */
static VF_POOL_USE ExpSumRow(PEXP_POOL_TAG Row)
{
    VF_POOL_USE Use = {.PeakBytes = __atomic_load_n(&Row->PeakBytes, __ATOMIC_RELAXED)};
    for (ULONG Index = 0; Index < EXP_POOL_STRIPES; Index++) {
        Use.Allocations += __atomic_load_n(&Row->Stripe[Index].Allocations, __ATOMIC_RELAXED);
        Use.Frees += __atomic_load_n(&Row->Stripe[Index].Frees, __ATOMIC_RELAXED);
        Use.Bytes += __atomic_load_n(&Row->Stripe[Index].Bytes, __ATOMIC_RELAXED);
    }
    return Use;
}

static VOID ExpNotePeak(PEXP_POOL_TAG Row)
{
    ULONG64 Bytes = ExpSumRow(Row).Bytes;
    ULONG64 Peak = __atomic_load_n(&Row->PeakBytes, __ATOMIC_RELAXED);
    while ((LONG64)Bytes > (LONG64)Peak &&
           !__atomic_compare_exchange_n(&Row->PeakBytes, &Peak, Bytes, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* Records. */

static PEXP_RECORD_LIST ExpRecordListOf(PVOID Block)
{
    return &ExpRecordLists[((ULONG_PTR)Block >> 4) & (EXP_RECORD_LISTS - 1)];
}

static PEXP_POOL_RECORD ExpMakeRecord(PVOID Block, SIZE_T NumberOfBytes, ULONG Tag)
{
    PEXP_RECORD_LIST List = ExpRecordListOf(Block);
    PEXP_POOL_RECORD Record = HalAllocateWithoutFault(sizeof(*Record), MEMORY_ALLOCATION_ALIGNMENT);
    PKTHREAD Thread;
    if (Record == NULL) {
        return NULL;
    }
    Record->Block = ~(ULONG_PTR)Block;
    Record->Bytes = NumberOfBytes;
    Record->Tag = Tag;
    Record->ForkDepth = KiForkDepth;
    Record->FrameCount = HalCaptureStack(1, Record->Frames, EXP_RECORD_FRAMES);
    Record->Number = __atomic_fetch_add(&ExpBlocksNumbered, 1, __ATOMIC_RELAXED);
    Thread = KiEnterLocked(&List->Lock);
    if (List->Head.Flink == NULL) {
        InitializeListHead(&List->Head);
    }
    InsertTailList(&List->Head, &Record->Entry);
    KiExitLocked(&List->Lock, Thread);
    return Record;
}

static VOID ExpDropRecord(PEXP_POOL_RECORD Record)
{
    PEXP_RECORD_LIST List = ExpRecordListOf((PVOID)~Record->Block);
    PKTHREAD Thread = KiEnterLocked(&List->Lock);
    RemoveEntryList(&Record->Entry);
    KiExitLocked(&List->Lock, Thread);
    HalFree(Record);
}

/* The hooks of pool.c. */

static PEXP_POOL_FRONT ExpFrontOf(PVOID Block)
{
    return (PEXP_POOL_FRONT)((PUCHAR)Block - 2 * MEMORY_ALLOCATION_ALIGNMENT);
}

C_ASSERT(sizeof(EXP_POOL_FRONT) == MEMORY_ALLOCATION_ALIGNMENT);

VOID ExpNotePoolAllocated(PVOID Block, ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    PEXP_POOL_TAG Row = ExpFindRow(ExpKeyOf(Tag, (PoolType & PagedPool) != 0), TRUE);
    PEXP_POOL_STRIPE Stripe = ExpStripeOf(Row);
    PEXP_POOL_FRONT Front = ExpFrontOf(Block);
    __atomic_fetch_add(&Stripe->Allocations, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Stripe->Bytes, NumberOfBytes, __ATOMIC_RELAXED);
    Front->Bytes = NumberOfBytes;
    Front->Record = NULL;
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        Front->Record = ExpMakeRecord(Block, NumberOfBytes, Tag);
        ExpNotePeak(Row);
    }
}

SIZE_T ExpPoolBytes(PVOID Block, SIZE_T Offset)
{
    UNREFERENCED_PARAMETER(Offset);
    return ExpFrontOf(Block)->Bytes;
}

VOID ExpNotePoolFreed(PVOID Block, ULONG PoolType, ULONG Tag)
{
    PEXP_POOL_STRIPE Stripe = ExpStripeOf(ExpFindRow(ExpKeyOf(Tag, (PoolType & PagedPool) != 0), TRUE));
    PEXP_POOL_FRONT Front = ExpFrontOf(Block);
    __atomic_fetch_add(&Stripe->Frees, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&Stripe->Bytes, Front->Bytes, __ATOMIC_RELAXED);
    if (Front->Record != NULL) {
        ExpDropRecord(Front->Record);
    }
}

/* Queries by tests. */

static BOOLEAN ExpQueryRow(ULONG Tag, BOOLEAN Paged, PVF_POOL_USE Use)
{
    PEXP_POOL_TAG Row = ExpFindRow(ExpKeyOf(Tag, Paged), FALSE);
    VF_POOL_USE Found = {.Allocations = 0};
    if (Row != NULL) {
        Found = ExpSumRow(Row);
    }
    if (Use != NULL) {
        *Use = Found;
    }
    return Row != NULL;
}

BOOLEAN VfQueryPoolTag(ULONG Tag, PVF_POOL_USE NonPaged, PVF_POOL_USE Paged)
{
    BOOLEAN Either = ExpQueryRow(Tag, FALSE, NonPaged);
    return ExpQueryRow(Tag, TRUE, Paged) || Either;
}

/* Tag 0: all. */
static ULONG64 ExpCountLiveBlocks(ULONG Tag)
{
    ULONG64 Blocks = 0;
    for (ULONG Index = 0; Index <= EXP_POOL_TAGS; Index++) {
        ULONG64 Key = __atomic_load_n(&ExpPoolTags[Index].Key, __ATOMIC_RELAXED);
        if (Key != 0 && (Tag == 0 || (ULONG)Key == Tag)) {
            VF_POOL_USE Use = ExpSumRow(&ExpPoolTags[Index]);
            Blocks += Use.Allocations - Use.Frees;
        }
    }
    return Blocks;
}

VF_POOL_MARK VfMarkPool(ULONG Tag)
{
    return (VF_POOL_MARK){
        .Tag = Tag,
        .Verified = KiVerifierEnabled,
        .Number = __atomic_load_n(&ExpBlocksNumbered, __ATOMIC_RELAXED),
        .Blocks = ExpCountLiveBlocks(Tag),
    };
}

static VOID ExpPrintTag(ULONG Tag)
{
    CHAR Text[sizeof(ULONG) + 1] = "";
    for (ULONG Index = 0; Index < sizeof(ULONG); Index++) {
        CHAR Character = (CHAR)(Tag >> 8 * Index);
        Text[Index] = Character >= ' ' && Character <= '~' ? Character : '.';
    }
    HalPrint("'%s'", Text);
}

static VOID ExpPrintRecord(const EXP_POOL_RECORD *Record)
{
    HalPrint("  %p, %zu bytes, tag ", (PVOID)~Record->Block, Record->Bytes);
    ExpPrintTag(Record->Tag);
    HalPrint(", allocated by\n");
    HalPrintCallers(Record->Frames, Record->FrameCount);
}

/* Copies the oldest record that is not older than *Number, and advances *Number. Printing happens outside the lock. */
static BOOLEAN ExpNextLeak(const VF_POOL_MARK *Mark, PULONG64 Number, PEXP_POOL_RECORD Oldest)
{
    BOOLEAN Found = FALSE;
    for (ULONG Index = 0; Index < EXP_RECORD_LISTS; Index++) {
        PEXP_RECORD_LIST List = &ExpRecordLists[Index];
        PKTHREAD Thread = KiEnterLocked(&List->Lock);
        for (PLIST_ENTRY Entry = List->Head.Flink; Entry != NULL && Entry != &List->Head; Entry = Entry->Flink) {
            PEXP_POOL_RECORD Record = CONTAINING_RECORD(Entry, EXP_POOL_RECORD, Entry);
            if (Record->Number >= *Number && Record->ForkDepth == KiForkDepth &&
                (Mark->Tag == 0 || Record->Tag == Mark->Tag) && (!Found || Record->Number < Oldest->Number)) {
                *Oldest = *Record;
                Found = TRUE;
            }
        }
        KiExitLocked(&List->Lock, Thread);
    }
    if (Found) {
        *Number = Oldest->Number + 1;
    }
    return Found;
}

static ULONG64 ExpListLeaks(const VF_POOL_MARK *Mark)
{
    EXP_POOL_RECORD Record;
    ULONG64 Leaks = 0;
    for (ULONG64 Number = Mark->Number; ExpNextLeak(Mark, &Number, &Record); Leaks++) {
        if (Leaks == 0) {
            HalPrint("interlock: pool memory that was not freed:\n");
        }
        if (Leaks < EXP_MOST_LISTED) {
            ExpPrintRecord(&Record);
        }
    }
    if (Leaks > EXP_MOST_LISTED) {
        HalPrint("  and %llu more blocks\n", Leaks - EXP_MOST_LISTED);
    }
    return Leaks;
}

ULONG64 VfCountPoolLeaks(const VF_POOL_MARK *Mark)
{
    ULONG64 Now = ExpCountLiveBlocks(Mark->Tag);
    ULONG64 Leaks = Now > Mark->Blocks ? Now - Mark->Blocks : 0;
    if (Mark->Verified) {
        return ExpListLeaks(Mark);
    }
    if (Leaks != 0) {
        HalPrint("interlock: blocks of pool memory that were not freed: %llu (with the verifier on, each is listed)\n", Leaks);
    }
    return Leaks;
}

/* Blocks allocated before the verifier was on have no record. */
ULONG64 VfCountTagLeaks(ULONG Tag)
{
    const VF_POOL_MARK Beginning = {.Tag = Tag};
    ULONG64 Leaks = ExpCountLiveBlocks(Tag);
    if (Leaks != 0) {
        HalPrint("interlock: blocks with tag ");
        ExpPrintTag(Tag);
        HalPrint(" that were not freed: %llu%s\n", Leaks, KiVerifierEnabled ? "" : " (with the verifier on, each is listed)");
        ExpListLeaks(&Beginning);
    }
    return Leaks;
}

/* Priority 101: after the destructors of a program that the library is linked into. */
static __attribute__((destructor(101))) VOID ExpReportLeaksAtExit(VOID)
{
    const VF_POOL_MARK Beginning = {.Tag = 0};
    if (KiVerifierEnabled) {
        KiNoteLeaks(ExpListLeaks(&Beginning));
    }
}
