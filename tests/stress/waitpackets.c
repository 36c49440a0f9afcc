/*
 * Wait completion packets: association, signal, cancellation and removal against each other, with closes at any moment.
 * Every association was removed or cancelled, once; every signal was taken, once; nothing leaks.
 */
#include "stress.h"

#include "nt/ntp.h"

#define PACKETS 4
#define EVENTS 2

static struct {
    HANDLE port;
    HANDLE packet[PACKETS];
    HANDLE event[EVENTS];
    unsigned long rounds;
    lone_counter associated, removed, cancelled, pending;
    lone_counter signaled; /* a set that found the event not signaled */
    POBJECT_TYPE packet_type;
} race;

static HANDLE make_event(void)
{
    HANDLE event;

    require(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE) == STATUS_SUCCESS);
    return event;
}

static POBJECT_TYPE type_of(HANDLE handle)
{
    POBJECT_TYPE type;
    PVOID object;

    require(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &object, NULL) == STATUS_SUCCESS);
    type = ObGetObjectType(object);
    ObDereferenceObject(object);
    return type;
}

static void start_race(void)
{
    memset(&race, 0, sizeof(race));
    require(NtCreateIoCompletion(&race.port, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
    for (unsigned i = 0; i < PACKETS; i++)
        require(NtCreateWaitCompletionPacket(&race.packet[i], WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL) ==
                STATUS_SUCCESS);
    for (unsigned i = 0; i < EVENTS; i++)
        race.event[i] = make_event();
    race.packet_type = type_of(race.packet[0]);
}

static void close_handle(HANDLE handle)
{
    require(ObCloseHandle(handle, UserMode) == STATUS_SUCCESS);
}

static void end_race(ULONG events_before)
{
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
    assert_int_equal(race.packet_type->TotalNumberOfObjects, 0);
    assert_int_equal((*ExEventObjectType)->TotalNumberOfObjects, events_before);
}

static void associate(test_random *random)
{
    unsigned number = random_below(random, PACKETS);
    PVOID key = (PVOID)(ULONG_PTR)number;
    BOOLEAN already;
    HANDLE event = race.event[random_below(random, EVENTS)];
    NTSTATUS status =
        NtAssociateWaitCompletionPacket(race.packet[number], race.port, event, key, &race, 5, 6, &already);

    require(status == STATUS_SUCCESS || status == STATUS_INVALID_PARAMETER_1);
    if (status == STATUS_SUCCESS)
        add(&race.associated.value, 1);
}

static void cancel(test_random *random)
{
    NTSTATUS status =
        NtCancelWaitCompletionPacket(race.packet[random_below(random, PACKETS)], random_below(random, 2) != 0);

    require(status == STATUS_SUCCESS || status == STATUS_PENDING || status == STATUS_CANCELLED);
    if (status == STATUS_SUCCESS)
        add(&race.cancelled.value, 1);
    else if (status == STATUS_PENDING)
        add(&race.pending.value, 1);
}

static void set_some(test_random *random)
{
    LONG previous;

    require(NtSetEvent(race.event[random_below(random, EVENTS)], &previous) == STATUS_SUCCESS);
    if (previous == 0)
        add(&race.signaled.value, 1);
}

static int remove_one(PLARGE_INTEGER timeout)
{
    FILE_IO_COMPLETION_INFORMATION packet;
    NTSTATUS status =
        NtRemoveIoCompletion(race.port, &packet.KeyContext, &packet.ApcContext, &packet.IoStatusBlock, timeout);

    require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    if (status == STATUS_TIMEOUT)
        return 0;
    require((ULONG_PTR)packet.KeyContext < PACKETS && packet.ApcContext == &race && packet.IoStatusBlock.Status == 5 &&
            packet.IoStatusBlock.Information == 6);
    add(&race.removed.value, 1);
    return 1;
}

static void race_thread(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    for (unsigned long i = 0; i < race.rounds; i++) {
        LARGE_INTEGER timeout = in_microseconds(random_below(&random, 20));

        switch (random_below(&random, 5)) { /* each thread does everything: none has to keep up with the others */
        case 0:
        case 1:
            associate(&random);
            break;
        case 2:
            set_some(&random);
            break;
        case 3:
            cancel(&random);
            break;
        default:
            remove_one(&timeout);
            break;
        }
    }
}

/* Events that are still signaled were not taken by an association. */
static unsigned long still_signaled(void)
{
    unsigned long count = 0;

    for (unsigned i = 0; i < EVENTS; i++) {
        LARGE_INTEGER timeout = no_time();
        count += NtWaitForSingleObject(race.event[i], FALSE, &timeout) == STATUS_WAIT_0;
    }
    return count;
}

static void each_association_ends_once(void **state)
{
    ULONG events_before = (*ExEventObjectType)->TotalNumberOfObjects;
    unsigned long at_the_end = 0;
    LARGE_INTEGER timeout = no_time();

    (void)state;
    start_race();
    race.rounds = test_rounds(60000);
    run_threads(5, HANG_SECONDS, race_thread, NULL);
    assert_true(race.signaled.value >= race.removed.value);
    while (remove_one(&timeout)) {
    }
    for (unsigned i = 0; i < PACKETS; i++)
        at_the_end += NtCancelWaitCompletionPacket(race.packet[i], TRUE) == STATUS_SUCCESS;
    print_message("# associated %lu, removed %lu, cancelled %lu, pending %lu, signaled %lu\n", race.associated.value,
                  race.removed.value, race.cancelled.value, race.pending.value, race.signaled.value);
    assert_int_equal(race.associated.value, race.removed.value + race.cancelled.value + at_the_end);
    assert_true(race.signaled.value >= race.removed.value + still_signaled());
    for (unsigned i = 0; i < PACKETS; i++)
        assert_int_equal(NtCancelWaitCompletionPacket(race.packet[i], TRUE), STATUS_CANCELLED);
    for (unsigned i = 0; i < PACKETS; i++)
        close_handle(race.packet[i]);
    for (unsigned i = 0; i < EVENTS; i++)
        close_handle(race.event[i]);
    close_handle(race.port);
    end_race(events_before);
}

/* One association, the signal, and the closes of all three, each by its own thread. */
static void closing_thread(void *argument, unsigned index)
{
    FILE_IO_COMPLETION_INFORMATION packet;
    PVOID *event = argument;
    NTSTATUS status;

    switch (index) {
    case 0:
        KeSetEvent(*event, 0, FALSE);
        break;
    case 1:
        close_handle(race.packet[0]);
        break;
    case 2:
        close_handle(race.event[0]);
        break;
    case 3:
        close_handle(race.port);
        break;
    case 4:
        status = NtAssociateWaitCompletionPacket(race.packet[0], race.port, race.event[0], NULL, &race, 5, 6, NULL);
        require(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE || status == STATUS_INVALID_PARAMETER_1);
        break;
    case 5:
        status = NtCancelWaitCompletionPacket(race.packet[0], TRUE);
        require(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE || status == STATUS_CANCELLED ||
                status == STATUS_PENDING);
        break;
    default:
        status = NtRemoveIoCompletion(race.port, &packet.KeyContext, &packet.ApcContext, &packet.IoStatusBlock, NULL);
        require(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE || status == STATUS_ABANDONED_WAIT_0);
        break;
    }
}

static void everything_is_closed(void **state)
{
    unsigned long rounds = test_rounds(1500);
    ULONG events_before = (*ExEventObjectType)->TotalNumberOfObjects;

    (void)state;
    for (unsigned long round = 0; round < rounds; round++) {
        PVOID event;

        start_race();
        for (unsigned i = 1; i < PACKETS; i++)
            close_handle(race.packet[i]);
        for (unsigned i = 1; i < EVENTS; i++)
            close_handle(race.event[i]);
        require(ObReferenceObjectByHandle(race.event[0], 0, NULL, KernelMode, &event, NULL) == STATUS_SUCCESS);
        if (round % 4 != 0) {
            NTSTATUS status =
                NtAssociateWaitCompletionPacket(race.packet[0], race.port, race.event[0], NULL, &race, 5, 6, NULL);
            require(status == STATUS_SUCCESS);
        }
        run_threads(7, HANG_SECONDS, closing_thread, &event);
        ObDereferenceObject(event);
        end_race(events_before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_association_ends_once),
        cmocka_unit_test(everything_is_closed),
    };

    return cmocka_run_group_tests_name("stress/waitpackets", tests, NULL, NULL);
}
