/* crt.c: what Microsoft's C library adds to the host's: functions that check their parameters, and small additions. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow" /* lengths that are refused at run time */
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif

#include "support.h"

#include <windows.h>
#include <conio.h>
#include <crtdbg.h>
#include <intrin.h>
#include <io.h>
#include <process.h>
#include <tchar.h>
#include <winapifamily.h>

#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "child.h"

static int invalid;

static void note_invalid(const WCHAR *expression, const WCHAR *function, const WCHAR *file, unsigned line,
                         uintptr_t reserved)
{
    (void)expression, (void)function, (void)file, (void)line, (void)reserved;
    invalid += 1;
}

#define assert_refused(call, error)                                                                                    \
    do {                                                                                                               \
        invalid = 0;                                                                                                   \
        errno = 0;                                                                                                     \
        assert_int_equal((call), (error));                                                                             \
        assert_int_equal(invalid, 1);                                                                                  \
    } while (0)

static void handlers_of_invalid_parameters(void **state)
{
    _invalid_parameter_handler before = _get_invalid_parameter_handler();

    (void)state;
    assert_ptr_equal(_set_invalid_parameter_handler(NULL), before);
    assert_null(_get_invalid_parameter_handler());
    assert_null(_set_thread_local_invalid_parameter_handler(note_invalid));
    assert_ptr_equal(_get_thread_local_invalid_parameter_handler(), note_invalid);
    assert_refused(strcpy_s(NULL, 1, "a"), EINVAL);
    assert_int_equal(errno, EINVAL);
    assert_ptr_equal(_set_thread_local_invalid_parameter_handler(NULL), note_invalid);
    assert_null(_set_invalid_parameter_handler(note_invalid));
}

static void without_a_handler(void *unused)
{
    char text[2];

    (void)unused;
    _set_invalid_parameter_handler(NULL);
    freopen("/dev/null", "w", stderr);
    strcpy_s(text, sizeof(text), "long");
}

