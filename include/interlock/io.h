/*
 * io.h: the I/O manager. Interrupt objects, whose locks are in ke.h, work items, requests, completion ports for drivers, and
 * the bridge between objects and file descriptors of Linux.
 *
 * Requests: driver and device objects, request packets with their completion and cancel paths, cancel-safe queues, remove
 * locks, StartIo, memory descriptor lists. Names, structures and semantics are those of Windows. A test plays the I/O manager:
 * it loads a driver by its DriverEntry, sends requests and cancels them (IoTestLoadDriver and the functions below it). There is no plug and play, power management,
 * registry or file system. The rules that Driver Verifier's I/O verification checks are always checked, with its bugchecks
 * (DRIVER_VERIFIER_IOMANAGER_VIOLATION).
 */
#ifndef INTERLOCK_IO_H
#define INTERLOCK_IO_H

#include <interlock/ps.h>

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

/* Device registers, which are memory of the test. Each access is performed exactly once, in program order. */

#define INTERLOCK_READ_REGISTER(Name, Size)                                                                            \
    FORCEINLINE Size Name(volatile Size *Register)                                                                     \
    {                                                                                                                  \
        return __atomic_load_n(Register, __ATOMIC_ACQUIRE); /* before what follows */                                  \
    }
#define INTERLOCK_WRITE_REGISTER(Name, Size)                                                                           \
    FORCEINLINE VOID Name(volatile Size *Register, Size Value)                                                         \
    {                                                                                                                  \
        __atomic_store_n(Register, Value, __ATOMIC_SEQ_CST); /* a full barrier, as on Windows */                       \
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

/* Reads a register, before anything that follows in the program. Since NT 3.1. */
INTERLOCK_READ_REGISTER(READ_REGISTER_UCHAR, UCHAR)
INTERLOCK_READ_REGISTER(READ_REGISTER_USHORT, USHORT)
INTERLOCK_READ_REGISTER(READ_REGISTER_ULONG, ULONG)
INTERLOCK_READ_REGISTER(READ_REGISTER_ULONG64, ULONG64)

/* Writes a register, after everything that precedes in the program. Since NT 3.1. */
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
    PVOID here = __builtin_frame_address(0);
    ULONG_PTR low, high;
    IoGetStackLimits(&low, &high);
    return (ULONG_PTR)here - low;
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
 * from the queueing until the routine has returned. It may be NULL, or whatever a test uses instead: the library only
 * passes it on. A routine may free its item or queue it again.
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
   Differs: the headers of Windows do not declare it; the parameters are those of the service and the wait mode. Since
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

struct _DEVICE_OBJECT;
struct _DRIVER_OBJECT;
struct _FILE_OBJECT;
struct _IRP;
struct _IO_STACK_LOCATION;

/* Types of structures, in their first member. */
#define IO_TYPE_DEVICE 3
#define IO_TYPE_DRIVER 4
#define IO_TYPE_FILE 5
#define IO_TYPE_IRP 6
#define IO_TYPE_TIMER 9
#define IO_TYPE_DEVICE_OBJECT_EXTENSION 13
#define IO_TYPE_CSQ_IRP_CONTEXT 1
#define IO_TYPE_CSQ 2
#define IO_TYPE_CSQ_EX 3

#define IRP_MJ_CREATE 0x00
#define IRP_MJ_CREATE_NAMED_PIPE 0x01
#define IRP_MJ_CLOSE 0x02
#define IRP_MJ_READ 0x03
#define IRP_MJ_WRITE 0x04
#define IRP_MJ_QUERY_INFORMATION 0x05
#define IRP_MJ_SET_INFORMATION 0x06
#define IRP_MJ_QUERY_EA 0x07
#define IRP_MJ_SET_EA 0x08
#define IRP_MJ_FLUSH_BUFFERS 0x09
#define IRP_MJ_QUERY_VOLUME_INFORMATION 0x0a
#define IRP_MJ_SET_VOLUME_INFORMATION 0x0b
#define IRP_MJ_DIRECTORY_CONTROL 0x0c
#define IRP_MJ_FILE_SYSTEM_CONTROL 0x0d
#define IRP_MJ_DEVICE_CONTROL 0x0e
#define IRP_MJ_INTERNAL_DEVICE_CONTROL 0x0f
#define IRP_MJ_SCSI 0x0f
#define IRP_MJ_SHUTDOWN 0x10
#define IRP_MJ_LOCK_CONTROL 0x11
#define IRP_MJ_CLEANUP 0x12
#define IRP_MJ_CREATE_MAILSLOT 0x13
#define IRP_MJ_QUERY_SECURITY 0x14
#define IRP_MJ_SET_SECURITY 0x15
#define IRP_MJ_POWER 0x16
#define IRP_MJ_SYSTEM_CONTROL 0x17
#define IRP_MJ_DEVICE_CHANGE 0x18
#define IRP_MJ_QUERY_QUOTA 0x19
#define IRP_MJ_SET_QUOTA 0x1a
#define IRP_MJ_PNP 0x1b
#define IRP_MJ_PNP_POWER 0x1b
#define IRP_MJ_MAXIMUM_FUNCTION 0x1b

/* IO_STACK_LOCATION.MinorFunction: plug and play, power and WMI, for drivers that pass such requests down the stack. */
#define IRP_MN_START_DEVICE 0x00
#define IRP_MN_QUERY_REMOVE_DEVICE 0x01
#define IRP_MN_REMOVE_DEVICE 0x02
#define IRP_MN_CANCEL_REMOVE_DEVICE 0x03
#define IRP_MN_STOP_DEVICE 0x04
#define IRP_MN_QUERY_STOP_DEVICE 0x05
#define IRP_MN_CANCEL_STOP_DEVICE 0x06
#define IRP_MN_QUERY_DEVICE_RELATIONS 0x07
#define IRP_MN_QUERY_INTERFACE 0x08
#define IRP_MN_QUERY_CAPABILITIES 0x09
#define IRP_MN_QUERY_RESOURCES 0x0A
#define IRP_MN_QUERY_RESOURCE_REQUIREMENTS 0x0B
#define IRP_MN_QUERY_DEVICE_TEXT 0x0C
#define IRP_MN_FILTER_RESOURCE_REQUIREMENTS 0x0D
#define IRP_MN_READ_CONFIG 0x0F
#define IRP_MN_WRITE_CONFIG 0x10
#define IRP_MN_EJECT 0x11
#define IRP_MN_SET_LOCK 0x12
#define IRP_MN_QUERY_ID 0x13
#define IRP_MN_QUERY_PNP_DEVICE_STATE 0x14
#define IRP_MN_QUERY_BUS_INFORMATION 0x15
#define IRP_MN_DEVICE_USAGE_NOTIFICATION 0x16
#define IRP_MN_SURPRISE_REMOVAL 0x17
#define IRP_MN_DEVICE_ENUMERATED 0x19
#define IRP_MN_WAIT_WAKE 0x00
#define IRP_MN_POWER_SEQUENCE 0x01
#define IRP_MN_SET_POWER 0x02
#define IRP_MN_QUERY_POWER 0x03
#define IRP_MN_QUERY_ALL_DATA 0x00
#define IRP_MN_QUERY_SINGLE_INSTANCE 0x01
#define IRP_MN_CHANGE_SINGLE_INSTANCE 0x02
#define IRP_MN_CHANGE_SINGLE_ITEM 0x03
#define IRP_MN_ENABLE_EVENTS 0x04
#define IRP_MN_DISABLE_EVENTS 0x05
#define IRP_MN_ENABLE_COLLECTION 0x06
#define IRP_MN_DISABLE_COLLECTION 0x07
#define IRP_MN_REGINFO 0x08
#define IRP_MN_EXECUTE_METHOD 0x09
#define IRP_MN_REGINFO_EX 0x0b

/* IRP.Flags */
#define IRP_NOCACHE 0x00000001
#define IRP_PAGING_IO 0x00000002
#define IRP_MOUNT_COMPLETION 0x00000002
#define IRP_SYNCHRONOUS_API 0x00000004
#define IRP_ASSOCIATED_IRP 0x00000008
#define IRP_BUFFERED_IO 0x00000010
#define IRP_DEALLOCATE_BUFFER 0x00000020
#define IRP_INPUT_OPERATION 0x00000040
#define IRP_SYNCHRONOUS_PAGING_IO 0x00000040
#define IRP_CREATE_OPERATION 0x00000080
#define IRP_READ_OPERATION 0x00000100
#define IRP_WRITE_OPERATION 0x00000200
#define IRP_CLOSE_OPERATION 0x00000400
#define IRP_DEFER_IO_COMPLETION 0x00000800

/* IRP.AllocationFlags */
#define IRP_QUOTA_CHARGED 0x01
#define IRP_ALLOCATED_MUST_SUCCEED 0x02
#define IRP_ALLOCATED_FIXED_SIZE 0x04
#define IRP_LOOKASIDE_ALLOCATION 0x08

/* IO_STACK_LOCATION.Flags */
#define SL_FORCE_ACCESS_CHECK 0x01
#define SL_KEY_SPECIFIED 0x01
#define SL_OVERRIDE_VERIFY_VOLUME 0x02
#define SL_WRITE_THROUGH 0x04
#define SL_FT_SEQUENTIAL_WRITE 0x08
#define SL_FORCE_DIRECT_WRITE 0x10
#define SL_READ_ACCESS_GRANTED 0x01
#define SL_WRITE_ACCESS_GRANTED 0x04

/* IO_STACK_LOCATION.Control */
#define SL_PENDING_RETURNED 0x01
#define SL_ERROR_RETURNED 0x02
#define SL_INVOKE_ON_CANCEL 0x20
#define SL_INVOKE_ON_SUCCESS 0x40
#define SL_INVOKE_ON_ERROR 0x80

/* DEVICE_OBJECT.Flags */
#define DO_VERIFY_VOLUME 0x00000002
#define DO_BUFFERED_IO 0x00000004
#define DO_EXCLUSIVE 0x00000008
#define DO_DIRECT_IO 0x00000010
#define DO_MAP_IO_BUFFER 0x00000020
#define DO_DEVICE_HAS_NAME 0x00000040
#define DO_DEVICE_INITIALIZING 0x00000080
#define DO_SHUTDOWN_REGISTERED 0x00000800
#define DO_BUS_ENUMERATED_DEVICE 0x00001000
#define DO_POWER_PAGABLE 0x00002000
#define DO_POWER_INRUSH 0x00004000

/* DEVICE_OBJECT.Characteristics */
#define FILE_REMOVABLE_MEDIA 0x00000001
#define FILE_READ_ONLY_DEVICE 0x00000002
#define FILE_FLOPPY_DISKETTE 0x00000004
#define FILE_WRITE_ONCE_MEDIA 0x00000008
#define FILE_REMOTE_DEVICE 0x00000010
#define FILE_DEVICE_IS_MOUNTED 0x00000020
#define FILE_VIRTUAL_VOLUME 0x00000040
#define FILE_AUTOGENERATED_DEVICE_NAME 0x00000080
#define FILE_DEVICE_SECURE_OPEN 0x00000100

/* DEVICE_OBJECT.AlignmentRequirement */
#define FILE_BYTE_ALIGNMENT 0x00000000
#define FILE_WORD_ALIGNMENT 0x00000001
#define FILE_LONG_ALIGNMENT 0x00000003
#define FILE_QUAD_ALIGNMENT 0x00000007
#define FILE_OCTA_ALIGNMENT 0x0000000f

/* DEVICE_OBJECT.DeviceType */
#define DEVICE_TYPE ULONG
#define FILE_DEVICE_BEEP 0x00000001
#define FILE_DEVICE_CD_ROM 0x00000002
#define FILE_DEVICE_CD_ROM_FILE_SYSTEM 0x00000003
#define FILE_DEVICE_CONTROLLER 0x00000004
#define FILE_DEVICE_DATALINK 0x00000005
#define FILE_DEVICE_DFS 0x00000006
#define FILE_DEVICE_DISK 0x00000007
#define FILE_DEVICE_DISK_FILE_SYSTEM 0x00000008
#define FILE_DEVICE_FILE_SYSTEM 0x00000009
#define FILE_DEVICE_KEYBOARD 0x0000000b
#define FILE_DEVICE_MAILSLOT 0x0000000c
#define FILE_DEVICE_MIDI_IN 0x0000000d
#define FILE_DEVICE_MIDI_OUT 0x0000000e
#define FILE_DEVICE_MOUSE 0x0000000f
#define FILE_DEVICE_MULTI_UNC_PROVIDER 0x00000010
#define FILE_DEVICE_NAMED_PIPE 0x00000011
#define FILE_DEVICE_NETWORK 0x00000012
#define FILE_DEVICE_NETWORK_BROWSER 0x00000013
#define FILE_DEVICE_NETWORK_FILE_SYSTEM 0x00000014
#define FILE_DEVICE_NULL 0x00000015
#define FILE_DEVICE_PARALLEL_PORT 0x00000016
#define FILE_DEVICE_PHYSICAL_NETCARD 0x00000017
#define FILE_DEVICE_PRINTER 0x00000018
#define FILE_DEVICE_SCANNER 0x00000019
#define FILE_DEVICE_SERIAL_MOUSE_PORT 0x0000001a
#define FILE_DEVICE_SERIAL_PORT 0x0000001b
#define FILE_DEVICE_SCREEN 0x0000001c
#define FILE_DEVICE_SOUND 0x0000001d
#define FILE_DEVICE_STREAMS 0x0000001e
#define FILE_DEVICE_TAPE 0x0000001f
#define FILE_DEVICE_TAPE_FILE_SYSTEM 0x00000020
#define FILE_DEVICE_TRANSPORT 0x00000021
#define FILE_DEVICE_UNKNOWN 0x00000022
#define FILE_DEVICE_VIDEO 0x00000023
#define FILE_DEVICE_VIRTUAL_DISK 0x00000024
#define FILE_DEVICE_WAVE_IN 0x00000025
#define FILE_DEVICE_WAVE_OUT 0x00000026
#define FILE_DEVICE_NETWORK_REDIRECTOR 0x00000028
#define FILE_DEVICE_BATTERY 0x00000029
#define FILE_DEVICE_BUS_EXTENDER 0x0000002a
#define FILE_DEVICE_MODEM 0x0000002b
#define FILE_DEVICE_MASS_STORAGE 0x0000002d
#define FILE_DEVICE_SMB 0x0000002e
#define FILE_DEVICE_KS 0x0000002f
#define FILE_DEVICE_CHANGER 0x00000030
#define FILE_DEVICE_SMARTCARD 0x00000031
#define FILE_DEVICE_ACPI 0x00000032
#define FILE_DEVICE_DVD 0x00000033
#define FILE_DEVICE_SERENUM 0x00000037
#define FILE_DEVICE_TERMSRV 0x00000038
#define FILE_DEVICE_KSEC 0x00000039
#define FILE_DEVICE_INFINIBAND 0x0000003B
#define FILE_DEVICE_VMBUS 0x0000003E
#define FILE_DEVICE_CRYPT_PROVIDER 0x0000003F
#define FILE_DEVICE_BLUETOOTH 0x00000041
#define FILE_DEVICE_BIOMETRIC 0x00000044

/* Device controls. */
#define METHOD_BUFFERED 0
#define METHOD_IN_DIRECT 1
#define METHOD_OUT_DIRECT 2
#define METHOD_NEITHER 3
#define METHOD_DIRECT_TO_HARDWARE METHOD_IN_DIRECT
#define METHOD_DIRECT_FROM_HARDWARE METHOD_OUT_DIRECT
#define FILE_ANY_ACCESS 0x00000000
#define FILE_SPECIAL_ACCESS FILE_ANY_ACCESS
#define FILE_READ_ACCESS 0x00000001
#define FILE_WRITE_ACCESS 0x00000002
#define CTL_CODE(DeviceType, Function, Method, Access)                                                                 \
    (((DeviceType) << 16) | ((Access) << 14) | ((Function) << 2) | (Method))
#define DEVICE_TYPE_FROM_CTL_CODE(ControlCode) (((ULONG)((ControlCode) & 0xffff0000)) >> 16)
#define METHOD_FROM_CTL_CODE(ControlCode) ((ULONG)((ControlCode) & 3))
#define IoGetFunctionCodeFromCtlCode(ControlCode) (((ControlCode) >> 2) & 0x00000FFF)

/* Rights of a file object, also for CTL_CODE. */
#define FILE_READ_DATA 0x00000001
#define FILE_LIST_DIRECTORY 0x00000001
#define FILE_WRITE_DATA 0x00000002
#define FILE_ADD_FILE 0x00000002
#define FILE_APPEND_DATA 0x00000004
#define FILE_ADD_SUBDIRECTORY 0x00000004
#define FILE_CREATE_PIPE_INSTANCE 0x00000004
#define FILE_READ_EA 0x00000008
#define FILE_WRITE_EA 0x00000010
#define FILE_EXECUTE 0x00000020
#define FILE_TRAVERSE 0x00000020
#define FILE_DELETE_CHILD 0x00000040
#define FILE_READ_ATTRIBUTES 0x00000080
#define FILE_WRITE_ATTRIBUTES 0x00000100
#define FILE_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x1FF)
#define FILE_GENERIC_READ (STANDARD_RIGHTS_READ | FILE_READ_DATA | FILE_READ_ATTRIBUTES | FILE_READ_EA | SYNCHRONIZE)
#define FILE_GENERIC_WRITE                                                                                             \
    (STANDARD_RIGHTS_WRITE | FILE_WRITE_DATA | FILE_WRITE_ATTRIBUTES | FILE_WRITE_EA | FILE_APPEND_DATA | SYNCHRONIZE)
#define FILE_GENERIC_EXECUTE (STANDARD_RIGHTS_EXECUTE | FILE_READ_ATTRIBUTES | FILE_EXECUTE | SYNCHRONIZE)

/* Parameters.Create: ShareAccess, FileAttributes, Options, with the disposition in the highest byte. */
#define FILE_SHARE_READ 0x00000001
#define FILE_SHARE_WRITE 0x00000002
#define FILE_SHARE_DELETE 0x00000004
#define FILE_SHARE_VALID_FLAGS 0x00000007
#define FILE_ATTRIBUTE_READONLY 0x00000001
#define FILE_ATTRIBUTE_HIDDEN 0x00000002
#define FILE_ATTRIBUTE_SYSTEM 0x00000004
#define FILE_ATTRIBUTE_DIRECTORY 0x00000010
#define FILE_ATTRIBUTE_ARCHIVE 0x00000020
#define FILE_ATTRIBUTE_DEVICE 0x00000040
#define FILE_ATTRIBUTE_NORMAL 0x00000080
#define FILE_ATTRIBUTE_TEMPORARY 0x00000100
#define FILE_SUPERSEDE 0x00000000
#define FILE_OPEN 0x00000001
#define FILE_CREATE 0x00000002
#define FILE_OPEN_IF 0x00000003
#define FILE_OVERWRITE 0x00000004
#define FILE_OVERWRITE_IF 0x00000005
#define FILE_MAXIMUM_DISPOSITION 0x00000005
#define FILE_DIRECTORY_FILE 0x00000001
#define FILE_WRITE_THROUGH 0x00000002
#define FILE_SEQUENTIAL_ONLY 0x00000004
#define FILE_NO_INTERMEDIATE_BUFFERING 0x00000008
#define FILE_SYNCHRONOUS_IO_ALERT 0x00000010
#define FILE_SYNCHRONOUS_IO_NONALERT 0x00000020
#define FILE_NON_DIRECTORY_FILE 0x00000040
#define FILE_COMPLETE_IF_OPLOCKED 0x00000100
#define FILE_RANDOM_ACCESS 0x00000800
#define FILE_DELETE_ON_CLOSE 0x00001000
#define FILE_OPEN_BY_FILE_ID 0x00002000
#define FILE_OPEN_FOR_BACKUP_INTENT 0x00004000
#define FILE_OPEN_REPARSE_POINT 0x00200000

/* Information of a create that has succeeded. */
#define FILE_SUPERSEDED 0x00000000
#define FILE_OPENED 0x00000001
#define FILE_CREATED 0x00000002
#define FILE_OVERWRITTEN 0x00000003
#define FILE_EXISTS 0x00000004
#define FILE_DOES_NOT_EXIST 0x00000005

/* FILE_OBJECT.Flags */
#define FO_FILE_OPEN 0x00000001
#define FO_SYNCHRONOUS_IO 0x00000002
#define FO_ALERTABLE_IO 0x00000004
#define FO_NO_INTERMEDIATE_BUFFERING 0x00000008
#define FO_WRITE_THROUGH 0x00000010
#define FO_SEQUENTIAL_ONLY 0x00000020
#define FO_CACHE_SUPPORTED 0x00000040
#define FO_NAMED_PIPE 0x00000080
#define FO_STREAM_FILE 0x00000100
#define FO_DIRECT_DEVICE_OPEN 0x00000800
#define FO_CLEANUP_COMPLETE 0x00004000
#define FO_HANDLE_CREATED 0x00040000

/* DRIVER_OBJECT.Flags */
#define DRVO_UNLOAD_INVOKED 0x00000001
#define DRVO_LEGACY_DRIVER 0x00000002
#define DRVO_BUILTIN_DRIVER 0x00000004

/* Routines of a driver. */
typedef NTSTATUS DRIVER_INITIALIZE(struct _DRIVER_OBJECT *DriverObject, PUNICODE_STRING RegistryPath);
typedef DRIVER_INITIALIZE *PDRIVER_INITIALIZE;
typedef VOID DRIVER_UNLOAD(struct _DRIVER_OBJECT *DriverObject);
typedef DRIVER_UNLOAD *PDRIVER_UNLOAD;
typedef NTSTATUS DRIVER_DISPATCH(struct _DEVICE_OBJECT *DeviceObject, struct _IRP *Irp);
typedef DRIVER_DISPATCH *PDRIVER_DISPATCH;
typedef VOID DRIVER_STARTIO(struct _DEVICE_OBJECT *DeviceObject, struct _IRP *Irp);
typedef DRIVER_STARTIO *PDRIVER_STARTIO;
typedef VOID DRIVER_CANCEL(struct _DEVICE_OBJECT *DeviceObject, struct _IRP *Irp);
typedef DRIVER_CANCEL *PDRIVER_CANCEL;
typedef NTSTATUS DRIVER_ADD_DEVICE(struct _DRIVER_OBJECT *DriverObject, struct _DEVICE_OBJECT *PhysicalDeviceObject);
typedef DRIVER_ADD_DEVICE *PDRIVER_ADD_DEVICE;
typedef NTSTATUS IO_COMPLETION_ROUTINE(struct _DEVICE_OBJECT *DeviceObject, struct _IRP *Irp, PVOID Context);
typedef IO_COMPLETION_ROUTINE *PIO_COMPLETION_ROUTINE;
typedef VOID IO_DPC_ROUTINE(struct _KDPC *Dpc, struct _DEVICE_OBJECT *DeviceObject, struct _IRP *Irp, PVOID Context);
typedef IO_DPC_ROUTINE *PIO_DPC_ROUTINE;
typedef VOID IO_TIMER_ROUTINE(struct _DEVICE_OBJECT *DeviceObject, PVOID Context);
typedef IO_TIMER_ROUTINE *PIO_TIMER_ROUTINE;
typedef VOID (*PIO_APC_ROUTINE)(PVOID ApcContext, PIO_STATUS_BLOCK IoStatusBlock, ULONG Reserved);

/* What a completion routine returns. */
#define STATUS_CONTINUE_COMPLETION STATUS_SUCCESS
typedef enum _IO_COMPLETION_ROUTINE_RESULT {
    ContinueCompletion = STATUS_CONTINUE_COMPLETION,
    StopCompletion = STATUS_MORE_PROCESSING_REQUIRED
} IO_COMPLETION_ROUTINE_RESULT, *PIO_COMPLETION_ROUTINE_RESULT;

typedef struct _IO_TIMER *PIO_TIMER;
typedef struct _VPB *PVPB;

typedef enum _IO_ALLOCATION_ACTION {
    KeepObject = 1,
    DeallocateObject,
    DeallocateObjectKeepRegisters
} IO_ALLOCATION_ACTION, *PIO_ALLOCATION_ACTION;

typedef IO_ALLOCATION_ACTION DRIVER_CONTROL(struct _DEVICE_OBJECT *DeviceObject, struct _IRP *Irp,
                                            PVOID MapRegisterBase, PVOID Context);
typedef DRIVER_CONTROL *PDRIVER_CONTROL;

typedef struct _WAIT_CONTEXT_BLOCK {
    KDEVICE_QUEUE_ENTRY WaitQueueEntry;
    PDRIVER_CONTROL DeviceRoutine;
    PVOID DeviceContext;
    ULONG NumberOfMapRegisters;
    PVOID DeviceObject;
    PVOID CurrentIrp;
    PKDPC BufferChainingDpc;
} WAIT_CONTEXT_BLOCK, *PWAIT_CONTEXT_BLOCK;

typedef struct _DEVOBJ_EXTENSION {
    CSHORT Type;
    USHORT Size;
    struct _DEVICE_OBJECT *DeviceObject;
} DEVOBJ_EXTENSION, *PDEVOBJ_EXTENSION;

typedef struct DECLSPEC_ALIGN(16) _DEVICE_OBJECT {
    CSHORT Type;
    USHORT Size;
    LONG ReferenceCount;
    struct _DRIVER_OBJECT *DriverObject;
    struct _DEVICE_OBJECT *NextDevice;
    struct _DEVICE_OBJECT *AttachedDevice;
    struct _IRP *CurrentIrp;
    PIO_TIMER Timer;
    ULONG Flags;
    ULONG Characteristics;
    PVPB Vpb;
    PVOID DeviceExtension;
    DEVICE_TYPE DeviceType;
    CCHAR StackSize;
    union {
        LIST_ENTRY ListEntry;
        WAIT_CONTEXT_BLOCK Wcb;
    } Queue;
    ULONG AlignmentRequirement;
    KDEVICE_QUEUE DeviceQueue;
    KDPC Dpc;
    ULONG ActiveThreadCount;
    PVOID SecurityDescriptor;
    KEVENT DeviceLock;
    USHORT SectorSize;
    USHORT Spare1;
    struct _DEVOBJ_EXTENSION *DeviceObjectExtension;
    PVOID Reserved;
} DEVICE_OBJECT;

typedef struct _DRIVER_EXTENSION {
    struct _DRIVER_OBJECT *DriverObject;
    PDRIVER_ADD_DEVICE AddDevice;
    ULONG Count;
    UNICODE_STRING ServiceKeyName;
} DRIVER_EXTENSION, *PDRIVER_EXTENSION;

typedef struct _DRIVER_OBJECT {
    CSHORT Type;
    CSHORT Size;
    PDEVICE_OBJECT DeviceObject;
    ULONG Flags;
    PVOID DriverStart;
    ULONG DriverSize;
    PVOID DriverSection;
    PDRIVER_EXTENSION DriverExtension;
    UNICODE_STRING DriverName;
    PUNICODE_STRING HardwareDatabase;
    struct _FAST_IO_DISPATCH *FastIoDispatch;
    PDRIVER_INITIALIZE DriverInit;
    PDRIVER_STARTIO DriverStartIo;
    PDRIVER_UNLOAD DriverUnload;
    PDRIVER_DISPATCH MajorFunction[IRP_MJ_MAXIMUM_FUNCTION + 1];
} DRIVER_OBJECT, *PDRIVER_OBJECT;

typedef struct _IO_COMPLETION_CONTEXT {
    PVOID Port;
    PVOID Key;
} IO_COMPLETION_CONTEXT, *PIO_COMPLETION_CONTEXT;

typedef struct _FILE_OBJECT {
    CSHORT Type;
    CSHORT Size;
    PDEVICE_OBJECT DeviceObject;
    PVPB Vpb;
    PVOID FsContext;
    PVOID FsContext2;
    struct _SECTION_OBJECT_POINTERS *SectionObjectPointer;
    PVOID PrivateCacheMap;
    NTSTATUS FinalStatus;
    struct _FILE_OBJECT *RelatedFileObject;
    BOOLEAN LockOperation;
    BOOLEAN DeletePending;
    BOOLEAN ReadAccess;
    BOOLEAN WriteAccess;
    BOOLEAN DeleteAccess;
    BOOLEAN SharedRead;
    BOOLEAN SharedWrite;
    BOOLEAN SharedDelete;
    ULONG Flags;
    UNICODE_STRING FileName;
    LARGE_INTEGER CurrentByteOffset;
    volatile ULONG Waiters;
    volatile ULONG Busy;
    PVOID LastLock;
    KEVENT Lock;
    KEVENT Event;
    PIO_COMPLETION_CONTEXT volatile CompletionContext;
    KSPIN_LOCK IrpListLock;
    LIST_ENTRY IrpList;
    PVOID volatile FileObjectExtension;
} FILE_OBJECT, *PFILE_OBJECT;

typedef struct _MDL {
    struct _MDL *Next;
    CSHORT Size;
    CSHORT MdlFlags;
    struct _EPROCESS *Process;
    PVOID MappedSystemVa;
    PVOID StartVa;
    ULONG ByteCount;
    ULONG ByteOffset;
} MDL, *PMDL;

/* Cancel is shared with the thread that cancels; the rest of a packet belongs to its owner (src/io/irp.c). */
typedef struct DECLSPEC_ALIGN(16) _IRP {
    CSHORT Type;
    USHORT Size;
    USHORT AllocationProcessorNumber;
    USHORT Reserved;
    PMDL MdlAddress;
    ULONG Flags;
    union {
        struct _IRP *MasterIrp;
        volatile LONG IrpCount;
        PVOID SystemBuffer;
    } AssociatedIrp;
    LIST_ENTRY ThreadListEntry;
    IO_STATUS_BLOCK IoStatus;
    KPROCESSOR_MODE RequestorMode;
    BOOLEAN PendingReturned;
    CHAR StackCount;
    CHAR CurrentLocation;
    volatile BOOLEAN Cancel;
    KIRQL CancelIrql;
    CCHAR ApcEnvironment;
    UCHAR AllocationFlags;
    PIO_STATUS_BLOCK UserIosb;
    PKEVENT UserEvent;
    union {
        struct {
            __extension__ union {
                PIO_APC_ROUTINE UserApcRoutine;
                PVOID IssuingProcess;
            };
            PVOID UserApcContext;
        } AsynchronousParameters;
        LARGE_INTEGER AllocationSize;
    } Overlay;
    PDRIVER_CANCEL volatile CancelRoutine;
    PVOID UserBuffer;
    union {
        struct {
            __extension__ union {
                KDEVICE_QUEUE_ENTRY DeviceQueueEntry;
                __extension__ struct {
                    PVOID DriverContext[4];
                };
            };
            PETHREAD Thread;
            PCHAR AuxiliaryBuffer;
            __extension__ struct {
                LIST_ENTRY ListEntry;
                __extension__ union {
                    struct _IO_STACK_LOCATION *CurrentStackLocation;
                    ULONG PacketType;
                };
            };
            struct _FILE_OBJECT *OriginalFileObject;
        } Overlay;
        KAPC Apc;
        PVOID CompletionKey;
    } Tail;
} IRP, *PIRP;

typedef struct _IO_SECURITY_CONTEXT *PIO_SECURITY_CONTEXT;

typedef struct _IO_STACK_LOCATION {
    UCHAR MajorFunction;
    UCHAR MinorFunction;
    UCHAR Flags;
    UCHAR Control;
    union {
        struct {
            PIO_SECURITY_CONTEXT SecurityContext;
            ULONG Options;
            USHORT DECLSPEC_ALIGN(8) FileAttributes;
            USHORT ShareAccess;
            ULONG DECLSPEC_ALIGN(8) EaLength;
        } Create;
        struct {
            ULONG Length;
            ULONG DECLSPEC_ALIGN(8) Key;
            ULONG Flags;
            LARGE_INTEGER ByteOffset;
        } Read;
        struct {
            ULONG Length;
            ULONG DECLSPEC_ALIGN(8) Key;
            ULONG Flags;
            LARGE_INTEGER ByteOffset;
        } Write;
        struct {
            ULONG OutputBufferLength;
            ULONG DECLSPEC_ALIGN(8) InputBufferLength;
            ULONG DECLSPEC_ALIGN(8) IoControlCode;
            PVOID Type3InputBuffer;
        } DeviceIoControl;
        struct {
            ULONG OutputBufferLength;
            ULONG DECLSPEC_ALIGN(8) InputBufferLength;
            ULONG DECLSPEC_ALIGN(8) FsControlCode;
            PVOID Type3InputBuffer;
        } FileSystemControl;
        struct {
            struct _SCSI_REQUEST_BLOCK *Srb;
        } Scsi;
        struct {
            PVOID Argument1;
            PVOID Argument2;
            PVOID Argument3;
            PVOID Argument4;
        } Others;
    } Parameters;
    PDEVICE_OBJECT DeviceObject;
    PFILE_OBJECT FileObject;
    PIO_COMPLETION_ROUTINE CompletionRoutine;
    PVOID Context;
} IO_STACK_LOCATION, *PIO_STACK_LOCATION;

C_ASSERT(sizeof(DEVICE_OBJECT) == 336);
C_ASSERT(sizeof(DRIVER_OBJECT) == 336);
C_ASSERT(sizeof(FILE_OBJECT) == 216);
C_ASSERT(sizeof(MDL) == 48);
C_ASSERT(sizeof(IRP) == 208);
C_ASSERT(sizeof(IO_STACK_LOCATION) == 72);

/* Devices. */

/* Creates a device with an extension of DeviceExtensionSize zeroed bytes and appends it to the driver's devices. Returns
   STATUS_OBJECT_NAME_COLLISION or STATUS_INSUFFICIENT_RESOURCES on failure. Below DISPATCH_LEVEL. Differs: names are those
   of one process. Since NT 3.1. */
NTKERNELAPI NTSTATUS IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize, PUNICODE_STRING DeviceName,
                                    DEVICE_TYPE DeviceType, ULONG DeviceCharacteristics, BOOLEAN Exclusive,
                                    PDEVICE_OBJECT *DeviceObject);

