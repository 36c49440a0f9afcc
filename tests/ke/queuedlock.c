/*
 * Queued spinlocks. Numbers are those of the requirements in ke/spinlock.c. The program runs on machines with 1, 2, 64
 * and 2560 processors; cases that need more processors are skipped.
 */
#include "child.h"
#include "machine.h"
#include "sanitizers.h"
#include "withsetting.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "ke/irql.h"

#define MOST_WAITERS 8
#define SECONDS 60

static unsigned processors(void)
{
    return KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS);
}

static KSPIN_LOCK read_lock(KSPIN_LOCK *lock)
{
    return __atomic_load_n(lock, __ATOMIC_ACQUIRE);
}

static ULONG_PTR lock_of(KSPIN_LOCK_QUEUE *entry)
{
    return (ULONG_PTR)__atomic_load_n(&entry->Lock, __ATOMIC_ACQUIRE) & ~(ULONG_PTR)7;
}

static unsigned bits_of(KSPIN_LOCK_QUEUE *entry)
{
    return (ULONG_PTR)__atomic_load_n(&entry->Lock, __ATOMIC_ACQUIRE) & (LOCK_QUEUE_OWNER | LOCK_QUEUE_WAIT);
}

static KSPIN_LOCK_QUEUE *next_of(KSPIN_LOCK_QUEUE *entry)
{
    return __atomic_load_n(&entry->Next, __ATOMIC_ACQUIRE);
}

static KSPIN_LOCK_QUEUE *own_entry(KSPIN_LOCK_QUEUE_NUMBER number)
{
    return &KiCurrentThread()->Prcb->LockQueue[number];
}

/* Every way to take a lock: the resulting level, from each level, and that the release restores everything. */

static KSPIN_LOCK the_lock;
static KLOCK_QUEUE_HANDLE the_handle;
static KSPIN_LOCK_QUEUE the_entry = {NULL, &the_lock};
static KIRQL old_irql;

static void acquire_numbered(void) { old_irql = KeAcquireQueuedSpinLock(LockQueueIoVpbLock); }
static void acquire_numbered_synch(void) { old_irql = KeAcquireQueuedSpinLockRaiseToSynch(LockQueueIoVpbLock); }
static void try_numbered(void) { assert_true(KeTryToAcquireQueuedSpinLock(LockQueueIoVpbLock, &old_irql)); }
static void try_numbered_synch(void)
{
    assert_true(KeTryToAcquireQueuedSpinLockRaiseToSynch(LockQueueIoVpbLock, &old_irql));
}
static void release_numbered(void) { KeReleaseQueuedSpinLock(LockQueueIoVpbLock, old_irql); }
static void acquire_entry(void) { KeAcquireQueuedSpinLockAtDpcLevel(&the_entry); }
static void try_entry(void) { assert_true(KeTryToAcquireQueuedSpinLockAtDpcLevel(&the_entry)); }
static void release_entry(void) { KeReleaseQueuedSpinLockFromDpcLevel(&the_entry); }
static void acquire_in_stack(void) { KeAcquireInStackQueuedSpinLock(&the_lock, &the_handle); }
static void acquire_in_stack_synch(void) { KeAcquireInStackQueuedSpinLockRaiseToSynch(&the_lock, &the_handle); }
static void release_in_stack(void) { KeReleaseInStackQueuedSpinLock(&the_handle); }
static void acquire_in_stack_dpc(void) { KeAcquireInStackQueuedSpinLockAtDpcLevel(&the_lock, &the_handle); }
static void release_in_stack_dpc(void) { KeReleaseInStackQueuedSpinLockFromDpcLevel(&the_handle); }
static void acquire_in_stack_for_dpc(void) { KeAcquireInStackQueuedSpinLockForDpc(&the_lock, &the_handle); }
static void release_in_stack_for_dpc(void) { KeReleaseInStackQueuedSpinLockForDpc(&the_handle); }

