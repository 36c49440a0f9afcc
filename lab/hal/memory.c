/* memory.c: memory that the explorer checks, and that may run out. */
#include "labhal.h"

/* The allocating thread writes the zeros: another thread that reads them without an acquire races. */
PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment)
{
    if (lab_explore_memory_runs_out()) {
        return NULL;
    }
    PVOID Memory = lab_memory_allocate(Size, Alignment, LABHAL_CALLER);
    if (Memory != NULL && lab_sched_active()) {
        lab_race_access((uintptr_t)Memory, Size, true, false, LABHAL_CALLER);
    }
    return Memory;
}

/* The same in every schedule: what a program reads from it must not depend on the past. */
PVOID HalAllocateUninitialized(SIZE_T Size, SIZE_T Alignment)
{
    return HalAllocate(Size, Alignment);
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

PVOID HalAllocatePages(SIZE_T Size)
{
    return HalAllocate(Size, HalQueryPageSize());
}

VOID HalFreePages(PVOID Memory, SIZE_T Size)
{
    (VOID)Size;
    HalFree(Memory);
}

/* Freed memory cannot be read; a stack can, whichever thread it belongs to. Other threads may run before the read, so
   the check comes afterwards. */
HAL_READ HalReadPointerOrFault(PVOID volatile *Address)
{
    lab_granule *Shadow = lab_memory_shadow((uintptr_t)Address);
    HAL_READ Read = {NULL, 0};

    if (Shadow == NULL) {
        return Read;
    }
    PVOID Value = (PVOID)(uintptr_t)lab_atomic_peek((uintptr_t)Address, sizeof(PVOID), LABHAL_CALLER);
    if (Shadow->poison == POISON_NONE) {
        Read.Value = Value;
        Read.Readable = 1;
    }
    return Read;
}

/* Unknown: the verifier checks nothing. */
SIZE_T HalQueryAllocationSize(PVOID Memory)
{
    (VOID)Memory;
    return 0;
}
