/* What a callback may request of its instance. */
#include "tptest.h"

static volatile ULONG runs;

typedef struct request {
    HANDLE event;
    HANDLE semaphore;
    HANDLE mutant;
    CRITICAL_SECTION section;
    HANDLE entered;
    HANDLE opened;
} request;

static void ask_for_all(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    request *r = context;
    (void)work;
    EnterCriticalSection(&r->section);
    wait_event(r->mutant);
    LeaveCriticalSectionWhenCallbackReturns(instance, &r->section);
    ReleaseMutexWhenCallbackReturns(instance, r->mutant);
    ReleaseSemaphoreWhenCallbackReturns(instance, r->semaphore, 3);
    SetEventWhenCallbackReturns(instance, r->event);
    FreeLibraryWhenCallbackReturns(instance, GetModuleHandleA(NULL));
    set_event(r->entered);
    wait_event(r->opened);
}

static void test_completion(void **state)
{
    request r = {.event = make_event(SynchronizationEvent),
                 .entered = make_event(SynchronizationEvent),
                 .opened = make_event(SynchronizationEvent)};
    MUTANT_BASIC_INFORMATION mutant;
    SEMAPHORE_BASIC_INFORMATION semaphore;
    (void)state;
    InitializeCriticalSection(&r.section);
    assert_int_equal(NtCreateMutant(&r.mutant, MUTANT_ALL_ACCESS, NULL, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtCreateSemaphore(&r.semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, 10), STATUS_SUCCESS);
    PTP_WORK work = CreateThreadpoolWork(ask_for_all, &r, NULL);
    SubmitThreadpoolWork(work);
    wait_event(r.entered);
    assert_false(TryEnterCriticalSection(&r.section));
    assert_false(is_set(r.event));
    NtQueryMutant(r.mutant, MutantBasicInformation, &mutant, sizeof(mutant), NULL);
    assert_int_equal(mutant.CurrentCount, 0);
    set_event(r.opened);
    wait_event(r.event);
    NtQueryMutant(r.mutant, MutantBasicInformation, &mutant, sizeof(mutant), NULL);
    assert_int_equal(mutant.CurrentCount, 1);
    NtQuerySemaphore(r.semaphore, SemaphoreBasicInformation, &semaphore, sizeof(semaphore), NULL);
    assert_int_equal(semaphore.CurrentCount, 3);
    assert_true(TryEnterCriticalSection(&r.section));
    LeaveCriticalSection(&r.section);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    DeleteCriticalSection(&r.section);
    NtClose(r.event);
    NtClose(r.semaphore);
    NtClose(r.mutant);
    NtClose(r.entered);
    NtClose(r.opened);
}

/* Requests that are made twice, or with NULL. */
typedef struct twice {
    PTP_CALLBACK_INSTANCE instance;
    HANDLE event;
    CRITICAL_SECTION section;
} twice;

static void ask_event(void *t)
{
    SetEventWhenCallbackReturns(((twice *)t)->instance, ((twice *)t)->event);
}

static void ask_semaphore(void *t)
{
    ReleaseSemaphoreWhenCallbackReturns(((twice *)t)->instance, ((twice *)t)->event, 1);
}

static void ask_mutex(void *t)
{
    ReleaseMutexWhenCallbackReturns(((twice *)t)->instance, ((twice *)t)->event);
}

static void ask_section(void *t)
{
    LeaveCriticalSectionWhenCallbackReturns(((twice *)t)->instance,
                                            ((twice *)t)->event != NULL ? &((twice *)t)->section : NULL);
}

static void ask_library(void *t)
{
    FreeLibraryWhenCallbackReturns(((twice *)t)->instance, (HMODULE)((twice *)t)->event);
}

static void (*const requests[])(void *) = {ask_event, ask_semaphore, ask_mutex, ask_section, ask_library};

static void ask_twice(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    twice t = {.instance = instance, .event = NULL};
    for (ULONG i = 0; i < ARRAYSIZE(requests); i += 1) {
        check(raised_by(requests[i], &t) == STATUS_INVALID_PARAMETER);
    }
    t.event = context;
    for (ULONG i = 0; i < ARRAYSIZE(requests); i += 1) {
        check(raised_by(requests[i], &t) == STATUS_SUCCESS);
        check(raised_by(requests[i], &t) == STATUS_INVALID_PARAMETER);
    }
    *instance = (TP_CALLBACK_INSTANCE){.Worker = instance->Worker, .Object = instance->Object};
    SetEventWhenCallbackReturns(instance, context);
}

static void test_twice(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    (void)state;
    assert_true(TrySubmitThreadpoolCallback(ask_twice, event, NULL));
    wait_event(event);
    NtClose(event);
}

/* An action that fails raises a status, which no thread of the pool catches. */
static void bad_event(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    SetEventWhenCallbackReturns(instance, context);
}

static void bad_semaphore(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    ReleaseSemaphoreWhenCallbackReturns(instance, context, 1);
}

static void bad_mutex(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    ReleaseMutexWhenCallbackReturns(instance, context);
}

static void submit_bad(void *argument)
{
    TrySubmitThreadpoolCallback(*(PTP_SIMPLE_CALLBACK *)argument, ULongToHandle(0x7ffffff0), NULL);
    NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -TEST_SECONDS * SECOND});
}

