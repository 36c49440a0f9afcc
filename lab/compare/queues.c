/* queues.c: Treiber's stack, Michael and Scott's queue, Chase and Lev's deque, a ring buffer, a queue with condition variables. */
#include "compare.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct node {
    int value;
    struct node *_Atomic next;
} node;

/* Treiber's stack. A popped node is not freed while another thread may read it. */

static node *_Atomic top;
static node nodes[3];

static void push(node *n, int value, memory_order order)
{
    n->value = value;
    node *old = atomic_load_explicit(&top, RELAXED);
    do
        atomic_store_explicit(&n->next, old, RELAXED);
    while (!atomic_compare_exchange_weak_explicit(&top, &old, n, order, RELAXED));
}

static node *pop(void)
{
    node *old = atomic_load_explicit(&top, ACQUIRE);

    while (old != NULL && !atomic_compare_exchange_weak_explicit(
                              &top, &old, atomic_load_explicit(&old->next, RELAXED), ACQUIRE, ACQUIRE)) {
    }
    return old;
}

static void *push_and_pop(void *number)
{
    int value = (int)(uintptr_t)number;

    push(&nodes[value - 1], value, RELEASE);
    node *n = pop();
    assert(n != NULL && n->value >= 1 && n->value <= 3);
    return NULL;
}

static void *push_relaxed(void *number)
{
    push(&nodes[(uintptr_t)number - 1], 1, RELAXED);
    return NULL;
}

static void *pop_one(void *unused)
{
    node *n = pop();

    if (n != NULL)
        assert(n->value == 1);
    return unused;
}

CORRECT(treiber_stack, "c11")
{
    RUN(push_and_pop, push_and_pop);
    assert(atomic_load(&top) == NULL);
}

BROKEN(treiber_stack_relaxed, "c11", "race")
{
    RUN(push_relaxed, pop_one);
}

/* Michael and Scott's queue, without reuse of nodes. */

static node *_Atomic head, *_Atomic tail;
static node dummy, items[2];

static void enqueue(node *n, int value, memory_order order)
{
    n->value = value;
    atomic_store_explicit(&n->next, NULL, RELAXED);
    for (;;) {
        node *last = atomic_load_explicit(&tail, ACQUIRE), *next = atomic_load_explicit(&last->next, ACQUIRE);

        if (next != NULL) {
            atomic_compare_exchange_strong_explicit(&tail, &last, next, RELEASE, RELAXED);
        } else if (atomic_compare_exchange_strong_explicit(&last->next, &next, n, order, RELAXED)) {
            atomic_compare_exchange_strong_explicit(&tail, &last, n, RELEASE, RELAXED);
            return;
        }
    }
}

static int dequeue(void)
{
    for (;;) {
        node *front = atomic_load_explicit(&head, ACQUIRE), *next = atomic_load_explicit(&front->next, ACQUIRE);

        if (next == NULL)
            return 0;
        int value = next->value;
        if (atomic_compare_exchange_strong_explicit(&head, &front, next, RELEASE, RELAXED))
            return value;
    }
}

static void empty_queue(void)
{
    atomic_store(&head, &dummy);
    atomic_store(&tail, &dummy);
}

static void *enqueue_one(void *number)
{
    enqueue(&items[(uintptr_t)number - 1], (int)(uintptr_t)number, RELEASE);
    return NULL;
}

static void *enqueue_relaxed(void *number)
{
    enqueue(&items[(uintptr_t)number - 1], (int)(uintptr_t)number, RELAXED);
    return NULL;
}

static void *dequeue_one(void *unused)
{
    int value = dequeue();

    assert(value >= 0 && value <= 2);
    return unused;
}

CORRECT(michael_scott_queue, "c11")
{
    empty_queue();
    RUN(enqueue_one, enqueue_one, dequeue_one);
}

BROKEN(michael_scott_queue_relaxed, "c11", "race")
{
    empty_queue();
    RUN(enqueue_relaxed, dequeue_one);
}

/* Chase and Lev's deque, as corrected for C11 by Le, Pop, Cohen and Zappa Nardelli. */

static atomic_int deque_top, deque_bottom, slots[4];
static atomic_int taken[3];

static void deque_push(int value)
{
    int bottom = atomic_load_explicit(&deque_bottom, RELAXED);

    atomic_store_explicit(&slots[bottom & 3], value, RELAXED);
    atomic_thread_fence(RELEASE);
    atomic_store_explicit(&deque_bottom, bottom + 1, RELAXED);
}

static int deque_take(bool fenced)
{
    int bottom = atomic_load_explicit(&deque_bottom, RELAXED) - 1, value = 0;

    atomic_store_explicit(&deque_bottom, bottom, RELAXED);
    if (fenced)
        atomic_thread_fence(STRONG);
    int first = atomic_load_explicit(&deque_top, RELAXED);
    if (first <= bottom) {
        value = atomic_load_explicit(&slots[bottom & 3], RELAXED);
        if (first == bottom) {
            if (!atomic_compare_exchange_strong_explicit(&deque_top, &first, first + 1, STRONG, RELAXED))
                value = 0;
            atomic_store_explicit(&deque_bottom, bottom + 1, RELAXED);
        }
    } else {
        atomic_store_explicit(&deque_bottom, bottom + 1, RELAXED);
    }
    return value;
}

