/*
 * fastref.c: the sequential behaviour of a fast reference. Objects are numbers; a value is the object times 16 plus its
 * prepaid references.
 */
#include <interlock/lab.h>

/* 0 acquire (result: the previous value), 1 release(object) (result 1: returned to it), 2 swap(object) (result: the
   previous value), 3 compare and swap(old object * 16 + new object) (the same) */
static const char *const operations[] = {"acquire", "release", "swap", "compare swap"};

#define MOST 15

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[0] = 16 + MOST;
}

static intptr_t filled(intptr_t object)
{
    return object != 0 ? object * 16 + MOST : 0;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t was = state[0];
    intptr_t argument = operation->Argument;
    intptr_t result = was;

    switch (operation->Name) {
    case 0:
        state[0] -= was % 16 != 0;
        break;
    case 1:
        result = was / 16 == argument && was % 16 < MOST;
        state[0] += result;
        break;
    case 2:
        state[0] = filled(argument);
        break;
    default:
        if (was / 16 == argument / 16)
            state[0] = filled(argument % 16);
        break;
    }
    return !operation->Returned || operation->Result == result;
}

const LAB_MODEL LabModelFastReference = {"fast reference", initialize, apply, operations};
