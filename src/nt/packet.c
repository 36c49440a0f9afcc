/* packet.c: the packets of completion ports. ntp.h lists their kinds. */
#include <string.h>

#include "../ke/ki.h"
#include "ntp.h"

/*
 * The memory of packets: plain ones, and reserve objects.
 *
 * A producer takes a plain packet and a consumer frees it, often on different processors and at a high rate. A shared
 * free list would be a cache line that bounces twice per packet, and so would a list through the packets themselves:
 * the allocating thread would have to wait for the line that the freeing one wrote last. So free packets are found by
 * arrays of pointers, one array per processor, which are filled and emptied in bulk:
 *
 *      magazine of a processor          depot                             blocks
 *     +--------------------------+     +--------------------------+      +---------------------+
 *     | 0 .. 2 * ROUNDS pointers | <-> | 0 .. PACKETS pointers    | <->  | ROUNDS packets each | <-> the heap
 *     +--------------------------+     +--------------------------+      +---------------------+
 *
 * 1. A magazine changes under its lock, depot and blocks under the depot's, which is acquired after the magazine's. The
 *    processor is a hint that avoids contention: any thread may use any magazine.
 * 2. An empty magazine takes ROUNDS packets from the depot, a full one returns ROUNDS: a thread that alternates between
 *    allocating and freeing does not use the depot each time.
 * 3. A free packet is in a magazine, in the depot, or on its block's list; NtpBlocks has the blocks whose list is not
 *    empty.
 * 4. Free memory is bounded: when the depot is full, packets return to their blocks, and a block that has all of its
 *    packets returns to the heap. A block is allocated only if the depot and all blocks are empty.
 * 5. Allocation fails only if there is no memory and no magazine has a packet.
 */

#define NTP_MAGAZINES     16 /* a power of two */
#ifndef NTP_ROUNDS /* the explorer has 2 and 2, so that few packets exercise all stages */
#define NTP_ROUNDS        32
#define NTP_DEPOT_PACKETS 2048
#endif
#define NTP_AHEAD         4 /* prefetch distance, in packets */

typedef struct _NTP_BLOCK NTP_BLOCK, *PNTP_BLOCK;

typedef struct _NTP_PLAIN_PACKET {
    NTP_PACKET Packet DECLSPEC_ALIGN(KI_CACHE_LINE);
    PNTP_BLOCK Block;
} NTP_PLAIN_PACKET, *PNTP_PLAIN_PACKET;

C_ASSERT(sizeof(NTP_PLAIN_PACKET) == KI_CACHE_LINE);

struct _NTP_BLOCK {
    LIST_ENTRY Link; /* of NtpBlocks */
    PNTP_PACKET Free;
    ULONG Count; /* of Free */
    PNTP_BLOCK NextUnused;
    NTP_PLAIN_PACKET Packet[NTP_ROUNDS];
};

typedef struct _NTP_MAGAZINE {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG Count;
    PNTP_PACKET Packet[2 * NTP_ROUNDS];
} NTP_MAGAZINE, *PNTP_MAGAZINE;

typedef struct _NTP_DEPOT {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG Count;
    PNTP_PACKET Packet[NTP_DEPOT_PACKETS];
} NTP_DEPOT;

static NTP_MAGAZINE NtpMagazine[NTP_MAGAZINES];
static NTP_DEPOT NtpDepot;
static LIST_ENTRY NtpBlocks = {&NtpBlocks, &NtpBlocks};
static BOOLEAN NtpHasBlocks; /* there was a packet */

static PNTP_MAGAZINE NtpCurrentMagazine(VOID)
{
    return &NtpMagazine[HalDispatch.CurrentProcessor() % NTP_MAGAZINES];
}

/* With the depot locked. A block that has all of its packets moves from NtpBlocks to *Unused. */
static VOID NtpReturnToBlock(PNTP_PACKET Packet, PNTP_BLOCK *Unused)
{
    PNTP_BLOCK Block = CONTAINING_RECORD(Packet, NTP_PLAIN_PACKET, Packet)->Block;
    Packet->NextFree = Block->Free;
    Block->Free = Packet;
    Block->Count += 1;
    if (Block->Count == 1) {
        InsertHeadList(&NtpBlocks, &Block->Link);
    } else if (Block->Count == NTP_ROUNDS) {
        RemoveEntryList(&Block->Link);
        Block->NextUnused = *Unused;
        *Unused = Block;
    }
}

