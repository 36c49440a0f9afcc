/* driverwide.c: driver code written for Windows, with L"" literals, compiled with -fshort-wchar as C and C++. */
#define RTL_USE_AVL_TABLES 0 /* the generic names mean balanced tables */

#include <ntifs.h>
#include <ntintsafe.h>
#include <ntstrsafe.h>

#include <stdio.h>

#define TAG 0x31656469u

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                     \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

DECLARE_CONST_UNICODE_STRING(DeviceName, L"\\Device\\Wide");

typedef struct {
    ULONG Key;
} ELEMENT;

static RTL_GENERIC_COMPARE_RESULTS NTAPI CompareElements(PRTL_GENERIC_TABLE Table, PVOID First, PVOID Second)
{
    ULONG A = ((ELEMENT *)First)->Key, B = ((ELEMENT *)Second)->Key;
    UNREFERENCED_PARAMETER(Table);
    return A < B ? GenericLessThan : A > B ? GenericGreaterThan : GenericEqual;
}

static PVOID NTAPI AllocateElement(PRTL_GENERIC_TABLE Table, CLONG Size)
{
    UNREFERENCED_PARAMETER(Table);
    return ExAllocatePool2(POOL_FLAG_PAGED, Size, TAG);
}

static VOID NTAPI FreeElement(PRTL_GENERIC_TABLE Table, PVOID Buffer)
{
    UNREFERENCED_PARAMETER(Table);
    ExFreePoolWithTag(Buffer, TAG);
}

static int Strings(void)
{
    DECLARE_UNICODE_STRING_SIZE(Text, 40);
    UNICODE_STRING Wanted = RTL_CONSTANT_STRING(L"\\device\\wide-7"), Copy;
    ANSI_STRING Ansi;
    WCHAR Buffer[8];

    REQUIRE(wcslen(DeviceName.Buffer) == 12);
    REQUIRE(_wcsicmp(L"abc", L"ABC") == 0);
    REQUIRE(wcschr(DeviceName.Buffer, L'W') != NULL);
    REQUIRE(NT_SUCCESS(RtlUnicodeStringPrintf(&Text, L"%wZ-%d", &DeviceName, 7)));
    REQUIRE(RtlEqualUnicodeString(&Text, &Wanted, TRUE));
    REQUIRE(NT_SUCCESS(RtlUnicodeStringToAnsiString(&Ansi, &Text, TRUE)));
    REQUIRE(strcmp(Ansi.Buffer, "\\Device\\Wide-7") == 0);
    RtlFreeAnsiString(&Ansi);
    REQUIRE(RtlStringCbCopyW(Buffer, sizeof(Buffer), L"too long by far") == STATUS_BUFFER_OVERFLOW);
    REQUIRE(wcscmp(Buffer, L"too lon") == 0);
    Copy.MaximumLength = DeviceName.Length;
    Copy.Buffer = (PWCH)ExAllocatePool2(POOL_FLAG_PAGED, Copy.MaximumLength, TAG);
    REQUIRE(Copy.Buffer != NULL);
    RtlCopyUnicodeString(&Copy, &DeviceName);
    REQUIRE(RtlCompareUnicodeString(&Copy, &DeviceName, FALSE) == 0);
    ExFreePoolWithTag(Copy.Buffer, TAG);
    return 0;
}

static int Tables(void)
{
    RTL_GENERIC_TABLE Table;
    ULONG Sum = 0;
    PVOID Found;

    RtlInitializeGenericTable(&Table, CompareElements, AllocateElement, FreeElement, NULL);
    for (ULONG i = 0; i < 10; i++) {
        ELEMENT Element = {i * 7 % 10};
        RtlInsertElementGenericTable(&Table, &Element, sizeof(Element), NULL);
    }
    for (Found = RtlEnumerateGenericTable(&Table, TRUE); Found != NULL; Found = RtlEnumerateGenericTable(&Table, FALSE)) {
        Sum = Sum * 3 + ((ELEMENT *)Found)->Key;
    }
    REQUIRE(Sum == 14757); /* in order */
    while ((Found = RtlGetElementGenericTable(&Table, 0)) != NULL) {
        RtlDeleteElementGenericTable(&Table, Found);
    }
    REQUIRE(RtlIsGenericTableEmpty(&Table));
    return 0;
}

static int Numbers(void)
{
    ULONG Words[2] = {0, 0}, Result;
    RTL_BITMAP Bits;

    REQUIRE(RtlULongAdd(MAXULONG, 1, &Result) == STATUS_INTEGER_OVERFLOW);
    REQUIRE(RtlUlongByteSwap(1) == 0x01000000);
    RtlInitializeBitMap(&Bits, Words, 64);
    REQUIRE(RtlFindClearBitsAndSet(&Bits, 33, 0) == 0);
    REQUIRE(RtlFindClearBits(&Bits, 1, 0) == 33);
    return 0;
}

int main(void)
{
    return Strings() != 0 || Tables() != 0 || Numbers() != 0;
}
