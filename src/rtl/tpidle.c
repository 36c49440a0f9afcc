/* tpidle.c: waiting until an object has no callbacks left. */
#include "tpp.h"

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
    if (!TppIsIdle(__atomic_load_n(&Object->State, __ATOMIC_ACQUIRE))) {
        return;
    }
    __atomic_fetch_and(&Object->State, ~TPP_WAITERS, __ATOMIC_ACQ_REL);
    while (!IsListEmpty(&Object->WaiterListHead)) {
        PTPP_WAITER Waiter = CONTAINING_RECORD(RemoveHeadList(&Object->WaiterListHead), TPP_WAITER, Entry);
        KeSetEvent(&Waiter->Event, 0, FALSE);
    }
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
    InsertTailList(&Object->WaiterListHead, &Waiter->Entry);
    return TRUE;
}

VOID TppWaitForCallbacks(PTPP_OBJECT Object, BOOLEAN Cancel)
{
    TPP_WAITER Waiter;
    PVOID Dereference = NULL;
    TppReadyPool(Object->Pool);
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    PKTHREAD Thread = TppLock(&Object->Lock);
    if (Object->Type->Collect != NULL) {
        Dereference = Object->Type->Collect(Object, FALSE);
    }
    if (Cancel) {
        TppCancelPending(Object);
    }
    BOOLEAN Wait = TppEnterWaiter(Object, &Waiter);
    TppUnlock(&Object->Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    TppDropHold(Object); /* who waits needs none: it is released before the object can go */
    if (Wait) {
        KeWaitForSingleObject(&Waiter.Event, UserRequest, KernelMode, FALSE, NULL);
    }
}
