/* A driver for tests: its dispatch routine calls a function of the test. */
#ifndef INTERLOCK_TESTS_IO_H
#define INTERLOCK_TESTS_IO_H

#include "support.h"

#include <ntddk.h>

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, load, unload)
#define MINUTE 60

/* Called for every request but create, cleanup and close. */
static PDRIVER_DISPATCH on_request;
static PDRIVER_OBJECT driver;
static PDEVICE_OBJECT device;
static PFILE_OBJECT file;
static volatile LONG creates, cleanups, closes;

static inline NTSTATUS complete(PIRP irp, NTSTATUS status, ULONG_PTR information)
{
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = information;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

static NTSTATUS dispatch(PDEVICE_OBJECT target, PIRP irp)
{
    switch (IoGetCurrentIrpStackLocation(irp)->MajorFunction) {
    case IRP_MJ_CREATE:
        InterlockedIncrement(&creates);
        return complete(irp, STATUS_SUCCESS, 0);
    case IRP_MJ_CLEANUP:
        InterlockedIncrement(&cleanups);
        return complete(irp, STATUS_SUCCESS, 0);
    case IRP_MJ_CLOSE:
        InterlockedIncrement(&closes);
        return complete(irp, STATUS_SUCCESS, 0);
    default:
        return on_request(target, irp);
    }
}

static VOID driver_unload(PDRIVER_OBJECT self)
{
    while (self->DeviceObject != NULL)
        IoDeleteDevice(self->DeviceObject);
}

static NTSTATUS driver_entry(PDRIVER_OBJECT self, PUNICODE_STRING path)
{
    (void)path;
    self->DriverUnload = driver_unload;
    for (int i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        self->MajorFunction[i] = dispatch;
    return IoCreateDevice(self, 256, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
}

static inline int load(void **state)
{
    (void)state;
    watchdog_start(MINUTE);
    if (IoTestLoadDriver(driver_entry, "Test", &driver) != STATUS_SUCCESS)
        return 1;
    return IoTestOpen(device, &file) == STATUS_SUCCESS ? 0 : 1;
}

static inline int unload(void **state)
{
    NTSTATUS status;
    (void)state;
    IoTestClose(file);
    status = IoTestUnloadDriver(driver);
    watchdog_stop();
    return status == STATUS_SUCCESS ? 0 : 1;
}

#endif
