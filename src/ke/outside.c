/* outside.c: objects whose state is in the world. Theory in outside.h. */
#include "outside.h"

const KI_OUTSIDE_OPERATIONS *KiOutsideOperations;

VOID KiSetOutsideOperations(const KI_OUTSIDE_OPERATIONS *Operations)
{
    /* release: the table and what it relies on are complete; pairs with the reads behind KiIsOutside */
    __atomic_store_n(&KiOutsideOperations, Operations, __ATOMIC_RELEASE);
}

/* The state is never used: who finds the lock bit asks the world. */
VOID KiMakeOutside(PDISPATCHER_HEADER Header, UCHAR Type, PKI_OUTSIDE Outside)
{
    Header->WaitListHead.Blink = (PLIST_ENTRY)(PVOID)Outside;
    /* release: as in KiMoveOutside */
    __atomic_store_n(&Header->WaitListHead.Flink, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(KiHeaderWord(Header), (ULONG64)Type | KI_LOCKED, __ATOMIC_RELAXED);
}

NTSTATUS KiMoveOutside(PDISPATCHER_HEADER Header, PKI_OUTSIDE Outside)
{
    UNREFERENCED_PARAMETER(Header);
    UNREFERENCED_PARAMETER(Outside);
    return STATUS_NOT_IMPLEMENTED; /* follows with the waits */
}
