/* Events that many threads set, reset and wait for at once: barriers of notification events, gates, event pairs. */
#include "stress.h"

#define THREADS 4

/* A barrier of two notification events that alternate. The last thread to arrive resets the other event before it sets
   its own, so no thread overtakes. */
static struct {
    KEVENT turn[2];
    unsigned long rounds;
    unsigned long arrived;
    lone_counter round[THREADS];
} barrier;

static void check_nobody_is_ahead(unsigned long round)
{
    for (unsigned i = 0; i < THREADS; i++) {
        unsigned long other = load(&barrier.round[i].value);

        require(other == round || other == round + 1);
    }
}

static void barrier_thread(void *argument, unsigned index)
{
    (void)argument;
    for (unsigned long round = 0; round < barrier.rounds; round++) {
        KEVENT *turn = &barrier.turn[round % 2];

        store(&barrier.round[index].value, round + 1);
        if (add(&barrier.arrived, 1) == THREADS * (round + 1)) {
            KeResetEvent(&barrier.turn[(round + 1) % 2]);
            require(KeSetEvent(turn, EVENT_INCREMENT, FALSE) == 0);
        } else {
            require(wait_for(turn) == STATUS_SUCCESS);
        }
        check_nobody_is_ahead(round + 1);
    }
}

static void notification_events_make_a_barrier(void **state)
{
    (void)state;
    memset(&barrier, 0, sizeof(barrier));
    barrier.rounds = test_rounds(60000);
    KeInitializeEvent(&barrier.turn[0], NotificationEvent, FALSE);
    KeInitializeEvent(&barrier.turn[1], NotificationEvent, FALSE);
    run_threads(THREADS, HANG_SECONDS, barrier_thread, NULL);
    assert_int_equal(barrier.arrived, THREADS * barrier.rounds);
}

/* A token goes round. Each way to pass it on is a pair of functions; the thread with the token is alone. */
static struct {
    KEVENT event[2];
    KGATE gate[2];
    KEVENT_PAIR pair;
    unsigned long rounds;
    unsigned long holders;
    unsigned long passes;
    const struct way *way;
} token;

typedef struct way {
    const char *name;
    void (*pass)(unsigned to);
    void (*get)(unsigned self);
} way;

static void set_notification(unsigned to)
{
    require(KeSetEvent(&token.event[to], EVENT_INCREMENT, FALSE) == 0);
}

static void wait_and_reset(unsigned self)
{
    require(wait_for(&token.event[self]) == STATUS_SUCCESS);
    require(KeResetEvent(&token.event[self]) == 1);
}

static void boost_set(unsigned to)
{
    KeSetEventBoostPriority(&token.event[to], NULL);
}

static void signal_gate(unsigned to)
{
    if (token.passes % 2)
        KeSignalGate(&token.gate[to]);
    else
        KeSignalGateBoostPriority(&token.gate[to]);
}

static void wait_for_gate(unsigned self)
{
    require(KeWaitForGate(&token.gate[self], Executive, KernelMode) == STATUS_SUCCESS);
}

static void set_pair(unsigned to)
{
    if (to)
        KeSetHighEventPair(&token.pair, EVENT_INCREMENT, FALSE);
    else
        KeSetLowEventPair(&token.pair, EVENT_INCREMENT, FALSE);
}

static void wait_for_pair(unsigned self)
{
    require((self ? KeWaitForHighEventPair(&token.pair, KernelMode, FALSE, NULL)
                  : KeWaitForLowEventPair(&token.pair, KernelMode, FALSE, NULL)) == STATUS_SUCCESS);
}

static const way ways[] = {
    {"notification events", set_notification, wait_and_reset},
    {"boosting sets", boost_set, wait_and_reset},
    {"gates", signal_gate, wait_for_gate},
    {"event pairs", set_pair, wait_for_pair},
};

static void token_thread(void *argument, unsigned index)
{
    (void)argument;
    for (unsigned long round = 0; round < token.rounds; round++) {
        if (round != 0 || index != 0)
            token.way->get(index);
        require(add(&token.holders, 1) == 1);
        token.passes++;
        add(&token.holders, -1UL);
        token.way->pass(!index);
    }
}

static void a_token_goes_round(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(ways); i++) {
        memset(&token, 0, sizeof(token));
        token.way = &ways[i];
        token.rounds = test_rounds(60000);
        for (unsigned side = 0; side < 2; side++) {
            KeInitializeEvent(&token.event[side], NotificationEvent, FALSE);
            KeInitializeGate(&token.gate[side]);
        }
        KeInitializeEventPair(&token.pair);
        run_threads(2, HANG_SECONDS, token_thread, NULL);
        assert_int_equal(token.passes, 2 * token.rounds);
    }
}

/* Server and client of an event pair: each sets the other's event and waits for its own in one step. */
static struct {
    KEVENT_PAIR pair;
    unsigned long rounds;
    unsigned long request;
    unsigned long reply;
} conversation;

static void speak(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0) {
        for (unsigned long round = 1; round <= conversation.rounds; round++) {
            conversation.request = round;
            require(KeSetHighWaitLowThread(&conversation.pair, KernelMode) == STATUS_SUCCESS);
            require(KeGetCurrentIrql() == PASSIVE_LEVEL);
            require(conversation.reply == round);
        }
        return;
    }
    require(KeWaitForHighEventPair(&conversation.pair, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    for (unsigned long round = 1; round <= conversation.rounds; round++) {
        require(conversation.request == round);
        conversation.reply = round;
        if (round < conversation.rounds)
            require(KeSetLowWaitHighThread(&conversation.pair, KernelMode) == STATUS_SUCCESS);
        else
            KeSetLowEventPair(&conversation.pair, EVENT_INCREMENT, FALSE);
    }
}

static void client_and_server_take_turns(void **state)
{
    (void)state;
    memset(&conversation, 0, sizeof(conversation));
    conversation.rounds = test_rounds(60000);
    KeInitializeEventPair(&conversation.pair);
    run_threads(2, HANG_SECONDS, speak, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notification_events_make_a_barrier),
        cmocka_unit_test(a_token_goes_round),
        cmocka_unit_test(client_and_server_take_turns),
    };

    return cmocka_run_group_tests_name("stress/event", tests, NULL, NULL);
}
