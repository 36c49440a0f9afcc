/*
 * Formats of Microsoft's C library, in C and in C++: what each conversion prints, by each function of the family. Prints
 * nothing and returns 0 if all is as on Windows.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#ifdef __cplusplus
#include <cstdio>
#endif
#include <windows.h>
#include <strsafe.h>

static int failures;

static void compare(const char *name, const char *found, const char *wanted)
{
    if (strcmp(found, wanted) != 0) {
        fprintf(stderr, "%s: \"%s\", not \"%s\"\n", name, found, wanted);
        failures++;
    }
}

#define EXPECT(wanted, ...)                                                                                            \
    do {                                                                                                               \
        char text[200];                                                                                                \
        int length = snprintf(text, sizeof(text), __VA_ARGS__);                                                        \
        compare("snprintf", text, wanted);                                                                             \
        if (length != (int)strlen(wanted))                                                                             \
            failures++;                                                                                                \
        sprintf(text, __VA_ARGS__);                                                                                    \
        compare("sprintf", text, wanted);                                                                              \
        _snprintf(text, sizeof(text), __VA_ARGS__);                                                                    \
        compare("_snprintf", text, wanted);                                                                            \
        sprintf_s(text, sizeof(text), __VA_ARGS__);                                                                    \
        compare("sprintf_s", text, wanted);                                                                            \
        StringCbPrintfA(text, sizeof(text), __VA_ARGS__);                                                              \
        compare("StringCbPrintfA", text, wanted);                                                                      \
    } while (0)

static void conversions(void)
{
    LONGLONG big = -5000000000LL;
    ULONGLONG huge = 0xFEDCBA9876543210ULL;
    LONG minus = -1;
    DWORD most = 0xFFFFFFFF;
    size_t size = 5000000000u;
    const wchar_t *wide = L"gr\u00fcn";

    EXPECT("-5000000000", "%I64d", big);
    EXPECT("fedcba9876543210 FEDCBA9876543210", "%I64x %I64X", huge, huge);
    EXPECT("18364758544493064720", "%I64u", huge);
    EXPECT("[  -5000000000] [-5000000000  ] [-000005000000000]", "[%13I64d] [%-13I64d] [%.15I64d]", big, big, big);
    EXPECT("-7 4294967295 ff", "%I32d %I32u %I32x", -7, most, 255);
    EXPECT("5000000000 12a05f200", "%Iu %Ix", size, size);
    EXPECT("-1 4294967295 ffffffff", "%ld %lu %lx", minus, most, most);
    EXPECT("-5000000000 5000000000 5000000000", "%lld %zu %llu", big, size, (ULONGLONG)size);
    EXPECT("-5000000000 5000000000", "%" PRId64 " %" PRIuPTR, (int64_t)big, (uintptr_t)size);
    EXPECT("a gr\xc3\xbcn gr\xc3\xbcn gr\xc3\xbcn", "%hs %ls %S %ws", "a", wide, wide, wide);
    EXPECT("[ gr\xc3\xbcn] [gr\xc3\xbc] [gr  ]", "[%6ls] [%.3ls] [%-4.2ls]", wide, wide, wide);
    EXPECT("x y z \xc3\xbc", "%c %hc %C %lc", 'x', 'y', L'z', L'\u00fc');
    EXPECT("(null) (null)", "%s %ls", (char *)NULL, (wchar_t *)NULL);
    EXPECT("00000000DEADBEEF", "%p", (void *)0xDEADBEEF);
    EXPECT("1.50 2.50 3 100%", "%.2f %.2lf %d 100%%", 1.5, 2.5, 3);
    EXPECT("  7|7  |007|+7", "%*d|%-*d|%03d|%+d", 3, 7, 3, 7, 7, 7);
    EXPECT("1.500000 -5000000000 1.5e+00", "%f %I64d %.1e", 1.5, big, 1.5);
    EXPECT("abc 2", "%.3s %d", "abcdef", 2);
}

static int by_list(char *text, size_t size, int form, const char *format, ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = form == 0 ? vsnprintf(text, size, format, list) : form == 1 ? vsprintf(text, format, list)
                                                                         : _vsnprintf(text, size, format, list);
    va_end(list);
    return length;
}

static int to_stream(FILE *stream, const char *format, ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = stream != NULL ? vfprintf(stream, format, list) : vprintf(format, list);
    va_end(list);
    return length;
}

static void functions(void)
{
    int (*pointer)(char *, size_t, const char *, ...) = snprintf;
    char text[100], *read = text;
    FILE *file = tmpfile();

    for (int form = 0; form < 3; form++) {
        by_list(text, sizeof(text), form, "%I64d|%lu", -1LL, (DWORD)-1);
        compare("by va_list", text, "-1|4294967295");
    }
    pointer(text, sizeof(text), "%I64d", 5000000000LL);
    compare("by pointer", text, "5000000000");
#ifdef __cplusplus
    std::snprintf(text, sizeof(text), "%I64d", 5000000000LL);
    compare("std::snprintf", text, "5000000000");
#endif
    fprintf(file, "%I64d ", 1LL);
    to_stream(file, "%I64d ", 2LL);
    fprintf(file, "%600I64d", 3LL);
    fwprintf(file, L" %I64d %ls %hs", 4LL, L"w", "n");
    rewind(file);
    read[fread(text, 1, 4, file)] = 0;
    compare("fprintf and vfprintf", text, "1 2 ");
    fseek(file, 4 + 599, SEEK_SET);
    read[fread(text, 1, sizeof(text) - 1, file)] = 0;
    compare("fwprintf", text, "3 4 w n");
    fclose(file);

    memset(text, 'x', sizeof(text));
    failures += _snprintf(text, 3, "%d", 12345) >= 0 || memcmp(text, "123x", 4) != 0;
    failures += _snprintf(text, 3, "%d", 678) != 3 || memcmp(text, "678x", 4) != 0;
    failures += snprintf(text, 3, "%I64d", 12345LL) != 5 || memcmp(text, "12\0x", 4) != 0;
    failures += _snprintf(NULL, 0, "%I64d", 12345LL) != 5;
    failures += snprintf(NULL, 0, "%I64d", 12345LL) != 5;

    wchar_t wide[50];
    swprintf(wide, 50, L"%I64d %s %hs %lu", 5000000000LL, L"w", "n", (DWORD)-1);
    sprintf(text, "%ls", wide);
    compare("swprintf", text, "5000000000 w n 4294967295");
}

int main(void)
{
    conversions();
    functions();
    /* the test reads these */
    printf("%I64d %ld %ls\n", 5000000000LL, (LONG)-1, L"wide");
    to_stream(NULL, "%I64d\n", 6LL);
    wprintf(L"%I64d %s\n", 7LL, L"wide");
    return failures;
}
