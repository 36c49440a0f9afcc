/*
 * string.c: kernel32's strings, and the C library's wide string functions for 16-bit units. Characters compare by their
 * numbers; only ASCII letters have case.
 */
#include <limits.h>
#include <stdlib.h>

#include "../hal/hal.h"
#include "base.h"

/* The most characters of a number that are read: 64 binary digits, sign, prefix, leading zeroes. */
#define BASE_NUMBER_CHARACTERS 256

int lstrlenA(LPCSTR lpString)
{
    return lpString != NULL ? (int)strlen(lpString) : 0;
}

int lstrlenW(LPCWSTR lpString)
{
    return lpString != NULL ? (int)InterlockWcslen(lpString) : 0;
}

LPSTR lstrcpyA(LPSTR lpString1, LPCSTR lpString2)
{
    if (lpString1 == NULL || lpString2 == NULL) {
        return NULL;
    }
    return memmove(lpString1, lpString2, strlen(lpString2) + 1);
}

LPWSTR lstrcpyW(LPWSTR lpString1, LPCWSTR lpString2)
{
    if (lpString1 == NULL || lpString2 == NULL) {
        return NULL;
    }
    return memmove(lpString1, lpString2, ((SIZE_T)lstrlenW(lpString2) + 1) * sizeof(WCHAR));
}

static SIZE_T BaseCopiedLength(int Length, int Room)
{
    return (SIZE_T)(Length < Room ? Length : Room - 1);
}

LPSTR lstrcpynA(LPSTR lpString1, LPCSTR lpString2, int iMaxLength)
{
    SIZE_T Length;
    if (lpString1 == NULL || lpString2 == NULL || iMaxLength <= 0) {
        return NULL;
    }
    Length = BaseCopiedLength(lstrlenA(lpString2), iMaxLength);
    memmove(lpString1, lpString2, Length);
    lpString1[Length] = 0;
    return lpString1;
}

LPWSTR lstrcpynW(LPWSTR lpString1, LPCWSTR lpString2, int iMaxLength)
{
    SIZE_T Length;
    if (lpString1 == NULL || lpString2 == NULL || iMaxLength <= 0) {
        return NULL;
    }
    Length = BaseCopiedLength(lstrlenW(lpString2), iMaxLength);
    memmove(lpString1, lpString2, Length * sizeof(WCHAR));
    lpString1[Length] = 0;
    return lpString1;
}

LPSTR lstrcatA(LPSTR lpString1, LPCSTR lpString2)
{
    if (lpString1 == NULL || lpString2 == NULL) {
        return NULL;
    }
    lstrcpyA(lpString1 + strlen(lpString1), lpString2);
    return lpString1;
}

LPWSTR lstrcatW(LPWSTR lpString1, LPCWSTR lpString2)
{
    if (lpString1 == NULL || lpString2 == NULL) {
        return NULL;
    }
    lstrcpyW(lpString1 + lstrlenW(lpString1), lpString2);
    return lpString1;
}

/* NULL sorts before everything but itself. */
static BOOLEAN BaseEitherIsNull(LPCVOID First, LPCVOID Second, int *Order)
{
    *Order = (First != NULL) - (Second != NULL);
    return First == NULL || Second == NULL;
}

int lstrcmpA(LPCSTR lpString1, LPCSTR lpString2)
{
    int Order;
    return BaseEitherIsNull(lpString1, lpString2, &Order) ? Order : strcmp(lpString1, lpString2);
}

int lstrcmpW(LPCWSTR lpString1, LPCWSTR lpString2)
{
    int Order;
    return BaseEitherIsNull(lpString1, lpString2, &Order) ? Order : InterlockWcscmp(lpString1, lpString2);
}

static int BaseLowerCase(CHAR Character)
{
    return Character >= 'A' && Character <= 'Z' ? Character + ('a' - 'A') : (UCHAR)Character;
}

int lstrcmpiA(LPCSTR lpString1, LPCSTR lpString2)
{
    int Order;
    if (BaseEitherIsNull(lpString1, lpString2, &Order)) {
        return Order;
    }
    while (*lpString1 != 0 && BaseLowerCase(*lpString1) == BaseLowerCase(*lpString2)) {
        lpString1++;
        lpString2++;
    }
    return BaseLowerCase(*lpString1) - BaseLowerCase(*lpString2);
}

int lstrcmpiW(LPCWSTR lpString1, LPCWSTR lpString2)
{
    int Order;
    return BaseEitherIsNull(lpString1, lpString2, &Order) ? Order : InterlockWcsicmp(lpString1, lpString2);
}

/* Wide strings. */

size_t InterlockWcsnlen(const WCHAR *String, size_t Limit)
{
    size_t Length = 0;
    while (Length < Limit && String[Length] != 0) {
        Length++;
    }
    return Length;
}

size_t InterlockWcslen(const WCHAR *String)
{
    return InterlockWcsnlen(String, MAXSIZE_T);
}

WCHAR *InterlockWcscpy(WCHAR *Target, const WCHAR *Source)
{
    return memcpy(Target, Source, (InterlockWcslen(Source) + 1) * sizeof(WCHAR));
}

WCHAR *InterlockWcsncpy(WCHAR *Target, const WCHAR *Source, size_t Count)
{
    size_t Length = InterlockWcsnlen(Source, Count);
    memcpy(Target, Source, Length * sizeof(WCHAR));
    memset(Target + Length, 0, (Count - Length) * sizeof(WCHAR));
    return Target;
}

WCHAR *InterlockWcscat(WCHAR *Target, const WCHAR *Source)
{
    InterlockWcscpy(Target + InterlockWcslen(Target), Source);
    return Target;
}