static void no_handler_ends_the_process(void **state)
{
    int status = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        without_a_handler(NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void copies(void **state)
{
    char text[8] = "before";

    (void)state;
    assert_int_equal(strcpy_s(text, 8, "1234567"), 0);
    assert_string_equal(text, "1234567");
    assert_refused(strcpy_s(text, 8, "12345678"), ERANGE);
    assert_string_equal(text, "");
    strcpy_s(text, 8, "x");
    assert_refused(strcpy_s(text, 8, NULL), EINVAL);
    assert_string_equal(text, "");
    assert_refused(strcpy_s(text, 0, "x"), EINVAL);
    assert_int_equal(strncpy_s(text, 8, "123456789", 3), 0);
    assert_string_equal(text, "123");
    assert_int_equal(strncpy_s(text, 4, "12", 100), 0);
    assert_string_equal(text, "12");
    assert_refused(strncpy_s(text, 4, "12345", 4), ERANGE);
    invalid = 0;
    assert_int_equal(strncpy_s(text, 4, "12345", _TRUNCATE), STRUNCATE);
    assert_string_equal(text, "123");
    assert_int_equal(strncpy_s(NULL, 0, NULL, 0), 0);
    assert_int_equal(strncpy_s(text, 4, NULL, 0), 0);
    assert_string_equal(text, "");
    assert_int_equal(invalid, 0);
}

static void appends(void **state)
{
    char text[8] = "123";

    (void)state;
    assert_int_equal(strcat_s(text, 8, "4567"), 0);
    assert_string_equal(text, "1234567");
    assert_refused(strcat_s(text, 8, "8"), ERANGE);
    assert_string_equal(text, "");
    memset(text, 'x', sizeof(text));
    assert_refused(strcat_s(text, 8, "8"), EINVAL); /* not terminated */
    assert_string_equal(text, "");
    assert_int_equal(strncat_s(text, 8, "123456789", 5), 0);
    assert_string_equal(text, "12345");
    assert_int_equal(strncat_s(text, 8, "6789", _TRUNCATE), STRUNCATE);
    assert_string_equal(text, "1234567");
    assert_int_equal(strncat_s(text, 8, NULL, 0), 0);
    assert_refused(strncat_s(text, 8, NULL, 1), EINVAL);
}

static void wide_strings(void **state)
{
    WCHAR text[8];
    WCHAR *context = NULL, list[] = u"a,b";

    (void)state;
    assert_int_equal(wcscpy_s(text, 8, u"123"), 0);
    assert_int_equal(wcscat_s(text, 8, u"4567"), 0);
    assert_memory_equal(text, u"1234567", sizeof(text));
    assert_refused(wcscat_s(text, 8, u"8"), ERANGE);
    assert_int_equal(wcsncpy_s(text, 4, u"12345", _TRUNCATE), STRUNCATE);
    assert_int_equal(wcsncat_s(text, 8, u"45", 1), 0);
    assert_memory_equal(text, u"1234", 10);
    assert_int_equal(wcsnlen_s(text, 8), 4);
    assert_int_equal(swprintf_s(text, 8, u"%d-%s", 12, u"ab"), 5);
    assert_memory_equal(text, u"12-ab", 12);
    assert_refused(swprintf_s(text, 4, u"%d", 12345), -1);
    assert_int_equal(text[0], 0);
    assert_int_equal(_snwprintf_s(text, 4, _TRUNCATE, u"%d", 12345), -1);
    assert_memory_equal(text, u"123", 8);
    assert_memory_equal(wcstok_s(list, u",", &context), u"a", 4);
    assert_memory_equal(wcstok_s(NULL, u",", &context), u"b", 4);
    assert_null(wcstok_s(NULL, u",", &context));
}

static void formats(void **state)
{
    char text[8];

    (void)state;
    assert_int_equal(sprintf_s(text, 8, "%d", 1234567), 7);
    assert_string_equal(text, "1234567");
    assert_refused(sprintf_s(text, 8, "%d", 12345678), -1);
    assert_string_equal(text, "");
    assert_refused(sprintf_s(text, 0, "x"), -1);
    assert_int_equal(_snprintf_s(text, 8, 3, "%d", 12345), -1);
    assert_string_equal(text, "123");
    assert_int_equal(_snprintf_s(text, 8, 5, "%d", 12345), 5);
    assert_int_equal(_snprintf_s(text, 8, _TRUNCATE, "%d", 123456789), -1);
    assert_string_equal(text, "1234567");
    assert_refused(_snprintf_s(text, 4, 20, "%d", 12345), -1);
    assert_string_equal(text, "");
    assert_int_equal(_stprintf_s(text, 8, "%s", "tchar"), 5);
}

static void tokens_and_lengths(void **state)
{
    char list[] = "  one two", *context = NULL;

    (void)state;
    assert_string_equal(strtok_s(list, " ", &context), "one");
    assert_string_equal(strtok_s(NULL, " ", &context), "two");
    assert_null(strtok_s(NULL, " ", &context));
    assert_refused((int)(strtok_s(NULL, " ", NULL) == NULL), 1);
    assert_int_equal(strnlen_s(NULL, 5), 0);
    assert_int_equal(strnlen_s("abc", 2), 2);
    assert_int_equal(strnlen_s("abc", 9), 3);
}

static void memory(void **state)
{
    char target[4] = "abc", *block;

    (void)state;
    assert_int_equal(memcpy_s(target, 4, "xyz", 4), 0);
    assert_string_equal(target, "xyz");
    assert_refused(memcpy_s(target, 4, "12345", 5), ERANGE);
    assert_memory_equal(target, "\0\0\0\0", 4);
    assert_refused(memcpy_s(NULL, 4, "1", 1), EINVAL);
    assert_int_equal(memcpy_s(NULL, 0, NULL, 0), 0);
    memcpy(target, "abc", 4);
    assert_int_equal(memmove_s(target + 1, 3, target, 2), 0);
    assert_string_equal(target, "aab");
    assert_refused(memmove_s(target, 4, target, 5), ERANGE);
    assert_string_equal(target, "aab");
    block = _aligned_malloc(100, 256);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 256, 0);
    memset(block, 7, 100);
    block = _aligned_realloc(block, 1000, 512);
    assert_int_equal((uintptr_t)block % 512, 0);
    assert_int_equal(block[99], 7);
    _aligned_free(block);
    assert_null(_aligned_realloc(_aligned_malloc(8, 8), 0, 8));
    assert_refused((int)(_aligned_malloc(8, 3) == NULL), 1);
    memcpy(target, "abc", 4);
    SecureZeroMemory(target, sizeof(target));
    assert_memory_equal(target, "\0\0\0\0", 4);
}

static void numbers(void **state)
{
    char text[70];

    (void)state;
    assert_int_equal(_itoa_s(-42, text, sizeof(text), 10), 0);
    assert_string_equal(text, "-42");
    assert_int_equal(_itoa_s(-1, text, sizeof(text), 16), 0);
    assert_string_equal(text, "ffffffff");
    assert_int_equal(_i64toa_s(LLONG_MIN, text, sizeof(text), 10), 0);
    assert_string_equal(text, "-9223372036854775808");
    assert_int_equal(_ui64toa_s(~0ULL, text, sizeof(text), 2), 0);
    assert_int_equal(strlen(text), 64);
    assert_int_equal(_ultoa_s(0, text, sizeof(text), 10), 0);
    assert_string_equal(text, "0");
    assert_refused(_itoa_s(1234, text, 4, 10), ERANGE);
    assert_refused(_itoa_s(-123, text, 4, 10), ERANGE);
    assert_string_equal(text, "");
    assert_refused(_itoa_s(1, text, 4, 37), EINVAL);
}

static void errors_files_and_the_environment(void **state)
{
    char text[16], *copy;
    size_t size = 99;
    FILE *file = (FILE *)1;
    int value = 0;

    (void)state;
    assert_int_equal(_set_errno(EBUSY), 0);
    assert_int_equal(_get_errno(&value), 0);
    assert_int_equal(value, EBUSY);
    assert_refused(_get_errno(NULL), EINVAL);
    assert_int_equal(strerror_s(text, sizeof(text), ENOENT), 0);
    assert_memory_equal(text, "No such", 7);
    assert_int_equal(fopen_s(&file, "/nonexistent/file", "r"), ENOENT);
    assert_null(file);
    assert_int_equal(fopen_s(&file, "/dev/null", "r"), 0);
    assert_int_equal(_isatty(_fileno(file)), 0);
    assert_int_equal(_setmode(_fileno(file), _O_TEXT), _O_BINARY);
    fclose(file);
    setenv("INTERLOCK_TEST", "value", 1);
    assert_int_equal(getenv_s(&size, NULL, 0, "INTERLOCK_TEST"), 0);
    assert_int_equal(size, 6);
    assert_int_equal(getenv_s(&size, text, 5, "INTERLOCK_TEST"), ERANGE);
    assert_int_equal(getenv_s(&size, text, 6, "INTERLOCK_TEST"), 0);
    assert_string_equal(text, "value");
    assert_int_equal(getenv_s(&size, text, 6, "INTERLOCK_NONE"), 0);
    assert_int_equal(size, 0);
    assert_int_equal(_dupenv_s(&copy, &size, "INTERLOCK_TEST"), 0);
    assert_string_equal(copy, "value");
    assert_int_equal(size, 6);
    free(copy);
    assert_int_equal(_dupenv_s(&copy, NULL, "INTERLOCK_NONE"), 0);
    assert_null(copy);
    assert_int_equal(_getpid(), getpid());
}

static void the_calendar(void **state)
{
    struct _timeb now;
    struct tm date;
    time_t before = time(NULL), billion = 1000000000, negative = -1;

    (void)state;
    setenv("TZ", "EST5EDT,M3.2.0,M11.1.0", 1);
    assert_int_equal(gmtime_s(&date, &billion), 0);
    assert_int_equal(date.tm_year, 101);
    assert_int_equal(date.tm_hour, 1);
    assert_int_equal(localtime_s(&date, &billion), 0);
    assert_int_equal(date.tm_hour, 21);
    assert_int_equal(date.tm_isdst, 1);
    errno = 0;
    assert_int_equal(localtime_s(&date, &negative), EINVAL);
    assert_int_equal(date.tm_year, -1);
    assert_refused(localtime_s(&date, NULL), EINVAL);
    assert_refused(gmtime_s(NULL, &billion), EINVAL);
    _ftime(&now);
    assert_true(now.time >= before && now.time <= before + 60);
    assert_true(now.millitm < 1000);
    assert_int_equal(now.timezone, 300);
    assert_refused(_ftime_s(NULL), EINVAL);
    unsetenv("TZ");
}

static void time_zones(void **state)
{
    TIME_ZONE_INFORMATION zone;

    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    assert_in_range(GetTimeZoneInformation(&zone), TIME_ZONE_ID_STANDARD, TIME_ZONE_ID_DAYLIGHT);
    assert_int_equal(zone.Bias, -60);
    assert_int_equal(zone.StandardBias, 0);
    assert_int_equal(zone.DaylightBias, -60);
    assert_memory_equal(zone.StandardName, u"CET", 8);
    assert_memory_equal(zone.DaylightName, u"CEST", 10);
    assert_int_equal(zone.DaylightDate.wMonth, 3);
    assert_int_equal(zone.DaylightDate.wDay, 5);
    assert_int_equal(zone.DaylightDate.wDayOfWeek, 0);
    assert_int_equal(zone.DaylightDate.wHour, 2);
    assert_int_equal(zone.StandardDate.wMonth, 10);
    assert_int_equal(zone.StandardDate.wHour, 3);
    assert_int_equal(zone.StandardDate.wYear, 0);
    setenv("TZ", "UTC0", 1);
    assert_int_equal(GetTimeZoneInformation(&zone), TIME_ZONE_ID_UNKNOWN);
    assert_int_equal(zone.Bias, 0);
    assert_int_equal(zone.StandardDate.wMonth, 0);
    assert_true(GetTimeZoneInformation(NULL) == TIME_ZONE_ID_INVALID && GetLastError() == ERROR_INVALID_PARAMETER);
    unsetenv("TZ");
}

/* Standard input is not a terminal here. */
static void read_keys(void *unused)
{
    int ends[2];

    (void)unused;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], 0), 0);
    assert_int_equal(_kbhit(), 0);
    assert_int_equal(write(ends[1], "ab", 2), 2);
    assert_int_not_equal(_kbhit(), 0);
    assert_int_equal(_getch(), 'a');
    assert_int_equal(_getche(), 'b');
    close(ends[1]);
    assert_int_equal(_getch(), -1);
    freopen("/dev/null", "w", stdout);
    assert_int_equal(_putch('x'), 'x');
    assert_int_equal(_cputs("text"), 0);
}

