/* criticalsection.h: critical sections. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_CRITICALSECTION_H
#define INTERLOCK_CRITICALSECTION_H

#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>

INTERLOCK_BEGIN

#define RTL_CRITSECT_TYPE 0
#define RTL_RESOURCE_TYPE 1

/* One for each section or resource that asked for it. Those of a process are in one list. */
typedef struct _RTL_CRITICAL_SECTION_DEBUG {
    WORD Type;
    WORD CreatorBackTraceIndex;
    struct _RTL_CRITICAL_SECTION *CriticalSection;
    LIST_ENTRY ProcessLocksList;
    DWORD EntryCount;
    DWORD ContentionCount;
    DWORD Flags;
    WORD CreatorBackTraceIndexHigh;
    WORD Identifier;
} RTL_CRITICAL_SECTION_DEBUG, *PRTL_CRITICAL_SECTION_DEBUG, RTL_RESOURCE_DEBUG, *PRTL_RESOURCE_DEBUG;

/*
 * LockCount: -1 free, -2 held. Bit 0 clear: it is held; bit 1 clear: a waiter was woken and is on its way; the rest is
 * minus one minus the number of waiters.
 */
typedef struct _RTL_CRITICAL_SECTION {
    PRTL_CRITICAL_SECTION_DEBUG DebugInfo; /* (PVOID)-1: none */
    LONG LockCount;
    LONG RecursionCount;
    HANDLE OwningThread;  /* its id; NULL: nobody */
    HANDLE LockSemaphore; /* how its waiters wait: NULL until there were any, an event, or -1 */
    ULONG_PTR SpinCount;
} RTL_CRITICAL_SECTION, *PRTL_CRITICAL_SECTION;

C_ASSERT(sizeof(RTL_CRITICAL_SECTION) == 40);
C_ASSERT(FIELD_OFFSET(RTL_CRITICAL_SECTION, LockCount) == 8);
C_ASSERT(FIELD_OFFSET(RTL_CRITICAL_SECTION, SpinCount) == 32);
C_ASSERT(sizeof(RTL_CRITICAL_SECTION_DEBUG) == 48);

/* For RtlInitializeCriticalSectionEx. The low 24 bits of a spin count are the count. */
#define RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO 0x01000000
#define RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN 0x02000000
#define RTL_CRITICAL_SECTION_FLAG_STATIC_INIT 0x04000000
#define RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE 0x08000000
#define RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO 0x10000000
#define RTL_CRITICAL_SECTION_ALL_FLAG_BITS 0xFF000000
#define RTL_CRITICAL_SECTION_FLAG_RESERVED                                                                             \
    (RTL_CRITICAL_SECTION_ALL_FLAG_BITS &                                                                              \
     (~(RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO | RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN |                             \
        RTL_CRITICAL_SECTION_FLAG_STATIC_INIT | RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE |                              \
        RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO)))
#define RTL_CRITICAL_SECTION_DEBUG_FLAG_STATIC_INIT 0x00000001

NTSYSAPI NTSTATUS RtlInitializeCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI NTSTATUS RtlInitializeCriticalSectionAndSpinCount(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount);
NTSYSAPI NTSTATUS RtlInitializeCriticalSectionEx(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount, ULONG Flags);
NTSYSAPI NTSTATUS RtlDeleteCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI NTSTATUS RtlEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI NTSTATUS RtlLeaveCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI LOGICAL RtlTryEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI ULONG RtlSetCriticalSectionSpinCount(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount);
NTSYSAPI LOGICAL RtlIsCriticalSectionLocked(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI LOGICAL RtlIsCriticalSectionLockedByThread(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI ULONG RtlGetCriticalSectionRecursionCount(PRTL_CRITICAL_SECTION CriticalSection);

/* Sections that are initialized from now on get an event for their waiters at once, or the initialization fails. */
NTSYSAPI VOID RtlEnableEarlyCriticalSectionEventCreation(VOID);

/* Says on standard error which critical sections with debug information the thread owns. */
NTSYSAPI VOID RtlCheckForOrphanedCriticalSections(HANDLE Thread);

INTERLOCK_END

#endif
