/* user.c: keyed events, address waits, interlocked lists, rundown protection. */
#include "fuzz.h"

#include <stdio.h>

enum { LIST_PUSH, LIST_POP, LIST_FLUSH, LIST_DEPTH };
enum { RUNDOWN_ACQUIRE, RUNDOWN_RELEASE, RUNDOWN_BEGIN };
enum { RUNDOWN_CLOSED_STATE = 1 };

static void describe_target(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%u %s%s", made->target, made->alertable ? "alertable " : "", made->poll ? "at once" : "");
}

static void describe_nothing(const call *made, char *text, size_t size)
{
    (void)made;
    (void)size;
    text[0] = 0;
}

/* Keyed events. */

static bool predict_key(call *made, unsigned side)
{
    model_actor *self = &model.actors[made->caller];

    made->target = made->a % KEYS;
    self->place = made->target;
    self->manner = made->manner = side;
    self->alertable = made->alertable;
    self->mode = UserMode;
    meet_at_key(made->caller, made->poll);
    return true;
}

static bool predict_wait_key(call *made)
{
    return predict_key(made, KEYED_WAIT);
}

static bool predict_release_key(call *made)
{
    return predict_key(made, KEYED_RELEASE);
}

static void perform_key(call *made)
{
    PVOID key = (PVOID)(uintptr_t)(0x1000 + 2 * made->target);

    made->status = made->manner == KEYED_WAIT
                       ? NtWaitForKeyedEvent(things.keyed_event, key, made->alertable, timeout_of(made))
                       : NtReleaseKeyedEvent(things.keyed_event, key, made->alertable, timeout_of(made));
    made->value = 0;
}

/* Address waits. */

static bool predict_wait_word(call *made)
{
    model_actor *self = &model.actors[made->caller];

    made->target = made->a % WORDS;
    made->amount = (LONG)model.words[made->target] + (made->b % 4 == 0);
    made->alertable = false;
    self->place = made->target;
    if ((uint32_t)made->amount != model.words[made->target]) {
        end_call(made->caller, STATUS_SUCCESS, 0);
    } else if (made->poll) {
        end_call(made->caller, STATUS_TIMEOUT, 0);
    } else {
        self->may_be_alerted_by_id = true;
        begin_wait(made->caller, FOR_WORD);
    }
    return true;
}

static void perform_wait_word(call *made)
{
    uint32_t compare = (uint32_t)made->amount;

    made->status = RtlWaitOnAddress(&things.words[made->target], &compare, sizeof(compare), timeout_of(made));
    made->value = 0;
}

