/*
 * pool.c: pool memory, its use by tag, lookaside lists, and raising a status.
 *
 * A header before each block records how it was allocated, so that a free can be checked. The header is not at the
 * start of the host's allocation, because the host's allocator overwrites the first words of freed memory: so the
 * header of a freed block shows that it was freed until the block is reused.
 */
#include <interlock/ex.h>
#include <interlock/verifier.h>

#include "exp.h"

#include "../ke/debugdata.h"
#include "../ke/irql.h"
#include "../ke/verifier.h"

#define EXP_PAGE_SIZE 4096
#define EXP_SMALLEST_OFFSET (2 * MEMORY_ALLOCATION_ALIGNMENT)
#define EXP_POOL_ALLOCATED 0x6c6f6f50u /* "Pool" */
#define EXP_POOL_FREED 0x65657246u     /* "Free" */
#define EXP_POOL_FILL 0xcd             /* each byte of memory that is not zeroed, with the verifier */

/* The first parameter of BAD_POOL_CALLER. */
#define EXP_ZERO_BYTES 0x00
#define EXP_ALREADY_FREED 0x07
#define EXP_ALLOCATED_AT_WRONG_IRQL 0x08
#define EXP_FREED_AT_WRONG_IRQL 0x09
#define EXP_WRONG_TAG 0x0a
#define EXP_INVALID_ADDRESS 0x46
#define EXP_NO_TAG 0x9b

#define EXP_TAG_OF_NONE 0x656e6f4eu /* "None" */

typedef struct _EXP_POOL_HEADER {
    ULONG State;
    ULONG Tag;
    ULONG Offset; /* of the block in the host's allocation */
    ULONG PoolType;
} EXP_POOL_HEADER, *PEXP_POOL_HEADER;

C_ASSERT(sizeof(EXP_POOL_HEADER) == MEMORY_ALLOCATION_ALIGNMENT);

#define EXP_POOL_REQUIRED_FLAGS                                                                                        \
    (POOL_FLAG_USE_QUOTA | POOL_FLAG_UNINITIALIZED | POOL_FLAG_SESSION | POOL_FLAG_CACHE_ALIGNED |                     \
     POOL_FLAG_RAISE_ON_FAILURE | POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE | POOL_FLAG_PAGED)
#define EXP_POOL_KIND_FLAGS (POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE | POOL_FLAG_PAGED)

static PEXP_POOL_HEADER ExpPoolHeader(PVOID Block)
{
    return (PEXP_POOL_HEADER)Block - 1;
}

static KIRQL ExpHighestIrql(ULONG PoolType)
{
    return PoolType & PagedPool ? APC_LEVEL : DISPATCH_LEVEL;
}

static PVOID ExpAllocate(ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    SIZE_T Alignment = NumberOfBytes >= EXP_PAGE_SIZE          ? EXP_PAGE_SIZE
                       : PoolType & NonPagedPoolCacheAligned ? SYSTEM_CACHE_ALIGNMENT_SIZE
                                                             : MEMORY_ALLOCATION_ALIGNMENT;
    SIZE_T Offset = Alignment > EXP_SMALLEST_OFFSET ? Alignment : EXP_SMALLEST_OFFSET;
    if (KiVerifierEnabled) {
        KIRQL Irql = KeGetCurrentIrql();
        if (Irql > ExpHighestIrql(PoolType)) {
            KeBugCheckEx(BAD_POOL_CALLER, EXP_ALLOCATED_AT_WRONG_IRQL, Irql, PoolType, NumberOfBytes);
        }
        if (NumberOfBytes == 0) {
            KeBugCheckEx(BAD_POOL_CALLER, EXP_ZERO_BYTES, 0, PoolType, Tag);
        }
    }
    if (NumberOfBytes > (SIZE_T)MAXLONG_PTR - Offset) {
        return NULL;
    }
    BOOLEAN Zero = (PoolType & POOL_ZERO_ALLOCATION) != 0;
    PUCHAR Memory = Zero ? HalAllocate(Offset + NumberOfBytes, Alignment)
                         : HalAllocateUninitialized(Offset + NumberOfBytes, Alignment);
    if (Memory == NULL) {
        return NULL;
    }
    if (KiVerifierEnabled) {
        KiNoteNewMemory(Memory + Offset, NumberOfBytes);
        if (!Zero) {
            memset(Memory + Offset, EXP_POOL_FILL, NumberOfBytes);
        }
    }
    *ExpPoolHeader(Memory + Offset) = (EXP_POOL_HEADER){EXP_POOL_ALLOCATED, Tag, (ULONG)Offset, PoolType};
    ExpNotePoolAllocated(Memory + Offset, PoolType, NumberOfBytes, Tag);
    return Memory + Offset;
}

PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag)
{
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    PVOID Block = NULL;
    POOL_FLAGS Required = Flags & (POOL_FLAG_OPTIONAL_START - 1);
    if (Tag != 0 && !(Required & ~EXP_POOL_REQUIRED_FLAGS) && __builtin_popcountll(Flags & EXP_POOL_KIND_FLAGS) == 1) {
        ULONG Type = Flags & POOL_FLAG_PAGED ? PagedPool : Flags & POOL_FLAG_NON_PAGED ? NonPagedPoolNx : NonPagedPool;
        Type |= Flags & POOL_FLAG_UNINITIALIZED ? 0 : POOL_ZERO_ALLOCATION;
        Type |= Flags & POOL_FLAG_CACHE_ALIGNED ? NonPagedPoolCacheAligned : 0u;
        Status = STATUS_INSUFFICIENT_RESOURCES;
        Block = ExpAllocate(Type, NumberOfBytes, Tag);
    }
    if (Block == NULL && (Flags & POOL_FLAG_RAISE_ON_FAILURE)) {
        ExRaiseStatus(Status);
    }
    return Block;
}

PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    if (Tag == 0) {
        KeBugCheckEx(BAD_POOL_CALLER, EXP_NO_TAG, PoolType, NumberOfBytes, (ULONG_PTR)__builtin_return_address(0));
    }
    PVOID Block = ExpAllocate(PoolType, NumberOfBytes, Tag);
    if (Block == NULL && (PoolType & POOL_RAISE_IF_ALLOCATION_FAILURE)) {
        ExRaiseStatus(STATUS_INSUFFICIENT_RESOURCES);
    }
    return Block;
}

static DECLSPEC_NORETURN VOID ExpBadFree(PVOID Block, ULONG State)
{
    if (State == EXP_POOL_FREED) {
        KeBugCheckEx(BAD_POOL_CALLER, EXP_ALREADY_FREED, 0, ExpPoolHeader(Block)->Tag, (ULONG_PTR)Block);
    }
    KeBugCheckEx(BAD_POOL_CALLER, EXP_INVALID_ADDRESS, (ULONG_PTR)Block, 0, 0);
}

VOID ExFreePoolWithTag(PVOID P, ULONG Tag)
{
    ULONG State = EXP_POOL_ALLOCATED;
    if (P == NULL || (ULONG_PTR)P % MEMORY_ALLOCATION_ALIGNMENT != 0) {
        ExpBadFree(P, 0);
    }
    PEXP_POOL_HEADER Header = ExpPoolHeader(P);
    if (Tag != 0 && Header->State == EXP_POOL_ALLOCATED && Tag != Header->Tag) {
        KeBugCheckEx(BAD_POOL_CALLER, EXP_WRONG_TAG, (ULONG_PTR)P, Header->Tag, Tag);
    }
    /* relaxed: of two threads that free the same block one is caught; nothing else depends on it */
    if (!__atomic_compare_exchange_n(&Header->State, &State, EXP_POOL_FREED, FALSE, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        ExpBadFree(P, State);
    }
    if (KiVerifierEnabled) {
        KIRQL Irql = KeGetCurrentIrql();
        if (Irql > ExpHighestIrql(Header->PoolType)) {
            KeBugCheckEx(BAD_POOL_CALLER, EXP_FREED_AT_WRONG_IRQL, Irql, Header->PoolType, (ULONG_PTR)P);
        }
        KiVerifyFreed(P, ExpPoolBytes(P, Header->Offset), FALSE);
    }
    ExpNotePoolFreed(P, Header->PoolType, Header->Tag);
    HalFree((PUCHAR)P - Header->Offset);
}

/* Other forms of allocating and freeing. */

PVOID ExAllocatePool(POOL_TYPE PoolType, SIZE_T NumberOfBytes)
{
    return ExAllocatePoolWithTag(PoolType, NumberOfBytes, EXP_TAG_OF_NONE);
}

PVOID ExAllocatePoolWithTagPriority(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag, EX_POOL_PRIORITY Priority)
{
    UNREFERENCED_PARAMETER(Priority);
    return ExAllocatePoolWithTag(PoolType, NumberOfBytes, Tag);
}

PVOID ExAllocatePoolWithQuotaTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    ULONG Raise = PoolType & POOL_QUOTA_FAIL_INSTEAD_OF_RAISE ? 0 : POOL_RAISE_IF_ALLOCATION_FAILURE;
    ULONG Type = (ULONG)PoolType & ~(ULONG)POOL_QUOTA_FAIL_INSTEAD_OF_RAISE;
    return ExAllocatePoolWithTag((POOL_TYPE)(Type | Raise), NumberOfBytes, Tag);
}

