/* worker.c: the work of the killed processes, and the audit while they pause. */
#include "chaos.h"

#include <windows.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <interlock/nt.h>

#define PATIENCE 60          /* milliseconds: no thread blocks forever on a token that died with its holder */
#define REST 200             /* microseconds between two checks for the pause */
#define SHORT_LIVED 16

static HANDLE mutexes[MUTEXES], semaphores[SEMAPHORES], events[EVENTS], pairs[PAIRS][2];
static HANDLE bell, timer;   /* for waits that consume nothing relevant */
static HANDLE keyed;

static HANDLE need(HANDLE handle, const char *what, unsigned number)
{
    if (handle == NULL)
        fail("%s %u: error %u", what, number, (unsigned)GetLastError());
    return handle;
}

static HANDLE open_keyed_event(void)
{
    static WCHAR path[] = u"\\BaseNamedObjects\\chaos-keyed";
    UNICODE_STRING name = {sizeof(path) - sizeof(WCHAR), sizeof(path), path};
    OBJECT_ATTRIBUTES attributes;
    HANDLE event;

    InitializeObjectAttributes(&attributes, &name, OBJ_OPENIF, NULL, NULL);
    return NtCreateKeyedEvent(&event, KEYEDEVENT_ALL_ACCESS, &attributes, 0) >= 0 ? event : NULL;
}

static void open_everything(void)
{
    char name[64];

    for (unsigned i = 0; i < MUTEXES; i++) {
        snprintf(name, sizeof(name), "chaos-mutex-%u", i);
        mutexes[i] = need(CreateMutexA(NULL, FALSE, name), "mutex", i);
    }
    for (unsigned i = 0; i < SEMAPHORES; i++) {
        snprintf(name, sizeof(name), "Local\\chaos-semaphore-%u", i);
        semaphores[i] = need(CreateSemaphoreA(NULL, TOKENS, TOKENS, name), "semaphore", i);
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        snprintf(name, sizeof(name), "chaos-event-%u", i);
        events[i] = need(CreateEventA(NULL, FALSE, TRUE, name), "event", i);
    }
    for (unsigned i = 0; i < PAIRS; i++)
        for (unsigned half = 0; half < 2; half++) {
            snprintf(name, sizeof(name), "chaos-pair-%u-%u", i, half);
            pairs[i][half] = need(CreateSemaphoreA(NULL, TOKENS, TOKENS, name), "pair", i);
        }
    bell = need(CreateEventA(NULL, TRUE, FALSE, "chaos-bell"), "bell", 0);
    timer = need(CreateWaitableTimerA(NULL, FALSE, "chaos-timer"), "timer", 0);
    keyed = need(open_keyed_event(), "keyed event", 0);
}

static void say(chaos_slot *slot, chaos_kind kind, unsigned object, chaos_phase phase)
{
    atomic_store(&slot->doing, DOING(kind, object, phase));
}

static void use_mutex(chaos_slot *slot, unsigned number, unsigned object)
{
    unsigned inside;

    say(slot, KIND_MUTEX, object, PHASE_ACQUIRING);
    /* a corrupt record may name an owner that does not own it */
    DWORD result = WaitForSingleObject(mutexes[object], ledger->rubbish ? 5000 : INFINITE);
    say(slot, KIND_MUTEX, object, PHASE_HELD);
    if (result != WAIT_OBJECT_0 && result != WAIT_ABANDONED)
        fail("mutex %u: the wait returned %#x, error %u", object, (unsigned)result, (unsigned)GetLastError());
    inside = atomic_load(&ledger->owner[object]);
    if (result == WAIT_OBJECT_0 && inside != 0)
        fail("mutex %u: slot %u is inside, and nobody was told that it was abandoned", object, inside - 1);
    if (result == WAIT_ABANDONED)
        atomic_fetch_add(&ledger->abandoned[object], 1);
    atomic_store(&ledger->owner[object], number + 1);
    unsigned long before = ledger->counter[object];
    for (unsigned i = 0; i < 50; i++)
        ledger->counter[object]++;
    if (ledger->counter[object] != before + 50 || atomic_load(&ledger->owner[object]) != number + 1)
        fail("mutex %u: two threads are inside", object);
    atomic_fetch_add(&ledger->acquired[object], 1);
    atomic_store(&ledger->owner[object], 0);
    say(slot, KIND_MUTEX, object, PHASE_RELEASING);
    if (!ReleaseMutex(mutexes[object]))
        fail("mutex %u: release, error %u", object, (unsigned)GetLastError());
    say(slot, KIND_NONE, 0, PHASE_IDLE);
}

