/*
 * history.c: a register whose readers look at a copy that no writer updates. Each execution has an order that the model of a register
 * allows, except those in which the write has returned before the read begins. No step of the two operations conflicts with another:
 * only their begin and return do, so a search that takes these for independent never sees the failing order.
 */
#include <interlock/lab.h>

enum { READ, WRITE };

static int written, shown;

static void initialize(intptr_t state[LAB_MODEL_STATE])
{
    state[0] = 0;
}

static int apply(intptr_t state[LAB_MODEL_STATE], const LAB_OPERATION *operation)
{
    if (operation->Name == WRITE) {
        state[0] = operation->Argument;
        return 1;
    }
    return !operation->Returned || state[0] == operation->Result;
}

static const char *const operations[] = {"read", "write"};
static const LAB_MODEL model = {"register", initialize, apply, operations};

static void read_copy(void)
{
    unsigned operation = LabBegin(READ, 0);
    LabEnd(operation, __atomic_load_n(&shown, __ATOMIC_ACQUIRE));
}

static void read_register(void)
{
    unsigned operation = LabBegin(READ, 0);
    LabEnd(operation, __atomic_load_n(&written, __ATOMIC_ACQUIRE));
}

static void write_register(void)
{
    unsigned operation = LabBegin(WRITE, 1);
    __atomic_store_n(&written, 1, __ATOMIC_RELEASE);
    LabEnd(operation, 0);
}

static void check(void)
{
    LabCheckLinearizable(&model);
}

LAB_SCENARIO(history_of_copy, .Threads = {read_copy, write_register}, .Finish = check, .Model = "sc",
             .Expect = "not linearizable");
LAB_SCENARIO(history_of_register, .Threads = {read_register, write_register}, .Finish = check, .Model = "sc");
