/* Tail latencies of the C library and of Linux system calls. */
#include "../idle.h"
#include "../tail.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int is_open;
static sem_t semaphore;
static uint32_t word;
static int letter, alarm_clock;
static const struct timespec millisecond = {0, 1000000};

BENCH_TAIL_WORK(tail_mutex, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
BENCH_TAIL_WORK(tail_adaptive, pthread_mutex_lock(&adaptive), pthread_mutex_unlock(&adaptive))

static void post(unsigned side)
{
    (void)side;
    sem_post(&semaphore);
}

static void await_post(unsigned side)
{
    (void)side;
    sem_wait(&semaphore);
}

static void futex_set(unsigned side)
{
    (void)side;
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_await(unsigned side)
{
    (void)side;
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    __atomic_store_n(&word, 0, __ATOMIC_RELAXED);
}

static void open_gate(unsigned side)
{
    (void)side;
    pthread_mutex_lock(&gate);
    is_open = 1;
    pthread_mutex_unlock(&gate);
    pthread_cond_signal(&opened);
}

static void await_gate(unsigned side)
{
    (void)side;
    pthread_mutex_lock(&gate);
    while (!is_open)
        pthread_cond_wait(&opened, &gate);
    is_open = 0;
    pthread_mutex_unlock(&gate);
}

static void eventfd_set(unsigned side)
{
    (void)side;
    eventfd_write(letter, 1);
}

static void eventfd_await(unsigned side)
{
    eventfd_t value;

    (void)side;
    eventfd_read(letter, &value);
}

static void await_timerfd(void)
{
    struct itimerspec due = {.it_value = millisecond};
    uint64_t expirations;

    timerfd_settime(alarm_clock, 0, &due, NULL);
    if (read(alarm_clock, &expirations, sizeof(expirations)) != sizeof(expirations))
        bench_fail("timerfd");
}

static void await_semaphore(void)
{
    struct timespec due;

    clock_gettime(CLOCK_MONOTONIC, &due);
    due.tv_nsec += millisecond.tv_nsec;
    if (due.tv_nsec >= 1000000000) {
        due.tv_nsec -= 1000000000;
        due.tv_sec++;
    }
    sem_clockwait(&semaphore, CLOCK_MONOTONIC, &due);
}

static void await_futex(void)
{
    static uint32_t nobody;

    syscall(SYS_futex, &nobody, FUTEX_WAIT_PRIVATE, 0, &millisecond, NULL, 0);
}

static void await_nanosleep(void)
{
    nanosleep(&millisecond, NULL);
}

static void await_poll(void)
{
    poll(NULL, 0, 1);
}

/* The same idle process: waiting threads, and one that a timer wakes. */
static sem_t idle_gate;
static unsigned ticks;
static int ticker_stops;

static void await_idle_gate(unsigned number)
{
    (void)number;
    idle_arrive();
    sem_wait(&idle_gate);
}

static void tick(void *unused)
{
    struct timespec period = {0, IDLE_PERIOD * 1000000L};
    struct itimerspec due = {.it_value = period, .it_interval = period};
    int ticker = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    uint64_t expired;

    (void)unused;
    timerfd_settime(ticker, 0, &due, NULL);
    while (!__atomic_load_n(&ticker_stops, __ATOMIC_ACQUIRE) &&
           read(ticker, &expired, sizeof(expired)) == sizeof(expired))
        __atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
    close(ticker);
}

static unsigned count_ticks(void)
{
    return __atomic_load_n(&ticks, __ATOMIC_RELAXED);
}

static double idle_wakeups(const bench_row *row)
{
    (void)row;
    sem_init(&idle_gate, 0, 0);
    ticker_stops = 0;
    bench_thread *ticker = bench_thread_start(tick, NULL);
    idle_start(await_idle_gate);
    idle_counts counts = idle_watch(count_ticks);
    __atomic_store_n(&ticker_stops, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < IDLE_WAITERS; i++)
        sem_post(&idle_gate);
    idle_end();
    bench_thread_join(ticker);
    return counts.expirations == 0 ? 0 : (double)(counts.of_waiters + counts.of_others) / counts.expirations;
}

BENCH_CONTENDERS(tails, "")
{
    sem_init(&semaphore, 0, 0);
    letter = eventfd(0, EFD_CLOEXEC);
    alarm_clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    bench_add_tail_lock("tail-lock", BENCH_PEER, "glibc mutex", tail_mutex);
    bench_add_tail_lock("tail-lock", BENCH_PEER, "glibc adaptive mutex", tail_adaptive);
    bench_add_tail_wake("tail-wake", BENCH_PEER, "glibc sem_t", post, await_post);
    bench_add_tail_wake("tail-wake", BENCH_PEER, "glibc condition variable", open_gate, await_gate);
    bench_add_tail_wake("tail-wake", BENCH_PEER, "futex", futex_set, futex_await);
    bench_add_tail_wake("tail-wake", BENCH_PEER, "eventfd", eventfd_set, eventfd_await);
    bench_add_tail_sleep("tail-timer", BENCH_PEER, "timerfd", await_timerfd);
    bench_add_tail_sleep("tail-timer", BENCH_PEER, "sem_clockwait", await_semaphore);
    bench_add_tail_sleep("tail-timer", BENCH_PEER, "futex", await_futex);
    bench_add_tail_sleep("tail-sleep", BENCH_PEER, "nanosleep", await_nanosleep);
    bench_add_tail_sleep("tail-sleep", BENCH_PEER, "poll", await_poll);
    bench_add_value("idle", BENCH_PEER, "glibc sem_t, timerfd", 0, idle_wakeups);
}
