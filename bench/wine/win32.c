/* The Win32 functions of Wine. */
#include "../bench.h"

#include <windows.h>

#include "../exchange.h"
#include "../tail.h"

#define MANY   64
#define TIMERS 64
#define WAITS  512

static SRWLOCK srw_lock;
static CRITICAL_SECTION section;
static INIT_ONCE once;
static HANDLE event, semaphore, mutex, events[2], any_handles[MANY + 1], all_handles[MANY], port, own_port;
static HANDLE exchange_handles[2][MANY], timers[TIMERS], wait_events[WAITS];
static PTP_WORK work;
static PTP_WAIT waits[WAITS];
static SLIST_HEADER list __attribute__((aligned(16)));
static LONG word, flags[2][32];
static bench_item one;
static unsigned long done;

static BOOL CALLBACK initialize_once(PINIT_ONCE own, PVOID argument, PVOID *context)
{
    (void)own;
    (void)argument;
    (void)context;
    return TRUE;
}

BENCH_LOOP(run_srw, AcquireSRWLockExclusive(&srw_lock); ReleaseSRWLockExclusive(&srw_lock))
BENCH_LOOP(run_srw_shared, AcquireSRWLockShared(&srw_lock); ReleaseSRWLockShared(&srw_lock))
BENCH_LOOP(run_section, EnterCriticalSection(&section); LeaveCriticalSection(&section))
BENCH_LOOP_WITHIN(run_section_again, EnterCriticalSection(&section); (void)row, EnterCriticalSection(&section);
                  LeaveCriticalSection(&section), LeaveCriticalSection(&section))
BENCH_LOOP(run_mutex, WaitForSingleObject(mutex, INFINITE); ReleaseMutex(mutex))
BENCH_LOOP(run_event, SetEvent(event); WaitForSingleObject(event, INFINITE))
BENCH_LOOP(run_reset, SetEvent(event); ResetEvent(event))
BENCH_LOOP(run_semaphore, ReleaseSemaphore(semaphore, 1, NULL); WaitForSingleObject(semaphore, INFINITE))
BENCH_LOOP(run_any, WaitForMultipleObjects(row->number, any_handles + MANY + 1 - row->number, FALSE, INFINITE))
BENCH_LOOP(run_all, WaitForMultipleObjects(row->number, all_handles, TRUE, INFINITE))
BENCH_LOOP(run_wake, WakeByAddressSingle(&word))
BENCH_LOOP(run_once, InitOnceExecuteOnce(&once, initialize_once, NULL, NULL))
BENCH_WORK(work_srw, AcquireSRWLockExclusive(&srw_lock), ReleaseSRWLockExclusive(&srw_lock),
           AcquireSRWLockShared(&srw_lock), ReleaseSRWLockShared(&srw_lock))
BENCH_MUTEX_WORK(work_section, EnterCriticalSection(&section), LeaveCriticalSection(&section))
BENCH_STACK(run_list, work_list, InterlockedPushEntrySList(&list, (PSLIST_ENTRY)item),
            (bench_item *)InterlockedPopEntrySList(&list))
BENCH_CONDITION(condition, SRWLOCK lock; CONDITION_VARIABLE variable, AcquireSRWLockExclusive(&letter->lock),
                                         ReleaseSRWLockExclusive(&letter->lock),
                                         SleepConditionVariableSRW(&letter->variable, &letter->lock, INFINITE, 0),
                                         WakeConditionVariable(&letter->variable))

static void event_signal(unsigned side)
{
    SetEvent(events[side]);
}

static void event_await(unsigned side)
{
    WaitForSingleObject(events[side], INFINITE);
}

static void any_64_signal(unsigned side)
{
    SetEvent(exchange_handles[side][MANY - 1]);
}

static void any_64_await(unsigned side)
{
    WaitForMultipleObjects(MANY, exchange_handles[side], FALSE, INFINITE);
}

static void address_signal(unsigned side)
{
    __atomic_store_n(&flags[side][0], 1, __ATOMIC_RELEASE);
    WakeByAddressSingle(&flags[side][0]);
}

static void address_await(unsigned side)
{
    LONG none = 0;

    while (__atomic_load_n(&flags[side][0], __ATOMIC_ACQUIRE) == 0)
        WaitOnAddress(&flags[side][0], &none, sizeof(none), INFINITE);
    __atomic_store_n(&flags[side][0], 0, __ATOMIC_RELAXED);
}

