/* inherit.c: handles that child processes inherit, and forks. */
#include "actors.h"

#include <sys/wait.h>

#define MANY 2000

/* Roles. */

/* set HANDLE: 0, or the error. */
static int set(int argc, char **argv)
{
    (void)argc;
    return SetEvent(handle_of(argv[1])) ? 0 : (int)GetLastError();
}

/* many HANDLE...: each is set. */
static int set_many(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!SetEvent(handle_of(argv[i])))
            return 1;
    return argc - 1 == MANY ? 0 : 2;
}

/* next with|without HANDLE: the exit code of a grandchild that was created with or without inheritance. */
static int next(int argc, char **argv)
{
    char line[64];

    (void)argc;
    snprintf(line, sizeof(line), "set %s", argv[2]);
    return (int)end_actor(strcmp(argv[1], "with") == 0 ? start_heir(line) : start_actor(line));
}

/* shell HANDLE: the exit code of a grandchild that a shell starts with this process's environment. */
static int through_a_shell(int argc, char **argv)
{
    char line[1024], self[600];

    (void)argc;
    actor_line(self, sizeof(self), "set");
    snprintf(line, sizeof(line), "%s %s", self, argv[1]);
    return WEXITSTATUS(system(line));
}

/* wait PROCESS READY: sets READY once it has its handles. */
static int wait_for_process(int argc, char **argv)
{
    (void)argc;
    REQUIRE(SetEvent(handle_of(argv[2])));
    return WaitForSingleObject(handle_of(argv[1]), INFINITE) == WAIT_OBJECT_0 ? 0 : (int)GetLastError();
}

/* new HANDLE: new handles are others. */
static int new_handles_are_others(int argc, char **argv)
{
    HANDLE inherited = handle_of(argv[1]);

    (void)argc;
    for (int i = 0; i < 1000; i++) {
        HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);

        REQUIRE(event != NULL && event != inherited);
    }
    return SetEvent(inherited) ? 0 : 1;
}

/* hang HANDLE: sets it, and holds it until it is killed. */
static int hang(int argc, char **argv)
{
    if (argc > 1)
        REQUIRE(SetEvent(handle_of(argv[1])));
    Sleep(INFINITE);
    return 0;
}

static const actor_entry roles[] = {
    {"set", set}, {"many", set_many}, {"next", next}, {"shell", through_a_shell}, {"wait", wait_for_process},
    {"new", new_handles_are_others}, {"hang", hang}, {NULL, NULL},
};

/* Cases. */

static SECURITY_ATTRIBUTES inheritable = {.nLength = sizeof(inheritable), .bInheritHandle = TRUE};

static const char *line_with(const char *role, HANDLE handle)
{
    static char line[128];

    snprintf(line, sizeof(line), "%s %llx", role, (unsigned long long)(ULONG_PTR)handle);
    return line;
}

