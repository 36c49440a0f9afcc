/*
 * references.c: locks from the literature, as a measure for the library's. Instrumented like locks.c. Waiting threads
 * spin, as these locks do: no thread sleeps.
 *
 * - Compare-exchange: one word, tried until it succeeds.
 * - Ticket: takes a number and waits until it is served. Every waiter reads the same word.
 * - MCS (Mellor-Crummey and Scott, 1991): a queue of nodes on the waiters' stacks; each waiter reads its own.
 * - Cohort (Dice, Marathe and Shavit, 2012): an MCS lock for each NUMA node and a ticket lock over them. The owner of
 *   both hands both to the next waiter of its node, at most MOST_IN_COHORT times: only then does the lock leave the
 *   node.
 */
#include "locks.h"

#define MOST_NODES     64
#define MOST_IN_COHORT 64

typedef struct mcs_node {
    struct mcs_node *next;
    uint32_t state;
} __attribute__((aligned(64))) mcs_node;

enum { MCS_WAITS, MCS_HAS_LOCK, MCS_HAS_BOTH };

typedef struct ticket_lock {
    uint32_t next, served;
} ticket_lock;

static struct {
    uint32_t word __attribute__((aligned(64)));
} plain;

static struct {
    ticket_lock lock __attribute__((aligned(64)));
} ticket;

static struct {
    mcs_node *last __attribute__((aligned(64)));
} mcs;

static struct {
    ticket_lock global __attribute__((aligned(64)));
    struct {
        mcs_node *last __attribute__((aligned(64)));
        uint32_t handed; /* to waiters of this node, one after the other; the owner's */
    } local[MOST_NODES];
} cohort;

void setup_references(void)
{
    count_lock(&plain, sizeof(plain));
    count_lock(&ticket, sizeof(ticket));
    count_lock(&mcs, sizeof(mcs));
    count_lock(&cohort, sizeof(cohort));
}

void round_compare_exchange(void)
{
    uint32_t found = 0;

    count_begins();
    while (!__atomic_compare_exchange_n(&plain.word, &found, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        found = 0;
    count_acquired();
    count_change_data();
    __atomic_store_n(&plain.word, 0, __ATOMIC_RELEASE);
}

static void ticket_acquire(ticket_lock *lock)
{
    uint32_t own = __atomic_fetch_add(&lock->next, 1, __ATOMIC_RELAXED);

    while (__atomic_load_n(&lock->served, __ATOMIC_ACQUIRE) != own)
        continue;
}

/* Only the owner writes it. */
static void ticket_release(ticket_lock *lock)
{
    __atomic_store_n(&lock->served, __atomic_load_n(&lock->served, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}

void round_ticket(void)
{
    count_begins();
    ticket_acquire(&ticket.lock);
    count_acquired();
    count_change_data();
    ticket_release(&ticket.lock);
}

/* Returns the state. */
static uint32_t mcs_acquire(mcs_node **last, mcs_node *own)
{
    uint32_t state;

    own->next = NULL;
    own->state = MCS_WAITS;
    mcs_node *before = __atomic_exchange_n(last, own, __ATOMIC_ACQ_REL);
    if (before == NULL)
        return MCS_HAS_LOCK;
    __atomic_store_n(&before->next, own, __ATOMIC_RELEASE);
    while ((state = __atomic_load_n(&own->state, __ATOMIC_ACQUIRE)) == MCS_WAITS)
        continue;
    return state;
}

static mcs_node *mcs_next(mcs_node *own)
{
    return __atomic_load_n(&own->next, __ATOMIC_ACQUIRE);
}

static void mcs_release(mcs_node **last, mcs_node *own, uint32_t state)
{
    mcs_node *expected = own;

    if (mcs_next(own) == NULL) {
        if (__atomic_compare_exchange_n(last, &expected, NULL, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
        while (mcs_next(own) == NULL)
            continue;
    }
    __atomic_store_n(&mcs_next(own)->state, state, __ATOMIC_RELEASE);
}

void round_mcs(void)
{
    mcs_node own;

    count_begins();
    mcs_acquire(&mcs.last, &own);
    count_acquired();
    count_change_data();
    mcs_release(&mcs.last, &own, MCS_HAS_LOCK);
}

void round_cohort(void)
{
    mcs_node own;
    uint32_t node = count_node() % MOST_NODES;

    count_begins();
    if (mcs_acquire(&cohort.local[node].last, &own) == MCS_HAS_LOCK) {
        ticket_acquire(&cohort.global);
        cohort.local[node].handed = 0;
    }
    count_acquired();
    count_change_data();
    if (mcs_next(&own) != NULL && ++cohort.local[node].handed <= MOST_IN_COHORT) {
        mcs_release(&cohort.local[node].last, &own, MCS_HAS_BOTH);
        return;
    }
    ticket_release(&cohort.global);
    mcs_release(&cohort.local[node].last, &own, MCS_HAS_LOCK);
}
