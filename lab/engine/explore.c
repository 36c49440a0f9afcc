/*
 * explore.c: which schedules are run.
 *
 * dpor: every schedule that can make a difference. A depth-first search with source sets (Abdulla, Aronis, Jonsson,
 *    Sagonas 2014) and sleep sets: when a step is made that could also have come before an earlier one of another
 *    thread, the node before that one gets a thread to try there; what was tried from a node sleeps in its other
 *    branches until a step is made that it does not commute with.
 * bounded: every schedule with at most so many preemptions, at steps on variables that are shared. No reduction.
 * pct: random priorities with d - 1 random changes; finds a bug of depth d with a probability that is known.
 * random: a random thread at every step on a shared variable.
 * portfolio: a few of the random kinds; dpor; if that does not come to an end in half of the time, bounded with 0, 1,
 *    2, ... preemptions for a quarter; and the random kinds by turns.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BIT(n)             ((uint16_t)(1u << (n)))
#define MINIMISING_RUNS    4000
#define MINIMISING_SECONDS 3.0
#define DEFERRALS          2
#define QUICK_SCHEDULES    500
#define SPLIT_DEPTH        6

/* Processor time: what else the host does is none of our business. */
double lab_explore_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint32_t random_below(uint32_t limit)
{
    lab->random ^= lab->random >> 12;
    lab->random ^= lab->random << 25;
    lab->random ^= lab->random >> 27;
    return (uint32_t)(((lab->random * 0x2545F4914F6CDD1Dull) >> 32) * limit >> 32);
}

/* Two steps commute. */
static bool accesses_conflict(const lab_operation *a, const lab_operation *b)
{
    for (uint32_t i = 0; i < a->accesses; i++)
        for (uint32_t j = 0; j < b->accesses; j++)
            if (a->access[i].cell == b->access[j].cell && a->access[i].cell != NO_CELL &&
                (a->access[i].write || b->access[j].write))
                return true;
    return false;
}

static bool independent(const lab_operation *a, uint8_t a_thread, const lab_operation *b, uint8_t b_thread)
{
    if (a->kind == OP_INTERRUPT && a->address == b_thread)
        return false;
    if (b->kind == OP_INTERRUPT && b->address == a_thread)
        return false;
    return !accesses_conflict(a, b);
}

static uint8_t lowest(uint16_t set)
{
    return (uint8_t)__builtin_ctz(set);
}

/* Goes on with who runs, else with the first that is no service thread. */
static uint8_t prefer(uint16_t set)
{
    if (lab->current != NULL && (set & BIT(lab->current->number)) && lab->current->state == THREAD_READY &&
        !lab->current->asleep)
        return lab->current->number;
    for (uint16_t left = set; left != 0; left &= (uint16_t)(left - 1)) {
        const lab_thread *t = &lab->run.threads[lowest(left)];
        if (!t->service && t->state == THREAD_READY && !t->asleep)
            return t->number;
    }
    for (uint16_t left = set; left != 0; left &= (uint16_t)(left - 1))
        if (lab->run.threads[lowest(left)].state == THREAD_READY && !lab->run.threads[lowest(left)].asleep)
            return lowest(left);
    return lowest(set);
}

static uint16_t inherit_sleep(int32_t previous)
{
    if (previous < 0)
        return 0;
    const lab_node *p = &lab->nodes[previous];
    const lab_step *made = &lab->steps[p->step];
    uint16_t set = (uint16_t)((p->sleep | p->done) & ~BIT(p->chosen));

    for (uint16_t left = set; left != 0; left &= (uint16_t)(left - 1)) {
        const lab_thread *t = &lab->run.threads[lowest(left)];
        if (!independent(&made->op, made->thread, &t->op, t->number))
            set &= (uint16_t)~BIT(t->number);
    }
    return set;
}

/* The step that t makes next is on something that others use too. */
static bool is_on_shared(const lab_thread *t)
{
    if (t->op.kind == OP_START || t->op.kind == OP_LOCAL || t->op.kind == OP_END || t->op.kind == OP_RESUME)
        return t->op.kind == OP_LOCAL;
    for (uint32_t i = 0; i < t->op.accesses; i++)
        if (lab_cell_is_shared(&lab->cells[t->op.access[i].cell]))
            return true;
    return false;
}

