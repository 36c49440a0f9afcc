/*
 * block.c: sleeping and waking by the host's kernel. The word that a thread sleeps on is read through its cache; what
 * the kernel itself touches is not counted. The longest sleeper is woken first.
 */
#include "machine.h"

#define START_OF_TIME 10000000000ull

static uint64_t tickets;

static uint64_t time_of(uint64_t clock)
{
    return START_OF_TIME + clock / CYCLES_PER_UNIT;
}

static uint64_t clock_of(uint64_t time)
{
    return time > START_OF_TIME ? (time - START_OF_TIME) * CYCLES_PER_UNIT : 0;
}

/* FALSE: the deadline passed first. */
static bool sleep_on(scale_thread *t, uintptr_t address, uint64_t deadline)
{
    t->waits_on = address;
    t->ticket = tickets++;
    t->base.timed_out = false;
    if (deadline != 0) {
        uint64_t when = clock_of(deadline);
        machine_queue(t, when > t->clock ? when : t->clock);
    }
    machine_leave();
    if (t->waits_on != 0) {
        t->waits_on = 0;
        t->clock = t->key;
        return false;
    }
    return true;
}

bool lab_block_wait(uintptr_t address, uint32_t expected, uint64_t deadline, uintptr_t pc)
{
    scale_thread *t = machine_current();

    if (!lab_sched_active()) {
        if (*(volatile uint32_t *)address == expected)
            lab_sched_fail(VERDICT_UNSUPPORTED, pc, "the preparation of a lock blocks");
        return true;
    }
    machine_pass(CALL_CYCLES);
    if ((uint32_t)lab_atomic_load(address, sizeof(uint32_t), __ATOMIC_RELAXED, pc) != expected)
        return true;
    return sleep_on(t, address, deadline);
}

static scale_thread *longest_sleeper(uintptr_t address)
{
    scale_thread *found = NULL;

    for (uint32_t i = 0; i < machine_threads(); i++) {
        scale_thread *t = machine_thread(i);

        if (t->waits_on == address && (found == NULL || t->ticket < found->ticket))
            found = t;
    }
    return found;
}

uint32_t lab_block_wake_address(uintptr_t address, uint32_t count, uintptr_t pc)
{
    uint32_t woken = 0;
    scale_thread *t = machine_current();
    scale_thread *sleeper;

    (void)pc;
    if (!lab_sched_active())
        return 0;
    machine_pass(CALL_CYCLES);
    machine_take_turn(t);
    while (count-- != 0 && (sleeper = longest_sleeper(address)) != NULL) {
        sleeper->waits_on = 0;
        sleeper->clock = t->clock + WAKE_CYCLES;
        if (sleeper->place != NOT_QUEUED)
            machine_hurry(sleeper, sleeper->clock); /* its deadline is further away, or as good as now */
        else
            machine_queue(sleeper, sleeper->clock);
        woken++;
    }
    return woken;
}

uint64_t lab_block_clock(uintptr_t pc)
{
    (void)pc;
    lab->run.now = time_of(lab_sched_active() ? machine_current()->clock : 0);
    return lab->run.now;
}

void lab_block_interrupt(uint32_t number, uintptr_t pc)
{
    lab_sched_fail(VERDICT_UNSUPPORTED, pc, "a lock interrupts thread %u", number);
}
