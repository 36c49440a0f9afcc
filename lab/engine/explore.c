/*
 * explore.c: which schedules are run: the tree of decisions, and the strategies. The portfolio runs a few random
 * schedules; then dpor; if that does not finish in half of the time, bounded with 0, 1, 2, ... preemptions for a
 * quarter of it; then the random strategies in turns.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUICK_SCHEDULES 500
#define SPLIT_DEPTH     6
#define CYCLE_SCHEDULES 400
#define CYCLE_SECONDS   1.0
#define LONGEST_TURN    200
#define LONGEST_ROUND   200 /* where pct changes priorities */

/* Processor time: independent of the load of the host. */
double lab_explore_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The next step of t accesses something that other threads use too. */
static bool is_on_shared(const lab_thread *t)
{
    if (t->op.kind == OP_START || t->op.kind == OP_END || t->op.kind == OP_RESUME)
        return false;
    if (t->op.kind == OP_LOCAL || t->op.kind == OP_EXIT || t->op.kind == OP_BEGIN || t->op.kind == OP_RETURN)
        return true;
    if ((lab->uses_interrupts || t->op.kind == OP_PLAIN) && lab->cells[lab_cell_pseudo(PSEUDO_CONTEXT(t->number))].written)
        return true; /* an interrupt may come before it */
    for (uint32_t i = 0; i < t->op.accesses; i++)
        if (lab_cell_is_shared(&lab->cells[t->op.access[i].cell]))
            return true;
    return false;
}

/*
 * A loop that polls under a lock ends only if another thread gets a turn, and its steps have nothing in common with those of
 * a thread that has not begun. Which thread continues is free: the search tries the other orders where they matter. Not
 * where preemptions are counted or states compared: it would be a preemption, and depends on more than the state.
 */
static bool had_long_turn(void)
{
    return lab->run.turn >= LONGEST_TURN && (lab->active == STRATEGY_DPOR || lab->active == STRATEGY_RANDOM ||
                                             lab->active == STRATEGY_PCT);
}

static void count_turn(uint8_t chosen, bool branches)
{
    if (lab->current == NULL || chosen != lab->current->number)
        lab->run.turn = 0;
    else
        lab->run.turn += branches && !is_on_shared(lab->current);
}

static uint8_t find_ready(uint16_t set)
{
    for (uint16_t left = set; left != 0; left &= (uint16_t)(left - 1)) {
        const lab_thread *t = &lab->run.threads[lab_lowest(left)];
        if (!t->service && t->state == THREAD_READY && !t->asleep && !lab_gate_is_closed(t))
            return (uint8_t)t->number;
    }
    return MAX_THREADS;
}

/* Continues with the running thread, otherwise with the first that is not a service thread. */
uint8_t lab_explore_prefer(uint16_t set)
{
    if (lab->current != NULL && (set & LAB_BIT(lab->current->number)) && lab->current->state == THREAD_READY &&
        !lab->current->asleep && !lab_gate_is_closed(lab->current) && !had_long_turn())
        return lab->current->number;
    uint8_t next = had_long_turn() ? find_ready((uint16_t)(set & ~(2u * LAB_BIT(lab->current->number) - 1))) : MAX_THREADS;
    if (next == MAX_THREADS)
        next = find_ready(set);
    if (next != MAX_THREADS)
        return next;
    for (uint16_t left = set; left != 0; left &= (uint16_t)(left - 1))
        if (lab->run.threads[lab_lowest(left)].state == THREAD_READY && !lab->run.threads[lab_lowest(left)].asleep)
            return lab_lowest(left);
    return lab_lowest(set);
}

bool lab_explore_runs_on(uint16_t enabled)
{
    const lab_thread *t = lab->current;
    return t != NULL && t->state == THREAD_READY && (enabled & LAB_BIT(t->number)) && !is_on_shared(t) &&
           !lab_gate_is_closed(t) && !had_long_turn();
}

/*
 * Several processes share a tree. At the first SPLIT_DEPTH branches each process tries everything, and a hash of the
 * choices there decides which process explores the rest. What sleeps in a branch because it was tried in another is
 * explored there by one of the processes.
 */
bool lab_explore_is_shared_out(void)
{
    return lab->options.jobs > 1 && (lab->active == STRATEGY_DPOR || lab->active == STRATEGY_BOUNDED);
}

