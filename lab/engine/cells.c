/* cells.c: which bytes form one variable. Theory at lab_cell in engine.h. */
#include "engine.h"

#include <string.h>

static uint32_t cell_new(uintptr_t address, size_t size)
{
    if (lab->cell_count == MAX_CELLS)
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "more than %d variables are accessed atomically", MAX_CELLS);
    lab_cell *c = &lab->cells[lab->cell_count];
    memset(c, 0, sizeof(*c));
    c->address = address;
    c->size = (uint32_t)size;
    return lab->cell_count++;
}

void lab_cell_begin(lab_cell *c)
{
    c->generation = lab->generation;
    if (lab->touched_cell_count < MAX_TOUCHED)
        lab->touched_cells[lab->touched_cell_count++] = (uint16_t)(c - lab->cells);
    c->last_write = NO_STEP;
    c->locked = c->unlocked = NO_STEP;
    c->readers = 0;
    c->position = 0;
    c->newest = -1;
    c->last_event = -1;
    c->stored_size = 0;
    c->neighbour = false;
    memset(&c->release, 0, sizeof(c->release));
    memset(&c->beyond, 0, sizeof(c->beyond));
}

bool lab_cell_is_shared(const lab_cell *c)
{
    return c->written && (c->users & (c->users - 1)) != 0;
}

static uint16_t *cell_slot(uintptr_t address)
{
    lab_granule *shadow = lab_memory_shadow(address);
    return shadow != NULL ? &shadow->cell[address & 7] : NULL;
}

/* The bytes from start to end become one new cell. */
static uint32_t cell_cover(uintptr_t start, uintptr_t end)
{
    uint32_t number = cell_new(start, end - start);

    for (uintptr_t at = start; at < end; at++) {
        uint16_t *slot = cell_slot(at);
        if (slot != NULL) {
            if (*slot != NO_CELL) {
                lab->cells[number].users |= lab->cells[*slot].users;
                lab->cells[number].written |= lab->cells[*slot].written;
            }
            *slot = (uint16_t)number;
        }
    }
    return number;
}

uint32_t lab_cell_find_slow(uintptr_t address, size_t size)
{
    uintptr_t start = address, end = address + size;
    bool merges = false;

    for (uintptr_t at = address; at < address + size; at++) {
        uint16_t *slot = cell_slot(at);
        if (slot != NULL && *slot != NO_CELL) {
            const lab_cell *other = &lab->cells[*slot];
            start = other->address < start ? other->address : start;
            end = other->address + other->size > end ? other->address + other->size : end;
            if (start <= address && end >= address + size && other->address == start &&
                other->address + other->size == end && other->size >= size)
                return *slot; /* part of a larger cell */
            merges = true;
        }
    }
    lab->cells_changed |= merges;
    return cell_cover(start, end);
}

uint32_t lab_cell_queue(uintptr_t address)
{
    uint32_t index = (uint32_t)((address >> 2) * 0x9E3779B97F4A7C15ull >> 40) % MAX_QUEUES;

    for (uint32_t tries = 0; tries < MAX_QUEUES; tries++, index = (index + 1) % MAX_QUEUES) {
        lab_queue *queue = &lab->queues[index];

        if (queue->address == address)
            return queue->cell;
        if (queue->address == 0) {
            *queue = (lab_queue){address, cell_new(address, 0)};
            return queue->cell;
        }
    }
    lab_sched_fail(VERDICT_UNSUPPORTED, 0, "threads wait on more than %d addresses", MAX_QUEUES);
}

uint32_t lab_cell_pseudo(uint32_t number)
{
    return 1 + number;
}
