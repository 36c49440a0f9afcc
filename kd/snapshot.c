/* snapshot.c: the threads of a process with their waits, and everything that is found through them. */
#include "kd.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_READS 8
#define MOST_BLOCKS (MAXIMUM_WAIT_OBJECTS + 1)
#define SYSTEM_TIME_OF_1970 116444736000000000ull

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 10000000 + (uint64_t)now.tv_nsec / 100;
}

/* Text. */

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

char *kd_utf8(kd_target *target, kd_address text, size_t units, char *buffer, size_t size)
{
    char *to = buffer, *last = buffer + size - 5;
    uint32_t high = 0;

    for (size_t i = 0; i < units && to < last; i++) {
        uint16_t unit;

        if (!kd_read(target, text + 2 * i, &unit, sizeof(unit)))
            break;
        if (unit >= 0xd800 && unit < 0xdc00) {
            high = unit;
            continue;
        }
        if (unit < 0x20 || unit == 0x7f) /* nothing that a terminal obeys */
            unit = '?';
        if (unit >= 0xdc00 && unit < 0xe000)
            to = put_utf8(to, high != 0 ? 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00u) : 0xfffd);
        else
            to = put_utf8(to, unit);
        high = 0;
    }
    *to = '\0';
    return buffer;
}

/* Threads. */

static void read_host_state(kd_snapshot *snapshot, kd_thread *thread)
{
    int process = kd_process_of(snapshot->target);
    char path[64], line[512];
    FILE *file;

    thread->host_state = '?';
    if (process == 0)
        return;
    snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", process, thread->id);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(line, sizeof(line), file) != NULL) {
        char *name = strchr(line, '('), *end = strrchr(line, ')');

        if (name != NULL && end != NULL && end[1] == ' ') {
            thread->host_state = end[2];
            *end = '\0';
            if (thread->name[0] == '\0')
                snprintf(thread->name, sizeof(thread->name), "%s", name + 1);
            for (char *c = thread->name; *c != '\0'; c++)
                if ((unsigned char)*c < 0x20 || *c == 0x7f)
                    *c = '?';
        }
    }
    fclose(file);
}

static void read_name(kd_snapshot *snapshot, kd_thread *thread)
{
    const UNICODE_STRING *name = &thread->object->ThreadName;

    if (name->Buffer != NULL)
        kd_utf8(snapshot->target, KD_ADDRESS(name->Buffer), name->Length / sizeof(WCHAR), thread->name,
                sizeof(thread->name));
}

static bool is_same_wait(const KTHREAD *one, const KTHREAD *other)
{
    return one->WaitRegister == other->WaitRegister && one->WaitBlockList == other->WaitBlockList &&
           one->WaitBlockCount == other->WaitBlockCount && one->WaitTime == other->WaitTime &&
           one->State == other->State && one->ContextSwitches == other->ContextSwitches &&
           one->LockWaitedFor == other->LockWaitedFor && one->ThreadId == other->ThreadId;
}

static bool is_committed(const KTHREAD *thread)
{
    unsigned state = thread->WaitRegister & KI_WAIT_STATE_MASK;

    return thread->State == Waiting && (thread->WaitRegister & KI_WAIT_ACTIVE) != 0 && state != WaitInProgress &&
           state != WaitAborted;
}

static bool read_blocks(kd_snapshot *snapshot, const KTHREAD *thread, KWAIT_BLOCK *blocks)
{
    size_t count = thread->WaitBlockCount;

    return !is_committed(thread) || count == 0 ||
           (count <= MOST_BLOCKS &&
            kd_read(snapshot->target, KD_ADDRESS(thread->WaitBlockList), blocks, count * sizeof(KWAIT_BLOCK)));
}

