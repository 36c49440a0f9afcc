/* Reader/writer spinlocks, queued spinlocks by number and in-stack, lists under a spinlock. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "../models/rwlock.h"

static EX_SPIN_LOCK lock;
static int value;

static void writer(void)
{
    KIRQL irql = ExAcquireSpinLockExclusive(&lock);
    value += 1;
    ExReleaseSpinLockExclusive(&lock, irql);
}

static void reader(void)
{
    KIRQL irql = ExAcquireSpinLockShared(&lock);
    LabAssert(value >= 0);
    ExReleaseSpinLockShared(&lock, irql);
}

static void upgrader(void)
{
    KIRQL irql = ExAcquireSpinLockShared(&lock);
    if (ExTryConvertSharedSpinLockExclusive(&lock)) {
        value += 1;
        ExReleaseSpinLockExclusive(&lock, irql);
    } else {
        ExReleaseSpinLockShared(&lock, irql);
    }
}

static void is_free(void)
{
    LabAssert(lock == 0);
}
LAB_SCENARIO(rw_spin_lock, .Threads = {reader, writer}, .Finish = is_free);
LAB_SCENARIO(rw_spin_lock_c11, .Threads = {reader, writer}, .Finish = is_free, .Model = "c11");
LAB_SCENARIO(rw_spin_lock_upgrade, .Threads = {upgrader, writer}, .Finish = is_free);
LAB_SCENARIO(rw_spin_lock_upgrades, .Threads = {upgrader, upgrader}, .Finish = is_free);

/* A history, at DISPATCH_LEVEL throughout. */
static void recorded_upgrader(void)
{
    KIRQL irql = KeRaiseIrqlToDpcLevel();
    record(ACQUIRE_SHARED, ExAcquireSpinLockSharedAtDpcLevel(&lock));
    if (record_try(CONVERT_TO_EXCLUSIVE, ExTryConvertSharedSpinLockExclusive(&lock)))
        record(RELEASE_EXCLUSIVE, ExReleaseSpinLockExclusiveFromDpcLevel(&lock));
    else
        record(RELEASE_SHARED, ExReleaseSpinLockSharedFromDpcLevel(&lock));
    KeLowerIrql(irql);
}

static void recorded_trier(void)
{
    KIRQL irql = KeRaiseIrqlToDpcLevel();
    if (record_try(TRY_SHARED, ExTryAcquireSpinLockSharedAtDpcLevel(&lock)))
        record(RELEASE_SHARED, ExReleaseSpinLockSharedFromDpcLevel(&lock));
    if (record_try(TRY_EXCLUSIVE, ExTryAcquireSpinLockExclusiveAtDpcLevel(&lock)))
        record(RELEASE_EXCLUSIVE, ExReleaseSpinLockExclusiveFromDpcLevel(&lock));
    record(ACQUIRE_EXCLUSIVE, ExAcquireSpinLockExclusiveAtDpcLevel(&lock));
    record(RELEASE_EXCLUSIVE, ExReleaseSpinLockExclusiveFromDpcLevel(&lock));
    KeLowerIrql(irql);
}

static void is_a_lock(void)
{
    is_free();
    LabCheckLinearizable(&LabModelRwLock);
}
LAB_SCENARIO(rw_spin_lock_history, .Threads = {recorded_upgrader, recorded_trier}, .Finish = is_a_lock);

/* A lock acquired by its number: the entry is the processor's. */
#define NUMBER LockQueueUnusedSpare15

static void numbered_locker(void)
{
    for (int i = 0; i < 2; i++) {
        KIRQL irql = KeAcquireQueuedSpinLock(NUMBER);
        value += 1;
        KeReleaseQueuedSpinLock(NUMBER, irql);
    }
}

static void numbered_trier(void)
{
    KIRQL irql;
    if (KeTryToAcquireQueuedSpinLock(NUMBER, &irql)) {
        value += 1;
        KeReleaseQueuedSpinLock(NUMBER, irql);
    }
    LabAssert(KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void counted_four(void)
{
    LabAssert(value == 4);
}
LAB_SCENARIO(queued_spin_lock_numbered, .Threads = {numbered_locker, numbered_locker}, .Finish = counted_four,
             .Flags = LAB_LARGE);
LAB_SCENARIO(queued_spin_lock_try, .Threads = {numbered_locker, numbered_trier});

/* Three handles on two processors: one waits for a processor, and is not in the queue meanwhile. */
static KSPIN_LOCK spin;

static void queued_locker(void)
{
    KLOCK_QUEUE_HANDLE handle;
    KeAcquireInStackQueuedSpinLock(&spin, &handle);
    value += 1;
    KeReleaseInStackQueuedSpinLock(&handle);
}

static void counted_three(void)
{
    LabAssert(value == 3 && spin == 0);
}
LAB_SCENARIO(queued_spin_lock_three, .Threads = {queued_locker, queued_locker, queued_locker}, .Finish = counted_three,
             .Flags = LAB_LARGE);

/* A list under a spinlock. */
static LIST_ENTRY head, entries[2];
static int taken[2];

static void setup_list(void)
{
    InitializeListHead(&head);
}

static void inserter(void)
{
    LabAssert(ExInterlockedInsertTailList(&head, &entries[0], &spin) == NULL);
    ExInterlockedInsertHeadList(&head, &entries[1], &spin);
}

static void remover(void)
{
    for (int i = 0; i < 2; i++) {
        PLIST_ENTRY entry = ExInterlockedRemoveHeadList(&head, &spin);
        if (entry != NULL)
            taken[entry - entries] += 1;
    }
}

static void none_is_lost(void)
{
    int left = 0;
    for (PLIST_ENTRY entry = head.Flink; entry != &head; entry = entry->Flink)
        left++;
    LabAssert(taken[0] <= 1 && taken[1] <= 1 && left + taken[0] + taken[1] == 2);
}
LAB_SCENARIO(interlocked_list, .Setup = setup_list, .Threads = {inserter, remover}, .Finish = none_is_lost);
