/* run.c: an input has one byte for the initial states and four for each call; any bytes are valid. */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lab/models/kqueue.h"

/* A packet for a shared object is delivered by another thread, soon; in the model at once. Inputs acquire mutants in
   any order. Before the constructors of the test support, which would choose a session. */
__attribute__((constructor(101))) static void choose_settings(void)
{
    setenv("INTERLOCK_SESSION", "private", 1);
    setenv("INTERLOCK_LOCK_ORDER", "0", 1);
}

rule wrong_rule = NO_RULE;
bool print_as_it_runs;
void (*mismatch_hook)(void);
unsigned long steps_made;

enum { FLAG_POLL = 0x08, FLAG_ALERTABLE = 0x10, FLAG_KERNEL = 0x20, FLAG_OTHER = 0x40, FLAG_TIMED = 0x80 };

static const struct {
    const operation *operations;
    const size_t *count;
} families[] = {
    {object_operations, &object_operation_count}, {thread_operations, &thread_operation_count},
    {queue_operations, &queue_operation_count},   {user_operations, &user_operation_count},
    {lock_operations, &lock_operation_count},     {handle_operations, &handle_operation_count},
    {clock_operations, &clock_operation_count},   {pair_operations, &pair_operation_count},
};

static call history[16 * MOST_STEPS];
static char descriptions[16 * MOST_STEPS][96];
static unsigned step_count;

static void describe(unsigned step)
{
    const call *made = &history[step];
    char arguments[72];

    made->operation->describe(made, arguments, sizeof(arguments));
    if (made->caller == MAIN)
        snprintf(descriptions[step], sizeof(descriptions[step]), "main: %s %s", made->operation->name, arguments);
    else
        snprintf(descriptions[step], sizeof(descriptions[step]), "A%u: %s %s", made->caller, made->operation->name,
                 arguments);
}

static void print_actor(unsigned number)
{
    static const char *const waits[] = {"not waiting", "objects",        "a queue", "a key",
                                        "a word",      "an alert by id", "a lock",  "a condition variable",
                                        "a rundown"};
    const model_actor *self = &model.actors[number];

    fprintf(stderr, "  A%u %s, %s%s", number, self->alive ? "lives" : "has ended", self->calling ? "waits for " : "",
            waits[self->waiting]);
    for (unsigned i = 0; self->waiting == FOR_OBJECTS && i < self->count; i++)
        fprintf(stderr, " %s", object_names[self->objects[i]]);
    fprintf(stderr, "%s", self->all && self->waiting == FOR_OBJECTS ? " (all)" : "");
    if (self->suspended != 0)
        fprintf(stderr, ", suspended %u times", self->suspended);
    fprintf(stderr, "\n");
}

_Noreturn void mismatch(const char *format, ...)
{
    va_list arguments;

    if (mismatch_hook != NULL)
        mismatch_hook();
    fprintf(stderr, "\nThe library and the model disagree after these calls:\n");
    for (unsigned i = 0; i < step_count; i++)
        fprintf(stderr, "%4u  %s\n", i + 1, descriptions[i]);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nBy the model now:\n");
    for (unsigned i = 0; i < ACTORS; i++)
        print_actor(i);
    for (unsigned i = 0; i < A0; i++)
        fprintf(stderr, "  %s %ld", object_names[i], (long)state_of(i));
    fprintf(stderr, "\n");
    abort();
}

static bool can_call(unsigned actor)
{
    const model_actor *self = &model.actors[actor];

    return self->alive && !self->calling && self->suspended == 0;
}

/* The actor that makes the call, or the next one that can; CALLERS: none. */
static unsigned choose_caller(const operation *made, unsigned asked)
{
    if (made->who == MAIN_ONLY)
        return MAIN;
    if (made->who == ANYBODY && asked % CALLERS == MAIN)
        return MAIN;
    for (unsigned i = 0; i < ACTORS; i++)
        if (can_call((asked + i) % ACTORS))
            return (asked + i) % ACTORS;
    return made->who == ANYBODY ? MAIN : CALLERS;
}

/* FALSE: not a call. */
static bool make(call made)
{
    if (!made.forced)
        made.caller = choose_caller(made.operation, made.caller);
    if (made.caller == CALLERS || step_count == sizeof(history) / sizeof(history[0]))
        return false;
    model.actors[made.caller].calling = true;
    if (!made.operation->predict(&made)) {
        model.actors[made.caller].calling = false;
        return false;
    }
    history[step_count] = made;
    describe(step_count);
    step_count++;
    if (print_as_it_runs)
        fprintf(stderr, "%4u  %s\n", step_count, descriptions[step_count - 1]);
    dispatch(&made);
    check_states();
    steps_made++;
    return true;
}

unsigned family_count(void)
{
    return sizeof(families) / sizeof(families[0]);
}

void find_family(unsigned family, unsigned *first, unsigned *count)
{
    *first = 0;
    for (unsigned i = 0; i < family; i++)
        *first += (unsigned)*families[i].count;
    *count = (unsigned)*families[family].count;
}

static const operation *operation_numbered(unsigned number)
{
    size_t total = 0;

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        total += *families[i].count;
    number %= total;
    for (size_t i = 0;; i++) {
        if (number < *families[i].count)
            return &families[i].operations[number];
        number -= (unsigned)*families[i].count;
    }
}

static const operation *operation_named(const char *name)
{
    for (unsigned i = 0;; i++)
        if (strcmp(operation_numbered(i)->name, name) == 0)
            return operation_numbered(i);
}

