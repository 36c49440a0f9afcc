/* Keyed events and the waiter hash, by the numbers in src/ex/waiterhash.c and waiterhash.h. */
#include "ex/exp.h"
#include "ex/waiterhash.h"
#include "../ke/waittest.h"
#include "../support/heap.h"

#include <sys/wait.h>
#include <unistd.h>

#define KEY(n) ((PVOID)(ULONG_PTR)(0x10000 + 2 * (n)))

typedef struct meeting {
    actor actor;
    BOOLEAN releases;
    PEX_KEYED_EVENT event;
    PVOID key;
    KPROCESSOR_MODE mode;
    BOOLEAN alertable;
    PLARGE_INTEGER timeout;
    NTSTATUS status;
} meeting;

static NTSTATUS meet(const meeting *m)
{
    return (m->releases ? ExpReleaseKeyedEvent : ExpWaitForKeyedEvent)(m->event, m->key, m->mode, m->alertable,
                                                                        m->timeout);
}

static void perform_meeting(void *argument)
{
    meeting *m = argument;
    /* 5 */
    allocations_left = 0;
    m->status = meet(m);
    allocations_left = -1;
}

static void start_meetings(meeting *m, ULONG count)
{
    memset(m, 0, count * sizeof(*m));
    for (ULONG i = 0; i < count; i += 1) {
        start_actor(&m[i].actor);
    }
}

static void end_meetings(meeting *m, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        end_actor(&m[i].actor);
    }
}

static void begin(meeting *m)
{
    tell(&m->actor, perform_meeting, m);
    await(is_committed(m->actor.thread));
}

static NTSTATUS result(meeting *m)
{
    await(is_idle(&m->actor));
    return m->status;
}

static NTSTATUS now(BOOLEAN releases, PEX_KEYED_EVENT event, PVOID key)
{
    meeting m = {.releases = releases, .event = event, .key = key, .timeout = NO_TIME};
    return meet(&m);
}

/* 1: the second thread ends both waits, in either order. */
static void test_pairing(void **state)
{
    meeting m;
    (void)state;
    start_meetings(&m, 1);
    for (int first = 0; first < 2; first += 1) {
        m.releases = first == 1;
        m.key = KEY(1);
        begin(&m);
        assert_int_equal(now(!m.releases, NULL, KEY(1)), STATUS_SUCCESS);
        assert_int_equal(result(&m), STATUS_SUCCESS);
        assert_int_equal(now(!m.releases, NULL, KEY(1)), STATUS_TIMEOUT);
        assert_int_equal(now(m.releases, NULL, KEY(1)), STATUS_TIMEOUT);
    }
    end_meetings(&m, 1);
}

/* 1: two of the same side are not paired. */
static void test_same_side(void **state)
{
    meeting m;
    (void)state;
    start_meetings(&m, 1);
    for (int side = 0; side < 2; side += 1) {
        m.releases = side == 1;
        m.key = KEY(1);
        begin(&m);
        assert_int_equal(now(m.releases, NULL, KEY(1)), STATUS_TIMEOUT);
        assert_true(is_committed(m.actor.thread));
        assert_int_equal(now(!m.releases, NULL, KEY(1)), STATUS_SUCCESS);
        assert_int_equal(result(&m), STATUS_SUCCESS);
    }
    end_meetings(&m, 1);
}

/* 2 */
static void test_oldest_first(void **state)
{
    meeting m[4];
    (void)state;
    start_meetings(m, ARRAYSIZE(m));
    for (int side = 0; side < 2; side += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(m); i += 1) {
            m[i].releases = side == 1;
            m[i].key = KEY(1);
            begin(&m[i]);
        }
        for (ULONG i = 0; i < ARRAYSIZE(m); i += 1) {
            for (ULONG j = i; j < ARRAYSIZE(m); j += 1) {
                assert_true(is_committed(m[j].actor.thread));
            }
            assert_int_equal(now(side == 0, NULL, KEY(1)), STATUS_SUCCESS);
            assert_int_equal(result(&m[i]), STATUS_SUCCESS);
        }
    }
    end_meetings(m, ARRAYSIZE(m));
}

