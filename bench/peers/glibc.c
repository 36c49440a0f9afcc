/* The locks of the C library. */
#include "../bench.h"

#include <gnu/libc-version.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "../heap.h"
#include "../exchange.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore, semaphores[2], gate;

static void initialize_once(void)
{
}

BENCH_LOOP(run_mutex, pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex))
BENCH_LOOP_WITHIN(run_again, pthread_mutex_lock(&recursive); (void)row, pthread_mutex_lock(&recursive);
                  pthread_mutex_unlock(&recursive), pthread_mutex_unlock(&recursive))
BENCH_LOOP(run_write, pthread_rwlock_wrlock(&rwlock); pthread_rwlock_unlock(&rwlock))
BENCH_LOOP(run_read, pthread_rwlock_rdlock(&rwlock); pthread_rwlock_unlock(&rwlock))
BENCH_LOOP(run_spin, pthread_spin_lock(&spin); pthread_spin_unlock(&spin))
BENCH_LOOP(run_semaphore, sem_post(&semaphore); sem_wait(&semaphore))
BENCH_LOOP(run_once, pthread_once(&once, initialize_once))

BENCH_MUTEX_WORK(work_mutex, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
BENCH_MUTEX_WORK(work_adaptive, pthread_mutex_lock(&adaptive), pthread_mutex_unlock(&adaptive))
BENCH_MUTEX_WORK(work_spin, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))
BENCH_WORK(work_rwlock, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock), pthread_rwlock_rdlock(&rwlock),
           pthread_rwlock_unlock(&rwlock))

static void post(unsigned side)
{
    sem_post(&semaphores[side]);
}

static void await(unsigned side)
{
    sem_wait(&semaphores[side]);
}

BENCH_CONDITION(condition, pthread_mutex_t lock;
                pthread_cond_t variable, pthread_mutex_lock(&letter->lock), pthread_mutex_unlock(&letter->lock),
                pthread_cond_wait(&letter->variable, &letter->lock), pthread_cond_signal(&letter->variable))

/* A list under a mutex with a condition variable: the usual code without a library. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t variable;
    bench_item *first, **last;
} list = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &list.first};

static void put(bench_item *item)
{
    item->link[0] = NULL;
    pthread_mutex_lock(&list.lock);
    *list.last = item;
    list.last = (bench_item **)&item->link[0];
    pthread_mutex_unlock(&list.lock);
    pthread_cond_signal(&list.variable);
}

static bench_item *get(void)
{
    bench_item *item;

    pthread_mutex_lock(&list.lock);
    while (list.first == NULL)
        pthread_cond_wait(&list.variable, &list.lock);
    item = list.first;
    list.first = item->link[0];
    if (list.first == NULL)
        list.last = &list.first;
    pthread_mutex_unlock(&list.lock);
    return item;
}

static bench_item *stack;

static void push(bench_item *item)
{
    pthread_mutex_lock(&mutex);
    item->link[0] = stack;
    stack = item;
    pthread_mutex_unlock(&mutex);
}

static bench_item *pop(void)
{
    bench_item *item;

    pthread_mutex_lock(&mutex);
    item = stack;
    stack = item->link[0];
    pthread_mutex_unlock(&mutex);
    return item;
}

static bench_item one;

BENCH_LOOP(run_queue, put(&one); bench_keep(get()))
BENCH_STACK(run_stack, work_stack, push(item), pop())

static void *end_at_once(void *unused)
{
    return unused;
}

static void start_and_join(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
        pthread_join(thread, NULL);
}

BENCH_LOOP(run_thread, start_and_join())

static void use(void)
{
    sem_post(&semaphore);
    sem_wait(&semaphore);
}

static void block(void)
{
    sem_wait(&gate);
    sem_post(&gate);
}

static void open_gate(void)
{
    sem_post(&gate);
}

static double heap_of_thread(const bench_row *row)
{
    (void)row;
    sem_init(&gate, 0, 0);
    return bench_heap(use, block, open_gate).of_thread;
}

static double heap_of_waiter(const bench_row *row)
{
    (void)row;
    sem_init(&gate, 0, 0);
    return bench_heap(use, block, open_gate).of_waiter;
}

BENCH_SIZE(size_mutex, sizeof(pthread_mutex_t))
BENCH_SIZE(size_rwlock, sizeof(pthread_rwlock_t))
BENCH_SIZE(size_semaphore, sizeof(sem_t))

/* An object that is found by a pointer, on the heap. */
static void *new_semaphore(void)
{
    sem_t *made = malloc(sizeof(*made));

    if (made != NULL)
        sem_init(made, 0, 0);
    return made;
}

