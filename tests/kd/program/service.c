/* service.c: scenes like those of real programs, and processes that keep changing. */
#include "program.h"

#include <sched.h>

static CRITICAL_SECTION played_section;
static SRWLOCK played_srw = SRWLOCK_INIT;
static HANDLE played_mutant, semaphore;

/* A process that keeps changing. */

static DWORD WINAPI play(void *context)
{
    (void)context;
    for (;;) {
        HANDLE timed = CreateEventA(NULL, TRUE, FALSE, NULL);

        AcquireSRWLockExclusive(&played_srw);
        EnterCriticalSection(&played_section);
        WaitForSingleObject(timed, 1);
        LeaveCriticalSection(&played_section);
        ReleaseSRWLockExclusive(&played_srw);
        WaitForSingleObject(played_mutant, INFINITE);
        ReleaseMutex(played_mutant);
        CloseHandle(timed);
    }
    return 0;
}

void busy(void)
{
    InitializeCriticalSection(&played_section);
    played_mutant = CreateMutexA(NULL, FALSE, "m0");
    for (int i = 0; i < 4; i++)
        make(play, "player");
}

/* Threads that contend for locks of every kind and never hold two: nothing in it is ever a deadlock. */

#define HEALTHY_THREADS 8

static CRITICAL_SECTION healthy_sections[3];
static SRWLOCK healthy_srw[2];
static struct {
    ULONG number;
    ERESOURCE resource;
    EX_PUSH_LOCK push;
} healthy_pair;

static CRITICAL_SECTION healthy_turn;
static CONDITION_VARIABLE healthy_condition = CONDITION_VARIABLE_INIT;
static PTP_WORK healthy_work;

static void stay(unsigned *seed)
{
    for (volatile unsigned i = rand_r(seed) % 3000; i > 0; i--)
        continue;
    if (rand_r(seed) % 64 == 0)
        sched_yield();
}

/* Wakes a sleeper, or sleeps until another thread does or a millisecond has passed. */
static void take_turns(unsigned number)
{
    if (number % 3 == 0) {
        SubmitThreadpoolWork(healthy_work);
        return;
    }
    EnterCriticalSection(&healthy_turn);
    if (number % 3 == 1)
        WakeConditionVariable(&healthy_condition);
    else
        SleepConditionVariableCS(&healthy_condition, &healthy_turn, 1);
    LeaveCriticalSection(&healthy_turn);
}

static void hold_one(unsigned *seed)
{
    unsigned number = rand_r(seed) % 6;

    switch (rand_r(seed) % 7) {
    case 0:
    case 1:
        EnterCriticalSection(&healthy_sections[number % 3]);
        stay(seed);
        if (rand_r(seed) % 64 == 0)
            Sleep(1); /* long enough for the waiters of the section to sleep */
        LeaveCriticalSection(&healthy_sections[number % 3]);
        break;
    case 2:
        AcquireSRWLockExclusive(&healthy_srw[number % 2]);
        stay(seed);
        ReleaseSRWLockExclusive(&healthy_srw[number % 2]);
        break;
    case 3:
        AcquireSRWLockShared(&healthy_srw[number % 2]);
        stay(seed);
        ReleaseSRWLockShared(&healthy_srw[number % 2]);
        break;
    case 4:
        WaitForSingleObject(played_mutant, INFINITE);
        stay(seed);
        ReleaseMutex(played_mutant);
        break;
    case 5:
        take_turns(number);
        break;
    default:
        KeEnterCriticalRegion();
        if (number % 2) {
            ExAcquireResourceExclusiveLite(&healthy_pair.resource, TRUE);
            stay(seed);
            ExReleaseResourceLite(&healthy_pair.resource);
        } else {
            ExAcquirePushLockExclusive(&healthy_pair.push);
            stay(seed);
            ExReleasePushLockExclusive(&healthy_pair.push);
        }
        KeLeaveCriticalRegion();
        break;
    }
}

