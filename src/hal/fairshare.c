/*
 * fairshare.c: equal shares of the host's processors for threads that contend for locks.
 *
 * The host schedules threads. While all contenders run or spin and none sleeps, two of its rules make that unfair:
 * 1. A thread that yields is charged as if it had used up its slice: it runs again when the others have had one each. So
 *    threads get time in proportion to how long they keep a processor before they yield, and those turns must be of one
 *    length: they end by the clock, not after a number of contended acquires. TURN is dozens of times what a switch takes,
 *    and short enough for dozens of threads to have a turn within a few slices of the host. The clock is read at every
 *    ACQUIRES_PER_LOOK-th contended acquire. If the turn began OLD_TURN ago, the thread has not contended much or was
 *    preempted: a new turn begins without a yield, which on a busy machine may mean a wait for all other programs.
 * 2. A thread that has run within the last half millisecond or so is not migrated, however crowded its processor is. With four
 *    threads on two processors, three may share one for tenths of a second while the fourth has the other to itself, and three
 *    times as much. But the host chooses a new processor for a woken thread, and prefers that of the waker if it is less busy.
 *    So now and then a thread counts its switches, and those that have a processor to themselves wake others that do not:
 *
 *        Seat    0                   no processor is offered or wanted
 *                SEAT_OFFERED | n    a thread has processor n to itself
 *                SEAT_WANTED         a thread that shares another processor has taken the offer, and rests
 *
 *    The resting thread is woken at the end of a turn, so it has time to fall asleep. If the host leaves it where it was,
 *    offers become rarer but do not end: the host uses averages over tens of milliseconds. Rejected: binding a thread
 *    to another processor for a moment, because its affinity is the program's; ending turns by short sleeps, which are
 *    not charged, because two threads in lockstep then keep losing each other.
 *
 * Measured with 4 threads on 2 processors: fairness 0.95 instead of 0.39, at the same throughput.
 *
 * Crowds. With dozens of threads to a processor these turns reach too few of them. Two threads in lockstep, one inside the
 * lock while the other is busy elsewhere, never find it held and run until the host's tick. So in a crowd a thread checks rarely,
 * and queues for a held critical section or fast mutex instead of yielding, which threads in lockstep notice (ke/fairness.h). All
 * threads must do so at the same time, or those that queue lose to those that yield. A crowd is therefore a state of the process:
 * more than CROWD_PER_PROCESSOR threads to a processor have contended in the last whole PERIOD, in which each has had a few turns.
 * Threads that share locks are never a crowd: sharers wait behind every queued waiter, so 64 threads of which half share
 * fell from 23 to 7 million acquisitions a second when all of them queued at once.
 * Rejected: each thread decides by how long it waits for its next turn, which depends on the distance of the cache lines as
 * much as on the number of threads.
 *
 * Seat and the crowd are hints. A thread that acts on a stale seat rests for LONGEST_REST for nothing, or wakes no thread; on a
 * stale crowd, it sleeps or yields once too often. So threads may end while they rest, and a fork needs no care.
 */
#include "halp.h"

#define MICROSECOND (HALP_UNITS_PER_SECOND / 1000000)
#define TURN (50 * MICROSECOND)
#define OLD_TURN (20 * TURN)
#define ACQUIRES_PER_LOOK 8
#define LONGEST_REST (20 * TURN)
#define TURNS_PER_COUNT 4
#define MOST_COUNTS_PER_OFFER 16
#define PERIOD (1280 * TURN)
#define CROWD_PER_PROCESSOR 16

#define SEAT_OFFERED 0x80000000u
#define SEAT_WANTED 1u

static volatile ULONG HalpSeat __attribute__((aligned(SYSTEM_CACHE_ALIGNMENT_SIZE)));

