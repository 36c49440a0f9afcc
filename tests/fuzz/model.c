/* model.c: objects and the waits for them, alerts, suspension, the end of a thread. */
#include "model.h"

#include <string.h>

#include "../../lab/models/kqueue.h"

fuzz_model model;

const char *const rule_names[RULE_COUNT] = {
#define RULE(rule) #rule,
    RULES(RULE)
#undef RULE
};

/* The lab's numbering. */
enum { EVENT_SET, EVENT_RESET, EVENT_WAIT };
enum { SEMAPHORE_RELEASE, SEMAPHORE_WAIT };
enum { MUTANT_WAIT, MUTANT_RELEASE, MUTANT_END };
enum { TIMER_EXPIRE = 3 };
enum { TIMER_SIGNALED_STATE = 1, MUTANT_OWNER_STATE = 1 };

static intptr_t operate(const model_object *object, intptr_t state[LAB_MODEL_STATE], unsigned name, unsigned actor,
                        intptr_t argument, intptr_t result)
{
    LAB_OPERATION operation = {.Thread = actor, .Name = name, .Argument = argument, .Result = result, .Returned = 1};

    memcpy(state, object->state, sizeof(object->state));
    return object->model->Apply(state, &operation);
}

bool try_apply(model_object *object, unsigned name, unsigned actor, intptr_t argument, intptr_t result)
{
    intptr_t state[LAB_MODEL_STATE];

    if (!operate(object, state, name, actor, argument, result))
        return false;
    memcpy(object->state, state, sizeof(state));
    return true;
}

intptr_t predict(model_object *object, unsigned name, unsigned actor, intptr_t argument, intptr_t low, intptr_t high)
{
    for (intptr_t result = low; result <= high; result++)
        if (try_apply(object, name, actor, argument, result))
            return result;
    mismatch("the model of a %s allows no result of \"%s\"", object->model->Name, object->model->OperationNames[name]);
}

intptr_t state_of(unsigned object)
{
    const model_object *found = &model.objects[object];

    if (object == PORT)
        return model.queues[P0].state[QUEUE_COUNT] != 0 || model.queues[P0].state[QUEUE_GONE];
    return found->state[object == T0 || object == T1 ? TIMER_SIGNALED_STATE : 0];
}

unsigned owner_of(unsigned mutant)
{
    return (unsigned)model.objects[mutant].state[MUTANT_OWNER_STATE];
}

uint64_t add_apc(uint64_t run, unsigned number)
{
    return run * 31 + number + 1;
}

static void initialize(model_object *object, const LAB_MODEL *as)
{
    memset(object, 0, sizeof(*object));
    object->model = as;
    as->Initialize(object->state);
}

void model_start(unsigned actor)
{
    memset(&model.actors[actor], 0, sizeof(model.actors[actor]));
    model.actors[actor].alive = true;
    model.actors[actor].queue = -1;
    initialize(&model.objects[A0 + actor], &LabModelNotificationEvent);
}

static void reset_objects(unsigned seed)
{
    initialize(&model.objects[E0], &LabModelNotificationEvent);
    initialize(&model.objects[E1], &LabModelSynchronizationEvent);
    initialize(&model.objects[E2], &LabModelSynchronizationEvent);
    model.objects[E0].state[0] = seed & 1;
    model.objects[E1].state[0] = (seed >> 1) & 1;
    for (unsigned i = S0; i <= S1; i++) {
        initialize(&model.objects[i], &LabModelSemaphore);
        model.objects[i].state[1] = i == S0 ? 3 : 1 + ((seed >> 2) & 1);
        model.objects[i].state[0] = (seed >> (3 + i - S0)) & 1;
    }
    initialize(&model.objects[M0], &LabModelMutant);
    initialize(&model.objects[M1], &LabModelMutant);
    initialize(&model.objects[T0], &LabModelNotificationTimer);
    initialize(&model.objects[T1], &LabModelSynchronizationTimer);
    initialize(&model.objects[LOW], &LabModelSynchronizationEvent);
    initialize(&model.objects[HIGH], &LabModelSynchronizationEvent);
}

