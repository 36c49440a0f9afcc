/*
 * kqueue.c: what a KQUEUE for one running thread does when one operation comes after the other. A thread that has come
 * back from a remove, with an entry or without, runs on behalf of the queue until its next remove, or its end.
 */
#include <interlock/lab.h>

/* 0 insert, 1 insert at the head (result: how many there were), 2 remove (result: the entry, 0: timed out, -1: run
   down), 3 rundown (result: how many there were), 4 the thread's end */
static const char *const operations[] = {"insert", "insert head", "remove", "rundown", "end"};

enum { COUNT, RUNNING, GONE, FIRST };

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[COUNT] = 0;
    state[RUNNING] = 0; /* a bit for each thread */
    state[GONE] = 0;
}

static int insert(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t was = state[COUNT];

    if (FIRST + was >= LAB_MODEL_STATE || (operation->Returned && operation->Result != was))
        return 0;
    for (intptr_t i = was; operation->Name == 1 && i > 0; i--)
        state[FIRST + i] = state[FIRST + i - 1];
    state[FIRST + (operation->Name == 1 ? 0 : was)] = operation->Argument;
    state[COUNT]++;
    return 1;
}

static intptr_t take_first(intptr_t state[LAB_MODEL_STATE])
{
    intptr_t first = state[FIRST];

    for (intptr_t i = 1; i < state[COUNT]; i++)
        state[FIRST + i - 1] = state[FIRST + i];
    state[COUNT]--;
    return first;
}

static int apply_remove(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t self = (intptr_t)1 << operation->Thread;
    int may = state[COUNT] != 0 && (state[RUNNING] & ~self) == 0;

    if (operation->Returned && operation->Result == -1)
        return state[GONE] != 0;
    state[RUNNING] |= self;
    if (operation->Returned && operation->Result == 0)
        return !may && !state[GONE];
    return may && !state[GONE] && (take_first(state) == operation->Result || !operation->Returned);
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t was = state[COUNT];

    switch (operation->Name) {
    case 0:
    case 1:
        return insert(state, operation);
    case 2:
        return apply_remove(state, operation);
    case 3:
        state[COUNT] = 0;
        state[RUNNING] = 0;
        state[GONE] = 1;
        return !operation->Returned || operation->Result == was;
    default:
        state[RUNNING] &= ~((intptr_t)1 << operation->Thread);
        return 1;
    }
}

const LAB_MODEL LabModelNarrowQueue = {"queue for one running thread", initialize, apply, operations};