static void *new_mutex(void)
{
    pthread_mutex_t *made = malloc(sizeof(*made));

    if (made != NULL)
        pthread_mutex_init(made, NULL);
    return made;
}

BENCH_HEAP_OF(heap_of_semaphore, new_semaphore)
BENCH_HEAP_OF(heap_of_mutex, new_mutex)

BENCH_CONTENDERS(glibc, gnu_get_libc_version())
{
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&semaphore, 0, 0);
    sem_init(&semaphores[0], 0, 0);
    sem_init(&semaphores[1], 0, 0);

    bench_add_loop("exclusive", BENCH_PEER, "glibc mutex", 0, run_mutex);
    bench_add_loop("exclusive", BENCH_PEER, "glibc rwlock", 0, run_write);
    bench_add_loop("shared", BENCH_PEER, "glibc rwlock", 0, run_read);
    bench_add_loop("recursive", BENCH_PEER, "glibc recursive mutex", 0, run_again);
    bench_add_loop("spinlock", BENCH_PEER, "glibc spin lock", 0, run_spin);
    bench_add_loop("event", BENCH_PEER, "glibc sem_t", 0, run_semaphore);
    bench_add_loop("semaphore", BENCH_PEER, "glibc sem_t", 0, run_semaphore);
    bench_add_loop("once", BENCH_PEER, "glibc pthread_once", 0, run_once);
    bench_add_loop("new-thread", BENCH_PEER, "glibc pthread_create, pthread_join", 0, run_thread);
    bench_add_contended("mutex", BENCH_PEER, "glibc mutex", work_mutex);
    bench_add_contended("mutex", BENCH_PEER, "glibc adaptive mutex", work_adaptive);
    bench_add_contended("spin", BENCH_PEER, "glibc spin lock", work_spin);
    bench_add_contended("rwlock", BENCH_PEER, "glibc rwlock", work_rwlock);
    bench_add_exchange("event", BENCH_PEER, "glibc sem_t", post, await);
    bench_add_exchange("condition", BENCH_PEER, "glibc condition variable", condition_signal, condition_await);
    bench_add_loop("queue", BENCH_PEER, "glibc mutex, condition, list", 0, run_queue);
    bench_add_stream("queue", BENCH_PEER, "glibc mutex, condition, list", put, get);
    bench_add_stream("port", BENCH_PEER, "glibc mutex, condition, list", put, get);
    bench_add_loop("stack", BENCH_PEER, "glibc mutex, list", 0, run_stack);
    bench_add_contended("stack", BENCH_PEER, "glibc mutex, list", work_stack);
    bench_add_value("bytes-object", BENCH_PEER, "glibc sem_t, malloc", 0, heap_of_semaphore);
    bench_add_value("bytes-object", BENCH_PEER, "glibc mutex, malloc", 0, heap_of_mutex);
    bench_add_value("bytes-thread", BENCH_PEER, "glibc sem_t", 0, heap_of_thread);
    bench_add_value("bytes-waiter", BENCH_PEER, "glibc sem_t", 0, heap_of_waiter);
    bench_add_value("bytes-lock", BENCH_PEER, "glibc mutex", 0, size_mutex);
    bench_add_value("bytes-lock", BENCH_PEER, "glibc rwlock", 0, size_rwlock);
    bench_add_value("bytes-event", BENCH_PEER, "glibc sem_t", 0, size_semaphore);
}
