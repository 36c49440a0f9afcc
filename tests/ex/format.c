/* Formatted text: NT's conversions, in formats and outputs of both kinds. */
#include "ex/text.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

#define ROOM 256

static SIZE_T narrow(char *buffer, SIZE_T room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    SIZE_T length = ExpFormatNarrowString(buffer, room, format, arguments);
    va_end(arguments);
    return length;
}

static SIZE_T wide(WCHAR *buffer, SIZE_T room, const WCHAR *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    SIZE_T length = ExpFormatWideString(buffer, room, format, arguments);
    va_end(arguments);
    return length;
}

static SIZE_T length_of(const WCHAR *text)
{
    SIZE_T length = 0;
    while (text[length] != 0) {
        length += 1;
    }
    return length;
}

#define EXPECT(Text, ...)                                                                                              \
    do {                                                                                                               \
        char Got_[ROOM];                                                                                               \
        assert_int_equal(narrow(Got_, ROOM, __VA_ARGS__), strlen(Text));                                               \
        assert_string_equal(Got_, Text);                                                                               \
    } while (0)
#define EXPECT_WIDE(Text, ...)                                                                                         \
    do {                                                                                                               \
        WCHAR Got_[ROOM];                                                                                              \
        assert_int_equal(wide(Got_, ROOM, __VA_ARGS__), length_of(Text));                                              \
        assert_memory_equal(Got_, Text, sizeof(Text));                                                                 \
    } while (0)

static void test_integers(void **state)
{
    (void)state;
    EXPECT("0 -1 7", "%d %i %u", 0, -1, 7u);
    EXPECT("-128 255 -32768 65535", "%hhd %hhu %hd %hu", 0x180, 0x1ff, 0x18000, 0x1ffff);
    EXPECT("  42|42  |0042|+42| 42", "%4d|%-4d|%04d|%+d|% d", 42, 42, 42, 42, 42);
    EXPECT("  0042|  -042|0042  ", "%6.4d|%6.3d|%-6.4d", 42, -42, 42);
    EXPECT("0xff 0XFF 0 017 0", "%#x %#X %#x %#o %#o", 255, 255, 0, 15, 0);
    EXPECT("0x00ff|  0xff|0xff  ", "%#06x|%#6x|%-#6x", 255, 255, 255);
    EXPECT("[] [0]", "[%.0d] [%d]", 0, 0);
    EXPECT("   42", "%*d", 5, 42);
    EXPECT("42   |", "%*d|", -5, 42);
    EXPECT("042", "%.*d", 3, 42);
    EXPECT("42", "%.*d", -3, 42);
    EXPECT("-9223372036854775808", "%I64d", (LONGLONG)(1ull << 63));
    EXPECT("18446744073709551615", "%llu", ~0ull);
    EXPECT("1777777777777777777777", "%llo", ~0ull);
    EXPECT("ffffffffffffffff FFFFFFFF", "%I64x %I32X", ~0ull, ~0u);
    EXPECT("123456789abcdef 18446744073709551615 -1", "%Ix %Iu %Id", (SIZE_T)0x123456789abcdef, MAXSIZE_T, (SSIZE_T)-1);
    EXPECT("18446744073709551615 -1 3", "%zu %td %ju", MAXSIZE_T, (SSIZE_T)-1, 3ull);
}

/* A LONG is 32 bits, whatever is in the upper half of its register. */
static void test_long_is_32_bits(void **state)
{
    (void)state;
    EXPECT("-1 4294967295 ffffffff", "%ld %lu %lx", (LONG)-1, (ULONG)~0u, (ULONG)~0u);
    EXPECT("7 7", "%ld %lu", (LONGLONG)0x100000007, (ULONGLONG)0x100000007);
}

static void test_pointers(void **state)
{
    (void)state;
    EXPECT("00000000DEADBEEF", "%p", (void *)0xdeadbeef);
    EXPECT("0000000000000000", "%p", NULL);
    EXPECT("  0123456789ABCDEF", "%18p", (void *)0x123456789abcdef);
}

