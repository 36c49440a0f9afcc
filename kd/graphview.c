/* graphview.c: `interlock graph`: the wait graph as text, as JSON, and for graphviz. */
#include "graph.h"
#include "views.h"

#include <inttypes.h>

#define ID_SIZE 48
#define MOST_OWNERS_SHOWN 16

static const char *const edge_names[] = {
    [KD_EDGE_RUNS] = "runs",           [KD_EDGE_WAIT_LIST] = "wait_list", [KD_EDGE_BLOCK] = "block",
    [KD_EDGE_WAITS] = "waits",         [KD_EDGE_LIST_HEAD] = "list_head", [KD_EDGE_LIST_NEXT] = "list_next",
    [KD_EDGE_OWNER] = "owner",         [KD_EDGE_MAY_OWN] = "may_own",
};

/* Ids, the same from one snapshot to the next. */

static const char *processor_id(const kd_graph *graph, int index, char id[ID_SIZE])
{
    snprintf(id, ID_SIZE, "p%u", graph->processors[index].number);
    return id;
}

static const char *thread_id(const kd_graph *graph, int index, char id[ID_SIZE])
{
    const kd_graph_thread *thread = &graph->threads[index];

    if (thread->process_id != 0)
        snprintf(id, ID_SIZE, "t%u_%u", thread->process_id, thread->id);
    else
        snprintf(id, ID_SIZE, "t%u", thread->id);
    return id;
}

static const kd_block *raw_block(const kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    const kd_graph_block *block = &graph->blocks[index];

    return &snapshot->threads[graph->threads[block->thread].thread].blocks[block->number];
}

static const char *block_id(const kd_snapshot *snapshot, const kd_graph *graph, int index, char id[ID_SIZE])
{
    snprintf(id, ID_SIZE, "b%" PRIx64, raw_block(snapshot, graph, index)->address);
    return id;
}

static const char *object_id(const kd_snapshot *snapshot, const kd_graph *graph, int index, char id[ID_SIZE])
{
    const kd_lock *lock = &snapshot->locks[graph->objects[index].lock];

    if (lock->process_id != 0)
        snprintf(id, ID_SIZE, "o%u_%" PRIx64 "_%s", lock->process_id, lock->address, kd_kind_name(lock->kind));
    else if (lock->address == 0)
        snprintf(id, ID_SIZE, "w%d_%" PRIx32, lock->world, lock->record);
    else
        snprintf(id, ID_SIZE, "o%" PRIx64 "_%s", lock->address, kd_kind_name(lock->kind));
    return id;
}

static void edge_ids(const kd_snapshot *snapshot, const kd_graph *graph, const kd_edge *edge, char from[ID_SIZE],
                     char to[ID_SIZE])
{
    switch (edge->kind) {
    case KD_EDGE_RUNS:
    case KD_EDGE_WAIT_LIST:
        processor_id(graph, edge->from, from);
        thread_id(graph, edge->to, to);
        break;
    case KD_EDGE_BLOCK:
        thread_id(graph, edge->from, from);
        block_id(snapshot, graph, edge->to, to);
        break;
    case KD_EDGE_WAITS:
        block_id(snapshot, graph, edge->from, from);
        object_id(snapshot, graph, edge->to, to);
        break;
    case KD_EDGE_LIST_HEAD:
        object_id(snapshot, graph, edge->from, from);
        block_id(snapshot, graph, edge->to, to);
        break;
    case KD_EDGE_LIST_NEXT:
        block_id(snapshot, graph, edge->from, from);
        block_id(snapshot, graph, edge->to, to);
        break;
    case KD_EDGE_OWNER:
    case KD_EDGE_MAY_OWN:
        object_id(snapshot, graph, edge->from, from);
        thread_id(graph, edge->to, to);
        break;
    }
}

/* JSON. */

static void json_cycle(json *out, int cycle)
{
    if (cycle >= 0)
        json_number(out, "cycle", cycle);
    else
        json_null(out, "cycle");
}

