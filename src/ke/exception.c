/*
 * exception.c: raises a status, and finds the frame that catches it.
 *
 * A thread's frames are a list, innermost first; each is on the stack of the function that has the __try. Frames are
 * left in reverse order, so the innermost frame is always the next to leave: a raise removes it and jumps to it. Its
 * __except or __finally then checks whether something was caught. The check directly follows the frame's block, so its
 * result belongs to that frame.
 *
 * Below DISPATCH_LEVEL the process's handlers are called before the frames, and its last filter after them. They run
 * where the exception was raised, with the stack intact, so they may continue: then the raise returns, or, if it
 * cannot, STATUS_NONCONTINUABLE_EXCEPTION goes to the frames. An exception that a frame passes on goes to the outer
 * frames and to the last filter; the handlers have already been called.
 *
 * Interrupt service routines, IPI functions and DPCs run on the stack of an arbitrary thread. They start with an empty
 * list: an uncaught exception there is a bugcheck, and never reaches that thread's handlers.
 */
#include <interlock/exception.h>

#include "verifier.h"
#include "ki.h"

#define KI_TRY_RAISED 1
#define KI_TRY_LEFT 2

KI_EXCEPTION_ROUTINE *volatile KiFirstChanceRoutine;
KI_EXCEPTION_ROUTINE *volatile KiLastChanceRoutine;

VOID KeEnterTryFrame(PKEXCEPTION_FRAME Frame)
{
    PKTHREAD Thread = KiCurrentThread();
    Frame->Next = Thread->ExceptionList;
    Frame->Entered = TRUE;
    Thread->ExceptionList = Frame;
}

/* If the program left the block by its own longjmp, the inner frames no longer exist. */
VOID KeExitTryFrame(PKEXCEPTION_FRAME Frame)
{
    if (Frame->Entered) {
        Frame->Entered = FALSE;
        KiCurrentThread()->ExceptionList = Frame->Next;
    }
}

static DECLSPEC_NORETURN VOID KiJumpToFrame(PKTHREAD Thread, PKEXCEPTION_FRAME Frame, int How)
{
    Frame->Entered = FALSE;
    Thread->ExceptionList = Frame->Next;
    KiDropCallFrames(Thread, Frame, NULL);
    longjmp(Frame->Context, How);
}

VOID KeLeaveTryFrame(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Thread->ExceptionList == NULL) {
        RtlFailFast(FAST_FAIL_INVALID_JUMP_BUFFER);
    }
    KiJumpToFrame(Thread, Thread->ExceptionList, KI_TRY_LEFT);
}

/* Routine may be NULL; a program's handlers do not run at DISPATCH_LEVEL or above. */
static LONG KiAskRoutine(KI_EXCEPTION_ROUTINE *volatile *Routine, PKTHREAD Thread, PEXCEPTION_RECORD Record)
{
    EXCEPTION_POINTERS Exception = {.ExceptionRecord = Record, .ContextRecord = NULL};
    /* acquire: pairs with the release of the registration, whose list the routine uses */
    KI_EXCEPTION_ROUTINE *Ask = __atomic_load_n(Routine, __ATOMIC_ACQUIRE);
    return Ask != NULL && Thread->Irql < DISPATCH_LEVEL ? Ask(&Exception) : EXCEPTION_CONTINUE_SEARCH;
}

static DECLSPEC_NORETURN VOID KiExceptionNotHandled(PEXCEPTION_RECORD Record)
{
    KeBugCheckEx(KMODE_EXCEPTION_NOT_HANDLED, (ULONG_PTR)(LONG_PTR)Record->ExceptionCode,
                 (ULONG_PTR)Record->ExceptionAddress, Record->ExceptionInformation[0], Record->ExceptionInformation[1]);
}

