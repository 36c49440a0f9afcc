/* context.c: the registers of a suspended thread. */
#include "ntp.h"

#include <interlock/exception.h>

#include "../ps/psp.h"

static NTSTATUS NtpAccessContext(HANDLE ThreadHandle, ACCESS_MASK Access, PCONTEXT Context, BOOLEAN Write)
{
    PETHREAD Thread;
    NTSTATUS Status;
    if (Context == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    NTP_SERVICE_UNTIL_RETURN();
    Status = ObReferenceObjectByHandle(ThreadHandle, Access, *PsThreadType, UserMode, (PVOID *)&Thread, NULL);
    if (NT_SUCCESS(Status)) {
        Status = PspHasEnded(Thread) ? STATUS_THREAD_IS_TERMINATING : KiAccessRegisters(&Thread->Tcb, Context, Write);
        ObDereferenceObject(Thread);
    }
    return Status;
}

NTSTATUS NtGetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext)
{
    return NtpAccessContext(ThreadHandle, THREAD_GET_CONTEXT, ThreadContext, FALSE);
}

NTSTATUS NtSetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext)
{
    return NtpAccessContext(ThreadHandle, THREAD_SET_CONTEXT, ThreadContext, TRUE);
}
