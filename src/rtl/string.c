/* string.c: counted strings. They compare as the names of objects do (ex/upcase.h). */
#include "rtlstringp.h"

#include "../ex/format.h"
#include "../ex/upcase.h"

#include <limits.h>

#define RTLP_STRING_TAG 0x67727453u /* "Strg" */

PVOID RtlpAllocateString(SIZE_T Size)
{
    return ExAllocatePool2(POOL_FLAG_PAGED, Size, RTLP_STRING_TAG);
}

VOID RtlpFreeString(PVOID Buffer)
{
    if (Buffer != NULL) {
        ExFreePool(Buffer);
    }
}

static SIZE_T RtlpWideLength(PCWSTR String)
{
    SIZE_T Length = 0;
    while (String[Length] != 0) {
        Length++;
    }
    return Length;
}

static VOID RtlpSetString(PUNICODE_STRING Destination, PCWSTR Source, SIZE_T Bytes)
{
    Destination->Length = (USHORT)Bytes;
    Destination->MaximumLength = (USHORT)(Bytes + sizeof(WCHAR));
    Destination->Buffer = (PWSTR)Source;
}

NTSTATUS RtlInitUnicodeStringEx(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    if (SourceString == NULL) {
        *DestinationString = (UNICODE_STRING){0};
        return STATUS_SUCCESS;
    }
    SIZE_T Bytes = RtlpWideLength(SourceString) * sizeof(WCHAR);
    if (Bytes + sizeof(WCHAR) > RTLP_LARGEST_UNICODE_STRING) {
        return STATUS_NAME_TOO_LONG;
    }
    RtlpSetString(DestinationString, SourceString, Bytes);
    return STATUS_SUCCESS;
}

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    if (!NT_SUCCESS(RtlInitUnicodeStringEx(DestinationString, SourceString))) {
        RtlpSetString(DestinationString, SourceString, RTLP_LARGEST_UNICODE_STRING - sizeof(WCHAR));
    }
}

static VOID RtlpSetNarrowString(PSTRING Destination, PCSZ Source, SIZE_T Length)
{
    Destination->Length = (USHORT)Length;
    Destination->MaximumLength = (USHORT)(Length + 1);
    Destination->Buffer = (PCHAR)Source;
}

NTSTATUS RtlInitStringEx(PSTRING DestinationString, PCSZ SourceString)
{
    if (SourceString == NULL) {
        *DestinationString = (STRING){0};
        return STATUS_SUCCESS;
    }
    SIZE_T Length = strlen(SourceString);
    if (Length + 1 > RTLP_LARGEST_STRING) {
        return STATUS_NAME_TOO_LONG;
    }
    RtlpSetNarrowString(DestinationString, SourceString, Length);
    return STATUS_SUCCESS;
}

VOID RtlInitString(PSTRING DestinationString, PCSZ SourceString)
{
    if (!NT_SUCCESS(RtlInitStringEx(DestinationString, SourceString))) {
        RtlpSetNarrowString(DestinationString, SourceString, RTLP_LARGEST_STRING - 1);
    }
}

VOID RtlInitAnsiString(PANSI_STRING DestinationString, PCSZ SourceString)
{
    RtlInitString(DestinationString, SourceString);
}

NTSTATUS RtlInitAnsiStringEx(PANSI_STRING DestinationString, PCSZ SourceString)
{
    return RtlInitStringEx(DestinationString, SourceString);
}

VOID RtlInitUTF8String(PUTF8_STRING DestinationString, PCSZ SourceString)
{
    RtlInitString(DestinationString, SourceString);
}

NTSTATUS RtlInitUTF8StringEx(PUTF8_STRING DestinationString, PCSZ SourceString)
{
    return RtlInitStringEx(DestinationString, SourceString);
}

