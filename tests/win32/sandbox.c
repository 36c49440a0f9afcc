/* sandbox.c: the host refuses the system calls behind descriptor objects and process objects: creation fails at once,
   with a clear status. */
#include <windows.h>

#include <interlock/io.h>
#include <interlock/nt.h>

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include "child.h"
#include "sandbox.h"
#include "support.h"

#define LONG_ENOUGH 60000

struct refusal {
    unsigned call; /* 0: none, or by the function itself */
    void (*function)(void);
};

static void enter_sandbox(void *argument)
{
    const struct refusal *refusal = argument;

    if (refusal->call == 0 || refuse_call(refusal->call, EPERM))
        refusal->function();
}

static void in_sandbox(unsigned call, void (*function)(void))
{
    struct refusal refusal = {call, function};

    run_in_child(enter_sandbox, &refusal);
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

static void nothing_is_created(void)
{
    HANDLE event = CreateEventA(NULL, TRUE, TRUE, NULL), handle = NULL, export = NULL;
    PROCESS_INFORMATION information;
    int number;

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

static void no_object_is_created(void)
{
    HANDLE handle = NULL;

    assert_int_equal(create_object(&handle, STDERR_FILENO), STATUS_INSUFFICIENT_RESOURCES);
    assert_null(handle);
}

static void a_refused_set_is_an_error_of_the_creation(void **state)
{
    (void)state;
    in_sandbox(SYS_epoll_create1, nothing_is_created);
    in_sandbox(SYS_epoll_ctl, nothing_is_created);
    in_sandbox(SYS_pipe2, no_object_is_created); /* which starting a process needs, too */
}

/* Created before, used in the sandbox: existing objects continue to work. */
static void use_old_and_new(void)
{
    HANDLE handle, more = NULL;
    int ends[2];

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
    in_sandbox(0, use_old_and_new);
}

/* The first object is refused for lack of descriptors, and created when some are free again. */
static void refuse_then_allow(void)
{
    struct rlimit limit, few;
    HANDLE handle = NULL;
    int ends[2];

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
    in_sandbox(0, refuse_then_allow);
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

/* A fork waits for the other threads' sections even if the host refuses the barrier that it begins with. */
static void fork_in_sandbox(void)
{
    pthread_t threads[2];
    int status;

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
    in_sandbox(0, fork_in_sandbox);
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
