/*
 * win32.h: kernel32's functions: errors, handles, memory, modules, strings, clocks, the program's environment and console;
 * synchronization; threads, processes, thread pool, fibers, scheduling. windows.h includes it. A function that fails sets the
 * last error.
 *
 * Create functions return an existing object of that name with ERROR_ALREADY_EXISTS. Names are case sensitive and have at
 * most MAX_PATH characters. The processes of a user share them: docs/processes.md.
 */
#ifndef INTERLOCK_WIN32_H
#define INTERLOCK_WIN32_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <interlock/exception.h>
#include <interlock/interlocked.h>
#include <interlock/usermode.h>
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

/* Returns the calling thread's last error. Most functions change it only when they fail. Since NT 3.1. */
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

/* Sets those of the flags HANDLE_FLAG_INHERIT and HANDLE_FLAG_PROTECT_FROM_CLOSE that are in dwMask, as dwFlags has
   them. Differs: not every kind of handle is inherited (docs/processes.md). Since NT 3.51. */
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

/* Frees a block that HeapAlloc or HeapReAlloc has returned. NULL succeeds. Differs: a block of another heap is
   ERROR_INVALID_PARAMETER. Since NT 3.1. */
WINBASEAPI BOOL WINAPI HeapFree(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem);

/* Returns the size of a block; -1 if it is not of that heap. Since NT 3.1. */
WINBASEAPI SIZE_T WINAPI HeapSize(HANDLE hHeap, DWORD dwFlags, LPCVOID lpMem);

/* Allocates a block from the process heap; LocalFree frees it. Differs: always fixed and zeroed: the handle is the
   address. Since NT 3.1. */
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

/* Checks a block, or with NULL all blocks of a heap. Differs: of the process heap, checks only blocks that are
 * named. Since NT 3.5. */
WINBASEAPI BOOL WINAPI HeapValidate(HANDLE hHeap, DWORD dwFlags, LPCVOID lpMem);

/* Returns the largest free block; 0 on failure. Differs: the heap of the C library is not compacted; returns the rest of
   the heap's limit. Since NT 3.5. */
WINBASEAPI SIZE_T WINAPI HeapCompact(HANDLE hHeap, DWORD dwFlags);

/* Blocks other users of the heap until HeapUnlock. Recursive. Differs: blocks only threads that call HeapLock.
   Since NT 3.5. */
WINBASEAPI BOOL WINAPI HeapLock(HANDLE hHeap);
WINBASEAPI BOOL WINAPI HeapUnlock(HANDLE hHeap);

/* Sets or queries an option of a heap. Differs: checked, without effect; HeapCompatibilityInformation is 2, a
   low-fragmentation heap. Since XP. */
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

/* Describes the pages from an address on that have the same state and protection. Returns the number of bytes
 * written; 0 on failure. Since NT 3.1. */
WINBASEAPI SIZE_T WINAPI VirtualQuery(LPCVOID lpAddress, PMEMORY_BASIC_INFORMATION lpBuffer, SIZE_T dwLength);

/* Locks committed pages into memory, and unlocks them. Fails with ERROR_WORKING_SET_QUOTA if that is more than the
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

/* Opens an object that is signaled while memory is scarce, or while there is plenty of it. Differs: checks the host
 * every second, and when its memory pressure rises, if the host reports that. Since XP. */
WINBASEAPI HANDLE WINAPI CreateMemoryResourceNotification(MEMORY_RESOURCE_NOTIFICATION_TYPE NotificationType);

/* Stores whether the object's condition holds now. Since XP. */
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
 * Narrow formats. `interlock cc` makes them the printf family of the sources that it compiles. A format without a
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

/* Converts a time to a date. Fails with ERROR_INVALID_PARAMETER if it is out of range. Since NT 3.1. */
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

/* Compares two times. Returns -1, 0 or 1: the first one is earlier, equal or later. Since NT 3.1. */
WINBASEAPI LONG WINAPI CompareFileTime(const FILETIME *lpFileTime1, const FILETIME *lpFileTime2);

/* The time in milliseconds, as GetTickCount returns it. Since NT 3.1. */
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

/* Ends a timer. With TIME_KILL_SYNCHRONOUS it waits for a running call to return. Returns MMSYSERR_INVALPARAM if
 * there is no such timer, also after the only call of one without a period. Since NT 3.1. */
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

/* Calls the filter that SetUnhandledExceptionFilter has set, and returns its result. Differs: there is no dialog
   and no error reporting. Since NT 3.1. */
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

/* Frees a copy that GetEnvironmentStrings has returned. Since NT 3.1. */
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

/* Returns the calling thread's error mode, which SetThreadErrorMode sets. Since 7. */
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

/* Sets the handle that GetStdHandle returns for this number. Differs: the host's descriptors 0 to 2 stay unchanged.
   Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetStdHandle(DWORD nStdHandle, HANDLE hHandle);

/* Returns whether a handle is a file, a console or a pipe; FILE_TYPE_UNKNOWN on failure. Differs: knows descriptor
 * objects only. Since NT 3.1. */
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
 * Notifications. DllMain and TLS callbacks. The loader of Windows finds them in a module by itself. Here a program or a
 * shared object names them once, at file scope:
 *
 *     BOOL WINAPI DllMain(HINSTANCE Module, DWORD Reason, LPVOID Reserved);
 *     INTERLOCK_DLL_MAIN(DllMain);
 *     INTERLOCK_TLS_CALLBACK(OnThread);
 *
 * Both are called as on Windows, one at a time under a recursive lock:
 * DLL_PROCESS_ATTACH  by a constructor of the module. If DllMain returns FALSE, STATUS_DLL_INIT_FAILED is raised.
 * DLL_THREAD_ATTACH   on each thread that the library creates, before its routine; never on the thread that loaded
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

/* Events. */

#define CREATE_EVENT_MANUAL_RESET 0x00000001
#define CREATE_EVENT_INITIAL_SET 0x00000002

/* Creates a manual-reset or auto-reset event, or opens the one with that name. Returns NULL on failure. Since NT 3.1,
   NT 3.1, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateEventA(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState,
                                      LPCSTR lpName);
WINBASEAPI HANDLE WINAPI CreateEventW(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState,
                                      LPCWSTR lpName);
WINBASEAPI HANDLE WINAPI CreateEventExA(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateEventExW(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCWSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);

/* Opens the event with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI OpenEventA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI OpenEventW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName);

/* Signals the event: releases all waiters of a manual-reset event, one of an auto-reset event. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetEvent(HANDLE hEvent);

/* Resets the event. The handle needs EVENT_MODIFY_STATE. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ResetEvent(HANDLE hEvent);

/* Releases the threads that wait at this moment, then resets the event. A thread that runs an APC at this moment misses
   it. Since NT 3.1. */
WINBASEAPI BOOL WINAPI PulseEvent(HANDLE hEvent);
#define CreateEvent INTERLOCK_AW(CreateEvent)
#define CreateEventEx INTERLOCK_AW(CreateEventEx)
#define OpenEvent INTERLOCK_AW(OpenEvent)

/* Mutexes. Owned by a thread, recursive, abandoned when their owner ends. */

#define CREATE_MUTEX_INITIAL_OWNER 0x00000001

/* Creates a mutex, owned by the caller if asked, or opens the one with that name, which the caller then does not own.
   Returns NULL on failure. Since NT 3.1, NT 3.1, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateMutexA(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCWSTR lpName);
WINBASEAPI HANDLE WINAPI CreateMutexExA(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateMutexExW(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCWSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);

/* Opens the mutex with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI OpenMutexA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI OpenMutexW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName);

/* Releases one acquire. Fails with ERROR_NOT_OWNER if the caller is not the owner. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ReleaseMutex(HANDLE hMutex);
#define CreateMutex INTERLOCK_AW(CreateMutex)
#define CreateMutexEx INTERLOCK_AW(CreateMutexEx)
#define OpenMutex INTERLOCK_AW(OpenMutex)

/* Semaphores. */

/* Creates a semaphore with a count and a maximum, or opens the one with that name. Returns NULL on failure, with
   ERROR_INVALID_PARAMETER for bad counts. dwFlags must be 0. Since NT 3.1, NT 3.1, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateSemaphoreA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                          LONG lMaximumCount, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI CreateSemaphoreW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                          LONG lMaximumCount, LPCWSTR lpName);
WINBASEAPI HANDLE WINAPI CreateSemaphoreExA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                            LONG lMaximumCount, LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateSemaphoreExW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                            LONG lMaximumCount, LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess);

/* Opens the semaphore with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI OpenSemaphoreA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI OpenSemaphoreW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName);

/* Adds to the count; stores the previous count in lpPreviousCount, which may be NULL. Fails with ERROR_TOO_MANY_POSTS,
   changing nothing, or with ERROR_INVALID_PARAMETER below 1. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ReleaseSemaphore(HANDLE hSemaphore, LONG lReleaseCount, LPLONG lpPreviousCount);
#define CreateSemaphore INTERLOCK_AW(CreateSemaphore)
#define CreateSemaphoreEx INTERLOCK_AW(CreateSemaphoreEx)
#define OpenSemaphore INTERLOCK_AW(OpenSemaphore)

/* Waitable timers. */

