/* descriptor.c: descriptors of the host: what is ready on them, and one that others can watch. */
#include "hal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

C_ASSERT(HAL_DESCRIPTOR_READABLE == POLLIN && HAL_DESCRIPTOR_READABLE == EPOLLIN);
C_ASSERT(HAL_DESCRIPTOR_WRITABLE == POLLOUT && HAL_DESCRIPTOR_WRITABLE == EPOLLOUT);
C_ASSERT(HAL_DESCRIPTOR_URGENT == POLLPRI && HAL_DESCRIPTOR_URGENT == EPOLLPRI);
C_ASSERT(HAL_DESCRIPTOR_FAILED == POLLERR && HAL_DESCRIPTOR_FAILED == EPOLLERR);
C_ASSERT(HAL_DESCRIPTOR_CLOSED == POLLHUP && HAL_DESCRIPTOR_CLOSED == EPOLLHUP);

LONG HalDuplicateDescriptor(LONG Descriptor)
{
    return fcntl(Descriptor, F_DUPFD_CLOEXEC, 0);
}

VOID HalCloseDescriptor(LONG Descriptor)
{
    close(Descriptor);
}

ULONG HalPollDescriptor(LONG Descriptor, ULONG Events)
{
    struct pollfd Poll = {.fd = Descriptor, .events = (short)Events};
    int Count;
    do {
        Count = poll(&Poll, 1, 0);
    } while (Count < 0 && errno == EINTR);
    return Count > 0 ? (ULONG)(USHORT)Poll.revents : 0;
}

LONG HalCreateDescriptorSet(VOID)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

NTSTATUS HalWatchDescriptor(LONG Set, LONG Descriptor, ULONG Events, ULONG64 Cookie)
{
    struct epoll_event Event = {.events = Events | EPOLLONESHOT, .data.u64 = Cookie};
    int Operation = EPOLL_CTL_MOD;
    while (epoll_ctl(Set, Operation, Descriptor, &Event) != 0) {
        if (errno == ENOENT) {
            Operation = EPOLL_CTL_ADD;
        } else if (errno == EEXIST) { /* another thread has just added it */
            Operation = EPOLL_CTL_MOD;
        } else {
            /* EPERM: a file or directory, which is ready at any time */
            return errno == EPERM ? STATUS_NOT_SUPPORTED : STATUS_INSUFFICIENT_RESOURCES;
        }
    }
    return STATUS_SUCCESS;
}

VOID HalForgetDescriptor(LONG Set, LONG Descriptor)
{
    epoll_ctl(Set, EPOLL_CTL_DEL, Descriptor, NULL);
}

ULONG HalWaitForDescriptors(LONG Set, PHAL_READY Ready, ULONG Count)
{
    struct epoll_event Events[HAL_MOST_READY];
    int Found = epoll_wait(Set, Events, (int)(Count < HAL_MOST_READY ? Count : HAL_MOST_READY), -1);
    for (int Index = 0; Index < Found; Index += 1) {
        Ready[Index].Cookie = Events[Index].data.u64;
        Ready[Index].Events = Events[Index].events;
    }
    return Found > 0 ? (ULONG)Found : 0;
}

LONG HalCreateSignalDescriptor(VOID)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

VOID HalSignalDescriptor(LONG Descriptor)
{
    (void)!eventfd_write(Descriptor, 1);
}

VOID HalDrainDescriptor(LONG Descriptor)
{
    eventfd_t Value;
    (void)!eventfd_read(Descriptor, &Value);
}
