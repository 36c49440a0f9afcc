/*
 * bugadvice.c: which rule a bugcheck stands for, and where to look: what !analyze adds to the name and the parameters,
 * which are in src/ke/bugtable.c. A row is for a code, or for kinds of violation of a code.
 */
#include "bugadvice.h"

#include "ke/bugcheck.h"

#include <stddef.h>

#define ALL 0, UINTPTR_MAX

#define LEVEL                                                                                                          \
    "Every routine has a range of IRQLs that it may be called at (docs/api.md lists it). Above APC_LEVEL nothing may wait."
#define LEVEL_LOOK                                                                                                     \
    "Search the callers in the stack for the one that raised the IRQL: an acquired spinlock, a DPC, a timer's DPC or an " \
    "interrupt routine. Move the call out of it, for instance into a work item."
#define RELEASE "Only the thread that acquired a lock may release it, once for each acquire."
#define RELEASE_LOOK                                                                                                   \
    "Compare the paths through the routine in the stack: one of them releases without having acquired, releases twice, or " \
    "runs in another thread than the acquire did."
#define REGION                                                                                                         \
    "These locks need APCs to be disabled around them: KeEnterCriticalRegion before the acquire, KeLeaveCriticalRegion "   \
    "after the release, one for each."
#define REGION_LOOK "Look for the missing KeEnterCriticalRegion, or for a KeLeaveCriticalRegion that came too early."
#define IRP_RULE "An IRP is owned by one driver at a time, is completed once, and is not touched after its completion."
#define IRP_LOOK                                                                                                       \
    "Look at the dispatch, completion and cancel routines of the driver in the stack for two paths that complete, free or " \
    "forward the same IRP."
#define MEMORY "Memory that the library still uses must not be freed or used for something else."

