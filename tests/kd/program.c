/*
 * program.c: a program whose threads wait for each other in a way that is known. The argument is a scenario. It says
 * where its locks and threads are, a line each, then "ready", and ends when its standard input does.
 */
#include <ntddk.h>
#include <windows.h>

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOAD(variable)         __atomic_load_n(&(variable), __ATOMIC_ACQUIRE)
#define STORE(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_RELEASE)

static HANDLE go[2]; /* each thread has what it takes first */
static ERESOURCE resources[2];
static CRITICAL_SECTION section, debugged;
static RTL_RESOURCE rtl_resource;
static SRWLOCK srw = SRWLOCK_INIT;
static EX_PUSH_LOCK push_lock;
static FAST_MUTEX fast_mutex;
static KGUARDED_MUTEX guarded_mutex;
static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
static volatile LONG address_value;
static KQUEUE queue;
static KTIMER timer;
static KDPC timer_dpc, dpcs[2];
static HANDLE mutants[3], event, semaphore, threads[16];
static volatile LONG stop, dpc_runs;
static int threads_made;

static void say(const char *name, const volatile void *address)
{
    printf("%s %p\n", name, (const void *)(uintptr_t)address);
}

static DWORD id_of_last_thread;

static HANDLE make(LPTHREAD_START_ROUTINE routine, const char *name)
{
    WCHAR wide[32] = {0};
    HANDLE thread = CreateThread(NULL, 0, routine, NULL, CREATE_SUSPENDED, &id_of_last_thread);

    for (size_t i = 0; name[i] != '\0'; i++)
        wide[i] = (unsigned char)name[i];
    SetThreadDescription(thread, wide);
    printf("%s %u\n", name, id_of_last_thread);
    threads[threads_made] = thread;
    STORE(threads_made, threads_made + 1);
    ResumeThread(thread);
    return thread;
}

/* Both have their first one before either asks for its second. */
static void meet(int self)
{
    SetEvent(go[self]);
    WaitForSingleObject(go[1 - self], INFINITE);
}

/* Two resources, crossed; a third thread is behind them. */

static void cross_resources(int self)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resources[self], TRUE);
    meet(self);
    if (self == 0)
        ExAcquireResourceExclusiveLite(&resources[1], TRUE);
    else
        ExAcquireResourceSharedLite(&resources[0], TRUE);
}

static DWORD WINAPI resource_alice(void *context)
{
    (void)context;
    cross_resources(0);
    return 0;
}

static DWORD WINAPI resource_bob(void *context)
{
    (void)context;
    cross_resources(1);
    return 0;
}

static DWORD WINAPI resource_carol(void *context)
{
    (void)context;
    WaitForMultipleObjects(2, go, TRUE, INFINITE); /* both are owned */
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&resources[1], TRUE);
    return 0;
}

static void crossed_resources(void)
{
    ExInitializeResourceLite(&resources[0]);
    ExInitializeResourceLite(&resources[1]);
    say("first", &resources[0]);
    say("second", &resources[1]);
    make(resource_alice, "alice");
    make(resource_bob, "bob");
    make(resource_carol, "carol");
}

static DWORD WINAPI wait_event(void *context)
{
    (void)context;
    WaitForSingleObject(event, INFINITE);
    return 0;
}

static DWORD WINAPI wait_semaphore(void *context)
{
    (void)context;
    WaitForSingleObject(semaphore, INFINITE);
    return 0;
}

/* What the program is told on its standard input. */

static HANDLE started;

static void obey(void)
{
    char line[64];

    while (fgets(line, sizeof(line), stdin) != NULL)
        if (strcmp(line, "start\n") == 0)
            SetEvent(started);
}

/* An SRW lock, which does not say who holds it, against a critical section. */

static DWORD WINAPI srw_then_section(void *context)
{
    (void)context;
    AcquireSRWLockExclusive(&srw);
    meet(0);
    EnterCriticalSection(&section);
    return 0;
}

static DWORD WINAPI section_then_srw(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    meet(1);
    AcquireSRWLockExclusive(&srw);
    return 0;
}

static void srw_against_section(void)
{
    InitializeCriticalSection(&section);
    say("srw", &srw);
    say("section", &section);
    make(srw_then_section, "alice");
    make(section_then_srw, "bob");
}

/* The same, but the SRW lock was taken after a wait, so its owner has been noted. */

