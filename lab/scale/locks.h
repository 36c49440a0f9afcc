/* locks.h: the locks that are counted, and the functions that count. */
#ifndef LAB_SCALE_LOCKS_H
#define LAB_SCALE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The plot that shows it. */
typedef enum scale_group { GROUP_EXCLUSIVE, GROUP_SHARED, GROUP_OBJECTS, GROUPS } scale_group;

typedef struct scale_lock {
    const char *name;
    scale_group group;
    bool reference;           /* not the library's */
    void (*setup)(void);      /* once; what it allocates is the lock's */
    void (*round)(void);      /* acquires, counts, releases */
    bool at_dispatch;         /* by threads that are at DISPATCH_LEVEL */
    bool parallel;            /* acquisitions do not wait for each other: there are many of them */
    uint32_t warm_up;         /* rounds of each processor before that, for a lock that adapts to its use */
    uint32_t first;           /* not 0: only this many first acquisitions of a new lock are counted */
    uint32_t library_threads; /* how many threads the library creates for it at most */
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
void count_acquired(void); /* does not return after the last one */
void count_holds(void);    /* time passes, for the work of the owner */
void count_posted(void);   /* work for another thread: waits if too much of it is pending */
void count_served(uint32_t poster);
uint32_t count_processor(void); /* the current one's number */
uint32_t count_processors(void);
uint32_t count_node(void);

/* locks.c: the work of a lock's owner. */
void count_change_data(void);

/* references.c */
void setup_references(void);
void round_compare_exchange(void);
void round_ticket(void);
void round_mcs(void);
void round_cohort(void);

/* objects.c */
void setup_queue(void);
void round_queue(void);
void setup_list(void);
void round_list(void);
void setup_port(void);
void round_port(void);
void setup_pool(void);
void round_pool(void);
void setup_timers(void);
void round_timers(void);

#endif