static void post_to(HANDLE to, bench_item *item)
{
    PostQueuedCompletionStatus(to, 0, (ULONG_PTR)item, NULL);
}

static bench_item *get_from(HANDLE from)
{
    ULONG_PTR key = 0;
    LPOVERLAPPED overlapped;
    DWORD bytes;

    GetQueuedCompletionStatus(from, &bytes, &key, &overlapped, INFINITE);
    return (bench_item *)key;
}

static void put(bench_item *item)
{
    post_to(port, item);
}

static bench_item *get(void)
{
    return get_from(port);
}

BENCH_LOOP(run_port, post_to(own_port, &one); get_from(own_port))

static uint64_t run_timers(unsigned long count, int which)
{
    LARGE_INTEGER due = {.QuadPart = -36000000000LL};
    uint64_t took[2] = {0, 0};
    unsigned long rounds = 0;

    for (; rounds < count; rounds += TIMERS) {
        uint64_t times[3] = {bench_now(), 0, 0};

        for (unsigned i = 0; i < TIMERS; i++)
            SetWaitableTimer(timers[i], &due, 0, NULL, NULL, FALSE);
        times[1] = bench_now();
        for (unsigned i = 0; i < TIMERS; i++)
            CancelWaitableTimer(timers[i]);
        times[2] = bench_now();
        took[0] += times[1] - times[0];
        took[1] += times[2] - times[1];
    }
    return (uint64_t)((double)took[which] * (double)count / (double)rounds);
}

static uint64_t run_timer_set(unsigned long count, const bench_row *row)
{
    (void)row;
    return run_timers(count, 0);
}

static uint64_t run_timer_cancel(unsigned long count, const bench_row *row)
{
    (void)row;
    return run_timers(count, 1);
}

static void CALLBACK count_work(PTP_CALLBACK_INSTANCE instance, void *context, PTP_WORK posted)
{
    (void)instance;
    (void)context;
    (void)posted;
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static void CALLBACK count_wait(PTP_CALLBACK_INSTANCE instance, void *context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)result;
    SetThreadpoolWait(wait, context, NULL);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
}

static uint64_t run_work(unsigned long count, const bench_row *row)
{
    uint64_t start;

    (void)row;
    if (work == NULL)
        work = CreateThreadpoolWork(count_work, NULL, NULL);
    start = bench_now();
    for (unsigned long i = 0; i < count; i++)
        SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    return bench_now() - start;
}

static uint64_t run_waits(unsigned long count, const bench_row *row)
{
    unsigned long wanted = 0;
    uint64_t start;

    for (unsigned i = 0; i < row->number && waits[i] == NULL; i++) {
        wait_events[i] = CreateEventW(NULL, FALSE, FALSE, NULL);
        waits[i] = CreateThreadpoolWait(count_wait, wait_events[i], NULL);
        SetThreadpoolWait(waits[i], wait_events[i], NULL);
    }
    __atomic_store_n(&done, 0, __ATOMIC_RELAXED);
    start = bench_now();
    while (wanted < count) {
        for (unsigned i = 0; i < row->number; i++)
            SetEvent(wait_events[i]);
        wanted += row->number;
        while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < wanted)
            bench_yield();
    }
    start = bench_now() - start;
    return (uint64_t)((double)start * (double)count / (double)wanted);
}

static void end_at_once(void *unused)
{
    (void)unused;
}

BENCH_LOOP(run_thread, bench_thread_join(bench_thread_start(end_at_once, NULL)))

static void initialize(void)
{
    InitializeCriticalSection(&section);
    InitializeSListHead(&list);
    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    semaphore = CreateSemaphoreW(NULL, 0, MAXLONG, NULL);
    mutex = CreateMutexW(NULL, FALSE, NULL);
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    own_port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    for (unsigned i = 0; i < MANY; i++) {
        all_handles[i] = CreateEventW(NULL, TRUE, TRUE, NULL);
        any_handles[i] = CreateEventW(NULL, FALSE, FALSE, NULL);
        exchange_handles[0][i] = CreateEventW(NULL, FALSE, FALSE, NULL);
        exchange_handles[1][i] = CreateEventW(NULL, FALSE, FALSE, NULL);
        timers[i] = CreateWaitableTimerW(NULL, TRUE, NULL);
    }
    any_handles[MANY] = all_handles[0];
    events[0] = CreateEventW(NULL, FALSE, FALSE, NULL);
    events[1] = CreateEventW(NULL, FALSE, FALSE, NULL);
}

