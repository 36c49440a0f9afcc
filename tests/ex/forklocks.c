/*
 * forklocks.c: every lock across a fork, in every state. The forker holds it or does not, others are queued for it, one
 * of them may just have been woken. The child releases, tries, acquires and lets new threads contend; these get the
 * stacks of the threads that the child does not have, with the queued blocks there. Then the waiters of the parent
 * proceed normally.
 *
 * Completion ports are in tests/nt/iocompletion.c, the thread pool in tests/win32/tpwork.c, tptimer.c and tpwait.c,
 * queued spinlocks in tests/ke/queuedlock.c.
 */
#include "../rtl/locktest.h"

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <signal.h>

#define MOST_WAITERS 4
#define CHILD_ROUNDS 100

typedef enum lock_mode {
    NOT,
    EXCLUSIVE,
    SHARED
} lock_mode;

/* The lock; and what one acquire of it needs until its release. */
typedef union any_lock {
    RTL_SRWLOCK srw;
    EX_PUSH_LOCK push;
    PEX_CACHE_AWARE_PUSH_LOCK cache_aware;
    PEX_PUSH_LOCK_AUTO_EXPAND auto_expand;
    FAST_MUTEX mutex;
    ERESOURCE resource;
    FAST_ERESOURCE fast_resource;
    RTL_RESOURCE rtl_resource;
    RTL_CRITICAL_SECTION section;
} any_lock;

typedef union lock_hold {
    PEX_PUSH_LOCK handle;
    FAST_OWNER_ENTRY entry;
} lock_hold;

typedef struct lock_kind {
    const char *name;
    void (*create)(any_lock *lock);
    void (*destroy)(any_lock *lock);
    bool (*acquire)(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait); /* FALSE: !wait, and it is not
                                                                                    available */
    void (*release)(any_lock *lock, lock_hold *hold, lock_mode mode);
    bool shared;     /* it has a shared mode */
    bool opens;      /* a release opens the lock for the waiter that it wakes; otherwise it hands off */
    bool tries;      /* it has a try */
    bool one_queue;  /* not one for each processor */
} lock_kind;

static void nothing_to_do(any_lock *lock)
{
    (void)lock;
}

static void create_zeroed(any_lock *lock)
{
    memset(lock, 0, sizeof(*lock));
}

static bool acquire_srw(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    (void)hold;
    if (!wait) {
        return mode == SHARED ? RtlTryAcquireSRWLockShared(&lock->srw) : RtlTryAcquireSRWLockExclusive(&lock->srw);
    }
    if (mode == SHARED) {
        RtlAcquireSRWLockShared(&lock->srw);
    } else {
        RtlAcquireSRWLockExclusive(&lock->srw);
    }
    return true;
}

static void release_srw(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)hold;
    if (mode == SHARED) {
        RtlReleaseSRWLockShared(&lock->srw);
    } else {
        RtlReleaseSRWLockExclusive(&lock->srw);
    }
}

static bool acquire_push(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    (void)hold;
    if (!wait) {
        return mode == SHARED ? ExTryAcquirePushLockShared(&lock->push) : ExTryAcquirePushLockExclusive(&lock->push);
    }
    if (mode == SHARED) {
        ExAcquirePushLockShared(&lock->push);
    } else {
        ExAcquirePushLockExclusive(&lock->push);
    }
    return true;
}

static void release_push(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)hold;
    if (mode == SHARED) {
        ExReleasePushLockShared(&lock->push);
    } else {
        ExReleasePushLockExclusive(&lock->push);
    }
}

static void create_cache_aware(any_lock *lock)
{
    lock->cache_aware = ExAllocateCacheAwarePushLock();
    check(lock->cache_aware != NULL);
}

static void destroy_cache_aware(any_lock *lock)
{
    ExFreeCacheAwarePushLock(lock->cache_aware);
}

static bool acquire_cache_aware(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    check(wait);
    if (mode == SHARED) {
        hold->handle = ExAcquireCacheAwarePushLockShared(lock->cache_aware);
    } else {
        ExAcquireCacheAwarePushLockExclusive(lock->cache_aware);
    }
    return true;
}

static void release_cache_aware(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    if (mode == SHARED) {
        ExReleaseCacheAwarePushLockShared(hold->handle);
    } else {
        ExReleaseCacheAwarePushLockExclusive(lock->cache_aware);
    }
}

static void create_auto_expand(any_lock *lock)
{
    lock->auto_expand = ExAllocateAutoExpandPushLock(0);
    check(lock->auto_expand != NULL);
}

/* Sharers that contend for its word have made it grow. */
static void create_expanded(any_lock *lock)
{
    create_auto_expand(lock);
    for (ULONG i = 0; KeNumberProcessors > 1 && !(lock->auto_expand->State & 1); i++) {
        check(i < 1000);
        PEX_PUSH_LOCK first = ExAcquireAutoExpandPushLockShared(lock->auto_expand, 0);
        for (ULONG j = 0; j < 64; j++) {
            PEX_PUSH_LOCK second = ExAcquireAutoExpandPushLockShared(lock->auto_expand, 0);
            ExReleaseAutoExpandPushLockShared(lock->auto_expand, second, 0);
        }
        ExReleaseAutoExpandPushLockShared(lock->auto_expand, first, 0);
    }
}

static void destroy_auto_expand(any_lock *lock)
{
    ExFreeAutoExpandPushLock(lock->auto_expand);
}

static bool acquire_auto_expand(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    check(wait);
    if (mode == SHARED) {
        hold->handle = ExAcquireAutoExpandPushLockShared(lock->auto_expand, 0);
    } else {
        ExAcquireAutoExpandPushLockExclusive(lock->auto_expand, 0);
    }
    return true;
}

static void release_auto_expand(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    if (mode == SHARED) {
        ExReleaseAutoExpandPushLockShared(lock->auto_expand, hold->handle, 0);
    } else {
        ExReleaseAutoExpandPushLockExclusive(lock->auto_expand, 0);
    }
}

static void create_mutex(any_lock *lock)
{
    ExInitializeFastMutex(&lock->mutex);
}

