/*
 * timer.c: timers by handle.
 *
 * 1. Lock guards everything but the kernel timer itself. It is held while the kernel timer is set or cancelled, so the
 *    setting that expires is the last one. Lock order: Lock, the kernel timer's lock, the lock of a thread's list, the
 *    lock of its APC queue.
 * 2. A timer set with an APC routine belongs to the thread that set it: it is on the thread's list, which holds a
 *    reference on it, until it is set again, cancelled, or its last APC has begun. Thread is that thread, and NULL at
 *    all other times.
 * 3. The APC is queued at expiry, under the kernel timer's lock (KI_TIMER_CALL). A queued APC holds a reference of its
 *    own, which belongs to the thread that removes it from the queue. So an APC that is being delivered keeps the timer
 *    even if another thread cancels it; it then finds that the timer is no longer its thread's, and does nothing.
 * 4. A thread's end cancels its timers. A forked child cancels those of the threads that stayed behind.
 * 5. A shared timer is set and expires in the world. ApcTimer is a local timer with the same setting for the APC of the
 *    process that set it: it queues the APC only if the timer is still the one that was set (Arming).
 */
#include "../ke/timer.h"
#include "../ob/share.h"
#include "../ps/psp.h"
#include "ntp.h"

#define NTP_UNITS_PER_MILLISECOND 10000ull

typedef struct _NTP_TIMER {
    KTIMER Timer;
    KI_TIMER_CALL Call;
    KI_LOCK Lock;
    BOOLEAN Periodic;
    PETHREAD Thread;
    LIST_ENTRY ActiveTimerListEntry;
    KAPC Apc;
    KTIMER ApcTimer;
    ULONG64 Arming;
} NTP_TIMER, *PNTP_TIMER;

/* What expires in this process. */
static PKTIMER NtpLocalTimer(PNTP_TIMER Timer)
{
    return KiIsOutside(&Timer->Timer.Header) ? &Timer->ApcTimer : &Timer->Timer;
}

static VOID NtpDeleteTimer(PVOID Object)
{
    KeCancelTimer(NtpLocalTimer(Object));
}

static VOID NtpQueueTimerApc(PKI_TIMER_CALL Call, ULARGE_INTEGER SystemTime);

static VOID NtpRepresentTimer(PVOID Proxy, POBP_SHARE Share)
{
    PNTP_TIMER Timer = Proxy;
    UNREFERENCED_PARAMETER(Share);
    KeInitializeTimer(&Timer->ApcTimer);
    Timer->Call.Routine = NtpQueueTimerApc;
}

static const OBP_SHARING NtpTimerSharing = {
    .Kinds = OBP_KIND(WoNotificationTimer) | OBP_KIND(WoSynchronizationTimer),
    .BodySize = sizeof(NTP_TIMER),
    .Represent = NtpRepresentTimer,
};

static OBJECT_TYPE NtpTimerType = {
    .Name = "Timer",
    .GenericMapping = {STANDARD_RIGHTS_READ | TIMER_QUERY_STATE, STANDARD_RIGHTS_WRITE | TIMER_MODIFY_STATE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, TIMER_ALL_ACCESS},
    .ValidAccessMask = TIMER_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = FIELD_OFFSET(NTP_TIMER, Timer),
    .DeleteProcedure = NtpDeleteTimer,
    .Sharing = &NtpTimerSharing,
};

OBP_REGISTER_TYPE(NtpTimerType);

static VOID NtpLockTimer(PNTP_TIMER Timer, PKTHREAD Current)
{
    KiEnterDispatcher(Current);
    KiAcquireLock(&Timer->Lock);
}

/* Also returns this many references on the timer. */
static VOID NtpUnlockTimer(PNTP_TIMER Timer, PKTHREAD Current, LONG_PTR References)
{
    KiReleaseLock(&Timer->Lock);
    KiExitDispatcher(Current);
    if (References != 0) {
        ObpDereferenceObjectEx(Timer, References);
    }
}

/* With the timer locked. */
static VOID NtpLeaveThread(PNTP_TIMER Timer)
{
    PNTP_THREAD Owner = NtpThread(&Timer->Thread->Tcb);
    KiAcquireLock(&Owner->ActiveTimerListLock);
    RemoveEntryList(&Timer->ActiveTimerListEntry);
    KiReleaseLock(&Owner->ActiveTimerListLock);
    Timer->Thread = NULL;
}

