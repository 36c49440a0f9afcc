/* objectview.c: `interlock object` and `interlock handles`. */
#include "kd.h"
#include "views.h"
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LAST_HANDLE ((uint64_t)OBP_HANDLE_LIMIT * 4)

/* The object in the target, as far as its type goes. */
typedef struct object {
    kd_address address;
    unsigned type;
    const kd_handle *handle;
    const kd_lock *shared; /* its state is in a world; NULL: it is local */
    union {
        DISPATCHER_HEADER header;
        KMUTANT mutant;
        KSEMAPHORE semaphore;
        KTIMER timer;
        KQUEUE queue;
    };
} object;

/* Table 8-29: which flags mean something in which type. */
typedef struct flag {
    const char *name;
    uint64_t value;
} flag;

#define FLAG(member) {#member, h->member}

static size_t flags_of(const object *o, flag flags[16])
{
    const DISPATCHER_HEADER *h = &o->header;
    const flag timer[] = {FLAG(Absolute), FLAG(Wake), FLAG(EncodedTolerableDelay), FLAG(Hand), FLAG(Index),
                          FLAG(Inserted), FLAG(Expired)};
    const flag timer2[] = {FLAG(Timer2Inserted), FLAG(Timer2Expiring), FLAG(Timer2CancelPending),
                           FLAG(Timer2SetPending), FLAG(Timer2Running), FLAG(Timer2Disabled),
                           FLAG(Timer2ComponentId), FLAG(Timer2RelativeId)};
    const flag queue[] = {FLAG(Abandoned), FLAG(DisableIncrement), FLAG(QueueSize)};
    const flag thread[] = {FLAG(CycleProfiling), FLAG(CounterProfiling), FLAG(GroupScheduling), FLAG(AffinitySet),
                           FLAG(Tagged), FLAG(EnergyProfiling), FLAG(SchedulerAssist), FLAG(ActiveDR7),
                           FLAG(Instrumented), FLAG(Minimal), FLAG(AltSyscall), FLAG(UmsScheduled), FLAG(UmsPrimary)};
    const flag mutant[] = {FLAG(MutantSize), FLAG(DpcActive)};
    const flag other[] = {FLAG(Signalling), FLAG(Size)};
    const flag *from = other;
    size_t count = 2;

    switch (o->type) {
    case TimerNotificationObject:
    case TimerSynchronizationObject:
        from = o->timer.Processor & KI_TIMER_EXECUTIVE ? timer2 : timer;
        count = o->timer.Processor & KI_TIMER_EXECUTIVE ? sizeof(timer2) / sizeof(flag) : sizeof(timer) / sizeof(flag);
        break;
    case QueueObject:
        from = queue;
        count = sizeof(queue) / sizeof(flag);
        break;
    case ThreadObject:
        from = thread;
        count = sizeof(thread) / sizeof(flag);
        break;
    case MutantObject:
        from = mutant;
        count = sizeof(mutant) / sizeof(flag);
        break;
    default:
        break;
    }
    memcpy(flags, from, count * sizeof(flag));
    return count;
}

/* What the object has besides its header. */
static size_t members_of(const object *o, flag members[8])
{
    size_t count = 0;

    switch (o->type) {
    case MutantObject:
        members[count++] = (flag){"OwnerThread", KD_ADDRESS(o->mutant.OwnerThread)};
        members[count++] = (flag){"Abandoned", o->mutant.Abandoned};
        members[count++] = (flag){"ApcDisable", o->mutant.ApcDisable & 1};
        break;
    case SemaphoreObject:
        members[count++] = (flag){"Limit", (uint64_t)o->semaphore.Limit};
        break;
    case QueueObject:
        members[count++] = (flag){"CurrentCount", o->queue.CurrentCount};
        members[count++] = (flag){"MaximumCount", o->queue.MaximumCount};
        break;
    case TimerNotificationObject:
    case TimerSynchronizationObject:
        members[count++] = (flag){"DueTime", o->timer.DueTime.QuadPart};
        members[count++] = (flag){"Period", o->timer.Period};
        members[count++] = (flag){"Dpc", KD_ADDRESS(o->timer.Dpc)};
        members[count++] = (flag){"Processor", o->timer.Processor & KI_TIMER_NUMBER_MASK};
        break;
    default:
        break;
    }
    return count;
}

static size_t size_of_type(unsigned type)
{
    switch (type) {
    case MutantObject:
        return sizeof(KMUTANT);
    case SemaphoreObject:
        return sizeof(KSEMAPHORE);
    case QueueObject:
        return sizeof(KQUEUE);
    case TimerNotificationObject:
    case TimerSynchronizationObject:
        return sizeof(KTIMER);
    default:
        return sizeof(DISPATCHER_HEADER);
    }
}

