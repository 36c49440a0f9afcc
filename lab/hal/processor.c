/*
 * processor.c: the processors of the simulated machine. Spinning before blocking is an optimisation that no schedule
 * depends on: the machine reports that no other processor is available, and the code does not spin.
 */
#include "labhal.h"

#include "hal/section.h"

#define LABHAL_PROCESSORS 2
#define MOST_DOUBLINGS    6

ULONG HalProcessorCount(VOID)
{
    return LABHAL_PROCESSORS;
}

BOOLEAN HalProcessorsAvailable(ULONG Count)
{
    return Count < 2;
}

BOOLEAN HalOtherProcessorAvailable(VOID)
{
    return FALSE;
}

BOOLEAN HalSectionsOffered(VOID)
{
    return TRUE;
}

ULONG HalSpinsForCycles(ULONG NtCycles)
{
    UNREFERENCED_PARAMETER(NtCycles);
    return 1;
}

VOID HalPauseFor(ULONG Pauses)
{
    UNREFERENCED_PARAMETER(Pauses);
}

BOOLEAN HalTimeLine(const volatile ULONG *Word, ULONG Pauses, PULONG Cycles)
{
    ULONG Value = __atomic_load_n(Word, __ATOMIC_RELAXED);
    UNREFERENCED_PARAMETER(Pauses);
    *Cycles = 0;
    return __atomic_load_n(Word, __ATOMIC_RELAXED) != Value;
}

VOID HalNoteFarLine(ULONG Cycles)
{
    UNREFERENCED_PARAMETER(Cycles);
}

ULONG HalFarLineCycles(VOID)
{
    return 0;
}

/* One yield is enough to explore its effects. */
ULONG HalYieldsBeforeSleep(VOID)
{
    return 1;
}

BOOLEAN HalYieldToOther(VOID)
{
    HalDispatch.Yield();
    return TRUE;
}

/* Every schedule is explored, so no thread needs to yield for another one to run. */
VOID HalCountContention(PHAL_TURN Turn)
{
    UNREFERENCED_PARAMETER(Turn);
}

VOID HalDisperseCrowd(VOID)
{
}

BOOLEAN HalIsCrowded(VOID)
{
    return FALSE;
}

VOID HalGiveWay(ULONG Round)
{
    if (lab_sched_active()) {
        lab_spin_yield_hint(lab->current, LABHAL_YIELD_STEPS << (Round < MOST_DOUBLINGS ? Round : MOST_DOUBLINGS));
    }
}
