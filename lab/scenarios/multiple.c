/* Waits for any and for all of several objects. */
#include <interlock/lab.h>

#include <ntddk.h>

static KEVENT first, second;
static PVOID objects[2] = {&first, &second};
static int satisfied;

static void setup(void)
{
    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
}

static void set_first(void)
{
    KeSetEvent(&first, IO_NO_INCREMENT, FALSE);
}

static void set_second(void)
{
    KeSetEvent(&second, IO_NO_INCREMENT, FALSE);
}

static void wait_any(void)
{
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_WAIT_1);
    LabAssert(KeReadStateEvent(status == STATUS_WAIT_0 ? &first : &second) == 0);
    satisfied += 1;
}

static void one_is_left(void)
{
    LabAssert(KeReadStateEvent(&first) + KeReadStateEvent(&second) == 1);
}
LAB_SCENARIO(wait_any_of_two, .Setup = setup, .Threads = {wait_any, set_first, set_second}, .Finish = one_is_left);

static void wait_all(void)
{
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
    LabAssert(status == STATUS_SUCCESS);
}

static void none_is_left(void)
{
    LabAssert(KeReadStateEvent(&first) == 0 && KeReadStateEvent(&second) == 0);
}
LAB_SCENARIO(wait_all_of_two, .Setup = setup, .Threads = {wait_all, set_first, set_second}, .Finish = none_is_left);

/* Two threads want both, in opposite order: one gets them, releases them, and the other gets them. */
static PVOID reversed[2] = {&second, &first};

static void both_signaled(void)
{
    setup();
    set_first();
    set_second();
}

static void take_both(PVOID *order)
{
    KeWaitForMultipleObjects(2, order, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
    satisfied += 1; /* no race: a thread here holds both */
    set_first();
    set_second();
}

static void take_forwards(void)
{
    take_both(objects);
}

static void take_backwards(void)
{
    take_both(reversed);
}

static void both_had_them(void)
{
    LabAssert(satisfied == 2);
    LabAssert(KeReadStateEvent(&first) == 1 && KeReadStateEvent(&second) == 1);
}
LAB_SCENARIO(wait_all_opposite, .Setup = both_signaled, .Threads = {take_forwards, take_backwards},
             .Finish = both_had_them);

/* A wait for all that times out has consumed nothing. */
static void timed_wait_all(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, &timeout, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    satisfied = status == STATUS_SUCCESS;
}

static void all_or_nothing(void)
{
    LONG left = KeReadStateEvent(&first) + KeReadStateEvent(&second);
    LabAssert(left == (satisfied ? 0 : 2));
}
LAB_SCENARIO(wait_all_timeout, .Setup = setup, .Threads = {timed_wait_all, set_first, set_second},
             .Finish = all_or_nothing);
