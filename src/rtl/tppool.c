/*
 * tppool.c: pools, their queue, and their threads. Theory in tpp.h.
 *
 * A worker is always in a service, except while it runs the program's callbacks. So a worker that is terminated ends
 * between two packets, holding none, or in a callback, where TppThreadExit cleans up after it.
 */
#include "tpp.h"

#include "../ke/ownthread.h"
#include "../ps/psp.h"

LONGLONG TppPatience = -30 * 10000000LL;
LONGLONG TppTickInterval = -50 * 10000LL;

TP_POOL TppDefaultPool;
TP_POOL TppTimerThreadPool = {.Maximum = 1};
TP_POOL TppWaitThreadPool = {.Maximum = 1};

/* The queue. */

static VOID TppQueueLane(PTP_POOL Pool, PTPP_LANE Lane)
{
    Lane->Queued = TRUE;
    if (Lane == &Pool->Lane[TppExpressLane]) {
        KeInsertHeadQueue(&Pool->Queue, &Lane->Packet.Entry);
    } else {
        KeInsertQueue(&Pool->Queue, &Lane->Packet.Entry);
    }
}

VOID TppQueueTask(PTPP_OBJECT Object, BOOLEAN PoolLocked)
{
    PTP_POOL Pool = Object->Pool;
    if (Object->Priority == TP_CALLBACK_PRIORITY_NORMAL) {
        KeInsertQueue(&Pool->Queue, &Object->Task.Entry);
        return;
    }
    PTPP_LANE Lane = &Pool->Lane[Object->Priority == TP_CALLBACK_PRIORITY_HIGH ? TppExpressLane : TppSlowLane];
    if (!PoolLocked) {
        KiAcquireLock(&Pool->Lock);
    }
    InsertTailList(&Lane->ListHead, &Object->Task.Entry);
    if (!Lane->Queued) {
        TppQueueLane(Pool, Lane);
    }
    if (!PoolLocked) {
        KiReleaseLock(&Pool->Lock);
    }
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

/* The object to serve; NULL: all were cancelled, or packets of higher priority are queued. */
static PTPP_OBJECT TppTakeFromLane(PTP_POOL Pool, PTPP_LANE Lane)
{
    PTPP_OBJECT Object = NULL;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    BOOLEAN Wait = Lane == &Pool->Lane[TppSlowLane] && TppHasBacklog(Pool);
    if (!Wait && !IsListEmpty(&Lane->ListHead)) {
        PLIST_ENTRY Entry = RemoveHeadList(&Lane->ListHead);
        Entry->Flink = NULL;
        Object = CONTAINING_RECORD(Entry, TPP_OBJECT, Task.Entry);
    }
    Lane->Queued = FALSE;
    if (!IsListEmpty(&Lane->ListHead)) {
        TppQueueLane(Pool, Lane);
    }
    KiExitLocked(&Pool->Lock, Thread);
    return Object;
}

/*
 * The tick: requirements 2 and 3 in tpp.h. The timer is set only while a tick may have something to do. A thread
 * changes Threads and then reads Ticking; a tick that stops clears Ticking and then reads Threads. All four are
 * seq_cst, so one of the two sees the other's store and no reason to tick is missed.
 */

static ULONG TppMaximumOf(PTP_POOL Pool)
{
    /* relaxed, as are all accesses to Maximum and Minimum: settings that publish nothing */
    return __atomic_load_n(&Pool->Maximum, __ATOMIC_RELAXED);
}

static BOOLEAN TppLacksThread(PTP_POOL Pool, ULONG Threads)
{
    return TPP_WORKERS(Threads) == TPP_BUSY(Threads) && TPP_WORKERS(Threads) < TppMaximumOf(Pool);
}

static BOOLEAN TppMayRaiseLimit(PTP_POOL Pool, ULONG Threads)
{
    ULONG Limit = __atomic_load_n(&Pool->Limit, __ATOMIC_RELAXED); /* relaxed: advisory only, everywhere */
    return TPP_BUSY(Threads) >= Limit && Limit < TppMaximumOf(Pool);
}

static VOID TppSetLimit(PTP_POOL Pool, ULONG Limit)
{
    if (__atomic_load_n(&Pool->Limit, __ATOMIC_RELAXED) != Limit) {
        __atomic_store_n(&Pool->Limit, Limit, __ATOMIC_RELAXED);
        KiSetQueueLimit(&Pool->Queue, Limit);
    }
}

static VOID TppStartTicking(PTP_POOL Pool)
{
    if (__atomic_exchange_n(&Pool->Ticking, 1, __ATOMIC_SEQ_CST) == 0) {
        /* relaxed: a setting */
        LARGE_INTEGER Interval = {.QuadPart = __atomic_load_n(&TppTickInterval, __ATOMIC_RELAXED)};
        __atomic_fetch_add(&Pool->Lifetime, 1, __ATOMIC_RELAXED); /* relaxed: the caller keeps it above 0 */
        KeSetTimer(&Pool->Timer, Interval, &Pool->Dpc);
    }
}

/* After a change of Threads. A raised limit needs ticks until it is back to normal. */
static VOID TppTickIfNeeded(PTP_POOL Pool)
{
    ULONG Threads = __atomic_load_n(&Pool->Threads, __ATOMIC_SEQ_CST);
    BOOLEAN Needed = TppMayRaiseLimit(Pool, Threads) || TppLacksThread(Pool, Threads) ||
                     __atomic_load_n(&Pool->Limit, __ATOMIC_RELAXED) != KeNumberProcessors;
    if (Needed && !__atomic_load_n(&Pool->Ticking, __ATOMIC_SEQ_CST)) {
        TppStartTicking(Pool);
    }
}

static VOID TppReleaseLifetime(PTP_POOL Pool)
{
    /* acq_rel: the free comes after every other thread's last access */
    if (__atomic_sub_fetch(&Pool->Lifetime, 1, __ATOMIC_ACQ_REL) == 0) {
        KeCancelTimer(&Pool->Timer); /* waits for a thread that is expiring it */
        HalFree(Pool);
    }
}

static VOID TppEnsureThread(PTP_POOL Pool);

/* TRUE: no worker has begun a packet since the last call. A worker that has ended meanwhile looks like one that has. */
static BOOLEAN TppIsStuck(PTP_POOL Pool)
{
    ULONG Begun = 0;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    for (PLIST_ENTRY Entry = Pool->WorkerListHead.Flink; Entry != &Pool->WorkerListHead; Entry = Entry->Flink) {
        Begun += __atomic_load_n(&CONTAINING_RECORD(Entry, TPP_WORKER, Entry)->Begun, __ATOMIC_RELAXED);
    }
    BOOLEAN Stuck = Begun == Pool->LastBegun;
    Pool->LastBegun = Begun;
    KiExitLocked(&Pool->Lock, Thread);
    return Stuck;
}

static VOID TppTick(PKDPC Dpc, PVOID DeferredContext, PVOID SystemArgument1, PVOID SystemArgument2)
{
    PTP_POOL Pool = DeferredContext;
    ULONG Threads = __atomic_load_n(&Pool->Threads, __ATOMIC_SEQ_CST);
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    /* relaxed: a released pool needs no ticks, and a spurious one is harmless */
    if (__atomic_load_n(&Pool->References, __ATOMIC_RELAXED) != 0) {
        BOOLEAN Stuck = TppIsStuck(Pool);
        TppEnsureThread(Pool);
        if (Stuck && TppHasBacklog(Pool) && TppMayRaiseLimit(Pool, Threads)) {
            TppSetLimit(Pool, __atomic_load_n(&Pool->Limit, __ATOMIC_RELAXED) + 1);
        } else if (TPP_BUSY(Threads) < KeNumberProcessors) {
            TppSetLimit(Pool, KeNumberProcessors);
        }
        __atomic_store_n(&Pool->Ticking, 0, __ATOMIC_SEQ_CST);
        TppTickIfNeeded(Pool);
    }
    TppReleaseLifetime(Pool); /* that of Ticking */
}

/* The threads. */

/* seq_cst, for every change of the word: see the tick above */
static BOOLEAN TppChangeThreads(PTP_POOL Pool, ULONG *Word, ULONG New)
{
    return __atomic_compare_exchange_n(&Pool->Threads, Word, New, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Frees a worker that is no longer counted in Threads. */
static VOID TppDischarge(PTPP_WORKER Worker)
{
    PTP_POOL Pool = Worker->Pool;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    RemoveEntryList(&Worker->Entry);
    KiExitLocked(&Pool->Lock, Thread);
    HalFree(Worker);
    TppReleaseLifetime(Pool);
}

/* Called by a worker that is not busy. TRUE: it is no longer counted and must end. */
static BOOLEAN TppMayLeave(PTPP_WORKER Worker, BOOLEAN WasIdleForLong)
{
    PTP_POOL Pool = Worker->Pool;
    ULONG Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
    for (;;) {
        ULONG Workers = TPP_WORKERS(Word);
        BOOLEAN Unneeded = WasIdleForLong && !Worker->Persistent && Workers - TPP_BUSY(Word) > 1 &&
                           Workers > __atomic_load_n(&Pool->Minimum, __ATOMIC_RELAXED);
        if (!Unneeded && Workers <= TppMaximumOf(Pool)) {
            return FALSE;
        }
        if (TppChangeThreads(Pool, &Word, Word - TPP_WORKER_ONE)) {
            return TRUE;
        }
    }
}

static VOID TppServePacket(PTPP_WORKER Worker, PTPP_PACKET Packet, PTPP_NEXT Next)
{
    PTP_POOL Pool = Worker->Pool;
    PTPP_OBJECT Object = CONTAINING_RECORD(Packet, TPP_OBJECT, Task);
    ULONG Result = STATUS_WAIT_0;
    BOOLEAN Begun;

    /* relaxed: advisory only */
    __atomic_store_n(&Worker->Begun, Worker->Begun + 1, __ATOMIC_RELAXED);
    if (Next->Claimed != NULL) {
        Begun = Next->Begun;
        Next->Claimed = NULL;
        if (Next->State == TPP_CLOSED) {
            TppDelete(Object);
        }
    } else if (Packet->Kind == TppSourcePacket) {
        PTPP_SOURCE Source = CONTAINING_RECORD(Packet, TPP_SOURCE, Notification.QueueListEntry);
        Object = Source->Object;
        Begun = TppArrive(Source, &Result);
    } else {
        if (Packet->Kind == TppLanePacket) {
            Object = TppTakeFromLane(Pool, CONTAINING_RECORD(Packet, TPP_LANE, Packet));
        }
        Begun = Object != NULL && TppTake(Object, &Result);
    }
    if (Begun && KiIsExiting(KiCurrentThread())) {
        TppPutBack(Object, Result);
    } else if (Begun) {
        Next->Ended = TppRunCallback(Worker, Object, Result);
    }
}

/* Serves a packet that a wait has returned, and those that need no wait. */
static VOID TppServePackets(PTPP_WORKER Worker, PLIST_ENTRY Entry)
{
    PTP_POOL Pool = Worker->Pool;
    PKTHREAD Thread = KiCurrentThread();
    TPP_NEXT Next = {.Ended = NULL};

    Worker->Busy = TRUE;
    ULONG Word = __atomic_add_fetch(&Pool->Threads, TPP_BUSY_ONE, __ATOMIC_SEQ_CST);
    if (TPP_WORKERS(Word) == TPP_BUSY(Word)) {
        TppEnsureThread(Pool);
    }
    TppTickIfNeeded(Pool);
    while (Entry != NULL) {
        TppServePacket(Worker, CONTAINING_RECORD(Entry, TPP_PACKET, Entry), &Next);
        Entry = NULL;
        if (!KiIsDeliveryPending(Thread) && TppQueryThreads(Pool) <= TppMaximumOf(Pool)) {
            Entry = KiTakeNextEntry(&Pool->Queue, TppClaim, &Next);
        }
        if (Next.Ended != NULL) {
            TppFinish(Next.Ended);
            Next.Ended = NULL;
        }
    }
    Worker->Busy = FALSE;
    __atomic_fetch_sub(&Pool->Threads, TPP_BUSY_ONE, __ATOMIC_SEQ_CST);
}

static VOID TppWorkerThread(PVOID Context)
{
    PTPP_WORKER Worker = Context;
    PTP_POOL Pool = Worker->Pool;
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Leaves = FALSE; /* it is no longer counted in Threads */
    __atomic_store_n(&Thread->Foreign, FALSE, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->UserThread, TRUE, __ATOMIC_RELAXED);
    PspNotifyThreadStart((PETHREAD)Thread);
    KiEnterService(Thread);
    RtlpCurrentTeb()->ThreadPoolData = Worker;
    /* release: a reader of Thread finds ThreadPoolData set; pairs with TppRepairWorkers */
    __atomic_store_n(&Worker->Thread, Thread, __ATOMIC_RELEASE);
    while (!Leaves) {
        /* relaxed: a setting */
        LARGE_INTEGER Patience = {.QuadPart = __atomic_load_n(&TppPatience, __ATOMIC_RELAXED)};
        PLIST_ENTRY Entry = KeRemoveQueue(&Pool->Queue, UserMode, &Patience);
        switch ((LONG_PTR)Entry) {
        case STATUS_USER_APC: /* the thread is being terminated */
            break;
        case STATUS_TIMEOUT:
            Leaves = TppMayLeave(Worker, TRUE);
            break;
        case STATUS_ABANDONED: /* the pool was released */
            __atomic_fetch_sub(&Pool->Threads, TPP_WORKER_ONE, __ATOMIC_SEQ_CST);
            Leaves = TRUE;
            break;
        default:
            TppServePackets(Worker, Entry);
            Leaves = TppMayLeave(Worker, FALSE);
            break;
        }
        if (!Leaves) {
            KiExitService(Thread); /* a terminated thread ends here */
            KiEnterService(Thread);
        }
    }
    RtlpCurrentTeb()->ThreadPoolData = NULL;
    TppDischarge(Worker);
    KiExitService(Thread);
}

/* A worker ends inside a callback: the callback counts as ended, without its completion actions. */
static VOID TppThreadExit(PETHREAD Thread, BOOLEAN WasTerminated)
{
    PTPP_WORKER Worker = RtlpTeb(&Thread->Tcb)->ThreadPoolData;
    PKTHREAD Current = KiCurrentThread();
    UNREFERENCED_PARAMETER(WasTerminated);
    if (Worker == NULL) {
        return;
    }
    PTP_POOL Pool = Worker->Pool;
    KiEnterService(Current);
    TppEnterPool(Pool); /* the callback may have forked */
    RtlpTeb(&Thread->Tcb)->ThreadPoolData = NULL;
    TppEndCallback(&Worker->Instance);
    __atomic_fetch_sub(&Pool->Threads, TPP_WORKER_ONE + (Worker->Busy ? TPP_BUSY_ONE : 0), __ATOMIC_SEQ_CST);
    TppEnsureThread(Pool);
    TppDischarge(Worker);
    KiExitService(Current);
}

static VOID TppInitializeThreadExit(VOID)
{
    PspRegisterThreadExit(TppThreadExit);
}
KI_INITIALIZER(KiInitializeRuntime, TppInitializeThreadExit);

static const KI_OWN_KIND TppWorkerKind = {.Name = "interlock-pool", .Routine = TppWorkerThread};

/* A thread that the caller has counted in Threads. */
static NTSTATUS TppStartWorker(PTP_POOL Pool)
{
    PTPP_WORKER Worker = HalAllocate(sizeof(*Worker), __alignof__(*Worker));
    NTSTATUS Status = STATUS_NO_MEMORY;
    if (Worker != NULL) {
        Worker->Pool = Pool;
        Worker->Instance.Worker = Worker;
        PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
        SIZE_T StackReserve = Pool->Stack.StackReserve;
        InsertTailList(&Pool->WorkerListHead, &Worker->Entry);
        __atomic_fetch_add(&Pool->Lifetime, 1, __ATOMIC_RELAXED); /* relaxed: the caller keeps it above 0 */
        KiExitLocked(&Pool->Lock, Thread);
        Status = KiCreateOwnThread(&TppWorkerKind, Worker, StackReserve);
        if (NT_SUCCESS(Status)) {
            return Status;
        }
        TppDischarge(Worker);
    }
    __atomic_fetch_sub(&Pool->Threads, TPP_WORKER_ONE, __ATOMIC_SEQ_CST);
    return Status;
}

/* One thread is idle or starting, unless the maximum is reached. */
static VOID TppEnsureThread(PTP_POOL Pool)
{
    /* relaxed: a thread that becomes busy at this moment ensures the next one itself */
    ULONG Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
    if (!TppLacksThread(Pool, Word)) {
        return;
    }
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    while (TppLacksThread(Pool, Word)) {
        if (TppChangeThreads(Pool, &Word, Word + TPP_WORKER_ONE)) {
            if (!NT_SUCCESS(TppStartWorker(Pool))) {
                TppStartTicking(Pool);
            }
            break;
        }
    }
    KiExitService(Thread);
}

NTSTATUS TppStartMinimum(PTP_POOL Pool, ULONG Count)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status = STATUS_SUCCESS;
    KiEnterService(Thread);
    ULONG Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
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
    TppReadyPool(Pool); /* the callback may have forked */
    ULONG Word = __atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED);
    return TPP_WORKERS(Word) > TPP_BUSY(Word);
}

/* Pools. */

static VOID TppInitializePool(PTP_POOL Pool)
{
    KeInitializeQueue(&Pool->Queue, 0);
    InitializeListHead(&Pool->WorkerListHead);
    InitializeListHead(&Pool->ObjectListHead);
    for (ULONG Number = 0; Number < TppMaximumLane; Number += 1) {
        InitializeListHead(&Pool->Lane[Number].ListHead);
        Pool->Lane[Number].Packet.Kind = TppLanePacket;
    }
    Pool->References = 1;
    Pool->Lifetime = 1;
    if (Pool->Maximum == 0) {
        Pool->Maximum = TPP_DEFAULT_THREADS;
    }
}

/* In a forked child, with the pool's lock. The workers of the lost threads go to Lost. */
static VOID TppRepairWorkers(PTP_POOL Pool, PLIST_ENTRY Lost)
{
    ULONG Word = 0;
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Entry = Pool->WorkerListHead.Flink; Entry != &Pool->WorkerListHead; Entry = Next) {
        PTPP_WORKER Worker = CONTAINING_RECORD(Entry, TPP_WORKER, Entry);
        PKTHREAD Thread = __atomic_load_n(&Worker->Thread, __ATOMIC_ACQUIRE);
        Next = Entry->Flink;
        /* The slot of a lost thread may have been recycled: ThreadPoolData is the new thread's then. */
        if (Thread != NULL && __atomic_load_n(&Thread->State, __ATOMIC_RELAXED) != Terminated &&
            RtlpTeb(Thread)->ThreadPoolData == Worker) {
            Word += TPP_WORKER_ONE + (Worker->Busy ? TPP_BUSY_ONE : 0);
        } else {
            RemoveEntryList(Entry);
            InsertTailList(Lost, Entry);
        }
    }
    /* relaxed: the store to ProcessId publishes both */
    __atomic_store_n(&Pool->Threads, Word, __ATOMIC_RELAXED);
    __atomic_store_n(&Pool->Lifetime, (LONG)TPP_WORKERS(Word) + 1, __ATOMIC_RELAXED);
}

