/*
 * win32/language.h: keywords and names that Microsoft's compilers and C library add to C and C++. windows.h and tchar.h
 * include it; win32.h does not.
 */
#ifndef INTERLOCK_WIN32_LANGUAGE_H
#define INTERLOCK_WIN32_LANGUAGE_H

#include <stdlib.h>
#include <strings.h>
#ifdef __cplusplus
#include <cwchar> /* first: it undefines macros of these names */
#else
#include <wchar.h>
#endif

#include <interlock/win32/base.h>
#include <interlock/win32/keywords.h>
#ifndef __cplusplus
#include <interlock/win32/sal1.h>
#endif
#include <interlock/win32/longs.h>
#include <interlock/win32/version.h>

#define DECLSPEC_THREAD __declspec(thread)

#ifndef _countof
#define _countof(Array) RTL_NUMBER_OF(Array)
#endif

/* Not in C++, where they break the standard library. */
#if !defined(__cplusplus) && !defined(NOMINMAX)
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#endif
#define __max(a, b) (((a) > (b)) ? (a) : (b))
#define __min(a, b) (((a) < (b)) ? (a) : (b))

/* Microsoft's names of functions of the host's C library. */
#define _stricmp strcasecmp
#define _strnicmp strncasecmp
#define _strdup strdup

/* Wide strings of 16-bit characters (win32/base.h). The host's functions of these names take 32-bit ones. */
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