void model_reset(unsigned seed, rule wrong)
{
    memset(&model, 0, sizeof(model));
    model.wrong = wrong;
    reset_objects(seed);
    for (unsigned i = 0; i < QUEUES; i++) {
        initialize(&model.queues[i], &LabModelNarrowQueue);
        model.queues[i].state[QUEUE_LIMIT] = 1 + ((seed >> (5 + i)) & 1) + (wrong == RULE_concurrency);
    }
    initialize(&model.locks[SRW], &LabModelRwLock);
    initialize(&model.locks[PUSH], &LabModelRwLock);
    initialize(&model.locks[SECTION], &LabModelMutant);
    initialize(&model.locks[RESOURCE], &LabModelResource);
    initialize(&model.locks[GUARDED], &LabModelRwLock);
    initialize(&model.rundown, &LabModelRundown);
    initialize(&model.list, &LabModelList);
    initialize(&model.keys, &LabModelKeyedEvent);
    for (unsigned i = 0; i < CALLERS; i++) {
        model.actors[i].alive = true;
        model.actors[i].queue = -1;
        if (i < ACTORS)
            initialize(&model.objects[A0 + i], &LabModelNotificationEvent);
    }
}

/* Waits for objects. */

/* Whether the object satisfies a wait of the actor now; then it is consumed. */
static bool consume(unsigned object, unsigned actor, bool *abandoned)
{
    model_object *found = &model.objects[object];
    bool first = found->model == &LabModelMutant && owner_of(object) == 0;

    if (object == PORT)
        return state_of(PORT) != 0;
    if (found->model != &LabModelMutant)
        return try_apply(found, found->model == &LabModelSemaphore ? SEMAPHORE_WAIT : EVENT_WAIT, actor, 0, 1);
    if (!try_apply(found, MUTANT_WAIT, actor, 0, 0)) {
        if (!try_apply(found, MUTANT_WAIT, actor, 0, 1))
            return false;
        *abandoned = model.wrong != RULE_abandonment;
    }
    if (first)
        found->owned_since = ++model.clock;
    return true;
}

static bool consume_any(model_actor *self, unsigned actor, NTSTATUS *status)
{
    for (unsigned i = 0; i < self->count; i++) {
        unsigned index = model.wrong == RULE_lowest_index ? self->count - 1 - i : i;
        bool abandoned = false;

        if (consume(self->objects[index], actor, &abandoned)) {
            *status = (NTSTATUS)((abandoned ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0) + index);
            return true;
        }
    }
    return false;
}

static bool consume_all(model_actor *self, unsigned actor, NTSTATUS *status)
{
    model_object before[MOST_WAITED];
    bool abandoned = false;

    for (unsigned i = 0; i < self->count; i++) {
        before[i] = model.objects[self->objects[i]];
        if (consume(self->objects[i], actor, &abandoned))
            continue;
        while (model.wrong != RULE_all_at_once && i-- > 0)
            model.objects[self->objects[i]] = before[i];
        return false;
    }
    *status = abandoned ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0;
    return true;
}

static bool consume_for(unsigned actor, NTSTATUS *status)
{
    model_actor *self = &model.actors[actor];

    return self->all ? consume_all(self, actor, status) : consume_any(self, actor, status);
}

static bool waits_for(const model_actor *self, unsigned object)
{
    for (unsigned i = 0; self->waiting == FOR_OBJECTS && i < self->count; i++)
        if (self->objects[i] == object)
            return self->linked || model.wrong == RULE_suspended_unlinked;
    return false;
}

/* The next in the order of arrival, or CALLERS. */
static unsigned next_waiter(unsigned object, unsigned done)
{
    bool backwards = model.wrong == RULE_wake_order;
    unsigned found = CALLERS;

    for (unsigned i = 0; i < CALLERS; i++) {
        const model_actor *self = &model.actors[i];

        if (!(done & 1u << i) && waits_for(self, object) &&
            (found == CALLERS || (self->since < model.actors[found].since) != backwards))
            found = i;
    }
    return found;
}

/* TRUE: the wait completion packet was among them, and goes to its port when the signal is over. */
static bool release_waiters(unsigned object)
{
    unsigned done = 0;
    unsigned next;
    bool packet = false;

    while ((next = next_waiter(object, done)) != CALLERS) {
        NTSTATUS status;

        done |= 1u << next;
        if (!consume_for(next, &status))
            continue;
        packet |= next == WAIT_PACKET;
        end_call(next, status, 0);
    }
    return packet;
}

void satisfy(unsigned object)
{
    if (release_waiters(object))
        insert_into_queue(P0, WAIT_PACKETS_PACKET, false);
}

NTSTATUS release_mutant(unsigned actor, unsigned mutant, intptr_t *previous)
{
    if (owner_of(mutant) != actor + 1)
        return STATUS_MUTANT_NOT_OWNED;
    *previous = predict(&model.objects[mutant], MUTANT_RELEASE, actor, 0, -MOST_RECURSIONS, 0);
    satisfy(mutant);
    return STATUS_SUCCESS;
}

