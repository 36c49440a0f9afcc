/*
 * module.c: modules and their functions. kernel32, kernelbase, ntdll, msvcrt, ucrtbase and winmm are this library: ntdll has
 * the names that begin with Nt, Zw and Rtl, the C libraries those of the C library, winmm the multimedia timers, and the
 * other two have the rest. None of them has the kernel's names. API sets (api-ms-win-...) stand for kernelbase, ucrtbase and
 * winmm.
 */
#include <ctype.h>

#include <interlock/win32/extra.h>

#include "../hal/environment.h"
#include "base.h"

/* In which modules something is. */
#define BASE_IN_KERNEL 0x1u
#define BASE_IN_NT 0x2u
#define BASE_IN_CRT 0x4u
#define BASE_IN_MULTIMEDIA 0x8u

typedef struct _BASE_MODULE {
    PCSTR Name;
    HAL_MODULE Where;
    ULONG Kind; /* a BASE_IN_ bit; 0: the program */
} BASE_MODULE;

static const BASE_MODULE BaseProgram = {"", HalProgram, 0};
static const BASE_MODULE BaseModules[] = {
    {"kernel32", HalLibrary, BASE_IN_KERNEL},
    {"kernelbase", HalLibrary, BASE_IN_KERNEL},
    {"ntdll", HalLibrary, BASE_IN_NT},
    {"msvcrt", HalLibrary, BASE_IN_CRT},
    {"ucrtbase", HalLibrary, BASE_IN_CRT},
    {"winmm", HalLibrary, BASE_IN_MULTIMEDIA},
};
static const struct {
    PCSTR Prefix;
    PCSTR Name;
} BaseApiSets[] = {{"api-ms-win-core-", "kernelbase"}, {"api-ms-win-crt-", "ucrtbase"}, {"api-ms-win-mm-", "winmm"}};

#define BASE_FROM_MODULE(Module) ((HMODULE)(ULONG_PTR)(Module))

static BOOLEAN BaseEqualsIgnoringCase(PCSTR First, PCSTR Second)
{
    while (*First != 0 && tolower((UCHAR)*First) == tolower((UCHAR)*Second)) {
        First++;
        Second++;
    }
    return *First == *Second;
}

/* The module that an API set stands for; any other name unchanged. */
static PCSTR BaseResolveApiSet(PSTR Name)
{
    for (SIZE_T i = 0; i < RTL_NUMBER_OF(BaseApiSets); i++) {
        SIZE_T Length = strlen(BaseApiSets[i].Prefix);
        CHAR After = strlen(Name) > Length ? Name[Length] : 0;
        BOOLEAN Matches;
        if (After != 0) {
            Name[Length] = 0;
            Matches = BaseEqualsIgnoringCase(Name, BaseApiSets[i].Prefix);
            Name[Length] = After;
            if (Matches) {
                return BaseApiSets[i].Name;
            }
        }
    }
    return Name;
}

static HMODULE BaseNoModule(VOID)
{
    BaseSetLastError(ERROR_MOD_NOT_FOUND);
    return NULL;
}

/* A trailing dot means no extension; otherwise the default is .dll. */
HMODULE GetModuleHandleA(LPCSTR lpModuleName)
{
    CHAR Name[MAX_PATH];
    PCSTR Module;
    SIZE_T i;
    if (lpModuleName == NULL) {
        return BASE_FROM_MODULE(&BaseProgram);
    }
    if (strlen(lpModuleName) >= sizeof(Name)) {
        return BaseNoModule();
    }
    strcpy(Name, lpModuleName);
    if (strlen(Name) > 4 && BaseEqualsIgnoringCase(Name + strlen(Name) - 4, ".dll")) {
        Name[strlen(Name) - 4] = 0;
    }
    Module = BaseResolveApiSet(Name);
    for (i = 0; i < RTL_NUMBER_OF(BaseModules); i++) {
        if (BaseEqualsIgnoringCase(Module, BaseModules[i].Name)) {
            return BASE_FROM_MODULE(&BaseModules[i]);
        }
    }
    return BaseNoModule();
}

