/* raise.c: raising a status. */
#include <interlock/ex.h>

#include "../ke/ki.h"

VOID ExRaiseStatus(NTSTATUS Status)
{
    KiRaiseStatus(Status);
}

VOID ExRaiseAccessViolation(VOID)
{
    KiRaiseStatus(STATUS_ACCESS_VIOLATION);
}

VOID ExRaiseDatatypeMisalignment(VOID)
{
    KiRaiseStatus(STATUS_DATATYPE_MISALIGNMENT);
}
