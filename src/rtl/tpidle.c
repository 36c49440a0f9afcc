/*
 * tpidle.c: waiting until an object has no callbacks left.
 *
 * Who waits has no hold: a thread that is suspended while it waits keeps nothing from going. So the lists of waiters
 * are under a lock that is not the objects'. A waiter whose thread is to end before the callbacks do looks there, and
 * touches the object only if it is still in its list: then whoever takes it out has not looked yet, and keeps the
 * object (4 in tpp.h).
 */
#include "tpp.h"

static KI_LOCK TppWaiterLock;

typedef struct _TPP_WAITER {
    LIST_ENTRY Entry;
    KEVENT Event;
} TPP_WAITER, *PTPP_WAITER;

BOOLEAN TppIsIdle(ULONG64 State)
{
    return !(State & (TPP_PENDING_MASK | TPP_RUNNING_MASK));
}

VOID TppReleaseWaiters(PTPP_OBJECT Object)
{
    ULONG64 State = __atomic_load_n(&Object->State, __ATOMIC_ACQUIRE);
    if (!(State & TPP_WAITERS) || !TppIsIdle(State)) {
        return;
    }
    KiAcquireLock(&TppWaiterLock);
    __atomic_fetch_and(&Object->State, ~TPP_WAITERS, __ATOMIC_ACQ_REL);
    while (!IsListEmpty(&Object->WaiterListHead)) {
        PTPP_WAITER Waiter = CONTAINING_RECORD(RemoveHeadList(&Object->WaiterListHead), TPP_WAITER, Entry);
        KeSetEvent(&Waiter->Event, 0, FALSE);
    }
    KiReleaseLock(&TppWaiterLock);
}

/* Who adds one while the task is taken out of the queue finds Linked set: it is cancelled with the others. */
ULONG TppCancelPending(PTPP_OBJECT Object)
{
    ULONG64 Linked = TppUnqueueTask(Object) ? TPP_LINKED : 0;
    ULONG64 State = __atomic_fetch_and(&Object->State, ~(TPP_PENDING_MASK | Linked), __ATOMIC_ACQ_REL);
    Object->PendingTimeouts = 0;
    TppReleaseWaiters(Object);
    return (ULONG)(State & TPP_PENDING_MASK);
}

/* With the object's lock. FALSE: there is nothing to wait for. */
static BOOLEAN TppEnterWaiter(PTPP_OBJECT Object, PTPP_WAITER Waiter)
{
    /* acquire: pairs with the end of the callbacks, also if the state is found idle */
    ULONG64 State = __atomic_load_n(&Object->State, __ATOMIC_ACQUIRE);
    do {
        if (TppIsIdle(State)) {
            return FALSE;
        }
    } while (!__atomic_compare_exchange_n(&Object->State, &State, State | TPP_WAITERS, FALSE, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    KeInitializeEvent(&Waiter->Event, NotificationEvent, FALSE);
    KiAcquireLock(&TppWaiterLock);
    InsertTailList(&Object->WaiterListHead, &Waiter->Entry);
    KiReleaseLock(&TppWaiterLock);
    return TRUE;
}

/* The thread is to end. Waiters stays set, as long as there are callbacks it does no harm. */
static VOID TppTakeOutWaiter(PTPP_WAITER Waiter)
{
    PKTHREAD Thread = KiEnterLocked(&TppWaiterLock);
    if (!KeReadStateEvent(&Waiter->Event)) {
        RemoveEntryList(&Waiter->Entry);
    }
    KiExitLocked(&TppWaiterLock, Thread);
}

/* FALSE: there is nothing to wait for. */
static BOOLEAN TppBeginWaiting(PTPP_OBJECT Object, BOOLEAN Cancel, PTPP_WAITER Waiter)
{
    PVOID Dereference = NULL;
    TppReadyPool(Object->Pool);
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    if (Object->Type->Collect != NULL) {
        Dereference = Object->Type->Collect(Object, FALSE);
    }
    if (Cancel) {
        TppCancelPending(Object);
    }
    BOOLEAN Wait = TppEnterWaiter(Object, Waiter);
    KiExitLocked(&Object->Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    TppDropHold(Object);
    return Wait;
}

VOID TppWaitForCallbacks(PTPP_OBJECT Object, BOOLEAN Cancel)
{
    PKTHREAD Thread = KiCurrentThread();
    TPP_WAITER Waiter;
    KiEnterService(Thread);
    if (TppBeginWaiting(Object, Cancel, &Waiter) &&
        KeWaitForSingleObject(&Waiter.Event, UserRequest, UserMode, FALSE, NULL) != STATUS_SUCCESS) {
        TppTakeOutWaiter(&Waiter);
    }
    KiExitService(Thread);
}
