/* barrier.h: barriers, where a number of threads wait for each other. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_BARRIER_H
#define INTERLOCK_BARRIER_H

#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>

INTERLOCK_BEGIN

typedef struct _RTL_BARRIER {
    DWORD Reserved1;
    DWORD Reserved2;
    ULONG_PTR Reserved3[2];
    DWORD Reserved4;
    DWORD Reserved5;
} RTL_BARRIER, *PRTL_BARRIER;

C_ASSERT(sizeof(RTL_BARRIER) == 32);

#define RTL_BARRIER_FLAGS_SPIN_ONLY 0x00000001
#define RTL_BARRIER_FLAGS_BLOCK_ONLY 0x00000002
#define RTL_BARRIER_FLAGS_NO_DELETE 0x00000004 /* whoever deletes it knows by other means that this thread is out */

/* SpinCount MAXULONG: the default. */
NTSYSAPI NTSTATUS RtlInitBarrier(PRTL_BARRIER Barrier, ULONG TotalThreads, ULONG SpinCount);
NTSYSAPI NTSTATUS RtlDeleteBarrier(PRTL_BARRIER Barrier);

/* Both return when TotalThreads have come, TRUE to one of them. The second is for a barrier that will be deleted, whatever
   the flags say. */
NTSYSAPI BOOLEAN RtlBarrier(PRTL_BARRIER Barrier, ULONG Flags);
NTSYSAPI BOOLEAN RtlBarrierForDelete(PRTL_BARRIER Barrier, ULONG Flags);

INTERLOCK_END

#endif
