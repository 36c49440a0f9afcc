#include "support.h"

#include <interlock/io.h>
#include <windows.h>

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static HANDLE wrap(int descriptor, ULONG events)
{
    HANDLE handle = NULL;

    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, descriptor, events), 0);
    return handle;
}

/* Standard handles, in a child with descriptors of its own. */

static int run_child(void (*function)(int *report), int *report)
{
    int status;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        alarm(60);
        function(report);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

#define CHECK(condition)                                                  \
    do {                                                                  \
        if (!(condition)) {                                               \
            dprintf(STDERR_FILENO, "line %d: %s\n", __LINE__, #condition); \
            _exit(100);                                                   \
        }                                                                 \
    } while (0)

static void use_standard_handles(int *report)
{
    char text[16] = "";
    DWORD done = 0;
    int in[2], out[2];
    HANDLE input, output;

    (void)report;
    CHECK(pipe(in) == 0 && pipe(out) == 0);
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[0]);
    close(out[1]);
    input = GetStdHandle(STD_INPUT_HANDLE);
    output = GetStdHandle(STD_OUTPUT_HANDLE);
    CHECK(input != NULL && input != INVALID_HANDLE_VALUE && output != NULL && output != input);
    CHECK(GetStdHandle(STD_INPUT_HANDLE) == input);
    CHECK(GetFileType(input) == FILE_TYPE_PIPE);
    CHECK(WaitForSingleObject(input, 0) == WAIT_TIMEOUT);
    CHECK(write(in[1], "abc", 3) == 3);
    CHECK(WaitForSingleObject(input, INFINITE) == WAIT_OBJECT_0);
    CHECK(ReadFile(input, text, sizeof(text), &done, NULL) && done == 3 && memcmp(text, "abc", 3) == 0);
    CHECK(WriteFile(output, "hello", 5, &done, NULL) && done == 5);
    CHECK(read(out[0], text, sizeof(text)) == 5 && memcmp(text, "hello", 5) == 0);
    CHECK(!GetConsoleMode(output, &done) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!WriteConsoleA(output, "x", 1, &done, NULL) && GetLastError() == ERROR_INVALID_HANDLE);
    close(in[1]);
    CHECK(!ReadFile(input, text, sizeof(text), &done, NULL) && GetLastError() == ERROR_BROKEN_PIPE && done == 0);
    close(out[0]);
    signal(SIGPIPE, SIG_DFL);
    CHECK(!WriteFile(output, "hello", 5, &done, NULL) && GetLastError() == ERROR_NO_DATA);
    CHECK(SetStdHandle(STD_ERROR_HANDLE, input) && GetStdHandle(STD_ERROR_HANDLE) == input);
    CHECK(SetStdHandle(STD_INPUT_HANDLE, NULL) && GetStdHandle(STD_INPUT_HANDLE) == NULL);
}

static void standard_handles(void **state)
{
    (void)state;
    assert_int_equal(run_child(use_standard_handles, NULL), 0);
    assert_ptr_equal(GetStdHandle(5), INVALID_HANDLE_VALUE);
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_false(SetStdHandle(0, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void without_descriptors(int *report)
{
    (void)report;
    close(0);
    CHECK(GetStdHandle(STD_INPUT_HANDLE) == NULL);
}

static void a_closed_descriptor_is_no_handle(void **state)
{
    (void)state;
    assert_int_equal(run_child(without_descriptors, NULL), 0);
}

static void files(void **state)
{
    char name[] = "/tmp/interlock-console-XXXXXX";
    int file = mkstemp(name);
    char text[8];
    DWORD done = 9;
    HANDLE handle = wrap(file, IO_DESCRIPTOR_READABLE), event = CreateEventA(NULL, TRUE, FALSE, NULL);
    OVERLAPPED overlapped = {0};

    (void)state;
    assert_int_equal(GetFileType(handle), FILE_TYPE_DISK);
    assert_true(WriteFile(handle, "12345", 5, &done, NULL));
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    assert_true(ReadFile(handle, text, 3, &done, NULL));
    assert_int_equal(done, 3);
    assert_true(ReadFile(handle, text, sizeof(text), &done, NULL));
    assert_int_equal(done, 2);
    assert_false(ReadFile(event, text, sizeof(text), &done, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_true(ReadFile(handle, text, sizeof(text), &done, NULL)); /* the end */
    assert_int_equal(done, 0);
    assert_true(WriteFile(handle, NULL, 0, &done, NULL));
    assert_false(ReadFile(handle, text, sizeof(text), &done, &overlapped));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    assert_false(ReadFile(handle, NULL, sizeof(text), &done, NULL));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    assert_false(WriteFile(event, "x", 1, &done, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_int_equal(GetFileType(event), FILE_TYPE_UNKNOWN);
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    CloseHandle(handle);
    CloseHandle(event);
    close(file);
    unlink(name);
}

static void terminals(void **state)
{
    int master, slave;
    char text[32] = "";
    DWORD done = 0, mode = 0;
    HANDLE handle;

    (void)state;
    if (openpty(&master, &slave, NULL, NULL, NULL) != 0) {
        skip(); /* a chroot without /dev/pts */
    }
    handle = wrap(slave, IO_DESCRIPTOR_WRITABLE);
    assert_int_equal(GetFileType(handle), FILE_TYPE_CHAR);
    assert_true(GetConsoleMode(handle, &mode));
    assert_true(SetConsoleMode(handle, mode));
    assert_true(WriteConsoleW(handle, u"w\u00e4", 2, &done, NULL));
    assert_int_equal(done, 2);
    assert_int_equal(read(master, text, sizeof(text)), 3);
    assert_string_equal(text, "w\xc3\xa4");
    assert_true(WriteConsoleA(handle, "abc", 3, &done, NULL));
    assert_int_equal(done, 3);
    CloseHandle(handle);
    close(master);
    close(slave);
}

/* Console events, each in a child: signals are the process's. */

static HANDLE called;
static volatile LONG order, first_at, second_at, type_of;
static volatile DWORD thread_of;

static BOOL WINAPI first_handler(DWORD type)
{
    first_at = InterlockedIncrement(&order);
    type_of = (LONG)type;
    thread_of = GetCurrentThreadId();
    SetEvent(called);
    return TRUE;
}

static BOOL WINAPI second_handler(DWORD type)
{
    (void)type;
    second_at = InterlockedIncrement(&order);
    return FALSE;
}

static void last_handler_first(int *report)
{
    (void)report;
    called = CreateEventA(NULL, FALSE, FALSE, NULL);
    CHECK(SetConsoleCtrlHandler(first_handler, TRUE));
    CHECK(SetConsoleCtrlHandler(second_handler, TRUE));
    kill(getpid(), SIGINT);
    CHECK(WaitForSingleObject(called, 30000) == WAIT_OBJECT_0);
    CHECK(second_at == 1 && first_at == 2 && type_of == CTRL_C_EVENT && thread_of != GetCurrentThreadId());
    CHECK(SetConsoleCtrlHandler(second_handler, FALSE));
    CHECK(!SetConsoleCtrlHandler(second_handler, FALSE) && GetLastError() == ERROR_INVALID_PARAMETER);
    kill(getpid(), SIGQUIT);
    CHECK(WaitForSingleObject(called, 30000) == WAIT_OBJECT_0);
    CHECK(type_of == CTRL_BREAK_EVENT && order == 3);
}

static void handlers_are_called_last_first(void **state)
{
    (void)state;
    assert_int_equal(run_child(last_handler_first, NULL), 0);
}

static void nobody_handles(int *report)
{
    (void)report;
    CHECK(SetConsoleCtrlHandler(second_handler, TRUE));
    kill(getpid(), SIGINT);
    Sleep(INFINITE);
}

static void handler_is_removed(int *report)
{
    (void)report;
    CHECK(SetConsoleCtrlHandler(first_handler, TRUE));
    CHECK(SetConsoleCtrlHandler(first_handler, FALSE));
    kill(getpid(), SIGINT);
    Sleep(INFINITE);
}

static void shut_down(int *report)
{
    called = CreateEventA(NULL, FALSE, FALSE, NULL);
    CHECK(SetConsoleCtrlHandler(first_handler, TRUE));
    kill(getpid(), SIGTERM);
    CHECK(WaitForSingleObject(called, 30000) == WAIT_OBJECT_0);
    CHECK(type_of == CTRL_SHUTDOWN_EVENT);
    CHECK(write(report[1], "+", 1) == 1);
    Sleep(INFINITE);
}

static void default_actions(void **state)
{
    int report[2], status;
    char text;

    (void)state;
    status = run_child(nobody_handles, NULL);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    status = run_child(handler_is_removed, NULL);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_int_equal(pipe(report), 0);
    status = run_child(shut_down, report); /* the process ends, whatever the handler says */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    close(report[1]);
    (void)!read(report[0], &text, 1);
    close(report[0]);
}

static void ignore(int *report)
{
    (void)report;
    called = CreateEventA(NULL, FALSE, FALSE, NULL);
    CHECK(SetConsoleCtrlHandler(first_handler, TRUE));
    CHECK(SetConsoleCtrlHandler(NULL, TRUE));
    kill(getpid(), SIGINT);
    CHECK(WaitForSingleObject(called, 200) == WAIT_TIMEOUT);
    CHECK(SetConsoleCtrlHandler(NULL, FALSE));
    kill(getpid(), SIGINT);
    CHECK(WaitForSingleObject(called, 30000) == WAIT_OBJECT_0);
}

static void interrupts_can_be_ignored(void **state)
{
    (void)state;
    assert_int_equal(run_child(ignore, NULL), 0);
}

static volatile LONG posix_calls;

static void posix_handler(int signal)
{
    (void)signal;
    InterlockedIncrement(&posix_calls);
}

/* The program's own signal handler gets the events that no console handler handles. */
static void chain(int *report)
{
    (void)report;
    signal(SIGINT, posix_handler);
    CHECK(SetConsoleCtrlHandler(second_handler, TRUE));
    kill(getpid(), SIGINT);
    while (ReadAcquire(&posix_calls) == 0)
        Sleep(1);
    CHECK(ReadAcquire(&order) == 1);
    CHECK(SetConsoleCtrlHandler(second_handler, FALSE));
    raise(SIGINT);
    CHECK(posix_calls == 2 && order == 1);
}

static void handlers_of_the_program_come_last(void **state)
{
    (void)state;
    assert_int_equal(run_child(chain, NULL), 0);
}

/* The linker wraps syscall: a signal to all processes, or to one, must not be sent. */
static volatile LONG stray_signals;

long __wrap_syscall(long number, long first, long second, long third, long fourth, long fifth, long sixth);
long __real_syscall(long number, ...);

long __wrap_syscall(long number, long first, long second, long third, long fourth, long fifth, long sixth)
{
    if (number == SYS_kill && (first == -1 || first > 0)) {
        InterlockedIncrement(&stray_signals);
        return 0;
    }
    return __real_syscall(number, first, second, third, fourth, fifth, sixth);
}

static void only_groups_get_events(void **state)
{
    static const DWORD wrong[] = {1, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF};

    (void)state;
    for (size_t number = 0; number < ARRAYSIZE(wrong); number++) {
        assert_false(GenerateConsoleCtrlEvent(CTRL_C_EVENT, wrong[number]));
        assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    }
    assert_int_equal(stray_signals, 0);
}

static void generate(int *report)
{
    (void)report;
    CHECK(setpgid(0, 0) == 0);
    called = CreateEventA(NULL, FALSE, FALSE, NULL);
    CHECK(SetConsoleCtrlHandler(first_handler, TRUE));
    CHECK(GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0));
    CHECK(WaitForSingleObject(called, 30000) == WAIT_OBJECT_0 && type_of == CTRL_C_EVENT);
    CHECK(GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, (DWORD)getpid()));
    CHECK(WaitForSingleObject(called, 30000) == WAIT_OBJECT_0 && type_of == CTRL_BREAK_EVENT);
    CHECK(!GenerateConsoleCtrlEvent(CTRL_CLOSE_EVENT, 0) && GetLastError() == ERROR_INVALID_PARAMETER);
}

static void events_can_be_generated(void **state)
{
    (void)state;
    assert_int_equal(run_child(generate, NULL), 0);
}

static void fork_again(int *report)
{
    int status;
    pid_t child;

    (void)report;
    called = CreateEventA(NULL, FALSE, FALSE, NULL);
    CHECK(SetConsoleCtrlHandler(first_handler, TRUE));
    child = fork();
    if (child == 0) {
        kill(getpid(), SIGINT); /* no thread takes it here: the default action */
        pause();
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    child = fork();
    if (child == 0) {
        CHECK(SetConsoleCtrlHandler(second_handler, TRUE)); /* starts it again */
        kill(getpid(), SIGINT);
        CHECK(WaitForSingleObject(called, 30000) == WAIT_OBJECT_0);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void a_forked_child(void **state)
{
    (void)state;
    if (test_slowdown() != 1)
        skip(); /* sanitizers and forks do not go together */
    assert_int_equal(run_child(fork_again, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_handles),
        cmocka_unit_test(a_closed_descriptor_is_no_handle),
        cmocka_unit_test(handlers_are_called_last_first),
        cmocka_unit_test(default_actions),
        cmocka_unit_test(interrupts_can_be_ignored),
        cmocka_unit_test(handlers_of_the_program_come_last),
        cmocka_unit_test(only_groups_get_events),
        cmocka_unit_test(events_can_be_generated),
        cmocka_unit_test(a_forked_child),
        cmocka_unit_test(files),
        cmocka_unit_test(terminals),
    };

    return cmocka_run_group_tests_name("win32/console", tests, NULL, NULL);
}
