/*
 * interrupt.c: a driver's interrupt service routine and its DPC, tested with a simulated device.
 *
 * KeFireInterrupt is the device. The levels are those of Windows: the service routine runs at the interrupt's own level
 * with its lock held, the DPC at DISPATCH_LEVEL, the test at PASSIVE_LEVEL.
 */
#include <ntddk.h>

#include <stdio.h>

#define DEVICE_VECTOR 0x51
#define DEVICE_LEVEL  5
#define INTERRUPTS    100

typedef struct _DEVICE {
    PKINTERRUPT Interrupt;
    KDPC Dpc;
    KEVENT Idle;
    LONG Register; /* the hardware register: bytes that have arrived; this and the next three under its lock */
    LONG Queued;   /* bytes that the service routine has seen */
    LONG Received; /* bytes that the DPC has passed on */
    KIRQL ServiceLevel;
    LONG DpcLevel; /* the DPC may run on two processors at a time */
} DEVICE, *PDEVICE;

static BOOLEAN DeviceService(PKINTERRUPT Interrupt, PVOID Context)
{
    PDEVICE Device = Context;
    (void)Interrupt;
    if (Device->Register == 0) {
        return FALSE; /* not ours */
    }
    Device->ServiceLevel = KeGetCurrentIrql();
    Device->Queued += Device->Register;
    Device->Register = 0;
    KeInsertQueueDpc(&Device->Dpc, NULL, NULL);
    return TRUE;
}

static BOOLEAN DeviceTake(PVOID Context)
{
    PDEVICE Device = Context;
    Device->Received += Device->Queued;
    Device->Queued = 0;
    return Device->Received == INTERRUPTS;
}

static VOID DeviceDpc(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    PDEVICE Device = Context;
    (void)Dpc;
    (void)Argument1;
    (void)Argument2;
    InterlockedExchange(&Device->DpcLevel, KeGetCurrentIrql());
    if (KeSynchronizeExecution(Device->Interrupt, DeviceTake, Device)) {
        KeSetEvent(&Device->Idle, IO_NO_INCREMENT, FALSE);
    }
}

static BOOLEAN TestArrive(PVOID Context)
{
    PDEVICE Device = Context;
    Device->Register++;
    return TRUE;
}

int main(void)
{
    static DEVICE Device;
    LARGE_INTEGER Minute = {.QuadPart = -60 * 10000000LL};
    NTSTATUS Status;
    KeInitializeDpc(&Device.Dpc, DeviceDpc, &Device);
    KeInitializeEvent(&Device.Idle, NotificationEvent, FALSE);
    if (!NT_SUCCESS(IoConnectInterrupt(&Device.Interrupt, DeviceService, &Device, NULL, DEVICE_VECTOR, DEVICE_LEVEL,
                                       DEVICE_LEVEL, LevelSensitive, FALSE, KeQueryActiveProcessors(), FALSE))) {
        return 1;
    }
    for (ULONG i = 0; i < INTERRUPTS; i++) {
        KeSynchronizeExecution(Device.Interrupt, TestArrive, &Device);
        KeFireInterrupt(Device.Interrupt, i % KeQueryActiveProcessorCount(NULL));
    }
    Status = KeWaitForSingleObject(&Device.Idle, Executive, KernelMode, FALSE, &Minute);
    IoDisconnectInterrupt(Device.Interrupt);
    KeFlushQueuedDpcs();
    printf("%d bytes of %d, service routine at level %d, DPC at level %d\n", (int)Device.Received, INTERRUPTS,
           Device.ServiceLevel, (int)Device.DpcLevel);
    return Status != STATUS_SUCCESS || Device.Received != INTERRUPTS;
}
