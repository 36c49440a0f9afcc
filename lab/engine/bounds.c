/*
 * bounds.c: the limits of a search that is called exhaustive, reported with the verdict if, and only if, something was
 * not tried because of them. How often the scenario itself allows a fault (SpuriousWakes, AllocationFailures, ...) is
 * part of the scenario, not a limit of the search.
 */
#include "engine.h"

#include <stdio.h>

/* The scenario's number, or the command line's. */
uint32_t lab_bounds_timeouts(const LAB_SCENARIO *scenario)
{
    return scenario->Timeouts != 0 ? scenario->Timeouts : lab->options.timeouts;
}

uint32_t lab_bounds_reuses(const LAB_SCENARIO *scenario)
{
    return scenario->Reuse != 0 ? scenario->Reuse : lab->options.reuses;
}

/* Without reduction there are too many schedules to read old values without a limit. */
uint32_t lab_bounds_stale(const LAB_SCENARIO *scenario, bool reduced)
{
    if (scenario->StaleReads != 0)
        return scenario->StaleReads;
    if (lab->options.stale != DEFAULT_LIMIT)
        return lab->options.stale;
    return reduced && lab->options.model == MODEL_C11 ? UNLIMITED : DEFAULT_STALE;
}

void lab_bounds_describe(const LAB_SCENARIO *scenario, const lab_result *r, char *text, size_t size)
{
    uint32_t reuses = lab_bounds_reuses(scenario);
    const struct {
        uint32_t cut;
        const char *format;
        uint32_t limit;
    } limits[] = {
        {CUT_TIMEOUTS, "at most %u timeouts", lab_bounds_timeouts(scenario)},
        {CUT_STALE, "at most %u stale values", lab_bounds_stale(scenario, r->bound < 0 || r->by_states)},
        {CUT_BEHIND, "at most %u accesses in a row behind a newer store", lab->options.behind},
        {CUT_DEFERRALS, "at most %u deferred interrupts", DEFERRALS},
        {CUT_REUSE, reuses == 0 ? "no reuse of freed memory" : "at most %u reuses of freed memory", reuses},
        {CUT_CHOICES, "at most %u values of a choice", MAX_CHOICES},
        {CUT_VERSIONS, "at most %u stores that a load may read", MAX_VERSIONS},
        {CUT_SLOTS, "races detected among the last %u accesses of 8 bytes", SLOTS + ASIDE_SLOTS},
        {CUT_LENT, "at most %u addresses of a stack that other threads access", MAX_LENT},
    };
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]) && used < size; i++) {
        char limit[80];

        if (!(r->cut & limits[i].cut))
            continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(limit, sizeof(limit), limits[i].format, limits[i].limit);
#pragma GCC diagnostic pop
        used += (size_t)snprintf(text + used, size - used, "%s %s", used == 0 ? " with" : " and", limit);
    }
}

void lab_bounds_describe_abstracted(const lab_result *r, char *text, size_t size)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } kinds[] = {{ABSTRACT_EVENTS, "events"}, {ABSTRACT_SEMAPHORES, "semaphores"}, {ABSTRACT_ALERTS, "alerts"},
                 {ABSTRACT_LOCKS, "locks"}, {ABSTRACT_SLEEPS, "sleeps"}};
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && used < size; i++)
        if (r->abstracted & kinds[i].kind)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ", kinds[i].name);
}
