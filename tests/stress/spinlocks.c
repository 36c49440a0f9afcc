/*
 * Queued spinlocks, reader/writer spinlocks, and operations under a spinlock, with many threads. The program runs on
 * machines with 1, 2, 64 and 2560 processors.
 */
#include "stress.h"

#include <interlock/ex.h>

#define NODES 64
#define LOCKS 3

static const unsigned thread_counts[] = {2, 4, 16, 64};

/* Threads that wait in line advance at the host's pace, and with one processor they also wait in line for that one: so
   all threads share the rounds, and one processor gets fewer. */
static unsigned long rounds_each(unsigned long rounds, unsigned threads)
{
    return test_rounds(KeNumberProcessors == 1 ? rounds / 100 : rounds) / threads + 1;
}

/* Queued spinlocks: protected data changes under its lock only. */

typedef struct guarded {
    KSPIN_LOCK lock __attribute__((aligned(64)));
    volatile ULONG inside;
    unsigned long count; /* not atomic: the lock protects it */
} guarded;

typedef struct queued {
    guarded in_stack, entry, numbered;
    unsigned long rounds;
    volatile unsigned long refused;
} queued;

/* Sometimes the owner yields the host's CPU, so that others queue. */
static void pause_sometimes(unsigned long count)
{
    if (count % 4096 == 0)
        sched_yield();
}

static void use(guarded *g)
{
    require(__atomic_exchange_n(&g->inside, 1, __ATOMIC_RELAXED) == 0);
    pause_sometimes(g->count++);
    require(__atomic_exchange_n(&g->inside, 0, __ATOMIC_RELAXED) == 1);
}

/* The handle's memory is reused right after the release. */
static void use_in_stack(queued *q)
{
    KLOCK_QUEUE_HANDLE *handle = malloc(sizeof(*handle));

    KeAcquireInStackQueuedSpinLock(&q->in_stack.lock, handle);
    use(&q->in_stack);
    KeReleaseInStackQueuedSpinLock(handle);
    free(handle);
}

static void use_at_dpc_level(queued *q)
{
    KSPIN_LOCK_QUEUE entry = {NULL, &q->entry.lock};
    KIRQL old = KeRaiseIrqlToDpcLevel();

    for (int i = 0; i < 3; i++) {
        KeAcquireQueuedSpinLockAtDpcLevel(&entry);
        use(&q->entry);
        KeReleaseQueuedSpinLockFromDpcLevel(&entry);
        require(entry.Next == NULL && entry.Lock == &q->entry.lock);
    }
    KeLowerIrql(old);
}

static void use_numbered(queued *q, int synch)
{
    KIRQL old = synch ? KeAcquireQueuedSpinLockRaiseToSynch(LockQueueNtfsStructLock) :
                        KeAcquireQueuedSpinLock(LockQueueNtfsStructLock);

    use(&q->numbered);
    KeReleaseQueuedSpinLock(LockQueueNtfsStructLock, old);
}

/* TRUE: it was free. */
static int try_numbered(queued *q)
{
    KIRQL old;

    if (!KeTryToAcquireQueuedSpinLock(LockQueueNtfsStructLock, &old))
        return 0;
    use(&q->numbered);
    KeReleaseQueuedSpinLock(LockQueueNtfsStructLock, old);
    return 1;
}

/* Nested. */
static void use_nested(queued *q)
{
    KLOCK_QUEUE_HANDLE handle;
    KIRQL old = KeAcquireQueuedSpinLock(LockQueueNtfsStructLock);

    KeAcquireInStackQueuedSpinLockAtDpcLevel(&q->in_stack.lock, &handle);
    use(&q->in_stack);
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle);
    use(&q->numbered);
    KeReleaseQueuedSpinLock(LockQueueNtfsStructLock, old);
}

static void queue_up(void *argument, unsigned index)
{
    queued *q = argument;
    unsigned long refused = 0;
    test_random random;

    random_seed(&random, index);
    for (unsigned long round = 0; round < q->rounds; round++) {
        switch (round % 5) {
        case 0:
            use_in_stack(q);
            break;
        case 1:
            use_at_dpc_level(q);
            break;
        case 2:
            use_numbered(q, (int)random_below(&random, 2));
            break;
        case 3:
            refused += !try_numbered(q);
            break;
        default:
            use_nested(q);
            break;
        }
    }
    require(KeGetCurrentIrql() == PASSIVE_LEVEL);
    __atomic_fetch_add(&q->refused, refused, __ATOMIC_RELAXED);
}

