/* graph.c: builds the wait graph of a snapshot. */
#include "graph.h"

#include <stdlib.h>

static void add_edge(kd_graph *graph, kd_edge edge)
{
    graph->edges = kd_grow(graph->edges, graph->edge_count, sizeof(kd_edge));
    graph->edges[graph->edge_count++] = edge;
}

static int thread_node(const kd_graph *graph, int thread)
{
    return thread >= 0 ? graph->nodes[thread] : -1;
}

static int add_thread(kd_graph *graph, int thread, uint32_t id, uint32_t process_id)
{
    graph->threads = kd_grow(graph->threads, graph->thread_count, sizeof(kd_graph_thread));
    graph->threads[graph->thread_count] =
        (kd_graph_thread){.thread = thread, .id = id, .process_id = process_id, .first_block = (int)graph->block_count, .cycle = -1};
    if (thread >= 0)
        graph->nodes[thread] = (int)graph->thread_count;
    else
        kd_index_add(&graph->ended, (uint64_t)process_id << 32 | id, (int)graph->thread_count);
    return (int)graph->thread_count++;
}

/* Exited owners get a node as well. */
static int ended_node(kd_graph *graph, uint32_t id, uint32_t process_id)
{
    int known = kd_index_find(&graph->ended, (uint64_t)process_id << 32 | id);

    return known >= 0 ? known : add_thread(graph, -1, id, process_id);
}

/* Processors. */

static void add_processor(kd_snapshot *snapshot, kd_graph *graph, uint32_t number, KPRCB *prcb)
{
    kd_graph_processor found = {.number = number};
    const KDPC_DATA *data = prcb->DpcData;
    KDPC dpc;

    if (!kd_read_processor(snapshot, number, &found.address, prcb))
        return;
    found.owner = kd_owner_of_processor(snapshot, prcb);
    found.irql = found.owner >= 0 ? snapshot->threads[found.owner].raw->Irql : 0;
    found.idle = kd_is_idle_processor(prcb);
    found.in_dpc = prcb->DpcRoutineActive != 0;
    found.dpc_depth = (unsigned)(data[KI_DPC_NORMAL].DpcQueueDepth + data[KI_DPC_THREADED].DpcQueueDepth);
    found.dpc_count = data[KI_DPC_NORMAL].DpcCount + data[KI_DPC_THREADED].DpcCount;
    found.interrupt_count = prcb->InterruptCount;
    if (kd_read(snapshot->target, KD_ADDRESS(data[KI_DPC_NORMAL].ActiveDpc), &dpc, sizeof(dpc)))
        found.active_dpc_routine = KD_ADDRESS(dpc.DeferredRoutine);
    graph->processors = kd_grow(graph->processors, graph->processor_count, sizeof(found));
    graph->processors[graph->processor_count++] = found;
}

static void add_processors(kd_snapshot *snapshot, kd_graph *graph)
{
    KPRCB *prcb = kd_allocate_lines(sizeof(*prcb));

    for (uint32_t p = 0; p < snapshot->processors; p++)
        add_processor(snapshot, graph, p, prcb);
    free(prcb);
}

static void link_processors(const kd_snapshot *snapshot, kd_graph *graph)
{
    for (size_t p = 0; p < graph->processor_count; p++) {
        int owner = thread_node(graph, graph->processors[p].owner);

        if (owner >= 0)
            add_edge(graph, (kd_edge){.kind = KD_EDGE_RUNS, .from = (int)p, .to = owner, .cycle = -1});
    }
    for (size_t i = 0; i < graph->thread_count; i++) {
        const kd_thread *thread = graph->threads[i].thread >= 0 ? &snapshot->threads[graph->threads[i].thread] : NULL;

        if (thread != NULL && thread->waiting && KiIsOnWaitList(thread->raw) &&
            thread->raw->WaitProcessor < graph->processor_count)
            add_edge(graph, (kd_edge){.kind = KD_EDGE_WAIT_LIST, .from = (int)thread->raw->WaitProcessor,
                                      .to = (int)i, .cycle = -1});
    }
}

/* Objects and blocks. */

static bool is_drawn(const kd_lock *lock)
{
    return lock->waiter_count != 0 || lock->owner_count != 0 || (kd_is_lock(lock) && lock->hold != KD_FREE);
}

static int *add_objects(const kd_snapshot *snapshot, kd_graph *graph)
{
    int *objects = kd_allocate(snapshot->lock_count + 1, sizeof(int));

    for (size_t i = 0; i < snapshot->lock_count; i++) {
        objects[i] = -1;
        if (!is_drawn(&snapshot->locks[i]))
            continue;
        graph->objects = kd_grow(graph->objects, graph->object_count, sizeof(kd_graph_object));
        graph->objects[graph->object_count] = (kd_graph_object){.lock = (int)i, .cycle = -1};
        objects[i] = (int)graph->object_count++;
    }
    return objects;
}

