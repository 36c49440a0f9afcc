/*
 * APCs against signals. Every APC that was queued runs exactly once, on its thread, in order among its kind; waits that
 * kernel APCs interrupt restart and lose nothing.
 */
#include "stress.h"

#define APCS 8

typedef enum kind { SPECIAL_KERNEL, NORMAL_KERNEL, USER, KINDS } kind;

static const struct row {
    const char *name;
    KPROCESSOR_MODE mode;
    BOOLEAN alertable;
    int multiple;             /* wait for any of two objects instead of for one */
    unsigned kinds;           /* one bit for each kind that is sent */
    unsigned long rounds;
} rows[] = {
    {"special kernel APCs", KernelMode, FALSE, 0, 1 << SPECIAL_KERNEL, 60000},
    {"normal kernel APCs", KernelMode, FALSE, 1, 1 << NORMAL_KERNEL, 60000},
    {"user APCs", UserMode, TRUE, 0, 1 << USER, 60000},
    {"all kinds", UserMode, TRUE, 1, 7, 60000},
};

static struct {
    const struct row *row;
    KEVENT event[2];
    PKTHREAD waiter;
    unsigned long rounds;
    unsigned long senders_left;
    KAPC apc[KINDS][APCS];
    int in_use[KINDS][APCS];
    lone_counter queued[KINDS];
    lone_counter ran[KINDS];
    lone_counter signals;
    lone_counter waits;
    unsigned long user_statuses;
} race;

static void count_apc(kind which, void *number)
{
    require(KeGetCurrentThread() == race.waiter);
    require((uintptr_t)number == race.ran[which].value);
    store(&race.ran[which].value, race.ran[which].value + 1);
}

static void kernel_routine(struct _KAPC *apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *argument1,
                           PVOID *argument2)
{
    kind which = (kind)(uintptr_t)*argument1;
    int *in_use = &race.in_use[which][apc - race.apc[which]];

    (void)context;
    require(KeGetCurrentIrql() == APC_LEVEL);
    if (*normal == NULL)
        count_apc(which, *argument2);
    store(in_use, 0);
}

static void normal_routine(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)context;
    require(KeGetCurrentIrql() == PASSIVE_LEVEL);
    count_apc((kind)(uintptr_t)argument1, argument2);
}

static void queue_apc(kind which, unsigned slot)
{
    KAPC *apc = &race.apc[which][slot];

    await(!load(&race.in_use[which][slot]));
    store(&race.in_use[which][slot], 1);
    KeInitializeApc(apc, race.waiter, OriginalApcEnvironment, kernel_routine, NULL,
                    which == SPECIAL_KERNEL ? NULL : normal_routine, which == USER ? UserMode : KernelMode, NULL);
    require(KeInsertQueueApc(apc, (void *)(uintptr_t)which, (void *)race.queued[which].value, 0));
    race.queued[which].value++;
}

/* One more signal comes after everything else was sent. */
static void finish_sending(void)
{
    if (add(&race.senders_left, -1UL) == 0)
        require(KeSetEvent(&race.event[0], EVENT_INCREMENT, FALSE) == 0);
}

static void send_apcs(void)
{
    test_random random;

    random_seed(&random, 21);
    await(load(&race.waiter) != NULL);
    for (unsigned long round = 0; round < race.rounds; round++) {
        for (kind which = 0; which < KINDS; which++) {
            if (race.row->kinds >> which & 1)
                queue_apc(which, (unsigned)(round % APCS));
        }
        spin_for(random_below(&random, 50));
    }
    finish_sending();
}

static void send_signals(void)
{
    for (unsigned long round = 0; round < race.rounds; round++) {
        require(KeSetEvent(&race.event[race.row->multiple && round % 2], EVENT_INCREMENT, FALSE) == 0);
        store(&race.signals.value, round + 1);
        await(load(&race.waits.value) == round + 1);
    }
    finish_sending();
}

static NTSTATUS wait_once(PLARGE_INTEGER timeout)
{
    void *objects[] = {&race.event[0], &race.event[1]};

    if (race.row->multiple)
        return KeWaitForMultipleObjects(2, objects, WaitAny, Executive, race.row->mode, race.row->alertable, timeout,
                                        NULL);
    return KeWaitForSingleObject(&race.event[0], Executive, race.row->mode, race.row->alertable, timeout);
}

static void receive_one(PLARGE_INTEGER timeout)
{
    unsigned long user_before = race.ran[USER].value;
    NTSTATUS status = wait_once(timeout);

    if (status == STATUS_USER_APC) {
        require(race.row->alertable && race.ran[USER].value > user_before);
        race.user_statuses++;
    } else if (status == STATUS_TIMEOUT) {
        require(timeout->QuadPart == 0);
    } else {
        require(status == STATUS_WAIT_0 || (race.row->multiple && status == STATUS_WAIT_1));
        require(race.ran[USER].value == user_before);
        add(&race.waits.value, 1);
    }
}

static void receive(void)
{
    LARGE_INTEGER far_away = in_microseconds(HANG_SECONDS * 1000000LL);
    LARGE_INTEGER poll = no_time();

    store(&race.waiter, KeGetCurrentThread());
    while (race.waits.value < race.rounds + 1)
        receive_one(race.waits.value % 2 ? &far_away : NULL);
    receive_one(&poll); /* delivers the user APCs that remain; leaving the region below delivers kernel APCs */
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
    for (kind which = 0; which < KINDS; which++)
        require(race.ran[which].value == (race.row->kinds >> which & 1) * race.rounds);
}

static void race_thread(void *argument, unsigned index)
{
    static void (*const parts[])(void) = {receive, send_apcs, send_signals};

    (void)argument;
    parts[index]();
}

static void each_apc_runs_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        memset(&race, 0, sizeof(race));
        race.row = &rows[i];
        race.rounds = test_rounds(race.row->rounds);
        race.senders_left = 2;
        KeInitializeEvent(&race.event[0], SynchronizationEvent, FALSE);
        KeInitializeEvent(&race.event[1], SynchronizationEvent, FALSE);
        run_threads(3, HANG_SECONDS, race_thread, NULL);
        assert_int_equal(race.waits.value, race.signals.value + 1);
        assert_int_equal(KeReadStateEvent(&race.event[0]) + KeReadStateEvent(&race.event[1]), 0);
        assert_true(race.user_statuses <= race.ran[USER].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_apc_runs_once),
    };

    return cmocka_run_group_tests_name("stress/apc", tests, NULL, NULL);
}
