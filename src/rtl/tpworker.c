/* tpworker.c: the threads of a pool. Theory in tpp.h. */
#include "tpp.h"

LONGLONG TppPatience = -30 * 10000000LL;

/* seq_cst, for every change of the word: pairs with the loads in tptick.c, see there */
static BOOLEAN TppChangeThreads(PTP_POOL Pool, ULONG64 *Word, ULONG64 New)
{
    return __atomic_compare_exchange_n(&Pool->Threads, Word, New, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static ULONG TppMaximum(PTP_POOL Pool)
{
    return __atomic_load_n(&Pool->Maximum, __ATOMIC_RELAXED);
}

/* Beginning and end. */

static VOID TppEnlist(PTPP_WORKER Worker)
{
    PTP_POOL Pool = Worker->Pool;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    InsertTailList(&Pool->WorkerListHead, &Worker->Entry);
    __atomic_fetch_add(&Pool->Lifetime, 1, __ATOMIC_RELAXED); /* relaxed: the caller's reference keeps it above 0 */
    KiExitLocked(&Pool->Lock, Thread);
}

/* The worker is no longer counted. */
static VOID TppDischarge(PTPP_WORKER Worker)
{
    PTP_POOL Pool = Worker->Pool;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    RemoveEntryList(&Worker->Entry);
    KiExitLocked(&Pool->Lock, Thread);
    HalFree(Worker);
    TppReleaseLifetime(Pool);
}

static BOOLEAN TppIsExcess(PTP_POOL Pool, ULONG64 Word)
{
    return TPP_WORKERS(Word) > TppMaximum(Pool);
}

static BOOLEAN TppIsUnneeded(PTP_POOL Pool, ULONG64 Word)
{
    return TPP_WORKERS(Word) > __atomic_load_n(&Pool->Minimum, __ATOMIC_RELAXED) &&
           TPP_WORKERS(Word) - TPP_BUSY(Word) > 1;
}

/* By a worker that is not busy. */
static BOOLEAN TppMayLeave(PTPP_WORKER Worker, BOOLEAN WasIdleForLong)
{
    PTP_POOL Pool = Worker->Pool;
    ULONG64 Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
    while (TppIsExcess(Pool, Word) || (WasIdleForLong && !Worker->Persistent && TppIsUnneeded(Pool, Word))) {
        if (TppChangeThreads(Pool, &Word, Word - TPP_WORKER_ONE)) {
            return TRUE;
        }
    }
    return FALSE;
}

static VOID TppBeginPacket(PTPP_WORKER Worker)
{
    PTP_POOL Pool = Worker->Pool;
    Worker->Busy = TRUE;
    ULONG64 Word = __atomic_add_fetch(&Pool->Threads, TPP_BUSY_ONE + TPP_BEGUN_ONE, __ATOMIC_SEQ_CST);
    if (TPP_WORKERS(Word) == TPP_BUSY(Word)) {
        TppEnsureThread(Pool);
    }
    TppTickWhileBusy(Pool);
}

static VOID TppEndPacket(PTPP_WORKER Worker)
{
    Worker->Busy = FALSE;
    __atomic_fetch_sub(&Worker->Pool->Threads, TPP_BUSY_ONE, __ATOMIC_SEQ_CST);
}

/* The callback of a packet, which is now running; or NULL. */
static PTPP_OBJECT TppOpenPacket(PTP_POOL Pool, PTPP_PACKET Packet, PULONG Result)
{
    PTPP_OBJECT Object = CONTAINING_RECORD(Packet, TPP_OBJECT, Task);
    if (Packet->Kind == TppSourcePacket) {
        PTPP_SOURCE Source = CONTAINING_RECORD(Packet, TPP_SOURCE, Notification.QueueListEntry);
        Object = Source->Object;
        return TppArrive(Source, Result) ? Object : NULL;
    }
    if (Packet->Kind == TppLanePacket) {
        PKTHREAD Thread = KiCurrentThread();
        KiEnterDispatcher(Thread);
        Object = TppTakeFromLane(Pool, Packet);
        KiExitDispatcher(Thread);
    }
    return Object != NULL && TppTake(Object, Result) ? Object : NULL;
}

/* A callback that is counted as running has not begun, and its thread is to end: it is another thread's. */
static VOID TppPutBack(PTPP_OBJECT Object, ULONG Result)
{
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    Object->PendingTimeouts += Result == STATUS_TIMEOUT;
    TppAddPending(Object);
    KiExitLocked(&Object->Lock, Thread);
    TppFinish(Object);
}

static VOID TppServePacket(PTPP_WORKER Worker, PTPP_PACKET Packet)
{
    ULONG Result;
    TppBeginPacket(Worker);
    PTPP_OBJECT Object = TppOpenPacket(Worker->Pool, Packet, &Result);
    if (Object != NULL && KiIsExiting(KiCurrentThread())) {
        TppPutBack(Object, Result);
    } else if (Object != NULL) {
        TppRunCallback(Worker, Object, Result);
    }
    TppEndPacket(Worker);
}

/* FALSE: the worker has been taken out of the count. */
static BOOLEAN TppServe(PTPP_WORKER Worker)
{
    PTP_POOL Pool = Worker->Pool;
    /* relaxed: a setting */
    LARGE_INTEGER Patience = {.QuadPart = __atomic_load_n(&TppPatience, __ATOMIC_RELAXED)};
    PLIST_ENTRY Entry = KeRemoveQueue(&Pool->Queue, UserMode, &Patience);
    if ((LONG_PTR)Entry == STATUS_USER_APC) {
        return TRUE; /* somebody ends the thread */
    }
    if ((LONG_PTR)Entry == STATUS_TIMEOUT) {
        return !TppMayLeave(Worker, TRUE);
    }
    if ((LONG_PTR)Entry == STATUS_ABANDONED) {
        __atomic_fetch_sub(&Pool->Threads, TPP_WORKER_ONE, __ATOMIC_SEQ_CST);
        return FALSE;
    }
    TppServePacket(Worker, CONTAINING_RECORD(Entry, TPP_PACKET, Entry));
    return !TppMayLeave(Worker, FALSE);
}

/*
 * But for the program's callbacks all of it is a service: a thread that somebody ends goes between two packets, or in a
 * callback, as TppThreadExit finds it. It has no packet in its hands, and is counted in no other way than it tells.
 */
static VOID TppWorkerThread(PVOID Context)
{
    PTPP_WORKER Worker = Context;
    PKTHREAD Thread = KiCurrentThread();
    Thread->Foreign = FALSE;
    ((PETHREAD)Thread)->UserThread = TRUE;
    KiEnterService(Thread);
    RtlpCurrentTeb()->ThreadPoolData = Worker;
    /* release: who finds the thread here finds the line above done; pairs with TppHasSurvived */
    __atomic_store_n(&Worker->Thread, Thread, __ATOMIC_RELEASE);
    while (TppServe(Worker)) {
        KiExitService(Thread);
        KiEnterService(Thread);
    }
    RtlpCurrentTeb()->ThreadPoolData = NULL;
    TppDischarge(Worker);
    KiExitService(Thread);
}

static VOID TppLoseWorker(PTPP_WORKER Worker)
{
    PTP_POOL Pool = Worker->Pool;
    TppEndExecution(&Worker->Instance);
    TpDisassociateCallback(&Worker->Instance);
    __atomic_fetch_sub(&Pool->Threads, TPP_WORKER_ONE + (Worker->Busy ? TPP_BUSY_ONE : 0), __ATOMIC_SEQ_CST);
    TppEnsureThread(Pool);
    TppDischarge(Worker);
}

/* A thread of a pool that ends inside a callback. Nothing of the callback's is done any more. */
static VOID TppThreadExit(PETHREAD Thread, BOOLEAN ByOther)
{
    PTPP_WORKER Worker = RtlpTeb(&Thread->Tcb)->ThreadPoolData;
    PKTHREAD Current = KiCurrentThread();
    UNREFERENCED_PARAMETER(ByOther);
    if (Worker != NULL) {
        KiEnterService(Current);
        RtlpTeb(&Thread->Tcb)->ThreadPoolData = NULL;
        TppLoseWorker(Worker);
        KiExitService(Current);
    }
}

static VOID TppInitializeThreadExit(VOID)
{
    PspRegisterThreadExit(TppThreadExit);
}
KI_INITIALIZER(KiInitializeRuntime, TppInitializeThreadExit);

/* How many there are. */

/* Counted already. */
static NTSTATUS TppStartWorker(PTP_POOL Pool)
{
    PTPP_WORKER Worker = HalAllocate(sizeof(*Worker), __alignof__(*Worker));
    NTSTATUS Status = STATUS_NO_MEMORY;
    if (Worker != NULL) {
        Worker->Pool = Pool;
        Worker->Instance.Worker = Worker;
        TppEnlist(Worker);
        Status = HalCreateThread(TppWorkerThread, Worker, Pool->Stack.StackReserve, "interlock-pool");
        if (NT_SUCCESS(Status)) {
            return Status;
        }
        TppDischarge(Worker);
    }
    __atomic_fetch_sub(&Pool->Threads, TPP_WORKER_ONE, __ATOMIC_SEQ_CST);
    return Status;
}

static VOID TppEnsureThreadInService(PTP_POOL Pool)
{
    /* relaxed: if another thread has just become busy, it sees to this itself */
    ULONG64 Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
    while (TPP_WORKERS(Word) == TPP_BUSY(Word) && TPP_WORKERS(Word) < TppMaximum(Pool)) {
        if (TppChangeThreads(Pool, &Word, Word + TPP_WORKER_ONE)) {
            if (!NT_SUCCESS(TppStartWorker(Pool))) {
                TppStartTicking(Pool);
            }
            return;
        }
    }
}

VOID TppEnsureThread(PTP_POOL Pool)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    TppEnsureThreadInService(Pool);
    KiExitService(Thread);
}

NTSTATUS TppStartMinimum(PTP_POOL Pool, ULONG Count)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status = STATUS_SUCCESS;
    KiEnterService(Thread);
    ULONG64 Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
    while (NT_SUCCESS(Status) && TPP_WORKERS(Word) < Count) {
        if (TppChangeThreads(Pool, &Word, Word + TPP_WORKER_ONE)) {
            Status = TppStartWorker(Pool);
            Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
        }
    }
    KiExitService(Thread);
    return Status;
}

