/* A KQUEUE that lets two of five workers run at a time, and a third when one of those two blocks. */
#include "tour.h"

#define WORKERS 5
#define LIMIT 2
#define PACKETS 20

static KQUEUE queue;
static LIST_ENTRY packets[PACKETS];
static KEVENT elsewhere, all_hold_one;
static LONG running, highest, processed, blocked;

static void note_one_more(void)
{
    LONG now = InterlockedIncrement(&running);
    LONG seen = ReadNoFence(&highest);

    while (now > seen && InterlockedCompareExchange(&highest, now, seen) != seen)
        seen = ReadNoFence(&highest);
}

static void worker(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    for (;;) {
        PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, NULL);

        if (entry == (PLIST_ENTRY)(LONG_PTR)STATUS_ABANDONED)
            return;
        note_one_more();
        KeStallExecutionProcessor(2000); /* works, without waiting for anything */
        InterlockedDecrement(&running);
        InterlockedIncrement(&processed);
    }
}

static void blocking_worker(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    KeRemoveQueue(&queue, KernelMode, NULL);
    if (InterlockedIncrement(&blocked) == LIMIT + 1)
        KeSetEvent(&all_hold_one, EVENT_INCREMENT, FALSE);
    wait_for(&elsewhere);
    /* The thread ends here and leaves the queue. */
}

static void show_limit(void)
{
    PVOID threads[WORKERS];

    KeInitializeQueue(&queue, LIMIT);
    for (unsigned i = 0; i < WORKERS; i++)
        threads[i] = start_thread(worker, NULL);
    for (unsigned i = 0; i < PACKETS; i++)
        KeInsertQueue(&queue, &packets[i]);
    while (ReadAcquire(&processed) != PACKETS)
        sleep_for(1);
    expect(KeRundownQueue(&queue) == NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        join_thread(threads[i]);
    printf("%d workers, limit %d: %d packets processed, never more than %d workers at a time\n", WORKERS, LIMIT,
           (int)processed, (int)highest);
    expect(highest <= LIMIT);
}

static void show_blocking(void)
{
    PVOID threads[LIMIT + 1];

    KeInitializeQueue(&queue, LIMIT);
    KeInitializeEvent(&elsewhere, NotificationEvent, FALSE);
    KeInitializeEvent(&all_hold_one, NotificationEvent, FALSE);
    for (unsigned i = 0; i < LIMIT + 1; i++)
        threads[i] = start_thread(blocking_worker, NULL);
    for (unsigned i = 0; i < LIMIT + 1; i++)
        KeInsertQueue(&queue, &packets[i]);
    wait_for(&all_hold_one);
    printf("with workers that block elsewhere: %d hold a packet, because a worker that waits makes room\n",
           (int)ReadAcquire(&blocked));
    KeSetEvent(&elsewhere, EVENT_INCREMENT, FALSE);
    for (unsigned i = 0; i < LIMIT + 1; i++)
        join_thread(threads[i]);
    expect(queue.CurrentCount == 0);
    KeRundownQueue(&queue);
}

int main(void)
{
    show_limit();
    show_blocking();
    return 0;
}
