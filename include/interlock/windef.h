/* windef.h: the types, constants and memory functions that windows.h and the kernel's headers share, below everything. */
#ifndef INTERLOCK_WINDEF_H
#define INTERLOCK_WINDEF_H

#if !defined(__LP64__) || __SIZEOF_POINTER__ != 8 || __SIZEOF_INT__ != 4
#error "Interlock needs a 64-bit (LP64) target: its structures have the layout of 64-bit Windows."
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Interlock needs a little-endian target: its structures have the layout of 64-bit Windows."
#endif

#include <stddef.h>
#include <string.h>

#include <interlock/annotations.h>
#include <interlock/linkage.h>

/* Linkage. */
#ifdef __cplusplus
#define EXTERN_C extern "C"
#else
#define EXTERN_C extern
#endif
#define EXTERN_C_START INTERLOCK_BEGIN
#define EXTERN_C_END   INTERLOCK_END

#ifndef NTSYSAPI
#define NTSYSAPI INTERLOCK_API
#endif
#ifndef NTSYSCALLAPI
#define NTSYSCALLAPI INTERLOCK_API
#endif

/* Calling conventions. There is only one. */
#define NTAPI
#define FASTCALL
#define WINAPI
#define APIENTRY
#define CALLBACK
#define NTAPI_INLINE NTAPI
#ifndef __stdcall
#define __stdcall
#endif
#ifndef __cdecl
#define __cdecl
#endif
#ifndef __fastcall
#define __fastcall
#endif

/* Compiler attributes. */
#ifndef FORCEINLINE
#define FORCEINLINE static inline __attribute__((always_inline))
#endif
#ifndef __forceinline
#define __forceinline inline __attribute__((always_inline))
#endif
#define DECLSPEC_IMPORT             INTERLOCK_API
#define DECLSPEC_NOINLINE           __attribute__((noinline))
#define DECLSPEC_NORETURN           __attribute__((noreturn))
#define DECLSPEC_ALIGN(n)           __attribute__((aligned(n)))
#define DECLSPEC_CACHEALIGN         DECLSPEC_ALIGN(SYSTEM_CACHE_ALIGNMENT_SIZE)
#define DECLSPEC_SELECTANY          __attribute__((weak))
#define DECLSPEC_DEPRECATED         __attribute__((deprecated))
#define SYSTEM_CACHE_ALIGNMENT_SIZE 64
#define MEMORY_ALLOCATION_ALIGNMENT 16
#define POINTER_ALIGNMENT           DECLSPEC_ALIGN(8)
#define RESTRICTED_POINTER          __restrict
#define UNALIGNED

#ifdef __cplusplus
#define C_ASSERT(e) static_assert(e, #e)
#else
#define C_ASSERT(e) _Static_assert(e, #e)
#endif

/* Integers. LONG and ULONG are 32 bits, as on Windows. */
#ifndef VOID
#define VOID void
#endif
#ifndef __int64
#define __int8 char
#define __int16 short
#define __int32 int
#define __int64 long long
#endif

typedef char CHAR, CCHAR, *PCHAR, *PCH, *LPCH, *NPSTR, *LPSTR, *PSTR, *PSZ;
typedef const char *LPCCH, *PCCH, *LPCSTR, *PCSTR;
typedef PSTR *PZPSTR;
typedef PCSTR *PZPCSTR;
typedef signed char INT8, *PINT8;
typedef unsigned char UCHAR, BYTE, UINT8, BOOLEAN, FCHAR, *PUCHAR, *PBYTE, *LPBYTE, *PUINT8,
    *PBOOLEAN;
typedef short SHORT, INT16, *PSHORT, *PINT16;
typedef unsigned short USHORT, WORD, UINT16, ATOM, *PUSHORT, *PWORD, *LPWORD, *PUINT16;
typedef int INT, LONG, LONG32, INT32, BOOL, *PINT, *LPINT, *PLONG, *LPLONG, *PLONG32, *PINT32,
    *PBOOL, *LPBOOL;
