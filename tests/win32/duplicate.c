/* duplicate.c: DuplicateHandle between processes. */
#include "actors.h"

/* Roles. An actor with number N has the named events "go N", its first handle, and "ready N". */

static HANDLE named_event(const char *kind, const char *number)
{
    char name[64];
    HANDLE event;

    snprintf(name, sizeof(name), "%s %s", kind, number);
    event = CreateEventA(NULL, FALSE, FALSE, name);
    REQUIRE(event != NULL);
    return event;
}

/* serve N: has an event of its own. Its exit code is the handle / 4, if that was set, or 97. */
static int serve(int argc, char **argv)
{
    HANDLE go = named_event("go", argv[1]), ready = named_event("ready", argv[1]);
    HANDLE mine = CreateEventA(NULL, TRUE, FALSE, NULL);

    (void)argc;
    REQUIRE((ULONG_PTR)mine / 4 < 90);
    REQUIRE(SetEvent(ready));
    REQUIRE(WaitForSingleObject(go, INFINITE) == WAIT_OBJECT_0);
    return WaitForSingleObject(mine, 0) == WAIT_OBJECT_0 ? (int)((ULONG_PTR)mine / 4) : 97;
}

/* use N HANDLE: when told to, sets the handle. 0, or the error. */
static int use(int argc, char **argv)
{
    HANDLE go = named_event("go", argv[1]), ready = named_event("ready", argv[1]);

    (void)argc;
    REQUIRE(SetEvent(ready));
    REQUIRE(WaitForSingleObject(go, INFINITE) == WAIT_OBJECT_0);
    return SetEvent(handle_of(argv[2])) ? 0 : (int)GetLastError();
}

/* churn N: opens and closes handles of objects without names until the test ends it. */
static int churn(int argc, char **argv)
{
    HANDLE go = named_event("go", argv[1]), ready = named_event("ready", argv[1]);

    (void)argc;
    REQUIRE(SetEvent(ready));
    while (WaitForSingleObject(go, 0) != WAIT_OBJECT_0) {
        HANDLE brief = CreateEventA(NULL, TRUE, FALSE, NULL);
        REQUIRE(brief != NULL && CloseHandle(brief));
    }
    return 0;
}

static const actor_entry roles[] = {{"serve", serve}, {"use", use}, {"churn", churn}, {NULL, NULL}};

/* Cases. */

typedef struct partner {
    PROCESS_INFORMATION process;
    HANDLE go, ready;
} partner;

static partner start_partner(const char *arguments, const char *number)
{
    partner it = {.go = named_event("go", number), .ready = named_event("ready", number)};

    it.process = start_actor(arguments);
    assert_int_equal(WaitForSingleObject(it.ready, LONG_ENOUGH), WAIT_OBJECT_0);
    return it;
}

static DWORD end_partner(partner it)
{
    DWORD code;

    assert_true(SetEvent(it.go));
    code = end_actor(it.process);
    CloseHandle(it.go);
    CloseHandle(it.ready);
    return code;
}

