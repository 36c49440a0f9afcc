/*
 * waitchain.h: wait chain traversal: who a thread waits for, and who that one waits for. What <wct.h> has.
 *
 * A chain begins with a thread and goes on with what it waits for, whose owner is next. It is that of one moment: all
 * threads of the process stand still at the doors of the library while it is taken.
 */
#ifndef INTERLOCK_WIN32_WAITCHAIN_H
#define INTERLOCK_WIN32_WAITCHAIN_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

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
            WCHAR ObjectName[WCT_OBJNAME_LENGTH]; /* empty: it has none */
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

/* Asynchronous ones are not supported: ERROR_NOT_SUPPORTED. */
WINBASEAPI HWCT WINAPI OpenThreadWaitChainSession(DWORD Flags, PWAITCHAINCALLBACK callback);
WINBASEAPI VOID WINAPI CloseThreadWaitChainSession(HWCT WctHandle);

/* ERROR_OBJECT_NOT_FOUND: no such thread in this process. ERROR_MORE_DATA: the chain goes on; what fits is valid. */
WINBASEAPI BOOL WINAPI GetThreadWaitChain(HWCT WctHandle, DWORD_PTR Context, DWORD Flags, DWORD ThreadId,
                                          LPDWORD NodeCount, PWAITCHAIN_NODE_INFO NodeInfoArray, LPBOOL IsCycle);

INTERLOCK_END

#endif
