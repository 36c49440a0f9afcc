/* semaphore.c: sem_t. Named semaphores are those of one process here. */
#include "posix.h"

#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DESTROYED 0xdeadu
#define NAMES     16

typedef struct semaphore_state {
    uint32_t value;
    uint32_t destroyed;
} semaphore_state;

static struct {
    char name[64];
    sem_t *semaphore;
    bool unlinked;
} names[NAMES];

static semaphore_state *state_of(const sem_t *semaphore)
{
    return (semaphore_state *)(uintptr_t)semaphore;
}

static bool is_open(const lab_thread *t)
{
    return ((const semaphore_state *)t->op.address)->value != 0 || lab_posix_is_cancelled(t);
}

static void describe(const lab_thread *t, char *buffer, size_t size)
{
    snprintf(buffer, size, "waits for the semaphore $%lx$, which is 0", t->op.address);
}

static const lab_gate semaphore_gate = {is_open, describe};

static void check(const sem_t *semaphore, const char *call, uintptr_t pc)
{
    if (lab_sched_active())
        lab_race_access((uintptr_t)semaphore, sizeof(int), true, true, pc);
    if (state_of(semaphore)->destroyed == DESTROYED)
        lab_posix_misuse(call, semaphore, "the semaphore was destroyed", pc);
}

static int error(int code)
{
    errno = code;
    return -1;
}

static int take(sem_t *semaphore, const char *call, uintptr_t pc)
{
    state_of(semaphore)->value--;
    lab_atomic_take(lab->current, lab_posix_exit_cell(semaphore));
    lab_spin_changed(lab_posix_entry(semaphore));
    lab_report_call(call, (uintptr_t)semaphore, 0, false, pc);
    lab_cycle_sweep();
    return 0;
}

static int wait(sem_t *semaphore, uint64_t deadline, const char *call, uintptr_t pc)
{
    check(semaphore, call, pc);
    if (!lab_sched_active()) {
        if (state_of(semaphore)->value == 0)
            lab_posix_cannot_block(call, pc);
        state_of(semaphore)->value--;
        return 0;
    }
    lab_thread *t = lab->current;
    lab_posix_test_cancel(t, pc);
    lab_posix_announce(semaphore, pc);
    uint32_t entry = lab_posix_entry(semaphore), exit = lab_posix_exit_cell(semaphore);
    lab_step_access(t, entry, true);
    lab_posix_access_cancel(t);
    int passing = t->op.accesses;
    if (deadline != 0) {
        lab_step_access(t, exit, false);
        lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    }
    if (!lab_gate_pass(t, &semaphore_gate, deadline)) {
        lab_access made[] = {{entry, false}, {exit, false}, {lab_cell_pseudo(PSEUDO_CLOCK), true}};
        lab_step_make(t, 3, made);
        lab_report_call(call, (uintptr_t)semaphore, ETIMEDOUT, true, pc);
        return error(ETIMEDOUT);
    }
    check(semaphore, call, pc);
    lab_step_make(t, deadline != 0 ? passing + 1 : passing, t->op.access);
    lab_step_follow(t, exit, false);
    if (state_of(semaphore)->value == 0)
        lab_posix_test_cancel(t, pc);
    return take(semaphore, call, pc);
}

int sem_wait(sem_t *semaphore)
{
    return wait(semaphore, 0, "sem_wait", CALLER);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *time)
{
    uint64_t deadline;

    if (!lab_posix_deadline(CLOCK_REALTIME, time, &deadline))
        return error(EINVAL);
    return wait(semaphore, deadline, "sem_timedwait", CALLER);
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *time)
{
    uint64_t deadline;

    if (!lab_posix_deadline(clock, time, &deadline))
        return error(EINVAL);
    return wait(semaphore, deadline, "sem_clockwait", CALLER);
}

int sem_trywait(sem_t *semaphore)
{
    uintptr_t pc = CALLER;

    check(semaphore, "sem_trywait", pc);
    if (!lab_sched_active()) {
        if (state_of(semaphore)->value == 0)
            return error(EAGAIN);
        state_of(semaphore)->value--;
        return 0;
    }
    lab_thread *t = lab_posix_announce(semaphore, pc);
    uint32_t entry = lab_posix_entry(semaphore), exit = lab_posix_exit_cell(semaphore);
    t->op.kind = OP_LOAD; /* a loop that repeats it waits for a change */
    t->op.size = sizeof(int);
    t->op.callers = lab_spin_callers(t);
    lab_step_access(t, entry, true);
    lab_step_access(t, exit, false);
    lab_sched_point(t);
    t->op.kind = OP_CALL;
    bool succeeds = state_of(semaphore)->value != 0;
    lab_access made[] = {{entry, succeeds}, {exit, false}};
    lab_step_make(t, 2, made);
    if (succeeds)
        return take(semaphore, "sem_trywait", pc);
    lab_spin_watch(t, entry, (uintptr_t)semaphore, sizeof(int), -1, 0, pc);
    lab_report_call("sem_trywait", (uintptr_t)semaphore, EAGAIN, true, pc);
    lab_cycle_sweep();
    return error(EAGAIN);
}

