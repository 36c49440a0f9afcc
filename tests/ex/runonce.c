/* One-time initialisation, by the numbers in src/rtl/runonce.c. */
#include "../ke/waittest.h"
#include "../support/heap.h"

#include <interlock/rtl.h>

#define CHECK RTL_RUN_ONCE_CHECK_ONLY
#define ASYNC RTL_RUN_ONCE_ASYNC
#define INIT_FAILED RTL_RUN_ONCE_INIT_FAILED

#define IDLE 0
#define SYNC_RUNNING 1
#define ASYNC_RUNNING 3
#define CONTEXT ((ULONG_PTR)0x1230)
#define DONE (CONTEXT | 2)

/* 2, 4, and the words: every call in every state. */

static const struct {
    ULONG_PTR word;
    ULONG flags;
    NTSTATUS status;
    ULONG_PTR after;
} beginnings[] = {
    {IDLE, 0, STATUS_PENDING, SYNC_RUNNING},
    {IDLE, ASYNC, STATUS_PENDING, ASYNC_RUNNING},
    {IDLE, CHECK, STATUS_UNSUCCESSFUL, IDLE},
    {SYNC_RUNNING, CHECK, STATUS_UNSUCCESSFUL, SYNC_RUNNING},
    {SYNC_RUNNING, ASYNC, STATUS_INVALID_PARAMETER_2, SYNC_RUNNING},
    {ASYNC_RUNNING, 0, STATUS_INVALID_PARAMETER_2, ASYNC_RUNNING},
    {ASYNC_RUNNING, ASYNC, STATUS_PENDING, ASYNC_RUNNING},
    {ASYNC_RUNNING, CHECK, STATUS_UNSUCCESSFUL, ASYNC_RUNNING},
    {DONE, 0, STATUS_SUCCESS, DONE},
    {DONE, ASYNC, STATUS_SUCCESS, DONE},
    {DONE, CHECK, STATUS_SUCCESS, DONE},
    {IDLE, CHECK | ASYNC, STATUS_INVALID_PARAMETER_2, IDLE},
    {DONE, CHECK | ASYNC, STATUS_INVALID_PARAMETER_2, DONE},
    {IDLE, INIT_FAILED, STATUS_INVALID_PARAMETER_2, IDLE},
    {IDLE, 8, STATUS_INVALID_PARAMETER_2, IDLE},
};

static const struct {
    ULONG_PTR word;
    ULONG flags;
    ULONG_PTR context;
    NTSTATUS status;
    ULONG_PTR after;
} completions[] = {
    {SYNC_RUNNING, 0, CONTEXT, STATUS_SUCCESS, DONE},
    {SYNC_RUNNING, 0, 0, STATUS_SUCCESS, 2},
    {SYNC_RUNNING, INIT_FAILED, 0, STATUS_SUCCESS, IDLE},
    {SYNC_RUNNING, ASYNC, CONTEXT, STATUS_INVALID_PARAMETER_2, SYNC_RUNNING},
    {SYNC_RUNNING, 0, CONTEXT | 1, STATUS_INVALID_PARAMETER, SYNC_RUNNING},
    {SYNC_RUNNING, 0, CONTEXT | 2, STATUS_INVALID_PARAMETER, SYNC_RUNNING},
    {SYNC_RUNNING, INIT_FAILED, CONTEXT, STATUS_INVALID_PARAMETER, SYNC_RUNNING},
    {SYNC_RUNNING, INIT_FAILED | ASYNC, 0, STATUS_INVALID_PARAMETER_2, SYNC_RUNNING},
    {SYNC_RUNNING, CHECK, 0, STATUS_INVALID_PARAMETER_2, SYNC_RUNNING},
    {ASYNC_RUNNING, ASYNC, CONTEXT, STATUS_SUCCESS, DONE},
    {ASYNC_RUNNING, ASYNC, CONTEXT | 3, STATUS_INVALID_PARAMETER, ASYNC_RUNNING},
    {ASYNC_RUNNING, 0, CONTEXT, STATUS_INVALID_PARAMETER_2, ASYNC_RUNNING},
    {ASYNC_RUNNING, INIT_FAILED, 0, STATUS_INVALID_PARAMETER_2, ASYNC_RUNNING},
    {DONE, ASYNC, 0x4560, STATUS_UNSUCCESSFUL, DONE},
    {DONE, 0, 0x4560, STATUS_UNSUCCESSFUL, DONE},
    {DONE, INIT_FAILED, 0, STATUS_UNSUCCESSFUL, DONE},
    {IDLE, 0, CONTEXT, STATUS_UNSUCCESSFUL, IDLE},
    {IDLE, ASYNC, CONTEXT, STATUS_UNSUCCESSFUL, IDLE},
};

static void test_begin(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(beginnings); i += 1) {
        RTL_RUN_ONCE once = {.Ptr = (PVOID)beginnings[i].word};
        PVOID context = &once;
        assert_int_equal(RtlRunOnceBeginInitialize(&once, beginnings[i].flags, &context), beginnings[i].status);
        assert_int_equal((ULONG_PTR)once.Ptr, beginnings[i].after);
        assert_ptr_equal(context, beginnings[i].status == STATUS_SUCCESS ? (PVOID)CONTEXT : &once);
    }
}