/* Both neighbours of a list head point to it, unless the list is being changed. */
static bool is_list_head(kd_snapshot *snapshot, kd_address head, const LIST_ENTRY *list)
{
    LIST_ENTRY next, previous;

    return kd_read(snapshot->target, KD_ADDRESS(list->Flink), &next, sizeof(next)) &&
           kd_read(snapshot->target, KD_ADDRESS(list->Blink), &previous, sizeof(previous)) &&
           KD_ADDRESS(next.Blink) == head && KD_ADDRESS(previous.Flink) == head;
}

/* A proxy: the world has its state and its waiters. */
static bool find_shared(kd_snapshot *snapshot, kd_address address, object *o)
{
    int lock = kd_find_lock(snapshot, address);

    if (lock < 0 || snapshot->locks[lock].shared == NULL)
        return false;
    o->shared = &snapshot->locks[lock];
    o->handle = kd_handle_of_header(snapshot, address);
    o->header.SignalState = (LONG)o->shared->signal_state;
    if (o->type == SemaphoreObject)
        o->semaphore.Limit = o->shared->shared->limit;
    if (o->type == TimerNotificationObject || o->type == TimerSynchronizationObject) {
        o->timer.DueTime.QuadPart = o->shared->shared->due;
        o->timer.Period = o->shared->shared->period;
    }
    return true;
}

/* The members that the world has; flags of the header are those of a local object. */
static size_t shared_members_of(const object *o, flag members[8])
{
    size_t count = 0;

    if (o->type == SemaphoreObject)
        members[count++] = (flag){"Limit", (uint64_t)o->semaphore.Limit};
    if (o->type == MutantObject)
        members[count++] = (flag){"Abandoned", o->shared->shared->abandoned};
    if (o->type == TimerNotificationObject || o->type == TimerSynchronizationObject) {
        members[count++] = (flag){"DueTime", o->timer.DueTime.QuadPart};
        members[count++] = (flag){"Period", o->timer.Period};
    }
    return count;
}

static bool read_object(kd_snapshot *snapshot, kd_address address, object *o)
{
    kd_address head = address + offsetof(DISPATCHER_HEADER, WaitListHead);

    memset(o, 0, sizeof(*o));
    o->address = address;
    for (int i = 0; i < 8; i++) {
        if (address % 8 != 0 || !kd_read(snapshot->target, address, &o->header, sizeof(o->header))) {
            kd_say("there is no object at 0x%" PRIx64, address);
            return false;
        }
        o->type = o->header.Type & KOBJECT_TYPE_MASK;
        if (o->header.WaitListHead.Flink == NULL && find_shared(snapshot, address, o))
            return true;
        if (o->type <= TimerSynchronizationObject && is_list_head(snapshot, head, &o->header.WaitListHead) &&
            kd_read(snapshot->target, address, &o->header, size_of_type(o->type))) {
            o->handle = kd_handle_of_header(snapshot, address);
            return true;
        }
    }
    kd_say("0x%" PRIx64 " is not a dispatcher object: its type would be %u, and its list of waiters does not close",
           address, o->type);
    return false;
}

/* An address, a handle, or a name: the whole path or its last part. */
static const kd_handle *find_handle(const kd_snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->handle_count; i++) {
        const char *path = snapshot->handles[i].name, *last = strrchr(path, '\\');

        if (last != NULL && (strcasecmp(path, name) == 0 || strcasecmp(last + 1, name) == 0))
            return &snapshot->handles[i];
    }
    return NULL;
}

static bool find_object(kd_snapshot *snapshot, const char *what, object *o)
{
    const kd_handle *handle;
    uint64_t number;

    if (kd_parse_number(what, &number) && number >= LAST_HANDLE && number < OBP_KERNEL_HANDLE) {
        handle = kd_handle_of_body(snapshot, number);
        if (handle != NULL && handle->header != 0)
            number = handle->header;
        return read_object(snapshot, number, o);
    }
    handle = kd_parse_number(what, &number) ? kd_handle_with_value(snapshot, number & ~(uint64_t)3)
                                            : find_handle(snapshot, what);
    if (handle == NULL) {
        kd_say("there is no handle or named object %s: `interlock handles` lists them", what);
        return false;
    }
    if (handle->header == 0) {
        kd_say("%s is a %s: there is nothing to wait for", what, handle->type);
        return false;
    }
    return read_object(snapshot, handle->header, o);
}

/* Its waiters. */

typedef void visit_waiter(const kd_snapshot *snapshot, const KWAIT_BLOCK *block, kd_address at, json *out);