/* With the magazine locked, and empty. */
static DECLSPEC_NOINLINE VOID NtpLoad(PNTP_MAGAZINE Magazine)
{
    PKTHREAD Thread = KiEnterLocked(&NtpDepot.Lock);
    ULONG Count = NtpDepot.Count < NTP_ROUNDS ? NtpDepot.Count : NTP_ROUNDS;
    NtpDepot.Count -= Count;
    memcpy(Magazine->Packet, &NtpDepot.Packet[NtpDepot.Count], Count * sizeof(PNTP_PACKET));
    while (Count < NTP_ROUNDS && !IsListEmpty(&NtpBlocks)) {
        PNTP_BLOCK Block = CONTAINING_RECORD(NtpBlocks.Flink, NTP_BLOCK, Link);
        Magazine->Packet[Count] = Block->Free;
        Block->Free = Block->Free->NextFree;
        Block->Count -= 1;
        if (Block->Count == 0) {
            RemoveEntryList(&Block->Link);
        }
        Count += 1;
    }
    Magazine->Count = Count;
    KiExitLocked(&NtpDepot.Lock, Thread);
}

/* With the magazine locked, and full. Returns blocks for the caller to free. */
static DECLSPEC_NOINLINE PNTP_BLOCK NtpUnload(PNTP_MAGAZINE Magazine)
{
    PNTP_BLOCK Unused = NULL;
    PKTHREAD Thread = KiEnterLocked(&NtpDepot.Lock);
    PNTP_PACKET *Surplus = &Magazine->Packet[NTP_ROUNDS];
    Magazine->Count = NTP_ROUNDS;
    if (NtpDepot.Count <= NTP_DEPOT_PACKETS - NTP_ROUNDS) {
        memcpy(&NtpDepot.Packet[NtpDepot.Count], Surplus, NTP_ROUNDS * sizeof(PNTP_PACKET));
        NtpDepot.Count += NTP_ROUNDS;
    } else {
        for (ULONG Index = 0; Index < NTP_ROUNDS; Index += 1) {
            NtpReturnToBlock(Surplus[Index], &Unused);
        }
    }
    KiExitLocked(&NtpDepot.Lock, Thread);
    return Unused;
}

static PNTP_PACKET NtpTakeFrom(PNTP_MAGAZINE Magazine)
{
    PNTP_PACKET Packet = NULL;
    PKTHREAD Thread = KiEnterLocked(&Magazine->Lock);
    if (__builtin_expect(Magazine->Count == 0, FALSE)) {
        NtpLoad(Magazine);
    }
    if (__builtin_expect(Magazine->Count != 0, TRUE)) {
        Magazine->Count -= 1;
        Packet = Magazine->Packet[Magazine->Count];
        /* The next packets' lines are in the cache of the processor that freed them. */
        if (Magazine->Count >= NTP_AHEAD) {
            HalPrefetchForWrite(Magazine->Packet[Magazine->Count - NTP_AHEAD]);
        }
    }
    KiExitLocked(&Magazine->Lock, Thread);
    return Packet;
}

/* Allocates a block and returns its first packet. Without memory, a packet of any magazine, or NULL. */
static DECLSPEC_NOINLINE PNTP_PACKET NtpMakePacket(VOID)
{
    PNTP_PACKET Packet = NULL;
    PNTP_BLOCK Block = HalAllocate(sizeof(NTP_BLOCK), KI_CACHE_LINE);
    if (Block == NULL) {
        for (ULONG Index = 0; Packet == NULL && Index < NTP_MAGAZINES; Index += 1) {
            Packet = NtpTakeFrom(&NtpMagazine[Index]);
        }
        return Packet;
    }
    Block->Packet[0].Block = Block;
    for (ULONG Index = NTP_ROUNDS - 1; Index > 0; Index -= 1) {
        Block->Packet[Index].Block = Block;
        Block->Packet[Index].Packet.NextFree = Block->Free;
        Block->Free = &Block->Packet[Index].Packet;
    }
    Block->Count = NTP_ROUNDS - 1;
    KiClaimProcessEnd();
    PKTHREAD Thread = KiEnterLocked(&NtpDepot.Lock);
    InsertHeadList(&NtpBlocks, &Block->Link);
    NtpHasBlocks = TRUE;
    KiExitLocked(&NtpDepot.Lock, Thread);
    return &Block->Packet[0].Packet;
}

PNTP_PACKET NtpAllocatePacket(VOID)
{
    PNTP_PACKET Packet = NtpTakeFrom(NtpCurrentMagazine());
    return __builtin_expect(Packet != NULL, TRUE) ? Packet : NtpMakePacket();
}

static DECLSPEC_NOINLINE VOID NtpFreeBlocks(PNTP_BLOCK Unused)
{
    while (Unused != NULL) {
        PNTP_BLOCK Next = Unused->NextUnused;
        HalFree(Unused);
        Unused = Next;
    }
}

