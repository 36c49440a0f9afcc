/* profile.h: what a process has recorded about contention (src/trace), by lock: waits and the holds that were waited for. */
#ifndef INTERLOCK_KD_PROFILE_H
#define INTERLOCK_KD_PROFILE_H

#include "record.h"

typedef struct kd_figures {
    uint64_t count, time, longest; /* nanoseconds */
    uint64_t blocked;              /* of holds: how long others waited for them */
    int64_t waiting;               /* of waits: those that have not ended */
    uint64_t buckets[TRACE_BUCKETS];
} kd_figures;

typedef struct kd_stacks {
    const TRACE_CONTENTION_ENTRY **list; /* the most important first */
    size_t count;
    kd_figures figures;
    uint32_t thread;                     /* that held it when it was last waited for, or released it last; 0: unknown */
} kd_stacks;

typedef struct kd_profile_lock {
    kd_address address;
    unsigned kind;                       /* KI_LOCK_KIND */
    kd_stacks waits, holds;
} kd_profile_lock;

typedef struct kd_profile {
    kd_recording *recording;
    kd_profile_lock *locks;              /* those that are still waited for, then by the time that was waited */
    size_t count;
} kd_profile;

kd_profile kd_profile_make(kd_recording *recording);
void kd_profile_free(kd_profile *profile);
kd_figures kd_figures_of(const TRACE_CONTENTION_ENTRY *entry);
uint64_t kd_percentile(const kd_figures *figures, unsigned percent); /* nanoseconds, to a quarter; at most the longest */
kd_frame kd_profile_frame(const kd_profile *profile, const TRACE_CONTENTION_ENTRY *entry, unsigned number);
const char *kd_profile_name(const kd_profile *profile, const kd_profile_lock *lock, char buffer[KD_SYMBOL_SIZE]); /* or NULL */

/* flame.c: all recordings in one flame graph. FALSE: it has reported why not. */
bool kd_write_flame(const char *path, const kd_recordings *recordings);  /* SVG */
bool kd_write_folded(const char *path, const kd_recordings *recordings); /* one line per stack, for other tools */

#endif