static void levels(void **state)
{
    static const struct {
        void (*acquire)(void);
        void (*release)(void);
        KIRQL from, held;
    } ways[] = {
        {acquire_numbered, release_numbered, PASSIVE_LEVEL, DISPATCH_LEVEL},
        {acquire_numbered, release_numbered, APC_LEVEL, DISPATCH_LEVEL},
        {acquire_numbered, release_numbered, DISPATCH_LEVEL, DISPATCH_LEVEL},
        {acquire_numbered_synch, release_numbered, PASSIVE_LEVEL, SYNCH_LEVEL},
        {acquire_numbered_synch, release_numbered, DISPATCH_LEVEL, SYNCH_LEVEL},
        {try_numbered, release_numbered, PASSIVE_LEVEL, DISPATCH_LEVEL},
        {try_numbered_synch, release_numbered, APC_LEVEL, SYNCH_LEVEL},
        {acquire_entry, release_entry, DISPATCH_LEVEL, DISPATCH_LEVEL},
        {acquire_entry, release_entry, HIGH_LEVEL, HIGH_LEVEL},
        {try_entry, release_entry, DISPATCH_LEVEL, DISPATCH_LEVEL},
        {acquire_in_stack, release_in_stack, PASSIVE_LEVEL, DISPATCH_LEVEL},
        {acquire_in_stack, release_in_stack, APC_LEVEL, DISPATCH_LEVEL},
        {acquire_in_stack_synch, release_in_stack, PASSIVE_LEVEL, SYNCH_LEVEL},
        {acquire_in_stack_dpc, release_in_stack_dpc, DISPATCH_LEVEL, DISPATCH_LEVEL},
        {acquire_in_stack_dpc, release_in_stack_dpc, SYNCH_LEVEL, SYNCH_LEVEL},
        {acquire_in_stack_for_dpc, release_in_stack_for_dpc, PASSIVE_LEVEL, DISPATCH_LEVEL},
        {acquire_in_stack_for_dpc, release_in_stack_for_dpc, DISPATCH_LEVEL, DISPATCH_LEVEL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        KIRQL before;

        KeRaiseIrql(ways[i].from, &before);
        for (int times = 0; times < 2; times++) {
            ways[i].acquire();
            assert_int_equal(KeGetCurrentIrql(), ways[i].held);
            ways[i].release();
            assert_int_equal(KeGetCurrentIrql(), ways[i].from);
            assert_int_equal(the_lock, 0);
        }
        KeLowerIrql(before);
    }
}

/* The word and the entry of an uncontended lock; zeroed memory is a free lock. */
static void uncontended_state(void **state)
{
    static KSPIN_LOCK lock;
    KLOCK_QUEUE_HANDLE handle;
    KSPIN_LOCK_QUEUE *entry;

    (void)state;
    memset(&handle, 0xa5, sizeof(handle));
    KeAcquireInStackQueuedSpinLock(&lock, &handle);
    assert_ptr_equal(lock, &handle.LockQueue);
    assert_int_equal((ULONG_PTR)handle.LockQueue.Lock, (ULONG_PTR)&lock | LOCK_QUEUE_OWNER);
    assert_null(handle.LockQueue.Next);
    assert_int_equal(handle.OldIrql, PASSIVE_LEVEL);
    assert_false(KeTestSpinLock(&lock));
    KeReleaseInStackQueuedSpinLock(&handle);
    assert_int_equal(lock, 0);
    assert_true(KeTestSpinLock(&lock));

    old_irql = KeAcquireQueuedSpinLock(LockQueueMasterLock);
    entry = own_entry(LockQueueMasterLock);
    assert_ptr_equal(*(KSPIN_LOCK *)lock_of(entry), entry);
    assert_int_equal(bits_of(entry), LOCK_QUEUE_OWNER);
    assert_null(entry->Next);
    KeReleaseQueuedSpinLock(LockQueueMasterLock, old_irql);
    /* 5 */
    assert_int_equal(bits_of(entry), 0);
    assert_int_equal(*(KSPIN_LOCK *)lock_of(entry), 0);
}

/* The numbers name different locks, the same ones on every processor. */
static void numbers(void **state)
{
    KIRQL old[LockQueueMaximumLock];

    (void)state;
    for (ULONG p = 0; p < processors(); p++)
        for (ULONG n = 0; n < LockQueueMaximumLock; n++) {
            KSPIN_LOCK_QUEUE *entry = &KiProcessorBlock[p]->LockQueue[n];

            assert_ptr_equal(entry->Lock, KiProcessorBlock[0]->LockQueue[n].Lock);
            assert_null(entry->Next);
            assert_true(n == 0 || entry->Lock != entry[-1].Lock);
        }
    for (ULONG n = 0; n < LockQueueMaximumLock; n++)
        old[n] = KeAcquireQueuedSpinLock(n);
    for (ULONG n = LockQueueMaximumLock; n-- != 0;)
        KeReleaseQueuedSpinLock(n, old[n]);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void acquire_number(void *number)
{
    KeAcquireQueuedSpinLock((KSPIN_LOCK_QUEUE_NUMBER)(ULONG_PTR)number);
}

static void release_number(void *number)
{
    KeReleaseQueuedSpinLock((KSPIN_LOCK_QUEUE_NUMBER)(ULONG_PTR)number, PASSIVE_LEVEL);
}

static void numbers_of_no_lock(void **state)
{
    (void)state;
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, acquire_number, (void *)LockQueueMaximumLock);
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, release_number, (void *)LockQueueMaximumLock);
}

