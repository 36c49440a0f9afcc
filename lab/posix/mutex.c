/*
 * mutex.c: pthread_mutex_t of all kinds, and pthread_spinlock_t. A mutex has the C library's layout, so that its
 * initializers fit. A recursive lock or unlock is not a step: no other thread can observe it.
 */
#include "posix.h"

#include <stdio.h>
#include <string.h>

#define OWNER_DIED      1u
#define NOT_RECOVERABLE 2u
#define ROBUST          16
#define DESTROYED       (-1)

typedef struct mutex_state {
    int lock;
    unsigned count;
    int owner; /* the number of the thread, from 1 */
    unsigned flags;
    int kind;
    int ceiling; /* with PTHREAD_PRIO_PROTECT: its priority, from 1; it has no effect */
    pthread_mutex_t *next; /* among the robust mutexes of the owner */
} mutex_state;

_Static_assert(sizeof(mutex_state) <= sizeof(pthread_mutex_t), "the C library's layout");
_Static_assert(offsetof(mutex_state, kind) == offsetof(pthread_mutex_t, __data.__kind), "the C library's layout");

static mutex_state *state_of(const pthread_mutex_t *mutex)
{
    return (mutex_state *)(uintptr_t)mutex;
}

static int type_of(const pthread_mutex_t *mutex)
{
    return state_of(mutex)->kind & 3;
}

static bool is_robust(const pthread_mutex_t *mutex)
{
    return (state_of(mutex)->kind & ROBUST) != 0;
}

static int own_number(void)
{
    return (int)lab_posix_self() + 1;
}

bool lab_posix_mutex_is_free(const pthread_mutex_t *mutex)
{
    return state_of(mutex)->lock == 0;
}

static bool is_open(const lab_thread *t)
{
    return lab_posix_mutex_is_free((const pthread_mutex_t *)t->op.address);
}

void lab_posix_describe_mutex(const lab_thread *t, const pthread_mutex_t *mutex, char *buffer, size_t size)
{
    uint32_t owner = (uint32_t)state_of(mutex)->owner - 1;
    const char *ended = owner < MAX_THREADS && lab->run.threads[owner].state == THREAD_DONE ? ", which has ended" : "";

    snprintf(buffer, size, "waits for the mutex $%lx$, owned by %c%s%s", (uintptr_t)mutex, (char)('a' + owner),
             owner == t->number ? " itself" : "", ended);
}

static void describe(const lab_thread *t, char *buffer, size_t size)
{
    lab_posix_describe_mutex(t, (const pthread_mutex_t *)t->op.address, buffer, size);
}

static const lab_gate mutex_gate = {is_open, describe};

static void check(const pthread_mutex_t *mutex, const char *call, uintptr_t pc)
{
    if (lab_sched_active())
        lab_race_access((uintptr_t)mutex, sizeof(int), true, true, pc);
    if (state_of(mutex)->kind == DESTROYED)
        lab_posix_misuse(call, mutex, "the mutex was destroyed", pc);
}

/* The caller owns it from here on. */
int lab_posix_mutex_enter(pthread_mutex_t *mutex, const char *call, uintptr_t pc)
{
    mutex_state *m = state_of(mutex);
    int result = m->flags & OWNER_DIED ? EOWNERDEAD : 0;

    if (m->flags & NOT_RECOVERABLE)
        return ENOTRECOVERABLE;
    m->lock = 1;
    m->count = 1;
    m->owner = own_number();
    if (is_robust(mutex) && lab_posix_self() < MAX_THREADS) {
        m->next = lab_posix_threads[lab_posix_self()].robust;
        lab_posix_threads[lab_posix_self()].robust = mutex;
    }
    if (lab_sched_active()) {
        lab_atomic_take(lab->current, lab_posix_exit_cell(mutex));
        lab_spin_changed(lab_posix_entry(mutex));
    }
    if (call != NULL && lab_sched_active())
        lab_report_call(call, (uintptr_t)mutex, (uint64_t)result, result != 0, pc);
    return result;
}

/* The result if the caller owns the mutex already. -1: locking it is a step. */
static int relock(pthread_mutex_t *mutex, bool tries)
{
    mutex_state *m = state_of(mutex);

    if (m->lock == 0 || m->owner != own_number())
        return -1;
    if (type_of(mutex) == PTHREAD_MUTEX_RECURSIVE) {
        if (m->count == UINT32_MAX)
            return EAGAIN;
        m->count++;
        return 0;
    }
    if (type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK && !tries)
        return EDEADLK;
    return -1;
}

