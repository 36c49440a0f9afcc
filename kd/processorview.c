/* processorview.c: `interlock qlocks`, `interlock dpcs` and `interlock timers`: the processors. */
#include "kd.h"
#include "views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ke/timer.h"

#define LOCK_QUEUE_BITS ((kd_address)7)

bool kd_read_processor(kd_snapshot *snapshot, uint32_t number, kd_address *address, KPRCB *prcb)
{
    kd_address table = kd_root(snapshot->target, "KiProcessorBlock", NULL);

    if (kd_read(snapshot->target, table + number * sizeof(kd_address), address, sizeof(*address)) &&
        *address % KI_CACHE_LINE == 0 && kd_read(snapshot->target, *address, prcb, sizeof(*prcb)))
        return true;
    kd_inconsistent(snapshot, "KiProcessorBlock", table + number * sizeof(kd_address), "there is no processor");
    return false;
}

int kd_owner_of_processor(const kd_snapshot *snapshot, const KPRCB *prcb)
{
    return kd_thread_at(snapshot, prcb->Owner & ~(kd_address)KI_PRCB_FLAGS);
}

/* Numbered queued spinlocks. */

static const char *const lock_names[LockQueueMaximumLock] = {
    "KE   - Unused Spare", "MM   - Unused Spare", "MM   - Unused Spare", "MM   - Unused Spare", "CC   - Vacb",
    "CC   - Master",       "EX   - NonPagedPool", "IO   - Cancel",       "CC   - Unused Spare", "IO   - Vpb",
    "IO   - Database",     "IO   - Completion",   "NTFS - Struct",       "AFD  - WorkQueue",    "CC   - Bcb",
    "MM   - Unused Spare", "MM   - Unused Spare",
};

typedef struct entry {
    kd_address address;
    KSPIN_LOCK_QUEUE raw;
    char state[12]; /* "O", "1".. in the order of waiting, "C", or empty */
} entry;

static void order_waiters(kd_snapshot *snapshot, entry *entries, uint32_t count, kd_address lock)
{
    kd_index places = {.slots = NULL};
    uint32_t order = 0;
    kd_address next = 0;

    for (uint32_t i = 0; i < count; i++) {
        kd_address word = KD_ADDRESS(entries[i].raw.Lock);

        kd_index_add(&places, entries[i].address, (int)i);
        if (entries[i].address == 0)
            continue; /* the processor cannot be read */
        if ((word & ~LOCK_QUEUE_BITS) != lock)
            strcpy(entries[i].state, "C");
        else if (word & LOCK_QUEUE_OWNER) {
            strcpy(entries[i].state, "O");
            next = KD_ADDRESS(entries[i].raw.Next);
        } else if (word & LOCK_QUEUE_WAIT)
            strcpy(entries[i].state, "w"); /* not linked to the one before it yet */
    }
    while (next != 0 && order < count) {
        int place = kd_index_find(&places, next);

        if (place < 0)
            break;
        snprintf(entries[place].state, sizeof(entries[place].state), "%u", ++order);
        next = KD_ADDRESS(entries[place].raw.Next);
    }
    if (next != 0 && order == count)
        kd_inconsistent(snapshot, "queue of a numbered lock", next, "it is circular");
    kd_index_free(&places);
}

/* The entries of all processors for each lock, and the thread that each processor runs. */
typedef struct queues {
    uint32_t processors;
    entry *entries;
    int *owners;
} queues;

static void read_queues(kd_snapshot *snapshot, queues *q)
{
    size_t size = 0;
    kd_address locks = kd_root(snapshot->target, "KiNumberedLocks", &size);
    KPRCB *prcb = kd_allocate_lines(sizeof(*prcb));

    for (uint32_t p = 0; p < q->processors; p++) {
        kd_address address;

        q->owners[p] = -1;
        if (!kd_read_processor(snapshot, p, &address, prcb))
            continue;
        q->owners[p] = kd_owner_of_processor(snapshot, prcb);
        for (uint32_t l = 0; l < LockQueueMaximumLock; l++)
            q->entries[l * q->processors + p] = (entry){
                .address = address + offsetof(KPRCB, LockQueue) + l * sizeof(KSPIN_LOCK_QUEUE),
                .raw = prcb->LockQueue[l],
            };
    }
    free(prcb);
    for (uint32_t l = 0; l < LockQueueMaximumLock; l++)
        order_waiters(snapshot, &q->entries[l * q->processors], q->processors,
                      locks + l * (size / LockQueueMaximumLock));
}

