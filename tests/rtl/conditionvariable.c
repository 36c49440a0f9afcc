/* Condition variables, by the numbers in src/rtl/conditionvariable.c. */
#include "../ke/waittest.h"
#include "../support/heap.h"

#include "rtl/rtlp.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <sys/wait.h>
#include <unistd.h>

/* The lock that a sleeper uses. */
typedef enum lock_kind { EXCLUSIVE, SHARED, SECTION, LOCK_KINDS } lock_kind;

static struct {
    UCHAR memory[4 * KI_CACHE_LINE] DECLSPEC_ALIGN(KI_CACHE_LINE);
    PRTL_CONDITION_VARIABLE variable;
    PRTL_SRWLOCK lock;
    RTL_CRITICAL_SECTION section;
} scene;

typedef struct sleeper {
    actor actor;
    lock_kind kind;
    PLARGE_INTEGER timeout;
    NTSTATUS status;
    BOOLEAN held; /* when the sleep returned */
} sleeper;

static void acquire(lock_kind kind)
{
    if (kind == SECTION) {
        RtlEnterCriticalSection(&scene.section);
    } else if (kind == SHARED) {
        RtlAcquireSRWLockShared(scene.lock);
    } else {
        RtlAcquireSRWLockExclusive(scene.lock);
    }
}

static void release(lock_kind kind)
{
    if (kind == SECTION) {
        RtlLeaveCriticalSection(&scene.section);
    } else if (kind == SHARED) {
        RtlReleaseSRWLockShared(scene.lock);
    } else {
        RtlReleaseSRWLockExclusive(scene.lock);
    }
}

static NTSTATUS sleep_on_variable(lock_kind kind, PLARGE_INTEGER timeout)
{
    if (kind == SECTION) {
        return RtlSleepConditionVariableCS(scene.variable, &scene.section, timeout);
    }
    return RtlSleepConditionVariableSRW(scene.variable, scene.lock, timeout,
                                        kind == SHARED ? RTL_CONDITION_VARIABLE_LOCKMODE_SHARED : 0);
}

static ULONG_PTR lock_word(void)
{
    return __atomic_load_n((volatile ULONG_PTR *)scene.lock, __ATOMIC_ACQUIRE);
}

static BOOLEAN is_held(lock_kind kind)
{
    if (kind == SECTION) {
        return RtlIsCriticalSectionLockedByThread(&scene.section) && scene.section.RecursionCount == 1;
    }
    return kind == SHARED ? lock_word() > 1 : (lock_word() & 1) != 0;
}

static void sleep_and_tell(void *argument)
{
    sleeper *s = argument;
    acquire(s->kind);
    allocations_left = 0;
    s->status = sleep_on_variable(s->kind, s->timeout);
    allocations_left = -1;
    s->held = is_held(s->kind);
    release(s->kind);
}

/* Asleep on the variable, not on the lock. */
static BOOLEAN sleeps(sleeper *s)
{
    PKTHREAD thread = s->actor.thread;
    return is_committed(thread) && thread->WaitReason == WrAlertByThreadId &&
           thread->WaitBlockList[0].Object == (PVOID)scene.variable;
}

static void begin(sleeper *s)
{
    tell(&s->actor, sleep_and_tell, s);
    await(sleeps(s));
}

static NTSTATUS result(sleeper *s)
{
    await(is_idle(&s->actor));
    check(s->held);
    check(!(s->actor.thread->WaitRegister & KI_WAIT_ALERT_BY_ID_PENDING)); /* no alert is pending */
    return s->status;
}

static void start_sleepers(sleeper *s, ULONG count)
{
    memset(s, 0, count * sizeof(*s));
    for (ULONG i = 0; i < count; i += 1) {
        start_actor(&s[i].actor);
    }
}

static void end_sleepers(sleeper *s, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        end_actor(&s[i].actor);
    }
    assert_int_equal(allocations_refused, 0);
}

static ULONG64 word(void)
{
    ULONG64 value;
    memcpy(&value, scene.variable, sizeof(value));
    return value;
}

#define SLEEPERS(n) ((n) != 0 ? (ULONG64)(n) << 32 | 1 : 0)

