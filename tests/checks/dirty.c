/* Objects in memory that was never written: their initializers leave bytes of it as they were, and memcheck has to accept that. */
#include <interlock/ke.h>
#include <stdlib.h>

typedef struct objects {
    KEVENT event;
    KSEMAPHORE semaphore;
    KMUTANT mutant;
    KTIMER timer;
    KQUEUE queue;
    KGATE gate;
} objects;

int main(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    objects *o = malloc(sizeof(*o));
    LIST_ENTRY entry;
    int failed;

    KeInitializeEvent(&o->event, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&o->semaphore, 0, 2);
    KeInitializeMutant(&o->mutant, FALSE);
    KeInitializeTimerEx(&o->timer, SynchronizationTimer);
    KeInitializeQueue(&o->queue, 1);
    KeInitializeGate(&o->gate);
    failed = KeSetEvent(&o->event, 0, FALSE) != 0;
    failed |= KeReleaseSemaphore(&o->semaphore, 0, 1, FALSE) != 0;
    failed |= KeInsertQueue(&o->queue, &entry) != 0;
    KeSignalGateBoostPriority(&o->gate);
    KeWaitForGate(&o->gate, Executive, KernelMode);
    failed |= KeWaitForSingleObject(&o->event, Executive, KernelMode, FALSE, &now) != STATUS_SUCCESS;
    failed |= KeWaitForSingleObject(&o->semaphore, Executive, KernelMode, FALSE, &now) != STATUS_SUCCESS;
    failed |= KeWaitForSingleObject(&o->mutant, Executive, KernelMode, FALSE, &now) != STATUS_SUCCESS;
    failed |= KeReleaseMutant(&o->mutant, 0, FALSE, FALSE) != 0;
    failed |= KeReadStateTimer(&o->timer) || KeCancelTimer(&o->timer);
    failed |= KeRemoveQueue(&o->queue, KernelMode, &now) != &entry;
    KeRundownQueue(&o->queue);
    free(o);
    return failed;
}
