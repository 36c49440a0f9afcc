/* barrier.c: barriers by their Win32 names. */
#include "base.h"

#include <interlock/win32/lock.h>

C_ASSERT(SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY == RTL_BARRIER_FLAGS_SPIN_ONLY);
C_ASSERT(SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY == RTL_BARRIER_FLAGS_BLOCK_ONLY);
C_ASSERT(SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE == RTL_BARRIER_FLAGS_NO_DELETE);

BOOL InitializeSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, LONG lTotalThreads, LONG lSpinCount)
{
    return BaseBoolStatus(RtlInitBarrier(lpBarrier, (ULONG)lTotalThreads, (ULONG)lSpinCount));
}

BOOL EnterSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, DWORD dwFlags)
{
    return RtlBarrier(lpBarrier, dwFlags);
}

BOOL DeleteSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier)
{
    return BaseBoolStatus(RtlDeleteBarrier(lpBarrier));
}
