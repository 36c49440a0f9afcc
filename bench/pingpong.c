/*
 * There and back between two threads: an event of Interlock beside a bare futex, in one run. Each side waits for its
 * own signal and then signals the other, so one round is two hand-overs.
 */
#include "harness.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <interlock/ke.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#define SPINS 500

typedef struct place {
    const char *name;
    int processor[2];
    unsigned processors;      /* that it takes */
} place;

static const place places[] = {
    {"Both threads on one processor", {0, 0}, 1},
    {"Each thread on a processor of its own", {0, 1}, 2},
    {"Wherever the host puts them", {BENCH_ANYWHERE, BENCH_ANYWHERE}, 1},
};

static const place *current_place;

typedef struct channel {
    void (*signal)(unsigned side);
    void (*await)(unsigned side);
} channel;

static struct {
    ULONG word __attribute__((aligned(64)));
} futexes[2];

static KEVENT events[2];
static KSEMAPHORE semaphores[2];
static KEVENT_PAIR pair;
static HANDLE threads[2];

/* A flag, and what tells of its change. */
static struct {
    ULONG flag __attribute__((aligned(64)));
    RTL_SRWLOCK lock;
    RTL_CONDITION_VARIABLE variable;
    pthread_mutex_t host_lock;
    pthread_cond_t host_variable;
} letters[2] = {
    {.host_lock = PTHREAD_MUTEX_INITIALIZER, .host_variable = PTHREAD_COND_INITIALIZER},
    {.host_lock = PTHREAD_MUTEX_INITIALIZER, .host_variable = PTHREAD_COND_INITIALIZER},
};

