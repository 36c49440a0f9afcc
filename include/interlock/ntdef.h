/* ntdef.h: what the kernel and the system services use beyond windef.h: counted strings, names of objects, lists. */
#ifndef INTERLOCK_NTDEF_H
#define INTERLOCK_NTDEF_H

#include <interlock/windef.h>

#ifndef NTKERNELAPI
#define NTKERNELAPI INTERLOCK_API
#endif
#ifndef NTHALAPI
#define NTHALAPI INTERLOCK_API
#endif
#define DECLSPEC_EXPORT INTERLOCK_API

typedef signed char SCHAR, *PSCHAR;
typedef CCHAR *PCCHAR;
typedef short CSHORT, *PCSHORT;
typedef unsigned int LOGICAL, CLONG, *PLOGICAL, *PCLONG;
typedef const char *PCSZ;
typedef const void *PCVOID;
typedef const UCHAR *PCUCHAR;
typedef const USHORT *PCUSHORT;
typedef const ULONG *PCULONG;
typedef LONG KPRIORITY, *PKPRIORITY;
typedef CCHAR KPROCESSOR_MODE;
typedef LARGE_INTEGER PHYSICAL_ADDRESS, *PPHYSICAL_ADDRESS;
typedef GUID *PGUID;

#define MAXUCHAR  0xff
#define MAXUSHORT 0xffff

#define NT_SUCCESS(Status)     ((NTSTATUS)(Status) >= 0)
#define NT_INFORMATION(Status) (((ULONG)(Status) >> 30) == 1)
#define NT_WARNING(Status)     (((ULONG)(Status) >> 30) == 2)
#define NT_ERROR(Status)       (((ULONG)(Status) >> 30) == 3)

#define ALIGN_DOWN_BY(Length, Alignment)   ((ULONG_PTR)(Length) & ~((ULONG_PTR)(Alignment)-1))
#define ALIGN_UP_BY(Length, Alignment)     ALIGN_DOWN_BY((ULONG_PTR)(Length) + (Alignment)-1, Alignment)
#define FlagOn(F, SF)                      ((F) & (SF))
#define BooleanFlagOn(F, SF)               ((BOOLEAN)(((F) & (SF)) != 0))
#define SetFlag(F, SF)                     ((F) |= (SF))
#define ClearFlag(F, SF)                   ((F) &= ~(SF))

/* Enumerations shared by kernel and user mode. */
typedef enum _MODE { KernelMode, UserMode, MaximumMode } MODE;
typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;
typedef enum _TIMER_TYPE { NotificationTimer, SynchronizationTimer } TIMER_TYPE;
typedef enum _WAIT_TYPE { WaitAll, WaitAny, WaitNotification, WaitDequeue, WaitDpc } WAIT_TYPE;

typedef struct _STRING {
    USHORT Length;
    USHORT MaximumLength;
    PCHAR Buffer;
} STRING, *PSTRING, ANSI_STRING, *PANSI_STRING, OEM_STRING, *POEM_STRING, UTF8_STRING,
    *PUTF8_STRING;
typedef const STRING *PCSTRING, *PCANSI_STRING, *PCOEM_STRING, *PCUTF8_STRING;

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
#define DECLARE_GLOBAL_CONST_UNICODE_STRING(Name, Literal)                                         \
    extern const DECLSPEC_SELECTANY UNICODE_STRING Name = RTL_CONSTANT_STRING(Literal)
#define DECLARE_UNICODE_STRING_SIZE(Name, Size)                                                    \
    WCHAR Name##_buffer[Size];                                                                     \
    UNICODE_STRING Name = {0, (Size) * sizeof(WCHAR), Name##_buffer}

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
#define OBJ_KERNEL_HANDLE                 0x00000200 /* only kernel code may use the handle: Zw, not Nt */
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

/* Access rights that windows.h does not have. */
#define EVENT_QUERY_STATE      0x0001
#define SEMAPHORE_QUERY_STATE  0x0001
#define EVENT_PAIR_ALL_ACCESS         (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE)
#define KEYEDEVENT_WAIT               0x0001
#define KEYEDEVENT_WAKE               0x0002
#define KEYEDEVENT_ALL_ACCESS         (STANDARD_RIGHTS_REQUIRED | KEYEDEVENT_WAIT | KEYEDEVENT_WAKE)
#define IO_COMPLETION_QUERY_STATE     0x0001
#define DIRECTORY_QUERY               0x0001
#define DIRECTORY_TRAVERSE            0x0002
#define DIRECTORY_CREATE_OBJECT       0x0004
#define DIRECTORY_CREATE_SUBDIRECTORY 0x0008
#define DIRECTORY_ALL_ACCESS          (STANDARD_RIGHTS_REQUIRED | 0xF)
#define SYMBOLIC_LINK_QUERY           0x0001
#define SYMBOLIC_LINK_ALL_ACCESS      (STANDARD_RIGHTS_REQUIRED | 0x1)
#define THREAD_ALERT                     0x0004
#define DUPLICATE_SAME_ATTRIBUTES 0x00000004

#define RtlCopyBytes                               RtlCopyMemory
#define RtlZeroBytes                               RtlZeroMemory
#define RtlFillBytes                               RtlFillMemory

/* How a request ended. */
typedef struct _IO_STATUS_BLOCK {
    __extension__ union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK, *PIO_STATUS_BLOCK;

C_ASSERT(sizeof(IO_STATUS_BLOCK) == 16);

INTERLOCK_BEGIN

/* Failing fast. */

/* Ends the process at once because of the corruption that a FAST_FAIL code names. Cannot be caught. Differs: a bugcheck
   KERNEL_SECURITY_CHECK_FAILURE, with its report. Since 8. */
NTSYSAPI DECLSPEC_NORETURN VOID NTAPI RtlFailFast(_In_ ULONG Code);

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

C_ASSERT(sizeof(UNICODE_STRING) == 16 && sizeof(OBJECT_ATTRIBUTES) == 48);

#include <interlock/ntstatus.h>

#endif
