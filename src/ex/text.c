/*
 * text.c: narrow and wide text: formatting, converting one to the other, upper and lower case.
 *
 * Formatting: a conversion is parsed into its parts, from a format of either kind, and its text is put into an output
 * of either kind. Integers are converted here; only floating point goes through the host's snprintf.
 */
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

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

VOID ExpPutNarrow(PEXP_OUTPUT Output, PCCH Text, SIZE_T Length)
{
    WCHAR Wide[EXP_PIECE];
    if (!Output->Wide) {
        ExpStoreNarrow(Output, Text, Length);
        return;
    }
    while (Length != 0) {
        SIZE_T Piece = Length < EXP_PIECE ? Length : EXP_PIECE;
        /* Never splits a UTF-8 sequence: if one continues after the piece, the piece ends before it. */
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
        SIZE_T Left = Output->Length < Output->Room ? Output->Room - Output->Length : 0;
        if (Left != 0) {
            memcpy((PWCHAR)Output->Buffer + Output->Length, Text, (Length < Left ? Length : Left) * sizeof(WCHAR));
        }
        Output->Length = Counted;
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
    SIZE_T Bound = ExpPrecisionOf(Conversion);
    SIZE_T Length = 0;
    while (Length < Bound && (Wide ? ((PCWCH)Text)[Length] : (WCHAR)((PCCH)Text)[Length]) != 0) {
        Length++;
    }
    ExpPutText(Output, Conversion, Text, Wide, Length);
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

/* d, i, u, o, x, X and p. */
static VOID ExpPutNumber(PEXP_OUTPUT Output, const EXP_CONVERSION *Conversion, PEXP_FORMAT Format)
{
    EXP_CONVERSION Adjusted = *Conversion;
    LONGLONG Value;
    PCSTR Prefix = "";
    if (Conversion->Type == 'p') {
        Adjusted.Precision = EXP_POINTER_DIGITS;
        Value = (LONGLONG)(ULONG_PTR)va_arg(Format->Arguments, PCVOID);
        Prefix = Conversion->Alternate ? "0X" : "";
    } else if (Conversion->Type == 'd' || Conversion->Type == 'i') {
        Value = ExpSignedArgument(Conversion->Size, Format);
        Prefix = Value < 0 ? "-" : Conversion->Plus ? "+" : Conversion->Space ? " " : "";
        Value = Value < 0 ? (LONGLONG)(0 - (ULONGLONG)Value) : Value;
    } else {
        Value = ExpSignedArgument(Conversion->Size, Format);
        Value = Conversion->Size == ExpSizeChar       ? (UCHAR)Value
                : Conversion->Size == ExpSizeShort    ? (USHORT)Value
                : Conversion->Size == ExpSizeLongLong ? Value
                                                      : (ULONG)Value;
        if (Conversion->Alternate && Value != 0) {
            Prefix = Conversion->Type == 'x' ? "0x" : Conversion->Type == 'X' ? "0X" : "";
        }
    }
    ExpPutInteger(Output, &Adjusted, (ULONGLONG)Value, Prefix);
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
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'p':
        ExpPutNumber(Output, Conversion, Format);
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

/* UTF-8 and UTF-16. */

#define EXP_REPLACEMENT   0xFFFDu
#define EXP_LAST_ONE_UNIT 0xFFFFu

static ULONG ExpReplace(PBOOLEAN Invalid)
{
    if (Invalid != NULL) {
        *Invalid = TRUE;
    }
    return EXP_REPLACEMENT;
}

/* The number of continuation bytes, and the bounds of the next one; -1: no character begins with Lead. */
static LONG ExpLeadByte(UCHAR Lead, PUCHAR Low, PUCHAR High)
{
    *Low = Lead == 0xE0 ? 0xA0 : Lead == 0xF0 ? 0x90 : 0x80;
    *High = Lead == 0xED ? 0x9F : Lead == 0xF4 ? 0x8F : 0xBF;
    if (Lead < 0x80) {
        return 0;
    }
    if (Lead >= 0xC2 && Lead <= 0xDF) {
        return 1;
    }
    if (Lead >= 0xE0 && Lead <= 0xEF) {
        return 2;
    }
    return Lead >= 0xF0 && Lead <= 0xF4 ? 3 : -1;
}

static ULONG ExpNextUtf8(const UCHAR **Source, const UCHAR *End, PBOOLEAN Invalid)
{
    UCHAR Low, High;
    UCHAR Lead = *(*Source)++;
    LONG More = ExpLeadByte(Lead, &Low, &High);
    ULONG Character;
    if (More < 0) {
        return ExpReplace(Invalid);
    }
    Character = More == 0 ? Lead : Lead & (0x3F >> More);
    for (; More > 0; More--) {
        if (*Source == End || **Source < Low || **Source > High) {
            return ExpReplace(Invalid);
        }
        Character = Character << 6 | (*(*Source)++ & 0x3F);
        Low = 0x80;
        High = 0xBF;
    }
    return Character;
}

static ULONG ExpNextWide(PCWCH *Source, PCWCH End, PBOOLEAN Invalid)
{
    ULONG Unit = *(*Source)++;
    if ((Unit & 0xF800) != 0xD800) {
        return Unit;
    }
    if (Unit < 0xDC00 && *Source != End && (**Source & 0xFC00) == 0xDC00) {
        return 0x10000 + ((Unit & 0x3FF) << 10) + (*(*Source)++ & 0x3FF);
    }
    return ExpReplace(Invalid);
}

SIZE_T ExpUtf8ToWide(PCCH Source, SIZE_T Length, PWCH Target, SIZE_T Room, PBOOLEAN Invalid)
{
    const UCHAR *At = (const UCHAR *)Source;
    const UCHAR *End = At + Length;
    SIZE_T Used = 0;
    while (At != End) {
        ULONG Character = ExpNextUtf8(&At, End, Invalid);
        SIZE_T Units = Character > EXP_LAST_ONE_UNIT ? 2 : 1;
        if (Used + Units <= Room && Units == 1) {
            Target[Used] = (WCHAR)Character;
        } else if (Used + Units <= Room) {
            Target[Used] = (WCHAR)(0xD7C0 + (Character >> 10));
            Target[Used + 1] = (WCHAR)(0xDC00 + (Character & 0x3FF));
        }
        Used += Units;
    }
    return Used;
}

SIZE_T ExpWideToUtf8(PCWCH Source, SIZE_T Length, PCHAR Target, SIZE_T Room, PBOOLEAN Invalid)
{
    static const UCHAR Marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    PCWCH End = Source + Length;
    SIZE_T Used = 0;
    while (Source != End) {
        ULONG Character = ExpNextWide(&Source, End, Invalid);
        SIZE_T Bytes = Character < 0x80 ? 1 : Character < 0x800 ? 2 : Character <= EXP_LAST_ONE_UNIT ? 3 : 4;
        if (Used + Bytes <= Room) {
            for (SIZE_T Index = Bytes - 1; Index > 0; Index--) {
                Target[Used + Index] = (CHAR)(0x80 | (Character & 0x3F));
                Character >>= 6;
            }
            Target[Used] = (CHAR)(Marks[Bytes] | Character);
        }
        Used += Bytes;
    }
    return Used;
}

/* The upper and lower case of characters, from tables of ranges. */

typedef struct _EXP_CASE_RANGE {
    USHORT First;
    USHORT Last;
    USHORT Step; /* 2: every other character of the range has the wanted case already */
    LONG Delta;
} EXP_CASE_RANGE;

static const EXP_CASE_RANGE ExpLowerRanges[] = {
    {0x00E0, 0x00F6, 1, -32}, {0x00F8, 0x00FE, 1, -32}, {0x00FF, 0x00FF, 1, 121}, {0x0101, 0x012F, 2, -1},
    {0x0133, 0x0137, 2, -1}, {0x013A, 0x0148, 2, -1}, {0x014B, 0x0177, 2, -1}, {0x017A, 0x017E, 2, -1},
    {0x0180, 0x0180, 1, 195}, {0x0183, 0x0185, 2, -1}, {0x0188, 0x0188, 1, -1}, {0x018C, 0x018C, 1, -1},
    {0x0192, 0x0192, 1, -1}, {0x0195, 0x0195, 1, 97}, {0x0199, 0x0199, 1, -1}, {0x019A, 0x019A, 1, 163},
    {0x019E, 0x019E, 1, 130}, {0x01A1, 0x01A5, 2, -1}, {0x01A8, 0x01A8, 1, -1}, {0x01AD, 0x01AD, 1, -1},
    {0x01B0, 0x01B0, 1, -1}, {0x01B4, 0x01B6, 2, -1}, {0x01B9, 0x01B9, 1, -1}, {0x01BD, 0x01BD, 1, -1},
    {0x01BF, 0x01BF, 1, 56}, {0x01C5, 0x01C5, 1, -1}, {0x01C6, 0x01C6, 1, -2}, {0x01C8, 0x01C8, 1, -1},
    {0x01C9, 0x01C9, 1, -2}, {0x01CB, 0x01CB, 1, -1}, {0x01CC, 0x01CC, 1, -2}, {0x01CE, 0x01DC, 2, -1},
    {0x01DD, 0x01DD, 1, -79}, {0x01DF, 0x01EF, 2, -1}, {0x01F2, 0x01F2, 1, -1}, {0x01F3, 0x01F3, 1, -2},
    {0x01F5, 0x01F5, 1, -1}, {0x01F9, 0x021F, 2, -1}, {0x0223, 0x0233, 2, -1}, {0x023C, 0x023C, 1, -1},
    {0x023F, 0x0240, 1, 10815}, {0x0242, 0x0242, 1, -1}, {0x0247, 0x024F, 2, -1}, {0x0250, 0x0250, 1, 10783},
    {0x0251, 0x0251, 1, 10780}, {0x0252, 0x0252, 1, 10782}, {0x0253, 0x0253, 1, -210}, {0x0254, 0x0254, 1, -206},
    {0x0256, 0x0257, 1, -205}, {0x0259, 0x0259, 1, -202}, {0x025B, 0x025B, 1, -203}, {0x025C, 0x025C, 1, 42319},
    {0x0260, 0x0260, 1, -205}, {0x0261, 0x0261, 1, 42315}, {0x0263, 0x0263, 1, -207}, {0x0265, 0x0265, 1, 42280},
    {0x0266, 0x0266, 1, 42308}, {0x0268, 0x0268, 1, -209}, {0x0269, 0x0269, 1, -211}, {0x026A, 0x026A, 1, 42308},
    {0x026B, 0x026B, 1, 10743}, {0x026C, 0x026C, 1, 42305}, {0x026F, 0x026F, 1, -211}, {0x0271, 0x0271, 1, 10749},
    {0x0272, 0x0272, 1, -213}, {0x0275, 0x0275, 1, -214}, {0x027D, 0x027D, 1, 10727}, {0x0280, 0x0280, 1, -218},
    {0x0282, 0x0282, 1, 42307}, {0x0283, 0x0283, 1, -218}, {0x0287, 0x0287, 1, 42282}, {0x0288, 0x0288, 1, -218},
    {0x0289, 0x0289, 1, -69}, {0x028A, 0x028B, 1, -217}, {0x028C, 0x028C, 1, -71}, {0x0292, 0x0292, 1, -219},
    {0x029D, 0x029D, 1, 42261}, {0x029E, 0x029E, 1, 42258}, {0x0345, 0x0345, 1, 84}, {0x0371, 0x0373, 2, -1},
    {0x0377, 0x0377, 1, -1}, {0x037B, 0x037D, 1, 130}, {0x03AC, 0x03AC, 1, -38}, {0x03AD, 0x03AF, 1, -37},
    {0x03B1, 0x03C1, 1, -32}, {0x03C2, 0x03C2, 1, -31}, {0x03C3, 0x03CB, 1, -32}, {0x03CC, 0x03CC, 1, -64},
    {0x03CD, 0x03CE, 1, -63}, {0x03D0, 0x03D0, 1, -62}, {0x03D1, 0x03D1, 1, -57}, {0x03D5, 0x03D5, 1, -47},
    {0x03D6, 0x03D6, 1, -54}, {0x03D7, 0x03D7, 1, -8}, {0x03D9, 0x03EF, 2, -1}, {0x03F0, 0x03F0, 1, -86},
    {0x03F1, 0x03F1, 1, -80}, {0x03F2, 0x03F2, 1, 7}, {0x03F3, 0x03F3, 1, -116}, {0x03F5, 0x03F5, 1, -96},
    {0x03F8, 0x03F8, 1, -1}, {0x03FB, 0x03FB, 1, -1}, {0x0430, 0x044F, 1, -32}, {0x0450, 0x045F, 1, -80},
    {0x0461, 0x0481, 2, -1}, {0x048B, 0x04BF, 2, -1}, {0x04C2, 0x04CE, 2, -1}, {0x04CF, 0x04CF, 1, -15},
    {0x04D1, 0x052F, 2, -1}, {0x0561, 0x0586, 1, -48}, {0x10D0, 0x10FA, 1, 3008}, {0x10FD, 0x10FF, 1, 3008},
    {0x13F8, 0x13FD, 1, -8}, {0x1C80, 0x1C80, 1, -6254}, {0x1C81, 0x1C81, 1, -6253}, {0x1C82, 0x1C82, 1, -6244},
    {0x1C83, 0x1C84, 1, -6242}, {0x1C85, 0x1C85, 1, -6243}, {0x1C86, 0x1C86, 1, -6236}, {0x1C87, 0x1C87, 1, -6181},
    {0x1C88, 0x1C88, 1, 35266}, {0x1D79, 0x1D79, 1, 35332}, {0x1D7D, 0x1D7D, 1, 3814}, {0x1D8E, 0x1D8E, 1, 35384},
    {0x1E01, 0x1E95, 2, -1}, {0x1E9B, 0x1E9B, 1, -59}, {0x1EA1, 0x1EFF, 2, -1}, {0x1F00, 0x1F07, 1, 8},
    {0x1F10, 0x1F15, 1, 8}, {0x1F20, 0x1F27, 1, 8}, {0x1F30, 0x1F37, 1, 8}, {0x1F40, 0x1F45, 1, 8},
    {0x1F51, 0x1F57, 2, 8}, {0x1F60, 0x1F67, 1, 8}, {0x1F70, 0x1F71, 1, 74}, {0x1F72, 0x1F75, 1, 86},
    {0x1F76, 0x1F77, 1, 100}, {0x1F78, 0x1F79, 1, 128}, {0x1F7A, 0x1F7B, 1, 112}, {0x1F7C, 0x1F7D, 1, 126},
    {0x1F80, 0x1F87, 1, 8}, {0x1F90, 0x1F97, 1, 8}, {0x1FA0, 0x1FA7, 1, 8}, {0x1FB0, 0x1FB1, 1, 8},
    {0x1FB3, 0x1FB3, 1, 9}, {0x1FBE, 0x1FBE, 1, -7205}, {0x1FC3, 0x1FC3, 1, 9}, {0x1FD0, 0x1FD1, 1, 8},
    {0x1FE0, 0x1FE1, 1, 8}, {0x1FE5, 0x1FE5, 1, 7}, {0x1FF3, 0x1FF3, 1, 9}, {0x214E, 0x214E, 1, -28},
    {0x2170, 0x217F, 1, -16}, {0x2184, 0x2184, 1, -1}, {0x24D0, 0x24E9, 1, -26}, {0x2C30, 0x2C5F, 1, -48},
    {0x2C61, 0x2C61, 1, -1}, {0x2C65, 0x2C65, 1, -10795}, {0x2C66, 0x2C66, 1, -10792}, {0x2C68, 0x2C6C, 2, -1},
    {0x2C73, 0x2C73, 1, -1}, {0x2C76, 0x2C76, 1, -1}, {0x2C81, 0x2CE3, 2, -1}, {0x2CEC, 0x2CEE, 2, -1},
    {0x2CF3, 0x2CF3, 1, -1}, {0x2D00, 0x2D25, 1, -7264}, {0x2D27, 0x2D27, 1, -7264}, {0x2D2D, 0x2D2D, 1, -7264},
    {0xA641, 0xA66D, 2, -1}, {0xA681, 0xA69B, 2, -1}, {0xA723, 0xA72F, 2, -1}, {0xA733, 0xA76F, 2, -1},
    {0xA77A, 0xA77C, 2, -1}, {0xA77F, 0xA787, 2, -1}, {0xA78C, 0xA78C, 1, -1}, {0xA791, 0xA793, 2, -1},
    {0xA794, 0xA794, 1, 48}, {0xA797, 0xA7A9, 2, -1}, {0xA7B5, 0xA7C3, 2, -1}, {0xA7C8, 0xA7CA, 2, -1},
    {0xA7D1, 0xA7D1, 1, -1}, {0xA7D7, 0xA7D9, 2, -1}, {0xA7F6, 0xA7F6, 1, -1}, {0xAB53, 0xAB53, 1, -928},
    {0xAB70, 0xABBF, 1, -38864}, {0xFF41, 0xFF5A, 1, -32},
};

static const EXP_CASE_RANGE ExpUpperRanges[] = {
    {0x00C0, 0x00D6, 1, 32}, {0x00D8, 0x00DE, 1, 32}, {0x0100, 0x012E, 2, 1}, {0x0132, 0x0136, 2, 1},
    {0x0139, 0x0147, 2, 1}, {0x014A, 0x0176, 2, 1}, {0x0178, 0x0178, 1, -121}, {0x0179, 0x017D, 2, 1},
    {0x0181, 0x0181, 1, 210}, {0x0182, 0x0184, 2, 1}, {0x0186, 0x0186, 1, 206}, {0x0187, 0x0187, 1, 1},
    {0x0189, 0x018A, 1, 205}, {0x018B, 0x018B, 1, 1}, {0x018E, 0x018E, 1, 79}, {0x018F, 0x018F, 1, 202},
    {0x0190, 0x0190, 1, 203}, {0x0191, 0x0191, 1, 1}, {0x0193, 0x0193, 1, 205}, {0x0194, 0x0194, 1, 207},
    {0x0196, 0x0196, 1, 211}, {0x0197, 0x0197, 1, 209}, {0x0198, 0x0198, 1, 1}, {0x019C, 0x019C, 1, 211},
    {0x019D, 0x019D, 1, 213}, {0x019F, 0x019F, 1, 214}, {0x01A0, 0x01A4, 2, 1}, {0x01A6, 0x01A6, 1, 218},
    {0x01A7, 0x01A7, 1, 1}, {0x01A9, 0x01A9, 1, 218}, {0x01AC, 0x01AC, 1, 1}, {0x01AE, 0x01AE, 1, 218},
    {0x01AF, 0x01AF, 1, 1}, {0x01B1, 0x01B2, 1, 217}, {0x01B3, 0x01B5, 2, 1}, {0x01B7, 0x01B7, 1, 219},
    {0x01B8, 0x01B8, 1, 1}, {0x01BC, 0x01BC, 1, 1}, {0x01C4, 0x01C4, 1, 2}, {0x01C7, 0x01C7, 1, 2},
    {0x01CA, 0x01CA, 1, 2}, {0x01CD, 0x01DB, 2, 1}, {0x01DE, 0x01EE, 2, 1}, {0x01F1, 0x01F1, 1, 2},
    {0x01F4, 0x01F4, 1, 1}, {0x01F6, 0x01F6, 1, -97}, {0x01F7, 0x01F7, 1, -56}, {0x01F8, 0x021E, 2, 1},
    {0x0220, 0x0220, 1, -130}, {0x0222, 0x0232, 2, 1}, {0x023A, 0x023A, 1, 10795}, {0x023B, 0x023B, 1, 1},
    {0x023D, 0x023D, 1, -163}, {0x023E, 0x023E, 1, 10792}, {0x0241, 0x0241, 1, 1}, {0x0243, 0x0243, 1, -195},
    {0x0244, 0x0244, 1, 69}, {0x0245, 0x0245, 1, 71}, {0x0246, 0x024E, 2, 1}, {0x0370, 0x0372, 2, 1},
    {0x0376, 0x0376, 1, 1}, {0x037F, 0x037F, 1, 116}, {0x0386, 0x0386, 1, 38}, {0x0388, 0x038A, 1, 37},
    {0x038C, 0x038C, 1, 64}, {0x038E, 0x038F, 1, 63}, {0x0391, 0x03A1, 1, 32}, {0x03A3, 0x03AB, 1, 32},
    {0x03CF, 0x03CF, 1, 8}, {0x03D8, 0x03EE, 2, 1}, {0x03F7, 0x03F7, 1, 1}, {0x03F9, 0x03F9, 1, -7},
    {0x03FA, 0x03FA, 1, 1}, {0x03FD, 0x03FF, 1, -130}, {0x0400, 0x040F, 1, 80}, {0x0410, 0x042F, 1, 32},
    {0x0460, 0x0480, 2, 1}, {0x048A, 0x04BE, 2, 1}, {0x04C0, 0x04C0, 1, 15}, {0x04C1, 0x04CD, 2, 1},
    {0x04D0, 0x052E, 2, 1}, {0x0531, 0x0556, 1, 48}, {0x10A0, 0x10C5, 1, 7264}, {0x10C7, 0x10C7, 1, 7264},
    {0x10CD, 0x10CD, 1, 7264}, {0x13A0, 0x13EF, 1, 38864}, {0x13F0, 0x13F5, 1, 8}, {0x1C90, 0x1CBA, 1, -3008},
    {0x1CBD, 0x1CBF, 1, -3008}, {0x1E00, 0x1E94, 2, 1}, {0x1EA0, 0x1EFE, 2, 1}, {0x1F08, 0x1F0F, 1, -8},
    {0x1F18, 0x1F1D, 1, -8}, {0x1F28, 0x1F2F, 1, -8}, {0x1F38, 0x1F3F, 1, -8}, {0x1F48, 0x1F4D, 1, -8},
    {0x1F59, 0x1F5F, 2, -8}, {0x1F68, 0x1F6F, 1, -8}, {0x1F88, 0x1F8F, 1, -8}, {0x1F98, 0x1F9F, 1, -8},
    {0x1FA8, 0x1FAF, 1, -8}, {0x1FB8, 0x1FB9, 1, -8}, {0x1FBA, 0x1FBB, 1, -74}, {0x1FBC, 0x1FBC, 1, -9},
    {0x1FC8, 0x1FCB, 1, -86}, {0x1FCC, 0x1FCC, 1, -9}, {0x1FD8, 0x1FD9, 1, -8}, {0x1FDA, 0x1FDB, 1, -100},
    {0x1FE8, 0x1FE9, 1, -8}, {0x1FEA, 0x1FEB, 1, -112}, {0x1FEC, 0x1FEC, 1, -7}, {0x1FF8, 0x1FF9, 1, -128},
    {0x1FFA, 0x1FFB, 1, -126}, {0x1FFC, 0x1FFC, 1, -9}, {0x2132, 0x2132, 1, 28}, {0x2160, 0x216F, 1, 16},
    {0x2183, 0x2183, 1, 1}, {0x24B6, 0x24CF, 1, 26}, {0x2C00, 0x2C2F, 1, 48}, {0x2C60, 0x2C60, 1, 1},
    {0x2C62, 0x2C62, 1, -10743}, {0x2C63, 0x2C63, 1, -3814}, {0x2C64, 0x2C64, 1, -10727}, {0x2C67, 0x2C6B, 2, 1},
    {0x2C6D, 0x2C6D, 1, -10780}, {0x2C6E, 0x2C6E, 1, -10749}, {0x2C6F, 0x2C6F, 1, -10783},
    {0x2C70, 0x2C70, 1, -10782}, {0x2C72, 0x2C72, 1, 1}, {0x2C75, 0x2C75, 1, 1}, {0x2C7E, 0x2C7F, 1, -10815},
    {0x2C80, 0x2CE2, 2, 1}, {0x2CEB, 0x2CED, 2, 1}, {0x2CF2, 0x2CF2, 1, 1}, {0xA640, 0xA66C, 2, 1},
    {0xA680, 0xA69A, 2, 1}, {0xA722, 0xA72E, 2, 1}, {0xA732, 0xA76E, 2, 1}, {0xA779, 0xA77B, 2, 1},
    {0xA77D, 0xA77D, 1, -35332}, {0xA77E, 0xA786, 2, 1}, {0xA78B, 0xA78B, 1, 1}, {0xA78D, 0xA78D, 1, -42280},
    {0xA790, 0xA792, 2, 1}, {0xA796, 0xA7A8, 2, 1}, {0xA7AA, 0xA7AA, 1, -42308}, {0xA7AB, 0xA7AB, 1, -42319},
    {0xA7AC, 0xA7AC, 1, -42315}, {0xA7AD, 0xA7AD, 1, -42305}, {0xA7AE, 0xA7AE, 1, -42308},
    {0xA7B0, 0xA7B0, 1, -42258}, {0xA7B1, 0xA7B1, 1, -42282}, {0xA7B2, 0xA7B2, 1, -42261}, {0xA7B3, 0xA7B3, 1, 928},
    {0xA7B4, 0xA7C2, 2, 1}, {0xA7C4, 0xA7C4, 1, -48}, {0xA7C5, 0xA7C5, 1, -42307}, {0xA7C6, 0xA7C6, 1, -35384},
    {0xA7C7, 0xA7C9, 2, 1}, {0xA7D0, 0xA7D0, 1, 1}, {0xA7D6, 0xA7D8, 2, 1}, {0xA7F5, 0xA7F5, 1, 1},
    {0xFF21, 0xFF3A, 1, 32},
};

/* Maps a character by the last range that begins at or below it. */
static WCHAR ExpMapCase(const EXP_CASE_RANGE *Ranges, ULONG Count, WCHAR Character)
{
    ULONG Low = 0;
    while (Count - Low > 1) {
        ULONG Middle = (Low + Count) / 2;
        if (Ranges[Middle].First <= Character) {
            Low = Middle;
        } else {
            Count = Middle;
        }
    }
    const EXP_CASE_RANGE *Range = &Ranges[Low];
    if (Character < Range->First || Character > Range->Last || (Character - Range->First) % Range->Step != 0) {
        return Character;
    }
    return (WCHAR)(Character + Range->Delta);
}

WCHAR ExpUpcase(WCHAR Character)
{
    if (Character < ExpLowerRanges[0].First) {
        return Character >= 'a' && Character <= 'z' ? (WCHAR)(Character - ('a' - 'A')) : Character;
    }
    return ExpMapCase(ExpLowerRanges, RTL_NUMBER_OF(ExpLowerRanges), Character);
}

WCHAR ExpDowncase(WCHAR Character)
{
    if (Character < ExpUpperRanges[0].First) {
        return Character >= 'A' && Character <= 'Z' ? (WCHAR)(Character + ('a' - 'A')) : Character;
    }
    return ExpMapCase(ExpUpperRanges, RTL_NUMBER_OF(ExpUpperRanges), Character);
}

LONG ExpCompareStrings(PCWCH First, SIZE_T FirstLength, PCWCH Second, SIZE_T SecondLength, BOOLEAN CaseInsensitive)
{
    SIZE_T Common = FirstLength < SecondLength ? FirstLength : SecondLength;
    for (SIZE_T Index = 0; Index < Common; Index++) {
        WCHAR A = First[Index];
        WCHAR B = Second[Index];
        if (A != B && CaseInsensitive) {
            A = ExpUpcase(A);
            B = ExpUpcase(B);
        }
        if (A != B) {
            return (LONG)A - (LONG)B;
        }
    }
    return FirstLength < SecondLength ? -1 : FirstLength > SecondLength;
}
