/*
 * Threads are cancelled (pthread_cancel, deferred) at random moments while they use locks, events, semaphores, queues,
 * timers and the pool. No function of the library is a cancellation point, so each call completes or does not begin:
 * protected data adds up, tokens stay in one place, and cleanup handlers and destructors of a cancelled thread can use
 * everything.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/ex.h>

#include <pthread.h>

#define THREADS 16
#define TOKENS 8
#define SLOTS 4
#define CALLS_BETWEEN_LOOKS 400 /* so most cancellations are pending while calls are made */

static struct {
    SRWLOCK srw;
    CRITICAL_SECTION section;
    FAST_MUTEX mutex;
    EX_PUSH_LOCK pushlock;
    KSPIN_LOCK spinlock;
    unsigned long under_srw, under_section, under_mutex, under_pushlock, under_spinlock; /* plain memory */
    unsigned long entered[5];                                                            /* the same with atomics */
    HANDLE event, semaphore, timer, port;
    KQUEUE queue;
    LIST_ENTRY token[TOKENS];
    PTP_WORK work;
    unsigned long submitted;
    volatile LONG ran;
    HANDLE mutex_object[SLOTS];
    unsigned long owned, abandoned;
    unsigned long cleaned, destroyed;
} shared;

static pthread_key_t key;

static void use_locks(test_random *random)
{
    KIRQL level;

    switch (random_below(random, 6)) {
    case 0:
        AcquireSRWLockExclusive(&shared.srw);
        shared.under_srw++;
        add(&shared.entered[0], 1);
        ReleaseSRWLockExclusive(&shared.srw);
        break;
    case 1:
        EnterCriticalSection(&shared.section);
        shared.under_section++;
        add(&shared.entered[1], 1);
        LeaveCriticalSection(&shared.section);
        break;
    case 2:
        ExAcquireFastMutex(&shared.mutex);
        shared.under_mutex++;
        add(&shared.entered[2], 1);
        ExReleaseFastMutex(&shared.mutex);
        break;
    case 3:
        KeEnterCriticalRegion();
        ExAcquirePushLockExclusive(&shared.pushlock);
        shared.under_pushlock++;
        add(&shared.entered[3], 1);
        ExReleasePushLockExclusive(&shared.pushlock);
        KeLeaveCriticalRegion();
        break;
    case 4:
        KeAcquireSpinLock(&shared.spinlock, &level);
        shared.under_spinlock++;
        add(&shared.entered[4], 1);
        KeReleaseSpinLock(&shared.spinlock, level);
        break;
    default:
        AcquireSRWLockShared(&shared.srw);
        ReleaseSRWLockShared(&shared.srw);
        break;
    }
}

static void use_objects(test_random *random)
{
    HANDLE both[] = {shared.event, shared.semaphore};
    LARGE_INTEGER soon = {.QuadPart = -(LONGLONG)random_below(random, 3000)};
    LARGE_INTEGER minute = {.QuadPart = -600000000};
    OVERLAPPED_ENTRY packet;
    PLIST_ENTRY entry;
    ULONG count;

    switch (random_below(random, 7)) {
    case 0:
        SetEvent(shared.event);
        WaitForSingleObject(shared.event, random_below(random, 2));
        break;
    case 1:
        if (WaitForSingleObject(shared.semaphore, 1) == WAIT_OBJECT_0)
            require(ReleaseSemaphore(shared.semaphore, 1, NULL));
        break;
    case 2:
        if (WaitForMultipleObjects(2, both, TRUE, 1) == WAIT_OBJECT_0)
            require(ReleaseSemaphore(shared.semaphore, 1, NULL));
        break;
    case 3:
        entry = KeRemoveQueue(&shared.queue, KernelMode, &minute);
        require(entry >= &shared.token[0] && entry < &shared.token[TOKENS]);
        KeInsertQueue(&shared.queue, entry);
        break;
    case 4:
        require(SetWaitableTimer(shared.timer, &soon, 0, NULL, NULL, FALSE));
        if (random_below(random, 2))
            WaitForSingleObject(shared.timer, 2);
        else
            CancelWaitableTimer(shared.timer);
        break;
    case 5:
        if (GetQueuedCompletionStatusEx(shared.port, &packet, 1, &count, 1, FALSE))
            require(PostQueuedCompletionStatus(shared.port, 0, packet.lpCompletionKey, NULL));
        break;
    default:
        SubmitThreadpoolWork(shared.work);
        add(&shared.submitted, 1);
        break;
    }
}

static void on_cancel(void *argument)
{
    test_random *random = argument;

    use_locks(random);
    use_objects(random);
    add(&shared.cleaned, 1);
}

/* After the cleanup handlers, while the library still knows the thread. */
static void on_thread_end(void *argument)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);

    (void)argument;
    require(SetEvent(event) && WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0 && CloseHandle(event));
    add(&shared.destroyed, 1);
}

