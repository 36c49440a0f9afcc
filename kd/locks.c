/*
 * locks.c: what the threads wait for, and who holds it.
 *
 * Resources and critical sections with debug information are in lists. Everything else is found through the threads
 * that wait: the wait's reason says what kind of lock it is, and the object or the hint in its block leads there.
 */
#include "kd.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES 100000 /* of a list that somebody may be changing */
#define MOST_MUTANTS 1000

int kd_find_lock(const kd_snapshot *snapshot, kd_address address)
{
    for (size_t i = 0; i < snapshot->lock_count; i++)
        if (snapshot->locks[i].address == address)
            return (int)i;
    return -1;
}

static int find_lock(const kd_snapshot *snapshot, kd_kind kind, kd_address address)
{
    for (size_t i = 0; i < snapshot->lock_count; i++)
        if (snapshot->locks[i].address == address && snapshot->locks[i].kind == kind)
            return (int)i;
    return -1;
}

static void name_lock(kd_snapshot *snapshot, kd_lock *lock)
{
    const kd_handle *handle = kd_handle_of_header(snapshot, lock->object);

    if (handle != NULL && handle->name[0] != '\0')
        snprintf(lock->name, sizeof(lock->name), "%.255s", handle->name);
    else if (!kd_symbol(snapshot->target, lock->address, lock->name) && handle != NULL)
        snprintf(lock->name, sizeof(lock->name), "handle 0x%llx", (unsigned long long)handle->handle);
}

static int add_lock(kd_snapshot *snapshot, kd_kind kind, kd_address address, kd_address object)
{
    kd_lock *lock;

    snapshot->locks = kd_grow(snapshot->locks, snapshot->lock_count, sizeof(kd_lock));
    lock = &snapshot->locks[snapshot->lock_count];
    lock->kind = kind;
    lock->address = address;
    lock->object = object;
    lock->contention = -1;
    lock->hold = KD_HOLD_UNKNOWN;
    name_lock(snapshot, lock);
    return (int)snapshot->lock_count++;
}

static kd_lock *new_lock(kd_snapshot *snapshot, kd_kind kind, kd_address address, kd_address object)
{
    int index = add_lock(snapshot, kind, address, object);

    return &snapshot->locks[index];
}

static void add_owner(kd_lock *lock, kd_owner owner)
{
    lock->owners = kd_grow(lock->owners, lock->owner_count, sizeof(kd_owner));
    lock->owners[lock->owner_count++] = owner;
}

static void add_thread_owner(kd_snapshot *snapshot, kd_lock *lock, kd_address thread, unsigned count)
{
    int index = kd_thread_at(snapshot, thread);

    if (thread == 0)
        return;
    add_owner(lock, (kd_owner){
        .address = thread,
        .thread = index >= 0 && snapshot->threads[index].raw->State != Terminated ? index : -1,
        .id = index >= 0 ? snapshot->threads[index].id : 0,
        .count = count,
    });
}

static void add_owner_by_id(kd_snapshot *snapshot, kd_lock *lock, uint32_t id, unsigned count)
{
    int index = kd_thread_with_id(snapshot, id);

    add_owner(lock, (kd_owner){
        .address = index >= 0 ? snapshot->threads[index].address : 0,
        .thread = index,
        .id = id,
        .count = count,
    });
}

static void add_waiter(kd_lock *lock, int thread, bool exclusive)
{
    for (size_t i = 0; i < lock->waiter_count; i++)
        if (lock->waiters[i].thread == thread)
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
        add_owner(lock, (kd_owner){.address = entry->OwnerThread, .thread = -1, .count = entry->OwnerCount});
}

static void add_resource_waiters(kd_snapshot *snapshot, kd_lock *lock, kd_address first)
{
    EXP_RESOURCE_WAIT wait;
    size_t count = 0;

    for (kd_address at = first; at != 0 && count < MOST_ENTRIES; at = KD_ADDRESS(wait.Next), count++) {
        int thread;

        if (!kd_read(snapshot->target, at, &wait, sizeof(wait)))
            return;
        thread = kd_thread_at(snapshot, KD_ADDRESS(wait.Thread));
        if (thread >= 0)
            add_waiter(lock, thread, wait.Exclusive);
    }
}

