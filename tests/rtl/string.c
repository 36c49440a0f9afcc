#include "heap.h"
#include "support.h"

#include <interlock/rtl.h>

#include <stdlib.h>

static void a_string_up_to_its_end(void **state)
{
    static const WCHAR text[] = u"abc";
    UNICODE_STRING string;

    (void)state;
    RtlInitUnicodeString(&string, text);
    assert_int_equal(string.Length, 6);
    assert_int_equal(string.MaximumLength, 8);
    assert_ptr_equal(string.Buffer, text);
    assert_int_equal(RtlInitUnicodeStringEx(&string, u""), STATUS_SUCCESS);
    assert_int_equal(string.Length, 0);
    assert_int_equal(string.MaximumLength, 2);
    RtlInitUnicodeString(&string, NULL);
    assert_int_equal(string.Length, 0);
    assert_int_equal(string.MaximumLength, 0);
    assert_null(string.Buffer);
    assert_int_equal(RtlInitUnicodeStringEx(&string, NULL), STATUS_SUCCESS);
}

static void a_string_that_is_too_long(void **state)
{
    WCHAR *text = calloc(40000, sizeof(WCHAR));
    UNICODE_STRING string = {1, 2, NULL};

    (void)state;
    for (int i = 0; i < 32767; i++)
        text[i] = u'x';
    assert_int_equal(RtlInitUnicodeStringEx(&string, text), STATUS_NAME_TOO_LONG);
    assert_int_equal(string.Length, 1);
    RtlInitUnicodeString(&string, text);
    assert_int_equal(string.Length, 0xFFFC);
    assert_int_equal(string.MaximumLength, 0xFFFE);
    text[32766] = 0;
    assert_int_equal(RtlInitUnicodeStringEx(&string, text), STATUS_SUCCESS);
    assert_int_equal(string.Length, 0xFFFC);
    free(text);
}

static int sign(LONG value)
{
    return value < 0 ? -1 : value > 0;
}

static void comparing(void **state)
{
    static const struct {
        const WCHAR *first, *second;
        int sensitive, insensitive;
    } rows[] = {
        {u"", u"", 0, 0},
        {u"a", u"", 1, 1},
        {u"", u"a", -1, -1},
        {u"abc", u"abc", 0, 0},
        {u"abc", u"ABC", 1, 0},
        {u"ABC", u"abd", -1, -1},
        {u"abc", u"abcd", -1, -1},
        {u"Zebra", u"apple", -1, 1},
        {u"straße", u"STRASSE", 1, 1},
        {u"ÄÖÜé", u"äöüÉ", -1, 0},
        {u"ΑΒΓσ", u"αβγΣ", -1, 0},
        {u"Привет", u"пРИВЕТ", -1, 0},
        {u"_", u"a", -1, 1}, /* the underscore sorts between the cases: the comparison uses upper case */
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        UNICODE_STRING first, second;

        RtlInitUnicodeString(&first, rows[i].first);
        RtlInitUnicodeString(&second, rows[i].second);
        assert_int_equal(sign(RtlCompareUnicodeString(&first, &second, FALSE)), rows[i].sensitive);
        assert_int_equal(sign(RtlCompareUnicodeString(&second, &first, FALSE)), -rows[i].sensitive);
        assert_int_equal(sign(RtlCompareUnicodeString(&first, &second, TRUE)), rows[i].insensitive);
        assert_int_equal(sign(RtlCompareUnicodeString(&second, &first, TRUE)), -rows[i].insensitive);
        assert_int_equal(RtlEqualUnicodeString(&first, &second, FALSE), rows[i].sensitive == 0);
        assert_int_equal(RtlEqualUnicodeString(&first, &second, TRUE), rows[i].insensitive == 0);
    }
    assert_int_equal(RtlCompareUnicodeStrings(u"abX", 2, u"abY", 2, FALSE), 0);
}

static void upper_case_without_memory(void **state)
{
    UNICODE_STRING source, copy = {1, 2, NULL};
    NTSTATUS status;

    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    RtlInitUnicodeString(&source, u"abc");
    allocations_left = 0;
    status = RtlUpcaseUnicodeString(&copy, &source, TRUE);
    allocations_left = -1;
    assert_int_equal(status, STATUS_NO_MEMORY);
    assert_int_equal(copy.Length, 1);
    assert_null(copy.Buffer);
}

static void upper_case(void **state)
{
    static const WCHAR pairs[][2] = {
        {u'a', u'A'}, {u'z', u'Z'}, {u'`', u'`'}, {u'{', u'{'}, {u'0', u'0'},  {u'é', u'É'}, {u'÷', u'÷'},
        {u'þ', u'Þ'}, {u'ÿ', u'Ÿ'}, {u'ß', u'ß'}, {u'µ', u'µ'}, {u'ı', u'ı'},  {u'ſ', u'ſ'}, {u'ā', u'Ā'},
        {u'Ā', u'Ā'}, {u'ž', u'Ž'}, {u'α', u'Α'}, {u'ς', u'Σ'}, {u'ώ', u'Ώ'},  {u'я', u'Я'}, {u'ё', u'Ё'},
        {u'ա', u'Ա'}, {u'ⅷ', u'Ⅷ'}, {u'ⓐ', u'Ⓐ'}, {u'ｚ', u'Ｚ'}, {u'中', u'中'}, {0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(pairs); i++)
        assert_int_equal(RtlUpcaseUnicodeChar(pairs[i][0]), pairs[i][1]);
    for (unsigned c = 0; c < 0x10000; c++) {
        WCHAR upper = RtlUpcaseUnicodeChar((WCHAR)c);

        assert_int_equal(RtlUpcaseUnicodeChar(upper), upper);
        if (c >= 0x80)
            assert_true(upper >= 0x80);
        if (c >= 0xd800 && c < 0xe000)
            assert_int_equal(upper, c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_up_to_its_end),
        cmocka_unit_test(a_string_that_is_too_long),
        cmocka_unit_test(comparing),
        cmocka_unit_test(upper_case),
        cmocka_unit_test(upper_case_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