static int compare_by_sign(void *context, const void *first, const void *second)
{
    int sign = *(int *)context, one = *(const int *)first, other = *(const int *)second;
    return sign * ((one > other) - (one < other));
}

static void sorting_and_searching(void **state)
{
    int numbers[] = {5, 3, 9, 1, 7}, sign = -1, key = 3, missing = 4;
    unsigned random = 0, seen = 0;

    (void)state;
    _set_invalid_parameter_handler(note_invalid);
    qsort_s(numbers, 5, sizeof(int), compare_by_sign, &sign);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(numbers[i], 9 - 2 * i);
        assert_ptr_equal(bsearch_s(&numbers[i], numbers, 5, sizeof(int), compare_by_sign, &sign), &numbers[i]);
    }
    assert_ptr_equal(bsearch_s(&key, numbers, 5, sizeof(int), compare_by_sign, &sign), &numbers[3]);
    assert_null(bsearch_s(&missing, numbers, 5, sizeof(int), compare_by_sign, &sign));
    assert_null(bsearch_s(&key, NULL, 0, sizeof(int), compare_by_sign, &sign));
    qsort_s(NULL, 0, sizeof(int), compare_by_sign, &sign);
    invalid = 0;
    qsort_s(NULL, 1, sizeof(int), compare_by_sign, &sign);
    qsort_s(numbers, 5, 0, compare_by_sign, &sign);
    assert_null(bsearch_s(&key, numbers, 5, sizeof(int), NULL, NULL));
    assert_int_equal(rand_s(NULL), EINVAL);
    assert_int_equal(invalid, 4);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(rand_s(&random), 0);
        seen |= random;
    }
    assert_int_equal(seen, UINT_MAX); /* wrong once in 2^35 */
    _set_invalid_parameter_handler(NULL);
}

