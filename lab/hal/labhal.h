/* labhal.h: what the files of the simulated machine share. */
#ifndef LAB_HAL_H
#define LAB_HAL_H

#include "hal/hal.h"

#include "../engine/engine.h"

#define LABHAL_CALLER        ((uintptr_t)__builtin_return_address(0))
#define LABHAL_FIRST_THREAD  1000u /* the id of the first fiber; that of the explorer is one less */
#define LABHAL_PROCESS       4u
#define LABHAL_YIELD_STEPS   4u
#define LABHAL_SYSTEM_OFFSET 132539328000000000ull     /* the machine was started on 2021-01-01 */
#define LABHAL_LONGEST_WAIT  (10000000ull * 3600 * 24) /* a longer wait has no deadline */

extern HAL_CALLBACKS LabhalCallbacks;

struct _KTHREAD *LabhalThreadObject(const lab_thread *Thread); /* NULL: it has no KTHREAD yet */
void LabhalDescribeWord(const lab_thread *Thread, const char *What, char *Buffer, size_t Size); /* abstract.c: "waits for WHAT WORD" */
VOID LabhalCheckSleep(uintptr_t Pc);                            /* abstract.c: before the engine's own wait sleeps */
VOID LabhalSleepForReal(struct _KTHREAD *Thread, uintptr_t Pc); /* locks.c: a step */
uint64_t LabhalDeadline(HAL_CLOCK Clock, ULONGLONG Time);       /* interrupt time; 0: never */

static inline BOOLEAN LabhalIsOverLocks(VOID)
{
    return lab != NULL && lab->options.abstract_locks && lab_sched_active();
}

#endif
