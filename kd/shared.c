/*
 * shared.c: the shared objects of a process: their state, owners and waiters, in this process and in others.
 *
 * A handle to a shared object refers to a proxy (ke/outside.h); the world (src/wo) has the state. The worlds are read from
 * the memory of the process. A thread of another process that owns a shared object, or waits for one, becomes a thread of
 * the snapshot too, after the process's own. So everything that follows threads and locks continues into other
 * processes: deadlock.c finds cycles through them, and the graph draws them.
 *
 * 1. The world records which shared objects a thread waits for, but not its other waits. So the processes whose threads
 *    own an object with waiters are inspected (far.h), one after the other, and the owner's waits there are added:
 *    local locks of that process, or shared objects, whose owners are followed in turn.
 * 2. For a process that cannot be inspected only the world's data is used. A deadlock through it is only probable.
 * 3. A granted wait has ended, even if its thread has not noticed yet: it still seems to wait, for an object that it
 *    owns. So the record in the world decides whether a thread waits for shared objects.
 */
#include "far.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FOREIGN 20000    /* threads of other processes */
#define MOST_LOOKS 16         /* processes inspected for a snapshot */
#define LOOK_MILLISECONDS 30000 /* elapsed, also on a busy machine; the child has a limit of processor time */
#define ALL_MILLISECONDS 60000
#define FOREIGN (1ull << 63)  /* no address of a process */
#define NAME_SIZE 640

/* The worlds. */

static bool read_place(kd_snapshot *s, size_t number, WO_PLACE *place)
{
    size_t size = 0;
    kd_address places = kd_root(s->target, "WopPlaces", &size);

    return places != 0 && size == WO_PLACES * sizeof(WO_PLACE) &&
           kd_read(s->target, places + number * sizeof(WO_PLACE), place, sizeof(*place)) &&
           place->State == WoPlaceAttached && place->ProcessId == s->process_id;
}

static void read_worlds(kd_snapshot *s)
{
    static WO_PLACE place;

    for (size_t n = 0; n < WO_PLACES; n++) {
        if (!read_place(s, n, &place))
            continue;
        s->views[n] = kd_root(s->target, "WopPlaces", NULL) + n * sizeof(WO_PLACE) + offsetof(WO_PLACE, View);
        s->files[n] = place.View.File;
        s->key = place.View.Key;
        if (s->alone)
            continue;
        s->worlds[n] = kd_world_of_process(s->target, &place.View);
        if (s->worlds[n] == NULL)
            kd_inconsistent(s, "world of shared objects", KD_ADDRESS(place.View.World),
                            "it cannot be read, or is too large");
    }
}

static bool has_world(const kd_snapshot *s)
{
    for (size_t n = 0; n < WO_PLACES; n++)
        if (s->views[n] != 0 || s->worlds[n] != NULL)
            return true;
    return false;
}

/* Locks. */

static kd_kind kind_of_shared(unsigned type)
{
    static const kd_kind kinds[] = {
        [WoNotificationEvent] = KD_EVENT, [WoSynchronizationEvent] = KD_EVENT,
        [WoSemaphore] = KD_SEMAPHORE,     [WoMutant] = KD_MUTANT,
        [WoNotificationTimer] = KD_TIMER, [WoSynchronizationTimer] = KD_TIMER,
        [WoKeyedEvent] = KD_KEYED_EVENT,
    };

    return type >= WoNotificationEvent && type < sizeof(kinds) / sizeof(kinds[0]) ? kinds[type] : KD_UNKNOWN;
}

static kd_lock *append_lock(kd_snapshot *s, kd_kind kind, const char *name)
{
    kd_lock *lock;

    s->locks = kd_grow(s->locks, s->lock_count, sizeof(kd_lock));
    lock = &s->locks[s->lock_count++];
    lock->kind = kind;
    lock->contention = -1;
    lock->hold = KD_HOLD_UNKNOWN;
    lock->world = -1;
    lock->name = kd_keep(s, name);
    return lock;
}

