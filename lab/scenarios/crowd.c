/* More threads than an exhaustive search can handle: the kernel's locks and waits, at random. */
#include <interlock/lab.h>

#include <ntifs.h>

static KMUTANT mutant;
static KSEMAPHORE semaphore;
static KEVENT first, second;
static FAST_MUTEX fast;
static EX_PUSH_LOCK lock;
static ERESOURCE resource;
static KQUEUE queue;
static LIST_ENTRY entries[3];
static int value, taken;
static PVOID both[2] = {&first, &second};

static void setup(void)
{
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeSemaphore(&semaphore, 0, 8);
    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
    ExInitializeFastMutex(&fast);
    ExInitializeResourceLite(&resource);
    KeInitializeQueue(&queue, 2);
}

static void mutant_locker(void)
{
    NTSTATUS status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    value += 1;
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void mutant_victim(void)
{
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    value += 1;
    LabExitThread();
}

static void five_had_mutant(void)
{
    LabAssert(value == 5 && KeReadStateMutant(&mutant) == 1);
}
LAB_SCENARIO(crowd_mutant, .Setup = setup,
             .Threads = {mutant_locker, mutant_victim, mutant_locker, mutant_victim, mutant_locker},
             .Finish = five_had_mutant, .Flags = LAB_LARGE);

static void fast_locker(void)
{
    ExAcquireFastMutex(&fast);
    value += 1;
    ExReleaseFastMutex(&fast);
}

static void six_had_it(void)
{
    LabAssert(value == 6 && fast.Count == 1);
}
LAB_SCENARIO(crowd_fast_mutex, .Setup = setup,
             .Threads = {fast_locker, fast_locker, fast_locker, fast_locker, fast_locker, fast_locker},
             .Finish = six_had_it, .Flags = LAB_LARGE);

static void push_writer(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    value += 1;
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}

static void push_reader(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

static void push_lock_is_free(void)
{
    LabAssert(value == 3 && lock == 0);
}
LAB_SCENARIO(crowd_pushlock, .Setup = setup,
             .Threads = {push_reader, push_writer, push_reader, push_writer, push_reader, push_writer, push_reader},
             .Finish = push_lock_is_free, .Flags = LAB_LARGE);

static void resource_writer(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resource, TRUE);
    value += 1;
    ExConvertExclusiveToSharedLite(&resource);
    LabAssert(value >= 1);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

static void resource_reader(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&resource, TRUE);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

static void resource_is_free(void)
{
    LabAssert(value == 2 && resource.ActiveEntries == 0);
}
LAB_SCENARIO(crowd_resource, .Setup = setup,
             .Threads = {resource_reader, resource_writer, resource_reader, resource_writer, resource_reader},
             .Finish = resource_is_free, .Flags = LAB_LARGE);

/* Waits for any, for all, for one, and timeouts, on the same two events: every signal is consumed once, or remains. */
static void wait_both(WAIT_TYPE type, int consumes)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = KeWaitForMultipleObjects(2, both, type, Executive, KernelMode, FALSE, &timeout, NULL);
    if (status != STATUS_TIMEOUT)
        __atomic_fetch_add(&taken, consumes, __ATOMIC_RELAXED);
}

static void wait_any(void)
{
    wait_both(WaitAny, 1);
}

static void wait_all(void)
{
    wait_both(WaitAll, 2);
}

/* Setting an event that is already signaled does nothing. */
static void set_first(void)
{
    __atomic_fetch_add(&value, KeSetEvent(&first, IO_NO_INCREMENT, FALSE) == 0, __ATOMIC_RELAXED);
}

static void set_second(void)
{
    __atomic_fetch_add(&value, KeSetEvent(&second, IO_NO_INCREMENT, FALSE) == 0, __ATOMIC_RELAXED);
}

static void adds_up(void)
{
    LabAssert(taken + KeReadStateEvent(&first) + KeReadStateEvent(&second) == value);
}
LAB_SCENARIO(crowd_any_and_all, .Setup = setup,
             .Threads = {wait_all, wait_any, set_first, set_second, wait_all, set_first, set_second}, .Finish = adds_up,
             .Flags = LAB_LARGE);

static void releaser(void)
{
    KeReleaseSemaphore(&semaphore, IO_NO_INCREMENT, 2, FALSE);
}

static void waiter(void)
{
    LabAssert(KeWaitForSingleObject(&semaphore, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void semaphore_is_empty(void)
{
    LabAssert(KeReadStateSemaphore(&semaphore) == 0);
}
LAB_SCENARIO(crowd_semaphore, .Setup = setup, .Threads = {waiter, waiter, releaser, waiter, waiter, releaser},
             .Finish = semaphore_is_empty, .Flags = LAB_LARGE);

static void insert_all(void)
{
    for (int i = 0; i < 3; i++)
        KeInsertQueue(&queue, &entries[i]);
}

static void remover(void)
{
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, NULL);
    LabAssert(entry >= &entries[0] && entry <= &entries[2]);
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
}

static void three_were_taken(void)
{
    LabAssert(taken == 3 && KeReadStateQueue(&queue) == 0 && queue.CurrentCount == 0);
}
LAB_SCENARIO(crowd_queue, .Setup = setup, .Threads = {remover, remover, insert_all, remover},
             .Finish = three_were_taken, .Flags = LAB_LARGE | LAB_RUN_EXIT);
