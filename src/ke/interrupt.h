/*
 * interrupt.h: simulated device interrupts.
 *
 * Each vector has a chain of interrupt objects. Firing one leaves a request on a processor; the processor's owner runs
 * the chain as soon as its level is below the vector's. There are two kinds of requests:
 *
 * 1. A thread that fires from below the vector's level waits until the chain has run. The request is on its stack, in
 *    the processor's InterruptQueue; each request runs the chain once.
 * 2. At the vector's level or above a thread cannot wait. The request is a bit in the processor's InterruptRequest,
 *    and, as in a real interrupt controller, an interrupt is pending at most once.
 */
#ifndef INTERLOCK_INTERRUPT_H
#define INTERLOCK_INTERRUPT_H

#include "irql.h"

typedef struct _KINTERRUPT {
    UCHAR Type;
    KIRQL Irql;
    KIRQL SynchronizeIrql;
    BOOLEAN ShareVector;
    KINTERRUPT_MODE Mode;
    ULONG Vector;
    volatile ULONG ServiceCount;
    LIST_ENTRY InterruptListEntry;
    PKSERVICE_ROUTINE ServiceRoutine;
    PVOID ServiceContext;
    PKSPIN_LOCK ActualLock;       /* the caller's, or the one below */
    KSPIN_LOCK SpinLock;
    KAFFINITY ProcessorEnableMask; /* in group 0 */
} KINTERRUPT;

/* The interrupt is filled in. STATUS_INVALID_PARAMETER: the vector is not shared with it. */
NTSTATUS KiConnectInterrupt(PKINTERRUPT Interrupt);
VOID KiDisconnectInterrupt(PKINTERRUPT Interrupt); /* afterwards its service routine does not run */

/* On the owner of Prcb: runs what is above the thread's level. TRUE: lower requests remain. */
BOOLEAN KiServiceDevices(PKTHREAD Thread, PKPRCB Prcb);

VOID KiInitializeInterrupts(VOID);
VOID KiResetInterrupts(PKTHREAD Survivor);

#endif
