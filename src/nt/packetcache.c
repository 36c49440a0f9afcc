/*
 * packetcache.c: the memory of plain packets.
 *
 * Who posts takes a packet and who removes gives one back, often on different processors and as often as they can. A
 * list that both use would be a cache line that travels twice with each packet, and so would a list through the packets
 * themselves: to take one its taker would have to wait for the line, which whoever gave it back has written last. So
 * what is free is known by arrays of pointers, each processor has its own, and they are filled and emptied by many:
 *
 *      magazine of a processor          depot                             blocks
 *     +--------------------------+     +--------------------------+      +---------------------+
 *     | 0 .. 2 * ROUNDS pointers | <-> | 0 .. PACKETS pointers    | <->  | ROUNDS packets each | <-> the heap
 *     +--------------------------+     +--------------------------+      +---------------------+
 *
 * 1. A magazine is changed under its lock, depot and blocks under the depot's, which is taken after the magazine's. The
 *    processor is a hint that spares contention: any thread may use any magazine.
 * 2. An empty magazine takes ROUNDS packets, a full one gives as many up: a thread that takes and gives back by turns
 *    does not go to the depot each time.
 * 3. A packet that is not in use is in a magazine, or in the depot, or in the list of its block; NtpBlocks has the
 *    blocks whose list is not empty.
 * 4. What is kept is bounded: when the depot is full packets go back to their blocks, and a block that has all of its
 *    packets goes back to the heap. A block is made only when neither the depot nor a block has a packet.
 * 5. There is no packet only if there is no memory and no magazine has one.
 */
#include "completion.h"

#include <string.h>

#define NTP_MAGAZINES     16 /* a power of two */
#define NTP_ROUNDS        32
#define NTP_DEPOT_PACKETS 2048
#define NTP_AHEAD         4 /* a packet's line is asked for so many packets before its turn */

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

static PNTP_MAGAZINE NtpCurrentMagazine(VOID)
{
    return &NtpMagazine[HalDispatch.CurrentProcessor() % NTP_MAGAZINES];
}

/* With the depot locked. */
static PNTP_PACKET NtpTakeFromBlock(PNTP_BLOCK Block)
{
    PNTP_PACKET Packet = Block->Free;
    Block->Free = Packet->NextFree;
    Block->Count -= 1;
    if (Block->Count == 0) {
        RemoveEntryList(&Block->Link);
    }
    return Packet;
}

/* With the depot locked. A block that has all of its packets is not one of NtpBlocks any more but of *Unused. */
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
        Magazine->Packet[Count] = NtpTakeFromBlock(CONTAINING_RECORD(NtpBlocks.Flink, NTP_BLOCK, Link));
        Count += 1;
    }
    Magazine->Count = Count;
    KiExitLocked(&NtpDepot.Lock, Thread);
}

/* With the magazine locked, and full. Returns blocks to be freed. */
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
        /* Its line is where it was given back; it is written whole. */
        if (Magazine->Count >= NTP_AHEAD) {
            __builtin_prefetch(Magazine->Packet[Magazine->Count - NTP_AHEAD], TRUE);
        }
    }
    KiExitLocked(&Magazine->Lock, Thread);
    return Packet;
}

/* Its first packet; the others are free. NULL: there is no memory. */
static PNTP_PACKET NtpMakeBlock(VOID)
{
    PNTP_BLOCK Block = HalAllocate(sizeof(NTP_BLOCK), KI_CACHE_LINE);
    if (Block == NULL) {
        return NULL;
    }
    Block->Packet[0].Block = Block;
    for (ULONG Index = NTP_ROUNDS - 1; Index > 0; Index -= 1) {
        Block->Packet[Index].Block = Block;
        Block->Packet[Index].Packet.NextFree = Block->Free;
        Block->Free = &Block->Packet[Index].Packet;
    }
    Block->Count = NTP_ROUNDS - 1;
    PKTHREAD Thread = KiEnterLocked(&NtpDepot.Lock);
    InsertHeadList(&NtpBlocks, &Block->Link);
    KiExitLocked(&NtpDepot.Lock, Thread);
    return &Block->Packet[0].Packet;
}

static DECLSPEC_NOINLINE PNTP_PACKET NtpMakePacket(VOID)
{
    PNTP_PACKET Packet = NtpMakeBlock();
    for (ULONG Index = 0; Packet == NULL && Index < NTP_MAGAZINES; Index += 1) {
        Packet = NtpTakeFrom(&NtpMagazine[Index]);
    }
    return Packet;
}

PNTP_PACKET NtpAllocatePacket(VOID)
{
    PNTP_PACKET Packet = NtpTakeFrom(NtpCurrentMagazine());
    return __builtin_expect(Packet != NULL, TRUE) ? Packet : NtpMakePacket();
}

static VOID NtpFreeBlocks(PNTP_BLOCK Block)
{
    while (Block != NULL) {
        PNTP_BLOCK Next = Block->NextUnused;
        HalFree(Block);
        Block = Next;
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
    NtpFreeBlocks(Unused);
}
