/*
 * A pop that is delayed after it has read the first entry's link; a table has what others do to the list meanwhile. The
 * program replaces the library's HalReadPointerOrFault to do it.
 */
#include <stdio.h>
#include <string.h>

#include "hal/hal.h"
#include "support.h"

#include <interlock/interlocked.h>

#define ENTRIES 4

static SLIST_HEADER list;
static SLIST_ENTRY entries[ENTRIES]; /* a, b, c, d */
static const char *meanwhile;
static unsigned reads;

static char name_of(const SLIST_ENTRY *entry)
{
    return entry == NULL ? '-' : (char)('a' + (entry - entries));
}

/* A letter pushes that entry, a digit pops that many, ! flushes. */
static void play(const char *script)
{
    for (; *script != '\0'; script++) {
        if (*script == '!')
            InterlockedFlushSList(&list);
        else if (*script >= '0' && *script <= '9')
            for (int count = *script - '0'; count != 0; count--)
                InterlockedPopEntrySList(&list);
        else
            InterlockedPushEntrySList(&list, &entries[*script - 'a']);
    }
}

HAL_READ HalReadPointerOrFault(PVOID volatile *Address)
{
    HAL_READ read = {__atomic_load_n(Address, __ATOMIC_ACQUIRE), TRUE};
    const char *script = meanwhile;

    reads++;
    meanwhile = NULL;
    if (script != NULL && *script == '?') {
        read.Readable = FALSE;
        script++;
    }
    if (script != NULL)
        play(script);
    return read;
}

static void held_up(void **state)
{
    static const struct {
        const char *before;    /* pushed, so the last one is first */
        const char *meanwhile; /* ? in front: and the read fails */
        char popped;
        const char *after;     /* first to last */
        unsigned least_reads;
    } cases[] = {
        {"cba", "", 'a', "bc", 1},
        {"cba", "1", 'b', "c", 2},
        {"cba", "2", 'c', "", 2},
        {"cba", "3", '-', "", 1},
        {"cba", "!", '-', "", 1},
        {"cba", "d", 'd', "abc", 2},
        {"cba", "1a", 'a', "bc", 2},
        /* The same first entry, and as many of them, but another one behind it. */
        {"cba", "2ba", 'a', "bc", 2},
        {"cba", "2da", 'a', "dc", 2},
        {"cba", "3bca", 'a', "cb", 2},
        {"cba", "!dca", 'a', "cd", 2},
        {"cba", "2a", 'a', "c", 2},
        {"a", "1a", 'a', "", 2},
        {"a", "!a", 'a', "", 2},
        {"ba", "2a", 'a', "", 2},
        {"ba", "2ca", 'a', "c", 2},
        /* The entry was unmapped. */
        {"cba", "?1", 'b', "c", 2},
        {"cba", "?3", '-', "", 1},
        {"cba", "?1d", 'd', "bc", 2},
        {"cba", "?2da", 'a', "dc", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char rest[ENTRIES + 1] = "";
        size_t length = 0;
        char popped;

        InitializeSListHead(&list);
        play(cases[i].before);
        reads = 0;
        meanwhile = cases[i].meanwhile;
        popped = name_of(InterlockedPopEntrySList(&list));
        print_message("# %s, meanwhile %s: pops %c\n", cases[i].before, cases[i].meanwhile, popped);
        assert_int_equal(popped, cases[i].popped);
        assert_true(reads >= cases[i].least_reads);
        assert_int_equal(QueryDepthSList(&list), strlen(cases[i].after));
        for (SLIST_ENTRY *entry = RtlFirstEntrySList(&list); entry != NULL && length < ENTRIES; entry = entry->Next)
            rest[length++] = name_of(entry);
        assert_string_equal(rest, cases[i].after);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