#define CREATE_WAITABLE_TIMER_MANUAL_RESET 0x00000001
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002 /* accepted: every timer has the resolution of the host */

typedef VOID(APIENTRY *PTIMERAPCROUTINE)(LPVOID lpArgToCompletionRoutine, DWORD dwTimerLowValue,
                                         DWORD dwTimerHighValue);

typedef struct _REASON_CONTEXT {
    ULONG Version;
    DWORD Flags;
    union {
        struct {
            HMODULE LocalizedReasonModule;
            ULONG LocalizedReasonId;
            ULONG ReasonStringCount;
            LPWSTR *ReasonStrings;
        } Detailed;
        LPWSTR SimpleReasonString;
    } Reason;
} REASON_CONTEXT, *PREASON_CONTEXT;

#define POWER_REQUEST_CONTEXT_VERSION 0
#define POWER_REQUEST_CONTEXT_SIMPLE_STRING 0x00000001

/* Creates a manual-reset or synchronization timer, or opens the one with that name. Returns NULL on failure. Differs:
   every timer has high resolution. Since NT 4.0, NT 4.0, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateWaitableTimerA(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset,
                                              LPCSTR lpTimerName);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerW(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset,
                                              LPCWSTR lpTimerName);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCSTR lpTimerName,
                                                DWORD dwFlags, DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCWSTR lpTimerName,
                                                DWORD dwFlags, DWORD dwDesiredAccess);

/* Opens the timer with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 4.0. */
WINBASEAPI HANDLE WINAPI OpenWaitableTimerA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpTimerName);
WINBASEAPI HANDLE WINAPI OpenWaitableTimerW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpTimerName);

/* Sets the due time in 100 ns, relative if negative, and a period in milliseconds; the Ex form takes a tolerable delay.
   The completion routine runs in an alertable wait of the calling thread. Differs: timers do not wake the host: with
   fResume or a WakeContext the timer is set and the last error is ERROR_NOT_SUPPORTED. Since NT 4.0, 7. */
WINBASEAPI BOOL WINAPI SetWaitableTimer(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                        PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                                        BOOL fResume);
WINBASEAPI BOOL WINAPI SetWaitableTimerEx(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                          PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                                          PREASON_CONTEXT WakeContext, ULONG TolerableDelay);

/* Cancels the timer; its state stays. Since NT 4.0. */
WINBASEAPI BOOL WINAPI CancelWaitableTimer(HANDLE hTimer);
#define CreateWaitableTimer INTERLOCK_AW(CreateWaitableTimer)
#define CreateWaitableTimerEx INTERLOCK_AW(CreateWaitableTimerEx)
#define OpenWaitableTimer INTERLOCK_AW(OpenWaitableTimer)

/* Waiting and sleeping. Times are in milliseconds. Success and timeout leave the last error alone. */

/* Blocks until the object is signaled. Returns WAIT_OBJECT_0, WAIT_ABANDONED, WAIT_TIMEOUT or WAIT_FAILED; an alertable
   wait returns WAIT_IO_COMPLETION after user APCs, without acquiring the object. Since NT 3.1. */
WINBASEAPI DWORD WINAPI WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds);
WINBASEAPI DWORD WINAPI WaitForSingleObjectEx(HANDLE hHandle, DWORD dwMilliseconds, BOOL bAlertable);

/* Blocks until any object (the lowest index wins) or all of up to 64 are signaled. A duplicate object in a wait for all
   is ERROR_INVALID_PARAMETER. Since NT 3.1. */
WINBASEAPI DWORD WINAPI WaitForMultipleObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll,
                                               DWORD dwMilliseconds);
WINBASEAPI DWORD WINAPI WaitForMultipleObjectsEx(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll,
                                                 DWORD dwMilliseconds, BOOL bAlertable);

/* Signals an event, mutex or semaphore and waits, atomically. Does not wait if the signal fails. Since NT 4.0. */
WINBASEAPI DWORD WINAPI SignalObjectAndWait(HANDLE hObjectToSignal, HANDLE hObjectToWaitOn, DWORD dwMilliseconds,
                                            BOOL bAlertable);

/* Sleeps; 0 yields the processor, INFINITE never ends. An alertable sleep returns WAIT_IO_COMPLETION after user APCs,
   otherwise 0. Since NT 3.1. */
WINBASEAPI VOID WINAPI Sleep(DWORD dwMilliseconds);
WINBASEAPI DWORD WINAPI SleepEx(DWORD dwMilliseconds, BOOL bAlertable);

/* Yields the processor. Returns FALSE if no other thread was ready. Differs: the host's scheduler decides. Since
   NT 4.0. */
WINBASEAPI BOOL WINAPI SwitchToThread(VOID);

/* Address waits. rtl.h explains them. The wakes are inline, and exported too. */

/* Blocks while AddressSize bytes (1, 2, 4 or 8) at Address equal those at CompareAddress. May wake spuriously. Fails
   with ERROR_TIMEOUT or ERROR_INVALID_PARAMETER. Since 8. */
WINBASEAPI BOOL WaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, DWORD dwMilliseconds);

/* Wakes the oldest waiter of the address. Since 8. */
WINBASEAPI inline VOID WakeByAddressSingle(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressSingle(Address);
    }
}

/* Wakes all waiters of the address. Since 8. */
WINBASEAPI inline VOID WakeByAddressAll(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressAll(Address);
    }
}

/* Slim reader/writer locks. rtl.h explains them. Inline, and exported too. */

typedef RTL_SRWLOCK SRWLOCK, *PSRWLOCK;

#define SRWLOCK_INIT RTL_SRWLOCK_INIT

#if INTERLOCK_SRWLOCK_WATCHED
#pragma push_macro("WINBASEAPI")
#undef WINBASEAPI
#define WINBASEAPI static __attribute__((always_inline))
#endif

/* Initializes a free lock, as SRWLOCK_INIT does: the word becomes 0. Since Vista. */
WINBASEAPI inline VOID InitializeSRWLock(PSRWLOCK SRWLock)
{
    RtlpInitializeSRWLock(SRWLock);
}

/* Blocks until the lock is acquired exclusively. Not recursive. Since Vista. */
WINBASEAPI inline VOID AcquireSRWLockExclusive(PSRWLOCK SRWLock)
{
    RtlpAcquireSRWLockExclusive(SRWLock);
}

/* Blocks until the lock is acquired shared, behind waiting exclusive acquires. Since Vista. */
WINBASEAPI inline VOID AcquireSRWLockShared(PSRWLOCK SRWLock)
{
    RtlpAcquireSRWLockShared(SRWLock);
}

/* Acquires the lock exclusively if it is free. Returns TRUE if it did. Since 7. */
WINBASEAPI inline BOOLEAN TryAcquireSRWLockExclusive(PSRWLOCK SRWLock)
{
    return RtlpTryAcquireSRWLockExclusive(SRWLock);
}

/* Acquires the lock shared if that is possible at once. Returns TRUE if it did. Since 7. */
WINBASEAPI inline BOOLEAN TryAcquireSRWLockShared(PSRWLOCK SRWLock)
{
    return RtlpTryAcquireSRWLockShared(SRWLock);
}

/* Releases an exclusive acquire. Raises STATUS_RESOURCE_NOT_OWNED if the lock is not held. Since Vista. */
WINBASEAPI inline VOID ReleaseSRWLockExclusive(PSRWLOCK SRWLock)
{
    RtlpReleaseSRWLockExclusive(SRWLock);
}

/* Releases a shared acquire. Raises STATUS_RESOURCE_NOT_OWNED if the lock is not held. Differs: as
   RtlReleaseSRWLockShared. Since Vista. */
WINBASEAPI inline VOID ReleaseSRWLockShared(PSRWLOCK SRWLock)
{
    RtlpReleaseSRWLockShared(SRWLock);
}

#if INTERLOCK_SRWLOCK_WATCHED
#pragma pop_macro("WINBASEAPI")
#endif

/* Condition variables. rtl.h explains them. */

typedef RTL_CONDITION_VARIABLE CONDITION_VARIABLE, *PCONDITION_VARIABLE;
typedef RTL_CRITICAL_SECTION CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;

#define CONDITION_VARIABLE_INIT RTL_CONDITION_VARIABLE_INIT
#define CONDITION_VARIABLE_LOCKMODE_SHARED RTL_CONDITION_VARIABLE_LOCKMODE_SHARED

/* Initializes a condition variable without sleepers. Since Vista. */
WINBASEAPI VOID InitializeConditionVariable(PCONDITION_VARIABLE ConditionVariable);

/* Leaves the critical section once, sleeps, and enters it again. May wake spuriously. Fails with ERROR_TIMEOUT. Since
   Vista. */
WINBASEAPI BOOL SleepConditionVariableCS(PCONDITION_VARIABLE ConditionVariable, PCRITICAL_SECTION CriticalSection,
                                         DWORD dwMilliseconds);

/* Releases the SRW lock, sleeps, and acquires it again in the same mode. May wake spuriously. Fails with ERROR_TIMEOUT.
   Differs: a lock that is not held raises STATUS_RESOURCE_NOT_OWNED. Since Vista. */
