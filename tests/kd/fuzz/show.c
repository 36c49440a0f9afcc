/* show.c: views of the debugger, run in this process. */
#include "show.h"

#include "check.h"

#include <getopt.h>
#include <stdlib.h>

void fail(const char *what, const char *why, const char *text, size_t length)
{
    fprintf(stderr, "%s: %s\n%.*s\n", what, why, (int)(length < 4000 ? length : 4000), text);
    abort();
}

void check_output(const char *what, bool as_json, const char *text, size_t length)
{
    const char *problem = problem_of_text(text, length);

    if (problem == NULL && as_json)
        problem = problem_of_json(text, length);
    if (problem != NULL)
        fail(what, problem, text, length);
}

/* Text goes to stdout. */
static FILE *before;

static void begin_output(const char *what, char **text, size_t *length)
{
    before = stdout;
    stdout = open_memstream(text, length);
    if (stdout == NULL)
        fail(what, "there is no memory", "", 0);
}

static void end_output(const char *what, bool as_json, bool shown, char *const *text, const size_t *length)
{
    fclose(stdout);
    stdout = before;
    if (shown)
        check_output(what, as_json, *text, *length);
    free(*text);
}

void show_view(kd_snapshot *snapshot, const shown_view *shown, bool as_json)
{
    kd_options options = {.json = as_json, .compact = true, .verbose = shown->verbose, .stack = shown->stack,
                          .argument = shown->argument};
    char *text = NULL;
    size_t length = 0;
    int status;

    begin_output(shown->view->name, &text, &length);
    options.file = stdout;
    kd_renew_budget(snapshot->target, 1);
    status = shown->view->show(snapshot, &options);
    kd_note_spent(snapshot);
    if (status == 0 && !as_json)
        kd_write_faults(stdout, snapshot);
    end_output(shown->view->name, as_json, status == 0, &text, &length);
}

void run_command(int (*command)(int argc, char **argv), const char *name, const char *const *words, bool as_json)
{
    char *argv[8] = {(char *)(uintptr_t)name}, *text = NULL;
    size_t length = 0;
    int argc = 1, status;

    for (; words[argc - 1] != NULL && argc < 7; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    argv[argc] = NULL;
    optind = 0;
    begin_output(name, &text, &length);
    status = command(argc, argv);
    end_output(name, as_json, status == 0 || status == KD_DEADLOCKED, &text, &length);
}
