/*
 * producerconsumer.c: a bounded buffer with one critical section and two condition variables.
 *
 * Three producers put numbers in, four consumers take them out. Both sums must be equal.
 */
#include <windows.h>
#include <stdio.h>

#define PRODUCERS 3
#define CONSUMERS 4
#define PER_PRODUCER 10000
#define BUFFER_SIZE 8

static CRITICAL_SECTION lock;
static CONDITION_VARIABLE notEmpty;
static CONDITION_VARIABLE notFull;
static LONG buffer[BUFFER_SIZE];
static ULONG queued, oldest;
static BOOL finished;
static LONGLONG taken[CONSUMERS];
static LONG count[CONSUMERS];

static DWORD WINAPI Produce(LPVOID parameter)
{
    LONG first = (LONG)(LONG_PTR)parameter * PER_PRODUCER;
    LONG i;
    for (i = 0; i < PER_PRODUCER; i++) {
        EnterCriticalSection(&lock);
        while (queued == BUFFER_SIZE) {
            SleepConditionVariableCS(&notFull, &lock, INFINITE);
        }
        buffer[(oldest + queued) % BUFFER_SIZE] = first + i;
        queued++;
        LeaveCriticalSection(&lock);
        WakeConditionVariable(&notEmpty);
    }
    return 0;
}

/* FALSE: all items were produced and taken. */
static BOOL Take(LONG *item)
{
    BOOL got;
    EnterCriticalSection(&lock);
    while (queued == 0 && !finished) {
        SleepConditionVariableCS(&notEmpty, &lock, INFINITE);
    }
    got = queued != 0;
    if (got) {
        *item = buffer[oldest % BUFFER_SIZE];
        oldest++;
        queued--;
    }
    LeaveCriticalSection(&lock);
    if (got) {
        WakeConditionVariable(&notFull);
    }
    return got;
}

static DWORD WINAPI Consume(LPVOID parameter)
{
    LONG self = (LONG)(LONG_PTR)parameter;
    LONG item;
    while (Take(&item)) {
        taken[self] += item;
        count[self]++;
    }
    return 0;
}

int main(void)
{
    HANDLE producers[PRODUCERS], consumers[CONSUMERS];
    LONGLONG sum = 0, expected = 0;
    LONG items = 0, i;

    InitializeCriticalSectionAndSpinCount(&lock, 1000);
    InitializeConditionVariable(&notEmpty);
    InitializeConditionVariable(&notFull);
    for (i = 0; i < CONSUMERS; i++) {
        consumers[i] = CreateThread(NULL, 0, Consume, (LPVOID)(LONG_PTR)i, 0, NULL);
    }
    for (i = 0; i < PRODUCERS; i++) {
        producers[i] = CreateThread(NULL, 0, Produce, (LPVOID)(LONG_PTR)i, 0, NULL);
    }
    WaitForMultipleObjects(PRODUCERS, producers, TRUE, INFINITE);

    EnterCriticalSection(&lock);
    finished = TRUE;
    LeaveCriticalSection(&lock);
    WakeAllConditionVariable(&notEmpty);
    WaitForMultipleObjects(CONSUMERS, consumers, TRUE, INFINITE);

    for (i = 0; i < CONSUMERS; i++) {
        sum += taken[i];
        items += count[i];
        CloseHandle(consumers[i]);
    }
    for (i = 0; i < PRODUCERS * PER_PRODUCER; i++) {
        expected += i;
    }
    for (i = 0; i < PRODUCERS; i++) {
        CloseHandle(producers[i]);
    }
    DeleteCriticalSection(&lock);
    printf("%d producers, %d consumers, a buffer of %d\n", PRODUCERS, CONSUMERS, BUFFER_SIZE);
    printf("%ld items taken, sum %s\n", (long)items, sum == expected ? "right" : "WRONG");
    return sum != expected;
}
