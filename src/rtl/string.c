/*
 * string.c: counted strings: building and comparing them, converting them, numbers in them. They compare as the names of
 * objects do (ex/text.h).
 */
#include <interlock/ex.h>
#include <interlock/rtl.h>

#include "../ex/text.h"

#include <limits.h>

/* The longest UNICODE_STRING with a terminator, in bytes with it. */
#define RTLP_LARGEST_UNICODE_STRING 0xFFFEu
#define RTLP_LARGEST_STRING 0xFFFFu
#define RTLP_STRING_TAG 0x67727453u /* "Strg" */

/* Memory of the size for the buffer of a string, zeroed; NULL if there is none. */
static PVOID RtlpAllocateString(SIZE_T Size)
{
    return ExAllocatePool2(POOL_FLAG_PAGED, Size, RTLP_STRING_TAG);
}

static VOID RtlpFreeString(PVOID Buffer)
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

/*
 * Strings of bytes to and from 16-bit characters. The ANSI and OEM code pages are UTF-8, so every name here
 * stands for one of two conversions (ex/text.h), with different statuses.
 */

#define RTLP_PIECE 64
#define RTLP_NEVER_WIDE 0xD800 /* the last unit of a buffer is never the first half of a pair */
#define RTLP_NEVER_NARROW 0xFF /* never occurs in UTF-8 */

/* Converts and returns the size of the whole result, in units; with Room 0 it only measures. */
typedef struct _RTLP_CONVERSION {
    SIZE_T Needed;
    SIZE_T Stored; /* whole characters that fit */
    BOOLEAN Invalid;
} RTLP_CONVERSION;

/* An empty string may have no buffer. */
static SIZE_T RtlpStoreWide(PCCH Source, SIZE_T Length, PWCH Target, SIZE_T Room, PBOOLEAN Invalid)
{
    return Length != 0 ? ExpUtf8ToWide(Source, Length, Target, Room, Invalid) : 0;
}

static RTLP_CONVERSION RtlpToWide(PCCH Source, SIZE_T Length, PWCH Target, SIZE_T Room)
{
    RTLP_CONVERSION Result = {0};
    Result.Needed = RtlpStoreWide(Source, Length, NULL, 0, &Result.Invalid);
    Result.Stored = Result.Needed;
    if (Result.Needed > Room) {
        Result.Stored = Room;
        if (Room != 0) {
            Target[Room - 1] = RTLP_NEVER_WIDE;
        }
    }
    if (Room != 0) {
        RtlpStoreWide(Source, Length, Target, Room, NULL);
    }
    if (Result.Stored != 0 && Result.Needed > Room && Target[Room - 1] == RTLP_NEVER_WIDE) {
        Result.Stored--;
    }
    return Result;
}

/* Converts in pieces, so that the upper case can be taken on the way. */
static SIZE_T RtlpStoreNarrow(PCWCH Source, SIZE_T Length, PCHAR Target, SIZE_T Room, BOOLEAN Upcase, PBOOLEAN Invalid)
{
    WCHAR Piece[RTLP_PIECE];
    SIZE_T Used = 0;
    while (Length != 0) {
        SIZE_T Count = 0;
        /* A pair is not split: a first half at the end of the piece waits for the next one. */
        while (Count < Length && Count < RTLP_PIECE &&
               (Count != RTLP_PIECE - 1 || (Source[Count] & 0xFC00) != 0xD800)) {
            Piece[Count] = Upcase ? ExpUpcase(Source[Count]) : Source[Count];
            Count++;
        }
        Used += ExpWideToUtf8(Piece, Count, Used < Room ? Target + Used : NULL, Used < Room ? Room - Used : 0, Invalid);
        Source += Count;
        Length -= Count;
    }
    return Used;
}

