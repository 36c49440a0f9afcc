/* The lock order of the verifier: requirements by the numbers of src/ke/lockorder.h. The program is built with DBG, so that
   pushlocks and SRW locks are watched too. A child of expect_violation inherits what the parent has seen. */
#define DBG 1

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/nt.h>
#include <interlock/ps.h>
#include <interlock/rtl.h>
#include <interlock/verifier.h>

#include "ke/lockorder.h"
#include "support.h"
#include "withsetting.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORDER_VIOLATED 0x1001
#define ACQUIRED_AGAIN 0x1000
#define ENDED_WITH_LOCK 0x100A
#define UNREADABLE 65536

/* One lock of every kind, for a table of operations. */
typedef struct lock {
    KSPIN_LOCK spin;
    KSPIN_LOCK queued;
    KIRQL irql;
    KLOCK_QUEUE_HANDLE handle;
    EX_SPIN_LOCK shared_spin;
    FAST_MUTEX fast;
    ERESOURCE resource;
    FAST_ERESOURCE fast_resource;
    FAST_OWNER_ENTRY owner;
    EX_PUSH_LOCK push;
    PEX_CACHE_AWARE_PUSH_LOCK cache_aware;
    PEX_PUSH_LOCK_AUTO_EXPAND auto_expand;
    PEX_PUSH_LOCK held;
    KMUTANT mutant;
    KMUTEX mutex;
    RTL_SRWLOCK srw;
    RTL_CRITICAL_SECTION section;
    RTL_RESOURCE rtl;
} lock;

typedef struct kind {
    const char *name;
    int spins;
    void (*acquire)(lock *l);
    void (*release)(lock *l);
    int (*attempt)(lock *l); /* NULL: there is no way to try */
} kind;

#define OPERATION(name, statement)  \
    static void name(lock *l)       \
    {                               \
        statement;                  \
    }
#define ATTEMPT(name, expression)   \
    static int name(lock *l)        \
    {                               \
        return (expression);        \
    }

OPERATION(acquire_spin, KeAcquireSpinLock(&l->spin, &l->irql))
OPERATION(release_spin, KeReleaseSpinLock(&l->spin, l->irql))
OPERATION(acquire_queued, KeAcquireInStackQueuedSpinLock(&l->queued, &l->handle))
OPERATION(release_queued, KeReleaseInStackQueuedSpinLock(&l->handle))
OPERATION(acquire_rw, l->irql = ExAcquireSpinLockExclusive(&l->shared_spin))
OPERATION(release_rw, ExReleaseSpinLockExclusive(&l->shared_spin, l->irql))
OPERATION(share_rw, l->irql = ExAcquireSpinLockShared(&l->shared_spin))
OPERATION(unshare_rw, ExReleaseSpinLockShared(&l->shared_spin, l->irql))
OPERATION(acquire_fast, ExAcquireFastMutex(&l->fast))
OPERATION(release_fast, ExReleaseFastMutex(&l->fast))
OPERATION(acquire_unsafe, ExAcquireFastMutexUnsafe(&l->fast))
OPERATION(release_unsafe, ExReleaseFastMutexUnsafe(&l->fast))
OPERATION(acquire_guarded, KeAcquireGuardedMutex(&l->fast))
OPERATION(release_guarded, KeReleaseGuardedMutex(&l->fast))
OPERATION(acquire_resource, ExAcquireResourceExclusiveLite(&l->resource, TRUE))
OPERATION(share_resource, ExAcquireResourceSharedLite(&l->resource, TRUE))
OPERATION(release_resource, ExReleaseResourceLite(&l->resource))
OPERATION(acquire_fast_resource, ExAcquireFastResourceExclusive(&l->fast_resource, &l->owner, TRUE))
OPERATION(release_fast_resource, ExReleaseFastResource(&l->fast_resource, &l->owner))
OPERATION(acquire_push, ExAcquirePushLockExclusive(&l->push))
OPERATION(release_push, ExReleasePushLockExclusive(&l->push))
OPERATION(share_push, ExAcquirePushLockShared(&l->push))
OPERATION(unshare_push, ExReleasePushLockShared(&l->push))
OPERATION(acquire_cache_aware, ExAcquireCacheAwarePushLockExclusive(l->cache_aware))
OPERATION(release_cache_aware, ExReleaseCacheAwarePushLockExclusive(l->cache_aware))
OPERATION(share_cache_aware, l->held = ExAcquireCacheAwarePushLockShared(l->cache_aware))
OPERATION(unshare_cache_aware, ExReleaseCacheAwarePushLockShared(l->held))
OPERATION(acquire_auto_expand, ExAcquireAutoExpandPushLockExclusive(l->auto_expand, 0))
OPERATION(release_auto_expand, ExReleaseAutoExpandPushLockExclusive(l->auto_expand, 0))
OPERATION(share_auto_expand, l->held = ExAcquireAutoExpandPushLockShared(l->auto_expand, 0))
OPERATION(unshare_auto_expand, ExReleaseAutoExpandPushLockShared(l->auto_expand, l->held, 0))
OPERATION(acquire_mutant, KeWaitForSingleObject(&l->mutant, Executive, KernelMode, FALSE, NULL))
OPERATION(release_mutant, KeReleaseMutant(&l->mutant, 0, FALSE, FALSE))
OPERATION(acquire_mutex, KeWaitForSingleObject(&l->mutex, Executive, KernelMode, FALSE, NULL))
OPERATION(release_mutex, KeReleaseMutex(&l->mutex, FALSE))
OPERATION(acquire_srw, RtlAcquireSRWLockExclusive(&l->srw))
OPERATION(release_srw, RtlReleaseSRWLockExclusive(&l->srw))
OPERATION(share_srw, RtlAcquireSRWLockShared(&l->srw))
OPERATION(unshare_srw, RtlReleaseSRWLockShared(&l->srw))
OPERATION(acquire_section, RtlEnterCriticalSection(&l->section))
OPERATION(release_section, RtlLeaveCriticalSection(&l->section))
OPERATION(acquire_rtl, RtlAcquireResourceExclusive(&l->rtl, TRUE))
OPERATION(release_rtl, RtlReleaseResource(&l->rtl))

