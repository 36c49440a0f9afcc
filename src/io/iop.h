/* iop.h: drivers, devices and requests. */
#ifndef INTERLOCK_IOP_H
#define INTERLOCK_IOP_H

#include <interlock/io.h>

#include "../ke/verifier.h"
#include "../ps/psp.h"

#define IOP_IRP_TAG 0x20707249u    /* "Irp " */
#define IOP_BUFFER_TAG 0x20206f49u /* "Io  " */
#define IOP_MDL_TAG 0x206c644du    /* "Mdl " */

#define IOP_MOST_LOCATIONS 126     /* of a packet, and of a stack: CurrentLocation is a CHAR, and may be one higher */

/* Kinds of DRIVER_VERIFIER_IOMANAGER_VIOLATION. */
#define IOP_FREED_NO_IRP 0x01
#define IOP_FREED_THREAD_IRP 0x02
#define IOP_SENT_NO_IRP 0x03
#define IOP_SENT_TO_NO_DEVICE 0x04
#define IOP_DISPATCH_CHANGED_IRQL 0x05
#define IOP_COMPLETED_PENDING 0x06
#define IOP_COMPLETED_CANCELABLE 0x07
#define IOP_TIMER_TWICE 0x0a
#define IOP_COMPLETED_ABOVE_DISPATCH 0x0e
#define IOP_SENT_ABOVE_DISPATCH 0x10
#define IOP_DELETED_IN_STACK 0x201
#define IOP_DETACHED_TWICE 0x202
#define IOP_SENT_CANCELABLE 0x203
#define IOP_FREED_IN_USE 0x20b
#define IOP_STATUS_DIFFERS 0x224
#define IOP_FORGOTTEN 0x226
#define IOP_PENDING_NOT_PROPAGATED 0x228
#define IOP_NOT_MARKED 0x23d
#define IOP_MARKED_NOT_RETURNED 0x23e
#define IOP_DELETED_TWICE 0x240

/* The common report: where it was detected, the packet, the device. */
DECLSPEC_NORETURN VOID IopStop(ULONG Kind, PVOID Routine, PIRP Irp, PDEVICE_OBJECT Device);

/*
 * A call of a dispatch routine, on the stack of the thread that makes it. If the thread completes the call's stack location
 * before the routine returns, it records here what the routine must return, since the packet may be freed by then.
 */
typedef struct _IOP_CALL {
    KI_CALL_FRAME Frame;
    PIRP Irp;
    USHORT Serial;       /* of the packet: another one may have got its memory */
    CHAR Location;
    BOOLEAN Completed;
    BOOLEAN Marked;      /* as pending; this and the next are valid if Completed */
    NTSTATUS Status;
} IOP_CALL, *PIOP_CALL;

/*
 * Two members that Windows does not document have a use here. AllocationProcessorNumber: a number that distinguishes
 * packets that have used the same memory. Reserved: the location of the sender that created the packet, 0 before it is
 * sent; below it the packet is with a driver.
 */
FORCEINLINE BOOLEAN IopIsWithDriver(PIRP Irp)
{
    return Irp->Reserved != 0 && Irp->CurrentLocation < (CHAR)Irp->Reserved;
}

/* Follows the driver's part of a device object. */
typedef struct _IOP_DEVICE {
    DEVOBJ_EXTENSION Public;
    PDEVICE_OBJECT AttachedTo;     /* this and the next under the database lock */
    BOOLEAN DeletePending;
    BOOLEAN DeferredStartIo;
    BOOLEAN NonCancelableStartIo;
    BOOLEAN ByKey;                 /* this and the next three: a deferred start, by the thread in StartIo */
    BOOLEAN Cancelable;
    ULONG StartIoKey;
    volatile LONG StartIoCount;
} IOP_DEVICE, *PIOP_DEVICE;

FORCEINLINE PIOP_DEVICE IopDeviceOf(PDEVICE_OBJECT Device)
{
    return CONTAINING_RECORD(Device->DeviceObjectExtension, IOP_DEVICE, Public);
}

/* The stacks of devices and the lists of drivers. */
FORCEINLINE KIRQL IopLockDatabase(VOID)
{
    return KeAcquireQueuedSpinLock(LockQueueIoDatabaseLock);
}

FORCEINLINE VOID IopUnlockDatabase(KIRQL OldIrql)
{
    KeReleaseQueuedSpinLock(LockQueueIoDatabaseLock, OldIrql);
}

/* device.c */
extern OBJECT_TYPE IopDeviceType;
extern OBJECT_TYPE IopDriverType;
extern OBJECT_TYPE IopFileType;
NTSTATUS IopCreateDriver(PCUNICODE_STRING Name, PDRIVER_INITIALIZE DriverEntry, PDRIVER_OBJECT *DriverObject);
VOID IopOpenDevice(PDEVICE_OBJECT Device, LONG Change); /* counts file objects; the last one deletes a device marked for
                                                           deletion */

/* irp.c. With the cancel spinlock held, which the routine releases at Irql. Callback: of before it was acquired. */
VOID IopCallCancelRoutine(PDRIVER_CANCEL Routine, PDEVICE_OBJECT Device, PIRP Irp, KIRQL Irql,
                          const KI_CALLBACK *Callback);

/* device.c */
VOID IopFreeTimer(PDEVICE_OBJECT Device);

/* irp.c */
VOID IopFreeBuffers(PIRP Irp);     /* MDLs, unlocked, and a system buffer that the I/O manager allocated */
VOID IopCopyToRequester(PIRP Irp); /* what a buffered request has read */
PIRP IopBuildTransfer(ULONG MajorFunction, PDEVICE_OBJECT Device, PVOID Buffer, ULONG Length, PLARGE_INTEGER Offset);
PIRP IopBuildControl(ULONG Code, PDEVICE_OBJECT Device, PVOID Input, ULONG InputLength, PVOID Output,
                     ULONG OutputLength, BOOLEAN Internal);
VOID IopDiscardIrp(PIRP Irp);      /* built and never sent */

/* irp.c */
VOID IopQueueToThread(PIRP Irp);   /* of the calling thread, which it is delivered to */

#endif
