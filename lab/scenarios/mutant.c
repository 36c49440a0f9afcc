/* Mutants and mutexes: exclusion, recursion, timeouts, abandonment. */
#include <interlock/lab.h>

#include <ntddk.h>

static KMUTANT mutant;
static KMUTEX mutex;
static int inside, count;

static void setup(void)
{
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeMutex(&mutex, 0);
}

static void enter(void)
{
    inside += 1;
    LabAssert(inside == 1);
    count += 1;
    inside -= 1;
}

static void locker(void)
{
    LabAssert(KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    enter();
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void recursive_locker(void)
{
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    enter();
    LabAssert(KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE) == -1);
    LabAssert(KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE) == 0);
}

static void is_free(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1);
    LabAssert(count == 2);
}
LAB_SCENARIO(mutant_two_lockers, .Setup = setup, .Threads = {locker, locker}, .Finish = is_free);
LAB_SCENARIO(mutant_recursive, .Setup = setup, .Threads = {recursive_locker, locker}, .Finish = is_free);

static void timed_locker(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, &timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    if (status == STATUS_SUCCESS) {
        enter();
        KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
    }
}

static void is_released(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1);
}
LAB_SCENARIO(mutant_timeout, .Setup = setup, .Threads = {locker, timed_locker}, .Finish = is_released);

/* The owner exits; exactly the next owner gets STATUS_ABANDONED. */
static int abandoned;

static void dying_owner(void)
{
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    LabExitThread();
}

static void heir(void)
{
    NTSTATUS status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    abandoned += status == STATUS_ABANDONED;
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void one_was_told(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1);
    LabAssert(abandoned <= 1);
}
LAB_SCENARIO(mutant_abandoned, .Setup = setup, .Threads = {dying_owner, heir}, .Finish = one_was_told);

static void mutex_locker(void)
{
    KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, NULL);
    enter();
    KeReleaseMutex(&mutex, FALSE);
}
LAB_SCENARIO(mutex_two_lockers, .Setup = setup, .Threads = {mutex_locker, mutex_locker});
