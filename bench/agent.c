/*
 * Takes requests on standard input and answers each with a line of JSON:
 *
 *   list                       everything that can be measured: a line for each, then an empty one
 *   sample INDEX MILLISECONDS  one sample of that line of the list, with the calibration before and after
 *   count INDEX ROUNDS         performs the loop this many times without measuring (loops only)
 *
 * The same requests may be given as arguments, for a debugger or callgrind.
 */
#include "drivers.h"
#include "tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALIBRATION_ROUNDS 100000
#define LINE_ROUNDS        500
#define LINE_TRIES         4
#define MOST_SPINS         2000000
#define MOST_ENTRIES       512
#define SMALL              1000
#define SMALL_CROWD        4

static entry entries[MOST_ENTRIES];
static size_t entry_count;
static measurement *measurements;
static size_t measurement_count;
static bench_contenders *first_contenders, **last_contenders = &first_contenders;

void bench_register(bench_contenders *contenders)
{
    *last_contenders = contenders;
    last_contenders = &contenders->next;
}

static entry *add_entry(const char *family, bench_kind kind, bench_side side, const char *contender)
{
    if (entry_count == MOST_ENTRIES)
        bench_fail("MOST_ENTRIES");
    entries[entry_count] = (entry){.family = family, .kind = kind, .side = side, .contender = contender};
    return &entries[entry_count++];
}

void bench_add_loop(const char *family, bench_side side, const char *contender, double target, bench_loop *loop)
{
    entry *added = add_entry(family, BENCH_KIND_LOOP, side, contender);

    added->target = target;
    added->loop = loop;
}

void bench_add_contended(const char *family, bench_side side, const char *contender, void (*work)(bench_worker *))
{
    add_entry(family, BENCH_KIND_CONTENDED, side, contender)->work = work;
}

void bench_add_exchange(const char *family, bench_side side, const char *contender, void (*signal)(unsigned side),
                        void (*await)(unsigned side))
{
    entry *added = add_entry(family, BENCH_KIND_EXCHANGE, side, contender);

    added->signal = signal;
    added->await = await;
}

void bench_add_stream(const char *family, bench_side side, const char *contender, void (*put)(bench_item *),
                      bench_item *(*get)(void))
{
    entry *added = add_entry(family, BENCH_KIND_STREAM, side, contender);

    added->put = put;
    added->get = get;
}

void bench_add_value(const char *family, bench_side side, const char *contender, double target, bench_value *value)
{
    entry *added = add_entry(family, BENCH_KIND_VALUE, side, contender);

    added->target = target;
    added->value = value;
}

void bench_add_tail_lock(const char *family, bench_side side, const char *contender,
                         void (*work)(bench_worker *, struct bench_tail *))
{
    add_entry(family, BENCH_KIND_TAIL, side, contender)->tail_work = work;
}

void bench_add_tail_wake(const char *family, bench_side side, const char *contender, void (*signal)(unsigned side),
                         void (*await)(unsigned side))
{
    entry *added = add_entry(family, BENCH_KIND_TAIL, side, contender);

    added->signal = signal;
    added->await = await;
}

void bench_add_tail_sleep(const char *family, bench_side side, const char *contender, void (*millisecond)(void))
{
    add_entry(family, BENCH_KIND_TAIL, side, contender)->millisecond = millisecond;
}

void bench_no_target(void)
{
    entries[entry_count - 1].target = -1;
}

void *aligned_allocate(size_t bytes)
{
    char *memory = calloc(1, bytes + 128 + sizeof(void *));
    uintptr_t aligned = ((uintptr_t)memory + sizeof(void *) + 127) & ~(uintptr_t)127;

    if (memory == NULL)
        bench_fail("calloc");
    ((void **)aligned)[-1] = memory;
    return (void *)aligned;
}

void aligned_free(void *memory)
{
    free(((void **)memory)[-1]);
}

static double calibrate(void)
{
    uint64_t start = bench_now(), value = start;

    for (unsigned i = 0; i < CALIBRATION_ROUNDS; i++)
        value = value * 6364136223846793005u + 1;
    bench_keep(value);
    return (double)(bench_now() - start) / CALIBRATION_ROUNDS;
}

