/* processor.c: how many processors there are, pausing and yielding on them. */
#include "halp.h"
#include "section.h"

#include <sched.h>
#include <stddef.h>
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

/* The processors of the process when the library was loaded. Affinities of single threads change too often to query. */
static ULONG HalpProcessors;

/* Pauses in one of NT's cycles, times 2^20; 0: not measured yet. A factor, because a division takes as long as a short spin. */
static volatile ULONG HalpPausesPerCycle;

/* NT's cycles in one tick of the processor's time stamp, times 2^20. Measured before the other factor. */
static volatile ULONG HalpCyclesPerStamp = 1 << 20;

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

static ULONGLONG HalpStamp(VOID)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence(); /* keeps the timed read between its two time stamps */
    return __builtin_ia32_rdtsc();
#else
    return HalpNanoseconds() * CYCLES_PER_NANOSECOND;
#endif
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

/* Returns HalpPausesPerCycle. A disturbance adds to both clocks, so the rate of the time stamp needs no second sample. */
static ULONG HalpMeasureProcessor(VOID)
{
    ULONGLONG FirstStamp = HalpStamp();
    ULONGLONG Start = HalpNanoseconds();
    ULONGLONG Pauses = ((ULONGLONG)PAUSES_PER_SAMPLE << 20) / ((ULONGLONG)CYCLES_PER_NANOSECOND * HalpMeasurePause());
    ULONGLONG Stamps = HalpStamp() - FirstStamp;
    ULONGLONG Cycles = (HalpNanoseconds() - Start) * CYCLES_PER_NANOSECOND;

    /* relaxed, both: concurrent threads measure the same thing */
    if (Stamps != 0 && Cycles < UINT32_MAX) {
        __atomic_store_n(&HalpCyclesPerStamp, (ULONG)((Cycles << 20) / Stamps), __ATOMIC_RELAXED);
    }
    __atomic_store_n(&HalpPausesPerCycle, Pauses == 0 ? 1 : (ULONG)Pauses, __ATOMIC_RELAXED);
    return Pauses == 0 ? 1 : (ULONG)Pauses;
}

ULONG HalSpinsForCycles(ULONG NtCycles)
{
    ULONG PausesPerCycle = __atomic_load_n(&HalpPausesPerCycle, __ATOMIC_RELAXED);
    ULONGLONG Spins;

    if (PausesPerCycle == 0) {
        PausesPerCycle = HalpMeasureProcessor();
    }
    Spins = (ULONGLONG)NtCycles * PausesPerCycle >> 20;
    return Spins == 0 ? 1 : Spins > UINT32_MAX ? UINT32_MAX : (ULONG)Spins;
}

/*
 * It pauses, although the caller has just spun, because calls are rare: the processor mispredicts the branch that leads here
 * and speculatively executes the caller's next read of the word. A timed read right away would find the line already
 * there, or on its way: on Intel Xeon a fifth of the lines of another core seemed to take no time. The fence before the first
 * time stamp keeps the timed read itself from starting early.
 */
BOOLEAN HalTimeLine(const volatile ULONG *Word, ULONG Pauses, PULONG Cycles)
{
    /* relaxed, both: only the time counts; the caller reads the word again */
    ULONG Value = __atomic_load_n(Word, __ATOMIC_RELAXED);
    HalPauseFor(Pauses);
    ULONGLONG Before = HalpStamp();
    BOOLEAN Written = __atomic_load_n(Word, __ATOMIC_RELAXED) != Value;
    ULONGLONG After = HalpStamp();
    ULONGLONG Clock = HalpStamp() - After; /* the cost of reading the clock */
    ULONGLONG Took = After - Before > Clock ? After - Before - Clock : 0;

    Took = (Took < UINT32_MAX ? Took : UINT32_MAX) * __atomic_load_n(&HalpCyclesPerStamp, __ATOMIC_RELAXED) >> 20;
    *Cycles = Took < UINT32_MAX ? (ULONG)Took : UINT32_MAX;
    return Written;
}

/* relaxed, in both functions: advisory only. A line that took much longer was an interrupt. The word is written only if it
   would change noticeably, so that its own line stays shared. */
#define MOST_LINE_CYCLES 2000

static volatile ULONG HalpFarLine;

VOID HalNoteFarLine(ULONG Cycles)
{
    ULONG Average = __atomic_load_n(&HalpFarLine, __ATOMIC_RELAXED);

    if (Cycles > MOST_LINE_CYCLES || (Cycles <= Average + Average / 8 && Cycles >= Average - Average / 8)) {
        return;
    }
    __atomic_store_n(&HalpFarLine, Average == 0 ? Cycles : (7 * Average + Cycles) / 8, __ATOMIC_RELAXED);
}

ULONG HalFarLineCycles(VOID)
{
    return __atomic_load_n(&HalpFarLine, __ATOMIC_RELAXED);
}

/* A wait calls this two to four times. */
ULONG HalpCurrentProcessor(VOID)
{
    if (__builtin_expect(HalSectionsOffered(), TRUE)) {
        LONG Number = HalReadSectionProcessor();
        if (__builtin_expect(Number >= 0, TRUE)) { /* otherwise the thread has no area */
            return (ULONG)Number;
        }
    }
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

/* Restartable sections. Theory in section.h. */

/* The kernel's values, which headers of older hosts lack. */
#define MEMBARRIER_RSEQ (1 << 7)
#define MEMBARRIER_REGISTER_RSEQ (1 << 8)

/* Variables of glibc since 2.35; the size is 0 where it could not register the area. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

LONG_PTR HalSectionOffset;
static BOOLEAN HalpSectionsOffered;

static BOOLEAN HalpRestart(VOID)
{
    return HalpCall(SYS_membarrier, MEMBARRIER_RSEQ, 0, 0) == 0;
}

static BOOLEAN HalpRegisterAndRestart(VOID)
{
    HalpCall(SYS_membarrier, MEMBARRIER_REGISTER_RSEQ, 0, 0);
    return HalpRestart();
}

VOID HalpInitializeSections(VOID)
{
    if (HAL_SECTIONS && &__rseq_size != NULL && __rseq_size >= HALP_SECTION_SIZE && HalBarrierAllThreads() &&
        HalpRegisterAndRestart()) {
        HalSectionOffset = __rseq_offset;
        HalpSectionsOffered = TRUE;
    }
}

BOOLEAN HalSectionsOffered(VOID)
{
    return HalpSectionsOffered;
}

/* Refused by a sandbox that the process entered later: a section takes nanoseconds, and the host restarts that of a
   thread which does not run. */
VOID HalRestartSections(VOID)
{
    if (HalpSectionsOffered && !HalpRestart() && !HalpRegisterAndRestart()) {
        HalpOutwaitStores();
    }
    HalBarrierAllThreads();
}

BOOLEAN HalSimulateSection(PVOID First, ULONG Number, const volatile ULONG *Closed, LONG_PTR Addend)
{
    UNREFERENCED_PARAMETER(First);
    UNREFERENCED_PARAMETER(Number);
    UNREFERENCED_PARAMETER(Closed);
    UNREFERENCED_PARAMETER(Addend);
    return FALSE;
}
