/* exception.c: raising a status, and ending at once. */
#include <interlock/rtl.h>

#include "../ke/ki.h"

VOID RtlRaiseStatus(NTSTATUS Status)
{
    KiRaiseStatus(Status);
}

VOID RtlFailFast(ULONG Code)
{
    KeBugCheckEx(KERNEL_SECURITY_CHECK_FAILURE, Code, 0, 0, 0);
}