static void test_failures(void **state)
{
    static PTP_SIMPLE_CALLBACK bad[] = {bad_event, bad_semaphore, bad_mutex};
    static const NTSTATUS statuses[] = {STATUS_THREADPOOL_SET_EVENT_ON_COMPLETION_FAILED,
                                        STATUS_THREADPOOL_RELEASE_SEMAPHORE_ON_COMPLETION_FAILED,
                                        STATUS_THREADPOOL_RELEASE_MUTEX_ON_COMPLETION_FAILED};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(bad); i += 1) {
        expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (uint64_t)statuses[i], submit_bad, &bad[i]);
    }
}

/* From now on no thread waits for the callback, and its object may be deleted. */
static void disassociate(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    gate *g = context;
    (void)work;
    DisassociateCurrentThreadFromCallback(instance);
    DisassociateCurrentThreadFromCallback(instance);
    SetEventWhenCallbackReturns(instance, g->entered);
    wait_event(g->opened);
    add_one(&runs);
}

static void test_disassociate(void **state)
{
    gate g = {.entered = make_event(SynchronizationEvent), .opened = make_event(SynchronizationEvent)};
    PTP_WORK work = CreateThreadpoolWork(disassociate, &g, NULL);
    (void)state;
    runs = 0;
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    assert_int_equal(count_of(&runs), 0);
    set_event(g.opened);
    wait_event(g.entered);
    assert_int_equal(count_of(&runs), 1);
    NtClose(g.entered);
    NtClose(g.opened);
}

static void finalize(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    check(count_of(&runs) % 2 == 1);
    add_one(&runs);
    SetEventWhenCallbackReturns(instance, context);
}

static void before_finalize(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)context;
    DisassociateCurrentThreadFromCallback(instance);
    add_one(&runs);
}

static void test_finalization(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    TP_CALLBACK_ENVIRON environment;
    (void)state;
    runs = 0;
    InitializeThreadpoolEnvironment(&environment);
    TpSetCallbackFinalizationCallback(&environment, finalize);
    for (ULONG i = 1; i <= 10; i += 1) {
        assert_true(TrySubmitThreadpoolCallback(before_finalize, event, &environment));
        wait_event(event);
        assert_int_equal(runs, 2 * i);
    }
    NtClose(event);
}

/* The thread's priority is restored. */
static void raise_priority(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    check(KeGetCurrentThread()->BasePriorityIncrement == 0);
    KeSetBasePriorityThread(KeGetCurrentThread(), 2);
    SetEventWhenCallbackReturns(instance, context);
}

static void test_priority_is_restored(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    (void)state;
    for (ULONG i = 0; i < 3; i += 1) {
        assert_true(TrySubmitThreadpoolCallback(raise_priority, event, &environment));
        wait_event(event);
    }
    CloseThreadpool(pool);
    NtClose(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures), WATCHED(test_completion),   WATCHED(test_twice),
        WATCHED(test_disassociate),      WATCHED(test_finalization), WATCHED(test_priority_is_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
