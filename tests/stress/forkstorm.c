/*
 * A process that uses everything at once forks repeatedly. Each child has only the forking thread, whatever the others
 * were doing, and every primitive works there: new ones, and inherited ones that no lost thread can have left locked.
 * The parent is not disturbed.
 */
#include "stress.h"

#include "../support/sanitizers.h"

#include <windows.h>

#include <interlock/io.h>
#include <interlock/nt.h>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN_KEY 77
#define CHILD_SECONDS 60

static struct {
    volatile LONG stop;
    CRITICAL_SECTION section;
    SRWLOCK srw;
    CONDITION_VARIABLE changed;
    volatile LONG turns;
    HANDLE port;
    HANDLE tick;               /* a periodic waitable timer */
    HANDLE semaphore;          /* of the registered wait */
    HANDLE registration;
    volatile LONG signals;
    PTP_POOL pool;
    TP_CALLBACK_ENVIRON how;
    PTP_WORK work[2];          /* of the default pool and of the other one */
    volatile LONG submitted, run;
    HANDLE readable;           /* a descriptor object */
    int ends[2];
    volatile LONG posted, removed;
} storm;

/* Sanitizers do not keep their heap consistent over a fork while other threads use it: then the allocating threads
   pause. */
#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
static pthread_rwlock_t breath = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
#else
static pthread_rwlock_t breath = PTHREAD_RWLOCK_INITIALIZER;
#endif

static volatile int *child_line; /* how far the child has got */

#define in_child(condition) \
    do { \
        *child_line = __LINE__; \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: in the child: %s (last error %u)\n", __FILE__, __LINE__, #condition, GetLastError()); \
            _exit(1); \
        } \
    } while (0)

/* What the parent's threads do until they are stopped. */

static VOID CALLBACK count_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    InterlockedIncrement(&storm.run);
}

static VOID CALLBACK count_signal(PVOID context, BOOLEAN timed_out)
{
    (void)timed_out;
    InterlockedIncrement(context);
}

static VOID CALLBACK count_expiry(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)timer;
    InterlockedIncrement(context);
}

static FILETIME *soon(FILETIME *due)
{
    due->dwLowDateTime = (DWORD)-1000;
    due->dwHighDateTime = (DWORD)-1;
    return due;
}

static void use_pool(void)
{
    static volatile LONG expired; /* not on the stack, which a forked child may reuse: the timer expires there too */
    FILETIME due;
    PTP_TIMER timer = CreateThreadpoolTimer(count_expiry, (PVOID)&expired, &storm.how);

    require(timer != NULL);
    SetThreadpoolTimer(timer, soon(&due), 1, 0);
    for (int i = 0; i < 8; i++) {
        InterlockedIncrement(&storm.submitted);
        SubmitThreadpoolWork(storm.work[i % 2]);
    }
    SetThreadpoolTimer(timer, NULL, 0, 0);
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    CloseThreadpoolTimer(timer);
    Sleep(0);
}

static void use_locks(void)
{
    EnterCriticalSection(&storm.section);
    storm.turns += 1;
    LeaveCriticalSection(&storm.section);
    AcquireSRWLockExclusive(&storm.srw);
    SleepConditionVariableSRW(&storm.changed, &storm.srw, 1, 0);
    ReleaseSRWLockExclusive(&storm.srw);
    WakeAllConditionVariable(&storm.changed);
}

static void use_port(void)
{
    OVERLAPPED_ENTRY entries[4];
    ULONG count = 0;

    if (PostQueuedCompletionStatus(storm.port, 1, 1, NULL))
        InterlockedIncrement(&storm.posted);
    if (GetQueuedCompletionStatusEx(storm.port, entries, 4, &count, 1, FALSE))
        InterlockedExchangeAdd(&storm.removed, (LONG)count);
}

static DWORD WINAPI live_shortly(LPVOID argument)
{
    SleepEx(0, TRUE);
    return (DWORD)(ULONG_PTR)argument;
}

static void use_threads(void)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, "forkstorm");
    HANDLE thread = CreateThread(NULL, 0x40000, live_shortly, (LPVOID)5, 0, NULL);
    HANDLE either[2] = {event, thread};

    require(event != NULL && thread != NULL);
    require(WaitForMultipleObjects(2, either, FALSE, INFINITE) == WAIT_OBJECT_0 + 1);
    CloseHandle(thread);
    CloseHandle(event);
}

static void use_descriptor(void)
{
    HANDLE both[2] = {storm.readable, storm.tick};
    char byte;

    require(write(storm.ends[1], "x", 1) == 1);
    require(WaitForMultipleObjects(2, both, FALSE, INFINITE) <= WAIT_OBJECT_0 + 1);
    require(read(storm.ends[0], &byte, 1) == 1);
    require(WaitForSingleObject(storm.readable, 1) == WAIT_TIMEOUT);
}

