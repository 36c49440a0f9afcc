/* mutex.c: mutexes of all kinds, and spinlocks. */
#include "program.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t forks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int count;
static atomic_int atomic_count;

static void *count_locked(void *unused)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&mutex);
        count++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *count_unlocked(void *unused)
{
    count++;
    return unused;
}

static void *eat(void *argument)
{
    uintptr_t left = (uintptr_t)argument & 3, right = (uintptr_t)argument >> 2;

    pthread_mutex_lock(&forks[left]);
    pthread_mutex_lock(&forks[right]);
    pthread_mutex_unlock(&forks[right]);
    pthread_mutex_unlock(&forks[left]);
    return NULL;
}

static void dine(const uintptr_t left[3], const uintptr_t right[3])
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, eat, (void *)(left[i] | right[i] << 2));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

CORRECT(mutex_counter)
{
    run_two(count_locked, count_locked);
    assert(count == 4);
}

BROKEN(mutex_missing, "race")
{
    run_two(count_locked, count_unlocked);
}

BROKEN(mutex_philosophers, "deadlock")
{
    dine((uintptr_t[]){0, 1, 2}, (uintptr_t[]){1, 2, 0});
}

CORRECT(mutex_left_handed)
{
    dine((uintptr_t[]){0, 1, 0}, (uintptr_t[]){1, 2, 2});
}

static void *count_both(void *unused)
{
    atomic_fetch_add(&atomic_count, 1);
    pthread_mutex_lock(&mutex);
    count++;
    atomic_fetch_add(&atomic_count, 1);
    pthread_mutex_unlock(&mutex);
    return unused;
}

CORRECT(mutex_and_atomics)
{
    run_two(count_both, count_both);
    assert(count == 2 && atomic_count == 4);
}

