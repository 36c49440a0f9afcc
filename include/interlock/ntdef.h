/* ntdef.h: types, structures, lists and memory, below everything. */
#ifndef INTERLOCK_NTDEF_H
#define INTERLOCK_NTDEF_H

#if !defined(__LP64__) || __SIZEOF_POINTER__ != 8 || __SIZEOF_INT__ != 4
#error "Interlock needs a 64-bit (LP64) target: its structures have the layout of 64-bit Windows."
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Interlock needs a little-endian target: its structures have the layout of 64-bit Windows."
#endif

#include <stddef.h>
#include <string.h>

#include <interlock/annotations.h>

/* Linkage. Every public header puts its prototypes between INTERLOCK_BEGIN and INTERLOCK_END. */
#ifdef __cplusplus
#define EXTERN_C        extern "C"
#define INTERLOCK_BEGIN extern "C" {
#define INTERLOCK_END   }
#else
#define EXTERN_C extern
#define INTERLOCK_BEGIN
#define INTERLOCK_END
#endif
#define EXTERN_C_START INTERLOCK_BEGIN
#define EXTERN_C_END   INTERLOCK_END

#define INTERLOCK_API __attribute__((visibility("default")))
#ifndef NTKERNELAPI
#define NTKERNELAPI INTERLOCK_API
#endif
#ifndef NTSYSAPI
#define NTSYSAPI INTERLOCK_API
#endif
#ifndef NTHALAPI
#define NTHALAPI INTERLOCK_API
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
#define FORCEINLINE static inline __attribute__((always_inline))
#ifndef __forceinline
#define __forceinline inline __attribute__((always_inline))
#endif
#define DECLSPEC_IMPORT             INTERLOCK_API
#define DECLSPEC_EXPORT             INTERLOCK_API
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

typedef char CHAR, CCHAR, *PCHAR, *PCCHAR, *PCH, *LPCH, *NPSTR, *LPSTR, *PSTR, *PSZ;
typedef const char *LPCCH, *PCCH, *LPCSTR, *PCSTR, *PCSZ;
typedef PSTR *PZPSTR;
typedef PCSTR *PZPCSTR;
typedef signed char SCHAR, INT8, *PSCHAR, *PINT8;
typedef unsigned char UCHAR, BYTE, UINT8, BOOLEAN, FCHAR, *PUCHAR, *PBYTE, *LPBYTE, *PUINT8,
    *PBOOLEAN;
typedef short SHORT, CSHORT, INT16, *PSHORT, *PCSHORT, *PINT16;
typedef unsigned short USHORT, WORD, UINT16, ATOM, *PUSHORT, *PWORD, *LPWORD, *PUINT16;
typedef int INT, LONG, LONG32, INT32, BOOL, *PINT, *LPINT, *PLONG, *LPLONG, *PLONG32, *PINT32,
    *PBOOL, *LPBOOL;
typedef unsigned int UINT, ULONG, DWORD, ULONG32, UINT32, DWORD32, LOGICAL;
typedef unsigned int *PUINT, *LPUINT, *PULONG, *PDWORD, *LPDWORD, *PULONG32, *PUINT32, *PDWORD32,
    *PLOGICAL, CLONG, *PCLONG;
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
typedef const void *PCVOID, *LPCVOID;
typedef HANDLE *PHANDLE, *LPHANDLE;
typedef const UCHAR *PCUCHAR;
typedef const USHORT *PCUSHORT;
typedef const ULONG *PCULONG;

/* UTF-16 code units: char16_t, or wchar_t with -fshort-wchar. */
#if __SIZEOF_WCHAR_T__ == 2
typedef wchar_t WCHAR;
#elif defined(__cplusplus)
typedef char16_t WCHAR;
#else
typedef __CHAR16_TYPE__ WCHAR;
#endif
typedef WCHAR *PWCHAR, *LPWCH, *PWCH, *NWPSTR, *LPWSTR, *PWSTR;
typedef const WCHAR *LPCWCH, *PCWCH, *LPCWSTR, *PCWSTR;
typedef PWSTR *PZPWSTR;
typedef PCWSTR *PZPCWSTR;

