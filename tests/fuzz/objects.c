/* objects.c: calls on dispatcher objects, and waits for them. Without kernel they go by handle, in user mode. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

enum { EVENT_SET, EVENT_RESET };
enum { SEMAPHORE_RELEASE };
enum { TIMER_SET, TIMER_CANCEL, TIMER_WAIT, TIMER_EXPIRE };
enum { MOST_HOURS = 6 }; /* ahead, if none of them is in use */

static void choose(call *made, unsigned first, unsigned last)
{
    made->target = first + made->a % (last - first + 1);
}

static void describe_target(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s%s", object_names[made->target], made->kernel ? " (Ke)" : "");
}

static void describe_amount(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s by %d%s", object_names[made->target], (int)made->amount, made->kernel ? " (Ke)" : "");
}

static void returned(call *made, NTSTATUS status, const LONG *previous)
{
    made->status = status;
    made->value = NT_SUCCESS(status) ? *previous : 0;
}

static void returned_value(call *made, LONG value)
{
    returned(made, STATUS_SUCCESS, &value);
}

/* Events. */

static bool predict_set(call *made)
{
    choose(made, E0, E2);
    intptr_t previous = predict(&model.objects[made->target], EVENT_SET, made->caller, 0, 0, 1);
    satisfy(made->target);
    end_call(made->caller, STATUS_SUCCESS, previous);
    return true;
}

static void perform_set(call *made)
{
    LONG previous = -1;

    if (made->kernel)
        returned_value(made, KeSetEvent(things.bodies[made->target], EVENT_INCREMENT, FALSE));
    else
        returned(made, NtSetEvent(things.handles[made->target], &previous), &previous);
}

static bool predict_reset(call *made)
{
    choose(made, E0, E2);
    end_call(made->caller, STATUS_SUCCESS, predict(&model.objects[made->target], EVENT_RESET, made->caller, 0, 0, 1));
    return true;
}

static void perform_reset(call *made)
{
    LONG previous = -1;

    if (made->kernel)
        returned_value(made, KeResetEvent(things.bodies[made->target]));
    else
        returned(made, NtResetEvent(things.handles[made->target], &previous), &previous);
}

static bool predict_pulse(call *made)
{
    choose(made, E0, E2);
    end_call(made->caller, STATUS_SUCCESS, pulse(made->target));
    return true;
}

static void perform_pulse(call *made)
{
    LONG previous = -1;

    if (made->kernel)
        returned_value(made, KePulseEvent(things.bodies[made->target], EVENT_INCREMENT, FALSE));
    else
        returned(made, NtPulseEvent(things.handles[made->target], &previous), &previous);
}

/* Semaphores. */

static NTSTATUS release_semaphore(unsigned caller, unsigned semaphore, LONG amount, intptr_t *previous)
{
    *previous = predict(&model.objects[semaphore], SEMAPHORE_RELEASE, caller, amount, -1, 4);
    if (*previous < 0) {
        *previous = 0;
        return STATUS_SEMAPHORE_LIMIT_EXCEEDED;
    }
    satisfy(semaphore);
    return STATUS_SUCCESS;
}

static bool predict_release_semaphore(call *made)
{
    intptr_t previous;

    choose(made, S0, S1);
    made->amount = 1 + made->b % 3;
    NTSTATUS status = release_semaphore(made->caller, made->target, made->amount, &previous);
    end_call(made->caller, status, previous);
    return true;
}

static void perform_release_semaphore(call *made)
{
    LONG previous = 0;

    if (!made->kernel) {
        returned(made, NtReleaseSemaphore(things.handles[made->target], made->amount, &previous), &previous);
        return;
    }
    __try {
        returned_value(made, KeReleaseSemaphore(things.bodies[made->target], SEMAPHORE_INCREMENT, made->amount, FALSE));
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        returned(made, GetExceptionCode(), &previous);
    }
}

/* Mutants. */

static bool predict_release_mutant(call *made)
{
    intptr_t previous = 0;

    choose(made, M0, M1);
    NTSTATUS status = release_mutant(made->caller, made->target, &previous);
    end_call(made->caller, status, previous);
    return true;
}

static void perform_release_mutant(call *made)
{
    LONG previous = 0;

    if (!made->kernel) {
        returned(made, NtReleaseMutant(things.handles[made->target], &previous), &previous);
        return;
    }
    __try {
        returned_value(made, KeReleaseMutant(things.bodies[made->target], MUTANT_INCREMENT, FALSE, FALSE));
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        returned(made, GetExceptionCode(), &previous);
    }
}

