/* SRW locks: exclusion, sharing, groups of sharers, conversion, try, memory freed at once. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "../models/rwlock.h"

#include "ex/pushlock.h"

#include "sleepers.h"

static RTL_SRWLOCK lock;
static int value;

static void writer(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    value += 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void reader(void)
{
    RtlAcquireSRWLockShared(&lock);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    RtlReleaseSRWLockShared(&lock);
}

static void is_free(void)
{
    LabAssert(lock.Ptr == NULL);
}

static void written_twice(void)
{
    LabAssert(lock.Ptr == NULL && value == 2);
}

static void written_thrice(void)
{
    LabAssert(lock.Ptr == NULL && value == 3);
}
LAB_SCENARIO(srw_writers, .Threads = {writer, writer}, .Finish = written_twice);
LAB_SCENARIO(srw_writers_c11, .Threads = {writer, writer}, .Finish = written_twice, .Model = "c11");
LAB_SCENARIO(srw_writers_sleep, .Setup = sleep_soon, .Threads = {writer, writer}, .Finish = written_twice,
             .SpuriousWakes = 1);
LAB_SCENARIO(srw_three_writers_sleep, .Setup = sleep_soon, .Threads = {writer, writer, writer},
             .Finish = written_thrice);
LAB_SCENARIO(srw_readers_writer, .Threads = {reader, reader, writer}, .Finish = is_free);
LAB_SCENARIO(srw_readers_writer_sleep, .Setup = sleep_soon, .Threads = {reader, writer, reader}, .Finish = is_free);
LAB_SCENARIO(srw_readers_writer_sleep_c11, .Setup = sleep_soon, .Threads = {reader, writer, reader}, .Finish = is_free,
             .Model = "c11", .StaleReads = 2, .Flags = LAB_LARGE);

/* A thread whose turn is over queues behind the others, even if the lock is free, and is not forgotten there. */
static void writer_after_its_turn(void)
{
    KiCurrentThread()->TurnLock = &lock;
    KiCurrentThread()->TurnOver = TRUE;
    writer();
}
LAB_SCENARIO(srw_turn_over, .Setup = sleep_soon, .Threads = {writer, writer_after_its_turn}, .Finish = written_twice);
LAB_SCENARIO(srw_turn_over_three, .Setup = sleep_soon, .Threads = {writer, writer, writer_after_its_turn},
             .Finish = written_thrice);
LAB_SCENARIO(srw_turns_over_c11, .Setup = sleep_soon, .Threads = {writer, writer_after_its_turn, writer_after_its_turn},
             .Finish = written_thrice, .Model = "c11", .StaleReads = 2, .Flags = LAB_LARGE);

/* An unrelated alert wakes no thread early. */
static void stray_alerter(void)
{
    NtAlertThreadByThreadId(ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread()));
}
LAB_SCENARIO(srw_stray_alert, .Setup = sleep_soon, .Threads = {writer, writer, stray_alerter}, .Finish = written_twice);

/* Two sharers that need each other inside. Shared stays shared, whatever waited before them. */
static volatile ULONG inside;

static void meet(void)
{
    ULONG count = __atomic_add_fetch(&inside, 1, __ATOMIC_ACQ_REL);
    if (count == 2)
        LabWakeWord(&inside, 1);
    while (count != 2) {
        LabWaitOnWord(&inside, count);
        count = __atomic_load_n(&inside, __ATOMIC_ACQUIRE);
    }
}

static void held(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    sleep_soon();
}

static void release_held(void)
{
    RtlReleaseSRWLockExclusive(&lock);
}

static void meeting_reader(void)
{
    RtlAcquireSRWLockShared(&lock);
    meet();
    RtlReleaseSRWLockShared(&lock);
}

LAB_SCENARIO(srw_readers_meet, .Setup = held, .Threads = {release_held, meeting_reader, meeting_reader},
             .Finish = is_free, .Flags = LAB_LARGE);

/* Also with a waiting writer, before both of them or behind both: between them it might overtake, which is allowed.
   While the lock is held the chain only grows. */
static void await_waiters(unsigned count)
{
    for (unsigned waiters = 0; waiters < count;) {
        ULONG_PTR found = (ULONG_PTR)__atomic_load_n(&lock.Ptr, __ATOMIC_ACQUIRE);
        PEXP_WAIT_BLOCK block = (PVOID)(found & EX_PUSH_LOCK_WAITING ? found & ~EXP_PUSH_LOCK_BITS : 0);
        for (waiters = 0; block != NULL; block = block->Next)
            waiters += 1;
    }
}

static void release_when_three_wait(void)
{
    await_waiters(3);
    release_held();
}

static void late_reader(void)
{
    await_waiters(1);
    meeting_reader();
}