static void (*const uses[])(void) = {use_pool, use_pool, use_locks, use_locks, use_port, use_port, use_threads,
                                     use_descriptor};

static void use_again_and_again(unsigned index)
{
    while (!load(&storm.stop)) {
        pthread_rwlock_rdlock(&breath);
        uses[index]();
        pthread_rwlock_unlock(&breath);
    }
}

/* What a child does. */

static void child_waits(void)
{
    char name[32]; /* its own: the parent's event is shared with its children */

    snprintf(name, sizeof(name), "forkstorm %d", getpid());
    HANDLE objects[3] = {CreateEventA(NULL, FALSE, FALSE, name), CreateSemaphoreA(NULL, 0, 5, NULL),
                         CreateMutexA(NULL, FALSE, NULL)};

    in_child(objects[0] != NULL && objects[1] != NULL && objects[2] != NULL);
    in_child(WaitForMultipleObjects(2, objects, FALSE, 1) == WAIT_TIMEOUT);
    in_child(WaitForMultipleObjects(3, objects, TRUE, 1) == WAIT_TIMEOUT);
    in_child(SetEvent(objects[0]) && ReleaseSemaphore(objects[1], 1, NULL));
    in_child(WaitForMultipleObjects(3, objects, TRUE, INFINITE) == WAIT_OBJECT_0);
    in_child(ReleaseMutex(objects[2]));
    for (int i = 0; i < 3; i++)
        in_child(CloseHandle(objects[i]));
}

typedef struct meeting {
    HANDLE there, back;
    CRITICAL_SECTION section;
    CONDITION_VARIABLE changed;
    SRWLOCK srw;
    volatile LONG word, stage;
} meeting;

static DWORD WINAPI meet(LPVOID argument)
{
    meeting *with = argument;
    LONG undesired = 0;

    in_child(SignalObjectAndWait(with->there, with->back, INFINITE, FALSE) == WAIT_OBJECT_0);
    while (load(&with->word) == 0)
        in_child(WaitOnAddress(&with->word, &undesired, sizeof(undesired), INFINITE));
    AcquireSRWLockExclusive(&with->srw);
    ReleaseSRWLockExclusive(&with->srw);
    EnterCriticalSection(&with->section);
    with->stage = 1;
    WakeAllConditionVariable(&with->changed);
    LeaveCriticalSection(&with->section);
    Sleep(INFINITE);
    return 0;
}