static bool runs_on(uint16_t enabled)
{
    const lab_thread *t = lab->current;
    return t != NULL && t->state == THREAD_READY && (enabled & BIT(t->number)) && !is_on_shared(t);
}

/*
 * Several processes share a tree. At the first SPLIT_DEPTH branchings everything is tried by each of them, and a hash
 * of what was chosen there says whose the rest is. What sleeps in a branch because it was tried in another is tried
 * there by somebody.
 */
static bool is_shared_out(void)
{
    return lab->options.jobs > 1 && (lab->active == STRATEGY_DPOR || lab->active == STRATEGY_BOUNDED);
}

static void leave_to_others(uint32_t nodes)
{
    uint64_t hash = 1;

    for (uint32_t i = 0; i < nodes; i++)
        hash = (hash ^ lab->nodes[i].chosen) * 0x9E3779B97F4A7C15ull + i;
    if ((hash >> 33) % lab->options.jobs != lab->options.job)
        lab_sched_leave(RUN_SKIPPED);
}

static uint8_t pick_dpor(lab_node *n, int32_t previous)
{
    n->sleep = inherit_sleep(previous);
    uint16_t awake = (uint16_t)(n->enabled & ~n->sleep);
    if (awake == 0) {
        lab->node_count--; /* it decides nothing */
        lab_sched_leave(RUN_PRUNED);
    }
    uint8_t chosen = prefer(awake);
    n->backtrack = is_shared_out() && lab->run.branches <= SPLIT_DEPTH ? n->enabled : BIT(chosen);
    return chosen;
}

static uint8_t pick_bounded(lab_node *n, int32_t previous)
{
    bool can_stay =
        lab->current != NULL && lab->current->state == THREAD_READY && (n->enabled & BIT(lab->current->number));
    uint8_t chosen = prefer(n->enabled);

    n->preemptions = previous >= 0 ? lab->nodes[previous].preemptions : 0;
    n->sleep = 0;
    n->backtrack = BIT(chosen);
    if (!can_stay)
        n->backtrack = n->enabled;
    else if (n->preemptions < lab->options.preemptions && !runs_on(n->enabled))
        n->backtrack = n->enabled;
    return chosen;
}

static uint8_t pick_random(uint16_t enabled)
{
    if (runs_on(enabled))
        return lab->current->number;
    uint32_t index = random_below((uint32_t)__builtin_popcount(enabled));
    while (index-- != 0)
        enabled &= (uint16_t)(enabled - 1);
    return lowest(enabled);
}

static uint8_t pick_pct(uint16_t enabled)
{
    if (runs_on(enabled))
        return lab->current->number;
    for (uint32_t i = 0; i + 1 < lab->options.depth; i++)
        if (lab->change_at[i] == lab->run.steps && lab->current != NULL)
            lab->priority[lab->current->number] = i;
    uint8_t best = lowest(enabled);
    for (uint16_t left = enabled; left != 0; left &= (uint16_t)(left - 1))
        if (lab->priority[lowest(left)] > lab->priority[best])
            best = lowest(left);
    return best;
}

static uint8_t pick_given(uint16_t enabled)
{
    while (lab->given_next < lab->given_count) {
        lab_decision d = lab->given[lab->given_next];

        if (d.choice && !lab->lenient)
            break;
        lab->given_next++;
        if (!d.choice && (enabled & BIT(d.value)))
            return d.value;
        if (!lab->lenient)
            lab_sched_fail(VERDICT_UNSUPPORTED, 0, "the token does not fit: thread %c cannot run at step %u",
                           'a' + d.value, lab->run.steps);
    }
    return prefer(enabled);
}

static lab_node *new_node(lab_node_kind kind)
{
    if (lab->node_count == MAX_NODES)
        lab_sched_leave(RUN_TRUNCATED);
    lab_node *n = &lab->nodes[lab->node_count++];
    n->kind = (uint8_t)kind;
    n->done = 0;
    return n;
}

