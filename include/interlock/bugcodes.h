/* bugcodes.h: bugcheck codes of NT, and the meaning of their parameters. */
#ifndef INTERLOCK_BUGCODES_H
#define INTERLOCK_BUGCODES_H

#include <interlock/ntdef.h>

#define APC_INDEX_MISMATCH                                  ((ULONG)0x00000001)
#define DEVICE_QUEUE_NOT_BUSY                               ((ULONG)0x00000002)
#define INVALID_AFFINITY_SET                                ((ULONG)0x00000003)
#define INVALID_PROCESS_ATTACH_ATTEMPT                      ((ULONG)0x00000005)
#define INVALID_PROCESS_DETACH_ATTEMPT                      ((ULONG)0x00000006)
#define INVALID_SOFTWARE_INTERRUPT                          ((ULONG)0x00000007)
#define IRQL_NOT_DISPATCH_LEVEL                             ((ULONG)0x00000008)
#define IRQL_NOT_GREATER_OR_EQUAL                           ((ULONG)0x00000009)
#define IRQL_NOT_LESS_OR_EQUAL                              ((ULONG)0x0000000A)
#define MAXIMUM_WAIT_OBJECTS_EXCEEDED                       ((ULONG)0x0000000C)
#define MUTEX_LEVEL_NUMBER_VIOLATION                        ((ULONG)0x0000000D)
#define NO_USER_MODE_CONTEXT                                ((ULONG)0x0000000E)
#define SPIN_LOCK_ALREADY_OWNED                             ((ULONG)0x0000000F)
#define SPIN_LOCK_NOT_OWNED                                 ((ULONG)0x00000010)
#define THREAD_NOT_MUTEX_OWNER                              ((ULONG)0x00000011)
#define TRAP_CAUSE_UNKNOWN                                  ((ULONG)0x00000012)
#define EMPTY_THREAD_REAPER_LIST                            ((ULONG)0x00000013)
#define CREATE_DELETE_LOCK_NOT_LOCKED                       ((ULONG)0x00000014)
#define LAST_CHANCE_CALLED_FROM_KMODE                       ((ULONG)0x00000015)
#define CID_HANDLE_CREATION                                 ((ULONG)0x00000016)
#define CID_HANDLE_DELETION                                 ((ULONG)0x00000017)
#define REFERENCE_BY_POINTER                                ((ULONG)0x00000018)
#define NO_SPINLOCK_AVAILABLE                               ((ULONG)0x0000001D)
#define KMODE_EXCEPTION_NOT_HANDLED                         ((ULONG)0x0000001E)
#define SHARED_RESOURCE_CONV_ERROR                          ((ULONG)0x0000001F)
#define KERNEL_APC_PENDING_DURING_EXIT                      ((ULONG)0x00000020)
#define INCONSISTENT_IRP                                    ((ULONG)0x0000002A)
#define NO_MORE_IRP_STACK_LOCATIONS                         ((ULONG)0x00000035)
#define SYSTEM_EXIT_OWNED_MUTEX                             ((ULONG)0x00000039)
#define MULTIPROCESSOR_CONFIGURATION_NOT_SUPPORTED          ((ULONG)0x0000003E)
#define TARGET_MDL_TOO_SMALL                                ((ULONG)0x00000040)
#define MULTIPLE_IRP_COMPLETE_REQUESTS                      ((ULONG)0x00000044)
#define CANCEL_STATE_IN_COMPLETED_IRP                       ((ULONG)0x00000048)
#define IRQL_GT_ZERO_AT_SYSTEM_SERVICE                      ((ULONG)0x0000004A)
#define PFN_LIST_CORRUPT                                    ((ULONG)0x0000004E)
#define PAGE_FAULT_IN_NONPAGED_AREA                         ((ULONG)0x00000050)
#define PROCESS_HAS_LOCKED_PAGES                            ((ULONG)0x00000076)
#define SYSTEM_THREAD_EXCEPTION_NOT_HANDLED                 ((ULONG)0x0000007E)
#define UNEXPECTED_KERNEL_MODE_TRAP                         ((ULONG)0x0000007F)
#define SPIN_LOCK_INIT_FAILURE                              ((ULONG)0x00000081)
#define KERNEL_MODE_EXCEPTION_NOT_HANDLED                   ((ULONG)0x0000008E)
#define INVALID_KERNEL_HANDLE                               ((ULONG)0x00000093)
#define KERNEL_STACK_LOCKED_AT_EXIT                         ((ULONG)0x00000094)
#define INVALID_WORK_QUEUE_ITEM                             ((ULONG)0x00000096)
#define ATTEMPTED_SWITCH_FROM_DPC                           ((ULONG)0x000000B8)
#define BAD_POOL_CALLER                                     ((ULONG)0x000000C2)
#define DRIVER_VERIFIER_DETECTED_VIOLATION                  ((ULONG)0x000000C4)
#define TIMER_OR_DPC_INVALID                                ((ULONG)0x000000C7)
#define IRQL_UNEXPECTED_VALUE                               ((ULONG)0x000000C8)
#define DRIVER_VERIFIER_IOMANAGER_VIOLATION                 ((ULONG)0x000000C9)
#define DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS ((ULONG)0x000000CE)
#define DRIVER_IRQL_NOT_LESS_OR_EQUAL                       ((ULONG)0x000000D1)
#define WORKER_THREAD_RETURNED_AT_BAD_IRQL                  ((ULONG)0x000000E1)
#define MANUALLY_INITIATED_CRASH                            ((ULONG)0x000000E2)
#define RESOURCE_NOT_OWNED                                  ((ULONG)0x000000E3)
#define WORKER_INVALID                                      ((ULONG)0x000000E4)
#define ACTIVE_EX_WORKER_THREAD_TERMINATION                 ((ULONG)0x000000E9)
#define IMPERSONATING_WORKER_THREAD                         ((ULONG)0x000000FA)
#define RESOURCE_OWNER_POINTER_INVALID                      ((ULONG)0x00000132)
#define DPC_WATCHDOG_VIOLATION                              ((ULONG)0x00000133)
#define KERNEL_SECURITY_CHECK_FAILURE                       ((ULONG)0x00000139)
#define INVALID_PUSH_LOCK_FLAGS                             ((ULONG)0x00000152)
#define KERNEL_LOCK_ENTRY_LEAKED_ON_THREAD_TERMINATION      ((ULONG)0x00000153)
#define KERNEL_THREAD_PRIORITY_FLOOR_VIOLATION              ((ULONG)0x00000157)
#define KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE              ((ULONG)0x00000162)
#define INVALID_RUNDOWN_PROTECTION_FLAGS                    ((ULONG)0x0000016C)
#define INVALID_SLOT_ALLOCATOR_FLAGS                        ((ULONG)0x0000016D)
#define ERESOURCE_INVALID_RELEASE                           ((ULONG)0x0000016E)
#define KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL ((ULONG)0x00000192)
#define FAST_ERESOURCE_PRECONDITION_VIOLATION               ((ULONG)0x000001C6)
#define THREAD_TERMINATE_HELD_MUTEX                         ((ULONG)0x4000008A)