/* The slot and the blocks that go with it. FALSE: there is no thread in the slot. */
static bool read_thread(kd_snapshot *snapshot, kd_address address, kd_thread *thread)
{
    KI_THREAD_SLOT *again = malloc(sizeof(*again));
    KWAIT_BLOCK blocks[MOST_BLOCKS];
    bool still = false;

    thread->slot = aligned_alloc(KI_CACHE_LINE, sizeof(*thread->slot));
    for (int i = 0; !still && i < MOST_READS; i++)
        still = kd_read(snapshot->target, address, thread->slot, sizeof(*thread->slot)) &&
                read_blocks(snapshot, &thread->slot->Tcb, blocks) &&
                kd_read(snapshot->target, address, again, sizeof(*again)) &&
                is_same_wait(&thread->slot->Tcb, &again->Tcb);
    free(again);
    thread->raw = &thread->slot->Tcb;
    thread->object = (ETHREAD *)(void *)thread->raw;
    thread->id = thread->raw->ThreadId;
    thread->address = address + offsetof(KI_THREAD_SLOT, Tcb);
    thread->moving = !still;
    thread->system = thread->raw->IsIdleThread;
    thread->waiting = still && is_committed(thread->raw);
    if (thread->slot->Use != KiSlotUsed || thread->id == 0) {
        free(thread->slot);
        return false;
    }
    for (size_t i = 0; thread->waiting && i < thread->raw->WaitBlockCount; i++) {
        thread->blocks = kd_grow(thread->blocks, thread->block_count, sizeof(kd_block));
        thread->blocks[thread->block_count++] = (kd_block){
            .address = KD_ADDRESS(thread->raw->WaitBlockList) + i * sizeof(KWAIT_BLOCK),
            .raw = blocks[i],
            .lock = -1,
        };
    }
    return true;
}

static bool collect_threads(kd_snapshot *snapshot)
{
    kd_address chunks[KI_THREAD_CHUNKS];
    kd_address root = kd_root(snapshot->target, "KiThreadChunk", NULL);
    uint32_t used;

    if (!kd_read(snapshot->target, root, chunks, sizeof(chunks)) ||
        !kd_read(snapshot->target, kd_root(snapshot->target, "KiThreadSlotsUsed", NULL), &used, sizeof(used)) ||
        used > KI_THREAD_CHUNK * KI_THREAD_CHUNKS)
        return false;
    for (uint32_t i = 0; i < used; i++) {
        kd_address chunk = chunks[i / KI_THREAD_CHUNK];
        kd_thread thread = {.id = 0};

        if (chunk == 0 ||
            !read_thread(snapshot, chunk + i % KI_THREAD_CHUNK * sizeof(KI_THREAD_SLOT), &thread))
            continue;
        read_name(snapshot, &thread);
        if (thread.raw->State != Terminated)
            read_host_state(snapshot, &thread);
        snapshot->threads = kd_grow(snapshot->threads, snapshot->thread_count, sizeof(kd_thread));
        snapshot->threads[snapshot->thread_count++] = thread;
    }
    return true;
}

int kd_thread_at(const kd_snapshot *snapshot, kd_address address)
{
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (snapshot->threads[i].address == address)
            return (int)i;
    return -1;
}

int kd_thread_with_id(const kd_snapshot *snapshot, uint32_t id)
{
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (snapshot->threads[i].id == id && snapshot->threads[i].raw->State != Terminated)
            return (int)i;
    /* what was owned at a fork is owned under the id of before */
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (id != 0 && snapshot->threads[i].raw->ThreadIdBeforeFork == id)
            return (int)i;
    return -1;
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
    snapshot->process_id = process.ProcessId;
    snapshot->verifier = verifier != 0;
    return true;
}

static void free_deadlocks(kd_deadlocks *deadlocks)
{
    if (deadlocks == NULL)
        return;
    for (size_t i = 0; i < deadlocks->cycle_count; i++)
        free(deadlocks->cycles[i].links);
    for (size_t i = 0; i < deadlocks->suspicion_count; i++)
        free(deadlocks->suspicions[i].suspects);
    free(deadlocks->cycles);
    free(deadlocks->suspicions);
    free(deadlocks);
}

