/* alert.c: alerts by thread id, for programs. */
#include <interlock/nt.h>

#include "../ke/ki.h"

NTSTATUS NtWaitForAlertByThreadId(PVOID Address, PLARGE_INTEGER Timeout)
{
    return KeWaitForAlertByThreadId(Address, Timeout);
}

/* A thread that has ended and whose object is still there takes the alert too, and nobody will ever see it. */
NTSTATUS NtAlertThreadByThreadId(HANDLE ThreadId)
{
    ULONG_PTR Id = (ULONG_PTR)ThreadId;
    if (Id == 0 || Id > MAXULONG) {
        return STATUS_INVALID_CID;
    }
    PKTHREAD Thread = KiLookupThreadById((ULONG)Id);
    if (Thread == NULL) {
        return HalIsThreadOfOtherProcess((ULONG)Id) ? STATUS_ACCESS_DENIED : STATUS_INVALID_CID;
    }
    KeAlertThreadById(Thread);
    return STATUS_SUCCESS;
}

NTSTATUS NtAlertThreadByThreadIdEx(HANDLE ThreadId, struct _RTL_SRWLOCK *Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return NtAlertThreadByThreadId(ThreadId);
}

NTSTATUS NtAlertMultipleThreadByThreadId(PHANDLE MultipleThreadId, ULONG Count, PVOID Boost, ULONG BoostCount)
{
    NTSTATUS First = STATUS_SUCCESS;
    UNREFERENCED_PARAMETER(Boost);
    UNREFERENCED_PARAMETER(BoostCount);
    if (MultipleThreadId == NULL && Count != 0) {
        return STATUS_ACCESS_VIOLATION;
    }
    for (ULONG Index = 0; Index < Count; Index += 1) {
        NTSTATUS Status = NtAlertThreadByThreadId(MultipleThreadId[Index]);
        if (NT_SUCCESS(First)) {
            First = Status;
        }
    }
    return First;
}
