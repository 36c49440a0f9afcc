/*
 * fastref.c: fast references to objects. The theory of the word is in src/ex/fastref.c.
 *
 * 1. Initialising and replacing take over one reference of the caller's on the new object; replacing gives the caller
 *    the one on the old object. What was prepaid on the old one is repaid.
 * 2. A reference is taken from the word as long as it has some; NULL: it has none, or no object. Then the caller takes
 *    the lock that goes with the word, shared, and uses the locked form. A replacer acquires and releases the same lock
 *    exclusively between replacing and giving back the old object.
 * 3. Whoever takes the last cached reference, or leaves few, pays for more, and can do so because it has one. What
 *    finds no room in the word any more goes back to the object.
 * 4. References are neither lost nor won: the object's count is R + 1 + N at any time that nobody is in here.
 */
#include "obp.h"

#include <interlock/ex.h>

#define OBP_FEW_FAST_REFS 3

VOID ObInitializeFastReference(PEX_FAST_REF FastRef, PVOID Object)
{
    if (Object != NULL) {
        ObpReferenceObjectEx(Object, MAX_FAST_REFS);
    }
    ExInitializeFastReference(FastRef, Object);
}

/* With a reference on Object. */
static VOID ObpRefillFastReference(PEX_FAST_REF FastRef, PVOID Object, ULONG Count)
{
    ULONG Kept;
    ObpReferenceObjectEx(Object, Count);
    Kept = ExInsertFastReference(FastRef, Object, Count);
    if (Kept != 0) {
        ObpDereferenceObjectEx(Object, Kept);
    }
}

PVOID ObFastReferenceObject(PEX_FAST_REF FastRef)
{
    EX_FAST_REF Old = ExAcquireFastReference(FastRef);
    ULONG Count = ExGetCountFastReference(Old);
    PVOID Object = ExGetObjectFastReference(Old);
    if (Count == 0) {
        return NULL;
    }
    /* One thread each time the count goes down, and once more if it was too slow for the others. */
    if (Count - 1 == OBP_FEW_FAST_REFS || Count - 1 == 0) {
        ObpRefillFastReference(FastRef, Object, MAX_FAST_REFS - (Count - 1));
    }
    return Object;
}

PVOID ObFastReferenceObjectLocked(PEX_FAST_REF FastRef)
{
    /* acquire: the object as the one who put it there left it */
    EX_FAST_REF Now = {.Value = __atomic_load_n(&FastRef->Value, __ATOMIC_ACQUIRE)};
    PVOID Object = ExGetObjectFastReference(Now);
    if (Object != NULL) {
        ObpReferenceObjectEx(Object, 1);
        ObpRefillFastReference(FastRef, Object, MAX_FAST_REFS);
    }
    return Object;
}

VOID ObFastDereferenceObject(PEX_FAST_REF FastRef, PVOID Object)
{
    if (!ExReleaseFastReference(FastRef, Object)) {
        ObpDereferenceObjectEx(Object, 1);
    }
}

PVOID ObFastReplaceObject(PEX_FAST_REF FastRef, PVOID Object)
{
    EX_FAST_REF Old;
    if (Object != NULL) {
        ObpReferenceObjectEx(Object, MAX_FAST_REFS);
    }
    Old = ExSwapFastReference(FastRef, Object);
    if (ExGetCountFastReference(Old) != 0) {
        ObpDereferenceObjectEx(ExGetObjectFastReference(Old), ExGetCountFastReference(Old));
    }
    return ExGetObjectFastReference(Old);
}
