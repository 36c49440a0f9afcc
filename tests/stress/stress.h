/*
 * stress.h: what the stress tests share. Assertions of cmocka work in the main thread only, so a violation that another
 * thread finds ends the program: require().
 */
#ifndef INTERLOCK_TESTS_STRESS_H
#define INTERLOCK_TESTS_STRESS_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "ke/wait.h"
#include "support.h"

#define HANG_SECONDS 120

#define require(condition) \
    ((condition) ? (void)0 : stress_fail(#condition, __FILE__, __LINE__))

static inline _Noreturn void stress_fail(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

#define load(place) __atomic_load_n((place), __ATOMIC_SEQ_CST)
#define store(place, value) __atomic_store_n((place), (value), __ATOMIC_SEQ_CST)
#define add(place, value) __atomic_add_fetch((place), (value), __ATOMIC_SEQ_CST)

/* Polls without starving the thread that makes the condition true. */
#define await(condition)   \
    do {                   \
        while (!(condition)) \
            sched_yield(); \
    } while (0)

/* A counter that one thread writes and others read, on a line of its own. */
typedef struct lone_counter {
    unsigned long value __attribute__((aligned(64)));
} lone_counter;

static inline LARGE_INTEGER in_microseconds(LONGLONG microseconds)
{
    LARGE_INTEGER timeout = {.QuadPart = -10 * microseconds};

    return timeout;
}

static inline LARGE_INTEGER no_time(void)
{
    LARGE_INTEGER timeout = {.QuadPart = 0};

    return timeout;
}

/* The host rounds a thread's timeouts up by 50 us by default. */
static inline void want_exact_timeouts(void)
{
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

static inline NTSTATUS wait_for(void *object)
{
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL);
}

static inline NTSTATUS poll_for(void *object)
{
    LARGE_INTEGER timeout = no_time();

    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &timeout);
}

/* Sets a synchronization event; 1 if that made a new signal, 0 if it was already signaled. */
static inline unsigned long signal_once(KEVENT *event)
{
    return KeSetEvent(event, EVENT_INCREMENT, FALSE) == 0;
}

static inline ULONG register_of(PKTHREAD thread)
{
    return load(&thread->WaitRegister);
}

static inline int is_in_wait(PKTHREAD thread, KWAIT_STATE state)
{
    ULONG wait_register = register_of(thread);

    return (wait_register & KI_WAIT_ACTIVE) && (wait_register & KI_WAIT_STATE_MASK) == (ULONG)state;
}

/* The wait that the caller asked a service for, not one for a lock on the way there. The reason is written before the
   wait is committed. */
static inline int is_in_user_request(PKTHREAD thread)
{
    return is_in_wait(thread, WaitCommitted) && load(&thread->WaitReason) == UserRequest;
}

static inline void spin_for(uint32_t rounds)
{
    while (rounds-- != 0)
        YieldProcessor();
}

#endif
