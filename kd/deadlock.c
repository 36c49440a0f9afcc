/*
 * deadlock.c: threads whose waits can never end.
 *
 * A thread can proceed if it does not wait, if it waits for an object without a known owner (any thread may signal it),
 * or if all owners of the object can proceed. A WaitAny needs one such object, a WaitAll needs all of them. The threads
 * for which this can be derived, step by step, are all that can ever run again, whatever kinds of locks are involved.
 *
 * Every other thread waits for another one of them, or for a lock whose owner has exited. Following these waits leads
 * to the cause: a cycle, which is a deadlock, or an orphaned lock, which is not, because its waiters do not wait for
 * each other. Timeouts and alerts do not count: they end a deadlock, but the program did not mean to wait for them.
 *
 * Threads and owners of a live process are read one after the other, so a cycle in one snapshot may never have existed.
 * Two snapshots decide (kd_confirm_deadlocks). Threads that are in the same wait in both were all waiting at the time when
 * the first one read the owners, so the owners among them are those of one moment. Every other thread counts as running.
 * What remains deadlocked in the first snapshot is deadlocked. The rest of the process may be as busy as it likes.
 */
#include "kd.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STEPS 2000000 /* budget of the search for suspects */

/* One about which nothing is known, or that loses the lock when it ends. */
static bool is_unknown_owner(const kd_owner *owner)
{
    return owner->thread < 0 && (owner->id == 0 || owner->cannot_orphan);
}

/*
 * A list per thread or lock, all in one array: those of number n are from first[n] up to first[n + 1]. It takes two
 * rounds to make, counting and filling.
 */
typedef struct lists {
    size_t *first;
    int *items;
} lists;

/* Item number belongs to list n, or to none if n is negative: counted if items is NULL, put there otherwise. */
static void add_item(lists *l, size_t *next, int n, int number)
{
    if (n >= 0 && l->items == NULL)
        l->first[n + 1]++;
    else if (n >= 0)
        l->items[l->first[n] + next[n]++] = number;
}

/* The analysis of the waits. */
typedef struct analysis {
    const kd_snapshot *snapshot;
    const kd_snapshot *other; /* NULL, or another one: only what it has found as well counts */
    lists held;          /* per thread, the locks that it owns, once per acquisition */
    lists waited;        /* per lock, its waiting threads, once per wait block */
    size_t *kept_by;     /* per lock, the number of owners not yet known to proceed */
    size_t *coming;      /* per thread, the number of its blocks that can be satisfied */
    bool *stays;         /* per thread: it is in the same wait in the other snapshot */
    bool *gets_on;
    int *queue;          /* threads that can proceed and are still to be visited */
    size_t queued, followed;
    kd_link *of_lock;    /* per lock, the owner that blocks its waiters; .thread is -1 while unknown */
} analysis;

typedef void visit_items(const kd_snapshot *snapshot, lists *l, size_t *next);

static void visit_owners(const kd_snapshot *snapshot, lists *l, size_t *next)
{
    for (size_t i = 0; i < snapshot->lock_count; i++)
        for (size_t o = 0; o < snapshot->locks[i].owner_count; o++)
            add_item(l, next, snapshot->locks[i].owners[o].thread, (int)i);
}

static void visit_blocks(const kd_snapshot *snapshot, lists *l, size_t *next)
{
    for (size_t i = 0; i < snapshot->thread_count; i++)
        for (size_t b = 0; b < snapshot->threads[i].block_count; b++)
            add_item(l, next, snapshot->threads[i].blocks[b].lock, (int)i);
}

static lists make_lists(const kd_snapshot *snapshot, size_t count, visit_items *visit)
{
    size_t *next = kd_allocate(count + 1, sizeof(size_t));
    lists l = {.first = kd_allocate(count + 2, sizeof(size_t))};

    visit(snapshot, &l, next);
    for (size_t i = 0; i < count; i++)
        l.first[i + 1] += l.first[i];
    l.items = kd_allocate(l.first[count] + 1, sizeof(int));
    visit(snapshot, &l, next);
    free(next);
    return l;
}

