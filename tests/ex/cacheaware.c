/* Cache-aware pushlocks. */
#include "pushlockcrew.h"
#include "../support/heap.h"

#define LOCKED EX_PUSH_LOCK_LOCK
#define SHARE EX_PUSH_LOCK_SHARE_INC

/* Of the first processors, which the structure names. */
static ULONG named_count(void)
{
    return KeNumberProcessors < EX_PUSH_LOCK_FANNED_COUNT ? KeNumberProcessors : EX_PUSH_LOCK_FANNED_COUNT;
}

/* The words follow each other, a line apart. */
static PEX_PUSH_LOCK word_of(PEX_CACHE_AWARE_PUSH_LOCK lock, ULONG processor)
{
    return (PEX_PUSH_LOCK)((ULONG_PTR)lock->Locks[0] + 64 * processor);
}

static void assert_words(PEX_CACHE_AWARE_PUSH_LOCK lock, ULONG_PTR all, ULONG exception, ULONG_PTR word)
{
    for (ULONG i = 0; i < KeNumberProcessors; i++) {
        assert_int_equal(*word_of(lock, i), i == exception ? word : all);
    }
}

static void it_has_a_line_for_each_processor(void **state)
{
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    (void)state;
    assert_int_equal(sizeof(*lock), 32 * sizeof(void *));
    for (ULONG i = 0; i < EX_PUSH_LOCK_FANNED_COUNT; i++) {
        assert_int_equal((ULONG_PTR)lock->Locks[i] % 64, 0);
        for (ULONG j = 0; j < i; j++) {
            assert_true((lock->Locks[i] == lock->Locks[j]) == (i % named_count() == j % named_count()));
        }
        assert_ptr_equal(lock->Locks[i], word_of(lock, i % named_count()));
        assert_true((ULONG_PTR)lock->Locks[i] >= (ULONG_PTR)(lock + 1));
    }
    assert_words(lock, 0, 0, 0);
    ExFreeCacheAwarePushLock(lock);
}

static void a_sharer_touches_its_own_line_only(void **state)
{
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    (void)state;
    for (fake_processor = 0; fake_processor < KeNumberProcessors + 70; fake_processor += 1 + fake_processor / 10) {
        ULONG slot = fake_processor % KeNumberProcessors;
        PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockShared(lock);
        assert_ptr_equal(held, word_of(lock, slot));
        assert_words(lock, 0, slot, LOCKED + SHARE);
        fake_processor += 1; /* moved meanwhile */
        ExReleaseCacheAwarePushLockShared(held);
        fake_processor -= 1;
        assert_words(lock, 0, 0, 0);
    }
    fake_processor = 0;
    ExFreeCacheAwarePushLock(lock);
}

static void an_owner_takes_all(void **state)
{
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    (void)state;
    ExAcquireCacheAwarePushLockExclusive(lock);
    assert_words(lock, LOCKED, 0, LOCKED);
    ExReleaseCacheAwarePushLockExclusive(lock);
    assert_words(lock, 0, 0, 0);
    ExFreeCacheAwarePushLock(lock);
}

static void own_and_release(void *lock)
{
    ExAcquireCacheAwarePushLockExclusiveEx(lock, EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST);
    ExReleaseCacheAwarePushLockExclusiveEx(lock, EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST);
}

/* The owner waits for every sharer, on any processor; sharers still acquire words that it has not reached. */
static void an_owner_waits_for_sharers_of_all_processors(void **state)
{
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    actor owner;
    (void)state;
    start_actor_in_region(&owner);
    for (ULONG last = 0; last < KeNumberProcessors; last += 1 + last / 8) {
        fake_processor = last;
        PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockShared(lock);
        tell(&owner, own_and_release, lock);
        await(is_committed(owner.thread));
        for (ULONG i = 0; i < last; i++) {
            assert_false(ExTryAcquirePushLockShared(word_of(lock, i)));
        }
        for (ULONG i = last + 1; i < KeNumberProcessors; i++) {
            assert_true(ExTryAcquirePushLockShared(word_of(lock, i)));
            ExReleasePushLockShared(word_of(lock, i));
        }
        assert_false(is_idle(&owner));
        ExReleaseCacheAwarePushLockShared(held);
        await(is_idle(&owner));
    }
    end_actor_in_region(&owner);
    assert_words(lock, 0, 0, 0);
    ExFreeCacheAwarePushLock(lock);
}

static ULONG waits_counted;

static void own_and_count_waits(void *lock)
{
    KeGetCurrentThread()->HostTurn.Acquires = 0;
    ExAcquireCacheAwarePushLockExclusive(lock);
    waits_counted = KeGetCurrentThread()->HostTurn.Acquires;
    ExReleaseCacheAwarePushLockExclusive(lock);
}

/* A wait for the first word counts; a turn that ended at the others would end with the first one held. */
static void turns_end_at_the_first_word_only(void **state)
{
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    actor owner;
    (void)state;
    start_actor_in_region(&owner);
    for (ULONG processor = 0; processor < named_count(); processor++) {
        fake_processor = processor;
        PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockShared(lock);
        tell(&owner, own_and_count_waits, lock);
        await(is_committed(owner.thread));
        ExReleaseCacheAwarePushLockShared(held);
        await(is_idle(&owner));
        assert_int_equal(waits_counted, processor == 0);
    }
    fake_processor = 0;
    end_actor_in_region(&owner);
    ExFreeCacheAwarePushLock(lock);
}

static void share_and_release(void *word)
{
    ExAcquirePushLockShared((PEX_PUSH_LOCK)word);
    ExReleasePushLockShared((PEX_PUSH_LOCK)word);
}

/* So do passes, which would restart at 0 each time. */
static void passes_count_at_the_first_word_only(void **state)
{
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    actor sharer;
    (void)state;
    start_actor_in_region(&sharer);
    for (ULONG processor = 0; processor < named_count(); processor++) {
        ExAcquireCacheAwarePushLockExclusive(lock);
        tell(&sharer, share_and_release, (void *)word_of(lock, processor));
        await(is_committed(sharer.thread));
        KeGetCurrentThread()->TurnLock = NULL;
        ExReleaseCacheAwarePushLockExclusive(lock);
        assert_ptr_equal(KeGetCurrentThread()->TurnLock, processor == 0 ? word_of(lock, 0) : NULL);
        await(is_idle(&sharer));
    }
    end_actor_in_region(&sharer);
    ExFreeCacheAwarePushLock(lock);
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    allocations_left = 0;
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    allocations_left = -1;
    assert_null(lock);
}

static void using_it_allocates_nothing(void **state)
{
    PEX_CACHE_AWARE_PUSH_LOCK lock = ExAllocateCacheAwarePushLock();
    unsigned refused = allocations_refused;
    (void)state;
    allocations_left = 0;
    ExAcquireCacheAwarePushLockExclusive(lock);
    ExReleaseCacheAwarePushLockExclusive(lock);
    ExReleaseCacheAwarePushLockShared(ExAcquireCacheAwarePushLockShared(lock));
    allocations_left = -1;
    assert_int_equal(allocations_refused, refused);
    ExFreeCacheAwarePushLock(lock);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WATCHED(it_has_a_line_for_each_processor),
        WATCHED(a_sharer_touches_its_own_line_only),
        WATCHED(an_owner_takes_all),
        WATCHED(an_owner_waits_for_sharers_of_all_processors),
        WATCHED(turns_end_at_the_first_word_only),
        WATCHED(passes_count_at_the_first_word_only),
        WATCHED(without_memory_there_is_none),
        WATCHED(using_it_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, fake_processors, NULL);
}
