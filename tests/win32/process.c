/* process.c: other processes: created, opened, ended, waited for. */
#include <windows.h>

#include <interlock/io.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"
#include "win32/base.h"

#define LONG_ENOUGH 60000

static PROCESS_INFORMATION create(const char *line, DWORD flags)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information = {0};
    char *copy = strdup(line);
    assert_true(CreateProcessA(NULL, copy, NULL, NULL, FALSE, flags, NULL, NULL, &startup, &information));
    free(copy);
    return information;
}

static DWORD exit_code(HANDLE process)
{
    DWORD code = 4711;
    assert_true(GetExitCodeProcess(process, &code));
    return code;
}

static void close_both(PROCESS_INFORMATION *information)
{
    assert_true(CloseHandle(information->hProcess));
    assert_true(CloseHandle(information->hThread));
}

static void a_child_is_waited_for_and_tells_its_exit_code(void **state)
{
    (void)state;
    PROCESS_INFORMATION child = create("sh -c \"exit 42\"", 0);
    assert_int_equal(child.dwProcessId, GetProcessId(child.hProcess));
    assert_int_equal(WaitForSingleObject(child.hProcess, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(child.hThread, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(exit_code(child.hProcess), 42);
    close_both(&child);
}

static void a_running_child_is_still_active_until_terminated(void **state)
{
    (void)state;
    PROCESS_INFORMATION child = create("sleep 1000", 0);
    assert_int_equal(exit_code(child.hProcess), STILL_ACTIVE);
    assert_int_equal(WaitForSingleObject(child.hProcess, 0), WAIT_TIMEOUT);
    assert_true(TerminateProcess(child.hProcess, 0xC0000042));
    assert_int_equal(WaitForSingleObject(child.hProcess, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(exit_code(child.hProcess), 0xC0000042);
    assert_false(TerminateProcess(child.hProcess, 1));
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    close_both(&child);
}

static void a_signal_becomes_the_status_it_stands_for(void **state)
{
    (void)state;
    PROCESS_INFORMATION child = create("sh -c \"kill -SEGV $$\"", 0);
    assert_int_equal(WaitForSingleObject(child.hProcess, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(exit_code(child.hProcess), (DWORD)STATUS_ACCESS_VIOLATION);
    close_both(&child);
}

static void a_suspended_child_runs_when_it_is_resumed(void **state)
{
    (void)state;
    PROCESS_INFORMATION child = create("sh -c \"exit 7\"", CREATE_SUSPENDED);
    assert_int_equal(WaitForSingleObject(child.hProcess, 100), WAIT_TIMEOUT);
    assert_int_equal(ResumeThread(child.hThread), 1);
    assert_int_equal(WaitForSingleObject(child.hProcess, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(exit_code(child.hProcess), 7);
    close_both(&child);
}

static void no_zombie_is_left_behind(void **state)
{
    (void)state;
    PROCESS_INFORMATION child = create("true", 0);
    DWORD id = child.dwProcessId;
    HANDLE kept;
    assert_true(DuplicateHandle(GetCurrentProcess(), child.hProcess, GetCurrentProcess(), &kept, 0, FALSE,
                                DUPLICATE_SAME_ACCESS));
    close_both(&child);
    assert_int_equal(WaitForSingleObject(kept, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(waitpid((pid_t)id, NULL, WNOHANG), -1);
    assert_true(CloseHandle(kept));
    child = create("true", 0);
    id = child.dwProcessId;
    close_both(&child);
    for (int round = 0; round < 6000 && kill((pid_t)id, 0) == 0; round++) {
        Sleep(10);
    }
    assert_int_equal(kill((pid_t)id, 0), -1);
}

static void an_open_process_is_one_object(void **state)
{
    (void)state;
    PROCESS_INFORMATION child = create("sleep 1000", 0);
    HANDLE opened = OpenProcess(PROCESS_ALL_ACCESS, FALSE, child.dwProcessId);
    assert_non_null(opened);
    assert_true(CompareObjectHandles(opened, child.hProcess));
    assert_true(TerminateProcess(opened, 3));
    assert_int_equal(WaitForSingleObject(opened, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(exit_code(child.hProcess), 3);
    assert_true(CloseHandle(opened));
    close_both(&child);
}

static void the_programs_own_child_is_left_for_it_to_reap(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        _exit(9);
    }
    HANDLE opened = OpenProcess(SYNCHRONIZE | PROCESS_QUERY_INFORMATION, FALSE, (DWORD)child);
    assert_non_null(opened);
    assert_int_equal(WaitForSingleObject(opened, LONG_ENOUGH), WAIT_OBJECT_0);
    DWORD code;
    assert_true(GetExitCodeProcess(opened, &code));
    assert_int_equal(code, 9);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 9);
    assert_true(CloseHandle(opened));
}

static void opening_what_is_not_there_fails(void **state)
{
    (void)state;
    SetLastError(0);
    assert_null(OpenProcess(PROCESS_ALL_ACCESS, FALSE, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(OpenProcess(PROCESS_ALL_ACCESS, FALSE, 0x7ffffffc));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(TerminateProcess(NULL, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void this_process_is_open_to_itself(void **state)
{
    (void)state;
    HANDLE self = OpenProcess(SYNCHRONIZE, FALSE, GetCurrentProcessId());
    assert_non_null(self);
    assert_int_equal(WaitForSingleObject(self, 0), WAIT_TIMEOUT);
    assert_int_equal(exit_code(GetCurrentProcess()), STILL_ACTIVE);
    assert_false(TerminateProcess(self, 0));
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    assert_true(CloseHandle(self));
}

static void a_program_that_is_not_there_is_an_error_of_the_call(void **state)
{
    (void)state;
    STARTUPINFOW startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    WCHAR line[] = u"/no/such/program with arguments";
    assert_false(CreateProcessW(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    assert_int_equal(GetLastError(), ERROR_FILE_NOT_FOUND);
    assert_false(CreateProcessW(u"/no/such/program", NULL, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup,
                                &information));
    assert_int_equal(GetLastError(), ERROR_FILE_NOT_FOUND);
    assert_false(CreateProcessW(u"/etc/passwd", NULL, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    assert_false(CreateProcessW(NULL, NULL, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(CreateProcessW(u"/bin/true", NULL, NULL, NULL, FALSE, DEBUG_PROCESS, NULL, NULL, &startup,
                                &information));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
}

/* What a child that was created with all of it wrote to its standard output. */
static void directory_environment_and_output_are_the_childs(void **state)
{
    (void)state;
    static WCHAR environment[] = u"COLOUR=gr\u00fcn\0PATH=/usr/bin:/bin\0";
    STARTUPINFOW startup = {.cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION information;
    WCHAR line[] = u"sh -c \"echo $COLOUR; pwd; echo \\\"$1\\\"\" name \"two words\"";
    char output[256];
    int ends[2];
    ssize_t length = 0, more;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(IoCreateDescriptorObject(&startup.hStdOutput, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[1],
                                              IO_DESCRIPTOR_WRITABLE),
                     STATUS_SUCCESS);
    assert_true(CreateProcessW(u"/bin/sh", line, NULL, NULL, FALSE, CREATE_UNICODE_ENVIRONMENT, environment, u"/usr",
                               &startup, &information));
    close(ends[1]);
    assert_true(CloseHandle(startup.hStdOutput));
    while ((more = read(ends[0], output + length, sizeof(output) - 1 - (size_t)length)) > 0) {
        length += more;
    }
    output[length] = '\0';
    close(ends[0]);
    assert_string_equal(output, "gr\u00fcn\n/usr\ntwo words\n");
    assert_int_equal(WaitForSingleObject(information.hProcess, LONG_ENOUGH), WAIT_OBJECT_0);
    close_both(&information);
}

static void handles_that_are_no_descriptors_are_refused(void **state)
{
    (void)state;
    STARTUPINFOA startup = {.cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION information;
    char line[] = "true";
    startup.hStdInput = CreateEventA(NULL, FALSE, FALSE, NULL);
    assert_false(CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    CloseHandle(startup.hStdInput);
}

static void command_lines_are_split_as_on_windows(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *arguments[5];
    } cases[] = {
        {"a", {"a"}},
        {"  a  b\tc ", {"a", "b", "c"}},
        {"\"a b\" c", {"a b", "c"}},
        {"\"a b\"c d", {"a b", "c", "d"}},
        {"a \"b c\" d", {"a", "b c", "d"}},
        {"a b\"c d\"e f", {"a", "bc de", "f"}},
        {"a \"\" b", {"a", "", "b"}},
        {"a b\\c \\\\d", {"a", "b\\c", "\\\\d"}},
        {"a \\\"b c", {"a", "\"b", "c"}},
        {"a \"b\\\\\" c", {"a", "b\\", "c"}},
        {"a \"b\\\\\\\" c\" d", {"a", "b\\\" c", "d"}},
        {"a \"b\"\"c\" d", {"a", "b\"c", "d"}},
        {"a \"b c", {"a", "b c"}},
        {"a\\\"b c", {"a\\\"b", "c"}},
        {"", {""}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        PSTR *split = BaseSplitCommandLine(cases[i].line);
        size_t n = 0;
        for (; cases[i].arguments[n] != NULL; n++) {
            assert_non_null(split[n]);
            assert_string_equal(split[n], cases[i].arguments[n]);
        }
        assert_null(split[n]);
        free(split);
    }
}

static void many_children_at_once(void **state)
{
    (void)state;
    enum { CHILDREN = 24 };
    PROCESS_INFORMATION children[CHILDREN];
    HANDLE handles[CHILDREN];
    char line[64];
    for (int i = 0; i < CHILDREN; i++) {
        snprintf(line, sizeof(line), "sh -c \"exit %d\"", i + 1);
        children[i] = create(line, 0);
        handles[i] = children[i].hProcess;
    }
    assert_int_equal(WaitForMultipleObjects(CHILDREN, handles, TRUE, LONG_ENOUGH), WAIT_OBJECT_0);
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(exit_code(handles[i]), i + 1);
        close_both(&children[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_waited_for_and_tells_its_exit_code),
        cmocka_unit_test(a_running_child_is_still_active_until_terminated),
        cmocka_unit_test(a_signal_becomes_the_status_it_stands_for),
        cmocka_unit_test(a_suspended_child_runs_when_it_is_resumed),
        cmocka_unit_test(no_zombie_is_left_behind),
        cmocka_unit_test(an_open_process_is_one_object),
        cmocka_unit_test(the_programs_own_child_is_left_for_it_to_reap),
        cmocka_unit_test(opening_what_is_not_there_fails),
        cmocka_unit_test(this_process_is_open_to_itself),
        cmocka_unit_test(a_program_that_is_not_there_is_an_error_of_the_call),
        cmocka_unit_test(directory_environment_and_output_are_the_childs),
        cmocka_unit_test(handles_that_are_no_descriptors_are_refused),
        cmocka_unit_test(command_lines_are_split_as_on_windows),
        cmocka_unit_test(many_children_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
