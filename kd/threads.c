/* threads.c: `interlock threads`, after !thread, and `interlock deadlocks`. */
#include "kd.h"
#include "views.h"

#include <inttypes.h>

#define MOST_OWNERS_SHOWN 16
#define BLOCKS_SHOWN 8

static const struct {
    uint32_t bit;
    const char *name;
} pending[] = {
    {KI_WAIT_APC, "kernel_apc"},          {KI_WAIT_SPECIAL_APC, "special_apc"},
    {KI_WAIT_USER_APC, "user_apc"},       {KI_WAIT_ALERTED(KernelMode), "kernel_alert"},
    {KI_WAIT_ALERTED(UserMode), "user_alert"}, {KI_WAIT_ALERT_BY_ID_PENDING, "alert_by_id"},
    {KI_WAIT_EXIT, "exit"},
    {KI_WAIT_ELSEWHERE, "elsewhere"},
};

static const char *mode_name(unsigned mode)
{
    return mode == UserMode ? "UserMode" : "KernelMode";
}

/* Seconds until the deadline; FALSE: there is none, or in a core file the time is not known. */
bool kd_time_left(const kd_snapshot *snapshot, const kd_thread *thread, double *left)
{
    const HAL_DEADLINE *deadline = &thread->raw->WaitDeadline;
    uint64_t now = deadline->Clock == HalSystemTime ? snapshot->system_time : snapshot->now;

    if (deadline->Clock == HalNoDeadline || snapshot->now == 0)
        return false;
    *left = deadline->Time > now ? kd_seconds(deadline->Time - now) : 0;
    return true;
}

double kd_waited(const kd_snapshot *snapshot, const kd_thread *thread)
{
    uint64_t since = thread->raw->WaitTime * KI_TICK;

    return snapshot->now > since ? kd_seconds(snapshot->now - since) : 0;
}

static void object_type(kd_snapshot *snapshot, const kd_block *block, const char **name)
{
    DISPATCHER_HEADER header;

    *name = NULL;
    if (block->raw.WaitType != KI_HINT_BLOCK &&
        kd_read(snapshot->target, KD_ADDRESS(block->raw.Object), &header, sizeof(header)))
        *name = kd_object_type_name(header.Type & KOBJECT_TYPE_MASK);
}

/* The mapping that contains its stack pointer, which the host reports for a thread that does not run. */
static bool read_stack_limits(kd_snapshot *snapshot, const kd_thread *thread, kd_address *pointer, kd_address *limit,
                              kd_address *base)
{
    FILE *file = kd_open_of_thread(snapshot->target, thread->id, "syscall");
    char line[256] = "";
    bool found = false;

    if (file == NULL)
        return false;
    kd_guard_begin(KD_FILE_SECONDS, "the host does not show what a thread is doing");
    /* the number of the call, six arguments, the stack pointer; a thread in no call has -1 and the stack pointer */
    if (fgets(line, sizeof(line), file) != NULL)
        found = sscanf(line, "-1 %" SCNx64, pointer) == 1 ||
                sscanf(line, "%*d %*s %*s %*s %*s %*s %*s %" SCNx64, pointer) == 1;
    kd_guard_end();
    fclose(file);
    return found && kd_mapping_of(snapshot->target, *pointer, limit, base);
}

/* JSON. */

static void json_blocks(json *out, kd_snapshot *snapshot, const kd_thread *thread)
{
    json_array(out, "blocks");
    for (size_t i = 0; i < thread->block_count; i++) {
        const kd_block *block = &thread->blocks[i];
        const char *type;

        object_type(snapshot, block, &type);
        json_object(out, NULL);
        json_address(out, "address", block->address);
        json_string(out, "wait_type", kd_wait_type_name(block->raw.WaitType));
        json_string(out, "block_state", kd_block_state_name(block->raw.BlockState));
        json_number(out, "wait_key", block->raw.WaitKey);
        json_address(out, "object", KD_ADDRESS(block->raw.Object));
        json_string(out, "object_type", type);
        if (block->lock >= 0)
            kd_json_lock_briefly(out, "waits_for", &snapshot->locks[block->lock]);
        else
            json_null(out, "waits_for");
        json_end(out);
    }
    json_end(out);
}

