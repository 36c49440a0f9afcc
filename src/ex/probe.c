/* probe.c: checking addresses that a user passes. */
#include "exp.h"

#include "../hal/virtual.h"

/* Raises unless the buffer is aligned and below the addresses of the kernel. */
static VOID ExpProbe(ULONG_PTR Address, SIZE_T Length, ULONG Alignment)
{
    if (Address & (Alignment - 1)) {
        ExRaiseDatatypeMisalignment();
    }
    if (Address + Length < Address || Address + Length > MM_USER_PROBE_ADDRESS) {
        ExRaiseAccessViolation();
    }
}

VOID ProbeForRead(const volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
    if (Length != 0) {
        ExpProbe((ULONG_PTR)Address, Length, Alignment);
    }
}

BOOLEAN MmIsAddressValid(PVOID VirtualAddress)
{
    HAL_MAPPING Mapping;
    return NT_SUCCESS(HalQueryMapping((ULONG_PTR)VirtualAddress, &Mapping)) && Mapping.Mapped &&
           (Mapping.Access & HAL_ACCESS_READ) != 0;
}

VOID ProbeForWrite(volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
    ULONG_PTR At = (ULONG_PTR)Address;
    HAL_MAPPING Mapping;
    if (Length == 0) {
        return;
    }
    ExpProbe(At, Length, Alignment);
    while (At < (ULONG_PTR)Address + Length && NT_SUCCESS(HalQueryMapping(At, &Mapping))) {
        if (!Mapping.Mapped || (Mapping.Access & HAL_ACCESS_WRITE) == 0) {
            ExRaiseAccessViolation();
        }
        At = Mapping.End;
    }
}
