/* dpc.h: deferred procedure calls. */
#ifndef INTERLOCK_DPC_H
#define INTERLOCK_DPC_H

#include "irql.h"

/* Above every processor number: KDPC.Number of a DPC that was given a target is the target plus this. */
#define KI_DPC_TARGETED INTERLOCK_MAXIMUM_PROCESSORS

VOID KiInitializeDpcData(PKPRCB Prcb);
VOID KiResetDpcData(PKPRCB Prcb, BOOLEAN Owned); /* in a forked child */

/*
 * KeInsertQueueDpc for somebody who holds what the DPC's routine may free: Release lets go of it when the DPC is queued,
 * before it can run, also if the DPC was queued already.
 */
typedef VOID KI_DPC_RELEASE(PVOID Context);
VOID KiInsertQueueDpcAndRelease(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2, KI_DPC_RELEASE *Release,
                                PVOID Context);

/* At DISPATCH_LEVEL on the owner of Prcb: runs everything in its queue. */
VOID KiRetireDpcList(PKTHREAD Thread, PKPRCB Prcb);

/* On the DPC thread of Prcb. FALSE: there was none. */
BOOLEAN KiRunThreadedDpc(PKTHREAD Thread, PKPRCB Prcb);

/* calldpc.c */
VOID KiInitializeCallDpc(VOID); /* also in a forked child */

#endif