/* With the timer locked. Returns how many references on it the caller must return. */
static LONG_PTR NtpDisarmTimer(PNTP_TIMER Timer)
{
    LONG_PTR References = 0;
    KeCancelTimer(NtpLocalTimer(Timer));
    if (Timer->Thread != NULL) {
        References = KeRemoveQueueApc(&Timer->Apc) ? 2 : 1;
        NtpLeaveThread(Timer);
    }
    return References;
}

/* Called at expiry, with the kernel timer locked. */
static VOID NtpQueueTimerApc(PKI_TIMER_CALL Call, ULARGE_INTEGER SystemTime)
{
    PNTP_TIMER Timer = CONTAINING_RECORD(Call, NTP_TIMER, Call);
    PKI_OUTSIDE Outside = KiOutsideOf(&Timer->Timer.Header);
    if (Outside != NULL && !KiOutsideOperations->IsArmed(Outside, Timer->Arming)) {
        return; /* another process has set or cancelled it */
    }
    ObpReferenceObjectEx(Timer, 1);
    if (!KeInsertQueueApc(&Timer->Apc, ULongToPtr(SystemTime.LowPart), ULongToPtr(SystemTime.HighPart),
                          IO_NO_INCREMENT)) {
        ObpDereferenceObjectEx(Timer, 1); /* not the last one: the thread's list holds another */
    }
}

/* FALSE: the timer has left the thread since the APC was queued. */
static BOOLEAN NtpTakeTimerApc(PKAPC Apc, PETHREAD Thread, BOOLEAN Last)
{
    PNTP_TIMER Timer = CONTAINING_RECORD(Apc, NTP_TIMER, Apc);
    PKTHREAD Current = KiCurrentThread();
    LONG_PTR References = 1;
    BOOLEAN Mine;
    NtpLockTimer(Timer, Current);
    Mine = Timer->Thread == Thread;
    if (Mine && (Last || !Timer->Periodic)) {
        NtpLeaveThread(Timer);
        References += 1;
    }
    NtpUnlockTimer(Timer, Current, References);
    return Mine;
}

static VOID NtpTimerApcKernel(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext, PVOID *SystemArgument1,
                              PVOID *SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    if (!NtpTakeTimerApc(Apc, PsGetCurrentThread(), FALSE)) {
        *NormalRoutine = NULL;
    }
}

static VOID NtpTimerApcRundown(PKAPC Apc)
{
    NtpTakeTimerApc(Apc, (PETHREAD)Apc->Thread, TRUE);
}

static PNTP_TIMER NtpReferenceFirstTimer(PETHREAD Thread, PKTHREAD Current)
{
    PNTP_TIMER Timer = NULL;
    PNTP_THREAD Owner = NtpThread(&Thread->Tcb);
    PLIST_ENTRY Head = &Owner->ActiveTimerListHead;
    KiEnterDispatcher(Current);
    KiAcquireLock(&Owner->ActiveTimerListLock);
    if (Head->Flink != NULL && !IsListEmpty(Head)) {
        Timer = CONTAINING_RECORD(Head->Flink, NTP_TIMER, ActiveTimerListEntry);
        ObpReferenceObjectEx(Timer, 1);
    }
    KiReleaseLock(&Owner->ActiveTimerListLock);
    KiExitDispatcher(Current);
    return Timer;
}

/* With the timer locked. Cancels a shared timer if it is still the one that was set here, or in any case for *State. */
static NTSTATUS NtpCancelOutside(PNTP_TIMER Timer, PBOOLEAN State)
{
    PKI_OUTSIDE Outside = KiOutsideOf(&Timer->Timer.Header);
    BOOLEAN Previous;
    if (Outside == NULL || (State == NULL && !KiOutsideOperations->IsArmed(Outside, Timer->Arming))) {
        return STATUS_SUCCESS;
    }
    return KiOutsideOperations->CancelTimer(Outside, State != NULL ? State : &Previous);
}

static VOID NtpCancelTimersOf(PETHREAD Thread, BOOLEAN WasTerminated)
{
    PKTHREAD Current = KiCurrentThread();
    PNTP_TIMER Timer;
    UNREFERENCED_PARAMETER(WasTerminated);
    while ((Timer = NtpReferenceFirstTimer(Thread, Current)) != NULL) {
        LONG_PTR References = 1;
        NtpLockTimer(Timer, Current);
        if (Timer->Thread == Thread) {
            References += NtpDisarmTimer(Timer);
            NtpCancelOutside(Timer, NULL);
        }
        NtpUnlockTimer(Timer, Current, References);
    }
}

