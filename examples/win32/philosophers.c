/*
 * philosophers.c: dining philosophers who cannot deadlock, because each takes both forks at once or none.
 *
 * A fork is a mutex. WaitForMultipleObjects with bWaitAll TRUE takes two of them atomically; no philosopher ever holds
 * a single fork.
 */
#include <windows.h>
#include <stdio.h>

#define SEATS 5
#define MEALS 200

static HANDLE forks[SEATS];
static LONG inUse[SEATS];
static LONG clashes;
static LONG meals[SEATS];

static void Use(int fork)
{
    if (InterlockedIncrement(&inUse[fork]) != 1) {
        InterlockedIncrement(&clashes);
    }
}

static void PutDown(int fork)
{
    InterlockedDecrement(&inUse[fork]);
    ReleaseMutex(forks[fork]);
}

static DWORD WINAPI Dine(LPVOID parameter)
{
    int left = (int)(INT_PTR)parameter;
    int right = (left + 1) % SEATS;
    HANDLE pair[2];
    pair[0] = forks[left];
    pair[1] = forks[right];
    while (meals[left] < MEALS) {
        if (WaitForMultipleObjects(2, pair, TRUE, INFINITE) != WAIT_OBJECT_0) {
            return 1;
        }
        Use(left);
        Use(right);
        meals[left]++;
        if (meals[left] % 16 == 0) {
            SwitchToThread();
        }
        PutDown(right);
        PutDown(left);
    }
    return 0;
}

int main(void)
{
    HANDLE philosophers[SEATS];
    LONG total = 0;
    int i;

    for (i = 0; i < SEATS; i++) {
        forks[i] = CreateMutexW(NULL, FALSE, NULL);
    }
    for (i = 0; i < SEATS; i++) {
        philosophers[i] = CreateThread(NULL, 0, Dine, (LPVOID)(INT_PTR)i, 0, NULL);
    }
    WaitForMultipleObjects(SEATS, philosophers, TRUE, INFINITE);
    for (i = 0; i < SEATS; i++) {
        total += meals[i];
        CloseHandle(philosophers[i]);
        CloseHandle(forks[i]);
    }
    printf("%d philosophers ate %ld meals\n", SEATS, (long)total);
    printf("two with the same fork: %ld times\n", (long)clashes);
    return clashes != 0 || total != SEATS * MEALS;
}
