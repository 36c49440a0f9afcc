/* snapshot.c: the threads of a process, their waits, and everything found through them. */
#include "kd.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_READS 8
#define MOST_WRONG_WAITS 16
#define LAST_SHARE 100 /* of the budget, to check that the process still exists */
#define NAME_SIZE 128
#define SYSTEM_TIME_OF_1970 116444736000000000ull

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 10000000 + (uint64_t)now.tv_nsec / 100;
}

kd_time kd_time_now(void)
{
    return (kd_time){.interrupt = read_clock(CLOCK_MONOTONIC), .system = read_clock(CLOCK_REALTIME) + SYSTEM_TIME_OF_1970};
}

/* Threads. */

kd_address kd_start_address(const kd_thread *thread)
{
    const ETHREAD *object = thread->object;

    return object->Win32StartAddress != NULL ? KD_ADDRESS(object->Win32StartAddress)
           : object->UserStartRoutine != NULL ? KD_ADDRESS(object->UserStartRoutine) : KD_ADDRESS(object->StartRoutine);
}

/* The host's name, unless the thread has it from its process: then that of its start routine. */
static const char *name_without_description(kd_snapshot *snapshot, const kd_thread *thread, const char *host, size_t length)
{
    char clean[NAME_SIZE], process[NAME_SIZE], symbol[KD_SYMBOL_SIZE];
    const char *routine;

    kd_clean(clean, sizeof(clean), host, length);
    if (kd_start_address(thread) == 0 || !kd_process_name(snapshot->target, process, sizeof(process)) ||
        strcmp(clean, process) != 0 || !kd_symbol(snapshot->target, kd_start_address(thread), symbol))
        return kd_keep(snapshot, clean);
    routine = strchr(symbol, '!');
    return kd_keep(snapshot, routine != NULL ? routine + 1 : symbol);
}

static void read_host_state(kd_snapshot *snapshot, kd_thread *thread)
{
    FILE *file = kd_open_of_thread(snapshot->target, thread->id, "stat");
    char text[512], *name, *end;
    size_t length;

    thread->host_state = '?';
    if (file == NULL)
        return;
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    name = strchr(text, '(');
    end = strrchr(text, ')');
    if (name == NULL || end == NULL || end < name || end[1] != ' ')
        return;
    thread->host_state = end[2] >= 'A' && end[2] <= 'z' ? end[2] : '?';
    if (sscanf(end + 3, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf", &thread->user_time,
               &thread->kernel_time) == 2) {
        thread->user_time /= (double)sysconf(_SC_CLK_TCK);
        thread->kernel_time /= (double)sysconf(_SC_CLK_TCK);
    }
    if (thread->name[0] == '\0')
        thread->name = name_without_description(snapshot, thread, name + 1, (size_t)(end - name - 1));
}

static void read_name(kd_snapshot *snapshot, kd_thread *thread)
{
    const UNICODE_STRING *name = &thread->object->ThreadName;
    char clean[NAME_SIZE];

    if (name->Buffer != NULL)
        thread->name = kd_keep(snapshot, kd_read_wide(snapshot->target, KD_ADDRESS(name->Buffer),
                                                      name->Length / sizeof(WCHAR), clean, sizeof(clean)));
}

static bool is_same_wait(const KTHREAD *one, const KTHREAD *other)
{
    return one->WaitRegister == other->WaitRegister && one->WaitBlockList == other->WaitBlockList &&
           one->WaitBlockCount == other->WaitBlockCount && one->WaitTime == other->WaitTime &&
           one->State == other->State && one->ContextSwitches == other->ContextSwitches &&
           one->LockWaitedFor == other->LockWaitedFor && one->ThreadId == other->ThreadId;
}

bool kd_is_still_waiting(const kd_snapshot *snapshot, const kd_thread *thread)
{
    KTHREAD now;

    return kd_read(snapshot->target, thread->address, &now, sizeof(now)) && is_same_wait(thread->raw, &now);
}

static bool is_committed(const KTHREAD *thread)
{
    unsigned state = thread->WaitRegister & KI_WAIT_STATE_MASK;

    return thread->State == Waiting && (thread->WaitRegister & KI_WAIT_ACTIVE) != 0 && state != WaitInProgress &&
           state != WaitAborted;
}