WCHAR *InterlockWcsncat(WCHAR *Target, const WCHAR *Source, size_t Count)
{
    size_t Length = InterlockWcsnlen(Source, Count);
    WCHAR *End = Target + InterlockWcslen(Target);
    memcpy(End, Source, Length * sizeof(WCHAR));
    End[Length] = 0;
    return Target;
}

static ULONG BaseFoldCase(WCHAR Character)
{
    return Character >= 'A' && Character <= 'Z' ? (ULONG)(Character + ('a' - 'A')) : Character;
}

static int BaseCompareWide(const WCHAR *First, const WCHAR *Second, size_t Count, BOOLEAN Fold)
{
    for (; Count != 0; Count--, First++, Second++) {
        ULONG A = Fold ? BaseFoldCase(*First) : *First;
        ULONG B = Fold ? BaseFoldCase(*Second) : *Second;
        if (A != B || A == 0) {
            return (A > B) - (A < B);
        }
    }
    return 0;
}

int InterlockWcscmp(const WCHAR *First, const WCHAR *Second)
{
    return BaseCompareWide(First, Second, MAXSIZE_T, FALSE);
}

int InterlockWcsncmp(const WCHAR *First, const WCHAR *Second, size_t Count)
{
    return BaseCompareWide(First, Second, Count, FALSE);
}

int InterlockWcsicmp(const WCHAR *First, const WCHAR *Second)
{
    return BaseCompareWide(First, Second, MAXSIZE_T, TRUE);
}

int InterlockWcsnicmp(const WCHAR *First, const WCHAR *Second, size_t Count)
{
    return BaseCompareWide(First, Second, Count, TRUE);
}

WCHAR *InterlockWcschr(const WCHAR *String, WCHAR Character)
{
    while (*String != Character) {
        if (*String++ == 0) {
            return NULL;
        }
    }
    return (WCHAR *)String;
}

WCHAR *InterlockWcsrchr(const WCHAR *String, WCHAR Character)
{
    size_t i = InterlockWcslen(String) + 1;
    while (i-- != 0) {
        if (String[i] == Character) {
            return (WCHAR *)String + i;
        }
    }
    return NULL;
}

WCHAR *InterlockWcsstr(const WCHAR *String, const WCHAR *Part)
{
    size_t Length = InterlockWcslen(Part);
    for (;; String++) {
        if (InterlockWcsncmp(String, Part, Length) == 0) {
            return (WCHAR *)String;
        }
        if (*String == 0) {
            return NULL;
        }
    }
}

/* The length of the prefix whose characters are in the set, or are not. */
static size_t BaseSpan(const WCHAR *String, const WCHAR *Set, BOOLEAN InSet)
{
    size_t Length = 0;
    while (String[Length] != 0 && (InterlockWcschr(Set, String[Length]) != NULL) == InSet) {
        Length++;
    }
    return Length;
}

size_t InterlockWcsspn(const WCHAR *String, const WCHAR *Set)
{
    return BaseSpan(String, Set, TRUE);
}

size_t InterlockWcscspn(const WCHAR *String, const WCHAR *Set)
{
    return BaseSpan(String, Set, FALSE);
}

WCHAR *InterlockWcspbrk(const WCHAR *String, const WCHAR *Set)
{
    String += BaseSpan(String, Set, FALSE);
    return *String != 0 ? (WCHAR *)String : NULL;
}

WCHAR *InterlockWcsdup(const WCHAR *String)
{
    size_t Bytes = (InterlockWcslen(String) + 1) * sizeof(WCHAR);
    WCHAR *Copy = malloc(Bytes);
    return Copy != NULL ? memcpy(Copy, String, Bytes) : NULL;
}

/* The ASCII prefix of String, for the narrow functions: a number has no other characters. */
static VOID BaseNarrowNumber(const WCHAR *String, CHAR Text[BASE_NUMBER_CHARACTERS])
{
    size_t i;
    for (i = 0; i < BASE_NUMBER_CHARACTERS - 1 && String[i] != 0 && String[i] < 0x80; i++) {
        Text[i] = (CHAR)String[i];
    }
    Text[i] = 0;
}

/* FALSE: the base is invalid; the conversion stops where it began. */
static BOOLEAN BaseHasNumbers(int Base, const WCHAR *String, WCHAR **End)
{
    if (Base == 0 || (Base >= 2 && Base <= 36)) {
        return TRUE;
    }
    HalSetError(HalErrorInvalid);
    if (End != NULL) {
        *End = (WCHAR *)String;
    }
    return FALSE;
}

long InterlockWcstol(const WCHAR *String, WCHAR **End, int Base)
{
    CHAR Text[BASE_NUMBER_CHARACTERS];
    char *Stop;
    long Value;
    BaseNarrowNumber(String, Text);
    if (!BaseHasNumbers(Base, String, End)) {
        return 0;
    }
    Value = strtol(Text, &Stop, Base);
    if (End != NULL) {
        *End = (WCHAR *)String + (Stop - Text);
    }
    return Value;
}

unsigned long InterlockWcstoul(const WCHAR *String, WCHAR **End, int Base)
{
    CHAR Text[BASE_NUMBER_CHARACTERS];
    char *Stop;
    unsigned long Value;
    BaseNarrowNumber(String, Text);
    if (!BaseHasNumbers(Base, String, End)) {
        return 0;
    }
    Value = strtoul(Text, &Stop, Base);
    if (End != NULL) {
        *End = (WCHAR *)String + (Stop - Text);
    }
    return Value;
}

int InterlockWtoi(const WCHAR *String)
{
    return (int)InterlockWcstol(String, NULL, 10);
}

/* Code pages: UTF-8 and UTF-16. The conversions themselves are in ex/text.c. */

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
    RtlSetLastWin32Error(Error);
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
