/*
 * pooltag.h: the use of pool memory, by tag.
 *
 * The table has a row for each tag and kind of pool, paged or not, as poolmon shows them. The first allocation creates
 * a row, which stays. Counting is always on, so it has to be cheap: a row has several stripes, a thread counts in one
 * of them, and a reader adds them up. Sums are exact while no thread allocates; otherwise a row may show a free without
 * its allocation for a moment. Tags beyond EXP_POOL_TAGS share the row of the tag "Ovfl".
 *
 * With the verifier on, each block has a record: its number, size and the stack that allocated it. Records are in lists,
 * by the address of the block, until the block is freed.
 *
 * In front of a block's header are 16 bytes that the pool leaves unused (pool.c): its size and its record.
 */
#ifndef INTERLOCK_POOLTAG_H
#define INTERLOCK_POOLTAG_H

#include "../ke/ki.h"

#define EXP_POOL_TAGS 512 /* a power of 2 */
#define EXP_POOL_STRIPES 8
#define EXP_POOL_OVERFLOW_TAG 0x6c66764fu /* "Ovfl" */

/* A row's key: 0, or its tag with these. */
#define EXP_POOL_PAGED ((ULONG64)1 << 32)
#define EXP_POOL_USED ((ULONG64)1 << 33)

typedef struct _EXP_POOL_STRIPE {
    volatile ULONG64 Allocations DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG64 Frees;
    volatile ULONG64 Bytes; /* allocated less freed here: only the sum of all stripes is meaningful */
} EXP_POOL_STRIPE, *PEXP_POOL_STRIPE;

typedef struct _EXP_POOL_TAG {
    volatile ULONG64 Key;
    volatile ULONG64 PeakBytes; /* with the verifier on */
    EXP_POOL_STRIPE Stripe[EXP_POOL_STRIPES];
} EXP_POOL_TAG, *PEXP_POOL_TAG;

/* What a debugger reads; the table is one more row long, for the overflow. */
#define EXP_POOL_LAYOUT sizeof(EXP_POOL_TAG), sizeof(EXP_POOL_STRIPE), EXP_POOL_TAGS, EXP_POOL_STRIPES

#ifdef INTERLOCK_HOST
VOID ExpNotePoolAllocated(PVOID Block, ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag);
VOID ExpNotePoolFreed(PVOID Block, ULONG PoolType, ULONG Tag); /* the header's */
SIZE_T ExpPoolBytes(PVOID Block, SIZE_T Offset); /* of the block in the host's allocation */
#else
#define ExpNotePoolAllocated(Block, PoolType, NumberOfBytes, Tag) ((VOID)0)
#define ExpNotePoolFreed(Block, PoolType, Tag) ((VOID)0)
#define ExpPoolBytes(Block, Offset) (HalQueryAllocationSize((PUCHAR)(Block) - (Offset)) - (Offset))
#endif

#endif
