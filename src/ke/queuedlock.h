/* queuedlock.h: the numbered queued spinlocks at the start, in a forked child, and after a bugcheck that a test expected. */
#ifndef INTERLOCK_QUEUEDLOCK_H
#define INTERLOCK_QUEUEDLOCK_H

#include "prcb.h"

VOID KiInitializeLockQueues(PKPRCB Prcb);
VOID KiResetLockQueues(PKTHREAD Survivor);
VOID KiReleaseNumberedLocks(PKTHREAD Thread); /* those that its processor owns; at DISPATCH_LEVEL */

#endif
