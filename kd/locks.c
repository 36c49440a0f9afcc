/*
 * locks.c: the locks that threads wait for, and their owners.
 *
 * Resources and critical sections with debug information are in lists. All others are found through the waiting threads:
 * the wait reason gives the kind of lock, and the object or the hint in the wait block its address.
 */
#include "kd.h"

#include <stdlib.h>
#include <string.h>

int kd_find_lock(const kd_snapshot *snapshot, kd_address address)
{
    int first = -1;

    for (size_t kind = 0; kind < KD_KINDS; kind++) {
        int found = kd_index_find(&snapshot->locks_by_address[kind], address);

        if (found >= 0 && (first < 0 || found < first))
            first = found;
    }
    return first;
}

static int find_lock(const kd_snapshot *snapshot, kd_kind kind, kd_address address)
{
    return kd_index_find(&snapshot->locks_by_address[kind], address);
}

static const char *name_of_lock(kd_snapshot *snapshot, const kd_lock *lock)
{
    const kd_handle *handle = kd_handle_of_header(snapshot, lock->object);
    char name[KD_SYMBOL_SIZE] = "";

    if (handle != NULL && handle->name[0] != '\0')
        kd_copy(name, sizeof(name), handle->name, sizeof(name));
    else if (!kd_symbol(snapshot->target, lock->address, name) && handle != NULL)
        snprintf(name, sizeof(name), "handle 0x%llx", (unsigned long long)handle->handle);
    return kd_keep(snapshot, name);
}

/* -1: already present, or the budget is spent. */
static int add_lock(kd_snapshot *snapshot, kd_kind kind, kd_address address, kd_address object)
{
    int index = (int)snapshot->lock_count;
    kd_lock *lock;

    if (!kd_spend_memory(snapshot->target, 2 * sizeof(kd_lock) + 2 * KD_INDEX_COST) ||
        !kd_index_add(&snapshot->locks_by_address[kind], address, index))
        return -1;
    snapshot->locks = kd_grow(snapshot->locks, snapshot->lock_count++, sizeof(kd_lock));
    lock = &snapshot->locks[index];
    lock->kind = kind;
    lock->address = address;
    lock->object = object;
    lock->contention = -1;
    lock->hold = KD_HOLD_UNKNOWN;
    lock->world = -1;
    lock->name = name_of_lock(snapshot, lock);
    return index;
}

/* From a list, where it should appear once. NULL: it appears again, or the budget is spent. */
static kd_lock *new_lock(kd_snapshot *snapshot, kd_kind kind, kd_address address, kd_address object)
{
    int index = add_lock(snapshot, kind, address, object);

    if (index < 0 && !kd_is_spent(snapshot->target))
        kd_inconsistent(snapshot, kd_kind_title(kind), address, "it is listed twice");
    return index >= 0 ? &snapshot->locks[index] : NULL;
}

static void add_owner(kd_snapshot *snapshot, kd_lock *lock, kd_owner owner)
{
    if (!kd_spend_memory(snapshot->target, 2 * (sizeof(kd_owner) + sizeof(int))))
        return;
    lock->owners = kd_grow(lock->owners, lock->owner_count, sizeof(kd_owner));
    lock->owners[lock->owner_count++] = owner;
}

static void add_thread_owner(kd_snapshot *snapshot, kd_lock *lock, kd_address thread, unsigned count)
{
    int index = kd_thread_at(snapshot, thread);

    if (thread == 0)
        return;
    add_owner(snapshot, lock, (kd_owner){
        .address = thread,
        .thread = index >= 0 && snapshot->threads[index].raw->State != Terminated ? index : -1,
        .id = index >= 0 ? snapshot->threads[index].id : 0,
        .count = count,
    });
}

static void add_owner_by_id(kd_snapshot *snapshot, kd_lock *lock, uint32_t id, unsigned count)
{
    int index = kd_thread_with_id(snapshot, id);

    add_owner(snapshot, lock, (kd_owner){
        .address = index >= 0 ? snapshot->threads[index].address : 0,
        .thread = index,
        .id = id,
        .count = count,
    });
}

static uint64_t waiter_key(const kd_snapshot *snapshot, const kd_lock *lock, int thread)
{
    return (uint64_t)(lock - snapshot->locks) << 32 | (uint32_t)thread;
}

