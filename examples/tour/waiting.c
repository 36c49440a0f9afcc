/* An event, a mutant whose owner exits, and a WaitAll that takes all or nothing. */
#include "live.h"

static KEVENT door;
static KMUTANT mutant;
static KEVENT first, second;

static const char *state_of(KEVENT *event)
{
    return KeReadStateEvent(event) ? "signaled" : "not signaled";
}

static void go_through(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    expect(wait_for(&door) == STATUS_SUCCESS);
}

static void show_event(void)
{
    PVOID thread;

    KeInitializeEvent(&door, SynchronizationEvent, FALSE);
    thread = start_thread(go_through, NULL);
    printf("An event:\n");
    printf("  is set; its state before     %d\n", (int)KeSetEvent(&door, EVENT_INCREMENT, FALSE));
    join_thread(thread);
    printf("  a thread has gone through    %s again\n", state_of(&door));
    expect(KeReadStateEvent(&door) == 0);
}

static void end_as_owner(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    wait_for(&mutant);
}

static void show_abandoned(void)
{
    NTSTATUS status;

    KeInitializeMutant(&mutant, FALSE);
    join_thread(start_thread(end_as_owner, NULL));
    status = wait_for(&mutant);
    printf("A mutant, whose owner has ended:\n");
    printf("  the next wait returns        %#x, STATUS_ABANDONED\n", (unsigned)status);
    expect(status == STATUS_ABANDONED);
    status = wait_for(&mutant);
    printf("  the one after that           %u, STATUS_SUCCESS\n", (unsigned)status);
    expect(status == STATUS_SUCCESS);
    printf("  acquired twice, the count is %d\n", (int)KeReadStateMutant(&mutant));
    KeReleaseMutant(&mutant, MUTANT_INCREMENT, FALSE, FALSE);
    KeReleaseMutant(&mutant, MUTANT_INCREMENT, FALSE, FALSE);
    printf("  released twice               %d: free\n", (int)KeReadStateMutant(&mutant));
    expect(KeReadStateMutant(&mutant) == 1);
}

static void take_both(PVOID unused)
{
    PVOID objects[] = {&first, &second};

    UNREFERENCED_PARAMETER(unused);
    expect(KeWaitForMultipleObjects(2, objects, WaitAll, UserRequest, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
}

static void show_wait_all(void)
{
    LARGE_INTEGER poll = {.QuadPart = 0};
    PVOID thread;

    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
    thread = start_thread(take_both, NULL);
    await_committed(thread, UserRequest);
    printf("A thread waits for both of two events:\n");
    KeSetEvent(&first, EVENT_INCREMENT, FALSE);
    printf("  the first is set             %s, %s: nothing is taken\n", state_of(&first), state_of(&second));
    expect(KeReadStateEvent(&first) == 1);
    expect(KeWaitForSingleObject(&first, Executive, KernelMode, FALSE, &poll) == STATUS_SUCCESS);
    printf("  another thread may take it   %s, %s\n", state_of(&first), state_of(&second));
    KeSetEvent(&first, EVENT_INCREMENT, FALSE);
    KeSetEvent(&second, EVENT_INCREMENT, FALSE);
    printf("  both are set                 %s, %s: both are taken at once\n", state_of(&first), state_of(&second));
    expect(KeReadStateEvent(&first) == 0 && KeReadStateEvent(&second) == 0);
    join_thread(thread);
}

int main(void)
{
    show_event();
    show_abandoned();
    show_wait_all();
    return 0;
}
