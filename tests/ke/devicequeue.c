/* Device queues. Numbers are those of the requirements in ke/interrupt.c. */
#include "support.h"

#include <ntddk.h>

typedef struct job {
    KDEVICE_QUEUE_ENTRY entry;
    int number;
} job;

static KDEVICE_QUEUE queue;
static job jobs[6];

static int setup(void **state)
{
    (void)state;
    memset(jobs, 0xee, sizeof(jobs));
    for (int i = 0; i < 6; i++)
        jobs[i].number = i;
    memset(&queue, 0xee, sizeof(queue));
    KeInitializeDeviceQueue(&queue);
    return 0;
}

static int number_of(PKDEVICE_QUEUE_ENTRY entry)
{
    return entry != NULL ? CONTAINING_RECORD(entry, job, entry)->number : -1;
}

static KIRQL raise(void)
{
    KIRQL old;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    return old;
}

static void test_initialized(void **state)
{
    (void)state;
    assert_int_equal(queue.Type, DeviceQueueObject);
    assert_int_equal(queue.Size, sizeof(KDEVICE_QUEUE));
    assert_false(queue.Busy);
    assert_true(IsListEmpty(&queue.DeviceListHead));
}

static void test_first_in_first_out(void **state)
{
    KIRQL old = raise();
    (void)state;
    assert_false(KeInsertDeviceQueue(&queue, &jobs[0].entry)); /* requirement 1 */
    assert_true(queue.Busy);
    assert_false(jobs[0].entry.Inserted);
    for (int i = 1; i < 4; i++) {
        assert_true(KeInsertDeviceQueue(&queue, &jobs[i].entry));
        assert_true(jobs[i].entry.Inserted);
    }
    for (int i = 1; i < 4; i++)
        assert_int_equal(number_of(KeRemoveDeviceQueue(&queue)), i);
    assert_true(queue.Busy);
    assert_null(KeRemoveDeviceQueue(&queue)); /* requirement 2 */
    assert_false(queue.Busy);
    assert_false(KeInsertDeviceQueue(&queue, &jobs[4].entry));
    KeLowerIrql(old);
}

static void test_by_key(void **state)
{
    static const ULONG keys[] = {0, 30, 10, 20, 20, MAXULONG};
    static const int order[] = {2, 3, 4, 1, 5};
    KIRQL old = raise();
    (void)state;
    for (int i = 0; i < 6; i++)
        assert_int_equal(KeInsertByKeyDeviceQueue(&queue, &jobs[i].entry, keys[i]), i != 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(number_of(KeRemoveDeviceQueue(&queue)), order[i]);
    assert_null(KeRemoveDeviceQueue(&queue));
    /* requirement 3: upwards from the key, then from the lowest */
    for (int i = 0; i < 4; i++)
        KeInsertByKeyDeviceQueue(&queue, &jobs[i].entry, keys[i]);
    assert_int_equal(number_of(KeRemoveByKeyDeviceQueue(&queue, 15)), 3);
    assert_int_equal(number_of(KeRemoveByKeyDeviceQueue(&queue, 31)), 2);
    assert_int_equal(number_of(KeRemoveByKeyDeviceQueue(&queue, 30)), 1);
    assert_null(KeRemoveByKeyDeviceQueueIfBusy(&queue, 0));
    assert_false(queue.Busy);
    assert_null(KeRemoveByKeyDeviceQueueIfBusy(&queue, 0));
    KeLowerIrql(old);
}

static void test_remove_entry(void **state)
{
    KIRQL old = raise();
    (void)state;
    for (int i = 0; i < 4; i++)
        KeInsertDeviceQueue(&queue, &jobs[i].entry);
    assert_true(KeRemoveEntryDeviceQueue(&queue, &jobs[2].entry)); /* requirement 4 */
    assert_false(jobs[2].entry.Inserted);
    assert_false(KeRemoveEntryDeviceQueue(&queue, &jobs[2].entry));
    assert_false(KeRemoveEntryDeviceQueue(&queue, &jobs[0].entry));
    assert_int_equal(number_of(KeRemoveDeviceQueue(&queue)), 1);
    assert_int_equal(number_of(KeRemoveDeviceQueue(&queue)), 3);
    assert_null(KeRemoveDeviceQueue(&queue));
    KeLowerIrql(old);
}

static void remove_from_idle(void *argument)
{
    (void)argument;
    raise();
    KeRemoveDeviceQueue(&queue);
}

static void test_not_busy(void **state)
{
    (void)state;
    expect_bugcheck(DEVICE_QUEUE_NOT_BUSY, remove_from_idle, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_initialized, setup),  cmocka_unit_test_setup(test_first_in_first_out, setup),
        cmocka_unit_test_setup(test_by_key, setup),       cmocka_unit_test_setup(test_remove_entry, setup),
        cmocka_unit_test_setup(test_not_busy, setup),
    };
    return cmocka_run_group_tests_name("ke/devicequeue", tests, NULL, NULL);
}
