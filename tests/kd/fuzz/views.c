/*
 * views.c: every view of a process or core file, as text and as JSON, in one process, with their output checked.
 *
 * usage: kd-views PID|CORE [VIEW...]
 * The status is 0, or 1 if the debugger rejects it with a message. Anything else is a bug of the debugger.
 */
#include "show.h"
#include "views.h"

#include <string.h>

static const shown_view shown[] = {
    {&kd_threads_view, NULL, true, false}, {&kd_threads_view, NULL, false, true}, {&kd_deadlocks_view, NULL, false, true},
    {&kd_graph_view, NULL, true, false},   {&kd_locks_view, NULL, false, false},  {&kd_locks_view, NULL, true, false},
    {&kd_handles_view, NULL, false, false}, {&kd_qlocks_view, NULL, false, false}, {&kd_dpcs_view, NULL, true, false},
    {&kd_timers_view, NULL, false, false}, {&kd_pool_view, NULL, false, false},   {&kd_object_view, "owned", false, false},
    {&kd_explain_view, NULL, false, false},
};

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 2;
}

/* Of one snapshot, as `interlock view` does it. What is no longer found is reported, and is not a failure. */
static void show_all(kd_target *target, int argc, char **argv)
{
    char said[1024] = "";
    kd_snapshot *snapshot;

    kd_say_into(said, sizeof(said));
    snapshot = kd_snapshot_take(target);
    for (size_t i = 0; snapshot != NULL && i < sizeof(shown) / sizeof(shown[0]); i++) {
        if (!is_wanted(shown[i].view->name, argc, argv))
            continue;
        show_view(snapshot, &shown[i], false);
        show_view(snapshot, &shown[i], true);
        check_output("what it says", false, said, strlen(said));
    }
    if (snapshot != NULL)
        kd_snapshot_free(snapshot);
    kd_say_into(NULL, 0);
    check_output("what it says", false, said, strlen(said));
}

int main(int argc, char **argv)
{
    const char *words[] = {"-n", "1", "-v", "--batch", NULL, NULL};
    kd_target *target;

    if (argc < 2)
        return 2;
    target = kd_open(argv[1], false);
    if (target == NULL)
        return 1;
    show_all(target, argc, argv);
    if (is_wanted("top", argc, argv) && kd_process_of(target) != 0) {
        words[4] = argv[1];
        run_command(command_top, "top", words, false);
    }
    kd_close(target);
    return 0;
}
