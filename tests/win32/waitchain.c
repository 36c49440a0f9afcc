/* Wait chains. The test queries a chain repeatedly until its thread waits. */
#include "actors.h"
#include "objects.h"

#include <interlock/ke.h>
#include <wct.h>

#define MINUTE 60000

typedef struct chain {
    WAITCHAIN_NODE_INFO node[WCT_MAX_NODE_COUNT];
    DWORD count;
    BOOL cycle;
} chain;

static CRITICAL_SECTION section;
static HANDLE mutexes[2], event, met[2];

static chain take_with(DWORD flags, DWORD thread)
{
    HWCT session = OpenThreadWaitChainSession(0, NULL);
    chain found = {.count = WCT_MAX_NODE_COUNT};

    assert_non_null(session);
    assert_true(GetThreadWaitChain(session, 0, flags, thread, &found.count, found.node, &found.cycle));
    assert_false(KeAreAllApcsDisabled());
    CloseThreadWaitChainSession(session);
    return found;
}

static chain take(DWORD thread)
{
    return take_with(0, thread);
}

static chain take_until(DWORD thread, DWORD count)
{
    ULONGLONG end = GetTickCount64() + MINUTE;
    chain found = take(thread);

    while (found.count != count && GetTickCount64() < end) {
        Sleep(1);
        found = take(thread);
    }
    assert_int_equal(found.count, count);
    return found;
}

static void assert_node(const chain *found, DWORD index, WCT_OBJECT_TYPE type, WCT_OBJECT_STATUS status)
{
    assert_int_equal(found->node[index].ObjectType, type);
    assert_int_equal(found->node[index].ObjectStatus, status);
}

static void assert_thread(const chain *found, DWORD index, DWORD thread, WCT_OBJECT_STATUS status)
{
    assert_node(found, index, WctThreadType, status);
    assert_int_equal(found->node[index].ThreadObject.ThreadId, thread);
    assert_int_equal(found->node[index].ThreadObject.ProcessId, GetCurrentProcessId());
}

static HANDLE start(LPTHREAD_START_ROUTINE routine, void *context, DWORD *id)
{
    HANDLE thread = CreateThread(NULL, 0, routine, context, 0, id);

    assert_non_null(thread);
    return thread;
}

static void join(HANDLE thread)
{
    assert_int_equal(WaitForSingleObject(thread, MINUTE), WAIT_OBJECT_0);
    assert_true(CloseHandle(thread));
}

static void parameters(void **state)
{
    HWCT session = OpenThreadWaitChainSession(0, NULL);
    chain found;
    DWORD none = 0, many = WCT_MAX_NODE_COUNT + 1;

    (void)state;
    assert_non_null(session);
    assert_fails(OpenThreadWaitChainSession(WCT_ASYNC_OPEN_FLAG, NULL) != NULL, ERROR_NOT_SUPPORTED);
    assert_fails(OpenThreadWaitChainSession(0x10, NULL) != NULL, ERROR_INVALID_PARAMETER);
    found.count = WCT_MAX_NODE_COUNT;
    assert_fails(GetThreadWaitChain(NULL, 0, 0, GetCurrentThreadId(), &found.count, found.node, &found.cycle),
                 ERROR_INVALID_PARAMETER);
    assert_fails(GetThreadWaitChain(session, 0, 0x100, GetCurrentThreadId(), &found.count, found.node, &found.cycle),
                 ERROR_INVALID_PARAMETER);
    assert_fails(GetThreadWaitChain(session, 0, 0, GetCurrentThreadId(), NULL, found.node, &found.cycle),
                 ERROR_INVALID_PARAMETER);
    assert_fails(GetThreadWaitChain(session, 0, 0, GetCurrentThreadId(), &none, found.node, &found.cycle),
                 ERROR_INVALID_PARAMETER);
    assert_fails(GetThreadWaitChain(session, 0, 0, GetCurrentThreadId(), &many, found.node, &found.cycle),
                 ERROR_INVALID_PARAMETER);
    assert_fails(GetThreadWaitChain(session, 0, 0, GetCurrentThreadId(), &found.count, NULL, &found.cycle),
                 ERROR_INVALID_PARAMETER);
    assert_fails(GetThreadWaitChain(session, 0, 0, GetCurrentThreadId(), &found.count, found.node, NULL),
                 ERROR_INVALID_PARAMETER);
    assert_fails(GetThreadWaitChain(session, 0, 0, 0x7ffffff0, &found.count, found.node, &found.cycle),
                 ERROR_OBJECT_NOT_FOUND);
    CloseThreadWaitChainSession(session);
}

