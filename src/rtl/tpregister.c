/*
 * tpregister.c: registered waits. Each references the object it waits for: the handle may be closed.
 *
 * There are three ways to wait:
 *
 *   overlapping   a wait object that is armed again when its packet is served, before the callback runs. So each signal
 *                 begins a callback, whether or not the previous one has returned.
 *   one by one    a wait object that the callback sets again when it returns: for WT_EXECUTEINWAITTHREAD, where the
 *                 thread that waits runs the callback, and for objects whose state must be queried from the host.
 *   by a thread   for a mutex, which only a thread can own. The registration has a pool of one thread. It waits for the
 *                 mutex and runs the function itself, as the owner.
 */
#include "tpp.h"

/*
 * Of a wait for a mutex:
 *
 *   RTLP_STOPPING   the wait was deregistered: the function is no longer called
 *   RTLP_CALLING    the function runs
 *
 * Each is set by one thread, which sees in the same operation whether the other was set before. So the function begins
 * before the wait is deregistered, and deregistering reports it, or the function does not begin.
 */
#define RTLP_STOPPING 0x1
#define RTLP_CALLING  0x2

typedef struct _RTLP_WAIT {
    PTPP_OBJECT Object; /* a wait; or, of a mutex, work whose one callback lasts until the wait is deregistered */
    WAITORTIMERCALLBACKFUNC Function;
    PVOID Context;
    PVOID Target;
    LARGE_INTEGER Timeout; /* relative; ignored if Infinite */
    BOOLEAN Infinite;
    BOOLEAN OnlyOnce;
    BOOLEAN OneByOne;
    BOOLEAN ByThread;
    volatile ULONG Phase; /* if ByThread, as the next */
    KEVENT Stop;
    PKEVENT CompletionEvent;
} RTLP_WAIT, *PRTLP_WAIT;

/* With a wait object. */

static VOID RtlpStartWait(PRTLP_WAIT Registration)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    ObReferenceObject(Registration->Target);
    TppSetWaitTarget(CONTAINING_RECORD(Registration->Object, TP_WAIT, Object), Registration->Target,
                     Registration->Infinite ? NULL : &Registration->Timeout);
    KiExitService(Thread);
}

static VOID RtlpWaitCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WAIT Wait, TP_WAIT_RESULT WaitResult)
{
    PRTLP_WAIT Registration = Context;
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Wait);
    Registration->Function(Registration->Context, WaitResult == STATUS_TIMEOUT);
    if (!Registration->OnlyOnce && Registration->OneByOne) {
        RtlpStartWait(Registration);
    }
}

static NTSTATUS RtlpAllocateWait(PRTLP_WAIT Registration, PTP_CALLBACK_ENVIRON Environ)
{
    PTP_WAIT Wait;
    NTSTATUS Status = TpAllocWait(&Wait, RtlpWaitCallback, Registration, Environ);
    if (NT_SUCCESS(Status)) {
        Wait->Repeats = !Registration->OnlyOnce && !Registration->OneByOne;
        Wait->TimesOut = !Registration->Infinite;
        Wait->Interval = Registration->Timeout;
        Registration->Object = &Wait->Object;
    }
    return Status;
}

/* By a thread. */

/* In a service. TRUE: call the function. A thread that already owned the mutex, because the function did not release
   it, releases the additional ownership. So does a thread that must not call the function. */
static BOOLEAN RtlpMayCall(PRTLP_WAIT Registration, PKMUTANT Mutant, NTSTATUS Status, BOOLEAN WasOwner)
{
    BOOLEAN Acquired = Status == STATUS_WAIT_1 || Status == STATUS_ABANDONED_WAIT_0 + 1;
    if (!Acquired && Status != STATUS_TIMEOUT) {
        return FALSE;
    }
    /* acq_rel, as for every change of Phase: what one side did before is visible to the other */
    ULONG Phase = __atomic_fetch_or(&Registration->Phase, RTLP_CALLING, __ATOMIC_ACQ_REL);
    BOOLEAN Stopping = (Phase & RTLP_STOPPING) != 0;
    if (Acquired && (WasOwner || Stopping)) {
        KeReleaseMutant(Mutant, 0, FALSE, FALSE);
    }
    return !Stopping;
}

/* Waits once. TRUE: call the function. */
static BOOLEAN RtlpAwaitMutex(PRTLP_WAIT Registration, PKMUTANT Mutant, BOOLEAN OnlyStop, PBOOLEAN TimedOut)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Objects[] = {&Registration->Stop, Mutant};
    PLARGE_INTEGER Timeout = Registration->Infinite || OnlyStop ? NULL : &Registration->Timeout;
    BOOLEAN WasOwner = KiOwnsMutant(&Mutant->Header, Thread);
    KiEnterService(Thread);
    ULONG Count = OnlyStop ? 1 : ARRAYSIZE(Objects);
    NTSTATUS Status = KeWaitForMultipleObjects(Count, Objects, WaitAny, UserRequest, UserMode, FALSE, Timeout, NULL);
    BOOLEAN Call = RtlpMayCall(Registration, Mutant, Status, WasOwner);
    KiExitService(Thread); /* a terminated thread ends here */
    *TimedOut = Status == STATUS_TIMEOUT;
    return Call;
}

/* The thread ends with the registration. A mutex that it owns is abandoned then, but before any other thread can learn
   that the registration has ended. */
