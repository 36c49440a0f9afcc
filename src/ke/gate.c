/* gate.c: KGATE, a synchronization event whose locking form boosts the thread it lets through. */
#include "wait.h"

VOID KeInitializeGate(PKGATE Gate)
{
    KiInitializeHeader(&Gate->Header, GateObject, sizeof(KGATE), 0);
    Gate->Header.Signalling = FALSE;
}

#define KI_SIGNALLING ((ULONG64)1 << 8)

/* Signalling, byte 1 of the header, says of a gate that its last signal was one that boosts. */
static BOOLEAN KiUpdateSignalGate(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    UNREFERENCED_PARAMETER(Header);
    *Word = KiWithState(*Word, 1) & ~KI_SIGNALLING;
    if (*(BOOLEAN *)Context) {
        *Word |= KI_SIGNALLING;
    }
    return TRUE;
}

static VOID KiSignalGate(PKGATE Gate, KPRIORITY Increment, SCHAR BoostFloor)
{
    BOOLEAN Boost = BoostFloor != 0;
    KI_SIGNAL Signal = {
        .Update = KiUpdateSignalGate, .Context = &Boost, .Increment = Increment, .BoostFloor = BoostFloor};
    LONG Previous;
    KiSignal(&Gate->Header, &Signal, &Previous);
}

VOID KeSignalGate(PKGATE Gate)
{
    KiSignalGate(Gate, IO_NO_INCREMENT, 0);
}

VOID KeSignalGateBoostPriority(PKGATE Gate)
{
    KiSignalGate(Gate, EVENT_INCREMENT, (SCHAR)KeQueryPriorityThread(KiCurrentThread()));
}

NTSTATUS KeWaitForGate(PKGATE Gate, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode)
{
    return KeWaitForSingleObject(Gate, WaitReason, WaitMode, FALSE, NULL);
}
