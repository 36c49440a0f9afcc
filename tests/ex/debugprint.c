/* Debug output with its filter and callbacks, breakpoints, assertions, pageable code. */
#define DBG 1
#include <interlock/dbg.h>
#include <interlock/exception.h>

#include "ke/ki.h"
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 4

static char captured[2048];
static size_t captured_length;
static ULONG captured_component, captured_level;

static VOID capture(PSTRING output, ULONG component, ULONG level)
{
    assert_int_equal(output->Buffer[output->Length], 0);
    if (captured_length + output->Length < sizeof(captured)) {
        memcpy(captured + captured_length, output->Buffer, output->Length);
        captured_length += output->Length;
        captured[captured_length] = 0;
    }
    captured_component = component;
    captured_level = level;
}

static int begin(void **state)
{
    (void)state;
    captured[0] = 0;
    captured_length = 0;
    return DbgSetDebugPrintCallback(capture, TRUE);
}

static int end(void **state)
{
    (void)state;
    return DbgSetDebugPrintCallback(capture, FALSE);
}

static void test_formats(void **state)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(u"\\Device\\Null");
    ANSI_STRING ansi = RTL_CONSTANT_STRING("ansi");
    (void)state;
    assert_int_equal(
        DbgPrint("%wZ %Z %ws %hs 0x%I64x %lu %p\n", &name, &ansi, u"wide", "narrow", 1ull << 40, 7u, (void *)0x1234),
        STATUS_SUCCESS);
    assert_string_equal(captured, "\\Device\\Null ansi wide narrow 0x10000000000 7 0000000000001234\n");
    assert_int_equal(captured_component, DPFLTR_DEFAULT_ID);
    assert_int_equal(captured_level, DPFLTR_INFO_LEVEL);
}

static void test_long_text_is_cut(void **state)
{
    (void)state;
    DbgPrint("%600d", 1);
    assert_int_equal(captured_length, 511);
    assert_int_equal(captured[509], ' ');
    assert_int_equal(captured[510], '\n');
    captured_length = 0;
    DbgPrint("%511d", 1);
    assert_int_equal(captured_length, 511);
    assert_int_equal(captured[510], '1');
}

static ULONG print_with_prefix(const char *prefix, ULONG component, ULONG level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ULONG status = vDbgPrintExWithPrefix(prefix, component, level, format, arguments);
    va_end(arguments);
    return status;
}

