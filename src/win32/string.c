/* string.c: the strings of kernel32. Letters of ASCII are the ones that compare without case. */
#include <interlock/win32/string.h>

#include "base.h"

int lstrlenA(LPCSTR lpString)
{
    return lpString != NULL ? (int)strlen(lpString) : 0;
}

int lstrlenW(LPCWSTR lpString)
{
    int Length = 0;
    while (lpString != NULL && lpString[Length] != 0) {
        Length++;
    }
    return Length;
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

static ULONG BaseLowerCase(ULONG Character)
{
    return Character >= 'A' && Character <= 'Z' ? Character + ('a' - 'A') : Character;
}

/* NULL is before everything but itself. */
static int BaseCompareA(LPCSTR First, LPCSTR Second, BOOLEAN IgnoreCase)
{
    if (First == NULL || Second == NULL) {
        return (First != NULL) - (Second != NULL);
    }
    for (;; First++, Second++) {
        ULONG A = (UCHAR)*First;
        ULONG B = (UCHAR)*Second;
        if (IgnoreCase) {
            A = BaseLowerCase(A);
            B = BaseLowerCase(B);
        }
        if (A != B || A == 0) {
            return (A > B) - (A < B);
        }
    }
}

static int BaseCompareW(LPCWSTR First, LPCWSTR Second, BOOLEAN IgnoreCase)
{
    if (First == NULL || Second == NULL) {
        return (First != NULL) - (Second != NULL);
    }
    for (;; First++, Second++) {
        ULONG A = *First;
        ULONG B = *Second;
        if (IgnoreCase) {
            A = BaseLowerCase(A);
            B = BaseLowerCase(B);
        }
        if (A != B || A == 0) {
            return (A > B) - (A < B);
        }
    }
}

int lstrcmpA(LPCSTR lpString1, LPCSTR lpString2)
{
    return BaseCompareA(lpString1, lpString2, FALSE);
}

int lstrcmpW(LPCWSTR lpString1, LPCWSTR lpString2)
{
    return BaseCompareW(lpString1, lpString2, FALSE);
}

int lstrcmpiA(LPCSTR lpString1, LPCSTR lpString2)
{
    return BaseCompareA(lpString1, lpString2, TRUE);
}

int lstrcmpiW(LPCWSTR lpString1, LPCWSTR lpString2)
{
    return BaseCompareW(lpString1, lpString2, TRUE);
}
