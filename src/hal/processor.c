/* processor.c: how many processors there are, and spinning on them. */
#include "halp.h"

#include <stdint.h>

#define MAXIMUM_PROCESSORS 2560
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

typedef struct _HALP_AFFINITY {
    unsigned long Mask[MASK_WORDS];
} HALP_AFFINITY;

/* Of the process, when the library was loaded. What single threads are bound to changes too often to ask. */
static ULONG HalpProcessors;

static volatile ULONG HalpSampleNanoseconds;

static VOID HalpAddAffinity(HALP_AFFINITY *Affinity, pid_t Thread)
{
    HALP_AFFINITY One = {{0}};
    ULONG Word;

    if (HalpCall(SYS_sched_getaffinity, Thread, sizeof(One.Mask), One.Mask) < 0) {
        return;
    }
    for (Word = 0; Word < MASK_WORDS; Word++) {
        Affinity->Mask[Word] |= One.Mask[Word];
    }
}

static ULONG HalpCountAffinity(const HALP_AFFINITY *Affinity)
{
    ULONG Count = 0;
    ULONG Word;

    for (Word = 0; Word < MASK_WORDS; Word++) {
        Count += (ULONG)__builtin_popcountl(Affinity->Mask[Word]);
    }
    return Count;
}

ULONG HalProcessorCount(VOID)
{
    HALP_HOST_CALLS;
    HALP_AFFINITY Affinity = {{0}};
    ULONG Count;

    HalpAddAffinity(&Affinity, 0);
    Count = HalpCountAffinity(&Affinity);
    if (Count == 0) {
        long Online = sysconf(_SC_NPROCESSORS_ONLN);

        Count = Online > 0 ? (ULONG)Online : 1;
    }
    return Count < MAXIMUM_PROCESSORS ? Count : MAXIMUM_PROCESSORS;
}

static ULONGLONG HalpNanoseconds(clockid_t Clock)
{
    struct timespec Now;

    clock_gettime(Clock, &Now);
    return (ULONGLONG)Now.tv_sec * 1000000000ULL + (ULONGLONG)Now.tv_nsec;
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

static ULONG HalpTimeSample(VOID)
{
    ULONGLONG Start = HalpNanoseconds(CLOCK_MONOTONIC);
    ULONG Pause;

    for (Pause = 0; Pause < PAUSES_PER_SAMPLE; Pause++) {
        HalPause();
    }
    return (ULONG)(HalpNanoseconds(CLOCK_MONOTONIC) - Start);
}

/* The shortest of a few samples: the others were disturbed. */
static ULONG HalpMeasurePause(VOID)
{
    ULONG Shortest = UINT32_MAX;
    ULONG Sample;

    for (Sample = 0; Sample < SAMPLES; Sample++) {
        ULONG Time = HalpTimeSample();

        Shortest = Time < Shortest ? Time : Shortest;
    }
    return Shortest == 0 ? 1 : Shortest;
}

ULONG HalSpinsForCycles(ULONG NtCycles)
{
    /* relaxed: threads that meet here measure the same thing */
    ULONG Sample = __atomic_load_n(&HalpSampleNanoseconds, __ATOMIC_RELAXED);
    ULONGLONG Spins;

    if (Sample == 0) {
        Sample = HalpMeasurePause();
        __atomic_store_n(&HalpSampleNanoseconds, Sample, __ATOMIC_RELAXED);
    }
    Spins = (ULONGLONG)NtCycles * PAUSES_PER_SAMPLE / ((ULONGLONG)CYCLES_PER_NANOSECOND * Sample);
    return Spins == 0 ? 1 : Spins > UINT32_MAX ? UINT32_MAX : (ULONG)Spins;
}

static ULONGLONG HalpCycles(VOID)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence(); /* keeps the timed read between its two time stamps */
    return __builtin_ia32_rdtsc();
#else
    return HalpNanoseconds(CLOCK_MONOTONIC) * CYCLES_PER_NANOSECOND;
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
