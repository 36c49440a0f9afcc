/* api.c: the functions that a test may call. */
#include "engine.h"

#include <string.h>

void LabFail(const char *text_verdict, const char *text, const char *file, int line)
{
    const char *slash = strrchr(file, '/');
    lab_verdict found = VERDICT_ASSERTION;

    for (int i = 1; i < VERDICTS; i++)
        if (strcmp(lab_verdict_names[i], text_verdict) == 0)
            found = (lab_verdict)i;
    lab_sched_fail(found, (uintptr_t)__builtin_return_address(0), "%s (%s:%d)", text, slash != NULL ? slash + 1 : file,
                   line);
}

unsigned LabChoose(unsigned count)
{
    if (!lab_sched_active())
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "LabChoose outside a thread");
    lab_step_local(lab->current, OP_LOCAL, (uintptr_t)__builtin_return_address(0));
    uint32_t chosen = lab_explore_choose(count);
    lab_report_event(OP_LOCAL, 0, 0, 0, count, chosen, false, (uintptr_t)__builtin_return_address(0));
    lab_cycle_sweep();
    return chosen;
}

unsigned LabSpawn(void (*routine)(void *), void *argument)
{
    lab_thread *t = lab_thread_spawn(routine, argument, NULL, false);

    if (t == NULL)
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "more than %d threads", MAX_THREADS);
    t->adopt = true;
    return t->number;
}

void LabJoin(unsigned number)
{
    lab_thread *t = lab->current;
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    lab_thread *target = &lab->run.threads[number];

    if (target->from_table)
        lab_sched_fail(VERDICT_MISUSE, pc, "LabJoin of a thread that LabSpawn did not create");
    lab_step_local(t, OP_JOIN, pc);
    if (target->state != THREAD_DONE) {
        t->joined = (uint8_t)number;
        t->state = THREAD_JOINING;
        lab_step_announce(t, OP_JOIN, 0, pc);
        lab_sched_reschedule();
        lab_step_make(t, 0, NULL);
    }
    lab_clock_join(&t->sync, &target->sync);
    lab_clock_join(&t->beyond, &target->beyond);
    lab_clock_join(&t->dep, &target->dep);
}

void LabExitThread(void)
{
    lab_thread_exit();
}

void LabMayDie(void)
{
    if (lab->current != NULL)
        lab->current->mortal = true;
}

unsigned LabCurrentThread(void)
{
    return lab->current != NULL ? lab->current->number : MAX_THREADS;
}

void LabProgress(void)
{
    if (lab->current != NULL)
        lab->current->progress++;
}

void LabYield(void)
{
    if (!lab_sched_active())
        return;
    lab_step_local(lab->current, OP_LOCAL, (uintptr_t)__builtin_return_address(0));
    lab_cycle_sweep();
}

void LabAdvanceTime(uint64_t time)
{
    lab_thread *t = lab->current;

    if (!lab_sched_active()) {
        lab->run.now += time;
        return;
    }
    lab_step_announce(t, OP_CLOCK, 0, (uintptr_t)__builtin_return_address(0));
    lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    lab_sched_point(t);
    lab_step_make(t, 1, t->op.access);
    lab->run.now += time;
    lab_spin_changed(lab_cell_pseudo(PSEUDO_CLOCK));
}

void LabIgnore(const volatile void *address, size_t size)
{
    lab_memory_ignore(address, size);
    lab_memory_add_statistic((uintptr_t)address, size);
}

void LabForget(volatile void *address, size_t size)
{
    uintptr_t at = (uintptr_t)address, end = at + size;

    while (at < end) {
        bool whole = at % sizeof(uint64_t) == 0 && end - at >= sizeof(uint64_t);

        lab_atomic_forget(at, whole ? sizeof(uint64_t) : 1, whole ? UINT64_MAX : UINT8_MAX);
        at += whole ? sizeof(uint64_t) : 1;
    }
}

void LabForgetBits(volatile uint32_t *address, uint32_t bits)
{
    lab_atomic_forget((uintptr_t)address, sizeof(*address), bits);
}

void LabEnterLibc(void)
{
    if (lab->current != NULL)
        lab->current->inside_libc = true;
}

void LabLeaveLibc(void)
{
    lab_thread *t = lab->current;

    if (t == NULL)
        return;
    t->inside_libc = false;
    t->interrupt_pending |= t->interrupt_later;
    t->interrupt_later = false;
}

void *LabAllocate(size_t size)
{
    return lab_memory_allocate(size, 16, (uintptr_t)__builtin_return_address(0));
}

void LabFree(void *memory)
{
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);

    if (!lab_memory_free(memory, pc))
        lab_sched_fail(VERDICT_FREED_MEMORY, pc, "%p freed twice, or never allocated", memory);
}

void LabWaitOnWord(volatile uint32_t *address, uint32_t expected)
{
    lab_block_wait((uintptr_t)address, expected, 0, (uintptr_t)__builtin_return_address(0));
}

int LabWaitOnWordFor(volatile uint32_t *address, uint32_t expected, uint64_t time)
{
    return lab_block_wait((uintptr_t)address, expected, lab->run.now + (time != 0 ? time : 1),
                          (uintptr_t)__builtin_return_address(0));
}

void LabWakeWord(volatile uint32_t *address, unsigned count)
{
    lab_block_wake_address((uintptr_t)address, count, (uintptr_t)__builtin_return_address(0));
}
