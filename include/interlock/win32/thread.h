/*
 * win32/thread.h: kernel32's threads, processes, thread-local storage, thread pool, fibers, and scheduling: affinity, priority
 * classes and times of processes, the topology of the machine. Part of win32.h.
 */
#ifndef INTERLOCK_WIN32_THREAD_H
#define INTERLOCK_WIN32_THREAD_H

#include <interlock/usermode.h>
#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* Threads. See docs/threads.md, also for what TerminateThread leaves behind. */

#define CREATE_SUSPENDED 0x00000004
#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x00010000

#define THREAD_BASE_PRIORITY_LOWRT 15
#define THREAD_BASE_PRIORITY_MAX 2
#define THREAD_BASE_PRIORITY_MIN (-2)
#define THREAD_BASE_PRIORITY_IDLE (-15)

#define THREAD_PRIORITY_LOWEST THREAD_BASE_PRIORITY_MIN
#define THREAD_PRIORITY_BELOW_NORMAL (THREAD_PRIORITY_LOWEST + 1)
#define THREAD_PRIORITY_NORMAL 0
#define THREAD_PRIORITY_HIGHEST THREAD_BASE_PRIORITY_MAX
#define THREAD_PRIORITY_ABOVE_NORMAL (THREAD_PRIORITY_HIGHEST - 1)
#define THREAD_PRIORITY_ERROR_RETURN (MAXLONG)
#define THREAD_PRIORITY_TIME_CRITICAL THREAD_BASE_PRIORITY_LOWRT
#define THREAD_PRIORITY_IDLE THREAD_BASE_PRIORITY_IDLE
#define THREAD_MODE_BACKGROUND_BEGIN 0x00010000
#define THREAD_MODE_BACKGROUND_END 0x00020000

typedef DWORD(WINAPI *PTHREAD_START_ROUTINE)(LPVOID lpThreadParameter);
typedef PTHREAD_START_ROUTINE LPTHREAD_START_ROUTINE;
typedef VOID(WINAPI *PAPCFUNC)(ULONG_PTR Parameter);

#ifndef INTERLOCK_QUEUE_USER_APC_FLAGS
#define INTERLOCK_QUEUE_USER_APC_FLAGS
typedef enum _QUEUE_USER_APC_FLAGS {
    QUEUE_USER_APC_FLAGS_NONE = 0x0,
    QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC = 0x1, /* ERROR_NOT_SUPPORTED, as is the next one */
    QUEUE_USER_APC_CALLBACK_DATA_CONTEXT = 0x10000
} QUEUE_USER_APC_FLAGS;
#endif

typedef struct _PROC_THREAD_ATTRIBUTE_LIST *PPROC_THREAD_ATTRIBUTE_LIST, *LPPROC_THREAD_ATTRIBUTE_LIST;

/* Starts a thread, suspended if asked. Returns a handle and stores the id in lpThreadId, which may be NULL. Differs: in
   this process only: another one is ERROR_ACCESS_DENIED; an attribute list is ERROR_NOT_SUPPORTED; a stack size of 0 is
   the host's default, the minimum is 256 KB. Since NT 3.1, NT 3.1, 7. */
WINBASEAPI HANDLE WINAPI CreateThread(LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                                      LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter, DWORD dwCreationFlags,
                                      LPDWORD lpThreadId);
WINBASEAPI HANDLE WINAPI CreateRemoteThread(HANDLE hProcess, LPSECURITY_ATTRIBUTES lpThreadAttributes,
                                            SIZE_T dwStackSize, LPTHREAD_START_ROUTINE lpStartAddress,
                                            LPVOID lpParameter, DWORD dwCreationFlags, LPDWORD lpThreadId);
WINBASEAPI HANDLE WINAPI CreateRemoteThreadEx(HANDLE hProcess, LPSECURITY_ATTRIBUTES lpThreadAttributes,
                                              SIZE_T dwStackSize, LPTHREAD_START_ROUTINE lpStartAddress,
                                              LPVOID lpParameter, DWORD dwCreationFlags,
                                              LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, LPDWORD lpThreadId);

/* Opens a thread by its id. Fails with ERROR_INVALID_PARAMETER if there is none. Differs: finds threads of this process
   that have called the library. Since 2000. */
WINBASEAPI HANDLE WINAPI OpenThread(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwThreadId);

/* Ends the calling thread with an exit code. Does not return. Differs: unwinds C++ frames and runs the host's cleanup
   handlers. Since NT 3.1. */
WINBASEAPI DECLSPEC_NORETURN VOID WINAPI ExitThread(DWORD dwExitCode);

/* Asks a thread to end, without any cleanup of its own. Differs: the thread ends outside the library's own critical
   sections; its stack is leaked. Since NT 3.1. */
WINBASEAPI BOOL WINAPI TerminateThread(HANDLE hThread, DWORD dwExitCode);

/* Stores the exit code; STILL_ACTIVE while the thread runs. Since NT 3.1. */
WINBASEAPI BOOL WINAPI GetExitCodeThread(HANDLE hThread, LPDWORD lpExitCode);

/* Suspends the thread. Returns the previous suspend count; -1 on failure. Differs: a signal of the host stops a running
   thread; ERROR_ACCESS_DENIED if it does not reach it. Since NT 3.1. */
WINBASEAPI DWORD WINAPI SuspendThread(HANDLE hThread);

/* Removes one suspension. Returns the previous suspend count; -1 on failure. Differs: also starts a process that was
   created suspended. Since NT 3.1. */
