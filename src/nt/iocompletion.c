/* iocompletion.c: completion ports. */
#include "keptport.h"

#include <interlock/io.h>

#define NTP_REMOVE_BATCH 64

static VOID NtpReleasePacket(PNTP_PACKET Packet)
{
    switch (Packet->Kind) {
    case NtpPlainPacket:
        NtpFreePacket(Packet);
        break;
    case NtpReservePacket:
        NtpReleaseReserve(Packet);
        break;
    case NtpWaitPacket:
        NtpReleaseWaitPacket(Packet);
        break;
    }
}

static VOID NtpRundownPort(PNTP_PORT Port)
{
    PLIST_ENTRY Entry;
    KiAbandonQueue(&Port->Queue);
    while ((Entry = KiTakeQueuedEntry(&Port->Queue)) != NULL) {
        NtpReleasePacket(CONTAINING_RECORD(Entry, NTP_PACKET, QueueListEntry));
    }
}

/* After the last handle: pending removals end with STATUS_ABANDONED, plain waits are satisfied. */
static VOID NtpClosePort(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft)
{
    PNTP_PORT Port = Object;
    UNREFERENCED_PARAMETER(GrantedAccess);
    NtpTakeKeptPorts(Port);
    if (NtpIsOutOfReach(Object, HandlesLeft)) {
        NtpRundownPort(Port);
    }
}

/* A post that was in progress when the last handle was closed may have left an entry. */
static VOID NtpDeletePort(PVOID Object)
{
    NtpRundownPort(Object);
}

OBJECT_TYPE NtpPortType = {
    .Name = "IoCompletion",
    .GenericMapping = {STANDARD_RIGHTS_READ | IO_COMPLETION_QUERY_STATE,
                       STANDARD_RIGHTS_WRITE | IO_COMPLETION_MODIFY_STATE, STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE,
                       IO_COMPLETION_ALL_ACCESS},
    .ValidAccessMask = IO_COMPLETION_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = FIELD_OFFSET(NTP_PORT, Queue.Header),
    .CloseProcedure = NtpClosePort,
    .DeleteProcedure = NtpDeletePort,
};

OBP_REGISTER_TYPE(NtpPortType);

static NTSTATUS NtpInitializePort(PVOID Object, PVOID Context)
{
    PNTP_PORT Port = Object;
    KeInitializeQueue(&Port->Queue, *(PULONG)Context);
    return STATUS_SUCCESS;
}

NTSTATUS NtCreateIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes, ULONG Count)
{
    return NTP_SERVICE(ObpCreateHandle(&NtpPortType, sizeof(NTP_PORT), ObjectAttributes, DesiredAccess,
                                       NtpInitializePort, &Count, IoCompletionHandle));
}

NTSTATUS NtOpenIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpPortType, ObjectAttributes, DesiredAccess, IoCompletionHandle));
}

NTSTATUS NtQueryIoCompletion(HANDLE IoCompletionHandle, IO_COMPLETION_INFORMATION_CLASS IoCompletionInformationClass,
                             PVOID IoCompletionInformation, ULONG IoCompletionInformationLength, PULONG ReturnLength)
{
    PIO_COMPLETION_BASIC_INFORMATION Information = IoCompletionInformation;
    NTP_PORT_USE Use;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpCheckQuery(IoCompletionInformationClass == IoCompletionBasicInformation,
                                    IoCompletionInformation, IoCompletionInformationLength, sizeof(*Information));
    if (NT_SUCCESS(Status)) {
        Status = NtpReferencePort(ServiceThread, IoCompletionHandle, IO_COMPLETION_QUERY_STATE, &Use);
    }
    if (NT_SUCCESS(Status)) {
        Information->Depth = KeReadStateQueue(&Use.Port->Queue);
        NtpReturnPort(ServiceThread, IoCompletionHandle, &Use);
        NtpReturnLength(ReturnLength, sizeof(*Information));
    }
    return Status;
}

