/* local.h: what Win32 keeps of a thread. */
#ifndef INTERLOCK_WIN32_LOCAL_H
#define INTERLOCK_WIN32_LOCAL_H

#include "base.h"

#include "../ps/psp.h"

#define TLS_MINIMUM_AVAILABLE 64

/* A thread's room: zeroed when a thread begins. Only the thread itself touches it, unless a member says otherwise. */
typedef struct _BASE_THREAD {
    PVOID TlsSlots[TLS_MINIMUM_AVAILABLE]; /* and */
    PVOID *TlsExpansionSlots;        /* NULL: none was ever set; TlsFree and FlsFree clear values of other threads */
    PVOID *FlsSlots;                 /* likewise */
    HANDLE CrtThreadHandle;          /* _endthread closes it; NULL: there is none */
    ULONG FlsCallback;               /* the index whose callback runs on this thread, 0: none */
    ULONG GuaranteedStackBytes;      /* of SetThreadStackGuarantee */
    PVOID InvalidParameterHandler;   /* of the C library; NULL: that of the process */
    BOOLEAN Background;              /* THREAD_MODE_BACKGROUND_BEGIN */
    BOOLEAN Detached;                /* the modules have been told that the thread ends */
} BASE_THREAD, *PBASE_THREAD;

KI_THREAD_ROOM(BASE_THREAD, Win32, BaseThread);

FORCEINLINE PBASE_THREAD BaseCurrentThread(VOID)
{
    return BaseThread(KiCurrentThread());
}

/* tls.c. To be called before something is there that an ending thread has to give up. */
VOID BaseWatchThreadExits(VOID);

/* notify.c. */
VOID BaseThreadEnds(PBASE_THREAD Thread);

#endif