typedef LONG NTSTATUS, *PNTSTATUS;
typedef LONG KPRIORITY, *PKPRIORITY;
typedef ULONG_PTR KAFFINITY, *PKAFFINITY;
typedef CCHAR KPROCESSOR_MODE;
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
#define MAXUCHAR      0xff
#define MAXWORD       0xffff
#define MAXUSHORT     0xffff
#define MAXDWORD      0xffffffff
#define MAXULONG      0xffffffff
#define MAXULONGLONG  0xffffffffffffffffULL
#define MAXLONG_PTR   ((LONG_PTR)0x7fffffffffffffffL)
#define MINLONG_PTR   (-MAXLONG_PTR - 1)
#define MAXULONG_PTR  (~(ULONG_PTR)0)
#define MAXUINT_PTR   (~(UINT_PTR)0)
#define MAXSIZE_T     (~(SIZE_T)0)
#define ANYSIZE_ARRAY 1
#define UNICODE_NULL  ((WCHAR)0)
#define ANSI_NULL     ((CHAR)0)

#define NT_SUCCESS(Status)     ((NTSTATUS)(Status) >= 0)
#define NT_INFORMATION(Status) (((ULONG)(Status) >> 30) == 1)
#define NT_WARNING(Status)     (((ULONG)(Status) >> 30) == 2)
#define NT_ERROR(Status)       (((ULONG)(Status) >> 30) == 3)

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
#define ALIGN_DOWN_BY(Length, Alignment)   ((ULONG_PTR)(Length) & ~((ULONG_PTR)(Alignment)-1))
#define ALIGN_UP_BY(Length, Alignment)     ALIGN_DOWN_BY((ULONG_PTR)(Length) + (Alignment)-1, Alignment)
#define UNREFERENCED_PARAMETER(P)          ((void)(P))
#define DBG_UNREFERENCED_PARAMETER(P)      ((void)(P))
#define DBG_UNREFERENCED_LOCAL_VARIABLE(V) ((void)(V))
#define FlagOn(F, SF)                      ((F) & (SF))
#define BooleanFlagOn(F, SF)               ((BOOLEAN)(((F) & (SF)) != 0))
#define SetFlag(F, SF)                     ((F) |= (SF))
#define ClearFlag(F, SF)                   ((F) &= ~(SF))

/* Enumerations shared by kernel and user mode. */
typedef enum _MODE { KernelMode, UserMode, MaximumMode } MODE;
typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;
typedef enum _TIMER_TYPE { NotificationTimer, SynchronizationTimer } TIMER_TYPE;
typedef enum _WAIT_TYPE { WaitAll, WaitAny, WaitNotification, WaitDequeue, WaitDpc } WAIT_TYPE;

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

typedef LARGE_INTEGER PHYSICAL_ADDRESS, *PPHYSICAL_ADDRESS;

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
} GUID, *PGUID, *LPGUID;
typedef const GUID *LPCGUID;
#endif

typedef struct _STRING {
    USHORT Length;
    USHORT MaximumLength;
    PCHAR Buffer;
} STRING, *PSTRING, ANSI_STRING, *PANSI_STRING, OEM_STRING, *POEM_STRING;
typedef const STRING *PCSTRING, *PCANSI_STRING, *PCOEM_STRING;

typedef struct _UNICODE_STRING {
    USHORT Length;
    USHORT MaximumLength;
    PWSTR Buffer;
} UNICODE_STRING, *PUNICODE_STRING;
typedef const UNICODE_STRING *PCUNICODE_STRING;

#define UNICODE_STRING_MAX_BYTES ((USHORT)65534)
#define UNICODE_STRING_MAX_CHARS 32767
#ifdef __cplusplus
extern "C++" template <class T> constexpr T *InterlockLiteral(const T *s)
{
    return const_cast<T *>(s);
}
#define RTL_CONSTANT_STRING(s)                                                                     \
    {                                                                                              \
        sizeof(s) - sizeof((s)[0]), sizeof(s), InterlockLiteral(s)                                 \
    }
