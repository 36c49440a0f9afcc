/* What Linux has for processes: shared futexes, process-shared mutexes, condition variables and semaphores. */
#include "../processes.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A word: 0 not signaled, 1 signaled, 2 a thread sleeps. */
typedef struct shared_word {
    uint32_t word;
} __attribute__((aligned(128))) shared_word;

static shared_word *words; /* by place and side, and one alone */

static long futex(uint32_t *word, int operation, uint32_t value)
{
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void word_set(shared_word *event)
{
    if (__atomic_exchange_n(&event->word, 1, __ATOMIC_RELEASE) == 2)
        futex(&event->word, FUTEX_WAKE, 1);
}

static void word_wait(shared_word *event)
{
    uint32_t one = 1;

    while (!__atomic_compare_exchange_n(&event->word, &one, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        uint32_t none = 0;

        one = 1;
        if (__atomic_compare_exchange_n(&event->word, &none, 2, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || none == 2)
            futex(&event->word, FUTEX_WAIT, 2);
    }
}

static void word_signal(unsigned place, unsigned side)
{
    word_set(&words[2 * place + side]);
}

static void word_await(unsigned place, unsigned side)
{
    word_wait(&words[2 * place + side]);
}

static sem_t *semaphores, *named;
static pthread_mutex_t *mutex;

static void semaphore_signal(unsigned place, unsigned side)
{
    sem_post(&semaphores[2 * place + side]);
}

static void semaphore_await(unsigned place, unsigned side)
{
    while (sem_wait(&semaphores[2 * place + side]) != 0)
        ;
}

static struct letter {
    pthread_mutex_t lock;
    pthread_cond_t told;
    int flag;
} *letters;

static void letter_signal(unsigned place, unsigned side)
{
    struct letter *letter = &letters[2 * place + side];

    pthread_mutex_lock(&letter->lock);
    letter->flag = 1;
    pthread_mutex_unlock(&letter->lock);
    pthread_cond_signal(&letter->told);
}

static void letter_await(unsigned place, unsigned side)
{
    struct letter *letter = &letters[2 * place + side];

    pthread_mutex_lock(&letter->lock);
    while (!letter->flag)
        pthread_cond_wait(&letter->told, &letter->lock);
    letter->flag = 0;
    pthread_mutex_unlock(&letter->lock);
}

BENCH_PAIR(run_word_pair, .signal = word_signal, .await = word_await)
BENCH_PAIR(run_semaphore_pair, .signal = semaphore_signal, .await = semaphore_await)
BENCH_PAIR(run_letter_pair, .signal = letter_signal, .await = letter_await)
BENCH_LOOP(run_word, word_set(&words[4]); word_wait(&words[4]))
BENCH_LOOP(run_semaphore, sem_post(&semaphores[4]); sem_wait(&semaphores[4]))
BENCH_LOOP(run_named, sem_post(named); sem_wait(named))
BENCH_LOOP(run_mutex, pthread_mutex_lock(mutex); pthread_mutex_unlock(mutex))

static void make_letters(void)
{
    pthread_mutexattr_t lock;
    pthread_condattr_t told;

    letters = bench_share(4 * sizeof(*letters));
    mutex = bench_share(sizeof(*mutex));
    pthread_mutexattr_init(&lock);
    pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&told);
    pthread_condattr_setpshared(&told, PTHREAD_PROCESS_SHARED);
    for (unsigned i = 0; i < 4; i++) {
        pthread_mutex_init(&letters[i].lock, &lock);
        pthread_cond_init(&letters[i].told, &told);
    }
    pthread_mutexattr_setrobust(&lock, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &lock);
}

BENCH_CONTENDERS(processes, NULL)
{
    char name[64];

    words = bench_share(5 * sizeof(*words));
    semaphores = bench_share(5 * sizeof(*semaphores));
    for (unsigned i = 0; i < 5; i++)
        sem_init(&semaphores[i], 1, 0);
    snprintf(name, sizeof(name), "/interlock-bench-%ld", (long)getpid());
    named = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    sem_unlink(name);
    make_letters();
    bench_add_loop("process-event", BENCH_PEER, "shared futex", 0, run_word_pair);
    bench_add_loop("process-event", BENCH_PEER, "sem_t, process-shared", 0, run_semaphore_pair);
    bench_add_loop("process-event", BENCH_PEER, "pthread_cond_t, process-shared", 0, run_letter_pair);
    bench_add_loop("named-event", BENCH_PEER, "shared futex", 0, run_word);
    bench_add_loop("named-semaphore", BENCH_PEER, "sem_t, process-shared", 0, run_semaphore);
    if (named != SEM_FAILED)
        bench_add_loop("named-semaphore", BENCH_PEER, "sem_open", 0, run_named);
    bench_add_loop("named-mutex", BENCH_PEER, "pthread_mutex_t, process-shared, robust", 0, run_mutex);
}
