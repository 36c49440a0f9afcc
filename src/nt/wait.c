/* wait.c: waiting for objects by handle, and delays. A waiter holds a reference on each object while it waits. */
#include "ntp.h"

#include "../ob/borrow.h"

/* A satisfied wait for an object whose state needs no update. */
FORCEINLINE BOOLEAN NtpTryConsumeBorrowed(PKTHREAD Thread, HANDLE Handle, KPROCESSOR_MODE Mode, BOOLEAN Alertable)
{
    PVOID Object = ObpTryBorrowByHandle(Thread, Handle, Mode != KernelMode ? SYNCHRONIZE : 0, NULL);
    if (Object == NULL) {
        return FALSE;
    }
    KI_AT_ONCE Found = KiNotAtOnce;
    if (ObpHeaderOf(Object)->Type->WaitProcedure == NULL) {
        Found = KiTryConsumeAtOnce(ObpDispatcherObject(Object), Alertable);
        if (Found == KiLockedAtOnce && KiTryConsumeOutsideAtOnce(ObpDispatcherObject(Object))) {
            Found = KiConsumedAtOnce;
        }
    }
    ObpEndBorrowing(Thread);
    return Found == KiConsumedAtOnce;
}

FORCEINLINE NTSTATUS NtpWaitForSingleObject(HANDLE Handle, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
                                            PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    if (NtpTryConsumeBorrowed(Thread, Handle, Mode, Alertable)) {
        return STATUS_SUCCESS;
    }
    KiEnterService(Thread);
    NTSTATUS Status = ObpReferenceByHandle(Handle, SYNCHRONIZE, NULL, Mode, &Object);
    if (NT_SUCCESS(Status)) {
        Status = KiWaitForSingleObject(ObpWaitObject(Object), UserRequest, Mode, Alertable, Timeout);
        ObpDereferenceObject(Object);
    }
    KiExitService(Thread);
    return NtpFinishWait(Status);
}

NTSTATUS NtWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return NtpWaitForSingleObject(Handle, UserMode, Alertable, Timeout);
}

NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return NtpWaitForSingleObject(Handle, KernelMode, Alertable, Timeout);
}

/* Several objects. */

FORCEINLINE VOID NtpDereferenceObjects(PVOID Objects[], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ObpDereferenceObject(Objects[Index]);
    }
}

/* All or none. A pseudo handle cannot be waited for together with others. */
FORCEINLINE NTSTATUS NtpReferenceObjects(HANDLE Handles[], ULONG Count, KPROCESSOR_MODE Mode, PVOID Objects[])
{
    ACCESS_MASK RequiredAccess = Mode != KernelMode ? SYNCHRONIZE : 0;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        Objects[Index] = ObpTryReferenceByHandle(Handles[Index], RequiredAccess, NULL);
        if (__builtin_expect(Objects[Index] != NULL, TRUE)) {
            continue;
        }
        HANDLE Handle = Handles[Index];
        NTSTATUS Status = Handle == NtCurrentProcess() || Handle == NtCurrentThread()
                              ? STATUS_INVALID_HANDLE
                              : ObpReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, Mode, &Objects[Index], NULL);
        if (!NT_SUCCESS(Status)) {
            NtpDereferenceObjects(Objects, Index);
            return Status;
        }
    }
    return STATUS_SUCCESS;
}

static NTSTATUS NtpWaitForObjects(PVOID Objects[], ULONG Count, WAIT_TYPE WaitType, KPROCESSOR_MODE Mode,
                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PVOID WaitObjects[MAXIMUM_WAIT_OBJECTS];
    KWAIT_BLOCK WaitBlocks[MAXIMUM_WAIT_OBJECTS];
    ULONG Chosen = 0;

    for (ULONG Index = 0; Index < Count; Index += 1) { /* like NtpChooseWaitObjects, which would cost one more
                                                          instruction per object here */
        if (WaitType == WaitAny || !ObpIsAlwaysSignaled(Objects[Index])) {
            WaitObjects[Chosen] = ObpWaitObject(Objects[Index]);
            Chosen += 1;
        }
    }
    if (Chosen != Count && KiHasDuplicates(Objects, Count)) { /* the wait checks only the objects it gets */
        return STATUS_INVALID_PARAMETER_MIX;
    }
    if (Chosen == 0) {
        WaitObjects[0] = &ObpDefaultObject;
        Chosen = 1;
    }
    return KiWaitForMultipleObjects(Chosen, WaitObjects, WaitType, UserRequest, Mode, Alertable, Timeout, WaitBlocks);
}

static NTSTATUS NtpWaitForMultipleObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, KPROCESSOR_MODE Mode,
                                          BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PVOID Objects[MAXIMUM_WAIT_OBJECTS];

    if (Count == 0 || Count > MAXIMUM_WAIT_OBJECTS) {
        return STATUS_INVALID_PARAMETER_1;
    }
    if (WaitType != WaitAny && WaitType != WaitAll) {
        return STATUS_INVALID_PARAMETER_3;
    }
    if (Handles == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    NTSTATUS Status = NtpReferenceObjects(Handles, Count, Mode, Objects);
    if (NT_SUCCESS(Status)) {
        Status = NtpWaitForObjects(Objects, Count, WaitType, Mode, Alertable, Timeout);
        NtpDereferenceObjects(Objects, Count);
    }
    KiExitService(Thread);
    return NtpFinishWait(Status);
}

