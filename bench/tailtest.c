/* The histogram of tail.h: every duration is in a bucket whose end is near, and none is lost. */
#include "tail.h"

#include <stdio.h>

static unsigned cases;
static int any_failed;

static void report(int holds, const char *what)
{
    printf("%s %u - %s\n", holds ? "ok" : "not ok", ++cases, what);
    any_failed |= !holds;
}

static int is_near(uint64_t nanoseconds)
{
    uint64_t end = bench_tail_end(bench_tail_bucket(nanoseconds));

    return end >= nanoseconds && end - nanoseconds <= nanoseconds / BENCH_TAIL_STEPS;
}

static int ends_are_near(void)
{
    for (uint64_t value = 0; value < 100000; value++)
        if (!is_near(value))
            return 0;
    for (unsigned bit = 5; bit < 39; bit++)
        for (int beside = -1; beside <= 1; beside++)
            if (!is_near((1ull << bit) + (uint64_t)beside))
                return 0;
    return 1;
}

static int buckets_follow_each_other(void)
{
    for (unsigned bucket = 0; bucket + 1 < BENCH_TAIL_BUCKETS; bucket++)
        if (bench_tail_bucket(bench_tail_end(bucket)) != bucket ||
            bench_tail_bucket(bench_tail_end(bucket) + 1) != bucket + 1)
            return 0;
    return 1;
}

static int nothing_is_lost(void)
{
    static bench_tail tail;
    uint64_t all = 0;

    for (unsigned bit = 0; bit < 64; bit++)
        bench_tail_record(&tail, 1ull << bit);
    for (unsigned bucket = 0; bucket < BENCH_TAIL_BUCKETS; bucket++)
        all += tail.counts[bucket];
    return all == 64 && tail.longest == 1ull << 63;
}

int main(void)
{
    report(ends_are_near(), "a bucket ends at most 1/32 above what is recorded in it");
    report(buckets_follow_each_other(), "buckets follow each other without a gap");
    report(nothing_is_lost(), "what is longer than the last bucket is in it");
    printf("1..%u\n", cases);
    return any_failed;
}