static void start(analysis *a, const kd_snapshot *snapshot, const kd_snapshot *other)
{
    *a = (analysis){.snapshot = snapshot, .other = other};
    a->held = make_lists(snapshot, snapshot->thread_count, visit_owners);
    a->waited = make_lists(snapshot, snapshot->lock_count, visit_blocks);
    a->kept_by = kd_allocate(snapshot->lock_count + 1, sizeof(size_t));
    a->coming = kd_allocate(snapshot->thread_count + 1, sizeof(size_t));
    a->stays = kd_allocate(snapshot->thread_count + 1, sizeof(bool));
    a->gets_on = kd_allocate(snapshot->thread_count + 1, sizeof(bool));
    a->queue = kd_allocate(snapshot->thread_count + 1, sizeof(int));
    a->of_lock = kd_allocate(snapshot->lock_count + 1, sizeof(kd_link));
    for (size_t i = 0; i < snapshot->thread_count; i++)
        a->stays[i] = other == NULL || kd_has_waited_since(other, snapshot, &snapshot->threads[i]);
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        a->of_lock[i].thread = -1;
        for (size_t o = 0; o < snapshot->locks[i].owner_count; o++)
            a->kept_by[i] += !is_unknown_owner(&snapshot->locks[i].owners[o]);
    }
}

static void end(analysis *a)
{
    free(a->held.first);
    free(a->held.items);
    free(a->waited.first);
    free(a->waited.items);
    free(a->kept_by);
    free(a->coming);
    free(a->stays);
    free(a->gets_on);
    free(a->queue);
    free(a->of_lock);
}

static bool waits_exclusively(const kd_lock *lock, int thread)
{
    for (size_t i = 0; i < lock->waiter_count; i++)
        if (lock->waiters[i].thread == thread)
            return lock->waiters[i].exclusive;
    return true;
}

/*
 * The owner of a lock that may be acquired again never waits for it. One that seems to was handed the lock by the
 * releasing thread and has not run since, which can take long on a busy host.
 */
static bool is_handed_over(const analysis *a, int thread, int number)
{
    const kd_lock *lock = &a->snapshot->locks[number];

    if (lock->kind != KD_CRITICAL_SECTION && lock->kind != KD_MUTANT && lock->kind != KD_RESOURCE &&
        lock->kind != KD_FAST_RESOURCE && lock->kind != KD_RTL_RESOURCE)
        return false;
    for (size_t h = a->held.first[thread]; h < a->held.first[thread + 1]; h++)
        if (a->held.items[h] == number)
            return lock->hold == KD_EXCLUSIVE || !waits_exclusively(lock, thread);
    return false;
}

static bool is_deadlocked_in_other(const analysis *a, int thread)
{
    if (a->other == NULL)
        return true;
    return a->stays[thread] && a->other->threads[kd_thread_at(a->other, a->snapshot->threads[thread].address)].deadlocked;
}

static void consider(analysis *a, int thread)
{
    const kd_thread *t = &a->snapshot->threads[thread];
    bool gets_on = !t->waiting || t->granted || t->block_count == 0 || !is_deadlocked_in_other(a, thread) ||
                   (t->blocks[0].raw.WaitType == WaitAll ? a->coming[thread] == t->block_count : a->coming[thread] > 0);

    if (gets_on && !a->gets_on[thread]) {
        a->gets_on[thread] = true;
        a->queue[a->queued++] = thread;
    }
}

