/*
 * tpobject.c: what all objects share (allocation, callbacks, waiting for them, closing), running a callback with its
 * completion actions, work objects, and cleanup groups. Theory in tpp.h.
 */
#include "tpp.h"

#include "../ke/timer.h"
#include "../ke/verifier.h"

/* acq_rel: the submitter's stores are visible in the callback, and the callback's to a thread that sees it ended */
static BOOLEAN TppChangeState(PTPP_OBJECT Object, ULONG64 *State, ULONG64 New)
{
    return __atomic_compare_exchange_n(&Object->State, State, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* relaxed: the compare-exchange that follows decides */
static ULONG64 TppReadState(PTPP_OBJECT Object)
{
    return __atomic_load_n(&Object->State, __ATOMIC_RELAXED);
}

/* Allocation and deletion. */

static NTSTATUS TppApplyEnviron(PTPP_OBJECT Object, PTP_CALLBACK_ENVIRON Environ)
{
    if (Environ->Version == 3) {
        if (Environ->Size < sizeof(*Environ) || (ULONG)Environ->CallbackPriority >= TP_CALLBACK_PRIORITY_INVALID) {
            return STATUS_INVALID_PARAMETER;
        }
        Object->Priority = (UCHAR)Environ->CallbackPriority;
    } else if (Environ->Version != 1) {
        return STATUS_INVALID_PARAMETER;
    }
    Object->Pool = Environ->Pool != NULL ? Environ->Pool : Object->Pool;
    Object->FinalizationCallback = Environ->FinalizationCallback;
    Object->LongFunction = Environ->u.s.LongFunction;
    Object->Persistent = Environ->u.s.Persistent;
    Object->CancelCallback = Environ->CleanupGroupCancelCallback;
    return STATUS_SUCCESS;
}

NTSTATUS TppAllocate(const TPP_TYPE *Type, TPP_EXECUTE *Execute, PVOID Callback, PVOID Context,
                     PTP_CALLBACK_ENVIRON Environ, PVOID *ObjectReturn)
{
    if (Callback == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    PTPP_OBJECT Object = HalAllocate(Type->Size, MEMORY_ALLOCATION_ALIGNMENT);
    if (Object == NULL) {
        return STATUS_NO_MEMORY;
    }
    Object->Type = Type;
    Object->Task.Kind = TppTaskPacket;
    Object->Pool = &TppDefaultPool;
    Object->Execute = Execute;
    Object->Callback = Callback;
    Object->Context = Context;
    Object->Priority = TP_CALLBACK_PRIORITY_NORMAL;
    InitializeListHead(&Object->WaiterListHead);
    NTSTATUS Status = Environ != NULL ? TppApplyEnviron(Object, Environ) : STATUS_SUCCESS;
    /* The object needs these threads. With them, submitting, setting and arming cannot fail. */
    if (NT_SUCCESS(Status) && Type->UsesClock) {
        Status = KiEnsureClock();
    }
    if (NT_SUCCESS(Status)) {
        TppEnterPool(Object->Pool);
        Status = TppStartMinimum(Object->Pool, 1);
    }
    if (!NT_SUCCESS(Status)) {
        HalFree(Object);
        return Status;
    }
    *ObjectReturn = Object;
    return STATUS_SUCCESS;
}

VOID TppIntroduce(PTPP_OBJECT Object, PTP_CALLBACK_ENVIRON Environ)
{
    PTP_POOL Pool = Object->Pool;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    __atomic_fetch_add(&Pool->References, 1, __ATOMIC_RELAXED); /* relaxed: the caller has one */
    InsertTailList(&Pool->ObjectListHead, &Object->PoolEntry);
    KiExitLocked(&Pool->Lock, Thread);
    if (Environ != NULL && Environ->CleanupGroup != NULL) {
        TppJoinGroup(Object, Environ->CleanupGroup);
    }
}

/* Only the lists still refer to the object. It leaves them in one dispatcher section: a forked child finds it in both
   and deletes it as well (TppRepairPool), or in neither. */
VOID TppDelete(PTPP_OBJECT Object)
{
    PTP_POOL Pool = Object->Pool;
    PTP_CLEANUP_GROUP Group = Object->Group;
    VOID (*Destroy)(PVOID) = Object->Destroy;
    PVOID DestroyContext = Object->DestroyContext;
    PKTHREAD Thread = KiEnterLocked(&Pool->Lock);
    RemoveEntryList(&Object->PoolEntry);
    KiReleaseLock(&Pool->Lock);
    BOOLEAN Kept = Group != NULL && TppLeaveGroup(Object);
    KiExitDispatcher(Thread);
    if (!Kept) {
        HalFree(Object);
    }
    if (Destroy != NULL) {
        Destroy(DestroyContext);
    }
    if (Group != NULL) {
        TppDropGroup(Group);
    }
    TppDropPool(Pool);
}

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

/*
 * Waiting until an object has no callbacks left.
 *
 * A waiter has no hold: a thread that is suspended while it waits must not keep the object. So the lists of waiters
 * have a lock that is not part of an object. A waiter whose thread is terminated takes that lock, and touches the
 * object only if it is still in the list: then the thread that empties the list has yet to do so and keeps the object
 * (4 in tpp.h).
 */

static KI_LOCK TppWaiterLock;

typedef struct _TPP_WAITER {
    LIST_ENTRY Entry;
    KEVENT Event;
} TPP_WAITER, *PTPP_WAITER;

/* With the object's lock. Wakes the waiters if no callback is pending or running. */
static VOID TppReleaseWaiters(PTPP_OBJECT Object)
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

/* With the object's lock; returns the number of callbacks cancelled. A callback that is added after the task was
   removed finds Linked still set, and is cancelled too. */
static ULONG TppCancelPending(PTPP_OBJECT Object)
{
    ULONG64 Linked = TppUnqueueTask(Object) ? TPP_LINKED : 0;
    ULONG64 State = __atomic_fetch_and(&Object->State, ~(TPP_PENDING_MASK | Linked), __ATOMIC_ACQ_REL);
    Object->PendingTimeouts = 0;
    TppReleaseWaiters(Object);
    return (ULONG)(State & TPP_PENDING_MASK);
}

VOID TppWaitForCallbacks(PTPP_OBJECT Object, BOOLEAN Cancel)
{
    PKTHREAD Service = KiCurrentThread();
    PVOID Dereference = NULL;
    TPP_WAITER Waiter;
    KiEnterService(Service);
    TppReadyPool(Object->Pool);
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    if (Object->Type->Collect != NULL) {
        Dereference = Object->Type->Collect(Object, FALSE);
    }
    if (Cancel) {
        TppCancelPending(Object);
    }
    /* acquire: pairs with the end of the callbacks, also if the state is found idle */
    ULONG64 State = __atomic_load_n(&Object->State, __ATOMIC_ACQUIRE);
    while (!TppIsIdle(State) && !__atomic_compare_exchange_n(&Object->State, &State, State | TPP_WAITERS, FALSE,
                                                             __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    BOOLEAN Wait = !TppIsIdle(State);
    if (Wait) {
        KeInitializeEvent(&Waiter.Event, NotificationEvent, FALSE);
        KiAcquireLock(&TppWaiterLock);
        InsertTailList(&Object->WaiterListHead, &Waiter.Entry);
        KiReleaseLock(&TppWaiterLock);
    }
    KiExitLocked(&Object->Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    TppDropHold(Object);
    if (Wait && KeWaitForSingleObject(&Waiter.Event, UserRequest, UserMode, FALSE, NULL) != STATUS_SUCCESS) {
        /* The thread is being terminated. */
        Thread = KiEnterLocked(&TppWaiterLock);
        if (!KeReadStateEvent(&Waiter.Event)) {
            RemoveEntryList(&Waiter.Entry);
        }
        KiExitLocked(&TppWaiterLock, Thread);
    }
    KiExitService(Service);
}

/* Callbacks are counted. */

BOOLEAN TppAddPending(PTPP_OBJECT Object, BOOLEAN PoolLocked)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 State = TppReadState(Object);
    /* A fork between the change of the state and the insertion would lose the task. */
    KiEnterDispatcher(Thread);
    do {
        if ((State & TPP_PENDING_MASK) == TPP_PENDING_MASK) {
            KiExitDispatcher(Thread);
            return FALSE;
        }
    } while (!TppChangeState(Object, &State, (State + TPP_PENDING_ONE) | TPP_LINKED));
    if (!(State & TPP_LINKED)) {
        TppQueueTask(Object, PoolLocked);
    }
    KiExitDispatcher(Thread);
    return TRUE;
}

/* The object's task is about to leave the queue, or has left it. Replaces: the callback takes over the place in Running of
   another one, which has ended. FALSE: none is pending. */
static BOOLEAN TppBegin(PTPP_OBJECT Object, BOOLEAN Replaces, ULONG64 *New)
{
    ULONG64 State = TppReadState(Object);
    ULONG64 Pending;
    do {
        Pending = State & TPP_PENDING_MASK;
        *New = State;
        if (Pending != 0) {
            *New += (Replaces ? 0 : TPP_RUNNING_ONE) - TPP_PENDING_ONE;
        }
        *New = Pending > 1 ? *New : *New & ~TPP_LINKED;
    } while (!TppChangeState(Object, &State, *New));
    return Pending != 0;
}

/*
 * Objects with sources have results, so their callback and its result are taken together under the lock: otherwise a
 * cancel in between would take the result. The lock needs a hold, since a cancel may have ended the task's claim.
 */
BOOLEAN TppTake(PTPP_OBJECT Object, PULONG Result)
{
    BOOLEAN HasSources = Object->Type->Collect != NULL;
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 New;

    KiEnterDispatcher(Thread);
    if (HasSources) {
        __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
        KiAcquireLock(&Object->Lock);
    }
    BOOLEAN Begun = TppBegin(Object, FALSE, &New);
    if (New & TPP_LINKED) {
        TppQueueTask(Object, FALSE);
    }
    *Result = STATUS_WAIT_0;
    if (HasSources) {
        if (Begun && Object->PendingTimeouts != 0) {
            Object->PendingTimeouts -= 1;
            *Result = STATUS_TIMEOUT;
        }
        KiReleaseLock(&Object->Lock);
    }
    KiExitDispatcher(Thread);
    if (HasSources) {
        TppDropHold(Object);
    } else if (New == TPP_CLOSED) {
        TppDelete(Object);
    }
    return Begun;
}

/* For KiTakeNextEntry: begins a callback of a task without sources while it is in the queue. TRUE: more are pending. */
BOOLEAN TppClaim(PLIST_ENTRY Entry, PVOID Context)
{
    PTPP_NEXT Next = Context;
    PTPP_PACKET Packet = CONTAINING_RECORD(Entry, TPP_PACKET, Entry);
    PTPP_OBJECT Object = CONTAINING_RECORD(Packet, TPP_OBJECT, Task);
    if (Packet->Kind != TppTaskPacket || Object->Type->Collect != NULL) {
        return FALSE;
    }
    Next->Claimed = Object;
    Next->Begun = TppBegin(Object, Object == Next->Ended, &Next->State);
    if (Next->Begun && Object == Next->Ended) {
        Next->Ended = NULL;
    }
    return (Next->State & TPP_LINKED) != 0;
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

VOID TppPutBack(PTPP_OBJECT Object, ULONG Result)
{
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    Object->PendingTimeouts += Result == STATUS_TIMEOUT;
    TppAddPending(Object, FALSE);
    KiExitLocked(&Object->Lock, Thread);
    TppFinish(Object);
}

/* Closing, and repair in a forked child. */

BOOLEAN TppClose(PTPP_OBJECT Object, TPP_CLOSER Closer)
{
    PKTHREAD Service = KiCurrentThread();
    PVOID Dereference = NULL;
    KiEnterService(Service);
    if (Closer == TppCancellingGroup) {
        TppEnterPool(Object->Pool);
    } else {
        TppReadyPool(Object->Pool); /* pending callbacks need a thread, also in a forked child */
    }
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    if (Object->Type->Collect != NULL) {
        Dereference = Object->Type->Collect(Object, TRUE);
    }
    if (Closer == TppCancellingGroup) {
        /* An open member counts as cancelled even if it has no callbacks. A callback that was submitted once has an
           object of its own, closed from the beginning: it is cancelled if it has not begun. */
        BOOLEAN WasOpen = !TppIsClosed(Object);
        Object->Cancelled = TppCancelPending(Object) != 0 || WasOpen;
    } else if (Closer == TppProgram) {
        Object->Released = TRUE;
    }
    ULONG64 State = __atomic_fetch_or(&Object->State, TPP_CLOSED, __ATOMIC_ACQ_REL);
    KiExitLocked(&Object->Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    TppDropHold(Object);
    KiExitService(Service);
    return !TppIsIdle(State);
}

BOOLEAN TppRepairObject(PTPP_OBJECT Object)
{
    ULONG64 State = TppReadState(Object) & ~(TPP_RUNNING_MASK | TPP_HOLD_MASK | TPP_WAITERS);
    PLIST_ENTRY Head = &Object->Pool->WorkerListHead;
    /* The callback that has forked still counts. */
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head; Entry = Entry->Flink) {
        PTP_CALLBACK_INSTANCE Instance = &CONTAINING_RECORD(Entry, TPP_WORKER, Entry)->Instance;
        State += Instance->Object == Object ? TPP_RUNNING_ONE : 0;
        State += Instance->Held == Object ? TPP_HOLD_ONE : 0;
    }
    /* relaxed: no other thread uses the object before its pool is adopted */
    __atomic_store_n(&Object->State, State, __ATOMIC_RELAXED);
    InitializeListHead(&Object->WaiterListHead);
    if (Object->Type->Repair != NULL) {
        Object->Type->Repair(Object);
    }
    if ((State & TPP_LINKED) && Object->Task.Entry.Flink == NULL) {
        TppQueueTask(Object, TRUE);
    }
    return TppReadState(Object) != TPP_CLOSED;
}

/* A callback runs. */

static VOID TppRequire(BOOLEAN Condition, NTSTATUS Status)
{
    if (!Condition) {
        RtlRaiseStatus(Status);
    }
}

/* The completion actions. What the callback owns is released before others learn that it has ended. */
static VOID TppComplete(PTP_CALLBACK_INSTANCE Instance)
{
    if (Instance->CriticalSection != NULL) {
        RtlLeaveCriticalSection(Instance->CriticalSection);
    }
    if (Instance->Mutex != NULL) {
        TppRequire(NT_SUCCESS(NtReleaseMutant(Instance->Mutex, NULL)),
                   STATUS_THREADPOOL_RELEASE_MUTEX_ON_COMPLETION_FAILED);
    }
    if (Instance->Semaphore != NULL) {
        TppRequire(NT_SUCCESS(NtReleaseSemaphore(Instance->Semaphore, (LONG)Instance->ReleaseCount, NULL)),
                   STATUS_THREADPOOL_RELEASE_SEMAPHORE_ON_COMPLETION_FAILED);
    }
    if (Instance->Event != NULL) {
        TppRequire(NT_SUCCESS(NtSetEvent(Instance->Event, NULL)), STATUS_THREADPOOL_SET_EVENT_ON_COMPLETION_FAILED);
    }
}

/* The callback has returned, or its thread has ended. Returns the object that still counts it in Running, or NULL. */
static PTPP_OBJECT TppLeaveCallback(PTP_CALLBACK_INSTANCE Instance)
{
    PTPP_OBJECT Held = Instance->Held;
    PTPP_OBJECT Object = Instance->Object;
    if (Held != NULL && Held->Type->Executed != NULL) {
        Held->Type->Executed(Held);
    }
    Instance->Held = NULL;
    Instance->Object = NULL;
    if (Held != NULL) {
        TppDropHold(Held);
    }
    return Object;
}

PTPP_OBJECT TppRunCallback(PTPP_WORKER Worker, PTPP_OBJECT Object, ULONG Result)
{
    PTP_CALLBACK_INSTANCE Instance = &Worker->Instance;
    PTP_SIMPLE_CALLBACK FinalizationCallback = Object->FinalizationCallback;
    PVOID Callback = Object->Callback;
    PVOID Context = Object->Context;
    PKTHREAD Thread = KiCurrentThread();
    KI_CALLBACK Noted;

    *Instance = (TP_CALLBACK_INSTANCE){.Worker = Worker, .Object = Object};
    if (Object->Type->Executed != NULL) {
        __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
        Instance->Held = Object;
    }
    Worker->Persistent |= Object->Persistent;
    if (Object->LongFunction) {
        TppRunUncounted(Worker);
    }
    KiExitService(Thread); /* the program's code, in which the thread may end */
    KiBeginCallback(Thread, &Noted);
    Object->Execute(Object, Instance, Result);
    if (FinalizationCallback != NULL) {
        FinalizationCallback(Instance, Context);
    }
    if (Thread->Irql != PASSIVE_LEVEL) {
        KeBugCheckEx(WORKER_THREAD_RETURNED_AT_BAD_IRQL, (ULONG_PTR)Callback, Thread->Irql, (ULONG_PTR)Context, 0);
    }
    if (Thread->BasePriorityIncrement != 0) {
        KeSetBasePriorityThread(Thread, 0);
    }
    TppComplete(Instance);
    KiEndCallback(Thread, &Noted, KiCallbackPool, Callback); /* after the completion actions in TppComplete */
    KiEnterService(Thread);
    TppReadyPool(Worker->Pool); /* the callback may have forked */
    return TppLeaveCallback(Instance);
}

VOID TppEndCallback(PTP_CALLBACK_INSTANCE Instance)
{
    PTPP_OBJECT Object = TppLeaveCallback(Instance);
    if (Object != NULL) {
        TppFinish(Object);
    }
}

/* Threads that wait for the object's callbacks no longer wait for this one. A release of its group still does: the
   callback holds the object, and so its place in the group, until it returns. */
VOID TpDisassociateCallback(PTP_CALLBACK_INSTANCE Instance)
{
    PKTHREAD Thread = KiCurrentThread();
    PTPP_OBJECT Object = Instance->Object;
    if (Object == NULL) {
        return;
    }
    KiEnterService(Thread);
    TppEnterPool(Instance->Worker->Pool); /* the callback may have forked: the waiters stayed behind */
    if (Instance->Held == NULL) {
        __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
        Instance->Held = Object;
    }
    Instance->Object = NULL;
    TppFinish(Object);
    KiExitService(Thread);
}

NTSTATUS TpCallbackMayRunLong(PTP_CALLBACK_INSTANCE Instance)
{
    return TppRunUncounted(Instance->Worker) ? STATUS_SUCCESS : STATUS_TOO_MANY_THREADS;
}

/* A callback may request one completion action of each kind. */
VOID TpCallbackSetEventOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Event)
{
    TppRequire(Event != NULL && Instance->Event == NULL, STATUS_INVALID_PARAMETER);
    Instance->Event = Event;
}

VOID TpCallbackReleaseSemaphoreOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Semaphore, ULONG ReleaseCount)
{
    TppRequire(Semaphore != NULL && Instance->Semaphore == NULL, STATUS_INVALID_PARAMETER);
    Instance->Semaphore = Semaphore;
    Instance->ReleaseCount = ReleaseCount;
}

VOID TpCallbackReleaseMutexOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Mutex)
{
    TppRequire(Mutex != NULL && Instance->Mutex == NULL, STATUS_INVALID_PARAMETER);
    Instance->Mutex = Mutex;
}

VOID TpCallbackLeaveCriticalSectionOnCompletion(PTP_CALLBACK_INSTANCE Instance, PRTL_CRITICAL_SECTION CriticalSection)
{
    TppRequire(CriticalSection != NULL && Instance->CriticalSection == NULL, STATUS_INVALID_PARAMETER);
    Instance->CriticalSection = CriticalSection;
}

/* TppComplete has nothing to do for it: modules are never unloaded here. */
VOID TpCallbackUnloadDllOnCompletion(PTP_CALLBACK_INSTANCE Instance, PVOID DllHandle)
{
    TppRequire(DllHandle != NULL && Instance->Library == NULL, STATUS_INVALID_PARAMETER);
    Instance->Library = DllHandle;
}

/* Work objects, and callbacks that are submitted once. */

static const TPP_TYPE TppWorkType = {.Size = sizeof(TP_WORK)};

static VOID TppExecuteWork(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    UNREFERENCED_PARAMETER(Result);
    ((PTP_WORK_CALLBACK)Object->Callback)(Instance, Object->Context, CONTAINING_RECORD(Object, TP_WORK, Object));
}

NTSTATUS TpAllocWork(PTP_WORK *WorkReturn, PTP_WORK_CALLBACK Callback, PVOID Context,
                     PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Work;
    KiEnterService(Thread);
    NTSTATUS Status = TppAllocate(&TppWorkType, TppExecuteWork, (PVOID)Callback, Context, CallbackEnviron, &Work);
    if (NT_SUCCESS(Status)) {
        *WorkReturn = Work;
        TppIntroduce(Work, CallbackEnviron);
    }
    KiExitService(Thread);
    return Status;
}

VOID TpPostWork(PTP_WORK Work)
{
    TppReadyPool(Work->Object.Pool);
    if (!TppAddPending(&Work->Object, FALSE)) {
        RtlRaiseStatus(STATUS_INTEGER_OVERFLOW);
    }
}

VOID TpWaitForWork(PTP_WORK Work, LOGICAL CancelPendingCallbacks)
{
    TppWaitForCallbacks(&Work->Object, CancelPendingCallbacks != FALSE);
}

VOID TpReleaseWork(PTP_WORK Work)
{
    TppClose(&Work->Object, TppProgram);
}

/* The object is closed, with its callback pending, before it joins its group: a concurrent release of the members
   cancels the callback or waits for it. Linked keeps the object until the task is queued. */
NTSTATUS TppSubmitOnce(TPP_EXECUTE *Execute, PVOID Callback, PVOID Context, PTP_CALLBACK_ENVIRON Environ)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Allocated;
    KiEnterService(Thread);
    NTSTATUS Status = TppAllocate(&TppWorkType, Execute, Callback, Context, Environ, &Allocated);
    if (NT_SUCCESS(Status)) {
        PTPP_OBJECT Object = Allocated;
        Object->State = TPP_CLOSED | TPP_LINKED | TPP_PENDING_ONE;
        TppReadyPool(Object->Pool);
        KiEnterDispatcher(Thread); /* a forked child finds it queued, or not at all */
        TppIntroduce(Object, Environ);
        TppQueueTask(Object, FALSE);
        KiExitDispatcher(Thread);
    }
    KiExitService(Thread);
    return Status;
}

static VOID TppExecuteSimple(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    UNREFERENCED_PARAMETER(Result);
    ((PTP_SIMPLE_CALLBACK)Object->Callback)(Instance, Object->Context);
}

NTSTATUS TpSimpleTryPost(PTP_SIMPLE_CALLBACK Callback, PVOID Context, PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    return TppSubmitOnce(TppExecuteSimple, (PVOID)Callback, Context, CallbackEnviron);
}

/*
 * Cleanup groups.
 *
 * An object is in a list of its group until it is deleted. So a group also waits for objects that were closed one by
 * one and still have a callback. A group lives as long as it is open or has objects.
 *
 * Releasing the members moves them one by one to the list of released objects and closes them. Each is held meanwhile;
 * the hold is taken under the group's lock, under which objects also leave, and an object that is being deleted cannot
 * be held. A released object leaves when its callbacks have ended, and the last one signals Emptied. An object that
 * joins during a release is released with the others, or stays a member that no thread waits for until it is closed.
 *
 * A cancel callback may free what the member's callbacks use, and a callback may close its own object. So cancel
 * callbacks are called after all callbacks of released objects have returned, and not for objects that the program has
 * closed by then. An object whose cancel callback is due leaves the list of released objects for the list of cancelled
 * ones; only its memory remains. The thread that released it removes it from there (Release identifies the thread) and
 * frees it before it calls the cancel callback. So if the thread ends in a cancel callback or while it waits, the
 * objects are still deleted, and the group frees the memory of those that remain in the list.
 *
 * In a forked child released objects become members again (ForkDepth): the thread that released them may not have
 * closed them yet. The next release there calls the remaining cancel callbacks.
 */

struct _TP_CLEANUP_GROUP {
    volatile LONG References;
    KI_LOCK Lock;
    ULONG ForkDepth; /* KiForkDepth at the last release */
    LIST_ENTRY MemberListHead;
    LIST_ENTRY ReleasedListHead;
    LIST_ENTRY CancelledListHead;
    ULONG LastRelease; /* numbers the releases that cancel; 0, of an object: whichever thread comes first */
    KEVENT Emptied;    /* signaled while ReleasedListHead is empty */
};

NTSTATUS TpAllocCleanupGroup(PTP_CLEANUP_GROUP *CleanupGroupReturn)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    PTP_CLEANUP_GROUP Group = HalAllocate(sizeof(*Group), __alignof__(*Group));
    if (Group != NULL) {
        Group->References = 1;
        Group->ForkDepth = KiForkDepth;
        InitializeListHead(&Group->MemberListHead);
        InitializeListHead(&Group->ReleasedListHead);
        InitializeListHead(&Group->CancelledListHead);
        KeInitializeEvent(&Group->Emptied, NotificationEvent, TRUE);
        *CleanupGroupReturn = Group;
    }
    KiExitService(Thread);
    return Group != NULL ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

VOID TppDropGroup(PTP_CLEANUP_GROUP Group)
{
    /* acq_rel: the free comes after every other thread's last access */
    if (__atomic_sub_fetch(&Group->References, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    while (!IsListEmpty(&Group->CancelledListHead)) {
        HalFree(CONTAINING_RECORD(RemoveHeadList(&Group->CancelledListHead), TPP_OBJECT, GroupEntry));
    }
    HalFree(Group);
}

VOID TpReleaseCleanupGroup(PTP_CLEANUP_GROUP CleanupGroup)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    TppDropGroup(CleanupGroup);
    KiExitService(Thread);
}

VOID TppJoinGroup(PTPP_OBJECT Object, PTP_CLEANUP_GROUP Group)
{
    Object->Group = Group;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    __atomic_fetch_add(&Group->References, 1, __ATOMIC_RELAXED); /* relaxed: the caller has one */
    InsertTailList(&Group->MemberListHead, &Object->GroupEntry);
    KiExitLocked(&Group->Lock, Thread);
}

BOOLEAN TppLeaveGroup(PTPP_OBJECT Object)
{
    PTP_CLEANUP_GROUP Group = Object->Group;
    BOOLEAN Kept = Object->Cancelled && !Object->Released && Object->CancelCallback != NULL;
    KiAcquireLock(&Group->Lock);
    RemoveEntryList(&Object->GroupEntry);
    if (Kept) {
        InsertTailList(&Group->CancelledListHead, &Object->GroupEntry);
    }
    if (IsListEmpty(&Group->ReleasedListHead)) {
        KeSetEvent(&Group->Emptied, 0, FALSE);
    }
    KiReleaseLock(&Group->Lock);
    return Kept;
}

/* In a forked child, with the group's lock. */
static VOID TppRepairGroup(PTP_CLEANUP_GROUP Group)
{
    PLIST_ENTRY Head = &Group->CancelledListHead;
    while (!IsListEmpty(&Group->ReleasedListHead)) {
        InsertTailList(&Group->MemberListHead, RemoveHeadList(&Group->ReleasedListHead));
    }
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head; Entry = Entry->Flink) {
        CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry)->Release = 0;
    }
    Group->ForkDepth = KiForkDepth;
    KeSetEvent(&Group->Emptied, 0, FALSE);
}

/* In a forked child, before any member is held: repairing a pool resets the holds of its objects. */
static VOID TppEnterPools(PTP_CLEANUP_GROUP Group)
{
    PTP_POOL Pool;
    do {
        PKTHREAD Thread = KiEnterLocked(&Group->Lock);
        if (Group->ForkDepth != KiForkDepth) {
            TppRepairGroup(Group);
        }
        PLIST_ENTRY Head = &Group->MemberListHead;
        Pool = NULL;
        for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Pool == NULL; Entry = Entry->Flink) {
            PTP_POOL Next = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry)->Pool;
            if (!TppIsPoolReady(Next)) {
                __atomic_fetch_add(&Next->References, 1, __ATOMIC_RELAXED); /* relaxed: the member has one */
                Pool = Next;
            }
        }
        KiExitLocked(&Group->Lock, Thread);
        if (Pool != NULL) {
            TppEnterPool(Pool);
            TppDropPool(Pool);
        }
    } while (Pool != NULL);
}