static void running(void **state)
{
    chain found = take(GetCurrentThreadId());

    (void)state;
    assert_int_equal(found.count, 1);
    assert_false(found.cycle);
    assert_thread(&found, 0, GetCurrentThreadId(), WctStatusRunning);
}

static DWORD WINAPI enter(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    LeaveCriticalSection(&section);
    return 0;
}

static DWORD WINAPI wait_for(void *context)
{
    return WaitForSingleObject(context, INFINITE);
}

/* thread, end of thread, thread, section, this thread */
static void section_and_join(void **state)
{
    HANDLE child, parent;
    DWORD child_id, parent_id;
    chain found;
    HWCT session = OpenThreadWaitChainSession(0, NULL);
    DWORD few = 2;

    (void)state;
    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    child = start(enter, NULL, &child_id);
    parent = start(wait_for, child, &parent_id);
    take_until(child_id, 3);
    found = take_until(parent_id, 5);
    assert_false(found.cycle);
    assert_thread(&found, 0, parent_id, WctStatusBlocked);
    assert_node(&found, 1, WctThreadWaitType, WctStatusOwned);
    assert_thread(&found, 2, child_id, WctStatusBlocked);
    assert_node(&found, 3, WctCriticalSectionType, WctStatusOwned);
    assert_thread(&found, 4, GetCurrentThreadId(), WctStatusRunning);

    assert_fails(GetThreadWaitChain(session, 0, 0, parent_id, &few, found.node, &found.cycle), ERROR_MORE_DATA);
    assert_int_equal(few, 2);
    assert_node(&found, 1, WctThreadWaitType, WctStatusOwned);
    CloseThreadWaitChainSession(session);
    LeaveCriticalSection(&section);
    join(parent);
    join(child);
    DeleteCriticalSection(&section);
}

static DWORD WINAPI enter_and_end(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    return 0;
}

static void abandoned_section(void **state)
{
    DWORD id;
    HANDLE waiter;
    chain found;

    (void)state;
    InitializeCriticalSection(&section);
    join(start(enter_and_end, NULL, &id));
    waiter = start(enter, NULL, &id);
    found = take_until(id, 2);
    assert_node(&found, 1, WctCriticalSectionType, WctStatusAbandoned);
    assert_true(TerminateThread(waiter, 0));
    join(waiter);
}

static void unknown(void **state)
{
    DWORD id;
    HANDLE waiter;
    chain found;

    (void)state;
    event = CreateEventA(NULL, TRUE, FALSE, NULL);
    waiter = start(wait_for, event, &id);
    found = take_until(id, 2);
    assert_thread(&found, 0, id, WctStatusBlocked);
    assert_node(&found, 1, WctUnknownType, WctStatusUnknown);
    assert_true(SetEvent(event));
    join(waiter);
    assert_true(CloseHandle(event));
}

static DWORD WINAPI cross(void *context)
{
    int self = context != NULL;

    WaitForSingleObject(mutexes[self], INFINITE);
    SetEvent(met[self]);
    WaitForSingleObject(met[1 - self], INFINITE);
    return WaitForSingleObjectEx(mutexes[1 - self], INFINITE, TRUE);
}

static VOID CALLBACK nothing(ULONG_PTR argument)
{
    (void)argument;
}

static void cycle(void **state)
{
    static const WCHAR name[] = u"\\BaseNamedObjects\\wct-0";
    DWORD ids[2];
    HANDLE threads[2];
    chain found;

    (void)state;
    mutexes[0] = CreateMutexA(NULL, FALSE, "wct-0");
    mutexes[1] = CreateMutexA(NULL, FALSE, NULL);
    for (int i = 0; i < 2; i++)
        met[i] = CreateEventA(NULL, TRUE, FALSE, NULL);
    for (int i = 0; i < 2; i++)
        threads[i] = start(cross, i != 0 ? &ids : NULL, &ids[i]);
    found = take_until(ids[1], 4);
    while (!found.cycle) /* the first thread may still be between the event and the mutex */
        found = take_until(ids[1], 4);
    assert_thread(&found, 0, ids[1], WctStatusBlocked);
    assert_node(&found, 1, WctMutexType, WctStatusOwned);
    assert_memory_equal(found.node[1].LockObject.ObjectName, name, sizeof(name));
    assert_thread(&found, 2, ids[0], WctStatusBlocked);
    assert_node(&found, 3, WctMutexType, WctStatusOwned);
    assert_int_equal(found.node[3].LockObject.ObjectName[0], 0);
    QueueUserAPC(nothing, threads[0], 0);
    for (int i = 0; i < 2; i++) {
        join(threads[i]);
        assert_true(CloseHandle(met[i]) && CloseHandle(mutexes[i]));
    }
}

