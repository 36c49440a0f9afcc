#include "sanitizers.h"
#include "support.h"

#include <interlock/exception.h>
#include <interlock/ntstatus.h>
#include <windows.h>
#include <winternl.h>

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static LPVOID home, first, second;
static char trail[64];

static void note(const char *text)
{
    strcat(trail, text);
}

static VOID WINAPI run_first(LPVOID parameter)
{
    for (;;) {
        assert_ptr_equal(parameter, (PVOID)1);
        assert_ptr_equal(GetFiberData(), (PVOID)1);
        assert_ptr_equal(GetCurrentFiber(), first);
        note("1");
        SwitchToFiber(second);
        note("1");
        SwitchToFiber(home);
    }
}

static VOID WINAPI run_second(LPVOID parameter)
{
    (void)parameter;
    for (;;) {
        assert_ptr_equal(GetFiberData(), (PVOID)2);
        note("2");
        SwitchToFiber(first);
    }
}

static void convert(void)
{
    assert_false(IsThreadAFiber());
    assert_null(GetCurrentFiber());
    home = ConvertThreadToFiber((PVOID)7);
    assert_non_null(home);
    assert_true(IsThreadAFiber());
    assert_ptr_equal(GetCurrentFiber(), home);
    assert_ptr_equal(GetFiberData(), (PVOID)7);
}

static void convert_back(void)
{
    assert_true(ConvertFiberToThread());
    assert_false(IsThreadAFiber());
}

static void switches(void **state)
{
    (void)state;
    trail[0] = 0;
    convert();
    first = CreateFiber(0, run_first, (PVOID)1);
    second = CreateFiberEx(4096, 65536, FIBER_FLAG_FLOAT_SWITCH, run_second, (PVOID)2);
    assert_non_null(first);
    assert_non_null(second);
    for (int round = 0; round < 3; round++) {
        SwitchToFiber(first);
        assert_ptr_equal(GetCurrentFiber(), home);
        note(".");
    }
    assert_string_equal(trail, "121.121.121.");
    SwitchToFiber(home); /* the current one: nothing happens */
    DeleteFiber(first);
    DeleteFiber(second);
    convert_back();
}