WINBASEAPI DWORD WINAPI ResumeThread(HANDLE hThread);

/* Identity. */

/* Returns the pseudo handle -2. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI GetCurrentThread(VOID);

/* Returns the thread environment block, which winternl.h declares. Differs: this call stores the ids and the
   limits of the stack; StackLimit is that of the whole stack. Since NT 3.1. */
NTSYSAPI struct _TEB *NTAPI NtCurrentTeb(VOID);

/* Returns the id of the calling thread: the host's thread id. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetCurrentThreadId(VOID);

/* Returns the pseudo handle -1. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI GetCurrentProcess(VOID);

/* Returns the id of this process: the host's process id. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetCurrentProcessId(VOID);

/* Returns the id of a thread; 0 on failure. Since Server 2003. */
WINBASEAPI DWORD WINAPI GetThreadId(HANDLE Thread);

/* Returns the id of the thread's process; 0 on failure. Since Server 2003. */
WINBASEAPI DWORD WINAPI GetProcessIdOfThread(HANDLE Thread);

/* Scheduling. */

/* Sets the priority relative to the process: -2 to 2, idle, or time critical. Differs: the host's scheduler follows
   where the process has the right; background mode, which the current thread begins and ends for itself, is stored
   without effect. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetThreadPriority(HANDLE hThread, int nPriority);

/* Returns the priority that was set; THREAD_PRIORITY_ERROR_RETURN on failure. Since NT 3.1. */
WINBASEAPI int WINAPI GetThreadPriority(HANDLE hThread);

/* Sets and queries whether priority boosts are disabled. Since NT 4.0. */
WINBASEAPI BOOL WINAPI SetThreadPriorityBoost(HANDLE hThread, BOOL bDisablePriorityBoost);
WINBASEAPI BOOL WINAPI GetThreadPriorityBoost(HANDLE hThread, PBOOL pDisablePriorityBoost);

/* Sets the processors of its group on which the thread may run; those that do not exist are ignored. Returns the
   previous mask; 0 on failure. Differs: applies to virtual processors; the host's scheduler is not affected. Since NT 3.5. */
WINBASEAPI DWORD_PTR WINAPI SetThreadAffinityMask(HANDLE hThread, DWORD_PTR dwThreadAffinityMask);

/* Sets and queries group and mask. Differs: applies to virtual processors; the host's scheduler is not affected. Since
   7. */
WINBASEAPI BOOL WINAPI SetThreadGroupAffinity(HANDLE hThread, const GROUP_AFFINITY *GroupAffinity,
                                              PGROUP_AFFINITY PreviousGroupAffinity);
WINBASEAPI BOOL WINAPI GetThreadGroupAffinity(HANDLE hThread, PGROUP_AFFINITY GroupAffinity);

/* Sets the preferred processor and returns or stores the previous one. MAXIMUM_PROCESSORS only queries; -1 on failure.
   Differs: stored, without effect. Since NT 4.0, 7. */
WINBASEAPI DWORD WINAPI SetThreadIdealProcessor(HANDLE hThread, DWORD dwIdealProcessor);
WINBASEAPI BOOL WINAPI SetThreadIdealProcessorEx(HANDLE hThread, PPROCESSOR_NUMBER lpIdealProcessor,
                                                 PPROCESSOR_NUMBER lpPreviousIdealProcessor);

/* Queries the preferred processor. Since 7. */
WINBASEAPI BOOL WINAPI GetThreadIdealProcessorEx(HANDLE hThread, PPROCESSOR_NUMBER lpIdealProcessor);

/* Returns the number of the current processor, or stores its group and number. Differs: the number of the virtual
   processor. Since Server 2003, 7. */
WINBASEAPI DWORD WINAPI GetCurrentProcessorNumber(VOID);
WINBASEAPI VOID WINAPI GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);

/* Times, names, APCs. */

/* Stores the times of creation and exit, and the processor time in kernel and user mode. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetThreadTimes(HANDLE hThread, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                                      LPFILETIME lpKernelTime, LPFILETIME lpUserTime);

/* Names the thread. Differs: the host's tools show the first 15 characters, in ASCII. Since 10. */
WINBASEAPI HRESULT WINAPI SetThreadDescription(HANDLE hThread, PCWSTR lpThreadDescription);

/* Returns the thread's name, to be freed with LocalFree. Since 10. */
WINBASEAPI HRESULT WINAPI GetThreadDescription(HANDLE hThread, PWSTR *ppszThreadDescription);

/* Queues an APC that runs in an alertable wait of the thread. Returns 0 if the thread has ended. Since NT 4.0. */
WINBASEAPI DWORD WINAPI QueueUserAPC(PAPCFUNC pfnAPC, HANDLE hThread, ULONG_PTR dwData);

/* QueueUserAPC with flags. Differs: a special user APC is ERROR_NOT_SUPPORTED. Since 11. */
WINBASEAPI BOOL WINAPI QueueUserAPC2(PAPCFUNC ApcRoutine, HANDLE Thread, ULONG_PTR Data, QUEUE_USER_APC_FLAGS Flags);

/* Stores whether the thread has I/O pending. Differs: always FALSE. Since XP. */
WINBASEAPI BOOL WINAPI GetThreadIOPendingFlag(HANDLE hThread, PBOOL lpIOIsPending);

/* Sets the stack that must remain on an overflow; stores the previous size. Differs: stored, without effect. Since
   Server 2003. */
