/*
 * affinity.c: processor numbers, groups, and where a thread may run. A group has 64 processors but for the last one.
 * The functions without a group speak of group 0.
 */
#include "irql.h"

static ULONG KiProcessorsInGroup(ULONG Group)
{
    ULONG Before = Group * MAXIMUM_PROC_PER_GROUP;
    if (Before >= KeNumberProcessors) {
        return 0;
    }
    return KeNumberProcessors - Before < MAXIMUM_PROC_PER_GROUP ? KeNumberProcessors - Before : MAXIMUM_PROC_PER_GROUP;
}

/* Processors. */

ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    ULONG Number = KiCurrentProcessorNumber(KiCurrentThread());
    if (ProcNumber != NULL) {
        KeGetProcessorNumberFromIndex(Number, ProcNumber);
    }
    return Number;
}

ULONG KeGetCurrentProcessorNumber(VOID)
{
    return KiCurrentProcessorNumber(KiCurrentThread());
}

ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber)
{
    return GroupNumber == ALL_PROCESSOR_GROUPS ? KeNumberProcessors : KiProcessorsInGroup(GroupNumber);
}

ULONG KeQueryMaximumProcessorCountEx(USHORT GroupNumber)
{
    return KeQueryActiveProcessorCountEx(GroupNumber);
}

ULONG KeQueryActiveProcessorCount(PKAFFINITY ActiveProcessors)
{
    if (ActiveProcessors != NULL) {
        *ActiveProcessors = KeQueryGroupAffinity(0);
    }
    return KiProcessorsInGroup(0);
}

ULONG KeQueryMaximumProcessorCount(VOID)
{
    return KiProcessorsInGroup(0);
}

KAFFINITY KeQueryActiveProcessors(VOID)
{
    return KeQueryGroupAffinity(0);
}

USHORT KeQueryActiveGroupCount(VOID)
{
    return (USHORT)((KeNumberProcessors + MAXIMUM_PROC_PER_GROUP - 1) / MAXIMUM_PROC_PER_GROUP);
}

USHORT KeQueryMaximumGroupCount(VOID)
{
    return KeQueryActiveGroupCount();
}

KAFFINITY KeQueryGroupAffinity(USHORT GroupNumber)
{
    ULONG Count = KiProcessorsInGroup(GroupNumber);
    return Count == 0 ? 0 : ~(KAFFINITY)0 >> (MAXIMUM_PROC_PER_GROUP - Count);
}

NTSTATUS KeGetProcessorNumberFromIndex(ULONG ProcIndex, PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcIndex >= KeNumberProcessors) {
        return STATUS_INVALID_PARAMETER;
    }
    ProcNumber->Group = (USHORT)(ProcIndex / MAXIMUM_PROC_PER_GROUP);
    ProcNumber->Number = (UCHAR)(ProcIndex % MAXIMUM_PROC_PER_GROUP);
    ProcNumber->Reserved = 0;
    return STATUS_SUCCESS;
}

ULONG KeGetProcessorIndexFromNumber(PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcNumber->Reserved != 0 || ProcNumber->Number >= KiProcessorsInGroup(ProcNumber->Group)) {
        return INVALID_PROCESSOR_INDEX;
    }
    return (ULONG)ProcNumber->Group * MAXIMUM_PROC_PER_GROUP + ProcNumber->Number;
}

/*
 * The system affinity of a thread replaces its user affinity until it is reverted. One that names a processor which
 * does not exist, or none at all, changes nothing. A thread that owns a processor keeps it until it comes below
 * DISPATCH_LEVEL.
 */

static BOOLEAN KiIsValidAffinity(const GROUP_AFFINITY *Affinity)
{
    return Affinity->Mask != 0 && (Affinity->Mask & ~KeQueryGroupAffinity(Affinity->Group)) == 0 &&
           Affinity->Reserved[0] == 0 && Affinity->Reserved[1] == 0 && Affinity->Reserved[2] == 0;
}

