/* thread.c: the life of threads, their data, cancellation, clocks, futexes, and functions that the explorer does not
   model. */
#include "program.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int data;
static atomic_int word;

static void *set_data(void *unused)
{
    data = 1;
    return unused;
}

static void *return_argument(void *argument)
{
    return argument;
}

static void *lock_mutex(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

CORRECT(thread_join_orders)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, set_data, &data);
    assert(pthread_join(thread, &result) == 0 && result == &data && data == 1);
    assert(pthread_join(pthread_self(), NULL) == EDEADLK);
}

BROKEN(thread_not_joined, "race")
{
    pthread_t thread;

    pthread_create(&thread, NULL, set_data, NULL);
    assert(data == 0 || data == 1);
    pthread_join(thread, NULL);
}

CORRECT(thread_detached)
{
    pthread_t thread;

    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, lock_mutex, NULL);
    assert(pthread_detach(thread) == 0 && pthread_detach(thread) == EINVAL && pthread_join(thread, NULL) == EINVAL);
    assert(!pthread_equal(thread, pthread_self()));
    pthread_mutex_unlock(&mutex);
}

BROKEN(thread_detached_and_ended, "misuse")
{
    pthread_t thread;

    pthread_create(&thread, NULL, return_argument, NULL);
    pthread_detach(thread);
    pthread_cancel(thread);
}

BROKEN(thread_joined_twice, "misuse")
{
    pthread_t thread;

    pthread_create(&thread, NULL, return_argument, NULL);
    pthread_join(thread, NULL);
    pthread_join(thread, NULL);
}

/* A thread may run before its creator has stored the id. */
static pthread_t created;

static void *compare_id(void *unused)
{
    assert(pthread_equal(created, pthread_self()));
    return unused;
}

BROKEN(thread_reads_its_id, "race")
{
    pthread_create(&created, NULL, compare_id, NULL);
    pthread_join(created, NULL);
}

/* The argument is in a frame that has ended. Where it was are now the frames of the call that waits. */
static void *set_argument(void *argument)
{
    *(int *)argument = 1;
    return NULL;
}

static __attribute__((noinline)) void start_with_local(pthread_t *thread)
{
    int local = 0;
    pthread_create(thread, NULL, set_argument, &local);
}

BROKEN(thread_argument_on_stack, "dead frame")
{
    pthread_t thread;

    start_with_local(&thread);
    pthread_join(thread, NULL);
}

static __attribute__((noinline)) void use_local(void)
{
    pthread_t thread;
    int local = 0;

    pthread_create(&thread, NULL, set_argument, &local);
    pthread_join(thread, NULL);
    assert(local == 1);
}

CORRECT(thread_argument_lives)
{
    use_local();
}

/* Two that give way to each other, while a third waits for them. */
static atomic_int wants[2];

static void *give_way(void *argument)
{
    int self = (int)(uintptr_t)argument;

    for (;;) {
        atomic_store(&wants[self], 1);
        if (atomic_load(&wants[1 - self]) == 0)
            break;
        atomic_store(&wants[self], 0);
    }
    atomic_store(&wants[self], 0);
    return NULL;
}

BROKEN(thread_waits_for_livelock, "livelock")
{
    pthread_t threads[2];

    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, give_way, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static pthread_t mutual[2];

static void *join_other(void *argument)
{
    int error = pthread_join(mutual[(uintptr_t)argument], NULL);
    assert(error == 0 || error == EDEADLK);
    return NULL;
}

CORRECT(thread_joins_are_checked)
{
    pthread_mutex_lock(&mutex);
    pthread_create(&mutual[0], NULL, return_argument, NULL);
    pthread_create(&mutual[1], NULL, join_other, (void *)0);
    pthread_mutex_unlock(&mutex);
    assert(pthread_join(mutual[1], NULL) == 0);
}

static void *exit_thread(void *argument)
{
    pthread_exit(argument);
}

CORRECT(thread_exits)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, exit_thread, &data);
    assert(pthread_join(thread, &result) == 0 && result == &data);
    assert(pthread_setname_np(pthread_self(), "a name that is too long") == ERANGE);
}

