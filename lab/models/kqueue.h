/* kqueue.h: the operations of LabModelNarrowQueue and its state. */
#ifndef INTERLOCK_LAB_KQUEUE_H
#define INTERLOCK_LAB_KQUEUE_H

#include <interlock/lab.h>

enum {
    QUEUE_INSERT,      /* (entry) result: the previous number of entries */
    QUEUE_INSERT_HEAD, /* the same */
    QUEUE_REMOVE,      /* result: the entry, 0: timed out, -1: run down */
    QUEUE_RUNDOWN,     /* result: the previous number of entries */
    QUEUE_END,         /* the thread exits, or waits for something else */
    QUEUE_RUN_AGAIN,   /* that wait is over */
    QUEUE_TAKE_OUT     /* (entry) from any place; result 1: it was queued */
};

/* Entries; a bit for each thread that runs; run down; the concurrency limit (1 by default); the first entry. */
enum { QUEUE_COUNT, QUEUE_RUNNING, QUEUE_GONE, QUEUE_LIMIT, QUEUE_FIRST };

#endif
