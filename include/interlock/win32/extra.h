/*
 * win32/extra.h: functions of user mode that windows.h does not show: wait chains (wct.h), the threads and keys of the C library
 * (process.h, conio.h), and a wait for more than 64 objects, which only Interlock has.
 */
#ifndef INTERLOCK_WIN32_EXTRA_H
#define INTERLOCK_WIN32_EXTRA_H

#include <interlock/win32.h>

INTERLOCK_BEGIN

/*
 * A wait for more than 64 handles. Windows has no such function; WaitForMultipleObjects stays at 64.
 *
 * Any: consumes exactly one object, the one with the lowest index that is signaled. All: consumes all objects at one
 * instant, or none. Both are those of WaitForMultipleObjects, and so are timeouts, APCs and abandoned mutexes. Only the
 * index is returned separately, because here WAIT_ABANDONED_0, WAIT_IO_COMPLETION and WAIT_TIMEOUT would be indices:
 *
 *     DWORD Index;
 *     switch (WaitForManyObjects(1000, Handles, FALSE, INFINITE, FALSE, &Index)) {
 *     case WAIT_OBJECT_0:    ... Handles[Index] ...
 *     case WAIT_ABANDONED_0: ... Handles[Index] is a mutex whose owner has ended ...
 *     }
 *
 * NtWaitForManyObjects (nt.h) and KeWaitForManyObjects (ke.h) are the same wait on lower layers.
 */

/* The most objects of one wait. */
#define MAXIMUM_MANY_OBJECTS 65535

/* Blocks until any object (the lowest index wins) or all of up to 65,535 are signaled. Returns WAIT_OBJECT_0 or
   WAIT_ABANDONED_0, with the index of the object in *lpIndex (0 after a wait for all); or WAIT_TIMEOUT,
   WAIT_IO_COMPLETION, WAIT_FAILED. lpIndex may be NULL. No or too many handles, or a duplicate object in a wait for all,
   are ERROR_INVALID_PARAMETER; a wait for all of more than 64 objects that are shared between processes is
   ERROR_NOT_SUPPORTED. Only in Interlock. */
WINBASEAPI DWORD WINAPI WaitForManyObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds,
                                           BOOL bAlertable, DWORD *lpIndex);

/*
 * Wait chains. What a thread waits on, which thread owns it, and what the owner waits on. A chain is a snapshot: all
 * threads of the process are held at the entry points of the library while it is taken. Other processes keep running; a
 * cycle through them is found twice, with the same waits.
 */

typedef LPVOID HWCT;

typedef enum _WCT_OBJECT_TYPE {
    WctCriticalSectionType = 1,
    WctSendMessageType,
    WctMutexType,
    WctAlpcType,
    WctComType,
    WctThreadWaitType,
    WctProcessWaitType,
    WctThreadType,
    WctComActivationType,
    WctUnknownType,
    WctSocketIoType,
    WctSmbIoType,
    WctMaxType
} WCT_OBJECT_TYPE;

typedef enum _WCT_OBJECT_STATUS {
    WctStatusNoAccess = 1,
    WctStatusRunning,
    WctStatusBlocked,
    WctStatusPidOnly,
    WctStatusPidOnlyRpcss,
    WctStatusOwned,
    WctStatusNotOwned,
    WctStatusAbandoned,
    WctStatusUnknown,
    WctStatusError,
    WctStatusMax
} WCT_OBJECT_STATUS;

#define WCT_MAX_NODE_COUNT 16
#define WCT_OBJNAME_LENGTH 128

#define WCT_ASYNC_OPEN_FLAG 0x1
#define WCT_OUT_OF_PROC_FLAG 0x1
#define WCT_OUT_OF_PROC_COM_FLAG 0x2
#define WCT_OUT_OF_PROC_CS_FLAG 0x4
#define WCT_NETWORK_IO_FLAG 0x8
#define WCTP_OPEN_ALL_FLAGS WCT_ASYNC_OPEN_FLAG
#define WCTP_GETINFO_ALL_FLAGS (WCT_OUT_OF_PROC_FLAG | WCT_OUT_OF_PROC_COM_FLAG | WCT_OUT_OF_PROC_CS_FLAG)

