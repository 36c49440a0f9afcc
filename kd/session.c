/* session.c: `interlock session`: the worlds of shared objects, and in each its processes, objects, owners and waiters. */
#include "text.h"
#include "views.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>

static const char *state_name(unsigned state)
{
    static const char *const names[] = {"being made", "live", "ended", "damaged"};

    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "damaged";
}

static uint32_t process_id(const kd_world *w, const kd_world_thread *t)
{
    return t->process >= 0 ? w->processes[t->process].id : 0;
}

static const char *process_name(const kd_world *w, const kd_world_thread *t)
{
    return t->process >= 0 ? w->processes[t->process].name : "?";
}

static const char *process_state(const kd_world_process *process)
{
    return process->dead ? ", has ended" : process->stopped ? ", is stopped" : process->flags & WO_EXITING ? ", exits" : "";
}

/* Text. */

static void print_thread(const kd_world *w, int thread)
{
    const kd_world_thread *t = &w->threads[thread];

    if (t->id != 0)
        printf("thread %u of process %u (%s)", t->id, process_id(w, t), process_name(w, t));
    else
        printf("a notification of process %u (%s)", process_id(w, t), process_name(w, t));
}

static void print_object_state(const kd_world_object *o)
{
    if (o->type == WoMutant)
        printf("%s%s", o->owner >= 0 || o->state <= 0 ? "owned" : "free", o->abandoned ? ", abandoned" : "");
    else if (o->type == WoSemaphore)
        printf("count %lld", (long long)o->state);
    else if (o->type < WoKeyedEvent)
        printf("%s%s", o->state != 0 ? "signaled" : "not signaled", o->due != 0 ? ", set" : "");
}

static void print_object(const kd_world *w, const kd_world_object *o)
{
    printf("  %-20s  %s  ", kd_world_type_name(o->type), o->name != NULL ? o->name : "(no name)");
    print_object_state(o);
    printf("\n    %u handle%s:", o->handles, o->handles == 1 ? "" : "s");
    for (size_t i = 0; i < o->holder_count; i++)
        printf("%s %u (%s)", i == 0 ? "" : ",", w->processes[o->holders[i]].id, w->processes[o->holders[i]].name);
    printf("\n");
    if (o->owner >= 0) {
        printf("    owner: ");
        print_thread(w, o->owner);
        printf("%s\n", o->state < 0 ? ", recursively" : "");
    }
    for (size_t i = 0; i < o->waiter_count; i++) {
        printf("    waits: ");
        print_thread(w, o->waiters[i]);
        printf("%s\n", w->threads[o->waiters[i]].all ? ", for all" : "");
    }
}

static void print_world(const kd_snapshot *snapshot)
{
    const kd_world *w = snapshot->worlds[0];
    char session[256];

    if (kd_world_session(w->path, session, sizeof(session))[0] != '\0')
        printf("Session %s\n", session);
    printf("%s: %s%s, %zu processes, %zu objects, %zu threads, %llu of %llu KiB used\n", w->path, state_name(w->state),
           w->inconsistent ? ", inconsistent (it was changing, or is damaged)" : "", w->process_count, w->object_count,
           w->thread_count, (unsigned long long)w->used / 1024, (unsigned long long)w->size / 1024);
    if (w->locked_by != 0)
        printf("  locked by process %u\n", w->locked_by);
    kd_print_deadlocks(snapshot);
    for (size_t i = 0; i < w->process_count; i++)
        printf("  process %u (%s): %zu handles of %zu objects%s\n", w->processes[i].id, w->processes[i].name,
               w->processes[i].handles, w->processes[i].objects, process_state(&w->processes[i]));
    for (size_t i = 0; i < w->object_count; i++)
        print_object(w, &w->objects[i]);
}

/* JSON. */

static void write_thread(json *out, const char *key, const kd_world *w, int thread)
{
    const kd_world_thread *t = &w->threads[thread];

    json_object(out, key);
    json_number(out, "process_id", process_id(w, t));
    if (t->id != 0)
        json_number(out, "thread_id", t->id);
    else
        json_null(out, "thread_id"); /* a notification */
    json_bool(out, "waiting", t->waiting);
    json_end(out);
}

static void write_object(json *out, const kd_world *w, const kd_world_object *o)
{
    json_object(out, NULL);
    json_string(out, "type", kd_world_type_name(o->type));
    json_string(out, "name", o->name);
    json_number(out, "state", o->state);
    json_bool(out, "abandoned", o->abandoned);
    json_number(out, "handles", o->handles);
    json_array(out, "processes");
    for (size_t i = 0; i < o->holder_count; i++)
        json_number(out, NULL, w->processes[o->holders[i]].id);
    json_end(out);
    if (o->owner >= 0)
        write_thread(out, "owner", w, o->owner);
    else
        json_null(out, "owner");
    json_array(out, "waiters");
    for (size_t i = 0; i < o->waiter_count; i++)
        write_thread(out, NULL, w, o->waiters[i]);
    json_end(out);
    json_end(out);
}

