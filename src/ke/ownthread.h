/*
 * ownthread.h: the threads that the library runs for itself. This is the only place that creates them, and the only
 * place that handles a host that refuses one.
 *
 *   kind       what the thread does              wanted by                          without it
 *   clock      expires timers                    the first timer that is set        threads that wait do it, every tick
 *   idle       owns processor n to run its work  work on a processor without owner  the thread that left the work does it
 *   dpc        runs threaded DPCs                the first threaded DPC             they run as normal DPCs
 *   reap       runs down terminated threads      TerminateThread                    the call fails
 *   again      repeats interrupts put off        SuspendThread, if the host      the thread stops where it is
 *                                                has no timers
 *   io, guard  watch descriptors                 the first descriptor               the call fails
 *   world      guards processes, serves others    the first shared name              the call fails
 *   pool       runs callbacks of a pool          its first object                   the call fails; later ones: see work
 *   mem        watches the host's memory         the first notification             the call fails
 *   console    takes signals as console events   the first handler                  the call fails
 *   work       runs work items                   the first work item                they stay queued
 *
 * (The pacer of hal/clock.c is the host layer's own: the clock starts it, and runs without it if the host refuses.)
 *
 * 1. No thread is created in a dispatcher section, because that takes memory. An allocator may lock its heap over a fork, and
 *    the fork waits until no thread is in a section: a section that waits for the heap would deadlock. No thread is created at
 *    IPI_LEVEL, or in a host interrupt, which may have interrupted the allocator.
 * 2. An operation that can fail calls KiEnsureOwnThread before it changes anything, and fails with the status.
 * 3. An operation that cannot fail calls KiRequestOwnThread, anywhere. The thread is created at once where rule 1
 *    permits. Otherwise the record is marked Wanted and KI_WAIT_THREAD_WANTED is set in the caller's wait register:
 *    the caller creates the thread when it leaves the section or lowers its level (KiDeliverApc), and so before the
 *    public function returns.
 * 4. If the host refuses, the caller serves the request itself when it is below DISPATCH_LEVEL (Serve). If that is not enough,
 *    the request stays Wanted, and the clock retries it every tick of NT's clock (15.6 ms). Without a clock, every thread that
 *    waits in the library does the clock's work. A pool's own timer retries for the pool.
 * 5. A forked child has none of these threads. Its handler starts none (the allocator's handlers may not have run), but
 *    requests what inherited work needs; hal calls back after the allocator's handlers (KiForkChildLate).
 */
#ifndef INTERLOCK_OWNTHREAD_H
#define INTERLOCK_OWNTHREAD_H

#include <interlock/ke.h>

#include "../hal/hal.h"

#define KI_OWN_THREAD_STACK (256 * 1024)

/* KTHREAD.OwnThreadUse, against recursion. */
#define KI_SERVING_REQUESTS 1
#define KI_CREATION_FORBIDDEN 2 /* it is already creating one, or is in the fork handler of a child */

typedef struct _KI_OWN_KIND {
    PCSTR Name;                    /* begins with "interlock-", which the lab relies on */
    VOID (*Routine)(PVOID Context);
    /* Rule 4. HasThread: the requested thread runs, wake it. Otherwise do its work; FALSE: keep the request. NULL:
       nothing to wake, and the work has to wait. */
    BOOLEAN (*Serve)(PVOID Context, BOOLEAN HasThread);
    SIZE_T StackSize;              /* 0: the host's default */
    BOOLEAN Many;                  /* every request is for one more thread */
} KI_OWN_KIND;

/* A single thread, or a place that requests threads. It lives as long as the process. */
typedef struct _KI_OWN_THREAD {
    const KI_OWN_KIND *Kind;
    PVOID Context;
    volatile ULONG State;          /* KI_OWN_STATE */
    volatile ULONG Wanted;         /* KI_OWN_WANT */
    volatile ULONG Listed;         /* in KiOwnThreads */
    struct _KI_OWN_THREAD *Next;
} KI_OWN_THREAD, *PKI_OWN_THREAD;

typedef enum _KI_OWN_STATE {
    KiOwnThreadAbsent,
    KiOwnThreadStarting,
    KiOwnThreadRunning
} KI_OWN_STATE;

typedef enum _KI_OWN_WANT {
    KiThreadNotWanted,
    KiThreadWanted,
    KiThreadRefused                /* wanted, but the host has refused it: retried at the next tick, or at a lower
                                      level */
} KI_OWN_WANT;

/* acquire: pairs with the release in KiEnsureOwnThread */
FORCEINLINE BOOLEAN KiHasOwnThread(PKI_OWN_THREAD Own)
{
    return __atomic_load_n(&Own->State, __ATOMIC_ACQUIRE) == KiOwnThreadRunning;
}

/* STATUS_INSUFFICIENT_RESOURCES, STATUS_NO_MEMORY: the host refuses, or rule 1 forbids it. */
NTSTATUS KiEnsureOwnThread(PKI_OWN_THREAD Own);
VOID KiRequestOwnThread(struct _KTHREAD *Thread, PKI_OWN_THREAD Own);
/* One of several threads of a kind, which the caller counts. StackSize: overrides the kind's, unless 0. */
NTSTATUS KiCreateOwnThread(const KI_OWN_KIND *Kind, PVOID Context, SIZE_T StackSize);

VOID KiStartWantedThreads(struct _KTHREAD *Thread);     /* rules 3 and 4; does nothing where rule 1 forbids it */
BOOLEAN KiRetryRefusedThreads(struct _KTHREAD *Thread); /* by the clock. TRUE: again at the next tick */
VOID KiOwnThreadForkChild(VOID);

#endif