static void json_processor(json *out, kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    const kd_graph_processor *processor = &graph->processors[index];
    char id[ID_SIZE], symbol[KD_SYMBOL_SIZE] = "";

    kd_symbol(snapshot->target, processor->active_dpc_routine, symbol);
    json_object(out, NULL);
    json_string(out, "id", processor_id(graph, index, id));
    json_number(out, "number", processor->number);
    json_address(out, "address", processor->address);
    if (processor->owner >= 0)
        kd_json_thread(out, "owner", snapshot, processor->owner);
    else
        json_null(out, "owner");
    json_number(out, "irql", processor->irql);
    json_bool(out, "idle", processor->idle);
    json_bool(out, "dpc_routine_active", processor->in_dpc);
    json_number(out, "dpc_depth", processor->dpc_depth);
    json_number(out, "dpc_count", processor->dpc_count);
    json_number(out, "interrupt_count", processor->interrupt_count);
    json_string(out, "active_dpc", symbol[0] != '\0' ? symbol : NULL);
    json_end(out);
}

static void json_wait(json *out, const kd_snapshot *snapshot, const kd_thread *thread)
{
    double left;

    if (!thread->waiting) {
        json_null(out, "wait_reason");
        json_null(out, "seconds");
        json_null(out, "timeout_in");
        return;
    }
    json_string(out, "wait_reason", kd_wait_reason_name(thread->raw->WaitReason));
    if (snapshot->now != 0 && !thread->probable)
        json_real(out, "seconds", kd_waited(snapshot, thread));
    else
        json_null(out, "seconds");
    if (kd_time_left(snapshot, thread, &left))
        json_real(out, "timeout_in", left);
    else
        json_null(out, "timeout_in");
}

static void json_thread(json *out, const kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    const kd_graph_thread *node = &graph->threads[index];
    const kd_thread *thread = node->thread >= 0 ? &snapshot->threads[node->thread] : NULL;
    char id[ID_SIZE];

    json_object(out, NULL);
    json_string(out, "id", thread_id(graph, index, id));
    json_number(out, "thread", node->id);
    json_string(out, "name", thread != NULL ? thread->name : NULL);
    json_bool(out, "ended", thread == NULL);
    kd_json_process(out, "process_id", node->process_id);
    json_string(out, "process_name", thread != NULL ? thread->process_name : NULL);
    json_cycle(out, node->cycle);
    if (thread != NULL) {
        json_address(out, "address", thread->address);
        json_string(out, "state", kd_thread_state_name(thread->raw->State));
        json_bool(out, "system", thread->system);
        json_bool(out, "moving", thread->moving);
        json_bool(out, "deadlocked", thread->deadlocked);
        json_bool(out, "orphaned", thread->orphaned);
        json_number(out, "irql", thread->raw->Irql);
        json_number(out, "priority", KiBoostedPriority(thread->raw));
        json_number(out, "context_switches", thread->raw->ContextSwitches);
        json_number(out, "suspend_count", thread->raw->SuspendCount);
        json_bool(out, "waiting", thread->waiting);
        json_bool(out, "alertable", thread->waiting && thread->raw->Alertable);
        json_wait(out, snapshot, thread);
    }
    json_end(out);
}

static void json_block(json *out, const kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    const kd_graph_block *block = &graph->blocks[index];
    const kd_block *raw = raw_block(snapshot, graph, index);
    char id[ID_SIZE];

    json_object(out, NULL);
    json_string(out, "id", block_id(snapshot, graph, index, id));
    json_address(out, "address", raw->address);
    json_string(out, "thread", thread_id(graph, block->thread, id));
    json_string(out, "object", block->object >= 0 ? object_id(snapshot, graph, block->object, id) : NULL);
    json_string(out, "wait_type", kd_wait_type_name(raw->raw.WaitType));
    json_string(out, "block_state", kd_block_state_name(raw->raw.BlockState));
    json_number(out, "wait_key", raw->raw.WaitKey);
    if (block->position >= 0)
        json_number(out, "position", block->position);
    else
        json_null(out, "position");
    json_end(out);
}