static void write_processes(json *out, const kd_world *w)
{
    json_array(out, "processes");
    for (size_t i = 0; i < w->process_count; i++) {
        json_object(out, NULL);
        json_number(out, "process_id", w->processes[i].id);
        json_string(out, "name", w->processes[i].name);
        json_number(out, "objects", (int64_t)w->processes[i].objects);
        json_number(out, "handles", (int64_t)w->processes[i].handles);
        json_bool(out, "ended", w->processes[i].dead);
        json_bool(out, "stopped", w->processes[i].stopped);
        json_end(out);
    }
    json_end(out);
}

static void write_world(json *out, const kd_snapshot *snapshot)
{
    const kd_world *w = snapshot->worlds[0];
    char session[256];

    json_object(out, NULL);
    json_string(out, "path", w->path);
    kd_world_session(w->path, session, sizeof(session));
    json_string(out, "session", session[0] != '\0' ? session : NULL);
    json_string(out, "state", state_name(w->state));
    json_bool(out, "inconsistent", w->inconsistent);
    json_number(out, "size", (int64_t)w->size);
    json_number(out, "used", (int64_t)w->used);
    if (w->locked_by != 0)
        json_number(out, "locked_by", w->locked_by);
    else
        json_null(out, "locked_by");
    write_processes(out, w);
    kd_json_deadlocks(out, snapshot);
    json_array(out, "objects");
    for (size_t i = 0; i < w->object_count; i++)
        write_object(out, w, &w->objects[i]);
    json_end(out);
    json_end(out);
}

static bool has_certain_deadlock(const kd_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->deadlocks->cycle_count; i++)
        if (snapshot->deadlocks->cycles[i].certain && !snapshot->deadlocks->cycles[i].orphaned)
            return true;
    return false;
}

/* 0: shown; 1: it cannot be read; 3: it has a deadlock. */
static int show_path(const char *path, bool quiet, json *out)
{
    kd_snapshot *snapshot = kd_snapshot_of_world(path, quiet);
    int status;

    if (snapshot == NULL)
        return quiet ? 0 : 1;
    if (out != NULL)
        write_world(out, snapshot);
    else
        print_world(snapshot);
    status = has_certain_deadlock(snapshot) ? KD_DEADLOCKED : 0;
    kd_snapshot_free(snapshot);
    return status;
}

static int worse(int one, int other)
{
    return one > other ? one : other;
}

/* A path, or the name of a session. */
static int show_given(const char *given, char **paths, json *out)
{
    char session[256];
    int status = -1;

    if (strchr(given, '/') != NULL)
        return show_path(given, false, out);
    for (size_t i = 0; paths[i] != NULL; i++)
        if (strcmp(kd_world_session(paths[i], session, sizeof(session)), given) == 0)
            status = worse(status, show_path(paths[i], false, out));
    if (status < 0)
        kd_say("there is no session %s: `interlock session` lists them, a file is named with its directory", given);
    return status < 0 ? 1 : status;
}

/* Without arguments, unreadable worlds of other users are skipped. */
static int show_worlds(char **given, json *out)
{
    char **paths = kd_world_paths();
    int status = 0;

    for (size_t i = 0; *given == NULL && paths[i] != NULL; i++)
        status = worse(status, show_path(paths[i], true, out));
    for (size_t i = 0; given[i] != NULL; i++)
        status = worse(status, show_given(given[i], paths, out));
    if (*given == NULL && paths[0] == NULL && out == NULL)
        printf("No process shares objects.\n");
    for (size_t i = 0; paths[i] != NULL; i++)
        free(paths[i]);
    free(paths);
    return status;
}

static const char usage[] = "usage: interlock session [--json] [SESSION|FILE...]\n"
                            "Shows the worlds of shared objects: processes, objects, handles, owners and waiters.\n"
                            "  SESSION   the value of INTERLOCK_SESSION of its processes; usually default\n"
                            "  FILE      the file of a world, with its directory\n"
                            "The exit status is 3 if there is a deadlock.\n";

/* 0: continue; otherwise the status plus 1. Removes the options. */
static int parse(int argc, char **argv, bool *as_json)
{
    int kept = 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            *as_json = true;
        } else if (argv[i][0] == '-') {
            bool help = strcmp(argv[i], "--help") == 0;

            if (!help)
                kd_say("there is no option %s", argv[i]);
            fputs(usage, help ? stdout : stderr);
            return help ? 1 : 3;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    return 0;
}

int command_session(int argc, char **argv)
{
    json out = {.file = stdout};
    bool as_json = false;
    int status = parse(argc, argv, &as_json);

    if (status != 0)
        return status - 1;
    if (as_json) {
        json_object(&out, NULL);
        json_array(&out, "worlds");
    }
    status = show_worlds(argv + 1, as_json ? &out : NULL);
    if (as_json) {
        json_end(&out);
        json_end(&out);
    }
    return status;
}
