/* ownthread.c: starting the threads that the library runs for itself. The rules are in ownthread.h. */
#include "ownthread.h"

#include "park.h"
#include "ki.h"
#include "timer.h"

static PKI_OWN_THREAD volatile KiOwnThreads;  /* every record that was ever requested */
static volatile ULONG KiOwnThreadsStarted;    /* not 0: some were, in this process */
static volatile ULONG KiRefusals;             /* a request was kept because the host refused the thread */

/* Rule 1. A program's allocator that calls in while the host creates a thread must not wait for that thread either. */
static BOOLEAN KiMayCreateThread(PKTHREAD Thread)
{
    return Thread->DispatcherDepth == 0 && Thread->HostInterrupts == 0 && Thread->Irql < IPI_LEVEL &&
           Thread->OwnThreadUse != KI_CREATION_FORBIDDEN;
}

NTSTATUS KiCreateOwnThread(const KI_OWN_KIND *Kind, PVOID Context, SIZE_T StackSize)
{
    PKTHREAD Thread = KiCurrentThread();
    UCHAR Use = Thread->OwnThreadUse;
    if (!KiMayCreateThread(Thread)) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Thread->OwnThreadUse = KI_CREATION_FORBIDDEN;
    NTSTATUS Status = HalCreateThread(Kind->Routine, Context, StackSize != 0 ? StackSize : Kind->StackSize, Kind->Name);
    Thread->OwnThreadUse = Use;
    if (NT_SUCCESS(Status)) {
        /* relaxed: read by the last thread of the program */
        __atomic_store_n(&KiOwnThreadsStarted, 1, __ATOMIC_RELAXED);
    }
    return Status;
}

BOOLEAN KiHasOwnThreads(VOID)
{
    return __atomic_load_n(&KiOwnThreadsStarted, __ATOMIC_RELAXED) != 0;
}

/* In a section: a fork must not find a record that is marked as listed and is not. */
static VOID KiListOwnThread(PKTHREAD Thread, PKI_OWN_THREAD Own)
{
    /* relaxed: the list itself publishes the record */
    if (__atomic_load_n(&Own->Listed, __ATOMIC_RELAXED) != 0) {
        return;
    }
    KiEnterDispatcher(Thread);
    if (__atomic_exchange_n(&Own->Listed, 1, __ATOMIC_RELAXED) == 0) {
        Own->Next = __atomic_load_n(&KiOwnThreads, __ATOMIC_RELAXED);
        /* release: pairs with the acquire in KiServeRequests */
        while (!__atomic_compare_exchange_n(&KiOwnThreads, &Own->Next, Own, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        }
    }
    KiExitDispatcher(Thread);
}

/*
 * A guarded region, at any level: the thread is not suspended or terminated, since others may wait for it, and what it
 * has claimed would be lost with it.
 */
static VOID KiEnterGuarded(PKTHREAD Thread)
{
    Thread->SpecialApcDisable -= 1;
    /* against a host interrupt on this thread: it claims only inside the region */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static VOID KiLeaveGuarded(PKTHREAD Thread)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Thread->SpecialApcDisable += 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & (KI_WAIT_APC | KI_WAIT_EXIT)) {
        KiDeliverApc(Thread);
    }
}

NTSTATUS KiEnsureOwnThread(PKI_OWN_THREAD Own)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status = STATUS_SUCCESS;
    BOOLEAN Claimed = FALSE;
    ULONG Round = 0;
    while (!Claimed && !KiHasOwnThread(Own)) {
        /* relaxed: the state alone decides which thread starts it */
        ULONG State = __atomic_load_n(&Own->State, __ATOMIC_RELAXED);
        if (!KiMayCreateThread(Thread)) {
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        if (State == KiOwnThreadStarting) {
            KiPollInterrupts(Thread);
            KiBackOff(Round++);
            continue;
        }
        KiListOwnThread(Thread, Own);
        KiEnterGuarded(Thread);
        Claimed = State == KiOwnThreadAbsent &&
                  __atomic_compare_exchange_n(&Own->State, &State, KiOwnThreadStarting, FALSE, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED);
        if (Claimed) {
            Status = KiCreateOwnThread(Own->Kind, Own->Context, 0);
            State = NT_SUCCESS(Status) && !Own->Kind->Many ? KiOwnThreadRunning : KiOwnThreadAbsent;
            /* release: pairs with the acquire in KiHasOwnThread */
            __atomic_store_n(&Own->State, State, __ATOMIC_RELEASE);
        }
        KiLeaveGuarded(Thread);
    }
    return Status;
}

