/*
 * deadlock.c: threads whose waits can never end.
 *
 * A thread gets on if it does not wait; or waits for something whose owner is not known, since anybody may signal it;
 * or waits for something all of whose owners get on. Of a WaitAny one object is enough, of a WaitAll every one has to
 * come. The threads for which this can be shown, step by step, are all that ever run again. The others never do,
 * whatever kinds of locks are involved.
 *
 * Each of them waits for another one of them, or for a lock whose owner has ended. Following that, one arrives at the
 * cause: a cycle, which is a deadlock; or an orphaned lock, which is none, since its waiters do not wait for each
 * other. Timeouts and alerts are not counted on: they end a deadlock, but nobody meant to wait for them.
 */
#include "kd.h"

#include <stdlib.h>
#include <string.h>

static bool is_unknown_owner(const kd_owner *owner)
{
    return owner->thread < 0 && owner->id == 0;
}

static bool may_come(const kd_snapshot *snapshot, const kd_block *block, const bool *gets_on)
{
    const kd_lock *lock = block->lock >= 0 ? &snapshot->locks[block->lock] : NULL;

    if (lock == NULL || lock->owner_count == 0)
        return true;
    for (size_t i = 0; i < lock->owner_count; i++) {
        const kd_owner *owner = &lock->owners[i];

        if (!is_unknown_owner(owner) && (owner->thread < 0 || !gets_on[owner->thread]))
            return false;
    }
    return true;
}

static bool gets_on_now(const kd_snapshot *snapshot, const kd_thread *thread, const bool *gets_on)
{
    size_t coming = 0;

    if (!thread->waiting || thread->block_count == 0)
        return true;
    for (size_t i = 0; i < thread->block_count; i++)
        coming += may_come(snapshot, &thread->blocks[i], gets_on);
    return thread->blocks[0].raw.WaitType == WaitAll ? coming == thread->block_count : coming > 0;
}

static bool *find_those_that_get_on(const kd_snapshot *snapshot)
{
    bool *gets_on = calloc(snapshot->thread_count + 1, sizeof(bool));
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < snapshot->thread_count; i++) {
            if (!gets_on[i] && gets_on_now(snapshot, &snapshot->threads[i], gets_on)) {
                gets_on[i] = true;
                more = true;
            }
        }
    }
    return gets_on;
}

/* What keeps a deadlocked thread: a lock of a thread that has ended, or of a deadlocked one. */
static kd_link link_of(const kd_snapshot *snapshot, int thread, const bool *gets_on)
{
    const kd_thread *t = &snapshot->threads[thread];
    kd_link found = {.thread = thread, .lock = -1, .owner = -1};

    for (size_t b = 0; b < t->block_count; b++) {
        const kd_lock *lock = t->blocks[b].lock >= 0 ? &snapshot->locks[t->blocks[b].lock] : NULL;

        for (size_t i = 0; lock != NULL && i < lock->owner_count; i++) {
            const kd_owner *owner = &lock->owners[i];

            if (is_unknown_owner(owner) || (owner->thread >= 0 && gets_on[owner->thread]))
                continue;
            found.lock = t->blocks[b].lock;
            found.owner = owner->thread;
            found.owner_id = owner->id;
            if (owner->thread < 0)
                return found;
        }
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

static const kd_cycle *find_cycle(const kd_deadlocks *deadlocks, int thread)
{
    for (size_t c = 0; c < deadlocks->cycle_count; c++)
        for (size_t i = 0; i < deadlocks->cycles[c].count; i++)
            if (deadlocks->cycles[c].links[i].thread == thread)
                return &deadlocks->cycles[c];
    return NULL;
}

static bool is_in_cycle(const kd_deadlocks *deadlocks, int thread)
{
    return find_cycle(deadlocks, thread) != NULL;
}

static bool is_at_orphan(const kd_deadlocks *deadlocks, int thread)
{
    const kd_cycle *cycle = find_cycle(deadlocks, thread);

    return cycle != NULL && cycle->orphaned;
}

static void add_cycle(const kd_snapshot *snapshot, kd_deadlocks *deadlocks, int first, const bool *gets_on)
{
    kd_cycle cycle = {.certain = true};
    int thread = first;

    do {
        kd_link link = link_of(snapshot, thread, gets_on);

        cycle.links = kd_grow(cycle.links, cycle.count, sizeof(kd_link));
        cycle.links[cycle.count++] = link;
        cycle.orphaned = link.owner < 0;
        cycle.certain = cycle.certain && !is_probable(snapshot, &link);
        thread = link.owner;
    } while (thread >= 0 && thread != first);
    deadlocks->cycles = kd_grow(deadlocks->cycles, deadlocks->cycle_count, sizeof(kd_cycle));
    deadlocks->cycles[deadlocks->cycle_count++] = cycle;
}

/* One who waits for a lock that nobody will release tells all there is to know; the others are behind. */
static bool is_known_orphan(const kd_deadlocks *deadlocks, int lock)
{
    for (size_t c = 0; c < deadlocks->cycle_count; c++) {
        const kd_cycle *cycle = &deadlocks->cycles[c];

        if (cycle->orphaned && cycle->links[cycle->count - 1].lock == lock)
            return true;
    }
    return false;
}

/*
 * Goes on from thread until it has been somewhere before: that is in the cycle. A chain that ends is one itself. TRUE:
 * it ends at an orphaned lock.
 */
static bool follow(const kd_snapshot *snapshot, kd_deadlocks *deadlocks, int thread, const bool *gets_on)
{
    bool *seen = calloc(snapshot->thread_count, sizeof(bool));
    int last = thread;

    while (thread >= 0 && !seen[thread] && !is_in_cycle(deadlocks, thread)) {
        seen[thread] = true;
        last = thread;
        thread = link_of(snapshot, thread, gets_on).owner;
    }
    bool orphaned = thread < 0 || is_at_orphan(deadlocks, thread);
    if (thread >= 0 && seen[thread])
        add_cycle(snapshot, deadlocks, thread, gets_on);
    else if (thread < 0 && !is_known_orphan(deadlocks, link_of(snapshot, last, gets_on).lock))
        add_cycle(snapshot, deadlocks, last, gets_on);
    free(seen);
    return orphaned;
}

/* Threads that wait, directly or not, for one of the marked ones. */
static void mark_dependents(const kd_snapshot *snapshot, bool *marked)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < snapshot->thread_count; i++) {
            const kd_thread *thread = &snapshot->threads[i];

            for (size_t b = 0; !marked[i] && b < thread->block_count; b++) {
                const kd_lock *lock = thread->blocks[b].lock >= 0 ? &snapshot->locks[thread->blocks[b].lock] : NULL;

                for (size_t o = 0; lock != NULL && o < lock->owner_count; o++)
                    if (lock->owners[o].thread >= 0 && marked[lock->owners[o].thread])
                        marked[i] = more = true;
            }
        }
    }
}

