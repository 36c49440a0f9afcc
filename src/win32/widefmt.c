/* widefmt.c: formatted output of 16-bit strings, by the formatter of ex/format.h with the host's long. */
#include <limits.h>

#include <interlock/win32/base.h>

#include "base.h"

#include "../ex/format.h"

static BOOLEAN BaseWriteToStream(PVOID Context, PCCH Text, SIZE_T Length)
{
    return fwrite(Text, 1, Length, Context) == Length;
}

int InterlockVsnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Count, .Wide = TRUE};
    ExpFormatWide(&Output, EXP_FORMAT_HOST, Format, Arguments);
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
    ExpFormatWide(&Output, EXP_FORMAT_HOST, Format, Arguments);
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
