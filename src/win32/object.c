/*
 * object.c: objects with handles and names: events, semaphores, mutexes, waitable timers, completion ports; waits for them;
 * and handles of any kind.
 *
 * A Win32 name is a path below \BaseNamedObjects, where Local, Global and Session are links. Any other backslash
 * separates directories, which must exist. A name that begins with the prefix of a private namespace is a path below that.
 */
#include <interlock/io.h>
#include <interlock/win32/extra.h>

#include "base.h"

#define BASE_DIRECTORY u"\\BaseNamedObjects\\"
#define BASE_TIMER_FLAGS (CREATE_WAITABLE_TIMER_MANUAL_RESET | CREATE_WAITABLE_TIMER_HIGH_RESOLUTION)

/* Names. */

/* The attributes for the Nt service, with room for the longest path and its null character. */
typedef struct _BASE_OBJECT_ATTRIBUTES {
    OBJECT_ATTRIBUTES Attributes;
    HANDLE Namespace; /* where Path begins; NULL: at the root */
    UNICODE_STRING Path;
    WCHAR Buffer[sizeof(BASE_DIRECTORY) / sizeof(WCHAR) + MAX_PATH];
} BASE_OBJECT_ATTRIBUTES, *PBASE_OBJECT_ATTRIBUTES;

typedef WCHAR BASE_WIDE_NAME[MAX_PATH + 1];

/* An A form: Call is its W form with the name Wide. */
#define BASE_WITH_WIDE_NAME(Name, Call)                                                                                \
    ({                                                                                                                 \
        BASE_WIDE_NAME Buffer;                                                                                         \
        LPCWSTR Wide;                                                                                                  \
        NTSTATUS Status = BaseWidenName(Name, Buffer, &Wide);                                                          \
        BaseBoolStatus(Status) ? (Call) : NULL;                                                                        \
    })

/* The empty name is the directory itself. */
static NTSTATUS BaseFormatPath(PBASE_OBJECT_ATTRIBUTES Object, LPCWSTR Name)
{
    SIZE_T Directory = sizeof(BASE_DIRECTORY) - sizeof(WCHAR);
    SIZE_T Length = InterlockWcsnlen(Name, MAX_PATH + 1);
    SIZE_T Prefix = 0;
    if (Length > MAX_PATH) {
        return STATUS_NAME_TOO_LONG;
    }
    if (Name[0] == '\\') {
        return STATUS_OBJECT_PATH_SYNTAX_BAD;
    }
    Object->Namespace = BaseFindNamespace(Name, &Prefix);
    if (Object->Namespace != NULL) {
        Directory = 0;
        Name += Prefix;
        Length -= Prefix;
    } else if (Length == 0) {
        Directory -= sizeof(WCHAR);
    }
    memcpy(Object->Buffer, BASE_DIRECTORY, Directory);
    memcpy(Object->Buffer + Directory / sizeof(WCHAR), Name, (Length + 1) * sizeof(WCHAR));
    Object->Path.Buffer = Object->Buffer;
    Object->Path.Length = (USHORT)(Directory + Length * sizeof(WCHAR));
    Object->Path.MaximumLength = (USHORT)(Object->Path.Length + sizeof(WCHAR));
    return STATUS_SUCCESS;
}

/* For a Create function. Name may be NULL or empty: the object has no name. */
static NTSTATUS BaseFormatObjectAttributes(PBASE_OBJECT_ATTRIBUTES Object, LPSECURITY_ATTRIBUTES Security, LPCWSTR Name)
{
    ULONG Attributes = Security != NULL && Security->bInheritHandle ? OBJ_INHERIT : 0;
    PUNICODE_STRING Path = NULL;
    if (Name != NULL && Name[0] != 0) {
        NTSTATUS Status = BaseFormatPath(Object, Name);
        if (!NT_SUCCESS(Status)) {
            return Status;
        }
        Attributes |= OBJ_OPENIF;
        Path = &Object->Path;
    }
    InitializeObjectAttributes(&Object->Attributes, Path, Attributes, Path != NULL ? Object->Namespace : NULL,
                               Security != NULL ? Security->lpSecurityDescriptor : NULL);
    return STATUS_SUCCESS;
}

/* NULL stays NULL. */
static NTSTATUS BaseWidenName(LPCSTR Name, BASE_WIDE_NAME Buffer, LPCWSTR *Wide)
{
    *Wide = NULL;
    if (Name == NULL) {
        return STATUS_SUCCESS;
    }
    if (ExpUtf8ToWide(Name, strlen(Name) + 1, Buffer, MAX_PATH + 1, NULL) > MAX_PATH + 1) {
        return STATUS_NAME_TOO_LONG;
    }
    *Wide = Buffer;
    return STATUS_SUCCESS;
}

