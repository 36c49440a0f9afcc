/* Waits for more than 64 objects: KeWaitForManyObjects. */
#include "waittest.h"

#define COUNT 1000
#define MOST KE_MAXIMUM_MANY_OBJECTS

static KEVENT events[MOST];
static PVOID objects[MOST];
static KWAIT_BLOCK blocks[KE_MANY_WAIT_BLOCKS(MOST)];

/* A wait of another thread. */
typedef struct many_wait {
    ULONG count;
    PVOID *object;
    WAIT_TYPE type;
    KPROCESSOR_MODE mode;
    BOOLEAN alertable;
    PLARGE_INTEGER timeout;
    PKWAIT_BLOCK blocks;
    NTSTATUS status;
    ULONG index;
} many_wait;

static void perform_many(void *argument)
{
    many_wait *wait = argument;
    wait->index = 12345678;
    wait->status = KeWaitForManyObjects(wait->count, wait->object, wait->type, Executive, wait->mode, wait->alertable,
                                        wait->timeout, wait->blocks, &wait->index);
}

static many_wait for_events(ULONG count, WAIT_TYPE type, EVENT_TYPE event_type)
{
    for (ULONG i = 0; i < count; i += 1) {
        KeInitializeEvent(&events[i], event_type, FALSE);
        objects[i] = &events[i];
    }
    return (many_wait){.count = count, .object = objects, .type = type, .blocks = blocks};
}

/* Not by State, which changes before the commit: until then a signal satisfies the wait even of a thread with a pending
   suspension. */
static BOOLEAN is_waiting(actor *a)
{
    return is_committed(a->thread);
}

static void begin_many(actor *a, many_wait *wait)
{
    tell(a, perform_many, wait);
    await(is_waiting(a));
}

static void end_many(actor *a)
{
    await(is_idle(a));
}

static void assert_no_waiters(ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        assert_true(IsListEmpty(&events[i].Header.WaitListHead));
    }
}

static ULONG count_signaled(ULONG count)
{
    ULONG signaled = 0;
    for (ULONG i = 0; i < count; i += 1) {
        signaled += KeReadStateEvent(&events[i]) != 0;
    }
    return signaled;
}

/* The lowest index wins, and only that object is consumed. The indices include those that are statuses elsewhere. */
static const ULONG special[] = {0, 1, 63, 64, 0x80, 0xc0, 0x100, 0x101, 0x102, 0x103, 999};

static void test_any_at_once(void **state)
{
    (void)state;
    many_wait wait = for_events(COUNT, WaitAny, SynchronizationEvent);
    for (ULONG i = 0; i < ARRAYSIZE(special); i += 1) {
        KeSetEvent(&events[special[i]], 0, FALSE);
    }
    for (ULONG i = 0; i < ARRAYSIZE(special); i += 1) {
        assert_int_equal(count_signaled(COUNT), ARRAYSIZE(special) - i);
        wait.alertable = i % 2 != 0;
        wait.mode = i % 2 != 0 ? UserMode : KernelMode;
        perform_many(&wait);
        assert_int_equal(wait.status, STATUS_WAIT_0);
        assert_int_equal(wait.index, special[i]);
    }
    wait.timeout = NO_TIME;
    perform_many(&wait);
    assert_int_equal(wait.status, STATUS_TIMEOUT);
    assert_int_equal(wait.index, 0);
}

static void test_any_asleep(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    many_wait wait = for_events(COUNT, WaitAny, SynchronizationEvent);
    for (ULONG i = 0; i < ARRAYSIZE(special); i += 1) {
        begin_many(&a, &wait);
        KeSetEvent(&events[special[i]], 0, FALSE);
        end_many(&a);
        assert_int_equal(wait.status, STATUS_WAIT_0);
        assert_int_equal(wait.index, special[i]);
        assert_int_equal(count_signaled(COUNT), 0);
        assert_no_waiters(COUNT);
    }
    end_actor(&a);
}

