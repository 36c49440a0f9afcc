/* runonce.c: the sequential behaviour of a call-once initialisation. */
#include <interlock/lab.h>

/* 0 begin, 1 begin asynchronously, 2 check (result: the context; 0: the caller initialises it; a check: not done),
   3 complete(context), 4 complete asynchronously(context) (result 1: it was the first), 5 fail */
static const char *const operations[] = {"begin", "begin async", "check", "complete", "complete async", "fail"};

enum { STATE, CONTEXT };
enum { IDLE, RUNNING, RUNNING_ASYNC, DONE };

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[STATE] = IDLE;
    state[CONTEXT] = 0;
}

static int begin(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t running = operation->Name == 0 ? RUNNING : RUNNING_ASYNC;

    if (operation->Returned && operation->Result != 0)
        return state[STATE] == DONE && operation->Result == state[CONTEXT];
    if (state[STATE] != IDLE && (running == RUNNING || state[STATE] != RUNNING_ASYNC))
        return 0;
    state[STATE] = running;
    return 1;
}

static int complete(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t running = operation->Name == 3 ? RUNNING : RUNNING_ASYNC;
    int wins = state[STATE] == running;

    if (operation->Returned && operation->Result != wins)
        return 0;
    if (wins) {
        state[STATE] = DONE;
        state[CONTEXT] = operation->Argument;
    }
    return 1;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    switch (operation->Name) {
    case 0:
    case 1:
        return begin(state, operation);
    case 2:
        return !operation->Returned || operation->Result == (state[STATE] == DONE ? state[CONTEXT] : 0);
    case 3:
    case 4:
        return complete(state, operation);
    default:
        if (state[STATE] != RUNNING)
            return 0;
        state[STATE] = IDLE;
        return 1;
    }
}

const LAB_MODEL LabModelRunOnce = {"one-time initialisation", initialize, apply, operations};
