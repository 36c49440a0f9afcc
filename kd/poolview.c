/* poolview.c: `interlock pool`: pool memory by tag, as poolmon shows it. */
#include "kd.h"
#include "views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    char tag[5];
    bool paged;
    uint64_t allocations, frees, peak;
    int64_t bytes;
} row;

typedef struct table {
    row *rows;
    size_t count;
} table;

static void add_row(kd_snapshot *snapshot, table *t, const EXP_POOL_TAG *raw)
{
    row r = {.paged = (raw->Key & EXP_POOL_PAGED) != 0, .peak = raw->PeakBytes};
    uint64_t bytes = 0; /* unsigned: sums of damaged counts wrap */

    if (!kd_spend_memory(snapshot->target, sizeof(row)))
        return;
    for (unsigned i = 0; i < 4; i++) {
        unsigned char character = (unsigned char)(raw->Key >> 8 * i);

        r.tag[i] = character >= ' ' && character <= '~' ? (char)character : '.';
    }
    for (unsigned i = 0; i < EXP_POOL_STRIPES; i++) {
        r.allocations += raw->Stripe[i].Allocations;
        r.frees += raw->Stripe[i].Frees;
        bytes += (uint64_t)raw->Stripe[i].Bytes;
    }
    r.bytes = (int64_t)bytes;
    t->rows = kd_grow(t->rows, t->count, sizeof(row));
    t->rows[t->count++] = r;
}

static void read_table(kd_snapshot *snapshot, table *t)
{
    size_t size = 0;
    kd_address at = kd_root(snapshot->target, "ExpPoolTags", &size);
    EXP_POOL_TAG *raw = kd_allocate_lines(sizeof(*raw));

    for (size_t i = 0; at != 0 && i < size / sizeof(*raw); i++) {
        if (!kd_read(snapshot->target, at + i * sizeof(*raw), raw, sizeof(*raw))) {
            kd_inconsistent(snapshot, "pool tags", at + i * sizeof(*raw), "a part of the table cannot be read");
            break;
        }
        if (raw->Key != 0)
            add_row(snapshot, t, raw);
    }
    free(raw);
}

static int64_t live(const row *r)
{
    return (int64_t)(r->allocations - r->frees);
}

/* Sorting: the largest first, then by tag. */

static int by_tag(const void *one, const void *other)
{
    const row *a = one, *b = other;
    int order = strcmp(a->tag, b->tag);

    return order != 0 ? order : a->paged - b->paged;
}

static int descending(int64_t a, int64_t b, const void *one, const void *other)
{
    return a != b ? (a < b) - (a > b) : by_tag(one, other);
}

static int by_bytes(const void *one, const void *other)
{
    return descending(((const row *)one)->bytes, ((const row *)other)->bytes, one, other);
}

static int by_allocations(const void *one, const void *other)
{
    return descending((int64_t)((const row *)one)->allocations, (int64_t)((const row *)other)->allocations, one, other);
}

static int by_frees(const void *one, const void *other)
{
    return descending((int64_t)((const row *)one)->frees, (int64_t)((const row *)other)->frees, one, other);
}

static int by_live(const void *one, const void *other)
{
    return descending(live(one), live(other), one, other);
}

static const struct {
    const char *name;
    int (*compare)(const void *one, const void *other);
} orders[] = {
    {"bytes", by_bytes}, {"allocs", by_allocations}, {"frees", by_frees}, {"diff", by_live}, {"tag", by_tag},
};

/* FALSE: there is no such order. */
static bool sort(table *t, const char *name)
{
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (strcmp(name, orders[i].name) == 0) {
            if (t->count != 0)
                qsort(t->rows, t->count, sizeof(row), orders[i].compare);
            return true;
        }
    return false;
}

static void print_rows(const table *t)
{
    uint64_t bytes[2] = {0, 0};

    printf(" Tag  Type         Allocs        Frees         Diff        Bytes    Per Alloc         Peak\n");
    for (size_t i = 0; i < t->count; i++) {
        const row *r = &t->rows[i];

        printf(" %s %-5s %12" PRIu64 " %12" PRIu64 " %12" PRId64 " %12" PRId64 " %12" PRId64, r->tag,
               r->paged ? "Paged" : "Nonp", r->allocations, r->frees, live(r), r->bytes,
               live(r) > 0 ? r->bytes / live(r) : 0);
        if (r->peak != 0)
            printf(" %12" PRIu64 "\n", r->peak);
        else
            printf(" %12s\n", "-");
        bytes[r->paged] += (uint64_t)r->bytes;
    }
    printf("Nonpaged: %" PRId64 " bytes, paged: %" PRId64 " bytes\n", (int64_t)bytes[false],
           (int64_t)bytes[true]);
}

static void json_rows(json *out, const table *t)
{
    json_array(out, "tags");
    for (size_t i = 0; i < t->count; i++) {
        const row *r = &t->rows[i];

        json_object(out, NULL);
        json_string(out, "tag", r->tag);
        json_bool(out, "paged", r->paged);
        json_number(out, "allocations", (int64_t)r->allocations);
        json_number(out, "frees", (int64_t)r->frees);
        json_number(out, "blocks", live(r));
        json_number(out, "bytes", r->bytes);
        if (r->peak != 0)
            json_number(out, "peak_bytes", (int64_t)r->peak);
        else
            json_null(out, "peak_bytes"); /* the verifier is off */
        json_end(out);
    }
    json_end(out);
}

static int show_pool(kd_snapshot *snapshot, const kd_options *options)
{
    json out = kd_json(options);
    table t = {.rows = NULL};

    read_table(snapshot, &t);
    if (!sort(&t, options->argument != NULL ? options->argument : "bytes")) {
        kd_say("pool memory is sorted by bytes, allocs, frees, diff or tag, not by %s", options->argument);
        free(t.rows);
        return 2;
    }
    if (options->json) {
        json_object(&out, NULL);
        json_number(&out, "process_id", snapshot->process_id);
        json_rows(&out, &t);
        kd_json_end(&out, snapshot);
    } else {
        print_rows(&t);
    }
    free(t.rows);
    return 0;
}

const kd_view kd_pool_view = {
    .name = "pool",
    .arguments = "[--json] PID|CORE [bytes|allocs|frees|diff|tag]\n"
                 "Shows pool memory by tag, sorted by bytes by default.",
    .has_argument = true,
    .show = show_pool,
};

int command_pool(int argc, char **argv)
{
    return kd_run(&kd_pool_view, argc, argv);
}
