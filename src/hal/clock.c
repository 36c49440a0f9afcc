/*
 * clock.c: the sleep of the clock thread. One thread sleeps here at a time; anybody may wake it.
 *
 * Without a system time the sleep is a wait on the wake word. With one it is a poll of a timer on the system clock,
 * which fires at its time wherever that is moved and when the clock is stepped, and of an event counter for the wake.
 * Where the process has no file descriptors left, the wait on the wake word stands in and looks at the system clock at
 * least once a second.
 *
 * HalpSleeper tells how the sleeper is to be woken.
 * 1. The sleeper announces itself in it and then looks at the wake word; a waker has changed the wake word and then
 *    takes the announcement. Both are exchanges, so one comes second and sees what was written before the first:
 *    either the waker finds the announcement, or the sleeper finds the wake word changed.
 * 2. An announcement is taken once, so a sleep costs its wakers one system call together.
 * 3. A waker that took the announcement of a sleeper that was just leaving makes the next sleep return early. That is
 *    legal: the clock thread looks again.
 */
#include "halp.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NO_DESCRIPTOR (-1)

typedef enum _HALP_SLEEP {
    HalpAwake,
    HalpSleepsOnWord,
    HalpSleepsInPoll
} HALP_SLEEP;

static volatile ULONG HalpSleeper;
static volatile LONG HalpClockEvent = NO_DESCRIPTOR;
static volatile LONG HalpClockTimer = NO_DESCRIPTOR;

/* acq_rel: pairs with the exchange of the other side, see 1 above */
static HALP_SLEEP HalpExchangeSleeper(HALP_SLEEP New)
{
    return (HALP_SLEEP)__atomic_exchange_n(&HalpSleeper, (ULONG)New, __ATOMIC_ACQ_REL);
}

/* relaxed: only the sleeper opens and closes; a waker comes here through the announcement, which is later */
static int HalpDescriptor(volatile LONG *Descriptor)
{
    return __atomic_load_n(Descriptor, __ATOMIC_RELAXED);
}

static VOID HalpCloseDescriptor(volatile LONG *Descriptor)
{
    int Open = __atomic_exchange_n(Descriptor, NO_DESCRIPTOR, __ATOMIC_RELAXED);

    if (Open != NO_DESCRIPTOR) {
        close(Open);
    }
}

static VOID HalpCloseClock(VOID)
{
    HalpCloseDescriptor(&HalpClockEvent);
    HalpCloseDescriptor(&HalpClockTimer);
}

static BOOLEAN HalpOpenClock(VOID)
{
    if (HalpDescriptor(&HalpClockEvent) != NO_DESCRIPTOR) {
        return TRUE;
    }
    __atomic_store_n(&HalpClockEvent, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), __ATOMIC_RELAXED);
    __atomic_store_n(&HalpClockTimer, timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK), __ATOMIC_RELAXED);
    if (HalpDescriptor(&HalpClockEvent) != NO_DESCRIPTOR && HalpDescriptor(&HalpClockTimer) != NO_DESCRIPTOR) {
        return TRUE;
    }
    HalpCloseClock();
    return FALSE;
}

static VOID HalpSleepOnWord(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime)
{
    HAL_DEADLINE Deadline = {InterruptTime != 0 ? HalInterruptTime : HalNoDeadline, InterruptTime};

    HalpExchangeSleeper(HalpSleepsOnWord);
    HalDispatch.Wait(Wake, Expected, &Deadline);
    HalpExchangeSleeper(HalpAwake);
}

/* The interrupt time at which a sleep that cannot follow the system clock looks at it again. */
static ULONGLONG HalpNextLook(ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    ULONGLONG SystemNow = HalDispatch.QuerySystemTime();
    ULONGLONG Remaining = SystemTime > SystemNow ? SystemTime - SystemNow : 0;
    ULONGLONG Look = HalDispatch.QueryInterruptTime();

    Look += Remaining < HALP_UNITS_PER_SECOND ? Remaining : HALP_UNITS_PER_SECOND;
    return InterruptTime != 0 && InterruptTime < Look ? InterruptTime : Look;
}

/* FALSE: the clock was stepped since the last sleep. */
static BOOLEAN HalpArmTimer(ULONGLONG SystemTime)
{
    HAL_DEADLINE Deadline = {HalSystemTime, SystemTime};
    struct itimerspec Due = {.it_interval = {0}};

    HalpDeadlineToTimespec(&Deadline, &Due.it_value);
    /* Zero would disarm it. */
    Due.it_value.tv_nsec += Due.it_value.tv_sec == 0 && Due.it_value.tv_nsec == 0;
    return timerfd_settime(HalpDescriptor(&HalpClockTimer), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &Due,
                           NULL) == 0;
}

/* Either kind is cleared by reading eight bytes. A program that closes every descriptor it finds closed ours too. */
static VOID HalpClearSource(const struct pollfd *Source)
{
    eventfd_t Count;

    if ((Source->revents & POLLNVAL) != 0) {
        HalpCloseClock();
    } else if (Source->revents != 0) {
        eventfd_read(Source->fd, &Count);
    }
}

static VOID HalpPoll(ULONGLONG InterruptTime)
{
    struct pollfd Sources[] = {
        {.fd = HalpDescriptor(&HalpClockEvent), .events = POLLIN},
        {.fd = HalpDescriptor(&HalpClockTimer), .events = POLLIN},
    };
    ULONGLONG Now = HalDispatch.QueryInterruptTime();
    struct timespec Timeout = HalpIntervalToTimespec(InterruptTime > Now ? InterruptTime - Now : 0);
    ULONG Source;

    if (ppoll(Sources, 2, InterruptTime != 0 ? &Timeout : NULL, NULL) <= 0) {
        return;
    }
    for (Source = 0; Source < 2; Source++) {
        HalpClearSource(&Sources[Source]);
    }
}

static VOID HalpSleepInPoll(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    if (!HalpArmTimer(SystemTime)) {
        return;
    }
    HalpExchangeSleeper(HalpSleepsInPoll);
    /* acquire: what the waker did before it changed the word is visible to the clock thread */
    if (__atomic_load_n(Wake, __ATOMIC_ACQUIRE) == Expected) {
        HalpPoll(InterruptTime);
    }
    HalpExchangeSleeper(HalpAwake);
}

VOID HalClockWait(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    if (SystemTime == 0) {
        HalpSleepOnWord(Wake, Expected, InterruptTime);
    } else if (HalpOpenClock()) {
        HalpSleepInPoll(Wake, Expected, InterruptTime, SystemTime);
    } else {
        HalpSleepOnWord(Wake, Expected, HalpNextLook(InterruptTime, SystemTime));
    }
}

VOID HalClockWake(volatile ULONG *Wake)
{
    switch (HalpExchangeSleeper(HalpAwake)) {
    case HalpAwake:
        break;
    case HalpSleepsOnWord:
        HalDispatch.Wake(Wake, 1);
        break;
    case HalpSleepsInPoll:
        eventfd_write(HalpDescriptor(&HalpClockEvent), 1);
        break;
    }
}

/* The parent still uses what the descriptors refer to. */
VOID HalpForkChildClock(VOID)
{
    HalpCloseClock();
    __atomic_store_n(&HalpSleeper, HalpAwake, __ATOMIC_RELAXED);
}