ATTEMPT(try_spin, (KeRaiseIrql(DISPATCH_LEVEL, &l->irql), KeTryToAcquireSpinLockAtDpcLevel(&l->spin)))
ATTEMPT(try_rw, (KeRaiseIrql(DISPATCH_LEVEL, &l->irql), ExTryAcquireSpinLockExclusiveAtDpcLevel(&l->shared_spin)) != 0)
ATTEMPT(try_share_rw, (KeRaiseIrql(DISPATCH_LEVEL, &l->irql), ExTryAcquireSpinLockSharedAtDpcLevel(&l->shared_spin)) != 0)
ATTEMPT(try_fast, ExTryToAcquireFastMutex(&l->fast))
ATTEMPT(try_resource, ExAcquireResourceExclusiveLite(&l->resource, FALSE))
ATTEMPT(try_share_resource, ExAcquireResourceSharedLite(&l->resource, FALSE))
ATTEMPT(try_fast_resource, ExTryAcquireFastResourceExclusive(&l->fast_resource, &l->owner))
ATTEMPT(try_push, ExTryAcquirePushLockExclusive(&l->push))
ATTEMPT(try_share_push, ExTryAcquirePushLockShared(&l->push))
ATTEMPT(try_srw, RtlTryAcquireSRWLockExclusive(&l->srw))
ATTEMPT(try_share_srw, RtlTryAcquireSRWLockShared(&l->srw))
ATTEMPT(try_section, RtlTryEnterCriticalSection(&l->section) != 0)
ATTEMPT(try_rtl, RtlAcquireResourceExclusive(&l->rtl, FALSE))

static int wait_at_most(void *object, LONGLONG time)
{
    LARGE_INTEGER timeout = {.QuadPart = time};
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &timeout) == STATUS_SUCCESS;
}

ATTEMPT(try_mutant, wait_at_most(&l->mutant, 0))
ATTEMPT(try_mutex, wait_at_most(&l->mutex, -10000000))

static const kind kinds[] = {
    {"spinlock", 1, acquire_spin, release_spin, try_spin},
    {"queued spinlock", 1, acquire_queued, release_queued, NULL},
    {"reader/writer spinlock", 1, acquire_rw, release_rw, try_rw},
    {"reader/writer spinlock, shared", 1, share_rw, unshare_rw, try_share_rw},
    {"fast mutex", 0, acquire_fast, release_fast, try_fast},
    {"fast mutex, unsafe", 0, acquire_unsafe, release_unsafe, NULL},
    {"guarded mutex", 0, acquire_guarded, release_guarded, NULL},
    {"resource", 0, acquire_resource, release_resource, try_resource},
    {"resource, shared", 0, share_resource, release_resource, try_share_resource},
    {"fast resource", 0, acquire_fast_resource, release_fast_resource, try_fast_resource},
    {"pushlock", 0, acquire_push, release_push, try_push},
    {"pushlock, shared", 0, share_push, unshare_push, try_share_push},
    {"cache-aware pushlock", 0, acquire_cache_aware, release_cache_aware, NULL},
    {"cache-aware pushlock, shared", 0, share_cache_aware, unshare_cache_aware, NULL},
    {"auto-expand pushlock", 0, acquire_auto_expand, release_auto_expand, NULL},
    {"auto-expand pushlock, shared", 0, share_auto_expand, unshare_auto_expand, NULL},
    {"mutant", 0, acquire_mutant, release_mutant, try_mutant},
    {"mutex", 0, acquire_mutex, release_mutex, try_mutex},
    {"SRW lock", 0, acquire_srw, release_srw, try_srw},
    {"SRW lock, shared", 0, share_srw, unshare_srw, try_share_srw},
    {"critical section", 0, acquire_section, release_section, try_section},
    {"RTL resource", 0, acquire_rtl, release_rtl, try_rtl},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void initialize(lock *l)
{
    memset(l, 0, sizeof(*l));
    KeInitializeSpinLock(&l->spin);
    KeInitializeSpinLock(&l->queued);
    ExInitializeFastMutex(&l->fast);
    ExInitializeResourceLite(&l->resource);
    ExInitializeFastResource(&l->fast_resource, 0);
    ExInitializeFastOwnerEntry(&l->owner);
    ExInitializePushLock(&l->push);
    l->cache_aware = ExAllocateCacheAwarePushLock();
    l->auto_expand = ExAllocateAutoExpandPushLock(0);
    assert_non_null(l->cache_aware);
    assert_non_null(l->auto_expand);
    KeInitializeMutant(&l->mutant, FALSE);
    KeInitializeMutex(&l->mutex, 0);
    RtlInitializeSRWLock(&l->srw);
    RtlInitializeCriticalSection(&l->section);
    RtlInitializeResource(&l->rtl);
}

static void delete(lock *l)
{
    ExDeleteResourceLite(&l->resource);
    ExDeleteFastResource(&l->fast_resource);
    ExFreeCacheAwarePushLock(l->cache_aware);
    ExFreeAutoExpandPushLock(l->auto_expand);
    RtlDeleteCriticalSection(&l->section);
    RtlDeleteResource(&l->rtl);
}

/* Each pair has its own locks: the pairs are independent. */
static lock first, second, third;

static int make_locks(void **state)
{
    (void)state;
    initialize(&first);
    initialize(&second);
    initialize(&third);
    return 0;
}

static int delete_locks(void **state)
{
    (void)state;
    delete(&first);
    delete(&second);
    delete(&third);
    KdResetLockOrder();
    return 0;
}

typedef struct pair {
    const kind *outer;
    const kind *inner;
} pair;

static void nest(const kind *outer, lock *a, const kind *inner, lock *b)
{
    KeEnterCriticalRegion();
    outer->acquire(a);
    inner->acquire(b);
    inner->release(b);
    outer->release(a);
    KeLeaveCriticalRegion();
}

static void the_other_way_round(void *argument)
{
    const pair *p = argument;
    nest(p->inner, &second, p->outer, &first);
}

static int may_nest(const kind *outer, const kind *inner)
{
    return !outer->spins || inner->spins;
}

/* 1, 2: each pair of kinds in one order, any number of times, and then in the other. */
static void test_two_locks(void **state)
{
    (void)state;
    for (unsigned a = 0; a < KINDS; a++) {
        for (unsigned b = 0; b < KINDS; b++) {
            pair p = {&kinds[a], &kinds[b]};
            if (!may_nest(p.outer, p.inner) || !may_nest(p.inner, p.outer))
                continue;
            KdResetLockOrder();
            nest(p.outer, &first, p.inner, &second);
            nest(p.outer, &first, p.inner, &second);
            expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, the_other_way_round, &p);
        }
    }
}

