/*
 * fleet.c: a large service: fifty threads and two hundred objects. A deadlock and a thread behind it, locks that are
 * contended all the time, waits that last as long as the process, short waits, and names that contain markup.
 */
#include "program.h"

#define HOT_THREADS     8
#define WARM_THREADS    4
#define WATCHERS        16
#define WATCHED         6 /* events of each: waited for as any */
#define POOL_WORKERS    9
#define OWNED_MUTEXES   40
#define TICKERS         4
#define MARKUP          "<img/src=x/onerror=alert(1)>"

static CRITICAL_SECTION ledger, orders;
static ERESOURCE prices;
static KQUEUE jobs;
static HANDLE accounts, watched[WATCHERS][WATCHED], never, owned[OWNED_MUTEXES], drained, markup;

static DWORD WINAPI booking(void *context)
{
    (void)context;
    EnterCriticalSection(&ledger);
    meet(0);
    WaitForSingleObject(accounts, INFINITE);
    return 0;
}

static DWORD WINAPI closing(void *context)
{
    (void)context;
    WaitForSingleObject(accounts, INFINITE);
    meet(1);
    EnterCriticalSection(&ledger);
    return 0;
}

static DWORD WINAPI reporting(void *context)
{
    (void)context;
    WaitForMultipleObjects(2, go, TRUE, INFINITE); /* both are owned */
    EnterCriticalSection(&ledger);
    return 0;
}

static DWORD WINAPI trader(void *context)
{
    (void)context;
    for (;;) {
        EnterCriticalSection(&orders);
        Sleep(20);
        LeaveCriticalSection(&orders);
        Sleep(5);
    }
    return 0;
}

static DWORD WINAPI pricer(void *context)
{
    (void)context;
    for (;;) {
        KeEnterCriticalRegion();
        ExAcquireResourceExclusiveLite(&prices, TRUE);
        Sleep(40);
        ExReleaseResourceLite(&prices);
        KeLeaveCriticalRegion();
        Sleep(30);
    }
    return 0;
}

static DWORD WINAPI watcher(void *context)
{
    static volatile LONG watchers;
    LONG self = InterlockedIncrement(&watchers) - 1;

    (void)context;
    WaitForMultipleObjects(WATCHED, watched[self], FALSE, INFINITE);
    return 0;
}

static DWORD WINAPI pool_worker(void *context)
{
    (void)context;
    KeRemoveQueue(&jobs, UserMode, NULL);
    return 0;
}

static DWORD WINAPI keeper(void *context)
{
    (void)context;
    WaitForMultipleObjects(OWNED_MUTEXES, owned, TRUE, INFINITE);
    WaitForSingleObject(never, INFINITE);
    return 0;
}

static DWORD WINAPI ticker(void *context)
{
    unsigned milliseconds = 150 + GetCurrentThreadId() % 4 * 100;

    (void)context;
    for (;;) {
        WaitForSingleObject(never, milliseconds);
        Sleep(milliseconds / 2);
    }
    return 0;
}

static DWORD WINAPI drain(void *context)
{
    (void)context;
    WaitForSingleObject(drained, INFINITE);
    return 0;
}

static DWORD WINAPI marked(void *context)
{
    (void)context;
    WaitForSingleObject(markup, INFINITE);
    return 0;
}

static void make_objects(void)
{
    char name[64];

    InitializeCriticalSectionEx(&ledger, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    InitializeCriticalSectionEx(&orders, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    ExInitializeResourceLite(&prices);
    KeInitializeQueue(&jobs, 2);
    accounts = CreateMutexA(NULL, FALSE, "accounts");
    never = CreateEventA(NULL, TRUE, FALSE, "never");
    drained = CreateSemaphoreA(NULL, 0, 16, "drained");
    markup = CreateEventA(NULL, TRUE, FALSE, MARKUP);
    for (int i = 0; i < WATCHERS * WATCHED; i++) {
        snprintf(name, sizeof(name), "feed-%d", i);
        watched[i / WATCHED][i % WATCHED] = i % 3 == 2 ? CreateSemaphoreA(NULL, 0, 1, name) : CreateEventA(NULL, TRUE, FALSE, name);
    }
    for (int i = 0; i < OWNED_MUTEXES; i++) {
        snprintf(name, sizeof(name), "slot-%d", i);
        owned[i] = CreateMutexA(NULL, FALSE, name);
    }
}

/* Objects without waiters. */
static void make_spares(unsigned count)
{
    static ERESOURCE spare[60];

    for (unsigned i = 0; i < count && i < sizeof(spare) / sizeof(spare[0]); i++)
        ExInitializeResourceLite(&spare[i]);
}

void fleet(void)
{
    make_objects();
    make_spares(60);
    make(booking, "booking");
    make(closing, "closing");
    make(reporting, "reporting");
    for (int i = 0; i < HOT_THREADS; i++)
        make(trader, "trader");
    for (int i = 0; i < WARM_THREADS; i++)
        make(pricer, "pricer");
    for (int i = 0; i < WATCHERS; i++)
        make(watcher, "watcher");
    for (int i = 0; i < POOL_WORKERS; i++)
        make(pool_worker, "worker");
    make(keeper, "keeper");
    for (int i = 0; i < TICKERS; i++)
        make(ticker, "ticker");
    make(drain, "drain-1");
    make(drain, "drain-2");
    make(drain, "drain-3");
    make(marked, MARKUP);
}