static void add_waiter(kd_snapshot *snapshot, kd_lock *lock, int thread, bool exclusive)
{
    if (!kd_spend_memory(snapshot->target, 2 * sizeof(kd_waiter) + KD_INDEX_COST) ||
        !kd_index_add(&snapshot->waiters, waiter_key(snapshot, lock, thread), 0))
        return;
    lock->waiters = kd_grow(lock->waiters, lock->waiter_count, sizeof(kd_waiter));
    lock->waiters[lock->waiter_count++] = (kd_waiter){.thread = thread, .exclusive = exclusive};
}

/* Resources of the executive. */

static void add_resource_owner(kd_snapshot *snapshot, kd_lock *lock, const OWNER_ENTRY *entry)
{
    kd_address thread = entry->OwnerThread & ~(kd_address)EXP_OWNER_POINTER;

    if (entry->OwnerThread == 0)
        return;
    if ((entry->OwnerThread & EXP_OWNER_POINTER) == 0 || entry->OwnerReferenced)
        add_thread_owner(snapshot, lock, thread, entry->OwnerCount);
    else
        add_owner(snapshot, lock, (kd_owner){.address = entry->OwnerThread, .thread = -1, .count = entry->OwnerCount});
}

static void add_resource_waiters(kd_snapshot *snapshot, kd_lock *lock, kd_address first)
{
    EXP_RESOURCE_WAIT wait;
    size_t count;
    kd_address *waits = kd_chain(snapshot, "waiters of a resource", first, offsetof(EXP_RESOURCE_WAIT, Next), &count);

    for (size_t i = 0; i < count; i++) {
        int thread = kd_read(snapshot->target, waits[i], &wait, sizeof(wait))
                         ? kd_thread_at(snapshot, KD_ADDRESS(wait.Thread)) : -1;

        if (thread >= 0) {
            add_waiter(snapshot, lock, thread, wait.Exclusive);
            kd_index_add(&snapshot->resources_waited_for, (uint64_t)thread, (int)(lock - snapshot->locks));
        }
    }
    free(waits);
}

static void add_resource(kd_snapshot *snapshot, kd_address address, const ERESOURCE *resource)
{
    kd_kind kind = resource->Reserved2 != NULL ? KD_FAST_RESOURCE : KD_RESOURCE;
    kd_lock *lock = new_lock(snapshot, kind, address, 0);
    EXP_OWNER owner;
    kd_address *owners;
    size_t count;

    if (lock == NULL)
        return;
    lock->contention = resource->ContentionCount;
    lock->hold = resource->ActiveEntries == 0 ? KD_FREE
                 : resource->Flag & ResourceOwnedExclusive ? KD_EXCLUSIVE : KD_SHARED;
    add_resource_owner(snapshot, lock, &resource->OwnerEntry);
    owners = kd_chain(snapshot, "owners of a resource", KD_ADDRESS(resource->OwnerTable), offsetof(EXP_OWNER, Next),
                      &count);
    for (size_t i = 0; i < count; i++)
        if (kd_read(snapshot->target, owners[i], &owner, sizeof(owner)))
            add_resource_owner(snapshot, lock, &owner.Entry);
    free(owners);
    add_resource_waiters(snapshot, lock, KD_ADDRESS(resource->ExclusiveWaiters));
    add_resource_waiters(snapshot, lock, KD_ADDRESS(resource->SharedWaiters));
}

static void collect_resources(kd_snapshot *snapshot)
{
    kd_address head = kd_root(snapshot->target, "ExpSystemResourcesList", NULL), *resources;
    ERESOURCE resource;
    size_t count;

    if (head == 0) /* a static program without them */
        return;
    resources = kd_list(snapshot, "list of resources", head, offsetof(ERESOURCE, SystemResourcesList), &count, NULL);
    for (size_t i = 0; i < count; i++)
        if (kd_read(snapshot->target, resources[i], &resource, sizeof(resource)))
            add_resource(snapshot, resources[i], &resource);
    free(resources);
}

/* Critical sections and resources of user mode. */

/* From the debug information; without it the value of otherwise, -1: unknown. */
static int64_t contention_of(kd_snapshot *snapshot, const RTL_CRITICAL_SECTION_DEBUG *at, int64_t otherwise)
{
    RTL_CRITICAL_SECTION_DEBUG debug;

    if (at == NULL || at == RTLP_NO_DEBUG_INFO || !kd_read(snapshot->target, KD_ADDRESS(at), &debug, sizeof(debug)))
        return otherwise;
    return debug.ContentionCount;
}

