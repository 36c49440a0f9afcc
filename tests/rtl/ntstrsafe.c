/* ntstrsafe.c: strings in buffers of known size, with the statuses of drivers. */
#include "support.h"

#include <ntddk.h>
#include <ntstrsafe.h>

#define OVERFLOW STATUS_BUFFER_OVERFLOW
#define INVALID STATUS_INVALID_PARAMETER

static void copies(void **state)
{
    char text[4] = "old", *end;
    WCHAR units[4], *wide_end;
    size_t left;

    (void)state;
    assert_int_equal(RtlStringCchCopyA(text, 4, "abc"), STATUS_SUCCESS);
    assert_string_equal(text, "abc");
    assert_int_equal(RtlStringCchCopyA(text, 4, "1234"), OVERFLOW);
    assert_string_equal(text, "123");
    assert_int_equal(RtlStringCchCopyA(text, 0, "1"), INVALID);
    assert_int_equal(RtlStringCchCopyA(text, (size_t)NTSTRSAFE_MAX_CCH + 1, "1"), INVALID);
    assert_int_equal(RtlStringCchCopyA(text, 4, NULL), INVALID);
    assert_int_equal(RtlStringCchCopyNA(text, 4, "abcdef", 2), STATUS_SUCCESS);
    assert_string_equal(text, "ab");
    assert_int_equal(RtlStringCbCopyW(units, 5, u"ab"), OVERFLOW); /* two characters and a half */
    assert_memory_equal(units, u"a", 4);
    assert_int_equal(RtlStringCbCopyExW(units, 7, u"a", &wide_end, &left, 0), STATUS_SUCCESS);
    assert_ptr_equal(wide_end, units + 1);
    assert_int_equal(left, 5);
    assert_int_equal(RtlStringCchCopyExA(text, 4, "x", &end, &left, STRSAFE_FILL_BYTE('-')), STATUS_SUCCESS);
    assert_ptr_equal(end, text + 1);
    assert_int_equal(left, 3);
    assert_memory_equal(text, "x\0--", 4);
    assert_int_equal(RtlStringCchCopyExA(text, 4, "12345", NULL, NULL, STRSAFE_NULL_ON_FAILURE), OVERFLOW);
    assert_string_equal(text, "");
    assert_int_equal(RtlStringCchCopyExA(text, 4, "12345", NULL, NULL, STRSAFE_FAILURE_BYTE('*')), OVERFLOW);
    assert_string_equal(text, "***");
    assert_int_equal(RtlStringCchCopyExA(text, 4, "x", NULL, NULL, 0x4000), INVALID);
    assert_int_equal(RtlStringCchCopyExA(NULL, 0, NULL, NULL, NULL, STRSAFE_IGNORE_NULLS), STATUS_SUCCESS);
    assert_int_equal(RtlStringCchCopyExA(NULL, 0, "x", NULL, NULL, STRSAFE_IGNORE_NULLS), INVALID);
    assert_int_equal(RtlStringCchCopyExA(text, 4, NULL, NULL, NULL, STRSAFE_IGNORE_NULLS), STATUS_SUCCESS);
    assert_string_equal(text, "");
}

/* Nothing is written if the text does not fit. */
static void without_truncation(void **state)
{
    char text[6] = "ab";
    size_t left;

    (void)state;
    text[5] = '#';
    assert_int_equal(RtlStringCchCatExA(text, 5, "cde", NULL, &left, STRSAFE_NO_TRUNCATION), OVERFLOW);
    assert_string_equal(text, "ab");
    assert_int_equal(left, 3);
    assert_int_equal(RtlStringCchCatExA(text, 5, "cd", NULL, &left, STRSAFE_NO_TRUNCATION), STATUS_SUCCESS);
    assert_string_equal(text, "abcd");
    assert_int_equal(RtlStringCchCopyExA(text, 3, "xyz", NULL, NULL, STRSAFE_NO_TRUNCATION), OVERFLOW);
    assert_string_equal(text, "abcd");
    assert_int_equal(RtlStringCchPrintfExA(text, 3, NULL, NULL, STRSAFE_NO_TRUNCATION, "%d", 123), OVERFLOW);
    assert_string_equal(text, "abcd");
    assert_int_equal(RtlStringCchPrintfExA(text, 4, NULL, NULL, STRSAFE_NO_TRUNCATION, "%d", 123), STATUS_SUCCESS);
    assert_string_equal(text, "123");
    assert_int_equal(text[5], '#');
}

