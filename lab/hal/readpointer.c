/*
 * readpointer.c: a read of memory that another thread may free. Freed memory is unreadable; a stack is readable, even below
 * its frames. Other threads may run before the read, so the memory is checked after it.
 */
#include "labhal.h"

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
