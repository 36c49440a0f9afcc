#include <event2/event.h>
#include <event2/event_struct.h>

#include "../timers.h"

static struct event_base *base;
static unsigned fired;

static void count_fired(evutil_socket_t descriptor, short what, void *context)
{
    (void)descriptor;
    (void)what;
    (void)context;
    fired++;
}

static inline void set(struct event *timer, unsigned milliseconds)
{
    struct timeval due = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000};

    event_add(timer, &due);
}

BENCH_TIMERS(timers, struct event, event_assign(timer, base, -1, 0, count_fired, NULL), set(timer, milliseconds),
             event_del(timer))
BENCH_EXPIRY(timers, struct event, fired, (void)0, event_base_dispatch(base))
BENCH_SIZE(size_timer, sizeof(struct event))

BENCH_CONTENDERS(event, BENCH_VERSION)
{
    base = event_base_new();
    if (base == NULL)
        bench_fail("event_base_new");
    bench_add_loop("timer-set", BENCH_PEER, "libevent", 0, timers_run_set);
    bench_add_loop("timer-cancel", BENCH_PEER, "libevent", 0, timers_run_cancel);
    bench_add_value("timer-expiry", BENCH_PEER, "libevent", 0, timers_expiry);
    bench_add_value("bytes-timer", BENCH_PEER, "libevent", 0, size_timer);
}
