/*
 * spin.c: a short look at an object before its wait goes to sleep.
 *
 * Handing over between two running processors takes a fraction of a microsecond, waking a sleeper a hundred times that;
 * but where the signaler needs this very processor, spinning only delays it. So a thread whose last spins did not pay
 * stops trying, but for one wait in 64.
 */
#include "wait.h"

#define KI_SPIN_CYCLES 10240
#define KI_SPIN_PATIENCE 3
#define KI_SPIN_RETRY 64

static BOOLEAN KiMaySpin(PKTHREAD Thread)
{
    if (!HalOtherProcessorAvailable()) {
        return FALSE;
    }
    if (Thread->SpinFailures < KI_SPIN_PATIENCE) {
        return TRUE;
    }
    Thread->SpinSkipped = (UCHAR)((Thread->SpinSkipped + 1) % KI_SPIN_RETRY);
    return Thread->SpinSkipped == 0;
}

BOOLEAN KiSpinForObject(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    if (!KiMaySpin(Thread)) {
        return FALSE;
    }
    for (ULONG Left = HalSpinsForCycles(KI_SPIN_CYCLES); Left != 0; Left -= 1) {
        ULONG64 Word = KiReadHeader(Header);
        if (!(Word & KI_LOCKED) && KI_STATE(Word) > 0 && KiTryConsume(Header, Thread, Status)) {
            Thread->SpinFailures = 0;
            return TRUE;
        }
        HalPause();
    }
    if (Thread->SpinFailures < KI_SPIN_PATIENCE) {
        Thread->SpinFailures += 1;
    }
    return FALSE;
}
