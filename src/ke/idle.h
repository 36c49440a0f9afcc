/* idle.h: the threads that belong to a processor. */
#ifndef INTERLOCK_IDLE_H
#define INTERLOCK_IDLE_H

#include "irql.h"

/* Called after work was left on a processor that nobody owned: makes sure that somebody becomes its owner. */
VOID KiProvideOwner(PKTHREAD Thread, PKPRCB Prcb);

/* FALSE: there is no idle thread, and none can be made now. */
BOOLEAN KiWakeIdleThread(PKPRCB Prcb);
BOOLEAN KiStartDpcThread(PKPRCB Prcb);
VOID KiWakeDpcThread(PKPRCB Prcb);

VOID KiStartIdleThreads(PKTHREAD Thread);  /* all of them, as far as the host has room */

/*
 * At or above DISPATCH_LEVEL: takes a processor that nobody owns and that has no idle thread beside the thread's own,
 * until the thread comes below DISPATCH_LEVEL. TRUE: the thread owns it, from now on or already. FALSE: somebody else
 * does.
 */
BOOLEAN KiTakeBesideOwn(PKTHREAD Thread, PKPRCB Prcb);
VOID KiAttendProcessors(PKTHREAD Thread);  /* at APC_LEVEL, by a thread that has just given its processor back */
VOID KiResetIdleThreads(PKPRCB Prcb);

#endif
