/*
 * rundown.h: what both kinds of rundown protection share. A protection is a row of slots, one for the plain kind, one
 * for each processor for the cache-aware kind; its theory is in rundown.c.
 */
#ifndef INTERLOCK_RUNDOWN_H
#define INTERLOCK_RUNDOWN_H

#include "exp.h"

/* A slot is the only thing on its line where there is more than one. */
typedef union _EXP_RUNDOWN_SLOT {
    EX_RUNDOWN_REF Ref;
    UCHAR Line[SYSTEM_CACHE_ALIGNMENT_SIZE];
} EXP_RUNDOWN_SLOT, *PEXP_RUNDOWN_SLOT;

BOOLEAN ExpAcquireRundown(PEX_RUNDOWN_REF Slot, ULONG Count);
/* Slot: where the release is entered. First: the slot that the waiters are chained to. */
VOID ExpReleaseRundown(PEX_RUNDOWN_REF Slot, PEX_RUNDOWN_REF First, ULONG Count);
VOID ExpWaitForRundown(PEX_RUNDOWN_REF First, ULONG Slots);
VOID ExpSetRundown(PEX_RUNDOWN_REF Slot, ULONG_PTR Value);

FORCEINLINE PEX_RUNDOWN_REF ExpRundownSlot(PEX_RUNDOWN_REF First, ULONG Index)
{
    return &((PEXP_RUNDOWN_SLOT)(PVOID)First)[Index].Ref;
}

#endif
