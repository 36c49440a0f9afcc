/* modelwaits.c: the waits that are not for objects: queues, keys, words, locks, condition variables, rundown. */
#include "model.h"

#include "../../lab/models/kqueue.h"
#include "../../lab/models/rwlock.h"

enum { SECTION_ENTER, SECTION_LEAVE };
enum { SECTION_ENTERED = 0, SECTION_REFUSED = 2, SECTION_OWNER = 1 };
enum { RESOURCE_RELEASE = 4, RESOURCE_CONVERT = 5 };
enum { RESOURCE_OWNER = 0, RESOURCE_COUNTS = 1 };
enum { RUNDOWN_COMPLETE = 3 };
enum { KEY_ARRIVES = 0, KEY_LEAVES = 1 };

/* The actor that has waited longest, or shortest, or CALLERS. */
static unsigned pick_waiter(waiting_for what, unsigned place, int manner, bool newest)
{
    unsigned found = CALLERS;

    for (unsigned i = 0; i < ACTORS; i++) {
        const model_actor *self = &model.actors[i];

        if (self->waiting != what || !self->linked || self->told || self->place != place ||
            (manner >= 0 && self->manner != (unsigned)manner))
            continue;
        if (found == CALLERS || (self->since > model.actors[found].since) == newest)
            found = i;
    }
    return found;
}

/* Ends the wait, or ends it when it is resumed. */
static void tell(unsigned actor)
{
    if (model.actors[actor].suspended != 0)
        model.actors[actor].told = true;
    else
        end_call(actor, STATUS_SUCCESS, 0);
}

/* Queues. */

static intptr_t first_packet(unsigned queue, unsigned actor)
{
    intptr_t packet = predict(&model.queues[queue], QUEUE_REMOVE, actor, 0, 1, WAIT_PACKETS_PACKET);

    model.packets[queue][packet] = false;
    return packet;
}

static bool may_remove(unsigned queue, unsigned actor)
{
    model_object copy = model.queues[queue];

    for (intptr_t packet = 1; packet <= WAIT_PACKETS_PACKET; packet++)
        if (try_apply(&copy, QUEUE_REMOVE, actor, 0, packet))
            return true;
    return false;
}

void activate_queue(unsigned queue)
{
    for (;;) {
        unsigned next = pick_waiter(FOR_QUEUE, queue, -1, model.wrong != RULE_queue_order);

        if (next == CALLERS || !may_remove(queue, next))
            return;
        intptr_t packet = first_packet(queue, next);
        model.actors[next].counted = true;
        end_call(next, STATUS_SUCCESS, packet);
    }
}

intptr_t insert_into_queue(unsigned queue, unsigned packet, bool head)
{
    model.packets[queue][packet] = true;
    if (model.queues[queue].state[QUEUE_GONE]) /* only a wait completion packet arrives here then, and stays */
        return 0;
    intptr_t previous =
        predict(&model.queues[queue], head ? QUEUE_INSERT_HEAD : QUEUE_INSERT, MAIN, (intptr_t)packet, 0, PACKETS + 1);
    activate_queue(queue);
    if (queue == P0 && state_of(PORT) != 0)
        satisfy(PORT);
    return previous;
}

void leave_queue(unsigned actor)
{
    model_actor *self = &model.actors[actor];
    int queue = self->queue;

    if (queue < 0)
        return;
    predict(&model.queues[queue], QUEUE_END, actor, 0, 0, 0);
    self->queue = -1;
    self->counted = false;
    activate_queue((unsigned)queue);
}

static bool take_alert_before_queue(unsigned actor)
{
    model_actor *self = &model.actors[actor];

    self->waiting = FOR_QUEUE;
    look_for_alerts(actor);
    if (self->waiting == NOT_WAITING)
        return true;
    self->waiting = NOT_WAITING;
    return false;
}

static void join_queue(unsigned actor, unsigned queue)
{
    model.actors[actor].queue = (int)queue;
    model.actors[actor].counted = true;
}

void remove_from_queue(unsigned actor, bool poll)
{
    model_actor *self = &model.actors[actor];
    unsigned queue = self->place;

    if (self->queue != (int)queue)
        leave_queue(actor);
    if (take_alert_before_queue(actor))
        return;
    if (model.queues[queue].state[QUEUE_GONE]) {
        end_call(actor, STATUS_ABANDONED, 0);
    } else if (may_remove(queue, actor)) {
        join_queue(actor, queue);
        end_call(actor, STATUS_SUCCESS, first_packet(queue, actor));
    } else if (poll) {
        join_queue(actor, queue);
        predict(&model.queues[queue], QUEUE_REMOVE, actor, 0, 0, 0);
        end_call(actor, STATUS_TIMEOUT, 0);
    } else {
        predict(&model.queues[queue], QUEUE_END, actor, 0, 0, 0);
        self->queue = (int)queue;
        self->counted = false;
        begin_wait(actor, FOR_QUEUE);
    }
}

