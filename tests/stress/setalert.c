/*
 * A set against an alert of an alertable wait. At most one signal and one alert are in flight at a time, so none may
 * merge with another, and each must end exactly one wait.
 */
#include "stress.h"

static const struct mode {
    const char *name;
    KPROCESSOR_MODE wait;
    KPROCESSOR_MODE alert;
    int multiple;
} modes[] = {
    {"kernel wait, kernel alert", KernelMode, KernelMode, 0},
    {"user wait, user alert", UserMode, UserMode, 0},
    {"user wait, kernel alert", UserMode, KernelMode, 0},
    {"wait for any of two, kernel alert", KernelMode, KernelMode, 1},
};

static struct {
    const struct mode *mode;
    KEVENT event[2];
    unsigned long rounds;
    PKTHREAD waiter;
    lone_counter signaled;
    lone_counter alerted;
} race;

static void send_signals(void)
{
    for (unsigned long round = 0; round < race.rounds; round++) {
        require(KeSetEvent(&race.event[round % 2 && race.mode->multiple], EVENT_INCREMENT, FALSE) == 0);
        await(load(&race.signaled.value) == round + 1);
    }
}

static void send_alerts(void)
{
    await(load(&race.waiter) != NULL);
    for (unsigned long round = 0; round < race.rounds; round++) {
        require(!KeAlertThread(race.waiter, race.mode->alert));
        await(load(&race.alerted.value) == round + 1);
    }
}

static NTSTATUS wait_alertably(void)
{
    void *objects[] = {&race.event[0], &race.event[1]};

    if (race.mode->multiple)
        return KeWaitForMultipleObjects(2, objects, WaitAny, Executive, race.mode->wait, TRUE, NULL, NULL);
    return KeWaitForSingleObject(&race.event[0], Executive, race.mode->wait, TRUE, NULL);
}

static void receive(void)
{
    store(&race.waiter, KeGetCurrentThread());
    while (race.signaled.value + race.alerted.value < 2 * race.rounds) {
        NTSTATUS status = wait_alertably();

        if (status == STATUS_ALERTED) {
            require(race.alerted.value < race.rounds);
            add(&race.alerted.value, 1);
        } else {
            require(status == STATUS_WAIT_0 || (status == STATUS_WAIT_1 && race.mode->multiple));
            require(race.signaled.value < race.rounds);
            add(&race.signaled.value, 1);
        }
    }
}

static void race_thread(void *argument, unsigned index)
{
    static void (*const parts[])(void) = {send_signals, send_alerts, receive};

    (void)argument;
    parts[index]();
}

static void set_against_alert(void **state)
{
    for (size_t i = 0; i < ARRAYSIZE(modes); i++) {
        memset(&race, 0, sizeof(race));
        race.mode = &modes[i];
        race.rounds = test_rounds(60000);
        KeInitializeEvent(&race.event[0], SynchronizationEvent, FALSE);
        KeInitializeEvent(&race.event[1], SynchronizationEvent, FALSE);
        run_threads(3, HANG_SECONDS, race_thread, NULL);
        assert_int_equal(race.signaled.value, race.rounds);
        assert_int_equal(race.alerted.value, race.rounds);
        assert_int_equal(KeReadStateEvent(&race.event[0]) + KeReadStateEvent(&race.event[1]), 0);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_against_alert),
    };

    return cmocka_run_group_tests_name("stress/setalert", tests, NULL, NULL);
}
