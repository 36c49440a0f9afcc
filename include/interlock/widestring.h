/*
 * widestring.h: the C library's functions for strings of 16-bit characters. With -fshort-wchar, wdm.h, windows.h and tchar.h
 * give them their usual names (wcslen, swprintf, …), and the Microsoft names (_wcsicmp, _snwprintf, …) always.
 *
 * Formats: %s and %c are wide, as are %ls, %ws and %lc; %hs, %S, %hc and %C are narrow, in UTF-8. Numbers are those of
 * the host's printf; I64, I32 and I (pointer size) are sizes too. An l is 32 bits, as LONG and DWORD have them: the type
 * long has 64 here, and is printed with ll. %p is 16 digits. %n is refused.
 *
 * A header that defines INTERLOCK_WIDE_NAMES before it includes this one gets the usual names, too.
 */
#ifndef INTERLOCK_WIDESTRING_H
#define INTERLOCK_WIDESTRING_H

#include <stdarg.h>
#include <stdio.h>

#include <interlock/linkage.h>

INTERLOCK_BEGIN

/* Wide strings. */

/* wcslen, wcsnlen: returns the length in characters, and at most Limit. Only in Interlock. */
INTERLOCK_API size_t InterlockWcslen(const WCHAR *String);
INTERLOCK_API size_t InterlockWcsnlen(const WCHAR *String, size_t Limit);

/* wcscpy, wcsncpy: copies a string. wcsncpy writes exactly Count characters: the rest are zeros, and a longer string is
   not terminated. Only in Interlock. */
INTERLOCK_API WCHAR *InterlockWcscpy(WCHAR *Target, const WCHAR *Source);
INTERLOCK_API WCHAR *InterlockWcsncpy(WCHAR *Target, const WCHAR *Source, size_t Count);

/* wcscat, wcsncat: appends a string, or at most Count characters of it, and terminates the result. Only in Interlock.
   */
INTERLOCK_API WCHAR *InterlockWcscat(WCHAR *Target, const WCHAR *Source);
INTERLOCK_API WCHAR *InterlockWcsncat(WCHAR *Target, const WCHAR *Source, size_t Count);

/* wcscmp, wcsncmp: compares by the values of the characters. Only in Interlock. */
INTERLOCK_API int InterlockWcscmp(const WCHAR *First, const WCHAR *Second);
INTERLOCK_API int InterlockWcsncmp(const WCHAR *First, const WCHAR *Second, size_t Count);

/* _wcsicmp, _wcsnicmp: compares, ignoring the case of ASCII letters. Only in Interlock. */
INTERLOCK_API int InterlockWcsicmp(const WCHAR *First, const WCHAR *Second);
INTERLOCK_API int InterlockWcsnicmp(const WCHAR *First, const WCHAR *Second, size_t Count);

/* wcschr, wcsrchr: finds the first or last occurrence of a character; NULL if there is none. Only in Interlock. */
INTERLOCK_API WCHAR *InterlockWcschr(const WCHAR *String, WCHAR Character);
INTERLOCK_API WCHAR *InterlockWcsrchr(const WCHAR *String, WCHAR Character);

/* wcsstr: finds a string in another; NULL if there is none. Only in Interlock. */
INTERLOCK_API WCHAR *InterlockWcsstr(const WCHAR *String, const WCHAR *Part);

/* wcspbrk: finds the first character of a set; NULL if there is none. Only in Interlock. */
INTERLOCK_API WCHAR *InterlockWcspbrk(const WCHAR *String, const WCHAR *Set);

/* wcsspn, wcscspn: returns the length of the prefix of characters in a set, or outside it. Only in Interlock. */
INTERLOCK_API size_t InterlockWcsspn(const WCHAR *String, const WCHAR *Set);
INTERLOCK_API size_t InterlockWcscspn(const WCHAR *String, const WCHAR *Set);

