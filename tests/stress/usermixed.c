/*
 * User mode, everything at once: threads that start, exit or are terminated, are suspended and get APCs; waits for any
 * and for all; a completion port; work, timers and waits of the thread pool in cleanup groups. At the end every count
 * is conserved and no handle is left.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/nt.h>

#define LIVES 4          /* threads alive at a time, each with its keeper */
#define STEPS_OF_A_LIFE 40
#define GROUPS 2         /* threads that use the pool */

enum { AUTO_EVENT, MANUAL_EVENT, SEMAPHORE, MUTEX_0, MUTEX_1, TIMER, OBJECTS };

static struct {
    HANDLE object[OBJECTS];
    HANDLE port;
    unsigned long rounds, lives;
    unsigned long released, taken;           /* of the semaphore */
    unsigned long posted, removed;
    unsigned long owners[2];
    unsigned long ended, found_ended;
    unsigned long submitted, ran;
} mixed;

/* A living thread. What it has taken and not recorded when it is terminated would be lost: so it is terminated only
   where it has said that it may be. */
enum { IMMUNE, MORTAL, DOOMED };

typedef struct life {
    volatile LONG fate;
    unsigned long apcs_ran;
    unsigned long apcs_queued;
    test_random random;
} life;

static VOID CALLBACK count_apc(ULONG_PTR argument)
{
    life *self = (life *)argument;

    add(&self->apcs_ran, 1);
}

static void take(unsigned index)
{
    if (index == SEMAPHORE)
        add(&mixed.taken, 1);
    if (index == MUTEX_0 || index == MUTEX_1) {
        require(add(&mixed.owners[index - MUTEX_0], 1) == 1);
        add(&mixed.owners[index - MUTEX_0], -1UL);
        require(ReleaseMutex(mixed.object[index]));
    }
}

static void wait_for_some(life *self)
{
    unsigned first = random_below(&self->random, OBJECTS), count = 1 + random_below(&self->random, 3);
    BOOL all = random_below(&self->random, 2) != 0;
    HANDLE some[3];
    DWORD result;

    for (unsigned i = 0; i < count; i++)
        some[i] = mixed.object[(first + i) % OBJECTS];
    result = WaitForMultipleObjectsEx(count, some, all, random_below(&self->random, 2), random_below(&self->random, 2) != 0);
    if (result == WAIT_TIMEOUT || result == WAIT_IO_COMPLETION)
        return;
    if (result >= WAIT_ABANDONED_0)
        result -= WAIT_ABANDONED_0;
    require(result < count);
    for (unsigned i = 0; i < count; i++)
        if (all || i == result)
            take((first + i) % OBJECTS);
}

static void signal_one(life *self)
{
    LARGE_INTEGER due = in_microseconds(random_below(&self->random, 300));

    switch (random_below(&self->random, 6)) {
    case 0:
        require(SetEvent(mixed.object[AUTO_EVENT]));
        break;
    case 1:
        require(SetEvent(mixed.object[MANUAL_EVENT]));
        break;
    case 2:
        require(ResetEvent(mixed.object[MANUAL_EVENT]));
        break;
    case 3:
        require(PulseEvent(mixed.object[MANUAL_EVENT]));
        break;
    case 4:
        add(&mixed.released, 2);
        require(ReleaseSemaphore(mixed.object[SEMAPHORE], 2, NULL));
        break;
    default:
        require(SetWaitableTimer(mixed.object[TIMER], &due, 0, NULL, NULL, FALSE));
        break;
    }
}

static void use_port(life *self)
{
    OVERLAPPED_ENTRY entries[3];
    ULONG count = 0;

    if (random_below(&self->random, 2)) {
        add(&mixed.posted, 1);
        require(PostQueuedCompletionStatus(mixed.port, 0, 1, NULL));
    } else if (GetQueuedCompletionStatusEx(mixed.port, entries, 3, &count, random_below(&self->random, 2),
                                           random_below(&self->random, 2) != 0)) {
        add(&mixed.removed, count);
    }
}

static void do_one_thing(life *self)
{
    switch (random_below(&self->random, 6)) {
    case 0:
        signal_one(self);
        break;
    case 1:
        use_port(self);
        break;
    case 2:
        SleepEx(random_below(&self->random, 2), TRUE);
        break;
    default:
        wait_for_some(self);
        break;
    }
}