/* X(name, first parameter, second, third, fourth). Where NT documents no parameters, these are those that Interlock
   passes. */
#define INTERLOCK_BUGCODE_LIST(X)                                                                  \
    X(APC_INDEX_MISMATCH, "system service or worker routine", "ApcStateIndex",                     \
      "SpecialApcDisable << 16 or KernelApcDisable",                                               \
      "0 system service, 1 worker routine, 2 APC")                                                 \
    X(DEVICE_QUEUE_NOT_BUSY, "device queue", "", "", "")                                           \
    X(INVALID_AFFINITY_SET, "requested affinity", "group", "active processors", "")                \
    X(INVALID_PROCESS_ATTACH_ATTEMPT, "process", "process attached to", "ApcStateIndex",           \
      "1 in a DPC")                                                                                \
    X(INVALID_PROCESS_DETACH_ATTEMPT, "process", "thread", "", "")                                 \
    X(INVALID_SOFTWARE_INTERRUPT, "requested IRQL", "current IRQL", "", "")                        \
    X(IRQL_NOT_DISPATCH_LEVEL, "current IRQL", "object or routine", "", "")                        \
    X(IRQL_NOT_GREATER_OR_EQUAL, "current IRQL", "requested IRQL", "", "routine")                  \
    X(IRQL_NOT_LESS_OR_EQUAL, "address referenced or requested IRQL", "current IRQL",              \
      "0 read, 1 write, 8 execute", "instruction or routine")                                      \
    X(MAXIMUM_WAIT_OBJECTS_EXCEEDED, "number of objects", "limit", "wait block array", "")         \
    X(MUTEX_LEVEL_NUMBER_VIOLATION, "thread", "mutex", "level held", "level of the mutex")         \
    X(NO_USER_MODE_CONTEXT, "thread", "", "", "")                                                  \
    X(SPIN_LOCK_ALREADY_OWNED, "spin lock", "thread", "owner", "")                                 \
    X(SPIN_LOCK_NOT_OWNED, "spin lock", "thread", "owner", "")                                     \
    X(THREAD_NOT_MUTEX_OWNER, "thread", "mutex", "owner", "")                                      \
    X(TRAP_CAUSE_UNKNOWN, "cause", "trap", "", "")                                                 \
    X(EMPTY_THREAD_REAPER_LIST, "", "", "", "")                                                    \
    X(CREATE_DELETE_LOCK_NOT_LOCKED, "", "", "", "")                                               \
    X(LAST_CHANCE_CALLED_FROM_KMODE, "", "", "", "")                                               \
    X(CID_HANDLE_CREATION, "object", "", "", "")                                                   \
    X(CID_HANDLE_DELETION, "object", "handle", "", "")                                             \
    X(REFERENCE_BY_POINTER, "object type", "object", "reference count", "")                        \
    X(NO_SPINLOCK_AVAILABLE, "", "", "", "")                                                       \
    X(KMODE_EXCEPTION_NOT_HANDLED, "status", "address it was raised at",                           \
      "first exception parameter", "second exception parameter")                                   \
    X(SHARED_RESOURCE_CONV_ERROR, "resource", "thread", "", "")                                    \
    X(KERNEL_APC_PENDING_DURING_EXIT, "APC", "KernelApcDisable", "current IRQL", "")               \
    X(INCONSISTENT_IRP, "IRP", "", "", "")                                                         \
    X(NO_MORE_IRP_STACK_LOCATIONS, "IRP", "", "", "")                                              \
    X(SYSTEM_EXIT_OWNED_MUTEX, "worker routine", "work item parameter", "work item", "")           \
    X(MULTIPROCESSOR_CONFIGURATION_NOT_SUPPORTED, "", "", "", "")                                  \
    X(TARGET_MDL_TOO_SMALL, "source MDL", "target MDL", "virtual address", "length")               \
    X(MULTIPLE_IRP_COMPLETE_REQUESTS, "IRP", "", "", "")                                           \
    X(CANCEL_STATE_IN_COMPLETED_IRP, "IRP", "cancel routine", "", "")                              \
    X(IRQL_GT_ZERO_AT_SYSTEM_SERVICE, "system service", "current IRQL", "", "")                    \
    X(PFN_LIST_CORRUPT, "7 unlocked more often than locked", "page", "share count", "")            \
    X(PAGE_FAULT_IN_NONPAGED_AREA, "address referenced", "0 read, 2 write, 10 execute",            \
      "instruction", "")                                                                           \
    X(PROCESS_HAS_LOCKED_PAGES, "0", "process", "locked pages", "MDL")                             \
    X(SYSTEM_THREAD_EXCEPTION_NOT_HANDLED, "status", "address it was raised at",                   \
      "exception record", "context record")                                                        \
    X(UNEXPECTED_KERNEL_MODE_TRAP, "trap number", "", "", "")                                      \
    X(SPIN_LOCK_INIT_FAILURE, "spin lock", "", "", "")                                             \
    X(KERNEL_MODE_EXCEPTION_NOT_HANDLED, "status", "address it was raised at", "trap frame", "")   \
    X(INVALID_KERNEL_HANDLE, "handle", "0 protected, 1 invalid", "", "")                           \
    X(KERNEL_STACK_LOCKED_AT_EXIT, "thread", "", "", "")                                           \
    X(INVALID_WORK_QUEUE_ITEM, "queue entry", "queue", "array of worker queues", "worker routine") \
    X(ATTEMPTED_SWITCH_FROM_DPC, "thread", "object waited for", "", "")                            \
    X(BAD_POOL_CALLER, "kind of violation", "", "", "")                                            \
    X(DRIVER_VERIFIER_DETECTED_VIOLATION, "kind of violation", "depends on the kind",              \
      "depends on the kind", "depends on the kind")                                                \
    X(TIMER_OR_DPC_INVALID, "0 timer, 1 DPC, 2 routine, 3 processor, 4 or 5 APC count",            \
      "object or routine", "start of range, processor or old count",                               \
      "end of range, processors or new count")                                                     \
    X(IRQL_UNEXPECTED_VALUE, "current IRQL << 16 or expected IRQL << 8 or kind",                   \
      "kernel routine of the APC", "APC", "normal routine of the APC")                             \
    X(DRIVER_VERIFIER_IOMANAGER_VIOLATION, "kind of violation", "depends on the kind",             \
      "depends on the kind", "depends on the kind")                                                \
    X(DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS, "device that is left", "0", "0",      \
      "unload routine")                                                                            \
    X(DRIVER_IRQL_NOT_LESS_OR_EQUAL, "address referenced", "current IRQL",                         \
      "0 read, 1 write, 8 execute", "instruction")                                                 \
    X(WORKER_THREAD_RETURNED_AT_BAD_IRQL, "worker routine", "current IRQL", "work item parameter", \
      "work item")                                                                                 \
    X(MANUALLY_INITIATED_CRASH, "", "", "", "")                                                    \
    X(RESOURCE_NOT_OWNED, "resource", "thread", "owner table", "")                                 \
    X(WORKER_INVALID, "0 freed block, 1 queued item, 2 lookaside", "work item", "start of block",  \
      "end of block")                                                                              \
    X(ACTIVE_EX_WORKER_THREAD_TERMINATION, "thread", "", "", "")                                   \
    X(IMPERSONATING_WORKER_THREAD, "worker routine", "work item parameter", "work item", "")       \
    X(RESOURCE_OWNER_POINTER_INVALID, "resource", "owner table", "thread", "owner pointer")        \
    X(DPC_WATCHDOG_VIOLATION, "0 one DPC, 1 cumulative", "time at DISPATCH_LEVEL", "time allowed", \
      "")                                                                                          \
    X(KERNEL_SECURITY_CHECK_FAILURE, "fail fast code", "trap frame", "exception record", "")       \
    X(INVALID_PUSH_LOCK_FLAGS, "flags", "push lock", "", "")                                       \
    X(KERNEL_LOCK_ENTRY_LEAKED_ON_THREAD_TERMINATION, "thread", "lock entry",                      \
      "1 lock not NULL, 2 and 3 thread corrupt, 4 boost left", "")                                 \
    X(KERNEL_THREAD_PRIORITY_FLOOR_VIOLATION, "thread", "priority",                                \
      "1 overflow, 2 underflow, 3 illegal priority", "")                                           \
    X(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, "thread", "lock", "session", "")                     \
    X(INVALID_RUNDOWN_PROTECTION_FLAGS, "flags", "rundown reference", "", "")                      \
    X(INVALID_SLOT_ALLOCATOR_FLAGS, "flags", "", "", "")                                           \
    X(ERESOURCE_INVALID_RELEASE, "resource", "current thread", "thread passed in", "")             \
    X(KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL, "thread", "lock", "current IRQL", "")   \
    X(FAST_ERESOURCE_PRECONDITION_VIOLATION, "kind of violation", "resource or owner entry",       \
      "depends on the kind", "depends on the kind")                                                \
    X(THREAD_TERMINATE_HELD_MUTEX, "thread", "mutex", "", "")