WINBASEAPI BOOL SleepConditionVariableSRW(PCONDITION_VARIABLE ConditionVariable, PSRWLOCK SRWLock,
                                          DWORD dwMilliseconds, ULONG Flags);

/* Wakes the thread that has slept longest. Has no effect if there is none. Since Vista. */
WINBASEAPI VOID WakeConditionVariable(PCONDITION_VARIABLE ConditionVariable);

/* Wakes all threads that sleep at this moment. Since Vista. */
WINBASEAPI VOID WakeAllConditionVariable(PCONDITION_VARIABLE ConditionVariable);

/* Critical sections. rtl.h explains them. */

typedef RTL_CRITICAL_SECTION_DEBUG CRITICAL_SECTION_DEBUG, *PCRITICAL_SECTION_DEBUG, *LPCRITICAL_SECTION_DEBUG;

#define CRITICAL_SECTION_NO_DEBUG_INFO RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO

/* Initializes a free section. Raises STATUS_NO_MEMORY. Since NT 3.1. */
WINBASEAPI VOID InitializeCriticalSection(LPCRITICAL_SECTION lpCriticalSection);

/* Initializes a free section with a spin count, 0 for the default, and flags. Fails with ERROR_INVALID_PARAMETER. Since
   NT 4.0, Vista. */
WINBASEAPI BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount);
WINBASEAPI BOOL InitializeCriticalSectionEx(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount, DWORD Flags);

/* Sets the spin count, 0 for none. Returns the previous one. Since NT 4.0. */
WINBASEAPI DWORD SetCriticalSectionSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount);

/* Frees what the section holds; it must be unused. Since NT 3.1. */
WINBASEAPI VOID DeleteCriticalSection(LPCRITICAL_SECTION lpCriticalSection);

/* Blocks until the caller owns the section; recursive. Differs: as RtlEnterCriticalSection. Since NT 3.1. */
WINBASEAPI inline VOID EnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    extern NTSTATUS RtlEnterCriticalSection(PRTL_CRITICAL_SECTION); /* declared here only: windows.h has no such name */
    RtlEnterCriticalSection(lpCriticalSection);
}

/* Enters the section if it is free or owned by the caller. Returns TRUE if it did. Since NT 4.0. */
WINBASEAPI inline BOOL TryEnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    extern ULONG RtlTryEnterCriticalSection(PRTL_CRITICAL_SECTION);
    return (BOOL)RtlTryEnterCriticalSection(lpCriticalSection);
}

/* Leaves one level; the last one wakes a waiter. Differs: leaving a section without an owner changes nothing. Since NT
   3.1. */
WINBASEAPI inline VOID LeaveCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    extern NTSTATUS RtlLeaveCriticalSection(PRTL_CRITICAL_SECTION);
    RtlLeaveCriticalSection(lpCriticalSection);
}

/* Run-once. rtl.h explains it. */

typedef RTL_RUN_ONCE INIT_ONCE, *PINIT_ONCE, *LPINIT_ONCE;
typedef BOOL(WINAPI *PINIT_ONCE_FN)(PINIT_ONCE InitOnce, PVOID Parameter, PVOID *Context);

#define INIT_ONCE_STATIC_INIT RTL_RUN_ONCE_INIT
#define INIT_ONCE_CHECK_ONLY RTL_RUN_ONCE_CHECK_ONLY
#define INIT_ONCE_ASYNC RTL_RUN_ONCE_ASYNC
#define INIT_ONCE_INIT_FAILED RTL_RUN_ONCE_INIT_FAILED
#define INIT_ONCE_CTX_RESERVED_BITS RTL_RUN_ONCE_CTX_RESERVED_BITS

/* Initializes a run-once. Zeroed memory is one too. Since Vista. */
WINBASEAPI VOID InitOnceInitialize(PINIT_ONCE InitOnce);

/* Runs the callback once; other callers block until it is done. Returns FALSE, with the callback's last error, if it
   fails. Since Vista. */
WINBASEAPI BOOL InitOnceExecuteOnce(PINIT_ONCE InitOnce, PINIT_ONCE_FN InitFn, PVOID Parameter, LPVOID *Context);

/* Returns TRUE and the context if it is done; TRUE and *fPending if the caller is to initialize and complete.
   INIT_ONCE_CHECK_ONLY fails with ERROR_GEN_FAILURE before it is done. Since Vista. */
WINBASEAPI BOOL InitOnceBeginInitialize(LPINIT_ONCE lpInitOnce, DWORD dwFlags, PBOOL fPending, LPVOID *lpContext);

/* Completes the initialization with a context, or with INIT_ONCE_INIT_FAILED as failed. Fails with ERROR_GEN_FAILURE
   for the loser of an asynchronous race. Since Vista. */
WINBASEAPI BOOL InitOnceComplete(LPINIT_ONCE lpInitOnce, DWORD dwFlags, LPVOID lpContext);

/* Barriers. rtl.h explains them. */

typedef RTL_BARRIER SYNCHRONIZATION_BARRIER, *PSYNCHRONIZATION_BARRIER, *LPSYNCHRONIZATION_BARRIER;

#define SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY 0x01
#define SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY 0x02
#define SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE 0x04

/* Initializes a barrier for a number of threads; spin count -1 is 2000. Fails with ERROR_INVALID_PARAMETER. Since 8. */
WINBASEAPI BOOL InitializeSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, LONG lTotalThreads,
                                                 LONG lSpinCount);

/* Blocks until all threads have arrived. Returns TRUE to one of them. Since 8. */
WINBASEAPI BOOL EnterSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, DWORD dwFlags);

/* Waits until all threads have left, except those that entered with SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE. Returns
   TRUE. Since 8. */
WINBASEAPI BOOL DeleteSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier);

/* Completion ports. See docs/completion-ports.md. */

/* Creates a port that lets some number of threads run at a time; 0 means the number of processors. Differs: creates
   ports only, since no object has overlapped operations: FileHandle must be INVALID_HANDLE_VALUE; a descriptor object
   is ERROR_INVALID_PARAMETER, anything else ERROR_INVALID_HANDLE. Since NT 3.5. */
WINBASEAPI HANDLE WINAPI CreateIoCompletionPort(HANDLE FileHandle, HANDLE ExistingCompletionPort,
                                                ULONG_PTR CompletionKey, DWORD NumberOfConcurrentThreads);

/* Queues a packet. A thread gets its three values from GetQueuedCompletionStatus. Since NT 3.5. */
WINBASEAPI BOOL WINAPI PostQueuedCompletionStatus(HANDLE CompletionPort, DWORD dwNumberOfBytesTransferred,
                                                  ULONG_PTR dwCompletionKey, LPOVERLAPPED lpOverlapped);

/* Blocks for a packet, or in the Ex form for several, alertable if asked. Fails with WAIT_TIMEOUT, or with
   ERROR_ABANDONED_WAIT_0 when the port is closed. Since NT 3.5, Vista. */
WINBASEAPI BOOL WINAPI GetQueuedCompletionStatus(HANDLE CompletionPort, LPDWORD lpNumberOfBytesTransferred,
                                                 PULONG_PTR lpCompletionKey, LPOVERLAPPED *lpOverlapped,
                                                 DWORD dwMilliseconds);
WINBASEAPI BOOL WINAPI GetQueuedCompletionStatusEx(HANDLE CompletionPort, LPOVERLAPPED_ENTRY lpCompletionPortEntries,
                                                   ULONG ulCount, PULONG ulNumEntriesRemoved, DWORD dwMilliseconds,
                                                   BOOL fAlertable);

/*
 * Private namespaces. A namespace is a directory that processes find by its boundary descriptor: a name, and security
 * identifiers. In a process that has created or opened it, names of objects that begin with its prefix and a backslash are
 * in it. <namespaceapi.h> declares them.
 */

#define CREATE_BOUNDARY_DESCRIPTOR_ADD_APPCONTAINER_SID 0x1
#define PRIVATE_NAMESPACE_FLAG_DESTROY 0x00000001

typedef struct _SID_IDENTIFIER_AUTHORITY {
    BYTE Value[6];
} SID_IDENTIFIER_AUTHORITY, *PSID_IDENTIFIER_AUTHORITY;

typedef struct _SID {
    BYTE Revision;
    BYTE SubAuthorityCount;
    SID_IDENTIFIER_AUTHORITY IdentifierAuthority;
    DWORD SubAuthority[ANYSIZE_ARRAY];
} SID, *PISID;

#define SID_REVISION 1
#define SID_MAX_SUB_AUTHORITIES 15

/* Creates a boundary descriptor, which is not a handle of an object; NULL on failure. Differs: the flag is accepted and
   ignored. Since Vista. */
WINBASEAPI HANDLE WINAPI CreateBoundaryDescriptorA(LPCSTR Name, ULONG Flags);
WINBASEAPI HANDLE WINAPI CreateBoundaryDescriptorW(LPCWSTR Name, ULONG Flags);

/* Adds a security identifier to the boundary; the descriptor may move. Fails with ERROR_INVALID_SID, and with
   ERROR_INVALID_PARAMETER for an integrity level. Differs: identifiers distinguish boundaries; no process is refused.
   Since Vista. */