/* The result of a Create function: the last error shows whether the object existed. */
static HANDLE BaseCreatedHandle(NTSTATUS Status, HANDLE Handle)
{
    if (!BaseBoolStatus(Status)) {
        return NULL;
    }
    RtlSetLastWin32Error(Status == STATUS_OBJECT_NAME_EXISTS ? ERROR_ALREADY_EXISTS : ERROR_SUCCESS);
    return Handle;
}

typedef NTSTATUS BASE_OPEN(PHANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes);

/* The Open functions. */
static HANDLE BaseOpenObject(BASE_OPEN *Open, ACCESS_MASK DesiredAccess, BOOL Inherit, LPCWSTR Name)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Handle = NULL;
    NTSTATUS Status = Name != NULL ? BaseFormatPath(&Object, Name) : STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(Status)) {
        InitializeObjectAttributes(&Object.Attributes, &Object.Path, Inherit ? OBJ_INHERIT : 0, Object.Namespace, NULL);
        Status = Open(&Handle, DesiredAccess, &Object.Attributes);
    }
    return BaseBoolStatus(Status) ? Handle : NULL;
}

/* Events. */

HANDLE CreateEventExW(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Event = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwFlags & ~(CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET)) == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpEventAttributes, lpName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateEvent(&Event, dwDesiredAccess, &Object.Attributes,
                               dwFlags & CREATE_EVENT_MANUAL_RESET ? NotificationEvent : SynchronizationEvent,
                               (dwFlags & CREATE_EVENT_INITIAL_SET) != 0);
    }
    return BaseCreatedHandle(Status, Event);
}

HANDLE CreateEventExA(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    return BASE_WITH_WIDE_NAME(lpName, CreateEventExW(lpEventAttributes, Wide, dwFlags, dwDesiredAccess));
}

static DWORD BaseEventFlags(BOOL ManualReset, BOOL InitialState)
{
    return (ManualReset ? CREATE_EVENT_MANUAL_RESET : 0) | (InitialState ? CREATE_EVENT_INITIAL_SET : 0);
}

HANDLE CreateEventW(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState, LPCWSTR lpName)
{
    return CreateEventExW(lpEventAttributes, lpName, BaseEventFlags(bManualReset, bInitialState), EVENT_ALL_ACCESS);
}

HANDLE CreateEventA(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState, LPCSTR lpName)
{
    return CreateEventExA(lpEventAttributes, lpName, BaseEventFlags(bManualReset, bInitialState), EVENT_ALL_ACCESS);
}

HANDLE OpenEventW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName)
{
    return BaseOpenObject(NtOpenEvent, dwDesiredAccess, bInheritHandle, lpName);
}

HANDLE OpenEventA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName)
{
    return BASE_WITH_WIDE_NAME(lpName, OpenEventW(dwDesiredAccess, bInheritHandle, Wide));
}

BOOL SetEvent(HANDLE hEvent)
{
    return BaseBoolStatus(NtSetEvent(hEvent, NULL));
}

BOOL ResetEvent(HANDLE hEvent)
{
    return BaseBoolStatus(NtClearEvent(hEvent));
}

BOOL PulseEvent(HANDLE hEvent)
{
    return BaseBoolStatus(NtPulseEvent(hEvent, NULL));
}

/* Semaphores. */

HANDLE CreateSemaphoreExW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                          LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Semaphore = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if (dwFlags == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpSemaphoreAttributes, lpName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateSemaphore(&Semaphore, dwDesiredAccess, &Object.Attributes, lInitialCount, lMaximumCount);
    }
    return BaseCreatedHandle(Status, Semaphore);
}

HANDLE CreateSemaphoreExA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                          LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    return BASE_WITH_WIDE_NAME(lpName,
                               CreateSemaphoreExW(lpSemaphoreAttributes, lInitialCount, lMaximumCount, Wide, dwFlags,
                                                  dwDesiredAccess));
}

HANDLE CreateSemaphoreW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                        LPCWSTR lpName)
{
    return CreateSemaphoreExW(lpSemaphoreAttributes, lInitialCount, lMaximumCount, lpName, 0, SEMAPHORE_ALL_ACCESS);
}