static bool acquire_fast_mutex(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    (void)hold;
    (void)mode;
    if (!wait) {
        return ExTryToAcquireFastMutex(&lock->mutex);
    }
    ExAcquireFastMutex(&lock->mutex);
    return true;
}

static void release_fast_mutex(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)hold;
    (void)mode;
    ExReleaseFastMutex(&lock->mutex);
}

static bool acquire_guarded_mutex(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    (void)hold;
    (void)mode;
    if (!wait) {
        return KeTryToAcquireGuardedMutex(&lock->mutex);
    }
    KeAcquireGuardedMutex(&lock->mutex);
    return true;
}

static void release_guarded_mutex(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)hold;
    (void)mode;
    KeReleaseGuardedMutex(&lock->mutex);
}

static void create_resource(any_lock *lock)
{
    check(NT_SUCCESS(ExInitializeResourceLite(&lock->resource)));
}

static void destroy_resource(any_lock *lock)
{
    check(NT_SUCCESS(ExDeleteResourceLite(&lock->resource)));
}

static bool acquire_resource(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    (void)hold;
    return mode == SHARED ? ExAcquireResourceSharedLite(&lock->resource, wait)
                          : ExAcquireResourceExclusiveLite(&lock->resource, wait);
}

static void release_resource(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)hold;
    (void)mode;
    ExReleaseResourceLite(&lock->resource);
}

static void create_fast_resource(any_lock *lock)
{
    ExInitializeFastResource(&lock->fast_resource, 0);
}

static void destroy_fast_resource(any_lock *lock)
{
    ExDeleteFastResource(&lock->fast_resource);
}

static bool acquire_fast_resource(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    ExInitializeFastOwnerEntry(&hold->entry);
    return mode == SHARED ? ExAcquireFastResourceShared(&lock->fast_resource, &hold->entry, wait)
                          : ExAcquireFastResourceExclusive(&lock->fast_resource, &hold->entry, wait);
}

static void release_fast_resource(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)mode;
    ExReleaseFastResource(&lock->fast_resource, &hold->entry);
}

static void create_rtl_resource(any_lock *lock)
{
    RtlInitializeResource(&lock->rtl_resource);
}

static void destroy_rtl_resource(any_lock *lock)
{
    RtlDeleteResource(&lock->rtl_resource);
}

static bool acquire_rtl_resource(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    (void)hold;
    return mode == SHARED ? RtlAcquireResourceShared(&lock->rtl_resource, wait)
                          : RtlAcquireResourceExclusive(&lock->rtl_resource, wait);
}

static void release_rtl_resource(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)hold;
    (void)mode;
    RtlReleaseResource(&lock->rtl_resource);
}

static void create_section(any_lock *lock)
{
    check(NT_SUCCESS(RtlInitializeCriticalSection(&lock->section)));
}

static void destroy_section(any_lock *lock)
{
    check(NT_SUCCESS(RtlDeleteCriticalSection(&lock->section)));
}

static bool acquire_section(any_lock *lock, lock_hold *hold, lock_mode mode, bool wait)
{
    (void)hold;
    (void)mode;
    return wait ? NT_SUCCESS(RtlEnterCriticalSection(&lock->section))
                : RtlTryEnterCriticalSection(&lock->section) != 0;
}

static void release_section(any_lock *lock, lock_hold *hold, lock_mode mode)
{
    (void)hold;
    (void)mode;
    RtlLeaveCriticalSection(&lock->section);
}

static const lock_kind kinds[] = {
    {"SRW lock", create_zeroed, nothing_to_do, acquire_srw, release_srw, true, true, true, true},
    {"pushlock", create_zeroed, nothing_to_do, acquire_push, release_push, true, true, true, true},
    {"cache-aware pushlock", create_cache_aware, destroy_cache_aware, acquire_cache_aware, release_cache_aware, true,
     true, false, false},
    {"auto-expand pushlock", create_auto_expand, destroy_auto_expand, acquire_auto_expand, release_auto_expand, true,
     true, false, true},
    {"expanded pushlock", create_expanded, destroy_auto_expand, acquire_auto_expand, release_auto_expand, true, true,
     false, false},
    {"fast mutex", create_mutex, nothing_to_do, acquire_fast_mutex, release_fast_mutex, false, true, true, true},
    {"guarded mutex", create_mutex, nothing_to_do, acquire_guarded_mutex, release_guarded_mutex, false, true, true,
     true},
    {"resource", create_resource, destroy_resource, acquire_resource, release_resource, true, false, true, true},
    {"fast resource", create_fast_resource, destroy_fast_resource, acquire_fast_resource, release_fast_resource, true,
     false, true, true},
    {"resource of user mode", create_rtl_resource, destroy_rtl_resource, acquire_rtl_resource, release_rtl_resource,
     true, false, true, true},
    {"critical section", create_section, destroy_section, acquire_section, release_section, false, true, true, true},
};

/* A state of the lock. */

typedef struct scene {
    const lock_kind *kind;
    any_lock lock;
    lock_mode held;          /* by the forker */
    const char *queued; /* x and s, in their order */
    bool child_contends;
    unsigned holds;     /* how often, if it shares it */
    lock_hold hold[2];       /* the forker's */
    volatile ULONG inside;
    ULONG count;        /* what the lock protects */
} scene;

typedef struct queued_thread {
    scene *scene;
    lock_mode mode;
    pthread_t host_thread;
    PKTHREAD volatile thread;
    volatile ULONG entered;
} queued_thread;

static void hold_lock(scene *s, lock_hold *hold, lock_mode mode)
{
    check(s->kind->acquire(&s->lock, hold, mode, true));
    if (mode == EXCLUSIVE) {
        check(__atomic_fetch_add(&s->inside, 1, __ATOMIC_RELAXED) == 0);
        s->count += 1;
        check(__atomic_sub_fetch(&s->inside, 1, __ATOMIC_RELAXED) == 0);
    }
}

static void release_holds(scene *s)
{
    for (unsigned i = 0; s->held != NOT && i < s->holds; i++) {
        s->kind->release(&s->lock, &s->hold[i], s->held);
    }
}

