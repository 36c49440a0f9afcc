/* condition.c: condition variables. */
#include "program.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;
static atomic_int flag;

static void *set_ready(void *unused)
{
    pthread_mutex_lock(&mutex);
    ready++;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *wait_ready(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (ready == 0)
        pthread_cond_wait(&condition, &mutex);
    ready--;
    pthread_mutex_unlock(&mutex);
    return unused;
}

CORRECT(condition_loop)
{
    run_two(set_ready, wait_ready);
}

static void *wait_once(void *unused)
{
    pthread_mutex_lock(&mutex);
    if (ready == 0)
        pthread_cond_wait(&condition, &mutex);
    assert(ready == 1); /* not after a spurious wakeup */
    pthread_mutex_unlock(&mutex);
    return unused;
}

BROKEN(condition_without_loop, "assertion")
{
    run_two(set_ready, wait_once);
}

static void *set_flag(void *unused)
{
    atomic_store(&flag, 1);
    pthread_cond_signal(&condition); /* may come before the wait */
    return unused;
}

static void *wait_flag(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (atomic_load(&flag) == 0)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

BROKEN(condition_lost_signal, "deadlock")
{
    run_two(set_flag, wait_flag);
}

static void wake_two(int (*wake)(pthread_cond_t *))
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, wait_flag, NULL);
    pthread_create(&threads[1], NULL, wait_flag, NULL);
    pthread_mutex_lock(&mutex);
    atomic_store(&flag, 1);
    wake(&condition);
    pthread_mutex_unlock(&mutex);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

BROKEN(condition_signal_for_two, "deadlock")
{
    wake_two(pthread_cond_signal);
}

CORRECT(condition_broadcast)
{
    wake_two(pthread_cond_broadcast);
}

static int timed_out;

static void *wait_timed(void *unused)
{
    struct timespec time;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec++;
    pthread_mutex_lock(&mutex);
    while (ready == 0 && error == 0)
        error = pthread_cond_timedwait(&condition, &mutex, &time);
    assert(error == 0 || error == ETIMEDOUT);
    timed_out = ready == 0;
    pthread_mutex_unlock(&mutex);
    return unused;
}

CORRECT(condition_timed)
{
    run_two(set_ready, wait_timed);
}

BROKEN(condition_times_out, "assertion")
{
    run_two(set_ready, wait_timed);
    assert(!timed_out);
}

static void *wait_alone(void *unused)
{
    wait_timed(unused);
    return unused;
}

CORRECT(condition_timeout_only)
{
    run_two(wait_alone, wait_alone);
    assert(timed_out);
}

BROKEN(condition_without_mutex, "misuse")
{
    pthread_cond_wait(&condition, &mutex);
}

static void *destroy(void *unused)
{
    pthread_cond_destroy(&condition);
    return unused;
}

BROKEN(condition_destroyed_waiting, "misuse")
{
    run_two(wait_ready, destroy);
}

/* Queues: one producer and one consumer of two items, in one slot. */
static int slot;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *produce(void *unused)
{
    for (int i = 1; i <= 2; i++) {
        pthread_mutex_lock(&mutex);
        while (slot != 0)
            pthread_cond_wait(&changed, &mutex);
        slot = i;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *consume(void *unused)
{
    for (int i = 1; i <= 2; i++) {
        pthread_mutex_lock(&mutex);
        while (slot == 0)
            pthread_cond_wait(&changed, &mutex);
        assert(slot == i);
        slot = 0;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

CORRECT(condition_slot)
{
    run_two(produce, consume);
}

/* Four threads in one slot: a signal may wake a waiter that cannot use it. */
static void *take_one(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (slot == 0)
        pthread_cond_wait(&changed, &mutex);
    slot = 0;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *put_one(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (slot != 0)
        pthread_cond_wait(&changed, &mutex);
    slot = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return unused;
}

BROKEN(condition_wrong_waiter, "deadlock")
{
    static void *(*const routines[4])(void *) = {take_one, take_one, put_one, put_one};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, routines[i], NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* A waiter that is cancelled does not consume a signal that the other one could have got. */
static void unlock_mutex(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

static void *take_ready(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock_mutex, NULL);
    while (ready == 0)
        pthread_cond_wait(&condition, &mutex);
    ready--;
    pthread_cleanup_pop(1);
    return unused;
}

static bool is_cancelled_after_signal(void)
{
    pthread_t cancelled, other;
    void *result;

    pthread_create(&cancelled, NULL, take_ready, NULL);
    pthread_create(&other, NULL, take_ready, NULL);
    set_ready(NULL);
    pthread_cancel(cancelled);
    pthread_join(cancelled, &result);
    if (result != PTHREAD_CANCELED)
        set_ready(NULL);
    pthread_join(other, NULL);
    return result == PTHREAD_CANCELED;
}

CORRECT(condition_keeps_signal)
{
    is_cancelled_after_signal();
}

BROKEN(condition_signal_before_cancel, "assertion")
{
    assert(is_cancelled_after_signal());
}

BROKEN(condition_cancel_before_signal, "assertion")
{
    assert(!is_cancelled_after_signal());
}