static void appends(void **state)
{
    char text[6] = "ab";
    WCHAR units[6] = u"ab";

    (void)state;
    assert_int_equal(RtlStringCchCatA(text, 6, "cde"), STATUS_SUCCESS);
    assert_int_equal(RtlStringCchCatA(text, 6, "f"), OVERFLOW);
    assert_string_equal(text, "abcde");
    memset(text, 'x', sizeof(text));
    assert_int_equal(RtlStringCchCatA(text, 6, "f"), INVALID); /* not terminated */
    assert_int_equal(RtlStringCchCatNW(units, 6, u"cdefg", 2), STATUS_SUCCESS);
    assert_memory_equal(units, u"abcd", 10);
    assert_int_equal(RtlStringCbCatNW(units, sizeof(units), u"ef", 4), OVERFLOW);
    assert_memory_equal(units, u"abcde", 12);
}

static void formats(void **state)
{
    static const UNICODE_STRING name = RTL_CONSTANT_STRING(u"\\Device\\X");
    static const ANSI_STRING ansi = RTL_CONSTANT_STRING("bytes");
    char text[40];
    WCHAR units[40];
    size_t left;

    (void)state;
    assert_int_equal(RtlStringCbPrintfA(text, sizeof(text), "%wZ %Z %I64x %ld", &name, &ansi, 0x123456789ULL, -1),
                     STATUS_SUCCESS);
    assert_string_equal(text, "\\Device\\X bytes 123456789 -1");
    assert_int_equal(RtlStringCchPrintfW(units, 40, u"%wZ|%hs|%s|%04X", &name, "n", u"w", 0xAB), STATUS_SUCCESS);
    assert_memory_equal(units, u"\\Device\\X|n|w|00AB", 38);
    assert_int_equal(RtlStringCchPrintfA(text, 4, "%d", 12345), OVERFLOW);
    assert_string_equal(text, "123");
    assert_int_equal(RtlStringCbPrintfExW(units, 9, NULL, &left, 0, u"%d", 12), STATUS_SUCCESS);
    assert_int_equal(left, 5);
    assert_int_equal(RtlStringCchPrintfA(text, 4, NULL), INVALID);
}

static void lengths(void **state)
{
    size_t length;

    (void)state;
    assert_int_equal(RtlStringCchLengthW(u"abc", 4, &length), STATUS_SUCCESS);
    assert_int_equal(length, 3);
    assert_int_equal(RtlStringCbLengthW(u"abc", 8, &length), STATUS_SUCCESS);
    assert_int_equal(length, 6);
    assert_int_equal(RtlStringCchLengthW(u"abc", 3, &length), INVALID);
    assert_int_equal(RtlStringCchLengthA(NULL, 3, &length), INVALID);
    assert_int_equal(RtlUnalignedStringCchLengthW(u"ab", 4, NULL), STATUS_SUCCESS);
}

static WCHAR buffer[4];

static UNICODE_STRING target(USHORT length)
{
    memcpy(buffer, u"old", 8);
    buffer[3] = '#';
    return (UNICODE_STRING){length, 6, buffer};
}

