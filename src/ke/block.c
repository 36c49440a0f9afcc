/* block.c: the waiting threads whose stacks may go, by the processor that they last ran on. */
#include "prcb.h"
#include "wait.h"

VOID KiListWaitingThread(PKTHREAD Thread)
{
    Thread->WaitProcessor = KiHostProcessor(KeNumberProcessors);
    PKPRCB Prcb = KiProcessorBlock[Thread->WaitProcessor];
    KiAcquireLock(&Prcb->WaitListLock);
    InsertTailList(&Prcb->WaitListHead, &Thread->WaitListEntry);
    KiReleaseLock(&Prcb->WaitListLock);
    Thread->WaitListed = TRUE;
}

VOID KiUnlistWaitingThread(PKTHREAD Thread)
{
    PKPRCB Prcb = KiProcessorBlock[Thread->WaitProcessor];
    KiAcquireLock(&Prcb->WaitListLock);
    RemoveEntryList(&Thread->WaitListEntry);
    KiReleaseLock(&Prcb->WaitListLock);
    Thread->WaitListed = FALSE;
}