typedef unsigned int UINT, ULONG, DWORD, ULONG32, UINT32, DWORD32;
typedef unsigned int *PUINT, *LPUINT, *PULONG, *PDWORD, *LPDWORD, *PULONG32, *PUINT32, *PDWORD32;
typedef long long LONGLONG, LONG64, INT64, USN, *PLONGLONG, *PLONG64, *PINT64;
typedef unsigned long long ULONGLONG, DWORDLONG, ULONG64, UINT64, DWORD64;
typedef unsigned long long *PULONGLONG, *PDWORDLONG, *PULONG64, *PUINT64, *PDWORD64;
typedef float FLOAT, *PFLOAT;
typedef double DOUBLE;

/* Integers of pointer size: the same type as size_t and intptr_t. */
typedef long LONG_PTR, INT_PTR, SSIZE_T, *PLONG_PTR, *PINT_PTR, *PSSIZE_T;
typedef unsigned long ULONG_PTR, UINT_PTR, DWORD_PTR, SIZE_T, *PULONG_PTR, *PUINT_PTR, *PDWORD_PTR,
    *PSIZE_T;

typedef void *PVOID, *LPVOID, *HANDLE, *PVOID64;
typedef const void *LPCVOID;
typedef HANDLE *PHANDLE, *LPHANDLE;

/* UTF-16 code units; WCHAR is in linkage.h. */
typedef WCHAR *PWCHAR, *LPWCH, *PWCH, *NWPSTR, *LPWSTR, *PWSTR;
typedef const WCHAR *LPCWCH, *PCWCH, *LPCWSTR, *PCWSTR;
typedef PWSTR *PZPWSTR;
typedef PCWSTR *PZPCWSTR;

typedef LONG NTSTATUS, *PNTSTATUS;
typedef ULONG_PTR KAFFINITY, *PKAFFINITY;
typedef ULONG ACCESS_MASK, *PACCESS_MASK;

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#define MINCHAR       0x80
#define MAXCHAR       0x7f
#define MINSHORT      0x8000
#define MAXSHORT      0x7fff
#define MINLONG       0x80000000
#define MAXLONG       0x7fffffff
#define MAXLONGLONG   0x7fffffffffffffffLL
#define MAXBYTE       0xff
#define MAXWORD       0xffff
#define MAXDWORD      0xffffffff
#define MAXULONG      0xffffffff
#define MAXULONGLONG  0xffffffffffffffffULL
#define MAXLONG_PTR   ((LONG_PTR)0x7fffffffffffffffL)
#define MINLONG_PTR   (-MAXLONG_PTR - 1)
#define MAXULONG_PTR  (~(ULONG_PTR)0)
#define MAXUINT_PTR   (~(UINT_PTR)0)
#define MAXSIZE_T     (~(SIZE_T)0)
#define MINLONGLONG   (-MAXLONGLONG - 1)
#define MAXINT_PTR    MAXLONG_PTR
#define MININT_PTR    MINLONG_PTR
#define MAXSSIZE_T    MAXLONG_PTR
#define MINSSIZE_T    MINLONG_PTR
#define MAXUINT       ((UINT)0xffffffff)
#define MAXINT        ((INT)0x7fffffff)
#define MININT        (-MAXINT - 1)
#define MAXUINT8      ((UINT8)0xff)
#define MAXINT8       ((INT8)0x7f)
#define MININT8       ((INT8)-0x80)
#define MAXUINT16     ((UINT16)0xffff)
#define MAXINT16      ((INT16)0x7fff)
#define MININT16      ((INT16)-0x8000)
#define MAXUINT32     ((UINT32)0xffffffff)
#define MAXINT32      ((INT32)0x7fffffff)
#define MININT32      (-MAXINT32 - 1)
#define MAXULONG32    ((ULONG32)0xffffffff)
#define MAXLONG32     ((LONG32)0x7fffffff)
#define MINLONG32     (-MAXLONG32 - 1)
#define MAXUINT64     ((UINT64)0xffffffffffffffffULL)
#define MAXINT64      ((INT64)0x7fffffffffffffffLL)
#define MININT64      (-MAXINT64 - 1)
#define MAXULONG64    ((ULONG64)0xffffffffffffffffULL)
#define MAXLONG64     ((LONG64)0x7fffffffffffffffLL)
#define MINLONG64     (-MAXLONG64 - 1)
#define MAXDWORD32    ((DWORD32)0xffffffff)
#define MAXDWORD64    ((DWORD64)0xffffffffffffffffULL)
#define ANYSIZE_ARRAY 1
#define UNICODE_NULL  ((WCHAR)0)
#define ANSI_NULL     ((CHAR)0)

