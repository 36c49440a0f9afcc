/* memory.c: memory that the explorer watches, and that may run out. */
#include "labhal.h"

PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment)
{
    if (lab_sched_active() && lab->run.failures != 0 && lab_sched_choose(2) == 1) {
        lab->run.failures--;
        return NULL;
    }
    return lab_memory_allocate(Size, Alignment);
}

VOID HalFree(PVOID Memory)
{
    if (!lab_memory_free(Memory, LABHAL_CALLER)) {
        lab_sched_fail(VERDICT_FREED_MEMORY, LABHAL_CALLER, "%p freed twice, or never allocated", Memory);
    }
}

ULONG HalQueryPageSize(VOID)
{
    return 4096;
}

/* Memory that is gone cannot be read; what a stack still holds can, whoever it belongs to. */
HAL_READ HalReadPointerOrFault(PVOID volatile *Address)
{
    lab_granule *Shadow = lab_memory_shadow((uintptr_t)Address);
    HAL_READ Read = {NULL, 0};

    if (Shadow == NULL || Shadow->poison != POISON_NONE) {
        return Read;
    }
    Read.Value = (PVOID)(uintptr_t)lab_atomic_peek((uintptr_t)Address, sizeof(PVOID), LABHAL_CALLER);
    Read.Readable = 1;
    return Read;
}
