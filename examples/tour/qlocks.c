/*
 * A queued spinlock with a queue: one thread owns the I/O cancel lock, two wait in line, each on its own processor.
 * The waiters of a queued spinlock share no word: a processor spins on its own entry, until its predecessor in the
 * queue changes that.
 */
#include "live.h"

#include "ke/irql.h"

#define WAITERS 2

static volatile LONG released;
static KEVENT owned;

static void own(PVOID unused)
{
    KIRQL old;

    UNREFERENCED_PARAMETER(unused);
    old = KeAcquireQueuedSpinLock(LockQueueIoCancelLock);
    KeSetEvent(&owned, IO_NO_INCREMENT, FALSE);
    while (!ReadAcquire(&released))
        KeStallExecutionProcessor(1000);
    KeReleaseQueuedSpinLock(LockQueueIoCancelLock, old);
}

static void wait_in_line(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    KeReleaseQueuedSpinLock(LockQueueIoCancelLock, KeAcquireQueuedSpinLock(LockQueueIoCancelLock));
}

/* How many entries follow the owner's: each points to the next. */
static ULONG length_of_line(void)
{
    ULONG linked = 0;

    for (ULONG i = 0; i < KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS); i++)
        if (__atomic_load_n(&KiProcessorBlock[i]->LockQueue[LockQueueIoCancelLock].Next, __ATOMIC_ACQUIRE) != NULL)
            linked += 1;
    return linked;
}

int main(void)
{
    PVOID owner, waiters[WAITERS];

    if (KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS) <= WAITERS) {
        fprintf(stderr, "This takes %d processors: set INTERLOCK_PROCESSORS=4.\n", WAITERS + 1);
        return 1;
    }
    KeInitializeEvent(&owned, NotificationEvent, FALSE);
    owner = start_thread(own, NULL);
    wait_for(&owned);
    for (ULONG i = 0; i < WAITERS; i++) {
        waiters[i] = start_thread(wait_in_line, NULL);
        while (length_of_line() != i + 1)
            sleep_for(1);
    }
    stand_still();
    WriteRelease(&released, TRUE);
    join_thread(owner);
    for (ULONG i = 0; i < WAITERS; i++)
        join_thread(waiters[i]);
    expect(length_of_line() == 0);
    return 0;
}
