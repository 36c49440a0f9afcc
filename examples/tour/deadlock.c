/* Two threads acquire two resources (ERESOURCE) in opposite order: each waits forever for the other's. */
#include "live.h"

static ERESOURCE accounts, journal;
static KEVENT has_accounts, has_journal;

static void transfer(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    call_me("transfer");
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&accounts, TRUE);
    KeSetEvent(&has_accounts, IO_NO_INCREMENT, FALSE);
    wait_for(&has_journal);
    ExAcquireResourceExclusiveLite(&journal, TRUE);
}

static void report(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    call_me("report");
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&journal, TRUE);
    KeSetEvent(&has_journal, IO_NO_INCREMENT, FALSE);
    wait_for(&has_accounts);
    ExAcquireResourceExclusiveLite(&accounts, TRUE);
}

int main(void)
{
    PVOID first, second;

    ExInitializeResourceLite(&accounts);
    ExInitializeResourceLite(&journal);
    KeInitializeEvent(&has_accounts, NotificationEvent, FALSE);
    KeInitializeEvent(&has_journal, NotificationEvent, FALSE);
    first = start_thread(transfer, NULL);
    second = start_thread(report, NULL);
    await_committed(first, WrResource);
    await_committed(second, WrResource);
    expect(ExGetExclusiveWaiterCount(&accounts) == 1 && ExGetExclusiveWaiterCount(&journal) == 1);
    stand_still();
    return 0; /* never released; the process ends with them held */
}