bool lab_explore_is_split_here(void)
{
    return lab_explore_is_shared_out() && lab->run.branches <= SPLIT_DEPTH;
}

static void leave_to_others(uint32_t nodes)
{
    uint64_t hash = 1;

    for (uint32_t i = 0; i < nodes; i++)
        hash = (hash ^ lab->nodes[i].chosen) * 0x9E3779B97F4A7C15ull + i;
    if ((hash >> 33) % lab->options.jobs != lab->options.job)
        lab_sched_leave(RUN_SKIPPED);
}

static lab_node *new_node(lab_node_kind kind)
{
    if (lab->node_count == MAX_NODES)
        lab_sched_too_long();
    if (lab_states_is_reduced())
        lab_states_open(lab->node_count);
    lab_node *n = &lab->nodes[lab->node_count++];
    n->kind = (uint8_t)kind;
    n->done = 0;
    n->step = NO_STEP;
    return n;
}

uint8_t lab_explore_pick(uint16_t enabled)
{
    bool branches = (enabled & (enabled - 1)) != 0;

    lab_bookmarks_set(enabled);
    if (branches && lab_explore_is_shared_out() && ++lab->run.branches == SPLIT_DEPTH + 1)
        leave_to_others(lab->node_count);
    if (lab_compares_states(lab->active))
        lab_states_note(enabled);
    int32_t previous = lab->last_node;
    int32_t index = (int32_t)lab->node_count;

    if ((uint32_t)index < lab->replay_count) {
        lab_node *n = &lab->nodes[lab->node_count++];
        if (n->kind != NODE_THREAD || n->enabled != enabled)
            lab_sched_fail(VERDICT_UNSUPPORTED, 0, "the program is not deterministic (decision %d)", index);
        lab->last_node = index;
        count_turn(n->chosen, branches);
        return n->chosen;
    }
    lab_node *n = new_node(NODE_THREAD);
    n->enabled = enabled;
    switch (lab->active) {
    case STRATEGY_DPOR:
        n->chosen = lab_dpor_pick(n, previous);
        break;
    case STRATEGY_BOUNDED:
    case STRATEGY_BOUNDED_STATES:
        n->chosen = lab_bounded_pick(n, previous);
        break;
    case STRATEGY_STATES:
        n->chosen = lab_states_pick(n, previous);
        break;
    case STRATEGY_PCT:
        n->chosen = had_long_turn() ? lab_random_pick(enabled) : lab_random_pick_pct(enabled);
        break;
    case STRATEGY_REPLAY:
        n->chosen = lab_replay_pick(enabled);
        break;
    default:
        n->chosen = lab_random_pick(enabled);
        break;
    }
    lab->last_node = index;
    count_turn(n->chosen, branches);
    return n->chosen;
}

static uint32_t choose(uint32_t count, uint64_t tried)
{
    if (lab->node_count < lab->replay_count) {
        lab_node *n = &lab->nodes[lab->node_count++];
        if (n->kind != NODE_CHOICE || n->count != count)
            lab_sched_fail(VERDICT_UNSUPPORTED, 0, "the program is not deterministic (decision %u)",
                           lab->node_count - 1);
        return n->chosen;
    }
    lab_node *n = new_node(NODE_CHOICE);
    n->count = (uint8_t)count;
    n->tried = tried;
    n->chosen = 0;
    if (lab->active == STRATEGY_REPLAY)
        n->chosen = (uint8_t)lab_replay_choose(count);
    else if (lab->active == STRATEGY_PCT || lab->active == STRATEGY_RANDOM)
        n->chosen = (uint8_t)lab_random_below(count);
    return n->chosen;
}

uint32_t lab_explore_choose(uint32_t count)
{
    if (count > MAX_CHOICES) {
        lab_explore_cut(CUT_CHOICES);
        count = MAX_CHOICES;
    }
    return count > 1 ? choose(count, 0) : 0;
}

/* A node even for a single choice: a replay of the schedule may find more here, and must find the node. */
uint32_t lab_explore_choose_among(uint64_t tried)
{
    return choose(64 - (uint32_t)__builtin_clzll(tried), tried);
}

