/*
 * meeting.c: operations that need each other at the same time: keyed events and barriers. Each call is two operations,
 * an arrival and a departure, both as long as the call. A thread departs only after the others have arrived.
 */
#include <interlock/lab.h>

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    for (int i = 0; i < LAB_MODEL_STATE; i++)
        state[i] = 0;
}

/* 0 a wait(key) arrives, 1 it leaves, 2 a release(key) arrives, 3 it leaves; keys 0 to 3. Result of all: 1 met, 0 timed
   out, and then it has no effect. */
static const char *const keyed_operations[] = {"wait arrives", "wait leaves", "release arrives", "release leaves"};

static int apply_keyed(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t *counts = &state[4 * operation->Argument];

    if (operation->Returned && operation->Result == 0)
        return 1;
    counts[operation->Name] += 1;
    return operation->Name % 2 == 0 || counts[operation->Name] <= counts[(operation->Name + 1) % 4];
}

const LAB_MODEL LabModelKeyedEvent = {"keyed event", initialize, apply_keyed, keyed_operations};

/* 0 arrives(round), 1 leaves(round) (result 1: it returned TRUE), for two threads. State: for each round which
   threads have arrived, and which returned TRUE. */
static const char *const barrier_operations[] = {"arrives", "leaves"};

static int apply_barrier(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    intptr_t *round = &state[2 * operation->Argument];

    if (operation->Name == 0) {
        round[0] += 1;
        return operation->Argument == 0 || round[-2] == 2;
    }
    if (operation->Returned && operation->Result)
        round[1] += 1;
    return round[0] == 2 && round[1] <= 1;
}

const LAB_MODEL LabModelBarrierOfTwo = {"barrier of two threads", initialize, apply_barrier, barrier_operations};