static void json_wait(json *out, kd_snapshot *snapshot, const kd_thread *thread)
{
    double left;

    if (!thread->waiting) {
        json_null(out, "wait");
        return;
    }
    json_object(out, "wait");
    json_string(out, "reason", kd_wait_reason_name(thread->raw->WaitReason));
    json_string(out, "state", kd_wait_state_name(thread->raw->WaitRegister & KI_WAIT_STATE_MASK));
    json_string(out, "mode", mode_name(thread->raw->WaitMode));
    json_bool(out, "alertable", thread->raw->Alertable != 0);
    json_number(out, "irql", thread->raw->WaitIrql);
    json_number(out, "block_count", thread->raw->WaitBlockCount);
    json_number(out, "start_tick", thread->raw->WaitTime);
    if (snapshot->now != 0)
        json_real(out, "seconds", kd_waited(snapshot, thread));
    else
        json_null(out, "seconds");
    json_bool(out, "has_timeout", thread->raw->WaitDeadline.Clock != HalNoDeadline);
    if (kd_time_left(snapshot, thread, &left))
        json_real(out, "timeout_in", left);
    else
        json_null(out, "timeout_in");
    json_blocks(out, snapshot, thread);
    json_end(out);
}

static void json_frame(const kd_frame *frame, void *context)
{
    json *out = context;

    json_object(out, NULL);
    json_address(out, "pc", frame->pc);
    json_string(out, "symbol", frame->symbol);
    json_string(out, "file", frame->line != 0 ? frame->file : NULL);
    json_number(out, "line", frame->line);
    json_end(out);
}

static void json_owned(json *out, const kd_snapshot *snapshot, int thread)
{
    json_array(out, "owns");
    for (size_t i = 0; i < snapshot->threads[thread].owned_count; i++) {
        const kd_lock *lock = &snapshot->locks[snapshot->threads[thread].owned[i]];

        json_object(out, NULL);
        json_string(out, "kind", kd_kind_name(lock->kind));
        json_address(out, "address", lock->address);
        json_string(out, "name", lock->name[0] != '\0' ? lock->name : NULL);
        json_end(out);
    }
    json_end(out);
}

/* The boost that a wakeup left for the next reader, or else the one that Priority includes. */
static int boost_of(const KTHREAD *thread)
{
    KPRIORITY boosted = KiBoostedPriority(thread);

    return boosted > thread->Priority ? boosted - thread->BasePriority : thread->PriorityDecrement;
}

static void json_priority(json *out, const KTHREAD *thread)
{
    json_number(out, "priority", KiBoostedPriority(thread));
    json_number(out, "base_priority", thread->BasePriority);
    json_number(out, "boost", boost_of(thread));
    json_number(out, "auto_boost_count", thread->AutoBoostCount);
}

static void json_time(json *out, const char *key, double seconds)
{
    if (seconds >= 0)
        json_real(out, key, seconds);
    else
        json_null(out, key);
}

static void json_origin(json *out, kd_snapshot *snapshot, const kd_thread *thread, bool with_limits)
{
    char symbol[KD_SYMBOL_SIZE] = "";
    kd_address pointer = 0, limit = 0, base = 0;

    json_time(out, "user_time", thread->user_time);
    json_time(out, "kernel_time", thread->kernel_time);
    json_address(out, "start_address", kd_start_address(thread));
    kd_symbol(snapshot->target, kd_start_address(thread), symbol);
    json_string(out, "start_symbol", symbol[0] != '\0' ? symbol : NULL);
    if (!with_limits)
        return;
    if (!read_stack_limits(snapshot, thread, &pointer, &limit, &base))
        pointer = limit = base = 0;
    json_address(out, "stack_base", base);
    json_address(out, "stack_limit", limit);
    json_address(out, "stack_pointer", pointer);
}