static int lock(pthread_mutex_t *mutex, uint64_t deadline, const char *call, uintptr_t pc)
{
    check(mutex, call, pc);
    int result = relock(mutex, false);
    if (result >= 0)
        return result;
    if (!lab_sched_active()) {
        if (!lab_posix_mutex_is_free(mutex))
            lab_posix_cannot_block(call, pc);
        return lab_posix_mutex_enter(mutex, NULL, pc);
    }
    lab_thread *t = lab_posix_announce(mutex, pc);
    uint32_t entry = lab_posix_entry(mutex), exit = lab_posix_exit_cell(mutex);
    lab_step_access(t, entry, true);
    if (deadline != 0) {
        lab_step_access(t, exit, false);
        lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    }
    if (!lab_gate_pass(t, &mutex_gate, deadline)) {
        lab_access made[] = {{entry, false}, {exit, false}, {lab_cell_pseudo(PSEUDO_CLOCK), true}};
        lab_step_make(t, 3, made);
        lab_report_call(call, (uintptr_t)mutex, ETIMEDOUT, true, pc);
        return ETIMEDOUT;
    }
    check(mutex, call, pc);
    lab_step_make(t, deadline != 0 ? 2 : 1, t->op.access);
    lab_step_follow(t, exit, false);
    return lab_posix_mutex_enter(mutex, call, pc);
}

static int unlock(pthread_mutex_t *mutex, const char *call, uintptr_t pc)
{
    mutex_state *m = state_of(mutex);
    int type = type_of(mutex);

    check(mutex, call, pc);
    if (m->lock == 0 || m->owner != own_number()) {
        if (type != PTHREAD_MUTEX_NORMAL && type != PTHREAD_MUTEX_ADAPTIVE_NP)
            return EPERM;
        if (is_robust(mutex))
            return EPERM;
        lab_posix_misuse(call, mutex,
                         m->lock == 0 ? "the mutex is not locked" : "the mutex is owned by another thread", pc);
    }
    if (m->count > 1) {
        m->count--;
        return 0;
    }
    if (!lab_sched_active())
        return lab_posix_mutex_leave(mutex, call, pc);
    lab_posix_touch(mutex, lab_posix_exit_cell(mutex), true, call, pc);
    return lab_posix_mutex_leave(mutex, call, pc);
}

static void forget_robust(pthread_mutex_t *mutex)
{
    pthread_mutex_t **link = &lab_posix_threads[lab_posix_self()].robust;

    while (*link != NULL && *link != mutex)
        link = &state_of(*link)->next;
    if (*link != NULL)
        *link = state_of(mutex)->next;
}

int lab_posix_mutex_leave(pthread_mutex_t *mutex, const char *call, uintptr_t pc)
{
    mutex_state *m = state_of(mutex);

    if (m->lock == 0 || m->owner != own_number()) {
        if (type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK || type_of(mutex) == PTHREAD_MUTEX_RECURSIVE)
            return EPERM;
        lab_posix_misuse(call, mutex, "the caller does not own the mutex", pc);
    }
    if (is_robust(mutex) && lab_posix_self() < MAX_THREADS)
        forget_robust(mutex);
    if (m->flags & OWNER_DIED)
        m->flags = NOT_RECOVERABLE; /* it was not made consistent */
    m->lock = 0;
    m->count = 0;
    m->owner = 0;
    if (lab_sched_active()) {
        lab_atomic_give(lab->current, lab_posix_exit_cell(mutex), false);
        lab_spin_changed(lab_posix_entry(mutex));
        lab->current->watched_count = 0;
    }
    return 0;
}

/* The owner exits: the next acquire returns EOWNERDEAD. */
void lab_posix_mutex_owner_died(pthread_mutex_t *mutex)
{
    mutex_state *m = state_of(mutex);

    lab_posix_touch(mutex, lab_posix_exit_cell(mutex), true, NULL, 0);
    m->flags |= OWNER_DIED;
    m->lock = 0;
    m->owner = 0;
    lab_atomic_give(lab->current, lab_posix_exit_cell(mutex), false);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int result = lock(mutex, 0, "pthread_mutex_lock", CALLER);

    lab_cycle_sweep();
    return result;
}

