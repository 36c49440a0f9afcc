/*
 * cache.c: a table that is read often and written rarely, under a slim reader/writer lock.
 *
 * Readers look up squares; on a miss they release the lock, compute, and insert the result exclusively. An InitOnce lets
 * the first thread initialize the table.
 */
#include <windows.h>
#include <stdio.h>

#define THREADS 6
#define LOOKUPS 20000
#define KEYS 256

typedef struct Entry {
    BOOL known;
    LONG value;
} Entry;

static SRWLOCK lock = SRWLOCK_INIT;
static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
static LONG setups, misses, hits, wrong;

static BOOL CALLBACK SetUp(PINIT_ONCE initOnce, PVOID parameter, PVOID *context)
{
    static Entry entries[KEYS];
    (void)initOnce;
    (void)parameter;
    InterlockedIncrement(&setups);
    *context = entries;
    return TRUE;
}

static BOOL Find(const Entry *table, LONG key, LONG *value)
{
    BOOL known;
    AcquireSRWLockShared(&lock);
    known = table[key].known;
    *value = table[key].value;
    ReleaseSRWLockShared(&lock);
    return known;
}

static LONG Enter(Entry *table, LONG key)
{
    LONG value = key * key;
    AcquireSRWLockExclusive(&lock);
    if (!table[key].known) {
        table[key].value = value;
        table[key].known = TRUE;
        misses++;
    }
    ReleaseSRWLockExclusive(&lock);
    return value;
}

static DWORD WINAPI Look(LPVOID parameter)
{
    DWORD random = (DWORD)(ULONG_PTR)parameter + 1;
    PVOID context;
    LONG value;
    int i;
    InitOnceExecuteOnce(&once, SetUp, NULL, &context);
    for (i = 0; i < LOOKUPS; i++) {
        LONG key;
        random = random * 1664525 + 1013904223;
        key = (LONG)(random >> 24) % KEYS;
        if (Find((Entry *)context, key, &value)) {
            InterlockedIncrement(&hits);
        } else {
            value = Enter((Entry *)context, key);
        }
        if (value != key * key) {
            InterlockedIncrement(&wrong);
        }
    }
    return 0;
}

int main(void)
{
    HANDLE threads[THREADS];
    int i;
    for (i = 0; i < THREADS; i++) {
        threads[i] = CreateThread(NULL, 0, Look, (LPVOID)(ULONG_PTR)i, 0, NULL);
    }
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
    for (i = 0; i < THREADS; i++) {
        CloseHandle(threads[i]);
    }
    printf("set up %ld time, %ld keys entered, %ld wrong\n", (long)setups, (long)misses, (long)wrong);
    printf("most lookups were hits: %s\n", hits > THREADS * LOOKUPS / 2 ? "yes" : "NO");
    return setups != 1 || misses != KEYS || wrong != 0;
}