/* DRIVER_VERIFIER_DETECTED_VIOLATION: X(first parameter, second, third, fourth, violation). Those from 0x494C0000 on are
   Interlock's own. */
#define INTERLOCK_VERIFIER_LIST(X)                                                                 \
    X(0x00, "current IRQL", "pool type", "", "pool allocation of zero bytes")                      \
    X(0x02, "current IRQL", "pool type", "bytes", "pool allocation above DISPATCH_LEVEL")          \
    X(0x30, "current IRQL", "requested IRQL", "", "KeRaiseIrql to a lower or impossible level")    \
    X(0x31, "current IRQL", "requested IRQL", "0 bad, 1 bad inside a DPC",                         \
      "KeLowerIrql to a higher or impossible level")                                               \
    X(0x32, "current IRQL", "spin lock", "", "KeReleaseSpinLock not at DISPATCH_LEVEL")            \
    X(0x33, "current IRQL", "fast mutex", "", "fast mutex acquired above APC_LEVEL")               \
    X(0x34, "current IRQL", "fast mutex", "", "fast mutex released not at APC_LEVEL")              \
    X(0x35, "current IRQL", "spin lock", "old IRQL", "spin lock released not at DISPATCH_LEVEL")   \
    X(0x36, "current IRQL", "queued spin lock", "old IRQL",                                        \
      "queued spin lock released not at DISPATCH_LEVEL")                                           \
    X(0x37, "current IRQL", "KernelApcDisable", "resource",                                        \
      "resource acquired while APCs are enabled")                                                  \
    X(0x38, "current IRQL", "KernelApcDisable", "resource",                                        \
      "resource released while APCs are enabled")                                                  \
    X(0x39, "current IRQL", "KernelApcDisable", "fast mutex",                                      \
      "unsafe acquire of a mutex while APCs are enabled")                                          \
    X(0x3A, "current IRQL", "KernelApcDisable", "fast mutex",                                      \
      "unsafe release of a mutex while APCs are enabled")                                          \
    X(0x3C, "handle", "object type", "", "ObReferenceObjectByHandle of a bad handle")              \
    X(0x3D, "", "", "resource", "misaligned resource")                                             \
    X(0x3E, "", "", "", "KeLeaveCriticalRegion outside a critical region")                         \
    X(0x3F, "object", "-1 dereference, 1 reference", "",                                           \
      "reference or dereference of an object whose count is 0")                                    \
    X(0x40, "current IRQL", "spin lock", "", "KeAcquireSpinLockAtDpcLevel below DISPATCH_LEVEL")   \
    X(0x41, "current IRQL", "spin lock", "", "KeReleaseSpinLockFromDpcLevel below DISPATCH_LEVEL") \
    X(0x42, "current IRQL", "spin lock", "", "KeAcquireSpinLock above DISPATCH_LEVEL")             \
    X(0x80, "current IRQL", "event", "", "KeSetEvent above DISPATCH_LEVEL")                        \
    X(0xB0, "MDL", "MDL flags", "wrong flags", "MmProbeAndLockPages of an MDL in the wrong state") \
    X(0xB2, "MDL", "MDL flags", "wrong flags", "MmMapLockedPages of pages that are mapped")        \
    X(0xB3, "MDL", "MDL flags", "missing flags", "MmMapLockedPages of pages that are not locked")  \
    X(0xB4, "MDL", "MDL flags", "MDL_PARTIAL", "MmUnlockPages of a partial MDL")                   \
    X(0xB8, "MDL", "MDL flags", "", "IoFreeMdl of pages that are mapped")                          \
    X(0xC5, "routine", "KernelApcDisable", "KernelApcDisable before",                              \
      "routine changed the APC disable count")                                                     \
    X(0xD0, "resource", "", "", "resource initialized again")                                      \
    X(0xD1, "resource", "", "", "delete of a resource that is not initialized")                    \
    X(0xD2, "resource", "start of block", "size of block", "memory of an active resource freed")   \
    X(0xD5, "remove lock", "tag", "", "IoReleaseRemoveLock with a tag that was not acquired")       \
    X(0xD6, "remove lock", "tag", "tag of the acquire",                                            \
      "IoReleaseRemoveLockAndWait with a tag that was not acquired, or twice")                     \
    X(0xE1, "object", "", "", "synchronization object at an invalid address")                      \
    X(0xE5, "current IRQL", "routine", "", "routine called at the wrong IRQL")                     \
    X(0xEA, "current IRQL", "KernelApcDisable", "push lock",                                       \
      "push lock acquired while APCs are enabled")                                                 \
    X(0xEB, "current IRQL", "KernelApcDisable", "push lock",                                       \
      "push lock released while APCs are enabled")                                                 \
    X(0xF5, "NULL", "object type", "", "ObReferenceObjectByHandle of a NULL handle")               \
    X(0xF6, "handle", "process", "caller", "user handle referenced as a kernel handle")            \
    X(0xFA, "completion routine", "IRQL before", "IRQL after",                                     \
      "completion routine changed the IRQL")                                                       \
    X(0x111, "interrupt service routine", "IRQL before", "IRQL after",                             \
      "interrupt service routine changed the IRQL")                                                \
    X(0x11A, "current IRQL", "", "", "KeEnterCriticalRegion above APC_LEVEL")                      \
    X(0x11B, "current IRQL", "", "", "KeLeaveCriticalRegion above APC_LEVEL")                      \
    X(0x120, "current IRQL", "object", "timeout", "wait above DISPATCH_LEVEL")                     \
    X(0x121, "current IRQL", "object", "timeout", "wait at DISPATCH_LEVEL without a timeout")      \
    X(0x122, "current IRQL", "object", "timeout",                                                  \
      "wait at DISPATCH_LEVEL with a timeout other than 0")                                        \
    X(0x123, "object", "", "", "user-mode wait for an object on the kernel stack")                 \
    X(0x1000, "lock", "thread", "", "lock acquired again by its owner")                            \
    X(0x1001, "lock acquired", "lock held", "", "lock order violated")                             \
    X(0x1002, "lock", "", "", "acquire of a lock that is not initialized")                         \
    X(0x1003, "lock", "lock to be released first", "", "locks released in the wrong order")        \
    X(0x1004, "lock", "owner", "current thread", "lock released by a thread that is not its owner") \
    X(0x1005, "lock", "", "", "lock initialized again")                                            \
    X(0x1007, "lock", "", "", "release of a lock that is not held")                                \
    X(0x1008, "lock", "", "", "lock acquired by a function of another lock type")                  \
    X(0x1009, "lock", "", "", "lock released by a function of another lock type")                  \
    X(0x100A, "thread", "lock", "", "thread ended while it held a lock")                           \
    X(0x100B, "lock", "owner", "", "lock deleted while it is held")                                \
    X(0x2000, "thread", "priority", "", "thread priority outside 1 to 31")                         \
    X(0x494C0001, "APC", "start of memory", "end of memory", "memory of a queued APC freed")       \
    X(0x494C0002, "object", "waiting thread", "start of memory",                                   \
      "memory of an object freed while a thread waits for it")                                     \
    X(0x494C0003, "routine", "lock", "", "routine returned while it held a lock")

