/* families.c: the table of families. */
#include "soak.h"

const soak_family *const soak_families[] = {
    &events_family,
    &gates_family,
    &event_pairs_family,
    &semaphores_family,
    &mutants_family,
    &any_all_family,
    &timers_family,
    &user_timers_family,
    &executive_timers_family,
    &queues_family,
    &pushlocks_family,
    &cache_aware_family,
    &auto_expand_family,
    &address_pushlocks_family,
    &resources_family,
    &fast_resources_family,
    &user_resources_family,
    &fast_mutexes_family,
    &spinlocks_family,
    &queued_spinlocks_family,
    &shared_spinlocks_family,
    &interrupts_family,
    &rundown_family,
    &fast_references_family,
    &lists_family,
    &keyed_events_family,
    &alerts_family,
    &address_waits_family,
    &srw_locks_family,
    &condition_variables_family,
    &critical_sections_family,
    &run_once_family,
    &barriers_family,
    &ports_family,
    &wait_packets_family,
    &pool_work_family,
    &pool_waits_family,
    &pool_timers_family,
    &work_queues_family,
    &dpcs_family,
    &apcs_family,
    &handles_family,
    &names_family,
    &storage_family,
    &descriptors_family,
    &processes_family,
    &threads_family,
    &no_memory_family,
};

const unsigned soak_family_count = ARRAYSIZE(soak_families);

static lone_counter steps[ARRAYSIZE(soak_families)];

unsigned long soak_steps(unsigned family)
{
    return __atomic_load_n(&steps[family].value, __ATOMIC_RELAXED);
}

/* Now and then a step that tolerates it gets no memory. */
void soak_step(unsigned family, test_random *random)
{
    const soak_family *chosen = soak_families[family];
    bool without_heap = chosen->without_heap && one_in(random, 16);

    if (without_heap)
        heap_refuses(0);
    chosen->step(random);
    if (without_heap)
        heap_gives();
    __atomic_add_fetch(&steps[family].value, 1, __ATOMIC_RELAXED);
}

bool soak_is_chosen(unsigned family)
{
    return soak.family == NULL || strcmp(soak.family, soak_families[family]->name) == 0;
}

static uint32_t weight(unsigned family)
{
    return soak_is_chosen(family) ? soak_families[family]->weight : 0;
}

unsigned soak_choose_family(test_random *random)
{
    unsigned family = 0;
    uint32_t all = 0, choice;

    for (unsigned i = 0; i < soak_family_count; i++)
        all += weight(i);
    for (choice = random_below(random, all); choice >= weight(family); family++)
        choice -= weight(family);
    return family;
}