void rundown_queue(unsigned queue)
{
    predict(&model.queues[queue], QUEUE_RUNDOWN, MAIN, 0, 0, PACKETS + 1);
    for (unsigned i = 1; i <= WAIT_PACKETS_PACKET; i++)
        model.packets[queue][i] = false;
    for (unsigned i = 0; i < ACTORS; i++) {
        model_actor *self = &model.actors[i];

        if (self->queue == (int)queue) {
            self->queue = -1;
            self->counted = false;
        }
        if (self->waiting == FOR_QUEUE && self->place == queue && self->linked)
            end_call(i, STATUS_ABANDONED, 0);
    }
    if (queue == P0)
        satisfy(PORT);
}

bool associate_packet(unsigned object)
{
    model_actor *self = &model.actors[WAIT_PACKET];

    self->objects[0] = object;
    self->count = 1;
    wait_for_objects(WAIT_PACKET, false);
    if (self->waiting != NOT_WAITING)
        return false;
    insert_into_queue(P0, WAIT_PACKETS_PACKET, false);
    return true;
}

NTSTATUS cancel_packet(bool remove_signaled)
{
    if (model.actors[WAIT_PACKET].waiting != NOT_WAITING) {
        end_call(WAIT_PACKET, STATUS_SUCCESS, 0);
        return STATUS_SUCCESS;
    }
    if (!model.packets[P0][WAIT_PACKETS_PACKET])
        return STATUS_CANCELLED;
    if (!remove_signaled)
        return STATUS_PENDING;
    model.packets[P0][WAIT_PACKETS_PACKET] = false;
    if (!model.queues[P0].state[QUEUE_GONE])
        predict(&model.queues[P0], QUEUE_TAKE_OUT, MAIN, WAIT_PACKETS_PACKET, 1, 1);
    return STATUS_SUCCESS;
}

/* Keyed events: the oldest of the other side. */

static void check_meeting(unsigned key, unsigned side)
{
    unsigned other = side == KEYED_WAIT ? KEYED_RELEASE : KEYED_WAIT;

    predict(&model.keys, 2 * other + KEY_ARRIVES, MAIN, (intptr_t)key, 1, 1);
    predict(&model.keys, 2 * side + KEY_ARRIVES, MAIN, (intptr_t)key, 1, 1);
    predict(&model.keys, 2 * other + KEY_LEAVES, MAIN, (intptr_t)key, 1, 1);
    predict(&model.keys, 2 * side + KEY_LEAVES, MAIN, (intptr_t)key, 1, 1);
}

void meet_at_key(unsigned actor, bool poll)
{
    model_actor *self = &model.actors[actor];
    int other = self->manner == KEYED_WAIT ? KEYED_RELEASE : KEYED_WAIT;
    unsigned found = pick_waiter(FOR_KEY, self->place, other, model.wrong == RULE_key_order);

    if (found != CALLERS) {
        check_meeting(self->place, self->manner);
        tell(found);
        end_call(actor, STATUS_SUCCESS, 0);
        return;
    }
    self->waiting = FOR_KEY;
    look_for_alerts(actor);
    if (self->waiting == NOT_WAITING)
        return;
    self->waiting = NOT_WAITING;
    if (poll)
        end_call(actor, STATUS_TIMEOUT, 0);
    else
        begin_wait(actor, FOR_KEY);
}

void wake_word(unsigned word, unsigned most)
{
    while (most-- != 0) {
        unsigned next = pick_waiter(FOR_WORD, word, -1, model.wrong == RULE_word_order);

        if (next == CALLERS)
            return;
        tell(next);
    }
}

/* Locks. */

bool holds_exclusively(unsigned actor, unsigned lock)
{
    const intptr_t *state = model.locks[lock].state;

    return state[lock == SECTION ? SECTION_OWNER : 0] == (intptr_t)actor + 1;
}

bool holds_lock(unsigned actor, unsigned lock)
{
    if (lock == RESOURCE)
        return model.locks[lock].state[RESOURCE_COUNTS + actor] != 0;
    return holds_exclusively(actor, lock) || model.actors[actor].shares[lock] != 0;
}

bool holds_anything(unsigned actor)
{
    for (unsigned i = 0; i < LOCKS; i++)
        if (holds_lock(actor, i))
            return true;
    return model.actors[actor].protections != 0;
}

bool has_waiters(unsigned lock)
{
    return pick_waiter(FOR_LOCK, lock, -1, false) != CALLERS;
}

static bool take_lock(unsigned actor, unsigned lock, unsigned manner)
{
    model_object *object = &model.locks[lock];

    switch (lock) {
    case SECTION:
        return try_apply(object, SECTION_ENTER, actor, 0, SECTION_ENTERED);
    case RESOURCE:
        return try_apply(object, manner, actor, 0, 1);
    default:
        if (!try_apply(object, manner == EXCLUSIVE ? ACQUIRE_EXCLUSIVE : ACQUIRE_SHARED, actor, 0, 1))
            return false;
        model.actors[actor].shares[lock] += manner != EXCLUSIVE;
        return true;
    }
}