/* Each thread is queued once, each owner and each block counted down once: linear. */
static void find_those_that_get_on(analysis *a)
{
    const kd_snapshot *snapshot = a->snapshot;

    for (size_t i = 0; i < snapshot->thread_count; i++) {
        const kd_thread *t = &snapshot->threads[i];

        for (size_t b = 0; b < t->block_count; b++)
            a->coming[i] += t->blocks[b].lock < 0 || a->kept_by[t->blocks[b].lock] == 0 ||
                            is_handed_over(a, (int)i, t->blocks[b].lock);
        consider(a, (int)i);
    }
    while (a->followed < a->queued) {
        int thread = a->queue[a->followed++];

        for (size_t h = a->held.first[thread]; h < a->held.first[thread + 1]; h++) {
            int lock = a->held.items[h];

            if (--a->kept_by[lock] != 0)
                continue;
            for (size_t w = a->waited.first[lock]; w < a->waited.first[lock + 1]; w++) {
                a->coming[a->waited.items[w]]++;
                consider(a, a->waited.items[w]);
            }
        }
    }
}

/* The owner that blocks the waiters of a lock: one that has exited, or one that is deadlocked. .lock is -1: none. */
static const kd_link *link_of_lock(analysis *a, int index)
{
    const kd_lock *lock = &a->snapshot->locks[index];
    kd_link *found = &a->of_lock[index];

    if (found->thread >= 0)
        return found;
    *found = (kd_link){.thread = 0, .lock = -1, .owner = -1};
    for (size_t i = 0; i < lock->owner_count; i++) {
        const kd_owner *owner = &lock->owners[i];

        if (is_unknown_owner(owner) || (owner->thread >= 0 && a->gets_on[owner->thread]))
            continue;
        *found = (kd_link){.thread = 0, .lock = index, .owner = owner->thread, .owner_id = owner->id};
        if (owner->thread < 0)
            break;
    }
    return found;
}

/* The lock that blocks a deadlocked thread: its owner has exited or is deadlocked. */
static kd_link link_of(analysis *a, int thread)
{
    const kd_thread *t = &a->snapshot->threads[thread];
    kd_link found = {.thread = thread, .lock = -1, .owner = -1};

    for (size_t b = 0; b < t->block_count; b++) {
        const kd_link *link = t->blocks[b].lock >= 0 ? link_of_lock(a, t->blocks[b].lock) : NULL;

        if (link == NULL || link->lock < 0)
            continue;
        found = *link;
        found.thread = thread;
        if (found.owner < 0)
            break;
    }
    return found;
}

static bool is_probable(const kd_snapshot *snapshot, const kd_link *link)
{
    const kd_lock *lock = &snapshot->locks[link->lock];

    for (size_t i = 0; i < lock->owner_count; i++)
        if (lock->owners[i].thread == link->owner && lock->owners[i].probable)
            return true;
    return false;
}

static void add_cycle(analysis *a, kd_snapshot *snapshot, kd_deadlocks *deadlocks, int first)
{
    kd_cycle cycle = {.certain = true};
    int thread = first;

    do {
        kd_link link = link_of(a, thread);

        snapshot->threads[thread].cycle = (int)deadlocks->cycle_count;
        cycle.links = kd_grow(cycle.links, cycle.count, sizeof(kd_link));
        cycle.links[cycle.count++] = link;
        cycle.orphaned = link.owner < 0;
        cycle.certain = cycle.certain && !is_probable(snapshot, &link) && !snapshot->threads[thread].probable;
        thread = link.owner;
    } while (thread >= 0 && thread != first);
    deadlocks->cycles = kd_grow(deadlocks->cycles, deadlocks->cycle_count, sizeof(kd_cycle));
    deadlocks->cycles[deadlocks->cycle_count++] = cycle;
}

/*
 * Each deadlocked thread is blocked by one other thread, or by one that has exited. Following that leads to a thread
 * whose cause is already known, to one visited on the way, which closes a cycle, or to an orphaned lock. One waiter of
 * an orphaned lock is enough; the others are behind it.
 */