intptr_t pulse(unsigned event)
{
    intptr_t previous = predict(&model.objects[event], EVENT_SET, MAIN, 0, 0, 1);

    bool packet = release_waiters(event);
    if (model.wrong != RULE_pulse_resets)
        predict(&model.objects[event], EVENT_RESET, MAIN, 0, 0, 1);
    if (packet)
        insert_into_queue(P0, WAIT_PACKETS_PACKET, false);
    return previous;
}

/* What is pending for the actor ends its wait: then TRUE. */
static bool take_pending(unsigned actor, NTSTATUS *status)
{
    model_actor *self = &model.actors[actor];
    unsigned mode = (unsigned)self->mode;

    if (!self->alertable)
        return false;
    *status = STATUS_ALERTED;
    if (self->alerted[mode]) {
        self->alerted[mode] = false;
        return true;
    }
    if (mode == UserMode && self->apc_count != 0) {
        run_apcs(actor);
        *status = STATUS_USER_APC;
        return true;
    }
    if (self->alerted[KernelMode]) {
        self->alerted[KernelMode] = false;
        return true;
    }
    return false;
}

void wait_for_objects(unsigned actor, bool poll)
{
    bool alerts_first = model.wrong != RULE_alert_first;
    NTSTATUS status;

    if ((alerts_first && take_pending(actor, &status)) || consume_for(actor, &status) ||
        (!alerts_first && take_pending(actor, &status)))
        end_call(actor, status, 0);
    else if (poll)
        end_call(actor, STATUS_TIMEOUT, 0);
    else
        begin_wait(actor, FOR_OBJECTS);
}

/* Running, waiting, ending. */

static void run_again(unsigned actor)
{
    model_actor *self = &model.actors[actor];

    if (self->queue < 0 || self->counted)
        return;
    predict(&model.queues[self->queue], QUEUE_RUN_AGAIN, actor, 0, 0, 0);
    self->counted = true;
}

static void stop_running(unsigned actor)
{
    model_actor *self = &model.actors[actor];

    if (self->queue < 0 || !self->counted || model.wrong == RULE_blocked_frees_place)
        return;
    predict(&model.queues[self->queue], QUEUE_END, actor, 0, 0, 0);
    self->counted = false;
    activate_queue((unsigned)self->queue);
}

void end_call(unsigned actor, NTSTATUS status, intptr_t value)
{
    model_actor *self = &model.actors[actor];

    self->waiting = NOT_WAITING;
    self->calling = false;
    self->told = false;
    self->deadline = 0;
    self->status = status;
    self->value = value;
    if (self->suspended == 0)
        run_again(actor);
}

void begin_wait(unsigned actor, waiting_for what)
{
    model_actor *self = &model.actors[actor];

    self->waiting = what;
    self->linked = true;
    self->told = false;
    self->since = ++model.clock;
    if (what != FOR_QUEUE)
        stop_running(actor);
}

static bool holds_up(unsigned holder, const model_actor *self, unsigned actor)
{
    switch (self->waiting) {
    case FOR_OBJECTS:
        for (unsigned i = 0; i < self->count; i++) {
            unsigned object = self->objects[i];

            if (object == A0 + holder || ((object == M0 || object == M1) && owner_of(object) == holder + 1))
                return true;
        }
        return false;
    case FOR_LOCK:
        return holds_lock(holder, self->place) ||
               (holder != actor && model.actors[holder].waiting == FOR_LOCK &&
                model.actors[holder].place == self->place && model.actors[holder].since < self->since);
    case FOR_CONDITION:
        return holder != actor && holds_lock(holder, self->place);
    case FOR_RUNDOWN:
        return model.actors[holder].protections != 0;
    default:
        return false;
    }
}

static bool is_held_up_by(unsigned actor, unsigned by, unsigned *seen)
{
    *seen |= 1u << actor;
    for (unsigned i = 0; i < ACTORS; i++) {
        if (!holds_up(i, &model.actors[actor], actor))
            continue;
        if (i == by || (!(*seen & 1u << i) && is_held_up_by(i, by, seen)))
            return true;
    }
    return false;
}

bool would_deadlock(unsigned actor, waiting_for what)
{
    model_actor *self = &model.actors[actor];
    waiting_for before = self->waiting;
    unsigned seen = 0;

    self->waiting = what;
    self->since = model.clock + 1;
    bool found = is_held_up_by(actor, actor, &seen);
    self->waiting = before;
    return found;
}

/* Alerts, APCs. */

void run_apcs(unsigned actor)
{
    model_actor *self = &model.actors[actor];

    for (unsigned i = 0; i < self->apc_count; i++)
        self->apcs_run =
            add_apc(self->apcs_run, self->apcs[model.wrong == RULE_apc_order ? self->apc_count - 1 - i : i]);
    self->apc_count = 0;
}

