/*
 * condition.c: pthread_cond_t. A wait has two steps. The first releases the mutex and queues the thread. The second
 * returns with the mutex, once the thread was signaled and the mutex is free. A timeout is a step between the two.
 * Which waiter a signal wakes is a choice, and so is a spurious wakeup, while the scenario allows any. A signal
 * synchronizes nothing; the mutex does.
 */
#include "posix.h"

#include <stdio.h>
#include <string.h>

#define DESTROYED 0xdeadu

typedef struct condition_state {
    uint32_t clock; /* CLOCK_REALTIME is 0, as an initializer leaves it */
    uint32_t destroyed;
} condition_state;

static pthread_mutex_t *mutexes[MAX_THREADS]; /* with which each thread waits */

static bool is_open(const lab_thread *t)
{
    return lab_posix_threads[t->number].signaled && lab_posix_mutex_is_free(mutexes[t->number]);
}

static void describe(const lab_thread *t, char *buffer, size_t size)
{
    const lab_posix_thread *p = &lab_posix_threads[t->number];

    if (p->signaled)
        lab_posix_describe_mutex(t, mutexes[t->number], buffer, size);
    else
        snprintf(buffer, size, "waits for a signal of the condition variable $%lx$", p->condition);
}

static const lab_gate condition_gate = {is_open, describe};

static void check(const pthread_cond_t *condition, const char *call, uintptr_t pc)
{
    if (lab_sched_active())
        lab_race_access((uintptr_t)condition, sizeof(int), true, true, pc);
    if (((const condition_state *)condition)->destroyed == DESTROYED)
        lab_posix_misuse(call, condition, "the condition variable was destroyed", pc);
}

/* From here on it waits for its mutex alone. */
static void wake(lab_thread *t, lab_posix_wake reason)
{
    lab_posix_threads[t->number].signaled = true;
    lab_posix_threads[t->number].woken_by = reason;
    t->deadline = 0;
    lab_step_announce(t, OP_CALL, (uintptr_t)mutexes[t->number], t->op.pc);
    lab_step_access(t, lab_posix_entry(mutexes[t->number]), true);
    lab_clock_join(&t->dep, &lab->current->dep);
}

void lab_posix_condition_cancel(lab_thread *t)
{
    if (lab_posix_threads[t->number].condition != 0 && !lab_posix_threads[t->number].signaled)
        wake(t, WOKEN_BY_CANCEL);
}

static int come_back(lab_thread *t, pthread_mutex_t *mutex, uintptr_t pc)
{
    lab_step_make(t, 1, t->op.access);
    lab_step_follow(t, lab_posix_exit_cell(mutex), false);
    return lab_posix_mutex_enter(mutex, NULL, pc);
}

static void queue(lab_thread *t, pthread_cond_t *condition, pthread_mutex_t *mutex, const char *call, uintptr_t pc)
{
    lab_posix_thread *p = &lab_posix_threads[t->number];

    lab_posix_announce(condition, pc);
    lab_step_access(t, lab_posix_entry(condition), true);
    lab_step_access(t, lab_posix_exit_cell(mutex), true);
    lab_posix_access_cancel(t);
    lab_sched_point(t);
    check(condition, call, pc);
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_report_call(call, (uintptr_t)condition, 0, false, pc);
    p->condition = (uintptr_t)condition;
    p->signaled = lab_posix_is_cancelled(t);
    p->woken_by = p->signaled ? WOKEN_BY_CANCEL : WOKEN_BESIDES;
    mutexes[t->number] = mutex;
    lab_posix_mutex_leave(mutex, call, pc);
    if (!p->signaled && lab->run.spurious != 0 && lab_explore_choose(2) == 1) {
        lab->run.spurious--;
        lab_report_event(OP_RESUME, (uintptr_t)condition, 4, 0, 0, 0, true, pc);
        p->signaled = true;
    }
}