static void test_filter(void **state)
{
    (void)state;
    DbgPrintEx(DPFLTR_IHVDRIVER_ID, DPFLTR_ERROR_LEVEL, "e");
    DbgPrintEx(DPFLTR_IHVDRIVER_ID, DPFLTR_WARNING_LEVEL, "w");
    assert_string_equal(captured, "e");
    assert_int_equal(DbgQueryDebugFilterState(DPFLTR_IHVDRIVER_ID, DPFLTR_WARNING_LEVEL), FALSE);
    assert_int_equal(DbgSetDebugFilterState(DPFLTR_IHVDRIVER_ID, DPFLTR_WARNING_LEVEL, TRUE), STATUS_SUCCESS);
    assert_int_equal(DbgQueryDebugFilterState(DPFLTR_IHVDRIVER_ID, DPFLTR_WARNING_LEVEL), TRUE);
    assert_int_equal(DbgQueryDebugFilterState(DPFLTR_IHVVIDEO_ID, DPFLTR_WARNING_LEVEL), FALSE);
    print_with_prefix("pre: ", DPFLTR_IHVDRIVER_ID, DPFLTR_WARNING_LEVEL, "%d", 5);
    assert_string_equal(captured, "epre: 5");
    /* From 32 on a level is the bits themselves. */
    assert_int_equal(DbgQueryDebugFilterState(DPFLTR_IHVDRIVER_ID, DPFLTR_MASK | 1 << DPFLTR_WARNING_LEVEL), TRUE);
    assert_int_equal(DbgQueryDebugFilterState(DPFLTR_IHVDRIVER_ID, DPFLTR_MASK | 1 << DPFLTR_TRACE_LEVEL), FALSE);
    DbgSetDebugFilterState(DPFLTR_IHVDRIVER_ID, DPFLTR_WARNING_LEVEL, FALSE);
    DbgPrintEx(DPFLTR_IHVDRIVER_ID, DPFLTR_WARNING_LEVEL, "again");
    assert_string_equal(captured, "epre: 5");
    assert_int_equal(DbgQueryDebugFilterState(DPFLTR_ENDOFTABLE_ID, 0), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(DbgSetDebugFilterState(DPFLTR_ENDOFTABLE_ID, 0, TRUE), STATUS_INVALID_PARAMETER_1);
    DbgPrintEx(DPFLTR_ENDOFTABLE_ID, DPFLTR_ERROR_LEVEL, "!");
    assert_string_equal(captured, "epre: 5!");
    DbgSetDebugFilterState(DPFLTR_DEFAULT_ID, DPFLTR_INFO_LEVEL, FALSE);
    DbgPrint("not shown");
    DbgSetDebugFilterState(DPFLTR_DEFAULT_ID, DPFLTR_INFO_LEVEL, TRUE);
    assert_string_equal(captured, "epre: 5!");
}

static void test_any_irql(void **state)
{
    KIRQL old;
    (void)state;
    KeRaiseIrql(HIGH_LEVEL, &old);
    DbgPrint("at %u\n", KeGetCurrentIrql());
    KeLowerIrql(old);
    assert_string_equal(captured, "at 15\n");
}

static VOID other(PSTRING output, ULONG component, ULONG level)
{
    (void)output;
    (void)component;
    (void)level;
}

static void test_callbacks(void **state)
{
    (void)state;
    assert_int_equal(DbgSetDebugPrintCallback(capture, TRUE), STATUS_INVALID_PARAMETER);
    assert_int_equal(DbgSetDebugPrintCallback(other, FALSE), STATUS_NOT_FOUND);
    assert_int_equal(DbgSetDebugPrintCallback(NULL, TRUE), STATUS_INVALID_PARAMETER);
    assert_int_equal(DbgSetDebugPrintCallback(other, TRUE), STATUS_SUCCESS);
    DbgPrint("once");
    assert_string_equal(captured, "once");
    assert_int_equal(DbgSetDebugPrintCallback(other, FALSE), STATUS_SUCCESS);
}

/* A removed callback no longer runs. */
static volatile ULONG alive, late;

static VOID must_be_alive(PSTRING output, ULONG component, ULONG level)
{
    (void)output;
    (void)component;
    (void)level;
    if (__atomic_load_n(&alive, __ATOMIC_ACQUIRE) == 0) {
        __atomic_fetch_add(&late, 1, __ATOMIC_RELAXED);
    }
}

static void print_or_remove(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(2000);
    (void)argument;
    for (unsigned long i = 0; i < rounds; i += 1) {
        if (index == 0) {
            __atomic_store_n(&alive, 1, __ATOMIC_RELEASE);
            DbgSetDebugPrintCallback(must_be_alive, TRUE);
            DbgSetDebugPrintCallback(must_be_alive, FALSE);
            __atomic_store_n(&alive, 0, __ATOMIC_RELEASE);
        } else {
            DbgPrint("%s", "");
        }
    }
}

static void test_removing_waits(void **state)
{
    (void)state;
    run_threads(MANY, 60, print_or_remove, NULL);
    assert_int_equal(late, 0);
}

/* The output of a call is contiguous, even if other threads print. */
static void print_lines(void *argument, unsigned index)
{
    (void)argument;
    for (int i = 0; i < 200; i += 1) {
        DbgPrint("%0*d\n", 60, (int)index);
    }
}

static void test_lines_do_not_mix(void **state)
{
    int ends[2];
    char line[128];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        run_threads(MANY, 60, print_lines, NULL);
        _exit(0);
    }
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    unsigned lines = 0;
    while (fgets(line, sizeof(line), output) != NULL) {
        assert_int_equal(strlen(line), 61);
        assert_int_equal(strspn(line, "0"), line[59] == '0' ? 60 : 59);
        lines += 1;
    }
    fclose(output);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(lines, MANY * 200);
}

static NTSTATUS raised_by(void (*function)(void))
{
    NTSTATUS status = STATUS_SUCCESS;
    __try {
        function();
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        status = GetExceptionCode();
    }
    return status;
}

static void fail_assert(void)
{
    ASSERT(1 + 1 == 3);
}

static void fail_assertmsg(void)
{
    ASSERTMSG("sums", 1 + 1 == 3);
}

static void fail_nt_assert(void)
{
    NT_ASSERT(1 + 1 == 4);
}

static void fail_nt_verify(void)
{
    NT_VERIFYMSG("counted", 1 + 1 == 4);
}

static void fail_soft(void)
{
    RTL_SOFT_ASSERT(1 + 1 == 2);
    RTL_SOFT_ASSERT(1 + 1 == 5);
    RTL_SOFT_ASSERTMSG("soft", 1 + 1 == 5);
}