static VOID KiVerifyAffinityLevel(PKTHREAD Thread)
{
    if (Thread->Irql > DISPATCH_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, DISPATCH_LEVEL, Thread->Irql, 0, (ULONG_PTR)__builtin_return_address(0));
    }
}

/* With ThreadLock held. relaxed: see KiMayRunOn */
static VOID KiStoreAffinity(PKTHREAD Thread, const GROUP_AFFINITY *Affinity)
{
    __atomic_store_n(&Thread->Affinity.Mask, Affinity->Mask, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->Affinity.Group, Affinity->Group, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->LastPrcb, NULL, __ATOMIC_RELAXED);
    KiNoteChange(Thread, KI_WAIT_AFFINITY);
}

/* ThreadLock: others read a thread's affinity. */
static VOID KiChangeAffinity(PKTHREAD Thread, const GROUP_AFFINITY *Affinity, BOOLEAN System)
{
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Thread->ThreadLock);
    KiStoreAffinity(Thread, Affinity);
    Thread->SystemAffinityActive = System;
    KiReleaseLock(&Thread->ThreadLock);
    KiExitDispatcher(Thread);
}

VOID KiQueryUserAffinityThread(PKTHREAD Thread, PGROUP_AFFINITY Affinity)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->ThreadLock);
    *Affinity = Thread->UserAffinity;
    KiReleaseLock(&Thread->ThreadLock);
    KiExitDispatcher(Current);
}

BOOLEAN KiSetUserAffinityThread(PKTHREAD Thread, const GROUP_AFFINITY *Affinity, PGROUP_AFFINITY PreviousAffinity)
{
    PKTHREAD Current = KiCurrentThread();
    BOOLEAN Valid = KiIsValidAffinity(Affinity);
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->ThreadLock);
    *PreviousAffinity = Thread->UserAffinity;
    if (Valid) {
        Thread->UserAffinity = *Affinity;
        if (!Thread->SystemAffinityActive) {
            KiStoreAffinity(Thread, Affinity);
        }
    }
    KiReleaseLock(&Thread->ThreadLock);
    KiRequeueForProcessor(Thread);
    KiExitDispatcher(Current);
    return Valid;
}

VOID KeSetSystemGroupAffinityThread(PGROUP_AFFINITY Affinity, PGROUP_AFFINITY PreviousAffinity)
{
    static const GROUP_AFFINITY None;
    PKTHREAD Thread = KiCurrentThread();
    GROUP_AFFINITY Previous = Thread->SystemAffinityActive ? Thread->Affinity : None;
    KiVerifyAffinityLevel(Thread);
    if (KiIsValidAffinity(Affinity)) {
        KiChangeAffinity(Thread, Affinity, TRUE);
    }
    if (PreviousAffinity != NULL) {
        *PreviousAffinity = Previous;
    }
}

VOID KeRevertToUserGroupAffinityThread(PGROUP_AFFINITY PreviousAffinity)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyAffinityLevel(Thread);
    if (!Thread->SystemAffinityActive) {
        return;
    }
    if (PreviousAffinity->Mask == 0) {
        GROUP_AFFINITY User = Thread->UserAffinity;
        KiChangeAffinity(Thread, &User, FALSE);
    } else if (KiIsValidAffinity(PreviousAffinity)) {
        KiChangeAffinity(Thread, PreviousAffinity, TRUE);
    }
}

KAFFINITY KeSetSystemAffinityThreadEx(KAFFINITY Affinity)
{
    GROUP_AFFINITY New = {.Mask = Affinity};
    GROUP_AFFINITY Previous;
    KeSetSystemGroupAffinityThread(&New, &Previous);
    return Previous.Mask;
}

VOID KeSetSystemAffinityThread(KAFFINITY Affinity)
{
    KeSetSystemAffinityThreadEx(Affinity);
}

VOID KeRevertToUserAffinityThreadEx(KAFFINITY Affinity)
{
    GROUP_AFFINITY Previous = {.Mask = Affinity};
    KeRevertToUserGroupAffinityThread(&Previous);
}

VOID KeRevertToUserAffinityThread(VOID)
{
    KeRevertToUserAffinityThreadEx(0);
}
