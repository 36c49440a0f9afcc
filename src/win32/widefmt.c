/*
 * widefmt.c: formatted output with Microsoft's conversions: of 16-bit strings, and of 8-bit strings for sources that
 * `interlock cc` compiles. A conversion is parsed into its parts; strings and characters are written here, numbers by the
 * host's snprintf with a narrow copy of the conversion.
 *
 * An l is 32 bits, as on Windows: what it prints there is a LONG or a DWORD, which have 32 bits here too.
 *
 * The 8-bit functions leave a format to the host's unless one of its conversions is Microsoft's own. To a stream they write
 * once, so the output of several threads is not mixed within a call.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <interlock/win32/base.h>
#include <interlock/win32/crt.h>

#include "../hal/hal.h"
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
    CHAR *Bytes;  /* or into this buffer, in UTF-8; Room and Length are bytes */
    BOOLEAN IsNarrow; /* the format is of 8 bits, and the output bytes */
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

static VOID BasePutBytes(PBASE_OUTPUT Output, PCSTR Text, size_t Bytes)
{
    if (Output->Length < Output->Room) {
        size_t Fits = Bytes < Output->Room - Output->Length ? Bytes : Output->Room - Output->Length;
        memcpy(Output->Bytes + Output->Length, Text, Fits);
    }
    Output->Length += Bytes;
}

static VOID BasePutWideAsBytes(PBASE_OUTPUT Output, const WCHAR *Text, size_t Length)
{
    CHAR Narrow[BASE_PIECE * 3];
    while (Length != 0) {
        size_t Piece = Length < BASE_PIECE - 1 ? Length : BASE_PIECE - 1;
        Piece += Piece < Length && (Text[Piece - 1] & 0xFC00) == 0xD800;
        BasePutBytes(Output, Narrow, BaseWideToUtf8(Text, Piece, Narrow, sizeof(Narrow), NULL));
        Text += Piece;
        Length -= Piece;
    }
}

static VOID BasePutWide(PBASE_OUTPUT Output, const WCHAR *Text, size_t Length)
{
    size_t i;
    CHAR Narrow[BASE_PIECE * 3];
    if (Output->IsNarrow) {
        BasePutWideAsBytes(Output, Text, Length);
        return;
    }
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
        Bytes = BaseWideToUtf8(Text, Piece, Narrow, sizeof(Narrow), NULL);
        Output->Failed |= fwrite(Narrow, 1, Bytes, Output->Stream) != Bytes;
        Text += Piece;
        Length -= Piece;
    }
}