static void follow_all(analysis *a, kd_snapshot *snapshot, kd_deadlocks *deadlocks)
{
    enum { UNKNOWN, ON_THE_WAY, IN_DEADLOCK, AT_ORPHAN };
    char *places = kd_allocate(snapshot->thread_count + 1, 1), *orphans = kd_allocate(snapshot->lock_count + 1, 1);

    for (size_t i = 0; i < snapshot->thread_count; i++) {
        int thread = (int)i, last = (int)i;
        char end_of_it;

        if (a->gets_on[i])
            continue;
        while (thread >= 0 && places[thread] == UNKNOWN) {
            places[thread] = ON_THE_WAY;
            last = thread;
            thread = link_of(a, thread).owner;
        }
        if (thread >= 0 && places[thread] == ON_THE_WAY) {
            add_cycle(a, snapshot, deadlocks, thread);
            end_of_it = IN_DEADLOCK;
        } else if (thread < 0) {
            int lock = link_of(a, last).lock;

            if (lock >= 0 && !orphans[lock]) {
                orphans[lock] = true;
                add_cycle(a, snapshot, deadlocks, last);
            }
            end_of_it = AT_ORPHAN;
        } else {
            end_of_it = places[thread];
        }
        for (thread = (int)i; thread >= 0 && places[thread] == ON_THE_WAY; thread = link_of(a, thread).owner)
            places[thread] = end_of_it;
    }
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        snapshot->threads[i].deadlocked = !a->gets_on[i];
        snapshot->threads[i].orphaned = places[i] == AT_ORPHAN;
    }
    free(places);
    free(orphans);
}

/* Threads that wait, directly or indirectly, for the waiters of a lock. */
typedef struct search {
    analysis *analysis;
    uint32_t *seen;      /* per thread, the last search that found it */
    uint32_t number;
    int *found;          /* the waiters of the lock first */
    size_t count;
    size_t steps;        /* of all searches */
} search;

static void find_thread(search *s, int thread)
{
    s->steps++;
    if (s->seen[thread] == s->number || !s->analysis->stays[thread])
        return;
    s->seen[thread] = s->number;
    s->found[s->count++] = thread;
}

static int by_number(const void *one, const void *other)
{
    return *(const int *)one < *(const int *)other ? -1 : *(const int *)one > *(const int *)other;
}

static int by_lock(const void *one, const void *other)
{
    return by_number(&((const kd_suspicion *)one)->lock, &((const kd_suspicion *)other)->lock);
}

/* The other snapshot's suspicion about the same lock; NULL: none. Both are in the order of their locks. */
static const kd_suspicion *suspicion_in_other(const analysis *a, const kd_lock *lock)
{
    const kd_deadlocks *deadlocks = a->other->deadlocks;
    kd_suspicion key = {.lock = kd_find_same_lock(a->other, lock)};

    return key.lock < 0 || deadlocks->suspicion_count == 0 ? NULL :
           bsearch(&key, deadlocks->suspicions, deadlocks->suspicion_count, sizeof(key), by_lock);
}

static bool is_suspect_in_other(const analysis *a, const kd_suspicion *there, int thread)
{
    int index = kd_thread_at(a->other, a->snapshot->threads[thread].address);

    return bsearch(&index, there->suspects, there->count, sizeof(int), by_number) != NULL;
}

static void suspect(search *s, kd_deadlocks *deadlocks, int index)
{
    const kd_lock *lock = &s->analysis->snapshot->locks[index];
    const analysis *a = s->analysis;
    const kd_suspicion *there = a->other != NULL ? suspicion_in_other(a, lock) : NULL;
    kd_suspicion suspicion = {.lock = index};
    size_t waiters;

    if (a->other != NULL && there == NULL)
        return;
    s->number++;
    s->count = 0;
    for (size_t i = 0; i < lock->waiter_count; i++)
        find_thread(s, lock->waiters[i].thread);
    waiters = s->count;
    for (size_t i = 0; i < s->count && s->steps < MOST_STEPS; i++)
        for (size_t h = a->held.first[s->found[i]]; h < a->held.first[s->found[i] + 1] && s->steps < MOST_STEPS; h++)
            for (size_t w = a->waited.first[a->held.items[h]]; w < a->waited.first[a->held.items[h] + 1]; w++)
                find_thread(s, a->waited.items[w]);
    if (s->count > waiters)
        qsort(s->found + waiters, s->count - waiters, sizeof(int), by_number);
    for (size_t i = waiters; i < s->count; i++) {
        if (there != NULL && !is_suspect_in_other(a, there, s->found[i]))
            continue;
        suspicion.suspects = kd_grow(suspicion.suspects, suspicion.count, sizeof(int));
        suspicion.suspects[suspicion.count++] = s->found[i];
    }
    if (suspicion.count > 0) {
        deadlocks->suspicions = kd_grow(deadlocks->suspicions, deadlocks->suspicion_count, sizeof(kd_suspicion));
        deadlocks->suspicions[deadlocks->suspicion_count++] = suspicion;
    }
}