WINBASEAPI BOOL WINAPI AddSIDToBoundaryDescriptor(HANDLE *BoundaryDescriptor, PSID RequiredSid);

/* Adds an integrity level (S-1-16-n), one at most. Differs: it distinguishes boundaries; no process is refused. Since 7. */
WINBASEAPI BOOL WINAPI AddIntegrityLabelToBoundaryDescriptor(HANDLE *BoundaryDescriptor, PSID IntegrityLabel);

/* Frees a boundary descriptor; namespaces stay. Since Vista. */
WINBASEAPI VOID WINAPI DeleteBoundaryDescriptor(HANDLE BoundaryDescriptor);

/* Creates a namespace and gives it a prefix in this process. Fails with ERROR_ALREADY_EXISTS if there is one within the
   boundary, with ERROR_DUP_NAME if the prefix is taken. Since Vista. */
WINBASEAPI HANDLE WINAPI CreatePrivateNamespaceA(LPSECURITY_ATTRIBUTES lpPrivateNamespaceAttributes,
                                                 LPVOID lpBoundaryDescriptor, LPCSTR lpAliasPrefix);
WINBASEAPI HANDLE WINAPI CreatePrivateNamespaceW(LPSECURITY_ATTRIBUTES lpPrivateNamespaceAttributes,
                                                 LPVOID lpBoundaryDescriptor, LPCWSTR lpAliasPrefix);

/* Opens a namespace that a process has created. Fails with ERROR_PATH_NOT_FOUND if there is none. Since Vista. */
WINBASEAPI HANDLE WINAPI OpenPrivateNamespaceA(LPVOID lpBoundaryDescriptor, LPCSTR lpAliasPrefix);
WINBASEAPI HANDLE WINAPI OpenPrivateNamespaceW(LPVOID lpBoundaryDescriptor, LPCWSTR lpAliasPrefix);

/* Closes a namespace; with PRIVATE_NAMESPACE_FLAG_DESTROY no process opens it any more. Its objects stay. It ends with the
   last handle of any process. Since Vista. */
WINBASEAPI BOOLEAN WINAPI ClosePrivateNamespace(HANDLE Handle, ULONG Flags);

#define CreateBoundaryDescriptor INTERLOCK_AW(CreateBoundaryDescriptor)
#define CreatePrivateNamespace INTERLOCK_AW(CreatePrivateNamespace)
#define OpenPrivateNamespace INTERLOCK_AW(OpenPrivateNamespace)

/* Threads. See docs/threads.md, also for what TerminateThread leaves behind. */

#define CREATE_SUSPENDED 0x00000004
#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x00010000

#define THREAD_BASE_PRIORITY_LOWRT 15
#define THREAD_BASE_PRIORITY_MAX 2
#define THREAD_BASE_PRIORITY_MIN (-2)
#define THREAD_BASE_PRIORITY_IDLE (-15)

#define THREAD_PRIORITY_LOWEST THREAD_BASE_PRIORITY_MIN
#define THREAD_PRIORITY_BELOW_NORMAL (THREAD_PRIORITY_LOWEST + 1)
#define THREAD_PRIORITY_NORMAL 0
#define THREAD_PRIORITY_HIGHEST THREAD_BASE_PRIORITY_MAX
#define THREAD_PRIORITY_ABOVE_NORMAL (THREAD_PRIORITY_HIGHEST - 1)
#define THREAD_PRIORITY_ERROR_RETURN (MAXLONG)
#define THREAD_PRIORITY_TIME_CRITICAL THREAD_BASE_PRIORITY_LOWRT
#define THREAD_PRIORITY_IDLE THREAD_BASE_PRIORITY_IDLE
#define THREAD_MODE_BACKGROUND_BEGIN 0x00010000
#define THREAD_MODE_BACKGROUND_END 0x00020000

typedef DWORD(WINAPI *PTHREAD_START_ROUTINE)(LPVOID lpThreadParameter);
typedef PTHREAD_START_ROUTINE LPTHREAD_START_ROUTINE;
typedef VOID(WINAPI *PAPCFUNC)(ULONG_PTR Parameter);

#ifndef INTERLOCK_QUEUE_USER_APC_FLAGS
#define INTERLOCK_QUEUE_USER_APC_FLAGS
typedef enum _QUEUE_USER_APC_FLAGS {
    QUEUE_USER_APC_FLAGS_NONE = 0x0,
    QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC = 0x1, /* ERROR_NOT_SUPPORTED, as is the next one */
    QUEUE_USER_APC_CALLBACK_DATA_CONTEXT = 0x10000
} QUEUE_USER_APC_FLAGS;
#endif

typedef struct _PROC_THREAD_ATTRIBUTE_LIST *PPROC_THREAD_ATTRIBUTE_LIST, *LPPROC_THREAD_ATTRIBUTE_LIST;

/* Starts a thread, suspended if asked. Returns a handle and stores the id in lpThreadId, which may be NULL. Differs: in
   this process only: another one is ERROR_ACCESS_DENIED; an attribute list is ERROR_NOT_SUPPORTED; a stack size of 0 is
   the host's default, the minimum is 256 KB. Since NT 3.1, NT 3.1, 7. */
WINBASEAPI HANDLE WINAPI CreateThread(LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                                      LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter, DWORD dwCreationFlags,
                                      LPDWORD lpThreadId);
WINBASEAPI HANDLE WINAPI CreateRemoteThread(HANDLE hProcess, LPSECURITY_ATTRIBUTES lpThreadAttributes,
                                            SIZE_T dwStackSize, LPTHREAD_START_ROUTINE lpStartAddress,
                                            LPVOID lpParameter, DWORD dwCreationFlags, LPDWORD lpThreadId);
WINBASEAPI HANDLE WINAPI CreateRemoteThreadEx(HANDLE hProcess, LPSECURITY_ATTRIBUTES lpThreadAttributes,
                                              SIZE_T dwStackSize, LPTHREAD_START_ROUTINE lpStartAddress,
                                              LPVOID lpParameter, DWORD dwCreationFlags,
                                              LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, LPDWORD lpThreadId);

/* Opens a thread by its id. Fails with ERROR_INVALID_PARAMETER if there is none. Differs: finds threads of this process
   that have called the library. Since 2000. */
WINBASEAPI HANDLE WINAPI OpenThread(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwThreadId);

/* Ends the calling thread with an exit code. Does not return. Differs: unwinds C++ frames and runs the host's cleanup
   handlers. Since NT 3.1. */
WINBASEAPI DECLSPEC_NORETURN VOID WINAPI ExitThread(DWORD dwExitCode);

/* Asks a thread to end, without any cleanup of its own. Differs: the thread ends outside the library's own critical
   sections; its stack is leaked. Since NT 3.1. */
WINBASEAPI BOOL WINAPI TerminateThread(HANDLE hThread, DWORD dwExitCode);

/* Stores the exit code; STILL_ACTIVE while the thread runs. Since NT 3.1. */
WINBASEAPI BOOL WINAPI GetExitCodeThread(HANDLE hThread, LPDWORD lpExitCode);

/* Suspends the thread. Returns the previous suspend count; -1 on failure. Differs: a signal of the host stops a running
   thread; ERROR_ACCESS_DENIED if it does not reach it. Since NT 3.1. */
WINBASEAPI DWORD WINAPI SuspendThread(HANDLE hThread);

/* Removes one suspension. Returns the previous suspend count; -1 on failure. Differs: also starts a process that was
   created suspended. Since NT 3.1. */
WINBASEAPI DWORD WINAPI ResumeThread(HANDLE hThread);

/* Identity. */

/* Returns the pseudo handle -2, which means the calling thread wherever it is used. It need not be closed. Since NT
   3.1. */
WINBASEAPI HANDLE WINAPI GetCurrentThread(VOID);

/* Returns the thread environment block, which winternl.h declares. Differs: this call stores the ids and the
   limits of the stack; StackLimit is that of the whole stack. Since NT 3.1. */
NTSYSAPI struct _TEB *NTAPI NtCurrentTeb(VOID);

/* Returns the id of the calling thread: the host's thread id. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetCurrentThreadId(VOID);

/* Returns the pseudo handle -1, which means the calling process. It need not be closed. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI GetCurrentProcess(VOID);

/* Returns the id of this process: the host's process id. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetCurrentProcessId(VOID);

/* Returns the id of a thread; 0 on failure. Since Server 2003. */
WINBASEAPI DWORD WINAPI GetThreadId(HANDLE Thread);

/* Returns the id of the thread's process; 0 on failure. Since Server 2003. */
WINBASEAPI DWORD WINAPI GetProcessIdOfThread(HANDLE Thread);

/* Scheduling. */

/* Sets the priority relative to the process: -2 to 2, idle, or time critical. Differs: the host's scheduler follows
   where the process has the right; background mode, which the current thread begins and ends for itself, is stored
   without effect. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetThreadPriority(HANDLE hThread, int nPriority);

/* Returns the priority that was set; THREAD_PRIORITY_ERROR_RETURN on failure. Since NT 3.1. */
WINBASEAPI int WINAPI GetThreadPriority(HANDLE hThread);