static double calibrate_processors(const bench_row *row)
{
    int processors = uses_two_processors(row) ? bench_processors() : 1;
    double worst = 0;

    for (int i = 0; i < processors && i < 2; i++) {
        bench_bind(i);
        double found = calibrate();
        worst = found > worst ? found : worst;
    }
    bench_unbind();
    return worst;
}

static unsigned line __attribute__((aligned(128)));
static int line_stops __attribute__((aligned(128)));
static int line_answers;

static void answer_line(void *unused)
{
    (void)unused;
    bench_bind(1);
    __atomic_store_n(&line_answers, 1, __ATOMIC_RELEASE);
    for (unsigned expected = 1;; expected += 2) {
        while (__atomic_load_n(&line, __ATOMIC_ACQUIRE) != expected) {
            if (__atomic_load_n(&line_stops, __ATOMIC_RELAXED))
                return;
        }
        __atomic_store_n(&line, expected + 1, __ATOMIC_RELEASE);
    }
}

/* 0: no reply in time: another program has that processor. */
static double time_line(unsigned *next)
{
    uint64_t start = bench_now();

    for (unsigned round = 0; round < LINE_ROUNDS; round++, *next += 2) {
        unsigned spins = 0;

        __atomic_store_n(&line, *next, __ATOMIC_RELEASE);
        while (__atomic_load_n(&line, __ATOMIC_ACQUIRE) != *next + 1) {
            if (++spins == MOST_SPINS)
                return 0;
        }
    }
    return (double)(bench_now() - start) / LINE_ROUNDS;
}

/* The round trip of a cache line between the two processors, in nanoseconds: the host may have put both on one core. */
static double line_round_trip(void)
{
    unsigned next = 1;
    double best = 0;
    bench_thread *thread;

    line = 0;
    line_stops = line_answers = 0;
    thread = bench_thread_start(answer_line, NULL);
    bench_bind(0);
    while (!__atomic_load_n(&line_answers, __ATOMIC_ACQUIRE))
        bench_yield();
    for (unsigned try = 0; try < LINE_TRIES; try++) {
        double found = time_line(&next);

        if (found == 0)
            break;
        best = best == 0 || found < best ? found : best;
    }
    __atomic_store_n(&line_stops, 1, __ATOMIC_RELAXED);
    bench_thread_join(thread);
    bench_unbind();
    return best;
}

static int is_possible(const bench_row *row)
{
    return row->kind != BENCH_KIND_EXCHANGE || row->number != BENCH_TWO || bench_processors() > 1;
}

static void make_measurements(void)
{
    measurements = calloc(bench_row_count * entry_count, sizeof(*measurements));
    if (measurements == NULL)
        bench_fail("calloc");
    for (const bench_row *row = bench_rows; row < bench_rows + bench_row_count; row++) {
        for (size_t i = 0; i < entry_count && is_possible(row); i++) {
            if (strcmp(entries[i].family, row->family) == 0 && entries[i].kind == row->kind)
                measurements[measurement_count++] = (measurement){.row = row, .by = &entries[i]};
        }
    }
}

static void print_measurement(const measurement *of)
{
    static const char *const kinds[] = {"loop", "contended", "exchange", "stream", "value", "tail"};
    static const char *const sides[] = {"floor", "peer", "interlock"};
    const bench_row *row = of->row;
    int ours = of->by->side == BENCH_INTERLOCK;
    double target = of->by->target != 0 ? of->by->target : row->target;

    printf("{\"row\": \"%s\", \"family\": \"%s\", \"title\": \"%s\", \"unit\": \"%s\", \"kind\": \"%s\", ", row->name,
           row->family, row->title, row->unit, kinds[row->kind]);
    printf("\"number\": %u, \"other\": %u, \"brief\": %s, \"two\": %s, ", row->number, row->other,
           row->brief ? "true" : "false", uses_two_processors(row) ? "true" : "false");
    printf("\"contender\": \"%s\", \"side\": \"%s\"", of->by->contender, sides[of->by->side]);
    if (ours && target > 0)
        printf(", \"target\": %g", target);
    if (ours && target > 0 && row->fairness != 0)
        printf(", \"fairness\": %g", row->fairness);
    if (ours && target > 0 && row->relative != NULL)
        printf(", \"relative\": \"%s\"", row->relative);
    printf("}\n");
}

