/*
 * rwlock.c: pthread_rwlock_t. Shared owners do not conflict with each other: their locks read the entry cell, and their
 * unlocks read the exit cell. Readers come before waiting writers, unless the lock was made with
 * PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP.
 */
#include "posix.h"

#include <stdio.h>
#include <string.h>

#define DESTROYED 0xdeadu

typedef struct rwlock_state {
    uint32_t readers;
    uint32_t writer; /* the number of the thread, from 1 */
    uint32_t destroyed;
    uint32_t unused[9];
    uint32_t kind; /* where the C library's initializers have it */
} rwlock_state;

_Static_assert(offsetof(rwlock_state, kind) == offsetof(pthread_rwlock_t, __data.__flags), "the C library's layout");

static uint32_t shares[MAX_THREADS][8]; /* hashed by lock: which threads have it shared, for misuse only */

static rwlock_state *state_of(const pthread_rwlock_t *lock)
{
    return (rwlock_state *)(uintptr_t)lock;
}

static uint32_t own_number(void)
{
    return lab_posix_self() + 1;
}

static const lab_gate write_gate;

static bool prefers_writers(const pthread_rwlock_t *lock)
{
    if (state_of(lock)->kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
        return false;
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab->run.threads[i].gate == &write_gate && lab->run.threads[i].op.address == (uintptr_t)lock)
            return true;
    return false;
}

static bool may_read(const pthread_rwlock_t *lock)
{
    return state_of(lock)->writer == 0 && !prefers_writers(lock);
}

static bool may_write(const pthread_rwlock_t *lock)
{
    return state_of(lock)->writer == 0 && state_of(lock)->readers == 0;
}

static bool is_open_to_read(const lab_thread *t)
{
    return may_read((const pthread_rwlock_t *)t->op.address);
}

static bool is_open_to_write(const lab_thread *t)
{
    return may_write((const pthread_rwlock_t *)t->op.address);
}

static void describe(const lab_thread *t, char *buffer, size_t size)
{
    const rwlock_state *l = (const rwlock_state *)t->op.address;

    if (l->writer != 0)
        snprintf(buffer, size, "waits for the reader/writer lock $%lx$, owned by %c", t->op.address,
                 (char)('a' + l->writer - 1));
    else
        snprintf(buffer, size, "waits for the reader/writer lock $%lx$, which %u readers own", t->op.address, l->readers);
}

static const lab_gate read_gate = {is_open_to_read, describe};
static const lab_gate write_gate = {is_open_to_write, describe};

static uint32_t *share_of(const pthread_rwlock_t *lock)
{
    static uint32_t none;
    uint32_t self = lab_posix_self();
    return self < MAX_THREADS ? &shares[self][((uintptr_t)lock >> 3) % 8] : &none;
}

static void check(const pthread_rwlock_t *lock, const char *call, uintptr_t pc)
{
    if (lab_sched_active())
        lab_race_access((uintptr_t)lock, sizeof(int), true, true, pc);
    if (state_of(lock)->destroyed == DESTROYED)
        lab_posix_misuse(call, lock, "the lock was destroyed", pc);
}

static void own(pthread_rwlock_t *lock, bool write, const char *call, uintptr_t pc)
{
    rwlock_state *l = state_of(lock);

    if (write) {
        l->writer = own_number();
    } else {
        l->readers++;
        ++*share_of(lock);
    }
    if (!lab_sched_active())
        return;
    lab_atomic_take(lab->current, lab_posix_exit_cell(lock));
    if (write)
        lab_atomic_take(lab->current, lab_posix_readers(lock));
    lab_spin_changed(lab_posix_entry(lock));
    lab_report_call(call, (uintptr_t)lock, 0, false, pc);
}

