/*
 * mailbox.c: requests between processes.
 *
 * A request is a record in two lists: the server's until it is answered, and the sender's until the sender has read the
 * answer. The cleaner of a dead server answers its requests. The cleaner of a dead sender withdraws its requests, except
 * one that the server is processing, which the server frees. The sender sleeps on State,
 * and also polls: the wake may have died with its process.
 *
 * The sender of an import has a reference to the object, which ends with the sender, but not before its requests. So the
 * server takes its own reference in the transaction in which it takes the request.
 */
#include "wop.h"

#include "../ke/park.h"

#define WO_NAP 500000ull /* 50 ms */

enum { WoPosted, WoTaken, WoAnswered };

typedef struct _WO_REQUEST_RECORD {
    WO_RECORD Record;
    WO_INDEX Sender, Server;   /* 0: it is dead */
    WO_INDEX Next, Previous;   /* in the server's list */
    WO_INDEX NextSent, PreviousSent;
    volatile ULONG State;
    ULONG Reserved;
    WO_REQUEST Request;
} WO_REQUEST_RECORD, *PWO_REQUEST_RECORD;

static const WO_SERVER *WopServer;

VOID WoSetServer(const WO_SERVER *Server)
{
    /* release: pairs with the acquire in WopServeRequests */
    __atomic_store_n(&WopServer, Server, __ATOMIC_RELEASE);
}

static PWO_REQUEST_RECORD WopRequestAt(PWO_VIEW View, WO_INDEX Index)
{
    PWO_REQUEST_RECORD Request = WopRecord(View, Index, WoRequestRecord);
    if (Request != NULL && (SIZE_T)WO_UNIT << Request->Record.Class < sizeof(*Request)) {
        WopPoison(View, "a request is too short");
        return NULL;
    }
    return Request;
}

/* Lists, inside a transaction. */

static VOID WopPost(PWO_VIEW View, WO_INDEX Index, PWO_PROCESS Sender, PWO_PROCESS Server)
{
    PWO_REQUEST_RECORD Request = WopAt(View, Index);
    PWO_REQUEST_RECORD Last = Server->LastRequest != 0 ? WopRequestAt(View, Server->LastRequest) : NULL;
    PWO_REQUEST_RECORD Sent = Sender->FirstSent != 0 ? WopRequestAt(View, Sender->FirstSent) : NULL;
    Request->Sender = WopIndexOf(View, Sender);
    Request->Server = WopIndexOf(View, Server);
    Request->Previous = Server->LastRequest;
    Request->NextSent = Sender->FirstSent;
    WopEditUlong(View, Last != NULL ? &Last->Next : &Server->FirstRequest, Index);
    WopEditUlong(View, &Server->LastRequest, Index);
    if (Sent != NULL) {
        WopEditUlong(View, &Sent->PreviousSent, Index);
    }
    WopEditUlong(View, &Sender->FirstSent, Index);
}

static VOID WopTakeFromServer(PWO_VIEW View, PWO_REQUEST_RECORD Request)
{
    PWO_PROCESS Server = WopRecord(View, Request->Server, WoProcessRecord);
    PWO_REQUEST_RECORD Before = Request->Previous != 0 ? WopRequestAt(View, Request->Previous) : NULL;
    PWO_REQUEST_RECORD Behind = Request->Next != 0 ? WopRequestAt(View, Request->Next) : NULL;
    if (Server != NULL) {
        WopEditUlong(View, Before != NULL ? &Before->Next : &Server->FirstRequest, Request->Next);
        WopEditUlong(View, Behind != NULL ? &Behind->Previous : &Server->LastRequest, Request->Previous);
        WopEditUlong(View, &Request->Server, 0);
    }
}

static VOID WopTakeFromSender(PWO_VIEW View, PWO_REQUEST_RECORD Request)
{
    PWO_PROCESS Sender = WopRecord(View, Request->Sender, WoProcessRecord);
    PWO_REQUEST_RECORD Before = Request->PreviousSent != 0 ? WopRequestAt(View, Request->PreviousSent) : NULL;
    PWO_REQUEST_RECORD Behind = Request->NextSent != 0 ? WopRequestAt(View, Request->NextSent) : NULL;
    if (Sender != NULL) {
        WopEditUlong(View, Before != NULL ? &Before->NextSent : &Sender->FirstSent, Request->NextSent);
        if (Behind != NULL) {
            WopEditUlong(View, &Behind->PreviousSent, Request->PreviousSent);
        }
        WopEditUlong(View, &Request->Sender, 0);
    }
}

