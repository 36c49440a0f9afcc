/*
 * codepage.c: UTF-8 and UTF-16, the only code pages.
 *
 * Malformed input (a byte that begins no character, a truncated or overlong sequence, a surrogate in UTF-8, half of a
 * surrogate pair) becomes U+FFFD: in UTF-8 one for each maximal piece that could have begun a character.
 */
#include <limits.h>

#include <interlock/win32/base.h>

#include "base.h"

#define BASE_REPLACEMENT 0xFFFDu
#define BASE_LAST_ONE_UNIT 0xFFFFu

static ULONG BaseReplace(PBOOLEAN Invalid)
{
    if (Invalid != NULL) {
        *Invalid = TRUE;
    }
    return BASE_REPLACEMENT;
}

/* The number of continuation bytes, and the bounds of the next one; -1: no character begins with Lead. */
static LONG BaseLeadByte(UCHAR Lead, PUCHAR Low, PUCHAR High)
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

static ULONG BaseNextUtf8(const UCHAR **Source, const UCHAR *End, PBOOLEAN Invalid)
{
    UCHAR Low, High;
    UCHAR Lead = *(*Source)++;
    LONG More = BaseLeadByte(Lead, &Low, &High);
    ULONG Character;
    if (More < 0) {
        return BaseReplace(Invalid);
    }
    Character = More == 0 ? Lead : Lead & (0x3F >> More);
    for (; More > 0; More--) {
        if (*Source == End || **Source < Low || **Source > High) {
            return BaseReplace(Invalid);
        }
        Character = Character << 6 | (*(*Source)++ & 0x3F);
        Low = 0x80;
        High = 0xBF;
    }
    return Character;
}

static ULONG BaseNextWide(LPCWSTR *Source, LPCWSTR End, PBOOLEAN Invalid)
{
    ULONG Unit = *(*Source)++;
    if ((Unit & 0xF800) != 0xD800) {
        return Unit;
    }
    if (Unit < 0xDC00 && *Source != End && (**Source & 0xFC00) == 0xDC00) {
        return 0x10000 + ((Unit & 0x3FF) << 10) + (*(*Source)++ & 0x3FF);
    }
    return BaseReplace(Invalid);
}

SIZE_T BaseUtf8ToWide(LPCSTR Source, SIZE_T Length, PWSTR Target, SIZE_T Room, PBOOLEAN Invalid)
{
    const UCHAR *At = (const UCHAR *)Source;
    const UCHAR *End = At + Length;
    SIZE_T Used = 0;
    while (At != End) {
        ULONG Character = BaseNextUtf8(&At, End, Invalid);
        SIZE_T Units = Character > BASE_LAST_ONE_UNIT ? 2 : 1;
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

SIZE_T BaseWideToUtf8(LPCWSTR Source, SIZE_T Length, PSTR Target, SIZE_T Room, PBOOLEAN Invalid)
{
    static const UCHAR Marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    LPCWSTR End = Source + Length;
    SIZE_T Used = 0;
    while (Source != End) {
        ULONG Character = BaseNextWide(&Source, End, Invalid);
        SIZE_T Bytes = Character < 0x80 ? 1 : Character < 0x800 ? 2 : Character <= BASE_LAST_ONE_UNIT ? 3 : 4;
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
    Needed = BaseUtf8ToWide(lpMultiByteStr, Length, lpWideCharStr, (SIZE_T)cchWideChar, &Invalid);
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
    Needed = BaseWideToUtf8(lpWideCharStr, Length, lpMultiByteStr, (SIZE_T)cbMultiByte, &Invalid);
    if (lpUsedDefaultChar != NULL) {
        *lpUsedDefaultChar = Invalid;
    }
    return BaseConverted(Needed, cbMultiByte, Invalid && (dwFlags & WC_ERR_INVALID_CHARS));
}
