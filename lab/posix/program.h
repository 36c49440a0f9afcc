/* program.h: programs that are not written for the explorer: those with a main function. */
#ifndef LAB_PROGRAM_H
#define LAB_PROGRAM_H

#include "../engine/engine.h"

/*
 * The scenarios of this program: one for each function given by name; or else those of LAB_SCENARIO in the order of
 * their files; or else the test cases of GoogleTest or cmocka; or else main.
 */
const LAB_SCENARIO *const *lab_program_scenarios(void);
void lab_program_add_function(const char *name);
void lab_program_add_argument(const char *word);
void lab_program_begin(char *name);
void lab_program_run(void *unused); /* its first thread */
uintptr_t lab_program_entry(void);
void lab_program_exit(int status) __attribute__((noreturn));

/* What the program prints is discarded while schedules are searched, and kept while one is shown. */
void lab_program_mute(void);
void lab_program_unmute(void);
void lab_program_print_output(void);

#endif
