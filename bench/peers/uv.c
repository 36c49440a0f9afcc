#include <uv.h>

#include "../timers.h"

static uv_loop_t *loop;
static unsigned fired;
static unsigned long finished;

static void count_fired(uv_timer_t *timer)
{
    (void)timer;
    fired++;
}

BENCH_TIMERS(timers, uv_timer_t, uv_timer_init(loop, timer), uv_timer_start(timer, count_fired, milliseconds, 0),
             uv_timer_stop(timer))
BENCH_EXPIRY(timers, uv_timer_t, fired, uv_update_time(loop), uv_run(loop, UV_RUN_DEFAULT))
BENCH_SIZE(size_timer, sizeof(uv_timer_t))
BENCH_SIZE(size_async, sizeof(uv_async_t))

static void do_work(uv_work_t *request)
{
    (void)request;
    __atomic_fetch_add(&finished, 1, __ATOMIC_RELAXED);
}

static void after_work(uv_work_t *request, int status)
{
    (void)request;
    (void)status;
}

static uint64_t run_work(unsigned long count, const bench_row *row)
{
    static uv_work_t requests[1024];
    uint64_t start = bench_now();

    (void)row;
    for (unsigned long i = 0; i < count;) {
        for (unsigned batch = 0; batch < 1024 && i < count; batch++, i++)
            uv_queue_work(loop, &requests[batch], do_work, after_work);
        uv_run(loop, UV_RUN_DEFAULT);
    }
    return bench_now() - start;
}

BENCH_CONTENDERS(uv, BENCH_VERSION)
{
    loop = uv_default_loop();
    bench_add_loop("timer-set", BENCH_PEER, "libuv", 0, timers_run_set);
    bench_add_loop("timer-cancel", BENCH_PEER, "libuv", 0, timers_run_cancel);
    bench_add_value("timer-expiry", BENCH_PEER, "libuv", 0, timers_expiry);
    bench_add_value("bytes-timer", BENCH_PEER, "libuv", 0, size_timer);
    bench_add_value("bytes-event", BENCH_PEER, "libuv uv_async_t", 0, size_async);
    bench_add_loop("pool-work", BENCH_PEER, "libuv uv_queue_work", 0, run_work);
}
