/* mutant.c: the sequential behaviour of a mutant: ownership, recursion, abandonment. */
#include <interlock/lab.h>

/* 0 wait (result 0: acquired, 1: acquired abandoned, 2: timed out), 1 release (result: the previous count), 2 the
   thread exits */
static const char *const operations[] = {"wait", "release", "end"};

enum { COUNT, OWNER, ABANDONED };

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[COUNT] = 1;
    state[OWNER] = 0;
    state[ABANDONED] = 0;
}

static int wait(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation, intptr_t self)
{
    int free = state[OWNER] == 0 || state[OWNER] == self;

    if (operation->Returned && operation->Result == 2)
        return !free;
    if (!free || (operation->Returned && operation->Result != state[ABANDONED]))
        return 0;
    state[COUNT] -= 1;
    state[OWNER] = self;
    state[ABANDONED] = 0;
    return 1;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t self = (intptr_t)operation->Thread + 1;

    if (operation->Name == 0)
        return wait(state, operation, self);
    if (state[OWNER] != self)
        return operation->Name == 2;
    if (operation->Name == 1 && operation->Returned && operation->Result != state[COUNT])
        return 0;
    state[COUNT] = operation->Name == 2 ? 1 : state[COUNT] + 1;
    state[OWNER] = state[COUNT] == 1 ? 0 : self;
    state[ABANDONED] = operation->Name == 2;
    return 1;
}

const LAB_MODEL LabModelMutant = {"mutant", initialize, apply, operations};