static void add_resource(kd_snapshot *snapshot, kd_address address, const ERESOURCE *resource)
{
    kd_kind kind = resource->Reserved2 != NULL ? KD_FAST_RESOURCE : KD_RESOURCE;
    kd_lock *lock = new_lock(snapshot, kind, address, 0);
    EXP_OWNER owner;
    size_t count = 0;

    lock->contention = resource->ContentionCount;
    lock->hold = resource->ActiveEntries == 0 ? KD_FREE
                 : resource->Flag & ResourceOwnedExclusive ? KD_EXCLUSIVE : KD_SHARED;
    add_resource_owner(snapshot, lock, &resource->OwnerEntry);
    for (kd_address at = KD_ADDRESS(resource->OwnerTable); at != 0 && count < MOST_ENTRIES;
         at = KD_ADDRESS(owner.Next), count++) {
        if (!kd_read(snapshot->target, at, &owner, sizeof(owner)))
            break;
        add_resource_owner(snapshot, lock, &owner.Entry);
    }
    add_resource_waiters(snapshot, lock, KD_ADDRESS(resource->ExclusiveWaiters));
    add_resource_waiters(snapshot, lock, KD_ADDRESS(resource->SharedWaiters));
}

static void collect_resources(kd_snapshot *snapshot)
{
    kd_address head = kd_root(snapshot->target, "ExpSystemResourcesList", NULL);
    LIST_ENTRY list;
    size_t count = 0;

    if (!kd_read(snapshot->target, head, &list, sizeof(list)))
        return;
    for (kd_address at = KD_ADDRESS(list.Flink); at != head && count < MOST_ENTRIES; count++) {
        ERESOURCE resource;

        if (!kd_read(snapshot->target, at, &resource, sizeof(resource)))
            return;
        add_resource(snapshot, at, &resource);
        at = KD_ADDRESS(resource.SystemResourcesList.Flink);
    }
}

/* Critical sections and resources of user mode. */

static void fill_section(kd_snapshot *snapshot, kd_lock *lock, const RTL_CRITICAL_SECTION *section)
{
    RTL_CRITICAL_SECTION_DEBUG debug;
    uint32_t owner = (uint32_t)(uintptr_t)section->OwningThread;

    lock->hold = section->LockCount & RTLP_FREE ? KD_FREE : KD_EXCLUSIVE;
    if (lock->hold == KD_EXCLUSIVE && owner != 0)
        add_owner_by_id(snapshot, lock, owner, (unsigned)section->RecursionCount);
    if (section->DebugInfo != NULL && section->DebugInfo != RTLP_NO_DEBUG_INFO &&
        kd_read(snapshot->target, KD_ADDRESS(section->DebugInfo), &debug, sizeof(debug)))
        lock->contention = debug.ContentionCount;
}

static kd_address header_of_handle(kd_snapshot *snapshot, HANDLE value)
{
    const kd_handle *handle = kd_handle_with_value(snapshot, (uint32_t)(uintptr_t)value);

    return value != NULL && (intptr_t)value > 0 && handle != NULL ? handle->header : 0;
}

static void add_rtl_resource(kd_snapshot *snapshot, kd_address address)
{
    RTL_RESOURCE resource;
    kd_lock *lock;

    if (!kd_read(snapshot->target, address, &resource, sizeof(resource)))
        return;
    lock = new_lock(snapshot, KD_RTL_RESOURCE, address, header_of_handle(snapshot, resource.ExclusiveSemaphore));
    lock->hold = resource.NumberOfActive == 0 ? KD_FREE : resource.NumberOfActive < 0 ? KD_EXCLUSIVE : KD_SHARED;
    if (lock->hold == KD_EXCLUSIVE && resource.ExclusiveOwnerThread != NULL)
        add_owner_by_id(snapshot, lock, (uint32_t)(uintptr_t)resource.ExclusiveOwnerThread,
                        (unsigned)-resource.NumberOfActive);
}

static void collect_sections(kd_snapshot *snapshot)
{
    kd_address head = kd_root(snapshot->target, "RtlCriticalSectionList", NULL);
    LIST_ENTRY list;
    size_t count = 0;

    if (!kd_read(snapshot->target, head, &list, sizeof(list)))
        return;
    for (kd_address at = KD_ADDRESS(list.Flink); at != head && count < MOST_ENTRIES; count++) {
        kd_address entry = at - offsetof(RTL_CRITICAL_SECTION_DEBUG, ProcessLocksList);
        RTL_CRITICAL_SECTION_DEBUG debug;
        RTL_CRITICAL_SECTION section;

        if (!kd_read(snapshot->target, entry, &debug, sizeof(debug)))
            return;
        kd_address address = KD_ADDRESS(debug.CriticalSection);
        if (kd_read(snapshot->target, address, &section, sizeof(section))) {
            kd_address event = header_of_handle(snapshot, section.LockSemaphore);

            fill_section(snapshot, new_lock(snapshot, KD_CRITICAL_SECTION, address, event), &section);
            if (debug.Type == RTL_RESOURCE_TYPE)
                add_rtl_resource(snapshot, address);
        }
        at = KD_ADDRESS(debug.ProcessLocksList.Flink);
    }
}

