/*
 * clock.c: hours that pass when the input says so. The interrupt time of the library is the host's plus the elapsed
 * hours. Everything is due on the hour, and time advances from one half hour to another, so that the real time that an
 * input takes changes nothing.
 */
#include "fuzz.h"

#include <stdio.h>
#include <time.h>

#include "ke/timer.h"

#define HOUR (10000000ULL * 3600)
#define LOOK 5000 /* how often a sleeper checks whether hours have passed: 0.5 ms */

static ULONGLONG (*host_time)(VOID);
static ULONGLONG (*host_tick)(VOID);
static BOOLEAN (*host_wait)(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline);
static volatile ULONGLONG passed;
static ULONGLONG hour_0;
static PKTHREAD volatile clock_thread;
static volatile ULONG clock_looks; /* at the tables: each ends in a sleep */

static ULONGLONG time_passed(VOID)
{
    return __atomic_load_n(&passed, __ATOMIC_ACQUIRE);
}

static ULONGLONG query_time(VOID)
{
    return host_time() + time_passed();
}

static ULONGLONG query_tick(VOID)
{
    return host_tick() + time_passed();
}

static BOOLEAN wait_until(volatile ULONG *address, ULONG expected, ULONGLONG deadline)
{
    for (;;) {
        HAL_DEADLINE look = {HalInterruptTime, host_time() + LOOK};

        if (deadline < look.Time + time_passed())
            look.Time = deadline > time_passed() ? deadline - time_passed() : 0;
        if (host_wait(address, expected, &look))
            return TRUE;
        if (query_time() >= deadline)
            return FALSE;
    }
}

/* Of the library's own threads only the clock has deadlines. */
static BOOLEAN wait_in_time(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    PKTHREAD self = KiCurrentThread();
    bool timed = deadline->Clock == HalInterruptTime;

    if (self->IsIdleThread && timed)
        __atomic_store_n(&clock_thread, self, __ATOMIC_RELEASE);
    if (__atomic_load_n(&clock_thread, __ATOMIC_RELAXED) == self)
        __atomic_add_fetch(&clock_looks, 1, __ATOMIC_RELEASE);
    return timed ? wait_until(address, expected, deadline->Time) : host_wait(address, expected, deadline);
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* The first timer creates the clock thread, which is identified by its first sleep. */
void start_clock(void)
{
    LARGE_INTEGER far = {.QuadPart = -(LONGLONG)(100 * HOUR)};
    KTIMER timer;

    host_time = HalDispatch.QueryInterruptTime;
    host_tick = HalDispatch.QueryTickTime;
    host_wait = HalDispatch.Wait;
    HalDispatch.QueryInterruptTime = query_time;
    HalDispatch.QueryTickTime = query_tick;
    HalDispatch.Wait = wait_in_time;
    KeInitializeTimer(&timer);
    KeSetTimer(&timer, far, NULL);
    while (__atomic_load_n(&clock_thread, __ATOMIC_ACQUIRE) == NULL)
        pause_shortly();
    KeCancelTimer(&timer);
}

void begin_time(void)
{
    hour_0 = query_time() + HOUR / 2;
}

LARGE_INTEGER until_hour(unsigned hour)
{
    LARGE_INTEGER relative = {.QuadPart = (LONGLONG)(query_time() - (hour_0 + hour * HOUR))};

    return relative;
}

static bool predict_pass(call *made)
{
    made->hour = next_hour();
    if (made->hour == 0)
        return false;
    pass_to_hour(made->hour);
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

/* The second pass from now on begins after now: when it has ended, everything due has expired, to the last packet. */
static void let_clock_look(void)
{
    time_t begin = time(NULL);

    for (unsigned look = 0; look < 2; look++) {
        ULONG before = __atomic_load_n(&clock_looks, __ATOMIC_ACQUIRE);

        KiWakeClock();
        while (__atomic_load_n(&clock_looks, __ATOMIC_ACQUIRE) == before) {
            if (time(NULL) - begin > PATIENCE_SECONDS)
                mismatch("the clock does not look for timers");
            pause_shortly();
        }
    }
}

static void perform_pass(call *made)
{
    __atomic_store_n(&passed, hour_0 + made->hour * HOUR + HOUR / 2 - host_time(), __ATOMIC_RELEASE);
    let_clock_look();
    made->status = STATUS_SUCCESS;
    made->value = 0;
}

static void describe_pass(const call *made, char *text, size_t size)
{
    snprintf(text, size, "until after hour %u", made->hour);
}

const operation clock_operations[] = {
    {"let time pass", MAIN_ONLY, predict_pass, perform_pass, describe_pass},
};
const size_t clock_operation_count = sizeof(clock_operations) / sizeof(clock_operations[0]);
