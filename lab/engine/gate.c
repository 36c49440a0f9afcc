/* gate.c: steps that wait for a condition. Theory at lab_gate in engine.h. */
#include "engine.h"

bool lab_gate_pass(lab_thread *t, const lab_gate *gate, uint64_t deadline)
{
    t->gate = gate;
    t->deadline = deadline;
    t->timed_out = false;
    if (!gate->is_open(t))
        t->watched_count = 0;
    lab_sched_point(t);
    t->gate = NULL;
    t->deadline = 0;
    if (!t->timed_out)
        return true;
    t->timed_out = false;
    if (deadline > lab->run.now) {
        lab->run.now = deadline;
        lab_spin_changed(lab_cell_pseudo(PSEUDO_CLOCK));
    }
    return false;
}
