/*
 * race.c: data races by vector clocks. A granule of 8 bytes records the last accesses of this schedule, each with its
 * thread's clock, its bytes, and whether it wrote and was atomic. Two accesses race if they share a byte, at least one
 * writes, at least one is not atomic, and neither happens before the other.
 */
#include "engine.h"

#include <string.h>

static void lab_report_race(const lab_slot *earlier, uintptr_t address, bool write, bool atomic, uintptr_t pc)
{
    char here[256], there[256];

    lab_report_place(pc, here, sizeof(here));
    lab_report_place(earlier->pc, there, sizeof(there));
    lab_report_earlier(address, earlier->pc, earlier->thread);
    lab_sched_fail(VERDICT_RACE, pc, "%s %s by thread %c at %s and %s %s by thread %c at %s, on $%lx$",
                   earlier->flags & SLOT_ATOMIC ? "atomic" : "plain", earlier->flags & SLOT_WRITE ? "write" : "read",
                   'a' + earlier->thread, there, atomic ? "atomic" : "plain", write ? "write" : "read",
                   'a' + lab->current->number, here, address);
}

static inline bool races(const lab_slot *old, const lab_slot *new, bool ordered)
{
    return !ordered && (old->mask & new->mask) && ((old->flags | new->flags) & SLOT_WRITE) &&
           !(old->flags & new->flags & SLOT_ATOMIC);
}

/* What races with the old one races with the new one. */
static inline bool is_replaced(const lab_slot *old, const lab_slot *new, bool ordered)
{
    bool own = old->thread == new->thread;

    return ordered && (old->mask & ~new->mask) == 0 &&
           ((new->flags & SLOT_WRITE) || (own && !(old->flags & SLOT_WRITE))) &&
           (!(new->flags & SLOT_ATOMIC) || (old->flags & SLOT_ATOMIC));
}

static __attribute__((noinline)) void look_aside(lab_aside *aside, const lab_slot *new, uintptr_t address, uintptr_t pc)
{
    const lab_thread *t = lab->current;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < aside->used; i++) {
        const lab_slot *old = &aside->slots[i];
        bool ordered = old->thread == t->number || old->clock <= t->sync.at[old->thread];

        if (races(old, new, ordered))
            lab_report_race(old, address, new->flags & SLOT_WRITE, new->flags & SLOT_ATOMIC, pc);
        if (!is_replaced(old, new, ordered) &&
            (old->thread != new->thread || old->clock != new->clock || old->mask != new->mask ||
             old->flags != new->flags))
            aside->slots[kept++] = *old;
    }
    aside->used = kept;
}

/* There is no slot for another access: the oldest one makes room. */
static __attribute__((noinline)) void put_aside(lab_granule *g)
{
    if (g->aside == 0 && lab->run.asides < MAX_ASIDE) {
        g->aside = (uint8_t)++lab->run.asides;
        lab->aside[g->aside - 1].used = 0;
    }
    lab_aside *aside = &lab->aside[g->aside - 1];
    if (g->aside == 0 || aside->used == ASIDE_SLOTS)
        lab_explore_cut(CUT_SLOTS);
    else
        aside->slots[aside->used++] = g->slots[0];
    memmove(&g->slots[0], &g->slots[1], (SLOTS - 1) * sizeof(lab_slot));
}

