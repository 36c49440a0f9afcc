/* queues.c: a KQUEUE and a completion port. */
#include "fuzz.h"

#include <stdio.h>

#include "../../lab/models/kqueue.h"

static const char *const queue_names[QUEUES] = {"Q0", "P0"};

static void describe_packet(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s: %d%s", queue_names[made->target], (int)made->amount, made->manner ? " at the head" : "");
}

static void describe_remove(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s %s%s", queue_names[made->target], made->alertable ? "alertable " : "",
             made->poll ? "at once" : "");
}

static void describe_queue(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s", queue_names[made->target]);
}

static bool choose_queue(call *made)
{
    made->target = made->a % QUEUES;
    return !model.queues[made->target].state[QUEUE_GONE];
}

/* A packet that was given to an actor which has not returned yet is not free. */
static bool is_free(unsigned queue, unsigned packet)
{
    if (model.packets[queue][packet])
        return false;
    for (unsigned i = 0; i < ACTORS; i++) {
        const model_actor *self = &model.actors[i];

        if (self->suspended != 0 && self->value == (intptr_t)packet)
            return false;
    }
    return true;
}

static bool choose_packet(call *made)
{
    for (unsigned i = 0; i < PACKETS; i++) {
        unsigned packet = 1 + (made->b + i) % PACKETS;

        if (is_free(made->target, packet)) {
            made->amount = (LONG)packet;
            return true;
        }
    }
    return false;
}

static bool predict_insert(call *made)
{
    if (!choose_queue(made) || !choose_packet(made))
        return false;
    made->manner = made->target == Q0 && made->other;
    intptr_t previous = insert_into_queue(made->target, (unsigned)made->amount, made->manner != 0);
    end_call(made->caller, STATUS_SUCCESS, made->target == Q0 ? previous : 0);
    return true;
}

static void perform_insert(call *made)
{
    PLIST_ENTRY entry = &things.entries[made->amount];

    made->status = STATUS_SUCCESS;
    made->value = 0;
    if (made->target == P0)
        made->status = NtSetIoCompletion(things.port, (PVOID)(intptr_t)made->amount, things.port, STATUS_SUCCESS, 7);
    else
        made->value = made->manner ? KeInsertHeadQueue(&things.queue, entry) : KeInsertQueue(&things.queue, entry);
}

static bool predict_remove(call *made)
{
    model_actor *self = &model.actors[made->caller];

    if (!choose_queue(made))
        return false;
    made->alertable = made->alertable && made->target == P0;
    self->place = made->target;
    self->alertable = made->alertable;
    self->mode = UserMode;
    remove_from_queue(made->caller, made->poll);
    return true;
}

static void remove_entry(call *made)
{
    PLIST_ENTRY entry = KeRemoveQueue(&things.queue, KernelMode, timeout_of(made));
    NTSTATUS status = (NTSTATUS)(LONG_PTR)entry;

    if (status == STATUS_TIMEOUT || status == STATUS_ABANDONED) {
        made->status = status;
        made->value = 0;
        return;
    }
    made->status = STATUS_SUCCESS;
    made->value = entry - things.entries;
}

static void remove_packet(call *made)
{
    FILE_IO_COMPLETION_INFORMATION information = {0};
    ULONG removed = 99;

    made->status = NtRemoveIoCompletionEx(things.port, &information, 1, &removed, timeout_of(made), made->alertable);
    made->value = made->status == STATUS_SUCCESS ? (intptr_t)information.KeyContext : 0;
    if (made->status == STATUS_SUCCESS && (removed != 1 || information.IoStatusBlock.Information != 7))
        made->value = -1;
}

static void perform_remove(call *made)
{
    if (made->target == Q0)
        remove_entry(made);
    else
        remove_packet(made);
}

static bool predict_close(call *made)
{
    if (!choose_queue(made) || (made->b & 3) != 0)
        return false;
    if (made->target == P0)
        things.handles[PORT] = NULL;
    rundown_queue(made->target);
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_close(call *made)
{
    made->status = STATUS_SUCCESS;
    made->value = 0;
    if (made->target == P0)
        made->status = NtClose(things.port);
    else
        KeRundownQueue(&things.queue);
}

/* A wait completion packet. */

static bool predict_associate(call *made)
{
    made->target = made->a % (A0 + ACTORS);
    if (model.queues[P0].state[QUEUE_GONE])
        return false;
    if (made->target == M0 || made->target == M1)
        end_call(made->caller, STATUS_INVALID_PARAMETER_3, 0);
    else if (model.actors[WAIT_PACKET].waiting != NOT_WAITING || model.packets[P0][WAIT_PACKETS_PACKET])
        end_call(made->caller, STATUS_INVALID_PARAMETER_1, 0);
    else
        end_call(made->caller, STATUS_SUCCESS, associate_packet(made->target));
    return true;
}

static void perform_associate(call *made)
{
    BOOLEAN signaled = FALSE;

    made->status =
        NtAssociateWaitCompletionPacket(things.wait_packet, things.port, things.handles[made->target],
                                        (PVOID)(uintptr_t)WAIT_PACKETS_PACKET, NULL, STATUS_SUCCESS, 7, &signaled);
    made->value = signaled;
}

static void describe_associate(const call *made, char *text, size_t size)
{
    snprintf(text, size, "with P0 for %s", object_names[made->target]);
}

static bool predict_cancel(call *made)
{
    NTSTATUS status = cancel_packet(made->other);

    end_call(made->caller, status, 0);
    return true;
}

static void perform_cancel(call *made)
{
    made->status = NtCancelWaitCompletionPacket(things.wait_packet, made->other);
    made->value = 0;
}

static void describe_cancel(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s", made->other ? "also from the queue" : "");
}

const operation queue_operations[] = {
    {"insert into", ANYBODY, predict_insert, perform_insert, describe_packet},
    {"remove from", ACTORS_ONLY, predict_remove, perform_remove, describe_remove},
    {"run down", ANYBODY, predict_close, perform_close, describe_queue},
    {"associate the packet", ANYBODY, predict_associate, perform_associate, describe_associate},
    {"cancel the packet", ANYBODY, predict_cancel, perform_cancel, describe_cancel},
};
const size_t queue_operation_count = sizeof(queue_operations) / sizeof(queue_operations[0]);
