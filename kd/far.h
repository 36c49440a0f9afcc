/*
 * far.h: the waits of another process, for deadlocks across processes. A child of the debugger inspects it, with
 * limits, as for `interlock ps`: a process that blocks its readers must not prevent the others from being shown.
 */
#ifndef INTERLOCK_KD_FAR_H
#define INTERLOCK_KD_FAR_H

#include "kd.h"

typedef struct kd_far_thread {
    uint32_t id;
    uint32_t switches;
    uint32_t wait_time;
    uint8_t reason;
    bool all;
    uint32_t first_block, block_count;
    char name[64];
} kd_far_thread;

typedef struct kd_far_lock {
    uint8_t kind, hold;
    int8_t world;           /* -1: it is local, and has */
    uint32_t first_owner, owner_count;
    uint32_t record;
    uint64_t address;
    char name[128];
} kd_far_lock;

typedef struct kd_far_owner {
    uint32_t id;            /* 0: not a thread */
    uint32_t count;
    bool ended, probable;
} kd_far_owner;

/* Its threads that wait, and the locks that they wait for. */
typedef struct kd_far {
    uint32_t process_id;
    uint64_t key;
    HAL_FILE_ID files[WO_PLACES]; /* of its worlds */
    uint32_t thread_count, block_count, lock_count, owner_count;
    kd_far_thread *threads;
    int32_t *blocks;        /* locks, -1: not known */
    kd_far_lock *locks;
    kd_far_owner *owners;
} kd_far;

kd_far *kd_far_look(uint32_t process, int milliseconds, bool *late); /* NULL: it cannot be inspected, or (*late) not in time */
void kd_far_free(kd_far *far);
int64_t kd_milliseconds(void); /* on a monotonic clock */

#endif
