/* words.h: a growing command line, and the locations of the command's files. */
#ifndef INTERLOCK_WORDS_H
#define INTERLOCK_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Followed by NULL once a word was added: an argv. */
typedef struct words {
    const char **word;
    size_t count;
    size_t capacity;
} words;

void words_add(words *list, const char *word);
void words_split(words *list, const char *text);                        /* at blanks; there are no quotes */
void words_format(words *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
void words_exec(const words *list) __attribute__((noreturn));          /* status 127 if that fails */
int words_run(const words *list);                                      /* the status; 2 if there is none */
void words_free(words *list);                                          /* the list, not its words */

/* The command runs in its build directory, or installed; an installed tree may have been moved as a whole. */
const char *place_command(void); /* this program */
bool place_is_build(void);
const char *place_include(void); /* the folder of interlock/ke.h */
const char *place_api(const char *api); /* the folder of windows.h (win32) or ntddk.h (wdk) */
const char *place_library(void);
const char *place_libexec(void);

#endif