static VOID NtpCancelTimersOfOrphan(PKTHREAD Thread)
{
    NtpCancelTimersOf((PETHREAD)Thread, TRUE);
}

static VOID NtpRegisterTimerExit(VOID)
{
    PspRegisterThreadExit(NtpCancelTimersOf);
    KiThreadObjectRoutines.Orphan = NtpCancelTimersOfOrphan;
}
KI_INITIALIZER(KiInitializeServices, NtpRegisterTimerExit);

static NTSTATUS NtpInitializeTimer(PVOID Object, PVOID Context)
{
    PNTP_TIMER Timer = Object;
    KeInitializeTimerEx(&Timer->Timer, *(TIMER_TYPE *)Context);
    KeInitializeTimer(&Timer->ApcTimer);
    Timer->Call.Routine = NtpQueueTimerApc;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpCreateTimer(KPROCESSOR_MODE Mode, PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                               POBJECT_ATTRIBUTES ObjectAttributes, TIMER_TYPE TimerType)
{
    OBP_BLUEPRINT Blueprint = {&NtpTimerType, sizeof(NTP_TIMER), NtpInitializeTimer, &TimerType};
    if (!NtpClearHandle(TimerHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (TimerType != NotificationTimer && TimerType != SynchronizationTimer) {
        return STATUS_INVALID_PARAMETER_4;
    }
    return ObpCreateHandleAs(Mode, &Blueprint, ObjectAttributes, DesiredAccess, TimerHandle);
}

NTSTATUS NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       TIMER_TYPE TimerType)
{
    return NTP_SERVICE(NtpCreateTimer(UserMode, TimerHandle, DesiredAccess, ObjectAttributes, TimerType));
}

NTSTATUS ZwCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       TIMER_TYPE TimerType)
{
    return NTP_SERVICE(NtpCreateTimer(KernelMode, TimerHandle, DesiredAccess, ObjectAttributes, TimerType));
}

NTSTATUS NtOpenTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(UserMode, &NtpTimerType, ObjectAttributes, DesiredAccess, TimerHandle));
}

NTSTATUS ZwOpenTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(KernelMode, &NtpTimerType, ObjectAttributes, DesiredAccess, TimerHandle));
}

/* The arguments of every service that sets a timer. */
typedef struct _NTP_TIMER_SETTING {
    KPROCESSOR_MODE Mode;
    LARGE_INTEGER DueTime;
    PTIMER_APC_ROUTINE ApcRoutine;
    PVOID ApcContext;
    ULONG Period;         /* ms */
    ULONG TolerableDelay; /* ms */
    PBOOLEAN PreviousState;
} NTP_TIMER_SETTING, *PNTP_TIMER_SETTING;

