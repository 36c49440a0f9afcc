/* thread.c: fibers as host threads, and interrupts among them. */
#include "labhal.h"

#include <interlock/ke.h>

#include "ke/irql.h"
#include "ke/ki.h"

HAL_CALLBACKS LabhalCallbacks;
__thread struct _KTHREAD *HalCurrentThread __attribute__((tls_model("initial-exec")));

static void LabhalAdopt(void)
{
    KeGetCurrentThread();
}

static void LabhalThreadExit(void)
{
    struct _KTHREAD *Thread = lab->current->exit_object;

    if (Thread != NULL && LabhalCallbacks.ThreadExit != NULL) {
        lab->current->exit_object = NULL;
        HalCurrentThread = Thread;
        LabhalCallbacks.ThreadExit(Thread);
        HalCurrentThread = NULL;
    }
}

static void LabhalInterrupt(void)
{
    if (HalCurrentThread != NULL && LabhalCallbacks.Interrupt != NULL) {
        LabhalCallbacks.Interrupt(lab->current->inside_libc);
    }
}

VOID HalInitialize(const HAL_CALLBACKS *Callbacks)
{
    lab_memory_initialize();
    LabhalCallbacks = *Callbacks;
    lab->run.now = 10000000000ull;
    lab_machine.adopt = LabhalAdopt;
    lab_machine.thread_exit = LabhalThreadExit;
    lab_machine.interrupt = LabhalInterrupt;
    lab_machine.describe_wait = lab_describe_wait;
    lab_machine.describe_address = lab_describe_address;
}

VOID HalCompleteInitialization(VOID)
{
}

ULONG HalCurrentThreadId(VOID)
{
    return lab != NULL && lab->current != NULL ? LABHAL_FIRST_THREAD + lab->current->number : LABHAL_FIRST_THREAD - 1;
}

ULONG HalCurrentProcessId(VOID)
{
    return LABHAL_PROCESS;
}

BOOLEAN HalIsThreadOfOtherProcess(ULONG ThreadId)
{
    UNREFERENCED_PARAMETER(ThreadId);
    return FALSE;
}

/* The library's own threads run until the machine ends. */
static BOOLEAN LabhalIsService(PCSTR Name)
{
    return Name != NULL && strncmp(Name, "interlock-", 10) == 0;
}