FORCEINLINE NTSTATUS NtpSetPlainPacket(PNTP_PORT Port, PVOID KeyContext, PVOID ApcContext, NTSTATUS IoStatus,
                                       ULONG_PTR IoStatusInformation)
{
    PNTP_PACKET Packet = NtpAllocatePacket();
    if (Packet == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Packet->Kind = NtpPlainPacket;
    NtpFillPacket(Packet, KeyContext, ApcContext, IoStatus, IoStatusInformation);
    KiInsertQueue(&Port->Queue, &Packet->QueueListEntry);
    return STATUS_SUCCESS;
}

NTSTATUS NtSetIoCompletion(HANDLE IoCompletionHandle, PVOID KeyContext, PVOID ApcContext, NTSTATUS IoStatus,
                           ULONG_PTR IoStatusInformation)
{
    PKTHREAD Thread = KiCurrentThread();
    NTP_PORT_USE Use;
    KiEnterService(Thread);
    NTSTATUS Status = NtpReferencePort(Thread, IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &Use);
    if (NT_SUCCESS(Status)) {
        Status = NtpSetPlainPacket(Use.Port, KeyContext, ApcContext, IoStatus, IoStatusInformation);
        NtpReturnPort(Thread, IoCompletionHandle, &Use);
    }
    KiExitService(Thread);
    return Status;
}

static VOID NtpDeliverPacket(PLIST_ENTRY Entry, PFILE_IO_COMPLETION_INFORMATION Information)
{
    PNTP_PACKET Packet = CONTAINING_RECORD(Entry, NTP_PACKET, QueueListEntry);
    Information->KeyContext = Packet->KeyContext;
    Information->ApcContext = Packet->ApcContext;
    Information->IoStatusBlock.Pointer = ULongToPtr((ULONG)Packet->IoStatus); /* the other half is 0 */
    Information->IoStatusBlock.Information = Packet->IoStatusInformation;
    NtpReleasePacket(Packet);
}

/* A queue may return a status instead of an entry; no entry has such a low address. */
static BOOLEAN NtpIsStatus(PLIST_ENTRY Entry)
{
    return (ULONG_PTR)Entry <= MAXUSHORT;
}

/* Up to NTP_REMOVE_BATCH packets: STATUS_SUCCESS and *Removed of them, or the status if there is none. */
static NTSTATUS NtpRemoveBatch(PNTP_PORT Port, PFILE_IO_COMPLETION_INFORMATION Information, ULONG Count,
                               KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout, PULONG Removed)
{
    PLIST_ENTRY Entries[NTP_REMOVE_BATCH];
    ULONG Wanted = Count < NTP_REMOVE_BATCH ? Count : NTP_REMOVE_BATCH;
    ULONG Taken = KiRemoveQueueEx(&Port->Queue, WaitMode, Alertable, Timeout, Entries, Wanted);
    if (NtpIsStatus(Entries[0])) {
        return (NTSTATUS)(LONG_PTR)Entries[0];
    }
    for (ULONG Index = 0; Index < Taken; Index += 1) {
        NtpDeliverPacket(Entries[Index], &Information[Index]);
    }
    *Removed = Taken;
    return STATUS_SUCCESS;
}

/* Only the first batch waits; after a full one the rest polls. */
static NTSTATUS NtpRemovePackets(PNTP_PORT Port, PFILE_IO_COMPLETION_INFORMATION Information, ULONG Count,
                                 KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout, PULONG Removed)
{
    LARGE_INTEGER Poll = {.QuadPart = 0};
    ULONG Batch = 0;
    NTSTATUS Status = NtpRemoveBatch(Port, Information, Count, WaitMode, Alertable, Timeout, &Batch);
    *Removed = Batch;
    while (NT_SUCCESS(Status) && Batch == NTP_REMOVE_BATCH && *Removed < Count) {
        Batch = 0;
        NtpRemoveBatch(Port, Information + *Removed, Count - *Removed, WaitMode, FALSE, &Poll, &Batch);
        *Removed += Batch;
    }
    return Status;
}

/* One packet, or the status if there is none; then nothing is written. */
FORCEINLINE NTSTATUS NtpRemovePacket(PNTP_PORT Port, PVOID *KeyContext, PVOID *ApcContext,
                                     PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER Timeout)
{
    FILE_IO_COMPLETION_INFORMATION Information;
    PLIST_ENTRY Entry = KiRemoveQueue(&Port->Queue, UserMode, Timeout);
    if (NtpIsStatus(Entry)) {
        return (NTSTATUS)(LONG_PTR)Entry;
    }
    NtpDeliverPacket(Entry, &Information);
    *KeyContext = Information.KeyContext;
    *ApcContext = Information.ApcContext;
    *IoStatusBlock = Information.IoStatusBlock;
    return STATUS_SUCCESS;
}

NTSTATUS NtRemoveIoCompletion(HANDLE IoCompletionHandle, PVOID *KeyContext, PVOID *ApcContext,
                              PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    NTP_PORT_USE Use;

    if (KeyContext == NULL || ApcContext == NULL || IoStatusBlock == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KiEnterService(Thread);
    NTSTATUS Status = NtpReferencePort(Thread, IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &Use);
    if (NT_SUCCESS(Status)) {
        Status = NtpRemovePacket(Use.Port, KeyContext, ApcContext, IoStatusBlock, Timeout);
        NtpReturnPort(Thread, IoCompletionHandle, &Use);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS NtRemoveIoCompletionEx(HANDLE IoCompletionHandle, PFILE_IO_COMPLETION_INFORMATION IoCompletionInformation,
                                ULONG Count, PULONG NumEntriesRemoved, PLARGE_INTEGER Timeout, BOOLEAN Alertable)
{
    PKTHREAD Thread = KiCurrentThread();
    NTP_PORT_USE Use;

    if (Count == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (IoCompletionInformation == NULL || NumEntriesRemoved == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KiEnterService(Thread);
    NTSTATUS Status = NtpReferencePort(Thread, IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &Use);
    if (NT_SUCCESS(Status)) {
        ULONG Removed;
        Status = NtpRemovePackets(Use.Port, IoCompletionInformation, Count, UserMode, Alertable, Timeout, &Removed);
        NtpReturnPort(Thread, IoCompletionHandle, &Use);
        *NumEntriesRemoved = Removed;
    }
    KiExitService(Thread);
    return NtpFinishWait(Status);
}

/* Here and not in src/io, because packets belong to this layer. */
NTSTATUS IoRemoveIoCompletion(PKQUEUE IoCompletion, PFILE_IO_COMPLETION_INFORMATION IoCompletionInformation, ULONG Count,
                              PULONG NumEntriesRemoved, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout,
                              BOOLEAN Alertable)
{
    if (Count == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    PNTP_PORT Port = CONTAINING_RECORD(IoCompletion, NTP_PORT, Queue);
    return NtpFinishWait(
        NtpRemovePackets(Port, IoCompletionInformation, Count, WaitMode, Alertable, Timeout, NumEntriesRemoved));
}