/* Sets and queries whether priority boosts are disabled. Since NT 4.0. */
WINBASEAPI BOOL WINAPI SetThreadPriorityBoost(HANDLE hThread, BOOL bDisablePriorityBoost);
WINBASEAPI BOOL WINAPI GetThreadPriorityBoost(HANDLE hThread, PBOOL pDisablePriorityBoost);

/* Sets the processors of its group on which the thread may run; those that do not exist are ignored. Returns the
   previous mask; 0 on failure. Differs: applies to virtual processors; the host's scheduler is not affected. Since NT 3.5. */
WINBASEAPI DWORD_PTR WINAPI SetThreadAffinityMask(HANDLE hThread, DWORD_PTR dwThreadAffinityMask);

/* Sets and queries group and mask. Differs: applies to virtual processors; the host's scheduler is not affected. Since
   7. */
WINBASEAPI BOOL WINAPI SetThreadGroupAffinity(HANDLE hThread, const GROUP_AFFINITY *GroupAffinity,
                                              PGROUP_AFFINITY PreviousGroupAffinity);
WINBASEAPI BOOL WINAPI GetThreadGroupAffinity(HANDLE hThread, PGROUP_AFFINITY GroupAffinity);

/* Sets the preferred processor and returns or stores the previous one. MAXIMUM_PROCESSORS only queries; -1 on failure.
   Differs: stored, without effect. Since NT 4.0, 7. */
WINBASEAPI DWORD WINAPI SetThreadIdealProcessor(HANDLE hThread, DWORD dwIdealProcessor);
WINBASEAPI BOOL WINAPI SetThreadIdealProcessorEx(HANDLE hThread, PPROCESSOR_NUMBER lpIdealProcessor,
                                                 PPROCESSOR_NUMBER lpPreviousIdealProcessor);

/* Queries the processor that the thread prefers, with its group. Since 7. */
WINBASEAPI BOOL WINAPI GetThreadIdealProcessorEx(HANDLE hThread, PPROCESSOR_NUMBER lpIdealProcessor);

/* Returns the number of the current processor, or stores its group and number. Differs: the number of the virtual
   processor. Since Server 2003, 7. */
WINBASEAPI DWORD WINAPI GetCurrentProcessorNumber(VOID);
WINBASEAPI VOID WINAPI GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);

/* Times, names, APCs. */

/* Stores the times of creation and exit, and the processor time in kernel and user mode. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetThreadTimes(HANDLE hThread, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                                      LPFILETIME lpKernelTime, LPFILETIME lpUserTime);

/* Names the thread. Debuggers and GetThreadDescription show the name. Differs: the host's tools show the first 15
   characters, in ASCII. Since 10. */
WINBASEAPI HRESULT WINAPI SetThreadDescription(HANDLE hThread, PCWSTR lpThreadDescription);

/* Returns the thread's name, to be freed with LocalFree. Since 10. */
WINBASEAPI HRESULT WINAPI GetThreadDescription(HANDLE hThread, PWSTR *ppszThreadDescription);

/* Queues an APC that runs in an alertable wait of the thread. Returns 0 if the thread has ended. Since NT 4.0. */
WINBASEAPI DWORD WINAPI QueueUserAPC(PAPCFUNC pfnAPC, HANDLE hThread, ULONG_PTR dwData);

/* QueueUserAPC with flags. With QUEUE_USER_APC_FLAGS_NONE both are the same. Differs: a special user APC is
   ERROR_NOT_SUPPORTED. Since 11. */
WINBASEAPI BOOL WINAPI QueueUserAPC2(PAPCFUNC ApcRoutine, HANDLE Thread, ULONG_PTR Data, QUEUE_USER_APC_FLAGS Flags);

/* Stores whether the thread has I/O pending. Differs: always FALSE. Since XP. */
WINBASEAPI BOOL WINAPI GetThreadIOPendingFlag(HANDLE hThread, PBOOL lpIOIsPending);

/* Sets the stack that must remain on an overflow; stores the previous size. Differs: stored, without effect. Since
   Server 2003. */
WINBASEAPI BOOL WINAPI SetThreadStackGuarantee(PULONG StackSizeInBytes);

/* Thread-local and fiber-local storage. A thread that is not a fiber has fiber-local values like one. */

#ifndef TLS_MINIMUM_AVAILABLE
#define TLS_MINIMUM_AVAILABLE 64
#endif
#define TLS_OUT_OF_INDEXES ((DWORD)0xffffffff)
#define FLS_MAXIMUM_AVAILABLE 128
#define FLS_OUT_OF_INDEXES ((DWORD)0xffffffff)

typedef VOID(WINAPI *PFLS_CALLBACK_FUNCTION)(PVOID lpFlsData);

/* Allocates an index whose value is NULL in every thread; TLS_OUT_OF_INDEXES after 1087. Never 0. Since NT 3.1. */
WINBASEAPI DWORD WINAPI TlsAlloc(VOID);

/* Frees the index. What the values of threads point to is not freed. Since NT 3.1. */
WINBASEAPI BOOL WINAPI TlsFree(DWORD dwTlsIndex);

/* Returns the thread's value. NULL comes with ERROR_SUCCESS, or with ERROR_INVALID_PARAMETER for a bad index. Since NT
   3.1. */
WINBASEAPI LPVOID WINAPI TlsGetValue(DWORD dwTlsIndex);

/* Sets the thread's value. The first one of an index above 63 allocates memory. Since NT 3.1. */
WINBASEAPI BOOL WINAPI TlsSetValue(DWORD dwTlsIndex, LPVOID lpTlsValue);

/* Allocates an index, with a callback for the values that are not NULL when a thread or fiber ends; FLS_OUT_OF_INDEXES if
   there is none. Differs: 127 indexes; newer versions of Windows 10 have more. Since Server 2003. */
WINBASEAPI DWORD WINAPI FlsAlloc(PFLS_CALLBACK_FUNCTION lpCallback);

/* Calls back for the values of all threads and fibers, waits for running callbacks, and frees the index. Since Server 2003. */
WINBASEAPI BOOL WINAPI FlsFree(DWORD dwFlsIndex);

/* Returns and sets the value of the thread or fiber. An index that is not allocated takes one, too. Since Server 2003. */
WINBASEAPI PVOID WINAPI FlsGetValue(DWORD dwFlsIndex);
WINBASEAPI BOOL WINAPI FlsSetValue(DWORD dwFlsIndex, PVOID lpFlsData);

/*
 * Processes. A child is a process of the host. It inherits handles of events, mutexes, semaphores, timers, directories,
 * links and processes, if it is a program of this library (docs/processes.md). hThread in PROCESS_INFORMATION is another handle of the process: it is signaled when the process ends, and
 * ResumeThread starts a process that was created suspended.
 */

#define DEBUG_PROCESS 0x00000001
#define DEBUG_ONLY_THIS_PROCESS 0x00000002
#define DETACHED_PROCESS 0x00000008
#define CREATE_NEW_CONSOLE 0x00000010
#define NORMAL_PRIORITY_CLASS 0x00000020
#define IDLE_PRIORITY_CLASS 0x00000040
#define HIGH_PRIORITY_CLASS 0x00000080
#define REALTIME_PRIORITY_CLASS 0x00000100
#define CREATE_NEW_PROCESS_GROUP 0x00000200
#define CREATE_UNICODE_ENVIRONMENT 0x00000400
#define BELOW_NORMAL_PRIORITY_CLASS 0x00004000
#define ABOVE_NORMAL_PRIORITY_CLASS 0x00008000
#define EXTENDED_STARTUPINFO_PRESENT 0x00080000
#define CREATE_NO_WINDOW 0x08000000

#define STARTF_USESHOWWINDOW 0x00000001
#define STARTF_USESTDHANDLES 0x00000100

typedef struct _PROCESS_INFORMATION {
    HANDLE hProcess;
    HANDLE hThread;
    DWORD dwProcessId;
    DWORD dwThreadId;
} PROCESS_INFORMATION, *PPROCESS_INFORMATION, *LPPROCESS_INFORMATION;

typedef struct _STARTUPINFOA {
    DWORD cb;
    LPSTR lpReserved;
    LPSTR lpDesktop;
    LPSTR lpTitle;
    DWORD dwX;
    DWORD dwY;
    DWORD dwXSize;
    DWORD dwYSize;
    DWORD dwXCountChars;
    DWORD dwYCountChars;
    DWORD dwFillAttribute;
    DWORD dwFlags;
    WORD wShowWindow;
    WORD cbReserved2;
    PUCHAR lpReserved2;
    HANDLE hStdInput;
    HANDLE hStdOutput;
    HANDLE hStdError;
} STARTUPINFOA, *LPSTARTUPINFOA;

typedef struct _STARTUPINFOW {
    DWORD cb;
    LPWSTR lpReserved;
    LPWSTR lpDesktop;
    LPWSTR lpTitle;
    DWORD dwX;
    DWORD dwY;
    DWORD dwXSize;
    DWORD dwYSize;
    DWORD dwXCountChars;
    DWORD dwYCountChars;
    DWORD dwFillAttribute;
    DWORD dwFlags;
    WORD wShowWindow;
    WORD cbReserved2;
    PUCHAR lpReserved2;
    HANDLE hStdInput;
    HANDLE hStdOutput;
    HANDLE hStdError;
} STARTUPINFOW, *LPSTARTUPINFOW;

