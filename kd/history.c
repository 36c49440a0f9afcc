/* history.c: samples of a process, from one snapshot to the next. */
#include "history.h"

#include <stdlib.h>
#include <string.h>

kd_history *kd_history_create(void)
{
    return kd_allocate(1, sizeof(kd_history));
}

static void empty_sample(kd_sample *sample)
{
    for (size_t i = 0; i < sample->lock_count; i++)
        free(sample->locks[i].name);
    free(sample->locks);
    memset(sample, 0, sizeof(*sample));
}

void kd_history_free(kd_history *history)
{
    for (size_t i = 0; i < KD_MOST_SAMPLES; i++)
        empty_sample(&history->samples[i]);
    free(history->switches);
    free(history->dpcs);
    free(history->interrupts);
    free(history->contentions);
    free(history);
}

/* Counters. */

typedef struct counters {
    kd_counter *list;
    size_t count;
} counters;

static void put(counters *now, uint64_t key, uint32_t value)
{
    now->list = kd_grow(now->list, now->count, sizeof(kd_counter));
    now->list[now->count++] = (kd_counter){.key = key, .value = value};
}

static int compare(const void *one, const void *other)
{
    uint64_t a = ((const kd_counter *)one)->key, b = ((const kd_counter *)other)->key;

    return a < b ? -1 : a > b;
}

/* The increase of a counter. A new lock's counter starts at 0. */
static uint32_t growth(const kd_counter *before, size_t count, const kd_counter *now)
{
    const kd_counter *found =
        count != 0 ? bsearch(now, before, count, sizeof(kd_counter), compare) : NULL;

    return found != NULL ? now->value - found->value : now->value;
}

/* A lock that is listed only while it has waiters starts from the counter with which it was first listed. */
static uint32_t growth_of_lock(const kd_history *history, const kd_lock *lock, const kd_counter *now)
{
    bool known = history->contention_count != 0 &&
                 bsearch(now, history->contentions, history->contention_count, sizeof(kd_counter), compare) != NULL;

    if (history->taken == 0 || (lock->kind == KD_CRITICAL_SECTION && !known))
        return 0;
    return growth(history->contentions, history->contention_count, now);
}

/* The counters of locks that are not listed now stay, as far as there is room: they may come back. */
static void keep_counters(const kd_history *history, counters *now)
{
    size_t listed = now->count;

    if (listed != 0)
        qsort(now->list, listed, sizeof(kd_counter), compare);
    for (size_t i = 0; i < history->contention_count && now->count < KD_MOST_COUNTERS; i++) {
        const kd_counter *old = &history->contentions[i];

        if (listed == 0 || bsearch(old, now->list, listed, sizeof(kd_counter), compare) == NULL)
            put(now, old->key, old->value);
    }
}

/* Returns the sum of the increases, and replaces the previous counters by the current ones. */
static uint64_t exchange(kd_counter **before, size_t *count, counters now)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < now.count; i++)
        sum += growth(*before, *count, &now.list[i]);
    if (now.count != 0)
        qsort(now.list, now.count, sizeof(kd_counter), compare);
    free(*before);
    *before = now.list;
    *count = now.count;
    return sum;
}

static void count_waits(kd_history *history, const kd_snapshot *snapshot, kd_sample *sample)
{
    counters now = {NULL, 0};

    for (size_t i = 0; i < snapshot->own_count; i++) {
        const kd_thread *thread = &snapshot->threads[i];

        if (thread->raw->State == Terminated)
            continue;
        sample->threads++;
        sample->waiting += thread->waiting;
        sample->deadlocked += thread->deadlocked;
        put(&now, thread->address ^ (uint64_t)thread->id << 32, thread->raw->ContextSwitches);
    }
    sample->waits = exchange(&history->switches, &history->switch_count, now);
}

static void count_processors(kd_history *history, kd_snapshot *snapshot, kd_sample *sample)
{
    KPRCB *prcb = kd_allocate_lines(sizeof(*prcb));
    counters dpcs = {NULL, 0}, interrupts = {NULL, 0};
    kd_address address;

    for (uint32_t p = 0; p < snapshot->processors; p++) {
        if (!kd_read_processor(snapshot, p, &address, prcb))
            continue;
        put(&dpcs, p, prcb->DpcData[KI_DPC_NORMAL].DpcCount + prcb->DpcData[KI_DPC_THREADED].DpcCount);
        put(&interrupts, p, prcb->InterruptCount);
    }
    sample->dpcs = exchange(&history->dpcs, &history->dpc_count, dpcs);
    sample->interrupts = exchange(&history->interrupts, &history->interrupt_count, interrupts);
    free(prcb);
}

static int by_weight(const void *one, const void *other)
{
    const kd_lock *a = *(const kd_lock *const *)one, *b = *(const kd_lock *const *)other;

    if (a->waiter_count != b->waiter_count)
        return a->waiter_count > b->waiter_count ? -1 : 1;
    if (a->contended != b->contended)
        return a->contended > b->contended ? -1 : 1;
    return a < b ? -1 : 1;
}

