/*
 * resource.c: the sequential behaviour of a resource. The state does not include waiters: a refusal in favour of a
 * waiter is allowed wherever there is an owner for whom the waiter can wait.
 */
#include <interlock/lab.h>

/* 0 acquire exclusive, 1 shared, 2 shared past waiters, 3 shared behind waiters (result 1: acquired, 0: refused),
   4 release, 5 convert to shared */
static const char *const operations[] = {"exclusive",          "shared",  "starve exclusive",
                                         "wait for exclusive", "release", "convert"};

enum { EXCLUSIVE, COUNTS }; /* the exclusive owner + 1; how often each thread holds it */

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    for (int i = 0; i < LAB_MODEL_STATE; i++)
        state[i] = 0;
}

static int others_have_it(const intptr_t state[LAB_MODEL_STATE], unsigned self)
{
    for (unsigned i = 0; COUNTS + i < LAB_MODEL_STATE; i++)
        if (i != self && state[COUNTS + i] != 0)
            return 1;
    return 0;
}

static int may_be_refused(const intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    int has_it = state[COUNTS + operation->Thread] != 0;
    int other_writer = state[EXCLUSIVE] != 0 && state[EXCLUSIVE] != (intptr_t)operation->Thread + 1;

    switch (operation->Name) {
    case 0:
        return others_have_it(state, operation->Thread) || (has_it && state[EXCLUSIVE] == 0);
    case 1:
        return other_writer || (!has_it && others_have_it(state, operation->Thread));
    case 2:
        return other_writer;
    default:
        return other_writer || (state[EXCLUSIVE] == 0 && (has_it || others_have_it(state, operation->Thread)));
    }
}

static int acquire(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t self = (intptr_t)operation->Thread + 1;
    int alone = !others_have_it(state, operation->Thread);

    if (operation->Returned && operation->Result == 0)
        return may_be_refused(state, operation);
    if (state[EXCLUSIVE] != 0 ? state[EXCLUSIVE] != self : operation->Name == 0 && !alone)
        return 0;
    if (operation->Name == 0)
        state[EXCLUSIVE] = self;
    state[COUNTS + operation->Thread]++;
    return 1;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t *mine = &state[COUNTS + operation->Thread];

    if (operation->Name < 4)
        return acquire(state, operation);
    if (*mine == 0)
        return 0;
    if (operation->Name == 4)
        *mine -= 1;
    if (operation->Name == 5 || (*mine == 0 && state[EXCLUSIVE] == (intptr_t)operation->Thread + 1))
        state[EXCLUSIVE] = 0;
    return 1;
}

const LAB_MODEL LabModelResource = {"resource", initialize, apply, operations};
