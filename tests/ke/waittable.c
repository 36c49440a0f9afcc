/*
 * Table 8-27: each kind of object, waited for in every form, with every kind of timeout, alertable or not, in both
 * modes, signaled before the wait, while it is committed, or not at all.
 */
#include "kinds.h"

typedef struct shape {
    const char *name;
    ULONG count;
    ULONG index; /* of the object that is tested */
    BOOLEAN multiple;
    BOOLEAN all;
} shape;

static const shape shapes[] = {
    {"single", 1, 0, FALSE, FALSE},
    {"any of one", 1, 0, TRUE, FALSE},
    {"any, first of three", 3, 0, TRUE, FALSE},
    {"any, middle of three", 3, 1, TRUE, FALSE},
    {"any, last of three", 3, 2, TRUE, FALSE},
    {"any, last of seven", 7, 6, TRUE, FALSE},
    {"all of one", 1, 0, TRUE, TRUE},
    {"all, first of three", 3, 0, TRUE, TRUE},
    {"all, last of seven", 7, 6, TRUE, TRUE},
};

typedef enum timeout_kind {
    TIMEOUT_NONE,
    TIMEOUT_ZERO,
    TIMEOUT_RELATIVE,
    TIMEOUT_ABSOLUTE,
    TIMEOUT_KINDS
} timeout_kind;

static const char *const timeout_names[] = {"no timeout", "timeout 0", "relative timeout", "absolute timeout"};

typedef enum moment { SIGNALED_BEFORE, SIGNALED_WHILE_COMMITTED, NEVER_SIGNALED, MOMENTS } moment;
static const char *const moment_names[] = {"signaled before", "signaled while committed", "never signaled"};

typedef struct table_case {
    const kind *kind;
    const shape *shape;
    timeout_kind timeout;
    moment moment;
    BOOLEAN alertable;
    KPROCESSOR_MODE mode;
} table_case;

static void name_case(const table_case *c)
{
    print_error("case: %s, %s, %s, %s, %s, %s\n", c->kind->name, c->shape->name, timeout_names[c->timeout],
                moment_names[c->moment], c->alertable ? "alertable" : "not alertable",
                c->mode == UserMode ? "user mode" : "kernel mode");
}

#define expect(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            name_case(c);                                                                                              \
            fail_msg("%s", #condition);                                                                                \
        }                                                                                                              \
    } while (0)

static PLARGE_INTEGER make_timeout(const table_case *c, LARGE_INTEGER *time)
{
    LONGLONG interval = c->moment == NEVER_SIGNALED ? 3 * MILLISECOND / 10 : 600 * SECOND;
    switch (c->timeout) {
    case TIMEOUT_ZERO:
        time->QuadPart = 0;
        return time;
    case TIMEOUT_RELATIVE:
        *time = relative(interval);
        return time;
    case TIMEOUT_ABSOLUTE:
        *time = absolute(interval);
        return time;
    default:
        return NULL;
    }
}

static BOOLEAN makes_sense(const table_case *c)
{
    switch (c->moment) {
    case SIGNALED_WHILE_COMMITTED:
        return c->timeout != TIMEOUT_ZERO;
    case NEVER_SIGNALED:
        return c->timeout != TIMEOUT_NONE;
    default:
        return TRUE;
    }
}

/* In a wait for any the other objects are not signaled, in one for all they are, and get consumed. */
static void run_case(const table_case *c, waiter *w)
{
    const shape *s = c->shape;
    KEVENT others[MAXIMUM_WAIT_OBJECTS];
    test_object o;
    LARGE_INTEGER time;
    wait_call call = {.count = s->count, .multiple = s->multiple, .all = s->all};

    make_object(c->kind, &o);
    for (ULONG i = 0; i < s->count; i += 1) {
        KeInitializeEvent(&others[i], SynchronizationEvent, s->all);
        call.object[i] = i == s->index ? waitable(&o) : &others[i];
    }
    call.alertable = c->alertable;
    call.mode = c->mode;
    call.timeout = make_timeout(c, &time);
    expect(state_of(waitable(&o)) == c->kind->unsignaled);

    ULONGLONG started = HalDispatch.QueryInterruptTime();
    ULONGLONG system_end = call.timeout != NULL && time.QuadPart > 0 ? (ULONGLONG)time.QuadPart : 0;
    if (c->moment == SIGNALED_BEFORE) {
        c->kind->signal(&o);
        expect(state_of(waitable(&o)) == c->kind->signaled);
    }
    w->call = call;
    if (c->moment == SIGNALED_WHILE_COMMITTED) {
        begin_wait(w);
        c->kind->signal(&o);
        expect(!still_waits(w));
    } else {
        tell(&w->actor, perform_wait, w);
    }
    NTSTATUS status = end_wait(w);

    if (c->moment == NEVER_SIGNALED) {
        expect(status == STATUS_TIMEOUT);
        expect(c->timeout != TIMEOUT_RELATIVE ||
               HalDispatch.QueryInterruptTime() >= started + (ULONGLONG)-time.QuadPart);
        expect(c->timeout != TIMEOUT_ABSOLUTE || HalDispatch.QuerySystemTime() >= system_end);
        expect(state_of(waitable(&o)) == c->kind->unsignaled);
    } else {
        expect(status == (s->all ? STATUS_WAIT_0 : STATUS_WAIT_0 + (NTSTATUS)s->index));
        expect(state_of(waitable(&o)) == c->kind->taken);
    }
    for (ULONG i = 0; i < s->count; i += 1) {
        if (i != s->index) {
            expect(state_of(&others[i]) == (s->all && c->moment == NEVER_SIGNALED));
            expect(has_no_waiters(&others[i]));
        }
    }
    expect(has_no_waiters(waitable(&o)));
    if (c->moment != NEVER_SIGNALED) {
        give_back(c->kind, &o, w);
    }
    destroy_object(c->kind, &o);
}