/* Thread-specific data. */

static pthread_key_t key;
static atomic_int destroyed;

static void destroy(void *value)
{
    assert(value == &data);
    destroyed++;
}

static void *use_key(void *unused)
{
    assert(pthread_getspecific(key) == NULL);
    assert(pthread_setspecific(key, &data) == 0 && pthread_getspecific(key) == &data);
    return unused;
}

CORRECT(key_destructors)
{
    pthread_key_create(&key, destroy);
    run_two(use_key, use_key);
    assert(destroyed == 2 && pthread_key_delete(key) == 0 && pthread_setspecific(key, NULL) == EINVAL);
}

/* Cancellation. */

static void unlock(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

static void *wait_with_cleanup(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    while (data == 0)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    return unused;
}

static void *wait_without_cleanup(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (data == 0)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void cancel(void *(*routine)(void *))
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, routine, NULL);
    pthread_cancel(thread);
    assert(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

CORRECT(cancel_with_cleanup)
{
    cancel(wait_with_cleanup);
}

BROKEN(cancel_without_cleanup, "deadlock")
{
    cancel(wait_without_cleanup);
}

static void *disable_cancel(void *unused)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    assert(old == PTHREAD_CANCEL_ENABLE);
    usleep(10);
    data = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return unused;
}

CORRECT(cancel_disabled)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, disable_cancel, &word);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    assert(data == 1 && (result == PTHREAD_CANCELED || result == &word));
}

BROKEN(cancel_asynchronously, "unsupported")
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

/* Clocks. */

static void *sleep_and_set(void *unused)
{
    usleep(1000);
    atomic_store(&word, 1);
    return unused;
}

BROKEN(clock_sleep_as_synchronization, "assertion")
{
    pthread_t thread;

    pthread_create(&thread, NULL, sleep_and_set, NULL);
    usleep(5000);
    assert(atomic_load(&word) == 1);
    pthread_join(thread, NULL);
}

CORRECT(clock_is_virtual)
{
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);
    sleep(3600);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert(after.tv_sec - before.tv_sec == 3600 && time(NULL) > 1609459200);
    assert(nanosleep(&(struct timespec){0, -1}, NULL) == -1 && errno == EINVAL);
    assert(poll(NULL, 0, 10) == 0);
}

static void *wait_polling(void *unused)
{
    while (atomic_load(&word) == 0)
        usleep(100);
    return unused;
}

CORRECT(clock_polling)
{
    run_two(wait_polling, sleep_and_set);
}

/* Futexes: the mutex of Drepper's paper, correct and with a forgotten wake. */

static long futex(atomic_int *address, int operation, int value)
{
    return syscall(SYS_futex, address, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void futex_lock(void)
{
    int found = 0;

    if (atomic_compare_exchange_strong(&word, &found, 1))
        return;
    if (found != 2)
        found = atomic_exchange(&word, 2);
    while (found != 0) {
        futex(&word, FUTEX_WAIT, 2);
        found = atomic_exchange(&word, 2);
    }
}

static void futex_unlock(int contended)
{
    if (atomic_fetch_sub(&word, 1) != 1) {
        atomic_store(&word, 0);
        if (contended)
            futex(&word, FUTEX_WAKE, 1);
    }
}

static void *count_with_futex(void *unused)
{
    futex_lock();
    data++;
    futex_unlock(1);
    return unused;
}

static void *count_without_wake(void *unused)
{
    futex_lock();
    data++;
    futex_unlock(0);
    return unused;
}

CORRECT(futex_mutex)
{
    run_two(count_with_futex, count_with_futex);
    assert(data == 2);
}

BROKEN(futex_mutex_without_wake, "lost wakeup")
{
    run_two(count_without_wake, count_without_wake);
}

static void futex_results(void)
{
    assert(futex(&word, FUTEX_WAIT, 1) == -1 && errno == EAGAIN && futex(&word, FUTEX_WAKE, 1) == 0);
    assert(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &(struct timespec){0, 1000}, NULL, 0) == -1 && errno == ETIMEDOUT);
}

LAB_SCENARIO(futex_results, .Threads = {futex_results});

/* A waiter moves to a word whose wake may have come before. */
static atomic_int moved_to;

static void *wait_for_word(void *unused)
{
    futex(&word, FUTEX_WAIT, 0);
    return unused;
}

static long move_waiters(int wakes)
{
    return syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, wakes, (void *)1, &moved_to, 0);
}