/* Conversions and helpers. */
#define HandleToULong(h) ((ULONG)(ULONG_PTR)(h))
#define HandleToLong(h)  ((LONG)(LONG_PTR)(h))
#define HandleToUlong(h) HandleToULong(h)
#define ULongToHandle(u) ((HANDLE)(ULONG_PTR)(ULONG)(u))
#define UlongToHandle(u) ULongToHandle(u)
#define LongToHandle(l)  ((HANDLE)(LONG_PTR)(LONG)(l))
#define PtrToUlong(p)    ((ULONG)(ULONG_PTR)(p))
#define PtrToULong(p)    PtrToUlong(p)
#define PtrToLong(p)     ((LONG)(LONG_PTR)(p))
#define UlongToPtr(u)    ((VOID *)(ULONG_PTR)(ULONG)(u))
#define ULongToPtr(u)    UlongToPtr(u)
#define LongToPtr(l)     ((VOID *)(LONG_PTR)(LONG)(l))

#define CONTAINING_RECORD(Address, Type, Field)                                                    \
    ((Type *)((PCHAR)(Address) - __builtin_offsetof(Type, Field)))
#define FIELD_OFFSET(Type, Field)   ((LONG) __builtin_offsetof(Type, Field))
#define UFIELD_OFFSET(Type, Field)  ((ULONG) __builtin_offsetof(Type, Field))
#define RTL_FIELD_SIZE(Type, Field) (sizeof(((Type *)0)->Field))
#define RTL_SIZEOF_THROUGH_FIELD(Type, Field)                                                      \
    (__builtin_offsetof(Type, Field) + RTL_FIELD_SIZE(Type, Field))
#define RTL_CONTAINS_FIELD(Struct, Size, Field)                                                    \
    ((PCHAR)(&(Struct)->Field) + sizeof((Struct)->Field) <= (PCHAR)(Struct) + (Size))
#define RTL_NUMBER_OF(A) (sizeof(A) / sizeof((A)[0]))
#ifndef ARRAYSIZE
#define ARRAYSIZE(A) RTL_NUMBER_OF(A)
#endif
#ifdef __cplusplus
#define TYPE_ALIGNMENT(T) alignof(T)
#else
#define TYPE_ALIGNMENT(T) _Alignof(T)
#endif
#define UNREFERENCED_PARAMETER(P)          ((void)(P))
#define DBG_UNREFERENCED_PARAMETER(P)      ((void)(P))
#define UNREFERENCED_LOCAL_VARIABLE(V)     ((void)(V))
#define DBG_UNREFERENCED_LOCAL_VARIABLE(V) ((void)(V))
/* Structures. */
typedef union _LARGE_INTEGER {
    __extension__ struct {
        ULONG LowPart;
        LONG HighPart;
    };
    struct {
        ULONG LowPart;
        LONG HighPart;
    } u;
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
    __extension__ struct {
        ULONG LowPart;
        ULONG HighPart;
    };
    struct {
        ULONG LowPart;
        ULONG HighPart;
    } u;
    ULONGLONG QuadPart;
} ULARGE_INTEGER, *PULARGE_INTEGER;

