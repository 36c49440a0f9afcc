/*
 * resource.c: user-mode resources, shared or exclusive.
 *
 * Everything changes inside the critical section of the resource: a thread that has to wait counts itself as a waiter,
 * leaves the section and waits for one of two semaphores. A release that makes the resource available makes the waiters
 * its owners before it releases the semaphore, so a waiter that returns has it. In the other order a third thread could
 * take it in between, and the waiter would have to retry.
 *
 * Requirements, each with a test of that number in tests/rtl/rtlresource.c:
 *  1. NumberOfActive is 0 when it is free, n when it is shared n times, -n when its owner has acquired it n times.
 *  2. A request for a share is granted unless the resource is owned exclusively: exclusive waiters are no reason to
 *     wait. (So overlapping sharers starve an exclusive waiter; that is the contract.)
 *  3. The exclusive owner may acquire it again, in either mode. A sharer that acquires it exclusively waits for itself.
 *  4. Without Wait nothing blocks, and a request that would have to block changes nothing.
 *  5. When it becomes free the oldest exclusive waiter gets it, or all waiting sharers.
 *  6. Converting to exclusive is immediate for the only sharer; another sharer releases its share and waits. Converting
 *     to shared keeps as many shares as there were acquires, and admits all waiting sharers.
 *  7. Releasing or converting a resource that is not held that way raises STATUS_RESOURCE_NOT_OWNED.
 *  8. Acquiring and releasing allocate nothing. If an allocation fails, initializing raises the status and leaves
 *     nothing behind.
 *  9. DebugInfo is that of the section, and counts the waits for the resource too. A wait that lasts too long is
 *     reported, as those for critical sections are, unless RTL_RESOURCE_FLAG_LONG_TERM is set.
 * 10. In a forked child the waiters that stayed behind are forgotten. Reserved is KiForkDepth, which shows that.
 */
#include "criticalsection.h"

#include "../ke/lockorder.h"
#include "../trace/trace.h"

#define RTLP_MOST_WAITERS MAXLONG
#define RTLP_RESOURCE_SECTION (RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE | RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO)

/* In the lock order, where its address stands for the critical section that it begins with. */
static PVOID RtlpOrderOf(PRTL_RESOURCE Resource)
{
    return &Resource->SharedSemaphore;
}

VOID RtlInitializeResource(PRTL_RESOURCE Resource)
{
    *Resource = (RTL_RESOURCE){.Reserved = KiForkDepth};
    NTSTATUS Status = RtlInitializeCriticalSectionEx(&Resource->CriticalSection, 0, RTLP_RESOURCE_SECTION);
    if (!NT_SUCCESS(Status)) {
        RtlRaiseStatus(Status);
    }
    Status = NtCreateSemaphore(&Resource->SharedSemaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, RTLP_MOST_WAITERS);
    if (NT_SUCCESS(Status)) {
        Status = NtCreateSemaphore(&Resource->ExclusiveSemaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, RTLP_MOST_WAITERS);
        if (!NT_SUCCESS(Status)) {
            NtClose(Resource->SharedSemaphore);
        }
    }
    if (!NT_SUCCESS(Status)) {
        RtlDeleteCriticalSection(&Resource->CriticalSection);
        RtlRaiseStatus(Status);
    }
    Resource->DebugInfo = Resource->CriticalSection.DebugInfo;
    if (KiVerifierEnabled) {
        KiOrderInitialize(RtlpOrderOf(Resource), KiOrderRtlResource);
    }
}

VOID RtlDeleteResource(PRTL_RESOURCE Resource)
{
    RtlDeleteCriticalSection(&Resource->CriticalSection);
    NtClose(Resource->SharedSemaphore);
    NtClose(Resource->ExclusiveSemaphore);
    *Resource = (RTL_RESOURCE){.CriticalSection = Resource->CriticalSection};
    if (KiVerifierEnabled) {
        KiOrderForget(RtlpOrderOf(Resource));
    }
}

/* The section. */

static VOID RtlpDrain(HANDLE Semaphore)
{
    LARGE_INTEGER Now = {.QuadPart = 0};
    while (NtWaitForSingleObject(Semaphore, FALSE, &Now) == STATUS_WAIT_0) {
    }
}

