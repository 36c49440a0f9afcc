/* driver.c: code under test that calls kernel functions, compiled unchanged */
#include "driver.h"

int driver_finish(PKEVENT event)
{
    PVOID memory = ExAllocatePoolWithTag(NonPagedPool, 64, DRIVER_TAG);
    if (memory == NULL) {
        return DRIVER_NO_MEMORY;
    }
    ExFreePoolWithTag(memory, DRIVER_TAG);
    KeSetEvent(event, 0, FALSE);
    return KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS ? DRIVER_DONE
                                                                                               : DRIVER_NOT_SIGNALED;
}

int driver_notify(HANDLE event, RTL_CRITICAL_SECTION *section)
{
    NTSTATUS status;
    RtlEnterCriticalSection(section);
    status = NtSetEvent(event, NULL);
    RtlLeaveCriticalSection(section);
    return status == STATUS_SUCCESS ? DRIVER_DONE : DRIVER_NOT_SIGNALED;
}