static void test_all(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    many_wait wait = for_events(COUNT, WaitAll, SynchronizationEvent);
    for (ULONG i = 0; i < COUNT; i += 1) { /* an order that has to be sorted */
        objects[i] = &events[i * 7 % COUNT];
    }
    begin_many(&a, &wait);
    for (ULONG i = 0; i + 1 < COUNT; i += 1) {
        KeSetEvent(&events[i], 0, FALSE);
    }
    assert_int_equal(count_signaled(COUNT), COUNT - 1);
    assert_true(is_waiting(&a));
    KeSetEvent(&events[COUNT - 1], 0, FALSE);
    end_many(&a);
    assert_int_equal(wait.status, STATUS_WAIT_0);
    assert_int_equal(wait.index, 0);
    assert_int_equal(count_signaled(COUNT), 0);
    assert_no_waiters(COUNT);

    wait.timeout = NO_TIME;
    for (ULONG i = 1; i < COUNT; i += 1) {
        KeSetEvent(&events[i], 0, FALSE);
    }
    perform_many(&wait);
    assert_int_equal(wait.status, STATUS_TIMEOUT);
    assert_int_equal(count_signaled(COUNT), COUNT - 1);
    KeSetEvent(&events[0], 0, FALSE);
    perform_many(&wait);
    assert_int_equal(wait.status, STATUS_WAIT_0);
    assert_int_equal(count_signaled(COUNT), 0);
    end_actor(&a);
}

/* A pulse of the last object that is missing completes a wait for all. */
static void test_all_by_pulse(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    many_wait wait = for_events(COUNT, WaitAll, NotificationEvent);
    for (ULONG i = 0; i < COUNT; i += 1) {
        if (i != 500) {
            KeSetEvent(&events[i], 0, FALSE);
        }
    }
    begin_many(&a, &wait);
    KePulseEvent(&events[500], 0, FALSE);
    end_many(&a);
    assert_int_equal(wait.status, STATUS_WAIT_0);
    assert_int_equal(KeReadStateEvent(&events[500]), 0);
    end_actor(&a);
}

static void test_most(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    many_wait wait = for_events(MOST, WaitAny, SynchronizationEvent);
    begin_many(&a, &wait);
    KeSetEvent(&events[MOST - 1], 0, FALSE);
    end_many(&a);
    assert_int_equal(wait.status, STATUS_WAIT_0);
    assert_int_equal(wait.index, MOST - 1);

    wait = for_events(MOST, WaitAll, SynchronizationEvent);
    for (ULONG i = 0; i < MOST; i += 1) {
        objects[i] = &events[MOST - 1 - i];
    }
    begin_many(&a, &wait);
    for (ULONG i = 0; i < MOST; i += 1) {
        assert_true(is_waiting(&a) || i + 1 == MOST);
        KeSetEvent(&events[i], 0, FALSE);
    }
    end_many(&a);
    assert_int_equal(wait.status, STATUS_WAIT_0);
    assert_int_equal(count_signaled(MOST), 0);
    end_actor(&a);
}

static void test_timeouts(void **state)
{
    LARGE_INTEGER times[] = {relative(2 * MILLISECOND), absolute(2 * MILLISECOND), absolute(-SECOND)};
    (void)state;
    for (ULONG i = 0; i < 2 * ARRAYSIZE(times); i += 1) {
        many_wait wait = for_events(COUNT, i % 2 == 0 ? WaitAny : WaitAll, SynchronizationEvent);
        wait.timeout = &times[i / 2];
        perform_many(&wait);
        assert_int_equal(wait.status, STATUS_TIMEOUT);
        assert_int_equal(wait.index, 0);
        assert_no_waiters(COUNT);
    }
}

