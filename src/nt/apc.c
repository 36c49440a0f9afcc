/*
 * apc.c: user APCs from user mode.
 *
 * A special user APC is one that need not wait until its thread waits alertably: it interrupts the thread wherever that
 * is. Here that would be in the middle of a host signal, on top of whatever the program was doing, and the C library's
 * heap and streams are not made for that: the routine could not even allocate. So it is refused.
 */
#include "thread.h"

/* The APC is freed as soon as what is to be called is known: its routine may queue another, or not return. */
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
    PKAPC Apc;
    if (PsIsSystemThread(Thread)) {
        return STATUS_INVALID_HANDLE;
    }
    Apc = HalAllocate(sizeof(KAPC), MEMORY_ALLOCATION_ALIGNMENT);
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
    PKTHREAD Current = KiCurrentThread();
    PETHREAD Thread;
    NTSTATUS Status;
    if ((ApcFlags & ~(ULONG)QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC) != 0 || ApcRoutine == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    if (ApcFlags != 0) {
        return STATUS_NOT_SUPPORTED;
    }
    if (ReserveHandle != NULL) {
        return STATUS_INVALID_HANDLE; /* reserve objects are for completion packets, none is for APCs */
    }
    KiEnterService(Current);
    Status = NtpReferenceThread(ThreadHandle, THREAD_SET_CONTEXT, &Thread);
    if (NT_SUCCESS(Status)) {
        Status = NtpQueueApc(Thread, ApcRoutine, ApcArgument1, ApcArgument2, ApcArgument3);
        ObDereferenceObject(Thread);
    }
    KiExitService(Current);
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
