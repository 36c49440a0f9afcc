/*
 * waitpacket.c: wait completion packets.
 *
 * A packet is idle or in use. Associating it puts it in use; it is idle again when its entry is removed from the port's
 * queue, or when it is cancelled before that.
 *
 * 1. InUse, Closed, Port and Target are written under Lock. The packet's values and its notification block belong to
 *    the thread that has just set InUse under Lock, and then to the signal, until InUse is cleared.
 * 2. A packet in use has references on its port, its target and itself. The thread that clears InUse returns them,
 *    after it has released Lock. So a signal in flight finds the port, and a consumer of the entry finds the packet,
 *    even if everything was closed meanwhile.
 * 3. The target's lock decides between a signal and a cancellation, the queue's lock between a removal and a
 *    cancellation. The winning removal still has to clear InUse: until then the packet cannot be associated again, and
 *    a cancellation returns STATUS_PENDING.
 * 4. Closing the last handle sets Closed. From then on the packet cannot be associated, so it can be deleted.
 *
 * Lock order: Lock, then a target's or a queue's. No holder of those waits for Lock.
 */
#include "completion.h"

typedef struct _NTP_WAIT_COMPLETION_PACKET {
    union {
        KOBJECT_NOTIFICATION Notification;
        struct {
            KWAIT_BLOCK WaitBlock;
            NTP_PACKET Packet;       /* begins at the notification's queue entry */
        };
    };
    KI_LOCK Lock;
    BOOLEAN InUse;
    BOOLEAN Closed;
    PNTP_PORT Port;
    PVOID Target;
} NTP_WAIT_COMPLETION_PACKET, *PNTP_WAIT_COMPLETION_PACKET;

C_ASSERT(FIELD_OFFSET(NTP_WAIT_COMPLETION_PACKET, Packet.QueueListEntry) ==
         FIELD_OFFSET(NTP_WAIT_COMPLETION_PACKET, Notification.QueueListEntry));

/* With Lock held, which this releases: the packet is idle again. */
static VOID NtpEndAssociation(PNTP_WAIT_COMPLETION_PACKET WaitPacket, PKTHREAD Thread)
{
    PNTP_PORT Port = WaitPacket->Port;
    PVOID Target = WaitPacket->Target;
    WaitPacket->InUse = FALSE;
    KiExitLocked(&WaitPacket->Lock, Thread);
    ObDereferenceObject(Target);
    ObDereferenceObject(Port);
    ObDereferenceObject(WaitPacket);
}

VOID NtpReleaseWaitPacket(PNTP_PACKET Packet)
{
    PNTP_WAIT_COMPLETION_PACKET WaitPacket = CONTAINING_RECORD(Packet, NTP_WAIT_COMPLETION_PACKET, Packet);
    NtpEndAssociation(WaitPacket, KiEnterLocked(&WaitPacket->Lock));
}

static NTSTATUS NtpCancelWaitPacket(PNTP_WAIT_COMPLETION_PACKET WaitPacket, BOOLEAN RemoveSignaledPacket, BOOLEAN Close)
{
    PKTHREAD Thread = KiEnterLocked(&WaitPacket->Lock);
    NTSTATUS Status = STATUS_CANCELLED;
    WaitPacket->Closed |= Close;
    if (WaitPacket->InUse) {
        if (KeCancelObjectNotification(&WaitPacket->Notification, RemoveSignaledPacket) != NotificationSignaled) {
            NtpEndAssociation(WaitPacket, Thread);
            return STATUS_SUCCESS;
        }
        Status = STATUS_PENDING;
    }
    KiExitLocked(&WaitPacket->Lock, Thread);
    return Status;
}

static VOID NtpCloseWaitPacket(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft)
{
    UNREFERENCED_PARAMETER(GrantedAccess);
    if (NtpIsOutOfReach(Object, HandlesLeft)) {
        NtpCancelWaitPacket(Object, TRUE, TRUE);
    }
}

static OBJECT_TYPE NtpWaitPacketType = {
    .Name = "WaitCompletionPacket",
    .GenericMapping = {STANDARD_RIGHTS_READ, STANDARD_RIGHTS_WRITE | WAIT_COMPLETION_PACKET_MODIFY_STATE,
                       STANDARD_RIGHTS_EXECUTE, WAIT_COMPLETION_PACKET_ALL_ACCESS},
    .ValidAccessMask = WAIT_COMPLETION_PACKET_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .CloseProcedure = NtpCloseWaitPacket,
};

