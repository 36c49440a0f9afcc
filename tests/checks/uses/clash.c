/* Interlock with the prefix il_ beside other.c: each side calls its own functions. */
#ifdef AMALGAMATION
#include "interlock.h"
#else
#include <interlock/win32.h>
#endif

#include "other.h"

static int uses_its_own(void)
{
    static const WCHAR name[] = {'e', 0};
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, name);

    Sleep(1);
    return event != NULL && SetEvent(event) && WaitForSingleObject(event, 0) == WAIT_OBJECT_0 && CloseHandle(event);
}

/* Programs ask for functions by the names of Windows. The shared library has a table of them. */
static int finds_by_name(void)
{
    HMODULE module = GetModuleHandleA("kernel32.dll");

#ifdef SHARED
    return GetProcAddress(module, "Sleep") == (FARPROC)Sleep && GetProcAddress(module, "il_Sleep") == NULL;
#else
    return module != NULL;
#endif
}

int main(void)
{
    return !uses_its_own() ? 1 : other_calls() != 11 ? 2 : !finds_by_name() ? 3 : 0;
}
