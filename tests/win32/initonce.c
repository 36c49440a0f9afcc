/* One-time initialisation by its Win32 names: what the words become is in tests/ex/runonce.c. */
#include "../rtl/locktest.h"

#include <interlock/win32.h>

#define CHECK INIT_ONCE_CHECK_ONLY
#define ASYNC INIT_ONCE_ASYNC
#define INIT_FAILED INIT_ONCE_INIT_FAILED

#define CONTEXT ((ULONG_PTR)0x1230)
#define DONE (CONTEXT | 2)
#define UNTOUCHED 1234

static const struct {
    ULONG_PTR word;
    DWORD flags;
    DWORD error; /* UNTOUCHED: TRUE is returned */
    BOOL pending;
    ULONG_PTR after;
} beginnings[] = {
    {0, 0, UNTOUCHED, TRUE, 1},
    {0, ASYNC, UNTOUCHED, TRUE, 3},
    {3, ASYNC, UNTOUCHED, TRUE, 3},
    {DONE, 0, UNTOUCHED, FALSE, DONE},
    {DONE, ASYNC, UNTOUCHED, FALSE, DONE},
    {DONE, CHECK, UNTOUCHED, FALSE, DONE},
    {0, CHECK, ERROR_GEN_FAILURE, 0, 0},
    {1, CHECK, ERROR_GEN_FAILURE, 0, 1},
    {3, CHECK, ERROR_GEN_FAILURE, 0, 3},
    {0, CHECK | ASYNC, ERROR_INVALID_PARAMETER, 0, 0},
    {DONE, CHECK | ASYNC, ERROR_INVALID_PARAMETER, 0, DONE},
    {1, ASYNC, ERROR_INVALID_PARAMETER, 0, 1},
    {3, 0, ERROR_INVALID_PARAMETER, 0, 3},
    {0, INIT_FAILED, ERROR_INVALID_PARAMETER, 0, 0},
    {0, 0x80000000, ERROR_INVALID_PARAMETER, 0, 0},
};

static void test_begin(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(beginnings); i += 1) {
        INIT_ONCE once = {.Ptr = (PVOID)beginnings[i].word};
        BOOL good = beginnings[i].error == UNTOUCHED;
        BOOL pending = -1;
        PVOID context = &once;
        SetLastError(UNTOUCHED);
        assert_int_equal(InitOnceBeginInitialize(&once, beginnings[i].flags, &pending, &context), good);
        assert_int_equal(GetLastError(), beginnings[i].error);
        assert_int_equal(pending, good ? beginnings[i].pending : -1);
        assert_ptr_equal(context, good && !beginnings[i].pending ? (PVOID)CONTEXT : &once);
        assert_int_equal((ULONG_PTR)once.Ptr, beginnings[i].after);
    }
}

static const struct {
    ULONG_PTR word;
    DWORD flags;
    ULONG_PTR context;
    DWORD error;
    ULONG_PTR after;
} completions[] = {
    {1, 0, CONTEXT, UNTOUCHED, DONE},
    {1, 0, 0, UNTOUCHED, 2},
    {1, INIT_FAILED, 0, UNTOUCHED, 0},
    {3, ASYNC, CONTEXT, UNTOUCHED, DONE},
    {DONE, ASYNC, 0x4560, ERROR_GEN_FAILURE, DONE},
    {DONE, 0, 0x4560, ERROR_GEN_FAILURE, DONE},
    {0, 0, CONTEXT, ERROR_GEN_FAILURE, 0},
    {1, 0, CONTEXT | 1, ERROR_INVALID_PARAMETER, 1},
    {1, 0, CONTEXT | 2, ERROR_INVALID_PARAMETER, 1},
    {3, ASYNC, CONTEXT | 3, ERROR_INVALID_PARAMETER, 3},
    {1, INIT_FAILED, CONTEXT, ERROR_INVALID_PARAMETER, 1},
    {1, ASYNC, CONTEXT, ERROR_INVALID_PARAMETER, 1},
    {3, 0, CONTEXT, ERROR_INVALID_PARAMETER, 3},
    {3, INIT_FAILED, 0, ERROR_INVALID_PARAMETER, 3},
    {1, INIT_FAILED | ASYNC, 0, ERROR_INVALID_PARAMETER, 1},
    {1, CHECK, 0, ERROR_INVALID_PARAMETER, 1},
};

