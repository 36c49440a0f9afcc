/* locks.c: ticket lock, Peterson's algorithm, reader/writer lock, seqlock. */
#include "compare.h"

static int data;

/* Ticket lock: three threads. */

static atomic_uint next_ticket, now_serving;

static void *ticket(void *unused)
{
    unsigned own = atomic_fetch_add_explicit(&next_ticket, 1, RELAXED);

    while (atomic_load_explicit(&now_serving, ACQUIRE) != own) {
    }
    data++;
    atomic_store_explicit(&now_serving, own + 1, RELEASE);
    return unused;
}

static void *ticket_relaxed(void *unused)
{
    unsigned own = atomic_fetch_add_explicit(&next_ticket, 1, RELAXED);

    while (atomic_load_explicit(&now_serving, RELAXED) != own) {
    }
    data++;
    atomic_store_explicit(&now_serving, own + 1, RELEASE);
    return unused;
}

CORRECT(ticket_lock, "c11")
{
    RUN(ticket, ticket, ticket);
    assert(data == 3);
}

BROKEN(ticket_lock_relaxed, "c11", "race")
{
    RUN(ticket_relaxed, ticket_relaxed, ticket_relaxed);
}

/* Peterson: needs sequential consistency. */

static atomic_int wants[2], turn;

static void peterson_enter(int self, memory_order order)
{
    atomic_store_explicit(&wants[self], 1, order == STRONG ? STRONG : RELEASE);
    atomic_store_explicit(&turn, 1 - self, order == STRONG ? STRONG : RELEASE);
    while (atomic_load_explicit(&wants[1 - self], order) && atomic_load_explicit(&turn, order) == 1 - self) {
    }
}

static void *peterson(void *number)
{
    int self = (int)(uintptr_t)number - 1;

    peterson_enter(self, STRONG);
    data++;
    atomic_store_explicit(&wants[self], 0, RELEASE);
    return NULL;
}

static void *peterson_acquire(void *number)
{
    int self = (int)(uintptr_t)number - 1;

    peterson_enter(self, ACQUIRE);
    data++;
    atomic_store_explicit(&wants[self], 0, RELEASE);
    return NULL;
}

CORRECT(peterson_lock, "c11")
{
    RUN(peterson, peterson);
    assert(data == 2);
}

BROKEN(peterson_lock_acquire, "c11", "race")
{
    RUN(peterson_acquire, peterson_acquire);
}

/* A reader/writer lock in one word: a writer is -1. */

static atomic_int readers;

static void *write_data(void *unused)
{
    int none = 0;

    while (!atomic_compare_exchange_strong_explicit(&readers, &none, -1, ACQUIRE, RELAXED))
        none = 0;
    data++;
    atomic_store_explicit(&readers, 0, RELEASE);
    return unused;
}

static void *read_data(void *unused)
{
    int count = atomic_load_explicit(&readers, RELAXED);

    do {
        while (count < 0)
            count = atomic_load_explicit(&readers, RELAXED);
    } while (!atomic_compare_exchange_strong_explicit(&readers, &count, count + 1, ACQUIRE, RELAXED));
    int seen = data;
    atomic_fetch_sub_explicit(&readers, 1, RELEASE);
    assert(seen == 0 || seen == 1);
    return unused;
}

/* The count is incremented without a check for a writer. */
static void *read_data_blindly(void *unused)
{
    while (atomic_fetch_add_explicit(&readers, 1, ACQUIRE) < -1)
        atomic_fetch_sub_explicit(&readers, 1, RELAXED);
    int seen = data;
    atomic_fetch_sub_explicit(&readers, 1, RELEASE);
    assert(seen == 0 || seen == 1);
    return unused;
}

CORRECT(rw_lock, "c11")
{
    RUN(write_data, read_data, read_data);
}

BROKEN(rw_lock_blind, "c11", "race")
{
    RUN(write_data, read_data_blindly);
}

/* Seqlock: two words that belong together. */

static atomic_uint sequence;
static atomic_int first, second;

static void write_pair(memory_order fence)
{
    unsigned s = atomic_load_explicit(&sequence, RELAXED);

    atomic_store_explicit(&sequence, s + 1, RELAXED);
    if (fence != RELAXED)
        atomic_thread_fence(fence);
    atomic_store_explicit(&first, 1, RELAXED);
    atomic_store_explicit(&second, 1, RELAXED);
    atomic_store_explicit(&sequence, s + 2, RELEASE);
}

static void *write_seqlock(void *unused)
{
    write_pair(RELEASE);
    return unused;
}

static void *write_seqlock_unfenced(void *unused)
{
    write_pair(RELAXED);
    return unused;
}

static void *read_seqlock(void *unused)
{
    for (;;) {
        unsigned s = atomic_load_explicit(&sequence, ACQUIRE);
        int one = atomic_load_explicit(&first, RELAXED), two = atomic_load_explicit(&second, RELAXED);
        atomic_thread_fence(ACQUIRE);
        if (!(s & 1) && atomic_load_explicit(&sequence, RELAXED) == s) {
            assert(one == two);
            return unused;
        }
    }
}

CORRECT(seqlock, "c11")
{
    RUN(write_seqlock, read_seqlock);
}

BROKEN(seqlock_unfenced, "c11", "assertion")
{
    RUN(write_seqlock_unfenced, read_seqlock);
}