uint32_t lab_explore_stale(void)
{
    if (lab->active == STRATEGY_REPLAY)
        return UNLIMITED;
    return lab_bounds_stale(lab->scenario, lab->active == STRATEGY_DPOR || lab_compares_states(lab->active));
}

/* The next schedule of a depth-first search; FALSE: there is none. */
static bool backtrack(void)
{
    bool summarised = lab_states_is_reduced();

    for (uint32_t i = lab->node_count; i-- != 0;) {
        lab_node *n = &lab->nodes[i];

        if (summarised)
            lab_states_leave_branch(i);
        if (n->kind == NODE_CHOICE) {
            n->chosen++;
            while (n->tried != 0 && n->chosen < n->count && !(n->tried >> n->chosen & 1))
                n->chosen++;
            if (n->chosen < n->count) {
                lab->replay_count = i + 1;
                return true;
            }
            if (summarised)
                lab_states_leave_node(i);
            continue;
        }
        n->done |= LAB_BIT(n->chosen);
        uint16_t left = (uint16_t)(n->backtrack & ~n->done & ~n->sleep);
        if (left != 0) {
            n->chosen = lab_lowest(left);
            n->step = NO_STEP;
            lab->replay_count = i + 1;
            return true;
        }
        if (summarised)
            lab_states_leave_node(i);
    }
    return false;
}

static bool runs_into_failure(void)
{
    lab_run_end end = lab_sched_run();

    lab->result.schedules += end != RUN_PRUNED && end != RUN_SKIPPED;
    lab->result.pruned += end == RUN_PRUNED;
    lab->result.truncated += end == RUN_TRUNCATED;
    lab->result.steps += lab->run.steps;
    lab->longest = lab->run.steps > lab->longest ? lab->run.steps : lab->longest;
    if (end == RUN_FINISHED)
        lab_ends_note();
    return end == RUN_FAILED;
}

/* Random schedules in which states are compared. */
static bool search_cycles(void)
{
    double until = lab_explore_seconds() + CYCLE_SECONDS;
    uint32_t longest = lab->longest;

    lab->tracking = true;
    lab->longest = LONGEST_ROUND;
    for (uint32_t i = 0; i < CYCLE_SCHEDULES && lab_explore_seconds() < until; i++) {
        lab->active = i & 1 ? STRATEGY_PCT : STRATEGY_RANDOM;
        lab->replay_count = 0;
        lab_random_prepare(lab->active);
        if (runs_into_failure()) {
            lab->result.found_by = "comparing states";
            return true;
        }
    }
    lab->tracking = false;
    lab->longest = longest;
    return false;
}

/* The schedule was too long: does the program cycle? Leaves the tree unchanged. */
static bool goes_round(void)
{
    lab_strategy active = lab->active;
    uint32_t node_count = lab->node_count, replay_count = lab->replay_count;

    if (lab->kept_nodes != NULL)
        return false;
    lab_model model = lab->options.model;
    lab_set_model(lab_model_names[MODEL_SC]); /* every schedule of which is one of the other models */
    lab->kept_nodes = lab_memory_map(MAX_NODES * sizeof(lab_node));
    memcpy(lab->kept_nodes, lab->nodes, node_count * sizeof(lab_node));
    if (search_cycles())
        return true;
    lab_set_model(lab_model_names[model]);
    memcpy(lab->nodes, lab->kept_nodes, node_count * sizeof(lab_node));
    lab->node_count = node_count;
    lab->replay_count = replay_count;
    lab->active = active;
    lab->end = RUN_TRUNCATED;
    return false;
}

/* With --strict it must end: run it again, as a failure. */
static bool must_end(void)
{
    if (!lab->options.strict)
        return false;
    lab_minimise_give();
    lab->active = STRATEGY_REPLAY;
    lab->replay_count = 0;
    lab->lenient = true;
    return lab_sched_run() == RUN_FAILED;
}

static bool finds_failure(void)
{
    if (runs_into_failure())
        return true;
    return lab->end == RUN_TRUNCATED && (goes_round() || must_end());
}

static bool is_over(uint64_t schedules, double until)
{
    return lab->result.schedules + lab->result.pruned >= schedules ||
           (((lab->result.schedules + lab->result.pruned) & 63) == 0 && lab_explore_seconds() >= until);
}