/* With EXTENDED_STARTUPINFO_PRESENT; cb is that of the whole structure. */
typedef struct _STARTUPINFOEXA {
    STARTUPINFOA StartupInfo;
    LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList;
} STARTUPINFOEXA, *LPSTARTUPINFOEXA;

typedef struct _STARTUPINFOEXW {
    STARTUPINFOW StartupInfo;
    LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList;
} STARTUPINFOEXW, *LPSTARTUPINFOEXW;

#define PROC_THREAD_ATTRIBUTE_HANDLE_LIST 0x00020002

C_ASSERT(sizeof(STARTUPINFOA) == 104 && sizeof(STARTUPINFOW) == 104);
C_ASSERT(sizeof(STARTUPINFOEXA) == 112 && sizeof(STARTUPINFOEXW) == 112);
C_ASSERT(sizeof(PROCESS_INFORMATION) == 24);

/* Prepares memory for a number of attributes. Without memory for them it fails with ERROR_INSUFFICIENT_BUFFER and stores
   the size that is needed. Since Vista. */
WINBASEAPI BOOL WINAPI InitializeProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList,
                                                         DWORD dwAttributeCount, DWORD dwFlags, PSIZE_T lpSize);

/* Adds an attribute, whose value is read when a process is created. Fails with ERROR_BAD_LENGTH, with
 * ERROR_OBJECT_NAME_EXISTS if the list has it already, with ERROR_GEN_FAILURE if the list is full. Differs: any
 * other than PROC_THREAD_ATTRIBUTE_HANDLE_LIST is ERROR_NOT_SUPPORTED. Since Vista. */
WINBASEAPI BOOL WINAPI UpdateProcThreadAttribute(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, DWORD dwFlags,
                                                 DWORD_PTR Attribute, PVOID lpValue, SIZE_T cbSize,
                                                 PVOID lpPreviousValue, PSIZE_T lpReturnSize);

/* Ends the use of a list; its memory is the program's. Since Vista. */
WINBASEAPI VOID WINAPI DeleteProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList);

/* Starts a program, suspended if asked. Stores handles and ids. With bInheritHandles the child gets the handles that
 * are marked for inheritance, or only those of them in a list, with the same values. Differs: the program is one of
 * the host, found in PATH; not every kind of handle is inherited (docs/processes.md); standard handles are descriptor
 * objects; debugging is ERROR_NOT_SUPPORTED; consoles, windows and priority classes are ignored. Since NT 3.1. */
NTSYSAPI BOOL CreateProcessA(LPCSTR lpApplicationName, LPSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                             LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                             LPVOID lpEnvironment, LPCSTR lpCurrentDirectory, LPSTARTUPINFOA lpStartupInfo,
                             LPPROCESS_INFORMATION lpProcessInformation);
NTSYSAPI BOOL CreateProcessW(LPCWSTR lpApplicationName, LPWSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                             LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                             LPVOID lpEnvironment, LPCWSTR lpCurrentDirectory, LPSTARTUPINFOW lpStartupInfo,
                             LPPROCESS_INFORMATION lpProcessInformation);

/* Opens a process by its id, to wait on. Fails with ERROR_INVALID_PARAMETER if there is none. Since NT 3.1. */
NTSYSAPI HANDLE OpenProcess(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwProcessId);

/* Stores the exit code; STILL_ACTIVE while the process runs. Differs: known for children only, else
   ERROR_NOT_SUPPORTED; 8 bits; a signal as the status that it stands for. Since NT 3.1. */
NTSYSAPI BOOL GetExitCodeProcess(HANDLE hProcess, LPDWORD lpExitCode);

/* Asks a process to end with an exit code, without waiting. Differs: uses SIGKILL. Since NT 3.1. */
NTSYSAPI BOOL TerminateProcess(HANDLE hProcess, UINT uExitCode);

/* Returns the id of a process; 0 on failure. Since XP. */
NTSYSAPI DWORD GetProcessId(HANDLE Process);

/* Ends this process with an exit code. Does not return. Differs: as exit(3): runs the handlers of atexit. Since NT
   3.1. */
NTSYSAPI DECLSPEC_NORETURN VOID ExitProcess(UINT uExitCode);

#ifdef UNICODE
#define CreateProcess CreateProcessW
typedef STARTUPINFOW STARTUPINFO;
typedef LPSTARTUPINFOW LPSTARTUPINFO;
typedef STARTUPINFOEXW STARTUPINFOEX;
typedef LPSTARTUPINFOEXW LPSTARTUPINFOEX;
#else
#define CreateProcess CreateProcessA
typedef STARTUPINFOA STARTUPINFO;
typedef LPSTARTUPINFOA LPSTARTUPINFO;
typedef STARTUPINFOEXA STARTUPINFOEX;
typedef LPSTARTUPINFOEXA LPSTARTUPINFOEX;
#endif

/* Thread pool types. */

typedef VOID (*PTP_WIN32_IO_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PVOID Overlapped, ULONG IoResult,
                                      ULONG_PTR NumberOfBytesTransferred, PTP_IO Io);

/* Callback environments. How the callbacks of an object run; TP_CALLBACK_ENVIRON is in usermode.h. */

/* TpInitializeCallbackEnviron: the pool of the process, normal priority. Since Vista. */
FORCEINLINE VOID InitializeThreadpoolEnvironment(PTP_CALLBACK_ENVIRON pcbe)
{
    TpInitializeCallbackEnviron(pcbe);
}

/* TpSetCallbackThreadpool: sets the pool that runs the callbacks. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackPool(PTP_CALLBACK_ENVIRON pcbe, PTP_POOL ptpp)
{
    TpSetCallbackThreadpool(pcbe, ptpp);
}

/* TpSetCallbackCleanupGroup: sets the cleanup group of the objects. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackCleanupGroup(PTP_CALLBACK_ENVIRON pcbe, PTP_CLEANUP_GROUP ptpcg,
                                                   PTP_CLEANUP_GROUP_CANCEL_CALLBACK pfng)
{
    TpSetCallbackCleanupGroup(pcbe, ptpcg, pfng);
}

/* TpSetCallbackLongFunction: declares that callbacks may run long. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackRunsLong(PTP_CALLBACK_ENVIRON pcbe)
{
    TpSetCallbackLongFunction(pcbe);
}

/* TpSetCallbackRaceWithDll: keeps a module loaded while callbacks of the environment run. Differs: ignored: modules are
   never unloaded. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackLibrary(PTP_CALLBACK_ENVIRON pcbe, PVOID mod)
{
    TpSetCallbackRaceWithDll(pcbe, mod);
}

/* TpSetCallbackPriority: sets the priority of the callbacks of the environment. Since 7. */
FORCEINLINE VOID SetThreadpoolCallbackPriority(PTP_CALLBACK_ENVIRON pcbe, TP_CALLBACK_PRIORITY Priority)
{
    TpSetCallbackPriority(pcbe, Priority);
}

/* TpSetCallbackPersistent: keeps the thread that has run a callback. Since 7. */
FORCEINLINE VOID SetThreadpoolCallbackPersistent(PTP_CALLBACK_ENVIRON pcbe)
{
    TpSetCallbackPersistent(pcbe);
}

/* TpDestroyCallbackEnviron: ends the use of an environment. Does nothing: it owns no memory. Since Vista. */
FORCEINLINE VOID DestroyThreadpoolEnvironment(PTP_CALLBACK_ENVIRON pcbe)
{
    TpDestroyCallbackEnviron(pcbe);
}

/* Pools. */

/* Creates a pool; NULL if memory is exhausted. Since Vista. */
WINBASEAPI PTP_POOL CreateThreadpool(PVOID reserved);

/* Sets the maximum number of threads, 500 by default; 0 counts as 1. Since Vista. */
WINBASEAPI VOID SetThreadpoolThreadMaximum(PTP_POOL ptpp, DWORD cthrdMost);

/* Sets the number of threads that stay, and creates them. Returns FALSE if it cannot. Since Vista. */
WINBASEAPI BOOL SetThreadpoolThreadMinimum(PTP_POOL ptpp, DWORD cthrdMic);

/* Sets and queries the stack sizes of threads created later. Since 7. */
WINBASEAPI BOOL SetThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi);
WINBASEAPI BOOL QueryThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi);

/* Closes the pool, which lives until the last of its objects is gone. Since Vista. */
WINBASEAPI VOID CloseThreadpool(PTP_POOL ptpp);

/* Cleanup groups. Objects that are closed together. */

/* Creates a group of objects that are closed together. Since Vista. */
WINBASEAPI PTP_CLEANUP_GROUP CreateThreadpoolCleanupGroup(VOID);

/* Closes all members and waits for their callbacks, cancelling pending ones if asked. Then calls the cancel callback
 * of each member that was cancelled before the program closed it. Since Vista. */
