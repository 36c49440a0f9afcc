/* Cache-aware pushlocks: sharers on different processors, and writers that lock in one order. */
#include <interlock/lab.h>

#include <ntifs.h>

static PEX_CACHE_AWARE_PUSH_LOCK aware;
static int value;

static void setup(void)
{
    aware = ExAllocateCacheAwarePushLock();
    LabAssert(aware != NULL);
}

static void writer(void)
{
    KeEnterCriticalRegion();
    ExAcquireCacheAwarePushLockExclusive(aware);
    value += 1;
    ExReleaseCacheAwarePushLockExclusive(aware);
    KeLeaveCriticalRegion();
}

static void reader(void)
{
    KeEnterCriticalRegion();
    PEX_PUSH_LOCK mine = ExAcquireCacheAwarePushLockShared(aware);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    ExReleaseCacheAwarePushLockShared(mine);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_cache_aware, .Setup = setup, .Threads = {writer, reader});
LAB_SCENARIO(pushlock_cache_writers, .Setup = setup, .Threads = {writer, writer});
LAB_SCENARIO(pushlock_cache_aware_mixed, .Setup = setup, .Threads = {reader, reader, writer}, .Flags = LAB_LARGE);

/* No memory: no lock. */
static void allocator(void)
{
    PEX_CACHE_AWARE_PUSH_LOCK mine = ExAllocateCacheAwarePushLock();
    if (mine != NULL)
        ExFreeCacheAwarePushLock(mine);
}
LAB_SCENARIO(pushlock_cache_aware_no_memory, .Threads = {allocator}, .AllocationFailures = 1, .Flags = LAB_CHECK_LEAKS);
