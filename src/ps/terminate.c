/*
 * terminate.c: the thread that runs down those which another thread has ended. Theory in ke/terminate.c.
 *
 * It is a thread of its own because what is to be done may block and frees memory, and because nobody who is there
 * already can be relied on: who asked for the end may be ended in turn, a work item may be waiting for the very thread.
 * It is made by the first who ends another thread, before anything is asked of that one. In a forked child it is gone
 * and made again; those that it had not yet run down are among the threads that stayed behind.
 */
#include "psp.h"

#define PSP_REAPER_STACK (256 * 1024)
#define PSP_REAPER_STARTING MAXULONG

static volatile ULONG PspReaperProcess; /* whose reaper runs, PSP_REAPER_STARTING, or 0 */

static VOID PspReap(PKTHREAD Thread)
{
    while (Thread != NULL) {
        PKTHREAD Next = Thread->NextDead;
        KiRundownThread(Thread);
        Thread = Next;
    }
}

static VOID PspReaper(PVOID Context)
{
    static const HAL_DEADLINE NoDeadline = {HalNoDeadline, 0};
    volatile ULONG *Wakes;
    ULONG Seen;
    UNREFERENCED_PARAMETER(Context);
    KiCurrentThread()->Foreign = FALSE;
    for (;;) {
        PKTHREAD Dead = KiTakeDeadThreads(&Wakes, &Seen);
        if (Dead != NULL) {
            PspReap(Dead);
        } else {
            HalDispatch.Wait(Wakes, Seen, &NoDeadline);
        }
    }
}

static NTSTATUS PspStartReaper(VOID)
{
    NTSTATUS Status = HalCreateThread(PspReaper, NULL, PSP_REAPER_STACK, "interlock-reap");
    /* relaxed, here and below: the word tells of nothing but itself */
    __atomic_store_n(&PspReaperProcess, NT_SUCCESS(Status) ? KiInitialProcess.ProcessId : 0, __ATOMIC_RELAXED);
    return Status;
}

/* In a dispatcher section: who begins is not stopped before it has finished, and no fork comes in between, whose child
   would wait for a thread that it does not have. */
static NTSTATUS PspEnsureReaper(VOID)
{
    ULONG Process = __atomic_load_n(&PspReaperProcess, __ATOMIC_RELAXED);
    for (ULONG Round = 0; Process != KiInitialProcess.ProcessId; Round++) {
        if (Process == PSP_REAPER_STARTING) {
            HalLongSpin(Round);
            Process = __atomic_load_n(&PspReaperProcess, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&PspReaperProcess, &Process, PSP_REAPER_STARTING, FALSE,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return PspStartReaper();
        }
    }
    return STATUS_SUCCESS;
}

NTSTATUS PspTerminateThread(PETHREAD Thread, NTSTATUS ExitStatus)
{
    PKTHREAD Current = KiCurrentThread();
    NTSTATUS Status;
    if (&Thread->Tcb == Current) {
        PspExitThread(Thread, ExitStatus);
    }
    if (PsIsSystemThread(Thread)) {
        return STATUS_ACCESS_DENIED;
    }
    KiEnterDispatcher(Current);
    Status = PspEnsureReaper();
    KiExitDispatcher(Current);
    if (NT_SUCCESS(Status)) {
        KiRequestExit(&Thread->Tcb, ExitStatus);
    }
    return Status;
}
