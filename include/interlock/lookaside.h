/*
 * lookaside.h: lookaside lists, blocks of one size that are kept for reuse. A list keeps at most Depth blocks, which follows
 * the demand: it doubles, up to MaximumDepth, while allocations find the list empty, and halves while the list is hardly
 * used. With the verifier lists keep nothing, so that the pool finds a block that is freed twice or used afterwards.
 */
#ifndef INTERLOCK_LOOKASIDE_H
#define INTERLOCK_LOOKASIDE_H

#include <interlock/ex.h>

INTERLOCK_BEGIN

typedef struct _LOOKASIDE_LIST_EX *PLOOKASIDE_LIST_EX;

typedef PVOID ALLOCATE_FUNCTION(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
typedef ALLOCATE_FUNCTION *PALLOCATE_FUNCTION;
typedef PVOID ALLOCATE_FUNCTION_EX(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag, PLOOKASIDE_LIST_EX Lookaside);
typedef ALLOCATE_FUNCTION_EX *PALLOCATE_FUNCTION_EX;
typedef VOID FREE_FUNCTION(PVOID Buffer);
typedef FREE_FUNCTION *PFREE_FUNCTION;
typedef VOID FREE_FUNCTION_EX(PVOID Buffer, PLOOKASIDE_LIST_EX Lookaside);
typedef FREE_FUNCTION_EX *PFREE_FUNCTION_EX;

#define LOOKASIDE_ALIGN DECLSPEC_CACHEALIGN

#define GENERAL_LOOKASIDE_LAYOUT                                                                                       \
    __extension__ union {                                                                                              \
        SLIST_HEADER ListHead;                                                                                         \
        SINGLE_LIST_ENTRY SingleListHead;                                                                              \
    };                                                                                                                 \
    USHORT Depth;                                                                                                      \
    USHORT MaximumDepth;                                                                                               \
    ULONG TotalAllocates;                                                                                              \
    __extension__ union {                                                                                              \
        ULONG AllocateMisses;                                                                                          \
        ULONG AllocateHits;                                                                                            \
    };                                                                                                                 \
    ULONG TotalFrees;                                                                                                  \
    __extension__ union {                                                                                              \
        ULONG FreeMisses;                                                                                              \
        ULONG FreeHits;                                                                                                \
    };                                                                                                                 \
    POOL_TYPE Type;                                                                                                    \
    ULONG Tag;                                                                                                         \
    ULONG Size;                                                                                                        \
    __extension__ union {                                                                                              \
        PALLOCATE_FUNCTION_EX AllocateEx;                                                                              \
        PALLOCATE_FUNCTION Allocate;                                                                                   \
    };                                                                                                                 \
    __extension__ union {                                                                                              \
        PFREE_FUNCTION_EX FreeEx;                                                                                      \
        PFREE_FUNCTION Free;                                                                                           \
    };                                                                                                                 \
    LIST_ENTRY ListEntry;                                                                                              \
    ULONG LastTotalAllocates;                                                                                          \
    __extension__ union {                                                                                              \
        ULONG LastAllocateMisses;                                                                                      \
        ULONG LastAllocateHits;                                                                                        \
    };                                                                                                                 \
    ULONG Future[2]

typedef struct LOOKASIDE_ALIGN _GENERAL_LOOKASIDE {
    GENERAL_LOOKASIDE_LAYOUT;
} GENERAL_LOOKASIDE, *PGENERAL_LOOKASIDE;

typedef struct _GENERAL_LOOKASIDE_POOL {
    GENERAL_LOOKASIDE_LAYOUT;
} GENERAL_LOOKASIDE_POOL, *PGENERAL_LOOKASIDE_POOL;

typedef struct LOOKASIDE_ALIGN _NPAGED_LOOKASIDE_LIST {
    GENERAL_LOOKASIDE L;
} NPAGED_LOOKASIDE_LIST, *PNPAGED_LOOKASIDE_LIST;

typedef struct LOOKASIDE_ALIGN _PAGED_LOOKASIDE_LIST {
    GENERAL_LOOKASIDE L;
} PAGED_LOOKASIDE_LIST, *PPAGED_LOOKASIDE_LIST;

typedef struct _LOOKASIDE_LIST_EX {
    GENERAL_LOOKASIDE_POOL L;
} LOOKASIDE_LIST_EX;

C_ASSERT(sizeof(GENERAL_LOOKASIDE) == 128 && sizeof(NPAGED_LOOKASIDE_LIST) == 128 &&
         sizeof(PAGED_LOOKASIDE_LIST) == 128);
C_ASSERT(sizeof(LOOKASIDE_LIST_EX) == 96);
C_ASSERT(FIELD_OFFSET(GENERAL_LOOKASIDE, TotalAllocates) == 20 && FIELD_OFFSET(GENERAL_LOOKASIDE, Tag) == 40 &&
         FIELD_OFFSET(GENERAL_LOOKASIDE, Allocate) == 48 && FIELD_OFFSET(GENERAL_LOOKASIDE, Future) == 88);

#define LOOKASIDE_MINIMUM_BLOCK_SIZE 8
#define EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL 0x00000001U
#define EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE 0x00000002U
#define EX_MAXIMUM_LOOKASIDE_DEPTH_BASE 256
#define EX_MAXIMUM_LOOKASIDE_DEPTH_LIMIT 1024

/* Initializes an empty list. The routines may be NULL for the pool; Flags may be POOL_RAISE_IF_ALLOCATION_FAILURE and
   POOL_NX_ALLOCATION; Depth is ignored. Raises STATUS_DATATYPE_MISALIGNMENT for a list that is not 16-byte aligned.
   Since NT 4.0. */
NTKERNELAPI VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
                                                 PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
                                                 USHORT Depth);
NTKERNELAPI VOID ExInitializePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
                                                PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag, USHORT Depth);

/* The same for a pool type, with routines that get the list. Returns STATUS_INVALID_PARAMETER_4 for an unknown type,
   STATUS_INVALID_PARAMETER_5 for unknown flags or both of them. Since Vista. */
NTKERNELAPI NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PALLOCATE_FUNCTION_EX Allocate,
                                                 PFREE_FUNCTION_EX Free, POOL_TYPE PoolType, ULONG Flags, SIZE_T Size,
                                                 ULONG Tag, USHORT Depth);

/* Frees the blocks that the list keeps. The list must not be used any more. Since NT 4.0, NT 4.0, Vista. */
NTKERNELAPI VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI VOID ExDeletePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI VOID ExDeleteLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);

/* Frees the blocks that the list keeps now. Since Vista. */
NTKERNELAPI VOID ExFlushLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);

/* Takes a block from the list, or from the allocate routine if the list is empty; NULL if that returns NULL. Up to
   DISPATCH_LEVEL, for a paged list up to APC_LEVEL. Since NT 4.0, NT 4.0, Vista. */
NTKERNELAPI PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI PVOID ExAllocateFromPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI PVOID ExAllocateFromLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);

/* Puts a block into the list, or frees it if the list keeps Depth of them. Since NT 4.0, NT 4.0, Vista. */
NTKERNELAPI VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry);
NTKERNELAPI VOID ExFreeToPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry);
NTKERNELAPI VOID ExFreeToLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PVOID Entry);

INTERLOCK_END

#endif
