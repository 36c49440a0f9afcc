/*
 * terminate.c: the thread that runs down those which another thread has ended. Theory in ke/terminate.c.
 *
 * It is a thread of its own because what is to be done may block and frees memory, and because nobody who is there
 * already can be relied on: who asked for the end may be ended in turn, a work item may be waiting for the very thread.
 * It is made by the first who ends another thread, before anything is asked of that one. In a forked child it is gone
 * and made again; those that it had not yet run down are among the threads that stayed behind.
 */
#include "psp.h"

#include "../ke/ownthread.h"

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

static const KI_OWN_KIND PspReaperKind = {
    .Name = "interlock-reap", .Routine = PspReaper, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD PspReaperThread = {.Kind = &PspReaperKind};

NTSTATUS PspTerminateThread(PETHREAD Thread, NTSTATUS ExitStatus)
{
    NTSTATUS Status;
    if (&Thread->Tcb == KiCurrentThread()) {
        PspExitThread(Thread, ExitStatus);
    }
    if (PsIsSystemThread(Thread)) {
        return STATUS_ACCESS_DENIED;
    }
    Status = KiEnsureOwnThread(&PspReaperThread);
    if (NT_SUCCESS(Status)) {
        KiRequestExit(&Thread->Tcb, ExitStatus);
    }
    return Status;
}
