/*
 * thread.c: pthread_create to pthread_exit, cancellation, and thread-specific data. Cancellation is deferred: a thread
 * checks at its cancellation points whether it was cancelled. These checks are steps only in programs that cancel.
 */
#include "posix.h"

#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

struct lab_posix_exit { /* of a thread_local variable */
    void (*destructor)(void *);
    void *object;
    struct lab_posix_exit *next;
};

/* The buffer of pthread_cleanup_push in C, as the C library's header declares it. */
typedef struct cleanup_buffer {
    struct {
        __jmp_buf registers;
        int mask_was_saved;
    } jump;
    struct cleanup_buffer *outer;
} cleanup_buffer;

#define NO_THREAD MAX_THREADS
#pragma weak _Unwind_ForcedUnwind
#pragma weak _Unwind_GetCFA

int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library);

static struct {
    bool is_used;
    void (*destructor)(void *);
} keys[LAB_POSIX_KEYS];

static struct _Unwind_Exception unwinding[MAX_THREADS];

/* Threads are numbered from 1, as pthread_t: 0 is no thread. */

pthread_t pthread_self(void)
{
    return lab_posix_self() + 1;
}

int pthread_equal(pthread_t a, pthread_t b)
{
    return a == b;
}

static uint32_t number_of(pthread_t thread)
{
    return lab != NULL && thread >= 1 && thread <= lab->run.thread_count ? (uint32_t)thread - 1 : NO_THREAD;
}

/* The life of an id ends when the thread was joined, or is detached and has ended. */
static uint32_t living(pthread_t thread, const char *call, uintptr_t pc)
{
    uint32_t number = number_of(thread);

    if (number == NO_THREAD)
        return NO_THREAD;
    const lab_posix_thread *p = &lab_posix_threads[number];
    if (p->joined || (p->detached && lab->run.threads[number].state == THREAD_DONE))
        lab_sched_fail(VERDICT_MISUSE, pc, "%s: thread %c %s, so its id is no longer valid", call, 'a' + (int)number,
                       p->joined ? "was joined" : "was detached and has ended");
    return number;
}

static void run_thread(void *argument)
{
    lab_posix_thread *p = argument;

    lab_thread_begin_own_function(__builtin_frame_address(0));
    lab_posix_end_thread(p->start(p->argument));
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int detached = PTHREAD_CREATE_JOINABLE;

    if (lab == NULL || (!lab->running && !lab->preparing))
        lab_posix_unsupported("pthread_create", CALLER);
    if (lab_explore_memory_runs_out())
        return EAGAIN;
    if (attributes != NULL)
        pthread_attr_getdetachstate(attributes, &detached);
    if (lab->run.thread_count == MAX_THREADS)
        lab_sched_fail(VERDICT_UNSUPPORTED, CALLER, "more than %d threads", MAX_THREADS);
    lab_posix_thread *p = &lab_posix_threads[lab->run.thread_count];
    lab_thread *t = lab_thread_spawn(run_thread, p, NULL, false);
    p = &lab_posix_threads[t->number]; /* others may have made theirs before the step */
    t->argument = p;
    *p = (lab_posix_thread){
        .is_made = true,
        .detached = detached == PTHREAD_CREATE_DETACHED,
        .start = start,
        .argument = argument,
    };
    t->entry = (uintptr_t)start;
    t->runs_exit = true;
    if (lab->tracing && lab->event_count != 0 && lab->events[lab->event_count - 1].kind == OP_SPAWN)
        lab->events[lab->event_count - 1].pc = CALLER;
    lab_posix_overwrite(thread, sizeof(*thread), CALLER); /* the new thread may run before that */
    *thread = t->number + 1u;
    lab_cycle_sweep();
    return 0;
}

/* The end of a thread. */

static void run_exits(lab_posix_thread *p)
{
    while (p->exits != NULL) {
        struct lab_posix_exit *e = p->exits;
        p->exits = e->next;
        e->destructor(e->object);
        lab_memory_free(e, 0);
    }
}

static void run_key_destructors(lab_posix_thread *p)
{
    bool any = true;

    for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && any; round++) {
        any = false;
        for (uint32_t i = 0; i < LAB_POSIX_KEYS; i++) {
            void *value = (void *)(uintptr_t)p->keys[i];

            if (value == NULL || !keys[i].is_used)
                continue;
            p->keys[i] = NULL;
            if (keys[i].destructor != NULL) {
                keys[i].destructor(value);
                any = true;
            }
        }
    }
}

static void end_now(lab_posix_thread *p)
{
    p->cancel_disabled = true;
    run_exits(p);
    run_key_destructors(p);
    while (p->robust != NULL) {
        pthread_mutex_t *mutex = p->robust;
        p->robust = *(pthread_mutex_t **)((char *)mutex + 24);
        lab_posix_mutex_owner_died(mutex);
    }
    lab_atomic_give(lab->current, lab_posix_exit_cell(p), false);
    lab_thread_exit();
}

