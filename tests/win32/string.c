#include "support.h"

#include <windows.h>

#include <stdlib.h>
#include <string.h>

static int widen(const char *source, int bytes, DWORD flags, WCHAR *target, int room)
{
    return MultiByteToWideChar(CP_UTF8, flags, source, bytes, target, room);
}

static int narrow(const WCHAR *source, int units, DWORD flags, char *target, int room)
{
    return WideCharToMultiByte(CP_UTF8, flags, source, units, target, room, NULL, NULL);
}

static void characters_of_every_length(void **state)
{
    static const char utf8[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9D\x84\x9E\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF"
                               "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
    static const WCHAR utf16[] = {'a', 0xE9, 0x20AC, 0xD834, 0xDD1E, 0x7F, 0x80, 0x7FF, 0x800,
                                  0xFFFF, 0xD800, 0xDC00, 0xDBFF, 0xDFFF, 0};
    WCHAR wide[32];
    char text[64];

    (void)state;
    assert_int_equal(widen(utf8, -1, MB_ERR_INVALID_CHARS, NULL, 0), 15);
    assert_int_equal(widen(utf8, -1, MB_ERR_INVALID_CHARS, wide, 15), 15);
    assert_memory_equal(wide, utf16, sizeof(utf16));
    assert_int_equal(narrow(utf16, -1, WC_ERR_INVALID_CHARS, NULL, 0), sizeof(utf8));
    assert_int_equal(narrow(utf16, -1, WC_ERR_INVALID_CHARS, text, sizeof(utf8)), sizeof(utf8));
    assert_string_equal(text, utf8);
    assert_int_equal(widen("abc", 2, 0, wide, 32), 2);
    assert_int_equal(widen("a\0c", 3, 0, wide, 3), 3);
    assert_memory_equal(wide, u"a\0c", 6);
    assert_int_equal(widen("abc", -5, 0, wide, 32), 4);
}

/* Each longest piece that could begin a character is replaced once. */
static void what_is_no_utf8(void **state)
{
    static const struct {
        const char *bytes;
        int replaced, rest;
    } cases[] = {
        {"\x80", 1, 0},         {"\xFF", 1, 0},         {"\xC0\x80", 2, 0},         {"\xC1\xBF", 2, 0},
        {"\xC3", 1, 0},         {"\xC3z", 1, 1},        {"\xE2\x82", 1, 0},         {"\xE2\x82z", 1, 1},
        {"\xE0\x80\x80", 3, 0}, {"\xED\xA0\x80", 3, 0}, {"\xF0\x9D\x84", 1, 0},     {"\xF0\x80\x80\x80", 4, 0},
        {"\xF4\x90\x80\x80", 4, 0}, {"\xF5\x80", 2, 0}, {"\xE2\x82\xE2\x82", 2, 0}, {"\xF0\x9Dzz", 1, 2},
    };
    WCHAR wide[8];

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(cases); i++) {
        int length = (int)strlen(cases[i].bytes);

        assert_int_equal(widen(cases[i].bytes, length, 0, wide, 8), cases[i].replaced + cases[i].rest);
        for (int j = 0; j < cases[i].replaced + cases[i].rest; j++)
            assert_int_equal(wide[j], j < cases[i].replaced ? 0xFFFD : 'z');
        assert_int_equal(widen(cases[i].bytes, length, MB_ERR_INVALID_CHARS, wide, 8), 0);
        assert_int_equal(GetLastError(), ERROR_NO_UNICODE_TRANSLATION);
    }
}

static void what_is_no_utf16(void **state)
{
    static const WCHAR alone[][3] = {{0xD800, 'z', 0}, {0xDC00, 'z', 0}, {0xDBFF, 0, 0}, {0xDFFF, 0xD800, 0}};
    char text[16];

    (void)state;
    assert_int_equal(narrow(alone[0], 2, 0, text, 16), 4);
    assert_memory_equal(text, "\xEF\xBF\xBDz", 4);
    assert_int_equal(narrow(alone[3], 2, 0, text, 16), 6);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(narrow(alone[i], 2, WC_ERR_INVALID_CHARS, text, 16), 0);
        assert_int_equal(GetLastError(), ERROR_NO_UNICODE_TRANSLATION);
    }
}

static void refused(int result, DWORD error)
{
    assert_int_equal(result, 0);
    assert_int_equal(GetLastError(), error);
    SetLastError(0);
}

