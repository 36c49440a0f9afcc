/* stringops.c: copying, appending, case, numbers and conversions of counted strings. */
#include "support.h"

#include <interlock/ex.h>
#include <interlock/rtl.h>

#include <stdlib.h>

#define FILL 0x23
#define WIDE_FILL 0x2323

static const UNICODE_STRING abc = RTL_CONSTANT_STRING(u"abc");

static UNICODE_STRING wide(const WCHAR *text)
{
    UNICODE_STRING string;

    RtlInitUnicodeString(&string, text);
    return string;
}

static STRING narrow(const char *text)
{
    STRING string;

    RtlInitString(&string, text);
    return string;
}

static void strings_of_bytes(void **state)
{
    char *text = malloc(70000);
    STRING string = {1, 2, NULL};

    (void)state;
    memset(text, 'x', 70000);
    text[65534] = 0;
    assert_int_equal(RtlInitAnsiStringEx(&string, text), STATUS_SUCCESS);
    assert_int_equal(string.Length, 65534);
    assert_int_equal(string.MaximumLength, 65535);
    text[65534] = 'x';
    text[65535] = 0;
    string.Length = 1;
    assert_int_equal(RtlInitStringEx(&string, text), STATUS_NAME_TOO_LONG);
    assert_int_equal(RtlInitUTF8StringEx(&string, text), STATUS_NAME_TOO_LONG);
    assert_int_equal(string.Length, 1);
    RtlInitAnsiString(&string, text);
    assert_int_equal(string.Length, 65534);
    RtlInitUTF8String(&string, "abc");
    assert_int_equal(string.Length, 3);
    assert_int_equal(string.MaximumLength, 4);
    RtlInitString(&string, NULL);
    assert_null(string.Buffer);
    assert_int_equal(string.MaximumLength, 0);
    RtlInitEmptyAnsiString(&string, text, 12);
    assert_int_equal(string.Length, 0);
    assert_int_equal(string.MaximumLength, 12);
    assert_ptr_equal(string.Buffer, text);
    free(text);
}

static void declared_strings(void **state)
{
    DECLARE_CONST_UNICODE_STRING(constant, u"name");
    DECLARE_UNICODE_STRING_SIZE(room, 10);
    static ANSI_STRING ansi = RTL_CONSTANT_STRING("bytes");

    (void)state;
    assert_int_equal(constant.Length, 8);
    assert_int_equal(constant.MaximumLength, 10);
    assert_int_equal(room.Length, 0);
    assert_int_equal(room.MaximumLength, 20);
    assert_ptr_equal(room.Buffer, room_buffer);
    assert_int_equal(ansi.Length, 5);
    assert_int_equal(ansi.MaximumLength, 6);
}

static void copying(void **state)
{
    (void)state;
    for (USHORT maximum = 0; maximum <= 10; maximum += 2) {
        WCHAR buffer[8];
        UNICODE_STRING target = {77, maximum, buffer};
        unsigned fits = maximum < 6 ? maximum : 6;

        memset(buffer, FILL, sizeof(buffer));
        RtlCopyUnicodeString(&target, &abc);
        assert_int_equal(target.Length, fits);
        assert_int_equal(target.MaximumLength, maximum);
        assert_memory_equal(buffer, abc.Buffer, fits);
        assert_int_equal(buffer[fits / 2], maximum >= fits + 2 ? 0 : WIDE_FILL);
        RtlCopyUnicodeString(&target, NULL);
        assert_int_equal(target.Length, 0);
    }
    for (USHORT maximum = 0; maximum <= 5; maximum++) {
        char buffer[8];
        STRING source = narrow("abc"), target = {77, maximum, buffer};
        unsigned fits = maximum < 3 ? maximum : 3;

        memset(buffer, FILL, sizeof(buffer));
        RtlCopyString(&target, &source);
        assert_int_equal(target.Length, fits);
        assert_memory_equal(buffer, "abc", fits);
        assert_int_equal(buffer[fits], FILL); /* no terminator */
        RtlCopyString(&target, NULL);
        assert_int_equal(target.Length, 0);
    }
}

static void empty_strings_without_buffers(void **state)
{
    UNICODE_STRING empty = {0}, target = {0};
    STRING bytes = {0}, other = {0};

    (void)state;
    RtlCopyUnicodeString(&target, &empty);
    RtlCopyString(&other, &bytes);
    assert_int_equal(RtlAppendUnicodeStringToString(&target, &empty), STATUS_SUCCESS);
    assert_int_equal(RtlAppendStringToString(&other, &bytes), STATUS_SUCCESS);
    assert_true(RtlEqualUnicodeString(&target, &empty, TRUE));
    assert_true(RtlEqualString(&other, &bytes, TRUE));
    assert_int_equal(RtlUpcaseUnicodeString(&target, &empty, FALSE), STATUS_SUCCESS);
    assert_int_equal(RtlxAnsiStringToUnicodeSize(&bytes), 2);
    assert_int_equal(RtlxUnicodeStringToAnsiSize(&empty), 1);
}