BOOLEAN TppRunUncounted(PTPP_WORKER Worker)
{
    PTP_POOL Pool = Worker->Pool;
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    KiLeaveQueue(Thread);
    KiExitDispatcher(Thread);
    TppEnsureThread(Pool);
    ULONG64 Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
    return TPP_WORKERS(Word) > TPP_BUSY(Word);
}

/* In a forked child. */

/* The slot of a lost thread may have been given to another one, which has its own user-mode data. */
static BOOLEAN TppHasSurvived(PTPP_WORKER Worker)
{
    PKTHREAD Thread = __atomic_load_n(&Worker->Thread, __ATOMIC_ACQUIRE);
    return Thread != NULL && __atomic_load_n(&Thread->State, __ATOMIC_RELAXED) != Terminated &&
           RtlpTeb(Thread)->ThreadPoolData == Worker;
}

VOID TppRepairWorkers(PTP_POOL Pool)
{
    ULONG64 Word = 0;
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Entry = Pool->WorkerListHead.Flink; Entry != &Pool->WorkerListHead; Entry = Next) {
        PTPP_WORKER Worker = CONTAINING_RECORD(Entry, TPP_WORKER, Entry);
        Next = Entry->Flink;
        if (TppHasSurvived(Worker)) {
            Word += TPP_WORKER_ONE + (Worker->Busy ? TPP_BUSY_ONE : 0);
        } else {
            RemoveEntryList(Entry);
            HalFree(Worker);
        }
    }
    TppInitializeTicking(Pool);
    /* relaxed: the store to ProcessId publishes both */
    __atomic_store_n(&Pool->Threads, Word, __ATOMIC_RELAXED);
    __atomic_store_n(&Pool->Lifetime, (LONG)TPP_WORKERS(Word) + 1, __ATOMIC_RELAXED);
}
