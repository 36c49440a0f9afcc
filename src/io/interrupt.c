/* interrupt.c: connecting and disconnecting interrupt objects. */
#include <interlock/io.h>

#include "../ke/interrupt.h"

/* Interprocessor interrupts are above every device. */
static BOOLEAN IopIsDeviceLevel(KIRQL Irql)
{
    return Irql > DISPATCH_LEVEL && Irql < IPI_LEVEL;
}

static VOID IopCheckPassiveLevel(ULONG_PTR Routine)
{
    if (KeGetCurrentIrql() != PASSIVE_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, PASSIVE_LEVEL, KeGetCurrentIrql(), 0, Routine);
    }
}

static NTSTATUS IopConnect(PKINTERRUPT *Connected, const KINTERRUPT *Template)
{
    PKINTERRUPT Interrupt = HalAllocate(sizeof(*Interrupt), KI_CACHE_LINE);
    NTSTATUS Status;
    if (Interrupt == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    *Interrupt = *Template;
    if (Interrupt->ActualLock == NULL) {
        Interrupt->ActualLock = &Interrupt->SpinLock;
    }
    Status = KiConnectInterrupt(Interrupt);
    if (!NT_SUCCESS(Status)) {
        HalFree(Interrupt);
        return Status;
    }
    *Connected = Interrupt;
    return Status;
}

NTSTATUS IoConnectInterrupt(PKINTERRUPT *Interrupt, PKSERVICE_ROUTINE ServiceRoutine, PVOID ServiceContext,
                            PKSPIN_LOCK SpinLock, ULONG Vector, KIRQL Irql, KIRQL SynchronizeIrql,
                            KINTERRUPT_MODE InterruptMode, BOOLEAN ShareVector, KAFFINITY ProcessorEnableMask,
                            BOOLEAN FloatingSave)
{
    KINTERRUPT Template = {
        .Type = InterruptObject,
        .Irql = Irql,
        .SynchronizeIrql = SynchronizeIrql,
        .ShareVector = ShareVector != FALSE,
        .Mode = InterruptMode,
        .Vector = Vector,
        .ServiceRoutine = ServiceRoutine,
        .ServiceContext = ServiceContext,
        .ActualLock = SpinLock,
        .ProcessorEnableMask = ProcessorEnableMask & KeQueryActiveProcessors(),
    };
    UNREFERENCED_PARAMETER(FloatingSave);
    IopCheckPassiveLevel((ULONG_PTR)IoConnectInterrupt);
    *Interrupt = NULL;
    if (ServiceRoutine == NULL || Vector >= KI_MAXIMUM_VECTOR || !IopIsDeviceLevel(Irql) ||
        !IopIsDeviceLevel(SynchronizeIrql) || SynchronizeIrql < Irql || Template.ProcessorEnableMask == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    return IopConnect(Interrupt, &Template);
}

VOID IoDisconnectInterrupt(PKINTERRUPT Interrupt)
{
    IopCheckPassiveLevel((ULONG_PTR)IoDisconnectInterrupt);
    KiDisconnectInterrupt(Interrupt);
    HalFree(Interrupt);
}
