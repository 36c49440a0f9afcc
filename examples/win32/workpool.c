/*
 * workpool.c: a pool of threads around a completion port.
 *
 * Eight threads serve the port, which lets at most two of them run at a time: the others step in when one blocks. The
 * packets carry the work; a packet with key 0 tells a thread to exit.
 */
#include <windows.h>
#include <stdio.h>

#define THREADS 8
#define CONCURRENCY 2
#define JOBS 500

typedef struct Job {
    OVERLAPPED overlapped;
    DWORD number;
    ULONGLONG result;
} Job;

enum { KEY_STOP, KEY_COMPUTE };

static HANDLE port;
static Job jobs[JOBS];
static LONG running, most, done;

static void NoteRunning(void)
{
    LONG now = InterlockedIncrement(&running);
    LONG seen = InterlockedCompareExchange(&most, 0, 0);
    while (now > seen) {
        LONG before = InterlockedCompareExchange(&most, now, seen);
        if (before == seen) {
            break;
        }
        seen = before;
    }
}

static ULONGLONG Compute(DWORD number)
{
    ULONGLONG a = 0, b = 1;
    DWORD i;
    for (i = 0; i < number % 90; i++) {
        ULONGLONG next = a + b;
        a = b;
        b = next;
    }
    return a;
}

static DWORD WINAPI Serve(LPVOID parameter)
{
    DWORD bytes;
    ULONG_PTR key;
    LPOVERLAPPED overlapped;
    (void)parameter;
    while (GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, INFINITE) && key != KEY_STOP) {
        Job *job = CONTAINING_RECORD(overlapped, Job, overlapped);
        NoteRunning();
        job->result = Compute(job->number);
        InterlockedDecrement(&running);
        InterlockedIncrement(&done);
    }
    return 0;
}

int main(void)
{
    HANDLE threads[THREADS];
    ULONGLONG sum = 0, expected = 0;
    DWORD i;

    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, CONCURRENCY);
    for (i = 0; i < THREADS; i++) {
        threads[i] = CreateThread(NULL, 0, Serve, NULL, 0, NULL);
    }
    for (i = 0; i < JOBS; i++) {
        jobs[i].number = i;
        PostQueuedCompletionStatus(port, sizeof(Job), KEY_COMPUTE, &jobs[i].overlapped);
    }
    for (i = 0; i < THREADS; i++) {
        PostQueuedCompletionStatus(port, 0, KEY_STOP, NULL);
    }
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);

    for (i = 0; i < JOBS; i++) {
        sum += jobs[i].result;
        expected += Compute(i);
    }
    for (i = 0; i < THREADS; i++) {
        CloseHandle(threads[i]);
    }
    CloseHandle(port);
    printf("%ld of %d jobs done by %d threads, result %s\n", (long)done, JOBS, THREADS,
           sum == expected ? "right" : "WRONG");
    printf("never more than %d at a time: %s\n", CONCURRENCY, most <= CONCURRENCY ? "yes" : "NO");
    return sum != expected || most > CONCURRENCY;
}
