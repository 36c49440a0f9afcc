/* The sizes and offsets of 64-bit Windows 10, written by hand, independent of any header. */
#include <stddef.h>
#include <stdio.h>

#include <interlock/interlocked.h>
#include <interlock/io.h>
#include <interlock/ke.h>
#include <interlock/rtl.h>

struct entry {
    const char *name;
    size_t expected;
    size_t actual;
};

#define SIZE(type, size)             {"sizeof " #type, (size), sizeof(type)}
#define OFFSET(type, member, offset) {#type "." #member, (offset), offsetof(type, member)}

static const struct entry entries[] = {
    SIZE(LIST_ENTRY, 16),
    SIZE(SINGLE_LIST_ENTRY, 8),
    SIZE(LARGE_INTEGER, 8),
    SIZE(UNICODE_STRING, 16),
    OFFSET(UNICODE_STRING, Buffer, 8),
    SIZE(KSPIN_LOCK, 8),
    SIZE(KAFFINITY, 8),
    SIZE(KIRQL, 1),
    SIZE(GROUP_AFFINITY, 16),
    SIZE(PROCESSOR_NUMBER, 4),

    SIZE(DISPATCHER_HEADER, 24),
    OFFSET(DISPATCHER_HEADER, Type, 0),
    OFFSET(DISPATCHER_HEADER, Size, 2),
    OFFSET(DISPATCHER_HEADER, SignalState, 4),
    OFFSET(DISPATCHER_HEADER, WaitListHead, 8),

    SIZE(KEVENT, 24),

    SIZE(KSEMAPHORE, 32),
    OFFSET(KSEMAPHORE, Limit, 24),

    SIZE(KMUTANT, 56),
    OFFSET(KMUTANT, MutantListEntry, 24),
    OFFSET(KMUTANT, OwnerThread, 40),
    OFFSET(KMUTANT, Abandoned, 48),
    OFFSET(KMUTANT, ApcDisable, 49),

    SIZE(KTIMER, 64),
    OFFSET(KTIMER, DueTime, 24),
    OFFSET(KTIMER, TimerListEntry, 32),
    OFFSET(KTIMER, Dpc, 48),
    OFFSET(KTIMER, Period, 60),

    SIZE(GENERAL_LOOKASIDE, 128),
    OFFSET(GENERAL_LOOKASIDE, Depth, 16),
    OFFSET(GENERAL_LOOKASIDE, TotalAllocates, 20),
    OFFSET(GENERAL_LOOKASIDE, AllocateMisses, 24),
    OFFSET(GENERAL_LOOKASIDE, TotalFrees, 28),
    OFFSET(GENERAL_LOOKASIDE, Type, 36),
    OFFSET(GENERAL_LOOKASIDE, Size, 44),
    OFFSET(GENERAL_LOOKASIDE, Allocate, 48),
    OFFSET(GENERAL_LOOKASIDE, ListEntry, 64),
    SIZE(NPAGED_LOOKASIDE_LIST, 128),
    SIZE(PAGED_LOOKASIDE_LIST, 128),
    SIZE(LOOKASIDE_LIST_EX, 96),
    SIZE(POOL_EXTENDED_PARAMETER, 16),
    SIZE(KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT, 16),
    SIZE(KFLOATING_SAVE, 4),
    SIZE(XSTATE_SAVE, 56),

    SIZE(KQUEUE, 64),
    OFFSET(KQUEUE, EntryListHead, 24),
    OFFSET(KQUEUE, CurrentCount, 40),
    OFFSET(KQUEUE, MaximumCount, 44),
    OFFSET(KQUEUE, ThreadListHead, 48),

    SIZE(KWAIT_BLOCK, 48),
    OFFSET(KWAIT_BLOCK, WaitListEntry, 0x00),
    OFFSET(KWAIT_BLOCK, WaitType, 0x10),
    OFFSET(KWAIT_BLOCK, BlockState, 0x11),
    OFFSET(KWAIT_BLOCK, WaitKey, 0x12),
    OFFSET(KWAIT_BLOCK, SpareLong, 0x14),
    OFFSET(KWAIT_BLOCK, Thread, 0x18),
    OFFSET(KWAIT_BLOCK, NotificationQueue, 0x18),
    OFFSET(KWAIT_BLOCK, Object, 0x20),
    OFFSET(KWAIT_BLOCK, SparePtr, 0x28),

    SIZE(KDPC, 64),
    OFFSET(KDPC, DeferredRoutine, 24),
    OFFSET(KDPC, DeferredContext, 32),
    OFFSET(KDPC, DpcData, 56),

    SIZE(KAPC, 88),

    SIZE(KDEVICE_QUEUE_ENTRY, 24),
    OFFSET(KDEVICE_QUEUE_ENTRY, SortKey, 0x10),
    OFFSET(KDEVICE_QUEUE_ENTRY, Inserted, 0x14),
    SIZE(KDEVICE_QUEUE, 40),
    OFFSET(KDEVICE_QUEUE, DeviceListHead, 0x08),
    OFFSET(KDEVICE_QUEUE, Lock, 0x18),
    OFFSET(KDEVICE_QUEUE, Busy, 0x20),

    SIZE(IRP, 0xd0),
    OFFSET(IRP, MdlAddress, 0x08),
    OFFSET(IRP, Flags, 0x10),
    OFFSET(IRP, AssociatedIrp, 0x18),
    OFFSET(IRP, ThreadListEntry, 0x20),
    OFFSET(IRP, IoStatus, 0x30),
    OFFSET(IRP, RequestorMode, 0x40),
    OFFSET(IRP, PendingReturned, 0x41),
    OFFSET(IRP, StackCount, 0x42),
    OFFSET(IRP, CurrentLocation, 0x43),
    OFFSET(IRP, Cancel, 0x44),
    OFFSET(IRP, CancelIrql, 0x45),
    OFFSET(IRP, AllocationFlags, 0x47),
    OFFSET(IRP, UserIosb, 0x48),
    OFFSET(IRP, UserEvent, 0x50),
    OFFSET(IRP, Overlay, 0x58),
    OFFSET(IRP, CancelRoutine, 0x68),
    OFFSET(IRP, UserBuffer, 0x70),
    OFFSET(IRP, Tail, 0x78),
    OFFSET(IRP, Tail.Overlay.DriverContext, 0x78),
    OFFSET(IRP, Tail.Overlay.Thread, 0x98),
    OFFSET(IRP, Tail.Overlay.ListEntry, 0xa8),
    OFFSET(IRP, Tail.Overlay.CurrentStackLocation, 0xb8),
    OFFSET(IRP, Tail.Overlay.OriginalFileObject, 0xc0),
    SIZE(IO_STACK_LOCATION, 0x48),
    OFFSET(IO_STACK_LOCATION, Parameters, 0x08),
    OFFSET(IO_STACK_LOCATION, Parameters.Read.Key, 0x10),
    OFFSET(IO_STACK_LOCATION, Parameters.Read.ByteOffset, 0x18),
    OFFSET(IO_STACK_LOCATION, Parameters.DeviceIoControl.InputBufferLength, 0x10),
    OFFSET(IO_STACK_LOCATION, Parameters.DeviceIoControl.IoControlCode, 0x18),
    OFFSET(IO_STACK_LOCATION, Parameters.DeviceIoControl.Type3InputBuffer, 0x20),
    OFFSET(IO_STACK_LOCATION, DeviceObject, 0x28),
    OFFSET(IO_STACK_LOCATION, FileObject, 0x30),
    OFFSET(IO_STACK_LOCATION, CompletionRoutine, 0x38),
    OFFSET(IO_STACK_LOCATION, Context, 0x40),
    SIZE(DEVICE_OBJECT, 0x150),
    OFFSET(DEVICE_OBJECT, DriverObject, 0x08),
    OFFSET(DEVICE_OBJECT, CurrentIrp, 0x20),
    OFFSET(DEVICE_OBJECT, Flags, 0x30),
    OFFSET(DEVICE_OBJECT, DeviceExtension, 0x40),
    OFFSET(DEVICE_OBJECT, StackSize, 0x4c),
    OFFSET(DEVICE_OBJECT, AlignmentRequirement, 0x98),
    OFFSET(DEVICE_OBJECT, DeviceQueue, 0xa0),
    OFFSET(DEVICE_OBJECT, Dpc, 0xc8),
    OFFSET(DEVICE_OBJECT, DeviceLock, 0x118),
    OFFSET(DEVICE_OBJECT, DeviceObjectExtension, 0x138),
    SIZE(DRIVER_OBJECT, 0x150),
    OFFSET(DRIVER_OBJECT, DriverExtension, 0x30),
    OFFSET(DRIVER_OBJECT, DriverStartIo, 0x60),
    OFFSET(DRIVER_OBJECT, DriverUnload, 0x68),
    OFFSET(DRIVER_OBJECT, MajorFunction, 0x70),
    SIZE(FILE_OBJECT, 0xd8),
    OFFSET(FILE_OBJECT, FsContext, 0x18),
    OFFSET(FILE_OBJECT, Flags, 0x50),
    OFFSET(FILE_OBJECT, Event, 0x98),
    SIZE(MDL, 0x30),
    OFFSET(MDL, MappedSystemVa, 0x18),
    OFFSET(MDL, ByteCount, 0x28),
    SIZE(IO_CSQ, 64),
    SIZE(IO_CSQ_IRP_CONTEXT, 24),
    SIZE(IO_REMOVE_LOCK, 32),
    OFFSET(IO_REMOVE_LOCK, Common.IoCount, 4),
    OFFSET(IO_REMOVE_LOCK, Common.RemoveEvent, 8),
    SIZE(IO_REMOVE_LOCK_DBG_BLOCK, 88),

    SIZE(KSPIN_LOCK_QUEUE, 16),
    OFFSET(KSPIN_LOCK_QUEUE, Lock, 8),
    SIZE(KLOCK_QUEUE_HANDLE, 24),
    OFFSET(KLOCK_QUEUE_HANDLE, OldIrql, 16),
    SIZE(SLIST_ENTRY, 16),
    SIZE(SLIST_HEADER, 16),
    OFFSET(SLIST_HEADER, Region, 8),
    SIZE(RTL_CRITICAL_SECTION, 40),
    OFFSET(RTL_CRITICAL_SECTION, LockCount, 8),
    OFFSET(RTL_CRITICAL_SECTION, RecursionCount, 12),
    OFFSET(RTL_CRITICAL_SECTION, OwningThread, 16),
    OFFSET(RTL_CRITICAL_SECTION, LockSemaphore, 24),
    OFFSET(RTL_CRITICAL_SECTION, SpinCount, 32),
    SIZE(RTL_CRITICAL_SECTION_DEBUG, 48),
    OFFSET(RTL_CRITICAL_SECTION_DEBUG, ProcessLocksList, 16),
    OFFSET(RTL_CRITICAL_SECTION_DEBUG, EntryCount, 32),
    SIZE(RTL_RESOURCE, 96),
    OFFSET(RTL_RESOURCE, SharedSemaphore, 40),
    OFFSET(RTL_RESOURCE, ExclusiveSemaphore, 56),
    OFFSET(RTL_RESOURCE, NumberOfActive, 68),
    OFFSET(RTL_RESOURCE, DebugInfo, 88),
    SIZE(RTL_BARRIER, 32),
    SIZE(RTL_RUN_ONCE, 8),
};

int main(void)
{
    const size_t count = sizeof(entries) / sizeof(entries[0]);
    int failed = 0;
    size_t i;

    printf("1..%zu\n", count);
    for (i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];

        if (entry->actual == entry->expected) {
            printf("ok %zu - %s is %zu\n", i + 1, entry->name, entry->expected);
        } else {
            printf("not ok %zu - %s is %zu, not %zu\n", i + 1, entry->name, entry->actual,
                   entry->expected);
            failed = 1;
        }
    }
    return failed;
}
