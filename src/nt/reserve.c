/* reserve.c: the memory of one completion packet as an object, so that queueing it cannot fail for the lack of any. */
#include "completion.h"

#define NTP_RESERVE_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | 0x3)

typedef struct _NTP_RESERVE {
    NTP_PACKET Packet;
    volatile UCHAR InUse;            /* queued, or about to be: then its queue has a reference on it */
} NTP_RESERVE, *PNTP_RESERVE;

static OBJECT_TYPE NtpReserveType = {
    .Name = "IoCompletionReserve",
    .GenericMapping = {STANDARD_RIGHTS_READ, STANDARD_RIGHTS_WRITE, STANDARD_RIGHTS_EXECUTE, NTP_RESERVE_ALL_ACCESS},
    .ValidAccessMask = NTP_RESERVE_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
};

OBP_REGISTER_TYPE(NtpReserveType);

static NTSTATUS NtpInitializeReserve(PVOID Object, PVOID Context)
{
    PNTP_RESERVE Reserve = Object;
    UNREFERENCED_PARAMETER(Context);
    Reserve->Packet.Kind = NtpReservePacket;
    return STATUS_SUCCESS;
}

NTSTATUS NtAllocateReserveObject(PHANDLE MemoryReserveHandle, POBJECT_ATTRIBUTES ObjectAttributes,
                                 MEMORY_RESERVE_TYPE Type)
{
    if (Type != MemoryReserveIoCompletion) {
        return STATUS_INVALID_PARAMETER;
    }
    return NTP_SERVICE(ObpCreateHandle(&NtpReserveType, sizeof(NTP_RESERVE), ObjectAttributes, NTP_RESERVE_ALL_ACCESS,
                                       NtpInitializeReserve, NULL, MemoryReserveHandle));
}

VOID NtpReleaseReserve(PNTP_PACKET Packet)
{
    PNTP_RESERVE Reserve = CONTAINING_RECORD(Packet, NTP_RESERVE, Packet);
    /* release: pairs with the exchange in NtpQueueReserve; the packet was read before it is written again */
    __atomic_store_n(&Reserve->InUse, FALSE, __ATOMIC_RELEASE);
    ObDereferenceObject(Reserve);
}

/* The caller's reference on the reserve is the queue's from here on, if it is queued. */
static NTSTATUS NtpQueueReserve(PNTP_PORT Port, PNTP_RESERVE Reserve, const NTP_PACKET *Values)
{
    if (__atomic_exchange_n(&Reserve->InUse, TRUE, __ATOMIC_ACQUIRE)) {
        return STATUS_INVALID_PARAMETER_2;
    }
    NtpFillPacket(&Reserve->Packet, Values->KeyContext, Values->ApcContext, Values->IoStatus,
                  Values->IoStatusInformation);
    KeInsertQueue(&Port->Queue, &Reserve->Packet.QueueListEntry);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetReserve(HANDLE PortHandle, HANDLE ReserveHandle, const NTP_PACKET *Values)
{
    PVOID Port, Reserve;
    NTSTATUS Status =
        ObReferenceObjectByHandle(PortHandle, IO_COMPLETION_MODIFY_STATE, &NtpPortType, UserMode, &Port, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObReferenceObjectByHandle(ReserveHandle, 0, &NtpReserveType, UserMode, &Reserve, NULL);
    if (NT_SUCCESS(Status)) {
        Status = NtpQueueReserve(Port, Reserve, Values);
        if (!NT_SUCCESS(Status)) {
            ObDereferenceObject(Reserve);
        }
    }
    ObDereferenceObject(Port);
    return Status;
}

NTSTATUS NtSetIoCompletionEx(HANDLE IoCompletionHandle, HANDLE IoCompletionPacketHandle, PVOID KeyContext,
                             PVOID ApcContext, NTSTATUS IoStatus, ULONG_PTR IoStatusInformation)
{
    PKTHREAD Thread = KiCurrentThread();
    NTP_PACKET Values;
    NtpFillPacket(&Values, KeyContext, ApcContext, IoStatus, IoStatusInformation);
    KiEnterService(Thread);
    NTSTATUS Status = NtpSetReserve(IoCompletionHandle, IoCompletionPacketHandle, &Values);
    KiExitService(Thread);
    return Status;
}