/* Inside a transaction: the server is done with it. The wake comes before the commit: the sender then waits for the lock. */
static VOID WopAnswer(PWO_VIEW View, PWO_REQUEST_RECORD Request)
{
    WopTakeFromServer(View, Request);
    if (Request->Sender == 0) {
        WopFree(View, WopIndexOf(View, Request));
        return;
    }
    WopEditUlong(View, &Request->State, WoAnswered);
    HalWakeShared(&Request->State, MAXULONG);
}

VOID WopEndRequest(PWO_VIEW View, PWO_PROCESS Process)
{
    BOOLEAN Received = Process->FirstRequest != 0;
    PWO_REQUEST_RECORD Request = WopRequestAt(View, Received ? Process->FirstRequest : Process->FirstSent);
    if (Request == NULL) {
        return;
    }
    if (Received) {
        Request->Request.Status = STATUS_PROCESS_IS_TERMINATING;
        WopAnswer(View, Request);
        return;
    }
    WopTakeFromSender(View, Request);
    if (Request->State == WoPosted) {
        WopTakeFromServer(View, Request);
    }
    if (Request->State != WoTaken) {
        WopFree(View, WopIndexOf(View, Request));
    }
}

/* The sender. */

/* With the lock held: a process that lives and is not leaving. 0: there is none. */
static WO_INDEX WopFindProcess(PWO_VIEW View, ULONG ProcessId)
{
    WO_INDEX Index = View->Self;
    for (ULONG Left = WopBound(View, View->World->Processes); Left != 0; Left -= 1) {
        PWO_PROCESS Process = WopRecord(View, Index, WoProcessRecord);
        if (Process == NULL) {
            return 0;
        }
        if (Process->ProcessId == ProcessId && (Process->Flags & (WO_EXITING | WO_STARTED)) == 0 &&
            HalIsProcessAlive(Process->Key)) {
            return Index;
        }
        Index = Process->Next;
    }
    return 0;
}

static NTSTATUS WopSend(PWO_VIEW View, ULONG ProcessId, const WO_REQUEST *Request, WO_INDEX *Sent)
{
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
    WO_INDEX Process = WopFindProcess(View, ProcessId);
    if (Process == 0 || Self == NULL) {
        WopUnlock(View);
        return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : STATUS_INVALID_CID;
    }
    PWO_PROCESS Server = WopAt(View, Process);
    WopBegin(View);
    *Sent = WopAllocate(View, WoRequestRecord, sizeof(WO_REQUEST_RECORD));
    if (*Sent != 0) {
        ((PWO_REQUEST_RECORD)WopAt(View, *Sent))->Request = *Request;
        WopPost(View, *Sent, Self, Server);
    }
    NTSTATUS Status = WopFinish(View, *Sent != 0);
    if (NT_SUCCESS(Status)) {
        WopWakeSession(Server); /* without the lock: if the record has been reused, the wake is spurious */
    }
    return Status;
}

/* With the lock held. A request that its server cannot find any more would never be answered. */
static VOID WopCheckPosted(PWO_VIEW View, WO_INDEX Sent, const WO_REQUEST_RECORD *Request)
{
    PWO_PROCESS Server = WopRecord(View, Request->Server, WoProcessRecord);
    WO_INDEX Index = Server != NULL ? Server->FirstRequest : 0;
    for (ULONG Left = WopBound(View, MAXULONG); Index != Sent && Index != 0 && Left != 0; Left -= 1) {
        PWO_REQUEST_RECORD Other = WopRequestAt(View, Index);
        Index = Other != NULL ? Other->Next : 0;
    }
    if (Index != Sent) {
        WopPoison(View, "a request is lost");
    }
}

