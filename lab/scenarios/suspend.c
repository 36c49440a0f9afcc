/* Suspension against every kind of wait: the wait ends as if it had not been suspended, and consumes what it should. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ex/exp.h"

static KEVENT first, second;
static KSEMAPHORE semaphore;
static KMUTANT mutant;
static KQUEUE queue;
static LIST_ENTRY entry;
static KGATE gate;
static EX_KEYED_EVENT keyed;
static int key DECLSPEC_ALIGN(2);
static PVOID both[2] = {&first, &second};
static PKTHREAD target;
static int done;

static void setup(void)
{
    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&semaphore, 0, 2);
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeQueue(&queue, 1);
    KeInitializeGate(&gate);
    ExpInitializeKeyedEvent(&keyed);
}

static void announce(void)
{
    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
}

static void suspender(void)
{
    PKTHREAD thread;
    while ((thread = __atomic_load_n(&target, __ATOMIC_ACQUIRE)) == NULL)
        ;
    KeSuspendThread(thread);
    KeResumeThread(thread);
}

static void set_both(void)
{
    KeSetEvent(&first, IO_NO_INCREMENT, FALSE);
    KeSetEvent(&second, IO_NO_INCREMENT, FALSE);
}

static void wait_any(void)
{
    announce();
    NTSTATUS status = KeWaitForMultipleObjects(2, both, WaitAny, Executive, KernelMode, FALSE, NULL, NULL);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_WAIT_1);
    done = 1 + status;
}

static void one_is_left(void)
{
    LabAssert(done != 0);
    LabAssert(KeReadStateEvent(&first) == (done == 2) && KeReadStateEvent(&second) == (done == 1));
}
LAB_SCENARIO(suspend_against_any, .Setup = setup, .Threads = {wait_any, suspender, set_both}, .Finish = one_is_left,
             .Flags = LAB_LARGE);

static void wait_all(void)
{
    announce();
    LabAssert(KeWaitForMultipleObjects(2, both, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_SUCCESS);
    done = 1;
}

static void none_is_left(void)
{
    LabAssert(done && KeReadStateEvent(&first) == 0 && KeReadStateEvent(&second) == 0);
}
LAB_SCENARIO(suspend_against_all, .Setup = setup, .Threads = {wait_all, suspender, set_both}, .Finish = none_is_left,
             .Flags = LAB_LARGE);

/* The deadline does not change. */
static void timed_waiter(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    announce();
    NTSTATUS status = KeWaitForSingleObject(&semaphore, Executive, KernelMode, FALSE, &timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    done = 1 + (status == STATUS_SUCCESS);
}

static void releaser(void)
{
    KeReleaseSemaphore(&semaphore, IO_NO_INCREMENT, 1, FALSE);
}

static void adds_up(void)
{
    LabAssert(done != 0 && done - 1 + KeReadStateSemaphore(&semaphore) == 1);
}
LAB_SCENARIO(suspend_against_timeout, .Setup = setup, .Threads = {timed_waiter, suspender, releaser}, .Finish = adds_up,
             .Flags = LAB_LARGE);

/* A suspended owner keeps the mutant; a suspended waiter gets it. */
static void locker(void)
{
    announce();
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    done += 1;
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void other_locker(void)
{
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    done += 1;
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void both_had_it(void)
{
    LabAssert(done == 2 && KeReadStateMutant(&mutant) == 1);
}
LAB_SCENARIO(suspend_against_mutant, .Setup = setup, .Threads = {locker, suspender, other_locker},
             .Finish = both_had_it, .Flags = LAB_LARGE);

static void remover(void)
{
    announce();
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entry);
    done = 1;
}

static void inserter(void)
{
    KeInsertQueue(&queue, &entry);
}

static void it_was_taken(void)
{
    LabAssert(done && KeReadStateQueue(&queue) == 0 && queue.CurrentCount == 1);
}
LAB_SCENARIO(suspend_against_queue, .Setup = setup, .Threads = {remover, suspender, inserter}, .Finish = it_was_taken,
             .Flags = LAB_LARGE);

static void gate_waiter(void)
{
    announce();
    KeWaitForGate(&gate, WrGuardedMutex, KernelMode);
    done = 1;
}

static void gate_signaler(void)
{
    KeSignalGate(&gate);
}

static void it_went_on(void)
{
    LabAssert(done);
}
LAB_SCENARIO(suspend_against_gate, .Setup = setup, .Threads = {gate_waiter, suspender, gate_signaler},
             .Finish = it_went_on, .Flags = LAB_LARGE);

static void key_waiter(void)
{
    announce();
    LabAssert(ExpWaitForKeyedEvent(&keyed, &key, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    done = 1;
}

static void key_releaser(void)
{
    LabAssert(ExpReleaseKeyedEvent(&keyed, &key, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}
LAB_SCENARIO(suspend_against_key, .Setup = setup, .Threads = {key_waiter, suspender, key_releaser},
             .Finish = it_went_on, .Flags = LAB_LARGE);

/* Two threads suspend: it runs again after the last resume, and only then. */
static int holds;

static void holder(void)
{
    PKTHREAD thread;
    while ((thread = __atomic_load_n(&target, __ATOMIC_ACQUIRE)) == NULL)
        ;
    ULONG before = KeSuspendThread(thread);
    LabAssert(before <= 1);
    __atomic_fetch_add(&holds, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&holds, 1, __ATOMIC_RELAXED);
    LabAssert(KeResumeThread(thread) >= 1);
}

static void waiter(void)
{
    announce();
    KeWaitForSingleObject(&first, Executive, KernelMode, FALSE, NULL);
    done = 1;
}

static void setter(void)
{
    KeSetEvent(&first, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(suspend_twice, .Setup = setup, .Threads = {waiter, holder, holder, setter}, .Finish = it_went_on,
             .Flags = LAB_LARGE);

/* A thread that exits while it is suspended, or just before. */
static void ending_thread(void)
{
    ObReferenceObject(KeGetCurrentThread());
    announce();
    LabExitThread();
}
LAB_SCENARIO(suspend_against_end, .Setup = setup, .Threads = {ending_thread, suspender}, .Flags = LAB_LARGE);