/* Locks that are found through those who wait. */

static int note_wait(kd_snapshot *snapshot, int lock, int thread, bool exclusive)
{
    add_waiter(&snapshot->locks[lock], thread, exclusive);
    return lock;
}

/* A waiter's block in a chain: its address, or for an SRW lock the thread that it names. */
static bool find_push_block(kd_snapshot *snapshot, kd_address lock, kd_address block, kd_address thread,
                            EX_PUSH_LOCK_WAIT_BLOCK *found)
{
    uint64_t word;
    size_t count = 0;

    if (!kd_read(snapshot->target, lock, &word, sizeof(word)) || !(word & EX_PUSH_LOCK_WAITING))
        return false;
    for (kd_address at = word & ~(uint64_t)EXP_PUSH_LOCK_BITS; at != 0 && count < MOST_ENTRIES; count++) {
        if (!kd_read(snapshot->target, at, found, sizeof(*found)))
            return false;
        if (block != 0 ? at == block : KD_ADDRESS(found->Thread) == thread)
            return true;
        at = KD_ADDRESS(found->Next);
    }
    return false;
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

/* Who got it last after a wait, if that one is not waiting for it again. */
static void guess_push_lock_owner(kd_snapshot *snapshot, kd_lock *lock)
{
    if (lock->hold != KD_EXCLUSIVE && lock->hold != KD_HOLD_UNKNOWN)
        return;
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        const kd_thread *thread = &snapshot->threads[i];
        bool waits = false;

        if (KD_ADDRESS(thread->raw->LockOwned) != lock->address || thread->raw->State == Terminated)
            continue;
        for (size_t w = 0; w < lock->waiter_count; w++)
            waits = waits || lock->waiters[w].thread == (int)i;
        if (!waits) {
            add_owner(lock, (kd_owner){.address = thread->address, .thread = (int)i, .id = thread->id, .count = 1,
                                       .probable = true});
            return;
        }
    }
}

static int push_lock_of(kd_snapshot *snapshot, kd_kind kind, kd_address address, int thread, bool exclusive)
{
    int lock = find_lock(snapshot, kind, address);

    if (lock < 0) {
        lock = add_lock(snapshot, kind, address, 0);
        fill_push_lock(snapshot, &snapshot->locks[lock]);
    }
    return note_wait(snapshot, lock, thread, exclusive);
}

static int kernel_push_lock_of(kd_snapshot *snapshot, int thread, kd_address event)
{
    kd_address address = KD_ADDRESS(snapshot->threads[thread].raw->LockWaitedFor);
    EX_PUSH_LOCK_WAIT_BLOCK block;
    int lock;

    if (address != 0) {
        bool found = find_push_block(snapshot, address, event, 0, &block);

        return push_lock_of(snapshot, KD_PUSH_LOCK, address, thread, !found || block.Exclusive);
    }
    if (!kd_read(snapshot->target, event, &block, sizeof(block)))
        return -1;
    address = KD_ADDRESS(block.Address);
    lock = find_lock(snapshot, KD_ADDRESS_PUSH_LOCK, address);
    return note_wait(snapshot, lock >= 0 ? lock : add_lock(snapshot, KD_ADDRESS_PUSH_LOCK, address, event), thread,
                     true);
}

static int fast_mutex_of(kd_snapshot *snapshot, kd_kind kind, int thread, kd_address event)
{
    kd_address address = event - offsetof(FAST_MUTEX, Event);
    int index = find_lock(snapshot, kind, address);
    FAST_MUTEX mutex;

    if (index < 0 && kd_read(snapshot->target, address, &mutex, sizeof(mutex))) {
        index = add_lock(snapshot, kind, address, event);
        snapshot->locks[index].contention = mutex.Contention;
        snapshot->locks[index].hold = mutex.Owner != NULL ? KD_EXCLUSIVE : KD_FREE;
        add_thread_owner(snapshot, &snapshot->locks[index], KD_ADDRESS(mutex.Owner), 1);
    }
    return index < 0 ? index : note_wait(snapshot, index, thread, true);
}