uint8_t lab_explore_pick(uint16_t enabled)
{
    bool branches = (enabled & (enabled - 1)) != 0;

    if (branches && is_shared_out() && ++lab->run.branches == SPLIT_DEPTH + 1)
        leave_to_others(lab->node_count);
    int32_t previous = lab->last_node;
    int32_t index = (int32_t)lab->node_count;

    if ((uint32_t)index < lab->replay_count) {
        lab_node *n = &lab->nodes[lab->node_count++];
        if (n->kind != NODE_THREAD || n->enabled != enabled)
            lab_sched_fail(VERDICT_UNSUPPORTED, 0, "the program does not do the same thing again (decision %d)", index);
        lab->last_node = index;
        return n->chosen;
    }
    lab_node *n = new_node(NODE_THREAD);
    n->enabled = enabled;
    n->step = NO_STEP;
    switch (lab->active) {
    case STRATEGY_DPOR:
        n->chosen = pick_dpor(n, previous);
        break;
    case STRATEGY_BOUNDED:
        n->chosen = pick_bounded(n, previous);
        break;
    case STRATEGY_PCT:
        n->chosen = pick_pct(enabled);
        break;
    case STRATEGY_REPLAY:
        n->chosen = pick_given(enabled);
        break;
    default:
        n->chosen = pick_random(enabled);
        break;
    }
    lab->last_node = index;
    return n->chosen;
}

static uint32_t choose_given(uint32_t count)
{
    if (lab->given_next < lab->given_count && lab->given[lab->given_next].choice) {
        uint32_t value = lab->given[lab->given_next++].value;
        return value < count ? value : 0;
    }
    return 0;
}

uint32_t lab_explore_choose(uint32_t count)
{
    count = count > 255 ? 255 : count;
    if (lab->node_count < lab->replay_count) {
        lab_node *n = &lab->nodes[lab->node_count++];
        if (n->kind != NODE_CHOICE || n->count != count)
            lab_sched_fail(VERDICT_UNSUPPORTED, 0, "the program does not do the same thing again (decision %u)",
                           lab->node_count - 1);
        return n->chosen;
    }
    lab_node *n = new_node(NODE_CHOICE);
    n->count = (uint8_t)count;
    n->chosen = 0;
    if (lab->active == STRATEGY_REPLAY)
        n->chosen = (uint8_t)choose_given(count);
    else if (lab->active == STRATEGY_PCT || lab->active == STRATEGY_RANDOM)
        n->chosen = (uint8_t)random_below(count);
    return n->chosen;
}

static bool happened_before(int32_t earlier, const lab_vclock *clock)
{
    return clock->at[lab->steps[earlier].thread] >= lab->steps[earlier].ordinal;
}

/*
 * The step that is about to be made takes a step from another thread that could be made now (a wake, its timeout), so
 * that one is never seen to come later: it is to be tried in its place.
 */
void lab_explore_instead(uint8_t thread)
{
    lab_node *n = &lab->nodes[lab->last_node];

    if (lab->active == STRATEGY_DPOR)
        n->backtrack |= n->enabled & BIT(thread);
}

/*
 * `later` is being made and could have come before `earlier`. Those who could begin a schedule in which it does are the
 * initials of what lies between without depending on `earlier`; unless one of them is tried at that node anyway, one is
 * added.
 */
void lab_explore_race(int32_t earlier, int32_t later, const lab_vclock *before)
{
    lab_node *n = &lab->nodes[lab->steps[earlier].node];
    const lab_step *late = &lab->steps[later];
    lab_vclock clock = *before;
    int32_t first[MAX_THREADS];
    uint16_t seen = 0, initials = 0;

    if (lab->last_node < (int32_t)lab->replay_count - 1)
        return; /* seen by an earlier schedule with the same beginning */
    for (int32_t k = earlier + 1; k <= later; k++) {
        const lab_step *s = &lab->steps[k];
        const lab_vclock *own = k == later ? &clock : &s->dep;
        bool initial = true;

        if (k < later && happened_before(earlier, &s->dep))
            continue;
        if (k < later && !independent(&s->op, s->thread, &late->op, late->thread))
            lab_clock_join(&clock, &s->dep);
        if (seen & BIT(s->thread))
            continue;
        for (uint16_t left = seen; left != 0 && initial; left &= (uint16_t)(left - 1))
            initial = !happened_before(first[lowest(left)], own);
        seen |= BIT(s->thread);
        first[s->thread] = k;
        initials |= (uint16_t)(initial ? BIT(s->thread) : 0);
    }
    if (initials & (n->backtrack | n->sleep))
        return;
    initials &= n->enabled;
    if (initials != 0)
        n->backtrack |= initials & BIT(late->thread) ? BIT(late->thread) : BIT(lowest(initials));
}

