/* stringformat.c: the formatter for ntstrsafe.h. */
#include <limits.h>

#include "rtlstringp.h"

#include "../ex/format.h"

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
