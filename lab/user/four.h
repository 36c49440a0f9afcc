/*
 * four.h: four threads with several operations each. Two threads with one operation each find most bugs; a value that
 * recurs, a wake for the wrong one of several sleepers or a queue that empties twice needs this many.
 */
#ifndef LAB_FOUR_H
#define LAB_FOUR_H

#include <interlock/lab.h>

/* The routine of a scenario's thread: Operation, Times times. */
#define FOUR_REPEAT(Name, Times, Operation)                                                                            \
    static void Name(void)                                                                                             \
    {                                                                                                                  \
        for (int turn = 0; turn < (Times); turn++)                                                                     \
            Operation;                                                                                                 \
    }

/* Too many schedules for an exhaustive search. */
#define FOUR_SCENARIO(Name, First, Second, Third, Fourth, ...)                                                         \
    LAB_SCENARIO(Name, .Threads = {First, Second, Third, Fourth}, .Flags = LAB_LARGE, __VA_ARGS__)

#endif
