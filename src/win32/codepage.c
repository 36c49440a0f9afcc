/* codepage.c: UTF-8 and UTF-16, the only code pages. The conversions themselves are in ex/utf8.c. */
#include <limits.h>

#include <interlock/win32/base.h>

#include "base.h"

UINT GetACP(VOID)
{
    return CP_UTF8;
}

UINT GetOEMCP(VOID)
{
    return CP_UTF8;
}

/* Flags for other code pages are refused with CP_UTF8 and have no effect with CP_ACP. */
static ULONG BaseCheckConversion(UINT CodePage, DWORD Flags, DWORD InvalidFlag, DWORD OtherFlags)
{
    if (CodePage != CP_UTF8 && CodePage != CP_ACP && CodePage != CP_OEMCP && CodePage != CP_THREAD_ACP) {
        return ERROR_INVALID_PARAMETER;
    }
    return Flags & ~(CodePage == CP_UTF8 ? InvalidFlag : InvalidFlag | OtherFlags) ? ERROR_INVALID_FLAGS
                                                                                   : ERROR_SUCCESS;
}

static BOOLEAN BaseAreStringsUsable(LPCVOID Source, int Length, LPCVOID Target, int Room)
{
    return Source != NULL && Length != 0 && Room >= 0 && (Room == 0 || (Target != NULL && Target != Source));
}

static int BaseConversionFailed(ULONG Error)
{
    BaseSetLastError(Error);
    return 0;
}

/* The result of a conversion that needs this much. */
static int BaseConverted(SIZE_T Needed, int Room, BOOLEAN Refused)
{
    if (Refused) {
        return BaseConversionFailed(ERROR_NO_UNICODE_TRANSLATION);
    }
    if (Needed > INT_MAX || (Room != 0 && Needed > (SIZE_T)Room)) {
        return BaseConversionFailed(ERROR_INSUFFICIENT_BUFFER);
    }
    return (int)Needed;
}

int MultiByteToWideChar(UINT CodePage, DWORD dwFlags, LPCCH lpMultiByteStr, int cbMultiByte, LPWSTR lpWideCharStr,
                        int cchWideChar)
{
    BOOLEAN Invalid = FALSE;
    SIZE_T Length, Needed;
    ULONG Error = BaseCheckConversion(CodePage, dwFlags, MB_ERR_INVALID_CHARS,
                                      MB_PRECOMPOSED | MB_COMPOSITE | MB_USEGLYPHCHARS);
    if (!BaseAreStringsUsable(lpMultiByteStr, cbMultiByte, lpWideCharStr, cchWideChar)) {
        return BaseConversionFailed(ERROR_INVALID_PARAMETER);
    }
    if (Error != ERROR_SUCCESS) {
        return BaseConversionFailed(Error);
    }
    Length = cbMultiByte < 0 ? strlen(lpMultiByteStr) + 1 : (SIZE_T)cbMultiByte;
    Needed = ExpUtf8ToWide(lpMultiByteStr, Length, lpWideCharStr, (SIZE_T)cchWideChar, &Invalid);
    return BaseConverted(Needed, cchWideChar, Invalid && (dwFlags & MB_ERR_INVALID_CHARS));
}

int WideCharToMultiByte(UINT CodePage, DWORD dwFlags, LPCWCH lpWideCharStr, int cchWideChar, LPSTR lpMultiByteStr,
                        int cbMultiByte, LPCCH lpDefaultChar, LPBOOL lpUsedDefaultChar)
{
    BOOLEAN Invalid = FALSE;
    SIZE_T Length, Needed;
    ULONG Error = BaseCheckConversion(CodePage, dwFlags, WC_ERR_INVALID_CHARS,
                                      WC_DISCARDNS | WC_SEPCHARS | WC_DEFAULTCHAR | WC_COMPOSITECHECK |
                                          WC_NO_BEST_FIT_CHARS);
    if (!BaseAreStringsUsable(lpWideCharStr, cchWideChar, lpMultiByteStr, cbMultiByte) ||
        (CodePage == CP_UTF8 && (lpDefaultChar != NULL || lpUsedDefaultChar != NULL))) {
        return BaseConversionFailed(ERROR_INVALID_PARAMETER);
    }
    if (Error != ERROR_SUCCESS) {
        return BaseConversionFailed(Error);
    }
    Length = cchWideChar < 0 ? (SIZE_T)lstrlenW(lpWideCharStr) + 1 : (SIZE_T)cchWideChar;
    Needed = ExpWideToUtf8(lpWideCharStr, Length, lpMultiByteStr, (SIZE_T)cbMultiByte, &Invalid);
    if (lpUsedDefaultChar != NULL) {
        *lpUsedDefaultChar = Invalid;
    }
    return BaseConverted(Needed, cbMultiByte, Invalid && (dwFlags & WC_ERR_INVALID_CHARS));
}
