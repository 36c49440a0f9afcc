#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLE_NANOSECONDS 20000000
#define CALIBRATION_ROUNDS 200000
#define TRIES_PER_SAMPLE 5
#define LINE_ROUNDS 20000

static cpu_set_t all_processors;

uint64_t bench_nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *do_nothing(void *unused)
{
    return unused;
}

void bench_begin(void)
{
    pthread_t thread;

    setvbuf(stdout, NULL, _IOLBF, 0);
    sched_getaffinity(0, sizeof(all_processors), &all_processors);
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

int bench_processors(void)
{
    return CPU_COUNT(&all_processors);
}

void bench_bind(int index)
{
    cpu_set_t set = all_processors;

    if (index != BENCH_ANYWHERE) {
        int number = 0;

        while (!CPU_ISSET(number, &all_processors) || index-- > 0)
            number++;
        CPU_ZERO(&set);
        CPU_SET(number, &set);
    }
    sched_setaffinity(0, sizeof(set), &set);
}

static uint64_t calibrate(void)
{
    uint64_t start = bench_nanoseconds();
    uint64_t value = start;

    for (unsigned i = 0; i < CALIBRATION_ROUNDS; i++)
        value = value * 6364136223846793005u + 1;
    bench_keep(value);
    return bench_nanoseconds() - start;
}

static uint64_t best_calibration = UINT64_MAX;

static int is_disturbed(uint64_t calibration)
{
    if (calibration < best_calibration)
        best_calibration = calibration;
    return calibration > best_calibration + best_calibration / 10;
}

typedef struct samples {
    unsigned long count;       /* operations in one sample */
    unsigned disturbed;
    double nanoseconds[BENCH_REPEATS];
} samples;

static void choose_count(const bench_row *row, samples *own)
{
    uint64_t took;

    for (own->count = 16;; own->count *= 4) {
        took = row->run(own->count, row->argument);
        if (took > SAMPLE_NANOSECONDS / 16)
            break;
    }
    own->count = (unsigned long)((double)own->count * SAMPLE_NANOSECONDS / (double)took) + 1;
}

static void take_sample(const bench_row *row, samples *own, unsigned repeat)
{
    uint64_t took = 0;

    for (unsigned tries = 0; tries < TRIES_PER_SAMPLE; tries++) {
        int disturbed = is_disturbed(calibrate());

        took = row->run(own->count, row->argument);
        if (!(disturbed | is_disturbed(calibrate())))
            break;
        own->disturbed += tries + 1 == TRIES_PER_SAMPLE;
    }
    own->nanoseconds[repeat] = (double)took / (double)own->count;
}

static int compare(const void *first, const void *second)
{
    double difference = *(const double *)first - *(const double *)second;

    return (difference > 0) - (difference < 0);
}

static void print_row(const bench_row *row, samples *own)
{
    char target[32] = "";
    char note[32] = "";

    qsort(own->nanoseconds, BENCH_REPEATS, sizeof(own->nanoseconds[0]), compare);
    if (row->target != 0)
        snprintf(target, sizeof(target), "%u", row->target);
    if (own->disturbed != 0)
        snprintf(note, sizeof(note), "  %u of %d disturbed", own->disturbed, BENCH_REPEATS);
    printf("  %-52s %10.1f %10.1f %8s%s\n", row->name, own->nanoseconds[BENCH_REPEATS / 2], own->nanoseconds[0],
           target, note);
}

void bench_table(const char *title, const bench_row *rows, size_t count)
{
    samples *all = calloc(count, sizeof(*all));

    if (all == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        choose_count(&rows[i], &all[i]);
    for (unsigned repeat = 0; repeat < BENCH_REPEATS; repeat++) {
        for (size_t i = 0; i < count; i++)
            take_sample(&rows[i], &all[i], repeat);
    }
    printf("\n%s\n  %-52s %10s %10s %8s\n", title, "nanoseconds", "median", "min", "target");
    for (size_t i = 0; i < count; i++)
        print_row(&rows[i], &all[i]);
    free(all);
}

int bench_counts(int argc, char **argv, const bench_row *rows, size_t count)
{
    int names = argc == 2 && strcmp(argv[1], "--names") == 0;
    int counts = argc == 4 && strcmp(argv[1], "--count") == 0;

    for (size_t i = 0; i < count; i++) {
        if (names)
            puts(rows[i].name);
        else if (counts && strcmp(argv[2], rows[i].name) == 0)
            rows[i].run(strtoul(argv[3], NULL, 10), rows[i].argument);
    }
    return names || counts;
}

static volatile unsigned line __attribute__((aligned(64)));

static void *answer(void *unused)
{
    bench_bind(1);
    for (unsigned round = 0; round < LINE_ROUNDS; round++) {
        while (__atomic_load_n(&line, __ATOMIC_ACQUIRE) != 2 * round + 1) {
        }
        __atomic_store_n(&line, 2 * round + 2, __ATOMIC_RELEASE);
    }
    return unused;
}

double bench_line_round_trip(void)
{
    pthread_t thread;
    uint64_t start;

    if (bench_processors() < 2)
        return 0;
    line = 0;
    if (pthread_create(&thread, NULL, answer, NULL) != 0)
        return 0;
    bench_bind(0);
    start = bench_nanoseconds();
    for (unsigned round = 0; round < LINE_ROUNDS; round++) {
        __atomic_store_n(&line, 2 * round + 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&line, __ATOMIC_ACQUIRE) != 2 * round + 2) {
        }
    }
    start = bench_nanoseconds() - start;
    pthread_join(thread, NULL);
    bench_bind(BENCH_ANYWHERE);
    return (double)start / LINE_ROUNDS;
}