/* Timers. A due time is long past or hours away, and hours pass only when the input says so. */

static bool predict_set_timer(call *made)
{
    model_object *timer;

    choose(made, T0, T1);
    unsigned *due = &model.due[made->target - T0];
    made->hour = made->b & 1 ? choose_hour(made->b / 2 % MOST_HOURS) : 0;
    timer = &model.objects[made->target];
    intptr_t was_set = predict(timer, TIMER_SET, made->caller, 1, 0, 1);
    if (made->hour == 0 || *due == 0 || model.wrong != RULE_due_time_replaced)
        *due = made->hour;
    if (made->hour == 0) {
        predict(timer, TIMER_EXPIRE, made->caller, 1, 0, 0);
        satisfy(made->target);
    }
    end_call(made->caller, STATUS_SUCCESS, was_set);
    return true;
}

static void perform_set_timer(call *made)
{
    LARGE_INTEGER due = {.QuadPart = 1};

    if (made->hour != 0)
        due = until_hour(made->hour);
    returned_value(made, KeSetTimer(things.bodies[made->target], due, NULL));
}

static void describe_timer(const call *made, char *text, size_t size)
{
    if (made->hour == 0)
        snprintf(text, size, "%s, long past", object_names[made->target]);
    else
        snprintf(text, size, "%s, hour %u", object_names[made->target], made->hour);
}

static bool predict_cancel_timer(call *made)
{
    choose(made, T0, T1);
    model.due[made->target - T0] = 0;
    end_call(made->caller, STATUS_SUCCESS, predict(&model.objects[made->target], TIMER_CANCEL, made->caller, 0, 0, 1));
    return true;
}

static void perform_cancel_timer(call *made)
{
    returned_value(made, KeCancelTimer(things.bodies[made->target]));
}

/* Waits. */

static void choose_waited(call *made, unsigned count)
{
    model_actor *self = &model.actors[made->caller];

    self->objects[0] = made->a % OBJECTS;
    self->objects[1] = (made->a / OBJECTS + made->b) % OBJECTS;
    self->objects[2] = made->b / 4 % OBJECTS;
    self->count = count;
    self->alertable = made->alertable;
    self->mode = made->kernel ? KernelMode : UserMode;
    self->all = false;
    made->amount = (LONG)count;
}

static bool has_duplicates(const model_actor *self)
{
    for (unsigned i = 0; i < self->count; i++)
        for (unsigned j = i + 1; j < self->count; j++)
            if (self->objects[i] == self->objects[j])
                return true;
    return false;
}

/* A handle of a forgotten thread is not a handle. */
static bool are_all_there(const model_actor *self)
{
    for (unsigned i = 0; i < self->count; i++)
        if (things.handles[self->objects[i]] == NULL)
            return false;
    return true;
}

void predict_wait_as_said(call *made)
{
    made->poll = made->poll || would_deadlock(made->caller, FOR_OBJECTS);
    made->hour = made->timed && !made->poll ? choose_hour(made->b % MOST_HOURS) : 0;
    wait_for_objects(made->caller, made->poll);
    if (model.actors[made->caller].waiting == FOR_OBJECTS)
        model.actors[made->caller].deadline = made->hour;
}

static bool predict_wait_single(call *made)
{
    choose_waited(made, 1);
    if (!are_all_there(&model.actors[made->caller]))
        return false;
    predict_wait_as_said(made);
    return true;
}

static bool predict_wait_multiple(call *made, bool all)
{
    model_actor *self = &model.actors[made->caller];

    choose_waited(made, 2 + made->other);
    self->all = all;
    if (!are_all_there(self))
        return false;
    if (all && has_duplicates(self))
        end_call(made->caller, STATUS_INVALID_PARAMETER_MIX, 0);
    else
        predict_wait_as_said(made);
    return true;
}

static bool predict_wait_any(call *made)
{
    return predict_wait_multiple(made, false);
}

static bool predict_wait_all(call *made)
{
    return predict_wait_multiple(made, true);
}

/* The model belongs to the fuzz thread; an actor that performs a call reads its own objects in it, which stay until it
   returns. */
