/*
 * ntp.h: what the system services share. A service that drivers may call too is written once, with the mode of its
 * caller: KernelMode, by its Zw name, skips access checks.
 */
#ifndef INTERLOCK_NTP_H
#define INTERLOCK_NTP_H

#include <interlock/nt.h>

#include "../hal/console.h"
#include "../ke/wait.h"
#include "../ob/obp.h"

/* A thread's room. */
typedef struct _NTP_THREAD {
    KI_LOCK ActiveTimerListLock;     /* timers whose APC goes to this thread: timer.c */
    LIST_ENTRY ActiveTimerListHead;  /* zeroed: it never had one */
    volatile ULONG UsesKeptPort;     /* a call of this thread uses NTP_THREAD_KEPT: keptport.h */
} NTP_THREAD, *PNTP_THREAD;

/* The completion port that a thread in this slot used last: keptport.h. */
typedef struct _NTP_THREAD_KEPT {
    volatile ULONG_PTR KeptPort;
    HANDLE KeptHandle;
    PVOID KeptEntry;                 /* of the handle, in the table */
    ULONG64 KeptAccess;              /* the entry's incarnation */
} NTP_THREAD_KEPT, *PNTP_THREAD_KEPT;

KI_THREAD_ROOM(NTP_THREAD, Nt, NtpThread);
KI_THREAD_ROOM(NTP_THREAD_KEPT, NtKept, NtpThreadKept);

/* A service from entry to return: the thread is not terminated in between (KiEnterService). */
#define NTP_SERVICE(Call)                                                                                              \
    ({                                                                                                                 \
        PKTHREAD ServiceThread = KiCurrentThread();                                                                    \
        NTSTATUS ServiceStatus;                                                                                        \
        KiEnterService(ServiceThread);                                                                                 \
        ServiceStatus = (Call);                                                                                        \
        KiExitService(ServiceThread);                                                                                  \
        ServiceStatus;                                                                                                 \
    })

FORCEINLINE PKTHREAD NtpEnterService(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    return Thread;
}

FORCEINLINE VOID NtpLeaveService(PKTHREAD *Thread)
{
    KiExitService(*Thread);
}

/* The same for the rest of the enclosing block, which may return anywhere. */
#define NTP_SERVICE_UNTIL_RETURN()                                                                                     \
    PKTHREAD ServiceThread __attribute__((unused, cleanup(NtpLeaveService))) = NtpEnterService()

/* Checks a query with a structure of fixed size, before the handle is looked up. */
FORCEINLINE NTSTATUS NtpCheckQuery(BOOLEAN KnownClass, PVOID Information, ULONG Length, ULONG Required)
{
    if (!KnownClass) {
        return STATUS_INVALID_INFO_CLASS;
    }
    if (Length != Required) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    return Information != NULL ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

FORCEINLINE VOID NtpReturnLength(PULONG ReturnLength, ULONG Length)
{
    if (ReturnLength != NULL) {
        *ReturnLength = Length;
    }
}

/* FALSE: the caller provides no place for the handle. A service that fails stores 0 there. */
FORCEINLINE BOOLEAN NtpClearHandle(PHANDLE Handle)
{
    if (Handle == NULL) {
        return FALSE;
    }
    *Handle = NULL;
    return TRUE;
}

/* Ends a wait by handle, after the caller has released what it held for the wait: an APC may never return. */
FORCEINLINE NTSTATUS NtpFinishWait(NTSTATUS Status)
{
    if (__builtin_expect(Status == STATUS_USER_APC, 0)) {
        KiDeliverUserApcs(KiCurrentThread());
    }
    return Status;
}

/* memorycondition.c: the event for scarce or for plenty of memory */
NTSTATUS NtpOpenMemoryCondition(BOOLEAN High, ACCESS_MASK DesiredAccess, PHANDLE Event);

/* transfer.c: bytes from or to a descriptor object. *Done is written in any case. */
NTSTATUS NtpReadDescriptor(HANDLE Handle, PVOID Buffer, ULONG Length, PULONG Done);
NTSTATUS NtpWriteDescriptor(HANDLE Handle, const VOID *Buffer, ULONG Length, PULONG Done);
NTSTATUS NtpQueryDescriptorKind(HANDLE Handle, HAL_DESCRIPTOR_KIND *Kind);

/* process.c: creates a process of the host, which NtCreateUserProcess would do. ThreadHandle also refers to the
   process. Heirlooms: the handles that it inherits; NULL: none. */
typedef struct _NTP_HEIRLOOMS {
    const HANDLE *List;              /* NULL: all that are marked as inherited */
    ULONG Count;
} NTP_HEIRLOOMS;
NTSTATUS NtpCreateUserProcess(const HAL_SPAWN *Spawn, const NTP_HEIRLOOMS *Heirlooms, ULONG Attributes,
                              PHANDLE ProcessHandle, PHANDLE ThreadHandle, PCLIENT_ID ClientId);

/* directory.c: private namespaces, as NtCreatePrivateNamespace and similar services would do. Boundary: a text that
   stands for the boundary descriptor. */
NTSTATUS NtpOpenPrivateNamespace(PCUNICODE_STRING Boundary, POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN Create,
                                 PHANDLE NamespaceHandle);
NTSTATUS NtpDeletePrivateNamespace(HANDLE NamespaceHandle); /* other processes no longer find it */

#endif
