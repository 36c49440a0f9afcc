/*
 * ntp.h: what the system services share. A service that drivers may call too is written once, with the mode of its
 * caller: KernelMode, by its Zw name, is not subject to access checks.
 */
#ifndef INTERLOCK_NTP_H
#define INTERLOCK_NTP_H

#include <interlock/nt.h>

#include "../ke/wait.h"
#include "../ob/obp.h"

/* A thread's room. */
typedef struct _NTP_THREAD {
    KI_LOCK ActiveTimerListLock;     /* timers whose APC goes to this thread: timer.c */
    LIST_ENTRY ActiveTimerListHead;  /* zeroed: it never had one */
    volatile ULONG UsesKeptPort;     /* a call of this thread uses NTP_THREAD_KEPT: keptport.h */
} NTP_THREAD, *PNTP_THREAD;

/* The completion port that a thread in this slot used last: keptport.h. */
typedef struct _NTP_THREAD_KEPT {
    volatile ULONG_PTR KeptPort;
    HANDLE KeptHandle;
    PVOID KeptEntry;                 /* of the handle, in the table */
    ULONG64 KeptAccess;              /* the entry's incarnation */
} NTP_THREAD_KEPT, *PNTP_THREAD_KEPT;

KI_THREAD_ROOM(NTP_THREAD, Nt, NtpThread);
KI_THREAD_ROOM(NTP_THREAD_KEPT, NtKept, NtpThreadKept);

/* A service from its entry to its return: the thread is not ended in between (KiEnterService). */
#define NTP_SERVICE(Call)                                                                                              \
    ({                                                                                                                 \
        PKTHREAD ServiceThread = KiCurrentThread();                                                                    \
        NTSTATUS ServiceStatus;                                                                                        \
        KiEnterService(ServiceThread);                                                                                 \
        ServiceStatus = (Call);                                                                                        \
        KiExitService(ServiceThread);                                                                                  \
        ServiceStatus;                                                                                                 \
    })

/* A query with a structure of fixed size: what is wrong with it before the handle is looked at. */
FORCEINLINE NTSTATUS NtpCheckQuery(BOOLEAN KnownClass, PVOID Information, ULONG Length, ULONG Required)
{
    if (!KnownClass) {
        return STATUS_INVALID_INFO_CLASS;
    }
    if (Length != Required) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    return Information != NULL ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

FORCEINLINE VOID NtpReturnLength(PULONG ReturnLength, ULONG Length)
{
    if (ReturnLength != NULL) {
        *ReturnLength = Length;
    }
}

#endif
