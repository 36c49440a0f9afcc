/* KEVENT, and what the signals of all objects have in common: levels, increments, initializers. */
#include "kinds.h"

typedef struct initializer {
    const char *name;
    void (*initialize)(test_object *o);
    UCHAR type;
    UCHAR bytes[3]; /* behind the type */
    LONG signal_state;
} initializer;

static void initialize_event(test_object *o)
{
    KeInitializeEvent(&o->event, NotificationEvent, TRUE);
}

static void initialize_semaphore(test_object *o)
{
    KeInitializeSemaphore(&o->semaphore, 3, 7);
}

static void initialize_mutant(test_object *o)
{
    KeInitializeMutant(&o->mutant, FALSE);
}

static void initialize_mutex(test_object *o)
{
    KeInitializeMutex(&o->mutant, 0);
}

#define KEPT 0xa5

static const initializer initializers[] = {
    {"event", initialize_event, EventNotificationObject, {KEPT, sizeof(KEVENT) / 4, KEPT}, 1},
    {"auto event", make_synchronization_event, EventSynchronizationObject, {KEPT, sizeof(KEVENT) / 4, KEPT}, 0},
    {"semaphore", initialize_semaphore, SemaphoreObject, {KEPT, sizeof(KSEMAPHORE) / 4, KEPT}, 3},
    {"mutant", initialize_mutant, MutantObject, {sizeof(KMUTANT) / 4, FALSE, KEPT}, 1},
    {"mutex", initialize_mutex, MutantObject, {sizeof(KMUTANT) / 4, FALSE, KEPT}, 1},
    {"gate", make_gate, GateObject, {FALSE, sizeof(KGATE) / 4, KEPT}, 0},
    {"timer", make_notification_timer, TimerNotificationObject, {KEPT, sizeof(KTIMER) / 4, 0}, 0},
    {"auto timer", make_synchronization_timer, TimerSynchronizationObject, {KEPT, sizeof(KTIMER) / 4, 0}, 0},
    {"queue", make_queue, QueueObject, {0, sizeof(KQUEUE) / 4, KEPT}, 0},
};

/* Type, SignalState, the list, and those of the other three bytes that the type uses: the rest stay, at any level. */
static void test_initializers_write_their_own_fields_only(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(initializers); i += 1) {
        const initializer *in = &initializers[i];
        test_object o;
        KIRQL irql;
        print_message("# %s\n", in->name);
        memset(&o, KEPT, sizeof(o));
        KeRaiseIrql(HIGH_LEVEL, &irql);
        in->initialize(&o);
        KeLowerIrql(irql);
        const UCHAR *bytes = (const UCHAR *)&o.header;
        assert_int_equal(bytes[0], in->type);
        assert_memory_equal(bytes + 1, in->bytes, sizeof(in->bytes));
        assert_int_equal(o.header.SignalState, in->signal_state);
        assert_true(IsListEmpty(&o.header.WaitListHead));
    }
}

/* An object works in memory that was not cleared. */
static void test_objects_work_in_dirty_memory(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
        test_object o;
        if (kinds[k].make == make_thread) {
            continue;
        }
        print_message("# %s\n", kinds[k].name);
        memset(&o, 0xff, sizeof(o));
        o.actor.thread = NULL;
        kinds[k].make(&o);
        begin_wait_for(&w, &o);
        kinds[k].signal(&o);
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        give_back(&kinds[k], &o, &w);
        assert_true(IsListEmpty(&w.actor.thread->MutantListHead));
        assert_true(IsListEmpty(&KeGetCurrentThread()->MutantListHead));
        destroy_object(&kinds[k], &o);
    }
    end_waiters(&w, 1);
}

