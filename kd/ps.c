/* ps.c: `interlock ps`: the processes that use Interlock. */
#include "kd.h"
#include "views.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static void read_name(const char *process, char *buffer, size_t size)
{
    char path[300];
    FILE *file;
    size_t length;

    snprintf(path, sizeof(path), "/proc/%s/comm", process);
    buffer[0] = '\0';
    file = fopen(path, "re");
    if (file == NULL)
        return;
    length = fread(buffer, 1, size - 1, file);
    buffer[length > 0 && buffer[length - 1] == '\n' ? length - 1 : length] = '\0';
    fclose(file);
}

static size_t count_waiting(const kd_snapshot *snapshot)
{
    size_t count = 0;

    for (size_t i = 0; i < snapshot->thread_count; i++)
        count += snapshot->threads[i].waiting;
    return count;
}

static const char *problem(const kd_deadlocks *deadlocks)
{
    for (size_t c = 0; c < deadlocks->cycle_count; c++)
        if (!deadlocks->cycles[c].orphaned)
            return "deadlock";
    return deadlocks->cycle_count != 0 ? "orphaned lock" : "";
}

static void show(const char *process, kd_snapshot *snapshot, json *out)
{
    char name[64];

    read_name(process, name, sizeof(name));
    if (out == NULL) {
        printf("%8s  %-16s %8s %8zu %8zu %8zu  %s\n", process, name, kd_version(snapshot->target),
               snapshot->thread_count, count_waiting(snapshot), snapshot->handle_count,
               problem(snapshot->deadlocks));
        return;
    }
    json_object(out, NULL);
    json_number(out, "process_id", strtol(process, NULL, 10));
    json_string(out, "name", name);
    json_string(out, "version", kd_version(snapshot->target));
    json_number(out, "threads", (int64_t)snapshot->thread_count);
    json_number(out, "waiting", (int64_t)count_waiting(snapshot));
    json_number(out, "handles", (int64_t)snapshot->handle_count);
    json_number(out, "deadlocks", (int64_t)snapshot->deadlocks->cycle_count);
    json_end(out);
}

int command_ps(int argc, char **argv)
{
    bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
    json out = {.file = stdout};
    DIR *processes = opendir("/proc");
    struct dirent *entry;

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
    while ((entry = readdir(processes)) != NULL) {
        kd_target *target = strspn(entry->d_name, "0123456789") == strlen(entry->d_name) ? kd_open(entry->d_name, true)
                                                                                        : NULL;
        kd_snapshot *snapshot = target != NULL ? kd_snapshot_take(target) : NULL;

        if (snapshot != NULL) {
            show(entry->d_name, snapshot, as_json ? &out : NULL);
            kd_snapshot_free(snapshot);
        }
        kd_close(target);
    }
    closedir(processes);
    if (as_json) {
        json_end(&out);
        json_end(&out);
    }
    return 0;
}