int sem_post(sem_t *semaphore)
{
    uintptr_t pc = CALLER;

    check(semaphore, "sem_post", pc);
    if (lab_sched_active()) {
        lab_posix_touch(semaphore, lab_posix_exit_cell(semaphore), true, "sem_post", pc);
        check(semaphore, "sem_post", pc);
        lab_atomic_give(lab->current, lab_posix_exit_cell(semaphore), true);
        lab->current->watched_count = 0;
    }
    if (state_of(semaphore)->value == SEM_VALUE_MAX)
        return error(EOVERFLOW);
    state_of(semaphore)->value++;
    if (lab_sched_active())
        lab_spin_changed(lab_posix_entry(semaphore));
    lab_cycle_sweep();
    return 0;
}

int sem_getvalue(sem_t *semaphore, int *value)
{
    uintptr_t pc = CALLER;

    check(semaphore, "sem_getvalue", pc);
    if (lab_sched_active()) {
        lab_thread *t = lab_posix_announce(semaphore, pc);
        t->op.kind = OP_LOAD;
        t->op.size = sizeof(int);
        t->op.callers = lab_spin_callers(t);
        lab_step_access(t, lab_posix_entry(semaphore), false);
        lab_step_access(t, lab_posix_exit_cell(semaphore), false);
        lab_sched_point(t);
        lab_step_make(t, 2, t->op.access);
        lab_spin_watch(t, lab_posix_entry(semaphore), (uintptr_t)semaphore, sizeof(int), -1,
                       state_of(semaphore)->value, pc);
        lab_report_call("sem_getvalue", (uintptr_t)semaphore, state_of(semaphore)->value, false, pc);
    }
    *value = (int)state_of(semaphore)->value;
    lab_cycle_sweep();
    return 0;
}

int sem_init(sem_t *semaphore, int shared, unsigned value)
{
    (void)shared;
    if (value > SEM_VALUE_MAX)
        return error(EINVAL);
    lab_posix_overwrite(semaphore, sizeof(*semaphore), CALLER);
    memset(semaphore, 0, sizeof(*semaphore));
    state_of(semaphore)->value = value;
    return 0;
}

int sem_destroy(sem_t *semaphore)
{
    check(semaphore, "sem_destroy", CALLER);
    for (uint32_t i = 0; lab_sched_active() && i < lab->run.thread_count; i++)
        if (lab->run.threads[i].gate == &semaphore_gate && lab->run.threads[i].op.address == (uintptr_t)semaphore)
            lab_posix_misuse("sem_destroy", semaphore, "a thread waits for the semaphore", CALLER);
    lab_posix_overwrite(semaphore, sizeof(*semaphore), CALLER);
    state_of(semaphore)->destroyed = DESTROYED;
    return 0;
}

sem_t *sem_open(const char *name, int flags, ...)
{
    va_list arguments;
    unsigned value = 0;
    int unused = -1;

    va_start(arguments, flags);
    if (flags & O_CREAT) {
        (void)va_arg(arguments, int);
        value = va_arg(arguments, unsigned);
    }
    va_end(arguments);
    for (int i = 0; i < NAMES; i++) {
        if (names[i].semaphore != NULL && !names[i].unlinked && strcmp(names[i].name, name) == 0) {
            if ((flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))
                return names[i].semaphore;
            errno = EEXIST;
            return SEM_FAILED;
        }
        if (names[i].semaphore == NULL && unused < 0)
            unused = i;
    }
    if (!(flags & O_CREAT) || unused < 0 || strlen(name) >= sizeof(names[0].name)) {
        errno = !(flags & O_CREAT) ? ENOENT : ENFILE;
        return SEM_FAILED;
    }
    sem_t *semaphore = lab_memory_allocate(sizeof(sem_t), 0, (uintptr_t)__builtin_return_address(0));
    sem_init(semaphore, 0, value);
    strcpy(names[unused].name, name);
    names[unused].semaphore = semaphore;
    names[unused].unlinked = false;
    return semaphore;
}

int sem_close(sem_t *semaphore)
{
    (void)semaphore;
    return 0;
}

int sem_unlink(const char *name)
{
    for (int i = 0; i < NAMES; i++) {
        if (names[i].semaphore != NULL && !names[i].unlinked && strcmp(names[i].name, name) == 0) {
            names[i].unlinked = true;
            return 0;
        }
    }
    return error(ENOENT);
}