static void perform_wait(call *made, WAIT_TYPE type)
{
    const model_actor *self = &model.actors[made->caller];
    HANDLE handles[MOST_WAITED];
    PVOID bodies[MOST_WAITED];
    ULONG count = (ULONG)made->amount;

    for (ULONG i = 0; i < count; i++) {
        handles[i] = things.handles[self->objects[i]];
        bodies[i] = things.bodies[self->objects[i]];
    }
    if (made->kernel)
        made->status = count == 1
                           ? KeWaitForSingleObject(bodies[0], Executive, KernelMode, made->alertable, timeout_of(made))
                           : KeWaitForMultipleObjects(count, bodies, type, Executive, KernelMode, made->alertable,
                                                      timeout_of(made), NULL);
    else
        made->status = count == 1 ? NtWaitForSingleObject(handles[0], made->alertable, timeout_of(made))
                                  : NtWaitForMultipleObjects(count, handles, type, made->alertable, timeout_of(made));
    made->value = 0;
}

static void perform_wait_any(call *made)
{
    perform_wait(made, WaitAny);
}

static void perform_wait_all(call *made)
{
    perform_wait(made, WaitAll);
}

static void describe_wait(const call *made, char *text, size_t size)
{
    const model_actor *self = &model.actors[made->caller];
    int used = 0;

    for (unsigned i = 0; i < (unsigned)made->amount; i++)
        used += snprintf(text + used, size - (size_t)used, "%s ", object_names[self->objects[i]]);
    used += snprintf(text + used, size - (size_t)used, "%s%s%s", made->kernel ? "(Ke) " : "",
                     made->alertable ? "alertable " : "", made->poll ? "at once" : "");
    if (made->hour != 0)
        snprintf(text + used, size - (size_t)used, "until hour %u", made->hour);
}

static NTSTATUS signal(unsigned caller, unsigned object)
{
    intptr_t previous;

    if (object <= E2) {
        predict(&model.objects[object], EVENT_SET, caller, 0, 0, 1);
        satisfy(object);
        return STATUS_SUCCESS;
    }
    if (object <= S1)
        return release_semaphore(caller, object, 1, &previous);
    return object <= M1 ? release_mutant(caller, object, &previous) : STATUS_OBJECT_TYPE_MISMATCH;
}

static bool predict_signal_and_wait(call *made)
{
    choose_waited(made, 1);
    made->kernel = false;
    model.actors[made->caller].mode = UserMode;
    made->target = made->b % A0;
    if (!are_all_there(&model.actors[made->caller]))
        return false;
    NTSTATUS status = signal(made->caller, made->target);
    if (NT_SUCCESS(status))
        predict_wait_as_said(made);
    else
        end_call(made->caller, status, 0);
    return true;
}

static void perform_signal_and_wait(call *made)
{
    made->status = NtSignalAndWaitForSingleObject(things.handles[made->target],
                                                  things.handles[model.actors[made->caller].objects[0]],
                                                  made->alertable, timeout_of(made));
    made->value = 0;
}

static void describe_signal_and_wait(const call *made, char *text, size_t size)
{
    int used = snprintf(text, size, "%s, ", object_names[made->target]);

    describe_wait(made, text + used, size - (size_t)used);
}

const operation object_operations[] = {
    {"set", ANYBODY, predict_set, perform_set, describe_target},
    {"reset", ANYBODY, predict_reset, perform_reset, describe_target},
    {"pulse", ANYBODY, predict_pulse, perform_pulse, describe_target},
    {"release semaphore", ANYBODY, predict_release_semaphore, perform_release_semaphore, describe_amount},
    {"release mutant", ACTORS_ONLY, predict_release_mutant, perform_release_mutant, describe_target},
    {"set timer", ANYBODY, predict_set_timer, perform_set_timer, describe_timer},
    {"cancel timer", ANYBODY, predict_cancel_timer, perform_cancel_timer, describe_target},
    {"wait for", ACTORS_ONLY, predict_wait_single, perform_wait_any, describe_wait},
    {"wait for any of", ACTORS_ONLY, predict_wait_any, perform_wait_any, describe_wait},
    {"wait for all of", ACTORS_ONLY, predict_wait_all, perform_wait_all, describe_wait},
    {"signal and wait for", ACTORS_ONLY, predict_signal_and_wait, perform_signal_and_wait, describe_signal_and_wait},
};
const size_t object_operation_count = sizeof(object_operations) / sizeof(object_operations[0]);