static void test_complete(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(completions); i += 1) {
        RTL_RUN_ONCE once = {.Ptr = (PVOID)completions[i].word};
        assert_int_equal(RtlRunOnceComplete(&once, completions[i].flags, (PVOID)completions[i].context),
                         completions[i].status);
        assert_int_equal((ULONG_PTR)once.Ptr, completions[i].after);
    }
}

/* What a callback does. */
typedef struct script {
    ULONG runs;
    ULONG failures; /* so many times first */
    PVOID context;
    PVOID *seen; /* the pointer that the callback got, and what it held */
    PVOID held;
} script;

static ULONG follow_script(PRTL_RUN_ONCE once, PVOID parameter, PVOID *context)
{
    script *s = parameter;
    check(((ULONG_PTR)once->Ptr & 3) == SYNC_RUNNING);
    s->runs += 1;
    s->seen = context;
    if (context != NULL) {
        s->held = *context;
        *context = s->context;
    }
    return s->runs > s->failures;
}

static void test_execute(void **state)
{
    RTL_RUN_ONCE once = RTL_RUN_ONCE_INIT;
    script s = {.failures = 2, .context = (PVOID)CONTEXT};
    PVOID context = &s;
    (void)state;
    for (ULONG i = 0; i < s.failures; i += 1) {
        context = &s;
        assert_int_equal(RtlRunOnceExecuteOnce(&once, follow_script, &s, &context), STATUS_UNSUCCESSFUL);
        assert_null(once.Ptr);
        assert_ptr_equal(s.seen, &context);
        assert_ptr_equal(s.held, &s);
        assert_ptr_equal(context, (PVOID)CONTEXT);
    }
    for (ULONG i = 0; i < 2; i += 1) {
        context = NULL;
        assert_int_equal(RtlRunOnceExecuteOnce(&once, follow_script, &s, &context), STATUS_SUCCESS);
        assert_int_equal((ULONG_PTR)once.Ptr, DONE);
        assert_ptr_equal(context, (PVOID)CONTEXT);
    }
    assert_int_equal(RtlRunOnceExecuteOnce(&once, follow_script, &s, NULL), STATUS_SUCCESS);
    assert_int_equal(s.runs, 3);
    RtlRunOnceInitialize(&once);
    assert_int_equal(RtlRunOnceExecuteOnce(&once, follow_script, &s, NULL), STATUS_SUCCESS);
    assert_int_equal(s.runs, 4);
    assert_null(s.seen);
    assert_int_equal((ULONG_PTR)once.Ptr, DONE - CONTEXT);
}

static ULONG leave_context(PRTL_RUN_ONCE once, PVOID parameter, PVOID *context)
{
    (void)once, (void)parameter, (void)context;
    return TRUE;
}

static void test_execute_keeps_what_the_caller_holds(void **state)
{
    RTL_RUN_ONCE once = RTL_RUN_ONCE_INIT;
    PVOID context = (PVOID)CONTEXT, other = NULL;
    (void)state;
    assert_int_equal(RtlRunOnceExecuteOnce(&once, leave_context, NULL, &context), STATUS_SUCCESS);
    assert_ptr_equal(context, (PVOID)CONTEXT);
    assert_int_equal((ULONG_PTR)once.Ptr, DONE);
    assert_int_equal(RtlRunOnceExecuteOnce(&once, leave_context, NULL, &other), STATUS_SUCCESS);
    assert_ptr_equal(other, (PVOID)CONTEXT);
}

static void test_execute_with_bad_context(void **state)
{
    RTL_RUN_ONCE once = RTL_RUN_ONCE_INIT;
    script s = {.context = (PVOID)(CONTEXT | 1)};
    PVOID context = NULL;
    (void)state;
    assert_int_equal(RtlRunOnceExecuteOnce(&once, follow_script, &s, &context), STATUS_INVALID_PARAMETER);
    assert_null(once.Ptr);
}

/* 1, 5: waiters sleep until the end; after a failure one of them runs it and the others keep sleeping. */

typedef struct beginner {
    actor actor;
    PRTL_RUN_ONCE once;
    PVOID context;
    NTSTATUS status;
} beginner;

static void begin(void *argument)
{
    beginner *b = argument;
    allocations_left = 0;
    b->status = RtlRunOnceBeginInitialize(b->once, 0, &b->context);
    allocations_left = -1;
}

static ULONG count_idle(beginner *b, ULONG count)
{
    ULONG idle = 0;
    for (ULONG i = 0; i < count; i += 1) {
        idle += is_idle(&b[i].actor);
    }
    return idle;
}

