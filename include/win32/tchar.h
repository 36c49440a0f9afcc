#ifndef INTERLOCK_WIN32_TCHAR_H
#define INTERLOCK_WIN32_TCHAR_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <interlock/win32.h>
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

#define _TEOF EOF
#define _tcsclen _tcslen
#define _tcsncicmp _tcsnicmp
#define _tcsinc(At) ((At) + 1)
#define _tcsdec(Start, At) ((Start) < (At) ? (At)-1 : NULL)
#define _tstoi _ttoi
#define _tstol _ttol
#define _tstoi64 _ttoi64
#define _tstof _ttof

#ifdef UNICODE
/* Classifies ASCII only, as the other functions of 16-bit characters do. */
#define INTERLOCK_TCHAR_IS(Function, Character) ((unsigned)(Character) < 128 && Function((int)(Character)) != 0)
#define _istalpha(Character) INTERLOCK_TCHAR_IS(isalpha, Character)
#define _istalnum(Character) INTERLOCK_TCHAR_IS(isalnum, Character)
#define _istdigit(Character) INTERLOCK_TCHAR_IS(isdigit, Character)
#define _istxdigit(Character) INTERLOCK_TCHAR_IS(isxdigit, Character)
#define _istspace(Character) INTERLOCK_TCHAR_IS(isspace, Character)
#define _istupper(Character) INTERLOCK_TCHAR_IS(isupper, Character)
#define _istlower(Character) INTERLOCK_TCHAR_IS(islower, Character)
#define _istprint(Character) INTERLOCK_TCHAR_IS(isprint, Character)
#define _istpunct(Character) INTERLOCK_TCHAR_IS(ispunct, Character)
#define _totupper(Character) ((TCHAR)((unsigned)(Character) < 128 ? toupper((int)(Character)) : (int)(Character)))
#define _totlower(Character) ((TCHAR)((unsigned)(Character) < 128 ? tolower((int)(Character)) : (int)(Character)))
#define _fputts(Text, Stream) InterlockFwprintf(Stream, __TEXT("%s"), Text)
#define _putts(Text) InterlockWprintf(__TEXT("%s\n"), Text)
#define _puttchar(Character) InterlockWprintf(__TEXT("%c"), Character)
#define _puttc(Character, Stream) InterlockFwprintf(Stream, __TEXT("%c"), Character)
#define _stprintf _swprintf
#define _vstprintf _vswprintf
#define _vtprintf InterlockVwprintf
#define _vftprintf InterlockVfwprintf
#define _sctprintf _scwprintf
#define _vsctprintf _vscwprintf
#define _vsntprintf_s _vsnwprintf_s
#define _tfopen _wfopen
#define _tfopen_s _wfopen_s
#define _ttol _wtol
#define _ttoi64 _wtoi64
#define _ttof _wtof
#define _tcstoi64 _wcstoi64
#define _tcstoui64 _wcstoui64
#define _tcslwr _wcslwr
#define _tcsupr _wcsupr
#define _tcsrev _wcsrev
#define _tcslwr_s _wcslwr_s
#define _tcsupr_s _wcsupr_s
#define _tcsnlen_s wcsnlen_s
#define _itot _itow
#define _itot_s _itow_s
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
#define _istalpha isalpha
#define _istalnum isalnum
#define _istdigit isdigit
#define _istxdigit isxdigit
#define _istspace isspace
#define _istupper isupper
#define _istlower islower
#define _istprint isprint
#define _istpunct ispunct
#define _totupper toupper
#define _totlower tolower
#define _fputts fputs
#define _putts puts
#define _puttchar putchar
#define _puttc putc
#define _vstprintf vsprintf
#define _vtprintf vprintf
#define _vftprintf vfprintf
#define _sctprintf _scprintf
#define _vsctprintf _vscprintf
#define _vsntprintf_s _vsnprintf_s
#define _tfopen fopen
#define _tfopen_s fopen_s
#define _ttol atol
#define _ttoi64 _atoi64
#define _ttof atof
#define _tcstoi64 _strtoi64
#define _tcstoui64 _strtoui64
#define _tcslwr _strlwr
#define _tcsupr _strupr
#define _tcsrev _strrev
#define _tcslwr_s _strlwr_s
#define _tcsupr_s _strupr_s
#define _tcsnlen_s strnlen_s
#define _itot _itoa
#define _itot_s _itoa_s
#define _tcstod strtod
#define _tgetenv getenv
#define _tsystem system
#define _tcslen strlen
#define _tcsnlen strnlen
#define _tcscpy strcpy
#define _tcsncpy strncpy
#define _tcscat strcat
#define _tcsncat strncat
#define _tcscmp strcmp
#define _tcsncmp strncmp
#define _tcsicmp _stricmp
#define _tcsnicmp _strnicmp
#define _tcschr strchr
#define _tcsrchr strrchr
#define _tcsstr strstr
#define _tcspbrk strpbrk
#define _tcsspn strspn
#define _tcscspn strcspn
#define _tcsdup _strdup
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
