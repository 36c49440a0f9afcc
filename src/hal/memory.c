/* memory.c: memory from the C library's heap, and pages from the host. */
#include "halp.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Zeroed. The heap is no cancellation point, but may change errno even if it succeeds. */
PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment)
{
    int Error = errno;
    PVOID Memory = NULL;

    Size = Size != 0 ? Size : 1;
    if (Alignment <= MEMORY_ALLOCATION_ALIGNMENT) {
        C_ASSERT(_Alignof(max_align_t) >= MEMORY_ALLOCATION_ALIGNMENT);
        Memory = calloc(1, Size);
    } else if (posix_memalign(&Memory, Alignment, Size) == 0) {
        memset(Memory, 0, Size);
    } else {
        Memory = NULL;
    }
    errno = Error;
    return Memory;
}

VOID HalFree(PVOID Memory)
{
    int Error = errno;

    free(Memory);
    errno = Error;
}

ULONG HalQueryPageSize(VOID)
{
    return (ULONG)sysconf(_SC_PAGESIZE);
}

PVOID HalAllocatePages(SIZE_T Size)
{
    HALP_HOST_CALLS;
    PVOID Memory = mmap(NULL, Size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return Memory != MAP_FAILED ? Memory : NULL;
}

VOID HalFreePages(PVOID Memory, SIZE_T Size)
{
    HALP_HOST_CALLS;
    munmap(Memory, Size);
}
