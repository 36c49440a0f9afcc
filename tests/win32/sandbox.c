/* sandbox.c: the host refuses what objects of descriptors and processes are made of: they fail at once, and clearly. */
#include <windows.h>

#include <interlock/descriptor.h>
#include <interlock/nt.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "sandbox.h"
#include "support.h"

#define LONG_ENOUGH 60000
#define HANG_SECONDS 60

static void in_child(void (*function)(unsigned call), unsigned call)
{
    int status;
    pid_t child;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        signal(SIGABRT, SIG_DFL);
        alarm(HANG_SECONDS * test_slowdown());
        if (call == 0 || refuse_call(call, EPERM))
            function(call);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_int_equal(status, 0);
}

static NTSTATUS create_object(PHANDLE handle, int descriptor)
{
    return IoCreateDescriptorObject(handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, descriptor, IO_DESCRIPTOR_READABLE);
}

static BOOL create_process(PPROCESS_INFORMATION information)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    char command[] = "/bin/sleep 60";

    return CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, information);
}

static void nothing_is_created(unsigned call)
{
    HANDLE event = CreateEventA(NULL, TRUE, TRUE, NULL), handle = NULL, export = NULL;
    PROCESS_INFORMATION information;
    int number;

    (void)call;
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(create_object(&handle, STDERR_FILENO), STATUS_INSUFFICIENT_RESOURCES);
        assert_null(handle);
        assert_int_equal(IoExportObject(event, &export, &number), STATUS_INSUFFICIENT_RESOURCES);
        assert_false(create_process(&information));
        assert_int_equal(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left running */
        assert_int_equal(errno, ECHILD);
        assert_null(OpenProcess(SYNCHRONIZE, FALSE, (DWORD)getppid()));
    }
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    assert_true(CloseHandle(event));
}

static void no_object_is_created(unsigned call)
{
    HANDLE handle = NULL;

    (void)call;
    assert_int_equal(create_object(&handle, STDERR_FILENO), STATUS_INSUFFICIENT_RESOURCES);
    assert_null(handle);
}

static void a_refused_set_is_an_error_of_the_creation(void **state)
{
    (void)state;
    in_child(nothing_is_created, SYS_epoll_create1);
    in_child(nothing_is_created, SYS_epoll_ctl);
    in_child(no_object_is_created, SYS_pipe2); /* which starting a process needs, too */
}

/* Made before, used in the sandbox: what there is goes on. */
static void use_old_and_new(unsigned call)
{
    HANDLE handle, more = NULL;
    int ends[2];

    (void)call;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(create_object(&handle, ends[0]), 0);
    if (!refuse_call(SYS_epoll_create1, EPERM))
        return;
    assert_int_equal(create_object(&more, ends[0]), 0);
    assert_int_equal(WaitForSingleObject(handle, 2), WAIT_TIMEOUT);
    assert_int_equal(WaitForSingleObject(more, 2), WAIT_TIMEOUT);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(more, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(CloseHandle(handle) && CloseHandle(more));
}

static void what_was_made_before_works_in_the_sandbox(void **state)
{
    (void)state;
    in_child(use_old_and_new, 0);
}

/* The first object is refused for lack of descriptors, and made when there are some again. */
static void refuse_then_allow(unsigned call)
{
    struct rlimit limit, few;
    HANDLE handle = NULL;
    int ends[2];

    (void)call;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t room = 0; room < 4; room++) { /* the duplicate, the set, two ends of a pipe */
        few = (struct rlimit){(rlim_t)ends[1] + 1 + room, limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_not_equal(create_object(&handle, ends[0]), 0);
        assert_null(handle);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(create_object(&handle, ends[0]), 0);
    assert_int_equal(WaitForSingleObject(handle, 2), WAIT_TIMEOUT);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(CloseHandle(handle));
}

static void a_refusal_is_not_for_good(void **state)
{
    (void)state;
    in_child(refuse_then_allow, 0);
}

static volatile LONG stop;

static void *use_locks(void *argument)
{
    static SRWLOCK lock = SRWLOCK_INIT;
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);

    (void)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        AcquireSRWLockExclusive(&lock);
        ReleaseSRWLockExclusive(&lock);
        SetEvent(event);
        WaitForSingleObject(event, 0);
    }
    CloseHandle(event);
    return NULL;
}

/* A fork waits for the other threads' sections also where the barrier that it began with is refused. */
static void fork_in_sandbox(unsigned call)
{
    pthread_t threads[2];
    int status;

    (void)call;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_locks, NULL), 0);
    if (refuse_call(SYS_membarrier, EPERM)) {
        for (unsigned i = 0; i < 10; i++) {
            pid_t child = fork();

            assert_true(child >= 0);
            if (child == 0) {
                HANDLE event = CreateEventA(NULL, FALSE, TRUE, NULL);
                _exit(WaitForSingleObject(event, LONG_ENOUGH) != WAIT_OBJECT_0);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_int_equal(status, 0);
        }
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void forks_work_without_barriers(void **state)
{
    (void)state;
    if (test_heap_may_stay_locked())
        skip();
    in_child(fork_in_sandbox, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_set_is_an_error_of_the_creation),
        cmocka_unit_test(what_was_made_before_works_in_the_sandbox),
        cmocka_unit_test(a_refusal_is_not_for_good),
        cmocka_unit_test(forks_work_without_barriers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