static void visit_waiters(kd_snapshot *snapshot, const object *o, visit_waiter *visit, json *out)
{
    size_t count;
    kd_address *blocks = kd_list(snapshot, "waiters of the object",
                                 o->address + offsetof(DISPATCHER_HEADER, WaitListHead),
                                 offsetof(KWAIT_BLOCK, WaitListEntry), &count, NULL);
    KWAIT_BLOCK block;

    for (size_t i = 0; i < count; i++)
        if (kd_read(snapshot->target, blocks[i], &block, sizeof(block)) && KD_ADDRESS(block.Object) == o->address)
            visit(snapshot, &block, blocks[i], out);
    free(blocks);
}

static void json_waiter(const kd_snapshot *snapshot, const KWAIT_BLOCK *block, kd_address at, json *out)
{
    int thread = block->WaitType == WaitNotification || block->WaitType == WaitDpc
                     ? -1 : kd_thread_at(snapshot, KD_ADDRESS(block->Thread));

    json_object(out, NULL);
    json_address(out, "block", at);
    json_string(out, "wait_type", kd_wait_type_name(block->WaitType));
    json_string(out, "block_state", kd_block_state_name(block->BlockState));
    if (thread >= 0)
        json_number(out, "id", snapshot->threads[thread].id);
    else
        json_null(out, "id");
    json_address(out, "target", KD_ADDRESS(block->Thread));
    json_end(out);
}

static void print_waiter(const kd_snapshot *snapshot, const KWAIT_BLOCK *block, kd_address at, json *out)
{
    int thread = kd_thread_at(snapshot, KD_ADDRESS(block->Thread));
    char text[192];

    (void)out;
    printf("    wait block %016" PRIx64 "  %s, %s  ", at, kd_wait_type_name(block->WaitType),
           kd_block_state_name(block->BlockState));
    if (block->WaitType == WaitNotification)
        printf("queue 0x%" PRIx64 "\n", KD_ADDRESS(block->NotificationQueue));
    else if (block->WaitType == WaitDpc)
        printf("DPC 0x%" PRIx64 "\n", KD_ADDRESS(block->Dpc));
    else
        printf("%s\n", thread >= 0 ? kd_describe_thread(snapshot, thread, text, sizeof(text)) : "a thread that ended");
}

static int json_object_view(kd_snapshot *snapshot, const object *o, const kd_options *options)
{
    json out = kd_json(options);
    flag flags[16];
    size_t count = flags_of(o, flags);

    json_object(&out, NULL);
    if (o->shared != NULL)
        kd_json_lock(&out, "shared", snapshot, o->shared);
    else
        json_null(&out, "shared");
    json_address(&out, "address", o->address);
    json_string(&out, "type", kd_object_type_name(o->type));
    json_string(&out, "name", o->handle != NULL && o->handle->name[0] != '\0' ? o->handle->name : NULL);
    json_number(&out, "signal_state", o->header.SignalState);
    json_bool(&out, "locked", (o->header.Type & KOBJECT_LOCK_BIT) != 0);
    json_bool(&out, "waiters_bit", (o->header.Type & KOBJECT_WAITERS_BIT) != 0);
    json_object(&out, "flags");
    for (size_t i = 0; o->shared == NULL && i < count; i++)
        json_number(&out, flags[i].name, (int64_t)flags[i].value);
    json_end(&out);
    json_object(&out, "members");
    count = o->shared == NULL ? members_of(o, flags) : shared_members_of(o, flags);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(flags[i].name, "OwnerThread") == 0 || strcmp(flags[i].name, "Dpc") == 0)
            json_address(&out, flags[i].name, flags[i].value);
        else
            json_number(&out, flags[i].name, (int64_t)flags[i].value);
    }
    json_end(&out);
    json_array(&out, "waiters");
    if (o->shared == NULL)
        visit_waiters(snapshot, o, json_waiter, &out);
    json_end(&out);
    kd_json_end(&out, snapshot);
    return 0;
}

static void print_shared(const kd_snapshot *snapshot, const object *o)
{
    flag members[8];
    size_t count = shared_members_of(o, members);

    printf("    %-24s: %d\n", "SignalState", o->header.SignalState);
    for (size_t i = 0; i < count; i++)
        printf("    %-24s: 0x%" PRIx64 "\n", members[i].name, members[i].value);
    kd_print_lock(snapshot, o->shared, true);
}

