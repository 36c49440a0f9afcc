/*
 * systemtime.c: local time, and the resolution of the clock that the process and its drivers request.
 *
 * The clock has the resolution of the host, whatever is requested. The requests are kept so that they can be queried:
 * one of the process, which the last call sets, and those of drivers, which nest. The finest of them is the current
 * resolution.
 */
#include "exp.h"

static volatile ULONG ExpProcessResolution; /* in 100 ns; 0: none */
static volatile ULONG ExpDriverResolution;  /* the finest since there was none */
static ULONG ExpDriverRequests;
static KI_LOCK ExpResolutionLock; /* for the two above */

static LONGLONG ExpZoneOffset(VOID)
{
    LARGE_INTEGER Now;
    KeQuerySystemTimePrecise(&Now);
    return HalQueryZoneOffset((ULONGLONG)Now.QuadPart);
}

VOID ExSystemTimeToLocalTime(PLARGE_INTEGER SystemTime, PLARGE_INTEGER LocalTime)
{
    LocalTime->QuadPart = SystemTime->QuadPart + ExpZoneOffset();
}

VOID ExLocalTimeToSystemTime(PLARGE_INTEGER LocalTime, PLARGE_INTEGER SystemTime)
{
    SystemTime->QuadPart = LocalTime->QuadPart - ExpZoneOffset();
}

static ULONG ExpBoundedResolution(ULONG DesiredTime)
{
    ULONG Finest = DesiredTime < EXP_FINEST_RESOLUTION ? EXP_FINEST_RESOLUTION : DesiredTime;
    return Finest < EXP_COARSEST_RESOLUTION ? Finest : EXP_COARSEST_RESOLUTION;
}

/* relaxed, both here and below: advisory only, publishes nothing */
static ULONG ExpCurrentResolution(VOID)
{
    ULONG Process = __atomic_load_n(&ExpProcessResolution, __ATOMIC_RELAXED);
    ULONG Driver = __atomic_load_n(&ExpDriverResolution, __ATOMIC_RELAXED);
    ULONG Finest = Process != 0 && (Driver == 0 || Process < Driver) ? Process : Driver;
    return Finest != 0 ? Finest : EXP_COARSEST_RESOLUTION;
}

BOOLEAN ExpSetProcessResolution(ULONG DesiredTime, BOOLEAN Set, PULONG Current)
{
    ULONG Wanted = Set ? ExpBoundedResolution(DesiredTime) : 0;
    ULONG Before = __atomic_exchange_n(&ExpProcessResolution, Wanted, __ATOMIC_RELAXED);
    *Current = ExpCurrentResolution();
    return Before != 0;
}

ULONG ExSetTimerResolution(ULONG DesiredTime, BOOLEAN SetResolution)
{
    ULONG Wanted = ExpBoundedResolution(DesiredTime);
    PKTHREAD Thread = KiEnterLocked(&ExpResolutionLock);
    if (SetResolution) {
        ExpDriverRequests++;
        if (ExpDriverResolution == 0 || Wanted < ExpDriverResolution) {
            __atomic_store_n(&ExpDriverResolution, Wanted, __ATOMIC_RELAXED);
        }
    } else if (ExpDriverRequests != 0 && --ExpDriverRequests == 0) {
        __atomic_store_n(&ExpDriverResolution, 0, __ATOMIC_RELAXED);
    }
    KiExitLocked(&ExpResolutionLock, Thread);
    return ExpCurrentResolution();
}

VOID ExQueryTimerResolution(PULONG MaximumTime, PULONG MinimumTime, PULONG CurrentTime)
{
    *MaximumTime = EXP_COARSEST_RESOLUTION;
    *MinimumTime = EXP_FINEST_RESOLUTION;
    *CurrentTime = ExpCurrentResolution();
}