static void queued_locks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(thread_counts) / sizeof(thread_counts[0]); i++) {
        queued q = {.rounds = rounds_each(200000, thread_counts[i]) / 5 * 5};
        unsigned long fifth = q.rounds / 5 * thread_counts[i];

        run_threads(thread_counts[i], HANG_SECONDS, queue_up, &q);
        assert_int_equal(q.in_stack.count, 2 * fifth);
        assert_int_equal(q.entry.count, 3 * fifth);
        assert_int_equal(q.numbered.count, 3 * fifth - q.refused);
        assert_int_equal(q.in_stack.lock, 0);
        assert_int_equal(q.entry.lock, 0);
    }
}

/* Readers and writers. */

typedef struct shared {
    EX_SPIN_LOCK lock __attribute__((aligned(64)));
    volatile ULONG readers, writers;
    unsigned long first, second; /* equal whenever no writer is inside */
    unsigned long rounds;
    volatile unsigned long written, together;
} shared;

static void look(shared *s)
{
    if (__atomic_fetch_add(&s->readers, 1, __ATOMIC_RELAXED) != 0)
        __atomic_fetch_add(&s->together, 1, __ATOMIC_RELAXED);
    require(load(&s->writers) == 0);
    require(s->first == s->second);
}

static void stop_looking(shared *s)
{
    __atomic_fetch_sub(&s->readers, 1, __ATOMIC_RELAXED);
}

static void change(shared *s)
{
    require(__atomic_fetch_add(&s->writers, 1, __ATOMIC_RELAXED) == 0);
    require(load(&s->readers) == 0);
    pause_sometimes(s->first++);
    s->second++;
    __atomic_fetch_sub(&s->writers, 1, __ATOMIC_RELAXED);
}

static unsigned long convert(shared *s)
{
    KIRQL old = ExAcquireSpinLockShared(&s->lock);

    look(s);
    stop_looking(s);
    if (ExTryConvertSharedSpinLockToExclusive(&s->lock)) {
        change(s);
        ExReleaseSpinLockExclusive(&s->lock, old);
        return 1;
    }
    ExReleaseSpinLockShared(&s->lock, old);
    return 0;
}

static unsigned long try_both(shared *s)
{
    KIRQL old = KeRaiseIrqlToDpcLevel();
    unsigned long changed = 0;

    if (ExTryAcquireSpinLockExclusiveAtDpcLevel(&s->lock)) {
        change(s);
        ExReleaseSpinLockExclusiveFromDpcLevel(&s->lock);
        changed = 1;
    } else if (ExTryAcquireSpinLockSharedAtDpcLevel(&s->lock)) {
        look(s);
        stop_looking(s);
        ExReleaseSpinLockSharedFromDpcLevel(&s->lock);
    }
    KeLowerIrql(old);
    return changed;
}

static void read_and_write(void *argument, unsigned index)
{
    shared *s = argument;
    unsigned long written = 0;
    test_random random;
    KIRQL old;

    random_seed(&random, index);
    for (unsigned long round = 0; round < s->rounds; round++) {
        switch (random_below(&random, 8)) {
        case 0:
            old = ExAcquireSpinLockExclusive(&s->lock);
            change(s);
            ExReleaseSpinLockExclusive(&s->lock, old);
            written++;
            break;
        case 1:
            written += convert(s);
            break;
        case 2:
            written += try_both(s);
            break;
        default:
            old = ExAcquireSpinLockShared(&s->lock);
            look(s);
            pause_sometimes(round);
            stop_looking(s);
            ExReleaseSpinLockShared(&s->lock, old);
            break;
        }
    }
    __atomic_fetch_add(&s->written, written, __ATOMIC_RELAXED);
}

static void readers_and_writers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(thread_counts) / sizeof(thread_counts[0]); i++) {
        shared s = {.rounds = rounds_each(1000000, thread_counts[i])};

        run_threads(thread_counts[i], HANG_SECONDS, read_and_write, &s);
        assert_int_equal(s.lock, 0);
        assert_int_equal(s.first, s.written);
        assert_int_equal(s.second, s.written);
    }
}

/* A writer gets in even if readers continuously enter and leave and overlap. */