/* Here it may be terminated: asleep, in a wait, as the owner of a mutex. */
static void be_mortal(life *self)
{
    HANDLE some[2] = {mixed.object[MANUAL_EVENT], mixed.object[MUTEX_0 + random_below(&self->random, 2)]};
    DWORD result;

    store(&self->fate, MORTAL);
    SleepEx(random_below(&self->random, 2), TRUE);
    result = WaitForMultipleObjectsEx(2, some, FALSE, random_below(&self->random, 2), TRUE);
    if (result == WAIT_OBJECT_0 + 1 || result == WAIT_ABANDONED_0 + 1)
        require(ReleaseMutex(some[1]));
    if (__atomic_exchange_n(&self->fate, IMMUNE, __ATOMIC_SEQ_CST) == DOOMED)
        Sleep(INFINITE);
}

static DWORD WINAPI live(LPVOID argument)
{
    life *self = argument;
    unsigned steps = 1 + random_below(&self->random, STEPS_OF_A_LIFE);

    for (unsigned i = 0; i < steps; i++) {
        do_one_thing(self);
        if (random_below(&self->random, 4) == 0)
            be_mortal(self);
    }
    if (random_below(&self->random, 4) == 0) /* exits as the owner of a mutex */
        WaitForSingleObject(mixed.object[MUTEX_0 + random_below(&self->random, 2)], 1);
    if (random_below(&self->random, 2))
        ExitThread(7);
    return 7;
}

static void end_if_possible(HANDLE thread, life *victim)
{
    LONG mortal = MORTAL;

    if (__atomic_compare_exchange_n(&victim->fate, &mortal, DOOMED, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        require(TerminateThread(thread, 8));
        add(&mixed.ended, 1);
    }
}

static void harass(HANDLE thread, life *victim, test_random *random)
{
    switch (random_below(random, 8)) {
    case 0:
        end_if_possible(thread, victim);
        break;
    case 1:
    case 2:
        if (SuspendThread(thread) != (DWORD)-1) {
            spin_for(random_below(random, 200));
            ResumeThread(thread);
        }
        break;
    case 3:
        NtAlertThread(thread);
        break;
    default:
        if (QueueUserAPC(count_apc, thread, (ULONG_PTR)victim))
            victim->apcs_queued += 1;
        break;
    }
}

static void keep_one(life *child, test_random *random)
{
    DWORD code = 0;
    HANDLE thread;

    memset(child, 0, sizeof(*child));
    random_seed(&child->random, random_next(random));
    thread = CreateThread(NULL, 0x40000, live, child, random_below(random, 2) ? CREATE_SUSPENDED : 0, NULL);
    require(thread != NULL);
    while (WaitForSingleObject(thread, 0) == WAIT_TIMEOUT) {
        harass(thread, child, random);
        ResumeThread(thread);
        sched_yield();
    }
    require(GetExitCodeThread(thread, &code) && (code == 7 || code == 8));
    if (code == 8)
        add(&mixed.found_ended, 1);
    require(load(&child->apcs_ran) <= child->apcs_queued);
    require(!QueueUserAPC(count_apc, thread, 0));
    require(CloseHandle(thread));
    add(&mixed.lives, 1);
}

static void keep_many(unsigned index)
{
    static life children[LIVES];
    test_random random;

    random_seed(&random, index + 1);
    while (load(&mixed.lives) < mixed.rounds)
        keep_one(&children[index], &random);
}

/* The pool. */

static VOID CALLBACK work_ran(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    add(&mixed.ran, 1);
}

static VOID CALLBACK timer_ran(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)timer;
    SetEventWhenCallbackReturns(instance, *(HANDLE *)context);
}

static VOID CALLBACK wait_ran(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)context;
    if (result == WAIT_OBJECT_0)
        add(&mixed.taken, 1);
    SetThreadpoolWait(wait, mixed.object[SEMAPHORE], NULL);
}

