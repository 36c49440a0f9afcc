/* exp.h: the executive's private structures and functions. */
#ifndef INTERLOCK_EXP_H
#define INTERLOCK_EXP_H

#include <interlock/ex.h>

#include "../ke/timer.h"

/* A thread's room: theory in resourceowner.c. */
typedef struct _EXP_THREAD {
    PVOID ResourceOwner;                   /* hint: the owner record that the thread linked last */
    ULONG ResourceOwners;                  /* records and entries that name the thread: those it made itself, and */
    volatile ULONG ResourceOwnersByOthers; /* those that others made for it */
} EXP_THREAD, *PEXP_THREAD;

typedef struct _EXP_THREAD_KEPT {
    PVOID SpareOwner;                      /* an owner record, for the next acquire that needs one */
} EXP_THREAD_KEPT, *PEXP_THREAD_KEPT;

KI_THREAD_ROOM(EXP_THREAD, Ex, ExpThread);
KI_THREAD_ROOM(EXP_THREAD_KEPT, ExKept, ExpThreadKept);

/*
 * A timer of the executive is a kernel timer with a DPC that calls back, and with a life that ends by ExDeleteTimer.
 * Its state is in byte 1 of the header (KI_TIMER2_), and like Running is changed under the object's lock.
 *
 * 1. Disabled is set once, by ExDeleteTimer, and from then on the timer is not set any more.
 * 2. Three things keep a disabled timer alive: it is in a table (Inserted), its DPC is queued (Expiring), a callback
 *    runs (Running). A timer that is Expiring is not queued a second time: what expires meanwhile is the same callback.
 * 3. Whoever takes away the last of the three, or finds none of them when it disables the timer, ends its life. Nothing
 *    can bring one of them back, so there is exactly one.
 */
typedef struct _EX_TIMER {
    KTIMER Timer;
    KDPC Dpc;
    PEXT_CALLBACK Callback;
    PVOID CallbackContext;
    ULONG Attributes;
    ULONG Running;       /* callbacks that are active */
    PKEVENT DeleteEvent; /* set in place of ending the timer's life: somebody waits who will */
    PEXT_DELETE_CALLBACK DeleteCallback;
    PVOID DeleteContext;
} EX_TIMER;

#endif
