/* processor.c: what the library is told of the processors: they are all there, and its threads have them to themselves.
 */
#include "../hal/labhal.h"

#include "machine.h"

/* As src/hal/processor.c has it. */
#define SPINNING_ROUNDS         64
#define YIELDING_ROUNDS         64
#define CYCLES_PER_ROUND        2000
#define SHORTEST_SLEEP          3000
#define LONGEST_SLEEP_DOUBLINGS 10

ULONG HalProcessorCount(VOID)
{
    return 1;
}

BOOLEAN HalOtherProcessorAvailable(VOID)
{
    return machine_processors() > 1;
}

ULONG HalSpinsForCycles(ULONG NtCycles)
{
    return NtCycles > PAUSE_CYCLES ? NtCycles / PAUSE_CYCLES : 1;
}

/* Nobody wants the processor, so the call returns at once. */
BOOLEAN HalYieldToOther(VOID)
{
    HalDispatch.Yield();
    return FALSE;
}

VOID HalLongSpin(ULONG Round)
{
    if (!lab_sched_active()) {
        return;
    }
    if (Round < SPINNING_ROUNDS && HalOtherProcessorAvailable()) {
        machine_pass(CYCLES_PER_ROUND);
    } else if (Round < SPINNING_ROUNDS + YIELDING_ROUNDS) {
        machine_pass(CALL_CYCLES);
    } else {
        ULONG Doublings = Round - SPINNING_ROUNDS - YIELDING_ROUNDS;

        Doublings = Doublings < LONGEST_SLEEP_DOUBLINGS ? Doublings : LONGEST_SLEEP_DOUBLINGS;
        machine_pass(CALL_CYCLES + ((uint64_t)SHORTEST_SLEEP << Doublings));
    }
}
