/* virtual.h: address space of the process. Addresses and sizes are multiples of the page. */
#ifndef INTERLOCK_HAL_VIRTUAL_H
#define INTERLOCK_HAL_VIRTUAL_H

#include "hal.h"

#define HAL_ACCESS_READ 1u
#define HAL_ACCESS_WRITE 2u
#define HAL_ACCESS_EXECUTE 4u

/* What is at an address: a mapping, or the gap between two. */
typedef struct _HAL_MAPPING {
    ULONG_PTR Begin;
    ULONG_PTR End;
    ULONG_PTR FileBegin;             /* of the first mapping of the same file in a row; Begin: it is none */
    ULONG Access;                    /* HAL_ACCESS_* */
    BOOLEAN Mapped;                  /* FALSE: a gap */
    BOOLEAN File;
    BOOLEAN Shared;
} HAL_MAPPING, *PHAL_MAPPING;

/* Reserves address space that cannot be accessed, at Address or, if that is NULL, anywhere. STATUS_CONFLICTING_ADDRESSES:
   the range is in use, or the host refuses this address. */
NTSTATUS HalReserveMemory(PVOID Address, SIZE_T Size, SIZE_T Alignment, PVOID *Base);
VOID HalReleaseMemory(PVOID Base, SIZE_T Size);
NTSTATUS HalProtectMemory(PVOID Base, SIZE_T Size, ULONG Access);
NTSTATUS HalDecommitMemory(PVOID Base, SIZE_T Size); /* back to reserved, contents lost */
VOID HalResetMemory(PVOID Base, SIZE_T Size);        /* the host may drop the contents */
BOOLEAN HalLockMemory(PVOID Base, SIZE_T Size, BOOLEAN Lock);
NTSTATUS HalQueryMapping(ULONG_PTR Address, PHAL_MAPPING Mapping); /* STATUS_NOT_SUPPORTED: the host does not say */

#endif