static void *wait_for_lock(void *argument)
{
    queued_thread *w = argument;
    lock_hold hold;
    KeEnterCriticalRegion();
    __atomic_store_n(&w->thread, KeGetCurrentThread(), __ATOMIC_RELEASE);
    hold_lock(w->scene, &hold, w->mode);
    __atomic_store_n(&w->entered, 1, __ATOMIC_RELEASE);
    w->scene->kind->release(&w->scene->lock, &hold, w->mode);
    KeLeaveCriticalRegion();
    return NULL;
}

static void start_waiter(queued_thread *w, scene *s, char letter)
{
    w->scene = s;
    w->mode = letter == 's' ? SHARED : EXCLUSIVE;
    w->thread = NULL;
    w->entered = 0;
    check(pthread_create(&w->host_thread, NULL, wait_for_lock, w) == 0);
    PKTHREAD thread;
    await((thread = __atomic_load_n(&w->thread, __ATOMIC_ACQUIRE)) != NULL);
    /* A sharer of a lock with a word for each processor may find one that the exclusive waiter has not reached. */
    await((__atomic_load_n(&thread->State, __ATOMIC_RELAXED) == Waiting && sleeps_in_the_host(thread->ThreadId)) ||
          (w->mode == SHARED && __atomic_load_n(&w->entered, __ATOMIC_ACQUIRE)));
}

/* The child. */

static void *contend(void *argument)
{
    scene *s = argument;
    KeEnterCriticalRegion();
    for (int i = 0; i < CHILD_ROUNDS; i++) {
        lock_mode mode = s->kind->shared && i % 3 == 2 ? SHARED : EXCLUSIVE;
        lock_hold hold;
        hold_lock(s, &hold, mode);
        s->kind->release(&s->lock, &hold, mode);
    }
    KeLeaveCriticalRegion();
    return NULL;
}

/* Held by at most the forker. */
static void *try_beside_holder(void *argument)
{
    scene *s = argument;
    lock_hold hold;
    KeEnterCriticalRegion();
    check(!s->kind->acquire(&s->lock, &hold, EXCLUSIVE, false));
    if (s->kind->shared) {
        bool got = s->kind->acquire(&s->lock, &hold, SHARED, false);
        check(got == (s->held == SHARED));
        if (got) {
            s->kind->release(&s->lock, &hold, SHARED);
        }
    }
    KeLeaveCriticalRegion();
    return NULL;
}

/* There is no other waiter, so a held share can be shared. */
static void *share_beside_holder(void *argument)
{
    scene *s = argument;
    lock_hold hold;
    KeEnterCriticalRegion();
    s->kind->acquire(&s->lock, &hold, SHARED, true);
    s->kind->release(&s->lock, &hold, SHARED);
    KeLeaveCriticalRegion();
    return NULL;
}

static void run_apart(void *(*function)(void *), scene *s)
{
    pthread_t thread;
    check(pthread_create(&thread, NULL, function, s) == 0);
    check(pthread_join(thread, NULL) == 0);
}

static void use_in_child(void *argument)
{
    scene *s = argument;
    pthread_t threads[2];
    if (s->held == SHARED) {
        run_apart(share_beside_holder, s);
    }
    if (s->held != NOT && s->kind->tries) {
        run_apart(try_beside_holder, s);
    }
    for (int i = 0; i < 2 && s->child_contends; i++) {
        check(pthread_create(&threads[i], NULL, contend, s) == 0);
    }
    if (s->held != NOT) {
        if (s->child_contends) {
            usleep(2000);
        }
        release_holds(s);
    }
    for (int i = 0; i < 2 && s->child_contends; i++) {
        check(pthread_join(threads[i], NULL) == 0);
    }
    if (s->kind->tries) {
        check(s->kind->acquire(&s->lock, &s->hold[0], EXCLUSIVE, false));
        s->kind->release(&s->lock, &s->hold[0], EXCLUSIVE);
    }
    for (int i = 0; i < 5000; i++) { /* more often than waiters are overtaken before they are handed a fast mutex */
        s->kind->acquire(&s->lock, &s->hold[0], EXCLUSIVE, true);
        s->kind->release(&s->lock, &s->hold[0], EXCLUSIVE);
    }
    if (s->kind->shared) {
        s->kind->acquire(&s->lock, &s->hold[0], SHARED, true);
        run_apart(share_beside_holder, s);
        s->kind->release(&s->lock, &s->hold[0], SHARED);
    }
    contend(s);
    s->kind->destroy(&s->lock);
}

static bool child_returns(scene *s)
{
    int status;
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        alarm(10 * test_slowdown());
        use_in_child(s);
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child);
    if (status != 0) {
        fprintf(stderr, "%s, held %d (%u), queued \"%s\", %s: the child ended with status %x\n", s->kind->name, s->held,
                s->holds, s->queued, s->child_contends ? "contended" : "alone", (unsigned)status);
    }
    return status == 0;
}

/* The parent. */

static void begin_scene(scene *s, queued_thread *waiters)
{
    s->kind->create(&s->lock);
    s->inside = 0;
    s->count = 0;
    for (unsigned i = 0; s->held != NOT && i < s->holds; i++) {
        hold_lock(s, &s->hold[i], s->held);
    }
    for (size_t i = 0; s->queued[i] != 0; i++) {
        start_waiter(&waiters[i], s, s->queued[i]);
    }
}

static void end_scene(scene *s, queued_thread *waiters)
{
    for (size_t i = 0; s->queued[i] != 0; i++) {
        check(pthread_join(waiters[i].host_thread, NULL) == 0);
        check(waiters[i].entered);
    }
    s->kind->destroy(&s->lock);
}

static bool walk_scene(scene *s)
{
    queued_thread waiters[MOST_WAITERS];
    begin_scene(s, waiters);
    bool well = child_returns(s);
    release_holds(s);
    end_scene(s, waiters);
    return well;
}

static unsigned walk_queues(const lock_kind *kind, lock_mode held, unsigned holds, const char *const *queues)
{
    unsigned failures = 0;
    for (; *queues != NULL; queues++) {
        for (int contends = 0; contends < 2; contends++) {
            scene s = {.kind = kind, .held = held, .holds = holds, .queued = *queues, .child_contends = contends != 0};
            failures += !walk_scene(&s);
        }
    }
    return failures;
}

