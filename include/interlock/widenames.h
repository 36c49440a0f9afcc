/* widenames.h: the usual names of the functions of widestring.h. wdm.h, windows.h and tchar.h include it. */
#ifndef INTERLOCK_WIDENAMES_H
#define INTERLOCK_WIDENAMES_H

#ifdef __cplusplus
#include <cwchar> /* first: it undefines macros of these names */
#else
#include <wchar.h>
#endif

#include <interlock/widestring.h>

/* Wide strings of 16-bit characters (widestring.h). The host's functions of these names take 32-bit ones. */
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
