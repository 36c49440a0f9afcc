/* kqueue.h: the operations of LabModelNarrowQueue and where its state is. */
#ifndef INTERLOCK_LAB_KQUEUE_H
#define INTERLOCK_LAB_KQUEUE_H

#include <interlock/lab.h>

enum {
    QUEUE_INSERT,      /* (entry) result: how many there were */
    QUEUE_INSERT_HEAD, /* the same */
    QUEUE_REMOVE,      /* result: the entry, 0: timed out, -1: run down */
    QUEUE_RUNDOWN,     /* result: how many there were */
    QUEUE_END,         /* of the thread, or of its running: it waits for something else */
    QUEUE_RUN_AGAIN,   /* that is over */
    QUEUE_TAKE_OUT     /* (entry) from where it is; result 1: it was there */
};

/* Entries; a bit for each thread that runs; run down; how many may run (1 unless somebody changes it); the first entry. */
enum { QUEUE_COUNT, QUEUE_RUNNING, QUEUE_GONE, QUEUE_LIMIT, QUEUE_FIRST };

#endif
