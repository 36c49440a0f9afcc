/* minimise.c: makes a failure readable: searches for the same verdict with fewer switches. */
#include "engine.h"

#include "../posix/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINIMISING_RUNS    4000
#define MINIMISING_SECONDS 3.0

static uint32_t record_decisions(lab_decision *to)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lab->node_count; i++) {
        const lab_node *n = &lab->nodes[i];
        to[count++] = (lab_decision){n->kind == NODE_CHOICE, n->chosen};
    }
    return count;
}

void lab_minimise_give(void)
{
    lab->given_count = record_decisions(lab->given);
}

static uint32_t count_switches(const lab_decision *d, uint32_t count)
{
    uint32_t switches = 0;
    int last = -1;

    for (uint32_t i = 0; i < count; i++) {
        if (d[i].choice) {
            switches += d[i].value != 0;
            continue;
        }
        switches += last != -1 && d[i].value != last;
        last = d[i].value;
    }
    return switches;
}

static uint32_t find_segment(const lab_decision *d, uint32_t count, uint32_t from)
{
    uint32_t i = from;
    int thread = -1;

    while (i < count && (d[i].choice || thread == -1 || d[i].value == thread)) {
        if (!d[i].choice)
            thread = d[i].value;
        i++;
    }
    return i;
}

typedef struct best {
    lab_decision *decisions;
    uint32_t count, switches;
    lab_verdict verdict;
} best;

/* Runs lab->given. TRUE: the same failure with a better schedule. */
static bool try_given(best *b)
{
    lab->active = STRATEGY_REPLAY;
    lab->replay_count = 0;
    lab->lenient = true;
    if (lab_sched_run() != RUN_FAILED || lab->verdict != b->verdict)
        return false;
    uint32_t count = record_decisions(lab->given);
    uint32_t switches = count_switches(lab->given, count);
    if (switches > b->switches || (switches == b->switches && count >= b->count))
        return false;
    memcpy(b->decisions, lab->given, count * sizeof(lab_decision));
    b->count = count;
    b->switches = switches;
    return true;
}

static void give_without(const best *b, uint32_t from, uint32_t to)
{
    memcpy(lab->given, b->decisions, from * sizeof(lab_decision));
    memcpy(lab->given + from, b->decisions + to, (b->count - to) * sizeof(lab_decision));
    lab->given_count = b->count - (to - from);
}

static void give_swapped(const best *b, uint32_t from, uint32_t middle, uint32_t to)
{
    memcpy(lab->given, b->decisions, b->count * sizeof(lab_decision));
    memcpy(lab->given + from, b->decisions + middle, (to - middle) * sizeof(lab_decision));
    memcpy(lab->given + from + (to - middle), b->decisions + from, (middle - from) * sizeof(lab_decision));
    lab->given_count = b->count;
}

void lab_minimise(void)
{
    best b = {.decisions = calloc(MAX_NODES, sizeof(lab_decision)), .verdict = lab->verdict};
    double until = lab_explore_seconds() + MINIMISING_SECONDS;
    uint32_t runs = 0;
    bool better = true;

    b.count = record_decisions(b.decisions);
    b.switches = count_switches(b.decisions, b.count);
    while (better && runs < MINIMISING_RUNS && lab_explore_seconds() < until) {
        better = false;
        for (uint32_t from = 0; from < b.count && !better && lab_explore_seconds() < until;) {
            uint32_t middle = find_segment(b.decisions, b.count, from);
            uint32_t to = find_segment(b.decisions, b.count, middle);

            give_swapped(&b, from, middle, to);
            better = try_given(&b);
            if (!better) {
                give_without(&b, from, middle);
                better = try_given(&b);
            }
            runs += 2;
            from = middle;
        }
    }
    memcpy(lab->given, b.decisions, b.count * sizeof(lab_decision));
    lab->given_count = b.count;
    free(b.decisions);
}

/* Runs it again, with a trace. */
void lab_minimise_show(lab_verdict found)
{
    lab->active = STRATEGY_REPLAY;
    lab->replay_count = 0;
    lab->lenient = true;
    lab_program_unmute();
    lab->tracing = true;
    lab->access_count = 0;
    lab->earlier.pc = 0;
    if (lab_sched_run() != RUN_FAILED || lab->verdict != found) {
        lab_program_unmute();
        printf("  (the schedule does not fail again: the program depends on something the lab does not control)\n");
        lab->verdict = found;
    }
    lab->tracing = false;
    lab_report_failure();
}
