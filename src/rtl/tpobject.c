/* tpobject.c: the life of an object: allocated, its callbacks one by one, closed, deleted. Theory in tpp.h. */
#include "tpp.h"

#include "../ke/timer.h"
#include "../nt/ntp.h"

/* acq_rel: what came before a callback was asked for is visible in it, and what it did to who sees it ended */
static BOOLEAN TppChangeState(PTPP_OBJECT Object, ULONG64 *State, ULONG64 New)
{
    return __atomic_compare_exchange_n(&Object->State, State, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* relaxed, wherever the state is read first: the compare-exchange decides */
static ULONG64 TppReadState(PTPP_OBJECT Object)
{
    return __atomic_load_n(&Object->State, __ATOMIC_RELAXED);
}

/* Allocation. */

static NTSTATUS TppCheckEnviron(PTP_CALLBACK_ENVIRON Environ)
{
    if (Environ->Version == 1) {
        return STATUS_SUCCESS;
    }
    if (Environ->Version != 3 || Environ->Size < sizeof(*Environ) ||
        (ULONG)Environ->CallbackPriority >= TP_CALLBACK_PRIORITY_INVALID) {
        return STATUS_INVALID_PARAMETER;
    }
    return STATUS_SUCCESS;
}

static VOID TppApplyEnviron(PTPP_OBJECT Object, PTP_CALLBACK_ENVIRON Environ)
{
    Object->Pool = Environ->Pool != NULL ? Environ->Pool : Object->Pool;
    Object->FinalizationCallback = Environ->FinalizationCallback;
    Object->LongFunction = Environ->u.s.LongFunction;
    Object->Persistent = Environ->u.s.Persistent;
    Object->CancelCallback = Environ->CleanupGroupCancelCallback;
    if (Environ->Version == 3) {
        Object->Priority = (UCHAR)Environ->CallbackPriority;
    }
}

static VOID TppInitializeObject(PTPP_OBJECT Object, const TPP_TYPE *Type, PVOID Callback, PVOID Context)
{
    Object->Type = Type;
    Object->Task.Kind = TppTaskPacket;
    Object->Pool = &TppDefaultPool;
    Object->Callback = Callback;
    Object->Context = Context;
    Object->Priority = TP_CALLBACK_PRIORITY_NORMAL;
    InitializeListHead(&Object->WaiterListHead);
}

/* What is submitted, set or armed later cannot fail any more: the pool has a thread for it from now on (requirement 3
   in tpp.h), and the clock has one if the object needs that. */
static NTSTATUS TppEnsureService(PTP_POOL Pool, const TPP_TYPE *Type)
{
    NTSTATUS Status = Type->UsesClock ? KiEnsureClock() : STATUS_SUCCESS;
    return NT_SUCCESS(Status) ? TppStartMinimum(Pool, 1) : Status;
}

NTSTATUS TppAllocate(const TPP_TYPE *Type, PVOID Callback, PVOID Context, PTP_CALLBACK_ENVIRON Environ,
                     PVOID *ObjectReturn)
{
    NTSTATUS Status = Callback == NULL ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
    if (NT_SUCCESS(Status) && Environ != NULL) {
        Status = TppCheckEnviron(Environ);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PTPP_OBJECT Object = HalAllocate(Type->Size, MEMORY_ALLOCATION_ALIGNMENT);
    if (Object == NULL) {
        return STATUS_NO_MEMORY;
    }
    TppInitializeObject(Object, Type, Callback, Context);
    if (Environ != NULL) {
        TppApplyEnviron(Object, Environ);
    }
    TppEnterPool(Object->Pool);
    Status = TppEnsureService(Object->Pool, Type);
    if (!NT_SUCCESS(Status)) {
        HalFree(Object);
        return Status;
    }
    *ObjectReturn = Object;
    return STATUS_SUCCESS;
}

VOID TppIntroduce(PTPP_OBJECT Object, PTP_CALLBACK_ENVIRON Environ)
{
    TppAddObject(Object);
    if (Environ != NULL && Environ->CleanupGroup != NULL) {
        TppJoinGroup(Object, Environ->CleanupGroup);
    }
}

/* Nobody refers to the object any more but its lists. A fork in between leaves what it finds to the child: who is still
   in the list of its pool is deleted there too (TppRepairPool). */
VOID TppDelete(PTPP_OBJECT Object)
{
    PTP_POOL Pool = Object->Pool;
    VOID (*Destroy)(PVOID) = Object->Destroy;
    PVOID DestroyContext = Object->DestroyContext;

    TppLeaveGroup(Object);
    TppRemoveObject(Object);
    HalFree(Object);
    if (Destroy != NULL) {
        Destroy(DestroyContext);
    }
    TppDropPool(Pool);
}

/* Holds. */

BOOLEAN TppTryHold(PTPP_OBJECT Object)
{
    ULONG64 State = TppReadState(Object);
    do {
        if (State == TPP_CLOSED) {
            return FALSE;
        }
    } while (!TppChangeState(Object, &State, State + TPP_HOLD_ONE));
    return TRUE;
}

VOID TppDropHold(PTPP_OBJECT Object)
{
    if (__atomic_sub_fetch(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL) == TPP_CLOSED) {
        TppDelete(Object);
    }
}

/* Callbacks. */

BOOLEAN TppAddPending(PTPP_OBJECT Object)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 State = TppReadState(Object);
    /* From the change of the state to the insertion: a fork in between would lose the task. */
    KiEnterDispatcher(Thread);
    do {
        if ((State & TPP_PENDING_MASK) == TPP_PENDING_MASK) {
            KiExitDispatcher(Thread);
            return FALSE;
        }
    } while (!TppChangeState(Object, &State, (State + TPP_PENDING_ONE) | TPP_LINKED));
    if (!(State & TPP_LINKED)) {
        TppQueueTask(Object);
    }
    KiExitDispatcher(Thread);
    return TRUE;
}

/* One pending callback begins, if there is one. Returns the new state. */
static ULONG64 TppTakePending(PTPP_OBJECT Object, PBOOLEAN Taken)
{
    ULONG64 State = TppReadState(Object);
    ULONG64 New;
    do {
        ULONG64 Pending = State & TPP_PENDING_MASK;
        *Taken = Pending != 0;
        New = *Taken ? State - TPP_PENDING_ONE + TPP_RUNNING_ONE : State;
        New = Pending > 1 ? New : New & ~TPP_LINKED;
    } while (!TppChangeState(Object, &State, New));
    if (New & TPP_LINKED) {
        TppQueueTask(Object);
    }
    return New;
}

/*
 * Where callbacks differ in their result, the callback and its result are taken at one moment: what is cancelled in
 * between would take the result with it. The hold is for the lock, since the task's right to the object may be over.
 */
static BOOLEAN TppTakeWithResult(PTPP_OBJECT Object, PULONG Result)
{
    BOOLEAN Taken;
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    TppTakePending(Object, &Taken);
    *Result = STATUS_WAIT_0;
    if (Taken && Object->PendingTimeouts != 0) {
        Object->PendingTimeouts -= 1;
        *Result = STATUS_TIMEOUT;
    }
    KiExitLocked(&Object->Lock, Thread);
    TppDropHold(Object);
    return Taken;
}

BOOLEAN TppTake(PTPP_OBJECT Object, PULONG Result)
{
    BOOLEAN Taken;
    if (Object->Type->Collect != NULL) {
        return TppTakeWithResult(Object, Result);
    }
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    ULONG64 State = TppTakePending(Object, &Taken);
    KiExitDispatcher(Thread);
    *Result = STATUS_WAIT_0;
    if (!Taken && State == TPP_CLOSED) {
        TppDelete(Object);
    }
    return Taken;
}

/* With the object's lock. FALSE: there is something else to do first. */
static BOOLEAN TppBeginDelivered(PTPP_OBJECT Object, ULONG Result)
{
    if (Object->Priority == TP_CALLBACK_PRIORITY_LOW && TppHasBacklog(Object->Pool)) {
        Object->PendingTimeouts += Result == STATUS_TIMEOUT;
        TppAddPending(Object);
        return FALSE;
    }
    __atomic_fetch_add(&Object->State, TPP_RUNNING_ONE, __ATOMIC_ACQ_REL);
    return TRUE;
}

BOOLEAN TppArrive(PTPP_SOURCE Source, PULONG Result)
{
    PTPP_OBJECT Object = Source->Object;
    PVOID Dereference = NULL;
    BOOLEAN Begun = FALSE;
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    if (TppAcceptPacket(Source)) {
        *Result = Object->Type->Arrive(Object, Source, &Dereference);
        Begun = TppBeginDelivered(Object, *Result);
    }
    KiExitLocked(&Object->Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    TppDropHold(Object); /* the packet's */
    return Begun;
}

VOID TppFinish(PTPP_OBJECT Object)
{
    ULONG64 State = TppReadState(Object);
    ULONG64 New;
    BOOLEAN Wake;
    do {
        New = State - TPP_RUNNING_ONE;
        Wake = (New & TPP_WAITERS) && TppIsIdle(New);
        New += Wake ? TPP_HOLD_ONE : 0;
    } while (!TppChangeState(Object, &State, New));
    if (Wake) {
        PKTHREAD Thread = KiEnterLocked(&Object->Lock);
        TppReleaseWaiters(Object);
        KiExitLocked(&Object->Lock, Thread);
        TppDropHold(Object);
    } else if (New == TPP_CLOSED) {
        TppDelete(Object);
    }
}

/* The end. */

/* Cancelled: NULL, or what is pending is cancelled and counted there. */
static BOOLEAN TppCloseObject(PTPP_OBJECT Object, PULONG Cancelled)
{
    PKTHREAD Service = KiCurrentThread();
    PVOID Dereference = NULL;
    KiEnterService(Service);
    TppEnterPool(Object->Pool);
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    if (Object->Type->Collect != NULL) {
        Dereference = Object->Type->Collect(Object, TRUE);
    }
    if (Cancelled != NULL) {
        *Cancelled = TppCancelPending(Object);
    }
    ULONG64 State = __atomic_fetch_or(&Object->State, TPP_CLOSED, __ATOMIC_ACQ_REL);
    KiExitLocked(&Object->Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    TppDropHold(Object);
    KiExitService(Service);
    return (State & TPP_RUNNING_MASK) != 0;
}

VOID TppClose(PTPP_OBJECT Object)
{
    TppCloseObject(Object, NULL);
}

BOOLEAN TppCancelAndClose(PTPP_OBJECT Object, PULONG Cancelled)
{
    return TppCloseObject(Object, Cancelled);
}

/* In a forked child. */

/* What the callback of the thread that forked, if it is one of this object, still counts for. */
static ULONG64 TppStillCounted(PTPP_OBJECT Object)
{
    ULONG64 Count = 0;
    PLIST_ENTRY Head = &Object->Pool->WorkerListHead;
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head; Entry = Entry->Flink) {
        PTP_CALLBACK_INSTANCE Instance = &CONTAINING_RECORD(Entry, TPP_WORKER, Entry)->Instance;
        Count += Instance->Object == Object ? TPP_RUNNING_ONE : 0;
        Count += Instance->Held == Object ? TPP_HOLD_ONE : 0;
    }
    return Count;
}

BOOLEAN TppRepairObject(PTPP_OBJECT Object)
{
    ULONG64 State = TppReadState(Object) & ~(TPP_RUNNING_MASK | TPP_HOLD_MASK | TPP_WAITERS);
    State += TppStillCounted(Object);
    /* relaxed: nobody else uses the object before its pool is adopted */
    __atomic_store_n(&Object->State, State, __ATOMIC_RELAXED);
    InitializeListHead(&Object->WaiterListHead);
    if (Object->Type->Repair != NULL) {
        Object->Type->Repair(Object);
    }
    if ((State & TPP_LINKED) && Object->Task.Entry.Flink == NULL) {
        TppQueueTaskLocked(Object);
    }
    return TppReadState(Object) != TPP_CLOSED;
}
