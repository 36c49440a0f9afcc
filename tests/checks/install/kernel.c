#include <ntddk.h>

#include <interlock/verifier.h>
#include <stdio.h>

static void release_nothing(void *resource)
{
    ExReleaseResourceLite((PERESOURCE)resource);
}

/* As a test of driver code uses the library. */
static int expects_bugchecks(void)
{
    ERESOURCE resource;
    VF_BUGCHECK stop;
    ULONG in_process, in_child;

    ExInitializeResourceLite(&resource);
    in_process = VfExpectBugCheck(release_nothing, &resource, &stop);
    in_child = VfExpectBugCheckInChild(release_nothing, &resource, NULL);
    VF_EXPECT_BUGCHECK(&stop) {
        release_nothing(&resource);
    }
    ExDeleteResourceLite(&resource);
    return in_process == RESOURCE_NOT_OWNED && in_child == RESOURCE_NOT_OWNED && stop.Code == RESOURCE_NOT_OWNED;
}

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
    return before == STATUS_TIMEOUT && after == STATUS_SUCCESS && expects_bugchecks() ? 0 : 1;
}