/* With the timer locked. */
static NTSTATUS NtpArmTimer(PNTP_TIMER Timer, PNTP_TIMER_SETTING Setting, PKTHREAD Current, PBOOLEAN Previous)
{
    PKI_OUTSIDE Outside = KiOutsideOf(&Timer->Timer.Header);
    KI_TIMER_SETTING KernelSetting = {
        .DueTime = Setting->DueTime.QuadPart,
        .Period = Setting->Period,
        .Type = KiEncodeTolerance(Setting->TolerableDelay * NTP_UNITS_PER_MILLISECOND),
        .Exact = TRUE,
    };
    Timer->Periodic = Setting->Period != 0;
    if (Outside != NULL) {
        NTSTATUS Status = KiOutsideOperations->SetTimer(Outside, Setting->DueTime.QuadPart, Setting->Period, &Timer->Arming,
                                                        Previous);
        if (!NT_SUCCESS(Status) || Setting->ApcRoutine == NULL) {
            return Status;
        }
    } else {
        *Previous = KeReadStateTimer(&Timer->Timer);
    }
    if (Setting->ApcRoutine != NULL) {
        KeInitializeApc(&Timer->Apc, Current, CurrentApcEnvironment, NtpTimerApcKernel, NtpTimerApcRundown,
                        (PKNORMAL_ROUTINE)(PVOID)Setting->ApcRoutine, Setting->Mode, Setting->ApcContext);
        PNTP_THREAD Own = NtpThread(Current);
        KiAcquireLock(&Own->ActiveTimerListLock);
        if (Own->ActiveTimerListHead.Flink == NULL) {
            InitializeListHead(&Own->ActiveTimerListHead);
        }
        InsertTailList(&Own->ActiveTimerListHead, &Timer->ActiveTimerListEntry);
        KiReleaseLock(&Own->ActiveTimerListLock);
        Timer->Thread = (PETHREAD)Current;
        ObpReferenceObjectEx(Timer, 1);
        KernelSetting.Call = &Timer->Call;
    }
    KiSetTimer(NtpLocalTimer(Timer), &KernelSetting);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetTimerByHandle(HANDLE TimerHandle, PNTP_TIMER_SETTING Setting)
{
    PKTHREAD Current = KiCurrentThread();
    PVOID Object;
    PNTP_TIMER Timer;
    BOOLEAN Previous;
    LONG_PTR References;
    NTSTATUS Status =
        ObReferenceObjectByHandle(TimerHandle, TIMER_MODIFY_STATE, &NtpTimerType, Setting->Mode, &Object, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Timer = Object;
    Status = KiEnsureClock();
    if (!NT_SUCCESS(Status)) {
        ObDereferenceObject(Timer);
        return Status;
    }
    NtpLockTimer(Timer, Current);
    References = 1 + NtpDisarmTimer(Timer);
    Status = NtpArmTimer(Timer, Setting, Current, &Previous);
    NtpUnlockTimer(Timer, Current, References);
    if (NT_SUCCESS(Status) && Setting->PreviousState != NULL) {
        *Setting->PreviousState = Previous;
    }
    return Status;
}

/* A timer cannot wake the machine: sleep is up to the host. */
static NTSTATUS NtpResumeIgnored(NTSTATUS Status, BOOLEAN Resume)
{
    return NT_SUCCESS(Status) && Resume ? STATUS_TIMER_RESUME_IGNORED : Status;
}

static NTSTATUS NtpSetTimer(KPROCESSOR_MODE Mode, HANDLE TimerHandle, PLARGE_INTEGER DueTime,
                            PTIMER_APC_ROUTINE TimerApcRoutine, PVOID TimerContext, BOOLEAN ResumeTimer, LONG Period,
                            PBOOLEAN PreviousState)
{
    NTP_TIMER_SETTING Setting = {.Mode = Mode,
                                 .ApcRoutine = TimerApcRoutine,
                                 .ApcContext = TimerContext,
                                 .Period = (ULONG)Period,
                                 .PreviousState = PreviousState};
    if (DueTime == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Period < 0) {
        return STATUS_INVALID_PARAMETER_6;
    }
    Setting.DueTime = *DueTime;
    return NtpResumeIgnored(NtpSetTimerByHandle(TimerHandle, &Setting), ResumeTimer);
}

NTSTATUS NtSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PTIMER_APC_ROUTINE TimerApcRoutine, PVOID TimerContext,
                    BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState)
{
    return NTP_SERVICE(NtpSetTimer(UserMode, TimerHandle, DueTime, TimerApcRoutine, TimerContext, ResumeTimer, Period,
                                   PreviousState));
}

NTSTATUS ZwSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PTIMER_APC_ROUTINE TimerApcRoutine, PVOID TimerContext,
                    BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState)
{
    return NTP_SERVICE(NtpSetTimer(KernelMode, TimerHandle, DueTime, TimerApcRoutine, TimerContext, ResumeTimer,
                                   Period, PreviousState));
}

static NTSTATUS NtpSetTimerEx(KPROCESSOR_MODE Mode, HANDLE TimerHandle, TIMER_SET_INFORMATION_CLASS InformationClass,
                              PVOID Information, ULONG Length)
{
    PTIMER_SET_COALESCABLE_TIMER_INFO Info = Information;
    NTP_TIMER_SETTING Setting;
    NTSTATUS Status = NtpCheckQuery(InformationClass == TimerSetCoalescableTimer, Information, Length, sizeof(*Info));
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (Info->Period > MAXLONG || Info->TolerableDelay > MAXLONG) {
        return STATUS_INVALID_PARAMETER;
    }
    Setting = (NTP_TIMER_SETTING){Mode,         Info->DueTime,        Info->TimerApcRoutine, Info->TimerContext,
                                  Info->Period, Info->TolerableDelay, Info->PreviousState};
    return NtpResumeIgnored(NtpSetTimerByHandle(TimerHandle, &Setting), Info->WakeContext != NULL);
}

NTSTATUS NtSetTimerEx(HANDLE TimerHandle, TIMER_SET_INFORMATION_CLASS TimerSetInformationClass,
                      PVOID TimerSetInformation, ULONG TimerSetInformationLength)
{
    return NTP_SERVICE(NtpSetTimerEx(UserMode, TimerHandle, TimerSetInformationClass, TimerSetInformation,
                                     TimerSetInformationLength));
}

