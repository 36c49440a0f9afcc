/*
 * module.c: modules, their functions, and DllMain. kernel32, kernelbase, ntdll, msvcrt, ucrtbase and winmm are this library:
 * ntdll has the names that begin with Nt, Zw and Rtl, the C libraries those of the C library, winmm the multimedia timers, and
 * the other two have the rest. None of them has the kernel's names. API sets (api-ms-win-...) stand for kernelbase, ucrtbase
 * and winmm.
 */
#include <ctype.h>
#include <stdlib.h>

#include <interlock/win32/extra.h>

#include "../hal/hal.h"
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
    RtlSetLastWin32Error(ERROR_MOD_NOT_FOUND);
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
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
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
        RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
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
        RtlSetLastWin32Error(ERROR_MOD_NOT_FOUND);
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
        RtlSetLastWin32Error(ERROR_PROC_NOT_FOUND);
    }
    return (FARPROC)Found;
}

/* Stores as much of the path as fits, terminated. */
static DWORD BaseStorePathResult(SIZE_T Length, DWORD Size)
{
    if (Length < Size) {
        return (DWORD)Length;
    }
    RtlSetLastWin32Error(ERROR_INSUFFICIENT_BUFFER);
    return Size;
}

/* 0: there is no such module. */
static SIZE_T BaseQueryModulePath(HMODULE Handle, PSTR Path, SIZE_T Size)
{
    const BASE_MODULE *Module = BaseModuleOf(Handle);
    SIZE_T Length = Module != NULL ? HalQueryModulePath(Module->Where, Path, Size) : 0;
    if (Length == 0) {
        RtlSetLastWin32Error(ERROR_MOD_NOT_FOUND);
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

/*
 * DllMain and TLS callbacks.
 *
 * The modules are in a list, in the order in which they were attached. Attaching calls them in this order, detaching in
 * the opposite one. A lock is held during the calls, like the loader lock of Windows: a routine that waits for another
 * thread to begin or end deadlocks here as well. It is recursive, since a routine may load another module.
 */

#define BASE_PROCESS_ENDS ((PVOID)1) /* Reserved is not NULL */

static RTL_CRITICAL_SECTION BaseLoaderLock = {
    .DebugInfo = (PRTL_CRITICAL_SECTION_DEBUG)(LONG_PTR)-1,
    .LockCount = -1,
    .SpinCount = 2000,
};
static LIST_ENTRY BaseModuleList = {&BaseModuleList, &BaseModuleList};
static volatile BOOLEAN BaseProcessEnds;

static VOID BaseNoticeProcessEnd(VOID)
{
    /* relaxed: destructors run later on this same thread */
    __atomic_store_n(&BaseProcessEnds, TRUE, __ATOMIC_RELAXED);
}

static BOOL BaseCallModule(PINTERLOCK_MODULE Module, DWORD Reason, PVOID Reserved)
{
    if (Module->TlsCallback != NULL) {
        Module->TlsCallback(Module->Base, Reason, Reserved);
        return TRUE;
    }
    return Module->EntryPoint(Module->Base, Reason, Reserved);
}

/* TLS callbacks first, then DllMain. */
static VOID BaseNotifyThread(DWORD Reason)
{
    BOOLEAN Forward = Reason == DLL_THREAD_ATTACH;
    /* relaxed: a module that is attached at this moment may count as attached later */
    if (__atomic_load_n(&BaseModuleList.Flink, __ATOMIC_RELAXED) == &BaseModuleList) {
        return;
    }
    RtlEnterCriticalSection(&BaseLoaderLock);
    for (ULONG Pass = 0; Pass < 2; Pass++) {
        PLIST_ENTRY Entry = Forward ? BaseModuleList.Flink : BaseModuleList.Blink;
        while (Entry != &BaseModuleList) {
            PINTERLOCK_MODULE Module = CONTAINING_RECORD(Entry, INTERLOCK_MODULE, Links);
            if ((Module->TlsCallback != NULL) == (Pass == 0) && !Module->NoThreadCalls) {
                BaseCallModule(Module, Reason, NULL);
            }
            Entry = Forward ? Entry->Flink : Entry->Blink;
        }
    }
    RtlLeaveCriticalSection(&BaseLoaderLock);
}

static VOID BaseThreadBegins(PETHREAD Thread)
{
    UNREFERENCED_PARAMETER(Thread);
    BaseNotifyThread(DLL_THREAD_ATTACH);
}

VOID BaseThreadEnds(PBASE_THREAD Thread)
{
    if (!Thread->Detached) {
        Thread->Detached = TRUE;
        BaseNotifyThread(DLL_THREAD_DETACH);
    }
}

VOID InterlockAttachModule(PINTERLOCK_MODULE Module)
{
    static BOOLEAN Watched; /* under the lock */
    BOOL Attached;
    RtlEnterCriticalSection(&BaseLoaderLock);
    if (!Watched) {
        Watched = TRUE;
        BaseWatchThreadExits();
        PspSetThreadStart(BaseThreadBegins);
        atexit(BaseNoticeProcessEnd);
    }
    Module->Base = HalFindModuleBase(Module);
    Attached = BaseCallModule(Module, DLL_PROCESS_ATTACH, NULL);
    if (Attached) {
        InsertTailList(&BaseModuleList, &Module->Links);
    }
    RtlLeaveCriticalSection(&BaseLoaderLock);
    if (!Attached) {
        RtlRaiseStatus(STATUS_DLL_INIT_FAILED);
    }
}

VOID InterlockDetachModule(PINTERLOCK_MODULE Module)
{
    RtlEnterCriticalSection(&BaseLoaderLock);
    if (Module->Links.Flink != NULL) {
        RemoveEntryList(&Module->Links);
        Module->Links.Flink = NULL;
        /* relaxed: set on this same thread, or the process does not end */
        BaseCallModule(Module, DLL_PROCESS_DETACH,
                       __atomic_load_n(&BaseProcessEnds, __ATOMIC_RELAXED) ? BASE_PROCESS_ENDS : NULL);
    }
    RtlLeaveCriticalSection(&BaseLoaderLock);
}

VOID InterlockAttachThread(VOID)
{
    BaseNotifyThread(DLL_THREAD_ATTACH);
}

BOOL DisableThreadLibraryCalls(HMODULE hLibModule)
{
    BOOL Found = FALSE;
    RtlEnterCriticalSection(&BaseLoaderLock);
    for (PLIST_ENTRY Entry = BaseModuleList.Flink; Entry != &BaseModuleList; Entry = Entry->Flink) {
        PINTERLOCK_MODULE Module = CONTAINING_RECORD(Entry, INTERLOCK_MODULE, Links);
        if (Module->Base == hLibModule && Module->EntryPoint != NULL) {
            Module->NoThreadCalls = TRUE;
            Found = TRUE;
        }
    }
    RtlLeaveCriticalSection(&BaseLoaderLock);
    if (!Found) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
    }
    return Found;
}