static int try_lock(pthread_mutex_t *mutex, const char *call, uintptr_t pc)
{
    check(mutex, call, pc);
    int result = relock(mutex, true);
    if (result >= 0)
        return result;
    if (!lab_sched_active())
        return lab_posix_mutex_is_free(mutex) ? lab_posix_mutex_enter(mutex, NULL, pc) : EBUSY;
    lab_thread *t = lab_posix_announce(mutex, pc);
    uint32_t entry = lab_posix_entry(mutex), exit = lab_posix_exit_cell(mutex);
    t->op.kind = OP_LOAD; /* a loop that repeats it waits for a change */
    t->op.size = sizeof(int);
    t->op.callers = lab_spin_callers(t);
    lab_step_access(t, entry, true);
    lab_step_access(t, exit, false);
    lab_sched_point(t);
    t->op.kind = OP_CALL;
    bool succeeds = lab_posix_mutex_is_free(mutex);
    lab_access made[] = {{entry, succeeds}, {exit, false}};
    lab_step_make(t, 2, made);
    if (succeeds)
        return lab_posix_mutex_enter(mutex, call, pc);
    lab_spin_watch(t, entry, (uintptr_t)mutex, sizeof(int), -1, 1, pc);
    lab_report_call(call, (uintptr_t)mutex, EBUSY, true, pc);
    return EBUSY;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int result = try_lock(mutex, "pthread_mutex_trylock", CALLER);

    lab_cycle_sweep();
    return result;
}

static int lock_until(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time, const char *call, uintptr_t pc)
{
    uint64_t deadline;
    int result;

    if (lab_posix_deadline(clock, time, &deadline)) {
        result = lock(mutex, deadline, call, pc);
    } else { /* the C library looks at the time only if it must wait */
        result = try_lock(mutex, call, pc);
        result = result == EBUSY ? EINVAL : result;
    }
    lab_cycle_sweep();
    return result;
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time)
{
    return lock_until(mutex, CLOCK_REALTIME, time, "pthread_mutex_timedlock", CALLER);
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
    return lock_until(mutex, clock, time, "pthread_mutex_clocklock", CALLER);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int result = unlock(mutex, "pthread_mutex_unlock", CALLER);

    lab_cycle_sweep();
    return result;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    int type = PTHREAD_MUTEX_DEFAULT, robust = PTHREAD_MUTEX_STALLED, protocol = PTHREAD_PRIO_NONE, ceiling = -1;

    if (attributes != NULL) {
        pthread_mutexattr_getprotocol(attributes, &protocol);
        if (protocol == PTHREAD_PRIO_PROTECT)
            pthread_mutexattr_getprioceiling(attributes, &ceiling);
        pthread_mutexattr_gettype(attributes, &type);
        pthread_mutexattr_getrobust(attributes, &robust);
    }
    lab_posix_overwrite(mutex, sizeof(*mutex), CALLER);
    memset(mutex, 0, sizeof(*mutex));
    state_of(mutex)->ceiling = ceiling + 1;
    state_of(mutex)->kind = type | (robust == PTHREAD_MUTEX_ROBUST ? ROBUST : 0);
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    uintptr_t pc = CALLER;

    check(mutex, "pthread_mutex_destroy", pc);
    if (!lab_posix_mutex_is_free(mutex)) {
        if (type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK)
            return EBUSY;
        lab_posix_misuse("pthread_mutex_destroy", mutex, "the mutex is locked", pc);
    }
    for (uint32_t i = 0; lab_sched_active() && i < lab->run.thread_count; i++)
        if (lab->run.threads[i].gate != NULL && lab->run.threads[i].op.address == (uintptr_t)mutex)
            lab_posix_misuse("pthread_mutex_destroy", mutex, "a thread waits for the mutex", pc);
    lab_posix_overwrite(mutex, sizeof(*mutex), pc);
    state_of(mutex)->kind = DESTROYED;
    return 0;
}

int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
    mutex_state *m = state_of(mutex);

    if (!is_robust(mutex) || !(m->flags & OWNER_DIED) || m->owner != own_number())
        return EINVAL;
    m->flags &= ~OWNER_DIED;
    return 0;
}

int pthread_mutex_getprioceiling(const pthread_mutex_t *mutex, int *ceiling)
{
    if (state_of(mutex)->ceiling == 0)
        return EINVAL;
    *ceiling = state_of(mutex)->ceiling - 1;
    return 0;
}