static void initializers(void **state)
{
    RTL_CONDITION_VARIABLE variable = RTL_CONDITION_VARIABLE_INIT;
    (void)state;
    assert_int_equal(sizeof(variable), 8);
    assert_null(variable.Ptr);
    variable.Ptr = (PVOID)~(ULONG_PTR)0;
    RtlInitializeConditionVariable(&variable);
    assert_null(variable.Ptr);
}

/* The word: 1. The lock is free while the thread sleeps and held when it returns. */
static void wake_one_and_wake_all(void **state)
{
    sleeper s[4];
    (void)state;
    start_sleepers(s, 4);
    for (int kind = 0; kind < LOCK_KINDS; kind += 1) {
        for (ULONG i = 0; i < 4; i += 1) {
            s[i].kind = (lock_kind)kind;
            begin(&s[i]);
            assert_int_equal(word(), SLEEPERS(i + 1));
            assert_int_equal(lock_word(), 0);
            assert_int_equal(scene.section.LockCount, -1);
        }
        /* the one that has slept the longest */
        for (ULONG i = 0; i < 2; i += 1) {
            RtlWakeConditionVariable(scene.variable);
            assert_int_equal(result(&s[i]), STATUS_SUCCESS);
            assert_int_equal(word(), SLEEPERS(3 - i));
            for (ULONG j = i + 1; j < 4; j += 1) {
                assert_true(sleeps(&s[j]));
            }
        }
        RtlWakeAllConditionVariable(scene.variable);
        assert_int_equal(word(), 0);
        assert_int_equal(result(&s[2]), STATUS_SUCCESS);
        assert_int_equal(result(&s[3]), STATUS_SUCCESS);
    }
    end_sleepers(s, 4);
}

static void wakes_are_not_stored(void **state)
{
    LARGE_INTEGER short_time = relative(MILLISECOND);
    (void)state;
    RtlWakeConditionVariable(scene.variable);
    RtlWakeAllConditionVariable(scene.variable);
    assert_int_equal(word(), 0);
    acquire(EXCLUSIVE);
    assert_int_equal(sleep_on_variable(EXCLUSIVE, &short_time), STATUS_TIMEOUT);
    release(EXCLUSIVE);
}

/* 2: not even the bucket is locked. */
static void a_wake_without_sleepers_looks_at_the_word_only(void **state)
{
    EXP_WAIT_KEY key = RtlpWaitKey(scene.variable, RtlpConditionWait);
    PKTHREAD thread = KeGetCurrentThread();
    (void)state;
    PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&key, thread);
    RtlWakeConditionVariable(scene.variable);
    RtlWakeAllConditionVariable(scene.variable);
    ExpUnlockWaiters(bucket, thread);
}

static void timeouts(void **state)
{
    (void)state;
    for (int kind = 0; kind < LOCK_KINDS; kind += 1) {
        LARGE_INTEGER rows[] = {relative(5 * MILLISECOND), absolute(5 * MILLISECOND), absolute(-SECOND),
                                {.QuadPart = 0}};
        for (size_t i = 0; i < ARRAYSIZE(rows); i += 1) {
            acquire((lock_kind)kind);
            assert_int_equal(sleep_on_variable((lock_kind)kind, &rows[i]), STATUS_TIMEOUT);
            assert_true(is_held((lock_kind)kind));
            release((lock_kind)kind);
            assert_int_equal(word(), 0);
        }
    }
}

static void a_timed_out_sleeper_takes_no_wake(void **state)
{
    LARGE_INTEGER short_time = relative(MILLISECOND);
    sleeper s[2];
    (void)state;
    start_sleepers(s, 2);
    s[0].timeout = &short_time;
    tell(&s[0].actor, sleep_and_tell, &s[0]);
    begin(&s[1]);
    assert_int_equal(result(&s[0]), STATUS_TIMEOUT);
    assert_int_equal(word(), SLEEPERS(1));
    RtlWakeConditionVariable(scene.variable);
    assert_int_equal(result(&s[1]), STATUS_SUCCESS);
    end_sleepers(s, 2);
}

