/*
 * wide.h: the C library's functions for wide strings, for strings of 16-bit units. Part of win32.h. language.h and
 * tchar.h call them by their usual names where wchar_t has 16 bits.
 */
#ifndef INTERLOCK_WIN32_WIDE_H
#define INTERLOCK_WIN32_WIDE_H

#include <stdarg.h>
#include <stdio.h>

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

WINBASEAPI size_t InterlockWcslen(const WCHAR *String);
WINBASEAPI size_t InterlockWcsnlen(const WCHAR *String, size_t Limit);
WINBASEAPI WCHAR *InterlockWcscpy(WCHAR *Target, const WCHAR *Source);
WINBASEAPI WCHAR *InterlockWcsncpy(WCHAR *Target, const WCHAR *Source, size_t Count);
WINBASEAPI WCHAR *InterlockWcscat(WCHAR *Target, const WCHAR *Source);
WINBASEAPI WCHAR *InterlockWcsncat(WCHAR *Target, const WCHAR *Source, size_t Count);
WINBASEAPI int InterlockWcscmp(const WCHAR *First, const WCHAR *Second);
WINBASEAPI int InterlockWcsncmp(const WCHAR *First, const WCHAR *Second, size_t Count);
WINBASEAPI int InterlockWcsicmp(const WCHAR *First, const WCHAR *Second); /* letters of ASCII have no case here */
WINBASEAPI int InterlockWcsnicmp(const WCHAR *First, const WCHAR *Second, size_t Count);
WINBASEAPI WCHAR *InterlockWcschr(const WCHAR *String, WCHAR Character);
WINBASEAPI WCHAR *InterlockWcsrchr(const WCHAR *String, WCHAR Character);
WINBASEAPI WCHAR *InterlockWcsstr(const WCHAR *String, const WCHAR *Part);
WINBASEAPI WCHAR *InterlockWcspbrk(const WCHAR *String, const WCHAR *Set);
WINBASEAPI size_t InterlockWcsspn(const WCHAR *String, const WCHAR *Set);
WINBASEAPI size_t InterlockWcscspn(const WCHAR *String, const WCHAR *Set);
WINBASEAPI WCHAR *InterlockWcsdup(const WCHAR *String); /* free() frees it */
WINBASEAPI long InterlockWcstol(const WCHAR *String, WCHAR **End, int Base);
WINBASEAPI unsigned long InterlockWcstoul(const WCHAR *String, WCHAR **End, int Base);
WINBASEAPI int InterlockWtoi(const WCHAR *String);

/*
 * Formats. %s and %c are wide in these functions, as are %ls, %ws and %lc; %hs, %S, %hc and %C are narrow, in UTF-8.
 * The numbers are those of the host's printf, and I64, I32 and I (of pointer size) are sizes too; %n is not taken.
 * Snwprintf returns the length, or -1 if it did not fit; the text is cut then and ends with a null character.
 */
WINBASEAPI int InterlockVsnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments);
WINBASEAPI int InterlockSnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, ...);
WINBASEAPI int InterlockVfwprintf(FILE *Stream, const WCHAR *Format, va_list Arguments); /* in UTF-8 */
WINBASEAPI int InterlockFwprintf(FILE *Stream, const WCHAR *Format, ...);
WINBASEAPI int InterlockWprintf(const WCHAR *Format, ...);

INTERLOCK_END

#endif
