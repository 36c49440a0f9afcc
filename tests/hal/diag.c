#include "haltest.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

static char output[65536];

/* What function(argument) writes to standard error. */
static const char *captured(void (*function)(void *argument), void *argument)
{
    size_t used = 0;
    ssize_t got;
    int ends[2], saved = dup(STDERR_FILENO);

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    function(argument);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    while ((got = read(ends[0], output + used, sizeof(output) - 1 - used)) > 0)
        used += (size_t)got;
    output[used] = '\0';
    close(ends[0]);
    return output;
}

static void print_values(void *argument)
{
    (void)argument;
    errno = ENOTTY;
    HalPrint("%s %d 0x%08X %p %llu%%\n", "text", -1, 0xabcu, (void *)0x10, MAXULONGLONG);
    assert_int_equal(errno, ENOTTY);
    HalPrint("%s", "");
}

static void print_long_text(void *argument)
{
    HalPrint("%s", (const char *)argument);
}

static void messages_are_formatted(void **state)
{
    (void)state;
    assert_string_equal(captured(print_values, NULL), "text -1 0x00000ABC 0x10 18446744073709551615%\n");
}

static void a_message_that_is_too_long_is_cut(void **state)
{
    static char text[3000];
    const char *printed;
    size_t length;

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    printed = captured(print_long_text, text);
    length = strlen(printed);
    assert_in_range(length, 500, sizeof(text) - 2);
    assert_string_equal(printed + length - 5, "a...\n");
}

static void *read_slowly(void *argument)
{
    char buffer[4096];
    ssize_t got;
    size_t total = 0;

    sleep_milliseconds(20);
    while ((got = read(*(int *)argument, buffer, sizeof(buffer))) > 0)
        total += (size_t)got;
    return (void *)total;
}

/* A standard error that does not block and is full for a while loses nothing. */
static void a_slow_reader_gets_everything(void **state)
{
    static char text[512];
    int ends[2], saved = dup(STDERR_FILENO);
    pthread_t reader;
    void *total;
    unsigned i;

    (void)state;
    memset(text, 'b', sizeof(text) - 1);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    fcntl(ends[0], F_SETFL, 0);
    assert_int_equal(pthread_create(&reader, NULL, read_slowly, &ends[0]), 0);
    dup2(ends[1], STDERR_FILENO);
    for (i = 0; i < 400; i++)
        HalPrint("%s", text);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    pthread_join(reader, &total);
    close(ends[0]);
    assert_int_equal((size_t)total, 400 * (sizeof(text) - 1));
}

static __attribute__((noinline)) void print_stack_from_here(void *argument)
{
    HalPrintStackTrace(argument != NULL ? __builtin_return_address(0) : NULL);
    __asm__ volatile(""); /* not a tail call */
}

static unsigned count_lines(const char *text)
{
    unsigned lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

static void a_stack_trace_begins_where_it_should(void **state)
{
    unsigned lines;

    (void)state;
    lines = count_lines(captured(print_stack_from_here, NULL));
    if (strstr(output, "no stack trace") != NULL)
        return;
    assert_true(lines >= 3);
    assert_non_null(strstr(output, "hal-diag!print_stack_from_here+0x"));
    assert_non_null(strstr(output, "!__libc_start_main"));
    captured(print_stack_from_here, output); /* from its caller on */
    assert_null(strstr(output, "print_stack_from_here"));
    assert_ptr_equal(strstr(output, "   0  0x"), output);
    assert_true(strstr(output, "hal-diag!captured+0x") < strchr(output, '\n'));
}

static int a_static_variable;

static void static_things_have_names(void **state)
{
    char name[256];

    (void)state;
    assert_true(HalQueryAddressName((ULONG64)print_values, name, sizeof(name)));
    assert_string_equal(name, "hal-diag!print_values");
    assert_true(HalQueryAddressName((ULONG64)print_values + 1, name, sizeof(name)));
    assert_string_equal(name, "hal-diag!print_values+0x1");
    assert_true(HalQueryAddressName((ULONG64)&a_static_variable, name, sizeof(name)));
    assert_non_null(strstr(name, "a_static_variable"));
    assert_true(HalQueryAddressName((ULONG64)write, name, sizeof(name)));
    assert_false(HalQueryAddressName((ULONG64)&name, name, sizeof(name)));
    assert_false(HalQueryAddressName(0, name, sizeof(name)));
}

static void a_return_address_belongs_to_the_call(void **state)
{
    char name[256];

    (void)state;
    /* one that is the first byte of a function: the call before it did not return */
    assert_true(HalQueryReturnAddressName((ULONG64)print_values, name, sizeof(name)));
    assert_null(strstr(name, "!print_values"));
    assert_true(HalQueryReturnAddressName((ULONG64)print_values + 1, name, sizeof(name)));
    assert_string_equal(name, "hal-diag!print_values+0x1");
}

static void what_is_printed_can_be_kept(void **state)
{
    char kept[64], little[8];

    (void)state;
    HalCapturePrint(kept, sizeof(kept));
    HalPrint("one %d\n", 1);
    HalPrint("two %d\n", 2);
    HalCapturePrint(little, sizeof(little));
    HalPrint("%s", "longer than the buffer");
    HalCapturePrint(NULL, 0);
    assert_string_equal(kept, "one 1\ntwo 2\n");
    assert_string_equal(little, "longer ");
}

static void the_environment_can_be_read(void **state)
{
    (void)state;
    setenv("INTERLOCK_DIAG_TEST", "value", 1);
    assert_string_equal(HalGetEnvironment("INTERLOCK_DIAG_TEST"), "value");
    unsetenv("INTERLOCK_DIAG_TEST");
    assert_null(HalGetEnvironment("INTERLOCK_DIAG_TEST"));
}

static void abort_after_report(void *argument)
{
    (void)argument;
    HalPrint("*** STOP: 0x%08X\n", 0xE2u);
    HalAbort();
}

static void an_abort_ends_the_process(void **state)
{
    (void)state;
    expect_bugcheck(0xE2, abort_after_report, NULL);
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_formatted),
        cmocka_unit_test(a_message_that_is_too_long_is_cut),
        cmocka_unit_test(a_slow_reader_gets_everything),
        cmocka_unit_test(a_stack_trace_begins_where_it_should),
        cmocka_unit_test(static_things_have_names),
        cmocka_unit_test(a_return_address_belongs_to_the_call),
        cmocka_unit_test(what_is_printed_can_be_kept),
        cmocka_unit_test(the_environment_can_be_read),
        cmocka_unit_test(an_abort_ends_the_process),
    };

    HalInitialize(&callbacks);
    HalCompleteInitialization();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
