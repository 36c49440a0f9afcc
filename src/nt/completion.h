/*
 * completion.h: completion ports and what is queued to them.
 *
 * A port is a KQUEUE of packets. A packet's Kind says where its memory comes from:
 *
 *   plain     NtSetIoCompletion: allocated when it is posted and freed when it is removed (packet.c)
 *   reserve   NtSetIoCompletionEx: part of a reserve object, which the queue references (packet.c)
 *   wait      a signal: part of a wait completion packet, which has its own rules (waitpacket.c)
 *
 * A thread that removes an entry from the queue, in any way, owns the packet and returns it with NtpReleasePacket.
 */
#ifndef INTERLOCK_NT_COMPLETION_H
#define INTERLOCK_NT_COMPLETION_H

#include "ntp.h"

#include "../ob/namespace.h"

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

/* waitpacket.c */
VOID NtpReleaseWaitPacket(PNTP_PACKET Packet);

#endif
