/* Semaphores: no count is lost or taken twice. */
#include <interlock/lab.h>

#include <ntddk.h>

static KSEMAPHORE semaphore;
static int got;

static void setup(void)
{
    KeInitializeSemaphore(&semaphore, 0, 10);
}

static void releaser(void)
{
    KeReleaseSemaphore(&semaphore, IO_NO_INCREMENT, 1, FALSE);
}

static void double_releaser(void)
{
    KeReleaseSemaphore(&semaphore, IO_NO_INCREMENT, 2, FALSE);
}

static void waiter(void)
{
    LabAssert(KeWaitForSingleObject(&semaphore, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void is_empty(void)
{
    LabAssert(KeReadStateSemaphore(&semaphore) == 0);
}
LAB_SCENARIO(semaphore_one, .Setup = setup, .Threads = {releaser, waiter}, .Finish = is_empty);
LAB_SCENARIO(semaphore_two_waiters, .Setup = setup, .Threads = {double_releaser, waiter, waiter}, .Finish = is_empty);

static void timed_waiter(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = KeWaitForSingleObject(&semaphore, Executive, KernelMode, FALSE, &timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    __atomic_fetch_add(&got, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
}

static void adds_up(void)
{
    LabAssert(got + KeReadStateSemaphore(&semaphore) == 1);
}
LAB_SCENARIO(semaphore_timeout, .Setup = setup, .Threads = {releaser, timed_waiter}, .Finish = adds_up);

/* A history against the model. */
enum { RELEASE, WAIT };

static void recorded_releaser(void)
{
    unsigned operation = LabBegin(RELEASE, 1);
    LabEnd(operation, KeReleaseSemaphore(&semaphore, IO_NO_INCREMENT, 1, FALSE));
}

static void recorded_poller(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    for (int i = 0; i < 2; i++) {
        unsigned operation = LabBegin(WAIT, 0);
        NTSTATUS status = KeWaitForSingleObject(&semaphore, Executive, KernelMode, FALSE, &now);
        LabEnd(operation, status == STATUS_SUCCESS);
    }
}

static void is_linearizable(void)
{
    LabCheckLinearizable(&LabModelSemaphore);
}
LAB_SCENARIO(semaphore_history, .Setup = setup, .Threads = {recorded_releaser, recorded_releaser, recorded_poller},
             .Finish = is_linearizable);
