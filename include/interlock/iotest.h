/*
 * iotest.h: lets a test take the part of the I/O manager. The test loads a driver by its DriverEntry, opens a device,
 * sends requests as a program would, cancels them, and checks how they ended. None of it exists on Windows.
 *
 *     PDRIVER_OBJECT Driver;
 *     PFILE_OBJECT File;
 *     IO_STATUS_BLOCK Iosb;
 *     IoTestLoadDriver(DriverEntry, "Echo", &Driver);
 *     IoTestOpen(Driver->DeviceObject, &File);
 *     PIO_TEST_REQUEST Read = IoTestRead(File, Buffer, sizeof(Buffer), 0);
 *     IoTestCancel(Read);
 *     IoTestFinish(Read, &Iosb);
 *     IoTestClose(File);
 *     IoTestUnloadDriver(Driver);
 *
 * Requests come from user mode (RequestorMode), from the thread that sends them. Their buffers are passed as the device
 * and the control code require: buffered, direct, or neither.
 */
#ifndef INTERLOCK_IOTEST_H
#define INTERLOCK_IOTEST_H

#include <interlock/io.h>

INTERLOCK_BEGIN

typedef struct _IO_TEST_REQUEST *PIO_TEST_REQUEST;

/* Drivers. */

/* Creates a driver object \Driver\Name and calls DriverEntry with a registry path that ends in Name. Returns its status; after
   an error the driver object no longer exists, and a device that it has left behind is DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS.
   STATUS_OBJECT_NAME_COLLISION: a driver of that name is loaded. At PASSIVE_LEVEL. Only in Interlock. */
NTKERNELAPI NTSTATUS IoTestLoadDriver(PDRIVER_INITIALIZE DriverEntry, PCSTR Name, PDRIVER_OBJECT *DriverObject);

/* Calls DriverUnload and drops the driver object. Returns STATUS_INVALID_DEVICE_REQUEST if the driver has no such routine,
   STATUS_DEVICE_BUSY if one of its devices is open or has another one attached to it; then it stays. A device that
   DriverUnload leaves behind is DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS. At PASSIVE_LEVEL. Only in
   Interlock. */
NTKERNELAPI NTSTATUS IoTestUnloadDriver(PDRIVER_OBJECT DriverObject);

/* Opens a device, by its object or by its name or a link to it, with IRP_MJ_CREATE to the top of its stack. Returns the status of
   that; STATUS_NO_SUCH_DEVICE for one that is deleted, STATUS_ACCESS_DENIED for an exclusive one that is open. At PASSIVE_LEVEL.
   Only in Interlock. */
NTKERNELAPI NTSTATUS IoTestOpen(PDEVICE_OBJECT DeviceObject, PFILE_OBJECT *FileObject);
NTKERNELAPI NTSTATUS IoTestOpenByName(PUNICODE_STRING Name, PFILE_OBJECT *FileObject);

/* Closes it: IRP_MJ_CLEANUP and IRP_MJ_CLOSE. Needs no memory. At PASSIVE_LEVEL. Only in Interlock. */
NTKERNELAPI VOID IoTestClose(PFILE_OBJECT FileObject);

/* Requests. Each is finished once; until then any thread may cancel it. */

/* Sends a request and returns without waiting for it. NULL if memory is exhausted. IoTestSend sends a major function without
   parameters. At PASSIVE_LEVEL. Only in Interlock. */
NTKERNELAPI PIO_TEST_REQUEST IoTestRead(PFILE_OBJECT FileObject, PVOID Buffer, ULONG Length, LONGLONG Offset);
NTKERNELAPI PIO_TEST_REQUEST IoTestWrite(PFILE_OBJECT FileObject, PVOID Buffer, ULONG Length, LONGLONG Offset);
NTKERNELAPI PIO_TEST_REQUEST IoTestControl(PFILE_OBJECT FileObject, ULONG IoControlCode, PVOID Input, ULONG InputLength,
                                           PVOID Output, ULONG OutputLength);
NTKERNELAPI PIO_TEST_REQUEST IoTestSend(PFILE_OBJECT FileObject, UCHAR MajorFunction);

/* Cancels a request, as IoCancelIrp. Returns TRUE if a cancel routine was called. Only in Interlock. */
NTKERNELAPI BOOLEAN IoTestCancel(PIO_TEST_REQUEST Request);

/* Returns TRUE once the request is complete. Only in Interlock. */
NTKERNELAPI BOOLEAN IoTestIsDone(PIO_TEST_REQUEST Request);

/* Returns TRUE if the driver returned STATUS_PENDING. Only in Interlock. */
NTKERNELAPI BOOLEAN IoTestWasPended(PIO_TEST_REQUEST Request);

/* Returns the packet, to send or cancel in another way. Only in Interlock. */
NTKERNELAPI PIRP IoTestIrp(PIO_TEST_REQUEST Request);

/* Blocks until the request is complete; as KeWaitForSingleObject, STATUS_SUCCESS or STATUS_TIMEOUT. Only in Interlock. */
NTKERNELAPI NTSTATUS IoTestWait(PIO_TEST_REQUEST Request, PLARGE_INTEGER Timeout);

/* Blocks until the request is complete, frees it and returns its status; IoStatusBlock may be NULL. Only in Interlock. */
NTKERNELAPI NTSTATUS IoTestFinish(PIO_TEST_REQUEST Request, PIO_STATUS_BLOCK IoStatusBlock);

INTERLOCK_END

#endif
