/*
 * cid.c: from a thread's id to the thread.
 *
 * A table of buckets, each one cache line of eight words: the id below, the number of its slot plus one above, 0 for an
 * empty word. An id may stand in any word of its bucket and in no other, so a lookup reads one line and takes no lock.
 *
 * 1. A word is written by the thread whose id it holds (0 to its id) and by whoever frees its slot (back to 0).
 * 2. The same id may stand in a bucket twice: the host gives an id again while somebody still refers to the thread that
 *    had it before. A lookup prefers the one that has not ended.
 * 3. A thread that finds its bucket full is counted in KiCidOverflow. Only while that is not 0 a lookup that finds
 *    nothing in the bucket looks at every slot. The host counts ids up, so this takes more threads than the table has
 *    words, or eight that were born exactly so many ids apart.
 */
#include "ki.h"

#define KI_CID_WAYS 8
#define KI_CID_BUCKETS 8192

typedef struct _KI_CID_BUCKET {
    volatile ULONG64 Word[KI_CID_WAYS] DECLSPEC_ALIGN(KI_CACHE_LINE);
} KI_CID_BUCKET;

C_ASSERT(sizeof(KI_CID_BUCKET) == KI_CACHE_LINE);

static KI_CID_BUCKET KiCidTable[KI_CID_BUCKETS];
static volatile ULONG KiCidOverflow;

static KI_CID_BUCKET *KiBucketOfId(ULONG ThreadId)
{
    return &KiCidTable[ThreadId % KI_CID_BUCKETS];
}

static ULONG64 KiCidWord(PKTHREAD Thread, ULONG ThreadId)
{
    return (ULONG64)(KiSlotOfThread(Thread)->Number + 1) << 32 | ThreadId;
}

/* Puts New where Old stands in the bucket of ThreadId. */
static BOOLEAN KiReplaceCidWord(ULONG ThreadId, ULONG64 Old, ULONG64 New)
{
    KI_CID_BUCKET *Bucket = KiBucketOfId(ThreadId);
    for (ULONG Way = 0; Way < KI_CID_WAYS; Way++) {
        ULONG64 Expected = Old;
        /* release: pairs with the acquire load in KiLookupThreadById, which then sees an initialised thread */
        if (__atomic_load_n(&Bucket->Word[Way], __ATOMIC_RELAXED) == Old &&
            __atomic_compare_exchange_n(&Bucket->Word[Way], &Expected, New, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
            return TRUE;
        }
    }
    return FALSE;
}

VOID KiInsertThreadId(PKTHREAD Thread, ULONG ThreadId)
{
    if (!KiReplaceCidWord(ThreadId, 0, KiCidWord(Thread, ThreadId))) {
        /* release: pairs with the acquire load in KiLookupThreadById */
        __atomic_fetch_add(&KiCidOverflow, 1, __ATOMIC_RELEASE);
    }
}

VOID KiRemoveThreadId(PKTHREAD Thread, ULONG ThreadId)
{
    if (!KiReplaceCidWord(ThreadId, KiCidWord(Thread, ThreadId), 0)) {
        __atomic_fetch_sub(&KiCidOverflow, 1, __ATOMIC_RELAXED);
    }
}

/* Or has stopped, so that the host may have given its id away (terminate.c). */
static BOOLEAN KiThreadHasEnded(PKTHREAD Thread)
{
    UCHAR State = __atomic_load_n(&Thread->State, __ATOMIC_RELAXED);
    return State == Terminated || State == Transition;
}

static PKTHREAD KiFindThreadById(ULONG ThreadId)
{
    PKTHREAD Ended = NULL;
    ULONG SlotsUsed = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE);
    for (ULONG Slot = 0; Slot < SlotsUsed; Slot++) {
        PKTHREAD Thread = KiThreadFromNumber(Slot);
        /* acquire: pairs with the release store of the id in KiStartThread */
        if (__atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE) == ThreadId) {
            if (!KiThreadHasEnded(Thread)) {
                return Thread;
            }
            Ended = Thread;
        }
    }
    return Ended;
}

/*
 * The thread may end, its slot even get another thread, before the caller looks: who needs more than a hint takes a
 * reference and then compares the id once more.
 */
PKTHREAD KiLookupThreadById(ULONG ThreadId)
{
    KI_CID_BUCKET *Bucket = KiBucketOfId(ThreadId);
    PKTHREAD Ended = NULL;
    if (ThreadId == 0) {
        return NULL;
    }
    for (ULONG Way = 0; Way < KI_CID_WAYS; Way++) {
        ULONG64 Word = __atomic_load_n(&Bucket->Word[Way], __ATOMIC_ACQUIRE);
        if ((ULONG)Word == ThreadId) {
            PKTHREAD Thread = KiThreadFromNumber((ULONG)(Word >> 32) - 1);
            if (!KiThreadHasEnded(Thread)) {
                return Thread;
            }
            Ended = Thread;
        }
    }
    if (__atomic_load_n(&KiCidOverflow, __ATOMIC_ACQUIRE) != 0) {
        PKTHREAD Thread = KiFindThreadById(ThreadId);
        return Thread != NULL ? Thread : Ended;
    }
    return Ended;
}