PVOID ExAllocatePool3(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag, PCPOOL_EXTENDED_PARAMETER ExtendedParameters,
                      ULONG ExtendedParametersCount)
{
    for (ULONG i = 0; i < ExtendedParametersCount; i++) {
        PCPOOL_EXTENDED_PARAMETER Parameter = &ExtendedParameters[i];
        if (!Parameter->Optional && Parameter->Type != PoolExtendedParameterPriority &&
            Parameter->Type != PoolExtendedParameterNumaNode) {
            Tag = 0; /* tag 0 is refused */
        }
    }
    return ExAllocatePool2(Flags, NumberOfBytes, Tag);
}

VOID ExFreePool2(PVOID P, ULONG Tag, PCPOOL_EXTENDED_PARAMETER ExtendedParameters, ULONG ExtendedParametersCount)
{
    UNREFERENCED_PARAMETER(ExtendedParameters);
    UNREFERENCED_PARAMETER(ExtendedParametersCount);
    ExFreePoolWithTag(P, Tag);
}

VOID ExFreePool(PVOID P)
{
    ExFreePoolWithTag(P, 0);
}

/* Raising a status. */

VOID ExRaiseStatus(NTSTATUS Status)
{
    KiRaiseStatus(Status);
}

VOID ExRaiseAccessViolation(VOID)
{
    KiRaiseStatus(STATUS_ACCESS_VIOLATION);
}

VOID ExRaiseDatatypeMisalignment(VOID)
{
    KiRaiseStatus(STATUS_DATATYPE_MISALIGNMENT);
}

#ifdef INTERLOCK_HOST

/* Use by tag, and what was not freed. Theory in exp.h. */

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

/* The hooks of allocating and freeing. */

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
            HalPrint("  %p, %zu bytes, tag ", (PVOID)~Record.Block, Record.Bytes);
            ExpPrintTag(Record.Tag);
            HalPrint(", allocated by\n");
            HalPrintCallers(Record.Frames, Record.FrameCount);
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

#endif

/*
 * Lookaside lists. An SLIST of blocks, bounded by Depth.
 *
 * 1. Depth is advisory: threads that free at the same time may exceed it by one block each.
 * 2. The counters are those of Windows: TotalAllocates and TotalFrees count calls, the misses those that the list could
 * not serve.
 * 3. Depth follows the demand. Only a miss can show that it is wrong, so a miss checks what has happened since the last
 *    check, at most once per EXP_LOOKASIDE_INTERVAL: many misses double the depth; a list that was used less often than
 *    it keeps blocks, per interval, loses half of it. Future holds the time of the last check. The thread that advances
 *    it adjusts the depth. A thread of the library that visits all lists was rejected: lists would have to be found
 *    while they are deleted, and a program without lists would pay for it.
 * 4. The three public structures begin alike, so one implementation serves them. They differ in the routines: those of
 *    LOOKASIDE_LIST_EX also get the list.
 */

#define EXP_LOOKASIDE_INTERVAL   10000000ull /* one second */
#define EXP_LOOKASIDE_SMALLEST   4
#define EXP_LOOKASIDE_MISS_SHARE 16 /* a list grows if one in this many allocations misses, or more */

C_ASSERT(FIELD_OFFSET(GENERAL_LOOKASIDE, Future) == FIELD_OFFSET(GENERAL_LOOKASIDE_POOL, Future));
C_ASSERT(FIELD_OFFSET(GENERAL_LOOKASIDE, Future) % sizeof(ULONG64) == 0);

typedef enum _EXP_LOOKASIDE_KIND { ExpLookasidePlain, ExpLookasideEx } EXP_LOOKASIDE_KIND;

static PVOID ExpAllocateForLookasideEx(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
                                       PLOOKASIDE_LIST_EX Lookaside)
{
    UNREFERENCED_PARAMETER(Lookaside);
    return PoolType & POOL_QUOTA_FAIL_INSTEAD_OF_RAISE ? ExAllocatePoolWithQuotaTag(PoolType, NumberOfBytes, Tag)
                                                       : ExAllocatePoolWithTag(PoolType, NumberOfBytes, Tag);
}

static VOID ExpFreeForLookasideEx(PVOID Buffer, PLOOKASIDE_LIST_EX Lookaside)
{
    UNREFERENCED_PARAMETER(Lookaside);
    ExFreePool(Buffer);
}

