/*
 * format.c: formatted text. A conversion is parsed into its parts, from a format of either kind, and its text is put
 * into an output of either kind. Integers are converted here; only floating point goes through the host's snprintf.
 */
#include "format.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

#define EXP_PIECE                  64   /* units that are converted at once between the kinds */
#define EXP_LONGEST_INTEGER        24   /* digits of 64 bits, in octal */
#define EXP_LONGEST_REAL           1024 /* characters of a floating-point number */
#define EXP_LONGEST_REAL_PRECISION 400
#define EXP_POINTER_DIGITS         16

typedef enum _EXP_SIZE {
    ExpSizeNone,
    ExpSizeChar,
    ExpSizeShort,
    ExpSizeLong,
    ExpSizeLongLong,
    ExpSizeInt32,
    ExpSizeLongDouble,
    ExpSizeWide
} EXP_SIZE;

typedef struct _EXP_CONVERSION {
    BOOLEAN Left;
    BOOLEAN Plus;
    BOOLEAN Space;
    BOOLEAN Alternate;
    BOOLEAN Zero;
    int Width;
    int Precision; /* -1: none */
    EXP_SIZE Size;
    WCHAR Type;
} EXP_CONVERSION, *PEXP_CONVERSION;

/* Where parsing stands. The list is in a structure, so that it can be passed by address. */
typedef struct _EXP_FORMAT {
    PCVOID At;
    BOOLEAN Wide;
    ULONG Flags;
    va_list Arguments;
} EXP_FORMAT, *PEXP_FORMAT;

static WCHAR ExpPeekFormat(const EXP_FORMAT *Format, SIZE_T Index)
{
    return Format->Wide ? ((PCWCH)Format->At)[Index] : ((const UCHAR *)Format->At)[Index];
}

static VOID ExpSkipFormat(PEXP_FORMAT Format, SIZE_T Count)
{
    Format->At = (PCCH)Format->At + Count * (Format->Wide ? sizeof(WCHAR) : sizeof(CHAR));
}

/* Output. */

static VOID ExpStoreNarrow(PEXP_OUTPUT Output, PCCH Text, SIZE_T Length)
{
    SIZE_T Left = Output->Length < Output->Room ? Output->Room - Output->Length : 0;
    if (Output->Write != NULL) {
        Output->Failed |= !Output->Write(Output->Context, Text, Length);
    } else if (Left != 0) {
        memcpy((PCHAR)Output->Buffer + Output->Length, Text, Length < Left ? Length : Left);
    }
    Output->Length += Length;
}

static VOID ExpStoreWide(PEXP_OUTPUT Output, PCWCH Text, SIZE_T Length)
{
    SIZE_T Left = Output->Length < Output->Room ? Output->Room - Output->Length : 0;
    if (Left != 0) {
        memcpy((PWCHAR)Output->Buffer + Output->Length, Text, (Length < Left ? Length : Left) * sizeof(WCHAR));
    }
    Output->Length += Length;
}

VOID ExpPutNarrow(PEXP_OUTPUT Output, PCCH Text, SIZE_T Length)
{
    WCHAR Wide[EXP_PIECE];
    if (!Output->Wide) {
        ExpStoreNarrow(Output, Text, Length);
        return;
    }
    while (Length != 0) {
        SIZE_T Piece = Length < EXP_PIECE ? Length : EXP_PIECE;
        /* Does not split a sequence: back up to the start of one that continues after the piece. */
        while (Piece < Length && Piece > EXP_PIECE - 4 && ((UCHAR)Text[Piece] & 0xC0) == 0x80) {
            Piece--;
        }
        ExpPutWide(Output, Wide, ExpUtf8ToWide(Text, Piece, Wide, EXP_PIECE, NULL));
        Text += Piece;
        Length -= Piece;
    }
}