/* Deletes a device as soon as no file object has it open and no device is attached to it. One that is itself attached to another
   one is DRIVER_VERIFIER_IOMANAGER_VIOLATION 0x201, a second call 0x240. Below DISPATCH_LEVEL. Since NT 3.1. */
NTKERNELAPI VOID IoDeleteDevice(PDEVICE_OBJECT DeviceObject);

/* Attaches a device on top of the stack of another one and returns the device below it; NULL if that is being deleted. Since
   NT 4.0. */
NTKERNELAPI PDEVICE_OBJECT IoAttachDeviceToDeviceStack(PDEVICE_OBJECT SourceDevice, PDEVICE_OBJECT TargetDevice);

/* The same; stores the device below before a request can arrive. Returns STATUS_NO_SUCH_DEVICE on failure. Since XP. */
NTKERNELAPI NTSTATUS IoAttachDeviceToDeviceStackSafe(PDEVICE_OBJECT SourceDevice, PDEVICE_OBJECT TargetDevice,
                                                     PDEVICE_OBJECT *AttachedToDeviceObject);

/* Detaches the device that is attached to TargetDevice. If there is none: DRIVER_VERIFIER_IOMANAGER_VIOLATION 0x202. Since
   NT 3.1. */
NTKERNELAPI VOID IoDetachDevice(PDEVICE_OBJECT TargetDevice);