/* Set, reset and pulse return the previous state as it was, not as a truth value. */
static void test_previous_state_is_raw(void **state)
{
    static const LONG states[] = {0, 1, 7};
    static const EVENT_TYPE types[] = {NotificationEvent, SynchronizationEvent};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(states); i += 1) {
        for (ULONG t = 0; t < ARRAYSIZE(types); t += 1) {
            KEVENT event;
            KeInitializeEvent(&event, types[t], FALSE);
            event.Header.SignalState = states[i];
            assert_int_equal(KeReadStateEvent(&event), states[i]);
            assert_int_equal(KeSetEvent(&event, 0, FALSE), states[i]);
            assert_int_equal(KeReadStateEvent(&event), 1);
            event.Header.SignalState = states[i];
            assert_int_equal(KeResetEvent(&event), states[i]);
            assert_int_equal(KeReadStateEvent(&event), 0);
            event.Header.SignalState = states[i];
            assert_int_equal(KePulseEvent(&event, 0, FALSE), states[i]);
            assert_int_equal(KeReadStateEvent(&event), 0);
            event.Header.SignalState = states[i];
            KeClearEvent(&event);
            assert_int_equal(KeReadStateEvent(&event), 0);
        }
    }
}

/* The same with a thread on the list, whose wait the state does not end: it waits for another object as well. */
static void test_previous_state_with_a_waiter(void **state)
{
    waiter w;
    KEVENT event, other;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeEvent(&other, NotificationEvent, FALSE);
    w.call = (wait_call){.count = 2, .object = {&event, &other}, .all = TRUE};
    begin_wait(&w);
    assert_int_equal(KeSetEvent(&event, 0, FALSE), 0);
    assert_int_equal(KeSetEvent(&event, 0, FALSE), 1);
    assert_int_equal(KeReadStateEvent(&event), 1);
    assert_int_equal(KeResetEvent(&event), 1);
    assert_int_equal(KeResetEvent(&event), 0);
    assert_int_equal(KePulseEvent(&event, 0, FALSE), 0);
    assert_int_equal(KeSetEvent(&event, 0, FALSE), 0);
    assert_int_equal(KePulseEvent(&event, 0, FALSE), 1);
    assert_int_equal(KeReadStateEvent(&event), 0);
    assert_true(still_waits(&w));
    KeSetEvent(&other, 0, FALSE);
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    end_waiters(&w, 1);
}

/* What was released is off the list when the signal returns, whether its thread has run by then or not. */
static void test_released_waiters_are_off_the_list(void **state)
{
    waiter w[3];
    (void)state;
    start_waiters(w, 3);
    for (ULONG pulse = 0; pulse < 2; pulse += 1) {
        for (ULONG type = NotificationEvent; type <= SynchronizationEvent; type += 1) {
            LONG (*signal)(PRKEVENT, KPRIORITY, BOOLEAN) = pulse ? KePulseEvent : KeSetEvent;
            KEVENT event;
            KeInitializeEvent(&event, (EVENT_TYPE)type, FALSE);
            for (ULONG i = 0; i < 3; i += 1) {
                begin_wait_for(&w[i], &event);
            }
            signal(&event, 0, FALSE);
            if (type == NotificationEvent) {
                assert_true(has_no_waiters(&event));
                assert_int_equal(KeReadStateEvent(&event), !pulse);
            } else {
                for (ULONG i = 0; i < 3; i += 1) {
                    PLIST_ENTRY first = event.Header.WaitListHead.Flink;
                    assert_ptr_equal(first, i < 2 ? &w[i + 1].actor.thread->WaitBlock[0].WaitListEntry
                                                  : &event.Header.WaitListHead);
                    assert_int_equal(KeReadStateEvent(&event), 0);
                    if (i < 2) {
                        signal(&event, 0, FALSE);
                    }
                }
                assert_true(has_no_waiters(&event));
            }
            for (ULONG i = 0; i < 3; i += 1) {
                assert_int_equal(end_wait(&w[i]), STATUS_WAIT_0);
            }
        }
    }
    end_waiters(w, 3);
}

