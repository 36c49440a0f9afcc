/*
 * registeredwait.c: RtlRegisterWait. A wait object of the pool that is set again after each callback, so the callbacks
 * of one registration do not run side by side. It keeps the object it waits for: the handle may be closed.
 *
 * Deregistering cancels: a callback that has not begun by then never does, even if the object has been signaled and
 * consumed for it already. The program is told that no callback begins any more, not how often the object was signaled;
 * with a semaphore it may lose the one count that was in flight. Where that counts, SetThreadpoolWait(wait, NULL, NULL)
 * and a wait without cancelling keep it.
 */
#include "tplegacy.h"

typedef struct _RTLP_WAIT {
    PTP_WAIT Wait;
    WAITORTIMERCALLBACKFUNC Function;
    PVOID Context;
    PVOID Target;
    LARGE_INTEGER Timeout; /* relative; 0: at once, if Infinite is not set */
    BOOLEAN Infinite;
    BOOLEAN OnlyOnce;
    PKEVENT CompletionEvent;
} RTLP_WAIT, *PRTLP_WAIT;

static VOID RtlpStartWait(PRTLP_WAIT Registration)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    ObReferenceObject(Registration->Target);
    TppSetWaitTarget(Registration->Wait, Registration->Target, Registration->Infinite ? NULL : &Registration->Timeout);
    KiExitService(Thread);
}

static VOID RtlpWaitCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WAIT Wait, TP_WAIT_RESULT WaitResult)
{
    PRTLP_WAIT Registration = Context;
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Wait);
    Registration->Function(Registration->Context, WaitResult == STATUS_TIMEOUT);
    if (!Registration->OnlyOnce) {
        RtlpStartWait(Registration);
    }
}

static VOID RtlpDestroyWait(PVOID Context)
{
    PRTLP_WAIT Registration = Context;
    PKEVENT CompletionEvent = Registration->CompletionEvent;
    ObDereferenceObject(Registration->Target);
    HalFree(Registration);
    RtlpSignalCompletion(CompletionEvent);
}

/* Takes over the reference to Target, if it succeeds. */
static NTSTATUS RtlpCreateWait(PVOID Target, WAITORTIMERCALLBACKFUNC Function, PVOID Context, ULONG Flags,
                               PRTLP_WAIT *Created)
{
    TP_CALLBACK_ENVIRON Environ;
    PRTLP_WAIT Registration = HalAllocate(sizeof(*Registration), __alignof__(*Registration));
    if (Registration == NULL) {
        return STATUS_NO_MEMORY;
    }
    RtlpFormatEnviron(&Environ, Flags);
    NTSTATUS Status = TpAllocWait(&Registration->Wait, RtlpWaitCallback, Registration, &Environ);
    if (!NT_SUCCESS(Status)) {
        HalFree(Registration);
        return Status;
    }
    Registration->Wait->Object.Destroy = RtlpDestroyWait;
    Registration->Wait->Object.DestroyContext = Registration;
    Registration->Function = Function;
    Registration->Context = Context;
    Registration->Target = Target;
    Registration->OnlyOnce = (Flags & WT_EXECUTEONLYONCE) != 0;
    *Created = Registration;
    return Status;
}

static NTSTATUS RtlpRegisterWait(PHANDLE WaitHandle, HANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                                 ULONG Milliseconds, ULONG Flags)
{
    PRTLP_WAIT Registration;
    PVOID Target;
    NTSTATUS Status = TppReferenceTarget(Handle, &Target);
    if (!NT_SUCCESS(Status)) {
        return Status == STATUS_THREADPOOL_HANDLE_EXCEPTION ? STATUS_INVALID_PARAMETER_2 : Status;
    }
    Status = RtlpCreateWait(Target, Function, Context, Flags, &Registration);
    if (!NT_SUCCESS(Status)) {
        ObDereferenceObject(Target);
        return Status;
    }
    Registration->Infinite = Milliseconds == MAXULONG;
    Registration->Timeout.QuadPart = -(LONGLONG)Milliseconds * 10000;
    *WaitHandle = Registration; /* the callback may need it */
    RtlpStartWait(Registration);
    return Status;
}

NTSTATUS RtlRegisterWait(PHANDLE WaitHandle, HANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                         ULONG Milliseconds, ULONG Flags)
{
    return Function != NULL ? NTP_SERVICE(RtlpRegisterWait(WaitHandle, Handle, Function, Context, Milliseconds, Flags))
                            : STATUS_INVALID_PARAMETER;
}

static NTSTATUS RtlpDeregisterWait(PRTLP_WAIT Registration, HANDLE Event)
{
    RTLP_COMPLETION Completion;
    NTSTATUS Status = RtlpOpenCompletion(Event, &Completion);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Registration->CompletionEvent = Completion.Event;
    return RtlpEndObject(&Registration->Wait->Object, Completion.Wait);
}

NTSTATUS RtlDeregisterWaitEx(HANDLE WaitHandle, HANDLE Event)
{
    return WaitHandle != NULL ? NTP_SERVICE(RtlpDeregisterWait(WaitHandle, Event)) : STATUS_INVALID_HANDLE;
}

NTSTATUS RtlDeregisterWait(HANDLE WaitHandle)
{
    return RtlDeregisterWaitEx(WaitHandle, NULL);
}
