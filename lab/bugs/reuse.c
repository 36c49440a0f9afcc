/*
 * A stack whose nodes are freed: a pop has read the successor of the top, and in the meantime that node is popped, freed,
 * allocated again for another value, and pushed. Only reused memory shows it.
 */
#include <interlock/lab.h>

#include <stddef.h>
#include <stdlib.h>

typedef struct node {
    struct node *next;
    int value;
} node;

static node *top;
static int taken;

static void push(int value)
{
    node *n = malloc(sizeof(*n));
    node *old = __atomic_load_n(&top, __ATOMIC_RELAXED);

    if (n == NULL)
        return;
    n->value = value;
    do
        __atomic_store_n(&n->next, old, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&top, &old, n, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static node *pop(void)
{
    node *old = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
    node *next = old != NULL ? __atomic_load_n(&old->next, __ATOMIC_RELAXED) : NULL;

    if (old == NULL || !__atomic_compare_exchange_n(&top, &old, next, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return NULL;
    return old;
}

static void setup(void)
{
    push(1);
    push(2);
}

/* Two values are on the stack; a pop removes one of them and leaves the other. */
static void pop_one(void)
{
    node *n = pop();
    if (n != NULL)
        __atomic_fetch_add(&taken, n->value, __ATOMIC_RELAXED);
}

/* One at a time, so that the other thread's read of the top's successor is the only unprotected access. */
static uint32_t looked;

static void pop_slowly(void)
{
    node *old = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
    node *next = __atomic_load_n(&old->next, __ATOMIC_RELAXED);

    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    if (__atomic_compare_exchange_n(&top, &old, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        LabAssert(old->value == 2);
}

static void replace_top(void)
{
    while (__atomic_load_n(&looked, __ATOMIC_ACQUIRE) == 0)
        ;
    node *first = pop();
    if (first != NULL) {
        free(first);
        push(3);
    }
}

LAB_SCENARIO(reuse_aba, .Setup = setup, .Threads = {pop_slowly, replace_top}, .Reuse = 1, .Expect = "assertion");
/* Without reuse the address never returns. */
LAB_SCENARIO(reuse_none, .Setup = setup, .Threads = {pop_slowly, replace_top});
/* One owner per node, and each thread accesses only its own nodes. */
LAB_SCENARIO(reuse_two_poppers, .Setup = setup, .Threads = {pop_one, pop_one}, .Reuse = 1);

/* Freed memory is still detected, in the schedules in which it is not reused. */
static int *volatile block;

static void allocate(void)
{
    block = malloc(sizeof(*block));
}

static void free_and_allocate(void)
{
    free(block);
    int *other = malloc(sizeof(*other));
    if (other != NULL)
        *other = 1;
    LabAssert(*block != 1 || block == other); /* used after free */
    free(other);
}
LAB_SCENARIO(reuse_use_after_free, .Setup = allocate, .Threads = {free_and_allocate}, .Reuse = 1,
             .Expect = "freed memory");

/* The end of a block's life happens before its next life: no race between the owners of the two. */
static void use_and_free(void)
{
    int *own = malloc(sizeof(*own));

    if (own == NULL)
        return;
    *own = 1;
    LabAssert(*own == 1);
    free(own);
}
LAB_SCENARIO(reuse_in_turn, .Threads = {use_and_free, use_and_free, use_and_free}, .Reuse = LAB_UNLIMITED,
             .Flags = LAB_CHECK_LEAKS);