static void fill_section(kd_snapshot *snapshot, kd_lock *lock, const RTL_CRITICAL_SECTION *section)
{
    uint32_t owner = (uint32_t)(uintptr_t)section->OwningThread;

    lock->hold = section->LockCount & RTLP_FREE ? KD_FREE : KD_EXCLUSIVE;
    if (lock->hold == KD_EXCLUSIVE && owner != 0)
        add_owner_by_id(snapshot, lock, owner, (unsigned)section->RecursionCount);
    lock->contention = contention_of(snapshot, section->DebugInfo, section->SpinCount >> 32); /* rtl/criticalsection.h */
}

static kd_address header_of_handle(kd_snapshot *snapshot, HANDLE value)
{
    const kd_handle *handle = kd_handle_with_value(snapshot, (uint32_t)(uintptr_t)value);

    return value != NULL && (intptr_t)value > 0 && handle != NULL ? handle->header : 0;
}

static void note_object(kd_snapshot *snapshot, kd_address object, const kd_lock *lock)
{
    if (object != 0 && kd_spend_memory(snapshot->target, KD_INDEX_COST))
        kd_index_add(&snapshot->locks_by_object, object, (int)(lock - snapshot->locks));
}

static void add_rtl_resource(kd_snapshot *snapshot, kd_address address)
{
    RTL_RESOURCE resource;
    kd_lock *lock;

    if (!kd_read(snapshot->target, address, &resource, sizeof(resource)))
        return;
    lock = new_lock(snapshot, KD_RTL_RESOURCE, address, header_of_handle(snapshot, resource.ExclusiveSemaphore));
    if (lock == NULL)
        return;
    note_object(snapshot, lock->object, lock);
    note_object(snapshot, header_of_handle(snapshot, resource.SharedSemaphore), lock);
    lock->hold = resource.NumberOfActive == 0 ? KD_FREE : resource.NumberOfActive < 0 ? KD_EXCLUSIVE : KD_SHARED;
    lock->contention = contention_of(snapshot, resource.DebugInfo, -1);
    if (lock->hold == KD_EXCLUSIVE && resource.ExclusiveOwnerThread != NULL)
        add_owner_by_id(snapshot, lock, (uint32_t)(uintptr_t)resource.ExclusiveOwnerThread,
                        0u - (unsigned)resource.NumberOfActive);
}

static void add_section(kd_snapshot *snapshot, const RTL_CRITICAL_SECTION_DEBUG *debug)
{
    kd_address address = KD_ADDRESS(debug->CriticalSection);
    RTL_CRITICAL_SECTION section;
    kd_lock *lock;

    if (!kd_read(snapshot->target, address, &section, sizeof(section)))
        return;
    lock = new_lock(snapshot, KD_CRITICAL_SECTION, address, header_of_handle(snapshot, section.LockSemaphore));
    if (lock == NULL)
        return;
    note_object(snapshot, lock->object, lock);
    fill_section(snapshot, lock, &section);
    if (debug->Type == RTL_RESOURCE_TYPE)
        add_rtl_resource(snapshot, address);
}

static void collect_sections(kd_snapshot *snapshot)
{
    kd_address head = kd_root(snapshot->target, "RtlCriticalSectionList", NULL), *sections;
    RTL_CRITICAL_SECTION_DEBUG debug;
    size_t count;

    if (head == 0) /* a static program without them */
        return;
    sections = kd_list(snapshot, "list of critical sections", head,
                       offsetof(RTL_CRITICAL_SECTION_DEBUG, ProcessLocksList), &count, NULL);
    for (size_t i = 0; i < count; i++)
        if (kd_read(snapshot->target, sections[i], &debug, sizeof(debug)))
            add_section(snapshot, &debug);
    free(sections);
}

/* Locks found through their waiters. */

static int note_wait(kd_snapshot *snapshot, int lock, int thread, bool exclusive)
{
    if (lock >= 0)
        add_waiter(snapshot, &snapshot->locks[lock], thread, exclusive);
    return lock;
}

/* The lock of this kind at this address; added for its first waiter. */
static int lock_at(kd_snapshot *snapshot, kd_kind kind, kd_address address, kd_address object)
{
    int lock = find_lock(snapshot, kind, address);

    return lock >= 0 ? lock : add_lock(snapshot, kind, address, object);
}

/* A waiter's block in the chain of a pushlock. */
typedef struct kd_push_block {
    kd_address lock;
    bool exclusive;
} kd_push_block;