WINBASEAPI BOOL WINAPI SetThreadStackGuarantee(PULONG StackSizeInBytes);

/* Thread-local and fiber-local storage. A thread that is not a fiber has fiber-local values like one. */

#ifndef TLS_MINIMUM_AVAILABLE
#define TLS_MINIMUM_AVAILABLE 64
#endif
#define TLS_OUT_OF_INDEXES ((DWORD)0xffffffff)
#define FLS_MAXIMUM_AVAILABLE 128
#define FLS_OUT_OF_INDEXES ((DWORD)0xffffffff)

typedef VOID(WINAPI *PFLS_CALLBACK_FUNCTION)(PVOID lpFlsData);

/* Allocates an index whose value is NULL in every thread; TLS_OUT_OF_INDEXES after 1087. Never 0. Since NT 3.1. */
WINBASEAPI DWORD WINAPI TlsAlloc(VOID);

/* Frees the index. Since NT 3.1. */
WINBASEAPI BOOL WINAPI TlsFree(DWORD dwTlsIndex);

/* Returns the thread's value. NULL comes with ERROR_SUCCESS, or with ERROR_INVALID_PARAMETER for a bad index. Since NT
   3.1. */
WINBASEAPI LPVOID WINAPI TlsGetValue(DWORD dwTlsIndex);

/* Sets the thread's value. The first one of an index above 63 allocates memory. Since NT 3.1. */
WINBASEAPI BOOL WINAPI TlsSetValue(DWORD dwTlsIndex, LPVOID lpTlsValue);

/* Allocates an index, with a callback for the values that are not NULL when a thread or fiber ends; FLS_OUT_OF_INDEXES if
   there is none. Differs: 127 indexes; newer versions of Windows 10 have more. Since Server 2003. */
WINBASEAPI DWORD WINAPI FlsAlloc(PFLS_CALLBACK_FUNCTION lpCallback);

/* Calls back for the values of all threads and fibers, waits for running callbacks, and frees the index. Since Server 2003. */
WINBASEAPI BOOL WINAPI FlsFree(DWORD dwFlsIndex);

/* Returns and sets the value of the thread or fiber. An index that is not allocated takes one, too. Since Server 2003. */
WINBASEAPI PVOID WINAPI FlsGetValue(DWORD dwFlsIndex);
WINBASEAPI BOOL WINAPI FlsSetValue(DWORD dwFlsIndex, PVOID lpFlsData);

/*
 * Processes. A child is a process of the host. It inherits handles of events, mutexes, semaphores, timers, directories,
 * links and processes, if it is a program of this library (docs/processes.md). hThread in PROCESS_INFORMATION is another handle of the process: it is signaled when the process ends, and
 * ResumeThread starts a process that was created suspended.
 */

#define DEBUG_PROCESS 0x00000001
#define DEBUG_ONLY_THIS_PROCESS 0x00000002
#define DETACHED_PROCESS 0x00000008
#define CREATE_NEW_CONSOLE 0x00000010
#define NORMAL_PRIORITY_CLASS 0x00000020
#define IDLE_PRIORITY_CLASS 0x00000040
#define HIGH_PRIORITY_CLASS 0x00000080
#define REALTIME_PRIORITY_CLASS 0x00000100
#define CREATE_NEW_PROCESS_GROUP 0x00000200
#define CREATE_UNICODE_ENVIRONMENT 0x00000400
#define BELOW_NORMAL_PRIORITY_CLASS 0x00004000
#define ABOVE_NORMAL_PRIORITY_CLASS 0x00008000
#define EXTENDED_STARTUPINFO_PRESENT 0x00080000
#define CREATE_NO_WINDOW 0x08000000

#define STARTF_USESHOWWINDOW 0x00000001
#define STARTF_USESTDHANDLES 0x00000100

typedef struct _PROCESS_INFORMATION {
    HANDLE hProcess;
    HANDLE hThread;
    DWORD dwProcessId;
    DWORD dwThreadId;
} PROCESS_INFORMATION, *PPROCESS_INFORMATION, *LPPROCESS_INFORMATION;

typedef struct _STARTUPINFOA {
    DWORD cb;
    LPSTR lpReserved;
    LPSTR lpDesktop;
    LPSTR lpTitle;
    DWORD dwX;
    DWORD dwY;
    DWORD dwXSize;
    DWORD dwYSize;
    DWORD dwXCountChars;
    DWORD dwYCountChars;
    DWORD dwFillAttribute;
    DWORD dwFlags;
    WORD wShowWindow;
    WORD cbReserved2;
    PUCHAR lpReserved2;
    HANDLE hStdInput;
    HANDLE hStdOutput;
    HANDLE hStdError;
} STARTUPINFOA, *LPSTARTUPINFOA;

typedef struct _STARTUPINFOW {
    DWORD cb;
    LPWSTR lpReserved;
    LPWSTR lpDesktop;
    LPWSTR lpTitle;
    DWORD dwX;
    DWORD dwY;
    DWORD dwXSize;
    DWORD dwYSize;
    DWORD dwXCountChars;
    DWORD dwYCountChars;
    DWORD dwFillAttribute;
    DWORD dwFlags;
    WORD wShowWindow;
    WORD cbReserved2;
    PUCHAR lpReserved2;
    HANDLE hStdInput;
    HANDLE hStdOutput;
    HANDLE hStdError;
} STARTUPINFOW, *LPSTARTUPINFOW;

