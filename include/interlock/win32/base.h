/*
 * win32/base.h: kernel32's types and constants, errors, handles, memory, modules, strings, the machine, clocks,
 * exceptions, the program's environment and console, DllMain. Part of win32.h. A function that fails sets the last error.
 */
#ifndef INTERLOCK_WIN32_BASE_H
#define INTERLOCK_WIN32_BASE_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <interlock/exception.h>
#include <interlock/interlocked.h>
#include <interlock/widestring.h>
#include <interlock/winerror.h>

INTERLOCK_BEGIN

#define WINAPIV
#define APIPRIVATE
#define PASCAL
#define FAR
#define NEAR

/* UNICODE selects the W form of a function that has two. WCHAR literals are u"" or, with -fshort-wchar, L"". */
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

typedef WORD LANGID;
typedef DWORD LCID, *PLCID, COLORREF;
typedef UINT_PTR WPARAM;
typedef LONG_PTR LPARAM, LRESULT;
typedef ACCESS_MASK REGSAM;
typedef PVOID PSECURITY_DESCRIPTOR, PSID;
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
#define WAIT_OBJECT_0 ((DWORD)0x00000000)
#define WAIT_ABANDONED ((DWORD)0x00000080)
#define WAIT_ABANDONED_0 ((DWORD)0x00000080)
#define WAIT_IO_COMPLETION ((DWORD)0x000000C0)
#define WAIT_TIMEOUT 258
#define WAIT_FAILED ((DWORD)0xFFFFFFFF)
#define STILL_ACTIVE ((DWORD)0x00000103)

/* Some statuses, as DWORDs. ntstatus.h has all of them as NTSTATUS values and takes their place, before or after.
   WIN32_NO_STATUS keeps them out, as on Windows. */
#if !defined(INTERLOCK_NTSTATUS_H) && !defined(WIN32_NO_STATUS)
#define INTERLOCK_WINSTATUS
#define STATUS_WAIT_0 ((DWORD)0x00000000)
#define STATUS_ABANDONED_WAIT_0 ((DWORD)0x00000080)
#define STATUS_USER_APC ((DWORD)0x000000C0)
#define STATUS_TIMEOUT ((DWORD)0x00000102)
#define STATUS_PENDING ((DWORD)0x00000103)
#define DBG_EXCEPTION_HANDLED ((DWORD)0x00010001)
#define DBG_CONTINUE ((DWORD)0x00010002)
#define STATUS_FATAL_APP_EXIT ((DWORD)0x40000015)
#define DBG_TERMINATE_THREAD ((DWORD)0x40010003)
#define DBG_TERMINATE_PROCESS ((DWORD)0x40010004)
#define DBG_CONTROL_C ((DWORD)0x40010005)
#define DBG_PRINTEXCEPTION_C ((DWORD)0x40010006)
#define DBG_RIPEXCEPTION ((DWORD)0x40010007)
#define DBG_CONTROL_BREAK ((DWORD)0x40010008)
#define DBG_COMMAND_EXCEPTION ((DWORD)0x40010009)
#define STATUS_GUARD_PAGE_VIOLATION ((DWORD)0x80000001)
#define STATUS_DATATYPE_MISALIGNMENT ((DWORD)0x80000002)
#define STATUS_BREAKPOINT ((DWORD)0x80000003)
#define STATUS_SINGLE_STEP ((DWORD)0x80000004)
#define STATUS_LONGJUMP ((DWORD)0x80000026)
#define STATUS_UNWIND_CONSOLIDATE ((DWORD)0x80000029)
#define DBG_EXCEPTION_NOT_HANDLED ((DWORD)0x80010001)
#define STATUS_ACCESS_VIOLATION ((DWORD)0xC0000005)
#define STATUS_IN_PAGE_ERROR ((DWORD)0xC0000006)
#define STATUS_INVALID_HANDLE ((DWORD)0xC0000008)
#define STATUS_INVALID_PARAMETER ((DWORD)0xC000000D)
#define STATUS_NO_MEMORY ((DWORD)0xC0000017)
#define STATUS_ILLEGAL_INSTRUCTION ((DWORD)0xC000001D)
#define STATUS_NONCONTINUABLE_EXCEPTION ((DWORD)0xC0000025)
#define STATUS_INVALID_DISPOSITION ((DWORD)0xC0000026)
#define STATUS_ARRAY_BOUNDS_EXCEEDED ((DWORD)0xC000008C)
#define STATUS_FLOAT_DENORMAL_OPERAND ((DWORD)0xC000008D)
#define STATUS_FLOAT_DIVIDE_BY_ZERO ((DWORD)0xC000008E)
#define STATUS_FLOAT_INEXACT_RESULT ((DWORD)0xC000008F)
#define STATUS_FLOAT_INVALID_OPERATION ((DWORD)0xC0000090)
#define STATUS_FLOAT_OVERFLOW ((DWORD)0xC0000091)
#define STATUS_FLOAT_STACK_CHECK ((DWORD)0xC0000092)
#define STATUS_FLOAT_UNDERFLOW ((DWORD)0xC0000093)
#define STATUS_INTEGER_DIVIDE_BY_ZERO ((DWORD)0xC0000094)
#define STATUS_INTEGER_OVERFLOW ((DWORD)0xC0000095)
#define STATUS_PRIVILEGED_INSTRUCTION ((DWORD)0xC0000096)
#define STATUS_STACK_OVERFLOW ((DWORD)0xC00000FD)
#define STATUS_DLL_NOT_FOUND ((DWORD)0xC0000135)
#define STATUS_ORDINAL_NOT_FOUND ((DWORD)0xC0000138)
#define STATUS_ENTRYPOINT_NOT_FOUND ((DWORD)0xC0000139)
#define STATUS_CONTROL_C_EXIT ((DWORD)0xC000013A)
#define STATUS_DLL_INIT_FAILED ((DWORD)0xC0000142)
#define STATUS_FLOAT_MULTIPLE_FAULTS ((DWORD)0xC00002B4)
#define STATUS_FLOAT_MULTIPLE_TRAPS ((DWORD)0xC00002B5)
#define STATUS_HEAP_CORRUPTION ((DWORD)0xC0000374)
#define STATUS_STACK_BUFFER_OVERRUN ((DWORD)0xC0000409)
#define STATUS_INVALID_CRUNTIME_PARAMETER ((DWORD)0xC0000417)
#define STATUS_ASSERTION_FAILURE ((DWORD)0xC0000420)
#endif

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

typedef VOID(WINAPI *LPOVERLAPPED_COMPLETION_ROUTINE)(DWORD dwErrorCode, DWORD dwNumberOfBytesTransfered,
                                                      LPOVERLAPPED lpOverlapped);

typedef struct _OVERLAPPED_ENTRY {
    ULONG_PTR lpCompletionKey;
    LPOVERLAPPED lpOverlapped;
    ULONG_PTR Internal;
    DWORD dwNumberOfBytesTransferred;
} OVERLAPPED_ENTRY, *LPOVERLAPPED_ENTRY;

C_ASSERT(sizeof(OVERLAPPED_ENTRY) == 32);

/* Bytes and halves of words. */
#define MAKEWORD(Low, High) ((WORD)(((BYTE)((DWORD_PTR)(Low)&0xff)) | ((WORD)((BYTE)((DWORD_PTR)(High)&0xff))) << 8))
#define MAKELONG(Low, High)                                                                                            \
    ((LONG)(((WORD)((DWORD_PTR)(Low)&0xffff)) | ((DWORD)((WORD)((DWORD_PTR)(High)&0xffff))) << 16))