/* relaxed, here and below: advisory only, publishes nothing */
static BOOLEAN HalpChangeSeat(ULONG Old, ULONG New)
{
    return __atomic_compare_exchange_n(&HalpSeat, &Old, New, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The threads that have contended in the current period so far, and in the one before it. */
static struct {
    volatile ULONG Period;
    volatile ULONG Threads;
    volatile ULONG ThreadsBefore __attribute__((aligned(SYSTEM_CACHE_ALIGNMENT_SIZE))); /* read by all, seldom written */
} HalpContending __attribute__((aligned(SYSTEM_CACHE_ALIGNMENT_SIZE)));

/* Counts a thread for the first time in the period. A thread that is counted in the wrong one of two periods does no harm. */
static VOID HalpCountContender(ULONG Period)
{
    ULONG Last = __atomic_load_n(&HalpContending.Period, __ATOMIC_RELAXED);

    if (Last != Period &&
        __atomic_compare_exchange_n(&HalpContending.Period, &Last, Period, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        ULONG Threads = __atomic_exchange_n(&HalpContending.Threads, 0, __ATOMIC_RELAXED);

        __atomic_store_n(&HalpContending.ThreadsBefore, Period == Last + 1 ? Threads : 0, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&HalpContending.Threads, 1, __ATOMIC_RELAXED);
}

VOID HalDisperseCrowd(VOID)
{
    /* compared first: the lines stay shared while there is no crowd */
    if (__atomic_load_n(&HalpContending.ThreadsBefore, __ATOMIC_RELAXED) != 0) {
        __atomic_store_n(&HalpContending.ThreadsBefore, 0, __ATOMIC_RELAXED);
    }
    if (__atomic_load_n(&HalpContending.Threads, __ATOMIC_RELAXED) != 0) {
        __atomic_store_n(&HalpContending.Threads, 0, __ATOMIC_RELAXED);
    }
}

BOOLEAN HalIsCrowded(VOID)
{
    ULONG Threads = __atomic_load_n(&HalpContending.ThreadsBefore, __ATOMIC_RELAXED);

    return !HalProcessorsAvailable((Threads + CROWD_PER_PROCESSOR - 1) / CROWD_PER_PROCESSOR);
}

/* Offers come at counts 1, 2, 4, 8, 16, and then at every 16th. */
static VOID HalpOfferOrTakeSeat(PHAL_TURN Turn)
{
    ULONG Seat = __atomic_load_n(&HalpSeat, __ATOMIC_RELAXED);
    ULONG Own = SEAT_OFFERED | HalDispatch.CurrentProcessor();
    ULONG Switches = HalDispatch.CountSwitches();
    BOOLEAN Alone = Switches - Turn->Switches < TURNS_PER_COUNT / 2;

    Turn->Switches = Switches;
    Turn->CountsAlone = Alone ? Turn->CountsAlone + 1 : 0;
    if (Alone) {
        BOOLEAN Offers = (Turn->CountsAlone & (Turn->CountsAlone - 1)) == 0 ||
                         Turn->CountsAlone % MOST_COUNTS_PER_OFFER == 0;

        if (Offers && Seat == 0) {
            HalpChangeSeat(0, Own);
        }
    } else if ((Seat & SEAT_OFFERED) && Seat != Own && HalpChangeSeat(Seat, SEAT_WANTED)) {
        HAL_DEADLINE Deadline = {HalInterruptTime, HalDispatch.QueryInterruptTime() + LONGEST_REST};

        HalDispatch.Wait(&HalpSeat, SEAT_WANTED, &Deadline);
        HalpChangeSeat(SEAT_WANTED, 0);
    }
}

VOID HalCountContention(PHAL_TURN Turn)
{
    ULONGLONG Now, Lasted;

    Turn->Acquires += 1;
    if (Turn->Acquires % ACQUIRES_PER_LOOK != 0) {
        return;
    }
    Now = HalDispatch.QueryInterruptTime();
    if (Turn->Period != (ULONG)(Now / PERIOD)) {
        Turn->Period = (ULONG)(Now / PERIOD);
        HalpCountContender(Turn->Period);
    }
    Lasted = Now - Turn->Began;
    if (Lasted < TURN) {
        return;
    }
    if (Lasted < OLD_TURN) {
        HalDispatch.Yield();
        if (Turn->CountsAlone != 0 && __atomic_load_n(&HalpSeat, __ATOMIC_RELAXED) == SEAT_WANTED &&
            HalpChangeSeat(SEAT_WANTED, 0)) {
            HalDispatch.Wake(&HalpSeat, 1);
        }
        Turn->Turns += 1;
        if (Turn->Turns % TURNS_PER_COUNT == 0) {
            HalpOfferOrTakeSeat(Turn);
        }
        Now = HalDispatch.QueryInterruptTime();
    }
    Turn->Began = Now;
}
