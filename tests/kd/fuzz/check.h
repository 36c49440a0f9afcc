/* check.h: what a view may write, whatever it read. */
#ifndef INTERLOCK_KD_FUZZ_CHECK_H
#define INTERLOCK_KD_FUZZ_CHECK_H

#include <stddef.h>

/* NULL, or the problem. */
const char *problem_of_text(const char *text, size_t length);
const char *problem_of_json(const char *text, size_t length);

#endif