static void json_queue(json *out, const kd_snapshot *snapshot, const queues *q, uint32_t lock)
{
    json_object(out, NULL);
    json_number(out, "number", lock);
    json_string(out, "name", lock_names[lock]);
    json_array(out, "queue");
    for (uint32_t p = 0; p < q->processors; p++) {
        const entry *e = &q->entries[lock * q->processors + p];

        if (e->state[0] == '\0')
            continue;
        json_object(out, NULL);
        json_number(out, "processor", p);
        json_string(out, "state", e->state);
        if (q->owners[p] >= 0)
            json_number(out, "id", snapshot->threads[q->owners[p]].id);
        else
            json_null(out, "id");
        json_end(out);
    }
    json_end(out);
    json_end(out);
}

static void print_queues(const queues *q)
{
    printf("Key: O = Owner, 1-n = Wait order, blank = not owned/waiting, C = corrupt\n\n");
    printf("                       Processor Number\n    Lock Name         ");
    for (uint32_t p = 0; p < q->processors; p++)
        printf(" %3u", p);
    printf("\n");
    for (uint32_t l = 0; l < LockQueueMaximumLock; l++) {
        printf("%-22s", lock_names[l]);
        for (uint32_t p = 0; p < q->processors; p++)
            printf(" %3s", q->entries[l * q->processors + p].state);
        printf("\n");
    }
}

static int show_qlocks(kd_snapshot *snapshot, const kd_options *options)
{
    uint32_t count = snapshot->processors;
    queues q = {
        .processors = count,
        .entries = kd_allocate((size_t)count * LockQueueMaximumLock, sizeof(entry)),
        .owners = kd_allocate(count, sizeof(int)),
    };
    json out = kd_json(options);

    read_queues(snapshot, &q);
    if (options->json) {
        json_object(&out, NULL);
        json_number(&out, "process_id", snapshot->process_id);
        json_number(&out, "processors", count);
        json_array(&out, "locks");
        for (uint32_t l = 0; l < LockQueueMaximumLock; l++)
            json_queue(&out, snapshot, &q, l);
        json_end(&out);
        kd_json_end(&out, snapshot);
    } else {
        print_queues(&q);
    }
    free(q.entries);
    free(q.owners);
    return 0;
}

const kd_view kd_qlocks_view = {.name = "qlocks", .arguments = "[--json] PID|CORE", .show = show_qlocks};

int command_qlocks(int argc, char **argv)
{
    return kd_run(&kd_qlocks_view, argc, argv);
}

/* DPCs. */

static const char *importance_name(unsigned importance)
{
    static const char *const names[] = {"Low", "Medium", "High", "MediumHigh"};

    return importance < 4 ? names[importance] : "?";
}

static void show_dpc(kd_snapshot *snapshot, kd_address address, const char *title, json *out)
{
    KDPC dpc;
    char symbol[KD_SYMBOL_SIZE] = "";

    if (!kd_read(snapshot->target, address, &dpc, sizeof(dpc))) {
        if (out == NULL)
            printf("      %s 0x%" PRIx64 ": its memory is gone\n", title, address);
        else if (strcmp(title, "active") == 0)
            json_null(out, "active");
        return;
    }
    kd_symbol(snapshot->target, KD_ADDRESS(dpc.DeferredRoutine), symbol);
    if (out == NULL) {
        printf("      %s 0x%" PRIx64 "  %s 0x%" PRIx64 "  Context 0x%" PRIx64 "  %s importance\n", title, address,
               symbol[0] != '\0' ? symbol : "Routine", KD_ADDRESS(dpc.DeferredRoutine), KD_ADDRESS(dpc.DeferredContext),
               importance_name(dpc.Importance));
        return;
    }
    json_object(out, strcmp(title, "active") == 0 ? "active" : NULL);
    json_address(out, "address", address);
    json_address(out, "routine", KD_ADDRESS(dpc.DeferredRoutine));
    json_string(out, "symbol", symbol[0] != '\0' ? symbol : NULL);
    json_address(out, "context", KD_ADDRESS(dpc.DeferredContext));
    json_string(out, "importance", importance_name(dpc.Importance));
    json_end(out);
}

