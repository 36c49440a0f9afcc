/*
 * terminate.c: the thread that runs down those which another thread has ended. Theory in ke/terminate.c.
 *
 * It is a thread of its own because what is to be done may block and frees memory, and because nobody who is there
 * already can be relied on: who asked for the end may be ended in turn, a work item may be waiting for the very thread.
 * It is made by the first who ends another thread, before anything is asked of that one. In a forked child it is gone
 * and made again; those that it had not yet run down are among the threads that stayed behind.
 */
#include "psp.h"

static KI_OWN_THREAD PspReaperThread;

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
    /* In a dispatcher section: who begins is not stopped before it has finished, and no fork comes in between, whose
       child would wait for a thread that it does not have. */
    KiEnterDispatcher(Current);
    Status = KiEnsureOwnThread(&PspReaperThread, PspReaper, NULL, "interlock-reap");
    KiExitDispatcher(Current);
    if (NT_SUCCESS(Status)) {
        KiRequestExit(&Thread->Tcb, ExitStatus);
    }
    return Status;
}
