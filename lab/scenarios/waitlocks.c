/* The locks of a WaitAll's objects that a signaler takes: released when one cannot be acquired, together with their
   marks. */
#include <interlock/lab.h>

#include <ntifs.h>

/* In address order: a signaler of the last one must try the others. */
static KEVENT events[3], never;
static KWAIT_BLOCK blocks[2][3];
static LARGE_INTEGER now;

static void prepare(EVENT_TYPE type)
{
    KeInitializeEvent(&events[0], NotificationEvent, TRUE);
    KeInitializeEvent(&events[1], NotificationEvent, TRUE);
    KeInitializeEvent(&events[2], type, FALSE);
    KeInitializeEvent(&never, NotificationEvent, FALSE);
}

static void setup_for_one(void)
{
    prepare(SynchronizationEvent);
}

static void setup_for_all(void)
{
    prepare(NotificationEvent);
}

/* No trace is left of a thread that has locked the objects on behalf of the wait. */
static void wait_for(int number, PVOID *objects, ULONG count)
{
    LabAssert(KeWaitForMultipleObjects(count, objects, WaitAll, Executive, KernelMode, FALSE, NULL, blocks[number]) ==
              STATUS_WAIT_0);
    for (ULONG i = 0; i < count; i++)
        LabAssert(__atomic_load_n(&blocks[number][i].SpareLong, __ATOMIC_RELAXED) == 0);
}

static void wait_for_three(void)
{
    PVOID objects[] = {&events[0], &events[1], &events[2]};
    wait_for(0, objects, 3);
}

static void wait_for_two(void)
{
    PVOID objects[] = {&events[1], &events[2]};
    wait_for(1, objects, 2);
}

static void set_last(void)
{
    KeSetEvent(&events[2], IO_NO_INCREMENT, FALSE);
}

/* Locks the middle one and changes nothing. */
static void disturb(void)
{
    PVOID objects[] = {&events[1], &never};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, &now, NULL) ==
              STATUS_TIMEOUT);
}
LAB_SCENARIO(wait_all_disturbed, .Setup = setup_for_one, .Threads = {wait_for_three, set_last, disturb});
LAB_SCENARIO(wait_all_disturbed_several, .Setup = setup_for_all, .Threads = {wait_for_three, set_last, disturb});
LAB_SCENARIO(wait_all_shared, .Setup = setup_for_all, .Threads = {wait_for_three, wait_for_two, set_last});

/* The last object is a timer that is due when it is set: its setter releases the wait as a signaler does. */
static struct {
    KEVENT event;
    KTIMER timer;
} due;

static void setup_timer(void)
{
    KeInitializeEvent(&due.event, NotificationEvent, TRUE);
    KeInitializeTimerEx(&due.timer, SynchronizationTimer);
    KeInitializeEvent(&never, NotificationEvent, FALSE);
}

static void wait_for_timer(void)
{
    PVOID objects[] = {&due.event, &due.timer};
    wait_for(0, objects, 2);
}

static void set_due_timer(void)
{
    LARGE_INTEGER past = {.QuadPart = 1};
    KeSetTimer(&due.timer, past, NULL);
}

static void disturb_timer(void)
{
    PVOID objects[] = {&due.event, &never};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, &now, NULL) ==
              STATUS_TIMEOUT);
}
LAB_SCENARIO(wait_all_timer_disturbed, .Setup = setup_timer, .Threads = {wait_for_timer, set_due_timer, disturb_timer});