static kd_snapshot *take_once(kd_target *target)
{
    kd_snapshot *snapshot = calloc(1, sizeof(*snapshot));

    snapshot->target = target;
    if (kd_process_of(target) != 0) {
        snapshot->now = read_clock(CLOCK_MONOTONIC);
        snapshot->system_time = read_clock(CLOCK_REALTIME) + SYSTEM_TIME_OF_1970;
    }
    if (!collect_process(snapshot) || !collect_threads(snapshot)) {
        kd_say("the threads cannot be read: the process has ended, or its memory is damaged");
        kd_snapshot_free(snapshot);
        return NULL;
    }
    kd_collect_handles(snapshot);
    kd_collect_locks(snapshot);
    /* Memory that has gone does not come back: what can be read now could be read all the time. */
    if (!collect_process(snapshot)) {
        kd_say("the process has ended while it was looked at");
        kd_snapshot_free(snapshot);
        return NULL;
    }
    kd_find_deadlocks(snapshot);
    return snapshot;
}

/*
 * Threads and owners are read one after the other, so what one snapshot takes for a cycle may never have been one. A
 * second one tells: threads that have been in the same wait from one to the next stood still in between, all at once.
 * A waiter of a resource may wake once to boost the owners; it still waits for the same.
 */
static bool has_waited_since(const kd_snapshot *before, const kd_snapshot *now, const kd_thread *thread)
{
    int index = kd_thread_at(before, thread->address);
    const kd_thread *then = index >= 0 ? &before->threads[index] : NULL;

    if (then == NULL || then->id != thread->id || !then->waiting || then->block_count != thread->block_count ||
        (thread->raw->WaitReason != WrResource && then->raw->ContextSwitches != thread->raw->ContextSwitches))
        return false;
    for (size_t i = 0; i < thread->block_count; i++) {
        int old = then->blocks[i].lock, new = thread->blocks[i].lock;

        if ((old < 0) != (new < 0) || (new >= 0 && before->locks[old].address != now->locks[new].address))
            return false;
    }
    return true;
}

static bool is_confirmed(const kd_snapshot *before, const kd_snapshot *now)
{
    for (size_t i = 0; i < now->thread_count; i++)
        if (now->threads[i].deadlocked && !has_waited_since(before, now, &now->threads[i]))
            return false;
    for (size_t i = 0; i < now->deadlocks->suspicion_count; i++) {
        const kd_suspicion *suspicion = &now->deadlocks->suspicions[i];

        for (size_t s = 0; s < suspicion->count; s++)
            if (!has_waited_since(before, now, &now->threads[suspicion->suspects[s]]))
                return false;
    }
    return true;
}

static bool has_deadlocks(const kd_snapshot *snapshot)
{
    return snapshot->deadlocks->cycle_count != 0 || snapshot->deadlocks->suspicion_count != 0;
}

static void forget_deadlocks(kd_snapshot *snapshot)
{
    free_deadlocks(snapshot->deadlocks);
    snapshot->deadlocks = calloc(1, sizeof(kd_deadlocks));
    for (size_t i = 0; i < snapshot->thread_count; i++)
        snapshot->threads[i].deadlocked = snapshot->threads[i].orphaned = false;
}

kd_snapshot *kd_snapshot_take(kd_target *target)
{
    kd_snapshot *snapshot = take_once(target);
    bool confirmed = kd_process_of(target) == 0;

    for (int i = 0; snapshot != NULL && !confirmed && has_deadlocks(snapshot) && i < MOST_READS; i++) {
        kd_snapshot *next = take_once(target);

        confirmed = next != NULL && is_confirmed(snapshot, next);
        kd_snapshot_free(snapshot);
        snapshot = next;
    }
    if (snapshot != NULL && !confirmed && has_deadlocks(snapshot))
        forget_deadlocks(snapshot);
    return snapshot;
}

void kd_snapshot_free(kd_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        free(snapshot->threads[i].slot);
        free(snapshot->threads[i].blocks);
    }
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        free(snapshot->locks[i].owners);
        free(snapshot->locks[i].waiters);
    }
    free_deadlocks(snapshot->deadlocks);
    free(snapshot->threads);
    free(snapshot->handles);
    free(snapshot->locks);
    free(snapshot);
}