/* 4: woken in time, but the lock comes long after the timeout. */
static void a_delivered_wake_wins_over_a_later_timeout(void **state)
{
    LARGE_INTEGER timeout = relative(100 * MILLISECOND);
    LARGE_INTEGER longer = relative(150 * MILLISECOND);
    sleeper s;
    (void)state;
    start_sleepers(&s, 1);
    s.timeout = &timeout;
    for (int kind = 0; kind < LOCK_KINDS; kind += 1) {
        BOOLEAN in_time;
        s.kind = (lock_kind)kind;
        do {
            tell(&s.actor, sleep_and_tell, &s);
            await(sleeps(&s) || is_idle(&s.actor));
            acquire(kind == SECTION ? SECTION : EXCLUSIVE);
            /* on a slow machine the timeout may have expired already: then try again */
            in_time = word() == SLEEPERS(1);
            RtlWakeConditionVariable(scene.variable);
            if (in_time) {
                KeDelayExecutionThread(KernelMode, FALSE, &longer);
            }
            release(kind == SECTION ? SECTION : EXCLUSIVE);
            await(is_idle(&s.actor));
        } while (!in_time);
        assert_int_equal(result(&s), STATUS_SUCCESS);
    }
    end_sleepers(&s, 1);
}

/* 4: the wake removes a sleeper whose timeout has expired before the sleeper can remove itself. */
static void a_wake_that_meets_a_timeout_wins(void **state)
{
    LARGE_INTEGER short_time = relative(MILLISECOND);
    EXP_WAIT_KEY key = RtlpWaitKey(scene.variable, RtlpConditionWait);
    PKTHREAD thread = KeGetCurrentThread();
    LIST_ENTRY taken;
    ULONG found = 0;
    sleeper s;
    (void)state;
    start_sleepers(&s, 1);
    s.timeout = &short_time;
    while (found == 0) {
        tell(&s.actor, sleep_and_tell, &s);
        await(ExpMayHaveWaiters(&key) || is_idle(&s.actor));
        PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&key, thread);
        await(wait_state(s.actor.thread) == MaximumWaitState);
        found = ExpTakeWaiters(bucket, &key, 1, &taken);
        ExpUnlockWaiters(bucket, thread);
    }
    await(waits_without_timeout(s.actor.thread));
    RtlpWakeTakenWaiters(&taken);
    assert_int_equal(result(&s), STATUS_SUCCESS);
    RtlWakeConditionVariable(scene.variable); /* the thread that finds no sleeper resets the word */
    assert_int_equal(word(), 0);
    end_sleepers(&s, 1);
}

static void stray_alerts_change_nothing(void **state)
{
    sleeper s;
    (void)state;
    start_sleepers(&s, 1);
    begin(&s);
    for (int stray = 0; stray < 3; stray += 1) {
        KeAlertThreadById(s.actor.thread);
        await(sleeps(&s) && !(s.actor.thread->WaitRegister & KI_WAIT_ALERT_BY_ID_PENDING));
    }
    RtlWakeConditionVariable(scene.variable);
    assert_int_equal(result(&s), STATUS_SUCCESS);
    end_sleepers(&s, 1);
}

/* A woken sleeper queues for the lock like any other thread. */
static void the_lock_is_taken_again(void **state)
{
    sleeper s;
    (void)state;
    start_sleepers(&s, 1);
    for (int kind = 0; kind < LOCK_KINDS; kind += 1) {
        lock_kind own = kind == SECTION ? SECTION : EXCLUSIVE;
        s.kind = (lock_kind)kind;
        begin(&s);
        acquire(own);
        RtlWakeConditionVariable(scene.variable);
        await(is_committed(s.actor.thread) && !sleeps(&s));
        release(own);
        assert_int_equal(result(&s), STATUS_SUCCESS);
    }
    end_sleepers(&s, 1);
}

