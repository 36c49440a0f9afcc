/* The verifier's checks of pushlocks. The program is built with DBG, so it sees each of them. */
#define DBG 1

#include "ex/pushlock.h"

#include "support.h"
#include "withsetting.h"

static EX_PUSH_LOCK lock;
static PEX_CACHE_AWARE_PUSH_LOCK cache_aware;
static PEX_PUSH_LOCK_AUTO_EXPAND auto_expand;

static void acquire_exclusive(ULONG flags)
{
    ExAcquirePushLockExclusiveEx(&lock, flags);
}

static void acquire_shared(ULONG flags)
{
    ExAcquirePushLockSharedEx(&lock, flags);
}

static void try_exclusive(ULONG flags)
{
    ExTryAcquirePushLockExclusiveEx(&lock, flags);
}

static void try_shared(ULONG flags)
{
    ExTryAcquirePushLockSharedEx(&lock, flags);
}

static void acquire_cache_aware_exclusive(ULONG flags)
{
    ExAcquireCacheAwarePushLockExclusiveEx(cache_aware, flags);
}

static void acquire_cache_aware_shared(ULONG flags)
{
    ExAcquireCacheAwarePushLockSharedEx(cache_aware, flags);
}

static void acquire_auto_expand_exclusive(ULONG flags)
{
    ExAcquireAutoExpandPushLockExclusive(auto_expand, flags);
}

static void acquire_auto_expand_shared(ULONG flags)
{
    ExAcquireAutoExpandPushLockShared(auto_expand, flags);
}

/* The verifier sees releases first, so it does not matter that nothing is held. */
static void release_exclusive(ULONG flags)
{
    ExReleasePushLockExclusiveEx(&lock, flags);
}

static void release_shared(ULONG flags)
{
    ExReleasePushLockSharedEx(&lock, flags);
}

static void release_either(ULONG flags)
{
    ExReleasePushLockEx(&lock, flags);
}

static void release_cache_aware_exclusive(ULONG flags)
{
    ExReleaseCacheAwarePushLockExclusiveEx(cache_aware, flags);
}

static void release_cache_aware_shared(ULONG flags)
{
    ExReleaseCacheAwarePushLockSharedEx(cache_aware->Locks[0], flags);
}

static void release_auto_expand_exclusive(ULONG flags)
{
    ExReleaseAutoExpandPushLockExclusive(auto_expand, flags);
}

static void release_auto_expand_shared(ULONG flags)
{
    ExReleaseAutoExpandPushLockShared(auto_expand, &auto_expand->LocalLock, flags);
}

static void unblock(ULONG flags)
{
    ExUnblockPushLockEx(&lock, NULL, flags);
}

static void unblock_on_address(ULONG flags)
{
    ExUnblockOnAddressPushLockEx(&lock, &lock, flags);
}

typedef void call(ULONG flags);

static call *const calls[] = {
    acquire_exclusive,
    acquire_shared,
    try_exclusive,
    try_shared,
    acquire_cache_aware_exclusive,
    acquire_cache_aware_shared,
    acquire_auto_expand_exclusive,
    acquire_auto_expand_shared,
    release_exclusive,
    release_shared,
    release_either,
    release_cache_aware_exclusive,
    release_cache_aware_shared,
    release_auto_expand_exclusive,
    release_auto_expand_shared,
};

static void call_with_apcs_enabled(void *function)
{
    (*(call *const *)function)(0);
}

static void call_at_dispatch_level(void *function)
{
    KIRQL old;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    (*(call *const *)function)(0);
}

static void call_with_unknown_flags(void *function)
{
    KeEnterCriticalRegion();
    (*(call *const *)function)(2);
}

static void the_rules_hold_for_every_call(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RTL_NUMBER_OF(calls); i++) {
        void *function = (void *)(ULONG_PTR)&calls[i];
        expect_bugcheck(DRIVER_VERIFIER_DETECTED_VIOLATION, call_with_apcs_enabled, function);
        expect_bugcheck(KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL, call_at_dispatch_level, function);
        expect_bugcheck(INVALID_PUSH_LOCK_FLAGS, call_with_unknown_flags, function);
    }
}

static void address_based_ones_have_flags_only(void **state)
{
    static call *const address_calls[] = {unblock, unblock_on_address};
    (void)state;
    for (unsigned i = 0; i < RTL_NUMBER_OF(address_calls); i++) {
        expect_bugcheck(INVALID_PUSH_LOCK_FLAGS, call_with_unknown_flags, (void *)(ULONG_PTR)&address_calls[i]);
        address_calls[i](0);
    }
}

static void allocate_with_unknown_flags(void *argument)
{
    (void)argument;
    ExAllocateAutoExpandPushLock(2);
}

static void allocation_has_flags_of_its_own(void **state)
{
    (void)state;
    expect_bugcheck(INVALID_SLOT_ALLOCATOR_FLAGS, allocate_with_unknown_flags, NULL);
}

static void each_way_to_disable_apcs_will_do(void **state)
{
    KIRQL old;
    (void)state;
    KeEnterCriticalRegion();
    acquire_exclusive(0);
    KeLeaveCriticalRegion();
    KeEnterGuardedRegion();
    release_exclusive(0);
    KeLeaveGuardedRegion();
    KeRaiseIrql(APC_LEVEL, &old);
    acquire_shared(EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST);
    release_shared(EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST);
    KeLowerIrql(old);
    assert_int_equal(lock, 0);
}

static int allocate_locks(void **state)
{
    (void)state;
    cache_aware = ExAllocateCacheAwarePushLock();
    auto_expand = ExAllocateAutoExpandPushLock(0);
    return cache_aware == NULL || auto_expand == NULL;
}

static int free_locks(void **state)
{
    (void)state;
    ExFreeCacheAwarePushLock(cache_aware);
    ExFreeAutoExpandPushLock(auto_expand);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rules_hold_for_every_call),
        cmocka_unit_test(address_based_ones_have_flags_only),
        cmocka_unit_test(allocation_has_flags_of_its_own),
        cmocka_unit_test(each_way_to_disable_apcs_will_do),
    };
    default_setting("INTERLOCK_VERIFIER", "1");
    return cmocka_run_group_tests(tests, allocate_locks, free_locks);
}
