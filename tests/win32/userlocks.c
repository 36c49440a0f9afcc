/* WaitOnAddress, SRW locks and condition variables under their Win32 names: results and last errors. */
#include "../ke/waittest.h"

#include <interlock/win32.h>

#define KEPT 4711

typedef struct call {
    actor actor;
    BOOL (*function)(void);
    BOOL result;
    DWORD error;
} call;

static struct {
    LONG value;
    SRWLOCK lock;
    CONDITION_VARIABLE variable;
    CRITICAL_SECTION section;
    BOOL ready;
} scene = {.lock = SRWLOCK_INIT, .variable = CONDITION_VARIABLE_INIT};

static void perform_call(void *argument)
{
    call *c = argument;
    SetLastError(KEPT);
    c->result = c->function();
    c->error = GetLastError();
}

/* On the test's own thread. */
static BOOL fails_with(BOOL (*function)(void), DWORD error)
{
    SetLastError(KEPT);
    return !function() && GetLastError() == error;
}

static BOOL succeeds(BOOL (*function)(void))
{
    SetLastError(KEPT);
    return function() && GetLastError() == KEPT;
}

static BOOL wait_with_size_3(void)
{
    return WaitOnAddress(&scene.value, &(LONG){0}, 3, INFINITE);
}

static BOOL wait_with_size_0(void)
{
    return WaitOnAddress(&scene.value, &(LONG){0}, 0, 0);
}

static BOOL wait_for_another_value(void)
{
    return WaitOnAddress(&scene.value, &(LONG){1}, sizeof(LONG), INFINITE);
}

static BOOL poll_value(void)
{
    return WaitOnAddress(&scene.value, &(LONG){0}, sizeof(LONG), 0);
}

static BOOL wait_shortly(void)
{
    return WaitOnAddress(&scene.value, &(LONG){0}, sizeof(LONG), 5);
}

static BOOL wait_for_ever(void)
{
    return WaitOnAddress(&scene.value, &(LONG){0}, sizeof(LONG), INFINITE);
}

static void the_errors_of_wait_on_address(void **state)
{
    (void)state;
    assert_true(fails_with(wait_with_size_3, ERROR_INVALID_PARAMETER));
    assert_true(fails_with(wait_with_size_0, ERROR_INVALID_PARAMETER));
    assert_true(fails_with(poll_value, ERROR_TIMEOUT));
    assert_true(fails_with(wait_shortly, ERROR_TIMEOUT));
    assert_int_equal(ERROR_TIMEOUT, 1460);
    assert_true(succeeds(wait_for_another_value));
}

static void begin(call *c, BOOL (*function)(void))
{
    c->function = function;
    tell(&c->actor, perform_call, c);
    await(is_committed(c->actor.thread));
}

static void expect_success(call *c)
{
    await(is_idle(&c->actor));
    assert_true(c->result == TRUE);
    assert_int_equal(c->error, KEPT);
}

static void wake_by_address(void **state)
{
    call calls[3];
    (void)state;
    for (int i = 0; i < 3; i += 1) {
        start_actor(&calls[i].actor);
        begin(&calls[i], wait_for_ever);
    }
    WakeByAddressSingle(NULL);
    WakeByAddressAll(NULL);
    WakeByAddressSingle(&scene.value);
    expect_success(&calls[0]);
    assert_true(is_committed(calls[1].actor.thread) && is_committed(calls[2].actor.thread));
    WakeByAddressAll(&scene.value);
    expect_success(&calls[1]);
    expect_success(&calls[2]);
    for (int i = 0; i < 3; i += 1) {
        end_actor(&calls[i].actor);
    }
}