VOID ExpPutWide(PEXP_OUTPUT Output, PCWCH Text, SIZE_T Length)
{
    CHAR Narrow[EXP_PIECE * 3];
    SIZE_T Counted = Output->Length + Length;
    if (Output->Wide && Output->Write == NULL) {
        ExpStoreWide(Output, Text, Length);
        return;
    }
    while (Length != 0) {
        SIZE_T Piece = Length < EXP_PIECE - 1 ? Length : EXP_PIECE - 1;
        Piece += Piece < Length && (Text[Piece - 1] & 0xFC00) == 0xD800; /* does not split a pair */
        ExpStoreNarrow(Output, Narrow, ExpWideToUtf8(Text, Piece, Narrow, sizeof(Narrow), NULL));
        Text += Piece;
        Length -= Piece;
    }
    Output->Length = Output->Wide ? Counted : Output->Length;
}

/* Count characters, those beyond the room only counted. */
static VOID ExpRepeat(PEXP_OUTPUT Output, CHAR Character, SIZE_T Count)
{
    for (; Count != 0 && (Output->Write != NULL || Output->Length < Output->Room); Count--) {
        ExpPutNarrow(Output, &Character, 1);
    }
    Output->Length += Count;
}

static VOID ExpPad(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, SIZE_T Length, BOOLEAN Left)
{
    if (Conversion->Left == Left && (SIZE_T)Conversion->Width > Length) {
        ExpRepeat(Output, ' ', (SIZE_T)Conversion->Width - Length);
    }
}

/* Strings and characters. */

/* Length is an upper bound: a string that is not counted ends with a zero. */
static SIZE_T ExpBoundedLength(PCVOID Text, BOOLEAN Wide, SIZE_T Bound)
{
    SIZE_T Length = 0;
    while (Length < Bound && (Wide ? ((PCWCH)Text)[Length] : (WCHAR)((PCCH)Text)[Length]) != 0) {
        Length++;
    }
    return Length;
}

static VOID ExpPutText(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, PCVOID Text, BOOLEAN Wide, SIZE_T Length)
{
    SIZE_T Units = Length;
    if (Wide && !Output->Wide) {
        Units = ExpWideToUtf8(Text, Length, NULL, 0, NULL);
    } else if (!Wide && Output->Wide) {
        Units = ExpUtf8ToWide(Text, Length, NULL, 0, NULL);
    }
    ExpPad(Output, Conversion, Units, FALSE);
    if (Wide) {
        ExpPutWide(Output, Text, Length);
    } else {
        ExpPutNarrow(Output, Text, Length);
    }
    ExpPad(Output, Conversion, Units, TRUE);
}

static SIZE_T ExpPrecisionOf(const EXP_CONVERSION *Conversion)
{
    return Conversion->Precision < 0 ? MAXSIZE_T : (SIZE_T)Conversion->Precision;
}

static VOID ExpPutString(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, PCVOID Text, BOOLEAN Wide)
{
    if (Text == NULL) {
        Text = "(null)";
        Wide = FALSE;
    }
    ExpPutText(Output, Conversion, Text, Wide, ExpBoundedLength(Text, Wide, ExpPrecisionOf(Conversion)));
}

static VOID ExpPutCountedString(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, PCVOID String, BOOLEAN Wide)
{
    /* STRING and UNICODE_STRING differ only in what Buffer points to; Length is in bytes. */
    const STRING *Counted = String;
    if (Counted == NULL || Counted->Buffer == NULL) {
        ExpPutString(Output, Conversion, NULL, FALSE);
    } else {
        SIZE_T Length = Wide ? Counted->Length / sizeof(WCHAR) : Counted->Length;
        SIZE_T Bound = ExpPrecisionOf(Conversion);
        ExpPutText(Output, Conversion, Counted->Buffer, Wide, Length < Bound ? Length : Bound);
    }
}

static VOID ExpPutCharacter(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, int Character, BOOLEAN Wide)
{
    WCHAR Unit = Wide ? (WCHAR)Character : (UCHAR)Character;
    CHAR Byte = (CHAR)Character;
    /* A byte that is not a character by itself is copied unchanged to byte text. */
    if (!Wide && !Output->Wide) {
        ExpPutText(Output, Conversion, &Byte, FALSE, 1);
    } else {
        ExpPutText(Output, Conversion, &Unit, TRUE, 1);
    }
}

/* Numbers. */