static DWORD WINAPI live_healthily(void *context)
{
    unsigned seed = 1 + GetCurrentThreadId();

    (void)context;
    for (;;)
        hold_one(&seed);
    return 0;
}

static void CALLBACK hold_one_in_pool(PTP_CALLBACK_INSTANCE instance, void *context, PTP_WORK work)
{
    unsigned seed = rand();

    (void)instance;
    (void)context;
    (void)work;
    EnterCriticalSection(&healthy_sections[0]);
    stay(&seed);
    LeaveCriticalSection(&healthy_sections[0]);
}

void healthy(void)
{
    healthy_work = CreateThreadpoolWork(hold_one_in_pool, NULL, NULL);
    InitializeCriticalSection(&healthy_turn);
    for (int i = 0; i < 3; i++)
        InitializeCriticalSection(&healthy_sections[i]);
    ExInitializeResourceLite(&healthy_pair.resource);
    ExInitializePushLock(&healthy_pair.push);
    played_mutant = CreateMutexA(NULL, FALSE, NULL);
    for (int i = 0; i < HEALTHY_THREADS; i++)
        make(live_healthily, "healthy");
}

/*
 * Two threads in a deadlock among others that hold two locks at a time, always in one order: there are cycles in single
 * snapshots of those, which never existed, and locks without an owner whose waiters are waited for.
 */

static CRITICAL_SECTION busy_sections[2], stuck_section;
static SRWLOCK busy_srw[2];

static DWORD WINAPI hold_two(void *context)
{
    unsigned seed = 1 + GetCurrentThreadId();

    (void)context;
    for (;;) {
        unsigned number = rand_r(&seed) % 2;

        EnterCriticalSection(&busy_sections[0]);
        stay(&seed);
        AcquireSRWLockExclusive(&busy_srw[number]);
        stay(&seed);
        ReleaseSRWLockExclusive(&busy_srw[number]);
        LeaveCriticalSection(&busy_sections[0]);
        AcquireSRWLockExclusive(&busy_srw[number]);
        EnterCriticalSection(&busy_sections[1]);
        stay(&seed);
        LeaveCriticalSection(&busy_sections[1]);
        ReleaseSRWLockExclusive(&busy_srw[number]);
    }
    return 0;
}

static DWORD WINAPI section_then_mutant(void *context)
{
    (void)context;
    EnterCriticalSection(&stuck_section);
    meet(0);
    WaitForSingleObject(played_mutant, INFINITE);
    return 0;
}

static DWORD WINAPI mutant_then_section(void *context)
{
    (void)context;
    WaitForSingleObject(played_mutant, INFINITE);
    meet(1);
    EnterCriticalSection(&stuck_section);
    return 0;
}

void busy_deadlock(void)
{
    InitializeCriticalSection(&busy_sections[0]);
    InitializeCriticalSection(&busy_sections[1]);
    InitializeCriticalSection(&stuck_section);
    played_mutant = CreateMutexA(NULL, FALSE, NULL);
    make(section_then_mutant, "alice");
    make(mutant_then_section, "bob");
    for (int i = 0; i < HEALTHY_THREADS; i++)
        make(hold_two, "busy");
}

/*
 * A service as there are many: a writer and a checkpoint that deadlock, workers at a queue, readers that share a table
 * which the indexer wants, and a monitor that waits for all of its events. A line "start" sets one of those.
 */

static CRITICAL_SECTION cache;
static ERESOURCE table;
static KQUEUE requests;
static HANDLE journal, loaded, readers_in[2], listener;

static DWORD WINAPI writer(void *context)
{
    (void)context;
    EnterCriticalSection(&cache);
    meet(0);
    WaitForSingleObject(journal, INFINITE);
    return 0;
}

static DWORD WINAPI checkpoint(void *context)
{
    (void)context;
    WaitForSingleObject(journal, INFINITE);
    meet(1);
    EnterCriticalSection(&cache);
    return 0;
}

