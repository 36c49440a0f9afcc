/* process.c: processes of the simulated machine. A process is a view of a world; the key is its id and one bit. */
#include "labhal.h"

static ULONG64 LabhalEnded; /* a bit for each id */

ULONG64 HalQueryProcessKey(ULONG ProcessId)
{
    return 1ull << HAL_PROCESS_ID_BITS | ProcessId;
}

BOOLEAN HalIsProcessAlive(ULONG64 Key)
{
    ULONG ProcessId = (ULONG)(Key & ((1ull << HAL_PROCESS_ID_BITS) - 1));
    return Key == HalQueryProcessKey(ProcessId) && ProcessId < 64 && (LabhalEnded >> ProcessId & 1) == 0;
}

VOID LabhalEndProcess(ULONG ProcessId)
{
    LabhalEnded |= 1ull << ProcessId;
}

BOOLEAN HalGrowSharedFile(PCSTR Path, const HAL_FILE_ID *File, ULONG64 Size)
{
    UNREFERENCED_PARAMETER(Path);
    UNREFERENCED_PARAMETER(File);
    UNREFERENCED_PARAMETER(Size);
    return FALSE;
}
