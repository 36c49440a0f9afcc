/*
 * main.c: the program. Every count is made in a process of its own, because the number of processors is read when the
 * library is loaded; the processes run concurrently and independently.
 */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Acquisitions to count, up to a number of processors: the cost of each may grow with the number of processors. */
#define MANY          64
#define VERY_MANY     512
#define MANY_WANTED   2000
#define FEW_WANTED    1000
#define FEWEST_WANTED 250

static const char usage[] =
    "usage: lab-scale [options]\n"
    "  --processors N,...     of the machine, 1 to 2560 (default 1,2,8,64,512,2560)\n"
    "  --nodes N              NUMA nodes, among which the processors are divided (default 1)\n"
    "  --lock TEXT            only locks whose names contain it\n"
    "  --acquisitions N       acquisitions to count (default: 250 to 2000, more where they are cheap)\n"
    "  --lines                shows which code transferred which memory\n"
    "  --json                 all counts, as JSON\n"
    "  --plot FILE.svg        draws a plot with gnuplot\n"
    "  --jobs N               processes (default: as many as the host has processors)\n"
    "  --list                 the locks\n"
    "  --tap                  tests itself, for a test harness\n";

static uint64_t default_acquisitions(const scale_lock *lock, uint32_t processors)
{
    if (lock->parallel)
        return processors > MANY_WANTED / 4 ? 4ull * processors : MANY_WANTED;
    return processors <= MANY ? MANY_WANTED : processors <= VERY_MANY ? FEW_WANTED : FEWEST_WANTED;
}

/* In the process of one count. */

static int measure(char **argv)
{
    measurement m = {.finished = true};
    const scale_lock *lock = &scale_locks[strtoul(argv[0], NULL, 10)];
    uint32_t processors = (uint32_t)strtoul(argv[1], NULL, 10);
    uint32_t nodes = (uint32_t)strtoul(argv[3], NULL, 10);
    int to = atoi(argv[4]);

    if (!count_measure(lock, processors, nodes, strtoull(argv[2], NULL, 10), &m.result)) {
        fprintf(stderr, "lab-scale: %s, %u processors: all threads sleep\n", lock->name, processors);
        return 2;
    }
    if (argv[5] != NULL)
        print_lines(lock, processors, &m.result);
    return write(to, &m, sizeof(m)) == (ssize_t)sizeof(m) ? 0 : 2;
}

static void become_measure(const cell *c, int to, bool lines)
{
    char index[16], processors[16], nodes[16], acquisitions[32], descriptor[16];

    snprintf(index, sizeof(index), "%zu", (size_t)(c->lock - scale_locks));
    snprintf(processors, sizeof(processors), "%u", c->processors);
    snprintf(nodes, sizeof(nodes), "%u", c->nodes);
    snprintf(acquisitions, sizeof(acquisitions), "%lu", c->acquisitions);
    snprintf(descriptor, sizeof(descriptor), "%d", to);
    setenv("INTERLOCK_PROCESSORS", processors, 1);
    unsetenv("INTERLOCK_VERIFIER");
    execl("/proc/self/exe", "lab-scale", "--measure", index, processors, acquisitions, nodes, descriptor,
          lines ? "lines" : NULL, NULL);
    perror("lab-scale: execl");
    _exit(2);
}

/* In the parent process. */

static void start(cell *c, bool lines)
{
    int ends[2];

    if (pipe(ends) != 0 || (c->process = fork()) < 0) {
        perror("lab-scale");
        exit(2);
    }
    if (c->process == 0) {
        close(ends[0]);
        become_measure(c, ends[1], lines);
    }
    close(ends[1]);
    c->from = ends[0];
}

static void finish(cell *c)
{
    c->m.finished = read(c->from, &c->m, sizeof(c->m)) == (ssize_t)sizeof(c->m) && c->m.finished;
    close(c->from);
    c->process = 0;
}

static void wait_for_one(cell *cells, size_t count)
{
    int status;
    pid_t child = wait(&status);

    for (size_t i = 0; i < count; i++)
        if (child > 0 && cells[i].process == child)
            finish(&cells[i]);
}

