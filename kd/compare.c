/*
 * compare.c: what changed between two snapshots of a process, and what did not. A thread has not moved if it is still
 * in the same wait, as for a deadlock (kd_has_waited_since).
 */
#include "kd.h"
#include "views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINES 200 /* of text, of each kind */

typedef enum movement { STILL, MOVED, NEW, ENDED, MOVEMENTS } movement;

static const char *const movement_names[] = {"still", "moved", "new", "ended"};
static const char *const movement_titles[] = {"In the same wait", "Moved", "New", "Ended"};

typedef struct change {
    movement movement;
    int before, after; /* of the snapshots, -1: none */
} change;

typedef struct comparison {
    kd_snapshot *before, *after;
    change *threads;
    size_t count;
} comparison;

static bool is_alive(const kd_thread *thread)
{
    return thread->process_id == 0 && thread->raw->State != Terminated;
}

static void add(comparison *c, movement how, int before, int after)
{
    c->threads = kd_grow(c->threads, c->count, sizeof(change));
    c->threads[c->count++] = (change){.movement = how, .before = before, .after = after};
}

static void compare_threads(comparison *c)
{
    for (size_t i = 0; i < c->after->own_count; i++) {
        const kd_thread *after = &c->after->threads[i];
        int before = kd_thread_with_id(c->before, after->id);

        if (!is_alive(after))
            continue;
        if (before < 0 || c->before->threads[before].address != after->address)
            add(c, NEW, -1, (int)i);
        else
            add(c, after->waiting && kd_has_waited_since(c->before, c->after, after) ? STILL : MOVED, before, (int)i);
    }
    for (size_t i = 0; i < c->before->own_count; i++)
        if (is_alive(&c->before->threads[i]) && kd_thread_with_id(c->after, c->before->threads[i].id) < 0)
            add(c, ENDED, (int)i, -1);
}

static uint32_t waits_between(const comparison *c, const change *one)
{
    return one->before < 0 || one->after < 0 ? 0
           : c->after->threads[one->after].raw->ContextSwitches - c->before->threads[one->before].raw->ContextSwitches;
}

/* Text. */

static void print_thread(const comparison *c, const change *one)
{
    const kd_snapshot *s = one->after >= 0 ? c->after : c->before;
    int index = one->after >= 0 ? one->after : one->before;
    const kd_thread *thread = &s->threads[index];
    char text[512];

    printf("    %s", kd_describe_thread(s, index, text, sizeof(text)));
    if (one->movement == MOVED && waits_between(c, one) == 0)
        printf(", without a wait");
    else if (one->movement == MOVED)
        printf(", %u wait%s", waits_between(c, one), waits_between(c, one) == 1 ? "" : "s");
    for (size_t i = 0; one->after >= 0 && thread->waiting && i < thread->block_count; i++)
        if (thread->blocks[i].lock >= 0)
            printf("%s%s", i == 0 ? (one->movement == STILL ? ": waits for " : ", now waits for ") : ", ",
                   kd_describe_lock(&s->locks[thread->blocks[i].lock], text, sizeof(text)));
    if (one->after >= 0 && thread->waiting && s->now != 0)
        printf(", for %.3f s", kd_waited(s, thread));
    printf("\n");
}

static void print_threads(const comparison *c, movement how)
{
    size_t count = 0;

    for (size_t i = 0; i < c->count; i++)
        count += c->threads[i].movement == how;
    if (count == 0)
        return;
    printf("%s: %zu thread%s\n", movement_titles[how], count, count == 1 ? "" : "s");
    for (size_t i = 0, shown = 0; i < c->count && shown < MOST_LINES; i++) {
        if (c->threads[i].movement == how) {
            print_thread(c, &c->threads[i]);
            shown++;
        }
    }
    if (count > MOST_LINES)
        printf("    and %zu more\n", count - MOST_LINES);
}

/* The lock in the earlier snapshot, or NULL. */
static const kd_lock *lock_before(const comparison *c, const kd_lock *lock)
{
    int index = lock->address != 0 ? kd_find_lock(c->before, lock->address) : -1;

    return index >= 0 && c->before->locks[index].kind == lock->kind ? &c->before->locks[index] : NULL;
}

