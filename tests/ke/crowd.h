/* crowd.h: as if dozens of threads to a processor had contended for locks (hal/fairshare.c). */
#ifndef INTERLOCK_TESTS_CROWD_H
#define INTERLOCK_TESTS_CROWD_H

#include "ke/fairness.h"

#define CROWD_PERIOD 640000ULL /* 64 ms, as in hal/fairshare.c */
#define CROWD_THREADS(processors) (16 * (processors) + 1)
#define CROWD_ACQUIRES 8 /* between two looks at the clock */

static ULONGLONG crowd_time;

static ULONGLONG query_crowd_time(VOID)
{
    return crowd_time;
}

static void contend_once(void)
{
    HAL_TURN turn = {.Acquires = CROWD_ACQUIRES - 1};

    HalCountContention(&turn);
}

/* Until the next time that a thread that contends reads the clock. The own threads of the library do not contend. */
static void make_crowd(void)
{
    ULONGLONG (*query)(VOID) = HalDispatch.QueryInterruptTime;

    crowd_time = (query() / CROWD_PERIOD + 1) * CROWD_PERIOD;
    HalDispatch.QueryInterruptTime = query_crowd_time;
    for (ULONG i = 0; i < CROWD_THREADS(HalProcessorCount()); i++) {
        contend_once();
    }
    crowd_time += CROWD_PERIOD;
    contend_once();
    HalDispatch.QueryInterruptTime = query;
}

#endif