static void contended_srw(void)
{
    AcquireSRWLockExclusive(&srw);
    srw_against_section();
    while (LOAD(srw.Ptr) == (PVOID)1) /* until alice waits */
        Sleep(1);
    ReleaseSRWLockExclusive(&srw);
}

/* Two fast resources, crossed. */

static FAST_ERESOURCE fast_resources[2];
static FAST_OWNER_ENTRY fast_owners[2][2];

static void cross_fast_resources(int self)
{
    ExInitializeFastOwnerEntry(&fast_owners[self][0]);
    ExInitializeFastOwnerEntry(&fast_owners[self][1]);
    KeEnterCriticalRegion();
    ExAcquireFastResourceExclusive(&fast_resources[self], &fast_owners[self][0], TRUE);
    meet(self);
    ExAcquireFastResourceShared(&fast_resources[1 - self], &fast_owners[self][1], TRUE);
}

static DWORD WINAPI fast_resource_alice(void *context)
{
    (void)context;
    cross_fast_resources(0);
    return 0;
}

static DWORD WINAPI fast_resource_bob(void *context)
{
    (void)context;
    cross_fast_resources(1);
    return 0;
}

static void crossed_fast_resources(void)
{
    ExInitializeFastResource(&fast_resources[0], 0);
    ExInitializeFastResource(&fast_resources[1], 0);
    say("first", &fast_resources[0]);
    say("second", &fast_resources[1]);
    make(fast_resource_alice, "alice");
    make(fast_resource_bob, "bob");
}

/*
 * A sleep on a condition variable that ends while its lock is taken: alice has the section of the other thread and is
 * woken, but gets her own back only from bob, who wants the section.
 */

static DWORD WINAPI sleep_on_condition(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    EnterCriticalSection(&debugged);
    SetEvent(go[0]);
    SleepConditionVariableCS(&condition, &debugged, INFINITE);
    return 0;
}

static DWORD WINAPI wake_and_enter(void *context)
{
    (void)context;
    WaitForSingleObject(go[0], INFINITE);
    EnterCriticalSection(&debugged);
    WakeConditionVariable(&condition);
    EnterCriticalSection(&section);
    return 0;
}

static void condition_cycle(void)
{
    InitializeCriticalSection(&section);
    InitializeCriticalSection(&debugged);
    say("outer", &section);
    say("inner", &debugged);
    make(sleep_on_condition, "alice");
    make(wake_and_enter, "bob");
}

/* Nobody knows who will wake a condition variable: bob would, but wants what the sleeper holds. */

static DWORD WINAPI enter_section_of_sleeper(void *context)
{
    (void)context;
    WaitForSingleObject(go[0], INFINITE);
    EnterCriticalSection(&section);
    WakeConditionVariable(&condition);
    return 0;
}

static void condition_chain(void)
{
    InitializeCriticalSection(&section);
    InitializeCriticalSection(&debugged);
    say("outer", &section);
    say("condition", &condition);
    make(sleep_on_condition, "alice");
    make(enter_section_of_sleeper, "bob");
}

/* A process with threads that wait, and its child, which has one of its own. */

static void forked(void)
{
    int told[2];
    char byte = 0;

    event = CreateEventA(NULL, TRUE, FALSE, "never");
    semaphore = CreateSemaphoreA(NULL, 0, 7, "limited");
    make(wait_event, "alice");
    make(wait_event, "bob");
    if (pipe(told) != 0)
        exit(2);
    if (fork() == 0) {
        make(wait_semaphore, "carol");
        printf("child %d\n", (int)getpid());
        if (write(told[1], &byte, 1) == 1)
            obey();
        _exit(0);
    }
    if (read(told[0], &byte, 1) != 1)
        exit(2);
}

/* A WaitAll cycle. */

static DWORD WINAPI wait_for_all(void *context)
{
    HANDLE both[2] = {mutants[1], mutants[2]};

    (void)context;
    WaitForSingleObject(mutants[0], INFINITE);
    meet(0);
    WaitForMultipleObjects(2, both, TRUE, INFINITE);
    return 0;
}

static DWORD WINAPI wait_for_any(void *context)
{
    HANDLE both[2] = {mutants[1], event};

    (void)context;
    WaitForSingleObject(mutants[0], INFINITE);
    meet(0);
    WaitForMultipleObjects(2, both, FALSE, INFINITE);
    return 0;
}

