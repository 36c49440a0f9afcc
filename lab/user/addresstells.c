/* Address waits and the alerts that deliver wakes: none is left pending, and an unrelated one is not mistaken for a
   wake. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

static volatile ULONG word;
static ULONG zero;

static HANDLE id_of_first(void)
{
    return ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread());
}

static void await_change(void)
{
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        LabAssert(RtlWaitOnAddress(&word, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
}

/* Without a fence it does the same. */
static void wake_without_fence(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    if (LabChoose(2) == 0) {
        RtlWakeAddressAllNoFence((PVOID)&word);
    } else {
        RtlWakeAddressSingleNoFence((PVOID)&word);
        RtlWakeAddressSingleNoFence((PVOID)&word);
    }
}
LAB_SCENARIO(address_wake_no_fence, .Threads = {await_change, await_change, wake_without_fence});

static void wait_and_look(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    await_change();
    LabAssert(NtWaitForAlertByThreadId(NULL, &now) == STATUS_TIMEOUT);
}

static void wake(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle((PVOID)&word);
}
LAB_SCENARIO(address_no_alert_left, .Threads = {wait_and_look, wake});

/* A waiter that has timed out and finds that it is about to be alerted: its frame stays valid until then. */
static void give_up(void)
{
    LARGE_INTEGER soon = {.QuadPart = -10000};
    NTSTATUS status = RtlWaitOnAddress(&word, &zero, sizeof(zero), &soon);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
}

static void alert(void)
{
    for (int i = 0; i < 3; i++)
        NtAlertThreadByThreadId(id_of_first());
}
LAB_SCENARIO(address_give_up, .Threads = {give_up, wake, alert}, .Timeouts = 1, .Flags = LAB_LARGE);