static void copying_over_itself(void **state)
{
    WCHAR buffer[] = u"abcdef";
    UNICODE_STRING source = {8, 8, buffer}, target = {0, 8, buffer + 1};

    (void)state;
    RtlCopyUnicodeString(&target, &source);
    assert_memory_equal(buffer, u"aabcdf", 12);
}

static void appending(void **state)
{
    (void)state;
    for (USHORT maximum = 2; maximum <= 12; maximum += 2) {
        WCHAR buffer[8];
        UNICODE_STRING target = {2, maximum, buffer};

        for (int form = 0; form < 2; form++) {
            NTSTATUS status;

            memset(buffer, FILL, sizeof(buffer));
            target.Length = 2;
            status = form == 0 ? RtlAppendUnicodeStringToString(&target, &abc) : RtlAppendUnicodeToString(&target, u"abc");
            if (maximum < 8) {
                assert_int_equal(status, STATUS_BUFFER_TOO_SMALL);
                assert_int_equal(target.Length, 2);
                assert_int_equal(buffer[1], WIDE_FILL);
            } else {
                assert_int_equal(status, STATUS_SUCCESS);
                assert_int_equal(target.Length, 8);
                assert_memory_equal(buffer + 1, abc.Buffer, 6);
                assert_int_equal(buffer[4], maximum >= 10 ? 0 : WIDE_FILL);
            }
        }
        assert_int_equal(RtlAppendUnicodeStringToString(&target, NULL), STATUS_SUCCESS);
        assert_int_equal(RtlAppendUnicodeToString(&target, NULL), STATUS_SUCCESS);
    }
}

