/* User-mode locks against their models, against suspension, and with more threads than an exhaustive search can handle.
   */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

#include "sleepers.h"

static LARGE_INTEGER soon = {.QuadPart = -10000};

/* One-time initialization. The contexts are the numbers 4 and 8. */
enum { BEGIN, BEGIN_ASYNC, CHECK, COMPLETE, COMPLETE_ASYNC, FAIL };

static RTL_RUN_ONCE once;

static NTSTATUS record_begin(unsigned name, ULONG flags)
{
    PVOID context = NULL;
    unsigned operation = LabBegin(name, 0);
    NTSTATUS status = RtlRunOnceBeginInitialize(&once, flags, &context);
    LabAssert(status == STATUS_SUCCESS || status == (name == CHECK ? STATUS_UNSUCCESSFUL : STATUS_PENDING));
    LabEnd(operation, status == STATUS_SUCCESS ? (intptr_t)context : 0);
    return status;
}

static void record_complete(unsigned name, ULONG flags, intptr_t context)
{
    unsigned operation = LabBegin(name, context);
    NTSTATUS status = RtlRunOnceComplete(&once, flags, (PVOID)context);
    LabEnd(operation, status == STATUS_SUCCESS);
}

static void recorded_initializer(void)
{
    if (record_begin(BEGIN, 0) == STATUS_PENDING)
        record_complete(COMPLETE, 0, 4);
    record_begin(CHECK, RTL_RUN_ONCE_CHECK_ONLY);
}

static void recorded_failer(void)
{
    if (record_begin(BEGIN, 0) == STATUS_PENDING)
        record_complete(FAIL, RTL_RUN_ONCE_INIT_FAILED, 0);
    record_begin(CHECK, RTL_RUN_ONCE_CHECK_ONLY);
}

static void recorded_racer(void)
{
    if (record_begin(BEGIN_ASYNC, RTL_RUN_ONCE_ASYNC) == STATUS_PENDING)
        record_complete(COMPLETE_ASYNC, RTL_RUN_ONCE_ASYNC, 4 + 4 * (intptr_t)LabCurrentThread());
    record_begin(CHECK, RTL_RUN_ONCE_CHECK_ONLY);
}

static void is_run_once(void)
{
    LabCheckLinearizable(&LabModelRunOnce);
}
LAB_SCENARIO(run_once_history, .Threads = {recorded_initializer, recorded_failer}, .Finish = is_run_once);
LAB_SCENARIO(run_once_history_three, .Threads = {recorded_initializer, recorded_failer, recorded_initializer},
             .Finish = is_run_once, .Flags = LAB_LARGE);
LAB_SCENARIO(run_once_history_async, .Threads = {recorded_racer, recorded_racer, recorded_racer},
             .Finish = is_run_once);

/* Barriers: two rounds; spinning, sleeping, and both. */
enum { ARRIVES, LEAVES };

static RTL_BARRIER barrier;
static int told;

static void setup_barrier(void)
{
    RtlInitBarrier(&barrier, 2, 0);
}

static void record_rounds(ULONG flags)
{
    for (int round = 0; round < 2; round++) {
        unsigned arrival = LabBegin(ARRIVES, round);
        unsigned departure = LabBegin(LEAVES, round);
        BOOLEAN mine = RtlBarrier(&barrier, flags);
        LabEnd(arrival, 0);
        LabEnd(departure, mine);
        __atomic_fetch_add(&told, mine, __ATOMIC_RELAXED);
    }
}

static void spinner(void)
{
    record_rounds(RTL_BARRIER_FLAGS_SPIN_ONLY);
}

static void blocker(void)
{
    record_rounds(RTL_BARRIER_FLAGS_BLOCK_ONLY);
}

static void is_a_barrier(void)
{
    LabAssert(told == 2);
    LabCheckLinearizable(&LabModelBarrierOfTwo);
}
LAB_SCENARIO(barrier_history_spin, .Setup = setup_barrier, .Threads = {spinner, spinner}, .Finish = is_a_barrier);
LAB_SCENARIO(barrier_history, .Setup = setup_barrier, .Threads = {spinner, blocker}, .Finish = is_a_barrier,
             .Flags = LAB_LARGE);
LAB_SCENARIO(barrier_history_block, .Setup = setup_barrier, .Threads = {blocker, blocker}, .Finish = is_a_barrier,
             .Flags = LAB_LARGE);

/* Suspension against user-mode waits: an alert, an address, a lock. */
static int done;
static volatile ULONG word;
static RTL_SRWLOCK lock;
static RTL_CRITICAL_SECTION section;

static HANDLE id_of_first(void)
{
    return ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread());
}

static void suspender(void)
{
    PETHREAD thread;
    if (PsLookupThreadByThreadId(id_of_first(), &thread) == STATUS_SUCCESS) {
        KeSuspendThread((PKTHREAD)thread);
        KeResumeThread((PKTHREAD)thread);
        ObDereferenceObject(thread);
    }
}

static void alerted(void)
{
    LabAssert(NtWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
    done = 1;
}

static void alerter(void)
{
    NtAlertThreadByThreadId(id_of_first());
}

static void it_went_on(void)
{
    LabAssert(done == 1);
}
LAB_SCENARIO(suspend_against_alert_by_id, .Threads = {alerted, suspender, alerter}, .Finish = it_went_on,
             .Flags = LAB_LARGE);

static void address_waiter(void)
{
    ULONG zero = 0;
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&word, &zero, sizeof(zero), NULL);
    done = 1;
}

static void address_waker(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle((PVOID)&word);
}
LAB_SCENARIO(suspend_against_address, .Threads = {address_waiter, suspender, address_waker}, .Finish = it_went_on,
             .Flags = LAB_LARGE);