typedef struct crowd {
    EX_SPIN_LOCK lock;
    volatile ULONG stop;
    unsigned long rounds;
} crowd;

static void crowd_in(void *argument, unsigned index)
{
    crowd *c = argument;

    if (index == 0) {
        for (unsigned long round = 0; round < c->rounds; round++)
            ExReleaseSpinLockExclusive(&c->lock, ExAcquireSpinLockExclusive(&c->lock));
        store(&c->stop, 1);
        return;
    }
    while (!load(&c->stop)) {
        KIRQL old = ExAcquireSpinLockShared(&c->lock);

        spin_for(20);
        ExReleaseSpinLockShared(&c->lock, old);
    }
}

static void writers_do_not_starve(void **state)
{
    crowd c = {.rounds = rounds_each(20000, 1)};

    (void)state;
    run_threads(4, HANG_SECONDS, crowd_in, &c);
    assert_int_equal(c.lock, 0);
}

/* Operations under a spinlock. */

typedef struct listed {
    KSPIN_LOCK locks[LOCKS];
    LIST_ENTRY queue;
    SINGLE_LIST_ENTRY stack;
    ULONG small;
    LARGE_INTEGER large;
    struct node {
        LIST_ENTRY link;
        SINGLE_LIST_ENTRY single;
        volatile ULONG taken;
    } nodes[NODES];
    unsigned long rounds;
} listed;

static void move_in_queue(listed *l, int to_head)
{
    PLIST_ENTRY link = ExInterlockedRemoveHeadList(&l->queue, &l->locks[0]);
    struct node *n = CONTAINING_RECORD(link, struct node, link);

    if (link == NULL)
        return;
    require(__atomic_exchange_n(&n->taken, 1, __ATOMIC_RELAXED) == 0);
    __atomic_store_n(&n->taken, 0, __ATOMIC_RELAXED);
    if (to_head)
        ExInterlockedInsertHeadList(&l->queue, link, &l->locks[0]);
    else
        ExInterlockedInsertTailList(&l->queue, link, &l->locks[0]);
}

static void move_in_stack(listed *l)
{
    PSINGLE_LIST_ENTRY link = ExInterlockedPopEntryList(&l->stack, &l->locks[1]);

    if (link != NULL)
        ExInterlockedPushEntryList(&l->stack, link, &l->locks[1]);
}

static void operate(void *argument, unsigned index)
{
    static const LARGE_INTEGER two = {.QuadPart = 2};
    listed *l = argument;
    test_random random;
    KIRQL level, old;

    random_seed(&random, index);
    for (unsigned long round = 0; round < l->rounds; round++) {
        level = (KIRQL)(random_below(&random, 4) == 0 ? DISPATCH_LEVEL : PASSIVE_LEVEL);
        KeRaiseIrql(level, &old);
        move_in_queue(l, (int)(round & 1));
        move_in_stack(l);
        ExInterlockedAddUlong(&l->small, 3, &l->locks[2]);
        ExInterlockedAddLargeInteger(&l->large, two, &l->locks[2]);
        require(KeGetCurrentIrql() == level);
        KeLowerIrql(old);
    }
}

static void operations_under_a_lock(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(thread_counts) / sizeof(thread_counts[0]); i++) {
        static listed l;
        unsigned in_queue = 0, in_stack = 0;
        unsigned long operations;

        memset(&l, 0, sizeof(l));
        InitializeListHead(&l.queue);
        l.rounds = rounds_each(300000, thread_counts[i]);
        for (int n = 0; n < NODES; n++) {
            InsertTailList(&l.queue, &l.nodes[n].link);
            PushEntryList(&l.stack, &l.nodes[n].single);
        }
        run_threads(thread_counts[i], HANG_SECONDS, operate, &l);
        operations = l.rounds * thread_counts[i];
        while (ExInterlockedRemoveHeadList(&l.queue, &l.locks[0]) != NULL)
            in_queue++;
        while (ExInterlockedPopEntryList(&l.stack, &l.locks[1]) != NULL)
            in_stack++;
        assert_int_equal(in_queue, NODES);
        assert_int_equal(in_stack, NODES);
        assert_int_equal(l.small, (ULONG)(3 * operations));
        assert_int_equal(l.large.QuadPart, 2 * operations);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(queued_locks),
        cmocka_unit_test(readers_and_writers),
        cmocka_unit_test(writers_do_not_starve),
        cmocka_unit_test(operations_under_a_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