/* Returns the device on top of the stack, without or with a reference. Since NT 3.1, 2000. */
NTKERNELAPI PDEVICE_OBJECT IoGetAttachedDevice(PDEVICE_OBJECT DeviceObject);
NTKERNELAPI PDEVICE_OBJECT IoGetAttachedDeviceReference(PDEVICE_OBJECT DeviceObject);

/* Returns the device below, or at the bottom of the stack, with a reference; the first returns NULL if there is none.
   Since XP. */
NTKERNELAPI PDEVICE_OBJECT IoGetLowerDeviceObject(PDEVICE_OBJECT DeviceObject);
NTKERNELAPI PDEVICE_OBJECT IoGetDeviceAttachmentBaseRef(PDEVICE_OBJECT DeviceObject);

/* Returns the device on top of the stack that a file object has open. Since NT 3.1. */
NTKERNELAPI PDEVICE_OBJECT IoGetRelatedDeviceObject(PFILE_OBJECT FileObject);

/* Creates and deletes a permanent symbolic link. At PASSIVE_LEVEL. Differs: links are those of one process. Since NT 3.1. */
NTKERNELAPI NTSTATUS IoCreateSymbolicLink(PUNICODE_STRING SymbolicLinkName, PUNICODE_STRING DeviceName);
NTKERNELAPI NTSTATUS IoDeleteSymbolicLink(PUNICODE_STRING SymbolicLinkName);

