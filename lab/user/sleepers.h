/*
 * sleepers.h: threads that do sleep. Whoever waits for a lock of user mode gives way some times before it sleeps. To
 * the explorer that is a spin: the thread runs again when what it looks at has changed, and so it never gets as far as
 * to sleep while anybody else can run. After sleep_soon a thread that gives way just goes on.
 */
#ifndef LAB_SLEEPERS_H
#define LAB_SLEEPERS_H

#include <interlock/lab.h>

#include "hal/hal.h"

#define SLEEPERS_THREADS 17

/* A write of its own: a thread that writes does not just spin. */
static void sleepers_go_on(void)
{
    static unsigned turns[SLEEPERS_THREADS];
    turns[LabCurrentThread()] += 1;
}

static void sleep_soon(void)
{
    HalDispatch.Yield = sleepers_go_on;
}

#endif