static void appending_bytes(void **state)
{
    char buffer[8] = "x";
    STRING target = {1, 5, buffer}, source = narrow("ab");

    (void)state;
    assert_int_equal(RtlAppendStringToString(&target, &source), STATUS_SUCCESS);
    assert_string_equal(buffer, "xab");
    assert_int_equal(RtlAppendAsciizToString(&target, "cde"), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(target.Length, 3);
    buffer[5] = FILL;
    assert_int_equal(RtlAppendAsciizToString(&target, "cd"), STATUS_SUCCESS);
    assert_int_equal(target.Length, 5);
    assert_int_equal(buffer[5], FILL);
    assert_int_equal(RtlAppendAsciizToString(&target, NULL), STATUS_SUCCESS);
    assert_int_equal(RtlAppendStringToString(&target, NULL), STATUS_SUCCESS);
}

/* A string of the largest size does not wrap around. */
static void appending_to_the_largest(void **state)
{
    WCHAR *buffer = calloc(32767, sizeof(WCHAR));
    UNICODE_STRING target = {65532, 65534, buffer}, one = {2, 2, buffer}, two = {4, 4, buffer};

    (void)state;
    assert_int_equal(RtlAppendUnicodeStringToString(&target, &two), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(RtlAppendUnicodeStringToString(&target, &one), STATUS_SUCCESS);
    assert_int_equal(target.Length, 65534);
    free(buffer);
}

static void created_strings(void **state)
{
    WCHAR *text = calloc(32768, sizeof(WCHAR));
    UNICODE_STRING string;

    (void)state;
    assert_true(RtlCreateUnicodeString(&string, u"abc"));
    assert_int_equal(string.Length, 6);
    assert_int_equal(string.MaximumLength, 8);
    assert_memory_equal(string.Buffer, u"abc", 8);
    RtlFreeUnicodeString(&string);
    assert_null(string.Buffer);
    assert_int_equal(string.Length, 0);
    RtlFreeUnicodeString(&string);
    assert_true(RtlCreateUnicodeString(&string, u""));
    assert_int_equal(string.MaximumLength, 2);
    ExFreePool(string.Buffer); /* as drivers do */
    for (int i = 0; i < 32767; i++)
        text[i] = u'x';
    assert_false(RtlCreateUnicodeString(&string, text));
    text[32766] = 0;
    assert_true(RtlCreateUnicodeString(&string, text));
    assert_int_equal(string.Length, 65532);
    RtlFreeUnicodeString(&string);
    string.Buffer = ExAllocatePool2(POOL_FLAG_PAGED, 10, 0x41424344); /* freed by the string function */
    RtlFreeUnicodeString(&string);
    free(text);
}

static void duplicates(void **state)
{
    UNICODE_STRING empty = {0}, copy;

    (void)state;
    assert_int_equal(RtlDuplicateUnicodeString(0, &abc, &copy), STATUS_SUCCESS);
    assert_int_equal(copy.MaximumLength, 6);
    RtlFreeUnicodeString(&copy);
    assert_int_equal(RtlDuplicateUnicodeString(RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE, &abc, &copy), STATUS_SUCCESS);
    assert_memory_equal(copy.Buffer, u"abc", 8);
    RtlFreeUnicodeString(&copy);
    assert_int_equal(RtlDuplicateUnicodeString(1, &empty, &copy), STATUS_SUCCESS);
    assert_null(copy.Buffer);
    assert_int_equal(RtlDuplicateUnicodeString(3, &empty, &copy), STATUS_SUCCESS);
    assert_int_equal(copy.Buffer[0], 0);
    RtlFreeUnicodeString(&copy);
    assert_int_equal(RtlDuplicateUnicodeString(2, &empty, &copy), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlDuplicateUnicodeString(4, &abc, &copy), STATUS_INVALID_PARAMETER);
}

static void validity(void **state)
{
    static const struct {
        UNICODE_STRING string;
        NTSTATUS status;
    } rows[] = {
        {{0, 0, NULL}, STATUS_SUCCESS},
        {{2, 2, (PWSTR)u"a"}, STATUS_SUCCESS},
        {{2, 4, (PWSTR)u"a"}, STATUS_SUCCESS},
        {{4, 2, (PWSTR)u"a"}, STATUS_INVALID_PARAMETER},
        {{1, 2, (PWSTR)u"a"}, STATUS_INVALID_PARAMETER},
        {{0, 3, (PWSTR)u"a"}, STATUS_INVALID_PARAMETER},
        {{0, 2, NULL}, STATUS_INVALID_PARAMETER},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++)
        assert_int_equal(RtlValidateUnicodeString(0, &rows[i].string), rows[i].status);
    assert_int_equal(RtlValidateUnicodeString(0, NULL), STATUS_SUCCESS);
    assert_int_equal(RtlValidateUnicodeString(1, NULL), STATUS_INVALID_PARAMETER);
}

static void comparing_bytes(void **state)
{
    STRING lower = narrow("abc"), upper = narrow("ABC"), longer = narrow("abcd"), high = narrow("\xe9");

    (void)state;
    assert_true(RtlCompareString(&lower, &upper, FALSE) > 0);
    assert_int_equal(RtlCompareString(&lower, &upper, TRUE), 0);
    assert_true(RtlCompareString(&lower, &longer, TRUE) < 0);
    assert_true(RtlCompareString(&high, &lower, FALSE) > 0); /* bytes are unsigned */
    assert_true(RtlEqualString(&lower, &upper, TRUE));
    assert_false(RtlEqualString(&lower, &upper, FALSE));
    assert_false(RtlEqualString(&lower, &longer, TRUE));
    assert_true(RtlPrefixString(&upper, &longer, TRUE));
    assert_false(RtlPrefixString(&upper, &longer, FALSE));
    assert_false(RtlPrefixString(&longer, &lower, TRUE));
}

static void prefixes(void **state)
{
    UNICODE_STRING path = wide(u"\\Device\\Disk"), lower = wide(u"\\device"), other = wide(u"\\Driver"), empty = {0};

    (void)state;
    assert_true(RtlPrefixUnicodeString(&lower, &path, TRUE));
    assert_false(RtlPrefixUnicodeString(&lower, &path, FALSE));
    assert_false(RtlPrefixUnicodeString(&other, &path, TRUE));
    assert_false(RtlPrefixUnicodeString(&path, &lower, TRUE));
    assert_true(RtlPrefixUnicodeString(&path, &path, FALSE));
    assert_true(RtlPrefixUnicodeString(&empty, &path, FALSE));
}

static void hashes(void **state)
{
    UNICODE_STRING lower = wide(u"abc"), mixed = wide(u"Abc"), empty = {0};
    ULONG first, second;

    (void)state;
    assert_int_equal(RtlHashUnicodeString(&mixed, FALSE, HASH_STRING_ALGORITHM_DEFAULT, &first), STATUS_SUCCESS);
    assert_int_equal(first, ('A' * 65599u + 'b') * 65599u + 'c');
    assert_int_equal(RtlHashUnicodeString(&mixed, TRUE, HASH_STRING_ALGORITHM_X65599, &first), STATUS_SUCCESS);
    assert_int_equal(RtlHashUnicodeString(&lower, TRUE, HASH_STRING_ALGORITHM_X65599, &second), STATUS_SUCCESS);
    assert_int_equal(first, second);
    assert_int_equal(RtlHashUnicodeString(&empty, TRUE, 0, &second), STATUS_SUCCESS);
    assert_int_equal(second, 0);
    assert_int_equal(RtlHashUnicodeString(&lower, TRUE, 2, &second), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlHashUnicodeString(NULL, TRUE, 0, &second), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlHashUnicodeString(&lower, TRUE, 0, NULL), STATUS_INVALID_PARAMETER);
}

static void lower_case(void **state)
{
    static const WCHAR pairs[][2] = {
        {u'A', u'a'}, {u'Z', u'z'}, {u'@', u'@'}, {u'[', u'['}, {u'É', u'é'}, {u'×', u'×'}, {u'Ÿ', u'ÿ'},
        {u'İ', u'İ'}, {u'Ā', u'ā'}, {u'Ǆ', u'ǆ'}, {u'ǅ', u'ǅ'}, {u'Σ', u'σ'}, {u'Я', u'я'}, {u'ẞ', u'ẞ'},
        {0x212A, 0x212A}, {0x2126, 0x2126}, {u'Ⅷ', u'ⅷ'}, {u'Ｚ', u'ｚ'},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(pairs); i++)
        assert_int_equal(RtlDowncaseUnicodeChar(pairs[i][0]), pairs[i][1]);
    for (unsigned c = 0; c < 0x10000; c++) {
        WCHAR lower = RtlDowncaseUnicodeChar((WCHAR)c);

        assert_int_equal(RtlDowncaseUnicodeChar(lower), lower);
        if (lower != c)
            assert_int_equal(RtlUpcaseUnicodeChar(lower), c);
    }
}

static void case_of_strings(void **state)
{
    WCHAR buffer[4];
    UNICODE_STRING source = wide(u"aÄß"), target = {0, 8, buffer}, empty = {0}, made;
    char bytes[4] = "####";
    STRING upper = {0, 2, bytes}, text = narrow("a-é");

    (void)state;
    assert_int_equal(RtlUpcaseUnicodeString(&target, &source, FALSE), STATUS_SUCCESS);
    assert_int_equal(target.Length, 6);
    assert_memory_equal(buffer, u"AÄß", 6);
    assert_int_equal(RtlDowncaseUnicodeString(&target, &target, FALSE), STATUS_SUCCESS); /* in place */
    assert_memory_equal(buffer, u"aäß", 6);
    target.MaximumLength = 4;
    assert_int_equal(RtlUpcaseUnicodeString(&target, &source, FALSE), STATUS_BUFFER_OVERFLOW);
    assert_int_equal(RtlUpcaseUnicodeString(&made, &source, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.MaximumLength, 6);
    assert_memory_equal(made.Buffer, u"AÄß", 6);
    RtlFreeUnicodeString(&made);
    assert_int_equal(RtlDowncaseUnicodeString(&made, &empty, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.Length, 0);
    RtlFreeUnicodeString(&made);
    RtlUpperString(&upper, &text);
    assert_int_equal(upper.Length, 2);
    assert_memory_equal(bytes, "A-##", 4);
    assert_int_equal(RtlUpperChar('z'), 'Z');
    assert_int_equal(RtlUpperChar((char)0xE9), (char)0xE9);
}

static void numbers_to_strings(void **state)
{
    static const struct {
        ULONGLONG value;
        ULONG base;
        const WCHAR *text;
    } rows[] = {
        {0, 10, u"0"}, {0, 0, u"0"}, {1234567890, 0, u"1234567890"}, {0xDEADBEEF, 16, u"DEADBEEF"}, {8, 8, u"10"},
        {5, 2, u"101"}, {0xFFFFFFFFFFFFFFFF, 10, u"18446744073709551615"}, {0xFFFFFFFFFFFFFFFF, 16, u"FFFFFFFFFFFFFFFF"},
        {0xFFFFFFFFFFFFFFFF, 2, u"1111111111111111111111111111111111111111111111111111111111111111"},
    };
    WCHAR buffer[65];

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        UNICODE_STRING wanted = wide(rows[i].text), string = {0, sizeof(buffer), buffer};

        assert_int_equal(RtlInt64ToUnicodeString(rows[i].value, rows[i].base, &string), STATUS_SUCCESS);
        assert_int_equal(string.Length, wanted.Length);
        assert_memory_equal(buffer, rows[i].text, wanted.Length + 2u);
        string.MaximumLength = wanted.Length;
        memset(buffer, FILL, sizeof(buffer));
        assert_int_equal(RtlInt64ToUnicodeString(rows[i].value, rows[i].base, &string), STATUS_BUFFER_OVERFLOW);
        assert_int_equal(buffer[0], WIDE_FILL);
        assert_int_equal(string.Length, wanted.Length);
        if (rows[i].value <= MAXULONG) {
            string.MaximumLength = sizeof(buffer);
            assert_int_equal(RtlIntegerToUnicodeString((ULONG)rows[i].value, rows[i].base, &string), STATUS_SUCCESS);
            assert_true(RtlEqualUnicodeString(&string, &wanted, FALSE));
        }
    }
    assert_int_equal(RtlInt64ToUnicodeString(1, 7, &(UNICODE_STRING){0, 130, buffer}), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIntPtrToUnicodeString(1, 7, (&(UNICODE_STRING){0, 130, buffer})), STATUS_INVALID_PARAMETER);
}

static void numbers_to_bytes(void **state)
{
    char text[8] = "#######";

    (void)state;
    assert_int_equal(RtlIntegerToChar(1234, 10, 3, text), STATUS_BUFFER_OVERFLOW);
    assert_string_equal(text, "#######");
    assert_int_equal(RtlIntegerToChar(1234, 10, 4, text), STATUS_SUCCESS);
    assert_string_equal(text, "1234###"); /* no room for a terminator */
    assert_int_equal(RtlIntegerToChar(0xAB, 16, 7, text), STATUS_SUCCESS);
    assert_string_equal(text, "AB");
    assert_int_equal(RtlIntegerToChar(1, 3, 7, text), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIntegerToChar(1, 10, 7, NULL), STATUS_ACCESS_VIOLATION);
}

/* The table of the documentation, and the prefixes of base 0. */
static void strings_to_numbers(void **state)
{
    static const struct {
        const WCHAR *text;
        ULONG base, value;
    } rows[] = {
        {u"123", 10, 123}, {u"  -345", 10, (ULONG)-345}, {u"xyz", 10, 0}, {u"   +678abc", 10, 678},
        {u"   +678abc", 16, 6785724}, {u"007", 10, 7}, {u"789", 8, 7}, {u"FGH", 16, 15}, {u"      ", 10, 0},
        {u"0x1F", 0, 0x1F}, {u"0o17", 0, 15}, {u"0b101", 0, 5}, {u"-0x10", 0, (ULONG)-16}, {u"0X1F", 0, 0},
        {u"0x1F", 16, 0}, {u"4294967296", 10, 0}, {u"--1", 10, 0}, {u"- 1", 10, 0}, {u"+-3", 10, 0},
        {u"\t\n 5", 10, 5}, {u"0x", 0, 0}, {u"0", 0, 0}, {u"-", 10, 0},
    };
    UNICODE_STRING empty = {0};
    ULONG value = 7;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        UNICODE_STRING string = wide(rows[i].text);
        char bytes[32];

        assert_int_equal(RtlUnicodeStringToInteger(&string, rows[i].base, &value), STATUS_SUCCESS);
        assert_int_equal(value, rows[i].value);
        for (unsigned n = 0; n <= string.Length / 2u; n++)
            bytes[n] = (char)rows[i].text[n];
        assert_int_equal(RtlCharToInteger(bytes, rows[i].base, &value), STATUS_SUCCESS);
        assert_int_equal(value, rows[i].value);
    }
    value = 7;
    assert_int_equal(RtlUnicodeStringToInteger(&empty, 10, &value), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlUnicodeStringToInteger(&abc, 11, &value), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlCharToInteger("1", 3, &value), STATUS_INVALID_PARAMETER);
    assert_int_equal(value, 7);
    assert_int_equal(RtlCharToInteger("1", 10, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(RtlUnicodeStringToInteger(&abc, 10, NULL), STATUS_ACCESS_VIOLATION);
}

static void strings_to_long_numbers(void **state)
{
    UNICODE_STRING string = wide(u" -0x7FFFFFFFFFFFFFFFz"), part = {8, 8, (PWSTR)u"123456"};
    LONG64 value;
    PWSTR end;

    (void)state;
    assert_int_equal(RtlUnicodeStringToInt64(&string, 0, &value, &end), STATUS_SUCCESS);
    assert_true(value == -MAXLONGLONG);
    assert_ptr_equal(end, string.Buffer + 20);
    assert_int_equal(RtlUnicodeStringToInt64(&part, 10, &value, &end), STATUS_SUCCESS);
    assert_true(value == 1234); /* no character behind the length is read */
    assert_ptr_equal(end, part.Buffer + 4);
    assert_int_equal(RtlUnicodeStringToInt64(&part, 5, &value, NULL), STATUS_INVALID_PARAMETER);
    part.Length = 0;
    assert_int_equal(RtlUnicodeStringToInt64(&part, 10, &value, NULL), STATUS_INVALID_PARAMETER);
}

static void guids(void **state)
{
    static const GUID guid = {0x01234567, 0x89AB, 0xCDEF, {0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF}};
    static const WCHAR *const bad[] = {
        u"", u"01234567-89AB-CDEF-0123-456789ABCDEF", u"{01234567-89AB-CDEF-0123-456789ABCDEG}",
        u"{01234567-89AB-CDEF-0123-456789ABCDE}", u"{01234567+89AB-CDEF-0123-456789ABCDEF}",
        u"{01234567-89AB-CDEF-0123-456789ABCDEF",
    };
    UNICODE_STRING string = wide(u"{01234567-89ab-CDEF-0123-456789abcdef}"), made;
    GUID read;

    (void)state;
    assert_int_equal(RtlGUIDFromString(&string, &read), STATUS_SUCCESS);
    assert_memory_equal(&read, &guid, sizeof(guid));
    assert_int_equal(RtlStringFromGUID(&guid, &made), STATUS_SUCCESS);
    assert_int_equal(made.Length, 76);
    assert_int_equal(made.MaximumLength, 78);
    assert_memory_equal(made.Buffer, u"{01234567-89AB-CDEF-0123-456789ABCDEF}", 78);
    RtlFreeUnicodeString(&made);
    for (size_t i = 0; i < ARRAYSIZE(bad); i++) {
        GUID other = guid;

        string = wide(bad[i]);
        assert_int_equal(RtlGUIDFromString(&string, &other), STATUS_INVALID_PARAMETER);
        assert_memory_equal(&other, &guid, sizeof(guid));
    }
}

#define MIXED_BYTES "a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80z" /* of one, two, three, four bytes */
static const WCHAR mixed_units[] = {'a', 0xE9, 0x4E2D, 0xD83D, 0xDE00, 'z', 0};

static void bytes_to_unicode(void **state)
{
    WCHAR buffer[16];
    STRING source = narrow(MIXED_BYTES), empty = {0};
    UNICODE_STRING made;

    (void)state;
    for (USHORT maximum = 0; maximum <= 16; maximum += 2) {
        UNICODE_STRING target = {0, maximum, buffer};

        memset(buffer, FILL, sizeof(buffer));
        if (maximum < 14) {
            assert_int_equal(RtlAnsiStringToUnicodeString(&target, &source, FALSE), STATUS_BUFFER_OVERFLOW);
            assert_int_equal(buffer[0], WIDE_FILL);
        } else {
            assert_int_equal(RtlAnsiStringToUnicodeString(&target, &source, FALSE), STATUS_SUCCESS);
            assert_memory_equal(buffer, mixed_units, 14);
            assert_int_equal(buffer[7], WIDE_FILL);
        }
        assert_int_equal(target.Length, 12);
        assert_int_equal(target.MaximumLength, maximum);
    }
    assert_int_equal(RtlAnsiStringToUnicodeString(&made, &source, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.MaximumLength, 14);
    assert_memory_equal(made.Buffer, mixed_units, 14);
    RtlFreeUnicodeString(&made);
    assert_int_equal(RtlUTF8StringToUnicodeString(&made, &source, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.Length, 12);
    RtlFreeUnicodeString(&made);
    assert_int_equal(RtlOemStringToUnicodeString(&made, &empty, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.Length, 0);
    assert_int_equal(made.Buffer[0], 0);
    RtlFreeUnicodeString(&made);
    assert_int_equal(RtlOemStringToCountedUnicodeString(&made, &source, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.MaximumLength, 12);
    RtlFreeUnicodeString(&made);
    assert_int_equal(RtlOemStringToCountedUnicodeString(&made, &empty, TRUE), STATUS_SUCCESS);
    assert_null(made.Buffer);
    assert_int_equal(RtlAnsiStringToUnicodeSize(&source), 14);
    assert_int_equal(RtlOemStringToUnicodeSize(&source), 14);
    assert_int_equal(RtlOemStringToCountedUnicodeSize(&source), 12);
}

static void unicode_to_bytes(void **state)
{
    char buffer[16];
    UNICODE_STRING source = wide(mixed_units), empty = {0}, half = {2, 2, (PWSTR)&mixed_units[3]};
    STRING made;

    (void)state;
    for (USHORT maximum = 0; maximum <= 13; maximum++) {
        STRING target = {0, maximum, buffer};

        memset(buffer, FILL, sizeof(buffer));
        if (maximum < 12) {
            assert_int_equal(RtlUnicodeStringToAnsiString(&target, &source, FALSE), STATUS_BUFFER_OVERFLOW);
            assert_int_equal(buffer[0], FILL);
        } else {
            assert_int_equal(RtlUnicodeStringToAnsiString(&target, &source, FALSE), STATUS_SUCCESS);
            assert_string_equal(buffer, MIXED_BYTES);
            assert_int_equal(buffer[12], FILL);
        }
        assert_int_equal(target.Length, 11);
    }
    assert_int_equal(RtlUnicodeStringToUTF8String(&made, &source, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.MaximumLength, 12);
    assert_string_equal(made.Buffer, MIXED_BYTES);
    RtlFreeUTF8String(&made);
    assert_int_equal(RtlUpcaseUnicodeStringToAnsiString(&made, &source, TRUE), STATUS_SUCCESS);
    assert_string_equal(made.Buffer, "A\xc3\x89\xe4\xb8\xad\xf0\x9f\x98\x80Z");
    RtlFreeAnsiString(&made);
    assert_int_equal(RtlUpcaseUnicodeStringToOemString(&made, &source, TRUE), STATUS_SUCCESS);
    assert_string_equal(made.Buffer, "A\xc3\x89\xe4\xb8\xad\xf0\x9f\x98\x80Z");
    RtlFreeOemString(&made);
    assert_int_equal(RtlUnicodeStringToCountedOemString(&made, &source, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.MaximumLength, 11);
    RtlFreeOemString(&made);
    assert_int_equal(RtlUpcaseUnicodeStringToCountedOemString(&made, &empty, TRUE), STATUS_SUCCESS);
    assert_null(made.Buffer);
    assert_int_equal(RtlUnicodeStringToAnsiString(&made, &half, TRUE), STATUS_SUCCESS);
    assert_string_equal(made.Buffer, "\xef\xbf\xbd");
    RtlFreeAnsiString(&made);
    made.Buffer = NULL;
    assert_int_equal(RtlUnicodeStringToOemString(&made, &half, TRUE), STATUS_UNMAPPABLE_CHARACTER);
    assert_int_equal(RtlUnicodeStringToCountedOemString(&made, &half, TRUE), STATUS_UNMAPPABLE_CHARACTER);
    assert_null(made.Buffer);
    assert_int_equal(RtlUnicodeStringToAnsiSize(&source), 12);
    assert_int_equal(RtlUnicodeStringToCountedOemSize(&source), 11);
}

/* A result that no counted string can hold. */
static void results_that_are_too_long(void **state)
{
    char *bytes = malloc(65535);
    WCHAR *units = malloc(32766 * sizeof(WCHAR));
    STRING narrow_source = {32767, 32767, bytes}, made;
    UNICODE_STRING wide_source = {65532, 65532, units}, wide_made;

    (void)state;
    memset(bytes, 'x', 65535);
    for (int i = 0; i < 32766; i++)
        units[i] = 0x4E2D;
    assert_int_equal(RtlAnsiStringToUnicodeString(&wide_made, &narrow_source, TRUE), STATUS_INVALID_PARAMETER_2);
    assert_int_equal(RtlOemStringToCountedUnicodeString(&wide_made, &narrow_source, TRUE), STATUS_SUCCESS);
    RtlFreeUnicodeString(&wide_made);
    narrow_source.Length = 32766;
    assert_int_equal(RtlAnsiStringToUnicodeString(&wide_made, &narrow_source, TRUE), STATUS_SUCCESS);
    assert_int_equal(wide_made.Length, 65532);
    RtlFreeUnicodeString(&wide_made);
    assert_int_equal(RtlUnicodeStringToAnsiString(&made, &wide_source, TRUE), STATUS_INVALID_PARAMETER_2);
    wide_source.Length = 21844 * 2;
    assert_int_equal(RtlUnicodeStringToAnsiString(&made, &wide_source, TRUE), STATUS_SUCCESS);
    assert_int_equal(made.Length, 65532);
    RtlFreeAnsiString(&made);
    free(bytes);
    free(units);
}

/* The bytes that are stored of the mixed string in a buffer of each size: characters are whole. */
static void buffers_to_bytes(void **state)
{
    static const ULONG stored[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    char buffer[16];
    ULONG count;

    (void)state;
    for (ULONG room = 0; room < ARRAYSIZE(stored); room++) {
        BOOLEAN whole = stored[room] == 11;

        memset(buffer, FILL, sizeof(buffer));
        assert_int_equal(RtlUnicodeToMultiByteN(buffer, room, &count, mixed_units, 12), STATUS_SUCCESS);
        assert_int_equal(count, stored[room]);
        assert_memory_equal(buffer, MIXED_BYTES, count);
        assert_int_equal(buffer[room], FILL);
        assert_int_equal(RtlUnicodeToOemN(buffer, room, &count, mixed_units, 12),
                         whole ? STATUS_SUCCESS : STATUS_BUFFER_OVERFLOW);
        assert_int_equal(count, stored[room]);
        assert_int_equal(RtlUnicodeToUTF8N(buffer, room, &count, mixed_units, 12),
                         whole ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(count, stored[room]);
        assert_int_equal(RtlUpcaseUnicodeToOemN(buffer, room, NULL, mixed_units, 12),
                         whole ? STATUS_SUCCESS : STATUS_BUFFER_OVERFLOW);
        assert_int_equal(RtlUpcaseUnicodeToMultiByteN(buffer, room, &count, mixed_units, 12), STATUS_SUCCESS);
        assert_int_equal(count, stored[room]);
        if (count != 0)
            assert_int_equal(buffer[0], 'A');
    }
    assert_int_equal(RtlUnicodeToMultiByteSize(&count, mixed_units, 12), STATUS_SUCCESS);
    assert_int_equal(count, 11);
}

static void buffers_to_unicode(void **state)
{
    static const ULONG stored[] = {0, 0, 2, 2, 4, 4, 6, 6, 6, 6, 10, 10, 12, 12};
    WCHAR buffer[8];
    ULONG count;

    (void)state;
    for (ULONG room = 0; room < ARRAYSIZE(stored); room++) {
        BOOLEAN whole = stored[room] == 12;

        memset(buffer, FILL, sizeof(buffer));
        assert_int_equal(RtlMultiByteToUnicodeN(buffer, room, &count, MIXED_BYTES, 11), STATUS_SUCCESS);
        assert_int_equal(count, stored[room]);
        assert_memory_equal(buffer, mixed_units, count);
        assert_int_equal(buffer[room / 2], WIDE_FILL);
        assert_int_equal(RtlOemToUnicodeN(buffer, room, NULL, MIXED_BYTES, 11),
                         whole ? STATUS_SUCCESS : STATUS_BUFFER_OVERFLOW);
        assert_int_equal(RtlUTF8ToUnicodeN(buffer, room, &count, MIXED_BYTES, 11),
                         whole ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(count, stored[room]);
    }
    assert_int_equal(RtlMultiByteToUnicodeSize(&count, MIXED_BYTES, 11), STATUS_SUCCESS);
    assert_int_equal(count, 12);
}

static void utf8_statuses(void **state)
{
    static const WCHAR half[] = {0xD800};
    WCHAR units[4];
    char bytes[4];
    ULONG count;

    (void)state;
    assert_int_equal(RtlUTF8ToUnicodeN(units, 8, &count, "a\xff", 2), STATUS_SOME_NOT_MAPPED);
    assert_int_equal(count, 4);
    assert_int_equal(units[1], 0xFFFD);
    assert_int_equal(RtlUTF8ToUnicodeN(units, 2, &count, "a\xff", 2), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(RtlUTF8ToUnicodeN(NULL, 0, &count, "ab", 2), STATUS_SUCCESS);
    assert_int_equal(count, 4);
    assert_int_equal(RtlUTF8ToUnicodeN(NULL, 0, NULL, "a", 1), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlUTF8ToUnicodeN(units, 8, &count, NULL, 0), STATUS_INVALID_PARAMETER_4);
    assert_int_equal(RtlUnicodeToUTF8N(bytes, 4, &count, half, 2), STATUS_SOME_NOT_MAPPED);
    assert_int_equal(count, 3);
    assert_int_equal(RtlUnicodeToUTF8N(bytes, 4, &count, u"a", 3), STATUS_INVALID_PARAMETER_5);
    assert_int_equal(RtlUnicodeToUTF8N(bytes, 4, &count, NULL, 2), STATUS_INVALID_PARAMETER_4);
    assert_int_equal(RtlUnicodeToUTF8N(NULL, 0, &count, u"ab", 4), STATUS_SUCCESS);
    assert_int_equal(count, 2);
}

/* Pieces of the conversion are joined at any offset. */
static void long_strings(void **state)
{
    WCHAR units[300], back[300];
    char bytes[1000];
    ULONG count, again;

    (void)state;
    for (ULONG offset = 0; offset < 70; offset++) {
        for (ULONG i = 0; i < 300; i++)
            units[i] = (WCHAR)(i < offset ? 'a' : (i - offset) % 2 == 0 ? 0xD83D : 0xDE00);
        if ((300 - offset) % 2 != 0)
            units[299] = 'z';
        assert_int_equal(RtlUnicodeToUTF8N(bytes, sizeof(bytes), &count, units, sizeof(units)), STATUS_SUCCESS);
        assert_int_equal(RtlUTF8ToUnicodeN(back, sizeof(back), &again, bytes, count), STATUS_SUCCESS);
        assert_int_equal(again, sizeof(units));
        assert_memory_equal(units, back, sizeof(units));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_of_bytes),
        cmocka_unit_test(declared_strings),
        cmocka_unit_test(copying),
        cmocka_unit_test(copying_over_itself),
        cmocka_unit_test(empty_strings_without_buffers),
        cmocka_unit_test(appending),
        cmocka_unit_test(appending_bytes),
        cmocka_unit_test(appending_to_the_largest),
        cmocka_unit_test(created_strings),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(validity),
        cmocka_unit_test(comparing_bytes),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(hashes),
        cmocka_unit_test(lower_case),
        cmocka_unit_test(case_of_strings),
        cmocka_unit_test(numbers_to_strings),
        cmocka_unit_test(numbers_to_bytes),
        cmocka_unit_test(strings_to_numbers),
        cmocka_unit_test(strings_to_long_numbers),
        cmocka_unit_test(guids),
        cmocka_unit_test(bytes_to_unicode),
        cmocka_unit_test(unicode_to_bytes),
        cmocka_unit_test(results_that_are_too_long),
        cmocka_unit_test(buffers_to_bytes),
        cmocka_unit_test(buffers_to_unicode),
        cmocka_unit_test(utf8_statuses),
        cmocka_unit_test(long_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
