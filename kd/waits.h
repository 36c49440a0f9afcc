/*
 * waits.h: the waits of each thread over time, as found in the snapshots. The beginning of a wait is exact: the thread
 * records it. Its end is known to lie between two snapshots. Waits that fit between two snapshots are counted.
 */
#ifndef INTERLOCK_KD_WAITS_H
#define INTERLOCK_KD_WAITS_H

#include "kd.h"

#define KD_MOST_THREAD_WAITS 256   /* that are kept of a thread */
#define KD_MOST_WAITING_THREADS 2048

typedef struct kd_waits kd_waits;

kd_waits *kd_waits_create(void);
void kd_waits_free(kd_waits *waits);
void kd_waits_add(kd_waits *waits, const kd_snapshot *snapshot);
/* Members of an object: `number`, `time`, and `threads` with the waits that have begun or ended since that number. */
void kd_json_waits(json *out, const kd_waits *waits, uint64_t after);

#endif
