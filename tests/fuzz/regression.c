/*
 * regression.c: the fuzz target without a fuzzer: the inputs that are kept, random ones from fixed seeds, and the test
 * of the test: with any rule of the model inverted, some sequence detects it.
 */
#include "fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define MOST_BYTES          (1 + CALL_BYTES * MOST_STEPS)
#define SEQUENCES           150
#define SEQUENCES_TO_NOTICE 5000
#define NOTICED             42

/* A sequence of one or two families of operations, or of all: several of a kind in a row would be rare otherwise. */
static size_t make_random(uint64_t seed, uint8_t bytes[MOST_BYTES])
{
    unsigned families[2], first, count;
    test_random random;

    random_seed(&random, seed);
    size_t size = 1 + CALL_BYTES * (8 + random_below(&random, MOST_STEPS - 8));
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)random_next(&random);
    families[0] = random_below(&random, family_count());
    families[1] = random_below(&random, family_count());
    for (size_t i = 1; seed % 4 != 0 && i < size; i += CALL_BYTES) {
        find_family(families[random_below(&random, 2)], &first, &count);
        bytes[i] = (uint8_t)(first + random_below(&random, count));
    }
    return size;
}

static void run_random(uint64_t seed)
{
    uint8_t bytes[MOST_BYTES];

    run_input(bytes, make_random(seed, bytes));
}

static void run_file(const char *path)
{
    uint8_t bytes[MOST_BYTES];
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    run_input(bytes, size);
}

/* Returns how many there are. */
static unsigned run_kept(void)
{
    DIR *directory = opendir(FUZZ_INPUTS);
    struct dirent *entry;
    unsigned count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        char path[PATH_MAX];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", FUZZ_INPUTS, entry->d_name);
        run_file(path);
        count++;
    }
    closedir(directory);
    return count;
}

/* By the system call: under a sanitizer _exit lets the threads continue briefly, and the sanitizer would check them. */
static void notice(void)
{
    syscall(SYS_exit_group, NOTICED);
}

/* In a separate process, where the actors wait forever. Returns its status, as of waitpid. */
static int look_for_mismatch(rule wrong)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        wrong_rule = wrong;
        mismatch_hook = notice;
        run_kept();
        for (uint64_t seed = 0; seed < SEQUENCES_TO_NOTICE; seed++)
            run_random(seed);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_every_rule_matters(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        int status = look_for_mismatch((rule)i);

        if (!WIFEXITED(status) || WEXITSTATUS(status) != NOTICED)
            fail_msg("nobody notices that the model is wrong about %s (status %#x)", rule_names[i], (unsigned)status);
    }
}

static void test_kept_inputs(void **state)
{
    (void)state;
    watchdog_start(300);
    assert_true(run_kept() > 0);
    watchdog_stop();
}

static void test_random_inputs(void **state)
{
    unsigned long count = test_rounds(SEQUENCES);

    (void)state;
    watchdog_start(300);
    for (unsigned long seed = 0; seed < count; seed++)
        run_random(seed);
    watchdog_stop();
}

/* Writes the first random inputs into a directory, for a fuzzer to begin with. */
static void write_inputs(const char *directory, unsigned count)
{
    for (unsigned seed = 0; seed < count; seed++) {
        uint8_t bytes[MOST_BYTES];
        char path[PATH_MAX];
        size_t size = make_random(seed, bytes);

        snprintf(path, sizeof(path), "%s/random-%u", directory, seed);
        FILE *file = fopen(path, "wb");
        if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
            perror(path);
            exit(1);
        }
    }
}

/* With an argument: --write DIRECTORY COUNT, or inputs to replay. */
static int do_as_told(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "--write") == 0) {
        write_inputs(arguments[2], (unsigned)strtoul(arguments[3], NULL, 10));
        return 0;
    }
    print_as_it_runs = true;
    for (int i = 1; i < count; i++)
        run_file(arguments[i]);
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1)
        return do_as_told(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_matters),
        cmocka_unit_test(test_kept_inputs),
        cmocka_unit_test(test_random_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
