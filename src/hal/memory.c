/* memory.c: memory from the C library's heap, and pages from the host. */
#include "halp.h"

#include <stdlib.h>
#include <sys/mman.h>

static PVOID HalpAllocateZeroed(SIZE_T Size, SIZE_T Alignment)
{
    PVOID Memory;

    if (Alignment <= MEMORY_ALLOCATION_ALIGNMENT) {
        C_ASSERT(_Alignof(max_align_t) >= MEMORY_ALLOCATION_ALIGNMENT);
        return calloc(1, Size);
    }
    if (posix_memalign(&Memory, Alignment, Size) != 0) {
        return NULL;
    }
    return memset(Memory, 0, Size);
}

/* The heap is no cancellation point but may change errno, also where it succeeds. */
PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment)
{
    int Error = errno;
    PVOID Memory = HalpAllocateZeroed(Size != 0 ? Size : 1, Alignment);

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
