/* procname.c: functions of Windows' modules that are macros, inline or have another name here, for GetProcAddress. */
#include <interlock/interlocked.h>
#include <interlock/win32/extra.h>

#include "base.h"

typedef struct _BASE_NAME {
    PCSTR Name;
    PVOID Function;
    ULONG Modules; /* BASE_IN_ bits */
} BASE_NAME;

static VOID BaseZeroMemory(PVOID Destination, SIZE_T Length)
{
    memset(Destination, 0, Length);
}

static VOID BaseFillMemory(PVOID Destination, SIZE_T Length, UCHAR Fill)
{
    memset(Destination, Fill, Length);
}

#define BASE_IN_SYSTEM (BASE_IN_KERNEL | BASE_IN_NT)
#define BASE_IN_STRINGS (BASE_IN_CRT | BASE_IN_NT)

static const BASE_NAME BaseNames[] = {
    {"RtlCopyMemory", (PVOID)memmove, BASE_IN_SYSTEM},
    {"RtlMoveMemory", (PVOID)memmove, BASE_IN_SYSTEM},
    {"RtlZeroMemory", (PVOID)BaseZeroMemory, BASE_IN_SYSTEM},
    {"RtlFillMemory", (PVOID)BaseFillMemory, BASE_IN_SYSTEM},
    {"RtlCompareMemory", (PVOID)RtlCompareMemory, BASE_IN_SYSTEM},
    {"InterlockedIncrement", (PVOID)InterlockedIncrement, BASE_IN_KERNEL},
    {"InterlockedDecrement", (PVOID)InterlockedDecrement, BASE_IN_KERNEL},
    {"InterlockedExchange", (PVOID)InterlockedExchange, BASE_IN_KERNEL},
    {"InterlockedExchangeAdd", (PVOID)InterlockedExchangeAdd, BASE_IN_KERNEL},
    {"InterlockedCompareExchange", (PVOID)InterlockedCompareExchange, BASE_IN_KERNEL},
    {"InterlockedCompareExchange64", (PVOID)InterlockedCompareExchange64, BASE_IN_KERNEL},
    {"_getpid", (PVOID)_getpid, BASE_IN_CRT},
    {"wcslen", (PVOID)InterlockWcslen, BASE_IN_STRINGS},
    {"wcscpy", (PVOID)InterlockWcscpy, BASE_IN_STRINGS},
    {"wcsncpy", (PVOID)InterlockWcsncpy, BASE_IN_STRINGS},
    {"wcscat", (PVOID)InterlockWcscat, BASE_IN_STRINGS},
    {"wcscmp", (PVOID)InterlockWcscmp, BASE_IN_STRINGS},
    {"wcsncmp", (PVOID)InterlockWcsncmp, BASE_IN_STRINGS},
    {"wcschr", (PVOID)InterlockWcschr, BASE_IN_STRINGS},
    {"wcsrchr", (PVOID)InterlockWcsrchr, BASE_IN_STRINGS},
    {"wcsstr", (PVOID)InterlockWcsstr, BASE_IN_STRINGS},
    {"_wcsicmp", (PVOID)InterlockWcsicmp, BASE_IN_STRINGS},
    {"_wcsnicmp", (PVOID)InterlockWcsnicmp, BASE_IN_STRINGS},
    {"_wcsdup", (PVOID)InterlockWcsdup, BASE_IN_CRT},
    {"_wtoi", (PVOID)InterlockWtoi, BASE_IN_STRINGS},
    {"_snwprintf", (PVOID)InterlockSnwprintf, BASE_IN_STRINGS},
};

PVOID BaseFindName(PCSTR Name, ULONG Modules)
{
    for (SIZE_T i = 0; i < RTL_NUMBER_OF(BaseNames); i++) {
        if ((BaseNames[i].Modules & Modules) != 0 && strcmp(BaseNames[i].Name, Name) == 0) {
            return BaseNames[i].Function;
        }
    }
    return NULL;
}