NTSTATUS RtlValidateUnicodeString(ULONG Flags, PCUNICODE_STRING String)
{
    if (Flags != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (String != NULL &&
        (String->Length % sizeof(WCHAR) != 0 || String->MaximumLength % sizeof(WCHAR) != 0 ||
         String->Length > String->MaximumLength || (String->Buffer == NULL && String->MaximumLength != 0))) {
        return STATUS_INVALID_PARAMETER;
    }
    return STATUS_SUCCESS;
}

static USHORT RtlpShorter(USHORT First, USHORT Second)
{
    return First < Second ? First : Second;
}

VOID RtlCopyUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString)
{
    USHORT Length = 0;
    if (SourceString != NULL) {
        Length = RtlpShorter(SourceString->Length, DestinationString->MaximumLength);
        if (Length != 0) { /* an empty string may have no buffer */
            memmove(DestinationString->Buffer, SourceString->Buffer, Length);
        }
        if (Length + sizeof(WCHAR) <= DestinationString->MaximumLength) {
            DestinationString->Buffer[Length / sizeof(WCHAR)] = 0;
        }
    }
    DestinationString->Length = Length;
}

VOID RtlCopyString(PSTRING DestinationString, const STRING *SourceString)
{
    USHORT Length = 0;
    if (SourceString != NULL) {
        Length = RtlpShorter(SourceString->Length, DestinationString->MaximumLength);
        if (Length != 0) { /* an empty string may have no buffer */
            memmove(DestinationString->Buffer, SourceString->Buffer, Length);
        }
    }
    DestinationString->Length = Length;
}

static NTSTATUS RtlpAppendWide(PUNICODE_STRING Destination, PCWCH Source, SIZE_T Bytes)
{
    SIZE_T Length = Destination->Length + Bytes;
    if (Length > Destination->MaximumLength) {
        return STATUS_BUFFER_TOO_SMALL;
    }
    if (Bytes != 0) {
        memmove(&Destination->Buffer[Destination->Length / sizeof(WCHAR)], Source, Bytes);
        Destination->Length = (USHORT)Length;
        if (Length + sizeof(WCHAR) <= Destination->MaximumLength) {
            Destination->Buffer[Length / sizeof(WCHAR)] = 0;
        }
    }
    return STATUS_SUCCESS;
}

NTSTATUS RtlAppendUnicodeStringToString(PUNICODE_STRING Destination, PCUNICODE_STRING Source)
{
    return Source == NULL ? STATUS_SUCCESS : RtlpAppendWide(Destination, Source->Buffer, Source->Length);
}

NTSTATUS RtlAppendUnicodeToString(PUNICODE_STRING Destination, PCWSTR Source)
{
    return Source == NULL ? STATUS_SUCCESS
                          : RtlpAppendWide(Destination, Source, RtlpWideLength(Source) * sizeof(WCHAR));
}

static NTSTATUS RtlpAppendNarrow(PSTRING Destination, PCCH Source, SIZE_T Bytes)
{
    SIZE_T Length = Destination->Length + Bytes;
    if (Length > Destination->MaximumLength) {
        return STATUS_BUFFER_TOO_SMALL;
    }
    if (Bytes != 0) {
        memmove(&Destination->Buffer[Destination->Length], Source, Bytes);
        Destination->Length = (USHORT)Length;
    }
    return STATUS_SUCCESS;
}

NTSTATUS RtlAppendStringToString(PSTRING Destination, const STRING *Source)
{
    return Source == NULL ? STATUS_SUCCESS : RtlpAppendNarrow(Destination, Source->Buffer, Source->Length);
}

NTSTATUS RtlAppendAsciizToString(PSTRING Destination, PCSZ Source)
{
    return Source == NULL ? STATUS_SUCCESS : RtlpAppendNarrow(Destination, Source, strlen(Source));
}

BOOLEAN RtlCreateUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    SIZE_T Size = (RtlpWideLength(SourceString) + 1) * sizeof(WCHAR);
    if (Size > RTLP_LARGEST_UNICODE_STRING) {
        return FALSE;
    }
    PWSTR Copy = RtlpAllocateString(Size);
    if (Copy == NULL) {
        return FALSE;
    }
    memcpy(Copy, SourceString, Size);
    RtlpSetString(DestinationString, Copy, Size - sizeof(WCHAR));
    return TRUE;
}

