/* memory.c: memory from the C library's heap, and pages from the host. */
#include "halp.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

static PVOID HalpAllocate(SIZE_T Size, SIZE_T Alignment, BOOLEAN Zero)
{
    PVOID Memory;

    if (Alignment <= MEMORY_ALLOCATION_ALIGNMENT) {
        C_ASSERT(_Alignof(max_align_t) >= MEMORY_ALLOCATION_ALIGNMENT);
        return Zero ? calloc(1, Size) : malloc(Size);
    }
    if (posix_memalign(&Memory, Alignment, Size) != 0) {
        return NULL;
    }
    return Zero ? memset(Memory, 0, Size) : Memory;
}

HAL_FAULT_ROUTINE *volatile HalFaultRoutine;

static VOID HalpNoteHeapUse(VOID)
{
#ifdef INTERLOCK_DEBUG
    if (HalpCallbacks.HeapUse != NULL) {
        HalpCallbacks.HeapUse();
    }
#endif
}

/* The heap is not a cancellation point but may change errno, even when it succeeds. A block has room for
   HalpDeferred. */
static PVOID HalpAllocateFromHeap(SIZE_T Size, SIZE_T Alignment, BOOLEAN Zero)
{
    int Error = errno;
    HalpNoteHeapUse();
    PVOID Memory = HalpAllocate(Size > sizeof(PVOID) ? Size : sizeof(PVOID), Alignment, Zero);

    errno = Error;
    return Memory;
}

PVOID HalAllocateWithoutFault(SIZE_T Size, SIZE_T Alignment)
{
    return HalpAllocateFromHeap(Size, Alignment, TRUE);
}

PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment)
{
    return HalIsFaultInjected() ? NULL : HalpAllocateFromHeap(Size, Alignment, TRUE);
}

PVOID HalAllocateUninitialized(SIZE_T Size, SIZE_T Alignment)
{
    return HalIsFaultInjected() ? NULL : HalpAllocateFromHeap(Size, Alignment, FALSE);
}

/*
 * The fork handler of a child cannot use the heap: an allocator may have locked it, and unlocks it in a handler that runs
 * later. So blocks that are freed there are linked by their first words, and the next call frees them.
 */
static PVOID HalpDeferred;
static BOOLEAN HalpFreesDeferred; /* the child has one thread */

VOID HalpDeferFrees(BOOLEAN Defer)
{
    HalpFreesDeferred = Defer;
}

VOID HalFree(PVOID Memory)
{
    int Error = errno;

    if (Memory == NULL) {
        return;
    }
    if (HalpFreesDeferred) {
        *(PVOID *)Memory = HalpDeferred;
        HalpDeferred = Memory;
        return;
    }
    HalpNoteHeapUse();
    free(Memory);
    /* relaxed, both: the list was filled before the child had a second thread */
    if (__atomic_load_n(&HalpDeferred, __ATOMIC_RELAXED) != NULL) {
        PVOID Block = __atomic_exchange_n(&HalpDeferred, NULL, __ATOMIC_RELAXED);

        while (Block != NULL) {
            PVOID Next = *(PVOID *)Block;

            free(Block);
            Block = Next;
        }
    }
    errno = Error;
}

/* A program may replace malloc but not malloc_usable_size, which then does not know its blocks. */
static BOOLEAN HalpKnowsSizes;

VOID HalpInitializeSizes(VOID)
{
    Dl_info Allocator, Size;

    HalpKnowsSizes = dladdr((PVOID)(ULONG_PTR)malloc, &Allocator) != 0 &&
                     dladdr((PVOID)(ULONG_PTR)malloc_usable_size, &Size) != 0 && Allocator.dli_fbase == Size.dli_fbase;
}

SIZE_T HalQueryAllocationSize(PVOID Memory)
{
    return HalpKnowsSizes ? malloc_usable_size(Memory) : 0;
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
