/* tplegacy.c: what the flags of the older interface mean, and how its objects end. */
#include "tplegacy.h"

#define RTLP_WAIT_FOR_CALLBACKS ((HANDLE)(LONG_PTR)-1)

NTSTATUS RtlpOpenCompletion(HANDLE Event, PRTLP_COMPLETION Completion)
{
    PVOID Object = NULL;
    NTSTATUS Status = STATUS_SUCCESS;
    Completion->Wait = Event == RTLP_WAIT_FOR_CALLBACKS;
    if (Event != NULL && !Completion->Wait) {
        Status = ObReferenceObjectByHandle(Event, EVENT_MODIFY_STATE, *ExEventObjectType, UserMode, &Object, NULL);
    }
    Completion->Event = Object;
    return Status;
}

VOID RtlpSignalCompletion(PKEVENT Event)
{
    if (Event != NULL) {
        KeSetEvent(Event, EVENT_INCREMENT, FALSE);
        ObDereferenceObject(Event);
    }
}

VOID RtlpFormatEnviron(PTP_CALLBACK_ENVIRON Environ, ULONG Flags)
{
    TpInitializeCallbackEnviron(Environ);
    Environ->u.s.LongFunction = (Flags & WT_EXECUTELONGFUNCTION) != 0;
    /* Whoever starts I/O needs its thread to stay: the thread's end would cancel it. */
    Environ->u.s.Persistent =
        (Flags & (WT_EXECUTEINPERSISTENTTHREAD | WT_EXECUTEINPERSISTENTIOTHREAD | WT_EXECUTEINIOTHREAD)) != 0;
    if (Flags & WT_EXECUTEINTIMERTHREAD) {
        Environ->Pool = &TppTimerThreadPool;
    } else if (Flags & WT_EXECUTEINWAITTHREAD) {
        Environ->Pool = &TppWaitThreadPool;
    }
}

NTSTATUS RtlpEndObject(PTPP_OBJECT Object, BOOLEAN Wait)
{
    ULONG Cancelled;
    if (!Wait) {
        return TppCancelAndClose(Object, &Cancelled) ? STATUS_PENDING : STATUS_SUCCESS;
    }
    TppEnterPool(Object->Pool);
    TppTryHold(Object); /* it was open until now */
    if (TppCancelAndClose(Object, &Cancelled)) {
        TppWaitForCallbacks(Object, FALSE);
    }
    TppDropHold(Object);
    return STATUS_SUCCESS;
}