void lab_posix_end_thread(void *result)
{
    lab_posix_thread *p = &lab_posix_threads[lab->current->number];

    p->result = result;
    end_now(p);
    __builtin_unreachable();
}

static void jump_to_cleanup(lab_posix_thread *p)
{
    cleanup_buffer *buffer = p->cleanup;

    void *jump = &buffer->jump; /* the beginning of a jmp_buf, without the mask of signals */

    __asm__("" : "+r"(jump));
    longjmp((struct __jmp_buf_tag *)jump, 1);
}

static _Unwind_Reason_Code stop_at_frame(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                         struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *argument)
{
    lab_posix_thread *p = argument;

    (void)version;
    (void)class;
    (void)exception;
    if (p->cleanup != NULL && ((uintptr_t)p->cleanup < _Unwind_GetCFA(context) || (actions & _UA_END_OF_STACK)))
        jump_to_cleanup(p);
    if (actions & _UA_END_OF_STACK)
        end_now(p);
    return _URC_NO_REASON;
}

/* Runs the handlers of pthread_cleanup_push and, in C++, the destructors of the frames. */
static void __attribute__((noreturn)) unwind(lab_posix_thread *p)
{
    struct _Unwind_Exception *exception = &unwinding[lab->current->number];

    p->exiting = true;
    p->cancel_disabled = true;
    if (_Unwind_ForcedUnwind != NULL) {
        memset(exception, 0, sizeof(*exception));
        _Unwind_ForcedUnwind(exception, stop_at_frame, p);
    }
    if (p->cleanup != NULL)
        jump_to_cleanup(p);
    end_now(p);
    __builtin_unreachable();
}

void pthread_exit(void *result)
{
    if (!lab_sched_active())
        lab_posix_unsupported("pthread_exit", CALLER);
    lab_posix_threads[lab->current->number].result = result;
    unwind(&lab_posix_threads[lab->current->number]);
}

void __pthread_register_cancel(__pthread_unwind_buf_t *buffer)
{
    cleanup_buffer *b = (cleanup_buffer *)(void *)buffer;

    if (lab->current == NULL)
        return;
    b->outer = lab_posix_threads[lab->current->number].cleanup;
    lab_posix_threads[lab->current->number].cleanup = b;
}

void __pthread_unregister_cancel(__pthread_unwind_buf_t *buffer)
{
    if (lab->current != NULL)
        lab_posix_threads[lab->current->number].cleanup = ((cleanup_buffer *)(void *)buffer)->outer;
}

void __pthread_unwind_next(__pthread_unwind_buf_t *buffer)
{
    lab_posix_thread *p = &lab_posix_threads[lab->current->number];

    p->cleanup = ((cleanup_buffer *)(void *)buffer)->outer;
    unwind(p);
}

int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library)
{
    (void)library;
    if (lab == NULL || lab->current == NULL)
        return 0; /* of the thread that never ends: the explorer's */
    struct lab_posix_exit *e = lab_memory_allocate(sizeof(*e), 0, (uintptr_t)__builtin_return_address(0));
    lab_posix_thread *p = &lab_posix_threads[lab->current->number];
    *e = (struct lab_posix_exit){destructor, object, p->exits};
    p->exits = e;
    return 0;
}

/* Runs the exit functions of the thread that ends the process. */
void lab_posix_run_exits(void)
{
    run_exits(&lab_posix_threads[lab->current->number]);
}

/* Joining. */

static bool has_ended(const lab_thread *t)
{
    return lab->run.threads[t->joined].state == THREAD_DONE || lab_posix_is_cancelled(t);
}

static void describe_join(const lab_thread *t, char *buffer, size_t size)
{
    snprintf(buffer, size, "waits for the end of %c", (char)('a' + t->joined));
}

static const lab_gate join_gate = {has_ended, describe_join};

static bool waits_for(uint32_t waiter, uint32_t target)
{
    const lab_thread *t = &lab->run.threads[waiter];
    return t->gate == &join_gate && t->joined == target;
}

static int refuse_join(uint32_t target)
{
    if (target == NO_THREAD)
        return ESRCH;
    if (lab_posix_threads[target].detached)
        return EINVAL;
    if (target == lab->current->number || waits_for(target, lab->current->number))
        return EDEADLK;
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (i != lab->current->number && waits_for(i, target))
            return EINVAL;
    return 0;
}

static void take_result(lab_thread *t, uint32_t target, void **result)
{
    lab_posix_thread *p = &lab_posix_threads[target];

    lab_clock_join(&t->sync, &lab->run.threads[target].sync);
    lab_atomic_take(t, lab_posix_exit_cell(p));
    lab_clock_join(&t->dep, &lab->run.threads[target].dep);
    lab->steps[t->last_step].dep = t->dep;
    p->joined = true;
    if (result != NULL)
        *result = p->result;
}