/* The lock for an object of a world; one that the process has no handle to has no address. */
static int lock_of_object(kd_snapshot *s, int world, int object)
{
    kd_world_object *o = &s->worlds[world]->objects[object];
    char name[NAME_SIZE] = "";
    kd_lock *lock;

    if (o->lock >= 0)
        return o->lock;
    if (o->name != NULL)
        snprintf(name, sizeof(name), "\\%s\\%.600s",
                 s->worlds[world]->machine ? "Sessions\\Machine" : "BaseNamedObjects", o->name);
    lock = append_lock(s, kind_of_shared(o->type), name);
    lock->has_state = true;
    lock->world = world;
    lock->record = o->index;
    lock->shared = o;
    o->lock = (int)s->lock_count - 1;
    return o->lock;
}

/* Which object of which world a proxy stands for. */
static void resolve(kd_snapshot *s, kd_lock *lock)
{
    KI_OUTSIDE outside;
    int object;

    if (lock->outside == 0 || !kd_read(s->target, lock->outside, &outside, sizeof(outside)))
        return;
    for (int n = 0; n < WO_PLACES; n++) {
        if (s->views[n] == 0 || s->views[n] != KD_ADDRESS(outside.View))
            continue;
        lock->world = n;
        lock->record = outside.Index;
        object = s->worlds[n] != NULL ? kd_world_object_at(s->worlds[n], outside.Index) : -1;
        if (object >= 0) {
            lock->shared = &s->worlds[n]->objects[object];
            s->worlds[n]->objects[object].lock = (int)(lock - s->locks);
        }
    }
}

/* A handle identifies a shared object that some thread owns or waits for. */
static void resolve_handles(kd_snapshot *s)
{
    DISPATCHER_HEADER header;

    for (size_t i = 0; i < s->handle_count; i++) {
        kd_handle *handle = &s->handles[i];
        int lock;

        if (handle->header == 0 || !kd_read(s->target, handle->header, &header, sizeof(header)) ||
            header.WaitListHead.Flink != NULL)
            continue;
        lock = kd_object_lock(s, handle->header);
        handle->lock = lock;
        if (lock >= 0 && s->locks[lock].world < 0)
            resolve(s, &s->locks[lock]);
    }
}

/* Threads. */

static uint64_t foreign_address(uint32_t process, uint32_t thread)
{
    return FOREIGN | (uint64_t)(process & 0x3fffff) << 40 | (uint64_t)thread << 8;
}

/* -1: there are too many. */
static int add_foreign(kd_snapshot *s, uint32_t process, const char *process_name, uint32_t id)
{
    kd_thread thread = {.id = id, .process_id = process, .process_name = kd_keep(s, process_name), .name = "",
                        .address = foreign_address(process, id), .cycle = -1, .host_state = '?', .user_time = -1,
                        .kernel_time = -1, .probable = true};
    int index = (int)s->thread_count;

    if (s->thread_count - s->own_count >= MOST_FOREIGN || !kd_index_add(&s->threads_by_address, thread.address, index))
        return kd_thread_at(s, thread.address);
    thread.object = kd_allocate_lines(sizeof(ETHREAD));
    thread.raw = &thread.object->Tcb;
    thread.raw->ThreadId = id;
    thread.raw->State = Running;
    thread.raw->WaitReason = UserRequest;
    s->threads = kd_grow(s->threads, s->thread_count, sizeof(kd_thread));
    s->threads[s->thread_count++] = thread;
    return index;
}

static void start_wait(kd_thread *thread)
{
    thread->waiting = true;
    thread->raw->State = Waiting;
    thread->block_count = 0;
}

static void add_block(kd_snapshot *s, int index, int lock, bool all)
{
    kd_thread *thread = &s->threads[index];
    kd_block block = {.address = thread->address | (thread->block_count + 1), .lock = lock,
                      .raw = {.WaitType = all ? WaitAll : WaitAny, .BlockState = WaitBlockActive,
                              .WaitKey = (USHORT)thread->block_count}};

    thread->blocks = kd_grow(thread->blocks, thread->block_count, sizeof(kd_block));
    thread->blocks[thread->block_count++] = block;
    thread->raw->WaitBlockCount = (USHORT)thread->block_count;
}

