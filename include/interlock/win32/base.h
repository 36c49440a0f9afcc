/* base.h: types, structures and constants that every family of Win32 functions uses. Part of win32.h. */
#ifndef INTERLOCK_WIN32_BASE_H
#define INTERLOCK_WIN32_BASE_H

#include <stdint.h>

#include <interlock/interlocked.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>
#include <interlock/winerror.h>

#ifndef WINBASEAPI
#define WINBASEAPI INTERLOCK_API
#endif
#define WINAPIV
#define APIPRIVATE
#define PASCAL
#define FAR
#define NEAR

/* UNICODE chooses the W form of a function that has two; WCHAR literals are u"" or, under -fshort-wchar, L"". */
#if __SIZEOF_WCHAR_T__ == 2
#define INTERLOCK_WIDE(s) L##s
#else
#define INTERLOCK_WIDE(s) u##s
#endif
#ifdef UNICODE
#define INTERLOCK_AW(Name) Name##W
#define __TEXT(s) INTERLOCK_WIDE(s)
typedef WCHAR TCHAR, *PTCHAR, TBYTE, *PTBYTE;
typedef LPWSTR LPTSTR, PTSTR, LPTCH, PTCH;
typedef LPCWSTR LPCTSTR, PCTSTR, LPCTCH, PCTCH;
#else
#define INTERLOCK_AW(Name) Name##A
#define __TEXT(s) s
typedef char TCHAR, *PTCHAR;
typedef unsigned char TBYTE, *PTBYTE;
typedef LPSTR LPTSTR, PTSTR, LPTCH, PTCH;
typedef LPCSTR LPCTSTR, PCTSTR, LPCTCH, PCTCH;
#endif
#define TEXT(s) __TEXT(s)

typedef BYTE *LPBOOLEAN;
typedef WORD LANGID, *PLANGID;
typedef DWORD LCID, *PLCID, COLORREF;
typedef UINT_PTR WPARAM;
typedef LONG_PTR LPARAM, LRESULT;
typedef ACCESS_MASK REGSAM;
typedef PVOID PSECURITY_DESCRIPTOR;
typedef HANDLE HGLOBAL, HLOCAL;

#define DECLARE_HANDLE(Name)                                                                                           \
    struct Name##__ {                                                                                                  \
        int unused;                                                                                                    \
    };                                                                                                                 \
    typedef struct Name##__ *Name
DECLARE_HANDLE(HINSTANCE);
DECLARE_HANDLE(HWND);
DECLARE_HANDLE(HKEY);
typedef HINSTANCE HMODULE;

typedef INT_PTR(WINAPI *FARPROC)(VOID);
typedef INT_PTR(WINAPI *NEARPROC)(VOID);
typedef INT_PTR(WINAPI *PROC)(VOID);

#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)
#define INFINITE 0xffffffff
#define MAX_PATH 260

#define MAXIMUM_WAIT_OBJECTS 64
#define WAIT_OBJECT_0 ((DWORD)STATUS_WAIT_0)
#define WAIT_ABANDONED ((DWORD)STATUS_ABANDONED_WAIT_0)
#define WAIT_ABANDONED_0 ((DWORD)STATUS_ABANDONED_WAIT_0)
#define WAIT_IO_COMPLETION ((DWORD)STATUS_USER_APC)
#define WAIT_TIMEOUT 258
#define WAIT_FAILED ((DWORD)0xFFFFFFFF)
#define STILL_ACTIVE ((DWORD)STATUS_PENDING)

#define MUTEX_MODIFY_STATE MUTANT_QUERY_STATE
#define MUTEX_ALL_ACCESS MUTANT_ALL_ACCESS

typedef struct _SECURITY_ATTRIBUTES {
    DWORD nLength;
    LPVOID lpSecurityDescriptor;
    BOOL bInheritHandle;
} SECURITY_ATTRIBUTES, *PSECURITY_ATTRIBUTES, *LPSECURITY_ATTRIBUTES;

C_ASSERT(sizeof(SECURITY_ATTRIBUTES) == 24);

typedef struct _FILETIME {
    DWORD dwLowDateTime;
    DWORD dwHighDateTime;
} FILETIME, *PFILETIME, *LPFILETIME;

C_ASSERT(sizeof(FILETIME) == 8);

typedef struct _SYSTEMTIME {
    WORD wYear;
    WORD wMonth;
    WORD wDayOfWeek;
    WORD wDay;
    WORD wHour;
    WORD wMinute;
    WORD wSecond;
    WORD wMilliseconds;
} SYSTEMTIME, *PSYSTEMTIME, *LPSYSTEMTIME;

C_ASSERT(sizeof(SYSTEMTIME) == 16);

typedef struct _OVERLAPPED {
    ULONG_PTR Internal;
    ULONG_PTR InternalHigh;
    __extension__ union {
        __extension__ struct {
            DWORD Offset;
            DWORD OffsetHigh;
        };
        PVOID Pointer;
    };
    HANDLE hEvent;
} OVERLAPPED, *LPOVERLAPPED;

C_ASSERT(sizeof(OVERLAPPED) == 32);

typedef struct _OVERLAPPED_ENTRY {
    ULONG_PTR lpCompletionKey;
    LPOVERLAPPED lpOverlapped;
    ULONG_PTR Internal;
    DWORD dwNumberOfBytesTransferred;
} OVERLAPPED_ENTRY, *LPOVERLAPPED_ENTRY;

C_ASSERT(sizeof(OVERLAPPED_ENTRY) == 32);

/* Parts of words. */
#define MAKEWORD(Low, High) ((WORD)(((BYTE)((DWORD_PTR)(Low)&0xff)) | ((WORD)((BYTE)((DWORD_PTR)(High)&0xff))) << 8))
#define MAKELONG(Low, High)                                                                                            \
    ((LONG)(((WORD)((DWORD_PTR)(Low)&0xffff)) | ((DWORD)((WORD)((DWORD_PTR)(High)&0xffff))) << 16))
#define LOWORD(l) ((WORD)((DWORD_PTR)(l)&0xffff))
#define HIWORD(l) ((WORD)((DWORD_PTR)(l) >> 16 & 0xffff))
#define LOBYTE(w) ((BYTE)((DWORD_PTR)(w)&0xff))
#define HIBYTE(w) ((BYTE)((DWORD_PTR)(w) >> 8 & 0xff))

#endif
