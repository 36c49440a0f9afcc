/*
 * turn.c: turns of threads that share the host's processors while they compete for locks.
 *
 * Who runs is the host's choice, and so is what each thread gets. As long as all of them run or look on and nobody
 * sleeps, two things that hosts do make that unfair:
 * 1. A thread that gives its processor away is charged for it as if it had used its slice up: it goes on when the
 *    others have had one each. So threads get time in proportion to how long they keep a processor before they give it
 *    away, and those turns have to be of one length: they end by the clock, not after a number of waits. TURN is
 *    dozens of times what a switch takes, and so short that dozens of threads have one each within a few slices of the
 *    host. The clock is looked at after every WAITS_BEFORE_CLOCK waits; if the turn began OLD_TURN ago the thread has
 *    not competed much, or was without a processor: then a turn begins, because on a busy machine to give a processor
 *    away may mean to wait for all other programs.
 * 2. A thread that has run within the last half millisecond or so is left where it is, however crowded it is there. Of
 *    four threads on two processors three may share one for tenths of a second while the fourth has the other one to
 *    itself, and three times as much. But the host chooses anew for a thread that is woken, and prefers the processor
 *    of who wakes it if that has less to do. So now and then a thread looks how often it was switched away from, and
 *    those that have a processor to themselves wake others that do not:
 *
 *        Seat    0                   nobody wants anything
 *                SEAT_OFFERED | n    a thread has processor n to itself
 *                SEAT_WANTED         a thread that shares another one than n has seen that, and rests
 *
 *    Who rests is woken at the end of a turn, so it has time to fall asleep. If the host leaves it where it was, offers
 *    become rarer but do not end: what the host goes by are averages of some tens of milliseconds. (To bind a thread
 *    elsewhere for a moment was rejected: its affinity is the program's. To end turns by short sleeps, which are not
 *    charged, was rejected, too: two threads in step then lose each other again and again.)
 *
 * Seat is a hint. Whoever acts on an old one rests for LONGEST_REST in vain or wakes nobody: so it does not matter that
 * threads end while they rest, or stay behind when a process forks.
 */
#include "halp.h"

#define MICROSECOND (HALP_UNITS_PER_SECOND / 1000000)
#define TURN (50 * MICROSECOND)
#define OLD_TURN (20 * TURN)
#define WAITS_BEFORE_CLOCK 8
#define LONGEST_REST (20 * TURN)
#define TURNS_BETWEEN_LOOKS 4
#define MOST_LOOKS_BETWEEN_OFFERS 16

#define SEAT_OFFERED 0x80000000u
#define SEAT_WANTED 1u

static volatile ULONG HalpSeat __attribute__((aligned(SYSTEM_CACHE_ALIGNMENT_SIZE)));

/* relaxed, here and below: a hint that nothing is read on account of */
static ULONG HalpReadSeat(VOID)
{
    return __atomic_load_n(&HalpSeat, __ATOMIC_RELAXED);
}

static BOOLEAN HalpChangeSeat(ULONG Old, ULONG New)
{
    return __atomic_compare_exchange_n(&HalpSeat, &Old, New, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static ULONG HalpOwnSeat(VOID)
{
    return SEAT_OFFERED | HalDispatch.CurrentProcessor();
}

/* At the first looks, then every second one, every fourth, and so on. */
static BOOLEAN HalpOffersSeat(ULONG LooksAlone)
{
    return (LooksAlone & (LooksAlone - 1)) == 0 || LooksAlone % MOST_LOOKS_BETWEEN_OFFERS == 0;
}

static VOID HalpRest(VOID)
{
    HAL_DEADLINE Deadline = {.Clock = HalInterruptTime, .Time = HalDispatch.QueryInterruptTime() + LONGEST_REST};
    HalDispatch.Wait(&HalpSeat, SEAT_WANTED, &Deadline);
    HalpChangeSeat(SEAT_WANTED, 0);
}

static VOID HalpLookAround(PHAL_TURN Turn)
{
    ULONG Seat = HalpReadSeat();
    ULONG Switches = HalDispatch.CountSwitches();
    BOOLEAN Alone = Switches - Turn->Switches < TURNS_BETWEEN_LOOKS / 2;
    Turn->Switches = Switches;
    Turn->LooksAlone = Alone ? Turn->LooksAlone + 1 : 0;
    if (Alone && Seat == 0 && HalpOffersSeat(Turn->LooksAlone)) {
        HalpChangeSeat(0, HalpOwnSeat());
    } else if (!Alone && (Seat & SEAT_OFFERED) && Seat != HalpOwnSeat() && HalpChangeSeat(Seat, SEAT_WANTED)) {
        HalpRest();
    }
}

static VOID HalpEndTurn(PHAL_TURN Turn)
{
    HalDispatch.Yield();
    if (Turn->LooksAlone != 0 && HalpReadSeat() == SEAT_WANTED && HalpChangeSeat(SEAT_WANTED, 0)) {
        HalDispatch.Wake(&HalpSeat, 1);
    }
    Turn->Turns += 1;
    if (Turn->Turns % TURNS_BETWEEN_LOOKS == 0) {
        HalpLookAround(Turn);
    }
}

VOID HalCountWait(PHAL_TURN Turn)
{
    ULONGLONG Now, Lasted;
    Turn->Waits += 1;
    if (Turn->Waits % WAITS_BEFORE_CLOCK != 0) {
        return;
    }
    Now = HalDispatch.QueryInterruptTime();
    Lasted = Now - Turn->Began;
    if (Lasted < TURN) {
        return;
    }
    if (Lasted < OLD_TURN) {
        HalpEndTurn(Turn);
        Now = HalDispatch.QueryInterruptTime();
    }
    Turn->Began = Now;
}