/* *blocks: NULL, or the blocks of an earlier attempt. Of a live process a wait may end between two reads. */
static bool read_blocks(kd_snapshot *snapshot, const KTHREAD *thread, kd_address address, KWAIT_BLOCK **blocks)
{
    size_t count = thread->WaitBlockCount;

    free(*blocks);
    *blocks = NULL;
    if (!is_committed(thread) || count == 0)
        return true;
    if (!kd_spend_memory(snapshot->target, count * sizeof(KWAIT_BLOCK)))
        return false;
    *blocks = kd_allocate(count, sizeof(KWAIT_BLOCK));
    if (!kd_read(snapshot->target, KD_ADDRESS(thread->WaitBlockList), *blocks, count * sizeof(KWAIT_BLOCK)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (KD_ADDRESS((*blocks)[i].Thread) != address)
            return false;
    return true;
}

/* The slot and the blocks that go with it. FALSE: there is no thread in the slot. */
static bool read_thread(kd_snapshot *snapshot, kd_address address, kd_thread *thread)
{
    static KI_THREAD_SLOT slot, again;
    KWAIT_BLOCK *blocks = NULL;
    bool read = false, same = false, still = false;

    for (int i = 0; !still && i < MOST_READS; i++) {
        read = kd_read(snapshot->target, address, &slot, sizeof(slot));
        if (!read)
            break;
        if (slot.Use != KiSlotUsed || slot.Tcb.ThreadId == 0) {
            free(blocks);
            return false;
        }
        still = read_blocks(snapshot, &slot.Tcb, address + offsetof(KI_THREAD_SLOT, Tcb), &blocks);
        same = kd_read(snapshot->target, address, &again, sizeof(again)) && is_same_wait(&slot.Tcb, &again.Tcb);
        still = still && same;
    }
    if (!read)
        kd_inconsistent(snapshot, "thread", address, "its slot cannot be read");
    if (!read || !kd_spend_memory(snapshot->target, sizeof(ETHREAD) + sizeof(kd_thread) + 4 * KD_INDEX_COST)) {
        free(blocks);
        return false;
    }
    thread->object = kd_allocate_lines(sizeof(ETHREAD));
    memcpy(thread->object, (const char *)&slot + offsetof(KI_THREAD_SLOT, Tcb), sizeof(ETHREAD));
    thread->raw = &thread->object->Tcb;
    thread->id = thread->raw->ThreadId;
    thread->address = address + offsetof(KI_THREAD_SLOT, Tcb);
    thread->name = "";
    thread->cycle = -1;
    thread->host_state = '?';
    thread->user_time = thread->kernel_time = -1;
    if (thread->raw->ExitTime != 0) {
        thread->user_time = kd_seconds(thread->raw->UserTime);
        thread->kernel_time = kd_seconds(thread->raw->KernelTime);
    }
    thread->moving = !still;
    thread->system = thread->raw->IsIdleThread;
    thread->waiting = still && is_committed(thread->raw);
    if (!still && same && snapshot->fault_count < MOST_WRONG_WAITS) /* room for other inconsistencies */
        kd_inconsistent(snapshot, "thread", thread->address, "its wait blocks cannot be read, or are not its own");
    for (size_t i = 0; thread->waiting && i < thread->raw->WaitBlockCount; i++) {
        thread->blocks = kd_grow(thread->blocks, thread->block_count, sizeof(kd_block));
        thread->blocks[thread->block_count++] = (kd_block){
            .address = KD_ADDRESS(thread->raw->WaitBlockList) + i * sizeof(KWAIT_BLOCK),
            .raw = blocks[i],
            .lock = -1,
        };
    }
    free(blocks);
    kd_spend_memory(snapshot->target, thread->block_count * sizeof(kd_block));
    return true;
}

static void add_thread(kd_snapshot *snapshot, kd_thread thread)
{
    int index = (int)snapshot->thread_count;

    snapshot->threads = kd_grow(snapshot->threads, snapshot->thread_count, sizeof(kd_thread));
    snapshot->threads[snapshot->thread_count++] = thread;
    kd_index_add(&snapshot->threads_by_address, thread.address, index);
    /* of a live process one of the two may have ended meanwhile */
    if (thread.raw->State != Terminated && !kd_index_add(&snapshot->threads_by_id, thread.id, index) &&
        kd_process_of(snapshot->target) == 0)
        kd_inconsistent(snapshot, "thread", thread.address, "another thread has the same id");
    if (thread.raw->ThreadIdBeforeFork != 0)
        kd_index_add(&snapshot->threads_before_fork, thread.raw->ThreadIdBeforeFork, index);
}

static bool collect_threads(kd_snapshot *snapshot)
{
    kd_address chunks[KI_THREAD_CHUNKS];
    kd_address root = kd_root(snapshot->target, "KiThreadChunk", NULL);
    kd_address used_root = kd_root(snapshot->target, "KiThreadSlotsUsed", NULL);
    kd_index seen = {.slots = NULL};
    uint32_t used;

    if (!kd_read(snapshot->target, root, chunks, sizeof(chunks)) ||
        !kd_read(snapshot->target, used_root, &used, sizeof(used)))
        return false;
    if (used > KI_THREAD_CHUNK * KI_THREAD_CHUNKS) {
        kd_inconsistent(snapshot, "KiThreadSlotsUsed", used_root, "it exceeds the possible maximum");
        used = KI_THREAD_CHUNK * KI_THREAD_CHUNKS;
    }
    for (size_t c = 0; c * KI_THREAD_CHUNK < used; c++) {
        uint32_t left = used - (uint32_t)(c * KI_THREAD_CHUNK);

        if (chunks[c] != 0 && (chunks[c] % KI_CACHE_LINE != 0 || !kd_index_add(&seen, chunks[c], 0))) {
            kd_inconsistent(snapshot, "KiThreadChunk", root + c * sizeof(kd_address),
                            chunks[c] % KI_CACHE_LINE != 0 ? "a chunk is not aligned" : "a chunk occurs twice");
            continue;
        }
        for (uint32_t i = 0; chunks[c] != 0 && i < left && i < KI_THREAD_CHUNK; i++) {
            kd_address address = chunks[c] + i * sizeof(KI_THREAD_SLOT);
            kd_thread thread = {.id = 0};
            unsigned char byte;

            /* If a chunk is unreadable, so are its slots. */
            if (i == 0 && !kd_read(snapshot->target, address, &byte, 1)) {
                kd_inconsistent(snapshot, "KiThreadChunk", root + c * sizeof(kd_address), "a chunk cannot be read");
                break;
            }
            if (!kd_has_left(snapshot->target, KD_BEHIND_THREADS)) {
                kd_inconsistent(snapshot, "threads", address, "there are too many to inspect all of them");
                kd_index_free(&seen);
                return true;
            }
            if (!read_thread(snapshot, address, &thread))
                continue;
            read_name(snapshot, &thread);
            if (thread.raw->State != Terminated)
                read_host_state(snapshot, &thread);
            add_thread(snapshot, thread);
        }
    }
    kd_index_free(&seen);
    return true;
}

int kd_thread_at(const kd_snapshot *snapshot, kd_address address)
{
    return kd_index_find(&snapshot->threads_by_address, address);
}

int kd_thread_with_id(const kd_snapshot *snapshot, uint32_t id)
{
    int found = kd_index_find(&snapshot->threads_by_id, id);

    /* locks owned at a fork record the old id */
    return found >= 0 || id == 0 ? found : kd_index_find(&snapshot->threads_before_fork, id);
}

static bool collect_process(kd_snapshot *snapshot)
{
    kd_target *target = snapshot->target;
    KPROCESS process;
    BOOLEAN verifier;

    if (!kd_read(target, kd_root(target, "KiInitialProcessSlot", NULL) + offsetof(KI_PROCESS_SLOT, Pcb), &process,
                 sizeof(process)) ||
        !kd_read(target, kd_root(target, "KeNumberProcessors", NULL), &snapshot->processors, sizeof(uint32_t)) ||
        !kd_read(target, kd_root(target, "KiVerifierEnabled", NULL), &verifier, sizeof(verifier)))
        return false;
    if (snapshot->processors > INTERLOCK_MAXIMUM_PROCESSORS) {
        kd_inconsistent(snapshot, "KeNumberProcessors", kd_root(target, "KeNumberProcessors", NULL),
                        "it exceeds the possible maximum");
        snapshot->processors = INTERLOCK_MAXIMUM_PROCESSORS;
    }
    snapshot->process_id = process.ProcessId;
    snapshot->verifier = verifier != 0;
    return true;
}

static kd_snapshot *take_once(kd_target *target, bool alone)
{
    kd_snapshot *snapshot = kd_allocate(1, sizeof(*snapshot));
    kd_time now = kd_time_of(target);

    snapshot->target = target;
    snapshot->alone = alone;
    snapshot->now = now.interrupt;
    snapshot->system_time = now.system;
    if (!collect_process(snapshot) || !collect_threads(snapshot)) {
        kd_say("the threads cannot be read: the process has ended, or its memory is damaged");
        kd_snapshot_free(snapshot);
        return NULL;
    }
    snapshot->own_count = snapshot->thread_count;
    kd_collect_handles(snapshot);
    kd_collect_locks(snapshot);
    kd_note_spent(snapshot);
    if (snapshot->incomplete)
        kd_renew_budget(target, LAST_SHARE);
    /* Freed memory does not return: what is readable now was readable before. */
    if (!kd_is_there(target)) {
        kd_say("the process ended during the inspection");
        kd_snapshot_free(snapshot);
        return NULL;
    }
    kd_find_deadlocks(snapshot);
    return snapshot;
}

static bool is_same_lock(const kd_lock *one, const kd_lock *other)
{
    return one->address == other->address && one->process_id == other->process_id && one->world == other->world &&
           one->record == other->record;
}

int kd_find_same_lock(const kd_snapshot *there, const kd_lock *lock)
{
    int found = kd_index_find(&there->locks_by_address[lock->kind], lock->address);

    if (lock->process_id == 0 && lock->world < 0)
        return found;
    for (size_t i = 0; i < there->lock_count; i++)
        if (is_same_lock(&there->locks[i], lock))
            return (int)i;
    return -1;
}

/* A waiter of a resource may wake once to boost the owners; its wait is still the same. */
bool kd_has_waited_since(const kd_snapshot *before, const kd_snapshot *now, const kd_thread *thread)
{
    int index = kd_thread_at(before, thread->address);
    const kd_thread *then = index >= 0 ? &before->threads[index] : NULL;

    if (then == NULL || then->id != thread->id || !then->waiting || then->block_count != thread->block_count ||
        then->wait_number != thread->wait_number ||
        (thread->raw->WaitReason != WrResource && then->raw->ContextSwitches != thread->raw->ContextSwitches))
        return false;
    for (size_t i = 0; i < thread->block_count; i++) {
        int old = then->blocks[i].lock, new = thread->blocks[i].lock;

        if ((old < 0) != (new < 0) || (new >= 0 && !is_same_lock(&before->locks[old], &now->locks[new])))
            return false;
    }
    return true;
}

static bool has_deadlocks(const kd_snapshot *snapshot)
{
    return snapshot->deadlocks->cycle_count != 0 || snapshot->deadlocks->suspicion_count != 0;
}

/*
 * What one snapshot finds inconsistent may have been freed and reused between two reads: the object of a wait that has
 * ended meanwhile. Real damage is still there in the next snapshot.
 */
static void doubt_faults(const kd_snapshot *before, kd_snapshot *now)
{
    for (size_t i = 0; i < now->fault_count; i++)
        if (!kd_has_fault(before, &now->faults[i]))
            kd_doubt(&now->faults[i]);
}

static bool has_faults(const kd_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->fault_count; i++)
        if (!snapshot->faults[i].moving)
            return true;
    return false;
}

/* One that nothing confirms has not been seen. */
static void forget(kd_snapshot *snapshot)
{
    kd_forget_deadlocks(snapshot);
    snapshot->deadlocks = kd_allocate(1, sizeof(kd_deadlocks));
}

/*
 * Leaves what both snapshots have found. FALSE: cycles were found, and both have none in common; then this one is as it was, to
 * be compared with the next.
 */
static bool confirm(kd_snapshot *before, kd_snapshot *now, bool last)
{
    bool had_cycles = now->deadlocks->cycle_count != 0;

    kd_confirm_deadlocks(before, now);
    if (last || !had_cycles || now->deadlocks->cycle_count != 0)
        return true;
    kd_find_deadlocks(now);
    return false;
}

static kd_snapshot *take(kd_target *target, bool alone)
{
    kd_snapshot *snapshot;
    bool confirmed = kd_process_of(target) == 0;

    kd_renew_budget(target, 1);
    snapshot = take_once(target, alone);
    for (int i = 0; snapshot != NULL && !confirmed && i < MOST_READS; i++) {
        kd_snapshot *next;

        if (!has_deadlocks(snapshot) && (i > 0 || !has_faults(snapshot)))
            break;
        /* both together at most twice the budget of one */
        if (i > 0 && !kd_has_left(target, 1 - 1.0 / MOST_READS))
            break;
        kd_renew_budget(target, 1);
        next = take_once(target, alone);
        if (next != NULL) {
            confirmed = confirm(snapshot, next, i + 1 == MOST_READS);
            doubt_faults(snapshot, next);
        }
        kd_snapshot_free(snapshot);
        snapshot = next;
    }
    if (snapshot != NULL && !confirmed)
        forget(snapshot);
    return snapshot;
}

kd_snapshot *kd_snapshot_take(kd_target *target)
{
    return take(target, false);
}

kd_snapshot *kd_snapshot_take_alone(kd_target *target)
{
    return take(target, true);
}

static kd_snapshot *take_world(const char *path, bool quiet)
{
    struct kd_world *world = kd_world_read(path, quiet);
    kd_snapshot *snapshot = world != NULL ? kd_allocate(1, sizeof(*snapshot)) : NULL;

    if (snapshot == NULL)
        return NULL;
    snapshot->now = read_clock(CLOCK_MONOTONIC);
    kd_adopt_world(snapshot, world);
    kd_note_owned(snapshot);
    kd_find_deadlocks(snapshot);
    return snapshot;
}

kd_snapshot *kd_snapshot_of_world(const char *path, bool quiet)
{
    kd_snapshot *snapshot = take_world(path, quiet);
    bool confirmed = false;

    for (int i = 0; snapshot != NULL && !confirmed && has_deadlocks(snapshot) && i < MOST_READS; i++) {
        kd_snapshot *next = take_world(path, true);

        if (next == NULL) /* its processes have ended meanwhile */
            break;
        confirmed = confirm(snapshot, next, i + 1 == MOST_READS);
        kd_snapshot_free(snapshot);
        snapshot = next;
    }
    if (snapshot != NULL && !confirmed)
        forget(snapshot);
    return snapshot;
}

void kd_snapshot_free(kd_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        free(snapshot->threads[i].object);
        free(snapshot->threads[i].blocks);
        free(snapshot->threads[i].owned);
    }
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        free(snapshot->locks[i].owners);
        free(snapshot->locks[i].waiters);
    }
    kd_forget_deadlocks(snapshot);
    for (size_t n = 0; n < WO_PLACES; n++)
        kd_world_free(snapshot->worlds[n]);
    free(snapshot->threads);
    free(snapshot->handles);
    free(snapshot->locks);
    free(snapshot->faults);
    kd_forget_kept(snapshot);
    kd_index_free(&snapshot->threads_by_address);
    kd_index_free(&snapshot->threads_by_id);
    kd_index_free(&snapshot->threads_before_fork);
    kd_index_free(&snapshot->handles_by_header);
    kd_index_free(&snapshot->handles_by_body);
    for (size_t i = 0; i < KD_KINDS; i++)
        kd_index_free(&snapshot->locks_by_address[i]);
    kd_index_free(&snapshot->locks_by_object);
    kd_index_free(&snapshot->waiters);
    kd_index_free(&snapshot->wait_kinds);
    kd_index_free(&snapshot->resources_waited_for);
    kd_index_free(&snapshot->push_locks);
    kd_index_free(&snapshot->push_blocks_by_address);
    kd_index_free(&snapshot->push_blocks_by_thread);
    free(snapshot->push_blocks);
    free(snapshot);
}
