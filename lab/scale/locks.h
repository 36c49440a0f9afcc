/* locks.h: the locks that are counted, and what they call to be counted. */
#ifndef LAB_SCALE_LOCKS_H
#define LAB_SCALE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct scale_lock {
    const char *name;
    void (*setup)(void); /* once; what it allocates is the lock's */
    void (*round)(void); /* acquires, counts, releases */
    bool at_dispatch;    /* by threads that are at DISPATCH_LEVEL */
    bool parallel;       /* acquisitions do not wait for each other: there are many of them */
    uint32_t warm_up;    /* rounds of each processor before that, for a lock that adapts to its use */
    uint32_t first;      /* not 0: just the first so many acquisitions of a new lock are counted */
} scale_lock;

/* What they protect, on a line of its own. */
typedef struct scale_data {
    uint32_t value __attribute__((aligned(64)));
} scale_data;

extern scale_data data;
extern const scale_lock scale_locks[];
extern const size_t scale_lock_count;

/* count.c. The calls cost the machine nothing. */
void count_lock(void *lock, size_t size); /* by setup: this memory is the lock's */
void count_begins(void);
void count_acquired(void); /* does not return if that was the last one wanted */
void count_holds(void);    /* time passes, as for somebody who has got the lock for a reason */

#endif
