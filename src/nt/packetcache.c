/*
 * packetcache.c: the memory of plain packets.
 *
 * Who posts takes a packet and who removes gives one back, often on different processors and as often as they can: a
 * list that both use would be a cache line that travels twice with each packet. So each processor has a magazine of its
 * own, and only full ones travel, through the depot:
 *
 *      magazine of a processor           depot                       magazine of another
 *     +-------------------------+       +------------------+        +-------------------------+
 *     | Loaded: 0 .. ROUNDS     |  <--  | chains of ROUNDS |  <--   | Loaded: 0 .. ROUNDS     |
 *     | Spare:  ROUNDS or none  |       |                  |        | Spare:  ROUNDS or none  |
 *     +-------------------------+       +------------------+        +-------------------------+
 *
 * 1. Loaded and Spare are changed under the magazine's lock. The processor is a hint that spares contention: any thread
 *    may use any magazine.
 * 2. Spare is full or NULL. With one full and one partly full, a thread that takes and gives back by turns at the edge
 *    of a chain does not go to the depot each time.
 * 3. A chain in the depot is linked through NextFree, and into the depot through the FreeEntry of its first packet.
 * 4. What is kept is bounded: the depot takes NTP_DEPOT_CHAINS chains, what comes beyond is freed.
 * 5. There is no packet only if there is no memory and no magazine has one.
 */
#include "completion.h"

#define NTP_MAGAZINES    16 /* a power of two */
#define NTP_ROUNDS       32
#define NTP_DEPOT_CHAINS 32

typedef struct _NTP_MAGAZINE {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG Count; /* of Loaded */
    PNTP_PACKET Loaded;
    PNTP_PACKET Spare;
} NTP_MAGAZINE, *PNTP_MAGAZINE;

static NTP_MAGAZINE NtpMagazine[NTP_MAGAZINES];
static SLIST_HEADER NtpDepot DECLSPEC_ALIGN(KI_CACHE_LINE);

static PNTP_MAGAZINE NtpCurrentMagazine(VOID)
{
    return &NtpMagazine[HalDispatch.CurrentProcessor() % NTP_MAGAZINES];
}

/* With the magazine locked, and nothing loaded. */
static VOID NtpLoad(PNTP_MAGAZINE Magazine)
{
    PNTP_PACKET Chain = Magazine->Spare;
    Magazine->Spare = NULL;
    if (Chain == NULL) {
        PSLIST_ENTRY Entry = InterlockedPopEntrySList(&NtpDepot);
        Chain = Entry != NULL ? CONTAINING_RECORD(Entry, NTP_PACKET, FreeEntry) : NULL;
    }
    Magazine->Loaded = Chain;
    Magazine->Count = Chain != NULL ? NTP_ROUNDS : 0;
}

static PNTP_PACKET NtpTakeFrom(PNTP_MAGAZINE Magazine)
{
    PKTHREAD Thread = KiEnterLocked(&Magazine->Lock);
    if (Magazine->Loaded == NULL) {
        NtpLoad(Magazine);
    }
    PNTP_PACKET Packet = Magazine->Loaded;
    if (Packet != NULL) {
        Magazine->Loaded = Packet->NextFree;
        Magazine->Count -= 1;
    }
    KiExitLocked(&Magazine->Lock, Thread);
    return Packet;
}

static DECLSPEC_NOINLINE PNTP_PACKET NtpMakePacket(VOID)
{
    PNTP_PACKET Packet = HalAllocate(sizeof(NTP_PACKET), MEMORY_ALLOCATION_ALIGNMENT);
    for (ULONG Index = 0; Packet == NULL && Index < NTP_MAGAZINES; Index += 1) {
        Packet = NtpTakeFrom(&NtpMagazine[Index]);
    }
    return Packet;
}

PNTP_PACKET NtpAllocatePacket(VOID)
{
    PNTP_PACKET Packet = NtpTakeFrom(NtpCurrentMagazine());
    return Packet != NULL ? Packet : NtpMakePacket();
}

static VOID NtpFreeChain(PNTP_PACKET Chain)
{
    while (Chain != NULL) {
        PNTP_PACKET Next = Chain->NextFree;
        HalFree(Chain);
        Chain = Next;
    }
}

static VOID NtpStore(PNTP_PACKET Chain)
{
    if (QueryDepthSList(&NtpDepot) < NTP_DEPOT_CHAINS) {
        InterlockedPushEntrySList(&NtpDepot, &Chain->FreeEntry);
    } else {
        NtpFreeChain(Chain);
    }
}

VOID NtpFreePacket(PNTP_PACKET Packet)
{
    PNTP_MAGAZINE Magazine = NtpCurrentMagazine();
    PNTP_PACKET Surplus = NULL;
    PKTHREAD Thread = KiEnterLocked(&Magazine->Lock);
    if (Magazine->Count == NTP_ROUNDS) {
        Surplus = Magazine->Spare;
        Magazine->Spare = Magazine->Loaded;
        Magazine->Loaded = NULL;
        Magazine->Count = 0;
    }
    Packet->NextFree = Magazine->Loaded;
    Magazine->Loaded = Packet;
    Magazine->Count += 1;
    KiExitLocked(&Magazine->Lock, Thread);
    if (Surplus != NULL) {
        NtpStore(Surplus);
    }
}
