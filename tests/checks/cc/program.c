#ifndef _WIN32
#error "not a compiler for Windows"
#endif
#if defined(__x86_64__) && (!defined(_WIN64) || !defined(_M_X64) || !defined(_M_AMD64))
#error "not a compiler for x64"
#endif

#include "counter.h"

#include <windows.h>

#include <stdio.h>
#include <string.h>

typedef char wide_characters_have_16_bits[sizeof(wchar_t) == 2 && sizeof(L"ab") == 6 ? 1 : -1];

static __declspec(noinline) int __cdecl is_named_event_found(void)
{
    HANDLE made = CreateEventW(NULL, TRUE, TRUE, L"program"), found = OpenEventW(SYNCHRONIZE, FALSE, L"program");

    return made != NULL && WaitForSingleObject(found, 0) == WAIT_OBJECT_0;
}

int main(void)
{
    counter_value value = counter_add(4, 1000);

    printf("%s %d\n", counter_title, (int)value);
    return value == 4000 && strcmp(counter_title, "counter") == 0 && is_named_event_found() ? 0 : 1;
}