/* Only the most contended locks, so that the history of a process with many locks stays small. */
static void note_locks(kd_sample *sample, const kd_lock **locks, size_t count)
{
    if (count > KD_MOST_SAMPLE_LOCKS) {
        qsort(locks, count, sizeof(*locks), by_weight);
        sample->locks_left_out = count - KD_MOST_SAMPLE_LOCKS;
        count = KD_MOST_SAMPLE_LOCKS;
    }
    for (size_t i = 0; i < count; i++) {
        const kd_lock *lock = locks[i];

        sample->locks = kd_grow(sample->locks, sample->lock_count, sizeof(kd_sample_lock));
        sample->locks[sample->lock_count++] =
            (kd_sample_lock){.kind = lock->kind, .address = lock->address, .waiters = lock->waiter_count,
                             .contention = lock->contention, .contended = lock->contended, .name = strdup(lock->name)};
    }
}

static void count_contention(kd_history *history, kd_snapshot *snapshot, kd_sample *sample)
{
    counters now = {NULL, 0};
    const kd_lock **noted = kd_allocate(snapshot->lock_count + 1, sizeof(*noted));
    size_t count = 0;

    for (size_t i = 0; i < snapshot->lock_count; i++) {
        kd_lock *lock = &snapshot->locks[i];

        if (!kd_is_lock(lock))
            continue;
        if (lock->contention >= 0) {
            put(&now, lock->address, (uint32_t)lock->contention);
            lock->contended = growth_of_lock(history, lock, &now.list[now.count - 1]);
        }
        if (lock->waiter_count != 0 || lock->contended != 0)
            noted[count++] = lock;
    }
    note_locks(sample, noted, count);
    free(noted);
    keep_counters(history, &now);
    exchange(&history->contentions, &history->contention_count, now);
}

const kd_sample *kd_history_add(kd_history *history, kd_snapshot *snapshot)
{
    kd_sample *sample = &history->samples[history->taken % KD_MOST_SAMPLES];

    empty_sample(sample);
    count_waits(history, snapshot, sample);
    count_processors(history, snapshot, sample);
    count_contention(history, snapshot, sample);
    if (history->taken == 0) {
        history->first_time = snapshot->now;
        sample->waits = sample->dpcs = sample->interrupts = 0;
    } else {
        sample->interval = kd_seconds(snapshot->now - history->last_time);
    }
    sample->time = kd_seconds(snapshot->now - history->first_time);
    history->last_time = snapshot->now;
    sample->number = ++history->taken;
    return sample;
}

const kd_sample *kd_history_last(const kd_history *history)
{
    return history->taken != 0 ? &history->samples[(history->taken - 1) % KD_MOST_SAMPLES] : NULL;
}

/* JSON. */

void kd_json_sample(json *out, const kd_sample *sample, const kd_snapshot *snapshot)
{
    json_object(out, NULL);
    json_number(out, "number", (int64_t)sample->number);
    json_real(out, "time", sample->time);
    json_real(out, "interval", sample->interval);
    json_number(out, "threads", (int64_t)sample->threads);
    json_number(out, "waiting", (int64_t)sample->waiting);
    json_number(out, "deadlocked", (int64_t)sample->deadlocked);
    json_number(out, "waits", (int64_t)sample->waits);
    json_number(out, "dpcs", (int64_t)sample->dpcs);
    json_number(out, "interrupts", (int64_t)sample->interrupts);
    json_array(out, "locks");
    for (size_t i = 0; i < sample->lock_count; i++) {
        const kd_sample_lock *lock = &sample->locks[i];

        json_object(out, NULL);
        json_string(out, "kind", kd_kind_name(lock->kind));
        json_address(out, "address", lock->address);
        json_string(out, "name", lock->name != NULL && lock->name[0] != '\0' ? lock->name : NULL);
        json_number(out, "waiters", (int64_t)lock->waiters);
        if (lock->contention >= 0)
            json_number(out, "contention_count", lock->contention);
        else
            json_null(out, "contention_count");
        json_number(out, "contended", (int64_t)lock->contended);
        json_end(out);
    }
    json_end(out);
    json_number(out, "locks_left_out", (int64_t)sample->locks_left_out);
    if (snapshot != NULL)
        kd_json_faults(out, snapshot);
    json_end(out);
}

void kd_json_history(json *out, const kd_history *history, uint64_t after)
{
    uint64_t oldest = history->taken > KD_MOST_SAMPLES ? history->taken - KD_MOST_SAMPLES : 0;

    json_array(out, "samples");
    for (uint64_t i = after > oldest ? after : oldest; i < history->taken; i++)
        kd_json_sample(out, &history->samples[i % KD_MOST_SAMPLES], NULL);
    json_end(out);
}
