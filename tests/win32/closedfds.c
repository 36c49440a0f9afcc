/*
 * closedfds.c: the program closes the library's descriptors, as a daemon does (closefrom), or replaces them by its own
 * files. The library continues to work, and the program's files stay unchanged.
 */
#include <windows.h>

#include <interlock/io.h>
#include <interlock/nt.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "support.h"

#define LONG_ENOUGH 60000
#define HANG_SECONDS 60
#define MOST_DESCRIPTORS 64
#define MARK "the program's own"

/* Each case in a child of its own: it closes what belongs to the test program, too. */
#define CHILD_CASE(name)                                                                                              \
    static void name(void *unused);                                                                                   \
    static void name##_in_child(void **state)                                                                         \
    {                                                                                                                 \
        (void)state;                                                                                                  \
        run_in_child(name, NULL);                                                                                     \
    }                                                                                                                 \
    static void name(void *unused)

/* The descriptors behind the standard ones that are open, as a program finds them. */
static unsigned list_descriptors(int *numbers)
{
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;
    unsigned count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        int number = atoi(entry->d_name);

        if (entry->d_name[0] != '.' && number > STDERR_FILENO && number != dirfd(directory) &&
            count < MOST_DESCRIPTORS)
            numbers[count++] = number;
    }
    closedir(directory);
    return count;
}

/* One of these, each with a known content, replaces each descriptor. */
struct files {
    unsigned count;
    int number[MOST_DESCRIPTORS];
};

static int marked_file(void)
{
    int file = (int)syscall(SYS_memfd_create, "marked", 0);

    assert_true(file >= 0);
    assert_int_equal(write(file, MARK, strlen(MARK)), (ssize_t)strlen(MARK));
    return file;
}

static void close_all(struct files *files)
{
    files->count = list_descriptors(files->number);
    for (unsigned i = 0; i < files->count; i++)
        close(files->number[i]);
}

/* Each in one step: the library may get a number again that is free for a moment. */
static void replace_all(struct files *files)
{
    files->count = list_descriptors(files->number);
    for (unsigned i = 0; i < files->count; i++) {
        int file = marked_file();

        assert_int_equal(dup2(file, files->number[i]), files->number[i]);
        close(file);
    }
}

static void files_are_untouched(const struct files *files)
{
    char content[64];

    for (unsigned i = 0; i < files->count; i++) {
        assert_int_equal(lseek(files->number[i], 0, SEEK_CUR), strlen(MARK));
        assert_int_equal(pread(files->number[i], content, sizeof(content), 0), strlen(MARK));
        assert_memory_equal(content, MARK, strlen(MARK));
    }
}

static HANDLE object_of(int descriptor)
{
    HANDLE handle = NULL;

    assert_int_equal(
        IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, descriptor, IO_DESCRIPTOR_READABLE), 0);
    return handle;
}

static HANDLE start(const char *command)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    char line[256];

    snprintf(line, sizeof(line), "%s", command);
    assert_true(CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    CloseHandle(information.hThread);
    return information.hProcess;
}

static HANDLE timer_after(LONGLONG milliseconds, int absolute)
{
    HANDLE timer = CreateWaitableTimerA(NULL, TRUE, NULL);
    LARGE_INTEGER due = {.QuadPart = -10000 * milliseconds};
    FILETIME now;

    if (absolute) {
        GetSystemTimeAsFileTime(&now);
        due.QuadPart = (LONGLONG)((ULONGLONG)now.dwHighDateTime << 32 | now.dwLowDateTime) + 10000 * milliseconds;
    }
    assert_true(SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE));
    return timer;
}