#define LOWORD(l) ((WORD)((DWORD_PTR)(l)&0xffff))
#define HIWORD(l) ((WORD)((DWORD_PTR)(l) >> 16 & 0xffff))
#define LOBYTE(w) ((BYTE)((DWORD_PTR)(w)&0xff))
#define HIBYTE(w) ((BYTE)((DWORD_PTR)(w) >> 8 & 0xff))

/* Errors. */

#define FORMAT_MESSAGE_ALLOCATE_BUFFER 0x00000100
#define FORMAT_MESSAGE_IGNORE_INSERTS 0x00000200
#define FORMAT_MESSAGE_FROM_STRING 0x00000400
#define FORMAT_MESSAGE_FROM_HMODULE 0x00000800
#define FORMAT_MESSAGE_FROM_SYSTEM 0x00001000
#define FORMAT_MESSAGE_ARGUMENT_ARRAY 0x00002000
#define FORMAT_MESSAGE_MAX_WIDTH_MASK 0x000000FF
#define LANG_NEUTRAL 0x00
#define LANG_ENGLISH 0x09
#define SUBLANG_NEUTRAL 0x00
#define SUBLANG_DEFAULT 0x01
#define SUBLANG_ENGLISH_US 0x01
#define MAKELANGID(Primary, Sub) ((WORD)((WORD)(Sub) << 10 | (WORD)(Primary)))

/* Returns the thread's last error. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetLastError(VOID);

/* Sets the thread's last error. The type is ignored. Since NT 3.1, NT 3.1, Server 2003. */
WINBASEAPI VOID WINAPI SetLastError(DWORD dwErrCode);
WINBASEAPI VOID WINAPI SetLastErrorEx(DWORD dwErrCode, DWORD dwType);
WINBASEAPI VOID WINAPI RestoreLastError(DWORD dwErrCode);

/* Formats the text of an error into a buffer of the caller or, with FORMAT_MESSAGE_ALLOCATE_BUFFER, of LocalAlloc.
   Returns the length without the terminator; 0 on failure. Differs: system errors only, their names in words, without
   inserts; FORMAT_MESSAGE_FROM_STRING is ERROR_NOT_SUPPORTED. Since NT 3.1. */
WINBASEAPI DWORD WINAPI FormatMessageA(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                                       LPSTR lpBuffer, DWORD nSize, va_list *Arguments);
WINBASEAPI DWORD WINAPI FormatMessageW(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                                       LPWSTR lpBuffer, DWORD nSize, va_list *Arguments);
#define FormatMessage INTERLOCK_AW(FormatMessage)

/* Handles. These functions take handles of any object. */

#define HANDLE_FLAG_INHERIT 0x00000001
#define HANDLE_FLAG_PROTECT_FROM_CLOSE 0x00000002

/* Closes a handle of any kind. Fails with ERROR_INVALID_HANDLE. Since NT 3.1. */
WINBASEAPI BOOL WINAPI CloseHandle(HANDLE hObject);

/* Opens another handle to the same object, with other rights if asked. Differs: not
   every object and process can be reached (docs/processes.md): ERROR_NOT_SUPPORTED. Since NT 3.1. */
WINBASEAPI BOOL WINAPI DuplicateHandle(HANDLE hSourceProcessHandle, HANDLE hSourceHandle, HANDLE hTargetProcessHandle,
                                       LPHANDLE lpTargetHandle, DWORD dwDesiredAccess, BOOL bInheritHandle,
                                       DWORD dwOptions);

/* Stores the inherit and protect-from-close flags. Since NT 3.51. */
WINBASEAPI BOOL WINAPI GetHandleInformation(HANDLE hObject, LPDWORD lpdwFlags);

/* Sets these flags. Differs: not every kind of handle is inherited (docs/processes.md). Since NT 3.51. */
WINBASEAPI BOOL WINAPI SetHandleInformation(HANDLE hObject, DWORD dwMask, DWORD dwFlags);

/* Returns TRUE if both handles refer to one object; otherwise fails with ERROR_NOT_SAME_OBJECT. Since 10. */
WINBASEAPI BOOL WINAPI CompareObjectHandles(HANDLE hFirstObjectHandle, HANDLE hSecondObjectHandle);

/* Heaps. All of them, and the older allocators, use the heap of the C library. */

#define HEAP_NO_SERIALIZE 0x00000001
#define HEAP_GENERATE_EXCEPTIONS 0x00000004
#define HEAP_ZERO_MEMORY 0x00000008
#define HEAP_REALLOC_IN_PLACE_ONLY 0x00000010
#define HEAP_CREATE_ENABLE_EXECUTE 0x00040000

#define LMEM_FIXED 0x0000
#define LMEM_MOVEABLE 0x0002
#define LMEM_ZEROINIT 0x0040
#define LPTR (LMEM_FIXED | LMEM_ZEROINIT)
#define GMEM_FIXED 0x0000
#define GMEM_MOVEABLE 0x0002
#define GMEM_ZEROINIT 0x0040
#define GPTR (GMEM_FIXED | GMEM_ZEROINIT)

/* Returns the heap of the process. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI GetProcessHeap(VOID);

/* Creates a heap, with a limit if asked; NULL on failure. Differs: the initial size is not reserved. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI HeapCreate(DWORD flOptions, SIZE_T dwInitialSize, SIZE_T dwMaximumSize);

/* Destroys a heap with all its blocks. Since NT 3.1. */
WINBASEAPI BOOL WINAPI HeapDestroy(HANDLE hHeap);

/* Allocates 16-byte aligned memory. Returns NULL if memory is exhausted; with HEAP_GENERATE_EXCEPTIONS it raises
   STATUS_NO_MEMORY instead. Differs: always zeroed. Since NT 3.1. */
WINBASEAPI LPVOID WINAPI HeapAlloc(HANDLE hHeap, DWORD dwFlags, SIZE_T dwBytes);

/* Changes the size of a block and returns its address, which may change. Differs: the block moves whenever its size
   changes; HEAP_REALLOC_IN_PLACE_ONLY can only shrink it. Since NT 3.1. */
WINBASEAPI LPVOID WINAPI HeapReAlloc(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem, SIZE_T dwBytes);

/* Frees a block. NULL succeeds. Differs: a block of another heap is ERROR_INVALID_PARAMETER. Since NT 3.1. */
WINBASEAPI BOOL WINAPI HeapFree(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem);

/* Returns the size of a block; -1 if it is not of that heap. Since NT 3.1. */
WINBASEAPI SIZE_T WINAPI HeapSize(HANDLE hHeap, DWORD dwFlags, LPCVOID lpMem);

/* Allocates from the process heap. Differs: always fixed and zeroed: the handle is the address. Since NT 3.1. */
WINBASEAPI HLOCAL WINAPI LocalAlloc(UINT uFlags, SIZE_T uBytes);

/* Frees a block. Returns NULL, or the handle on failure. Since NT 3.1. */
WINBASEAPI HLOCAL WINAPI LocalFree(HLOCAL hMem);

/* Returns the address, which is the handle itself. Since NT 3.1. */
WINBASEAPI LPVOID WINAPI LocalLock(HLOCAL hMem);

/* Fails with ERROR_NOT_LOCKED, as for fixed memory. Since NT 3.1. */
WINBASEAPI BOOL WINAPI LocalUnlock(HLOCAL hMem);

/* Returns the size of a block; 0 on failure. Since NT 3.1. */
WINBASEAPI SIZE_T WINAPI LocalSize(HLOCAL hMem);

