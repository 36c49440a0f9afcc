/*
 * fastref.c: fast references.
 *
 *      63                                              4 3       0
 *     +-------------------------------------------------+---------+
 *     |                     Object                      | RefCnt  |
 *     +-------------------------------------------------+---------+
 *
 * With R in RefCnt and N references held elsewhere, the object's own count is R + 1 + N.
 *
 * 1. The word is changed by compare-exchange or exchange only, so a cached reference is taken by one, and the object it
 *    belongs to is the one that the word showed.
 * 2. While the word shows an object, the reference of the pointer itself keeps it: a thread that has one of the cached
 *    references may use the object without a lock. A thread that has none needs the lock that a replacer acquires and
 *    releases before it drops the old object's reference.
 * 3. A reference may be returned to any word that shows the same object, even if the word was replaced in between and
 *    restored: references to one object are interchangeable.
 * 4. RefCnt never exceeds MAX_FAST_REFS and is 0 while there is no object. Zeroed memory is valid.
 * 5. Nothing blocks, nothing allocates.
 */
#include "exp.h"

static EX_FAST_REF ExpFullFastReference(PVOID Object)
{
    if (((ULONG_PTR)Object & MAX_FAST_REFS) != 0) {
        RtlFailFast(FAST_FAIL_INVALID_ARG);
    }
    return (EX_FAST_REF){.Value = Object != NULL ? (ULONG_PTR)Object | MAX_FAST_REFS : 0};
}

static EX_FAST_REF ExpReadFastReference(PEX_FAST_REF FastRef)
{
    return (EX_FAST_REF){.Value = __atomic_load_n(&FastRef->Value, __ATOMIC_RELAXED)};
}

/* acquire: pairs with the thread that stored the object; release: our use of it comes before the thread that removes it.
   On failure *Old is the current value. */
static BOOLEAN ExpChangeFastReference(PEX_FAST_REF FastRef, EX_FAST_REF *Old, ULONG_PTR New)
{
    ULONG_PTR Expected = Old->Value;
    BOOLEAN Changed =
        __atomic_compare_exchange_n(&FastRef->Value, &Expected, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    Old->Value = Expected;
    return Changed;
}

VOID ExInitializeFastReference(PEX_FAST_REF FastRef, PVOID Object)
{
    /* release: pairs with the acquire that takes the first reference */
    __atomic_store_n(&FastRef->Value, ExpFullFastReference(Object).Value, __ATOMIC_RELEASE);
}

EX_FAST_REF ExAcquireFastReference(PEX_FAST_REF FastRef)
{
    EX_FAST_REF Old = ExpReadFastReference(FastRef);
    while (ExGetCountFastReference(Old) != 0 && !ExpChangeFastReference(FastRef, &Old, Old.Value - 1)) {
    }
    return Old;
}

ULONG ExInsertFastReference(PEX_FAST_REF FastRef, PVOID Object, ULONG Count)
{
    EX_FAST_REF Old = ExpReadFastReference(FastRef);
    while (ExGetObjectFastReference(Old) == Object && ExGetCountFastReference(Old) < MAX_FAST_REFS) {
        ULONG Room = MAX_FAST_REFS - ExGetCountFastReference(Old);
        ULONG Fitting = Count < Room ? Count : Room;
        if (ExpChangeFastReference(FastRef, &Old, Old.Value + Fitting)) {
            return Count - Fitting;
        }
    }
    return Count;
}

/* Begins with a guess: no other reference is out. Reading the word would wait for the compare-exchange that took this
   reference, or fetch the line from another processor twice. */
BOOLEAN ExReleaseFastReference(PEX_FAST_REF FastRef, PVOID Object)
{
    EX_FAST_REF Old = {.Value = (ULONG_PTR)Object | (MAX_FAST_REFS - 1)};
    while (ExGetObjectFastReference(Old) == Object && ExGetCountFastReference(Old) < MAX_FAST_REFS) {
        if (ExpChangeFastReference(FastRef, &Old, Old.Value + 1)) {
            return TRUE;
        }
    }
    return FALSE;
}

EX_FAST_REF ExSwapFastReference(PEX_FAST_REF FastRef, PVOID Object)
{
    /* acq_rel: as in ExpChangeFastReference */
    return (EX_FAST_REF){
        .Value = __atomic_exchange_n(&FastRef->Value, ExpFullFastReference(Object).Value, __ATOMIC_ACQ_REL)};
}

EX_FAST_REF ExCompareSwapFastReference(PEX_FAST_REF FastRef, PVOID Object, PVOID OldObject)
{
    EX_FAST_REF New = ExpFullFastReference(Object);
    EX_FAST_REF Old = ExpReadFastReference(FastRef);
    while (ExGetObjectFastReference(Old) == OldObject && !ExpChangeFastReference(FastRef, &Old, New.Value)) {
    }
    return Old;
}