/* With EXTENDED_STARTUPINFO_PRESENT; cb is that of the whole structure. */
typedef struct _STARTUPINFOEXA {
    STARTUPINFOA StartupInfo;
    LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList;
} STARTUPINFOEXA, *LPSTARTUPINFOEXA;

typedef struct _STARTUPINFOEXW {
    STARTUPINFOW StartupInfo;
    LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList;
} STARTUPINFOEXW, *LPSTARTUPINFOEXW;

#define PROC_THREAD_ATTRIBUTE_HANDLE_LIST 0x00020002

C_ASSERT(sizeof(STARTUPINFOA) == 104 && sizeof(STARTUPINFOW) == 104);
C_ASSERT(sizeof(STARTUPINFOEXA) == 112 && sizeof(STARTUPINFOEXW) == 112);
C_ASSERT(sizeof(PROCESS_INFORMATION) == 24);

/* Prepares memory for a number of attributes. Without memory for them it fails with ERROR_INSUFFICIENT_BUFFER and stores
   the size that is needed. Since Vista. */
WINBASEAPI BOOL WINAPI InitializeProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList,
                                                         DWORD dwAttributeCount, DWORD dwFlags, PSIZE_T lpSize);

/* Adds an attribute, whose value is read when a process is created. Fails with ERROR_BAD_LENGTH, with
   ERROR_OBJECT_NAME_EXISTS if it is there, with ERROR_GEN_FAILURE if the list is full. Differs: any other than
   PROC_THREAD_ATTRIBUTE_HANDLE_LIST is ERROR_NOT_SUPPORTED. Since Vista. */
WINBASEAPI BOOL WINAPI UpdateProcThreadAttribute(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, DWORD dwFlags,
                                                 DWORD_PTR Attribute, PVOID lpValue, SIZE_T cbSize,
                                                 PVOID lpPreviousValue, PSIZE_T lpReturnSize);

/* Ends the use of a list; its memory is the program's. Since Vista. */
WINBASEAPI VOID WINAPI DeleteProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList);

/* Starts a program, suspended if asked. Stores handles and ids. With bInheritHandles the child has the handles that are
   marked as inherited, or of these those in a list, with the same values. Differs: the program is one of the host, found
   in PATH; not every kind of handle is inherited (docs/processes.md); standard handles are descriptor objects; debugging
   is ERROR_NOT_SUPPORTED; consoles, windows and priority classes are ignored. Since NT 3.1. */
NTSYSAPI BOOL CreateProcessA(LPCSTR lpApplicationName, LPSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                             LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                             LPVOID lpEnvironment, LPCSTR lpCurrentDirectory, LPSTARTUPINFOA lpStartupInfo,
                             LPPROCESS_INFORMATION lpProcessInformation);
NTSYSAPI BOOL CreateProcessW(LPCWSTR lpApplicationName, LPWSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                             LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                             LPVOID lpEnvironment, LPCWSTR lpCurrentDirectory, LPSTARTUPINFOW lpStartupInfo,
                             LPPROCESS_INFORMATION lpProcessInformation);

/* Opens a process by its id, to wait on. Fails with ERROR_INVALID_PARAMETER if there is none. Since NT 3.1. */
NTSYSAPI HANDLE OpenProcess(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwProcessId);

/* Stores the exit code; STILL_ACTIVE while the process runs. Differs: known for children only, else
   ERROR_NOT_SUPPORTED; 8 bits; a signal as the status that it stands for. Since NT 3.1. */
NTSYSAPI BOOL GetExitCodeProcess(HANDLE hProcess, LPDWORD lpExitCode);

/* Asks a process to end with an exit code, without waiting. Differs: uses SIGKILL. Since NT 3.1. */
NTSYSAPI BOOL TerminateProcess(HANDLE hProcess, UINT uExitCode);

/* Returns the id of a process; 0 on failure. Since XP. */
NTSYSAPI DWORD GetProcessId(HANDLE Process);

/* Ends this process with an exit code. Does not return. Differs: as exit(3): runs the handlers of atexit. Since NT
   3.1. */
NTSYSAPI DECLSPEC_NORETURN VOID ExitProcess(UINT uExitCode);

#ifdef UNICODE
#define CreateProcess CreateProcessW
typedef STARTUPINFOW STARTUPINFO;
typedef LPSTARTUPINFOW LPSTARTUPINFO;
typedef STARTUPINFOEXW STARTUPINFOEX;
typedef LPSTARTUPINFOEXW LPSTARTUPINFOEX;
#else
#define CreateProcess CreateProcessA
typedef STARTUPINFOA STARTUPINFO;
typedef LPSTARTUPINFOA LPSTARTUPINFO;
typedef STARTUPINFOEXA STARTUPINFOEX;
typedef LPSTARTUPINFOEXA LPSTARTUPINFOEX;
#endif

/* Thread pool types. */

typedef VOID (*PTP_WIN32_IO_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PVOID Overlapped, ULONG IoResult,
                                      ULONG_PTR NumberOfBytesTransferred, PTP_IO Io);

/* Callback environments. How the callbacks of an object run; TP_CALLBACK_ENVIRON is in usermode.h. */

/* TpInitializeCallbackEnviron: the pool of the process, normal priority. Since Vista. */
FORCEINLINE VOID InitializeThreadpoolEnvironment(PTP_CALLBACK_ENVIRON pcbe)
{
    TpInitializeCallbackEnviron(pcbe);
}

