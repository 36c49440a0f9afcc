#include "../timers.h"

#include <interlock/ke.h>
#include <interlock/nt.h>

typedef struct timer_with_dpc {
    KTIMER timer;
    KDPC dpc;
} timer_with_dpc;

static unsigned fired;

static VOID count_fired(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    (void)dpc;
    (void)context;
    (void)first;
    (void)second;
    __atomic_fetch_add(&fired, 1, __ATOMIC_RELAXED);
}

static inline LARGE_INTEGER from_now(unsigned milliseconds)
{
    LARGE_INTEGER due;

    due.QuadPart = -10000LL * milliseconds;
    return due;
}

static void await_fired(unsigned number)
{
    bench_sleep(bench_timer_lead(number) + BENCH_TIMER_SPREAD);
    while (__atomic_load_n(&fired, __ATOMIC_RELAXED) < number)
        bench_sleep(1);
}

BENCH_TIMERS(ke, timer_with_dpc, KeInitializeTimer(&timer->timer);
             KeInitializeDpc(&timer->dpc, count_fired, NULL),
             KeSetTimer(&timer->timer, from_now(milliseconds), &timer->dpc), KeCancelTimer(&timer->timer))
BENCH_EXPIRY(ke, timer_with_dpc, fired, (void)0, await_fired(number))
BENCH_SIZE(size_timer, sizeof(KTIMER))

BENCH_CONTENDERS(interlock_timers, "")
{
    bench_add_loop("timer-set", BENCH_INTERLOCK, "KeSetTimer", 0, ke_run_set);
    bench_add_loop("timer-cancel", BENCH_INTERLOCK, "KeCancelTimer", 0, ke_run_cancel);
    bench_add_value("timer-expiry", BENCH_INTERLOCK, "KTIMER, DPC", 0, ke_expiry);
    bench_add_value("bytes-timer", BENCH_INTERLOCK, "KTIMER", 0, size_timer);
}