/* Takes a token, holds it briefly, and releases it. */
static void use_token(chaos_slot *slot, chaos_kind kind, unsigned object, HANDLE handle)
{
    say(slot, kind, object, PHASE_ACQUIRING);
    DWORD result = WaitForSingleObject(handle, PATIENCE);
    if (result == WAIT_TIMEOUT) {
        say(slot, KIND_NONE, 0, PHASE_IDLE);
        return;
    }
    say(slot, kind, object, PHASE_HELD);
    if (result != WAIT_OBJECT_0)
        fail("token %u of kind %u: the wait returned %#x", object, kind, (unsigned)result);
    say(slot, kind, object, PHASE_RELEASING);
    if (kind == KIND_EVENT ? !SetEvent(handle) : !ReleaseSemaphore(handle, 1, NULL))
        fail("token %u of kind %u: release, error %u", object, kind, (unsigned)GetLastError());
    say(slot, KIND_NONE, 0, PHASE_IDLE);
}

static void use_pair(chaos_slot *slot, unsigned object)
{
    say(slot, KIND_PAIR, object, PHASE_ACQUIRING);
    DWORD result = WaitForMultipleObjects(2, pairs[object], TRUE, PATIENCE);
    if (result == WAIT_TIMEOUT) {
        say(slot, KIND_NONE, 0, PHASE_IDLE);
        return;
    }
    say(slot, KIND_PAIR, object, PHASE_HELD);
    if (result != WAIT_OBJECT_0)
        fail("pair %u: the wait returned %#x", object, (unsigned)result);
    say(slot, KIND_PAIR, object, PHASE_RELEASING);
    if (!ReleaseSemaphore(pairs[object][0], 1, NULL))
        fail("pair %u: first release, error %u", object, (unsigned)GetLastError());
    say(slot, KIND_PAIR, object, PHASE_RELEASING_SECOND);
    if (!ReleaseSemaphore(pairs[object][1], 1, NULL))
        fail("pair %u: second release, error %u", object, (unsigned)GetLastError());
    say(slot, KIND_NONE, 0, PHASE_IDLE);
}

static void ring(unsigned *seed)
{
    LARGE_INTEGER due = {.QuadPart = -10000 - rand_r(seed) % 50000};

    switch (rand_r(seed) % 4) {
    case 0: SetEvent(bell); break;
    case 1: ResetEvent(bell); break;
    case 2: PulseEvent(bell); break;
    default: SetWaitableTimer(timer, &due, rand_r(seed) % 2 ? 3 : 0, NULL, NULL, FALSE); break;
    }
}

/* Local and shared objects together, for any and for all of them. */
static void wait_mixed(unsigned *seed)
{
    HANDLE local = CreateEventA(NULL, TRUE, rand_r(seed) % 2, NULL);
    HANDLE mixed[3] = {bell, local, timer};
    DWORD result = WaitForMultipleObjects(3, mixed, rand_r(seed) % 4 == 0, rand_r(seed) % 8);

    if (result != WAIT_TIMEOUT && result > WAIT_OBJECT_0 + 2)
        fail("mixed wait: %#x, error %u", (unsigned)result, (unsigned)GetLastError());
    CloseHandle(local);
}

/* Two threads at a keyed event, of whichever processes. */
static void meet(unsigned *seed)
{
    LARGE_INTEGER patience = {.QuadPart = -10000 * (LONGLONG)(1 + rand_r(seed) % 5)};
    PVOID key = (PVOID)(ULONG_PTR)(2 * (1 + rand_r(seed) % 4));
    NTSTATUS status = rand_r(seed) % 2 ? NtWaitForKeyedEvent(keyed, key, FALSE, &patience)
                                       : NtReleaseKeyedEvent(keyed, key, FALSE, &patience);

    if (status != STATUS_SUCCESS && status != STATUS_TIMEOUT)
        fail("keyed event: %#x", (unsigned)status);
    atomic_fetch_add(&ledger->met, status == STATUS_SUCCESS);
}

