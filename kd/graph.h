/*
 * graph.h: the wait data structures of a process as a graph, after figure 8-39: processors, threads, the wait blocks of
 * the threads, and what they wait for.
 *
 *      processor --runs--> thread --block--> block --waits--> object --owner--> thread
 *                                              ^                |
 *                                              +---list---------+   object to first block, block to next block
 */
#ifndef INTERLOCK_KD_GRAPH_H
#define INTERLOCK_KD_GRAPH_H

#include "kd.h"

typedef struct kd_graph_processor {
    uint32_t number;
    kd_address address;
    int owner;            /* thread, -1: none */
    unsigned irql;
    bool idle, in_dpc;
    unsigned dpc_depth, dpc_count, interrupt_count;
    kd_address active_dpc_routine;
} kd_graph_processor;

/* A thread of the snapshot, or an exited one that still owns a lock. */
typedef struct kd_graph_thread {
    int thread;           /* index, -1: it has ended */
    uint32_t id;
    uint32_t process_id;  /* of a thread of another process, else 0 */
    int first_block;      /* of as many as the thread has */
    int cycle;            /* -1: none */
} kd_graph_thread;

typedef struct kd_graph_block {
    int thread;           /* of the graph */
    int number;           /* among the blocks of its thread */
    int object;           /* of the graph, -1: not known */
    int edge;             /* the edge from its thread; the next edge leads to the object */
    int position;         /* among the waiters of the object, from 0; -1: not in its list */
} kd_graph_block;

typedef struct kd_graph_object {
    int lock;             /* index */
    int *waiters;         /* blocks of the graph, in the order of the object's list */
    size_t waiter_count;
    size_t other_count;   /* in the list, but no thread: completion packets and DPCs */
    int first_owner, end_of_owners; /* edges */
    int cycle;
} kd_graph_object;

typedef enum kd_edge_kind {
    KD_EDGE_RUNS,         /* processor to the thread that owns it */
    KD_EDGE_WAIT_LIST,    /* processor to a thread that NT has on its WaitListHead: KiIsOnWaitList */
    KD_EDGE_BLOCK,        /* thread to block */
    KD_EDGE_WAITS,        /* block to object */
    KD_EDGE_LIST_HEAD,    /* object to the first block of its list */
    KD_EDGE_LIST_NEXT,    /* block to the next one */
    KD_EDGE_OWNER,        /* object to a thread that holds it */
    KD_EDGE_MAY_OWN,      /* object without a recorded owner, to a thread that would close a cycle */
} kd_edge_kind;

typedef struct kd_edge {
    kd_edge_kind kind;
    int from, to;
    int cycle;            /* -1: none */
    bool probable;
} kd_edge;

typedef struct kd_graph {
    kd_graph_processor *processors;
    size_t processor_count;
    kd_graph_thread *threads;
    size_t thread_count;
    kd_graph_block *blocks;
    size_t block_count;
    kd_graph_object *objects;
    size_t object_count;
    kd_edge *edges;
    size_t edge_count;
    int *nodes;           /* of the snapshot's threads, -1: none */
    kd_index ended;       /* nodes of threads that have ended, by id */
    kd_index blocks_by_address;
} kd_graph;

kd_graph *kd_graph_build(kd_snapshot *snapshot);
void kd_graph_free(kd_graph *graph);

#endif
