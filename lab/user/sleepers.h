/*
 * sleepers.h: threads that really sleep. A thread that waits for a user-mode lock yields a few times before it sleeps.
 * To the explorer that is a spin: the thread runs again when the word it reads has changed, and so it never sleeps
 * while any other thread can run. After sleep_soon a thread that yields just continues.
 */
#ifndef LAB_SLEEPERS_H
#define LAB_SLEEPERS_H

#include <interlock/lab.h>

#include "hal/hal.h"

#define SLEEPERS_THREADS 17

/* A write of its own: a thread that writes does not just spin. Always the same value: not another state. */
static void sleepers_go_on(void)
{
    static unsigned went_on[SLEEPERS_THREADS];
    went_on[LabCurrentThread()] = 0;
    __asm__ volatile("" : : "r"(went_on) : "memory");
}

static void sleep_soon(void)
{
    HalDispatch.Yield = sleepers_go_on;
}

#endif