static void make_decoded(const uint8_t bytes[CALL_BYTES])
{
    make((call){.operation = operation_numbered(bytes[0]),
                .caller = bytes[1] & 7,
                .poll = bytes[1] & FLAG_POLL,
                .alertable = bytes[1] & FLAG_ALERTABLE,
                .kernel = bytes[1] & FLAG_KERNEL,
                .other = bytes[1] & FLAG_OTHER,
                .timed = bytes[1] & FLAG_TIMED,
                .a = bytes[2],
                .b = bytes[3]});
}

/* Until no thread waits and nothing is held: these calls are compared as well. */

static bool make_named(const char *name, unsigned caller, uint8_t a, uint8_t b)
{
    return make((call){.operation = operation_named(name), .caller = caller, .forced = true, .a = a, .b = b});
}

/* Actors stay from input to input: what is pending would remain for the next input. */
static bool clear_pending(unsigned number)
{
    const model_actor *self = &model.actors[number];
    call made = {.operation = operation_named("test alert"), .caller = number, .forced = true, .poll = true};

    if (!can_call(number))
        return false;
    made.kernel = self->alerted[KernelMode];
    if (made.kernel || self->alerted[UserMode] || self->apc_count != 0)
        return make(made);
    made.operation = operation_named("wait for alert by id");
    return (self->alerted_by_id || self->may_be_alerted_by_id) && make(made);
}

static bool let_object_go(unsigned object)
{
    if (object <= E2)
        return make_named("set", MAIN, (uint8_t)(object - E0), 0);
    if (object <= S1)
        return state_of(object) == 0 && make_named("release semaphore", MAIN, (uint8_t)(object - S0), 0);
    if (object == T0 || object == T1)
        return make_named("set timer", MAIN, (uint8_t)(object - T0), 0);
    if (object == PORT)
        return make_named("run down", MAIN, P0, 0);
    if (object == LOW || object == HIGH)
        return make_named("set a side of the pair", MAIN, (uint8_t)(object - LOW), 0);
    return object >= A0 && can_call(object - A0) && make_named("exit", object - A0, 0, 0);
}

static bool let_objects_go(unsigned number)
{
    const model_actor *self = &model.actors[number];

    for (unsigned i = 0; self->waiting == FOR_OBJECTS && i < self->count; i++)
        if (state_of(self->objects[i]) <= 0 && let_object_go(self->objects[i]))
            return true;
    return false;
}

static bool let_go(unsigned number)
{
    const model_actor *self = &model.actors[number];

    switch (self->waiting) {
    case FOR_OBJECTS:
        return let_objects_go(number);
    case FOR_QUEUE:
        return make_named("run down", MAIN, (uint8_t)self->place, 0);
    case FOR_ALERT:
        return make_named("alert by id", MAIN, (uint8_t)number, 0);
    case FOR_WORD:
        return make_named("wake word", MAIN, (uint8_t)self->place, 0);
    case FOR_CONDITION:
        return make_named("wake sleepers", MAIN, self->place == SECTION, 0);
    case FOR_KEY:
        return make_named(self->manner == KEYED_WAIT ? "release key" : "wait for key", MAIN, (uint8_t)self->place, 0);
    default:
        return false; /* its holder releases it */
    }
}

static bool give_back(unsigned number)
{
    if (!can_call(number))
        return false;
    for (unsigned i = M0; i <= M1; i++)
        if (owner_of(i) == number + 1)
            return make_named("release mutant", number, (uint8_t)(i - M0), 0);
    return make_named("release", number, 0, 0) ||
           (model.actors[number].protections != 0 && make_named("unprotect", number, 0, 0));
}

/* One call toward that state. */
static bool make_one_to_finish(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (model.actors[i].suspended != 0)
            return make_named("resume", MAIN, (uint8_t)i, 0);
    for (unsigned i = 0; i < ACTORS; i++)
        if (give_back(i))
            return true;
    for (unsigned i = 0; i < ACTORS; i++)
        if (model.actors[i].calling && let_go(i))
            return true;
    if (model.actors[WAIT_PACKET].waiting != NOT_WAITING)
        return make_named("cancel the packet", MAIN, 0, 0);
    for (unsigned i = 0; i < QUEUES; i++)
        if (!model.queues[i].state[QUEUE_GONE])
            return make_named("run down", MAIN, (uint8_t)i, 0);
    for (unsigned i = 0; i < ACTORS; i++)
        if (clear_pending(i))
            return true;
    return make_named("close", MAIN, 0, 0);
}

static void finish(void)
{
    while (make_one_to_finish()) {
    }
    for (unsigned i = 0; i < ACTORS; i++)
        if (model.actors[i].calling || owner_of(M0) != 0 || owner_of(M1) != 0 || holds_anything(i))
            mismatch("the end is not one: somebody waits or holds something");
}

static void reset_actors(void)
{
    static bool started[ACTORS];

    watch_actors();
    for (unsigned i = 0; i < ACTORS; i++) {
        if (started[i] && model.actors[i].alive) {
            refresh_actor(i);
            continue;
        }
        if (started[i])
            forget_actor(i);
        start_actor(i);
        started[i] = true;
    }
}

void run_input(const uint8_t *data, size_t size)
{
    ULONG handles;

    step_count = 0;
    reset_actors();
    model_reset(size != 0 ? data[0] : 0, wrong_rule);
    handles = count_handles();
    begin_time();
    things_create();
    for (size_t at = 1; at + CALL_BYTES <= size && step_count < MOST_STEPS; at += CALL_BYTES)
        make_decoded(&data[at]);
    finish();
    things_delete();
    if (count_handles() != handles)
        mismatch("%u handles were open before, now %u", (unsigned)handles, (unsigned)count_handles());
}