NTSTATUS ZwSetTimerEx(HANDLE TimerHandle, TIMER_SET_INFORMATION_CLASS TimerSetInformationClass,
                      PVOID TimerSetInformation, ULONG TimerSetInformationLength)
{
    return NTP_SERVICE(NtpSetTimerEx(KernelMode, TimerHandle, TimerSetInformationClass, TimerSetInformation,
                                     TimerSetInformationLength));
}

static NTSTATUS NtpCancelTimer(KPROCESSOR_MODE Mode, HANDLE TimerHandle, PBOOLEAN CurrentState)
{
    PKTHREAD Current = KiCurrentThread();
    PVOID Object;
    PNTP_TIMER Timer;
    BOOLEAN State;
    LONG_PTR References;
    NTSTATUS Status = ObReferenceObjectByHandle(TimerHandle, TIMER_MODIFY_STATE, &NtpTimerType, Mode, &Object, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Timer = Object;
    NtpLockTimer(Timer, Current);
    References = 1 + NtpDisarmTimer(Timer);
    if (KiIsOutside(&Timer->Timer.Header)) {
        Status = NtpCancelOutside(Timer, &State);
    } else {
        State = KeReadStateTimer(&Timer->Timer);
    }
    NtpUnlockTimer(Timer, Current, References);
    if (NT_SUCCESS(Status) && CurrentState != NULL) {
        *CurrentState = State;
    }
    return Status;
}

NTSTATUS NtCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState)
{
    return NTP_SERVICE(NtpCancelTimer(UserMode, TimerHandle, CurrentState));
}

NTSTATUS ZwCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState)
{
    return NTP_SERVICE(NtpCancelTimer(KernelMode, TimerHandle, CurrentState));
}

static LONGLONG NtpRemainingTime(ULONG64 DueTime, BOOLEAN Absolute)
{
    ULONG64 Now = Absolute ? HalDispatch.QuerySystemTime() : HalDispatch.QueryInterruptTime();
    return DueTime > Now ? (LONGLONG)(DueTime - Now) : 0;
}

static NTSTATUS NtpDescribeOutsideTimer(PKI_OUTSIDE Outside, PTIMER_BASIC_INFORMATION Information)
{
    KI_OUTSIDE_STATE State;
    NTSTATUS Status = KiOutsideOperations->QueryState(Outside, KiCurrentThread(), &State);
    if (NT_SUCCESS(Status)) {
        Information->RemainingTime.QuadPart = NtpRemainingTime(State.DueTime, State.Absolute);
        Information->TimerState = State.State != 0;
    }
    return Status;
}

static VOID NtpDescribeTimer(PKTIMER Timer, PTIMER_BASIC_INFORMATION Information)
{
    PKTHREAD Current = KiCurrentThread();
    LONGLONG RemainingTime = 0;
    ULONG64 Word;
    KiEnterDispatcher(Current);
    Word = KiLockObject(&Timer->Header);
    if (Word & KI_TIMER_INSERTED) {
        RemainingTime = NtpRemainingTime(Timer->DueTime.QuadPart, (Timer->Processor & KI_TIMER_ABSOLUTE) != 0);
    }
    KiUnlockObject(&Timer->Header, Word);
    KiExitDispatcher(Current);
    Information->RemainingTime.QuadPart = RemainingTime;
    Information->TimerState = KI_STATE(Word) != 0;
}

NTSTATUS NtQueryTimer(HANDLE TimerHandle, TIMER_INFORMATION_CLASS TimerInformationClass, PVOID TimerInformation,
                      ULONG TimerInformationLength, PULONG ReturnLength)
{
    PVOID Object;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpCheckQuery(TimerInformationClass == TimerBasicInformation, TimerInformation,
                                    TimerInformationLength, sizeof(TIMER_BASIC_INFORMATION));
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(TimerHandle, TIMER_QUERY_STATE, &NtpTimerType, UserMode, &Object, NULL);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKTIMER Timer = &((PNTP_TIMER)Object)->Timer;
    if (KiIsOutside(&Timer->Header)) {
        Status = NtpDescribeOutsideTimer(KiOutsideOf(&Timer->Header), TimerInformation);
    } else {
        NtpDescribeTimer(Timer, TimerInformation);
    }
    ObpDereferenceObjectEx(Object, 1);
    NtpReturnLength(ReturnLength, sizeof(TIMER_BASIC_INFORMATION));
    return Status;
}
