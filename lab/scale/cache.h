/*
 * cache.h: the caches of the machine on which locks are counted. One for each processor, of unlimited size, kept
 * coherent by MESI in lines of 64 bytes. A line is never evicted, so it is cold once, and afterwards only accesses of
 * other processors move it.
 */
#ifndef LAB_SCALE_CACHE_H
#define LAB_SCALE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64

typedef enum cache_answer {
    CACHE_HIT,
    CACHE_COLD,     /* no cache had it */
    CACHE_TRANSFER, /* another cache had it */
    CACHE_UPGRADE   /* this cache and others had it: a write had to invalidate it there */
} cache_answer;

typedef enum cache_line_state {
    LINE_UNCACHED,
    LINE_EXCLUSIVE, /* one cache has it, unchanged */
    LINE_MODIFIED,  /* one cache has it, changed */
    LINE_SHARED     /* several caches have it */
} cache_line_state;

typedef enum cache_line_kind { KIND_OTHER, KIND_LOCK, KIND_DATA, KINDS } cache_line_kind;

typedef struct cache_line {
    uintptr_t address;   /* divided by CACHE_LINE; 0: an empty place of the table */
    uint64_t busy_until; /* of the machine that uses the model: transfers of a line are serialized */
    uint64_t wanted_in;  /* likewise: nodes in which it is, or will be after pending transfers */
    uint64_t transfers, invalidations;
    uint32_t sharers; /* LINE_SHARED: number of its set */
    uint16_t owner;   /* LINE_EXCLUSIVE, LINE_MODIFIED */
    uint8_t state;
    uint8_t kind;
} cache_line;

/* The counts since cache_clear_counts, for lines of one kind. */
typedef struct cache_counts {
    uint64_t hits, cold, transfers, upgrades, invalidations;
    uint64_t crossings; /* transfers and upgrades that involved another node */
} cache_counts;

/* Accesses that involved other caches. */
static inline uint64_t cache_remote(const cache_counts *counts)
{
    return counts->transfers + counts->upgrades;
}

typedef void cache_invalidated(uint32_t processor, const cache_line *line);

void cache_initialize(uint32_t processors, cache_invalidated *invalidated); /* resets everything; NULL: no callback */
/* The first `processors` are divided into nodes of the same size; the others belong to the nodes in turn. */
void cache_divide(uint32_t processors, uint32_t nodes);
uint32_t cache_node(uint32_t processor);
bool cache_crosses(const cache_line *line, uint32_t processor, bool write); /* would it involve another node? */
cache_line *cache_find(uintptr_t address);                                  /* creates it, uncached, if it is new */
bool cache_has(const cache_line *line, uint32_t processor, bool write);     /* would it be a hit? */
cache_answer cache_access(cache_line *line, uint32_t processor, bool write);
void cache_set_kind(uintptr_t address, size_t size, cache_line_kind kind);
void cache_clear_counts(void);
const cache_counts *cache_get_counts(cache_line_kind kind);

#endif
