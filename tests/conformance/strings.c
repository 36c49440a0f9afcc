/* strings.c: counted strings, numbers in them, UTF-8, bitmaps and dates of ntdll, found by name as programs that use them do. */
#include "report.h"

typedef struct {
    USHORT Length;
    USHORT MaximumLength;
    PWSTR Buffer;
} Wide;

typedef struct {
    USHORT Length;
    USHORT MaximumLength;
    PSTR Buffer;
} Narrow;

typedef struct {
    ULONG Size;
    ULONG *Buffer;
} Bits;

#define FUNCTION(type, name, arguments)                                                                                \
    typedef type(NTAPI *name##Type) arguments;                                                                         \
    static name##Type name##Function

FUNCTION(void, RtlCopyUnicodeString, (Wide *, const Wide *));
FUNCTION(LONG, RtlAppendUnicodeStringToString, (Wide *, const Wide *));
FUNCTION(LONG, RtlAppendUnicodeToString, (Wide *, PCWSTR));
FUNCTION(LONG, RtlAppendAsciizToString, (Narrow *, PCSTR));
FUNCTION(LONG, RtlCompareUnicodeString, (const Wide *, const Wide *, BOOLEAN));
FUNCTION(BOOLEAN, RtlEqualUnicodeString, (const Wide *, const Wide *, BOOLEAN));
FUNCTION(BOOLEAN, RtlPrefixUnicodeString, (const Wide *, const Wide *, BOOLEAN));
FUNCTION(LONG, RtlHashUnicodeString, (const Wide *, BOOLEAN, ULONG, ULONG *));
FUNCTION(WCHAR, RtlDowncaseUnicodeChar, (WCHAR));
FUNCTION(LONG, RtlUpcaseUnicodeString, (Wide *, const Wide *, BOOLEAN));
FUNCTION(LONG, RtlIntegerToUnicodeString, (ULONG, ULONG, Wide *));
FUNCTION(LONG, RtlInt64ToUnicodeString, (ULONGLONG, ULONG, Wide *));
FUNCTION(LONG, RtlIntegerToChar, (ULONG, ULONG, ULONG, PSTR));
FUNCTION(LONG, RtlUnicodeStringToInteger, (const Wide *, ULONG, ULONG *));
FUNCTION(LONG, RtlCharToInteger, (PCSTR, ULONG, ULONG *));
FUNCTION(LONG, RtlGUIDFromString, (const Wide *, GUID *));
FUNCTION(LONG, RtlStringFromGUID, (const GUID *, Wide *));
FUNCTION(VOID, RtlFreeUnicodeString, (Wide *));
FUNCTION(LONG, RtlAnsiStringToUnicodeString, (Wide *, const Narrow *, BOOLEAN));
FUNCTION(LONG, RtlUnicodeStringToAnsiString, (Narrow *, const Wide *, BOOLEAN));
FUNCTION(LONG, RtlUTF8ToUnicodeN, (PWSTR, ULONG, ULONG *, PCSTR, ULONG));
FUNCTION(LONG, RtlUnicodeToUTF8N, (PSTR, ULONG, ULONG *, PCWSTR, ULONG));
FUNCTION(void, RtlInitializeBitMap, (Bits *, ULONG *, ULONG));
FUNCTION(void, RtlSetBits, (Bits *, ULONG, ULONG));
FUNCTION(void, RtlClearBits, (Bits *, ULONG, ULONG));
FUNCTION(BOOLEAN, RtlAreBitsSet, (Bits *, ULONG, ULONG));
FUNCTION(BOOLEAN, RtlAreBitsClear, (Bits *, ULONG, ULONG));
FUNCTION(ULONG, RtlFindClearBits, (Bits *, ULONG, ULONG));
FUNCTION(ULONG, RtlFindClearBitsAndSet, (Bits *, ULONG, ULONG));
FUNCTION(ULONG, RtlNumberOfSetBits, (Bits *));
FUNCTION(ULONG, RtlNumberOfClearBits, (Bits *));
FUNCTION(CHAR, RtlFindMostSignificantBit, (ULONGLONG));
FUNCTION(CHAR, RtlFindLeastSignificantBit, (ULONGLONG));
FUNCTION(BOOLEAN, RtlTimeToSecondsSince1970, (const LARGE_INTEGER *, ULONG *));
FUNCTION(BOOLEAN, RtlTimeToSecondsSince1980, (const LARGE_INTEGER *, ULONG *));
FUNCTION(void, RtlSecondsSince1970ToTime, (ULONG, LARGE_INTEGER *));
FUNCTION(SIZE_T, RtlCompareMemoryUlong, (const void *, SIZE_T, ULONG));

#define FIND(name)                                                                                                     \
    if ((name##Function = (name##Type)(void (*)(void))GetProcAddress(ntdll, #name)) == NULL)                           \
    printf("there is no %s\n", #name)

static void FindFunctions(void)
{
    HMODULE ntdll = GetModuleHandleA("ntdll.dll");
    FIND(RtlCopyUnicodeString);
    FIND(RtlAppendUnicodeStringToString);
    FIND(RtlAppendUnicodeToString);
    FIND(RtlAppendAsciizToString);
    FIND(RtlCompareUnicodeString);
    FIND(RtlEqualUnicodeString);
    FIND(RtlPrefixUnicodeString);
    FIND(RtlHashUnicodeString);
    FIND(RtlDowncaseUnicodeChar);
    FIND(RtlUpcaseUnicodeString);
    FIND(RtlIntegerToUnicodeString);
    FIND(RtlInt64ToUnicodeString);
    FIND(RtlIntegerToChar);
    FIND(RtlUnicodeStringToInteger);
    FIND(RtlCharToInteger);
    FIND(RtlGUIDFromString);
    FIND(RtlStringFromGUID);
    FIND(RtlFreeUnicodeString);
    FIND(RtlAnsiStringToUnicodeString);
    FIND(RtlUnicodeStringToAnsiString);
    FIND(RtlUTF8ToUnicodeN);
    FIND(RtlUnicodeToUTF8N);
    FIND(RtlInitializeBitMap);
    FIND(RtlSetBits);
    FIND(RtlClearBits);
    FIND(RtlAreBitsSet);
    FIND(RtlAreBitsClear);
    FIND(RtlFindClearBits);
    FIND(RtlFindClearBitsAndSet);
    FIND(RtlNumberOfSetBits);
    FIND(RtlNumberOfClearBits);
    FIND(RtlFindMostSignificantBit);
    FIND(RtlFindLeastSignificantBit);
    FIND(RtlTimeToSecondsSince1970);
    FIND(RtlTimeToSecondsSince1980);
    FIND(RtlSecondsSince1970ToTime);
    FIND(RtlCompareMemoryUlong);
}

static WCHAR wideBuffers[4][80];

/* A counted string of the text, in one of four buffers. */
static Wide Text(int which, const char *text)
{
    Wide string;
    int i;
    for (i = 0; text[i] != 0; i++) {
        wideBuffers[which][i] = (WCHAR)(unsigned char)text[i];
    }
    wideBuffers[which][i] = 0;
    string.Length = (USHORT)(i * 2);
    string.MaximumLength = (USHORT)(i * 2 + 2);
    string.Buffer = wideBuffers[which];
    return string;
}

static void ShowStatus(const char *what, int n, LONG status)
{
    printf("%s %d: 0x%08x", what, n, (unsigned)status);
}

static void ShowUnits(const Wide *string, int count)
{
    int i;
    printf(" length %d:", string->Length);
    for (i = 0; i < count; i++) {
        printf(" %x", string->Buffer[i]);
    }
    printf("\n");
}

static void Copying(void)
{
    Wide source = Text(0, "xyz"), target;
    int maximum;
    target.Buffer = wideBuffers[1];
    for (maximum = 0; maximum <= 10; maximum += 2) {
        memset(wideBuffers[1], '#', 20);
        target.Length = 0;
        target.MaximumLength = (USHORT)maximum;
        RtlCopyUnicodeStringFunction(&target, &source);
        ShowStatus("copy", maximum, 0);
        ShowUnits(&target, 5);
        target.Length = 2;
        target.MaximumLength = (USHORT)(maximum + 2);
        memset(wideBuffers[1], '#', 20);
        ShowStatus("append", maximum, RtlAppendUnicodeStringToStringFunction(&target, &source));
        ShowUnits(&target, 6);
        target.Length = 2;
        memset(wideBuffers[1], '#', 20);
        ShowStatus("append text", maximum, RtlAppendUnicodeToStringFunction(&target, source.Buffer));
        ShowUnits(&target, 6);
    }
}

static void AppendingBytes(void)
{
    char buffer[9];
    Narrow target;
    int maximum;
    target.Buffer = buffer;
    for (maximum = 1; maximum <= 6; maximum++) {
        memset(buffer, '#', 8);
        buffer[8] = 0;
        target.Length = 1;
        target.MaximumLength = (USHORT)maximum;
        ShowStatus("append bytes", maximum, RtlAppendAsciizToStringFunction(&target, "abc"));
        printf(" length %d: %s\n", target.Length, buffer);
    }
}

static void Comparing(void)
{
    static const char *const texts[] = {"", "a", "A", "abc", "ABD", "_", "\\Device", "\\DEVICE\\X", "\xe9t\xe9", "\xc9T\xc9"};
    int i, j, sensitive;
    for (sensitive = 0; sensitive < 2; sensitive++) {
        for (i = 0; i < 10; i++) {
            for (j = 0; j < 10; j++) {
                Wide first = Text(0, texts[i]), second = Text(1, texts[j]);
                LONG order = RtlCompareUnicodeStringFunction(&first, &second, (BOOLEAN)sensitive);
                printf("compare %d %d %d: %d %d %d\n", i, j, sensitive, order < 0 ? -1 : order > 0,
                       RtlEqualUnicodeStringFunction(&first, &second, (BOOLEAN)sensitive),
                       RtlPrefixUnicodeStringFunction(&first, &second, (BOOLEAN)sensitive));
            }
        }
    }
}

static void Hashing(void)
{
    Wide string = Text(0, "Name of a file");
    ULONG value = 0;
    printf("hash: 0x%x", (unsigned)RtlHashUnicodeStringFunction(&string, FALSE, 0, &value));
    printf(" %x\n", (unsigned)value);
    printf("hash: 0x%x", (unsigned)RtlHashUnicodeStringFunction(&string, TRUE, 1, &value));
    printf(" %x\n", (unsigned)value);
    printf("hash: 0x%x\n", (unsigned)RtlHashUnicodeStringFunction(&string, TRUE, 2, &value));
    printf("hash: 0x%x\n", (unsigned)RtlHashUnicodeStringFunction(NULL, TRUE, 0, &value));
    SHOW(RtlHashUnicodeStringFunction(&string, TRUE, 0, NULL));
}

/* Every character, as one number. */
static void LowerCase(void)
{
    ULONG sum = 0;
    unsigned c;
    for (c = 0; c < 0x10000; c++) {
        sum = sum * 31 + RtlDowncaseUnicodeCharFunction((WCHAR)c);
    }
    printf("lower case: %x\n", (unsigned)sum);
}

static void UpperCase(void)
{
    Wide source = Text(0, "abC\xe9"), target;
    int maximum;
    target.Buffer = wideBuffers[1];
    for (maximum = 4; maximum <= 10; maximum += 2) {
        memset(wideBuffers[1], '#', 20);
        target.Length = 0;
        target.MaximumLength = (USHORT)maximum;
        ShowStatus("upper case", maximum, RtlUpcaseUnicodeStringFunction(&target, &source, FALSE));
        printf(" %x %x\n", wideBuffers[1][0], wideBuffers[1][4]);
    }
}

static void NumbersToText(void)
{
    static const ULONG bases[] = {0, 2, 8, 10, 16, 7};
    Wide target;
    char bytes[12];
    int i, maximum;
    target.Buffer = wideBuffers[1];
    for (i = 0; i < 6; i++) {
        memset(wideBuffers[1], '#', 160);
        target.Length = 0;
        target.MaximumLength = 140;
        ShowStatus("integer in base", (int)bases[i], RtlIntegerToUnicodeStringFunction(0xDEADBEEF, bases[i], &target));
        if (i != 5) {
            ShowUnits(&target, 33);
        } else {
            printf("\n");
        }
        ShowStatus("long integer in base", (int)bases[i],
                   RtlInt64ToUnicodeStringFunction(0xFEDCBA9876543210ULL, bases[i], &target));
        if (i != 5) {
            ShowUnits(&target, 65);
        } else {
            printf("\n");
        }
    }
    for (maximum = 0; maximum <= 14; maximum += 2) {
        memset(wideBuffers[1], '#', 20);
        target.Length = 0;
        target.MaximumLength = (USHORT)maximum;
        ShowStatus("integer", maximum, RtlIntegerToUnicodeStringFunction(12345, 10, &target));
        ShowUnits(&target, 7);
    }
    for (maximum = 0; maximum <= 6; maximum++) {
        memset(bytes, '#', 11);
        bytes[11] = 0;
        ShowStatus("integer to bytes", maximum, RtlIntegerToCharFunction(1234, 10, (ULONG)maximum, bytes));
        printf(" %s\n", bytes);
    }
    ShowStatus("integer to bytes", 7, RtlIntegerToCharFunction(1, 10, 7, NULL));
    ShowStatus("\ninteger to bytes", 7, RtlIntegerToCharFunction(1, 3, 7, bytes));
    printf("\n");
}

static void TextToNumbers(void)
{
    static const char *const texts[] = {
        "123", "  -345", "xyz", "   +678abc", "007", "789", "FGH", "      ", "0x1F", "0o17", "0b101", "-0x10", "0X1F",
        "4294967295", "4294967296", "99999999999", "--1", "- 1", "\t\n 5", "0x", "+-3", "-", "0", "",
    };
    static const ULONG bases[] = {0, 2, 8, 10, 16, 7};
    int i, j;
    for (i = 0; i < 24; i++) {
        for (j = 0; j < 6; j++) {
            Wide string = Text(0, texts[i]);
            ULONG value = UNTOUCHED;
            printf("text %d in base %u: 0x%x", i, (unsigned)bases[j],
                   (unsigned)RtlUnicodeStringToIntegerFunction(&string, bases[j], &value));
            printf(" %x", (unsigned)value);
            value = UNTOUCHED;
            printf(", bytes 0x%x", (unsigned)RtlCharToIntegerFunction(texts[i], bases[j], &value));
            printf(" %x\n", (unsigned)value);
        }
    }
    printf("bytes to nowhere: 0x%x\n", (unsigned)RtlCharToIntegerFunction("1", 10, NULL));
}

static void Guids(void)
{
    static const char *const texts[] = {
        "{01234567-89ab-CDEF-0123-456789ABCDEF}", "{01234567-89ab-CDEF-0123-456789ABCDEF}x",
        "01234567-89ab-CDEF-0123-456789ABCDEF",   "", "{01234567-89ab-CDEF-0123-456789ABCDE}",
        "{01234567-89ab-CDEF-0123-456789ABCDEG}", "{01234567-89ab-CDEF-0123+456789ABCDEF}",
    };
    int i, j;
    for (i = 0; i < 7; i++) {
        Wide string = Text(0, texts[i]);
        GUID guid;
        ShowStatus("GUID", i, RtlGUIDFromStringFunction(&string, &guid));
        printf("\n");
        if (i == 0) {
            const unsigned char *bytes = (const unsigned char *)&guid;
            for (j = 0; j < 16; j++) {
                printf("%02x ", bytes[j]);
            }
            ShowStatus("text", 0, RtlStringFromGUIDFunction(&guid, &string));
            printf(" maximum %d", string.MaximumLength);
            ShowUnits(&string, 39);
            RtlFreeUnicodeStringFunction(&string);
        }
    }
}

static void Ansi(void)
{
    Narrow source, bytes;
    Wide target, wide = Text(0, "abcdef");
    char buffer[12];
    int maximum;
    source.Buffer = (PSTR) "abcdef";
    source.Length = 6;
    source.MaximumLength = 7;
    target.Buffer = wideBuffers[1];
    bytes.Buffer = buffer;
    for (maximum = 10; maximum <= 16; maximum += 2) {
        memset(wideBuffers[1], '#', 20);
        target.Length = 0;
        target.MaximumLength = (USHORT)maximum;
        ShowStatus("bytes to units", maximum, RtlAnsiStringToUnicodeStringFunction(&target, &source, FALSE));
        ShowUnits(&target, 8);
    }
    for (maximum = 7; maximum <= 9; maximum++) {
        memset(buffer, '#', 11);
        buffer[11] = 0;
        bytes.Length = 0;
        bytes.MaximumLength = (USHORT)maximum;
        ShowStatus("units to bytes", maximum, RtlUnicodeStringToAnsiStringFunction(&bytes, &wide, FALSE));
        printf(" length %d: %s\n", bytes.Length, buffer);
    }
    bytes.MaximumLength = 3;
    ShowStatus("units to bytes", 3, RtlUnicodeStringToAnsiStringFunction(&bytes, &wide, FALSE));
    printf("\n");
}

static void Utf8(void)
{
    static const char bytes[] = "a\xc3\xa9\xe4\xb8\xadz";
    static const WCHAR units[] = {'a', 0xE9, 0x4E2D, 0xD83D, 0xDE00, 'z'};
    static const WCHAR half[] = {'a', 0xD800};
    char narrow[16];
    ULONG size, count;
    for (size = 0; size <= 10; size += 2) {
        ShowStatus("from UTF-8", (int)size, RtlUTF8ToUnicodeNFunction(wideBuffers[0], size, &count, bytes, 7));
        printf(" %u bytes\n", (unsigned)count);
    }
    for (size = 0; size <= 12; size++) {
        ShowStatus("to UTF-8", (int)size, RtlUnicodeToUTF8NFunction(narrow, size, &count, units, 12));
        printf(" %u bytes\n", (unsigned)count);
    }
    ShowStatus("measured", 0, RtlUTF8ToUnicodeNFunction(NULL, 0, &count, bytes, 7));
    printf(" %u bytes\n", (unsigned)count);
    ShowStatus("measured", 0, RtlUnicodeToUTF8NFunction(NULL, 0, &count, units, 12));
    printf(" %u bytes\n", (unsigned)count);
    ShowStatus("malformed", 0, RtlUTF8ToUnicodeNFunction(wideBuffers[0], 20, &count, "a\xff", 2));
    printf(" %u bytes %x\n", (unsigned)count, wideBuffers[0][1]);
    ShowStatus("malformed", 0, RtlUnicodeToUTF8NFunction(narrow, 16, &count, half, 4));
    printf(" %u bytes\n", (unsigned)count);
    ShowStatus("no source", 0, RtlUTF8ToUnicodeNFunction(wideBuffers[0], 20, &count, NULL, 2));
    ShowStatus("\nno target and count", 0, RtlUTF8ToUnicodeNFunction(NULL, 0, NULL, bytes, 2));
    ShowStatus("\nodd", 0, RtlUnicodeToUTF8NFunction(narrow, 16, &count, units, 3));
    printf("\n");
}

static void Bitmaps(void)
{
    ULONG words[4] = {0}, i;
    Bits map;
    RtlInitializeBitMapFunction(&map, words, 100);
    RtlSetBitsFunction(&map, 3, 50);
    RtlClearBitsFunction(&map, 20, 5);
    RtlSetBitsFunction(&map, 96, 2);
    RtlSetBitsFunction(&map, 60, 1);
    printf("bits: %x %x %x %x\n", (unsigned)words[0], (unsigned)words[1], (unsigned)words[2], (unsigned)words[3]);
    printf("set %u, clear %u\n", (unsigned)RtlNumberOfSetBitsFunction(&map), (unsigned)RtlNumberOfClearBitsFunction(&map));
    printf("set: %d %d %d, clear: %d %d %d\n", RtlAreBitsSetFunction(&map, 3, 17), RtlAreBitsSetFunction(&map, 3, 18),
           RtlAreBitsSetFunction(&map, 3, 0), RtlAreBitsClearFunction(&map, 20, 5), RtlAreBitsClearFunction(&map, 20, 6),
           RtlAreBitsClearFunction(&map, 98, 3));
    for (i = 1; i <= 40; i += 3) {
        printf("find %u: %d\n", (unsigned)i, (int)RtlFindClearBitsFunction(&map, i, 0));
    }
    printf("found %d\n", (int)RtlFindClearBitsAndSetFunction(&map, 4, 0));
    printf("found %d\n", (int)RtlFindClearBitsAndSetFunction(&map, 4, 0));
    printf("found %d\n", (int)RtlFindClearBitsAndSetFunction(&map, 70, 0));
    printf("bits: %x %x %x %x\n", (unsigned)words[0], (unsigned)words[1], (unsigned)words[2], (unsigned)words[3]);
    SHOW(RtlFindMostSignificantBitFunction(0));
    SHOW(RtlFindMostSignificantBitFunction(1ULL << 40 | 3));
    SHOW(RtlFindLeastSignificantBitFunction(0));
    SHOW(RtlFindLeastSignificantBitFunction(1ULL << 40));
}

static void Others(void)
{
    static const LONGLONG times[] = {0, 116444735999999999LL, 116444736000000000LL, 119600064000000000LL,
                                     159394408959999999LL, 159394408960000000LL};
    ULONG words[] = {5, 5, 6}, seconds;
    LARGE_INTEGER time;
    int i;
    for (i = 0; i < 6; i++) {
        time.QuadPart = times[i];
        seconds = UNTOUCHED;
        printf("since 1970: %d", RtlTimeToSecondsSince1970Function(&time, &seconds));
        printf(" %u", (unsigned)seconds);
        seconds = UNTOUCHED;
        printf(", since 1980: %d", RtlTimeToSecondsSince1980Function(&time, &seconds));
        printf(" %u\n", (unsigned)seconds);
    }
    RtlSecondsSince1970ToTimeFunction(0xFFFFFFFF, &time);
    printf("%x %x\n", (unsigned)(time.QuadPart >> 32), (unsigned)time.QuadPart);
    printf("equal: %d\n", (int)RtlCompareMemoryUlongFunction(words, 12, 5));
}

int main(void)
{
    FindFunctions();
    Copying();
    AppendingBytes();
    Comparing();
    Hashing();
    LowerCase();
    UpperCase();
    NumbersToText();
    TextToNumbers();
    Guids();
    Ansi();
    Utf8();
    Bitmaps();
    Others();
    return 0;
}
