/*
 * replay.c: the readers of the debugger over damaged files without a fuzzer: inputs that are kept, and random ones.
 *
 * usage: kd-replay FOLDER FIRST COUNT [INPUT...]
 * FOLDER is what bases.py has filled. Runs the inputs, then the random ones of COUNT seeds from FIRST. The current one
 * is in FOLDER/current, for the test's report if this process crashes.
 */
#include "readers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char current[PATH_MAX];

static void note(const char *what)
{
    FILE *file = fopen(current, "we");

    if (file == NULL || fputs(what, file) < 0 || fclose(file) != 0) {
        perror(current);
        exit(2);
    }
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The reader is the seed's remainder, so that each has its turn; few changes more often than many. */
static void run_random(uint64_t seed)
{
    uint8_t bytes[READERS_MOST_BYTES];
    uint64_t state = seed;
    size_t records = (size_t)1 << next_random(&state) % 6;
    size_t size = 3 + 13 * (size_t)(1 + next_random(&state) % records);
    char text[32];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)next_random(&state);
    bytes[0] = (uint8_t)(seed % readers_count());
    snprintf(text, sizeof(text), "seed %llu", (unsigned long long)seed);
    note(text);
    readers_run(bytes, size);
}

static void run_file(const char *path)
{
    uint8_t bytes[READERS_MOST_BYTES];
    FILE *file = fopen(path, "rbe");

    if (file == NULL) {
        perror(path);
        exit(2);
    }
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    note(path);
    readers_run(bytes, size);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: kd-replay FOLDER FIRST COUNT [INPUT...]\n");
        return 2;
    }
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);

    snprintf(current, sizeof(current), "%s/current", argv[1]);
    note("the undamaged files");
    readers_start(argv[1]);
    for (int i = 4; i < argc; i++)
        run_file(argv[i]);
    for (uint64_t i = 0; i < count; i++)
        run_random(first + i);
    return 0;
}