/* Allocates zeroed memory that belongs to the driver, under an address of the driver's as its id, and finds it again.
   Returns STATUS_OBJECT_NAME_COLLISION for an id in use. Since 2000. */
NTKERNELAPI NTSTATUS IoAllocateDriverObjectExtension(PDRIVER_OBJECT DriverObject, PVOID ClientIdentificationAddress,
                                                     ULONG DriverObjectExtensionSize, PVOID *DriverObjectExtension);
NTKERNELAPI PVOID IoGetDriverObjectExtension(PDRIVER_OBJECT DriverObject, PVOID ClientIdentificationAddress);

/* Request packets. */

#define IoSizeOfIrp(StackSize) ((USHORT)(sizeof(IRP) + ((StackSize) * (sizeof(IO_STACK_LOCATION)))))

/* Allocates a packet with this many stack locations; NULL if memory is exhausted. Its creator frees it, in a completion
   routine that returns STATUS_MORE_PROCESSING_REQUIRED. Differs: no quota is charged; the Ex form ignores the device. Since
   NT 3.1, 10. */
NTKERNELAPI PIRP IoAllocateIrp(CCHAR StackSize, BOOLEAN ChargeQuota);
NTKERNELAPI PIRP IoAllocateIrpEx(PDEVICE_OBJECT DeviceObject, CCHAR StackSize, BOOLEAN ChargeQuota);