static void use_group(PTP_CALLBACK_ENVIRON environ, PTP_CLEANUP_GROUP group, HANDLE *done, test_random *random)
{
    PTP_WORK work = CreateThreadpoolWork(work_ran, NULL, environ);
    PTP_TIMER timer = CreateThreadpoolTimer(timer_ran, done, environ);
    PTP_WAIT wait = CreateThreadpoolWait(wait_ran, NULL, environ);
    LARGE_INTEGER due = in_microseconds(200);
    FILETIME when = {due.LowPart, (DWORD)due.HighPart};

    require(work != NULL && timer != NULL && wait != NULL);
    SetThreadpoolTimer(timer, &when, 0, 0);
    SetThreadpoolWait(wait, mixed.object[SEMAPHORE], random_below(random, 2) ? &when : NULL);
    for (int i = 0; i < 4; i++) {
        add(&mixed.submitted, 1);
        SubmitThreadpoolWork(work);
    }
    if (random_below(random, 2))
        require(WaitForSingleObject(*done, INFINITE) == WAIT_OBJECT_0);
    CloseThreadpoolCleanupGroupMembers(group, FALSE, NULL);
    ResetEvent(*done);
}

static void use_pool(unsigned index)
{
    HANDLE done = CreateEventA(NULL, TRUE, FALSE, NULL);
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    PTP_POOL pool = CreateThreadpool(NULL);
    TP_CALLBACK_ENVIRON environ;
    test_random random;

    random_seed(&random, index + 100);
    InitializeThreadpoolEnvironment(&environ);
    SetThreadpoolThreadMaximum(pool, 2);
    if (index % 2)
        SetThreadpoolCallbackPool(&environ, pool);
    SetThreadpoolCallbackCleanupGroup(&environ, group, NULL);
    while (load(&mixed.lives) < mixed.rounds)
        use_group(&environ, group, &done, &random);
    CloseThreadpoolCleanupGroup(group);
    CloseThreadpool(pool);
    require(CloseHandle(done));
}

static void take_part(void *argument, unsigned index)
{
    (void)argument;
    if (index < LIVES)
        keep_many(index);
    else
        use_pool(index - LIVES);
}

static ULONG handle_count(void)
{
    ULONG count = 0;

    require(NtQueryInformationProcess(GetCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL) == 0);
    return count;
}

static void begin(void)
{
    mixed.rounds = test_rounds(5000);
    mixed.object[AUTO_EVENT] = CreateEventA(NULL, FALSE, FALSE, NULL);
    mixed.object[MANUAL_EVENT] = CreateEventA(NULL, TRUE, FALSE, NULL);
    mixed.object[SEMAPHORE] = CreateSemaphoreA(NULL, 0, MAXLONG, NULL);
    mixed.object[MUTEX_0] = CreateMutexA(NULL, FALSE, NULL);
    mixed.object[MUTEX_1] = CreateMutexA(NULL, FALSE, NULL);
    mixed.object[TIMER] = CreateWaitableTimerA(NULL, FALSE, NULL);
    mixed.port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 2);
}

static void end(void)
{
    OVERLAPPED_ENTRY entries[64];
    ULONG count;

    while (WaitForSingleObject(mixed.object[SEMAPHORE], 0) == WAIT_OBJECT_0)
        mixed.taken++;
    while (GetQueuedCompletionStatusEx(mixed.port, entries, ARRAYSIZE(entries), &count, 0, FALSE))
        mixed.removed += count;
    for (unsigned i = MUTEX_0; i <= MUTEX_1; i++) {
        assert_int_not_equal(WaitForSingleObject(mixed.object[i], 0), WAIT_TIMEOUT);
        assert_true(ReleaseMutex(mixed.object[i]));
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_true(CloseHandle(mixed.object[i]));
    assert_true(CloseHandle(mixed.port));
}

static void everything_at_once(void **state)
{
    ULONG handles = handle_count();

    (void)state;
    begin();
    run_threads(LIVES + GROUPS, HANG_SECONDS, take_part, NULL);
    end();
    assert_int_equal(mixed.taken, mixed.released);
    assert_int_equal(mixed.removed, mixed.posted);
    assert_int_equal(mixed.ran, mixed.submitted);
    assert_int_equal(mixed.found_ended, mixed.ended);
    assert_int_equal(handle_count(), handles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once),
    };

    return cmocka_run_group_tests_name("stress/usermixed", tests, NULL, NULL);
}