static int resource_of(kd_snapshot *snapshot, int thread)
{
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        const kd_lock *lock = &snapshot->locks[i];

        for (size_t w = 0; (lock->kind == KD_RESOURCE || lock->kind == KD_FAST_RESOURCE) && w < lock->waiter_count; w++)
            if (lock->waiters[w].thread == thread)
                return (int)i;
    }
    return -1;
}

static int keyed_event_of(kd_snapshot *snapshot, int thread, kd_address event)
{
    EXP_WAITER waiter;
    int lock;

    if (!kd_read(snapshot->target, event - sizeof(waiter), &waiter, sizeof(waiter)))
        return -1;
    lock = find_lock(snapshot, KD_KEYED_EVENT, KD_ADDRESS(waiter.Key.Key));
    return note_wait(snapshot, lock >= 0 ? lock
                               : add_lock(snapshot, KD_KEYED_EVENT, KD_ADDRESS(waiter.Key.Key), event),
                     thread, true);
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
        add_thread_owner(snapshot, lock, KD_ADDRESS(mutant.OwnerThread), (unsigned)(1 - mutant.Header.SignalState));
}

static int object_lock(kd_snapshot *snapshot, kd_address address)
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
    lock = &snapshot->locks[index];
    lock->has_state = true;
    lock->signal_state = header.SignalState;
    lock->hold = header.SignalState > 0 ? KD_FREE : KD_HOLD_UNKNOWN;
    if (kind == KD_MUTANT)
        fill_mutant(snapshot, lock);
    else if (kind == KD_THREAD && header.SignalState == 0)
        add_thread_owner(snapshot, lock, address, 1);
    if (kind == KD_THREAD && kd_thread_at(snapshot, address) >= 0)
        snprintf(lock->name, sizeof(lock->name), "thread %u", snapshot->threads[kd_thread_at(snapshot, address)].id);
    return index;
}

/* An event or semaphore that belongs to a lock of user mode. */
static int lock_with_object(kd_snapshot *snapshot, kd_address object)
{
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        const kd_lock *lock = &snapshot->locks[i];
        RTL_RESOURCE resource;

        if (lock->kind == KD_CRITICAL_SECTION && lock->object == object)
            return (int)i;
        if (lock->kind == KD_RTL_RESOURCE &&
            (lock->object == object || (kd_read(snapshot->target, lock->address, &resource, sizeof(resource)) &&
                                        header_of_handle(snapshot, resource.SharedSemaphore) == object)))
            return (int)i;
    }
    return -1;
}

/* Waits for an alert by id: the hint is all there is, and the waiter hash knows what it is for. */

static bool find_in_bucket(kd_snapshot *snapshot, const EXP_WAITER_BUCKET *bucket, kd_address head, kd_address thread,
                           uint32_t *kind)
{
    size_t count = 0;

    for (kd_address at = KD_ADDRESS(bucket->WaiterList.Flink); at != head && at != 0 && count < MOST_ENTRIES; count++) {
        RTLP_WAITER waiter;

        if (!kd_read(snapshot->target, at, &waiter, sizeof(waiter)))
            return false;
        if (waiter.Waiter.Key.Object == NULL && KD_ADDRESS(waiter.Thread) == thread) {
            *kind = waiter.Waiter.Key.Kind;
            return true;
        }
        at = KD_ADDRESS(waiter.Waiter.Link.Flink);
    }
    return false;
}

static bool find_in_hash(kd_snapshot *snapshot, kd_address thread, uint32_t *kind)
{
    static EXP_WAITER_BUCKET buckets[EXP_WAITER_BUCKETS];
    kd_address table = kd_root(snapshot->target, "ExpWaiterTable", NULL);
    bool found = false;

    if (!kd_read(snapshot->target, table, buckets, sizeof(buckets)))
        return false;
    for (size_t i = 0; !found && i < EXP_WAITER_BUCKETS; i++) {
        kd_address head = table + i * sizeof(buckets[0]) + offsetof(EXP_WAITER_BUCKET, WaiterList);

        found = buckets[i].ProcessId == snapshot->process_id && buckets[i].Count != 0 &&
                find_in_bucket(snapshot, &buckets[i], head, thread, kind);
    }
    return found;
}

