/* The grid's rows of user mode: nt.h, rtl.h. */
#include "grid.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "nt/ntp.h"
#include "rtl/criticalsection.h"
#include "rtl/rtlp.h"

#include "../user/sleepers.h"

static void add(int *count, int number)
{
    __atomic_fetch_add(count, number, __ATOMIC_RELAXED);
}

/* The count of wakes without a waiter decides nothing below RTLP_QUIET_AFTER. */
static void ignore_vain_wakes(volatile void *address)
{
    EXP_WAIT_KEY key = RtlpWaitKey(address, RtlpAddressWait);
    LabIgnore(&ExpBucketOf(&key)->VainWakes, sizeof(ULONG));
}

/* Slim reader/writer locks. */
static RTL_SRWLOCK lock;

static void srw_is_free(void)
{
    LabAssert(lock.Ptr == NULL);
}

static void srw_exclusive(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    grid_write();
    RtlReleaseSRWLockExclusive(&lock);
}

static void srw_shared(void)
{
    RtlAcquireSRWLockShared(&lock);
    grid_read();
    RtlReleaseSRWLockShared(&lock);
}
GRID(srw_lock, sleep_soon, srw_is_free, srw_exclusive, srw_shared);
GRID_UPSET(srw_lock, sleep_soon, srw_is_free);

/* Critical sections. */
static RTL_CRITICAL_SECTION section;

static void ignore_contention(PRTL_CRITICAL_SECTION_DEBUG counts)
{
    LabIgnore(&counts->EntryCount, sizeof(counts->EntryCount));
    LabIgnore(&counts->ContentionCount, sizeof(counts->ContentionCount));
}

static void make_section(void)
{
    RtlpTimeout = 0;
    RtlInitializeCriticalSection(&section);
    RtlSetCriticalSectionSpinCount(&section, 0);
    ignore_contention(section.DebugInfo);
    ignore_vain_wakes(&section.LockCount);
    sleep_soon();
}

static void section_is_free(void)
{
    LabAssert(section.LockCount == -1);
}

static void section_enter(void)
{
    RtlEnterCriticalSection(&section);
    grid_write();
    RtlLeaveCriticalSection(&section);
}

static void section_try(void)
{
    if (!RtlTryEnterCriticalSection(&section))
        return;
    grid_write();
    RtlLeaveCriticalSection(&section);
}
GRID(critical_section, make_section, section_is_free, section_enter, section_try);
GRID_UPSET(critical_section, make_section, section_is_free);

/* Condition variables: as many units are put as taken, or more. */
static RTL_CONDITION_VARIABLE condition;
static int units;

static void put_unit(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    units += 1;
    RtlReleaseSRWLockExclusive(&lock);
    RtlWakeConditionVariable(&condition);
}

static void take_unit(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    while (units == 0)
        RtlSleepConditionVariableSRW(&condition, &lock, NULL, 0);
    units -= 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void nothing_waits(void)
{
    LabAssert(lock.Ptr == NULL && condition.Ptr == NULL && units >= 0);
}
GRID_ROLES(condition_variable, sleep_soon, nothing_waits, take_unit, put_unit, put_unit, take_unit);
GRID_UPSET(condition_variable, sleep_soon, nothing_waits);

/* Timeouts against wakes of one and of all. */
static LARGE_INTEGER soon = {.QuadPart = -10000};

static void take_unit_timed(void)
{
    NTSTATUS status = STATUS_SUCCESS;
    RtlAcquireSRWLockExclusive(&lock);
    while (units == 0 && status != STATUS_TIMEOUT)
        status = RtlSleepConditionVariableSRW(&condition, &lock, &soon, 0);
    units -= units != 0;
    RtlReleaseSRWLockExclusive(&lock);
}

static void put_unit_for_all(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    units += 1;
    RtlReleaseSRWLockExclusive(&lock);
    RtlWakeAllConditionVariable(&condition);
}
GRID_ROLES(condition_variable_timed, sleep_soon, nothing_waits, take_unit_timed, put_unit_for_all, take_unit_timed, put_unit);

/* Waits on addresses: a lock whose word has three values. */
static volatile ULONG word;

static void take_word(void)
{
    ULONG contended = 2, expected = 0;
    if (__atomic_compare_exchange_n(&word, &expected, 1, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE) != 0)
        RtlWaitOnAddress(&word, &contended, sizeof(contended), NULL);
}

static void with_word_single(void)
{
    take_word();
    grid_write();
    if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
        RtlWakeAddressSingle((PVOID)&word);
}

static void with_word_all(void)
{
    take_word();
    grid_write();
    if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
        RtlWakeAddressAll((PVOID)&word);
}

static void make_word(void)
{
    ignore_vain_wakes(&word);
    sleep_soon();
}
GRID(address_wait, make_word, NULL, with_word_single, with_word_all);
GRID_UPSET(address_wait, make_word, NULL);

/* A wait that times out leaves the lock marked as contended: the next release wakes nobody. */
static void with_word_timed(void)
{
    ULONG contended = 2;
    while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE) != 0)
        if (RtlWaitOnAddress(&word, &contended, sizeof(contended), &soon) == STATUS_TIMEOUT)
            return;
    grid_write();
    __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
    RtlWakeAddressSingle((PVOID)&word);
}
GRID(address_wait_timed, make_word, NULL, with_word_timed, with_word_all);

