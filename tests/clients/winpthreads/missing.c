/* missing.c: functions that winpthreads calls and Interlock lacks; weak, so that its own take precedence. */
#include <windows.h>

#define MAYBE __attribute__((weak))

MAYBE void _fpreset(void)
{
}

MAYBE BOOL WINAPI SetSystemTime(const SYSTEMTIME *time)
{
    (void)time;
    SetLastError(ERROR_ACCESS_DENIED);
    return FALSE;
}

MAYBE BOOL WINAPI GetSystemTimeAdjustment(PDWORD adjustment, PDWORD increment, PBOOL disabled)
{
    *adjustment = *increment = 156250; /* 100 ns: the tick of 64 Hz */
    *disabled = TRUE;
    return TRUE;
}