static void scanning(void **state)
{
    char word[8], letter[2], rest[20];
    LONG number = 0;
    DWORD unsigned_number;
    __int64 big;
    double real;
    int count = 0, hex;
    FILE *file = tmpfile();

    (void)state;
    assert_int_equal(sscanf_s("12 -5000000000 2.5 word x", "%ld %I64d %lf %s %c", &number, &big, &real, word,
                              (unsigned)sizeof(word), letter, 1u), 5);
    assert_int_equal(number, 12);
    assert_true(big == -5000000000LL && real == 2.5);
    assert_string_equal(word, "word");
    assert_int_equal(letter[0], 'x');
    assert_int_equal(sscanf_s("4294967295,ff", "%lu,%x%n", &unsigned_number, &hex, &count), 2);
    assert_int_equal(unsigned_number, 4294967295u);
    assert_int_equal(hex, 255);
    /* a text that does not fit: the buffer is empty, the scan ends */
    strcpy(word, "before");
    assert_int_equal(sscanf_s("1 toolongword 2", "%ld %s %ld", &number, word, 8u, &number), 1);
    assert_string_equal(word, "");
    assert_int_equal(number, 1);
    assert_int_equal(sscanf_s("abcdefgh", "%7s", word, 8u), 1); /* the width limits it */
    assert_string_equal(word, "abcdefg");
    assert_int_equal(sscanf_s("key=value]x", "%[a-z]=%[^]]", word, 8u, rest, 20u), 2);
    assert_string_equal(word, "key");
    assert_string_equal(rest, "value");
    assert_int_equal(sscanf_s("7 skipped 8", "%ld %*s %ld", &number, &number), 2);
    assert_int_equal(number, 8);
    assert_int_equal(sscanf_s("100%", "%ld%%", &number), 1);
    assert_int_equal(sscanf_s("", "%ld", &number), EOF);
    assert_int_equal(sscanf_s("x", "%ld", &number), 0);
    assert_int_equal(sscanf_s("a=1", "b=%ld", &number), 0);
    assert_int_equal(sscanf_s("ab", "%c", letter, 0u), 0);
    assert_int_equal(sscanf_s("ab", "%2c", letter, 2u), 1);
    assert_memory_equal(letter, "ab", 2);

    fputs("17 name\n18 other\n", file);
    rewind(file);
    assert_int_equal(fscanf_s(file, "%ld %s", &number, word, 8u), 2);
    assert_int_equal(fscanf_s(file, "%ld %s", &number, rest, 20u), 2);
    assert_int_equal(number, 18);
    assert_string_equal(word, "name");
    assert_string_equal(rest, "other");
    assert_int_equal(fscanf_s(file, "%ld", &number), EOF);
    fclose(file);
    _set_invalid_parameter_handler(note_invalid);
    invalid = 0;
    assert_int_equal(sscanf_s(NULL, "%ld", &number), EOF);
    assert_int_equal(invalid, 1);
    _set_invalid_parameter_handler(NULL);
}