static void test_alerts(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    for (ULONG i = 0; i < 2; i += 1) {
        many_wait wait = for_events(COUNT, i == 0 ? WaitAny : WaitAll, SynchronizationEvent);
        wait.alertable = TRUE;
        begin_many(&a, &wait);
        KeAlertThread(a.thread, KernelMode);
        end_many(&a);
        assert_int_equal(wait.status, STATUS_ALERTED);
        assert_no_waiters(COUNT);

        KeAlertThread(a.thread, KernelMode); /* before the wait, and before a signaled object */
        KeSetEvent(&events[0], 0, FALSE);
        run_on(&a, perform_many, &wait);
        assert_int_equal(wait.status, STATUS_ALERTED);
        assert_int_equal(KeReadStateEvent(&events[0]), 1);
    }
    end_actor(&a);
}

static volatile LONG apcs_run;

static VOID NTAPI count_user_apc(PVOID context, PVOID first, PVOID second)
{
    (void)context, (void)first, (void)second;
    InterlockedIncrement(&apcs_run);
}

static VOID NTAPI count_kernel_apc(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *first, PVOID *second)
{
    (void)apc, (void)routine, (void)context, (void)first, (void)second;
    InterlockedIncrement(&apcs_run);
}

static VOID NTAPI let_pass(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *first, PVOID *second)
{
    (void)apc, (void)routine, (void)context, (void)first, (void)second;
}

/* A user APC ends the wait; a kernel APC is delivered, and the wait continues. */
static void test_apcs(void **state)
{
    actor a;
    KAPC apc;
    (void)state;
    start_actor(&a);
    for (ULONG i = 0; i < 2; i += 1) {
        many_wait wait = for_events(COUNT, i == 0 ? WaitAny : WaitAll, NotificationEvent);
        wait.alertable = TRUE;
        wait.mode = UserMode;
        apcs_run = 0;
        begin_many(&a, &wait);
        KeInitializeApc(&apc, a.thread, OriginalApcEnvironment, count_kernel_apc, NULL, NULL, KernelMode, NULL);
        assert_true(KeInsertQueueApc(&apc, NULL, NULL, 0));
        await(__atomic_load_n(&apcs_run, __ATOMIC_ACQUIRE) == 1);
        await(is_waiting(&a));
        KeInitializeApc(&apc, a.thread, OriginalApcEnvironment, let_pass, NULL, count_user_apc, UserMode, NULL);
        assert_true(KeInsertQueueApc(&apc, NULL, NULL, 0));
        end_many(&a);
        assert_int_equal(wait.status, STATUS_USER_APC);
        assert_int_equal(apcs_run, 2);
        assert_no_waiters(COUNT);
    }
    end_actor(&a);
}

static KMUTANT mutants[COUNT];

static void take_and_leave(void *argument)
{
    KeWaitForSingleObject(argument, Executive, KernelMode, FALSE, NULL);
}

/* An abandoned mutant is reported with its index. Each way ends in ownership. */
static void test_mutants(void **state)
{
    actor owner, a;
    (void)state;
    for (ULONG asleep = 0; asleep < 2; asleep += 1) {
        start_actor(&a);
        for (ULONG i = 0; i < COUNT; i += 1) {
            KeInitializeMutant(&mutants[i], i != 300); /* 300 is signaled; the caller owns the others */
            objects[i] = &mutants[i];
        }
        many_wait wait = {.count = COUNT, .object = objects, .type = WaitAny, .blocks = blocks};
        run_on(&a, perform_many, &wait);
        assert_int_equal(wait.status, STATUS_WAIT_0);
        assert_int_equal(wait.index, 300);
        assert_ptr_equal(mutants[300].OwnerThread, a.thread);

        KeReleaseMutant(&mutants[0x102], 0, FALSE, FALSE);
        start_actor(&owner);
        run_on(&owner, take_and_leave, &mutants[0x102]);
        wait.object = objects + 1;
        wait.count = COUNT - 1;
        objects[300] = &events[0];
        KeInitializeEvent(&events[0], SynchronizationEvent, FALSE);
        if (asleep) {
            begin_many(&a, &wait);
            end_actor(&owner);
            end_many(&a);
        } else {
            end_actor(&owner);
            run_on(&a, perform_many, &wait);
        }
        assert_int_equal(wait.status, STATUS_ABANDONED_WAIT_0);
        assert_int_equal(wait.index, 0x101);
        assert_ptr_equal(mutants[0x102].OwnerThread, a.thread);
        for (ULONG i = 0; i < COUNT; i += 1) {
            if (i != 300 && i != 0x102) {
                KeReleaseMutant(&mutants[i], 0, FALSE, FALSE);
            }
        }
        end_actor(&a); /* abandons what it owns, through its list */
        assert_true(mutants[300].Abandoned && mutants[0x102].Abandoned);
    }
}