typedef struct _WAITCHAIN_NODE_INFO {
    WCT_OBJECT_TYPE ObjectType;
    WCT_OBJECT_STATUS ObjectStatus;
    __extension__ union {
        struct {
            WCHAR ObjectName[WCT_OBJNAME_LENGTH]; /* empty: unnamed */
            LARGE_INTEGER Timeout;
            BOOL Alertable;
        } LockObject;
        struct {
            DWORD ProcessId;
            DWORD ThreadId;
            DWORD WaitTime; /* in ms */
            DWORD ContextSwitches;
        } ThreadObject;
    };
} WAITCHAIN_NODE_INFO, *PWAITCHAIN_NODE_INFO;

typedef VOID(CALLBACK *PWAITCHAINCALLBACK)(HWCT WctHandle, DWORD_PTR Context, DWORD CallbackStatus, LPDWORD NodeCount,
                                           PWAITCHAIN_NODE_INFO NodeInfoArray, LPBOOL IsCycle);

/* Opens a session for GetThreadWaitChain; NULL on failure. Differs: asynchronous sessions are ERROR_NOT_SUPPORTED.
   Since Vista. */
WINBASEAPI HWCT WINAPI OpenThreadWaitChainSession(DWORD Flags, PWAITCHAINCALLBACK callback);

/* Closes a session that OpenThreadWaitChainSession has opened. Since Vista. */
WINBASEAPI VOID WINAPI CloseThreadWaitChainSession(HWCT WctHandle);

/* Stores up to 16 nodes, alternating between threads and what they wait on, and whether they form a cycle. Fails with
   ERROR_OBJECT_NOT_FOUND if there is no such thread, with ERROR_MORE_DATA if the chain is longer; the nodes that fit
   are valid. WCT_OUT_OF_PROC_FLAG: shared mutexes are followed into other processes. Differs: a thread of another
   process must have used a shared object, and what it waits for in its own process is not known (WctStatusUnknown);
   critical sections, mutexes, threads and processes: anything else is WctUnknownType. Since Vista. */
WINBASEAPI BOOL WINAPI GetThreadWaitChain(HWCT WctHandle, DWORD_PTR Context, DWORD Flags, DWORD ThreadId,
                                          LPDWORD NodeCount, PWAITCHAIN_NODE_INFO NodeInfoArray, LPBOOL IsCycle);

/* C runtime threads. */

typedef void (*_beginthread_proc_type)(void *);
typedef unsigned (*_beginthreadex_proc_type)(void *);

/* Starts a thread that closes its own handle when it ends. Returns -1 and sets errno on failure. Since NT 3.1. */
WINBASEAPI uintptr_t _beginthread(_beginthread_proc_type _StartAddress, unsigned _StackSize, void *_ArgList);

/* Ends the calling thread of _beginthread and closes its handle. Does not return. Since NT 3.1. */
WINBASEAPI DECLSPEC_NORETURN void _endthread(void);

/* CreateThread by the C runtime's name. Returns 0 and sets errno on failure. Since NT 3.1. */
WINBASEAPI uintptr_t _beginthreadex(void *_Security, unsigned _StackSize, _beginthreadex_proc_type _StartAddress,
                                    void *_ArgList, unsigned _InitFlag, unsigned *_ThrdAddr);

/* Ends the calling thread with an exit code. Does not return. Since NT 3.1. */
WINBASEAPI DECLSPEC_NORETURN void _endthreadex(unsigned _Retval);

/* GetCurrentProcessId by the C library's name. Since NT 3.1. */
FORCEINLINE int _getpid(void)
{
    return (int)GetCurrentProcessId();
}

/* Keys of the terminal. They are read from standard input, which need not be a terminal. */

/* Returns the next byte without waiting for a line, in the second form with its echo; -1 at the end of the input.
   Differs: keys without a character are escape sequences of the terminal. Since NT 3.1. */
WINBASEAPI int _getch(void);
WINBASEAPI int _getche(void);

/* Returns a nonzero number if _getch would not block. Since NT 3.1. */
WINBASEAPI int _kbhit(void);

/* Writes a character, or a string, to standard output at once. Returns the character or 0; -1 on failure. Since NT
   3.1. */
WINBASEAPI int _putch(int _Ch);
WINBASEAPI int _cputs(const char *_Str);

INTERLOCK_END

#endif
