/* routine.c: routines of the kernel by name. */
#include "exp.h"

#include "../hal/machine.h"

#define EXP_LONGEST_ROUTINE 128

/* Those that the kernel and the HAL export; the other exports of this library are user mode's. */
static const PCSTR ExpRoutinePrefixes[] = {"Dbg", "Ex", "Hal", "Io", "Kd", "Ke", "Mm", "Nt", "Ob",
                                           "Probe", "Ps", "Rtl", "vDbg", "Zw"};

static BOOLEAN ExpIsKernelName(PCSTR Name)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(ExpRoutinePrefixes); Index++) {
        SIZE_T Length = strlen(ExpRoutinePrefixes[Index]);
        if (strncmp(Name, ExpRoutinePrefixes[Index], Length) == 0) {
            return TRUE;
        }
    }
    return FALSE;
}

PVOID MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName)
{
    CHAR Name[EXP_LONGEST_ROUTINE];
    ULONG Length = SystemRoutineName->Length / (ULONG)sizeof(WCHAR);
    if (Length == 0 || Length >= sizeof(Name)) {
        return NULL;
    }
    for (ULONG Index = 0; Index < Length; Index++) {
        WCHAR Character = SystemRoutineName->Buffer[Index];
        if (Character == 0 || Character > 0x7F) {
            return NULL;
        }
        Name[Index] = (CHAR)Character;
    }
    Name[Length] = '\0';
    return ExpIsKernelName(Name) ? HalFindExport(HalLibrary, Name) : NULL;
}