OBP_REGISTER_TYPE(NtpWaitPacketType);

static NTSTATUS NtpInitializeWaitPacket(PVOID Object, PVOID Context)
{
    PNTP_WAIT_COMPLETION_PACKET WaitPacket = Object;
    UNREFERENCED_PARAMETER(Context);
    WaitPacket->Packet.Kind = NtpWaitPacket;
    return STATUS_SUCCESS;
}

NTSTATUS NtCreateWaitCompletionPacket(PHANDLE WaitCompletionPacketHandle, ACCESS_MASK DesiredAccess,
                                      POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpCreateHandle(&NtpWaitPacketType, sizeof(NTP_WAIT_COMPLETION_PACKET), ObjectAttributes,
                                       DesiredAccess, NtpInitializeWaitPacket, NULL, WaitCompletionPacketHandle));
}

/* On success the references belong to the packet. */
static NTSTATUS NtpAssociate(PNTP_WAIT_COMPLETION_PACKET WaitPacket, PNTP_PORT Port, PVOID Target,
                             const NTP_PACKET *Values)
{
    PDISPATCHER_HEADER Waited = ObpWaitObject(Target);
    NTSTATUS Status;
    if (ObpIsAlwaysSignaled(Target) || KI_TYPE(KiReadHeader(Waited)) == MutantObject) {
        return STATUS_INVALID_PARAMETER_3; /* never changes, or needs a thread as owner */
    }
    PKTHREAD Thread = KiEnterLocked(&WaitPacket->Lock);
    if (WaitPacket->InUse) {
        Status = STATUS_INVALID_PARAMETER_1;
    } else if (WaitPacket->Closed) {
        Status = STATUS_INVALID_HANDLE;
    } else {
        WaitPacket->InUse = TRUE;
        WaitPacket->Port = Port;
        WaitPacket->Target = Target;
        NtpFillPacket(&WaitPacket->Packet, Values->KeyContext, Values->ApcContext, Values->IoStatus,
                      Values->IoStatusInformation);
        Status = KeRegisterObjectNotification(Waited, &Port->Queue, &WaitPacket->Notification);
    }
    KiExitLocked(&WaitPacket->Lock, Thread);
    return Status;
}

NTSTATUS NtAssociateWaitCompletionPacket(HANDLE WaitCompletionPacketHandle, HANDLE IoCompletionHandle,
                                         HANDLE TargetObjectHandle, PVOID KeyContext, PVOID ApcContext,
                                         NTSTATUS IoStatus, ULONG_PTR IoStatusInformation, PBOOLEAN AlreadySignaled)
{
    PVOID WaitPacket = NULL;
    PVOID Port = NULL;
    PVOID Target = NULL;
    NTP_PACKET Values;
    NtpFillPacket(&Values, KeyContext, ApcContext, IoStatus, IoStatusInformation);
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = ObReferenceObjectByHandle(WaitCompletionPacketHandle, WAIT_COMPLETION_PACKET_MODIFY_STATE,
                                                &NtpWaitPacketType, UserMode, &WaitPacket, NULL);
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &NtpPortType, UserMode,
                                           &Port, NULL);
    }
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(TargetObjectHandle, SYNCHRONIZE, NULL, UserMode, &Target, NULL);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtpAssociate(WaitPacket, Port, Target, &Values);
    }
    if (NT_SUCCESS(Status)) {
        if (AlreadySignaled != NULL) {
            *AlreadySignaled = Status != STATUS_PENDING;
        }
        return STATUS_SUCCESS;
    }
    PVOID References[] = {Target, Port, WaitPacket};
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(References); Index += 1) {
        if (References[Index] != NULL) {
            ObDereferenceObject(References[Index]);
        }
    }
    return Status;
}

NTSTATUS NtCancelWaitCompletionPacket(HANDLE WaitCompletionPacketHandle, BOOLEAN RemoveSignaledPacket)
{
    PVOID WaitPacket;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = ObReferenceObjectByHandle(WaitCompletionPacketHandle, WAIT_COMPLETION_PACKET_MODIFY_STATE,
                                                &NtpWaitPacketType, UserMode, &WaitPacket, NULL);
    if (NT_SUCCESS(Status)) {
        Status = NtpCancelWaitPacket(WaitPacket, RemoveSignaledPacket, FALSE);
        ObDereferenceObject(WaitPacket);
    }
    return Status;
}
