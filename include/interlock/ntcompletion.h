/* ntcompletion.h: completion ports and wait completion packets. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTCOMPLETION_H
#define INTERLOCK_NTCOMPLETION_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

#define WAIT_COMPLETION_PACKET_MODIFY_STATE 0x0001
#define WAIT_COMPLETION_PACKET_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | WAIT_COMPLETION_PACKET_MODIFY_STATE)

typedef struct _IO_STATUS_BLOCK {
    __extension__ union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK, *PIO_STATUS_BLOCK;

typedef struct _FILE_IO_COMPLETION_INFORMATION {
    PVOID KeyContext;
    PVOID ApcContext;
    IO_STATUS_BLOCK IoStatusBlock;
} FILE_IO_COMPLETION_INFORMATION, *PFILE_IO_COMPLETION_INFORMATION;

C_ASSERT(sizeof(IO_STATUS_BLOCK) == 16);
C_ASSERT(sizeof(FILE_IO_COMPLETION_INFORMATION) == 32);

typedef enum _IO_COMPLETION_INFORMATION_CLASS { IoCompletionBasicInformation } IO_COMPLETION_INFORMATION_CLASS;

typedef struct _IO_COMPLETION_BASIC_INFORMATION {
    LONG Depth;
} IO_COMPLETION_BASIC_INFORMATION, *PIO_COMPLETION_BASIC_INFORMATION;

typedef enum _MEMORY_RESERVE_TYPE {
    MemoryReserveUserApc,
    MemoryReserveIoCompletion,
    MemoryReserveTypeMax
} MEMORY_RESERVE_TYPE;

/* Completion ports. Count is how many threads may run at a time, 0: as many as there are processors. */

NTSYSCALLAPI NTSTATUS NtCreateIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess,
                                           POBJECT_ATTRIBUTES ObjectAttributes, ULONG Count);
NTSYSCALLAPI NTSTATUS NtOpenIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess,
                                         POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtQueryIoCompletion(HANDLE IoCompletionHandle,
                                          IO_COMPLETION_INFORMATION_CLASS IoCompletionInformationClass,
                                          PVOID IoCompletionInformation, ULONG IoCompletionInformationLength,
                                          PULONG ReturnLength);
NTSYSCALLAPI NTSTATUS NtSetIoCompletion(HANDLE IoCompletionHandle, PVOID KeyContext, PVOID ApcContext,
                                        NTSTATUS IoStatus, ULONG_PTR IoStatusInformation);
NTSYSCALLAPI NTSTATUS NtSetIoCompletionEx(HANDLE IoCompletionHandle, HANDLE IoCompletionPacketHandle, PVOID KeyContext,
                                          PVOID ApcContext, NTSTATUS IoStatus, ULONG_PTR IoStatusInformation);
NTSYSCALLAPI NTSTATUS NtRemoveIoCompletion(HANDLE IoCompletionHandle, PVOID *KeyContext, PVOID *ApcContext,
                                           PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER Timeout);
NTSYSCALLAPI NTSTATUS NtRemoveIoCompletionEx(HANDLE IoCompletionHandle,
                                             PFILE_IO_COMPLETION_INFORMATION IoCompletionInformation, ULONG Count,
                                             PULONG NumEntriesRemoved, PLARGE_INTEGER Timeout, BOOLEAN Alertable);

/* A reserve is the memory of one packet, so that NtSetIoCompletionEx cannot fail for the lack of it. */
NTSYSCALLAPI NTSTATUS NtAllocateReserveObject(PHANDLE MemoryReserveHandle, POBJECT_ATTRIBUTES ObjectAttributes,
                                              MEMORY_RESERVE_TYPE Type);

/* Wait completion packets: wait for an object without a thread. When it is signaled a packet goes to the port, once. */

NTSYSCALLAPI NTSTATUS NtCreateWaitCompletionPacket(PHANDLE WaitCompletionPacketHandle, ACCESS_MASK DesiredAccess,
                                                   POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtAssociateWaitCompletionPacket(HANDLE WaitCompletionPacketHandle, HANDLE IoCompletionHandle,
                                                      HANDLE TargetObjectHandle, PVOID KeyContext, PVOID ApcContext,
                                                      NTSTATUS IoStatus, ULONG_PTR IoStatusInformation,
                                                      PBOOLEAN AlreadySignaled);
NTSYSCALLAPI NTSTATUS NtCancelWaitCompletionPacket(HANDLE WaitCompletionPacketHandle, BOOLEAN RemoveSignaledPacket);

INTERLOCK_END

#endif