/* A pulse releases current waiters, not later ones. */
static void test_pulse_is_not_stored(void **state)
{
    static const EVENT_TYPE types[] = {NotificationEvent, SynchronizationEvent};
    (void)state;
    for (ULONG t = 0; t < ARRAYSIZE(types); t += 1) {
        KEVENT event;
        KeInitializeEvent(&event, types[t], FALSE);
        KePulseEvent(&event, 0, FALSE);
        assert_false(poll_object(&event));
        KeSetEvent(&event, 0, FALSE);
        KePulseEvent(&event, 0, FALSE);
        assert_false(poll_object(&event));
    }
}

static void test_reset_leaves_waiters_alone(void **state)
{
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    begin_wait_for(&w, &event);
    assert_int_equal(KeResetEvent(&event), 0);
    KeClearEvent(&event);
    assert_true(still_waits(&w));
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    end_waiters(&w, 1);
}

/* A signal with Wait TRUE leaves the thread at DISPATCH_LEVEL; the following wait restores the level. */

typedef struct signal_and_wait {
    const char *name;
    void (*signal)(test_object *o);
    void (*make)(test_object *o);
} signal_and_wait;

static void set_and_wait(test_object *o)
{
    KeSetEvent(&o->event, 0, TRUE);
}

static void pulse_and_wait(test_object *o)
{
    KePulseEvent(&o->event, 0, TRUE);
}

static void release_semaphore_and_wait(test_object *o)
{
    KeReleaseSemaphore(&o->semaphore, 0, 1, TRUE);
}

static void release_mutant_and_wait(test_object *o)
{
    KeReleaseMutant(&o->mutant, 0, FALSE, TRUE);
}

static void release_mutex_and_wait(test_object *o)
{
    KeReleaseMutex(&o->mutant, TRUE);
}

static const signal_and_wait signals_and_waits[] = {
    {"set", set_and_wait, make_notification_event},
    {"pulse", pulse_and_wait, make_synchronization_event},
    {"semaphore", release_semaphore_and_wait, make_semaphore},
    {"mutant", release_mutant_and_wait, make_mutant},
    {"mutex", release_mutex_and_wait, make_mutex},
};

static void test_signal_with_wait(void **state)
{
    static const KIRQL levels[] = {PASSIVE_LEVEL, APC_LEVEL};
    LARGE_INTEGER briefly = relative(MILLISECOND / 2);
    KEVENT set, unset;
    (void)state;
    KeInitializeEvent(&set, NotificationEvent, TRUE);
    KeInitializeEvent(&unset, NotificationEvent, FALSE);
    const struct {
        wait_call call;
        NTSTATUS status;
    } waits[] = {
        {{.count = 1, .object = {&set}}, STATUS_WAIT_0},
        {{.count = 1, .object = {&set}, .timeout = NO_TIME}, STATUS_WAIT_0},
        {{.count = 1, .object = {&unset}, .timeout = NO_TIME}, STATUS_TIMEOUT},
        {{.count = 1, .object = {&unset}, .timeout = &briefly}, STATUS_TIMEOUT},
        {{.count = 2, .object = {&unset, &set}}, STATUS_WAIT_1},
        {{.count = 2, .object = {&unset, &set}, .all = TRUE, .timeout = &briefly}, STATUS_TIMEOUT},
        {{.count = 0, .timeout = &briefly}, STATUS_SUCCESS},
    };
    for (ULONG s = 0; s < ARRAYSIZE(signals_and_waits); s += 1) {
        for (ULONG l = 0; l < ARRAYSIZE(levels); l += 1) {
            for (ULONG i = 0; i < ARRAYSIZE(waits); i += 1) {
                test_object o;
                KIRQL irql;
                print_message("# %s, level %u, wait %u\n", signals_and_waits[s].name, levels[l], i);
                make_object(&(kind){.make = signals_and_waits[s].make}, &o);
                KeRaiseIrql(levels[l], &irql);
                signals_and_waits[s].signal(&o);
                assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
                assert_true(KeGetCurrentThread()->WaitNext & KI_WAIT_NEXT_SIGNALED);
                assert_int_equal(perform(&waits[i].call), waits[i].status);
                assert_int_equal(KeGetCurrentIrql(), levels[l]);
                assert_false(KeGetCurrentThread()->WaitNext & KI_WAIT_NEXT_SIGNALED);
                KeLowerIrql(irql);
            }
        }
    }
}

