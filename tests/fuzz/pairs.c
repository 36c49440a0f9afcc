/* pairs.c: an event pair. Without kernel it goes by handle, where nothing is alertable and nothing has a timeout. */
#include "fuzz.h"

#include <stdio.h>

enum { EVENT_SET };

static void describe_side(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s%s", object_names[made->target], made->kernel ? " (Ke)" : "");
}

static intptr_t set_side(call *made, unsigned side)
{
    if (model.wrong == RULE_pair_sides)
        side = LOW + HIGH - side;
    intptr_t previous = predict(&model.objects[side], EVENT_SET, made->caller, 0, 0, 1);
    satisfy(side);
    return previous;
}

static void wait_for_side(call *made, unsigned side)
{
    model_actor *self = &model.actors[made->caller];

    self->objects[0] = side;
    self->count = 1;
    self->all = false;
    self->alertable = made->alertable;
    self->mode = made->kernel ? KernelMode : UserMode;
    predict_wait_as_said(made);
}

static bool predict_set(call *made)
{
    made->target = LOW + made->a % 2;
    intptr_t previous = set_side(made, made->target);
    end_call(made->caller, STATUS_SUCCESS, made->kernel ? previous : 0);
    return true;
}

static void perform_set(call *made)
{
    bool low = made->target == LOW;

    made->status = STATUS_SUCCESS;
    made->value = 0;
    if (made->kernel)
        made->value = low ? KeSetLowEventPair(things.pair, EVENT_INCREMENT, FALSE)
                          : KeSetHighEventPair(things.pair, EVENT_INCREMENT, FALSE);
    else
        made->status = low ? NtSetLowEventPair(things.pair_handle) : NtSetHighEventPair(things.pair_handle);
}

static bool predict_wait_for(call *made)
{
    made->target = LOW + made->a % 2;
    made->alertable = made->alertable && made->kernel;
    made->timed = made->timed && made->kernel;
    made->poll = made->poll && made->kernel;
    wait_for_side(made, made->target);
    return true;
}

static void perform_wait_for(call *made)
{
    bool low = made->target == LOW;

    made->value = 0;
    if (made->kernel)
        made->status = low ? KeWaitForLowEventPair(things.pair, KernelMode, made->alertable, timeout_of(made))
                           : KeWaitForHighEventPair(things.pair, KernelMode, made->alertable, timeout_of(made));
    else
        made->status = low ? NtWaitLowEventPair(things.pair_handle) : NtWaitHighEventPair(things.pair_handle);
}

/* The target is the one that is set. */
static bool predict_set_and_wait(call *made)
{
    made->target = LOW + made->a % 2;
    made->poll = made->alertable = made->timed = false;
    set_side(made, made->target);
    wait_for_side(made, LOW + HIGH - made->target);
    return true;
}

static void perform_set_and_wait(call *made)
{
    bool low = made->target == LOW;

    made->value = 0;
    if (made->kernel)
        made->status =
            low ? KeSetLowWaitHighThread(things.pair, KernelMode) : KeSetHighWaitLowThread(things.pair, KernelMode);
    else
        made->status =
            low ? NtSetLowWaitHighEventPair(things.pair_handle) : NtSetHighWaitLowEventPair(things.pair_handle);
}

const operation pair_operations[] = {
    {"set a side of the pair", ANYBODY, predict_set, perform_set, describe_side},
    {"wait for a side of the pair", ACTORS_ONLY, predict_wait_for, perform_wait_for, describe_side},
    {"set a side of the pair and wait for the other", ACTORS_ONLY, predict_set_and_wait, perform_set_and_wait,
     describe_side},
};
const size_t pair_operation_count = sizeof(pair_operations) / sizeof(pair_operations[0]);