NTSTATUS RtlDuplicateUnicodeString(ULONG Flags, PCUNICODE_STRING StringIn, PUNICODE_STRING StringOut)
{
    const ULONG Known =
        RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE | RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING;
    USHORT Length = StringIn != NULL ? StringIn->Length : 0;
    ULONG Size = Length + ((Flags & RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE) != 0 ? (ULONG)sizeof(WCHAR) : 0);
    if ((Flags & ~Known) != 0 || Flags == RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING || StringOut == NULL ||
        Length % sizeof(WCHAR) != 0 || (Length != 0 && StringIn->Buffer == NULL)) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Size > UNICODE_STRING_MAX_BYTES) {
        return STATUS_NAME_TOO_LONG;
    }
    if (Length == 0 && (Flags & RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING) == 0) {
        *StringOut = (UNICODE_STRING){0};
        return STATUS_SUCCESS;
    }
    PWSTR Copy = RtlpAllocateString(Size); /* zeroed, so terminated */
    if (Copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (Length != 0) {
        memcpy(Copy, StringIn->Buffer, Length);
    }
    *StringOut = (UNICODE_STRING){.Length = Length, .MaximumLength = (USHORT)Size, .Buffer = Copy};
    return STATUS_SUCCESS;
}

VOID RtlFreeUnicodeString(PUNICODE_STRING UnicodeString)
{
    RtlpFreeString(UnicodeString->Buffer);
    *UnicodeString = (UNICODE_STRING){0};
}

VOID RtlFreeAnsiString(PANSI_STRING AnsiString)
{
    RtlpFreeString(AnsiString->Buffer);
    *AnsiString = (ANSI_STRING){0};
}

VOID RtlFreeOemString(POEM_STRING OemString)
{
    RtlFreeAnsiString(OemString);
}

VOID RtlFreeUTF8String(PUTF8_STRING Utf8String)
{
    RtlFreeAnsiString(Utf8String);
}

LONG RtlCompareUnicodeStrings(PCWCH String1, SIZE_T String1Length, PCWCH String2, SIZE_T String2Length,
                              BOOLEAN CaseInSensitive)
{
    return ExpCompareStrings(String1, String1Length, String2, String2Length, CaseInSensitive);
}

LONG RtlCompareUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive)
{
    return ExpCompareStrings(String1->Buffer, String1->Length / sizeof(WCHAR), String2->Buffer,
                             String2->Length / sizeof(WCHAR), CaseInSensitive);
}

BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive)
{
    return String1->Length == String2->Length && RtlCompareUnicodeString(String1, String2, CaseInSensitive) == 0;
}

BOOLEAN RtlPrefixUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive)
{
    SIZE_T Length = String1->Length / sizeof(WCHAR);
    return String1->Length <= String2->Length &&
           ExpCompareStrings(String1->Buffer, Length, String2->Buffer, Length, CaseInSensitive) == 0;
}

CHAR RtlUpperChar(CHAR Character)
{
    return Character >= 'a' && Character <= 'z' ? (CHAR)(Character - ('a' - 'A')) : Character;
}

/* The common part of the strings: <0, 0, >0. */
static LONG RtlpCompareBytes(PCCH First, PCCH Second, SIZE_T Length, BOOLEAN CaseInSensitive)
{
    for (SIZE_T Index = 0; Index < Length; Index++) {
        UCHAR A = (UCHAR)(CaseInSensitive ? RtlUpperChar(First[Index]) : First[Index]);
        UCHAR B = (UCHAR)(CaseInSensitive ? RtlUpperChar(Second[Index]) : Second[Index]);
        if (A != B) {
            return (LONG)A - (LONG)B;
        }
    }
    return 0;
}

LONG RtlCompareString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive)
{
    USHORT Common = RtlpShorter(String1->Length, String2->Length);
    LONG Result = RtlpCompareBytes(String1->Buffer, String2->Buffer, Common, CaseInSensitive);
    return Result != 0 ? Result : (LONG)String1->Length - (LONG)String2->Length;
}

