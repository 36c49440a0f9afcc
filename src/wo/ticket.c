/*
 * ticket.c: children. A record for a process that does not run yet is linked to its parent's record, with the
 * references that the child will have. So nothing that the child inherits is freed before the child starts. The child
 * of a fork takes over the record; a program that is started finds it by its ticket, and takes over the references.
 */
#include "wop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (WoIsPoisoned(View)) {
        WopCancel(View);
        return FALSE;
    }
    WopCommit(View);
    View->Self = Index;
    WopWakeGuards(View, Index);
    return TRUE;
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
        if (!Entered) {
            WopCancel(View);
            return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : STATUS_INSUFFICIENT_RESOURCES;
        }
        PWO_TICKET Ticket = WopAt(View, Prepared->FirstEntry);
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
