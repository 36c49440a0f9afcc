/*
 * manyobjects.c: waits for up to MAXUSHORT objects. Theory in wait.h.
 *
 * The steps are those of every wait (waitsteps.h). A WaitAll needs nothing else: its status has no index, so its blocks
 * are those of any WaitAll. The blocks of a wait for any object are of the type KI_MANY_BLOCK: the thread that ends the
 * wait through one of them stores the index in the ranges KI_MANY_ of the status, which extend beyond STATUS_TIMEOUT
 * and similar statuses. KiSplitManyStatus turns that into a status of Windows and the index.
 *
 * What a wait for up to 64 objects keeps on the stack is in the caller's array here, after the wait blocks, so that a
 * wait in the kernel allocates nothing:
 *
 *     Count wait blocks | KI_WAIT, and Types of Count bytes | Order of a WaitAll
 *
 * Rejected: a tree of waits for 64 objects each, by helper threads, as programs build on Windows. A helper consumes an
 * object before it knows that another one has not, so no wait of that kind is atomic.
 *
 * Such a wait does not spin before it sleeps: one round over its objects takes longer than a spin.
 */
#include "waitsteps.h"

#define KI_MANY_ROOM_PER_OBJECT (sizeof(UCHAR) + sizeof(USHORT))

C_ASSERT(KE_MANY_WAIT_BLOCKS(1) * sizeof(KWAIT_BLOCK) >=
         sizeof(KWAIT_BLOCK) + sizeof(KI_WAIT) + KI_MANY_ROOM_PER_OBJECT + sizeof(USHORT));
/* For each ten more objects the macro has one more block for this. */
C_ASSERT(sizeof(KWAIT_BLOCK) >= 10 * KI_MANY_ROOM_PER_OBJECT);

static PUSHORT KiRoomForOrder(PKI_WAIT Wait)
{
    return (PUSHORT)(((ULONG_PTR)KiTypeOf(Wait, Wait->Count) + sizeof(USHORT) - 1) & ~(sizeof(USHORT) - 1));
}

BOOLEAN KiTryConsumeMany(PKI_WAIT Wait, NTSTATUS *Status)
{
    return KiTryConsumeFirst(Wait->Objects, Wait->Count, Wait->Thread, TRUE, Status);
}

NTSTATUS KiLinkManyObject(PKI_WAIT Wait, ULONG Index, BOOLEAN *Signaled)
{
    return KiLinkObjectInline(Wait, Index, TRUE, Signaled);
}

VOID KiTakeOwnershipOfMany(PKI_WAIT Wait, NTSTATUS Status)
{
    KiTakeOwnershipsInline(Wait, Status, TRUE);
}

NTSTATUS KiWaitMany(PKI_WAIT Wait)
{
    return KiRunWait(Wait, TRUE);
}

static NTSTATUS KiWaitForAnyOfMany(PKI_WAIT Wait)
{
    NTSTATUS Status;
    if (KiIsAlerted(Wait, &Status) || KiTryConsumeMany(Wait, &Status)) {
        return Status;
    }
    if (Wait->Poll) {
        return STATUS_TIMEOUT;
    }
    return Wait->Thread->SawOutside ? KiWaitOutside(Wait) : KiWaitMany(Wait);
}

static NTSTATUS KiWaitForAllOfMany(PKI_WAIT Wait)
{
    PUSHORT Order = KiRoomForOrder(Wait);
    if (!KiSortManyObjects(Wait->Objects, Wait->Count, Order)) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    for (ULONG Index = 0; Index < Wait->Count; Index += 1) {
        if (KiIsAtMutantLimit(Wait->Objects[Index], Wait->Thread)) {
            return STATUS_MUTANT_LIMIT_EXCEEDED;
        }
    }
    Wait->Order = Order;
    Wait->Flags = KI_WAIT_LIGHT;
    return KiWait(Wait);
}

NTSTATUS KiSplitManyStatus(NTSTATUS Status, PULONG Index)
{
    *Index = 0;
    if (Status >= KI_MANY_ABANDONED_0 && Status < KI_MANY_ABANDONED_0 + MAXUSHORT) {
        *Index = (ULONG)(Status - KI_MANY_ABANDONED_0);
        return STATUS_ABANDONED_WAIT_0;
    }
    if (Status >= KI_MANY_WAIT_0 && Status < KI_MANY_WAIT_0 + MAXUSHORT) {
        *Index = (ULONG)(Status - KI_MANY_WAIT_0);
        return STATUS_WAIT_0;
    }
    return Status;
}

NTSTATUS KiWaitForManyObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                              KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                              PKWAIT_BLOCK WaitBlockArray, PULONG Index)
{
    PKI_WAIT Wait = (PKI_WAIT)(PVOID)(WaitBlockArray + Count);
    if (WaitType != WaitAny && WaitType != WaitAll) {
        return STATUS_INVALID_PARAMETER_3;
    }
    KiInitializeWait(Wait, Object[0], WaitReason, WaitMode, Alertable, Timeout);
    Wait->Thread->SawOutside = FALSE;
    Wait->Objects = Object;
    Wait->Blocks = WaitBlockArray;
    Wait->Count = Count;
    Wait->WaitType = WaitType == WaitAny ? KI_MANY_BLOCK : WaitAll;
    Wait->Spun = TRUE;
    return KiSplitManyStatus(WaitType == WaitAny ? KiWaitForAnyOfMany(Wait) : KiWaitForAllOfMany(Wait), Index);
}

NTSTATUS KeWaitForManyObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                              KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                              PKWAIT_BLOCK WaitBlockArray, PULONG Index)
{
    ULONG Unused;
    if (Count > KE_MAXIMUM_MANY_OBJECTS) {
        KeBugCheckEx(MAXIMUM_WAIT_OBJECTS_EXCEEDED, Count, KE_MAXIMUM_MANY_OBJECTS, (ULONG_PTR)KiCurrentThread(),
                     (ULONG_PTR)WaitBlockArray);
    }
    if (Count == 0) {
        return STATUS_INVALID_PARAMETER_1;
    }
    return KiFinishWait(KiWaitForManyObjects(Count, Object, WaitType, WaitReason, WaitMode, Alertable, Timeout,
                                             WaitBlockArray, Index != NULL ? Index : &Unused));
}
