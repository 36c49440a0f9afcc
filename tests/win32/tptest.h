/* tptest.h: what the tests of the thread pool share. */
#ifndef INTERLOCK_TESTS_TPTEST_H
#define INTERLOCK_TESTS_TPTEST_H

#include "../ke/waittest.h"
#include "rtl/tpp.h"

#include <interlock/win32.h>

#include <sys/wait.h>
#include <unistd.h>

static inline HANDLE make_event(EVENT_TYPE type)
{
    HANDLE event = NULL;
    check(NT_SUCCESS(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, type, FALSE)));
    return event;
}

static inline void set_event(HANDLE event)
{
    check(NT_SUCCESS(NtSetEvent(event, NULL)));
}

static inline void wait_event(HANDLE event)
{
    check(NtWaitForSingleObject(event, FALSE, NULL) == STATUS_WAIT_0);
}

static inline BOOLEAN is_set(HANDLE event)
{
    EVENT_BASIC_INFORMATION information;
    check(NT_SUCCESS(NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL)));
    return information.EventState != 0;
}

static inline ULONG count_of(volatile ULONG *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static inline ULONG add_one(volatile ULONG *counter)
{
    return __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static inline ULONG subtract_one(volatile ULONG *counter)
{
    return __atomic_sub_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static inline PFILETIME in_milliseconds(LONGLONG milliseconds, PFILETIME time)
{
    LARGE_INTEGER due = relative(milliseconds * MILLISECOND);
    time->dwLowDateTime = due.LowPart;
    time->dwHighDateTime = (DWORD)due.HighPart;
    return time;
}

static inline PTP_POOL make_pool(ULONG maximum, PTP_CALLBACK_ENVIRON environment)
{
    PTP_POOL pool = CreateThreadpool(NULL);
    check(pool != NULL);
    SetThreadpoolThreadMaximum(pool, maximum);
    InitializeThreadpoolEnvironment(environment);
    SetThreadpoolCallbackPool(environment, pool);
    return pool;
}

/* The most threads of a pool whose callbacks do not wait; some end late. From here on no tick adds a thread because others
   got no processor on a busy machine. */
static inline ULONG most_threads_without_ticks(PTP_POOL pool)
{
    __atomic_store_n(&TppTickInterval, -3600 * SECOND, __ATOMIC_RELAXED);
    return __atomic_load_n(&pool->Limit, __ATOMIC_RELAXED) + 8;
}

/* A timer without a period has expired: its callback is queued, or has begun. */
static inline BOOLEAN has_expired(PTP_TIMER timer)
{
    return TppHasTimerEnded(timer);
}

/* Reports when a closed object is deleted, and so its last callback is over. */
static inline void note_gone(PVOID gone)
{
    add_one(gone);
}

static inline void watch_object(PTPP_OBJECT object, volatile ULONG *gone)
{
    *gone = 0;
    object->Destroy = note_gone;
    object->DestroyContext = (PVOID)gone;
}

/* Keeps a thread busy until it is opened. */
typedef struct gate {
    HANDLE entered;
    HANDLE opened;
    PTP_WORK work;
} gate;

static inline void gate_pass(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    gate *g = context;
    (void)instance;
    (void)work;
    set_event(g->entered);
    wait_event(g->opened);
}

static inline void gate_start(gate *g, PTP_CALLBACK_ENVIRON environment)
{
    g->entered = make_event(SynchronizationEvent);
    g->opened = make_event(NotificationEvent);
    g->work = CreateThreadpoolWork(gate_pass, g, environment);
    check(g->work != NULL);
    SubmitThreadpoolWork(g->work);
}

/* When this returns, the one thread of the environment's pool is in the gate. */
static inline void gate_block(gate *g, PTP_CALLBACK_ENVIRON environment)
{
    gate_start(g, environment);
    wait_event(g->entered);
}

static inline void gate_close(gate *g)
{
    WaitForThreadpoolWorkCallbacks(g->work, FALSE);
    CloseThreadpoolWork(g->work);
    NtClose(g->entered);
    NtClose(g->opened);
}

/* The exit status of a forked child: 0 if function returned TRUE. Its alarm ends a child that hangs. */
static inline int in_child(BOOLEAN (*function)(void *argument), void *argument)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(TEST_SECONDS);
        _exit(function(argument) ? 0 : 1);
    }
    check(waitpid(child, &status, 0) == child);
    return status;
}

#endif
