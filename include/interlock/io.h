/*
 * io.h: the I/O manager. Interrupt objects, whose locks are in ke.h, work items, completion ports for drivers, and the
 * bridge between objects and file descriptors of Linux.
 */
#ifndef INTERLOCK_IO_H
#define INTERLOCK_IO_H

#include <interlock/ob.h>

INTERLOCK_BEGIN

/* Interrupts. Devices are simulated: KeFireInterrupt takes their place. */

/* Connects a service routine to a vector on some processors. Returns STATUS_INVALID_PARAMETER or
   STATUS_INSUFFICIENT_RESOURCES on failure. At PASSIVE_LEVEL. Differs: devices are simulated (KeFireInterrupt), on
   processors of group 0. Since NT 3.1. */
NTKERNELAPI NTSTATUS IoConnectInterrupt(PKINTERRUPT *InterruptObject, PKSERVICE_ROUTINE ServiceRoutine,
                                        PVOID ServiceContext, PKSPIN_LOCK SpinLock, ULONG Vector, KIRQL Irql,
                                        KIRQL SynchronizeIrql, KINTERRUPT_MODE InterruptMode, BOOLEAN ShareVector,
                                        KAFFINITY ProcessorEnableMask, BOOLEAN FloatingSave);

/* Blocks until the routine no longer runs and frees the object. At PASSIVE_LEVEL. Since NT 3.1. */
NTKERNELAPI VOID IoDisconnectInterrupt(PKINTERRUPT InterruptObject);

/* Registers of a device, which are memory of the test. Each access is made once, in the order of the program. */

#define INTERLOCK_READ_REGISTER(Name, Size)                                                                            \
    FORCEINLINE Size Name(volatile Size *Register)                                                                     \
    {                                                                                                                  \
        Size Value = *Register;                                                                                        \
        __atomic_thread_fence(__ATOMIC_ACQUIRE);                                                                       \
        return Value;                                                                                                  \
    }
#define INTERLOCK_WRITE_REGISTER(Name, Size)                                                                           \
    FORCEINLINE VOID Name(volatile Size *Register, Size Value)                                                         \
    {                                                                                                                  \
        __atomic_thread_fence(__ATOMIC_RELEASE);                                                                       \
        *Register = Value;                                                                                             \
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                                                                       \
    }
#define INTERLOCK_READ_REGISTERS(Name, Size)                                                                           \
    FORCEINLINE VOID Name(volatile Size *Register, Size *Buffer, ULONG Count)                                          \
    {                                                                                                                  \
        ULONG Index;                                                                                                   \
        for (Index = 0; Index < Count; Index++)                                                                        \
            Buffer[Index] = READ_REGISTER_##Size(&Register[Index]);                                                    \
    }
#define INTERLOCK_WRITE_REGISTERS(Name, Size)                                                                          \
    FORCEINLINE VOID Name(volatile Size *Register, Size *Buffer, ULONG Count)                                          \
    {                                                                                                                  \
        ULONG Index;                                                                                                   \
        for (Index = 0; Index < Count; Index++)                                                                        \
            WRITE_REGISTER_##Size(&Register[Index], Buffer[Index]);                                                    \
    }

/* Reads a register; what follows in the program is read later. Since NT 3.1. */
INTERLOCK_READ_REGISTER(READ_REGISTER_UCHAR, UCHAR)
INTERLOCK_READ_REGISTER(READ_REGISTER_USHORT, USHORT)
INTERLOCK_READ_REGISTER(READ_REGISTER_ULONG, ULONG)
INTERLOCK_READ_REGISTER(READ_REGISTER_ULONG64, ULONG64)

/* Writes a register; what precedes in the program is written before. Since NT 3.1. */
INTERLOCK_WRITE_REGISTER(WRITE_REGISTER_UCHAR, UCHAR)
INTERLOCK_WRITE_REGISTER(WRITE_REGISTER_USHORT, USHORT)
INTERLOCK_WRITE_REGISTER(WRITE_REGISTER_ULONG, ULONG)
INTERLOCK_WRITE_REGISTER(WRITE_REGISTER_ULONG64, ULONG64)

