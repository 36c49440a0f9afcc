/* lock.c: the sequential behaviour of a mutex and a reader/writer lock. */
#include "rwlock.h"

/* 0 acquire, 1 release, 2 try (result 1: acquired). State: the owner + 1. Not recursive. */
static const char *const mutex_operations[] = {"acquire", "release", "try"};

static void initialize_zero(intptr_t state[LAB_MODEL_STATE])
{
    state[0] = 0;
    state[1] = 0;
}

static int apply_mutex(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t self = (intptr_t)operation->Thread + 1;

    switch (operation->Name) {
    case 0:
        if (state[0] != 0)
            return 0;
        state[0] = self;
        return 1;
    case 1:
        if (state[0] != self)
            return 0;
        state[0] = 0;
        return 1;
    default:
        if (operation->Returned && operation->Result == 0)
            return state[0] != 0;
        if (state[0] != 0)
            return 0;
        state[0] = self;
        return 1;
    }
}

const LAB_MODEL LabModelMutex = {"mutex", initialize_zero, apply_mutex, mutex_operations};

/*
 * The operations are those of rwlock.h; the result of a try or a conversion to exclusive is 1 if it succeeded. State:
 * the writer + 1, the readers.
 */
static const char *const rw_operations[] = {"acquire exclusive",    "release exclusive", "acquire shared",
                                            "release shared",       "try exclusive",     "try shared",
                                            "convert to exclusive", "convert to shared"};

/* A try failed: another thread owns the lock, or waits for it and so could already own it. */
static int is_refused(const LAB_OPERATION *operation)
{
    return operation->Name >= TRY_EXCLUSIVE && operation->Name <= CONVERT_TO_EXCLUSIVE && operation->Returned &&
           operation->Result == 0;
}

static int acquire_exclusive(intptr_t state[LAB_MODEL_STATE], intptr_t self, intptr_t readers)
{
    if (state[0] != 0 || state[1] != readers)
        return 0;
    state[0] = self;
    state[1] = 0;
    return 1;
}

static int acquire_shared(intptr_t state[LAB_MODEL_STATE])
{
    if (state[0] != 0)
        return 0;
    state[1]++;
    return 1;
}

static int release_exclusive(intptr_t state[LAB_MODEL_STATE], intptr_t self, intptr_t readers)
{
    if (state[0] != self)
        return 0;
    state[0] = 0;
    state[1] = readers;
    return 1;
}

static int apply_rw(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t self = (intptr_t)operation->Thread + 1;

    if (is_refused(operation))
        return state[0] != 0 || state[1] > (operation->Name == CONVERT_TO_EXCLUSIVE);
    switch (operation->Name) {
    case ACQUIRE_EXCLUSIVE:
    case TRY_EXCLUSIVE:
        return acquire_exclusive(state, self, 0);
    case RELEASE_EXCLUSIVE:
        return release_exclusive(state, self, 0);
    case ACQUIRE_SHARED:
    case TRY_SHARED:
        return acquire_shared(state);
    case RELEASE_SHARED:
        return state[1]-- > 0;
    case CONVERT_TO_EXCLUSIVE:
        return acquire_exclusive(state, self, 1);
    default:
        return release_exclusive(state, self, 1);
    }
}

const LAB_MODEL LabModelRwLock = {"reader/writer lock", initialize_zero, apply_rw, rw_operations};
