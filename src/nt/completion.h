/*
 * completion.h: completion ports and what is queued to them.
 *
 * A port is a KQUEUE. What its entries are links of, their Kind says:
 *
 *   plain     from NtSetIoCompletion: memory of packetcache.c, taken when it is set and given back when it is removed
 *   reserve   from NtSetIoCompletionEx: part of a reserve object, which is referenced as long as it is queued
 *   wait      from a signal: part of a wait completion packet, which has its own rules (waitpacket.c)
 *
 * Whoever takes an entry out of the queue, in whatever way, owns the packet, and gives it back by NtpReleasePacket.
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
        struct _NTP_PACKET *NextFree; /* of a plain one that is not in use: packetcache.c */
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

/* For a CloseProcedure: nobody can get at the object any more. A permanent one can still be opened by its name. */
FORCEINLINE BOOLEAN NtpIsOutOfReach(PVOID Object, LONG_PTR HandlesLeft)
{
    return HandlesLeft == 0 &&
           (ObpHeaderOf(Object)->NameInfo == NULL || !(ObpQueryNameAttributes(Object) & OBJ_PERMANENT));
}

/* iocompletion.c */
VOID NtpReleasePacket(PNTP_PACKET Packet);

/* packetcache.c */
PNTP_PACKET NtpAllocatePacket(VOID); /* NULL when there is no memory */
VOID NtpFreePacket(PNTP_PACKET Packet);

/* reserve.c, waitpacket.c: the same for one kind */
VOID NtpReleaseReserve(PNTP_PACKET Packet);
VOID NtpReleaseWaitPacket(PNTP_PACKET Packet);

#endif
