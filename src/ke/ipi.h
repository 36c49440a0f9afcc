/* ipi.h: interprocessor interrupts. */
#ifndef INTERLOCK_IPI_H
#define INTERLOCK_IPI_H

#include "irql.h"

/* On the owner of Prcb: runs the packet that waits there. TRUE: the thread's level does not let it through. */
BOOLEAN KiServiceIpi(PKTHREAD Thread, PKPRCB Prcb);

/*
 * Whoever owns Prcb looks for interrupts, now or when its level allows it. FALSE: nobody does, because there is no owner
 * and no idle thread, or because the caller owns Prcb beside its own processor.
 */
BOOLEAN KiRequestInterrupt(PKTHREAD Thread, PKPRCB Prcb);

VOID KiResetIpi(VOID);

#endif
