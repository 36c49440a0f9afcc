/*
 * io.h: the I/O manager. Interrupt objects; their locks are in ke.h, which also has KeFireInterrupt. Work items. Packets of
 * completion ports, for drivers.
 */
#ifndef INTERLOCK_IO_H
#define INTERLOCK_IO_H

#include <interlock/descriptor.h>
#include <interlock/ke.h>
#include <interlock/workqueue.h>

INTERLOCK_BEGIN

NTKERNELAPI NTSTATUS IoConnectInterrupt(PKINTERRUPT *InterruptObject, PKSERVICE_ROUTINE ServiceRoutine,
                                        PVOID ServiceContext, PKSPIN_LOCK SpinLock, ULONG Vector, KIRQL Irql,
                                        KIRQL SynchronizeIrql, KINTERRUPT_MODE InterruptMode, BOOLEAN ShareVector,
                                        KAFFINITY ProcessorEnableMask, BOOLEAN FloatingSave);
NTKERNELAPI VOID IoDisconnectInterrupt(PKINTERRUPT InterruptObject);

/*
 * Work items of drivers, run by the threads of ExQueueWorkItem. The object is handed to the routine and not looked at.
 * A routine may free its item or queue it again.
 */

typedef struct _DEVICE_OBJECT *PDEVICE_OBJECT;
typedef struct _IO_WORKITEM *PIO_WORKITEM;
typedef VOID IO_WORKITEM_ROUTINE(PDEVICE_OBJECT DeviceObject, PVOID Context);
typedef IO_WORKITEM_ROUTINE *PIO_WORKITEM_ROUTINE;
typedef VOID IO_WORKITEM_ROUTINE_EX(PVOID IoObject, PVOID Context, PIO_WORKITEM IoWorkItem);
typedef IO_WORKITEM_ROUTINE_EX *PIO_WORKITEM_ROUTINE_EX;

NTKERNELAPI PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject);
NTKERNELAPI VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem);
NTKERNELAPI ULONG IoSizeofWorkItem(VOID);
NTKERNELAPI VOID IoInitializeWorkItem(PVOID IoObject, PIO_WORKITEM IoWorkItem);
NTKERNELAPI VOID IoUninitializeWorkItem(PIO_WORKITEM IoWorkItem);
NTKERNELAPI VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine,
                                 WORK_QUEUE_TYPE QueueType, PVOID Context);
NTKERNELAPI VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine,
                                   WORK_QUEUE_TYPE QueueType, PVOID Context);

/*
 * What NtRemoveIoCompletionEx does, for the port itself, to which the caller has a reference (ObReferenceObjectByHandle):
 * up to Count packets, the first of which is waited for as WaitMode, Alertable and Timeout say. The header of Windows
 * does not declare it; the parameters are those of the service, and the mode that a service takes from its caller. A port
 * is a KQUEUE.
 */
struct _FILE_IO_COMPLETION_INFORMATION;
NTKERNELAPI NTSTATUS IoRemoveIoCompletion(PKQUEUE IoCompletion,
                                          struct _FILE_IO_COMPLETION_INFORMATION *IoCompletionInformation, ULONG Count,
                                          PULONG NumEntriesRemoved, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout,
                                          BOOLEAN Alertable);

INTERLOCK_END

#endif
