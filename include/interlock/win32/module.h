/* module.h: modules and their functions. Part of win32.h. */
#ifndef INTERLOCK_WIN32_MODULE_H
#define INTERLOCK_WIN32_MODULE_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/*
 * The modules are kernel32, kernelbase and ntdll (with or without .dll, in any case), which are all this library, and
 * NULL, the program. They are always loaded. GetProcAddress finds by name what the public headers declare.
 */
WINBASEAPI HMODULE WINAPI GetModuleHandleA(LPCSTR lpModuleName);
WINBASEAPI HMODULE WINAPI GetModuleHandleW(LPCWSTR lpModuleName);
WINBASEAPI BOOL WINAPI GetModuleHandleExA(DWORD dwFlags, LPCSTR lpModuleName, HMODULE *phModule);
WINBASEAPI BOOL WINAPI GetModuleHandleExW(DWORD dwFlags, LPCWSTR lpModuleName, HMODULE *phModule);
WINBASEAPI HMODULE WINAPI LoadLibraryA(LPCSTR lpLibFileName);
WINBASEAPI HMODULE WINAPI LoadLibraryW(LPCWSTR lpLibFileName);
WINBASEAPI HMODULE WINAPI LoadLibraryExA(LPCSTR lpLibFileName, HANDLE hFile, DWORD dwFlags);
WINBASEAPI HMODULE WINAPI LoadLibraryExW(LPCWSTR lpLibFileName, HANDLE hFile, DWORD dwFlags);
WINBASEAPI BOOL WINAPI FreeLibrary(HMODULE hLibModule);
WINBASEAPI FARPROC WINAPI GetProcAddress(HMODULE hModule, LPCSTR lpProcName);
#define GetModuleHandle INTERLOCK_AW(GetModuleHandle)
#define GetModuleHandleEx INTERLOCK_AW(GetModuleHandleEx)
#define LoadLibrary INTERLOCK_AW(LoadLibrary)
#define LoadLibraryEx INTERLOCK_AW(LoadLibraryEx)

#define GET_MODULE_HANDLE_EX_FLAG_PIN 0x00000001
#define GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT 0x00000002
#define GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS 0x00000004
#define LOAD_LIBRARY_SEARCH_SYSTEM32 0x00000800
#define LOAD_LIBRARY_AS_DATAFILE 0x00000002

INTERLOCK_END

#endif