static bool predict_wake_word(call *made)
{
    made->target = made->a % WORDS;
    model.words[made->target] += made->alertable;
    wake_word(made->target, made->other ? ACTORS : 1);
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_wake_word(call *made)
{
    volatile uint32_t *word = &things.words[made->target];

    if (made->alertable)
        __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
    if (made->other)
        RtlWakeAddressAll((PVOID)word);
    else
        RtlWakeAddressSingle((PVOID)word);
    made->status = STATUS_SUCCESS;
    made->value = 0;
}

static void describe_wake_word(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%u%s%s", made->target, made->alertable ? ", changed" : "", made->other ? ", all" : "");
}

/* Interlocked lists. */

static bool is_in_list(unsigned entry)
{
    for (intptr_t entries = model.list.state[0]; entries != 0; entries >>= 4)
        if ((unsigned)(entries & 15) == entry)
            return true;
    return false;
}

static bool predict_push(call *made)
{
    made->target = 1 + made->a % LIST_ENTRIES;
    if (is_in_list(made->target))
        return false;
    end_call(made->caller, STATUS_SUCCESS,
             predict(&model.list, LIST_PUSH, made->caller, (intptr_t)made->target, 0, LIST_ENTRIES));
    return true;
}

static intptr_t number_of(PSLIST_ENTRY entry)
{
    return entry != NULL ? entry - things.list_entries : 0;
}

static void perform_push(call *made)
{
    made->status = STATUS_SUCCESS;
    made->value = number_of(InterlockedPushEntrySList(&things.list, &things.list_entries[made->target]));
}

static bool predict_pop(call *made)
{
    made->manner = made->b % 8 == 0 ? LIST_FLUSH : LIST_POP;
    intptr_t all = model.list.state[0];
    end_call(made->caller, STATUS_SUCCESS,
             made->manner == LIST_FLUSH ? predict(&model.list, LIST_FLUSH, made->caller, 0, all, all)
                                        : predict(&model.list, LIST_POP, made->caller, 0, 0, LIST_ENTRIES));
    return true;
}

static intptr_t flush_list(void)
{
    intptr_t all = 0;
    int shift = 0;

    for (PSLIST_ENTRY entry = InterlockedFlushSList(&things.list); entry != NULL; entry = entry->Next) {
        all |= number_of(entry) << shift;
        shift += 4;
    }
    return all;
}

static void perform_pop(call *made)
{
    made->status = STATUS_SUCCESS;
    made->value = made->manner == LIST_FLUSH ? flush_list() : number_of(InterlockedPopEntrySList(&things.list));
}

static void describe_pop(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s", made->manner == LIST_FLUSH ? "all" : "one");
}

/* Rundown protection. */

static bool predict_protect(call *made)
{
    intptr_t got = predict(&model.rundown, RUNDOWN_ACQUIRE, made->caller, 0, 0, 1);

    model.actors[made->caller].protections += got != 0;
    end_call(made->caller, STATUS_SUCCESS, got);
    return true;
}

static void perform_protect(call *made)
{
    made->status = STATUS_SUCCESS;
    made->value = ExAcquireRundownProtection(&things.rundown);
}

static bool predict_unprotect(call *made)
{
    if (model.actors[made->caller].protections == 0)
        return false;
    model.actors[made->caller].protections -= 1;
    predict(&model.rundown, RUNDOWN_RELEASE, made->caller, 0, 0, 0);
    check_rundown();
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_unprotect(call *made)
{
    ExReleaseRundownProtection(&things.rundown);
    made->status = STATUS_SUCCESS;
    made->value = 0;
}

/* One rundown; after it is complete the protection is reinitialized. */
static bool predict_run_down(call *made)
{
    bool closed = model.rundown.state[RUNDOWN_CLOSED_STATE] != 0;
    bool under_way = false;

    for (unsigned i = 0; i < ACTORS; i++)
        under_way |= model.actors[i].waiting == FOR_RUNDOWN;
    if (under_way || (!closed && would_deadlock(made->caller, FOR_RUNDOWN)))
        return false;
    made->manner = closed;
    if (closed) {
        model.rundown.model->Initialize(model.rundown.state);
        end_call(made->caller, STATUS_SUCCESS, 0);
        return true;
    }
    predict(&model.rundown, RUNDOWN_BEGIN, made->caller, 0, 0, 0);
    if (complete_rundown(made->caller))
        end_call(made->caller, STATUS_SUCCESS, 0);
    else
        begin_wait(made->caller, FOR_RUNDOWN);
    return true;
}

static void perform_run_down(call *made)
{
    if (made->manner)
        ExReInitializeRundownProtection(&things.rundown);
    else
        ExWaitForRundownProtectionRelease(&things.rundown);
    made->status = STATUS_SUCCESS;
    made->value = 0;
}

const operation user_operations[] = {
    {"wait for key", ACTORS_ONLY, predict_wait_key, perform_key, describe_target},
    {"release key", ACTORS_ONLY, predict_release_key, perform_key, describe_target},
    {"wait for word", ACTORS_ONLY, predict_wait_word, perform_wait_word, describe_target},
    {"wake word", ANYBODY, predict_wake_word, perform_wake_word, describe_wake_word},
    {"push entry", ANYBODY, predict_push, perform_push, describe_target},
    {"pop", ANYBODY, predict_pop, perform_pop, describe_pop},
    {"protect", ACTORS_ONLY, predict_protect, perform_protect, describe_nothing},
    {"unprotect", ACTORS_ONLY, predict_unprotect, perform_unprotect, describe_nothing},
    {"run down protection", ACTORS_ONLY, predict_run_down, perform_run_down, describe_nothing},
};
const size_t user_operation_count = sizeof(user_operations) / sizeof(user_operations[0]);