static void add_blocks(const kd_snapshot *snapshot, kd_graph *graph, int node, const int *objects)
{
    const kd_thread *thread = &snapshot->threads[graph->threads[node].thread];

    for (size_t b = 0; b < thread->block_count; b++) {
        kd_graph_block block = {.thread = node, .number = (int)b, .object = -1, .position = -1,
                                .edge = (int)graph->edge_count};
        int index = (int)graph->block_count;

        if (thread->blocks[b].lock >= 0)
            block.object = objects[thread->blocks[b].lock];
        graph->blocks = kd_grow(graph->blocks, graph->block_count, sizeof(block));
        graph->blocks[graph->block_count++] = block;
        kd_index_add(&graph->blocks_by_address, thread->blocks[b].address, index);
        add_edge(graph, (kd_edge){.kind = KD_EDGE_BLOCK, .from = node, .to = index, .cycle = -1});
        if (block.object >= 0)
            add_edge(graph, (kd_edge){.kind = KD_EDGE_WAITS, .from = index, .to = block.object, .cycle = -1});
    }
}

static void add_waiter(kd_graph *graph, kd_graph_object *object, int block)
{
    if (graph->blocks[block].position >= 0)
        return;
    graph->blocks[block].position = (int)object->waiter_count;
    object->waiters = kd_grow(object->waiters, object->waiter_count, sizeof(int));
    object->waiters[object->waiter_count++] = block;
}

/* Many objects live in a stack frame of their waiter: without waiters their memory may have been reused since the snapshot. */
static bool may_be_gone(const kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    bool awaited = false;

    for (size_t i = 0; i < graph->block_count; i++) {
        if (graph->blocks[i].object != index)
            continue;
        if (kd_is_still_waiting(snapshot, &snapshot->threads[graph->threads[graph->blocks[i].thread].thread]))
            return false;
        awaited = true;
    }
    return awaited;
}

/* A dispatcher object's list of wait blocks has the order of its waiters. */
static void follow_wait_list(kd_snapshot *snapshot, kd_graph *graph, int index)
{
    kd_graph_object *object = &graph->objects[index];
    const kd_lock *lock = &snapshot->locks[object->lock];
    size_t faults = snapshot->fault_count, count;
    kd_address *blocks;

    if (!lock->has_state || lock->world >= 0 || lock->outside != 0)
        return;
    blocks = kd_list(snapshot, "waiters of an object", lock->object + offsetof(DISPATCHER_HEADER, WaitListHead),
                     offsetof(KWAIT_BLOCK, WaitListEntry), &count, NULL);
    if (snapshot->fault_count > faults && may_be_gone(snapshot, graph, index))
        kd_doubt(&snapshot->faults[faults]);
    for (size_t i = 0; i < count; i++) {
        int known = kd_index_find(&graph->blocks_by_address, blocks[i]);
        KWAIT_BLOCK block;

        if (known >= 0 && graph->blocks[known].object == index)
            add_waiter(graph, object, known);
        else if (kd_read(snapshot->target, blocks[i], &block, sizeof(block)) &&
                 (block.WaitType == WaitNotification || block.WaitType == WaitDpc))
            object->other_count++;
    }
    free(blocks);
}

/* Waiters of other locks, in the lock's order; then waiters that are in no list at the moment. */
static void add_other_waiters(const kd_snapshot *snapshot, kd_graph *graph, int index)
{
    kd_graph_object *object = &graph->objects[index];
    const kd_lock *lock = &snapshot->locks[object->lock];

    for (size_t w = 0; w < lock->waiter_count; w++) {
        int node = thread_node(graph, lock->waiters[w].thread);
        size_t count = node >= 0 ? snapshot->threads[lock->waiters[w].thread].block_count : 0;

        for (size_t b = 0; b < count; b++)
            if (graph->blocks[graph->threads[node].first_block + (int)b].object == index)
                add_waiter(graph, object, graph->threads[node].first_block + (int)b);
    }
}

static void link_waiters(kd_graph *graph, int index)
{
    const kd_graph_object *object = &graph->objects[index];

    for (size_t w = 0; w < object->waiter_count; w++)
        add_edge(graph, (kd_edge){.kind = w == 0 ? KD_EDGE_LIST_HEAD : KD_EDGE_LIST_NEXT,
                                  .from = w == 0 ? index : object->waiters[w - 1], .to = object->waiters[w],
                                  .cycle = -1});
}