static uint32_t owner_of(const kd_lock *lock)
{
    return lock->owner_count == 1 ? lock->owners[0].id : 0;
}

static bool is_contended(const kd_lock *before, const kd_lock *after)
{
    return before != NULL && before->contention >= 0 && after->contention > before->contention;
}

static bool has_same_owner(const kd_lock *before, const kd_lock *after)
{
    return before != NULL && owner_of(after) != 0 && owner_of(before) == owner_of(after);
}

static void print_locks(const comparison *c)
{
    bool title = false;
    char text[512];

    for (size_t i = 0; i < c->after->lock_count; i++) {
        const kd_lock *after = &c->after->locks[i], *before = lock_before(c, after);

        if (!kd_is_lock(after) || (!is_contended(before, after) && !has_same_owner(before, after)))
            continue;
        printf("%s    %s", title ? "" : "Locks\n", kd_describe_lock(after, text, sizeof(text)));
        title = true;
        if (is_contended(before, after))
            printf(", contended %" PRId64 " times", after->contention - before->contention);
        if (has_same_owner(before, after))
            printf(", held by thread %u both times", owner_of(after));
        if (after->waiter_count != 0)
            printf(", %zu waiting", after->waiter_count);
        printf("\n");
    }
}

static void print_comparison(const comparison *c)
{
    if (c->before->now != 0 && c->after->now > c->before->now)
        printf("%.3f s between the two.\n", kd_seconds(c->after->now - c->before->now));
    for (int how = 0; how < MOVEMENTS; how++)
        print_threads(c, (movement)how);
    print_locks(c);
    kd_print_deadlocks(c->after);
}

/* JSON. */

static void json_change(json *out, const comparison *c, const change *one)
{
    const kd_snapshot *s = one->after >= 0 ? c->after : c->before;

    json_object(out, NULL);
    kd_json_thread(out, "thread", s, one->after >= 0 ? one->after : one->before);
    json_string(out, "movement", movement_names[one->movement]);
    json_number(out, "waits", waits_between(c, one));
    json_end(out);
}

static void write_comparison(const comparison *c)
{
    json out = {.file = stdout};

    json_object(&out, NULL);
    if (c->before->now != 0 && c->after->now > c->before->now)
        json_real(&out, "seconds", kd_seconds(c->after->now - c->before->now));
    else
        json_null(&out, "seconds");
    json_array(&out, "threads");
    for (size_t i = 0; i < c->count; i++)
        json_change(&out, c, &c->threads[i]);
    json_end(&out);
    json_array(&out, "locks");
    for (size_t i = 0; i < c->after->lock_count; i++) {
        const kd_lock *after = &c->after->locks[i], *before = lock_before(c, after);

        if (!kd_is_lock(after) || (!is_contended(before, after) && !has_same_owner(before, after)))
            continue;
        json_object(&out, NULL);
        kd_json_lock_briefly(&out, "lock", after);
        json_number(&out, "contended", is_contended(before, after) ? after->contention - before->contention : 0);
        json_bool(&out, "same_owner", has_same_owner(before, after));
        json_end(&out);
    }
    json_end(&out);
    kd_json_deadlocks(&out, c->after);
    kd_json_end(&out, c->after);
}

static kd_snapshot *open_one(const char *what, kd_target **target)
{
    *target = kd_open(what, false);
    return *target != NULL ? kd_snapshot_take(*target) : NULL;
}

int kd_compare(const char *before, const char *after, bool as_json)
{
    kd_target *targets[2] = {NULL, NULL};
    comparison c = {.before = open_one(before, &targets[0])};
    int result = 1;

    if (c.before != NULL)
        c.after = open_one(after, &targets[1]);
    if (c.after != NULL && c.before->process_id != c.after->process_id) {
        kd_say("%s is of process %u, %s of process %u", before, c.before->process_id, after, c.after->process_id);
    } else if (c.after != NULL) {
        compare_threads(&c);
        if (as_json)
            write_comparison(&c);
        else
            print_comparison(&c);
        result = kd_status_of(c.after);
    }
    free(c.threads);
    if (c.before != NULL)
        kd_snapshot_free(c.before);
    if (c.after != NULL)
        kd_snapshot_free(c.after);
    kd_close(targets[0]);
    kd_close(targets[1]);
    return result;
}
