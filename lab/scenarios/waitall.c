/* WaitAll: several waits on one signal that share their other objects, and threads that take those meanwhile. */
#include <interlock/lab.h>

#include <ntifs.h>

static KEVENT door, lamp, ticket;
static KSEMAPHORE seats;
static int inside;

static void setup(void)
{
    KeInitializeEvent(&door, NotificationEvent, FALSE);
    KeInitializeEvent(&lamp, NotificationEvent, FALSE);
    KeInitializeEvent(&ticket, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&seats, 0, 2);
}

static NTSTATUS wait_for_both(PVOID first, PVOID second)
{
    PVOID objects[] = {first, second};

    return KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
}

static void visitor(void)
{
    LabAssert(wait_for_both(&door, &lamp) == STATUS_WAIT_0);
    LabAssert(inside == 1);
}

static void visitor_the_other_way(void)
{
    LabAssert(wait_for_both(&lamp, &door) == STATUS_WAIT_0);
    LabAssert(inside == 1);
}

static void open_and_light(void)
{
    inside = 1;
    KeSetEvent(&lamp, IO_NO_INCREMENT, FALSE);
    KeSetEvent(&door, IO_NO_INCREMENT, FALSE);
}

static void prepare_and_open(void)
{
    inside = 1;
    KeSetEvent(&door, IO_NO_INCREMENT, FALSE);
}

