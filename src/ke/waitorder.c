/* waitorder.c: the objects of a WaitAll in the order of their addresses, in which they are locked. */
#include "wait.h"

#include <string.h>

/* Two neighbouring runs become one. Of equal objects the one of the first run goes first. */
static VOID KiMergeRuns(PVOID Object[], const UCHAR *First, const UCHAR *Second, const UCHAR *End, UCHAR *To)
{
    const UCHAR *Middle = Second;
    while (First < Middle && Second < End) {
        BOOLEAN TakeSecond = Object[*Second] < Object[*First];
        *To++ = TakeSecond ? *Second : *First;
        Second += TakeSecond;
        First += !TakeSecond;
    }
    memcpy(To, First, (SIZE_T)(Middle - First));
    memcpy(To + (Middle - First), Second, (SIZE_T)(End - Second));
}

/* Runs of Width indices, of which the last may be shorter, become runs of twice that. */
static VOID KiMergePass(PVOID Object[], ULONG Count, ULONG Width, const UCHAR From[], UCHAR To[])
{
    for (ULONG Start = 0; Start < Count; Start += 2 * Width) {
        ULONG Middle = Start + Width < Count ? Start + Width : Count;
        ULONG End = Middle + Width < Count ? Middle + Width : Count;
        KiMergeRuns(Object, &From[Start], &From[Middle], &From[End], &To[Start]);
    }
}

static BOOLEAN KiIsAscending(PVOID Object[], ULONG Count, const UCHAR Order[])
{
    for (ULONG Index = 1; Index < Count; Index += 1) {
        if (Object[Order[Index - 1]] >= Object[Order[Index]]) {
            return FALSE;
        }
    }
    return TRUE;
}

/* Objects that were allocated or declared one after the other often come in order: then one look is enough. */
BOOLEAN KiSortObjects(PVOID Object[], ULONG Count, UCHAR Order[MAXIMUM_WAIT_OBJECTS])
{
    UCHAR Merged[MAXIMUM_WAIT_OBJECTS];
    for (ULONG Index = 0; Index < Count; Index += 1) {
        Order[Index] = (UCHAR)Index;
    }
    if (KiIsAscending(Object, Count, Order)) {
        return TRUE;
    }
    for (ULONG Width = 1; Width < Count; Width *= 2) {
        KiMergePass(Object, Count, Width, Order, Merged);
        memcpy(Order, Merged, Count);
    }
    return KiIsAscending(Object, Count, Order);
}

BOOLEAN KiHasDuplicates(PVOID Object[], ULONG Count)
{
    UCHAR Order[MAXIMUM_WAIT_OBJECTS];
    return !KiSortObjects(Object, Count, Order);
}