static void an_unnamed_event_is_inherited(void **state)
{
    HANDLE event = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    PROCESS_INFORMATION child = start_heir(line_with("set", event));

    (void)state;
    assert_int_equal(WaitForSingleObject(event, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(end_actor(child), 0);
    CloseHandle(event);
}

static void only_marked_handles_are_inherited(void **state)
{
    HANDLE plain = CreateEventA(NULL, TRUE, FALSE, NULL);
    HANDLE marked = CreateEventA(&inheritable, TRUE, FALSE, NULL);

    (void)state;
    assert_int_equal(end_actor(start_heir(line_with("set", plain))), ERROR_INVALID_HANDLE);
    assert_int_equal(end_actor(start_actor(line_with("set", marked))), ERROR_INVALID_HANDLE);
    assert_true(SetHandleInformation(plain, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT));
    assert_true(SetHandleInformation(marked, HANDLE_FLAG_INHERIT, 0));
    assert_int_equal(end_actor(start_heir(line_with("set", plain))), 0);
    assert_int_equal(end_actor(start_heir(line_with("set", marked))), ERROR_INVALID_HANDLE);
    assert_int_equal(WaitForSingleObject(plain, 0), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(marked, 0), WAIT_TIMEOUT);
    CloseHandle(plain);
    CloseHandle(marked);
}

static void names_and_rights_go_along(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "inherited by name");
    HANDLE weak = OpenEventA(SYNCHRONIZE, TRUE, "inherited by name");

    (void)state;
    assert_int_equal(end_actor(start_heir(line_with("set", weak))), ERROR_ACCESS_DENIED);
    assert_true(SetHandleInformation(event, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT));
    assert_int_equal(end_actor(start_heir(line_with("set", event))), 0);
    CloseHandle(weak);
    CloseHandle(event);
}

static LPPROC_THREAD_ATTRIBUTE_LIST new_list(DWORD count)
{
    LPPROC_THREAD_ATTRIBUTE_LIST list;
    SIZE_T size = 0;

    assert_false(InitializeProcThreadAttributeList(NULL, count, 0, &size));
    assert_int_equal(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    list = malloc(size);
    assert_true(InitializeProcThreadAttributeList(list, count, 0, &size));
    return list;
}

static void a_list_selects_handles(void **state)
{
    HANDLE events[2] = {CreateEventA(&inheritable, TRUE, FALSE, NULL), CreateEventA(&inheritable, TRUE, FALSE, NULL)};
    STARTUPINFOEXA extended = {.StartupInfo.cb = sizeof(extended), .lpAttributeList = new_list(1)};
    actor_options options = {.inherit = TRUE, .flags = EXTENDED_STARTUPINFO_PRESENT, .extended = &extended};

    (void)state;
    assert_true(UpdateProcThreadAttribute(extended.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, events,
                                          sizeof(HANDLE), NULL, NULL));
    assert_int_equal(end_actor(start_actor_with(line_with("set", events[0]), options)), 0);
    assert_int_equal(end_actor(start_actor_with(line_with("set", events[1]), options)), ERROR_INVALID_HANDLE);
    DeleteProcThreadAttributeList(extended.lpAttributeList);
    free(extended.lpAttributeList);
    CloseHandle(events[0]);
    CloseHandle(events[1]);
}

static DWORD error_of_list(const HANDLE *handles, SIZE_T count, BOOL inherit)
{
    STARTUPINFOEXA extended = {.StartupInfo.cb = sizeof(extended), .lpAttributeList = new_list(1)};
    PROCESS_INFORMATION child;
    char line[] = "true";
    BOOL created;

    assert_true(UpdateProcThreadAttribute(extended.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, (PVOID)handles,
                                          count * sizeof(HANDLE), NULL, NULL));
    created = CreateProcessA(NULL, line, NULL, NULL, inherit, EXTENDED_STARTUPINFO_PRESENT, NULL, NULL,
                             &extended.StartupInfo, &child);
    free(extended.lpAttributeList);
    if (created)
        end_actor(child);
    return created ? 0 : GetLastError();
}

static void bad_lists_are_refused(void **state)
{
    HANDLE plain = CreateEventA(NULL, TRUE, FALSE, NULL), marked = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    HANDLE twice[2] = {marked, marked}, bad = (HANDLE)(ULONG_PTR)0xfffffc;
    LPPROC_THREAD_ATTRIBUTE_LIST list = new_list(2), full = new_list(0);
    STARTUPINFOEXA extended = {.StartupInfo.cb = sizeof(STARTUPINFOA), .lpAttributeList = list};
    PROCESS_INFORMATION child;
    char line[] = "true";
    SIZE_T size = 1;

    (void)state;
    assert_int_equal(error_of_list(&marked, 1, TRUE), 0);
    assert_int_equal(error_of_list(&marked, 1, FALSE), ERROR_INVALID_PARAMETER);
    assert_int_equal(error_of_list(&plain, 1, TRUE), ERROR_INVALID_PARAMETER);
    assert_int_equal(error_of_list(&bad, 1, TRUE), ERROR_INVALID_PARAMETER);
    assert_int_equal(error_of_list(twice, 2, TRUE), ERROR_INVALID_PARAMETER);
    assert_false(CreateProcessA(NULL, line, NULL, NULL, TRUE, EXTENDED_STARTUPINFO_PRESENT, NULL, NULL,
                                &extended.StartupInfo, &child));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(InitializeProcThreadAttributeList(list, 1, 0, &size));
    assert_int_equal(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    assert_false(InitializeProcThreadAttributeList(NULL, 1, 1, &size));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(UpdateProcThreadAttribute(list, 0, 0xabcd, &marked, sizeof(marked), NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    assert_false(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &marked, 3, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_BAD_LENGTH);
    assert_false(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &marked, 0, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_BAD_LENGTH);
    assert_true(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &marked, sizeof(marked), NULL, NULL));
    assert_false(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &marked, sizeof(marked), NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_OBJECT_NAME_EXISTS);
    assert_false(UpdateProcThreadAttribute(full, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &marked, sizeof(marked), NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_GEN_FAILURE);
    free(full);
    free(list);
    CloseHandle(plain);
    CloseHandle(marked);
}

static void grandchildren_inherit_from_their_parents_only(void **state)
{
    HANDLE event = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    char line[64];

    (void)state;
    snprintf(line, sizeof(line), "next without %llx", (unsigned long long)(ULONG_PTR)event);
    assert_int_equal(end_actor(start_heir(line)), ERROR_INVALID_HANDLE);
    snprintf(line, sizeof(line), "next with %llx", (unsigned long long)(ULONG_PTR)event);
    assert_int_equal(end_actor(start_heir(line)), 0);
    assert_int_equal(end_actor(start_heir(line_with("shell", event))), ERROR_INVALID_HANDLE);
    CloseHandle(event);
}

static void two_thousand_handles(void **state)
{
    static HANDLE events[MANY];
    static char line[MANY * 12 + 16];
    size_t length = (size_t)sprintf(line, "many");

    (void)state;
    for (int i = 0; i < MANY; i++) {
        events[i] = CreateEventA(&inheritable, TRUE, FALSE, NULL);
        assert_non_null(events[i]);
        length += (size_t)sprintf(line + length, " %llx", (unsigned long long)(ULONG_PTR)events[i]);
    }
    assert_int_equal(end_actor(start_heir(line)), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(WaitForSingleObject(events[i], 0), WAIT_OBJECT_0);
        CloseHandle(events[i]);
    }
}

static void values_of_inherited_handles_are_taken(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);

    (void)state;
    for (int i = 0; i < 300; i++) {
        CloseHandle(event);
        event = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    }
    assert_int_equal(end_actor(start_heir(line_with("new", event))), 0);
    CloseHandle(event);
}

static void processes_are_inherited(void **state)
{
    PROCESS_INFORMATION other = start_actor("hang"), waiter;
    HANDLE marked, ready = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    char line[128];

    (void)state;
    assert_true(DuplicateHandle(GetCurrentProcess(), other.hProcess, GetCurrentProcess(), &marked, 0, TRUE,
                                DUPLICATE_SAME_ACCESS));
    snprintf(line, sizeof(line), "%s %llx", line_with("wait", marked), (unsigned long long)(ULONG_PTR)ready);
    waiter = start_heir(line);
    /* A process that ends before the heir starts is not inherited. */
    assert_int_equal(WaitForSingleObject(ready, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(waiter.hProcess, 50), WAIT_TIMEOUT);
    kill_actor(other);
    assert_int_equal(end_actor(waiter), 0);
    CloseHandle(marked);
    CloseHandle(ready);
}

static void another_program_holds_them_until_it_ends(void **state)
{
    HANDLE event = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION child;
    char sleeper[] = "sleep 1000", nothing[] = "/bin/true", missing[] = "/no/such/program";

    (void)state;
    assert_true(CreateProcessA(NULL, sleeper, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &child));
    assert_int_equal(handles_of(event), 2);
    kill_actor(child);
    await_one_handle(event);
    assert_true(CreateProcessA(NULL, nothing, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &child));
    end_actor(child);
    await_one_handle(event);
    assert_false(CreateProcessA(NULL, missing, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &child));
    await_one_handle(event);
    CloseHandle(event);
}

static void a_killed_heir_has_closed_its_handles(void **state)
{
    HANDLE event = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    PROCESS_INFORMATION child = start_heir(line_with("hang", event));

    (void)state;
    assert_int_equal(WaitForSingleObject(event, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(handles_of(event), 2);
    kill_actor(child);
    await_one_handle(event);
    CloseHandle(event);
}

static void a_suspended_heir_adopts_when_it_runs(void **state)
{
    HANDLE event = CreateEventA(&inheritable, TRUE, FALSE, NULL);
    PROCESS_INFORMATION child =
        start_actor_with(line_with("set", event), (actor_options){.inherit = TRUE, .flags = CREATE_SUSPENDED});

    (void)state;
    assert_int_equal(WaitForSingleObject(event, 50), WAIT_TIMEOUT);
    assert_int_equal(ResumeThread(child.hThread), 1);
    assert_int_equal(end_actor(child), 0);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    CloseHandle(event);
}

/* Forks. */

static void a_fork_has_handles_of_its_own(void **state)
{
    HANDLE shared = CreateEventA(NULL, TRUE, FALSE, "forked"), local = CreateEventA(NULL, TRUE, FALSE, NULL);
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        bool good = SetEvent(local) && SetEvent(shared) && CloseHandle(shared) && !SetEvent(shared);

        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(WaitForSingleObject(shared, 0), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(local, 0), WAIT_TIMEOUT);
    await_one_handle(shared);
    HANDLE again = OpenEventA(SYNCHRONIZE, FALSE, "forked");
    assert_non_null(again);
    CloseHandle(again);
    CloseHandle(shared);
    CloseHandle(local);
}

static void a_fork_keeps_a_name_alive(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "kept by a fork"), go = CreateEventA(NULL, TRUE, FALSE, "go on");
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(WaitForSingleObject(go, INFINITE) == WAIT_OBJECT_0 ? 0 : 1);
    CloseHandle(event);
    event = OpenEventA(SYNCHRONIZE, FALSE, "kept by a fork");
    assert_non_null(event);
    CloseHandle(event);
    assert_true(SetEvent(go));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    await_end_of_event("kept by a fork");
    CloseHandle(go);
}

static void a_storm_of_forks(void **state)
{
    HANDLE semaphore = CreateSemaphoreA(NULL, 0, 1000, "storm");
    unsigned forks = (unsigned)test_rounds(60), killed = 0;

    (void)state;
    for (unsigned i = 0; i < forks; i++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            HANDLE again = OpenSemaphoreA(SEMAPHORE_MODIFY_STATE, FALSE, "storm");

            if (i % 3 == 0)
                raise(SIGKILL);
            _exit(again != NULL && ReleaseSemaphore(again, 1, NULL) && ReleaseSemaphore(semaphore, 1, NULL) ? 0 : 1);
        }
    }
    for (unsigned i = 0; i < forks; i++) {
        int status;

        assert_true(wait(&status) > 0);
        killed += WIFSIGNALED(status);
        assert_true(WIFSIGNALED(status) || status == 0);
    }
    for (unsigned i = 0; i < 2 * (forks - killed); i++)
        assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_TIMEOUT);
    await_one_handle(semaphore);
    CloseHandle(semaphore);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unnamed_event_is_inherited),
        cmocka_unit_test(only_marked_handles_are_inherited),
        cmocka_unit_test(names_and_rights_go_along),
        cmocka_unit_test(a_list_selects_handles),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(grandchildren_inherit_from_their_parents_only),
        cmocka_unit_test(two_thousand_handles),
        cmocka_unit_test(values_of_inherited_handles_are_taken),
        cmocka_unit_test(processes_are_inherited),
        cmocka_unit_test(another_program_holds_them_until_it_ends),
        cmocka_unit_test(a_killed_heir_has_closed_its_handles),
        cmocka_unit_test(a_suspended_heir_adopts_when_it_runs),
        cmocka_unit_test(a_fork_has_handles_of_its_own),
        cmocka_unit_test(a_fork_keeps_a_name_alive),
        cmocka_unit_test(a_storm_of_forks),
    };
    int code = play_role(argc, argv, roles);

    return code >= 0 ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
