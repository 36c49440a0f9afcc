/* walk.c: follows lists that may be corrupt, and records impossible values. */
#include "kd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_READS 8
#define MOST_RESTS 50
#define MOST_FAULTS 100
#define KEPT_ROOM 65000

/* What is inconsistent. */

bool kd_has_fault(const kd_snapshot *snapshot, const kd_fault *fault)
{
    for (size_t i = 0; i < snapshot->fault_count; i++) {
        const kd_fault *known = &snapshot->faults[i];

        if (known->where == fault->where && strcmp(known->what, fault->what) == 0 && strcmp(known->why, fault->why) == 0)
            return true;
    }
    return false;
}

void kd_doubt(kd_fault *fault)
{
    fault->moving = true;
    fault->why = KD_CHANGED;
}

static void note(kd_snapshot *snapshot, kd_fault fault)
{
    if (kd_has_fault(snapshot, &fault))
        return;
    if (snapshot->fault_count == MOST_FAULTS) {
        snapshot->faults_left_out++;
        return;
    }
    snapshot->faults = kd_grow(snapshot->faults, snapshot->fault_count, sizeof(kd_fault));
    snapshot->faults[snapshot->fault_count++] = fault;
}

void kd_inconsistent(kd_snapshot *snapshot, const char *what, kd_address where, const char *why)
{
    note(snapshot, (kd_fault){.what = what, .where = where, .why = why});
}

void kd_note_spent(kd_snapshot *snapshot)
{
    if (!kd_is_spent(snapshot->target))
        return;
    snapshot->incomplete = true;
    kd_inconsistent(snapshot, "everything", 0, "there is too much of it, the rest is omitted");
}

void kd_write_faults(FILE *out, const kd_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->fault_count; i++) {
        const kd_fault *fault = &snapshot->faults[i];

        fprintf(out, "*** %s: %s", fault->moving ? "moving" : "inconsistent", fault->what);
        if (fault->where != 0)
            fprintf(out, " at 0x%" PRIx64, fault->where);
        fprintf(out, ": %s\n", fault->why);
    }
    if (snapshot->faults_left_out != 0)
        fprintf(out, "*** inconsistent: %zu more places\n", snapshot->faults_left_out);
}

void kd_json_faults(json *out, const kd_snapshot *snapshot)
{
    json_array(out, "inconsistent");
    for (size_t i = 0; i < snapshot->fault_count; i++) {
        json_object(out, NULL);
        json_string(out, "what", snapshot->faults[i].what);
        json_address(out, "where", snapshot->faults[i].where);
        json_string(out, "why", snapshot->faults[i].why);
        json_bool(out, "moving", snapshot->faults[i].moving);
        json_end(out);
    }
    if (snapshot->faults_left_out != 0) {
        json_object(out, NULL);
        json_string(out, "what", "more places");
        json_null(out, "where");
        json_string(out, "why", "too many are inconsistent to list them");
        json_bool(out, "moving", false);
        json_end(out);
    }
    json_end(out);
}

/* Lists. */

typedef struct found {
    kd_address *list;
    size_t count;
} found;

static bool add(kd_snapshot *snapshot, found *f, kd_address address)
{
    if (!kd_spend_memory(snapshot->target, 2 * sizeof(kd_address)))
        return false;
    f->list = kd_grow(f->list, f->count, sizeof(kd_address));
    f->list[f->count++] = address;
    return true;
}

/* Where a list is inconsistent: the previous entry, its Flink, and the Blink found there. */
typedef struct break_in_list {
    kd_address before, at, blink;
    const char *why;
} break_in_list;

/*
 * Every entry must point back to its predecessor. So a list cannot run into itself: the entry where it does would need two
 * Blinks. FALSE: it is inconsistent.
 */
static bool follow_list(kd_snapshot *snapshot, kd_address head, size_t offset, found *f, break_in_list *broken)
{
    kd_address before = head;
    LIST_ENTRY link;

    *broken = (break_in_list){.at = head, .why = "its head cannot be read"};
    f->count = 0;
    if (!kd_read(snapshot->target, head, &link, sizeof(link)))
        return false;
    while (KD_ADDRESS(link.Flink) != head) {
        kd_address at = KD_ADDRESS(link.Flink);

        if (at == 0 && before == head) /* it has never been used */
            return true;
        *broken = (break_in_list){.before = before, .at = at, .why = "there is no entry"};
        if (at % sizeof(void *) != 0 || at < offset || !kd_read(snapshot->target, at, &link, sizeof(link)))
            return false;
        broken->blink = KD_ADDRESS(link.Blink);
        broken->why = "the entry does not point back to the one before it";
        if (broken->blink != before)
            return false;
        broken->why = "it is too long";
        if (!add(snapshot, f, at - offset))
            return false;
        before = at;
    }
    return true;
}

