/* timer.c: timers of the executive. Theory in exp.h. */
#include "exp.h"

#include "../ke/irql.h"

#define EXP_TIMER_TAG ((ULONG)0x6d547845) /* "ExTm" */
#define EXP_TIMER_ATTRIBUTES (EX_TIMER_HIGH_RESOLUTION | EX_TIMER_NO_WAKE | EX_TIMER_NOTIFICATION)
/* A virtual processor never sleeps for long: the host wakes it for the program's other threads. */
#define EXP_UNLIMITED_TOLERANCE 10000000ULL

static DECLSPEC_NORETURN VOID ExpBadTimer(PEX_TIMER Timer, ULONG64 Argument)
{
    KeBugCheckEx(TIMER_OR_DPC_INVALID, 0, (ULONG_PTR)Timer, Argument, (ULONG_PTR)__builtin_return_address(0));
}

static ULONG64 ExpLockTimer(PEX_TIMER Timer, PKTHREAD Thread)
{
    KiEnterDispatcher(Thread);
    return KiLockObject(&Timer->Timer.Header);
}

static VOID ExpUnlockTimer(PEX_TIMER Timer, PKTHREAD Thread, ULONG64 Word)
{
    KiUnlockObject(&Timer->Timer.Header, Word);
    KiExitDispatcher(Thread);
}

static BOOLEAN ExpIsFinished(PEX_TIMER Timer, ULONG64 Word)
{
    return (Word & KI_TIMER2_DISABLED) && !(Word & (KI_TIMER2_INSERTED | KI_TIMER2_EXPIRING)) && Timer->Running == 0;
}

static VOID ExpEndTimer(PEX_TIMER Timer)
{
    PEXT_DELETE_CALLBACK Callback = Timer->DeleteCallback;
    PVOID Context = Timer->DeleteContext;
    ExFreePoolWithTag(Timer, EXP_TIMER_TAG);
    if (Callback != NULL) {
        Callback(Context);
    }
}

static VOID ExpTimerDpc(PKDPC Dpc, PVOID DeferredContext, PVOID SystemArgument1, PVOID SystemArgument2)
{
    PEX_TIMER Timer = DeferredContext;
    PKTHREAD Thread = KiCurrentThread();
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    ULONG64 Word = ExpLockTimer(Timer, Thread);
    Timer->Running += 1;
    ExpUnlockTimer(Timer, Thread, (Word & ~KI_TIMER2_EXPIRING) | KI_TIMER2_RUNNING);
    if (Timer->Callback != NULL) {
        Timer->Callback(Timer, Timer->CallbackContext);
    }
    Word = ExpLockTimer(Timer, Thread);
    Timer->Running -= 1;
    if (Timer->Running == 0) {
        Word &= ~KI_TIMER2_RUNNING;
    }
    BOOLEAN Finished = ExpIsFinished(Timer, Word);
    PKEVENT DeleteEvent = Timer->DeleteEvent;
    ExpUnlockTimer(Timer, Thread, Word);
    if (!Finished) {
        return; /* the timer may have been freed */
    }
    if (DeleteEvent != NULL) {
        KeSetEvent(DeleteEvent, IO_NO_INCREMENT, FALSE);
    } else {
        ExpEndTimer(Timer);
    }
}

PEX_TIMER ExAllocateTimer(PEXT_CALLBACK Callback, PVOID CallbackContext, ULONG Attributes)
{
    const ULONG Exclusive = EX_TIMER_HIGH_RESOLUTION | EX_TIMER_NO_WAKE;
    if ((Attributes & Exclusive) == Exclusive) {
        ExpBadTimer(NULL, Attributes);
    }
    if (Attributes & ~EXP_TIMER_ATTRIBUTES) {
        return NULL;
    }
    PEX_TIMER Timer = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Timer), EXP_TIMER_TAG);
    if (Timer != NULL) {
        KeInitializeTimerEx(&Timer->Timer,
                            Attributes & EX_TIMER_NOTIFICATION ? NotificationTimer : SynchronizationTimer);
        Timer->Timer.Header.Timer2ComponentId = 0; /* where a KTIMER has its size and then its place in the wheel */
        Timer->Timer.Processor = KI_TIMER_EXECUTIVE;
        KeInitializeDpc(&Timer->Dpc, ExpTimerDpc, Timer);
        Timer->Callback = Callback;
        Timer->CallbackContext = CallbackContext;
        Timer->Attributes = Attributes;
    }
    return Timer;
}