static RTLP_CONVERSION RtlpToNarrow(PCWCH Source, SIZE_T Length, PCHAR Target, SIZE_T Room, BOOLEAN Upcase)
{
    RTLP_CONVERSION Result = {0};
    Result.Needed = RtlpStoreNarrow(Source, Length, NULL, 0, Upcase, &Result.Invalid);
    Result.Stored = Result.Needed;
    if (Result.Needed > Room) {
        SIZE_T Marked = Room < 3 ? Room : 3; /* at most three bytes of a character that does not fit */
        Result.Stored = Room;
        if (Marked != 0) {
            memset(Target + Room - Marked, RTLP_NEVER_NARROW, Marked);
        }
    }
    if (Room != 0) {
        RtlpStoreNarrow(Source, Length, Target, Room, Upcase, NULL);
    }
    while (Result.Needed > Room && Result.Stored != 0 && (UCHAR)Target[Result.Stored - 1] == RTLP_NEVER_NARROW) {
        Result.Stored--;
    }
    return Result;
}

/* Provides the buffer of a converted string of this size; Length is set whenever the size allows it. */
static NTSTATUS RtlpPrepareNarrow(PSTRING Destination, SIZE_T Length, SIZE_T Terminator, BOOLEAN Allocate)
{
    if (Length + Terminator > RTLP_LARGEST_STRING) {
        return STATUS_INVALID_PARAMETER_2;
    }
    if (Allocate) {
        PCHAR Buffer = RtlpAllocateString(Length + Terminator);
        if (Buffer == NULL) {
            return STATUS_NO_MEMORY;
        }
        Destination->Buffer = Buffer;
        Destination->MaximumLength = (USHORT)(Length + Terminator);
    }
    Destination->Length = (USHORT)Length;
    return Length + Terminator > Destination->MaximumLength ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

#define RTLP_UPCASE 1u
#define RTLP_COUNTED 2u
#define RTLP_REFUSE_INVALID 4u

static NTSTATUS RtlpConvertToNarrow(PSTRING Destination, PCUNICODE_STRING Source, BOOLEAN Allocate, ULONG Kind)
{
    SIZE_T Units = Source->Length / sizeof(WCHAR);
    SIZE_T Terminator = (Kind & RTLP_COUNTED) != 0 ? 0 : 1;
    BOOLEAN Upcase = (Kind & RTLP_UPCASE) != 0;
    RTLP_CONVERSION Measured = RtlpToNarrow(Source->Buffer, Units, NULL, 0, Upcase);
    if (Measured.Invalid && (Kind & RTLP_REFUSE_INVALID) != 0) {
        return STATUS_UNMAPPABLE_CHARACTER;
    }
    if (Measured.Needed + Terminator == 0) {
        *Destination = Allocate ? (STRING){0} : (STRING){0, Destination->MaximumLength, Destination->Buffer};
        return STATUS_SUCCESS;
    }
    NTSTATUS Status = RtlpPrepareNarrow(Destination, Measured.Needed, Terminator, Allocate);
    if (Status != STATUS_SUCCESS) {
        return Status;
    }
    RtlpStoreNarrow(Source->Buffer, Units, Destination->Buffer, Measured.Needed, Upcase, NULL);
    if (Terminator != 0) {
        Destination->Buffer[Measured.Needed] = 0;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS RtlpConvertToWide(PUNICODE_STRING Destination, const STRING *Source, BOOLEAN Allocate, ULONG Kind)
{
    SIZE_T Units = RtlpToWide(Source->Buffer, Source->Length, NULL, 0).Needed;
    SIZE_T Size = (Units + ((Kind & RTLP_COUNTED) != 0 ? 0 : 1)) * sizeof(WCHAR);
    if (Size > RTLP_LARGEST_UNICODE_STRING) {
        return STATUS_INVALID_PARAMETER_2;
    }
    if (Size == 0) {
        *Destination = Allocate ? (UNICODE_STRING){0}
                                : (UNICODE_STRING){0, Destination->MaximumLength, Destination->Buffer};
        return STATUS_SUCCESS;
    }
    if (Allocate) {
        PWSTR Buffer = RtlpAllocateString(Size);
        if (Buffer == NULL) {
            return STATUS_NO_MEMORY;
        }
        Destination->Buffer = Buffer;
        Destination->MaximumLength = (USHORT)Size;
    }
    Destination->Length = (USHORT)(Units * sizeof(WCHAR));
    if (Size > Destination->MaximumLength) {
        return STATUS_BUFFER_OVERFLOW;
    }
    RtlpStoreWide(Source->Buffer, Source->Length, Destination->Buffer, Units, NULL);
    if (Size > Destination->Length) {
        Destination->Buffer[Units] = 0;
    }
    return STATUS_SUCCESS;
}

NTSTATUS RtlAnsiStringToUnicodeString(PUNICODE_STRING DestinationString, PCANSI_STRING SourceString,
                                      BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToWide(DestinationString, SourceString, AllocateDestinationString, 0);
}

NTSTATUS RtlOemStringToUnicodeString(PUNICODE_STRING DestinationString, PCOEM_STRING SourceString,
                                     BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToWide(DestinationString, SourceString, AllocateDestinationString, 0);
}

NTSTATUS RtlUTF8StringToUnicodeString(PUNICODE_STRING DestinationString, PCUTF8_STRING SourceString,
                                      BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToWide(DestinationString, SourceString, AllocateDestinationString, 0);
}

NTSTATUS RtlOemStringToCountedUnicodeString(PUNICODE_STRING DestinationString, PCOEM_STRING SourceString,
                                            BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToWide(DestinationString, SourceString, AllocateDestinationString, RTLP_COUNTED);
}

NTSTATUS RtlUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
                                      BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToNarrow(DestinationString, SourceString, AllocateDestinationString, 0);
}

NTSTATUS RtlUpcaseUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
                                            BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToNarrow(DestinationString, SourceString, AllocateDestinationString, RTLP_UPCASE);
}

NTSTATUS RtlUnicodeStringToUTF8String(PUTF8_STRING DestinationString, PCUNICODE_STRING SourceString,
                                      BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToNarrow(DestinationString, SourceString, AllocateDestinationString, 0);
}

NTSTATUS RtlUnicodeStringToOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                     BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToNarrow(DestinationString, SourceString, AllocateDestinationString, RTLP_REFUSE_INVALID);
}

