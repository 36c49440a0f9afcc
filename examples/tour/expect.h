/* expect.h: checks what a program of the tour says. */
#ifndef INTERLOCK_TOUR_EXPECT_H
#define INTERLOCK_TOUR_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

/* The program is also a test: what it shows must be true. */
#define expect(condition) ((condition) ? (void)0 : tour_failed(#condition, __FILE__, __LINE__))

static inline void tour_failed(const char *condition, const char *file, int line)
{
    fflush(stdout);
    fprintf(stderr, "%s:%d: not as the tour says: %s\n", file, line, condition);
    exit(1);
}

#endif
