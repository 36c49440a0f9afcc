/* live.h: programs that pause for the debugger. They need the library's internal headers. */
#ifndef INTERLOCK_TOUR_LIVE_H
#define INTERLOCK_TOUR_LIVE_H

#include "tour.h"

#include <sys/prctl.h>

#include "ke/ki.h"

/* Names the calling thread for the host and the debugger. */
static inline void call_me(const char *name)
{
    prctl(PR_SET_NAME, name);
}

/* Is the thread asleep in a wait for this reason, with nothing in transit? */
static inline BOOLEAN is_committed(PKTHREAD thread, KWAIT_REASON reason)
{
    ULONG state = __atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE);

    return (state & KI_WAIT_ACTIVE) && (state & KI_WAIT_STATE_MASK) == WaitCommitted &&
           __atomic_load_n(&thread->WaitReason, __ATOMIC_RELAXED) == reason;
}

static inline void await_committed(PKTHREAD thread, KWAIT_REASON reason)
{
    while (!is_committed(thread, reason))
        sleep_for(1);
}

/* Reports that everything is in place, and waits until standard input ends. */
static inline void stand_still(void)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where only parents may trace a process (Yama), allow any process */
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF)
        ;
}

#endif
