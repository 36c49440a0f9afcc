/* ownthread.c: the start of the threads that the library needs for itself, each of which there is once. */
#include "irql.h"

#define KI_OWN_THREAD_STARTING MAXULONG

/* relaxed, here and below: the word tells of nothing but itself */
static ULONG KiReadOwnThread(PKI_OWN_THREAD Own)
{
    return __atomic_load_n(&Own->Process, __ATOMIC_RELAXED);
}

static VOID KiWriteOwnThread(PKI_OWN_THREAD Own, ULONG Process)
{
    __atomic_store_n(&Own->Process, Process, __ATOMIC_RELAXED);
}

BOOLEAN KiHasOwnThread(PKI_OWN_THREAD Own)
{
    return KiReadOwnThread(Own) == KiInitialProcess.ProcessId;
}

NTSTATUS KiEnsureOwnThread(PKI_OWN_THREAD Own, VOID (*Routine)(PVOID), PVOID Context, PCSTR Name)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Process = KiReadOwnThread(Own);
    ULONG Spins = 0;
    while (Process != KiInitialProcess.ProcessId) {
        if (Thread->HostInterrupts != 0 || Thread->Irql >= IPI_LEVEL) {
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        if (Process == KI_OWN_THREAD_STARTING) {
            KiSpin(Thread, &Spins);
            Process = KiReadOwnThread(Own);
        } else if (__atomic_compare_exchange_n(&Own->Process, &Process, KI_OWN_THREAD_STARTING, FALSE,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            BOOLEAN Created = NT_SUCCESS(HalCreateThread(Routine, Context, KI_OWN_THREAD_STACK, Name));
            KiWriteOwnThread(Own, Created ? KiInitialProcess.ProcessId : 0);
            return Created ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
        }
    }
    return STATUS_SUCCESS;
}

VOID KiResetOwnThread(PKI_OWN_THREAD Own)
{
    KiWriteOwnThread(Own, 0);
}
