/*
 * widefmt.c: formatted output of 16-bit strings. A conversion is parsed into its parts; strings and characters are
 * written here, numbers by the host's snprintf with a narrow copy of the conversion.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <interlock/win32/base.h>

#include "base.h"

#define BASE_LONGEST_CONVERSION 32
#define BASE_LONGEST_PRECISION 400 /* of a number: more digits than any number has */
#define BASE_LONGEST_NUMBER 1024
#define BASE_PIECE 64

/* The text is counted in full and stored as far as there is room. */
typedef struct _BASE_OUTPUT {
    WCHAR *Buffer;
    size_t Room;
    size_t Length;
    FILE *Stream; /* or to this stream, in UTF-8 */
    BOOLEAN Failed;
} BASE_OUTPUT, *PBASE_OUTPUT;

typedef enum _BASE_SIZE {
    BaseSizeNone,
    BaseSizeChar,
    BaseSizeShort,
    BaseSizeLong,
    BaseSizeLongLong,
    BaseSizePointer,
    BaseSizeInt32,
    BaseSizeLongDouble,
    BaseSizeWide
} BASE_SIZE;

typedef struct _BASE_CONVERSION {
    CHAR Flags[8];
    int Width;
    int Precision; /* -1: none */
    BASE_SIZE Size;
    WCHAR Type;
} BASE_CONVERSION, *PBASE_CONVERSION;

/* Wraps va_list, so that it can be passed by address. */
typedef struct _BASE_ARGUMENTS {
    va_list List;
} BASE_ARGUMENTS, *PBASE_ARGUMENTS;

static VOID BasePutWide(PBASE_OUTPUT Output, const WCHAR *Text, size_t Length)
{
    size_t i;
    CHAR Narrow[BASE_PIECE * 3];
    for (i = 0; Output->Stream == NULL && i < Length; i++) {
        if (Output->Length + i < Output->Room) {
            Output->Buffer[Output->Length + i] = Text[i];
        }
    }
    Output->Length += Length;
    while (Output->Stream != NULL && Length != 0) {
        size_t Piece = Length < BASE_PIECE - 1 ? Length : BASE_PIECE - 1;
        size_t Bytes;
        Piece += Piece < Length && (Text[Piece - 1] & 0xFC00) == 0xD800;
        Bytes = ExpWideToUtf8(Text, Piece, Narrow, sizeof(Narrow), NULL);
        Output->Failed |= fwrite(Narrow, 1, Bytes, Output->Stream) != Bytes;
        Text += Piece;
        Length -= Piece;
    }
}

static VOID BasePutNarrow(PBASE_OUTPUT Output, PCSTR Text, size_t Bytes)
{
    WCHAR Wide[BASE_PIECE];
    while (Bytes != 0) {
        size_t Piece = Bytes < BASE_PIECE ? Bytes : BASE_PIECE;
        /* Does not split a sequence: back up to the start of one that continues after the piece. */
        while (Piece < Bytes && Piece > BASE_PIECE - 4 && ((UCHAR)Text[Piece] & 0xC0) == 0x80) {
            Piece--;
        }
        BasePutWide(Output, Wide, ExpUtf8ToWide(Text, Piece, Wide, BASE_PIECE, NULL));
        Text += Piece;
        Bytes -= Piece;
    }
}

static VOID BasePad(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, size_t Length, BOOLEAN Left)
{
    static const WCHAR Space = ' ';
    size_t Count = (size_t)Conversion->Width > Length ? (size_t)Conversion->Width - Length : 0;
    if ((strchr(Conversion->Flags, '-') != NULL) != Left) {
        return;
    }
    for (; Count != 0 && (Output->Stream != NULL || Output->Length < Output->Room); Count--) {
        BasePutWide(Output, &Space, 1);
    }
    Output->Length += Count;
}

static BOOLEAN BaseIsNarrow(const BASE_CONVERSION *Conversion)
{
    BOOLEAN Capital = Conversion->Type == 'S' || Conversion->Type == 'C';
    return Conversion->Size == BaseSizeShort || (Capital && Conversion->Size == BaseSizeNone);
}

static VOID BasePutWideString(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, const WCHAR *Text)
{
    static const WCHAR Nothing[] = u"(null)";
    size_t Length;
    Text = Text != NULL ? Text : Nothing;
    Length = InterlockWcsnlen(Text, Conversion->Precision < 0 ? MAXSIZE_T : (size_t)Conversion->Precision);
    BasePad(Output, Conversion, Length, FALSE);
    BasePutWide(Output, Text, Length);
    BasePad(Output, Conversion, Length, TRUE);
}

static VOID BasePutNarrowString(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, PCSTR Text)
{
    size_t Bytes, Length;
    Text = Text != NULL ? Text : "(null)";
    Bytes = strnlen(Text, Conversion->Precision < 0 ? MAXSIZE_T : (size_t)Conversion->Precision);
    Length = ExpUtf8ToWide(Text, Bytes, NULL, 0, NULL);
    BasePad(Output, Conversion, Length, FALSE);
    BasePutNarrow(Output, Text, Bytes);
    BasePad(Output, Conversion, Length, TRUE);
}

