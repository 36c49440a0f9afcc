/* strsafe.h: strings in buffers of known size. Sizes are in characters (Cch) or bytes (Cb). The Gets forms are missing. */
#ifndef INTERLOCK_WIN32_INCLUDE_STRSAFE_H
#define INTERLOCK_WIN32_INCLUDE_STRSAFE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <interlock/win32.h>

#define STRSAFE_MAX_CCH 2147483647
#define STRSAFE_MAX_LENGTH (STRSAFE_MAX_CCH - 1)
#define STRSAFE_E_INSUFFICIENT_BUFFER ((HRESULT)0x8007007A)
#define STRSAFE_E_INVALID_PARAMETER ((HRESULT)0x80070057)
#define STRSAFE_E_END_OF_FILE ((HRESULT)0x80070026)

INTERLOCK_BEGIN

#define INTERLOCK_SAFE_STATUS HRESULT
#define INTERLOCK_SAFE_OK S_OK
#define INTERLOCK_SAFE_TOO_SMALL STRSAFE_E_INSUFFICIENT_BUFFER
#define INTERLOCK_SAFE_INVALID STRSAFE_E_INVALID_PARAMETER
#define INTERLOCK_SAFE_NO_ROOM STRSAFE_E_INSUFFICIENT_BUFFER
#define INTERLOCK_SAFE_KEEP FALSE

#define INTERLOCK_SAFE_CHAR char
#define INTERLOCK_SAFE_NAME(Name) INTERLOCK_SAFE_JOIN(Name, A)
#define INTERLOCK_SAFE_FORMAT vsnprintf
#ifdef __INTERLOCK_CC__ /* the formats are Microsoft's, which compilers for other systems do not know */
#define INTERLOCK_SAFE_CHECK(Format, First)
#else
#define INTERLOCK_SAFE_CHECK(Format, First) __attribute__((format(printf, Format, First)))
#endif
#include <interlock/safe.h>
#undef INTERLOCK_SAFE_CHAR
#undef INTERLOCK_SAFE_NAME
#undef INTERLOCK_SAFE_FORMAT
#undef INTERLOCK_SAFE_CHECK

#define INTERLOCK_SAFE_CHAR WCHAR
#define INTERLOCK_SAFE_NAME(Name) INTERLOCK_SAFE_JOIN(Name, W)
#define INTERLOCK_SAFE_FORMAT InterlockVsnwprintf
#define INTERLOCK_SAFE_CHECK(Format, First)
#include <interlock/safe.h>
#undef INTERLOCK_SAFE_CHAR
#undef INTERLOCK_SAFE_NAME
#undef INTERLOCK_SAFE_FORMAT
#undef INTERLOCK_SAFE_CHECK

#undef INTERLOCK_SAFE_STATUS
#undef INTERLOCK_SAFE_OK
#undef INTERLOCK_SAFE_TOO_SMALL
#undef INTERLOCK_SAFE_INVALID
#undef INTERLOCK_SAFE_NO_ROOM
#undef INTERLOCK_SAFE_KEEP

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