static void nest_many(void)
{
    for (unsigned a = 0; a < KINDS; a++)
        for (unsigned b = 0; b < KINDS; b++)
            if (may_nest(&kinds[a], &kinds[b]))
                nest(&kinds[a], &first, &kinds[b], &second);
}

/* 1: a consistent order of all kinds is no violation. */
static void test_one_order(void **state)
{
    (void)state;
    KdResetLockOrder();
    nest_many();
    nest_many();
    assert_int_equal(KdCheckReleased(), 0);
}

/* Without the verifier no order counts. */
static void test_without_the_verifier(void **state)
{
    (void)state;
    KdResetLockOrder();
    if (VfEnableVerifier(FALSE) == STATUS_NOT_SUPPORTED) {
        skip(); /* a debug build has no other mode */
    }
    for (unsigned a = 0; a < KINDS; a++) {
        for (unsigned b = 0; b < KINDS; b++) {
            if (may_nest(&kinds[a], &kinds[b]) && may_nest(&kinds[b], &kinds[a])) {
                nest(&kinds[a], &first, &kinds[b], &second);
                nest(&kinds[b], &second, &kinds[a], &first);
            }
        }
    }
    assert_int_equal(KiOrderCountHeld(KiCurrentThread()), 0);
    VfEnableVerifier(TRUE);
}

static void close_three(void *argument)
{
    const kind *k = argument;
    nest(k, &third, k, &first);
}

/* 1, 2: A before B, B before C, C before A. */
static void test_three_locks(void **state)
{
    (void)state;
    for (unsigned a = 0; a < KINDS; a++) {
        KdResetLockOrder();
        nest(&kinds[a], &first, &kinds[a], &second);
        nest(&kinds[a], &second, &kinds[a], &third);
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, close_three, (void *)&kinds[a]);
    }
}

/* 3: a try under the other lock is no violation, and leads to none later. */
static void test_tries(void **state)
{
    (void)state;
    for (unsigned a = 0; a < KINDS; a++) {
        const kind *k = &kinds[a];
        if (k->attempt == NULL)
            continue;
        KdResetLockOrder();
        nest(k, &first, k, &second);
        KeEnterCriticalRegion();
        k->acquire(&second);
        assert_true(k->attempt(&first));
        k->release(&first);
        k->release(&second);
        KeLeaveCriticalRegion();
        nest(k, &first, k, &second);
    }
}

static void under_a_try(void *argument)
{
    const kind *k = argument;
    KeEnterCriticalRegion();
    k->attempt(&second);
    k->acquire(&first);
}

/* 3: but what is acquired under a lock that was tried comes after it. */
static void test_under_tries(void **state)
{
    (void)state;
    for (unsigned a = 0; a < KINDS; a++) {
        if (kinds[a].attempt == NULL)
            continue;
        KdResetLockOrder();
        nest(&kinds[a], &first, &kinds[a], &second);
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, under_a_try, (void *)&kinds[a]);
    }
}

/* 3: a wait for any of several objects, or with a timeout, can end in another way. */
static void test_other_waits(void **state)
{
    (void)state;
    void *objects[] = {&first.mutant, &third.mutant};
    LARGE_INTEGER second_long = {.QuadPart = -10000000};
    nest(&kinds[16], &first, &kinds[16], &second);
    acquire_mutant(&second);
    assert_int_equal(KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL), 0);
    release_mutant(&first);
    assert_int_equal(KeWaitForSingleObject(&first.mutant, Executive, KernelMode, FALSE, &second_long), 0);
    release_mutant(&first);
    release_mutant(&second);
}

static void wait_for_both(void *unused)
{
    void *objects[] = {&first.mutant, &third.mutant};
    (void)unused;
    acquire_mutant(&second);
    KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
}

static void test_wait_all(void **state)
{
    (void)state;
    void *objects[] = {&first.mutant, &second.mutant};
    KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL); /* at once: no order */
    release_mutant(&first);
    release_mutant(&second);
    nest(&kinds[16], &second, &kinds[16], &first);
    KdResetLockOrder();
    nest(&kinds[16], &first, &kinds[16], &second);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, wait_for_both, NULL);
}

/* 4. Sharers of an RTL resource overtake waiting writers, so two of them never wait for each other. */
static void share_rtl(lock *l)
{
    RtlAcquireResourceShared(&l->rtl, TRUE);
}

