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

BOOLEAN HalGrowSharedFile(PCSTR Path, const HAL_FILE_ID *File, ULONG64 Size)
{
    UNREFERENCED_PARAMETER(Path);
    UNREFERENCED_PARAMETER(File);
    UNREFERENCED_PARAMETER(Size);
    return FALSE;
}