static void json_object_node(json *out, const kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    const kd_graph_object *object = &graph->objects[index];
    char id[ID_SIZE];

    json_object(out, NULL);
    json_string(out, "id", object_id(snapshot, graph, index, id));
    json_string(out, "title", kd_kind_title(snapshot->locks[object->lock].kind));
    json_bool(out, "lock", kd_is_lock(&snapshot->locks[object->lock]));
    json_cycle(out, object->cycle);
    json_array(out, "wait_list");
    for (size_t w = 0; w < object->waiter_count; w++)
        json_string(out, NULL, block_id(snapshot, graph, object->waiters[w], id));
    json_end(out);
    json_number(out, "other_waiters", (int64_t)object->other_count);
    kd_json_lock(out, "object", snapshot, &snapshot->locks[object->lock]);
    json_end(out);
}

static void json_edge(json *out, const kd_snapshot *snapshot, const kd_graph *graph, const kd_edge *edge)
{
    char from[ID_SIZE], to[ID_SIZE];

    edge_ids(snapshot, graph, edge, from, to);
    json_object(out, NULL);
    json_string(out, "kind", edge_names[edge->kind]);
    json_string(out, "from", from);
    json_string(out, "to", to);
    json_cycle(out, edge->cycle);
    json_bool(out, "probable", edge->probable);
    json_end(out);
}

static void json_graph(json *out, kd_snapshot *snapshot, const kd_graph *graph)
{
    json_object(out, NULL);
    json_number(out, "process_id", snapshot->process_id);
    json_string(out, "version", kd_version(snapshot->target));
    kd_json_deadlocks(out, snapshot);
    json_array(out, "processors");
    for (size_t i = 0; i < graph->processor_count; i++)
        json_processor(out, snapshot, graph, (int)i);
    json_end(out);
    json_array(out, "threads");
    for (size_t i = 0; i < graph->thread_count; i++)
        json_thread(out, snapshot, graph, (int)i);
    json_end(out);
    json_array(out, "blocks");
    for (size_t i = 0; i < graph->block_count; i++)
        json_block(out, snapshot, graph, (int)i);
    json_end(out);
    json_array(out, "objects");
    for (size_t i = 0; i < graph->object_count; i++)
        json_object_node(out, snapshot, graph, (int)i);
    json_end(out);
    json_array(out, "edges");
    for (size_t i = 0; i < graph->edge_count; i++)
        json_edge(out, snapshot, graph, &graph->edges[i]);
    json_end(out);
    kd_json_end(out, snapshot);
}

/* graphviz. */

