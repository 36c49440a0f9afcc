/* string.c: the strings of kernel32, which compare by the numbers of their characters; letters of ASCII have case. */
#include <interlock/win32/string.h>
#include <interlock/win32/wide.h>

#include "base.h"

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

/* NULL is before everything but itself. */
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