static const kind rtl_shared = {"RTL resource, shared", 0, share_rtl, release_rtl, NULL};

static void test_passing_sharers(void **state)
{
    (void)state;
    nest(&rtl_shared, &first, &rtl_shared, &second);
    nest(&rtl_shared, &second, &rtl_shared, &first);
}

/* An exclusive owner that becomes a sharer no longer blocks such a sharer. */
static void convert_resource(lock *l)
{
    ExAcquireResourceExclusiveLite(&l->resource, TRUE);
    ExConvertExclusiveToSharedLite(&l->resource);
}

static void pass_resource(lock *l)
{
    ExAcquireSharedStarveExclusive(&l->resource, TRUE);
}

static void convert_rtl(lock *l)
{
    RtlAcquireResourceExclusive(&l->rtl, TRUE);
    RtlConvertExclusiveToShared(&l->rtl);
}

static const kind converted_resource = {"converted resource", 0, convert_resource, release_resource, NULL};
static const kind passed_resource = {"resource, passing writers", 0, pass_resource, release_resource, NULL};
static const kind converted_rtl = {"converted RTL resource", 0, convert_rtl, release_rtl, NULL};

static void pass_owner(void *unused)
{
    (void)unused;
    nest(&kinds[7], &second, &passed_resource, &first);
}

static void test_converted(void **state)
{
    (void)state;
    nest(&converted_resource, &first, &kinds[7], &second);
    nest(&kinds[7], &second, &passed_resource, &first);
    nest(&converted_rtl, &first, &kinds[21], &second);
    nest(&kinds[21], &second, &rtl_shared, &first);
    KdResetLockOrder();
    nest(&kinds[7], &first, &kinds[7], &second); /* not converted */
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, pass_owner, NULL);
}

/* But a sharer and a writer do. */
static void write_under_share(void *unused)
{
    (void)unused;
    nest(&rtl_shared, &second, &kinds[21], &first);
}

static void test_passing_sharer_and_writer(void **state)
{
    (void)state;
    nest(&kinds[21], &first, &kinds[21], &second);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, write_under_share, NULL);
}

/* 5. */
static void test_recursion(void **state)
{
    static const unsigned recursive[] = {7, 8, 16, 17, 20, 21};
    (void)state;
    for (unsigned index = 0; index < sizeof(recursive) / sizeof(recursive[0]); index++) {
        const kind *k = &kinds[recursive[index]];
        KdResetLockOrder();
        KeEnterCriticalRegion();
        k->acquire(&first);
        k->acquire(&second);
        k->acquire(&first); /* has it already */
        k->release(&first);
        k->release(&second);
        k->release(&first);
        KeLeaveCriticalRegion();
        assert_int_equal(KdCheckReleased(), 0);
    }
}

/* An SRW lock is shared until a conversion succeeds, and exclusive from then on. */
static void share_converted(void *unused)
{
    (void)unused;
    share_srw(&first);
    if (RtlConvertSRWLockSharedToExclusive(&first.srw))
        share_srw(&first);
}

static void test_converted_srw(void **state)
{
    (void)state;
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ACQUIRED_AGAIN, share_converted, NULL);
    share_srw(&first);
    share_srw(&first);
    assert_false(RtlConvertSRWLockSharedToExclusive(&first.srw));
    share_srw(&first);
    for (int sharer = 0; sharer < 3; sharer++)
        unshare_srw(&first);
}

static void acquire_twice(void *argument)
{
    const kind *k = argument;
    KeEnterCriticalRegion();
    k->acquire(&first);
    k->acquire(&first);
}

static void test_acquired_again(void **state)
{
    (void)state;
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ACQUIRED_AGAIN, acquire_twice, (void *)&kinds[10]);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ACQUIRED_AGAIN, acquire_twice, (void *)&kinds[18]);
}

/* 2: locks of one class, sorted by address or from parent to child. */
#define TREE 7

static void test_locks_of_one_class(void **state)
{
    KSPIN_LOCK tree[TREE];
    KIRQL irql[TREE];
    (void)state;
    for (unsigned node = 0; node < TREE; node++)
        KeInitializeSpinLock(&tree[node]);
    for (unsigned child = 1; child < TREE; child++) {
        KeAcquireSpinLock(&tree[(child - 1) / 2], &irql[0]);
        KeAcquireSpinLock(&tree[child], &irql[child]);
        KeReleaseSpinLock(&tree[child], irql[child]);
        KeReleaseSpinLock(&tree[(child - 1) / 2], irql[0]);
    }
}

static KSPIN_LOCK ring[5];

static void take_forks(unsigned philosopher)
{
    KIRQL left, right;
    KeAcquireSpinLock(&ring[philosopher], &left);
    KeAcquireSpinLock(&ring[(philosopher + 1) % 5], &right);
    KeReleaseSpinLock(&ring[(philosopher + 1) % 5], right);
    KeReleaseSpinLock(&ring[philosopher], left);
}

static void last_philosopher(void *unused)
{
    (void)unused;
    take_forks(4);
}

static void test_philosophers(void **state)
{
    (void)state;
    for (unsigned fork = 0; fork < 5; fork++)
        KeInitializeSpinLock(&ring[fork]);
    for (unsigned philosopher = 0; philosopher < 4; philosopher++)
        take_forks(philosopher);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, last_philosopher, NULL);
}

/* 1: what two objects have shown holds for all others of their classes. */
typedef struct object {
    RTL_CRITICAL_SECTION list;
    RTL_CRITICAL_SECTION item;
} object;

static object objects[3];

/* An unrolled loop would be several calls: several classes. */
#define KEEP_ROLLED(index) __asm__ volatile("" : "+r"(index))