static void json_one(json *out, kd_snapshot *snapshot, int index, const kd_options *options)
{
    const kd_thread *thread = &snapshot->threads[index];
    const char host[2] = {thread->host_state, '\0'};

    json_object(out, NULL);
    json_number(out, "id", thread->id);
    json_string(out, "name", thread->name);
    json_address(out, "address", thread->address);
    json_string(out, "state", kd_thread_state_name(thread->raw->State));
    json_string(out, "host_state", thread->host_state != '?' ? host : NULL);
    json_bool(out, "system", thread->system);
    json_bool(out, "moving", thread->moving);
    json_bool(out, "deadlocked", thread->deadlocked);
    json_bool(out, "orphaned", thread->orphaned);
    json_number(out, "irql", thread->raw->Irql);
    json_priority(out, thread->raw);
    json_number(out, "suspend_count", thread->raw->SuspendCount);
    json_number(out, "context_switches", thread->raw->ContextSwitches);
    json_origin(out, snapshot, thread, options->verbose || options->argument != NULL);
    json_array(out, "pending");
    for (size_t i = 0; i < sizeof(pending) / sizeof(pending[0]); i++)
        if (thread->raw->WaitRegister & pending[i].bit)
            json_string(out, NULL, pending[i].name);
    json_end(out);
    json_owned(out, snapshot, index);
    json_wait(out, snapshot, thread);
    if (options->stack) {
        const char *problem;

        json_array(out, "stack");
        problem = kd_stack(snapshot->target, thread->id, json_frame, out);
        json_end(out);
        json_string(out, "stack_problem", problem);
    }
    json_end(out);
}

static void json_process(json *out, const kd_snapshot *snapshot)
{
    json_number(out, "process_id", snapshot->process_id);
    json_string(out, "version", kd_version(snapshot->target));
    json_number(out, "processors", snapshot->processors);
}

/* Text. */

static void print_owner(const kd_snapshot *snapshot, const kd_owner *owner, bool first)
{
    printf("%s %u%s", first ? ", owned by" : ",", owner->id, owner->probable ? " (probably)" : "");
    if (owner->process_id != 0 && owner->thread >= 0)
        printf(" of process %u (%s)", owner->process_id, snapshot->threads[owner->thread].process_name);
}

static void print_block(kd_snapshot *snapshot, const kd_block *block)
{
    const kd_lock *lock = block->lock >= 0 ? &snapshot->locks[block->lock] : NULL;
    const char *type;
    char text[512];

    object_type(snapshot, block, &type);
    printf("        %016" PRIx64 "  %s", KD_ADDRESS(block->raw.Object), type != NULL ? type : "Hint");
    if (block->raw.WaitType != KI_HINT_BLOCK)
        printf("  %s, %s", kd_wait_type_name(block->raw.WaitType), kd_block_state_name(block->raw.BlockState));
    printf("\n");
    if (lock == NULL)
        return;
    printf("            %s", kd_describe_lock(lock, text, sizeof(text)));
    for (size_t i = 0; i < lock->owner_count && i < MOST_OWNERS_SHOWN; i++)
        if (lock->owners[i].id != 0 && lock->kind != KD_THREAD)
            print_owner(snapshot, &lock->owners[i], i == 0);
    if (lock->owner_count > MOST_OWNERS_SHOWN)
        printf(" and %zu more", lock->owner_count - MOST_OWNERS_SHOWN);
    printf("\n");
}

bool kd_is_block_shown(const kd_snapshot *snapshot, const kd_thread *thread, size_t block)
{
    int lock = thread->blocks[block].lock;

    return thread->block_count <= MAXIMUM_WAIT_OBJECTS || block < BLOCKS_SHOWN ||
           (lock >= 0 && snapshot->locks[lock].owner_count != 0);
}

static void print_wait(kd_snapshot *snapshot, const kd_thread *thread, bool all)
{
    size_t left_out = 0;
    double left;

    for (size_t i = 0; i < thread->block_count; i++) {
        if (all || kd_is_block_shown(snapshot, thread, i))
            print_block(snapshot, &thread->blocks[i]);
        else
            left_out++;
    }
    if (left_out != 0)
        printf("        and %zu objects without an owner: `interlock threads PID %u` has them\n", left_out, thread->id);
    printf("    WaitRegister.State %s  WaitIrql %u  WaitBlockCount %u\n",
           kd_wait_state_name(thread->raw->WaitRegister & KI_WAIT_STATE_MASK), thread->raw->WaitIrql,
           thread->raw->WaitBlockCount);
    printf("    Wait Start TickCount      %u", thread->raw->WaitTime);
    if (snapshot->now != 0)
        printf("    Ticks: %.0f (%.3f s)", kd_waited(snapshot, thread) / kd_seconds(KI_TICK),
               kd_waited(snapshot, thread));
    if (kd_time_left(snapshot, thread, &left))
        printf("    Timeout in %.3f s", left);
    printf("\n");
}