/* A semaphore without a name goes to another process and comes back by another handle. That process may end at any time:
   then the call fails. */
static void pass_handle(unsigned *seed)
{
    pid_t other = atomic_load(&ledger->slot[(unsigned)rand_r(seed) % SLOTS].process);
    HANDLE process = other != 0 && other != getpid() ? OpenProcess(PROCESS_DUP_HANDLE, FALSE, (DWORD)other) : NULL;
    HANDLE semaphore, there, back;

    if (process == NULL)
        return;
    semaphore = need(CreateSemaphoreA(NULL, 0, 1, NULL), "semaphore to pass", 0);
    if (DuplicateHandle(GetCurrentProcess(), semaphore, process, &there, 0, FALSE, DUPLICATE_SAME_ACCESS) &&
        DuplicateHandle(process, there, GetCurrentProcess(), &back, 0, FALSE,
                        DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE)) {
        if (!ReleaseSemaphore(back, 1, NULL) || WaitForSingleObject(semaphore, 0) != WAIT_OBJECT_0)
            fail("a handle that was in process %d is of another object", (int)other);
        atomic_fetch_add(&ledger->passed, 1);
        CloseHandle(back);
    }
    CloseHandle(semaphore);
    CloseHandle(process);
}

/* Names that disappear with their process. */
static void make_names(unsigned *seed)
{
    HANDLE made[SHORT_LIVED];
    char name[64];

    for (unsigned i = 0; i < SHORT_LIVED; i++) {
        snprintf(name, sizeof(name), "chaos-of-%d-%u", (int)getpid(), rand_r(seed) % 64);
        made[i] = rand_r(seed) % 2 ? CreateEventA(NULL, TRUE, TRUE, name) : CreateMutexA(NULL, TRUE, name);
    }
    for (unsigned i = 0; i < SHORT_LIVED; i++)
        if (made[i] != NULL)
            CloseHandle(made[i]);
}

static void rest(chaos_slot *slot)
{
    atomic_store(&slot->parked, true);
    while (atomic_load(&ledger->pause) && !atomic_load(&ledger->stop))
        usleep(REST);
    atomic_store(&slot->parked, false);
}

static void work(chaos_slot *slot, unsigned number, unsigned seed, unsigned long rounds);

