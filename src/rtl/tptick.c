/*
 * tptick.c: what a pool does about threads that do not come back, and about threads that could not be made:
 * requirements 2 and 3 in tpp.h. The timer is set only while there may be something to do.
 *
 * A thread changes Threads and then looks at Ticking; a tick that stops clears Ticking and then looks at Threads, all
 * in sequentially consistent order. So one of the two sees the other, and no reason to tick is missed.
 */
#include "tpp.h"

LONGLONG TppTickInterval = -50 * 10000LL;

/* relaxed: a copy of what is in the queue, to be read without the queue's lock */
static ULONG TppLimit(PTP_POOL Pool)
{
    return __atomic_load_n(&Pool->Limit, __ATOMIC_RELAXED);
}

static VOID TppSetLimit(PTP_POOL Pool, ULONG Limit)
{
    if (TppLimit(Pool) != Limit) {
        __atomic_store_n(&Pool->Limit, Limit, __ATOMIC_RELAXED);
        KiSetQueueLimit(&Pool->Queue, Limit);
    }
}

static BOOLEAN TppMayGetStuck(PTP_POOL Pool, ULONG64 Threads)
{
    ULONG Limit = TppLimit(Pool);
    return TPP_BUSY(Threads) >= Limit && Limit < __atomic_load_n(&Pool->Maximum, __ATOMIC_RELAXED);
}

static BOOLEAN TppLacksThread(PTP_POOL Pool, ULONG64 Threads)
{
    return TPP_WORKERS(Threads) == TPP_BUSY(Threads) &&
           TPP_WORKERS(Threads) < __atomic_load_n(&Pool->Maximum, __ATOMIC_RELAXED);
}

/* Also as long as a limit that was raised has not been taken back. */
static BOOLEAN TppNeedsTick(PTP_POOL Pool, ULONG64 Threads)
{
    return TppMayGetStuck(Pool, Threads) || TppLacksThread(Pool, Threads) || TppLimit(Pool) != KeNumberProcessors;
}

static VOID TppSetTimer(PTP_POOL Pool)
{
    /* relaxed: a setting */
    LARGE_INTEGER Interval = {.QuadPart = __atomic_load_n(&TppTickInterval, __ATOMIC_RELAXED)};
    KeSetTimer(&Pool->Timer, Interval, &Pool->Dpc);
}

VOID TppStartTicking(PTP_POOL Pool)
{
    if (__atomic_exchange_n(&Pool->Ticking, 1, __ATOMIC_SEQ_CST) == 0) {
        __atomic_fetch_add(&Pool->Lifetime, 1, __ATOMIC_RELAXED); /* relaxed: the caller keeps it above 0 */
        TppSetTimer(Pool);
    }
}

VOID TppTickWhileBusy(PTP_POOL Pool)
{
    if (TppNeedsTick(Pool, __atomic_load_n(&Pool->Threads, __ATOMIC_SEQ_CST)) &&
        !__atomic_load_n(&Pool->Ticking, __ATOMIC_SEQ_CST)) {
        TppStartTicking(Pool);
    }
}

static BOOLEAN TppIsStuck(PTP_POOL Pool, ULONG64 Threads)
{
    /* relaxed: a tick that is late may meet the next one */
    ULONG LastBegun = __atomic_exchange_n(&Pool->LastBegun, TPP_BEGUN(Threads), __ATOMIC_RELAXED);
    return LastBegun == TPP_BEGUN(Threads) && TppHasBacklog(Pool);
}

/* With the lifetime of Ticking still held. */
static VOID TppTickAgainIfNeeded(PTP_POOL Pool)
{
    __atomic_store_n(&Pool->Ticking, 0, __ATOMIC_SEQ_CST);
    TppTickWhileBusy(Pool);
}

static VOID TppTick(PKDPC Dpc, PVOID DeferredContext, PVOID SystemArgument1, PVOID SystemArgument2)
{
    PTP_POOL Pool = DeferredContext;
    ULONG64 Threads = __atomic_load_n(&Pool->Threads, __ATOMIC_SEQ_CST);
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    /* relaxed: a pool that is being given up needs no more ticks; one too many does no harm */
    if (__atomic_load_n(&Pool->References, __ATOMIC_RELAXED) != 0) {
        TppEnsureThread(Pool);
        if (TppIsStuck(Pool, Threads) && TppMayGetStuck(Pool, Threads)) {
            TppSetLimit(Pool, TppLimit(Pool) + 1);
        } else if (TPP_BUSY(Threads) < KeNumberProcessors) {
            TppSetLimit(Pool, KeNumberProcessors);
        }
        TppTickAgainIfNeeded(Pool);
    }
    TppReleaseLifetime(Pool);
}

VOID TppStopTicking(PTP_POOL Pool)
{
    if (KeCancelTimer(&Pool->Timer)) {
        TppReleaseLifetime(Pool);
    }
}

/* Also in a forked child, where a tick may have been lost. */
VOID TppInitializeTicking(PTP_POOL Pool)
{
    if (Pool->ProcessId != 0) {
        KeCancelTimer(&Pool->Timer);
    }
    KeInitializeTimer(&Pool->Timer);
    KeInitializeDpc(&Pool->Dpc, TppTick, Pool);
    Pool->Ticking = 0;
    TppSetLimit(Pool, KeNumberProcessors);
}
