/*
 * keyedevent.c: shared keyed events: a thread that waits and one that releases rendezvous at a key, in any processes.
 * The second one grants the wait of the first, and does not wait itself. The oldest of the other side is paired first.
 */
#include "waiter.h"

/* With the lock held: the oldest wait of that kind with that key which can still be claimed, claimed. */
static BOOLEAN WopPair(PWOP_CHAIN Chain, PWO_OBJECT KeyedEvent, ULONG64 Key, UCHAR Kind)
{
    PWO_VIEW View = Chain->View;
    ULONG Block = KeyedEvent->Waiters.First;
    for (ULONG Left = WopMostBlocks(View); Block != 0 && Left != 0; Left -= 1) {
        ULONG Number;
        PWO_WAITER Waiter = WopWaiterOfBlock(View, Block, &Number);
        if (Waiter == NULL) {
            return FALSE;
        }
        if (Waiter->Kind == Kind && Waiter->Key == Key && WopClaim(View, Waiter, STATUS_SUCCESS)) {
            WopUnlinkBlocks(Chain, Waiter);
            return TRUE;
        }
        Block = Waiter->Block[Number].Next;
    }
    return FALSE;
}

NTSTATUS WoBeginKeyedWait(PWO_VIEW View, WO_INDEX Self, WO_INDEX KeyedEvent, ULONG64 Key, BOOLEAN Release)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    PWO_OBJECT Object = WopObject(View, KeyedEvent);
    WOP_CHAIN Chain = {.View = View};
    if (Waiter == NULL || Object == NULL || !WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    BOOLEAN Paired = WopPair(&Chain, Object, Key, Release ? WO_KEYED_WAIT : WO_KEYED_RELEASE);
    if (!Paired) {
        Waiter->Kind = Release ? WO_KEYED_RELEASE : WO_KEYED_WAIT;
        Waiter->Count = 1;
        Waiter->Timers = 0;
        Waiter->Key = Key;
        Waiter->Block[0].Linked = FALSE;
        WopBecomeWaiting(View, Waiter);
        WopLinkBlock(View, Waiter, 0, Object);
    }
    WopCommit(View);
    WopUnlock(View);
    return Paired ? STATUS_SUCCESS : STATUS_PENDING;
}
