/*
 * ntp.h: what the system services share. A service that drivers may call too is written once, with the mode of its
 * caller: KernelMode, by its Zw name, skips access checks.
 */
#ifndef INTERLOCK_NTP_H
#define INTERLOCK_NTP_H

#include <interlock/nt.h>

#include "../hal/hal.h"
#include "../ke/wait.h"
#include "../ob/obp.h"

/* A thread's room. */
typedef struct _NTP_THREAD {
    KI_LOCK ActiveTimerListLock;     /* timers whose APC goes to this thread: timer.c */
    LIST_ENTRY ActiveTimerListHead;  /* zeroed: it never had one */
    volatile ULONG UsesKeptPort;     /* a call of this thread uses NTP_THREAD_KEPT: iocompletion.c */
} NTP_THREAD, *PNTP_THREAD;

/* The completion port that a thread in this slot used last: iocompletion.c. */
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

/* The objects of a wait by several handles (wait.c, manyobjects.c). A waiter holds a reference on each while it waits. */
static inline VOID NtpDereferenceObjects(PVOID Objects[], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ObpDereferenceObject(Objects[Index]);
    }
}

/* All or none. A pseudo handle cannot be waited for together with others. */
static inline NTSTATUS NtpReferenceObjects(HANDLE Handles[], ULONG Count, KPROCESSOR_MODE Mode, PVOID Objects[])
{
    ACCESS_MASK RequiredAccess = Mode != KernelMode ? SYNCHRONIZE : 0;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        Objects[Index] = ObpTryReferenceByHandle(Handles[Index], RequiredAccess, NULL);
        if (__builtin_expect(Objects[Index] != NULL, TRUE)) {
            continue;
        }
        HANDLE Handle = Handles[Index];
        NTSTATUS Status = Handle == NtCurrentProcess() || Handle == NtCurrentThread()
                              ? STATUS_INVALID_HANDLE
                              : ObpReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, Mode, &Objects[Index], NULL);
        if (!NT_SUCCESS(Status)) {
            NtpDereferenceObjects(Objects, Index);
            return Status;
        }
    }
    return STATUS_SUCCESS;
}

static inline NTSTATUS NtpCheckObjects(HANDLE Handles[], ULONG Count, ULONG Most, WAIT_TYPE WaitType)
{
    if (Count == 0 || Count > Most) {
        return STATUS_INVALID_PARAMETER_1;
    }
    if (WaitType != WaitAny && WaitType != WaitAll) {
        return STATUS_INVALID_PARAMETER_3;
    }
    if (Handles == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    return STATUS_SUCCESS;
}

/* system.c: the event for scarce or for plenty of memory */
NTSTATUS NtpOpenMemoryCondition(BOOLEAN High, ACCESS_MASK DesiredAccess, PHANDLE Event);

/* object.c: bytes from or to a descriptor object. *Done is written in any case. */
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

/* object.c: private namespaces, as NtCreatePrivateNamespace and similar services would do. Boundary: a text that
   stands for the boundary descriptor. */
NTSTATUS NtpOpenPrivateNamespace(PCUNICODE_STRING Boundary, POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN Create,
                                 PHANDLE NamespaceHandle);
NTSTATUS NtpDeletePrivateNamespace(HANDLE NamespaceHandle); /* other processes no longer find it */

/*
 * Completion ports and what is queued to them (iocompletion.c, packet.c).
 *
 * A port is a KQUEUE of packets. A packet's Kind says where its memory comes from:
 *
 *   plain     NtSetIoCompletion: allocated when it is posted and freed when it is removed
 *   reserve   NtSetIoCompletionEx: part of a reserve object, which the queue references
 *   wait      a signal: part of a wait completion packet, which has its own rules
 *
 * A thread that removes an entry from the queue, in any way, owns the packet and returns it with NtpReleasePacket.
 */

typedef enum _NTP_PACKET_KIND { NtpPlainPacket, NtpReservePacket, NtpWaitPacket } NTP_PACKET_KIND;

typedef struct _NTP_PACKET {
    LIST_ENTRY QueueListEntry;
    NTP_PACKET_KIND Kind;
    NTSTATUS IoStatus;
    union {
        PVOID KeyContext;
        struct _NTP_PACKET *NextFree; /* of a plain packet that is free: packet.c */
    };
    PVOID ApcContext;
    ULONG_PTR IoStatusInformation;
} NTP_PACKET, *PNTP_PACKET;

typedef struct _NTP_PORT {
    KQUEUE Queue;
} NTP_PORT, *PNTP_PORT;

extern OBJECT_TYPE NtpPortType;

FORCEINLINE VOID NtpFillPacket(PNTP_PACKET Packet, PVOID KeyContext, PVOID ApcContext, NTSTATUS IoStatus,
                               ULONG_PTR IoStatusInformation)
{
    Packet->KeyContext = KeyContext;
    Packet->ApcContext = ApcContext;
    Packet->IoStatus = IoStatus;
    Packet->IoStatusInformation = IoStatusInformation;
}

/* For a CloseProcedure: the object can no longer be reached. A permanent one can still be opened by its name. */
FORCEINLINE BOOLEAN NtpIsOutOfReach(PVOID Object, LONG_PTR HandlesLeft)
{
    return HandlesLeft == 0 &&
           (ObpHeaderOf(Object)->NameInfo == NULL || !(ObpQueryNameAttributes(Object) & OBJ_PERMANENT));
}

/* packet.c */
PNTP_PACKET NtpAllocatePacket(VOID); /* a plain one; NULL: no memory */
VOID NtpFreePacket(PNTP_PACKET Packet);
VOID NtpReleaseReserve(PNTP_PACKET Packet);
VOID NtpReleaseWaitPacket(PNTP_PACKET Packet);

#endif