static const char *const no_queue[] = {"", NULL};
static const char *const exclusive_queues[] = {"", "x", "xx", "xxx", NULL};
static const char *const mixed_queues[] = {"s", "ss", "sx", "xs", "sxsx", "xsxs", NULL};
static const char *const queues_behind_exclusive[] = {"xs", "xsx", "xxss", NULL};

static void every_lock_in_every_state(void **state)
{
    unsigned failures = 0;
    (void)state;
    KeEnterCriticalRegion();
    for (size_t i = 0; i < ARRAYSIZE(kinds); i++) {
        const lock_kind *kind = &kinds[i];
        failures += walk_queues(kind, NOT, 0, no_queue);
        failures += walk_queues(kind, EXCLUSIVE, 1, exclusive_queues);
        for (unsigned holds = 1; holds <= 2 && kind->shared; holds++) {
            failures += walk_queues(kind, SHARED, holds, exclusive_queues);
            if (kind->acquire != acquire_rtl_resource) { /* which admits sharers past an exclusive waiter */
                failures += walk_queues(kind, SHARED, holds, queues_behind_exclusive);
            }
        }
        if (kind->shared) {
            failures += walk_queues(kind, EXCLUSIVE, 1, mixed_queues);
        }
    }
    KeLeaveCriticalRegion();
    assert_int_equal(failures, 0);
}

/* A wake in progress: the woken thread is delayed by a signal. */

static volatile ULONG frozen_threads;
static volatile ULONG thaw;

static void freeze(int signal)
{
    (void)signal;
    __atomic_add_fetch(&frozen_threads, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&thaw, __ATOMIC_ACQUIRE)) {
        pause_briefly();
    }
    __atomic_sub_fetch(&frozen_threads, 1, __ATOMIC_RELEASE);
}

static bool walk_wake(const lock_kind *kind, const char *queued, bool taken_again, bool contends)
{
    queued_thread waiters[MOST_WAITERS];
    scene s = {.kind = kind, .held = EXCLUSIVE, .holds = 1, .queued = queued, .child_contends = contends};
    ULONG count = (ULONG)strlen(queued);
    begin_scene(&s, waiters);
    __atomic_store_n(&thaw, 0, __ATOMIC_RELEASE);
    for (ULONG i = 0; i < count; i++) {
        check(pthread_kill(waiters[i].host_thread, SIGUSR1) == 0);
    }
    await(__atomic_load_n(&frozen_threads, __ATOMIC_ACQUIRE) == count);
    kind->release(&s.lock, &s.hold[0], EXCLUSIVE);
    s.held = taken_again ? EXCLUSIVE : NOT;
    if (taken_again) {
        hold_lock(&s, &s.hold[0], EXCLUSIVE);
    }
    bool well = child_returns(&s);
    __atomic_store_n(&thaw, 1, __ATOMIC_RELEASE);
    if (taken_again) {
        kind->release(&s.lock, &s.hold[0], EXCLUSIVE);
    }
    end_scene(&s, waiters);
    return well;
}

/* A sharer at the head of a queue is not woken to try: it is granted the lock, and owns it. So there is an exclusive
   waiter before it, in the only queue. */
static const char *const woken_queues[] = {"x", "xx", "xs", "xss", NULL};

static void a_wake_in_progress(void **state)
{
    struct sigaction action = {.sa_handler = freeze, .sa_flags = SA_RESTART}, before;
    unsigned failures = 0;
    (void)state;
    KeEnterCriticalRegion();
    check(sigaction(SIGUSR1, &action, &before) == 0);
    for (size_t i = 0; i < ARRAYSIZE(kinds); i++) {
        for (int variant = 0; variant < 4 && kinds[i].opens; variant++) {
            for (const char *const *queued = woken_queues; *queued != NULL; queued++) {
                if ((kinds[i].shared && kinds[i].one_queue) || strchr(*queued, 's') == NULL) {
                    failures += !walk_wake(&kinds[i], *queued, variant & 1, variant & 2);
                }
            }
        }
    }
    check(sigaction(SIGUSR1, &before, NULL) == 0);
    KeLeaveCriticalRegion();
    assert_int_equal(failures, 0);
}

/* Other primitives, one test each: threads wait in the parent, the child continues without them. */

typedef struct sleeper {
    void (*wait)(void *argument);
    void *argument;
    pthread_t host_thread;
    PKTHREAD volatile thread;
} sleeper;

static void *run_sleeper(void *argument)
{
    sleeper *s = argument;
    __atomic_store_n(&s->thread, KeGetCurrentThread(), __ATOMIC_RELEASE);
    s->wait(s->argument);
    return NULL;
}

static void start_sleeper(sleeper *s, void (*wait)(void *argument), void *argument)
{
    *s = (sleeper){.wait = wait, .argument = argument};
    check(pthread_create(&s->host_thread, NULL, run_sleeper, s) == 0);
    PKTHREAD thread;
    await((thread = __atomic_load_n(&s->thread, __ATOMIC_ACQUIRE)) != NULL);
    await(__atomic_load_n(&thread->State, __ATOMIC_RELAXED) == Waiting && sleeps_in_the_host(thread->ThreadId));
}

static void end_sleepers(sleeper *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        check(pthread_join(s[i].host_thread, NULL) == 0);
    }
}

/* Threads of the child whose stacks are those of the sleepers, overwritten. */
static void *overwrite_stack(void *argument)
{
    volatile unsigned char bytes[24576];
    (void)argument;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(0xa0 | (i & 15));
    }
    pause_briefly();
    return NULL;
}

static void overwrite_stacks(void)
{
    pthread_t threads[MOST_WAITERS];
    for (unsigned i = 0; i < MOST_WAITERS; i++) {
        check(pthread_create(&threads[i], NULL, overwrite_stack, NULL) == 0);
    }
    for (unsigned i = 0; i < MOST_WAITERS; i++) {
        check(pthread_join(threads[i], NULL) == 0);
    }
}