/*
 * In a forked child, with the pool's lock: callbacks of lost threads have ended, and packets that lost threads had
 * removed without beginning their callback are queued again. Objects that only such a callback kept alive go to Dead.
 */
static VOID TppRepairPool(PTP_POOL Pool, PLIST_ENTRY Lost, PLIST_ENTRY Dead)
{
    PLIST_ENTRY Next;
    TppRepairWorkers(Pool, Lost);
    KeCancelTimer(&Pool->Timer);
    for (ULONG Number = 0; Number < TppMaximumLane; Number += 1) {
        PTPP_LANE Lane = &Pool->Lane[Number];
        if (Lane->Queued && Lane->Packet.Entry.Flink == NULL) {
            TppQueueLane(Pool, Lane);
        }
    }
    for (PLIST_ENTRY Entry = Pool->ObjectListHead.Flink; Entry != &Pool->ObjectListHead; Entry = Next) {
        PTPP_OBJECT Object = CONTAINING_RECORD(Entry, TPP_OBJECT, PoolEntry);
        Next = Entry->Flink;
        if (!TppRepairObject(Object)) {
            RemoveEntryList(Entry);
            InsertTailList(Dead, Entry);
        }
    }
}

VOID TppAdoptPool(PTP_POOL Pool)
{
    PKTHREAD Service = KiCurrentThread();
    LIST_ENTRY Lost;
    LIST_ENTRY Dead;
    InitializeListHead(&Lost);
    InitializeListHead(&Dead);
    KiEnterService(Service);
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    if (Pool->ProcessId != KiInitialProcess.ProcessId) {
        if (Pool->ProcessId == 0) {
            TppInitializePool(Pool);
        } else {
            TppRepairPool(Pool, &Lost, &Dead);
        }
        KeInitializeTimer(&Pool->Timer); /* a lost thread may have removed the tick's DPC */
        KeInitializeDpc(&Pool->Dpc, TppTick, Pool);
        Pool->Ticking = 0;
        TppSetLimit(Pool, KeNumberProcessors);
        /* release: pairs with the acquire in TppIsPoolReady */
        __atomic_store_n(&Pool->ProcessId, KiInitialProcess.ProcessId, __ATOMIC_RELEASE);
    }
    KiExitLocked(&Pool->Lock, Thread);
    while (!IsListEmpty(&Lost)) {
        HalFree(CONTAINING_RECORD(RemoveHeadList(&Lost), TPP_WORKER, Entry));
    }
    while (!IsListEmpty(&Dead)) {
        TppDelete(CONTAINING_RECORD(Dead.Flink, TPP_OBJECT, PoolEntry));
    }
    KiExitService(Service);
}

