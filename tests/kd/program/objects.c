/* objects.c: scenes of objects: mutants, events, one of everything. */
#include "program.h"

#include <interlock/win32/extra.h>

#include <pthread.h>

static HANDLE mutants[3], event, semaphore;
static CRITICAL_SECTION debugged;
static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
static volatile LONG address_value;
static KQUEUE queue;
static KTIMER timer;
static KDPC timer_dpc;

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

void wait_all(void)
{
    make_mutants();
    make(wait_for_all, "alice");
    make(wait_for_first, "bob");
}

void wait_any(void)
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

void sleeping_owner(void)
{
    make_mutants();
    make(own_and_sleep, "sleeper");
    make(wait_for_mutant, "waiter");
}

/* A process with threads that wait, and its child, which has a thread of its own. */

void forked(void)
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

void zoo(void)
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

/* Waiters of two kinds at one address: they share a bucket of the waiter hash, alternate, and are listed by kind. */

/* The library changes its word under a lock that this read does not take. */
__attribute__((no_sanitize("thread"))) static DWORD WINAPI watch_condition(void *context)
{
    (void)context;
    for (;;) {
        CONDITION_VARIABLE seen = {.Ptr = LOAD(condition.Ptr)};

        WaitOnAddress(&condition, &seen, sizeof(seen), INFINITE);
    }
    return 0;
}

void shared_bucket(void)
{
    InitializeCriticalSection(&debugged);
    say("condition", &condition);
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "sleeper-%d", i);
        make(wait_condition, name);
        snprintf(name, sizeof(name), "watcher-%d", i);
        make(watch_condition, name);
    }
}

/* A thousand threads. */

void crowd(void)
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

/* Pool memory. */

void pool_memory(void)
{
    for (int i = 0; i < 10; i++) {
        PVOID block = ExAllocatePoolWithTag(i < 4 ? NonPagedPool : PagedPool, 100, 0x6f766544);

        if (i % 2 != 0)
            ExFreePool(block);
    }
    ExAllocatePoolWithTag(NonPagedPool, 5000, 0x20707249);
    ExFreePool(ExAllocatePoolWithTag(PagedPool, 1, 0x0166646d));
}

/* Threads without a description. */

static DWORD WINAPI wait_without_name(void *context)
{
    if (context != NULL)
        pthread_setname_np(pthread_self(), context);
    __atomic_add_fetch(&threads_made, 1, __ATOMIC_RELEASE);
    WaitForSingleObject(go[0], INFINITE);
    return 0;
}

void nameless(void)
{
    static char name[] = "by the host";

    CreateThread(NULL, 0, wait_without_name, NULL, 0, &id_of_last_thread);
    printf("nameless %u\n", id_of_last_thread);
    CreateThread(NULL, 0, wait_without_name, name, 0, &id_of_last_thread);
    printf("named_by_host %u\n", id_of_last_thread);
    while (LOAD(threads_made) < 2)
        Sleep(1);
}

/* Waits for a hundred and a thousand objects. bob waits for all, including what carol holds; carol for what bob holds.
   alice and erin wait for any, including that: an event may still end their waits. */

#define MANY 1000
#define SOME 100

static HANDLE many_events[MANY], of_bob, of_carol;
static KEVENT bare_events[MANY];

static DWORD WINAPI wait_for_any_of_some(void *context)
{
    DWORD index;

    (void)context;
    WaitForManyObjects(SOME, many_events, FALSE, INFINITE, TRUE, &index);
    return 0;
}

static DWORD WINAPI wait_for_any_of_bare(void *context)
{
    static KWAIT_BLOCK blocks[KE_MANY_WAIT_BLOCKS(MANY)];
    static PVOID objects[MANY];
    ULONG index;

    (void)context;
    for (int i = 0; i < MANY; i++)
        objects[i] = &bare_events[i];
    KeWaitForManyObjects(MANY, objects, WaitAny, Executive, KernelMode, FALSE, NULL, blocks, &index);
    return 0;
}

static DWORD WINAPI wait_for_all_of_many(void *context)
{
    HANDLE all[MANY];

    (void)context;
    memcpy(all, many_events, sizeof(all));
    all[MANY / 2] = of_carol;
    WaitForSingleObject(of_bob, INFINITE);
    meet(0);
    WaitForManyObjects(MANY, all, TRUE, INFINITE, FALSE, NULL);
    return 0;
}

static DWORD WINAPI own_one_of_many(void *context)
{
    (void)context;
    WaitForSingleObject(of_carol, INFINITE);
    meet(1);
    WaitForSingleObject(of_bob, INFINITE);
    return 0;
}

static DWORD WINAPI wait_for_any_of_many(void *context)
{
    HANDLE any[MANY];

    (void)context;
    memcpy(any, many_events, sizeof(any));
    any[MANY - 1] = of_carol;
    WaitForManyObjects(MANY, any, FALSE, INFINITE, FALSE, NULL);
    return 0;
}

void many_objects(void)
{
    for (int i = 0; i < MANY; i++) {
        many_events[i] = CreateEventA(NULL, TRUE, FALSE, NULL);
        KeInitializeEvent(&bare_events[i], NotificationEvent, FALSE);
    }
    of_bob = CreateMutexA(NULL, FALSE, "of-bob");
    of_carol = CreateMutexA(NULL, FALSE, "of-carol");
    say("bare", bare_events);
    make(wait_for_any_of_some, "alice");
    make(wait_for_any_of_bare, "dave");
    make(wait_for_all_of_many, "bob");
    make(own_one_of_many, "carol");
    WaitForSingleObject(go[1], INFINITE); /* carol has hers */
    make(wait_for_any_of_many, "erin");
}
