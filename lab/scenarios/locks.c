/* Fast mutexes, guarded mutexes, spinlocks, resources. */
#include <interlock/lab.h>

#include <ntifs.h>

static FAST_MUTEX fast;
static KGUARDED_MUTEX guarded;
static KSPIN_LOCK spin;
static ERESOURCE resource;
static int value;

static void setup(void)
{
    ExInitializeFastMutex(&fast);
    KeInitializeGuardedMutex(&guarded);
    KeInitializeSpinLock(&spin);
    ExInitializeResourceLite(&resource);
}

static void counted_twice(void)
{
    LabAssert(value == 2);
}

static void counted_thrice(void)
{
    LabAssert(value == 3);
}

static void fast_locker(void)
{
    ExAcquireFastMutex(&fast);
    value += 1;
    ExReleaseFastMutex(&fast);
}
LAB_SCENARIO(fast_mutex_two, .Setup = setup, .Threads = {fast_locker, fast_locker}, .Finish = counted_twice);
LAB_SCENARIO(fast_mutex_two_c11, .Setup = setup, .Threads = {fast_locker, fast_locker}, .Finish = counted_twice,
             .Model = "c11");
LAB_SCENARIO(fast_mutex_three, .Setup = setup, .Threads = {fast_locker, fast_locker, fast_locker},
             .Finish = counted_thrice);

static void fast_tryer(void)
{
    if (ExTryToAcquireFastMutex(&fast)) {
        value += 1;
        ExReleaseFastMutex(&fast);
    }
}
LAB_SCENARIO(fast_mutex_try, .Setup = setup, .Threads = {fast_locker, fast_tryer});

static void guarded_locker(void)
{
    KeAcquireGuardedMutex(&guarded);
    value += 1;
    KeReleaseGuardedMutex(&guarded);
}
LAB_SCENARIO(guarded_mutex_two, .Setup = setup, .Threads = {guarded_locker, guarded_locker}, .Finish = counted_twice);

static void spin_locker(void)
{
    KIRQL irql;
    KeAcquireSpinLock(&spin, &irql);
    value += 1;
    KeReleaseSpinLock(&spin, irql);
}
LAB_SCENARIO(spin_lock_two, .Setup = setup, .Threads = {spin_locker, spin_locker}, .Finish = counted_twice);
LAB_SCENARIO(spin_lock_two_c11, .Setup = setup, .Threads = {spin_locker, spin_locker}, .Finish = counted_twice,
             .Model = "c11");

static void queued_locker(void)
{
    KLOCK_QUEUE_HANDLE handle;
    KeAcquireInStackQueuedSpinLock(&spin, &handle);
    value += 1;
    KeReleaseInStackQueuedSpinLock(&handle);
}
LAB_SCENARIO(queued_spin_lock_two, .Setup = setup, .Threads = {queued_locker, queued_locker}, .Finish = counted_twice);
LAB_SCENARIO(queued_spin_lock_two_c11, .Setup = setup, .Threads = {queued_locker, queued_locker},
             .Finish = counted_twice, .Model = "c11");

static void resource_writer(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resource, TRUE);
    value += 1;
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

static void resource_reader(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&resource, TRUE);
    LabAssert(value >= 0);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

static void resource_is_free(void)
{
    LabAssert(resource.ActiveEntries == 0);
}
LAB_SCENARIO(resource_writers, .Setup = setup, .Threads = {resource_writer, resource_writer},
             .Finish = resource_is_free);
LAB_SCENARIO(resource_reader_writer, .Setup = setup, .Threads = {resource_reader, resource_writer},
             .Finish = resource_is_free);
LAB_SCENARIO(resource_readers_writer, .Setup = setup, .Threads = {resource_reader, resource_reader, resource_writer},
             .Finish = resource_is_free);
