/* shared.c: names that processes share, and what happens to objects when processes end. */
#include "actors.h"

/* Roles. */

/* open NAME: opens an event and sets it. */
static int open_and_set(int argc, char **argv)
{
    HANDLE event = OpenEventA(EVENT_MODIFY_STATE, FALSE, argv[1]);

    (void)argc;
    if (event == NULL)
        return GetLastError() == ERROR_FILE_NOT_FOUND ? 2 : 3;
    return SetEvent(event) ? 0 : 4;
}

/* create NAME: 0: it is new, 1: it existed, otherwise the error. */
static int create_event(int argc, char **argv)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, argv[1]);

    (void)argc;
    if (event == NULL)
        return (int)GetLastError();
    return GetLastError() == ERROR_ALREADY_EXISTS;
}

/* hold READY NAME...: opens or creates events, says that it is ready, and waits forever. */
static int hold(int argc, char **argv)
{
    HANDLE ready = OpenEventA(EVENT_MODIFY_STATE, FALSE, argv[1]);

    REQUIRE(ready != NULL);
    for (int i = 2; i < argc; i++)
        REQUIRE(CreateEventA(NULL, TRUE, FALSE, argv[i]) != NULL);
    REQUIRE(SetEvent(ready));
    Sleep(INFINITE);
    return 0;
}

/* own READY MUTEX...: acquires mutexes and waits forever. */
static int own(int argc, char **argv)
{
    HANDLE ready = OpenEventA(EVENT_MODIFY_STATE, FALSE, argv[1]);

    REQUIRE(ready != NULL);
    for (int i = 2; i < argc; i++) {
        HANDLE mutex = CreateMutexA(NULL, FALSE, argv[i]);

        REQUIRE(mutex != NULL);
        REQUIRE(WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0);
    }
    REQUIRE(SetEvent(ready));
    Sleep(INFINITE);
    return 0;
}

/* initially NAME: creates a mutex that it owns, and ends. */
static int own_from_the_start(int argc, char **argv)
{
    HANDLE mutex = CreateMutexA(NULL, TRUE, argv[1]);

    (void)argc;
    return mutex != NULL && GetLastError() != ERROR_ALREADY_EXISTS ? 0 : 1;
}

/* release NAME COUNT */
static int release(int argc, char **argv)
{
    HANDLE semaphore = OpenSemaphoreA(SEMAPHORE_MODIFY_STATE, FALSE, argv[1]);

    (void)argc;
    REQUIRE(semaphore != NULL);
    REQUIRE(ReleaseSemaphore(semaphore, atoi(argv[2]), NULL));
    return 0;
}

/* timer NAME: sets it to expire at once. */
static int set_timer(int argc, char **argv)
{
    HANDLE timer = OpenWaitableTimerA(TIMER_MODIFY_STATE, FALSE, argv[1]);
    LARGE_INTEGER due = {.QuadPart = -1};

    (void)argc;
    REQUIRE(timer != NULL);
    REQUIRE(SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE));
    return 0;
}

static UNICODE_STRING text(PCWSTR characters)
{
    UNICODE_STRING string;

    RtlInitUnicodeString(&string, characters);
    return string;
}

static HANDLE keyed_event(void)
{
    UNICODE_STRING name = text(u"\\BaseNamedObjects\\keyed");
    OBJECT_ATTRIBUTES attributes;
    HANDLE keyed;

    InitializeObjectAttributes(&attributes, &name, OBJ_OPENIF, NULL, NULL);
    REQUIRE(NT_SUCCESS(NtCreateKeyedEvent(&keyed, KEYEDEVENT_ALL_ACCESS, &attributes, 0)));
    return keyed;
}

/* meet: waits at a key. */
static int meet(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return NtWaitForKeyedEvent(keyed_event(), (PVOID)(ULONG_PTR)0x1000, FALSE, NULL) == STATUS_SUCCESS ? 0 : 1;
}

/* session NAME: the event is not in this session. */
static int in_session(int argc, char **argv)
{
    (void)argc;
    return OpenEventA(SYNCHRONIZE, FALSE, argv[1]) == NULL && GetLastError() == ERROR_FILE_NOT_FOUND ? 0 : 1;
}

