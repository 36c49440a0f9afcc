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
