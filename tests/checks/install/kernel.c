#include <ntddk.h>

#include <stdio.h>

int main(void)
{
    KEVENT event;
    LARGE_INTEGER poll;
    NTSTATUS before, after;

    poll.QuadPart = 0;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    before = KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &poll);
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
    after = KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    printf("%08x %08x\n", (unsigned)before, (unsigned)after);
    return before == STATUS_TIMEOUT && after == STATUS_SUCCESS ? 0 : 1;
}
