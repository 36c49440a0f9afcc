/* Figure 8-37: two threads add to a circular queue. Without a lock, in the order of the figure; then with a spinlock.
 */
#include "tour.h"

#define SLOTS 8

static struct {
    char data[SLOTS];
    unsigned tail;
} queue;

static KEVENT a_has_inserted, b_has_inserted, a_has_incremented, a_has_lock;
static volatile LONG b_comes;
static KSPIN_LOCK lock;

static void show(const char *what)
{
    printf("%-34s", what);
    for (unsigned i = 0; i < 4; i++)
        printf(" [%c]", queue.data[i] ? queue.data[i] : ' ');
    printf("  tail = %u\n", queue.tail);
}

static void insert_at(unsigned place, char data)
{
    queue.data[place] = data;
}

static void increment_tail(void)
{
    queue.tail = (queue.tail + 1) % SLOTS;
}

static void add_a(PVOID unused)
{
    unsigned place = queue.tail;

    UNREFERENCED_PARAMETER(unused);
    insert_at(place, 'A');
    show("A: gets tail, inserts");
    KeSetEvent(&a_has_inserted, IO_NO_INCREMENT, FALSE);
    wait_for(&b_has_inserted);
    increment_tail();
    show("A: increments tail");
    KeSetEvent(&a_has_incremented, IO_NO_INCREMENT, FALSE);
}

static void add_b(PVOID unused)
{
    unsigned place;

    UNREFERENCED_PARAMETER(unused);
    wait_for(&a_has_inserted);
    place = queue.tail;
    insert_at(place, 'B');
    show("B: gets tail, inserts: A is lost");
    KeSetEvent(&b_has_inserted, IO_NO_INCREMENT, FALSE);
    wait_for(&a_has_incremented);
    increment_tail();
    show("B: increments tail: an empty slot");
}

/* With the lock A is at DISPATCH_LEVEL: it may set events, but waiting for one would be a bugcheck. */
static void add_a_locked(PVOID unused)
{
    KIRQL old;

    UNREFERENCED_PARAMETER(unused);
    KeAcquireSpinLock(&lock, &old);
    insert_at(queue.tail, 'A');
    KeSetEvent(&a_has_lock, IO_NO_INCREMENT, FALSE);
    while (!ReadAcquire(&b_comes))
        KeStallExecutionProcessor(100);
    increment_tail();
    KeReleaseSpinLock(&lock, old);
}

static void add_b_locked(PVOID unused)
{
    KIRQL old;

    UNREFERENCED_PARAMETER(unused);
    wait_for(&a_has_lock);
    WriteRelease(&b_comes, TRUE);
    KeAcquireSpinLock(&lock, &old);
    insert_at(queue.tail, 'B');
    increment_tail();
    KeReleaseSpinLock(&lock, old);
}

static void run(PKSTART_ROUTINE first, PKSTART_ROUTINE second)
{
    PVOID threads[2];

    memset(&queue, 0, sizeof(queue));
    show("empty");
    threads[0] = start_thread(first, NULL);
    threads[1] = start_thread(second, NULL);
    join_thread(threads[0]);
    join_thread(threads[1]);
}

int main(void)
{
    KeInitializeSpinLock(&lock);
    KeInitializeEvent(&a_has_inserted, SynchronizationEvent, FALSE);
    KeInitializeEvent(&b_has_inserted, SynchronizationEvent, FALSE);
    KeInitializeEvent(&a_has_incremented, SynchronizationEvent, FALSE);
    KeInitializeEvent(&a_has_lock, SynchronizationEvent, FALSE);

    run(add_a, add_b);
    expect(queue.tail == 2 && queue.data[0] == 'B' && queue.data[1] == 0);
    printf("\nThe same with a spinlock around each:\n");
    run(add_a_locked, add_b_locked);
    show("A and B, one after the other");
    expect(queue.tail == 2 && queue.data[0] == 'A' && queue.data[1] == 'B');
    return 0;
}
