/* object.c: what all calls have in common. */
#include "posix.h"

#include <stdio.h>
#include <unistd.h>

#define LONGEST_WAIT (10000000ull * 3600 * 24)

lab_posix_thread lab_posix_threads[MAX_THREADS];

uint32_t lab_posix_self(void)
{
    return lab != NULL && lab->current != NULL ? lab->current->number : MAX_THREADS;
}

lab_thread *lab_posix_announce(const volatile void *object, uintptr_t pc)
{
    lab_thread *t = lab->current;

    lab_step_announce(t, OP_CALL, (uintptr_t)object, pc);
    return t;
}

void lab_posix_touch(const volatile void *object, uint32_t cell, bool write, const char *call, uintptr_t pc)
{
    lab_thread *t = lab_posix_announce(object, pc);

    lab_step_access(t, cell, write);
    lab_sched_point(t);
    lab_step_make(t, 1, t->op.access);
    if (call != NULL)
        lab_report_call(call, (uintptr_t)object, 0, false, pc);
}

void lab_posix_overwrite(void *object, size_t size, uintptr_t pc)
{
    if (lab_sched_active())
        lab_race_access((uintptr_t)object, size, true, false, pc);
}

/* Static constructors run before the explorer. */
static void fail(lab_verdict verdict, uintptr_t pc, const char *text)
{
    if (lab == NULL || (!lab->running && !lab->preparing)) {
        fprintf(stderr, "lab: %s, before main\n", text);
        _exit(2);
    }
    lab_sched_fail(verdict, pc, "%s", text);
}

void lab_posix_cannot_block(const char *call, uintptr_t pc)
{
    char text[200];

    snprintf(text, sizeof(text), "%s blocks where no other thread runs: in Setup, Invariant or Finish", call);
    fail(VERDICT_UNSUPPORTED, pc, text);
    __builtin_unreachable();
}

void lab_posix_unsupported(const char *call, uintptr_t pc)
{
    char text[200];

    snprintf(text, sizeof(text), "%s: the explorer has no model of it", call);
    fail(VERDICT_UNSUPPORTED, pc, text);
    __builtin_unreachable();
}

void lab_posix_misuse(const char *call, const volatile void *object, const char *what, uintptr_t pc)
{
    char text[300];

    snprintf(text, sizeof(text), "%s($%lx$): %s", call, (uintptr_t)object, what);
    fail(VERDICT_MISUSE, pc, text);
    __builtin_unreachable();
}

bool lab_posix_deadline(clockid_t clock, const struct timespec *time, uint64_t *deadline)
{
    if (time->tv_nsec < 0 || time->tv_nsec >= 1000000000 || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
        return false;
    uint64_t at = time->tv_sec < 0 ? 0 : (uint64_t)time->tv_sec * 10000000 + ((uint64_t)time->tv_nsec + 99) / 100;

    if (time->tv_sec > 0 && (uint64_t)time->tv_sec > UINT64_MAX / 20000000)
        at = UINT64_MAX / 2;
    if (clock == CLOCK_REALTIME)
        at = at > LAB_POSIX_EPOCH ? at - LAB_POSIX_EPOCH : 0;
    *deadline = at > lab->run.now + LONGEST_WAIT ? 0 : at == 0 ? 1 : at;
    return true;
}