static void read_push_lock(kd_snapshot *snapshot, kd_address lock, const char *what)
{
    EXP_WAIT_BLOCK block;
    kd_address *blocks;
    size_t count;
    uint64_t word;

    if (!kd_index_add(&snapshot->push_locks, lock, 0) || !kd_read(snapshot->target, lock, &word, sizeof(word)) ||
        !(word & EX_PUSH_LOCK_WAITING))
        return;
    blocks = kd_chain(snapshot, what, word & ~(uint64_t)(EXP_PUSH_LOCK_BITS | KI_FORK_TAG_MASK), offsetof(EXP_WAIT_BLOCK, Next),
                      &count);
    for (size_t i = 0; i < count; i++) {
        int index = (int)snapshot->push_block_count;

        if (!kd_read(snapshot->target, blocks[i], &block, sizeof(block)) ||
            !kd_spend_memory(snapshot->target, 2 * sizeof(kd_push_block) + 2 * KD_INDEX_COST))
            break;
        snapshot->push_blocks = kd_grow(snapshot->push_blocks, snapshot->push_block_count++, sizeof(kd_push_block));
        snapshot->push_blocks[index] = (kd_push_block){.lock = lock, .exclusive = block.Exclusive};
        kd_index_add(&snapshot->push_blocks_by_address, blocks[i], index);
        kd_index_add(&snapshot->push_blocks_by_thread, KD_ADDRESS(block.Thread), index);
    }
    free(blocks);
}

/* A waiter's block: by its address, or for an SRW lock by its thread. NULL: it is not in the chain. */
static const kd_push_block *find_push_block(kd_snapshot *snapshot, kd_address lock, kd_address block, kd_address thread)
{
    int found;

    read_push_lock(snapshot, lock, block != 0 ? "waiters of a pushlock" : NULL);
    found = block != 0 ? kd_index_find(&snapshot->push_blocks_by_address, block)
                       : kd_index_find(&snapshot->push_blocks_by_thread, thread);
    return found >= 0 && snapshot->push_blocks[found].lock == lock ? &snapshot->push_blocks[found] : NULL;
}

static void fill_push_lock(kd_snapshot *snapshot, kd_lock *lock)
{
    uint64_t word;

    if (!kd_read(snapshot->target, lock->address, &word, sizeof(word)))
        return;
    if (!(word & EX_PUSH_LOCK_LOCK))
        lock->hold = KD_FREE;
    else if (word & EX_PUSH_LOCK_WAITING) /* one sharer looks like one owner */
        lock->hold = word & EX_PUSH_LOCK_MULTIPLE_SHARED ? KD_SHARED : KD_HOLD_UNKNOWN;
    else
        lock->hold = word == EX_PUSH_LOCK_LOCK ? KD_EXCLUSIVE : KD_SHARED;
}

/* The last thread to acquire it after a wait is the probable owner, unless it waits for the lock again. */
static void guess_push_lock_owner(kd_snapshot *snapshot, kd_kind kind, int thread)
{
    const kd_thread *t = &snapshot->threads[thread];
    int index = find_lock(snapshot, kind, KD_ADDRESS(t->raw->LockOwned));
    kd_lock *lock = index >= 0 ? &snapshot->locks[index] : NULL;

    if (lock != NULL && lock->owner_count == 0 && (lock->hold == KD_EXCLUSIVE || lock->hold == KD_HOLD_UNKNOWN) &&
        kd_index_find(&snapshot->waiters, waiter_key(snapshot, lock, thread)) < 0)
        add_owner(snapshot, lock, (kd_owner){.address = t->address, .thread = thread, .id = t->id, .count = 1,
                                             .probable = true});
}

static int push_lock_of(kd_snapshot *snapshot, kd_kind kind, kd_address address, int thread, bool exclusive)
{
    int lock = find_lock(snapshot, kind, address);

    if (lock < 0 && (lock = add_lock(snapshot, kind, address, 0)) >= 0)
        fill_push_lock(snapshot, &snapshot->locks[lock]);
    return note_wait(snapshot, lock, thread, exclusive);
}