static void item_before_list(void *unused)
{
    (void)unused;
    RtlEnterCriticalSection(&objects[2].item);
    RtlEnterCriticalSection(&objects[2].list);
}

static void test_classes(void **state)
{
    (void)state;
    for (unsigned index = 0; index < 3; index++) {
        KEEP_ROLLED(index);
        RtlInitializeCriticalSection(&objects[index].list);
        RtlInitializeCriticalSection(&objects[index].item);
    }
    RtlEnterCriticalSection(&objects[0].list);
    RtlEnterCriticalSection(&objects[1].item);
    RtlLeaveCriticalSection(&objects[1].item);
    RtlLeaveCriticalSection(&objects[0].list);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, item_before_list, NULL);
    for (unsigned index = 0; index < 3; index++) {
        RtlDeleteCriticalSection(&objects[index].list);
        RtlDeleteCriticalSection(&objects[index].item);
    }
}

/* The same for every kind that a call initializes. */
static struct {
    lock list;
    lock item;
} pairs[3];

static void any_item_before_list(void *argument)
{
    const kind *k = argument;
    nest(k, &pairs[2].item, k, &pairs[2].list);
}

static void test_classes_of_all_kinds(void **state)
{
    static const unsigned initialized[] = {0, 4, 5, 6, 7, 16, 17, 18, 20, 21};
    (void)state;
    for (unsigned index = 0; index < 3; index++) {
        KEEP_ROLLED(index);
        initialize(&pairs[index].list);
        initialize(&pairs[index].item);
    }
    for (unsigned index = 0; index < sizeof(initialized) / sizeof(initialized[0]); index++) {
        const kind *k = &kinds[initialized[index]];
        print_message("# %s\n", k->name);
        KdResetLockOrder();
        nest(k, &pairs[0].list, k, &pairs[1].item);
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, any_item_before_list, (void *)k);
    }
    for (unsigned index = 0; index < 3; index++) {
        delete(&pairs[index].list);
        delete(&pairs[index].item);
    }
}

/* 8: accounts that are made in two places are of two classes. Sorted by address, they are acquired in both orders. */
#define ACCOUNTS 4

typedef struct account {
    FAST_MUTEX lock;
    char rest[40];
} account;

static account accounts[2 * ACCOUNTS];

static __attribute__((noinline)) void make_account(account *made)
{
    ExInitializeFastMutex(&made->lock);
    __asm__ volatile("");
}

static __attribute__((noinline)) void make_accounts(void)
{
    static const unsigned char old[ACCOUNTS] = {0, 3, 4, 7}, young[ACCOUNTS] = {1, 2, 5, 6};
    for (unsigned index = 0; index < ACCOUNTS; index++) {
        KEEP_ROLLED(index);
        make_account(&accounts[old[index]]);
        make_account(&accounts[young[index]]);
    }
}

static void transfer(unsigned from, unsigned to)
{
    ExAcquireFastMutex(&accounts[from].lock);
    ExAcquireFastMutex(&accounts[to].lock);
    ExReleaseFastMutex(&accounts[to].lock);
    ExReleaseFastMutex(&accounts[from].lock);
}

/* Those that it has seen the other way round, and others of the same classes. */
static void transfer_back(void *unused)
{
    (void)unused;
    transfer(1, 0);
}

static void transfer_others_back(void *unused)
{
    (void)unused;
    transfer(6, 3);
}

static void test_sorted_by_address(void **state)
{
    (void)state;
    make_accounts();
    for (unsigned lower = 0; lower < 2 * ACCOUNTS; lower++)
        for (unsigned upper = lower + 1; upper < 2 * ACCOUNTS; upper++)
            transfer(lower, upper);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, transfer_back, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, transfer_others_back, NULL);
    KdResetLockOrder();
    for (unsigned lower = 0; lower < 2 * ACCOUNTS; lower++) /* downwards is an order, too */
        for (unsigned upper = lower + 1; upper < 2 * ACCOUNTS; upper++)
            transfer(upper, lower);
}

/* 2: levels. */
static FAST_MUTEX parent, child;

static void child_before_parent(void *unused)
{
    (void)unused;
    ExAcquireFastMutex(&child);
    ExAcquireFastMutex(&parent);
}

static void test_levels(void **state)
{
    (void)state;
    ExInitializeFastMutex(&parent);
    ExInitializeFastMutex(&child);
    KdSetLockClass(&parent, "directory", 0);
    KdSetLockClass(&child, "directory", 1);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, child_before_parent, NULL);
    ExAcquireFastMutex(&parent);
    ExAcquireFastMutex(&child);
    ExReleaseFastMutex(&child);
    ExReleaseFastMutex(&parent);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, child_before_parent, NULL);
    ExAcquireFastMutex(&parent);
    KdSetLockClass(&parent, "directory", 2); /* it is still held */
    assert_int_equal(KdCheckReleased(), 2);  /* with the level of a fast mutex */
    ExReleaseFastMutex(&parent);
    assert_int_equal(KdCheckReleased(), 0);
}

/* A lock that no call has initialized has a name too. */
static RTL_SRWLOCK inner_lock = RTL_SRWLOCK_INIT, outer_lock = RTL_SRWLOCK_INIT;

static void inner_before_outer(void *unused)
{
    (void)unused;
    RtlAcquireSRWLockExclusive(&inner_lock);
    RtlAcquireSRWLockExclusive(&outer_lock);
}

static void test_names_of_static_locks(void **state)
{
    (void)state;
    KdSetLockClass(&outer_lock, "page", 1);
    KdSetLockClass(&inner_lock, "page", 2);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, inner_before_outer, NULL);
    RtlAcquireSRWLockExclusive(&outer_lock);
    RtlAcquireSRWLockExclusive(&inner_lock);
    RtlReleaseSRWLockExclusive(&inner_lock);
    RtlReleaseSRWLockExclusive(&outer_lock);
}