/* Moves a member to the released ones and holds it; NULL: there are none. */
static PTPP_OBJECT TppHoldNextMember(PTP_CLEANUP_GROUP Group, ULONG Release)
{
    PTPP_OBJECT Held = NULL;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    while (Held == NULL && !IsListEmpty(&Group->MemberListHead)) {
        PLIST_ENTRY Entry = RemoveHeadList(&Group->MemberListHead);
        PTPP_OBJECT Object = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry);
        InsertTailList(&Group->ReleasedListHead, Entry);
        KeClearEvent(&Group->Emptied);
        Object->Release = Release;
        Held = TppTryHold(Object) ? Object : NULL;
    }
    KiExitLocked(&Group->Lock, Thread);
    return Held;
}

/* Removes a cancelled object of this release from its list; NULL: there are none. */
static PTPP_OBJECT TppTakeCancelled(PTP_CLEANUP_GROUP Group, ULONG Release)
{
    PTPP_OBJECT Taken = NULL;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    PLIST_ENTRY Head = &Group->CancelledListHead;
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Taken == NULL; Entry = Entry->Flink) {
        PTPP_OBJECT Object = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry);
        if (Object->Release == Release || Object->Release == 0) {
            RemoveEntryList(Entry);
            Taken = Object;
        }
    }
    KiExitLocked(&Group->Lock, Thread);
    return Taken;
}

