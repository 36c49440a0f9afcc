/* thread.c: threads, and the thread functions of the C runtime. */
#include <interlock/win32/extra.h>

#include "../rtl/rtlp.h"
#include "base.h"

#define BASE_CREATION_FLAGS (CREATE_SUSPENDED | STACK_SIZE_PARAM_IS_A_RESERVATION)
#define BASE_SATURATION ((HIGH_PRIORITY + 1) / 2)

/* Creating and ending. */

static NTSTATUS BaseCreateThread(HANDLE Process, LPSECURITY_ATTRIBUTES Security, SIZE_T StackSize,
                                 LPTHREAD_START_ROUTINE Start, LPVOID Parameter, DWORD Flags, PHANDLE Thread,
                                 PCLIENT_ID ClientId)
{
    BOOLEAN Reservation = (Flags & STACK_SIZE_PARAM_IS_A_RESERVATION) != 0;
    PS_ATTRIBUTE_LIST List = {
        .TotalLength = sizeof(List),
        .Attributes = {{.Attribute = PS_ATTRIBUTE_CLIENT_ID, .Size = sizeof(*ClientId), .ValuePtr = ClientId}},
    };
    OBJECT_ATTRIBUTES Attributes;
    InitializeObjectAttributes(&Attributes, NULL, Security != NULL && Security->bInheritHandle ? OBJ_INHERIT : 0, NULL,
                               NULL);
    if ((Flags & ~(DWORD)BASE_CREATION_FLAGS) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    return NtCreateThreadEx(Thread, THREAD_ALL_ACCESS, &Attributes, Process, (PUSER_THREAD_START_ROUTINE)(PVOID)Start,
                            Parameter, (Flags & CREATE_SUSPENDED) ? THREAD_CREATE_FLAGS_CREATE_SUSPENDED : 0, 0,
                            Reservation ? 0 : StackSize, Reservation ? StackSize : 0, &List);
}

HANDLE CreateRemoteThreadEx(HANDLE hProcess, LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                            LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter, DWORD dwCreationFlags,
                            LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, LPDWORD lpThreadId)
{
    CLIENT_ID ClientId;
    HANDLE Thread = NULL;
    NTSTATUS Status = STATUS_NOT_SUPPORTED;
    if (lpAttributeList == NULL) {
        Status = BaseCreateThread(hProcess, lpThreadAttributes, dwStackSize, lpStartAddress, lpParameter,
                                  dwCreationFlags, &Thread, &ClientId);
    }
    if (!NT_SUCCESS(Status)) {
        BaseSetLastNTError(Status);
        return NULL;
    }
    if (lpThreadId != NULL) {
        *lpThreadId = HandleToULong(ClientId.UniqueThread);
    }
    return Thread;
}

HANDLE CreateRemoteThread(HANDLE hProcess, LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                          LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter, DWORD dwCreationFlags,
                          LPDWORD lpThreadId)
{
    return CreateRemoteThreadEx(hProcess, lpThreadAttributes, dwStackSize, lpStartAddress, lpParameter, dwCreationFlags,
                                NULL, lpThreadId);
}

HANDLE CreateThread(LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize, LPTHREAD_START_ROUTINE lpStartAddress,
                    LPVOID lpParameter, DWORD dwCreationFlags, LPDWORD lpThreadId)
{
    return CreateRemoteThreadEx(NtCurrentProcess(), lpThreadAttributes, dwStackSize, lpStartAddress, lpParameter,
                                dwCreationFlags, NULL, lpThreadId);
}

/* An unknown id is a bad parameter here, not a bad client id. */
HANDLE OpenThread(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwThreadId)
{
    CLIENT_ID ClientId = {NULL, ULongToHandle(dwThreadId)};
    OBJECT_ATTRIBUTES Attributes;
    HANDLE Thread;
    NTSTATUS Status;
    InitializeObjectAttributes(&Attributes, NULL, bInheritHandle ? OBJ_INHERIT : 0, NULL, NULL);
    Status = NtOpenThread(&Thread, dwDesiredAccess, &Attributes, &ClientId);
    if (!NT_SUCCESS(Status)) {
        BaseSetLastNTError(Status == STATUS_INVALID_CID ? STATUS_INVALID_PARAMETER : Status);
        return NULL;
    }
    return Thread;
}

VOID ExitThread(DWORD dwExitCode)
{
    BaseLeaveFiberToExit(dwExitCode);
    NtTerminateThread(NtCurrentThread(), (NTSTATUS)dwExitCode);
    __builtin_unreachable();
}

BOOL TerminateThread(HANDLE hThread, DWORD dwExitCode)
{
    if (hThread == NULL) {
        RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    return BaseBoolStatus(NtTerminateThread(hThread, (NTSTATUS)dwExitCode));
}

DWORD SuspendThread(HANDLE hThread)
{
    ULONG Previous;
    return BaseBoolStatus(NtSuspendThread(hThread, &Previous)) ? Previous : MAXDWORD;
}

/* The thread handle that CreateProcess returns is one of the process: win32.h. */
DWORD ResumeThread(HANDLE hThread)
{
    ULONG Previous = 1;
    NTSTATUS Status = NtResumeThread(hThread, &Previous);
    if (Status == STATUS_OBJECT_TYPE_MISMATCH) {
        Status = NtResumeProcess(hThread);
    }
    return BaseBoolStatus(Status) ? Previous : MAXDWORD;
}

/* Identity. */

static BOOL BaseQueryThread(HANDLE Thread, THREADINFOCLASS Class, PVOID Information, ULONG Length)
{
    return BaseBoolStatus(NtQueryInformationThread(Thread, Class, Information, Length, NULL));
}

static BOOL BaseSetThread(HANDLE Thread, THREADINFOCLASS Class, PVOID Information, ULONG Length)
{
    return BaseBoolStatus(NtSetInformationThread(Thread, Class, Information, Length));
}

static BOOL BaseQueryBasic(HANDLE Thread, PTHREAD_BASIC_INFORMATION Basic)
{
    return BaseQueryThread(Thread, ThreadBasicInformation, Basic, sizeof(*Basic));
}

BOOL GetExitCodeThread(HANDLE hThread, LPDWORD lpExitCode)
{
    THREAD_BASIC_INFORMATION Basic;
    if (!BaseQueryBasic(hThread, &Basic)) {
        return FALSE;
    }
    if (lpExitCode == NULL) {
        RtlSetLastWin32Error(ERROR_NOACCESS);
        return FALSE;
    }
    *lpExitCode = (DWORD)Basic.ExitStatus;
    return TRUE;
}

HANDLE GetCurrentThread(VOID)
{
    return NtCurrentThread();
}

DWORD GetCurrentThreadId(VOID)
{
    return HandleToULong(PsGetCurrentThreadId());
}

HANDLE GetCurrentProcess(VOID)
{
    return NtCurrentProcess();
}

DWORD GetCurrentProcessId(VOID)
{
    return HandleToULong(PsGetCurrentProcessId());
}

DWORD GetThreadId(HANDLE Thread)
{
    THREAD_BASIC_INFORMATION Basic;
    return BaseQueryBasic(Thread, &Basic) ? HandleToULong(Basic.ClientId.UniqueThread) : 0;
}

DWORD GetProcessIdOfThread(HANDLE Thread)
{
    THREAD_BASIC_INFORMATION Basic;
    return BaseQueryBasic(Thread, &Basic) ? HandleToULong(Basic.ClientId.UniqueProcess) : 0;
}

/* Scheduling. The two extremes saturate: they mean the edge of the range, for any priority class. */

/* A thread begins and ends background mode for itself, and not twice. */
static BOOL BaseSetBackgroundMode(HANDLE Thread, BOOLEAN Begin)
{
    PBASE_THREAD Own = BaseCurrentThread();
    if (GetThreadId(Thread) != GetCurrentThreadId()) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (Own->Background == Begin) {
        RtlSetLastWin32Error(Begin ? ERROR_THREAD_MODE_ALREADY_BACKGROUND : ERROR_THREAD_MODE_NOT_BACKGROUND);
        return FALSE;
    }
    Own->Background = Begin;
    return TRUE;
}

BOOL SetThreadPriority(HANDLE hThread, int nPriority)
{
    LONG Increment = nPriority;
    if (nPriority == THREAD_MODE_BACKGROUND_BEGIN || nPriority == THREAD_MODE_BACKGROUND_END) {
        return BaseSetBackgroundMode(hThread, nPriority == THREAD_MODE_BACKGROUND_BEGIN);
    }
    if (nPriority == THREAD_PRIORITY_TIME_CRITICAL) {
        Increment = BASE_SATURATION;
    } else if (nPriority == THREAD_PRIORITY_IDLE) {
        Increment = -BASE_SATURATION;
    } else if (nPriority == BASE_SATURATION || nPriority == -BASE_SATURATION) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    return BaseSetThread(hThread, ThreadBasePriority, &Increment, sizeof(Increment));
}

int GetThreadPriority(HANDLE hThread)
{
    THREAD_BASIC_INFORMATION Basic;
    if (!BaseQueryBasic(hThread, &Basic)) {
        return THREAD_PRIORITY_ERROR_RETURN;
    }
    if (Basic.BasePriority == BASE_SATURATION) {
        return THREAD_PRIORITY_TIME_CRITICAL;
    }
    return Basic.BasePriority == -BASE_SATURATION ? THREAD_PRIORITY_IDLE : Basic.BasePriority;
}

BOOL SetThreadPriorityBoost(HANDLE hThread, BOOL bDisablePriorityBoost)
{
    ULONG Disable = bDisablePriorityBoost != FALSE;
    return BaseSetThread(hThread, ThreadPriorityBoost, &Disable, sizeof(Disable));
}

BOOL GetThreadPriorityBoost(HANDLE hThread, PBOOL pDisablePriorityBoost)
{
    return BaseQueryThread(hThread, ThreadPriorityBoost, pDisablePriorityBoost, sizeof(ULONG));
}

DWORD_PTR SetThreadAffinityMask(HANDLE hThread, DWORD_PTR dwThreadAffinityMask)
{
    THREAD_BASIC_INFORMATION Basic;
    KAFFINITY Mask = dwThreadAffinityMask;
    if (!BaseQueryBasic(hThread, &Basic) || !BaseSetThread(hThread, ThreadAffinityMask, &Mask, sizeof(Mask))) {
        return 0;
    }
    return Basic.AffinityMask;
}

BOOL GetThreadGroupAffinity(HANDLE hThread, PGROUP_AFFINITY GroupAffinity)
{
    return BaseQueryThread(hThread, ThreadGroupInformation, GroupAffinity, sizeof(*GroupAffinity));
}

BOOL SetThreadGroupAffinity(HANDLE hThread, const GROUP_AFFINITY *GroupAffinity, PGROUP_AFFINITY PreviousGroupAffinity)
{
    GROUP_AFFINITY Previous;
    if (!GetThreadGroupAffinity(hThread, &Previous) ||
        !BaseSetThread(hThread, ThreadGroupInformation, (PVOID)GroupAffinity, sizeof(*GroupAffinity))) {
        return FALSE;
    }
    if (PreviousGroupAffinity != NULL) {
        *PreviousGroupAffinity = Previous;
    }
    return TRUE;
}

DWORD SetThreadIdealProcessor(HANDLE hThread, DWORD dwIdealProcessor)
{
    NTSTATUS Status =
        NtSetInformationThread(hThread, ThreadIdealProcessor, &dwIdealProcessor, sizeof(dwIdealProcessor));
    return BaseBoolStatus(Status) ? (DWORD)Status : MAXDWORD;
}

BOOL SetThreadIdealProcessorEx(HANDLE hThread, PPROCESSOR_NUMBER lpIdealProcessor,
                               PPROCESSOR_NUMBER lpPreviousIdealProcessor)
{
    PROCESSOR_NUMBER Number;
    if (lpIdealProcessor == NULL) {
        RtlSetLastWin32Error(ERROR_NOACCESS);
        return FALSE;
    }
    Number = *lpIdealProcessor;
    if (!BaseSetThread(hThread, ThreadIdealProcessorEx, &Number, sizeof(Number))) {
        return FALSE;
    }
    if (lpPreviousIdealProcessor != NULL) {
        *lpPreviousIdealProcessor = Number;
    }
    return TRUE;
}

BOOL GetThreadIdealProcessorEx(HANDLE hThread, PPROCESSOR_NUMBER lpIdealProcessor)
{
    return BaseQueryThread(hThread, ThreadIdealProcessorEx, lpIdealProcessor, sizeof(*lpIdealProcessor));
}

DWORD GetCurrentProcessorNumber(VOID)
{
    return NtGetCurrentProcessorNumber();
}

VOID GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    NtGetCurrentProcessorNumberEx(ProcNumber);
}

/* Times, description, APCs. */

static VOID BaseStoreFileTime(LPFILETIME FileTime, LARGE_INTEGER Time)
{
    FileTime->dwLowDateTime = Time.LowPart;
    FileTime->dwHighDateTime = (DWORD)Time.HighPart;
}

BOOL BaseStoreTimes(const KERNEL_USER_TIMES *Times, LPFILETIME Creation, LPFILETIME Exit, LPFILETIME Kernel,
                    LPFILETIME User)
{
    if (Creation == NULL || Exit == NULL || Kernel == NULL || User == NULL) {
        RtlSetLastWin32Error(ERROR_NOACCESS);
        return FALSE;
    }
    BaseStoreFileTime(Creation, Times->CreateTime);
    BaseStoreFileTime(Exit, Times->ExitTime);
    BaseStoreFileTime(Kernel, Times->KernelTime);
    BaseStoreFileTime(User, Times->UserTime);
    return TRUE;
}

BOOL GetThreadTimes(HANDLE hThread, LPFILETIME lpCreationTime, LPFILETIME lpExitTime, LPFILETIME lpKernelTime,
                    LPFILETIME lpUserTime)
{
    KERNEL_USER_TIMES Times;
    return BaseQueryThread(hThread, ThreadTimes, &Times, sizeof(Times)) &&
           BaseStoreTimes(&Times, lpCreationTime, lpExitTime, lpKernelTime, lpUserTime);
}

HRESULT SetThreadDescription(HANDLE hThread, PCWSTR lpThreadDescription)
{
    THREAD_NAME_INFORMATION Name = {{0, 0, (PWSTR)lpThreadDescription}};
    SIZE_T Length = 0;
    while (lpThreadDescription != NULL && lpThreadDescription[Length] != 0) {
        Length++;
    }
    if (Length > UNICODE_STRING_MAX_CHARS - 1) {
        return HRESULT_FROM_NT(STATUS_INVALID_PARAMETER);
    }
    Name.ThreadName.Length = Name.ThreadName.MaximumLength = (USHORT)(Length * sizeof(WCHAR));
    return HRESULT_FROM_NT(NtSetInformationThread(hThread, ThreadNameInformation, &Name, sizeof(Name)));
}

/* Moves the text to the front of the buffer, which becomes the string that the caller frees. */
HRESULT GetThreadDescription(HANDLE hThread, PWSTR *ppszThreadDescription)
{
    ULONG Room = sizeof(THREAD_NAME_INFORMATION) + sizeof(WCHAR);
    NTSTATUS Status;
    if (ppszThreadDescription == NULL) {
        return HRESULT_FROM_NT(STATUS_ACCESS_VIOLATION);
    }
    *ppszThreadDescription = NULL;
    for (;;) {
        PTHREAD_NAME_INFORMATION Name = LocalAlloc(0, Room + sizeof(WCHAR));
        if (Name == NULL) {
            return HRESULT_FROM_NT(STATUS_NO_MEMORY);
        }
        Status = NtQueryInformationThread(hThread, ThreadNameInformation, Name, Room, &Room);
        if (NT_SUCCESS(Status)) {
            USHORT Length = Name->ThreadName.Length;
            *ppszThreadDescription = memmove(Name, Name->ThreadName.Buffer, Length);
            (*ppszThreadDescription)[Length / sizeof(WCHAR)] = 0;
            return HRESULT_FROM_NT(Status);
        }
        LocalFree(Name);
        if (Status != STATUS_BUFFER_TOO_SMALL) {
            return HRESULT_FROM_NT(Status);
        }
    }
}

static VOID BaseDispatchApc(PVOID Routine, PVOID Data, PVOID Unused)
{
    UNREFERENCED_PARAMETER(Unused);
    ((PAPCFUNC)Routine)((ULONG_PTR)Data);
}

BOOL QueueUserAPC2(PAPCFUNC ApcRoutine, HANDLE Thread, ULONG_PTR Data, QUEUE_USER_APC_FLAGS Flags)
{
    if (ApcRoutine == NULL) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    return BaseBoolStatus(NtQueueApcThreadEx2(Thread, NULL, (ULONG)Flags, BaseDispatchApc, (PVOID)ApcRoutine,
                                              (PVOID)Data, NULL));
}

DWORD QueueUserAPC(PAPCFUNC pfnAPC, HANDLE hThread, ULONG_PTR dwData)
{
    return (DWORD)QueueUserAPC2(pfnAPC, hThread, dwData, QUEUE_USER_APC_FLAGS_NONE);
}

BOOL GetThreadIOPendingFlag(HANDLE hThread, PBOOL lpIOIsPending)
{
    return BaseQueryThread(hThread, ThreadIsIoPending, lpIOIsPending, sizeof(ULONG));
}

BOOL SetThreadStackGuarantee(PULONG StackSizeInBytes)
{
    PBASE_THREAD Own = BaseCurrentThread();
    ULONG Previous = Own->GuaranteedStackBytes;
    if (StackSizeInBytes == NULL) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (*StackSizeInBytes > Previous) {
        Own->GuaranteedStackBytes = *StackSizeInBytes;
    }
    *StackSizeInBytes = Previous;
    return TRUE;
}

/* The C runtime. */

/* Sets errno from the last error, as the C runtime does. */
static uintptr_t BaseFailThread(uintptr_t Result)
{
    switch (RtlGetLastWin32Error()) {
    case ERROR_INVALID_PARAMETER:
        HalSetError(HalErrorInvalid);
        break;
    case ERROR_ACCESS_DENIED:
        HalSetError(HalErrorAccess);
        break;
    case ERROR_NOT_ENOUGH_MEMORY:
        HalSetError(HalErrorMemory);
        break;
    default:
        HalSetError(HalErrorAgain);
        break;
    }
    return Result;
}

uintptr_t _beginthreadex(void *_Security, unsigned _StackSize, _beginthreadex_proc_type _StartAddress, void *_ArgList,
                         unsigned _InitFlag, unsigned *_ThrdAddr)
{
    HANDLE Thread =
        CreateThread(_Security, _StackSize, (LPTHREAD_START_ROUTINE)_StartAddress, _ArgList, _InitFlag, _ThrdAddr);
    return Thread != NULL ? (uintptr_t)Thread : BaseFailThread(0);
}

void _endthreadex(unsigned _Retval)
{
    ExitThread(_Retval);
}

/*
 * _beginthread: the handle belongs to the thread, which closes it when it ends. So the thread is created suspended
 * until it knows its handle. As documented, the caller must not rely on the handle later.
 */
typedef struct _BASE_CRT_START {
    _beginthread_proc_type Start;
    void *Argument;
    HANDLE Thread;
} BASE_CRT_START, *PBASE_CRT_START;

static DWORD BaseRunCrtThread(LPVOID Parameter)
{
    BASE_CRT_START Start = *(PBASE_CRT_START)Parameter;
    HalFree(Parameter);
    BaseCurrentThread()->CrtThreadHandle = Start.Thread;
    Start.Start(Start.Argument);
    _endthread();
}

uintptr_t _beginthread(_beginthread_proc_type _StartAddress, unsigned _StackSize, void *_ArgList)
{
    PBASE_CRT_START Start;
    HANDLE Thread;
    if (_StartAddress == NULL) {
        HalSetError(HalErrorInvalid);
        return (uintptr_t)-1;
    }
    Start = HalAllocate(sizeof(*Start), MEMORY_ALLOCATION_ALIGNMENT);
    if (Start == NULL) {
        HalSetError(HalErrorMemory);
        return (uintptr_t)-1;
    }
    Start->Start = _StartAddress;
    Start->Argument = _ArgList;
    Thread = CreateThread(NULL, _StackSize, BaseRunCrtThread, Start, CREATE_SUSPENDED, NULL);
    if (Thread == NULL) {
        HalFree(Start);
        return BaseFailThread((uintptr_t)-1);
    }
    Start->Thread = Thread;
    ResumeThread(Thread);
    return (uintptr_t)Thread;
}

void _endthread(void)
{
    HANDLE Thread = BaseCurrentThread()->CrtThreadHandle;
    if (Thread != NULL) {
        BaseCurrentThread()->CrtThreadHandle = NULL;
        CloseHandle(Thread);
    }
    ExitThread(0);
}

/* What a thread queries about itself. */

PTEB NtCurrentTeb(VOID)
{
    PTEB Teb = RtlpCurrentTeb();
    Teb->NtTib.Self = &Teb->NtTib;
    Teb->ClientId.UniqueProcess = ULongToHandle(KiInitialProcess.ProcessId); /* changes after a fork */
    Teb->ClientId.UniqueThread = ULongToHandle(HalCurrentThreadId());
    /* queried again only if the stack has changed: a fiber's, or the thread's own */
    ULONG_PTR Here = (ULONG_PTR)__builtin_frame_address(0);
    if (Here < (ULONG_PTR)Teb->NtTib.StackLimit || Here >= (ULONG_PTR)Teb->NtTib.StackBase) {
        GetCurrentThreadStackLimits((PULONG_PTR)&Teb->NtTib.StackLimit, (PULONG_PTR)&Teb->NtTib.StackBase);
    }
    return Teb;
}