HMODULE GetModuleHandleW(LPCWSTR lpModuleName)
{
    CHAR Name[MAX_PATH];
    if (lpModuleName == NULL) {
        return GetModuleHandleA(NULL);
    }
    if (ExpWideToUtf8(lpModuleName, InterlockWcslen(lpModuleName) + 1, Name, sizeof(Name), NULL) > sizeof(Name)) {
        return BaseNoModule();
    }
    return GetModuleHandleA(Name);
}

static BOOL BaseStoreModule(DWORD Flags, HMODULE Module, HMODULE *Stored)
{
    if (Stored == NULL || Flags & GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    *Stored = Module;
    return Module != NULL;
}

BOOL GetModuleHandleExA(DWORD dwFlags, LPCSTR lpModuleName, HMODULE *phModule)
{
    return BaseStoreModule(dwFlags, GetModuleHandleA(lpModuleName), phModule);
}

BOOL GetModuleHandleExW(DWORD dwFlags, LPCWSTR lpModuleName, HMODULE *phModule)
{
    return BaseStoreModule(dwFlags, GetModuleHandleW(lpModuleName), phModule);
}

HMODULE LoadLibraryA(LPCSTR lpLibFileName)
{
    if (lpLibFileName == NULL) {
        return BaseNoModule();
    }
    return GetModuleHandleA(lpLibFileName);
}

HMODULE LoadLibraryW(LPCWSTR lpLibFileName)
{
    if (lpLibFileName == NULL) {
        return BaseNoModule();
    }
    return GetModuleHandleW(lpLibFileName);
}

HMODULE LoadLibraryExA(LPCSTR lpLibFileName, HANDLE hFile, DWORD dwFlags)
{
    UNREFERENCED_PARAMETER(hFile);
    UNREFERENCED_PARAMETER(dwFlags);
    return LoadLibraryA(lpLibFileName);
}

HMODULE LoadLibraryExW(LPCWSTR lpLibFileName, HANDLE hFile, DWORD dwFlags)
{
    UNREFERENCED_PARAMETER(hFile);
    UNREFERENCED_PARAMETER(dwFlags);
    return LoadLibraryW(lpLibFileName);
}

static const BASE_MODULE *BaseModuleOf(HMODULE Module)
{
    SIZE_T i;
    for (i = 0; i < RTL_NUMBER_OF(BaseModules); i++) {
        if (Module == BASE_FROM_MODULE(&BaseModules[i])) {
            return &BaseModules[i];
        }
    }
    return Module == NULL || Module == BASE_FROM_MODULE(&BaseProgram) ? &BaseProgram : NULL;
}

BOOL FreeLibrary(HMODULE hLibModule)
{
    if (hLibModule == NULL || BaseModuleOf(hLibModule) == NULL) {
        BaseSetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    return TRUE;
}

/* A prefix counts only if a capital letter follows: ExitProcess has none. */
static BOOLEAN BaseHasPrefix(PCSTR Name, const PCSTR *Prefixes)
{
    for (; *Prefixes != NULL; Prefixes++) {
        SIZE_T Length = strlen(*Prefixes);
        if (strncmp(Name, *Prefixes, Length) == 0 && isupper((UCHAR)Name[Length])) {
            return TRUE;
        }
    }
    return FALSE;
}

/* Functions of the modules that are macros, inline or have another name here. */

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

/* What a module has under a name that is no exported function; NULL: nothing. */
static PVOID BaseFindName(PCSTR Name, ULONG Modules)
{
    for (SIZE_T i = 0; i < RTL_NUMBER_OF(BaseNames); i++) {
        if ((BaseNames[i].Modules & Modules) != 0 && strcmp(BaseNames[i].Name, Name) == 0) {
            return BaseNames[i].Function;
        }
    }
    return NULL;
}

/* Which modules have an exported name: BASE_IN_ bits. */
static ULONG BaseModulesOfName(PCSTR Name)
{
    static const PCSTR Services[] = {"Nt", "Zw", "Rtl", "Tp", "Dbg", "Ldr", NULL};
    static const PCSTR Kernel[] = {"Ke", "Ki", "Ex", "Exf", "Ob", "Obf", "Ps", "Io", "Interlock", NULL};
    static const PCSTR Multimedia[] = {"time", NULL};
    SIZE_T Length = strlen(Name);
    if (BaseHasPrefix(Name, Multimedia)) { /* kernel32 has no timers, but the time and its period */
        BOOLEAN Timer = strcmp(Name, "timeSetEvent") == 0 || strcmp(Name, "timeKillEvent") == 0;
        return Timer ? BASE_IN_MULTIMEDIA : BASE_IN_MULTIMEDIA | BASE_IN_KERNEL;
    }
    if (BaseHasPrefix(Name, Kernel)) {
        return 0;
    }
    if (BaseHasPrefix(Name, Services)) {
        return BASE_IN_NT;
    }
    return Name[0] == '_' || (Length > 2 && strcmp(Name + Length - 2, "_s") == 0) ? BASE_IN_CRT : BASE_IN_KERNEL;
}

/* Functions have names but no ordinals. */
FARPROC GetProcAddress(HMODULE hModule, LPCSTR lpProcName)
{
    const BASE_MODULE *Module = BaseModuleOf(hModule);
    PVOID Found = NULL;
    if (Module == NULL) {
        BaseSetLastError(ERROR_MOD_NOT_FOUND);
        return NULL;
    }
    if ((ULONG_PTR)lpProcName > MAXUSHORT) {
        if (Module->Where == HalProgram || (BaseModulesOfName(lpProcName) & Module->Kind) != 0) {
            Found = HalFindExport(Module->Where, lpProcName);
        }
        if (Found == NULL) {
            Found = BaseFindName(lpProcName, Module->Kind);
        }
    }
    if (Found == NULL) {
        BaseSetLastError(ERROR_PROC_NOT_FOUND);
    }
    return (FARPROC)Found;
}

/* As much of the path as fits, terminated. */
static DWORD BaseStorePathResult(SIZE_T Length, DWORD Size)
{
    if (Length < Size) {
        return (DWORD)Length;
    }
    BaseSetLastError(ERROR_INSUFFICIENT_BUFFER);
    return Size;
}

/* 0: there is no such module. */
static SIZE_T BaseQueryModulePath(HMODULE Handle, PSTR Path, SIZE_T Size)
{
    const BASE_MODULE *Module = BaseModuleOf(Handle);
    SIZE_T Length = Module != NULL ? HalQueryModulePath(Module->Where, Path, Size) : 0;
    if (Length == 0) {
        BaseSetLastError(ERROR_MOD_NOT_FOUND);
    }
    return Length;
}

DWORD GetModuleFileNameA(HMODULE hModule, LPSTR lpFilename, DWORD nSize)
{
    CHAR Path[HAL_LONGEST_PATH];
    SIZE_T Length = BaseQueryModulePath(hModule, Path, sizeof(Path));
    if (Length == 0) {
        return 0;
    }
    if (nSize != 0) {
        lstrcpynA(lpFilename, Path, (int)(nSize < sizeof(Path) ? nSize : sizeof(Path)));
    }
    return BaseStorePathResult(Length, nSize);
}

DWORD GetModuleFileNameW(HMODULE hModule, LPWSTR lpFilename, DWORD nSize)
{
    CHAR Path[HAL_LONGEST_PATH];
    WCHAR Wide[HAL_LONGEST_PATH];
    SIZE_T Length = BaseQueryModulePath(hModule, Path, sizeof(Path));
    if (Length == 0) {
        return 0;
    }
    Length = ExpUtf8ToWide(Path, Length + 1, Wide, HAL_LONGEST_PATH, NULL) - 1;
    if (nSize != 0) {
        lstrcpynW(lpFilename, Wide, (int)(nSize < HAL_LONGEST_PATH ? nSize : HAL_LONGEST_PATH));
    }
    return BaseStorePathResult(Length, nSize);
}
