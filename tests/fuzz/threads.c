/* threads.c: alerts, APCs, suspension, ends and beginnings of threads. */
#include "fuzz.h"

#include <stdio.h>

static void describe_actor(const call *made, char *text, size_t size)
{
    snprintf(text, size, "A%u%s", made->target, made->kernel ? " (kernel mode)" : "");
}

static void describe_nothing(const call *made, char *text, size_t size)
{
    (void)made;
    text[0] = 0;
    (void)size;
}

static bool choose_alive(call *made)
{
    made->target = made->a % ACTORS;
    return model.actors[made->target].alive;
}

/* A target whose suspension or end takes effect where it is. */
static bool choose_free(call *made)
{
    const model_actor *target = &model.actors[made->a % ACTORS];

    return choose_alive(made) && !holds_anything(made->target) && target->waiting != FOR_LOCK &&
           target->waiting != FOR_CONDITION && target->waiting != FOR_RUNDOWN;
}

/* Alerts. */

static bool predict_alert(call *made)
{
    unsigned mode = made->kernel ? KernelMode : UserMode;

    if (!choose_alive(made))
        return false;
    intptr_t previous = model.actors[made->target].alerted[mode];
    model.actors[made->target].alerted[mode] = true;
    look_for_alerts(made->target);
    end_call(made->caller, STATUS_SUCCESS, made->other ? previous : 0);
    return true;
}

static void perform_alert(call *made)
{
    BOOLEAN previous = FALSE;

    made->status = STATUS_SUCCESS;
    if (made->kernel || made->other)
        previous = KeAlertThread(thread_of(made->target), made->kernel ? KernelMode : UserMode);
    else
        made->status = NtAlertThread(things.handles[A0 + made->target]);
    made->value = made->other ? previous : 0;
}

static bool predict_test_alert(call *made)
{
    model_actor *self = &model.actors[made->caller];
    unsigned mode = made->kernel ? KernelMode : UserMode;
    bool alerted = self->alerted[mode];

    self->alerted[mode] = false;
    if (made->kernel) {
        end_call(made->caller, STATUS_SUCCESS, alerted);
        return true;
    }
    if (!alerted)
        run_apcs(made->caller);
    end_call(made->caller, alerted ? STATUS_ALERTED : STATUS_SUCCESS, 0);
    return true;
}

static void perform_test_alert(call *made)
{
    made->status = made->kernel ? STATUS_SUCCESS : NtTestAlert();
    made->value = made->kernel ? KeTestAlertThread(KernelMode) : 0;
}

