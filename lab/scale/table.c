/* table.c: the output of the counts. */
#include "program.h"

#include "ke/ki.h"

#include <stdio.h>

#define MOST_LINES 12
#define NAME_WIDTH 36
#define CELL_WIDTH 9

double per_acquisition(const scale_result *result, uint64_t number)
{
    return (double)number / (double)result->acquisitions;
}

uint64_t lock_transfers(const scale_result *result)
{
    return cache_remote(&result->counts[KIND_LOCK]) + cache_remote(&result->counts[KIND_OTHER]);
}

static uint64_t own_transfers(const scale_result *result)
{
    return cache_remote(&result->counts[KIND_LOCK]);
}

static uint64_t data_transfers(const scale_result *result)
{
    return cache_remote(&result->counts[KIND_DATA]);
}

static uint64_t lock_invalidations(const scale_result *result)
{
    return result->counts[KIND_LOCK].invalidations + result->counts[KIND_OTHER].invalidations;
}

static uint64_t lock_cold(const scale_result *result)
{
    return result->counts[KIND_LOCK].cold + result->counts[KIND_OTHER].cold;
}

uint64_t lock_crossings(const scale_result *result)
{
    return result->counts[KIND_LOCK].crossings + result->counts[KIND_OTHER].crossings;
}

static uint64_t cycles(const scale_result *result)
{
    return result->cycles;
}

static const cell *find(const cell *cells, size_t count, const scale_lock *lock, uint32_t processors)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].lock == lock && cells[i].processors == processors)
            return &cells[i];
    return NULL;
}

static void print_value(const cell *c, uint64_t (*value)(const scale_result *))
{
    if (!c->m.finished) {
        printf("%*s", CELL_WIDTH, "?");
        return;
    }
    uint64_t number = value(&c->m.result);
    double each = per_acquisition(&c->m.result, number);
    printf("%*.*f", CELL_WIDTH, number == 0 || each >= 100 ? 0 : each < 0.1 ? 3 : 1, each);
}

static void print_table(const char *title, uint64_t (*value)(const scale_result *), const options *o, const cell *cells,
                        size_t count)
{
    printf("%s\n%*s", title, NAME_WIDTH, "processors");
    for (size_t size = 0; size < o->size_count; size++)
        printf("%*u", CELL_WIDTH, o->sizes[size]);
    printf("\n");
    for (size_t i = 0; i < scale_lock_count; i++) {
        if (find(cells, count, &scale_locks[i], o->sizes[0]) == NULL)
            continue;
        printf("%-*s", NAME_WIDTH, scale_locks[i].name);
        for (size_t size = 0; size < o->size_count; size++)
            print_value(find(cells, count, &scale_locks[i], o->sizes[size]), value);
        printf("\n");
    }
}

void print_tables(const options *o, const cell *cells, size_t count)
{
    print_table("Lines transferred between caches for one acquisition and release", lock_transfers, o, cells, count);
    if (o->nodes > 1)
        print_table("\nOf these, between nodes", lock_crossings, o, cells, count);
    print_table("\nCycles of the machine for one; cycles of parallel processors count once", cycles, o,
                cells, count);
}

static void print_kind(const char *name, const cache_counts *c)
{
    printf("\"%s\":{\"hits\":%lu,\"cold\":%lu,\"transfers\":%lu,\"upgrades\":%lu,\"invalidations\":%lu,"
           "\"crossings\":%lu}",
           name, c->hits, c->cold, c->transfers, c->upgrades, c->invalidations, c->crossings);
}

static void print_json_cell(const cell *c)
{
    static const char *const groups[GROUPS] = {"exclusive", "shared", "objects"};
    const scale_result *r = &c->m.result;

    printf("{\"lock\":\"%s\",\"group\":\"%s\",\"processors\":%u,\"nodes\":%u,\"finished\":%s", c->lock->name,
           groups[c->lock->group], c->processors, c->nodes, c->m.finished ? "true" : "false");
    if (c->m.finished) {
        printf(",\"acquisitions\":%lu,\"cycles\":%lu,\"longest_wait\":%lu,", r->acquisitions, r->cycles,
               r->longest_wait);
        printf(
            "\"per_acquisition\":{\"transfers\":%.3f,\"own\":%.3f,\"data\":%.3f,\"invalidations\":%.3f,\"cold\":%.3f,"
            "\"crossings\":%.3f,\"cycles\":%.3f},",
            per_acquisition(r, lock_transfers(r)), per_acquisition(r, own_transfers(r)),
            per_acquisition(r, data_transfers(r)), per_acquisition(r, lock_invalidations(r)),
            per_acquisition(r, lock_cold(r)), per_acquisition(r, lock_crossings(r)), per_acquisition(r, r->cycles));
        print_kind("lock_lines", &r->counts[KIND_LOCK]);
        printf(",");
        print_kind("data_lines", &r->counts[KIND_DATA]);
        printf(",");
        print_kind("other_lines", &r->counts[KIND_OTHER]);
    }
    printf("}");
}

void print_json(const cell *cells, size_t count)
{
    printf("[");
    for (size_t i = 0; i < count; i++) {
        printf(i != 0 ? ",\n " : "");
        print_json_cell(&cells[i]);
    }
    printf("]\n");
}

/* Which lines they were. */

static bool describe_address(uintptr_t address, char *buffer, size_t size)
{
    for (uint32_t i = 0; i < machine_threads(); i++) {
        uintptr_t stack = (uintptr_t)machine_thread(i)->base.stack;
        uintptr_t object = (uintptr_t)KiThreadFromNumber(i);

        if (address - stack < STACK_SIZE) {
            snprintf(buffer, size, "the stack of %u", i);
            return true;
        }
        if (object != 0 && address - object < sizeof(struct _KTHREAD)) {
            snprintf(buffer, size, "KTHREAD of %u, +%#lx", i, address - object);
            return true;
        }
    }
    return false;
}

void print_lines(const scale_lock *lock, uint32_t processors, const scale_result *result)
{
    static const char *const kinds[KINDS] = {[KIND_OTHER] = "other", [KIND_LOCK] = "lock", [KIND_DATA] = "data"};
    access_place places[MOST_LINES];
    size_t count = access_places(places, MOST_LINES), used = 0;
    char text[8192] = "";

    lab_machine.describe_address = describe_address;
    printf("%s, %u processors: transfers for one acquisition, at, the last one of\n", lock->name, processors);
    for (size_t i = 0; i < count; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (places[i].remote[kind] != 0)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%9.2f  %-5s  @%lx@  $%lx$\n",
                                         per_acquisition(result, places[i].remote[kind]), kinds[kind], places[i].pc,
                                         places[i].address);
        }
    }
    lab_report_print(text);
    printf("\n");
    fflush(stdout);
}