HANDLE CreateSemaphoreA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                        LPCSTR lpName)
{
    return CreateSemaphoreExA(lpSemaphoreAttributes, lInitialCount, lMaximumCount, lpName, 0, SEMAPHORE_ALL_ACCESS);
}

HANDLE OpenSemaphoreW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName)
{
    return BaseOpenObject(NtOpenSemaphore, dwDesiredAccess, bInheritHandle, lpName);
}

HANDLE OpenSemaphoreA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName)
{
    return BASE_WITH_WIDE_NAME(lpName, OpenSemaphoreW(dwDesiredAccess, bInheritHandle, Wide));
}

BOOL ReleaseSemaphore(HANDLE hSemaphore, LONG lReleaseCount, LPLONG lpPreviousCount)
{
    return BaseBoolStatus(NtReleaseSemaphore(hSemaphore, lReleaseCount, lpPreviousCount));
}

/* Mutexes, which NT calls mutants. */

HANDLE CreateMutexExW(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Mutant = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwFlags & ~CREATE_MUTEX_INITIAL_OWNER) == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpMutexAttributes, lpName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateMutant(&Mutant, dwDesiredAccess, &Object.Attributes,
                                (dwFlags & CREATE_MUTEX_INITIAL_OWNER) != 0);
    }
    return BaseCreatedHandle(Status, Mutant);
}

HANDLE CreateMutexExA(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    return BASE_WITH_WIDE_NAME(lpName, CreateMutexExW(lpMutexAttributes, Wide, dwFlags, dwDesiredAccess));
}

HANDLE CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCWSTR lpName)
{
    return CreateMutexExW(lpMutexAttributes, lpName, bInitialOwner ? CREATE_MUTEX_INITIAL_OWNER : 0, MUTEX_ALL_ACCESS);
}

HANDLE CreateMutexA(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCSTR lpName)
{
    return CreateMutexExA(lpMutexAttributes, lpName, bInitialOwner ? CREATE_MUTEX_INITIAL_OWNER : 0, MUTEX_ALL_ACCESS);
}

HANDLE OpenMutexW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName)
{
    return BaseOpenObject(NtOpenMutant, dwDesiredAccess, bInheritHandle, lpName);
}

HANDLE OpenMutexA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName)
{
    return BASE_WITH_WIDE_NAME(lpName, OpenMutexW(dwDesiredAccess, bInheritHandle, Wide));
}

BOOL ReleaseMutex(HANDLE hMutex)
{
    return BaseBoolStatus(NtReleaseMutant(hMutex, NULL));
}

/* Waitable timers. */

HANDLE CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCWSTR lpTimerName, DWORD dwFlags,
                              DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Timer = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwFlags & ~BASE_TIMER_FLAGS) == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpTimerAttributes, lpTimerName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateTimer(&Timer, dwDesiredAccess, &Object.Attributes,
                               dwFlags & CREATE_WAITABLE_TIMER_MANUAL_RESET ? NotificationTimer : SynchronizationTimer);
    }
    return BaseCreatedHandle(Status, Timer);
}

HANDLE CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCSTR lpTimerName, DWORD dwFlags,
                              DWORD dwDesiredAccess)
{
    return BASE_WITH_WIDE_NAME(lpTimerName,
                               CreateWaitableTimerExW(lpTimerAttributes, Wide, dwFlags, dwDesiredAccess));
}

HANDLE CreateWaitableTimerW(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset, LPCWSTR lpTimerName)
{
    return CreateWaitableTimerExW(lpTimerAttributes, lpTimerName,
                                  bManualReset ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0, TIMER_ALL_ACCESS);
}

HANDLE CreateWaitableTimerA(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset, LPCSTR lpTimerName)
{
    return CreateWaitableTimerExA(lpTimerAttributes, lpTimerName,
                                  bManualReset ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0, TIMER_ALL_ACCESS);
}

HANDLE OpenWaitableTimerW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpTimerName)
{
    return BaseOpenObject(NtOpenTimer, dwDesiredAccess, bInheritHandle, lpTimerName);
}

HANDLE OpenWaitableTimerA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpTimerName)
{
    return BASE_WITH_WIDE_NAME(lpTimerName, OpenWaitableTimerW(dwDesiredAccess, bInheritHandle, Wide));
}

/* A timer that cannot wake the machine is set anyway; the last error reports that. */
static BOOL BasepTimerSet(NTSTATUS Status)
{
    if (Status == STATUS_TIMER_RESUME_IGNORED) {
        RtlSetLastWin32Error(ERROR_NOT_SUPPORTED);
    }
    return BaseBoolStatus(Status);
}

