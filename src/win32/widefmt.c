/*
 * widefmt.c: formatted output with Microsoft's conversions, by the formatter of ex/format.h: of 16-bit strings, and of 8-bit
 * strings for sources that `interlock cc` compiles.
 *
 * The 8-bit functions pass a format to the host's functions unless one of its conversions is Microsoft's own. They
 * write to a stream once per call, so the output of concurrent calls is not mixed.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <interlock/win32/base.h>
#include <interlock/win32/crt.h>

#include "base.h"

#include "../ex/format.h"
#include "../hal/hal.h"

static BOOLEAN BaseWriteToStream(PVOID Context, PCCH Text, SIZE_T Length)
{
    return fwrite(Text, 1, Length, Context) == Length;
}

int InterlockVsnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Count, .Wide = TRUE};
    ExpFormatWide(&Output, EXP_FORMAT_STRICT, Format, Arguments);
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
    EXP_OUTPUT Output = {.Wide = TRUE, .Write = BaseWriteToStream, .Context = Stream};
    ExpFormatWide(&Output, EXP_FORMAT_STRICT, Format, Arguments);
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

int InterlockVwprintf(const WCHAR *Format, va_list Arguments)
{
    return InterlockVfwprintf(stdout, Format, Arguments);
}

/* 8-bit formats. */

#define BASE_FIRST_TRY 512

/* Does the host's printf print the same? */
static BOOLEAN BaseIsOfHost(PCSTR Format)
{
    while ((Format = strchr(Format, '%')) != NULL) {
        Format += 1 + strspn(Format + 1, "-+ #0123456789.*");
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

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* The length of the whole text; -1: the format is wrong. Does not terminate what it stores. */
static int BaseFormatBytes(CHAR *Buffer, size_t Room, PCSTR Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Room};
    va_list Copy;
    va_copy(Copy, Arguments);
    ExpFormatNarrow(&Output, EXP_FORMAT_STRICT, Format, Copy);
    va_end(Copy);
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