/* DRIVER_VERIFIER_IOMANAGER_VIOLATION: X(first parameter, second, third, fourth, violation). */
#define INTERLOCK_IO_VERIFIER_LIST(X)                                                              \
    X(0x01, "IRP", "", "", "IoFreeIrp of something that is not an IRP")                            \
    X(0x02, "IRP", "", "", "IoFreeIrp of an IRP that belongs to a thread")                         \
    X(0x03, "IRP", "", "", "IoCallDriver with something that is not an IRP")                       \
    X(0x04, "device object", "", "", "IoCallDriver with something that is not a device object")    \
    X(0x05, "device object", "IRQL before", "IRQL after", "dispatch routine changed the IRQL")     \
    X(0x06, "status", "IRP", "", "IRP completed with STATUS_PENDING or -1")                        \
    X(0x07, "cancel routine", "IRP", "", "IRP completed while its cancel routine is set")          \
    X(0x0A, "device object", "", "", "IoInitializeTimer twice")                                    \
    X(0x0E, "current IRQL", "IRP", "", "IoCompleteRequest above DISPATCH_LEVEL")                   \
    X(0x10, "current IRQL", "", "", "IoCallDriver above DISPATCH_LEVEL")                           \
    X(0x201, "routine", "IRP", "device object", "device deleted while it is in a stack")           \
    X(0x202, "routine", "IRP", "device object", "detach from a device with nothing attached")      \
    X(0x203, "routine", "IRP", "device object", "IoCallDriver while the cancel routine is set")    \
    X(0x20B, "routine", "IRP", "device object", "IoFreeIrp of an IRP that is in use")              \
    X(0x224, "dispatch routine", "IRP", "device object",                                           \
      "dispatch routine returned a status other than the completion status")                       \
    X(0x226, "dispatch routine", "IRP", "device object",                                           \
      "dispatch routine neither completed the IRP nor returned STATUS_PENDING")                    \
    X(0x228, "completion routine", "IRP", "device object",                                         \
      "completion routine did not mark the IRP pending although PendingReturned was set")          \
    X(0x23D, "dispatch routine", "IRP", "device object",                                           \
      "STATUS_PENDING returned, but the IRP was not marked pending")                               \
    X(0x23E, "dispatch routine", "IRP", "device object",                                           \
      "IRP marked pending, but STATUS_PENDING was not returned")                                   \
    X(0x240, "routine", "IRP", "device object", "device deleted twice")

/* BAD_POOL_CALLER: X(first parameter, second, third, fourth, violation). */
#define INTERLOCK_POOL_CALLER_LIST(X)                                                              \
    X(0x00, "", "pool type", "tag", "pool allocation of zero bytes")                               \
    X(0x06, "", "header", "", "pool block freed twice")                                            \
    X(0x07, "", "tag", "block", "pool block freed twice")                                          \
    X(0x08, "current IRQL", "pool type", "bytes", "pool allocation at the wrong IRQL")             \
    X(0x09, "current IRQL", "pool type", "block", "pool block freed at the wrong IRQL")            \
    X(0x0A, "block", "its tag", "given tag", "pool block freed with the wrong tag")                \
    X(0x46, "address", "", "", "freed address is not a pool block")                                \
    X(0x99, "address", "", "", "freed address is not a pool block")                                \
    X(0x9B, "pool type", "bytes", "caller", "pool allocation with tag 0")

#endif
