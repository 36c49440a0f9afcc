/* exception.c: raising exceptions and statuses, and ending at once. */
#include <interlock/rtl.h>

#include "../ke/ki.h"

VOID RtlRaiseStatus(NTSTATUS Status)
{
    KiRaiseStatus(Status);
}

/* More parameters than a record has room for cannot have been meant. */
VOID RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord)
{
    EXCEPTION_RECORD Record = *ExceptionRecord;
    if (Record.NumberParameters > EXCEPTION_MAXIMUM_PARAMETERS) {
        Record.NumberParameters = EXCEPTION_MAXIMUM_PARAMETERS;
    }
    Record.ExceptionAddress = __builtin_return_address(0);
    KiRaiseException(&Record);
}

VOID RtlFailFast(ULONG Code)
{
    KeBugCheckEx(KERNEL_SECURITY_CHECK_FAILURE, Code, 0, 0, 0);
}