NTSTATUS RtlUpcaseUnicodeStringToOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                           BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToNarrow(DestinationString, SourceString, AllocateDestinationString,
                               RTLP_REFUSE_INVALID | RTLP_UPCASE);
}

NTSTATUS RtlUnicodeStringToCountedOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                            BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToNarrow(DestinationString, SourceString, AllocateDestinationString,
                               RTLP_REFUSE_INVALID | RTLP_COUNTED);
}

NTSTATUS RtlUpcaseUnicodeStringToCountedOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                  BOOLEAN AllocateDestinationString)
{
    return RtlpConvertToNarrow(DestinationString, SourceString, AllocateDestinationString,
                               RTLP_REFUSE_INVALID | RTLP_COUNTED | RTLP_UPCASE);
}

ULONG RtlxAnsiStringToUnicodeSize(PCANSI_STRING AnsiString)
{
    return (ULONG)((RtlpToWide(AnsiString->Buffer, AnsiString->Length, NULL, 0).Needed + 1) * sizeof(WCHAR));
}

ULONG RtlxOemStringToUnicodeSize(PCOEM_STRING OemString)
{
    return RtlxAnsiStringToUnicodeSize(OemString);
}

ULONG RtlxUnicodeStringToAnsiSize(PCUNICODE_STRING UnicodeString)
{
    return (ULONG)(RtlpToNarrow(UnicodeString->Buffer, UnicodeString->Length / sizeof(WCHAR), NULL, 0, FALSE).Needed + 1);
}

ULONG RtlxUnicodeStringToOemSize(PCUNICODE_STRING UnicodeString)
{
    return RtlxUnicodeStringToAnsiSize(UnicodeString);
}

