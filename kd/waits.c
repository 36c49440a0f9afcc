/* waits.c: the waits of each thread over time, from one snapshot to the next. */
#include "waits.h"

#include <stdlib.h>
#include <string.h>

/* A wait. Two snapshots show the same one if the thread began no other since. */
typedef struct record {
    uint64_t number;     /* of the snapshot that saw it begin or end */
    double from, to;     /* seconds; to: when it was seen last */
    bool open;           /* it has not ended */
    bool deadlocked;
    uint32_t switches, tick;
    unsigned reason;
    unsigned earlier;    /* earlier waits that no snapshot saw */
    size_t objects;
    kd_kind kind;        /* of the first object */
    kd_address address;
    char *name;
} record;

typedef struct thread {
    uint64_t key;
    uint32_t id, switches;
    char *name;
    bool system, ended, seen;
    uint64_t changed;    /* number of the snapshot in which its name or end was seen */
    record *records;     /* a ring of KD_MOST_THREAD_WAITS */
    size_t count;        /* ever */
} thread;

struct kd_waits {
    thread *threads;
    size_t count, left_out;
    kd_index by_key;
    uint64_t number;
    uint64_t first;      /* interrupt time */
    double time;
};

kd_waits *kd_waits_create(void)
{
    return kd_allocate(1, sizeof(kd_waits));
}

static size_t kept(const thread *t)
{
    return t->count < KD_MOST_THREAD_WAITS ? t->count : KD_MOST_THREAD_WAITS;
}

static void free_thread(thread *t)
{
    for (size_t i = 0; i < kept(t); i++)
        free(t->records[i].name);
    free(t->records);
    free(t->name);
}

void kd_waits_free(kd_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++)
        free_thread(&waits->threads[i]);
    free(waits->threads);
    kd_index_free(&waits->by_key);
    free(waits);
}

static record *last_of(thread *t)
{
    return t->count != 0 ? &t->records[(t->count - 1) % KD_MOST_THREAD_WAITS] : NULL;
}

/* Threads that have ended make room for new ones. */
static void drop_ended(kd_waits *waits)
{
    size_t left = 0;

    kd_index_free(&waits->by_key);
    for (size_t i = 0; i < waits->count; i++) {
        if (waits->threads[i].ended) {
            free_thread(&waits->threads[i]);
            continue;
        }
        waits->threads[left] = waits->threads[i];
        kd_index_add(&waits->by_key, waits->threads[left].key, (int)left);
        left++;
    }
    waits->count = left;
}

static thread *thread_of(kd_waits *waits, const kd_thread *seen)
{
    uint64_t key = seen->address ^ (uint64_t)seen->id << 32;
    int index = kd_index_find(&waits->by_key, key);
    thread *t;

    if (index >= 0)
        return &waits->threads[index];
    if (waits->count >= KD_MOST_WAITING_THREADS)
        drop_ended(waits);
    if (waits->count >= KD_MOST_WAITING_THREADS)
        return NULL;
    if (waits->threads == NULL)
        waits->threads = kd_allocate(KD_MOST_WAITING_THREADS, sizeof(thread));
    kd_index_add(&waits->by_key, key, (int)waits->count);
    t = &waits->threads[waits->count++];
    *t = (thread){.key = key, .id = seen->id, .switches = seen->raw->ContextSwitches, .system = seen->system,
                  .name = strdup(""), .records = kd_allocate(KD_MOST_THREAD_WAITS, sizeof(record))};
    return t;
}

static void name_thread(const kd_waits *waits, thread *t, const char *name)
{
    if (t->name != NULL && strcmp(t->name, name) == 0 && t->changed != 0)
        return;
    free(t->name);
    t->name = strdup(name);
    t->changed = waits->number;
}

/* The first known object of the wait. */
static const kd_lock *object_of(const kd_snapshot *snapshot, const kd_thread *seen)
{
    for (size_t i = 0; i < seen->block_count; i++)
        if (seen->blocks[i].lock >= 0)
            return &snapshot->locks[seen->blocks[i].lock];
    return NULL;
}

static void end_wait(const kd_waits *waits, thread *t)
{
    record *last = last_of(t);

    if (last == NULL || !last->open)
        return;
    last->open = false;
    last->number = waits->number;
}

