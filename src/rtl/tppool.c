/* tppool.c: pools as such. Theory in tpp.h. */
#include "tpp.h"

#include "../nt/ntp.h"

TP_POOL TppDefaultPool;
TP_POOL TppTimerThreadPool = {.Maximum = 1};
TP_POOL TppWaitThreadPool = {.Maximum = 1};

static VOID TppInitializePool(PTP_POOL Pool)
{
    KeInitializeQueue(&Pool->Queue, 0);
    InitializeListHead(&Pool->WorkerListHead);
    InitializeListHead(&Pool->ObjectListHead);
    TppInitializeLanes(Pool);
    TppInitializeTicking(Pool);
    Pool->References = 1;
    Pool->Lifetime = 1;
    if (Pool->Maximum == 0) {
        Pool->Maximum = TPP_DEFAULT_THREADS;
    }
}

/*
 * In a forked child: a thread that stayed behind has left its callback, and what it had taken out of the queue without
 * having begun it is queued again. Objects that only their callback kept alive are moved to Dead.
 */
static VOID TppRepairPool(PTP_POOL Pool, PLIST_ENTRY Dead, PLIST_ENTRY LostWorkers)
{
    PLIST_ENTRY Next;
    TppRepairWorkers(Pool, LostWorkers);
    TppRepairLanes(Pool);
    for (PLIST_ENTRY Entry = Pool->ObjectListHead.Flink; Entry != &Pool->ObjectListHead; Entry = Next) {
        PTPP_OBJECT Object = CONTAINING_RECORD(Entry, TPP_OBJECT, PoolEntry);
        Next = Entry->Flink;
        if (!TppRepairObject(Object)) {
            RemoveEntryList(Entry);
            InsertTailList(Dead, Entry);
        }
    }
}

static VOID TppAdoptPool(PTP_POOL Pool)
{
    PKTHREAD Service = KiCurrentThread();
    LIST_ENTRY Dead, LostWorkers;
    InitializeListHead(&Dead);
    InitializeListHead(&LostWorkers);
    KiEnterService(Service);
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    if (Pool->ProcessId == 0) {
        TppInitializePool(Pool);
    } else if (Pool->ProcessId != KiInitialProcess.ProcessId) {
        TppRepairPool(Pool, &Dead, &LostWorkers);
    }
    /* release: pairs with the acquire in TppIsPoolReady */
    __atomic_store_n(&Pool->ProcessId, KiInitialProcess.ProcessId, __ATOMIC_RELEASE);
    KiExitLocked(&Pool->Lock, Thread);
    TppFreeWorkers(&LostWorkers);
    while (!IsListEmpty(&Dead)) {
        TppDelete(CONTAINING_RECORD(Dead.Flink, TPP_OBJECT, PoolEntry));
    }
    KiExitService(Service);
}

BOOLEAN TppIsPoolReady(PTP_POOL Pool)
{
    return __atomic_load_n(&Pool->ProcessId, __ATOMIC_ACQUIRE) == KiInitialProcess.ProcessId;
}

VOID TppEnterPool(PTP_POOL Pool)
{
    if (!TppIsPoolReady(Pool)) {
        TppAdoptPool(Pool);
    }
}

VOID TppReadyPool(PTP_POOL Pool)
{
    TppEnterPool(Pool);
    TppEnsureThread(Pool);
}

VOID TppReleaseLifetime(PTP_POOL Pool)
{
    /* acq_rel: whoever frees it comes after everybody else's last touch */
    if (__atomic_sub_fetch(&Pool->Lifetime, 1, __ATOMIC_ACQ_REL) == 0) {
        KeCancelTimer(&Pool->Timer); /* waits for whoever is just expiring it */
        HalFree(Pool);
    }
}

VOID TppDropPool(PTP_POOL Pool)
{
    /* acq_rel: pairs with itself */
    if (__atomic_sub_fetch(&Pool->References, 1, __ATOMIC_ACQ_REL) == 0) {
        KeRundownQueue(&Pool->Queue);
        TppStopTicking(Pool);
        TppReleaseLifetime(Pool);
    }
}

VOID TppAddObject(PTPP_OBJECT Object)
{
    PTP_POOL Pool = Object->Pool;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    /* relaxed: the caller has the right to use the pool, so there is a reference */
    __atomic_fetch_add(&Pool->References, 1, __ATOMIC_RELAXED);
    InsertTailList(&Pool->ObjectListHead, &Object->PoolEntry);
    KiExitLocked(&Pool->Lock, Thread);
}

VOID TppRemoveObject(PTPP_OBJECT Object)
{
    PTP_POOL Pool = Object->Pool;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    RemoveEntryList(&Object->PoolEntry);
    KiExitLocked(&Pool->Lock, Thread);
}

ULONG TppQueryThreads(PTP_POOL Pool)
{
    return TPP_WORKERS(__atomic_load_n(&Pool->Threads, __ATOMIC_RELAXED));
}

static NTSTATUS TppAllocatePool(PTP_POOL *PoolReturn)
{
    PTP_POOL Pool = HalAllocate(sizeof(*Pool), KI_CACHE_LINE);
    if (Pool == NULL) {
        return STATUS_NO_MEMORY;
    }
    TppAdoptPool(Pool);
    *PoolReturn = Pool;
    return STATUS_SUCCESS;
}

NTSTATUS TpAllocPool(PTP_POOL *PoolReturn, PVOID Reserved)
{
    return Reserved == NULL ? NTP_SERVICE(TppAllocatePool(PoolReturn)) : STATUS_INVALID_PARAMETER;
}

VOID TpReleasePool(PTP_POOL Pool)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    TppDropPool(Pool);
    KiExitService(Thread);
}

static ULONG TppClampThreads(ULONG Count)
{
    return Count < TPP_MOST_THREADS ? Count : TPP_MOST_THREADS;
}

/* relaxed, here and wherever they are read: settings, on which nothing else depends */
VOID TpSetPoolMaxThreads(PTP_POOL Pool, ULONG MaxThreads)
{
    ULONG Count = MaxThreads != 0 ? TppClampThreads(MaxThreads) : 1;
    TppEnterPool(Pool);
    __atomic_store_n(&Pool->Maximum, Count, __ATOMIC_RELAXED);
    if (__atomic_load_n(&Pool->Minimum, __ATOMIC_RELAXED) > Count) {
        __atomic_store_n(&Pool->Minimum, Count, __ATOMIC_RELAXED);
    }
    if (TppQueryThreads(Pool) != 0) {
        TppEnsureThread(Pool);
        TppTickWhileBusy(Pool);
    }
}

NTSTATUS TpSetPoolMinThreads(PTP_POOL Pool, ULONG MinThreads)
{
    ULONG Count = TppClampThreads(MinThreads);
    TppEnterPool(Pool);
    if (__atomic_load_n(&Pool->Maximum, __ATOMIC_RELAXED) < Count) {
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