static const actor_entry roles[] = {
    {"open", open_and_set}, {"create", create_event}, {"hold", hold},          {"own", own},   {"initially", own_from_the_start},
    {"release", release},   {"timer", set_timer},     {"session", in_session}, {"meet", meet}, {NULL, NULL},
};

/* Cases. */

static void an_event_is_one_in_all_processes(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "shared event");

    (void)state;
    assert_non_null(event);
    assert_int_equal(GetLastError(), ERROR_SUCCESS);
    assert_int_equal(end_actor(start_actor("create \"shared event\"")), 1);
    PROCESS_INFORMATION setter = start_actor("open \"Local\\shared event\"");
    assert_int_equal(WaitForSingleObject(event, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(end_actor(setter), 0);
    assert_true(CloseHandle(event));
    await_end_of_event("shared event");
    assert_int_equal(end_actor(start_actor("open \"shared event\"")), 2);
    assert_int_equal(end_actor(start_actor("create \"shared event\"")), 0);
}

static void a_name_has_one_type(void **state)
{
    UNICODE_STRING path = text(u"\\BaseNamedObjects\\a port"), taken = text(u"\\BaseNamedObjects\\a type");
    HANDLE semaphore = CreateSemaphoreA(NULL, 0, 1, "a type");
    OBJECT_ATTRIBUTES attributes;
    HANDLE port;

    (void)state;
    assert_int_equal(end_actor(start_actor("create \"a type\"")), ERROR_INVALID_HANDLE);
    /* a port is local to its process, and other processes can use its name */
    InitializeObjectAttributes(&attributes, &path, OBJ_OPENIF, NULL, NULL);
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, &attributes, 0), STATUS_SUCCESS);
    assert_null(CreateEventA(NULL, TRUE, FALSE, "a port"));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_int_equal(end_actor(start_actor("create \"a port\"")), 0);
    CloseHandle(port);
    InitializeObjectAttributes(&attributes, &taken, OBJ_OPENIF, NULL, NULL);
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, &attributes, 0), STATUS_OBJECT_TYPE_MISMATCH);
    CloseHandle(semaphore);
}