static void break_in(void)
{
    KdBreakPoint();
}

static void break_with_status(void)
{
    DbgBreakPointWithStatus(7);
}

static void test_assertions(void **state)
{
    (void)state;
    assert_true(ASSERT(1 + 1 == 2));
    assert_true(NT_VERIFY(1 + 1 == 2));
    assert_string_equal(captured, "");
    if (!KD_DEBUGGER_NOT_PRESENT) {
        return;
    }
    assert_false(*KdDebuggerEnabled);
    assert_true(*KdDebuggerNotPresent);
    assert_int_equal(raised_by(fail_assert), STATUS_BREAKPOINT);
    assert_non_null(strstr(captured, "*** Assertion failed: 1 + 1 == 3\n***   Source File: "));
    assert_non_null(strstr(captured, "debugprint.c, line "));
    assert_int_equal(raised_by(fail_assertmsg), STATUS_BREAKPOINT);
    assert_non_null(strstr(captured, "failed: sums: 1 + 1 == 3\n"));
    assert_int_equal(raised_by(fail_nt_assert), STATUS_ASSERTION_FAILURE);
    assert_non_null(strstr(captured, "failed: 1 + 1 == 4\n"));
    assert_int_equal(raised_by(fail_nt_verify), STATUS_ASSERTION_FAILURE);
    assert_int_equal(raised_by(fail_soft), STATUS_SUCCESS);
    assert_null(strstr(captured, "1 + 1 == 2"));
    assert_non_null(strstr(captured, "*** Soft assertion failed: soft: 1 + 1 == 5\n"));
    assert_int_equal(raised_by(break_in), STATUS_BREAKPOINT);
    assert_int_equal(raised_by(break_with_status), STATUS_BREAKPOINT);
    assert_non_null(strstr(captured, "status 0x00000007\n"));
}

static void uncaught(void *function)
{
    ((void (*)(void))(ULONG_PTR)function)();
}

static void test_uncaught_assertions(void **state)
{
    (void)state;
    expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (ULONG_PTR)(LONG_PTR)STATUS_BREAKPOINT, uncaught,
                     (void *)(ULONG_PTR)fail_assert);
    expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (ULONG_PTR)(LONG_PTR)STATUS_ASSERTION_FAILURE, uncaught,
                     (void *)(ULONG_PTR)fail_nt_assert);
}

static void paged(void)
{
    PAGED_CODE()
}

static void paged_at_dispatch_level(void)
{
    KeRaiseIrqlToDpcLevel();
    PAGED_CODE();
}

static void paged_in_a_free_build(void *verifier)
{
    KiVerifierEnabled = verifier != NULL;
    KeRaiseIrqlToDpcLevel();
    ExpCheckPagedCode(FALSE, __FILE__, __LINE__);
    KeLowerIrql(PASSIVE_LEVEL);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void test_paged_code(void **state)
{
    KIRQL old;
    (void)state;
    paged();
    KeRaiseIrql(APC_LEVEL, &old);
    paged();
    KeLowerIrql(old);
    expect_violation(KMODE_EXCEPTION_NOT_HANDLED, (ULONG_PTR)(LONG_PTR)STATUS_BREAKPOINT, uncaught,
                     (void *)(ULONG_PTR)paged_at_dispatch_level);
    expect_bugcheck(DRIVER_IRQL_NOT_LESS_OR_EQUAL, paged_in_a_free_build, (void *)1);
    expect_bugcheck(MANUALLY_INITIATED_CRASH, paged_in_a_free_build, NULL);
}

static void test_prompt_without_debugger(void **state)
{
    char response[4] = "old";
    (void)state;
    assert_int_equal(DbgPrompt("go on? ", response, sizeof(response)), 0);
    assert_string_equal(response, "");
    response[0] = 'x';
    assert_int_equal(DbgPrompt("go on? ", response, 0), 0);
    assert_int_equal(response[0], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_formats, begin, end),
        cmocka_unit_test(test_prompt_without_debugger),
        cmocka_unit_test_setup_teardown(test_long_text_is_cut, begin, end),
        cmocka_unit_test_setup_teardown(test_filter, begin, end),
        cmocka_unit_test_setup_teardown(test_any_irql, begin, end),
        cmocka_unit_test_setup_teardown(test_callbacks, begin, end),
        cmocka_unit_test(test_removing_waits),
        cmocka_unit_test(test_lines_do_not_mix),
        cmocka_unit_test_setup_teardown(test_assertions, begin, end),
        cmocka_unit_test(test_uncaught_assertions),
        cmocka_unit_test(test_paged_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
