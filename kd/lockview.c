/* lockview.c: `interlock locks`, after !locks. */
#include "kd.h"
#include "views.h"

#include <inttypes.h>

/* Objects that are not locks are shown by `interlock threads`. */
bool kd_is_lock(const kd_lock *lock)
{
    switch (lock->kind) {
    case KD_MUTANT:
    case KD_PUSH_LOCK:
    case KD_FAST_MUTEX:
    case KD_GUARDED_MUTEX:
    case KD_RESOURCE:
    case KD_FAST_RESOURCE:
    case KD_SRW_LOCK:
    case KD_CRITICAL_SECTION:
    case KD_RTL_RESOURCE:
        return true;
    default:
        return false;
    }
}

/* Locks of other processes are part of the graph alone. */
static bool is_own_lock(const kd_lock *lock)
{
    return kd_is_lock(lock) && lock->process_id == 0 && lock->address != 0;
}

static bool is_shown(const kd_lock *lock, const kd_options *options)
{
    return is_own_lock(lock) && (options->verbose || lock->hold != KD_FREE || lock->waiter_count != 0);
}

/* Once per thread, even if it owns the lock recursively. */
static bool is_first(const kd_lock *lock, kd_index *seen, size_t owner)
{
    return lock->owners[owner].thread >= 0 && kd_index_add(seen, (uint64_t)lock->owners[owner].thread, 0);
}

static void print_one(kd_snapshot *snapshot, const kd_lock *lock, const kd_options *options)
{
    kd_index seen = {.slots = NULL};

    kd_print_lock(snapshot, lock, true);
    for (size_t i = 0; i < lock->owner_count; i++) {
        if (is_first(lock, &seen, i)) {
            printf("\n  owner:\n");
            kd_print_thread(snapshot, &snapshot->threads[lock->owners[i].thread], options);
        }
    }
    kd_index_free(&seen);
    for (size_t i = 0; i < lock->waiter_count; i++) {
        printf("\n  waiter:\n");
        kd_print_thread(snapshot, &snapshot->threads[lock->waiters[i].thread], options);
    }
}

/* As !locks -v does: the owners and waiters below each lock. */
static void print_threads(kd_snapshot *snapshot, const kd_lock *lock)
{
    kd_index seen = {.slots = NULL};

    for (size_t i = 0; i < lock->owner_count; i++)
        if (is_first(lock, &seen, i))
            kd_print_thread_briefly(snapshot, &snapshot->threads[lock->owners[i].thread]);
    for (size_t i = 0; i < lock->waiter_count; i++)
        if (kd_index_add(&seen, (uint64_t)lock->waiters[i].thread, 0))
            kd_print_thread_briefly(snapshot, &snapshot->threads[lock->waiters[i].thread]);
    kd_index_free(&seen);
}

static int show_one(kd_snapshot *snapshot, const kd_options *options)
{
    uint64_t address;
    json out = kd_json(options);
    int lock;

    if (!kd_parse_number(options->argument, &address)) {
        kd_say("%s is not an address: `interlock locks` lists the locks with theirs", options->argument);
        return 1;
    }
    lock = kd_find_lock(snapshot, address);
    if (lock < 0 || !kd_is_lock(&snapshot->locks[lock])) {
        kd_say("0x%" PRIx64 " is not a lock with waiters, nor a resource, a critical section with debug "
               "information or a mutant that is owned",
               address);
        return 1;
    }
    if (options->json)
        kd_json_lock(&out, NULL, snapshot, &snapshot->locks[lock]);
    else
        print_one(snapshot, &snapshot->locks[lock], options);
    return 0;
}

static int show_locks(kd_snapshot *snapshot, const kd_options *options)
{
    size_t total = 0, held = 0;
    json out = kd_json(options);

    if (options->argument != NULL)
        return show_one(snapshot, options);
    if (options->json) {
        json_object(&out, NULL);
        json_number(&out, "process_id", snapshot->process_id);
        kd_json_deadlocks(&out, snapshot);
        json_array(&out, "locks");
        for (size_t i = 0; i < snapshot->lock_count; i++)
            if (is_own_lock(&snapshot->locks[i]))
                kd_json_lock(&out, NULL, snapshot, &snapshot->locks[i]);
        json_end(&out);
        kd_json_end(&out, snapshot);
        return 0;
    }
    kd_print_deadlocks(snapshot);
    printf("**** DUMP OF ALL %s ****\n", options->verbose ? "LOCKS" : "LOCKS THAT ARE HELD");
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        const kd_lock *lock = &snapshot->locks[i];

        total += is_own_lock(lock);
        held += is_own_lock(lock) && lock->hold != KD_FREE;
        if (is_shown(lock, options))
            kd_print_lock(snapshot, lock, options->verbose);
        if (options->verbose && is_shown(lock, options))
            print_threads(snapshot, lock);
    }
    printf("%zu total locks, %zu locks currently held\n", total, held);
    return 0;
}

const kd_view kd_locks_view = {
    .name = "locks",
    .arguments = "[--json] [-v] [--stack] PID|CORE [ADDRESS]\n"
                 "  -v        also free locks; and the owners and waiters of each, with their times,\n"
                 "            start addresses and stacks\n"
                 "  ADDRESS   one lock, with its owners and waiters\n"
                 "Resources, critical sections with debug information and owned mutants are always known;\n"
                 "pushlocks, SRW locks, fast mutexes and other critical sections while they have waiters.",
    .has_argument = true,
    .show = show_locks,
};

int command_locks(int argc, char **argv)
{
    return kd_run(&kd_locks_view, argc, argv);
}