static int kernel_push_lock_of(kd_snapshot *snapshot, int thread, kd_address event)
{
    kd_address address = KD_ADDRESS(snapshot->threads[thread].raw->LockWaitedFor);
    EXP_WAIT_BLOCK block;

    if (address != 0) {
        const kd_push_block *found = find_push_block(snapshot, address, event, 0);

        return push_lock_of(snapshot, KD_PUSH_LOCK, address, thread, found == NULL || found->exclusive);
    }
    if (!kd_read(snapshot->target, event, &block, sizeof(block)))
        return -1;
    return note_wait(snapshot, lock_at(snapshot, KD_ADDRESS_PUSH_LOCK, KD_ADDRESS(block.Address), event), thread, true);
}

static int fast_mutex_of(kd_snapshot *snapshot, kd_kind kind, int thread, kd_address event)
{
    kd_address address = event - offsetof(FAST_MUTEX, Event);
    int index = find_lock(snapshot, kind, address);
    FAST_MUTEX mutex;

    if (index < 0 && kd_read(snapshot->target, address, &mutex, sizeof(mutex)) &&
        (index = add_lock(snapshot, kind, address, event)) >= 0) {
        snapshot->locks[index].contention = mutex.Contention;
        snapshot->locks[index].hold = mutex.Owner != NULL ? KD_EXCLUSIVE : KD_FREE;
        add_thread_owner(snapshot, &snapshot->locks[index], KD_ADDRESS(mutex.Owner), 1);
    }
    return note_wait(snapshot, index, thread, true);
}

static int keyed_event_of(kd_snapshot *snapshot, int thread, kd_address event)
{
    EXP_WAITER waiter;

    if (event < sizeof(waiter) || !kd_read(snapshot->target, event - sizeof(waiter), &waiter, sizeof(waiter)))
        return -1;
    return note_wait(snapshot, lock_at(snapshot, KD_KEYED_EVENT, KD_ADDRESS(waiter.Key.Key), event), thread, true);
}

/* Dispatcher objects. */

static kd_kind kind_of_type(unsigned type)
{
    switch (type) {
    case EventNotificationObject:
    case EventSynchronizationObject:
        return KD_EVENT;
    case MutantObject:
        return KD_MUTANT;
    case ProcessObject:
        return KD_PROCESS;
    case QueueObject:
        return KD_QUEUE;
    case SemaphoreObject:
        return KD_SEMAPHORE;
    case ThreadObject:
        return KD_THREAD;
    case GateObject:
        return KD_GATE;
    case TimerNotificationObject:
    case TimerSynchronizationObject:
        return KD_TIMER;
    default:
        return KD_UNKNOWN;
    }
}

static void fill_mutant(kd_snapshot *snapshot, kd_lock *lock)
{
    KMUTANT mutant;

    if (!kd_read(snapshot->target, lock->address, &mutant, sizeof(mutant)))
        return;
    lock->hold = mutant.Header.SignalState > 0 ? KD_FREE : KD_EXCLUSIVE;
    if (lock->hold == KD_EXCLUSIVE)
        add_thread_owner(snapshot, lock, KD_ADDRESS(mutant.OwnerThread), 1u - (unsigned)mutant.Header.SignalState);
}

int kd_object_lock(kd_snapshot *snapshot, kd_address address)
{
    DISPATCHER_HEADER header;
    kd_lock *lock;
    kd_kind kind;
    int index;

    if (!kd_read(snapshot->target, address, &header, sizeof(header)))
        return -1;
    kind = kind_of_type(header.Type & KOBJECT_TYPE_MASK);
    index = find_lock(snapshot, kind, address);
    if (index >= 0)
        return index;
    index = add_lock(snapshot, kind, address, address);
    if (index < 0)
        return -1;
    lock = &snapshot->locks[index];
    lock->has_state = true;
    if (header.WaitListHead.Flink == NULL) { /* KiIsOutside: kd_collect_shared does the rest */
        lock->outside = KD_ADDRESS(header.WaitListHead.Blink);
        return index;
    }
    lock->signal_state = header.SignalState;
    lock->hold = header.SignalState > 0 ? KD_FREE : KD_HOLD_UNKNOWN;
    if (kind == KD_MUTANT)
        fill_mutant(snapshot, lock);
    else if (kind == KD_THREAD && header.SignalState == 0)
        add_thread_owner(snapshot, lock, address, 1);
    if (kind == KD_THREAD && kd_thread_at(snapshot, address) >= 0) {
        char name[32];

        snprintf(name, sizeof(name), "thread %u", snapshot->threads[kd_thread_at(snapshot, address)].id);
        lock->name = kd_keep(snapshot, name);
    }
    return index;
}