/* Run once. */

static void begin_once(void *once)
{
    PVOID context;
    check(RtlRunOnceBeginInitialize(once, 0, &context) == STATUS_SUCCESS);
    check(context == (PVOID)64);
}

static void complete_once(void *once)
{
    PVOID context;
    overwrite_stacks();
    check(RtlRunOnceComplete(once, 0, (PVOID)64) == STATUS_SUCCESS);
    check(RtlRunOnceBeginInitialize(once, 0, &context) == STATUS_SUCCESS);
    check(context == (PVOID)64);
}

static void fail_once(void *once)
{
    sleeper s[2];
    for (unsigned i = 0; i < 2; i++) {
        start_sleeper(&s[i], begin_once, once);
    }
    check(RtlRunOnceComplete(once, 0, (PVOID)64) == STATUS_SUCCESS);
    end_sleepers(s, 2);
    RtlRunOnceInitialize(once);
    check(RtlRunOnceBeginInitialize(once, 0, NULL) == STATUS_PENDING);
    check(RtlRunOnceComplete(once, RTL_RUN_ONCE_INIT_FAILED, NULL) == STATUS_SUCCESS);
}

static void run_once(void **state)
{
    RTL_RUN_ONCE once = RTL_RUN_ONCE_INIT;
    sleeper s[3];
    (void)state;
    check(RtlRunOnceBeginInitialize(&once, 0, NULL) == STATUS_PENDING);
    for (unsigned i = 0; i < 3; i++) {
        start_sleeper(&s[i], begin_once, &once);
    }
    in_child(complete_once, &once);
    in_child(fail_once, &once);
    check(RtlRunOnceComplete(&once, 0, (PVOID)64) == STATUS_SUCCESS);
    end_sleepers(s, 3);
}

/* Rundown protection: a rundown that no thread of the child waits for has not begun there. */

static void await_rundown(void *reference)
{
    ExWaitForRundownProtectionRelease(reference);
}

static void release_rundown(void *reference)
{
    sleeper s[2];
    overwrite_stacks();
    check(ExAcquireRundownProtection(reference));
    ExReleaseRundownProtection(reference);
    ExReleaseRundownProtection(reference);
    for (unsigned i = 0; i < 2; i++) {
        start_sleeper(&s[i], await_rundown, reference);
    }
    check(!ExAcquireRundownProtection(reference));
    ExReleaseRundownProtection(reference);
    end_sleepers(s, 2);
    check(!ExAcquireRundownProtection(reference));
}

static void release_rundown_first(void *reference)
{
    overwrite_stacks();
    ExReleaseRundownProtection(reference);
    check(ExAcquireRundownProtection(reference));
    ExReleaseRundownProtection(reference);
    ExReleaseRundownProtection(reference);
    ExWaitForRundownProtectionRelease(reference);
}

static void await_rundown_of_one(void *reference)
{
    sleeper s;
    overwrite_stacks();
    start_sleeper(&s, await_rundown, reference);
    ExReleaseRundownProtection(reference);
    end_sleepers(&s, 1);
}

static void rundown_protection(void **state)
{
    EX_RUNDOWN_REF reference = {.Count = 0};
    sleeper s[3];
    (void)state;
    check(ExAcquireRundownProtection(&reference));
    check(ExAcquireRundownProtection(&reference));
    for (unsigned i = 0; i < 3; i++) {
        start_sleeper(&s[i], await_rundown, &reference);
    }
    in_child(release_rundown, &reference);
    in_child(release_rundown_first, &reference);
    ExReleaseRundownProtection(&reference);
    in_child(await_rundown_of_one, &reference);
    ExReleaseRundownProtection(&reference);
    end_sleepers(s, 3);
}

static void await_cache_aware_rundown(void *reference)
{
    ExWaitForRundownProtectionReleaseCacheAware(reference);
}

static void release_cache_aware_rundown(void *reference)
{
    sleeper s;
    overwrite_stacks();
    check(ExAcquireRundownProtectionCacheAware(reference));
    ExReleaseRundownProtectionCacheAware(reference);
    ExReleaseRundownProtectionCacheAware(reference);
    start_sleeper(&s, await_cache_aware_rundown, reference);
    check(!ExAcquireRundownProtectionCacheAware(reference));
    ExReleaseRundownProtectionCacheAware(reference);
    end_sleepers(&s, 1);
    check(!ExAcquireRundownProtectionCacheAware(reference));
}

static void cache_aware_rundown_protection(void **state)
{
    PEX_RUNDOWN_REF_CACHE_AWARE reference = ExAllocateCacheAwareRundownProtection(NonPagedPoolNx, 0x74736554u);
    sleeper s[2];
    (void)state;
    check(reference != NULL);
    check(ExAcquireRundownProtectionCacheAware(reference));
    check(ExAcquireRundownProtectionCacheAware(reference));
    for (unsigned i = 0; i < 2; i++) {
        start_sleeper(&s[i], await_cache_aware_rundown, reference);
    }
    in_child(release_cache_aware_rundown, reference);
    ExReleaseRundownProtectionCacheAwareEx(reference, 2);
    end_sleepers(s, 2);
    ExFreeCacheAwareRundownProtection(reference);
}

/* Address-based pushlocks. */

typedef struct watched {
    EX_PUSH_LOCK lock;
    EX_PUSH_LOCK_WAIT_BLOCK announced;
    volatile ULONG value;
    RTL_CONDITION_VARIABLE condition;
    RTL_SRWLOCK srw;
    RTL_CRITICAL_SECTION section;
} watched;

static void block_on_value(void *argument)
{
    watched *w = argument;
    ULONG zero = 0;
    while (__atomic_load_n(&w->value, __ATOMIC_ACQUIRE) == 0) {
        check(NT_SUCCESS(ExBlockOnAddressPushLock(&w->lock, (PVOID)&w->value, &zero, sizeof(zero), NULL)));
    }
}

static void change_value(watched *w)
{
    __atomic_store_n(&w->value, 1, __ATOMIC_RELEASE);
    ExUnblockOnAddressPushLock(&w->lock, (PVOID)&w->value);
}

