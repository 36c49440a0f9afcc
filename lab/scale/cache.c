/*
 * cache.c: MESI, seen from the line: it is in no cache, in one (exclusive or modified), or in a set of them.
 *
 *                  read by the one       read by another        write by the one       write by another
 *     uncached     cold -> exclusive                            cold -> modified
 *     exclusive    hit                   transfer -> shared     hit -> modified        transfer -> modified
 *     modified     hit                   transfer -> shared     hit                    transfer -> modified
 *     shared       hit                   transfer, joins        upgrade -> modified    transfer -> modified
 *
 * A write takes the line from every other cache that has it: each of these is an invalidation.
 */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PLACES (1u << 16)
#define NO_SET       0

typedef struct cache_model {
    uint32_t processors;
    uint32_t divided, nodes; /* processors of all nodes */
    cache_invalidated *invalidated;
    cache_line **lines; /* a hash table, open addressing */
    size_t places, used;
    cache_line *fresh; /* room for lines, in blocks: they do not move */
    size_t fresh_left;
    uint64_t *sets; /* a bit for each processor */
    uint32_t set_words, set_count, set_room;
    uint32_t *free_sets;
    uint32_t free_count;
    cache_counts counts[KINDS];
} cache_model;

static cache_model model;

static void *need(void *memory)
{
    if (memory == NULL) {
        perror("lab-scale");
        exit(2);
    }
    return memory;
}

void cache_initialize(uint32_t processors, cache_invalidated *invalidated)
{
    free(model.lines);
    free(model.sets);
    free(model.free_sets);
    memset(&model, 0, sizeof(model));
    model.processors = processors;
    cache_divide(processors, 1);
    model.invalidated = invalidated;
    model.places = FIRST_PLACES;
    model.lines = need(calloc(model.places, sizeof(*model.lines)));
    model.set_words = (processors + 63) / 64;
    model.set_count = 1; /* NO_SET */
}

/* Nodes. */

void cache_divide(uint32_t processors, uint32_t nodes)
{
    model.divided = processors;
    model.nodes = nodes;
}

uint32_t cache_node(uint32_t processor)
{
    return processor % model.divided * model.nodes / model.divided;
}

/* Lines. */

static size_t place_of(uintptr_t number)
{
    size_t place = (number * 0x9E3779B97F4A7C15ull) >> 20 & (model.places - 1);

    while (model.lines[place] != NULL && model.lines[place]->address != number)
        place = (place + 1) & (model.places - 1);
    return place;
}

static void grow_table(void)
{
    cache_line **old = model.lines;
    size_t count = model.places;

    model.places *= 2;
    model.lines = need(calloc(model.places, sizeof(*model.lines)));
    for (size_t i = 0; i < count; i++)
        if (old[i] != NULL)
            model.lines[place_of(old[i]->address)] = old[i];
    free(old);
}

static cache_line *new_line(uintptr_t number)
{
    if (model.fresh_left == 0) {
        model.fresh_left = 4096;
        model.fresh = need(calloc(model.fresh_left, sizeof(*model.fresh)));
    }
    model.fresh_left--;
    model.fresh->address = number;
    return model.fresh++;
}

cache_line *cache_find(uintptr_t address)
{
    uintptr_t number = address / CACHE_LINE;
    size_t place = place_of(number);

    if (model.lines[place] != NULL)
        return model.lines[place];
    if (++model.used > model.places / 2) {
        grow_table();
        place = place_of(number);
    }
    return model.lines[place] = new_line(number);
}

void cache_set_kind(uintptr_t address, size_t size, cache_line_kind kind)
{
    for (uintptr_t at = address & ~(uintptr_t)(CACHE_LINE - 1); at < address + size; at += CACHE_LINE)
        cache_find(at)->kind = (uint8_t)kind;
}

/* Sets of processors. */

static uint64_t *set_of(const cache_line *line)
{
    return &model.sets[(size_t)line->sharers * model.set_words];
}

static uint32_t new_set(void)
{
    if (model.free_count != 0)
        return model.free_sets[--model.free_count];
    if (model.set_count >= model.set_room) {
        model.set_room = model.set_room != 0 ? model.set_room * 2 : 1024;
        model.sets = need(realloc(model.sets, (size_t)model.set_room * model.set_words * sizeof(uint64_t)));
        model.free_sets = need(realloc(model.free_sets, model.set_room * sizeof(uint32_t)));
    }
    return model.set_count++;
}