static void unicode_copies(void **state)
{
    UNICODE_STRING string = target(2), rest, source = RTL_CONSTANT_STRING(u"abcd");

    (void)state;
    assert_int_equal(RtlUnicodeStringCopyString(&string, u"xy"), STATUS_SUCCESS);
    assert_int_equal(string.Length, 4);
    assert_memory_equal(buffer, u"xyd#", 8); /* no terminator */
    assert_int_equal(RtlUnicodeStringCopyString(&string, u"abc"), STATUS_SUCCESS);
    assert_int_equal(string.Length, 6);
    assert_int_equal(RtlUnicodeStringCopy(&string, &source), OVERFLOW);
    assert_int_equal(string.Length, 6);
    assert_memory_equal(buffer, u"abc#", 8);
    assert_int_equal(RtlUnicodeStringCchCopyN(&string, &source, 2), STATUS_SUCCESS);
    assert_int_equal(string.Length, 4);
    assert_int_equal(RtlUnicodeStringCbCopyN(&string, &source, 2), STATUS_SUCCESS);
    assert_int_equal(string.Length, 2);
    assert_int_equal(RtlUnicodeStringCbCopyStringN(&string, u"xyz", 4), STATUS_SUCCESS);
    assert_int_equal(string.Length, 4);
    assert_int_equal(RtlUnicodeStringCopyStringEx(&string, u"z", &rest, STRSAFE_FILL_BEHIND | '.'), STATUS_SUCCESS);
    assert_int_equal(buffer[1], 0x2E2E);
    assert_int_equal(rest.Length, 0);
    assert_int_equal(rest.MaximumLength, 4);
    assert_ptr_equal(rest.Buffer, buffer + 1);
    string = target(2);
    assert_int_equal(RtlUnicodeStringCopyEx(&string, &source, &rest, STRSAFE_NO_TRUNCATION), OVERFLOW);
    assert_memory_equal(buffer, u"old#", 8);
    assert_int_equal(string.Length, 2);
    assert_int_equal(RtlUnicodeStringCopyEx(&string, &source, NULL, STRSAFE_ZERO_LENGTH_ON_FAILURE), OVERFLOW);
    assert_int_equal(string.Length, 0);
    assert_int_equal(RtlUnicodeStringCopyEx(&string, &source, NULL, STRSAFE_FILL_ON_FAILURE | 'z'), OVERFLOW);
    assert_int_equal(buffer[2], 0x7A7A);
    assert_int_equal(buffer[3], '#');
}

static void unicode_appends(void **state)
{
    UNICODE_STRING string = target(2), source = RTL_CONSTANT_STRING(u"xy");

    (void)state;
    assert_int_equal(RtlUnicodeStringCat(&string, &source), STATUS_SUCCESS);
    assert_int_equal(string.Length, 6);
    assert_memory_equal(buffer, u"oxy#", 8);
    assert_int_equal(RtlUnicodeStringCatString(&string, u""), STATUS_SUCCESS);
    assert_int_equal(RtlUnicodeStringCatString(&string, u"z"), OVERFLOW);
    string.Length = 4;
    assert_int_equal(RtlUnicodeStringCatStringEx(&string, u"12", NULL, STRSAFE_NO_TRUNCATION), OVERFLOW);
    assert_int_equal(string.Length, 4);
    assert_int_equal(RtlUnicodeStringCatString(&string, u"12"), OVERFLOW);
    assert_memory_equal(buffer, u"ox1#", 8);
    assert_int_equal(string.Length, 6);
    string.Length = 2;
    assert_int_equal(RtlUnicodeStringCchCatStringN(&string, u"789", 1), STATUS_SUCCESS);
    assert_int_equal(RtlUnicodeStringCbCatN(&string, &source, 2), STATUS_SUCCESS);
    assert_memory_equal(buffer, u"o7x#", 8);
}