static VOID RtlpThreadCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WORK Work)
{
    PRTLP_WAIT Registration = Context;
    PKTHREAD Thread = KiCurrentThread();
    PKMUTANT Mutant = ObpDispatcherObject(Registration->Target);
    BOOLEAN Called = FALSE;
    BOOLEAN TimedOut;
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Work);
    while (!(__atomic_load_n(&Registration->Phase, __ATOMIC_ACQUIRE) & RTLP_STOPPING)) {
        if (RtlpAwaitMutex(Registration, Mutant, Called && Registration->OnlyOnce, &TimedOut)) {
            Registration->Function(Registration->Context, TimedOut);
            __atomic_fetch_and(&Registration->Phase, ~RTLP_CALLING, __ATOMIC_ACQ_REL);
            Called = TRUE;
        }
    }
    KiEnterService(Thread);
    if (KiOwnsMutant(&Mutant->Header, Thread)) {
        KeReleaseMutant(Mutant, 0, TRUE, FALSE);
    }
    KiExitService(Thread);
}

static NTSTATUS RtlpAllocateThread(PRTLP_WAIT Registration, PTP_CALLBACK_ENVIRON Environ)
{
    PTP_POOL Pool;
    PTP_WORK Work;
    NTSTATUS Status = TpAllocPool(&Pool, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    TpSetPoolMaxThreads(Pool, 1);
    Environ->Pool = Pool;
    KeInitializeEvent(&Registration->Stop, NotificationEvent, FALSE);
    Status = TpAllocWork(&Work, RtlpThreadCallback, Registration, Environ);
    if (NT_SUCCESS(Status)) {
        Registration->Object = &Work->Object;
    }
    TpReleasePool(Pool); /* it lives as long as the work object */
    return Status;
}

static NTSTATUS RtlpEndThreadWait(PRTLP_WAIT Registration, BOOLEAN Wait)
{
    ULONG Phase = __atomic_fetch_or(&Registration->Phase, RTLP_STOPPING, __ATOMIC_ACQ_REL);
    KeSetEvent(&Registration->Stop, 0, FALSE);
    NTSTATUS Status = RtlpEndObject(Registration->Object, Wait);
    return Phase & RTLP_CALLING ? Status : STATUS_SUCCESS;
}

/* Both. */

static VOID RtlpDestroyWait(PVOID Context)
{
    PRTLP_WAIT Registration = Context;
    PKEVENT CompletionEvent = Registration->CompletionEvent;
    ObDereferenceObject(Registration->Target);
    HalFree(Registration);
    RtlpSignalCompletion(CompletionEvent);
}

/* Takes over the reference to Target, if it succeeds. */
static NTSTATUS RtlpCreateWait(PRTLP_WAIT Description, ULONG Flags, PRTLP_WAIT *Created)
{
    TP_CALLBACK_ENVIRON Environ;
    PRTLP_WAIT Registration = HalAllocate(sizeof(*Registration), __alignof__(*Registration));
    if (Registration == NULL) {
        return STATUS_NO_MEMORY;
    }
    *Registration = *Description;
    RtlpFormatEnviron(&Environ, Flags);
    NTSTATUS Status =
        Registration->ByThread ? RtlpAllocateThread(Registration, &Environ) : RtlpAllocateWait(Registration, &Environ);
    if (!NT_SUCCESS(Status)) {
        HalFree(Registration);
        return Status;
    }
    Registration->Object->Destroy = RtlpDestroyWait;
    Registration->Object->DestroyContext = Registration;
    *Created = Registration;
    return Status;
}

static VOID RtlpBeginWaiting(PRTLP_WAIT Registration)
{
    if (Registration->ByThread) {
        TpPostWork(CONTAINING_RECORD(Registration->Object, TP_WORK, Object));
    } else {
        RtlpStartWait(Registration);
    }
}

NTSTATUS RtlRegisterWait(PHANDLE WaitHandle, HANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                         ULONG Milliseconds, ULONG Flags)
{
    PKTHREAD Thread = KiCurrentThread();
    PRTLP_WAIT Registration;
    RTLP_WAIT Description = {
        .Function = Function,
        .Context = Context,
        .Timeout.QuadPart = -(LONGLONG)Milliseconds * 10000,
        .Infinite = Milliseconds == MAXULONG,
        .OnlyOnce = (Flags & WT_EXECUTEONLYONCE) != 0,
        .OneByOne = (Flags & WT_EXECUTEINWAITTHREAD) != 0,
    };
    if (Function == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Thread);
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, UserMode, &Description.Target, NULL);
    if (NT_SUCCESS(Status)) {
        Description.ByThread = TppIsMutex(Description.Target);
        Description.OneByOne |= ObpHeaderOf(Description.Target)->Type->WaitProcedure != NULL;
        Status = RtlpCreateWait(&Description, Flags, &Registration);
        if (!NT_SUCCESS(Status)) {
            ObDereferenceObject(Description.Target);
        }
    }
    if (NT_SUCCESS(Status)) {
        *WaitHandle = Registration; /* before the wait is set: the callback may need it */
        RtlpBeginWaiting(Registration);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlDeregisterWaitEx(HANDLE WaitHandle, HANDLE Event)
{
    PKTHREAD Thread = KiCurrentThread();
    PRTLP_WAIT Registration = WaitHandle;
    PKEVENT CompletionEvent;
    BOOLEAN Wait;
    if (Registration == NULL) {
        return STATUS_INVALID_HANDLE;
    }
    KiEnterService(Thread);
    NTSTATUS Status = RtlpOpenCompletion(Event, &Wait, &CompletionEvent);
    if (NT_SUCCESS(Status)) {
        Registration->CompletionEvent = CompletionEvent;
        Status =
            Registration->ByThread ? RtlpEndThreadWait(Registration, Wait) : RtlpEndObject(Registration->Object, Wait);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlDeregisterWait(HANDLE WaitHandle)
{
    return RtlDeregisterWaitEx(WaitHandle, NULL);
}
