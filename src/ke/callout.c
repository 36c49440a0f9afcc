/*
 * callout.c: calls with a larger stack, floating-point and extended state. Every host thread has a large stack and its
 * own registers, also in signal handlers, where interrupts run. So there is nothing to expand or to save. Only the
 * contract remains: where the call is allowed, and that the thread that saved restores, at the same IRQL.
 */
#include "irql.h"

#include "../hal/machine.h"

#define KI_STACK_RESERVE 16384       /* bytes of the host's stack that the library needs below a callout */
#define KI_SAVED         0x46500000u /* a KFLOATING_SAVE that was saved, with the IRQL */

static BOOLEAN KiHasStack(SIZE_T Size)
{
    ULONG_PTR Low, High;
    ULONG_PTR Here = (ULONG_PTR)__builtin_frame_address(0);
    HalQueryStackLimits(&Low, &High);
    /* Outside: the stack of a fiber or of a signal, whose size is unknown. */
    return Here < Low || Here > High || Here - Low >= Size + KI_STACK_RESERVE;
}

NTSTATUS KeExpandKernelStackAndCalloutEx(PEXPAND_STACK_CALLOUT Callout, PVOID Parameter, SIZE_T Size, BOOLEAN Wait,
                                         PVOID Context)
{
    KIRQL Irql = KiCurrentThread()->Irql;
    UNREFERENCED_PARAMETER(Context);
    if (Irql > (Wait ? APC_LEVEL : DISPATCH_LEVEL)) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Callout, Irql, 0, (ULONG_PTR)__builtin_return_address(0));
    }
    if (Size > MAXIMUM_EXPANSION_SIZE) {
        return STATUS_INVALID_PARAMETER_3;
    }
    if (!KiHasStack(Size)) {
        return STATUS_NO_MEMORY;
    }
    Callout(Parameter);
    return STATUS_SUCCESS;
}

NTSTATUS KeExpandKernelStackAndCallout(PEXPAND_STACK_CALLOUT Callout, PVOID Parameter, SIZE_T Size)
{
    return KeExpandKernelStackAndCalloutEx(Callout, Parameter, Size, TRUE, NULL);
}

NTSTATUS KeSaveFloatingPointState(PKFLOATING_SAVE FloatSave)
{
    FloatSave->Dummy = KI_SAVED | KiCurrentThread()->Irql;
    return STATUS_SUCCESS;
}

NTSTATUS KeRestoreFloatingPointState(PKFLOATING_SAVE FloatSave)
{
    ULONG Saved = FloatSave->Dummy;
    FloatSave->Dummy = 0;
    return Saved == (KI_SAVED | KiCurrentThread()->Irql) ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL;
}

NTSTATUS KeSaveExtendedProcessorState(ULONG64 Mask, PXSTATE_SAVE XStateSave)
{
    PKTHREAD Thread = KiCurrentThread();
    *XStateSave = (XSTATE_SAVE){.Thread = Thread, .Level = Thread->Irql, .XStateContext = {.Mask = Mask}};
    return STATUS_SUCCESS;
}

VOID KeRestoreExtendedProcessorState(PXSTATE_SAVE XStateSave)
{
    PKTHREAD Thread = KiCurrentThread();
    if (XStateSave->Thread != Thread || XStateSave->Level != Thread->Irql) {
        KeBugCheckEx(IRQL_UNEXPECTED_VALUE, (ULONG_PTR)Thread->Irql << 16 | (ULONG_PTR)XStateSave->Level << 8, 0,
                     (ULONG_PTR)XStateSave, 0);
    }
    XStateSave->Thread = NULL;
}