/* Reads Count registers, in ascending order. Since NT 3.1. */
INTERLOCK_READ_REGISTERS(READ_REGISTER_BUFFER_UCHAR, UCHAR)
INTERLOCK_READ_REGISTERS(READ_REGISTER_BUFFER_USHORT, USHORT)
INTERLOCK_READ_REGISTERS(READ_REGISTER_BUFFER_ULONG, ULONG)
INTERLOCK_READ_REGISTERS(READ_REGISTER_BUFFER_ULONG64, ULONG64)

/* Writes Count registers, in ascending order. Since NT 3.1. */
INTERLOCK_WRITE_REGISTERS(WRITE_REGISTER_BUFFER_UCHAR, UCHAR)
INTERLOCK_WRITE_REGISTERS(WRITE_REGISTER_BUFFER_USHORT, USHORT)
INTERLOCK_WRITE_REGISTERS(WRITE_REGISTER_BUFFER_ULONG, ULONG)
INTERLOCK_WRITE_REGISTERS(WRITE_REGISTER_BUFFER_ULONG64, ULONG64)

#undef INTERLOCK_READ_REGISTER
#undef INTERLOCK_WRITE_REGISTER
#undef INTERLOCK_READ_REGISTERS
#undef INTERLOCK_WRITE_REGISTERS

/* The stack of the calling thread. */

/* Stores the lowest address of the stack, and the one above its highest. Since 2000. */
NTKERNELAPI VOID IoGetStackLimits(PULONG_PTR LowLimit, PULONG_PTR HighLimit);

/* Returns how much of the stack is left. Since 2000. */
FORCEINLINE ULONG_PTR IoGetRemainingStackSize(VOID)
{
    ULONG_PTR low, high;
    IoGetStackLimits(&low, &high);
    return (ULONG_PTR)&low - low;
}

/* Returns TRUE if the region is in the stack. Since Vista. */
FORCEINLINE LOGICAL IoWithinStackLimits(ULONG_PTR RegionStart, SIZE_T RegionSize)
{
    ULONG_PTR low, high;
    IoGetStackLimits(&low, &high);
    return RegionStart >= low && RegionStart <= high && RegionSize <= high - RegionStart;
}

/*
 * Work items. Run by the threads of ExQueueWorkItem. The device or driver object is passed to the routine and referenced
 * from the queueing until the routine has returned. It may be NULL, or what a test has in its place: that is only passed. A routine may free its item or queue it again.
 */

typedef struct _DEVICE_OBJECT *PDEVICE_OBJECT;
typedef struct _IO_WORKITEM *PIO_WORKITEM;
typedef VOID IO_WORKITEM_ROUTINE(PDEVICE_OBJECT DeviceObject, PVOID Context);
typedef IO_WORKITEM_ROUTINE *PIO_WORKITEM_ROUTINE;
typedef VOID IO_WORKITEM_ROUTINE_EX(PVOID IoObject, PVOID Context, PIO_WORKITEM IoWorkItem);
typedef IO_WORKITEM_ROUTINE_EX *PIO_WORKITEM_ROUTINE_EX;

/* Allocates a work item; NULL if memory is exhausted. Since 2000. */
NTKERNELAPI PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject);

/* Frees a work item, also from its own routine. A queued item is a bugcheck. Since 2000. */
NTKERNELAPI VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem);

/* Returns the size of a work item in the caller's memory. Since Vista. */
NTKERNELAPI ULONG IoSizeofWorkItem(VOID);

/* Initializes and ends a work item in the caller's memory. Since Vista. */
NTKERNELAPI VOID IoInitializeWorkItem(PVOID IoObject, PIO_WORKITEM IoWorkItem);
NTKERNELAPI VOID IoUninitializeWorkItem(PIO_WORKITEM IoWorkItem);