int pthread_mutex_setprioceiling(pthread_mutex_t *mutex, int ceiling, int *old)
{
    mutex_state *m = state_of(mutex);

    if (m->ceiling == 0 || ceiling < 1 || ceiling > 99)
        return EINVAL;
    int result = pthread_mutex_lock(mutex);
    if (result != 0 && result != EDEADLK && result != EOWNERDEAD)
        return result;
    *old = m->ceiling - 1;
    m->ceiling = ceiling + 1;
    if (result == 0)
        pthread_mutex_unlock(mutex);
    return result == EDEADLK ? 0 : result;
}

/* Spinlocks: a word, 0 or the number of the owner. */

static bool is_spinlock_open(const lab_thread *t)
{
    return *(volatile int *)t->op.address == 0;
}

static void describe_spinlock(const lab_thread *t, char *buffer, size_t size)
{
    snprintf(buffer, size, "waits for the spinlock $%lx$, owned by %c", t->op.address,
             (char)('a' + *(volatile int *)t->op.address - 1));
}

static const lab_gate spinlock_gate = {is_spinlock_open, describe_spinlock};

static void own_spinlock(pthread_spinlock_t *lock, const char *call, uintptr_t pc)
{
    *lock = own_number();
    if (!lab_sched_active())
        return;
    lab_atomic_take(lab->current, lab_posix_exit_cell(lock));
    lab_spin_changed(lab_posix_entry(lock));
    lab_report_call(call, (uintptr_t)lock, 0, false, pc);
}

int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
    (void)shared;
    lab_posix_overwrite((void *)(uintptr_t)lock, sizeof(*lock), CALLER);
    *lock = 0;
    return 0;
}

int pthread_spin_destroy(pthread_spinlock_t *lock)
{
    if (*lock > 0)
        lab_posix_misuse("pthread_spin_destroy", lock, "the spinlock is locked", CALLER);
    lab_posix_overwrite((void *)(uintptr_t)lock, sizeof(*lock), CALLER);
    return 0;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
    uintptr_t pc = CALLER;

    if (!lab_sched_active()) {
        if (*lock != 0)
            lab_posix_cannot_block("pthread_spin_lock", pc);
        *lock = own_number();
        return 0;
    }
    lab_thread *t = lab_posix_announce(lock, pc);
    lab_race_access((uintptr_t)lock, sizeof(*lock), true, true, pc);
    lab_step_access(t, lab_posix_entry(lock), true);
    lab_gate_pass(t, &spinlock_gate, 0);
    lab_step_make(t, 1, t->op.access);
    lab_step_follow(t, lab_posix_exit_cell(lock), false);
    own_spinlock(lock, "pthread_spin_lock", pc);
    lab_cycle_sweep();
    return 0;
}

int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    uintptr_t pc = CALLER;

    if (!lab_sched_active()) {
        if (*lock != 0)
            return EBUSY;
        *lock = own_number();
        return 0;
    }
    lab_thread *t = lab_posix_announce(lock, pc);
    uint32_t entry = lab_posix_entry(lock), exit = lab_posix_exit_cell(lock);
    lab_race_access((uintptr_t)lock, sizeof(*lock), true, true, pc);
    t->op.kind = OP_LOAD;
    t->op.size = sizeof(int);
    t->op.callers = lab_spin_callers(t);
    lab_step_access(t, entry, true);
    lab_step_access(t, exit, false);
    lab_sched_point(t);
    t->op.kind = OP_CALL;
    lab_access made[] = {{entry, *lock == 0}, {exit, false}};
    lab_step_make(t, 2, made);
    if (*lock == 0) {
        own_spinlock(lock, "pthread_spin_trylock", pc);
        return 0;
    }
    lab_spin_watch(t, entry, (uintptr_t)lock, sizeof(*lock), -1, (uint32_t)*lock, pc);
    lab_report_call("pthread_spin_trylock", (uintptr_t)lock, EBUSY, true, pc);
    lab_cycle_sweep();
    return EBUSY;
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    uintptr_t pc = CALLER;

    if (*lock != own_number())
        lab_posix_misuse("pthread_spin_unlock", lock, "the caller does not own the spinlock", pc);
    if (lab_sched_active()) {
        lab_race_access((uintptr_t)lock, sizeof(*lock), true, true, pc);
        lab_posix_touch(lock, lab_posix_exit_cell(lock), true, "pthread_spin_unlock", pc);
        lab_atomic_give(lab->current, lab_posix_exit_cell(lock), false);
        lab_spin_changed(lab_posix_entry(lock));
        lab->current->watched_count = 0;
    }
    *lock = 0;
    lab_cycle_sweep();
    return 0;
}
