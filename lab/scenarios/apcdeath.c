/* A thread that is ended while it takes an APC: the kernel routine runs or the rundown routine does, exactly one. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "target.h"

static KAPC apc;
static int kernel_ran, rundown_ran, normal_ran;

static VOID count_kernel(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext, PVOID *SystemArgument1,
                         PVOID *SystemArgument2)
{
    UNREFERENCED_PARAMETER(Apc);
    UNREFERENCED_PARAMETER(NormalRoutine);
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    kernel_ran += 1;
}

static VOID count_rundown(PKAPC Apc)
{
    UNREFERENCED_PARAMETER(Apc);
    rundown_ran += 1;
}

static VOID count_normal(PVOID NormalContext, PVOID SystemArgument1, PVOID SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    normal_ran += 1;
}

static void queue_own(KPROCESSOR_MODE mode, PKNORMAL_ROUTINE normal)
{
    KeInitializeApc(&apc, KeGetCurrentThread(), OriginalApcEnvironment, count_kernel, count_rundown, normal, mode,
                    NULL);
    LabAssert(KeInsertQueueApc(&apc, NULL, NULL, 0));
}

static void stay_until_ended(void)
{
    static int never;
    while (!__atomic_load_n(&never, __ATOMIC_RELAXED))
        ;
}

/* Outside of any service, where a thread may be ended between two instructions. */
static void takes_user_apc(void)
{
    queue_own(UserMode, count_normal);
    announce();
    KiDeliverUserApcs(KeGetCurrentThread());
    stay_until_ended();
}

static void takes_kernel_apc(void)
{
    KeEnterCriticalRegion();
    queue_own(KernelMode, count_normal);
    announce();
    KeLeaveCriticalRegion();
    stay_until_ended();
}

/* Never returns. Its thread can still be terminated, even if the request came while the kernel routine ran. */
static VOID stay(PVOID NormalContext, PVOID SystemArgument1, PVOID SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    normal_ran += 1;
    stay_until_ended();
}

static void takes_endless_apc(void)
{
    queue_own(UserMode, stay);
    announce();
    KiDeliverUserApcs(KeGetCurrentThread());
    stay_until_ended();
}

static void terminator(void)
{
    PKTHREAD thread = find_target();
    LabAssert(KiTerminateThread(thread, 1) == STATUS_SUCCESS);
}

static void taken_once(void)
{
    LabAssert(kernel_ran + rundown_ran == 1);
    LabAssert(normal_ran <= kernel_ran);
}
LAB_SCENARIO(terminate_at_user_apc, .Threads = {takes_user_apc, terminator}, .Finish = taken_once,
             .Flags = LAB_PRECISE);
LAB_SCENARIO(terminate_in_user_apc, .Threads = {takes_endless_apc, terminator}, .Finish = taken_once,
             .Flags = LAB_PRECISE);

/* Once its kernel routine ran, a normal kernel APC is in progress, and its thread is not ended before the end of it. */
static void taken_whole(void)
{
    taken_once();
    LabAssert(normal_ran == kernel_ran);
}
LAB_SCENARIO(terminate_at_kernel_apc, .Threads = {takes_kernel_apc, terminator}, .Finish = taken_whole,
             .Flags = LAB_PRECISE);
