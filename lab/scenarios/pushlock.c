/* Pushlocks: exclusion, sharing, conversion, handoff, acquires during a handoff, histories. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "../models/rwlock.h"

#include "ex/pushlock.h"
#include "ke/fairness.h"

static EX_PUSH_LOCK lock;
static int value;
static KEVENT met;
static int readers;

static void setup(void)
{
    ExInitializePushLock(&lock);
    KeInitializeEvent(&met, NotificationEvent, FALSE);
}

static void writer(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    value += 1;
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}

static void reader(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    LabAssert(value >= 0);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

static void is_free(void)
{
    LabAssert(lock == 0);
}
LAB_SCENARIO(pushlock_writers, .Setup = setup, .Threads = {writer, writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_writers_c11, .Setup = setup, .Threads = {writer, writer}, .Finish = is_free, .Model = "c11");
LAB_SCENARIO(pushlock_reader_writer, .Setup = setup, .Threads = {reader, writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_readers_writer, .Setup = setup, .Threads = {reader, reader, writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_three_writers, .Setup = setup, .Threads = {writer, writer, writer}, .Finish = is_free);

/* Two readers that must be inside together, and a writer that makes them queue. */
static void meeting_reader(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    if (__atomic_add_fetch(&readers, 1, __ATOMIC_ACQ_REL) == 2)
        KeSetEvent(&met, IO_NO_INCREMENT, FALSE);
    KeWaitForSingleObject(&met, Executive, KernelMode, FALSE, NULL);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

static void held(void)
{
    setup();
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
}

static void release_held(void)
{
    KeEnterCriticalRegion();
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_readers_meet, .Setup = held, .Threads = {release_held, meeting_reader, meeting_reader},
             .Finish = is_free);

static void converter(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    value += 1;
    ExConvertPushLockExclusiveToShared(&lock);
    LabAssert(value >= 1);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_convert, .Setup = setup, .Threads = {converter, writer}, .Finish = is_free);

/* Waiting sharers join a thread that has converted to shared at once, whichever thread wakes them. */
static void convert_and_meet(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    ExConvertPushLockExclusiveToShared(&lock);
    KeWaitForSingleObject(&met, Executive, KernelMode, FALSE, NULL);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

static void reader_to_be_met(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    KeSetEvent(&met, IO_NO_INCREMENT, FALSE);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_convert_lets_in, .Setup = setup, .Threads = {convert_and_meet, reader_to_be_met},
             .Finish = is_free);
LAB_SCENARIO(pushlock_convert_in_between, .Setup = held, .Threads = {release_held, convert_and_meet, reader_to_be_met},
             .Finish = is_free);

static void upgrade_or_leave(void)
{
    if (ExTryConvertPushLockSharedToExclusive(&lock)) {
        value += 1;
        ExReleasePushLockExclusive(&lock);
    } else {
        ExReleasePushLockShared(&lock);
    }
}

static void upgrader(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    upgrade_or_leave();
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_upgrade, .Setup = setup, .Threads = {upgrader, reader}, .Finish = is_free);
LAB_SCENARIO(pushlock_upgrade_waited, .Setup = setup, .Threads = {upgrader, reader, writer}, .Finish = is_free);

/* Several wait: which one is handed the lock. */
static void held_by_two_sharers(void)
{
    ExInitializePushLock(&lock);
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    ExAcquirePushLockShared(&lock);
}

static void release_shared(void)
{
    KeEnterCriticalRegion();
    LabAssert(value == 0);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}

LAB_SCENARIO(pushlock_handed_to_readers, .Setup = held, .Threads = {release_held, reader, writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_handed_to_a_group, .Setup = held, .Threads = {release_held, reader, reader, writer},
             .Finish = is_free, .Flags = LAB_LARGE);
LAB_SCENARIO(pushlock_handed_past_newcomers, .Setup = held, .Threads = {release_held, reader, writer, writer},
             .Finish = is_free, .Flags = LAB_LARGE);
LAB_SCENARIO(pushlock_counted_sharers, .Setup = held_by_two_sharers,
             .Threads = {release_shared, release_shared, writer, writer}, .Finish = is_free, .Flags = LAB_LARGE);

/* A thread that repeatedly acquires the lock while another waits: the waiter is woken in vain, and is finally handed
   the lock. */
static int waiters_expected, done;

static void counted_writer(void)
{
    writer();
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static BOOLEAN somebody_waits(void)
{
    return (__atomic_load_n(&lock, __ATOMIC_RELAXED) & EX_PUSH_LOCK_WAITING) != 0 ||
           __atomic_load_n(&done, __ATOMIC_RELAXED) == waiters_expected;
}

static void take_when_waited_for(int rounds)
{
    KeEnterCriticalRegion();
    for (int i = 0; i < rounds; i++) {
        while (!somebody_waits()) {
        }
        ExReleasePushLockExclusive(&lock);
        ExAcquirePushLockExclusive(&lock);
        value += 1;
    }
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}

static void take_five_times(void)
{
    take_when_waited_for(5);
}

static void take_twice(void)
{
    take_when_waited_for(2);
}

static void held_against_one(void)
{
    waiters_expected = 1;
    held();
}

static void held_against_two(void)
{
    waiters_expected = 2;
    held();
}

static void held_against_three(void)
{
    waiters_expected = 3;
    held();
}
LAB_SCENARIO(pushlock_overtaken, .Setup = held_against_one, .Threads = {take_five_times, counted_writer},
             .Finish = is_free);

/* Three times at most: each of the owner's rounds begins when the waiter is queued again. */
static int passed;

static void passed_writer(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    passed = value;
    value += 1;
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static void was_handed_over(void)
{
    is_free();
    LabAssert(passed <= 3);
}
LAB_SCENARIO(pushlock_woken_in_vain, .Setup = held_against_one, .Threads = {take_five_times, passed_writer},
             .Finish = was_handed_over);
LAB_SCENARIO(pushlock_overtaken_two, .Setup = held_against_two,
             .Threads = {take_five_times, counted_writer, counted_writer}, .Finish = is_free);
LAB_SCENARIO(pushlock_overtaken_reader, .Setup = held_against_one, .Threads = {take_five_times, counted_writer, reader},
             .Finish = is_free);
LAB_SCENARIO(pushlock_overtaken_three, .Setup = held_against_three,
             .Threads = {take_twice, counted_writer, counted_writer, counted_writer}, .Finish = is_free,
             .Flags = LAB_LARGE);

/* A turn that is over: a thread that has overtaken waiters for long enough queues behind them, even if the lock is
   free.
 */
static PEXP_WAIT_BLOCK newest_waiter(void)
{
    return (PEXP_WAIT_BLOCK)(__atomic_load_n(&lock, __ATOMIC_ACQUIRE) & ~(ULONG_PTR)15);
}

static void await_two_waiters(void)
{
    while (newest_waiter() == NULL || newest_waiter()->Next == NULL) {
    }
}

static void pass_waiters_after(ULONG passes)
{
    PKTHREAD thread = KeGetCurrentThread();
    thread->TurnLock = &lock;
    thread->TurnPasses = passes;
    ExReleasePushLockExclusive(&lock);
    ExAcquirePushLockExclusive(&lock);
}

static void take_for_longest_turn(void)
{
    KeEnterCriticalRegion();
    await_two_waiters();
    pass_waiters_after(KI_LONGEST_TURN - 1);
    LabAssert(value >= 1);
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_longest_turn, .Setup = held, .Threads = {take_for_longest_turn, writer, writer},
             .Finish = is_free, .Flags = LAB_LARGE);

static void release_for_nobody(void)
{
    PKTHREAD thread = KeGetCurrentThread();
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    thread->TurnLock = &lock;
    thread->TurnPasses = 0;
    ExfReleasePushLockExclusiveEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
    LabAssert(thread->TurnPasses == 0);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_passes_nobody, .Setup = setup, .Threads = {release_for_nobody}, .Finish = is_free);

/* A woken waiter that finds the lock taken queues again: it does not keep the right to wake. */
static void take_past_woken(void)
{
    KeEnterCriticalRegion();
    await_two_waiters();
    ExReleasePushLockExclusive(&lock);
    ExAcquirePushLockExclusive(&lock);
    while (__atomic_load_n(&lock, __ATOMIC_RELAXED) & EX_PUSH_LOCK_WAKING) {
    }
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_goes_back, .Setup = held, .Threads = {take_past_woken, writer, writer}, .Finish = is_free);

/* Threads that have learned that the others are near spin first. */
static void near_writer(void)
{
    KeGetCurrentThread()->NearLooks = 1;
    writer();
}
LAB_SCENARIO(pushlock_near, .Setup = setup, .Threads = {near_writer, near_writer, reader}, .Finish = is_free);

/* A thread that became the only sharer by conversion stays so, even while a woken waiter is in transit. */
static void convert_both_ways(void)
{
    KeEnterCriticalRegion();
    while (!somebody_waits()) {
    }
    ExReleasePushLockExclusive(&lock);
    ExAcquirePushLockExclusive(&lock);
    value += 1;
    ExConvertPushLockExclusiveToShared(&lock);
    LabAssert(value >= 1);
    LabAssert(ExTryConvertPushLockSharedToExclusive(&lock));
    value += 1;
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_convert_both_ways, .Setup = held_against_two,
             .Threads = {convert_both_ways, counted_writer, counted_writer}, .Finish = is_free);

/* What other sharers did comes before what the last one does alone, even if the word already says so. */
static void upgrade_when_waited(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    while (!somebody_waits()) {
    }
    upgrade_or_leave();
    KeLeaveCriticalRegion();
}

static void free_for_one(void)
{
    waiters_expected = 1;
    setup();
}
LAB_SCENARIO(pushlock_upgrade_orders_c11, .Setup = free_for_one,
             .Threads = {upgrade_when_waited, reader, counted_writer}, .Finish = is_free, .Model = "c11");

/* Whatever its mode. */
static void writer_releases_either(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    value += 1;
    ExReleasePushLock(&lock);
    KeLeaveCriticalRegion();
}

static void reader_releases_either(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&lock);
    LabAssert(value >= 0);
    ExReleasePushLock(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_release_either, .Setup = setup,
             .Threads = {writer_releases_either, reader_releases_either, reader_releases_either}, .Finish = is_free);

/* A lock without owners or waiters, or with sharers only, is available at once. */
static void try_alone(void)
{
    KeEnterCriticalRegion();
    LabAssert(ExfTryAcquirePushLockExclusiveEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS));
    value = 1;
    LabAssert(!ExfTryAcquirePushLockExclusiveEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS));
    LabAssert(!ExfTryAcquirePushLockSharedEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS));
    ExfReleasePushLockEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_try_alone, .Setup = setup, .Threads = {try_alone}, .Finish = is_free);

static void try_to_share(void)
{
    KeEnterCriticalRegion();
    LabAssert(ExfTryAcquirePushLockSharedEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS));
    LabAssert(value == 0);
    LabAssert(ExTryAcquirePushLockShared(&lock));
    ExReleasePushLockShared(&lock);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_try_to_share, .Setup = setup, .Threads = {try_to_share, try_to_share}, .Finish = is_free);

static void try_writer(void)
{
    KeEnterCriticalRegion();
    if (ExTryAcquirePushLockExclusive(&lock)) {
        value += 1;
        ExReleasePushLockExclusive(&lock);
    }
    KeLeaveCriticalRegion();
}

static void try_reader(void)
{
    KeEnterCriticalRegion();
    if (ExTryAcquirePushLockShared(&lock)) {
        LabAssert(value >= 0);
        ExReleasePushLockShared(&lock);
    }
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(pushlock_try, .Setup = setup, .Threads = {try_writer, try_reader, writer}, .Finish = is_free);

/* No thread owns it, or not in that mode. */
static void release_exclusive_unheld(void)
{
    ExfReleasePushLockExclusiveEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

static void release_shared_unheld(void)
{
    ExfReleasePushLockSharedEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

static void convert_unheld(void)
{
    ExConvertPushLockExclusiveToShared(&lock);
}
LAB_SCENARIO(pushlock_release_exclusive_unheld, .Setup = setup, .Threads = {release_exclusive_unheld},
             .Expect = "bugcheck");
LAB_SCENARIO(pushlock_release_shared_unheld, .Setup = setup, .Threads = {release_shared_unheld}, .Expect = "bugcheck");
LAB_SCENARIO(pushlock_convert_unheld, .Setup = setup, .Threads = {convert_unheld}, .Expect = "bugcheck");

/* Histories, with try and conversion. */
static void recorded_upgrader(void)
{
    KeEnterCriticalRegion();
    record(ACQUIRE_SHARED, ExAcquirePushLockShared(&lock));
    if (record_try(CONVERT_TO_EXCLUSIVE, ExTryConvertPushLockSharedToExclusive(&lock))) {
        value += 1;
        record(CONVERT_TO_SHARED, ExConvertPushLockExclusiveToShared(&lock));
    }
    record(RELEASE_SHARED, ExReleasePushLockShared(&lock));
    KeLeaveCriticalRegion();
}

static void recorded_trier(void)
{
    KeEnterCriticalRegion();
    if (record_try(TRY_EXCLUSIVE, ExTryAcquirePushLockExclusiveEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS))) {
        value += 1;
        record(RELEASE_EXCLUSIVE, ExReleasePushLockExclusive(&lock));
    }
    if (record_try(TRY_SHARED, ExTryAcquirePushLockSharedEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS)))
        record(RELEASE_SHARED, ExReleasePushLockShared(&lock));
    KeLeaveCriticalRegion();
}

static void recorded_writer(void)
{
    KeEnterCriticalRegion();
    record(ACQUIRE_EXCLUSIVE, ExAcquirePushLockExclusive(&lock));
    value += 1;
    record(RELEASE_EXCLUSIVE, ExReleasePushLockExclusive(&lock));
    KeLeaveCriticalRegion();
}

static void is_a_lock(void)
{
    LabAssert(lock == 0);
    LabCheckLinearizable(&LabModelRwLock);
}
LAB_SCENARIO(pushlock_history_try, .Threads = {recorded_upgrader, recorded_trier}, .Finish = is_a_lock);
LAB_SCENARIO(pushlock_history, .Threads = {recorded_trier, recorded_writer}, .Finish = is_a_lock, .Flags = LAB_LARGE);