static const struct {
    uint32_t code;
    uintptr_t first, last; /* kinds */
    kd_advice advice;
} rows[] = {
    {APC_INDEX_MISMATCH, ALL,
     {"Critical and guarded regions are entered and left in pairs, by the same thread, and end before the routine returns.",
      "Count the KeEnterCriticalRegion and KeLeaveCriticalRegion calls of the routine in the first parameter on every path, "
      "error paths included."}},
    {DEVICE_QUEUE_NOT_BUSY, ALL,
     {"KeRemoveDeviceQueue is for a busy queue: one into which an entry was inserted before.",
      "Look for a removal without an insertion, or for one that is done twice."}},
    {IRQL_NOT_GREATER_OR_EQUAL, ALL,
     {"KeRaiseIrql only raises and KeLowerIrql only lowers; some routines need a minimum level.",
      "Compare the requested and the current IRQL in the parameters with the order in which the routine in the stack "
      "raises and lowers."}},
    {IRQL_NOT_LESS_OR_EQUAL, ALL, {LEVEL, LEVEL_LOOK}},
    {DRIVER_IRQL_NOT_LESS_OR_EQUAL, ALL, {LEVEL " Paged memory may not be touched there either.", LEVEL_LOOK}},
    {MAXIMUM_WAIT_OBJECTS_EXCEEDED, ALL,
     {"A wait may name up to 3 objects without an array of wait blocks, up to 64 with one.",
      "Pass an array of KWAIT_BLOCK for more than three objects, or wait for fewer."}},
    {SPIN_LOCK_ALREADY_OWNED, ALL,
     {"A spinlock is not recursive: its owner would spin forever.",
      "Find the first acquire of this lock further down in the stack, or in the caller that did not release it."}},
    {SPIN_LOCK_NOT_OWNED, ALL, {RELEASE, RELEASE_LOOK}},
    {SPIN_LOCK_INIT_FAILURE, ALL,
     {"A spinlock is initialized before its first use, and once.", "Look for the missing KeInitializeSpinLock."}},
    {CID_HANDLE_CREATION, ALL,
     {"A process has a limited number of thread and process ids.", "Count the threads: `interlock threads`."}},
    {REFERENCE_BY_POINTER, ALL,
     {"An object is dereferenced once for each reference, and not used after the last one.",
      "Count references and dereferences of the object in the second parameter; a handle that is closed twice looks the same."}},
    {KMODE_EXCEPTION_NOT_HANDLED, ALL,
     {"ExRaiseStatus needs a __try around it: an unhandled exception ends the system.",
      "The second parameter is where the status was raised: handle it in a caller, or return it instead."}},
    {SHARED_RESOURCE_CONV_ERROR, ALL,
     {"A thread that holds a resource shared must release it before it acquires it exclusively.",
      "Release first, or acquire exclusively from the start: two threads that convert would wait for each other."}},
    {KERNEL_APC_PENDING_DURING_EXIT, ALL,
     {"A thread ends at PASSIVE_LEVEL, outside critical and guarded regions.",
      "Look for a return out of the thread's routine between KeEnterCriticalRegion and KeLeaveCriticalRegion."}},
    {INCONSISTENT_IRP, ALL, {IRP_RULE, IRP_LOOK}},
    {NO_MORE_IRP_STACK_LOCATIONS, ALL,
     {"An IRP has as many stack locations as the device that it was allocated for has drivers below it.",
      "Allocate it with the StackSize of the device that it is sent to, one more if the sender needs one of its own; and do "
      "not forward it to a device above."}},
    {MULTIPLE_IRP_COMPLETE_REQUESTS, ALL, {IRP_RULE, IRP_LOOK}},
    {CANCEL_STATE_IN_COMPLETED_IRP, ALL,
     {"The cancel routine is cleared (IoSetCancelRoutine with NULL) before an IRP is completed.", IRP_LOOK}},
    {SYSTEM_EXIT_OWNED_MUTEX, ALL,
     {"A worker routine releases what it acquired before it returns: the thread runs other items after it.",
      "Look at the worker routine in the first parameter for a path without a release."}},
    {TARGET_MDL_TOO_SMALL, ALL,
     {"IoBuildPartialMdl needs a target with room for the pages of the part.",
      "Allocate the target MDL for the length and the offset in the page."}},
    {PFN_LIST_CORRUPT, ALL,
     {"Pages are unlocked once for each time they were locked.", "Look for a second MmUnlockPages of the same MDL."}},
    {PROCESS_HAS_LOCKED_PAGES, ALL,
     {"A process unlocks all pages before it ends.", "Find the MmProbeAndLockPages of the MDL in the last parameter."}},
    {INVALID_KERNEL_HANDLE, ALL,
     {"A handle is closed once, and not while it is protected from close.",
      "Look for a second CloseHandle: another thread may own the value by now."}},
    {ATTEMPTED_SWITCH_FROM_DPC, ALL,
     {"A DPC routine runs at DISPATCH_LEVEL on a borrowed thread: it must not wait for anything.",
      "The second parameter is the object that it waited for. Queue a work item, or signal a thread that waits instead."}},
    {BAD_POOL_CALLER, 0x06, 0x07,
     {"A pool block is freed once.", "Set the pointer to NULL after the free; the verifier records who freed it first."}},
    {BAD_POOL_CALLER, 0x0A, 0x0A,
     {"ExFreePoolWithTag needs the tag that the block was allocated with.",
      "Compare the two tags in the parameters: another component's block was freed, or the tag is wrong."}},
    {BAD_POOL_CALLER, ALL,
     {"Pool blocks are allocated with a size and a tag, at or below DISPATCH_LEVEL (paged pool: APC_LEVEL), and freed by the "
      "address that was returned.",
      "Look at the call in the stack: its size, its tag, its address, and the IRQL."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1000, 0x1000,
     {"This lock is not recursive: its owner would wait for itself.",
      "Find the first acquire of this lock further down in the stack."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1001, 0x1001,
     {"All threads acquire locks in one order: two threads that take the same two in opposite order can deadlock, even if "
      "they have not yet.",
      "The lock in the second parameter was acquired while the one in the third was held; elsewhere they were acquired in the "
      "opposite order. Choose one order, and document it at the locks (docs/hunting-deadlocks.md)."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1002, 0x1002,
     {"A lock is initialized before its first use.", "Look for the missing initialization of the lock in the parameters."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1003, 0x1004, {RELEASE, RELEASE_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1005, 0x1005,
     {"A lock is initialized once.", "Look for a second initialization while the lock may be in use."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1007, 0x1007, {RELEASE, RELEASE_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1008, 0x1009,
     {"A lock is acquired and released by the functions of one kind.",
      "Compare the acquire with the release: an ordinary spinlock and a queued one, or two kinds of mutex, were mixed."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x100A, 0x100B,
     {"A lock is released before its owner ends, and before it is deleted.",
      "Look for a path without a release in the owner that the parameters name."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x37, 0x3A, {REGION, REGION_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x3E, 0x3E, {REGION, REGION_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0xC5, 0xC5, {REGION, REGION_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0xEA, 0xEB, {REGION, REGION_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x3C, 0x3F,
     {"An object is used only while the caller has a handle or a reference, and a resource has the alignment that the compiler gave it.",
      "Find the code that closed the handle or dropped the last reference before this call."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0xD2, 0xD2,
     {MEMORY, "Delete the resource (ExDeleteResourceLite) before its memory is freed."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x494C0001, 0x494C0002,
     {MEMORY, "The stack shows which code frees it; the parameters show what is still in it."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x494C0003, 0x494C0003,
     {"A routine that the library calls returns without the locks that it acquired.",
      "Look at the routine in the second parameter for a path without a release."}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x30, 0x42, {LEVEL, LEVEL_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x80, 0x80, {LEVEL, LEVEL_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0xE5, 0xE5, {LEVEL, LEVEL_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, 0x11A, 0x122, {LEVEL, LEVEL_LOOK}},
    {DRIVER_VERIFIER_DETECTED_VIOLATION, ALL,
     {"The verifier checks what the documentation of each routine demands (docs/testing-drivers.md).",
      "The sentence above says what was wrong with the call at the top of the stack."}},
    {TIMER_OR_DPC_INVALID, ALL,
     {"A timer or DPC is initialized, is not freed while it is set or queued, and its routine keeps the APC counts.",
      "Look for KeCancelTimer or KeFlushQueuedDpcs before the memory is freed."}},
    {IRQL_UNEXPECTED_VALUE, ALL,
     {"A routine that the library calls returns at the IRQL at which it was called.",
      "Look at the routine in the parameters for a KeRaiseIrql or a spinlock without its counterpart."}},
    {DRIVER_VERIFIER_IOMANAGER_VIOLATION, ALL, {IRP_RULE, IRP_LOOK}},
    {DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS, ALL,
     {"A driver deletes its devices, timers, DPCs and work items before it is unloaded.",
      "Look at the unload routine in the last parameter: which step of DriverEntry does it not undo?"}},
    {WORKER_THREAD_RETURNED_AT_BAD_IRQL, ALL,
     {"A worker routine returns at PASSIVE_LEVEL.",
      "Look at the routine in the first parameter for a spinlock that is not released, or a KeRaiseIrql without KeLowerIrql."}},
    {RESOURCE_NOT_OWNED, ALL, {RELEASE, RELEASE_LOOK}},
    {WORKER_INVALID, ALL,
     {"A work item is queued once at a time, and its memory stays until its routine runs.",
      "Look for a second ExQueueWorkItem before the first one has run, or for a free in between."}},
    {RESOURCE_OWNER_POINTER_INVALID, ALL,
     {"An owner pointer of ExSetResourceOwnerPointer has its two low bits set.",
      "Add 3 to the pointer, as the documentation says; it must be aligned."}},
    {KERNEL_SECURITY_CHECK_FAILURE, ALL,
     {"A LIST_ENTRY points to neighbours that point back.",
      "An entry was removed twice, inserted twice, or its memory was overwritten or freed: AddressSanitizer finds the writer."}},
    {INVALID_PUSH_LOCK_FLAGS, ALL,
     {"The flags of the pushlock functions are those that the header names.", "Look at the flags in the first parameter."}},
    {INVALID_SLOT_ALLOCATOR_FLAGS, ALL,
     {"The flags of the pushlock functions are those that the header names.", "Look at the flags in the first parameter."}},
    {KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, ALL, {RELEASE, RELEASE_LOOK}},
    {KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL, ALL, {LEVEL, LEVEL_LOOK}},
    {ERESOURCE_INVALID_RELEASE, ALL, {RELEASE, RELEASE_LOOK}},
    {FAST_ERESOURCE_PRECONDITION_VIOLATION, ALL,
     {"A fast resource is used by the functions of fast resources alone, with an owner entry that stays where it is.",
      "Look for a call of another kind of resource function, or for an owner entry on a stack that has returned."}},
    {THREAD_TERMINATE_HELD_MUTEX, ALL,
     {"A thread releases its mutexes before it ends.",
      "Look for a path out of the thread's routine without KeReleaseMutex of the mutex in the second parameter."}},
};

kd_advice kd_bug_advice(uint32_t code, uint64_t kind)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].code == code && kind >= rows[i].first && kind <= rows[i].last)
            return rows[i].advice;
    if (code != 0 && KiFindBugCode(code)->Code == code)
        return (kd_advice){"The library does not stop a process for this by itself: the program called KeBugCheckEx.",
                           "Look at the caller at the top of the stack; the parameters have the meanings that NT documents."};
    return (kd_advice){"No bugcheck of NT that Interlock knows has this code: the program called KeBugCheckEx with a code of its own.",
                       "Look at the caller at the top of the stack: only its author knows what the parameters mean."};
}
