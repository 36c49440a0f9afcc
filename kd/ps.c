/*
 * ps.c: `interlock ps`: the processes that use Interlock.
 *
 * They may belong to any user, and none may prevent the others from being shown. So a child inspects each process, with
 * limits, and returns its findings through a pipe. A process that takes too long is omitted, with a note.
 */
#include "kd.h"
#include "views.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 30 /* seconds */

typedef struct summary {
    size_t threads, waiting, handles, deadlocks;
    bool uses_interlock, orphaned, inconsistent;
    char name[128], version[128];
    char why[256]; /* it cannot be inspected */
} summary;

static void summarize(const char *process, summary *s)
{
    kd_target *target = kd_open(process, true);
    kd_snapshot *snapshot;

    if (target == NULL)
        return;
    kd_say_into(s->why, sizeof(s->why));
    snapshot = kd_snapshot_take_alone(target);
    kd_process_name(target, s->name, sizeof(s->name));
    s->uses_interlock = snapshot != NULL;
    if (snapshot == NULL)
        return;
    kd_copy(s->version, sizeof(s->version), kd_version(target), sizeof(s->version));
    s->threads = snapshot->own_count;
    s->handles = snapshot->handle_count;
    s->deadlocks = snapshot->deadlocks->cycle_count;
    s->orphaned = s->deadlocks != 0;
    for (size_t i = 0; i < s->deadlocks; i++)
        s->orphaned = s->orphaned && snapshot->deadlocks->cycles[i].orphaned;
    for (size_t i = 0; i < snapshot->own_count; i++)
        s->waiting += snapshot->threads[i].waiting;
    for (size_t i = 0; i < snapshot->fault_count; i++)
        s->inconsistent = s->inconsistent || !snapshot->faults[i].moving;
}

static void look_and_exit(const char *process, int to)
{
    summary found;

    memset(&found, 0, sizeof(found));
    summarize(process, &found);
    _exit(write(to, &found, sizeof(found)) == (ssize_t)sizeof(found) ? 0 : 1);
}

/* FALSE: it could not be inspected, or not in time. */
static bool look(const char *process, summary *found)
{
    struct pollfd input = {.events = POLLIN};
    pid_t child = kd_start_child(look_and_exit, process, PATIENCE, &input.fd);
    bool done;

    if (child < 0)
        return false;
    done = poll(&input, 1, PATIENCE * 1000) > 0 && read(input.fd, found, sizeof(*found)) == (ssize_t)sizeof(*found);
    close(input.fd);
    if (!done)
        kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return done;
}

static void show(const char *process, const summary *s, json *out)
{
    size_t wide = kd_characters(s->name);

    if (out == NULL) {
        printf("%8s  %s%*s %8s %8zu %8zu %8zu  %s%s%s\n", process, s->name, wide < 16 ? (int)(16 - wide) : 0, "",
               s->version, s->threads, s->waiting, s->handles,
               s->inconsistent ? "inconsistent" : "", s->inconsistent && s->deadlocks != 0 ? ", " : "",
               s->deadlocks == 0 ? "" : s->orphaned ? "orphaned lock" : "deadlock");
        return;
    }
    json_object(out, NULL);
    json_number(out, "process_id", strtol(process, NULL, 10));
    json_string(out, "name", s->name);
    json_string(out, "version", s->version);
    json_number(out, "threads", (int64_t)s->threads);
    json_number(out, "waiting", (int64_t)s->waiting);
    json_number(out, "handles", (int64_t)s->handles);
    json_number(out, "deadlocks", (int64_t)s->deadlocks);
    json_bool(out, "inconsistent", s->inconsistent);
    json_end(out);
}

static void show_process(const char *process, json *out)
{
    summary found;

    if (!look(process, &found)) {
        kd_say("process %s: it cannot be inspected, or takes too long", process);
        return;
    }
    if (found.uses_interlock)
        show(process, &found, out);
    else if (found.why[0] != '\0')
        kd_say("process %s (%s): %s", process, found.name, found.why);
}

int command_ps(int argc, char **argv)
{
    bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
    json out = {.file = stdout};
    DIR *processes = opendir("/proc");
    struct dirent *entry;

    if (argc > 1 && !help && !as_json)
        kd_say("there is no option %s", strcmp(argv[1], "--json") == 0 ? argv[2] : argv[1]);
    if (help || (argc > 1 && !as_json) || processes == NULL) {
        fprintf(help ? stdout : stderr, "usage: interlock ps [--json]\n");
        if (processes != NULL)
            closedir(processes);
        return help ? 0 : 2;
    }
    if (as_json) {
        json_object(&out, NULL);
        json_array(&out, "processes");
    } else {
        printf("%8s  %-16s %8s %8s %8s %8s\n", "PID", "NAME", "VERSION", "THREADS", "WAITING", "HANDLES");
    }
    while ((entry = readdir(processes)) != NULL)
        if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name))
            show_process(entry->d_name, as_json ? &out : NULL);
    closedir(processes);
    if (as_json) {
        json_end(&out);
        json_end(&out);
    }
    return 0;
}