static NTSTATUS RtlpTruncated(const RTLP_CONVERSION *Result)
{
    return Result->Stored < Result->Needed ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

NTSTATUS RtlOemToUnicodeN(PWCH UnicodeString, ULONG MaxBytesInUnicodeString, PULONG BytesInUnicodeString, PCCH OemString,
                          ULONG BytesInOemString)
{
    RTLP_CONVERSION Result =
        RtlpToWide(OemString, BytesInOemString, UnicodeString, MaxBytesInUnicodeString / sizeof(WCHAR));
    if (BytesInUnicodeString != NULL) {
        *BytesInUnicodeString = (ULONG)(Result.Stored * sizeof(WCHAR));
    }
    return RtlpTruncated(&Result);
}

NTSTATUS RtlMultiByteToUnicodeN(PWCH UnicodeString, ULONG MaxBytesInUnicodeString, PULONG BytesInUnicodeString,
                                const CHAR *MultiByteString, ULONG BytesInMultiByteString)
{
    RtlOemToUnicodeN(UnicodeString, MaxBytesInUnicodeString, BytesInUnicodeString, MultiByteString,
                     BytesInMultiByteString);
    return STATUS_SUCCESS;
}

static NTSTATUS RtlpToNarrowN(PCHAR Target, ULONG Room, PULONG Stored, PCWCH Source, ULONG Bytes, BOOLEAN Upcase)
{
    RTLP_CONVERSION Result = RtlpToNarrow(Source, Bytes / sizeof(WCHAR), Target, Room, Upcase);
    if (Stored != NULL) {
        *Stored = (ULONG)Result.Stored;
    }
    return RtlpTruncated(&Result);
}

NTSTATUS RtlUnicodeToOemN(PCHAR OemString, ULONG MaxBytesInOemString, PULONG BytesInOemString, PCWCH UnicodeString,
                          ULONG BytesInUnicodeString)
{
    return RtlpToNarrowN(OemString, MaxBytesInOemString, BytesInOemString, UnicodeString, BytesInUnicodeString, FALSE);
}

NTSTATUS RtlUpcaseUnicodeToOemN(PCHAR OemString, ULONG MaxBytesInOemString, PULONG BytesInOemString,
                                PCWCH UnicodeString, ULONG BytesInUnicodeString)
{
    return RtlpToNarrowN(OemString, MaxBytesInOemString, BytesInOemString, UnicodeString, BytesInUnicodeString, TRUE);
}

NTSTATUS RtlUnicodeToMultiByteN(PCHAR MultiByteString, ULONG MaxBytesInMultiByteString, PULONG BytesInMultiByteString,
                                PCWCH UnicodeString, ULONG BytesInUnicodeString)
{
    RtlpToNarrowN(MultiByteString, MaxBytesInMultiByteString, BytesInMultiByteString, UnicodeString,
                  BytesInUnicodeString, FALSE);
    return STATUS_SUCCESS;
}

NTSTATUS RtlUpcaseUnicodeToMultiByteN(PCHAR MultiByteString, ULONG MaxBytesInMultiByteString,
                                      PULONG BytesInMultiByteString, PCWCH UnicodeString, ULONG BytesInUnicodeString)
{
    RtlpToNarrowN(MultiByteString, MaxBytesInMultiByteString, BytesInMultiByteString, UnicodeString,
                  BytesInUnicodeString, TRUE);
    return STATUS_SUCCESS;
}

NTSTATUS RtlMultiByteToUnicodeSize(PULONG BytesInUnicodeString, const CHAR *MultiByteString,
                                   ULONG BytesInMultiByteString)
{
    *BytesInUnicodeString = (ULONG)(RtlpToWide(MultiByteString, BytesInMultiByteString, NULL, 0).Needed * sizeof(WCHAR));
    return STATUS_SUCCESS;
}

NTSTATUS RtlUnicodeToMultiByteSize(PULONG BytesInMultiByteString, PCWCH UnicodeString, ULONG BytesInUnicodeString)
{
    *BytesInMultiByteString =
        (ULONG)RtlpToNarrow(UnicodeString, BytesInUnicodeString / sizeof(WCHAR), NULL, 0, FALSE).Needed;
    return STATUS_SUCCESS;
}

static NTSTATUS RtlpCheckUtf8(PCVOID Target, PULONG Actual, PCVOID Source)
{
    if (Source == NULL) {
        return STATUS_INVALID_PARAMETER_4;
    }
    return Target == NULL && Actual == NULL ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

static NTSTATUS RtlpFinishUtf8(const RTLP_CONVERSION *Result, PCVOID Target, PULONG Actual, ULONG Unit)
{
    if (Actual != NULL) {
        *Actual = (ULONG)((Target != NULL ? Result->Stored : Result->Needed) * Unit);
    }
    if (Target != NULL && Result->Stored < Result->Needed) {
        return STATUS_BUFFER_TOO_SMALL;
    }
    return Result->Invalid ? STATUS_SOME_NOT_MAPPED : STATUS_SUCCESS;
}

NTSTATUS RtlUTF8ToUnicodeN(PWSTR UnicodeStringDestination, ULONG UnicodeStringMaxByteCount,
                           PULONG UnicodeStringActualByteCount, PCCH UTF8StringSource, ULONG UTF8StringByteCount)
{
    RTLP_CONVERSION Result;
    NTSTATUS Status = RtlpCheckUtf8(UnicodeStringDestination, UnicodeStringActualByteCount, UTF8StringSource);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Result = RtlpToWide(UTF8StringSource, UTF8StringByteCount, UnicodeStringDestination,
                        UnicodeStringDestination != NULL ? UnicodeStringMaxByteCount / sizeof(WCHAR) : 0);
    return RtlpFinishUtf8(&Result, UnicodeStringDestination, UnicodeStringActualByteCount, sizeof(WCHAR));
}

NTSTATUS RtlUnicodeToUTF8N(PCHAR UTF8StringDestination, ULONG UTF8StringMaxByteCount, PULONG UTF8StringActualByteCount,
                           PCWCH UnicodeStringSource, ULONG UnicodeStringByteCount)
{
    RTLP_CONVERSION Result;
    NTSTATUS Status = RtlpCheckUtf8(UTF8StringDestination, UTF8StringActualByteCount, UnicodeStringSource);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (UnicodeStringByteCount % sizeof(WCHAR) != 0) {
        return STATUS_INVALID_PARAMETER_5;
    }
    Result = RtlpToNarrow(UnicodeStringSource, UnicodeStringByteCount / sizeof(WCHAR), UTF8StringDestination,
                          UTF8StringDestination != NULL ? UTF8StringMaxByteCount : 0, FALSE);
    return RtlpFinishUtf8(&Result, UTF8StringDestination, UTF8StringActualByteCount, sizeof(CHAR));
}

/* Numbers and GUIDs to and from strings. */

#define RTLP_MOST_DIGITS 64 /* of a 64-bit number in base 2 */
#define RTLP_GUID_LENGTH 38 /* with the braces */

static BOOLEAN RtlpIsBase(ULONG Base)
{
    return Base == 2 || Base == 8 || Base == 10 || Base == 16;
}

/* The digits, in upper case, at the end of a buffer of RTLP_MOST_DIGITS. Returns how many there are; 0: bad base. */
static ULONG RtlpFormatDigits(ULONGLONG Value, ULONG Base, CHAR Digits[RTLP_MOST_DIGITS])
{
    ULONG Count = 0;
    Base = Base == 0 ? 10 : Base;
    if (!RtlpIsBase(Base)) {
        return 0;
    }
    do {
        Digits[RTLP_MOST_DIGITS - ++Count] = "0123456789ABCDEF"[Value % Base];
        Value /= Base;
    } while (Value != 0);
    return Count;
}

NTSTATUS RtlInt64ToUnicodeString(ULONGLONG Value, ULONG Base, PUNICODE_STRING String)
{
    CHAR Digits[RTLP_MOST_DIGITS];
    ULONG Count = RtlpFormatDigits(Value, Base, Digits);
    if (Count == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    String->Length = (USHORT)(Count * sizeof(WCHAR));
    if (String->Length + sizeof(WCHAR) > String->MaximumLength) {
        return STATUS_BUFFER_OVERFLOW;
    }
    for (ULONG Index = 0; Index < Count; Index++) {
        String->Buffer[Index] = (WCHAR)Digits[RTLP_MOST_DIGITS - Count + Index];
    }
    String->Buffer[Count] = 0;
    return STATUS_SUCCESS;
}

NTSTATUS RtlIntegerToUnicodeString(ULONG Value, ULONG Base, PUNICODE_STRING String)
{
    return RtlInt64ToUnicodeString(Value, Base, String);
}

NTSTATUS RtlIntegerToChar(ULONG Value, ULONG Base, ULONG OutputLength, PSTR String)
{
    CHAR Digits[RTLP_MOST_DIGITS];
    ULONG Count = RtlpFormatDigits(Value, Base, Digits);
    if (Count == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Count > OutputLength) {
        return STATUS_BUFFER_OVERFLOW;
    }
    if (String == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    memcpy(String, &Digits[RTLP_MOST_DIGITS - Count], Count);
    if (Count < OutputLength) {
        String[Count] = 0;
    }
    return STATUS_SUCCESS;
}

/* A string of either kind of characters, as a number is read from it. */
typedef struct _RTLP_READER {
    PCWCH Wide;
    PCCH Narrow;
    SIZE_T Left; /* characters; a terminator ends a narrow string before */
} RTLP_READER, *PRTLP_READER;

/* The next character; 0 at the end. */
static ULONG RtlpPeek(const RTLP_READER *Reader)
{
    if (Reader->Left == 0) {
        return 0;
    }
    return Reader->Wide != NULL ? *Reader->Wide : (UCHAR)*Reader->Narrow;
}

static VOID RtlpSkip(PRTLP_READER Reader)
{
    Reader->Left--;
    if (Reader->Wide != NULL) {
        Reader->Wide++;
    } else {
        Reader->Narrow++;
    }
}

static BOOLEAN RtlpSkipIf(PRTLP_READER Reader, ULONG Character)
{
    if (RtlpPeek(Reader) != Character) {
        return FALSE;
    }
    RtlpSkip(Reader);
    return TRUE;
}

/* Base 0: the base that a prefix names, which is skipped. */
static ULONG RtlpReadBase(PRTLP_READER Reader)
{
    RTLP_READER Ahead = *Reader;
    ULONG Base = 10;
    if (RtlpSkipIf(&Ahead, '0')) {
        Base = RtlpSkipIf(&Ahead, 'x') ? 16 : RtlpSkipIf(&Ahead, 'o') ? 8 : RtlpSkipIf(&Ahead, 'b') ? 2 : 10;
    }
    if (Base != 10) {
        *Reader = Ahead;
    }
    return Base;
}

static ULONG RtlpDigit(ULONG Character)
{
    if (Character >= '0' && Character <= '9') {
        return Character - '0';
    }
    if (Character >= 'a' && Character <= 'f') {
        return Character - 'a' + 10;
    }
    return Character >= 'A' && Character <= 'F' ? Character - 'A' + 10 : MAXULONG;
}

static NTSTATUS RtlpReadNumber(PRTLP_READER Reader, ULONG Base, PULONGLONG Value)
{
    BOOLEAN Negative;
    if (Base != 0 && !RtlpIsBase(Base)) {
        return STATUS_INVALID_PARAMETER;
    }
    while (RtlpPeek(Reader) != 0 && RtlpPeek(Reader) <= ' ') {
        RtlpSkip(Reader);
    }
    Negative = RtlpSkipIf(Reader, '-');
    if (!Negative) {
        RtlpSkipIf(Reader, '+');
    }
    Base = Base == 0 ? RtlpReadBase(Reader) : Base;
    *Value = 0;
    for (ULONG Digit; (Digit = RtlpDigit(RtlpPeek(Reader))) < Base; RtlpSkip(Reader)) {
        *Value = *Value * Base + Digit;
    }
    *Value = Negative ? 0 - *Value : *Value;
    return STATUS_SUCCESS;
}

NTSTATUS RtlUnicodeStringToInt64(PCUNICODE_STRING String, ULONG Base, PLONG64 Number, PWSTR *EndPointer)
{
    RTLP_READER Reader = {.Wide = String->Buffer, .Left = String->Length / sizeof(WCHAR)};
    ULONGLONG Value;
    NTSTATUS Status = Reader.Left == 0 ? STATUS_INVALID_PARAMETER : RtlpReadNumber(&Reader, Base, &Value);
    if (NT_SUCCESS(Status)) {
        *Number = (LONG64)Value;
        if (EndPointer != NULL) {
            *EndPointer = (PWSTR)Reader.Wide;
        }
    }
    return Status;
}

NTSTATUS RtlUnicodeStringToInteger(PCUNICODE_STRING String, ULONG Base, PULONG Value)
{
    LONG64 Number;
    NTSTATUS Status = RtlUnicodeStringToInt64(String, Base, &Number, NULL);
    if (NT_SUCCESS(Status) && Value == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (NT_SUCCESS(Status)) {
        *Value = (ULONG)Number;
    }
    return Status;
}

NTSTATUS RtlCharToInteger(PCSZ String, ULONG Base, PULONG Value)
{
    RTLP_READER Reader = {.Narrow = String, .Left = MAXSIZE_T};
    ULONGLONG Number;
    NTSTATUS Status = RtlpReadNumber(&Reader, Base, &Number);
    if (NT_SUCCESS(Status) && Value == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (NT_SUCCESS(Status)) {
        *Value = (ULONG)Number;
    }
    return Status;
}

/* How a GUID is written: x is a digit; the bytes of the first three members come highest first. */
static const CHAR RtlpGuidForm[RTLP_GUID_LENGTH + 1] = "{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}";
static const UCHAR RtlpGuidOrder[sizeof(GUID)] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

NTSTATUS RtlGUIDFromString(PCUNICODE_STRING GuidString, GUID *Guid)
{
    UCHAR Bytes[sizeof(GUID)] = {0};
    ULONG Digits = 0;
    if (GuidString->Length < RTLP_GUID_LENGTH * sizeof(WCHAR)) {
        return STATUS_INVALID_PARAMETER;
    }
    for (ULONG Index = 0; Index < RTLP_GUID_LENGTH; Index++) {
        WCHAR Character = GuidString->Buffer[Index];
        if (RtlpGuidForm[Index] != 'x') {
            if (Character != (WCHAR)RtlpGuidForm[Index]) {
                return STATUS_INVALID_PARAMETER;
            }
            continue;
        }
        ULONG Digit = RtlpDigit(Character);
        if (Digit >= 16) {
            return STATUS_INVALID_PARAMETER;
        }
        PUCHAR Byte = &Bytes[RtlpGuidOrder[Digits++ / 2]];
        *Byte = (UCHAR)(*Byte << 4 | Digit);
    }
    memcpy(Guid, Bytes, sizeof(GUID));
    return STATUS_SUCCESS;
}

NTSTATUS RtlStringFromGUID(const GUID *Guid, PUNICODE_STRING GuidString)
{
    const UCHAR *Bytes = (const UCHAR *)Guid;
    ULONG Digits = 0;
    PWSTR Text = RtlpAllocateString((RTLP_GUID_LENGTH + 1) * sizeof(WCHAR));
    if (Text == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (ULONG Index = 0; Index < RTLP_GUID_LENGTH; Index++) {
        if (RtlpGuidForm[Index] != 'x') {
            Text[Index] = (WCHAR)RtlpGuidForm[Index];
        } else {
            UCHAR Byte = Bytes[RtlpGuidOrder[Digits / 2]];
            Text[Index] = (WCHAR) "0123456789ABCDEF"[Digits++ % 2 == 0 ? Byte >> 4 : Byte & 0xF];
        }
    }
    *GuidString = (UNICODE_STRING){RTLP_GUID_LENGTH * sizeof(WCHAR), (RTLP_GUID_LENGTH + 1) * sizeof(WCHAR), Text};
    return STATUS_SUCCESS;
}
