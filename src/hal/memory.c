/* memory.c: memory from the C library. */
#include "halp.h"

#include <stdlib.h>

PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment)
{
    HALP_HOST_CALLS;
    PVOID Memory;

    if (Size == 0) {
        Size = 1;
    }
    if (Alignment <= MEMORY_ALLOCATION_ALIGNMENT) {
        C_ASSERT(_Alignof(max_align_t) >= MEMORY_ALLOCATION_ALIGNMENT);
        return calloc(1, Size);
    }
    if (posix_memalign(&Memory, Alignment, Size) != 0) {
        return NULL;
    }
    return memset(Memory, 0, Size);
}

VOID HalFree(PVOID Memory)
{
    HALP_HOST_CALLS;

    free(Memory);
}

ULONG HalQueryPageSize(VOID)
{
    return (ULONG)sysconf(_SC_PAGESIZE);
}
