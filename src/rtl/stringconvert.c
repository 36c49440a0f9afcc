/*
 * stringconvert.c: strings of bytes to and from 16-bit characters. The ANSI and OEM code pages are UTF-8, so every name here
 * stands for one of two conversions (ex/utf8.h), with different statuses.
 */
#include "rtlstringp.h"

#include "../ex/upcase.h"
#include "../ex/utf8.h"

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