WINBASEAPI VOID CloseThreadpoolCleanupGroupMembers(PTP_CLEANUP_GROUP ptpcg, BOOL fCancelPendingCallbacks,
                                                   PVOID pvCleanupContext);

/* Closes the group, which has to be empty: CloseThreadpoolCleanupGroupMembers comes first. Since Vista. */
WINBASEAPI VOID CloseThreadpoolCleanupGroup(PTP_CLEANUP_GROUP ptpcg);

/* Inside a callback. What happens when it returns, and what the pool should know about it. */

/* Sets, releases or leaves the object when the callback returns. One of each kind: a second one raises
   STATUS_INVALID_PARAMETER. Since Vista. */
WINBASEAPI VOID SetEventWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE evt);
WINBASEAPI VOID ReleaseSemaphoreWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE sem, DWORD crel);
WINBASEAPI VOID ReleaseMutexWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE mut);
WINBASEAPI VOID LeaveCriticalSectionWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, PRTL_CRITICAL_SECTION pcs);

/* Unloads a module when the callback returns. Differs: modules are never unloaded. Since Vista. */
WINBASEAPI VOID FreeLibraryWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HMODULE mod);

/* Stops counting the callback as running. Returns FALSE if no other thread can take over. Since Vista. */
WINBASEAPI BOOL CallbackMayRunLong(PTP_CALLBACK_INSTANCE pci);

/* Counts the callback as finished for threads that wait on the object, but not for its cleanup group. Since Vista. */
WINBASEAPI VOID DisassociateCurrentThreadFromCallback(PTP_CALLBACK_INSTANCE pci);

/* Work objects. Submitting cannot fail. */