/* The thread of the snapshot that a record of the world belongs to. -1: none. */
static int thread_of_record(kd_snapshot *s, int world, int number)
{
    kd_world *w = s->worlds[world];
    kd_world_thread *t = &w->threads[number];
    const kd_world_process *process = t->process >= 0 ? &w->processes[t->process] : NULL;
    int thread;

    if (t->thread >= 0 || process == NULL || t->id == 0)
        return t->thread;
    if (s->target != NULL && process->key == s->key)
        return t->thread = kd_thread_with_id(s, t->id);
    thread = t->thread = add_foreign(s, process->id, process->name, t->id);
    if (thread >= 0 && t->waiting && !process->dead && s->threads[thread].block_count == 0) {
        start_wait(&s->threads[thread]);
        for (size_t i = 0; i < t->object_count; i++)
            add_block(s, thread, lock_of_object(s, world, t->objects[i]), t->all);
        if (t->mixed)
            add_block(s, thread, -1, false);
    }
    return thread;
}

static void set_owner(kd_snapshot *s, int index, kd_owner owner)
{
    kd_lock *lock = &s->locks[index];

    lock->owners = kd_grow(lock->owners, lock->owner_count, sizeof(kd_owner));
    lock->owners[lock->owner_count++] = owner;
}

static void fill_owner(kd_snapshot *s, int index, const kd_world_object *o)
{
    int world = s->locks[index].world;
    int thread = o->owner >= 0 ? thread_of_record(s, world, o->owner) : -1;
    const kd_world_thread *t = o->owner >= 0 ? &s->worlds[world]->threads[o->owner] : NULL;

    if (t != NULL)
        set_owner(s, index, (kd_owner){.id = t->id, .thread = thread, .count = (unsigned)(1 - o->state),
                                       .cannot_orphan = true,
                                       .address = thread >= 0 && s->threads[thread].process_id == 0
                                                      ? s->threads[thread].address : 0,
                                       .process_id = thread >= 0 ? s->threads[thread].process_id : 0});
}

static void set_waiter(kd_snapshot *s, int index, int thread)
{
    kd_lock *lock = &s->locks[index];

    lock->waiters = kd_grow(lock->waiters, lock->waiter_count, sizeof(kd_waiter));
    lock->waiters[lock->waiter_count++] = (kd_waiter){.thread = thread, .exclusive = true};
}

/* The world has the order; threads that are in no list, such as those that wait for all of several, come last. */
static void fill_waiters(kd_snapshot *s, int index, const kd_world_object *o)
{
    kd_waiter *own = s->locks[index].waiters;
    size_t own_count = s->locks[index].waiter_count;
    kd_index seen = {.slots = NULL};

    s->locks[index].waiters = NULL;
    s->locks[index].waiter_count = 0;
    for (size_t i = 0; i < o->waiter_count; i++) {
        int thread = thread_of_record(s, s->locks[index].world, o->waiters[i]);
        if (thread >= 0 && kd_index_add(&seen, (uint64_t)thread, 0))
            set_waiter(s, index, thread);
    }
    for (size_t i = 0; i < own_count; i++)
        if (kd_index_add(&seen, (uint64_t)own[i].thread, 0))
            set_waiter(s, index, own[i].thread);
    kd_index_free(&seen);
    free(own);
}

static void fill(kd_snapshot *s, int index)
{
    const kd_world_object *o = s->locks[index].shared;
    kd_lock *lock = &s->locks[index];

    lock->signal_state = o->state;
    lock->hold = o->state > 0 ? KD_FREE : lock->kind == KD_MUTANT ? KD_EXCLUSIVE : KD_HOLD_UNKNOWN;
    fill_owner(s, index, o);
    fill_waiters(s, index, o);
}

/* Filling one may add others: those that a thread of another process waits for. */
static void fill_from(kd_snapshot *s, size_t *next)
{
    for (; *next < s->lock_count; *next += 1)
        if (s->locks[*next].shared != NULL)
            fill(s, (int)*next);
}

/* Other processes. */

static int world_with_file(const kd_snapshot *s, const HAL_FILE_ID *file)
{
    for (int n = 0; n < WO_PLACES; n++)
        if (s->worlds[n] != NULL && s->worlds[n]->file.Device == file->Device && s->worlds[n]->file.File == file->File)
            return n;
    return -1;
}

/* The data being imported from another process. */
typedef struct adoption {
    kd_snapshot *snapshot;
    const kd_far *far;
    const kd_world_process *process;
    kd_index threads;        /* of far, by id */
    int *locks;              /* of the snapshot, by far's; -1: not yet */
    int *queue;              /* threads of the snapshot whose waits are imported */
    size_t queued, done;
    kd_index known;          /* that have been queued */
} adoption;

