/* Auto-expand pushlocks. The tests with a number are those of the numbers in src/ex/fannedpushlock.c. */
#include "pushlockcrew.h"
#include "../support/heap.h"

#define LOCKED EX_PUSH_LOCK_LOCK
#define SHARE EX_PUSH_LOCK_SHARE_INC

#define EXPANDED 1u
#define MEETINGS 64

static BOOLEAN is_expanded(PEX_PUSH_LOCK_AUTO_EXPAND lock)
{
    return (lock->State & EXPANDED) != 0;
}

/* Words that sharers of all processors use. */
static ULONG words_used(PEX_PUSH_LOCK_AUTO_EXPAND lock)
{
    PEX_PUSH_LOCK seen[64];
    ULONG count = 0;
    ULONG processors = KeNumberProcessors < 64 ? KeNumberProcessors : 64;
    for (fake_processor = 0; fake_processor < processors; fake_processor++) {
        PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(lock, 0);
        ULONG i = 0;
        assert_int_equal(*held, LOCKED + SHARE);
        while (i < count && seen[i] != held) {
            i += 1;
        }
        seen[i] = held;
        count = i == count ? count + 1 : count;
        ExReleaseAutoExpandPushLockShared(lock, held, 0);
    }
    fake_processor = 0;
    return count;
}

/* Sharers that contend for a word until the lock is due to grow; the last release makes it grow. */
static void meet(PEX_PUSH_LOCK_AUTO_EXPAND lock)
{
    PEX_PUSH_LOCK first = ExAcquireAutoExpandPushLockShared(lock, 0);
    for (unsigned i = 0; i < MEETINGS; i++) {
        PEX_PUSH_LOCK second = ExAcquireAutoExpandPushLockShared(lock, 0);
        assert_ptr_equal(first, second);
        ExReleaseAutoExpandPushLockShared(lock, second, 0);
    }
    ExReleaseAutoExpandPushLockShared(lock, first, 0);
}

static void grow_fully(PEX_PUSH_LOCK_AUTO_EXPAND lock)
{
    for (unsigned step = 0; step < 12; step++) {
        meet(lock);
    }
}

static void it_starts_as_one_word_and_stays_so_without_meetings(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    (void)state;
    assert_int_equal(sizeof(*lock), 16);
    for (unsigned i = 0; i < 1000; i++) {
        fake_processor = i;
        PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(lock, 0);
        assert_ptr_equal(held, &lock->LocalLock);
        assert_int_equal(lock->LocalLock, LOCKED + SHARE);
        ExReleaseAutoExpandPushLockShared(lock, held, 0);
        ExAcquireAutoExpandPushLockExclusive(lock, 0);
        assert_int_equal(lock->LocalLock, LOCKED);
        ExReleaseAutoExpandPushLockExclusive(lock, 0);
        assert_int_equal(lock->LocalLock, 0);
    }
    fake_processor = 0;
    assert_false(is_expanded(lock));
    ExFreeAutoExpandPushLock(lock);
}

static void it_grows_step_by_step_up_to_a_word_for_each_processor(void **state)
{
    (void)state;
    for (ULONG flags = 0; flags <= EX_PUSH_LOCK_AUTO_EXPAND_FLAG_PAGEABLE; flags++) {
        PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(flags);
        ULONG most = KeNumberProcessors < 64 ? KeNumberProcessors : 64;
        ULONG before = 1;
        for (unsigned step = 0; step < 12; step++) {
            meet(lock);
            ULONG words = words_used(lock);
            assert_true(words > before || words == most);
            assert_true(words <= most);
            before = words;
            if (step == 0 && most > 2) {
                assert_int_equal(words, 2);
            }
        }
        assert_int_equal(before, most);
        assert_int_equal(is_expanded(lock), KeNumberProcessors > 1);
        ExFreeAutoExpandPushLock(lock);
    }
}

static void own_and_release(void *lock)
{
    ExAcquireAutoExpandPushLockExclusive(lock, 0);
    ExReleaseAutoExpandPushLockExclusive(lock, 0);
}