static int wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline, const char *call, uintptr_t pc)
{
    lab_thread *t = lab->current;
    int result = 0;

    check(condition, call, pc);
    if (!lab_sched_active())
        lab_posix_cannot_block(call, pc);
    lab_posix_thread *p = &lab_posix_threads[t->number];
    lab_posix_test_cancel(t, pc);
    if (mutex->__data.__lock == 0 || mutex->__data.__owner != (int)t->number + 1) {
        int type = mutex->__data.__kind & 3;
        if (type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE)
            return EPERM;
        lab_posix_misuse(call, mutex, "the caller does not own the mutex", pc);
    }
    if (mutex->__data.__count > 1)
        lab_posix_misuse(call, mutex, "the caller has locked the mutex more than once", pc);
    queue(t, condition, mutex, call, pc);
    lab_posix_announce(p->signaled ? (void *)mutex : (void *)condition, pc);
    if (p->signaled) {
        lab_step_access(t, lab_posix_entry(mutex), true);
        deadline = 0;
    } else {
        lab_step_access(t, lab_posix_entry(condition), true);
        lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    }
    if (!lab_gate_pass(t, &condition_gate, deadline)) {
        lab_step_make(t, 2, t->op.access);
        p->condition = 0;
        lab_report_call(call, (uintptr_t)condition, ETIMEDOUT, true, pc);
        result = ETIMEDOUT;
        p->signaled = true;
        lab_posix_announce(mutex, pc);
        lab_step_access(t, lab_posix_entry(mutex), true);
        lab_gate_pass(t, &condition_gate, 0);
    }
    p->condition = 0;
    p->signaled = false;
    int owned = come_back(t, mutex, pc);
    if (result == 0)
        lab_report_call("returns with the mutex", (uintptr_t)mutex, 0, false, pc);
    if (p->woken_by != WOKEN_INSTEAD)
        lab_posix_test_cancel(t, pc);
    p->woken_by = WOKEN_BY_CANCEL;
    lab_cycle_sweep();
    return owned != 0 ? owned : result;
}

static void signal_waiters(pthread_cond_t *condition, uint32_t count, const char *call, uintptr_t pc)
{
    lab_thread *waiting[MAX_THREADS];
    uint32_t waiters = 0;

    check(condition, call, pc);
    if (!lab_sched_active())
        return; /* no waiters */
    lab_thread *t = lab_posix_announce(condition, pc);
    lab_step_access(t, lab_posix_entry(condition), true);
    if (lab->uses_cancellation)
        lab_step_access(t, lab_posix_cancels(), false);
    lab_sched_point(t);
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab_posix_threads[i].condition == (uintptr_t)condition && !lab_posix_threads[i].signaled)
            waiting[waiters++] = &lab->run.threads[i];
    for (uint32_t i = 0; i < waiters; i++)
        if (waiting[i]->deadline != 0)
            lab_dpor_instead(waiting[i]->number);
    t->op.access[0].write = waiters != 0;
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_report_call(call, (uintptr_t)condition, 0, false, pc);
    while (waiters != 0 && count-- != 0) {
        uint32_t index = count < MAX_THREADS ? lab_explore_choose(waiters) : 0;

        waiters--;
        wake(waiting[index], waiters != 0 && count < MAX_THREADS ? WOKEN_INSTEAD : WOKEN_BESIDES);
        waiting[index] = waiting[waiters];
    }
    t->watched_count = 0;
    lab_cycle_sweep();
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return wait(condition, mutex, 0, "pthread_cond_wait", CALLER);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time)
{
    clockid_t clock = (clockid_t)((const condition_state *)condition)->clock;
    uint64_t deadline;

    if (!lab_posix_deadline(clock, time, &deadline))
        return EINVAL;
    return wait(condition, mutex, deadline, "pthread_cond_timedwait", CALLER);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
    uint64_t deadline;

    if (!lab_posix_deadline(clock, time, &deadline))
        return EINVAL;
    return wait(condition, mutex, deadline, "pthread_cond_clockwait", CALLER);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    signal_waiters(condition, 1, "pthread_cond_signal", CALLER);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    signal_waiters(condition, UINT32_MAX, "pthread_cond_broadcast", CALLER);
    return 0;
}

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    clockid_t clock = CLOCK_REALTIME;

    if (attributes != NULL)
        pthread_condattr_getclock(attributes, &clock);
    lab_posix_overwrite(condition, sizeof(*condition), CALLER);
    memset(condition, 0, sizeof(*condition));
    ((condition_state *)condition)->clock = (uint32_t)clock;
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *condition)
{
    check(condition, "pthread_cond_destroy", CALLER);
    for (uint32_t i = 0; i < MAX_THREADS; i++)
        if (lab_posix_threads[i].condition == (uintptr_t)condition && !lab_posix_threads[i].signaled)
            lab_posix_misuse("pthread_cond_destroy", condition, "a thread waits for it", CALLER);
    lab_posix_overwrite(condition, sizeof(*condition), CALLER);
    ((condition_state *)condition)->destroyed = DESTROYED;
    return 0;
}
