#include <ntddk.h>
#include <stdio.h>

typedef struct _DEVICE {
    FAST_MUTEX StateLock; /* Started */
    FAST_MUTEX QueueLock; /* Requests */
    BOOLEAN Started;
    LONG Requests;
} DEVICE, *PDEVICE;

BOOLEAN DeviceSubmit(PDEVICE Device);
LONG DeviceStop(PDEVICE Device);

/* The state must not change until the request is in the queue. */
BOOLEAN DeviceSubmit(PDEVICE Device)
{
    ExAcquireFastMutex(&Device->StateLock);
    BOOLEAN Started = Device->Started;
    if (Started) {
        ExAcquireFastMutex(&Device->QueueLock);
        Device->Requests += 1;
        ExReleaseFastMutex(&Device->QueueLock);
    }
    ExReleaseFastMutex(&Device->StateLock);
    return Started;
}

/* The bug: the same locks, in the other order. A thread that stops the device and one that submits a request deadlock
   if they run at the same time, which is rare. The verifier does not need that, nor even two threads. */
LONG DeviceStop(PDEVICE Device)
{
    ExAcquireFastMutex(&Device->QueueLock);
    LONG Requests = Device->Requests;
    Device->Requests = 0;
    ExAcquireFastMutex(&Device->StateLock);
    Device->Started = FALSE;
    ExReleaseFastMutex(&Device->StateLock);
    ExReleaseFastMutex(&Device->QueueLock);
    return Requests;
}

static DEVICE Device = {.Started = TRUE};

int main(void)
{
    ExInitializeFastMutex(&Device.StateLock);
    ExInitializeFastMutex(&Device.QueueLock);
    fprintf(stderr, "submitted: %d\n", DeviceSubmit(&Device));
    fprintf(stderr, "canceled: %d\n", (int)DeviceStop(&Device));
    return 0;
}