/* About variables. When it changes, what was tried so far was too little. */
static uint32_t what_is_known(lab_strategy active)
{
    if (active == STRATEGY_DPOR)
        return 0;
    return lab_compares_states(active) && lab->options.model == MODEL_C11 ? lab->users_changes : lab->shared_changes;
}

static bool search_tree(lab_strategy active, uint64_t schedules, double until)
{
    lab->replay_count = 0;
    bool truncated = active == STRATEGY_DPOR && lab_progress_resume() && lab->result.truncated != 0;

    lab->active = active;
    lab->cells_changed = false;
    lab->cut = 0;
    uint32_t known = what_is_known(active);
    for (;;) {
        if (finds_failure())
            return true;
        truncated |= lab->end == RUN_TRUNCATED;
        if (lab_compares_states(active) && lab_states_is_full())
            return false;
        if (lab->cells_changed || known != what_is_known(active)) {
            if (lab_compares_states(active))
                lab_states_clear();
            lab->cells_changed = false;
            known = what_is_known(active);
            lab->replay_count = 0;
            lab->cut = 0;
        } else if (!backtrack()) {
            lab->result.exhausted = !truncated;
            lab->result.cut = truncated ? lab->result.cut : lab->cut;
            return false;
        }
        if (active == STRATEGY_BOUNDED || active == STRATEGY_BOUNDED_STATES)
            lab_bounded_count();
        if (lab_progress_is_stopped() || is_over(schedules, until))
            return false;
    }
}

static bool search_randomly(lab_strategy active, uint64_t schedules, double until)
{
    lab->active = active;
    lab->replay_count = 0;
    do {
        lab_random_prepare(active);
        if (finds_failure())
            return true;
    } while (!is_over(schedules, until));
    return false;
}

/* Raises the bound while there is time; result.bound is the last completed one. */
static bool search_bounded(uint64_t schedules, double until)
{
    lab->result.found_by = "bounded";
    for (lab->options.preemptions = 0; !is_over(schedules, until); lab->options.preemptions++) {
        if (search_tree(STRATEGY_BOUNDED, schedules, until))
            return true;
        if (!lab->result.exhausted)
            return false;
        lab->result.exhausted = false;
        lab->result.bound = (int)lab->options.preemptions;
    }
    return false;
}

/* Most bugs turn up at once. */
static bool search_quickly(uint64_t schedules, double until)
{
    lab->result.found_by = "random";
    if (search_randomly(STRATEGY_RANDOM, QUICK_SCHEDULES < schedules ? QUICK_SCHEDULES : schedules, until))
        return true;
    lab->result.found_by = "pct";
    return search_randomly(STRATEGY_PCT, 2 * QUICK_SCHEDULES < schedules ? 2 * QUICK_SCHEDULES : schedules, until);
}

static bool search_states(uint64_t schedules, double until)
{
    lab->result.found_by = "states";
    lab_states_clear();
    if (search_tree(STRATEGY_STATES, schedules, until))
        return true;
    lab->result.by_states = lab->result.exhausted;
    return false;
}

static bool search_with_bound(lab_strategy active, const char *name, uint64_t schedules, double until)
{
    lab->result.found_by = name;
    if (search_tree(active, schedules, until))
        return true;
    if (lab->result.exhausted)
        lab->result.bound = (int)lab->options.preemptions;
    lab->result.exhausted = false;
    return false;
}

static bool search_portfolio(uint64_t schedules, double start, double seconds)
{
    bool large = (lab->scenario->Flags & LAB_LARGE) != 0;

    seconds = large ? seconds / 3 : seconds;
    if (search_quickly(schedules, start + seconds / 8))
        return true;
    lab->result.found_by = "dpor";
    if (!large && search_tree(STRATEGY_DPOR, schedules / 2, start + seconds / 2))
        return true;
    if (lab->result.exhausted)
        return false;
    if (search_bounded(schedules - schedules / 4, start + seconds * 3 / 4))
        return true;
    for (uint64_t turn = 1; !is_over(schedules, start + seconds); turn++) {
        bool pct = turn & 1;
        uint64_t until = lab->result.schedules + lab->result.pruned + 1000;

        lab->result.found_by = pct ? "pct" : "random";
        lab->options.depth = 2 + (uint32_t)(turn / 2 % 4);
        if (search_randomly(pct ? STRATEGY_PCT : STRATEGY_RANDOM, until < schedules ? until : schedules,
                            start + seconds))
            return true;
    }
    return false;
}

