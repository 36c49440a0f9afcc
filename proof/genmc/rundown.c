/*
 * rundown.c: rundown protection with SLOTS slots. A user that acquires the protection finds the object alive; a waiter
 * returns after the last user and may free the object; no wakeup is lost. USERS threads acquire, WAITERS wait.
 */
#include "shim.h"

#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef USERS
#define USERS 2
#endif
#ifndef WAITERS
#define WAITERS 1
#endif

struct _KTHREAD {
    int Unused;
};

#define SYSTEM_CACHE_ALIGNMENT_SIZE 64

//! take ExpAcquireRundown ExpReleaseRundown ExpWaitForRundown
//! fault 1 ExpReleaseRundown: __ATOMIC_ACQ_REL, => __ATOMIC_RELAXED,
//! fault 2 ExpLeaveRundownBlock: __ATOMIC_ACQ_REL) == 0 => __ATOMIC_ACQ_REL) == 1
//! fault 3 ExpCollectHolders: Left == 0 => Left == 1

static EXP_RUNDOWN_SLOT slots[SLOTS];
static int object;

/* With several slots the holder leaves by the next one: only the sum of the counts is right. */
static void *use(void *argument)
{
    int thread = (int)(intptr_t)argument;
    KTHREAD self = {0};
    shim_thread = &self;
    if (ExpAcquireRundown(&slots[thread % SLOTS].Ref, 1)) {
        int alive = object;
        assert(alive == 1);
        ExpReleaseRundown(&slots[(thread + 1) % SLOTS].Ref, &slots[0].Ref, 1);
    }
    return NULL;
}

static void *await(void *argument)
{
    KTHREAD self = {0};
    (void)argument;
    shim_thread = &self;
    ExpWaitForRundown(&slots[0].Ref, SLOTS);
    assert(!ExpAcquireRundown(&slots[SLOTS - 1].Ref, 1));
    if (WAITERS == 1) {
        object = 0;
    }
    return NULL;
}

static void setup(void)
{
    for (int i = 0; i < SLOTS; i++) {
        slots[i].Ref.Count = 0;
    }
    object = 1;
}

static void finish(void)
{
    for (int i = 0; i < SLOTS; i++) {
        assert(slots[i].Ref.Count == EX_RUNDOWN_ACTIVE);
    }
}

int main(void)
{
    static SHIM_BODY *bodies[SHIM_MOST];
    for (int i = 0; i < USERS + WAITERS; i++) {
        bodies[i] = i < USERS ? use : await;
    }
    shim_run(USERS + WAITERS, bodies, setup, finish);
    return 0;
}