#else
#define RTL_CONSTANT_STRING(s)                                                                     \
    {                                                                                              \
        sizeof(s) - sizeof((s)[0]), sizeof(s), (void *)(s)                                         \
    }
#endif
#define DECLARE_CONST_UNICODE_STRING(Name, Literal)                                                \
    const WCHAR Name##_buffer[] = Literal;                                                         \
    const UNICODE_STRING Name = {sizeof(Literal) - sizeof(WCHAR), sizeof(Literal),                 \
                                 (PWSTR)Name##_buffer}

typedef struct _OBJECT_ATTRIBUTES {
    ULONG Length;
    HANDLE RootDirectory;
    PUNICODE_STRING ObjectName;
    ULONG Attributes;
    PVOID SecurityDescriptor;
    PVOID SecurityQualityOfService;
} OBJECT_ATTRIBUTES, *POBJECT_ATTRIBUTES;
typedef const OBJECT_ATTRIBUTES *PCOBJECT_ATTRIBUTES;

#define OBJ_INHERIT                       0x00000002
#define OBJ_PERMANENT                     0x00000010
#define OBJ_EXCLUSIVE                     0x00000020
#define OBJ_CASE_INSENSITIVE              0x00000040
#define OBJ_OPENIF                        0x00000080
#define OBJ_OPENLINK                      0x00000100
#define OBJ_KERNEL_HANDLE                 0x00000200
#define OBJ_FORCE_ACCESS_CHECK            0x00000400
#define OBJ_IGNORE_IMPERSONATED_DEVICEMAP 0x00000800
#define OBJ_DONT_REPARSE                  0x00001000
#define OBJ_VALID_ATTRIBUTES              0x00001FF2

#define InitializeObjectAttributes(p, n, a, r, s)                                                  \
    do {                                                                                           \
        (p)->Length = sizeof(OBJECT_ATTRIBUTES);                                                   \
        (p)->RootDirectory = (r);                                                                  \
        (p)->ObjectName = (n);                                                                     \
        (p)->Attributes = (a);                                                                     \
        (p)->SecurityDescriptor = (s);                                                             \
        (p)->SecurityQualityOfService = NULL;                                                      \
    } while (0)
#define RTL_INIT_OBJECT_ATTRIBUTES(n, a)                                                           \
    {                                                                                              \
        sizeof(OBJECT_ATTRIBUTES), NULL, (n), (a), NULL, NULL                                      \
    }
#define RTL_CONSTANT_OBJECT_ATTRIBUTES(n, a)                                                       \
    {                                                                                              \
        sizeof(OBJECT_ATTRIBUTES), NULL, (PUNICODE_STRING)(n), (a), NULL, NULL                     \
    }

typedef struct _CLIENT_ID {
    HANDLE UniqueProcess;
    HANDLE UniqueThread;
} CLIENT_ID, *PCLIENT_ID;

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

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink;
    struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY, *RESTRICTED_POINTER PRLIST_ENTRY;

typedef struct _SINGLE_LIST_ENTRY {
    struct _SINGLE_LIST_ENTRY *Next;
} SINGLE_LIST_ENTRY, *PSINGLE_LIST_ENTRY;

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

#define EVENT_QUERY_STATE      0x0001
#define EVENT_MODIFY_STATE     0x0002
#define EVENT_ALL_ACCESS       (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x3)
#define MUTANT_QUERY_STATE     0x0001
#define MUTANT_ALL_ACCESS      (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | MUTANT_QUERY_STATE)
#define SEMAPHORE_QUERY_STATE  0x0001
#define SEMAPHORE_MODIFY_STATE 0x0002
#define SEMAPHORE_ALL_ACCESS   (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x3)
#define TIMER_QUERY_STATE      0x0001
#define TIMER_MODIFY_STATE     0x0002
#define TIMER_ALL_ACCESS                                                                           \
    (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | TIMER_QUERY_STATE | TIMER_MODIFY_STATE)
#define EVENT_PAIR_ALL_ACCESS         (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE)
#define KEYEDEVENT_WAIT               0x0001
#define KEYEDEVENT_WAKE               0x0002
#define KEYEDEVENT_ALL_ACCESS         (STANDARD_RIGHTS_REQUIRED | KEYEDEVENT_WAIT | KEYEDEVENT_WAKE)
#define IO_COMPLETION_QUERY_STATE     0x0001
#define IO_COMPLETION_MODIFY_STATE    0x0002
#define IO_COMPLETION_ALL_ACCESS      (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x3)
#define DIRECTORY_QUERY               0x0001
#define DIRECTORY_TRAVERSE            0x0002
#define DIRECTORY_CREATE_OBJECT       0x0004
#define DIRECTORY_CREATE_SUBDIRECTORY 0x0008
#define DIRECTORY_ALL_ACCESS          (STANDARD_RIGHTS_REQUIRED | 0xF)
#define SYMBOLIC_LINK_QUERY           0x0001
#define SYMBOLIC_LINK_ALL_ACCESS      (STANDARD_RIGHTS_REQUIRED | 0x1)

#define THREAD_TERMINATE                 0x0001
#define THREAD_SUSPEND_RESUME            0x0002
#define THREAD_ALERT                     0x0004
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
#define DUPLICATE_SAME_ATTRIBUTES 0x00000004

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

INTERLOCK_BEGIN

/* Failing fast. */

/* Ends the process at once because of the corruption that a FAST_FAIL code names. Cannot be caught. Differs: a bugcheck
   KERNEL_SECURITY_CHECK_FAILURE, with its report. Since 8. */
NTSYSAPI DECLSPEC_NORETURN VOID NTAPI RtlFailFast(_In_ ULONG Code);

/* Memory. */

#define RtlCopyMemory(Destination, Source, Length) memcpy((Destination), (Source), (Length))
#define RtlMoveMemory(Destination, Source, Length) memmove((Destination), (Source), (Length))
#define RtlFillMemory(Destination, Length, Fill)   memset((Destination), (Fill), (Length))
#define RtlZeroMemory(Destination, Length)         memset((Destination), 0, (Length))
#define RtlCopyBytes                               RtlCopyMemory
#define RtlZeroBytes                               RtlZeroMemory
#define RtlFillBytes                               RtlFillMemory
#define RtlEqualMemory(A, B, Length)               (!memcmp((A), (B), (Length)))
#ifndef CopyMemory
#define CopyMemory RtlCopyMemory
#define MoveMemory RtlMoveMemory
#define FillMemory RtlFillMemory
#define ZeroMemory RtlZeroMemory
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

/* Lists. Links are verified before they change, unless NO_KERNEL_LIST_ENTRY_CHECKS is defined. */

#ifdef NO_KERNEL_LIST_ENTRY_CHECKS
#define INTERLOCK_CHECK_LINKS(Valid) ((void)0)
#else
#define INTERLOCK_CHECK_LINKS(Valid)                                                               \
    do {                                                                                           \
        if (__builtin_expect(!(Valid), 0))                                                         \
            RtlFailFast(FAST_FAIL_CORRUPT_LIST_ENTRY);                                             \
    } while (0)
#endif

/* Initializes an empty doubly linked list. Since NT 3.1. */
FORCEINLINE VOID InitializeListHead(_Out_ PLIST_ENTRY ListHead)
{
    ListHead->Flink = ListHead->Blink = ListHead;
}

/* Returns TRUE if the list is empty. Since NT 3.1. */
_Must_inspect_result_ FORCEINLINE BOOLEAN IsListEmpty(_In_ const LIST_ENTRY *ListHead)
{
    return ListHead->Flink == ListHead;
}

/* Removes an entry. Returns TRUE if the list is then empty. Inconsistent links fail fast, here and below. Since NT
   3.1. */
FORCEINLINE BOOLEAN RemoveEntryList(_In_ PLIST_ENTRY Entry)
{
    PLIST_ENTRY next = Entry->Flink, prev = Entry->Blink;
    INTERLOCK_CHECK_LINKS(next->Blink == Entry && prev->Flink == Entry);
    prev->Flink = next;
    next->Blink = prev;
    return next == prev;
}

/* Removes and returns the first entry; the head itself if the list is empty. Since NT 3.1. */
FORCEINLINE PLIST_ENTRY RemoveHeadList(_Inout_ PLIST_ENTRY ListHead)
{
    PLIST_ENTRY entry = ListHead->Flink, next = entry->Flink;
    INTERLOCK_CHECK_LINKS(entry->Blink == ListHead && next->Blink == entry);
    ListHead->Flink = next;
    next->Blink = ListHead;
    return entry;
}

/* Removes and returns the last entry; the head itself if the list is empty. Since NT 3.1. */
FORCEINLINE PLIST_ENTRY RemoveTailList(_Inout_ PLIST_ENTRY ListHead)
{
    PLIST_ENTRY entry = ListHead->Blink, prev = entry->Blink;
    INTERLOCK_CHECK_LINKS(entry->Flink == ListHead && prev->Flink == entry);
    ListHead->Blink = prev;
    prev->Flink = ListHead;
    return entry;
}

/* Inserts an entry at the tail. Since NT 3.1. */
FORCEINLINE VOID InsertTailList(_Inout_ PLIST_ENTRY ListHead, _Out_ PLIST_ENTRY Entry)
{
    PLIST_ENTRY prev = ListHead->Blink;
    INTERLOCK_CHECK_LINKS(prev->Flink == ListHead);
    Entry->Flink = ListHead;
    Entry->Blink = prev;
    prev->Flink = Entry;
    ListHead->Blink = Entry;
}

/* Inserts an entry at the head. Since NT 3.1. */
FORCEINLINE VOID InsertHeadList(_Inout_ PLIST_ENTRY ListHead, _Out_ PLIST_ENTRY Entry)
{
    PLIST_ENTRY next = ListHead->Flink;
    INTERLOCK_CHECK_LINKS(next->Blink == ListHead);
    Entry->Flink = next;
    Entry->Blink = ListHead;
    next->Blink = Entry;
    ListHead->Flink = Entry;
}

/* Appends a headless list to another list. Since Server 2003. */
FORCEINLINE VOID AppendTailList(_Inout_ PLIST_ENTRY ListHead, _Inout_ PLIST_ENTRY ListToAppend)
{
    PLIST_ENTRY end = ListHead->Blink;
    INTERLOCK_CHECK_LINKS(ListHead->Flink->Blink == ListHead && end->Flink == ListHead &&
                          ListToAppend->Flink->Blink == ListToAppend &&
                          ListToAppend->Blink->Flink == ListToAppend);
    end->Flink = ListToAppend;
    ListHead->Blink = ListToAppend->Blink;
    ListToAppend->Blink->Flink = ListHead;
    ListToAppend->Blink = end;
}

/* Pushes an entry on a singly linked list, not atomically. Since NT 3.1. */
FORCEINLINE VOID PushEntryList(_Inout_ PSINGLE_LIST_ENTRY ListHead,
                               _Inout_ PSINGLE_LIST_ENTRY Entry)
{
    Entry->Next = ListHead->Next;
    ListHead->Next = Entry;
}

/* Pops and returns the first entry, not atomically; NULL if the list is empty. Since NT 3.1. */
FORCEINLINE PSINGLE_LIST_ENTRY PopEntryList(_Inout_ PSINGLE_LIST_ENTRY ListHead)
{
    PSINGLE_LIST_ENTRY first = ListHead->Next;
    if (first != NULL)
        ListHead->Next = first->Next;
    return first;
}

INTERLOCK_END

C_ASSERT(sizeof(LONG) == 4 && sizeof(LONGLONG) == 8 && sizeof(ULONG_PTR) == 8 &&
         sizeof(WCHAR) == 2);
C_ASSERT(sizeof(LARGE_INTEGER) == 8 && sizeof(UNICODE_STRING) == 16 &&
         sizeof(OBJECT_ATTRIBUTES) == 48);
C_ASSERT(sizeof(PROCESSOR_NUMBER) == 4 && sizeof(GROUP_AFFINITY) == 16 && sizeof(LIST_ENTRY) == 16);

#include <interlock/ntstatus.h>

#endif
