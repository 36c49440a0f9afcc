#ifndef INTERLOCK_WIN32_TCHAR_H
#define INTERLOCK_WIN32_TCHAR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <interlock/win32/base.h>
#include <interlock/win32/language.h>

#include <corecrt.h>

/* With _UNICODE strings have 16-bit characters, as with UNICODE in windows.h. */
#if defined(_UNICODE) && !defined(UNICODE)
#error "_UNICODE without UNICODE: a TCHAR would be two things."
#endif

#define _T(s) __TEXT(s)
#define _TEXT(s) __TEXT(s)
typedef TCHAR _TCHAR;
typedef TCHAR _TSCHAR, _TUCHAR, _TXCHAR;
#ifdef UNICODE
#define _tmain wmain /* link with interlock-wmain: its main passes wide arguments */
#else
#define _tmain main
#endif

#ifdef UNICODE
#define _tcslen InterlockWcslen
#define _tcsnlen InterlockWcsnlen
#define _tcscpy InterlockWcscpy
#define _tcsncpy InterlockWcsncpy
#define _tcscat InterlockWcscat
#define _tcsncat InterlockWcsncat
#define _tcscmp InterlockWcscmp
#define _tcsncmp InterlockWcsncmp
#define _tcsicmp InterlockWcsicmp
#define _tcsnicmp InterlockWcsnicmp
#define _tcschr InterlockWcschr
#define _tcsrchr InterlockWcsrchr
#define _tcsstr InterlockWcsstr
#define _tcspbrk InterlockWcspbrk
#define _tcsspn InterlockWcsspn
#define _tcscspn InterlockWcscspn
#define _tcsdup InterlockWcsdup
#define _tcstol InterlockWcstol
#define _tcstoul InterlockWcstoul
#define _ttoi InterlockWtoi
#define _tprintf InterlockWprintf
#define _ftprintf InterlockFwprintf
#define _sntprintf InterlockSnwprintf
#define _vsntprintf InterlockVsnwprintf
#define _stprintf_s swprintf_s
#define _vstprintf_s vswprintf_s
#define _sntprintf_s _snwprintf_s
#define _tcscpy_s wcscpy_s
#define _tcsncpy_s wcsncpy_s
#define _tcscat_s wcscat_s
#define _tcsncat_s wcsncat_s
#define _tcstok_s wcstok_s
#else
#define _tcslen strlen
#define _tcsnlen strnlen
#define _tcscpy strcpy
#define _tcsncpy strncpy
#define _tcscat strcat
#define _tcsncat strncat
#define _tcscmp strcmp
#define _tcsncmp strncmp
#define _tcsicmp strcasecmp
#define _tcsnicmp strncasecmp
#define _tcschr strchr
#define _tcsrchr strrchr
#define _tcsstr strstr
#define _tcspbrk strpbrk
#define _tcsspn strspn
#define _tcscspn strcspn
#define _tcsdup strdup
#define _tcstol strtol
#define _tcstoul strtoul
#define _ttoi atoi
#define _tprintf printf
#define _ftprintf fprintf
#define _sntprintf snprintf
#define _vsntprintf vsnprintf
#define _stprintf sprintf
#define _stprintf_s sprintf_s
#define _vstprintf_s vsprintf_s
#define _sntprintf_s _snprintf_s
#define _tcscpy_s strcpy_s
#define _tcsncpy_s strncpy_s
#define _tcscat_s strcat_s
#define _tcsncat_s strncat_s
#define _tcstok_s strtok_s
#endif

#endif