/* Chains of threads that keep changing their waits. */

static volatile LONG stop;

static DWORD WINAPI play(void *context)
{
    (void)context;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        HANDLE mutex = CreateMutexA(NULL, FALSE, "wct-played");

        WaitForSingleObject(mutex, INFINITE);
        EnterCriticalSection(&section);
        SwitchToThread();
        LeaveCriticalSection(&section);
        ReleaseMutex(mutex);
        CloseHandle(mutex);
    }
    return 0;
}

static void moving(void **state)
{
    HANDLE threads[4];
    DWORD ids[4];

    (void)state;
    InitializeCriticalSection(&section);
    for (int i = 0; i < 4; i++)
        threads[i] = start(play, NULL, &ids[i]);
    for (unsigned long i = 0; i < test_rounds(400); i++)
        assert_false(take(ids[i % 4]).cycle);
    __atomic_store_n(&stop, TRUE, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    DeleteCriticalSection(&section);
}

/* Other processes. */

/* own MUTEX READY WANTED [any]: owns the mutex, and waits for the other one, or for either that or its own event. */
static int own_and_want(int argc, char **argv)
{
    HANDLE mutex = CreateMutexA(NULL, FALSE, argv[1]), ready = OpenEventA(EVENT_MODIFY_STATE, FALSE, argv[2]);
    HANDLE wanted[2] = {CreateMutexA(NULL, FALSE, argv[3]), CreateEventA(NULL, TRUE, FALSE, NULL)};

    REQUIRE(mutex != NULL && ready != NULL && wanted[0] != NULL && wanted[1] != NULL);
    REQUIRE(WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0);
    REQUIRE(SetEvent(ready));
    WaitForMultipleObjects(argc > 4 ? 2 : 1, wanted, FALSE, INFINITE);
    Sleep(INFINITE);
    return 0;
}

static const actor_entry roles[] = {{"own", own_and_want}, {NULL, NULL}};

static PROCESS_INFORMATION start_owner(const char *arguments)
{
    HANDLE ready = CreateEventA(NULL, FALSE, FALSE, "wct-ready"); /* an earlier actor still has it open */
    PROCESS_INFORMATION actor = start_actor(arguments);

    assert_int_equal(WaitForSingleObject(ready, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(CloseHandle(ready));
    return actor;
}

/* A thread of this process owns one mutex, and when the other is owned too, waits for it. */
static DWORD WINAPI own_then_wait(void *context)
{
    HANDLE *pair = context;

    WaitForSingleObject(pair[0], INFINITE);
    SetEvent(met[0]);
    WaitForSingleObject(met[1], INFINITE);
    DWORD status = WaitForSingleObject(pair[1], INFINITE);
    ReleaseMutex(pair[1]);
    ReleaseMutex(pair[0]);
    return status;
}

static HANDLE start_pair(HANDLE pair[2], const char *owned, const char *wanted, DWORD *id)
{
    HANDLE thread;

    pair[0] = CreateMutexA(NULL, FALSE, owned);
    pair[1] = CreateMutexA(NULL, FALSE, wanted);
    for (int i = 0; i < 2; i++)
        met[i] = CreateEventA(NULL, TRUE, FALSE, NULL);
    thread = start(own_then_wait, pair, id);
    assert_int_equal(WaitForSingleObject(met[0], LONG_ENOUGH), WAIT_OBJECT_0);
    return thread;
}

/* The killed process abandons what the thread waits for. */
static void end_pair(HANDLE thread, HANDLE pair[2])
{
    DWORD status = 0;

    assert_int_equal(WaitForSingleObject(thread, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(GetExitCodeThread(thread, &status));
    assert_int_equal(status, WAIT_ABANDONED);
    assert_true(CloseHandle(thread) && CloseHandle(pair[0]) && CloseHandle(pair[1]));
    assert_true(CloseHandle(met[0]) && CloseHandle(met[1]));
}

static void assert_foreign(const chain *found, DWORD index, const PROCESS_INFORMATION *actor, WCT_OBJECT_STATUS status)
{
    assert_node(found, index, WctThreadType, status);
    assert_int_equal(found->node[index].ThreadObject.ProcessId, actor->dwProcessId);
    assert_int_equal(found->node[index].ThreadObject.ThreadId, actor->dwThreadId);
}

static void assert_mutex(const chain *found, DWORD index, const WCHAR *name)
{
    WCHAR path[WCT_OBJNAME_LENGTH] = u"\\BaseNamedObjects\\";
    size_t length = 18;

    while ((path[length++] = *name++) != 0)
        ;
    assert_node(found, index, WctMutexType, WctStatusOwned);
    assert_memory_equal(found->node[index].LockObject.ObjectName, path, length * sizeof(WCHAR));
}

static chain take_outside_until(DWORD thread, DWORD count, BOOL with_cycle)
{
    ULONGLONG end = GetTickCount64() + MINUTE;
    chain found = take_with(WCT_OUT_OF_PROC_FLAG, thread);

    while ((found.count != count || found.cycle != with_cycle) && GetTickCount64() < end) {
        Sleep(1);
        found = take_with(WCT_OUT_OF_PROC_FLAG, thread);
    }
    assert_int_equal(found.count, count);
    assert_int_equal(found.cycle, with_cycle);
    return found;
}

static void into_another_process(void **state)
{
    PROCESS_INFORMATION actor;
    HANDLE pair[2], thread;
    DWORD id;
    chain found;

    (void)state;
    thread = start_pair(pair, "wct-a", "wct-b", &id);
    actor = start_owner("own wct-b wct-ready wct-a");
    assert_true(SetEvent(met[1]));
    found = take_outside_until(id, 4, TRUE);
    assert_thread(&found, 0, id, WctStatusBlocked);
    assert_mutex(&found, 1, u"wct-b");
    assert_foreign(&found, 2, &actor, WctStatusBlocked);
    assert_mutex(&found, 3, u"wct-a");
    found = take_outside_until(actor.dwThreadId, 4, TRUE);
    assert_foreign(&found, 0, &actor, WctStatusBlocked);
    assert_mutex(&found, 1, u"wct-a");
    assert_thread(&found, 2, id, WctStatusBlocked);
    assert_mutex(&found, 3, u"wct-b");
    /* without the flag the first thread of another process is the last one */
    found = take(id);
    assert_int_equal(found.count, 3);
    assert_false(found.cycle);
    assert_foreign(&found, 2, &actor, WctStatusUnknown);
    kill_actor(actor);
    end_pair(thread, pair);
}

static void three_processes(void **state)
{
    PROCESS_INFORMATION actors[2];
    HANDLE pair[2], thread;
    DWORD id;
    chain found;

    (void)state;
    thread = start_pair(pair, "wct-a", "wct-b", &id);
    actors[1] = start_owner("own wct-c wct-ready wct-a");
    actors[0] = start_owner("own wct-b wct-ready wct-c");
    assert_true(SetEvent(met[1]));
    found = take_outside_until(id, 6, TRUE);
    assert_mutex(&found, 1, u"wct-b");
    assert_foreign(&found, 2, &actors[0], WctStatusBlocked);
    assert_mutex(&found, 3, u"wct-c");
    assert_foreign(&found, 4, &actors[1], WctStatusBlocked);
    assert_mutex(&found, 5, u"wct-a");
    kill_actor(actors[0]);
    kill_actor(actors[1]);
    end_pair(thread, pair);
}

/* It waits for a mutex of this process, or for its own event: that is not a deadlock. */
static void not_only_the_mutex(void **state)
{
    PROCESS_INFORMATION actor;
    HANDLE pair[2], thread;
    DWORD id;
    chain found;

    (void)state;
    thread = start_pair(pair, "wct-a", "wct-b", &id);
    actor = start_owner("own wct-b wct-ready wct-a any");
    assert_true(SetEvent(met[1]));
    found = take_outside_until(id, 4, FALSE);
    assert_foreign(&found, 2, &actor, WctStatusBlocked);
    assert_node(&found, 3, WctUnknownType, WctStatusUnknown);
    kill_actor(actor);
    end_pair(thread, pair);
}

int main(int argc, char **argv)
{
    int code = play_role(argc, argv, roles);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters), cmocka_unit_test(running), cmocka_unit_test(section_and_join),
        cmocka_unit_test(abandoned_section), cmocka_unit_test(unknown), cmocka_unit_test(cycle),
        cmocka_unit_test(moving), cmocka_unit_test(into_another_process), cmocka_unit_test(three_processes),
        cmocka_unit_test(not_only_the_mutex),
    };

    if (code >= 0)
        return code;

    return cmocka_run_group_tests(tests, NULL, NULL);
}
