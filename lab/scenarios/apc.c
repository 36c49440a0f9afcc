/* APCs against a wait, against their removal, against the exit of their thread. Each is delivered once, or run down. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "target.h"

static KEVENT event;
static KAPC apc;
static int kernel_ran, normal_ran, rundown_ran, removed, inserted;
static NTSTATUS waited;

static void setup(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

static VOID kernel_routine(PKAPC self, PKNORMAL_ROUTINE *normal_routine, PVOID *normal_context, PVOID *argument1,
                           PVOID *argument2)
{
    UNREFERENCED_PARAMETER(normal_routine);
    UNREFERENCED_PARAMETER(normal_context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
    LabAssert(KeGetCurrentThread() == target && self == &apc && KeGetCurrentIrql() == APC_LEVEL);
    kernel_ran += 1;
}

static VOID normal_routine(PVOID context, PVOID argument1, PVOID argument2)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
    LabAssert(KeGetCurrentThread() == target && KeGetCurrentIrql() == PASSIVE_LEVEL);
    normal_ran += 1;
}

static VOID rundown_routine(PKAPC self)
{
    LabAssert(self == &apc);
    rundown_ran += 1;
}

static void queue_apc(PKNORMAL_ROUTINE normal, KPROCESSOR_MODE mode)
{
    KeInitializeApc(&apc, find_target(), OriginalApcEnvironment, kernel_routine, rundown_routine, normal, mode, NULL);
    inserted = KeInsertQueueApc(&apc, NULL, NULL, 0);
}

static void queue_normal(void)
{
    queue_apc(normal_routine, KernelMode);
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void queue_user(void)
{
    queue_apc(normal_routine, UserMode);
}

static void setter(void)
{
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

/* A normal kernel APC interrupts the wait, which then restarts; in a region it is delivered when the region is left. */
static void waiter(void)
{
    announce();
    LabAssert(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
    LabAssert(kernel_ran == 1 && normal_ran == 1);
}

static void waiter_in_region(void)
{
    KeEnterCriticalRegion();
    announce();
    LabAssert(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(normal_ran == 0);
    KeLeaveCriticalRegion();
    LabAssert(kernel_ran == 1 && normal_ran == 1);
}
LAB_SCENARIO(apc_normal_against_set, .Setup = setup, .Threads = {waiter, queue_normal}, .Flags = LAB_LARGE);
LAB_SCENARIO(apc_held_back, .Setup = setup, .Threads = {waiter_in_region, queue_normal}, .Flags = LAB_PRECISE);

/* A user APC ends an alertable user-mode wait, and the event stays signaled. */
static void alertable_waiter(void)
{
    announce();
    waited = KeWaitForSingleObject(&event, UserRequest, UserMode, TRUE, NULL);
    LabAssert(waited == STATUS_SUCCESS || waited == STATUS_USER_APC);
    LabAssert(normal_ran == (waited == STATUS_USER_APC));
}

static void consumed_or_interrupted(void)
{
    LabAssert(KeReadStateEvent(&event) == (waited == STATUS_USER_APC));
}
LAB_SCENARIO(apc_user_against_set, .Setup = setup, .Threads = {alertable_waiter, queue_user, setter},
             .Finish = consumed_or_interrupted, .Flags = LAB_LARGE);

static void interrupted_waiter(void)
{
    announce();
    LabAssert(KeWaitForSingleObject(&event, UserRequest, UserMode, TRUE, NULL) == STATUS_USER_APC);
    LabAssert(kernel_ran == 1 && normal_ran == 1);
}
LAB_SCENARIO(apc_user_alone, .Setup = setup, .Threads = {interrupted_waiter, queue_user}, .Flags = LAB_PRECISE);

static void deaf_waiter(void)
{
    announce();
    LabAssert(KeWaitForSingleObject(&event, UserRequest, UserMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(normal_ran == 0);
}
LAB_SCENARIO(apc_user_not_alertable, .Setup = setup, .Threads = {deaf_waiter, queue_user, setter}, .Flags = LAB_LARGE);

/* Removed, or delivered. */
static void queue_and_remove(void)
{
    queue_apc(normal_routine, KernelMode);
    removed = KeRemoveQueueApc(&apc);
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void waiter_perhaps_interrupted(void)
{
    announce();
    LabAssert(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
}

static void removed_or_delivered(void)
{
    LabAssert(inserted && kernel_ran + removed == 1 && normal_ran == kernel_ran);
}
LAB_SCENARIO(apc_against_remove, .Setup = setup, .Threads = {waiter_perhaps_interrupted, queue_and_remove},
             .Finish = removed_or_delivered, .Flags = LAB_LARGE);

/* Refused, delivered, or run down: the thread exits. Its object stays referenced. */
static void ending_thread(void)
{
    ObReferenceObject(KeGetCurrentThread());
    announce();
    LabExitThread();
}

static void queue_to_ending(void)
{
    queue_apc(normal_routine, KernelMode);
}

static void queue_user_to_ending(void)
{
    queue_apc(normal_routine, UserMode);
}

static void ended_once(void)
{
    LabAssert(normal_ran <= kernel_ran && kernel_ran + rundown_ran == inserted);
}
LAB_SCENARIO(apc_against_end, .Setup = setup, .Threads = {ending_thread, queue_to_ending}, .Finish = ended_once,
             .Flags = LAB_PRECISE);
LAB_SCENARIO(apc_user_against_end, .Setup = setup, .Threads = {ending_thread, queue_user_to_ending},
             .Finish = ended_once, .Flags = LAB_PRECISE);
