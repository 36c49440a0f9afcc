/* kinds.h: the kinds of dispatcher objects of table 8-27, and what a wait consumes of each. */
#ifndef INTERLOCK_TESTS_KINDS_H
#define INTERLOCK_TESTS_KINDS_H

#include "waittest.h"

#include <interlock/ps.h>

typedef struct test_object {
    union {
        DISPATCHER_HEADER header;
        KEVENT event;
        KGATE gate;
        KSEMAPHORE semaphore;
        KMUTANT mutant;
        KTIMER timer;
        KQUEUE queue;
        KPROCESS process;
    };
    LIST_ENTRY entry;
    actor actor;
} test_object;

typedef struct kind {
    const char *name;
    void (*make)(test_object *o);   /* not signaled */
    void (*signal)(test_object *o); /* by the thread that created it */
    void (*give_back)(PVOID waited_on);  /* by a thread whose wait it has satisfied */
    void (*destroy)(test_object *o);
    BOOLEAN releases_all;
    LONG unsignaled;
    LONG signaled;
    LONG taken; /* the state after one wait */
} kind;

static inline PVOID waitable(const test_object *o)
{
    return o->actor.thread != NULL ? (PVOID)o->actor.thread : (PVOID)&o->header;
}

static inline void make_notification_event(test_object *o)
{
    KeInitializeEvent(&o->event, NotificationEvent, FALSE);
}

static inline void make_synchronization_event(test_object *o)
{
    KeInitializeEvent(&o->event, SynchronizationEvent, FALSE);
}

static inline void set_event(test_object *o)
{
    KeSetEvent(&o->event, EVENT_INCREMENT, FALSE);
}

static inline void make_notification_timer(test_object *o)
{
    KeInitializeTimerEx(&o->timer, NotificationTimer);
}

static inline void make_synchronization_timer(test_object *o)
{
    KeInitializeTimerEx(&o->timer, SynchronizationTimer);
}

static inline void expire_timer(test_object *o)
{
    KeSetTimer(&o->timer, (LARGE_INTEGER){.QuadPart = 1}, NULL); /* the year 1601 */
}

static inline void cancel_timer(test_object *o)
{
    KeCancelTimer(&o->timer);
}

static inline void make_semaphore(test_object *o)
{
    KeInitializeSemaphore(&o->semaphore, 0, 10);
}

static inline void release_semaphore(test_object *o)
{
    KeReleaseSemaphore(&o->semaphore, SEMAPHORE_INCREMENT, 1, FALSE);
}

static inline void make_mutant(test_object *o)
{
    KeInitializeMutant(&o->mutant, TRUE);
}

static inline void make_mutex(test_object *o)
{
    KeInitializeMutex(&o->mutant, 0);
    check(wait_for(&o->mutant, NULL) == STATUS_SUCCESS);
}

static inline void release_mutant(test_object *o)
{
    KeReleaseMutant(&o->mutant, MUTANT_INCREMENT, FALSE, FALSE);
}

static inline void give_mutant_back(PVOID mutant)
{
    KeReleaseMutant(mutant, MUTANT_INCREMENT, FALSE, FALSE);
}

static inline void destroy_mutant(test_object *o)
{
    if (o->mutant.OwnerThread == KeGetCurrentThread()) {
        release_mutant(o);
    }
}

static inline void make_queue(test_object *o)
{
    KeInitializeQueue(&o->queue, 0);
}

static inline void insert_entry(test_object *o)
{
    KeInsertQueue(&o->queue, &o->entry);
}

static inline void run_queue_down(test_object *o)
{
    KeRundownQueue(&o->queue);
}

static inline void make_gate(test_object *o)
{
    KeInitializeGate(&o->gate);
}

static inline void signal_gate(test_object *o)
{
    KeSignalGate(&o->gate);
}

static inline void signal_gate_with_boost(test_object *o)
{
    KeSignalGateBoostPriority(&o->gate);
}

/* A process object ends with its process, so this one is simulated. */
static inline void make_process(test_object *o)
{
    KiInitializeHeader(&o->header, ProcessObject, sizeof(KPROCESS), 0);
}

static inline void end_process(test_object *o)
{
    KiSignalObject(&o->header, 1, 0);
}

static inline void make_thread(test_object *o)
{
    start_actor(&o->actor);
    check(ObReferenceObjectByPointer(o->actor.thread, SYNCHRONIZE, *PsThreadType, KernelMode) == STATUS_SUCCESS);
}

static inline void end_thread(test_object *o)
{
    end_actor(&o->actor);
}

static inline void destroy_thread(test_object *o)
{
    if (state_of(o->actor.thread) == 0) {
        end_thread(o);
    }
    ObDereferenceObject(o->actor.thread);
}

static const kind kinds[] = {
    {"notification event", make_notification_event, set_event, NULL, NULL, TRUE, 0, 1, 1},
    {"synchronization event", make_synchronization_event, set_event, NULL, NULL, FALSE, 0, 1, 0},
    {"notification timer", make_notification_timer, expire_timer, NULL, cancel_timer, TRUE, 0, 1, 1},
    {"synchronization timer", make_synchronization_timer, expire_timer, NULL, cancel_timer, FALSE, 0, 1, 0},
    {"semaphore", make_semaphore, release_semaphore, NULL, NULL, FALSE, 0, 1, 0},
    {"mutant", make_mutant, release_mutant, give_mutant_back, destroy_mutant, FALSE, 0, 1, 0},
    {"mutex", make_mutex, release_mutant, give_mutant_back, destroy_mutant, FALSE, 0, 1, 0},
    {"thread", make_thread, end_thread, NULL, destroy_thread, TRUE, 0, 1, 1},
    {"process", make_process, end_process, NULL, NULL, TRUE, 0, 1, 1},
    {"queue", make_queue, insert_entry, NULL, run_queue_down, TRUE, 0, 1, 1},
    {"gate, signaling", make_gate, signal_gate, NULL, NULL, FALSE, 0, 1, 0},
    {"gate, locking", make_gate, signal_gate_with_boost, NULL, NULL, FALSE, 0, 1, 0},
};

static inline void make_object(const kind *k, test_object *o)
{
    memset(o, 0, sizeof(*o));
    k->make(o);
}

static inline void destroy_object(const kind *k, test_object *o)
{
    if (k->destroy != NULL) {
        k->destroy(o);
    }
}

typedef struct give_back_call {
    const kind *kind;
    PVOID object;
} give_back_call;

static inline void perform_give_back(void *argument)
{
    give_back_call *g = argument;
    g->kind->give_back(g->object);
}

/* Lets the waiter release what its wait acquired. */
static inline void give_back(const kind *k, test_object *o, waiter *w)
{
    if (k->give_back != NULL) {
        give_back_call g = {k, waitable(o)};
        run_on(&w->actor, perform_give_back, &g);
    }
}

#endif
