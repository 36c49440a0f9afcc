/* local.h: Win32's per-thread data. */
#ifndef INTERLOCK_WIN32_LOCAL_H
#define INTERLOCK_WIN32_LOCAL_H

#include "base.h"

#include "../ps/psp.h"

#define TLS_MINIMUM_AVAILABLE 64

/* A thread's room: zeroed when a thread begins. Only the thread itself touches it, unless a member says otherwise. */
typedef struct _BASE_THREAD {
    PVOID TlsSlots[TLS_MINIMUM_AVAILABLE]; /* and */
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

/* notify.c. */
VOID BaseThreadEnds(PBASE_THREAD Thread);

/* tls.c: the values of a fiber. Calls back for them, on the current thread, and frees them. NULL does nothing. */
VOID BaseEndFls(struct _BASE_FLS *Fls);

/* fiber.c. Does not return if the thread can end on its own stack. */
VOID BaseLeaveFiberToExit(DWORD ExitCode);
VOID BaseThreadLeavesFibers(PBASE_THREAD Own, BOOLEAN WasTerminated); /* Own ends */

#endif
