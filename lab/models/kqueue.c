/*
 * kqueue.c: the sequential behaviour of a KQUEUE. A thread that has returned from a remove, with or without an entry,
 * counts as running until its next remove or its exit, and not while it waits elsewhere.
 */
#include "kqueue.h"

static const char *const operations[] = {"insert", "insert head", "remove", "rundown", "end", "run again", "take out"};

enum { COUNT = QUEUE_COUNT, RUNNING = QUEUE_RUNNING, GONE = QUEUE_GONE, LIMIT = QUEUE_LIMIT, FIRST = QUEUE_FIRST };

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[COUNT] = 0;
    state[RUNNING] = 0; /* a bit for each thread */
    state[GONE] = 0;
    state[LIMIT] = 1;
}

static int insert(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t was = state[COUNT];

    if (FIRST + was >= LAB_MODEL_STATE || (operation->Returned && operation->Result != was))
        return 0;
    for (intptr_t i = was; operation->Name == QUEUE_INSERT_HEAD && i > 0; i--)
        state[FIRST + i] = state[FIRST + i - 1];
    state[FIRST + (operation->Name == QUEUE_INSERT_HEAD ? 0 : was)] = operation->Argument;
    state[COUNT]++;
    return 1;
}

static intptr_t take(intptr_t state[LAB_MODEL_STATE], intptr_t place)
{
    intptr_t entry = state[FIRST + place];

    for (intptr_t i = place + 1; i < state[COUNT]; i++)
        state[FIRST + i - 1] = state[FIRST + i];
    state[COUNT]--;
    return entry;
}

static int apply_take_out(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t place = 0;

    while (place < state[COUNT] && state[FIRST + place] != operation->Argument)
        place++;
    if (place == state[COUNT])
        return !operation->Returned || operation->Result == 0;
    take(state, place);
    return !operation->Returned || operation->Result == 1;
}

static intptr_t count_bits(intptr_t threads)
{
    intptr_t found = 0;

    for (; threads != 0; threads &= threads - 1)
        found++;
    return found;
}

static int apply_remove(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t self = (intptr_t)1 << operation->Thread;
    int may = state[COUNT] != 0 && count_bits(state[RUNNING] & ~self) < state[LIMIT];

    if (operation->Returned && operation->Result == -1)
        return state[GONE] != 0;
    state[RUNNING] |= self;
    if (operation->Returned && operation->Result == 0)
        return !may && !state[GONE];
    return may && !state[GONE] && (take(state, 0) == operation->Result || !operation->Returned);
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t was = state[COUNT];

    switch (operation->Name) {
    case QUEUE_INSERT:
    case QUEUE_INSERT_HEAD:
        return insert(state, operation);
    case QUEUE_REMOVE:
        return apply_remove(state, operation);
    case QUEUE_RUNDOWN:
        state[COUNT] = 0;
        state[RUNNING] = 0;
        state[GONE] = 1;
        return !operation->Returned || operation->Result == was;
    case QUEUE_TAKE_OUT:
        return apply_take_out(state, operation);
    case QUEUE_RUN_AGAIN:
        state[RUNNING] |= (intptr_t)1 << operation->Thread;
        return 1;
    default:
        state[RUNNING] &= ~((intptr_t)1 << operation->Thread);
        return 1;
    }
}

const LAB_MODEL LabModelNarrowQueue = {"queue for one running thread", initialize, apply, operations};
