/* queuedlock.h: the numbered queued spinlocks at the start and in a forked child. */
#ifndef INTERLOCK_QUEUEDLOCK_H
#define INTERLOCK_QUEUEDLOCK_H

#include "prcb.h"

VOID KiInitializeLockQueues(PKPRCB Prcb);
VOID KiResetLockQueues(PKTHREAD Survivor);

#endif
