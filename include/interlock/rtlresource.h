/* rtlresource.h: resources of user mode, shared or exclusive. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_RTLRESOURCE_H
#define INTERLOCK_RTLRESOURCE_H

#include <interlock/criticalsection.h>

INTERLOCK_BEGIN

typedef struct _RTL_RESOURCE {
    RTL_CRITICAL_SECTION CriticalSection;
    HANDLE SharedSemaphore;
    volatile ULONG NumberOfWaitingShared;
    ULONG Reserved;
    HANDLE ExclusiveSemaphore;
    volatile ULONG NumberOfWaitingExclusive;
    volatile LONG NumberOfActive; /* 0 free, the number of shares, or minus the number of acquires of the one owner */
    HANDLE ExclusiveOwnerThread;  /* its id; NULL: nobody */
    ULONG Flags;
    PRTL_RESOURCE_DEBUG DebugInfo;
} RTL_RESOURCE, *PRTL_RESOURCE;

C_ASSERT(sizeof(RTL_RESOURCE) == 96);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, ExclusiveSemaphore) == 56);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, NumberOfActive) == 68);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, ExclusiveOwnerThread) == 72);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, DebugInfo) == 88);

#define RTL_RESOURCE_FLAG_LONG_TERM ((ULONG)0x00000001) /* a long wait is nothing to report */

/* What cannot be made is raised: STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES. */
NTSYSAPI VOID RtlInitializeResource(PRTL_RESOURCE Resource);
NTSYSAPI VOID RtlDeleteResource(PRTL_RESOURCE Resource);
NTSYSAPI BOOLEAN RtlAcquireResourceShared(PRTL_RESOURCE Resource, BOOLEAN Wait);
NTSYSAPI BOOLEAN RtlAcquireResourceExclusive(PRTL_RESOURCE Resource, BOOLEAN Wait);
NTSYSAPI VOID RtlReleaseResource(PRTL_RESOURCE Resource);
/* Gives the share up while it waits for other sharers, so others may own it exclusively before. */
NTSYSAPI VOID RtlConvertSharedToExclusive(PRTL_RESOURCE Resource);
NTSYSAPI VOID RtlConvertExclusiveToShared(PRTL_RESOURCE Resource);
NTSYSAPI VOID RtlDumpResource(PRTL_RESOURCE Resource);

INTERLOCK_END

#endif
