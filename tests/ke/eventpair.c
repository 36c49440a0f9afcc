/* KEVENT_PAIR: set one, wait for the other. */
#include "waittest.h"

static void test_initialize(void **state)
{
    KEVENT_PAIR pair;
    (void)state;
    memset(&pair, 0xff, sizeof(pair));
    KeInitializeEventPair(&pair);
    assert_int_equal(pair.Type, EventPairObject);
    assert_int_equal(pair.Size, sizeof(pair));
    assert_int_equal(pair.EventLow.Header.Type, EventSynchronizationObject);
    assert_int_equal(pair.EventHigh.Header.Type, EventSynchronizationObject);
    assert_int_equal(KeReadStateEvent(&pair.EventLow), 0);
    assert_int_equal(KeReadStateEvent(&pair.EventHigh), 0);
}

/* Each of the two by itself: set returns the previous state, a wait consumes. */
static void test_each_side(void **state)
{
    LARGE_INTEGER time = relative(MILLISECOND);
    KEVENT_PAIR pair;
    (void)state;
    KeInitializeEventPair(&pair);
    assert_int_equal(KeWaitForHighEventPair(&pair, KernelMode, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(KeWaitForLowEventPair(&pair, UserMode, TRUE, &time), STATUS_TIMEOUT);
    assert_int_equal(KeSetHighEventPair(&pair, 0, FALSE), 0);
    assert_int_equal(KeSetHighEventPair(&pair, 0, FALSE), 1);
    assert_int_equal(KeWaitForLowEventPair(&pair, KernelMode, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(KeWaitForHighEventPair(&pair, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(KeWaitForHighEventPair(&pair, KernelMode, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(KeSetLowEventPair(&pair, 0, TRUE), 0);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    assert_int_equal(KeWaitForLowEventPair(&pair, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeAlertThread(KeGetCurrentThread(), UserMode);
    assert_int_equal(KeWaitForLowEventPair(&pair, UserMode, TRUE, NULL), STATUS_ALERTED);
    KeAlertThread(KeGetCurrentThread(), KernelMode);
    assert_int_equal(KeWaitForHighEventPair(&pair, KernelMode, TRUE, NULL), STATUS_ALERTED);
}

/* A client and a server that exchange messages. */

#define ROUNDS 2000

typedef struct exchange {
    KEVENT_PAIR pair;
    ULONG message; /* owned by the side whose turn it is */
    ULONG rounds;
} exchange;

static void serve(void *argument)
{
    exchange *e = argument;
    check(KeWaitForHighEventPair(&e->pair, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    for (ULONG i = 0; i < e->rounds; i += 1) {
        check(e->message == 2 * i + 1);
        e->message += 1;
        if (i + 1 < e->rounds) {
            check(KeSetLowWaitHighThread(&e->pair, KernelMode) == STATUS_SUCCESS);
        } else {
            KeSetLowEventPair(&e->pair, 0, FALSE);
        }
        check(KeGetCurrentIrql() == PASSIVE_LEVEL);
    }
}

static void test_ping_pong(void **state)
{
    exchange e = {.rounds = (ULONG)test_rounds(ROUNDS)};
    actor server = {0};
    (void)state;
    KeInitializeEventPair(&e.pair);
    start_actor(&server);
    tell(&server, serve, &e);
    for (ULONG i = 0; i < e.rounds; i += 1) {
        e.message += 1;
        assert_int_equal(KeSetHighWaitLowThread(&e.pair, UserMode), STATUS_SUCCESS);
        assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
        assert_int_equal(e.message, 2 * i + 2);
    }
    end_actor(&server);
    assert_int_equal(KeReadStateEvent(&e.pair.EventLow), 0);
    assert_int_equal(KeReadStateEvent(&e.pair.EventHigh), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_initialize),
        WATCHED(test_each_side),
        WATCHED(test_ping_pong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
