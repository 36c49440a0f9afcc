/* How the host schedules a new thread: as NT does, by its process's class alone, whatever its creator's priority is. */
#include "support.h"

#include <windows.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE_OF_HIGH (-10) /* two steps for each of the five levels from 8 to 13 */

static int base_nice;

typedef struct scheduling {
    int policy; /* by the system call: a C library that follows POSIX rejects thread ids */
    int nice;
    int priority; /* for NT */
} scheduling;

static scheduling scheduling_of(pid_t thread)
{
    return (scheduling){(int)syscall(SYS_sched_getscheduler, thread), getpriority(PRIO_PROCESS, (id_t)thread), 0};
}

static DWORD WINAPI look_at_myself(LPVOID result)
{
    scheduling *found = result;
    *found = scheduling_of(gettid());
    found->priority = GetThreadPriority(GetCurrentThread());
    return 0;
}

static void assert_new_thread(int nice)
{
    scheduling found;
    HANDLE thread = CreateThread(NULL, 0, look_at_myself, &found, 0, NULL);
    assert_non_null(thread);
    assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    CloseHandle(thread);
    assert_int_equal(found.policy, SCHED_OTHER);
    assert_int_equal(found.nice, nice);
    assert_int_equal(found.priority, THREAD_PRIORITY_NORMAL);
}

static void assert_own_threads(unsigned expected)
{
    DIR *threads = opendir("/proc/self/task");
    unsigned own = 0;
    assert_non_null(threads);
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        char path[300], name[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(name, sizeof(name), file) != NULL && strncmp(name, "interlock-", 10) == 0) {
            scheduling found = scheduling_of(atoi(entry->d_name));
            assert_int_equal(found.policy, SCHED_OTHER);
            assert_int_equal(found.nice, base_nice);
            own++;
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(threads);
    assert_true(own >= expected);
}

static VOID CALLBACK run_work(PTP_CALLBACK_INSTANCE instance, PVOID result, PTP_WORK work)
{
    (void)instance;
    (void)work;
    look_at_myself(result);
}

/* The library's own threads: a worker, and the clock of a timer. */
static void start_own_threads(void)
{
    scheduling found;
    LARGE_INTEGER due = {.QuadPart = -10000};
    HANDLE timer = CreateWaitableTimerW(NULL, TRUE, NULL);
    PTP_WORK work = CreateThreadpoolWork(run_work, &found, NULL);
    assert_non_null(timer);
    assert_non_null(work);
    assert_true(SetWaitableTimer(timer, &due, 1, NULL, NULL, FALSE));
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    assert_int_equal(WaitForSingleObject(timer, INFINITE), WAIT_OBJECT_0);
    assert_int_equal(found.policy, SCHED_OTHER);
    assert_int_equal(found.nice, base_nice);
    assert_own_threads(2);
    CloseThreadpoolWork(work);
    CloseHandle(timer);
}

static void set_host_policy(int policy, int priority)
{
    struct sched_param parameter = {.sched_priority = priority};
    int error = pthread_setschedparam(pthread_self(), policy, &parameter);
    if (error == EPERM) {
        print_message("the host denies real-time scheduling\n");
        skip();
    }
    assert_int_equal(error, 0);
}

static void of_a_creator_that_the_host_runs_in_real_time(void **state)
{
    static const int policies[] = {SCHED_RR, SCHED_FIFO};
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(policies); i++) {
        set_host_policy(policies[i], 1);
        assert_new_thread(base_nice);
        if (i == 0)
            start_own_threads();
        assert_int_equal(scheduling_of(gettid()).policy, policies[i]);
        set_host_policy(SCHED_OTHER, 0);
    }
}

static void set_priority(int priority)
{
    assert_true(SetThreadPriority(GetCurrentThread(), priority));
}

/* Where the host denies it, the thread keeps its nice value, and a new one has it as well. */
static void of_an_urgent_creator(void **state)
{
    static const int priorities[] = {THREAD_PRIORITY_TIME_CRITICAL, THREAD_PRIORITY_HIGHEST, THREAD_PRIORITY_LOWEST,
                                     THREAD_PRIORITY_IDLE};
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(priorities); i++) {
        set_priority(priorities[i]);
        assert_new_thread(base_nice);
    }
    set_priority(THREAD_PRIORITY_NORMAL);
}

/* The last case: the class is a setting of the process from then on. */
static void of_an_urgent_creator_in_a_class(void **state)
{
    int nice = base_nice + NICE_OF_HIGH < -20 ? -20 : base_nice + NICE_OF_HIGH;
    (void)state;
    assert_true(SetPriorityClass(GetCurrentProcess(), HIGH_PRIORITY_CLASS));
    if (scheduling_of(gettid()).nice == base_nice) {
        print_message("the host denies nice values below the present one\n");
        skip();
    }
    set_priority(THREAD_PRIORITY_TIME_CRITICAL);
    assert_new_thread(nice);
    set_priority(THREAD_PRIORITY_IDLE);
    assert_new_thread(nice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_creator_that_the_host_runs_in_real_time),
        cmocka_unit_test(of_an_urgent_creator),
        cmocka_unit_test(of_an_urgent_creator_in_a_class),
    };
    base_nice = getpriority(PRIO_PROCESS, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
