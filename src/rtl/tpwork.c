/* tpwork.c: work objects, and callbacks that are submitted once and have no object to see. */
#include "tpp.h"

#include "../nt/ntp.h"

static VOID TppExecuteWork(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_WORK Work = CONTAINING_RECORD(Object, TP_WORK, Object);
    UNREFERENCED_PARAMETER(Result);
    ((PTP_WORK_CALLBACK)Object->Callback)(Instance, Object->Context, Work);
}

static VOID TppExecuteSimple(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    UNREFERENCED_PARAMETER(Result);
    ((PTP_SIMPLE_CALLBACK)Object->Callback)(Instance, Object->Context);
}

static const TPP_TYPE TppWorkType = {.Size = sizeof(TP_WORK), .Execute = TppExecuteWork};
static const TPP_TYPE TppSimpleType = {.Size = sizeof(TP_WORK), .Execute = TppExecuteSimple};

static NTSTATUS TppAllocateWork(PTP_WORK *WorkReturn, PTP_WORK_CALLBACK Callback, PVOID Context,
                                PTP_CALLBACK_ENVIRON Environ)
{
    PVOID Work;
    NTSTATUS Status = TppAllocate(&TppWorkType, (PVOID)Callback, Context, Environ, &Work);
    if (NT_SUCCESS(Status)) {
        *WorkReturn = Work;
        TppIntroduce(Work, Environ);
    }
    return Status;
}

NTSTATUS TpAllocWork(PTP_WORK *WorkReturn, PTP_WORK_CALLBACK Callback, PVOID Context,
                     PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    return NTP_SERVICE(TppAllocateWork(WorkReturn, Callback, Context, CallbackEnviron));
}

static VOID TppPost(PTPP_OBJECT Object)
{
    TppReadyPool(Object->Pool);
    if (!TppAddPending(Object)) {
        RtlRaiseStatus(STATUS_INTEGER_OVERFLOW);
    }
}

VOID TpPostWork(PTP_WORK Work)
{
    TppPost(&Work->Object);
}

VOID TpWaitForWork(PTP_WORK Work, LOGICAL CancelPendingCallbacks)
{
    TppWaitForCallbacks(&Work->Object, CancelPendingCallbacks != FALSE);
}

VOID TpReleaseWork(PTP_WORK Work)
{
    TppClose(&Work->Object);
}

/* The object is closed, with its callback pending, before its group has it: a concurrent release of the members cancels
   the callback or waits for it. Linked keeps the object until the task is queued. */
static VOID TppPostOnce(PTPP_OBJECT Object, PTP_CALLBACK_ENVIRON Environ)
{
    PKTHREAD Thread = KiCurrentThread();
    Object->State = TPP_CLOSED | TPP_LINKED | TPP_PENDING_ONE;
    TppReadyPool(Object->Pool);
    KiEnterDispatcher(Thread); /* a forked child finds it queued, or not at all */
    TppIntroduce(Object, Environ);
    TppQueueTask(Object);
    KiExitDispatcher(Thread);
}

static NTSTATUS TppSubmitInService(const TPP_TYPE *Type, PVOID Callback, PVOID Context, PTP_CALLBACK_ENVIRON Environ)
{
    PVOID Object;
    NTSTATUS Status = TppAllocate(Type, Callback, Context, Environ, &Object);
    if (NT_SUCCESS(Status)) {
        TppPostOnce(Object, Environ);
    }
    return Status;
}

NTSTATUS TppSubmitOnce(const TPP_TYPE *Type, PVOID Callback, PVOID Context, PTP_CALLBACK_ENVIRON Environ)
{
    return NTP_SERVICE(TppSubmitInService(Type, Callback, Context, Environ));
}

NTSTATUS TpSimpleTryPost(PTP_SIMPLE_CALLBACK Callback, PVOID Context, PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    return TppSubmitOnce(&TppSimpleType, (PVOID)Callback, Context, CallbackEnviron);
}