/* Requirement 10: in a forked child the waiters are forgotten. What another thread owned is owned forever. */
static VOID RtlpLockResource(PRTL_RESOURCE Resource)
{
    RtlEnterCriticalSection(&Resource->CriticalSection);
    if (Resource->Reserved != KiForkDepth) {
        Resource->NumberOfWaitingShared = 0;
        Resource->NumberOfWaitingExclusive = 0;
        RtlpDrain(Resource->SharedSemaphore);
        RtlpDrain(Resource->ExclusiveSemaphore);
        Resource->Reserved = KiForkDepth;
    }
}

static VOID RtlpUnlockResource(PRTL_RESOURCE Resource)
{
    RtlLeaveCriticalSection(&Resource->CriticalSection);
}

static DECLSPEC_NORETURN VOID RtlpNotOwned(PRTL_RESOURCE Resource)
{
    RtlpUnlockResource(Resource);
    RtlRaiseStatus(STATUS_RESOURCE_NOT_OWNED);
}

/* With the section entered. */

static HANDLE RtlpOwnId(VOID)
{
    return ULongToHandle(KiCurrentThread()->ThreadId);
}

/* relaxed, both: a waiter that was handed the resource writes its id outside the section, and a thread only compares it
   with its own */
static VOID RtlpSetExclusiveOwner(PRTL_RESOURCE Resource, HANDLE Owner)
{
    __atomic_store_n(&Resource->ExclusiveOwnerThread, Owner, __ATOMIC_RELAXED);
}

static ULONG RtlpExclusiveOwner(PRTL_RESOURCE Resource)
{
    return HandleToULong(__atomic_load_n(&Resource->ExclusiveOwnerThread, __ATOMIC_RELAXED));
}

static BOOLEAN RtlpIsOwnedByCaller(PRTL_RESOURCE Resource)
{
    return Resource->NumberOfActive < 0 && RtlpIsThreadId(KiCurrentThread(), RtlpExclusiveOwner(Resource));
}

static VOID RtlpOwn(PRTL_RESOURCE Resource)
{
    Resource->NumberOfActive = -1;
    RtlpSetExclusiveOwner(Resource, RtlpOwnId());
}

static BOOLEAN RtlpOwnAgain(PRTL_RESOURCE Resource)
{
    if (!RtlpIsOwnedByCaller(Resource)) {
        return FALSE;
    }
    Resource->NumberOfActive -= 1;
    RtlpSetExclusiveOwner(Resource, RtlpOwnId());
    return TRUE;
}

/* Waiters that were handed the resource and have not noticed yet. */
typedef struct _RTLP_ADMITTED {
    HANDLE Semaphore;
    LONG Count; /* -1: one exclusive waiter */
} RTLP_ADMITTED;

static RTLP_ADMITTED RtlpAdmitSharers(PRTL_RESOURCE Resource)
{
    RTLP_ADMITTED Admitted = {Resource->SharedSemaphore, (LONG)Resource->NumberOfWaitingShared};
    Resource->NumberOfActive += Admitted.Count;
    Resource->NumberOfWaitingShared = 0;
    return Admitted;
}

/* The resource is free. An exclusive waiter enters its own id when it runs; until then there is none. */
static RTLP_ADMITTED RtlpHandOffResource(PRTL_RESOURCE Resource, BOOLEAN WasShared)
{
    RtlpSetExclusiveOwner(Resource, NULL);
    if (Resource->NumberOfWaitingExclusive == 0) {
        return RtlpAdmitSharers(Resource);
    }
    Resource->NumberOfWaitingExclusive -= 1;
    Resource->NumberOfActive = -1;
    return (RTLP_ADMITTED){Resource->ExclusiveSemaphore, WasShared ? -1 : 1};
}

/* With the section left: the waiter may delete the resource. */
static DECLSPEC_NOINLINE VOID RtlpWakeAdmittedWaiters(PRTL_RESOURCE Resource, RTLP_ADMITTED Admitted)
{
    KTRACE_RELEASING(Resource, KiLockRtlResource, Admitted.Count > 0, KiCurrentThread());
    NtReleaseSemaphore(Admitted.Semaphore, Admitted.Count > 0 ? Admitted.Count : 1, NULL);
    KTRACE_RELEASED(TRUE);
}