VOID NtpFreePacket(PNTP_PACKET Packet)
{
    PNTP_MAGAZINE Magazine = NtpCurrentMagazine();
    PNTP_BLOCK Unused = NULL;
    PKTHREAD Thread = KiEnterLocked(&Magazine->Lock);
    if (__builtin_expect(Magazine->Count == 2 * NTP_ROUNDS, FALSE)) {
        Unused = NtpUnload(Magazine);
    }
    Magazine->Packet[Magazine->Count] = Packet;
    Magazine->Count += 1;
    KiExitLocked(&Magazine->Lock, Thread);
    if (__builtin_expect(Unused != NULL, FALSE)) {
        NtpFreeBlocks(Unused);
    }
}

#ifdef INTERLOCK_HOST
/* The ports and the program's other threads no longer exist: blocks whose packets are all free return to the heap. */
static __attribute__((destructor(KI_END_PACKETS))) VOID NtpFreeBlocksAtExit(VOID)
{
    PNTP_BLOCK Unused = NULL;
    if (!NtpHasBlocks || !KiProcessEndsAlone()) {
        return;
    }
    for (ULONG Index = 0; Index <= NTP_MAGAZINES; Index += 1) { /* the last: the depot's own */
        PNTP_MAGAZINE Magazine = Index < NTP_MAGAZINES ? &NtpMagazine[Index] : NULL;
        PKTHREAD Outer = Magazine != NULL ? KiEnterLocked(&Magazine->Lock) : NULL;
        PKTHREAD Thread = KiEnterLocked(&NtpDepot.Lock);
        PNTP_PACKET *Packets = Magazine != NULL ? Magazine->Packet : NtpDepot.Packet;
        PULONG Count = Magazine != NULL ? &Magazine->Count : &NtpDepot.Count;
        while (*Count != 0) {
            *Count -= 1;
            NtpReturnToBlock(Packets[*Count], &Unused);
        }
        KiExitLocked(&NtpDepot.Lock, Thread);
        if (Magazine != NULL) {
            KiExitLocked(&Magazine->Lock, Outer);
        }
    }
    NtpFreeBlocks(Unused);
}
#endif

/* Reserve objects: the memory of one packet, so that posting it cannot fail. */

#define NTP_RESERVE_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | 0x3)

typedef struct _NTP_RESERVE {
    NTP_PACKET Packet;
    volatile UCHAR InUse;            /* queued, or about to be: the queue holds a reference on it */
} NTP_RESERVE, *PNTP_RESERVE;

static OBJECT_TYPE NtpReserveType = {
    .Name = "IoCompletionReserve",
    .GenericMapping = {STANDARD_RIGHTS_READ | 0x1, STANDARD_RIGHTS_WRITE | 0x2, STANDARD_RIGHTS_EXECUTE,
                       NTP_RESERVE_ALL_ACCESS},
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
    if (!NtpClearHandle(MemoryReserveHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Type != MemoryReserveIoCompletion) {
        return STATUS_INVALID_PARAMETER;
    }
    return NTP_SERVICE(ObpCreateHandle(&NtpReserveType, sizeof(NTP_RESERVE), ObjectAttributes, NTP_RESERVE_ALL_ACCESS,
                                       NtpInitializeReserve, NULL, MemoryReserveHandle));
}

VOID NtpReleaseReserve(PNTP_PACKET Packet)
{
    PNTP_RESERVE Reserve = CONTAINING_RECORD(Packet, NTP_RESERVE, Packet);
    /* release: pairs with the exchange in NtSetIoCompletionEx; the packet was read before it is written again */
    __atomic_store_n(&Reserve->InUse, FALSE, __ATOMIC_RELEASE);
    ObDereferenceObject(Reserve);
}

/* On success the reference on the reserve belongs to the queue. */
NTSTATUS NtSetIoCompletionEx(HANDLE IoCompletionHandle, HANDLE IoCompletionPacketHandle, PVOID KeyContext,
                             PVOID ApcContext, NTSTATUS IoStatus, ULONG_PTR IoStatusInformation)
{
    PVOID Port, Object;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status =
        ObReferenceObjectByHandle(IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &NtpPortType, UserMode, &Port, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObReferenceObjectByHandle(IoCompletionPacketHandle, 0, &NtpReserveType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        PNTP_RESERVE Reserve = Object;
        /* acquire: pairs with the release in NtpReleaseReserve */
        if (__atomic_exchange_n(&Reserve->InUse, TRUE, __ATOMIC_ACQUIRE)) {
            ObDereferenceObject(Reserve);
            Status = STATUS_INVALID_PARAMETER_2;
        } else {
            NtpFillPacket(&Reserve->Packet, KeyContext, ApcContext, IoStatus, IoStatusInformation);
            KeInsertQueue(&((PNTP_PORT)Port)->Queue, &Reserve->Packet.QueueListEntry);
        }
    }
    ObDereferenceObject(Port);
    return Status;
}

/*
 * Wait completion packets.
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