static void suspect_all(analysis *a, kd_snapshot *snapshot, kd_deadlocks *deadlocks)
{
    search s = {
        .analysis = a,
        .seen = kd_allocate(snapshot->thread_count + 1, sizeof(uint32_t)),
        .found = kd_allocate(snapshot->thread_count + 1, sizeof(int)),
    };

    for (size_t i = 0; i < snapshot->lock_count && s.steps < MOST_STEPS; i++) {
        const kd_lock *lock = &snapshot->locks[i];

        if ((lock->kind == KD_SRW_LOCK || lock->kind == KD_PUSH_LOCK) && lock->hold != KD_FREE &&
            lock->owner_count == 0)
            suspect(&s, deadlocks, (int)i);
    }
    if (s.steps >= MOST_STEPS)
        kd_inconsistent(snapshot, "possible deadlocks", 0, "there are too many to inspect all of them");
    free(s.seen);
    free(s.found);
}

static void free_deadlocks(kd_deadlocks *deadlocks)
{
    for (size_t i = 0; i < deadlocks->cycle_count; i++)
        free(deadlocks->cycles[i].links);
    for (size_t i = 0; i < deadlocks->suspicion_count; i++)
        free(deadlocks->suspicions[i].suspects);
    free(deadlocks->cycles);
    free(deadlocks->suspicions);
    free(deadlocks);
}

void kd_forget_deadlocks(kd_snapshot *snapshot)
{
    if (snapshot->deadlocks == NULL)
        return;
    free_deadlocks(snapshot->deadlocks);
    snapshot->deadlocks = NULL;
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        snapshot->threads[i].deadlocked = snapshot->threads[i].orphaned = false;
        snapshot->threads[i].cycle = -1;
    }
}

static void find(kd_snapshot *snapshot, const kd_snapshot *other)
{
    kd_deadlocks *deadlocks = kd_allocate(1, sizeof(*deadlocks));
    analysis a;

    start(&a, snapshot, other);
    find_those_that_get_on(&a);
    kd_forget_deadlocks(snapshot);
    follow_all(&a, snapshot, deadlocks);
    suspect_all(&a, snapshot, deadlocks);
    end(&a);
    snapshot->deadlocks = deadlocks;
}

void kd_find_deadlocks(kd_snapshot *snapshot)
{
    find(snapshot, NULL);
}

void kd_confirm_deadlocks(kd_snapshot *before, kd_snapshot *now)
{
    find(before, now);
    find(now, before);
}

/* Output. */

static void print_cycle(const kd_snapshot *snapshot, const kd_cycle *cycle)
{
    char thread[192], lock[512], owner[192];

    if (cycle->orphaned)
        printf("Orphaned lock: its owner has ended, and no thread will release it.\n");
    else if (cycle->certain)
        printf("Deadlock: these threads wait for each other.\n");
    else
        printf("Probable deadlock: these threads wait for each other, as far as owners are known.\n");
    for (size_t i = 0; i < cycle->count; i++) {
        const kd_link *link = &cycle->links[i];

        kd_describe_thread(snapshot, link->thread, thread, sizeof(thread));
        kd_describe_lock(&snapshot->locks[link->lock], lock, sizeof(lock));
        if (link->owner >= 0)
            kd_describe_thread(snapshot, link->owner, owner, sizeof(owner));
        else
            snprintf(owner, sizeof(owner), "thread %u%s, which has ended", link->owner_id,
                     snapshot->threads[link->thread].process_id != 0 ? " of that process" : "");
        if (snapshot->locks[link->lock].kind == KD_THREAD)
            printf("    %s waits for the end of %s\n", thread, owner);
        else
            printf("    %s waits for %s\n        %s by %s\n", thread, lock,
                   is_probable(snapshot, link) ? "probably held" : "held", owner);
    }
    printf("\n");
}