static void short_formats(void **state)
{
    char text[10] = "xxxxxxxxx";

    (void)state;
    assert_true(_snprintf(text, 3, "%I64d", 12345LL) < 0);
    assert_string_equal(text, "123xxxxxx");
    assert_int_equal(_snprintf(text, 3, "%d", 678), 3);
    assert_string_equal(text, "678xxxxxx");
    assert_int_equal(_snprintf(text, 4, "%d", 901), 3);
    assert_string_equal(text, "901");
    assert_int_equal(_snprintf(NULL, 0, "%I64d", 12345LL), 5);
}

static void letters_and_numbers(void **state)
{
    char text[70] = "aBc1";
    WCHAR wide[8] = u"aBc";

    (void)state;
    _set_invalid_parameter_handler(note_invalid);
    assert_string_equal(_strupr(text), "ABC1");
    assert_string_equal(_strlwr(text), "abc1");
    assert_string_equal(_strrev(text), "1cba");
    assert_int_equal(_strupr_s(text, 5), 0);
    assert_string_equal(text, "1CBA");
    assert_refused(_strlwr_s(text, 4), EINVAL); /* not terminated within the size */
    assert_refused(_strlwr_s(NULL, 4), EINVAL);
    assert_memory_equal(_wcsupr(wide), u"ABC", 8);
    assert_memory_equal(_wcsrev(wide), u"CBA", 8);
    assert_int_equal(_wcslwr_s(wide, 8), 0);
    assert_memory_equal(wide, u"cba", 8);
    assert_int_equal(_stricmp("ABC", "abc"), 0);
    assert_int_equal(_strnicmp("ABCx", "abcy", 3), 0);
    assert_int_equal(_memicmp("A\0b", "a\0B", 3), 0);
    assert_true(_memicmp("a", "b", 1) < 0);
    assert_string_equal(_itoa(-5, text, 10), "-5");
    assert_string_equal(_ultoa(~0u, text, 16), "ffffffff");
    assert_string_equal(_i64toa(-5000000000LL, text, 10), "-5000000000");
    assert_memory_equal(_itow(42, wide, 10), u"42", 6);
    assert_refused(_itow_s(12345678, wide, 8, 10), ERANGE);
    assert_true(_atoi64("5000000000") == 5000000000LL && _wtoi64(u"-5000000000") == -5000000000LL);
    assert_int_equal(_wtol(u"7x"), 7);
    assert_true(_wtof(u"2.5") == 2.5);
    assert_int_equal(_rotl8(0x81, 1), 3);
    assert_int_equal(_rotr16(1, 1), 0x8000);
    assert_int_equal(_scprintf("%d-%s", 12, "abc"), 6);
    assert_int_equal(_scwprintf(u"%0400d", 1), 400); /* longer than the first buffer that is tried */
    assert_int_equal(_swprintf(wide, u"%d", 123), 3);
    _set_invalid_parameter_handler(NULL);
}