static void srw_locks(void **state)
{
    SRWLOCK lock = {(PVOID)3};
    void (*volatile acquire)(PSRWLOCK) = AcquireSRWLockExclusive;
    void (*volatile release)(PSRWLOCK) = ReleaseSRWLockExclusive;
    (void)state;
    SetLastError(KEPT);
    InitializeSRWLock(&lock);
    AcquireSRWLockExclusive(&lock);
    assert_ptr_equal(lock.Ptr, (PVOID)1);
    assert_false(TryAcquireSRWLockExclusive(&lock));
    assert_false(TryAcquireSRWLockShared(&lock));
    ReleaseSRWLockExclusive(&lock);
    AcquireSRWLockShared(&lock);
    assert_true(TryAcquireSRWLockShared(&lock));
    assert_false(TryAcquireSRWLockExclusive(&lock));
    ReleaseSRWLockShared(&lock);
    ReleaseSRWLockShared(&lock);
    assert_true(TryAcquireSRWLockExclusive(&lock));
    ReleaseSRWLockExclusive(&lock);
    acquire(&lock);
    assert_ptr_equal(lock.Ptr, (PVOID)1);
    release(&lock);
    assert_null(lock.Ptr);
    assert_int_equal(GetLastError(), KEPT);
}

static BOOL sleep_with_bad_flags(void)
{
    return SleepConditionVariableSRW(&scene.variable, &scene.lock, INFINITE, 2);
}

static BOOL poll_variable(void)
{
    return SleepConditionVariableSRW(&scene.variable, &scene.lock, 0, 0);
}

static BOOL sleep_shortly(void)
{
    return SleepConditionVariableSRW(&scene.variable, &scene.lock, 5, 0);
}

static BOOL sleep_shortly_in_section(void)
{
    return SleepConditionVariableCS(&scene.variable, &scene.section, 5);
}

static BOOL sleep_until_ready(void)
{
    BOOL result = TRUE;
    AcquireSRWLockShared(&scene.lock);
    while (!scene.ready && result) {
        result = SleepConditionVariableSRW(&scene.variable, &scene.lock, INFINITE, CONDITION_VARIABLE_LOCKMODE_SHARED);
    }
    ReleaseSRWLockShared(&scene.lock);
    return result;
}

static BOOL sleep_in_section(void)
{
    EnterCriticalSection(&scene.section);
    BOOL result = SleepConditionVariableCS(&scene.variable, &scene.section, INFINITE);
    LeaveCriticalSection(&scene.section);
    return result;
}

static void the_errors_of_condition_variables(void **state)
{
    (void)state;
    AcquireSRWLockExclusive(&scene.lock);
    assert_true(fails_with(sleep_with_bad_flags, ERROR_INVALID_PARAMETER));
    assert_true(fails_with(poll_variable, ERROR_TIMEOUT));
    assert_true(fails_with(sleep_shortly, ERROR_TIMEOUT));
    assert_ptr_equal(scene.lock.Ptr, (PVOID)1);
    ReleaseSRWLockExclusive(&scene.lock);
    EnterCriticalSection(&scene.section);
    assert_true(fails_with(sleep_shortly_in_section, ERROR_TIMEOUT));
    LeaveCriticalSection(&scene.section);
}

static void wake_condition_variables(void **state)
{
    call calls[2];
    (void)state;
    InitializeConditionVariable(&scene.variable);
    for (int i = 0; i < 2; i += 1) {
        start_actor(&calls[i].actor);
        begin(&calls[i], sleep_until_ready);
    }
    AcquireSRWLockExclusive(&scene.lock);
    scene.ready = TRUE;
    ReleaseSRWLockExclusive(&scene.lock);
    WakeConditionVariable(&scene.variable);
    expect_success(&calls[0]);
    assert_true(is_committed(calls[1].actor.thread));
    WakeAllConditionVariable(&scene.variable);
    expect_success(&calls[1]);
    begin(&calls[0], sleep_in_section);
    begin(&calls[1], sleep_in_section);
    WakeAllConditionVariable(&scene.variable);
    expect_success(&calls[0]);
    expect_success(&calls[1]);
    for (int i = 0; i < 2; i += 1) {
        end_actor(&calls[i].actor);
    }
}

static int open_section(void **state)
{
    (void)state;
    InitializeCriticalSection(&scene.section);
    return 0;
}

static int close_section(void **state)
{
    (void)state;
    DeleteCriticalSection(&scene.section);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WATCHED(the_errors_of_wait_on_address),     WATCHED(wake_by_address),          WATCHED(srw_locks),
        WATCHED(the_errors_of_condition_variables), WATCHED(wake_condition_variables),
    };
    return cmocka_run_group_tests(tests, open_section, close_section);
}