/* The longest first, so that all are done at about the same time. */
bool measure_cells(cell *cells, size_t count, unsigned jobs, bool lines)
{
    unsigned running = 0;
    bool all = true;

    fflush(stdout);
    for (size_t i = count; i-- != 0;) {
        if (running == jobs) {
            wait_for_one(cells, count);
            running--;
        }
        start(&cells[i], lines);
        running++;
    }
    while (running-- != 0)
        wait_for_one(cells, count);
    for (size_t i = 0; i < count; i++)
        all &= cells[i].m.finished;
    return all;
}

static size_t parse_processors(const char *text, uint32_t *sizes)
{
    size_t count = 0;

    while (*text != '\0' && count < MAX_SIZES) {
        char *end;
        unsigned long value = strtoul(text, &end, 10);

        if (end == text || value < 1 || value > 2560 || (*end != ',' && *end != '\0')) {
            fprintf(stderr, "lab-scale: %s is not a list of numbers from 1 to 2560\n", text);
            exit(2);
        }
        sizes[count++] = (uint32_t)value;
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

static uint32_t parse_nodes(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || value < 1 || value > MOST_NUMA_NODES) {
        fprintf(stderr, "lab-scale: %s is not a number from 1 to %d\n", text, MOST_NUMA_NODES);
        exit(2);
    }
    return (uint32_t)value;
}

static void parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--lines") == 0)
            o->lines = true;
        else if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (strcmp(argv[i], "--help") == 0)
            exit(fputs(usage, stdout) < 0);
        else if (value == NULL)
            exit(fprintf(stderr, "lab-scale: %s?\n%s", argv[i], usage) < 0 ? 2 : 2);
        else if (i++, strcmp(argv[i - 1], "--processors") == 0)
            o->size_count = parse_processors(value, o->sizes);
        else if (strcmp(argv[i - 1], "--nodes") == 0)
            o->nodes = parse_nodes(value);
        else if (strcmp(argv[i - 1], "--lock") == 0)
            o->lock = value;
        else if (strcmp(argv[i - 1], "--acquisitions") == 0)
            o->acquisitions = strtoull(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--plot") == 0)
            o->plot = value;
        else if (strcmp(argv[i - 1], "--jobs") == 0)
            o->jobs = (unsigned)strtoul(value, NULL, 10);
        else
            exit(fprintf(stderr, "lab-scale: %s?\n%s", argv[i - 1], usage) < 0 ? 2 : 2);
    }
}

/* Ordered by size, then by lock: the big ones last. */
static size_t make_cells(const options *o, cell *cells)
{
    size_t count = 0;

    for (size_t size = 0; size < o->size_count; size++) {
        for (size_t i = 0; i < scale_lock_count; i++) {
            if (o->lock != NULL && strstr(scale_locks[i].name, o->lock) == NULL)
                continue;
            uint64_t wanted = default_acquisitions(&scale_locks[i], o->sizes[size]);
            cells[count++] = (cell){
                .lock = &scale_locks[i],
                .processors = o->sizes[size],
                .nodes = o->nodes < o->sizes[size] ? o->nodes : o->sizes[size],
                .acquisitions = o->acquisitions != 0 ? o->acquisitions : wanted,
            };
        }
    }
    return count;
}

static int run(const options *o)
{
    cell *cells = calloc(MAX_SIZES * scale_lock_count, sizeof(*cells));
    size_t count = cells != NULL ? make_cells(o, cells) : 0;

    if (count == 0) {
        fprintf(stderr, "lab-scale: nothing to count\n");
        return 2;
    }
    bool all = measure_cells(cells, count, o->lines ? 1 : o->jobs, o->lines);
    if (o->json)
        print_json(cells, count);
    else
        print_tables(o, cells, count);
    bool drawn = o->plot == NULL || plot(o, cells, count);
    free(cells);
    return all && drawn ? 0 : 1;
}

int main(int argc, char **argv)
{
    options o = {.sizes = {1, 2, 8, 64, 512, 2560}, .size_count = 6, .nodes = 1};
    long host = sysconf(_SC_NPROCESSORS_ONLN);

    o.jobs = host > 0 ? (unsigned)host : 1;
    if (argc >= 7 && strcmp(argv[1], "--measure") == 0)
        return measure(argv + 2);
    if (argc == 2 && strcmp(argv[1], "--tap") == 0)
        return run_tests(o.jobs);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < scale_lock_count; i++)
            puts(scale_locks[i].name);
        return 0;
    }
    parse(argc, argv, &o);
    o.jobs = o.jobs != 0 ? o.jobs : 1;
    return run(&o);
}