static void print_suspicion(const kd_snapshot *snapshot, const kd_suspicion *suspicion)
{
    const kd_lock *lock = &snapshot->locks[suspicion->lock];
    char text[512];

    printf("Possible deadlock: %s is held, but does not record its owner.\n",
           kd_describe_lock(lock, text, sizeof(text)));
    for (size_t i = 0; i < lock->waiter_count; i++)
        printf("    %s waits for it\n", kd_describe_thread(snapshot, lock->waiters[i].thread, text, sizeof(text)));
    for (size_t i = 0; i < suspicion->count; i++)
        printf("%s%s", i == 0 ? "    It is a deadlock only if one of the threads that wait for these holds it, which is not known: " : ", ",
               kd_describe_thread(snapshot, suspicion->suspects[i], text, sizeof(text)));
    printf("\n\n");
}

int kd_status_of(const kd_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->deadlocks->cycle_count; i++)
        if (snapshot->deadlocks->cycles[i].certain)
            return KD_DEADLOCKED;
    return 0;
}

void kd_print_deadlocks(const kd_snapshot *snapshot)
{
    const kd_deadlocks *deadlocks = snapshot->deadlocks;
    size_t count = 0;
    char text[192];

    for (size_t i = 0; i < deadlocks->cycle_count; i++)
        print_cycle(snapshot, &deadlocks->cycles[i]);
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (snapshot->threads[i].deadlocked && snapshot->threads[i].cycle < 0)
            printf("%s%s", count++ == 0 ? "Behind them: " : ", ",
                   kd_describe_thread(snapshot, (int)i, text, sizeof(text)));
    printf("%s", count > 0 ? "\n\n" : "");
    for (size_t i = 0; i < deadlocks->suspicion_count; i++)
        print_suspicion(snapshot, &deadlocks->suspicions[i]);
}

static uint32_t process_of_owner(const kd_snapshot *snapshot, const kd_link *link)
{
    return snapshot->threads[link->owner >= 0 ? link->owner : link->thread].process_id;
}

void kd_json_deadlocks(json *out, const kd_snapshot *snapshot)
{
    const kd_deadlocks *deadlocks = snapshot->deadlocks;

    json_array(out, "deadlocks");
    for (size_t c = 0; c < deadlocks->cycle_count; c++) {
        const kd_cycle *cycle = &deadlocks->cycles[c];

        json_object(out, NULL);
        json_bool(out, "certain", cycle->certain);
        json_bool(out, "orphaned", cycle->orphaned);
        json_array(out, "chain");
        for (size_t i = 0; i < cycle->count; i++) {
            json_object(out, NULL);
            kd_json_thread(out, "thread", snapshot, cycle->links[i].thread);
            kd_json_lock_briefly(out, "waits_for", &snapshot->locks[cycle->links[i].lock]);
            json_number(out, "held_by", cycle->links[i].owner_id);
            kd_json_process(out, "held_by_process", process_of_owner(snapshot, &cycle->links[i]));
            json_end(out);
        }
        json_end(out);
        json_end(out);
    }
    json_end(out);
    json_array(out, "possible_deadlocks");
    for (size_t i = 0; i < deadlocks->suspicion_count; i++) {
        const kd_suspicion *suspicion = &deadlocks->suspicions[i];

        json_object(out, NULL);
        kd_json_lock(out, "lock", snapshot, &snapshot->locks[suspicion->lock]);
        json_array(out, "suspects");
        for (size_t s = 0; s < suspicion->count; s++)
            kd_json_thread(out, NULL, snapshot, suspicion->suspects[s]);
        json_end(out);
        json_end(out);
    }
    json_end(out);
}