/* The grandchild works: it becomes a child of the topmost process, which must see it end. */
static void fork_twice(unsigned seed)
{
    pid_t child = fork();

    if (child == 0) {
        if (fork() == 0) {
            int number = claim_slot();
            if (number >= 0)
                work(&ledger->slot[number], (unsigned)number, seed, 20);
        }
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void work(chaos_slot *slot, unsigned number, unsigned seed, unsigned long rounds)
{
    while (!atomic_load(&ledger->stop) && rounds-- != 0) {
        unsigned object = (unsigned)rand_r(&seed) % 8;

        if (atomic_load(&ledger->pause))
            rest(slot);
        switch (rand_r(&seed) % 16) {
        case 0: ring(&seed); break;
        case 1: wait_mixed(&seed); break;
        case 2: make_names(&seed); break;
        case 3:
            switch (rand_r(&seed) % 16) {
            case 0: if (rand_r(&seed) % 4 == 0) fork_twice(seed + 1); break;
            case 1: case 2: pass_handle(&seed); break;
            default: meet(&seed); break;
            }
            break;
        case 4: case 5: case 6: use_token(slot, KIND_SEMAPHORE, object, semaphores[object]); break;
        case 7: case 8: case 9: use_token(slot, KIND_EVENT, object, events[object]); break;
        case 10: case 11: case 12: use_pair(slot, object % PAIRS); break;
        default: use_mutex(slot, number, object); break;
        }
        atomic_fetch_add(&slot->operations, 1);
    }
    atomic_store(&slot->parked, true);
    atomic_store(&slot->process, 0);
}

static DWORD WINAPI second_thread(void *seed)
{
    int number = claim_slot();

    if (number >= 0)
        work(&ledger->slot[number], (unsigned)number, (unsigned)(size_t)seed, ~0ul);
    return 0;
}

void worker(unsigned seed)
{
    int number = claim_slot();
    HANDLE thread;

    if (number < 0)
        _exit(0);
    open_everything();
    thread = CreateThread(NULL, 0, second_thread, (void *)(size_t)(seed * 7 + 1), 0, NULL);
    work(&ledger->slot[number], (unsigned)number, seed, ~0ul);
    WaitForSingleObject(thread, INFINITE);
    exit(0);
}

void anchor(void)
{
    open_everything();
    atomic_store(&ledger->anchored, true);
    while (!atomic_load(&ledger->stop_anchor))
        usleep(1000);
    exit(0);
}

/* The audit. */

static long count_of(HANDLE semaphore)
{
    SEMAPHORE_BASIC_INFORMATION information;
    NTSTATUS status = NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL);

    if (status < 0)
        fail("NtQuerySemaphore: %#x", (unsigned)status);
    return status < 0 ? 0 : information.CurrentCount;
}

static void audit_tokens(chaos_kind kind, unsigned object, long total, long count)
{
    const chaos_loss *loss = &ledger->loss[kind][object];
    long missing = total - count;

    if (missing < (long)loss->held || missing > (long)(loss->held + loss->acquiring + loss->releasing))
        fail("kind %u, object %u: %ld of %ld are missing; %u died with one, %u may have", kind, object, missing, total,
             loss->held, loss->acquiring + loss->releasing);
}

/* A WaitAll takes both or none: the missing counts differ only by threads that died between the two releases. */
static void audit_pair(unsigned object)
{
    const chaos_loss *loss = &ledger->loss[KIND_PAIR][object];
    long first = TOKENS - count_of(pairs[object][0]), second = TOKENS - count_of(pairs[object][1]);
    long least = (long)loss->held, both = (long)(loss->held + loss->acquiring);
    bool possible = false;

    for (long common = least; common <= both; common++)
        for (long in_first = 0; in_first <= (long)loss->releasing; in_first++)
            for (long in_second = 0; in_second <= (long)loss->releasing_second; in_second++)
                possible |= first == common + in_first && second == common + (long)loss->releasing + in_second;
    if (!possible)
        fail("pair %u: %ld and %ld are missing (died: %u held, %u taking, %u and %u releasing)", object, first, second,
             loss->held, loss->acquiring, loss->releasing, loss->releasing_second);
    for (; first > 0; first--)
        ReleaseSemaphore(pairs[object][0], 1, NULL);
    for (; second > 0; second--)
        ReleaseSemaphore(pairs[object][1], 1, NULL);
}

static void audit_mutex(unsigned object)
{
    const chaos_loss *loss = &ledger->loss[KIND_MUTEX][object];
    DWORD result = WaitForSingleObject(mutexes[object], 10000);
    unsigned long told;

    if (result != WAIT_OBJECT_0 && result != WAIT_ABANDONED) {
        fail("mutex %u: nobody is inside, and the wait returned %#x", object, (unsigned)result);
        return;
    }
    if (result == WAIT_ABANDONED)
        atomic_fetch_add(&ledger->abandoned[object], 1);
    told = atomic_load(&ledger->abandoned[object]);
    if (told < loss->held || told > loss->held + loss->acquiring + loss->releasing)
        fail("mutex %u: told %lu times that it was abandoned; %u died inside, %u may have", object, told, loss->held,
             loss->acquiring + loss->releasing);
    atomic_store(&ledger->abandoned[object], 0);
    atomic_store(&ledger->owner[object], 0);
    if (!ReleaseMutex(mutexes[object]))
        fail("mutex %u: release by the audit, error %u", object, (unsigned)GetLastError());
}

int audit(void)
{
    open_everything();
    for (unsigned i = 0; i < MUTEXES; i++)
        audit_mutex(i);
    for (unsigned i = 0; i < SEMAPHORES; i++) {
        long count = count_of(semaphores[i]);
        audit_tokens(KIND_SEMAPHORE, i, TOKENS, count);
        if (count < TOKENS)
            ReleaseSemaphore(semaphores[i], (LONG)(TOKENS - count), NULL);
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        audit_tokens(KIND_EVENT, i, 1, WaitForSingleObject(events[i], 0) == WAIT_OBJECT_0);
        SetEvent(events[i]);
    }
    for (unsigned i = 0; i < PAIRS; i++)
        audit_pair(i);
    return atomic_load(&ledger->failed);
}
