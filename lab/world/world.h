/* world.h: a world in the explorer's memory, and one view of it per process. */
#ifndef LAB_WORLD_H
#define LAB_WORLD_H

#include <interlock/lab.h>

#include "wo/wop.h"

#define WORLD_SIZE (sizeof(WO_WORLD) + 65536)
#define PROCESSES 4 /* 1 to 3 are killed */

static UCHAR memory[WORLD_SIZE] __attribute__((aligned(4096)));
static WO_VIEW view[PROCESSES];

static inline void make_views(void)
{
    for (ULONG process = 0; process < PROCESSES; process++)
        view[process] = (WO_VIEW){.World = (PWO_WORLD)memory, .Mapped = WORLD_SIZE, .Key = HalQueryProcessKey(process)};
    WopInitializeWorld(view[0].World, WORLD_SIZE);
}

/* The calling thread is that process from now on, and may be killed. */
static inline PWO_VIEW become(ULONG process)
{
    LabEnterProcess(process, memory, sizeof(memory));
    return &view[process];
}

#endif
