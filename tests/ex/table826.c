/*
 * Table 8-26, row by row: which kernel APCs each mechanism disables, whether a thread may acquire it again, and whether
 * it can be shared.
 */
#include <interlock/ex.h>

#include "../ke/waittest.h"

typedef struct mechanism {
    const char *name;
    void (*initialize)(void);
    void (*acquire)(void);
    void (*release)(void);
    BOOLEAN (*try_again)(void);    /* by the owner; TRUE: acquired once more */
    void (*acquire_shared)(void);  /* NULL: there is no such thing */
    BOOLEAN (*try_shared)(void);
    void (*release_shared)(void);
    BOOLEAN in_region;             /* APCs have to be disabled by the caller: the mechanism does not */
    BOOLEAN holds_back_normal, holds_back_special, recursive, shareable;
} mechanism;

static KMUTEX mutex;
static KSEMAPHORE semaphore;
static KEVENT event;
static KTIMER timer;
static FAST_MUTEX fast_mutex;
static KGUARDED_MUTEX guarded_mutex;
static EX_PUSH_LOCK push_lock;
static ERESOURCE resource;
static EX_RUNDOWN_REF rundown;

static void initialize_mutex(void)
{
    KeInitializeMutex(&mutex, 0);
}

static void acquire_mutex(void)
{
    check(wait_for(&mutex, NULL) == STATUS_SUCCESS);
}

static void release_mutex(void)
{
    KeReleaseMutex(&mutex, FALSE);
}

static BOOLEAN try_mutex(void)
{
    return poll_object(&mutex);
}

static void initialize_semaphore(void)
{
    KeInitializeSemaphore(&semaphore, 1, 1);
}

static void acquire_semaphore(void)
{
    check(wait_for(&semaphore, NULL) == STATUS_SUCCESS);
}

static void release_semaphore(void)
{
    KeReleaseSemaphore(&semaphore, 0, 1, FALSE);
}

static BOOLEAN try_semaphore(void)
{
    return poll_object(&semaphore);
}

static void initialize_event(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, TRUE);
}

static void acquire_event(void)
{
    check(wait_for(&event, NULL) == STATUS_SUCCESS);
}

static void release_event(void)
{
    KeSetEvent(&event, 0, FALSE);
}

static BOOLEAN try_event(void)
{
    return poll_object(&event);
}

static void expire_timer(void)
{
    KeSetTimer(&timer, relative(1), NULL);
    await(KeReadStateTimer(&timer));
}

static void initialize_timer(void)
{
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    expire_timer();
}

static void acquire_timer(void)
{
    check(wait_for(&timer, NULL) == STATUS_SUCCESS);
}

static BOOLEAN try_timer(void)
{
    return poll_object(&timer);
}

static void initialize_fast_mutex(void)
{
    ExInitializeFastMutex(&fast_mutex);
}

static void acquire_fast_mutex(void)
{
    ExAcquireFastMutex(&fast_mutex);
}

static void release_fast_mutex(void)
{
    ExReleaseFastMutex(&fast_mutex);
}

static BOOLEAN try_fast_mutex(void)
{
    return ExTryToAcquireFastMutex(&fast_mutex);
}

static void initialize_guarded_mutex(void)
{
    KeInitializeGuardedMutex(&guarded_mutex);
}

static void acquire_guarded_mutex(void)
{
    KeAcquireGuardedMutex(&guarded_mutex);
}

static void release_guarded_mutex(void)
{
    KeReleaseGuardedMutex(&guarded_mutex);
}

static BOOLEAN try_guarded_mutex(void)
{
    return KeTryToAcquireGuardedMutex(&guarded_mutex);
}

static void initialize_push_lock(void)
{
    ExInitializePushLock(&push_lock);
}

static void acquire_push_lock(void)
{
    ExAcquirePushLockExclusive(&push_lock);
}

