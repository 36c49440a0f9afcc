#include "support.h"

#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_wide(const WCHAR *actual, const WCHAR *expected)
{
    assert_int_equal(InterlockWcslen(actual), InterlockWcslen(expected));
    assert_memory_equal(actual, expected, (InterlockWcslen(expected) + 1) * sizeof(WCHAR));
}

static void copies(void **state)
{
    WCHAR text[16];
    WCHAR *copy;

    (void)state;
    assert_int_equal(InterlockWcslen(u""), 0);
    assert_int_equal(InterlockWcsnlen(u"abc", 2), 2);
    assert_ptr_equal(InterlockWcscpy(text, u"abc"), text);
    assert_ptr_equal(InterlockWcscat(text, u"de"), text);
    expect_wide(text, u"abcde");
    assert_ptr_equal(InterlockWcsncat(text, u"fgh", 2), text);
    expect_wide(text, u"abcdefg");
    memset(text, 'x', sizeof(text));
    assert_ptr_equal(InterlockWcsncpy(text, u"ab", 4), text);
    assert_memory_equal(text, u"ab\0\0", 8);
    assert_int_equal(text[4], 'x' | 'x' << 8);
    InterlockWcsncpy(text, u"vwxyz", 3);
    assert_memory_equal(text, u"vwx\0", 8);
    copy = InterlockWcsdup(u"copy");
    expect_wide(copy, u"copy");
    free(copy);
}

static void comparisons(void **state)
{
    (void)state;
    assert_true(InterlockWcscmp(u"a", u"b") < 0 && InterlockWcscmp(u"b", u"a") > 0 && InterlockWcscmp(u"a", u"a") == 0);
    assert_true(InterlockWcscmp(u"\uFFFF", u"a") > 0 && InterlockWcscmp(u"a", u"ab") < 0);
    assert_true(InterlockWcsncmp(u"abc", u"abd", 2) == 0 && InterlockWcsncmp(u"abc", u"abd", 3) < 0);
    assert_true(InterlockWcsncmp(u"a", u"b", 0) == 0 && InterlockWcsncmp(u"ab", u"ab", 100) == 0);
    assert_true(InterlockWcsicmp(u"AbC", u"aBc") == 0 && InterlockWcsicmp(u"[", u"{") != 0);
    assert_true(InterlockWcsnicmp(u"ABx", u"aby", 2) == 0 && InterlockWcsnicmp(u"ABx", u"aby", 3) < 0);
}

static void searches(void **state)
{
    static const WCHAR text[] = u"abcabc";

    (void)state;
    assert_ptr_equal(InterlockWcschr(text, 'b'), text + 1);
    assert_ptr_equal(InterlockWcsrchr(text, 'b'), text + 4);
    assert_ptr_equal(InterlockWcschr(text, 0), text + 6);
    assert_ptr_equal(InterlockWcsrchr(text, 0), text + 6);
    assert_null(InterlockWcschr(text, 'x'));
    assert_null(InterlockWcsrchr(text, 'x'));
    assert_ptr_equal(InterlockWcsstr(text, u"cab"), text + 2);
    assert_ptr_equal(InterlockWcsstr(text, u""), text);
    assert_null(InterlockWcsstr(text, u"abcd"));
    assert_ptr_equal(InterlockWcspbrk(text, u"xc"), text + 2);
    assert_null(InterlockWcspbrk(text, u"xyz"));
    assert_int_equal(InterlockWcsspn(text, u"ba"), 2);
    assert_int_equal(InterlockWcscspn(text, u"xc"), 2);
    assert_int_equal(InterlockWcscspn(text, u""), 6);
}

static void numbers(void **state)
{
    static const WCHAR text[] = u" -12z";
    WCHAR *end;

    (void)state;
    assert_int_equal(InterlockWcstol(text, &end, 10), -12);
    assert_ptr_equal(end, text + 4);
    assert_int_equal(InterlockWcstoul(u"0xFFffFFff", NULL, 0), 0xFFFFFFFF);
    assert_int_equal(InterlockWcstoul(u"\u0661", NULL, 10), 0);
    assert_int_equal(InterlockWtoi(u"77 "), 77);
    assert_int_equal(InterlockWcstol(text, &end, 1), 0);
    assert_ptr_equal(end, text);
    assert_int_equal(InterlockWcstoul(text, &end, 64), 0);
    assert_ptr_equal(end, text);
}

static void expect_format(const WCHAR *expected, const WCHAR *format, ...)
{
    WCHAR text[600];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = InterlockVsnwprintf(text, ARRAYSIZE(text), format, arguments);
    va_end(arguments);
    expect_wide(text, expected);
    assert_int_equal(length, InterlockWcslen(expected));
}

