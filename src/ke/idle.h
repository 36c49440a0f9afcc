/* idle.h: the threads that belong to a processor. */
#ifndef INTERLOCK_IDLE_H
#define INTERLOCK_IDLE_H

#include "irql.h"

/* Called after work was left on a processor that nobody owned: makes sure that somebody becomes its owner. */
VOID KiProvideOwner(PKTHREAD Thread, PKPRCB Prcb);

/* FALSE: there is no idle thread, and none can be made now. */
BOOLEAN KiWakeIdleThread(PKTHREAD Thread, PKPRCB Prcb);
BOOLEAN KiStartDpcThread(PKTHREAD Thread, PKPRCB Prcb);
VOID KiWakeDpcThread(PKPRCB Prcb);

VOID KiStartIdleThreads(PKTHREAD Thread);  /* all of them, as far as the host has room */
VOID KiAttendWhenLower(PKPRCB Own);        /* the owner of Own calls KiAttendProcessors on its way down */
VOID KiAttendProcessors(PKTHREAD Thread);  /* at APC_LEVEL, by a thread that has just given its processor back */
VOID KiResetIdleThreads(PKPRCB Prcb);

#endif