/* Whatever the lock has become meanwhile, an owner waits for held to be released. */
static void assert_owner_waits(actor *owner, PEX_PUSH_LOCK_AUTO_EXPAND lock, PEX_PUSH_LOCK held)
{
    tell(owner, own_and_release, lock);
    await(is_committed(owner->thread));
    assert_true(*held & LOCKED);
    assert_false(is_idle(owner));
    ExReleaseAutoExpandPushLockShared(lock, held, 0);
    await(is_idle(owner));
}

static void number_1_an_owner_takes_everything(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    PEX_PUSH_LOCK word[64];
    ULONG processors = KeNumberProcessors < 64 ? KeNumberProcessors : 64;
    actor owner;
    (void)state;
    start_actor_in_region(&owner);
    grow_fully(lock);
    for (ULONG i = 0; i < processors; i++) {
        fake_processor = i;
        word[i] = ExAcquireAutoExpandPushLockShared(lock, 0);
        ExReleaseAutoExpandPushLockShared(lock, word[i], 0);
    }
    ExAcquireAutoExpandPushLockExclusive(lock, 0);
    assert_int_equal(lock->LocalLock, LOCKED);
    for (ULONG i = 0; i < processors; i++) {
        assert_int_equal(*word[i], LOCKED);
    }
    ExReleaseAutoExpandPushLockExclusive(lock, 0);
    assert_int_equal(lock->LocalLock, 0);
    for (ULONG i = 0; i < processors; i++) {
        assert_int_equal(*word[i], 0);
        fake_processor = i;
        assert_owner_waits(&owner, lock, ExAcquireAutoExpandPushLockShared(lock, 0));
    }
    fake_processor = 0;
    end_actor_in_region(&owner);
    ExFreeAutoExpandPushLock(lock);
}

static ULONG waits_counted;

static void own_and_count_waits(void *lock)
{
    KeGetCurrentThread()->HostTurn.Acquires = 0;
    ExAcquireAutoExpandPushLockExclusive(lock, 0);
    waits_counted = KeGetCurrentThread()->HostTurn.Acquires;
    ExReleaseAutoExpandPushLockExclusive(lock, 0);
}

static void await_owner_of(actor *owner, PEX_PUSH_LOCK_AUTO_EXPAND lock, PEX_PUSH_LOCK held)
{
    tell(owner, own_and_count_waits, lock);
    await(is_committed(owner->thread));
    ExReleasePushLockShared(held);
    await(is_idle(owner));
}

/* A turn that ended at a word would end with LocalLock held. */
static void number_1_turns_end_at_the_local_lock_only(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    actor owner;
    (void)state;
    start_actor_in_region(&owner);
    ExAcquirePushLockShared(&lock->LocalLock);
    await_owner_of(&owner, lock, &lock->LocalLock);
    assert_int_equal(waits_counted, 1);
    grow_fully(lock);
    if (is_expanded(lock)) {
        await_owner_of(&owner, lock, ExAcquireAutoExpandPushLockShared(lock, 0));
        assert_int_equal(waits_counted, 0);
    }
    end_actor_in_region(&owner);
    ExFreeAutoExpandPushLock(lock);
}

/* Sharers that acquired before the lock grew, or read its state before that, still exclude owners. */
static void number_2_old_sharers_count(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    actor owner;
    (void)state;
    start_actor_in_region(&owner);
    meet(lock);
    ExAcquirePushLockShared(&lock->LocalLock);
    assert_owner_waits(&owner, lock, &lock->LocalLock);
    for (unsigned step = 0; step < 6; step++) {
        PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(lock, 0);
        meet(lock);
        assert_owner_waits(&owner, lock, held);
    }
    end_actor_in_region(&owner);
    ExFreeAutoExpandPushLock(lock);
}

