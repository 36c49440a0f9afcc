/*
 * exception.c: raising a status, and the frames that catch it.
 *
 * A thread's frames are a list, innermost first; each is on the stack of the function that has the __try. Frames are
 * left in the reverse order of their entering, so the innermost frame is always the one to leave, and a raise takes it
 * off and jumps to it. Its __except or __finally then asks whether something was caught: that question comes directly
 * after the frame's block, so the answer belongs to that frame.
 *
 * An interrupt service routine, an IPI function and a DPC run on the stack of whatever thread was there. They start
 * with an empty list, so what they raise and don't catch is a bugcheck and never ends up in that thread's handler.
 */
#include <interlock/exception.h>

#include "ki.h"

#define KI_TRY_RAISED 1
#define KI_TRY_LEFT 2

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

static DECLSPEC_NORETURN VOID KiRaiseStatusAt(NTSTATUS Status, PVOID Address)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Thread->ExceptionList == NULL) {
        KeBugCheckEx(KMODE_EXCEPTION_NOT_HANDLED, (ULONG_PTR)(LONG_PTR)Status, (ULONG_PTR)Address, 0, 0);
    }
    Thread->ExceptionCode = Status;
    Thread->ExceptionCaught = TRUE;
    KiJumpToFrame(Thread, Thread->ExceptionList, KI_TRY_RAISED);
}

DECLSPEC_NOINLINE VOID KiRaiseStatus(NTSTATUS Status)
{
    KiRaiseStatusAt(Status, __builtin_return_address(0));
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

BOOLEAN KeFilterException(LONG Disposition)
{
    if (Disposition == EXCEPTION_CONTINUE_SEARCH) {
        KiRaiseStatusAt(KeGetExceptionCode(), __builtin_return_address(0));
    }
    if (Disposition < 0) {
        KiRaiseStatusAt(STATUS_NONCONTINUABLE_EXCEPTION, __builtin_return_address(0));
    }
    return TRUE;
}

KFINALLY_STATE KeBeginFinally(VOID)
{
    KFINALLY_STATE State = {.Raised = KeIsExceptionCaught(), .Done = FALSE, .Status = KeGetExceptionCode()};
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
        KiRaiseStatusAt(State->Status, __builtin_return_address(0));
    }
    return FALSE;
}
