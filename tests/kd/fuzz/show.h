/* show.h: views of the debugger, run in this process, with their output checked by check.h. */
#ifndef INTERLOCK_KD_FUZZ_SHOW_H
#define INTERLOCK_KD_FUZZ_SHOW_H

#include "kd.h"

typedef struct shown_view {
    const kd_view *view;
    const char *argument; /* NULL: none */
    bool verbose, stack;
} shown_view;

void fail(const char *what, const char *why, const char *text, size_t length) __attribute__((noreturn)); /* aborts */
void check_output(const char *what, bool as_json, const char *text, size_t length);
void show_view(kd_snapshot *snapshot, const shown_view *shown, bool as_json);
/* A subcommand; words end with NULL. */
void run_command(int (*command)(int argc, char **argv), const char *name, const char *const *words, bool as_json);

#endif
