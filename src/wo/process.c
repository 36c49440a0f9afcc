/*
 * process.c: the ring of processes, and cleaning up after one that is dead.
 *
 * Everything that a process has is linked to its record: waiters, references, requests, children that it has prepared.
 * Each step of the cleanup removes one of these in its own transaction, and the record last. So the next cleaner that
 * finds a dead process in the ring continues where the last cleaner stopped, and the cost is proportional to what the
 * dead process had.
 */
#include "wop.h"

VOID WopWakeSession(PWO_PROCESS Process)
{
    /* seq_cst: comes after what the session thread has to find; pairs with its read of the word before it checks */
    __atomic_fetch_add(&Process->GuardWord, 1, __ATOMIC_SEQ_CST);
    HalWakeShared(&Process->GuardWord, MAXULONG);
}

/* Ends a transaction and the lock. Done is FALSE: out of memory, and nothing has happened. */
NTSTATUS WopFinish(PWO_VIEW View, BOOLEAN Done)
{
    BOOLEAN Poisoned = WoIsPoisoned(View);
    if (Done && !Poisoned) {
        WopCommit(View);
    } else {
        WopCancel(View);
    }
    WopUnlock(View);
    return Poisoned ? STATUS_FILE_CORRUPT_ERROR : Done ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

/* Inside a transaction. The new one is behind AnyProcess, which it guards. */
VOID WopInsertIntoRing(PWO_VIEW View, WO_INDEX Index)
{
    PWO_WORLD World = View->World;
    PWO_PROCESS Process = WopAt(View, Index);
    PWO_PROCESS Before = World->AnyProcess != 0 ? WopRecord(View, World->AnyProcess, WoProcessRecord) : Process;
    if (Before == Process) {
        WopEditUlong(View, &Process->Next, Index);
        WopEditUlong(View, &Process->Previous, Index);
    } else if (Before != NULL) {
        PWO_PROCESS Behind = WopRecord(View, Before->Next, WoProcessRecord);
        if (Behind == NULL) {
            return;
        }
        WopEditUlong(View, &Process->Previous, WopIndexOf(View, Before));
        WopEditUlong(View, &Process->Next, Before->Next);
        WopEditUlong(View, &Behind->Previous, Index);
        WopEditUlong(View, &Before->Next, Index);
    }
    WopEditUlong(View, &World->AnyProcess, Index);
    WopEditUlong(View, &World->Processes, World->Processes + 1);
}

/* The two behind it have to check their wards. */
VOID WopWakeGuards(PWO_VIEW View, WO_INDEX Process)
{
    PWO_PROCESS Record = WopRecord(View, Process, WoProcessRecord);
    for (ULONG Guards = 0; Guards < 2 && Record != NULL; Guards += 1) {
        Record = Record->Next != Process ? WopRecord(View, Record->Next, WoProcessRecord) : NULL;
        if (Record != NULL) {
            WopWakeSession(Record);
        }
    }
}

NTSTATUS WopEnterRing(PWO_VIEW View)
{
    WopBegin(View);
    WO_INDEX Index = WopAllocate(View, WoProcessRecord, sizeof(WO_PROCESS));
    if (Index == 0) {
        WopCancel(View);
        return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : STATUS_INSUFFICIENT_RESOURCES;
    }
    PWO_PROCESS Process = WopAt(View, Index);
    Process->Key = View->Key;
    Process->ProcessId = (ULONG)(View->Key & ((1ull << HAL_PROCESS_ID_BITS) - 1));
    WopInsertIntoRing(View, Index);
    if (WoIsPoisoned(View)) {
        WopCancel(View);
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopCommit(View);
    View->Self = Index;
    WopWakeGuards(View, Index);
    return STATUS_SUCCESS;
}

VOID WopLeaveRing(PWO_VIEW View, WO_INDEX Index)
{
    PWO_WORLD World = View->World;
    PWO_PROCESS Process = WopRecord(View, Index, WoProcessRecord);
    PWO_PROCESS Before = Process != NULL ? WopRecord(View, Process->Previous, WoProcessRecord) : NULL;
    PWO_PROCESS Behind = Before != NULL ? WopRecord(View, Process->Next, WoProcessRecord) : NULL;
    if (Behind == NULL) {
        return;
    }
    WO_INDEX Next = Process->Next;
    WopWakeGuards(View, Index);
    WopBegin(View);
    WopEditUlong(View, &Before->Next, Next);
    WopEditUlong(View, &Behind->Previous, Process->Previous);
    WopEditUlong(View, &World->AnyProcess, Next != Index ? Next : 0);
    WopEditUlong(View, &World->Processes, World->Processes - 1);
    WopFree(View, Index);
    WopCommit(View);
}

/* Of all others, with the lock held: whether each is exiting, so that this one is the last. */
BOOLEAN WopIsLast(PWO_VIEW View)
{
    PWO_PROCESS Process = WopRecord(View, View->Self, WoProcessRecord);
    for (ULONG Left = WopBound(View, View->World->Processes); Process != NULL && Process->Next != View->Self; Left -= 1) {
        Process = Left != 0 ? WopRecord(View, Process->Next, WoProcessRecord) : NULL;
        if (Process == NULL || (Process->Flags & WO_EXITING) == 0) {
            return FALSE;
        }
    }
    return Process != NULL;
}

/* Cleaning. */

/* FALSE: a dead process, or a prepared one, has nothing left. */
BOOLEAN WopTakeSomething(PWO_VIEW View, PWO_PROCESS Process)
{
    if (Process->FirstWaiter != 0) {
        PWO_WAITER Waiter = WopRecord(View, Process->FirstWaiter, WoWaiterRecord);
        WopEndWaiter(View, Process->FirstWaiter);
        if (Waiter != NULL) {
            WopFreeWaiter(View, Waiter);
        }
        return !WoIsPoisoned(View);
    }
    BOOLEAN Request = Process->FirstRequest != 0 || Process->FirstSent != 0;
    if (!Request && Process->FirstReference == 0 && Process->FirstEntry == 0) {
        return FALSE;
    }
    WopBegin(View);
    if (Request) {
        WopEndRequest(View, Process);
    } else if (Process->FirstReference != 0) {
        PWO_REFERENCE Reference = WopRecord(View, Process->FirstReference, WoReferenceRecord);
        if (Reference != NULL) {
            WopDropReference(View, Reference);
        }
    } else {
        WopFreeEntries(View, Process);
    }
    WopCommit(View);
    return !WoIsPoisoned(View);
}

/* A child that was never started. */
static VOID WopDropPrepared(PWO_VIEW View, PWO_PROCESS Parent)
{
    PWO_PROCESS Prepared = WopRecord(View, Parent->FirstPrepared, WoProcessRecord);
    if (Prepared != NULL && !WopTakeSomething(View, Prepared) && !WoIsPoisoned(View)) {
        WopBegin(View);
        WopUnlinkPrepared(View, WopIndexOf(View, Parent), WopIndexOf(View, Prepared));
        WopFree(View, WopIndexOf(View, Prepared));
        WopCommit(View);
    }
}

BOOLEAN WopCleanStep(PWO_VIEW View, WO_INDEX Index, ULONG64 Key)
{
    PWO_PROCESS Process = WopIsRecord(View, Index, WoProcessRecord) ? WopAt(View, Index) : NULL;
    if (Process == NULL || Process->Key != Key || Key == 0) {
        return FALSE; /* another cleaner was here */
    }
    if (WopTakeSomething(View, Process)) {
        return TRUE;
    }
    if (Process->FirstPrepared != 0 && !WoIsPoisoned(View)) {
        WopDropPrepared(View, Process);
        return TRUE;
    }
    if (!WoIsPoisoned(View)) {
        WopLeaveRing(View, Index);
    }
    return FALSE;
}

/* The lock is free between two steps, so the others wait for one of them at most. */
VOID WopCleanProcess(PWO_VIEW View, WO_INDEX Index, ULONG64 Key)
{
    BOOLEAN More = TRUE;
    while (More && WopLock(View)) {
        More = WopCleanStep(View, Index, Key);
        WopUnlock(View);
    }
}

/* With the lock held: the processes before Self, nearest first. Returns how many. */
static ULONG WopListOthers(PWO_VIEW View, PWO_LISTED Listed, ULONG Room)
{
    PWO_PROCESS Process = WopRecord(View, View->Self, WoProcessRecord);
    ULONG Count = 0;
    while (Process != NULL && Process->Previous != View->Self && Count < Room) {
        WO_INDEX Index = Process->Previous;
        Process = WopRecord(View, Index, WoProcessRecord);
        if (Process != NULL) {
            Listed[Count++] = (WO_LISTED){Index, Process->Flags, Process->Key};
        }
    }
    return Count;
}

ULONG WopListWards(PWO_VIEW View, WO_LISTED Wards[WO_WARDS])
{
    ULONG Count = 0;
    if (WopLock(View)) {
        Count = WopListOthers(View, Wards, WO_WARDS);
        WopUnlock(View);
    }
    return Count;
}

VOID WopCleanDead(PWO_VIEW View)
{
    /* relaxed: a process that attaches meanwhile is alive */
    ULONG Room = WopBound(View, __atomic_load_n(&View->World->Processes, __ATOMIC_RELAXED)) + 8;
    PWO_LISTED Listed = HalAllocate(Room * sizeof(*Listed), sizeof(ULONG64));
    ULONG Count = 0;
    if (Listed == NULL) {
        return; /* the guards do it */
    }
    if (WopLock(View)) {
        Count = WopListOthers(View, Listed, Room);
        WopUnlock(View);
    }
    for (ULONG Number = 0; Number < Count; Number += 1) {
        if (HalIsProcessGone(Listed[Number].Key)) {
            WopCleanProcess(View, Listed[Number].Index, Listed[Number].Key);
        }
    }
    HalFree(Listed);
}
