/* condition.h: does a condition of the preprocessor hold where a program is compiled for Windows? */
#ifndef INTERLOCK_PORT_CONDITION_H
#define INTERLOCK_PORT_CONDITION_H

#include <stddef.h>

typedef enum verdict { VERDICT_NO, VERDICT_MAYBE, VERDICT_YES } verdict;

verdict verdict_not(verdict value);
verdict verdict_and(verdict left, verdict right);
verdict verdict_or(verdict left, verdict right);
verdict verdict_defined(const char *name, size_t length);

/* Evaluates an expression after #if. */
verdict condition_of(const char *text, size_t length);

#endif
