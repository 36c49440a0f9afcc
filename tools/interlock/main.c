/* main.c: the command `interlock`. A subcommand is a line of the table. */
#include "command.h"
#ifdef INTERLOCK_KD
#include "views.h"
#endif

#include <stdio.h>
#include <string.h>

typedef struct subcommand {
    const char *name;
    const char *purpose;
    int (*run)(int argc, char **argv);
} subcommand;

static const subcommand subcommands[] = {
    {"cc", "compile and link Win32 sources in C", command_cc},
    {"c++", "compile and link Win32 sources in C++", command_cxx},
    {"port", "what of a Win32 source tree is there, what is missing, what to look at", command_port},
    {"lab", "run a test under every schedule", command_lab},
    {"faults", "run a test until each of its allocations has failed once", command_faults},
    {"machine", "make the world of names that all users share: Global\\", command_machine},
#ifdef INTERLOCK_KD
    {"ps", "the processes that use Interlock", command_ps},
    {"session", "objects that processes share: names, handles, owners, waiters, deadlocks", command_session},
    {"threads", "the threads of a process or core file, and what they wait for", command_threads},
    {"deadlocks", "threads whose waits can never end, and why", command_deadlocks},
    {"graph", "threads, wait blocks, objects and owners: who waits for whom", command_graph},
    {"locks", "locks with their owners and waiters", command_locks},
    {"object", "a dispatcher object, its flags and waiters", command_object},
    {"handles", "the handle table", command_handles},
    {"qlocks", "the numbered queued spinlocks by processor", command_qlocks},
    {"dpcs", "what runs and waits on the processors", command_dpcs},
    {"timers", "the timers that are set", command_timers},
    {"pool", "pool memory by tag", command_pool},
    {"trace", "run a command and write its waits, signals and contended acquires as a trace", command_trace},
    {"contention", "run a command and show its most contended locks, with stacks", command_contention},
    {"top", "deadlocks, contended locks and long waits, refreshed", command_top},
#ifdef INTERLOCK_VIEW
    {"view", "all of it on a web page, live", command_view},
#endif
#endif
};

#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static int usage(FILE *to)
{
    fprintf(to, "usage: interlock SUBCOMMAND [arguments]\n");
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        fprintf(to, "  %-10s %s\n", subcommands[i].name, subcommands[i].purpose);
    return to == stderr ? 2 : 0;
}

/* NULL: there is none of that name. */
static const subcommand *find(const char *name)
{
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(name, subcommands[i].name) == 0)
            return &subcommands[i];
    return NULL;
}

/* interlock-cc is interlock cc: build systems want a compiler of one word. */
static const subcommand *find_by_link(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    return strncmp(name, "interlock-", 10) == 0 ? find(name + 10) : NULL;
}

int main(int argc, char **argv)
{
    const subcommand *found = argc > 0 ? find_by_link(argv[0]) : NULL;

    if (found != NULL)
        return found->run(argc, argv);
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--help") == 0)
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0) {
        printf("interlock %s\n", INTERLOCK_VERSION);
        return 0;
    }
    found = find(argv[1]);
    if (found != NULL)
        return found->run(argc - 1, argv + 1);
    fprintf(stderr, "interlock: there is no subcommand %s\n", argv[1]);
    return usage(stderr);
}
