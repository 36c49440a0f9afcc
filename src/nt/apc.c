/*
 * apc.c: user APCs, and alerts by thread id.
 *
 * A special user APC does not wait until its thread waits alertably: it interrupts the thread wherever that is. Here it
 * would run inside a host signal, on top of whatever the program was doing, and the C library's heap and streams are
 * not async-signal-safe: the routine could not even allocate. So special user APCs are refused.
 */
#include "ntp.h"

#include "../ps/psp.h"

/* Frees the APC before its routine runs: the routine may queue another one, or never return. */
static VOID NtpFreeDeliveredApc(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext,
                                PVOID *SystemArgument1, PVOID *SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalRoutine);
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    HalFree(Apc);
}

static VOID NtpFreeApc(PKAPC Apc)
{
    HalFree(Apc);
}

static NTSTATUS NtpQueueApc(PETHREAD Thread, PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1, PVOID ApcArgument2,
                            PVOID ApcArgument3)
{
    if (PsIsSystemThread(Thread)) {
        return STATUS_INVALID_HANDLE;
    }
    PKAPC Apc = HalAllocate(sizeof(KAPC), MEMORY_ALLOCATION_ALIGNMENT);
    if (Apc == NULL) {
        return STATUS_NO_MEMORY;
    }
    KeInitializeApc(Apc, &Thread->Tcb, OriginalApcEnvironment, NtpFreeDeliveredApc, NtpFreeApc, ApcRoutine, UserMode,
                    ApcArgument1);
    if (!KeInsertQueueApc(Apc, ApcArgument2, ApcArgument3, 0)) {
        HalFree(Apc);
        return STATUS_UNSUCCESSFUL;
    }
    return STATUS_SUCCESS;
}

NTSTATUS NtQueueApcThreadEx2(HANDLE ThreadHandle, HANDLE ReserveHandle, ULONG ApcFlags, PPS_APC_ROUTINE ApcRoutine,
                             PVOID ApcArgument1, PVOID ApcArgument2, PVOID ApcArgument3)
{
    PVOID Thread;
    if ((ApcFlags & ~(ULONG)QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (ApcFlags != 0) {
        return STATUS_NOT_SUPPORTED;
    }
    if (ReserveHandle != NULL) {
        return STATUS_INVALID_HANDLE; /* reserve objects exist for completion packets only */
    }
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status =
        ObReferenceObjectByHandle(ThreadHandle, THREAD_SET_CONTEXT, *PsThreadType, UserMode, &Thread, NULL);
    if (NT_SUCCESS(Status)) {
        Status = NtpQueueApc(Thread, ApcRoutine, ApcArgument1, ApcArgument2, ApcArgument3);
        ObDereferenceObject(Thread);
    }
    return Status;
}

NTSTATUS NtQueueApcThreadEx(HANDLE ThreadHandle, HANDLE ReserveHandle, PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1,
                            PVOID ApcArgument2, PVOID ApcArgument3)
{
    BOOLEAN Special = ReserveHandle == QUEUE_USER_APC_SPECIAL_USER_APC;
    return NtQueueApcThreadEx2(ThreadHandle, Special ? NULL : ReserveHandle,
                               Special ? QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC : QUEUE_USER_APC_FLAGS_NONE, ApcRoutine,
                               ApcArgument1, ApcArgument2, ApcArgument3);
}

NTSTATUS NtQueueApcThread(HANDLE ThreadHandle, PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1, PVOID ApcArgument2,
                          PVOID ApcArgument3)
{
    return NtQueueApcThreadEx2(ThreadHandle, NULL, QUEUE_USER_APC_FLAGS_NONE, ApcRoutine, ApcArgument1, ApcArgument2,
                               ApcArgument3);
}

/* Alerts by thread id. */

NTSTATUS NtWaitForAlertByThreadId(PVOID Address, PLARGE_INTEGER Timeout)
{
    return KeWaitForAlertByThreadId(Address, Timeout);
}

static NTSTATUS NtpFindAlertTarget(HANDLE ThreadId, PKTHREAD *Thread)
{
    ULONG_PTR Id = (ULONG_PTR)ThreadId;
    if (Id == 0 || Id > MAXULONG) {
        return STATUS_INVALID_CID;
    }
    *Thread = KiLookupThreadById((ULONG)Id);
    if (*Thread == NULL) {
        return HalIsThreadOfOtherProcess((ULONG)Id) ? STATUS_ACCESS_DENIED : STATUS_INVALID_CID;
    }
    return STATUS_SUCCESS;
}

/* A thread that has ended takes the alert as long as its object exists; the alert is lost. */
NTSTATUS NtAlertThreadByThreadId(HANDLE ThreadId)
{
    PKTHREAD Thread;
    NTSTATUS Status = NtpFindAlertTarget(ThreadId, &Thread);
    if (NT_SUCCESS(Status)) {
        KeAlertThreadById(Thread);
    }
    return Status;
}

NTSTATUS NtAlertThreadByThreadIdEx(HANDLE ThreadId, struct _RTL_SRWLOCK *Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return NtAlertThreadByThreadId(ThreadId);
}

/* Alerts all of them or, if one id is bad, none. A thread that ends in between is skipped. */
NTSTATUS NtAlertMultipleThreadByThreadId(PHANDLE MultipleThreadId, ULONG Count, PVOID Boost, ULONG BoostCount)
{
    NTSTATUS Status = STATUS_SUCCESS;
    PKTHREAD Thread;
    UNREFERENCED_PARAMETER(Boost);
    UNREFERENCED_PARAMETER(BoostCount);
    if (MultipleThreadId == NULL && Count != 0) {
        return STATUS_ACCESS_VIOLATION;
    }
    for (ULONG Index = 0; Index < Count && NT_SUCCESS(Status); Index += 1) {
        Status = NtpFindAlertTarget(MultipleThreadId[Index], &Thread);
    }
    for (ULONG Index = 0; Index < Count && NT_SUCCESS(Status); Index += 1) {
        NtAlertThreadByThreadId(MultipleThreadId[Index]);
    }
    return Status;
}
