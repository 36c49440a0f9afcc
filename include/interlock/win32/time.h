/* time.h: clocks and the calendar. Part of win32.h. */
#ifndef INTERLOCK_WIN32_TIME_H
#define INTERLOCK_WIN32_TIME_H

#include <interlock/win32/base.h>

typedef UINT MMRESULT;
#define TIMERR_NOERROR 0
#define TIMERR_NOCANDO 97

INTERLOCK_BEGIN

WINBASEAPI BOOL WINAPI QueryPerformanceCounter(LARGE_INTEGER *lpPerformanceCount);
WINBASEAPI BOOL WINAPI QueryPerformanceFrequency(LARGE_INTEGER *lpFrequency);
WINBASEAPI DWORD WINAPI GetTickCount(VOID);
WINBASEAPI ULONGLONG WINAPI GetTickCount64(VOID);
WINBASEAPI VOID WINAPI QueryInterruptTime(PULONGLONG lpInterruptTime);
WINBASEAPI VOID WINAPI QueryInterruptTimePrecise(PULONGLONG lpInterruptTimePrecise);
WINBASEAPI BOOL WINAPI QueryUnbiasedInterruptTime(PULONGLONG UnbiasedTime);
WINBASEAPI VOID WINAPI QueryUnbiasedInterruptTimePrecise(PULONGLONG lpUnbiasedInterruptTimePrecise);

WINBASEAPI VOID WINAPI GetSystemTime(LPSYSTEMTIME lpSystemTime);
WINBASEAPI VOID WINAPI GetLocalTime(LPSYSTEMTIME lpSystemTime);
WINBASEAPI VOID WINAPI GetSystemTimeAsFileTime(LPFILETIME lpSystemTimeAsFileTime);
WINBASEAPI VOID WINAPI GetSystemTimePreciseAsFileTime(LPFILETIME lpSystemTimeAsFileTime);
WINBASEAPI BOOL WINAPI SystemTimeToFileTime(const SYSTEMTIME *lpSystemTime, LPFILETIME lpFileTime);
WINBASEAPI BOOL WINAPI FileTimeToSystemTime(const FILETIME *lpFileTime, LPSYSTEMTIME lpSystemTime);
WINBASEAPI BOOL WINAPI FileTimeToLocalFileTime(const FILETIME *lpFileTime, LPFILETIME lpLocalFileTime);
WINBASEAPI BOOL WINAPI LocalFileTimeToFileTime(const FILETIME *lpLocalFileTime, LPFILETIME lpFileTime);
WINBASEAPI LONG WINAPI CompareFileTime(const FILETIME *lpFileTime1, const FILETIME *lpFileTime2);

/* The resolution is always that of the host; the periods are checked and nothing else. */
WINBASEAPI DWORD WINAPI timeGetTime(VOID);
WINBASEAPI MMRESULT WINAPI timeBeginPeriod(UINT uPeriod);
WINBASEAPI MMRESULT WINAPI timeEndPeriod(UINT uPeriod);

INTERLOCK_END

#endif
