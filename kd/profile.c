/* profile.c: what a process has recorded about contention, by lock. The recording is not trusted. */
#include "profile.h"

#include <stdlib.h>

static void add(kd_figures *sum, const TRACE_CONTENTION_ENTRY *entry)
{
    sum->count += entry->Count;
    sum->time += entry->Time;
    sum->waiting += entry->Waiting;
    sum->blocked += entry->Blocked;
    if (entry->Longest > sum->longest)
        sum->longest = entry->Longest;
    for (unsigned i = 0; i < TRACE_BUCKETS; i++)
        sum->buckets[i] += entry->Bucket[i];
}

kd_figures kd_figures_of(const TRACE_CONTENTION_ENTRY *entry)
{
    kd_figures figures = {0};

    add(&figures, entry);
    return figures;
}

/* Linear inside the bucket. The process may still be counting: only the buckets determine the total. */
uint64_t kd_percentile(const kd_figures *figures, unsigned percent)
{
    uint64_t all = 0, before = 0, rank;

    for (unsigned i = 0; i < TRACE_BUCKETS; i++)
        all += figures->buckets[i];
    if (all == 0)
        return 0;
    rank = (all * percent + 99) / 100;
    for (unsigned i = 0; i < TRACE_BUCKETS; i++) {
        uint64_t in = figures->buckets[i];

        if (before + in >= rank && in != 0) {
            uint64_t begin = TraceBucketBegin(i);
            uint64_t end = i + 1 < TRACE_BUCKETS ? TraceBucketBegin(i + 1) : figures->longest;
            double share = (double)(rank - before) / (double)in;
            uint64_t time = end > begin ? begin + (uint64_t)((double)(end - begin) * share) : begin;

            return time < figures->longest ? time : figures->longest;
        }
        before += in;
    }
    return figures->longest;
}

static int by_identity(const void *one, const void *other)
{
    const TRACE_CONTENTION_ENTRY *a = *(const TRACE_CONTENTION_ENTRY *const *)one;
    const TRACE_CONTENTION_ENTRY *b = *(const TRACE_CONTENTION_ENTRY *const *)other;

    if (a->Lock != b->Lock)
        return a->Lock < b->Lock ? -1 : 1;
    return a->Kind < b->Kind ? -1 : a->Kind > b->Kind;
}

/* Threads that still wait come first, then what others waited for, then the total time. */
static int by_figures(const kd_figures *a, const kd_figures *b)
{
    if ((a->waiting > 0) != (b->waiting > 0))
        return a->waiting > 0 ? -1 : 1;
    if (a->blocked != b->blocked)
        return a->blocked > b->blocked ? -1 : 1;
    if (a->time != b->time)
        return a->time > b->time ? -1 : 1;
    return a->count > b->count ? -1 : a->count < b->count;
}

static int by_waits(const void *one, const void *other)
{
    return by_figures(&((const kd_profile_lock *)one)->waits.figures, &((const kd_profile_lock *)other)->waits.figures);
}

static int by_own_figures(const void *one, const void *other)
{
    kd_figures a = kd_figures_of(*(const TRACE_CONTENTION_ENTRY *const *)one);
    kd_figures b = kd_figures_of(*(const TRACE_CONTENTION_ENTRY *const *)other);

    return by_figures(&a, &b);
}

static void add_stack(kd_stacks *to, const TRACE_CONTENTION_ENTRY *entry)
{
    add(&to->figures, entry);
    to->list = kd_grow(to->list, to->count, sizeof(*to->list));
    to->list[to->count++] = entry;
}

static void add_entry(kd_profile *profile, const TRACE_CONTENTION_ENTRY *entry)
{
    kd_profile_lock *last = profile->count != 0 ? &profile->locks[profile->count - 1] : NULL;

    if (last == NULL || last->address != entry->Lock || last->kind != entry->Kind) {
        profile->locks = kd_grow(profile->locks, profile->count, sizeof(*profile->locks));
        last = &profile->locks[profile->count++];
        *last = (kd_profile_lock){.address = entry->Lock, .kind = entry->Kind};
    }
    add_stack(entry->Role == TraceHeld ? &last->holds : &last->waits, entry);
}

static void sort_stacks(kd_stacks *stacks)
{
    if (stacks->count != 0)
        qsort(stacks->list, stacks->count, sizeof(*stacks->list), by_own_figures);
    for (size_t i = 0; i < stacks->count && stacks->thread == 0; i++)
        stacks->thread = stacks->list[i]->LastOwner;
}

static bool is_used(const TRACE_CONTENTION_ENTRY *entry)
{
    return entry->State == TraceEntryReady && (entry->Count != 0 || entry->Waiting > 0) &&
           entry->Frames <= TRACE_CONTENTION_FRAMES && entry->Kind < KiLockKinds && entry->Role < TraceEntryRoles;
}

kd_profile kd_profile_make(kd_recording *recording)
{
    const TRACE_CONTENTION_ENTRY *entries = (const TRACE_CONTENTION_ENTRY *)(recording->file + 1), **found = NULL;
    kd_profile profile = {.recording = recording};
    size_t count = 0;

    for (uint32_t i = 0; i < recording->file->Units; i++) {
        if (is_used(&entries[i])) {
            found = kd_grow(found, count, sizeof(*found));
            found[count++] = &entries[i];
        }
    }
    if (count != 0)
        qsort(found, count, sizeof(*found), by_identity);
    for (size_t i = 0; i < count; i++)
        add_entry(&profile, found[i]);
    free(found);
    for (size_t i = 0; i < profile.count; i++) {
        sort_stacks(&profile.locks[i].waits);
        sort_stacks(&profile.locks[i].holds);
    }
    if (profile.count != 0)
        qsort(profile.locks, profile.count, sizeof(*profile.locks), by_waits);
    return profile;
}

void kd_profile_free(kd_profile *profile)
{
    for (size_t i = 0; i < profile->count; i++) {
        free(profile->locks[i].waits.list);
        free(profile->locks[i].holds.list);
    }
    free(profile->locks);
}

const char *kd_profile_name(const kd_profile *profile, const kd_profile_lock *lock, char buffer[KD_SYMBOL_SIZE])
{
    return kd_symbol_in(kd_recorded_module(profile->recording, lock->address), lock->address, buffer) ? buffer : NULL;
}

kd_frame kd_profile_frame(const kd_profile *profile, const TRACE_CONTENTION_ENTRY *entry, unsigned number)
{
    kd_address pc = entry->Frame[number];
    kd_frame frame;

    kd_describe_frame(kd_recorded_module(profile->recording, pc - 1), pc, false, &frame);
    return frame;
}