static LONGLONG BaseSignedArgument(BASE_SIZE Size, PBASE_ARGUMENTS Arguments)
{
    switch (Size) {
    case BaseSizeChar:
        return (signed char)va_arg(Arguments->List, int);
    case BaseSizeShort:
        return (short)va_arg(Arguments->List, int);
    case BaseSizeLong:
        return va_arg(Arguments->List, long);
    case BaseSizeLongLong:
    case BaseSizePointer:
        return va_arg(Arguments->List, LONGLONG);
    default:
        return va_arg(Arguments->List, int);
    }
}

static ULONGLONG BaseUnsignedArgument(BASE_SIZE Size, PBASE_ARGUMENTS Arguments)
{
    ULONGLONG Value = (ULONGLONG)BaseSignedArgument(Size, Arguments);
    switch (Size) {
    case BaseSizeChar:
        return (UCHAR)Value;
    case BaseSizeShort:
        return (USHORT)Value;
    case BaseSizeLong:
    case BaseSizeLongLong:
    case BaseSizePointer:
        return Value;
    default:
        return (UINT)Value;
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* The narrow conversion takes width and precision as arguments, and the argument widened here. */
static int BaseFormatNumber(CHAR *Number, const BASE_CONVERSION *Conversion, PBASE_ARGUMENTS Arguments)
{
    CHAR Format[BASE_LONGEST_CONVERSION];
    int Width = Conversion->Width < BASE_LONGEST_PRECISION ? Conversion->Width : BASE_LONGEST_PRECISION;
    int Precision = Conversion->Precision < BASE_LONGEST_PRECISION ? Conversion->Precision : BASE_LONGEST_PRECISION;
    CHAR Type = (CHAR)Conversion->Type;
    if (strchr("di", Type) != NULL) {
        snprintf(Format, sizeof(Format), "%%%s*.*ll%c", Conversion->Flags, Type);
        return snprintf(Number, BASE_LONGEST_NUMBER, Format, Width, Precision,
                        BaseSignedArgument(Conversion->Size, Arguments));
    }
    if (strchr("uoxX", Type) != NULL) {
        snprintf(Format, sizeof(Format), "%%%s*.*ll%c", Conversion->Flags, Type);
        return snprintf(Number, BASE_LONGEST_NUMBER, Format, Width, Precision,
                        BaseUnsignedArgument(Conversion->Size, Arguments));
    }
    if (Type == 'p') {
        return snprintf(Number, BASE_LONGEST_NUMBER, "%*.16llX", Width, (ULONGLONG)va_arg(Arguments->List, PVOID));
    }
    if (Conversion->Size == BaseSizeLongDouble) {
        snprintf(Format, sizeof(Format), "%%%s*.*L%c", Conversion->Flags, Type);
        return snprintf(Number, BASE_LONGEST_NUMBER, Format, Width, Precision, va_arg(Arguments->List, long double));
    }
    snprintf(Format, sizeof(Format), "%%%s*.*%c", Conversion->Flags, Type);
    return snprintf(Number, BASE_LONGEST_NUMBER, Format, Width, Precision, va_arg(Arguments->List, double));
}
#pragma GCC diagnostic pop

static int BaseReadNumber(const WCHAR **Format, PBASE_ARGUMENTS Arguments)
{
    int Value = 0;
    if (**Format == '*') {
        (*Format)++;
        return va_arg(Arguments->List, int);
    }
    while (**Format >= '0' && **Format <= '9') {
        int Digit = *(*Format)++ - '0';
        Value = Value < INT_MAX / 10 ? Value * 10 + Digit : INT_MAX - 1;
    }
    return Value;
}

static BOOLEAN BaseSkip(const WCHAR **Format, PCSTR Word)
{
    size_t i;
    for (i = 0; Word[i] != 0; i++) {
        if ((*Format)[i] != (WCHAR)Word[i]) {
            return FALSE;
        }
    }
    *Format += i;
    return TRUE;
}

static BASE_SIZE BaseReadSize(const WCHAR **Format)
{
    static const struct {
        PCSTR Word;
        BASE_SIZE Size;
    } Sizes[] = {
        {"hh", BaseSizeChar},      {"h", BaseSizeShort},    {"ll", BaseSizeLongLong},  {"l", BaseSizeLong},
        {"I64", BaseSizeLongLong}, {"I32", BaseSizeInt32},  {"I", BaseSizePointer},    {"z", BaseSizePointer},
        {"t", BaseSizePointer},    {"j", BaseSizeLongLong}, {"L", BaseSizeLongDouble}, {"w", BaseSizeWide},
    };
    size_t i;
    for (i = 0; i < RTL_NUMBER_OF(Sizes); i++) {
        if (BaseSkip(Format, Sizes[i].Word)) {
            return Sizes[i].Size;
        }
    }
    return BaseSizeNone;
}

static VOID BaseAddFlag(PBASE_CONVERSION Conversion, CHAR Flag)
{
    size_t Length = strlen(Conversion->Flags);
    if (strchr(Conversion->Flags, Flag) == NULL) {
        Conversion->Flags[Length] = Flag;
        Conversion->Flags[Length + 1] = 0;
    }
}

static BASE_CONVERSION BaseReadConversion(const WCHAR **Format, PBASE_ARGUMENTS Arguments)
{
    BASE_CONVERSION Conversion = {.Precision = -1};
    while (**Format != 0 && **Format < 0x80 && strchr("-+ #0", (char)**Format) != NULL) {
        BaseAddFlag(&Conversion, (CHAR) * (*Format)++);
    }
    Conversion.Width = BaseReadNumber(Format, Arguments);
    if (Conversion.Width < 0) {
        BaseAddFlag(&Conversion, '-');
        Conversion.Width = Conversion.Width == INT_MIN ? INT_MAX : -Conversion.Width;
    }
    if (**Format == '.') {
        (*Format)++;
        Conversion.Precision = BaseReadNumber(Format, Arguments);
    }
    Conversion.Size = BaseReadSize(Format);
    Conversion.Type = **Format;
    *Format += **Format != 0;
    return Conversion;
}

static VOID BasePutConversion(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, PBASE_ARGUMENTS Arguments)
{
    if (Conversion->Type == '%') {
        BasePutWide(Output, &Conversion->Type, 1);
    } else if (Conversion->Type == 'c' || Conversion->Type == 'C') {
        int Character = va_arg(Arguments->List, int);
        WCHAR Wide = BaseIsNarrow(Conversion) ? (UCHAR)Character : (WCHAR)Character;
        BasePad(Output, Conversion, 1, FALSE);
        BasePutWide(Output, &Wide, 1);
        BasePad(Output, Conversion, 1, TRUE);
    } else if ((Conversion->Type == 's' || Conversion->Type == 'S') && BaseIsNarrow(Conversion)) {
        BasePutNarrowString(Output, Conversion, va_arg(Arguments->List, PCSTR));
    } else if (Conversion->Type == 's' || Conversion->Type == 'S') {
        BasePutWideString(Output, Conversion, va_arg(Arguments->List, const WCHAR *));
    } else if (Conversion->Type != 0 && Conversion->Type < 0x80 &&
               strchr("diuoxXpeEfFgGaA", (char)Conversion->Type) != NULL) {
        CHAR Number[BASE_LONGEST_NUMBER];
        int Length = BaseFormatNumber(Number, Conversion, Arguments);
        Output->Failed |= Length < 0 || Length >= BASE_LONGEST_NUMBER;
        BasePutNarrow(Output, Number, strlen(Number));
    } else {
        Output->Failed = TRUE;
    }
}

static VOID BaseFormat(PBASE_OUTPUT Output, const WCHAR *Format, va_list List)
{
    BASE_ARGUMENTS Arguments;
    va_copy(Arguments.List, List);
    while (*Format != 0 && !Output->Failed) {
        if (*Format != '%') {
            const WCHAR *Next = Format;
            while (*Next != 0 && *Next != '%') {
                Next++;
            }
            BasePutWide(Output, Format, (size_t)(Next - Format));
            Format = Next;
        } else {
            BASE_CONVERSION Conversion;
            Format++;
            Conversion = BaseReadConversion(&Format, &Arguments);
            BasePutConversion(Output, &Conversion, &Arguments);
        }
    }
    va_end(Arguments.List);
}

int InterlockVsnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments)
{
    BASE_OUTPUT Output = {.Buffer = Buffer, .Room = Count};
    BaseFormat(&Output, Format, Arguments);
    if (Count != 0) {
        Buffer[Output.Length < Count ? Output.Length : Count - 1] = 0;
    }
    return Output.Failed || Output.Length >= Count || Output.Length > INT_MAX ? -1 : (int)Output.Length;
}

int InterlockSnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, ...)
{
    va_list Arguments;
    int Length;
    va_start(Arguments, Format);
    Length = InterlockVsnwprintf(Buffer, Count, Format, Arguments);
    va_end(Arguments);
    return Length;
}

int InterlockVfwprintf(FILE *Stream, const WCHAR *Format, va_list Arguments)
{
    BASE_OUTPUT Output = {.Stream = Stream};
    BaseFormat(&Output, Format, Arguments);
    return Output.Failed || Output.Length > INT_MAX ? -1 : (int)Output.Length;
}

int InterlockFwprintf(FILE *Stream, const WCHAR *Format, ...)
{
    va_list Arguments;
    int Length;
    va_start(Arguments, Format);
    Length = InterlockVfwprintf(Stream, Format, Arguments);
    va_end(Arguments);
    return Length;
}

int InterlockWprintf(const WCHAR *Format, ...)
{
    va_list Arguments;
    int Length;
    va_start(Arguments, Format);
    Length = InterlockVfwprintf(stdout, Format, Arguments);
    va_end(Arguments);
    return Length;
}