static void list(void)
{
    for (size_t i = 0; i < measurement_count; i++)
        print_measurement(&measurements[i]);
    for (bench_contenders *each = first_contenders; each != NULL; each = each->next)
        printf("{\"contenders\": \"%s\", \"version\": \"%s\"}\n", each->name, each->version);
    printf("\n");
}

/* With 0 milliseconds it only has to work, and a smaller number is enough. */
static measurement *made_small(const measurement *of)
{
    static bench_row row;
    static measurement made;
    int crowd = of->row->kind == BENCH_KIND_CONTENDED || of->row->kind == BENCH_KIND_TAIL;
    unsigned most = crowd ? SMALL_CROWD : SMALL;

    row = *of->row;
    row.number = row.number > most ? most : row.number;
    made = (measurement){.row = &row, .by = of->by};
    return &made;
}

/* [[upper end in ns, how many], ...] */
static void print_tail(const bench_tail *tail)
{
    const char *before = "";

    printf(", \"longest\": %.0f, \"tail\": [", (double)tail->longest);
    for (unsigned bucket = 0; bucket < BENCH_TAIL_BUCKETS; bucket++) {
        if (tail->counts[bucket] != 0) {
            printf("%s[%.0f, %.0f]", before, (double)bench_tail_end(bucket), (double)tail->counts[bucket]);
            before = ", ";
        }
    }
    printf("]");
}

static void answer_sample(measurement *of, unsigned milliseconds)
{
    int two = uses_two_processors(of->row) && bench_processors() > 1 && milliseconds != 0;
    double lines[2] = {0, 0}, calibrations[2];
    sample result = {0, -1, NULL};

    calibrations[0] = calibrate_processors(of->row);
    lines[0] = two ? line_round_trip() : 0;
    take_sample(milliseconds == 0 ? made_small(of) : of, milliseconds, &result);
    lines[1] = two ? line_round_trip() : 0;
    calibrations[1] = calibrate_processors(of->row);
    printf("{\"value\": %.6g, \"calibration\": [%.4f, %.4f]", result.value, calibrations[0], calibrations[1]);
    if (two)
        printf(", \"line\": [%.1f, %.1f]", lines[0], lines[1]);
    if (result.fairness >= 0)
        printf(", \"fairness\": %.6g", result.fairness);
    if (result.tail != NULL)
        print_tail(result.tail);
    printf("}\n");
}

static int answer_request(const char *request)
{
    unsigned long index, number;

    if (strncmp(request, "list", 4) == 0) {
        list();
        return 0;
    }
    if (sscanf(request, "sample %lu %lu", &index, &number) == 2 && index < measurement_count) {
        answer_sample(&measurements[index], (unsigned)number);
        return 0;
    }
    if (sscanf(request, "count %lu %lu", &index, &number) == 2 && index < measurement_count &&
        measurements[index].row->kind == BENCH_KIND_LOOP) {
        count_rounds(&measurements[index], number);
        printf("{}\n");
        return 0;
    }
    fprintf(stderr, "not understood: %s\n", request);
    return 1;
}

static void do_nothing(void *unused)
{
    (void)unused;
}

int main(int argc, char **argv)
{
    char request[128];
    int failed = 0;

    bench_platform_begin();
    bench_thread_join(bench_thread_start(do_nothing, NULL)); /* glibc omits atomics before the first thread */
    for (bench_contenders *each = first_contenders; each != NULL; each = each->next)
        each->add();
    make_measurements();
    for (int i = 1; i < argc; i++)
        failed |= answer_request(argv[i]);
    while (argc == 1 && fgets(request, sizeof(request), stdin) != NULL) {
        failed |= answer_request(request);
        fflush(stdout);
    }
    return failed;
}
