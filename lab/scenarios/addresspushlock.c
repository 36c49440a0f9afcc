/* Address-based pushlocks: the wait for a value, with and without a deadline, and the same in single steps. */
#include <interlock/lab.h>

#include <ntifs.h>

#define MILLISECOND 10000

static EX_PUSH_LOCK lock;
static volatile LONG condition, other;
static int data;

static void change(void)
{
    data = 1;
    __atomic_store_n(&condition, 1, __ATOMIC_RELEASE);
    ExUnblockOnAddressPushLock(&lock, (PVOID)&condition);
}

static void change_other(void)
{
    __atomic_store_n(&other, 1, __ATOMIC_RELEASE);
    ExUnblockOnAddressPushLock(&lock, (PVOID)&other);
}

static NTSTATUS wait_for(volatile LONG *address, LONGLONG timeout)
{
    LARGE_INTEGER limit = {.QuadPart = -timeout};
    LONG zero = 0;

    return ExBlockOnAddressPushLock(&lock, (PVOID)address, &zero, sizeof(zero), timeout < 0 ? NULL : &limit);
}

/* One call is enough: no spurious wakeup ends it. What was done before the change is visible when it returns. */
static void waiter(void)
{
    LabAssert(wait_for(&condition, -1) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&condition, __ATOMIC_RELAXED) == 1);
    LabAssert(data == 1);
}

static void waiter_for_other(void)
{
    LabAssert(wait_for(&other, -1) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&other, __ATOMIC_RELAXED) == 1);
}

static void list_is_empty(void)
{
    LabAssert(lock == 0);
}
LAB_SCENARIO(pushlock_address_once, .Threads = {waiter, change}, .Finish = list_is_empty);
LAB_SCENARIO(pushlock_address_two, .Threads = {waiter, waiter, change}, .Finish = list_is_empty);
LAB_SCENARIO(pushlock_address_neighbours, .Threads = {waiter, waiter_for_other, change, change_other},
             .Finish = list_is_empty, .Flags = LAB_LARGE);

/* With a deadline: either the waiter was woken, or it reports a timeout. */
static void timed_waiter(void)
{
    NTSTATUS status = wait_for(&condition, MILLISECOND);

    if (status == STATUS_SUCCESS)
        LabAssert(data == 1);
    else
        LabAssert(status == STATUS_TIMEOUT);
}
LAB_SCENARIO(pushlock_address_timeout, .Threads = {timed_waiter, change}, .Finish = list_is_empty);
LAB_SCENARIO(pushlock_address_two_timeouts, .Threads = {timed_waiter, timed_waiter, change}, .Finish = list_is_empty);

static void nobody_comes(void)
{
    LabAssert(wait_for(&condition, MILLISECOND) == STATUS_TIMEOUT);
    LabAssert(wait_for(&condition, 0) == STATUS_TIMEOUT);
}
LAB_SCENARIO(pushlock_address_nobody, .Threads = {nobody_comes}, .Finish = list_is_empty);

/* Step by step. */
static void announce_and_wait(void)
{
    EX_PUSH_LOCK_WAIT_BLOCK block;

    ExBlockPushLock(&lock, &block);
    if (__atomic_load_n(&condition, __ATOMIC_ACQUIRE) != 0)
        ExUnblockPushLock(&lock, &block);
    else
        LabAssert(ExTimedWaitForUnblockPushLock(&lock, &block, NULL) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&condition, __ATOMIC_RELAXED) == 1);
    LabAssert(data == 1);
}

static void change_and_wake_all(void)
{
    data = 1;
    __atomic_store_n(&condition, 1, __ATOMIC_RELEASE);
    ExUnblockPushLock(&lock, NULL);
}
LAB_SCENARIO(pushlock_address_steps, .Threads = {announce_and_wait, change_and_wake_all}, .Finish = list_is_empty);
LAB_SCENARIO(pushlock_address_steps_two, .Threads = {announce_and_wait, announce_and_wait, change_and_wake_all},
             .Finish = list_is_empty);

/* A value at an odd address is compared by bytes. */
static UCHAR odd[8];

static void change_odd(void)
{
    data = 1;
    for (int i = 0; i < 4; i++)
        __atomic_store_n(&odd[1 + i], 1, __ATOMIC_RELEASE);
    ExUnblockOnAddressPushLock(&lock, &odd[1]);
}

static void odd_waiter(void)
{
    UCHAR zero[5] = {0};

    LabAssert(ExBlockOnAddressPushLock(&lock, &odd[1], &zero[1], 4, NULL) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&odd[1], __ATOMIC_RELAXED) == 1);
    LabAssert(data == 1);
}

static void change_last_byte(void)
{
    data = 1;
    __atomic_store_n(&odd[4], 1, __ATOMIC_RELEASE);
    ExUnblockOnAddressPushLock(&lock, &odd[1]);
}

static void last_byte_waiter(void)
{
    UCHAR zero[5] = {0};

    LabAssert(ExBlockOnAddressPushLock(&lock, &odd[1], &zero[1], 4, NULL) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&odd[4], __ATOMIC_RELAXED) == 1);
    LabAssert(data == 1);
}
LAB_SCENARIO(pushlock_address_odd, .Threads = {odd_waiter, change_odd}, .Finish = list_is_empty);
LAB_SCENARIO(pushlock_address_last_byte, .Threads = {last_byte_waiter, change_last_byte}, .Finish = list_is_empty);