/* Whether it waits because others already wait. */
static bool waits_behind(unsigned actor, unsigned lock, unsigned manner)
{
    bool writer_waits = pick_waiter(FOR_LOCK, lock, EXCLUSIVE, false) != CALLERS;

    switch (lock) {
    case SECTION:
        return false;
    case RESOURCE:
        if (manner == EXCLUSIVE) /* a sharer waits for itself */
            return holds_lock(actor, lock) && !holds_exclusively(actor, lock);
        if (manner == STARVE_EXCLUSIVE || holds_exclusively(actor, lock))
            return false;
        return writer_waits && (manner == WAIT_FOR_EXCLUSIVE || !holds_lock(actor, lock));
    default:
        return model.wrong == RULE_sharers_wait ? writer_waits && manner == EXCLUSIVE : has_waiters(lock);
    }
}

bool can_acquire(unsigned actor)
{
    const model_actor *self = &model.actors[actor];
    fuzz_model before = model;
    bool can = !waits_behind(actor, self->place, self->manner) && take_lock(actor, self->place, self->manner);

    model = before;
    return can;
}

/* The lab's models decide this too. */
static void refuse_lock(unsigned actor)
{
    const model_actor *self = &model.actors[actor];
    unsigned try = self->manner == EXCLUSIVE ? TRY_EXCLUSIVE : TRY_SHARED;

    if (self->place == SECTION)
        predict(&model.locks[SECTION], SECTION_ENTER, actor, 0, SECTION_REFUSED, SECTION_REFUSED);
    else
        predict(&model.locks[self->place], self->place == RESOURCE ? self->manner : try, actor, 0, 0, 0);
    end_call(actor, STATUS_SUCCESS, 0);
}

void acquire_lock(unsigned actor, bool poll)
{
    model_actor *self = &model.actors[actor];

    if (!waits_behind(actor, self->place, self->manner) && take_lock(actor, self->place, self->manner))
        end_call(actor, STATUS_SUCCESS, 1);
    else if (poll)
        refuse_lock(actor);
    else
        begin_wait(actor, FOR_LOCK);
}

static unsigned pick_sharer(unsigned lock)
{
    unsigned found = CALLERS;

    for (int manner = SHARED; manner < MANNERS; manner++) {
        unsigned next = pick_waiter(FOR_LOCK, lock, manner, false);

        if (next != CALLERS && (found == CALLERS || model.actors[next].since < model.actors[found].since))
            found = next;
    }
    return found;
}

static bool grant_to(unsigned actor, unsigned lock)
{
    if (actor == CALLERS || !take_lock(actor, lock, model.actors[actor].manner))
        return false;
    end_call(actor, STATUS_SUCCESS, 1);
    return true;
}

/* A resource that its exclusive owner releases goes to all waiting sharers; otherwise the order of arrival counts. */
void grant_lock(unsigned lock, bool sharers_first)
{
    if (lock == RESOURCE) {
        if (model.wrong == RULE_resource_turns)
            sharers_first = !sharers_first;
        if (!sharers_first && grant_to(pick_waiter(FOR_LOCK, lock, EXCLUSIVE, false), lock))
            return;
        bool shared = false;
        while (grant_to(pick_sharer(lock), lock))
            shared = true;
        if (!shared)
            grant_to(pick_waiter(FOR_LOCK, lock, EXCLUSIVE, false), lock);
        return;
    }
    while (grant_to(pick_waiter(FOR_LOCK, lock, -1, lock == GUARDED && model.wrong == RULE_mutex_order), lock)) {
    }
}

static bool is_free_resource(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (holds_lock(i, RESOURCE))
            return false;
    return true;
}

void release_lock(unsigned actor, unsigned lock)
{
    model_object *object = &model.locks[lock];
    bool exclusive = holds_exclusively(actor, lock);

    switch (lock) {
    case SECTION:
        predict(object, SECTION_LEAVE, actor, 0, -MOST_RECURSIONS, 0);
        break;
    case RESOURCE:
        predict(object, RESOURCE_RELEASE, actor, 0, 0, 0);
        break;
    default:
        predict(object, exclusive ? RELEASE_EXCLUSIVE : RELEASE_SHARED, actor, 0, 1, 1);
        model.actors[actor].shares[lock] -= !exclusive;
        break;
    }
    if (lock != RESOURCE || is_free_resource())
        grant_lock(lock, exclusive);
}

/* Condition variables: each has its lock. */

unsigned count_sleepers(unsigned lock)
{
    unsigned count = 0;

    for (unsigned i = 0; i < ACTORS; i++)
        count += model.actors[i].waiting == FOR_CONDITION && model.actors[i].place == lock;
    return count;
}

bool wake_sleeper(unsigned lock)
{
    unsigned next = pick_waiter(FOR_CONDITION, lock, -1, false);

    if (next == CALLERS)
        return false;
    acquire_lock(next, false);
    return true;
}

bool complete_rundown(unsigned actor)
{
    return try_apply(&model.rundown, RUNDOWN_COMPLETE, actor, 0, 0);
}

void check_rundown(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (model.actors[i].waiting == FOR_RUNDOWN && complete_rundown(i))
            end_call(i, STATUS_SUCCESS, 0);
}