/* The same as the Local functions of these names. Since NT 3.1. */
WINBASEAPI HGLOBAL WINAPI GlobalAlloc(UINT uFlags, SIZE_T dwBytes);
WINBASEAPI HGLOBAL WINAPI GlobalFree(HGLOBAL hMem);
WINBASEAPI LPVOID WINAPI GlobalLock(HGLOBAL hMem);

/* Returns TRUE: all memory is fixed. Since NT 3.1. */
WINBASEAPI BOOL WINAPI GlobalUnlock(HGLOBAL hMem);

/* Returns the size of a block; 0 on failure. Since NT 3.1. */
WINBASEAPI SIZE_T WINAPI GlobalSize(HGLOBAL hMem);

typedef enum _HEAP_INFORMATION_CLASS {
    HeapCompatibilityInformation = 0,
    HeapEnableTerminationOnCorruption = 1
} HEAP_INFORMATION_CLASS;

/* Checks a block, or with NULL all blocks of a heap. Differs: of the process heap, blocks that are named only. Since
   NT 3.5. */
WINBASEAPI BOOL WINAPI HeapValidate(HANDLE hHeap, DWORD dwFlags, LPCVOID lpMem);

/* Returns the largest free block; 0 on failure. Differs: the heap of the C library is not compacted; returns the rest of
   the heap's limit. Since NT 3.5. */
WINBASEAPI SIZE_T WINAPI HeapCompact(HANDLE hHeap, DWORD dwFlags);

/* Makes other threads wait that use the heap, until HeapUnlock. Recursive. Differs: only threads that call HeapLock wait.
   Since NT 3.5. */
WINBASEAPI BOOL WINAPI HeapLock(HANDLE hHeap);
WINBASEAPI BOOL WINAPI HeapUnlock(HANDLE hHeap);

/* Sets and queries an option. Differs: checked, without effect; HeapCompatibilityInformation is 2, a low-fragmentation
   heap. Since XP. */
WINBASEAPI BOOL WINAPI HeapSetInformation(HANDLE HeapHandle, HEAP_INFORMATION_CLASS HeapInformationClass,
                                          PVOID HeapInformation, SIZE_T HeapInformationLength);
WINBASEAPI BOOL WINAPI HeapQueryInformation(HANDLE HeapHandle, HEAP_INFORMATION_CLASS HeapInformationClass,
                                            PVOID HeapInformation, SIZE_T HeapInformationLength, PSIZE_T ReturnLength);

/* Stores the heaps of the process, as many as there is room for, and returns how many there are. Since NT 3.5. */
WINBASEAPI DWORD WINAPI GetProcessHeaps(DWORD NumberOfHeaps, PHANDLE ProcessHeaps);

/*
 * Virtual memory. Reservations begin at multiples of 64 KB. VirtualProtect and VirtualQuery also know memory that did not
 * come from VirtualAlloc: the program's code and data, stacks, mapped files.
 */

#define MEM_COMMIT 0x00001000
#define MEM_RESERVE 0x00002000
#define MEM_DECOMMIT 0x00004000
#define MEM_RELEASE 0x00008000
#define MEM_FREE 0x00010000
#define MEM_PRIVATE 0x00020000
#define MEM_MAPPED 0x00040000
#define MEM_RESET 0x00080000
#define MEM_TOP_DOWN 0x00100000
#define MEM_WRITE_WATCH 0x00200000
#define MEM_PHYSICAL 0x00400000
#define MEM_RESET_UNDO 0x01000000
#define MEM_IMAGE 0x01000000
#define MEM_LARGE_PAGES 0x20000000

#define PAGE_NOACCESS 0x01
#define PAGE_READONLY 0x02
#define PAGE_READWRITE 0x04
#define PAGE_WRITECOPY 0x08
#define PAGE_EXECUTE 0x10
#define PAGE_EXECUTE_READ 0x20
#define PAGE_EXECUTE_READWRITE 0x40
#define PAGE_EXECUTE_WRITECOPY 0x80
#define PAGE_GUARD 0x100
#define PAGE_NOCACHE 0x200
#define PAGE_WRITECOMBINE 0x400

typedef struct _MEMORY_BASIC_INFORMATION {
    PVOID BaseAddress;
    PVOID AllocationBase;
    DWORD AllocationProtect;
    SIZE_T RegionSize;
    DWORD State;
    DWORD Protect;
    DWORD Type;
} MEMORY_BASIC_INFORMATION, *PMEMORY_BASIC_INFORMATION;

C_ASSERT(sizeof(MEMORY_BASIC_INFORMATION) == 48);

/* Reserves or commits pages, or both; NULL on failure. Committed pages are zeroed. Fails with ERROR_INVALID_ADDRESS for a
   commitment outside a reservation and for a reservation that meets another. Differs: a guard page stays one: an access
   is a fault of the host; no large pages, write watches or physical memory. Since NT 3.1. */
WINBASEAPI LPVOID WINAPI VirtualAlloc(LPVOID lpAddress, SIZE_T dwSize, DWORD flAllocationType, DWORD flProtect);

/* VirtualAlloc, VirtualFree and VirtualProtect for a process. Differs: this process only; another one is
   ERROR_NOT_SUPPORTED. Since NT 4.0. */
WINBASEAPI LPVOID WINAPI VirtualAllocEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD flAllocationType,
                                        DWORD flProtect);
WINBASEAPI BOOL WINAPI VirtualFreeEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD dwFreeType);
WINBASEAPI BOOL WINAPI VirtualProtectEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD flNewProtect,
                                        PDWORD lpflOldProtect);
WINBASEAPI SIZE_T WINAPI VirtualQueryEx(HANDLE hProcess, LPCVOID lpAddress, PMEMORY_BASIC_INFORMATION lpBuffer,
                                        SIZE_T dwLength);

/* Decommits pages, or releases a whole reservation, whose size must then be 0. Since NT 3.1. */
WINBASEAPI BOOL WINAPI VirtualFree(LPVOID lpAddress, SIZE_T dwSize, DWORD dwFreeType);

/* Changes the protection of committed pages and stores that of the first one. Fails with ERROR_INVALID_ADDRESS if one of
   them is not committed. Since NT 3.1. */
WINBASEAPI BOOL WINAPI VirtualProtect(LPVOID lpAddress, SIZE_T dwSize, DWORD flNewProtect, PDWORD lpflOldProtect);

/* Describes the pages from an address on that have the same state and protection. Returns the bytes that it has written;
   0 on failure. Since NT 3.1. */
WINBASEAPI SIZE_T WINAPI VirtualQuery(LPCVOID lpAddress, PMEMORY_BASIC_INFORMATION lpBuffer, SIZE_T dwLength);

/* Keeps committed pages in memory, and lets them go again. Fails with ERROR_WORKING_SET_QUOTA if that is more than the
   host permits. Differs: VirtualUnlock succeeds for pages that were not locked. Since NT 3.1. */
WINBASEAPI BOOL WINAPI VirtualLock(LPVOID lpAddress, SIZE_T dwSize);
WINBASEAPI BOOL WINAPI VirtualUnlock(LPVOID lpAddress, SIZE_T dwSize);

/* Physical memory. */

typedef enum _MEMORY_RESOURCE_NOTIFICATION_TYPE {
    LowMemoryResourceNotification,
    HighMemoryResourceNotification
} MEMORY_RESOURCE_NOTIFICATION_TYPE;

typedef struct _MEMORYSTATUSEX {
    DWORD dwLength;
    DWORD dwMemoryLoad;
    DWORDLONG ullTotalPhys;
    DWORDLONG ullAvailPhys;
    DWORDLONG ullTotalPageFile;
    DWORDLONG ullAvailPageFile;
    DWORDLONG ullTotalVirtual;
    DWORDLONG ullAvailVirtual;
    DWORDLONG ullAvailExtendedVirtual;
} MEMORYSTATUSEX, *LPMEMORYSTATUSEX;