static bool search(void)
{
    double start = lab_explore_seconds();
    uint64_t schedules = lab->options.schedules;
    double until = start + lab->options.seconds;

    switch (lab->options.strategy) {
    case STRATEGY_DPOR:
        lab->result.found_by = "dpor";
        return search_tree(STRATEGY_DPOR, schedules, until);
    case STRATEGY_BOUNDED:
        return search_with_bound(STRATEGY_BOUNDED, "bounded", schedules, until);
    case STRATEGY_BOUNDED_STATES:
        if (lab->options.model == MODEL_TSO)
            return search_with_bound(STRATEGY_BOUNDED, "bounded", schedules, until);
        lab_states_clear();
        lab->result.by_states = true;
        return search_with_bound(STRATEGY_BOUNDED_STATES, "bounded-states", schedules, until);
    case STRATEGY_PCT:
        lab->result.found_by = "pct";
        return search_randomly(STRATEGY_PCT, schedules, until);
    case STRATEGY_RANDOM:
        lab->result.found_by = "random";
        return search_randomly(STRATEGY_RANDOM, schedules, until);
    case STRATEGY_STATES:
        if (lab->options.model != MODEL_TSO)
            return search_states(schedules, until);
        lab->result.found_by = "dpor"; /* the values that a load may read are not in the state */
        return search_tree(STRATEGY_DPOR, schedules, until);
    default:
        lab->result.found_by = "portfolio";
        return search_portfolio(schedules, start, lab->options.seconds);
    }
}

static void set_up(void)
{
    if (lab_machine.adopt != NULL)
        lab_machine.adopt();
    if (lab->scenario->Setup != NULL)
        lab->scenario->Setup();
    lab_thread_start_all();
}

bool lab_explore_prepare(const LAB_SCENARIO *scenario)
{
    lab->scenario = scenario;
    if (scenario->Model != NULL)
        lab_set_model(scenario->Model);
    if (scenario->Flags & LAB_PRECISE)
        lab->options.precise = true;
    if (scenario->MaximumSchedules != 0)
        lab->options.schedules = scenario->MaximumSchedules;
    lab->random = (lab->options.seed ^ 0x9E3779B97F4A7C15ull) | 1;
    lab->longest = 64;
    lab_signals_install();
    if (!lab_sched_prepare(set_up))
        return false;
    lab->clears_frames = lab->run.thread_count != 0 && lab_fiber_clears_frames(lab->run.threads[0].entry);
    lab->run.spurious = scenario->SpuriousWakes;
    lab->run.failures = scenario->AllocationFailures;
    lab->run.deaths = scenario->Deaths;
    lab->run.kills = scenario->Kills;
    lab->run.weak_failures = scenario->WeakFailures != 0 ? scenario->WeakFailures : lab->options.weak_failures;
    lab->run.deferred = DEFERRALS;
    lab->run.timeouts = lab_bounds_timeouts(scenario);
    lab->run.reuses = lab_bounds_reuses(scenario);
    lab_memory_snapshot();
    return true;
}

/* In a process of its own. */
void lab_explore_scenario(const LAB_SCENARIO *scenario)
{
    double start = lab_explore_seconds();

    memset(&lab->result, 0, sizeof(lab->result));
    lab->result.bound = -1;
    if (!lab_explore_prepare(scenario)) {
        lab->result.verdict = lab->verdict;
        lab->result.found_by = "Setup";
        if (lab->options.verbose && lab_may_report())
            lab_report_failure();
        return;
    }
    bool found = search();
    lab_progress_finish(found || lab->result.exhausted);
    lab->result.abstracted = lab->abstracted;
    lab->result.seconds = lab_explore_seconds() - start;
    if (found) {
        lab->result.verdict = lab->verdict;
        lab->result.found_at = lab->result.schedules + lab->result.pruned;
        lab_result r = lab->result;
        if (lab->options.verbose && lab_may_report()) {
            lab_minimise();
            lab_minimise_show(r.verdict);
        }
        lab->result = r;
    }
}