/* In a service, which it leaves for each callback: the thread may end in there. */
static VOID TppCallCancelled(PTP_CLEANUP_GROUP Group, ULONG Release, PVOID CleanupParameter)
{
    PKTHREAD Thread = KiCurrentThread();
    PTPP_OBJECT Object;
    while ((Object = TppTakeCancelled(Group, Release)) != NULL) {
        PTP_CLEANUP_GROUP_CANCEL_CALLBACK CancelCallback = Object->CancelCallback;
        PVOID Context = Object->Context;
        HalFree(Object);
        KiExitService(Thread);
        CancelCallback(Context, CleanupParameter);
        KiEnterService(Thread);
    }
}

VOID TpReleaseCleanupGroupMembers(PTP_CLEANUP_GROUP CleanupGroup, LOGICAL CancelPendingCallbacks,
                                  PVOID CleanupParameter)
{
    PKTHREAD Thread = KiCurrentThread();
    PTPP_OBJECT Object;
    KiEnterService(Thread);
    TppEnterPools(CleanupGroup);
    KiEnterLocked(&CleanupGroup->Lock);
    CleanupGroup->LastRelease += CleanupGroup->LastRelease != MAXULONG ? 1 : 2; /* never 0 */
    ULONG Release = CleanupGroup->LastRelease;
    KiExitLocked(&CleanupGroup->Lock, Thread);
    while ((Object = TppHoldNextMember(CleanupGroup, Release)) != NULL) {
        TppClose(Object, CancelPendingCallbacks ? TppCancellingGroup : TppGroup);
        TppDropHold(Object);
    }
    KiExitService(Thread);
    KeWaitForSingleObject(&CleanupGroup->Emptied, UserRequest, KernelMode, FALSE, NULL);
    if (CancelPendingCallbacks) {
        KiEnterService(Thread);
        TppCallCancelled(CleanupGroup, Release, CleanupParameter);
        KiExitService(Thread);
    }
}
