/* stringnumber.c: numbers and GUIDs to and from strings. */
#include "rtlstringp.h"

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

static ULONGLONG RtlpReadDigits(PRTLP_READER Reader, ULONG Base)
{
    ULONGLONG Value = 0;
    for (ULONG Digit; (Digit = RtlpDigit(RtlpPeek(Reader))) < Base; RtlpSkip(Reader)) {
        Value = Value * Base + Digit;
    }
    return Value;
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
    *Value = RtlpReadDigits(Reader, Base == 0 ? RtlpReadBase(Reader) : Base);
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
