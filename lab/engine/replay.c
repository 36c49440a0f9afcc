/* replay.c: replays a given schedule, from a token or from the minimiser. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

uint8_t lab_replay_pick(uint16_t enabled)
{
    while (lab->given_next < lab->given_count) {
        lab_decision d = lab->given[lab->given_next];

        if (d.choice && !lab->lenient)
            break;
        lab->given_next++;
        if (!d.choice && (enabled & LAB_BIT(d.value)))
            return d.value;
        if (!lab->lenient)
            lab_sched_fail(VERDICT_UNSUPPORTED, 0, "the token does not fit: thread %c cannot run at step %u",
                           'a' + d.value, lab->run.steps);
    }
    return lab_explore_prefer(enabled);
}

uint32_t lab_replay_choose(uint32_t count)
{
    if (lab->given_next < lab->given_count && lab->given[lab->given_next].choice) {
        uint32_t value = lab->given[lab->given_next++].value;
        return value < count ? value : 0;
    }
    return 0;
}

/* decisions: what lab_report_token wrote after the colon. */
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

bool lab_replay_run(const LAB_SCENARIO *scenario, const char *decisions)
{
    if (!lab_explore_prepare(scenario)) {
        lab_report_failure();
        return true;
    }
    if (!parse_decisions(decisions)) {
        fprintf(stderr, "lab: this is not a replay token\n");
        exit(2);
    }
    lab->active = STRATEGY_REPLAY;
    lab->replay_count = 0;
    lab->lenient = false;
    lab->tracing = true;
    lab->access_count = 0;
    lab->earlier.pc = 0;
    lab_run_end end = lab_sched_run();
    lab->tracing = false;
    if (end == RUN_FAILED)
        lab_report_failure();
    return end == RUN_FAILED;
}