/* Initializes a packet in the caller's memory. Since NT 3.1. */
NTKERNELAPI VOID IoInitializeIrp(PIRP Irp, USHORT PacketSize, CCHAR StackSize);

/* Prepares a packet of IoAllocateIrp to be sent again. Since 2000. */
NTKERNELAPI VOID IoReuseIrp(PIRP Irp, NTSTATUS Iostatus);

/* Frees a packet. One that is not a packet, belongs to a thread or is still with a driver:
   DRIVER_VERIFIER_IOMANAGER_VIOLATION 0x01, 0x02, 0x20B. Since NT 3.1. */
NTKERNELAPI VOID IoFreeIrp(PIRP Irp);

/* Builds a request of the calling thread, which the I/O manager frees: it writes IoStatusBlock and sets Event on this thread,
   by a special kernel APC, unless a driver fails the request without pending it. MajorFunction is read, write, flush, shutdown,
   or one without parameters. NULL if memory is exhausted. At PASSIVE_LEVEL. Since NT 3.1. */
NTKERNELAPI PIRP IoBuildSynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer,
                                              ULONG Length, PLARGE_INTEGER StartingOffset, PKEVENT Event,
                                              PIO_STATUS_BLOCK IoStatusBlock);

/* Builds a request that belongs to no thread: its creator frees it in a completion routine. Since NT 3.1. */
NTKERNELAPI PIRP IoBuildAsynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer,
                                               ULONG Length, PLARGE_INTEGER StartingOffset,
                                               PIO_STATUS_BLOCK IoStatusBlock);

/* Builds a device control of the calling thread, as IoBuildSynchronousFsdRequest. Since NT 3.1. */
NTKERNELAPI PIRP IoBuildDeviceIoControlRequest(ULONG IoControlCode, PDEVICE_OBJECT DeviceObject, PVOID InputBuffer,
                                               ULONG InputBufferLength, PVOID OutputBuffer, ULONG OutputBufferLength,
                                               BOOLEAN InternalDeviceIoControl, PKEVENT Event,
                                               PIO_STATUS_BLOCK IoStatusBlock);

/* Allocates a packet that belongs to a master: the master completes when the last of its IrpCount packets does. Since
   NT 3.1. */
NTKERNELAPI PIRP IoMakeAssociatedIrp(PIRP Irp, CCHAR StackSize);

/* Internal: the stack location of the driver that has the packet, and the one below. */
FORCEINLINE PIO_STACK_LOCATION IoGetCurrentIrpStackLocation(PIRP Irp)
{
    return Irp->Tail.Overlay.CurrentStackLocation;
}

/* Internal: see IoGetCurrentIrpStackLocation. */
FORCEINLINE PIO_STACK_LOCATION IoGetNextIrpStackLocation(PIRP Irp)
{
    return Irp->Tail.Overlay.CurrentStackLocation - 1;
}

/* Internal: makes the next stack location the current one, for a creator that wants one of its own. */
FORCEINLINE VOID IoSetNextIrpStackLocation(PIRP Irp)
{
    Irp->CurrentLocation--;
    Irp->Tail.Overlay.CurrentStackLocation--;
}

/* Internal: the driver below gets the current stack location itself. */
FORCEINLINE VOID IoSkipCurrentIrpStackLocation(PIRP Irp)
{
    Irp->CurrentLocation++;
    Irp->Tail.Overlay.CurrentStackLocation++;
}

/* Internal: the driver below gets a copy, without the completion routine. */
FORCEINLINE VOID IoCopyCurrentIrpStackLocationToNext(PIRP Irp)
{
    PIO_STACK_LOCATION Next = IoGetNextIrpStackLocation(Irp);
    __builtin_memcpy(Next, IoGetCurrentIrpStackLocation(Irp), __builtin_offsetof(IO_STACK_LOCATION, CompletionRoutine));
    Next->Control = 0;
}

/* Internal: before a driver keeps the packet and returns STATUS_PENDING. */
FORCEINLINE VOID IoMarkIrpPending(PIRP Irp)
{
    IoGetCurrentIrpStackLocation(Irp)->Control |= SL_PENDING_RETURNED;
}