static void dot_text(const char *text)
{
    for (; *text != '\0'; text++)
        printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static void dot_node(const char *id, const char *first, const char *second, const char *style, int cycle)
{
    printf("    \"%s\" [label=\"", id);
    dot_text(first);
    if (second[0] != '\0') {
        printf("\\n");
        dot_text(second);
    }
    printf("\", %s%s];\n", style, cycle >= 0 ? ", color=red, fontcolor=red" : "");
}

static void dot_nodes(kd_snapshot *snapshot, const kd_graph *graph)
{
    char id[ID_SIZE], first[KD_SYMBOL_SIZE + 64], second[KD_SYMBOL_SIZE];

    for (size_t i = 0; i < graph->processor_count; i++) {
        snprintf(first, sizeof(first), "CPU %u", graph->processors[i].number);
        snprintf(second, sizeof(second), "IRQL %u, %u DPCs", graph->processors[i].irql, graph->processors[i].dpc_depth);
        dot_node(processor_id(graph, (int)i, id), first, second, "shape=box3d", -1);
    }
    for (size_t i = 0; i < graph->thread_count; i++) {
        const kd_graph_thread *node = &graph->threads[i];
        const kd_thread *thread = node->thread >= 0 ? &snapshot->threads[node->thread] : NULL;

        if (node->process_id != 0)
            snprintf(first, sizeof(first), "%s %u/%u", thread != NULL ? thread->process_name : "thread",
                     node->process_id, node->id);
        else
            snprintf(first, sizeof(first), "%s %u", thread != NULL ? thread->name : "thread", node->id);
        snprintf(second, sizeof(second), "%s", thread == NULL ? "ended"
                                               : thread->waiting ? kd_wait_reason_name(thread->raw->WaitReason)
                                                                 : kd_thread_state_name(thread->raw->State));
        dot_node(thread_id(graph, (int)i, id), first, second, "shape=box, style=rounded", node->cycle);
    }
    for (size_t i = 0; i < graph->block_count; i++)
        dot_node(block_id(snapshot, graph, (int)i, id),
                 kd_wait_type_name(raw_block(snapshot, graph, (int)i)->raw.WaitType), "", "shape=note", -1);
    for (size_t i = 0; i < graph->object_count; i++) {
        const kd_lock *lock = &snapshot->locks[graph->objects[i].lock];

        kd_describe_lock(lock, first, sizeof(first));
        dot_node(object_id(snapshot, graph, (int)i, id), first, "", "shape=box, style=bold", graph->objects[i].cycle);
    }
}

static void dot_edges(const kd_snapshot *snapshot, const kd_graph *graph)
{
    static const char *const styles[] = {
        [KD_EDGE_RUNS] = "style=bold",
        [KD_EDGE_WAIT_LIST] = "style=dotted, color=gray",
        [KD_EDGE_BLOCK] = "arrowhead=none",
        [KD_EDGE_WAITS] = "style=solid",
        [KD_EDGE_LIST_HEAD] = "style=dotted, color=gray, constraint=false",
        [KD_EDGE_LIST_NEXT] = "style=dotted, color=gray, constraint=false",
        [KD_EDGE_OWNER] = "style=dashed, label=\"held by\"",
        [KD_EDGE_MAY_OWN] = "style=dashed, color=orange, label=\"held by?\"",
    };
    char from[ID_SIZE], to[ID_SIZE];

    for (size_t i = 0; i < graph->edge_count; i++) {
        edge_ids(snapshot, graph, &graph->edges[i], from, to);
        printf("    \"%s\" -> \"%s\" [%s%s];\n", from, to, styles[graph->edges[i].kind],
               graph->edges[i].cycle >= 0 ? ", color=red, fontcolor=red, penwidth=2" : "");
    }
}

/* Text. */

static void print_processors(kd_snapshot *snapshot, const kd_graph *graph)
{
    char text[KD_SYMBOL_SIZE];
    size_t idle = 0;

    for (size_t i = 0; i < graph->processor_count; i++) {
        const kd_graph_processor *processor = &graph->processors[i];

        idle += processor->idle;
        if (processor->idle)
            continue;
        printf("CPU %u  IRQL %u  %u DPCs queued", processor->number, processor->irql, processor->dpc_depth);
        if (processor->owner >= 0)
            printf("  runs %s", kd_describe_thread(snapshot, processor->owner, text, sizeof(text)));
        if (kd_symbol(snapshot->target, processor->active_dpc_routine, text))
            printf("  in DPC %s", text);
        printf("\n");
    }
    printf("%zu of %zu processors are idle\n\n", idle, graph->processor_count);
}

static void print_owners(const kd_snapshot *snapshot, const kd_lock *lock)
{
    char text[192];

    for (size_t i = 0; i < lock->owner_count && i < MOST_OWNERS_SHOWN; i++) {
        const kd_owner *owner = &lock->owners[i];

        if (owner->thread >= 0)
            printf("%s%s", i == 0 ? " <- " : ", ", kd_describe_thread(snapshot, owner->thread, text, sizeof(text)));
        else if (owner->cannot_orphan)
            printf("%sthread %u", i == 0 ? " <- " : ", ", owner->id);
        else if (owner->id != 0)
            printf("%sthread %u, which has ended", i == 0 ? " <- " : ", ", owner->id);
        else
            printf("%sowner 0x%" PRIx64, i == 0 ? " <- " : ", ", owner->address);
        printf("%s", owner->probable ? " (probably)" : "");
    }
    if (lock->owner_count > MOST_OWNERS_SHOWN)
        printf(" and %zu more", lock->owner_count - MOST_OWNERS_SHOWN);
}

static void print_block(const kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    const kd_graph_block *block = &graph->blocks[index];
    const kd_block *raw = raw_block(snapshot, graph, index);
    const kd_graph_object *object = block->object >= 0 ? &graph->objects[block->object] : NULL;
    char text[512];

    printf("    [%s", kd_wait_type_name(raw->raw.WaitType));
    if (block->position >= 0 && object != NULL && object->waiter_count > 1)
        printf(", %d of %zu", block->position + 1, object->waiter_count);
    printf("] -> %s", object != NULL ? kd_describe_lock(&snapshot->locks[object->lock], text, sizeof(text)) : "?");
    if (object != NULL)
        print_owners(snapshot, &snapshot->locks[object->lock]);
    printf("%s\n", object != NULL && object->cycle >= 0 && object->cycle == graph->threads[block->thread].cycle
                       ? "  ***" : "");
}

static const char *stuck_text(const kd_thread *thread, bool is_cause)
{
    if (!thread->deadlocked)
        return "";
    if (thread->orphaned)
        return is_cause ? "  *** ORPHANED LOCK" : "  *** behind an orphaned lock";
    return is_cause ? "  *** DEADLOCK" : "  *** behind a deadlock";
}

static void print_thread(const kd_snapshot *snapshot, const kd_graph *graph, int index)
{
    const kd_graph_thread *node = &graph->threads[index];
    const kd_thread *thread = &snapshot->threads[node->thread];
    size_t left_out = 0;
    char text[192];

    printf("%s  ", kd_describe_thread(snapshot, node->thread, text, sizeof(text)));
    if (thread->moving)
        printf("moves");
    else if (thread->waiting)
        printf("%s", kd_wait_reason_name(thread->raw->WaitReason));
    else
        printf("%s", kd_thread_state_name(thread->raw->State));
    if (thread->waiting && snapshot->now != 0 && !thread->probable)
        printf(", %.3f s", kd_waited(snapshot, thread));
    printf("%s\n", stuck_text(thread, node->cycle >= 0));
    for (size_t b = 0; b < thread->block_count; b++) {
        if (kd_is_block_shown(snapshot, thread, b))
            print_block(snapshot, graph, node->first_block + (int)b);
        else
            left_out++;
    }
    if (left_out != 0)
        printf("    and %zu objects without an owner\n", left_out);
}

static void print_graph(kd_snapshot *snapshot, const kd_graph *graph, bool verbose)
{
    char text[512];

    kd_print_deadlocks(snapshot);
    print_processors(snapshot, graph);
    for (size_t i = 0; i < graph->thread_count; i++)
        if (graph->threads[i].thread >= 0 && (verbose || !snapshot->threads[graph->threads[i].thread].system))
            print_thread(snapshot, graph, (int)i);
    for (size_t i = 0; i < graph->object_count; i++) {
        const kd_lock *lock = &snapshot->locks[graph->objects[i].lock];

        if (graph->objects[i].waiter_count != 0)
            continue;
        printf("no waiters -> %s", kd_describe_lock(lock, text, sizeof(text)));
        print_owners(snapshot, lock);
        printf("\n");
    }
}

static int show_graph(kd_snapshot *snapshot, const kd_options *options)
{
    kd_graph *graph = kd_graph_build(snapshot);
    json out = kd_json(options);

    if (options->json) {
        json_graph(&out, snapshot, graph);
    } else if (options->dot) {
        printf("digraph interlock {\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n");
        dot_nodes(snapshot, graph);
        dot_edges(snapshot, graph);
        printf("}\n");
    } else {
        print_graph(snapshot, graph, options->verbose);
    }
    kd_graph_free(graph);
    return 0;
}

const kd_view kd_graph_view = {
    .name = "graph",
    .arguments = "[--json|--dot] [-v] PID|CORE\n"
                 "  --dot     for graphviz\n"
                 "  -v        also the threads of the library itself\n"
                 "Each thread with its wait blocks, what they wait for, and <- its owners.",
    .has_dot = true,
    .show = show_graph,
};

int command_graph(int argc, char **argv)
{
    return kd_run(&kd_graph_view, argc, argv);
}
