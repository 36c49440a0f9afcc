#include "heap.h"
#include "support.h"

#include <windows.h>
#include <winternl.h>

#include <interlock/bugcodes.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static char calls[64];
static EXCEPTION_RECORD seen;
static PVOID removable;

static void called(char who)
{
    size_t length = strlen(calls);

    calls[length] = who;
    calls[length + 1] = 0;
}

static void expect_calls(const char *expected)
{
    assert_string_equal(calls, expected);
    calls[0] = 0;
}

static LONG search_a(PEXCEPTION_POINTERS exception)
{
    seen = *exception->ExceptionRecord;
    called('a');
    return EXCEPTION_CONTINUE_SEARCH;
}

static LONG search_b(PEXCEPTION_POINTERS exception)
{
    (void)exception;
    called('b');
    return EXCEPTION_CONTINUE_SEARCH;
}

static LONG go_on(PEXCEPTION_POINTERS exception)
{
    seen = *exception->ExceptionRecord;
    called('g');
    return EXCEPTION_CONTINUE_EXECUTION;
}

static LONG told(PEXCEPTION_POINTERS exception)
{
    (void)exception;
    called('c');
    return EXCEPTION_CONTINUE_SEARCH;
}

static void no_memory(void **state)
{
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    allocations_left = 0;
    PVOID handler = AddVectoredExceptionHandler(0, search_b);
    allocations_left = -1;
    assert_null(handler);
}

static void a_frame_catches_after_the_handlers(void **state)
{
    static const ULONG_PTR parameters[] = {11, 22, 33};
    PVOID b = AddVectoredExceptionHandler(0, search_b);
    PVOID a = AddVectoredExceptionHandler(1, search_a);
    volatile DWORD code = 0;
    volatile ULONG_PTR second = 0;

    (void)state;
    __try {
        RaiseException(0xE0001234, 0, 3, parameters);
        fail();
    } __except (second = GetExceptionInformation()->ExceptionRecord->ExceptionInformation[1],
                EXCEPTION_EXECUTE_HANDLER) {
        code = (DWORD)GetExceptionCode();
    }
    assert_int_equal(code, 0xE0001234);
    assert_int_equal(second, 22);
    expect_calls("ab");
    assert_int_equal((DWORD)seen.ExceptionCode, 0xE0001234);
    assert_int_equal(seen.ExceptionFlags, 0);
    assert_int_equal(seen.NumberParameters, 3);
    assert_memory_equal(seen.ExceptionInformation, parameters, sizeof(parameters));
    assert_non_null(seen.ExceptionAddress);
    assert_null(seen.ExceptionRecord);
    assert_int_equal(RemoveVectoredExceptionHandler(a), 1);
    assert_int_equal(RemoveVectoredExceptionHandler(a), 0);
    assert_int_equal(RemoveVectoredContinueHandler(b), 0);
    assert_int_equal(RemoveVectoredExceptionHandler(b), 1);
    assert_int_equal(RemoveVectoredExceptionHandler(NULL), 0);
}

static void the_code_and_the_parameters(void **state)
{
    ULONG_PTR many[20];
    PVOID handler = AddVectoredExceptionHandler(1, go_on);

    (void)state;
    for (int i = 0; i < 20; i++)
        many[i] = (ULONG_PTR)i;
    RaiseException(0xF0001234, 0, 20, many);
    assert_int_equal((DWORD)seen.ExceptionCode, 0xE0001234);
    assert_int_equal(seen.NumberParameters, EXCEPTION_MAXIMUM_PARAMETERS);
    assert_memory_equal(seen.ExceptionInformation, many, sizeof(seen.ExceptionInformation));
    RaiseException(1, 0, 5, NULL);
    assert_int_equal(seen.NumberParameters, 0);
    assert_int_equal(seen.ExceptionInformation[0], 0);
    expect_calls("gg");
    assert_int_equal(RemoveVectoredExceptionHandler(handler), 1);
}

static void whoever_continues_ends_the_search(void **state)
{
    PVOID first = AddVectoredExceptionHandler(0, go_on);
    PVOID second = AddVectoredExceptionHandler(0, search_a);
    PVOID third = AddVectoredContinueHandler(0, told);
    volatile int steps = 0;

    (void)state;
    __try {
        RaiseException(0xE0000001, 0, 0, NULL);
        steps = 1;
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        fail();
    }
    assert_int_equal(steps, 1);
    expect_calls("gc");
    assert_int_equal(RemoveVectoredExceptionHandler(first), 1);
    assert_int_equal(RemoveVectoredExceptionHandler(second), 1);
    assert_int_equal(RemoveVectoredContinueHandler(third), 1);
}

static LONG WINAPI filter_that_continues(EXCEPTION_POINTERS *exception)
{
    (void)exception;
    return EXCEPTION_CONTINUE_EXECUTION;
}

