/* event.c: the sequential behaviour of events and semaphores, from their documentation. */
#include <interlock/lab.h>

#include <string.h>

/* 0 set (result: was it set), 1 reset (the same), 2 wait (result 1: satisfied, 0: timed out) */
static const char *const event_operations[] = {"set", "reset", "wait"};

static void initialize_zero(intptr_t state[LAB_MODEL_STATE])
{
    state[0] = 0;
}

static int apply_event(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation, int consumes)
{
    intptr_t was = state[0];

    switch (operation->Name) {
    case 0:
        state[0] = 1;
        return !operation->Returned || operation->Result == was;
    case 1:
        state[0] = 0;
        return !operation->Returned || operation->Result == was;
    default:
        if (operation->Returned && operation->Result == 0)
            return was == 0;
        if (was == 0)
            return 0;
        state[0] = consumes ? 0 : 1;
        return 1;
    }
}

static int apply_notification(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    return apply_event(state, operation, 0);
}

static int apply_synchronization(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    return apply_event(state, operation, 1);
}

const LAB_MODEL LabModelNotificationEvent = {"notification event", initialize_zero, apply_notification, event_operations};
const LAB_MODEL LabModelSynchronizationEvent = {"synchronization event", initialize_zero, apply_synchronization,
                                                event_operations};

/* 0 release(count) (result: the previous count, -1: it would exceed the limit), 1 wait (result 1: satisfied, 0: timed
   out). State: the count, the limit or 0 for none. */
static const char *const semaphore_operations[] = {"release", "wait"};

static void initialize_unlimited(intptr_t state[LAB_MODEL_STATE])
{
    state[0] = 0;
    state[1] = 0;
}

static int apply_semaphore(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    if (operation->Name == 0) {
        intptr_t was = state[0];

        if (state[1] != 0 && operation->Argument > state[1] - was)
            return !operation->Returned || operation->Result == -1;
        state[0] += operation->Argument;
        return !operation->Returned || operation->Result == was;
    }
    if (operation->Returned && operation->Result == 0)
        return state[0] == 0;
    return state[0]-- > 0;
}

const LAB_MODEL LabModelSemaphore = {"semaphore", initialize_unlimited, apply_semaphore, semaphore_operations};