static void futex_signal(unsigned side)
{
    if (__atomic_exchange_n(&futexes[side].word, 1, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, &futexes[side].word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int futex_try(unsigned side)
{
    ULONG signaled = 1;

    return __atomic_load_n(&futexes[side].word, __ATOMIC_RELAXED) == 1 &&
           __atomic_compare_exchange_n(&futexes[side].word, &signaled, 0, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void futex_await(unsigned side)
{
    while (!futex_try(side)) {
        ULONG unsignaled = 0;

        if (__atomic_compare_exchange_n(&futexes[side].word, &unsignaled, 2, FALSE, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            unsignaled == 2)
            syscall(SYS_futex, &futexes[side].word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    }
}

static void futex_spin_await(unsigned side)
{
    for (unsigned spin = 0; spin < SPINS; spin++) {
        if (futex_try(side))
            return;
        YieldProcessor();
    }
    futex_await(side);
}

static void event_signal(unsigned side)
{
    KeSetEvent(&events[side], EVENT_INCREMENT, FALSE);
}

static void event_await(unsigned side)
{
    KeWaitForSingleObject(&events[side], Executive, KernelMode, FALSE, NULL);
}

static void any_await(unsigned side)
{
    static KEVENT never = {{.Type = EventSynchronizationObject,
                            .WaitListHead = {&never.Header.WaitListHead, &never.Header.WaitListHead}}};
    PVOID objects[] = {&never, &events[side]};

    KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL);
}

static void semaphore_signal(unsigned side)
{
    KeReleaseSemaphore(&semaphores[side], SEMAPHORE_INCREMENT, 1, FALSE);
}

static void semaphore_await(unsigned side)
{
    KeWaitForSingleObject(&semaphores[side], Executive, KernelMode, FALSE, NULL);
}

static void pair_signal(unsigned side)
{
    if (side == 0)
        KeSetLowEventPair(&pair, EVENT_INCREMENT, FALSE);
    else
        KeSetHighEventPair(&pair, EVENT_INCREMENT, FALSE);
}

static void pair_await(unsigned side)
{
    if (side == 0)
        KeWaitForLowEventPair(&pair, KernelMode, FALSE, NULL);
    else
        KeWaitForHighEventPair(&pair, KernelMode, FALSE, NULL);
}

static void alert_signal(unsigned side)
{
    NtAlertThreadByThreadId(threads[side]);
}

static void alert_await(unsigned side)
{
    (void)side;
    NtWaitForAlertByThreadId(NULL, NULL);
}

static void address_signal(unsigned side)
{
    __atomic_store_n(&letters[side].flag, 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle(&letters[side].flag);
}

static void address_await(unsigned side)
{
    ULONG none = 0;

    while (__atomic_load_n(&letters[side].flag, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&letters[side].flag, &none, sizeof(none), NULL);
    __atomic_store_n(&letters[side].flag, 0, __ATOMIC_RELAXED);
}

static void variable_signal(unsigned side)
{
    RtlAcquireSRWLockExclusive(&letters[side].lock);
    letters[side].flag = 1;
    RtlReleaseSRWLockExclusive(&letters[side].lock);
    RtlWakeConditionVariable(&letters[side].variable);
}

static void variable_await(unsigned side)
{
    RtlAcquireSRWLockExclusive(&letters[side].lock);
    while (letters[side].flag == 0)
        RtlSleepConditionVariableSRW(&letters[side].variable, &letters[side].lock, NULL, 0);
    letters[side].flag = 0;
    RtlReleaseSRWLockExclusive(&letters[side].lock);
}

static void host_variable_signal(unsigned side)
{
    pthread_mutex_lock(&letters[side].host_lock);
    letters[side].flag = 1;
    pthread_mutex_unlock(&letters[side].host_lock);
    pthread_cond_signal(&letters[side].host_variable);
}

static void host_variable_await(unsigned side)
{
    pthread_mutex_lock(&letters[side].host_lock);
    while (letters[side].flag == 0)
        pthread_cond_wait(&letters[side].host_variable, &letters[side].host_lock);
    letters[side].flag = 0;
    pthread_mutex_unlock(&letters[side].host_lock);
}

static channel futex_channel = {futex_signal, futex_await};
static channel futex_spin_channel = {futex_signal, futex_spin_await};
static channel event_channel = {event_signal, event_await};
static channel any_channel = {event_signal, any_await};
static channel semaphore_channel = {semaphore_signal, semaphore_await};
static channel pair_channel = {pair_signal, pair_await};
static channel alert_channel = {alert_signal, alert_await};
static channel address_channel = {address_signal, address_await};
static channel variable_channel = {variable_signal, variable_await};
static channel host_variable_channel = {host_variable_signal, host_variable_await};

typedef struct partner {
    const channel *over;
    unsigned long count;
} partner;

static void *answer(void *argument)
{
    const partner *self = argument;

    bench_bind(current_place->processor[1]);
    threads[1] = PsGetCurrentThreadId();
    self->over->signal(0);
    for (unsigned long round = 0; round < self->count; round++) {
        self->over->await(1);
        self->over->signal(0);
    }
    return NULL;
}

static uint64_t there_and_back(unsigned long count, void *argument)
{
    partner other = {argument, count};
    pthread_t thread;
    uint64_t start;

    bench_bind(current_place->processor[0]);
    threads[0] = PsGetCurrentThreadId();
    if (pthread_create(&thread, NULL, answer, &other) != 0)
        return 0;
    other.over->await(0);
    start = bench_nanoseconds();
    for (unsigned long round = 0; round < count; round++) {
        other.over->signal(1);
        other.over->await(0);
    }
    start = bench_nanoseconds() - start;
    pthread_join(thread, NULL);
    bench_bind(BENCH_ANYWHERE);
    return start;
}

static const bench_row rows[] = {
    {"futex", there_and_back, &futex_channel, 0},
    {"futex, 500 spins first", there_and_back, &futex_spin_channel, 0},
    {"KeSetEvent, KeWaitForSingleObject", there_and_back, &event_channel, 0},
    {"KeSetEvent, KeWaitForMultipleObjects, any of 2", there_and_back, &any_channel, 0},
    {"KeReleaseSemaphore, KeWaitForSingleObject", there_and_back, &semaphore_channel, 0},
    {"event pair", there_and_back, &pair_channel, 0},
    {"NtAlertThreadByThreadId, NtWaitForAlertByThreadId", there_and_back, &alert_channel, 0},
    {"RtlWakeAddressSingle, RtlWaitOnAddress", there_and_back, &address_channel, 0},
    {"condition variable with an SRW lock", there_and_back, &variable_channel, 0},
    {"pthread condition variable with a mutex", there_and_back, &host_variable_channel, 0},
};

static void run_at(const place *where)
{
    double before = bench_line_round_trip();

    current_place = where;
    bench_table(where->name, rows, ARRAYSIZE(rows));
    if (where->processors > 1)
        printf("  a cache line there and back: %.0f before, %.0f after\n", before, bench_line_round_trip());
}

int main(void)
{
    bench_begin();
    for (unsigned side = 0; side < 2; side++) {
        KeInitializeEvent(&events[side], SynchronizationEvent, FALSE);
        KeInitializeSemaphore(&semaphores[side], 0, MAXLONG);
    }
    KeInitializeEventPair(&pair);
    for (unsigned i = 0; i < ARRAYSIZE(places); i++) {
        if (places[i].processors <= (unsigned)bench_processors())
            run_at(&places[i]);
    }
    return 0;
}
