/* waits.c: semaphores, reader/writer locks, barriers, once. */
#include "program.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

static sem_t semaphore;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int data, other;

static void *post(void *unused)
{
    data = 1;
    sem_post(&semaphore);
    return unused;
}

static void *wait_and_look(void *unused)
{
    sem_wait(&semaphore);
    assert(data == 1);
    return unused;
}

CORRECT(semaphore_hands_over)
{
    sem_init(&semaphore, 0, 0);
    run_two(post, wait_and_look);
}

static void *post_first(void *unused)
{
    sem_post(&semaphore);
    data = 1;
    return unused;
}

BROKEN(semaphore_posted_early, "race")
{
    sem_init(&semaphore, 0, 0);
    run_two(post_first, wait_and_look);
}

static void *wait_twice(void *unused)
{
    sem_wait(&semaphore);
    sem_wait(&semaphore);
    sem_post(&semaphore);
    sem_post(&semaphore);
    return unused;
}

BROKEN(semaphore_taken_piecemeal, "deadlock")
{
    sem_init(&semaphore, 0, 2);
    run_two(wait_twice, wait_twice);
}

static void *try_semaphore(void *unused)
{
    int value;

    while (sem_trywait(&semaphore) != 0)
        assert(errno == EAGAIN);
    assert(sem_getvalue(&semaphore, &value) == 0 && value == 0);
    data++;
    sem_post(&semaphore);
    return unused;
}

CORRECT(semaphore_as_lock)
{
    sem_init(&semaphore, 0, 1);
    run_two(try_semaphore, try_semaphore);
    assert(data == 2 && sem_destroy(&semaphore) == 0);
}

static void *wait_timed(void *unused)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec++;
    if (sem_timedwait(&semaphore, &time) != 0) {
        assert(errno == ETIMEDOUT);
        other = 1;
    }
    return unused;
}

BROKEN(semaphore_times_out, "assertion")
{
    sem_init(&semaphore, 0, 0);
    run_two(post, wait_timed);
    assert(other == 0);
}

