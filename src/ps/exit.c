/* exit.c: what others want done when a thread ends, and when its object goes. */
#include "psp.h"

#define PSP_EXIT_ROUTINES 32

typedef VOID (*PSP_EXIT_ROUTINE)(PETHREAD Thread, BOOLEAN WasTerminated);

static PSP_EXIT_ROUTINE volatile PspExitRoutines[PSP_EXIT_ROUTINES];
static volatile ULONG PspExitRoutineCount;

VOID PspRegisterThreadExit(VOID (*Routine)(PETHREAD Thread, BOOLEAN WasTerminated))
{
    ULONG Index = __atomic_fetch_add(&PspExitRoutineCount, 1, __ATOMIC_RELAXED);
    if (Index >= PSP_EXIT_ROUTINES) {
        RtlFailFast(FAST_FAIL_INVALID_ARG);
    }
    /* release: pairs with the acquire in PspRunThreadExit, so the routine finds what its owner had set up */
    __atomic_store_n(&PspExitRoutines[Index], Routine, __ATOMIC_RELEASE);
}

VOID PspRunThreadExit(PETHREAD Thread, BOOLEAN WasTerminated)
{
    for (ULONG Index = 0; Index < PSP_EXIT_ROUTINES; Index++) {
        PSP_EXIT_ROUTINE Routine = __atomic_load_n(&PspExitRoutines[Index], __ATOMIC_ACQUIRE);
        if (Routine != NULL) {
            Routine(Thread, WasTerminated);
        }
    }
}

static VOID PspThreadExits(PKTHREAD Thread, BOOLEAN WasTerminated)
{
    PspRunThreadExit((PETHREAD)Thread, WasTerminated);
}

static VOID PspDeleteThread(PVOID Object)
{
    PETHREAD Thread = Object;
    if (Thread->ThreadName.Buffer != NULL) {
        HalFree(Thread->ThreadName.Buffer);
        Thread->ThreadName.Buffer = NULL;
    }
    KiFreeThread(&Thread->Tcb);
}

static VOID PspInitializeSystem(VOID)
{
    ObpThreadType.DeleteProcedure = PspDeleteThread;
    KiThreadObjectRoutines.Exit = PspThreadExits;
}
KI_INITIALIZER(KiInitializeProcesses, PspInitializeSystem);
