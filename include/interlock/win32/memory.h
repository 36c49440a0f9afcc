/* win32/memory.h: kernel32's virtual memory, the rest of the heap functions, memory notifications. Part of win32.h. */
#ifndef INTERLOCK_WIN32_MEMORY_H
#define INTERLOCK_WIN32_MEMORY_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

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
   commitment outside a reservation and for a reservation that overlaps another. Differs: a guard page stays one: an access
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

/* Heaps, continued. */

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

INTERLOCK_END

#endif
