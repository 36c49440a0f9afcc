/* Microsoft's names with the standard headers alone, in a source that has types of its own by names of windows.h. */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>
#include <wchar.h>
typedef unsigned long DWORD;
typedef enum { FALSE, TRUE } BOOL;
#define strcasecmp _stricmp
#define strdup _strdup
int main(void)
{
    char text[32], back[8];
    wchar_t wide[16];
    size_t n;
    time_t zero = 0;
    char when[26];
    BOOL ok = TRUE;
    DWORD d = 5;
    strcpy_s(text, sizeof(text), "AbC");
    _strlwr_s(text, sizeof text);
    if (strcmp(text, "abc") || strcasecmp("ABC", text) || stricmp("aBc", text) || _strnicmp("ABx", text, 2)) return 1;
    if (strcmp(_strupr(text), "ABC") || strcmp(_strrev(text), "CBA")) return 2;
    if (strcmp(_itoa(255, text, 16), "ff") || _atoi64("5000000000") != 5000000000LL) return 3;
    if (wcslen(L"four") != 4 || sizeof(wchar_t) != 2) return 4;
    if (wcscmp(wcscat(wcscpy(wide, L"ab"), L"cd"), L"abcd") || wcstol(L"42", NULL, 10) != 42 || wcscspn(L"abc", L"c") != 2) return 14;
    if (mbstowcs_s(&n, wide, 16, "gr\xc3\xbcn", _TRUNCATE) || n != 5 || wide[2] != 0xfc) return 5;
    if (wcstombs_s(&n, text, sizeof text, wide, _TRUNCATE) || n != 6 || strcmp(text, "gr\xc3\xbcn")) return 6;
    if (wcstombs_s(&n, back, 4, wide, _TRUNCATE) != STRUNCATE || strcmp(back, "gr") ) return 7;
    if (ctime_s(when, sizeof when, &zero) || strlen(when) != 25) return 8;
    if (_scprintf("%I64d", 1234567890123LL) != 13 || _scwprintf(L"%s-%d", L"abc", 5) != 5) return 9;
    if (_putenv_s("INTERLOCK_CHECK", "y") || strcmp(getenv("INTERLOCK_CHECK"), "y") || _putenv("INTERLOCK_CHECK=") || getenv("INTERLOCK_CHECK")) return 10;
    free(strdup(text));
    sprintf_s(text, sizeof text, "%lu %d", d, ok);
    if (_countof(back) != 8) return 11;
    printf("%I64u %s\n", 5000000000ULL, text);
    return 0;
}