/* Returns if no frame is left and the last filter continues. */
static VOID KiRaiseToFrames(PKTHREAD Thread, PEXCEPTION_RECORD Record)
{
    if (Thread->ExceptionList == NULL) {
        if (KiAskRoutine(&KiLastChanceRoutine, Thread, Record) < 0) {
            return;
        }
        KiExceptionNotHandled(Record);
    }
    if (Record != &Thread->ExceptionRecord) {
        Thread->ExceptionRecord = *Record;
        Thread->ExceptionRecord.ExceptionRecord = NULL;
    }
    Thread->ExceptionPointers.ExceptionRecord = &Thread->ExceptionRecord;
    Thread->ExceptionCode = Record->ExceptionCode;
    Thread->ExceptionCaught = TRUE;
    KiJumpToFrame(Thread, Thread->ExceptionList, KI_TRY_RAISED);
}

/* A handler tried to continue: this goes to the frames only. */
static DECLSPEC_NORETURN VOID KiRaiseNoncontinuable(PKTHREAD Thread, PVOID Address)
{
    EXCEPTION_RECORD Record = {
        .ExceptionCode = STATUS_NONCONTINUABLE_EXCEPTION,
        .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
        .ExceptionAddress = Address,
    };
    KiRaiseToFrames(Thread, &Record);
    KiExceptionNotHandled(&Record);
}

VOID KiRaiseException(PEXCEPTION_RECORD Record)
{
    PKTHREAD Thread = KiCurrentThread();
    if (KiAskRoutine(&KiFirstChanceRoutine, Thread, Record) >= 0) {
        KiRaiseToFrames(Thread, Record);
    }
    if (Record->ExceptionFlags & EXCEPTION_NONCONTINUABLE) {
        KiRaiseNoncontinuable(Thread, Record->ExceptionAddress);
    }
}

DECLSPEC_NOINLINE VOID KiRaiseStatus(NTSTATUS Status)
{
    EXCEPTION_RECORD Record = {
        .ExceptionCode = Status,
        .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
        .ExceptionAddress = __builtin_return_address(0),
    };
    KiRaiseException(&Record);
    __builtin_unreachable();
}

/* A frame passes its exception on to the outer frames. The stack of the raise no longer exists. */
static DECLSPEC_NORETURN VOID KiPassExceptionOn(PKTHREAD Thread)
{
    KiRaiseToFrames(Thread, &Thread->ExceptionRecord);
    KiRaiseNoncontinuable(Thread, Thread->ExceptionRecord.ExceptionAddress);
}

BOOLEAN KeIsExceptionCaught(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Caught = Thread->ExceptionCaught;
    Thread->ExceptionCaught = FALSE;
    return Caught;
}

NTSTATUS KeGetExceptionCode(VOID)
{
    return KiCurrentThread()->ExceptionCode;
}

PEXCEPTION_POINTERS KeGetExceptionInformation(VOID)
{
    return &KiCurrentThread()->ExceptionPointers;
}

BOOLEAN KeFilterException(LONG Disposition)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Disposition == EXCEPTION_CONTINUE_SEARCH) {
        KiPassExceptionOn(Thread);
    }
    if (Disposition < 0) {
        KiRaiseNoncontinuable(Thread, Thread->ExceptionRecord.ExceptionAddress);
    }
    return TRUE;
}

KFINALLY_STATE KeBeginFinally(VOID)
{
    KFINALLY_STATE State = {.Raised = KeIsExceptionCaught(), .Done = FALSE};
    if (State.Raised) {
        State.Exception = KiCurrentThread()->ExceptionRecord;
    }
    return State;
}

/* TRUE before the block, FALSE after it; an exception that went through is raised again. */
BOOLEAN KeContinueFinally(PKFINALLY_STATE State)
{
    if (!State->Done) {
        State->Done = TRUE;
        return TRUE;
    }
    if (State->Raised) {
        KiCurrentThread()->ExceptionRecord = State->Exception;
        KiPassExceptionOn(KiCurrentThread());
    }
    return FALSE;
}
