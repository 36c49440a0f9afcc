/*
 * cancel.c: threads that are cancelled (pthread_cancel) in calls of the library. None of them is a cancellation point:
 * the call does what it would have done, and the thread ends at the next point of its own.
 */
#include <windows.h>

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/nt.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define HANG_SECONDS 60

/* Assertions of other threads end the program: those of cmocka work in the main thread only. */
#define require(condition) ((condition) ? (void)0 : fail_at(#condition, __LINE__))

static _Noreturn void fail_at(const char *condition, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, line, condition);
    abort();
}

static struct {
    HANDLE event, second, semaphore, port, keyed, timer, mutex, process, readable, thread;
    SRWLOCK srw;
    CRITICAL_SECTION section;
    CONDITION_VARIABLE variable;
    SYNCHRONIZATION_BARRIER barrier;
    INIT_ONCE once;
    KQUEUE queue;
    LIST_ENTRY entry;
    EX_PUSH_LOCK pushlock;
    FAST_MUTEX fast;
    ERESOURCE resource;
    EX_RUNDOWN_REF rundown;
    PTP_WORK work;
    int ends[2];
    volatile LONG word;
} shared;

/* A call that waits, its preparation, and what ends the wait. */
struct blocking {
    const char *name;
    void (*prepare)(void);
    void (*call)(void);
    void (*release)(void);
};

static volatile LONG thread_id, returned, cleaned, destroyed;
static pthread_key_t key;

static void nothing(void)
{
}

static void set_event(void)
{
    require(SetEvent(shared.event));
}

static void wait_single(void)
{
    require(WaitForSingleObject(shared.event, INFINITE) == WAIT_OBJECT_0);
}

static void wait_timed(void)
{
    require(WaitForSingleObjectEx(shared.event, 600000, TRUE) == WAIT_OBJECT_0);
}

static void wait_all(void)
{
    HANDLE both[] = {shared.event, shared.semaphore};

    require(WaitForMultipleObjects(2, both, TRUE, INFINITE) == WAIT_OBJECT_0);
    require(ReleaseSemaphore(shared.semaphore, 1, NULL));
}

static void signal_and_wait(void)
{
    require(SignalObjectAndWait(shared.second, shared.event, INFINITE, FALSE) == WAIT_OBJECT_0);
    require(WaitForSingleObject(shared.second, 0) == WAIT_OBJECT_0);
}

static void NTAPI routine(ULONG_PTR argument)
{
    (void)argument;
}

static void sleep_alertable(void)
{
    require(SleepEx(INFINITE, TRUE) == WAIT_IO_COMPLETION);
}

static void queue_apc(void)
{
    HANDLE thread = OpenThread(THREAD_SET_CONTEXT, FALSE, (DWORD)thread_id);

    require(QueueUserAPC(routine, thread, 0) && CloseHandle(thread));
}

static void hold_srw(void)
{
    AcquireSRWLockExclusive(&shared.srw);
}

static void release_srw(void)
{
    ReleaseSRWLockExclusive(&shared.srw);
}

static void take_srw(void)
{
    AcquireSRWLockExclusive(&shared.srw);
    ReleaseSRWLockExclusive(&shared.srw);
}

static void share_srw(void)
{
    AcquireSRWLockShared(&shared.srw);
    ReleaseSRWLockShared(&shared.srw);
}

static void hold_section(void)
{
    EnterCriticalSection(&shared.section);
}

static void release_section(void)
{
    LeaveCriticalSection(&shared.section);
}

static void take_section(void)
{
    EnterCriticalSection(&shared.section);
    LeaveCriticalSection(&shared.section);
}

static void sleep_variable(void)
{
    AcquireSRWLockExclusive(&shared.srw);
    while (!shared.word)
        require(SleepConditionVariableSRW(&shared.variable, &shared.srw, INFINITE, 0));
    shared.word = 0;
    ReleaseSRWLockExclusive(&shared.srw);
}

static void wake_variable(void)
{
    AcquireSRWLockExclusive(&shared.srw);
    shared.word = 1;
    ReleaseSRWLockExclusive(&shared.srw);
    WakeConditionVariable(&shared.variable);
}

static void wait_address(void)
{
    LONG undesired = 0;

    while (!__atomic_load_n(&shared.word, __ATOMIC_ACQUIRE))
        require(WaitOnAddress(&shared.word, &undesired, sizeof(undesired), INFINITE));
    __atomic_store_n(&shared.word, 0, __ATOMIC_RELAXED);
}