/* The handle of the partner that is neither of its named events. */
static HANDLE own_of(partner it)
{
    for (ULONG_PTR value = 4; value < 400; value += 4) {
        HANDLE copy;

        if (DuplicateHandle(it.process.hProcess, (HANDLE)value, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
            bool named = CompareObjectHandles(copy, it.go) || CompareObjectHandles(copy, it.ready);

            CloseHandle(copy);
            if (!named)
                return (HANDLE)value;
        }
    }
    fail_msg("the partner has no handle of its own");
    return NULL;
}

static void a_handle_is_fetched(void **state)
{
    partner it = start_partner("serve 1", "1");
    HANDLE theirs = own_of(it), copy;

    (void)state;
    assert_true(DuplicateHandle(it.process.hProcess, theirs, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_true(SetEvent(copy));
    assert_int_equal(end_partner(it), (ULONG_PTR)theirs / 4);
    assert_int_equal(WaitForSingleObject(copy, 0), WAIT_OBJECT_0); /* it outlives its process */
    CloseHandle(copy);
}

static void access_is_asked_for(void **state)
{
    partner it = start_partner("serve 1", "1");
    HANDLE theirs = own_of(it), copy;
    DWORD flags;

    (void)state;
    assert_true(DuplicateHandle(it.process.hProcess, theirs, GetCurrentProcess(), &copy, SYNCHRONIZE, TRUE, 0));
    assert_false(SetEvent(copy));
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    assert_true(GetHandleInformation(copy, &flags));
    assert_int_equal(flags, HANDLE_FLAG_INHERIT);
    CloseHandle(copy);
    assert_false(DuplicateHandle(it.process.hProcess, (HANDLE)(ULONG_PTR)0xfff0, GetCurrentProcess(), &copy, 0, FALSE,
                                 DUPLICATE_SAME_ACCESS));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_int_equal(end_partner(it), 97);
}

static DWORD WINAPI wait_for(LPVOID event)
{
    return WaitForSingleObject(event, INFINITE);
}

/* A local event with a waiter becomes shared, and the other process wakes the waiter. */
static void a_handle_is_sent(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL), theirs;
    HANDLE thread = CreateThread(NULL, 0, wait_for, event, 0, NULL);
    partner it = start_partner("use 2 c", "2"); /* the next handle that it gets */
    DWORD code;

    (void)state;
    assert_true(DuplicateHandle(GetCurrentProcess(), event, it.process.hProcess, &theirs, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_ptr_equal(theirs, (HANDLE)(ULONG_PTR)0xc);
    assert_int_equal(end_partner(it), 0);
    assert_int_equal(WaitForSingleObject(thread, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(GetExitCodeThread(thread, &code));
    assert_int_equal(code, WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    CloseHandle(thread);
    CloseHandle(event);
}

static void the_state_goes_along(void **state)
{
    HANDLE semaphore = CreateSemaphoreA(NULL, 3, 5, NULL), mutex = CreateMutexA(NULL, TRUE, NULL), copy;
    partner it = start_partner("serve 1", "1");
    HANDLE here = GetCurrentProcess(), theirs[2];

    (void)state;
    assert_true(DuplicateHandle(here, semaphore, it.process.hProcess, &theirs[0], 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_true(DuplicateHandle(here, mutex, it.process.hProcess, &theirs[1], 0, FALSE, DUPLICATE_SAME_ACCESS));
    for (int i = 0; i < 3; i++)
        assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_TIMEOUT);
    assert_true(ReleaseSemaphore(semaphore, 5, NULL));
    assert_false(ReleaseSemaphore(semaphore, 1, NULL));
    assert_true(ReleaseMutex(mutex)); /* this thread still owns it */
    assert_false(ReleaseMutex(mutex));
    /* back again: the same object, and so the same proxy */
    assert_true(DuplicateHandle(it.process.hProcess, theirs[0], here, &copy, 0, FALSE,
                                DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE));
    assert_true(CompareObjectHandles(copy, semaphore));
    CloseHandle(copy);
    assert_false(DuplicateHandle(it.process.hProcess, theirs[0], here, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_int_equal(end_partner(it), 97);
    CloseHandle(semaphore);
    CloseHandle(mutex);
}

static void between_two_others(void **state)
{
    partner from = start_partner("serve 1", "1"), to = start_partner("use 2 c", "2");
    HANDLE theirs = own_of(from), received;

    (void)state;
    assert_true(DuplicateHandle(from.process.hProcess, theirs, to.process.hProcess, &received, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_ptr_equal(received, (HANDLE)(ULONG_PTR)0xc);
    assert_int_equal(end_partner(to), 0);
    assert_int_equal(end_partner(from), (ULONG_PTR)theirs / 4);
}

static void a_source_is_closed_without_a_target(void **state)
{
    partner it = start_partner("use 2 4", "2");
    HANDLE ready = (HANDLE)(ULONG_PTR)8, copy;

    (void)state;
    assert_true(DuplicateHandle(it.process.hProcess, ready, NULL, NULL, 0, FALSE, DUPLICATE_CLOSE_SOURCE));
    assert_false(DuplicateHandle(it.process.hProcess, ready, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_int_equal(end_partner(it), 0);
}

static void processes_are_duplicated(void **state)
{
    partner it = start_partner("serve 1", "1");
    HANDLE here = GetCurrentProcess(), theirs, copy;

    (void)state;
    assert_true(DuplicateHandle(here, here, it.process.hProcess, &theirs, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_true(DuplicateHandle(it.process.hProcess, theirs, here, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_int_equal(GetProcessId(copy), GetCurrentProcessId());
    CloseHandle(copy);
    assert_int_equal(end_partner(it), 97);
}

static DWORD error_of_sending(HANDLE handle, HANDLE process)
{
    HANDLE theirs;

    return DuplicateHandle(GetCurrentProcess(), handle, process, &theirs, 0, FALSE, DUPLICATE_SAME_ACCESS) ? 0 : GetLastError();
}

static void what_cannot_be_duplicated(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL), port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION other;
    char sleeper[] = "sleep 1000";

    (void)state;
    assert_true(CreateProcessA(NULL, sleeper, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &other));
    assert_int_equal(error_of_sending(event, other.hProcess), ERROR_NOT_SUPPORTED);
    assert_true(TerminateProcess(other.hProcess, 1));
    assert_int_equal(WaitForSingleObject(other.hProcess, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(error_of_sending(event, other.hProcess), ERROR_ACCESS_DENIED);
    end_actor(other);
    partner it = start_partner("serve 1", "1");
    assert_int_equal(error_of_sending(port, it.process.hProcess), ERROR_NOT_SUPPORTED);
    HANDLE weak = OpenProcess(SYNCHRONIZE, FALSE, it.process.dwProcessId);
    assert_int_equal(error_of_sending(event, weak), ERROR_ACCESS_DENIED);
    CloseHandle(weak);
    assert_int_equal(end_partner(it), 97);
    CloseHandle(port);
    CloseHandle(event);
}

/* A handle that its process closes meanwhile: it is duplicated, or it is invalid. */
static void a_handle_is_closed_while_it_is_fetched(void **state)
{
    partner p = start_partner("churn 9", "9");
    unsigned fetched = 0;

    (void)state;
    for (unsigned long round = 0; round < test_rounds(3000); round++) {
        HANDLE brief;

        if (DuplicateHandle(p.process.hProcess, (HANDLE)(ULONG_PTR)(4 * (1 + round % 8)), GetCurrentProcess(), &brief, 0, FALSE,
                            DUPLICATE_SAME_ACCESS)) {
            fetched++;
            assert_true(CloseHandle(brief));
        } else {
            assert_true(GetLastError() == ERROR_INVALID_HANDLE || GetLastError() == ERROR_NOT_SUPPORTED);
        }
    }
    assert_true(fetched > 0);
    assert_int_equal(end_partner(p), 0); /* the world is in order */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_is_fetched),
        cmocka_unit_test(access_is_asked_for),
        cmocka_unit_test(a_handle_is_sent),
        cmocka_unit_test(the_state_goes_along),
        cmocka_unit_test(between_two_others),
        cmocka_unit_test(a_source_is_closed_without_a_target),
        cmocka_unit_test(processes_are_duplicated),
        cmocka_unit_test(what_cannot_be_duplicated),
        cmocka_unit_test(a_handle_is_closed_while_it_is_fetched),
    };
    int code = play_role(argc, argv, roles);

    return code >= 0 ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
