/*
 * ends.c: in which states of memory schedules end (--ends). Schedules that equal each other up to the order of independent steps end
 * in the same state. So every exhaustive search finds the same set, whatever it leaves out: lab/self/ends.py.
 */
#include "engine.h"

#include <sys/mman.h>

#define FIRST_ENDS 1024u

struct lab_end_set {
    uint64_t *of; /* a hash table; 0: free */
    uint32_t size;
};

static bool add(struct lab_end_set *set, uint64_t hash)
{
    uint32_t index = (uint32_t)(hash >> 32) % set->size;

    while (set->of[index] != 0 && set->of[index] != hash)
        index = (index + 1) % set->size;
    bool is_new = set->of[index] == 0;
    set->of[index] = hash;
    return is_new;
}

static void grow(struct lab_end_set *set)
{
    struct lab_end_set larger = {lab_memory_map(set->size * 2 * sizeof(uint64_t)), set->size * 2};

    for (uint32_t i = 0; i < set->size; i++)
        if (set->of[i] != 0)
            add(&larger, set->of[i]);
    munmap(set->of, set->size * sizeof(uint64_t));
    *set = larger;
}

/* The schedule has ended. */
void lab_ends_note(void)
{
    if (!lab->options.ends)
        return;
    if (lab->ends == NULL) {
        lab->ends = lab_memory_map(sizeof(*lab->ends));
        lab->ends->of = lab_memory_map(FIRST_ENDS * sizeof(uint64_t));
        lab->ends->size = FIRST_ENDS;
    }
    uint64_t hash = lab_memory_hash() | 1;
    if (!add(lab->ends, hash))
        return;
    lab->result.ends++;
    lab->result.ends_hash += hash;
    if (lab->result.ends == lab->ends->size / 2)
        grow(lab->ends);
}