/* Waits for an alert by id have only the hint; the waiter hash knows its purpose. */

static void collect_wait_kinds(kd_snapshot *snapshot)
{
    static EXP_WAITER_BUCKET buckets[EXP_WAITER_BUCKETS];
    kd_address table = kd_root(snapshot->target, "ExpWaiterTable", NULL);

    if (table == 0) /* a static program without it */
        return;
    if (!kd_read(snapshot->target, table, buckets, sizeof(buckets))) {
        kd_inconsistent(snapshot, "table of waiters", table, "it cannot be read");
        return;
    }
    for (size_t b = 0; b < EXP_WAITER_BUCKETS; b++) {
        kd_address head = table + b * sizeof(buckets[0]) + offsetof(EXP_WAITER_BUCKET, WaiterList), *waiters;
        RTLP_WAITER waiter;
        size_t count;

        if (buckets[b].ProcessId != snapshot->process_id || buckets[b].Count == 0)
            continue;
        waiters = kd_list(snapshot, "table of waiters", head, offsetof(RTLP_WAITER, Waiter.Link), &count, NULL);
        for (size_t i = 0; i < count; i++)
            if (kd_read(snapshot->target, waiters[i], &waiter, sizeof(waiter)) && waiter.Waiter.Key.Object == NULL &&
                kd_spend_memory(snapshot->target, KD_INDEX_COST))
                kd_index_add(&snapshot->wait_kinds, KD_ADDRESS(waiter.Thread),
                             waiter.Waiter.Key.Kind == RtlpConditionWait ? KD_CONDITION_VARIABLE : KD_ADDRESS_WAIT);
        free(waiters);
    }
}

static int section_of(kd_snapshot *snapshot, kd_address address, int thread)
{
    RTL_CRITICAL_SECTION section;
    int lock = find_lock(snapshot, KD_CRITICAL_SECTION, address);

    if (lock < 0 && kd_read(snapshot->target, address, &section, sizeof(section)) &&
        (lock = add_lock(snapshot, KD_CRITICAL_SECTION, address, 0)) >= 0)
        fill_section(snapshot, &snapshot->locks[lock], &section);
    return note_wait(snapshot, lock, thread, true);
}

static int hint_of(kd_snapshot *snapshot, int thread, kd_address hint)
{
    kd_address address = snapshot->threads[thread].address;
    int kind = kd_index_find(&snapshot->wait_kinds, address);
    const kd_push_block *block = kind < 0 ? find_push_block(snapshot, hint, 0, address) : NULL;

    if (block != NULL)
        return push_lock_of(snapshot, KD_SRW_LOCK, hint, thread, block->exclusive);
    return note_wait(snapshot, lock_at(snapshot, kind >= 0 ? (kd_kind)kind : KD_ALERT, hint, 0), thread, true);
}

static int own_event_of(kd_snapshot *snapshot, kd_kind kind, int thread, kd_address object)
{
    return note_wait(snapshot, lock_at(snapshot, kind, object, object), thread, true);
}

/* A section's waiters wait for its event or on the address of its LockCount; the thread names the section in both cases. */
static kd_address section_waited_for(const kd_thread *thread)
{
    return thread->raw->WaitReason == WrAlertByThreadId || thread->raw->WaitReason == UserRequest
               ? KD_ADDRESS(thread->raw->LockWaitedFor) : 0;
}

static int lock_of_block(kd_snapshot *snapshot, int thread, const kd_block *block)
{
    kd_address object = KD_ADDRESS(block->raw.Object);
    int lock;

    if (section_waited_for(&snapshot->threads[thread]) != 0)
        return section_of(snapshot, section_waited_for(&snapshot->threads[thread]), thread);
    if (block->raw.WaitType == KI_HINT_BLOCK)
        return hint_of(snapshot, thread, object);
    switch (snapshot->threads[thread].raw->WaitReason) {
    case WrPushLock:
        return kernel_push_lock_of(snapshot, thread, object);
    case WrFastMutex:
        return fast_mutex_of(snapshot, KD_FAST_MUTEX, thread, object);
    case WrGuardedMutex:
        return fast_mutex_of(snapshot, KD_GUARDED_MUTEX, thread, object);
    case WrResource:
        if ((lock = kd_index_find(&snapshot->resources_waited_for, (uint64_t)thread)) >= 0)
            return lock;
        break;
    case WrKeyedEvent:
        return keyed_event_of(snapshot, thread, object);
    case WrRundown:
        return own_event_of(snapshot, KD_RUNDOWN, thread, object);
    case Suspended:
    case WrSuspended:
        return own_event_of(snapshot, KD_SUSPENSION, thread, object);
    default:
        break;
    }
    /* an event or semaphore of its own, or of a user-mode lock */
    if ((lock = kd_index_find(&snapshot->locks_by_object, object)) < 0)
        lock = kd_object_lock(snapshot, object);
    return note_wait(snapshot, lock, thread, true);
}

