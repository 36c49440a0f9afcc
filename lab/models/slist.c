/* slist.c: the sequential behaviour of an interlocked list. Entries are the numbers 1 to 15. */
#include <interlock/lab.h>

/* 0 push(entry) (result: the previous first entry), 1 pop (result: the entry; 0: empty), 2 flush (result: all entries,
   the first one in the lowest four bits), 3 depth */
static const char *const operations[] = {"push", "pop", "flush", "depth"};

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[0] = 0; /* as in the result of a flush */
}

static intptr_t count(intptr_t entries)
{
    intptr_t found = 0;

    for (; entries != 0; entries >>= 4)
        found++;
    return found;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t result = state[0] & 15;

    switch (operation->Name) {
    case 0:
        state[0] = state[0] << 4 | operation->Argument;
        break;
    case 1:
        state[0] >>= 4;
        break;
    case 2:
        result = state[0];
        state[0] = 0;
        break;
    default:
        result = count(state[0]);
        break;
    }
    return !operation->Returned || operation->Result == result;
}

const LAB_MODEL LabModelList = {"interlocked list", initialize, apply, operations};
