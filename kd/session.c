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

/* Text. */

static void print_thread(const kd_world *w, int thread)
{
    const kd_world_thread *t = &w->threads[thread];

    printf("%u/%u (%s)", process_id(w, t), t->id, process_name(w, t));
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

static const kd_world_object *object_between(const kd_world *w, const kd_world_thread *t)
{
    for (size_t i = 0; i < t->object_count; i++)
        if (w->objects[t->objects[i]].owner == t->next)
            return &w->objects[t->objects[i]];
    return NULL;
}

static void print_cycle(const kd_world *w, int cycle)
{
    int first = 0, thread;

    while (w->threads[first].cycle != cycle)
        first++;
    printf("  Deadlock: these threads wait for each other.\n");
    thread = first;
    do {
        const kd_world_thread *t = &w->threads[thread];
        const kd_world_object *o = object_between(w, t);

        printf("    ");
        print_thread(w, thread);
        printf(" waits for %s, owned by ", o != NULL && o->name != NULL ? o->name : "a mutant without a name");
        print_thread(w, t->next);
        printf("\n");
        thread = t->next;
    } while (thread != first);
}

static void print_world(const kd_world *w)
{
    printf("%s: %s%s, %zu processes, %zu objects, %zu threads, %llu of %llu KiB used\n", w->path, state_name(w->state),
           w->inconsistent ? ", inconsistent (it was changing, or is damaged)" : "", w->process_count, w->object_count,
           w->thread_count, (unsigned long long)w->used / 1024, (unsigned long long)w->size / 1024);
    for (int cycle = 0; cycle < (int)w->cycle_count; cycle++)
        print_cycle(w, cycle);
    for (size_t i = 0; i < w->process_count; i++)
        printf("  process %u (%s): %zu handles of %zu objects\n", w->processes[i].id, w->processes[i].name,
               w->processes[i].handles, w->processes[i].objects);
    for (size_t i = 0; i < w->object_count; i++)
        print_object(w, &w->objects[i]);
}

/* JSON. */

static void write_thread(json *out, const char *key, const kd_world *w, int thread)
{
    const kd_world_thread *t = &w->threads[thread];

    json_object(out, key);
    json_number(out, "process_id", process_id(w, t));
    json_number(out, "thread_id", t->id);
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
        json_end(out);
    }
    json_end(out);
}

static void write_deadlocks(json *out, const kd_world *w)
{
    json_array(out, "deadlocks");
    for (int cycle = 0; cycle < (int)w->cycle_count; cycle++) {
        json_array(out, NULL);
        for (size_t i = 0; i < w->thread_count; i++)
            if (w->threads[i].cycle == cycle)
                write_thread(out, NULL, w, (int)i);
        json_end(out);
    }
    json_end(out);
}

static void write_world(json *out, const kd_world *w)
{
    json_object(out, NULL);
    json_string(out, "path", w->path);
    json_string(out, "state", state_name(w->state));
    json_bool(out, "inconsistent", w->inconsistent);
    json_number(out, "size", (int64_t)w->size);
    json_number(out, "used", (int64_t)w->used);
    write_processes(out, w);
    write_deadlocks(out, w);
    json_array(out, "objects");
    for (size_t i = 0; i < w->object_count; i++)
        write_object(out, w, &w->objects[i]);
    json_end(out);
    json_end(out);
}

/* 0: shown; 1: it cannot be read; 3: it has a deadlock. */
static int show_path(const char *path, json *out)
{
    kd_world *w = kd_world_read(path);
    int status;

    if (w == NULL)
        return 1;
    if (out != NULL)
        write_world(out, w);
    else
        print_world(w);
    status = w->cycle_count != 0 ? 3 : 0;
    kd_world_free(w);
    return status;
}

static int show_all(char **paths, json *out)
{
    int worst = 0;

    for (size_t i = 0; paths[i] != NULL; i++) {
        int status = show_path(paths[i], out);
        worst = status > worst ? status : worst;
    }
    return worst;
}

int command_session(int argc, char **argv)
{
    bool as_json = argc > 1 && strcmp(argv[1], "--json") == 0;
    char **given = argv + 1 + as_json;
    json out = {.file = stdout};
    char **paths;
    int status;

    if ((*given != NULL && given[0][0] == '-')) {
        bool help = strcmp(*given, "--help") == 0;
        fprintf(help ? stdout : stderr, "usage: interlock session [--json] [FILE...]\n");
        return help ? 0 : 2;
    }
    paths = *given == NULL ? kd_world_paths() : NULL;
    if (as_json) {
        json_object(&out, NULL);
        json_array(&out, "worlds");
    }
    status = show_all(paths != NULL ? paths : given, as_json ? &out : NULL);
    if (as_json) {
        json_end(&out);
        json_end(&out);
    } else if (paths != NULL && paths[0] == NULL) {
        printf("No process shares objects.\n");
    }
    for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
        free(paths[i]);
    free(paths);
    return status;
}
