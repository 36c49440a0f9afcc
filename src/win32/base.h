/* base.h: what the Win32 functions share: the last error, timeouts, strings, and the per-thread data. */
#ifndef INTERLOCK_WIN32_BASE_PRIVATE_H
#define INTERLOCK_WIN32_BASE_PRIVATE_H

#include <interlock/nt.h>
#include <interlock/rtl.h>
#include <interlock/win32.h>

#include "../ex/text.h"
#include "../ps/psp.h"

/* error.c */
ULONG BaseSetLastNTError(NTSTATUS Status); /* returns the Win32 error */
BOOL BaseBoolStatus(NTSTATUS Status);      /* TRUE, or FALSE with the last error set */

#define BASE_MILLISECONDS_TO_1970 11644473600000LL /* from 1601 */

/* system.c. NULL: no timeout. */
PLARGE_INTEGER BaseFormatTimeOut(PLARGE_INTEGER Timeout, ULONG Milliseconds);

/* thread.c. FALSE, with the last error set: one of them is NULL. */
BOOL BaseStoreTimes(const KERNEL_USER_TIMES *Times, LPFILETIME Creation, LPFILETIME Exit, LPFILETIME Kernel,
                    LPFILETIME User);

/* object.c. Win32 has no alerts, so an alertable wait that an alert ended starts over with the rest of its time. */
typedef struct _BASE_WAIT_TIME {
    LARGE_INTEGER Interval;
    PLARGE_INTEGER Timeout;          /* for the Nt service */
    ULONGLONG End;                   /* in interrupt time, if the wait may start over and does not poll */
    BOOLEAN Alertable;
} BASE_WAIT_TIME, *PBASE_WAIT_TIME;

VOID BaseBeginWait(PBASE_WAIT_TIME Time, ULONG Milliseconds, BOOL Alertable);
BOOLEAN BaseWaitAgain(PBASE_WAIT_TIME Time, NTSTATUS Status); /* FALSE: Status is the result of the wait */

/* process.c: the handles that a child inherits. FALSE: the list, which may be NULL, does not have the attribute. */
struct _PROC_THREAD_ATTRIBUTE_LIST;
BOOLEAN BaseFindHandleList(struct _PROC_THREAD_ATTRIBUTE_LIST *AttributeList, const HANDLE **List, PULONG Count);

/* namespace.c: a name that begins with the prefix of a private namespace. Returns the namespace, and how many characters
   the prefix and its separator have. NULL: the name begins with none. */
HANDLE BaseFindNamespace(LPCWSTR Name, PSIZE_T Prefix);

/* process.c. An array of strings in one block of memory, ended by NULL; NULL: no memory. HalFree frees it. */
PSTR *BaseSplitCommandLine(PCSTR CommandLine);
PSTR *BaseSplitEnvironment(PCSTR Block);

#define TLS_MINIMUM_AVAILABLE 64

/* A thread's room: zeroed when a thread begins. Only the thread itself touches it, unless a member says otherwise. */
typedef struct _BASE_THREAD {
    PVOID *TlsSlots;                 /* of the first TLS_MINIMUM_AVAILABLE indexes, and */
    PVOID *TlsExpansionSlots;        /* NULL: none was ever set; TlsFree and FlsFree clear values of other threads */
    struct _BASE_FLS *Fls;           /* the values of the fiber that runs: tls.c; NULL: none was ever set */
    HANDLE CrtThreadHandle;          /* _endthread closes it; NULL: there is none */
    ULONG FlsCallback;               /* the index whose callback runs on this thread, 0: none */
    ULONG GuaranteedStackBytes;      /* of SetThreadStackGuarantee */
    PVOID InvalidParameterHandler;   /* of the C library; NULL: that of the process */
    BOOLEAN Background;              /* THREAD_MODE_BACKGROUND_BEGIN */
    BOOLEAN Detached;                /* the modules have been notified of the thread's end */
    ULONG ErrorMode;                 /* of SetThreadErrorMode */
    DWORD ExitCode;                  /* with which it ends once it is back on its own stack, if */
    BOOLEAN ExitPending;             /* it left a fiber for that: fiber.c */
    struct _BASE_FIBER *Fiber;       /* the running fiber; NULL: the thread is not a fiber */
    struct _BASE_FIBER *PreviousFiber; /* that ran before, during a switch */
    struct _BASE_FIBER *ThreadFiber; /* on the thread's own stack; changes under BaseFiberLock */
    struct _BASE_FIBER *LeftFiber;   /* ConvertFiberToThread has left the thread on its stack */
} BASE_THREAD, *PBASE_THREAD;

KI_THREAD_ROOM(BASE_THREAD, Win32, BaseThread);

FORCEINLINE PBASE_THREAD BaseCurrentThread(VOID)
{
    return BaseThread(KiCurrentThread());
}

/* tls.c. Called before the thread acquires something that its end has to release. */
VOID BaseWatchThreadExits(VOID);

/* module.c. */
VOID BaseThreadEnds(PBASE_THREAD Thread);

/* tls.c: the values of a fiber. Calls back for them, on the current thread, and frees them. NULL does nothing. */
VOID BaseEndFls(struct _BASE_FLS *Fls);

/* fiber.c. Does not return if the thread can end on its own stack. */
VOID BaseLeaveFiberToExit(DWORD ExitCode);
VOID BaseThreadLeavesFibers(PBASE_THREAD Own, BOOLEAN WasTerminated); /* Own ends */

#endif
