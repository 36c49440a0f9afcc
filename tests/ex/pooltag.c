/* Pool memory by tag, and what was not freed. */
#include "../support/support.h"

#include <interlock/ex.h>
#include <interlock/verifier.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ex/exp.h"

#define TAG 0x31676154u /* "Tag1" */

static char output[65536];

/* What function(argument) writes to standard error. */
static const char *captured(ULONG64 (*function)(void *argument), void *argument, ULONG64 *result)
{
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    size_t length;

    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    *result = function(argument);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    length = fread(output, 1, sizeof(output) - 1, file);
    output[length] = '\0';
    fclose(file);
    return output;
}

static VF_POOL_USE use_of(ULONG tag, bool paged)
{
    VF_POOL_USE use[2];

    assert_true(VfQueryPoolTag(tag, &use[0], &use[1]));
    return use[paged];
}

static void use_is_counted(void **state)
{
    PVOID blocks[4];

    (void)state;
    assert_false(VfQueryPoolTag(0x32676154, NULL, NULL)); /* unused */
    for (unsigned i = 0; i < 4; i++)
        blocks[i] = ExAllocatePoolWithTag(i < 3 ? NonPagedPool : PagedPool, 100 * (i + 1), TAG);
    assert_int_equal(use_of(TAG, false).Allocations, 3);
    assert_int_equal(use_of(TAG, false).Bytes, 600);
    assert_int_equal(use_of(TAG, true).Allocations, 1);
    assert_int_equal(use_of(TAG, true).Bytes, 400);
    assert_int_equal(VfCountTagLeaks(TAG), 4);
    ExFreePoolWithTag(blocks[0], TAG);
    ExFreePool(blocks[3]);
    assert_int_equal(use_of(TAG, false).Frees, 1);
    assert_int_equal(use_of(TAG, false).Bytes, 500);
    assert_int_equal(use_of(TAG, true).Frees, 1);
    assert_int_equal(use_of(TAG, true).Bytes, 0);
    ExFreePool(blocks[1]);
    ExFreePool(blocks[2]);
    assert_int_equal(use_of(TAG, false).Bytes, 0);
    assert_int_equal(VfCountTagLeaks(TAG), 0);
}

#define THREADS 4
#define BLOCKS 2000

static PVOID blocks_of[THREADS][BLOCKS];

static void allocate_many(void *argument, unsigned index)
{
    (void)argument;
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks_of[index][i] = ExAllocatePoolWithTag(PagedPool, i % 50 + 1, 0x33676154);
        if (i % 3 == 0)
            ExFreePool(blocks_of[index][i]);
    }
}

/* One thread frees what another has allocated. */
static void free_others(void *argument, unsigned index)
{
    unsigned other = (index + 1) % THREADS;

    (void)argument;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % 3 != 0)
            ExFreePool(blocks_of[other][i]);
}

static void threads_count_together(void **state)
{
    VF_POOL_USE use;

    (void)state;
    run_threads(THREADS, 60, allocate_many, NULL);
    use = use_of(0x33676154, true);
    assert_int_equal(use.Allocations, THREADS * BLOCKS);
    assert_int_equal(use.Frees, THREADS * ((BLOCKS + 2) / 3));
    run_threads(THREADS, 60, free_others, NULL);
    use = use_of(0x33676154, true);
    assert_int_equal(use.Frees, use.Allocations);
    assert_int_equal(use.Bytes, 0);
}

static ULONG64 count_leaks(void *mark)
{
    return VfCountPoolLeaks(mark);
}

static ULONG64 count_tag(void *tag)
{
    return VfCountTagLeaks(*(ULONG *)tag);
}

static __attribute__((noinline)) PVOID the_leaking_function(ULONG tag, SIZE_T size)
{
    PVOID block = ExAllocatePoolWithTag(NonPagedPool, size, tag);

    __asm__ volatile("");
    return block;
}

static void without_the_verifier_they_are_counted(void **state)
{
    VF_POOL_MARK mark;
    ULONG64 leaks;
    PVOID block;

    (void)state;
    if (VfIsVerifierEnabled())
        skip();
    mark = VfMarkPool(0);
    block = the_leaking_function(TAG, 10);
    captured(count_leaks, &mark, &leaks);
    assert_int_equal(leaks, 1);
    assert_non_null(strstr(output, "blocks of pool memory that were not freed: 1 ("));
    ExFreePool(block);
    captured(count_leaks, &mark, &leaks);
    assert_int_equal(leaks, 0);
    assert_string_equal(output, "");
}