BOOLEAN RtlEqualString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive)
{
    return String1->Length == String2->Length && RtlCompareString(String1, String2, CaseInSensitive) == 0;
}

BOOLEAN RtlPrefixString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive)
{
    return String1->Length <= String2->Length &&
           RtlpCompareBytes(String1->Buffer, String2->Buffer, String1->Length, CaseInSensitive) == 0;
}

NTSTATUS RtlHashUnicodeString(PCUNICODE_STRING String, BOOLEAN CaseInSensitive, ULONG HashAlgorithm, PULONG HashValue)
{
    ULONG Hash = 0;
    if (String == NULL || HashValue == NULL ||
        (HashAlgorithm != HASH_STRING_ALGORITHM_DEFAULT && HashAlgorithm != HASH_STRING_ALGORITHM_X65599)) {
        return STATUS_INVALID_PARAMETER;
    }
    for (ULONG Index = 0; Index < String->Length / sizeof(WCHAR); Index++) {
        WCHAR Character = String->Buffer[Index];
        Hash = Hash * 65599 + (CaseInSensitive ? ExpUpcase(Character) : Character);
    }
    *HashValue = Hash;
    return STATUS_SUCCESS;
}

WCHAR RtlUpcaseUnicodeChar(WCHAR SourceCharacter)
{
    return ExpUpcase(SourceCharacter);
}

WCHAR RtlDowncaseUnicodeChar(WCHAR SourceCharacter)
{
    return ExpDowncase(SourceCharacter);
}

static NTSTATUS RtlpMapString(PUNICODE_STRING Destination, PCUNICODE_STRING Source, BOOLEAN Allocate,
                              WCHAR (*Map)(WCHAR))
{
    USHORT Length = Source->Length;
    if (Allocate) {
        /* A length of 0 is a valid string, but no valid size of a block. */
        PWSTR Buffer = RtlpAllocateString(Length != 0 ? Length : sizeof(WCHAR));
        if (Buffer == NULL) {
            return STATUS_NO_MEMORY;
        }
        Destination->Buffer = Buffer;
        Destination->MaximumLength = Length;
    } else if (Length > Destination->MaximumLength) {
        return STATUS_BUFFER_OVERFLOW;
    }
    for (ULONG Index = 0; Index < Length / sizeof(WCHAR); Index++) {
        Destination->Buffer[Index] = Map(Source->Buffer[Index]);
    }
    Destination->Length = Length;
    return STATUS_SUCCESS;
}

NTSTATUS RtlUpcaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
                                BOOLEAN AllocateDestinationString)
{
    return RtlpMapString(DestinationString, SourceString, AllocateDestinationString, ExpUpcase);
}

NTSTATUS RtlDowncaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
                                  BOOLEAN AllocateDestinationString)
{
    return RtlpMapString(DestinationString, SourceString, AllocateDestinationString, ExpDowncase);
}

VOID RtlUpperString(PSTRING DestinationString, const STRING *SourceString)
{
    USHORT Length = RtlpShorter(SourceString->Length, DestinationString->MaximumLength);
    for (ULONG Index = 0; Index < Length; Index++) {
        DestinationString->Buffer[Index] = RtlUpperChar(SourceString->Buffer[Index]);
    }
    DestinationString->Length = Length;
}

/* The formatter of ntstrsafe.h. */

static int RtlpFormattedLength(SIZE_T Length)
{
    return Length > INT_MAX ? -1 : (int)Length;
}

int InterlockFormatBytes(char *Buffer, size_t Count, const char *Format, va_list Arguments)
{
    return RtlpFormattedLength(ExpFormatNarrowString(Buffer, Count, Format, Arguments));
}

int InterlockFormatUnicode(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments)
{
    return RtlpFormattedLength(ExpFormatWideString(Buffer, Count, Format, Arguments));
}

int InterlockFormatUnterminated(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Count, .Wide = TRUE};
    ExpFormatWide(&Output, EXP_FORMAT_NT, Format, Arguments);
    return Output.Failed ? -1 : RtlpFormattedLength(Output.Length);
}
