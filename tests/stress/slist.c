/* Interlocked lists with many threads: no entry is lost or popped twice, even when entries are unmapped. */
#include "stress.h"

#include <sys/mman.h>
#include <unistd.h>

#include "hal/halp.h"

#include <interlock/interlocked.h>

#define PAGE 4096
#define MOST_NODES 256

typedef struct node {
    SLIST_ENTRY link;
    volatile ULONG taken;
    unsigned long uses;   /* not atomic: the thread that popped the node owns it */
} node;

typedef struct race {
    SLIST_HEADER list;
    unsigned long rounds;
    unsigned nodes;
    volatile unsigned long uses;
    node node[MOST_NODES];
} race;

static void take(node *n)
{
    require(__atomic_exchange_n(&n->taken, 1, __ATOMIC_RELAXED) == 0);
    n->uses++;
}

static void give(node *n)
{
    require(__atomic_exchange_n(&n->taken, 0, __ATOMIC_RELAXED) == 1);
}

static unsigned long take_one(race *r)
{
    node *n = (node *)InterlockedPopEntrySList(&r->list);

    if (n == NULL)
        return 0;
    take(n);
    give(n);
    InterlockedPushEntrySList(&r->list, &n->link);
    return 1;
}

/* Pushes two entries back in the other order: the case that the sequence number is for. */
static unsigned long swap_two(race *r)
{
    node *a = (node *)InterlockedPopEntrySList(&r->list), *b = (node *)InterlockedPopEntrySList(&r->list);

    if (a != NULL) {
        take(a);
        give(a);
        InterlockedPushEntrySList(&r->list, &a->link);
    }
    if (b != NULL) {
        take(b);
        give(b);
        InterlockedPushEntrySList(&r->list, &b->link);
    }
    return (a != NULL) + (b != NULL);
}

static unsigned long take_all(race *r)
{
    PSLIST_ENTRY first = InterlockedFlushSList(&r->list), last = first;
    unsigned long count = 0;

    for (PSLIST_ENTRY link = first; link != NULL; link = link->Next) {
        take((node *)link);
        give((node *)link);
        last = link;
        count++;
    }
    if (first != NULL)
        InterlockedPushListSListEx(&r->list, first, last, (ULONG)count);
    return count;
}

static void mix(void *argument, unsigned index)
{
    race *r = argument;
    unsigned long uses = 0;
    test_random random;

    random_seed(&random, index);
    for (unsigned long round = 0; round < r->rounds; round++) {
        uint32_t choice = random_below(&random, 64);

        if (round % 4096 == 0)
            sched_yield();
        uses += choice == 0 ? take_all(r) : choice < 32 ? swap_two(r) : take_one(r);
    }
    __atomic_fetch_add(&r->uses, uses, __ATOMIC_RELAXED);
}

static void conserved(unsigned threads, unsigned nodes)
{
    static race r;
    unsigned long uses = 0;
    unsigned count = 0;

    memset(&r, 0, sizeof(r));
    r.rounds = test_rounds(1000000) / threads + 1;
    r.nodes = nodes;
    for (unsigned i = 0; i < nodes; i++)
        InterlockedPushEntrySList(&r.list, &r.node[i].link);
    run_threads(threads, HANG_SECONDS, mix, &r);
    assert_int_equal(QueryDepthSList(&r.list), nodes);
    for (node *n; (n = (node *)InterlockedPopEntrySList(&r.list)) != NULL; count++)
        uses += n->uses;
    assert_int_equal(count, nodes);
    assert_int_equal(uses, r.uses);
}

static void entries_are_conserved(void **state)
{
    static const unsigned threads[] = {2, 4, 16, 64}, nodes[] = {1, 2, 3, MOST_NODES};

    (void)state;
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
        for (size_t k = 0; k < sizeof(nodes) / sizeof(nodes[0]); k++)
            conserved(threads[i], nodes[k]);
}

/*
 * Each entry is a page of its own. The thread that popped it unmaps it, then maps and pushes it again. The page is
 * file-backed and is dropped from the page tables after the push: the next thread that reads the link takes a page
 * fault, and by the time it continues another thread may have popped the entry.
 */

#define PAGES 4

typedef struct page {
    SLIST_ENTRY link;
    unsigned number;
} page;

typedef struct vanishing {
    SLIST_HEADER list;
    unsigned long rounds;
    int file;
    volatile ULONG taken[PAGES];
} vanishing;

static page *map_page(vanishing *v, unsigned number)
{
    page *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, v->file, (off_t)number * PAGE);

    require(p != MAP_FAILED);
    return p;
}

static page *pop_page(vanishing *v)
{
    page *p = (page *)InterlockedPopEntrySList(&v->list);

    if (p != NULL) {
        require(p->number < PAGES);
        require(__atomic_exchange_n(&v->taken[p->number], 1, __ATOMIC_RELAXED) == 0);
    }
    return p;
}

static page *map_again(vanishing *v, page *p)
{
    unsigned number = p->number;

    require(munmap(p, PAGE) == 0);
    return map_page(v, number);
}

static void push_page(vanishing *v, page *p)
{
    require(__atomic_exchange_n(&v->taken[p->number], 0, __ATOMIC_RELAXED) == 1);
    InterlockedPushEntrySList(&v->list, &p->link);
    madvise(p, PAGE, MADV_DONTNEED); /* fails where the entry is already gone */
}

/* Pops some pages and pushes them back in another order, some at another address: a pop that was delayed meanwhile may
   find the same first entry again, with another successor. */
static void shuffle(void *argument, unsigned index)
{
    vanishing *v = argument;
    test_random random;

    random_seed(&random, index);
    for (unsigned long round = 0; round < v->rounds; round++) {
        page *pages[PAGES];
        unsigned count = 0, wanted = 1 + random_below(&random, PAGES);

        while (count < wanted && (pages[count] = pop_page(v)) != NULL)
            count++;
        while (count != 0) {
            unsigned next = random_below(&random, count);

            push_page(v, random_below(&random, 2) ? map_again(v, pages[next]) : pages[next]);
            pages[next] = pages[--count];
        }
    }
}

static void unmapped_under_pops(void **state)
{
    static const unsigned threads[] = {2, 4, 16, 64};
    ULONG64 before = HalpFailedReads;

    (void)state;
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
        vanishing v = {.rounds = test_rounds(60000) / threads[i] + 1, .file = memfd_create("entries", 0)};
        unsigned count = 0;
        page *p;

        assert_int_equal(ftruncate(v.file, PAGES * PAGE), 0);
        for (unsigned number = 0; number < PAGES; number++) {
            p = map_page(&v, number);
            p->number = number;
            InterlockedPushEntrySList(&v.list, &p->link);
        }
        run_threads(threads[i], HANG_SECONDS, shuffle, &v);
        assert_int_equal(QueryDepthSList(&v.list), PAGES);
        for (; (p = (page *)InterlockedPopEntrySList(&v.list)) != NULL; count++)
            munmap(p, PAGE);
        assert_int_equal(count, PAGES);
        close(v.file);
    }
    print_message("# %llu pops read an entry that was already unmapped\n", HalpFailedReads - before);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_conserved),
        cmocka_unit_test(unmapped_under_pops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