static LONGLONG ExpSignedArgument(EXP_SIZE Size, PEXP_FORMAT Format)
{
    switch (Size) {
    case ExpSizeChar:
        return (signed char)va_arg(Format->Arguments, int);
    case ExpSizeShort:
        return (short)va_arg(Format->Arguments, int);
    case ExpSizeLongLong:
        return va_arg(Format->Arguments, LONGLONG);
    default: /* l is 32 bits */
        return va_arg(Format->Arguments, int);
    }
}

static ULONGLONG ExpUnsignedArgument(EXP_SIZE Size, PEXP_FORMAT Format)
{
    ULONGLONG Value = (ULONGLONG)ExpSignedArgument(Size, Format);
    switch (Size) {
    case ExpSizeChar:
        return (UCHAR)Value;
    case ExpSizeShort:
        return (USHORT)Value;
    case ExpSizeLongLong:
        return Value;
    default:
        return (ULONG)Value;
    }
}

static VOID ExpPutInteger(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, ULONGLONG Value, PCSTR Prefix)
{
    PCSTR Figures = Conversion->Type == 'x' ? "0123456789abcdef" : "0123456789ABCDEF";
    ULONG Base = strchr("xXp", (char)Conversion->Type) != NULL ? 16 : Conversion->Type == 'o' ? 8 : 10;
    CHAR Digits[EXP_LONGEST_INTEGER];
    SIZE_T First = sizeof(Digits);
    SIZE_T Count, Zeros, Length;
    for (; Value != 0; Value /= Base) {
        Digits[--First] = Figures[Value % Base];
    }
    Count = sizeof(Digits) - First;
    Zeros = Conversion->Precision < 0               ? Count == 0
            : (SIZE_T)Conversion->Precision > Count ? Conversion->Precision - Count
                                                    : 0;
    if (Conversion->Type == 'o' && Conversion->Alternate && Zeros == 0) {
        Zeros = 1;
    }
    Length = strlen(Prefix) + Zeros + Count;
    if (Conversion->Zero && !Conversion->Left && Conversion->Precision < 0 && (SIZE_T)Conversion->Width > Length) {
        Zeros += (SIZE_T)Conversion->Width - Length;
        Length = (SIZE_T)Conversion->Width;
    }
    ExpPad(Output, Conversion, Length, FALSE);
    ExpPutNarrow(Output, Prefix, strlen(Prefix));
    ExpRepeat(Output, '0', Zeros);
    ExpPutNarrow(Output, Digits + First, Count);
    ExpPad(Output, Conversion, Length, TRUE);
}

static VOID ExpPutSigned(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, LONGLONG Value)
{
    PCSTR Sign = Value < 0 ? "-" : Conversion->Plus ? "+" : Conversion->Space ? " " : "";
    ExpPutInteger(Output, Conversion, Value < 0 ? 0 - (ULONGLONG)Value : (ULONGLONG)Value, Sign);
}

static VOID ExpPutUnsigned(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, ULONGLONG Value)
{
    BOOLEAN Marked = Conversion->Alternate && Value != 0;
    ExpPutInteger(Output, Conversion, Value,
                  !Marked                   ? ""
                  : Conversion->Type == 'x' ? "0x"
                  : Conversion->Type == 'X' ? "0X"
                                            : "");
}

