/*
 * posix.h: what the files of lab/posix share. They define the functions with which a program makes and synchronizes
 * threads (pthreads, C11 threads, semaphores, futexes, clocks), so that each call is a step of the explorer. The
 * definitions are in the executable, before the C library's and for every library of the process.
 *
 * One call is one step. A call that may block waits at a gate (engine.h), so a schedule never contains a failed attempt.
 * For each object there are three cells (engine.h):
 * - Entry: written by what takes the object (lock, wait of a semaphore). Two such steps do not commute.
 * - Exit: written by what releases it (unlock, post). It orders the enabled step after it; but that step could not have
 *   come earlier, so the two need not be tried in the other order (lab_step_follow).
 * - Readers: written by the releases of shared owners. An attempt that does not block (trylock, timed) reads both.
 *
 * The state of an object is in its own memory, which the explorer restores before every schedule.
 */
#ifndef LAB_POSIX_H
#define LAB_POSIX_H

#include "../engine/engine.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define CALLER ((uintptr_t)__builtin_return_address(0))

/* Unix time at the explorer's time 0: 2021-01-01, in units of 100 ns. */
#define LAB_POSIX_EPOCH (1609459200ull * 10000000)
#define LAB_POSIX_KEYS  128

/*
 * A thread that is cancelled does not consume a signal that another waiter could have got. So one that got the signal
 * instead of another returns; that the other one gets it, and this one is cancelled, are other schedules.
 */
typedef enum lab_posix_wake {
    WOKEN_BY_CANCEL,
    WOKEN_BESIDES, /* by a signal for all that waited, a timeout, or spuriously: the thread may return, or be cancelled */
    WOKEN_INSTEAD  /* of another waiter: the thread returns */
} lab_posix_wake;

typedef struct lab_posix_thread {
    bool is_made;  /* by pthread_create */
    bool detached;
    bool joined;
    bool ended;
    bool cancel_pending;
    bool cancel_disabled;
    bool exiting;
    bool signaled; /* its wait for a condition was ended by another thread */
    uint8_t woken_by; /* lab_posix_wake: what ended its wait for a condition */
    uintptr_t condition; /* that it waits for; 0: none */
    void *(*start)(void *);
    void *argument;
    void *result;
    void *cleanup;            /* __pthread_unwind_buf_t, the innermost first */
    struct lab_posix_exit *exits; /* destructors of thread_local variables */
    pthread_mutex_t *robust;  /* the robust mutexes that it owns; linked by their own memory */
    const void *keys[LAB_POSIX_KEYS];
    char name[16];
} lab_posix_thread;

extern lab_posix_thread lab_posix_threads[MAX_THREADS];

/* The thread that calls, as a number: MAX_THREADS outside the threads of a schedule. */
uint32_t lab_posix_self(void);

static inline uint32_t lab_posix_entry(const volatile void *object)
{
    return lab_cell_queue((uintptr_t)object + 1);
}

static inline uint32_t lab_posix_exit_cell(const volatile void *object)
{
    return lab_cell_queue((uintptr_t)object + 2);
}

static inline uint32_t lab_posix_readers(const volatile void *object)
{
    return lab_cell_queue((uintptr_t)object + 3);
}

/* Announces a call on an object, a step without accesses as yet. */
lab_thread *lab_posix_announce(const volatile void *object, uintptr_t pc);
/* A complete step that takes nothing and may be observed at the object. */
void lab_posix_touch(const volatile void *object, uint32_t cell, bool write, const char *call, uintptr_t pc);
/* The object's memory is initialized or destroyed: a plain write to all of it. */
void lab_posix_overwrite(void *object, size_t size, uintptr_t pc);
/* The gate is closed and no schedule runs, so it never opens. */
void lab_posix_cannot_block(const char *call, uintptr_t pc) __attribute__((noreturn));
void lab_posix_misuse(const char *call, const volatile void *object, const char *what, uintptr_t pc)
    __attribute__((noreturn));
void lab_posix_unsupported(const char *call, uintptr_t pc) __attribute__((noreturn));

/* An absolute time as a deadline; 0: never. FALSE: not a time. */
bool lab_posix_deadline(clockid_t clock, const struct timespec *time, uint64_t *deadline);

/* Cancellation: before and after a call that is a cancellation point. */
bool lab_posix_is_cancelled(const lab_thread *t);
void lab_posix_test_cancel(lab_thread *t, uintptr_t pc);
uint32_t lab_posix_cancels(void); /* a cell: written by every pthread_cancel */
void lab_posix_access_cancel(lab_thread *t); /* the announced step checks whether t was cancelled */
void lab_posix_end_thread(void *result) __attribute__((noreturn));

/* mutex.c, for condition variables */
int lab_posix_mutex_leave(pthread_mutex_t *mutex, const char *call, uintptr_t pc); /* no step: the caller's */
bool lab_posix_mutex_is_free(const pthread_mutex_t *mutex);
int lab_posix_mutex_enter(pthread_mutex_t *mutex, const char *call, uintptr_t pc); /* the step was made */
void lab_posix_mutex_owner_died(pthread_mutex_t *mutex);
/* condition.c */
void lab_posix_condition_cancel(lab_thread *t);
/* thread.c: the destructors of the calling thread's thread_local variables */
void lab_posix_run_exits(void);
void lab_posix_describe_mutex(const lab_thread *t, const pthread_mutex_t *mutex, char *buffer, size_t size);

#endif
