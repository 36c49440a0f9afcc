/* freedmemory.c: resources and work items in memory that is freed (ke/freedmemory.h). */
#include "exp.h"

#include "../ke/freedmemory.h"

#define EXP_FREED_RESOURCE 0xD2
#define EXP_FREED_ITEM 0

static VOID ExpVerifyFreed(PVOID Base, PVOID End)
{
    PWORK_QUEUE_ITEM Item = ExpFindQueuedItem(Base, End);
    if (Item != NULL) {
        KeBugCheckEx(WORKER_INVALID, EXP_FREED_ITEM, (ULONG_PTR)Item, (ULONG_PTR)Base, (ULONG_PTR)End);
    }
    PERESOURCE Resource = ExpFindResource(Base, End);
    if (Resource != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, EXP_FREED_RESOURCE, (ULONG_PTR)Resource, (ULONG_PTR)Base,
                     (ULONG_PTR)End - (ULONG_PTR)Base);
    }
}

static VOID ExpInitializeFreedHook(VOID)
{
    KiVerifyFreedHook = ExpVerifyFreed;
}
KI_INITIALIZER(KiInitializeKernel, ExpInitializeFreedHook);
