/* waittest.h: helpers for tests of waiting, mainly threads that wait on request. */
#ifndef INTERLOCK_TESTS_WAITTEST_H
#define INTERLOCK_TESTS_WAITTEST_H

#include "ke/irql.h"
#include "ke/wait.h"

#include "support.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <interlock/exception.h>

#include "../support/sanitizers.h"

#define MILLISECOND 10000LL
#define SECOND 10000000LL
#define TEST_SECONDS 30

/* cmocka's assertions work only on the test's thread; this one on any. */
#define check(expression) ((expression) ? (void)0 : check_failed(#expression, __FILE__, __LINE__))

static inline void check_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
    abort();
}

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, start_watch, stop_watch)

static inline int start_watch(void **state)
{
    (void)state;
    watchdog_start(TEST_SECONDS);
    return 0;
}

static inline int stop_watch(void **state)
{
    (void)state;
    watchdog_stop();
    return 0;
}

static inline void pause_briefly(void)
{
    static const struct timespec briefly = {.tv_nsec = 20000};
    nanosleep(&briefly, NULL);
}

#define await(condition)                                                                                               \
    do {                                                                                                               \
        while (!(condition)) {                                                                                         \
            pause_briefly();                                                                                           \
        }                                                                                                              \
    } while (0)

static inline LARGE_INTEGER relative(LONGLONG interval)
{
    return (LARGE_INTEGER){.QuadPart = -interval};
}

static inline LARGE_INTEGER absolute(LONGLONG interval)
{
    return (LARGE_INTEGER){.QuadPart = (LONGLONG)HalDispatch.QuerySystemTime() + interval};
}

#define NO_TIME (&(LARGE_INTEGER){.QuadPart = 0})

/* The status that function(argument) raises, or STATUS_SUCCESS. */
static inline NTSTATUS raised_by(void (*function)(void *argument), void *argument)
{
    volatile NTSTATUS status = STATUS_SUCCESS;
    __try {
        function(argument);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        status = GetExceptionCode();
    }
    return status;
}

/* A thread of the host that does one thing after another. */
typedef struct actor {
    PKTHREAD thread;
    void (*function)(void *argument); /* NULL: the thread ends */
    void *argument;
    sem_t told;
    volatile ULONG idle;
    pthread_t host_thread;
} actor;

static inline BOOLEAN is_idle(actor *a)
{
    return __atomic_load_n(&a->idle, __ATOMIC_ACQUIRE) != 0;
}

static inline void *run_actor(void *argument)
{
    actor *a = argument;
    a->thread = KeGetCurrentThread();
    for (;;) {
        __atomic_store_n(&a->idle, 1, __ATOMIC_RELEASE);
        while (sem_wait(&a->told) != 0) {
        }
        if (a->function == NULL) {
            return NULL;
        }
        a->function(a->argument);
    }
}

static inline void start_actor(actor *a)
{
    a->idle = 0;
    check(sem_init(&a->told, 0, 0) == 0);
    check(pthread_create(&a->host_thread, NULL, run_actor, a) == 0);
    await(is_idle(a));
}

static inline void tell(actor *a, void (*function)(void *argument), void *argument)
{
    await(is_idle(a));
    a->idle = 0;
    a->function = function;
    a->argument = argument;
    sem_post(&a->told);
}

static inline void run_on(actor *a, void (*function)(void *argument), void *argument)
{
    tell(a, function, argument);
    await(is_idle(a));
}

static inline void end_actor(actor *a)
{
    tell(a, NULL, NULL);
    check(pthread_join(a->host_thread, NULL) == 0);
    sem_destroy(&a->told);
}

/* A wait as arguments. */
typedef struct wait_call {
    ULONG count; /* 0: KeDelayExecutionThread */
    PVOID object[MAXIMUM_WAIT_OBJECTS];
    BOOLEAN multiple; /* KeWaitForMultipleObjects even for one object */
    BOOLEAN all;
    BOOLEAN alertable;
    KPROCESSOR_MODE mode;
    KWAIT_REASON reason;
    PLARGE_INTEGER timeout;
} wait_call;

