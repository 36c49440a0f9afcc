/* Remove locks, with and without tags. Requirements: src/io/removelock.c. */
#define DBG 1
#include "support.h"

#include <ntddk.h>

/* The size of a driver that was compiled without DBG. */
#define FREE sizeof(IO_REMOVE_LOCK_COMMON_BLOCK)
#define CHECKED sizeof(IO_REMOVE_LOCK)

static IO_REMOVE_LOCK lock;
static int tags[3];

static NTSTATUS acquire(PVOID tag, ULONG size)
{
    return IoAcquireRemoveLockEx(&lock, tag, __FILE__, __LINE__, size);
}

static void test_count(void **state)
{
    static const ULONG sizes[] = {FREE, CHECKED};
    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(&lock, 0xee, sizeof(lock));
        IoInitializeRemoveLockEx(&lock, 0x74736554, 1, 3, sizes[i]);
        assert_int_equal(lock.Common.IoCount, 1);
        assert_int_equal(acquire(&tags[0], sizes[i]), STATUS_SUCCESS);
        assert_int_equal(acquire(&tags[1], sizes[i]), STATUS_SUCCESS);
        assert_int_equal(acquire(&tags[1], sizes[i]), STATUS_SUCCESS); /* the same tag twice */
        assert_int_equal(lock.Common.IoCount, 4);
        IoReleaseRemoveLockEx(&lock, &tags[1], sizes[i]);
        IoReleaseRemoveLockEx(&lock, &tags[1], sizes[i]);
        IoReleaseRemoveLockAndWaitEx(&lock, &tags[0], sizes[i]);
        assert_true(lock.Common.Removed);
        assert_int_equal(lock.Common.IoCount, 0);
    }
}

static void test_macros(void **state)
{
    (void)state;
    IoInitializeRemoveLock(&lock, 0x74736554, 0, 0);
    assert_int_equal(IoAcquireRemoveLock(&lock, &tags[0]), STATUS_SUCCESS);
    IoReleaseRemoveLock(&lock, &tags[0]);
    assert_int_equal(IoAcquireRemoveLock(&lock, NULL), STATUS_SUCCESS);
    IoReleaseRemoveLockAndWait(&lock, NULL);
    assert_int_equal(IoAcquireRemoveLock(&lock, &tags[0]), STATUS_DELETE_PENDING);
    assert_int_equal(lock.Common.IoCount, 0);
}

/* The remover waits for an owner, and later owners are refused. */
static volatile LONG released;

static void owner_or_remover(void *argument, unsigned index)
{
    ULONG size = *(ULONG *)argument;
    if (index == 0) {
        IoReleaseRemoveLockAndWaitEx(&lock, &tags[0], size);
        assert_int_equal(released, 1);
        return;
    }
    while (acquire(&tags[2], size) == STATUS_SUCCESS) {
        IoReleaseRemoveLockEx(&lock, &tags[2], size);
        YieldProcessor();
    }
    InterlockedExchange(&released, 1);
    IoReleaseRemoveLockEx(&lock, &tags[1], size);
}

static void test_wait(void **state)
{
    ULONG sizes[] = {FREE, CHECKED};
    (void)state;
    for (unsigned long round = 0; round < test_rounds(200); round++) {
        ULONG *size = &sizes[round % 2];
        released = 0;
        IoInitializeRemoveLockEx(&lock, 0x74736554, 0, 0, *size);
        assert_int_equal(acquire(&tags[0], *size), STATUS_SUCCESS);
        assert_int_equal(acquire(&tags[1], *size), STATUS_SUCCESS);
        run_threads(2, 60, owner_or_remover, size);
        assert_int_equal(lock.Common.IoCount, 0);
    }
}

/* Misuse. */

static void release_unheld(void *argument)
{
    ULONG size = *(ULONG *)argument;
    IoInitializeRemoveLockEx(&lock, 0, 0, 0, size);
    IoReleaseRemoveLockEx(&lock, &tags[0], size);
}

static void release_wrong_tag(void *argument)
{
    (void)argument;
    IoInitializeRemoveLock(&lock, 0, 0, 0);
    acquire(&tags[0], CHECKED);
    IoReleaseRemoveLock(&lock, &tags[1]);
}

static void remove_wrong_tag(void *argument)
{
    (void)argument;
    IoInitializeRemoveLock(&lock, 0, 0, 0);
    acquire(&tags[0], CHECKED);
    IoReleaseRemoveLockAndWait(&lock, &tags[1]);
}

static void remove_twice(void *argument)
{
    ULONG size = *(ULONG *)argument;
    IoInitializeRemoveLockEx(&lock, 0, 0, 0, size);
    acquire(&tags[0], size);
    IoReleaseRemoveLockAndWaitEx(&lock, &tags[0], size);
    IoReleaseRemoveLockAndWaitEx(&lock, &tags[0], size);
}

static void remove_unheld(void *argument)
{
    ULONG size = *(ULONG *)argument;
    IoInitializeRemoveLockEx(&lock, 0, 0, 0, size);
    IoReleaseRemoveLockAndWaitEx(&lock, &tags[0], size);
}

static void test_misuse(void **state)
{
    ULONG sizes[] = {FREE, CHECKED};
    (void)state;
    for (int i = 0; i < 2; i++) {
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xd5, release_unheld, &sizes[i]);
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xd6, remove_twice, &sizes[i]);
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xd6, remove_unheld, &sizes[i]);
    }
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xd5, release_wrong_tag, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xd6, remove_wrong_tag, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_macros),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_wait),
    };
    return cmocka_run_group_tests_name("io/removelock", tests, NULL, NULL);
}