static void srw_writer(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    done += 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void two_wrote(void)
{
    LabAssert(done == 2 && lock.Ptr == NULL);
}
LAB_SCENARIO(suspend_against_srw, .Setup = sleep_soon, .Threads = {srw_writer, suspender, srw_writer},
             .Finish = two_wrote, .Flags = LAB_LARGE);

/* Condition variables: sharers sleep until a writer has changed something; one of them times out. */
static RTL_CONDITION_VARIABLE condition;
static int opened, given_up;

static void shared_sleeper(void)
{
    RtlAcquireSRWLockShared(&lock);
    while (!opened)
        LabAssert(RtlSleepConditionVariableSRW(&condition, &lock, NULL, RTL_CONDITION_VARIABLE_LOCKMODE_SHARED) ==
                  STATUS_SUCCESS);
    RtlReleaseSRWLockShared(&lock);
}

static void impatient_shared_sleeper(void)
{
    NTSTATUS status = STATUS_SUCCESS;
    RtlAcquireSRWLockShared(&lock);
    while (!opened && status == STATUS_SUCCESS)
        status = RtlSleepConditionVariableSRW(&condition, &lock, &soon, RTL_CONDITION_VARIABLE_LOCKMODE_SHARED);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    given_up = status == STATUS_TIMEOUT;
    RtlReleaseSRWLockShared(&lock);
}

static void opener(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    opened = 1;
    RtlReleaseSRWLockExclusive(&lock);
    RtlWakeAllConditionVariable(&condition);
}

static void nothing_is_left(void)
{
    LabAssert(lock.Ptr == NULL && condition.Ptr == NULL);
}
LAB_SCENARIO(condition_shared_timeout, .Setup = sleep_soon,
             .Threads = {impatient_shared_sleeper, shared_sleeper, opener}, .Finish = nothing_is_left,
             .Flags = LAB_LARGE);

/* User-mode resources: a sharer may acquire past a waiting writer; a sharer cannot acquire exclusively without a release. */
static RTL_RESOURCE resource;
static KEVENT met;

static void setup_resource(void)
{
    RtlpTimeout = 0;
    RtlInitializeResource(&resource);
    RtlSetCriticalSectionSpinCount(&resource.CriticalSection, 0);
    KeInitializeEvent(&met, NotificationEvent, FALSE);
}

static void sharer_that_waits(void)
{
    RtlAcquireResourceShared(&resource, TRUE);
    LabAssert(!RtlAcquireResourceExclusive(&resource, FALSE));
    KeWaitForSingleObject(&met, Executive, KernelMode, FALSE, NULL);
    RtlReleaseResource(&resource);
}

static void sharer_that_passes(void)
{
    LabAssert(RtlAcquireResourceShared(&resource, TRUE));
    KeSetEvent(&met, IO_NO_INCREMENT, FALSE);
    RtlReleaseResource(&resource);
}

static void resource_writer(void)
{
    RtlAcquireResourceExclusive(&resource, TRUE);
    LabAssert(RtlAcquireResourceShared(&resource, FALSE));
    done += 1;
    RtlReleaseResource(&resource);
    RtlReleaseResource(&resource);
}

static void resource_is_free(void)
{
    LabAssert(resource.NumberOfActive == 0 && resource.NumberOfWaitingShared == 0);
    LabAssert(resource.NumberOfWaitingExclusive == 0);
}
LAB_SCENARIO(rtl_resource_sharer_passes, .Setup = setup_resource,
             .Threads = {sharer_that_waits, sharer_that_passes, resource_writer}, .Finish = resource_is_free,
             .Flags = LAB_LARGE);

/* Many threads, at random. */
static int value;

static void setup_section(void)
{
    RtlpTimeout = 0;
    RtlInitializeCriticalSection(&section);
    RtlSetCriticalSectionSpinCount(&section, 0);
    sleep_soon();
}

static void section_user(void)
{
    RtlEnterCriticalSection(&section);
    value += 1;
    RtlLeaveCriticalSection(&section);
}

static void six_came(void)
{
    LabAssert(value == 6 && section.LockCount == -1);
}
LAB_SCENARIO(section_six, .Setup = setup_section,
             .Threads = {section_user, section_user, section_user, section_user, section_user, section_user},
             .Finish = six_came, .Flags = LAB_LARGE);

static void srw_reader(void)
{
    RtlAcquireSRWLockShared(&lock);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    RtlReleaseSRWLockShared(&lock);
}

static void srw_counter(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    value += 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void srw_converter(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    value += 1;
    RtlConvertSRWLockExclusiveToShared(&lock);
    LabAssert(value >= 1);
    RtlReleaseSRWLockShared(&lock);
}

static void three_wrote(void)
{
    LabAssert(value == 3 && lock.Ptr == NULL);
}
LAB_SCENARIO(srw_seven, .Setup = sleep_soon,
             .Threads = {srw_reader, srw_counter, srw_reader, srw_converter, srw_reader, srw_counter, srw_reader},
             .Finish = three_wrote, .Flags = LAB_LARGE);

static int tokens;

static void producer(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    tokens += 1;
    RtlReleaseSRWLockExclusive(&lock);
    RtlWakeConditionVariable(&condition);
}

static void consumer(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    while (tokens == 0)
        RtlSleepConditionVariableSRW(&condition, &lock, NULL, 0);
    tokens -= 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void all_were_taken(void)
{
    LabAssert(tokens == 0);
    nothing_is_left();
}
LAB_SCENARIO(condition_six, .Setup = sleep_soon,
             .Threads = {consumer, producer, consumer, producer, consumer, producer}, .Finish = all_were_taken,
             .Flags = LAB_LARGE);