static void unblock_in_child(void *argument)
{
    watched *w = argument;
    LARGE_INTEGER soon = relative(20 * MILLISECOND);
    ULONG zero = 0;
    sleeper s[2];
    overwrite_stacks();
    /* announced before the fork, so it may be woken spuriously; but not left in the list */
    ExTimedWaitForUnblockPushLock(&w->lock, &w->announced, &soon);
    check(ExBlockOnAddressPushLock(&w->lock, (PVOID)&w->value, &zero, sizeof(zero), &soon) == STATUS_TIMEOUT);
    for (unsigned i = 0; i < 2; i++) {
        start_sleeper(&s[i], block_on_value, w);
    }
    change_value(w);
    end_sleepers(s, 2);
    ExUnblockPushLock(&w->lock, NULL);
    check(w->lock == 0);
}

static void unblock_first_in_child(void *argument)
{
    watched *w = argument;
    overwrite_stacks();
    ExUnblockPushLock(&w->lock, &w->announced);
    change_value(w);
    ExUnblockPushLock(&w->lock, NULL);
    check(w->lock == 0);
}

static void address_pushlock(void **state)
{
    watched w = {.value = 0};
    sleeper s[3];
    (void)state;
    start_sleeper(&s[0], block_on_value, &w);
    ExBlockPushLock(&w.lock, &w.announced);
    for (unsigned i = 1; i < 3; i++) {
        start_sleeper(&s[i], block_on_value, &w);
    }
    in_child(unblock_in_child, &w);
    in_child(unblock_first_in_child, &w);
    ExUnblockPushLock(&w.lock, &w.announced);
    change_value(&w);
    end_sleepers(s, 3);
}

/* Waits in the hash. */