static void conversions_of_strings(void **state)
{
    WCHAR wide[8];
    char text[8];
    size_t size;

    (void)state;
    _set_invalid_parameter_handler(note_invalid);
    assert_int_equal(mbstowcs_s(&size, NULL, 0, "gr\xc3\xbcn", 0), 0);
    assert_int_equal(size, 5);
    assert_int_equal(mbstowcs_s(&size, wide, 8, "gr\xc3\xbcn", _TRUNCATE), 0);
    assert_memory_equal(wide, u"gr\u00fcn", 10);
    assert_int_equal(mbstowcs_s(&size, wide, 8, "abcdef", 3), 0);
    assert_int_equal(size, 4);
    assert_memory_equal(wide, u"abc", 8);
    assert_int_equal(mbstowcs_s(&size, wide, 4, "abcdef", _TRUNCATE), STRUNCATE);
    assert_memory_equal(wide, u"abc", 8);
    assert_refused(mbstowcs_s(&size, wide, 4, "abcdef", 6), ERANGE);
    assert_int_equal(wide[0], 0);
    assert_refused(mbstowcs_s(&size, wide, 4, NULL, 6), EINVAL);
    assert_int_equal(mbstowcs_s(&size, wide, 8, "\xff", _TRUNCATE), EILSEQ);
    assert_int_equal(wcstombs_s(&size, NULL, 0, u"gr\u00fcn", 0), 0);
    assert_int_equal(size, 6);
    assert_int_equal(wcstombs_s(&size, text, 8, u"gr\u00fcn", _TRUNCATE), 0);
    assert_string_equal(text, "gr\xc3\xbcn");
    assert_int_equal(wcstombs_s(&size, text, 4, u"gr\u00fcn", _TRUNCATE), STRUNCATE);
    assert_string_equal(text, "gr"); /* no half of a character */
    assert_int_equal(size, 3);
    assert_refused(wcstombs_s(&size, text, 4, u"gr\u00fcn", 5), ERANGE);
    _set_invalid_parameter_handler(NULL);
}

