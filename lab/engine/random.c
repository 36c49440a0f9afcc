/*
 * random.c: random schedules. pct: random priorities with d - 1 random changes; finds a bug of depth d with a known
 * probability. random: a random thread at every step on a shared variable.
 */
#include "engine.h"

uint32_t lab_random_below(uint32_t limit)
{
    lab->random ^= lab->random >> 12;
    lab->random ^= lab->random << 25;
    lab->random ^= lab->random >> 27;
    return (uint32_t)(((lab->random * 0x2545F4914F6CDD1Dull) >> 32) * limit >> 32);
}

uint8_t lab_random_pick(uint16_t enabled)
{
    if (lab_explore_runs_on(enabled))
        return lab->current->number;
    uint32_t index = lab_random_below((uint32_t)__builtin_popcount(enabled));
    while (index-- != 0)
        enabled &= (uint16_t)(enabled - 1);
    return lab_lowest(enabled);
}

uint8_t lab_random_pick_pct(uint16_t enabled)
{
    if (lab_explore_runs_on(enabled))
        return lab->current->number;
    for (uint32_t i = 0; i + 1 < lab->options.depth; i++)
        if (lab->change_at[i] == lab->run.steps && lab->current != NULL)
            lab->priority[lab->current->number] = i;
    uint8_t best = lab_lowest(enabled);
    for (uint16_t left = enabled; left != 0; left &= (uint16_t)(left - 1))
        if (lab->priority[lab_lowest(left)] > lab->priority[best])
            best = lab_lowest(left);
    return best;
}

void lab_random_prepare(lab_strategy active)
{
    if (active != STRATEGY_PCT)
        return;
    for (uint32_t i = 0; i < MAX_THREADS; i++)
        lab->priority[i] = 16 + lab_random_below(1u << 30);
    for (uint32_t i = 0; i + 1 < lab->options.depth && i < 16; i++)
        lab->change_at[i] = lab_random_below(lab->longest + 1);
}
