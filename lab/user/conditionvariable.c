/* Condition variables: no lost wakeup, a wake that races with a timeout, both kinds of lock, memory freed at once. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

#include "sleepers.h"

static RTL_CONDITION_VARIABLE condition;
static RTL_SRWLOCK lock;
static RTL_CRITICAL_SECTION section;
static int tokens;

static void setup_section(void)
{
    RtlpTimeout = 0;
    RtlInitializeCriticalSection(&section);
    RtlSetCriticalSectionSpinCount(&section, 0);
}

static void put_token(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    tokens += 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void producer(void)
{
    put_token();
    RtlWakeConditionVariable(&condition);
}

static void producer_inside(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    tokens += 1;
    RtlWakeConditionVariable(&condition);
    RtlReleaseSRWLockExclusive(&lock);
}

static void double_producer(void)
{
    producer();
    producer();
}

static void consumer(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    while (tokens == 0)
        LabAssert(RtlSleepConditionVariableSRW(&condition, &lock, NULL, 0) == STATUS_SUCCESS);
    tokens -= 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void nothing_left(void)
{
    LabAssert(tokens == 0 && condition.Ptr == NULL && lock.Ptr == NULL);
}
LAB_SCENARIO(condition_one, .Threads = {consumer, producer}, .Finish = nothing_left, .SpuriousWakes = 1);
LAB_SCENARIO(condition_one_c11, .Threads = {consumer, producer}, .Finish = nothing_left, .Model = "c11",
             .StaleReads = 2);
LAB_SCENARIO(condition_inside, .Setup = sleep_soon, .Threads = {consumer, producer_inside}, .Finish = nothing_left);
LAB_SCENARIO(condition_two, .Threads = {consumer, consumer, double_producer}, .Finish = nothing_left,
             .Flags = LAB_LARGE);

/* All sleepers are woken, sharers too. */
static int opened;

static void opener(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    opened = 1;
    RtlReleaseSRWLockExclusive(&lock);
    RtlWakeAllConditionVariable(&condition);
}

static void shared_waiter(void)
{
    RtlAcquireSRWLockShared(&lock);
    while (!opened)
        RtlSleepConditionVariableSRW(&condition, &lock, NULL, RTL_CONDITION_VARIABLE_LOCKMODE_SHARED);
    RtlReleaseSRWLockShared(&lock);
}
LAB_SCENARIO(condition_all, .Threads = {shared_waiter, shared_waiter, opener}, .Finish = nothing_left,
             .Flags = LAB_LARGE);
LAB_SCENARIO(condition_all_sleep, .Setup = sleep_soon, .Threads = {shared_waiter, shared_waiter, opener},
             .Finish = nothing_left, .Flags = LAB_LARGE);

/* One token and one wake for two sleepers; one of them times out. A delivered wake wins over the timeout, so it is not
   lost with the one that timed out: at the end the token is taken. */
static void impatient_consumer(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = STATUS_SUCCESS;
    RtlAcquireSRWLockExclusive(&lock);
    while (tokens == 0 && status == STATUS_SUCCESS)
        status = RtlSleepConditionVariableSRW(&condition, &lock, &timeout, 0);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    tokens -= status == STATUS_SUCCESS;
    RtlReleaseSRWLockExclusive(&lock);
}

static void token_is_taken(void)
{
    LabAssert(tokens == 0 && lock.Ptr == NULL);
}
LAB_SCENARIO(condition_timeout, .Threads = {impatient_consumer, consumer, producer}, .Finish = token_is_taken,
             .Flags = LAB_LARGE | LAB_MAY_BLOCK, .Timeouts = 1);

/* An unrelated alert is not a wake. */
static int woken;

static void single_sleeper(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    if (!opened) {
        LabAssert(RtlSleepConditionVariableSRW(&condition, &lock, NULL, 0) == STATUS_SUCCESS);
        LabAssert(opened);
    }
    woken = 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void stray_alerter(void)
{
    NtAlertThreadByThreadId(ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread()));
}
LAB_SCENARIO(condition_stray_alert, .Threads = {single_sleeper, opener, stray_alerter}, .Finish = nothing_left,
             .Flags = LAB_LARGE);

/* With a critical section. */
static void section_producer(void)
{
    RtlEnterCriticalSection(&section);
    tokens += 1;
    RtlLeaveCriticalSection(&section);
    RtlWakeConditionVariable(&condition);
}

static void section_consumer(void)
{
    RtlEnterCriticalSection(&section);
    while (tokens == 0)
        LabAssert(RtlSleepConditionVariableCS(&condition, &section, NULL) == STATUS_SUCCESS);
    LabAssert(section.RecursionCount == 1);
    tokens -= 1;
    RtlLeaveCriticalSection(&section);
}

static void impatient_section_consumer(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = STATUS_SUCCESS;
    RtlEnterCriticalSection(&section);
    while (tokens == 0 && status == STATUS_SUCCESS)
        status = RtlSleepConditionVariableCS(&condition, &section, &timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    tokens -= status == STATUS_SUCCESS;
    RtlLeaveCriticalSection(&section);
}

static void section_is_free(void)
{
    LabAssert(tokens == 0 && section.LockCount == -1);
}
LAB_SCENARIO(condition_section, .Setup = setup_section, .Threads = {section_consumer, section_producer},
             .Finish = section_is_free);
LAB_SCENARIO(condition_section_timeout, .Setup = setup_section,
             .Threads = {impatient_section_consumer, section_consumer, section_producer}, .Finish = section_is_free,
             .Flags = LAB_LARGE | LAB_MAY_BLOCK, .Timeouts = 1);

/* A woken thread may free the variable, even if its waker has not returned yet. */
static RTL_CONDITION_VARIABLE *heap_condition;

static void setup_heap(void)
{
    heap_condition = LabAllocate(sizeof(*heap_condition));
}

static void sleeper_that_frees(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    RtlSleepConditionVariableSRW(heap_condition, &lock, NULL, 0);
    RtlReleaseSRWLockExclusive(&lock);
    LabFree(heap_condition);
}

static void waker_of_sleeper(void)
{
    RTL_CONDITION_VARIABLE *mine = heap_condition;
    while (__atomic_load_n((volatile UCHAR *)&mine->Ptr, __ATOMIC_RELAXED) == 0)
        ;
    RtlWakeAllConditionVariable(mine);
}
LAB_SCENARIO(condition_freed, .Setup = setup_heap, .Threads = {sleeper_that_frees, waker_of_sleeper});