static void wake_address(void)
{
    __atomic_store_n(&shared.word, 1, __ATOMIC_RELEASE);
    WakeByAddressAll((PVOID)&shared.word);
}

static void wait_port(void)
{
    ULONG_PTR number;
    LPOVERLAPPED overlapped;
    DWORD bytes;

    require(GetQueuedCompletionStatus(shared.port, &bytes, &number, &overlapped, INFINITE) && number == 5);
}

static void post(void)
{
    require(PostQueuedCompletionStatus(shared.port, 0, 5, NULL));
}

static void remove_queue(void)
{
    require(KeRemoveQueue(&shared.queue, KernelMode, NULL) == &shared.entry);
}

static void insert_queue(void)
{
    KeInsertQueue(&shared.queue, &shared.entry);
}

static void enter_barrier(void)
{
    EnterSynchronizationBarrier(&shared.barrier, SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY);
}

static void begin_once(void)
{
    BOOL pending;

    InitOnceInitialize(&shared.once);
    require(InitOnceBeginInitialize(&shared.once, 0, &pending, NULL) && pending);
}

static void await_once(void)
{
    BOOL pending;

    require(InitOnceBeginInitialize(&shared.once, 0, &pending, NULL) && !pending);
}

static void complete_once(void)
{
    require(InitOnceComplete(&shared.once, 0, NULL));
}

static void wait_key(void)
{
    require(NtWaitForKeyedEvent(shared.keyed, (PVOID)&shared.word, FALSE, NULL) == 0);
}

static void release_key(void)
{
    require(NtReleaseKeyedEvent(shared.keyed, (PVOID)&shared.word, FALSE, NULL) == 0);
}

static void hold_pushlock(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&shared.pushlock);
}

static void release_pushlock(void)
{
    ExReleasePushLockExclusive(&shared.pushlock);
    KeLeaveCriticalRegion();
}

static void take_pushlock(void)
{
    hold_pushlock();
    release_pushlock();
}

static void hold_fast(void)
{
    ExAcquireFastMutex(&shared.fast);
}

static void release_fast(void)
{
    ExReleaseFastMutex(&shared.fast);
}

static void take_fast(void)
{
    hold_fast();
    release_fast();
}

static void hold_resource(void)
{
    KeEnterCriticalRegion();
    require(ExAcquireResourceExclusiveLite(&shared.resource, TRUE));
}

static void release_resource(void)
{
    ExReleaseResourceLite(&shared.resource);
    KeLeaveCriticalRegion();
}

static void take_resource(void)
{
    hold_resource();
    release_resource();
}

static void hold_rundown(void)
{
    ExInitializeRundownProtection(&shared.rundown);
    require(ExAcquireRundownProtection(&shared.rundown));
}

static void release_rundown(void)
{
    ExReleaseRundownProtection(&shared.rundown);
}

static void await_rundown(void)
{
    ExWaitForRundownProtectionRelease(&shared.rundown);
}

static VOID CALLBACK work_until_set(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    WaitForSingleObject(shared.event, INFINITE);
}

static void submit_work(void)
{
    SubmitThreadpoolWork(shared.work);
}

static void wait_work(void)
{
    WaitForThreadpoolWorkCallbacks(shared.work, FALSE);
}

static void start_process(void)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    char command[] = "/bin/sleep 60";

    require(CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    CloseHandle(information.hThread);
    shared.process = information.hProcess;
}

static void wait_process(void)
{
    DWORD code;

    require(WaitForSingleObject(shared.process, INFINITE) == WAIT_OBJECT_0);
    require(GetExitCodeProcess(shared.process, &code) && code == 9 && CloseHandle(shared.process));
}

static void end_process(void)
{
    require(TerminateProcess(shared.process, 9));
}

static void open_pipe(void)
{
    require(pipe(shared.ends) == 0);
    require(IoCreateDescriptorObject(&shared.readable, SYNCHRONIZE, NULL, shared.ends[0], IO_DESCRIPTOR_READABLE) == 0);
}

static void wait_pipe(void)
{
    require(WaitForSingleObject(shared.readable, INFINITE) == WAIT_OBJECT_0 && CloseHandle(shared.readable));
}

static void write_pipe(void)
{
    require(write(shared.ends[1], "x", 1) == 1);
}

