// Wide strings with the standard library's headers on both sides of windows.h. Exits with 0 if all is of 16 bits.
#include <string>
#include <windows.h>
#include <cwchar>
#include <iostream>
#include <tchar.h>

static int Compare(LPCWSTR a, LPCWSTR b)
{
    return lstrcmpiW(a, b);
}

int main()
{
    // std::wstring is compiled for the host's wchar_t; any other string is fine.
#if __SIZEOF_WCHAR_T__ == 2
    LPCTSTR name = TEXT("WideSample");
#else
    std::basic_string<TCHAR> string(TEXT("Wide"));
    string += TEXT("Sample");
    LPCTSTR name = string.c_str();
#endif
    TCHAR text[32];

    HANDLE event = CreateEvent(NULL, TRUE, FALSE, name);
    if (event == NULL || GetLastError() != ERROR_SUCCESS)
        return 1;
    HANDLE again = CreateEvent(NULL, TRUE, FALSE, TEXT("WideSample"));
    if (again == NULL || GetLastError() != ERROR_ALREADY_EXISTS)
        return 2;
    CloseHandle(again);
    CloseHandle(event);
    if (_stprintf_s(text, ARRAYSIZE(text), TEXT("%s %d"), name, 5) != 12 || _tcslen(text) != 12)
        return 3;
    if (_tcscmp(text, TEXT("WideSample 5")) != 0 || sizeof(WCHAR) != 2)
        return 4;
#if __SIZEOF_WCHAR_T__ == 2
    WCHAR wide[32] = L"abc";
    if (wcslen(wide) != 3 || wcscmp(wcscat(wide, L"def"), L"abcdef") != 0 || wcschr(wide, L'e') != wide + 4)
        return 5;
    if (_snwprintf(wide, 32, L"%ls-%hs-%u", L"x", "y", 7u) != 5 || wcscmp(wide, L"x-y-7") != 0)
        return 6;
    if (swprintf(wide, 32, L"%s", L"swprintf") != 8 || wcstol(L"42", NULL, 10) != 42)
        return 7;
    if (Compare(wide, L"SWPRINTF") != 0 || _wcsicmp(wide, L"SwPrintF") != 0)
        return 8;
    wprintf(L"%s\n", wide);
#else
    if (Compare(u"abc", u"ABC") != 0)
        return 5;
#endif
    return 0;
}