/* _wcsdup: returns a copy for free(); NULL if memory is exhausted. Only in Interlock. */
INTERLOCK_API WCHAR *InterlockWcsdup(const WCHAR *String);

/* wcstol, wcstoul: converts a number in any base. Differs: long has 64 bits. Only in Interlock. */
INTERLOCK_API long InterlockWcstol(const WCHAR *String, WCHAR **End, int Base);
INTERLOCK_API unsigned long InterlockWcstoul(const WCHAR *String, WCHAR **End, int Base);

/* _wtoi: converts the decimal number at the beginning of a string. 0: there is none. Only in Interlock. */
INTERLOCK_API int InterlockWtoi(const WCHAR *String);

/* _vsnwprintf, _snwprintf: formats into a buffer. Returns the length; -1 if it did not fit, with the text truncated and
   terminated. Only in Interlock. */
INTERLOCK_API int InterlockVsnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments);
INTERLOCK_API int InterlockSnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, ...);

/* vfwprintf, fwprintf, wprintf: formats to a stream or to standard output, in UTF-8. Only in Interlock. */
INTERLOCK_API int InterlockVfwprintf(FILE *Stream, const WCHAR *Format, va_list Arguments);
INTERLOCK_API int InterlockFwprintf(FILE *Stream, const WCHAR *Format, ...);
INTERLOCK_API int InterlockWprintf(const WCHAR *Format, ...);
INTERLOCK_API int InterlockVwprintf(const WCHAR *Format, va_list Arguments);

INTERLOCK_END

#endif

/* The usual names. The host's functions of these names take 32-bit characters. */
#if defined(INTERLOCK_WIDE_NAMES) && !defined(INTERLOCK_WIDE_NAMES_H)
#define INTERLOCK_WIDE_NAMES_H

#ifdef __cplusplus
#include <cwchar> /* first: it undefines macros of these names */
#else
#include <wchar.h>
#endif

#define _wcsicmp InterlockWcsicmp
#define _wcsnicmp InterlockWcsnicmp
#define _wcsdup InterlockWcsdup
#define _wtoi InterlockWtoi
#define _snwprintf InterlockSnwprintf
#define _vsnwprintf InterlockVsnwprintf
#if __SIZEOF_WCHAR_T__ == 2
#define wcslen InterlockWcslen
#define wcsnlen InterlockWcsnlen
#define wcscpy InterlockWcscpy
#define wcsncpy InterlockWcsncpy
#define wcscat InterlockWcscat
#define wcsncat InterlockWcsncat
#define wcscmp InterlockWcscmp
#define wcsncmp InterlockWcsncmp
#define wcschr InterlockWcschr
#define wcsrchr InterlockWcsrchr
#define wcsstr InterlockWcsstr
#define wcspbrk InterlockWcspbrk
#define wcsspn InterlockWcsspn
#define wcscspn InterlockWcscspn
#define wcstol InterlockWcstol
#define wcstoul InterlockWcstoul
#define swprintf InterlockSnwprintf
#define vswprintf InterlockVsnwprintf
#define wprintf InterlockWprintf
#define fwprintf InterlockFwprintf
#ifdef __cplusplus
namespace std { /* where the standard library's headers look for them, if they come later */
using ::InterlockWcslen;
using ::InterlockWcsnlen;
using ::InterlockWcscpy;
using ::InterlockWcsncpy;
using ::InterlockWcscat;
using ::InterlockWcsncat;
using ::InterlockWcscmp;
using ::InterlockWcsncmp;
using ::InterlockWcschr;
using ::InterlockWcsrchr;
using ::InterlockWcsstr;
using ::InterlockWcspbrk;
using ::InterlockWcsspn;
using ::InterlockWcscspn;
using ::InterlockWcstol;
using ::InterlockWcstoul;
using ::InterlockSnwprintf;
using ::InterlockVsnwprintf;
using ::InterlockWprintf;
using ::InterlockFwprintf;
}
#endif
#endif

#endif
