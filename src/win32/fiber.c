/*
 * fiber.c: fibers.
 *
 * A fiber is a stack with the registers of the code that left it (hal/fiber.c), and what belongs to that code: the frames
 * of __try and the fiber-local values. Everything else is the thread's: the current KTHREAD is that of the host thread,
 * which a switch does not change, so a fiber waits, owns and is interrupted as the thread that runs it.
 *
 * 1. Running is claimed before a thread switches to the fiber or deletes it. It is cleared after the switch, by the code
 *    that the thread runs next: before that the registers are not on the stack yet.
 * 2. A thread ends on its own stack: a fiber whose routine returns, or that exits its thread or deletes itself, switches
 *    to the fiber that ConvertThreadToFiber made, which then exits. If that fiber was deleted or runs elsewhere, the
 *    thread ends on the stack of the current fiber, and releases the fiber at the very end, when the host has left the
 *    stack.
 * 3. A thread finds its ThreadFiber under BaseFiberLock, and DeleteFiber clears it there: another thread may delete it.
 * 4. A fiber that has ended its thread cannot be switched to. It stays until it is deleted.
 */
#include "../hal/hal.h"
#include "base.h"

#define BASE_FIBER_SIGNATURE 0x72626946u /* "Fibr" */
#define BASE_FIBER_DEFAULT_STACK (1024 * 1024)
#define BASE_FIBER_EXIT_CODE 1 /* of a thread whose fiber has returned */

typedef struct _BASE_FIBER {
    PVOID FiberData;                 /* first: programs read it through GetCurrentFiber */
    ULONG Signature;
    volatile ULONG Running;          /* claimed by a thread */
    LPFIBER_START_ROUTINE Start;
    struct _BASE_FLS *Fls;           /* while it does not run */
    PVOID ExceptionList;             /* likewise */
    PBASE_THREAD Thread;             /* of a fiber that ConvertThreadToFiber made, under the lock; else NULL */
    BOOLEAN Deleted;                 /* the code that runs next frees it */
    HAL_FIBER Hal;
} BASE_FIBER, *PBASE_FIBER;

static KI_LOCK BaseFiberLock;