static int join(pthread_t thread, void **result, uint64_t deadline, bool tries, const char *call, uintptr_t pc)
{
    uint32_t target = living(thread, call, pc);

    if (!lab_sched_active())
        lab_posix_cannot_block(call, pc);
    int refused = refuse_join(target);
    if (refused != 0)
        return refused;
    lab_thread *t = lab->current;
    uint32_t ended = lab_thread_end_cell(&lab->run.threads[target]);
    lab_posix_test_cancel(t, pc);
    lab_posix_announce(NULL, pc);
    t->joined = (uint8_t)target;
    lab_posix_access_cancel(t);
    if (deadline != 0 || tries)
        lab_step_access(t, ended, false);
    if (deadline != 0)
        lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    if (tries)
        lab_sched_point(t);
    bool passed = tries ? has_ended(t) : lab_gate_pass(t, &join_gate, deadline);
    lab_step_make(t, t->op.accesses, t->op.access);
    if (!passed) {
        lab_report_call(call, 0, tries ? EBUSY : ETIMEDOUT, true, pc);
        return tries ? EBUSY : ETIMEDOUT;
    }
    if (lab->run.threads[target].state != THREAD_DONE)
        lab_posix_test_cancel(t, pc);
    take_result(t, target, result);
    lab_report_event(OP_JOIN, 0, 0, 0, 0, target, false, pc);
    lab_cycle_sweep();
    return 0;
}

int pthread_join(pthread_t thread, void **result)
{
    return join(thread, result, 0, false, "pthread_join", CALLER);
}

int pthread_tryjoin_np(pthread_t thread, void **result)
{
    return join(thread, result, 0, true, "pthread_tryjoin_np", CALLER);
}

int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *time)
{
    uint64_t deadline;

    if (!lab_posix_deadline(clock, time, &deadline))
        return EINVAL;
    return join(thread, result, deadline, false, "pthread_clockjoin_np", CALLER);
}

int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *time)
{
    uint64_t deadline;

    if (!lab_posix_deadline(CLOCK_REALTIME, time, &deadline))
        return EINVAL;
    return join(thread, result, deadline, false, "pthread_timedjoin_np", CALLER);
}

int pthread_detach(pthread_t thread)
{
    uint32_t target = living(thread, "pthread_detach", CALLER);

    if (target == NO_THREAD)
        return ESRCH;
    if (lab_posix_threads[target].detached)
        return EINVAL;
    lab_posix_threads[target].detached = true;
    return 0;
}

/* Cancellation. */

static uint32_t cancel_cell(uint32_t number)
{
    return lab_cell_queue((uintptr_t)&lab_posix_threads[number].cancel_pending);
}

uint32_t lab_posix_cancels(void)
{
    return lab_cell_queue((uintptr_t)lab_posix_threads);
}

bool lab_posix_is_cancelled(const lab_thread *t)
{
    const lab_posix_thread *p = &lab_posix_threads[t->number];
    return p->cancel_pending && !p->cancel_disabled;
}

void lab_posix_access_cancel(lab_thread *t)
{
    if (lab->uses_cancellation && !lab_posix_threads[t->number].cancel_disabled)
        lab_step_access(t, cancel_cell(t->number), false);
}

/* A wait that has ended for another reason may return before it notices. */
static bool notices(const lab_posix_thread *p)
{
    return p->cancel_pending && (p->woken_by != WOKEN_BESIDES || lab_explore_choose(2) == 0);
}

void lab_posix_test_cancel(lab_thread *t, uintptr_t pc)
{
    lab_posix_thread *p = &lab_posix_threads[t->number];

    if (!lab->uses_cancellation || p->cancel_disabled)
        return;
    lab_posix_touch(NULL, cancel_cell(t->number), false, NULL, pc);
    if (!notices(p))
        return;
    lab_atomic_take(t, cancel_cell(t->number));
    lab_report_call("is cancelled", 0, 0, false, pc);
    p->result = PTHREAD_CANCELED;
    unwind(p);
}