BOOL SetWaitableTimer(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                      PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine, BOOL fResume)
{
    NTSTATUS Status = NtSetTimer(hTimer, (PLARGE_INTEGER)lpDueTime, (PTIMER_APC_ROUTINE)(PVOID)pfnCompletionRoutine,
                                 lpArgToCompletionRoutine, fResume != FALSE, lPeriod, NULL);
    return BasepTimerSet(Status);
}

BOOL SetWaitableTimerEx(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                        PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                        PREASON_CONTEXT WakeContext, ULONG TolerableDelay)
{
    TIMER_SET_COALESCABLE_TIMER_INFO Info = {
        .TimerApcRoutine = (PTIMER_APC_ROUTINE)(PVOID)pfnCompletionRoutine,
        .TimerContext = lpArgToCompletionRoutine,
        .WakeContext = (PVOID)WakeContext,
        .Period = (ULONG)lPeriod,
        .TolerableDelay = TolerableDelay,
    };
    if (lpDueTime == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    Info.DueTime = *lpDueTime;
    return BasepTimerSet(NtSetTimerEx(hTimer, TimerSetCoalescableTimer, &Info, sizeof(Info)));
}

BOOL CancelWaitableTimer(HANDLE hTimer)
{
    return BaseBoolStatus(NtCancelTimer(hTimer, NULL));
}

/* Handles. */

BOOL CloseHandle(HANDLE hObject)
{
    return BaseBoolStatus(NtClose(hObject));
}

BOOL DuplicateHandle(HANDLE hSourceProcessHandle, HANDLE hSourceHandle, HANDLE hTargetProcessHandle,
                     LPHANDLE lpTargetHandle, DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwOptions)
{
    return BaseBoolStatus(NtDuplicateObject(hSourceProcessHandle, hSourceHandle, hTargetProcessHandle, lpTargetHandle,
                                            dwDesiredAccess, bInheritHandle ? OBJ_INHERIT : 0, dwOptions));
}

BOOL GetHandleInformation(HANDLE hObject, LPDWORD lpdwFlags)
{
    OBJECT_HANDLE_FLAG_INFORMATION Flags;
    NTSTATUS Status = NtQueryObject(hObject, ObjectHandleFlagInformation, &Flags, sizeof(Flags), NULL);
    if (NT_SUCCESS(Status) && lpdwFlags == NULL) {
        Status = STATUS_ACCESS_VIOLATION;
    }
    if (NT_SUCCESS(Status)) {
        *lpdwFlags =
            (Flags.Inherit ? HANDLE_FLAG_INHERIT : 0) | (Flags.ProtectFromClose ? HANDLE_FLAG_PROTECT_FROM_CLOSE : 0);
    }
    return BaseBoolStatus(Status);
}

/* Flags outside the mask keep their values. */
BOOL SetHandleInformation(HANDLE hObject, DWORD dwMask, DWORD dwFlags)
{
    OBJECT_HANDLE_FLAG_INFORMATION Flags;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwMask & ~(HANDLE_FLAG_INHERIT | HANDLE_FLAG_PROTECT_FROM_CLOSE)) == 0) {
        Status = NtQueryObject(hObject, ObjectHandleFlagInformation, &Flags, sizeof(Flags), NULL);
    }
    if (NT_SUCCESS(Status)) {
        Flags.Inherit = dwMask & HANDLE_FLAG_INHERIT ? (dwFlags & HANDLE_FLAG_INHERIT) != 0 : Flags.Inherit;
        Flags.ProtectFromClose = dwMask & HANDLE_FLAG_PROTECT_FROM_CLOSE
                                     ? (dwFlags & HANDLE_FLAG_PROTECT_FROM_CLOSE) != 0
                                     : Flags.ProtectFromClose;
        Status = NtSetInformationObject(hObject, ObjectHandleFlagInformation, &Flags, sizeof(Flags));
    }
    return BaseBoolStatus(Status);
}

/* Different objects are a failure: ERROR_NOT_SAME_OBJECT. */
BOOL CompareObjectHandles(HANDLE hFirstObjectHandle, HANDLE hSecondObjectHandle)
{
    return BaseBoolStatus(NtCompareObjects(hFirstObjectHandle, hSecondObjectHandle));
}

/* Waits and delays. Success and timeout leave the last error alone. */

