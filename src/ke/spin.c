/*
 * spin.c: a short look before a wait goes to sleep.
 *
 * Handing over between two running processors takes a fraction of a microsecond, waking a sleeper a hundred times that;
 * but where the signaler needs this very processor, spinning only delays it. So
 * 1. a thread that was last woken by somebody on the processor it runs on itself does not spin;
 * 2. any other spins for a moment: KI_SPIN_CYCLES;
 * 3. a thread that has just woken a sleeper spins for longer than a wake takes, KI_WAKE_CYCLES, to be there for the
 *    answer: otherwise two threads that answer each other, and both sleep, would do so for ever. Each time that this
 *    does not pay it is tried half as often.
 */
#include "wait.h"

#define KI_SPIN_CYCLES 10240
#define KI_WAKE_CYCLES 200000
#define KI_SPIN_LEAST_OFTEN 6 /* once in 64 */

static BOOLEAN KiWasWokenHere(PKTHREAD Thread)
{
    /* relaxed: a hint */
    return __atomic_load_n(&Thread->WakerProcessor, __ATOMIC_RELAXED) == HalDispatch.CurrentProcessor() + 1;
}

BOOLEAN KiMaySpin(PKTHREAD Thread)
{
    return HalOtherProcessorAvailable() && !KiWasWokenHere(Thread);
}

/* Is it worth the while to stay for the answer? */
static BOOLEAN KiMayAwaitAnswer(PKTHREAD Thread)
{
    if (!Thread->WokeSleeper) {
        return FALSE;
    }
    Thread->WokeSleeper = FALSE;
    Thread->SpinSkipped += 1;
    return (Thread->SpinSkipped & ((1u << Thread->SpinFailures) - 1)) == 0;
}

static VOID KiNoteAnswer(PKTHREAD Thread, BOOLEAN Came)
{
    if (Came) {
        Thread->SpinFailures = 0;
    } else if (Thread->SpinFailures < KI_SPIN_LEAST_OFTEN) {
        Thread->SpinFailures += 1;
    }
}

/* Satisfied looks once, and consumes. */
static BOOLEAN KiSpinBeforeSleep(PKTHREAD Thread, BOOLEAN (*Satisfied)(PVOID Context), PVOID Context)
{
    if (!KiMaySpin(Thread)) {
        Thread->WokeSleeper = FALSE;
        return FALSE;
    }
    BOOLEAN Answer = KiMayAwaitAnswer(Thread);
    BOOLEAN Done = FALSE;
    for (ULONG Left = HalSpinsForCycles(Answer ? KI_WAKE_CYCLES : KI_SPIN_CYCLES); Left != 0 && !Done; Left -= 1) {
        Done = Satisfied(Context);
        if (!Done) {
            HalPause();
        }
    }
    if (Answer) {
        KiNoteAnswer(Thread, Done);
    }
    return Done;
}

typedef struct _KI_OBJECT_SPIN {
    PDISPATCHER_HEADER Header;
    PKTHREAD Thread;
    NTSTATUS *Status;
} KI_OBJECT_SPIN;

static BOOLEAN KiObjectSatisfies(PVOID Context)
{
    KI_OBJECT_SPIN *Spin = Context;
    ULONG64 Word = KiReadHeader(Spin->Header);
    return !(Word & KI_LOCKED) && KI_STATE(Word) > 0 && KiTryConsume(Spin->Header, Spin->Thread, Spin->Status);
}

BOOLEAN KiSpinForObject(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    KI_OBJECT_SPIN Spin = {Header, Thread, Status};
    return KiSpinBeforeSleep(Thread, KiObjectSatisfies, &Spin);
}

/* A few objects at a time, so that the spin is no longer for many; what is signaled is taken in their order. */
typedef struct _KI_ANY_SPIN {
    PVOID *Objects;
    ULONG Count;
    ULONG Next;
    PKTHREAD Thread;
    NTSTATUS *Status;
} KI_ANY_SPIN;

#define KI_OBJECTS_AT_A_TIME 8

static BOOLEAN KiAnySatisfies(PVOID Context)
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
    return KiSpinBeforeSleep(Thread, KiAnySatisfies, &Spin);
}

/*
 * Who feeds a queue writes its header for every entry, so each look takes the line away from it, and each entry that is
 * taken at once makes the two meet. The looks become rarer the longer they find nothing: what arrives in between is then
 * taken in one go. And when a thread finds several entries at its first sight of any, it looks later the next time: they
 * come faster than it can take them one by one. A single one makes it look sooner again.
 */
typedef struct _KI_QUEUE_SPIN {
    PKQUEUE Queue;
    ULONG Calls;
    ULONG NextLook;
    LONG Entries; /* at the last look */
} KI_QUEUE_SPIN;

#define KI_LONGEST_QUEUE_GAP 32
#define KI_LONGEST_FIRST_GAP 64

static BOOLEAN KiQueueHasEntry(PVOID Context)
{
    KI_QUEUE_SPIN *Spin = Context;
    Spin->Calls += 1;
    if (Spin->Calls < Spin->NextLook) {
        return FALSE;
    }
    Spin->NextLook = Spin->Calls + (Spin->Calls < KI_LONGEST_QUEUE_GAP ? Spin->Calls : KI_LONGEST_QUEUE_GAP);
    Spin->Entries = KI_STATE(KiReadHeader(&Spin->Queue->Header));
    return Spin->Entries > 0;
}

static UCHAR KiNextQueueGap(ULONG Gap, LONG Entries)
{
    ULONG Longer = 2 * Gap + 4;
    if (Entries <= 1) {
        return (UCHAR)(Gap / 2);
    }
    return (UCHAR)(Longer < KI_LONGEST_FIRST_GAP ? Longer : KI_LONGEST_FIRST_GAP);
}

BOOLEAN KiSpinForQueue(PKQUEUE Queue, PKTHREAD Thread)
{
    KI_QUEUE_SPIN Spin = {Queue, 0, Thread->QueueGap, 0};
    BOOLEAN Found = KiSpinBeforeSleep(Thread, KiQueueHasEntry, &Spin);
    Thread->QueueGap = KiNextQueueGap(Thread->QueueGap, Spin.Entries);
    return Found;
}

static BOOLEAN KiAlertByIdSatisfies(PVOID Context)
{
    return KiTakeAlertById(Context);
}

BOOLEAN KiSpinForAlertById(PKTHREAD Thread)
{
    return KiSpinBeforeSleep(Thread, KiAlertByIdSatisfies, Thread);
}

static BOOLEAN KiWasWoken(PVOID Context)
{
    /* relaxed: KiPark looks again, with acquire */
    return __atomic_load_n(&((PKTHREAD)Context)->WakeWord, __ATOMIC_RELAXED) == KI_WOKEN;
}

VOID KiSpinForWake(PKTHREAD Thread)
{
    KiSpinBeforeSleep(Thread, KiWasWoken, Thread);
}