static void begin_wait(const kd_waits *waits, thread *t, const kd_snapshot *snapshot, const kd_thread *seen)
{
    const kd_lock *lock = object_of(snapshot, seen);
    uint32_t since = seen->raw->ContextSwitches - t->switches;
    bool known = t->count != 0;
    record *r;

    end_wait(waits, t);
    r = &t->records[t->count++ % KD_MOST_THREAD_WAITS];
    free(r->name);
    *r = (record){.number = waits->number, .to = waits->time, .open = true, .deadlocked = seen->deadlocked,
                  .from = waits->time - kd_waited(snapshot, seen), .switches = seen->raw->ContextSwitches,
                  .tick = (uint32_t)seen->raw->WaitTime, .reason = seen->raw->WaitReason, .objects = seen->block_count,
                  .earlier = known && since > 1 ? since - 1 : 0,
                  .kind = lock != NULL ? lock->kind : KD_UNKNOWN, .address = lock != NULL ? lock->address : 0,
                  .name = strdup(lock != NULL ? lock->name : "")};
}

static bool is_same(const record *r, const kd_snapshot *snapshot, const kd_thread *seen)
{
    const kd_lock *lock = object_of(snapshot, seen);

    return r != NULL && r->open && r->switches == seen->raw->ContextSwitches &&
           r->tick == (uint32_t)seen->raw->WaitTime && r->address == (lock != NULL ? lock->address : 0);
}

static void add_thread(kd_waits *waits, const kd_snapshot *snapshot, const kd_thread *seen)
{
    thread *t = thread_of(waits, seen);
    record *last;

    if (t == NULL) {
        waits->left_out++;
        return;
    }
    t->seen = true;
    name_thread(waits, t, seen->name);
    if (seen->moving)
        return;
    last = last_of(t);
    if (!seen->waiting) {
        end_wait(waits, t);
    } else if (is_same(last, snapshot, seen)) {
        last->to = waits->time;
        if (last->deadlocked != seen->deadlocked)
            last->number = waits->number;
        last->deadlocked = seen->deadlocked;
    } else {
        begin_wait(waits, t, snapshot, seen);
    }
    t->switches = seen->raw->ContextSwitches;
}

void kd_waits_add(kd_waits *waits, const kd_snapshot *snapshot)
{
    if (snapshot->now == 0)
        return; /* a core file has no time */
    if (waits->number++ == 0)
        waits->first = snapshot->now;
    waits->time = kd_seconds(snapshot->now - waits->first);
    waits->left_out = 0;
    for (size_t i = 0; i < waits->count; i++)
        waits->threads[i].seen = false;
    for (size_t i = 0; i < snapshot->own_count; i++)
        if (snapshot->threads[i].raw->State != Terminated)
            add_thread(waits, snapshot, &snapshot->threads[i]);
    for (size_t i = 0; i < waits->count; i++) {
        thread *t = &waits->threads[i];

        if (t->seen || t->ended)
            continue;
        end_wait(waits, t);
        t->ended = true;
        t->changed = waits->number;
    }
}

/* JSON. */

static void json_wait(json *out, const record *r)
{
    json_object(out, NULL);
    json_real(out, "from", r->from);
    json_real(out, "to", r->to);
    json_bool(out, "open", r->open);
    json_bool(out, "deadlocked", r->deadlocked);
    json_string(out, "reason", kd_wait_reason_name(r->reason));
    json_number(out, "earlier", r->earlier);
    json_number(out, "objects", (int64_t)r->objects);
    json_string(out, "kind", kd_kind_name(r->kind));
    json_address(out, "address", r->address);
    json_string(out, "name", r->name != NULL && r->name[0] != '\0' ? r->name : NULL);
    json_end(out);
}

static void json_thread(json *out, const thread *t, uint64_t after)
{
    size_t count = kept(t), first = t->count - count;

    json_object(out, NULL);
    json_number(out, "id", t->id);
    json_string(out, "name", t->name);
    json_bool(out, "system", t->system);
    json_bool(out, "ended", t->ended);
    json_array(out, "waits");
    for (size_t i = first; i < t->count; i++)
        if (t->records[i % KD_MOST_THREAD_WAITS].number > after)
            json_wait(out, &t->records[i % KD_MOST_THREAD_WAITS]);
    json_end(out);
    json_end(out);
}

/* Something of it has changed since. */
static bool is_news(const thread *t, uint64_t after)
{
    size_t count = kept(t);

    for (size_t i = t->count - count; i < t->count; i++)
        if (t->records[i % KD_MOST_THREAD_WAITS].number > after)
            return true;
    return t->changed > after;
}

void kd_json_waits(json *out, const kd_waits *waits, uint64_t after)
{
    json_number(out, "number", (int64_t)waits->number);
    json_real(out, "time", waits->time);
    json_number(out, "threads_left_out", (int64_t)waits->left_out);
    json_array(out, "threads");
    for (size_t i = 0; i < waits->count; i++)
        if (is_news(&waits->threads[i], after))
            json_thread(out, &waits->threads[i], after);
    json_end(out);
}
