/* tpcallback.c: a callback runs, and what it may ask for. */
#include "tpp.h"

static VOID TppRequire(BOOLEAN Condition, NTSTATUS Status)
{
    if (!Condition) {
        RtlRaiseStatus(Status);
    }
}

/* What was asked for happens in this order: what others may wait for comes after what the callback holds. */
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

/* The next callback finds the thread as this one found it. */
static VOID TppRestoreThread(PVOID Callback, PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Thread->Irql != PASSIVE_LEVEL) {
        KeBugCheckEx(WORKER_THREAD_RETURNED_AT_BAD_IRQL, (ULONG_PTR)Callback, Thread->Irql, (ULONG_PTR)Context, 0);
    }
    if (Thread->BasePriorityIncrement != 0) {
        KeSetBasePriorityThread(Thread, 0);
    }
}

static VOID TppBeginExecution(PTPP_WORKER Worker, PTPP_OBJECT Object)
{
    Worker->Instance = (TP_CALLBACK_INSTANCE){.Worker = Worker, .Object = Object};
    if (Object->Type->Executed != NULL) {
        __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
        Worker->Instance.Held = Object;
    }
    Worker->Persistent |= Object->Persistent;
    if (Object->LongFunction) {
        TppRunUncounted(Worker);
    }
}

VOID TppEndExecution(PTP_CALLBACK_INSTANCE Instance)
{
    PTPP_OBJECT Object = Instance->Held;
    if (Object != NULL) {
        Object->Type->Executed(Object);
        Instance->Held = NULL;
        TppDropHold(Object);
    }
}

/* Outside of the service that the worker is in: this is the program's, and perhaps the last that the thread does. */
static VOID TppExecute(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_SIMPLE_CALLBACK FinalizationCallback = Object->FinalizationCallback;
    PVOID Callback = Object->Callback;
    PVOID Context = Object->Context;
    PKTHREAD Thread = KiCurrentThread();

    KiExitService(Thread);
    Object->Type->Execute(Object, Instance, Result);
    if (FinalizationCallback != NULL) {
        FinalizationCallback(Instance, Context);
    }
    TppRestoreThread(Callback, Context);
    TppComplete(Instance);
    KiEnterService(Thread);
}

VOID TppRunCallback(PTPP_WORKER Worker, PTPP_OBJECT Object, ULONG Result)
{
    TppBeginExecution(Worker, Object);
    TppExecute(Object, &Worker->Instance, Result);
    TppReadyPool(Worker->Pool); /* the callback may have forked */
    TppEndExecution(&Worker->Instance);
    TpDisassociateCallback(&Worker->Instance);
}

VOID TpDisassociateCallback(PTP_CALLBACK_INSTANCE Instance)
{
    PKTHREAD Thread = KiCurrentThread();
    PTPP_OBJECT Object = Instance->Object;
    if (Object != NULL) {
        KiEnterService(Thread);
        Instance->Object = NULL;
        TppFinish(Object);
        KiExitService(Thread);
    }
}

NTSTATUS TpCallbackMayRunLong(PTP_CALLBACK_INSTANCE Instance)
{
    return TppRunUncounted(Instance->Worker) ? STATUS_SUCCESS : STATUS_TOO_MANY_THREADS;
}

/* One of each kind, and only something that is there. */
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

/* Nothing is done about it in the end: what can be a module here is never unloaded. */
VOID TpCallbackUnloadDllOnCompletion(PTP_CALLBACK_INSTANCE Instance, PVOID DllHandle)
{
    TppRequire(DllHandle != NULL && Instance->Library == NULL, STATUS_INVALID_PARAMETER);
    Instance->Library = DllHandle;
}
