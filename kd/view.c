/* view.c: what the views share: options, and how threads and locks are shown. */
#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OWNERS_BRIEFLY 64
#define MOST_HOLDERS_SHOWN 16

double kd_seconds(uint64_t interval)
{
    return (double)interval / 1e7;
}

bool kd_parse_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 0);
    return *text != '\0' && *text != '-' && *end == '\0' && errno == 0;
}

static int usage(const kd_view *view, FILE *to)
{
    fprintf(to, "usage: interlock %s %s\n", view->name, view->arguments);
    return to == stderr ? 2 : 0;
}

static int refuse(const kd_view *view, const char *why, const char *word)
{
    kd_say("%s %s", why, word);
    return usage(view, stderr);
}

/* 0: continue; otherwise the status plus 1. */
static int parse(const kd_view *view, int argc, char **argv, kd_options *options)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options->json = true;
        else if (strcmp(argv[i], "--stack") == 0)
            options->stack = true;
        else if (strcmp(argv[i], "-v") == 0)
            options->verbose = true;
        else if (strcmp(argv[i], "--dot") == 0 && view->has_dot)
            options->dot = true;
        else if (strcmp(argv[i], "--help") == 0)
            return usage(view, stdout) + 1;
        else if (argv[i][0] == '-' && argv[i][1] != '\0')
            return refuse(view, "there is no option", argv[i]) + 1;
        else if (options->target == NULL)
            options->target = argv[i];
        else if (options->argument == NULL && view->has_argument)
            options->argument = argv[i];
        else
            return refuse(view, "one argument too many:", argv[i]) + 1;
    }
    if (options->target == NULL || (view->needs_argument && options->argument == NULL))
        return usage(view, stderr) + 1;
    return 0;
}

int kd_run(const kd_view *view, int argc, char **argv)
{
    kd_options options = {.file = stdout};
    int status = parse(view, argc, argv, &options);
    kd_target *target;
    kd_snapshot *snapshot;

    if (status != 0)
        return status - 1;
    target = kd_open(options.target, false);
    if (target == NULL)
        return 1;
    snapshot = kd_snapshot_take(target);
    if (snapshot != NULL) {
        kd_renew_budget(target, 1);
        status = view->show(snapshot, &options);
        kd_note_spent(snapshot);
        if (status == 0 && !options.json)
            kd_write_faults(options.dot ? stderr : stdout, snapshot);
        if (status == 0 && view->status != NULL)
            status = view->status(snapshot);
        kd_snapshot_free(snapshot);
    } else {
        status = 1;
    }
    kd_close(target);
    return status;
}

json kd_json(const kd_options *options)
{
    return (json){.file = options->file, .compact = options->compact};
}

void kd_json_end(json *out, kd_snapshot *snapshot)
{
    kd_note_spent(snapshot);
    kd_json_faults(out, snapshot);
    json_end(out);
}

/* Threads and locks as members of JSON objects. */

void kd_json_process(json *out, const char *key, uint32_t process)
{
    if (process != 0)
        json_number(out, key, process);
    else
        json_null(out, key);
}

void kd_json_thread(json *out, const char *key, const kd_snapshot *snapshot, int thread)
{
    const kd_thread *t = &snapshot->threads[thread];

    json_object(out, key);
    json_number(out, "id", t->id);
    json_string(out, "name", t->name);
    kd_json_process(out, "process_id", t->process_id);
    if (t->process_id != 0)
        json_string(out, "process_name", t->process_name);
    json_end(out);
}

static const char *hold_name(kd_hold hold)
{
    static const char *const names[] = {"free", "exclusive", "shared", NULL};

    return names[hold];
}

static void json_shared(json *out, const kd_lock *lock)
{
    const kd_world_object *o = lock->shared;

    if (lock->world < 0) {
        json_null(out, "shared");
        return;
    }
    json_object(out, "shared");
    json_number(out, "record", lock->record);
    if (o != NULL)
        json_number(out, "handles", o->handles);
    else
        json_null(out, "handles");
    json_end(out);
}

static void json_lock_without_waiters(json *out, const kd_lock *lock, size_t most_owners)
{
    json_string(out, "kind", kd_kind_name(lock->kind));
    json_address(out, "address", lock->address);
    json_string(out, "name", lock->name[0] != '\0' ? lock->name : NULL);
    json_string(out, "held", hold_name(lock->hold));
    if (lock->has_state)
        json_number(out, "signal_state", lock->signal_state);
    else
        json_null(out, "signal_state");
    if (lock->contention >= 0)
        json_number(out, "contention_count", lock->contention);
    else
        json_null(out, "contention_count");
    kd_json_process(out, "process_id", lock->process_id);
    json_shared(out, lock);
    json_number(out, "owner_count", (int64_t)lock->owner_count);
    json_array(out, "owners");
    for (size_t i = 0; i < lock->owner_count && i < most_owners; i++) {
        const kd_owner *owner = &lock->owners[i];

        json_object(out, NULL);
        json_address(out, "address", owner->address);
        if (owner->id != 0)
            json_number(out, "id", owner->id);
        else
            json_null(out, "id");
        json_number(out, "count", owner->count);
        json_bool(out, "probable", owner->probable);
        json_bool(out, "ended", owner->thread < 0 && owner->id != 0 && !owner->cannot_orphan);
        kd_json_process(out, "process_id", owner->process_id);
        json_end(out);
    }
    json_end(out);
}