CORRECT(semaphore_named)
{
    sem_t *made = sem_open("/lab", O_CREAT | O_EXCL, 0600, 1);

    assert(made != SEM_FAILED && sem_open("/lab", O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED && errno == EEXIST);
    assert(sem_open("/lab", 0) == made && sem_wait(made) == 0 && sem_trywait(made) == -1);
    assert(sem_unlink("/lab") == 0 && sem_open("/lab", 0) == SEM_FAILED && errno == ENOENT);
}

static void *write_locked(void *unused)
{
    pthread_rwlock_wrlock(&lock);
    data++;
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *read_locked(void *unused)
{
    pthread_rwlock_rdlock(&lock);
    (void)*(volatile int *)&data;
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *write_shared(void *unused)
{
    pthread_rwlock_rdlock(&lock);
    data++;
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *read_checked(void *unused)
{
    pthread_rwlock_rdlock(&lock);
    int seen = data;
    pthread_rwlock_unlock(&lock);
    assert(seen == 0 || seen == 1);
    return unused;
}

CORRECT(rwlock_reader_and_writer)
{
    run_two(write_locked, read_checked);
}

CORRECT(rwlock_two_writers)
{
    run_two(write_locked, write_locked);
    assert(data == 2);
}

BROKEN(rwlock_writes_shared, "race")
{
    run_two(write_shared, write_shared);
}

/* Two readers that need each other are inside together: shared is shared. */
static void *read_with_barrier(void *unused)
{
    pthread_rwlock_rdlock(&lock);
    pthread_barrier_wait(&barrier);
    pthread_rwlock_unlock(&lock);
    return unused;
}

CORRECT(rwlock_readers_meet)
{
    pthread_barrier_init(&barrier, NULL, 2);
    run_two(read_with_barrier, read_with_barrier);
}

static void *write_with_barrier(void *unused)
{
    pthread_rwlock_wrlock(&lock);
    pthread_barrier_wait(&barrier);
    pthread_rwlock_unlock(&lock);
    return unused;
}

BROKEN(rwlock_writers_meet, "deadlock")
{
    pthread_barrier_init(&barrier, NULL, 2);
    run_two(write_with_barrier, write_with_barrier);
}

/* With writers first, a reader that reads again behind a waiting writer is stuck; with readers first it is not. */
static void *read_twice(void *unused)
{
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void prefer(int kind)
{
    pthread_rwlockattr_t attributes;

    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, kind);
    pthread_rwlock_init(&lock, &attributes);
}

CORRECT(rwlock_reads_again)
{
    prefer(PTHREAD_RWLOCK_PREFER_READER_NP);
    run_two(read_twice, write_locked);
}

BROKEN(rwlock_reads_again_behind_writer, "deadlock")
{
    prefer(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    run_two(read_twice, write_locked);
}

CORRECT(rwlock_tries)
{
    assert(pthread_rwlock_tryrdlock(&lock) == 0);
    assert(pthread_rwlock_trywrlock(&lock) == EBUSY);
    assert(pthread_rwlock_unlock(&lock) == 0);
    assert(pthread_rwlock_trywrlock(&lock) == 0);
    assert(pthread_rwlock_wrlock(&lock) == EDEADLK && pthread_rwlock_tryrdlock(&lock) == EBUSY);
    assert(pthread_rwlock_unlock(&lock) == 0);
}

BROKEN(rwlock_not_owned, "misuse")
{
    run_two(read_locked, read_locked);
    pthread_rwlock_unlock(&lock);
}

static void *arrive_first(void *unused)
{
    data = 1;
    pthread_barrier_wait(&barrier);
    assert(other == 1);
    return unused;
}

static void *arrive_second(void *unused)
{
    other = 1;
    pthread_barrier_wait(&barrier);
    assert(data == 1);
    return unused;
}

CORRECT(barrier_orders)
{
    pthread_barrier_init(&barrier, NULL, 2);
    run_two(arrive_first, arrive_second);
    assert(pthread_barrier_destroy(&barrier) == 0);
}

static void *arrive_before(void *unused)
{
    pthread_barrier_wait(&barrier);
    other = 1;
    return unused;
}

BROKEN(barrier_too_early, "race")
{
    pthread_barrier_init(&barrier, NULL, 2);
    run_two(arrive_first, arrive_before);
}

BROKEN(barrier_of_three, "deadlock")
{
    pthread_barrier_init(&barrier, NULL, 3);
    run_two(arrive_first, arrive_second);
}

static void initialize(void)
{
    data++;
}

static void *use_once(void *unused)
{
    pthread_once(&once, initialize);
    assert(data == 1);
    return unused;
}

CORRECT(once_runs_once)
{
    run_two(use_once, use_once);
}

static void *initialize_by_flag(void *unused)
{
    if (!data)
        initialize();
    return unused;
}

BROKEN(once_by_hand, "race")
{
    run_two(initialize_by_flag, initialize_by_flag);
}

static void initialize_again(void)
{
    pthread_once(&once, initialize_again);
}

BROKEN(once_in_itself, "deadlock")
{
    pthread_once(&once, initialize_again);
}

/* Either of two threads may run the routine. */
static pthread_t initializer;

static void note_initializer(void)
{
    initializer = pthread_self();
}

static void *note_once(void *unused)
{
    pthread_once(&once, note_initializer);
    return unused;
}

static int first_initializes(void)
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, note_once, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return pthread_equal(initializer, threads[0]);
}

BROKEN(once_by_first, "assertion")
{
    assert(first_initializes());
}

BROKEN(once_by_second, "assertion")
{
    assert(!first_initializes());
}

/* A writer keeps readers out once it waits, not once it is about to. */
static pthread_rwlock_t for_writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static atomic_int announced;

static void *announce_and_write(void *unused)
{
    atomic_store(&announced, 1);
    pthread_rwlock_wrlock(&for_writers);
    pthread_rwlock_unlock(&for_writers);
    return unused;
}

/* What the reader, which has the lock, gets when it knows of the writer. */
static int read_beside_writer(int unknown)
{
    pthread_t thread;
    int refused = unknown;

    pthread_rwlock_rdlock(&for_writers);
    pthread_create(&thread, NULL, announce_and_write, NULL);
    if (atomic_load(&announced)) {
        refused = pthread_rwlock_tryrdlock(&for_writers);
        if (refused == 0)
            pthread_rwlock_unlock(&for_writers);
    }
    pthread_rwlock_unlock(&for_writers);
    pthread_join(thread, NULL);
    return refused;
}

BROKEN(rwlock_writer_arrives, "assertion")
{
    assert(read_beside_writer(EBUSY) == EBUSY);
}

BROKEN(rwlock_writer_has_arrived, "assertion")
{
    assert(read_beside_writer(0) == 0);
}
