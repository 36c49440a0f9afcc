/* time.c: the clocks. All have the full resolution of the host, even if the caller does not request it. */
#include "ki.h"

VOID KeQuerySystemTimePrecise(PLARGE_INTEGER CurrentTime)
{
    CurrentTime->QuadPart = (LONGLONG)HalDispatch.QuerySystemTime();
}

VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime)
{
    KeQuerySystemTimePrecise(CurrentTime);
}

ULONGLONG KeQueryInterruptTime(VOID)
{
    return HalDispatch.QueryInterruptTime();
}

ULONGLONG KeQueryInterruptTimePrecise(PULONG64 QpcTimeStamp)
{
    *QpcTimeStamp = HalQueryPerformanceCounter();
    return HalDispatch.QueryInterruptTime();
}

ULONGLONG KeQueryUnbiasedInterruptTime(VOID)
{
    return KeQueryInterruptTime();
}

ULONGLONG KeQueryUnbiasedInterruptTimePrecise(PULONG64 QpcTimeStamp)
{
    return KeQueryInterruptTimePrecise(QpcTimeStamp);
}

VOID KeQueryTickCount(PLARGE_INTEGER CurrentCount)
{
    CurrentCount->QuadPart = (LONGLONG)(HalDispatch.QueryInterruptTime() / KI_TICK);
}

ULONG KeQueryTimeIncrement(VOID)
{
    return (ULONG)KI_TICK;
}

LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency)
{
    LARGE_INTEGER Counter;
    if (PerformanceFrequency != NULL) {
        PerformanceFrequency->QuadPart = (LONGLONG)HAL_PERFORMANCE_FREQUENCY;
    }
    Counter.QuadPart = (LONGLONG)HalQueryPerformanceCounter();
    return Counter;
}

VOID KeStallExecutionProcessor(ULONG MicroSeconds)
{
    /* + 1: the clock may have been read almost one unit late. */
    ULONGLONG End = HalDispatch.QueryInterruptTime() + MicroSeconds * 10ULL + 1;
    while (HalDispatch.QueryInterruptTime() < End) {
        HalPause();
    }
}