static void everything_works(void)
{
    HANDLE timers[] = {timer_after(5, 0), timer_after(5, 1)};
    HANDLE process = start("/bin/true");
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL), export, object;
    struct pollfd exported = {.events = POLLIN};
    int ends[2];
    char byte;

    assert_int_equal(WaitForMultipleObjects(2, timers, TRUE, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(process, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(IoExportObject(event, &export, &exported.fd), 0);
    SetEvent(event);
    assert_int_equal(poll(&exported, 1, LONG_ENOUGH), 1);
    assert_int_equal(IoAcceptExport(export), 0);
    assert_int_equal(poll(&exported, 1, 0), 0);
    assert_int_equal(pipe(ends), 0);
    object = object_of(ends[0]);
    assert_int_equal(WaitForSingleObject(object, 0), WAIT_TIMEOUT);
    assert_int_equal(WaitForSingleObject(object, 2), WAIT_TIMEOUT);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(WaitForSingleObject(object, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(CloseHandle(object) && CloseHandle(export) && CloseHandle(event) && CloseHandle(process));
    assert_true(CloseHandle(timers[0]) && CloseHandle(timers[1]));
    close(ends[0]);
    close(ends[1]);
}

/* One object of every kind that keeps a descriptor or a sleeping thread, with pending waits for it. */
static struct {
    HANDLE timers[3];
    HANDLE child, stopped, other, event, export, object;
    pid_t other_id;
    int exported;
    int ends[2];
} kept;

static void keep_everything(void)
{
    kept.timers[0] = timer_after(200, 0);
    kept.timers[1] = timer_after(200, 1);
    kept.timers[2] = timer_after(1000000, 1);
    kept.child = start("/bin/sh -c \"sleep 0.2; exit 42\"");
    kept.stopped = start("/bin/sleep 60");
    kept.other_id = fork();
    if (kept.other_id == 0) {
        alarm(HANG_SECONDS);
        pause();
        _exit(0);
    }
    kept.other = OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, (DWORD)kept.other_id);
    assert_non_null(kept.other);
    kept.event = CreateEventA(NULL, FALSE, FALSE, NULL);
    assert_int_equal(IoExportObject(kept.event, &kept.export, &kept.exported), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, kept.ends), 0);
    kept.object = object_of(kept.ends[0]);
    assert_int_equal(WaitForSingleObject(kept.object, 0), WAIT_TIMEOUT);
}

static volatile LONG waits_over;

static void wait_for_child(void *argument, unsigned index)
{
    DWORD code;

    (void)argument;
    if (index == 0) {
        if (WaitForSingleObject(kept.child, INFINITE) != WAIT_OBJECT_0 || !GetExitCodeProcess(kept.child, &code) ||
            code != 42)
            abort();
    } else if (WaitForMultipleObjects(2, kept.timers, TRUE, INFINITE) != WAIT_OBJECT_0) {
        abort();
    }
    InterlockedIncrement(&waits_over);
}

/* Pending operations continue, except those on the program's own descriptors. */
static void pending_goes_on(test_threads *waiters)
{
    DWORD code;

    join_threads(waiters, HANG_SECONDS);
    assert_int_equal(waits_over, 2);
    assert_int_equal(WaitForSingleObject(kept.stopped, 0), WAIT_TIMEOUT);
    assert_true(TerminateProcess(kept.stopped, 7));
    assert_int_equal(WaitForSingleObject(kept.stopped, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(GetExitCodeProcess(kept.stopped, &code));
    assert_int_equal(code, 7);
    assert_int_equal(WaitForSingleObject(kept.other, 0), WAIT_TIMEOUT);
    assert_true(TerminateProcess(kept.other, 1));
    assert_int_equal(WaitForSingleObject(kept.other, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(waitpid(kept.other_id, NULL, 0), kept.other_id);
}

static void lost_is_reported(void)
{
    ULONG ready;

    assert_int_equal(IoQueryDescriptorObject(kept.object, &ready, NULL), STATUS_FILE_CLOSED);
    SetEvent(kept.event);
    while (WaitForSingleObject(kept.event, 0) == WAIT_OBJECT_0) /* the export takes it, soon */
        SetEvent(kept.event);
    assert_int_equal(IoAcceptExport(kept.export), STATUS_FILE_CLOSED);
}

static void close_handles(void)
{
    assert_true(CloseHandle(kept.child) && CloseHandle(kept.stopped) && CloseHandle(kept.other));
    assert_true(CloseHandle(kept.export) && CloseHandle(kept.event) && CloseHandle(kept.object));
    for (unsigned i = 0; i < 3; i++)
        assert_true(CloseHandle(kept.timers[i]));
}

CHILD_CASE(a_daemon_closes_everything)
{
    test_threads *waiters;
    struct files files;

    (void)unused;
    keep_everything();
    waiters = start_threads(2, wait_for_child, NULL);
    close_all(&files);
    assert_true(files.count > 3);
    pending_goes_on(waiters);
    lost_is_reported();
    close_handles();
    everything_works();
}

CHILD_CASE(a_daemon_opens_files_instead)
{
    test_threads *waiters;
    struct files files;

    (void)unused;
    keep_everything();
    waiters = start_threads(2, wait_for_child, NULL);
    replace_all(&files);
    pending_goes_on(waiters);
    lost_is_reported();
    everything_works();
    close_handles();
    files_are_untouched(&files);
    everything_works();
    files_are_untouched(&files);
}

/* The program does not close its own descriptors. */
CHILD_CASE(what_the_program_still_has_is_found_again)
{
    struct files files;
    int own;

    (void)unused;
    keep_everything();
    files.count = list_descriptors(files.number);
    for (unsigned i = 0; i < files.count; i++)
        if (files.number[i] != kept.ends[0] && files.number[i] != kept.ends[1])
            close(files.number[i]);
    assert_int_equal(WaitForSingleObject(kept.object, 0), WAIT_TIMEOUT);
    assert_int_equal(write(kept.ends[1], "x", 1), 1);
    assert_int_equal(WaitForSingleObject(kept.object, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(IoQueryDescriptorObject(kept.object, NULL, &own), 0);
    assert_int_not_equal(own, kept.ends[0]);
    assert_true(TerminateProcess(kept.stopped, 7) && TerminateProcess(kept.other, 7));
    everything_works();
}

/* The descriptors of the library are replaced one by one by the program's file, event counter or epoll set. */
static int replacement(unsigned kind)
{
    return kind == 0 ? marked_file() : kind == 1 ? eventfd(0, EFD_NONBLOCK) : epoll_create1(0);
}

static bool is_own(int number, const struct files *own)
{
    for (unsigned i = 0; i < own->count; i++)
        if (own->number[i] == number)
            return true;
    return false;
}

static void replace_one(int number, unsigned kind)
{
    struct files file = {1, {number}};
    int new = replacement(kind);
    struct epoll_event event = {.events = EPOLLIN};
    eventfd_t count;

    assert_int_equal(dup2(new, number), number);
    close(new);
    everything_works();
    if (kind == 0) {
        files_are_untouched(&file);
    } else if (kind == 1) {
        assert_int_equal(read(number, &count, sizeof(count)), -1); /* nothing was added to it */
    } else {
        assert_int_equal(epoll_ctl(number, EPOLL_CTL_ADD, kept.ends[0], &event), 0);
        assert_int_equal(epoll_wait(number, &event, 1, 0), 0);
    }
    assert_true(fcntl(number, F_GETFD) >= 0);
    close(number);
}

CHILD_CASE(each_descriptor_may_be_replaced)
{
    struct files before, all;

    (void)unused;
    before.count = list_descriptors(before.number);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, kept.ends), 0);
    for (unsigned kind = 0; kind < 3; kind++) {
        everything_works();
        all.count = list_descriptors(all.number);
        for (unsigned i = 0; i < all.count; i++)
            if (!is_own(all.number[i], &before) && all.number[i] != kept.ends[0] && all.number[i] != kept.ends[1])
                replace_one(all.number[i], kind);
    }
}

/* A forked child closes everything before it uses anything. */
CHILD_CASE(a_forked_daemon)
{
    struct files files;
    pid_t daemon;
    int status;

    (void)unused;
    keep_everything();
    daemon = fork();
    if (daemon == 0) {
        alarm(HANG_SECONDS * test_slowdown());
        replace_all(&files);
        everything_works();
        assert_int_equal(WaitForSingleObject(kept.object, LONG_ENOUGH), WAIT_OBJECT_0);
        assert_int_equal(IoQueryDescriptorObject(kept.object, NULL, NULL), STATUS_FILE_CLOSED);
        close_handles();
        files_are_untouched(&files);
        _exit(0);
    }
    assert_int_equal(waitpid(daemon, &status, 0), daemon);
    assert_int_equal(status, 0);
    everything_works();
    assert_int_equal(WaitForSingleObject(kept.object, 0), WAIT_TIMEOUT);
    assert_true(TerminateProcess(kept.stopped, 7) && TerminateProcess(kept.other, 7));
}

/* The parent notices also while a forked child lives that has inherited everything. */
CHILD_CASE(a_parent_of_a_forked_child)
{
    test_threads *waiters;
    struct files files;
    pid_t child;

    (void)unused;
    keep_everything();
    child = fork();
    if (child == 0) {
        alarm(HANG_SECONDS);
        pause();
        _exit(0);
    }
    waiters = start_threads(2, wait_for_child, NULL);
    close_all(&files);
    pending_goes_on(waiters);
    kill(child, SIGKILL);
    everything_works();
}

/* At the limit of descriptors, creation fails with a status that says so; existing objects work. */
CHILD_CASE(at_the_limit)
{
    struct rlimit limit;
    HANDLE handle = NULL, export;
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    MEMORY_BASIC_INFORMATION memory;
    char command[] = "/bin/true";
    int number, last = -1;

    (void)unused;
    keep_everything();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_cur < 300 ? limit.rlim_cur : 300;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while ((number = dup(STDERR_FILENO)) >= 0)
        last = number;
    assert_int_equal(IoCreateDescriptorObject(&handle, SYNCHRONIZE, NULL, kept.ends[0], IO_DESCRIPTOR_READABLE),
                     STATUS_TOO_MANY_OPENED_FILES);
    assert_int_equal(IoCreateDescriptorObject(&handle, SYNCHRONIZE, NULL, 12345, IO_DESCRIPTOR_READABLE),
                     STATUS_INVALID_HANDLE);
    assert_int_not_equal(IoExportObject(event, &export, &number), 0);
    assert_null(OpenProcess(SYNCHRONIZE, FALSE, 1)); /* it exists */
    assert_int_equal(GetLastError(), ERROR_TOO_MANY_OPEN_FILES);
    assert_int_equal(VirtualQuery(MARK, &memory, sizeof(memory)), 0);
    assert_int_equal(GetLastError(), ERROR_TOO_MANY_OPEN_FILES);
    assert_false(CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    assert_int_equal(WaitForSingleObject(kept.object, 2), WAIT_TIMEOUT);
    assert_int_equal(write(kept.ends[1], "x", 1), 1);
    assert_int_equal(WaitForSingleObject(kept.object, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForMultipleObjects(2, kept.timers, TRUE, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(kept.child, LONG_ENOUGH), WAIT_OBJECT_0);
    SetEvent(kept.event);
    assert_true(poll(&(struct pollfd){kept.exported, POLLIN, 0}, 1, LONG_ENOUGH) == 1);
    assert_true(TerminateProcess(kept.stopped, 7) && TerminateProcess(kept.other, 7));
    for (number = 3; number <= last; number++) /* room for what everything_works needs */
        if (number % 8 == 0 && number != kept.ends[0] && number != kept.ends[1] && number < 256)
            close(number);
    everything_works();
}

/* A limit below the numbers that the library prefers. */
CHILD_CASE(below_the_preferred_numbers)
{
    const struct rlimit few = {40, 40};
    int own;

    (void)unused;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    keep_everything();
    everything_works();
    assert_int_equal(IoQueryDescriptorObject(kept.object, NULL, &own), 0);
    assert_true(own > STDERR_FILENO);
    assert_true(TerminateProcess(kept.stopped, 7) && TerminateProcess(kept.other, 7));
}

/* A program that closed its standard descriptors does not get the library's in their place. */
CHILD_CASE(standard_numbers_are_left_alone)
{
    int file;

    (void)unused;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    everything_works();
    for (file = STDIN_FILENO; file <= STDOUT_FILENO; file++)
        if (fcntl(file, F_GETFD) >= 0)
            abort();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_closes_everything_in_child),
        cmocka_unit_test(a_daemon_opens_files_instead_in_child),
        cmocka_unit_test(what_the_program_still_has_is_found_again_in_child),
        cmocka_unit_test(each_descriptor_may_be_replaced_in_child),
        cmocka_unit_test(a_forked_daemon_in_child),
        cmocka_unit_test(a_parent_of_a_forked_child_in_child),
        cmocka_unit_test(at_the_limit_in_child),
        cmocka_unit_test(below_the_preferred_numbers_in_child),
        cmocka_unit_test(standard_numbers_are_left_alone_in_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