/* Waiting threads, each started after the one before was seen in the queue. */

typedef struct queue_test queue_test;

typedef struct waiter {
    queue_test *test;
    unsigned index;
    KLOCK_QUEUE_HANDLE handle;
    KSPIN_LOCK_QUEUE *volatile entry;
    volatile ULONG go;
    test_threads *thread;
} waiter;

struct queue_test {
    KSPIN_LOCK lock;
    KSPIN_LOCK *word;
    int numbered;
    volatile ULONG acquired;       /* how many have had the lock */
    unsigned order[MOST_WAITERS];
    volatile ULONG release_freely;
    waiter waiters[MOST_WAITERS];
};

static void release_when_told(waiter *self)
{
    while (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&self->test->release_freely, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void wait_in_queue(void *argument, unsigned index)
{
    waiter *self = argument;
    queue_test *test = self->test;
    KIRQL old = PASSIVE_LEVEL;

    (void)index;
    if (test->numbered) {
        old = KeRaiseIrqlToDpcLevel();
        __atomic_store_n(&self->entry, own_entry(LockQueueBcbLock), __ATOMIC_RELEASE);
        KeAcquireQueuedSpinLock(LockQueueBcbLock);
    } else {
        __atomic_store_n(&self->entry, &self->handle.LockQueue, __ATOMIC_RELEASE);
        KeAcquireInStackQueuedSpinLock(&test->lock, &self->handle);
    }
    test->order[test->acquired] = self->index;
    __atomic_store_n(&test->acquired, test->acquired + 1, __ATOMIC_RELEASE);
    release_when_told(self);
    if (test->numbered)
        KeReleaseQueuedSpinLock(LockQueueBcbLock, old);
    else
        KeReleaseInStackQueuedSpinLock(&self->handle);
}

static KSPIN_LOCK_QUEUE *start_waiter(queue_test *test, unsigned index, KSPIN_LOCK_QUEUE *predecessor)
{
    waiter *self = &test->waiters[index];
    KSPIN_LOCK_QUEUE *entry;

    self->test = test;
    self->index = index;
    self->thread = start_threads(1, wait_in_queue, self);
    while ((entry = __atomic_load_n(&self->entry, __ATOMIC_ACQUIRE)) == NULL || next_of(predecessor) != entry)
        sched_yield();
    assert_ptr_equal(read_lock(test->word), entry);
    assert_int_equal(bits_of(entry), LOCK_QUEUE_WAIT);
    assert_ptr_equal(lock_of(entry), test->word);
    assert_null(next_of(entry));
    return entry;
}

static KSPIN_LOCK_QUEUE *take_first(queue_test *test, KLOCK_QUEUE_HANDLE *handle, KIRQL *old)
{
    if (test->numbered) {
        *old = KeAcquireQueuedSpinLock(LockQueueBcbLock);
        test->word = (KSPIN_LOCK *)lock_of(own_entry(LockQueueBcbLock));
        return own_entry(LockQueueBcbLock);
    }
    test->word = &test->lock;
    KeAcquireInStackQueuedSpinLock(&test->lock, handle);
    return &handle->LockQueue;
}

static void give_first(queue_test *test, KLOCK_QUEUE_HANDLE *handle, KIRQL old)
{
    if (test->numbered)
        KeReleaseQueuedSpinLock(LockQueueBcbLock, old);
    else
        KeReleaseInStackQueuedSpinLock(handle);
}

/* 2, 3, 5, and with a long hold 7: first come, first served, however long the wait. */
static void first_come_first_served(int numbered, long hold_milliseconds)
{
    queue_test test = {.numbered = numbered};
    unsigned count = processors() - 1 < MOST_WAITERS ? processors() - 1 : MOST_WAITERS;
    struct timespec hold = {.tv_nsec = hold_milliseconds * 1000000};
    KLOCK_QUEUE_HANDLE handle;
    KSPIN_LOCK_QUEUE *first, *entry;
    KIRQL old = PASSIVE_LEVEL;

    if (count == 0)
        return;
    first = entry = take_first(&test, &handle, &old);
    for (unsigned i = 0; i < count; i++)
        entry = start_waiter(&test, i, entry);
    nanosleep(&hold, NULL);
    assert_int_equal(test.acquired, 0);
    assert_int_equal(bits_of(first), LOCK_QUEUE_OWNER);
    test.release_freely = 1;
    give_first(&test, &handle, old);
    for (unsigned i = 0; i < count; i++)
        join_threads(test.waiters[i].thread, SECONDS);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(test.order[i], i);
    assert_int_equal(read_lock(test.word), 0);
    assert_int_equal(bits_of(first), 0);
    assert_null(first->Next);
}

static void handles_are_served_in_order(void **state)
{
    (void)state;
    first_come_first_served(0, 0);
    first_come_first_served(0, 20);
}

static void numbered_locks_are_served_in_order(void **state)
{
    (void)state;
    first_come_first_served(1, 0);
    first_come_first_served(1, 20);
}

/* The example of the slides: three processors acquire a lock one after the other and release it in that order. */
static void the_slides_example(void **state)
{
    queue_test test = {.word = &test.lock};
    KLOCK_QUEUE_HANDLE handle;
    KSPIN_LOCK_QUEUE *ql[3];

    (void)state;
    if (processors() < 3)
        return;
    KeAcquireInStackQueuedSpinLock(&test.lock, &handle);
    ql[0] = &handle.LockQueue;
    assert_ptr_equal(read_lock(&test.lock), ql[0]);
    ql[1] = start_waiter(&test, 0, ql[0]);
    ql[2] = start_waiter(&test, 1, ql[1]);

    KeReleaseInStackQueuedSpinLock(&handle);
    assert_null(ql[0]->Next);
    assert_int_equal(bits_of(ql[0]), 0);
    while (__atomic_load_n(&test.acquired, __ATOMIC_ACQUIRE) != 1)
        sched_yield();
    assert_ptr_equal(read_lock(&test.lock), ql[2]);
    assert_int_equal(bits_of(ql[1]), LOCK_QUEUE_OWNER);
    assert_ptr_equal(next_of(ql[1]), ql[2]);
    assert_int_equal(bits_of(ql[2]), LOCK_QUEUE_WAIT);

    __atomic_store_n(&test.waiters[0].go, 1, __ATOMIC_RELEASE);
    join_threads(test.waiters[0].thread, SECONDS);
    while (__atomic_load_n(&test.acquired, __ATOMIC_ACQUIRE) != 2)
        sched_yield();
    assert_ptr_equal(read_lock(&test.lock), ql[2]);
    assert_int_equal(bits_of(ql[2]), LOCK_QUEUE_OWNER);
    assert_null(next_of(ql[2]));
    assert_int_equal(bits_of(ql[1]), 0);
    assert_null(ql[1]->Next);

    __atomic_store_n(&test.waiters[1].go, 1, __ATOMIC_RELEASE);
    join_threads(test.waiters[1].thread, SECONDS);
    assert_int_equal(read_lock(&test.lock), 0);
    assert_int_equal(bits_of(ql[2]), 0);
}

/* 2: a try only takes a free lock, and leaves nothing behind. */
static void try_numbered_lock(void *argument, unsigned index)
{
    int *expected = argument;
    KIRQL old = HIGH_LEVEL;

    (void)index;
    require(KeTryToAcquireQueuedSpinLock(LockQueueVacbLock, &old) == (LOGICAL)*expected);
    require(old == PASSIVE_LEVEL);
    require(KeGetCurrentIrql() == (*expected ? DISPATCH_LEVEL : PASSIVE_LEVEL));
    if (*expected)
        KeReleaseQueuedSpinLock(LockQueueVacbLock, old);
}

static void a_try_never_waits(void **state)
{
    KSPIN_LOCK_QUEUE entry = {NULL, &the_lock};
    int free = 1, busy = 0;
    KLOCK_QUEUE_HANDLE handle;
    KIRQL old;

    (void)state;
    run_threads(1, SECONDS, try_numbered_lock, &free);
    if (processors() > 1) {
        old = KeAcquireQueuedSpinLock(LockQueueVacbLock);
        run_threads(1, SECONDS, try_numbered_lock, &busy);
        assert_null(own_entry(LockQueueVacbLock)->Next);
        KeReleaseQueuedSpinLock(LockQueueVacbLock, old);
        run_threads(1, SECONDS, try_numbered_lock, &free);
    }
    KeAcquireInStackQueuedSpinLock(&the_lock, &handle);
    assert_false(KeTryToAcquireQueuedSpinLockAtDpcLevel(&entry));
    assert_ptr_equal(the_lock, &handle.LockQueue);
    assert_int_equal(bits_of(&entry), 0);
    assert_null(entry.Next);
    KeReleaseInStackQueuedSpinLock(&handle);
}

/* A forked child: locks of other threads are free, those of the survivor stay held. */

static void hold_numbered_lock(void *argument, unsigned index)
{
    volatile ULONG *phase = argument;
    KIRQL old = KeAcquireQueuedSpinLock(LockQueueIoCancelLock);

    (void)index;
    __atomic_store_n(phase, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(phase, __ATOMIC_ACQUIRE) == 1)
        sched_yield();
    KeReleaseQueuedSpinLock(LockQueueIoCancelLock, old);
}

static void use_in_child(int keeps_master, KIRQL old)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        KIRQL before;

        setenv("CMOCKA_TEST_ABORT", "1", 1);
        signal(SIGABRT, SIG_DFL);
        alarm(20 * test_slowdown());
        if (keeps_master) {
            require(bits_of(own_entry(LockQueueMasterLock)) == LOCK_QUEUE_OWNER);
            require(read_lock((KSPIN_LOCK *)lock_of(own_entry(LockQueueMasterLock))) ==
                    (KSPIN_LOCK)own_entry(LockQueueMasterLock));
            KeReleaseQueuedSpinLock(LockQueueMasterLock, old);
        }
        before = KeAcquireQueuedSpinLock(LockQueueIoCancelLock);
        KeReleaseQueuedSpinLock(LockQueueIoCancelLock, before);
        before = KeAcquireQueuedSpinLock(LockQueueMasterLock);
        KeReleaseQueuedSpinLock(LockQueueMasterLock, before);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_int_equal(status, 0);
}

static void forked_child(void **state)
{
    volatile ULONG phase = 0;
    test_threads *holder = start_threads(1, hold_numbered_lock, (void *)&phase);
    KIRQL old;

    (void)state;
    while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    use_in_child(0, PASSIVE_LEVEL);
    if (processors() > 1) {
        old = KeAcquireQueuedSpinLock(LockQueueMasterLock);
        use_in_child(1, old);
        KeReleaseQueuedSpinLock(LockQueueMasterLock, old);
    }
    __atomic_store_n(&phase, 2, __ATOMIC_RELEASE);
    join_threads(holder, SECONDS);
}

/* 8: with waiters, which stay in the parent. New threads of the child get the stacks that the waiters' entries are on. */

#define CHILD_ROUNDS 1000
#define CHILD_THREADS 2

typedef enum holder {
    FORKER,
    OTHER_THREAD,
    RELEASER /* another thread, which hands the lock on just now */
} holder;

typedef struct fork_test {
    queue_test queue;
    holder holder;
    int contended;
    volatile ULONG contenders; /* of the child */
    KLOCK_QUEUE_HANDLE handle;
    KIRQL old;
} fork_test;

static void use_lock_once(queue_test *queue)
{
    KLOCK_QUEUE_HANDLE handle;
    KIRQL old;

    if (queue->numbered) {
        old = KeAcquireQueuedSpinLock(LockQueueBcbLock);
        KeReleaseQueuedSpinLock(LockQueueBcbLock, old);
    } else {
        KeAcquireInStackQueuedSpinLock(&queue->lock, &handle);
        KeReleaseInStackQueuedSpinLock(&handle);
    }
}

static int try_lock_once(queue_test *queue)
{
    KSPIN_LOCK_QUEUE entry = {NULL, &queue->lock};
    KIRQL old;
    int taken;

    if (queue->numbered) {
        taken = (int)KeTryToAcquireQueuedSpinLock(LockQueueBcbLock, &old);
        if (taken)
            KeReleaseQueuedSpinLock(LockQueueBcbLock, old);
        return taken;
    }
    old = KeRaiseIrqlToDpcLevel();
    taken = (int)KeTryToAcquireQueuedSpinLockAtDpcLevel(&entry);
    if (taken)
        KeReleaseQueuedSpinLockFromDpcLevel(&entry);
    KeLowerIrql(old);
    return taken;
}

static void *contend_in_child(void *argument)
{
    fork_test *test = argument;

    __atomic_add_fetch(&test->contenders, 1, __ATOMIC_RELEASE);
    for (int round = 0; round < CHILD_ROUNDS; round++)
        use_lock_once(&test->queue);
    return NULL;
}

static void use_in_child_of_queue(void *argument)
{
    fork_test *test = argument;
    pthread_t threads[CHILD_THREADS];

    if (test->holder == OTHER_THREAD && !test->queue.numbered) {
        require(!try_lock_once(&test->queue));
        require(read_lock(test->queue.word) != 0);
        return;
    }
    if (test->holder == RELEASER)
        require(try_lock_once(&test->queue));
    for (int i = 0; i < CHILD_THREADS && test->contended; i++)
        require(pthread_create(&threads[i], NULL, contend_in_child, test) == 0);
    if (test->holder == FORKER) {
        while (test->contended && __atomic_load_n(&test->contenders, __ATOMIC_ACQUIRE) != CHILD_THREADS)
            sched_yield();
        if (test->contended) /* otherwise the release is the first to find the queue */
            require(!try_lock_once(&test->queue));
        give_first(&test->queue, &test->handle, test->old);
    }
    for (int i = 0; i < CHILD_THREADS && test->contended; i++)
        require(pthread_join(threads[i], NULL) == 0);
    for (int round = 0; round < CHILD_ROUNDS; round++)
        use_lock_once(&test->queue);
    require(read_lock(test->queue.word) == 0);
}

static void fork_with_queue(fork_test *test)
{
    int status = child_status(use_in_child_of_queue, test);

    if (status != 0)
        fail_msg("numbered %d, holder %d, contended %d: the child ended with status %x", test->queue.numbered,
                 (int)test->holder, test->contended, (unsigned)status);
}

static void queue_over_fork(int numbered, holder who, unsigned waiters, int contended)
{
    fork_test test = {.queue = {.numbered = numbered}, .holder = who, .contended = contended};
    PKSPIN_LOCK owned = NULL;
    KSPIN_LOCK_QUEUE *entry = take_first(&test.queue, &test.handle, &test.old);

    for (unsigned i = 0; i < waiters; i++)
        entry = start_waiter(&test.queue, i, entry);
    if (who != FORKER) {
        entry = test.queue.waiters[0].entry;
        give_first(&test.queue, &test.handle, test.old);
        while (__atomic_load_n(&test.queue.acquired, __ATOMIC_ACQUIRE) != 1)
            sched_yield();
        owned = entry->Lock;
    }
    if (who == RELEASER)
        __atomic_store_n(&entry->Lock, test.queue.word, __ATOMIC_RELEASE);
    fork_with_queue(&test);
    if (who == RELEASER)
        __atomic_store_n(&entry->Lock, owned, __ATOMIC_RELEASE);

    __atomic_store_n(&test.queue.release_freely, 1, __ATOMIC_RELEASE);
    if (who == FORKER)
        give_first(&test.queue, &test.handle, test.old);
    for (unsigned i = 0; i < waiters; i++)
        join_threads(test.queue.waiters[i].thread, SECONDS);
    for (unsigned i = 0; i < waiters; i++)
        assert_int_equal(test.queue.order[i], i);
    assert_int_equal(read_lock(test.queue.word), 0);
}

/* ThreadSanitizer's runtime refuses new threads of a child that have the ids of threads that stayed behind. */
#ifdef THREAD_SANITIZER
#define CHILDREN_MAY_HAVE_THREADS 0
#else
#define CHILDREN_MAY_HAVE_THREADS 1
#endif

static void forked_child_of_a_queue(void **state)
{
    unsigned most = processors() - 1 < 3 ? processors() - 1 : 3;

    (void)state;
    for (int numbered = 0; numbered < 2; numbered++)
        for (int contended = 0; contended <= (CHILDREN_MAY_HAVE_THREADS && processors() > 1); contended++)
            for (unsigned waiters = 0; waiters <= most; waiters++) {
                queue_over_fork(numbered, FORKER, waiters, contended);
                if (waiters > 1)
                    queue_over_fork(numbered, OTHER_THREAD, waiters, contended);
                if (waiters > 1 && !numbered)
                    queue_over_fork(numbered, RELEASER, waiters, contended);
            }
}

/* 8: a waiter that was just handed the lock, and does not run yet, owns it. */

static volatile ULONG frozen, thaw;

static void freeze(int signal)
{
    (void)signal;
    __atomic_store_n(&frozen, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&thaw, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void *wait_once(void *argument)
{
    KLOCK_QUEUE_HANDLE handle;

    KeAcquireInStackQueuedSpinLock(argument, &handle);
    KeReleaseInStackQueuedSpinLock(&handle);
    return NULL;
}

static void forked_child_of_a_handoff(void **state)
{
    static queue_test queue;
    struct sigaction action = {.sa_handler = freeze, .sa_flags = SA_RESTART}, before;
    KLOCK_QUEUE_HANDLE handle;
    pthread_t thread;
    pid_t child;
    int status;

    (void)state;
    /* ThreadSanitizer runs the handler later, when the waiter calls the C library. */
    if (processors() < 2 || !CHILDREN_MAY_HAVE_THREADS)
        return;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    KeAcquireInStackQueuedSpinLock(&queue.lock, &handle);
    assert_int_equal(pthread_create(&thread, NULL, wait_once, &queue.lock), 0);
    while (next_of(&handle.LockQueue) == NULL)
        sched_yield();
    assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
    while (!__atomic_load_n(&frozen, __ATOMIC_ACQUIRE))
        sched_yield();
    KeReleaseInStackQueuedSpinLock(&handle);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        require(!try_lock_once(&queue));
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    __atomic_store_n(&thaw, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_int_equal(status, 0);
    assert_int_equal(read_lock(&queue.lock), 0);
}

/* Misuse. The verifier is on in the children. */

static void acquire_handle_twice(void *unused)
{
    KLOCK_QUEUE_HANDLE first, second;

    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireInStackQueuedSpinLock(&the_lock, &first);
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&the_lock, &second);
}

static void acquire_number_twice(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireQueuedSpinLock(LockQueueMasterLock);
    KeAcquireQueuedSpinLock(LockQueueMasterLock);
}

static void release_free_handle(void *unused)
{
    KLOCK_QUEUE_HANDLE handle;

    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireInStackQueuedSpinLock(&the_lock, &handle);
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle);
    KeReleaseInStackQueuedSpinLock(&handle);
}

static void release_free_number(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeRaiseIrqlToDpcLevel();
    KeReleaseQueuedSpinLock(LockQueueMasterLock, PASSIVE_LEVEL);
}

static void acquire_handle_too_low(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&the_lock, &the_handle);
}

static void acquire_entry_too_low(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireQueuedSpinLockAtDpcLevel(&the_entry);
}

static void try_entry_too_low(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeTryToAcquireQueuedSpinLockAtDpcLevel(&the_entry);
}

static void release_number_too_low(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeReleaseQueuedSpinLock(LockQueueMasterLock, PASSIVE_LEVEL);
}

static void acquire_too_high(void *unused)
{
    (void)unused;
    KfRaiseIrql(DISPATCH_LEVEL + 1);
    KeAcquireInStackQueuedSpinLock(&the_lock, &the_handle);
}

static void release_to_higher(void *unused)
{
    (void)unused;
    KeAcquireQueuedSpinLock(LockQueueMasterLock);
    KeReleaseQueuedSpinLock(LockQueueMasterLock, SYNCH_LEVEL);
}

static void mix_with_plain_spinlock(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireSpinLockRaiseToDpc(&the_lock);
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&the_lock, &the_handle);
}

