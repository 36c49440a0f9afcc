/*
 * errno.c: no function of the library changes errno, whether it succeeds, fails, waits, lacks memory or starts a
 * thread; nor does a suspension change the thread's errno. tests/surface also checks errno after each of its calls.
 */
#include "heap.h"

#include <windows.h>

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/nt.h>

#include <pthread.h>
#include <sys/resource.h>

#include "child.h"
#include "support.h"

#define UNTOUCHED 7777

/* On any thread: the call leaves errno alone. */
#define quiet(call)                                                                                                   \
    do {                                                                                                              \
        errno = UNTOUCHED;                                                                                            \
        (void)(call);                                                                                                 \
        check_errno(#call, __LINE__);                                                                                 \
    } while (0)

static void check_errno(const char *call, int line)
{
    int found = errno;

    if (found != UNTOUCHED) {
        fprintf(stderr, "%s:%d: errno is %d after %s\n", __FILE__, line, found, call);
        abort();
    }
}

static KQUEUE queue; /* the thread stays its own */

static void timed_waits(void **state)
{
    static SRWLOCK lock = SRWLOCK_INIT;
    static CONDITION_VARIABLE variable = CONDITION_VARIABLE_INIT;
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL), timer = CreateWaitableTimerA(NULL, FALSE, NULL);
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    HANDLE both[] = {event, timer};
    LARGE_INTEGER soon = {.QuadPart = -10000}, date;
    LONG word = 0, same = 0;
    OVERLAPPED_ENTRY packet;
    FILETIME now;
    ULONG count;
    KEVENT kernel_event;

    (void)state;
    quiet(WaitForSingleObject(event, 2));
    quiet(WaitForMultipleObjects(2, both, TRUE, 2));
    quiet(WaitForMultipleObjects(2, both, FALSE, 2));
    quiet(SleepEx(2, TRUE));
    quiet(Sleep(2));
    quiet(Sleep(0));
    quiet(SwitchToThread());
    quiet(WaitOnAddress(&word, &same, sizeof(word), 2));
    quiet(GetQueuedCompletionStatusEx(port, &packet, 1, &count, 2, FALSE));
    AcquireSRWLockExclusive(&lock);
    quiet(SleepConditionVariableSRW(&variable, &lock, 2, 0));
    ReleaseSRWLockExclusive(&lock);
    quiet(SetWaitableTimer(timer, &soon, 0, NULL, NULL, FALSE));
    quiet(WaitForSingleObject(timer, INFINITE));
    GetSystemTimeAsFileTime(&now);
    date.QuadPart = (LONGLONG)((ULONGLONG)now.dwHighDateTime << 32 | now.dwLowDateTime) + 20000;
    quiet(SetWaitableTimer(timer, &date, 0, NULL, NULL, FALSE));
    quiet(WaitForSingleObject(timer, INFINITE));
    KeInitializeEvent(&kernel_event, SynchronizationEvent, FALSE);
    quiet(KeWaitForSingleObject(&kernel_event, Executive, KernelMode, FALSE, &soon));
    KeInitializeQueue(&queue, 0);
    quiet(KeRemoveQueue(&queue, KernelMode, &soon));
    quiet(KeDelayExecutionThread(KernelMode, FALSE, &soon));
    CloseHandle(event);
    CloseHandle(timer);
    CloseHandle(port);
}

