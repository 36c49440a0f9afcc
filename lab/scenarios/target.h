/* target.h: the target thread publishes itself, and the others wait until it has. */
#ifndef INTERLOCK_LAB_TARGET_H
#define INTERLOCK_LAB_TARGET_H

#include <ntddk.h>

#include "ke/ki.h"

static PKTHREAD target;

static inline void announce(void)
{
    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
}

static inline PKTHREAD find_target(void)
{
    PKTHREAD thread;
    while ((thread = __atomic_load_n(&target, __ATOMIC_ACQUIRE)) == NULL)
        ;
    return thread;
}

/* A suspension has parked it. */
static inline int is_stopped(PKTHREAD thread)
{
    return __atomic_load_n(&thread->State, __ATOMIC_RELAXED) == Waiting &&
           __atomic_load_n(&thread->WaitReason, __ATOMIC_RELAXED) == Suspended;
}

#endif