static void test_strings(void **state)
{
    (void)state;
    EXPECT("abc def ghi", "%s %hs %hS", "abc", "def", "ghi");
    EXPECT("abc def ghi jkl", "%S %ws %ls %wS", u"abc", u"def", u"ghi", u"jkl");
    EXPECT("  ab|ab  |a", "%4s|%-4s|%.1s", "ab", "ab", "ab");
    EXPECT("(null) (null) (nul", "%s %ws %.4s", (char *)NULL, (WCHAR *)NULL, (char *)NULL);
    EXPECT("x y z w", "%c %C %hc %wc", 'x', u'y', 'z', u'w');
    EXPECT("  x|x  ", "%3c|%-3c", 'x', 'x');
    EXPECT_WIDE(u"abc def ghi", u"%s %ws %ls", u"abc", u"def", u"ghi");
    EXPECT_WIDE(u"abc def ghi", u"%S %hs %hS", "abc", "def", "ghi");
    EXPECT_WIDE(u"x y z", u"%c %C %hc", u'x', 'y', 'z');
    EXPECT_WIDE(u"-1 00000000DEADBEEF", u"%ld %p", -1, (void *)0xdeadbeef);
}

/* A string that is not terminated is read no further than its precision. */
static void test_precision_bounds_the_read(void **state)
{
    char *tail = test_malloc(3);
    WCHAR *wide_tail = test_malloc(3 * sizeof(WCHAR));
    (void)state;
    memcpy(tail, "abc", 3);
    memcpy(wide_tail, u"abc", 3 * sizeof(WCHAR));
    EXPECT("abc abc", "%.3s %.3ws", tail, wide_tail);
    test_free(tail);
    test_free(wide_tail);
}

static void test_counted_strings(void **state)
{
    char bytes[] = {'a', 'b', 'c', 'd'};
    ANSI_STRING ansi = {.Length = 3, .MaximumLength = 4, .Buffer = bytes};
    WCHAR units[] = {'x', 'y', 'z', 'w'};
    UNICODE_STRING unicode = {.Length = 3 * sizeof(WCHAR), .MaximumLength = sizeof(units), .Buffer = units};
    UNICODE_STRING empty = {0};
    UNICODE_STRING odd = {.Length = 3, .MaximumLength = 4, .Buffer = units};
    (void)state;
    EXPECT("abc abc xyz xyz", "%Z %hZ %wZ %lZ", &ansi, &ansi, &unicode, &unicode);
    EXPECT("(null) (null)", "%wZ %Z", &empty, NULL);
    EXPECT("x", "%wZ", &odd);
    EXPECT("  xyz|xyz  |xy", "%5wZ|%-5wZ|%.2wZ", &unicode, &unicode, &unicode);
    EXPECT_WIDE(u"abc xyz", u"%Z %wZ", &ansi, &unicode);
    unicode.Length = 0;
    EXPECT("[]", "[%wZ]", &unicode);
}