static void suspect(const kd_snapshot *snapshot, kd_deadlocks *deadlocks, int index)
{
    const kd_lock *lock = &snapshot->locks[index];
    bool *marked = calloc(snapshot->thread_count, sizeof(bool));
    kd_suspicion suspicion = {.lock = index};

    for (size_t i = 0; i < lock->waiter_count; i++)
        marked[lock->waiters[i].thread] = true;
    mark_dependents(snapshot, marked);
    for (size_t i = 0; i < lock->waiter_count; i++)
        marked[lock->waiters[i].thread] = false;
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        if (marked[i]) {
            suspicion.suspects = kd_grow(suspicion.suspects, suspicion.count, sizeof(int));
            suspicion.suspects[suspicion.count++] = (int)i;
        }
    }
    free(marked);
    if (suspicion.count > 0) {
        deadlocks->suspicions = kd_grow(deadlocks->suspicions, deadlocks->suspicion_count, sizeof(kd_suspicion));
        deadlocks->suspicions[deadlocks->suspicion_count++] = suspicion;
    }
}

void kd_find_deadlocks(kd_snapshot *snapshot)
{
    bool *gets_on = find_those_that_get_on(snapshot);
    kd_deadlocks *deadlocks = calloc(1, sizeof(*deadlocks));

    for (size_t i = 0; i < snapshot->thread_count; i++) {
        snapshot->threads[i].deadlocked = !gets_on[i];
        if (!gets_on[i])
            snapshot->threads[i].orphaned = follow(snapshot, deadlocks, (int)i, gets_on);
    }
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        const kd_lock *lock = &snapshot->locks[i];

        if ((lock->kind == KD_SRW_LOCK || lock->kind == KD_PUSH_LOCK) && lock->hold != KD_FREE &&
            lock->owner_count == 0)
            suspect(snapshot, deadlocks, (int)i);
    }
    snapshot->deadlocks = deadlocks;
    free(gets_on);
}

/* Showing them. */

static void print_cycle(const kd_snapshot *snapshot, const kd_cycle *cycle)
{
    char thread[192], lock[512], owner[192];

    if (cycle->orphaned)
        printf("Orphaned lock: its owner has ended, and nobody will release it.\n");
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
            snprintf(owner, sizeof(owner), "thread %u, which has ended", link->owner_id);
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

    printf("Possible deadlock: %s does not say who holds it.\n", kd_describe_lock(lock, text, sizeof(text)));
    for (size_t i = 0; i < lock->waiter_count; i++)
        printf("    %s waits for it\n", kd_describe_thread(snapshot, lock->waiters[i].thread, text, sizeof(text)));
    for (size_t i = 0; i < suspicion->count; i++)
        printf("    %s waits for a thread that does: if this one holds it, none of them gets on\n",
               kd_describe_thread(snapshot, suspicion->suspects[i], text, sizeof(text)));
    printf("\n");
}

void kd_print_deadlocks(const kd_snapshot *snapshot)
{
    const kd_deadlocks *deadlocks = snapshot->deadlocks;
    size_t count = 0;
    char text[192];

    for (size_t i = 0; i < deadlocks->cycle_count; i++)
        print_cycle(snapshot, &deadlocks->cycles[i]);
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (snapshot->threads[i].deadlocked && !is_in_cycle(deadlocks, (int)i))
            printf("%s%s", count++ == 0 ? "Behind them: " : ", ",
                   kd_describe_thread(snapshot, (int)i, text, sizeof(text)));
    printf("%s", count > 0 ? "\n\n" : "");
    for (size_t i = 0; i < deadlocks->suspicion_count; i++)
        print_suspicion(snapshot, &deadlocks->suspicions[i]);
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