/* The last filter may continue too, and the continue handlers are called then. */
static void the_last_filter_continues(void **state)
{
    PVOID handler = AddVectoredContinueHandler(0, told);
    LPTOP_LEVEL_EXCEPTION_FILTER before = SetUnhandledExceptionFilter(filter_that_continues);

    (void)state;
    RaiseException(0xE0000001, 0, 0, NULL);
    expect_calls("c");
    SetUnhandledExceptionFilter(before);
    assert_int_equal(RemoveVectoredContinueHandler(handler), 1);
}

static void what_cannot_be_continued(void **state)
{
    PVOID handler = AddVectoredExceptionHandler(0, go_on);
    volatile NTSTATUS code = 0;

    (void)state;
    __try {
        RaiseException(0xE0000001, EXCEPTION_NONCONTINUABLE, 0, NULL);
        fail();
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    assert_int_equal(code, STATUS_NONCONTINUABLE_EXCEPTION);
    expect_calls("g");
    assert_int_equal(seen.ExceptionFlags, EXCEPTION_NONCONTINUABLE);
    __try {
        RtlRaiseStatus(STATUS_UNSUCCESSFUL);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    assert_int_equal(code, STATUS_NONCONTINUABLE_EXCEPTION);
    assert_int_equal(seen.ExceptionCode, (DWORD)STATUS_UNSUCCESSFUL);
    expect_calls("g");
    assert_int_equal(RemoveVectoredExceptionHandler(handler), 1);
}

/* A frame that passes it on, and a __finally, do not make it a new exception. */
static void handlers_are_asked_once(void **state)
{
    PVOID handler = AddVectoredExceptionHandler(0, search_a);
    static const ULONG_PTR parameter = 77;
    volatile ULONG_PTR outer = 0;

    (void)state;
    __try {
        __try {
            __try {
                RaiseException(0xE0000002, 0, 1, &parameter);
            } __finally {
                __try {
                    RtlRaiseStatus(STATUS_NO_MEMORY);
                } __except (EXCEPTION_EXECUTE_HANDLER) {
                }
            }
        } __except (EXCEPTION_CONTINUE_SEARCH) {
            fail();
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        outer = GetExceptionInformation()->ExceptionRecord->ExceptionInformation[0];
        assert_int_equal((DWORD)GetExceptionCode(), 0xE0000002);
    }
    assert_int_equal(outer, 77);
    expect_calls("aa");
    assert_int_equal(RemoveVectoredExceptionHandler(handler), 1);
}

static LONG remove_itself(PEXCEPTION_POINTERS exception)
{
    (void)exception;
    called('r');
    assert_int_equal(RemoveVectoredExceptionHandler(removable), 1);
    assert_int_equal(RemoveVectoredExceptionHandler(removable), 0);
    return EXCEPTION_CONTINUE_SEARCH;
}

static void a_handler_may_remove_itself(void **state)
{
    PVOID after;

    (void)state;
    removable = AddVectoredExceptionHandler(0, remove_itself);
    after = AddVectoredExceptionHandler(0, go_on);
    RaiseException(0xE0000003, 0, 0, NULL);
    expect_calls("rg");
    RaiseException(0xE0000003, 0, 0, NULL);
    expect_calls("g");
    assert_int_equal(RemoveVectoredExceptionHandler(after), 1);
}

static LONG raise_again(PEXCEPTION_POINTERS exception)
{
    called('n');
    if (exception->ExceptionRecord->ExceptionCode == (DWORD)STATUS_NO_MEMORY)
        return EXCEPTION_CONTINUE_SEARCH;
    __try {
        RtlRaiseStatus(STATUS_NO_MEMORY);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        called('x');
    }
    return EXCEPTION_CONTINUE_EXECUTION;
}

static void a_handler_may_raise(void **state)
{
    PVOID handler = AddVectoredExceptionHandler(0, raise_again);

    (void)state;
    RaiseException(0xE0000004, 0, 0, NULL);
    expect_calls("nnx");
    assert_int_equal(RemoveVectoredExceptionHandler(handler), 1);
}

static void the_filter_of_unhandled_exceptions(void **state)
{
    PVOID handler = AddVectoredExceptionHandler(0, search_a);

    (void)state;
    assert_null(SetUnhandledExceptionFilter(go_on));
    RaiseException(0xE0000005, 0, 0, NULL);
    expect_calls("ag");
    __try {
        RaiseException(0xE0000005, 0, 0, NULL);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        called('e');
    }
    expect_calls("ae");
    assert_ptr_equal(SetUnhandledExceptionFilter(NULL), go_on);
    assert_int_equal(RemoveVectoredExceptionHandler(handler), 1);
}

static LONG never_told(PEXCEPTION_POINTERS exception)
{
    (void)exception;
    _exit(3);
}

static void raise_with_a_filter(void *filter)
{
    AddVectoredExceptionHandler(0, search_a);
    if (filter != (void *)go_on)
        AddVectoredContinueHandler(0, never_told);
    SetUnhandledExceptionFilter((LPTOP_LEVEL_EXCEPTION_FILTER)filter);
    RaiseException(STATUS_INTEGER_OVERFLOW, EXCEPTION_NONCONTINUABLE, 0, NULL);
}

static void pass_on(void *argument)
{
    (void)argument;
    SetUnhandledExceptionFilter(go_on);
    __try {
        RaiseException(STATUS_INTEGER_OVERFLOW, 0, 0, NULL);
    } __except (EXCEPTION_CONTINUE_SEARCH) {
    }
}

static void what_nobody_handles(void **state)
{
    (void)state;
    expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (uint64_t)(int64_t)STATUS_INTEGER_OVERFLOW, raise_with_a_filter,
                     NULL);
    expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (uint64_t)(int64_t)STATUS_INTEGER_OVERFLOW, raise_with_a_filter,
                     (void *)search_b);
    /* The handler continues an exception that cannot be continued. */
    expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (uint64_t)(int64_t)STATUS_NONCONTINUABLE_EXCEPTION,
                     raise_with_a_filter, (void *)go_on);
    /* The frame that raised it no longer exists when the last frame passes it on. */
    expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (uint64_t)(int64_t)STATUS_NONCONTINUABLE_EXCEPTION, pass_on, NULL);
}