static VOID RtlpWakeAdmitted(PRTL_RESOURCE Resource, RTLP_ADMITTED Admitted)
{
    if (Admitted.Count != 0) {
        RtlpWakeAdmittedWaiters(Resource, Admitted);
    }
}

/* Waiting, with the section left. */

static VOID RtlpReportResourceWait(PRTL_RESOURCE Resource, PCSTR Function)
{
    RtlpLockResource(Resource);
    RTLP_LONG_WAIT Wait = {
        .Function = Function,
        .Lock = Resource,
        .Owner = RtlpExclusiveOwner(Resource),
        .Count = Resource->NumberOfActive,
        .Waiters = Resource->NumberOfWaitingShared + Resource->NumberOfWaitingExclusive,
        .DebugInfo = Resource->DebugInfo,
    };
    RtlpUnlockResource(Resource);
    RtlpReportPossibleDeadlock(&Wait);
}

static DECLSPEC_NOINLINE VOID RtlpAwaitRtlResource(PRTL_RESOURCE Resource, BOOLEAN Exclusive, PCSTR Function)
{
    HANDLE Semaphore = Exclusive ? Resource->ExclusiveSemaphore : Resource->SharedSemaphore;
    LARGE_INTEGER Timeout;
    PLARGE_INTEGER Limit = Resource->Flags & RTL_RESOURCE_FLAG_LONG_TERM ? NULL : RtlpDeadlockTimeout(&Timeout);
    NTSTATUS Status;
    RtlpCountContention(Resource->DebugInfo);
    KTRACE_CONTENTION_BEGIN(Resource, KiLockRtlResource, Exclusive, RtlpExclusiveOwner(Resource));
    while ((Status = NtWaitForSingleObject(Semaphore, FALSE, Limit)) == STATUS_TIMEOUT) {
        RtlpReportResourceWait(Resource, Function);
    }
    KTRACE_CONTENTION_END(Resource, KiLockRtlResource, Exclusive);
    if (!NT_SUCCESS(Status)) {
        RtlRaiseStatus(Status);
    }
}

/* With the section entered; returns with it left, and with the resource owned. */
static VOID RtlpWaitToOwn(PRTL_RESOURCE Resource, PCSTR Function)
{
    Resource->NumberOfWaitingExclusive += 1;
    RtlpUnlockResource(Resource);
    RtlpAwaitRtlResource(Resource, TRUE, Function);
    RtlpSetExclusiveOwner(Resource, RtlpOwnId());
}

FORCEINLINE BOOLEAN RtlpAcquireShared(PRTL_RESOURCE Resource, BOOLEAN Wait)
{
    RtlpLockResource(Resource);
    BOOLEAN Granted = Resource->NumberOfActive >= 0 || RtlpOwnAgain(Resource);
    if (Resource->NumberOfActive >= 0) {
        Resource->NumberOfActive += 1;
    } else if (!Granted && Wait) {
        Resource->NumberOfWaitingShared += 1;
    }
    RtlpUnlockResource(Resource);
    if (!Granted && Wait) {
        RtlpAwaitRtlResource(Resource, FALSE, "RtlAcquireResourceShared");
    }
    return Granted || Wait;
}

static BOOLEAN RtlpAcquireExclusive(PRTL_RESOURCE Resource, BOOLEAN Wait)
{
    RtlpLockResource(Resource);
    BOOLEAN Granted = TRUE;
    if (Resource->NumberOfActive == 0) {
        RtlpOwn(Resource);
    } else {
        Granted = RtlpOwnAgain(Resource);
    }
    if (Granted || !Wait) {
        RtlpUnlockResource(Resource);
        return Granted;
    }
    RtlpWaitToOwn(Resource, "RtlAcquireResourceExclusive");
    return TRUE;
}