static VOID ExpInitializeLookaside(PGENERAL_LOOKASIDE_POOL L, ULONG PoolType, SIZE_T Size, ULONG Tag)
{
    InitializeSListHead(&L->ListHead); /* raises if it is misaligned */
    L->Depth = EXP_LOOKASIDE_SMALLEST;
    L->MaximumDepth = EX_MAXIMUM_LOOKASIDE_DEPTH_BASE;
    L->TotalAllocates = L->AllocateMisses = L->TotalFrees = L->FreeMisses = 0;
    L->Type = (POOL_TYPE)PoolType;
    L->Tag = Tag;
    L->Size = Size > LOOKASIDE_MINIMUM_BLOCK_SIZE ? (ULONG)Size : LOOKASIDE_MINIMUM_BLOCK_SIZE;
    InitializeListHead(&L->ListEntry);
    L->LastTotalAllocates = L->LastAllocateMisses = 0;
    *(PULONG64)L->Future = KeQueryInterruptTime();
}

static VOID ExpInitializePlainLookaside(PGENERAL_LOOKASIDE_POOL L, PALLOCATE_FUNCTION Allocate, PFREE_FUNCTION Free,
                                        ULONG PoolType, SIZE_T Size, ULONG Tag)
{
    ExpInitializeLookaside(L, PoolType, Size, Tag);
    L->Allocate = Allocate != NULL ? Allocate : ExAllocatePoolWithTag;
    L->Free = Free != NULL ? Free : ExFreePool;
}

VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate, PFREE_FUNCTION Free,
                                     ULONG Flags, SIZE_T Size, ULONG Tag, USHORT Depth)
{
    UNREFERENCED_PARAMETER(Depth);
    ExpInitializePlainLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, Allocate, Free, (ULONG)NonPagedPool | Flags,
                                Size, Tag);
}

VOID ExInitializePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate, PFREE_FUNCTION Free,
                                    ULONG Flags, SIZE_T Size, ULONG Tag, USHORT Depth)
{
    UNREFERENCED_PARAMETER(Depth);
    ExpInitializePlainLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, Allocate, Free, (ULONG)PagedPool | Flags, Size,
                                Tag);
}

NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PALLOCATE_FUNCTION_EX Allocate,
                                     PFREE_FUNCTION_EX Free, POOL_TYPE PoolType, ULONG Flags, SIZE_T Size, ULONG Tag,
                                     USHORT Depth)
{
    const ULONG Both = EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL | EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE;
    const ULONG Types =
        MaxPoolType | NonPagedPoolSession | POOL_COLD_ALLOCATION | POOL_NX_ALLOCATION | POOL_ZERO_ALLOCATION;
    ULONG Type = (ULONG)PoolType;
    UNREFERENCED_PARAMETER(Depth);
    if (Type & ~Types) {
        return STATUS_INVALID_PARAMETER_4;
    }
    if ((Flags & ~Both) != 0 || Flags == Both) {
        return STATUS_INVALID_PARAMETER_5;
    }
    Type |= Flags & EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL ? POOL_RAISE_IF_ALLOCATION_FAILURE : 0u;
    Type |= Flags & EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE ? POOL_QUOTA_FAIL_INSTEAD_OF_RAISE : 0u;
    ExpInitializeLookaside(&Lookaside->L, Type, Size, Tag);
    Lookaside->L.AllocateEx = Allocate != NULL ? Allocate : ExpAllocateForLookasideEx;
    Lookaside->L.FreeEx = Free != NULL ? Free : ExpFreeForLookasideEx;
    return STATUS_SUCCESS;
}

/* Blocks. */

static VOID ExpCallFree(PGENERAL_LOOKASIDE_POOL L, EXP_LOOKASIDE_KIND Kind, PVOID Entry)
{
    if (Kind == ExpLookasideEx) {
        L->FreeEx(Entry, CONTAINING_RECORD(L, LOOKASIDE_LIST_EX, L));
    } else {
        L->Free(Entry);
    }
}

/* relaxed, this and all of the counters and Depth: statistics, they guard nothing */
static ULONG ExpCountLookaside(PULONG Counter)
{
    return __atomic_add_fetch(Counter, 1, __ATOMIC_RELAXED);
}