static void documented_errors(void **state)
{
    (void)state;
    assert_false(ConvertFiberToThread());
    assert_int_equal(GetLastError(), ERROR_ALREADY_THREAD);
    assert_null(ConvertThreadToFiberEx(NULL, 2));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(CreateFiberEx(0, 0, 4, run_first, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(CreateFiberEx(0, (SIZE_T)1 << 62, 0, run_first, NULL));
    assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
    convert();
    assert_null(ConvertThreadToFiber(NULL));
    assert_int_equal(GetLastError(), ERROR_ALREADY_FIBER);
    convert_back();
}

static NTSTATUS raised_by(VOID (*function)(LPVOID), LPVOID argument)
{
    volatile NTSTATUS status = STATUS_SUCCESS;
    __try {
        function(argument);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        status = GetExceptionCode();
    }
    return status;
}

static VOID switch_to(LPVOID fiber)
{
    SwitchToFiber(fiber);
}

static VOID delete(LPVOID fiber)
{
    DeleteFiber(fiber);
}

static HANDLE other_is_ready, other_may_end;

static DWORD WINAPI be_a_fiber(LPVOID argument)
{
    *(LPVOID *)argument = ConvertThreadToFiber(NULL);
    SignalObjectAndWait(other_is_ready, other_may_end, INFINITE, FALSE);
    ConvertFiberToThread();
    return 0;
}

static void misuse_is_raised(void **state)
{
    LPVOID running;
    HANDLE thread;

    (void)state;
    other_is_ready = CreateEventA(NULL, FALSE, FALSE, NULL);
    other_may_end = CreateEventA(NULL, FALSE, FALSE, NULL);
    first = CreateFiber(0, run_first, NULL);
    assert_int_equal(raised_by(switch_to, first), STATUS_INVALID_PARAMETER); /* this thread is not a fiber */
    DeleteFiber(first);
    thread = CreateThread(NULL, 0, be_a_fiber, &running, 0, NULL);
    WaitForSingleObject(other_is_ready, INFINITE);
    convert();
    assert_int_equal(raised_by(switch_to, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(raised_by(delete, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(raised_by(switch_to, running), STATUS_INVALID_PARAMETER);
    assert_int_equal(raised_by(delete, running), STATUS_INVALID_PARAMETER);
    SetEvent(other_may_end);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    CloseHandle(other_is_ready);
    CloseHandle(other_may_end);
    convert_back();
}

/* Frames of __try are the fiber's. */

static volatile int caught;

static VOID WINAPI raise_and_catch(LPVOID parameter)
{
    (void)parameter;
    for (;;) {
        __try {
            SwitchToFiber(home);
            RaiseException(0xE0000001, 0, 0, NULL);
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            caught |= 1;
        }
        SwitchToFiber(home);
    }
}

static void exceptions_stay_with_the_fiber(void **state)
{
    (void)state;
    caught = 0;
    convert();
    first = CreateFiber(0, raise_and_catch, NULL);
    __try {
        SwitchToFiber(first); /* the fiber is inside its __try now */
        RaiseException(0xE0000002, 0, 0, NULL);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        caught |= 2;
    }
    assert_int_equal(caught, 2);
    SwitchToFiber(first);
    assert_int_equal(caught, 3);
    DeleteFiber(first);
    convert_back();
}

/* Floating point. */

static volatile int rounding_of_fiber;

static VOID WINAPI round_up(LPVOID parameter)
{
    (void)parameter;
    fesetround(FE_UPWARD);
    for (;;) {
        SwitchToFiber(home);
        rounding_of_fiber = fegetround();
    }
}

static void rounding_of(DWORD flags, int expected_home, int expected_fiber)
{
    fesetround(FE_TONEAREST);
    home = ConvertThreadToFiberEx(NULL, flags);
    first = CreateFiberEx(0, 0, flags, round_up, NULL);
    SwitchToFiber(first);
    assert_int_equal(fegetround(), expected_home);
    fesetround(FE_DOWNWARD);
    SwitchToFiber(first);
    assert_int_equal(rounding_of_fiber, expected_fiber);
    fesetround(FE_TONEAREST);
    DeleteFiber(first);
    ConvertFiberToThread();
}

static void the_control_word_is_switched_on_request(void **state)
{
    (void)state;
    rounding_of(FIBER_FLAG_FLOAT_SWITCH, FE_TONEAREST, FE_UPWARD);
    rounding_of(0, FE_UPWARD, FE_DOWNWARD);
}

/* Fiber-local storage. */

static DWORD slot;
static volatile LONG callbacks;
static volatile ULONG_PTR callback_sum;

static VOID WINAPI count_callback(PVOID value)
{
    InterlockedIncrement(&callbacks);
    callback_sum += (ULONG_PTR)value;
}

static VOID WINAPI keep_value(LPVOID parameter)
{
    for (;;) {
        assert_null(FlsGetValue(slot));
        assert_true(FlsSetValue(slot, parameter));
        SwitchToFiber(home);
        assert_ptr_equal(FlsGetValue(slot), parameter);
        SwitchToFiber(home);
        FlsSetValue(slot, NULL);
    }
}

static void local_storage_is_per_fiber(void **state)
{
    (void)state;
    callbacks = 0;
    callback_sum = 0;
    slot = FlsAlloc(count_callback);
    FlsSetValue(slot, (PVOID)100);
    convert();
    assert_ptr_equal(FlsGetValue(slot), (PVOID)100); /* the thread's values are now the fiber's */
    first = CreateFiber(0, keep_value, (PVOID)1);
    second = CreateFiber(0, keep_value, (PVOID)2);
    SwitchToFiber(first);
    SwitchToFiber(second);
    assert_ptr_equal(FlsGetValue(slot), (PVOID)100);
    SwitchToFiber(first);
    SwitchToFiber(second);
    assert_int_equal(callbacks, 0);
    DeleteFiber(first);
    assert_int_equal(callbacks, 1);
    assert_int_equal(callback_sum, 1);
    FlsFree(slot); /* of the thread, and of a fiber that does not run */
    assert_int_equal(callbacks, 3);
    assert_int_equal(callback_sum, 103);
    DeleteFiber(second);
    assert_int_equal(callbacks, 3);
    convert_back();
}

/* Threads. */

static LPVOID traveller;
static DWORD ids[2];
static HANDLE mutex;

static VOID WINAPI travel(LPVOID parameter)
{
    (void)parameter;
    ids[0] = GetCurrentThreadId();
    TlsSetValue(slot, (PVOID)11);
    SwitchToFiber(home);
    ids[1] = GetCurrentThreadId();
    assert_null(TlsGetValue(slot)); /* of the other thread */
    /* owns and waits as the thread that runs it */
    assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_TIMEOUT);
    assert_int_equal(WaitForSingleObject(GetCurrentThread(), 10), WAIT_TIMEOUT);
    assert_false(ReleaseMutex(mutex));
    assert_int_equal(GetLastError(), ERROR_NOT_OWNER);
    SwitchToFiber(*(LPVOID *)GetFiberData());
}

static DWORD WINAPI host_a_fiber(LPVOID argument)
{
    *(LPVOID *)argument = ConvertThreadToFiber(NULL);
    SwitchToFiber(traveller);
    ConvertFiberToThread();
    return 5;
}

static DWORD run(LPTHREAD_START_ROUTINE routine, LPVOID argument)
{
    DWORD code = 0;
    HANDLE thread = CreateThread(NULL, 0, routine, argument, 0, NULL);

    assert_int_equal(WaitForSingleObject(thread, 120000), WAIT_OBJECT_0);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    return code;
}

static void a_fiber_moves_to_another_thread(void **state)
{
    LPVOID other_home;

    (void)state;
    slot = TlsAlloc();
    mutex = CreateMutexA(NULL, TRUE, NULL);
    convert();
    traveller = CreateFiber(0, travel, &other_home);
    SwitchToFiber(traveller);
    assert_int_equal(run(host_a_fiber, &other_home), 5);
    assert_int_equal(ids[0], GetCurrentThreadId());
    assert_int_not_equal(ids[1], ids[0]);
    DeleteFiber(traveller);
    convert_back();
    assert_true(ReleaseMutex(mutex));
    CloseHandle(mutex);
    TlsFree(slot);
}

static VOID WINAPI just_return(LPVOID parameter)
{
    (void)parameter;
}

static VOID WINAPI exit_with_9(LPVOID parameter)
{
    (void)parameter;
    ExitThread(9);
}

static VOID WINAPI delete_itself(LPVOID parameter)
{
    (void)parameter;
    FlsSetValue(slot, (PVOID)3);
    DeleteFiber(GetCurrentFiber());
}

static LPVOID last_home, last_fiber;

static DWORD WINAPI end_on_a_fiber(LPVOID routine)
{
    last_home = ConvertThreadToFiber(NULL);
    last_fiber = CreateFiber(0, (LPFIBER_START_ROUTINE)routine, NULL);
    SwitchToFiber(last_fiber);
    fail_msg("the thread has ended");
    return 1;
}

static void a_fiber_that_ends_ends_its_thread(void **state)
{
    (void)state;
    callbacks = 0;
    slot = FlsAlloc(count_callback);
    assert_int_equal(run(end_on_a_fiber, (LPVOID)just_return), 1);
    convert();
    assert_int_equal(raised_by(switch_to, last_fiber), STATUS_INVALID_PARAMETER);
    convert_back();
    DeleteFiber(last_fiber);
    DeleteFiber(last_home);
    assert_int_equal(run(end_on_a_fiber, (LPVOID)exit_with_9), 9);
    DeleteFiber(last_fiber);
    DeleteFiber(last_home);
    assert_int_equal(callbacks, 0);
    run(end_on_a_fiber, (LPVOID)delete_itself);
    assert_int_equal(callbacks, 1);
    DeleteFiber(last_home);
    FlsFree(slot);
}

static VOID WINAPI exit_as_posix(LPVOID parameter)
{
    (void)parameter;
    pthread_exit(NULL);
}

static void *end_posix_thread_on_a_fiber(void *argument)
{
    end_on_a_fiber(argument);
    return NULL;
}

/* The C library leaves the fiber's stack, and the fiber is freed completely. */
static void a_host_thread_may_end_on_a_fiber(void **state)
{
    pthread_t thread;

    (void)state;
#ifdef THREAD_SANITIZER
    skip(); /* its pthread_exit refuses fibers that are registered with it */
#endif
    assert_int_equal(pthread_create(&thread, NULL, end_posix_thread_on_a_fiber, (void *)exit_as_posix), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    DeleteFiber(last_fiber);
    DeleteFiber(last_home);
}

static VOID WINAPI stay_a_thread(LPVOID parameter)
{
    ULONG_PTR low, high;

    (void)parameter;
    DeleteFiber(last_home);
    assert_true(ConvertFiberToThread());
    GetCurrentThreadStackLimits(&low, &high);
    assert_in_range((ULONG_PTR)__builtin_frame_address(0), low, high);
    ExitThread(4);
}

static void a_thread_may_stay_on_a_stack_of_a_fiber(void **state)
{
    (void)state;
    assert_int_equal(run(end_on_a_fiber, (LPVOID)stay_a_thread), 4);
}

static VOID WINAPI wait_forever(LPVOID parameter)
{
    SetEvent(*(PHANDLE)parameter);
    Sleep(INFINITE);
}

static DWORD WINAPI wait_on_a_fiber(LPVOID event)
{
    last_home = ConvertThreadToFiber(NULL);
    last_fiber = CreateFiber(0, wait_forever, event);
    SwitchToFiber(last_fiber);
    return 0;
}

/* A terminated thread clears its values on its way out, still on the fiber's stack. Here it takes its time. */
enum { QUICK, SLOW, GONE };

static volatile int way_out = QUICK;

int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);

int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    if (value == NULL && __atomic_load_n(&way_out, __ATOMIC_RELAXED) == SLOW) {
        usleep(100000);
        __atomic_store_n(&way_out, GONE, __ATOMIC_RELAXED);
    }
    return __real_pthread_setspecific(key, value);
}

static void a_terminated_thread_lets_its_fiber_go(void **state)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);
    HANDLE thread = CreateThread(NULL, 0, wait_on_a_fiber, &event, 0, NULL);

    (void)state;
    assert_int_equal(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
    assert_int_equal(SuspendThread(thread), 0);
    assert_int_equal(ResumeThread(thread), 1);
    __atomic_store_n(&way_out, SLOW, __ATOMIC_RELAXED);
    assert_true(TerminateThread(thread, 3));
    assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    DeleteFiber(last_fiber);
    while (__atomic_load_n(&way_out, __ATOMIC_RELAXED) != GONE)
        usleep(1000);
    DeleteFiber(last_home);
    CloseHandle(thread);
    CloseHandle(event);
}

/* Stacks. */

static ULONG_PTR low_of_fiber, high_of_fiber, address_on_fiber;

static VOID WINAPI look_at_the_stack(LPVOID parameter)
{
    (void)parameter;
    GetCurrentThreadStackLimits(&low_of_fiber, &high_of_fiber);
    address_on_fiber = (ULONG_PTR)__builtin_frame_address(0);
    assert_int_equal((ULONG_PTR)NtCurrentTeb()->NtTib.StackLimit, low_of_fiber);
    SwitchToFiber(home);
}

static void stack_limits(void **state)
{
    ULONG_PTR low, high;

    (void)state;
    GetCurrentThreadStackLimits(&low, &high);
    assert_true((ULONG_PTR)__builtin_frame_address(0) > low && (ULONG_PTR)__builtin_frame_address(0) < high);
    convert();
    first = CreateFiber(3 << 20, look_at_the_stack, NULL);
    SwitchToFiber(first);
    assert_int_equal(high_of_fiber - low_of_fiber, 3 << 20);
    assert_in_range(address_on_fiber, low_of_fiber, high_of_fiber);
    assert_true(high_of_fiber <= low || low_of_fiber >= high);
    assert_int_equal((ULONG_PTR)NtCurrentTeb()->NtTib.StackBase, high);
    DeleteFiber(first);
    convert_back();
}

static VOID WINAPI overflow(LPVOID parameter)
{
    volatile char *below = (char *)low_of_fiber - 1;

    (void)parameter;
    *below = 1;
}

static void a_stack_has_a_guard_page(void **state)
{
    int status;
    pid_t child;

    (void)state;
    convert();
    first = CreateFiber(0, look_at_the_stack, NULL);
    SwitchToFiber(first);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        overflow(NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    DeleteFiber(first);
    convert_back();
}

/* Fibers that a few threads run in turns, with locks and waits of the library inside. */

enum { WORKERS = 4, FIBERS = 16 };

static struct task {
    LPVOID fiber;
    LPVOID caller;
    LONG taken;
    LONG steps;
} tasks[FIBERS];

static CRITICAL_SECTION section;
static SRWLOCK lock = SRWLOCK_INIT;
static LONG in_section, done;
static HANDLE semaphore;

static VOID WINAPI work(LPVOID parameter)
{
    struct task *task = parameter;

    for (;;) {
        EnterCriticalSection(&section);
        assert_int_equal(++in_section, 1);
        in_section--;
        LeaveCriticalSection(&section);
        AcquireSRWLockExclusive(&lock);
        done++;
        ReleaseSRWLockExclusive(&lock);
        assert_int_equal(WaitForSingleObject(semaphore, INFINITE), WAIT_OBJECT_0);
        ReleaseSemaphore(semaphore, 1, NULL);
        task->steps++;
        SwitchToFiber(task->caller);
    }
}

static void run_tasks(void *argument, unsigned index)
{
    LPVOID self = ConvertThreadToFiber(NULL);
    unsigned long rounds = test_rounds(2000);

    (void)argument;
    for (unsigned long round = 0; round < rounds; round++) {
        struct task *task = &tasks[(round * 7 + index * 3) % FIBERS];
        if (InterlockedExchange(&task->taken, 1) == 0) {
            task->caller = self;
            SwitchToFiber(task->fiber);
            InterlockedExchange(&task->taken, 0);
        }
    }
    ConvertFiberToThread();
}

static void fibers_of_many_threads(void **state)
{
    LONG steps = 0;

    (void)state;
    InitializeCriticalSection(&section);
    semaphore = CreateSemaphoreA(NULL, 2, 100, NULL);
    for (int number = 0; number < FIBERS; number++)
        tasks[number].fiber = CreateFiber(0, work, &tasks[number]);
    run_threads(WORKERS, 60, run_tasks, NULL);
    for (int number = 0; number < FIBERS; number++) {
        steps += tasks[number].steps;
        DeleteFiber(tasks[number].fiber);
    }
    assert_int_equal(steps, done);
    assert_true(done > 0);
    CloseHandle(semaphore);
    DeleteCriticalSection(&section);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches),
        cmocka_unit_test(documented_errors),
        cmocka_unit_test(misuse_is_raised),
        cmocka_unit_test(exceptions_stay_with_the_fiber),
        cmocka_unit_test(the_control_word_is_switched_on_request),
        cmocka_unit_test(local_storage_is_per_fiber),
        cmocka_unit_test(a_fiber_moves_to_another_thread),
        cmocka_unit_test(a_fiber_that_ends_ends_its_thread),
        cmocka_unit_test(a_host_thread_may_end_on_a_fiber),
        cmocka_unit_test(a_thread_may_stay_on_a_stack_of_a_fiber),
        cmocka_unit_test(a_terminated_thread_lets_its_fiber_go),
        cmocka_unit_test(stack_limits),
        cmocka_unit_test(a_stack_has_a_guard_page),
        cmocka_unit_test(fibers_of_many_threads),
    };

    return cmocka_run_group_tests_name("win32/fiber", tests, NULL, NULL);
}
