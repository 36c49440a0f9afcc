/*
 * Three philosophers with kernel mutexes. Each takes the left fork first: a deadlock, and the lab shows which thread
 * waits for what. In the second scenario one of them is left-handed, and no schedule deadlocks.
 *
 *     interlock lab examples/lab/philosophers.c
 */
#include <interlock/lab.h>

#include <ntddk.h>

static KMUTEX forks[3];

static void lay_the_table(void)
{
    for (int i = 0; i < 3; i++)
        KeInitializeMutex(&forks[i], 0);
}

static void eat(int first, int second)
{
    KeWaitForSingleObject(&forks[first], Executive, KernelMode, FALSE, NULL);
    KeWaitForSingleObject(&forks[second], Executive, KernelMode, FALSE, NULL);
    KeReleaseMutex(&forks[second], FALSE);
    KeReleaseMutex(&forks[first], FALSE);
}

static void plato(void)
{
    eat(0, 1);
}

static void kant(void)
{
    eat(1, 2);
}

static void hume(void)
{
    eat(2, 0);
}

static void left_handed_hume(void)
{
    eat(0, 2);
}

LAB_SCENARIO(philosophers, .Setup = lay_the_table, .Threads = {plato, kant, hume});
LAB_SCENARIO(left_handed, .Setup = lay_the_table, .Threads = {plato, kant, left_handed_hume});
