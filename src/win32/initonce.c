/* initonce.c: one-time initialisation by its Win32 names. */
#include "base.h"

#include <interlock/win32/lock.h>

VOID InitOnceInitialize(PINIT_ONCE InitOnce)
{
    RtlRunOnceInitialize(InitOnce);
}

/* A program's routine, which returns a BOOL. */
typedef struct _BASE_INIT_ROUTINE {
    PINIT_ONCE_FN InitFn;
    PVOID Parameter;
} BASE_INIT_ROUTINE;

static ULONG BasepRunInitRoutine(PRTL_RUN_ONCE RunOnce, PVOID Parameter, PVOID *Context)
{
    BASE_INIT_ROUTINE *Routine = Parameter;
    return Routine->InitFn(RunOnce, Routine->Parameter, Context) != FALSE;
}

/* The last error of a routine that returns FALSE stays as the routine has set it. */
BOOL InitOnceExecuteOnce(PINIT_ONCE InitOnce, PINIT_ONCE_FN InitFn, PVOID Parameter, LPVOID *Context)
{
    BASE_INIT_ROUTINE Routine = {InitFn, Parameter};
    NTSTATUS Status = RtlRunOnceExecuteOnce(InitOnce, BasepRunInitRoutine, &Routine, Context);
    return Status != STATUS_UNSUCCESSFUL && BaseBoolStatus(Status);
}

BOOL InitOnceBeginInitialize(LPINIT_ONCE lpInitOnce, DWORD dwFlags, PBOOL fPending, LPVOID *lpContext)
{
    NTSTATUS Status = RtlRunOnceBeginInitialize(lpInitOnce, dwFlags, lpContext);
    if (NT_SUCCESS(Status)) {
        *fPending = Status == STATUS_PENDING;
    }
    return BaseBoolStatus(Status);
}

BOOL InitOnceComplete(LPINIT_ONCE lpInitOnce, DWORD dwFlags, LPVOID lpContext)
{
    return BaseBoolStatus(RtlRunOnceComplete(lpInitOnce, dwFlags, lpContext));
}