/* Internal: the routine is called when the driver below has completed the packet. */
FORCEINLINE VOID IoSetCompletionRoutine(PIRP Irp, PIO_COMPLETION_ROUTINE CompletionRoutine, PVOID Context,
                                        BOOLEAN InvokeOnSuccess, BOOLEAN InvokeOnError, BOOLEAN InvokeOnCancel)
{
    PIO_STACK_LOCATION Next = IoGetNextIrpStackLocation(Irp);
    Next->CompletionRoutine = CompletionRoutine;
    Next->Context = Context;
    Next->Control = (UCHAR)((InvokeOnSuccess ? SL_INVOKE_ON_SUCCESS : 0) | (InvokeOnError ? SL_INVOKE_ON_ERROR : 0) |
                            (InvokeOnCancel ? SL_INVOKE_ON_CANCEL : 0));
}

/* The same; the device stays until the routine has returned. Returns STATUS_INSUFFICIENT_RESOURCES on failure. Since XP. */
NTKERNELAPI NTSTATUS IoSetCompletionRoutineEx(PDEVICE_OBJECT DeviceObject, PIRP Irp,
                                              PIO_COMPLETION_ROUTINE CompletionRoutine, PVOID Context,
                                              BOOLEAN InvokeOnSuccess, BOOLEAN InvokeOnError, BOOLEAN InvokeOnCancel);

/* Sends the packet to a driver and returns what its dispatch routine returns; IoCallDriver is a macro for it.
   NO_MORE_IRP_STACK_LOCATIONS if the packet has none left, INCONSISTENT_IRP if there is no such major function.
   DRIVER_VERIFIER_IOMANAGER_VIOLATION: 0x03 not a packet, 0x04 not a device, 0x10 above DISPATCH_LEVEL, 0x203 with a
   cancel routine, 0x05 the dispatch routine has changed the IRQL, 0x224 returned another status than it completed with,
   0x226 neither completed the packet nor returned STATUS_PENDING, 0x23D did not mark it pending, 0x23E did not return
   STATUS_PENDING. Since NT 3.1. */
NTKERNELAPI NTSTATUS IofCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp);
#define IoCallDriver IofCallDriver

/* Sends a power request to the next driver, as IoCallDriver does. Since NT 4.0. */
FORCEINLINE NTSTATUS PoCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    return IofCallDriver(DeviceObject, Irp);
}

/* Signals that a driver is ready for the next power request. Has no effect since Vista. Since NT 4.0. */
FORCEINLINE VOID PoStartNextPowerIrp(PIRP Irp)
{
    (void)Irp;
}

/* Completes the packet for the driver that has it: the completion routines above are called, and at the end the I/O manager
   delivers it. IoCompleteRequest is a macro for it. MULTIPLE_IRP_COMPLETE_REQUESTS if it is complete. INCONSISTENT_IRP if it
   has no thread and its creator does not take it back. DRIVER_VERIFIER_IOMANAGER_VIOLATION: 0x06 with STATUS_PENDING, 0x07 with
   a cancel routine, 0x0E above DISPATCH_LEVEL, 0x228 a completion routine did not mark it pending. Since NT 3.1. */
NTKERNELAPI VOID IofCompleteRequest(PIRP Irp, CCHAR PriorityBoost);
#define IoCompleteRequest IofCompleteRequest

/* Sends the packet below with the current parameters and blocks until it returns; the caller completes it. Returns FALSE if
   the packet has no stack location left. Below DISPATCH_LEVEL. Since XP. */
NTKERNELAPI BOOLEAN IoForwardIrpSynchronously(PDEVICE_OBJECT DeviceObject, PIRP Irp);
#define IoForwardAndCatchIrp IoForwardIrpSynchronously

/* Returns TRUE if the requester waits for the packet. Since NT 3.1. */
NTKERNELAPI BOOLEAN IoIsOperationSynchronous(PIRP Irp);

/* Returns or sets the packet that the thread works on, for recursive file systems. Since NT 3.1. */
NTKERNELAPI PIRP IoGetTopLevelIrp(VOID);
NTKERNELAPI VOID IoSetTopLevelIrp(PIRP Irp);

/* Returns the process that the packet came from. Since NT 3.1. */
NTKERNELAPI PEPROCESS IoGetRequestorProcess(PIRP Irp);

/* Cancelling. src/io/irp.c explains which thread owns a packet at each moment. */

/* Internal: sets the cancel routine and returns the old one. NULL for one that was set: the packet is being cancelled, and
   its cancel routine completes it. */
#define IoSetCancelRoutine(Irp, NewCancelRoutine)                                                                      \
    ((PDRIVER_CANCEL)(ULONG_PTR)InterlockedExchangePointer((PVOID volatile *)&(Irp)->CancelRoutine,                    \
                                                           (PVOID)(ULONG_PTR)(NewCancelRoutine)))

/* Marks the packet as cancelled and calls its cancel routine, which releases the cancel spinlock. Returns FALSE if it has none.
   CANCEL_STATE_IN_COMPLETED_IRP if it is complete; IRQL_UNEXPECTED_VALUE if the routine keeps the lock or returns at another
   level. Since NT 3.1. */
NTKERNELAPI BOOLEAN IoCancelIrp(PIRP Irp);

/* Acquires and releases the queued spinlock under which cancel routines are called. Since NT 3.1. */
NTKERNELAPI VOID IoAcquireCancelSpinLock(PKIRQL Irql);
NTKERNELAPI VOID IoReleaseCancelSpinLock(KIRQL Irql);

/*
 * Cancel-safe queues. The driver provides the queue and its lock; these functions do the rest: insert, remove and cancel leave
 * each packet to exactly one of them.
 */

struct _IO_CSQ;

typedef struct _IO_CSQ_IRP_CONTEXT {
    ULONG Type;
    struct _IRP *Irp;
    struct _IO_CSQ *Csq;
} IO_CSQ_IRP_CONTEXT, *PIO_CSQ_IRP_CONTEXT;

typedef VOID IO_CSQ_INSERT_IRP(struct _IO_CSQ *Csq, PIRP Irp);
typedef IO_CSQ_INSERT_IRP *PIO_CSQ_INSERT_IRP;
typedef NTSTATUS IO_CSQ_INSERT_IRP_EX(struct _IO_CSQ *Csq, PIRP Irp, PVOID InsertContext);
typedef IO_CSQ_INSERT_IRP_EX *PIO_CSQ_INSERT_IRP_EX;
typedef VOID IO_CSQ_REMOVE_IRP(struct _IO_CSQ *Csq, PIRP Irp);
typedef IO_CSQ_REMOVE_IRP *PIO_CSQ_REMOVE_IRP;
typedef PIRP IO_CSQ_PEEK_NEXT_IRP(struct _IO_CSQ *Csq, PIRP Irp, PVOID PeekContext);
typedef IO_CSQ_PEEK_NEXT_IRP *PIO_CSQ_PEEK_NEXT_IRP;
typedef VOID IO_CSQ_ACQUIRE_LOCK(struct _IO_CSQ *Csq, PKIRQL Irql);
typedef IO_CSQ_ACQUIRE_LOCK *PIO_CSQ_ACQUIRE_LOCK;
typedef VOID IO_CSQ_RELEASE_LOCK(struct _IO_CSQ *Csq, KIRQL Irql);
typedef IO_CSQ_RELEASE_LOCK *PIO_CSQ_RELEASE_LOCK;
typedef VOID IO_CSQ_COMPLETE_CANCELED_IRP(struct _IO_CSQ *Csq, PIRP Irp);
typedef IO_CSQ_COMPLETE_CANCELED_IRP *PIO_CSQ_COMPLETE_CANCELED_IRP;

typedef struct _IO_CSQ {
    ULONG Type;
    PIO_CSQ_INSERT_IRP CsqInsertIrp;
    PIO_CSQ_REMOVE_IRP CsqRemoveIrp;
    PIO_CSQ_PEEK_NEXT_IRP CsqPeekNextIrp;
    PIO_CSQ_ACQUIRE_LOCK CsqAcquireLock;
    PIO_CSQ_RELEASE_LOCK CsqReleaseLock;
    PIO_CSQ_COMPLETE_CANCELED_IRP CsqCompleteCanceledIrp;
    PVOID ReservePointer;
} IO_CSQ, *PIO_CSQ;

C_ASSERT(sizeof(IO_CSQ) == 64 && sizeof(IO_CSQ_IRP_CONTEXT) == 24);

/* Initializes a cancel-safe queue with the driver's routines for its list and its lock. IoCsqInitializeEx: the insert
   routine returns a status and gets a context. Since XP, Server 2003. */
