/* system.c: the time, the resolution of the clock, the enumeration of the process's threads, and the events for scarce memory. */
#include "../ex/exp.h"
#include "../ps/psp.h"
#include "ntp.h"

NTSTATUS NtQuerySystemTime(PLARGE_INTEGER SystemTime)
{
    if (SystemTime == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KeQuerySystemTime(SystemTime);
    return STATUS_SUCCESS;
}

NTSTATUS NtQueryTimerResolution(PULONG MaximumTime, PULONG MinimumTime, PULONG CurrentTime)
{
    if (MaximumTime == NULL || MinimumTime == NULL || CurrentTime == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    ExQueryTimerResolution(MaximumTime, MinimumTime, CurrentTime);
    return STATUS_SUCCESS;
}

NTSTATUS NtSetTimerResolution(ULONG DesiredTime, BOOLEAN SetResolution, PULONG ActualTime)
{
    if (ActualTime == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    return ExpSetProcessResolution(DesiredTime, SetResolution, ActualTime) || SetResolution
               ? STATUS_SUCCESS
               : STATUS_TIMER_RESOLUTION_NOT_SET;
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

/*
 * The events for scarce and for plentiful memory, \KernelObjects\LowMemoryCondition and
 * HighMemoryCondition. win32/system.c decides when they are set. Not in sync.c: a program that is linked with
 * the static library and uses nothing of this file has no such objects.
 */

static NTSTATUS NtpInitializeMemoryEvent(PVOID Object, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KeInitializeEvent(Object, NotificationEvent, FALSE);
    return STATUS_SUCCESS;
}

static UNICODE_STRING NtpMemoryNames[] = {
    RTL_CONSTANT_STRING(u"\\KernelObjects\\LowMemoryCondition"),
    RTL_CONSTANT_STRING(u"\\KernelObjects\\HighMemoryCondition"),
};
static OBP_SYSTEM_OBJECT NtpMemoryConditions[RTL_NUMBER_OF(NtpMemoryNames)];

static VOID NtpRegisterMemoryConditions(VOID)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(NtpMemoryConditions); Index += 1) {
        NtpMemoryConditions[Index].Path = NtpMemoryNames[Index].Buffer;
        NtpMemoryConditions[Index].Blueprint =
            (OBP_BLUEPRINT){*ExEventObjectType, sizeof(KEVENT), NtpInitializeMemoryEvent, NULL};
        ObpRegisterSystemObject(&NtpMemoryConditions[Index]);
    }
}
KI_INITIALIZER(KiInitializeServices, NtpRegisterMemoryConditions);

NTSTATUS NtpOpenMemoryCondition(BOOLEAN High, ACCESS_MASK DesiredAccess, PHANDLE Event)
{
    OBJECT_ATTRIBUTES Attributes;
    InitializeObjectAttributes(&Attributes, &NtpMemoryNames[High], 0, NULL, NULL);
    return NtOpenEvent(Event, DesiredAccess, &Attributes);
}
