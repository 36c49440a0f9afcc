/* dpc.h: what runs on a processor besides its owner's own code: DPCs, interprocessor interrupts, the processor's threads. */
#ifndef INTERLOCK_DPC_H
#define INTERLOCK_DPC_H

#include "irql.h"

/* Above every processor number: KDPC.Number of a DPC with a target is the target plus this. */
#define KI_DPC_TARGETED INTERLOCK_MAXIMUM_PROCESSORS

VOID KiInitializeDpcs(PKPRCB Prcb);
VOID KiInitializeCallDpc(VOID);                  /* also in a forked child */
VOID KiResetDpcs(PKPRCB Prcb, PKTHREAD Survivor); /* in a forked child, after the owner is known */

/*
 * KeInsertQueueDpc for a caller that holds something that the DPC's routine may free. Release drops it when the DPC is
 * queued, before the DPC can run; also if the DPC was already queued.
 */
typedef VOID KI_DPC_RELEASE(PVOID Context);
VOID KiInsertQueueDpcAndRelease(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2, KI_DPC_RELEASE *Release,
                                PVOID Context);

/* At DISPATCH_LEVEL on the owner of Prcb: runs everything in its queue. */
VOID KiRetireDpcList(PKTHREAD Thread, PKPRCB Prcb);

/* The processor's threads. */

/* After work was left on a processor without an owner: its idle thread becomes the owner, or the caller does. */
VOID KiProvideOwner(PKTHREAD Thread, PKPRCB Prcb);
BOOLEAN KiWakeIdleThread(PKPRCB Prcb);     /* FALSE: there is none, and none can be created now */
VOID KiStartIdleThreads(PKTHREAD Thread);  /* all of them, unless the host refuses */

/*
 * At or above DISPATCH_LEVEL: takes a processor without an owner and without an idle thread, in addition to the
 * thread's own, until the thread lowers its level below DISPATCH_LEVEL. TRUE: the thread owns it now. FALSE: another
 * thread does.
 */
BOOLEAN KiTakeBesideOwn(PKTHREAD Thread, PKPRCB Prcb);
VOID KiReturnTakenProcessors(PKTHREAD Thread); /* at APC_LEVEL, after the thread has released its own */

/* Interprocessor interrupts (ipi.c). */

VOID KiServiceIpi(PKTHREAD Thread, PKPRCB Prcb); /* on the owner of Prcb, below IPI_LEVEL: runs the pending packet */
VOID KiResetIpi(VOID);                           /* in a forked child */

/*
 * The owner of Prcb checks for interrupts, now or when its level permits. FALSE: no thread does, because there is no
 * owner and no idle thread, or because the caller owns Prcb in addition to its own processor.
 */
BOOLEAN KiRequestInterrupt(PKTHREAD Thread, PKPRCB Prcb);

/*
 * A thread that waits for a request to be served repeats it now and then: the host loses an interrupt if its queue of
 * signals is full, or in a thread that a sanitizer is setting up.
 */
#define KI_LOOKS_BEFORE_REPEAT 512 /* by KiParkForSpinLock: about 100 ms */
#define KI_TIME_BEFORE_REPEAT 1000000 /* 100 ms */

#endif