static void enqueue(adoption *a, int thread)
{
    if (thread < 0 || !kd_index_add(&a->known, (uint64_t)thread, 0))
        return;
    a->queue = kd_grow(a->queue, a->queued, sizeof(int));
    a->queue[a->queued++] = thread;
}

static int adopt_local_lock(adoption *a, const kd_far_lock *from)
{
    kd_snapshot *s = a->snapshot;
    kd_lock *lock = append_lock(s, (kd_kind)from->kind, from->name);
    int index = (int)s->lock_count - 1;

    lock->address = from->address;
    lock->hold = (kd_hold)from->hold;
    lock->process_id = a->process->id;
    for (uint32_t i = 0; i < from->owner_count; i++) {
        const kd_far_owner *owner = &a->far->owners[from->first_owner + i];
        int thread = owner->id != 0 && !owner->ended
                         ? add_foreign(s, a->process->id, a->process->name, owner->id) : -1;

        set_owner(s, index, (kd_owner){.id = owner->id, .thread = thread, .count = owner->count,
                                       .probable = owner->probable, .process_id = a->process->id});
        enqueue(a, thread);
    }
    return index;
}

/* -1: a shared object that is not known. */
static int adopt_lock(adoption *a, int32_t number)
{
    const kd_far_lock *from = number >= 0 ? &a->far->locks[number] : NULL;
    int world, object;

    if (from == NULL || a->locks[number] >= 0)
        return from != NULL ? a->locks[number] : -1;
    if (from->world < 0)
        return a->locks[number] = adopt_local_lock(a, from);
    world = world_with_file(a->snapshot, &a->far->files[from->world]);
    object = world >= 0 ? kd_world_object_at(a->snapshot->worlds[world], from->record) : -1;
    return a->locks[number] = object >= 0 ? lock_of_object(a->snapshot, world, object) : -1;
}

static bool is_last_waiter(const kd_lock *lock, int thread)
{
    return lock->waiter_count != 0 && lock->waiters[lock->waiter_count - 1].thread == thread;
}

/* The wait of a thread of the other process, as that process has it. One that is not in far does not wait. */
static void adopt_wait(adoption *a, int index)
{
    kd_snapshot *s = a->snapshot;
    int number = kd_index_find(&a->threads, s->threads[index].id);
    const kd_far_thread *from = number >= 0 ? &a->far->threads[number] : NULL;
    kd_thread *thread = &s->threads[index];

    thread->probable = false;
    thread->waiting = false;
    thread->raw->State = Running;
    thread->block_count = 0;
    if (from == NULL)
        return;
    start_wait(thread);
    thread->name = kd_keep(s, from->name);
    thread->raw->ContextSwitches = from->switches;
    thread->raw->WaitTime = from->wait_time;
    thread->raw->WaitReason = from->reason;
    for (uint32_t b = 0; b < from->block_count && b <= MAXIMUM_WAIT_OBJECTS; b++) {
        int lock = adopt_lock(a, a->far->blocks[from->first_block + b]);

        add_block(s, index, lock, from->all);
        if (lock >= 0 && s->locks[lock].world < 0 && !is_last_waiter(&s->locks[lock], index))
            set_waiter(s, lock, index);
    }
}

/* Imports the waits of a process's threads that own something shared, and what those depend on. */
static void adopt(kd_snapshot *s, const kd_far *far, const kd_world_process *process)
{
    adoption a = {.snapshot = s, .far = far, .process = process};

    a.locks = kd_allocate(far->lock_count + 1, sizeof(int));
    for (uint32_t i = 0; i < far->lock_count; i++)
        a.locks[i] = -1;
    for (uint32_t i = 0; i < far->thread_count; i++)
        kd_index_add(&a.threads, far->threads[i].id, (int)i);
    for (size_t i = s->own_count; i < s->thread_count; i++)
        if (s->threads[i].process_id == process->id)
            enqueue(&a, (int)i);
    while (a.done < a.queued)
        adopt_wait(&a, a.queue[a.done++]);
    kd_index_free(&a.threads);
    kd_index_free(&a.known);
    free(a.locks);
    free(a.queue);
}