/* FALSE: the request is kept. */
static BOOLEAN KiServeRequest(PKI_OWN_THREAD Own, BOOLEAN MayServe)
{
    BOOLEAN (*Serve)(PVOID, BOOLEAN) = Own->Kind->Serve;
    if (NT_SUCCESS(KiEnsureOwnThread(Own))) {
        return Serve == NULL || Serve(Own->Context, TRUE);
    }
    return MayServe && Serve != NULL && Serve(Own->Context, FALSE);
}

/*
 * Returns whether a request is kept. At DISPATCH_LEVEL a refused one waits until the thread lowers its level, and the
 * register keeps its bit. A request that is made while this runs sets the bit again, and is found by another walk.
 */
static BOOLEAN KiServeRequests(PKTHREAD Thread)
{
    BOOLEAN MayServe = Thread->Irql < DISPATCH_LEVEL;
    BOOLEAN Kept = FALSE;
    if (!KiMayCreateThread(Thread) || Thread->OwnThreadUse != 0 || Thread != HalCurrentThread) {
        return FALSE;
    }
    KiEnterGuarded(Thread);
    Thread->OwnThreadUse = KI_SERVING_REQUESTS;
    do {
        __atomic_fetch_and(&Thread->WaitRegister, ~KI_WAIT_THREAD_WANTED, __ATOMIC_RELAXED);
        /* acquire: pairs with KiListOwnThread */
        for (PKI_OWN_THREAD Own = __atomic_load_n(&KiOwnThreads, __ATOMIC_ACQUIRE); Own != NULL; Own = Own->Next) {
            /* acquire: pairs with KiRequestOwnThread */
            ULONG Wanted = __atomic_load_n(&Own->Wanted, __ATOMIC_ACQUIRE);
            if ((Wanted == KiThreadWanted || (Wanted == KiThreadRefused && MayServe)) &&
                __atomic_compare_exchange_n(&Own->Wanted, &Wanted, KiThreadNotWanted, FALSE, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED)) {
                Wanted = KiServeRequest(Own, MayServe) ? KiThreadNotWanted : KiThreadRefused;
                if (Wanted == KiThreadRefused) {
                    __atomic_store_n(&Own->Wanted, KiThreadRefused, __ATOMIC_RELAXED);
                }
            }
            Kept = Kept || Wanted == KiThreadRefused;
        }
    } while (MayServe && (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_THREAD_WANTED) != 0);
    if (Kept && !MayServe) {
        __atomic_fetch_or(&Thread->WaitRegister, KI_WAIT_THREAD_WANTED, __ATOMIC_RELAXED);
    }
    Thread->OwnThreadUse = 0;
    KiLeaveGuarded(Thread);
    return Kept && MayServe;
}

VOID KiStartWantedThreads(PKTHREAD Thread)
{
    /* release: the refused requests come before; KiRetryRefusedThreads, if it takes this, finds them */
    if (KiServeRequests(Thread) && __atomic_exchange_n(&KiRefusals, 1, __ATOMIC_RELEASE) == 0) {
        KiWakeClock();
    }
}

BOOLEAN KiRetryRefusedThreads(PKTHREAD Thread)
{
    /* relaxed: a hint; the requests themselves are in their records. Set again by another thread, it wakes the clock. */
    if (__atomic_load_n(&KiRefusals, __ATOMIC_RELAXED) == 0) {
        return FALSE;
    }
    /* acquire, and an exchange: of two threads at KiRefusals, the second sees what the first has done */
    __atomic_exchange_n(&KiRefusals, 0, __ATOMIC_ACQUIRE);
    if (!KiServeRequests(Thread)) {
        return FALSE;
    }
    __atomic_store_n(&KiRefusals, 1, __ATOMIC_RELAXED);
    return TRUE;
}

VOID KiRequestOwnThread(PKTHREAD Thread, PKI_OWN_THREAD Own)
{
    KiListOwnThread(Thread, Own);
    /* release: pairs with the acquire in KiServeRequests: the work that the thread is wanted for is visible there */
    __atomic_store_n(&Own->Wanted, KiThreadWanted, __ATOMIC_RELEASE);
    __atomic_fetch_or(&Thread->WaitRegister, KI_WAIT_THREAD_WANTED, __ATOMIC_RELAXED);
    KiStartWantedThreads(Thread);
}

/* Requests of the parent are repeated by those that find their work inherited. */
VOID KiOwnThreadForkChild(VOID)
{
    KiOwnThreadsStarted = 0;
    for (PKI_OWN_THREAD Own = KiOwnThreads; Own != NULL; Own = Own->Next) {
        __atomic_store_n(&Own->State, KiOwnThreadAbsent, __ATOMIC_RELAXED);
        __atomic_store_n(&Own->Wanted, KiThreadNotWanted, __ATOMIC_RELAXED);
    }
    KiRefusals = 0;
}
