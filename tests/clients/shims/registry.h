/* registry.h: an empty registry, for clients that query the processor's speed. */
#ifndef CLIENTS_SHIMS_REGISTRY_H
#define CLIENTS_SHIMS_REGISTRY_H

#include <windows.h>

#define HKEY_LOCAL_MACHINE ((HKEY)(ULONG_PTR)0x80000002)
#define KEY_READ 0x20019
#define REG_DWORD 4

static inline LONG RegOpenKeyExA(HKEY key, LPCSTR name, DWORD options, DWORD access, HKEY *opened)
{
    (void)key, (void)name, (void)options, (void)access;
    *opened = NULL;
    return ERROR_FILE_NOT_FOUND;
}

static inline LONG RegQueryValueExA(HKEY key, LPCSTR name, LPDWORD reserved, LPDWORD type, LPBYTE data, LPDWORD size)
{
    (void)key, (void)name, (void)reserved, (void)type, (void)data, (void)size;
    return ERROR_FILE_NOT_FOUND;
}

static inline LONG RegCloseKey(HKEY key)
{
    (void)key;
    return ERROR_SUCCESS;
}

#endif