/* Alerts by thread id: an alert is kept until it is consumed, and consumed once. Thread 0 waits, the others alert it. */
static int alerts; /* sent, less those that were taken */

static void wait_or_alert(void)
{
    unsigned self = LabCurrentThread();
    if (self != 0) {
        add(&alerts, 1);
        LabAssert(NtAlertThreadByThreadId(ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - self)) == STATUS_SUCCESS);
        return;
    }
    NTSTATUS status = NtWaitForAlertByThreadId(NULL, &soon);
    LabAssert(status == STATUS_ALERTED || status == STATUS_TIMEOUT);
    if (status == STATUS_ALERTED)
        LabAssert(__atomic_fetch_sub(&alerts, 1, __ATOMIC_RELAXED) > 0);
}
GRID(alert_by_id, NULL, NULL, wait_or_alert);

/* One-time initialization. */
static RTL_RUN_ONCE once;
static int initialized DECLSPEC_ALIGN(8);

static ULONG initialize(PRTL_RUN_ONCE run_once, PVOID parameter, PVOID *context)
{
    UNREFERENCED_PARAMETER(run_once);
    UNREFERENCED_PARAMETER(parameter);
    initialized += 1;
    *context = &initialized;
    return TRUE;
}

static void execute_once(void)
{
    int *mine = NULL;
    LabAssert(RtlRunOnceExecuteOnce(&once, initialize, NULL, (PVOID *)&mine) == STATUS_SUCCESS);
    LabAssert(mine == &initialized && *mine == 1);
}

static void check_once(void)
{
    int *mine = NULL;
    NTSTATUS status = RtlRunOnceBeginInitialize(&once, RTL_RUN_ONCE_CHECK_ONLY, (PVOID *)&mine);
    LabAssert(status == STATUS_UNSUCCESSFUL || (status == STATUS_SUCCESS && *mine == 1));
}
GRID(run_once, sleep_soon, NULL, execute_once, check_once, execute_once);
GRID_UPSET(run_once, sleep_soon, NULL);

/* Barriers: a round of all threads per operation. */
static RTL_BARRIER barrier;
static int come, told;

static void make_barrier(void)
{
    RtlInitBarrier(&barrier, grid_threads, 0);
}

static void meet(ULONG flags)
{
    int round = __atomic_fetch_add(&come, 1, __ATOMIC_RELAXED) / (int)grid_threads;
    add(&told, RtlBarrier(&barrier, flags | RTL_BARRIER_FLAGS_NO_DELETE));
    LabAssert(__atomic_load_n(&come, __ATOMIC_RELAXED) >= (round + 1) * (int)grid_threads);
}

static void meet_asleep(void)
{
    meet(RTL_BARRIER_FLAGS_BLOCK_ONLY);
}

static void meet_spinning(void)
{
    meet(RTL_BARRIER_FLAGS_SPIN_ONLY);
}

static void each_round_told_one(void)
{
    LabAssert(told == (int)grid_turns && come == (int)(grid_threads * grid_turns));
}
GRID(barrier, make_barrier, each_round_told_one, meet_asleep, meet_spinning);
GRID_UPSET(barrier, make_barrier, each_round_told_one);