/* Requirement 3. */
static VOID ExpAdjustLookasideDepth(PGENERAL_LOOKASIDE_POOL L)
{
    PULONG64 Looked = (PULONG64)L->Future;
    ULONG64 Now = KeQueryInterruptTime();
    ULONG64 Last = __atomic_load_n(Looked, __ATOMIC_RELAXED);
    /* acquire and release: the next to advance the time sees what this one leaves in the Last members */
    if (Now - Last < EXP_LOOKASIDE_INTERVAL ||
        !__atomic_compare_exchange_n(Looked, &Last, Now, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        return;
    }
    ULONG Total = __atomic_load_n(&L->TotalAllocates, __ATOMIC_RELAXED);
    ULONG TotalMisses = __atomic_load_n(&L->AllocateMisses, __ATOMIC_RELAXED);
    ULONG Allocates = Total - __atomic_exchange_n(&L->LastTotalAllocates, Total, __ATOMIC_RELAXED);
    ULONG Misses = TotalMisses - __atomic_exchange_n(&L->LastAllocateMisses, TotalMisses, __ATOMIC_RELAXED);
    ULONG Depth = __atomic_load_n(&L->Depth, __ATOMIC_RELAXED);
    if (Allocates / ((Now - Last) / EXP_LOOKASIDE_INTERVAL) < Depth) {
        Depth /= 2;
    } else if (Misses > Allocates / EXP_LOOKASIDE_MISS_SHARE) {
        Depth *= 2;
    }
    Depth = Depth < EXP_LOOKASIDE_SMALLEST ? EXP_LOOKASIDE_SMALLEST : Depth;
    Depth = Depth > L->MaximumDepth ? L->MaximumDepth : Depth;
    __atomic_store_n(&L->Depth, (USHORT)Depth, __ATOMIC_RELAXED);
}

static PVOID ExpAllocateFromLookaside(PGENERAL_LOOKASIDE_POOL L, EXP_LOOKASIDE_KIND Kind)
{
    PVOID Entry;
    ExpCountLookaside(&L->TotalAllocates);
    Entry = InterlockedPopEntrySList(&L->ListHead);
    if (Entry == NULL) {
        ExpCountLookaside(&L->AllocateMisses);
        ExpAdjustLookasideDepth(L);
        Entry = Kind == ExpLookasideEx
                    ? L->AllocateEx(L->Type, L->Size, L->Tag, CONTAINING_RECORD(L, LOOKASIDE_LIST_EX, L))
                    : L->Allocate(L->Type, L->Size, L->Tag);
    }
    return Entry;
}

static VOID ExpFreeToLookaside(PGENERAL_LOOKASIDE_POOL L, EXP_LOOKASIDE_KIND Kind, PVOID Entry)
{
    ULONG Depth = KiVerifierEnabled ? 0 : __atomic_load_n(&L->Depth, __ATOMIC_RELAXED);
    ExpCountLookaside(&L->TotalFrees);
    if (QueryDepthSList(&L->ListHead) < Depth) {
        InterlockedPushEntrySList(&L->ListHead, Entry);
    } else {
        ExpCountLookaside(&L->FreeMisses);
        ExpCallFree(L, Kind, Entry);
    }
}

static VOID ExpFlushLookaside(PGENERAL_LOOKASIDE_POOL L, EXP_LOOKASIDE_KIND Kind)
{
    PSLIST_ENTRY Entry = InterlockedFlushSList(&L->ListHead);
    while (Entry != NULL) {
        PSLIST_ENTRY Next = Entry->Next;
        ExpCallFree(L, Kind, Entry);
        Entry = Next;
    }
}

PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside)
{
    return ExpAllocateFromLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, ExpLookasidePlain);
}

PVOID ExAllocateFromPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside)
{
    return ExpAllocateFromLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, ExpLookasidePlain);
}

PVOID ExAllocateFromLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
    return ExpAllocateFromLookaside(&Lookaside->L, ExpLookasideEx);
}

VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry)
{
    ExpFreeToLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, ExpLookasidePlain, Entry);
}

VOID ExFreeToPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry)
{
    ExpFreeToLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, ExpLookasidePlain, Entry);
}

VOID ExFreeToLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PVOID Entry)
{
    ExpFreeToLookaside(&Lookaside->L, ExpLookasideEx, Entry);
}

VOID ExFlushLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
    ExpFlushLookaside(&Lookaside->L, ExpLookasideEx);
}

VOID ExDeleteLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
    ExpFlushLookaside(&Lookaside->L, ExpLookasideEx);
}

VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside)
{
    ExpFlushLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, ExpLookasidePlain);
}

VOID ExDeletePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside)
{
    ExpFlushLookaside((PGENERAL_LOOKASIDE_POOL)&Lookaside->L, ExpLookasidePlain);
}