VOID BaseBeginWait(PBASE_WAIT_TIME Time, ULONG Milliseconds, BOOL Alertable)
{
    Time->Timeout = BaseFormatTimeOut(&Time->Interval, Milliseconds);
    Time->Alertable = Alertable != FALSE;
    Time->End = 0;
    if (Alertable && Time->Timeout != NULL && Milliseconds != 0) {
        Time->End = KeQueryInterruptTime() + (ULONGLONG)-Time->Interval.QuadPart;
    }
}

BOOLEAN BaseWaitAgain(PBASE_WAIT_TIME Time, NTSTATUS Status)
{
    if (Status != STATUS_ALERTED || !Time->Alertable) {
        return FALSE;
    }
    if (Time->Timeout != NULL) {
        ULONGLONG Now = KeQueryInterruptTime();
        Time->Interval.QuadPart = Now < Time->End ? -(LONGLONG)(Time->End - Now) : 0;
    }
    return TRUE;
}

static DWORD BaseWaitResult(NTSTATUS Status)
{
    if (NT_SUCCESS(Status)) {
        return (DWORD)Status;
    }
    BaseSetLastNTError(Status);
    return WAIT_FAILED;
}

DWORD WaitForSingleObjectEx(HANDLE hHandle, DWORD dwMilliseconds, BOOL bAlertable)
{
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtWaitForSingleObject(hHandle, Time.Alertable, Time.Timeout);
    } while (BaseWaitAgain(&Time, Status));
    return BaseWaitResult(Status);
}

DWORD WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds)
{
    LARGE_INTEGER Interval;
    return BaseWaitResult(NtWaitForSingleObject(hHandle, FALSE, BaseFormatTimeOut(&Interval, dwMilliseconds)));
}

DWORD WaitForMultipleObjectsEx(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds,
                               BOOL bAlertable)
{
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtWaitForMultipleObjects(nCount, (HANDLE *)lpHandles, bWaitAll ? WaitAll : WaitAny, Time.Alertable,
                                          Time.Timeout);
    } while (BaseWaitAgain(&Time, Status));
    return BaseWaitResult(Status);
}

DWORD WaitForMultipleObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds)
{
    return WaitForMultipleObjectsEx(nCount, lpHandles, bWaitAll, dwMilliseconds, FALSE);
}

DWORD WaitForManyObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds, BOOL bAlertable,
                         DWORD *lpIndex)
{
    BASE_WAIT_TIME Time;
    NTSTATUS Status;
    ULONG Index = 0;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtWaitForManyObjects(nCount, (HANDLE *)lpHandles, bWaitAll ? WaitAll : WaitAny, Time.Alertable,
                                      Time.Timeout, &Index);
    } while (BaseWaitAgain(&Time, Status));
    if (lpIndex != NULL) {
        *lpIndex = Index;
    }
    return BaseWaitResult(Status);
}

/* Signals once: only the wait starts over. */
DWORD SignalObjectAndWait(HANDLE hObjectToSignal, HANDLE hObjectToWaitOn, DWORD dwMilliseconds, BOOL bAlertable)
{
    BASE_WAIT_TIME Time;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    NTSTATUS Status = NtSignalAndWaitForSingleObject(hObjectToSignal, hObjectToWaitOn, Time.Alertable, Time.Timeout);
    while (BaseWaitAgain(&Time, Status)) {
        Status = NtWaitForSingleObject(hObjectToWaitOn, Time.Alertable, Time.Timeout);
    }
    return BaseWaitResult(Status);
}

DWORD SleepEx(DWORD dwMilliseconds, BOOL bAlertable)
{
    LARGE_INTEGER Forever = {.QuadPart = -MAXLONGLONG};
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtDelayExecution(Time.Alertable, Time.Timeout != NULL ? Time.Timeout : &Forever);
    } while (BaseWaitAgain(&Time, Status));
    return Status == STATUS_USER_APC ? WAIT_IO_COMPLETION : 0;
}

VOID Sleep(DWORD dwMilliseconds)
{
    SleepEx(dwMilliseconds, FALSE);
}

BOOL SwitchToThread(VOID)
{
    return NtYieldExecution() != STATUS_NO_YIELD_PERFORMED;
}

/* Completion ports. */