C_ASSERT(sizeof(MEMORYSTATUSEX) == 64);

/* Stores how much memory there is and how much of it is free. Differs: of the host, not of a control group. Since
   2000. */
WINBASEAPI BOOL WINAPI GlobalMemoryStatusEx(LPMEMORYSTATUSEX lpBuffer);

/* Opens an object that is signaled while memory is scarce, or while there is plenty of it. Differs: the host is asked
   every second, and when its memory pressure rises where it reports that. Since XP. */
WINBASEAPI HANDLE WINAPI CreateMemoryResourceNotification(MEMORY_RESOURCE_NOTIFICATION_TYPE NotificationType);

/* Stores whether that is the case now. Since XP. */
WINBASEAPI BOOL WINAPI QueryMemoryResourceNotification(HANDLE ResourceNotificationHandle, PBOOL ResourceState);

/*
 * Modules. kernel32, kernelbase, ntdll, msvcrt, ucrtbase and winmm, with or without .dll and in any case, are this library, as
 * are the API sets api-ms-win-core-..., api-ms-win-crt-... and api-ms-win-mm-...; NULL is the program.
 */

/* Returns the module with this name; NULL and ERROR_MOD_NOT_FOUND if there is none. Since NT 3.1. */
WINBASEAPI HMODULE WINAPI GetModuleHandleA(LPCSTR lpModuleName);
WINBASEAPI HMODULE WINAPI GetModuleHandleW(LPCWSTR lpModuleName);

/* Stores the module with this name. Differs: GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS is ERROR_INVALID_PARAMETER. Since
   XP. */
WINBASEAPI BOOL WINAPI GetModuleHandleExA(DWORD dwFlags, LPCSTR lpModuleName, HMODULE *phModule);
WINBASEAPI BOOL WINAPI GetModuleHandleExW(DWORD dwFlags, LPCWSTR lpModuleName, HMODULE *phModule);

/* Returns the module with this name; NULL and ERROR_MOD_NOT_FOUND if there is none. Flags are ignored. Differs: knows
   these modules only; load libraries of the host with dlopen. Since NT 3.1. */
WINBASEAPI HMODULE WINAPI LoadLibraryA(LPCSTR lpLibFileName);
WINBASEAPI HMODULE WINAPI LoadLibraryW(LPCWSTR lpLibFileName);
WINBASEAPI HMODULE WINAPI LoadLibraryExA(LPCSTR lpLibFileName, HANDLE hFile, DWORD dwFlags);
WINBASEAPI HMODULE WINAPI LoadLibraryExW(LPCWSTR lpLibFileName, HANDLE hFile, DWORD dwFlags);

/* Releases a module. Fails with ERROR_INVALID_HANDLE. Differs: modules are never unloaded. Since NT 3.1. */
WINBASEAPI BOOL WINAPI FreeLibrary(HMODULE hLibModule);

/* Returns the address of a function that the public headers declare, also of some that are macros or inline; NULL and
   ERROR_PROC_NOT_FOUND if there is none. Differs: no ordinals; with the static library only what the program uses, linked
   with -rdynamic. Since NT 3.1. */
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

/* Strings. The ANSI and OEM code pages are UTF-8. */

#define CP_ACP 0
#define CP_OEMCP 1
#define CP_MACCP 2
#define CP_THREAD_ACP 3
#define CP_UTF7 65000
#define CP_UTF8 65001

#define MB_PRECOMPOSED 0x00000001
#define MB_COMPOSITE 0x00000002
#define MB_USEGLYPHCHARS 0x00000004
#define MB_ERR_INVALID_CHARS 0x00000008
#define WC_DISCARDNS 0x00000010
#define WC_SEPCHARS 0x00000020
#define WC_DEFAULTCHAR 0x00000040
#define WC_ERR_INVALID_CHARS 0x00000080
#define WC_COMPOSITECHECK 0x00000200
#define WC_NO_BEST_FIT_CHARS 0x00000400

/* Returns the ANSI or OEM code page: 65001, UTF-8. Since NT 3.1. */
WINBASEAPI UINT WINAPI GetACP(VOID);
WINBASEAPI UINT WINAPI GetOEMCP(VOID);

/* Converts to UTF-16; with a room of 0 it returns the needed length. Returns 0 with ERROR_INSUFFICIENT_BUFFER or
   ERROR_NO_UNICODE_TRANSLATION on failure. Differs: from UTF-8; other code pages are ERROR_INVALID_PARAMETER. Since NT
   3.1. */
WINBASEAPI int WINAPI MultiByteToWideChar(UINT CodePage, DWORD dwFlags, LPCCH lpMultiByteStr, int cbMultiByte,
                                          LPWSTR lpWideCharStr, int cchWideChar);

/* Converts from UTF-16; with a room of 0 it returns the needed length. Returns 0 on failure. Differs: to UTF-8; other
   code pages are ERROR_INVALID_PARAMETER. Since NT 3.1. */
WINBASEAPI int WINAPI WideCharToMultiByte(UINT CodePage, DWORD dwFlags, LPCWCH lpWideCharStr, int cchWideChar,
                                          LPSTR lpMultiByteStr, int cbMultiByte, LPCCH lpDefaultChar,
                                          LPBOOL lpUsedDefaultChar);

/* Returns the length of a string; 0 for NULL. Since NT 3.1. */
WINBASEAPI int WINAPI lstrlenA(LPCSTR lpString);
WINBASEAPI int WINAPI lstrlenW(LPCWSTR lpString);

/* Copies a string. Returns NULL for a NULL argument. Since NT 3.1. */
WINBASEAPI LPSTR WINAPI lstrcpyA(LPSTR lpString1, LPCSTR lpString2);
WINBASEAPI LPWSTR WINAPI lstrcpyW(LPWSTR lpString1, LPCWSTR lpString2);

/* Copies as much as fits, always terminated. Returns NULL for a NULL argument. Differs: may split a character of
   several bytes. Since NT 3.1. */
WINBASEAPI LPSTR WINAPI lstrcpynA(LPSTR lpString1, LPCSTR lpString2, int iMaxLength);
WINBASEAPI LPWSTR WINAPI lstrcpynW(LPWSTR lpString1, LPCWSTR lpString2, int iMaxLength);

/* Appends a string. Returns NULL for a NULL argument. Since NT 3.1. */
WINBASEAPI LPSTR WINAPI lstrcatA(LPSTR lpString1, LPCSTR lpString2);
WINBASEAPI LPWSTR WINAPI lstrcatW(LPWSTR lpString1, LPCWSTR lpString2);

/* Compares two strings, in the i forms ignoring case. NULL comes before all others. Differs: by the values of bytes or
   characters, not by a language; only ASCII letters have case. Since NT 3.1. */
WINBASEAPI int WINAPI lstrcmpA(LPCSTR lpString1, LPCSTR lpString2);
WINBASEAPI int WINAPI lstrcmpW(LPCWSTR lpString1, LPCWSTR lpString2);
WINBASEAPI int WINAPI lstrcmpiA(LPCSTR lpString1, LPCSTR lpString2);
WINBASEAPI int WINAPI lstrcmpiW(LPCWSTR lpString1, LPCWSTR lpString2);
#define lstrlen INTERLOCK_AW(lstrlen)
#define lstrcpy INTERLOCK_AW(lstrcpy)
#define lstrcpyn INTERLOCK_AW(lstrcpyn)
#define lstrcat INTERLOCK_AW(lstrcat)
#define lstrcmp INTERLOCK_AW(lstrcmp)
#define lstrcmpi INTERLOCK_AW(lstrcmpi)