int pthread_cancel(pthread_t thread)
{
    uint32_t target = number_of(thread);

    if (target == NO_THREAD)
        return ESRCH;
    if (!lab->uses_cancellation) {
        lab->uses_cancellation = true;
        lab->cells_changed = true; /* the search starts over */
    }
    lab_thread *self = lab_posix_announce(NULL, CALLER);
    lab_step_access(self, cancel_cell(target), true);
    lab_step_access(self, lab_posix_cancels(), true);
    lab_step_access(self, lab_thread_end_cell(&lab->run.threads[target]), false);
    lab_sched_point(self);
    living(thread, "pthread_cancel", CALLER);
    lab_step_make(self, lab_posix_threads[target].detached ? 3 : 2, self->op.access);
    lab_report_call("pthread_cancel", 0, 0, false, CALLER);
    lab_atomic_give(self, cancel_cell(target), true);
    lab_thread *t = &lab->run.threads[target];
    if (lab_posix_threads[target].cancel_pending || t->state == THREAD_DONE)
        return 0;
    lab_posix_threads[target].cancel_pending = true;
    if (t->gate != NULL && lab_posix_is_cancelled(t)) {
        lab_clock_join(&t->dep, &self->dep);
        lab_posix_condition_cancel(t);
    }
    lab_cycle_sweep();
    return 0;
}

void pthread_testcancel(void)
{
    if (lab_sched_active())
        lab_posix_test_cancel(lab->current, CALLER);
}

int pthread_setcancelstate(int state, int *old)
{
    lab_posix_thread *p = lab_posix_self() < MAX_THREADS ? &lab_posix_threads[lab_posix_self()] : NULL;

    if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE)
        return EINVAL;
    if (old != NULL)
        *old = p != NULL && p->cancel_disabled ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
    if (p != NULL && !p->exiting)
        p->cancel_disabled = state == PTHREAD_CANCEL_DISABLE;
    return 0;
}

int pthread_setcanceltype(int type, int *old)
{
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        lab_posix_unsupported("pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS)", CALLER);
    if (type != PTHREAD_CANCEL_DEFERRED)
        return EINVAL;
    if (old != NULL)
        *old = PTHREAD_CANCEL_DEFERRED;
    return 0;
}

/* Thread-specific data. Before the first schedule it belongs to no thread. */

static const void *values_of_nobody[LAB_POSIX_KEYS];

static const void **values(void)
{
    return lab_posix_self() < MAX_THREADS ? lab_posix_threads[lab_posix_self()].keys : values_of_nobody;
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    for (uint32_t i = 0; i < LAB_POSIX_KEYS; i++) {
        if (keys[i].is_used)
            continue;
        keys[i].is_used = true;
        keys[i].destructor = destructor;
        for (uint32_t thread = 0; thread < MAX_THREADS; thread++)
            lab_posix_threads[thread].keys[i] = NULL;
        *key = i;
        return 0;
    }
    return EAGAIN;
}

int pthread_key_delete(pthread_key_t key)
{
    if (key >= LAB_POSIX_KEYS || !keys[key].is_used)
        return EINVAL;
    keys[key].is_used = false;
    return 0;
}

void *pthread_getspecific(pthread_key_t key)
{
    return key < LAB_POSIX_KEYS && keys[key].is_used ? (void *)(uintptr_t)values()[key] : NULL;
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
    if (key >= LAB_POSIX_KEYS || !keys[key].is_used)
        return EINVAL;
    values()[key] = value;
    return 0;
}

/* Names, and what the machine does not have: signals between threads, priorities, affinities. */

int pthread_setname_np(pthread_t thread, const char *name)
{
    uint32_t number = number_of(thread);

    if (number == NO_THREAD)
        return ESRCH;
    if (strlen(name) >= sizeof(lab_posix_threads[number].name))
        return ERANGE;
    strcpy(lab_posix_threads[number].name, name);
    lab->run.threads[number].name = lab_posix_threads[number].name;
    return 0;
}

int pthread_getname_np(pthread_t thread, char *buffer, size_t size)
{
    uint32_t number = number_of(thread);

    if (number == NO_THREAD)
        return ESRCH;
    if (size <= strlen(lab_posix_threads[number].name))
        return ERANGE;
    strcpy(buffer, lab_posix_threads[number].name);
    return 0;
}

int pthread_kill(pthread_t thread, int signal)
{
    if (living(thread, "pthread_kill", CALLER) == NO_THREAD)
        return ESRCH;
    if (signal != 0)
        lab_posix_unsupported("pthread_kill", CALLER);
    return 0;
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    uint32_t number = number_of(thread);

    pthread_attr_init(attributes);
    if (number != NO_THREAD)
        pthread_attr_setstack(attributes, lab->stacks + number * (size_t)STACK_SIZE, STACK_SIZE);
    return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
    (void)thread;
    (void)size;
    (void)set;
    return 0;
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
    (void)thread;
    return sched_getaffinity(0, size, set) == 0 ? 0 : errno;
}

int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters)
{
    (void)thread;
    (void)policy;
    (void)parameters;
    return 0;
}

int pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *parameters)
{
    (void)thread;
    *policy = SCHED_OTHER;
    parameters->sched_priority = 0;
    return 0;
}

int pthread_setschedprio(pthread_t thread, int priority)
{
    (void)thread;
    (void)priority;
    return 0;
}

int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
    (void)thread;
    *clock = CLOCK_MONOTONIC;
    return 0;
}