/* The next schedule of a depth-first search; FALSE: there is none. */
static bool backtrack(void)
{
    for (uint32_t i = lab->node_count; i-- != 0;) {
        lab_node *n = &lab->nodes[i];

        if (n->kind == NODE_CHOICE) {
            if (n->chosen + 1 < n->count) {
                n->chosen++;
                lab->replay_count = i + 1;
                return true;
            }
            continue;
        }
        n->done |= BIT(n->chosen);
        uint16_t left = (uint16_t)(n->backtrack & ~n->done & ~n->sleep);
        if (left != 0) {
            n->chosen = lowest(left);
            lab->replay_count = i + 1;
            return true;
        }
    }
    return false;
}

/* bounded: a preemption is counted at the node after it. */
static void count_preemptions(void)
{
    uint8_t count = 0;
    int32_t previous = -1;

    for (uint32_t i = 0; i < lab->replay_count; i++) {
        lab_node *n = &lab->nodes[i];

        if (n->kind != NODE_THREAD)
            continue;
        n->preemptions = count;
        if (previous >= 0 && n->chosen != lab->nodes[previous].chosen &&
            (n->enabled & BIT(lab->nodes[previous].chosen)))
            count++;
        n->preemptions = count;
        previous = (int32_t)i;
    }
}

static void prepare_random(lab_strategy active)
{
    if (active != STRATEGY_PCT)
        return;
    for (uint32_t i = 0; i < MAX_THREADS; i++)
        lab->priority[i] = 16 + random_below(1u << 30);
    for (uint32_t i = 0; i + 1 < lab->options.depth && i < 16; i++)
        lab->change_at[i] = random_below(lab->longest + 1);
}

static bool finds_failure(void)
{
    lab_run_end end = lab_sched_run();

    lab->result.schedules += end != RUN_PRUNED && end != RUN_SKIPPED;
    lab->result.pruned += end == RUN_PRUNED;
    lab->result.truncated += end == RUN_TRUNCATED;
    lab->result.steps += lab->run.steps;
    lab->longest = lab->run.steps > lab->longest ? lab->run.steps : lab->longest;
    return end == RUN_FAILED;
}

static bool is_over(uint64_t schedules, double until)
{
    return lab->result.schedules + lab->result.pruned >= schedules ||
           (((lab->result.schedules + lab->result.pruned) & 63) == 0 && lab_explore_seconds() >= until);
}

static bool search_tree(lab_strategy active, uint64_t schedules, double until)
{
    bool truncated = false;

    lab->active = active;
    lab->replay_count = 0;
    lab->cells_changed = false;
    uint32_t shared = lab->shared_changes;
    for (;;) {
        if (finds_failure())
            return true;
        truncated |= lab->end == RUN_TRUNCATED;
        if (lab->cells_changed || (active == STRATEGY_BOUNDED && shared != lab->shared_changes)) {
            lab->cells_changed = false;
            shared = lab->shared_changes;
            lab->replay_count = 0;
        } else if (!backtrack()) {
            lab->result.exhausted = !truncated;
            return false;
        }
        if (active == STRATEGY_BOUNDED)
            count_preemptions();
        if (is_over(schedules, until))
            return false;
    }
}

static bool search_randomly(lab_strategy active, uint64_t schedules, double until)
{
    lab->active = active;
    lab->replay_count = 0;
    do {
        prepare_random(active);
        if (finds_failure())
            return true;
    } while (!is_over(schedules, until));
    return false;
}

/* As many preemptions as there is time for; what was completed counts. */
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

/* Most bugs that there are turn up at once. */
static bool search_quickly(uint64_t schedules, double until)
{
    lab->result.found_by = "random";
    if (search_randomly(STRATEGY_RANDOM, QUICK_SCHEDULES < schedules ? QUICK_SCHEDULES : schedules, until))
        return true;
    lab->result.found_by = "pct";
    return search_randomly(STRATEGY_PCT, 2 * QUICK_SCHEDULES < schedules ? 2 * QUICK_SCHEDULES : schedules, until);
}

static bool search_portfolio(uint64_t schedules, double start, double seconds)
{
    if (search_quickly(schedules, start + seconds / 8))
        return true;
    lab->result.found_by = "dpor";
    if (search_tree(STRATEGY_DPOR, schedules / 2, start + seconds / 2))
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

/* Making a failure readable: the same verdict with as few switches as can be found. */

static uint32_t record_decisions(lab_decision *to)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lab->node_count; i++) {
        const lab_node *n = &lab->nodes[i];
        to[count++] = (lab_decision){n->kind == NODE_CHOICE, n->chosen};
    }
    return count;
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