static void more_files_and_dates(void **state)
{
    struct tm date = {.tm_year = 100, .tm_mday = 1, .tm_wday = 6};
    time_t billion = 1000000000, negative = -1;
    char text[32];
    FILE *file = NULL, *other = NULL;

    (void)state;
    _set_invalid_parameter_handler(note_invalid);
    assert_int_equal(asctime_s(text, 26, &date), 0);
    assert_string_equal(text, "Sat Jan  1 00:00:00 2000\n");
    assert_refused(asctime_s(text, 25, &date), EINVAL);
    assert_string_equal(text, "");
    date.tm_mon = 12;
    assert_refused(asctime_s(text, 26, &date), EINVAL);
    assert_int_equal(ctime_s(text, 26, &billion), 0);
    assert_int_equal(strlen(text), 25);
    assert_refused(ctime_s(text, 26, &negative), EINVAL);
    assert_int_equal(tmpfile_s(&file), 0);
    fputs("abcdef", file);
    rewind(file);
    assert_int_equal(fread_s(text, sizeof(text), 1, 6, file), 6);
    assert_refused((int)fread_s(text, 4, 1, 6, file), 0);
    assert_int_equal(clearerr_s(file), 0);
    assert_refused(clearerr_s(NULL), EINVAL);
    assert_int_equal(freopen_s(&other, "/dev/null", "r", file), 0);
    assert_refused(freopen_s(&other, "", "r", file), EINVAL);
    fclose(file);
    assert_int_equal(_wfopen_s(&file, u"/dev/null", u"r"), 0);
    fclose(file);
    assert_int_equal(_wfopen_s(&file, u"/nonexistent/file", u"r"), ENOENT);
    assert_null(file);
    assert_int_equal(_putenv_s("INTERLOCK_TEST", "one"), 0);
    assert_string_equal(getenv("INTERLOCK_TEST"), "one");
    assert_int_equal(_putenv("INTERLOCK_TEST=two"), 0);
    assert_string_equal(getenv("INTERLOCK_TEST"), "two");
    assert_int_equal(_putenv_s("INTERLOCK_TEST", ""), 0);
    assert_null(getenv("INTERLOCK_TEST"));
    assert_refused(_putenv_s("A=B", "x"), EINVAL);
    _set_invalid_parameter_handler(NULL);
}

static void keys(void **state)
{
    (void)state;
    run_in_child(read_keys, NULL);
}

static void intrinsics(void **state)
{
    __int32 word = 5;
    unsigned __int64 high;
    ULONG index;

    (void)state;
    assert_int_equal(_byteswap_ushort(0x1234), 0x3412);
    assert_int_equal(_byteswap_ulong(0x12345678), 0x78563412);
    assert_true(_byteswap_uint64(0x0102030405060708) == 0x0807060504030201);
    assert_int_equal(_rotl(0x80000001u, 1), 3);
    assert_int_equal(_rotr(3u, 33), 0x80000001u);
    assert_int_equal(_lrotl(0x80000001u, 32), 0x80000001u);
    assert_true(_rotl64(1ULL << 63 | 1, 1) == 3);
    assert_true(_rotr64(1, 1) == 1ULL << 63);
    __iso_volatile_store32(&word, 7);
    assert_int_equal(__iso_volatile_load32(&word), 7);
    assert_true(_BitScanForward(&index, 8) && index == 3);
    assert_true(_BitScanReverse64(&index, 1ULL << 40) && index == 40);
    assert_int_equal(__popcnt(0xF0F0), 8);
    assert_int_equal(__popcnt16(3), 2);
    assert_int_equal(__popcnt64(~0ULL), 64);
    assert_int_equal(__lzcnt(1), 31);
    assert_int_equal(__lzcnt64(0), 64);
    assert_true(_umul128(1ULL << 63, 6, &high) == 0 && high == 3);
    assert_true(__umulh(1ULL << 63, 6) == 3);
    assert_true(__mulh(-1, 1) == -1);
    assert_true(__shiftleft128(1ULL << 63, 1, 1) == 3);
    assert_true(__shiftright128(2, 1, 1) == (1ULL << 63 | 1));
    __faststorefence();
    __nop();
#ifdef __x86_64__
    int leaf[4];
    char vendor[12];

    _mm_pause();
    assert_true(__rdtsc() != 0);
    __cpuid(leaf, 0);
    memcpy(vendor, &leaf[1], 4);
    memcpy(vendor + 4, &leaf[3], 4);
    memcpy(vendor + 8, &leaf[2], 4);
    for (int i = 0; i < 12; i++)
        assert_in_range(vendor[i], ' ', '~');
    assert_true(leaf[0] > 0);
#endif
}