typedef struct _LUID {
    ULONG LowPart;
    LONG HighPart;
} LUID, *PLUID;

#ifndef GUID_DEFINED
#define GUID_DEFINED
typedef struct _GUID {
    ULONG Data1;
    USHORT Data2;
    USHORT Data3;
    UCHAR Data4[8];
} GUID, *LPGUID;
typedef const GUID *LPCGUID;
#endif

typedef struct _PROCESSOR_NUMBER {
    USHORT Group;
    UCHAR Number;
    UCHAR Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;

typedef struct _GROUP_AFFINITY {
    KAFFINITY Mask;
    USHORT Group;
    USHORT Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;

#define ALL_PROCESSOR_GROUPS   0xffff
#define MAXIMUM_PROC_PER_GROUP 64
#define MAXIMUM_PROCESSORS     MAXIMUM_PROC_PER_GROUP
#define MAXIMUM_SUSPEND_COUNT  MAXCHAR

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink;
    struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY, *RESTRICTED_POINTER PRLIST_ENTRY;

typedef struct _SINGLE_LIST_ENTRY {
    struct _SINGLE_LIST_ENTRY *Next;
} SINGLE_LIST_ENTRY, *PSINGLE_LIST_ENTRY;

typedef struct _NT_TIB {
    struct _EXCEPTION_REGISTRATION_RECORD *ExceptionList;
    PVOID StackBase;
    PVOID StackLimit;
    PVOID SubSystemTib;
    __extension__ union {
        PVOID FiberData;
        ULONG Version;
    };
    PVOID ArbitraryUserPointer;
    struct _NT_TIB *Self;
} NT_TIB, *PNT_TIB;

/* Access rights. */
#define DELETE                   0x00010000
#define READ_CONTROL             0x00020000
#define WRITE_DAC                0x00040000
#define WRITE_OWNER              0x00080000
#define SYNCHRONIZE              0x00100000
#define STANDARD_RIGHTS_REQUIRED 0x000F0000
#define STANDARD_RIGHTS_READ     READ_CONTROL
#define STANDARD_RIGHTS_WRITE    READ_CONTROL
#define STANDARD_RIGHTS_EXECUTE  READ_CONTROL
#define STANDARD_RIGHTS_ALL      0x001F0000
#define SPECIFIC_RIGHTS_ALL      0x0000FFFF
#define ACCESS_SYSTEM_SECURITY   0x01000000
#define MAXIMUM_ALLOWED          0x02000000
#define GENERIC_READ             0x80000000
#define GENERIC_WRITE            0x40000000
#define GENERIC_EXECUTE          0x20000000
#define GENERIC_ALL              0x10000000

typedef struct _GENERIC_MAPPING {
    ACCESS_MASK GenericRead;
    ACCESS_MASK GenericWrite;
    ACCESS_MASK GenericExecute;
    ACCESS_MASK GenericAll;
} GENERIC_MAPPING, *PGENERIC_MAPPING;

#define EVENT_MODIFY_STATE     0x0002
#define EVENT_ALL_ACCESS       (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x3)
#define MUTANT_QUERY_STATE     0x0001
#define MUTANT_ALL_ACCESS      (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | MUTANT_QUERY_STATE)
#define SEMAPHORE_MODIFY_STATE 0x0002
#define SEMAPHORE_ALL_ACCESS   (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x3)
#define TIMER_QUERY_STATE      0x0001
#define TIMER_MODIFY_STATE     0x0002
#define TIMER_ALL_ACCESS                                                                           \
    (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | TIMER_QUERY_STATE | TIMER_MODIFY_STATE)
#define IO_COMPLETION_MODIFY_STATE    0x0002
#define IO_COMPLETION_ALL_ACCESS      (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x3)

#define THREAD_TERMINATE                 0x0001
#define THREAD_SUSPEND_RESUME            0x0002
#define THREAD_GET_CONTEXT               0x0008
#define THREAD_SET_CONTEXT               0x0010
#define THREAD_SET_INFORMATION           0x0020
#define THREAD_QUERY_INFORMATION         0x0040
#define THREAD_SET_THREAD_TOKEN          0x0080
#define THREAD_IMPERSONATE               0x0100
#define THREAD_DIRECT_IMPERSONATION      0x0200
#define THREAD_SET_LIMITED_INFORMATION   0x0400
#define THREAD_QUERY_LIMITED_INFORMATION 0x0800
#define THREAD_RESUME                    0x1000
#define THREAD_ALL_ACCESS                (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0xFFFF)

#define PROCESS_TERMINATE                 0x0001
#define PROCESS_CREATE_THREAD             0x0002
#define PROCESS_SET_SESSIONID             0x0004
#define PROCESS_VM_OPERATION              0x0008
#define PROCESS_VM_READ                   0x0010
#define PROCESS_VM_WRITE                  0x0020
#define PROCESS_DUP_HANDLE                0x0040
#define PROCESS_CREATE_PROCESS            0x0080
#define PROCESS_SET_QUOTA                 0x0100
#define PROCESS_SET_INFORMATION           0x0200
#define PROCESS_QUERY_INFORMATION         0x0400
#define PROCESS_SUSPEND_RESUME            0x0800
#define PROCESS_QUERY_LIMITED_INFORMATION 0x1000
#define PROCESS_SET_LIMITED_INFORMATION   0x2000
#define PROCESS_ALL_ACCESS                (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0xFFFF)

#define DUPLICATE_CLOSE_SOURCE    0x00000001
#define DUPLICATE_SAME_ACCESS     0x00000002

/* Codes of RtlFailFast. */
#define FAST_FAIL_LEGACY_GS_VIOLATION        0
#define FAST_FAIL_STACK_COOKIE_CHECK_FAILURE 2
#define FAST_FAIL_CORRUPT_LIST_ENTRY         3
#define FAST_FAIL_INVALID_ARG                5
#define FAST_FAIL_FATAL_APP_EXIT             7
#define FAST_FAIL_GUARD_ICALL_CHECK_FAILURE  10
#define FAST_FAIL_INVALID_REFERENCE_COUNT    14
#define FAST_FAIL_INVALID_JUMP_BUFFER        18
#define FAST_FAIL_INVALID_NEXT_THREAD        30
#define FAST_FAIL_UNEXPECTED_HEAP_EXCEPTION  35
#define FAST_FAIL_INVALID_LOCK_STATE         37

/* The version of Windows. */

#define VER_EQUAL 1
#define VER_GREATER 2
#define VER_GREATER_EQUAL 3
#define VER_LESS 4
#define VER_LESS_EQUAL 5
#define VER_AND 6
#define VER_OR 7
#define VER_CONDITION_MASK 7
#define VER_NUM_BITS_PER_CONDITION_MASK 3

#define VER_MINORVERSION 0x0000001
#define VER_MAJORVERSION 0x0000002
#define VER_BUILDNUMBER 0x0000004
#define VER_PLATFORMID 0x0000008
#define VER_SERVICEPACKMINOR 0x0000010
#define VER_SERVICEPACKMAJOR 0x0000020
#define VER_SUITENAME 0x0000040
#define VER_PRODUCT_TYPE 0x0000080

#define VER_NT_WORKSTATION 0x0000001
#define VER_NT_DOMAIN_CONTROLLER 0x0000002
#define VER_NT_SERVER 0x0000003

#define VER_PLATFORM_WIN32_NT 2

typedef struct _OSVERSIONINFOA {
    DWORD dwOSVersionInfoSize;
    DWORD dwMajorVersion;
    DWORD dwMinorVersion;
    DWORD dwBuildNumber;
    DWORD dwPlatformId;
    CHAR szCSDVersion[128];
} OSVERSIONINFOA, *POSVERSIONINFOA, *LPOSVERSIONINFOA;

typedef struct _OSVERSIONINFOW {
    DWORD dwOSVersionInfoSize;
    DWORD dwMajorVersion;
    DWORD dwMinorVersion;
    DWORD dwBuildNumber;
    DWORD dwPlatformId;
    WCHAR szCSDVersion[128];
} OSVERSIONINFOW, *POSVERSIONINFOW, *LPOSVERSIONINFOW, RTL_OSVERSIONINFOW, *PRTL_OSVERSIONINFOW;

typedef struct _OSVERSIONINFOEXA {
    DWORD dwOSVersionInfoSize;
    DWORD dwMajorVersion;
    DWORD dwMinorVersion;
    DWORD dwBuildNumber;
    DWORD dwPlatformId;
    CHAR szCSDVersion[128];
    WORD wServicePackMajor;
    WORD wServicePackMinor;
    WORD wSuiteMask;
    BYTE wProductType;
    BYTE wReserved;
} OSVERSIONINFOEXA, *POSVERSIONINFOEXA, *LPOSVERSIONINFOEXA;

typedef struct _OSVERSIONINFOEXW {
    DWORD dwOSVersionInfoSize;
    DWORD dwMajorVersion;
    DWORD dwMinorVersion;
    DWORD dwBuildNumber;
    DWORD dwPlatformId;
    WCHAR szCSDVersion[128];
    WORD wServicePackMajor;
    WORD wServicePackMinor;
    WORD wSuiteMask;
    BYTE wProductType;
    BYTE wReserved;
} OSVERSIONINFOEXW, *POSVERSIONINFOEXW, *LPOSVERSIONINFOEXW, RTL_OSVERSIONINFOEXW,
    *PRTL_OSVERSIONINFOEXW;

C_ASSERT(sizeof(OSVERSIONINFOW) == 276 && sizeof(OSVERSIONINFOEXW) == 284);

INTERLOCK_BEGIN

/* Memory. */

#define RtlCopyMemory(Destination, Source, Length) memcpy((Destination), (Source), (Length))
#define RtlMoveMemory(Destination, Source, Length) memmove((Destination), (Source), (Length))
#define RtlFillMemory(Destination, Length, Fill)   memset((Destination), (Fill), (Length))
#define RtlZeroMemory(Destination, Length)         memset((Destination), 0, (Length))
#define RtlEqualMemory(A, B, Length)               (!memcmp((A), (B), (Length)))
#ifndef CopyMemory
#define CopyMemory RtlCopyMemory
#define MoveMemory RtlMoveMemory
#define FillMemory RtlFillMemory
#define ZeroMemory RtlZeroMemory
#define SecureZeroMemory RtlSecureZeroMemory
#endif

/* Returns the number of leading bytes that are equal. Since NT 3.1. */
FORCEINLINE SIZE_T RtlCompareMemory(_In_ const VOID *Source1, _In_ const VOID *Source2,
                                    _In_ SIZE_T Length)
{
    const UCHAR *a = (const UCHAR *)Source1, *b = (const UCHAR *)Source2;
    SIZE_T n = 0;
    while (n < Length && a[n] == b[n])
        n++;
    return n;
}

/* Zeroes memory; the compiler never removes the stores. Since Server 2003. */
FORCEINLINE PVOID RtlSecureZeroMemory(_Out_writes_bytes_all_(Length) PVOID Memory,
                                      _In_ SIZE_T Length)
{
    volatile UCHAR *p = (volatile UCHAR *)Memory;
    while (Length--)
        *p++ = 0;
    return Memory;
}

INTERLOCK_END

C_ASSERT(sizeof(LONG) == 4 && sizeof(LONGLONG) == 8 && sizeof(ULONG_PTR) == 8 &&
         sizeof(WCHAR) == 2);
C_ASSERT(sizeof(LARGE_INTEGER) == 8 && sizeof(PROCESSOR_NUMBER) == 4 && sizeof(GROUP_AFFINITY) == 16 && sizeof(LIST_ENTRY) == 16);

#endif
