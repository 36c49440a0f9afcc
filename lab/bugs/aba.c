/* A stack without a sequence number: pop reads the successor of a node that is removed and pushed again. */
#include <interlock/lab.h>

#include <stddef.h>

typedef struct node {
    struct node *next;
} node;

static node *top;
static node nodes[3];

static void push(node *n)
{
    node *old = __atomic_load_n(&top, __ATOMIC_RELAXED);
    do
        __atomic_store_n(&n->next, old, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&top, &old, n, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static node *pop(void)
{
    node *old = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
    while (old != NULL) {
        node *next = __atomic_load_n(&old->next, __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&top, &old, next, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            break;
    }
    return old;
}

static void setup(void)
{
    for (int i = 3; i-- != 0;)
        push(&nodes[i]);
}

static int owners[3];

static void own(node *n)
{
    if (n != NULL)
        LabAssert(__atomic_fetch_add(&owners[n - nodes], 1, __ATOMIC_RELAXED) == 0);
}

static void popper(void)
{
    own(pop());
}

/* Pops two and pushes the first one again. */
static void juggler(void)
{
    node *first = pop();
    own(pop());
    if (first != NULL)
        push(first);
}

static void last_popper(void)
{
    popper();
    popper();
}

LAB_SCENARIO(aba_stack, .Setup = setup, .Threads = {last_popper, juggler}, .Expect = "assertion");