static void misuse(void **state)
{
    static const struct {
        ULONG code;
        void (*function)(void *);
    } cases[] = {
        {SPIN_LOCK_ALREADY_OWNED, acquire_handle_twice},
        {SPIN_LOCK_ALREADY_OWNED, acquire_number_twice},
        {SPIN_LOCK_NOT_OWNED, release_free_handle},
        {SPIN_LOCK_NOT_OWNED, release_free_number},
        {IRQL_NOT_GREATER_OR_EQUAL, acquire_handle_too_low},
        {IRQL_NOT_GREATER_OR_EQUAL, acquire_entry_too_low},
        {IRQL_NOT_GREATER_OR_EQUAL, try_entry_too_low},
        {IRQL_NOT_GREATER_OR_EQUAL, release_number_too_low},
        {IRQL_NOT_GREATER_OR_EQUAL, acquire_too_high},
        {IRQL_NOT_LESS_OR_EQUAL, release_to_higher},
        {SPIN_LOCK_INIT_FAILURE, mix_with_plain_spinlock},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_bugcheck(cases[i].code, cases[i].function, NULL);
}

/* The verifier has room for this many locks; more are acquired and released without a report. */
static void hold_many(void *unused)
{
    enum { MANY = 3 * KI_HELD_LOCKS };
    static KSPIN_LOCK locks[MANY];
    static KLOCK_QUEUE_HANDLE handles[MANY];
    KIRQL old = KeRaiseIrqlToDpcLevel();

    (void)unused;
    KiVerifierEnabled = TRUE;
    for (int times = 0; times < 2; times++) {
        for (int i = 0; i < MANY; i++)
            KeAcquireInStackQueuedSpinLockAtDpcLevel(&locks[i], &handles[i]);
        for (int i = 0; i < MANY; i++)
            KeReleaseInStackQueuedSpinLockFromDpcLevel(&handles[i * 7 % MANY]);
    }
    KeLowerIrql(old);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void release_unowned_handle(void *unused)
{
    static KLOCK_QUEUE_HANDLE handle;

    (void)unused;
    KiVerifierEnabled = FALSE;
    KeRaiseIrqlToDpcLevel();
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle);
}

static void release_unowned_number(void *unused)
{
    (void)unused;
    KiVerifierEnabled = FALSE;
    KeRaiseIrqlToDpcLevel();
    KeReleaseQueuedSpinLock(LockQueueMasterLock, PASSIVE_LEVEL);
}

static void release_without_processor(void *unused)
{
    (void)unused;
    KiVerifierEnabled = FALSE;
    KeReleaseQueuedSpinLock(LockQueueMasterLock, PASSIVE_LEVEL);
}

static void acquire_unknown_number(void *unused)
{
    (void)unused;
    KiVerifierEnabled = FALSE;
    KeAcquireQueuedSpinLock(LockQueueMaximumLock);
}

static void misuse_without_verifier(void **state)
{
    (void)state;
    expect_bugcheck(SPIN_LOCK_NOT_OWNED, release_unowned_handle, NULL);
    expect_bugcheck(SPIN_LOCK_NOT_OWNED, release_unowned_number, NULL);
    expect_bugcheck(IRQL_NOT_GREATER_OR_EQUAL, release_without_processor, NULL);
    expect_violation(KERNEL_SECURITY_CHECK_FAILURE, FAST_FAIL_INVALID_ARG, acquire_unknown_number, NULL);
}

static void many_locks_at_once(void **state)
{
    (void)state;
    expect_bugcheck(MANUALLY_INITIATED_CRASH, hold_many, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(uncontended_state),
        cmocka_unit_test(numbers),
        cmocka_unit_test(numbers_of_no_lock),
        cmocka_unit_test(handles_are_served_in_order),
        cmocka_unit_test(numbered_locks_are_served_in_order),
        cmocka_unit_test(the_slides_example),
        cmocka_unit_test(a_try_never_waits),
        cmocka_unit_test(forked_child),
        cmocka_unit_test(forked_child_of_a_queue),
        cmocka_unit_test(forked_child_of_a_handoff),
        cmocka_unit_test(misuse),
        cmocka_unit_test(misuse_without_verifier),
        cmocka_unit_test(many_locks_at_once),
    };

    default_setting("INTERLOCK_PROCESSORS", "2");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
