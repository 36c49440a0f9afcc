/* information.c: what is known and can be set about a thread. */
#include "psp.h"

#include "../trace/trace.h"

#define PSP_HOST_NAME 16
#define PSP_REPLACEMENT '?'

/* The times of a thread that the host has no more are those that it wrote itself. */
VOID PspQueryTimes(PETHREAD Thread, PPSP_TIMES Times)
{
    PKTHREAD Tcb = &Thread->Tcb;
    PKTHREAD Current = KiCurrentThread();
    ULONG ThreadId;
    Times->CreateTime = Tcb->CreateTime;
    KiEnterDispatcher(Current);
    if (KiHoldHostThread(Tcb, &ThreadId)) {
        HalQueryThreadTimes(ThreadId, &Times->KernelTime, &Times->UserTime);
        KiReleaseHostThread(Tcb);
    } else {
        Times->KernelTime = Tcb->KernelTime;
        Times->UserTime = Tcb->UserTime;
    }
    KiExitDispatcher(Current);
    Times->ExitTime = PspHasEnded(Thread) ? Tcb->ExitTime : 0;
}

static BOOLEAN PspIsProgramThread(PKTHREAD Thread)
{
    /* relaxed, all: a moment's answer; a slot that is free or whose thread has ended does not count */
    return __atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) == KiSlotUsed &&
           __atomic_load_n(&Thread->State, __ATOMIC_RELAXED) != Terminated && !PsIsSystemThread((PETHREAD)Thread);
}

BOOLEAN PspIsLastThread(VOID)
{
    PKTHREAD Current = KiCurrentThread();
    PKTHREAD Thread;
    for (ULONG Slot = 0; (Thread = KiThreadFromNumber(Slot)) != NULL; Slot++) {
        if (Thread != Current && PspIsProgramThread(Thread)) {
            return FALSE;
        }
    }
    return TRUE;
}

static VOID PspLockName(PETHREAD Thread)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&Thread->NameLock);
}

static VOID PspUnlockName(PETHREAD Thread)
{
    ExReleasePushLockExclusive(&Thread->NameLock);
    KeLeaveCriticalRegion();
}

/* The host's tools show a few bytes; what is not ASCII would not survive being cut there. */
static VOID PspNameHostThread(PETHREAD Thread, PCUNICODE_STRING Name)
{
    CHAR Host[PSP_HOST_NAME];
    ULONG Length = 0;
    PKTHREAD Current = KiCurrentThread();
    ULONG ThreadId;
    while (Length < PSP_HOST_NAME - 1 && Length < Name->Length / sizeof(WCHAR)) {
        WCHAR Character = Name->Buffer[Length];
        Host[Length++] = Character >= ' ' && Character <= '~' ? (CHAR)Character : PSP_REPLACEMENT;
    }
    Host[Length] = '\0';
    KiEnterDispatcher(Current);
    if (KiHoldHostThread(&Thread->Tcb, &ThreadId)) {
        HalSetThreadName(ThreadId, Host);
        KTRACE_THREAD_NAME(&Thread->Tcb, Host); /* held: a thread that is terminated leaves the trace under this name */
        KiReleaseHostThread(&Thread->Tcb);
    }
    KiExitDispatcher(Current);
}

NTSTATUS PspSetName(PETHREAD Thread, PCUNICODE_STRING Name)
{
    UNICODE_STRING New = {Name->Length, Name->Length, NULL};
    PWSTR Old;
    if (Name->Length != 0) {
        New.Buffer = HalAllocate(Name->Length, sizeof(WCHAR));
        if (New.Buffer == NULL) {
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        memcpy(New.Buffer, Name->Buffer, Name->Length);
    }
    PspLockName(Thread);
    Old = Thread->ThreadName.Buffer;
    Thread->ThreadName = New;
    PspNameHostThread(Thread, &New);
    PspUnlockName(Thread);
    HalFree(Old);
    return STATUS_SUCCESS;
}

NTSTATUS PspQueryName(PETHREAD Thread, PWSTR Buffer, ULONG Room, PUSHORT Length)
{
    NTSTATUS Status = STATUS_BUFFER_TOO_SMALL;
    PspLockName(Thread);
    *Length = Thread->ThreadName.Length;
    if (*Length <= Room) {
        if (*Length != 0) {
            memcpy(Buffer, Thread->ThreadName.Buffer, *Length);
        }
        Status = STATUS_SUCCESS;
    }
    PspUnlockName(Thread);
    return Status;
}
