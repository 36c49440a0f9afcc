/* strsafe.c: strings in buffers of known size, in both kinds of characters and both units. */
#include "support.h"

#include <windows.h>
#include <strsafe.h>

#define TOO_SMALL STRSAFE_E_INSUFFICIENT_BUFFER
#define INVALID STRSAFE_E_INVALID_PARAMETER

static void copies(void **state)
{
    char text[4] = "old";
    WCHAR wide[4];

    (void)state;
    assert_int_equal(StringCchCopyA(text, 4, "abc"), S_OK);
    assert_string_equal(text, "abc");
    assert_int_equal(StringCchCopyA(text, 4, "1234"), TOO_SMALL);
    assert_string_equal(text, "123"); /* truncated, unlike strcpy_s */
    assert_int_equal(StringCchCopyA(text, 0, "1"), INVALID);
    assert_int_equal(StringCchCopyA(text, (size_t)STRSAFE_MAX_CCH + 1, "1"), INVALID);
    assert_int_equal(StringCchCopyNA(text, 4, "abcdef", 2), S_OK);
    assert_string_equal(text, "ab");
    assert_int_equal(StringCbCopyA(text, 3, "abc"), TOO_SMALL);
    assert_string_equal(text, "ab");
    assert_int_equal(StringCchCopyW(wide, 4, u"abc"), S_OK);
    assert_memory_equal(wide, u"abc", 8);
    assert_int_equal(StringCbCopyW(wide, 5, u"ab"), TOO_SMALL); /* two characters and a half */
    assert_memory_equal(wide, u"a", 4);
    assert_int_equal(StringCbCopyNW(wide, sizeof(wide), u"xyz", 2 * sizeof(WCHAR)), S_OK);
    assert_memory_equal(wide, u"xy", 6);
}

static void appends(void **state)
{
    char text[6] = "ab";
    WCHAR wide[6] = u"ab";

    (void)state;
    assert_int_equal(StringCchCatA(text, 6, "cde"), S_OK);
    assert_string_equal(text, "abcde");
    assert_int_equal(StringCchCatA(text, 6, "f"), TOO_SMALL);
    assert_string_equal(text, "abcde");
    memset(text, 'x', sizeof(text));
    assert_int_equal(StringCchCatA(text, 6, "f"), INVALID); /* not terminated */
    text[0] = 0;
    assert_int_equal(StringCchCatNA(text, 6, "abcdef", 3), S_OK);
    assert_string_equal(text, "abc");
    assert_int_equal(StringCbCatA(text, 6, "defg"), TOO_SMALL);
    assert_string_equal(text, "abcde");
    assert_int_equal(StringCchCatW(wide, 6, u"cd"), S_OK);
    assert_int_equal(StringCbCatNW(wide, sizeof(wide), u"ef", sizeof(WCHAR)), S_OK);
    assert_memory_equal(wide, u"abcde", 12);
}

static void formats(void **state)
{
    char text[6];
    WCHAR wide[6];

    (void)state;
    assert_int_equal(StringCchPrintfA(text, 6, "%d", 12345), S_OK);
    assert_string_equal(text, "12345");
    assert_int_equal(StringCchPrintfA(text, 6, "%d", 123456), TOO_SMALL);
    assert_string_equal(text, "12345");
    assert_int_equal(StringCbPrintfA(text, 3, "%s", "abc"), TOO_SMALL);
    assert_string_equal(text, "ab");
    assert_int_equal(StringCchPrintfA(text, 0, "x"), INVALID);
    assert_int_equal(StringCchPrintfW(wide, 6, u"%s-%d", u"ab", 12), S_OK);
    assert_memory_equal(wide, u"ab-12", 12);
    assert_int_equal(StringCbPrintfW(wide, 6, u"%d", 1234), TOO_SMALL);
    assert_memory_equal(wide, u"12", 6);
}

/* The end, what is left, and every flag. */
static void extended_forms(void **state)
{
    char text[8], *end = NULL;
    WCHAR wide[8], *wide_end = NULL;
    size_t left = 0;

    (void)state;
    assert_int_equal(StringCchCopyExA(text, 8, "abc", &end, &left, 0), S_OK);
    assert_ptr_equal(end, text + 3);
    assert_int_equal(left, 5);
    assert_int_equal(StringCchCatExA(text, 8, "de", &end, &left, STRSAFE_FILL_BYTE('#')), S_OK);
    assert_memory_equal(text, "abcde\0##", 8);
    assert_int_equal(left, 3);
    assert_int_equal(StringCchCatExA(text, 8, "too long", &end, &left, STRSAFE_NULL_ON_FAILURE), TOO_SMALL);
    assert_string_equal(text, "");
    assert_ptr_equal(end, text);
    assert_int_equal(left, 8);
    assert_int_equal(StringCchCopyExA(text, 8, "much too long", &end, &left, STRSAFE_FAILURE_BYTE('!')), TOO_SMALL);
    assert_memory_equal(text, "!!!!!!!\0", 8);
    assert_int_equal(left, 1);
    assert_int_equal(StringCchCopyNExA(text, 8, "much too long", 13, NULL, NULL, STRSAFE_NO_TRUNCATION), TOO_SMALL);
    assert_string_equal(text, "");
    assert_int_equal(StringCchCopyA(text, 8, "kept"), S_OK);
    assert_int_equal(StringCchCatExA(text, 8, "too long", NULL, NULL, STRSAFE_NO_TRUNCATION), TOO_SMALL);
    assert_string_equal(text, "kept");
    assert_int_equal(StringCchCopyExA(NULL, 0, NULL, &end, &left, STRSAFE_IGNORE_NULLS), S_OK);
    assert_int_equal(left, 0);
    assert_int_equal(StringCchCopyExA(NULL, 0, "x", NULL, NULL, STRSAFE_IGNORE_NULLS), TOO_SMALL);
    assert_int_equal(StringCchCopyExA(NULL, 0, "x", NULL, NULL, 0), INVALID);
    assert_int_equal(StringCchCopyExA(text, 8, "x", NULL, NULL, 0x2000), INVALID);
    assert_int_equal(StringCchPrintfExA(text, 8, &end, &left, 0, "%d", 42), S_OK);
    assert_ptr_equal(end, text + 2);
    assert_int_equal(left, 6);
    assert_int_equal(StringCchPrintfExA(text, 8, NULL, NULL, STRSAFE_NULL_ON_FAILURE, "%d", 123456789), TOO_SMALL);
    assert_string_equal(text, "");
    assert_int_equal(StringCbCopyExW(wide, 15, u"abc", &wide_end, &left, 0), S_OK);
    assert_ptr_equal(wide_end, wide + 3);
    assert_int_equal(left, 9); /* the odd byte counts */
    assert_int_equal(StringCbPrintfExW(wide, sizeof(wide), &wide_end, &left, 0, u"%d", 42), S_OK);
    assert_int_equal(left, 12);
}

static void lengths(void **state)
{
    size_t length = 9;

    (void)state;
    assert_int_equal(StringCchLengthA("abc", 4, &length), S_OK);
    assert_int_equal(length, 3);
    assert_int_equal(StringCchLengthA("abc", 3, &length), INVALID);
    assert_int_equal(length, 0);
    assert_int_equal(StringCchLengthA(NULL, 3, &length), INVALID);
    assert_int_equal(StringCbLengthW(u"abc", 8, &length), S_OK);
    assert_int_equal(length, 6);
    assert_int_equal(StringCchLengthW(u"abc", 10, NULL), S_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(appends),
        cmocka_unit_test(formats),
        cmocka_unit_test(extended_forms),
        cmocka_unit_test(lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