NTKERNELAPI NTSTATUS IoCsqInitialize(PIO_CSQ Csq, PIO_CSQ_INSERT_IRP CsqInsertIrp, PIO_CSQ_REMOVE_IRP CsqRemoveIrp,
                                     PIO_CSQ_PEEK_NEXT_IRP CsqPeekNextIrp, PIO_CSQ_ACQUIRE_LOCK CsqAcquireLock,
                                     PIO_CSQ_RELEASE_LOCK CsqReleaseLock,
                                     PIO_CSQ_COMPLETE_CANCELED_IRP CsqCompleteCanceledIrp);
NTKERNELAPI NTSTATUS IoCsqInitializeEx(PIO_CSQ Csq, PIO_CSQ_INSERT_IRP_EX CsqInsertIrp,
                                       PIO_CSQ_REMOVE_IRP CsqRemoveIrp, PIO_CSQ_PEEK_NEXT_IRP CsqPeekNextIrp,
                                       PIO_CSQ_ACQUIRE_LOCK CsqAcquireLock, PIO_CSQ_RELEASE_LOCK CsqReleaseLock,
                                       PIO_CSQ_COMPLETE_CANCELED_IRP CsqCompleteCanceledIrp);

/* Inserts the packet and marks it pending. A packet that is already cancelled is completed at once by
   CsqCompleteCanceledIrp. The Ex form returns the status of the driver's routine; if that refuses the packet, nothing has
   happened. Uses DriverContext[3]. Since XP, Server 2003. */
NTKERNELAPI VOID IoCsqInsertIrp(PIO_CSQ Csq, PIRP Irp, PIO_CSQ_IRP_CONTEXT Context);
NTKERNELAPI NTSTATUS IoCsqInsertIrpEx(PIO_CSQ Csq, PIRP Irp, PIO_CSQ_IRP_CONTEXT Context, PVOID InsertContext);

/* Removes the packet that was inserted with the context, or the next one that PeekContext matches. NULL: it is not in the queue,
   or being cancelled. Since XP. */
NTKERNELAPI PIRP IoCsqRemoveIrp(PIO_CSQ Csq, PIO_CSQ_IRP_CONTEXT Context);
NTKERNELAPI PIRP IoCsqRemoveNextIrp(PIO_CSQ Csq, PVOID PeekContext);

/* Remove locks. They count the users of a device; the remover waits until there are none. */

typedef struct _IO_REMOVE_LOCK_TRACKING_BLOCK *PIO_REMOVE_LOCK_TRACKING_BLOCK;

typedef struct _IO_REMOVE_LOCK_COMMON_BLOCK {
    BOOLEAN Removed;
    BOOLEAN Reserved[3];
    volatile LONG IoCount;
    KEVENT RemoveEvent;
} IO_REMOVE_LOCK_COMMON_BLOCK;

typedef struct _IO_REMOVE_LOCK_DBG_BLOCK {
    LONG Signature;
    ULONG HighWatermark;
    LONGLONG MaxLockedTicks;
    LONG AllocateTag;
    LIST_ENTRY LockList;
    KSPIN_LOCK Spin;
    volatile LONG LowMemoryCount;
    ULONG Reserved1[4];
    PVOID Reserved2;
    PIO_REMOVE_LOCK_TRACKING_BLOCK Blocks;
} IO_REMOVE_LOCK_DBG_BLOCK;

/* The second part is there if the driver is compiled with DBG=1: then tags are checked. */
typedef struct _IO_REMOVE_LOCK {
    IO_REMOVE_LOCK_COMMON_BLOCK Common;
#if defined(DBG) && DBG
    IO_REMOVE_LOCK_DBG_BLOCK Dbg;
#endif
} IO_REMOVE_LOCK, *PIO_REMOVE_LOCK;

C_ASSERT(sizeof(IO_REMOVE_LOCK_COMMON_BLOCK) == 32);

/* Initializes a lock; IoInitializeRemoveLock is a macro for it. At PASSIVE_LEVEL. Differs: MaxLockedMinutes and HighWatermark
   are stored and not checked. Since 2000. */
NTKERNELAPI VOID IoInitializeRemoveLockEx(PIO_REMOVE_LOCK Lock, ULONG AllocateTag, ULONG MaxLockedMinutes,
                                          ULONG HighWatermark, ULONG RemlockSize);

/* Acquires the lock; IoAcquireRemoveLock is a macro for it. Returns STATUS_DELETE_PENDING once a thread has called
   IoReleaseRemoveLockAndWait. Since 2000. */
NTKERNELAPI NTSTATUS IoAcquireRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, PCSTR File, ULONG Line,
                                           ULONG RemlockSize);

/* Releases the lock; IoReleaseRemoveLock is a macro for it. A lock that is not held, or with DBG=1 a tag with which it
   was not acquired: DRIVER_VERIFIER_DETECTED_VIOLATION 0xD5. Since 2000. */
NTKERNELAPI VOID IoReleaseRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, ULONG RemlockSize);

/* Releases the lock, refuses further acquires, and blocks until all users have released it. IoReleaseRemoveLockAndWait
   is a macro for it. A second call, or a wrong tag: DRIVER_VERIFIER_DETECTED_VIOLATION 0xD6. At PASSIVE_LEVEL. Since
   2000. */
NTKERNELAPI VOID IoReleaseRemoveLockAndWaitEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, ULONG RemlockSize);

#define IoInitializeRemoveLock(Lock, Tag, Maxmin, HighWater)                                                           \
    IoInitializeRemoveLockEx(Lock, Tag, Maxmin, HighWater, sizeof(IO_REMOVE_LOCK))
#define IoAcquireRemoveLock(RemoveLock, Tag)                                                                           \
    IoAcquireRemoveLockEx(RemoveLock, Tag, __FILE__, __LINE__, sizeof(IO_REMOVE_LOCK))
#define IoReleaseRemoveLock(RemoveLock, Tag) IoReleaseRemoveLockEx(RemoveLock, Tag, sizeof(IO_REMOVE_LOCK))
#define IoReleaseRemoveLockAndWait(RemoveLock, Tag)                                                                    \
    IoReleaseRemoveLockAndWaitEx(RemoveLock, Tag, sizeof(IO_REMOVE_LOCK))

/* StartIo: one request at a time. */

/* Starts the packet, or queues it if the device is busy, by Key if that is given. A packet with a cancel routine that was
   cancelled meanwhile is handed to that routine. At DISPATCH_LEVEL or below. Since NT 3.1. */
NTKERNELAPI VOID IoStartPacket(PDEVICE_OBJECT DeviceObject, PIRP Irp, PULONG Key, PDRIVER_CANCEL CancelFunction);

/* Starts the next packet, in order or by key. Cancelable: the driver's packets have cancel routines, so the cancel spinlock is
   held while one is chosen. At DISPATCH_LEVEL. Since NT 3.1. */
NTKERNELAPI VOID IoStartNextPacket(PDEVICE_OBJECT DeviceObject, BOOLEAN Cancelable);
NTKERNELAPI VOID IoStartNextPacketByKey(PDEVICE_OBJECT DeviceObject, BOOLEAN Cancelable, ULONG Key);

/* DeferredStartIo: StartIo is not called again before it has returned. NonCancelable: it is called without checking
 * whether the packet was cancelled. Since XP. */
NTKERNELAPI VOID IoSetStartIoAttributes(PDEVICE_OBJECT DeviceObject, BOOLEAN DeferredStartIo, BOOLEAN NonCancelable);

/* Internal: the DPC in a device object. */
FORCEINLINE VOID IoInitializeDpcRequest(PDEVICE_OBJECT DeviceObject, PIO_DPC_ROUTINE DpcRoutine)
{
    KeInitializeDpc(&DeviceObject->Dpc, (PKDEFERRED_ROUTINE)(VOID (*)(VOID))DpcRoutine, DeviceObject);
}

/* Internal: the same, for a threaded DPC. */
FORCEINLINE VOID IoInitializeThreadedDpcRequest(PDEVICE_OBJECT DeviceObject, PIO_DPC_ROUTINE DpcRoutine)
{
    KeInitializeThreadedDpc(&DeviceObject->Dpc, (PKDEFERRED_ROUTINE)(VOID (*)(VOID))DpcRoutine, DeviceObject);
}

#define IoRequestDpc(DeviceObject, Irp, Context) KeInsertQueueDpc(&(DeviceObject)->Dpc, (Irp), (Context))

/* Sets a routine that is called once a second at DISPATCH_LEVEL, and starts and stops the calls. Initializing twice is
 * DRIVER_VERIFIER_IOMANAGER_VIOLATION 0x0A. Returns STATUS_INSUFFICIENT_RESOURCES on failure. Differs: the seconds begin
 * when the timer starts. Since NT 3.1. */