static void child_threads(void)
{
    meeting with = {.there = CreateEventA(NULL, FALSE, FALSE, NULL), .back = CreateEventA(NULL, FALSE, FALSE, NULL)};
    HANDLE thread;
    DWORD code = 0;

    InitializeCriticalSection(&with.section);
    InitializeConditionVariable(&with.changed);
    InitializeSRWLock(&with.srw);
    thread = CreateThread(NULL, 0x40000, meet, &with, CREATE_SUSPENDED, NULL);
    in_child(thread != NULL);
    in_child(ResumeThread(thread) == 1);
    in_child(SignalObjectAndWait(with.back, with.there, INFINITE, FALSE) == WAIT_OBJECT_0);
    store(&with.word, 1);
    WakeByAddressAll((PVOID)&with.word);
    EnterCriticalSection(&with.section);
    while (!with.stage)
        in_child(SleepConditionVariableCS(&with.changed, &with.section, INFINITE));
    LeaveCriticalSection(&with.section);
    in_child(TerminateThread(thread, 9));
    in_child(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    in_child(GetExitCodeThread(thread, &code) && code == 9);
    in_child(CloseHandle(thread) && CloseHandle(with.there) && CloseHandle(with.back));
    DeleteCriticalSection(&with.section);
}

static void child_pool(void)
{
    for (int i = 0; i < 2; i++) {
        LONG before;

        WaitForThreadpoolWorkCallbacks(storm.work[i], TRUE);
        before = load(&storm.run);
        SubmitThreadpoolWork(storm.work[i]);
        *child_line = __LINE__;
        WaitForThreadpoolWorkCallbacks(storm.work[i], FALSE);
        in_child(load(&storm.run) > before);
    }
}

static void child_pool_objects(void)
{
    static volatile LONG expired, signals;
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON how;
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL), wait, queue = CreateTimerQueue(), timer;
    FILETIME due;

    InitializeThreadpoolEnvironment(&how);
    SetThreadpoolCallbackCleanupGroup(&how, group, NULL);
    SetThreadpoolTimer(CreateThreadpoolTimer(count_expiry, (PVOID)&expired, &how), soon(&due), 0, 0);
    in_child(RegisterWaitForSingleObject(&wait, event, count_signal, (PVOID)&signals, INFINITE, WT_EXECUTEONLYONCE));
    in_child(CreateTimerQueueTimer(&timer, queue, count_signal, (PVOID)&signals, 1, 0, 0));
    in_child(SetEvent(event));
    in_child(group != NULL);
    await(load(&expired) == 1);
    in_child(queue != NULL);
    await(load(&signals) == 2);
    in_child(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
    in_child(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
    CloseThreadpoolCleanupGroupMembers(group, FALSE, NULL);
    CloseThreadpoolCleanupGroup(group);
    in_child(CloseHandle(event));
}

static void child_registered_wait(void)
{
    LONG before = load(&storm.signals);

    in_child(QueueUserWorkItem(live_shortly, NULL, 0)); /* the first use of the pool repairs it */
    in_child(ReleaseSemaphore(storm.semaphore, 1, NULL));
    *child_line = __LINE__;
    await(load(&storm.signals) > before);
}

static VOID CALLBACK timer_apc(LPVOID argument, DWORD low, DWORD high)
{
    (void)low;
    (void)high;
    *(int *)argument += 1;
}

static VOID CALLBACK user_apc(ULONG_PTR argument)
{
    *(int *)argument += 1;
}

static void child_timers_and_apcs(void)
{
    HANDLE timer = CreateWaitableTimerA(NULL, TRUE, NULL);
    LARGE_INTEGER due = {.QuadPart = -1000};
    int ran = 0;

    in_child(timer != NULL);
    in_child(SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE));
    in_child(WaitForSingleObject(timer, INFINITE) == WAIT_OBJECT_0);
    in_child(SetWaitableTimer(timer, &due, 0, timer_apc, &ran, FALSE));
    in_child(SleepEx(INFINITE, TRUE) == WAIT_IO_COMPLETION && ran == 1);
    in_child(QueueUserAPC(user_apc, GetCurrentThread(), (ULONG_PTR)&ran));
    in_child(SleepEx(INFINITE, TRUE) == WAIT_IO_COMPLETION && ran == 2);
    in_child(CloseHandle(timer));
    in_child(WaitForSingleObject(storm.tick, INFINITE) == WAIT_OBJECT_0); /* continues in the child */
}

static void child_port(HANDLE port)
{
    ULONG_PTR key = 0;
    LPOVERLAPPED overlapped;
    DWORD bytes;

    in_child(PostQueuedCompletionStatus(port, 3, OWN_KEY, NULL));
    while (key != OWN_KEY)
        in_child(GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, INFINITE));
    in_child(bytes == 3);
    in_child(!GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, 1) && GetLastError() == WAIT_TIMEOUT);
}

static void child_ports(void)
{
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);

    in_child(port != NULL);
    child_port(port);
    in_child(CloseHandle(port));
    child_port(storm.port);
}

static void child_process(void)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION process;
    char command[] = "/bin/true";
    DWORD code = 1;

    in_child(CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &process));
    in_child(WaitForSingleObject(process.hProcess, INFINITE) == WAIT_OBJECT_0);
    in_child(GetExitCodeProcess(process.hProcess, &code) && code == 0);
    in_child(CloseHandle(process.hProcess) && CloseHandle(process.hThread));
}

static DWORD WINAPI write_later(LPVOID argument)
{
    Sleep(1);
    return (DWORD)write(*(int *)argument, "x", 1);
}

static void child_descriptors(void)
{
    HANDLE readable, writer;
    int ends[2];

    in_child(pipe(ends) == 0);
    in_child(IoCreateDescriptorObject(&readable, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0], IO_DESCRIPTOR_READABLE) == 0);
    in_child(WaitForSingleObject(readable, 0) == WAIT_TIMEOUT);
    writer = CreateThread(NULL, 0x40000, write_later, &ends[1], 0, NULL);
    in_child(WaitForSingleObject(readable, INFINITE) == WAIT_OBJECT_0);
    in_child(WaitForSingleObject(writer, INFINITE) == WAIT_OBJECT_0);
    in_child(CloseHandle(readable) && CloseHandle(writer));
    close(ends[0]);
    close(ends[1]);
}

static void (*const child_uses[])(void) = {
    child_waits, child_threads, child_pool,    child_pool_objects, child_registered_wait, child_timers_and_apcs,
    child_ports, child_process, child_descriptors,
};

