/*
 * processor.c: the processors of the simulated machine. A spin before a block is an optimisation that no schedule
 * depends on: the machine says that nobody else runs meanwhile, and the code goes the other way.
 */
#include "labhal.h"

#define LABHAL_PROCESSORS 2
#define MOST_DOUBLINGS    6

ULONG HalProcessorCount(VOID)
{
    return LABHAL_PROCESSORS;
}

BOOLEAN HalOtherProcessorAvailable(VOID)
{
    return FALSE;
}

ULONG HalSpinsForCycles(ULONG NtCycles)
{
    UNREFERENCED_PARAMETER(NtCycles);
    return 1;
}

BOOLEAN HalYieldToOther(VOID)
{
    HalDispatch.Yield();
    return TRUE;
}

VOID HalLongSpin(ULONG Round)
{
    if (lab_sched_active()) {
        lab_spin_yield_hint(lab->current, LABHAL_YIELD_STEPS << (Round < MOST_DOUBLINGS ? Round : MOST_DOUBLINGS));
    }
}
