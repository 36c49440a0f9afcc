/* futex.c: sleeping, waking, and virtual time. A wait with a deadline may time out at any moment. */
#include "labhal.h"

uint64_t LabhalDeadline(HAL_CLOCK Clock, ULONGLONG Time)
{
    if (Clock == HalNoDeadline) {
        return 0;
    }
    if (Clock == HalSystemTime) {
        Time = Time > LABHAL_SYSTEM_OFFSET ? Time - LABHAL_SYSTEM_OFFSET : 1;
    }
    return Time > lab->run.now + LABHAL_LONGEST_WAIT ? 0 : Time == 0 ? 1 : Time;
}

static BOOLEAN LabhalWait(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline)
{
    LabhalCheckSleep(LABHAL_CALLER);
    return lab_block_wait((uintptr_t)Address, Expected, LabhalDeadline(Deadline->Clock, Deadline->Time), LABHAL_CALLER);
}

static VOID LabhalWake(volatile ULONG *Address, ULONG Count)
{
    lab_block_wake_address((uintptr_t)Address, Count, LABHAL_CALLER);
}

BOOLEAN HalWaitShared(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline)
{
    return lab_block_wait((uintptr_t)Address, Expected, LabhalDeadline(Deadline->Clock, Deadline->Time), LABHAL_CALLER);
}

VOID HalWakeShared(volatile ULONG *Address, ULONG Count)
{
    lab_block_wake_address((uintptr_t)Address, Count, LABHAL_CALLER);
}

static ULONGLONG LabhalQueryInterruptTime(VOID)
{
    return lab_block_clock(LABHAL_CALLER);
}

LONGLONG HalQueryZoneOffset(ULONGLONG SystemTime)
{
    UNREFERENCED_PARAMETER(SystemTime);
    return 0;
}

static ULONGLONG LabhalQuerySystemTime(VOID)
{
    return lab_block_clock(LABHAL_CALLER) + LABHAL_SYSTEM_OFFSET;
}

/* There may be no other thread to run. */
static VOID LabhalYield(VOID)
{
}

static ULONG LabhalCurrentProcessor(VOID)
{
    return lab != NULL && lab->current != NULL ? lab->current->number : 0;
}

ULONG HalTickLength = 1;

HAL_DISPATCH HalDispatch = {
    .Wait = LabhalWait,
    .Wake = LabhalWake,
    .QueryInterruptTime = LabhalQueryInterruptTime,
    .QueryTickTime = LabhalQueryInterruptTime,
    .QuerySystemTime = LabhalQuerySystemTime,
    .Yield = LabhalYield,
    .CurrentProcessor = LabhalCurrentProcessor,
};

VOID HalClockWait(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    uint64_t Deadline = InterruptTime != 0 ? LabhalDeadline(HalInterruptTime, InterruptTime) : 0;
    uint64_t Other = SystemTime != 0 ? LabhalDeadline(HalSystemTime, SystemTime) : 0;

    if (Deadline == 0 || (Other != 0 && Other < Deadline)) {
        Deadline = Other;
    }
    lab_block_wait((uintptr_t)Wake, Expected, Deadline, LABHAL_CALLER);
}

VOID HalClockWake(volatile ULONG *Wake)
{
    lab_block_wake_address((uintptr_t)Wake, 1, LABHAL_CALLER);
}

ULONGLONG HalQueryPerformanceCounter(VOID)
{
    return lab_block_clock(LABHAL_CALLER);
}
