/*
 * process.c: processes that are killed. A process is a number and the threads that have entered it. Its death is a choice
 * before each step of such a thread that another process could notice: a write to memory that it shares, or a wake. Dying
 * before a step that only reads is the same as dying before the next write.
 */
#include "engine.h"

#define RUNS   0u
#define KILLED 1u
#define ENDED  2u

/* Part of the explored program, like the processes that it describes: restored before every schedule. */
static volatile uint32_t process_state[LAB_MAXIMUM_THREADS];

static bool is_noticed_outside(const lab_thread *t)
{
    switch (t->op.kind) {
    case OP_STORE:
    case OP_RMW:
    case OP_CAS:
    case OP_WAKE:
        return t->op.address - t->shared_base < t->shared_size;
    default:
        return false;
    }
}

static void change_state(uint32_t number, uint32_t state, uintptr_t pc)
{
    lab_atomic_store((uintptr_t)&process_state[number], sizeof(uint32_t), state, __ATOMIC_SEQ_CST, pc);
    lab_block_wake_address((uintptr_t)&process_state[number], MAX_THREADS, pc);
}

bool lab_process_is_killed(lab_thread *t)
{
    if (lab->run.kills == 0 || t->in_interrupt || !is_noticed_outside(t) || lab_explore_choose(2) == 0)
        return false;
    lab->run.kills--;
    lab_report_event(OP_END, 0, 0, 0, 0, 0, true, t->op.pc);
    t->op.kind = OP_LOCAL;
    t->op.accesses = 0;
    lab_step_make(t, 0, NULL);
    return true;
}

/* Its threads stop where they are. In another schedule each of them makes its next step first. */
void lab_process_kill(lab_thread *t)
{
    uint32_t number = t->process;

    lab_states_search_all();
    lab->run.killed |= 1u << number; /* its state follows as a step of its own */
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *other = &lab->run.threads[i];

        if (other->process == number)
            other->process = 0;
        else
            continue;
        if (other != t && other->state != THREAD_DONE) {
            lab_dpor_instead(other->number);
            other->state = THREAD_DONE;
        }
    }
    change_state(number, KILLED, t->op.pc);
    lab_thread_terminate();
}

void LabEnterProcess(unsigned number, const volatile void *shared, size_t size)
{
    lab_thread *t = lab->current;

    if (number == 0 || number >= LAB_MAXIMUM_THREADS)
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "processes have the numbers 1 to %d", LAB_MAXIMUM_THREADS - 1);
    t->shared_base = (uintptr_t)shared;
    t->shared_size = size;
    if (LabIsProcessKilled(number) || (lab->run.killed >> number & 1))
        lab_thread_terminate();
    t->process = (uint8_t)number;
}

void LabLeaveProcess(void)
{
    uint32_t number = lab->current->process;

    lab->current->process = 0;
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab->run.threads[i].process == number)
            return;
    change_state(number, ENDED, (uintptr_t)__builtin_return_address(0));
}

unsigned LabCurrentProcess(void)
{
    return lab->current != NULL ? lab->current->process : 0;
}

int LabIsProcessKilled(unsigned number)
{
    return lab_atomic_ask((uintptr_t)&process_state[number], sizeof(uint32_t),
                          (uintptr_t)__builtin_return_address(0)) == KILLED;
}

int LabAwaitProcess(unsigned number)
{
    lab_block_wait((uintptr_t)&process_state[number], RUNS, 0, (uintptr_t)__builtin_return_address(0));
    return LabIsProcessKilled(number);
}