static void wait_on_value(void *argument)
{
    watched *w = argument;
    ULONG zero = 0;
    while (__atomic_load_n(&w->value, __ATOMIC_ACQUIRE) == 0) {
        check(RtlWaitOnAddress(&w->value, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
    }
}

static void wake_in_child(void *argument)
{
    watched *w = argument;
    sleeper s[2];
    overwrite_stacks();
    RtlWakeAddressSingle((PVOID)&w->value);
    for (unsigned i = 0; i < 2; i++) {
        start_sleeper(&s[i], wait_on_value, w);
    }
    __atomic_store_n(&w->value, 1, __ATOMIC_RELEASE);
    RtlWakeAddressAll((PVOID)&w->value);
    end_sleepers(s, 2);
}

static void address_wait(void **state)
{
    watched w = {.value = 0};
    sleeper s[3];
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        start_sleeper(&s[i], wait_on_value, &w);
    }
    in_child(wake_in_child, &w);
    __atomic_store_n(&w.value, 1, __ATOMIC_RELEASE);
    RtlWakeAddressAll((PVOID)&w.value);
    end_sleepers(s, 3);
}

static void sleep_with_srw(void *argument)
{
    watched *w = argument;
    RtlAcquireSRWLockExclusive(&w->srw);
    while (w->value == 0) {
        check(RtlSleepConditionVariableSRW(&w->condition, &w->srw, NULL, 0) == STATUS_SUCCESS);
    }
    RtlReleaseSRWLockExclusive(&w->srw);
}

static void sleep_with_shared_srw(void *argument)
{
    watched *w = argument;
    RtlAcquireSRWLockShared(&w->srw);
    while (w->value == 0) {
        check(RtlSleepConditionVariableSRW(&w->condition, &w->srw, NULL, RTL_CONDITION_VARIABLE_LOCKMODE_SHARED) ==
              STATUS_SUCCESS);
    }
    RtlReleaseSRWLockShared(&w->srw);
}

static void sleep_with_section(void *argument)
{
    watched *w = argument;
    RtlEnterCriticalSection(&w->section);
    while (__atomic_load_n(&w->value, __ATOMIC_RELAXED) == 0) {
        check(RtlSleepConditionVariableCS(&w->condition, &w->section, NULL) == STATUS_SUCCESS);
    }
    RtlLeaveCriticalSection(&w->section);
}

static void (*const condition_sleeps[])(void *watched) = {sleep_with_srw, sleep_with_shared_srw, sleep_with_section};

static void make_condition_true(watched *w)
{
    RtlAcquireSRWLockExclusive(&w->srw);
    RtlEnterCriticalSection(&w->section);
    w->value = 1;
    RtlLeaveCriticalSection(&w->section);
    RtlReleaseSRWLockExclusive(&w->srw);
}

static void wake_condition_in_child(void *argument)
{
    watched *w = argument;
    sleeper s[ARRAYSIZE(condition_sleeps)];
    overwrite_stacks();
    RtlWakeConditionVariable(&w->condition);
    for (unsigned i = 0; i < ARRAYSIZE(s); i++) {
        start_sleeper(&s[i], condition_sleeps[i], w);
    }
    make_condition_true(w);
    for (unsigned i = 0; i < ARRAYSIZE(s); i++) {
        RtlWakeConditionVariable(&w->condition);
    }
    end_sleepers(s, ARRAYSIZE(s));
}

static void condition_variable(void **state)
{
    watched w = {.value = 0};
    sleeper s[ARRAYSIZE(condition_sleeps)];
    (void)state;
    check(NT_SUCCESS(RtlInitializeCriticalSection(&w.section)));
    for (unsigned i = 0; i < ARRAYSIZE(s); i++) {
        start_sleeper(&s[i], condition_sleeps[i], &w);
    }
    in_child(wake_condition_in_child, &w);
    make_condition_true(&w);
    RtlWakeAllConditionVariable(&w.condition);
    end_sleepers(s, ARRAYSIZE(s));
    RtlDeleteCriticalSection(&w.section);
}

/* Barriers: threads that stayed behind have not arrived. */

static void arrive(void *barrier)
{
    RtlBarrier(barrier, 0);
}

static void meet_at_barrier(void *barrier, unsigned others)
{
    sleeper s[MOST_WAITERS];
    for (unsigned i = 0; i < others; i++) {
        start_sleeper(&s[i], arrive, barrier);
    }
    check(RtlBarrier(barrier, 0));
    end_sleepers(s, others);
}

static void delete_barrier_of_parent(void *barrier)
{
    overwrite_stacks();
    check(RtlDeleteBarrier(barrier) == STATUS_SUCCESS);
}

static void use_barrier_of_parent(void *barrier)
{
    overwrite_stacks();
    for (unsigned round = 0; round < 3; round++) {
        meet_at_barrier(barrier, 2);
    }
    check(RtlDeleteBarrier(barrier) == STATUS_SUCCESS);
}

static void barrier(void **state)
{
    RTL_BARRIER barrier;
    sleeper s[2];
    (void)state;
    check(RtlInitBarrier(&barrier, 3, 0) == STATUS_SUCCESS);
    meet_at_barrier(&barrier, 2);
    for (unsigned i = 0; i < 2; i++) {
        in_child(use_barrier_of_parent, &barrier);
        in_child(delete_barrier_of_parent, &barrier);
        start_sleeper(&s[i], arrive, &barrier);
    }
    in_child(use_barrier_of_parent, &barrier);
    in_child(delete_barrier_of_parent, &barrier);
    check(RtlBarrier(&barrier, 0));
    end_sleepers(s, 2);
    check(RtlDeleteBarrier(&barrier) == STATUS_SUCCESS);
}

/* Reader/writer spinlocks, which have no queue: the mark of a waiting writer keeps readers out. */

#define WRITER_WAITS (1 << 30)

typedef struct marked_lock {
    EX_SPIN_LOCK word;
    lock_mode held;
    KIRQL old;
} marked_lock;

static void *write_once(void *argument)
{
    marked_lock *lock = argument;
    KIRQL old = ExAcquireSpinLockExclusive(&lock->word);
    ExReleaseSpinLockExclusive(&lock->word, old);
    return NULL;
}

static void release_marked(marked_lock *lock)
{
    if (lock->held == SHARED) {
        ExReleaseSpinLockShared(&lock->word, lock->old);
    } else {
        ExReleaseSpinLockExclusive(&lock->word, lock->old);
    }
}

static void read_in_child(void *argument)
{
    marked_lock *lock = argument;
    release_marked(lock);
    ExReleaseSpinLockShared(&lock->word, ExAcquireSpinLockShared(&lock->word));
    write_once(lock);
    check(lock->word == 0);
}

static void reader_writer_spinlock(void **state)
{
    (void)state;
    if (KeNumberProcessors == 1) {
        skip();
    }
    for (lock_mode mode = EXCLUSIVE; mode <= SHARED; mode++) {
        marked_lock lock = {.held = mode};
        pthread_t writers[2];
        lock.old = mode == SHARED ? ExAcquireSpinLockShared(&lock.word) : ExAcquireSpinLockExclusive(&lock.word);
        for (unsigned i = 0; i < 2; i++) {
            check(pthread_create(&writers[i], NULL, write_once, &lock) == 0);
        }
        await(__atomic_load_n(&lock.word, __ATOMIC_RELAXED) & WRITER_WAITS);
        in_child(read_in_child, &lock);
        release_marked(&lock);
        for (unsigned i = 0; i < 2; i++) {
            check(pthread_join(writers[i], NULL) == 0);
        }
        assert_int_equal(lock.word, 0);
    }
}

/* Spinlocks: nothing of a thread that spins is in the word. */

static void *spin_once(void *argument)
{
    KIRQL old;
    KeAcquireSpinLock((PKSPIN_LOCK)argument, &old);
    KeReleaseSpinLock((PKSPIN_LOCK)argument, old);
    return NULL;
}

typedef struct spun_lock {
    KSPIN_LOCK word;
    KIRQL old;
} spun_lock;

static void spin_in_child(void *argument)
{
    spun_lock *lock = argument;
    KeReleaseSpinLock(&lock->word, lock->old);
    spin_once((void *)&lock->word);
    check(KeTestSpinLock(&lock->word));
}

static void spinlock(void **state)
{
    spun_lock lock = {0};
    pthread_t other;
    (void)state;
    KeAcquireSpinLock(&lock.word, &lock.old);
    check(pthread_create(&other, NULL, spin_once, (void *)&lock.word) == 0);
    in_child(spin_in_child, &lock);
    KeReleaseSpinLock(&lock.word, lock.old);
    check(pthread_join(other, NULL) == 0);
}

/* Keyed events pair a wait with a release of the same process. */

static void wait_for_key(void *key)
{
    check(NtWaitForKeyedEvent(NULL, key, FALSE, NULL) == STATUS_SUCCESS);
}

static void meet_in_child(void *key)
{
    LARGE_INTEGER soon = relative(20 * MILLISECOND);
    sleeper s;
    overwrite_stacks();
    check(NtReleaseKeyedEvent(NULL, key, FALSE, &soon) == STATUS_TIMEOUT);
    start_sleeper(&s, wait_for_key, key);
    check(NtReleaseKeyedEvent(NULL, key, FALSE, NULL) == STATUS_SUCCESS);
    end_sleepers(&s, 1);
}

static void keyed_event(void **state)
{
    static ULONG64 key;
    sleeper s[2];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        start_sleeper(&s[i], wait_for_key, &key);
    }
    in_child(meet_in_child, &key);
    for (unsigned i = 0; i < 2; i++) {
        check(NtReleaseKeyedEvent(NULL, &key, FALSE, NULL) == STATUS_SUCCESS);
    }
    end_sleepers(s, 2);
}

/* Dispatcher objects. */

typedef struct objects {
    KEVENT notification, synchronization;
    KSEMAPHORE semaphore;
    KMUTANT mutant;
} objects;

