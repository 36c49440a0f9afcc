/* ipi.h: interprocessor interrupts. */
#ifndef INTERLOCK_IPI_H
#define INTERLOCK_IPI_H

#include "irql.h"

/* On the owner of Prcb, below IPI_LEVEL: runs the packet that waits there. */
VOID KiServiceIpi(PKTHREAD Thread, PKPRCB Prcb);

/*
 * Whoever owns Prcb looks for interrupts, now or when its level allows it. FALSE: nobody does, because there is no
 * owner and no idle thread, or because the caller owns Prcb beside its own processor.
 */
BOOLEAN KiRequestInterrupt(PKTHREAD Thread, PKPRCB Prcb);

/*
 * Who waits for a request to be served repeats it now and then: the host may lose an interrupt, when its queue of
 * signals is full or in a thread that a sanitizer is just setting up.
 */
#define KI_SPINS_BEFORE_REPEAT (KI_SPINS_BEFORE_LONG_SPIN * 256)
#define KI_TIME_BEFORE_REPEAT 1000000 /* 100 ms */

VOID KiResetIpi(VOID);

#endif