/* Runs what is in lab->given; TRUE: the same failure, and better. */
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

static void minimise(void)
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

/* Once more, with a trace. */
static void show_failure(lab_verdict found)
{
    lab->active = STRATEGY_REPLAY;
    lab->replay_count = 0;
    lab->lenient = true;
    lab->tracing = true;
    if (lab_sched_run() != RUN_FAILED || lab->verdict != found)
        printf("  (the schedule does not fail again: the program depends on something the lab does not control)\n");
    lab->tracing = false;
    lab_report_failure();
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
        lab->result.found_by = "bounded";
        if (search_tree(STRATEGY_BOUNDED, schedules, until))
            return true;
        if (lab->result.exhausted)
            lab->result.bound = (int)lab->options.preemptions;
        lab->result.exhausted = false;
        return false;
    case STRATEGY_PCT:
        lab->result.found_by = "pct";
        return search_randomly(STRATEGY_PCT, schedules, until);
    case STRATEGY_RANDOM:
        lab->result.found_by = "random";
        return search_randomly(STRATEGY_RANDOM, schedules, until);
    default:
        lab->result.found_by = "portfolio";
        return search_portfolio(schedules, start, lab->options.seconds);
    }
}

static void prepare(const LAB_SCENARIO *scenario)
{
    lab->scenario = scenario;
    if (scenario->Model != NULL)
        lab_set_model(scenario->Model);
    if (scenario->MaximumSchedules != 0)
        lab->options.schedules = scenario->MaximumSchedules;
    lab->random = (lab->options.seed ^ 0x9E3779B97F4A7C15ull) | 1;
    lab->longest = 64;
    if (lab_machine.adopt != NULL)
        lab_machine.adopt();
    if (scenario->Setup != NULL)
        scenario->Setup();
    lab_sched_start_threads();
    lab->run.spurious = scenario->SpuriousWakes;
    lab->run.failures = scenario->AllocationFailures;
    lab->run.stale = scenario->StaleReads != 0 ? scenario->StaleReads : lab->options.stale;
    lab->run.deferred = DEFERRALS;
    lab->run.timeouts = scenario->Timeouts != 0 ? scenario->Timeouts : lab->options.timeouts;
    lab_memory_snapshot();
}

/* In a process of its own. */
void lab_explore_scenario(const LAB_SCENARIO *scenario)
{
    double start = lab_explore_seconds();

    prepare(scenario);
    memset(&lab->result, 0, sizeof(lab->result));
    lab->result.bound = -1;
    bool found = search();
    lab->result.seconds = lab_explore_seconds() - start;
    if (found) {
        lab->result.verdict = lab->verdict;
        lab->result.found_at = lab->result.schedules + lab->result.pruned;
        lab_result r = lab->result;
        if (lab->options.verbose && lab_may_report()) {
            minimise();
            show_failure(r.verdict);
        }
        lab->result = r;
    }
}

/* decisions: what lab_report_token wrote, behind the colon. */
static bool parse_decisions(const char *text)
{
    uint32_t count = 0;

    while (*text != '\0') {
        bool choice = *text == '~';
        if (!choice && (*text < 'a' || *text >= 'a' + MAX_THREADS))
            return false;
        uint8_t value = (uint8_t)(*text++ - 'a');
        char *end = (char *)text;
        unsigned long number = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 1;
        text = end;
        if (choice) {
            lab->given[count++] = (lab_decision){true, (uint8_t)number};
        } else {
            while (number-- != 0 && count < MAX_NODES)
                lab->given[count++] = (lab_decision){false, value};
        }
        if (count == MAX_NODES)
            return false;
    }
    lab->given_count = count;
    return true;
}

bool lab_explore_replay(const LAB_SCENARIO *scenario, const char *decisions)
{
    prepare(scenario);
    if (!parse_decisions(decisions)) {
        fprintf(stderr, "lab: this is not a replay token\n");
        exit(2);
    }
    lab->active = STRATEGY_REPLAY;
    lab->replay_count = 0;
    lab->lenient = false;
    lab->tracing = true;
    lab_run_end end = lab_sched_run();
    lab->tracing = false;
    if (end == RUN_FAILED)
        lab_report_failure();
    return end == RUN_FAILED;
}