/* 3: another key or another keyed event is not paired, not even in the same bucket (there are more keys than those). */
static void test_other_key_or_event(void **state)
{
    EX_KEYED_EVENT event;
    meeting m;
    (void)state;
    ExpInitializeKeyedEvent(&event);
    start_meetings(&m, 1);
    m.key = KEY(0);
    begin(&m);
    for (ULONG key = 1; key < 2 * EXP_WAITER_BUCKETS; key += 1) {
        assert_int_equal(now(TRUE, NULL, KEY(key)), STATUS_TIMEOUT);
    }
    assert_int_equal(now(TRUE, &event, KEY(0)), STATUS_TIMEOUT);
    assert_true(is_committed(m.actor.thread));
    assert_int_equal(now(TRUE, &ExpCritSecOutOfMemoryEvent, KEY(0)), STATUS_SUCCESS);
    assert_int_equal(result(&m), STATUS_SUCCESS);
    end_meetings(&m, 1);
}

/* 3: the process is part of the key, and so is the kind. Hash 2: the oldest comes out first. */
static void test_hash_keys(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    KPROCESS other_process;
    const EXP_WAIT_KEY keys[] = {
        {KEY(1), &ExpCritSecOutOfMemoryEvent, thread->Process, 0},
        {KEY(1), &ExpCritSecOutOfMemoryEvent, thread->Process, 1},
        {KEY(1), &ExpCritSecOutOfMemoryEvent, &other_process, 0},
        {KEY(1), &other_process, thread->Process, 0},
        {KEY(2), &ExpCritSecOutOfMemoryEvent, thread->Process, 0},
    };
    EXP_WAITER waiters[2 * ARRAYSIZE(keys)];
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(waiters); i += 1) {
        waiters[i].Key = keys[i % ARRAYSIZE(keys)];
        PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&waiters[i].Key, thread);
        ExpInsertWaiter(bucket, &waiters[i]);
        ExpUnlockWaiters(bucket, thread);
    }
    for (ULONG i = 0; i < ARRAYSIZE(keys); i += 1) {
        PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&keys[i], thread);
        assert_ptr_equal(ExpTakeFirstWaiter(bucket, &keys[i]), &waiters[i]);
        ExpUnlockWaiters(bucket, thread);
        assert_true(ExpTakeWaiter(&waiters[i + ARRAYSIZE(keys)], thread));
        assert_false(ExpTakeWaiter(&waiters[i], thread));
        bucket = ExpLockWaiters(&keys[i], thread);
        assert_null(ExpTakeFirstWaiter(bucket, &keys[i]));
        ExpUnlockWaiters(bucket, thread);
    }
}