static ULONG ExpTolerance(PEX_TIMER Timer, PEXT_SET_PARAMETERS Parameters)
{
    if (Parameters == NULL) {
        return 0;
    }
    LONGLONG Tolerance = Parameters->NoWakeTolerance;
    if (Tolerance < 0 && Tolerance != EX_TIMER_UNLIMITED_TOLERANCE) {
        ExpBadTimer(Timer, (ULONG64)Tolerance);
    }
    if (!(Timer->Attributes & EX_TIMER_NO_WAKE)) {
        return 0;
    }
    if (Tolerance == EX_TIMER_UNLIMITED_TOLERANCE || (ULONG64)Tolerance > EXP_UNLIMITED_TOLERANCE) {
        return KiEncodeTolerance(EXP_UNLIMITED_TOLERANCE);
    }
    return KiEncodeTolerance((ULONG64)Tolerance);
}

BOOLEAN ExSetTimer(PEX_TIMER Timer, LONGLONG DueTime, LONGLONG Period, PEXT_SET_PARAMETERS Parameters)
{
    KI_TIMER_SETTING Setting = {
        .DueTime = DueTime,
        .Period = (ULONG)Period,
        .Type = KI_TIMER_EXECUTIVE | ExpTolerance(Timer, Parameters),
        .Dpc = &Timer->Dpc,
        .Exact = TRUE,
    };
    if (Period < 0 || Period > MAXLONG) {
        ExpBadTimer(Timer, (ULONG64)Period);
    }
    if ((Timer->Attributes & EX_TIMER_HIGH_RESOLUTION) && DueTime >= 0) {
        ExpBadTimer(Timer, (ULONG64)DueTime);
    }
    return KiSetTimer(&Timer->Timer, &Setting);
}

BOOLEAN ExCancelTimer(PEX_TIMER Timer, PEXT_CANCEL_PARAMETERS Parameters)
{
    PKTHREAD Thread = KiCurrentThread();
    UNREFERENCED_PARAMETER(Parameters);
    ULONG64 Word = ExpLockTimer(Timer, Thread);
    BOOLEAN Cancelled = !(Word & KI_TIMER2_DISABLED) && KiRemoveTimer(&Timer->Timer, KI_TIMER_EXECUTIVE, &Word);
    ExpUnlockTimer(Timer, Thread, Word);
    return Cancelled;
}

BOOLEAN ExDeleteTimer(PEX_TIMER Timer, BOOLEAN Cancel, BOOLEAN Wait, PEXT_DELETE_PARAMETERS Parameters)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Cancelled = FALSE;
    KEVENT Event;

    if (Wait && !Cancel) {
        ExpBadTimer(Timer, Wait);
    }
    if (Wait && Thread->Irql > APC_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Timer, Thread->Irql, 0, (ULONG_PTR)__builtin_return_address(0));
    }
    KeInitializeEvent(&Event, NotificationEvent, FALSE);
    ULONG64 Word = ExpLockTimer(Timer, Thread);
    if (Word & KI_TIMER2_DISABLED) {
        ExpUnlockTimer(Timer, Thread, Word);
        return FALSE;
    }
    Word |= KI_TIMER2_DISABLED;
    if (Cancel) {
        Cancelled = KiRemoveTimer(&Timer->Timer, KI_TIMER_EXECUTIVE, &Word);
    } else {
        Timer->Timer.Period = 0; /* it expires a last time, and its DPC frees it */
    }
    if (Parameters != NULL) {
        Timer->DeleteCallback = Parameters->DeleteCallback;
        Timer->DeleteContext = Parameters->DeleteContext;
    }
    BOOLEAN Finished = ExpIsFinished(Timer, Word);
    Timer->DeleteEvent = Wait && !Finished ? &Event : NULL;
    ExpUnlockTimer(Timer, Thread, Word | (Cancel && !Finished ? KI_TIMER2_CANCEL_PENDING : 0));

    if (Wait && !Finished) {
        KeWaitForSingleObject(&Event, Executive, KernelMode, FALSE, NULL);
        Finished = TRUE;
    }
    if (Finished) {
        ExpEndTimer(Timer);
    }
    return Cancelled;
}