/* The verifier. Sharers overtake waiting writers: requirement 2. */
static DECLSPEC_NOINLINE BOOLEAN RtlpAcquireVerified(PRTL_RESOURCE Resource, BOOLEAN Exclusive, BOOLEAN Wait, PVOID Site)
{
    KI_ORDER_MODE Mode = Exclusive ? KiOrderExclusive : KiOrderSharedPasses;
    PKTHREAD Thread = KiCurrentThread();
    if (Wait) {
        KiOrderCheck(Thread, RtlpOrderOf(Resource), KiOrderRtlResource, Mode);
    }
    BOOLEAN Acquired = Exclusive ? RtlpAcquireExclusive(Resource, Wait) : RtlpAcquireShared(Resource, Wait);
    if (Acquired) {
        KiOrderHold(Thread, RtlpOrderOf(Resource), KiOrderRtlResource, Mode, Site);
    }
    return Acquired;
}

/* What programs call. */

BOOLEAN RtlAcquireResourceShared(PRTL_RESOURCE Resource, BOOLEAN Wait)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        return RtlpAcquireVerified(Resource, FALSE, Wait, __builtin_return_address(0));
    }
    return RtlpAcquireShared(Resource, Wait);
}

BOOLEAN RtlAcquireResourceExclusive(PRTL_RESOURCE Resource, BOOLEAN Wait)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        return RtlpAcquireVerified(Resource, TRUE, Wait, __builtin_return_address(0));
    }
    return RtlpAcquireExclusive(Resource, Wait);
}

/* Any thread may release a share; only the owner releases exclusive ownership. */
VOID RtlReleaseResource(PRTL_RESOURCE Resource)
{
    RtlpLockResource(Resource);
    LONG Active = Resource->NumberOfActive;
    if (Active == 0 || (Active < 0 && !RtlpIsOwnedByCaller(Resource))) {
        RtlpNotOwned(Resource);
    }
    Resource->NumberOfActive += Active > 0 ? -1 : 1;
    RTLP_ADMITTED Admitted = {NULL, 0};
    if (Resource->NumberOfActive == 0) {
        Admitted = RtlpHandOffResource(Resource, Active > 0);
    }
    RtlpUnlockResource(Resource);
    if (KiVerifierEnabled) {
        KiOrderRelease(KiCurrentThread(), RtlpOrderOf(Resource));
    }
    RtlpWakeAdmitted(Resource, Admitted);
}

VOID RtlConvertSharedToExclusive(PRTL_RESOURCE Resource)
{
    if (KiVerifierEnabled) {
        KiOrderConvert(KiCurrentThread(), RtlpOrderOf(Resource), KiOrderExclusive);
    }
    RtlpLockResource(Resource);
    if (Resource->NumberOfActive <= 0) {
        RtlpNotOwned(Resource);
    }
    if (Resource->NumberOfActive == 1) {
        RtlpOwn(Resource);
        RtlpUnlockResource(Resource);
        return;
    }
    Resource->NumberOfActive -= 1;
    RtlpWaitToOwn(Resource, "RtlConvertSharedToExclusive");
}

VOID RtlConvertExclusiveToShared(PRTL_RESOURCE Resource)
{
    RtlpLockResource(Resource);
    if (!RtlpIsOwnedByCaller(Resource)) {
        RtlpNotOwned(Resource);
    }
    Resource->NumberOfActive = -Resource->NumberOfActive;
    RtlpSetExclusiveOwner(Resource, NULL);
    RTLP_ADMITTED Admitted = RtlpAdmitSharers(Resource);
    RtlpUnlockResource(Resource);
    if (KiVerifierEnabled) {
        KiOrderConvert(KiCurrentThread(), RtlpOrderOf(Resource), KiOrderSharedPasses);
    }
    RtlpWakeAdmitted(Resource, Admitted);
}

VOID RtlDumpResource(PRTL_RESOURCE Resource)
{
    RtlpLockResource(Resource);
    HalPrint("interlock: resource %p: NumberOfActive %d, owner: thread %u, waiting: %u shared, %u "
             "exclusive, "
             "ContentionCount %u\n",
             (PVOID)Resource, Resource->NumberOfActive, RtlpExclusiveOwner(Resource), Resource->NumberOfWaitingShared,
             Resource->NumberOfWaitingExclusive, RtlpContentionCount(Resource->DebugInfo));
    RtlpUnlockResource(Resource);
}
