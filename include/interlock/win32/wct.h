/* win32/wct.h: wait chains. <wct.h> and win32.h include it. */
#ifndef INTERLOCK_WIN32_WCT_H
#define INTERLOCK_WIN32_WCT_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

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

/* Closes the session. Since Vista. */
WINBASEAPI VOID WINAPI CloseThreadWaitChainSession(HWCT WctHandle);

/* Stores up to 16 nodes, alternating between threads and what they wait on, and whether they form a cycle. Fails with
   ERROR_OBJECT_NOT_FOUND if there is no such thread, with ERROR_MORE_DATA if the chain is longer; the nodes that fit
   are valid. WCT_OUT_OF_PROC_FLAG: shared mutexes are followed into other processes. Differs: a thread of another
   process must have used a shared object, and what it waits for in its own process is not known (WctStatusUnknown);
   critical sections, mutexes, threads and processes: anything else is WctUnknownType. Since Vista. */
WINBASEAPI BOOL WINAPI GetThreadWaitChain(HWCT WctHandle, DWORD_PTR Context, DWORD Flags, DWORD ThreadId,
                                          LPDWORD NodeCount, PWAITCHAIN_NODE_INFO NodeInfoArray, LPBOOL IsCycle);

INTERLOCK_END

#endif
