/* main.c: the command `interlock`. A subcommand is a line of the table. */
#include "command.h"
#ifdef INTERLOCK_KD
#include "views.h"
#endif

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct subcommand {
    const char *name;
    const char *purpose;
    int (*run)(int argc, char **argv);
} subcommand;

/* Subcommands that are not in this build are still listed, and marked. */
#ifdef INTERLOCK_KD
#define DEBUGGER(run) run
#else
#define DEBUGGER(run) NULL
#endif
#ifdef INTERLOCK_VIEW
#define PAGE(run) run
#else
#define PAGE(run) NULL
#endif

static const subcommand subcommands[] = {
    {"cc", "compile and link Win32 sources in C", command_cc},
    {"c++", "compile and link Win32 sources in C++", command_cxx},
    {"port", "which functions of a Win32 source tree exist, which are missing, what needs attention", command_port},
    {"lab", "run a test under every schedule", command_lab},
    {"faults", "run a test until each of its allocations has failed once", command_faults},
    {"machine", "create the world of names that all users share: Global\\", command_machine},
    {"ps", "the processes that use Interlock", DEBUGGER(command_ps)},
    {"session", "objects that processes share: names, handles, owners, waiters, deadlocks", DEBUGGER(command_session)},
    {"threads", "the threads of a process or core file, and what they wait for", DEBUGGER(command_threads)},
    {"deadlocks", "threads whose waits can never end, and why", DEBUGGER(command_deadlocks)},
    {"explain", "what happened to a process, from a bugcheck report, a core file or a process", DEBUGGER(command_explain)},
    {"graph", "threads, wait blocks, objects and owners: the wait graph", DEBUGGER(command_graph)},
    {"locks", "locks with their owners and waiters", DEBUGGER(command_locks)},
    {"object", "a dispatcher object, its flags and waiters", DEBUGGER(command_object)},
    {"handles", "the handle table", DEBUGGER(command_handles)},
    {"qlocks", "the numbered queued spinlocks by processor", DEBUGGER(command_qlocks)},
    {"dpcs", "what runs and waits on the processors", DEBUGGER(command_dpcs)},
    {"timers", "the timers that are set", DEBUGGER(command_timers)},
    {"pool", "pool memory by tag", DEBUGGER(command_pool)},
    {"snapshot", "saves a process in a file for the other views, and compares two", DEBUGGER(command_snapshot)},
    {"trace", "the waits, signals and contended acquires of a command or process, as a trace", DEBUGGER(command_trace)},
    {"contention", "the most contended locks of a command or process, with holders and waiters", DEBUGGER(command_contention)},
    {"top", "deadlocks, contended locks and long waits, refreshed", DEBUGGER(command_top)},
    {"view", "everything on a live web page", PAGE(command_view)},
};

#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static int usage(FILE *to)
{
    fprintf(to, "usage: interlock SUBCOMMAND [arguments]\n");
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        fprintf(to, "  %-10s %s%s\n", subcommands[i].name, subcommands[i].purpose,
                subcommands[i].run == NULL ? " (not in this build)" : "");
    fprintf(to, "  %-10s the usage of a subcommand: interlock help SUBCOMMAND\n", "help");
    return to == stderr ? 2 : 0;
}

static int version(void)
{
    printf("interlock %s\n", INTERLOCK_VERSION);
    return 0;
}

static int unknown(const char *name)
{
    fprintf(stderr, "interlock: there is no subcommand %s\n", name);
    return usage(stderr);
}

/* NULL: there is none of that name. */
static const subcommand *find(const char *name)
{
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(name, subcommands[i].name) == 0)
            return &subcommands[i];
    return NULL;
}

/* interlock-cc is interlock cc: build systems need a one-word compiler. */
static const subcommand *find_by_link(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    return strncmp(name, "interlock-", 10) == 0 ? find(name + 10) : NULL;
}

/* Compilers have a version of their own. */
static bool is_compiler(const subcommand *c)
{
    return c->run == command_cc || c->run == command_cxx;
}

static int run(const subcommand *c, int argc, char **argv)
{
    if (c->run == NULL) {
        fprintf(stderr, "interlock: %s is not in this build: it was built without %s (scripts/ensure-deps tools)\n", c->name,
                strcmp(c->name, "view") == 0 ? "libmicrohttpd" : "libdw");
        return 2;
    }
    return argc == 2 && strcmp(argv[1], "--version") == 0 && !is_compiler(c) ? version() : c->run(argc, argv);
}

static int help(const char *name)
{
    const subcommand *found = find(name);
    char own[] = "--help", beside_compiler[] = "--interlock-help"; /* --help is the compiler's */
    char *words[] = {found != NULL ? (char *)(uintptr_t)found->name : NULL,
                     found != NULL && is_compiler(found) ? beside_compiler : own, NULL};

    return found != NULL ? run(found, 2, words) : unknown(name);
}

int main(int argc, char **argv)
{
    const subcommand *found = argc > 0 ? find_by_link(argv[0]) : NULL;

    if (found != NULL)
        return run(found, argc, argv);
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--version") == 0)
        return version();
    if (argc > 2 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--help") != 0)
        return help(argv[2]);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
        return usage(stdout);
    found = find(argv[1]);
    return found != NULL ? run(found, argc - 1, argv + 1) : unknown(argv[1]);
}