/* The same with a waiter, which the signal releases. (A mutant would belong to the waiter then.) */
static void test_signal_with_wait_and_waiter(void **state)
{
    KEVENT unset;
    waiter w;
    (void)state;
    KeInitializeEvent(&unset, NotificationEvent, FALSE);
    start_waiters(&w, 1);
    for (const signal_and_wait *s = signals_and_waits; s->make != make_mutant; s += 1) {
        test_object o;
        print_message("# %s\n", s->name);
        make_object(&(kind){.make = s->make}, &o);
        o.event.Header.SignalState = 0;
        begin_wait_for(&w, &o);
        s->signal(&o);
        assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
        assert_true(KeGetCurrentThread()->WaitNext & KI_WAIT_NEXT_SIGNALED);
        assert_int_equal(wait_for(&unset, NO_TIME), STATUS_TIMEOUT);
        assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
        assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    }
    end_waiters(&w, 1);
}

struct owners {
    volatile ULONG raised;
    volatile ULONG done;
};

static void own_processor(void *argument, unsigned index)
{
    struct owners *owners = argument;
    KIRQL irql;
    (void)index;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    __atomic_add_fetch(&owners->raised, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&owners->done, __ATOMIC_ACQUIRE)) {
        HalDispatch.Yield();
    }
    KeLowerIrql(irql);
}

/* Every processor has an owner, and none of them releases it before the signal and the wait have ended. */
static void test_signal_with_wait_takes_no_processor(void **state)
{
    struct owners owners = {0};
    KEVENT unset;
    (void)state;
    KeInitializeEvent(&unset, NotificationEvent, FALSE);
    test_threads *threads = start_threads(KeNumberProcessors, own_processor, &owners);
    await(__atomic_load_n(&owners.raised, __ATOMIC_ACQUIRE) == KeNumberProcessors);
    for (ULONG s = 0; s < ARRAYSIZE(signals_and_waits); s += 1) {
        test_object o;
        make_object(&(kind){.make = signals_and_waits[s].make}, &o);
        signals_and_waits[s].signal(&o);
        assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
        assert_int_equal(wait_for(&unset, NO_TIME), STATUS_TIMEOUT);
        assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    }
    __atomic_store_n(&owners.done, TRUE, __ATOMIC_RELEASE);
    join_threads(threads, 20);
}

