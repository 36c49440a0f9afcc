/*
 * pool.c: pool memory, and raising a status.
 *
 * A header before each block records how it was allocated, so that a free can be checked. The header is not at the
 * start of the host's allocation, because the host's allocator overwrites the first words of freed memory: so the
 * header of a freed block shows that it was freed until the block is reused.
 */
#include "exp.h"

#include "../ke/freedmemory.h"
#include "../ke/irql.h"
#include "pooltag.h"

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

static VOID ExpVerifyAllocation(ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    KIRQL Irql = KeGetCurrentIrql();
    if (Irql > ExpHighestIrql(PoolType)) {
        KeBugCheckEx(BAD_POOL_CALLER, EXP_ALLOCATED_AT_WRONG_IRQL, Irql, PoolType, NumberOfBytes);
    }
    if (NumberOfBytes == 0) {
        KeBugCheckEx(BAD_POOL_CALLER, EXP_ZERO_BYTES, 0, PoolType, Tag);
    }
}

static VOID ExpVerifyFree(PVOID Block, ULONG PoolType)
{
    KIRQL Irql = KeGetCurrentIrql();
    if (Irql > ExpHighestIrql(PoolType)) {
        KeBugCheckEx(BAD_POOL_CALLER, EXP_FREED_AT_WRONG_IRQL, Irql, PoolType, (ULONG_PTR)Block);
    }
}

/* Blocks of a page or more begin on a page. */
static SIZE_T ExpAlignment(ULONG PoolType, SIZE_T NumberOfBytes)
{
    if (NumberOfBytes >= EXP_PAGE_SIZE) {
        return EXP_PAGE_SIZE;
    }
    return PoolType & NonPagedPoolCacheAligned ? SYSTEM_CACHE_ALIGNMENT_SIZE : MEMORY_ALLOCATION_ALIGNMENT;
}

static PVOID ExpAllocate(ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    SIZE_T Alignment = ExpAlignment(PoolType, NumberOfBytes);
    SIZE_T Offset = Alignment > EXP_SMALLEST_OFFSET ? Alignment : EXP_SMALLEST_OFFSET;
    if (KiVerifierEnabled) {
        ExpVerifyAllocation(PoolType, NumberOfBytes, Tag);
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

static BOOLEAN ExpAreFlagsValid(POOL_FLAGS Flags)
{
    POOL_FLAGS Required = Flags & (POOL_FLAG_OPTIONAL_START - 1);
    return !(Required & ~EXP_POOL_REQUIRED_FLAGS) && __builtin_popcountll(Flags & EXP_POOL_KIND_FLAGS) == 1;
}

static ULONG ExpPoolTypeOf(POOL_FLAGS Flags)
{
    ULONG Kind = Flags & POOL_FLAG_PAGED ? PagedPool : Flags & POOL_FLAG_NON_PAGED ? NonPagedPoolNx : NonPagedPool;
    ULONG Zero = Flags & POOL_FLAG_UNINITIALIZED ? 0 : POOL_ZERO_ALLOCATION;
    return Kind | Zero | (Flags & POOL_FLAG_CACHE_ALIGNED ? NonPagedPoolCacheAligned : 0u);
}

PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag)
{
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    PVOID Block = NULL;
    if (Tag != 0 && ExpAreFlagsValid(Flags)) {
        Status = STATUS_INSUFFICIENT_RESOURCES;
        Block = ExpAllocate(ExpPoolTypeOf(Flags), NumberOfBytes, Tag);
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
        ExpVerifyFree(P, Header->PoolType);
        KiVerifyFreedMemory(P, ExpPoolBytes(P, Header->Offset));
    }
    ExpNotePoolFreed(P, Header->PoolType, Header->Tag);
    HalFree((PUCHAR)P - Header->Offset);
}

/* Forms of the two. */

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

static BOOLEAN ExpIsExtendedParameterKnown(PCPOOL_EXTENDED_PARAMETER Parameter)
{
    return Parameter->Optional || Parameter->Type == PoolExtendedParameterPriority ||
           Parameter->Type == PoolExtendedParameterNumaNode;
}

PVOID ExAllocatePool3(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag, PCPOOL_EXTENDED_PARAMETER ExtendedParameters,
                      ULONG ExtendedParametersCount)
{
    for (ULONG i = 0; i < ExtendedParametersCount; i++) {
        if (!ExpIsExtendedParameterKnown(&ExtendedParameters[i])) {
            Tag = 0; /* refused as that is */
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
