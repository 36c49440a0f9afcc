/* criticalsection.h: what critical sections, resources and their debug information share. */
#ifndef INTERLOCK_RTL_CRITICALSECTION_H
#define INTERLOCK_RTL_CRITICALSECTION_H

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "../ke/ki.h"

#define RTLP_NO_DEBUG_INFO ((PRTL_CRITICAL_SECTION_DEBUG)(LONG_PTR)-1)

/* Bits 0 and 1 of LockCount, and what one waiter subtracts. */
#define RTLP_FREE 1
#define RTLP_NONE_WOKEN 2
#define RTLP_ONE_WAITER 4

FORCEINLINE LONG RtlpReadLockCount(PRTL_CRITICAL_SECTION CriticalSection)
{
    /* acquire: a thread that sees a waiter sees the LockSemaphore that the waiter has chosen */
    return __atomic_load_n(&CriticalSection->LockCount, __ATOMIC_ACQUIRE);
}

FORCEINLINE ULONG RtlpWaitersOf(LONG LockCount)
{
    return ~((ULONG)LockCount >> 2) & MAXULONG >> 2;
}

FORCEINLINE ULONG RtlpReadOwner(PRTL_CRITICAL_SECTION CriticalSection)
{
    /* relaxed: a thread only compares it with its own id, which only the thread itself stores */
    return HandleToULong(__atomic_load_n(&CriticalSection->OwningThread, __ATOMIC_RELAXED));
}

/*
 * The lower half of SpinCount is the spin count. The upper half counts the waits, for `interlock`: most sections have no
 * debug information. Each half is only accessed as 32 bits: they change independently.
 */
FORCEINLINE PULONG RtlpSpinCountOf(PRTL_CRITICAL_SECTION CriticalSection)
{
    return (PULONG)&CriticalSection->SpinCount;
}

FORCEINLINE PULONG RtlpWaitCountOf(PRTL_CRITICAL_SECTION CriticalSection)
{
    return (PULONG)&CriticalSection->SpinCount + 1;
}

/* criticalsection.c */
BOOLEAN RtlpIsThreadId(PKTHREAD Thread, ULONG ThreadId); /* or was, before a fork */
extern BOOLEAN RtlpForceCSToUseEvents;                   /* INTERLOCK_FORCE_CS_EVENTS */
extern BOOLEAN RtlpEarlyEventCreation;                   /* RtlEnableEarlyCriticalSectionEventCreation */

/* The debug information. */
extern LIST_ENTRY RtlCriticalSectionList; /* of ProcessLocksList, under RtlCriticalSectionLock */
extern KI_LOCK RtlCriticalSectionLock;
VOID RtlpCountContention(PRTL_CRITICAL_SECTION_DEBUG DebugInfo);
ULONG RtlpContentionCount(PRTL_CRITICAL_SECTION_DEBUG DebugInfo);

/* Long waits. */

#define RTLP_MILLISECOND 10000LL
#define RTLP_SECOND 10000000LL
#define RTLP_DEFAULT_TIMEOUT (30 * 24 * 60 * 60) /* seconds */

typedef struct _RTLP_LONG_WAIT {
    PCSTR Function;
    PVOID Lock;
    ULONG Owner; /* its id; 0: none, or sharers */
    LONG Count;  /* LockCount or NumberOfActive */
    ULONG Waiters;
    PRTL_CRITICAL_SECTION_DEBUG DebugInfo;
} RTLP_LONG_WAIT;

extern volatile LONGLONG RtlpTimeout;        /* in 100 ns; 0: never. INTERLOCK_CRITICAL_SECTION_TIMEOUT, in seconds */
extern volatile ULONG RtlpPossibleDeadlocks; /* reported so far */
PLARGE_INTEGER RtlpDeadlockTimeout(PLARGE_INTEGER Timeout);  /* Timeout, filled in; NULL: never */
VOID RtlpReportPossibleDeadlock(const RTLP_LONG_WAIT *Wait); /* on stderr */

#endif
