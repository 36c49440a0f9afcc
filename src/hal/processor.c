/* processor.c: how many processors there are, pausing and yielding on them. */
#include "halp.h"

#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>

#define HALP_MOST_PROCESSORS 2560
#define HOST_MASK_BITS 16384
#define BITS_PER_WORD (8 * (ULONG)sizeof(unsigned long))
#define MASK_WORDS (HOST_MASK_BITS / BITS_PER_WORD)

/* NT's spin counts are cycles of a processor of about 3 GHz. */
#define CYCLES_PER_NANOSECOND 3
#define PAUSES_PER_SAMPLE 64
#define SAMPLES 8

#define YIELDS_BEFORE_SLEEP 4
#define YIELDING_ROUNDS 64
#define SHORTEST_NAP_NS 1000
#define LONGEST_NAP_DOUBLINGS 10

/* Of the process when the library was loaded. Affinities of single threads change too often to ask. */
static ULONG HalpProcessors;

/* Pauses in one of NT's cycles, times 2^20; 0: not measured yet. A factor, because a division takes as long as a short spin. */
static volatile ULONG HalpPausesPerCycle;

ULONG HalProcessorCount(VOID)
{
    HALP_HOST_CALLS;
    unsigned long Mask[MASK_WORDS] = {0};
    ULONG Count = 0;

    if (HalpCall(SYS_sched_getaffinity, 0, sizeof(Mask), Mask) >= 0) {
        for (ULONG Word = 0; Word < MASK_WORDS; Word++) {
            Count += (ULONG)__builtin_popcountl(Mask[Word]);
        }
    }
    if (Count == 0) {
        long Online = sysconf(_SC_NPROCESSORS_ONLN);

        Count = Online > 0 ? (ULONG)Online : 1;
    }
    return Count < HALP_MOST_PROCESSORS ? Count : HALP_MOST_PROCESSORS;
}

VOID HalpInitializeProcessors(VOID)
{
    HalpProcessors = HalProcessorCount();
}

BOOLEAN HalProcessorsAvailable(ULONG Count)
{
    return Count <= HalpProcessors;
}

BOOLEAN HalOtherProcessorAvailable(VOID)
{
    return HalProcessorsAvailable(2);
}

VOID HalPauseFor(ULONG Pauses)
{
    for (; Pauses != 0; Pauses -= 1) {
        HalPause();
    }
}

static ULONGLONG HalpNanoseconds(VOID)
{
    struct timespec Now;

    clock_gettime(CLOCK_MONOTONIC, &Now);
    return (ULONGLONG)Now.tv_sec * 1000000000ULL + (ULONGLONG)Now.tv_nsec;
}

/* Nanoseconds of PAUSES_PER_SAMPLE pauses: the shortest of a few samples, the others were disturbed. */
static ULONG HalpMeasurePause(VOID)
{
    ULONGLONG Shortest = UINT32_MAX;

    for (ULONG Sample = 0; Sample < SAMPLES; Sample++) {
        ULONGLONG Start = HalpNanoseconds();
        ULONGLONG Time;

        HalPauseFor(PAUSES_PER_SAMPLE);
        Time = HalpNanoseconds() - Start;
        Shortest = Time < Shortest ? Time : Shortest;
    }
    return Shortest == 0 ? 1 : (ULONG)Shortest;
}

ULONG HalSpinsForCycles(ULONG NtCycles)
{
    /* relaxed: concurrent threads measure the same thing */
    ULONG PausesPerCycle = __atomic_load_n(&HalpPausesPerCycle, __ATOMIC_RELAXED);
    ULONGLONG Spins;

    if (PausesPerCycle == 0) {
        PausesPerCycle = (ULONG)(((ULONGLONG)PAUSES_PER_SAMPLE << 20) / ((ULONGLONG)CYCLES_PER_NANOSECOND * HalpMeasurePause()));
        PausesPerCycle = PausesPerCycle == 0 ? 1 : PausesPerCycle;
        __atomic_store_n(&HalpPausesPerCycle, PausesPerCycle, __ATOMIC_RELAXED);
    }
    Spins = (ULONGLONG)NtCycles * PausesPerCycle >> 20;
    return Spins == 0 ? 1 : Spins > UINT32_MAX ? UINT32_MAX : (ULONG)Spins;
}

static ULONGLONG HalpCycles(VOID)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence(); /* keeps the timed read between its two time stamps */
    return __builtin_ia32_rdtsc();
#else
    return HalpNanoseconds() * CYCLES_PER_NANOSECOND;
#endif
}

ULONG_PTR HalTimedRead(const volatile ULONG_PTR *Word, PULONG Cycles)
{
    ULONGLONG Before = HalpCycles();
    /* relaxed: only the time counts; the caller reads the word again */
    ULONG_PTR Value = __atomic_load_n(Word, __ATOMIC_RELAXED);
    ULONGLONG After = HalpCycles();
    ULONGLONG Clock = HalpCycles() - After; /* the cost of reading the clock */
    ULONGLONG Took = After - Before > Clock ? After - Before - Clock : 0;

    *Cycles = Took < UINT32_MAX ? (ULONG)Took : UINT32_MAX;
    return Value;
}

/* The C library reads the number from its restartable sequence area where the host offers one. */
ULONG HalpCurrentProcessor(VOID)
{
    int Number = sched_getcpu();

    return Number < 0 ? 0 : (ULONG)Number;
}

VOID HalpYield(VOID)
{
    HalpCall(SYS_sched_yield);
}

/* The host counts the switches away from a thread, and counts a yield only if another thread ran. */
ULONG HalpCountSwitches(VOID)
{
    struct rusage Usage;

    return HalpCall(SYS_getrusage, RUSAGE_THREAD, &Usage) == 0 ? (ULONG)(Usage.ru_nvcsw + Usage.ru_nivcsw) : 0;
}

BOOLEAN HalYieldToOther(VOID)
{
    ULONG Before = HalDispatch.CountSwitches();

    HalDispatch.Yield();
    return HalDispatch.CountSwitches() != Before;
}

ULONG HalYieldsBeforeSleep(VOID)
{
    return YIELDS_BEFORE_SLEEP;
}

VOID HalGiveWay(ULONG Round)
{
    if (Round < YIELDING_ROUNDS) {
        HalDispatch.Yield();
    } else {
        ULONG Doublings = Round - YIELDING_ROUNDS;

        Doublings = Doublings < LONGEST_NAP_DOUBLINGS ? Doublings : LONGEST_NAP_DOUBLINGS;
        HalpSleep(((ULONGLONG)SHORTEST_NAP_NS << Doublings) / HALP_NANOSECONDS_PER_UNIT);
    }
}