void look_for_alerts(unsigned actor)
{
    model_actor *self = &model.actors[actor];
    bool alertable = self->waiting == FOR_OBJECTS || self->waiting == FOR_QUEUE || self->waiting == FOR_KEY;
    NTSTATUS status;

    if (self->suspended != 0)
        return;
    if (self->waiting == FOR_ALERT && self->alerted_by_id) {
        self->alerted_by_id = false;
        end_call(actor, STATUS_ALERTED, 0);
    } else if (alertable && take_pending(actor, &status)) {
        end_call(actor, status, 0);
    }
}

/* Suspension: off every list, and again to the end of it. */

void suspend(unsigned actor)
{
    model_actor *self = &model.actors[actor];

    if (self->suspended++ != 0)
        return;
    if (self->waiting == FOR_OBJECTS || self->waiting == FOR_QUEUE)
        self->linked = false;
    if (self->waiting == NOT_WAITING)
        stop_running(actor);
    if (model.wrong == RULE_deadline_stays)
        self->deadline = 0;
}

/* A wait for all objects does not restart, it continues: there the objects take precedence over an alert. */
static void resume_wait_for_objects(unsigned actor)
{
    model_actor *self = &model.actors[actor];
    bool passed = self->deadline != 0 && self->deadline <= model.hour;
    NTSTATUS status;

    if (self->all && consume_for(actor, &status)) {
        end_call(actor, status, 0);
        return;
    }
    wait_for_objects(actor, passed);
    self->times_out = self->waiting == NOT_WAITING && self->status == STATUS_TIMEOUT;
}

void resume(unsigned actor)
{
    model_actor *self = &model.actors[actor];

    if (self->suspended == 0 || --self->suspended != 0)
        return;
    if (self->told) {
        end_call(actor, STATUS_SUCCESS, 0);
        return;
    }
    switch (self->waiting) {
    case NOT_WAITING:
        run_again(actor);
        break;
    case FOR_OBJECTS:
        resume_wait_for_objects(actor);
        break;
    case FOR_QUEUE:
        remove_from_queue(actor, false);
        break;
    default:
        look_for_alerts(actor);
        break;
    }
}

/* Time. */

static bool is_taken(unsigned hour)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (model.actors[i].deadline == hour)
            return true;
    return model.due[0] == hour || model.due[1] == hour;
}

unsigned choose_hour(unsigned how_far)
{
    unsigned hour = model.hour + 1 + how_far;

    while (is_taken(hour))
        hour++;
    return hour;
}

static void keep_earlier(unsigned *earliest, unsigned hour)
{
    if (hour > model.hour && (*earliest == 0 || hour < *earliest))
        *earliest = hour;
}

unsigned next_hour(void)
{
    unsigned earliest = 0;

    for (unsigned i = 0; i < ACTORS; i++)
        keep_earlier(&earliest, model.actors[i].deadline);
    keep_earlier(&earliest, model.due[0]);
    keep_earlier(&earliest, model.due[1]);
    return earliest;
}

/* A wait that is suspended times out when it is resumed. */
void pass_to_hour(unsigned hour)
{
    model.hour = hour;
    for (unsigned i = T0; i <= T1; i++) {
        if (model.due[i - T0] != hour)
            continue;
        model.due[i - T0] = 0;
        predict(&model.objects[i], TIMER_EXPIRE, MAIN, 1, 0, 0);
        satisfy(i);
    }
    for (unsigned i = 0; i < ACTORS; i++) {
        if (model.actors[i].deadline != hour || model.actors[i].suspended != 0)
            continue;
        model.actors[i].times_out = true;
        end_call(i, STATUS_TIMEOUT, 0);
    }
}

static void abandon_mutants(unsigned actor)
{
    for (;;) {
        unsigned first = OBJECTS;

        for (unsigned i = M0; i <= M1; i++)
            if (owner_of(i) == actor + 1 &&
                (first == OBJECTS || model.objects[i].owned_since < model.objects[first].owned_since))
                first = i;
        if (first == OBJECTS)
            return;
        predict(&model.objects[first], MUTANT_END, actor, 0, 0, 0);
        satisfy(first);
    }
}

void end_actor(unsigned actor)
{
    model_actor *self = &model.actors[actor];

    self->alive = false;
    self->calling = false;
    self->waiting = NOT_WAITING;
    self->suspended = 0;
    self->apc_count = 0;
    self->deadline = 0;
    abandon_mutants(actor);
    leave_queue(actor);
    predict(&model.objects[A0 + actor], EVENT_SET, actor, 0, 0, 1);
    satisfy(A0 + actor);
}