static int show_object(kd_snapshot *snapshot, const kd_options *options)
{
    object o;
    flag flags[16];
    size_t count;

    if (!find_object(snapshot, options->argument, &o))
        return 1;
    if (options->json)
        return json_object_view(snapshot, &o, options);
    printf("0x%" PRIx64 " [Type: %s]", o.address, kd_object_type_name(o.type));
    printf(o.handle != NULL && o.handle->name[0] != '\0' ? "  %s\n" : "\n", o.handle != NULL ? o.handle->name : "");
    if (o.shared != NULL) {
        print_shared(snapshot, &o);
        return 0;
    }
    /* On Windows this byte has the lock, but not the bit for linked blocks. */
    printf("    %-24s: 0x%x%s\n", "Type", o.header.Type & ~KOBJECT_WAITERS_BIT & 0xff,
           o.header.Type & KOBJECT_LOCK_BIT ? "  (its lock is held: a thread is changing it)" : "");
    printf("    %-24s: 0x%x\n", "WaitersBit", (o.header.Type & KOBJECT_WAITERS_BIT) != 0);
    printf("    %-24s: %d\n", "SignalState", o.header.SignalState);
    count = flags_of(&o, flags);
    for (size_t i = 0; i < count; i++)
        printf("    %-24s: 0x%" PRIx64 "\n", flags[i].name, flags[i].value);
    count = members_of(&o, flags);
    for (size_t i = 0; i < count; i++)
        printf("    %-24s: 0x%" PRIx64 "\n", flags[i].name, flags[i].value);
    visit_waiters(snapshot, &o, print_waiter, NULL);
    return 0;
}

const kd_view kd_object_view = {
    .name = "object",
    .arguments = "[--json] PID|CORE ADDRESS|HANDLE|NAME\n"
                 "Shows a dispatcher object with the flags of its type, and its waiters.",
    .has_argument = true,
    .needs_argument = true,
    .show = show_object,
};

int command_object(int argc, char **argv)
{
    return kd_run(&kd_object_view, argc, argv);
}

/* Handles. */

static const kd_world_object *shared_of(const kd_snapshot *snapshot, const kd_handle *h)
{
    return h->lock >= 0 ? snapshot->locks[h->lock].shared : NULL;
}

static void print_handle_share(const kd_snapshot *snapshot, const kd_handle *h)
{
    const kd_world_object *o = shared_of(snapshot, h);

    if (o != NULL)
        printf("  Shared: %u handles in %zu processes", o->handles, o->holder_count);
    printf("\n");
}

static void json_handle_share(json *out, const kd_snapshot *snapshot, const kd_handle *h)
{
    const kd_world_object *o = shared_of(snapshot, h);

    if (o == NULL) {
        json_null(out, "shared");
        return;
    }
    json_object(out, "shared");
    json_number(out, "handles", o->handles);
    json_array(out, "processes");
    for (size_t i = 0; i < o->holder_count; i++)
        json_number(out, NULL, snapshot->worlds[snapshot->locks[h->lock].world]->processes[o->holders[i]].id);
    json_end(out);
    json_end(out);
}

static int show_handles(kd_snapshot *snapshot, const kd_options *options)
{
    json out = kd_json(options);

    if (options->json) {
        json_object(&out, NULL);
        json_number(&out, "process_id", snapshot->process_id);
        json_array(&out, "handles");
    }
    for (size_t i = 0; i < snapshot->handle_count; i++) {
        const kd_handle *h = &snapshot->handles[i];

        if (!options->json) {
            printf("%04" PRIx64 ": Object: %016" PRIx64 "  GrantedAccess: %08x  HandleCount: %" PRId64
                   "  Type: %s%s%s%s%s",
                   h->handle, h->body, h->access, h->handle_count, h->type, h->inherit ? "  (Inherit)" : "",
                   h->protect ? "  (Protected)" : "", h->name[0] != '\0' ? "  Name: " : "", h->name);
            print_handle_share(snapshot, h);
            continue;
        }
        json_object(&out, NULL);
        json_hex(&out, "handle", h->handle);
        json_address(&out, "object", h->body);
        json_address(&out, "header", h->header);
        json_string(&out, "type", h->type);
        json_string(&out, "name", h->name[0] != '\0' ? h->name : NULL);
        json_hex(&out, "granted_access", h->access);
        json_number(&out, "handle_count", h->handle_count);
        json_number(&out, "pointer_count", h->pointer_count);
        json_bool(&out, "inherit", h->inherit);
        json_bool(&out, "protected", h->protect);
        json_handle_share(&out, snapshot, h);
        json_end(&out);
    }
    if (options->json) {
        json_end(&out);
        kd_json_end(&out, snapshot);
    } else {
        printf("%zu handles\n", snapshot->handle_count);
    }
    return 0;
}

const kd_view kd_handles_view = {.name = "handles", .arguments = "[--json] PID|CORE", .show = show_handles};

int command_handles(int argc, char **argv)
{
    return kd_run(&kd_handles_view, argc, argv);
}