/*
 * Formats of 8 bits. `interlock cc` makes them the printf family of the sources that it compiles. A format without a
 * conversion of Microsoft's is left to the host's function. In the others, sizes are those of the wide formats (widestring.h); %s, %hs, %c and %hc are
 * narrow, and %S, %ls, %ws, %C and %lc wide, and written in UTF-8.
 */

/* vprintf, printf, vfprintf, fprintf: formats to standard output or to a stream. Only in Interlock. */
WINBASEAPI int InterlockVprintf(const char *Format, va_list Arguments);
WINBASEAPI int InterlockPrintf(const char *Format, ...);
WINBASEAPI int InterlockVfprintf(FILE *Stream, const char *Format, va_list Arguments);
WINBASEAPI int InterlockFprintf(FILE *Stream, const char *Format, ...);

/* vsprintf, sprintf, vsnprintf, snprintf: formats into a buffer. Returns the length that the whole text has. Only in
   Interlock. */
WINBASEAPI int InterlockVsprintf(char *Buffer, const char *Format, va_list Arguments);
WINBASEAPI int InterlockSprintf(char *Buffer, const char *Format, ...);
WINBASEAPI int InterlockVsnprintf(char *Buffer, size_t Count, const char *Format, va_list Arguments);
WINBASEAPI int InterlockSnprintf(char *Buffer, size_t Count, const char *Format, ...);

/* System information. The machine, the version, the environment. */

#define PROCESSOR_ARCHITECTURE_INTEL 0
#define PROCESSOR_ARCHITECTURE_ARM 5
#define PROCESSOR_ARCHITECTURE_AMD64 9
#define PROCESSOR_ARCHITECTURE_ARM64 12
#define PROCESSOR_ARCHITECTURE_UNKNOWN 0xFFFF
#define PROCESSOR_AMD_X8664 8664

typedef struct _SYSTEM_INFO {
    __extension__ union {
        DWORD dwOemId;
        __extension__ struct {
            WORD wProcessorArchitecture;
            WORD wReserved;
        };
    };
    DWORD dwPageSize;
    LPVOID lpMinimumApplicationAddress;
    LPVOID lpMaximumApplicationAddress;
    DWORD_PTR dwActiveProcessorMask;
    DWORD dwNumberOfProcessors;
    DWORD dwProcessorType;
    DWORD dwAllocationGranularity;
    WORD wProcessorLevel;
    WORD wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;

C_ASSERT(sizeof(SYSTEM_INFO) == 48);

#ifdef UNICODE
typedef OSVERSIONINFOW OSVERSIONINFO, *POSVERSIONINFO, *LPOSVERSIONINFO;
typedef OSVERSIONINFOEXW OSVERSIONINFOEX, *POSVERSIONINFOEX, *LPOSVERSIONINFOEX;
#else
typedef OSVERSIONINFOA OSVERSIONINFO, *POSVERSIONINFO, *LPOSVERSIONINFO;
typedef OSVERSIONINFOEXA OSVERSIONINFOEX, *POSVERSIONINFOEX, *LPOSVERSIONINFOEX;
#endif

/* Stores the architecture, the page size and the processors of group 0. Differs: level and revision of the processor
   are 0. Since NT 3.1, XP. */
WINBASEAPI VOID WINAPI GetSystemInfo(LPSYSTEM_INFO lpSystemInfo);
WINBASEAPI VOID WINAPI GetNativeSystemInfo(LPSYSTEM_INFO lpSystemInfo);

/* Returns the number of processors in a group or in all; 0 and ERROR_INVALID_PARAMETER if there is no such group.
   Differs: virtual processors. Since 7. */
WINBASEAPI DWORD WINAPI GetActiveProcessorCount(WORD GroupNumber);
WINBASEAPI DWORD WINAPI GetMaximumProcessorCount(WORD GroupNumber);

/* Returns the number of groups of 64 processors. Differs: virtual processors. Since 7. */
WINBASEAPI WORD WINAPI GetActiveProcessorGroupCount(VOID);
WINBASEAPI WORD WINAPI GetMaximumProcessorGroupCount(VOID);

/* Returns or stores the version of Windows. Differs: 10.0, build 19045, whatever the manifest says. Since NT 3.1, NT
   3.5, NT 3.5. */
WINBASEAPI DWORD WINAPI GetVersion(VOID);
WINBASEAPI BOOL WINAPI GetVersionExA(LPOSVERSIONINFOA lpVersionInformation);
WINBASEAPI BOOL WINAPI GetVersionExW(LPOSVERSIONINFOW lpVersionInformation);
#define GetVersionEx INTERLOCK_AW(GetVersionEx)

/* Stores the value of a variable and returns its length, or the size of the buffer that it needs; 0 and
   ERROR_ENVVAR_NOT_FOUND if there is none. Differs: the host's environment, whose names are case sensitive. Since NT
   3.1. */
WINBASEAPI DWORD WINAPI GetEnvironmentVariableA(LPCSTR lpName, LPSTR lpBuffer, DWORD nSize);
WINBASEAPI DWORD WINAPI GetEnvironmentVariableW(LPCWSTR lpName, LPWSTR lpBuffer, DWORD nSize);
#define GetEnvironmentVariable INTERLOCK_AW(GetEnvironmentVariable)

/* Returns nNumber * nNumerator / nDenominator, rounded half away from zero; -1 if that does not fit an int. Since NT 3.1. */
WINBASEAPI int WINAPI MulDiv(int nNumber, int nNumerator, int nDenominator);

/* Clocks and the calendar. */

typedef UINT MMRESULT;
#define MMSYSERR_NOERROR 0
#define MMSYSERR_ERROR 1
#define MMSYSERR_INVALPARAM 11
#define TIMERR_BASE 96
#define TIMERR_NOERROR 0
#define TIMERR_NOCANDO (TIMERR_BASE + 1)
#define TIMERR_STRUCT (TIMERR_BASE + 33)

typedef struct timecaps_tag {
    UINT wPeriodMin;
    UINT wPeriodMax;
} TIMECAPS, *PTIMECAPS, *NPTIMECAPS, *LPTIMECAPS;

typedef void(CALLBACK TIMECALLBACK)(UINT uTimerID, UINT uMsg, DWORD_PTR dwUser, DWORD_PTR dw1, DWORD_PTR dw2);
typedef TIMECALLBACK *LPTIMECALLBACK;

#define TIME_ONESHOT 0x0000
#define TIME_PERIODIC 0x0001
#define TIME_CALLBACK_FUNCTION 0x0000
#define TIME_CALLBACK_EVENT_SET 0x0010
#define TIME_CALLBACK_EVENT_PULSE 0x0020
#define TIME_KILL_SYNCHRONOUS 0x0100

/* Stores the finest clock of the host, and its units per second. Since NT 3.1. */
WINBASEAPI BOOL WINAPI QueryPerformanceCounter(LARGE_INTEGER *lpPerformanceCount);
WINBASEAPI BOOL WINAPI QueryPerformanceFrequency(LARGE_INTEGER *lpFrequency);

/* Returns the milliseconds since the machine started. Differs: resolution 1 ms; stops while the machine sleeps. Since
   NT 3.1, Vista. */
WINBASEAPI DWORD WINAPI GetTickCount(VOID);
WINBASEAPI ULONGLONG WINAPI GetTickCount64(VOID);

/* Stores the time in 100 ns since the machine started. Differs: stops while the machine sleeps. Since 10. */
WINBASEAPI VOID WINAPI QueryInterruptTime(PULONGLONG lpInterruptTime);
WINBASEAPI VOID WINAPI QueryInterruptTimePrecise(PULONGLONG lpInterruptTimePrecise);

/* Stores the time in 100 ns since the machine started, without the time that it slept. Since 7, 10. */
WINBASEAPI BOOL WINAPI QueryUnbiasedInterruptTime(PULONGLONG UnbiasedTime);
WINBASEAPI VOID WINAPI QueryUnbiasedInterruptTimePrecise(PULONGLONG lpUnbiasedInterruptTimePrecise);

/* Stores the date and time in UTC. Since NT 3.1. */
WINBASEAPI VOID WINAPI GetSystemTime(LPSYSTEMTIME lpSystemTime);

/* Stores the local date and time. Differs: in the host's time zone (TZ). Since NT 3.1. */
WINBASEAPI VOID WINAPI GetLocalTime(LPSYSTEMTIME lpSystemTime);

/* Stores the UTC time in 100 ns since 1601. Differs: both have the resolution of the host's clock. Since NT 3.5, 8. */
WINBASEAPI VOID WINAPI GetSystemTimeAsFileTime(LPFILETIME lpSystemTimeAsFileTime);
WINBASEAPI VOID WINAPI GetSystemTimePreciseAsFileTime(LPFILETIME lpSystemTimeAsFileTime);

/* Converts a date to a time. Fails with ERROR_INVALID_PARAMETER if there is no such date. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SystemTimeToFileTime(const SYSTEMTIME *lpSystemTime, LPFILETIME lpFileTime);

/* Converts a time to a date. Fails with ERROR_INVALID_PARAMETER if there is none. Since NT 3.1. */
WINBASEAPI BOOL WINAPI FileTimeToSystemTime(const FILETIME *lpFileTime, LPSYSTEMTIME lpSystemTime);

/* Converts between UTC and local time, by the UTC offset in effect today. Differs: in the host's time zone (TZ). Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI FileTimeToLocalFileTime(const FILETIME *lpFileTime, LPFILETIME lpLocalFileTime);
WINBASEAPI BOOL WINAPI LocalFileTimeToFileTime(const FILETIME *lpLocalFileTime, LPFILETIME lpFileTime);

#define TIME_ZONE_ID_UNKNOWN 0
#define TIME_ZONE_ID_STANDARD 1
#define TIME_ZONE_ID_DAYLIGHT 2
#define TIME_ZONE_ID_INVALID ((DWORD)0xFFFFFFFF)

typedef struct _TIME_ZONE_INFORMATION {
    LONG Bias; /* minutes: UTC = local time + Bias + the bias of the season */
    WCHAR StandardName[32];
    SYSTEMTIME StandardDate; /* wMonth 0: there is one season */
    LONG StandardBias;
    WCHAR DaylightName[32];
    SYSTEMTIME DaylightDate;
    LONG DaylightBias;
} TIME_ZONE_INFORMATION, *PTIME_ZONE_INFORMATION, *LPTIME_ZONE_INFORMATION;