/* The links are unchanged since the list was followed. */
static bool is_still_broken(kd_snapshot *snapshot, const break_in_list *broken)
{
    LIST_ENTRY before, at;

    if (broken->before != 0 && kd_read(snapshot->target, broken->before, &before, sizeof(before)) &&
        KD_ADDRESS(before.Flink) != broken->at)
        return false;
    return broken->blink == 0 || !kd_read(snapshot->target, broken->at, &at, sizeof(at)) ||
           KD_ADDRESS(at.Blink) == broken->blink;
}

kd_address *kd_list(kd_snapshot *snapshot, const char *what, kd_address head, size_t offset, size_t *count,
                    bool *whole)
{
    bool live = kd_process_of(snapshot->target) != 0, in_order = false, still = false;
    struct timespec rest = {.tv_nsec = 1000000};
    break_in_list broken = {.why = "it is too long"};
    found f = {NULL, 0};

    for (int i = 0; !in_order && i < (live ? MOST_READS : 1) && !kd_is_spent(snapshot->target); i++) {
        in_order = follow_list(snapshot, head, offset, &f, &broken);
        still = !in_order && (!live || is_still_broken(snapshot, &broken));
        /* A thread that changes it may have been preempted halfway. */
        if (still && live) {
            if (snapshot->rests == MOST_RESTS)
                break;
            snapshot->rests++;
            nanosleep(&rest, NULL);
        }
    }
    if (kd_is_spent(snapshot->target))
        broken.why = "it is too long";
    else if (!in_order && !still)
        broken.why = KD_CHANGED;
    if (!in_order)
        note(snapshot, (kd_fault){.what = what, .where = broken.at, .why = broken.why,
                                  .moving = !still && !kd_is_spent(snapshot->target)});
    if (whole != NULL)
        *whole = in_order;
    *count = f.count;
    return f.list;
}

kd_address *kd_chain(kd_snapshot *snapshot, const char *what, kd_address first, size_t next, size_t *count)
{
    found f = {NULL, 0};
    kd_index seen = {.slots = NULL};
    kd_address at = first;
    const char *why = NULL;

    while (at != 0 && why == NULL) {
        kd_address following;

        if (!kd_index_add(&seen, at, 0))
            why = "it is circular";
        else if (at % sizeof(void *) != 0 || !kd_read(snapshot->target, at + next, &following, sizeof(following)))
            why = kd_is_spent(snapshot->target) ? "it is too long" : "there is no entry";
        else if (!add(snapshot, &f, at) || !kd_spend_memory(snapshot->target, KD_INDEX_COST))
            why = "it is too long";
        else
            at = following;
    }
    if (why != NULL && what != NULL)
        kd_inconsistent(snapshot, what, at, why);
    kd_index_free(&seen);
    *count = f.count;
    return f.list;
}

/* Texts. */

typedef struct kd_kept {
    struct kd_kept *before;
    size_t used;
    char text[KEPT_ROOM];
} kd_kept;

const char *kd_keep(kd_snapshot *snapshot, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy;

    if (size == 1 || size > KEPT_ROOM)
        return "";
    if (snapshot->kept == NULL || KEPT_ROOM - snapshot->kept->used < size) {
        kd_kept *fresh;

        if (snapshot->target != NULL && !kd_spend_memory(snapshot->target, sizeof(kd_kept)))
            return "";
        fresh = kd_allocate(1, sizeof(*fresh));
        fresh->before = snapshot->kept;
        snapshot->kept = fresh;
    }
    copy = snapshot->kept->text + snapshot->kept->used;
    memcpy(copy, text, size);
    snapshot->kept->used += size;
    return copy;
}

void kd_forget_kept(kd_snapshot *snapshot)
{
    while (snapshot->kept != NULL) {
        kd_kept *before = snapshot->kept->before;

        free(snapshot->kept);
        snapshot->kept = before;
    }
}