static void constants(void **state)
{
    (void)state;
    assert_int_equal(WSAEWOULDBLOCK, 10035);
    assert_int_equal(WSAETIMEDOUT, 10060);
    assert_int_equal(MAXIMUM_SUSPEND_COUNT, 127);
    assert_int_equal(MAXIMUM_PROCESSORS, 64);
    assert_int_equal(QUEUE_USER_APC_CALLBACK_DATA_CONTEXT, 0x10000);
    assert_true(_WIN32_WINNT >= _WIN32_WINNT_WIN10 && NTDDI_VERSION >= NTDDI_WIN10);
    assert_true(WINAPI_FAMILY_PARTITION(WINAPI_PARTITION_DESKTOP));
    assert_int_equal(_CrtSetDbgFlag(_CRTDBG_LEAK_CHECK_DF), 0);
    assert_int_equal(_CrtDumpMemoryLeaks(), 0);
    _ASSERTE(state != NULL);
}

static void background_mode(void **state)
{
    (void)state;
    assert_false(SetThreadPriority(GetCurrentThread(), THREAD_MODE_BACKGROUND_END));
    assert_int_equal(GetLastError(), ERROR_THREAD_MODE_NOT_BACKGROUND);
    assert_true(SetThreadPriority(GetCurrentThread(), THREAD_MODE_BACKGROUND_BEGIN));
    assert_false(SetThreadPriority(GetCurrentThread(), THREAD_MODE_BACKGROUND_BEGIN));
    assert_int_equal(GetLastError(), ERROR_THREAD_MODE_ALREADY_BACKGROUND);
    assert_true(SetThreadPriority(GetCurrentThread(), THREAD_MODE_BACKGROUND_END));
    assert_int_equal(GetThreadPriority(GetCurrentThread()), THREAD_PRIORITY_NORMAL);
    assert_false(SetThreadPriority(NULL, THREAD_MODE_BACKGROUND_BEGIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_of_invalid_parameters),
        cmocka_unit_test(no_handler_ends_the_process),
        cmocka_unit_test(copies),
        cmocka_unit_test(appends),
        cmocka_unit_test(wide_strings),
        cmocka_unit_test(formats),
        cmocka_unit_test(tokens_and_lengths),
        cmocka_unit_test(memory),
        cmocka_unit_test(numbers),
        cmocka_unit_test(errors_files_and_the_environment),
        cmocka_unit_test(the_calendar),
        cmocka_unit_test(time_zones),
        cmocka_unit_test(sorting_and_searching),
        cmocka_unit_test(scanning),
        cmocka_unit_test(short_formats),
        cmocka_unit_test(letters_and_numbers),
        cmocka_unit_test(conversions_of_strings),
        cmocka_unit_test(more_files_and_dates),
        cmocka_unit_test(keys),
        cmocka_unit_test(intrinsics),
        cmocka_unit_test(constants),
        cmocka_unit_test(background_mode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
