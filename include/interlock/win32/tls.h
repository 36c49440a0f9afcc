/* tls.h: thread-local and fiber-local storage. Part of win32.h. There are no fibers: a thread is its own only one. */
#ifndef INTERLOCK_WIN32_TLS_H
#define INTERLOCK_WIN32_TLS_H

#include <interlock/win32/base.h>

#ifndef TLS_MINIMUM_AVAILABLE
#define TLS_MINIMUM_AVAILABLE 64
#endif
#define TLS_OUT_OF_INDEXES ((DWORD)0xffffffff)
#define FLS_MAXIMUM_AVAILABLE 128
#define FLS_OUT_OF_INDEXES ((DWORD)0xffffffff)

INTERLOCK_BEGIN

typedef VOID(WINAPI *PFLS_CALLBACK_FUNCTION)(PVOID lpFlsData);

WINBASEAPI DWORD WINAPI TlsAlloc(VOID);
WINBASEAPI BOOL WINAPI TlsFree(DWORD dwTlsIndex);
WINBASEAPI LPVOID WINAPI TlsGetValue(DWORD dwTlsIndex);
WINBASEAPI BOOL WINAPI TlsSetValue(DWORD dwTlsIndex, LPVOID lpTlsValue);

WINBASEAPI DWORD WINAPI FlsAlloc(PFLS_CALLBACK_FUNCTION lpCallback);
WINBASEAPI BOOL WINAPI FlsFree(DWORD dwFlsIndex);
WINBASEAPI PVOID WINAPI FlsGetValue(DWORD dwFlsIndex);
WINBASEAPI BOOL WINAPI FlsSetValue(DWORD dwFlsIndex, PVOID lpFlsData);

INTERLOCK_END

#endif
