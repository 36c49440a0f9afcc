/*
 * process.c: the ring of processes, cleaning up after a dead process, and preparing children.
 *
 * Everything that a process has is linked to its record: waiters, references, requests, children that it has prepared.
 * Each step of the cleanup removes one of these in its own transaction, and the record last. So the next cleaner that
 * finds a dead process in the ring continues where the last cleaner stopped, and the cost is proportional to what the
 * dead process had.
 */
#include "wop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

VOID WopWakeSession(PWO_PROCESS Process)
{
    /* seq_cst: comes after the stores that the session thread must see; pairs with its read of the word before it
       checks */
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
static VOID WopInsertIntoRing(PWO_VIEW View, WO_INDEX Index)
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

/* The two processes after it in the ring must check their wards. */
static VOID WopWakeGuards(PWO_VIEW View, WO_INDEX Process)
{
    PWO_PROCESS Record = WopRecord(View, Process, WoProcessRecord);
    for (ULONG Guards = 0; Guards < 2 && Record != NULL; Guards += 1) {
        Record = Record->Next != Process ? WopRecord(View, Record->Next, WoProcessRecord) : NULL;
        if (Record != NULL) {
            WopWakeSession(Record);
        }
    }
}

/* Commits the record that this process has entered the ring with. FALSE: the world is damaged. */
static BOOLEAN WopCommitSelf(PWO_VIEW View, WO_INDEX Index)
{
    if (WoIsPoisoned(View)) {
        WopCancel(View);
        return FALSE;
    }
    WopCommit(View);
    View->Self = Index;
    WopWakeGuards(View, Index);
    return TRUE;
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
    return WopCommitSelf(View, Index) ? STATUS_SUCCESS : STATUS_FILE_CORRUPT_ERROR;
}

/* Removes an empty record from its ring, and frees it. */
static VOID WopLeaveRing(PWO_VIEW View, WO_INDEX Index)
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

/* With the lock held: whether all other processes are exiting, so that this one is the last. */
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
static BOOLEAN WopTakeSomething(PWO_VIEW View, PWO_PROCESS Process)
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

/* Removes one thing that a dead process had. FALSE: nothing was left, and its record is freed. */
static BOOLEAN WopCleanStep(PWO_VIEW View, WO_INDEX Index, ULONG64 Key)
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

/*
 * Children. A record for a process that does not run yet is linked to its parent's record, with the
 * references that the child will have. So nothing that the child inherits is freed before the child starts. The child
 * of a fork takes over the record; a program that is started finds it by its ticket, and takes over the references.
 */

#define WO_ENTRIES 126
typedef struct _WO_TICKET {
    WO_RECORD Record;
    WO_INDEX Next;
    ULONG Count;
    WO_INHERITED Entry[WO_ENTRIES];
} WO_TICKET, *PWO_TICKET;

/* Inside a transaction. 0: no memory. */
static WO_INDEX WopNewPrepared(PWO_VIEW View, PWO_PROCESS Parent)
{
    WO_INDEX Index = WopAllocate(View, WoProcessRecord, sizeof(WO_PROCESS));
    if (Index == 0) {
        return 0;
    }
    PWO_PROCESS Prepared = WopAt(View, Index);
    WopEdit(View, &View->World->LastNonce, View->World->LastNonce + 1);
    Prepared->Nonce = View->World->LastNonce;
    Prepared->Next = Parent->FirstPrepared;
    Prepared->Previous = WopIndexOf(View, Parent);
    WopEditUlong(View, &Parent->FirstPrepared, Index);
    return Index;
}

/* Next and Previous of a prepared one: the next child, and the parent. */
VOID WopUnlinkPrepared(PWO_VIEW View, WO_INDEX Parent, WO_INDEX Prepared)
{
    PWO_PROCESS Process = WopRecord(View, Parent, WoProcessRecord);
    PULONG Link = Process != NULL ? &Process->FirstPrepared : NULL;
    for (ULONG Left = WopBound(View, MAXULONG); Link != NULL && *Link != 0 && *Link != Prepared && Left != 0; Left -= 1) {
        PWO_PROCESS Child = WopRecord(View, *Link, WoProcessRecord);
        Link = Child != NULL ? &Child->Next : NULL;
    }
    if (Link != NULL && *Link == Prepared) {
        WopEditUlong(View, Link, ((PWO_PROCESS)WopAt(View, Prepared))->Next);
    } else {
        WopPoison(View, "a prepared child is not in the list of its parent");
    }
}

VOID WopFreeEntries(PWO_VIEW View, PWO_PROCESS Process)
{
    PWO_TICKET Ticket = WopRecord(View, Process->FirstEntry, WoTicketRecord);
    if (Ticket != NULL) {
        WO_INDEX Index = Process->FirstEntry;
        WopEditUlong(View, &Process->FirstEntry, Ticket->Next);
        WopFree(View, Index);
    }
}

/* With the lock held: the prepared record with this number, or NULL. */
static PWO_PROCESS WopFindPrepared(PWO_VIEW View, WO_INDEX Index, ULONG64 Nonce)
{
    PWO_PROCESS Process = WopIsRecord(View, Index, WoProcessRecord) ? WopAt(View, Index) : NULL;
    return Process != NULL && Nonce != 0 && Process->Nonce == Nonce ? Process : NULL;
}

/* With the lock held: of one that has no key. It takes as many transactions as it has references. */
static VOID WopDropPreparedChild(PWO_VIEW View, PWO_PROCESS Prepared)
{
    WO_INDEX Index = WopIndexOf(View, Prepared);
    while (WopTakeSomething(View, Prepared)) {
    }
    if (!WoIsPoisoned(View)) {
        WopBegin(View);
        WopUnlinkPrepared(View, Prepared->Previous, Index);
        WopFree(View, Index);
        WopCommit(View);
    }
}

VOID WopDropChild(PWO_VIEW View, WO_INDEX Index, ULONG64 Nonce)
{
    if (!WopLock(View)) {
        return;
    }
    PWO_PROCESS Prepared = WopFindPrepared(View, Index, Nonce);
    if (Prepared != NULL && Prepared->Key == 0) {
        WopDropPreparedChild(View, Prepared);
    }
    WopUnlock(View);
}

/* Inside a transaction: into the ring. */
static VOID WopStartPrepared(PWO_VIEW View, PWO_PROCESS Prepared, ULONG64 Key, ULONG Flags)
{
    WO_INDEX Index = WopIndexOf(View, Prepared);
    WopUnlinkPrepared(View, Prepared->Previous, Index);
    WopEdit(View, &Prepared->Key, Key);
    WopEditUlong(View, &Prepared->ProcessId, (ULONG)(Key & ((1ull << HAL_PROCESS_ID_BITS) - 1)));
    WopEditUlong(View, &Prepared->Flags, Flags);
    WopInsertIntoRing(View, Index);
}

BOOLEAN WopClaimPrepared(PWO_VIEW View, WO_INDEX Index, ULONG64 Nonce, ULONG Flags)
{
    PWO_PROCESS Prepared = WopFindPrepared(View, Index, Nonce);
    if (Prepared == NULL || Prepared->Key != 0) {
        return FALSE;
    }
    WopBegin(View);
    WopStartPrepared(View, Prepared, View->Key, Flags);
    return WopCommitSelf(View, Index);
}

/* With the lock held: a record with the references and handles of this process. 0: no memory. */
WO_INDEX WopPrepareCopy(PWO_VIEW View, ULONG64 *Nonce)
{
    PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
    if (Self == NULL) {
        return 0;
    }
    WopBegin(View);
    WO_INDEX Index = WopNewPrepared(View, Self);
    if (Index == 0) {
        WopCancel(View);
        return 0;
    }
    WopCommit(View);
    PWO_PROCESS Prepared = WopAt(View, Index);
    *Nonce = Prepared->Nonce;
    WO_INDEX Next = Self->FirstReference;
    for (ULONG Left = WopBound(View, MAXULONG); Next != 0 && Left != 0; Left -= 1) {
        PWO_REFERENCE Reference = WopRecord(View, Next, WoReferenceRecord);
        WopBegin(View);
        if (Reference == NULL || WopAddReference(View, Index, Reference->Object, Reference->Handles) == 0) {
            WopCancel(View);
            WopDropPreparedChild(View, Prepared);
            return 0;
        }
        WopCommit(View);
        Next = Reference->NextOfProcess;
    }
    return Index;
}

/* Tickets. */

/* Each entry has a handle of its own in the prepared record; it is a transaction, and so is each piece of the ticket. */
static NTSTATUS WopEnterTicket(PWO_VIEW View, WO_INDEX Index, const WO_INHERITED Handles[], ULONG Count)
{
    PWO_PROCESS Prepared = WopAt(View, Index);
    for (ULONG Number = 0; Number < Count; Number += 1) {
        WopBegin(View);
        BOOLEAN Entered = WopAddReference(View, Index, Handles[Number].Object, 1) != 0;
        if (Entered && Number % WO_ENTRIES == 0) {
            WO_INDEX Piece = WopAllocate(View, WoTicketRecord, sizeof(WO_TICKET));
            Entered = Piece != 0;
            if (Entered) {
                ((PWO_TICKET)WopAt(View, Piece))->Next = Prepared->FirstEntry;
                WopEditUlong(View, &Prepared->FirstEntry, Piece);
            }
        }
        PWO_TICKET Ticket = Entered ? WopRecord(View, Prepared->FirstEntry, WoTicketRecord) : NULL;
        if (Ticket == NULL) {
            WopCancel(View);
            return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : STATUS_INSUFFICIENT_RESOURCES;
        }
        Ticket->Entry[Number % WO_ENTRIES] = Handles[Number];
        WopEditUlong(View, &Ticket->Count, Number % WO_ENTRIES + 1);
        WopCommit(View);
    }
    return STATUS_SUCCESS;
}

NTSTATUS WoPrepareChild(PWO_VIEW View, const WO_INHERITED Handles[], ULONG Count, CHAR Ticket[WO_TICKET_LENGTH])
{
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
    WopBegin(View);
    WO_INDEX Index = Self != NULL ? WopNewPrepared(View, Self) : 0;
    NTSTATUS Status = Index != 0 ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
    if (Index == 0) {
        WopCancel(View);
    } else {
        PWO_PROCESS Prepared = WopAt(View, Index);
        WopCommit(View);
        snprintf(Ticket, WO_TICKET_LENGTH, "%x-%llx-%llx", Index, (unsigned long long)Prepared->Nonce,
                 (unsigned long long)View->File.File);
        Status = WopEnterTicket(View, Index, Handles, Count);
        if (!NT_SUCCESS(Status)) {
            WopDropPreparedChild(View, Prepared);
        }
    }
    WopUnlock(View);
    return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : Status;
}

/* With the lock held; NULL: it is not one, or of another world, or used. */
static PWO_PROCESS WopFindTicket(PWO_VIEW View, PCSTR Ticket)
{
    unsigned Index;
    unsigned long long Nonce, File;
    BOOLEAN Parsed = sscanf(Ticket, "%x-%llx-%llx", &Index, &Nonce, &File) == 3 && File == View->File.File;
    return Parsed ? WopFindPrepared(View, Index, Nonce) : NULL;
}

VOID WoStartChild(PWO_VIEW View, PCSTR Ticket, ULONG ProcessId)
{
    ULONG64 Key = HalKeyOfAnyProgram(HalQueryProcessKey(ProcessId));
    if (!WopLock(View)) {
        return;
    }
    PWO_PROCESS Prepared = WopFindTicket(View, Ticket);
    if (Prepared != NULL && Prepared->Key == 0) {
        if (Key == 0) { /* it is already dead */
            WopDropPreparedChild(View, Prepared);
        } else {
            WopBegin(View);
            WopStartPrepared(View, Prepared, Key, WO_STARTED);
            WopCommit(View);
            WopWakeGuards(View, WopIndexOf(View, Prepared));
        }
    }
    WopUnlock(View);
}

VOID WoAbandonChild(PWO_VIEW View, PCSTR Ticket)
{
    if (!WopLock(View)) {
        return;
    }
    PWO_PROCESS Prepared = WopFindTicket(View, Ticket);
    if (Prepared != NULL && Prepared->Key == 0) {
        WopDropPreparedChild(View, Prepared);
    }
    WopUnlock(View);
}

/* With the lock held: one reference of the prepared record becomes one of this process. FALSE: no memory. */
static BOOLEAN WopMoveReference(PWO_VIEW View, PWO_PROCESS From)
{
    PWO_REFERENCE Reference = WopRecord(View, From->FirstReference, WoReferenceRecord);
    if (Reference == NULL) {
        return FALSE;
    }
    WopBegin(View);
    if (WopAddReference(View, View->Self, Reference->Object, Reference->Handles) == 0) {
        WopCancel(View);
        return FALSE;
    }
    WopDropReference(View, Reference);
    WopCommit(View);
    return !WoIsPoisoned(View);
}

static VOID WopReadTicket(PWO_VIEW View, PWO_PROCESS Prepared, PWO_INHERITED Handles, PULONG Count)
{
    ULONG Room = Handles != NULL ? *Count : 0;
    WO_INDEX Next = Prepared->FirstEntry;
    *Count = 0;
    for (ULONG Left = WopBound(View, MAXULONG); Next != 0 && Left != 0; Left -= 1) {
        PWO_TICKET Ticket = WopRecord(View, Next, WoTicketRecord);
        if (Ticket == NULL || Ticket->Count > WO_ENTRIES) {
            WopPoison(View, "a ticket is wrong");
            return;
        }
        for (ULONG Number = 0; Number < Ticket->Count; Number += 1, *Count += 1) {
            if (*Count < Room) {
                Handles[*Count] = Ticket->Entry[Number];
            }
        }
        Next = Ticket->Next;
    }
}

/* The ticket's record is freed when nothing is left in it. If the child is killed before, its guards find both. */
NTSTATUS WoAdoptHandles(PWO_VIEW View, PCSTR Ticket, PWO_INHERITED Handles, PULONG Count)
{
    ULONG Room = *Count;
    NTSTATUS Status = STATUS_SUCCESS;
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    PWO_PROCESS Prepared = WopFindTicket(View, Ticket);
    if (Prepared == NULL) {
        Status = STATUS_NOT_FOUND;
    } else {
        WopReadTicket(View, Prepared, Handles, Count);
        Status = Handles == NULL || *Count > Room ? STATUS_BUFFER_TOO_SMALL : STATUS_SUCCESS;
        while (NT_SUCCESS(Status) && Prepared->FirstReference != 0) {
            Status = WopMoveReference(View, Prepared) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
        }
        if (NT_SUCCESS(Status) && Prepared->Key == 0) {
            WopDropPreparedChild(View, Prepared);
        } else if (NT_SUCCESS(Status)) {
            while (WopCleanStep(View, WopIndexOf(View, Prepared), Prepared->Key)) {
            }
        }
    }
    WopUnlock(View);
    return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : Status;
}