static void conversions_that_are_refused(void **state)
{
    WCHAR wide[4];
    char text[4];
    BOOL used;

    (void)state;
    refused(widen(NULL, 1, 0, wide, 4), ERROR_INVALID_PARAMETER);
    refused(widen("a", 0, 0, wide, 4), ERROR_INVALID_PARAMETER);
    refused(widen("a", 1, 0, wide, -1), ERROR_INVALID_PARAMETER);
    refused(widen("a", 1, 0, NULL, 1), ERROR_INVALID_PARAMETER);
    refused(widen((char *)wide, 1, 0, wide, 1), ERROR_INVALID_PARAMETER);
    refused(widen("a", 1, MB_PRECOMPOSED, wide, 4), ERROR_INVALID_FLAGS);
    refused(MultiByteToWideChar(1252, 0, "a", 1, wide, 4), ERROR_INVALID_PARAMETER);
    refused(MultiByteToWideChar(CP_UTF7, 0, "a", 1, wide, 4), ERROR_INVALID_PARAMETER);
    refused(MultiByteToWideChar(CP_ACP, 0x100, "a", 1, wide, 4), ERROR_INVALID_FLAGS);
    refused(widen("abcd", -1, 0, wide, 4), ERROR_INSUFFICIENT_BUFFER);
    refused(widen("\xF0\x9D\x84\x9E", -1, 0, wide, 1), ERROR_INSUFFICIENT_BUFFER);
    refused(narrow(NULL, 1, 0, text, 4), ERROR_INVALID_PARAMETER);
    refused(narrow(u"a", 0, 0, text, 4), ERROR_INVALID_PARAMETER);
    refused(narrow(u"a", 1, WC_NO_BEST_FIT_CHARS, text, 4), ERROR_INVALID_FLAGS);
    refused(narrow(u"abcd", -1, 0, text, 4), ERROR_INSUFFICIENT_BUFFER);
    refused(WideCharToMultiByte(CP_UTF8, 0, u"a", 1, text, 4, "?", NULL), ERROR_INVALID_PARAMETER);
    refused(WideCharToMultiByte(CP_UTF8, 0, u"a", 1, text, 4, NULL, &used), ERROR_INVALID_PARAMETER);
    refused(WideCharToMultiByte(437, 0, u"a", 1, text, 4, NULL, NULL), ERROR_INVALID_PARAMETER);
}

static void the_ansi_code_page_is_utf8(void **state)
{
    WCHAR wide[4];
    char text[8];
    BOOL used = 7;

    (void)state;
    assert_int_equal(GetACP(), CP_UTF8);
    assert_int_equal(GetOEMCP(), CP_UTF8);
    assert_int_equal(MultiByteToWideChar(CP_ACP, MB_PRECOMPOSED, "\xC3\xA9", -1, wide, 4), 2);
    assert_int_equal(wide[0], 0xE9);
    assert_int_equal(MultiByteToWideChar(CP_OEMCP, 0, "x", 1, wide, 4), 1);
    assert_int_equal(WideCharToMultiByte(CP_ACP, WC_NO_BEST_FIT_CHARS, wide, 1, text, 8, "?", &used), 1);
    assert_false(used);
    wide[0] = 0xD800;
    assert_int_equal(WideCharToMultiByte(CP_THREAD_ACP, 0, wide, 1, text, 8, NULL, &used), 3);
    assert_true(used);
}

static void kernel32_strings(void **state)
{
    char text[8];
    WCHAR wide[8];

    (void)state;
    assert_int_equal(lstrlenA(NULL), 0);
    assert_int_equal(lstrlenW(NULL), 0);
    assert_int_equal(lstrlenA("abc"), 3);
    assert_int_equal(lstrlenW(u"abc"), 3);
    assert_ptr_equal(lstrcpyA(text, "abc"), text);
    assert_ptr_equal(lstrcatA(text, "de"), text);
    assert_string_equal(text, "abcde");
    assert_ptr_equal(lstrcpyW(wide, u"abc"), wide);
    assert_ptr_equal(lstrcatW(wide, u"de"), wide);
    assert_memory_equal(wide, u"abcde", 12);
    assert_ptr_equal(lstrcpynA(text, "vwxyz", 3), text);
    assert_string_equal(text, "vw");
    assert_ptr_equal(lstrcpynW(wide, u"vwxyz", 10), wide);
    assert_memory_equal(wide, u"vwxyz", 12);
    assert_null(lstrcpyA(NULL, "a"));
    assert_null(lstrcpyW(wide, NULL));
    assert_null(lstrcpynA(text, "a", 0));
    assert_true(lstrcmpA("a", "b") < 0 && lstrcmpA("b", "a") > 0 && lstrcmpA("a", "a") == 0 && lstrcmpA("a", "A") != 0);
    assert_true(lstrcmpiA("aZ", "Az") == 0 && lstrcmpiW(u"aZ", u"Az") == 0 && lstrcmpW(u"ab", u"a") > 0);
    assert_true(lstrcmpA(NULL, NULL) == 0 && lstrcmpW(NULL, u"") < 0 && lstrcmpiA("", NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_of_every_length),
        cmocka_unit_test(what_is_no_utf8),
        cmocka_unit_test(what_is_no_utf16),
        cmocka_unit_test(conversions_that_are_refused),
        cmocka_unit_test(the_ansi_code_page_is_utf8),
        cmocka_unit_test(kernel32_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