/* User-mode resources. */
static RTL_RESOURCE resource;

static void make_resource(void)
{
    RtlpTimeout = 0;
    RtlInitializeResource(&resource);
    RtlSetCriticalSectionSpinCount(&resource.CriticalSection, 0);
    ignore_contention(resource.DebugInfo);
    ignore_contention(resource.CriticalSection.DebugInfo);
    ignore_vain_wakes(&resource.CriticalSection.LockCount);
    sleep_soon();
}

static void resource_is_free(void)
{
    LabAssert(resource.NumberOfActive == 0 && resource.NumberOfWaitingShared == 0);
    LabAssert(resource.NumberOfWaitingExclusive == 0);
}

static void resource_exclusive(void)
{
    RtlAcquireResourceExclusive(&resource, TRUE);
    grid_write();
    RtlReleaseResource(&resource);
}

static void resource_shared(void)
{
    RtlAcquireResourceShared(&resource, TRUE);
    grid_read();
    RtlReleaseResource(&resource);
}
GRID(rtl_resource, make_resource, resource_is_free, resource_exclusive, resource_shared);
GRID_UPSET(rtl_resource, make_resource, resource_is_free);

/* Completion ports: as many packets are posted as removed, or more, each removed once. */
static HANDLE port;
static int posted, seen[8];

static void make_port(void)
{
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
}

static void port_post(void)
{
    int number = __atomic_fetch_add(&posted, 1, __ATOMIC_RELAXED);
    LabAssert(NtSetIoCompletion(port, ULongToPtr(number), NULL, STATUS_SUCCESS, 0) == STATUS_SUCCESS);
}

static void port_remove(void)
{
    PVOID number, context;
    IO_STATUS_BLOCK block;
    LabAssert(NtRemoveIoCompletion(port, &number, &context, &block, NULL) == STATUS_SUCCESS);
    seen[PtrToUlong(number)] += 1; /* a race if another thread got it too */
}

static void port_adds_up(void)
{
    IO_COMPLETION_BASIC_INFORMATION information = {0};
    LabAssert(NtQueryIoCompletion(port, IoCompletionBasicInformation, &information, sizeof(information), NULL) ==
              STATUS_SUCCESS);
    int removed = 0;
    for (int i = 0; i < (int)ARRAYSIZE(seen); i++) {
        LabAssert(seen[i] <= 1);
        removed += seen[i];
    }
    LabAssert(information.Depth == posted - removed);
}
GRID_ROLES(completion_port, make_port, port_adds_up, port_post, port_remove);
GRID_UPSET(completion_port, make_port, port_adds_up);

static void port_remove_timed(void)
{
    PVOID number, context;
    IO_STATUS_BLOCK block;
    NTSTATUS status = NtRemoveIoCompletion(port, &number, &context, &block, &soon);
    if (status == STATUS_TIMEOUT)
        return;
    LabAssert(status == STATUS_SUCCESS);
    seen[PtrToUlong(number)] += 1;
}
GRID_ROLES(completion_port_timed, make_port, port_adds_up, port_remove_timed, port_post);

/* The thread pool: each post runs once, before the wait of its thread returns; a cancelled one need not run. */
static PTP_WORK work;
static int owed, has_cancelled; /* owed: posts that have not run */

static VOID count_run(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK item)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(item);
    grid_forget_wait(); /* of the pool's thread, which is not in one */
    add(&owed, -1);
}

static void make_work(void)
{
    RtlpTimeout = 0;
    LabAssert(TpAllocWork(&work, count_run, NULL, NULL) == STATUS_SUCCESS);
}

static void post_and_wait(void)
{
    add(&owed, 1);
    TpPostWork(work);
    TpWaitForWork(work, FALSE);
}

static void post_and_cancel(void)
{
    add(&owed, 1);
    __atomic_store_n(&has_cancelled, TRUE, __ATOMIC_RELAXED);
    TpPostWork(work);
    TpWaitForWork(work, TRUE);
}

/* A cancel removes all pending callbacks, also those of other threads. */
static void work_adds_up(void)
{
    LabAssert(owed >= 0 && (has_cancelled || owed == 0));
}
GRID(pool_work, make_work, work_adds_up, post_and_wait, post_and_cancel);
GRID_UPSET(pool_work, make_work, work_adds_up);