static bool is_in(const uint64_t *set, uint32_t processor)
{
    return (set[processor / 64] >> processor % 64 & 1) != 0;
}

static void join(uint64_t *set, uint32_t processor)
{
    set[processor / 64] |= 1ull << processor % 64;
}

/* Accesses. */

static void take_from(cache_line *line, uint32_t processor)
{
    line->invalidations++;
    model.counts[line->kind].invalidations++;
    if (model.invalidated != NULL)
        model.invalidated(processor, line);
}

static void take_from_sharers(cache_line *line, uint32_t writer)
{
    for (uint32_t word = 0; word < model.set_words; word++) {
        for (uint64_t left = set_of(line)[word]; left != 0; left &= left - 1) {
            uint32_t processor = word * 64 + (uint32_t)__builtin_ctzll(left);

            if (processor != writer)
                take_from(line, processor);
        }
    }
    model.free_sets[model.free_count++] = line->sharers;
    line->sharers = NO_SET;
}

static void share(cache_line *line, uint32_t processor)
{
    if (line->state != LINE_SHARED) {
        line->sharers = new_set();
        memset(set_of(line), 0, model.set_words * sizeof(uint64_t));
        join(set_of(line), line->owner);
        line->state = LINE_SHARED;
    }
    join(set_of(line), processor);
}

bool cache_has(const cache_line *line, uint32_t processor, bool write)
{
    switch ((cache_line_state)line->state) {
    case LINE_EXCLUSIVE:
    case LINE_MODIFIED:
        return line->owner == processor;
    case LINE_SHARED:
        return !write && is_in(set_of(line), processor);
    case LINE_UNCACHED:
        break;
    }
    return false;
}

static bool has_sharer(const cache_line *line, uint32_t node, bool inside)
{
    for (uint32_t word = 0; word < model.set_words; word++)
        for (uint64_t left = set_of(line)[word]; left != 0; left &= left - 1)
            if ((cache_node(word * 64 + (uint32_t)__builtin_ctzll(left)) == node) == inside)
                return true;
    return false;
}

/* The nearest cache that has the line serves a read; a write waits for all of them. Memory is equally near to all. */
bool cache_crosses(const cache_line *line, uint32_t processor, bool write)
{
    if (model.nodes == 1 || line->state == LINE_UNCACHED || cache_has(line, processor, write))
        return false;
    uint32_t node = cache_node(processor);
    if (line->state != LINE_SHARED)
        return cache_node(line->owner) != node;
    return write ? has_sharer(line, node, false) : !has_sharer(line, node, true);
}

static cache_answer miss(const cache_line *line, uint32_t processor)
{
    if (line->state == LINE_UNCACHED)
        return CACHE_COLD;
    return line->state == LINE_SHARED && is_in(set_of(line), processor) ? CACHE_UPGRADE : CACHE_TRANSFER;
}

static void write_line(cache_line *line, uint32_t processor)
{
    if (line->state == LINE_SHARED)
        take_from_sharers(line, processor);
    else if (line->state != LINE_UNCACHED && line->owner != processor)
        take_from(line, line->owner);
    line->owner = (uint16_t)processor;
    line->state = LINE_MODIFIED;
}

static void read_line(cache_line *line, uint32_t processor)
{
    if (line->state != LINE_UNCACHED) {
        share(line, processor);
        return;
    }
    line->owner = (uint16_t)processor;
    line->state = LINE_EXCLUSIVE;
}

cache_answer cache_access(cache_line *line, uint32_t processor, bool write)
{
    cache_counts *counts = &model.counts[line->kind];

    if (cache_has(line, processor, write)) {
        counts->hits++;
        if (write)
            line->state = LINE_MODIFIED;
        return CACHE_HIT;
    }
    cache_answer answer = miss(line, processor);
    counts->crossings += cache_crosses(line, processor, write);
    counts->cold += answer == CACHE_COLD;
    counts->transfers += answer == CACHE_TRANSFER;
    counts->upgrades += answer == CACHE_UPGRADE;
    line->transfers += answer != CACHE_COLD;
    if (write)
        write_line(line, processor);
    else
        read_line(line, processor);
    return answer;
}

void cache_clear_counts(void)
{
    memset(model.counts, 0, sizeof(model.counts));
    for (size_t i = 0; i < model.places; i++)
        if (model.lines[i] != NULL)
            model.lines[i]->transfers = model.lines[i]->invalidations = 0;
}

const cache_counts *cache_get_counts(cache_line_kind kind)
{
    return &model.counts[kind];
}
