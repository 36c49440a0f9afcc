/* Primitives built directly on Linux system calls. */
#include "../bench.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define SPINS 500
#define MANY  64

/* Three states, as in the literature: 0 unsignaled, 1 signaled, 2 a thread sleeps. */
typedef struct futex_event {
    uint32_t word __attribute__((aligned(128)));
} futex_event;

static futex_event alone, both[2];

static long futex(uint32_t *word, int operation, uint32_t value)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static inline void futex_set(futex_event *event)
{
    if (__atomic_exchange_n(&event->word, 1, __ATOMIC_RELEASE) == 2)
        futex(&event->word, FUTEX_WAKE, 1);
}

static inline int futex_try(futex_event *event)
{
    uint32_t signaled = 1;

    return __atomic_compare_exchange_n(&event->word, &signaled, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void futex_wait(futex_event *event)
{
    while (!futex_try(event)) {
        uint32_t found = 0;

        if (__atomic_compare_exchange_n(&event->word, &found, 2, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || found == 2)
            futex(&event->word, FUTEX_WAIT, 2);
    }
}

static void futex_signal(unsigned side)
{
    futex_set(&both[side]);
}

static void futex_await(unsigned side)
{
    futex_wait(&both[side]);
}

static void futex_spin_await(unsigned side)
{
    for (unsigned spin = 0; spin < SPINS; spin++) {
        if (__atomic_load_n(&both[side].word, __ATOMIC_RELAXED) == 1 && futex_try(&both[side]))
            return;
        bench_pause();
    }
    futex_wait(&both[side]);
}

BENCH_LOOP(run_futex, futex_set(&alone); futex_wait(&alone))
BENCH_LOOP(run_futex_wake, futex(&alone.word, FUTEX_WAKE, 1))

static int lonely, letters[2];

static void eventfd_set(int descriptor)
{
    uint64_t one = 1;

    if (write(descriptor, &one, sizeof(one)) != sizeof(one))
        bench_fail("eventfd");
}

static void eventfd_wait(int descriptor)
{
    uint64_t value;

    if (read(descriptor, &value, sizeof(value)) != sizeof(value))
        bench_fail("eventfd");
}

static void eventfd_signal(unsigned side)
{
    eventfd_set(letters[side]);
}

static void eventfd_await(unsigned side)
{
    eventfd_wait(letters[side]);
}

BENCH_LOOP(run_eventfd, eventfd_set(lonely); eventfd_wait(lonely))
BENCH_LOOP(run_handle, bench_keep(fcntl(lonely, F_GETFD)))

/* Any of many: descriptors, of which the last one is signaled, and futexes. */
typedef struct set {
    int epoll, last;
    unsigned count;
    struct pollfd polled[MANY];
    struct futex_waitv futexes[MANY];
    uint32_t words[MANY] __attribute__((aligned(128)));
} set;

static set *make_set(unsigned count)
{
    set *made = calloc(1, sizeof(*made));

    if (made == NULL || (made->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
        bench_fail("epoll");
    made->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct epoll_event interest = {.events = EPOLLIN, .data = {.u32 = i}};

        made->last = eventfd(0, EFD_CLOEXEC);
        made->polled[i] = (struct pollfd){.fd = made->last, .events = POLLIN};
        if (made->last < 0 || epoll_ctl(made->epoll, EPOLL_CTL_ADD, made->last, &interest) != 0)
            bench_fail("epoll_ctl");
        made->futexes[i] =
            (struct futex_waitv){.uaddr = (uintptr_t)&made->words[i], .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
    }
    return made;
}

/* A set for each number of objects: the first for loops, with the last object signaled, the other two for the sides. */
static set *set_of(unsigned count, unsigned which)
{
    static set *sets[MANY + 1][3];

    if (sets[count][which] == NULL) {
        sets[count][which] = make_set(count);
        if (which == 0) {
            eventfd_set(sets[count][which]->last);
            sets[count][which]->words[count - 1] = 1;
        }
    }
    return sets[count][which];
}

static void epoll_await_set(set *in)
{
    struct epoll_event event;

    if (epoll_wait(in->epoll, &event, 1, -1) != 1)
        bench_fail("epoll_wait");
}

static void poll_await_set(set *in)
{
    if (poll(in->polled, in->count, -1) < 1)
        bench_fail("poll");
}

/* Checks all words first, as a program would; then sleeps on all of them. */
static int waitv_try(set *in)
{
    for (unsigned i = 0; i < in->count; i++) {
        if (__atomic_load_n(&in->words[i], __ATOMIC_ACQUIRE) != 0)
            return 1;
    }
    return 0;
}

static void waitv_await_set(set *in)
{
    while (!waitv_try(in))
        syscall(SYS_futex_waitv, in->futexes, in->count, 0, NULL, 0);
}

/* The system call alone, which returns at once because the last word has changed. */
static void waitv_once(set *in)
{
    syscall(SYS_futex_waitv, in->futexes, in->count, 0, NULL, 0);
}

#define ANY_LOOP(function, wait) BENCH_LOOP_WITHIN(function, set *in = set_of(row->number, 0), wait(in), (void)row)

ANY_LOOP(run_any_epoll, epoll_await_set)
ANY_LOOP(run_any_poll, poll_await_set)
ANY_LOOP(run_any_waitv, waitv_once)

#define ANY_EXCHANGE(count)                                                                                            \
    static void any_signal_##count(unsigned side)                                                                      \
    {                                                                                                                  \
        eventfd_set(set_of(count, 1 + side)->last);                                                                    \
    }                                                                                                                  \
    static void any_epoll_##count(unsigned side)                                                                       \
    {                                                                                                                  \
        epoll_await_set(set_of(count, 1 + side));                                                                      \
        eventfd_wait(set_of(count, 1 + side)->last);                                                                   \
    }                                                                                                                  \
    static void any_poll_##count(unsigned side)                                                                        \
    {                                                                                                                  \
        poll_await_set(set_of(count, 1 + side));                                                                       \
        eventfd_wait(set_of(count, 1 + side)->last);                                                                   \
    }                                                                                                                  \
    static void any_waitv_signal_##count(unsigned side)                                                                \
    {                                                                                                                  \
        uint32_t *word = &set_of(count, 1 + side)->words[count - 1];                                                   \
                                                                                                                       \
        __atomic_store_n(word, 1, __ATOMIC_RELEASE);                                                                   \
        futex(word, FUTEX_WAKE, 1);                                                                                    \
    }                                                                                                                  \
    static void any_waitv_##count(unsigned side)                                                                       \
    {                                                                                                                  \
        waitv_await_set(set_of(count, 1 + side));                                                                      \
        __atomic_store_n(&set_of(count, 1 + side)->words[count - 1], 0, __ATOMIC_RELAXED);                             \
    }                                                                                                                  \
    static void add_any_##count(void)                                                                                  \
    {                                                                                                                  \
        set_of(count, 1);                                                                                              \
        set_of(count, 2);                                                                                              \
        bench_add_exchange("any-" #count, BENCH_PEER, "epoll", any_signal_##count, any_epoll_##count);                 \
        bench_add_exchange("any-" #count, BENCH_PEER, "poll", any_signal_##count, any_poll_##count);                   \
        bench_add_exchange("any-" #count, BENCH_PEER, "futex_waitv", any_waitv_signal_##count, any_waitv_##count);     \
    }

ANY_EXCHANGE(2)
ANY_EXCHANGE(8)
ANY_EXCHANGE(64)

/* One of many descriptors is set, waited for and reset; a thread pool has to watch 512. */
static uint64_t run_many_waits(unsigned long count, const bench_row *row)
{
    static int descriptors[512], epoll;
    struct epoll_event events[64];
    uint64_t start;
    unsigned number = row->number;

    for (unsigned i = 0; epoll == 0 && i < number; i++)
        descriptors[i] = eventfd(0, EFD_CLOEXEC);
    if (epoll == 0) {
        epoll = epoll_create1(EPOLL_CLOEXEC);
        for (unsigned i = 0; i < number; i++) {
            struct epoll_event interest = {.events = EPOLLIN, .data = {.fd = descriptors[i]}};

            if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptors[i], &interest) != 0)
                bench_fail("epoll_ctl");
        }
    }
    start = bench_now();
    for (unsigned long done = 0; done < count;) {
        for (unsigned i = 0; i < number; i++)
            eventfd_set(descriptors[i]);
        for (unsigned seen = 0; seen < number;) {
            int found = epoll_wait(epoll, events, 64, -1);

            for (int i = 0; i < found; i++)
                eventfd_wait(events[i].data.fd);
            seen += (unsigned)found;
        }
        done += number;
    }
    start = bench_now() - start;
    return (uint64_t)((double)start * (double)count / (double)((count + number - 1) / number * number));
}

/* A kernel timer takes a descriptor, so their number is limited by the process's descriptors. */
#define TIMERS 512

static int *timers(void)
{
    static int made[TIMERS];

    for (unsigned i = 0; made[TIMERS - 1] == 0 && i < TIMERS; i++)
        made[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return made;
}

static uint64_t set_timers(const int *all, time_t seconds)
{
    struct itimerspec when = {.it_value = {.tv_sec = seconds}};
    uint64_t start = bench_now();

    for (unsigned i = 0; i < TIMERS; i++)
        timerfd_settime(all[i], 0, &when, NULL);
    return bench_now() - start;
}

static uint64_t run_timers(unsigned long count, int cancel)
{
    uint64_t took[2] = {0, 0};
    unsigned long done = 0;

    for (; done < count; done += TIMERS) {
        took[0] += set_timers(timers(), 3600);
        took[1] += set_timers(timers(), 0);
    }
    return (uint64_t)((double)took[cancel] * (double)count / (double)done);
}

static uint64_t run_timer_set(unsigned long count, const bench_row *row)
{
    (void)row;
    return run_timers(count, 0);
}

static uint64_t run_timer_cancel(unsigned long count, const bench_row *row)
{
    (void)row;
    return run_timers(count, 1);
}

static const char *kernel(void)
{
    static struct utsname name;

    uname(&name);
    return name.release;
}

BENCH_CONTENDERS(linux, kernel())
{
    lonely = eventfd(0, EFD_CLOEXEC);
    letters[0] = eventfd(0, EFD_CLOEXEC);
    letters[1] = eventfd(0, EFD_CLOEXEC);

    bench_add_loop("event", BENCH_PEER, "futex", 0, run_futex);
    bench_add_loop("event", BENCH_PEER, "eventfd", 0, run_eventfd);
    bench_add_loop("wake-nobody", BENCH_PEER, "futex", 0, run_futex_wake);
    bench_add_loop("handle", BENCH_PEER, "fcntl of a descriptor", 0, run_handle);
    bench_add_loop("any", BENCH_PEER, "epoll", 0, run_any_epoll);
    bench_add_loop("any", BENCH_PEER, "poll", 0, run_any_poll);
    bench_add_loop("any", BENCH_PEER, "futex_waitv", 0, run_any_waitv);
    bench_add_exchange("event", BENCH_PEER, "futex", futex_signal, futex_await);
    bench_add_exchange("event", BENCH_PEER, "futex, 500 spins", futex_signal, futex_spin_await);
    bench_add_exchange("event", BENCH_PEER, "eventfd", eventfd_signal, eventfd_await);
    bench_add_exchange("address", BENCH_PEER, "futex", futex_signal, futex_await);
    bench_add_exchange("address", BENCH_PEER, "futex, 500 spins", futex_signal, futex_spin_await);
    add_any_2();
    add_any_8();
    add_any_64();
    bench_add_loop("pool-waits", BENCH_PEER, "epoll, one thread", 0, run_many_waits);
    bench_add_loop("timer-set", BENCH_PEER, "timerfd, among 512", 0, run_timer_set);
    bench_add_loop("timer-cancel", BENCH_PEER, "timerfd, among 512", 0, run_timer_cancel);
}