/* Where no code of the program may run, its handlers are not called. */
static void at_dispatch_level(void **state)
{
    PVOID handler = AddVectoredExceptionHandler(0, go_on);
    volatile NTSTATUS code = 0;
    volatile KIRQL level = 0;
    KIRQL old;

    (void)state;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    __try {
        RtlRaiseStatus(STATUS_UNSUCCESSFUL);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
        level = KeGetCurrentIrql();
    }
    KeLowerIrql(PASSIVE_LEVEL);
    assert_int_equal(code, STATUS_UNSUCCESSFUL);
    assert_int_equal(level, DISPATCH_LEVEL);
    expect_calls("");
    assert_int_equal(RemoveVectoredExceptionHandler(handler), 1);
}

static LONG end_quietly(PEXCEPTION_POINTERS exception)
{
    (void)exception;
    return EXCEPTION_EXECUTE_HANDLER;
}

static void a_filter_may_end_the_process(void **state)
{
    pid_t child;
    int status;

    (void)state;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        raise_with_a_filter((void *)end_quietly);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS_INTEGER_OVERFLOW & 0xFF);
}

static void breakpoints(void **state)
{
    PVOID handler = AddVectoredExceptionHandler(0, go_on);

    (void)state;
    if (!IsDebuggerPresent()) {
        DebugBreak();
        assert_int_equal(seen.ExceptionCode, (DWORD)EXCEPTION_BREAKPOINT);
        expect_calls("g");
    }
    assert_int_equal(RemoveVectoredExceptionHandler(handler), 1);
    OutputDebugStringA("# a debug string\n");
    OutputDebugStringW(u"# another\n");
    OutputDebugStringA(NULL);
    OutputDebugStringW(NULL);
    assert_int_equal(SetErrorMode(SEM_FAILCRITICALERRORS), 0);
    assert_int_equal(GetErrorMode(), SEM_FAILCRITICALERRORS);
    assert_int_equal(SetErrorMode(0), SEM_FAILCRITICALERRORS);
}

/* The test is the child's debugger: 0 is the exit code of a child that saw it and stopped for it. */
static void a_debugger(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        if (IsDebuggerPresent())
            _exit(77);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        if (!IsDebuggerPresent())
            _exit(1);
        DebugBreak();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFSTOPPED(status));
    assert_int_equal(WSTOPSIG(status), SIGTRAP);
    assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static volatile LONG counted;

static LONG count(PEXCEPTION_POINTERS exception)
{
    InterlockedIncrement(&counted);
    return exception->ExceptionRecord->ExceptionCode == 1 ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
}

static void raise_and_register(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    for (unsigned long i = 0; i < test_rounds(2000); i++) {
        PVOID mine = AddVectoredExceptionHandler(i & 1, count);

        RaiseException(1, 0, 0, NULL);
        assert_int_equal(RemoveVectoredExceptionHandler(mine), 1);
        assert_int_equal(RemoveVectoredExceptionHandler(mine), 0);
    }
}

static void threads_register_and_raise(void **state)
{
    (void)state;
    counted = 0;
    run_threads(4, 60, raise_and_register, NULL);
    assert_true(counted >= (LONG)test_rounds(2000) * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory),
        cmocka_unit_test(a_frame_catches_after_the_handlers),
        cmocka_unit_test(the_code_and_the_parameters),
        cmocka_unit_test(whoever_continues_ends_the_search),
        cmocka_unit_test(what_cannot_be_continued),
        cmocka_unit_test(the_last_filter_continues),
        cmocka_unit_test(handlers_are_asked_once),
        cmocka_unit_test(a_handler_may_remove_itself),
        cmocka_unit_test(a_handler_may_raise),
        cmocka_unit_test(the_filter_of_unhandled_exceptions),
        cmocka_unit_test(what_nobody_handles),
        cmocka_unit_test(a_filter_may_end_the_process),
        cmocka_unit_test(at_dispatch_level),
        cmocka_unit_test(breakpoints),
        cmocka_unit_test(a_debugger),
        cmocka_unit_test(threads_register_and_raise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
