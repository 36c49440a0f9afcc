/*
 * Requirement 10 of src/ex/pushlock.c: the uncontended paths are in the caller, one compare-exchange each. Here the
 * contended ones are replaced by traps.
 */
#define ExfAcquirePushLockExclusiveEx TrapAcquireExclusive
#define ExfAcquirePushLockSharedEx TrapAcquireShared
#define ExfTryAcquirePushLockExclusiveEx TrapTryAcquireExclusive
#define ExfTryAcquirePushLockSharedEx TrapTryAcquireShared
#define ExfReleasePushLockEx TrapRelease
#define ExfReleasePushLockExclusiveEx TrapReleaseExclusive
#define ExfReleasePushLockSharedEx TrapReleaseShared

#include <interlock/ex.h>

#include "support.h"

static unsigned traps;

VOID TrapAcquireExclusive(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    traps += 1;
    *PushLock = EX_PUSH_LOCK_LOCK;
}

VOID TrapAcquireShared(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    traps += 1;
    *PushLock = EX_PUSH_LOCK_LOCK + EX_PUSH_LOCK_SHARE_INC;
}

BOOLEAN TrapTryAcquireExclusive(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    TrapAcquireExclusive(PushLock, Flags);
    return TRUE;
}

BOOLEAN TrapTryAcquireShared(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    TrapAcquireShared(PushLock, Flags);
    return TRUE;
}

VOID TrapRelease(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    traps += 1;
    *PushLock = 0;
}

VOID TrapReleaseExclusive(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    TrapRelease(PushLock, Flags);
}

VOID TrapReleaseShared(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    TrapRelease(PushLock, Flags);
}

static void use_uncontended(EX_PUSH_LOCK *lock)
{
    ExAcquirePushLockExclusive(lock);
    assert_int_equal(*lock, EX_PUSH_LOCK_LOCK);
    ExReleasePushLockExclusive(lock);
    assert_int_equal(*lock, 0);
    ExAcquirePushLockShared(lock);
    assert_int_equal(*lock, EX_PUSH_LOCK_LOCK + EX_PUSH_LOCK_SHARE_INC);
    ExReleasePushLockShared(lock);
    assert_int_equal(*lock, 0);
    assert_true(ExTryAcquirePushLockExclusive(lock));
    assert_int_equal(*lock, EX_PUSH_LOCK_LOCK);
    ExReleasePushLock(lock);
    assert_int_equal(*lock, 0);
    assert_true(ExTryAcquirePushLockShared(lock));
    assert_int_equal(*lock, EX_PUSH_LOCK_LOCK + EX_PUSH_LOCK_SHARE_INC);
    ExReleasePushLockShared(lock);
    assert_int_equal(*lock, 0);
}

static void requirement_10_uncontended_paths_are_inline(void **state)
{
    EX_PUSH_LOCK lock = 0;
    (void)state;
    use_uncontended(&lock);
    assert_int_equal(traps, INTERLOCK_PUSH_LOCK_CHECKED ? 8 : 0);
}

static void contended_ones_are_not(void **state)
{
    EX_PUSH_LOCK lock = EX_PUSH_LOCK_LOCK;
    (void)state;
    traps = 0;
    ExAcquirePushLockExclusive(&lock);
    ExAcquirePushLockShared(&lock);
    lock = EX_PUSH_LOCK_WAITING | EX_PUSH_LOCK_LOCK;
    ExReleasePushLockShared(&lock);
    assert_int_equal(traps, 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(requirement_10_uncontended_paths_are_inline),
        cmocka_unit_test(contended_ones_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