static void link_owners(const kd_snapshot *snapshot, kd_graph *graph, int index)
{
    const kd_lock *lock = &snapshot->locks[graph->objects[index].lock];

    graph->objects[index].first_owner = (int)graph->edge_count;
    for (size_t o = 0; o < lock->owner_count; o++) {
        const kd_owner *owner = &lock->owners[o];
        int node = thread_node(graph, owner->thread);

        if (node < 0 && owner->thread < 0 && owner->id != 0 && !owner->cannot_orphan)
            node = ended_node(graph, owner->id, owner->process_id);
        if (node >= 0)
            add_edge(graph, (kd_edge){.kind = KD_EDGE_OWNER, .from = index, .to = node, .cycle = -1,
                                      .probable = owner->probable});
    }
    graph->objects[index].end_of_owners = (int)graph->edge_count;
}

/* Deadlocks. */

/* From the thread through its blocks to the object, and from there to the owner. */
static void mark_edges(const kd_snapshot *snapshot, kd_graph *graph, int thread, int object, int owner, int cycle)
{
    const kd_graph_thread *node = &graph->threads[thread];

    for (size_t b = 0; b < snapshot->threads[node->thread].block_count; b++) {
        const kd_graph_block *block = &graph->blocks[node->first_block + (int)b];

        if (block->object == object)
            graph->edges[block->edge].cycle = graph->edges[block->edge + 1].cycle = cycle;
    }
    for (int e = graph->objects[object].first_owner; e < graph->objects[object].end_of_owners; e++)
        if (graph->edges[e].to == owner)
            graph->edges[e].cycle = cycle;
}

static void mark_cycle(const kd_snapshot *snapshot, kd_graph *graph, const int *objects, int cycle)
{
    const kd_cycle *found = &snapshot->deadlocks->cycles[cycle];

    for (size_t i = 0; i < found->count; i++) {
        const kd_link *link = &found->links[i];
        int thread = thread_node(graph, link->thread), object = objects[link->lock];
        int owner = link->owner >= 0 ? thread_node(graph, link->owner)
                                     : ended_node(graph, link->owner_id, snapshot->threads[link->thread].process_id);

        if (thread < 0 || object < 0)
            continue;
        mark_edges(snapshot, graph, thread, object, owner, cycle);
        graph->threads[thread].cycle = cycle;
        graph->objects[object].cycle = cycle;
    }
}

static void link_suspects(const kd_snapshot *snapshot, kd_graph *graph, const int *objects)
{
    for (size_t i = 0; i < snapshot->deadlocks->suspicion_count; i++) {
        const kd_suspicion *suspicion = &snapshot->deadlocks->suspicions[i];

        for (size_t s = 0; s < suspicion->count; s++) {
            int suspect = thread_node(graph, suspicion->suspects[s]);

            if (suspect >= 0 && objects[suspicion->lock] >= 0)
                add_edge(graph, (kd_edge){.kind = KD_EDGE_MAY_OWN, .from = objects[suspicion->lock], .to = suspect,
                                          .cycle = -1});
        }
    }
}

kd_graph *kd_graph_build(kd_snapshot *snapshot)
{
    kd_graph *graph = kd_allocate(1, sizeof(*graph));
    int *objects = add_objects(snapshot, graph);

    graph->nodes = kd_allocate(snapshot->thread_count + 1, sizeof(int));
    for (size_t i = 0; i < snapshot->thread_count; i++)
        graph->nodes[i] = -1;
    add_processors(snapshot, graph);
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (snapshot->threads[i].raw->State != Terminated)
            add_blocks(snapshot, graph, add_thread(graph, (int)i, snapshot->threads[i].id, snapshot->threads[i].process_id), objects);
    link_processors(snapshot, graph);
    for (size_t i = 0; i < graph->object_count; i++) {
        follow_wait_list(snapshot, graph, (int)i);
        add_other_waiters(snapshot, graph, (int)i);
        link_waiters(graph, (int)i);
        link_owners(snapshot, graph, (int)i);
    }
    for (size_t c = 0; c < snapshot->deadlocks->cycle_count; c++)
        mark_cycle(snapshot, graph, objects, (int)c);
    link_suspects(snapshot, graph, objects);
    free(objects);
    return graph;
}

void kd_graph_free(kd_graph *graph)
{
    for (size_t i = 0; i < graph->object_count; i++)
        free(graph->objects[i].waiters);
    free(graph->processors);
    free(graph->threads);
    free(graph->blocks);
    free(graph->objects);
    free(graph->edges);
    free(graph->nodes);
    kd_index_free(&graph->ended);
    kd_index_free(&graph->blocks_by_address);
    free(graph);
}