/* FALSE: it is not answered yet. */
static BOOLEAN WopTryReceive(PWO_VIEW View, WO_INDEX Sent, PWO_REQUEST Request, NTSTATUS *Status)
{
    *Status = STATUS_FILE_CORRUPT_ERROR;
    if (!WopLock(View)) {
        return TRUE;
    }
    PWO_REQUEST_RECORD Record = WopRequestAt(View, Sent);
    if (Record != NULL && Record->State != WoAnswered) {
        WopCheckPosted(View, Sent, Record);
        WopUnlock(View);
        return FALSE;
    }
    WopBegin(View);
    if (Record != NULL) {
        *Request = Record->Request;
        WopTakeFromSender(View, Record);
        WopFree(View, Sent);
    }
    *Status = WopFinish(View, TRUE);
    return TRUE;
}

NTSTATUS WoRequest(PWO_VIEW View, ULONG ProcessId, PWO_REQUEST Request)
{
    PKTHREAD Thread = KiCurrentThread();
    WO_INDEX Sent;
    KiEnterService(Thread); /* the answer may be a handle: the thread must not end before it has read it */
    NTSTATUS Status = WopSend(View, ProcessId, Request, &Sent);
    if (NT_SUCCESS(Status)) {
        volatile ULONG *State = &((PWO_REQUEST_RECORD)WopAt(View, Sent))->State;
        while (!WopTryReceive(View, Sent, Request, &Status)) {
            HAL_DEADLINE Deadline = {HalInterruptTime, HalDispatch.QueryInterruptTime() + WO_NAP};
            /* acquire: pairs with the journal's release */
            ULONG Seen = __atomic_load_n(State, __ATOMIC_ACQUIRE);
            if (Seen != WoAnswered) {
                KiSleepShared(State, Seen, &Deadline);
            }
        }
        Status = NT_SUCCESS(Status) ? Request->Status : Status;
    }
    KiExitService(Thread);
    return Status;
}

/* The server. */

/* 0: there is none. */
static WO_INDEX WopTakeRequest(PWO_VIEW View, PWO_REQUEST Request)
{
    WO_INDEX Index = 0;
    if (!WopLock(View)) {
        return 0;
    }
    PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
    if (Self != NULL && Self->FirstRequest != 0) {
        PWO_REQUEST_RECORD Record = WopRequestAt(View, Self->FirstRequest);
        if (Record != NULL) {
            Index = Self->FirstRequest;
            *Request = Record->Request;
            WopBegin(View);
            if (Request->Kind == WoImportHandle && Request->Object != 0 &&
                WopAddReference(View, View->Self, Request->Object, 1) == 0) {
                WopCancel(View);
                WopBegin(View);
                Request->Object = 0;
            }
            WopEditUlong(View, &Record->State, WoTaken);
            WopCommit(View);
        }
    }
    WopUnlock(View);
    return Index;
}

static VOID WopFinishRequest(PWO_VIEW View, WO_INDEX Index, PWO_REQUEST Request)
{
    if (!WopLock(View)) {
        return;
    }
    PWO_REQUEST_RECORD Record = WopRequestAt(View, Index);
    if (Record == NULL) {
        WopUnlock(View);
        return;
    }
    WopBegin(View);
    if (Request->Kind == WoExportHandle && NT_SUCCESS(Request->Status) && Request->Object != 0 && Record->Sender != 0 &&
        WopAddReference(View, Record->Sender, Request->Object, 1) == 0) {
        WopCancel(View);
        WopBegin(View);
        Request->Status = STATUS_INSUFFICIENT_RESOURCES;
    }
    Record->Request = *Request;
    WopAnswer(View, Record);
    WopFinish(View, TRUE);
}

VOID WopServeRequests(PWO_VIEW View)
{
    WO_REQUEST Request;
    WO_INDEX Index;
    while ((Index = WopTakeRequest(View, &Request)) != 0) {
        const WO_SERVER *Server = __atomic_load_n(&WopServer, __ATOMIC_ACQUIRE);
        WO_REQUEST Close = {.Kind = WoCloseHandle, .Handle = Request.Handle};
        BOOLEAN CloseSource = Request.Kind == WoExportHandle && (Request.Options & DUPLICATE_CLOSE_SOURCE) != 0;
        Request.Status = STATUS_NOT_SUPPORTED;
        PVOID Kept = Server != NULL ? Server->Serve(View, &Request) : NULL;
        WopFinishRequest(View, Index, &Request);
        if (Kept != NULL) {
            Server->Release(Kept);
        }
        if (Server != NULL && CloseSource) {
            Server->Serve(View, &Close);
        }
    }
}