C_ASSERT(sizeof(TIME_ZONE_INFORMATION) == 172);

/* Stores the time zone and returns which of its seasons it is; TIME_ZONE_ID_INVALID for NULL. Dates are in the form of
   days: the n-th weekday of a month, 5 being the last. Differs: the host's time zone (TZ); its names are the host's
   abbreviations. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetTimeZoneInformation(LPTIME_ZONE_INFORMATION lpTimeZoneInformation);

/* Returns -1, 0 or 1. Since NT 3.1. */
WINBASEAPI LONG WINAPI CompareFileTime(const FILETIME *lpFileTime1, const FILETIME *lpFileTime2);

/* GetTickCount by its multimedia name. Since NT 3.1. */
WINBASEAPI DWORD WINAPI timeGetTime(VOID);

/* Stores the shortest and the longest period, 1 ms and 1000 s. Returns TIMERR_NOCANDO if the structure is missing or
   too small. Since NT 3.1. */
WINBASEAPI MMRESULT WINAPI timeGetDevCaps(LPTIMECAPS ptc, UINT cbtc);

/* Requests a resolution and ends the request. Returns TIMERR_NOCANDO if it is not a period of timeGetDevCaps. Differs:
   checked, without effect: the resolution is that of the host. Since NT 3.1. */
WINBASEAPI MMRESULT WINAPI timeBeginPeriod(UINT uPeriod);
WINBASEAPI MMRESULT WINAPI timeEndPeriod(UINT uPeriod);

/* Calls a function or sets or pulses an event, once or periodically, in a thread for all these timers. Returns an
   identifier, or 0 if it fails. Differs: uResolution is ignored. Since NT 3.1. */
WINBASEAPI MMRESULT WINAPI timeSetEvent(UINT uDelay, UINT uResolution, LPTIMECALLBACK fptc, DWORD_PTR dwUser,
                                        UINT fuEvent);

/* Ends a timer. With TIME_KILL_SYNCHRONOUS a call that runs has returned. Returns MMSYSERR_INVALPARAM if there is no
   such timer, also after the only call of one without a period. Since NT 3.1. */
WINBASEAPI MMRESULT WINAPI timeKillEvent(UINT uTimerID);

/* Exceptions and debugging. rtl.h explains exceptions. */

#define EXCEPTION_ACCESS_VIOLATION STATUS_ACCESS_VIOLATION
#define EXCEPTION_DATATYPE_MISALIGNMENT STATUS_DATATYPE_MISALIGNMENT
#define EXCEPTION_BREAKPOINT STATUS_BREAKPOINT
#define EXCEPTION_SINGLE_STEP STATUS_SINGLE_STEP
#define EXCEPTION_ARRAY_BOUNDS_EXCEEDED STATUS_ARRAY_BOUNDS_EXCEEDED
#define EXCEPTION_FLT_DENORMAL_OPERAND STATUS_FLOAT_DENORMAL_OPERAND
#define EXCEPTION_FLT_DIVIDE_BY_ZERO STATUS_FLOAT_DIVIDE_BY_ZERO
#define EXCEPTION_FLT_INEXACT_RESULT STATUS_FLOAT_INEXACT_RESULT
#define EXCEPTION_FLT_INVALID_OPERATION STATUS_FLOAT_INVALID_OPERATION
#define EXCEPTION_FLT_OVERFLOW STATUS_FLOAT_OVERFLOW
#define EXCEPTION_FLT_STACK_CHECK STATUS_FLOAT_STACK_CHECK
#define EXCEPTION_FLT_UNDERFLOW STATUS_FLOAT_UNDERFLOW
#define EXCEPTION_INT_DIVIDE_BY_ZERO STATUS_INTEGER_DIVIDE_BY_ZERO
#define EXCEPTION_INT_OVERFLOW STATUS_INTEGER_OVERFLOW
#define EXCEPTION_PRIV_INSTRUCTION STATUS_PRIVILEGED_INSTRUCTION
#define EXCEPTION_IN_PAGE_ERROR STATUS_IN_PAGE_ERROR
#define EXCEPTION_ILLEGAL_INSTRUCTION STATUS_ILLEGAL_INSTRUCTION
#define EXCEPTION_NONCONTINUABLE_EXCEPTION STATUS_NONCONTINUABLE_EXCEPTION
#define EXCEPTION_STACK_OVERFLOW STATUS_STACK_OVERFLOW
#define EXCEPTION_INVALID_DISPOSITION STATUS_INVALID_DISPOSITION
#define EXCEPTION_GUARD_PAGE STATUS_GUARD_PAGE_VIOLATION
#define EXCEPTION_INVALID_HANDLE STATUS_INVALID_HANDLE
#define EXCEPTION_POSSIBLE_DEADLOCK STATUS_POSSIBLE_DEADLOCK
#define CONTROL_C_EXIT STATUS_CONTROL_C_EXIT