/* Each child begins with another primitive, so each is the first one used once. */
static _Noreturn void live_as_child(unsigned long number)
{
    signal(SIGSEGV, SIG_DFL); /* cmocka's handler would turn it into an exit */
    signal(SIGBUS, SIG_DFL);
    /* The watchdog may be locked here. */
    alarm(test_heap_may_stay_locked() ? TEST_HEAP_SECONDS : CHILD_SECONDS * test_slowdown());
    for (unsigned long i = 0; i < ARRAYSIZE(child_uses); i++)
        child_uses[(i + number) % ARRAYSIZE(child_uses)]();
    _exit(0);
}

static void fork_once(unsigned long number)
{
    int calm = test_slowdown() != 1, status = -1;
    pid_t child;

    if (calm)
        pthread_rwlock_wrlock(&breath);
    child = fork();
    if (child == 0)
        live_as_child(number);
    if (calm)
        pthread_rwlock_unlock(&breath);
    require(child > 0);
    require(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM && test_heap_may_stay_locked())
        return;
    if (status != 0)
        fprintf(stderr, "child %lu ended with %#x after line %d\n", number, (unsigned)status, *child_line);
    require(status == 0);
}

static void take_part(void *argument, unsigned index)
{
    (void)argument;
    if (index < ARRAYSIZE(uses)) {
        use_again_and_again(index);
        return;
    }
    for (unsigned long i = 0; i < test_rounds(60); i++)
        fork_once(i);
    store(&storm.stop, 1);
}

static ULONG handle_count(void)
{
    ULONG count = 0;

    assert_int_equal(NtQueryInformationProcess(GetCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL), 0);
    return count;
}

static void begin(void)
{
    LARGE_INTEGER due = {.QuadPart = -1000};

    child_line = mmap(NULL, sizeof(*child_line), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(child_line != MAP_FAILED);
    InitializeCriticalSection(&storm.section);
    assert_int_equal(pipe(storm.ends), 0);
    assert_int_equal(IoCreateDescriptorObject(&storm.readable, IO_DESCRIPTOR_ALL_ACCESS, NULL, storm.ends[0],
                                              IO_DESCRIPTOR_READABLE), 0);
    storm.port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    storm.tick = CreateWaitableTimerA(NULL, FALSE, NULL);
    assert_true(SetWaitableTimer(storm.tick, &due, 2, NULL, NULL, FALSE));
    storm.semaphore = CreateSemaphoreA(NULL, 0, MAXLONG, NULL);
    assert_true(RegisterWaitForSingleObject(&storm.registration, storm.semaphore, count_signal,
                                            (PVOID)&storm.signals, INFINITE, 0));
    storm.pool = CreateThreadpool(NULL);
    SetThreadpoolThreadMaximum(storm.pool, 3);
    InitializeThreadpoolEnvironment(&storm.how);
    SetThreadpoolCallbackPool(&storm.how, storm.pool);
    storm.work[0] = CreateThreadpoolWork(count_work, NULL, NULL);
    storm.work[1] = CreateThreadpoolWork(count_work, NULL, &storm.how);
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        WaitForThreadpoolWorkCallbacks(storm.work[i], FALSE);
        CloseThreadpoolWork(storm.work[i]);
    }
    CloseThreadpool(storm.pool);
    assert_true(UnregisterWaitEx(storm.registration, INVALID_HANDLE_VALUE));
    assert_true(CloseHandle(storm.semaphore) && CloseHandle(storm.tick) && CloseHandle(storm.port));
    assert_true(CloseHandle(storm.readable));
    close(storm.ends[0]);
    close(storm.ends[1]);
    DeleteCriticalSection(&storm.section);
    munmap((void *)child_line, sizeof(*child_line));
}

static void children_of_a_storm(void **state)
{
    OVERLAPPED_ENTRY entries[64];
    ULONG handles = handle_count(), count;

    (void)state;
#ifdef THREAD_SANITIZER
    skip(); /* its runtime may hold a lock of its own over a fork, and a child that starts a thread then hangs */
#endif
    begin();
    run_threads(ARRAYSIZE(uses) + 1, HANG_SECONDS, take_part, NULL);
    while (GetQueuedCompletionStatusEx(storm.port, entries, ARRAYSIZE(entries), &count, 0, FALSE))
        storm.removed += (LONG)count;
    end();
    assert_int_equal(storm.run, storm.submitted);
    assert_int_equal(storm.removed, storm.posted);
    assert_int_equal(storm.signals, 0); /* those were the children's */
    assert_int_equal(handle_count(), handles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_of_a_storm),
    };

    return cmocka_run_group_tests_name("stress/forkstorm", tests, NULL, NULL);
}
