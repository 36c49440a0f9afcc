/* spinlocks.c: spinlocks of all kinds, at raised IRQL, and a simulated interrupt. */
#include "soak.h"

#define LIST_ITEMS 4

typedef struct item {
    LIST_ENTRY entry;
    unsigned long out;
} item;

static KSPIN_LOCK spinlock, list_lock;
static soak_cell spin_cell;
static LIST_ENTRY list;
static item items[LIST_ITEMS];

static void spinlocks_setup(void)
{
    KeInitializeSpinLock(&spinlock);
    KeInitializeSpinLock(&list_lock);
    InitializeListHead(&list);
    for (int i = 0; i < LIST_ITEMS; i++)
        InsertTailList(&list, &items[i].entry);
}

static void move_item(test_random *random)
{
    PLIST_ENTRY entry = ExInterlockedRemoveHeadList(&list, &list_lock);
    item *taken;

    if (entry == NULL)
        return;
    taken = CONTAINING_RECORD(entry, item, entry);
    require(taken->out++ == 0);
    require(taken->out-- == 1);
    if (one_in(random, 2))
        ExInterlockedInsertTailList(&list, entry, &list_lock);
    else
        ExInterlockedInsertHeadList(&list, entry, &list_lock);
}

static void spinlocks_step(test_random *random)
{
    KIRQL irql = PASSIVE_LEVEL;

    switch (random_below(random, 4)) {
    case 0:
        KeAcquireSpinLock(&spinlock, &irql);
        require(KeGetCurrentIrql() == DISPATCH_LEVEL);
        change_cell(&spin_cell, random);
        KeReleaseSpinLock(&spinlock, irql);
        break;
    case 1:
        KeRaiseIrql(DISPATCH_LEVEL, &irql);
        if (KeTryToAcquireSpinLockAtDpcLevel(&spinlock)) {
            change_cell(&spin_cell, random);
            KeReleaseSpinLockFromDpcLevel(&spinlock);
        }
        KeLowerIrql(irql);
        break;
    default:
        move_item(random);
        break;
    }
    require(irql == PASSIVE_LEVEL && KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void spinlocks_check(void)
{
    unsigned found = 0;

    while (ExInterlockedRemoveHeadList(&list, &list_lock) != NULL)
        found++;
    require(found == LIST_ITEMS && KeTestSpinLock(&spinlock));
}

const soak_family spinlocks_family = {.name = "spinlocks",
                                      .weight = 4,
                                      .without_heap = true,
                                      .setup = spinlocks_setup,
                                      .step = spinlocks_step,
                                      .check = spinlocks_check};

/* Queued spinlocks, numbered and in the stack. */

static KSPIN_LOCK queued_lock;
static soak_cell queued_cell, numbered_cell;

static void queued_spinlocks_step(test_random *random)
{
    KLOCK_QUEUE_HANDLE handle;
    KIRQL irql;

    switch (random_below(random, 4)) {
    case 0:
        irql = KeAcquireQueuedSpinLock(LockQueueAfdWorkQueueLock);
        change_cell(&numbered_cell, random);
        KeReleaseQueuedSpinLock(LockQueueAfdWorkQueueLock, irql);
        break;
    case 1:
        if (KeTryToAcquireQueuedSpinLock(LockQueueAfdWorkQueueLock, &irql)) {
            change_cell(&numbered_cell, random);
            KeReleaseQueuedSpinLock(LockQueueAfdWorkQueueLock, irql);
        }
        break;
    case 2:
        KeAcquireInStackQueuedSpinLockRaiseToSynch(&queued_lock, &handle);
        change_cell(&queued_cell, random);
        KeReleaseInStackQueuedSpinLock(&handle);
        break;
    default:
        KeAcquireInStackQueuedSpinLock(&queued_lock, &handle);
        change_cell(&queued_cell, random);
        KeReleaseInStackQueuedSpinLock(&handle);
        break;
    }
    require(KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void queued_spinlocks_check(void)
{
    require(queued_lock == 0);
}

const soak_family queued_spinlocks_family = {.name = "queued spinlocks",
                                             .weight = 4,
                                             .without_heap = true,
                                             .step = queued_spinlocks_step,
                                             .check = queued_spinlocks_check};

/* Spinlocks of readers and writers. */

static EX_SPIN_LOCK shared_lock;
static soak_cell shared_cell;

static void shared_spinlocks_step(test_random *random)
{
    KIRQL irql;

    if (one_in(random, 3)) {
        irql = ExAcquireSpinLockExclusive(&shared_lock);
        change_cell(&shared_cell, random);
        ExReleaseSpinLockExclusive(&shared_lock, irql);
        return;
    }
    irql = ExAcquireSpinLockShared(&shared_lock);
    read_cell(&shared_cell, random);
    if (one_in(random, 4) && ExTryConvertSharedSpinLockExclusive(&shared_lock)) {
        change_cell(&shared_cell, random);
        ExReleaseSpinLockExclusive(&shared_lock, irql);
    } else {
        ExReleaseSpinLockShared(&shared_lock, irql);
    }
}

static void shared_spinlocks_check(void)
{
    require(shared_lock == 0);
}

const soak_family shared_spinlocks_family = {.name = "shared spinlocks",
                                             .weight = 4,
                                             .without_heap = true,
                                             .step = shared_spinlocks_step,
                                             .check = shared_spinlocks_check};

/* A device that interrupts one processor or the other; its routine and the step change the same data under the
   interrupt's lock.
 */

static PKINTERRUPT interrupt;
static soak_cell device_cell;
static volatile LONG fired, served;

static BOOLEAN serve(PKINTERRUPT from, PVOID context)
{
    (void)from;
    (void)context;
    require(device_cell.first == device_cell.second);
    device_cell.first += 1;
    device_cell.second += 1;
    add(&served, 1);
    return TRUE;
}

static BOOLEAN look(PVOID context)
{
    (void)context;
    return device_cell.first == device_cell.second;
}

static void interrupts_setup(void)
{
    require(IoConnectInterrupt(&interrupt, serve, NULL, NULL, 0x40, 5, 5, Latched, FALSE, KeQueryActiveProcessors(),
                               FALSE) == STATUS_SUCCESS);
}

static void interrupts_step(test_random *random)
{
    if (one_in(random, 2)) {
        require(KeSynchronizeExecution(interrupt, look, NULL));
    } else if (one_in(random, 4)) {
        KIRQL irql = KeAcquireInterruptSpinLock(interrupt);

        change_cell(&device_cell, random);
        KeReleaseInterruptSpinLock(interrupt, irql);
    } else if (KeFireInterrupt(interrupt, random_below(random, KeQueryActiveProcessorCount(NULL)))) {
        add(&fired, 1);
    }
}

static void interrupts_check(void)
{
    IoDisconnectInterrupt(interrupt);
    require(served <= fired && (fired == 0 || served > 0)); /* a pending interrupt that fires again is one */
}

const soak_family interrupts_family = {
    .name = "interrupts", .weight = 2, .setup = interrupts_setup, .step = interrupts_step, .check = interrupts_check};