static void test_kinds_are_converted(void **state)
{
    static const WCHAR text[] = {'a', 0xE4, 0x20AC, 0xD83D, 0xDE00, 0};
    static const WCHAR lone[] = {0xD83D, 'b', 0};
    (void)state;
    EXPECT("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "%ws", text);
    EXPECT("\xEF\xBF\xBD" "b", "%ws", lone);
    EXPECT_WIDE(text, u"%hs", "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
    EXPECT("   \xC3\xA4", "%5wc", 0xE4);
    EXPECT("\xE4", "%c", 0xE4);
    EXPECT_WIDE(u"\u00E4", u"%hc", 0xE4);
    EXPECT("\xC3\xA4", "%s", "\xC3\xA4");
}

/* Text is converted in pieces; no piece splits a character. */
static void test_long_text_is_converted_whole(void **state)
{
    WCHAR source[201];
    char expected[601], got[601];
    (void)state;
    for (int shift = 0; shift < 2; shift += 1) {
        SIZE_T at = 0, bytes = 0;
        if (shift != 0) {
            source[at++] = 'x';
            expected[bytes++] = 'x';
        }
        while (at + 2 <= 200) {
            source[at++] = 0xD83D;
            source[at++] = 0xDE00;
            memcpy(expected + bytes, "\xF0\x9F\x98\x80", 4);
            bytes += 4;
        }
        source[at] = 0;
        expected[bytes] = 0;
        assert_int_equal(narrow(got, sizeof(got), "%ws", source), bytes);
        assert_string_equal(got, expected);
        WCHAR back[201];
        assert_int_equal(wide(back, 201, u"%hs", expected), at);
        assert_memory_equal(back, source, (at + 1) * sizeof(WCHAR));
    }
}

static void test_truncation_is_counted(void **state)
{
    char buffer[4] = "###";
    WCHAR units[4] = u"###";
    (void)state;
    assert_int_equal(narrow(buffer, 4, "%s-%d", "abcdef", 12), 9);
    assert_string_equal(buffer, "abc");
    assert_int_equal(wide(units, 4, u"%s-%d", u"abcdef", 12), 9);
    assert_memory_equal(units, u"abc", sizeof(units));
    buffer[0] = '#';
    assert_int_equal(narrow(buffer, 0, "%s", "abc"), 3);
    assert_int_equal(buffer[0], '#');
    assert_int_equal(narrow(buffer, 1, "%2147483646d", 1), 2147483646);
    assert_int_equal(narrow(buffer, 1, "%.2147483646d", 1), 2147483646);
    assert_string_equal(buffer, "");
    assert_int_equal(narrow(buffer, 4, "abcd"), 4);
    assert_string_equal(buffer, "abc");
    assert_int_equal(narrow(buffer, 4, "abc"), 3);
}

static void test_what_is_no_conversion(void **state)
{
    (void)state;
    EXPECT("100% y", "100%% %y", 1);
    EXPECT("", "%");
    EXPECT("a", "a%-5.3ll");
    EXPECT("n 5", "%n %d", 5);
}

static void test_floating_point(void **state)
{
    char buffer[ROOM];
    (void)state;
    EXPECT("1.50 +1.5e+00   1.5 1.5", "%.2f %+.1e %5.1f %g", 1.5, 1.5, 1.5, 1.5);
    EXPECT("2.5", "%.1Lf", 2.5L);
    assert_true(narrow(buffer, ROOM, "%Lf", 1e4000L) == MAXSIZE_T);
}

static BOOLEAN refuse(PVOID context, PCCH text, SIZE_T length)
{
    *(SIZE_T *)context += length;
    return text[0] != '!';
}

static void put(PEXP_OUTPUT output, ULONG flags, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ExpFormatNarrow(output, flags, format, arguments);
    va_end(arguments);
}

static void test_a_writer(void **state)
{
    SIZE_T written = 0;
    EXP_OUTPUT output = {.Write = refuse, .Context = &written};
    (void)state;
    put(&output, EXP_FORMAT_NT, "%s%5d", "abc", 1);
    assert_false(output.Failed);
    assert_int_equal(written, 8);
    assert_int_equal(output.Length, 8);
    output = (EXP_OUTPUT){.Wide = TRUE, .Write = refuse, .Context = &written};
    written = 0;
    put(&output, EXP_FORMAT_NT, "%s\xC3\xA4", "\xE2\x82\xAC");
    assert_int_equal(written, 5);
    assert_int_equal(output.Length, 2);
    put(&output, EXP_FORMAT_NT, "!%s", "abc");
    assert_true(output.Failed);
}

static void test_strict(void **state)
{
    char buffer[ROOM] = "";
    EXP_OUTPUT output = {.Buffer = buffer, .Room = ROOM};
    (void)state;
    put(&output, EXP_FORMAT_STRICT, "%ld %%", -1);
    assert_string_equal(buffer, "-1 %");
    assert_false(output.Failed);
    put(&output, EXP_FORMAT_STRICT, "%y", 1);
    assert_true(output.Failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_long_is_32_bits),
        cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_precision_bounds_the_read),
        cmocka_unit_test(test_counted_strings),
        cmocka_unit_test(test_kinds_are_converted),
        cmocka_unit_test(test_long_text_is_converted_whole),
        cmocka_unit_test(test_truncation_is_counted),
        cmocka_unit_test(test_what_is_no_conversion),
        cmocka_unit_test(test_floating_point),
        cmocka_unit_test(test_a_writer),
        cmocka_unit_test(test_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
