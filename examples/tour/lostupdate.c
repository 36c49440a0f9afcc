/* Figure 8-37: two threads add to a circular queue without a lock, and with one. */
#include "tour.h"

#define SLOTS 8

static struct {
    char data[SLOTS];
    unsigned tail;
} queue;

static KEVENT has_read, may_write;
static KSPIN_LOCK lock;

static void show(const char *what)
{
    printf("%-28s", what);
    for (unsigned i = 0; i < 4; i++)
        printf(" [%c]", queue.data[i] ? queue.data[i] : ' ');
    printf("   tail = %u\n", queue.tail);
}

static void start_over(void)
{
    memset(&queue, 0, sizeof(queue));
    KeInitializeEvent(&has_read, SynchronizationEvent, FALSE);
    KeInitializeEvent(&may_write, SynchronizationEvent, FALSE);
}

/* The first thread reads the tail and is held up before it writes. */
static void insert_slowly(PVOID unused)
{
    unsigned place = queue.tail;

    UNREFERENCED_PARAMETER(unused);
    KeSetEvent(&has_read, IO_NO_INCREMENT, FALSE);
    wait_for(&may_write);
    queue.data[place] = 'A';
    queue.tail = (place + 1) % SLOTS;
}

static void insert_at_once(PVOID unused)
{
    unsigned place;

    UNREFERENCED_PARAMETER(unused);
    wait_for(&has_read);
    place = queue.tail;
    queue.data[place] = 'B';
    queue.tail = (place + 1) % SLOTS;
    KeSetEvent(&may_write, IO_NO_INCREMENT, FALSE);
}

static void insert_slowly_locked(PVOID unused)
{
    KIRQL old;
    unsigned place;

    UNREFERENCED_PARAMETER(unused);
    KeAcquireSpinLock(&lock, &old);
    place = queue.tail;
    /* Setting is allowed at DISPATCH_LEVEL; waiting would be a bugcheck. */
    KeSetEvent(&has_read, IO_NO_INCREMENT, FALSE);
    KeStallExecutionProcessor(20000);
    queue.data[place] = 'A';
    queue.tail = (place + 1) % SLOTS;
    KeReleaseSpinLock(&lock, old);
}

static void insert_at_once_locked(PVOID unused)
{
    KIRQL old;

    UNREFERENCED_PARAMETER(unused);
    wait_for(&has_read);
    KeAcquireSpinLock(&lock, &old);
    queue.data[queue.tail] = 'B';
    queue.tail = (queue.tail + 1) % SLOTS;
    KeReleaseSpinLock(&lock, old);
}

static void run(const char *what, PKSTART_ROUTINE slow, PKSTART_ROUTINE quick)
{
    PVOID threads[2];

    start_over();
    threads[0] = start_thread(slow, NULL);
    threads[1] = start_thread(quick, NULL);
    join_thread(threads[0]);
    join_thread(threads[1]);
    show(what);
}

int main(void)
{
    KeInitializeSpinLock(&lock);
    start_over();
    show("empty");
    run("A and B added, no lock", insert_slowly, insert_at_once);
    expect(queue.tail == 1 && queue.data[0] == 'A' && queue.data[1] == 0);
    run("A and B added, spinlock", insert_slowly_locked, insert_at_once_locked);
    expect(queue.tail == 2 && queue.data[0] == 'A' && queue.data[1] == 'B');
    return 0;
}