static bool is_waited_for(const kd_snapshot *s, const kd_lock *lock)
{
    for (size_t i = 0; i < lock->waiter_count; i++)
        if (s->threads[lock->waiters[i].thread].waiting)
            return true;
    return false;
}

/* A process that was not inspected yet and owns a shared object with waiters. NULL: none. */
static kd_world_process *next_process(kd_snapshot *s)
{
    for (size_t i = 0; i < s->lock_count; i++) {
        const kd_lock *lock = &s->locks[i];
        kd_world *w = lock->shared != NULL && lock->shared->owner >= 0 ? s->worlds[lock->world] : NULL;
        int process = w != NULL && is_waited_for(s, lock) ? w->threads[lock->shared->owner].process : -1;

        if (process >= 0 && !w->processes[process].dead && !w->processes[process].looked_into &&
            (s->target == NULL || w->processes[process].key != s->key))
            return &w->processes[process];
    }
    return NULL;
}

/* The inspected process must be the one in the world: the id may have been reused, or belong to another namespace. FALSE:
   it took too long. */
static bool look_into(kd_snapshot *s, kd_world_process *process, int milliseconds, size_t *filled)
{
    bool late;
    kd_far *far = kd_far_look(process->id, milliseconds, &late);

    process->looked_into = true;
    if (far != NULL && far->key == process->key && far->process_id == process->id) {
        adopt(s, far, process);
        fill_from(s, filled);
    }
    kd_far_free(far);
    return !late;
}

static void look_into_others(kd_snapshot *s, size_t *filled)
{
    int64_t end = kd_milliseconds() + ALL_MILLISECONDS;

    for (int looks = 0; looks < MOST_LOOKS; looks++) {
        kd_world_process *process = next_process(s);
        int64_t left = end - kd_milliseconds();

        if (process == NULL)
            return;
        if (left <= 0 || !look_into(s, process, left < LOOK_MILLISECONDS ? (int)left : LOOK_MILLISECONDS, filled))
            kd_inconsistent(s, "threads of other processes", 0, "not all processes could be inspected in time");
        if (left <= 0)
            return;
    }
}

/* Waits. */

/* Whether a thread with a wait for shared objects still waits, and in which wait. */
static void check_wait(kd_snapshot *s, kd_thread *thread)
{
    bool shared = false, waits = false;

    for (size_t b = 0; b < thread->block_count; b++) {
        int world = thread->blocks[b].lock >= 0 ? s->locks[thread->blocks[b].lock].world : -1;
        const kd_world *w = world >= 0 ? s->worlds[world] : NULL;
        int record = w != NULL ? kd_world_thread_with_id(w, thread->process_id != 0 ? thread->process_id : s->process_id,
                                                         thread->id) : -1;

        shared = shared || w != NULL;
        if (record >= 0 && w->threads[record].waiting) {
            waits = true;
            thread->wait_number = w->threads[record].number;
            thread->blocks[b].raw.BlockState = WaitBlockActive; /* in the world */
        }
    }
    thread->granted = thread->waiting && shared && !waits;
}

static void check_waits(kd_snapshot *s)
{
    for (size_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].waiting)
            check_wait(s, &s->threads[i]);
}

static void complete(kd_snapshot *s, size_t first)
{
    size_t filled = first;

    fill_from(s, &filled);
    look_into_others(s, &filled);
    check_waits(s);
    if (s->thread_count - s->own_count >= MOST_FOREIGN)
        kd_inconsistent(s, "threads of other processes", 0, "there are too many to inspect all of them");
}

void kd_collect_shared(kd_snapshot *s)
{
    read_worlds(s);
    if (!has_world(s))
        return;
    for (size_t i = 0; i < s->lock_count; i++)
        resolve(s, &s->locks[i]);
    if (s->alone)
        return;
    resolve_handles(s);
    complete(s, 0);
}

void kd_adopt_world(kd_snapshot *s, kd_world *world)
{
    s->worlds[0] = world;
    for (size_t i = 0; i < world->object_count; i++)
        if (world->objects[i].owner >= 0 && world->objects[i].waiter_count != 0)
            lock_of_object(s, 0, (int)i);
    complete(s, 0);
}