static void *release_word(void *unused)
{
    futex(&moved_to, FUTEX_WAKE, 1);
    return unused;
}

BROKEN(futex_moved_late, "lost wakeup")
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, wait_for_word, NULL);
    pthread_create(&threads[1], NULL, release_word, NULL);
    move_waiters(0);
    atomic_store(&word, 1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void *wake_both(void *unused)
{
    atomic_store(&word, 1);
    futex(&word, FUTEX_WAKE, 2);
    futex(&moved_to, FUTEX_WAKE, 2);
    return unused;
}

CORRECT(futex_moved)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, wait_for_word, NULL);
    pthread_create(&threads[1], NULL, wait_for_word, NULL);
    long moved = move_waiters(1);
    assert(moved >= 0 && moved <= 2);
    wake_both(NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(move_waiters(1) == -1 && errno == EAGAIN);
}

BROKEN(futex_with_owner, "unsupported")
{
    futex(&word, FUTEX_LOCK_PI, 0);
}

/* C11 threads. */

static mtx_t c11_mutex;
static cnd_t c11_condition;

static int c11_count(void *argument)
{
    mtx_lock(&c11_mutex);
    data++;
    cnd_signal(&c11_condition);
    mtx_unlock(&c11_mutex);
    return *(int *)argument;
}

CORRECT(c11_threads)
{
    thrd_t thread;
    int result, argument = 7;

    assert(mtx_init(&c11_mutex, mtx_plain) == thrd_success && cnd_init(&c11_condition) == thrd_success);
    assert(thrd_create(&thread, c11_count, &argument) == thrd_success);
    mtx_lock(&c11_mutex);
    while (data == 0)
        cnd_wait(&c11_condition, &c11_mutex);
    mtx_unlock(&c11_mutex);
    assert(thrd_join(thread, &result) == thrd_success && result == 7);
}

BROKEN(c11_race, "race")
{
    thrd_t thread;
    int argument = 0;

    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_condition);
    thrd_create(&thread, c11_count, &argument);
    data++;
    thrd_join(thread, NULL);
}

/* What ends the run with its name. */

BROKEN(unsupported_read, "unsupported")
{
    int ends[2];
    char byte;

    assert(pipe(ends) == 0);
    (void)!read(ends[0], &byte, 1);
}

BROKEN(unsupported_fork, "unsupported")
{
    if (fork() == 0)
        _exit(0);
}

BROKEN(unsupported_poll, "unsupported")
{
    struct pollfd nothing = {.fd = -1};

    poll(&nothing, 1, -1);
}

BROKEN(unsupported_lock_of_file, "unsupported")
{
    assert(fcntl(1, F_GETFD) >= 0); /* does not block */
    assert(lockf(1, F_LOCK, 0) == 0);
}

BROKEN(unsupported_lock_by_fcntl, "unsupported")
{
    struct flock lock = {.l_type = F_WRLCK};

    assert(fcntl(1, F_SETLKW, &lock) == 0);
}

BROKEN(unsupported_pselect, "unsupported")
{
    fd_set none;

    FD_ZERO(&none);
    pselect(1, &none, NULL, NULL, NULL, NULL);
}

BROKEN(unsupported_message, "unsupported")
{
    char text[8];

    mq_receive((mqd_t)-1, text, sizeof(text), NULL);
}

BROKEN(unsupported_clone, "unsupported")
{
    syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

BROKEN(unsupported_signal, "unsupported")
{
    pthread_kill(pthread_self(), 10);
}