static bool predict_queue_apc(call *made)
{
    model_actor *target;

    if (!choose_alive(made))
        return false;
    target = &model.actors[made->target];
    if (target->apc_count == MOST_APCS)
        return false;
    target->apcs[target->apc_count++] = made->b;
    look_for_alerts(made->target);
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_queue_apc(call *made)
{
    made->value = 0;
    queue_apc(made->target, made->b, &made->status);
}

/* Alerts by id. */

static bool predict_alert_by_id(call *made)
{
    if (!choose_alive(made))
        return false;
    model_actor *target = &model.actors[made->target];
    if (target->waiting == FOR_WORD || target->waiting == FOR_LOCK || target->waiting == FOR_CONDITION)
        target->may_be_alerted_by_id = true;
    target->alerted_by_id = true;
    look_for_alerts(made->target);
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_alert_by_id(call *made)
{
    made->status = NtAlertThreadByThreadId(id_of(made->target));
    made->value = 0;
}

static bool predict_wait_for_alert(call *made)
{
    model_actor *self = &model.actors[made->caller];

    if (self->may_be_alerted_by_id) { /* any pending alert is consumed: then the state is known again */
        self->may_be_alerted_by_id = false;
        self->alerted_by_id = false;
        made->manner = 1;
        end_call(made->caller, STATUS_SUCCESS, 0);
    } else if (self->alerted_by_id) {
        self->alerted_by_id = false;
        end_call(made->caller, STATUS_ALERTED, 0);
    } else if (made->poll) {
        end_call(made->caller, STATUS_TIMEOUT, 0);
    } else {
        begin_wait(made->caller, FOR_ALERT);
    }
    return true;
}

static void perform_wait_for_alert(call *made)
{
    LARGE_INTEGER none = {.QuadPart = 0};

    made->value = 0;
    if (made->manner == 1) {
        NtWaitForAlertByThreadId(NULL, &none);
        made->status = STATUS_SUCCESS;
        return;
    }
    made->status = NtWaitForAlertByThreadId(made, timeout_of(made));
}

/* Suspension. */

static bool predict_suspend(call *made)
{
    if (!choose_free(made) || model.actors[made->target].suspended == MOST_SUSPENSIONS)
        return false;
    end_call(made->caller, STATUS_SUCCESS, (intptr_t)model.actors[made->target].suspended);
    suspend(made->target);
    return true;
}

static void perform_suspend(call *made)
{
    ULONG previous = 99;

    made->status = STATUS_SUCCESS;
    if (made->kernel)
        previous = KeSuspendThread(thread_of(made->target));
    else
        made->status = NtSuspendThread(things.handles[A0 + made->target], &previous);
    made->value = (intptr_t)previous;
}

static bool predict_resume(call *made)
{
    if (!choose_alive(made))
        return false;
    end_call(made->caller, STATUS_SUCCESS, (intptr_t)model.actors[made->target].suspended);
    resume(made->target);
    return true;
}

static void perform_resume(call *made)
{
    ULONG previous = 99;

    made->status = STATUS_SUCCESS;
    if (made->kernel)
        previous = KeResumeThread(thread_of(made->target));
    else
        made->status = NtResumeThread(things.handles[A0 + made->target], &previous);
    made->value = (intptr_t)previous;
}

/* Ends and beginnings. */

static bool predict_exit(call *made)
{
    if (holds_anything(made->caller))
        return false;
    end_call(made->caller, STATUS_SUCCESS, 0);
    end_actor(made->caller);
    return true;
}

static void perform_exit(call *made)
{
    made->ends_thread = true;
    if (made->other)
        NtTerminateThread(NtCurrentThread(), STATUS_SUCCESS);
}

/* Rarely: the host keeps some memory of each terminated thread. */
static bool predict_terminate(call *made)
{
    if (made->b % 4 != 0 || !choose_free(made) || made->target == made->caller)
        return false;
    end_call(made->caller, STATUS_SUCCESS, 0);
    end_actor(made->target);
    return true;
}

static void perform_terminate(call *made)
{
    made->status = NtTerminateThread(things.handles[A0 + made->target], STATUS_SUCCESS);
    made->value = 0;
}

static bool is_waited_for(unsigned object)
{
    for (unsigned i = 0; i < ACTORS; i++)
        for (unsigned j = 0; model.actors[i].calling && j < model.actors[i].count; j++)
            if (model.actors[i].objects[j] == object)
                return true;
    return false;
}

static bool predict_start(call *made)
{
    made->target = made->a % ACTORS;
    if (model.actors[made->target].alive || is_waited_for(A0 + made->target))
        return false;
    end_call(made->caller, STATUS_SUCCESS, 0);
    model_start(made->target);
    return true;
}

static void perform_start(call *made)
{
    forget_actor(made->target);
    start_actor(made->target);
    made->status = STATUS_SUCCESS;
    made->value = 0;
}

const operation thread_operations[] = {
    {"alert", ANYBODY, predict_alert, perform_alert, describe_actor},
    {"test alert", ACTORS_ONLY, predict_test_alert, perform_test_alert, describe_nothing},
    {"queue APC to", ANYBODY, predict_queue_apc, perform_queue_apc, describe_actor},
    {"alert by id", ANYBODY, predict_alert_by_id, perform_alert_by_id, describe_actor},
    {"wait for alert by id", ACTORS_ONLY, predict_wait_for_alert, perform_wait_for_alert, describe_nothing},
    {"suspend", ANYBODY, predict_suspend, perform_suspend, describe_actor},
    {"resume", ANYBODY, predict_resume, perform_resume, describe_actor},
    {"exit", ACTORS_ONLY, predict_exit, perform_exit, describe_nothing},
    {"terminate", ANYBODY, predict_terminate, perform_terminate, describe_actor},
    {"start", MAIN_ONLY, predict_start, perform_start, describe_actor},
};
const size_t thread_operation_count = sizeof(thread_operations) / sizeof(thread_operations[0]);
