/* rundown.c: the sequential behaviour of rundown protection. A rundown is two operations. */
#include <interlock/lab.h>

/* 0 acquire (result 1: acquired), 1 release, 2 the rundown begins, 3 it is complete */
static const char *const operations[] = {"acquire", "release", "begin rundown", "complete rundown"};

enum { HOLDERS, CLOSED };

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[HOLDERS] = 0;
    state[CLOSED] = 0;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    switch (operation->Name) {
    case 0:
        if (operation->Returned && operation->Result == 0)
            return state[CLOSED] != 0;
        state[HOLDERS]++;
        return !state[CLOSED];
    case 1:
        return state[HOLDERS]-- > 0;
    case 2:
        state[CLOSED] = 1;
        return 1;
    default:
        return state[CLOSED] && state[HOLDERS] == 0;
    }
}

const LAB_MODEL LabModelRundown = {"rundown protection", initialize, apply, operations};