/* A mutex that the thread owns when it is cancelled is abandoned, and the next owner gets WAIT_ABANDONED. */
static void own_mutex(unsigned index)
{
    DWORD wait = WaitForSingleObject(shared.mutex_object[index % SLOTS], 0);

    if (wait == WAIT_TIMEOUT)
        return;
    if (wait == WAIT_ABANDONED)
        add(&shared.abandoned, 1);
    else
        require(wait == WAIT_OBJECT_0);
    add(&shared.owned, 1);
}

struct victim {
    pthread_t thread;
    unsigned index;
    uint64_t seed;
    unsigned long calls;
};

static void *use_everything(void *argument)
{
    struct victim *victim = argument;
    test_random random;

    random_seed(&random, victim->seed);
    pthread_setspecific(key, victim);
    own_mutex(victim->index);
    pthread_cleanup_push(on_cancel, &random);
    for (;;) {
        pthread_testcancel();
        for (unsigned i = 0; i < CALLS_BETWEEN_LOOKS; i++) {
            use_locks(&random);
            SetEvent(shared.event);
            WaitForSingleObject(shared.event, 0);
            if (i % 8 == 0)
                use_objects(&random);
            add(&victim->calls, 1);
        }
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_all(struct victim *victims, unsigned long round)
{
    test_random random;
    void *result;

    random_seed(&random, round);
    for (unsigned i = 0; i < THREADS; i++) {
        victims[i] = (struct victim){.index = i, .seed = round * THREADS + i};
        require(pthread_create(&victims[i].thread, NULL, use_everything, &victims[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        await(load(&victims[i].calls) > random_below(&random, CALLS_BETWEEN_LOOKS));
        spin_for(random_below(&random, 2000));
        require(pthread_cancel(victims[i].thread) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        require(pthread_join(victims[i].thread, &result) == 0);
        require(result == PTHREAD_CANCELED);
    }
}

static VOID CALLBACK count_run(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    InterlockedIncrement(&shared.ran);
}

static void prepare(void)
{
    InitializeCriticalSection(&shared.section);
    ExInitializeFastMutex(&shared.mutex);
    KeInitializeQueue(&shared.queue, THREADS);
    for (unsigned i = 0; i < TOKENS; i++)
        KeInsertQueue(&shared.queue, &shared.token[i]);
    shared.event = CreateEventA(NULL, FALSE, FALSE, NULL);
    shared.semaphore = CreateSemaphoreA(NULL, TOKENS, TOKENS, NULL);
    shared.timer = CreateWaitableTimerA(NULL, FALSE, NULL);
    shared.port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, THREADS);
    for (unsigned i = 0; i < TOKENS; i++)
        require(PostQueuedCompletionStatus(shared.port, 0, i, NULL));
    shared.work = CreateThreadpoolWork(count_run, NULL, NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        shared.mutex_object[i] = CreateMutexA(NULL, FALSE, NULL);
    require(pthread_key_create(&key, on_thread_end) == 0);
}

static void nothing_is_lost(unsigned long rounds)
{
    LARGE_INTEGER none = no_time();
    ULONG keys = 0;
    OVERLAPPED_ENTRY packet;
    ULONG count;

    require(shared.under_srw == shared.entered[0] && shared.under_section == shared.entered[1]);
    require(shared.under_mutex == shared.entered[2] && shared.under_pushlock == shared.entered[3]);
    require(shared.under_spinlock == shared.entered[4]);
    for (unsigned i = 0; i < TOKENS; i++) {
        PLIST_ENTRY entry = KeRemoveQueue(&shared.queue, KernelMode, &none);

        require(entry >= &shared.token[0] && entry < &shared.token[TOKENS]);
        require(WaitForSingleObject(shared.semaphore, 0) == WAIT_OBJECT_0);
        require(GetQueuedCompletionStatusEx(shared.port, &packet, 1, &count, 0, FALSE));
        keys |= 1u << packet.lpCompletionKey;
    }
    require(keys == (1u << TOKENS) - 1);
    require(WaitForSingleObject(shared.semaphore, 0) == WAIT_TIMEOUT);
    WaitForThreadpoolWorkCallbacks(shared.work, FALSE);
    require((unsigned long)shared.ran == shared.submitted);
    require(shared.cleaned == rounds * THREADS && shared.destroyed == rounds * THREADS);
    for (unsigned i = 0; i < SLOTS; i++)
        own_mutex(i);
    require(shared.abandoned == shared.owned - SLOTS);
}

static void close_all(void)
{
    require(CloseHandle(shared.event) && CloseHandle(shared.semaphore) && CloseHandle(shared.timer));
    require(CloseHandle(shared.port));
    for (unsigned i = 0; i < SLOTS; i++)
        require(ReleaseMutex(shared.mutex_object[i]) && CloseHandle(shared.mutex_object[i]));
    CloseThreadpoolWork(shared.work);
    DeleteCriticalSection(&shared.section);
}

static void cancelled_threads_lose_nothing(void **state)
{
    unsigned long rounds = test_rounds(600);
    struct victim victims[THREADS];

    (void)state;
    prepare();
    watchdog_start(HANG_SECONDS);
    for (unsigned long round = 0; round < rounds; round++)
        cancel_all(victims, round);
    nothing_is_lost(rounds);
    close_all();
    watchdog_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelled_threads_lose_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