static void test_complete(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(completions); i += 1) {
        INIT_ONCE once = {.Ptr = (PVOID)completions[i].word};
        SetLastError(UNTOUCHED);
        assert_int_equal(InitOnceComplete(&once, completions[i].flags, (PVOID)completions[i].context),
                         completions[i].error == UNTOUCHED);
        assert_int_equal(GetLastError(), completions[i].error);
        assert_int_equal((ULONG_PTR)once.Ptr, completions[i].after);
    }
}

typedef struct script {
    ULONG runs;
    BOOL result;
    DWORD error;
    ULONG_PTR context;
} script;

static BOOL follow_script(PINIT_ONCE once, PVOID parameter, PVOID *context)
{
    script *s = parameter;
    check(((ULONG_PTR)once->Ptr & 3) == 1);
    s->runs += 1;
    if (context != NULL)
        *context = (PVOID)s->context;
    SetLastError(s->error);
    return s->result;
}

static void test_execute(void **state)
{
    INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    script s = {.result = FALSE, .error = 77, .context = CONTEXT};
    PVOID context = &s;
    (void)state;
    assert_false(InitOnceExecuteOnce(&once, follow_script, &s, &context));
    assert_int_equal(GetLastError(), 77);
    assert_null(once.Ptr);
    assert_ptr_equal(context, (PVOID)CONTEXT);
    s.result = TRUE;
    s.context = CONTEXT | 1;
    assert_false(InitOnceExecuteOnce(&once, follow_script, &s, &context));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(once.Ptr);
    s.result = 0x100; /* any value but FALSE */
    s.context = CONTEXT;
    for (ULONG i = 0; i < 3; i += 1) {
        SetLastError(77);
        assert_true(InitOnceExecuteOnce(&once, follow_script, &s, &context));
        assert_int_equal(GetLastError(), 77);
        assert_ptr_equal(context, (PVOID)CONTEXT);
        assert_int_equal((ULONG_PTR)once.Ptr, DONE);
    }
    assert_true(InitOnceExecuteOnce(&once, follow_script, &s, NULL));
    assert_int_equal(s.runs, 3);
    InitOnceInitialize(&once);
    assert_null(once.Ptr);
}

/* A failed synchronous one: a waiter tries again. */
typedef struct beginner {
    actor actor;
    INIT_ONCE *once;
    BOOL pending;
    PVOID context;
} beginner;

static void begin(void *argument)
{
    beginner *b = argument;
    check(InitOnceBeginInitialize(b->once, 0, &b->pending, &b->context));
}

static void test_waiters(void **state)
{
    INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    BOOL pending;
    beginner b[2];
    (void)state;
    assert_true(InitOnceBeginInitialize(&once, 0, &pending, NULL));
    assert_true(pending);
    for (ULONG i = 0; i < ARRAYSIZE(b); i += 1) {
        b[i] = (beginner){.once = &once};
        start_actor(&b[i].actor);
        tell(&b[i].actor, begin, &b[i]);
        await(is_committed(b[i].actor.thread));
    }
    assert_true(InitOnceComplete(&once, INIT_FAILED, NULL));
    await(is_idle(&b[0].actor) || is_idle(&b[1].actor));
    ULONG first = is_idle(&b[0].actor) ? 0 : 1;
    assert_true(b[first].pending);
    assert_true(InitOnceComplete(&once, 0, (PVOID)CONTEXT));
    await(is_idle(&b[1 - first].actor));
    assert_false(b[1 - first].pending);
    assert_ptr_equal(b[1 - first].context, (PVOID)CONTEXT);
    for (ULONG i = 0; i < ARRAYSIZE(b); i += 1) {
        end_actor(&b[i].actor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_begin),
        WATCHED(test_complete),
        WATCHED(test_execute),
        WATCHED(test_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
