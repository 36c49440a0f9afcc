/* mapped.h: how much memory the program has mapped: finds pages that are never returned. */
#ifndef INTERLOCK_TESTS_MAPPED_H
#define INTERLOCK_TESTS_MAPPED_H

#include <stdio.h>

static inline unsigned long mapped_pages(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file != NULL) {
        if (fscanf(file, "%lu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages;
}

#endif