static void test_all_mutants(void **state)
{
    actor a, owner;
    (void)state;
    start_actor(&a);
    start_actor(&owner);
    for (ULONG i = 0; i < COUNT; i += 1) {
        KeInitializeMutant(&mutants[i], FALSE);
        objects[i] = &mutants[COUNT - 1 - i];
    }
    run_on(&owner, take_and_leave, &mutants[77]);
    many_wait wait = {.count = COUNT, .object = objects, .type = WaitAll, .blocks = blocks};
    begin_many(&a, &wait);
    assert_null(mutants[0].OwnerThread);
    end_actor(&owner);
    end_many(&a);
    assert_int_equal(wait.status, STATUS_ABANDONED_WAIT_0);
    for (ULONG i = 0; i < COUNT; i += 1) {
        assert_ptr_equal(mutants[i].OwnerThread, a.thread);
    }
    end_actor(&a); /* abandons them all, through its list */
    for (ULONG i = 0; i < COUNT; i += 1) {
        assert_true(mutants[i].Abandoned);
    }
}

/* A suspended thread does not consume; when it is resumed, its wait continues. */
static void test_suspension(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    for (ULONG i = 0; i < 2; i += 1) {
        many_wait wait = for_events(COUNT, i == 0 ? WaitAny : WaitAll, SynchronizationEvent);
        begin_many(&a, &wait);
        assert_int_equal(KeSuspendThread(a.thread), 0);
        for (ULONG j = 0; j < COUNT; j += 1) {
            KeSetEvent(&events[j], 0, FALSE);
        }
        pause_briefly();
        assert_int_equal(count_signaled(COUNT), COUNT);
        KeResumeThread(a.thread);
        end_many(&a);
        assert_int_equal(wait.status, STATUS_WAIT_0);
        assert_int_equal(wait.index, 0);
        assert_int_equal(count_signaled(COUNT), i == 0 ? COUNT - 1 : 0);
        assert_no_waiters(COUNT);
    }
    end_actor(&a);
}

static void too_many(void *argument)
{
    (void)argument;
    KeWaitForManyObjects(MOST + 1, objects, WaitAny, Executive, KernelMode, FALSE, NO_TIME, blocks, NULL);
}

static void test_bad_input(void **state)
{
    (void)state;
    expect_bugcheck(MAXIMUM_WAIT_OBJECTS_EXCEEDED, too_many, NULL);
    many_wait wait = for_events(COUNT, WaitAll, SynchronizationEvent);
    wait.count = 0;
    perform_many(&wait);
    assert_int_equal(wait.status, STATUS_INVALID_PARAMETER_1);
    wait.count = COUNT;
    wait.type = (WAIT_TYPE)WaitNotification;
    perform_many(&wait);
    assert_int_equal(wait.status, STATUS_INVALID_PARAMETER_3);
    wait.type = WaitAll;
    objects[900] = objects[3];
    perform_many(&wait);
    assert_int_equal(wait.status, STATUS_INVALID_PARAMETER_MIX);
    wait.type = WaitAny; /* where a duplicate is allowed */
    wait.timeout = NO_TIME;
    perform_many(&wait);
    assert_int_equal(wait.status, STATUS_TIMEOUT);
    assert_int_equal(KeWaitForManyObjects(COUNT, objects, WaitAny, Executive, KernelMode, FALSE, NO_TIME, blocks, NULL),
                     STATUS_TIMEOUT);

    KeInitializeMutant(&mutants[0], TRUE);
    mutants[0].Header.SignalState = KI_MUTANT_LIMIT;
    objects[500] = &mutants[0];
    assert_int_equal(raised_by(perform_many, &wait), STATUS_MUTANT_LIMIT_EXCEEDED);
    objects[900] = &events[900];
    wait.type = WaitAll;
    assert_int_equal(raised_by(perform_many, &wait), STATUS_MUTANT_LIMIT_EXCEEDED);
    mutants[0].Header.SignalState = 0;
    KeReleaseMutant(&mutants[0], 0, FALSE, FALSE);
}