C_ASSERT(sizeof(OVERLAPPED_ENTRY) == sizeof(FILE_IO_COMPLETION_INFORMATION));
C_ASSERT(FIELD_OFFSET(OVERLAPPED_ENTRY, lpOverlapped) == FIELD_OFFSET(FILE_IO_COMPLETION_INFORMATION, ApcContext));
C_ASSERT(FIELD_OFFSET(OVERLAPPED_ENTRY, Internal) ==
         FIELD_OFFSET(FILE_IO_COMPLETION_INFORMATION, IoStatusBlock.Status));
C_ASSERT(FIELD_OFFSET(OVERLAPPED_ENTRY, dwNumberOfBytesTransferred) ==
         FIELD_OFFSET(FILE_IO_COMPLETION_INFORMATION, IoStatusBlock.Information));

HANDLE CreateIoCompletionPort(HANDLE FileHandle, HANDLE ExistingCompletionPort, ULONG_PTR CompletionKey,
                              DWORD NumberOfConcurrentThreads)
{
    HANDLE Port = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;

    UNREFERENCED_PARAMETER(CompletionKey); /* for files only */
    if (FileHandle != INVALID_HANDLE_VALUE) {
        /* A descriptor object is the closest thing to a file, but has no overlapped operations, which a port needs. */
        Status = IoQueryDescriptorObject(FileHandle, NULL, NULL);
        Status = NT_SUCCESS(Status) ? STATUS_INVALID_PARAMETER : Status;
    } else if (ExistingCompletionPort == NULL) {
        Status = NtCreateIoCompletion(&Port, IO_COMPLETION_ALL_ACCESS, NULL, NumberOfConcurrentThreads);
    }
    return BaseBoolStatus(Status) ? Port : NULL;
}

BOOL PostQueuedCompletionStatus(HANDLE CompletionPort, DWORD dwNumberOfBytesTransferred, ULONG_PTR dwCompletionKey,
                                LPOVERLAPPED lpOverlapped)
{
    return BaseBoolStatus(NtSetIoCompletion(CompletionPort, (PVOID)dwCompletionKey, lpOverlapped, STATUS_SUCCESS,
                                            dwNumberOfBytesTransferred));
}

/* Sets the last error of a removal that returned no packet. */
static BOOL BaseNothingRemoved(NTSTATUS Status)
{
    if (Status == STATUS_TIMEOUT) {
        RtlSetLastWin32Error(WAIT_TIMEOUT);
    } else if (Status == STATUS_ABANDONED_WAIT_0) {
        RtlSetLastWin32Error(ERROR_ABANDONED_WAIT_0);
    } else if (Status == STATUS_USER_APC) {
        RtlSetLastWin32Error(WAIT_IO_COMPLETION);
    } else {
        BaseSetLastNTError(Status);
    }
    return FALSE;
}

BOOL GetQueuedCompletionStatus(HANDLE CompletionPort, LPDWORD lpNumberOfBytesTransferred, PULONG_PTR lpCompletionKey,
                               LPOVERLAPPED *lpOverlapped, DWORD dwMilliseconds)
{
    LARGE_INTEGER Interval;
    IO_STATUS_BLOCK IoStatus;
    PVOID Key, Overlapped;

    if (lpNumberOfBytesTransferred == NULL || lpCompletionKey == NULL || lpOverlapped == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    NTSTATUS Status = NtRemoveIoCompletion(CompletionPort, &Key, &Overlapped, &IoStatus,
                                           BaseFormatTimeOut(&Interval, dwMilliseconds));
    if (Status != STATUS_SUCCESS) {
        *lpOverlapped = NULL;
        return BaseNothingRemoved(Status);
    }
    *lpNumberOfBytesTransferred = (DWORD)IoStatus.Information;
    *lpCompletionKey = (ULONG_PTR)Key;
    *lpOverlapped = Overlapped;
    return BaseBoolStatus(IoStatus.Status);
}

BOOL GetQueuedCompletionStatusEx(HANDLE CompletionPort, LPOVERLAPPED_ENTRY lpCompletionPortEntries, ULONG ulCount,
                                 PULONG ulNumEntriesRemoved, DWORD dwMilliseconds, BOOL fAlertable)
{
    PFILE_IO_COMPLETION_INFORMATION Entries = (PFILE_IO_COMPLETION_INFORMATION)(PVOID)lpCompletionPortEntries;
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, fAlertable);
    do {
        Status = NtRemoveIoCompletionEx(CompletionPort, Entries, ulCount, ulNumEntriesRemoved, Time.Timeout,
                                        Time.Alertable);
    } while (BaseWaitAgain(&Time, Status));
    return Status == STATUS_SUCCESS ? TRUE : BaseNothingRemoved(Status);
}