static void release_push_lock(void)
{
    ExReleasePushLockExclusive(&push_lock);
}

static BOOLEAN try_push_lock(void)
{
    return ExTryAcquirePushLockExclusive(&push_lock);
}

static void share_push_lock(void)
{
    ExAcquirePushLockShared(&push_lock);
}

static BOOLEAN try_to_share_push_lock(void)
{
    return ExTryAcquirePushLockShared(&push_lock);
}

static void unshare_push_lock(void)
{
    ExReleasePushLockShared(&push_lock);
}

static void initialize_resource(void)
{
    check(ExInitializeResourceLite(&resource) == STATUS_SUCCESS);
}

static void acquire_resource(void)
{
    check(ExAcquireResourceExclusiveLite(&resource, TRUE));
}

static void release_resource(void)
{
    ExReleaseResourceLite(&resource);
}

static BOOLEAN try_resource(void)
{
    return ExAcquireResourceExclusiveLite(&resource, FALSE);
}

static void share_resource(void)
{
    check(ExAcquireResourceSharedLite(&resource, TRUE));
}

static BOOLEAN try_to_share_resource(void)
{
    return ExAcquireResourceSharedLite(&resource, FALSE);
}

static void initialize_rundown(void)
{
    ExInitializeRundownProtection(&rundown);
}

static BOOLEAN try_rundown(void)
{
    return ExAcquireRundownProtection(&rundown);
}

static void acquire_rundown(void)
{
    check(try_rundown());
}

static void release_rundown(void)
{
    ExReleaseRundownProtection(&rundown);
}

static const mechanism mechanisms[] = {
    {"mutexes", initialize_mutex, acquire_mutex, release_mutex, try_mutex, NULL, NULL, NULL,
     FALSE, TRUE, FALSE, TRUE, FALSE},
    {"semaphores", initialize_semaphore, acquire_semaphore, release_semaphore, try_semaphore, NULL, NULL, NULL,
     FALSE, FALSE, FALSE, FALSE, FALSE},
    {"events", initialize_event, acquire_event, release_event, try_event, NULL, NULL, NULL,
     FALSE, FALSE, FALSE, FALSE, FALSE},
    {"timers", initialize_timer, acquire_timer, expire_timer, try_timer, NULL, NULL, NULL,
     FALSE, FALSE, FALSE, FALSE, FALSE},
    {"fast mutexes", initialize_fast_mutex, acquire_fast_mutex, release_fast_mutex, try_fast_mutex, NULL, NULL, NULL,
     FALSE, TRUE, TRUE, FALSE, FALSE},
    {"guarded mutexes", initialize_guarded_mutex, acquire_guarded_mutex, release_guarded_mutex, try_guarded_mutex,
     NULL, NULL, NULL, FALSE, TRUE, TRUE, FALSE, FALSE},
    {"pushlocks", initialize_push_lock, acquire_push_lock, release_push_lock, try_push_lock, share_push_lock,
     try_to_share_push_lock, unshare_push_lock, TRUE, FALSE, FALSE, FALSE, TRUE},
    {"executive resources", initialize_resource, acquire_resource, release_resource, try_resource, share_resource,
     try_to_share_resource, release_resource, TRUE, FALSE, FALSE, TRUE, TRUE},
    {"rundown protections", initialize_rundown, acquire_rundown, release_rundown, try_rundown, NULL, NULL, NULL,
     FALSE, FALSE, FALSE, TRUE, FALSE},
};

/* APCs to the thread itself, which run at once unless they are disabled. */

static volatile ULONG special_runs, normal_runs;

static void note_special(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)routine;
    (void)context;
    (void)argument1;
    (void)argument2;
    special_runs += 1;
}

static void note_nothing(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)routine;
    (void)context;
    (void)argument1;
    (void)argument2;
}

static void note_normal(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)context;
    (void)argument1;
    (void)argument2;
    normal_runs += 1;
}