/* Mutants that a thread owns, with or without waiters. */
static void collect_mutants(kd_snapshot *snapshot, const kd_thread *thread)
{
    kd_address head = thread->address + offsetof(KTHREAD, MutantListHead), *mutants;
    KMUTANT mutant;
    size_t count;

    if (KD_ADDRESS(thread->raw->MutantListHead.Flink) == head || thread->raw->MutantListHead.Flink == NULL)
        return;
    mutants = kd_list(snapshot, "mutants of a thread", head, offsetof(KMUTANT, MutantListEntry), &count, NULL);
    for (size_t i = 0; i < count; i++)
        if (kd_read(snapshot->target, mutants[i], &mutant, sizeof(mutant)) &&
            (mutant.Header.Type & KOBJECT_TYPE_MASK) == MutantObject)
            kd_object_lock(snapshot, mutants[i]);
    free(mutants);
}

void kd_note_owned(kd_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        const kd_lock *lock = &snapshot->locks[i];

        for (size_t o = 0; lock->kind != KD_THREAD && o < lock->owner_count; o++) {
            kd_thread *thread = lock->owners[o].thread >= 0 ? &snapshot->threads[lock->owners[o].thread] : NULL;

            if (thread == NULL || (thread->owned_count != 0 && thread->owned[thread->owned_count - 1] == (int)i))
                continue;
            thread->owned = kd_grow(thread->owned, thread->owned_count, sizeof(int));
            thread->owned[thread->owned_count++] = (int)i;
        }
    }
}

void kd_collect_locks(kd_snapshot *snapshot)
{
    collect_resources(snapshot);
    collect_sections(snapshot);
    collect_wait_kinds(snapshot);
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        kd_thread *thread = &snapshot->threads[i];

        if (thread->raw->State != Terminated)
            collect_mutants(snapshot, thread);
        for (size_t b = 0; b < thread->block_count; b++)
            thread->blocks[b].lock = lock_of_block(snapshot, (int)i, &thread->blocks[b]);
    }
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        const KTHREAD *raw = snapshot->threads[i].raw;

        if (raw->LockOwned != NULL && raw->State != Terminated) {
            guess_push_lock_owner(snapshot, KD_PUSH_LOCK, (int)i);
            guess_push_lock_owner(snapshot, KD_SRW_LOCK, (int)i);
        }
    }
    kd_collect_shared(snapshot);
    kd_note_owned(snapshot);
}

/* Text. */

const char *kd_describe_lock(const kd_lock *lock, char *buffer, size_t size)
{
    if (lock->process_id != 0)
        snprintf(buffer, size, "%s 0x%llx%s%s%s of process %u", kd_kind_title(lock->kind),
                 (unsigned long long)lock->address, lock->name[0] != '\0' ? " (" : "", lock->name,
                 lock->name[0] != '\0' ? ")" : "", lock->process_id);
    else if (lock->address == 0 && lock->world >= 0)
        snprintf(buffer, size, "%s %s", kd_kind_title(lock->kind),
                 lock->name[0] != '\0' ? lock->name : "without a name");
    else if (lock->name[0] != '\0')
        snprintf(buffer, size, "%s 0x%llx (%s)", kd_kind_title(lock->kind), (unsigned long long)lock->address,
                 lock->name);
    else
        snprintf(buffer, size, "%s 0x%llx", kd_kind_title(lock->kind), (unsigned long long)lock->address);
    return buffer;
}

const char *kd_describe_thread(const kd_snapshot *snapshot, int thread, char *buffer, size_t size)
{
    const kd_thread *t = &snapshot->threads[thread];

    if (t->process_id != 0)
        snprintf(buffer, size, "thread %u of process %u (%s)", t->id, t->process_id, t->process_name);
    else if (t->name[0] != '\0')
        snprintf(buffer, size, "thread %u (%s)", t->id, t->name);
    else
        snprintf(buffer, size, "thread %u", t->id);
    return buffer;
}
