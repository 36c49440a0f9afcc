/* queuedlock.h: the start of the numbered queued spinlocks, and their state in a forked child. */
#ifndef INTERLOCK_QUEUEDLOCK_H
#define INTERLOCK_QUEUEDLOCK_H

#include "prcb.h"

VOID KiInitializeLockQueues(PKPRCB Prcb);
VOID KiResetLockQueues(PKTHREAD Survivor);

#endif