/* Hash 5: a forked child is not paired with a thread of the parent. */
static void test_fork(void **state)
{
    meeting m;
    int status;
    (void)state;
    start_meetings(&m, 1);
    m.key = KEY(1);
    begin(&m);
    pid_t child = fork();
    if (child == 0) {
        _exit(now(TRUE, NULL, KEY(1)) == STATUS_TIMEOUT && now(FALSE, NULL, KEY(1)) == STATUS_TIMEOUT ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(now(TRUE, NULL, KEY(1)), STATUS_SUCCESS);
    assert_int_equal(result(&m), STATUS_SUCCESS);
    end_meetings(&m, 1);
}

/* 4: a thread that gives up is no longer paired. */
static void test_timeout(void **state)
{
    LARGE_INTEGER timeout = relative(20 * MILLISECOND);
    (void)state;
    for (int side = 0; side < 2; side += 1) {
        meeting m = {.releases = side == 1, .key = KEY(1), .timeout = &timeout};
        assert_int_equal(meet(&m), STATUS_TIMEOUT);
        assert_int_equal(now(side == 0, NULL, KEY(1)), STATUS_TIMEOUT);
    }
}

static void test_alerted(void **state)
{
    meeting m;
    (void)state;
    start_meetings(&m, 1);
    for (int side = 0; side < 2; side += 1) {
        m.releases = side == 1;
        m.key = KEY(1);
        m.mode = UserMode;
        m.alertable = TRUE;
        begin(&m);
        KeAlertThread(m.actor.thread, UserMode);
        assert_int_equal(result(&m), STATUS_ALERTED);
        assert_int_equal(now(side == 0, NULL, KEY(1)), STATUS_TIMEOUT);
    }
    end_meetings(&m, 1);
}

/* 6 */
static void test_keys(void **state)
{
    static const struct {
        ULONG_PTR key;
        NTSTATUS status;
    } rows[] = {
        {0, STATUS_TIMEOUT},
        {1, STATUS_INVALID_PARAMETER_1},
        {2, STATUS_TIMEOUT},
        {0x7fff00001235, STATUS_INVALID_PARAMETER_1},
        {~(ULONG_PTR)0, STATUS_INVALID_PARAMETER_1},
        {~(ULONG_PTR)1, STATUS_TIMEOUT},
    };
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(rows); i += 1) {
        for (int side = 0; side < 2; side += 1) {
            assert_int_equal(now(side == 1, NULL, (PVOID)rows[i].key), rows[i].status);
            /* the keyed event is not accessed */
            if (rows[i].status == STATUS_INVALID_PARAMETER_1) {
                assert_int_equal(now(side == 1, (PEX_KEYED_EVENT)8, (PVOID)rows[i].key), STATUS_INVALID_PARAMETER_1);
            }
        }
    }
}

static void test_null_key(void **state)
{
    meeting m;
    (void)state;
    start_meetings(&m, 1);
    begin(&m);
    assert_int_equal(now(TRUE, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(result(&m), STATUS_SUCCESS);
    end_meetings(&m, 1);
}

/* 4: a timeout or an alert that arrives while the other side is about to wake loses, and the alert is kept. */

static PEXP_WAITER take_out(meeting *m)
{
    PKTHREAD thread = KeGetCurrentThread();
    EXP_WAIT_KEY key = {m->key, &ExpCritSecOutOfMemoryEvent, thread->Process, m->releases};
    PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&key, thread);
    PEXP_WAITER found = ExpTakeFirstWaiter(bucket, &key);
    ExpUnlockWaiters(bucket, thread);
    assert_non_null(found);
    return found;
}

static BOOLEAN waits_for_word(PKTHREAD thread)
{
    return is_committed(thread) &&
           !(__atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE) & (KI_WAIT_ALERTABLE | KI_WAIT_USER_MODE));
}

static void ask_for_alerts(void *argument)
{
    BOOLEAN *alerted = argument;
    alerted[KernelMode] = KeTestAlertThread(KernelMode);
    alerted[UserMode] = KeTestAlertThread(UserMode);
}

static void test_interrupted_pairing(void **state)
{
    LARGE_INTEGER timeout = relative(SECOND);
    meeting m;
    BOOLEAN alerted[MaximumMode];
    (void)state;
    start_meetings(&m, 1);
    for (int row = 0; row < 6; row += 1) {
        BOOLEAN by_alert = row % 3 != 0;
        KPROCESSOR_MODE mode = row % 3 == 1 ? UserMode : KernelMode;
        m.releases = row / 3;
        m.key = KEY(1);
        m.mode = UserMode;
        m.alertable = TRUE;
        m.timeout = by_alert ? NULL : &timeout;
        begin(&m);
        PEXP_WAITER waiter_of_m = take_out(&m);
        if (by_alert) {
            KeAlertThread(m.actor.thread, mode);
        }
        await(waits_for_word(m.actor.thread));
        KeSetEvent((PKEVENT)(PVOID)(waiter_of_m + 1), 0, FALSE);
        assert_int_equal(result(&m), STATUS_SUCCESS);
        run_on(&m.actor, ask_for_alerts, alerted);
        assert_int_equal(alerted[UserMode], by_alert && mode == UserMode);
        assert_int_equal(alerted[KernelMode], by_alert && mode == KernelMode);
    }
    end_meetings(&m, 1);
}

static void test_object_is_signaled(void **state)
{
    EX_KEYED_EVENT event;
    (void)state;
    ExpInitializeKeyedEvent(&event);
    for (int i = 0; i < 2; i += 1) {
        assert_true(poll_object(&event));
        assert_true(poll_object(&ExpCritSecOutOfMemoryEvent));
    }
}

static void test_nothing_was_allocated(void **state)
{
    (void)state;
    assert_int_equal(allocations_refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_pairing),  WATCHED(test_same_side),     WATCHED(test_oldest_first),
        WATCHED(test_fork),     WATCHED(test_hash_keys),     WATCHED(test_other_key_or_event),
        WATCHED(test_timeout),  WATCHED(test_alerted),       WATCHED(test_keys),
        WATCHED(test_null_key), WATCHED(test_object_is_signaled), WATCHED(test_interrupted_pairing),
        cmocka_unit_test(test_nothing_was_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
