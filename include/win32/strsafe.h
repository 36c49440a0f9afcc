/* strsafe.h: strings in buffers of known size. Sizes are in characters (Cch) or bytes (Cb). The Gets forms are missing. */
#ifndef INTERLOCK_WIN32_INCLUDE_STRSAFE_H
#define INTERLOCK_WIN32_INCLUDE_STRSAFE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <interlock/win32/base.h>

#define STRSAFE_MAX_CCH 2147483647
#define STRSAFE_MAX_LENGTH (STRSAFE_MAX_CCH - 1)
#define STRSAFE_IGNORE_NULLS 0x00000100
#define STRSAFE_FILL_BEHIND_NULL 0x00000200
#define STRSAFE_FILL_ON_FAILURE 0x00000400
#define STRSAFE_NULL_ON_FAILURE 0x00000800
#define STRSAFE_NO_TRUNCATION 0x00001000
#define STRSAFE_VALID_FLAGS (0x000000FF | 0x00001F00)
#define STRSAFE_FILL_BYTE(Byte) ((DWORD)(((Byte)&0x000000FF) | STRSAFE_FILL_BEHIND_NULL))
#define STRSAFE_FAILURE_BYTE(Byte) ((DWORD)(((Byte)&0x000000FF) | STRSAFE_FILL_ON_FAILURE))
#define STRSAFE_E_INSUFFICIENT_BUFFER ((HRESULT)0x8007007A)
#define STRSAFE_E_INVALID_PARAMETER ((HRESULT)0x80070057)
#define STRSAFE_E_END_OF_FILE ((HRESULT)0x80070026)

INTERLOCK_BEGIN

/* Internal: the characters that are left, in bytes, with those of the size that make no whole character. */
FORCEINLINE HRESULT InterlockSafeBytes(HRESULT Result, size_t *Remaining, size_t Size, size_t Character)
{
    if (Remaining != NULL && (SUCCEEDED(Result) || Result == STRSAFE_E_INSUFFICIENT_BUFFER)) {
        *Remaining = *Remaining * Character + Size % Character;
    }
    return Result;
}

#define INTERLOCK_SAFE_CHAR char
#define INTERLOCK_SAFE_NAME(Name) INTERLOCK_SAFE_JOIN(Name, A)
#define INTERLOCK_SAFE_JOIN(First, Second) First##Second
#define INTERLOCK_SAFE_FORMAT vsnprintf
#ifdef __INTERLOCK_CC__ /* the formats are Microsoft's, which compilers for other systems do not know */
#define INTERLOCK_SAFE_CHECK(Format, First)
#else
#define INTERLOCK_SAFE_CHECK(Format, First) __attribute__((format(printf, Format, First)))
#endif
#include <strsafe_functions.h>
#undef INTERLOCK_SAFE_CHAR
#undef INTERLOCK_SAFE_NAME
#undef INTERLOCK_SAFE_FORMAT
#undef INTERLOCK_SAFE_CHECK

#define INTERLOCK_SAFE_CHAR WCHAR
#define INTERLOCK_SAFE_NAME(Name) INTERLOCK_SAFE_JOIN(Name, W)
#define INTERLOCK_SAFE_FORMAT InterlockVsnwprintf
#define INTERLOCK_SAFE_CHECK(Format, First)
#include <strsafe_functions.h>
#undef INTERLOCK_SAFE_CHAR
#undef INTERLOCK_SAFE_NAME
#undef INTERLOCK_SAFE_FORMAT
#undef INTERLOCK_SAFE_CHECK

INTERLOCK_END

#define StringCchCopy INTERLOCK_AW(StringCchCopy)
#define StringCchCopyEx INTERLOCK_AW(StringCchCopyEx)
#define StringCchCopyN INTERLOCK_AW(StringCchCopyN)
#define StringCchCopyNEx INTERLOCK_AW(StringCchCopyNEx)
#define StringCchCat INTERLOCK_AW(StringCchCat)
#define StringCchCatEx INTERLOCK_AW(StringCchCatEx)
#define StringCchCatN INTERLOCK_AW(StringCchCatN)
#define StringCchCatNEx INTERLOCK_AW(StringCchCatNEx)
#define StringCchVPrintf INTERLOCK_AW(StringCchVPrintf)
#define StringCchVPrintfEx INTERLOCK_AW(StringCchVPrintfEx)
#define StringCchPrintf INTERLOCK_AW(StringCchPrintf)
#define StringCchPrintfEx INTERLOCK_AW(StringCchPrintfEx)
#define StringCchLength INTERLOCK_AW(StringCchLength)
#define StringCbCopy INTERLOCK_AW(StringCbCopy)
#define StringCbCopyEx INTERLOCK_AW(StringCbCopyEx)
#define StringCbCopyN INTERLOCK_AW(StringCbCopyN)
#define StringCbCopyNEx INTERLOCK_AW(StringCbCopyNEx)
#define StringCbCat INTERLOCK_AW(StringCbCat)
#define StringCbCatEx INTERLOCK_AW(StringCbCatEx)
#define StringCbCatN INTERLOCK_AW(StringCbCatN)
#define StringCbCatNEx INTERLOCK_AW(StringCbCatNEx)
#define StringCbVPrintf INTERLOCK_AW(StringCbVPrintf)
#define StringCbVPrintfEx INTERLOCK_AW(StringCbVPrintfEx)
#define StringCbPrintf INTERLOCK_AW(StringCbPrintf)
#define StringCbPrintfEx INTERLOCK_AW(StringCbPrintfEx)
#define StringCbLength INTERLOCK_AW(StringCbLength)

#endif
