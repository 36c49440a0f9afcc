/* The C library's heap: use after free, double free, leak, failed allocation. */
#include <interlock/lab.h>

#include <stdlib.h>
#include <string.h>

typedef struct node {
    int value;
    uint32_t references;
} node;

static node *shared;

static void make_shared(void)
{
    shared = malloc(sizeof(*shared));
    *shared = (node){.value = 7, .references = 2};
}

static uint32_t gone;

static void free_and_tell(void)
{
    free(shared);
    __atomic_store_n(&gone, 1, __ATOMIC_RELEASE);
}

/* Treats "done" as "owned". */
static void look_when_told(void)
{
    if (__atomic_load_n(&gone, __ATOMIC_ACQUIRE))
        LabAssert(shared->value == 7);
}
LAB_SCENARIO(malloc_use_after_free, .Setup = make_shared, .Threads = {free_and_tell, look_when_told},
             .Expect = "freed memory");

static void free_when_told(void)
{
    if (__atomic_load_n(&gone, __ATOMIC_ACQUIRE))
        free(shared);
}
LAB_SCENARIO(malloc_freed_twice, .Setup = make_shared, .Threads = {free_and_tell, free_when_told},
             .Expect = "freed memory");

/* Reads the object after it has dropped its reference. */
static void drop_then_look(void)
{
    if (__atomic_fetch_sub(&shared->references, 1, __ATOMIC_ACQ_REL) == 1)
        free(shared);
    else
        LabAssert(shared->value == 7);
}
LAB_SCENARIO(malloc_use_against_free, .Setup = make_shared, .Threads = {drop_then_look, drop_then_look},
             .Expect = "race");

static void look_then_drop(void)
{
    LabAssert(shared->value == 7);
    if (__atomic_fetch_sub(&shared->references, 1, __ATOMIC_ACQ_REL) == 1)
        free(shared);
}
LAB_SCENARIO(malloc_counted, .Setup = make_shared, .Threads = {look_then_drop, look_then_drop});

/* The second thread leaks its copy. */
static char *name;

static void publish(int frees_own)
{
    char *nobody = NULL;
    char *copy = strdup("lab");

    LabAssert(copy != NULL && strcmp(copy, "lab") == 0);
    copy = realloc(copy, 100);
    LabAssert(copy != NULL && strcmp(copy, "lab") == 0);
    if (!__atomic_compare_exchange_n(&name, &nobody, copy, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) && frees_own)
        free(copy);
}

static void publish_and_forget(void)
{
    publish(0);
}

static void publish_or_free(void)
{
    publish(1);
}

static void forget_name(void)
{
    free(name);
}
LAB_SCENARIO(malloc_leak, .Threads = {publish_and_forget, publish_and_forget}, .Finish = forget_name,
             .Flags = LAB_CHECK_LEAKS, .Expect = "leak");
LAB_SCENARIO(malloc_no_leak, .Threads = {publish_or_free, publish_or_free}, .Finish = forget_name,
             .Flags = LAB_CHECK_LEAKS);

/* The allocation may fail. */
static void count_in_memory(void)
{
    volatile uint32_t *counter = calloc(4, sizeof(*counter));

    counter[0]++;
    free((void *)counter);
}
LAB_SCENARIO(malloc_unchecked, .Threads = {count_in_memory}, .AllocationFailures = 1, .Expect = "crash");

static void count_if_there(void)
{
    volatile uint32_t *counter = calloc(4, sizeof(*counter));

    if (counter == NULL)
        return;
    LabAssert(counter[0] == 0 && counter[3] == 0);
    free((void *)counter);
}
LAB_SCENARIO(malloc_checked, .Threads = {count_if_there, count_if_there}, .AllocationFailures = 2,
             .Flags = LAB_CHECK_LEAKS);

/* Past the end of a block. */
static void write_behind(void)
{
    volatile char *text = aligned_alloc(64, 64);

    text[LabChoose(2) * 64] = 1;
    free((void *)text);
}
LAB_SCENARIO(malloc_overrun, .Threads = {write_behind}, .Expect = "wild access");