static int section_of(kd_snapshot *snapshot, kd_address address, int thread)
{
    RTL_CRITICAL_SECTION section;
    int lock = find_lock(snapshot, KD_CRITICAL_SECTION, address);

    if (lock < 0) {
        if (!kd_read(snapshot->target, address, &section, sizeof(section)))
            return -1;
        lock = add_lock(snapshot, KD_CRITICAL_SECTION, address, 0);
        fill_section(snapshot, &snapshot->locks[lock], &section);
    }
    return note_wait(snapshot, lock, thread, true);
}

static int hint_of(kd_snapshot *snapshot, int thread, kd_address hint)
{
    EX_PUSH_LOCK_WAIT_BLOCK block;
    uint32_t wait;
    kd_kind kind = KD_ALERT;
    int lock;

    if (find_in_hash(snapshot, snapshot->threads[thread].address, &wait)) {
        kind = wait == RtlpConditionWait ? KD_CONDITION_VARIABLE : KD_ADDRESS_WAIT;
    } else if (find_push_block(snapshot, hint, 0, snapshot->threads[thread].address, &block)) {
        return push_lock_of(snapshot, KD_SRW_LOCK, hint, thread, block.Exclusive);
    }
    lock = find_lock(snapshot, kind, hint);
    return note_wait(snapshot, lock >= 0 ? lock : add_lock(snapshot, kind, hint, 0), thread, true);
}

static int own_event_of(kd_snapshot *snapshot, kd_kind kind, int thread, kd_address object)
{
    int lock = find_lock(snapshot, kind, object);

    return note_wait(snapshot, lock >= 0 ? lock : add_lock(snapshot, kind, object, object), thread, true);
}

/* A section's waiters wait for its event, or on the address of its LockCount; either way the thread says for which. */
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
        if ((lock = resource_of(snapshot, thread)) >= 0)
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
    if ((lock = lock_with_object(snapshot, object)) < 0)
        lock = object_lock(snapshot, object);
    return lock < 0 ? lock : note_wait(snapshot, lock, thread, true);
}

/* Mutants that a thread owns, whether anybody waits or not. */
static void collect_mutants(kd_snapshot *snapshot, const kd_thread *thread)
{
    kd_address head = thread->address + offsetof(KTHREAD, MutantListHead);
    size_t count = 0;

    for (kd_address at = KD_ADDRESS(thread->raw->MutantListHead.Flink); at != head && at != 0 && count < MOST_MUTANTS;
         count++) {
        kd_address address = at - offsetof(KMUTANT, MutantListEntry);
        KMUTANT mutant;

        if (!kd_read(snapshot->target, address, &mutant, sizeof(mutant)) ||
            (mutant.Header.Type & KOBJECT_TYPE_MASK) != MutantObject)
            return;
        object_lock(snapshot, address);
        at = KD_ADDRESS(mutant.MutantListEntry.Flink);
    }
}

void kd_collect_locks(kd_snapshot *snapshot)
{
    collect_resources(snapshot);
    collect_sections(snapshot);
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        kd_thread *thread = &snapshot->threads[i];

        if (thread->raw->State != Terminated)
            collect_mutants(snapshot, thread);
        for (size_t b = 0; b < thread->block_count; b++)
            thread->blocks[b].lock = lock_of_block(snapshot, (int)i, &thread->blocks[b]);
    }
    for (size_t i = 0; i < snapshot->lock_count; i++)
        if (snapshot->locks[i].kind == KD_PUSH_LOCK || snapshot->locks[i].kind == KD_SRW_LOCK)
            guess_push_lock_owner(snapshot, &snapshot->locks[i]);
}

/* For people. */

const char *kd_describe_lock(const kd_lock *lock, char *buffer, size_t size)
{
    if (lock->name[0] != '\0')
        snprintf(buffer, size, "%s 0x%llx (%s)", kd_kind_title(lock->kind), (unsigned long long)lock->address,
                 lock->name);
    else
        snprintf(buffer, size, "%s 0x%llx", kd_kind_title(lock->kind), (unsigned long long)lock->address);
    return buffer;
}

const char *kd_describe_thread(const kd_snapshot *snapshot, int thread, char *buffer, size_t size)
{
    const kd_thread *t = &snapshot->threads[thread];

    if (t->name[0] != '\0')
        snprintf(buffer, size, "thread %u (%s)", t->id, t->name);
    else
        snprintf(buffer, size, "thread %u", t->id);
    return buffer;
}