VOID TppReadyPool(PTP_POOL Pool)
{
    TppEnterPool(Pool);
    TppEnsureThread(Pool);
}

VOID TppDropPool(PTP_POOL Pool)
{
    /* acq_rel: pairs with itself */
    if (__atomic_sub_fetch(&Pool->References, 1, __ATOMIC_ACQ_REL) == 0) {
        KeRundownQueue(&Pool->Queue);
        if (KeCancelTimer(&Pool->Timer)) {
            TppReleaseLifetime(Pool); /* that of Ticking; a tick that has begun releases its own */
        }
        TppReleaseLifetime(Pool);
    }
}

NTSTATUS TpAllocPool(PTP_POOL *PoolReturn, PVOID Reserved)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Reserved != NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Thread);
    PTP_POOL Pool = HalAllocate(sizeof(*Pool), KI_CACHE_LINE);
    if (Pool != NULL) {
        TppAdoptPool(Pool);
        *PoolReturn = Pool;
    }
    KiExitService(Thread);
    return Pool != NULL ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

VOID TpReleasePool(PTP_POOL Pool)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    TppDropPool(Pool);
    KiExitService(Thread);
}

VOID TpSetPoolMaxThreads(PTP_POOL Pool, ULONG MaxThreads)
{
    ULONG Count = MaxThreads < TPP_MOST_THREADS ? MaxThreads : TPP_MOST_THREADS;
    Count = Count != 0 ? Count : 1;
    TppEnterPool(Pool);
    __atomic_store_n(&Pool->Maximum, Count, __ATOMIC_RELAXED);
    if (__atomic_load_n(&Pool->Minimum, __ATOMIC_RELAXED) > Count) {
        __atomic_store_n(&Pool->Minimum, Count, __ATOMIC_RELAXED);
    }
    if (TppQueryThreads(Pool) != 0) {
        TppEnsureThread(Pool);
        TppTickIfNeeded(Pool);
    }
}

NTSTATUS TpSetPoolMinThreads(PTP_POOL Pool, ULONG MinThreads)
{
    ULONG Count = MinThreads < TPP_MOST_THREADS ? MinThreads : TPP_MOST_THREADS;
    TppEnterPool(Pool);
    if (TppMaximumOf(Pool) < Count) {
        __atomic_store_n(&Pool->Maximum, Count, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&Pool->Minimum, Count, __ATOMIC_RELAXED);
    return TppStartMinimum(Pool, Count);
}

NTSTATUS TpSetPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation)
{
    if (PoolStackInformation->StackCommit > PoolStackInformation->StackReserve &&
        PoolStackInformation->StackReserve != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    Pool->Stack = *PoolStackInformation;
    KiExitLocked(&Pool->Lock, Thread);
    return STATUS_SUCCESS;
}

NTSTATUS TpQueryPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation)
{
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    *PoolStackInformation = Pool->Stack;
    KiExitLocked(&Pool->Lock, Thread);
    return STATUS_SUCCESS;
}