static void print_owned(const kd_snapshot *snapshot, const kd_thread *thread)
{
    char text[512];

    for (size_t i = 0; i < thread->owned_count; i++)
        printf("    Owns %s\n", kd_describe_lock(&snapshot->locks[thread->owned[i]], text, sizeof(text)));
}

static void print_title(kd_snapshot *snapshot, const kd_thread *thread)
{
    const KTHREAD *raw = thread->raw;

    printf("THREAD %016" PRIx64 "  Cid %04x.%04x (%u)  %s  ", thread->address, snapshot->process_id, thread->id,
           thread->id, thread->name);
    if (thread->moving)
        printf("it changes too fast to be read\n");
    else if (thread->waiting)
        printf("WAIT: (%s) %s %s%s%s\n", kd_wait_reason_name(raw->WaitReason), mode_name(raw->WaitMode),
               raw->Alertable ? "Alertable" : "Non-Alertable",
               (raw->WaitRegister & KI_WAIT_STATE_MASK) >= WaitFirstSuspendState ? " SUSPENDED" : "",
               thread->orphaned ? " *** ORPHANED LOCK" : thread->deadlocked ? " *** DEADLOCKED" : "");
    else if (raw->Prcb != NULL)
        printf("RUNNING at IRQL %u, host state %c\n", raw->Irql, thread->host_state);
    else
        printf("%s, host state %c\n", kd_thread_state_name(raw->State), thread->host_state);
}

static void print_counters(const KTHREAD *raw)
{
    printf("    IRQL %u  Context Switch Count %u", raw->Irql, raw->ContextSwitches);
    if (raw->SuspendCount != 0)
        printf("  SuspendCount %d", raw->SuspendCount);
    for (size_t i = 0; i < sizeof(pending) / sizeof(pending[0]); i++)
        if (raw->WaitRegister & pending[i].bit)
            printf("  %s pending", pending[i].name);
    printf("\n");
}

static void print_priority(const KTHREAD *raw)
{
    printf("    Priority %d BasePriority %d PriorityDecrement %d\n", KiBoostedPriority(raw), raw->BasePriority,
           boost_of(raw));
}

/* A thread of another process, with its known waits. */
static void print_foreign(const kd_snapshot *snapshot, const kd_thread *thread)
{
    char text[640];

    printf("THREAD of process %u (%s)  Cid %04x.%04x (%u)  %s  %s%s\n", thread->process_id, thread->process_name,
           thread->process_id, thread->id, thread->id, thread->name, thread->waiting ? "WAIT" : "not waiting, or not known",
           thread->deadlocked ? " *** DEADLOCKED" : "");
    for (size_t i = 0; i < thread->block_count; i++)
        if (thread->blocks[i].lock >= 0)
            printf("            %s\n", kd_describe_lock(&snapshot->locks[thread->blocks[i].lock], text, sizeof(text)));
}

void kd_print_thread(kd_snapshot *snapshot, const kd_thread *thread, const kd_options *options)
{
    if (thread->process_id != 0) {
        print_foreign(snapshot, thread);
        return;
    }
    print_title(snapshot, thread);
    if (thread->waiting)
        print_wait(snapshot, thread, options->argument != NULL);
    print_owned(snapshot, thread);
    print_counters(thread->raw);
    print_priority(thread->raw);
    if (options->stack)
        kd_print_stack(snapshot->target, thread->id);
    printf("\n");
}

/* 00:01:02.345, as !thread has it. */
static void print_time(const char *name, double seconds)
{
    if (seconds < 0)
        printf("    %-25s not known\n", name);
    else
        printf("    %-25s %02.0f:%02d:%06.3f\n", name, (double)(uint64_t)(seconds / 3600),
               (int)((uint64_t)(seconds / 60) % 60), seconds - 60 * (double)(uint64_t)(seconds / 60));
}

