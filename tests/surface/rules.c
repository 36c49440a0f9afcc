#include "surface.h"

#include <stdlib.h>
#include <string.h>

#include "everything.h"

static const struct rule rules[] = {
    /* Doing what they are for. */
    {"KeBugCheck*", MAY_STOP, ANY_CODE, "stops with the code that it gets"},
    {"RtlFailFast", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "fails fast"},
    {"ExRaise*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "raises, and nobody catches it"},
    {"RtlRaise*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "raises, and nobody catches it"},
    {"RaiseException", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "raises, and nobody catches it"},
    {"DebugBreak", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "raises STATUS_BREAKPOINT"},
    {"NtTerminateProcess", MAY_END | TAKES_ANY, 0, "the handle is this process, NULL its other threads and then it"},
    {"ZwTerminateProcess", MAY_END | TAKES_ANY, 0, "the handle is this process, NULL its other threads and then it"},
    {"TerminateProcess", MAY_END, 0, "the handle is this process"},
    {"NtTerminateThread", MAY_END | NO_SELF | NULL_IS_SELF, 0, "NULL and -2 are this thread"},
    {"TerminateThread", MAY_END | NO_SELF, 0, "-2 is this thread"},
    {"PsTerminateSystemThread", MAY_END, 0, "ends the thread"},
    {"Exit*", MAY_END, 0, "ends the thread or the process"},
    {"_beginthread*", SETS_ERRNO, 0, "says by errno why there is no thread"},
    {"_invalid_parameter_noinfo", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "there is no handler"},
    {"localtime_s", MAY_STOP | MAY_FAULT | SETS_ERRNO, KERNEL_SECURITY_CHECK_FAILURE, "there is no handler of invalid parameters"},
    {"gmtime_s", MAY_STOP | MAY_FAULT | SETS_ERRNO, KERNEL_SECURITY_CHECK_FAILURE, "there is no handler of invalid parameters"},
    {"*scanf_s", MAY_STOP | MAY_FAULT | SETS_ERRNO, KERNEL_SECURITY_CHECK_FAILURE, "there is no handler of invalid parameters"},
    {"rand_s", MAY_STOP | MAY_FAULT | SETS_ERRNO, KERNEL_SECURITY_CHECK_FAILURE, "there is no handler of invalid parameters"},
    {"qsort_s", NOT_CALLED, 0, "sorts as many elements as it is given; tests/win32/crt.c calls it"},
    {"bsearch_s", MAY_STOP | MAY_FAULT | SETS_ERRNO, KERNEL_SECURITY_CHECK_FAILURE, "there is no handler of invalid parameters"},
    {"_ftime*", MAY_STOP | MAY_FAULT | SETS_ERRNO, KERNEL_SECURITY_CHECK_FAILURE, "there is no handler of invalid parameters"},
    {"_cputs", NOT_CALLED, 0, "writes between the results; tests/win32/crt.c calls it"},
    {"_putch", NOT_CALLED, 0, "writes between the results; tests/win32/crt.c calls it"},
    {"_getch*", NOT_CALLED, 0, "waits for a key; tests/win32/crt.c calls it"},
    {"RtlFree*String", NOT_CALLED, 0, "frees what it gets; tests/rtl/stringops.c calls it"},
    {"RtlInsertElementGenericTableFull*", NOT_CALLED, 0, "the node is one of the table; tests/rtl/table.c calls it"},
    {"RtlDeleteElementGenericTableAvlEx", NOT_CALLED, 0, "the node is one of the table; tests/rtl/table.c calls it"},
    {"ExUnregisterCallback", NOT_CALLED, 0, "frees what it gets; tests/ob/callback.c calls it"},
    {"ExNotifyCallback", NOT_CALLED, 0, "calls what it gets; tests/ob/callback.c calls it"},
    {"KeDeregisterProcessorChangeCallback", NOT_CALLED, 0, "frees what it gets; tests/ke/node.c calls it"},
    {"InterlockAttachModule", NOT_CALLED, 0, "calls what it gets; tests/win32/notify.c calls it"},
    {"InterlockDetachModule", NOT_CALLED, 0, "calls what it gets; tests/win32/notify.c calls it"},
    {"InterlockWcsdup", SETS_ERRNO, 0, "the C library's wcsdup for this width of characters"},
    {"InterlockWcsto*", SETS_ERRNO, 0, "the C library's wcstol and wcstoul for this width of characters"},
    {"_endthread*", MAY_END, 0, "ends the thread"},
    {"NtSuspendThread", NO_SELF, 0, "nobody would resume this thread"},
    {"SuspendThread", NO_SELF, 0, "nobody would resume this thread"},
    {"NtSuspendProcess", NO_SELF, 0, "leaves the caller alone, but not the thread that would check it afterwards"},
    {"VirtualProtect*", NOT_CALLED, 0, "the memory is the test's own"},
    {"FreeEnvironmentStrings*", NOT_CALLED, 0, "frees what it gets"},
    {"GenerateConsoleCtrlEvent", NOT_CALLED, 0, "a signal to the whole process group"},
    {"HeapLock", MAY_STOP, 0xC4, "the verifier stops a thread that ends with a lock"},
    {"KeEnterTryFrame", CHANGES_THREAD, 0, "the frame of a later exception"},
    {"KeBeginFinally", NOT_CALLED, 0, "returns a structure; the macros of exception.h call it"},
    {"VfExpectBugCheck*", NOT_CALLED, 0, "calls what it gets; tests/ke/expect.c calls it"},
    {"VfBeginExpectation", NOT_CALLED, 0, "a frame of VF_EXPECT_BUGCHECK"},
    {"VfEndExpectation", NOT_CALLED, 0, "a frame of VF_EXPECT_BUGCHECK"},
    {"VfMarkPool", NOT_CALLED, 0, "returns a structure; tests/ex/pooltag.c calls it"},
    {"KeLeaveTryFrame", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "no frame was entered"},

    /* They wait for what no thread does. */
    {"RtlWaitOnAddress", NO_FOREVER, 0, "no thread wakes the address"},
    {"WaitOnAddress", NO_FOREVER | MAY_FAULT, 0, "no thread wakes the address; reads it in user mode"},
    {"RtlSleepConditionVariable*", NO_FOREVER, 0, "nobody wakes the variable"},
    {"SleepConditionVariable*", NO_FOREVER | MAY_FAULT, 0, "nobody wakes the variable"},
    {"ExBlockOnAddressPushLock", NO_FOREVER, 0, "no thread wakes the address"},
    {"ExTimedWaitForUnblockPushLock", NO_FOREVER | MAY_FAULT, 0, "the block is in no list"},
    {"KeDelayExecutionThread", NO_FOREVER | NEEDS_TIME, 0, "as long as requested"},
    {"NtDelayExecution", NO_FOREVER | NEEDS_TIME, 0, "as long as requested"},
    {"Sleep*", NO_FOREVER, 0, "as long as requested"},
    {"KeRemoveQueue*", NO_FOREVER, 0, "the queue is empty"},
    {"IoRemoveIoCompletion", NO_FOREVER, 0, "the port is empty"},
    {"NtWaitForAlertByThreadId", NO_FOREVER, 0, "no thread alerts it"},
    {"NtWaitForKeyedEvent", NO_FOREVER | TAKES_ANY, 0, "no thread releases the key; NULL is the global keyed event"},
    {"NtReleaseKeyedEvent", NO_FOREVER | TAKES_ANY, 0, "no thread waits for the key; NULL is the global keyed event"},
    {"KeStallExecutionProcessor", TRUSTS_NUMBERS, 0, "as long as requested"},
    {"TpSetPoolMinThreads", TRUSTS_NUMBERS, 0, "starts as many threads as requested"},
    {"SetThreadpoolThreadMinimum", TRUSTS_NUMBERS | MAY_FAULT, 0, "starts as many threads as requested"},

    /* A number that is the size of a buffer. */
    {"NtAlertMultipleThreadByThreadId", TRUSTS_NUMBERS, 0, "the count is that of the array"},
    {"InterlockWcsn*", TRUSTS_NUMBERS | MAY_FAULT, 0, "the count is that of the buffer"},
    {"MultiByteToWideChar", TRUSTS_NUMBERS, 0, "the count is that of the text"},
    {"Rtl*To*N", TRUSTS_NUMBERS, 0, "the counts are those of the buffers"},
    {"Rtl*ByteTo*Size", TRUSTS_NUMBERS, 0, "the count is that of the text"},
    {"Rtl*To*ByteSize", TRUSTS_NUMBERS, 0, "the count is that of the text"},
    {"RtlFillMemory*", TRUSTS_NUMBERS, 0, "the count is that of the buffer"},
    {"RtlCompareMemoryUlong", TRUSTS_NUMBERS, 0, "the count is that of the buffer"},
    {"RtlIsZeroMemory", TRUSTS_NUMBERS, 0, "the count is that of the buffer"},

    /* NULL in place of a handle. */
    {"*Duplicate*", TAKES_ANY, 0, "no target process: only the source is closed"},
    {"PsCreateSystemThread", TAKES_ANY, 0, "NULL is the system process"},
    {"NtQueueApcThreadEx*", TAKES_ANY, 0, "NULL: no reserve object"},
    {"RtlDeleteTimerQueueEx", TAKES_ANY, 0, "NULL: does not wait"},
    {"DeleteTimerQueueEx", TAKES_ANY, 0, "NULL: does not wait"},

    /* On Windows user mode does the work and faults at the pointer. */
    {"InterlockW*", MAY_FAULT, 0, "functions of the C library"},
    {"InterlockV*", MAY_FAULT, 0, "functions of the C library"},
    {"Interlock*rintf", MAY_FAULT | SETS_ERRNO, 0, "functions of the C library"},
    {"_*snprintf", MAY_FAULT | SETS_ERRNO, 0, "functions of the C library"},
    {"*SRWLock*", MAY_FAULT, 0, "a lock"},
    {"*ConditionVariable*", MAY_FAULT, 0, "a lock"},
    {"*CriticalSection*", MAY_FAULT, 0, "a lock"},
    {"InitOnce*", MAY_FAULT, 0, "a lock"},
    {"EnterSynchronizationBarrier", MAY_FAULT | MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "a lock; raises at unknown flags"},
    {"RtlBarrier*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "raises at unknown flags"},
    {"*SynchronizationBarrier", MAY_FAULT, 0, "a lock"},
    {"*Threadpool*", MAY_FAULT, 0, "an object of the pool"},
    {"*CallbackReturns", MAY_FAULT, 0, "an object of the pool"},
    {"*CallbackReturns", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_INVALID_PARAMETER is raised"},
    {"TpCallback*OnCompletion", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_INVALID_PARAMETER is raised"},
    {"CallbackMayRunLong", MAY_FAULT, 0, "an object of the pool"},
    {"DisassociateCurrentThreadFromCallback", MAY_FAULT, 0, "an object of the pool"},
    {"RegisterWaitForSingleObject", MAY_FAULT, 0, "an object of the pool"},
    {"CreateTimerQueueTimer", MAY_FAULT, 0, "an object of the pool"},
    {"*FileTime*", MAY_FAULT, 0, "arithmetic"},
    {"Query*InterruptTime*", MAY_FAULT, 0, "reads what the kernel shares with programs"},
    {"Get*Time", MAY_FAULT, 0, "reads what the kernel shares with programs"},
    {"Get*SystemInfo", MAY_FAULT, 0, "fills the structure"},
    {"GetVersionEx*", MAY_FAULT, 0, "reads the size in the structure"},
    {"GlobalMemoryStatusEx", MAY_FAULT, 0, "reads the size in the structure"},
    {"GetProcessHeaps", MAY_FAULT, 0, "a list of the heap manager"},
    {"RtlCaptureStackBackTrace", MAY_FAULT, 0, "walks the stack"},
    {"GetCurrentThreadStackLimits", MAY_FAULT, 0, "reads the thread's block"},

    /* Objects in a state that only a mistake brings about. */
    {"KeCancelObjectNotification", MAY_FAULT, 0, "was not registered"},
    {"KeCancelObjectDpc", MAY_FAULT, 0, "was not registered"},
    {"ExUnblockPushLockEx", MAY_FAULT, 0, "the block is in no list"},
    {"KfRaiseIrql", MAY_STOP, IRQL_NOT_GREATER_OR_EQUAL, "above HIGH_LEVEL"},
    {"KfLowerIrql", MAY_STOP, IRQL_NOT_LESS_OR_EQUAL, "higher than it is"},
    {"KeAlertThread", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "no such mode"},
    {"KeTestAlertThread", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "no such mode"},
    {"KeFilterException", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "no exception was caught"},
    {"KeLeaveCriticalRegion", MAY_STOP, APC_INDEX_MISMATCH, "was not entered"},
    {"KeLeaveGuardedRegion", MAY_STOP, APC_INDEX_MISMATCH, "was not entered"},
    {"KeReleaseMut*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_MUTANT_NOT_OWNED is raised"},
    {"KeReleaseSemaphore", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_SEMAPHORE_LIMIT_EXCEEDED is raised"},
    {"KeReleaseSpinLock", MAY_STOP, IRQL_NOT_LESS_OR_EQUAL, "not at DISPATCH_LEVEL"},
    {"ExReleaseSpinLock*", MAY_STOP, IRQL_NOT_LESS_OR_EQUAL, "not at DISPATCH_LEVEL"},
    {"KeReleaseQueuedSpinLock", MAY_STOP, IRQL_NOT_LESS_OR_EQUAL, "not at DISPATCH_LEVEL"},
    {"KeReleaseQueuedSpinLock", MAY_STOP, IRQL_NOT_GREATER_OR_EQUAL, "owns no processor"},
    {"KeRestoreExtendedProcessorState", MAY_STOP, IRQL_UNEXPECTED_VALUE, "was not saved"},
    {"Ke*QueuedSpinLock*", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "no such number"},
    {"Ke*QueuedSpinLock*", MAY_STOP, SPIN_LOCK_NOT_OWNED, "was not acquired"},
    {"KeReleaseInterruptSpinLock", MAY_STOP, IRQL_NOT_LESS_OR_EQUAL, "was not acquired"},
    {"KeWaitForManyObjects", NOT_CALLED, 0, "uses the memory behind the blocks; tests/ke/manyobjects.c calls it"},
    {"KeWaitForMultipleObjects", MAY_STOP, MAXIMUM_WAIT_OBJECTS_EXCEEDED, "more than there is room for"},
    {"KeSetTargetProcessorDpc", MAY_STOP, TIMER_OR_DPC_INVALID, "no such processor"},
    {"Ex*Timer", MAY_STOP, TIMER_OR_DPC_INVALID, "not such a timer"},
    {"ExQueueWorkItem", MAY_STOP, WORKER_INVALID, "no such queue"},
    {"IoQueueWorkItem*", MAY_STOP, WORKER_INVALID, "no such queue"},
    {"KeRemove*DeviceQueue", MAY_STOP, DEVICE_QUEUE_NOT_BUSY, "nobody serves it"},
    {"Io*RemoveLock*Ex", MAY_STOP, DRIVER_VERIFIER_DETECTED_VIOLATION, "was not acquired"},
    {"IofCallDriver", MAY_STOP, DRIVER_VERIFIER_IOMANAGER_VIOLATION, "not a packet"},
    {"IoReleaseCancelSpinLock", MAY_STOP, IRQL_NOT_GREATER_OR_EQUAL, "was not acquired"},
    {"IoFreeWorkItem", MAY_STOP, BAD_POOL_CALLER, "was not allocated"},
    {"ExAllocate*", MAY_STOP, BAD_POOL_CALLER, "tag 0"},
    {"ExAllocatePool2", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "asked to raise"},
    {"ExFreePool*", MAY_STOP, BAD_POOL_CALLER, "another tag, or NULL"},
    {"ExFreeCacheAware*", MAY_STOP, BAD_POOL_CALLER, "NULL"},
    {"ExAllocatePool3", MAY_STOP | TRUSTS_NUMBERS, KMODE_EXCEPTION_NOT_HANDLED, "asked to raise; the count is that of the array"},
    {"ExAllocatePoolWithQuotaTag", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "raises without memory"},
    {"Ex*LookasideList*", MAY_STOP | MAY_FAULT, KMODE_EXCEPTION_NOT_HANDLED, "misaligned, or not initialized: no routines"},
    {"ExRegisterCallback", MAY_STOP, REFERENCE_BY_POINTER, "no object"},
    {"ProbeFor*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "raises for what it refuses"},
    {"DbgBreakPoint*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "without a debugger it raises"},
    {"RtlAssert", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "without a debugger it raises"},
    {"RtlpRaiseAssertionFailure", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "without a debugger it raises"},
    {"ExInitializeRundownProtectionCacheAware", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED,
     "STATUS_INVALID_PARAMETER_2 is raised"},
    {"Ex*RundownProtection*", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "released more often than acquired"},
    {"Ex*FastReference", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "an object that is not aligned"},
    {"Ex*FastResource*", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "initialized already, or not at all"},
    {"Ex*FastResource*", MAY_STOP, FAST_ERESOURCE_PRECONDITION_VIOLATION, "not as its rules have it"},
    {"Ex*Resource*", MAY_STOP, RESOURCE_NOT_OWNED, "was not acquired"},
    {"ExConvertExclusiveToSharedLite", MAY_STOP, RESOURCE_NOT_OWNED, "was not acquired"},
    {"ExSetResourceOwnerPointer*", MAY_STOP, RESOURCE_OWNER_POINTER_INVALID, "not an owner pointer"},
    {"ExReinitializeResourceLite", MAY_STOP, KERNEL_SECURITY_CHECK_FAILURE, "is in the list of resources already"},
    {"Ex*PushLock*", MAY_STOP, KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, "was not acquired"},
    {"Ex*FastMutex*", MAY_STOP, KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, "was not acquired"},
    {"Ke*GuardedMutex*", MAY_STOP, KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, "was not acquired"},
    {"*SList*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_DATATYPE_MISALIGNMENT is raised"},
    {"*SRWLock*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_RESOURCE_NOT_OWNED is raised"},
    {"*SleepConditionVariableSRW", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_RESOURCE_NOT_OWNED is raised"},
    {"RtlConvert*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_RESOURCE_NOT_OWNED is raised"},
    {"RtlReleaseResource", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_RESOURCE_NOT_OWNED is raised"},
    {"SwitchToFiber", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_INVALID_PARAMETER is raised"},
    {"DeleteFiber", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "STATUS_INVALID_PARAMETER is raised"},
    {"TpSetWait*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "the status of a bad handle is raised"},
    {"SetThreadpoolWait*", MAY_STOP, KMODE_EXCEPTION_NOT_HANDLED, "the status of a bad handle is raised"},
};

enum { RULES = sizeof(rules) / sizeof(rules[0]) };

/* A star stands for anything. */
static bool matches(const char *pattern, const char *name)
{
    while (*pattern != '*') {
        if (*pattern != *name)
            return false;
        if (*pattern == '\0')
            return true;
        pattern++;
        name++;
    }
    for (;; name++) {
        if (matches(pattern + 1, name))
            return true;
        if (*name == '\0')
            return false;
    }
}

unsigned allowed_for(const struct function *function)
{
    unsigned allowed = 0;

    for (unsigned i = 0; i < RULES; i++) {
        if (matches(rules[i].name, function->name))
            allowed |= rules[i].allowed;
    }
    return allowed;
}

/* No object of the kind is available, so every call passes NULL. */
static bool lacks_object(const struct function *function)
{
    for (unsigned i = 0; i < function->parameters; i++) {
        if (is_lacking(function->kind[i]))
            return true;
    }
    return false;
}

bool trusts_pointers(const struct function *function)
{
    return function->layer == LAYER_kernel || function->layer == LAYER_runtime ||
           (allowed_for(function) & MAY_FAULT) != 0;
}

bool may_fault(const struct function *function, const struct plan *plan)
{
    bool null = plan->fault == FAULT_ALL_ZERO || strcmp(plan->description, "NULL") == 0 ||
                strcmp(plan->description, "without buffer") == 0 || lacks_object(function);

    /* An object of zeroes has NULL inside. */
    return trusts_pointers(function) &&
           (null || (function->layer == LAYER_kernel && (allowed_for(function) & MAY_FAULT) != 0));
}

static bool verifier_is_on(void)
{
#ifdef INTERLOCK_DEBUG
    return true;
#else
    return getenv("INTERLOCK_VERIFIER") != NULL;
#endif
}

/* The verifier finds more mistakes, but not in arguments of services. */
static bool may_verifier_stop(const struct function *function, uint32_t code)
{
    return (code == DRIVER_VERIFIER_DETECTED_VIOLATION || code == IRQL_NOT_GREATER_OR_EQUAL ||
            code == SPIN_LOCK_NOT_OWNED || code == SPIN_LOCK_INIT_FAILURE || code == INVALID_KERNEL_HANDLE ||
            code == INVALID_PUSH_LOCK_FLAGS || code == INVALID_SLOT_ALLOCATOR_FLAGS ||
            code == ERESOURCE_INVALID_RELEASE) &&
           verifier_is_on() && trusts_pointers(function);
}

bool may_stop(const struct function *function, uint32_t code)
{
    for (unsigned i = 0; i < RULES; i++) {
        if ((rules[i].allowed & MAY_STOP) != 0 && (rules[i].code == code || rules[i].code == ANY_CODE) &&
            matches(rules[i].name, function->name))
            return true;
    }
    return may_verifier_stop(function, code);
}

unsigned rule_without_function(void)
{
    for (unsigned i = 0; i < RULES; i++) {
        bool found = false;

        for (unsigned f = 0; f < function_count && !found; f++)
            found = matches(rules[i].name, functions[f].name);
        if (!found)
            return i + 1;
    }
    return 0;
}

const char *rule_name(unsigned rule)
{
    return rules[rule].name;
}