static void suspend_self(void)
{
    require(SuspendThread(GetCurrentThread()) == 0);
}

static void resume_thread(void)
{
    HANDLE thread = OpenThread(THREAD_SUSPEND_RESUME, FALSE, (DWORD)thread_id);

    while (ResumeThread(thread) != 1)
        sched_yield();
    require(CloseHandle(thread));
}

static void set_timer(void)
{
    LARGE_INTEGER soon = {.QuadPart = -10};

    require(SetWaitableTimer(shared.timer, &soon, 0, NULL, NULL, FALSE));
}

static void wait_timer(void)
{
    require(WaitForSingleObject(shared.timer, INFINITE) == WAIT_OBJECT_0);
}

static const struct blocking blocking[] = {
    {"WaitForSingleObject", nothing, wait_single, set_event},
    {"WaitForSingleObjectEx", nothing, wait_timed, set_event},
    {"WaitForMultipleObjects", nothing, wait_all, set_event},
    {"SignalObjectAndWait", nothing, signal_and_wait, set_event},
    {"SleepEx", nothing, sleep_alertable, queue_apc},
    {"AcquireSRWLockExclusive", hold_srw, take_srw, release_srw},
    {"AcquireSRWLockShared", hold_srw, share_srw, release_srw},
    {"EnterCriticalSection", hold_section, take_section, release_section},
    {"SleepConditionVariableSRW", nothing, sleep_variable, wake_variable},
    {"WaitOnAddress", nothing, wait_address, wake_address},
    {"GetQueuedCompletionStatus", nothing, wait_port, post},
    {"KeRemoveQueue", nothing, remove_queue, insert_queue},
    {"EnterSynchronizationBarrier", nothing, enter_barrier, enter_barrier},
    {"InitOnceBeginInitialize", begin_once, await_once, complete_once},
    {"NtWaitForKeyedEvent", nothing, wait_key, release_key},
    {"ExAcquirePushLockExclusive", hold_pushlock, take_pushlock, release_pushlock},
    {"ExAcquireFastMutex", hold_fast, take_fast, release_fast},
    {"ExAcquireResourceExclusiveLite", hold_resource, take_resource, release_resource},
    {"ExWaitForRundownProtectionRelease", hold_rundown, await_rundown, release_rundown},
    {"WaitForThreadpoolWorkCallbacks", submit_work, wait_work, set_event},
    {"a process", start_process, wait_process, end_process},
    {"a descriptor", open_pipe, wait_pipe, write_pipe},
    {"a timer", nothing, wait_timer, set_timer},
    {"SuspendThread of itself", nothing, suspend_self, resume_thread},
};

/* Handlers and destructors of a cancelled thread may use everything. */
static void use_library(void)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);

    require(SetEvent(event) && WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0);
    require(WaitForSingleObject(event, 1) == WAIT_TIMEOUT && CloseHandle(event));
    take_srw();
    take_section();
}

static void clean_up(void *argument)
{
    (void)argument;
    use_library();
    InterlockedIncrement(&cleaned);
}

static void destroy(void *argument)
{
    (void)argument;
    use_library();
    InterlockedIncrement(&destroyed);
}