/* Queues one callback without an object. Returns FALSE if there is no memory or no thread. Since Vista. */
WINBASEAPI BOOL TrySubmitThreadpoolCallback(PTP_SIMPLE_CALLBACK pfns, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Creates a work object; NULL on failure. Since Vista. */
WINBASEAPI PTP_WORK CreateThreadpoolWork(PTP_WORK_CALLBACK pfnwk, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Queues one more callback; cannot fail. Callbacks of one object run concurrently. Since Vista. */
WINBASEAPI VOID SubmitThreadpoolWork(PTP_WORK pwk);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolWorkCallbacks(PTP_WORK pwk, BOOL fCancelPendingCallbacks);

/* Closes the object; pending callbacks still run. Since Vista. */
WINBASEAPI VOID CloseThreadpoolWork(PTP_WORK pwk);

/* Timer objects. */

/* Creates a timer object; NULL on failure. Since Vista. */
WINBASEAPI PTP_TIMER CreateThreadpoolTimer(PTP_TIMER_CALLBACK pfnti, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Sets the timer: the due time, relative if negative, NULL for never; period and window in milliseconds. The Ex form
   returns TRUE if the timer was already set and that setting was replaced before it expired. Since Vista, 8. */
WINBASEAPI VOID SetThreadpoolTimer(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength);
WINBASEAPI BOOL SetThreadpoolTimerEx(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength);

/* Returns TRUE if the last call that set the timer gave it a due time, even if it has expired since. Since Vista. */
WINBASEAPI BOOL IsThreadpoolTimerSet(PTP_TIMER pti);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. The timer stays set. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolTimerCallbacks(PTP_TIMER pti, BOOL fCancelPendingCallbacks);

/* Closes the object, which no longer expires. Since Vista. */
WINBASEAPI VOID CloseThreadpoolTimer(PTP_TIMER pti);

/* Wait objects. One callback per setting. Mutexes are refused, since only a thread can own one. */

/* Creates a wait object; NULL on failure. Since Vista. */
WINBASEAPI PTP_WAIT CreateThreadpoolWait(PTP_WAIT_CALLBACK pfnwa, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Queues one callback when the object is signaled or the time is over; a NULL handle cancels the wait. A bad handle
   raises its status. The Ex form returns TRUE if a wait was already set and was replaced before it fired. Differs: a
   mutex raises STATUS_THREADPOOL_HANDLE_EXCEPTION. Since Vista, 8. */
WINBASEAPI VOID SetThreadpoolWait(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout);
WINBASEAPI BOOL SetThreadpoolWaitEx(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout, PVOID Reserved);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolWaitCallbacks(PTP_WAIT pwa, BOOL fCancelPendingCallbacks);

/* Closes the object, which no longer waits. Since Vista. */
WINBASEAPI VOID CloseThreadpoolWait(PTP_WAIT pwa);

/* I/O objects. Files are descriptor objects (io.h). */

/* Binds a file to callbacks; NULL on failure. Differs: the file is a descriptor object (io.h), anything else
   ERROR_INVALID_HANDLE; the callback's Overlapped is NULL and its IoResult NO_ERROR. Since Vista. */
WINBASEAPI PTP_IO CreateThreadpoolIo(HANDLE fl, PTP_WIN32_IO_CALLBACK pfnio, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Announces an operation, which will have one callback. Differs: the callback runs when the descriptor is ready, one
   after the other. Since Vista. */
WINBASEAPI VOID StartThreadpoolIo(PTP_IO pio);

/* Withdraws an announced operation that has failed: it has no callback. Since Vista. */
WINBASEAPI VOID CancelThreadpoolIo(PTP_IO pio);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolIoCallbacks(PTP_IO pio, BOOL fCancelPendingCallbacks);

/* Closes the object, which is freed after its last callback. Since Vista. */
WINBASEAPI VOID CloseThreadpoolIo(PTP_IO pio);

/* Binds a file to a routine until its last handle is closed. Fails with ERROR_INVALID_PARAMETER if it is bound, or Flags
   is not 0. Differs: the file is a descriptor object (io.h), anything else ERROR_INVALID_HANDLE; the routine is called
   whenever the descriptor is ready, one call after the other, with NO_ERROR, 0 and NULL. Since 2000. */
WINBASEAPI BOOL WINAPI BindIoCompletionCallback(HANDLE FileHandle, LPOVERLAPPED_COMPLETION_ROUTINE Function,
                                                ULONG Flags);

/* The older interface. Everything runs in the pool of the process. */

/* Runs a routine in the pool of the process. Since 2000. */
WINBASEAPI BOOL QueueUserWorkItem(LPTHREAD_START_ROUTINE Function, PVOID Context, ULONG Flags);

/* Runs a routine each time an object is signaled or the time is over, also while an earlier call runs. Differs: it
   references the object; a wait for a mutex has a thread of its own, which runs the routine. Since 2000. */
WINBASEAPI BOOL RegisterWaitForSingleObject(PHANDLE phNewWaitObject, HANDLE hObject, WAITORTIMERCALLBACK Callback,
                                            PVOID Context, ULONG dwMilliseconds, ULONG dwFlags);

/* Ends a registered wait. Fails with ERROR_IO_PENDING while calls of the routine are pending or running, which still
   occur. The Ex form sets CompletionEvent after the last one, or blocks until then if it is INVALID_HANDLE_VALUE. Since
   2000. */
WINBASEAPI BOOL UnregisterWait(HANDLE WaitHandle);
WINBASEAPI BOOL UnregisterWaitEx(HANDLE WaitHandle, HANDLE CompletionEvent);

/* Creates a timer queue; DeleteTimerQueueEx deletes it with its timers. Since 2000. */
WINBASEAPI HANDLE CreateTimerQueue(VOID);

/* Creates a timer in a queue, or with NULL in the queue of the process. Times are in milliseconds. Since 2000. */
WINBASEAPI BOOL CreateTimerQueueTimer(PHANDLE phNewTimer, HANDLE TimerQueue, WAITORTIMERCALLBACK Callback,
                                      PVOID Parameter, DWORD DueTime, DWORD Period, ULONG Flags);

/* Changes the due time and period. Since 2000. */
WINBASEAPI BOOL ChangeTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, ULONG DueTime, ULONG Period);

/* Deletes a timer. CompletionEvent and ERROR_IO_PENDING are those of UnregisterWaitEx. Since 2000. */
WINBASEAPI BOOL DeleteTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, HANDLE CompletionEvent);

/* Deletes a queue with all its timers. CompletionEvent is that of UnregisterWaitEx. Since 2000. */
WINBASEAPI BOOL DeleteTimerQueue(HANDLE TimerQueue);
WINBASEAPI BOOL DeleteTimerQueueEx(HANDLE TimerQueue, HANDLE CompletionEvent);

/*
 * Fibers. A fiber is a stack and registers that a thread runs, one at a time. What the library keeps for a thread stays with
 * the thread: its waits, its APCs, its thread-local storage and last error, the mutexes and critical sections that it owns. A
 * fiber that moves to another thread waits and owns as that thread. Its frames of __try and its fiber-local storage move with
 * it.
 */

#define FIBER_FLAG_FLOAT_SWITCH 0x1

typedef VOID(WINAPI *PFIBER_START_ROUTINE)(LPVOID lpFiberParameter);
typedef PFIBER_START_ROUTINE LPFIBER_START_ROUTINE;

/* Makes the calling thread a fiber, which it needs before it switches to one, and returns it; NULL on failure. Fails with
   ERROR_ALREADY_FIBER. Since NT 3.51, Server 2003. */
WINBASEAPI LPVOID WINAPI ConvertThreadToFiber(LPVOID lpParameter);
WINBASEAPI LPVOID WINAPI ConvertThreadToFiberEx(LPVOID lpParameter, DWORD dwFlags);

/* Makes the calling fiber a thread again and frees its record. The stack on which it runs stays in use until the thread
   ends. Fails with ERROR_ALREADY_THREAD. Since XP. */
WINBASEAPI BOOL WINAPI ConvertFiberToThread(VOID);

/* Creates a fiber with a stack of its own; NULL on failure. It runs when a thread switches to it. When its routine returns, the
 * thread that runs it ends with code 1. Differs: the stack has at least 256 KB and is committed by use, with a guard
   page. Since NT 3.51, Server 2003. */
WINBASEAPI LPVOID WINAPI CreateFiber(SIZE_T dwStackSize, LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter);
WINBASEAPI LPVOID WINAPI CreateFiberEx(SIZE_T dwStackCommitSize, SIZE_T dwStackReserveSize, DWORD dwFlags,
                                       LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter);

/* Suspends the calling fiber and runs another one. Differs: raises STATUS_INVALID_PARAMETER if the caller is not a
 * fiber or the other one runs on another thread; not for use inside an APC or a callback of the pool. Since NT 3.51. */
WINBASEAPI VOID WINAPI SwitchToFiber(LPVOID lpFiber);

/* Calls back for the fiber-local values of a fiber, and frees it with its stack. The current fiber ends its thread.
   Differs: raises STATUS_INVALID_PARAMETER if the fiber runs on another thread. Since NT 3.51. */
WINBASEAPI VOID WINAPI DeleteFiber(LPVOID lpFiber);

/* Returns the fiber that the calling thread runs. Differs: NULL for a thread that is not a fiber. Since NT 3.51. */
WINBASEAPI PVOID GetCurrentFiber(VOID);

/* Returns the parameter of the current fiber. Since NT 3.51. */
WINBASEAPI PVOID GetFiberData(VOID);

/* Returns whether the calling thread runs a fiber. Since Vista. */
WINBASEAPI BOOL WINAPI IsThreadAFiber(VOID);

/* Scheduling of processes. Affinity and priority class. Only this process can be changed: another one is ERROR_NOT_SUPPORTED. */

#define PROCESS_MODE_BACKGROUND_BEGIN 0x00100000
#define PROCESS_MODE_BACKGROUND_END 0x00200000

/* Stores the processors on which the threads of a process may run, and those of the machine. Both are 0 if there are
   several groups of processors. Differs: virtual processors; another process may run on all of them. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask,
                                              PDWORD_PTR lpSystemAffinityMask);

/* Sets the processors on which the threads of this process may run, and the affinity of each thread. Fails with
   ERROR_INVALID_PARAMETER unless the mask is a part of the machine's. Differs: applies to virtual processors; the host's
   scheduler is not affected. Since NT 3.5. */
WINBASEAPI BOOL WINAPI SetProcessAffinityMask(HANDLE hProcess, DWORD_PTR dwProcessAffinityMask);

/* Returns the priority class; 0 on failure. Differs: another process is normal. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetPriorityClass(HANDLE hProcess);

/* Sets the priority class, from which the priorities of all threads follow, or begins or ends background mode. Differs:
   the host's scheduler follows where the process has the right; realtime becomes high, as without the privilege. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI SetPriorityClass(HANDLE hProcess, DWORD dwPriorityClass);

/* Sets and queries whether priority boosts are disabled, for all threads and for those created later. Since NT 4.0. */
WINBASEAPI BOOL WINAPI SetProcessPriorityBoost(HANDLE hProcess, BOOL bDisablePriorityBoost);
WINBASEAPI BOOL WINAPI GetProcessPriorityBoost(HANDLE hProcess, PBOOL pDisablePriorityBoost);

/* Stores the times of creation and exit, and the processor time in kernel and user mode. Differs: of a process that has
   ended, the processor times of children only. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetProcessTimes(HANDLE hProcess, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                                       LPFILETIME lpKernelTime, LPFILETIME lpUserTime);

/* Stores the number of open handles. Differs: of another process it is ERROR_NOT_SUPPORTED. Since XP. */
WINBASEAPI BOOL WINAPI GetProcessHandleCount(HANDLE hProcess, PDWORD pdwHandleCount);

/*
 * Topology. Virtual processor n stands for the n-th processor of the host on which the process may run; processors beyond
 * those are cores of their own.
 */

typedef enum _LOGICAL_PROCESSOR_RELATIONSHIP {
    RelationProcessorCore,
    RelationNumaNode,
    RelationCache,
    RelationProcessorPackage,
    RelationGroup,
    RelationAll = 0xffff
} LOGICAL_PROCESSOR_RELATIONSHIP;

#define LTP_PC_SMT 0x1

typedef enum _PROCESSOR_CACHE_TYPE { CacheUnified, CacheInstruction, CacheData, CacheTrace } PROCESSOR_CACHE_TYPE;

#define CACHE_FULLY_ASSOCIATIVE 0xFF

typedef struct _CACHE_DESCRIPTOR {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD Size;
    PROCESSOR_CACHE_TYPE Type;
} CACHE_DESCRIPTOR, *PCACHE_DESCRIPTOR;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION {
    ULONG_PTR ProcessorMask;
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    __extension__ union {
        struct {
            BYTE Flags;
        } ProcessorCore;
        struct {
            DWORD NodeNumber;
        } NumaNode;
        CACHE_DESCRIPTOR Cache;
        ULONGLONG Reserved[2];
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION;

typedef struct _PROCESSOR_RELATIONSHIP {
    BYTE Flags;
    BYTE EfficiencyClass;
    BYTE Reserved[20];
    WORD GroupCount;
    GROUP_AFFINITY GroupMask[1];
} PROCESSOR_RELATIONSHIP, *PPROCESSOR_RELATIONSHIP;

typedef struct _NUMA_NODE_RELATIONSHIP {
    DWORD NodeNumber;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} NUMA_NODE_RELATIONSHIP, *PNUMA_NODE_RELATIONSHIP;

typedef struct _CACHE_RELATIONSHIP {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD CacheSize;
    PROCESSOR_CACHE_TYPE Type;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} CACHE_RELATIONSHIP, *PCACHE_RELATIONSHIP;

typedef struct _PROCESSOR_GROUP_INFO {
    BYTE MaximumProcessorCount;
    BYTE ActiveProcessorCount;
    BYTE Reserved[38];
    KAFFINITY ActiveProcessorMask;
} PROCESSOR_GROUP_INFO, *PPROCESSOR_GROUP_INFO;

typedef struct _GROUP_RELATIONSHIP {
    WORD MaximumGroupCount;
    WORD ActiveGroupCount;
    BYTE Reserved[20];
    PROCESSOR_GROUP_INFO GroupInfo[1];
} GROUP_RELATIONSHIP, *PGROUP_RELATIONSHIP;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX {
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    DWORD Size;
    __extension__ union {
        PROCESSOR_RELATIONSHIP Processor;
        NUMA_NODE_RELATIONSHIP NumaNode;
        CACHE_RELATIONSHIP Cache;
        GROUP_RELATIONSHIP Group;
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX;

C_ASSERT(sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION) == 32);
C_ASSERT(sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX) == 80);

/* Stores one record for each core, cache, package and node of group 0, and the length. Fails with
   ERROR_INSUFFICIENT_BUFFER and the length that is needed. Differs: as the host's sysfs has it; without one each
   processor is a core, and all are one package. Since XP. */
WINBASEAPI BOOL WINAPI GetLogicalProcessorInformation(PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Buffer,
                                                      PDWORD ReturnedLength);

/* The same for one relationship or all, in records of different sizes, with all groups. Since 7. */
WINBASEAPI BOOL WINAPI GetLogicalProcessorInformationEx(LOGICAL_PROCESSOR_RELATIONSHIP RelationshipType,
                                                        PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Buffer,
                                                        PDWORD ReturnedLength);

/* Stores the highest node number of the machine. Since XP. */
WINBASEAPI BOOL WINAPI GetNumaHighestNodeNumber(PULONG HighestNodeNumber);

/* Registers. */

typedef PCONTEXT LPCONTEXT;

/* Gets or sets those registers of a suspended thread that ContextFlags selects. Differs: as NtGetContextThread. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI GetThreadContext(HANDLE hThread, LPCONTEXT lpContext);
WINBASEAPI BOOL WINAPI SetThreadContext(HANDLE hThread, const CONTEXT *lpContext);

/* A barrier on all threads, and the limits of a stack. */

/* Makes the stores of every thread of the process visible: a full barrier on each processor that runs one of them.
   Differs: uses membarrier; waits 10 ms where the host refuses it. Since Vista. */
WINBASEAPI VOID WINAPI FlushProcessWriteBuffers(VOID);

/* Stores the lowest address of the calling thread's or fiber's stack, and the address after its end. Since 8. */
WINBASEAPI VOID WINAPI GetCurrentThreadStackLimits(PULONG_PTR LowLimit, PULONG_PTR HighLimit);

INTERLOCK_END

#endif