static int lock_in(pthread_rwlock_t *lock, bool write, uint64_t deadline, const char *call, uintptr_t pc)
{
    check(lock, call, pc);
    if (state_of(lock)->writer == own_number())
        return EDEADLK;
    if (!lab_sched_active()) {
        if (write ? !may_write(lock) : state_of(lock)->writer != 0)
            lab_posix_cannot_block(call, pc);
        own(lock, write, call, pc);
        return 0;
    }
    uint32_t entry = lab_posix_entry(lock), exit = lab_posix_exit_cell(lock);
    if (write && state_of(lock)->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
        lab_posix_touch(lock, entry, true, NULL, pc); /* that it waits is a step of its own: from then on it keeps readers out */
    lab_thread *t = lab_posix_announce(lock, pc);
    lab_step_access(t, entry, write);
    if (deadline != 0) {
        lab_step_access(t, exit, write);
        lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    }
    if (!lab_gate_pass(t, write ? &write_gate : &read_gate, deadline)) {
        lab_access made[] = {{entry, false}, {exit, write}, {lab_cell_pseudo(PSEUDO_CLOCK), true}};
        lab_step_make(t, 3, made);
        lab_report_call(call, (uintptr_t)lock, ETIMEDOUT, true, pc);
        return ETIMEDOUT;
    }
    lab_step_make(t, deadline != 0 ? 2 : 1, t->op.access);
    lab_step_follow(t, exit, write);
    own(lock, write, call, pc);
    lab_cycle_sweep();
    return 0;
}

static int try_lock_in(pthread_rwlock_t *lock, bool write, const char *call, uintptr_t pc)
{
    check(lock, call, pc);
    if (!lab_sched_active()) {
        if (write ? !may_write(lock) : state_of(lock)->writer != 0)
            return EBUSY;
        own(lock, write, call, pc);
        return 0;
    }
    lab_thread *t = lab_posix_announce(lock, pc);
    uint32_t entry = lab_posix_entry(lock), exit = lab_posix_exit_cell(lock);
    t->op.kind = OP_LOAD; /* a loop that repeats it waits for a change */
    t->op.size = 8;
    t->op.callers = lab_spin_callers(t);
    lab_step_access(t, entry, write);
    lab_step_access(t, exit, write);
    lab_sched_point(t);
    t->op.kind = OP_CALL;
    bool succeeds = write ? may_write(lock) : may_read(lock);
    lab_access made[] = {{entry, write && succeeds}, {exit, write}};
    lab_step_make(t, 2, made);
    if (succeeds) {
        own(lock, write, call, pc);
        return 0;
    }
    lab_spin_watch(t, entry, (uintptr_t)lock, 8, -1, *(volatile uint64_t *)lock, pc);
    lab_report_call(call, (uintptr_t)lock, EBUSY, true, pc);
    lab_cycle_sweep();
    return EBUSY;
}

static int lock_until(pthread_rwlock_t *lock, bool write, clockid_t clock, const struct timespec *time, const char *call,
                      uintptr_t pc)
{
    uint64_t deadline;

    if (!lab_posix_deadline(clock, time, &deadline))
        return EINVAL;
    return lock_in(lock, write, deadline, call, pc);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    return lock_in(lock, false, 0, "pthread_rwlock_rdlock", CALLER);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    return lock_in(lock, true, 0, "pthread_rwlock_wrlock", CALLER);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    return try_lock_in(lock, false, "pthread_rwlock_tryrdlock", CALLER);
}

int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    return try_lock_in(lock, true, "pthread_rwlock_trywrlock", CALLER);
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *time)
{
    return lock_until(lock, false, CLOCK_REALTIME, time, "pthread_rwlock_timedrdlock", CALLER);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *time)
{
    return lock_until(lock, true, CLOCK_REALTIME, time, "pthread_rwlock_timedwrlock", CALLER);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time)
{
    return lock_until(lock, false, clock, time, "pthread_rwlock_clockrdlock", CALLER);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time)
{
    return lock_until(lock, true, clock, time, "pthread_rwlock_clockwrlock", CALLER);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    rwlock_state *l = state_of(lock);
    uintptr_t pc = CALLER;

    check(lock, "pthread_rwlock_unlock", pc);
    bool write = l->writer == own_number();
    if (!write && (l->writer != 0 || l->readers == 0 || *share_of(lock) == 0))
        lab_posix_misuse("pthread_rwlock_unlock", lock, "the caller does not own the lock", pc);
    if (lab_sched_active()) {
        lab_posix_touch(lock, lab_posix_exit_cell(lock), write, "pthread_rwlock_unlock", pc);
        lab_atomic_give(lab->current, write ? lab_posix_exit_cell(lock) : lab_posix_readers(lock), !write);
        lab_spin_changed(lab_posix_entry(lock));
        lab->current->watched_count = 0;
    }
    if (write) {
        l->writer = 0;
    } else {
        l->readers--;
        --*share_of(lock);
    }
    lab_cycle_sweep();
    return 0;
}

int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes)
{
    int kind = PTHREAD_RWLOCK_DEFAULT_NP;

    if (attributes != NULL)
        pthread_rwlockattr_getkind_np(attributes, &kind);
    lab_posix_overwrite(lock, sizeof(*lock), CALLER);
    memset(lock, 0, sizeof(*lock));
    state_of(lock)->kind = (uint32_t)kind;
    return 0;
}

int pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
    check(lock, "pthread_rwlock_destroy", CALLER);
    if (!may_write(lock))
        lab_posix_misuse("pthread_rwlock_destroy", lock, "the lock is owned", CALLER);
    lab_posix_overwrite(lock, sizeof(*lock), CALLER);
    state_of(lock)->destroyed = DESTROYED;
    return 0;
}