static void queue_both(PKAPC special, PKAPC normal)
{
    special_runs = 0;
    normal_runs = 0;
    KeInitializeApc(special, KeGetCurrentThread(), OriginalApcEnvironment, note_special, NULL, NULL, KernelMode, NULL);
    KeInitializeApc(normal, KeGetCurrentThread(), OriginalApcEnvironment, note_nothing, NULL, note_normal, KernelMode,
                    NULL);
    check(KeInsertQueueApc(special, NULL, NULL, 0));
    check(KeInsertQueueApc(normal, NULL, NULL, 0));
}

/* The verifier forbids this; the table describes the mechanism itself. */
static void check_apcs(const mechanism *m)
{
    BOOLEAN verifier = KiVerifierEnabled;
    KAPC special, normal;
    if (verifier && m->in_region)
        KiVerifierEnabled = FALSE;
    m->acquire();
    queue_both(&special, &normal);
    assert_int_equal(special_runs, !m->holds_back_special);
    assert_int_equal(normal_runs, !m->holds_back_normal);
    assert_int_equal(KeAreAllApcsDisabled(), m->holds_back_special);
    m->release();
    assert_int_equal(special_runs, 1);
    assert_int_equal(normal_runs, 1);
    assert_false(KeAreApcsDisabled());
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    if (verifier)
        KiVerifierEnabled = TRUE;
}

static void check_recursion(const mechanism *m)
{
    m->acquire();
    BOOLEAN again = m->try_again();
    assert_int_equal(again, m->recursive);
    if (again) {
        m->release();
    }
    m->release();
}

/* From the point of view of another thread. */
typedef struct visitor {
    actor actor;
    const mechanism *mechanism;
    BOOLEAN exclusively, shared;
} visitor;

static void visit(void *argument)
{
    visitor *v = argument;
    KeEnterCriticalRegion();
    v->exclusively = v->mechanism->try_again();
    if (v->exclusively) {
        v->mechanism->release();
    }
    v->shared = v->mechanism->try_shared != NULL && v->mechanism->try_shared();
    if (v->shared) {
        v->mechanism->release_shared();
    }
    KeLeaveCriticalRegion();
}

static void expect_visit(visitor *v, BOOLEAN exclusively, BOOLEAN shared)
{
    run_on(&v->actor, visit, v);
    assert_int_equal(v->exclusively, exclusively);
    assert_int_equal(v->shared, shared);
}

/* Holders of a rundown protection keep an object alive; they do not exclude each other. */
static BOOLEAN keeps_others_out(const mechanism *m)
{
    return m->acquire != acquire_rundown;
}

static void check_sharing(const mechanism *m)
{
    visitor v = {.mechanism = m};
    start_actor(&v.actor);
    assert_int_equal(m->acquire_shared != NULL, m->shareable);
    expect_visit(&v, TRUE, m->shareable);
    m->acquire();
    expect_visit(&v, !keeps_others_out(m), FALSE);
    m->release();
    if (m->shareable) {
        m->acquire_shared();
        expect_visit(&v, FALSE, TRUE);
        m->release_shared();
    }
    expect_visit(&v, TRUE, m->shareable);
    end_actor(&v.actor);
}

static void check_row(void **state)
{
    const mechanism *m = *state;
    watchdog_start(TEST_SECONDS);
    m->initialize();
    check_apcs(m);
    KeEnterCriticalRegion();
    check_recursion(m);
    check_sharing(m);
    KeLeaveCriticalRegion();
    watchdog_stop();
}

int main(void)
{
    struct CMUnitTest tests[RTL_NUMBER_OF(mechanisms)];
    for (ULONG i = 0; i < RTL_NUMBER_OF(mechanisms); i += 1) {
        tests[i] = (struct CMUnitTest){.name = mechanisms[i].name,
                                       .test_func = check_row,
                                       .initial_state = (void *)(ULONG_PTR)&mechanisms[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