static inline NTSTATUS perform(const wait_call *c)
{
    KWAIT_BLOCK blocks[MAXIMUM_WAIT_OBJECTS];
    if (c->count == 0) {
        return KeDelayExecutionThread(c->mode, c->alertable, c->timeout);
    }
    if (c->count == 1 && !c->multiple && !c->all) {
        return KeWaitForSingleObject(c->object[0], c->reason, c->mode, c->alertable, c->timeout);
    }
    NTSTATUS status =
        KeWaitForMultipleObjects(c->count, (PVOID *)c->object, c->all ? WaitAll : WaitAny, c->reason, c->mode,
                                 c->alertable, c->timeout, c->count > THREAD_WAIT_OBJECTS ? blocks : NULL);
    memset(blocks, 0xdd, sizeof(blocks)); /* no thread may access them any more */
    return status;
}

static inline NTSTATUS wait_for(PVOID object, PLARGE_INTEGER timeout)
{
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, timeout);
}

/* TRUE, and the object is as if a wait had been satisfied, if it was signaled. */
static inline BOOLEAN poll_object(PVOID object)
{
    NTSTATUS status = wait_for(object, NO_TIME);
    check(status == STATUS_WAIT_0 || status == STATUS_TIMEOUT);
    return status == STATUS_WAIT_0;
}

/* The state of a thread's wait, or MaximumWaitState outside one. Everything the thread did before is visible. */
static inline ULONG wait_state(PKTHREAD thread)
{
    ULONG wait_register = __atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE);
    return wait_register & KI_WAIT_ACTIVE ? wait_register & KI_WAIT_STATE_MASK : MaximumWaitState;
}

static inline BOOLEAN is_committed(PKTHREAD thread)
{
    return wait_state(thread) == WaitCommitted;
}

/* The thread is in a wait without a timeout. Not seen by TSan: a thread that is about to time out may begin another wait
   and write its deadline meanwhile, and the caller polls. */
__attribute__((no_sanitize_thread)) static inline BOOLEAN waits_without_timeout(PKTHREAD thread)
{
    return is_committed(thread) && ((volatile KTHREAD *)thread)->WaitDeadline.Clock == HalNoDeadline;
}

/* An actor that waits. */
typedef struct waiter {
    actor actor;
    wait_call call;
    NTSTATUS status;
} waiter;

static inline void perform_wait(void *argument)
{
    waiter *w = argument;
    w->status = perform(&w->call);
}

static inline void start_waiters(waiter *w, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        memset(&w[i], 0, sizeof(w[i]));
        start_actor(&w[i].actor);
    }
}

static inline void end_waiters(waiter *w, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        end_actor(&w[i].actor);
    }
}

/* Returns when the wait is committed, so it must not be already satisfied. */
static inline void begin_wait(waiter *w)
{
    tell(&w->actor, perform_wait, w);
    await(is_committed(w->actor.thread));
}

static inline void begin_wait_for(waiter *w, PVOID object)
{
    w->call = (wait_call){.count = 1, .object = {object}};
    begin_wait(w);
}

static inline BOOLEAN still_waits(waiter *w)
{
    return is_committed(w->actor.thread);
}

static inline NTSTATUS end_wait(waiter *w)
{
    await(is_idle(&w->actor));
    return w->status;
}

static inline NTSTATUS wait_on(waiter *w, const wait_call *call)
{
    w->call = *call;
    run_on(&w->actor, perform_wait, w);
    return w->status;
}

static inline ULONG count_waiting(waiter *w, ULONG count)
{
    ULONG waiting = 0;
    for (ULONG i = 0; i < count; i += 1) {
        waiting += still_waits(&w[i]);
    }
    return waiting;
}

/* No block is linked to the object, and its header says so. */
static inline BOOLEAN has_no_waiters(PVOID object)
{
    PDISPATCHER_HEADER header = object;
    ULONG64 word = KiReadSettledHeader(header);
    return !(word & KI_WAITERS) && IsListEmpty(&header->WaitListHead);
}

static inline LONG state_of(PVOID object)
{
    return KI_STATE(KiReadSettledHeader(object));
}

static inline LONG priority_of(PKTHREAD thread)
{
    return KiBoostedPriority(thread);
}

#endif
