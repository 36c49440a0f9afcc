/*
 * world.h: a world of shared objects (src/wo), read from its file. The file is copied first and never locked: what a
 * process was changing meanwhile may be inconsistent, and any process may have written rubbish. So every index is checked,
 * and every record is read once.
 */
#ifndef INTERLOCK_KD_WORLD_H
#define INTERLOCK_KD_WORLD_H

#include "kd.h"

#include "wo/wop.h"

typedef struct kd_world_process {
    uint32_t index;
    uint32_t id;
    char name[64];
    unsigned flags;       /* WO_EXITING, WO_FORKED, WO_STARTED */
    size_t objects, handles;
} kd_world_process;

typedef struct kd_world_thread {
    uint32_t index;
    uint32_t id;
    int process;          /* -1: not known */
    bool waiting, all;
    int *objects;         /* what it waits for */
    size_t object_count;
    int next;             /* in a deadlock: the thread that it waits for; -1: none */
    int cycle;            /* number of the deadlock, from 0; -1: none */
} kd_world_thread;

typedef struct kd_world_object {
    uint32_t index;
    unsigned type;        /* WO_TYPE */
    char *name;           /* path from the root; NULL: none */
    int64_t state;        /* as SignalState */
    bool abandoned;
    int owner;            /* thread, -1: none */
    uint64_t due;         /* timer: interrupt time or system time; 0: not set */
    unsigned handles;
    int *holders;         /* processes */
    size_t holder_count;
    int *waiters;         /* threads, oldest first */
    size_t waiter_count;
} kd_world_object;

typedef struct kd_world {
    char path[512];
    unsigned state;       /* WO_WORLD_STATE */
    uint64_t size, used;
    bool inconsistent;
    kd_world_process *processes;
    size_t process_count;
    kd_world_thread *threads;
    size_t thread_count;
    kd_world_object *objects;
    size_t object_count;
    size_t cycle_count;
} kd_world;

kd_world *kd_world_read(const char *path); /* NULL: no world; it has said why */
void kd_world_free(kd_world *world);
const char *kd_world_type_name(unsigned type);

/* The paths of the worlds of this user, and of the machine; the last one is NULL. To be freed, each and all. */
char **kd_world_paths(void);

#endif
