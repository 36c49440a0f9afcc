/*
 * devicequeue.c: device queues.
 *
 * 1. Busy: a thread serves the device. An entry that finds the queue busy is linked; one that does not makes it busy
 *    and is not linked, since its inserter serves it.
 * 2. The server removes the next entry when it has finished one. The queue stops being busy when a remove finds no entry,
 *    in the same step: no entry is left in a queue without a server.
 * 3. Entries are in ascending order of their keys if all were inserted by key. A remove by key continues upwards from
 *    the key and starts over at the lowest key, like an elevator.
 * 4. An entry's Inserted changes under the lock of the queue only.
 */
#include "ki.h"

VOID KeInitializeDeviceQueue(PKDEVICE_QUEUE DeviceQueue)
{
    memset(DeviceQueue, 0, sizeof(*DeviceQueue));
    DeviceQueue->Type = DeviceQueueObject;
    DeviceQueue->Size = sizeof(*DeviceQueue);
    InitializeListHead(&DeviceQueue->DeviceListHead);
    KeInitializeSpinLock(&DeviceQueue->Lock);
}

static PKDEVICE_QUEUE_ENTRY KiDeviceEntryOf(PLIST_ENTRY Entry)
{
    return CONTAINING_RECORD(Entry, KDEVICE_QUEUE_ENTRY, DeviceListEntry);
}

/* The first entry with a key of at least SortKey, or the list's head. */
static PLIST_ENTRY KiFindKey(PKDEVICE_QUEUE DeviceQueue, ULONG64 SortKey)
{
    PLIST_ENTRY Entry = DeviceQueue->DeviceListHead.Flink;
    while (Entry != &DeviceQueue->DeviceListHead && KiDeviceEntryOf(Entry)->SortKey < SortKey) {
        Entry = Entry->Flink;
    }
    return Entry;
}

/* NULL: behind all of them. */
static BOOLEAN KiInsertDeviceEntry(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY Entry, const ULONG *SortKey)
{
    KIRQL OldIrql;
    KeAcquireSpinLock(&DeviceQueue->Lock, &OldIrql);
    BOOLEAN Busy = DeviceQueue->Busy;
    if (Busy) {
        Entry->SortKey = SortKey != NULL ? *SortKey : 0;
        PLIST_ENTRY Next = SortKey != NULL ? KiFindKey(DeviceQueue, (ULONG64)*SortKey + 1) : &DeviceQueue->DeviceListHead;
        InsertTailList(Next, &Entry->DeviceListEntry);
    }
    DeviceQueue->Busy = TRUE;
    Entry->Inserted = Busy;
    KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
    return Busy;
}

BOOLEAN KeInsertDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry)
{
    return KiInsertDeviceEntry(DeviceQueue, DeviceQueueEntry, NULL);
}

BOOLEAN KeInsertByKeyDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry, ULONG SortKey)
{
    return KiInsertDeviceEntry(DeviceQueue, DeviceQueueEntry, &SortKey);
}

/* MustBeBusy: FALSE: a queue that is not busy is a valid result, not a bugcheck. */
static PKDEVICE_QUEUE_ENTRY KiRemoveDeviceEntry(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey, BOOLEAN MustBeBusy)
{
    KIRQL OldIrql;
    PKDEVICE_QUEUE_ENTRY Removed = NULL;
    KeAcquireSpinLock(&DeviceQueue->Lock, &OldIrql);
    if (MustBeBusy && !DeviceQueue->Busy) {
        KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
        KeBugCheckEx(DEVICE_QUEUE_NOT_BUSY, (ULONG_PTR)DeviceQueue, 0, 0, 0);
    }
    if (!IsListEmpty(&DeviceQueue->DeviceListHead)) {
        PLIST_ENTRY Entry = KiFindKey(DeviceQueue, SortKey);
        Entry = Entry != &DeviceQueue->DeviceListHead ? Entry : DeviceQueue->DeviceListHead.Flink;
        RemoveEntryList(Entry);
        Removed = KiDeviceEntryOf(Entry);
        Removed->Inserted = FALSE;
    } else {
        DeviceQueue->Busy = FALSE;
    }
    KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
    return Removed;
}

PKDEVICE_QUEUE_ENTRY KeRemoveDeviceQueue(PKDEVICE_QUEUE DeviceQueue)
{
    return KiRemoveDeviceEntry(DeviceQueue, 0, TRUE);
}

PKDEVICE_QUEUE_ENTRY KeRemoveByKeyDeviceQueue(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey)
{
    return KiRemoveDeviceEntry(DeviceQueue, SortKey, TRUE);
}

PKDEVICE_QUEUE_ENTRY KeRemoveByKeyDeviceQueueIfBusy(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey)
{
    return KiRemoveDeviceEntry(DeviceQueue, SortKey, FALSE);
}

BOOLEAN KeRemoveEntryDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry)
{
    KIRQL OldIrql;
    KeAcquireSpinLock(&DeviceQueue->Lock, &OldIrql);
    BOOLEAN Inserted = DeviceQueueEntry->Inserted;
    if (Inserted) {
        RemoveEntryList(&DeviceQueueEntry->DeviceListEntry);
        DeviceQueueEntry->Inserted = FALSE;
    }
    KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
    return Inserted;
}