NTSTATUS HalCreateThread(VOID (*StartRoutine)(PVOID), PVOID Context, SIZE_T StackSize, PCSTR Name)
{
    lab_thread *Thread;

    UNREFERENCED_PARAMETER(StackSize);
    if (lab_explore_memory_runs_out()) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Thread = lab_thread_spawn(StartRoutine, Context, Name, LabhalIsService(Name));
    if (Thread == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Thread->runs_exit = true;
    return STATUS_SUCCESS;
}

VOID HalExitThread(VOID)
{
    lab_thread_exit();
}

VOID HalTerminateThread(volatile UCHAR *StackIsLeft)
{
    lab_atomic_store((uintptr_t)StackIsLeft, sizeof(*StackIsLeft), TRUE, __ATOMIC_RELEASE, LABHAL_CALLER);
    lab_thread_terminate();
}

/*
 * Statistics, notes for debuggers, and what decides how long a thread spins: this machine neither schedules by priority nor spins, so
 * a state in which only these differ is the same (engine/states.c).
 */
static void LabhalIgnoreStatistics(PKTHREAD Thread)
{
    lab_memory_ignore(&Thread->WaitTime, sizeof(Thread->WaitTime));
    lab_memory_ignore(&Thread->WaitProcessor, sizeof(Thread->WaitProcessor));
    lab_memory_ignore((volatile UCHAR *)&Thread->PendingBoost + 1, sizeof(Thread->PendingBoost) - 1); /* its time */
    lab_memory_ignore(&Thread->BoostTime, sizeof(Thread->BoostTime));
    lab_memory_ignore(&Thread->AutoBoostCount, sizeof(Thread->AutoBoostCount));
    lab_memory_ignore(&Thread->CreateTime, sizeof(Thread->CreateTime));
    lab_memory_ignore(&Thread->ExitTime, sizeof(Thread->ExitTime));
    lab_memory_ignore(&Thread->ContextSwitches, sizeof(Thread->ContextSwitches));
    lab_memory_ignore(&Thread->LockWaitedFor, sizeof(Thread->LockWaitedFor));
    lab_memory_ignore(&Thread->LockOwned, sizeof(Thread->LockOwned));
    lab_memory_ignore(&Thread->TurnLock, sizeof(Thread->TurnLock));
    lab_memory_ignore(&Thread->TurnPasses, sizeof(Thread->TurnPasses));
    lab_memory_ignore(&Thread->NearLooks, sizeof(Thread->NearLooks));
    lab_memory_ignore(&Thread->UntimedLooks, sizeof(Thread->UntimedLooks));
    lab_memory_ignore(&Thread->HasWaited, sizeof(Thread->HasWaited));
    lab_memory_ignore(&Thread->SpinFailures, sizeof(Thread->SpinFailures));
    lab_memory_ignore(&Thread->SpinSkipped, sizeof(Thread->SpinSkipped));
    lab_memory_ignore(&Thread->WokeSleeper, sizeof(Thread->WokeSleeper));
    lab_memory_ignore(&Thread->QueueGap, sizeof(Thread->QueueGap));
    lab_memory_ignore(&Thread->QueueBalance, sizeof(Thread->QueueBalance));
    lab_memory_ignore(&Thread->QueueShortSleeps, sizeof(Thread->QueueShortSleeps));
    lab_memory_ignore(&Thread->QueueSleepTime, sizeof(Thread->QueueSleepTime));
    lab_memory_ignore(&Thread->WakerProcessor, sizeof(Thread->WakerProcessor));
}

static VOID LabhalIgnoreStatisticsOfProcessors(VOID)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = KiProcessorBlock[Number];
        lab_memory_ignore(&Prcb->CurrentThread, sizeof(Prcb->CurrentThread)); /* the last owner */
        lab_memory_ignore(&Prcb->InterruptCount, sizeof(Prcb->InterruptCount));
        lab_memory_ignore(&Prcb->DpcData[KI_DPC_NORMAL].DpcCount, sizeof(Prcb->DpcData[0].DpcCount));
        lab_memory_ignore(&Prcb->DpcData[KI_DPC_THREADED].DpcCount, sizeof(Prcb->DpcData[0].DpcCount));
    }
}

VOID HalWatchThreadExit(struct _KTHREAD *Thread)
{
    LabhalIgnoreStatistics(Thread);
    LabhalIgnoreStatisticsOfProcessors();
    if (lab->current != NULL) {
        lab->current->exit_object = Thread;
    }
}

/* A schedule ends with its threads. */
HAL_OTHERS HalFindOtherThreads(VOID)
{
    return HalOthers;
}

VOID HalNoteThreadEnds(VOID)
{
}

NTSTATUS HalInterruptThread(ULONG ThreadId)
{
    if (ThreadId < LABHAL_FIRST_THREAD) {
        return STATUS_INVALID_CID;
    }
    lab_block_interrupt(ThreadId - LABHAL_FIRST_THREAD, LABHAL_CALLER);
    return STATUS_SUCCESS;
}

BOOLEAN HalIsInterruptOnItsWay(ULONG ThreadId)
{
    UNREFERENCED_PARAMETER(ThreadId);
    return TRUE;
}

BOOLEAN HalIsThreadAsleep(ULONG ThreadId)
{
    UNREFERENCED_PARAMETER(ThreadId);
    return FALSE;
}

HAL_LATER HalInterruptLater(VOID)
{
    lab->current->interrupt_later = true;
    return HalLaterSet;
}

BOOLEAN HalCanInterruptLater(VOID)
{
    return TRUE;
}

BOOLEAN HalBarrierAllThreads(VOID)
{
    lab_atomic_barrier_all();
    return TRUE;
}

BOOLEAN HalSetThreadPriority(ULONG ThreadId, LONG NtPriority)
{
    UNREFERENCED_PARAMETER(ThreadId);
    UNREFERENCED_PARAMETER(NtPriority);
    return TRUE;
}

/* The scenarios' errno is not simulated. */
VOID HalSetError(HAL_ERROR Error)
{
    UNREFERENCED_PARAMETER(Error);
}

VOID HalSetThreadName(ULONG ThreadId, PCSTR Name)
{
    UNREFERENCED_PARAMETER(ThreadId);
    UNREFERENCED_PARAMETER(Name);
}

VOID HalQueryThreadTimes(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime)
{
    UNREFERENCED_PARAMETER(ThreadId);
    *KernelTime = 0;
    *UserTime = 0;
}