/* Two shared sleepers hold the lock together when they return. */
static void in_shared_mode_others_may_hold_it_too(void **state)
{
    sleeper s[2];
    (void)state;
    start_sleepers(s, 2);
    s[0].kind = s[1].kind = SHARED;
    begin(&s[0]);
    begin(&s[1]);
    acquire(SHARED);
    RtlWakeAllConditionVariable(scene.variable);
    assert_int_equal(result(&s[0]), STATUS_SUCCESS);
    assert_int_equal(result(&s[1]), STATUS_SUCCESS);
    assert_int_equal(lock_word(), 0x11);
    release(SHARED);
    end_sleepers(s, 2);
}

/* Windows releases one level only: a thread that owns the section recursively sleeps while it owns it. */
static void a_section_held_twice_is_released_once(void **state)
{
    LARGE_INTEGER short_time = relative(MILLISECOND);
    (void)state;
    acquire(SECTION);
    acquire(SECTION);
    assert_int_equal(scene.section.RecursionCount, 2);
    assert_int_equal(sleep_on_variable(SECTION, &short_time), STATUS_TIMEOUT);
    assert_int_equal(scene.section.RecursionCount, 2);
    release(SECTION);
    assert_int_equal(scene.section.RecursionCount, 1);
    release(SECTION);
    assert_int_equal(scene.section.LockCount, -1);
}

static void bad_flags(void **state)
{
    static const ULONG rows[] = {2, 3, 4, 0x80000000, 0xffffffff};
    (void)state;
    acquire(EXCLUSIVE);
    for (size_t i = 0; i < ARRAYSIZE(rows); i += 1) {
        assert_int_equal(RtlSleepConditionVariableSRW(scene.variable, scene.lock, NULL, rows[i]),
                         STATUS_INVALID_PARAMETER);
        assert_int_equal(lock_word(), 1);
        assert_int_equal(word(), 0);
    }
    release(EXCLUSIVE);
}

static void sleep_exclusive(void *argument)
{
    (void)argument;
    sleep_on_variable(EXCLUSIVE, NO_TIME);
}

static void sleep_shared(void *argument)
{
    (void)argument;
    sleep_on_variable(SHARED, NO_TIME);
}

static void sleeping_with_a_lock_that_is_not_held_raises(void **state)
{
    (void)state;
    assert_int_equal(raised_by(sleep_exclusive, NULL), STATUS_RESOURCE_NOT_OWNED);
    assert_int_equal(raised_by(sleep_shared, NULL), STATUS_RESOURCE_NOT_OWNED);
    acquire(EXCLUSIVE);
    assert_int_equal(raised_by(sleep_shared, NULL), STATUS_RESOURCE_NOT_OWNED);
    release(EXCLUSIVE);
    acquire(SHARED);
    assert_int_equal(raised_by(sleep_exclusive, NULL), STATUS_RESOURCE_NOT_OWNED);
    release(SHARED);
    /* no waiter is left in the hash */
    assert_int_equal(word(), 0);
    EXP_WAIT_KEY key = RtlpWaitKey(scene.variable, RtlpConditionWait);
    assert_false(ExpMayHaveWaiters(&key));
}

/* 5: the child inherits the word but not the sleepers. */
static void in_a_forked_child(void **state)
{
    sleeper s;
    int status;
    (void)state;
    start_sleepers(&s, 1);
    begin(&s);
    pid_t child = fork();
    if (child == 0) {
        sleeper own;
        BOOLEAN fine = word() == SLEEPERS(1);
        RtlWakeConditionVariable(scene.variable);
        fine &= word() == 0;
        start_sleepers(&own, 1);
        begin(&own);
        RtlWakeAllConditionVariable(scene.variable);
        fine &= result(&own) == STATUS_SUCCESS;
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(word(), SLEEPERS(1));
    RtlWakeConditionVariable(scene.variable);
    assert_int_equal(result(&s), STATUS_SUCCESS);
    end_sleepers(&s, 1);
}

static NTSTATUS sleep_for_ever(PVOID context)
{
    UNREFERENCED_PARAMETER(context);
    acquire(EXCLUSIVE);
    sleep_on_variable(EXCLUSIVE, NULL);
    check(!"comes back");
    return STATUS_SUCCESS;
}

/* A thread that is terminated while it sleeps consumes no wake and does not take the lock. */
static void a_terminated_sleeper_takes_no_wake(void **state)
{
    HANDLE handle;
    PVOID thread;
    sleeper s;
    (void)state;
    start_sleepers(&s, 1);
    assert_int_equal(
        NtCreateThreadEx(&handle, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), sleep_for_ever, NULL, 0, 0, 0, 0, NULL),
        STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, *PsThreadType, KernelMode, &thread, NULL), 0);
    await(is_committed(thread));
    begin(&s);
    assert_int_equal(word(), SLEEPERS(2));
    assert_int_equal(NtTerminateThread(handle, STATUS_UNSUCCESSFUL), STATUS_SUCCESS);
    assert_int_equal(wait_for(thread, NULL), STATUS_SUCCESS);
    assert_int_equal(word(), SLEEPERS(1));
    RtlWakeConditionVariable(scene.variable);
    assert_int_equal(result(&s), STATUS_SUCCESS);
    ObDereferenceObject(thread);
    ObCloseHandle(handle, KernelMode);
    end_sleepers(&s, 1);
}

