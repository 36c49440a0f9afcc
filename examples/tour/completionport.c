/* A completion port that lets two of five workers run at a time, and a third when one of those two waits elsewhere. */
#include <windows.h>

#include "tour.h"

#define WORKERS 5
#define LIMIT   2
#define PACKETS 20
#define STOP    99

static HANDLE port, elsewhere;
static LONG running, highest, processed, gathered, waiting;

static ULONG_PTR next_packet(void)
{
    OVERLAPPED *overlapped;
    ULONG_PTR key;
    DWORD bytes;

    expect(GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, INFINITE));
    return key;
}

static void note_one_more(void)
{
    LONG now = InterlockedIncrement(&running);
    LONG seen = ReadNoFence(&highest);

    while (now > seen && InterlockedCompareExchange(&highest, now, seen) != seen)
        seen = ReadNoFence(&highest);
}

/* Works without waiting: the first workers stay until as many run as the port allows. */
static void work(void)
{
    note_one_more();
    InterlockedIncrement(&gathered);
    while (ReadAcquire(&gathered) < LIMIT)
        YieldProcessor();
    for (unsigned i = 0; i < 1000; i++)
        YieldProcessor();
    InterlockedDecrement(&running);
    InterlockedIncrement(&processed);
}

static DWORD WINAPI worker(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    while (next_packet() != STOP)
        work();
    return 0;
}

static DWORD WINAPI worker_that_waits(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    next_packet();
    InterlockedIncrement(&waiting);
    WakeByAddressAll(&waiting);
    WaitForSingleObject(elsewhere, INFINITE);
    return 0;
}

static void start(HANDLE *threads, unsigned count, LPTHREAD_START_ROUTINE routine)
{
    for (unsigned i = 0; i < count; i++) {
        threads[i] = CreateThread(NULL, 0, routine, NULL, 0, NULL);
        expect(threads[i] != NULL);
    }
}

static void join(HANDLE *threads, unsigned count)
{
    WaitForMultipleObjects(count, threads, TRUE, INFINITE);
    for (unsigned i = 0; i < count; i++)
        CloseHandle(threads[i]);
}

static void post(unsigned count, ULONG_PTR key)
{
    for (unsigned i = 0; i < count; i++)
        PostQueuedCompletionStatus(port, 0, key, NULL);
}

static void show_limit(void)
{
    HANDLE threads[WORKERS];

    start(threads, WORKERS, worker);
    post(PACKETS, 0);
    post(WORKERS, STOP);
    join(threads, WORKERS);
    printf("%d workers that compute: %d packets, at most %d workers at a time\n", WORKERS, (int)processed,
           (int)highest);
    expect(highest == LIMIT && processed == PACKETS);
}

static void show_waiting(void)
{
    HANDLE threads[WORKERS];

    start(threads, WORKERS, worker_that_waits);
    post(WORKERS, 0);
    for (LONG seen = 0; (seen = ReadAcquire(&waiting)) != WORKERS;)
        WaitOnAddress(&waiting, &seen, sizeof(seen), INFINITE);
    printf("%d workers that wait:    %d have a packet at the same time\n", WORKERS, (int)waiting);
    SetEvent(elsewhere);
    join(threads, WORKERS);
}

int main(void)
{
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, LIMIT);
    elsewhere = CreateEventA(NULL, TRUE, FALSE, NULL);
    printf("a port for %d at a time\n", LIMIT);
    show_limit();
    show_waiting();
    return 0;
}