static void failures(void **state)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    char missing[] = "/nothing/there", directory[] = "/", fine[] = "/bin/true";
    HANDLE handle;
    int descriptor;

    (void)state;
    quiet(OpenProcess(SYNCHRONIZE, FALSE, 0x3ffffff));
    quiet(OpenThread(SYNCHRONIZE, FALSE, 0x3ffffff));
    quiet(OpenEventA(SYNCHRONIZE, FALSE, "nothing"));
    quiet(CreateProcessA(NULL, missing, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    quiet(CreateProcessA(NULL, missing, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup, &information));
    quiet(CreateProcessA(NULL, directory, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
    quiet(CreateProcessA(NULL, fine, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup, &information));
    quiet(ResumeThread(information.hThread));
    quiet(WaitForSingleObject(information.hProcess, INFINITE));
    quiet(TerminateProcess(information.hProcess, 1));
    quiet(CloseHandle(information.hProcess));
    quiet(CloseHandle(information.hThread));
    quiet(IoCreateDescriptorObject(&handle, SYNCHRONIZE, NULL, 12345, IO_DESCRIPTOR_READABLE));
    quiet(IoExportObject(NULL, &handle, &descriptor));
    quiet(CreateThread(NULL, (SIZE_T)1 << 60, NULL, NULL, 0, NULL));
    quiet(GetModuleHandleA("nothing"));
    quiet(GetProcAddress(GetModuleHandleA("kernel32"), "nothing"));
    quiet(IsDebuggerPresent());
    quiet(CloseHandle((HANDLE)0x12345678));
}

static void files_as_objects(void **state)
{
    SYSTEMTIME time;
    HANDLE handle;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    quiet(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0], IO_DESCRIPTOR_READABLE));
    quiet(WaitForSingleObject(handle, 0));
    quiet(WaitForSingleObject(handle, 2));
    assert_int_equal(write(ends[1], "x", 1), 1);
    quiet(WaitForSingleObject(handle, INFINITE));
    quiet(IoQueryDescriptorObject(handle, NULL, NULL));
    close(ends[0]);
    quiet(CloseHandle(handle));
    close(ends[1]);
    quiet(GetLocalTime(&time));
}

static void lack_memory(void *unused)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    char fine[] = "/bin/true";

    (void)unused;
    for (int left = 0; left < 4; left++) {
        allocations_left = left;
        quiet(CreateEventA(NULL, FALSE, FALSE, "name"));
        quiet(CreateThread(NULL, 0, NULL, NULL, CREATE_SUSPENDED, NULL));
        quiet(CreateThreadpoolWork(NULL, NULL, NULL));
        quiet(TlsAlloc());
        quiet(HeapAlloc(GetProcessHeap(), 0, 100));
        quiet(ExAllocatePool2(POOL_FLAG_NON_PAGED, 100, 1));
        quiet(CreateProcessA(NULL, fine, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information));
        quiet(LoadLibraryA("nothing"));
        allocations_left = -1;
    }
}

static void no_memory(void **state)
{
    (void)state;
    run_in_child(lack_memory, NULL);
}

static void lack_rights(void *unused)
{
    static const struct rlimit none;
    HANDLE timer = CreateWaitableTimerA(NULL, FALSE, NULL);
    LARGE_INTEGER soon = {.QuadPart = -10000};

    (void)unused;
    setrlimit(RLIMIT_NPROC, &none);
    setrlimit(RLIMIT_NICE, &none);
    setrlimit(RLIMIT_RTPRIO, &none);
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
        return;
    quiet(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_HIGHEST));
    quiet(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_TIME_CRITICAL));
    quiet(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST));
    quiet(SetWaitableTimer(timer, &soon, 0, NULL, NULL, FALSE)); /* the clock has no thread */
    quiet(WaitForSingleObject(timer, 2));
    quiet(OpenProcess(PROCESS_TERMINATE, FALSE, 1));
}

static void no_rights(void **state)
{
    (void)state;
    run_in_child(lack_rights, NULL);
}

static void *call_first(void *argument)
{
    quiet(GetCurrentThreadId());
    quiet(SetEvent(argument));
    return NULL;
}

/* The first call of a thread, and of a forked child. */
static void call_in(void *unused)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);
    pthread_t thread;

    (void)unused;
    quiet(WaitForSingleObject(event, 1));
    assert_int_equal(pthread_create(&thread, NULL, call_first, event), 0);
    pthread_join(thread, NULL);
    quiet(WaitForSingleObject(event, INFINITE));
    quiet(CloseHandle(event));
}

static void first_calls(void **state)
{
    (void)state;
    call_in(NULL);
    run_in_child(call_in, NULL);
}

static volatile LONG stop;

/* Its errno stays its own while others stop it. */
static DWORD WINAPI watch_errno(LPVOID argument)
{
    (void)argument;
    errno = UNTOUCHED;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        check_errno("a suspension", __LINE__);
    return 0;
}

static void suspensions(void **state)
{
    HANDLE thread = CreateThread(NULL, 0, watch_errno, NULL, 0, NULL);

    (void)state;
    for (unsigned long round = test_rounds(500); round > 0; round--) {
        quiet(SuspendThread(thread));
        quiet(ResumeThread(thread));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    assert_true(CloseHandle(thread));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_calls), cmocka_unit_test(timed_waits), cmocka_unit_test(failures),
        cmocka_unit_test(files_as_objects), cmocka_unit_test(no_memory), cmocka_unit_test(no_rights),
        cmocka_unit_test(suspensions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