/* A caller that lowers the level instead of waiting. The final wait finds nothing to lower. */
static void test_level_lowered_instead_of_a_wait(void **state)
{
    KEVENT event;
    KIRQL irql;
    (void)state;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeSetEvent(&event, 0, TRUE);
    KeLowerIrql(PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeLowerIrql(irql);
    assert_int_equal(wait_for(&event, NULL), STATUS_SUCCESS);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeSetEvent(&event, 0, TRUE);
    KeLowerIrql(PASSIVE_LEVEL);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    assert_int_equal(wait_for(&event, NULL), STATUS_SUCCESS); /* the level is that before the signal, as after any */
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

/* The increment of the signal that ended the wait. */

#define BASE 8

static void set_with_increment(test_object *o, KPRIORITY increment)
{
    KeSetEvent(&o->event, increment, FALSE);
}

static void pulse_with_increment(test_object *o, KPRIORITY increment)
{
    KePulseEvent(&o->event, increment, FALSE);
}

static void release_with_increment(test_object *o, KPRIORITY increment)
{
    KeReleaseSemaphore(&o->semaphore, increment, 1, FALSE);
}

static void release_mutant_with_increment(test_object *o, KPRIORITY increment)
{
    KeReleaseMutant(&o->mutant, increment, FALSE, FALSE);
}

typedef struct incrementing_signal {
    const char *name;
    void (*make)(test_object *o);
    void (*signal)(test_object *o, KPRIORITY increment);
} incrementing_signal;

static const incrementing_signal incrementing_signals[] = {
    {"set", make_synchronization_event, set_with_increment},
    {"set for all", make_notification_event, set_with_increment},
    {"pulse", make_synchronization_event, pulse_with_increment},
    {"semaphore", make_semaphore, release_with_increment},
    {"mutant", make_mutant, release_mutant_with_increment},
};

static LONG priority_after(const incrementing_signal *s, KPRIORITY increment, LONG real_time, BOOLEAN disable_boost)
{
    waiter w;
    test_object o;
    start_waiters(&w, 1);
    memset(&o, 0, sizeof(o));
    s->make(&o);
    KeSetPriorityThread(w.actor.thread, real_time != 0 ? real_time : BASE);
    KeSetDisableBoostThread(w.actor.thread, disable_boost);
    begin_wait_for(&w, &o);
    s->signal(&o, increment);
    LONG priority = priority_of(w.actor.thread);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_int_equal(w.actor.thread->BasePriority, BASE);
    end_waiters(&w, 1);
    return priority;
}

static void test_increments(void **state)
{
    static const KPRIORITY increments[] = {0, 1, 2, 6, 7, 8, 20};
    (void)state;
    for (ULONG s = 0; s < ARRAYSIZE(incrementing_signals); s += 1) {
        const incrementing_signal *signal = &incrementing_signals[s];
        print_message("# %s\n", signal->name);
        for (ULONG i = 0; i < ARRAYSIZE(increments); i += 1) {
            LONG expected = BASE + increments[i] < 15 ? BASE + increments[i] : 15;
            assert_int_equal(priority_after(signal, increments[i], 0, FALSE), expected);
        }
        assert_int_equal(priority_after(signal, 4, 20, FALSE), 20);
        assert_int_equal(priority_after(signal, 4, 0, TRUE), BASE);
    }
}

/* The setter boosts the thread it releases to its own priority. */
static void test_set_event_boost_priority(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    PKTHREAD released = self;
    waiter w[2];
    KEVENT event;
    (void)state;
    start_waiters(w, 2);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeSetEventBoostPriority(&event, &released);
    assert_null(released);
    assert_int_equal(KeResetEvent(&event), 1);
    KeSetEventBoostPriority(&event, NULL);
    assert_int_equal(KeResetEvent(&event), 1);

    KPRIORITY before = KeSetPriorityThread(self, 13);
    begin_wait_for(&w[0], &event);
    begin_wait_for(&w[1], &event);
    KeSetEventBoostPriority(&event, &released);
    assert_ptr_equal(released, w[0].actor.thread);
    assert_int_equal(priority_of(w[0].actor.thread), 13);
    assert_int_equal(priority_of(w[1].actor.thread), BASE);
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
    assert_true(still_waits(&w[1]));
    assert_int_equal(KeReadStateEvent(&event), 0);
    KeSetPriorityThread(self, 3);
    KeSetEventBoostPriority(&event, &released);
    assert_ptr_equal(released, w[1].actor.thread);
    assert_int_equal(priority_of(w[1].actor.thread), BASE + EVENT_INCREMENT);
    assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
    KeSetPriorityThread(self, before);
    end_waiters(w, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_initializers_write_their_own_fields_only),
        WATCHED(test_objects_work_in_dirty_memory),
        WATCHED(test_previous_state_is_raw),
        WATCHED(test_previous_state_with_a_waiter),
        WATCHED(test_released_waiters_are_off_the_list),
        WATCHED(test_pulse_is_not_stored),
        WATCHED(test_reset_leaves_waiters_alone),
        WATCHED(test_signal_with_wait),
        WATCHED(test_signal_with_wait_and_waiter),
        cmocka_unit_test(test_signal_with_wait_takes_no_processor), /* join_threads watches */
        WATCHED(test_level_lowered_instead_of_a_wait),
        WATCHED(test_increments),
        WATCHED(test_set_event_boost_priority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
