/* process.c: processes of the simulated machine: those of LabEnterProcess. The key is the number and one bit. */
#include "labhal.h"

ULONG64 HalQueryProcessKey(ULONG ProcessId)
{
    return 1ull << HAL_PROCESS_ID_BITS | ProcessId;
}

BOOLEAN HalIsProcessAlive(ULONG64 Key)
{
    ULONG ProcessId = (ULONG)(Key & ((1ull << HAL_PROCESS_ID_BITS) - 1));
    return Key == HalQueryProcessKey(ProcessId) && ProcessId < LAB_MAXIMUM_THREADS && !LabIsProcessKilled(ProcessId);
}

ULONG64 HalKeyOfAnyProgram(ULONG64 Key)
{
    return Key;
}

BOOLEAN HalIsProcessGone(ULONG64 Key)
{
    return !HalIsProcessAlive(Key);
}

/* Worlds are plain memory here, provided by the scenario: there are no files. */

VOID HalQuerySharedPlace(PHAL_SHARED_PLACE Place)
{
    Place->Directory[0] = '\0';
}

NTSTATUS HalMapSharedFile(const HAL_SHARED_FILE *Wanted, PHAL_SHARED_MAPPING Mapping)
{
    UNREFERENCED_PARAMETER(Wanted);
    UNREFERENCED_PARAMETER(Mapping);
    return STATUS_NOT_SUPPORTED;
}

BOOLEAN HalIsSharedFile(PCSTR Path, BOOLEAN Machine)
{
    UNREFERENCED_PARAMETER(Path);
    UNREFERENCED_PARAMETER(Machine);
    return FALSE;
}

VOID HalUnmapSharedFile(PVOID Memory, SIZE_T AddressSpace)
{
    UNREFERENCED_PARAMETER(Memory);
    UNREFERENCED_PARAMETER(AddressSpace);
}

VOID HalMakeSharedWritable(PVOID Memory, SIZE_T Size)
{
    UNREFERENCED_PARAMETER(Memory);
    UNREFERENCED_PARAMETER(Size);
}

BOOLEAN HalGrowSharedFile(PCSTR Path, const HAL_FILE_ID *File, ULONG64 Size)
{
    UNREFERENCED_PARAMETER(Path);
    UNREFERENCED_PARAMETER(File);
    UNREFERENCED_PARAMETER(Size);
    return FALSE;
}

VOID HalRemoveSharedFile(PCSTR Path, const HAL_FILE_ID *File)
{
    UNREFERENCED_PARAMETER(Path);
    UNREFERENCED_PARAMETER(File);
}

BOOLEAN HalGuardMapping(PVOID Memory, SIZE_T Size, volatile ULONG *Lost)
{
    UNREFERENCED_PARAMETER(Memory);
    UNREFERENCED_PARAMETER(Size);
    UNREFERENCED_PARAMETER(Lost);
    return TRUE;
}

VOID HalForgetMapping(PVOID Memory)
{
    UNREFERENCED_PARAMETER(Memory);
}

BOOLEAN HalOpenBirth(LONG Ends[2])
{
    UNREFERENCED_PARAMETER(Ends);
    return FALSE;
}

BOOLEAN HalAwaitBirth(LONG Ends[2], ULONG Milliseconds)
{
    UNREFERENCED_PARAMETER(Ends);
    UNREFERENCED_PARAMETER(Milliseconds);
    return FALSE;
}

/* Runs must repeat: always the same. */
BOOLEAN HalQueryRandom(PVOID Buffer, SIZE_T Size)
{
    memset(Buffer, 0x5A, Size);
    return TRUE;
}