/* A few objects, the same rules. */
static void test_few(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    for (ULONG count = 1; count < 70; count += 1) {
        many_wait wait = for_events(count, WaitAny, SynchronizationEvent);
        begin_many(&a, &wait);
        KeSetEvent(&events[count - 1], 0, FALSE);
        end_many(&a);
        assert_int_equal(wait.status, STATUS_WAIT_0);
        assert_int_equal(wait.index, count - 1);
        wait.type = WaitAll;
        begin_many(&a, &wait);
        for (ULONG i = 0; i < count; i += 1) {
            KeSetEvent(&events[i], 0, FALSE);
        }
        end_many(&a);
        assert_int_equal(wait.status, STATUS_WAIT_0);
        assert_int_equal(count_signaled(count), 0);
    }
    end_actor(&a);
}

/* Threads move tokens between semaphores: none is lost, none is created. */
#define MOVERS 3
#define PLACES 200
#define TOKENS 50

static KSEMAPHORE places[PLACES];
static volatile LONG moves_left;

typedef struct mover {
    actor actor;
    PVOID object[PLACES];
    KWAIT_BLOCK blocks[KE_MANY_WAIT_BLOCKS(PLACES)];
    ULONG number;
} mover;

static void move_tokens(void *argument)
{
    mover *m = argument;
    LARGE_INTEGER timeout = relative(100);
    ULONG random = m->number + 1;
    while (InterlockedDecrement(&moves_left) > 0) {
        ULONG index;
        random = random * 1103515245 + 12345;
        NTSTATUS status = KeWaitForManyObjects(PLACES, m->object, WaitAny, Executive, KernelMode, FALSE,
                                               random & 0x10000 ? NULL : &timeout, m->blocks, &index);
        if (status == STATUS_WAIT_0) {
            check(index < PLACES);
            KeReleaseSemaphore(&places[(random >> 17) % PLACES], 0, 1, FALSE);
        } else {
            check(status == STATUS_TIMEOUT);
        }
    }
}

static void test_tokens(void **state)
{
    static mover movers[MOVERS];
    (void)state;
    for (ULONG i = 0; i < PLACES; i += 1) {
        KeInitializeSemaphore(&places[i], i < TOKENS, TOKENS + 1);
    }
    moves_left = 6000;
    for (ULONG i = 0; i < MOVERS; i += 1) {
        movers[i].number = i;
        for (ULONG j = 0; j < PLACES; j += 1) {
            movers[i].object[j] = &places[(j + i * 37) % PLACES];
        }
        start_actor(&movers[i].actor);
        tell(&movers[i].actor, move_tokens, &movers[i]);
    }
    for (ULONG i = 0; i < MOVERS; i += 1) {
        end_actor(&movers[i].actor);
    }
    LONG tokens = 0;
    for (ULONG i = 0; i < PLACES; i += 1) {
        tokens += KeReadStateSemaphore(&places[i]);
    }
    assert_int_equal(tokens, TOKENS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_any_at_once), WATCHED(test_any_asleep), WATCHED(test_all),        WATCHED(test_all_by_pulse),
        WATCHED(test_most),        WATCHED(test_timeouts),   WATCHED(test_alerts),     WATCHED(test_apcs),
        WATCHED(test_mutants),     WATCHED(test_all_mutants), WATCHED(test_suspension), WATCHED(test_bad_input),
        WATCHED(test_few),         WATCHED(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