static DWORD WINAPI wait_for_first(void *context)
{
    (void)context;
    WaitForSingleObject(mutants[1], INFINITE);
    meet(1);
    WaitForSingleObject(mutants[0], INFINITE);
    return 0;
}

static void make_mutants(void)
{
    static const char *const names[] = {"m0", "m1", "m2"};

    for (int i = 0; i < 3; i++) {
        mutants[i] = CreateMutexA(NULL, FALSE, names[i]);
        printf("%s %p\n", names[i], mutants[i]);
    }
    event = CreateEventA(NULL, TRUE, FALSE, "never");
}

static void wait_all(void)
{
    make_mutants();
    make(wait_for_all, "alice");
    make(wait_for_first, "bob");
}

static void wait_any(void)
{
    make_mutants();
    make(wait_for_any, "alice");
    make(wait_for_first, "bob");
}

static DWORD WINAPI wait_m0(void *context)
{
    (void)context;
    WaitForSingleObject(mutants[0], INFINITE);
    return 0;
}

static DWORD WINAPI wait_alone(void *context)
{
    (void)context;
    WaitForSingleObject(CreateEventA(NULL, TRUE, FALSE, NULL), INFINITE);
    return 0;
}

/* A mutant of a thread that sleeps. */

static DWORD WINAPI own_and_sleep(void *context)
{
    (void)context;
    WaitForSingleObject(mutants[0], INFINITE);
    WaitForSingleObject(mutants[0], INFINITE);
    SetEvent(go[0]);
    Sleep(INFINITE);
    return 0;
}

static DWORD WINAPI wait_for_mutant(void *context)
{
    (void)context;
    WaitForSingleObject(go[0], INFINITE);
    WaitForSingleObjectEx(mutants[0], 3600000, TRUE);
    return 0;
}

static void sleeping_owner(void)
{
    make_mutants();
    make(own_and_sleep, "sleeper");
    make(wait_for_mutant, "waiter");
}

/* A critical section of a thread that has ended. */

static DWORD WINAPI enter_and_end(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    return 0;
}

static DWORD WINAPI enter(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    return 0;
}

static void orphan(void)
{
    InitializeCriticalSection(&section);
    say("section", &section);
    WaitForSingleObject(make(enter_and_end, "dead"), INFINITE);
    make(enter, "waiter");
}

/* A resource of user mode against a critical section. */

static DWORD WINAPI section_then_resource(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    meet(0);
    RtlAcquireResourceShared(&rtl_resource, TRUE);
    return 0;
}

static DWORD WINAPI resource_then_section(void *context)
{
    (void)context;
    RtlAcquireResourceExclusive(&rtl_resource, TRUE);
    meet(1);
    EnterCriticalSection(&section);
    return 0;
}

static void rtl_resource_against_section(void)
{
    InitializeCriticalSection(&section);
    RtlInitializeResource(&rtl_resource);
    say("section", &section);
    say("resource", &rtl_resource);
    make(section_then_resource, "alice");
    make(resource_then_section, "bob");
}

/* A thread waits for the end of one that waits for its lock. */

static DWORD WINAPI join_holding(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    WaitForSingleObject(make(enter, "child"), INFINITE);
    return 0;
}

static void join_deadlock(void)
{
    InitializeCriticalSection(&section);
    say("section", &section);
    make(join_holding, "parent");
    while (LOAD(threads_made) < 2)
        Sleep(1);
}

/* Locks of the kernel: a pushlock against a fast mutex against a guarded mutex. */

static DWORD WINAPI push_then_fast(void *context)
{
    (void)context;
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&push_lock);
    SetEvent(go[0]);
    WaitForSingleObject(go[1], INFINITE);
    ExAcquireFastMutexUnsafe(&fast_mutex);
    return 0;
}

static DWORD WINAPI fast_then_guarded(void *context)
{
    (void)context;
    ExAcquireFastMutex(&fast_mutex);
    SetEvent(go[1]);
    while (!LOAD(guarded_mutex.Owner))
        KeStallExecutionProcessor(100);
    KeAcquireGuardedMutexUnsafe(&guarded_mutex);
    return 0;
}

static DWORD WINAPI guarded_then_push(void *context)
{
    (void)context;
    KeAcquireGuardedMutex(&guarded_mutex);
    while (LOAD(push_lock) == 0)
        KeStallExecutionProcessor(100);
    ExAcquirePushLockShared(&push_lock);
    return 0;
}

