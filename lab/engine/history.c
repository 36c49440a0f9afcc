/*
 * history.c: is there an order of the operations that respects real time and that the model allows? The search of Wing
 * and Gong: an operation may come next if no other remaining operation precedes it. An operation that has not returned
 * may or may not have taken effect. Under "sc" one operation precedes another if it ended before the other began. Under
 * "c11", which has no common time, it does if its end happens before the other's beginning.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

/* A step under the models that have a common time: an operation that returns before another begins precedes it. */
static void make_step(lab_op_kind kind, uintptr_t pc)
{
    lab_thread *t = lab->current;

    if (!lab_sched_active() || lab->options.model == MODEL_C11)
        return;
    lab_step_announce(t, kind, 0, pc);
    if (lab_states_is_reduced()) /* one returns before another begins: a conflict of variables, for summaries */
        lab_step_access(t, lab_cell_pseudo(PSEUDO_HISTORY), kind == OP_RETURN);
    lab_sched_point(t);
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_cycle_sweep();
}

/* Its number among the operations of its thread. */
static unsigned number_of(uint32_t index)
{
    unsigned number = 0;

    for (uint32_t i = 0; i < index; i++)
        number += lab->run.history[i].Thread == lab->run.history[index].Thread;
    return number;
}

/* What LabBegin returns does not depend on the order in which other threads begin, or that order would be part of the state. */
static unsigned handle_of(uint32_t index)
{
    return lab->run.history[index].Thread * MAX_OPERATIONS + number_of(index);
}

static uint32_t index_of(unsigned handle)
{
    for (uint32_t i = 0; i < lab->run.operations; i++)
        if (handle_of(i) == handle)
            return i;
    lab_sched_fail(VERDICT_UNSUPPORTED, 0, "LabEnd of an operation that did not begin");
}

unsigned LabBegin(unsigned name, intptr_t argument)
{
    make_step(OP_BEGIN, (uintptr_t)__builtin_return_address(0));
    if (lab->run.operations == MAX_OPERATIONS)
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "more than %d operations in a history", MAX_OPERATIONS);
    lab->run.history[lab->run.operations] = (LAB_OPERATION){
        .Thread = LabCurrentThread(),
        .Name = name,
        .Argument = argument,
        .Begin = ++lab->run.ordinal,
        .End = UINT32_MAX,
    };
    if (lab->current != NULL)
        lab->run.began[lab->run.operations] = lab->current->sync;
    return handle_of(lab->run.operations++);
}

void LabEnd(unsigned handle, intptr_t result)
{
    make_step(OP_RETURN, (uintptr_t)__builtin_return_address(0));
    uint32_t number = index_of(handle);
    LAB_OPERATION *o = &lab->run.history[number];

    o->Result = result;
    o->Returned = 1;
    o->End = ++lab->run.ordinal;
    LabProgress();
    if (lab->current != NULL)
        lab->run.ended_at[number] = lab->current->sync.at[lab->current->number]++;
}

static bool comes_before(uint32_t a, uint32_t b)
{
    const LAB_OPERATION *first = &lab->run.history[a];
    const LAB_OPERATION *second = &lab->run.history[b];

    if (!first->Returned || first->End > second->Begin)
        return false;
    return lab->options.model != MODEL_C11 || first->Thread == second->Thread ||
           lab->run.ended_at[a] <= lab->run.began[b].at[first->Thread];
}

/* For states.c: hashes the operations and which of them precede which, not the order in which they began. */
uint64_t lab_history_hash(void)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < lab->run.operations; i++) {
        const LAB_OPERATION *o = &lab->run.history[i];
        uint64_t parts[] = {handle_of(i), o->Name, (uint64_t)o->Argument, o->Returned, o->Returned ? (uint64_t)o->Result : 0, 0};

        for (uint32_t j = 0; j < lab->run.operations; j++)
            parts[5] += comes_before(j, i) ? lab_memory_hash_bytes(1, &(uint64_t){handle_of(j)}, sizeof(uint64_t)) : 0;
        hash += lab_memory_hash_bytes(1, parts, sizeof(parts));
    }
    return hash;
}

/* c11: the operations that precede one that begins with this clock. */
uint64_t lab_history_hash_view(const lab_vclock *clock)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < lab->run.operations; i++) {
        const LAB_OPERATION *o = &lab->run.history[i];

        if (o->Returned && lab->run.ended_at[i] <= clock->at[o->Thread])
            hash += lab_memory_hash_bytes(1, &(uint64_t){handle_of(i)}, sizeof(uint64_t));
    }
    return hash;
}

static bool may_come_next(uint32_t index, uint64_t left)
{
    for (uint64_t set = left; set != 0; set &= set - 1)
        if (comes_before((uint32_t)__builtin_ctzll(set), index))
            return false;
    return true;
}

static bool search(const LAB_MODEL *model, const intptr_t *state, uint64_t left)
{
    bool open_only = true;

    for (uint64_t set = left; set != 0; set &= set - 1)
        open_only &= !lab->run.history[__builtin_ctzll(set)].Returned;
    if (open_only)
        return true;
    for (uint64_t set = left; set != 0; set &= set - 1) {
        uint32_t index = (uint32_t)__builtin_ctzll(set);
        intptr_t next[LAB_MODEL_STATE];

        if (!may_come_next(index, left))
            continue;
        memcpy(next, state, sizeof(next));
        if (model->Apply(next, &lab->run.history[index]) && search(model, next, left & ~(1ull << index)))
            return true;
    }
    return false;
}

void LabCheckLinearizable(const LAB_MODEL *model)
{
    intptr_t state[LAB_MODEL_STATE] = {0};
    uint64_t all = lab->run.operations == 64 ? ~0ull : (1ull << lab->run.operations) - 1;
    char text[1500];
    size_t used = 0;

    model->Initialize(state);
    if (search(model, state, all))
        return;
    for (uint32_t i = 0; i < lab->run.operations && used < sizeof(text) - 100; i++) {
        const LAB_OPERATION *o = &lab->run.history[i];

        used += (size_t)snprintf(text + used, sizeof(text) - used, "\n    %c %s(%ld)", 'a' + o->Thread,
                                 model->OperationNames[o->Name], (long)o->Argument);
        if (o->Returned)
            used += (size_t)snprintf(text + used, sizeof(text) - used, " = %ld, from %u to %u", (long)o->Result,
                                     o->Begin, o->End);
        else
            used += (size_t)snprintf(text + used, sizeof(text) - used, " does not return, from %u", o->Begin);
    }
    lab_sched_fail(VERDICT_LINEARIZABILITY, 0, "no order of these operations fits a %s:%s", model->Name, text);
}
