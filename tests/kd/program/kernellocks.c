/* kernellocks.c: scenes of the kernel: its locks, its processors. */
#include "program.h"

static ERESOURCE resources[2];
static EX_PUSH_LOCK push_lock;
static FAST_MUTEX fast_mutex;
static KGUARDED_MUTEX guarded_mutex;
static KDPC dpcs[2];
static volatile LONG dpc_runs;

/* Two resources, crossed; a third thread is behind them. */

static void cross_resources(int self)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resources[self], TRUE);
    meet(self);
    if (self == 0)
        ExAcquireResourceExclusiveLite(&resources[1], TRUE);
    else
        ExAcquireResourceSharedLite(&resources[0], TRUE);
}

static DWORD WINAPI resource_alice(void *context)
{
    (void)context;
    cross_resources(0);
    return 0;
}

static DWORD WINAPI resource_bob(void *context)
{
    (void)context;
    cross_resources(1);
    return 0;
}

static DWORD WINAPI resource_carol(void *context)
{
    (void)context;
    WaitForMultipleObjects(2, go, TRUE, INFINITE); /* both are owned */
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&resources[1], TRUE);
    return 0;
}

void crossed_resources(void)
{
    ExInitializeResourceLite(&resources[0]);
    ExInitializeResourceLite(&resources[1]);
    say("first", &resources[0]);
    say("second", &resources[1]);
    make(resource_alice, "alice");
    make(resource_bob, "bob");
    make(resource_carol, "carol");
}

/* Two fast resources, crossed. */

static FAST_ERESOURCE fast_resources[2];
static FAST_OWNER_ENTRY fast_owners[2][2];

static void cross_fast_resources(int self)
{
    ExInitializeFastOwnerEntry(&fast_owners[self][0]);
    ExInitializeFastOwnerEntry(&fast_owners[self][1]);
    KeEnterCriticalRegion();
    ExAcquireFastResourceExclusive(&fast_resources[self], &fast_owners[self][0], TRUE);
    meet(self);
    ExAcquireFastResourceShared(&fast_resources[1 - self], &fast_owners[self][1], TRUE);
}

static DWORD WINAPI fast_resource_alice(void *context)
{
    (void)context;
    cross_fast_resources(0);
    return 0;
}

static DWORD WINAPI fast_resource_bob(void *context)
{
    (void)context;
    cross_fast_resources(1);
    return 0;
}

void crossed_fast_resources(void)
{
    ExInitializeFastResource(&fast_resources[0], 0);
    ExInitializeFastResource(&fast_resources[1], 0);
    say("first", &fast_resources[0]);
    say("second", &fast_resources[1]);
    make(fast_resource_alice, "alice");
    make(fast_resource_bob, "bob");
}

/* Locks of the kernel: a pushlock against a fast mutex against a guarded mutex. */

static DWORD WINAPI push_then_fast(void *context)
{
    (void)context;
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&push_lock);
    SetEvent(go[0]);
    WaitForSingleObject(go[1], INFINITE);
    ExAcquireFastMutexUnsafe(&fast_mutex);
    return 0;
}

static DWORD WINAPI fast_then_guarded(void *context)
{
    (void)context;
    ExAcquireFastMutex(&fast_mutex);
    SetEvent(go[1]);
    while (!LOAD(guarded_mutex.Owner))
        KeStallExecutionProcessor(100);
    KeAcquireGuardedMutexUnsafe(&guarded_mutex);
    return 0;
}

static DWORD WINAPI guarded_then_push(void *context)
{
    (void)context;
    KeAcquireGuardedMutex(&guarded_mutex);
    while (LOAD(push_lock) == 0)
        KeStallExecutionProcessor(100);
    ExAcquirePushLockShared(&push_lock);
    return 0;
}

void kernel_locks(void)
{
    ExInitializePushLock(&push_lock);
    ExInitializeFastMutex(&fast_mutex);
    KeInitializeGuardedMutex(&guarded_mutex);
    say("push", &push_lock);
    say("fast", &fast_mutex);
    say("guarded", &guarded_mutex);
    make(push_then_fast, "alice");
    make(fast_then_guarded, "bob");
    make(guarded_then_push, "carol");
}

/* A DPC that does not end blocks its processor. */

static void spin(PKDPC dpc, void *context, void *argument1, void *argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    STORE(dpc_runs, TRUE);
    for (;;)
        KeStallExecutionProcessor(100);
}

static DWORD WINAPI run_dpc(void *context)
{
    (void)context;
    KeInsertQueueDpc(&dpcs[0], NULL, NULL);
    return 0;
}

void blocking_dpc(void)
{
    KeInitializeDpc(&dpcs[0], spin, NULL);
    KeInitializeDpc(&dpcs[1], never_runs, &dpcs);
    KeSetTargetProcessorDpc(&dpcs[0], 1);
    KeSetTargetProcessorDpc(&dpcs[1], 1);
    KeSetImportanceDpc(&dpcs[1], LowImportance);
    say("active", &dpcs[0]);
    say("queued", &dpcs[1]);
    make(run_dpc, "inserter");
    while (!LOAD(dpc_runs))
        Sleep(1);
    KeInsertQueueDpc(&dpcs[1], NULL, NULL);
}

/* Numbered queued spinlocks. */

static DWORD WINAPI hold_queued(void *context)
{
    (void)context;
    KeAcquireQueuedSpinLock(LockQueueVacbLock);
    SetEvent(go[0]);
    for (;;)
        KeStallExecutionProcessor(100);
    return 0;
}

static DWORD WINAPI want_queued(void *context)
{
    (void)context;
    WaitForSingleObject(go[0], INFINITE);
    KeReleaseQueuedSpinLock(LockQueueVacbLock, KeAcquireQueuedSpinLock(LockQueueVacbLock));
    return 0;
}

void queued_locks(void)
{
    make(hold_queued, "owner");
    make(want_queued, "waiter");
}