/* Nor does it have to be the only sharer: if many processors share the lock, none ever is. */
static void number_3_growing_waits_for_nobody(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    PEX_PUSH_LOCK other = ExAcquireAutoExpandPushLockShared(lock, 0);
    (void)state;
    for (unsigned i = 0; i < MEETINGS; i++) {
        assert_false(is_expanded(lock));
        ExReleaseAutoExpandPushLockShared(lock, ExAcquireAutoExpandPushLockShared(lock, 0), 0);
    }
    assert_int_equal(is_expanded(lock), KeNumberProcessors > 1);
    assert_int_equal(lock->LocalLock, LOCKED + SHARE);
    ExReleaseAutoExpandPushLockShared(lock, other, 0);
    assert_int_equal(lock->LocalLock, 0);
    ExFreeAutoExpandPushLock(lock);
}

/* An owner that has LocalLock and waits for the words has read State. */
static void number_3_nor_behind_an_owner(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    (void)state;
    meet(lock);
    if (is_expanded(lock)) {
        ULONG before = lock->State;
        PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(lock, 0);
        ExAcquirePushLockExclusive(&lock->LocalLock);
        for (unsigned i = 0; i < 2 * MEETINGS; i++) {
            ExReleaseAutoExpandPushLockShared(lock, ExAcquireAutoExpandPushLockShared(lock, 0), 0);
        }
        assert_int_equal(lock->State, before);
        ExReleasePushLockExclusive(&lock->LocalLock);
        ExReleaseAutoExpandPushLockShared(lock, held, 0);
        assert_int_equal(lock->State != before, KeNumberProcessors > 2);
    }
    ExFreeAutoExpandPushLock(lock);
}

/* A step for each MEETINGS, however many find that it is time. */
static void number_3_one_makes_the_step(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    PEX_PUSH_LOCK held[MEETINGS + 1];
    (void)state;
    for (unsigned i = 0; i <= MEETINGS; i++) {
        held[i] = ExAcquireAutoExpandPushLockShared(lock, 0);
        assert_ptr_equal(held[i], &lock->LocalLock);
    }
    ExReleaseAutoExpandPushLockShared(lock, held[0], 0);
    ULONG grown = lock->State;
    assert_int_equal(is_expanded(lock), KeNumberProcessors > 1);
    for (unsigned i = 1; i <= MEETINGS; i++) {
        ExReleaseAutoExpandPushLockShared(lock, held[i], 0);
    }
    assert_int_equal(lock->State, grown);
    assert_int_equal(lock->LocalLock, 0);
    ExFreeAutoExpandPushLock(lock);
}

static void number_4_growing_allocates_nothing(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    unsigned refused = allocations_refused;
    (void)state;
    allocations_left = 0;
    grow_fully(lock);
    ExAcquireAutoExpandPushLockExclusive(lock, 0);
    ExReleaseAutoExpandPushLockExclusive(lock, 0);
    allocations_left = -1;
    assert_int_equal(allocations_refused, refused);
    assert_int_equal(is_expanded(lock), KeNumberProcessors > 1);
    ExFreeAutoExpandPushLock(lock);
}

#define SLAB 8

static void number_4_without_memory_it_stays_small(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND full[4 * SLAB];
    unsigned count = 0;
    PEX_PUSH_LOCK_AUTO_EXPAND lock;
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    allocations_left = 0;
    assert_null(ExAllocateAutoExpandPushLock(0));
    /* until the reserve is used up */
    do {
        allocations_left = 1;
        lock = ExAllocateAutoExpandPushLock(0);
        allocations_left = -1;
        assert_non_null(lock);
        full[count++] = lock;
    } while (lock->State >> 8 != 0 && count < RTL_NUMBER_OF(full));
    assert_int_equal(lock->State >> 8, 0);
    grow_fully(lock);
    assert_false(is_expanded(lock));
    own_and_release(lock);
    assert_int_equal(words_used(lock), 1);
    assert_int_equal(lock->LocalLock, 0);
    while (count != 0) {
        ExFreeAutoExpandPushLock(full[--count]);
    }
}