static void unicode_formats(void **state)
{
    UNICODE_STRING string = target(2), rest;

    (void)state;
    assert_int_equal(RtlUnicodeStringPrintf(&string, u"%d", 123), STATUS_SUCCESS); /* fills it, without a terminator */
    assert_memory_equal(buffer, u"123#", 8);
    assert_int_equal(string.Length, 6);
    assert_int_equal(RtlUnicodeStringPrintf(&string, u"%d", 4567), OVERFLOW);
    assert_memory_equal(buffer, u"456#", 8);
    assert_int_equal(RtlUnicodeStringPrintfEx(&string, &rest, STRSAFE_NO_TRUNCATION, u"%d", 9999), OVERFLOW);
    assert_memory_equal(buffer, u"456#", 8);
    assert_int_equal(RtlUnicodeStringPrintfEx(&string, &rest, STRSAFE_FILL_BEHIND, u"%wZ", &(UNICODE_STRING){2, 2, (PWSTR)u"x"}),
                     STATUS_SUCCESS);
    assert_memory_equal(buffer, u"x\0\0#", 8);
    assert_int_equal(rest.MaximumLength, 4);
    assert_int_equal(RtlUnicodeStringPrintf(NULL, u"x"), INVALID);
    assert_int_equal(RtlUnicodeStringPrintfEx(NULL, NULL, STRSAFE_IGNORE_NULLS, u""), STATUS_SUCCESS);
    assert_int_equal(RtlUnicodeStringPrintfEx(NULL, NULL, STRSAFE_IGNORE_NULLS, u"x"), INVALID);
}

static void unicode_arguments(void **state)
{
    UNICODE_STRING bad = {4, 2, buffer}, odd = {1, 2, buffer}, none = {0}, string = target(0);
    WCHAR text[4];
    size_t left;

    (void)state;
    assert_int_equal(RtlUnicodeStringCopy(&bad, &string), INVALID);
    assert_int_equal(RtlUnicodeStringCopy(&string, &odd), INVALID);
    assert_int_equal(RtlUnicodeStringCopy(NULL, &string), INVALID);
    assert_int_equal(RtlUnicodeStringCopy(&string, NULL), INVALID);
    assert_int_equal(RtlUnicodeStringCopyEx(&string, NULL, NULL, STRSAFE_IGNORE_NULLS), STATUS_SUCCESS);
    assert_int_equal(RtlUnicodeStringCopyString(&none, u""), STATUS_SUCCESS);
    assert_int_equal(RtlUnicodeStringCopyString(&none, u"x"), INVALID);
    assert_int_equal(RtlUnicodeStringCopyStringEx(&string, u"x", NULL, 0x8000), INVALID);
    assert_int_equal(RtlUnicodeStringCchCopyStringN(&string, u"x", 32768), INVALID);
    assert_int_equal(RtlUnicodeStringInit(&string, u"ab"), STATUS_SUCCESS);
    assert_int_equal(string.Length, 4);
    assert_int_equal(RtlUnicodeStringInit(NULL, u"ab"), INVALID);
    assert_int_equal(RtlUnicodeStringInitEx(NULL, NULL, STRSAFE_IGNORE_NULLS), STATUS_SUCCESS);
    assert_int_equal(RtlUnicodeStringValidate(&string), STATUS_SUCCESS);
    assert_int_equal(RtlUnicodeStringValidate(&bad), INVALID);
    assert_int_equal(RtlUnicodeStringValidate(NULL), INVALID);
    assert_int_equal(RtlUnicodeStringValidateEx(NULL, STRSAFE_IGNORE_NULLS), STATUS_SUCCESS);
    assert_int_equal(RtlStringCchCopyUnicodeString(text, 3, &string), STATUS_SUCCESS);
    assert_memory_equal(text, u"ab", 6);
    assert_int_equal(RtlStringCchCopyUnicodeString(text, 2, &string), OVERFLOW);
    assert_memory_equal(text, u"a", 4);
    assert_int_equal(RtlStringCbCopyUnicodeStringEx(text, 8, &string, NULL, &left, 0), STATUS_SUCCESS);
    assert_int_equal(left, 4);
    assert_int_equal(RtlStringCbCopyUnicodeString(text, 8, NULL), INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),           cmocka_unit_test(without_truncation), cmocka_unit_test(appends),
        cmocka_unit_test(formats),          cmocka_unit_test(lengths),            cmocka_unit_test(unicode_copies),
        cmocka_unit_test(unicode_appends),  cmocka_unit_test(unicode_formats),    cmocka_unit_test(unicode_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
