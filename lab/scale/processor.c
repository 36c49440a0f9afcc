/* processor.c: the processors as the library sees them: all available, and used only by its threads.
 */
#include "../hal/labhal.h"

#include "hal/section.h"

#include "machine.h"

/* As in src/hal/processor.c. */
#define YIELDS_BEFORE_SLEEP   4
#define YIELDING_ROUNDS       64
#define SHORTEST_NAP          3000
#define LONGEST_NAP_DOUBLINGS 10

ULONG HalProcessorCount(VOID)
{
    return 1;
}

BOOLEAN HalProcessorsAvailable(ULONG Count)
{
    return Count <= machine_processors();
}

BOOLEAN HalOtherProcessorAvailable(VOID)
{
    return HalProcessorsAvailable(2);
}

/* Counted as on a host without them. */
BOOLEAN HalSectionsOffered(VOID)
{
    return FALSE;
}

ULONG HalSpinsForCycles(ULONG NtCycles)
{
    return NtCycles > PAUSE_CYCLES ? NtCycles / PAUSE_CYCLES : 1;
}

/* The read that follows pays for one of them: see access.c. */
VOID HalPauseFor(ULONG Pauses)
{
    if (lab_sched_active() && Pauses > 1) {
        machine_pass((Pauses - 1) * PAUSE_CYCLES);
    }
}

BOOLEAN HalTimeLine(const volatile ULONG *Word, ULONG Pauses, PULONG Cycles)
{
    ULONG value = __atomic_load_n(Word, __ATOMIC_RELAXED);
    HalPauseFor(Pauses);
    uint64_t before = lab_sched_active() ? machine_current()->clock : 0;
    BOOLEAN written = __atomic_load_n(Word, __ATOMIC_RELAXED) != value;

    *Cycles = lab_sched_active() ? (ULONG)(machine_current()->clock - before) : 0;
    return written;
}

/* The machine's distances are known. */
VOID HalNoteFarLine(ULONG Cycles)
{
    UNREFERENCED_PARAMETER(Cycles);
}

ULONG HalFarLineCycles(VOID)
{
    return LINE_CYCLES;
}

ULONG HalYieldsBeforeSleep(VOID)
{
    return YIELDS_BEFORE_SLEEP;
}

/* No other thread wants the processor, so the call returns at once. */
BOOLEAN HalYieldToOther(VOID)
{
    HalDispatch.Yield();
    return FALSE;
}

/* And no thread has to be made to yield it. */
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
    if (!lab_sched_active()) {
        return;
    }
    if (Round < YIELDING_ROUNDS) {
        machine_pass(CALL_CYCLES);
    } else {
        ULONG Doublings = Round - YIELDING_ROUNDS;

        Doublings = Doublings < LONGEST_NAP_DOUBLINGS ? Doublings : LONGEST_NAP_DOUBLINGS;
        machine_pass(CALL_CYCLES + ((uint64_t)SHORTEST_NAP << Doublings));
    }
}

/* Nothing is abstract on this machine. */

ULONG64 HalSimulateAcquire(volatile VOID *Word, ULONG Size, ULONG64 Bit)
{
    UNREFERENCED_PARAMETER(Word);
    UNREFERENCED_PARAMETER(Size);
    UNREFERENCED_PARAMETER(Bit);
    return 0;
}

BOOLEAN HalSimulateSleep(volatile ULONG *Word, ULONG Value, const HAL_DEADLINE *Deadline, PBOOLEAN Reached)
{
    UNREFERENCED_PARAMETER(Word);
    UNREFERENCED_PARAMETER(Value);
    UNREFERENCED_PARAMETER(Deadline);
    UNREFERENCED_PARAMETER(Reached);
    return FALSE;
}

VOID LabhalCheckSleep(uintptr_t Pc)
{
    UNREFERENCED_PARAMETER(Pc);
}
