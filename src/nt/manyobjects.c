/* manyobjects.c: a wait for many handles. In wait.c it would cost the waits there one instruction more for each object. */
#include "ntp.h"

/* The objects of the wait. A WaitAll omits objects that are always signaled: they share one dispatcher header, and the
   wait rejects duplicates. The result is never empty. Returns the count. */
static ULONG NtpChooseWaitObjects(PVOID Objects[], ULONG Count, WAIT_TYPE WaitType, PVOID WaitObjects[])
{
    ULONG Chosen = 0;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        if (WaitType == WaitAny || !ObpIsAlwaysSignaled(Objects[Index])) {
            WaitObjects[Chosen] = ObpWaitObject(Objects[Index]);
            Chosen += 1;
        }
    }
    if (Chosen == 0) {
        WaitObjects[0] = &ObpDefaultObject;
        Chosen = 1;
    }
    return Chosen;
}

/* One allocation: the objects, the objects to wait for, the wait blocks. */
#define NTP_SIZE_OF_MANY(Count) ((Count) * 2 * sizeof(PVOID) + KE_MANY_WAIT_BLOCKS(Count) * sizeof(KWAIT_BLOCK))

static NTSTATUS NtpWaitForManyReferenced(PVOID Objects[], ULONG Count, WAIT_TYPE WaitType, BOOLEAN Alertable,
                                         PLARGE_INTEGER Timeout, PULONG Index)
{
    PVOID *WaitObjects = Objects + Count;
    PKWAIT_BLOCK WaitBlocks = (PKWAIT_BLOCK)(PVOID)(WaitObjects + Count);
    ULONG Chosen = NtpChooseWaitObjects(Objects, Count, WaitType, WaitObjects);
    /* the blocks are not in use yet: their memory holds the order meanwhile */
    if (Chosen != Count && !KiSortManyObjects(Objects, Count, (PUSHORT)(PVOID)WaitBlocks)) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    return KiWaitForManyObjects(Chosen, WaitObjects, WaitType, UserRequest, UserMode, Alertable, Timeout, WaitBlocks,
                                Index);
}

static NTSTATUS NtpWaitForMany(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                               PLARGE_INTEGER Timeout, PULONG Index)
{
    PVOID *Objects = HalAllocate(NTP_SIZE_OF_MANY(Count), MEMORY_ALLOCATION_ALIGNMENT);
    if (Objects == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    NTSTATUS Status = NtpReferenceObjects(Handles, Count, UserMode, Objects);
    if (NT_SUCCESS(Status)) {
        Status = NtpWaitForManyReferenced(Objects, Count, WaitType, Alertable, Timeout, Index);
        NtpDereferenceObjects(Objects, Count);
    }
    HalFree(Objects);
    return Status;
}

NTSTATUS NtWaitForManyObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout, PULONG Index)
{
    ULONG Satisfied = 0;
    NTSTATUS Status = NtpCheckObjects(Handles, Count, KE_MAXIMUM_MANY_OBJECTS, WaitType);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = NTP_SERVICE(NtpWaitForMany(Count, Handles, WaitType, Alertable, Timeout, &Satisfied));
    if (Index != NULL) {
        *Index = Satisfied;
    }
    return NtpFinishWait(Status);
}