static inline void access_granule(lab_granule *g, uintptr_t address, uint8_t mask, bool write, bool atomic,
                                  uintptr_t pc)
{
    lab_thread *t = lab->current;
    uint8_t flags = (uint8_t)((write ? SLOT_WRITE : 0) | (atomic ? SLOT_ATOMIC : 0));
    lab_slot new = {(uint32_t)pc, (uint16_t)t->sync.at[t->number], mask, t->number, flags};

    lab_memory_check(address, g, pc);
    if (g->generation != lab->generation) {
        g->generation = lab->generation;
        if (lab->touched_granule_count < MAX_TOUCHED)
            lab->touched_granules[lab->touched_granule_count++] = g;
        g->slots[0] = new;
        g->used = 1;
        g->last = 0;
        g->aside = 0;
        return;
    }
    const lab_slot *last = &g->slots[g->last];
    if (last->clock == new.clock && last->thread == new.thread && last->mask == mask && last->flags == flags)
        return; /* no other access since */
    uint32_t kept = 0;
    bool covered = false;
    for (uint32_t i = 0; i < g->used; i++) {
        lab_slot *old = &g->slots[i];
        bool own = old->thread == t->number;
        bool ordered = own || old->clock <= t->sync.at[old->thread];

        if (races(old, &new, ordered))
            lab_report_race(old, address, write, atomic, pc);
        if (own && old->clock == new.clock && old->mask == mask && old->flags == flags) {
            old->pc = new.pc;
            covered = true;
            g->last = (uint8_t)kept;
        } else if (is_replaced(old, &new, ordered)) {
            continue;
        }
        g->slots[kept++] = *old;
    }
    if (g->aside != 0) {
        lab_slot copy = new; /* keeps `new` in registers */
        look_aside(&lab->aside[g->aside - 1], &copy, address, pc);
    }
    if (!covered) {
        if (kept == SLOTS) {
            put_aside(g);
            kept--;
        }
        g->last = (uint8_t)kept;
        g->slots[kept++] = new;
    }
    g->used = (uint8_t)kept;
}

void lab_race_access(uintptr_t address, size_t size, bool write, bool atomic, uintptr_t pc)
{
    lab_granule *only = (address & 7) + size <= 8 ? lab_memory_shadow(address) : NULL;

    if (__builtin_expect(lab->tracing, false))
        lab_report_access(address, pc);
    if (only != NULL) {
        access_granule(only, address, (uint8_t)(((1u << size) - 1) << (address & 7)), write, atomic, pc);
        return;
    }
    while (size != 0) {
        size_t offset = address & 7;
        size_t part = 8 - offset < size ? 8 - offset : size;
        lab_granule *g = lab_memory_shadow(address);

        if (g != NULL)
            access_granule(g, address, (uint8_t)(((1u << part) - 1) << offset), write, atomic, pc);
        address += part;
        size -= part;
    }
}

static void look_for_borrowers(const lab_thread *t, uintptr_t address, const lab_slot *slots, uint32_t count,
                               uintptr_t pc)
{
    for (uint32_t s = 0; s < count; s++) {
        const lab_slot *old = &slots[s];
        char there[64];

        if (old->thread == t->number || old->clock <= t->sync.at[old->thread])
            continue;
        lab_report_place(old->pc, there, sizeof(there));
        lab_sched_fail(VERDICT_DEAD_FRAME, pc, "thread %c may access $%lx$ at %s after that frame of thread %c has ended",
                       'a' + old->thread, address, there, 'a' + t->number);
    }
}

/*
 * The end of a frame is like a write to all of it: an access by another thread that does not happen before it could
 * also have come later.
 */
void lab_race_frames(lab_thread *t, uintptr_t sp, uintptr_t pc)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < t->lent_count; i++) {
        lab_granule *g = lab_memory_shadow(t->lent[i]);

        if (t->lent[i] >= sp) {
            t->lent[kept++] = t->lent[i];
            continue;
        }
        if (g->generation == lab->generation) {
            look_for_borrowers(t, t->lent[i], g->slots, g->used, pc);
            if (g->aside != 0)
                look_for_borrowers(t, t->lent[i], lab->aside[g->aside - 1].slots, lab->aside[g->aside - 1].used, pc);
        }
        g->generation = 0;
    }
    t->lent_count = kept;
    t->lowest_lent = UINTPTR_MAX;
    for (uint32_t i = 0; i < kept; i++)
        t->lowest_lent = t->lent[i] < t->lowest_lent ? t->lent[i] : t->lowest_lent;
}
