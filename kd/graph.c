/* graph.c: builds the wait graph of a snapshot. */
#include "graph.h"

#include <stdlib.h>

#define MOST_WAITERS 10000

static void add_edge(kd_graph *graph, kd_edge edge)
{
    graph->edges = kd_grow(graph->edges, graph->edge_count, sizeof(kd_edge));
    graph->edges[graph->edge_count++] = edge;
}

static int thread_node(const kd_graph *graph, int thread)
{
    for (size_t i = 0; thread >= 0 && i < graph->thread_count; i++)
        if (graph->threads[i].thread == thread)
            return (int)i;
    return -1;
}

static int add_thread(kd_graph *graph, int thread, uint32_t id)
{
    graph->threads = kd_grow(graph->threads, graph->thread_count, sizeof(kd_graph_thread));
    graph->threads[graph->thread_count] =
        (kd_graph_thread){.thread = thread, .id = id, .first_block = (int)graph->block_count, .cycle = -1};
    return (int)graph->thread_count++;
}

/* Who owns something and has ended is there too. */
static int ended_node(kd_graph *graph, uint32_t id)
{
    for (size_t i = 0; i < graph->thread_count; i++)
        if (graph->threads[i].thread < 0 && graph->threads[i].id == id)
            return (int)i;
    return add_thread(graph, -1, id);
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
    KPRCB *prcb = aligned_alloc(KI_CACHE_LINE, sizeof(*prcb));

    for (uint32_t p = 0; prcb != NULL && p < snapshot->processors; p++)
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

        if (thread != NULL && thread->waiting && thread->raw->WaitListed &&
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
    int *objects = calloc(snapshot->lock_count + 1, sizeof(int));

    for (size_t i = 0; objects != NULL && i < snapshot->lock_count; i++) {
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
        kd_graph_block block = {.thread = node, .number = (int)b, .object = -1, .position = -1};
        int index = (int)graph->block_count;

        if (thread->blocks[b].lock >= 0)
            block.object = objects[thread->blocks[b].lock];
        graph->blocks = kd_grow(graph->blocks, graph->block_count, sizeof(block));
        graph->blocks[graph->block_count++] = block;
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

static int block_at(const kd_snapshot *snapshot, const kd_graph *graph, kd_address address, int object)
{
    for (size_t i = 0; i < graph->block_count; i++) {
        const kd_graph_block *block = &graph->blocks[i];
        const kd_thread *thread = &snapshot->threads[graph->threads[block->thread].thread];

        if (block->object == object && thread->blocks[block->number].address == address)
            return (int)i;
    }
    return -1;
}

/* A dispatcher object has its waiters in a list of blocks, which tells their order. */
static void follow_wait_list(kd_snapshot *snapshot, kd_graph *graph, int index)
{
    kd_graph_object *object = &graph->objects[index];
    kd_address address = snapshot->locks[object->lock].object;
    kd_address head = address + offsetof(DISPATCHER_HEADER, WaitListHead);
    DISPATCHER_HEADER header;
    KWAIT_BLOCK block;
    size_t count = 0;

    if (!snapshot->locks[object->lock].has_state || !kd_read(snapshot->target, address, &header, sizeof(header)))
        return;
    for (kd_address at = KD_ADDRESS(header.WaitListHead.Flink); at != head && count < MOST_WAITERS;
         at = KD_ADDRESS(block.WaitListEntry.Flink), count++) {
        int known;

        if (!kd_read(snapshot->target, at, &block, sizeof(block)) || KD_ADDRESS(block.Object) != address)
            return;
        known = block_at(snapshot, graph, at, index);
        if (known >= 0)
            add_waiter(graph, object, known);
        else if (block.WaitType == WaitNotification || block.WaitType == WaitDpc)
            object->other_count++;
    }
}

/* Those of other locks, in the order in which the lock knows them; and whoever is in no list just now. */
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

    for (size_t o = 0; o < lock->owner_count; o++) {
        const kd_owner *owner = &lock->owners[o];
        int node = thread_node(graph, owner->thread);

        if (node < 0 && owner->thread < 0 && owner->id != 0)
            node = ended_node(graph, owner->id);
        if (node >= 0)
            add_edge(graph, (kd_edge){.kind = KD_EDGE_OWNER, .from = index, .to = node, .cycle = -1,
                                      .probable = owner->probable});
    }
}

/* Deadlocks. */

static void mark_edges(kd_graph *graph, int thread, int object, int owner, int cycle)
{
    for (size_t i = 0; i < graph->edge_count; i++) {
        kd_edge *edge = &graph->edges[i];
        bool through = false;

        if (edge->kind == KD_EDGE_BLOCK)
            through = edge->from == thread && graph->blocks[edge->to].object == object;
        else if (edge->kind == KD_EDGE_WAITS)
            through = edge->to == object && graph->blocks[edge->from].thread == thread;
        else if (edge->kind == KD_EDGE_OWNER)
            through = edge->from == object && edge->to == owner;
        if (through)
            edge->cycle = cycle;
    }
}

static void mark_cycle(const kd_snapshot *snapshot, kd_graph *graph, const int *objects, int cycle)
{
    const kd_cycle *found = &snapshot->deadlocks->cycles[cycle];

    for (size_t i = 0; i < found->count; i++) {
        const kd_link *link = &found->links[i];
        int thread = thread_node(graph, link->thread), object = objects[link->lock];
        int owner = link->owner >= 0 ? thread_node(graph, link->owner) : ended_node(graph, link->owner_id);

        mark_edges(graph, thread, object, owner, cycle);
        if (thread >= 0)
            graph->threads[thread].cycle = cycle;
        if (object >= 0)
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
    kd_graph *graph = calloc(1, sizeof(*graph));
    int *objects = graph != NULL ? add_objects(snapshot, graph) : NULL;

    if (objects == NULL) {
        kd_say("there is no memory");
        exit(1);
    }
    add_processors(snapshot, graph);
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (snapshot->threads[i].raw->State != Terminated)
            add_blocks(snapshot, graph, add_thread(graph, (int)i, snapshot->threads[i].id), objects);
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
    free(graph);
}