static void late_writer(void)
{
    await_waiters(2);
    writer();
}
LAB_SCENARIO(srw_readers_meet_behind_writer, .Setup = held,
             .Threads = {release_when_three_wait, writer, late_reader, late_reader}, .Finish = is_free,
             .Flags = LAB_LARGE);
LAB_SCENARIO(srw_readers_meet_before_writer, .Setup = held,
             .Threads = {release_when_three_wait, meeting_reader, meeting_reader, late_writer}, .Finish = is_free,
             .Flags = LAB_LARGE);

/* Conversion to shared admits the waiting sharers; to exclusive it needs a single sharer. */
static void meeting_converter(void)
{
    RtlConvertSRWLockExclusiveToShared(&lock);
    meet();
    RtlReleaseSRWLockShared(&lock);
}

static void converter(void)
{
    RtlAcquireSRWLockExclusive(&lock);
    value += 1;
    RtlConvertSRWLockExclusiveToShared(&lock);
    LabAssert(value >= 1);
    RtlReleaseSRWLockShared(&lock);
}
LAB_SCENARIO(srw_convert_meet, .Setup = held, .Threads = {meeting_converter, meeting_reader}, .Finish = is_free);
LAB_SCENARIO(srw_convert, .Setup = sleep_soon, .Threads = {converter, writer, reader}, .Finish = is_free,
             .Flags = LAB_LARGE);

static void upgrader(void)
{
    RtlAcquireSRWLockShared(&lock);
    if (RtlConvertSRWLockSharedToExclusive(&lock)) {
        value += 1;
        RtlReleaseSRWLockExclusive(&lock);
    } else {
        RtlReleaseSRWLockShared(&lock);
    }
}
LAB_SCENARIO(srw_upgrade, .Threads = {upgrader, upgrader}, .Finish = is_free);
LAB_SCENARIO(srw_upgrade_writer, .Setup = sleep_soon, .Threads = {upgrader, writer, upgrader}, .Finish = is_free,
             .Flags = LAB_LARGE);

/* Histories against the model, with try in both forms. */
static void recorded_writer(void)
{
    record(ACQUIRE_EXCLUSIVE, RtlAcquireSRWLockExclusive(&lock));
    record(RELEASE_EXCLUSIVE, RtlReleaseSRWLockExclusive(&lock));
}

static void recorded_reader(void)
{
    record(ACQUIRE_SHARED, RtlAcquireSRWLockShared(&lock));
    record(RELEASE_SHARED, RtlReleaseSRWLockShared(&lock));
}

static void recorded_trier(void)
{
    if (record_try(TRY_EXCLUSIVE, RtlTryAcquireSRWLockExclusive(&lock)))
        record(RELEASE_EXCLUSIVE, RtlReleaseSRWLockExclusive(&lock));
    if (record_try(TRY_SHARED, RtlTryAcquireSRWLockShared(&lock)))
        record(RELEASE_SHARED, RtlReleaseSRWLockShared(&lock));
}

static void recorded_converter(void)
{
    record(ACQUIRE_EXCLUSIVE, RtlAcquireSRWLockExclusive(&lock));
    record(CONVERT_TO_SHARED, RtlConvertSRWLockExclusiveToShared(&lock));
    if (record_try(CONVERT_TO_EXCLUSIVE, RtlConvertSRWLockSharedToExclusive(&lock)))
        record(RELEASE_EXCLUSIVE, RtlReleaseSRWLockExclusive(&lock));
    else
        record(RELEASE_SHARED, RtlReleaseSRWLockShared(&lock));
}

static void is_a_lock(void)
{
    is_free();
    LabCheckLinearizable(&LabModelRwLock);
}
LAB_SCENARIO(srw_history_try, .Threads = {recorded_writer, recorded_trier}, .Finish = is_a_lock);
LAB_SCENARIO(srw_history, .Setup = sleep_soon, .Threads = {recorded_writer, recorded_reader, recorded_trier},
             .Finish = is_a_lock);
LAB_SCENARIO(srw_history_convert, .Setup = sleep_soon, .Threads = {recorded_converter, recorded_reader, recorded_trier},
             .Finish = is_a_lock);

/* The last thread to leave frees the lock. */
typedef struct common {
    RTL_SRWLOCK lock;
    int users;
} common;

static common *shared;

static void setup_shared(void)
{
    sleep_soon();
    shared = LabAllocate(sizeof(*shared));
    shared->users = 2;
}

static void use_and_free(void)
{
    common *mine = shared;
    RtlAcquireSRWLockExclusive(&mine->lock);
    mine->users -= 1;
    int last = mine->users == 0;
    RtlReleaseSRWLockExclusive(&mine->lock);
    if (last)
        LabFree(mine);
}
LAB_SCENARIO(srw_freed, .Setup = setup_shared, .Threads = {use_and_free, use_and_free});
