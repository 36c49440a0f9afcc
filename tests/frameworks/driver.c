/*
 * A test of a driver's routine, for `interlock faults`. Its argument selects the bug in the routine: none, leak (of the
 * first block if the second one fails), crash (a pointer that was not checked), hang, failing (also without a fault).
 */
#include <ntddk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG 0x76697244u

static const char *defect;

static int has(const char *name)
{
    return strcmp(defect, name) == 0;
}

static __attribute__((noinline)) NTSTATUS add_device(void)
{
    char *extension = ExAllocatePoolWithTag(NonPagedPool, 100, TAG), *buffer;

    if (extension == NULL)
        return STATUS_INSUFFICIENT_RESOURCES;
    buffer = ExAllocatePoolWithTag(PagedPool, 200, TAG);
    if (buffer == NULL && has("hang"))
        pause();
    if (buffer == NULL && !has("crash")) {
        if (!has("leak"))
            ExFreePoolWithTag(extension, TAG);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    buffer[0] = 1;
    ExFreePoolWithTag(buffer, TAG);
    ExFreePoolWithTag(extension, TAG);
    return STATUS_SUCCESS;
}

int main(int argc, char **argv)
{
    NTSTATUS status;

    defect = argc > 1 ? argv[1] : "none";
    status = add_device();
    printf("AddDevice: 0x%08x\n", (unsigned)status);
    return has("failing") || !NT_SUCCESS(status);
}
