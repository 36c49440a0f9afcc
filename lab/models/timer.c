/*
 * timer.c: the sequential behaviour of a timer. Its expiration is an operation too, of no thread: the thread that sets
 * the timer first begins one with the number of that setting and does not end it. So the expiration may or may not
 * take effect, and does not affect a later setting.
 */
#include <interlock/lab.h>

/* 0 set(number) (result: was it set), 1 cancel (the same), 2 wait (result 1: satisfied, 0: timed out), 3 expire(number)
 */
static const char *const operations[] = {"set", "cancel", "wait", "expire"};

enum { SETTING, SIGNALED }; /* the number of the setting that is in the queue, 0: none */

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[SETTING] = 0;
    state[SIGNALED] = 0;
}

static int wait(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation, int consumes)
{
    if (operation->Returned && operation->Result == 0)
        return !state[SIGNALED];
    if (!state[SIGNALED])
        return 0;
    state[SIGNALED] = !consumes;
    return 1;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation, int consumes)
{
    int was_set = state[SETTING] != 0;

    switch (operation->Name) {
    case 0:
        state[SETTING] = operation->Argument;
        state[SIGNALED] = 0;
        return !operation->Returned || operation->Result == was_set;
    case 1:
        state[SETTING] = 0;
        return !operation->Returned || operation->Result == was_set;
    case 2:
        return wait(state, operation, consumes);
    default:
        if (state[SETTING] != operation->Argument)
            return 0;
        state[SETTING] = 0;
        state[SIGNALED] = 1;
        return 1;
    }
}

static int apply_notification(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    return apply(state, operation, 0);
}

static int apply_synchronization(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    return apply(state, operation, 1);
}

const LAB_MODEL LabModelNotificationTimer = {"notification timer", initialize, apply_notification, operations};
const LAB_MODEL LabModelSynchronizationTimer = {"synchronization timer", initialize, apply_synchronization, operations};