static void with_the_verifier_they_are_listed(void **state)
{
    BOOLEAN was = VfIsVerifierEnabled();
    PVOID before, other, leaked;
    VF_POOL_MARK all, tagged;
    char address[32];
    ULONG64 leaks;
    ULONG tag = TAG;

    (void)state;
    assert_int_equal(VfEnableVerifier(TRUE), STATUS_SUCCESS);
    before = the_leaking_function(TAG, 20);
    all = VfMarkPool(0);
    tagged = VfMarkPool(TAG);
    captured(count_leaks, &all, &leaks);
    assert_int_equal(leaks, 0);
    other = the_leaking_function(0x34676154, 30);
    leaked = the_leaking_function(TAG, 40);
    captured(count_leaks, &all, &leaks);
    assert_int_equal(leaks, 2);
    captured(count_leaks, &tagged, &leaks);
    assert_int_equal(leaks, 1);
    snprintf(address, sizeof(address), "  %p, 40 bytes, tag 'Tag1'", leaked);
    assert_non_null(strstr(output, address));
    if (strstr(output, "  0x") != NULL)
        assert_non_null(strstr(output, "the_leaking_function"));
    captured(count_tag, &tag, &leaks);
    assert_int_equal(leaks, 2);
    assert_non_null(strstr(output, "20 bytes"));
    assert_true(use_of(TAG, false).PeakBytes >= 60);
    ExFreePool(before);
    ExFreePool(other);
    ExFreePool(leaked);
    captured(count_leaks, &all, &leaks);
    assert_int_equal(leaks, 0);
    assert_string_equal(output, "");
    if (!was)
        VfEnableVerifier(FALSE);
}

/* The first 32. */
static void not_all_are_listed(void **state)
{
    BOOLEAN was = VfIsVerifierEnabled();
    PVOID blocks[33];
    VF_POOL_MARK mark;
    ULONG64 leaks;

    (void)state;
    assert_int_equal(VfEnableVerifier(TRUE), STATUS_SUCCESS);
    mark = VfMarkPool(TAG);
    for (size_t i = 0; i < 32; i++)
        blocks[i] = the_leaking_function(TAG, 8);
    captured(count_leaks, &mark, &leaks);
    assert_int_equal(leaks, 32);
    assert_null(strstr(output, "more blocks"));
    blocks[32] = the_leaking_function(TAG, 8);
    captured(count_leaks, &mark, &leaks);
    assert_int_equal(leaks, 33);
    assert_non_null(strstr(output, "  and 1 more blocks\n"));
    for (size_t i = 0; i < 33; i++)
        ExFreePool(blocks[i]);
    if (!was)
        VfEnableVerifier(FALSE);
}

/* Blocks from before are freed without a record, and those with one after the verifier is off. */
static void blocks_survive_the_switch(void **state)
{
    BOOLEAN was = VfIsVerifierEnabled();
    PVOID before = the_leaking_function(TAG, 8), during;

    (void)state;
    VfEnableVerifier(TRUE);
    during = the_leaking_function(TAG, 8);
    ExFreePool(before);
    VfEnableVerifier(FALSE);
    ExFreePool(during);
    if (was)
        VfEnableVerifier(TRUE);
    assert_int_equal(VfCountTagLeaks(TAG), 0);
}

static ULONG64 exit_with_a_leak(void *argument)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        setenv("INTERLOCK_VERIFIER", "1", 1);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it would find them too */
        execl("/proc/self/exe", "self", (char *)argument, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? (ULONG64)WEXITSTATUS(status) : 1000;
}

static void at_the_end_leaks_are_reported(void **state)
{
    ULONG64 status;

    (void)state;
    captured(exit_with_a_leak, (void *)"leak", &status);
    assert_int_equal(status, 0);
    assert_non_null(strstr(output, "pool memory that was not freed:\n"));
    assert_non_null(strstr(output, "16 bytes, tag 'Tag1'"));
    captured(exit_with_a_leak, (void *)"fork", &status); /* a child has no leaks of its parent */
    assert_int_equal(status, 0);
    assert_string_equal(output, "");
    captured(exit_with_a_leak, (void *)"clean", &status);
    assert_string_equal(output, "");
}

/* Tags beyond the table share one row. Last: the table stays full. */
static void too_many_tags(void **state)
{
    PVOID blocks[EXP_POOL_TAGS + 10];

    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(blocks); i++)
        blocks[i] = ExAllocatePoolWithTag(NonPagedPool, 8, 0x41000000 + i);
    assert_true(use_of(EXP_POOL_OVERFLOW_TAG, false).Allocations >= 10);
    for (ULONG i = 0; i < ARRAYSIZE(blocks); i++)
        ExFreePoolWithTag(blocks[i], 0x41000000 + i);
    assert_int_equal(use_of(EXP_POOL_OVERFLOW_TAG, false).Bytes, 0);
    assert_int_equal(VfCountTagLeaks(EXP_POOL_OVERFLOW_TAG), 0);
}

static int leak_and_end(const char *how)
{
    PVOID block = ExAllocatePoolWithTag(NonPagedPool, 16, TAG);

    if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        int status;

        if (child == 0)
            exit(0);
        waitpid(child, &status, 0);
    }
    if (strcmp(how, "leak") != 0)
        ExFreePool(block);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(use_is_counted),
        cmocka_unit_test(threads_count_together),
        cmocka_unit_test(without_the_verifier_they_are_counted),
        cmocka_unit_test(with_the_verifier_they_are_listed),
        cmocka_unit_test(not_all_are_listed),
        cmocka_unit_test(blocks_survive_the_switch),
        cmocka_unit_test(at_the_end_leaks_are_reported),
        cmocka_unit_test(too_many_tags),
    };
    if (argc == 2)
        return leak_and_end(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