static VOID BasePutNarrow(PBASE_OUTPUT Output, PCSTR Text, size_t Bytes)
{
    WCHAR Wide[BASE_PIECE];
    if (Output->IsNarrow) {
        BasePutBytes(Output, Text, Bytes);
        return;
    }
    while (Bytes != 0) {
        size_t Piece = Bytes < BASE_PIECE ? Bytes : BASE_PIECE;
        /* Does not split a sequence: back up to the start of one that continues after the piece. */
        while (Piece < Bytes && Piece > BASE_PIECE - 4 && ((UCHAR)Text[Piece] & 0xC0) == 0x80) {
            Piece--;
        }
        BasePutWide(Output, Wide, BaseUtf8ToWide(Text, Piece, Wide, BASE_PIECE, NULL));
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

/* Of %s, %S, %c, %C: without a size, a capital is the other kind than that of the function. */
static BOOLEAN BaseIsNarrow(const BASE_OUTPUT *Output, const BASE_CONVERSION *Conversion)
{
    BOOLEAN Capital = Conversion->Type == 'S' || Conversion->Type == 'C';
    if (Conversion->Size == BaseSizeShort) {
        return TRUE;
    }
    return Conversion->Size == BaseSizeNone && Capital != Output->IsNarrow;
}

static VOID BasePutWideString(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, const WCHAR *Text)
{
    static const WCHAR Nothing[] = u"(null)";
    size_t Length, Units;
    Text = Text != NULL ? Text : Nothing;
    Units = InterlockWcsnlen(Text, Conversion->Precision < 0 ? MAXSIZE_T : (size_t)Conversion->Precision);
    Length = Output->IsNarrow ? BaseWideToUtf8(Text, Units, NULL, 0, NULL) : Units;
    BasePad(Output, Conversion, Length, FALSE);
    BasePutWide(Output, Text, Units);
    BasePad(Output, Conversion, Length, TRUE);
}

static VOID BasePutNarrowString(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, PCSTR Text)
{
    size_t Bytes, Length;
    Text = Text != NULL ? Text : "(null)";
    Bytes = strnlen(Text, Conversion->Precision < 0 ? MAXSIZE_T : (size_t)Conversion->Precision);
    Length = Output->IsNarrow ? Bytes : BaseUtf8ToWide(Text, Bytes, NULL, 0, NULL);
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

/* Zeros between the sign and the digits are left to the host, spaces are not: a field may be wider than any number. */
static VOID BasePutNumber(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, PBASE_ARGUMENTS Arguments)
{
    CHAR Number[BASE_LONGEST_NUMBER];
    BASE_CONVERSION Bare = *Conversion;
    if (strchr(Conversion->Flags, '0') == NULL || strchr(Conversion->Flags, '-') != NULL) {
        Bare.Width = 0;
    }
    int Length = BaseFormatNumber(Number, &Bare, Arguments);
    Output->Failed |= Length < 0 || Length >= BASE_LONGEST_NUMBER;
    if (!Output->Failed) {
        BasePad(Output, Conversion, (size_t)Length, FALSE);
        BasePutNarrow(Output, Number, (size_t)Length);
        BasePad(Output, Conversion, (size_t)Length, TRUE);
    }
}

static VOID BasePutCharacter(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, int Character)
{
    WCHAR Wide = (WCHAR)Character;
    CHAR Narrow = (CHAR)Character;
    if (Output->IsNarrow && BaseIsNarrow(Output, Conversion)) {
        BasePad(Output, Conversion, 1, FALSE);
        BasePutBytes(Output, &Narrow, 1);
        BasePad(Output, Conversion, 1, TRUE);
        return;
    }
    if (BaseIsNarrow(Output, Conversion)) {
        Wide = (UCHAR)Character;
    }
    size_t Length = Output->IsNarrow ? BaseWideToUtf8(&Wide, 1, NULL, 0, NULL) : 1;
    BasePad(Output, Conversion, Length, FALSE);
    BasePutWide(Output, &Wide, 1);
    BasePad(Output, Conversion, Length, TRUE);
}

static VOID BasePutConversion(PBASE_OUTPUT Output, const BASE_CONVERSION *Conversion, PBASE_ARGUMENTS Arguments)
{
    if (Conversion->Type == '%') {
        BasePutWide(Output, &Conversion->Type, 1);
    } else if (Conversion->Type == 'c' || Conversion->Type == 'C') {
        BasePutCharacter(Output, Conversion, va_arg(Arguments->List, int));
    } else if ((Conversion->Type == 's' || Conversion->Type == 'S') && BaseIsNarrow(Output, Conversion)) {
        BasePutNarrowString(Output, Conversion, va_arg(Arguments->List, PCSTR));
    } else if (Conversion->Type == 's' || Conversion->Type == 'S') {
        BasePutWideString(Output, Conversion, va_arg(Arguments->List, const WCHAR *));
    } else if (Conversion->Type != 0 && Conversion->Type < 0x80 &&
               strchr("diuoxXpeEfFgGaA", (char)Conversion->Type) != NULL) {
        BasePutNumber(Output, Conversion, Arguments);
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

int InterlockVwprintf(const WCHAR *Format, va_list Arguments)
{
    return InterlockVfwprintf(stdout, Format, Arguments);
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

/* 8-bit formats. */

#define BASE_LONGEST_SPECIFICATION 64 /* of a conversion: flags, digits, size, type */
#define BASE_FIRST_TRY 512

/* A conversion in 16 bits, for the parser. Returns how many characters it has; what is not ASCII ends it. */
static size_t BaseWidenSpecification(PCSTR Format, WCHAR Wide[BASE_LONGEST_SPECIFICATION + 1])
{
    size_t Length = 0;
    while (Length < BASE_LONGEST_SPECIFICATION && Format[Length] > 0) {
        Wide[Length] = (WCHAR)Format[Length];
        Length++;
    }
    Wide[Length] = 0;
    return Length;
}

/* Format is behind the '%'. */
static PCSTR BaseSkipDigits(PCSTR Format)
{
    return Format + strspn(Format, "-+ #0123456789.*");
}

/* Does the host's printf print the same? */
static BOOLEAN BaseIsOfHost(PCSTR Format)
{
    while ((Format = strchr(Format, '%')) != NULL) {
        Format = BaseSkipDigits(Format + 1);
        size_t Size = strspn(Format, "hlwI");
        CHAR Type = Format[Size];
        if (Format[0] == 'I' || Format[0] == 'w' || Type == 'S' || Type == 'C' || Type == 'p') {
            return FALSE;
        }
        if (Size == 1 && Format[0] == 'h' && (Type == 's' || Type == 'c')) {
            return FALSE;
        }
        if (Size == 1 && Format[0] == 'l' && Type != 0 && strchr("diuoxXsc", Type) != NULL) {
            return FALSE;
        }
        Format += Type == '%' ? Size + 1 : Size;
    }
    return TRUE;
}

static VOID BaseFormatNarrow(PBASE_OUTPUT Output, PCSTR Format, va_list List)
{
    BASE_ARGUMENTS Arguments;
    va_copy(Arguments.List, List);
    while (*Format != 0 && !Output->Failed) {
        size_t Plain = strcspn(Format, "%");
        BasePutBytes(Output, Format, Plain);
        Format += Plain;
        if (*Format == '%') {
            WCHAR Wide[BASE_LONGEST_SPECIFICATION + 1];
            const WCHAR *At = Wide;
            BaseWidenSpecification(Format + 1, Wide);
            BASE_CONVERSION Conversion = BaseReadConversion(&At, &Arguments);
            BasePutConversion(Output, &Conversion, &Arguments);
            Format += 1 + (At - Wide);
        }
    }
    va_end(Arguments.List);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* The length of the whole text; -1: the format is wrong. Does not terminate what it stores. */
static int BaseFormatBytes(CHAR *Buffer, size_t Room, PCSTR Format, va_list Arguments)
{
    BASE_OUTPUT Output = {.Bytes = Buffer, .Room = Room, .IsNarrow = TRUE};
    BaseFormatNarrow(&Output, Format, Arguments);
    if (Output.Failed || Output.Length > INT_MAX) {
        HalSetError(HalErrorInvalid);
        return -1;
    }
    return (int)Output.Length;
}

int InterlockVsnprintf(char *Buffer, size_t Count, const char *Format, va_list Arguments)
{
    if (BaseIsOfHost(Format)) {
        return vsnprintf(Buffer, Count, Format, Arguments);
    }
    int Length = BaseFormatBytes(Buffer, Count, Format, Arguments);
    if (Count != 0) {
        Buffer[Length < 0 ? 0 : (size_t)Length < Count ? (size_t)Length : Count - 1] = 0;
    }
    return Length;
}

int InterlockVfprintf(FILE *Stream, const char *Format, va_list Arguments)
{
    CHAR Small[BASE_FIRST_TRY];
    CHAR *Text = Small;
    if (BaseIsOfHost(Format)) {
        return vfprintf(Stream, Format, Arguments);
    }
    int Length = BaseFormatBytes(Small, sizeof(Small), Format, Arguments);
    if (Length > (int)sizeof(Small)) {
        Text = malloc((size_t)Length);
        if (Text == NULL) {
            return -1; /* malloc has set errno */
        }
        Length = BaseFormatBytes(Text, (size_t)Length, Format, Arguments);
    }
    if (Length > 0 && fwrite(Text, 1, (size_t)Length, Stream) != (size_t)Length) {
        Length = -1;
    }
    if (Text != Small) {
        free(Text);
    }
    return Length;
}
#pragma GCC diagnostic pop

int InterlockVsprintf(char *Buffer, const char *Format, va_list Arguments)
{
    return InterlockVsnprintf(Buffer, INT_MAX, Format, Arguments);
}

int InterlockVprintf(const char *Format, va_list Arguments)
{
    return InterlockVfprintf(stdout, Format, Arguments);
}

int _vsnprintf(char *Buffer, size_t Count, const char *Format, va_list Arguments)
{
    int Length = BaseFormatBytes(Buffer, Count, Format, Arguments);
    if (Length >= 0 && (size_t)Length < Count) {
        Buffer[Length] = 0;
    }
    return Buffer != NULL && Length >= 0 && (size_t)Length > Count ? -1 : Length;
}

/* Calls the function of the same name with a va_list. */
#define BASE_CALL_WITH_LIST(Call)                                                                                      \
    va_list Arguments;                                                                                                 \
    va_start(Arguments, Format);                                                                                       \
    int Length = Call;                                                                                                 \
    va_end(Arguments);                                                                                                 \
    return Length

int InterlockPrintf(const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVfprintf(stdout, Format, Arguments));
}

int InterlockFprintf(FILE *Stream, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVfprintf(Stream, Format, Arguments));
}

int InterlockSprintf(char *Buffer, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVsprintf(Buffer, Format, Arguments));
}

int InterlockSnprintf(char *Buffer, size_t Count, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVsnprintf(Buffer, Count, Format, Arguments));
}

int _snprintf(char *Buffer, size_t Count, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(_vsnprintf(Buffer, Count, Format, Arguments));
}