static void show_queue(kd_snapshot *snapshot, kd_address address, const KDPC_DATA *data, const char *name, json *out)
{
    kd_address head = address + offsetof(KDPC_DATA, DpcListHead);
    kd_address *dpcs = NULL;
    size_t count = 0;

    /* The queue of a processor that never had a DPC is not initialized. */
    if (data->DpcListHead.Flink != NULL && KD_ADDRESS(data->DpcListHead.Flink) != head)
        dpcs = kd_list(snapshot, "DPCs of a processor", head, offsetof(KDPC, DpcListEntry), &count, NULL);
    if (out != NULL) {
        json_object(out, name);
        json_number(out, "depth", data->DpcQueueDepth);
        json_number(out, "count", data->DpcCount);
        if (data->ActiveDpc != NULL)
            show_dpc(snapshot, KD_ADDRESS(data->ActiveDpc), "active", out);
        else
            json_null(out, "active");
        json_array(out, "queued");
    } else {
        printf("    %s: depth %u, %u so far\n", name, data->DpcQueueDepth, data->DpcCount);
        if (data->ActiveDpc != NULL)
            show_dpc(snapshot, KD_ADDRESS(data->ActiveDpc), "active", NULL);
    }
    for (size_t i = 0; i < count; i++)
        show_dpc(snapshot, dpcs[i], "queued", out);
    free(dpcs);
    if (out != NULL) {
        json_end(out);
        json_end(out);
    }
}

static void show_processor(kd_snapshot *snapshot, kd_address address, const KPRCB *prcb, json *out)
{
    kd_address data = address + offsetof(KPRCB, DpcData);
    int owner = kd_owner_of_processor(snapshot, prcb);
    char text[192];

    if (out != NULL) {
        json_object(out, NULL);
        json_number(out, "number", prcb->Number);
        json_address(out, "address", address);
        if (owner >= 0)
            kd_json_thread(out, "owner", snapshot, owner);
        else
            json_null(out, "owner");
        json_bool(out, "dpc_pending", (prcb->Owner & KI_PRCB_DPC) != 0);
        json_bool(out, "interrupt_pending", (prcb->Owner & KI_PRCB_INTERRUPT) != 0);
        json_bool(out, "waited_for", (prcb->Owner & KI_PRCB_WAITERS) != 0);
        json_bool(out, "dpc_routine_active", prcb->DpcRoutineActive != 0);
    } else {
        printf("Processor %u @ 0x%" PRIx64 "  %s%s%s%s%s\n", prcb->Number, address,
               owner >= 0 ? kd_describe_thread(snapshot, owner, text, sizeof(text)) : "free",
               prcb->DpcRoutineActive ? "  in a DPC routine" : "", prcb->Owner & KI_PRCB_DPC ? "  DPC pending" : "",
               prcb->Owner & KI_PRCB_INTERRUPT ? "  interrupt pending" : "",
               prcb->Owner & KI_PRCB_WAITERS ? "  threads are queued for it" : "");
    }
    show_queue(snapshot, data, &prcb->DpcData[KI_DPC_NORMAL], "normal", out);
    show_queue(snapshot, data + sizeof(KDPC_DATA), &prcb->DpcData[KI_DPC_THREADED], "threaded", out);
    if (out != NULL)
        json_end(out);
}

static void show_queued_threads(kd_snapshot *snapshot, json *out)
{
    kd_address head = kd_root(snapshot->target, "KiProcessorWaitList", NULL), *waiters = NULL;
    KI_PROCESSOR_WAITER waiter;
    size_t count = 0;
    char text[192];

    if (out != NULL)
        json_array(out, "waiting_for_processor");
    if (head != 0)
        waiters = kd_list(snapshot, "threads that wait for a processor", head, offsetof(KI_PROCESSOR_WAITER, Entry),
                          &count, NULL);
    for (size_t i = 0; i < count; i++) {
        int thread = kd_read(snapshot->target, waiters[i], &waiter, sizeof(waiter))
                         ? kd_thread_at(snapshot, KD_ADDRESS(waiter.Thread)) : -1;

        if (thread >= 0 && out != NULL)
            kd_json_thread(out, NULL, snapshot, thread);
        else if (thread >= 0)
            printf("%s waits for a processor\n", kd_describe_thread(snapshot, thread, text, sizeof(text)));
    }
    free(waiters);
    if (out != NULL)
        json_end(out);
}

