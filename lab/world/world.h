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

static WO_INDEX waiter[PROCESSES];

/* Process 0 has two threads: the waiters 0 and 3. */
static inline void make_waiters(void)
{
    make_views();
    for (ULONG process = 0; process < PROCESSES; process++) {
        PWO_VIEW own = &view[process];
        LabAssert(WopLock(own));
        LabAssert(WopEnterRing(own) == STATUS_SUCCESS);
        WopUnlock(own);
        LabAssert(WoCreateWaiter(own, process + 1, &waiter[process]) == STATUS_SUCCESS);
    }
}

static inline WO_INDEX make_object(WO_TYPE type, LONG state, LONG limit)
{
    WO_NEW new = {.Type = type, .State = state, .Limit = limit};
    WO_INDEX index;
    LabAssert(WoCreateObject(&view[0], &new, &index) == STATUS_SUCCESS);
    return index;
}

static inline LONG state_of(WO_INDEX index)
{
    WO_STATE state;
    LabAssert(WoQueryState(&view[0], index, &state) == STATUS_SUCCESS);
    return state.State;
}

/* The calling thread is that process from now on, and may be killed. */
static inline PWO_VIEW become(ULONG process)
{
    LabEnterProcess(process, memory, sizeof(memory));
    return &view[process];
}

#endif