static void number_5_a_sharer_touches_its_own_word_only(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    (void)state;
    grow_fully(lock);
    PEX_PUSH_LOCK first = ExAcquireAutoExpandPushLockShared(lock, 0);
    EX_PUSH_LOCK_AUTO_EXPAND before = *lock;
    for (fake_processor = 1; fake_processor < KeNumberProcessors && fake_processor < 3000; fake_processor++) {
        PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(lock, 0);
        assert_ptr_not_equal(held, first);
        assert_true((ULONG_PTR)held / 64 != (ULONG_PTR)first / 64);
        assert_true((ULONG_PTR)held / 64 != (ULONG_PTR)lock / 64);
        assert_int_equal(*held, LOCKED + SHARE);
        assert_int_equal(*first, LOCKED + SHARE);
        fake_processor += 1;
        ExReleaseAutoExpandPushLockShared(lock, held, 0);
        fake_processor -= 1;
        assert_memory_equal(&before, lock, sizeof(before));
    }
    fake_processor = 0;
    ExReleaseAutoExpandPushLockShared(lock, first, 0);
    ExFreeAutoExpandPushLock(lock);
}

/* A host with more processors than the machine: the numbers wrap around. */
static void processors_beyond_the_last_share(void **state)
{
    PEX_PUSH_LOCK_AUTO_EXPAND lock = ExAllocateAutoExpandPushLock(0);
    actor owner;
    (void)state;
    start_actor_in_region(&owner);
    grow_fully(lock);
    for (ULONG i = 0; i < 130; i++) {
        fake_processor = KeNumberProcessors + i;
        assert_owner_waits(&owner, lock, ExAcquireAutoExpandPushLockShared(lock, 0));
    }
    fake_processor = 0;
    end_actor_in_region(&owner);
    ExFreeAutoExpandPushLock(lock);
}

/* Eight locks have words on one line of a processor, and each its own. */
static void locks_do_not_share_words(void **state)
{
    enum { LOCKS = 3 * SLAB };
    PEX_PUSH_LOCK_AUTO_EXPAND lock[LOCKS];
    PEX_PUSH_LOCK held[LOCKS];
    (void)state;
    for (unsigned i = 0; i < LOCKS; i++) {
        lock[i] = ExAllocateAutoExpandPushLock(i % 2);
        grow_fully(lock[i]);
        held[i] = ExAcquireAutoExpandPushLockShared(lock[i], 0);
        for (unsigned j = 0; j < i; j++) {
            assert_ptr_not_equal(held[i], held[j]);
        }
    }
    for (unsigned i = 0; i < LOCKS; i++) {
        assert_int_equal(*held[i], LOCKED + SHARE);
        ExReleaseAutoExpandPushLockShared(lock[i], held[i], 0);
    }
    ULONG column = lock[5]->State >> 8;
    ExFreeAutoExpandPushLock(lock[5]);
    lock[5] = ExAllocateAutoExpandPushLock(1);
    assert_int_equal(lock[5]->State >> 8, column);
    for (unsigned i = 0; i < LOCKS; i++) {
        ExFreeAutoExpandPushLock(lock[i]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WATCHED(it_starts_as_one_word_and_stays_so_without_meetings),
        WATCHED(it_grows_step_by_step_up_to_a_word_for_each_processor),
        WATCHED(number_1_an_owner_takes_everything),
        WATCHED(number_1_turns_end_at_the_local_lock_only),
        WATCHED(number_2_old_sharers_count),
        WATCHED(number_3_growing_waits_for_nobody),
        WATCHED(number_3_nor_behind_an_owner),
        WATCHED(number_3_one_makes_the_step),
        WATCHED(number_4_growing_allocates_nothing),
        WATCHED(number_4_without_memory_it_stays_small),
        WATCHED(number_5_a_sharer_touches_its_own_word_only),
        WATCHED(processors_beyond_the_last_share),
        WATCHED(locks_do_not_share_words),
    };
    return cmocka_run_group_tests(tests, fake_processors, NULL);
}