static void test_every_row(void **state)
{
    waiter w;
    ULONG cases = 0;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
        for (ULONG rest = 0; rest < ARRAYSIZE(shapes) * TIMEOUT_KINDS * MOMENTS * 2 * 2; rest += 1) {
            ULONG n = rest;
            table_case c = {.kind = &kinds[k]};
            c.shape = &shapes[n % ARRAYSIZE(shapes)];
            n /= ARRAYSIZE(shapes);
            c.timeout = (timeout_kind)(n % TIMEOUT_KINDS);
            n /= TIMEOUT_KINDS;
            c.moment = (moment)(n % MOMENTS);
            n /= MOMENTS;
            c.alertable = n % 2 != 0;
            c.mode = n / 2 != 0 ? UserMode : KernelMode;
            if (makes_sense(&c)) {
                run_case(&c, &w);
                cases += 1;
            }
        }
    }
    print_message("# %u cases\n", cases);
    end_waiters(&w, 1);
}

#define SEVERAL 4

/* One signal, several waiters: all of them continue, or the oldest one. */
static void run_several(const kind *k, waiter *w)
{
    test_object o;

    make_object(k, &o);
    for (ULONG i = 0; i < SEVERAL; i += 1) {
        w[i].call = (wait_call){.count = 1, .object = {waitable(&o)}, .multiple = i % 2 != 0};
        begin_wait(&w[i]);
    }
    k->signal(&o);
    if (k->releases_all) {
        assert_int_equal(count_waiting(w, SEVERAL), 0);
        for (ULONG i = 0; i < SEVERAL; i += 1) {
            assert_int_equal(end_wait(&w[i]), STATUS_WAIT_0);
        }
        assert_int_equal(state_of(waitable(&o)), k->signaled);
    } else {
        for (ULONG i = 0; i < SEVERAL; i += 1) {
            assert_false(still_waits(&w[i]));
            assert_int_equal(count_waiting(w, SEVERAL), SEVERAL - 1 - i);
            assert_int_equal(state_of(waitable(&o)), k->taken);
            assert_int_equal(end_wait(&w[i]), STATUS_WAIT_0);
            give_back(k, &o, &w[i]);
            if (k->give_back == NULL && i + 1 < SEVERAL) {
                k->signal(&o);
            }
        }
    }
    assert_true(has_no_waiters(waitable(&o)));
    destroy_object(k, &o);
}

static void test_effect_on_several_waiters(void **state)
{
    waiter w[SEVERAL];
    (void)state;
    start_waiters(w, SEVERAL);
    for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
        print_message("# %s\n", kinds[k].name);
        run_several(&kinds[k], w);
    }
    end_waiters(w, SEVERAL);
}

/* The object is signaled by its own means: a timer that expires during the wait. */
static void test_timer_comes_due_under_a_waiter(void **state)
{
    static const TIMER_TYPE types[] = {NotificationTimer, SynchronizationTimer};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(types); i += 1) {
        KTIMER timer;
        KeInitializeTimerEx(&timer, types[i]);
        ULONGLONG started = HalDispatch.QueryInterruptTime();
        assert_false(KeSetTimer(&timer, relative(2 * MILLISECOND), NULL));
        assert_int_equal(wait_for(&timer, NULL), STATUS_SUCCESS);
        assert_true(HalDispatch.QueryInterruptTime() >= started + 2 * MILLISECOND);
        assert_int_equal(KeReadStateTimer(&timer), types[i] == NotificationTimer);
        KeCancelTimer(&timer);
    }
}

static void end_at_once(void *context)
{
    PsTerminateSystemThread((NTSTATUS)(LONG_PTR)context);
}

/* A thread that the library has created is also signaled by its end. */
static void test_created_thread(void **state)
{
    HANDLE handle;
    PVOID thread;
    (void)state;
    assert_int_equal(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, end_at_once,
                                          (PVOID)(LONG_PTR)STATUS_CANCELLED),
                     STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(handle, SYNCHRONIZE, *PsThreadType, KernelMode, &thread, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(wait_for(thread, NULL), STATUS_SUCCESS);
    assert_int_equal(wait_for(thread, NO_TIME), STATUS_SUCCESS);
    assert_int_equal(PsGetThreadExitStatus(thread), STATUS_CANCELLED);
    ObDereferenceObject(thread);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_every_row),
        WATCHED(test_effect_on_several_waiters),
        WATCHED(test_timer_comes_due_under_a_waiter),
        WATCHED(test_created_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
