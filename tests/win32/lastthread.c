/* The process ends with its last thread, with that thread's exit code, regardless of the library's own threads. */
#include <windows.h>

#include <interlock/ex.h>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "hal/halp.h"

#include "child.h"

#define TOGETHER 8

static int exit_code_of(void (*function)(void))
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS * test_slowdown());
        function();
        _exit(100);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static HANDLE first;

/* After the first thread. */
static DWORD WINAPI return_seven(LPVOID argument)
{
    (void)argument;
    return WaitForSingleObject(first, INFINITE) == WAIT_OBJECT_0 ? 7 : 8;
}

static HANDLE start(LPTHREAD_START_ROUTINE routine)
{
    HANDLE thread;

    if (first == NULL)
        first = OpenThread(SYNCHRONIZE, FALSE, GetCurrentThreadId());
    thread = CreateThread(NULL, 0x40000, routine, NULL, 0, NULL);
    assert_non_null(thread);
    return thread;
}

static void alone(void)
{
    ExitThread(5);
}

static void before_another(void)
{
    start(return_seven);
    ExitThread(5);
}

/* The clock is one of the library's threads. */
static void beside_the_clock(void)
{
    HANDLE timer = CreateWaitableTimerW(NULL, TRUE, NULL);
    LARGE_INTEGER due = {.QuadPart = -10000};

    assert_true(SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE));
    assert_int_equal(WaitForSingleObject(timer, INFINITE), WAIT_OBJECT_0);
    before_another();
}

static void together(void)
{
    for (int i = 0; i < TOGETHER; i++)
        start(return_seven);
    ExitThread(5);
}

static HANDLE victim;
static volatile LONG stop;

static DWORD WINAPI spin(LPVOID argument)
{
    (void)argument;
    while (stop == 0)
        ;
    return 11;
}

static DWORD WINAPI end_victim(LPVOID argument)
{
    (void)argument;
    assert_true(TerminateThread(victim, 11));
    assert_int_equal(WaitForSingleObject(victim, INFINITE), WAIT_OBJECT_0);
    return return_seven(NULL);
}

static void beside_a_terminated_one(void)
{
    victim = start(spin);
    start(end_victim);
    ExitThread(5);
}

static void *exit_with_nine(void *argument)
{
    (void)argument;
    usleep(50000);
    exit(9);
}

/* A thread that the library does not know keeps the process alive. */
static void beside_a_stranger(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, exit_with_nine, NULL), 0);
    start(return_seven);
    ExitThread(5);
}

/* Names tell nothing: the program may be called like a thread of the library, and its threads inherit that; */
static void beside_a_stranger_with_our_name(void)
{
    prctl(PR_SET_NAME, "interlock-pool");
    beside_a_stranger();
}

static void take_a_name(PVOID event)
{
    prctl(PR_SET_NAME, "the program's");
    SetEvent(event);
}

/* and a work item may give one to the library's thread. */
static void beside_a_worker_with_another_name(void)
{
    static WORK_QUEUE_ITEM item;
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);

    ExInitializeWorkItem(&item, take_a_name, event);
    ExQueueWorkItem(&item, DelayedWorkQueue);
    assert_int_equal(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
    before_another();
}

/* A thread of which the host does not say whether it has ended is there: no descriptor is left to ask with. */
static void beside_a_stranger_without_descriptors(void)
{
    const struct rlimit few = {64, 64};
    int last = -1, number;

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while ((number = dup(STDERR_FILENO)) >= 0)
        last = number;
    close(last); /* for the list of threads */
    beside_a_stranger();
}

static void leave_with_thirteen(void)
{
    _exit(13);
}

static void with_an_exit_handler(void)
{
    atexit(leave_with_thirteen);
    before_another();
}

static void the_last_code_is_the_process_s(void **state)
{
    static const struct {
        void (*function)(void);
        int code;
    } rows[] = {
        {alone, 5},
        {before_another, 7},
        {beside_the_clock, 7},
        {together, 7},
        {beside_a_terminated_one, 7},
        {beside_a_stranger, 9},
        {beside_a_stranger_with_our_name, 9},
        {beside_a_stranger_without_descriptors, 9},
        {beside_a_worker_with_another_name, 7},
        {with_an_exit_handler, 13},
    };

    (void)state;
    if (test_slowdown() != 1)
        skip(); /* a sanitizer's own thread looks like one of the program's, or it ends the process with another code */
    for (size_t i = 0; i < ARRAYSIZE(rows); i++)
        for (unsigned long round = test_rounds(10); round > 0; round--)
            assert_int_equal(exit_code_of(rows[i].function), rows[i].code);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_code_is_the_process_s),
    };

    return cmocka_run_group_tests_name("win32/lastthread", tests, NULL, NULL);
}