/* Waking an address does not wake a condition variable, and the reverse. */
static void it_is_no_address_wait(void **state)
{
    sleeper s;
    (void)state;
    start_sleepers(&s, 1);
    begin(&s);
    RtlWakeAddressAll(scene.variable);
    assert_true(sleeps(&s));
    RtlWakeAllConditionVariable(scene.variable);
    assert_int_equal(result(&s), STATUS_SUCCESS);
    end_sleepers(&s, 1);
}

static void place(SIZE_T variable, SIZE_T lock)
{
    memset(scene.memory, 0, sizeof(scene.memory));
    scene.variable = (PRTL_CONDITION_VARIABLE)(PVOID)(scene.memory + variable);
    scene.lock = (PRTL_SRWLOCK)(PVOID)(scene.memory + lock);
}

static void at_any_address(void **state)
{
#ifdef THREAD_SANITIZER
    SIZE_T misaligned_lock = 0; /* ThreadSanitizer's runtime requires aligned atomics */
#else
    SIZE_T misaligned_lock = 1;
#endif
    static const SIZE_T rows[] = {1, 2, 3, 5, 7, KI_CACHE_LINE - 7, KI_CACHE_LINE - 4, KI_CACHE_LINE - 1};
    for (size_t i = 0; i < ARRAYSIZE(rows); i += 1) {
        place(rows[i], 2 * KI_CACHE_LINE + misaligned_lock * rows[i]);
        wake_one_and_wake_all(state);
        assert_int_equal(word(), 0);
    }
}

static int open_scene(void **state)
{
    place(0, 2 * KI_CACHE_LINE);
    check(NT_SUCCESS(RtlInitializeCriticalSection(&scene.section)));
    return start_watch(state);
}

static int close_scene(void **state)
{
    check(lock_word() == 0 && scene.section.LockCount == -1);
    RtlDeleteCriticalSection(&scene.section);
    return stop_watch(state);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, open_scene, close_scene)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IN_SCENE(initializers),
        IN_SCENE(wake_one_and_wake_all),
        IN_SCENE(wakes_are_not_stored),
        IN_SCENE(a_wake_without_sleepers_looks_at_the_word_only),
        IN_SCENE(timeouts),
        IN_SCENE(a_timed_out_sleeper_takes_no_wake),
        IN_SCENE(a_delivered_wake_wins_over_a_later_timeout),
        IN_SCENE(a_wake_that_meets_a_timeout_wins),
        IN_SCENE(stray_alerts_change_nothing),
        IN_SCENE(the_lock_is_taken_again),
        IN_SCENE(in_shared_mode_others_may_hold_it_too),
        IN_SCENE(a_section_held_twice_is_released_once),
        IN_SCENE(bad_flags),
        IN_SCENE(sleeping_with_a_lock_that_is_not_held_raises),
        IN_SCENE(in_a_forked_child),
        IN_SCENE(a_terminated_sleeper_takes_no_wake),
        IN_SCENE(it_is_no_address_wait),
        IN_SCENE(at_any_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