void kd_print_thread_briefly(kd_snapshot *snapshot, const kd_thread *thread)
{
    kd_address start = kd_start_address(thread), pointer, limit, base;
    char symbol[KD_SYMBOL_SIZE] = "";

    printf("    ");
    if (thread->process_id != 0) {
        print_foreign(snapshot, thread);
        return;
    }
    print_title(snapshot, thread);
    if (thread->waiting)
        print_wait(snapshot, thread, false);
    print_counters(thread->raw);
    print_time("UserTime", thread->user_time);
    print_time("KernelTime", thread->kernel_time);
    kd_symbol(snapshot->target, start, symbol);
    if (start != 0)
        printf("    Win32 Start Address %s%s0x%016" PRIx64 "%s\n", symbol, symbol[0] != '\0' ? " (" : "", start,
               symbol[0] != '\0' ? ")" : "");
    if (read_stack_limits(snapshot, thread, &pointer, &limit, &base))
        printf("    Stack Current %016" PRIx64 " Base %016" PRIx64 " Limit %016" PRIx64 "\n", pointer, base, limit);
    print_priority(thread->raw);
}

/* The index of the requested thread. FALSE: there is none, which was reported. */
static bool find_one(const kd_snapshot *snapshot, const kd_options *options, int *thread)
{
    uint64_t id;

    *thread = -1;
    if (options->argument == NULL)
        return true;
    if (kd_parse_number(options->argument, &id) && id <= UINT32_MAX)
        *thread = kd_thread_with_id(snapshot, (uint32_t)id);
    if (*thread < 0)
        kd_say("there is no thread %s: `interlock threads` lists them", options->argument);
    return *thread >= 0;
}

static int show_threads(kd_snapshot *snapshot, const kd_options *options)
{
    json out = kd_json(options);
    int one;

    if (!find_one(snapshot, options, &one))
        return 1;
    if (options->json) {
        json_object(&out, NULL);
        json_process(&out, snapshot);
        kd_json_deadlocks(&out, snapshot);
        json_array(&out, "threads");
        for (size_t i = 0; i < snapshot->own_count; i++)
            if (one < 0 || one == (int)i)
                json_one(&out, snapshot, (int)i, options);
        json_end(&out);
        kd_json_end(&out, snapshot);
        return 0;
    }
    if (one >= 0) {
        kd_print_thread(snapshot, &snapshot->threads[one], options);
        return 0;
    }
    kd_print_deadlocks(snapshot);
    for (size_t i = 0; i < snapshot->own_count; i++)
        if (options->verbose || !snapshot->threads[i].system)
            kd_print_thread(snapshot, &snapshot->threads[i], options);
    return 0;
}

const kd_view kd_threads_view = {
    .name = "threads",
    .arguments = "[--json] [--stack] [-v] PID|CORE [ID]\n"
                 "  --stack   with the stacks of the threads\n"
                 "  -v        also the threads of the library itself\n"
                 "  ID        one thread",
    .has_argument = true,
    .show = show_threads,
};

int command_threads(int argc, char **argv)
{
    return kd_run(&kd_threads_view, argc, argv);
}

static void print_stacks(kd_snapshot *snapshot)
{
    char text[192];

    for (size_t i = 0; i < snapshot->own_count; i++) {
        if (!snapshot->threads[i].deadlocked)
            continue;
        printf("%s:\n", kd_describe_thread(snapshot, (int)i, text, sizeof(text)));
        kd_print_stack(snapshot->target, snapshot->threads[i].id);
    }
}

static int show_deadlocks(kd_snapshot *snapshot, const kd_options *options)
{
    json out = kd_json(options);

    if (options->json) {
        json_object(&out, NULL);
        json_process(&out, snapshot);
        kd_json_deadlocks(&out, snapshot);
        json_array(&out, "deadlocked_threads");
        for (size_t i = 0; i < snapshot->own_count; i++)
            if (snapshot->threads[i].deadlocked)
                json_number(&out, NULL, snapshot->threads[i].id);
        json_end(&out);
        kd_json_end(&out, snapshot);
        return 0;
    }
    kd_print_deadlocks(snapshot);
    if (snapshot->deadlocks->cycle_count == 0 && snapshot->deadlocks->suspicion_count == 0)
        printf("No deadlock: every wait can end, as far as owners are known.\n");
    else if (options->stack)
        print_stacks(snapshot);
    return 0;
}

const kd_view kd_deadlocks_view = {
    .name = "deadlocks",
    .arguments = "[--json] [--stack] PID|CORE\n"
                 "  --stack   with the stacks of the threads that are stuck",
    .show = show_deadlocks,
    .status = kd_status_of,
};

int command_deadlocks(int argc, char **argv)
{
    return kd_run(&kd_deadlocks_view, argc, argv);
}
