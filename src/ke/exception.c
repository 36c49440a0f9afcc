/*
 * exception.c: raising a status, and the frames that catch it.
 *
 * A thread's frames are a list, innermost first; each is on the stack of the function that has the __try. Frames are
 * left in the reverse order of their entering, so the innermost frame is always the one to leave, and a raise takes it
 * off and jumps to it. Its __except or __finally then asks whether something was caught: that question comes directly
 * after the frame's block, so the answer belongs to that frame.
 *
 * Others are asked too, where a program runs (below DISPATCH_LEVEL): the handlers of the process before the frames, its
 * last filter after them. They run where the exception was raised, with the stack as it was, so that they may continue:
 * then the raise returns, or, if it cannot, STATUS_NONCONTINUABLE_EXCEPTION goes to the frames. A frame that passes on
 * what it has got goes to the frames around it and to the last filter; the handlers have been asked.
 *
 * An interrupt service routine, an IPI function and a DPC run on the stack of whatever thread was there. They start
 * with an empty list, so what they raise and don't catch is a bugcheck and never ends up in that thread's handler.
 */
#include <interlock/exception.h>

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

/* Frames inside this one are gone too when the block was left by a jump of the program's own. */
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

/* A program's handlers are not asked at a level where a program cannot be. */
static LONG KiAskRoutine(KI_EXCEPTION_ROUTINE *volatile *Routine, PKTHREAD Thread, PEXCEPTION_RECORD Record)
{
    EXCEPTION_POINTERS Exception = {.ExceptionRecord = Record, .ContextRecord = NULL};
    /* acquire: pairs with the release of whoever has registered it, whose list it uses */
    KI_EXCEPTION_ROUTINE *Ask = __atomic_load_n(Routine, __ATOMIC_ACQUIRE);
    return Ask != NULL && Thread->Irql < DISPATCH_LEVEL ? Ask(&Exception) : EXCEPTION_CONTINUE_SEARCH;
}

static DECLSPEC_NORETURN VOID KiExceptionNotHandled(PEXCEPTION_RECORD Record)
{
    KeBugCheckEx(KMODE_EXCEPTION_NOT_HANDLED, (ULONG_PTR)(LONG_PTR)Record->ExceptionCode,
                 (ULONG_PTR)Record->ExceptionAddress, Record->ExceptionInformation[0], Record->ExceptionInformation[1]);
}

/* Returns if no frame is left and the last one to be asked continues. */
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

/* Whoever continued what cannot be continued is not asked about that again. */
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

/* A frame passes on what it has got: the frames around it are next. The place of the raise is gone by now. */
static DECLSPEC_NORETURN VOID KiPassOn(PKTHREAD Thread)
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
        KiPassOn(Thread);
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

/* TRUE before the block, FALSE after it; what went through is raised again. */
BOOLEAN KeContinueFinally(PKFINALLY_STATE State)
{
    if (!State->Done) {
        State->Done = TRUE;
        return TRUE;
    }
    if (State->Raised) {
        KiCurrentThread()->ExceptionRecord = State->Exception;
        KiPassOn(KiCurrentThread());
    }
    return FALSE;
}