static void formats_of_strings(void **state)
{
    (void)state;
    expect_format(u"", u"");
    expect_format(u"100%", u"100%%");
    expect_format(u"wide", u"%s", u"wide");
    expect_format(u"wide wide wide", u"%ls %ws %lS", u"wide", u"wide", u"wide");
    expect_format(u"narrow \u00E9", u"%hs %S", "narrow", "\xC3\xA9");
    expect_format(u"[  ab][ab  ][a]", u"[%4s][%-4s][%.1s]", u"ab", u"ab", u"ab");
    expect_format(u"[  ab][ab  ][a]", u"[%4hs][%-4hs][%.1hs]", "ab", "ab", "ab");
    expect_format(u"[  ab][ab  ]", u"[%*s][%*s]", 4, u"ab", -4, u"ab");
    expect_format(u"(null) (null)", u"%s %hs", (WCHAR *)NULL, (char *)NULL);
    expect_format(u"x\u20ACy  z", u"%c%c%hc%3c", 'x', 0x20AC, 'y', 'z');
}

static void formats_of_numbers(void **state)
{
    (void)state;
    expect_format(u"-1 4294967295 ff FF 17", u"%d %u %x %X %o", -1, 0xFFFFFFFFu, 255, 255, 15);
    expect_format(u"-1 255 -1 65535", u"%hhd %hhu %hd %hu", 0xFF, 0x1FF, 0xFFFF, 0x1FFFF);
    expect_format(u"-5000000000 5000000000 5000000000", u"%lld %I64u %zu", -5000000000LL, 5000000000ULL,
                  (size_t)5000000000ULL);
    expect_format(u"-7 8 9", u"%ld %I32u %Iu", -7, 8u, (size_t)9);
    expect_format(u"-1 4294967295 ffffffff", u"%ld %lu %lx", (LONG)-1, (DWORD)-1, (DWORD)-1);
    expect_format(u"00042 +42   42 42   ", u"%05d %+d %4d %-5d", 42, 42, 42, 42);
    expect_format(u"0x2a 0042", u"%#x %.4d", 42, 42);
    expect_format(u"1.50 1.5e+00 2", u"%.2f %.1e %g", 1.5, 1.5, 2.0);
    expect_format(u"2.5", u"%.1Lf", (long double)2.5);
    expect_format(u"0000000012345678", u"%p", (void *)0x12345678);
    expect_format(u"mixed 1 two 3.0 c", u"mixed %d %s %.1f %c", 1, u"two", 3.0, 'c');
}

/* Longer than the pieces in which it is written, with a character across each boundary. */
static void long_texts(void **state)
{
    char narrow[401];
    WCHAR wide[201];
    WCHAR text[1000];

    (void)state;
    for (int i = 0; i < 200; i++) {
        memcpy(narrow + 2 * i, "\xC3\xA9", 2);
        wide[i] = 0xE9;
    }
    narrow[400] = 0;
    wide[200] = 0;
    assert_int_equal(InterlockSnwprintf(text, 1000, u"a%hs", narrow), 201);
    expect_wide(text + 1, wide);
    assert_int_equal(InterlockSnwprintf(text, 1000, u"%s", wide), 200);
    expect_wide(text, wide);
    assert_int_equal(InterlockSnwprintf(text, 1000, u"%300d", 1), 300);
}

static void what_does_not_fit(void **state)
{
    WCHAR text[4] = u"xxx";

    (void)state;
    assert_int_equal(InterlockSnwprintf(text, 4, u"%s", u"abc"), 3);
    assert_int_equal(InterlockSnwprintf(text, 4, u"%s", u"vwxyz"), -1);
    expect_wide(text, u"vwx");
    assert_int_equal(InterlockSnwprintf(NULL, 0, u"abc"), -1);
    assert_int_equal(InterlockSnwprintf(text, 4, u"%2147483647s|%2147483647c|%-2147483647s", u"a", 'b', u"c"), -1);
    expect_wide(text, u"   ");
    assert_int_equal(InterlockSnwprintf(text, 4, u"%n", NULL), -1);
    assert_int_equal(InterlockSnwprintf(text, 4, u"%"), -1);
    assert_int_equal(InterlockSnwprintf(text, 4, u"%5"), -1);
    assert_int_equal(InterlockSnwprintf(text, 4, u"%y", 1), -1);
}

static void streams(void **state)
{
    FILE *file = tmpfile();
    char text[64] = "";
    WCHAR pairs[101];

    (void)state;
    assert_non_null(file);
    assert_int_equal(InterlockFwprintf(file, u"%s=%d\u20AC\n", u"n", 5), 5);
    rewind(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_string_equal(text, "n=5\xE2\x82\xAC\n");
    rewind(file);
    for (int i = 0; i < 50; i++)
        memcpy(pairs + 2 * i, u"\U0001D11E", 4);
    pairs[100] = 0;
    assert_int_equal(InterlockFwprintf(file, u"%s", pairs), 100);
    rewind(file);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(fread(text, 1, 4, file), 4);
        assert_memory_equal(text, "\xF0\x9D\x84\x9E", 4);
    }
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(searches),
        cmocka_unit_test(numbers),
        cmocka_unit_test(formats_of_strings),
        cmocka_unit_test(formats_of_numbers),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