/* TpSetCallbackThreadpool: sets the pool that runs the callbacks. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackPool(PTP_CALLBACK_ENVIRON pcbe, PTP_POOL ptpp)
{
    TpSetCallbackThreadpool(pcbe, ptpp);
}

/* TpSetCallbackCleanupGroup: sets the cleanup group of the objects. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackCleanupGroup(PTP_CALLBACK_ENVIRON pcbe, PTP_CLEANUP_GROUP ptpcg,
                                                   PTP_CLEANUP_GROUP_CANCEL_CALLBACK pfng)
{
    TpSetCallbackCleanupGroup(pcbe, ptpcg, pfng);
}

/* TpSetCallbackLongFunction: declares that callbacks may run long. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackRunsLong(PTP_CALLBACK_ENVIRON pcbe)
{
    TpSetCallbackLongFunction(pcbe);
}

/* TpSetCallbackRaceWithDll: keeps a module loaded. Differs: ignored: modules are never unloaded. Since Vista. */
FORCEINLINE VOID SetThreadpoolCallbackLibrary(PTP_CALLBACK_ENVIRON pcbe, PVOID mod)
{
    TpSetCallbackRaceWithDll(pcbe, mod);
}

/* TpSetCallbackPriority: sets the priority. Since 7. */
FORCEINLINE VOID SetThreadpoolCallbackPriority(PTP_CALLBACK_ENVIRON pcbe, TP_CALLBACK_PRIORITY Priority)
{
    TpSetCallbackPriority(pcbe, Priority);
}

/* TpSetCallbackPersistent: keeps the thread that has run a callback. Since 7. */
FORCEINLINE VOID SetThreadpoolCallbackPersistent(PTP_CALLBACK_ENVIRON pcbe)
{
    TpSetCallbackPersistent(pcbe);
}

/* TpDestroyCallbackEnviron: does nothing. Since Vista. */
FORCEINLINE VOID DestroyThreadpoolEnvironment(PTP_CALLBACK_ENVIRON pcbe)
{
    TpDestroyCallbackEnviron(pcbe);
}

/* Pools. */

/* Creates a pool; NULL if memory is exhausted. Since Vista. */
WINBASEAPI PTP_POOL CreateThreadpool(PVOID reserved);

/* Sets the maximum number of threads, 500 by default; 0 counts as 1. Since Vista. */
WINBASEAPI VOID SetThreadpoolThreadMaximum(PTP_POOL ptpp, DWORD cthrdMost);

/* Sets the number of threads that stay, and creates them. Returns FALSE if it cannot. Since Vista. */
WINBASEAPI BOOL SetThreadpoolThreadMinimum(PTP_POOL ptpp, DWORD cthrdMic);

/* Sets and queries the stack sizes of threads created later. Since 7. */
WINBASEAPI BOOL SetThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi);
WINBASEAPI BOOL QueryThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi);

/* Closes the pool, which lives until the last of its objects is gone. Since Vista. */
WINBASEAPI VOID CloseThreadpool(PTP_POOL ptpp);

/* Cleanup groups. Objects that are closed together. */

/* Creates a group of objects that are closed together. Since Vista. */
WINBASEAPI PTP_CLEANUP_GROUP CreateThreadpoolCleanupGroup(VOID);

/* Closes all members and waits for their callbacks, cancelling pending ones if asked. Then calls the cancel callback of
   each member that was cancelled before the program has closed it. Since Vista. */
WINBASEAPI VOID CloseThreadpoolCleanupGroupMembers(PTP_CLEANUP_GROUP ptpcg, BOOL fCancelPendingCallbacks,
                                                   PVOID pvCleanupContext);

/* Closes the group. Since Vista. */
WINBASEAPI VOID CloseThreadpoolCleanupGroup(PTP_CLEANUP_GROUP ptpcg);

/* Inside a callback. What happens when it returns, and what the pool should know about it. */

/* Sets, releases or leaves the object when the callback returns. One of each kind: a second one raises
   STATUS_INVALID_PARAMETER. Since Vista. */
WINBASEAPI VOID SetEventWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE evt);
WINBASEAPI VOID ReleaseSemaphoreWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE sem, DWORD crel);
WINBASEAPI VOID ReleaseMutexWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE mut);
WINBASEAPI VOID LeaveCriticalSectionWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, PRTL_CRITICAL_SECTION pcs);

/* Unloads a module when the callback returns. Differs: modules are never unloaded. Since Vista. */
WINBASEAPI VOID FreeLibraryWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HMODULE mod);

/* Stops counting the callback as running. Returns FALSE if no other thread can take over. Since Vista. */
WINBASEAPI BOOL CallbackMayRunLong(PTP_CALLBACK_INSTANCE pci);

/* Counts the callback as finished for threads that wait on the object, but not for its cleanup group. Since Vista. */
WINBASEAPI VOID DisassociateCurrentThreadFromCallback(PTP_CALLBACK_INSTANCE pci);

/* Work objects. Submitting cannot fail. */