static DWORD WINAPI flusher(void *context)
{
    (void)context;
    WaitForMultipleObjects(2, go, TRUE, INFINITE); /* both are owned */
    EnterCriticalSection(&cache);
    return 0;
}

static DWORD WINAPI monitor(void *context)
{
    HANDLE both[2] = {started, loaded};

    (void)context;
    WaitForMultipleObjects(2, both, TRUE, INFINITE);
    return 0;
}

static DWORD WINAPI wait_for_start(void *context)
{
    (void)context;
    WaitForSingleObject(started, INFINITE);
    Sleep(INFINITE);
    return 0;
}

static DWORD WINAPI reader(void *context)
{
    static volatile LONG readers;
    LONG self = InterlockedIncrement(&readers) - 1;

    (void)context;
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&table, TRUE);
    SetEvent(readers_in[self]);
    WaitForSingleObject(semaphore, INFINITE);
    return 0;
}

static DWORD WINAPI indexer(void *context)
{
    (void)context;
    WaitForMultipleObjects(2, readers_in, TRUE, INFINITE);
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&table, TRUE);
    return 0;
}

static DWORD WINAPI worker(void *context)
{
    (void)context;
    KeRemoveQueue(&requests, UserMode, NULL);
    return 0;
}

void service(void)
{
    InitializeCriticalSection(&cache);
    ExInitializeResourceLite(&table);
    KeInitializeQueue(&requests, 2);
    journal = CreateMutexA(NULL, FALSE, "journal");
    started = CreateEventA(NULL, TRUE, FALSE, "started");
    loaded = CreateEventA(NULL, TRUE, FALSE, "loaded");
    semaphore = CreateSemaphoreA(NULL, 0, 16, "io-slots");
    readers_in[0] = CreateEventA(NULL, TRUE, FALSE, NULL);
    readers_in[1] = CreateEventA(NULL, TRUE, FALSE, NULL);
    say("cache", &cache);
    say("table", &table);
    printf("journal %p\nstarted %p\n", journal, started);
    make(writer, "writer");
    make(checkpoint, "checkpoint");
    make(flusher, "flusher");
    make(monitor, "monitor");
    listener = make(wait_for_start, "listener");
    make(reader, "reader-1");
    make(reader, "reader-2");
    make(indexer, "indexer");
    for (int i = 0; i < 6; i++)
        make(worker, "worker");
}

/* Locks that are contended in turn, for a few seconds each. */

static CRITICAL_SECTION catalog;
static ERESOURCE index_lock;
static FAST_MUTEX log_mutex;

static void contend(unsigned which)
{
    if (which == 0) {
        EnterCriticalSection(&catalog);
        Sleep(2);
        LeaveCriticalSection(&catalog);
    } else if (which == 1) {
        KeEnterCriticalRegion();
        ExAcquireResourceExclusiveLite(&index_lock, TRUE);
        Sleep(3);
        ExReleaseResourceLite(&index_lock);
        KeLeaveCriticalRegion();
    } else {
        ExAcquireFastMutex(&log_mutex);
        KeStallExecutionProcessor(50);
        ExReleaseFastMutex(&log_mutex);
    }
}

static DWORD WINAPI contender(void *context)
{
    unsigned seed = GetCurrentThreadId() * 2654435761u;

    (void)context;
    for (;;) {
        unsigned turn = (unsigned)(GetTickCount() / 4000 % 3);

        seed = seed * 1103515245 + 12345;
        contend((seed >> 16) % 4 == 0 ? (seed >> 20) % 3 : turn);
        if ((seed >> 24) % 3 == 0)
            Sleep(1 + turn * 4);
    }
    return 0;
}

void turns(void)
{
    InitializeCriticalSectionEx(&catalog, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    ExInitializeResourceLite(&index_lock);
    ExInitializeFastMutex(&log_mutex);
    for (int i = 0; i < 8; i++)
        make(contender, "contender");
}