static void kernel_locks(void)
{
    ExInitializePushLock(&push_lock);
    ExInitializeFastMutex(&fast_mutex);
    KeInitializeGuardedMutex(&guarded_mutex);
    say("push", &push_lock);
    say("fast", &fast_mutex);
    say("guarded", &guarded_mutex);
    make(push_then_fast, "alice");
    make(fast_then_guarded, "bob");
    make(guarded_then_push, "carol");
}

/* A DPC that does not end blocks its processor. */

static void spin(PKDPC dpc, void *context, void *argument1, void *argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    STORE(dpc_runs, TRUE);
    while (!LOAD(stop))
        KeStallExecutionProcessor(100);
}

static void never_runs(PKDPC dpc, void *context, void *argument1, void *argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
}

static DWORD WINAPI run_dpc(void *context)
{
    (void)context;
    KeInsertQueueDpc(&dpcs[0], NULL, NULL);
    return 0;
}

static void blocking_dpc(void)
{
    KeInitializeDpc(&dpcs[0], spin, NULL);
    KeInitializeDpc(&dpcs[1], never_runs, &dpcs);
    KeSetTargetProcessorDpc(&dpcs[0], 1);
    KeSetTargetProcessorDpc(&dpcs[1], 1);
    KeSetImportanceDpc(&dpcs[1], LowImportance);
    say("active", &dpcs[0]);
    say("queued", &dpcs[1]);
    make(run_dpc, "inserter");
    while (!LOAD(dpc_runs))
        Sleep(1);
    KeInsertQueueDpc(&dpcs[1], NULL, NULL);
}

/* Numbered queued spinlocks. */

static DWORD WINAPI hold_queued(void *context)
{
    KIRQL old = KeAcquireQueuedSpinLock(LockQueueVacbLock);

    (void)context;
    SetEvent(go[0]);
    while (!LOAD(stop))
        KeStallExecutionProcessor(100);
    KeReleaseQueuedSpinLock(LockQueueVacbLock, old);
    return 0;
}

static DWORD WINAPI want_queued(void *context)
{
    (void)context;
    WaitForSingleObject(go[0], INFINITE);
    KeReleaseQueuedSpinLock(LockQueueVacbLock, KeAcquireQueuedSpinLock(LockQueueVacbLock));
    return 0;
}

static void queued_locks(void)
{
    make(hold_queued, "owner");
    make(want_queued, "waiter");
}

/* One of everything. */

static DWORD WINAPI wait_condition(void *context)
{
    (void)context;
    EnterCriticalSection(&debugged);
    SleepConditionVariableCS(&condition, &debugged, INFINITE);
    return 0;
}

static DWORD WINAPI wait_address(void *context)
{
    LONG zero = 0;

    (void)context;
    WaitOnAddress(&address_value, &zero, sizeof(zero), INFINITE);
    return 0;
}

static DWORD WINAPI wait_queue(void *context)
{
    (void)context;
    KeRemoveQueue(&queue, UserMode, NULL);
    return 0;
}

static DWORD WINAPI wait_keyed(void *context)
{
    (void)context;
    NtWaitForKeyedEvent(NULL, (PVOID)&address_value, FALSE, NULL);
    return 0;
}

static DWORD WINAPI suspended(void *context)
{
    (void)context;
    return 0;
}

