/* Alerts that a thread tests for without waiting: each is consumed once, whatever else happens at the same moment. */
#include <interlock/lab.h>

#include <ntifs.h>

static PKTHREAD tested;

static void tester(void)
{
    KeAlertThread(KeGetCurrentThread(), KernelMode);
    __atomic_store_n(&tested, KeGetCurrentThread(), __ATOMIC_RELEASE);
    LabAssert(KeTestAlertThread(KernelMode));
    LabAssert(!KeTestAlertThread(KernelMode));
}

static void alerter(void)
{
    PKTHREAD thread = __atomic_load_n(&tested, __ATOMIC_ACQUIRE);

    if (thread != NULL)
        KeAlertThread(thread, UserMode);
}
LAB_SCENARIO(test_alert, .Threads = {tester, alerter});

/* The same with alertable waits that need not block. */
static KEVENT never;

static void setup(void)
{
    KeInitializeEvent(&never, NotificationEvent, FALSE);
}

static void poller(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    KeAlertThread(KeGetCurrentThread(), KernelMode);
    __atomic_store_n(&tested, KeGetCurrentThread(), __ATOMIC_RELEASE);
    LabAssert(KeWaitForSingleObject(&never, Executive, KernelMode, TRUE, &now) == STATUS_ALERTED);
    LabAssert(KeWaitForSingleObject(&never, Executive, KernelMode, TRUE, &now) == STATUS_TIMEOUT);
}
LAB_SCENARIO(test_alert_poll, .Setup = setup, .Threads = {poller, alerter});