#define SEM_FAILCRITICALERRORS 0x0001
#define SEM_NOGPFAULTERRORBOX 0x0002
#define SEM_NOALIGNMENTFAULTEXCEPT 0x0004
#define SEM_NOOPENFILEERRORBOX 0x8000

typedef PEXCEPTION_RECORD LPEXCEPTION_RECORD;
typedef PEXCEPTION_POINTERS LPEXCEPTION_POINTERS;
typedef LONG(WINAPI *PTOP_LEVEL_EXCEPTION_FILTER)(struct _EXCEPTION_POINTERS *ExceptionInfo);
typedef PTOP_LEVEL_EXCEPTION_FILTER LPTOP_LEVEL_EXCEPTION_FILTER;

/* Raises a code with up to 15 arguments. Returns only if a handler continues, which EXCEPTION_NONCONTINUABLE forbids.
   Differs: as RtlRaiseException. Since NT 3.1. */
WINBASEAPI VOID WINAPI RaiseException(DWORD dwExceptionCode, DWORD dwExceptionFlags, DWORD nNumberOfArguments,
                                      const ULONG_PTR *lpArguments);

/* RtlAddVectoredExceptionHandler: registers a handler that is called before all frames. Differs: called for raised
   exceptions, not for faults. Since XP. */
WINBASEAPI PVOID WINAPI AddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler);

/* Removes a handler. Returns 0 if it is not registered. Since XP. */
WINBASEAPI ULONG WINAPI RemoveVectoredExceptionHandler(PVOID Handle);

/* Registers a handler that is called when an exception is continued. Since Server 2003. */
WINBASEAPI PVOID WINAPI AddVectoredContinueHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler);

/* Removes a handler. Returns 0 if it is not registered. Since Server 2003. */
WINBASEAPI ULONG WINAPI RemoveVectoredContinueHandler(PVOID Handle);

/* Sets the filter of unhandled exceptions and returns the previous one. If the filter returns
   EXCEPTION_EXECUTE_HANDLER, the process ends with the exception's code. Since NT 3.1. */
WINBASEAPI LPTOP_LEVEL_EXCEPTION_FILTER WINAPI
SetUnhandledExceptionFilter(LPTOP_LEVEL_EXCEPTION_FILTER lpTopLevelExceptionFilter);

/* Calls that filter. Differs: there is no dialog and no error reporting. Since NT 3.1. */
WINBASEAPI LONG WINAPI UnhandledExceptionFilter(struct _EXCEPTION_POINTERS *ExceptionInfo);

/* Queries or sets the mode; both return the old one. Differs: stored, without effect. Since Vista, NT 3.1. */
WINBASEAPI UINT WINAPI GetErrorMode(VOID);
WINBASEAPI UINT WINAPI SetErrorMode(UINT uMode);

/* Stops in a debugger; without one it raises EXCEPTION_BREAKPOINT. Since NT 3.1. */
WINBASEAPI VOID WINAPI DebugBreak(VOID);

/* Returns TRUE if a debugger of the host traces the process. Since NT 4.0. */
WINBASEAPI BOOL WINAPI IsDebuggerPresent(VOID);

/* Sends a text to the debugger. Differs: to standard error. Since NT 3.1. */
WINBASEAPI VOID WINAPI OutputDebugStringA(LPCSTR lpOutputString);
WINBASEAPI VOID WINAPI OutputDebugStringW(LPCWSTR lpOutputString);
#define OutputDebugString INTERLOCK_AW(OutputDebugString)

/* Environment. It is the host's: getenv sees what SetEnvironmentVariable sets. */

/* Sets a variable, or removes it if the value is NULL. Fails with ERROR_INVALID_PARAMETER for a name that is empty or has
   an equals sign, with ERROR_ENVVAR_NOT_FOUND if there is nothing to remove. Differs: names are case sensitive. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI SetEnvironmentVariableA(LPCSTR lpName, LPCSTR lpValue);
WINBASEAPI BOOL WINAPI SetEnvironmentVariableW(LPCWSTR lpName, LPCWSTR lpValue);
#define SetEnvironmentVariable INTERLOCK_AW(SetEnvironmentVariable)

/* Returns a copy of all variables, each terminated, with an empty one at the end; NULL on failure. Since NT 3.1. */
WINBASEAPI LPCH WINAPI GetEnvironmentStringsA(VOID);
WINBASEAPI LPWCH WINAPI GetEnvironmentStringsW(VOID);
#define GetEnvironmentStrings INTERLOCK_AW(GetEnvironmentStrings)

/* Frees such a copy. Since NT 3.1. */
WINBASEAPI BOOL WINAPI FreeEnvironmentStringsA(LPCH penv);
WINBASEAPI BOOL WINAPI FreeEnvironmentStringsW(LPWCH penv);
#define FreeEnvironmentStrings INTERLOCK_AW(FreeEnvironmentStrings)

/* The file. */

/* Stores the path of a module's file and returns its length. If that does not fit it is truncated and terminated, the
   result is the size and the last error ERROR_INSUFFICIENT_BUFFER. Differs: a path of the host; the modules of Windows are
   the file of this library. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetModuleFileNameA(HMODULE hModule, LPSTR lpFilename, DWORD nSize);
WINBASEAPI DWORD WINAPI GetModuleFileNameW(HMODULE hModule, LPWSTR lpFilename, DWORD nSize);
#define GetModuleFileName INTERLOCK_AW(GetModuleFileName)

/* The stack. */

/* Stores the return addresses of the callers and a hash of them. Returns how many there are. Since XP. */
NTSYSAPI USHORT NTAPI RtlCaptureStackBackTrace(ULONG FramesToSkip, ULONG FramesToCapture, PVOID *BackTrace,
                                               PULONG BackTraceHash);
#define CaptureStackBackTrace RtlCaptureStackBackTrace

/* Error modes. */

/* Returns the thread's error mode. Since 7. */
WINBASEAPI DWORD WINAPI GetThreadErrorMode(VOID);

/* Sets the thread's error mode and stores the old one. Fails with ERROR_INVALID_PARAMETER for unknown bits. Differs:
   stored, without effect. Since 7. */
WINBASEAPI BOOL WINAPI SetThreadErrorMode(DWORD dwNewMode, LPDWORD lpOldMode);

/*
 * Standard handles and console. A standard handle is a descriptor object (io.h): it can be waited on, and passed to
 * CreateProcess. ReadFile and WriteFile take every descriptor object.
 */

#define STD_INPUT_HANDLE ((DWORD)-10)
#define STD_OUTPUT_HANDLE ((DWORD)-11)
#define STD_ERROR_HANDLE ((DWORD)-12)

#define FILE_TYPE_UNKNOWN 0x0000
#define FILE_TYPE_DISK 0x0001
#define FILE_TYPE_CHAR 0x0002
#define FILE_TYPE_PIPE 0x0003

#define CTRL_C_EVENT 0
#define CTRL_BREAK_EVENT 1
#define CTRL_CLOSE_EVENT 2
#define CTRL_LOGOFF_EVENT 5
#define CTRL_SHUTDOWN_EVENT 6

#define ENABLE_PROCESSED_INPUT 0x0001
#define ENABLE_LINE_INPUT 0x0002
#define ENABLE_ECHO_INPUT 0x0004
#define ENABLE_PROCESSED_OUTPUT 0x0001
#define ENABLE_WRAP_AT_EOL_OUTPUT 0x0002
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 0x0004