static void *be_cancelled(void *argument)
{
    const struct blocking *one = argument;

    pthread_setspecific(key, one);
    pthread_cleanup_push(clean_up, NULL);
    __atomic_store_n(&thread_id, (LONG)GetCurrentThreadId(), __ATOMIC_RELEASE);
    one->call();
    __atomic_store_n(&returned, 1, __ATOMIC_RELEASE);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_in(const struct blocking *one, int cancel_first)
{
    pthread_t thread;
    void *result;

    thread_id = returned = cleaned = destroyed = 0;
    one->prepare();
    require(pthread_create(&thread, NULL, be_cancelled, (void *)(uintptr_t)one) == 0);
    if (cancel_first)
        require(pthread_cancel(thread) == 0);
    while (!__atomic_load_n(&thread_id, __ATOMIC_ACQUIRE) || !sleeps_in_the_host((unsigned long)thread_id))
        sched_yield();
    if (!cancel_first)
        require(pthread_cancel(thread) == 0);
    one->release();
    require(pthread_join(thread, &result) == 0);
    if (!returned || result != PTHREAD_CANCELED || cleaned != 1 || destroyed != 1) {
        print_message("%s: returned %d cleaned %d destroyed %d\n", one->name, returned, cleaned, destroyed);
        fail();
    }
}

static void no_wait_is_a_cancellation_point(void **state)
{
    (void)state;
    watchdog_start(HANG_SECONDS);
    for (unsigned i = 0; i < sizeof(blocking) / sizeof(blocking[0]); i++) {
        cancel_in(&blocking[i], 0);
        cancel_in(&blocking[i], 1);
    }
    watchdog_stop();
}

/* Calls that use files, processes, time zones or the heap, with a cancellation pending. */
static void *call_with_cancellation_pending(void *argument)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    char command[] = "/bin/true", missing[] = "/nothing/there";
    FILETIME created, exited, kernel, user, local;
    SYSTEMTIME time;
    WCHAR *description;
    DWORD code;
    HANDLE export;
    int descriptor;

    pthread_cancel(pthread_self());
    require(CreateProcessA(NULL, command, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup, &information));
    require(ResumeThread(information.hThread) == 1);
    require(WaitForSingleObject(information.hProcess, INFINITE) == WAIT_OBJECT_0);
    require(GetExitCodeProcess(information.hProcess, &code) && code == 0);
    require(CloseHandle(information.hProcess) && CloseHandle(information.hThread));
    require(!CreateProcessA(NULL, missing, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    require(GetThreadTimes(shared.thread, &created, &exited, &kernel, &user));
    require(SetThreadDescription(shared.thread, u"named") >= 0);
    require(GetThreadDescription(shared.thread, &description) >= 0 && LocalFree(description) == NULL);
    GetLocalTime(&time);
    require(FileTimeToLocalFileTime(&created, &local));
    IsDebuggerPresent();
    OutputDebugStringA("");
    require(GetProcAddress(GetModuleHandleA("kernel32"), "nothing") == NULL);
    require(IoExportObject(shared.event, &export, &descriptor) == 0 && CloseHandle(export));
    Sleep(1);
    SwitchToThread();
    __atomic_store_n((volatile LONG *)argument, 1, __ATOMIC_RELEASE);
    pthread_testcancel();
    return NULL;
}

static void no_call_is_a_cancellation_point(void **state)
{
    volatile LONG done = 0;
    pthread_t thread;
    void *result;

    (void)state;
    watchdog_start(HANG_SECONDS);
    require(pthread_create(&thread, NULL, call_with_cancellation_pending, (void *)&done) == 0);
    require(pthread_join(thread, &result) == 0);
    watchdog_stop();
    assert_int_equal(done, 1);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* Not in pause or the like: sanitizers lose track of a thread that ends in a function of theirs. */
static void await_cancellation(void)
{
    for (;;) {
        Sleep(1);
        pthread_testcancel();
    }
}

static void *own_and_wait(void *argument)
{
    require(WaitForSingleObject(shared.mutex, INFINITE) == WAIT_OBJECT_0);
    pthread_cleanup_push(clean_up, NULL);
    __atomic_store_n((volatile LONG *)argument, 1, __ATOMIC_RELEASE);
    await_cancellation();
    pthread_cleanup_pop(0);
    return NULL;
}

static void a_cancelled_owner_abandons_its_mutex(void **state)
{
    volatile LONG owned = 0;
    pthread_t thread;

    (void)state;
    require(pthread_create(&thread, NULL, own_and_wait, (void *)&owned) == 0);
    while (!__atomic_load_n(&owned, __ATOMIC_ACQUIRE))
        sched_yield();
    require(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
    assert_int_equal(WaitForSingleObject(shared.mutex, 0), WAIT_ABANDONED);
    assert_true(ReleaseMutex(shared.mutex));
    assert_int_equal(WaitForSingleObject(shared.mutex, 0), WAIT_OBJECT_0);
    assert_true(ReleaseMutex(shared.mutex));
}

/* An APC routine is the program's own code, and may have points. */
static void NTAPI look_for_cancellation(ULONG_PTR argument)
{
    *(volatile LONG *)argument = 1;
    pthread_testcancel();
    *(volatile LONG *)argument = 2;
}

static void *wait_for_apc(void *argument)
{
    require(WaitForSingleObject(shared.mutex, INFINITE) == WAIT_OBJECT_0);
    require(QueueUserAPC(look_for_cancellation, GetCurrentThread(), (ULONG_PTR)argument));
    pthread_cancel(pthread_self());
    SleepEx(INFINITE, TRUE);
    return NULL;
}

static void a_cancellation_in_an_apc_ends_the_thread(void **state)
{
    volatile LONG reached = 0;
    pthread_t thread;
    void *result;

    (void)state;
    watchdog_start(HANG_SECONDS);
    require(pthread_create(&thread, NULL, wait_for_apc, (void *)&reached) == 0);
    require(pthread_join(thread, &result) == 0);
    watchdog_stop();
    assert_int_equal(reached, 1);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(WaitForSingleObject(shared.mutex, 0), WAIT_ABANDONED);
    assert_true(ReleaseMutex(shared.mutex));
    use_library();
}

/* A handle that stays open is a leak, also of a forked child. */
static int close_all(void **state)
{
    HANDLE all[] = {shared.event, shared.second, shared.semaphore, shared.port,
                    shared.timer, shared.mutex,  shared.thread,    shared.keyed};

    (void)state;
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        require(CloseHandle(all[i]));
    CloseThreadpoolWork(shared.work);
    DeleteCriticalSection(&shared.section);
    DeleteSynchronizationBarrier(&shared.barrier);
    return ExDeleteResourceLite(&shared.resource);
}

/* Writing the output at exit is a cancellation point: it must not end the thread there. */
static void *exit_while_cancelled(void *argument)
{
    (void)argument;
    printf("something to be written at the exit\n");
    pthread_cancel(pthread_self());
    ExitProcess(43);
}

static void an_exit_is_not_cancelled(void **state)
{
    pid_t child;
    int status;

    (void)state;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        pthread_t thread;

        alarm(HANG_SECONDS);
        close_all(NULL);
        require(freopen("/dev/null", "w", stdout) != NULL);
        require(pthread_create(&thread, NULL, exit_while_cancelled, NULL) == 0);
        for (;;)
            pause();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 43);
}

/* A thread of CreateThread is cancelled like any other; its object is signaled. */
static DWORD WINAPI run_until_cancelled(LPVOID argument)
{
    __atomic_store_n((pthread_t *)argument, pthread_self(), __ATOMIC_RELEASE);
    await_cancellation();
    return 0;
}

static void a_thread_of_create_thread(void **state)
{
    pthread_t thread = 0;
    HANDLE handle = CreateThread(NULL, 0, run_until_cancelled, (LPVOID)&thread, 0, NULL);

    (void)state;
    watchdog_start(HANG_SECONDS);
    while (__atomic_load_n(&thread, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    require(pthread_cancel(thread) == 0);
    assert_int_equal(WaitForSingleObject(handle, INFINITE), WAIT_OBJECT_0);
    watchdog_stop();
    assert_true(CloseHandle(handle));
}

static int prepare(void **state)
{
    (void)state;
    shared.event = CreateEventA(NULL, FALSE, FALSE, NULL);
    shared.second = CreateEventA(NULL, FALSE, FALSE, NULL);
    shared.semaphore = CreateSemaphoreA(NULL, 1, 1, NULL);
    shared.port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    shared.timer = CreateWaitableTimerA(NULL, FALSE, NULL);
    shared.mutex = CreateMutexA(NULL, FALSE, NULL);
    shared.thread = OpenThread(THREAD_ALL_ACCESS, FALSE, GetCurrentThreadId());
    shared.work = CreateThreadpoolWork(work_until_set, NULL, NULL);
    InitializeCriticalSection(&shared.section);
    InitializeSynchronizationBarrier(&shared.barrier, 2, -1);
    KeInitializeQueue(&shared.queue, 0);
    ExInitializeFastMutex(&shared.fast);
    ExInitializeResourceLite(&shared.resource);
    if (NtCreateKeyedEvent(&shared.keyed, KEYEDEVENT_ALL_ACCESS, NULL, 0) != 0)
        return -1;
    return pthread_key_create(&key, destroy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wait_is_a_cancellation_point),
        cmocka_unit_test(no_call_is_a_cancellation_point),
        cmocka_unit_test(a_cancelled_owner_abandons_its_mutex),
        cmocka_unit_test(a_cancellation_in_an_apc_ends_the_thread),
        cmocka_unit_test(an_exit_is_not_cancelled),
        cmocka_unit_test(a_thread_of_create_thread),
    };

    return cmocka_run_group_tests(tests, prepare, close_all);
}
