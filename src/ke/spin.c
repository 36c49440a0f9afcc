/* spin.c: the spins of the wait engine before it sleeps. Theory in park.h. */
#include "park.h"
#include "wait.h"

BOOLEAN KiMaySpin(PKTHREAD Thread)
{
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, Thread, KiParkForAddress);
    return Patience.Spins != 0;
}

typedef struct _KI_OBJECT_SPIN {
    PDISPATCHER_HEADER Header;
    PKTHREAD Thread;
    NTSTATUS *Status;
} KI_OBJECT_SPIN;

static inline BOOLEAN KiObjectSatisfies(PVOID Context)
{
    KI_OBJECT_SPIN *Spin = Context;
    ULONG64 Word = KiReadHeader(Spin->Header);
    return !(Word & KI_LOCKED) && KI_STATE(Word) > 0 && KiTryConsume(Spin->Header, Spin->Thread, Spin->Status);
}

BOOLEAN KiSpinForObject(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    KI_OBJECT_SPIN Spin = {Header, Thread, Status};
    return KiParkUntil(Thread, KiParkForObject, KiObjectSatisfies, &Spin);
}

/* A few objects per look, so that the spin is no longer for many; a signaled one is consumed in the caller's order. */
typedef struct _KI_ANY_SPIN {
    PVOID *Objects;
    ULONG Count;
    ULONG Next;
    PKTHREAD Thread;
    NTSTATUS *Status;
} KI_ANY_SPIN;

#define KI_OBJECTS_AT_A_TIME 8

static inline BOOLEAN KiAnySatisfies(PVOID Context)
{
    KI_ANY_SPIN *Spin = Context;
    ULONG Looks = Spin->Count < KI_OBJECTS_AT_A_TIME ? Spin->Count : KI_OBJECTS_AT_A_TIME;
    for (; Looks != 0; Looks -= 1) {
        PDISPATCHER_HEADER Header = Spin->Objects[Spin->Next];
        Spin->Next = Spin->Next + 1 < Spin->Count ? Spin->Next + 1 : 0;
        if (KI_STATE(KiReadHeader(Header)) > 0) {
            return KiTryConsumeAny(Spin->Objects, Spin->Count, Spin->Thread, Spin->Status);
        }
    }
    return FALSE;
}

BOOLEAN KiSpinForAny(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    KI_ANY_SPIN Spin = {Object, Count, 0, Thread, Status};
    return KiParkUntil(Thread, KiParkForObject, KiAnySatisfies, &Spin);
}

/*
 * A producer writes the queue's header for every entry, so each look takes the line away from it. The gaps grow while
 * the queue is empty, and a thread that finds several entries at once begins with a longer gap the next time: they come
 * faster than it can take them one by one. A single entry halves that gap.
 */
#define KI_LONGEST_FIRST_GAP 64

BOOLEAN KiSpinForQueue(PKQUEUE Queue, PKTHREAD Thread)
{
    KI_PATIENCE Patience;
    LONG Entries = 0;
    KiBeginPatience(&Patience, Thread, KiParkForQueueEntry);
    Patience.Gap = Thread->QueueGap > Patience.Gap ? Thread->QueueGap : Patience.Gap;
    while (Entries <= 0 && KiStayAwake(&Patience, Thread, KiParkForQueueEntry)) {
        Entries = KI_STATE(KiReadHeader(&Queue->Header));
    }
    KiEndPatience(&Patience, Thread, Entries > 0);
    ULONG Longer = 2 * Thread->QueueGap + 4;
    Longer = Longer < KI_LONGEST_FIRST_GAP ? Longer : KI_LONGEST_FIRST_GAP;
    Thread->QueueGap = (UCHAR)(Entries > 1 ? Longer : Thread->QueueGap / 2u);
    return Entries > 0;
}

static inline BOOLEAN KiAlertByIdSatisfies(PVOID Context)
{
    return KiTakeAlertById(Context);
}

BOOLEAN KiSpinForAlertById(PKTHREAD Thread)
{
    return KiParkUntil(Thread, KiParkForObject, KiAlertByIdSatisfies, Thread);
}

static inline BOOLEAN KiWasWoken(PVOID Context)
{
    /* relaxed: KiPark looks again, with acquire */
    return __atomic_load_n(&((PKTHREAD)Context)->WakeWord, __ATOMIC_RELAXED) == KI_WOKEN;
}

VOID KiSpinForWake(PKTHREAD Thread)
{
    KiParkUntil(Thread, KiParkForObject, KiWasWoken, Thread);
}