static BOOLEAN BaseClaimFiber(PBASE_FIBER Fiber)
{
    ULONG Free = 0;
    /* acquire: pairs with the release in BaseReleaseFiber; the registers are on the stack */
    return __atomic_compare_exchange_n(&Fiber->Running, &Free, 1, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static VOID BaseFreeFiber(PBASE_FIBER Fiber)
{
    HalDeleteFiber(&Fiber->Hal);
    Fiber->Signature = 0;
    HalFree(Fiber);
}

/* No thread is on its stack any more. */
static VOID BaseReleaseFiber(PBASE_FIBER Fiber)
{
    if (Fiber->Deleted) {
        BaseFreeFiber(Fiber);
    } else {
        __atomic_store_n(&Fiber->Running, 0, __ATOMIC_RELEASE);
    }
}

/* Switching. */

static VOID BaseLeaveFiber(PBASE_FIBER Next)
{
    PKTHREAD Thread = KiCurrentThread();
    PBASE_THREAD Own = BaseThread(Thread);
    PBASE_FIBER Current = Own->Fiber;
    Current->ExceptionList = Thread->ExceptionList;
    Thread->ExceptionList = Next->ExceptionList;
    Current->Fls = Own->Fls;
    Own->Fls = Next->Fls;
    Own->PreviousFiber = Current;
    Own->Fiber = Next;
}

/* On the stack of the new fiber. Not inline: the thread may be another one than before the switch. */
static DECLSPEC_NOINLINE VOID BaseArriveOnFiber(VOID)
{
    PBASE_THREAD Own = BaseCurrentThread();
    PBASE_FIBER Previous = Own->PreviousFiber;
    Own->PreviousFiber = NULL;
    HalFinishSwitch(&Own->Fiber->Hal, &Previous->Hal);
    BaseReleaseFiber(Previous);
    if (Own->ExitPending) {
        ExitThread(Own->ExitCode);
    }
}

/* Next is claimed. */
static DECLSPEC_NOINLINE VOID BaseSwitchFiber(PBASE_FIBER Current, PBASE_FIBER Next)
{
    BaseLeaveFiber(Next);
    HalSwitchFiber(&Current->Hal, &Next->Hal);
    BaseArriveOnFiber();
}

VOID SwitchToFiber(LPVOID lpFiber)
{
    PBASE_FIBER Next = lpFiber;
    PBASE_FIBER Current = BaseCurrentThread()->Fiber;
    if (Next == NULL || Current == NULL || Next->Signature != BASE_FIBER_SIGNATURE) {
        RtlRaiseStatus(STATUS_INVALID_PARAMETER);
    }
    if (Next == Current) {
        return;
    }
    if (Next->Hal.Ends || !BaseClaimFiber(Next)) {
        RtlRaiseStatus(STATUS_INVALID_PARAMETER);
    }
    BaseSwitchFiber(Current, Next);
}

/* The end of a thread. */

/* The fiber on the thread's own stack, claimed; NULL: it was deleted, or runs elsewhere. */
static PBASE_FIBER BaseClaimThreadFiber(PBASE_THREAD Own)
{
    PKTHREAD Thread = KiEnterLocked(&BaseFiberLock);
    PBASE_FIBER Fiber = Own->ThreadFiber;
    if (Fiber != NULL && !BaseClaimFiber(Fiber)) {
        Fiber = NULL;
    }
    KiExitLocked(&BaseFiberLock, Thread);
    return Fiber;
}

VOID BaseLeaveFiberToExit(DWORD ExitCode)
{
    PBASE_THREAD Own = BaseCurrentThread();
    PBASE_FIBER Current = Own->Fiber;
    if (Current == NULL || Current->Hal.Stack == NULL) {
        return;
    }
    PBASE_FIBER Home = BaseClaimThreadFiber(Own);
    if (Home == NULL) {
        return;
    }
    BaseEndFls(Own->Fls);
    Own->Fls = NULL;
    Own->ExitCode = ExitCode;
    Own->ExitPending = TRUE;
    Current->Hal.Ends = TRUE;
    BaseSwitchFiber(Current, Home);
}

static VOID BaseForgetThreadFiber(PBASE_FIBER Fiber)
{
    PKTHREAD Thread = KiEnterLocked(&BaseFiberLock);
    if (Fiber->Thread != NULL) {
        Fiber->Thread->ThreadFiber = NULL;
        Fiber->Thread = NULL;
    }
    KiExitLocked(&BaseFiberLock, Thread);
}

static VOID BaseLetGoOfFiber(PBASE_FIBER *Place, BOOLEAN WasTerminated)
{
    PBASE_FIBER Fiber = *Place;
    if (Fiber != NULL && !HalIsOnStack(&Fiber->Hal)) {
        *Place = NULL;
        Fiber->Hal.Ends = TRUE;
        if (WasTerminated) {
            Fiber->Hal.ThreadSanitizer = NULL; /* which still counts as running */
        }
        BaseReleaseFiber(Fiber);
    }
}

/* Rule 2. The routines of a thread's end run twice: the first time the host may still be on the fiber's stack. */
VOID BaseThreadLeavesFibers(PBASE_THREAD Own, BOOLEAN WasTerminated)
{
    PBASE_FIBER Home = Own->ThreadFiber;
    if (Home != NULL) {
        BaseForgetThreadFiber(Home);
    }
    BaseLetGoOfFiber(&Own->Fiber, WasTerminated);
    BaseLetGoOfFiber(&Own->LeftFiber, WasTerminated);
}

/* Making and deleting. */

static PBASE_FIBER BaseAllocateFiber(LPVOID Parameter)
{
    PBASE_FIBER Fiber = HalAllocate(sizeof(*Fiber), MEMORY_ALLOCATION_ALIGNMENT);
    if (Fiber == NULL) {
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    BaseWatchThreadExits();
    Fiber->Signature = BASE_FIBER_SIGNATURE;
    Fiber->FiberData = Parameter;
    return Fiber;
}

static BOOLEAN BaseAreFiberFlags(DWORD Flags)
{
    if ((Flags & ~(DWORD)FIBER_FLAG_FLOAT_SWITCH) != 0) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    return TRUE;
}

LPVOID ConvertThreadToFiberEx(LPVOID lpParameter, DWORD dwFlags)
{
    PBASE_THREAD Own = BaseCurrentThread();
    PBASE_FIBER Fiber;
    if (!BaseAreFiberFlags(dwFlags)) {
        return NULL;
    }
    if (Own->Fiber != NULL) {
        RtlSetLastWin32Error(ERROR_ALREADY_FIBER);
        return NULL;
    }
    Fiber = BaseAllocateFiber(lpParameter);
    if (Fiber == NULL) {
        return NULL;
    }
    HalInitializeThreadFiber(&Fiber->Hal, (dwFlags & FIBER_FLAG_FLOAT_SWITCH) != 0);
    Fiber->Running = 1;
    Own->Fiber = Fiber;
    if (Own->LeftFiber == NULL) {
        Fiber->Thread = Own;
        Own->ThreadFiber = Fiber;
    }
    return Fiber;
}

LPVOID ConvertThreadToFiber(LPVOID lpParameter)
{
    return ConvertThreadToFiberEx(lpParameter, 0);
}

BOOL ConvertFiberToThread(VOID)
{
    PBASE_THREAD Own = BaseCurrentThread();
    PBASE_FIBER Fiber = Own->Fiber;
    if (Fiber == NULL) {
        RtlSetLastWin32Error(ERROR_ALREADY_THREAD);
        return FALSE;
    }
    BaseForgetThreadFiber(Fiber);
    Own->Fiber = NULL;
    if (HalIsOnStack(&Fiber->Hal)) {
        Fiber->Deleted = TRUE;
        Own->LeftFiber = Fiber;
    } else {
        BaseFreeFiber(Fiber);
    }
    return TRUE;
}

static DECLSPEC_NORETURN VOID BaseRunFiber(PVOID Context)
{
    PBASE_FIBER Fiber = Context;
    BaseArriveOnFiber();
    Fiber->Start(Fiber->FiberData);
    ExitThread(BASE_FIBER_EXIT_CODE);
}

LPVOID CreateFiberEx(SIZE_T dwStackCommitSize, SIZE_T dwStackReserveSize, DWORD dwFlags,
                     LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter)
{
    SIZE_T Size = dwStackReserveSize != 0 ? dwStackReserveSize : BASE_FIBER_DEFAULT_STACK;
    BOOLEAN SwitchFloat = (dwFlags & FIBER_FLAG_FLOAT_SWITCH) != 0;
    PBASE_FIBER Fiber;
    NTSTATUS Status;
    if (!BaseAreFiberFlags(dwFlags)) {
        return NULL;
    }
    Fiber = BaseAllocateFiber(lpParameter);
    if (Fiber == NULL) {
        return NULL;
    }
    Fiber->Start = lpStartAddress;
    Status = HalCreateFiber(&Fiber->Hal, Size > dwStackCommitSize ? Size : dwStackCommitSize, SwitchFloat, BaseRunFiber,
                            Fiber);
    if (!NT_SUCCESS(Status)) {
        HalFree(Fiber);
        BaseSetLastNTError(Status);
        return NULL;
    }
    return Fiber;
}

LPVOID CreateFiber(SIZE_T dwStackSize, LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter)
{
    return CreateFiberEx(dwStackSize, 0, 0, lpStartAddress, lpParameter);
}

VOID DeleteFiber(LPVOID lpFiber)
{
    PBASE_FIBER Fiber = lpFiber;
    PBASE_THREAD Own = BaseCurrentThread();
    if (Fiber == NULL || Fiber->Signature != BASE_FIBER_SIGNATURE) {
        RtlRaiseStatus(STATUS_INVALID_PARAMETER);
    }
    if (Fiber == Own->Fiber) {
        Fiber->Deleted = TRUE;
        ExitThread(BASE_FIBER_EXIT_CODE);
    }
    if (!BaseClaimFiber(Fiber)) {
        RtlRaiseStatus(STATUS_INVALID_PARAMETER);
    }
    BaseForgetThreadFiber(Fiber);
    BaseEndFls(Fiber->Fls);
    BaseFreeFiber(Fiber);
}

/* The current fiber. */

PVOID GetCurrentFiber(VOID)
{
    return BaseCurrentThread()->Fiber;
}

PVOID GetFiberData(VOID)
{
    PBASE_FIBER Fiber = BaseCurrentThread()->Fiber;
    return Fiber != NULL ? Fiber->FiberData : NULL;
}

BOOL IsThreadAFiber(VOID)
{
    return BaseCurrentThread()->Fiber != NULL;
}

VOID GetCurrentThreadStackLimits(PULONG_PTR LowLimit, PULONG_PTR HighLimit)
{
    PBASE_THREAD Own = BaseCurrentThread();
    PBASE_FIBER Fiber = Own->LeftFiber != NULL ? Own->LeftFiber : Own->Fiber;
    if (Fiber != NULL && HalIsOnStack(&Fiber->Hal)) {
        *LowLimit = (ULONG_PTR)Fiber->Hal.Stack;
        *HighLimit = *LowLimit + Fiber->Hal.StackSize;
    } else {
        HalQueryStackLimits(LowLimit, HighLimit);
    }
}
