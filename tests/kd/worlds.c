/*
 * worlds.c: reads damaged copies of a world. usage: kd-worlds FILE COUNT [SEED]
 *
 * A copy has bytes or words of the original changed: to random numbers, to the indices of records, to limits. Reading
 * must end, in time and without a crash, and return consistent data.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST ((size_t)16 << 20)

static uint64_t state;

static uint64_t draw(void) /* xorshift */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint32_t interesting(size_t size)
{
    uint32_t first = WO_FIRST_RECORD, records = (uint32_t)(size / WO_UNIT);

    switch (draw() % 8) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX;
    case 2:
        return (uint32_t)draw();
    case 3:
        return records - 1 + (uint32_t)(draw() % 3);
    case 4:
        return (first + (uint32_t)(draw() % (records - first))) * WO_BLOCKS + (uint32_t)(draw() % WO_BLOCKS);
    case 5:
        return (uint32_t)(draw() % 16);
    default:
        return first + (uint32_t)(draw() % (records - first));
    }
}

static void damage(uint8_t *bytes, size_t size)
{
    size_t from = draw() % 8 == 0 ? 0 : (size_t)WO_FIRST_RECORD * WO_UNIT;

    for (uint64_t left = 1 + draw() % (draw() % 8 == 0 ? 500 : 12); left != 0; left--) {
        size_t at = from + draw() % (size - from);
        uint32_t word = interesting(size);

        if (draw() % 4 == 0)
            bytes[at] = (uint8_t)draw();
        else
            memcpy(bytes + (at & ~(size_t)3), &word, sizeof(word));
    }
}

/* A record of the original copied over another place: of another kind, or a second time. */
static void double_record(uint8_t *bytes, size_t size)
{
    size_t units = size / WO_UNIT - WO_FIRST_RECORD, count = 1 + draw() % 32;
    size_t from = draw() % units, to = draw() % units;

    count = count < units - from ? count : units - from;
    count = count < units - to ? count : units - to;
    memmove(bytes + (WO_FIRST_RECORD + to) * WO_UNIT, bytes + (WO_FIRST_RECORD + from) * WO_UNIT, count * WO_UNIT);
}

static void require(bool sound, const char *what)
{
    if (!sound) {
        fprintf(stderr, "not sound: %s\n", what);
        abort();
    }
}

static void require_numbers(const int *list, size_t count, size_t limit, const char *what)
{
    for (size_t i = 0; i < count; i++)
        require(list[i] >= 0 && (size_t)list[i] < limit, what);
}

static void check(const kd_world *w)
{
    size_t linked = 0;

    for (size_t i = 0; i < w->thread_count; i++) {
        require(w->threads[i].process < (int)w->process_count, "process of a thread");
        require_numbers(w->threads[i].objects, w->threads[i].object_count, w->object_count, "objects of a thread");
    }
    for (size_t i = 0; i < w->object_count; i++) {
        require(w->objects[i].owner < (int)w->thread_count, "owner");
        require_numbers(w->objects[i].waiters, w->objects[i].waiter_count, w->thread_count, "waiters");
        require_numbers(w->objects[i].holders, w->objects[i].holder_count, w->process_count, "holders");
        linked += w->objects[i].waiter_count;
    }
    require(linked <= w->thread_count * WO_BLOCKS, "each block is in one list");
}

/* The rest of what `interlock session` does, without inspecting the processes that the copy names. */
static void analyse(kd_world *world)
{
    kd_snapshot *snapshot = kd_allocate(1, sizeof(*snapshot));

    for (size_t i = 0; i < world->process_count; i++)
        world->processes[i].looked_into = true;
    kd_adopt_world(snapshot, world);
    kd_note_owned(snapshot);
    kd_find_deadlocks(snapshot);
    kd_snapshot_free(snapshot);
}

static kd_world *read_copy(const uint8_t *original, size_t size, size_t kept)
{
    uint8_t *whole = kd_world_allocate(size), *copy = kd_world_allocate(kept); /* a read past its end is detected */

    memcpy(whole, original, size);
    damage(whole, size);
    if (draw() % 4 == 0)
        double_record(whole, size);
    memcpy(copy, whole, kept);
    free(whole);
    return kd_world_parse(copy, kept, "/copy");
}

/* The owner of the lock is named even if no thread sleeps for it. */
static void check_lock(const uint8_t *original, size_t size)
{
    static const uint64_t locks[] = {0, 1ull << HAL_PROCESS_ID_BITS | 4711, WO_LOCK_SLEEPERS | 1ull << HAL_PROCESS_ID_BITS | 4711};

    for (size_t i = 0; i < 3; i++) {
        uint8_t *copy = kd_world_allocate(size);
        kd_world *world;

        memcpy(copy, original, size);
        ((WO_WORLD *)(void *)copy)->Lock = locks[i];
        world = kd_world_parse(copy, size, "/copy");
        require(world != NULL && world->locked_by == (i == 0 ? 0 : 4711), "owner of the lock");
        kd_world_free(world);
    }
}

int main(int argc, char **argv)
{
    FILE *file = argc > 2 ? fopen(argv[1], "rb") : NULL;
    uint8_t *original = kd_world_allocate(LARGEST);
    size_t size = file != NULL ? fread(original, 1, LARGEST, file) : 0, read = 0;
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

    if (file != NULL)
        fclose(file);
    state = argc > 3 ? strtoull(argv[3], NULL, 10) + 1 : 1;
    if (size <= (size_t)WO_FIRST_RECORD * WO_UNIT || ((const WO_WORLD *)(const void *)original)->Top > size)
        return 2;
    size = (size_t)((const WO_WORLD *)(const void *)original)->Top;
    check_lock(original, size);
    for (long i = 0; i < count; i++) {
        size_t kept = draw() % 16 == 0 ? draw() % size : size;
        kd_world *world = read_copy(original, size, kept);

        if (world == NULL)
            continue;
        read++;
        check(world);
        analyse(world);
    }
    free(original);
    printf("%zu of %ld copies are worlds\n", read, count);
    return 0;
}
