/* process.c: the one process there is. */
#include "psp.h"

static POBJECT_TYPE PspProcessTypePointer = &ObpProcessType;

POBJECT_TYPE *PsProcessType = &PspProcessTypePointer;
PEPROCESS PsInitialSystemProcess = (PEPROCESS)&KiInitialProcess;

PEPROCESS PsGetCurrentProcess(VOID)
{
    return (PEPROCESS)KiCurrentThread()->Process;
}

HANDLE PsGetProcessId(PEPROCESS Process)
{
    return ULongToHandle(Process->Pcb.ProcessId);
}

HANDLE PsGetCurrentProcessId(VOID)
{
    return PsGetProcessId(PsGetCurrentProcess());
}