static VOID ExpPutPointer(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, PCVOID Value)
{
    EXP_CONVERSION Pointer = *Conversion;
    Pointer.Precision = EXP_POINTER_DIGITS;
    ExpPutInteger(Output, &Pointer, (ULONG_PTR)Value, Conversion->Alternate ? "0X" : "");
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static VOID ExpPutReal(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, PEXP_FORMAT Format)
{
    CHAR Number[EXP_LONGEST_REAL];
    CHAR HostFormat[16];
    BOOLEAN Long = Conversion->Size == ExpSizeLongDouble;
    int Width = Conversion->Width < EXP_LONGEST_REAL_PRECISION ? Conversion->Width : EXP_LONGEST_REAL_PRECISION;
    int Precision =
        Conversion->Precision < EXP_LONGEST_REAL_PRECISION ? Conversion->Precision : EXP_LONGEST_REAL_PRECISION;
    int Length;
    snprintf(HostFormat, sizeof(HostFormat), "%%%s%s%s%s%s*.*%s%c", Conversion->Left ? "-" : "",
             Conversion->Plus ? "+" : "", Conversion->Space ? " " : "", Conversion->Alternate ? "#" : "",
             Conversion->Zero ? "0" : "", Long ? "L" : "", (char)Conversion->Type);
    if (Long) {
        Length = snprintf(Number, sizeof(Number), HostFormat, Width, Precision, va_arg(Format->Arguments, long double));
    } else {
        Length = snprintf(Number, sizeof(Number), HostFormat, Width, Precision, va_arg(Format->Arguments, double));
    }
    if (Length < 0 || Length >= (int)sizeof(Number)) {
        Output->Failed = TRUE;
    } else {
        ExpPutNarrow(Output, Number, (SIZE_T)Length);
    }
}
#pragma GCC diagnostic pop

/* Parsing. */

static int ExpReadNumber(PEXP_FORMAT Format)
{
    int Value = 0;
    if (ExpPeekFormat(Format, 0) == '*') {
        ExpSkipFormat(Format, 1);
        return va_arg(Format->Arguments, int);
    }
    while (ExpPeekFormat(Format, 0) >= '0' && ExpPeekFormat(Format, 0) <= '9') {
        int Digit = ExpPeekFormat(Format, 0) - '0';
        Value = Value < INT_MAX / 10 ? Value * 10 + Digit : INT_MAX - 1;
        ExpSkipFormat(Format, 1);
    }
    return Value;
}

static BOOLEAN ExpSkipWord(PEXP_FORMAT Format, PCSTR Word)
{
    SIZE_T i;
    for (i = 0; Word[i] != 0; i++) {
        if (ExpPeekFormat(Format, i) != (WCHAR)Word[i]) {
            return FALSE;
        }
    }
    ExpSkipFormat(Format, i);
    return TRUE;
}

static EXP_SIZE ExpReadSize(PEXP_FORMAT Format)
{
    static const struct {
        PCSTR Word;
        EXP_SIZE Size;
    } Sizes[] = {
        {"hh", ExpSizeChar},      {"h", ExpSizeShort},    {"ll", ExpSizeLongLong},  {"l", ExpSizeLong},
        {"I64", ExpSizeLongLong}, {"I32", ExpSizeInt32},  {"I", ExpSizeLongLong},   {"z", ExpSizeLongLong},
        {"t", ExpSizeLongLong},   {"j", ExpSizeLongLong}, {"L", ExpSizeLongDouble}, {"w", ExpSizeWide},
    };
    C_ASSERT(sizeof(PVOID) == sizeof(LONGLONG));
    SIZE_T i;
    for (i = 0; i < RTL_NUMBER_OF(Sizes); i++) {
        if (ExpSkipWord(Format, Sizes[i].Word)) {
            return Sizes[i].Size;
        }
    }
    return ExpSizeNone;
}

static BOOLEAN ExpReadFlag(PEXP_FORMAT Format, PEXP_CONVERSION Conversion)
{
    switch (ExpPeekFormat(Format, 0)) {
    case '-':
        Conversion->Left = TRUE;
        break;
    case '+':
        Conversion->Plus = TRUE;
        break;
    case ' ':
        Conversion->Space = TRUE;
        break;
    case '#':
        Conversion->Alternate = TRUE;
        break;
    case '0':
        Conversion->Zero = TRUE;
        break;
    default:
        return FALSE;
    }
    ExpSkipFormat(Format, 1);
    return TRUE;
}

static EXP_CONVERSION ExpReadConversion(PEXP_FORMAT Format)
{
    EXP_CONVERSION Conversion = {.Precision = -1};
    while (ExpReadFlag(Format, &Conversion)) {
    }
    Conversion.Width = ExpReadNumber(Format);
    if (Conversion.Width < 0) {
        Conversion.Left = TRUE;
        Conversion.Width = Conversion.Width == INT_MIN ? INT_MAX : -Conversion.Width;
    }
    if (ExpSkipWord(Format, ".")) {
        Conversion.Precision = ExpReadNumber(Format);
    }
    Conversion.Size = ExpReadSize(Format);
    Conversion.Type = ExpPeekFormat(Format, 0);
    ExpSkipFormat(Format, Conversion.Type != 0);
    return Conversion;
}

static BOOLEAN ExpIsWideArgument(const EXP_CONVERSION *Conversion, const EXP_FORMAT *Format)
{
    if (Conversion->Size == ExpSizeShort) {
        return FALSE;
    }
    if (Conversion->Size == ExpSizeLong || Conversion->Size == ExpSizeWide) {
        return TRUE;
    }
    if (Conversion->Type == 'Z') {
        return FALSE;
    }
    return Format->Wide != (Conversion->Type == 'S' || Conversion->Type == 'C');
}

static VOID ExpPutConversion(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, PEXP_FORMAT Format)
{
    BOOLEAN Wide = ExpIsWideArgument(Conversion, Format);
    switch (Conversion->Type) {
    case 'c':
    case 'C':
        ExpPutCharacter(Output, Conversion, va_arg(Format->Arguments, int), Wide);
        break;
    case 's':
    case 'S':
        ExpPutString(Output, Conversion, va_arg(Format->Arguments, PCVOID), Wide);
        break;
    case 'Z':
        ExpPutCountedString(Output, Conversion, va_arg(Format->Arguments, PCVOID), Wide);
        break;
    case 'd':
    case 'i':
        ExpPutSigned(Output, Conversion, ExpSignedArgument(Conversion->Size, Format));
        break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        ExpPutUnsigned(Output, Conversion, ExpUnsignedArgument(Conversion->Size, Format));
        break;
    case 'p':
        ExpPutPointer(Output, Conversion, va_arg(Format->Arguments, PCVOID));
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        ExpPutReal(Output, Conversion, Format);
        break;
    default:
        Output->Failed |= Conversion->Type != '%' && (Format->Flags & EXP_FORMAT_STRICT) != 0;
        if (Conversion->Type != 0 && !Output->Failed) {
            ExpPutWide(Output, &Conversion->Type, 1);
        }
        break;
    }
}

static VOID ExpFormat(PEXP_OUTPUT Output, PEXP_FORMAT Format)
{
    while (ExpPeekFormat(Format, 0) != 0 && !Output->Failed) {
        SIZE_T Plain = 0;
        while (ExpPeekFormat(Format, Plain) != 0 && ExpPeekFormat(Format, Plain) != '%') {
            Plain++;
        }
        if (Format->Wide) {
            ExpPutWide(Output, Format->At, Plain);
        } else {
            ExpPutNarrow(Output, Format->At, Plain);
        }
        ExpSkipFormat(Format, Plain);
        if (ExpSkipWord(Format, "%")) {
            EXP_CONVERSION Conversion = ExpReadConversion(Format);
            ExpPutConversion(Output, &Conversion, Format);
        }
    }
}

VOID ExpFormatNarrow(PEXP_OUTPUT Output, ULONG Flags, PCSTR Format, va_list Arguments)
{
    EXP_FORMAT Parsed = {.At = Format, .Wide = FALSE, .Flags = Flags};
    va_copy(Parsed.Arguments, Arguments);
    ExpFormat(Output, &Parsed);
    va_end(Parsed.Arguments);
}

VOID ExpFormatWide(PEXP_OUTPUT Output, ULONG Flags, PCWSTR Format, va_list Arguments)
{
    EXP_FORMAT Parsed = {.At = Format, .Wide = TRUE, .Flags = Flags};
    va_copy(Parsed.Arguments, Arguments);
    ExpFormat(Output, &Parsed);
    va_end(Parsed.Arguments);
}

SIZE_T ExpFormatNarrowString(PSTR Buffer, SIZE_T Room, PCSTR Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Room};
    ExpFormatNarrow(&Output, EXP_FORMAT_NT, Format, Arguments);
    if (Room != 0) {
        Buffer[Output.Length < Room ? Output.Length : Room - 1] = 0;
    }
    return Output.Failed ? MAXSIZE_T : Output.Length;
}

SIZE_T ExpFormatWideString(PWSTR Buffer, SIZE_T Room, PCWSTR Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Room, .Wide = TRUE};
    ExpFormatWide(&Output, EXP_FORMAT_NT, Format, Arguments);
    if (Room != 0) {
        Buffer[Output.Length < Room ? Output.Length : Room - 1] = 0;
    }
    return Output.Failed ? MAXSIZE_T : Output.Length;
}
