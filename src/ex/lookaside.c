/*
 * lookaside.c: lookaside lists. An SLIST of blocks, bounded by Depth.
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
#include <interlock/ex.h>

#include "../ke/irql.h"
#include "exp.h"

#define EXP_LOOKASIDE_INTERVAL   10000000ull /* one second */
#define EXP_LOOKASIDE_SMALLEST   4
#define EXP_LOOKASIDE_MISS_SHARE 16 /* one miss in so many allocations is too many */

C_ASSERT(FIELD_OFFSET(GENERAL_LOOKASIDE, Future) == FIELD_OFFSET(GENERAL_LOOKASIDE_POOL, Future));
C_ASSERT(FIELD_OFFSET(GENERAL_LOOKASIDE, Future) % sizeof(ULONG64) == 0);

typedef enum _EXP_LOOKASIDE_KIND { ExpLookasidePlain, ExpLookasideEx } EXP_LOOKASIDE_KIND;

static PVOID ExpAllocateForLookaside(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    return ExAllocatePoolWithTag(PoolType, NumberOfBytes, Tag);
}

static VOID ExpFreeForLookaside(PVOID Buffer)
{
    ExFreePool(Buffer);
}

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
    L->Allocate = Allocate != NULL ? Allocate : ExpAllocateForLookaside;
    L->Free = Free != NULL ? Free : ExpFreeForLookaside;
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

static PVOID ExpCallAllocate(PGENERAL_LOOKASIDE_POOL L, EXP_LOOKASIDE_KIND Kind)
{
    return Kind == ExpLookasideEx ? L->AllocateEx(L->Type, L->Size, L->Tag, CONTAINING_RECORD(L, LOOKASIDE_LIST_EX, L))
                                  : L->Allocate(L->Type, L->Size, L->Tag);
}

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
        Entry = ExpCallAllocate(L, Kind);
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
