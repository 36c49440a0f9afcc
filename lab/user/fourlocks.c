/* The user-mode locks and waits without handles, four threads with several operations each. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

#include "four.h"
#include "neighbours.h"
#include "sleepers.h"

static LARGE_INTEGER soon = {.QuadPart = -10000};
static int value;
static int passes; /* by threads that own nothing */

static void count_pass(void)
{
    __atomic_fetch_add(&passes, 1, __ATOMIC_RELAXED);
}

/* SRW locks. */
static RTL_SRWLOCK lock;

static void write_exclusively(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    value += 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void read_shared(void)
{
    RtlAcquireSRWLockShared(&lock);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    RtlReleaseSRWLockShared(&lock);
}

static void try_both(void)
{
    if (RtlTryAcquireSRWLockExclusive(&lock)) {
        value += 1;
        RtlReleaseSRWLockExclusive(&lock);
    } else {
        count_pass();
    }
    if (RtlTryAcquireSRWLockShared(&lock)) {
        int seen = value;
        LabYield();
        LabAssert(value == seen);
        RtlReleaseSRWLockShared(&lock);
    }
}

static void write_and_convert(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    value += 1;
    int seen = value;
    RtlConvertSRWLockExclusiveToShared(&lock);
    LabYield();
    LabAssert(value == seen);
    RtlReleaseSRWLockShared(&lock);
}

static void upgrade(void)
{
    RtlAcquireSRWLockShared(&lock);
    int seen = value;
    if (RtlConvertSRWLockSharedToExclusive(&lock)) {
        LabAssert(value == seen);
        value += 1;
        RtlReleaseSRWLockExclusive(&lock);
    } else {
        count_pass();
        RtlReleaseSRWLockShared(&lock);
    }
}
FOUR_REPEAT(srw_writer, 3, write_exclusively())
FOUR_REPEAT(srw_reader, 3, read_shared())
FOUR_REPEAT(srw_trier, 3, try_both())
FOUR_REPEAT(srw_converter, 3, write_and_convert())
FOUR_REPEAT(srw_upgrader, 3, upgrade())

static void srw_is_free(int written)
{
    LabAssert(lock.Ptr == NULL && value + passes == written);
}

static void twelve_wrote(void)
{
    srw_is_free(12);
}

static void nine_wrote(void)
{
    srw_is_free(9);
}

static void six_wrote(void)
{
    srw_is_free(6);
}
FOUR_SCENARIO(srw_4x3_writers, srw_writer, srw_writer, srw_writer, srw_writer, .Setup = sleep_soon,
              .Finish = twelve_wrote);
FOUR_SCENARIO(srw_4x3_mixed, srw_reader, srw_writer, srw_reader, srw_writer, .Setup = sleep_soon, .Finish = six_wrote);
FOUR_SCENARIO(srw_4x3_mixed_c11, srw_reader, srw_writer, srw_reader, srw_writer, .Setup = sleep_soon,
              .Finish = six_wrote, .Model = "c11", .StaleReads = 2);
FOUR_SCENARIO(srw_4x3_try, srw_trier, srw_writer, srw_reader, srw_trier, .Setup = sleep_soon, .Finish = nine_wrote);
FOUR_SCENARIO(srw_4x3_convert, srw_converter, srw_upgrader, srw_reader, srw_writer, .Setup = sleep_soon,
              .Finish = nine_wrote);

/* Condition variables: a buffer with room for one, with an SRW lock or a critical section. Watchers share the lock; a
   producer or consumer that times out tries again. */
static RTL_CONDITION_VARIABLE filled, emptied;
static RTL_CRITICAL_SECTION section;
static int tokens;
static int with_section, with_all;

static void set_up_buffer(void)
{
    RtlpTimeout = 0;
    RtlInitializeCriticalSection(&section);
    RtlSetCriticalSectionSpinCount(&section, 0);
    sleep_soon();
}

static void set_up_buffer_with_section(void)
{
    set_up_buffer();
    with_section = 1;
}

static void set_up_buffer_with_all(void)
{
    set_up_buffer();
    with_all = 1;
}

static void lock_buffer(void)
{
    if (with_section)
        RtlEnterCriticalSection(&section);
    else
        RtlAcquireSRWLockExclusive(&lock);
}

static void unlock_buffer(void)
{
    if (with_section)
        RtlLeaveCriticalSection(&section);
    else
        RtlReleaseSRWLockExclusive(&lock);
}

static void sleep_on(RTL_CONDITION_VARIABLE *condition, PLARGE_INTEGER timeout)
{
    NTSTATUS status = with_section ? RtlSleepConditionVariableCS(condition, &section, timeout)
                                   : RtlSleepConditionVariableSRW(condition, &lock, timeout, 0);
    LabAssert(status == STATUS_SUCCESS || (status == STATUS_TIMEOUT && timeout != NULL));
}

static void wake(RTL_CONDITION_VARIABLE *condition)
{
    if (with_all)
        RtlWakeAllConditionVariable(condition);
    else
        RtlWakeConditionVariable(condition);
}

static void move_token(int from, RTL_CONDITION_VARIABLE *mine, RTL_CONDITION_VARIABLE *others, PLARGE_INTEGER timeout)
{
    lock_buffer();
    while (tokens != from)
        sleep_on(mine, timeout);
    tokens = !from;
    unlock_buffer();
    wake(others);
}
FOUR_REPEAT(producer, 3, move_token(0, &emptied, &filled, NULL))
FOUR_REPEAT(consumer, 3, move_token(1, &filled, &emptied, NULL))
FOUR_REPEAT(impatient_producer, 3, move_token(0, &emptied, &filled, &soon))
FOUR_REPEAT(impatient_consumer, 3, move_token(1, &filled, &emptied, &soon))

static void shared_watcher(void)
{
    RtlAcquireSRWLockShared(&lock);
    while (tokens == 0)
        RtlSleepConditionVariableSRW(&filled, &lock, NULL, RTL_CONDITION_VARIABLE_LOCKMODE_SHARED);
    RtlReleaseSRWLockShared(&lock);
}

static void last_producer(void)
{
    producer();
    move_token(0, &emptied, &filled, NULL); /* and stays there, for the watcher */
}

static void buffer_is_left(void)
{
    LabAssert(lock.Ptr == NULL && section.LockCount == -1);
    LabAssert(filled.Ptr == NULL && emptied.Ptr == NULL);
}

static void buffer_is_empty(void)
{
    buffer_is_left();
    LabAssert(tokens == 0);
}
FOUR_SCENARIO(condition_4x3, producer, consumer, producer, consumer, .Setup = set_up_buffer, .Finish = buffer_is_empty);
FOUR_SCENARIO(condition_4x3_c11, producer, consumer, producer, consumer, .Setup = set_up_buffer,
              .Finish = buffer_is_empty, .Model = "c11", .StaleReads = 2);
FOUR_SCENARIO(condition_4x3_section, producer, consumer, producer, consumer, .Setup = set_up_buffer_with_section,
              .Finish = buffer_is_empty);
FOUR_SCENARIO(condition_4x3_all, last_producer, consumer, shared_watcher, shared_watcher,
              .Setup = set_up_buffer_with_all, .Finish = buffer_is_left);
FOUR_SCENARIO(condition_4x3_timeout, impatient_producer, consumer, producer, impatient_consumer, .Setup = set_up_buffer,
              .Finish = buffer_is_empty, .Timeouts = 3);
FOUR_SCENARIO(condition_4x3_section_timeout, impatient_producer, consumer, producer, impatient_consumer,
              .Setup = set_up_buffer_with_section, .Finish = buffer_is_empty, .Timeouts = 3);

/* Address waits. Two words in one bucket of the hash, each a lock (0 free, 1 held, 2 held with possible sleepers), a
   semaphore, or a turn number: values that recur. */
static int sums[2];

static void wait_on(volatile ULONG *word, ULONG seen, PLARGE_INTEGER timeout)
{
    NTSTATUS status = RtlWaitOnAddress(word, &seen, sizeof(seen), timeout);
    LabAssert(status == STATUS_SUCCESS || (status == STATUS_TIMEOUT && timeout != NULL));
}

static ULONG exchange_if(volatile ULONG *word, ULONG expected, ULONG desired)
{
    __atomic_compare_exchange_n(word, &expected, desired, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}

static void add_locked(volatile ULONG *word, int *sum, PLARGE_INTEGER timeout)
{
    ULONG seen = exchange_if(word, 0, 1);
    while (seen != 0) {
        if (seen == 2 || exchange_if(word, 1, 2) != 0)
            wait_on(word, 2, timeout);
        seen = exchange_if(word, 0, 2);
    }
    *sum += 1;
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
        RtlWakeAddressSingle((PVOID)word);
}
FOUR_REPEAT(first_adder, 3, add_locked(first, &sums[0], NULL))
FOUR_REPEAT(second_adder, 3, add_locked(second, &sums[1], NULL))
FOUR_REPEAT(impatient_adder, 3, add_locked(first, &sums[0], &soon))

static void twelve_were_added(void)
{
    LabAssert(*first == 0 && *second == 0 && sums[0] + sums[1] == 12);
    LabAssert(bucket_of(first)->Count == 0);
}
FOUR_SCENARIO(address_4x3_lock, first_adder, first_adder, first_adder, first_adder, .Setup = find_neighbours,
              .Finish = twelve_were_added);
FOUR_SCENARIO(address_4x3_lock_c11, first_adder, first_adder, first_adder, first_adder, .Setup = find_neighbours,
              .Finish = twelve_were_added, .Model = "c11", .StaleReads = 2);
FOUR_SCENARIO(address_4x3_lock_neighbours, first_adder, second_adder, first_adder, second_adder,
              .Setup = find_neighbours, .Finish = twelve_were_added);
FOUR_SCENARIO(address_4x3_lock_timeout, impatient_adder, first_adder, impatient_adder, second_adder,
              .Setup = find_neighbours, .Finish = twelve_were_added, .Timeouts = 3);

static void post(volatile ULONG *word)
{
    __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle((PVOID)word);
}

static void take(volatile ULONG *word, PLARGE_INTEGER timeout)
{
    ULONG seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    while (seen == 0 || exchange_if(word, seen, seen - 1) != seen) {
        wait_on(word, 0, timeout);
        seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
}
FOUR_REPEAT(poster, 3, post(first))
FOUR_REPEAT(poster_to_both, 3, (post(first), post(second)))
FOUR_REPEAT(taker, 3, take(first, NULL))
FOUR_REPEAT(second_taker, 3, take(second, NULL))
FOUR_REPEAT(impatient_taker, 3, take(first, &soon))

static void all_were_taken(void)
{
    LabAssert(*first == 0 && *second == 0 && bucket_of(first)->Count == 0);
}
FOUR_SCENARIO(address_4x3_semaphore, poster, taker, poster, taker, .Setup = find_neighbours, .Finish = all_were_taken);
FOUR_SCENARIO(address_4x3_semaphore_neighbours, poster_to_both, taker, second_taker, NULL, .Setup = find_neighbours,
              .Finish = all_were_taken);
FOUR_SCENARIO(address_4x3_semaphore_timeout, poster, impatient_taker, poster, impatient_taker, .Setup = find_neighbours,
              .Finish = all_were_taken, .Timeouts = 3);

static void take_turns(void)
{
    ULONG self = LabCurrentThread();
    for (int turn = 0; turn < 3; turn++) {
        ULONG seen;
        while ((seen = __atomic_load_n(first, __ATOMIC_ACQUIRE)) != self)
            wait_on(first, seen, NULL);
        value += 1;
        __atomic_store_n(first, (self + 1) % 4, __ATOMIC_RELEASE);
        RtlWakeAddressAll((PVOID)first);
    }
}

static void turns_were_taken(void)
{
    LabAssert(value == 12 && *first == 0);
}
FOUR_SCENARIO(address_4x3_turns, take_turns, take_turns, take_turns, take_turns, .Setup = find_neighbours,
              .Finish = turns_were_taken);

/* Alerts by id: each thread waits for its own and alerts the next one. The first begins. */
static HANDLE id_of(ULONG thread)
{
    return ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread() + thread);
}

static void pass_alert_on(PLARGE_INTEGER timeout)
{
    ULONG self = LabCurrentThread();
    for (int turn = 0; turn < 3; turn++) {
        if (turn != 0 || self != 0) {
            NTSTATUS status;
            while ((status = NtWaitForAlertByThreadId(NULL, timeout)) == STATUS_TIMEOUT && timeout != NULL)
                ;
            LabAssert(status == STATUS_ALERTED);
        }
        value += 1;
        if (turn != 2 || self != 3)
            LabAssert(NtAlertThreadByThreadId(id_of((self + 1) % 4)) == STATUS_SUCCESS);
    }
}
FOUR_REPEAT(alert_passer, 1, pass_alert_on(NULL))
FOUR_REPEAT(impatient_alert_passer, 1, pass_alert_on(&soon))

static void twelve_alerts(void)
{
    LabAssert(value == 12);
}
FOUR_SCENARIO(alert_by_id_4x3, alert_passer, alert_passer, alert_passer, alert_passer, .Finish = twelve_alerts);
FOUR_SCENARIO(alert_by_id_4x3_timeout, alert_passer, impatient_alert_passer, alert_passer, impatient_alert_passer,
              .Finish = twelve_alerts, .Timeouts = 3);

/* One-time initialization of two things. It fails twice, and a thread that finds it failed tries again. */
static RTL_RUN_ONCE once[2];
static int things[2] DECLSPEC_ALIGN(8);
static int made[4] DECLSPEC_ALIGN(8);
static int attempts[2];

static ULONG initialize_at_third(PRTL_RUN_ONCE run_once, PVOID parameter, PVOID *context)
{
    int which = (int)(run_once - once);
    UNREFERENCED_PARAMETER(parameter);
    attempts[which] += 1; /* no race: one thread at a time runs it */
    if (attempts[which] < 3)
        return FALSE;
    things[which] = 1;
    *context = &things[which];
    return TRUE;
}

static void make_both(void)
{
    for (int which = 0; which < 2; which++) {
        int *mine = NULL;
        while (RtlRunOnceExecuteOnce(&once[which], initialize_at_third, NULL, (PVOID *)&mine) != STATUS_SUCCESS)
            ;
        LabAssert(mine == &things[which] && *mine == 1);
    }
}

static void both_at_third(void)
{
    LabAssert(attempts[0] == 3 && attempts[1] == 3);
}
FOUR_SCENARIO(run_once_4x2_fails, make_both, make_both, make_both, make_both, .Finish = both_at_third);
FOUR_SCENARIO(run_once_4x2_fails_c11, make_both, make_both, make_both, make_both, .Finish = both_at_third,
              .Model = "c11", .StaleReads = 2);

/* Each creates its own; all agree on the winner. */
static PVOID race_for(RTL_RUN_ONCE *run_once, int *own)
{
    PVOID mine = NULL;
    NTSTATUS status = RtlRunOnceBeginInitialize(run_once, RTL_RUN_ONCE_ASYNC, &mine);
    if (status == STATUS_PENDING) {
        *own = 1;
        status = RtlRunOnceComplete(run_once, RTL_RUN_ONCE_ASYNC, own);
        LabAssert(status == STATUS_SUCCESS || status == STATUS_UNSUCCESSFUL);
        __atomic_fetch_add(&passes, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
        LabAssert(RtlRunOnceBeginInitialize(run_once, RTL_RUN_ONCE_CHECK_ONLY, &mine) == STATUS_SUCCESS);
    }
    LabAssert(*(int *)mine == 1);
    return mine;
}

static void race_for_both(void)
{
    static int made_for_second[4] DECLSPEC_ALIGN(8);
    unsigned self = LabCurrentThread();
    race_for(&once[0], &made[self]);
    race_for(&once[1], &made_for_second[self]);
}

static void two_won(void)
{
    LabAssert(passes == 2);
}
FOUR_SCENARIO(run_once_4x2_async, race_for_both, race_for_both, race_for_both, race_for_both, .Finish = two_won);

/* Barriers: three rounds, and the thread that gets TRUE in the last one deletes and frees the barrier. */
static RTL_BARRIER *barrier;
static int arrived, told;

static void make_barrier(void)
{
    barrier = LabAllocate(sizeof(*barrier));
    RtlInitBarrier(barrier, 4, 0);
}

static void pass_barrier(ULONG flags)
{
    RTL_BARRIER *mine = barrier;
    for (int round = 1; round <= 3; round++) {
        __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
        BOOLEAN last = RtlBarrier(mine, flags);
        LabAssert(__atomic_load_n(&arrived, __ATOMIC_RELAXED) >= 4 * round);
        if (last)
            told += 1;
        if (last && round == 3) {
            RtlDeleteBarrier(mine);
            LabFree(mine);
        }
    }
}
FOUR_REPEAT(barrier_user, 1, pass_barrier(0))
FOUR_REPEAT(barrier_blocker, 1, pass_barrier(RTL_BARRIER_FLAGS_BLOCK_ONLY))
FOUR_REPEAT(barrier_spinner, 1, pass_barrier(RTL_BARRIER_FLAGS_SPIN_ONLY))

static void three_rounds(void)
{
    LabAssert(arrived == 12 && told == 3);
}
FOUR_SCENARIO(barrier_4x3, barrier_user, barrier_blocker, barrier_user, barrier_blocker, .Setup = make_barrier,
              .Finish = three_rounds);
FOUR_SCENARIO(barrier_4x3_c11, barrier_user, barrier_blocker, barrier_user, barrier_blocker, .Setup = make_barrier,
              .Finish = three_rounds, .Model = "c11", .StaleReads = 2);
FOUR_SCENARIO(barrier_4x3_spin, barrier_user, barrier_blocker, barrier_spinner, barrier_spinner, .Setup = make_barrier,
              .Finish = three_rounds);

/* User-mode resources. */
static RTL_RESOURCE resource;

static void make_resource(void)
{
    RtlpTimeout = 0;
    RtlInitializeResource(&resource);
    RtlSetCriticalSectionSpinCount(&resource.CriticalSection, 0);
}

static void own_resource(BOOLEAN waits)
{
    if (!RtlAcquireResourceExclusive(&resource, waits)) {
        LabAssert(!waits);
        count_pass();
        return;
    }
    value += 1;
    RtlReleaseResource(&resource);
}

static void share_resource(void)
{
    RtlAcquireResourceShared(&resource, TRUE);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    RtlReleaseResource(&resource);
}

static void convert_resource(void)
{
    RtlAcquireResourceShared(&resource, TRUE);
    RtlConvertSharedToExclusive(&resource);
    value += 1;
    int seen = value;
    RtlConvertExclusiveToShared(&resource);
    LabYield();
    LabAssert(value == seen);
    RtlReleaseResource(&resource);
}
FOUR_REPEAT(resource_writer, 2, own_resource(TRUE))
FOUR_REPEAT(resource_trier, 2, own_resource(FALSE))
FOUR_REPEAT(resource_reader, 2, share_resource())
FOUR_REPEAT(resource_converter, 2, convert_resource())

static void resource_is_free(void)
{
    LabAssert(resource.NumberOfActive == 0 && resource.ExclusiveOwnerThread == NULL);
    LabAssert(resource.NumberOfWaitingShared == 0 && resource.NumberOfWaitingExclusive == 0);
    LabAssert(value + passes == 4 && resource.CriticalSection.LockCount == -1);
}
FOUR_SCENARIO(rtl_resource_4x2, resource_writer, resource_reader, resource_writer, resource_reader,
              .Setup = make_resource, .Finish = resource_is_free);
FOUR_SCENARIO(rtl_resource_4x2_convert, resource_converter, resource_reader, resource_converter, resource_reader,
              .Setup = make_resource, .Finish = resource_is_free);
FOUR_SCENARIO(rtl_resource_4x2_try, resource_writer, resource_reader, resource_trier, resource_reader,
              .Setup = make_resource, .Finish = resource_is_free);
