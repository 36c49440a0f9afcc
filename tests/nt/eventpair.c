#include "objecttest.h"

static HANDLE create_pair(void)
{
    HANDLE pair;

    assert_int_equal(NtCreateEventPair(&pair, EVENT_PAIR_ALL_ACCESS, NULL), STATUS_SUCCESS);
    return pair;
}

static void each_half_is_a_synchronization_event(void **state)
{
    HANDLE pair = create_pair();

    (void)state;
    watchdog_start(60);
    assert_int_equal(NtSetLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtWaitLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetHighEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtWaitHighEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetHighEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetLowWaitHighEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtWaitLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetHighWaitLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtWaitHighEventPair(pair), STATUS_SUCCESS);
    watchdog_stop();
    close_handle(pair);
}

static NTSTATUS (*const services[])(HANDLE) = {NtSetLowEventPair,   NtSetHighEventPair,        NtWaitLowEventPair,
                                               NtWaitHighEventPair, NtSetLowWaitHighEventPair, NtSetHighWaitLowEventPair};

static void each_service_checks_its_handle(void **state)
{
    HANDLE event, pair;

    (void)state;
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, TRUE), STATUS_SUCCESS);
    assert_int_equal(NtCreateEventPair(&pair, EVENT_PAIR_ALL_ACCESS & ~SYNCHRONIZE, NULL), STATUS_SUCCESS);
    for (size_t i = 0; i < ARRAYSIZE(services); i++) {
        assert_int_equal(services[i](NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(services[i](event), STATUS_OBJECT_TYPE_MISMATCH);
        assert_int_equal(services[i](pair), STATUS_ACCESS_DENIED);
    }
    close_handle(event);
    close_handle(pair);
    assert_int_equal(NtCreateEventPair(NULL, EVENT_PAIR_ALL_ACCESS, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtCreateEventPair(&pair, EVENT_MODIFY_STATE, NULL), STATUS_ACCESS_DENIED);
}

static void by_name(void **state)
{
    HANDLE pair, opened;

    (void)state;
    assert_int_equal(
        NtCreateEventPair(&pair, EVENT_PAIR_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\pair", NULL, 0)), STATUS_SUCCESS);
    assert_int_equal(NtOpenEventPair(&opened, EVENT_PAIR_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\pair", NULL, 0)),
                     STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(pair, opened), STATUS_SUCCESS);
    close_handle(pair);
    close_handle(opened);
}

struct call {
    HANDLE pair;
    unsigned value;
};

enum { CALLS = 500 };

/* Client and server alternate: each writes what the other reads, without any other synchronization. */
static void client_and_server(void *argument, unsigned index)
{
    struct call *call = argument;

    for (unsigned i = 0; i < CALLS; i++) {
        if (index == 0) {
            call->value = 2 * i;
            assert_int_equal(NtSetHighWaitLowEventPair(call->pair), STATUS_SUCCESS);
            assert_int_equal(call->value, 2 * i + 1);
        } else {
            assert_int_equal(NtWaitHighEventPair(call->pair), STATUS_SUCCESS);
            assert_int_equal(call->value, 2 * i);
            call->value += 1;
            assert_int_equal(NtSetLowEventPair(call->pair), STATUS_SUCCESS);
        }
    }
}

static void a_quick_call_and_its_answer(void **state)
{
    struct call call = {create_pair(), 0};

    (void)state;
    run_threads(2, 60, client_and_server, &call);
    close_handle(call.pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_half_is_a_synchronization_event),
        cmocka_unit_test(each_service_checks_its_handle),
        cmocka_unit_test(by_name),
        cmocka_unit_test(a_quick_call_and_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
