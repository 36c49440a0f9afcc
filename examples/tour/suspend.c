/*
 * Lightweight suspend. A thread in a WaitAll or a delay is suspended by a change of its wait status register alone: it
 * does not even wake up. The register is private; this program reads it as a debugger would.
 */
#include "live.h"

static KEVENT first, second;

static void wait_for_both(PVOID unused)
{
    PVOID objects[] = {&first, &second};

    UNREFERENCED_PARAMETER(unused);
    KeWaitForMultipleObjects(2, objects, WaitAll, UserRequest, UserMode, FALSE, NULL, NULL);
}

static void wait_for_one(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    KeWaitForSingleObject(&first, UserRequest, UserMode, FALSE, NULL);
}

static ULONG state_of(PKTHREAD thread)
{
    return __atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE) & KI_WAIT_STATE_MASK;
}

static void show(const char *what, PKTHREAD thread)
{
    static const char *const names[] = {
        "WaitInProgress", "WaitCommitted",        "WaitAborted",       "WaitSuspendInProgress",
        "WaitSuspended",  "WaitResumeInProgress", "WaitResumeAborted",
    };

    printf("  %-27s %-14s wait blocks: first event %d, second %d\n", what, names[state_of(thread)],
           !IsListEmpty(&first.Header.WaitListHead), !IsListEmpty(&second.Header.WaitListHead));
}

static void initialize(void)
{
    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
}

static void show_lightweight(void)
{
    PVOID thread;

    initialize();
    thread = start_thread(wait_for_both, NULL);
    await_committed(thread, UserRequest);
    printf("A wait for two events, suspended where it is:\n");
    show("waiting", thread);
    KeSuspendThread(thread);
    show("suspended", thread);
    expect(state_of(thread) == WaitSuspended && IsListEmpty(&first.Header.WaitListHead));
    KeSetEvent(&first, EVENT_INCREMENT, FALSE);
    KeSetEvent(&second, EVENT_INCREMENT, FALSE);
    show("both events are set", thread);
    expect(KeReadStateEvent(&first) == 1 && KeReadStateEvent(&second) == 1);
    KeResumeThread(thread);
    join_thread(thread);
    printf("  resumed                     both events are taken: %d, %d\n", (int)KeReadStateEvent(&first),
           (int)KeReadStateEvent(&second));
    expect(KeReadStateEvent(&first) == 0 && KeReadStateEvent(&second) == 0);
}

static void show_heavy(void)
{
    PVOID thread;

    initialize();
    thread = start_thread(wait_for_one, NULL);
    await_committed(thread, UserRequest);
    printf("A wait for one event, interrupted by an APC that waits itself:\n");
    show("waiting", thread);
    KeSuspendThread(thread);
    await_committed(thread, Suspended);
    show("suspended, waits for that", thread);
    expect(IsListEmpty(&first.Header.WaitListHead));
    KeSetEvent(&first, EVENT_INCREMENT, FALSE);
    KeResumeThread(thread);
    join_thread(thread);
    printf("  set, resumed                the wait starts over and takes the event: %d\n",
           (int)KeReadStateEvent(&first));
    expect(KeReadStateEvent(&first) == 0);
}

int main(void)
{
    show_lightweight();
    show_heavy();
    return 0;
}