static void light(void)
{
    KeSetEvent(&lamp, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(wait_all_same_objects, .Setup = setup, .Threads = {visitor, visitor, open_and_light});
LAB_SCENARIO(wait_all_same_objects_crossed, .Setup = setup,
             .Threads = {visitor, visitor_the_other_way, open_and_light});
LAB_SCENARIO(wait_all_two_signalers, .Setup = setup, .Threads = {visitor, prepare_and_open, light});
LAB_SCENARIO(wait_all_two_signalers_two_waits, .Setup = setup,
             .Threads = {visitor, visitor_the_other_way, prepare_and_open, light});

/* Two seats for two visitors, and the lamp is on or off: each visitor gets one, or none does. */
static void seated_visitor(void)
{
    LabAssert(wait_for_both(&seats, &lamp) == STATUS_WAIT_0);
}

static void two_seats(void)
{
    KeReleaseSemaphore(&seats, IO_NO_INCREMENT, 2, FALSE);
}

static void no_seat_is_left(void)
{
    LabAssert(seats.Header.SignalState == 0 && lamp.Header.SignalState == 1);
}
LAB_SCENARIO(wait_all_seats, .Setup = setup, .Threads = {seated_visitor, seated_visitor, two_seats, light},
             .Finish = no_seat_is_left);

/* The ticket is for one: of two waits that a signal finds complete, one gets it. The other waits for the next ticket.
   */
static void ticketed_visitor(void)
{
    LabAssert(wait_for_both(&ticket, &lamp) == STATUS_WAIT_0);
    LabAssert(__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) == 0);
    __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
}

static void one_ticket(void)
{
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
}

static void one_is_left(void)
{
    LabAssert(ticket.Header.SignalState == 1);
}
LAB_SCENARIO(wait_all_ticket, .Setup = setup, .Threads = {ticketed_visitor, ticketed_visitor, one_ticket, light},
             .Finish = one_is_left);

/* Another thread wants the ticket alone. */
static void thief(void)
{
    KeWaitForSingleObject(&ticket, Executive, KernelMode, FALSE, NULL);
    LabAssert(__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) == 0);
    __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(wait_all_thief, .Setup = setup, .Threads = {ticketed_visitor, thief, one_ticket, light},
             .Finish = one_is_left);

/* A signaler must lock two of three objects. */
static void visitor_with_everything(void)
{
    PVOID objects[] = {&lamp, &ticket, &door};

    LabAssert(KeWaitForMultipleObjects(3, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
    LabAssert(__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) == 0);
    __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
}

static void light_a_ticket(void)
{
    KeSetEvent(&lamp, IO_NO_INCREMENT, FALSE);
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
}

static void open(void)
{
    KeSetEvent(&door, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(wait_all_three_objects, .Setup = setup, .Threads = {visitor_with_everything, thief, light_a_ticket, open},
             .Finish = one_is_left);
LAB_SCENARIO(wait_all_three_objects_twice, .Setup = setup,
             .Threads = {visitor_with_everything, visitor_with_everything, light_a_ticket, open},
             .Finish = one_is_left);

/* A signaler that found the wait complete, and then not, retries. */
static void signal_again(void)
{
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
    KeSetEvent(&lamp, IO_NO_INCREMENT, FALSE);
    KeSetEvent(&lamp, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(wait_all_same_signaler, .Setup = setup, .Threads = {ticketed_visitor, thief, signal_again},
             .Finish = one_is_left);

/* Both are signaled: they are locked in address order, whatever the order of the array, and both or none are taken. */
static KEVENT stub;
static KMUTANT lectern;

static void setup_signaled(void)
{
    setup();
    KeInitializeEvent(&ticket, SynchronizationEvent, TRUE);
    KeInitializeEvent(&stub, SynchronizationEvent, TRUE);
    KeInitializeMutant(&lectern, FALSE);
}

static void be_alone_inside(void)
{
    LabAssert(__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) == 0);
    __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
}

static void take_ticket_and_stub(void)
{
    LabAssert(wait_for_both(&ticket, &stub) == STATUS_WAIT_0);
    be_alone_inside();
    KeSetEvent(&stub, IO_NO_INCREMENT, FALSE);
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
}

static void take_stub_and_ticket(void)
{
    LabAssert(wait_for_both(&stub, &ticket) == STATUS_WAIT_0);
    be_alone_inside();
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
    KeSetEvent(&stub, IO_NO_INCREMENT, FALSE);
}

static void both_are_left(void)
{
    LabAssert(ticket.Header.SignalState == 1 && stub.Header.SignalState == 1);
}
LAB_SCENARIO(wait_all_at_once, .Setup = setup_signaled, .Threads = {take_ticket_and_stub, take_stub_and_ticket},
             .Finish = both_are_left);
LAB_SCENARIO(wait_all_at_once_thief, .Setup = setup_signaled,
             .Threads = {take_ticket_and_stub, take_stub_and_ticket, thief}, .Finish = both_are_left);

/* A poll takes both or leaves both. */
static void look_for_both(void)
{
    PVOID objects[] = {&stub, &ticket};
    LARGE_INTEGER now = {.QuadPart = 0};
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, &now, NULL);

    LabAssert(status == STATUS_WAIT_0 || status == STATUS_TIMEOUT);
    if (status == STATUS_WAIT_0) {
        be_alone_inside();
        KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
        KeSetEvent(&stub, IO_NO_INCREMENT, FALSE);
    }
}
LAB_SCENARIO(wait_all_at_once_look, .Setup = setup_signaled, .Threads = {take_ticket_and_stub, look_for_both, thief},
             .Finish = both_are_left);

/* A mutant among them is owned by the thread that gets all. */
static void speak(void)
{
    LabAssert(wait_for_both(&lectern, &ticket) == STATUS_WAIT_0);
    be_alone_inside();
    KeSetEvent(&ticket, IO_NO_INCREMENT, FALSE);
    LabAssert(KeReleaseMutant(&lectern, IO_NO_INCREMENT, FALSE, FALSE) == 0);
}

static void hold_lectern(void)
{
    LabAssert(KeWaitForSingleObject(&lectern, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(KeReleaseMutant(&lectern, IO_NO_INCREMENT, FALSE, FALSE) == 0);
}

static void lectern_is_free(void)
{
    LabAssert(lectern.Header.SignalState == 1 && lectern.OwnerThread == NULL && ticket.Header.SignalState == 1);
}
LAB_SCENARIO(wait_all_at_once_mutant, .Setup = setup_signaled, .Threads = {speak, speak, hold_lectern},
             .Finish = lectern_is_free);
