/*
 * guarded.h: items that must not be touched for a while, each on a page of its own. A list walk that reaches one of
 * them faults: so a test of an operation's cost counts steps, not time.
 */
#ifndef INTERLOCK_TESTS_GUARDED_H
#define INTERLOCK_TESTS_GUARDED_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct guarded {
    char *memory;
    size_t page;
    size_t count;
} guarded;

static inline guarded guarded_items(size_t count)
{
    guarded g = {.page = (size_t)sysconf(_SC_PAGESIZE), .count = count};
    g.memory = mmap(NULL, count * g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(g.memory, MAP_FAILED);
    return g;
}

static inline void *guarded_item(const guarded *g, size_t index)
{
    return g->memory + index * g->page;
}

/* All but the first and the last `spared` items. */
static inline void guard(const guarded *g, size_t spared)
{
    assert_int_equal(mprotect(guarded_item(g, spared), (g->count - 2 * spared) * g->page, PROT_NONE), 0);
}

static inline void unguard(const guarded *g)
{
    assert_int_equal(mprotect(g->memory, g->count * g->page, PROT_READ | PROT_WRITE), 0);
}

static inline void free_guarded(guarded *g)
{
    assert_int_equal(munmap(g->memory, g->count * g->page), 0);
}

#endif