typedef BOOL(WINAPI *PHANDLER_ROUTINE)(DWORD CtrlType);

/* Returns a standard handle; NULL if its descriptor is closed, INVALID_HANDLE_VALUE if there is no such handle. Since
   NT 3.1. */
WINBASEAPI HANDLE WINAPI GetStdHandle(DWORD nStdHandle);

/* Sets a standard handle. Differs: the host's descriptors 0 to 2 stay what they are. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetStdHandle(DWORD nStdHandle, HANDLE hHandle);

/* Returns whether a handle is a file, a console or a pipe; FILE_TYPE_UNKNOWN on failure. Differs: of descriptor objects.
   Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetFileType(HANDLE hFile);

/* Reads at least one byte and at most as many as asked; 0 at the end of a file. Fails with ERROR_BROKEN_PIPE at the end of
   a pipe. Differs: descriptor objects; overlapped is ERROR_NOT_SUPPORTED. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ReadFile(HANDLE hFile, LPVOID lpBuffer, DWORD nNumberOfBytesToRead, LPDWORD lpNumberOfBytesRead,
                                LPOVERLAPPED lpOverlapped);

/* Writes all bytes. Fails with ERROR_NO_DATA if there is no reader; there is no SIGPIPE. Differs: as ReadFile. Since NT
   3.1. */
WINBASEAPI BOOL WINAPI WriteFile(HANDLE hFile, LPCVOID lpBuffer, DWORD nNumberOfBytesToWrite,
                                 LPDWORD lpNumberOfBytesWritten, LPOVERLAPPED lpOverlapped);

/* Writes text to a terminal, as UTF-8. Fails with ERROR_INVALID_HANDLE for anything else. Since NT 3.1. */
WINBASEAPI BOOL WINAPI WriteConsoleA(HANDLE hConsoleOutput, const VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                                     LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved);
WINBASEAPI BOOL WINAPI WriteConsoleW(HANDLE hConsoleOutput, const VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                                     LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved);
#define WriteConsole INTERLOCK_AW(WriteConsole)

/* Stores the mode of a terminal. Fails with ERROR_INVALID_HANDLE for anything else. Differs: always the default. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI GetConsoleMode(HANDLE hConsoleHandle, LPDWORD lpMode);

/* Sets the mode of a terminal. Differs: checked, without effect. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetConsoleMode(HANDLE hConsoleHandle, DWORD dwMode);

/* Adds a handler for console events, or removes it; NULL makes the process ignore CTRL_C_EVENT, or not. Each event calls
   the handlers on a thread of its own, the last one first, until one returns TRUE. If none does, the signal takes its
   default action. Fails with ERROR_INVALID_PARAMETER if there is no such handler. Differs: SIGINT is CTRL_C_EVENT, SIGQUIT
   CTRL_BREAK_EVENT, SIGHUP CTRL_CLOSE_EVENT, SIGTERM CTRL_SHUTDOWN_EVENT; the last two end the process even if a handler
   returns TRUE, without a time limit. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetConsoleCtrlHandler(PHANDLER_ROUTINE HandlerRoutine, BOOL Add);

/* Sends CTRL_C_EVENT or CTRL_BREAK_EVENT to a process group, 0: that of the caller. Differs: SIGINT and SIGQUIT to a group
   of the host. Since NT 3.1. */
WINBASEAPI BOOL WINAPI GenerateConsoleCtrlEvent(DWORD dwCtrlEvent, DWORD dwProcessGroupId);

/*
 * Notifications. DllMain and TLS callbacks. A loader of Windows finds them in a module by itself. Here a program or a
 * shared object names them once, at file scope:
 *
 *     BOOL WINAPI DllMain(HINSTANCE Module, DWORD Reason, LPVOID Reserved);
 *     INTERLOCK_DLL_MAIN(DllMain);
 *     INTERLOCK_TLS_CALLBACK(OnThread);
 *
 * Both are called as on Windows, one at a time under a recursive lock:
 * DLL_PROCESS_ATTACH  by a constructor of the module. DllMain returns FALSE: STATUS_DLL_INIT_FAILED is raised.
 * DLL_THREAD_ATTACH   on each thread that the library creates, before its routine; never on the thread that has loaded
 *                     the module. A thread of the host calls InterlockAttachThread if it wants this.
 * DLL_THREAD_DETACH   on each thread of the library or of the host that ends after the library knew it, after the
 *                     callbacks of fiber-local storage; not on terminated threads.
 * DLL_PROCESS_DETACH  by a destructor of the module. Reserved is NULL if the module is unloaded, not NULL if the process
 *                     ends.
 * TLS callbacks are called before DllMain.
 */

#define DLL_PROCESS_DETACH 0
#define DLL_PROCESS_ATTACH 1
#define DLL_THREAD_ATTACH 2
#define DLL_THREAD_DETACH 3

typedef VOID(NTAPI *PIMAGE_TLS_CALLBACK)(PVOID DllHandle, DWORD Reason, PVOID Reserved);

/* One notified routine of a module; one of the two is NULL. The macros define them. */
typedef struct _INTERLOCK_MODULE {
    LIST_ENTRY Links;
    BOOL(WINAPI *EntryPoint)(HINSTANCE Module, DWORD Reason, LPVOID Reserved);
    PIMAGE_TLS_CALLBACK TlsCallback;
    HMODULE Base;           /* where the host has mapped the module */
    BOOLEAN NoThreadCalls;  /* DisableThreadLibraryCalls */
} INTERLOCK_MODULE, *PINTERLOCK_MODULE;

#define INTERLOCK_NOTIFY(Name, EntryPoint, TlsCallback)                                                                \
    static INTERLOCK_MODULE InterlockModule##Name = {{NULL, NULL}, EntryPoint, TlsCallback, NULL, FALSE};              \
    __attribute__((constructor)) static VOID InterlockAttach##Name(VOID)                                               \
    {                                                                                                                  \
        InterlockAttachModule(&InterlockModule##Name);                                                                 \
    }                                                                                                                  \
    __attribute__((destructor)) static VOID InterlockDetach##Name(VOID)                                                \
    {                                                                                                                  \
        InterlockDetachModule(&InterlockModule##Name);                                                                 \
    }                                                                                                                  \
    C_ASSERT(sizeof(InterlockModule##Name) != 0)
#define INTERLOCK_DLL_MAIN(Function) INTERLOCK_NOTIFY(Function, Function, NULL)
#define INTERLOCK_TLS_CALLBACK(Function) INTERLOCK_NOTIFY(Function, NULL, Function)

/* Adds a routine and calls it with DLL_PROCESS_ATTACH. Raises STATUS_DLL_INIT_FAILED if it returns FALSE. Only in
   Interlock. */
WINBASEAPI VOID InterlockAttachModule(PINTERLOCK_MODULE Module);

/* Calls a routine with DLL_PROCESS_DETACH and removes it. Only in Interlock. */
WINBASEAPI VOID InterlockDetachModule(PINTERLOCK_MODULE Module);

/* Calls all routines with DLL_THREAD_ATTACH, for a thread that the library has not created. Only in Interlock. */
WINBASEAPI VOID InterlockAttachThread(VOID);

/* Ends the thread notifications of a module. Fails with ERROR_INVALID_PARAMETER if it has none. Differs: knows modules
   with INTERLOCK_DLL_MAIN; TLS callbacks do not matter. Since NT 3.5. */
WINBASEAPI BOOL WINAPI DisableThreadLibraryCalls(HMODULE hLibModule);

INTERLOCK_END

#endif
