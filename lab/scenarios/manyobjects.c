/* KeWaitForManyObjects: signals against each other, against a timeout, against an alert, and a wait for all. */
#include <interlock/lab.h>

#include <ntddk.h>

static KEVENT first, second;
static PVOID objects[2] = {&first, &second};
static KWAIT_BLOCK blocks[2][KE_MANY_WAIT_BLOCKS(2)];
static int taken[2], timeouts;

static void setup(void)
{
    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
    taken[0] = taken[1] = timeouts = 0;
}

static void set_first(void)
{
    KeSetEvent(&first, IO_NO_INCREMENT, FALSE);
}

static void set_second(void)
{
    KeSetEvent(&second, IO_NO_INCREMENT, FALSE);
}

static void wait_many(int number, WAIT_TYPE type, BOOLEAN alertable, PLARGE_INTEGER timeout)
{
    ULONG index = 7;
    NTSTATUS status = KeWaitForManyObjects(2, objects, type, Executive, KernelMode, alertable, timeout, blocks[number],
                                           &index);
    if (status == STATUS_WAIT_0) {
        LabAssert(index < 2);
        __atomic_add_fetch(&taken[index], 1, __ATOMIC_RELAXED);
        if (type == WaitAll) {
            LabAssert(index == 0);
            __atomic_add_fetch(&taken[1], 1, __ATOMIC_RELAXED);
        }
    } else {
        LabAssert(status == STATUS_TIMEOUT || (alertable && status == STATUS_ALERTED));
        LabAssert(index == 0);
        __atomic_add_fetch(&timeouts, 1, __ATOMIC_RELAXED);
    }
}

static void wait_any(void)
{
    wait_many(0, WaitAny, FALSE, NULL);
}

static void one_is_taken(void)
{
    LabAssert(taken[0] + taken[1] == 1);
    LabAssert(KeReadStateEvent(&first) == 1 - taken[0] && KeReadStateEvent(&second) == 1 - taken[1]);
}
LAB_SCENARIO(many_any, .Setup = setup, .Threads = {wait_any, set_first, set_second}, .Finish = one_is_taken);

static void wait_any_too(void)
{
    wait_many(1, WaitAny, FALSE, NULL);
}

static void both_are_taken(void)
{
    LabAssert(taken[0] == 1 && taken[1] == 1);
    LabAssert(KeReadStateEvent(&first) == 0 && KeReadStateEvent(&second) == 0);
}
LAB_SCENARIO(many_any_twice, .Setup = setup, .Threads = {wait_any, wait_any_too, set_first, set_second},
             .Finish = both_are_taken);

static void wait_any_briefly(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    wait_many(0, WaitAny, FALSE, &timeout);
}

/* Exactly one of the signal and the timeout wins; a signal that lost stays set. */
static void none_is_lost(void)
{
    LabAssert(taken[0] + taken[1] + timeouts == 1);
    LabAssert(KeReadStateEvent(&second) == 1 - taken[1]);
}
LAB_SCENARIO(many_any_timeout, .Setup = setup, .Threads = {wait_any_briefly, set_second}, .Finish = none_is_lost);

static void wait_any_alertable(void)
{
    wait_many(0, WaitAny, TRUE, NULL);
}

static PKTHREAD alertable;

static void publish_and_wait(void)
{
    __atomic_store_n(&alertable, KeGetCurrentThread(), __ATOMIC_RELEASE);
    wait_any_alertable();
}

static void alert(void)
{
    PKTHREAD thread = __atomic_load_n(&alertable, __ATOMIC_ACQUIRE);
    if (thread != NULL) {
        KeAlertThread(thread, KernelMode);
    }
}

static void setup_alert(void)
{
    setup();
    alertable = NULL;
}
LAB_SCENARIO(many_any_alert, .Setup = setup_alert, .Threads = {publish_and_wait, set_second, alert},
             .Finish = none_is_lost);

static void wait_all(void)
{
    wait_many(0, WaitAll, FALSE, NULL);
}
LAB_SCENARIO(many_all, .Setup = setup, .Threads = {wait_all, set_first, set_second}, .Finish = both_are_taken);

/* A wait for all takes both or none, whatever a wait for any takes meanwhile. */
static KSEMAPHORE two, one;
static PVOID semaphores[2] = {&two, &one};

static void setup_semaphores(void)
{
    setup();
    KeInitializeSemaphore(&two, 0, 2);
    KeInitializeSemaphore(&one, 0, 1);
}

static void take_semaphores(int number, WAIT_TYPE type, PLARGE_INTEGER timeout)
{
    ULONG index;
    NTSTATUS status = KeWaitForManyObjects(2, semaphores, type, Executive, KernelMode, FALSE, timeout, blocks[number],
                                           &index);
    if (status == STATUS_WAIT_0) {
        __atomic_add_fetch(&taken[index], 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&taken[1], type == WaitAll, __ATOMIC_RELAXED);
    } else {
        LabAssert(status == STATUS_TIMEOUT && type == WaitAll);
        timeouts += 1;
    }
}

static void take_any(void)
{
    take_semaphores(0, WaitAny, NULL);
}

static void take_all_briefly(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    take_semaphores(1, WaitAll, &timeout);
}

static void release_both(void)
{
    KeReleaseSemaphore(&one, IO_NO_INCREMENT, 1, FALSE);
    KeReleaseSemaphore(&two, IO_NO_INCREMENT, 2, FALSE);
}

static void all_or_none(void)
{
    LabAssert(taken[0] + taken[1] == (timeouts == 0 ? 3 : 1));
    LabAssert(KeReadStateSemaphore(&two) + taken[0] == 2 && KeReadStateSemaphore(&one) + taken[1] == 1);
}
LAB_SCENARIO(many_any_against_all, .Setup = setup_semaphores, .Threads = {take_any, take_all_briefly, release_both},
             .Finish = all_or_none);
