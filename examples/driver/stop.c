#include <ntddk.h>
#include <stdio.h>

typedef struct _DEVICE {
    KSPIN_LOCK Lock;
    KEVENT Idle;
    LONG Requests;
} DEVICE, *PDEVICE;

NTSTATUS DeviceStop(PDEVICE Device);

/* Waits until no request is left. The bug: it waits at DISPATCH_LEVEL, with the spinlock held. */
NTSTATUS DeviceStop(PDEVICE Device)
{
    NTSTATUS Status = STATUS_SUCCESS;
    KIRQL OldIrql;
    KeAcquireSpinLock(&Device->Lock, &OldIrql);
    if (Device->Requests != 0) {
        Status = KeWaitForSingleObject(&Device->Idle, Executive, KernelMode, FALSE, NULL);
    }
    KeReleaseSpinLock(&Device->Lock, OldIrql);
    return Status;
}

int main(void)
{
    DEVICE Device = {.Requests = 0};
    KeInitializeSpinLock(&Device.Lock);
    KeInitializeEvent(&Device.Idle, NotificationEvent, FALSE);
    fprintf(stderr, "idle: %08x\n", (unsigned)DeviceStop(&Device));
    Device.Requests = 1;
    fprintf(stderr, "busy: %08x\n", (unsigned)DeviceStop(&Device));
    return 0;
}
