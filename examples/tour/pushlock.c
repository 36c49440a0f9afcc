/*
 * The eight bytes of a pushlock, read after each change. Bit 0 is Locked, 1 Waiting, 2 Waking, 3 MultipleShared; above
 * them is the number of sharers, or with Waiting the address of the newest waiter's block, on that waiter's stack.
 */
#include "live.h"

#include "ex/pushlock.h"

#define LOCKED EX_PUSH_LOCK_LOCK
#define WAITING EX_PUSH_LOCK_WAITING
#define WAKING EX_PUSH_LOCK_WAKING
#define MULTIPLE EX_PUSH_LOCK_MULTIPLE_SHARED

typedef struct actor {
    PVOID thread;
    KEVENT has_lock, may_release;
} actor;

static EX_PUSH_LOCK lock;
static KEVENT may_go;
static actor sharer_1, sharer_2, writer_1, writer_2;

static PEXP_WAIT_BLOCK newest_waiter(void)
{
    ULONG_PTR word = __atomic_load_n(&lock, __ATOMIC_ACQUIRE);

    return word & WAITING ? (PVOID)(word & ~EXP_PUSH_LOCK_BITS) : NULL;
}

/* With waiters, the number of sharers is in the block of the oldest. */
static ULONG sharers_in(ULONG_PTR word)
{
    PEXP_WAIT_BLOCK block = newest_waiter();

    if (block == NULL)
        return (ULONG)(word / EX_PUSH_LOCK_SHARE_INC);
    while (block->Next != NULL)
        block = block->Next;
    return word & MULTIPLE ? (ULONG)__atomic_load_n(&block->ShareCount, __ATOMIC_ACQUIRE) : 0;
}

static void show(const char *what, ULONG_PTR bits, ULONG sharers)
{
    ULONG_PTR word = __atomic_load_n(&lock, __ATOMIC_ACQUIRE);
    ULONG found = sharers_in(word);

    printf("%-34s %12llx %s%s%s%s%s", what, (unsigned long long)word, word == 0 ? " free" : "",
           word & LOCKED ? " Locked" : "", word & WAITING ? " Waiting" : "", word & WAKING ? " Waking" : "",
           word & MULTIPLE ? " MultipleShared" : "");
    if (found != 0)
        printf(", %u sharer%s", (unsigned)found, found == 1 ? "" : "s");
    printf("\n");
    expect((word & EXP_PUSH_LOCK_BITS) == bits && found == sharers);
}

static void hold(actor *self)
{
    KeSetEvent(&self->has_lock, IO_NO_INCREMENT, FALSE);
    wait_for(&self->may_release);
}

static void share(PVOID self)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    hold(self);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

/* Sleeps like a waiter for a pushlock; once woken, stays there until it is released. */
static VOID sleep_and_linger(PEXP_WAIT_BLOCK block, volatile ULONG_PTR *waited_for)
{
    ExpPushLockMethods.Sleep(block, waited_for);
    wait_for(&may_go);
}

static void write(PVOID self)
{
    EXP_PUSH_LOCK_METHODS lingering = ExpPushLockMethods;

    lingering.Sleep = sleep_and_linger;
    KeEnterCriticalRegion();
    ExpAcquirePushLockExclusive(&lock, &lingering);
    hold(self);
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}

static void start(actor *one, PKSTART_ROUTINE routine)
{
    KeInitializeEvent(&one->has_lock, SynchronizationEvent, FALSE);
    KeInitializeEvent(&one->may_release, SynchronizationEvent, FALSE);
    one->thread = start_thread(routine, one);
}

static void start_sharer(actor *one)
{
    start(one, share);
    wait_for(&one->has_lock);
}

static void start_waiting_writer(actor *one)
{
    PEXP_WAIT_BLOCK before = newest_waiter();

    start(one, write);
    while (newest_waiter() == before || ExpStateOfBlock(newest_waiter()) != ExpSleeping)
        sleep_for(1);
}

static void let_in(actor *woken)
{
    KeSetEvent(&may_go, IO_NO_INCREMENT, FALSE);
    wait_for(&woken->has_lock);
}

static void let_out(actor *one)
{
    KeSetEvent(&one->may_release, IO_NO_INCREMENT, FALSE);
    join_thread(one->thread);
}

static void show_without_waiters(void)
{
    show("free", 0, 0);
    ExAcquirePushLockExclusive(&lock);
    show("acquired exclusively", LOCKED, 0);
    ExReleasePushLockExclusive(&lock);
    start_sharer(&sharer_1);
    show("acquired shared", LOCKED, 1);
    start_sharer(&sharer_2);
    show("a second thread shares it", LOCKED, 2);
}

static void show_waiters(void)
{
    start_waiting_writer(&writer_1);
    show("a writer waits", LOCKED | WAITING | MULTIPLE, 2);
    let_out(&sharer_1);
    show("the first sharer leaves", LOCKED | WAITING | MULTIPLE, 1);
    start_waiting_writer(&writer_2);
    show("a second writer waits", LOCKED | WAITING | MULTIPLE, 1);
    let_out(&sharer_2);
    show("the last sharer leaves, wakes one", WAITING | WAKING, 0);
    expect(ExTryAcquirePushLockExclusive(&lock));
    show("another thread gets in first", LOCKED | WAITING | WAKING, 0);
    ExReleasePushLockExclusive(&lock);
    show("it leaves, without another wake", WAITING | WAKING, 0);
    let_in(&writer_1);
    show("the woken writer has it", LOCKED | WAITING, 0);
    let_out(&writer_1);
    let_in(&writer_2);
    show("the second writer has it", LOCKED, 0);
    let_out(&writer_2);
    show("it leaves", 0, 0);
}

int main(void)
{
    KeInitializeEvent(&may_go, SynchronizationEvent, FALSE);
    ExInitializePushLock(&lock);
    KeEnterCriticalRegion();
    show_without_waiters();
    show_waiters();
    KeLeaveCriticalRegion();
    return 0;
}
