/* container.c: the sequential behaviour of a stack and a queue. State: the count, the elements. */
#include <interlock/lab.h>

static const char *const operations[] = {"push", "pop"}; /* pop: 0 if empty, so 0 is not an element */

static void initialize_empty(intptr_t state[LAB_MODEL_STATE])
{
    state[0] = 0;
}

static int push(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    if (state[0] + 1 >= LAB_MODEL_STATE)
        return 0;
    state[++state[0]] = operation->Argument;
    return 1;
}

static int apply_stack(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    if (operation->Name == 0)
        return push(state, operation);
    intptr_t top = state[0] != 0 ? state[state[0]--] : 0;
    return !operation->Returned || operation->Result == top;
}

static int apply_queue(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    if (operation->Name == 0)
        return push(state, operation);
    intptr_t first = state[0] != 0 ? state[1] : 0;
    for (intptr_t i = 1; i < state[0]; i++)
        state[i] = state[i + 1];
    state[0] -= state[0] != 0;
    return !operation->Returned || operation->Result == first;
}

const LAB_MODEL LabModelStack = {"stack", initialize_empty, apply_stack, operations};
const LAB_MODEL LabModelQueue = {"queue", initialize_empty, apply_queue, operations};