BENCH_TAIL_WORK(tail_srw, AcquireSRWLockExclusive(&srw_lock), ReleaseSRWLockExclusive(&srw_lock))
BENCH_TAIL_WORK(tail_section, EnterCriticalSection(&section), LeaveCriticalSection(&section))

static void sleep_millisecond(void)
{
    Sleep(1);
}

static const char *version(void)
{
    const char *(CDECL * get_version)(void) =
        (void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version");

    return get_version != NULL ? get_version() : "";
}

BENCH_CONTENDERS(wine, version())
{
    initialize();
    bench_add_loop("exclusive", BENCH_PEER, "Wine SRW lock", 0, run_srw);
    bench_add_loop("exclusive", BENCH_PEER, "Wine critical section", 0, run_section);
    bench_add_loop("shared", BENCH_PEER, "Wine SRW lock", 0, run_srw_shared);
    bench_add_loop("recursive", BENCH_PEER, "Wine critical section", 0, run_section_again);
    bench_add_loop("mutex-object", BENCH_PEER, "Wine mutex", 0, run_mutex);
    bench_add_loop("event", BENCH_PEER, "Wine event", 0, run_event);
    bench_add_loop("reset", BENCH_PEER, "Wine event", 0, run_reset);
    bench_add_loop("semaphore", BENCH_PEER, "Wine semaphore", 0, run_semaphore);
    bench_add_loop("any", BENCH_PEER, "Wine", 0, run_any);
    bench_add_loop("all", BENCH_PEER, "Wine", 0, run_all);
    bench_add_loop("wake-nobody", BENCH_PEER, "Wine WakeByAddressSingle", 0, run_wake);
    bench_add_loop("once", BENCH_PEER, "Wine InitOnceExecuteOnce", 0, run_once);
    bench_add_contended("mutex", BENCH_PEER, "Wine SRW lock", work_srw);
    bench_add_contended("mutex", BENCH_PEER, "Wine critical section", work_section);
    bench_add_contended("rwlock", BENCH_PEER, "Wine SRW lock", work_srw);
    bench_add_exchange("event", BENCH_PEER, "Wine event", event_signal, event_await);
    bench_add_exchange("condition", BENCH_PEER, "Wine condition variable, SRW lock", condition_signal, condition_await);
    bench_add_exchange("address", BENCH_PEER, "Wine WaitOnAddress", address_signal, address_await);
    bench_add_exchange("any-64", BENCH_PEER, "Wine", any_64_signal, any_64_await);
    bench_add_loop("stack", BENCH_PEER, "Wine SLIST_HEADER", 0, run_list);
    bench_add_contended("stack", BENCH_PEER, "Wine SLIST_HEADER", work_list);
    bench_add_loop("port", BENCH_PEER, "Wine", 0, run_port);
    bench_add_stream("port", BENCH_PEER, "Wine", put, get);
    bench_add_loop("timer-set", BENCH_PEER, "Wine, among 64", 0, run_timer_set);
    bench_add_loop("timer-cancel", BENCH_PEER, "Wine, among 64", 0, run_timer_cancel);
    bench_add_loop("pool-work", BENCH_PEER, "Wine SubmitThreadpoolWork", 0, run_work);
    bench_add_loop("pool-waits", BENCH_PEER, "Wine SetThreadpoolWait", 0, run_waits);
    bench_add_loop("new-thread", BENCH_PEER, "Wine CreateThread", 0, run_thread);
    bench_add_tail_lock("tail-lock", BENCH_PEER, "Wine SRW lock", tail_srw);
    bench_add_tail_lock("tail-lock", BENCH_PEER, "Wine critical section", tail_section);
    bench_add_tail_wake("tail-wake", BENCH_PEER, "Wine event", event_signal, event_await);
    bench_add_tail_sleep("tail-sleep", BENCH_PEER, "Wine Sleep", sleep_millisecond);
}
