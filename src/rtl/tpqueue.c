/*
 * tpqueue.c: the queue of a pool. Objects of normal priority stand in the KQUEUE. The others stand in a lane, which has
 * one packet for all of them: that of the express lane goes to the front of the queue, and whoever takes it serves one
 * object and puts it back there if there are more. That of the slow lane goes to the end, and whoever takes it while
 * others are queued puts it back there: objects of low priority wait until there is nothing else.
 */
#include "tpp.h"

VOID TppInitializeLanes(PTP_POOL Pool)
{
    for (ULONG Number = 0; Number < TppMaximumLane; Number += 1) {
        InitializeListHead(&Pool->Lane[Number].ListHead);
        Pool->Lane[Number].Packet.Kind = TppLanePacket;
    }
}

static VOID TppQueueLane(PTP_POOL Pool, PTPP_LANE Lane)
{
    Lane->Queued = TRUE;
    if (Lane == &Pool->Lane[TppExpressLane]) {
        KeInsertHeadQueue(&Pool->Queue, &Lane->Packet.Entry);
    } else {
        KeInsertQueue(&Pool->Queue, &Lane->Packet.Entry);
    }
}

VOID TppQueueTaskLocked(PTPP_OBJECT Object)
{
    PTP_POOL Pool = Object->Pool;
    if (Object->Priority == TP_CALLBACK_PRIORITY_NORMAL) {
        KeInsertQueue(&Pool->Queue, &Object->Task.Entry);
        return;
    }
    PTPP_LANE Lane = &Pool->Lane[Object->Priority == TP_CALLBACK_PRIORITY_HIGH ? TppExpressLane : TppSlowLane];
    InsertTailList(&Lane->ListHead, &Object->Task.Entry);
    if (!Lane->Queued) {
        TppQueueLane(Pool, Lane);
    }
}

VOID TppQueueTask(PTPP_OBJECT Object)
{
    PTP_POOL Pool = Object->Pool;
    if (Object->Priority == TP_CALLBACK_PRIORITY_NORMAL) {
        KeInsertQueue(&Pool->Queue, &Object->Task.Entry);
        return;
    }
    KiAcquireLock(&Pool->Lock);
    TppQueueTaskLocked(Object);
    KiReleaseLock(&Pool->Lock);
}

BOOLEAN TppUnqueueTask(PTPP_OBJECT Object)
{
    PTP_POOL Pool = Object->Pool;
    PLIST_ENTRY Entry = &Object->Task.Entry;
    if (Object->Priority == TP_CALLBACK_PRIORITY_NORMAL) {
        return KiRemoveQueuedEntry(&Pool->Queue, Entry);
    }
    KiAcquireLock(&Pool->Lock);
    BOOLEAN Queued = Entry->Flink != NULL;
    if (Queued) {
        RemoveEntryList(Entry);
        Entry->Flink = NULL;
    }
    KiReleaseLock(&Pool->Lock);
    return Queued;
}

BOOLEAN TppHasBacklog(PTP_POOL Pool)
{
    return KeReadStateQueue(&Pool->Queue) > 0;
}

/* NULL: it was cancelled. */
static PTPP_OBJECT TppTakeFirst(PTPP_LANE Lane)
{
    if (IsListEmpty(&Lane->ListHead)) {
        return NULL;
    }
    PLIST_ENTRY Entry = RemoveHeadList(&Lane->ListHead);
    Entry->Flink = NULL;
    return CONTAINING_RECORD(Entry, TPP_OBJECT, Task.Entry);
}

PTPP_OBJECT TppTakeFromLane(PTP_POOL Pool, PTPP_PACKET Packet)
{
    PTPP_LANE Lane = CONTAINING_RECORD(Packet, TPP_LANE, Packet);
    PTPP_OBJECT Object = NULL;
    KiAcquireLock(&Pool->Lock);
    if (Lane == &Pool->Lane[TppSlowLane] && TppHasBacklog(Pool)) {
        TppQueueLane(Pool, Lane);
    } else {
        Object = TppTakeFirst(Lane);
        Lane->Queued = FALSE;
        if (!IsListEmpty(&Lane->ListHead)) {
            TppQueueLane(Pool, Lane);
        }
    }
    KiReleaseLock(&Pool->Lock);
    return Object;
}

/* In a forked child: a lane whose packet a lost thread had. */
VOID TppRepairLanes(PTP_POOL Pool)
{
    for (ULONG Number = 0; Number < TppMaximumLane; Number += 1) {
        PTPP_LANE Lane = &Pool->Lane[Number];
        if (Lane->Queued && Lane->Packet.Entry.Flink == NULL) {
            TppQueueLane(Pool, Lane);
        }
    }
}
