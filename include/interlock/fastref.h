/* fastref.h: fast references. Part of ex.h, which includes it; ob.h has the functions over objects. */
#ifndef INTERLOCK_FASTREF_H
#define INTERLOCK_FASTREF_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

/*
 * A pointer to an object with a reference count, 16-byte aligned, whose low four bits are references that have been
 * taken on the object in advance. Taking one of them away is how the object is referenced without touching it. Beside
 * those the pointer has one reference of its own. Zeroed memory is a fast reference to nothing.
 */

#define MAX_FAST_REFS 15

typedef struct _EX_FAST_REF {
    __extension__ union {
        PVOID Object;
        ULONG_PTR RefCnt : 4;
        volatile ULONG_PTR Value;
    };
} EX_FAST_REF, *PEX_FAST_REF;

C_ASSERT(sizeof(EX_FAST_REF) == 8);

FORCEINLINE PVOID ExGetObjectFastReference(EX_FAST_REF FastRef)
{
    return (PVOID)(FastRef.Value & ~(ULONG_PTR)MAX_FAST_REFS);
}

FORCEINLINE ULONG ExGetCountFastReference(EX_FAST_REF FastRef)
{
    return (ULONG)(FastRef.Value & MAX_FAST_REFS);
}

/* Object, if not NULL, with MAX_FAST_REFS references beside the one of the pointer itself, all of them the caller's. */
NTKERNELAPI VOID ExInitializeFastReference(PEX_FAST_REF FastRef, PVOID Object);

/* Takes a cached reference, if there is one. Returns what was found before: with a count of 0 nothing was taken. */
NTKERNELAPI EX_FAST_REF ExAcquireFastReference(PEX_FAST_REF FastRef);

/* Gives a reference back to the cache. FALSE: there is another object now, or no room; the caller still has it. */
NTKERNELAPI BOOLEAN ExReleaseFastReference(PEX_FAST_REF FastRef, PVOID Object);

/* Puts Count references that the caller has taken into the cache. Returns how many of them the caller keeps. */
NTKERNELAPI ULONG ExInsertFastReference(PEX_FAST_REF FastRef, PVOID Object, ULONG Count);

/* Object as in ExInitializeFastReference. Returns what was there, with its cached references, now the caller's. The
   second form does nothing, and returns what is there, unless that is OldObject. */
NTKERNELAPI EX_FAST_REF ExSwapFastReference(PEX_FAST_REF FastRef, PVOID Object);
NTKERNELAPI EX_FAST_REF ExCompareSwapFastReference(PEX_FAST_REF FastRef, PVOID Object, PVOID OldObject);

INTERLOCK_END

#endif