/* A processor without an owner and without work. */
bool kd_is_idle_processor(const KPRCB *prcb)
{
    return prcb->Owner == 0 && prcb->DpcData[0].DpcQueueDepth == 0 && prcb->DpcData[1].DpcQueueDepth == 0 &&
           prcb->DpcData[0].ActiveDpc == NULL && prcb->DpcData[1].ActiveDpc == NULL;
}

static int show_dpcs(kd_snapshot *snapshot, const kd_options *options)
{
    KPRCB *prcb = kd_allocate_lines(sizeof(*prcb));
    json out = kd_json(options);
    uint32_t idle = 0;
    kd_address address;

    if (options->json) {
        json_object(&out, NULL);
        json_number(&out, "process_id", snapshot->process_id);
        json_array(&out, "processors");
    }
    for (uint32_t p = 0; p < snapshot->processors; p++) {
        if (!kd_read_processor(snapshot, p, &address, prcb))
            continue;
        if (!options->json && !options->verbose && kd_is_idle_processor(prcb))
            idle++;
        else
            show_processor(snapshot, address, prcb, options->json ? &out : NULL);
    }
    if (options->json)
        json_end(&out);
    show_queued_threads(snapshot, options->json ? &out : NULL);
    if (options->json)
        kd_json_end(&out, snapshot);
    else
        printf("%u of %u processors are idle\n", idle, snapshot->processors);
    free(prcb);
    return 0;
}

const kd_view kd_dpcs_view = {
    .name = "dpcs",
    .arguments = "[--json] [-v] PID|CORE\n"
                 "  -v        also idle processors",
    .show = show_dpcs,
};

int command_dpcs(int argc, char **argv)
{
    return kd_run(&kd_dpcs_view, argc, argv);
}

/* Timers. */

static void show_timer(kd_snapshot *snapshot, kd_address address, const KTIMER *timer, json *out)
{
    bool absolute = (timer->Processor & KI_TIMER_ABSOLUTE) != 0;
    bool executive = (timer->Processor & KI_TIMER_EXECUTIVE) != 0;
    bool calls = (timer->Processor & KI_TIMER_CALLS) != 0;
    uint64_t now = absolute ? snapshot->system_time : snapshot->now, due = timer->DueTime.QuadPart;
    double left = due > now ? kd_seconds(due - now) : -kd_seconds(now - due);
    const kd_handle *handle = kd_handle_of_header(snapshot, address);
    const char *type = executive ? "executive" : calls ? "service" : "kernel";
    double period = executive ? kd_seconds(timer->Period) : timer->Period / 1000.0;
    char symbol[KD_SYMBOL_SIZE] = "", name[KD_SYMBOL_SIZE] = "";
    KDPC dpc;

    if (!calls && timer->Dpc != NULL && kd_read(snapshot->target, KD_ADDRESS(timer->Dpc), &dpc, sizeof(dpc)))
        kd_symbol(snapshot->target, KD_ADDRESS(dpc.DeferredRoutine), symbol);
    if (handle != NULL && handle->name[0] != '\0')
        kd_copy(name, sizeof(name), handle->name, sizeof(name));
    else
        kd_symbol(snapshot->target, address, name);
    if (out == NULL) {
        printf("%016" PRIx64 "  %-7s %-20s", address, executive ? "EX" : calls ? "NT" : "KE",
               kd_object_type_name(timer->Header.Type & KOBJECT_TYPE_MASK));
        if (snapshot->now != 0)
            printf("  due in %10.3f s", left);
        printf("  period %8.3f s  processor %u%s%s%s%s%s\n", period, timer->Processor & KI_TIMER_NUMBER_MASK,
               absolute ? "  absolute" : "", symbol[0] != '\0' ? "  DPC " : "", symbol,
               name[0] != '\0' ? "  " : "", name);
        return;
    }
    json_object(out, NULL);
    json_address(out, "address", address);
    json_string(out, "type", kd_object_type_name(timer->Header.Type & KOBJECT_TYPE_MASK));
    json_string(out, "owner", type);
    json_string(out, "name", name[0] != '\0' ? name : NULL);
    json_bool(out, "absolute", absolute);
    json_number(out, "due_time", (int64_t)due);
    if (snapshot->now != 0)
        json_real(out, "due_in", left);
    else
        json_null(out, "due_in");
    json_real(out, "period", period);
    json_number(out, "tolerable_delay", timer->Processor >> KI_TIMER_TOLERANCE_SHIFT);
    json_number(out, "processor", timer->Processor & KI_TIMER_NUMBER_MASK);
    json_address(out, "dpc", calls ? 0 : KD_ADDRESS(timer->Dpc));
    json_string(out, "dpc_routine", symbol[0] != '\0' ? symbol : NULL);
    json_end(out);
}