/* 6. */
static KSPIN_LOCK mine, of_dpc;
static KEVENT ran;

static VOID acquires_in_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    KeAcquireSpinLockAtDpcLevel(&of_dpc);
    KeReleaseSpinLockFromDpcLevel(&of_dpc);
    KeSetEvent(&ran, 0, FALSE);
}

static void run_dpc(PKDEFERRED_ROUTINE routine)
{
    KDPC dpc;
    KeInitializeEvent(&ran, SynchronizationEvent, FALSE);
    KeInitializeDpc(&dpc, routine, NULL);
    KeInsertQueueDpc(&dpc, NULL, NULL);
    KeWaitForSingleObject(&ran, Executive, KernelMode, FALSE, NULL);
}

/* A DPC that interrupts the owner of a mutex acquires a spinlock; that is no order of the two. */
static void test_interrupted_owner(void **state)
{
    (void)state;
    KeInitializeSpinLock(&of_dpc);
    acquire_mutex(&first);
    run_dpc(acquires_in_dpc);
    release_mutex(&first);
}

static RTL_SRWLOCK user_lock;

static VOID srw_in_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    RtlAcquireSRWLockExclusive(&user_lock);
    RtlReleaseSRWLockExclusive(&user_lock);
    KeSetEvent(&ran, 0, FALSE);
}

static void share_with_dpc(void *unused)
{
    (void)unused;
    RtlAcquireSRWLockExclusive(&user_lock);
    RtlReleaseSRWLockExclusive(&user_lock);
    run_dpc(srw_in_dpc);
}

static void test_level_of_dpc(void **state)
{
    (void)state;
    RtlInitializeSRWLock(&user_lock);
    run_dpc(srw_in_dpc); /* by DPCs alone it may be used */
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, share_with_dpc, NULL);
}

static BOOLEAN serve(PKINTERRUPT interrupt, PVOID lock_of_device)
{
    (void)interrupt;
    KeAcquireSpinLockAtDpcLevel(lock_of_device);
    KeReleaseSpinLockFromDpcLevel(lock_of_device);
    return TRUE;
}

static void spin_in_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    KeAcquireSpinLockAtDpcLevel(&mine);
    KeReleaseSpinLockFromDpcLevel(&mine);
    KeSetEvent(&ran, 0, FALSE);
}

static void hold_in_dpc(void *unused)
{
    (void)unused;
    run_dpc(spin_in_dpc);
}

static void hold_low(void *unused)
{
    KIRQL irql;
    (void)unused;
    KeAcquireSpinLock(&mine, &irql);
    KeReleaseSpinLock(&mine, irql);
}

/* A service routine and a holder at DISPATCH_LEVEL, which it can interrupt. */
static void test_level_of_interrupt(void **state)
{
    PKINTERRUPT interrupt;
    (void)state;
    KeInitializeSpinLock(&mine);
    if (!NT_SUCCESS(IoConnectInterrupt(&interrupt, serve, &mine, NULL, 5, 5, 5, Latched, FALSE, 1, FALSE)))
        fail_msg("no interrupt");
    KeFireInterrupt(interrupt, 0);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, hold_low, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, hold_in_dpc, NULL);
    IoDisconnectInterrupt(interrupt);
}

/* 7: memory that is used again. */
static void test_new_locks(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        FAST_MUTEX *pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, 2 * sizeof(FAST_MUTEX), 0x6b636f4c);
        assert_non_null(pool);
        for (unsigned index = 0; index < 2; index++) {
            KEEP_ROLLED(index);
            ExInitializeFastMutex(&pool[index]);
        }
        ExAcquireFastMutex(&pool[round]);
        ExAcquireFastMutex(&pool[1 - round]);
        ExReleaseFastMutex(&pool[1 - round]);
        ExReleaseFastMutex(&pool[round]);
        ExFreePool(pool);
    }
    for (unsigned round = 0; round < 2; round++) { /* initialized again */
        for (unsigned fork = 0; fork < 2; fork++) {
            KEEP_ROLLED(fork);
            KeInitializeSpinLock(&ring[fork]);
        }
        KIRQL outer, inner;
        KeAcquireSpinLock(&ring[round], &outer);
        KeAcquireSpinLock(&ring[1 - round], &inner);
        KeReleaseSpinLock(&ring[1 - round], inner);
        KeReleaseSpinLock(&ring[round], outer);
    }
}

/* 7: what is known of a lock behind memory that is freed stays known. */
static char area[1 << 16];

static void nest_spin(KSPIN_LOCK *outer, KSPIN_LOCK *inner)
{
    KIRQL irql;

    KeAcquireSpinLock(outer, &irql);
    KeAcquireSpinLockAtDpcLevel(inner);
    KeReleaseSpinLockFromDpcLevel(inner);
    KeReleaseSpinLock(outer, irql);
}

static void nest_behind(void *inner)
{
    nest_spin(&second.spin, inner);
}

static void test_lock_behind_freed_memory(void **state)
{
    KSPIN_LOCK *behind = (KSPIN_LOCK *)(area + sizeof(area)) - 1;
    KSPIN_LOCK *last = behind - 1;
    (void)state;
    KeInitializeSpinLock(behind);
    KeInitializeSpinLock(last);
    nest_spin(behind, &second.spin);
    nest_spin(last, &second.spin);
    assert_null(KiOrderForgetRange(area, (SIZE_T)((char *)behind - area), FALSE));
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, nest_behind, behind);
    nest_behind(last);
}