void kd_json_lock_briefly(json *out, const char *key, const kd_lock *lock)
{
    json_object(out, key);
    json_lock_without_waiters(out, lock, MOST_OWNERS_BRIEFLY);
    json_end(out);
}

void kd_json_lock(json *out, const char *key, const kd_snapshot *snapshot, const kd_lock *lock)
{
    json_object(out, key);
    json_lock_without_waiters(out, lock, SIZE_MAX);
    json_array(out, "waiters");
    for (size_t i = 0; i < lock->waiter_count; i++) {
        json_object(out, NULL);
        json_number(out, "id", snapshot->threads[lock->waiters[i].thread].id);
        kd_json_process(out, "process_id", snapshot->threads[lock->waiters[i].thread].process_id);
        json_bool(out, "exclusive", lock->waiters[i].exclusive);
        json_end(out);
    }
    json_end(out);
    json_end(out);
}

/* As !locks shows them. */

static const char *hold_title(const kd_lock *lock, char *buffer, size_t size)
{
    if (lock->hold == KD_FREE)
        return "Available";
    if (lock->hold == KD_EXCLUSIVE)
        return "Exclusively owned";
    if (lock->hold == KD_HOLD_UNKNOWN)
        return "Held";
    snprintf(buffer, size, "Shared %zu owning threads", lock->owner_count);
    return lock->owner_count != 0 ? buffer : "Shared";
}

static void print_owners(const kd_snapshot *snapshot, const kd_lock *lock)
{
    printf("    Threads:");
    for (size_t i = 0; i < lock->owner_count; i++) {
        const kd_owner *owner = &lock->owners[i];

        printf(" %016" PRIx64 "-%02u<*>", owner->address, owner->count);
        if (owner->thread >= 0)
            printf(" %s%s", snapshot->threads[owner->thread].name, owner->probable ? " (probably)" : "");
        printf(owner->id != 0 ? " [%u]" : " *** an owner pointer", owner->id);
        if (owner->process_id != 0 && owner->thread >= 0)
            printf(" of process %u (%s)", owner->process_id, snapshot->threads[owner->thread].process_name);
        if (owner->thread < 0 && owner->id != 0 && !owner->cannot_orphan)
            printf(" *** has ended");
    }
    printf("\n");
}

static void print_waiters(const kd_snapshot *snapshot, const kd_lock *lock, bool exclusive)
{
    size_t count = 0;
    char text[192];

    for (size_t i = 0; i < lock->waiter_count; i++)
        if (lock->waiters[i].exclusive == exclusive)
            printf("%s %s", count++ == 0 ? (exclusive ? "    Threads Waiting On Exclusive Access:"
                                                      : "    Threads Waiting On Shared Access:") : ",",
                   kd_describe_thread(snapshot, lock->waiters[i].thread, text, sizeof(text)));
    printf("%s", count != 0 ? "\n" : "");
}

/* The processes that share an object. */
static void print_holders(const kd_snapshot *snapshot, const kd_lock *lock)
{
    const kd_world_object *o = lock->shared;
    const kd_world *w = snapshot->worlds[lock->world];

    printf("    Shared, %u handle%s:", o->handles, o->handles == 1 ? "" : "s");
    for (size_t i = 0; i < o->holder_count && i < MOST_HOLDERS_SHOWN; i++)
        printf("%s process %u (%s)", i == 0 ? "" : ",", w->processes[o->holders[i]].id, w->processes[o->holders[i]].name);
    if (o->holder_count > MOST_HOLDERS_SHOWN)
        printf(" and %zu more", o->holder_count - MOST_HOLDERS_SHOWN);
    printf("\n");
}

void kd_print_lock(const kd_snapshot *snapshot, const kd_lock *lock, bool verbose)
{
    const char *title = kd_kind_title(lock->kind);
    char text[64];

    printf("%c%s @ ", title[0] >= 'a' && title[0] <= 'z' ? title[0] - 'a' + 'A' : title[0], title + 1);
    if (lock->address == 0 && lock->world >= 0)
        printf("%s", lock->name[0] != '\0' ? lock->name : "(no name)");
    else
        printf(lock->name[0] != '\0' ? "%s (0x%" PRIx64 ")" : "%s0x%" PRIx64, lock->name, lock->address);
    if (lock->process_id != 0)
        printf(" of process %u", lock->process_id);
    printf("    %s\n", hold_title(lock, text, sizeof(text)));
    if (lock->contention > 0 || (verbose && lock->contention >= 0))
        printf("    Contention Count = %" PRId64 "\n", lock->contention);
    if (lock->shared != NULL)
        print_holders(snapshot, lock);
    if (lock->owner_count != 0)
        print_owners(snapshot, lock);
    print_waiters(snapshot, lock, true);
    print_waiters(snapshot, lock, false);
}

static void print_frame(const kd_frame *frame, void *context)
{
    (void)context;
    printf("        %016" PRIx64 " %s", frame->pc, frame->symbol);
    if (frame->line != 0)
        printf(" [%s @ %d]", frame->file, frame->line);
    printf("\n");
}

void kd_print_stack(kd_target *target, uint32_t id)
{
    const char *problem = kd_stack(target, id, print_frame, NULL);

    if (problem != NULL)
        printf("        no stack: %s\n", problem);
}