/* FALSE: the list is inconsistent or was being changed. */
static bool show_slot(kd_snapshot *snapshot, kd_address head, size_t *count, json *out)
{
    bool whole;
    size_t listed;
    kd_address *timers = kd_list(snapshot, "timers", head, offsetof(KTIMER, TimerListEntry), &listed, &whole);
    KTIMER timer;

    for (size_t i = 0; i < listed; i++) {
        if (!kd_read(snapshot->target, timers[i], &timer, sizeof(timer)) ||
            (timer.Header.Type & KOBJECT_TYPE_MASK) < TimerNotificationObject ||
            (timer.Header.Type & KOBJECT_TYPE_MASK) > TimerSynchronizationObject) {
            whole = false;
            continue;
        }
        show_timer(snapshot, timers[i], &timer, out);
        *count += 1;
    }
    free(timers);
    return whole;
}

static bool show_wheel(kd_snapshot *snapshot, kd_address address, const KI_WHEEL *wheel, size_t *count, json *out)
{
    bool whole = true;

    for (size_t slot = 0; slot <= KI_WHEEL_CASCADE; slot++)
        if (wheel->Occupied[slot / KI_WHEEL_SLOTS] >> slot % KI_WHEEL_SLOTS & 1)
            whole = show_slot(snapshot, address + offsetof(KI_WHEEL, Slot) + slot * sizeof(KI_WHEEL_SLOT), count,
                              out) && whole;
    return whole;
}

static int show_timers(kd_snapshot *snapshot, const kd_options *options)
{
    KTIMER_TABLE *table = kd_allocate_lines(sizeof(*table));
    kd_address root = kd_root(snapshot->target, "KiTimerTables", NULL), first = 0, *tables;
    json out = kd_json(options), *to = options->json ? &out : NULL;
    size_t count = 0, listed;
    bool whole = true;

    if (root != 0 && !kd_read(snapshot->target, root, &first, sizeof(first)))
        kd_inconsistent(snapshot, "timer tables", root, "they cannot be read");
    tables = kd_chain(snapshot, "timer tables", first, offsetof(KTIMER_TABLE, Next), &listed);
    if (options->json) {
        json_object(&out, NULL);
        json_number(&out, "process_id", snapshot->process_id);
        json_array(&out, "timers");
    }
    if (listed > INTERLOCK_MAXIMUM_PROCESSORS) {
        kd_inconsistent(snapshot, "timer tables", first, "there are more of them than processors");
        listed = INTERLOCK_MAXIMUM_PROCESSORS;
    }
    for (size_t i = 0; i < listed; i++) {
        if (!kd_read(snapshot->target, tables[i], table, sizeof(*table)))
            continue;
        for (size_t w = 0; w < 2; w++)
            whole = show_wheel(snapshot, tables[i] + offsetof(KTIMER_TABLE, Wheel) + w * sizeof(KI_WHEEL),
                               &table->Wheel[w], &count, to) && whole;
    }
    free(tables);
    if (options->json) {
        json_end(&out);
        json_bool(&out, "complete", whole);
        kd_json_end(&out, snapshot);
    } else {
        printf("%zu timers are set%s\n", count, whole ? "" : "; some changed while they were read");
    }
    free(table);
    return 0;
}

const kd_view kd_timers_view = {.name = "timers", .arguments = "[--json] PID|CORE", .show = show_timers};

int command_timers(int argc, char **argv)
{
    return kd_run(&kd_timers_view, argc, argv);
}