/* A resource with an owner pointer belongs to no thread, and another one releases it. */
static void test_owner_pointer(void **state)
{
    char *owner = mmap(NULL, UNREADABLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* an owner is never read */
    PVOID pointer = (PVOID)((ULONG_PTR)owner | 3);
    (void)state;
    assert_ptr_not_equal(owner, MAP_FAILED);
    KeEnterCriticalRegion();
    acquire_resource(&first);
    ExSetResourceOwnerPointer(&first.resource, pointer);
    nest(&kinds[7], &second, &kinds[7], &third);
    assert_int_equal(KdCheckReleased(), 1); /* the region */
    ExReleaseResourceForThreadLite(&first.resource, (ERESOURCE_THREAD)pointer);
    KeLeaveCriticalRegion();
    assert_int_equal(KdCheckReleased(), 0);
    munmap(owner, UNREADABLE);
}

static void release_share(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    RtlReleaseResource(&first.rtl);
}

/* Any thread may release a share of an RTL resource. */
static void test_released_by_another_thread(void **state)
{
    (void)state;
    RtlAcquireResourceShared(&first.rtl, TRUE);
    run_threads(1, 60, release_share, NULL);
    assert_int_equal(KdCheckReleased(), 0);
}

/* Two threads, each with its own order, which never overlap. */
static void first_then_second(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    nest(&kinds[20], &first, &kinds[20], &second);
}

static void second_then_first(void *unused)
{
    (void)unused;
    nest(&kinds[20], &second, &kinds[20], &first);
}

static void test_threads_that_never_meet(void **state)
{
    (void)state;
    run_threads(1, 60, first_then_second, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, second_then_first, NULL);
}

static VOID keep_resource(PVOID context)
{
    (void)context;
    ExAcquireResourceSharedLite(&first.resource, TRUE); /* a system thread needs no critical region for that */
}

static void end_with_resource(void *unused)
{
    HANDLE thread;
    (void)unused;
    if (NT_SUCCESS(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, keep_resource, NULL)))
        ZwWaitForSingleObject(thread, FALSE, NULL);
}

static void keep_section(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    RtlEnterCriticalSection(&third.section);
}

static void keep_mutant(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    acquire_mutant(&first);
}

static void test_ended_threads(void **state)
{
    (void)state;
    run_threads(1, 60, keep_section, NULL); /* of a program: as Windows has it, the lock is lost */
    run_threads(1, 60, keep_mutant, NULL);  /* is abandoned */
    assert_int_equal(KeWaitForSingleObject(&first.mutant, Executive, KernelMode, FALSE, NULL), STATUS_ABANDONED);
    release_mutant(&first);
    RtlInitializeCriticalSection(&third.section);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ENDED_WITH_LOCK, end_with_resource, NULL);
}

/* A child has the locks of its thread, and the order of the parent. */
static void test_fork(void **state)
{
    int status;
    (void)state;
    acquire_section(&first);
    pid_t pid = fork();
    if (pid == 0) {
        if (KdCheckReleased() != 1)
            _exit(1);
        acquire_section(&second);
        release_section(&second);
        release_section(&first);
        _exit(KdCheckReleased() == 0 ? 0 : 2);
    }
    assert_true(pid > 0);
    release_section(&first);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    nest(&kinds[20], &second, &kinds[20], &first); /* the parent has not seen what the child did */
}

static void test_check_released(void **state)
{
    KIRQL irql;
    (void)state;
    assert_int_equal(KdCheckReleased(), 0);
    KeEnterCriticalRegion();
    KeEnterGuardedRegion();
    acquire_push(&first);
    KeRaiseIrql(APC_LEVEL, &irql);
    assert_int_equal(KdCheckReleased(), 4);
    KeLowerIrql(irql);
    release_push(&first);
    KeLeaveGuardedRegion();
    KeLeaveCriticalRegion();
    assert_int_equal(KdCheckReleased(), 0);
}

/* What the verifier does not watch: an acquire whose release it may not see. */
static void test_calls_without_the_flag(void **state)
{
    (void)state;
    KeEnterCriticalRegion();
    for (unsigned shared = 0; shared < 2; shared++) {
        if (shared) {
            ExfAcquirePushLockShared(&first.push);
        } else {
            ExfAcquirePushLockExclusive(&first.push);
        }
        assert_int_equal(KiOrderCountHeld(KiCurrentThread()), 0);
        ExfReleasePushLock(&first.push);
    }
    KeLeaveCriticalRegion();
}

static void disown_resource(void)
{
    acquire_fast_resource(&first);
    ExDisownFastResource(&first.fast_resource, &first.owner);
}

/* The thread does not hold what it has disowned. */
static void test_disowned(void **state)
{
    (void)state;
    KeEnterCriticalRegion();
    disown_resource();
    assert_int_equal(KiOrderCountHeld(KiCurrentThread()), 0);
    ExReleaseDisownedFastResource(&first.fast_resource, &first.owner);
    KeLeaveCriticalRegion();
}

static void fail_with_a_lock(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    acquire_push(&first);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

/* A lock that stays held after an expected bugcheck precedes none. */
static void test_left_by_a_bugcheck(void **state)
{
    (void)state;
    acquire_srw(&second);
    assert_int_equal(VfExpectBugCheck(fail_with_a_lock, NULL, NULL), MANUALLY_INITIATED_CRASH);
    assert_int_equal(KiOrderCountHeld(KiCurrentThread()), 1);
    release_srw(&second);
}

/* Memory where no lock was, in every bucket of the table. */
static void test_forgetting_nothing(void **state)
{
    (void)state;
    pair p = {&kinds[10], &kinds[10]};
    nest(p.outer, &first, p.inner, &second);
    for (size_t i = 0; i < 1u << 16; i++)
        KiOrderForget((PVOID)(0x10000 + i * sizeof(PVOID)));
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, the_other_way_round, &p);
}