/* What a release store of another variable does not order, a mutex does: also under the weak model. */
static void *publish(void *unused)
{
    atomic_store_explicit(&atomic_count, 1, memory_order_relaxed);
    pthread_mutex_lock(&mutex);
    count = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *consume(void *unused)
{
    pthread_mutex_lock(&mutex);
    int seen = count;
    pthread_mutex_unlock(&mutex);
    if (seen)
        assert(atomic_load_explicit(&atomic_count, memory_order_relaxed) == 1);
    return unused;
}

static void mutex_publishes(void)
{
    run_two(publish, consume);
}

LAB_SCENARIO(mutex_publishes_c11, .Threads = {mutex_publishes}, .Model = "c11");
LAB_SCENARIO(mutex_publishes_tso, .Threads = {mutex_publishes}, .Model = "tso");

static void *try_until_locked(void *unused)
{
    while (pthread_mutex_trylock(&mutex) == EBUSY)
        sched_yield();
    count++;
    pthread_mutex_unlock(&mutex);
    return unused;
}

CORRECT(mutex_try)
{
    run_two(try_until_locked, try_until_locked);
    assert(count == 2);
}

static void *try_once(void *unused)
{
    if (pthread_mutex_trylock(&mutex) != 0)
        return unused;
    count++;
    pthread_mutex_unlock(&mutex);
    return unused;
}

BROKEN(mutex_try_fails, "assertion")
{
    run_two(try_once, try_once);
    assert(count == 2);
}

static void *lock_timed(void *unused)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec++;
    int error = pthread_mutex_timedlock(&mutex, &time);
    assert(error == 0 || error == ETIMEDOUT);
    if (error == 0) {
        count++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

CORRECT(mutex_timed)
{
    run_two(lock_timed, lock_timed);
    assert(count != 0);
}

BROKEN(mutex_times_out, "assertion")
{
    run_two(lock_timed, lock_timed);
    assert(count == 2);
}

static void initialize(int type, int robust)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void *lock_twice(void *unused)
{
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(pthread_mutex_trylock(&mutex) == 0);
    count++;
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == EPERM);
    return unused;
}

CORRECT(mutex_recursive)
{
    initialize(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
    run_two(lock_twice, lock_twice);
    assert(count == 2 && pthread_mutex_destroy(&mutex) == 0);
}

CORRECT(mutex_error_checking)
{
    initialize(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
    assert(pthread_mutex_lock(&mutex) == 0);
    assert(pthread_mutex_lock(&mutex) == EDEADLK);
    assert(pthread_mutex_trylock(&mutex) == EBUSY);
    assert(pthread_mutex_destroy(&mutex) == EBUSY);
    assert(pthread_mutex_unlock(&mutex) == 0);
    assert(pthread_mutex_unlock(&mutex) == EPERM);
}

CORRECT(mutex_protects_priority)
{
    pthread_mutexattr_t attributes;
    int ceiling = 0;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT);
    pthread_mutexattr_setprioceiling(&attributes, 10);
    assert(pthread_mutex_init(&mutex, &attributes) == 0);
    assert(pthread_mutex_getprioceiling(&mutex, &ceiling) == 0 && ceiling == 10);
    assert(pthread_mutex_setprioceiling(&mutex, 12, &ceiling) == 0 && ceiling == 10);
    assert(pthread_mutex_getprioceiling(&mutex, &ceiling) == 0 && ceiling == 12);
    run_two(count_locked, count_locked);
    assert(count == 4);
    initialize(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
    assert(pthread_mutex_getprioceiling(&mutex, &ceiling) == EINVAL);
}

static void *lock_and_end(void *unused)
{
    pthread_mutex_lock(&mutex);
    return unused;
}

CORRECT(mutex_robust)
{
    pthread_t thread;

    initialize(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
    pthread_create(&thread, NULL, lock_and_end, NULL);
    int error = pthread_mutex_lock(&mutex);
    assert(error == 0 || error == EOWNERDEAD);
    if (error == EOWNERDEAD)
        assert(pthread_mutex_consistent(&mutex) == 0);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

CORRECT(mutex_not_recoverable)
{
    pthread_t thread;

    initialize(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
    pthread_create(&thread, NULL, lock_and_end, NULL);
    pthread_join(thread, NULL);
    assert(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    pthread_mutex_unlock(&mutex);
    assert(pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
}

BROKEN(mutex_owner_ends, "deadlock")
{
    run_two(lock_and_end, lock_and_end);
}

BROKEN(mutex_locked_twice, "deadlock")
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
}

static void *unlock_only(void *unused)
{
    pthread_mutex_unlock(&mutex);
    return unused;
}

BROKEN(mutex_unlocked_by_other, "misuse")
{
    run_two(lock_and_end, unlock_only);
}

BROKEN(mutex_destroyed_locked, "misuse")
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_destroy(&mutex);
}

BROKEN(mutex_used_destroyed, "misuse")
{
    pthread_mutex_destroy(&mutex);
    pthread_mutex_lock(&mutex);
}

/* The last user frees it, as POSIX allows. */
typedef struct object {
    pthread_mutex_t mutex;
    int references;
} object;

static object *shared;

static void *release(void *unused)
{
    pthread_mutex_lock(&shared->mutex);
    int left = --shared->references;
    pthread_mutex_unlock(&shared->mutex);
    if (left == 0) {
        pthread_mutex_destroy(&shared->mutex);
        free(shared);
    }
    return unused;
}

static void make_shared(void)
{
    shared = malloc(sizeof(*shared));
    pthread_mutex_init(&shared->mutex, NULL);
    shared->references = 2;
}

CORRECT(mutex_freed_last)
{
    make_shared();
    run_two(release, release);
}

static void *release_too_early(void *unused)
{
    pthread_mutex_lock(&shared->mutex);
    int left = --shared->references;
    if (left == 0)
        free(shared);
    else
        pthread_mutex_unlock(&shared->mutex);
    return unused;
}

static void *release_and_look(void *unused)
{
    pthread_mutex_lock(&shared->mutex);
    shared->references--;
    pthread_mutex_unlock(&shared->mutex);
    (void)*(volatile int *)&shared->references;
    return unused;
}

BROKEN(mutex_freed_early, "race")
{
    make_shared();
    run_two(release_too_early, release_and_look);
}

static pthread_spinlock_t spinlock;

static void *count_spinning(void *unused)
{
    pthread_spin_lock(&spinlock);
    count++;
    pthread_spin_unlock(&spinlock);
    return unused;
}

static void *count_trying(void *unused)
{
    while (pthread_spin_trylock(&spinlock) != 0) {
    }
    count++;
    pthread_spin_unlock(&spinlock);
    return unused;
}

CORRECT(spinlock_counter)
{
    pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
    run_two(count_spinning, count_trying);
    assert(count == 2);
}

static void *keep_spinlock(void *unused)
{
    pthread_spin_lock(&spinlock);
    return unused;
}

BROKEN(spinlock_kept, "deadlock")
{
    run_two(keep_spinlock, count_spinning);
}

BROKEN(spinlock_not_owned, "misuse")
{
    pthread_spin_unlock(&spinlock);
}

/* A loop that polls under the mutex: the other thread gets its turn, although its start has nothing in common with the loop. */
static void poll_under_mutex(void *(*other)(void *))
{
    pthread_t thread;
    int seen;

    pthread_create(&thread, NULL, other, NULL);
    do {
        pthread_mutex_lock(&mutex);
        seen = count;
        pthread_mutex_unlock(&mutex);
    } while (seen == 0);
    pthread_join(thread, NULL);
}

static void *return_at_once(void *unused)
{
    return unused;
}

BROKEN(mutex_polled_in_vain, "livelock")
{
    poll_under_mutex(return_at_once);
}

CORRECT(mutex_timed_without_time)
{
    const struct timespec never = {0, -1};

    assert(pthread_mutex_timedlock(&mutex, &never) == 0);
    assert(pthread_mutex_timedlock(&mutex, &never) == EINVAL);
    pthread_mutex_unlock(&mutex);
}