/* Queues one callback without an object. Returns FALSE if there is no memory or no thread. Since Vista. */
WINBASEAPI BOOL TrySubmitThreadpoolCallback(PTP_SIMPLE_CALLBACK pfns, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Creates a work object; NULL on failure. Since Vista. */
WINBASEAPI PTP_WORK CreateThreadpoolWork(PTP_WORK_CALLBACK pfnwk, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Queues one more callback; cannot fail. Callbacks of one object run concurrently. Since Vista. */
WINBASEAPI VOID SubmitThreadpoolWork(PTP_WORK pwk);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolWorkCallbacks(PTP_WORK pwk, BOOL fCancelPendingCallbacks);

/* Closes the object; pending callbacks still run. Since Vista. */
WINBASEAPI VOID CloseThreadpoolWork(PTP_WORK pwk);

/* Timer objects. */

/* Creates a timer object; NULL on failure. Since Vista. */
WINBASEAPI PTP_TIMER CreateThreadpoolTimer(PTP_TIMER_CALLBACK pfnti, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Sets the timer: the due time, relative if negative, NULL for never; period and window in milliseconds. The Ex form
   returns TRUE if the timer was already set and that setting was replaced before it expired. Since Vista, 8. */
WINBASEAPI VOID SetThreadpoolTimer(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength);
WINBASEAPI BOOL SetThreadpoolTimerEx(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength);

/* Returns TRUE if the last call that set the timer gave it a due time, even if it has expired since. Since Vista. */
WINBASEAPI BOOL IsThreadpoolTimerSet(PTP_TIMER pti);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. The timer stays set. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolTimerCallbacks(PTP_TIMER pti, BOOL fCancelPendingCallbacks);

/* Closes the object, which no longer expires. Since Vista. */
WINBASEAPI VOID CloseThreadpoolTimer(PTP_TIMER pti);

/* Wait objects. One callback per setting. Mutexes are refused, since only a thread can own one. */

/* Creates a wait object; NULL on failure. Since Vista. */
WINBASEAPI PTP_WAIT CreateThreadpoolWait(PTP_WAIT_CALLBACK pfnwa, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Queues one callback when the object is signaled or the time is over; a NULL handle cancels the wait. A bad handle
   raises its status. The Ex form returns TRUE if a wait was already set and was replaced before it fired. Differs: a
   mutex raises STATUS_THREADPOOL_HANDLE_EXCEPTION. Since Vista, 8. */
WINBASEAPI VOID SetThreadpoolWait(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout);
WINBASEAPI BOOL SetThreadpoolWaitEx(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout, PVOID Reserved);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolWaitCallbacks(PTP_WAIT pwa, BOOL fCancelPendingCallbacks);

/* Closes the object, which no longer waits. Since Vista. */
WINBASEAPI VOID CloseThreadpoolWait(PTP_WAIT pwa);

/* I/O objects. Files are descriptor objects (io.h). */

/* Binds a file to callbacks; NULL on failure. Differs: the file is a descriptor object (io.h), anything else
   ERROR_INVALID_HANDLE; the callback's Overlapped is NULL and its IoResult NO_ERROR. Since Vista. */
WINBASEAPI PTP_IO CreateThreadpoolIo(HANDLE fl, PTP_WIN32_IO_CALLBACK pfnio, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);

/* Announces an operation, which will have one callback. Differs: the callback runs when the descriptor is ready, one
   after the other. Since Vista. */
WINBASEAPI VOID StartThreadpoolIo(PTP_IO pio);

/* Withdraws an announced operation that has failed: it has no callback. Since Vista. */
WINBASEAPI VOID CancelThreadpoolIo(PTP_IO pio);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
WINBASEAPI VOID WaitForThreadpoolIoCallbacks(PTP_IO pio, BOOL fCancelPendingCallbacks);

/* Closes the object. Since Vista. */
WINBASEAPI VOID CloseThreadpoolIo(PTP_IO pio);

/* Binds a file to a routine until its last handle is closed. Fails with ERROR_INVALID_PARAMETER if it is bound, or Flags
   is not 0. Differs: the file is a descriptor object (io.h), anything else ERROR_INVALID_HANDLE; the routine is called
   whenever the descriptor is ready, one call after the other, with NO_ERROR, 0 and NULL. Since 2000. */
WINBASEAPI BOOL WINAPI BindIoCompletionCallback(HANDLE FileHandle, LPOVERLAPPED_COMPLETION_ROUTINE Function,
                                                ULONG Flags);

/* The older interface. Everything runs in the pool of the process. */

/* Runs a routine in the pool of the process. Since 2000. */
WINBASEAPI BOOL QueueUserWorkItem(LPTHREAD_START_ROUTINE Function, PVOID Context, ULONG Flags);

/* Runs a routine each time an object is signaled or the time is over, also while an earlier call runs. Differs: it
   references the object; a wait for a mutex has a thread of its own, which runs the routine. Since 2000. */
WINBASEAPI BOOL RegisterWaitForSingleObject(PHANDLE phNewWaitObject, HANDLE hObject, WAITORTIMERCALLBACK Callback,
                                            PVOID Context, ULONG dwMilliseconds, ULONG dwFlags);

/* Ends a registered wait. Fails with ERROR_IO_PENDING while calls of the routine are pending or running, which still
   occur. The Ex form sets CompletionEvent after the last one, or blocks until then if it is INVALID_HANDLE_VALUE. Since
   2000. */
WINBASEAPI BOOL UnregisterWait(HANDLE WaitHandle);
WINBASEAPI BOOL UnregisterWaitEx(HANDLE WaitHandle, HANDLE CompletionEvent);

/* Creates a timer queue. Since 2000. */
WINBASEAPI HANDLE CreateTimerQueue(VOID);

/* Creates a timer in a queue, or with NULL in the queue of the process. Times are in milliseconds. Since 2000. */
WINBASEAPI BOOL CreateTimerQueueTimer(PHANDLE phNewTimer, HANDLE TimerQueue, WAITORTIMERCALLBACK Callback,
                                      PVOID Parameter, DWORD DueTime, DWORD Period, ULONG Flags);

/* Changes the due time and period. Since 2000. */
WINBASEAPI BOOL ChangeTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, ULONG DueTime, ULONG Period);

/* Deletes a timer. CompletionEvent and ERROR_IO_PENDING are those of UnregisterWaitEx. Since 2000. */
WINBASEAPI BOOL DeleteTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, HANDLE CompletionEvent);

/* Deletes a queue with all its timers. CompletionEvent is that of UnregisterWaitEx. Since 2000. */
WINBASEAPI BOOL DeleteTimerQueue(HANDLE TimerQueue);
WINBASEAPI BOOL DeleteTimerQueueEx(HANDLE TimerQueue, HANDLE CompletionEvent);

/*
 * Fibers. A fiber is a stack and registers that a thread runs, one at a time. What the library keeps for a thread stays with
 * the thread: its waits, its APCs, its thread-local storage and last error, the mutexes and critical sections that it owns. A
 * fiber that moves to another thread waits and owns as that thread. Its frames of __try and its fiber-local storage move with
 * it.
 */

#define FIBER_FLAG_FLOAT_SWITCH 0x1

typedef VOID(WINAPI *PFIBER_START_ROUTINE)(LPVOID lpFiberParameter);
typedef PFIBER_START_ROUTINE LPFIBER_START_ROUTINE;

/* Makes the calling thread a fiber, which it needs before it switches to one, and returns it; NULL on failure. Fails with
   ERROR_ALREADY_FIBER. Since NT 3.51, Server 2003. */
WINBASEAPI LPVOID WINAPI ConvertThreadToFiber(LPVOID lpParameter);
WINBASEAPI LPVOID WINAPI ConvertThreadToFiberEx(LPVOID lpParameter, DWORD dwFlags);

/* Makes the calling fiber a thread again and frees its record. The stack on which it runs stays in use until the thread
   ends. Fails with ERROR_ALREADY_THREAD. Since XP. */
WINBASEAPI BOOL WINAPI ConvertFiberToThread(VOID);

/* Creates a fiber with a stack of its own; NULL on failure. It runs when a thread switches to it. When its routine
   returns, the thread ends that runs it, with code 1. Differs: the stack has at least 256 KB and is committed by use, with a guard
   page. Since NT 3.51, Server 2003. */
WINBASEAPI LPVOID WINAPI CreateFiber(SIZE_T dwStackSize, LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter);
WINBASEAPI LPVOID WINAPI CreateFiberEx(SIZE_T dwStackCommitSize, SIZE_T dwStackReserveSize, DWORD dwFlags,
                                       LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter);

/* Leaves the calling fiber where it is and runs another one. Differs: STATUS_INVALID_PARAMETER is raised if the caller is
   no fiber or the other one runs on another thread; not for use inside an APC or a callback of the pool. Since NT 3.51. */
WINBASEAPI VOID WINAPI SwitchToFiber(LPVOID lpFiber);

/* Calls back for the fiber-local values of a fiber, and frees it with its stack. The current fiber ends its thread.
   Differs: STATUS_INVALID_PARAMETER is raised if the fiber runs on another thread. Since NT 3.51. */
WINBASEAPI VOID WINAPI DeleteFiber(LPVOID lpFiber);

/* Returns the current fiber. Differs: NULL for a thread that is none. Since NT 3.51. */
WINBASEAPI PVOID GetCurrentFiber(VOID);

/* Returns the parameter of the current fiber. Since NT 3.51. */
WINBASEAPI PVOID GetFiberData(VOID);

/* Returns whether the calling thread runs a fiber. Since Vista. */
WINBASEAPI BOOL WINAPI IsThreadAFiber(VOID);

/* Scheduling of processes. Affinity and priority class. Only this process can be changed: another one is ERROR_NOT_SUPPORTED. */

#define PROCESS_MODE_BACKGROUND_BEGIN 0x00100000
#define PROCESS_MODE_BACKGROUND_END 0x00200000

/* Stores the processors on which the threads of a process may run, and those of the machine. Both are 0 if there are
   several groups of processors. Differs: virtual processors; another process may run on all of them. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask,
                                              PDWORD_PTR lpSystemAffinityMask);

/* Sets the processors on which the threads of this process may run, also that of each thread. Fails with
   ERROR_INVALID_PARAMETER unless the mask is a part of the machine's. Differs: applies to virtual processors; the host's
   scheduler is not affected. Since NT 3.5. */
WINBASEAPI BOOL WINAPI SetProcessAffinityMask(HANDLE hProcess, DWORD_PTR dwProcessAffinityMask);

/* Returns the priority class; 0 on failure. Differs: another process is normal. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetPriorityClass(HANDLE hProcess);

/* Sets the priority class, from which the priorities of all threads follow, or begins or ends background mode. Differs:
   the host's scheduler follows where the process has the right; realtime becomes high, as without the privilege. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI SetPriorityClass(HANDLE hProcess, DWORD dwPriorityClass);

/* Sets and queries whether priority boosts are disabled, for all threads and for those created later. Since NT 4.0. */
WINBASEAPI BOOL WINAPI SetProcessPriorityBoost(HANDLE hProcess, BOOL bDisablePriorityBoost);
WINBASEAPI BOOL WINAPI GetProcessPriorityBoost(HANDLE hProcess, PBOOL pDisablePriorityBoost);

/* Stores the times of creation and exit, and the processor time in kernel and user mode. Differs: of a process that has
   ended, the processor times of children only. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetProcessTimes(HANDLE hProcess, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                                       LPFILETIME lpKernelTime, LPFILETIME lpUserTime);

/* Stores the number of open handles. Differs: of another process it is ERROR_NOT_SUPPORTED. Since XP. */
WINBASEAPI BOOL WINAPI GetProcessHandleCount(HANDLE hProcess, PDWORD pdwHandleCount);

/*
 * Topology. Virtual processor n stands for the n-th processor of the host on which the process may run; processors beyond
 * those are cores of their own.
 */

typedef enum _LOGICAL_PROCESSOR_RELATIONSHIP {
    RelationProcessorCore,
    RelationNumaNode,
    RelationCache,
    RelationProcessorPackage,
    RelationGroup,
    RelationAll = 0xffff
} LOGICAL_PROCESSOR_RELATIONSHIP;

#define LTP_PC_SMT 0x1

typedef enum _PROCESSOR_CACHE_TYPE { CacheUnified, CacheInstruction, CacheData, CacheTrace } PROCESSOR_CACHE_TYPE;

#define CACHE_FULLY_ASSOCIATIVE 0xFF

typedef struct _CACHE_DESCRIPTOR {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD Size;
    PROCESSOR_CACHE_TYPE Type;
} CACHE_DESCRIPTOR, *PCACHE_DESCRIPTOR;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION {
    ULONG_PTR ProcessorMask;
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    __extension__ union {
        struct {
            BYTE Flags;
        } ProcessorCore;
        struct {
            DWORD NodeNumber;
        } NumaNode;
        CACHE_DESCRIPTOR Cache;
        ULONGLONG Reserved[2];
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION;

typedef struct _PROCESSOR_RELATIONSHIP {
    BYTE Flags;
    BYTE EfficiencyClass;
    BYTE Reserved[20];
    WORD GroupCount;
    GROUP_AFFINITY GroupMask[1];
} PROCESSOR_RELATIONSHIP, *PPROCESSOR_RELATIONSHIP;

typedef struct _NUMA_NODE_RELATIONSHIP {
    DWORD NodeNumber;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} NUMA_NODE_RELATIONSHIP, *PNUMA_NODE_RELATIONSHIP;

typedef struct _CACHE_RELATIONSHIP {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD CacheSize;
    PROCESSOR_CACHE_TYPE Type;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} CACHE_RELATIONSHIP, *PCACHE_RELATIONSHIP;

typedef struct _PROCESSOR_GROUP_INFO {
    BYTE MaximumProcessorCount;
    BYTE ActiveProcessorCount;
    BYTE Reserved[38];
    KAFFINITY ActiveProcessorMask;
} PROCESSOR_GROUP_INFO, *PPROCESSOR_GROUP_INFO;

typedef struct _GROUP_RELATIONSHIP {
    WORD MaximumGroupCount;
    WORD ActiveGroupCount;
    BYTE Reserved[20];
    PROCESSOR_GROUP_INFO GroupInfo[1];
} GROUP_RELATIONSHIP, *PGROUP_RELATIONSHIP;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX {
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    DWORD Size;
    __extension__ union {
        PROCESSOR_RELATIONSHIP Processor;
        NUMA_NODE_RELATIONSHIP NumaNode;
        CACHE_RELATIONSHIP Cache;
        GROUP_RELATIONSHIP Group;
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX;

C_ASSERT(sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION) == 32);
C_ASSERT(sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX) == 80);

/* Stores one record for each core, cache, package and node of group 0, and the length. Fails with
   ERROR_INSUFFICIENT_BUFFER and the length that is needed. Differs: as the host's sysfs has it; without one each
   processor is a core, and all are one package. Since XP. */
WINBASEAPI BOOL WINAPI GetLogicalProcessorInformation(PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Buffer,
                                                      PDWORD ReturnedLength);

/* The same for one relationship or all, in records of different sizes, with all groups. Since 7. */
WINBASEAPI BOOL WINAPI GetLogicalProcessorInformationEx(LOGICAL_PROCESSOR_RELATIONSHIP RelationshipType,
                                                        PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Buffer,
                                                        PDWORD ReturnedLength);

/* Stores the highest number of a node. Since XP. */
WINBASEAPI BOOL WINAPI GetNumaHighestNodeNumber(PULONG HighestNodeNumber);

/* Registers. */

typedef PCONTEXT LPCONTEXT;

/* Stores and sets the registers of a suspended thread, as far as ContextFlags says. Differs: as NtGetContextThread. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI GetThreadContext(HANDLE hThread, LPCONTEXT lpContext);
WINBASEAPI BOOL WINAPI SetThreadContext(HANDLE hThread, const CONTEXT *lpContext);

/* The calling thread, and all others. */

/* Makes the stores of every thread of the process visible: a full barrier on each processor that runs one of them.
   Differs: uses membarrier; waits 10 ms where the host refuses it. Since Vista. */
WINBASEAPI VOID WINAPI FlushProcessWriteBuffers(VOID);

/* Stores the lowest address of the calling thread's or fiber's stack, and the address behind it. Since 8. */
WINBASEAPI VOID WINAPI GetCurrentThreadStackLimits(PULONG_PTR LowLimit, PULONG_PTR HighLimit);

INTERLOCK_END

#endif
