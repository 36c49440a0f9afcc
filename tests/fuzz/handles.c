/* handles.c: duplicates with more or less access, names, wrong types, handles that are closed. */
#include "fuzz.h"

#include <stdio.h>

typedef struct slot {
    bool open;
    bool may_modify;
    unsigned object;
    HANDLE handle;
} slot;

static slot slots[HANDLE_SLOTS];
enum { EVENT_SET };

void slots_reset(void)
{
    for (unsigned i = 0; i < HANDLE_SLOTS; i++)
        slots[i].open = false;
}

static slot *choose_slot(call *made, bool open)
{
    for (unsigned i = 0; i < HANDLE_SLOTS; i++) {
        made->manner = (made->b + i) % HANDLE_SLOTS;
        if (slots[made->manner].open == open)
            return &slots[made->manner];
    }
    return NULL;
}

static bool predict_duplicate(call *made)
{
    slot *chosen = choose_slot(made, false);

    if (chosen == NULL)
        return false;
    made->target = made->a % A0;
    *chosen = (slot){.open = true, .may_modify = made->kernel, .object = made->target};
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_duplicate(call *made)
{
    slot *chosen = &slots[made->manner];

    made->status = NtDuplicateObject(NtCurrentProcess(), things.handles[made->target], NtCurrentProcess(),
                                     &chosen->handle, SYNCHRONIZE, 0, made->kernel ? DUPLICATE_SAME_ACCESS : 0);
    made->value = 0;
}

static bool predict_open(call *made)
{
    slot *chosen = choose_slot(made, false);

    made->target = made->a % 4;
    if (chosen == NULL)
        return false;
    if (made->target == 0)
        *chosen = (slot){.open = true, .may_modify = true, .object = E0};
    static const NTSTATUS statuses[] = {STATUS_SUCCESS, STATUS_OBJECT_TYPE_MISMATCH, STATUS_OBJECT_NAME_NOT_FOUND,
                                        STATUS_INVALID_PARAMETER};
    end_call(made->caller, statuses[made->target], 0);
    return true;
}

/* E0 by its name; as another type; by an unknown name; without a name. */
static void perform_open(call *made)
{
    static WCHAR right[] = u"\\BaseNamedObjects\\fuzz E0", wrong[] = u"\\BaseNamedObjects\\fuzz E9";
    PWSTR text = made->target == 2 ? wrong : right;
    UNICODE_STRING name = {.Buffer = text, .Length = sizeof(right) - sizeof(WCHAR), .MaximumLength = sizeof(right)};
    OBJECT_ATTRIBUTES attributes;
    HANDLE handle = NULL;

    InitializeObjectAttributes(&attributes, &name, OBJ_CASE_INSENSITIVE, NULL, NULL);
    if (made->target == 1)
        made->status = NtOpenSemaphore(&handle, SEMAPHORE_ALL_ACCESS, &attributes);
    else
        made->status = NtOpenEvent(&handle, EVENT_ALL_ACCESS, made->target == 3 ? NULL : &attributes);
    if (NT_SUCCESS(made->status))
        slots[made->manner].handle = handle;
    made->value = 0;
}

/* Closing it again finds nothing: no handle is created in between. */
static bool predict_close(call *made)
{
    slot *chosen = choose_slot(made, true);

    if (chosen == NULL)
        return false;
    chosen->open = false;
    end_call(made->caller, STATUS_SUCCESS, STATUS_INVALID_HANDLE);
    return true;
}

static void perform_close(call *made)
{
    made->status = NtClose(slots[made->manner].handle);
    made->value = NtClose(slots[made->manner].handle);
}

static bool predict_set(call *made)
{
    slot *chosen = choose_slot(made, true);
    NTSTATUS status = STATUS_SUCCESS;
    intptr_t previous = 0;

    if (chosen == NULL)
        return false;
    if (chosen->object > E2) {
        status = STATUS_OBJECT_TYPE_MISMATCH;
    } else if (!chosen->may_modify) {
        status = STATUS_ACCESS_DENIED;
    } else {
        previous = predict(&model.objects[chosen->object], EVENT_SET, made->caller, 0, 0, 1);
        satisfy(chosen->object);
    }
    end_call(made->caller, status, previous);
    return true;
}

static void perform_set(call *made)
{
    LONG previous = 0;

    /* the two low bits of a handle are ignored */
    made->status = NtSetEvent((HANDLE)((uintptr_t)slots[made->manner].handle | (made->a & 3)), &previous);
    made->value = previous;
}

static bool predict_wait(call *made)
{
    slot *chosen = choose_slot(made, true);
    model_actor *self = &model.actors[made->caller];

    if (chosen == NULL)
        return false;
    self->objects[0] = chosen->object;
    self->count = 1;
    self->all = false;
    self->alertable = made->alertable;
    self->mode = UserMode;
    made->poll = made->poll || would_deadlock(made->caller, FOR_OBJECTS);
    wait_for_objects(made->caller, made->poll);
    return true;
}

static void perform_wait(call *made)
{
    made->status = NtWaitForSingleObject(slots[made->manner].handle, made->alertable, timeout_of(made));
    made->value = 0;
}

static void describe(const call *made, char *text, size_t size)
{
    const slot *chosen = &slots[made->manner];

    snprintf(text, size, "H%u, %s%s", made->manner, object_names[chosen->object], made->poll ? " at once" : "");
}

static void describe_open(const call *made, char *text, size_t size)
{
    static const char *const ways[] = {"E0", "E0 as a semaphore", "what does not exist", "nothing"};

    snprintf(text, size, "H%u, %s", made->manner, ways[made->target]);
}

const operation handle_operations[] = {
    {"duplicate into", ANYBODY, predict_duplicate, perform_duplicate, describe},
    {"open by name", ANYBODY, predict_open, perform_open, describe_open},
    {"close", ANYBODY, predict_close, perform_close, describe},
    {"set by", ANYBODY, predict_set, perform_set, describe},
    {"wait by", ACTORS_ONLY, predict_wait, perform_wait, describe},
};
const size_t handle_operation_count = sizeof(handle_operations) / sizeof(handle_operations[0]);
