/* missing.c: what winpthreads calls and Interlock has not got; weak, so that its own come first. */
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