static int deque_steal(void)
{
    int first = atomic_load_explicit(&deque_top, ACQUIRE);

    atomic_thread_fence(STRONG);
    int bottom = atomic_load_explicit(&deque_bottom, ACQUIRE);
    if (first >= bottom)
        return 0;
    int value = atomic_load_explicit(&slots[first & 3], RELAXED);
    return atomic_compare_exchange_strong_explicit(&deque_top, &first, first + 1, STRONG, RELAXED) ? value : 0;
}

static void take_once(int value)
{
    if (value != 0)
        assert(atomic_fetch_add_explicit(&taken[value], 1, RELAXED) == 0);
}

static void *own_deque(void *unused)
{
    deque_push(1);
    deque_push(2);
    take_once(deque_take(true));
    take_once(deque_take(true));
    return unused;
}

static void *own_deque_unfenced(void *unused)
{
    deque_push(1);
    deque_push(2);
    take_once(deque_take(false));
    take_once(deque_take(false));
    return unused;
}

static void *steal_twice(void *unused)
{
    take_once(deque_steal());
    take_once(deque_steal());
    return unused;
}

static void *steal_once(void *unused)
{
    take_once(deque_steal());
    return unused;
}

CORRECT(chase_lev_deque, "c11")
{
    RUN(own_deque, steal_once);
}

BROKEN(chase_lev_deque_unfenced, "c11", "assertion")
{
    RUN(own_deque_unfenced, steal_twice);
}

/* A ring buffer for one producer and one consumer. */

static int ring[2];
static atomic_uint written, consumed;

static void produce(memory_order order)
{
    for (unsigned i = 0; i < 3; i++) {
        while (i - atomic_load_explicit(&consumed, ACQUIRE) == 2) {
        }
        ring[i % 2] = (int)i + 1;
        atomic_store_explicit(&written, i + 1, order);
    }
}

static void *produce_ring(void *unused)
{
    produce(RELEASE);
    return unused;
}

static void *produce_ring_relaxed(void *unused)
{
    produce(RELAXED);
    return unused;
}

static void *consume_ring(void *unused)
{
    for (unsigned i = 0; i < 3; i++) {
        while (atomic_load_explicit(&written, ACQUIRE) == i) {
        }
        assert(ring[i % 2] == (int)i + 1);
        atomic_store_explicit(&consumed, i + 1, RELEASE);
    }
    return unused;
}

CORRECT(ring_buffer, "c11")
{
    RUN(produce_ring, consume_ring);
}

BROKEN(ring_buffer_relaxed, "c11", "race")
{
    RUN(produce_ring_relaxed, consume_ring);
}

/* A queue with a mutex and condition variables. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int stored, count;

static void put(int value, pthread_cond_t *empty, pthread_cond_t *full)
{
    pthread_mutex_lock(&mutex);
    while (count == 1)
        pthread_cond_wait(full, &mutex);
    stored = value;
    count = 1;
    pthread_cond_signal(empty);
    pthread_mutex_unlock(&mutex);
}

static void get(pthread_cond_t *empty, pthread_cond_t *full)
{
    pthread_mutex_lock(&mutex);
    while (count == 0)
        pthread_cond_wait(empty, &mutex);
    assert(stored != 0);
    count = 0;
    pthread_cond_signal(full);
    pthread_mutex_unlock(&mutex);
}

static void *put_two(void *number)
{
    put((int)(uintptr_t)number, &not_empty, &not_full);
    return NULL;
}

static void *get_two(void *unused)
{
    get(&not_empty, &not_full);
    return unused;
}

static void *put_shared(void *number)
{
    put((int)(uintptr_t)number, &not_empty, &not_empty);
    return NULL;
}

static void *get_shared(void *unused)
{
    get(&not_empty, &not_empty);
    return unused;
}

CORRECT(condition_queue, "sc")
{
    RUN(put_two, put_two, get_two, get_two);
}

/* One condition variable for two conditions: a signal may wake the wrong thread. */
BROKEN(condition_queue_shared, "sc", "deadlock")
{
    RUN(put_shared, put_shared, get_shared, get_shared);
}

/* RCU-like: a writer replaces a version, waits until the reader is quiescent, and frees the old one. */

typedef struct version {
    int value;
} version;

static version *_Atomic current;
static atomic_int inside;

static void *read_version(void *unused)
{
    atomic_store_explicit(&inside, 1, STRONG);
    version *v = atomic_load_explicit(&current, STRONG);
    assert(v->value == 1 || v->value == 2);
    atomic_store_explicit(&inside, 0, RELEASE);
    return unused;
}

static void *read_version_relaxed(void *unused)
{
    atomic_store_explicit(&inside, 1, RELEASE);
    version *v = atomic_load_explicit(&current, ACQUIRE);
    assert(v->value == 1 || v->value == 2);
    atomic_store_explicit(&inside, 0, RELEASE);
    return unused;
}

static void *replace_version(void *unused)
{
    version *made = malloc(sizeof(*made)), *old;

    made->value = 2;
    old = atomic_exchange_explicit(&current, made, STRONG);
    while (atomic_load_explicit(&inside, STRONG)) {
    }
    free(old);
    return unused;
}

static void first_version(void)
{
    version *v = malloc(sizeof(*v));

    v->value = 1;
    atomic_store(&current, v);
}

CORRECT(rcu, "c11")
{
    first_version();
    RUN(read_version, replace_version);
}

BROKEN(rcu_without_fence, "c11", "race")
{
    first_version();
    RUN(read_version_relaxed, replace_version);
}