static char report[16384];

static void violate_and_report(void *unused)
{
    (void)unused;
    HalCapturePrint(report, sizeof(report));
    nest(&kinds[18], &second, &kinds[10], &first);
}

/* The report names the lock that is acquired, and the one that is held. */
static void test_report(void **state)
{
    char acquired[64], held[64];
    (void)state;
    nest(&kinds[10], &first, &kinds[18], &second);
    assert_int_equal(VfExpectBugCheck(violate_and_report, NULL, NULL), DRIVER_VERIFIER_DETECTED_VIOLATION);
    HalCapturePrint(NULL, 0);
    snprintf(acquired, sizeof(acquired), "pushlock %p", (PVOID)&first.push);
    snprintf(held, sizeof(held), "SRW lock %p", (PVOID)&second.srw);
    char *line = strstr(report, "*** Lock order: ");
    assert_non_null(line);
    *strchr(line, '\n') = '\0';
    char *under = strstr(line, " is acquired under ");
    assert_non_null(under);
    assert_non_null(strstr(under, held));
    *under = '\0';
    assert_non_null(strstr(line, acquired));
}

static FAST_MUTEX far_apart[4];

static __attribute__((noinline)) void make_here(FAST_MUTEX *mutex)
{
    ExInitializeFastMutex(mutex);
    __asm__ volatile("");
}

/* A section of its own comes after all other code, whatever order the compiler puts functions in. */
static __attribute__((noinline, section("far_code"))) void make_far_away(FAST_MUTEX *mutex)
{
    ExInitializeFastMutex(mutex);
    __asm__ volatile("");
}

static void second_then_third(void *unused)
{
    (void)unused;
    ExAcquireFastMutex(&far_apart[1]);
    ExAcquireFastMutex(&far_apart[2]);
}

/* 8: the classes of two functions are not sorted by address. */
static void test_far_apart(void **state)
{
    (void)state;
    for (unsigned index = 0; index < 4; index += 2) {
        KEEP_ROLLED(index);
        make_far_away(&far_apart[index]);
        make_here(&far_apart[index + 1]);
    }
    ExAcquireFastMutex(&far_apart[0]);
    ExAcquireFastMutex(&far_apart[1]);
    ExReleaseFastMutex(&far_apart[1]);
    ExReleaseFastMutex(&far_apart[0]);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, ORDER_VIOLATED, second_then_third, NULL);
}

/* Many threads, one order, all kinds. */
#define CROWD 4

static lock crowd_locks[3];

static void crowd(void *argument, unsigned index)
{
    test_random random;
    (void)argument;
    random_seed(&random, index + 1);
    for (unsigned long round = test_rounds(2000); round != 0; round--) {
        const kind *k = &kinds[random_below(&random, KINDS)];
        unsigned a = random_below(&random, 2);
        if (k == &kinds[9] || k == &kinds[13] || k == &kinds[15] || k == &kinds[0] || k == &kinds[1] || k == &kinds[2] ||
            k == &kinds[3])
            continue; /* their acquires store something in the lock */
        nest(k, &crowd_locks[a], k, &crowd_locks[a + 1]);
    }
}

static void test_crowd(void **state)
{
    (void)state;
    for (unsigned index = 0; index < 3; index++)
        initialize(&crowd_locks[index]);
    run_threads(CROWD, 120, crowd, NULL);
    for (unsigned index = 0; index < 3; index++)
        delete(&crowd_locks[index]);
}

int main(void)
{
#define LOCK_TEST(test) cmocka_unit_test_setup_teardown(test, make_locks, delete_locks)
    static const struct CMUnitTest tests[] = {
        LOCK_TEST(test_two_locks),
        LOCK_TEST(test_one_order),
        LOCK_TEST(test_without_the_verifier),
        LOCK_TEST(test_three_locks),
        LOCK_TEST(test_tries),
        LOCK_TEST(test_under_tries),
        LOCK_TEST(test_other_waits),
        LOCK_TEST(test_wait_all),
        LOCK_TEST(test_passing_sharers),
        LOCK_TEST(test_converted),
        LOCK_TEST(test_converted_srw),
        LOCK_TEST(test_passing_sharer_and_writer),
        LOCK_TEST(test_recursion),
        LOCK_TEST(test_acquired_again),
        LOCK_TEST(test_locks_of_one_class),
        LOCK_TEST(test_philosophers),
        LOCK_TEST(test_classes),
        LOCK_TEST(test_classes_of_all_kinds),
        LOCK_TEST(test_sorted_by_address),
        LOCK_TEST(test_levels),
        LOCK_TEST(test_names_of_static_locks),
        LOCK_TEST(test_interrupted_owner),
        LOCK_TEST(test_level_of_dpc),
        LOCK_TEST(test_level_of_interrupt),
        LOCK_TEST(test_new_locks),
        LOCK_TEST(test_lock_behind_freed_memory),
        LOCK_TEST(test_owner_pointer),
        LOCK_TEST(test_released_by_another_thread),
        LOCK_TEST(test_threads_that_never_meet),
        LOCK_TEST(test_ended_threads),
        LOCK_TEST(test_fork),
        LOCK_TEST(test_check_released),
        LOCK_TEST(test_calls_without_the_flag),
        LOCK_TEST(test_disowned),
        LOCK_TEST(test_left_by_a_bugcheck),
        LOCK_TEST(test_forgetting_nothing),
        LOCK_TEST(test_report),
        LOCK_TEST(test_far_apart),
        LOCK_TEST(test_crowd),
    };
    default_setting("INTERLOCK_VERIFIER", "1");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