static void test_waiters(void **state)
{
    RTL_RUN_ONCE once = RTL_RUN_ONCE_INIT;
    beginner b[4];
    ULONG waiting = ARRAYSIZE(b);
    (void)state;
    assert_int_equal(RtlRunOnceBeginInitialize(&once, 0, NULL), STATUS_PENDING);
    for (ULONG i = 0; i < ARRAYSIZE(b); i += 1) {
        b[i] = (beginner){.once = &once};
        start_actor(&b[i].actor);
        tell(&b[i].actor, begin, &b[i]);
        await(is_committed(b[i].actor.thread));
        assert_int_equal((ULONG_PTR)once.Ptr & 3, SYNC_RUNNING);
    }
    while (waiting > 1) {
        assert_int_equal(RtlRunOnceComplete(&once, INIT_FAILED, NULL), STATUS_SUCCESS);
        waiting -= 1;
        await(count_idle(b, ARRAYSIZE(b)) == ARRAYSIZE(b) - waiting);
    }
    assert_int_equal(RtlRunOnceComplete(&once, 0, (PVOID)CONTEXT), STATUS_SUCCESS);
    await(count_idle(b, ARRAYSIZE(b)) == ARRAYSIZE(b));
    ULONG successes = 0;
    for (ULONG i = 0; i < ARRAYSIZE(b); i += 1) {
        assert_true(b[i].status == STATUS_PENDING || b[i].context == (PVOID)CONTEXT);
        successes += b[i].status == STATUS_SUCCESS;
        end_actor(&b[i].actor);
    }
    assert_int_equal(successes, 1);
    assert_int_equal(allocations_refused, 0); /* 6 */
}

/* 1, 3, with real contention: the routine runs once, and all threads see what it did. */

#define RACERS 4

typedef struct race {
    unsigned long rounds;
    RTL_RUN_ONCE *once;
    ULONG *failures;
    ULONG *made;       /* plain memory: TSan detects a thread that is not synchronized with its writer */
    ULONG *runs;
} race;

static ULONG make(PRTL_RUN_ONCE once, PVOID parameter, PVOID *context)
{
    race *r = parameter;
    unsigned long i = (unsigned long)(once - r->once);
    if (r->failures[i] < i % 3) {
        r->failures[i] += 1;
        return FALSE;
    }
    r->made[i] = (ULONG)i;
    r->runs[i] += 1;
    *context = (PVOID)(ULONG_PTR)(i * 4);
    return TRUE;
}

static void race_once(void *argument, unsigned index)
{
    race *r = argument;
    (void)index;
    for (unsigned long i = 0; i < r->rounds; i += 1) {
        PVOID context;
        while (RtlRunOnceExecuteOnce(&r->once[i], make, r, &context) != STATUS_SUCCESS) {
        }
        check(context == (PVOID)(ULONG_PTR)(i * 4));
        check(r->made[i] == i);
    }
}

static void test_race(void **state)
{
    race r = {.rounds = test_rounds(5000)};
    (void)state;
    r.once = calloc(r.rounds, sizeof(*r.once));
    r.failures = calloc(r.rounds, sizeof(*r.failures));
    r.made = calloc(r.rounds, sizeof(*r.made));
    r.runs = calloc(r.rounds, sizeof(*r.runs));
    run_threads(RACERS, 60, race_once, &r);
    for (unsigned long i = 0; i < r.rounds; i += 1) {
        assert_int_equal(r.runs[i], 1);
        assert_int_equal(r.failures[i], i % 3);
    }
    free(r.once);
    free(r.failures);
    free(r.made);
    free(r.runs);
}

/* 2 */
static void race_asynchronously(void *argument, unsigned index)
{
    race *r = argument;
    for (unsigned long i = 0; i < r->rounds; i += 1) {
        PVOID context = NULL;
        NTSTATUS status = RtlRunOnceBeginInitialize(&r->once[i], ASYNC, &context);
        if (status == STATUS_PENDING) {
            PVOID mine = (PVOID)(ULONG_PTR)(4 * (index + 1));
            status = RtlRunOnceComplete(&r->once[i], ASYNC, mine);
            check(status == STATUS_SUCCESS || status == STATUS_UNSUCCESSFUL);
            if (status == STATUS_SUCCESS) {
                __atomic_add_fetch(&r->runs[i], 1, __ATOMIC_RELAXED);
            }
            check(RtlRunOnceBeginInitialize(&r->once[i], CHECK, &context) == STATUS_SUCCESS);
            check((context == mine) == (status == STATUS_SUCCESS));
        }
        check(context != NULL);
    }
}

static void test_asynchronous_race(void **state)
{
    race r = {.rounds = test_rounds(5000)};
    (void)state;
    r.once = calloc(r.rounds, sizeof(*r.once));
    r.runs = calloc(r.rounds, sizeof(*r.runs));
    run_threads(RACERS, 60, race_asynchronously, &r);
    for (unsigned long i = 0; i < r.rounds; i += 1) {
        assert_int_equal(r.runs[i], 1);
    }
    free(r.once);
    free(r.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_begin),   WATCHED(test_complete), WATCHED(test_execute), WATCHED(test_execute_with_bad_context),
        WATCHED(test_execute_keeps_what_the_caller_holds),
        WATCHED(test_waiters), cmocka_unit_test(test_race), cmocka_unit_test(test_asynchronous_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