/* Queues the item. Its routine gets the object and the context, and in the Ex form the item, at PASSIVE_LEVEL. Since 2000,
   Vista. */
NTKERNELAPI VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine,
                                 WORK_QUEUE_TYPE QueueType, PVOID Context);
NTKERNELAPI VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine,
                                   WORK_QUEUE_TYPE QueueType, PVOID Context);

/* Completion ports for drivers. A port is a KQUEUE; the services are in nt.h. */

struct _FILE_IO_COMPLETION_INFORMATION;

/* Removes packets as NtRemoveIoCompletionEx does, from a referenced port and in the mode that the caller gives.
   Differs: not declared by the headers of Windows: the parameters are those of the service and the wait mode. Since
   Vista. */
NTKERNELAPI NTSTATUS IoRemoveIoCompletion(PKQUEUE IoCompletion,
                                          struct _FILE_IO_COMPLETION_INFORMATION *IoCompletionInformation, ULONG Count,
                                          PULONG NumEntriesRemoved, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout,
                                          BOOLEAN Alertable);

/*
 * File descriptors. The bridge to Linux, also for programs that include windows.h. None of it exists on Windows.
 *
 * A descriptor as an object: a handle to wait on, alone or with others, that is signaled while the descriptor is ready
 * for one of the given events. The object keeps a duplicate; the original may be closed. As with poll(2), a satisfied
 * wait consumes nothing.
 *
 * An object as a descriptor: a descriptor for poll, epoll, io_uring or a library's event loop that becomes readable
 * when a wait on the object is satisfied. Interlock performs that wait, which consumes what a wait consumes: an
 * auto-reset event is reset, a semaphore is decremented. IoAcceptExport accepts it and starts the next wait; do not
 * read or write the descriptor itself. Closing the export closes the descriptor and returns what was not accepted.
 * Mutexes cannot be exported, since only a thread can own one.
 */

/* Events; errors and hang-ups are always reported. */
#define IO_DESCRIPTOR_READABLE 0x001
#define IO_DESCRIPTOR_URGENT 0x002
#define IO_DESCRIPTOR_WRITABLE 0x004
#define IO_DESCRIPTOR_FAILED 0x008
#define IO_DESCRIPTOR_CLOSED 0x010

#define IO_DESCRIPTOR_QUERY_STATE 0x0001
#define IO_DESCRIPTOR_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | IO_DESCRIPTOR_QUERY_STATE)
#define IO_EXPORT_ACCEPT 0x0001
#define IO_EXPORT_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | IO_EXPORT_ACCEPT)

/* Creates a handle that is signaled while a file descriptor is ready for one of Events. The object keeps a duplicate of
   the descriptor. Only in Interlock. */
NTKERNELAPI NTSTATUS IoCreateDescriptorObject(PHANDLE Handle, ACCESS_MASK DesiredAccess,
                                              POBJECT_ATTRIBUTES ObjectAttributes, int Descriptor, ULONG Events);

/* Stores which of its events are ready now, and the object's own descriptor; either pointer may be NULL. Returns
   STATUS_FILE_CLOSED if the program has closed that descriptor. Only in Interlock. */
NTKERNELAPI NTSTATUS IoQueryDescriptorObject(HANDLE Handle, PULONG ReadyEvents, int *Descriptor);

/* Creates a descriptor that becomes readable when a wait on the object is satisfied. Returns
   STATUS_OBJECT_TYPE_MISMATCH for a mutex. Only in Interlock. */
NTKERNELAPI NTSTATUS IoExportObject(HANDLE Object, PHANDLE Export, int *Descriptor);

/* Accepts the satisfied wait and starts the next one. Returns STATUS_TIMEOUT if it is not satisfied yet,
   STATUS_FILE_CLOSED if the program has closed the descriptor. Only in Interlock. */
NTKERNELAPI NTSTATUS IoAcceptExport(HANDLE Export);

INTERLOCK_END

#endif
