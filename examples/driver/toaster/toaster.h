/*++

Module Name:

    toaster.h

Environment:

    Kernel mode

--*/

#ifndef TOASTER_H
#define TOASTER_H

#include <ntddk.h>

#define TOASTER_POOL_TAG    (ULONG)'saoT'
#define IOCTL_TOASTER_COUNT CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800, METHOD_BUFFERED, FILE_READ_DATA)

typedef struct _FDO_DATA {
    IO_REMOVE_LOCK RemoveLock;
    IO_CSQ Csq;
    LIST_ENTRY ReadQueue;
    KSPIN_LOCK QueueLock;
    KTIMER Timer;
    KDPC TimerDpc;
    PIO_WORKITEM WorkItem;
    volatile LONG Writes;
    BOOLEAN Removed;
} FDO_DATA, *PFDO_DATA;

EXTERN_C_START

DRIVER_INITIALIZE DriverEntry;
DRIVER_UNLOAD ToasterUnload;
DRIVER_STARTIO ToasterStartIo;
KDEFERRED_ROUTINE ToasterTimerDpc;
IO_DPC_ROUTINE ToasterDpcForIsr;
_Dispatch_type_(IRP_MJ_CREATE) _Dispatch_type_(IRP_MJ_CLOSE) DRIVER_DISPATCH ToasterCreateClose;
_Dispatch_type_(IRP_MJ_CLEANUP) DRIVER_DISPATCH ToasterCleanup;
DRIVER_DISPATCH ToasterRead, ToasterWrite, ToasterControl, ToasterPnp, ToasterPower;
IO_CSQ_INSERT_IRP ToasterInsertIrp;
IO_CSQ_REMOVE_IRP ToasterRemoveIrp;
IO_CSQ_PEEK_NEXT_IRP ToasterPeekNextIrp;
IO_CSQ_ACQUIRE_LOCK ToasterAcquireLock;
IO_CSQ_RELEASE_LOCK ToasterReleaseLock;
IO_CSQ_COMPLETE_CANCELED_IRP ToasterCompleteCanceledIrp;

EXTERN_C_END

#endif
