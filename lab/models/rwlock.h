/* rwlock.h: the operations of LabModelRwLock, and how a scenario records a call as one of them. */
#ifndef INTERLOCK_LAB_RWLOCK_H
#define INTERLOCK_LAB_RWLOCK_H

#include <interlock/lab.h>

enum {
    ACQUIRE_EXCLUSIVE,
    RELEASE_EXCLUSIVE,
    ACQUIRE_SHARED,
    RELEASE_SHARED,
    TRY_EXCLUSIVE,
    TRY_SHARED,
    CONVERT_TO_EXCLUSIVE,
    CONVERT_TO_SHARED
};

#define record(name, call)                            \
    do {                                              \
        unsigned recorded_as = LabBegin((name), 0);   \
        (call);                                       \
        LabEnd(recorded_as, 1);                       \
    } while (0)

/* TRUE: it acquired the lock. */
#define record_try(name, call)                        \
    __extension__({                                   \
        unsigned recorded_as = LabBegin((name), 0);   \
        int recorded_got = (call) != 0;               \
        LabEnd(recorded_as, recorded_got);            \
        recorded_got;                                 \
    })

#endif
