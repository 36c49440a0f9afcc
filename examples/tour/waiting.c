/* An event, a mutant whose owner ends, and a WaitAll that takes everything or nothing. */
#include "tour.h"

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
    printf("event:   previous state %d when set,", (int)KeSetEvent(&door, EVENT_INCREMENT, FALSE));
    join_thread(thread);
    printf(" %s again after one thread went through\n", state_of(&door));
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
    printf("mutant:  its owner ended; the next wait returns %#x (STATUS_ABANDONED),", (unsigned)status);
    expect(status == STATUS_ABANDONED);
    status = wait_for(&mutant);
    printf(" the one after that %#x\n", (unsigned)status);
    printf("         count %d: owned twice now; the releases return", (int)KeReadStateMutant(&mutant));
    printf(" %d,", (int)KeReleaseMutant(&mutant, MUTANT_INCREMENT, FALSE, FALSE));
    printf(" %d\n", (int)KeReleaseMutant(&mutant, MUTANT_INCREMENT, FALSE, FALSE));
    expect(KeReadStateMutant(&mutant) == 1);
}

static void take_both(PVOID unused)
{
    PVOID objects[] = {&first, &second};

    UNREFERENCED_PARAMETER(unused);
    expect(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
}

static BOOLEAN has_waiters(KEVENT *event)
{
    return (__atomic_load_n(&event->Header.Type, __ATOMIC_ACQUIRE) & KOBJECT_WAITERS_BIT) != 0;
}

static void show_wait_all(void)
{
    LARGE_INTEGER poll = {.QuadPart = 0};
    PVOID thread;

    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
    thread = start_thread(take_both, NULL);
    while (!has_waiters(&first) || !has_waiters(&second))
        sleep_for(1);
    KeSetEvent(&first, EVENT_INCREMENT, FALSE);
    printf("WaitAll: first set:  first %s, second %s: nothing taken\n", state_of(&first), state_of(&second));
    expect(KeReadStateEvent(&first) == 1);
    expect(KeWaitForSingleObject(&first, Executive, KernelMode, FALSE, &poll) == STATUS_SUCCESS);
    printf("         another thread may still take it: first %s\n", state_of(&first));
    KeSetEvent(&first, EVENT_INCREMENT, FALSE);
    KeSetEvent(&second, EVENT_INCREMENT, FALSE);
    printf("         both set:   first %s, second %s: both taken at once\n", state_of(&first), state_of(&second));
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