NTSTATUS NtWaitForMultipleObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                                  PLARGE_INTEGER Timeout)
{
    return NtpWaitForMultipleObjects(Count, Handles, WaitType, UserMode, Alertable, Timeout);
}

NTSTATUS ZwWaitForMultipleObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                                  PLARGE_INTEGER Timeout)
{
    return NtpWaitForMultipleObjects(Count, Handles, WaitType, KernelMode, Alertable, Timeout);
}

/* More than 64 objects. */

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
    if (Chosen == 0) {
        WaitObjects[0] = &ObpDefaultObject;
        Chosen = 1;
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
    if (Count == 0 || Count > KE_MAXIMUM_MANY_OBJECTS) {
        return STATUS_INVALID_PARAMETER_1;
    }
    if (WaitType != WaitAny && WaitType != WaitAll) {
        return STATUS_INVALID_PARAMETER_3;
    }
    if (Handles == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    NTSTATUS Status = NTP_SERVICE(NtpWaitForMany(Count, Handles, WaitType, Alertable, Timeout, &Satisfied));
    if (Index != NULL) {
        *Index = Satisfied;
    }
    return NtpFinishWait(Status);
}

/* Signals with Wait set: the wait follows immediately. A refusal leaves the level as it was. */
static NTSTATUS NtpSignalBeforeWait(PVOID Object, ACCESS_MASK GrantedAccess)
{
    ACCESS_MASK Missing = ~GrantedAccess;
    LONG Previous;
    if (ObGetObjectType(Object) == *ExEventObjectType) {
        if (Missing & EVENT_MODIFY_STATE) {
            return STATUS_ACCESS_DENIED;
        }
        return KeSetEvent(Object, EVENT_INCREMENT, TRUE) != KI_OUTSIDE_LOST ? STATUS_SUCCESS : STATUS_FILE_CORRUPT_ERROR;
    }
    if (ObGetObjectType(Object) == *ExSemaphoreObjectType) {
        return Missing & SEMAPHORE_MODIFY_STATE ? STATUS_ACCESS_DENIED
                                                : KiReleaseSemaphore(Object, SEMAPHORE_INCREMENT, 1, TRUE, &Previous);
    }
    PDISPATCHER_HEADER Header = ObpWaitObject(Object);
    if (KI_TYPE(KiReadHeader(Header)) == MutantObject) { /* only the type Mutant has one */
        return KiReleaseMutant((PKMUTANT)(PVOID)Header, MUTANT_INCREMENT, FALSE, TRUE, &Previous);
    }
    return STATUS_OBJECT_TYPE_MISMATCH;
}

/* Checks in this order: both handles, the type of the first object, the access to it. */
static NTSTATUS NtpSignalAndWait(HANDLE SignalHandle, HANDLE WaitHandle, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    OBJECT_HANDLE_INFORMATION Information;
    PVOID SignalObject, WaitObject;
    NTSTATUS Status = ObReferenceObjectByHandle(SignalHandle, 0, NULL, UserMode, &SignalObject, &Information);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObpReferenceByHandle(WaitHandle, SYNCHRONIZE, NULL, UserMode, &WaitObject);
    if (NT_SUCCESS(Status)) {
        PVOID Waited = ObpWaitObject(WaitObject); /* before the signal: the wait then starts at DISPATCH_LEVEL */
        Status = NtpSignalBeforeWait(SignalObject, Information.GrantedAccess);
        if (NT_SUCCESS(Status)) {
            Status = KiWaitForSingleObject(Waited, UserRequest, UserMode, Alertable, Timeout);
        }
        ObpDereferenceObject(WaitObject);
    }
    ObpDereferenceObject(SignalObject);
    return Status;
}

NTSTATUS NtSignalAndWaitForSingleObject(HANDLE SignalHandle, HANDLE WaitHandle, BOOLEAN Alertable,
                                        PLARGE_INTEGER Timeout)
{
    return NtpFinishWait(NTP_SERVICE(NtpSignalAndWait(SignalHandle, WaitHandle, Alertable, Timeout)));
}

NTSTATUS NtDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval)
{
    if (DelayInterval == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    NTSTATUS Status = KeDelayExecutionThread(UserMode, Alertable, DelayInterval);
    PKTHREAD Thread = KiCurrentThread();
    if (KiIsDeliveryPending(Thread)) { /* it had nothing to protect, but ends as other services do */
        KiLeaveServices(Thread);
    }
    return Status;
}

NTSTATUS NtYieldExecution(VOID)
{
    return HalYieldToOther() ? STATUS_SUCCESS : STATUS_NO_YIELD_PERFORMED;
}

NTSTATUS ZwYieldExecution(VOID)
{
    return NtYieldExecution();
}

/* An alert hides the user APCs: they stay queued for the next call. */
NTSTATUS NtTestAlert(VOID)
{
    if (KeTestAlertThread(UserMode)) {
        return STATUS_ALERTED;
    }
    KiDeliverUserApcs(KiCurrentThread());
    return STATUS_SUCCESS;
}