static void zoo(void)
{
    LARGE_INTEGER due = {.QuadPart = -36000000000LL};

    InitializeCriticalSectionEx(&debugged, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    KeInitializeQueue(&queue, 1);
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    KeInitializeDpc(&timer_dpc, never_runs, NULL);
    KeSetTimerEx(&timer, due, 1000, &timer_dpc);
    semaphore = CreateSemaphoreA(NULL, 0, 7, "limited");
    event = CreateEventA(NULL, TRUE, TRUE, "set");
    say("section", &debugged);
    say("condition", &condition);
    say("address", &address_value);
    say("queue", &queue);
    say("timer", &timer);
    printf("semaphore %p\nevent %p\n", semaphore, event);
    make(wait_condition, "condition-waiter");
    make(wait_address, "address-waiter");
    make(wait_queue, "queue-waiter");
    make(wait_semaphore, "semaphore-waiter");
    make(wait_keyed, "keyed-waiter");
    CreateThread(NULL, 0, suspended, NULL, CREATE_SUSPENDED, &id_of_last_thread);
    printf("suspended %u\n", id_of_last_thread);
}

/* A process that does not hold still. */

static DWORD WINAPI play(void *context)
{
    (void)context;
    while (!LOAD(stop)) {
        HANDLE timed = CreateEventA(NULL, TRUE, FALSE, NULL);

        AcquireSRWLockExclusive(&srw);
        EnterCriticalSection(&section);
        WaitForSingleObject(timed, 1);
        LeaveCriticalSection(&section);
        ReleaseSRWLockExclusive(&srw);
        WaitForSingleObject(mutants[0], INFINITE);
        ReleaseMutex(mutants[0]);
        CloseHandle(timed);
    }
    return 0;
}

static void busy(void)
{
    InitializeCriticalSection(&section);
    make_mutants();
    for (int i = 0; i < 4; i++)
        make(play, "player");
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

static void service(void)
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

/* Locks that are contended by turns, for a few seconds each. */

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
    while (!LOAD(stop)) {
        unsigned turn = (unsigned)(GetTickCount() / 4000 % 3);

        seed = seed * 1103515245 + 12345;
        contend((seed >> 16) % 4 == 0 ? (seed >> 20) % 3 : turn);
        if ((seed >> 24) % 3 == 0)
            Sleep(1 + turn * 4);
    }
    return 0;
}

static void turns(void)
{
    InitializeCriticalSectionEx(&catalog, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    ExInitializeResourceLite(&index_lock);
    ExInitializeFastMutex(&log_mutex);
    for (int i = 0; i < 8; i++)
        make(contender, "contender");
}

/* A thousand threads. */

static void crowd(void)
{
    event = CreateEventA(NULL, TRUE, FALSE, "never");
    mutants[0] = CreateMutexA(NULL, TRUE, "owned");
    for (int i = 0; i < 1000; i++) {
        HANDLE thread = CreateThread(NULL, 65536,
                                     i % 10 == 0  ? wait_alone
                                     : i % 2 == 0 ? wait_event
                                                  : wait_m0,
                                     NULL, 0, &id_of_last_thread);

        CloseHandle(thread);
    }
}

/* What a debugger cannot read. */

static void other_version(void)
{
    strcpy(KdDebuggerDataBlock.Version, "9.9.9");
}

static void other_layout(void)
{
    KdDebuggerDataBlock.LayoutHash ^= 1;
}

/* As if a structure of the executive had another size. */
static void other_ex_layout(void)
{
    static KD_ROOT copy[64];
    static ULONG layout[64];
    size_t count = (size_t)(KdDebuggerDataBlock.EndOfRoots - KdDebuggerDataBlock.FirstRoot);

    memcpy(copy, KdDebuggerDataBlock.FirstRoot, count * sizeof(KD_ROOT));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(copy[i].Name, "ExpWaiterLayout") == 0) {
            memcpy(layout, copy[i].Address, copy[i].Size);
            layout[1] += 8;
            copy[i].Address = layout;
        }
    }
    KdDebuggerDataBlock.FirstRoot = copy;
    KdDebuggerDataBlock.EndOfRoots = copy + count;
}

static void not_ready(void)
{
    KdDebuggerDataBlock.Ready = 0;
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"resources", crossed_resources},
    {"srw", srw_against_section},
    {"contended-srw", contended_srw},
    {"wait-all", wait_all},
    {"wait-any", wait_any},
    {"sleeping-owner", sleeping_owner},
    {"orphan", orphan},
    {"join", join_deadlock},
    {"kernel-locks", kernel_locks},
    {"dpc", blocking_dpc},
    {"queued-locks", queued_locks},
    {"zoo", zoo},
    {"busy", busy},
    {"other-version", other_version},
    {"other-layout", other_layout},
    {"not-ready", not_ready},
    {"rtl-resource", rtl_resource_against_section},
    {"service", service},
    {"crowd", crowd},
    {"turns", turns},
    {"fork", forked},
    {"fast-resources", crossed_fast_resources},
    {"condition-cycle", condition_cycle},
    {"condition-chain", condition_chain},
    {"other-ex-layout", other_ex_layout},
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    go[0] = CreateEventA(NULL, TRUE, FALSE, NULL);
    go[1] = CreateEventA(NULL, TRUE, FALSE, NULL);
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            puts("ready");
            obey();
            _exit(0);
        }
    }
    return 2;
}