NTKERNELAPI NTSTATUS IoInitializeTimer(PDEVICE_OBJECT DeviceObject, PIO_TIMER_ROUTINE TimerRoutine, PVOID Context);
NTKERNELAPI VOID IoStartTimer(PDEVICE_OBJECT DeviceObject);
NTKERNELAPI VOID IoStopTimer(PDEVICE_OBJECT DeviceObject);

/* Creates or opens a named event, set if it is new, and returns it with a handle that keeps it. NULL on failure. At
   PASSIVE_LEVEL. Since NT 3.1. */
NTKERNELAPI PKEVENT IoCreateNotificationEvent(PUNICODE_STRING EventName, PHANDLE EventHandle);
NTKERNELAPI PKEVENT IoCreateSynchronizationEvent(PUNICODE_STRING EventName, PHANDLE EventHandle);

/* Memory descriptor lists. Kernel and program share one address space: mapping pages gives their own address. */

#ifndef PAGE_SIZE
#define PAGE_SIZE 0x1000
#endif
#ifndef PAGE_SHIFT
#define PAGE_SHIFT 12
#endif
typedef ULONG_PTR PFN_NUMBER, *PPFN_NUMBER;

#define MDL_MAPPED_TO_SYSTEM_VA 0x0001
#define MDL_PAGES_LOCKED 0x0002
#define MDL_SOURCE_IS_NONPAGED_POOL 0x0004
#define MDL_ALLOCATED_FIXED_SIZE 0x0008
#define MDL_PARTIAL 0x0010
#define MDL_PARTIAL_HAS_BEEN_MAPPED 0x0020
#define MDL_IO_PAGE_READ 0x0040
#define MDL_WRITE_OPERATION 0x0080
#define MDL_IO_SPACE 0x0800
#define MDL_MAPPING_CAN_FAIL 0x2000

typedef enum _LOCK_OPERATION { IoReadAccess, IoWriteAccess, IoModifyAccess } LOCK_OPERATION;
typedef enum _MEMORY_CACHING_TYPE {
    MmNonCached = 0,
    MmCached = 1,
    MmWriteCombined = 2,
    MmHardwareCoherentCached,
    MmNonCachedUnordered,
    MmUSWCCached,
    MmMaximumCacheType,
    MmNotMapped = -1
} MEMORY_CACHING_TYPE;
typedef enum _MM_PAGE_PRIORITY { LowPagePriority, NormalPagePriority = 16, HighPagePriority = 32 } MM_PAGE_PRIORITY;
#define MdlMappingNoWrite 0x80000000
#define MdlMappingNoExecute 0x40000000

#define BYTE_OFFSET(Va) ((ULONG)((ULONG_PTR)(Va) & (PAGE_SIZE - 1)))
#define PAGE_ALIGN(Va) ((PVOID)((ULONG_PTR)(Va) & ~((ULONG_PTR)PAGE_SIZE - 1)))
#define BYTES_TO_PAGES(Size) (((Size) >> PAGE_SHIFT) + (((Size) & (PAGE_SIZE - 1)) != 0))
#define ROUND_TO_PAGES(Size) (((ULONG_PTR)(Size) + PAGE_SIZE - 1) & ~((ULONG_PTR)PAGE_SIZE - 1))
#define ADDRESS_AND_SIZE_TO_SPAN_PAGES(Va, Size)                                                                       \
    ((ULONG)((BYTE_OFFSET(Va) + ((SIZE_T)(Size)) + (PAGE_SIZE - 1)) >> PAGE_SHIFT))
#define COMPUTE_PAGES_SPANNED(Va, Size) ADDRESS_AND_SIZE_TO_SPAN_PAGES(Va, Size)
#define MmGetMdlByteCount(Mdl) ((Mdl)->ByteCount)
#define MmGetMdlByteOffset(Mdl) ((Mdl)->ByteOffset)
#define MmGetMdlBaseVa(Mdl) ((Mdl)->StartVa)
#define MmGetMdlVirtualAddress(Mdl) ((PVOID)((PCHAR)((Mdl)->StartVa) + (Mdl)->ByteOffset))
#define MmGetMdlPfnArray(Mdl) ((PPFN_NUMBER)((Mdl) + 1))
#define MmInitializeMdl(Mdl, BaseVa, Length)                                                                           \
    ((Mdl)->Next = (PMDL)NULL,                                                                                         \
     (Mdl)->Size = (CSHORT)(sizeof(MDL) + sizeof(PFN_NUMBER) * ADDRESS_AND_SIZE_TO_SPAN_PAGES(BaseVa, Length)),        \
     (Mdl)->MdlFlags = 0, (Mdl)->StartVa = PAGE_ALIGN(BaseVa), (Mdl)->ByteOffset = BYTE_OFFSET(BaseVa),                \
     (Mdl)->ByteCount = (ULONG)(Length))
#define MmPrepareMdlForReuse(Mdl)                                                                                      \
    do {                                                                                                               \
        if (((Mdl)->MdlFlags & MDL_PARTIAL_HAS_BEEN_MAPPED) != 0) {                                                    \
            MmUnmapLockedPages((Mdl)->MappedSystemVa, (Mdl));                                                          \
        }                                                                                                              \
    } while (0)
#define MmGetSystemAddressForMdlSafe(Mdl, Priority)                                                                    \
    (((Mdl)->MdlFlags & (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL))                                       \
         ? ((Mdl)->MappedSystemVa)                                                                                     \
         : (MmMapLockedPagesSpecifyCache((Mdl), KernelMode, MmCached, NULL, FALSE, (ULONG)(Priority))))
#define MmGetSystemAddressForMdl(Mdl) MmGetSystemAddressForMdlSafe(Mdl, HighPagePriority)

/* Allocates a list for a buffer; NULL if memory is exhausted. With a packet it becomes the packet's list, or the last one of
   its chain. Since NT 3.1. */
NTKERNELAPI PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota,
                               PIRP Irp);

/* Frees a list. Pages that are still mapped: DRIVER_VERIFIER_DETECTED_VIOLATION 0xB8; still locked:
   PROCESS_HAS_LOCKED_PAGES. Since NT 3.1. */
NTKERNELAPI VOID IoFreeMdl(PMDL Mdl);

/* Makes TargetMdl describe a part of the buffer of SourceMdl; length 0: up to its end. A part outside is
   TARGET_MDL_TOO_SMALL. Since NT 3.1. */
NTKERNELAPI VOID IoBuildPartialMdl(PMDL SourceMdl, PMDL TargetMdl, PVOID VirtualAddress, ULONG Length);

/* Returns the size of a list for a buffer. Since NT 3.1. */
NTKERNELAPI SIZE_T MmSizeOfMdl(PVOID Base, SIZE_T Length);

/* Completes the list of a buffer in nonpaged pool, which is always locked and mapped. Since NT 3.1. */
NTKERNELAPI VOID MmBuildMdlForNonPagedPool(PMDL MemoryDescriptorList);

/* Locks and unlocks the pages of a buffer; unlocking ends their mapping. Locking twice, and unlocking a partial list:
   DRIVER_VERIFIER_DETECTED_VIOLATION 0xB0, 0xB4; unlocking what is not locked: PFN_LIST_CORRUPT 7. Differs: the pages are not
   probed, and the host may page them out; the state of the list is checked. Since NT 3.1. */
NTKERNELAPI VOID MmProbeAndLockPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode, LOCK_OPERATION Operation);
NTKERNELAPI VOID MmUnlockPages(PMDL MemoryDescriptorList);

/* Returns an address for locked pages. Pages that are mapped already, or not locked: DRIVER_VERIFIER_DETECTED_VIOLATION 0xB2,
   0xB3. Differs: the buffer's own address. Since 2000, NT 3.1. */
NTKERNELAPI PVOID MmMapLockedPagesSpecifyCache(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
                                               MEMORY_CACHING_TYPE CacheType, PVOID RequestedAddress,
                                               ULONG BugCheckOnFailure, ULONG Priority);
NTKERNELAPI PVOID MmMapLockedPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode);

/* Ends a mapping. BaseAddress is what MmMapLockedPagesSpecifyCache has returned. Since NT 3.1. */
NTKERNELAPI VOID MmUnmapLockedPages(PVOID BaseAddress, PMDL MemoryDescriptorList);

/*
 * Drivers under test. A test plays the I/O manager: it loads a driver by its DriverEntry, opens a device, sends
 * requests as a program would, cancels them, and checks how they ended. None of it exists on Windows.
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

typedef struct _IO_TEST_REQUEST *PIO_TEST_REQUEST;

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

/* Requests of a test. Each is finished once; until then any thread may cancel it. */

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
