/* Pushlocks: exclusion, sharing, conversion, readers that need each other. */
#include <interlock/lab.h>

#include <ntifs.h>

static EX_PUSH_LOCK lock;
static int value;
static KEVENT met;
static int readers;

static void setup(void)
{
    ExInitializePushLock(&lock);
    KeInitializeEvent(&met, NotificationEvent, FALSE);
}

static void writer(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    value += 1;
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}

static void reader(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    LabAssert(value >= 0);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

static void is_free(void)
{
    LabAssert(lock == 0);
}
LAB_SCENARIO(pushlock_writers, .Setup = setup, .Threads = {writer, writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_writers_c11, .Setup = setup, .Threads = {writer, writer}, .Finish = is_free, .Model = "c11");
LAB_SCENARIO(pushlock_reader_writer, .Setup = setup, .Threads = {reader, writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_readers_writer, .Setup = setup, .Threads = {reader, reader, writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_three_writers, .Setup = setup, .Threads = {writer, writer, writer}, .Finish = is_free);

/* Two readers that must be inside together, and a writer that makes them queue. */
static void meeting_reader(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    if (__atomic_add_fetch(&readers, 1, __ATOMIC_ACQ_REL) == 2)
        KeSetEvent(&met, IO_NO_INCREMENT, FALSE);
    KeWaitForSingleObject(&met, Executive, KernelMode, FALSE, NULL);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

static void held(void)
{
    setup();
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
}

static void release_held(void)
{
    KeEnterCriticalRegion();
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_readers_meet, .Setup = held, .Threads = {release_held, meeting_reader, meeting_reader},
             .Finish = is_free);

static void converter(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    value += 1;
    ExConvertPushLockExclusiveToShared(&lock);
    LabAssert(value >= 1);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_convert, .Setup = setup, .Threads = {converter, writer}, .Finish = is_free);

static void upgrader(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    if (ExTryConvertPushLockSharedToExclusive(&lock)) {
        value += 1;
        ExReleasePushLockExclusive(&lock);
    } else {
        ExReleasePushLockShared(&lock);
    }
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_upgrade, .Setup = setup, .Threads = {upgrader, reader}, .Finish = is_free);

/* Waiting for an address. */
static volatile LONG condition;

static void address_waiter(void)
{
    LONG zero = 0;
    while (__atomic_load_n(&condition, __ATOMIC_ACQUIRE) == 0)
        ExBlockOnAddressPushLock(&lock, (PVOID)&condition, &zero, sizeof(zero), NULL);
}

static void address_waker(void)
{
    __atomic_store_n(&condition, 1, __ATOMIC_RELEASE);
    ExUnblockOnAddressPushLock(&lock, (PVOID)&condition);
}
LAB_SCENARIO(pushlock_address, .Setup = setup, .Threads = {address_waiter, address_waker});

static PEX_CACHE_AWARE_PUSH_LOCK aware;

static void setup_aware(void)
{
    aware = ExAllocateCacheAwarePushLock();
}

static void aware_writer(void)
{
    KeEnterCriticalRegion();
    ExAcquireCacheAwarePushLockExclusive(aware);
    value += 1;
    ExReleaseCacheAwarePushLockExclusive(aware);
    KeLeaveCriticalRegion();
}

static void aware_reader(void)
{
    KeEnterCriticalRegion();
    PEX_PUSH_LOCK mine = ExAcquireCacheAwarePushLockShared(aware);
    LabAssert(value >= 0);
    ExReleaseCacheAwarePushLockShared(mine);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_cache_aware, .Setup = setup_aware, .Threads = {aware_writer, aware_reader});

static PEX_PUSH_LOCK_AUTO_EXPAND expanding;

static void setup_expanding(void)
{
    expanding = ExAllocateAutoExpandPushLock(EX_DEFAULT_PUSH_LOCK_FLAGS);
}

static void expanding_writer(void)
{
    KeEnterCriticalRegion();
    ExAcquireAutoExpandPushLockExclusive(expanding, EX_DEFAULT_PUSH_LOCK_FLAGS);
    value += 1;
    ExReleaseAutoExpandPushLockExclusive(expanding, EX_DEFAULT_PUSH_LOCK_FLAGS);
    KeLeaveCriticalRegion();
}

static void expanding_reader(void)
{
    KeEnterCriticalRegion();
    PEX_PUSH_LOCK mine = ExAcquireAutoExpandPushLockShared(expanding, EX_DEFAULT_PUSH_LOCK_FLAGS);
    LabAssert(value >= 0);
    ExReleaseAutoExpandPushLockShared(expanding, mine, EX_DEFAULT_PUSH_LOCK_FLAGS);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_auto_expand, .Setup = setup_expanding, .Threads = {expanding_writer, expanding_reader});