static void a_name_goes_with_the_last_handle_of_any_process(void **state)
{
    HANDLE ready = CreateEventA(NULL, FALSE, FALSE, "ready");
    HANDLE event = CreateEventA(NULL, TRUE, TRUE, "kept");
    PROCESS_INFORMATION holder = start_actor("hold ready kept");

    (void)state;
    assert_int_equal(WaitForSingleObject(ready, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(CloseHandle(event));
    event = OpenEventA(SYNCHRONIZE, FALSE, "kept");
    assert_non_null(event);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0); /* it is still the same one */
    assert_true(CloseHandle(event));
    kill_actor(holder);
    await_end_of_event("kept");
    CloseHandle(ready);
}

static void the_mutexes_of_a_killed_process_are_abandoned(void **state)
{
    HANDLE ready = CreateEventA(NULL, FALSE, FALSE, "ready");
    HANDLE mutexes[2] = {CreateMutexA(NULL, FALSE, "one"), CreateMutexA(NULL, FALSE, "two")};
    PROCESS_INFORMATION owner = start_actor("own ready one two");

    (void)state;
    assert_int_equal(WaitForSingleObject(ready, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(mutexes[0], 0), WAIT_TIMEOUT);
    assert_int_equal(kill((pid_t)owner.dwProcessId, SIGKILL), 0);
    assert_int_equal(WaitForMultipleObjects(2, mutexes, TRUE, (DWORD)LONG_ENOUGH), WAIT_ABANDONED_0);
    end_actor(owner);
    for (int i = 0; i < 2; i++) {
        assert_true(ReleaseMutex(mutexes[i]));
        assert_int_equal(WaitForSingleObject(mutexes[i], 0), WAIT_OBJECT_0); /* abandonment is reported once */
        assert_true(ReleaseMutex(mutexes[i]));
        CloseHandle(mutexes[i]);
    }
    CloseHandle(ready);
}

static void the_creator_of_a_mutex_may_own_it_from_the_start(void **state)
{
    HANDLE mutex = CreateMutexA(NULL, TRUE, "initial");

    (void)state;
    assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0); /* once more */
    assert_true(ReleaseMutex(mutex));
    assert_true(ReleaseMutex(mutex));
    assert_false(ReleaseMutex(mutex));
    assert_int_equal(GetLastError(), ERROR_NOT_OWNER);
    assert_int_equal(end_actor(start_actor("initially other")), 0);
    CloseHandle(mutex);
}

static void semaphores_count_over_processes(void **state)
{
    HANDLE semaphore = CreateSemaphoreA(NULL, 0, 10, "count");
    LONG previous;

    (void)state;
    assert_int_equal(end_actor(start_actor("release count 3")), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_TIMEOUT);
    assert_false(ReleaseSemaphore(semaphore, 11, NULL));
    assert_int_equal(GetLastError(), ERROR_TOO_MANY_POSTS);
    assert_true(ReleaseSemaphore(semaphore, 10, &previous));
    assert_int_equal(previous, 0);
    CloseHandle(semaphore);
}

static void a_timer_expires_in_all_processes(void **state)
{
    HANDLE timer = CreateWaitableTimerA(NULL, TRUE, "timer");
    PROCESS_INFORMATION setter = start_actor("timer timer");

    (void)state;
    assert_int_equal(WaitForSingleObject(timer, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(end_actor(setter), 0);
    CloseHandle(timer);
}

static VOID CALLBACK count_apc(LPVOID argument, DWORD low, DWORD high)
{
    (void)low;
    (void)high;
    *(int *)argument += 1;
}

static void the_apc_of_a_shared_timer_runs_in_the_process_that_set_it(void **state)
{
    HANDLE timer = CreateWaitableTimerA(NULL, FALSE, "apc timer");
    LARGE_INTEGER due = {.QuadPart = -10000};
    int count = 0;

    (void)state;
    assert_true(SetWaitableTimer(timer, &due, 0, count_apc, &count, FALSE));
    assert_int_equal(SleepEx((DWORD)LONG_ENOUGH, TRUE), WAIT_IO_COMPLETION);
    assert_int_equal(count, 1);
    assert_int_equal(WaitForSingleObject(timer, LONG_ENOUGH), WAIT_OBJECT_0);
    due.QuadPart = -600000000;
    assert_true(SetWaitableTimer(timer, &due, 0, count_apc, &count, FALSE));
    assert_int_equal(end_actor(start_actor("timer \"apc timer\"")), 0); /* sets it again, without an APC */
    assert_int_equal(WaitForSingleObject(timer, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(SleepEx(0, TRUE), 0);
    assert_int_equal(count, 1);
    CloseHandle(timer);
}

static void processes_meet_at_a_key(void **state)
{
    HANDLE keyed = keyed_event();
    PROCESS_INFORMATION other = start_actor("meet");

    (void)state;
    assert_int_equal(NtReleaseKeyedEvent(keyed, (PVOID)(ULONG_PTR)0x1000, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(end_actor(other), 0);
    LARGE_INTEGER at_once = {.QuadPart = 0};
    assert_int_equal(NtReleaseKeyedEvent(keyed, (PVOID)(ULONG_PTR)0x1000, FALSE, &at_once), STATUS_TIMEOUT);
    CloseHandle(keyed);
}

/* Directories and links. */

static void directories_and_links_are_shared(void **state)
{
    UNICODE_STRING names[] = {text(u"\\BaseNamedObjects\\dir"), text(u"\\BaseNamedObjects\\link"),
                              text(u"\\BaseNamedObjects\\dir\\inner")};
    UNICODE_STRING target = text(u"\\BaseNamedObjects\\dir");
    OBJECT_ATTRIBUTES attributes;
    HANDLE directory, link, event;

    (void)state;
    InitializeObjectAttributes(&attributes, &names[0], 0, NULL, NULL);
    assert_int_equal(NtCreateDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    InitializeObjectAttributes(&attributes, &names[1], 0, NULL, NULL);
    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, &attributes, &target), STATUS_SUCCESS);
    InitializeObjectAttributes(&attributes, &names[2], 0, NULL, NULL);
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, &attributes, SynchronizationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(end_actor(start_actor("open dir\\inner")), 0);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    assert_int_equal(end_actor(start_actor("open link\\inner")), 0);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    assert_int_equal(end_actor(start_actor("open dir\\nothing")), 2);
    assert_int_equal(end_actor(start_actor("create link\\dir\\x")), ERROR_PATH_NOT_FOUND);
    CloseHandle(event);
    await_end_of_event("dir\\inner");
    CloseHandle(directory);
    CloseHandle(link);
    assert_int_equal(end_actor(start_actor("create dir\\x")), ERROR_PATH_NOT_FOUND);
}

static bool lists(HANDLE directory, const char *name)
{
    char buffer[512] DECLSPEC_ALIGN(8);
    ULONG context = 0;

    while (NT_SUCCESS(NtQueryDirectoryObject(directory, buffer, sizeof(buffer), TRUE, FALSE, &context, NULL))) {
        POBJECT_DIRECTORY_INFORMATION entry = (PVOID)buffer;
        size_t length = entry->Name.Length / sizeof(WCHAR), i = 0;

        while (i < length && entry->Name.Buffer[i] == (WCHAR)(UCHAR)name[i])
            i++;
        if (i == length && name[i] == '\0')
            return true;
    }
    return false;
}

static void a_directory_lists_what_other_processes_created(void **state)
{
    UNICODE_STRING root = text(u"\\BaseNamedObjects");
    HANDLE ready = CreateEventA(NULL, FALSE, FALSE, "ready"), directory;
    PROCESS_INFORMATION holder = start_actor("hold ready elsewhere");
    OBJECT_ATTRIBUTES attributes;

    (void)state;
    assert_int_equal(WaitForSingleObject(ready, LONG_ENOUGH), WAIT_OBJECT_0);
    InitializeObjectAttributes(&attributes, &root, 0, NULL, NULL);
    assert_int_equal(NtOpenDirectoryObject(&directory, DIRECTORY_QUERY, &attributes), STATUS_SUCCESS);
    assert_true(lists(directory, "elsewhere"));
    assert_true(lists(directory, "ready"));
    assert_true(lists(directory, "Local"));
    kill_actor(holder);
    await_end_of_event("elsewhere");
    assert_false(lists(directory, "elsewhere"));
    CloseHandle(directory);
    CloseHandle(ready);
}

static void handles_are_counted_over_processes(void **state)
{
    HANDLE ready = CreateEventA(NULL, FALSE, FALSE, "ready");
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "counted"), again;
    char buffer[256] DECLSPEC_ALIGN(8);
    POBJECT_NAME_INFORMATION name = (PVOID)buffer;

    (void)state;
    assert_int_equal(handles_of(event), 1);
    PROCESS_INFORMATION holder = start_actor("hold ready counted counted");
    assert_int_equal(WaitForSingleObject(ready, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(handles_of(event), 3);
    assert_true(DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &again, 0, FALSE, DUPLICATE_SAME_ACCESS));
    assert_int_equal(handles_of(event), 4);
    assert_true(CompareObjectHandles(event, again));
    assert_true(CloseHandle(again));
    assert_int_equal(handles_of(event), 3);
    assert_int_equal(NtQueryObject(event, ObjectNameInformation, buffer, sizeof(buffer), NULL), STATUS_SUCCESS);
    UNICODE_STRING expected = text(u"\\BaseNamedObjects\\counted");
    assert_true(RtlEqualUnicodeString(&name->Name, &expected, FALSE));
    kill_actor(holder);
    await_one_handle(event);
    CloseHandle(event);
    CloseHandle(ready);
}

static void permanent_objects_outlive_their_handles(void **state)
{
    UNICODE_STRING name = text(u"\\BaseNamedObjects\\permanent");
    OBJECT_ATTRIBUTES attributes;
    HANDLE event;

    (void)state;
    InitializeObjectAttributes(&attributes, &name, OBJ_PERMANENT, NULL, NULL);
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, &attributes, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_true(CloseHandle(event));
    assert_int_equal(end_actor(start_actor("open permanent")), 0);
    InitializeObjectAttributes(&attributes, &name, 0, NULL, NULL);
    assert_int_equal(NtOpenEvent(&event, EVENT_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    assert_int_equal(NtMakeTemporaryObject(event), STATUS_SUCCESS);
    assert_true(CloseHandle(event));
    await_end_of_event("permanent");
}

static void an_exclusive_object_belongs_to_its_process(void **state)
{
    UNICODE_STRING name = text(u"\\BaseNamedObjects\\exclusive");
    OBJECT_ATTRIBUTES attributes;
    HANDLE event, again;

    (void)state;
    InitializeObjectAttributes(&attributes, &name, OBJ_EXCLUSIVE, NULL, NULL);
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, &attributes, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtOpenEvent(&again, EVENT_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    assert_int_equal(end_actor(start_actor("create exclusive")), ERROR_ACCESS_DENIED);
    CloseHandle(again);
    CloseHandle(event);
}

static void access_is_that_of_the_handle(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "rights");
    HANDLE weak = OpenEventA(SYNCHRONIZE, FALSE, "rights");

    (void)state;
    assert_false(SetEvent(weak));
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    assert_true(SetEvent(event));
    assert_int_equal(WaitForSingleObject(weak, 0), WAIT_OBJECT_0);
    CloseHandle(weak);
    CloseHandle(event);
}

/* After 0x8000 lookups the object of a handle is borrowed, not referenced (src/ob/obp.h): nothing else changes. */
static void handles_that_are_used_often(void **state)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, "often");
    HANDLE semaphore = CreateSemaphoreA(NULL, 0, 2, "often counted");
    HANDLE mutex = CreateMutexA(NULL, FALSE, "often owned");
    LONG previous = -1;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 0x8001; i++) {
            assert_int_equal(NtSetEvent(event, &previous), STATUS_SUCCESS);
            assert_int_equal(previous, 0);
            assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
            assert_true(ReleaseSemaphore(semaphore, 1, &previous));
            assert_int_equal(previous, 0);
            assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_OBJECT_0);
            assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
            assert_true(ReleaseMutex(mutex));
        }
        assert_int_equal(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
        assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_TIMEOUT);
        assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
        assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
        assert_true(ReleaseMutex(mutex));
        assert_true(ReleaseMutex(mutex));
        assert_false(ReleaseMutex(mutex));
        PROCESS_INFORMATION setter = start_actor("open often");
        assert_int_equal(WaitForSingleObject(event, LONG_ENOUGH), WAIT_OBJECT_0);
        assert_int_equal(end_actor(setter), 0);
        assert_true(SetEvent(event));
        assert_int_equal(NtSetEvent(event, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 1);
        assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    }
    assert_true(CloseHandle(event));
    assert_int_equal(NtSetEvent(event, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_FAILED);
    assert_true(CloseHandle(semaphore));
    assert_true(CloseHandle(mutex));
    await_end_of_event("often");
}

static void sessions_do_not_see_each_other(void **state)
{
    const char *before = getenv("INTERLOCK_SESSION");
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "of this session");
    char kept[256];

    (void)state;
    snprintf(kept, sizeof(kept), "%s", before != NULL ? before : "");
    setenv("INTERLOCK_SESSION", "private", 1);
    PROCESS_INFORMATION alone = start_actor("session \"of this session\"");
    setenv("INTERLOCK_SESSION", "another session of the tests", 1);
    PROCESS_INFORMATION other = start_actor("session \"of this session\"");
    if (before != NULL)
        setenv("INTERLOCK_SESSION", kept, 1);
    else
        unsetenv("INTERLOCK_SESSION");
    assert_int_equal(end_actor(alone), 0);
    assert_int_equal(end_actor(other), 0);
    CloseHandle(event);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_one_in_all_processes),
        cmocka_unit_test(a_name_has_one_type),
        cmocka_unit_test(a_name_goes_with_the_last_handle_of_any_process),
        cmocka_unit_test(the_mutexes_of_a_killed_process_are_abandoned),
        cmocka_unit_test(the_creator_of_a_mutex_may_own_it_from_the_start),
        cmocka_unit_test(semaphores_count_over_processes),
        cmocka_unit_test(a_timer_expires_in_all_processes),
        cmocka_unit_test(the_apc_of_a_shared_timer_runs_in_the_process_that_set_it),
        cmocka_unit_test(processes_meet_at_a_key),
        cmocka_unit_test(directories_and_links_are_shared),
        cmocka_unit_test(a_directory_lists_what_other_processes_created),
        cmocka_unit_test(handles_are_counted_over_processes),
        cmocka_unit_test(permanent_objects_outlive_their_handles),
        cmocka_unit_test(an_exclusive_object_belongs_to_its_process),
        cmocka_unit_test(access_is_that_of_the_handle),
        cmocka_unit_test(handles_that_are_used_often),
        cmocka_unit_test(sessions_do_not_see_each_other),
    };
    int code = play_role(argc, argv, roles);

    return code >= 0 ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
