/* system.c: the time, the resolution of the clock, and the threads of the process one by one. */
#include "ntp.h"

#include "../ps/psp.h"

#define NTP_COARSEST_RESOLUTION 156250u /* in 100 ns: NT's clock tick */
#define NTP_FINEST_RESOLUTION 5000u

/* What the process has requested in 100 ns; 0: nothing. The clock has the resolution of the host, whatever is here. */
static volatile ULONG NtpRequestedResolution;

NTSTATUS NtQuerySystemTime(PLARGE_INTEGER SystemTime)
{
    if (SystemTime == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KeQuerySystemTime(SystemTime);
    return STATUS_SUCCESS;
}

static ULONG NtpCurrentResolution(ULONG Requested)
{
    return Requested != 0 ? Requested : NTP_COARSEST_RESOLUTION;
}

NTSTATUS NtQueryTimerResolution(PULONG MaximumTime, PULONG MinimumTime, PULONG CurrentTime)
{
    if (MaximumTime == NULL || MinimumTime == NULL || CurrentTime == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    *MaximumTime = NTP_COARSEST_RESOLUTION;
    *MinimumTime = NTP_FINEST_RESOLUTION;
    /* relaxed: advisory only, publishes nothing */
    *CurrentTime = NtpCurrentResolution(__atomic_load_n(&NtpRequestedResolution, __ATOMIC_RELAXED));
    return STATUS_SUCCESS;
}

NTSTATUS NtSetTimerResolution(ULONG DesiredTime, BOOLEAN SetResolution, PULONG ActualTime)
{
    ULONG Wanted = DesiredTime < NTP_FINEST_RESOLUTION ? NTP_FINEST_RESOLUTION : DesiredTime;
    ULONG Before;
    if (ActualTime == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Wanted > NTP_COARSEST_RESOLUTION) {
        Wanted = NTP_COARSEST_RESOLUTION;
    }
    /* relaxed: as above */
    Before = __atomic_exchange_n(&NtpRequestedResolution, SetResolution ? Wanted : 0, __ATOMIC_RELAXED);
    *ActualTime = NtpCurrentResolution(SetResolution ? Wanted : 0);
    return SetResolution || Before != 0 ? STATUS_SUCCESS : STATUS_TIMER_RESOLUTION_NOT_SET;
}

/* A thread of the program in a slot from Number on, referenced; NULL: there is none. */
static PETHREAD NtpFindThreadFrom(ULONG Number)
{
    PETHREAD Thread;
    /* acquire: the slots below it are initialized */
    for (; Number < __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE); Number++) {
        PKTHREAD Slot = KiThreadFromNumber(Number);
        /* relaxed: the lookup decides whether there is such a thread */
        ULONG ThreadId = Slot != NULL ? __atomic_load_n(&Slot->ThreadId, __ATOMIC_RELAXED) : 0;
        if (ThreadId == 0 || !NT_SUCCESS(PsLookupThreadByThreadId(ULongToHandle(ThreadId), &Thread))) {
            continue;
        }
        if (&Thread->Tcb == Slot && !PsIsSystemThread(Thread) && !PsIsThreadTerminating(Thread)) {
            return Thread;
        }
        ObDereferenceObject(Thread);
    }
    return NULL;
}

static NTSTATUS NtpFindNextThread(HANDLE ThreadHandle, PETHREAD *Next)
{
    PVOID Before;
    NTSTATUS Status = STATUS_SUCCESS;
    ULONG Number = 0;
    if (ThreadHandle != NULL) {
        Status = ObReferenceObjectByHandle(ThreadHandle, 0, *PsThreadType, UserMode, &Before, NULL);
        if (!NT_SUCCESS(Status)) {
            return Status;
        }
        Number = KiSlotOfThread(&((PETHREAD)Before)->Tcb)->Number + 1;
        ObDereferenceObject(Before);
    }
    *Next = NtpFindThreadFrom(Number);
    return *Next != NULL ? STATUS_SUCCESS : STATUS_NO_MORE_ENTRIES;
}

NTSTATUS NtGetNextThread(HANDLE ProcessHandle, HANDLE ThreadHandle, ACCESS_MASK DesiredAccess, ULONG HandleAttributes,
                         ULONG Flags, PHANDLE NewThreadHandle)
{
    PVOID Process;
    PETHREAD Next;
    NTSTATUS Status;
    if (NewThreadHandle == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    *NewThreadHandle = NULL;
    if (Flags != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    NTP_SERVICE_UNTIL_RETURN();
    Status = ObReferenceObjectByHandle(ProcessHandle, PROCESS_QUERY_INFORMATION, *PsProcessType, UserMode, &Process,
                                       NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = Process == (PVOID)PsGetCurrentProcess() ? NtpFindNextThread(ThreadHandle, &Next) : STATUS_NOT_SUPPORTED;
    ObDereferenceObject(Process);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObOpenObjectByPointer(Next, HandleAttributes & ~(ULONG)OBJ_KERNEL_HANDLE, NULL, DesiredAccess,
                                   *PsThreadType, UserMode, NewThreadHandle);
    ObDereferenceObject(Next);
    return Status;
}