static void wait_for_object(void *object)
{
    check(KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void wait_for_mutant(void *mutant)
{
    wait_for_object(mutant);
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
}

static void signal_in_child(void *argument)
{
    objects *o = argument;
    sleeper s[MOST_WAITERS];
    overwrite_stacks();
    check(KeSetEvent(&o->synchronization, 0, FALSE) == 0);
    wait_for_object(&o->synchronization);
    check(KeReleaseSemaphore(&o->semaphore, 0, 1, FALSE) == 0);
    wait_for_object(&o->semaphore);
    start_sleeper(&s[0], wait_for_object, &o->synchronization);
    start_sleeper(&s[1], wait_for_object, &o->semaphore);
    start_sleeper(&s[2], wait_for_mutant, &o->mutant);
    start_sleeper(&s[3], wait_for_object, &o->notification);
    KeSetEvent(&o->synchronization, 0, FALSE);
    KeReleaseSemaphore(&o->semaphore, 0, 1, FALSE);
    KeReleaseMutant(&o->mutant, 0, FALSE, FALSE);
    KeSetEvent(&o->notification, 0, FALSE);
    end_sleepers(s, MOST_WAITERS);
    wait_for_mutant(&o->mutant);
}

static void dispatcher_objects(void **state)
{
    objects o;
    sleeper s[5];
    (void)state;
    KeInitializeEvent(&o.notification, NotificationEvent, FALSE);
    KeInitializeEvent(&o.synchronization, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&o.semaphore, 0, 10);
    KeInitializeMutant(&o.mutant, TRUE);
    start_sleeper(&s[0], wait_for_object, &o.synchronization);
    start_sleeper(&s[1], wait_for_object, &o.semaphore);
    start_sleeper(&s[2], wait_for_mutant, &o.mutant);
    start_sleeper(&s[3], wait_for_object, &o.notification);
    start_sleeper(&s[4], wait_for_mutant, &o.mutant);
    in_child(signal_in_child, &o);
    KeSetEvent(&o.synchronization, 0, FALSE);
    KeReleaseSemaphore(&o.semaphore, 0, 1, FALSE);
    KeReleaseMutant(&o.mutant, 0, FALSE, FALSE);
    KeSetEvent(&o.notification, 0, FALSE);
    end_sleepers(s, 5);
}

/* Queues: neither a waiter nor a worker of the parent counts in the child. */

typedef struct work_queue {
    KQUEUE queue;
    LIST_ENTRY entries[3];
    volatile ULONG busy; /* a worker has removed an entry and sleeps in the host */
} work_queue;

static void remove_entry(void *argument)
{
    work_queue *q = argument;
    check(KeRemoveQueue(&q->queue, KernelMode, NULL) == &q->entries[0]);
}

static void *work_for_long(void *argument)
{
    work_queue *q = argument;
    check(KeRemoveQueue(&q->queue, KernelMode, NULL) == &q->entries[1]);
    __atomic_store_n(&q->busy, 1, __ATOMIC_RELEASE);
    await(__atomic_load_n(&q->busy, __ATOMIC_ACQUIRE) == 2);
    return NULL;
}

static void *remove_at_once(void *argument)
{
    work_queue *q = argument;
    LARGE_INTEGER now = relative(0);
    check(KeRemoveQueue(&q->queue, KernelMode, &now) == (PLIST_ENTRY)(ULONG_PTR)STATUS_TIMEOUT);
    KeInsertQueue(&q->queue, &q->entries[2]);
    check(KeReadStateQueue(&q->queue) == 1);
    check(KeRemoveQueue(&q->queue, KernelMode, &now) == &q->entries[2]);
    return NULL;
}

static void use_queue_in_child(void *argument)
{
    work_queue *q = argument;
    pthread_t worker;
    sleeper s;
    overwrite_stacks();
    check(pthread_create(&worker, NULL, remove_at_once, q) == 0);
    check(pthread_join(worker, NULL) == 0);
    start_sleeper(&s, remove_entry, q);
    KeInsertQueue(&q->queue, &q->entries[0]);
    end_sleepers(&s, 1);
    check(KeRundownQueue(&q->queue) == NULL);
}

static void queue(void **state)
{
    work_queue q = {.busy = 0};
    pthread_t worker;
    sleeper s;
    (void)state;
    KeInitializeQueue(&q.queue, 1);
    KeInsertQueue(&q.queue, &q.entries[1]);
    check(pthread_create(&worker, NULL, work_for_long, &q) == 0);
    await(__atomic_load_n(&q.busy, __ATOMIC_ACQUIRE) == 1);
    start_sleeper(&s, remove_entry, &q);
    in_child(use_queue_in_child, &q);
    __atomic_store_n(&q.busy, 2, __ATOMIC_RELEASE);
    check(pthread_join(worker, NULL) == 0);
    KeInsertQueue(&q.queue, &q.entries[0]);
    end_sleepers(&s, 1);
    check(KeRundownQueue(&q.queue) == NULL);
}

/* A child of a child: what was queued two processes ago is forgotten too. */

static void release_in_grandchild(void *argument)
{
    overwrite_stacks();
    in_child(use_in_child, argument);
}

static void a_child_of_a_child(void **state)
{
    scene s = {.kind = &kinds[0], .held = SHARED, .holds = 2, .queued = "xsx", .child_contends = true};
    queued_thread waiters[MOST_WAITERS];
    (void)state;
    begin_scene(&s, waiters);
    in_child(release_in_grandchild, &s);
    release_holds(&s);
    end_scene(&s, waiters);
}

/* ThreadSanitizer's runtime refuses new threads of a child that have the ids of threads that stayed behind. */
#ifdef THREAD_SANITIZER
#define CHILDREN_MAY_HAVE_THREADS false
#else
#define CHILDREN_MAY_HAVE_THREADS true
#endif

int main(void)
{
    if (!CHILDREN_MAY_HAVE_THREADS) {
        puts("1..0 # SKIP ThreadSanitizer refuses threads of a forked child");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_lock_in_every_state),
        cmocka_unit_test(a_wake_in_progress),
        WATCHED(run_once),
        WATCHED(rundown_protection),
        WATCHED(cache_aware_rundown_protection),
        WATCHED(address_pushlock),
        WATCHED(address_wait),
        WATCHED(condition_variable),
        WATCHED(keyed_event),
        WATCHED(barrier),
        WATCHED(reader_writer_spinlock),
        WATCHED(spinlock),
        WATCHED(dispatcher_objects),
        WATCHED(queue),
        WATCHED(a_child_of_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
