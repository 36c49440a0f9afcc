/* wait.c: waiting for objects by handle, and delays. A waiter holds a reference on each object while it waits. */
#include "ntp.h"

/* A satisfied wait for an object whose state needs no update. FALSE: nothing has happened. */
FORCEINLINE BOOLEAN NtpTryConsumeBorrowed(PKTHREAD Thread, HANDLE Handle, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
                                          NTSTATUS *Status)
{
    PVOID Object = ObpTryBorrowByHandle(Thread, Handle, Mode != KernelMode ? SYNCHRONIZE : 0, NULL);
    BOOLEAN Consumed = FALSE;
    if (Object == NULL) {
        return FALSE;
    }
    if (ObpHeaderOf(Object)->Type->WaitProcedure == NULL) {
        PDISPATCHER_HEADER Header = ObpDispatcherObject(Object);
        KI_AT_ONCE Found = KiTryConsumeAtOnce(Header, Alertable);
        *Status = STATUS_SUCCESS;
        Consumed = Found == KiConsumedAtOnce ||
                   (Found == KiLockedAtOnce && KiTryConsumeOutsideAtOnce(Header, Thread, Status)) ||
                   (Found == KiMutantAtOnce && KiTryAcquireMutantAtOnce((PKMUTANT)(PVOID)Header, Thread, Status));
    }
    ObpEndBorrowing(Thread);
    return Consumed;
}

FORCEINLINE NTSTATUS NtpWaitForSingleObject(HANDLE Handle, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
                                            PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    NTSTATUS Status;
    if (NtpTryConsumeBorrowed(Thread, Handle, Mode, Alertable, &Status)) {
        return Status;
    }
    KiEnterService(Thread);
    Status = ObpReferenceByHandle(Handle, SYNCHRONIZE, NULL, Mode, &Object);
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

    NTSTATUS Status = NtpCheckObjects(Handles, Count, MAXIMUM_WAIT_OBJECTS, WaitType);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    Status = NtpReferenceObjects(Handles, Count, Mode, Objects);
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
